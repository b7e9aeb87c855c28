# SPDX-License-Identifier: Apache-2.0
"""Shared by all script parsers: source positions, and expressions evaluated by Python."""
from __future__ import annotations

import ast
import inspect
import textwrap
import typing

from ... import _core
from ..tir import op
from ..tir.expr import Ramp


class ScriptError(ValueError):
    """A syntax or semantic error in a script; the message contains the position."""


class Expressions(ast.NodeTransformer):
    """Rewrites `and`, `or`, `not`, chained comparisons and `a if c else b` to calls, since Python would evaluate them by truth value."""

    def _call(self, name: str, args: list[ast.expr], node: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), args, []), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        return self._call("__all" if isinstance(node.op, ast.And) else "__any", node.values, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        return self._call("__not", [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        left, parts = node.left, []
        for operator, right in zip(node.ops, node.comparators):
            parts.append(ast.copy_location(ast.Compare(left, [operator], [right]), node))
            left = right
        return self._call("__all", parts, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not any(isinstance(p, ast.Slice) and p.upper is not None and p.step is None for p in parts):
            return node
        made = [self._call("__lanes", [p.lower or ast.Constant(0), p.upper], node) if isinstance(p, ast.Slice) and p.upper is not None else p for p in parts]
        node.slice = ast.copy_location(ast.Tuple(made, ast.Load()), node) if isinstance(node.slice, ast.Tuple) else made[0]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        return self._call("__choose", [node.test, node.body, node.orelse], node)


def _choose(condition: typing.Any, first: typing.Any, second: typing.Any) -> typing.Any:
    if isinstance(condition, (bool, int)) and not hasattr(condition, "dtype"):
        return first if condition else second
    return op.if_then_else(condition, first, second)


def _lanes(low: typing.Any, high: typing.Any) -> typing.Any:
    """The elements of `buffer[low:high]`: one vector of them, or the slice where their number is no constant."""
    return Ramp(low, 1, high - low) if isinstance(low, int) and isinstance(high, int) else slice(low, high)


class _Index:
    """What is given in brackets."""

    def __getitem__(self, at: typing.Any) -> typing.Any:
        return at


# The functions that Expressions makes calls of.
LOGIC: dict[str, typing.Any] = {"__all": op.all, "__any": op.any, "__not": _core.prim_not, "__choose": _choose, "__lanes": _lanes, "__index": _Index()}


def source_of(thing: typing.Any) -> tuple[str, int]:
    """The source text of a function or class, and its line offset in the file."""
    try:
        lines, first = inspect.getsourcelines(thing)
    except (OSError, TypeError):
        raise ScriptError(f"the text of {getattr(thing, '__name__', thing)} cannot be found; write it in a file, or give the text to tvm.script.from_source") from None
    return textwrap.dedent("".join(lines)), first - 1


__all__ = ["LOGIC", "Expressions", "ScriptError", "source_of"]
