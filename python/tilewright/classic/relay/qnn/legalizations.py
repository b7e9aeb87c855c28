# SPDX-License-Identifier: Apache-2.0
"""Rewrites quantised layers to operand types that a processor's instructions support. Builds do this themselves; these functions are for
scripts that request a form explicitly."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...target import Target
from ..expr import Call, Constant, const


def _cast(x: Any, dtype: str) -> Call:
    return Call("cast", [x], {"dtype": dtype})


def helper_no_fast_int8_hw_legalization(attrs: Any, inputs: Sequence[Any], types: Sequence[Any], relay_op: Callable[..., Any]) -> Any:
    """Subtracts the zero points from the operands in int16, and applies the plain layer."""
    data, kernel, input_zero, kernel_zero = inputs[:4]
    new_attrs = {k: attrs[k] for k in attrs.keys()}

    def shifted(x: Any, zero: Any) -> Any:
        wide = _cast(x, "int16")
        known = isinstance(zero, Constant) and not np.any(zero.data.numpy())
        return wide if known else Call("subtract", [wide, _cast(zero, "int16")])

    return relay_op(shifted(data, input_zero), shifted(kernel, kernel_zero), **new_attrs)


def _moved(x: Any, zero: Any, shift: int, dtype: str) -> tuple[Any, Any]:
    """Changes signedness without changing the real values: both numbers and zero point are shifted."""
    wide = Call("add", [_cast(x, "int32"), const(shift, "int32")])
    limited = Call("clip", [wide], {"a_min": float(np.iinfo(dtype).min), "a_max": float(np.iinfo(dtype).max)})
    return _cast(limited, dtype), Call("add", [zero, const(shift, "int32")])


def helper_change_dtypes_to_uint8_int8(attrs: Any, inputs: Sequence[Any], types: Sequence[Any], relay_op: Callable[..., Any]) -> Any:
    """uint8 data and int8 weights, as x86 instructions require; None if they have these types already."""
    if types[0].dtype == "uint8" and types[1].dtype == "int8":
        return None
    return _changed(attrs, inputs, types, relay_op, "uint8", "int8")


def helper_change_dtypes_to_int8(attrs: Any, inputs: Sequence[Any], types: Sequence[Any], relay_op: Callable[..., Any]) -> Any:
    """int8 data and weights, as ARM instructions require; None if they have these types already."""
    if types[0].dtype == "int8" and types[1].dtype == "int8":
        return None
    return _changed(attrs, inputs, types, relay_op, "int8", "int8")


def helper_change_dtypes_to_be_same(attrs: Any, inputs: Sequence[Any], types: Sequence[Any], relay_op: Callable[..., Any]) -> Any:
    """The weights in the data's dtype; None if they have it already."""
    if types[0].dtype == types[1].dtype:
        return None
    return _changed(attrs, inputs, types, relay_op, types[0].dtype, types[0].dtype)


def _changed(attrs: Any, inputs: Sequence[Any], types: Sequence[Any], relay_op: Callable[..., Any], data_dtype: str, kernel_dtype: str) -> Any:
    data, kernel, input_zero, kernel_zero, input_scale, kernel_scale = inputs
    step = {("int8", "uint8"): 128, ("uint8", "int8"): -128}
    if types[0].dtype != data_dtype:
        data, input_zero = _moved(data, input_zero, step[types[0].dtype, data_dtype], data_dtype)
    if types[1].dtype != kernel_dtype:
        kernel, kernel_zero = _moved(kernel, kernel_zero, step[types[1].dtype, kernel_dtype], kernel_dtype)
    return relay_op(data, kernel, input_zero, kernel_zero, input_scale, kernel_scale, **{k: attrs[k] for k in attrs.keys()})


def is_fast_int8_on_intel() -> bool:
    """Whether the current target has 8-bit integer dot product instructions."""
    target = Target.current() or Target("llvm")
    return target.mcpu in ("skylake-avx512", "cascadelake", "icelake-server", "icelake-client", "tigerlake", "sapphirerapids", "znver4", "znver5")


def is_fast_int8_on_arm() -> bool:
    target = Target.current() or Target("llvm")
    return "+v8.2a" in target.mattr and "+dotprod" in target.mattr


def _legalize(plain_op: str) -> Callable[[Any, Sequence[Any], Sequence[Any]], Any]:
    """The form of a quantised layer that the current target's instructions compute; None: as it is. Only scripts that run the pass
    qnn.transform.Legalize get it, since builds choose the form themselves."""
    def legalize(attrs: Any, inputs: Sequence[Any], types: Sequence[Any]) -> Any:
        def quantised(*operands: Any, **new: Any) -> Any:
            return Call(f"qnn.{plain_op}", list(operands), new)

        def plain(*operands: Any, **new: Any) -> Any:
            return Call(f"nn.{plain_op}", list(operands), new)
        keys = (Target.current() or Target("llvm")).keys
        if "arm_cpu" in keys and is_fast_int8_on_arm():
            return helper_change_dtypes_to_be_same(attrs, inputs, types, quantised)
        if "cuda" in keys:
            return helper_change_dtypes_to_int8(attrs, inputs, types, quantised)
        if "arm_cpu" not in keys and "cpu" in keys and is_fast_int8_on_intel():
            return helper_change_dtypes_to_uint8_int8(attrs, inputs, types, quantised)
        return helper_no_fast_int8_hw_legalization(attrs, inputs, types, plain) if "cpu" in keys else None
    return legalize


def qnn_conv2d_transpose_legalize(attrs: Any, inputs: Sequence[Any], types: Sequence[Any]) -> Any:
    """The plain layer of the operands without their zero points, for every target."""
    return helper_no_fast_int8_hw_legalization(attrs, inputs, types, lambda *operands, **new: Call("nn.conv2d_transpose", list(operands), new))


qnn_conv2d_legalize, qnn_dense_legalize = _legalize("conv2d"), _legalize("dense")
RULES = {"qnn.conv2d": qnn_conv2d_legalize, "qnn.dense": qnn_dense_legalize, "qnn.conv2d_transpose": qnn_conv2d_transpose_legalize}

__all__ = ["RULES", "helper_change_dtypes_to_be_same", "helper_change_dtypes_to_int8", "helper_change_dtypes_to_uint8_int8", "helper_no_fast_int8_hw_legalization",
           "is_fast_int8_on_arm", "is_fast_int8_on_intel", "qnn_conv2d_legalize", "qnn_conv2d_transpose_legalize", "qnn_dense_legalize"]
