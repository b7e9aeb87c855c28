# SPDX-License-Identifier: Apache-2.0
"""Bounds that conditions put on a variable, and the regions that loops access."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ..tir.expr import EqualOp, Not, Var
from ..tir.range import Range
from . import Analyzer, conditions, detect_linear_equation
from .int_set import IntervalSet, is_inf, neg_inf, pos_inf, set_of

_OPPOSITE = {"LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT"}
_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ"}


def _normal(condition: Any) -> tuple[Any, str, Any] | None:
    """The comparison as (left, "LE", "GE" or "EQ", right)."""
    if isinstance(condition, EqualOp):
        condition = condition.asobject()
    if isinstance(condition, Not):
        inner = condition._fields[0]
        if getattr(inner, "_kind", "") not in _OPPOSITE:
            return None
        kind, (a, b) = _OPPOSITE[inner._kind], inner._fields
    elif getattr(condition, "_kind", "") in (*_OPPOSITE, "EQ"):
        kind, (a, b) = condition._kind, condition._fields
    else:
        return None
    if kind == "LT":
        return a, "LE", _core.prim_binary("Sub", b, 1)
    return (a, "GE", _core.prim_binary("Add", b, 1)) if kind == "GT" else (a, kind, b)


def _uses(expr: Any, var: Any) -> bool:
    return isinstance(expr, _core.PrimExpr) and _core.prim_uses(expr, var)


class _Deduction:
    """Solves expr <= target (or >=, ==) for a variable, one operation at a time."""

    def __init__(self, var: Any, expr: Any, kind: str, target: Any, hints: Mapping[Any, Any], relaxed: Mapping[Any, Any]):
        self.var, self.expr, self.kind, self.target = var, expr, kind, target
        self.hints = {**hints, **relaxed}
        self.analyzer = Analyzer()

    def solved(self) -> bool:
        while not (isinstance(self.expr, Var) and self.expr.same_as(self.var)):
            step = getattr(self, f"_{getattr(self.expr, '_kind', '')}", None)
            if step is None:
                return False
            a, b = self.expr._fields
            inside = _uses(a, self.var)
            if inside == _uses(b, self.var) or not step(a, b, inside):
                return False
        return True

    def _turn(self) -> None:
        self.kind = _TURNED[self.kind]

    def _Add(self, a: Any, b: Any, left: bool) -> bool:
        self.expr, other = (a, b) if left else (b, a)
        self.target = _core.prim_binary("Sub", self.target, other)
        return True

    def _Sub(self, a: Any, b: Any, left: bool) -> bool:
        if left:
            self.expr, self.target = a, _core.prim_binary("Add", self.target, b)
        else:
            self.expr, self.target = b, _core.prim_binary("Sub", a, self.target)
            self._turn()
        return True

    def _sign(self, value: Any) -> int:
        made = set_of(value, self.hints, self.analyzer)
        if not is_inf(made.min_value) and self.analyzer.const_int_bound(made.min_value).min_value > 0:
            return 1
        return -1 if not is_inf(made.max_value) and self.analyzer.const_int_bound(made.max_value).max_value < 0 else 0

    def _Mul(self, a: Any, b: Any, left: bool) -> bool:
        self.expr, factor = (a, b) if left else (b, a)
        sign = self._sign(factor)
        if sign == 0:
            return False
        if sign < 0:
            self._turn()
        whole = self.analyzer.can_prove(_core.prim_binary("EQ", _core.prim_binary("FloorMod", self.target, factor), 0))
        self.target = _core.prim_binary("FloorDiv", self.target, factor)
        if not whole and self.kind == "EQ":
            return False
        if not whole and self.kind == "GE":
            self.target = _core.prim_binary("Add", self.target, 1)
        return True

    def _FloorDiv(self, a: Any, b: Any, left: bool) -> bool:
        if not left or self._sign(b) <= 0 or self.kind == "EQ":
            return False
        self.expr = a
        if self.kind == "GE":
            self.target = _core.prim_binary("Mul", self.target, b)
        else:
            self.target = _core.prim_binary("Sub", _core.prim_binary("Mul", _core.prim_binary("Add", self.target, 1), b), 1)
        return True


def deduce_bound(var: Any, cond: Any, hint_map: Mapping[Any, Any], relax_map: Mapping[Any, Any]) -> IntervalSet:
    """The interval of `var` in which the condition holds: for some values of the variables in hint_map, whose signs are taken into
    account, and for all values of those in relax_map. Nothing if the condition does not bound it."""
    var, nothing = getattr(var, "var", var), IntervalSet(pos_inf(), neg_inf())
    parts = _normal(cond)
    if parts is None:
        return nothing
    left, kind, right = parts
    if _uses(right, var):
        if _uses(left, var):
            left, right = _core.prim_binary("Sub", left, right), 0
        else:
            left, kind, right = right, _TURNED[kind], left
    if not _uses(left, var):
        return nothing
    if relax_map:
        x, y = set_of(left, relax_map, None), set_of(right, relax_map, None)
        if kind == "EQ" and not (x.is_single_point() and y.is_single_point()):
            return nothing
        left, right = (x.min_value, y.max_value) if kind == "GE" else (x.max_value, y.min_value)
        if is_inf(left) or is_inf(right):
            return nothing
    work = _Deduction(var, left, kind, right, hint_map, relax_map)
    if not work.solved():
        return nothing
    target = work.analyzer.simplify(work.target)
    if work.kind == "EQ":
        return IntervalSet(target, target)
    return IntervalSet(target, pos_inf()) if work.kind == "GE" else IntervalSet(neg_inf(), target)


def detect_clip_bound(expr: Any, var_list: Sequence[Any]) -> list[Any]:
    """Inclusive [min, max] of each variable under the condition, None for an open end; [] unless the condition is a conjunction of
    bounds of single variables."""
    variables = [getattr(v, "var", v) for v in var_list]
    ends: list[Any] = [None] * (2 * len(variables))
    for part in conditions(expr):
        if not _bound_by(part, variables, ends):
            return []
    return ends


def _bound_by(part: Any, variables: list[Any], ends: list[Any]) -> bool:
    parts = _normal(part)
    if parts is None:
        return False
    left, kind, right = parts
    for minimum in (left,):
        if getattr(minimum, "_kind", "") in ("Min", "Max") and (kind == "GE") == (minimum._kind == "Min"):
            return all(_bound_by(_core.prim_binary(kind, side, right), variables, ends) for side in minimum._fields)
    form = detect_linear_equation(_core.prim_binary("Sub", left, right), variables)
    if not form:
        return False
    used = [n for n, c in enumerate(form[:-1]) if not (isinstance(c, int) and int(c) == 0)]
    if len(used) != 1 or kind == "EQ" or not isinstance(form[used[0]], int) or abs(int(form[used[0]])) != 1:
        return False
    place, sign = used[0], int(form[used[0]])
    bound = _core.prim_simplify(_core.prim_binary("Sub", 0, form[-1]) if sign > 0 else form[-1], [])
    at = 2 * place + (0 if (kind == "GE") == (sign > 0) else 1)
    known = ends[at]
    ends[at] = bound if known is None else _core.prim_simplify(_core.prim_binary("Min" if at % 2 else "Max", known, bound), [])
    return True


def _region(region: Sequence[Range], var_dom: Mapping[Any, Any], predicate: Any) -> list[IntervalSet] | None:
    domains = {getattr(k, "var", k): v for k, v in var_dom.items()}
    out = []
    for r in region:
        low = set_of(r.min, domains, None)
        last = set_of(_core.prim_binary("Sub", _core.prim_binary("Add", r.min, r.extent), 1), domains, None)
        out.append(IntervalSet(low.min_value, last.max_value))
    return out


def estimate_region_upper_bound(region: Sequence[Range], var_dom: Mapping[Any, Any], predicate: Any) -> list[IntervalSet] | None:
    """Intervals that cover every element that a region accesses while its variables take all values of their ranges."""
    return _region(region, var_dom, predicate)


def estimate_region_lower_bound(region: Sequence[Range], var_dom: Mapping[Any, Any], predicate: Any) -> list[IntervalSet] | None:
    """Intervals in which every element is accessed; None if that cannot be proved because an index skips elements or depends on a
    condition."""
    made = _region(region, var_dom, predicate)
    if made is None or not (isinstance(predicate, int) and int(predicate) == 1):
        return None
    variables = [getattr(k, "var", k) for k in var_dom]
    seen: set[int] = set()
    for r in region:
        form = detect_linear_equation(r.min, variables)
        if not form or not isinstance(r.extent, int):
            return None
        reach = int(r.extent)
        steps = sorted((abs(int(c)), n) for n, c in enumerate(form[:-1]) if isinstance(c, int) and int(c) != 0)
        if any(not isinstance(c, int) for c in form[:-1]) or seen & {n for _, n in steps}:
            return None
        for step, n in steps:
            seen.add(n)
            extent = list(var_dom.values())[n].extent
            if step > reach or not isinstance(extent, int):
                return None
            reach += step * (int(extent) - 1)
    return made


estimate_region_strict_bound = estimate_region_lower_bound

__all__ = ["deduce_bound", "detect_clip_bound", "estimate_region_lower_bound", "estimate_region_strict_bound", "estimate_region_upper_bound"]
