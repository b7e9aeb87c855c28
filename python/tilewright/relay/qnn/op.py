# SPDX-License-Identifier: Apache-2.0
"""real = scale * (number - zero point). Scales and zero points are numbers or constants, one or one for each channel of `axis`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..expr import Call, Constant, _like, const
from ..op import concatenate as _concatenate


def _parameter(value: Any, dtype: str, data: Any, axis: int) -> Any:
    """Broadcast against the data: a vector stands along its axis."""
    expr = value if isinstance(value, Constant) else const(value, dtype) if not hasattr(value, "checked_type") else value
    shape = expr.checked_type.shape
    if len(shape) == 0 or int(np.prod([int(d) for d in shape])) == 1 and len(shape) <= 1:
        scalar = expr if len(shape) == 0 else Call("reshape", [expr], {"newshape": []})
        return scalar if expr.checked_type.dtype == dtype else Call("cast", [scalar], {"dtype": dtype})
    rank = len(_like(data).checked_type.shape)
    wide = Call("reshape", [expr], {"newshape": [-1] + [1] * (rank - 1 - axis % rank)})
    return wide if expr.checked_type.dtype == dtype else Call("cast", [wide], {"dtype": dtype})


def quantize(data: Any, output_scale: Any, output_zero_point: Any, axis: int = -1, out_dtype: str = "int8") -> Call:
    info = np.iinfo(out_dtype)
    scaled = Call("round", [Call("divide", [data, _parameter(output_scale, "float32", data, axis)])])
    moved = Call("add", [scaled, _parameter(output_zero_point, "float32", data, axis)])
    return Call("cast", [Call("clip", [moved], {"a_min": float(info.min), "a_max": float(info.max)})], {"dtype": out_dtype})


def dequantize(data: Any, input_scale: Any, input_zero_point: Any, axis: int = -1, out_dtype: str = "float32") -> Call:
    centred = Call("subtract", [Call("cast", [data], {"dtype": "float32"}), _parameter(input_zero_point, "float32", data, axis)])
    real = Call("multiply", [centred, _parameter(input_scale, "float32", data, axis)])
    return real if out_dtype == "float32" else Call("cast", [real], {"dtype": out_dtype})


def requantize(data: Any, input_scale: Any, input_zero_point: Any, output_scale: Any, output_zero_point: Any, axis: int = -1,
               rounding: str = "UPWARD", compute_dtype: str = "int64", out_dtype: str = "int8") -> Call:
    """Rounds to the nearest, ties to even."""
    return quantize(dequantize(data, input_scale, input_zero_point, axis), output_scale, output_zero_point, axis, out_dtype)


def _binary(name: str) -> Any:
    def make(lhs: Any, rhs: Any, lhs_scale: Any, lhs_zero_point: Any, rhs_scale: Any, rhs_zero_point: Any, output_scale: Any, output_zero_point: Any,
             lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
        dtype = _like(lhs).checked_type.dtype
        real = Call(name, [dequantize(lhs, lhs_scale, lhs_zero_point, lhs_axis), dequantize(rhs, rhs_scale, rhs_zero_point, rhs_axis)])
        return quantize(real, output_scale, output_zero_point, -1, dtype)
    make.__name__ = name
    return make


add, subtract, mul = _binary("add"), _binary("subtract"), _binary("multiply")


def concatenate(data: Sequence[Any], input_scales: Sequence[Any], input_zero_points: Sequence[Any], output_scale: Any, output_zero_point: Any, axis: int) -> Any:
    dtype = _like(data[0]).checked_type.dtype
    return _concatenate([requantize(d, s, z, output_scale, output_zero_point, -1, out_dtype=dtype) for d, s, z in zip(data, input_scales, input_zero_points)], axis=axis)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"relay.qnn.op has no '{name}'; there are quantize, dequantize, requantize, add, subtract, mul, concatenate. A quantised ONNX model "
                         "(QDQ or QLinear operators) imports with relay.frontend.from_onnx")


__all__ = ["add", "concatenate", "dequantize", "mul", "quantize", "requantize", "subtract"]
