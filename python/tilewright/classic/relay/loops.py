# SPDX-License-Identifier: Apache-2.0
"""Loops as recursive functions, which run on the virtual machine."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .expr import Call, Function, If, Let, Tuple, Var, const


def while_loop(cond: Callable[..., Any], loop_vars: Sequence[Var], loop_bodies: Callable[..., Sequence[Any]]) -> Let:
    """A let-bound function of the initial values: while cond(*vars) holds, vars become loop_bodies(*vars); it returns their tuple."""
    variables = [Var(f"{v.name_hint}", v.type_annotation) if isinstance(v, Var) else v for v in loop_vars]
    loop = Var("while_loop")
    again = Call(loop, list(loop_bodies(*variables)))
    return Let(loop, Function(variables, If(cond(*variables), again, Tuple(variables))), loop)


def for_loop(loop_var: Var, start: int, finish: Any, bodies: Any, *loop_vars: Var) -> Let:
    """loop_var counts from the initial value passed to the function up to, but excluding, `finish`."""
    return while_loop(lambda i, *_: Call("less", [i, const(finish) if isinstance(finish, int) else finish]), [loop_var, *loop_vars],
                      lambda i, *rest: [Call("add", [i, const(1)]), *bodies(i, *rest)])


__all__ = ["for_loop", "while_loop"]
