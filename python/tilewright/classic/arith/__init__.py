# SPDX-License-Identifier: Apache-2.0
"""Analysis of integer expressions: simplification, bounds, linear forms."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ... import _core
from ..tir.expr import And, EqualOp, IntImm, Var
from ..tir.range import Range
from .int_set import IntervalSet, IntSet, ModularSet, PresburgerSet, set_of

_NEGATIVE, _POSITIVE = -2**63, 2**63 - 1


class ConstIntBound:
    """Inclusive bounds of an integer expression."""
    POS_INF, NEG_INF = 2**63 - 1, -(2**63 - 1)

    def __init__(self, min_value: int, max_value: int):
        self.min_value, self.max_value = max(min_value, self.NEG_INF), min(max_value, self.POS_INF)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstIntBound) and (self.min_value, self.max_value) == (other.min_value, other.max_value)

    def __hash__(self) -> int:
        return hash((self.min_value, self.max_value))

    def __repr__(self) -> str:
        return f"ConstIntBound[{self.min_value}, {self.max_value}]"


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) else None


class Analyzer:
    """Simplifies and bounds expressions, given the ranges of their variables."""

    def __init__(self) -> None:
        self._ranges: dict[Any, tuple[int, int]] = {}
        self._values: dict[Any, Any] = {}
        self._multiples: dict[Any, tuple[int, int]] = {}
        self._vars: dict[Any, Any] = {}

    def _known(self) -> list[tuple[Any, int, int]]:
        return [(self._vars[key], low, high) for key, (low, high) in self._ranges.items()]

    def _expr(self, expr: Any) -> Any:
        expr = _core.prim_expr(expr.var if hasattr(expr, "iter_type") else expr)
        return _core.prim_substitute(expr, {self._vars[k]: v for k, v in self._values.items()}) if self._values else expr

    def bind(self, var: Any, expr: Any) -> None:
        """Binds a variable to an expression or to a Range with constant ends."""
        var = getattr(var, "var", var)
        key = hash(var)
        self._vars[key] = var
        if not isinstance(expr, Range):
            self._values[key] = expr
            return
        first, extent = self.const_int_bound(expr.min), self.const_int_bound(expr.extent)
        self._ranges[key] = (first.min_value, min(first.max_value + extent.max_value - 1, _POSITIVE))

    def update(self, var: Any, info: ConstIntBound, override: bool = False) -> None:
        """Sets a variable's bound. ValueError if a different bound is set already and override is false."""
        if not isinstance(info, ConstIntBound):
            raise TypeError(f"Do not know how to handle type {type(info)}")
        var = getattr(var, "var", var)
        key = hash(var)
        if key in self._ranges and self._ranges[key] != (info.min_value, info.max_value) and not override:
            raise ValueError(f"the variable '{var}' has another bound already; give override=True")
        self._vars[key] = var
        self._ranges[key] = (info.min_value, info.max_value)

    def simplify(self, expr: Any, steps: int = 2) -> Any:
        return _core.prim_simplify(self._expr(expr), self._known())

    canonical_simplify = simplify

    def rewrite_simplify(self, expr: Any) -> Any:
        """As simplify, but what is only subtracted is 0 - x, no product with -1."""
        out = self.simplify(expr)
        fields = out._fields if getattr(out, "_kind", "") == "Mul" else (None, 0)
        return _core.prim_node("Sub", IntImm(out.dtype, 0), fields[0]) if _number(fields[1]) == -1 else out

    def const_int_bound(self, expr: Any) -> ConstIntBound:
        return ConstIntBound(*_core.prim_bounds(self._expr(expr), self._known()))

    def modular_set(self, expr: Any) -> ModularSet:
        """The value as coeff * k + base for some integer k."""
        return ModularSet(*_core.prim_modular(self._expr(expr), [(self._vars[k], *v) for k, v in self._multiples.items()]))

    def int_set(self, expr: Any, dom_map: Any = None) -> IntSet:
        """The set of values of the expression, given sets of its variables (`{x: IntervalSet(0, 10)}`); other variables stay symbolic."""
        return set_of(self._expr(expr), dom_map or {}, self)

    def can_prove(self, condition: Any) -> bool:
        return _number(self.simplify(condition)) == 1

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        return _number(self.simplify(_core.prim_binary("Sub", lhs, rhs))) == 0

    @contextlib.contextmanager
    def _assumed(self, constraint: Any) -> Iterator[None]:
        before, multiples = dict(self._ranges), dict(self._multiples)
        for part in _conjuncts(constraint):
            self._assume(part)
        try:
            yield
        finally:
            self._ranges, self._multiples = before, multiples

    def constraint_scope(self, constraint: Any) -> Any:
        """`with analyzer.constraint_scope(x > 3):` the constraint holds inside the scope, in addition to what is known already."""
        return self._assumed(constraint)

    def _assume(self, part: Any) -> None:
        if isinstance(part, EqualOp):
            part = part.asobject()
        fields = part._fields if isinstance(part, _core.PrimExpr) else ()
        if len(fields) != 2:
            return
        kind, (a, b) = part._kind, fields
        if isinstance(b, Var) and _number(a) is not None:
            a, b, kind = b, a, {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}.get(kind, kind)
        number = _number(b)
        if kind == "EQ" and getattr(a, "_kind", "") == "FloorMod" and isinstance(a._fields[0], Var) and (_number(a._fields[1]) or 0) > 0 and number is not None:
            var, step = a._fields[0], int(a._fields[1])
            self._vars[hash(var)] = var
            self._multiples[hash(var)] = _core.prim_modular_intersect(*self._multiples.get(hash(var), (1, 0)), step, number % step)
        if not isinstance(a, Var) or number is None:
            return
        low, high = self._ranges.get(hash(a), (_NEGATIVE, _POSITIVE))
        limits = {"LT": (low, number - 1), "LE": (low, number), "GT": (number + 1, high), "GE": (number, high), "EQ": (number, number)}
        if kind in limits:
            self._vars[hash(a)] = a
            self._ranges[hash(a)] = (max(low, limits[kind][0]), min(high, limits[kind][1]))


def _conjuncts(condition: Any) -> list[Any]:
    return [p for side in condition._fields for p in _conjuncts(side)] if isinstance(condition, And) else [condition]


def conditions(condition: Any) -> list[Any]:
    """The conjuncts of a condition."""
    return _conjuncts(condition.asobject() if isinstance(condition, EqualOp) else condition)


def detect_linear_equation(expr: Any, var_list: Sequence[Any]) -> list[Any]:
    """The coefficients [c0, ..., c] with expr = sum(ci * vi) + c, none of which contains a variable of the list; [] if expr is not
    linear."""
    variables = [_core.prim_expr(v) for v in var_list]
    found = _linear(_core.prim_expr(expr), variables)
    return [] if found is None else [_core.prim_simplify(c, []) for c in found]


def _linear(expr: Any, variables: list[Any]) -> list[Any] | None:
    """The coefficients and the remainder; None unless each variable is only multiplied by constants and added."""
    zero, dtype = [IntImm(v.dtype, 0) for v in variables], getattr(expr, "dtype", "int32")
    if not isinstance(expr, _core.PrimExpr) or not any(_core.prim_uses(expr, v) for v in variables):
        return [*zero, expr]
    for place, v in enumerate(variables):
        if expr.same_as(v):
            return [*zero[:place], IntImm(dtype, 1), *zero[place + 1:], IntImm(dtype, 0)]
    if expr._kind not in ("Add", "Sub", "Mul"):
        return None
    a, b = (_linear(side, variables) for side in expr._fields)
    if a is None or b is None:
        return None
    if expr._kind != "Mul":
        return [_core.prim_binary(expr._kind, x, y) for x, y in zip(a, b)]
    for side, factor in ((a, expr._fields[1]), (b, expr._fields[0])):
        if not isinstance(factor, _core.PrimExpr) or not any(_core.prim_uses(factor, v) for v in variables):
            return [_core.prim_binary("Mul", x, factor) for x in side]
    return None


from ._ffi_api import DomainTouched  # noqa: E402, F401
from .bounds import deduce_bound, detect_clip_bound, estimate_region_lower_bound, estimate_region_strict_bound, estimate_region_upper_bound  # noqa: E402
from .iter_map import IterMapExpr, IterMark, IterSplitExpr, IterSumExpr, detect_iter_map, inverse_affine_iter_map, normalize_iter_map_to_expr, subspace_divide  # noqa: E402
from .int_solver import IntConstraints, IntConstraintsTransform, IntGroupBounds, solve_linear_equations, solve_linear_inequalities  # noqa: E402

__all__ = ["IntConstraints", "IntConstraintsTransform", "IntGroupBounds", "solve_linear_equations", "solve_linear_inequalities", "IterMapExpr", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map", "inverse_affine_iter_map", "normalize_iter_map_to_expr", "subspace_divide", "IntSet", "IntervalSet", "ModularSet", "PresburgerSet", "deduce_bound", "detect_clip_bound", "estimate_region_lower_bound", "estimate_region_strict_bound", "estimate_region_upper_bound",
           "Analyzer", "ConstIntBound", "detect_linear_equation"]
