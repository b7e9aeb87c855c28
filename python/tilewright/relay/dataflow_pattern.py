# SPDX-License-Identifier: Apache-2.0
"""The pattern language on expressions built in Python: `is_op("nn.relu")(wildcard()).match(e)`, `rewrite(callback, e)`.

One pattern object stands for one expression; add, multiply, maximum and minimum match with their operands in either order. On
whole modules use the compiler's own (src/relay/dataflow_pattern.h)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, TupleWrapper, Var, _post_order
from .expr_functor import ExprMutator

_COMMUTATIVE = ("add", "equal", "maximum", "minimum", "multiply", "not_equal")


class DFPattern:
    def __call__(self, *args: "DFPattern") -> "DFPattern":
        return CallPattern(self, list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args))

    def __or__(self, other: "DFPattern") -> "DFPattern":
        return AltPattern(self, other)

    def __add__(self, other: "DFPattern") -> "DFPattern":
        return is_op("add")(self, other)

    def __sub__(self, other: "DFPattern") -> "DFPattern":
        return is_op("subtract")(self, other)

    def __mul__(self, other: "DFPattern") -> "DFPattern":
        return is_op("multiply")(self, other)

    def __truediv__(self, other: "DFPattern") -> "DFPattern":
        return is_op("divide")(self, other)

    def optional(self, option_constructor: Callable[["DFPattern"], "DFPattern"]) -> "DFPattern":
        return AltPattern(option_constructor(self), self)

    def has_attr(self, attrs: dict[str, Any]) -> "DFPattern":
        return AttrPattern(self, attrs)

    def match(self, expr: Expr) -> bool:
        return _Matcher().matches(self, expr)


class WildcardPattern(DFPattern):
    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return True


class VarPattern(DFPattern):
    def __init__(self, name_hint: str = ""):
        self.name_hint = name_hint

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return isinstance(e, Var) and self.name_hint in ("", e.name_hint)


class ConstantPattern(DFPattern):
    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return isinstance(e, Constant)


class ExprPattern(DFPattern):
    """An operator's name, or one very expression."""

    def __init__(self, expr: Any):
        self.expr = expr

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return e == self.expr if isinstance(self.expr, str) else e is self.expr


class CallPattern(DFPattern):
    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None):
        self.op, self.args = op, args

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        if not isinstance(e, Call) or not m.matches(self.op, e.op):
            return False
        if self.args is None or m.all(self.args, e.args):
            return True
        return e.op in _COMMUTATIVE and len(e.args) == 2 and m.all(self.args, e.args[::-1])


class TuplePattern(DFPattern):
    def __init__(self, fields: Sequence[DFPattern] | None):
        self.fields = fields

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return isinstance(e, Tuple) and (self.fields is None or m.all(self.fields, e.fields))


class TupleGetItemPattern(DFPattern):
    def __init__(self, tuple_value: DFPattern, index: int | None):
        self.tuple, self.index = tuple_value, index

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return isinstance(e, TupleGetItem) and self.index in (None, -1, e.index) and m.matches(self.tuple, _plain(e.tuple_value))


class FunctionPattern(DFPattern):
    def __init__(self, params: Sequence[DFPattern], body: DFPattern):
        self.params, self.body = params, body

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return isinstance(e, Function) and m.all(self.params, e.params) and m.matches(self.body, e.body)


class AltPattern(DFPattern):
    def __init__(self, left: DFPattern, right: DFPattern):
        self.left, self.right = left, right

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        return m.matches(self.left, e) or m.matches(self.right, e)


class AttrPattern(DFPattern):
    def __init__(self, pattern: DFPattern, attrs: dict[str, Any]):
        self.pattern, self.attrs = pattern, attrs

    def _fits(self, m: "_Matcher", e: Any) -> bool:
        own = e.attrs if isinstance(e, (Call, Function)) else {}
        plain = lambda v: list(v) if isinstance(v, (list, tuple)) else v  # noqa: E731
        return all(k in own and plain(own[k]) == plain(v) for k, v in self.attrs.items()) and m.matches(self.pattern, e)


def _plain(e: Any) -> Any:
    return e.tuple_value if isinstance(e, TupleWrapper) else e


class _Matcher:
    def __init__(self) -> None:
        self.found: dict[DFPattern, Any] = {}

    def matches(self, pattern: DFPattern, e: Any) -> bool:
        e = _plain(e)
        if pattern in self.found:
            return self.found[pattern] is e or (isinstance(e, str) and self.found[pattern] == e)
        before = dict(self.found)
        if pattern._fits(self, e):
            self.found[pattern] = e
            return True
        self.found = before
        return False

    def all(self, patterns: Sequence[DFPattern], es: Sequence[Any]) -> bool:
        if len(patterns) != len(es):
            return False
        before = dict(self.found)
        if all(self.matches(p, e) for p, e in zip(patterns, es)):
            return True
        self.found = before
        return False


def wildcard() -> DFPattern:
    return WildcardPattern()


def is_var(name: str = "") -> DFPattern:
    return VarPattern(name)


def is_constant() -> DFPattern:
    return ConstantPattern()


def is_expr(expr: Expr) -> DFPattern:
    return ExprPattern(expr)


def is_op(op_name: str) -> DFPattern:
    return ExprPattern(op_name)


def is_tuple(fields: Sequence[DFPattern] | None = None) -> DFPattern:
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> DFPattern:
    return TupleGetItemPattern(tuple_value, index)


class DFPatternCallback:
    """Subclass it: set `self.pattern`, return what takes a match's place from `callback(pre, post, node_map)`."""

    def __init__(self, require_type: bool = False, rewrite_once: bool = False):
        self.pattern: DFPattern | None = None
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def callback(self, pre: Expr, post: Expr, node_map: dict[DFPattern, list[Expr]]) -> Expr:
        raise NotImplementedError("callback(pre, post, node_map) gives the replacement")

    def rewrite(self, expr: Expr) -> Expr:
        return rewrite(self, expr)


class _Rewriter(ExprMutator):
    def __init__(self, callbacks: Sequence[DFPatternCallback], spent: set[int]):
        super().__init__()
        self.callbacks, self.spent, self.replaced = callbacks, spent, 0

    def visit(self, expr: Any) -> Any:
        if id(expr) in self.memo_map:
            return self.memo_map[id(expr)]
        out = super().visit(expr)
        for c in self.callbacks:
            matcher = _Matcher()
            if id(c) in self.spent or not matcher.matches(c.pattern, out):
                continue
            new = c.callback(expr, out, {p: [e] for p, e in matcher.found.items()})
            if new is not out:
                out, self.replaced = new, self.replaced + 1
                if c.rewrite_once:
                    self.spent.add(id(c))
        self.memo_map[id(expr)] = out
        return out


def rewrite(callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Expr) -> Expr:
    """Until nothing changes. RuntimeError when that does not end."""
    callbacks = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    spent: set[int] = set()
    most, total = 1024 + 16 * len(_post_order(expr, True)), 0
    while True:
        step = _Rewriter(callbacks, spent)
        out = step.visit(expr)
        total += step.replaced
        if out is expr or not step.replaced:
            return out
        if total > most:
            raise RuntimeError(f"rewriting has not ended after {most} replacements; two rules may undo each other")
        expr = out


__all__ = ["AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DFPatternCallback", "ExprPattern", "FunctionPattern",
           "TupleGetItemPattern", "TuplePattern", "VarPattern", "WildcardPattern", "is_constant", "is_expr", "is_op", "is_tuple",
           "is_tuple_get_item", "is_var", "rewrite", "wildcard"]
