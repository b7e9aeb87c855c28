# SPDX-License-Identifier: Apache-2.0
"""Visitors and rewriters of statements and expressions, by functions."""
from __future__ import annotations

import typing

from ... import _core
from .stmt import Evaluate, evaluate


def post_order_visit(stmt: typing.Any, fvisit: typing.Callable[[typing.Any], None]) -> None:
    """Calls fvisit on each statement and expression, children before parents."""
    _core.stmt_visit(stmt, fvisit, False)


def pre_order_visit(stmt: typing.Any, fvisit: typing.Callable[[typing.Any], typing.Any]) -> None:
    """Calls fvisit on each statement and expression, parents before children."""
    _core.stmt_visit(stmt, fvisit, True)


def ir_transform(stmt: typing.Any, preorder: typing.Any, postorder: typing.Any, only_enable: typing.Any = None) -> typing.Any:
    """Replaces nodes by what the functions return for them (None: unchanged). The result of `preorder` is not traversed; `postorder`
    gets a node after its children have been replaced. `only_enable`: kinds of nodes, ["tir.For"]."""
    if only_enable is None or "tir.Call" in [str(k) for k in only_enable]:
        whole = only_enable is None or "tir.Evaluate" in [str(k) for k in only_enable]
        preorder, postorder = (f and _of_calls(f, whole) for f in (preorder, postorder))
    return _core.stmt_rewrite(stmt, preorder, postorder, only_enable)


def _of_calls(f: typing.Any, whole: bool) -> typing.Any:
    """f, which is given the call of a call statement, and where `whole` the statement, too."""
    def both(node: typing.Any) -> typing.Any:
        if not isinstance(node, Evaluate) or isinstance(node.value, int):
            return f(node)
        made = f(node.value)
        if made is None:
            return f(node) if whole else None
        return evaluate(made)
    return both


def substitute(node: typing.Any, vmap: typing.Any) -> typing.Any:
    """Substitutes variables: {variable: expression}."""
    variables = {getattr(k, "var", k): v for k, v in vmap.items()}
    return _core.stmt_substitute(node, variables) if isinstance(node, _core.Stmt) else _core.prim_substitute(node, variables)


__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "substitute"]
