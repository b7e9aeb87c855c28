# SPDX-License-Identifier: Apache-2.0
"""Operators of the compiler's table as functions: `relay.add(x, y)`, `relay.nn.conv2d(x, w, padding=(1, 1))`.

Arguments after the operands are attributes, in the order of `tilewright ops NAME`; a single number is accepted for an attribute that is
a pair."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .... import _core
from ..expr import Call, Op, Tuple, TupleWrapper, _like
from .registry import OpPattern, register_op_attr
from . import random, strategy
from .absent import has_absent, replacement
from .classic import TABLE as _CLASSIC, register
from .registrations import (refused, register_broadcast_schedule, register_compute, register_injective_schedule, register_reduce_schedule, schedule_injective,
                            register_convert_op_layout, register_external_compiler, register_fake_quantization_to_integer, register_gradient,
                            register_mixed_precision_conversion, register_optional_fake_quantization_to_integer, register_pattern, register_schedule,
                            register_shape_func, register_stateful)
from .rules import register_alter_op_layout, register_legalize
from .strategy import OpImplementation, OpSpecialization, OpStrategy, register_strategy

# Operators whose only operand is a tuple of tensors, and operators with several outputs.
_VARIADIC = ("concatenate", "stack", "einsum", "meshgrid")
_OUTPUTS = {"nn.batch_norm": 3, "sparse_reshape": 2, "sparse_fill_empty_rows": 3}
# Positional arguments of operators whose order differs from that of the attributes.
_TRANSPOSED = ("strides", "padding", "dilation", "channels", "kernel_size", "groups", "data_layout", "kernel_layout", "out_layout", "output_padding", "out_dtype")
_ORDER = {f"nn.conv{d}d_transpose": _TRANSPOSED for d in (1, 2, 3)}
# Classic names of operands that the operator table calls otherwise.
_OPERANDS = {"nn.matmul": ("tensor_a", "tensor_b"), "nn.batch_matmul": ("tensor_a", "tensor_b"), "broadcast_to_like": ("data", "broadcast_type"), "clip": ("a",)}
_PAIRS = ("strides", "dilation", "kernel_size", "pool_size", "output_size")


_known: dict[str, Any] = {}


def _info(name: str) -> Any:
    """(number of operands, their names, attributes) of an operator, or None; scripts may add operators."""
    if _known.get(name) is None or _core.is_script_op(name):
        _known[name] = _core.op_info(name)
    return _known[name]


def _rank(name: str) -> int:
    """The number of spatial dimensions in the operator's name."""
    return next((d for d in (1, 2, 3) if f"{d}d" in name), 0)


def _operator(name: str) -> Any:
    inputs, arguments, attributes = _info(name)
    fields = [key for key, _ in attributes]
    variadic = name in _VARIADIC or inputs < 0

    def make(*args: Any, **kwargs: Any) -> Any:
        count = 1 if variadic else inputs
        operands, rest = list(args[:count]), args[count:]
        names = _OPERANDS.get(name, arguments)
        for argument, classic_name in zip(arguments[len(operands):count], names[len(operands):count]):
            if argument in kwargs or classic_name in kwargs:
                operands.append(kwargs.pop(argument) if argument in kwargs else kwargs.pop(classic_name))
        if len(operands) < count:
            raise TypeError(f"{name} lacks the operand '{arguments[len(operands)] if len(operands) < len(arguments) else len(operands)}'")
        if len(rest) > len(fields):
            raise TypeError(f"{name} takes {count + len(fields)} arguments, {len(args)} were given")
        attrs = dict(zip(_ORDER.get(name, fields), rest))
        for key, value in kwargs.items():
            if key in attrs:
                raise TypeError(f"{name} got multiple values for argument '{key}'")
            attrs[key] = value
        for key in list(attrs):
            if key not in fields:
                if key in ("out_layout", "out_dtype", "auto_scheduler_rewritten_layout") and not attrs[key]:
                    del attrs[key]
                    continue
                raise TypeError(f"{name} has no attribute '{key}'; it has {', '.join(fields) or 'none'}")
            value = attrs[key]
            if value is None or (key == "out_dtype" and value == ""):
                del attrs[key]
            elif key in _PAIRS and isinstance(value, int) and _rank(name):
                attrs[key] = [value] * _rank(name)
            elif key == "padding" and _rank(name) and "pad_width" not in fields:
                pad = [value] if isinstance(value, int) else list(value)
                rank = _rank(name)
                attrs[key] = pad * (2 * rank) if len(pad) == 1 else pad * 2 if len(pad) == rank else pad
        if "padding" in fields and _rank(name) and "pad_width" not in fields:
            attrs.setdefault("padding", [0] * (2 * _rank(name)))
        if variadic:
            value = operands[0]
            if name == "concatenate" and isinstance(value, Sequence) and not value:
                raise ValueError("relay.concatenate requires data to be non-empty.")
            operands = [value.astuple() if isinstance(value, TupleWrapper) else Tuple(value) if isinstance(value, Sequence) else value]
        call = Call(name, [_like(o) for o in operands], attrs)
        if name == "split":
            sections = attrs.get("indices_or_sections", 2)
            return TupleWrapper(call, sections if isinstance(sections, int) else len(sections) + 1)
        if name == "nn.dropout":  # the second output, the mask, only matters in training
            return TupleWrapper(call, 2)[0]
        return TupleWrapper(call, _OUTPUTS[name]) if name in _OUTPUTS else call

    make.__name__ = make.__qualname__ = name.rsplit(".", 1)[-1]
    make.__doc__ = f"{name}({', '.join(arguments + [f'{k}={v}' for k, v in attributes])})"
    return make


class _Namespace:
    def __init__(self, prefix: str):
        self.__name__ = prefix.rstrip(".")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._prefix + name in _CLASSIC:
            setattr(self, name, _CLASSIC[self._prefix + name])
            return _CLASSIC[self._prefix + name]
        if _info(self._prefix + name) is None:
            instead = replacement(self._prefix + name)
            if instead is not None:
                raise AttributeError(f"no operator is called '{self._prefix}{name}'; instead: {instead}")
            below = f"{self._prefix}{name}."
            if self._prefix and (has_absent(below) or any(known.startswith(below) for known in _core.op_names())):
                return _Namespace(below)
            near = [n for n in _core.op_names() if n.rsplit(".", 1)[-1] == name]
            raise AttributeError(f"no operator is called '{self._prefix}{name}'" + (f"; instead: {', '.join(near)}" if near else "; 'tilewright ops' lists them"))
        made = _operator(self._prefix + name)
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return [n[len(self._prefix):] for n in sorted({*_core.op_names(), *_CLASSIC}) if n.startswith(self._prefix) and "." not in n[len(self._prefix):]]


nn, image, vision, annotation, dyn, memory, vm = (_Namespace(p) for p in ("nn.", "image.", "vision.", "annotation.", "dyn.", "memory.", "vm."))
_top = _Namespace("")
tensor = transform = reduce = algorithm = _top  # classic module names of the operators
op = sys.modules[__name__]


def get(op_name: str) -> Op:
    """The operator with this name. Error: 302."""
    return Op(op_name)


def list_ops() -> list[str]:
    return _core.op_names()


def __getattr__(name: str) -> Any:
    if name == "contrib":  # loaded on use, because it imports this module
        import importlib
        return importlib.import_module(".contrib", __name__)
    return refused(name) or getattr(_top, name)


__all__ = ["Op", "OpImplementation", "OpPattern", "OpSpecialization", "OpStrategy", "annotation", "dyn", "get", "image", "list_ops", "memory", "nn", "random", "register", "register_alter_op_layout", "register_legalize", "register_compute", "register_convert_op_layout", "register_external_compiler", "register_fake_quantization_to_integer", "register_gradient",
           "register_mixed_precision_conversion", "register_op_attr", "register_optional_fake_quantization_to_integer", "register_pattern",
           "register_schedule", "register_shape_func", "register_stateful", "register_strategy", "strategy", "vision", "vm"]
