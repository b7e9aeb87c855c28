# SPDX-License-Identifier: Apache-2.0
"""Which kernel a call gets."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..ir.ty import TensorType
from ..target import Target
from ..transform import PassContext
from .expr import Call, Function, Op, Var


class ImplementationName(str):
    """Which kernel: a text that has its name, as classic implementations have one."""

    name = property(str)


def _type_of(value: Any) -> Any:
    """Of an expression, a type or a tensor of te."""
    if hasattr(value, "op") and hasattr(value, "shape"):
        return TensorType([int(d) for d in value.shape], value.dtype)
    return getattr(value, "checked_type", value)


def select_implementation(op: Any, attrs: Any, inputs: Any, out_type: Any = None, target: Any = "llvm", use_autotvm: bool = True) -> tuple[ImplementationName, list[tuple[str, str, int, float]]]:
    """(implementation, every one that applies as (name, configuration, plevel, microseconds of one thread by the cost model)) for an operator
    on inputs of these types, alone, without layout changes. Error: 401 when there is none."""
    params = [Var(f"p{i}", _type_of(v)) for i, v in enumerate(inputs)]
    body = Call(op if isinstance(op, (str, Op)) else op.name, params, attrs)
    with PassContext(opt_level=3, disabled_pass=["AlterOpLayout"]) as context:
        built = _core.build(_core.IRModule({"main": Function(params, body)}), context.build_options(Target(target)), None)
    name = body.op.name
    for ops, implementation, _, candidates in built.choices:
        if name in ops:
            return ImplementationName(implementation), candidates
    ops, implementation, _, candidates = built.choices[-1]
    return ImplementationName(implementation), candidates


def get_valid_implementations(op: Any, attrs: Any, inputs: Any, out_type: Any = None, target: Any = "llvm") -> list[ImplementationName]:
    return [ImplementationName(name) for name, *_ in select_implementation(op, attrs, inputs, out_type, target)[1]]


class TECompiler:
    """The compiler of kernels as classic scripts see it."""

    def clear(self) -> None:
        """Nothing: no kernel is kept from one build to the next."""

    def items(self) -> list[Any]:
        return []


def get() -> TECompiler:
    return TECompiler()


__all__ = ["TECompiler", "get", "get_valid_implementations", "select_implementation"]
