# SPDX-License-Identifier: Apache-2.0
"""Algebraic data types: constructors, patterns, match expressions, and type definitions of modules."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..ir.ty import GlobalTypeVar
from .expr import Expr, Tuple, Var, _like

Pattern = _core.Pattern


def _as_match(self: Any) -> "Match":
    """A pattern or a clause in a match expression of its own, for comparisons."""
    return Match(_DATA, [self if isinstance(self, Clause) else Clause(self, Tuple([]))])


def _structurally_equals(self: Any, other: Any) -> bool:
    return isinstance(other, (Pattern, Clause)) and isinstance(self, Clause) == isinstance(other, Clause) and bool(_core.structural_equal(_as_match(self), _as_match(other), False))


def _structural_hash(self: Any) -> int:
    return int(_core.structural_hash(_as_match(self), False))


_DATA = Var("data")
Pattern.structurally_equals, Pattern.structural_hash = _structurally_equals, _structural_hash


class PatternWildcard(Pattern):
    def __init__(self) -> None:
        super().__init__(_core.make_pattern("Wildcard", None, None))

    def __repr__(self) -> str:
        return "_"


class PatternVar(Pattern):
    def __init__(self, var: Var):
        super().__init__(_core.make_pattern("Var", var, None))

    var = property(lambda self: self._fields[0])


class PatternConstructor(Pattern):
    def __init__(self, constructor: "Constructor", patterns: Sequence[Pattern] | None = None):
        super().__init__(_core.make_pattern("Constructor", constructor, list(patterns or [])))

    constructor = property(lambda self: self._fields[0])
    patterns = property(lambda self: self._fields[1])

    def __repr__(self) -> str:
        return self.constructor.name_hint + (f"({', '.join(map(repr, self.patterns))})" if self.patterns else "")


class PatternTuple(Pattern):
    def __init__(self, patterns: Sequence[Pattern] | None = None):
        super().__init__(_core.make_pattern("Tuple", None, list(patterns or [])))

    patterns = property(lambda self: self._fields[1])


_core._set_pattern_classes([PatternWildcard, PatternVar, PatternConstructor, PatternTuple])


class Constructor(Expr):
    """`Constructor("Cons", [a, List(a)], List)`; it is bound to a module once the type is defined there."""

    def __init__(self, name_hint: str, inputs: Sequence[Any], belong_to: GlobalTypeVar):
        super().__init__(_core.make_constructor(name_hint, list(inputs), belong_to.name_hint))

    bound_tag = -1  # of one that was made before its type: set when a module takes the type
    name_hint = property(lambda self: self._part(0))
    inputs = property(lambda self: self._part(1))
    tag = property(lambda self: self._part(3) if self._part(3) >= 0 else self.bound_tag)

    @property
    def belong_to(self) -> GlobalTypeVar:
        return GlobalTypeVar(self._part(2))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constructor) and (self.name_hint, self._part(2)) == (other.name_hint, other._part(2))

    def __hash__(self) -> int:
        return hash((self.name_hint, self._part(2)))

    def same_as(self, other: object) -> bool:
        return self == other


_core._set_expr_class("Constructor", Constructor)


class TypeData:
    """`mod[List] = TypeData(List, [a], [nil, cons])`"""

    def __init__(self, header: GlobalTypeVar, type_vars: Sequence[Any], constructors: Sequence[Constructor]):
        self.header, self.type_vars, self.constructors = header, list(type_vars), list(constructors)

    def structurally_equals(self, other: Any) -> bool:
        if not isinstance(other, TypeData) or self.header.name_hint != other.header.name_hint or len(self.constructors) != len(other.constructors):
            return False
        from ..ir.ty import FuncType, TupleType
        return all(a.name_hint == b.name_hint and FuncType(a.inputs, TupleType(self.type_vars), self.type_vars) == FuncType(b.inputs, TupleType(other.type_vars), other.type_vars)
                   for a, b in zip(self.constructors, other.constructors))


class Clause:
    def __init__(self, lhs: Pattern, rhs: Any):
        self.lhs, self.rhs = lhs, _like(rhs)

    structurally_equals, structural_hash = _structurally_equals, _structural_hash


class Match(Expr):
    def __init__(self, data: Any, clauses: Sequence[Clause], complete: bool = True):
        super().__init__(_core.make_match(_like(data), [(c.lhs, c.rhs) for c in clauses], complete, None))

    data = property(lambda self: self._part(0))
    complete = property(lambda self: self._part(2))

    @property
    def clauses(self) -> list[Clause]:
        return [Clause(p, e) for p, e in self._part(1)]


_core._set_expr_class("Match", Match)

__all__ = ["Clause", "Constructor", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard", "TypeData"]
