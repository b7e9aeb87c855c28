# SPDX-License-Identifier: Apache-2.0
"""Checks conditions and integer constraints by enumerating all values of their variables."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arith import Analyzer
from ..tir import op
from ..tir.expr import EqualOp, Var
from ..tir.stmt_functor import post_order_visit, substitute

_NUMBERS: dict[str, Any] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "FloorDiv": np.floor_divide, "FloorMod": np.mod, "Min": np.minimum, "Max": np.maximum, "EQ": np.equal, "NE": np.not_equal,
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "And": np.logical_and, "Or": np.logical_or, "Not": np.logical_not, "Select": np.where,
    "Div": lambda a, b: np.trunc(a / b).astype(np.int64), "Mod": np.fmod}
_MOST_PLACES = 1 << 22


def _on_grid(expr: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(expr, EqualOp):
        expr = expr.asobject()
    if isinstance(expr, (bool, int, float)):
        return expr
    if isinstance(expr, Var):
        return values[expr]
    kind = expr._kind
    if kind == "Cast":
        return _on_grid(expr.value, values)
    fields = expr._fields[1] if kind == "Call" else expr._fields
    function = np.where if kind == "Call" and str(expr.op).endswith("if_then_else") else _NUMBERS.get(kind)
    if function is None:
        raise ValueError(f"'{expr}' is checked for all values of its variables; it has more than arithmetic of integers")
    return function(*[_on_grid(f, values) for f in fields])


def check_bool_expr_is_true(bool_expr: Any, vranges: Mapping[Any, Any], cond: Any = None) -> None:
    """AssertionError with a counterexample unless a condition holds for all values of its variables in their ranges (for which `cond`
    holds).

    ValueError: a variable without a constant range, or too many values."""
    variables: list[Any] = []
    for expr in (bool_expr, cond):
        if expr is not None and not isinstance(expr, (bool, int)):
            post_order_visit(expr.asobject() if isinstance(expr, EqualOp) else expr, lambda e: variables.append(e) if isinstance(e, Var) and not any(e.same_as(v) for v in variables) else None)
    known = Analyzer()
    axes, substitution = [], {}
    for v in variables:
        r = next((r for w, r in vranges.items() if w.same_as(v)), None)
        if r is None:
            raise ValueError(f"the variable '{v}' has no range")
        for bounded, other in list(vranges.items()):
            if isinstance(other.min, int) and isinstance(other.extent, int):
                known.bind(bounded, other)
        low, high = known.const_int_bound(r.min).min_value, known.const_int_bound(r.min + r.extent).max_value
        axes.append(np.arange(low, high, dtype=np.int64))
        if not (isinstance(r.min, int) and isinstance(r.extent, int)):
            inside = op.all(v >= r.min, v < r.min + r.extent)
            cond = inside if cond is None else op.all(cond, inside)
    if axes and np.prod([float(len(a)) for a in axes]) > _MOST_PLACES:
        raise ValueError(f"there are too many values of {', '.join(v.name for v in variables)}")
    for v, grid in zip(variables, np.meshgrid(*axes, indexing="ij") if axes else []):
        substitution[v] = grid
    holds = np.asarray(_on_grid(bool_expr, substitution), dtype=bool)
    if cond is not None:
        holds = holds | ~np.asarray(_on_grid(cond, substitution), dtype=bool)
    if not holds.all():
        place = tuple(int(i[0]) for i in np.nonzero(np.broadcast_to(holds, substitution[variables[0]].shape if variables else holds.shape) == 0))
        said = ", ".join(f"{v.name} = {substitution[v][place]}" for v in variables)
        raise AssertionError(f"the expression {bool_expr} is not true on {said or 'constants'}")


def check_int_constraints_trans_consistency(constraints_trans: Any, vranges: Mapping[Any, Any] | None = None) -> None:
    """AssertionError unless mapping each side's variables to the other and back is the identity, and satisfies the other side's
    relations wherever its own hold."""
    more = dict(vranges or {})

    def one_way(of: Any, other: Any, there: Mapping[Any, Any], back: Mapping[Any, Any]) -> None:
        claims = [v.equal(Analyzer().simplify(substitute(there[v], back))) for v in of.variables if v in there]
        claims += [substitute(r, back) if not isinstance(r, int) else r for r in other.relations]
        for v in other.variables:
            if v in other.ranges:
                r = other.ranges[v]
                claims += [substitute(c, back) for c in (v >= r.min, v < r.min + r.extent)]
        claims = [c for c in (Analyzer().simplify(c) for c in claims) if not (isinstance(c, int) and c)]
        if claims:
            check_bool_expr_is_true(op.all(*claims), {**more, **of.ranges}, op.all(*of.relations) if of.relations else None)
    one_way(constraints_trans.src, constraints_trans.dst, constraints_trans.src_to_dst, constraints_trans.dst_to_src)
    one_way(constraints_trans.dst, constraints_trans.src, constraints_trans.dst_to_src, constraints_trans.src_to_dst)


__all__ = ["check_bool_expr_is_true", "check_int_constraints_trans_consistency"]
