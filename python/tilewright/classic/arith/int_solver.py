# SPDX-License-Identifier: Apache-2.0
"""Systems of linear equations and inequalities over integers."""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ..tir.expr import EqualOp, IntImm, Var
from ..tir.range import Range
from ..tir.stmt_functor import post_order_visit, substitute
from . import Analyzer, _linear, conditions

_FALSE = IntImm("bool", 0)
_FAR = 2**30  # bounds beyond it only restate the dtype's range: the variable counts as unbounded


class IntConstraints:
    """Variables, their ranges, and the relations between them."""

    def __init__(self, variables: Any = None, ranges: Any = None, relations: Any = None):
        self.variables, self.ranges, self.relations = list(variables or []), dict(ranges or {}), list(relations or [])


class IntConstraintsTransform:
    """Constraints, equivalent constraints on new variables, and the maps between old and new variables."""

    def __init__(self, src: IntConstraints, dst: IntConstraints, src_to_dst: Mapping[Any, Any], dst_to_src: Mapping[Any, Any]):
        self.src, self.dst, self.src_to_dst, self.dst_to_src = src, dst, dict(src_to_dst), dict(dst_to_src)


class IntGroupBounds:
    """Bounds of coef * variable: above all of `lower`, below all of `upper`, equal to each of `equal`."""

    def __init__(self, coef: Any, lower: Sequence[Any], equal: Sequence[Any], upper: Sequence[Any]):
        self.coef, self.lower, self.equal, self.upper = _core.prim_expr(coef), list(lower), list(equal), list(upper)

    @staticmethod
    def from_range(rng: Range) -> "IntGroupBounds":
        if _number(rng.extent) == 1:
            return IntGroupBounds(1, [], [rng.min], [])
        return IntGroupBounds(1, [rng.min], [], [_simple(rng.min + rng.extent - 1)])

    def find_best_range(self, ranges: Mapping[Any, Range] | None = None) -> Range | None:
        """The shortest range of the variable among those that its lower and upper bounds give, given the ranges of the other variables."""
        analyzer = _knowing(ranges or {})
        best: tuple[Any, Any] | None = None
        for low, high in itertools.product(self.lower + self.equal, self.upper + self.equal):
            spread = analyzer.simplify(high - low)
            greatest = analyzer.const_int_bound(spread).max_value
            if greatest >= _FAR:
                if any(_core.prim_uses(spread, v) for v in ranges or {}) or best:
                    continue
                extent = _simple(_core.prim_binary("FloorDiv", spread, self.coef) + 1)
            else:
                extent = IntImm("int32", greatest // int(self.coef) + 1)
            if best is None or _number(extent) is not None and (_number(best[1]) is None or int(extent) < int(best[1])):
                best = low, extent
        if best is None:
            return None
        least = best[0] if int(self.coef) == 1 else _core.prim_binary("FloorDiv", best[0] + (int(self.coef) - 1), self.coef)
        return Range.from_min_extent(_simple(least), best[1])


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) else None


def _simple(value: Any) -> Any:
    return Analyzer().simplify(value)


def _knowing(ranges: Mapping[Any, Range]) -> Analyzer:
    analyzer = Analyzer()
    for v, r in ranges.items():
        bound = Analyzer()
        low, high = bound.const_int_bound(r.min), bound.const_int_bound(r.min + r.extent)
        if low.min_value > -_FAR and high.max_value < _FAR:
            analyzer.bind(v, Range(low.min_value, high.max_value))
    return analyzer


def _variables_of(relations: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for relation in relations:
        post_order_visit(relation, lambda e: found.append(e) if isinstance(e, Var) and not any(e.same_as(v) for v in found) else None)
    return found


def _taken(relations: Any, variables: Any, ranges: Any) -> IntConstraints:
    if isinstance(relations, IntConstraints):
        return relations
    listed = list(relations) if isinstance(relations, (list, tuple)) else [relations]
    listed = [r.asobject() if isinstance(r, EqualOp) else r for r in listed]
    given = [] if variables is None else list(variables) if isinstance(variables, (list, tuple)) else [variables]
    return IntConstraints(given or _variables_of(listed), ranges, listed)


def _unsolvable(system: IntConstraints) -> IntConstraintsTransform:
    return IntConstraintsTransform(system, IntConstraints([], {}, [_FALSE]), {}, {})


def _put(expr: Any, values: Mapping[Any, Any]) -> Any:
    return _simple(substitute(expr, values)) if isinstance(expr, _core.PrimExpr) else expr


def _sum(factors: Sequence[int], values: Sequence[Any]) -> Any:
    total: Any = IntImm("int32", 0)
    for factor, value in zip(factors, values):
        if factor:
            total = _core.prim_binary("Add", total, _core.prim_binary("Mul", value, factor))
    return _simple(total)


class _Columns:
    """A matrix brought to column echelon form by integer column operations, with the change of variables that this makes: old = made *
    new, new = back * old."""

    def __init__(self, rows: list[list[int]], count: int):
        self.rows, self.count = rows, count
        self.made = [[int(i == j) for j in range(count)] for i in range(count)]
        self.back = [[int(i == j) for j in range(count)] for i in range(count)]

    def add(self, to: int, source: int, factor: int) -> None:
        for row in (*self.rows, *self.made):
            row[to] += factor * row[source]
        self.back[source] = [a - factor * b for a, b in zip(self.back[source], self.back[to])]

    def swap(self, a: int, b: int) -> None:
        for row in (*self.rows, *self.made):
            row[a], row[b] = row[b], row[a]
        self.back[a], self.back[b] = self.back[b], self.back[a]

    def turn(self, column: int) -> None:
        for row in (*self.rows, *self.made):
            row[column] = -row[column]
        self.back[column] = [-x for x in self.back[column]]

    def clear(self, row: list[int], first: int) -> bool:
        """Eliminates a row from the given column on until at most one entry is non-zero; False if none is."""
        while True:
            filled = [j for j in range(first, self.count) if row[j]]
            if not filled:
                return False
            least = min(filled, key=lambda j: abs(row[j]))
            if least != first:
                self.swap(least, first)
            rest = [j for j in range(first + 1, self.count) if row[j]]
            if not rest:
                return True
            for j in rest:
                self.add(j, first, -(row[j] // row[first]))


def solve_linear_equations(equations: Any, variables: Any = None, ranges: Any = None) -> IntConstraintsTransform:
    """All integer solutions, over as few new variables as possible: `src_to_dst` expresses the old variables. The ranges of the old
    variables become ranges and relations of `dst`; if there is no solution, its relation is False."""
    system = _taken(equations, variables, ranges)
    count = len(system.variables)
    rows, values, kept = [], [], []
    for relation in system.relations:
        if isinstance(relation, int):
            if not relation:
                return _unsolvable(system)
            continue
        linear = _linear(_core.prim_binary("Sub", *relation._fields), system.variables) if relation._kind == "EQ" else None
        factors = [_number(_simple(c)) for c in linear[:-1]] if linear else [None]
        if linear is None or None in factors:
            kept.append(relation)
        else:
            rows.append([int(f) for f in factors if f is not None])
            values.append(_simple(_core.prim_binary("Mul", linear[-1], -1)))
    columns = _Columns(rows, count)
    solved: list[Any] = []
    for row, value in zip(rows, values):
        has = columns.clear(row, len(solved))
        left = _simple(_core.prim_binary("Sub", value, _sum(row, solved)))
        by = row[len(solved)] if has else 0
        if not has or _number(left) is not None and int(left) % by:
            if _number(left) != 0 or has:
                if _number(left) is not None:
                    return _unsolvable(system)
                kept.append(_core.prim_binary("EQ", left, 0))
            continue
        if by < 0:
            by, left = -by, _simple(_core.prim_binary("Mul", left, -1))
        if by != 1 and _number(left) is None:
            kept.append(_core.prim_binary("EQ", _core.prim_binary("FloorMod", left, by), 0))
        solved.append(left if by == 1 else _simple(_core.prim_binary("FloorDiv", left, by)))
    free = range(len(solved), count)
    for j in free:
        first = next((row[j] for row in columns.made if row[j]), 1)
        if first < 0:
            columns.turn(j)
    new = [Var(f"n{k}", system.variables[0].dtype) for k in range(len(free))]
    to_new = {v: _sum(row, [*solved, *new]) for v, row in zip(system.variables, columns.made)}
    to_old = {n: _sum(columns.back[j], system.variables) for n, j in zip(new, free)}
    found = {}
    known = _knowing(system.ranges)
    for n in new:
        bound = known.const_int_bound(to_old[n])
        if bound.min_value > -_FAR and bound.max_value < _FAR:
            found[n] = Range(bound.min_value, bound.max_value + 1)
    relations = [_put(r, to_new) for r in kept]
    for v, r in system.ranges.items():
        value = to_new.get(v, v)
        relations += [_core.prim_binary("LE", r.min, value), _core.prim_binary("LT", value, r.min + r.extent)]
    held = _left(relations, found)
    return _unsolvable(system) if held is None else IntConstraintsTransform(system, IntConstraints(new, found, held), to_new, to_old)


def _left(relations: Sequence[Any], ranges: Mapping[Any, Range]) -> list[Any] | None:
    """The condition without what the ranges imply; None if it cannot hold."""
    analyzer, out = _knowing(ranges), []
    for relation in relations:
        known = analyzer.simplify(relation)
        if _number(known) == 0:
            return None
        if _number(known) is None:
            out.append(relation if not isinstance(relation, EqualOp) else relation.asobject())
    return out


class _Inequalities:
    """Fourier-Motzkin elimination: each variable's bounds in terms of later variables only, and the remaining relations."""

    def __init__(self, system: IntConstraints):
        self.bounds: dict[Any, IntGroupBounds] = {}
        self.others: list[Any] = []
        current: list[Any] = []  # expressions that must be <= 0
        for relation in [part for r in system.relations for part in conditions(r)]:
            self.take(relation, current)
        for place, v in enumerate(system.variables):
            if v in system.ranges:
                r = system.ranges[v]
                self.add(current, r.min - v)
                self.add(current, v - (r.min + r.extent - 1))
            above, below, following = [], [], []
            for e in current:
                linear = _linear(_core.prim_expr(e), [v])
                factor = _number(_simple(linear[0])) if linear else None
                if linear is None or factor is None:
                    self.others.append(_core.prim_binary("LE", e, 0))
                elif factor == 0:
                    self.add(following, e)
                else:
                    (above if factor > 0 else below).append((abs(factor), linear[1]))
            for (p, high), (q, low) in itertools.product(above, below):
                common = p * q // math.gcd(p, q)
                self.add(following, _core.prim_binary("Add", _core.prim_binary("Mul", high, common // p), _core.prim_binary("Mul", low, common // q)))
            coef = math.lcm(*[f for f, _ in above + below]) if above or below else 1
            lower = [_simple(_core.prim_binary("Mul", e, coef // f)) for f, e in below]
            upper = [_simple(_core.prim_binary("Mul", e, -(coef // f))) for f, e in above]
            known = _knowing({w: r for w, r in system.ranges.items() if not w.same_as(v)})
            lower = [a for i, a in enumerate(lower) if not any(j != i and known.can_prove(b >= a) and (j < i or not known.can_prove(a >= b)) for j, b in enumerate(lower))]
            upper = [a for i, a in enumerate(upper) if not any(j != i and known.can_prove(b <= a) and (j < i or not known.can_prove(a <= b)) for j, b in enumerate(upper))]
            equal = [a for a in lower if any(_same(a, b) for b in upper)]
            self.bounds[v] = IntGroupBounds(coef, [a for a in lower if not any(_same(a, b) for b in equal)], equal, [a for a in upper if not any(_same(a, b) for b in equal)])
            current = following
        self.impossible = any((_number(_simple(e)) or 0) > 0 for e in current)
        self.others += [_core.prim_binary("LE", e, 0) for e in current if _number(_simple(e)) is None]

    def take(self, relation: Any, current: list[Any]) -> None:
        if isinstance(relation, EqualOp):
            relation = relation.asobject()
        if isinstance(relation, int):
            self.add(current, 0 if relation else 1)
            return
        kind, (a, b) = relation._kind, (relation._fields * 2)[:2]
        if kind in ("GT", "GE"):
            a, b, kind = b, a, {"GT": "LT", "GE": "LE"}[kind]
        if kind not in ("LT", "LE", "EQ"):
            self.others.append(relation)
            return
        self.add(current, _core.prim_binary("Sub", a, b) + (1 if kind == "LT" else 0))
        if kind == "EQ":
            self.add(current, _core.prim_binary("Sub", b, a))

    @staticmethod
    def add(current: list[Any], expr: Any) -> None:
        """Adds an inequality unless another one implies it; drops those that it implies."""
        expr = _reduced(_simple(expr))
        if _number(expr) is not None and int(expr) <= 0:
            return
        for i, old in enumerate(current):
            apart = _number(_simple(_core.prim_binary("Sub", expr, old)))
            if apart is not None:
                current[i] = expr if apart > 0 else old
                return
        current.append(expr)

    def conditions(self) -> list[Any]:
        out = []
        for v, b in self.bounds.items():
            left = v if int(b.coef) == 1 else v * b.coef
            out += [_core.prim_binary(kind, left, e) for kind, es in (("EQ", b.equal), ("GE", b.lower), ("LE", b.upper)) for e in es]
        return out + self.others


def _reduced(expr: Any) -> Any:
    """An equivalent inequality <= 0: divided by the greatest common divisor of the coefficients, the constant rounded up."""
    variables = _variables_of([expr]) if isinstance(expr, _core.PrimExpr) else []
    linear = [_number(_simple(c)) for c in _linear(expr, variables) or [None]] if variables else [None]
    if None in linear or (by := math.gcd(*linear[:-1])) < 2:  # type: ignore[arg-type]
        return expr
    return _sum([*[int(c) // by for c in linear[:-1]], 1], [*variables, -(-int(linear[-1]) // by)])  # type: ignore[arg-type]


def _same(a: Any, b: Any) -> bool:
    return _number(_simple(_core.prim_binary("Sub", a, b))) == 0


def solve_inequalities_as_condition(variables: Any, ranges: Any = None, relations: Any = None) -> list[Any]:
    """The solution as conditions on one variable after the other."""
    system = variables if isinstance(variables, IntConstraints) else _taken(relations, variables, ranges)
    return _Inequalities(system).conditions()


def solve_linear_inequalities(equations: Any, variables: Any = None, ranges: Any = None, deskew_range: bool = False) -> Any:
    """IntConstraints: the ranges that the relations imply, and the relations that ranges cannot express. With deskew_range an
    IntConstraintsTransform to variables whose ranges start at 0. Without a solution the relation is False."""
    system = _taken(equations, variables, ranges)
    solved = _Inequalities(system)
    if solved.impossible:
        return _unsolvable(system) if deskew_range else IntConstraints([], {}, [_FALSE])
    return _deskewed(system, solved) if deskew_range else _ranged(system, solved)


def _ranged(system: IntConstraints, solved: _Inequalities) -> IntConstraints:
    found: dict[Any, Range] = {v: r for v, r in system.ranges.items() if not any(v.same_as(w) for w in system.variables)}
    fixed: dict[Any, Any] = {}
    for v in reversed(system.variables):
        own = solved.bounds[v]
        best = IntGroupBounds(own.coef, *[[_put(e, fixed) for e in part] for part in (own.lower, own.equal, own.upper)]).find_best_range(found)
        if best is None:
            continue
        extent = _number(best.extent)
        if extent is not None and extent <= 0:
            return IntConstraints([], {}, [_FALSE])
        found[v] = best
        if extent == 1:
            fixed[v] = best.min
    held = _left([_put(r, fixed) for r in solved.conditions()], found)
    return IntConstraints([], {}, [_FALSE]) if held is None else IntConstraints(system.variables, found, held)


def _deskewed(system: IntConstraints, solved: _Inequalities) -> IntConstraintsTransform:
    to_new: dict[Any, Any] = {}
    to_old: dict[Any, Any] = {}
    new: list[Any] = []
    found: dict[Any, Range] = {}
    for v in reversed(system.variables):
        own = solved.bounds[v]
        moved = IntGroupBounds(own.coef, *[[_put(e, to_new) for e in part] for part in (own.lower, own.equal, own.upper)])
        best = moved.find_best_range({**system.ranges, **found})
        extent = _number(best.extent) if best is not None else None
        if extent is not None and extent <= 0:
            return _unsolvable(system)
        if best is not None and extent == 1:
            to_new[v] = best.min
            continue
        shifted = Var(f"{v.name}.shifted", v.dtype)
        new.insert(0, shifted)
        if best is None:
            to_new[v], to_old[shifted] = shifted, v
            continue
        to_new[v] = _simple(shifted + best.min)
        to_old[shifted] = _put(_core.prim_binary("Sub", v, _put(best.min, to_old)), {})
        found[shifted] = Range.from_min_extent(IntImm(v.dtype, 0), best.extent)
    relations = [_normal(_put(r, to_new)) for r in solved.conditions()]
    held = _left(relations, {**{v: r for v, r in system.ranges.items() if v not in to_new}, **found})
    return _unsolvable(system) if held is None else IntConstraintsTransform(system, IntConstraints(new, found, held), to_new, to_old)


def _normal(relation: Any) -> Any:
    """The inequality with its constant on the right side."""
    if isinstance(relation, int) or relation._kind not in ("LE", "GE", "EQ"):
        return relation
    kind, (a, b) = relation._kind, relation._fields
    if kind == "GE":
        a, b, kind = b, a, "LE"
    apart = _simple(_core.prim_binary("Sub", a, b))
    variables = _variables_of([apart]) if isinstance(apart, _core.PrimExpr) else []
    linear = _linear(apart, variables) if variables else None
    if linear is None or _number(_simple(linear[-1])) is None:
        return relation
    return _core.prim_binary(kind, _simple(_core.prim_binary("Sub", apart, linear[-1])), -int(_simple(linear[-1])))


__all__ = ["IntConstraints", "IntConstraintsTransform", "IntGroupBounds", "solve_inequalities_as_condition", "solve_linear_equations", "solve_linear_inequalities"]
