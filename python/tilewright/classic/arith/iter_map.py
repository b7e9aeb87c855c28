# SPDX-License-Identifier: Apache-2.0
"""Index expressions as affine iterator maps: sums of source / lower_factor % extent * scale over independent iterators, and a base."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ..tir.expr import EqualOp, PrimExpr, Var
from ..tir.range import Range
from . import Analyzer, _linear, conditions

_NOTHING = Analyzer()  # an analyzer without constraints: what it proves holds for all values


def _simple(value: Any) -> Any:
    return value if isinstance(value, int) else _NOTHING.simplify(value)


def _same(a: Any, b: Any) -> bool:
    return int(a) == int(b) if isinstance(a, int) and isinstance(b, int) else _NOTHING.can_prove_equal(a, b)


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and int(value) == number


def _divides(a: Any, b: Any) -> bool:
    """Whether a is a multiple of b."""
    if isinstance(a, int) and isinstance(b, int):
        return int(a) != 0 and int(b) % int(a) == 0
    if _same(a, b) or _is(a, 1):
        return True
    return _is(_simple(_core.prim_binary("FloorMod", b, a)), 0)


def _quotient(b: Any, a: Any) -> Any:
    return _core.prim_expr(1) if _same(a, b) else _simple(_core.prim_binary("FloorDiv", b, a))


class IterMapExpr:
    """Base of expressions over iterators."""
    dtype = "int32"

    def same_as(self, other: Any) -> bool:
        return self is other


class IterMark:
    """An iterator: an expression that runs over 0 ... extent - 1."""

    def __init__(self, source: Any, extent: Any):
        self.source, self.extent = source, _core.prim_expr(extent)

    def __repr__(self) -> str:
        return f"IterMark({self.source}, extent={self.extent})"


class IterSplitExpr(IterMapExpr):
    """Part of an iterator: source / lower_factor % extent * scale."""

    def __init__(self, source: IterMark, lower_factor: Any = 1, extent: Any = None, scale: Any = 1):
        self.source, self.lower_factor, self.scale = source, _core.prim_expr(lower_factor), _core.prim_expr(scale)
        self.extent = source.extent if extent is None else _core.prim_expr(extent)

    def __repr__(self) -> str:
        return f"IterSplit({self.source}, lower_factor={self.lower_factor}, extent={self.extent}, scale={self.scale})"


class IterSumExpr(IterMapExpr):
    """The sum of `args`, which are splits, and of `base`."""

    def __init__(self, args: Sequence[IterSplitExpr], base: Any):
        self.args, self.base = list(args), _core.prim_expr(base)

    def __repr__(self) -> str:
        return f"IterSum({self.args}, {self.base})"


class IterMapResult(list):  # type: ignore[type-arg]
    """One sum per index; empty if an index is not an affine map of the iterators."""
    errors: list[str] = []

    @property
    def indices(self) -> list[IterSumExpr]:
        return list(self)


class _NoMap(Exception):
    pass


class _Rewriter:
    def __init__(self, iters: Mapping[Any, Any], trivial: bool):
        self.sums: dict[Any, IterSumExpr] = {}
        self.vars = list(iters)
        self.marks: dict[Any, IterMark] = {}
        self.bounded: list[tuple[list[IterSplitExpr], IterMark, Any]] = []  # (parts of a sum that a predicate bounds, the iterator, its minimum)
        self.analyzer = Analyzer()
        self.fused: list[tuple[list[IterSplitExpr], IterMark]] = []
        for var, dom in iters.items():
            dom = dom if isinstance(dom, Range) else Range.from_min_extent(*dom)
            if isinstance(dom.extent, int):
                self.analyzer.bind(var, dom)
            if trivial and _is(dom.extent, 1):
                self.sums[var] = IterSumExpr([], dom.min)
                continue
            source = var if _is(dom.min, 0) else var - dom.min
            self.marks[var] = IterMark(source, dom.extent)
            self.sums[var] = IterSumExpr([IterSplitExpr(self.marks[var])], dom.min)

    def uses(self, expr: Any) -> bool:
        return isinstance(expr, _core.PrimExpr) and any(_core.prim_uses(expr, v) for v in self.vars)

    def rewrite(self, expr: Any) -> IterSumExpr:
        if not self.uses(expr):
            return IterSumExpr([], expr)
        if isinstance(expr, Var):
            return self.sums[next(v for v in self.vars if v.same_as(expr))]
        kind, fields = expr._kind, expr._fields
        if kind in ("Add", "Sub"):
            left, right = self.rewrite(fields[0]), self.rewrite(fields[1])
            return _plus(left, right if kind == "Add" else _scaled(right, -1))
        if kind == "Mul":
            for side, other in (fields, fields[::-1]):
                if not self.uses(other):
                    return _scaled(self.rewrite(side), other)
        if kind in ("FloorDiv", "FloorMod", "Div") and not self.uses(fields[1]):
            return self.divided(self.rewrite(fields[0]), fields[1], kind != "FloorMod")
        raise _NoMap(f"'{expr}' is no sum of parts of iterators")

    def divided(self, value: IterSumExpr, by: Any, quotient: bool) -> IterSumExpr:
        base: Any = 0
        if not _is(value.base, 0) or len(value.args) != 1:
            # Terms that the divisor divides exactly come out of the division: (x * 8 + y) / 4 is x * 2 + y / 4 for y < 4.
            exact = [a for a in value.args if _divides(by, a.scale)]
            rest = [a for a in value.args if not _divides(by, a.scale)]
            if _divides(by, value.base):
                base, value = value.base, IterSumExpr(value.args, 0)
            elif exact and not rest:
                return IterSumExpr([_with(a, scale=_quotient(a.scale, by)) for a in exact], _core.prim_binary("FloorDiv", value.base, by)) if quotient \
                    else IterSumExpr([], _core.prim_binary("FloorMod", value.base, by))
        if not value.args:
            return IterSumExpr([], _simple(_core.prim_binary("FloorDiv" if quotient else "FloorMod", _core.prim_binary("Add", value.base, base), by)))
        whole = self.fuse(value)
        if not _is(whole.base, 0):
            if not _divides(by, whole.base):
                raise _NoMap(f"what begins at {whole.base} is divided by {by}")
            base, whole = _core.prim_binary("Add", base, whole.base), IterSumExpr(whole.args, 0)
        made = _split(whole.args[0], by, quotient)
        return _plus(made, IterSumExpr([], _simple(_core.prim_binary("FloorDiv", base, by)) if quotient else 0))

    def fuse(self, value: IterSumExpr) -> IterSumExpr:
        """Fuses several terms of a sum into one new iterator."""
        args = list(value.args)
        base = value.base
        for parts, mark, least in self.bounded:
            factor = _factor_of(parts, args)
            if factor is not None:
                args = [a for a in args if not any(_part_of(a, p, factor) for p in parts)] + [IterSplitExpr(mark, scale=factor)]
                base = _simple(_core.prim_binary("Add", base, _core.prim_binary("Mul", least, factor)))
        if len(args) <= 1:
            return IterSumExpr(args, base)
        least_scale = next((a.scale for a in args if all(_divides(a.scale, other.scale) for other in args)), None)
        if least_scale is None:
            raise _NoMap("the scales of a sum have no common part")
        left, order, expected = list(args), [], least_scale
        while left:
            following = next((a for a in left if _same(a.scale, expected)), None)
            if following is None:
                raise _NoMap(f"{value} does not run over all its values, one after another")
            left.remove(following)
            order.insert(0, following)
            expected = _simple(_core.prim_binary("Mul", expected, following.extent))
        inner = [_with(a, scale=_quotient(a.scale, least_scale)) for a in order]
        for known, mark in self.fused:
            if len(known) == len(inner) and all(_part_of(a, b, 1) for a, b in zip(inner, known)):
                break
        else:
            mark = IterMark(IterSumExpr(inner, 0), _quotient(expected, least_scale))
            self.fused.append((inner, mark))
        return IterSumExpr([IterSplitExpr(mark, scale=least_scale)], base)

    def bound(self, predicate: Any) -> None:
        """Applies a predicate's bounds of iterator sums."""
        limits: list[tuple[list[IterSplitExpr], Any, Any]] = []
        for condition in conditions(predicate):
            if isinstance(condition, EqualOp):
                condition = condition.asobject()
            if isinstance(condition, int):
                if not condition:
                    raise _NoMap("the predicate never holds")
                continue
            if getattr(condition, "_kind", "") not in ("LT", "LE", "GT", "GE"):
                raise _NoMap(f"'{condition}' is no bound of a sum of iterators")
            kind, (a, b) = condition._kind, condition._fields
            if self.uses(b) and not self.uses(a):
                kind, a, b = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}[kind], b, a
            elif self.uses(b):
                raise _NoMap(f"'{condition}' is no bound of a sum of iterators")
            value = self.rewrite(a)
            limit = _simple(_core.prim_binary("Sub", b, value.base))
            low = limit if kind == "GE" else _simple(limit + 1) if kind == "GT" else None
            high = limit if kind == "LT" else _simple(limit + 1) if kind == "LE" else None
            for i, (parts, old_low, old_high) in enumerate(limits):
                if len(parts) == len(value.args) and _factor_of(parts, value.args) is not None:
                    limits[i] = parts, low if low is not None else old_low, high if high is not None else old_high
                    break
            else:
                limits.append((value.args, low, high))
        for parts, low, high in sorted(limits, key=lambda limit: len(limit[0])):
            whole = self.fuse(IterSumExpr(parts, 0))
            if len(whole.args) != 1 or not _is(whole.args[0].scale, 1):
                raise _NoMap("a predicate bounds what is no iterator")
            extent = whole.args[0].extent
            first = 0 if low is None or isinstance(low, int) and int(low) <= 0 else low
            last = extent if high is None or isinstance(high, int) and isinstance(extent, int) and int(high) >= int(extent) else high
            if _is(first, 0) and _same(last, extent):
                continue
            source = IterSumExpr(whole.args if len(parts) == 1 else whole.args[0].source.source.args, _simple(_core.prim_binary("Sub", whole.base, first)))
            self.bounded.append((parts, IterMark(source, _simple(_core.prim_binary("Sub", last, first))), first))


def _with(split: IterSplitExpr, **fields: Any) -> IterSplitExpr:
    return IterSplitExpr(split.source, **{"lower_factor": split.lower_factor, "extent": split.extent, "scale": split.scale, **fields})


def _part_of(a: IterSplitExpr, b: IterSplitExpr, factor: Any) -> bool:
    """Whether a is b multiplied by `factor`."""
    return a.source is b.source and _same(a.lower_factor, b.lower_factor) and _same(a.extent, b.extent) and _same(a.scale, _core.prim_binary("Mul", b.scale, factor))


def _factor_of(parts: list[IterSplitExpr], args: list[IterSplitExpr]) -> Any:
    """The common factor of these parts in the sum; None if they do not occur in it."""
    first = next((a for a in args if parts and a.source is parts[0].source and _same(a.lower_factor, parts[0].lower_factor)), None)
    if first is None or not _divides(parts[0].scale, first.scale):
        return None
    factor = _quotient(first.scale, parts[0].scale)
    return factor if all(any(_part_of(a, p, factor) for a in args) for p in parts) else None


def _scaled(value: IterSumExpr, by: Any) -> IterSumExpr:
    return IterSumExpr([_with(a, scale=_simple(_core.prim_binary("Mul", a.scale, by))) for a in value.args], _simple(_core.prim_binary("Mul", value.base, by)))


def _plus(a: IterSumExpr, b: IterSumExpr) -> IterSumExpr:
    args = list(a.args)
    for new in b.args:
        for i, old in enumerate(args):
            if old.source is new.source and _same(old.lower_factor, new.lower_factor) and _same(old.extent, new.extent):
                args[i] = _with(old, scale=_simple(_core.prim_binary("Add", old.scale, new.scale)))
                break
        else:
            args.append(new)
    return IterSumExpr([x for x in args if not _is(x.scale, 0)], _simple(_core.prim_binary("Add", a.base, b.base)))


def _split(part: IterSplitExpr, by: Any, quotient: bool) -> IterSumExpr:
    """A part divided by, or modulo, a divisor."""
    if _is(by, 1):
        return IterSumExpr([part] if quotient else [], 0)
    scale: Any = 1
    if not _is(part.scale, 1):
        if _divides(by, part.scale):
            return IterSumExpr([_with(part, scale=_quotient(part.scale, by))] if quotient else [], 0)
        if not _divides(part.scale, by):
            raise _NoMap(f"a part with the scale {part.scale} is divided by {by}")
        by, scale = _quotient(by, part.scale), part.scale
    if isinstance(by, int) and isinstance(part.extent, int) and int(part.extent) <= int(by):
        return IterSumExpr([] if quotient else [_with(part, scale=scale)], 0)
    if not _divides(by, part.extent):
        raise _NoMap(f"an iterator of {part.extent} does not divide by {by}")
    if quotient:
        return IterSumExpr([_with(part, lower_factor=_simple(_core.prim_binary("Mul", part.lower_factor, by)), extent=_quotient(part.extent, by), scale=1)], 0)
    return IterSumExpr([_with(part, extent=by, scale=scale)], 0)


def _independent(sums: Sequence[IterSumExpr], whole: bool, marks: Mapping[Any, IterMark]) -> bool:
    """Whether no part of an iterator is used twice and, with `whole`, every part is used."""
    used: dict[int, tuple[IterMark, list[IterSplitExpr]]] = {}
    waiting = [a for s in sums for a in s.args]
    while waiting:
        part = waiting.pop()
        known = used.setdefault(id(part.source), (part.source, []))
        if not known[1] and isinstance(part.source.source, IterSumExpr):
            waiting += part.source.source.args
        known[1].append(part)
    for mark, parts in used.values():
        expected, left = _core.prim_expr(1), list(parts)
        while left:
            following = next((p for p in left if _same(p.lower_factor, expected)), None)
            if following is None and not whole:
                following = next((p for p in left if all(q is p or _divides(p.lower_factor, q.lower_factor) for q in left) and _divides(expected, p.lower_factor)), None)
            if following is None:
                return False
            left.remove(following)
            expected = _simple(_core.prim_binary("Mul", following.lower_factor, following.extent))
        if not (_same(expected, mark.extent) or not whole and _divides(expected, mark.extent)):
            return False
    return not whole or all(id(mark) in used for mark in marks.values())


def detect_iter_map(indices: Sequence[Any], input_iters: Mapping[Any, Any], predicate: Any = True, require_bijective: bool = False, simplify_trivial_iterators: bool = True,
                    check_level: Any = None) -> IterMapResult:
    """The indices as affine sums of independent parts of the iterators (variables with their ranges); empty if they are not.

    `predicate` may bound sums of iterators. Bijective: each point of the iteration space is visited exactly once; otherwise each part of
    an iterator is used at most once."""
    whole = require_bijective or str(getattr(check_level, "name", check_level)).lower() in ("bijective", "0")
    rewriter = _Rewriter(input_iters, simplify_trivial_iterators)
    try:
        rewriter.bound(_core.prim_expr(predicate) if not isinstance(predicate, EqualOp) else predicate)
        sums = [rewriter.fuse(rewriter.rewrite(_core.prim_expr(i))) for i in indices]
    except _NoMap as why:
        out = IterMapResult()
        out.errors = [str(why)]
        return out
    if not _independent(sums, whole, rewriter.marks):
        out = IterMapResult()
        out.errors = ["the indices depend on each other, or leave out values"]
        return out
    return IterMapResult(sums)


def normalize_iter_map_to_expr(expr: Any) -> PrimExpr:
    """An iterator map expression as an ordinary expression."""
    if isinstance(expr, IterSumExpr):
        out: Any = 0
        for part in expr.args:
            out = _core.prim_binary("Add", out, normalize_iter_map_to_expr(part))
        return _core.prim_expr(_core.prim_binary("Add", out, expr.base))
    if not isinstance(expr, IterSplitExpr):
        return expr
    source = normalize_iter_map_to_expr(expr.source.source) if isinstance(expr.source.source, IterMapExpr) else expr.source.source
    if not _same(_core.prim_binary("Mul", expr.lower_factor, expr.extent), expr.source.extent):
        source = _core.prim_binary("FloorMod", source, _simple(_core.prim_binary("Mul", expr.lower_factor, expr.extent)))
    if not _is(expr.lower_factor, 1):
        source = _core.prim_binary("FloorDiv", source, expr.lower_factor)
    return source if _is(expr.scale, 1) else _core.prim_binary("Mul", source, expr.scale)


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[Any]) -> dict[Any, Any]:
    """The iterators' variables in terms of the outputs of a bijective map. ValueError: an index is a sum of several parts."""
    values: dict[int, Any] = {}
    marks: list[IterMark] = []

    def give(part: IterSplitExpr, value: Any) -> None:
        if id(part.source) not in values:
            marks.append(part.source)
        scaled = value if _is(part.lower_factor, 1) else _core.prim_binary("Mul", value, part.lower_factor)
        values[id(part.source)] = _core.prim_binary("Add", values[id(part.source)], scaled) if id(part.source) in values else scaled

    def spread(sum_: IterSumExpr, value: Any, top: bool) -> None:
        value = value if _is(sum_.base, 0) else _core.prim_binary("Sub", value, sum_.base)
        for place, part in enumerate(sum_.args):
            own = value if _is(part.scale, 1) else _core.prim_binary("FloorDiv", value, part.scale)
            give(part, own if place == 0 else _core.prim_binary("FloorMod", own, part.extent))
    for sum_, output in zip(iter_map, outputs):
        if len(sum_.args) > 1:
            raise ValueError("an inverse is of sums of one part, as detect_iter_map gives them")
        spread(sum_, output, True)
    found: dict[Any, Any] = {}
    while marks:
        # An iterator can be inverted once all of its parts have been.
        mark = next(m for m in marks if not any(m is p.source for other in marks if isinstance(other.source, IterSumExpr) for p in other.source.args))
        marks.remove(mark)
        value = values.pop(id(mark))
        if isinstance(mark.source, IterSumExpr):
            spread(mark.source, value, False)
        else:
            var, least = (mark.source, 0) if isinstance(mark.source, Var) else _moved(mark.source)
            found[var] = value if _is(least, 0) else _core.prim_binary("Add", value, least)
    return found


def _moved(source: Any) -> tuple[Any, Any]:
    """A variable and its minimum, from an expression `variable - minimum`."""
    variables: list[Any] = []
    from ..tir.stmt_functor import post_order_visit
    post_order_visit(source, lambda e: variables.append(e) if isinstance(e, Var) else None)
    linear = _linear(source, variables[:1]) or [1, 0]
    return variables[0], _simple(_core.prim_binary("Mul", linear[1], -1))


def subspace_divide(bindings: Sequence[Any], input_iters: Mapping[Any, Any], sub_iters: Sequence[Any], predicate: Any = True, require_bijective: bool = False) -> list[Any]:
    """Each binding as outer * inner's extent + inner, where only the inner part uses the sub-iterators: [[outer, inner], ...], and last
    a pair of marks in the place of the classic predicates, always trivial. Empty if there is no such division."""
    sums = detect_iter_map(bindings, input_iters, predicate, require_bijective)
    if not sums:
        return []

    def inner(part: IterSplitExpr) -> bool | None:
        source = part.source.source
        if isinstance(source, IterSumExpr):
            kinds = {inner(a) for a in source.args}
            return kinds.pop() if len(kinds) == 1 else None
        return any(_core.prim_uses(source, v) for v in sub_iters)
    out: list[Any] = []
    for sum_ in sums:
        args = sum_.args
        if len(args) == 1 and inner(args[0]) is None:
            part = args[0]
            if not (_is(part.lower_factor, 1) and _same(part.extent, part.source.extent) and _is(part.scale, 1)):
                return []
            args = part.source.source.args
        kinds = [inner(a) for a in args]
        if None in kinds or kinds != sorted(kinds):  # type: ignore[type-var]
            return []
        below, above = [a for a, k in zip(args, kinds) if k], [a for a, k in zip(args, kinds) if not k]
        extent: Any = 1
        for a in below:
            extent = _core.prim_binary("Mul", extent, a.extent)
        outer = IterSumExpr([_with(a, scale=_quotient(a.scale, extent)) for a in above], sum_.base if not below else 0)
        pair = []
        for one in (outer, IterSumExpr(below, sum_.base if below else 0)):
            total: Any = 1
            for a in one.args:
                total = _simple(_core.prim_binary("Mul", total, a.extent))
            pair.append(IterSumExpr([IterSplitExpr(IterMark(IterSumExpr(one.args, 0), total))], one.base) if len(one.args) > 1 else one)
        out.append(pair)
    out.append([IterMark(IterSumExpr([], 0), 1), IterMark(IterSumExpr([], 0), 1)])
    return out


__all__ = ["IterMapExpr", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map", "inverse_affine_iter_map", "normalize_iter_map_to_expr", "subspace_divide"]
