# SPDX-License-Identifier: Apache-2.0
"""Functions that scripts call by their names in the function registry."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..tir.range import Range
from ..tir.stmt import BufferStore, For, LetStmt
from .int_set import IntervalSet, set_of
from .int_solver import IntConstraints, IntConstraintsTransform, solve_inequalities_as_condition, solve_linear_inequalities


def DomainTouched(stmt: Any, buffer: Any, consider_loads: bool, consider_stores: bool) -> list[Range]:  # noqa: N802  the classic name
    """The range of each dimension that a statement reads (or writes) of a buffer."""
    domains: dict[Any, Any] = {}
    found: list[list[IntervalSet]] = []

    def touch(indices: Any) -> None:
        found.append([set_of(i, domains, None) for i in indices])

    def visit(node: Any) -> None:
        if isinstance(node, For):
            domains[node.loop_var] = Range.from_min_extent(node.min, node.extent)
        elif isinstance(node, LetStmt):
            domains[node.var] = set_of(node.value, domains, None)
        elif isinstance(node, BufferStore) and consider_stores and node.buffer == buffer:
            touch(node.indices)
        elif getattr(node, "_kind", "") == "Read" and consider_loads and node._fields[0] == buffer:
            touch(node._fields[1])
    _core.stmt_visit(stmt, visit, True)
    out = []
    for d in range(len(found[0]) if found else 0):
        low, high = found[0][d].min_value, found[0][d].max_value
        for other in found[1:]:
            low, high = _core.prim_binary("Min", low, other[d].min_value), _core.prim_binary("Max", high, other[d].max_value)
        low = _core.prim_simplify(low, [])
        out.append(Range.from_min_extent(low, _core.prim_simplify(_core.prim_binary("Add", _core.prim_binary("Sub", high, low), 1), [])))
    return out


def SolveInequalitiesAsCondition(*system: Any) -> list[Any]:  # noqa: N802  the classic name
    """(variables, ranges, relations), or IntConstraints of them, as conditions on one variable after the other."""
    return solve_inequalities_as_condition(*system)


def SolveInequalitiesToRange(variables: Any, ranges: Any = None, relations: Any = None) -> IntConstraints:  # noqa: N802  the classic name
    return solve_linear_inequalities(relations if relations is not None else variables, variables if relations is not None else None, ranges)


def SolveInequalitiesDeskewRange(variables: Any, ranges: Any = None, relations: Any = None) -> IntConstraintsTransform:  # noqa: N802  the classic name
    return solve_linear_inequalities(relations if relations is not None else variables, variables if relations is not None else None, ranges, deskew_range=True)


__all__ = ["DomainTouched", "SolveInequalitiesAsCondition", "SolveInequalitiesDeskewRange", "SolveInequalitiesToRange"]
