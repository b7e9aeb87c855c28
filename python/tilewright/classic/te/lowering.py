# SPDX-License-Identifier: Apache-2.0
"""Parameters of tensor functions, and the unscheduled function of a computation."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..tir.buffer import Buffer
from ..tir.expr import Var
from ..tir.function import PrimFunc
from .tensor import PlaceholderOp, Tensor


def _may_be_compact(buffer: Buffer) -> bool:
    """Whether rows can lie one after another: strides are free variables or those of such rows."""
    expected: Any = 1
    for stride, extent in zip(reversed(list(buffer.strides)), reversed(list(buffer.shape))):
        if not isinstance(stride, Var) and not (expected is not None and int(stride) == expected):
            return False
        expected = expected * int(extent) if expected is not None and not isinstance(extent, Var) else None
    return True


def arguments_of(args: Any, binds: Any) -> list[Any]:
    """Tensors and variables. A buffer in `binds` replaces the parameter of its tensor; memory is always row-major and compact."""
    if args is None:
        raise ValueError("args must be given for lowering a schedule: the tensors and variables that the function takes")
    for tensor, buffer in (binds or {}).items():
        if not isinstance(buffer, Buffer) or not _may_be_compact(buffer):
            raise ValueError(f"the buffer of '{tensor.name}' has strides: arguments lie one row after another")
    by_buffer = {id(buffer): tensor for tensor, buffer in (binds or {}).items()}
    out = []
    for arg in args:
        arg = by_buffer.get(id(arg), arg)
        if not isinstance(arg, (Tensor, Var)):
            raise ValueError(f"args are tensors, variables and buffers that binds names, not a {type(arg).__name__}")
        out.append(arg)
    return out


def create_prim_func(ops: list[Any]) -> PrimFunc:
    """The unscheduled function of these tensors, inputs and outputs."""
    outputs = [t.op for t in ops if isinstance(t, Tensor) and not isinstance(t.op, PlaceholderOp)]
    if not outputs:
        raise ValueError("none of the tensors is computed")
    return PrimFunc._of(function=_core.block_function(arguments_of(ops, None), "main"))


__all__ = ["arguments_of", "create_prim_func"]
