# SPDX-License-Identifier: Apache-2.0
"""The pattern language: `is_op("nn.relu")(wildcard()).match(e)`, `rewrite(callback, e)`, `pattern.partition(e)`, on any expression.

One pattern object matches one expression; add and multiply match with their operands in either order. has_type, has_shape and has_dtype
need typed expressions (`relay.transform.InferType`, or a callback with require_type=True)."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import _core
from ..ir.ty import Type
from .expr import Expr, Op, _like


class DFPattern(_core.DFPattern):
    def __str__(self) -> str:
        """What the classic printer says of it; `"*"` is any expression."""
        return _said(self)

    __repr__ = __str__

    def __call__(self, *args: "DFPattern") -> "CallPattern":
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        return CallPattern(self, list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args))

    def __or__(self, other: "DFPattern") -> "AltPattern":
        return AltPattern(self, other)

    def __add__(self, other: "DFPattern") -> "CallPattern":
        return is_op("add")(self, other)

    def __sub__(self, other: "DFPattern") -> "CallPattern":
        return is_op("subtract")(self, other)

    def __mul__(self, other: "DFPattern") -> "CallPattern":
        return is_op("multiply")(self, other)

    def __truediv__(self, other: "DFPattern") -> "CallPattern":
        return is_op("divide")(self, other)

    def optional(self, option_constructor: Callable[["DFPattern"], "DFPattern"]) -> "AltPattern":
        return AltPattern(option_constructor(self), self)

    def has_attr(self, attrs: Mapping[str, Any]) -> "DFPattern":
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> "TypePattern":
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: Any) -> "DataTypePattern":
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> "ShapePattern":
        return ShapePattern(self, shape)

    def dominates(self, parent: "DFPattern", path: "DFPattern | None" = None) -> "DominatorPattern":
        return DominatorPattern(parent, wildcard() if path is None else path, self)

    def match(self, expr: Any) -> bool:
        return _core.pattern_match(self, _like(expr))

    def partition(self, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Expr], bool] | None = None) -> Expr:
        """Replaces every match by a call of a function with attributes `attrs`; `check` may reject a match."""
        return _core.pattern_partition(self, _like(expr), dict(attrs or {}), check)


class WildcardPattern(DFPattern):
    def __init__(self) -> None:
        super().__init__(_core.pattern_wildcard())

    def redirect_to(self, pat: DFPattern) -> None:
        """Makes this pattern refer to `pat`, which may contain it: a pattern for chains of any length."""
        _core.pattern_redirect(self, pat)


class VarPattern(DFPattern):
    def __init__(self, name_hint: str = ""):
        super().__init__(_core.pattern_var(name_hint))
        self.name = name_hint


class ConstantPattern(DFPattern):
    def __init__(self) -> None:
        super().__init__(_core.pattern_constant())


class ExprPattern(DFPattern):
    """Matches an operator, or a structurally equal expression."""

    def __init__(self, expr: Any):
        super().__init__(_core.pattern_op(expr.name) if isinstance(expr, Op) else _core.pattern_expr(_like(expr)))
        self.expr = expr


class CallPattern(DFPattern):
    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None):
        super().__init__(_core.pattern_call(op, None if args is None else list(args)))
        self.op, self.args = op, args


class TuplePattern(DFPattern):
    def __init__(self, fields: Sequence[DFPattern] | None):
        super().__init__(_core.pattern_tuple(None if fields is None else list(fields)))
        self.fields = fields


class TupleGetItemPattern(DFPattern):
    def __init__(self, tuple_value: DFPattern, index: int | None = None):
        super().__init__(_core.pattern_get(tuple_value, -1 if index is None else index))
        self.tuple, self.index = tuple_value, -1 if index is None else index


class FunctionPattern(DFPattern):
    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern):
        super().__init__(_core.pattern_function(None if params is None else list(params), body))
        self.params, self.body = params, body


class IfPattern(DFPattern):
    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern):
        super().__init__(_core.pattern_if(cond, true_branch, false_branch))
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch


class LetPattern(DFPattern):
    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern):
        super().__init__(_core.pattern_let(var, value, body))
        self.var, self.value, self.body = var, value, body


class AltPattern(DFPattern):
    def __init__(self, left: DFPattern, right: DFPattern):
        super().__init__(_core.pattern_or(left, right))
        self.left, self.right = left, right


class AttrPattern(DFPattern):
    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]):
        made: Any = pattern
        for key, value in attrs.items():
            made = _core.pattern_attr(made, key, value)
        super().__init__(made)
        self.pattern, self.attrs = pattern, attrs


class TypePattern(DFPattern):
    def __init__(self, pattern: DFPattern, ttype: Type):
        super().__init__(_core.pattern_type(pattern, ttype))
        self.pattern, self.type = pattern, ttype


class DataTypePattern(DFPattern):
    def __init__(self, pattern: DFPattern, dtype: Any):
        self.dtype = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        super().__init__(_core.pattern_dtype(pattern, self.dtype))
        self.pattern = pattern


class ShapePattern(DFPattern):
    def __init__(self, pattern: DFPattern, shape: Sequence[Any]):
        super().__init__(_core.pattern_shape(pattern, list(shape)))
        self.pattern, self.shape = pattern, shape


class DominatorPattern(DFPattern):
    """Matches if every path from `parent` to `child` consists of expressions matched by `path`."""

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern):
        super().__init__(_core.pattern_dominates(parent, path, child))
        self.parent, self.path, self.child = parent, path, child


def _all_said(patterns: Sequence[DFPattern] | None) -> str:
    return "(nullptr)" if patterns is None else f"[{', '.join(map(str, patterns))}]"


_SAID: dict[str, Callable[[Any], str]] = {
    "WildcardPattern": lambda p: "*",
    "VarPattern": lambda p: f"VarPattern({p.name})",
    "ConstantPattern": lambda p: "ConstantPattern()",
    "ExprPattern": lambda p: str(p.expr) if not isinstance(p.expr, Op) else f"Op({p.expr.name})",
    "CallPattern": lambda p: f"CallPatternNode({p.op}, {_all_said(p.args)})",
    "FunctionPattern": lambda p: f"FunctionPatternNode({_all_said(p.params)}, {p.body})",
    "LetPattern": lambda p: f"LetPatternNode({p.var}, {p.value}, {p.body})",
    "IfPattern": lambda p: f"IfPattern({p.cond}, {p.true_branch}, {p.false_branch})",
    "TuplePattern": lambda p: f"TuplePattern({_all_said(p.fields)})",
    "TupleGetItemPattern": lambda p: f"TupleGetItemPatternNode({p.tuple}, {p.index})",
    "AltPattern": lambda p: f"AltPattern({p.left} | {p.right})",
    "AttrPattern": lambda p: f"AttrPattern({p.pattern} has attributes {dict(p.attrs)})",
    "TypePattern": lambda p: f"TypePattern({p.pattern} has type {p.type})",
    "DataTypePattern": lambda p: f"DataTypePattern({p.pattern} has dtype {p.dtype})",
    "ShapePattern": lambda p: f"ShapePattern({p.pattern} has shape [{', '.join(map(str, p.shape))}])",
    "DominatorPattern": lambda p: f"DominatorPattern({p.parent}, {p.path}, {p.child})",
}


def _said(pattern: DFPattern) -> str:
    kind = next((k.__name__ for k in type(pattern).__mro__ if k.__name__ in _SAID), "")
    return _SAID[kind](pattern) if kind else object.__repr__(pattern)


def wildcard() -> WildcardPattern:
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    return ConstantPattern()


def is_expr(expr: Any) -> ExprPattern:
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """A pattern for an operator. Error E302: unknown operator."""
    return ExprPattern(Op(op_name))


def is_tuple(fields: Sequence[DFPattern] | None = None) -> TuplePattern:
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    return LetPattern(var, value, body)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    return TypePattern(pattern or wildcard(), ttype)


def has_dtype(dtype: Any, pattern: DFPattern | None = None) -> DataTypePattern:
    return DataTypePattern(pattern or wildcard(), dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    return ShapePattern(pattern or wildcard(), shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    return AttrPattern(pattern or wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    return DominatorPattern(parent, path, child)


def match(pattern: DFPattern, expr: Any) -> bool:
    return pattern.match(expr)


class DFPatternCallback:
    """Subclass it: set `self.pattern`, and return the replacement of a match from `callback(pre, post, node_map)`. node_map[pattern][0]
    is the expression that a pattern matched."""

    def __init__(self, require_type: bool = False, rewrite_once: bool = False):
        self.pattern: Any = None
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def callback(self, pre: Expr, post: Expr, node_map: dict[DFPattern, list[Expr]]) -> Expr:
        raise NotImplementedError("callback(pre, post, node_map) gives the replacement")

    def rewrite(self, expr: Any) -> Expr:
        return rewrite(self, expr)


def rewrite(callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Any, mod: Any = None) -> Expr:
    """Rewrites until nothing changes. Error E203 if that does not terminate."""
    callbacks = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    if any(c.pattern is None for c in callbacks):
        raise ValueError("a DFPatternCallback must set self.pattern")
    module = _core.IRModule() if mod is None else mod
    return _core.pattern_rewrite([(c.pattern, _with_own_patterns(c), c.rewrite_once, c.require_type) for c in callbacks], _like(expr), module)


def _patterns_in(value: Any) -> Iterator[DFPattern]:
    """Every pattern object of a script in a pattern or a list of them."""
    if isinstance(value, DFPattern):
        yield value
        for part in vars(value).values():
            yield from _patterns_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _patterns_in(part)


def _with_own_patterns(rule: DFPatternCallback) -> Callable[..., Expr]:
    """Its callback, with a node_map whose keys are the script's own pattern objects."""
    own: dict[Any, DFPattern] = {p: p for p in _patterns_in(rule.pattern)}
    return lambda pre, post, found: rule.callback(pre, post, {own.get(p, p): v for p, v in found.items()})


def partition(pattern: DFPattern, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Expr], bool] | None = None) -> Expr:
    return pattern.partition(expr, attrs, check)


__all__ = ["AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DFPatternCallback", "DataTypePattern", "DominatorPattern", "ExprPattern",
           "FunctionPattern", "IfPattern", "LetPattern", "ShapePattern", "TupleGetItemPattern", "TuplePattern", "TypePattern", "VarPattern", "WildcardPattern",
           "dominates", "has_attr", "has_dtype", "has_shape", "has_type", "is_constant", "is_expr", "is_if", "is_let", "is_op", "is_tuple", "is_tuple_get_item",
           "is_var", "match", "partition", "rewrite", "wildcard"]
