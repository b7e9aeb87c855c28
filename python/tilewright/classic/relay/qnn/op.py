# SPDX-License-Identifier: Apache-2.0
"""Quantised operators: real = scale * (integer - zero point). Scales and zero points are constants, expressions or numbers, per tensor
or per channel of `axis`. Calls remain `qnn.*` operators until `relay.qnn.transform.CanonicalizeOps` (part of every build) lowers
them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...topi.nn_qnn import SQNN_DTYPE_TO_CODE
from ..expr import Call, Expr, Tuple, TupleWrapper, _like, const
from ..op import nn as _nn
from ..op.registry import register_op_attr
from .requantize_config import RequantizeConfig, requantize_config


def _scale(value: Any) -> Any:
    return value if isinstance(value, Expr) else const(np.asarray(value, "float32"))


def _zero(value: Any) -> Any:
    return value if isinstance(value, Expr) else const(np.asarray(value, "int32"))


def quantize(data: Any, output_scale: Any, output_zero_point: Any, axis: int = -1, out_dtype: str = "int8") -> Call:
    return Call("qnn.quantize", [data, _scale(output_scale), _zero(output_zero_point)], {"out_dtype": out_dtype, "axis": axis})


def dequantize(data: Any, input_scale: Any, input_zero_point: Any, axis: int = -1, out_dtype: str = "float32") -> Call:
    return Call("qnn.dequantize", [data, _scale(input_scale), _zero(input_zero_point)], {"axis": axis, "out_dtype": out_dtype})


def requantize(data: Any, input_scale: Any, input_zero_point: Any, output_scale: Any, output_zero_point: Any, axis: int = -1,
               rounding: str = "None", compute_dtype: str = "None", out_dtype: str = "int8") -> Call:
    """Rounds ties towards plus infinity ("UPWARD", the default) or away from zero ("TONEAREST")."""
    return Call("qnn.requantize", [data, _scale(input_scale), _zero(input_zero_point), _scale(output_scale), _zero(output_zero_point)],
                {"axis": axis, "rounding": rounding, "compute_dtype": compute_dtype, "out_dtype": out_dtype})


_RANGES = {"uint8": (0, 255), "int8": (-128, 127), "int32": (-2147483648, 2147483647)}


def _along(value: Any, data: Any, axis: int) -> Any:
    """A scale or zero point as float32, reshaped to broadcast to the data."""
    value = Call("cast", [value], {"dtype": "float32"})
    rank, own = len(data.checked_type.shape), len(value.checked_type.shape)
    after = rank - axis % rank - 1
    return Call("expand_dims", [value], {"axis": 1, "num_newaxis": after}) if own == 1 and after else value


def _by_dtype(data: Any, dtype: Any, forms: dict[str, Any]) -> Any:
    """Selects at run time the form for the dtype with that number (topi.nn.qnn), or the unchanged data for "disable"."""
    code, out = Call("cast", [dtype], {"dtype": "float32"}), data
    for name, form in forms.items():
        out = Call("where", [Call("equal", [code, const(float(SQNN_DTYPE_TO_CODE[name]))]), form, out])
    return out


def simulated_quantize(data: Any, output_scale: Any, output_zero_point: Any, axis: int = -1, out_dtype: Any = "int8") -> Any:
    """The result of quantize as float32. out_dtype may be a run-time value: a number of topi.nn.qnn."""
    if isinstance(out_dtype, Expr):
        scale, zero = (_along(v, data, axis) for v in (_scale(output_scale), _zero(output_zero_point)))
        steps = Call("add", [Call("round", [Call("divide", [data, scale])]), zero])
        return _by_dtype(data, out_dtype, {n: Call("clip", [steps], {"a_min": float(low), "a_max": float(high)}) for n, (low, high) in _RANGES.items()})
    if out_dtype == "disable":
        return _like(data)
    return Call("cast", [quantize(data, output_scale, output_zero_point, axis, out_dtype)], {"dtype": "float32"})


def simulated_dequantize(data: Any, input_scale: Any, input_zero_point: Any, axis: int = -1, in_dtype: Any = "int8") -> Any:
    """The real values of quantised integers given as float32. in_dtype may be a run-time value: a number of topi.nn.qnn."""
    if isinstance(in_dtype, Expr):
        scale, zero = (_along(v, data, axis) for v in (_scale(input_scale), _zero(input_zero_point)))
        real = Call("multiply", [Call("subtract", [data, zero]), scale])
        return _by_dtype(data, in_dtype, dict.fromkeys(_RANGES, real))
    if in_dtype == "disable":
        return _like(data)
    return dequantize(Call("cast", [data], {"dtype": "int32"}), input_scale, input_zero_point, axis)


def _binary(name: str) -> Any:
    def make(lhs: Any, rhs: Any, lhs_scale: Any, lhs_zero_point: Any, rhs_scale: Any, rhs_zero_point: Any, output_scale: Any, output_zero_point: Any,
             lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
        return Call(f"qnn.{name}", [lhs, rhs, _scale(lhs_scale), _zero(lhs_zero_point), _scale(rhs_scale), _zero(rhs_zero_point), _scale(output_scale),
                                    _zero(output_zero_point)], {"lhs_axis": lhs_axis, "rhs_axis": rhs_axis})
    make.__name__ = name
    return make


add, subtract, mul = _binary("add"), _binary("subtract"), _binary("mul")


def _product(name: str, plain: Call, parameters: Sequence[Any]) -> Call:
    """The quantised counterpart of a plain call."""
    input_zero, kernel_zero, input_scale, kernel_scale = parameters
    return Call(name, [*plain.args, _zero(input_zero), _zero(kernel_zero), _scale(input_scale), _scale(kernel_scale)], plain.attrs)


def conv2d(data: Any, kernel: Any, input_zero_point: Any, kernel_zero_point: Any, input_scale: Any, kernel_scale: Any, kernel_size: Any, channels: Any,
           strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
           out_layout: str = "", out_dtype: str = "int32") -> Call:
    """Accumulates in int32, with scale input_scale * kernel_scale."""
    plain = _nn.conv2d(data, kernel, strides=strides, padding=padding, dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size,
                       data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype)
    return _product("qnn.conv2d", plain, (input_zero_point, kernel_zero_point, input_scale, kernel_scale))


def conv2d_transpose(data: Any, weight: Any, input_zero_point: Any, kernel_zero_point: Any, input_scale: Any, kernel_scale: Any, strides: Any = (1, 1),
                     padding: Any = (0, 0), dilation: Any = (1, 1), channels: Any = None, kernel_size: Any = None, groups: int = 1, data_layout: str = "NCHW",
                     kernel_layout: str = "IOHW", out_layout: str = "", output_padding: Any = (0, 0), out_dtype: str = "int32") -> Call:
    plain = _nn.conv2d_transpose(data, weight, strides=strides, padding=padding, dilation=dilation, channels=channels, kernel_size=kernel_size, groups=groups,
                                 data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout, output_padding=output_padding,
                                 out_dtype=out_dtype)
    return _product("qnn.conv2d_transpose", plain, (input_zero_point, kernel_zero_point, input_scale, kernel_scale))


def dense(data: Any, weight: Any, input_zero_point: Any, kernel_zero_point: Any, input_scale: Any, kernel_scale: Any, units: Any,
          out_dtype: str = "int32") -> Call:
    return _product("qnn.dense", _nn.dense(data, weight, units, out_dtype), (input_zero_point, kernel_zero_point, input_scale, kernel_scale))


def batch_matmul(x: Any, y: Any, x_zero_point: Any, y_zero_point: Any, x_scale: Any, y_scale: Any, out_dtype: str = "int32") -> Call:
    return _product("qnn.batch_matmul", _nn.batch_matmul(x, y, out_dtype=out_dtype), (x_zero_point, y_zero_point, x_scale, y_scale))


def concatenate(data: Sequence[Any], input_scales: Sequence[Any], input_zero_points: Sequence[Any], output_scale: Any, output_zero_point: Any, axis: int) -> Call:
    fields = data.astuple() if isinstance(data, TupleWrapper) else Tuple(data) if isinstance(data, (list, tuple)) else data
    return Call("qnn.concatenate", [fields, Tuple([_scale(s) for s in input_scales]), Tuple([_zero(z) for z in input_zero_points]), _scale(output_scale),
                                    _zero(output_zero_point)], {"axis": axis})


def leaky_relu(x: Any, alpha: float, input_scale: Any, input_zero_point: Any, output_scale: Any, output_zero_point: Any) -> Call:
    return Call("qnn.leaky_relu", [x, _scale(input_scale), _zero(input_zero_point), _scale(output_scale), _zero(output_zero_point)], {"alpha": alpha})


def _unary(name: str) -> Any:
    def make(x: Any, scale: Any, zero_point: Any, output_scale: Any, output_zero_point: Any) -> Call:
        return Call(f"qnn.{name}", [x, _scale(scale), _zero(zero_point), _scale(output_scale), _zero(output_zero_point)])
    make.__name__ = name
    return make


tanh, exp, sqrt, rsqrt, erf, sigmoid, log, hardswish = (_unary(n) for n in ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log", "hardswish"))


def register_qnn_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """legal_op(attrs, inputs, types) returns the replacement of the call, or None; for qnn.transform.Legalize, and before every build's
    CanonicalizeOps."""
    return register_op_attr(op_name, "FTVMQnnLegalize", legal_op, level)


def register_qnn_canonicalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """As register_qnn_legalize, for qnn.transform.CanonicalizeOps."""
    return register_op_attr(op_name, "FTVMQnnCanonicalize", legal_op, level)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"relay.qnn.op has no '{name}'; there are {', '.join(__all__)}. A quantised ONNX model (QDQ or QLinear operators) imports with "
                         "relay.frontend.from_onnx")


__all__ = ["RequantizeConfig", "requantize_config", "add", "batch_matmul", "concatenate", "conv2d", "conv2d_transpose", "dense", "dequantize", "erf", "exp", "hardswish", "leaky_relu", "log", "mul",
           "quantize", "register_qnn_canonicalize", "register_qnn_legalize", "requantize", "rsqrt", "sigmoid", "simulated_dequantize", "simulated_quantize", "sqrt", "subtract", "tanh"]
