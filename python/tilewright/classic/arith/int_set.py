# SPDX-License-Identifier: Apache-2.0
"""Sets of integers: intervals with expressions as ends, and multiples."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _core
from ..tir.expr import IntImm, Var
from ..tir.range import Range

_POSITIVE, _NEGATIVE = Var("pos_inf", "int32"), Var("neg_inf", "int32")


def pos_inf() -> Any:
    """The upper end of an interval without an upper bound."""
    return _POSITIVE


def neg_inf() -> Any:
    return _NEGATIVE


def is_inf(value: Any) -> bool:
    """Whether an end is infinite."""
    return isinstance(value, Var) and (value.same_as(_POSITIVE) or value.same_as(_NEGATIVE))


class ModularSet:
    """{coeff * k + base}; with coeff 0 the single value base."""

    def __init__(self, coeff: int, base: int):
        self.coeff, self.base = int(coeff), int(base)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModularSet) and (self.coeff, self.base) == (other.coeff, other.base)

    def __hash__(self) -> int:
        return hash((self.coeff, self.base))

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


class IntSet:
    """A set of integers."""
    min_value: Any = _NEGATIVE
    max_value: Any = _POSITIVE

    def is_nothing(self) -> bool:
        """Whether the set is empty."""
        low, high = self.min_value, self.max_value
        return (isinstance(low, Var) and low.same_as(_POSITIVE)) or (isinstance(low, int) and isinstance(high, int) and int(low) > int(high))

    def is_everything(self) -> bool:
        return is_inf(self.min_value) and is_inf(self.max_value) and not self.is_nothing()

    def is_single_point(self) -> bool:
        return not is_inf(self.min_value) and _same(self.min_value, self.max_value)

    @staticmethod
    def vector(vec: Any) -> "IntervalSet":
        """The set of the values of a vector's lanes."""
        return set_of(vec, {}, None)

    @staticmethod
    def single_point(point: Any) -> "IntervalSet":
        return IntervalSet(point, point)


class IntervalSet(IntSet):
    """The closed interval [min_value, max_value]."""

    def __init__(self, min_value: Any, max_value: Any):
        self.min_value, self.max_value = (v if is_inf(v) else _core.prim_expr(v) for v in (min_value, max_value))

    @staticmethod
    def everything() -> "IntervalSet":
        return IntervalSet(_NEGATIVE, _POSITIVE)

    @staticmethod
    def nothing() -> "IntervalSet":
        return IntervalSet(_POSITIVE, _NEGATIVE)

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


class PresburgerSet(IntSet):
    """Sets defined by systems of inequalities, which are not supported."""

    def __init__(self, *_: Any):
        raise NotImplementedError("sets by systems of inequalities are not here; arith.IntervalSet has intervals")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return int(a) == int(b)
    return not isinstance(a, int) and not isinstance(b, int) and bool(_core.stmt_equal(a, b, False))


def _ends(value: Any) -> tuple[Any, Any]:
    """The ends of a set, a Range or a single expression."""
    if isinstance(value, IntSet):
        return value.min_value, value.max_value
    if isinstance(value, Range):
        return value.min, _core.prim_simplify(_core.prim_binary("Sub", _core.prim_binary("Add", value.min, value.extent), 1), [])
    return value, value


def _binary(kind: str, a: Any, b: Any) -> Any:
    return _core.prim_binary(kind, a, b)


class _Evaluation:
    def __init__(self, domains: Mapping[Any, Any], analyzer: Any):
        from . import Analyzer
        self.domains = {hash(getattr(k, "var", k)): _ends(v) for k, v in domains.items()}
        self.analyzer = analyzer or Analyzer()
        self._open: set[int] = set()

    def sign(self, value: Any) -> int:
        """1 if all values are >= 0, -1 if all are <= 0, 0 if unknown."""
        if is_inf(value):
            return 1 if value.same_as(_POSITIVE) else -1
        bound = self.analyzer.const_int_bound(value)
        return 1 if bound.min_value >= 0 else -1 if bound.max_value <= 0 else 0

    def add(self, a: Any, b: Any, kind: str = "Add") -> Any:
        if is_inf(a):
            return a
        if is_inf(b):
            return b if kind == "Add" else (_NEGATIVE if b.same_as(_POSITIVE) else _POSITIVE)
        return self.simple(_binary(kind, a, b))

    def simple(self, value: Any) -> Any:
        return value if is_inf(value) else self.analyzer.simplify(value)

    def scaled(self, value: Any, factor: Any) -> Any:
        if is_inf(value):
            return value if self.sign(factor) > 0 else (_NEGATIVE if value.same_as(_POSITIVE) else _POSITIVE)
        return self.simple(_binary("Mul", value, factor))

    def of(self, e: Any) -> tuple[Any, Any]:
        if isinstance(e, (int, float)) or not isinstance(e, _core.PrimExpr):
            return e, e
        if isinstance(e, Var):
            key = hash(e)
            if key not in self.domains or key in self._open:
                return e, e
            self._open.add(key)
            low, high = self.domains[key]
            out = (low if is_inf(low) else self.of(low)[0]), (high if is_inf(high) else self.of(high)[1])
            self._open.discard(key)
            return out
        if not any(_core.prim_uses(e, v) for v in self._mentioned(e)) and "x" not in e.dtype:
            return e, e
        made = getattr(self, f"_{e._kind}", None)
        return made(*e._fields) if made else (_NEGATIVE, _POSITIVE)

    def _mentioned(self, e: Any) -> list[Any]:
        found: list[Any] = []
        _core.stmt_visit(e, lambda n: found.append(n) if isinstance(n, Var) and hash(n) in self.domains and hash(n) not in self._open else None, False)
        return found

    def _Add(self, a: Any, b: Any) -> Any:
        (p, q), (r, s) = self.of(a), self.of(b)
        return self.add(p, r), self.add(q, s)

    def _Sub(self, a: Any, b: Any) -> Any:
        (p, q), (r, s) = self.of(a), self.of(b)
        return self.add(p, s, "Sub"), self.add(q, r, "Sub")

    def _Mul(self, a: Any, b: Any) -> Any:
        x, y = self.of(a), self.of(b)
        for one, other in ((x, y), (y, x)):
            if not is_inf(other[0]) and _same(other[0], other[1]):
                factor = other[0]
                sign = self.sign(factor)
                if sign > 0:
                    return self.scaled(one[0], factor), self.scaled(one[1], factor)
                if sign < 0:
                    return self.scaled(one[1], factor), self.scaled(one[0], factor)
        if all(isinstance(v, int) for v in (*x, *y)):
            products = [int(p) * int(q) for p in x for q in y]
            return IntImm("int32", min(products)), IntImm("int32", max(products))
        return _NEGATIVE, _POSITIVE

    def _quotient(self, kind: str, a: Any, b: Any) -> Any:
        (low, high), (d, e) = self.of(a), self.of(b)
        if is_inf(d) or not _same(d, e):
            return _NEGATIVE, _POSITIVE
        sign = self.sign(d)
        ends = [v if is_inf(v) else self.simple(_binary(kind, v, d)) for v in (low, high)]
        if sign < 0:
            return tuple((_NEGATIVE if v.same_as(_POSITIVE) else _POSITIVE) if is_inf(v) else v for v in reversed(ends))
        return tuple(ends) if sign > 0 else (_NEGATIVE, _POSITIVE)

    def _FloorDiv(self, a: Any, b: Any) -> Any:
        return self._quotient("FloorDiv", a, b)

    def _Div(self, a: Any, b: Any) -> Any:
        return self._quotient("Div", a, b)

    def _remainder(self, a: Any, b: Any, kind: str) -> Any:
        (low, high), (d, e) = self.of(a), self.of(b)
        if is_inf(d) or not _same(d, e) or self.sign(d) <= 0:
            return _NEGATIVE, _POSITIVE
        if not is_inf(low) and not is_inf(high):
            first, last = (_binary(kind, v, d) for v in (low, high))
            if self.analyzer.can_prove_equal(first, last):
                return tuple(self.simple(_binary("Sub", v, _binary("Mul", _binary(kind, v, d), d))) for v in (low, high))
        most = self.simple(_binary("Sub", d, 1))
        least: Any = IntImm("int32", 0)
        if kind == "Div" and (is_inf(low) or self.sign(low) < 1):
            least = self.simple(_binary("Sub", 1, d))
        return least, most

    def _Mod(self, a: Any, b: Any) -> Any:
        return self._remainder(a, b, "Div")

    def _FloorMod(self, a: Any, b: Any) -> Any:
        return self._remainder(a, b, "FloorDiv")

    def _least(self, kind: str, a: Any, b: Any) -> Any:
        """Min or Max of two interval ends."""
        for one, other in ((a, b), (b, a)):
            if is_inf(one):
                wins = one.same_as(_NEGATIVE) == (kind == "Min")
                return one if wins else other
        return self.simple(_binary(kind, a, b))

    def _Min(self, a: Any, b: Any) -> Any:
        (p, q), (r, s) = self.of(a), self.of(b)
        return self._least("Min", p, r), self._least("Min", q, s)

    def _Max(self, a: Any, b: Any) -> Any:
        (p, q), (r, s) = self.of(a), self.of(b)
        return self._least("Max", p, r), self._least("Max", q, s)

    def _Select(self, _: Any, a: Any, b: Any) -> Any:
        (p, q), (r, s) = self.of(a), self.of(b)
        return self._least("Min", p, r), self._least("Max", q, s)

    def _Ramp(self, base: Any, stride: Any, lanes: Any) -> Any:
        low, high = self.of(base)
        reach = int(stride) * (int(lanes) - 1)
        return (low, self.add(high, reach)) if reach >= 0 else (self.add(low, reach), high)

    def _Broadcast(self, value: Any, _: Any) -> Any:
        return self.of(value)

    def _Cast(self, value: Any) -> Any:
        return self.of(value)

    def _truth(self, *_: Any) -> Any:
        return IntImm("bool", 0), IntImm("bool", 1)

    _LT = _LE = _GT = _GE = _EQ = _NE = _And = _Or = _Not = _truth


def set_of(expr: Any, domains: Mapping[Any, Any], analyzer: Any) -> IntervalSet:
    """The set of values of an expression, given sets or ranges of its variables."""
    return IntervalSet(*_Evaluation(domains, analyzer).of(_core.prim_expr(expr)))


__all__ = ["IntSet", "IntervalSet", "ModularSet", "PresburgerSet", "is_inf", "neg_inf", "pos_inf", "set_of"]
