# SPDX-License-Identifier: Apache-2.0
"""Builds expressions in statement style: `x = sb.let("x", value)`, `with sb.if_scope(c):`, `sb.ret(result)`, `sb.get()`."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .expr import Call, Expr, Function, GlobalVar, If, Let, Var, _like, var


class ScopeBuilder:
    def __init__(self) -> None:
        self._bindings: list[list[tuple[Var, Any]]] = [[]]
        self._ret_values: list[Any] = [None]

    def _enter(self) -> None:
        self._bindings.append([])
        self._ret_values.append(None)

    def _exit(self) -> Expr:
        bindings, result = self._bindings.pop(), self._ret_values.pop()
        if result is None:
            raise RuntimeError("no return value was given with ret()")
        body = _like(result)
        for variable, value in reversed(bindings):
            body = Let(variable, value, body)
        return body

    def let(self, var_: Any, value: Any) -> Any:
        """Binds `value` to a variable, which is created if a name, or a name with a type, is given."""
        variable = var(var_) if isinstance(var_, str) else Var(*var_) if isinstance(var_, (list, tuple)) else var_
        self._bindings[-1].append((variable, _like(value)))
        return variable

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        self._enter()
        yield
        true_branch = self._exit()
        self._ret_values[-1] = (_like(cond), true_branch)

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        if not isinstance(self._ret_values[-1], tuple):
            raise RuntimeError("else_scope must follow if_scope")
        self._enter()
        yield
        false_branch = self._exit()
        cond, true_branch = self._ret_values[-1]
        self._ret_values[-1] = If(cond, true_branch, false_branch)

    def type_of(self, expr: Any) -> Any:
        """The explicit type, or None."""
        if isinstance(expr, (Var, Call, Function, GlobalVar)):
            return expr._type if expr._typed else None
        return expr.checked_type

    def ret(self, value: Any) -> None:
        if self._ret_values[-1] is not None:
            raise RuntimeError("ret value is already set in this scope.")
        self._ret_values[-1] = _like(value)

    def get(self) -> Expr:
        """The expression built so far."""
        return self._exit()


__all__ = ["ScopeBuilder"]
