# SPDX-License-Identifier: Apache-2.0
"""Queries which kernel a call uses."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..ir.ty import TensorType
from ..target import Target
from ..transform import PassContext
from .expr import Call, Function, Op, Var


class ImplementationName(str):
    """An implementation's name: a string with a `name`, as in the classic interface."""

    name = property(str)


def _type_of(value: Any) -> Any:
    """The type of an expression, a type or a te tensor."""
    if hasattr(value, "op") and hasattr(value, "shape"):
        return TensorType([int(d) for d in value.shape], value.dtype)
    return getattr(value, "checked_type", value)


def _own(op: Any, attrs: Any, inputs: Any, out_type: Any, target: Any) -> list[Any]:
    """The implementations that scripts registered for the operator, highest plevel first."""
    from .op.registry import attribute_of
    rule = attribute_of(op if isinstance(op, str) else op.name, "FTVMStrategy")
    if rule is None:
        return []
    with Target(target):
        made = rule(attrs, inputs, out_type, Target(target))
    return sorted((i for i in made.implementations if i.is_own), key=lambda i: -i.plevel)


def select_implementation(op: Any, attrs: Any, inputs: Any, out_type: Any = None, target: Any = "llvm", use_autotvm: bool = True) -> tuple[Any, list[Any]]:
    """(chosen implementation, all applicable ones as (name, configuration, plevel, microseconds on one thread by the cost model)) for an
    operator on inputs of these types, in isolation, without layout changes; for one implemented by a script (implementation, its
    tensors). Error 401 if there is none."""
    if own := _own(op, attrs, inputs, out_type, target):
        return own[0], own[0].compute(attrs, inputs, out_type)
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


def get_valid_implementations(op: Any, attrs: Any, inputs: Any, out_type: Any = None, target: Any = "llvm") -> list[Any]:
    if own := _own(op, attrs, inputs, out_type, target):
        return own
    return [ImplementationName(name) for name, *_ in select_implementation(op, attrs, inputs, out_type, target)[1]]


class TECompiler:
    """The kernel compiler under its classic interface."""

    def clear(self) -> None:
        """Does nothing: kernels are not cached across builds."""

    def items(self) -> list[Any]:
        return []


def get() -> TECompiler:
    return TECompiler()


__all__ = ["TECompiler", "get", "get_valid_implementations", "select_implementation"]
