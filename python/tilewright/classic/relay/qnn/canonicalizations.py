# SPDX-License-Identifier: Apache-2.0
"""Lowers functions of 8-bit integers to tables of their 256 results."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..expr import Call, Constant, Expr, const


def run_const_expr(expr: Expr) -> np.ndarray:
    """Evaluates an expression of constants."""
    from ..build_module import create_executor
    return create_executor("debug").evaluate(expr).numpy()


def _number(value: Any) -> Any:
    return value.data.numpy() if isinstance(value, Constant) else run_const_expr(value) if isinstance(value, Expr) else np.asarray(value)


def create_integer_lookup_table(floating_point_func: Callable[[np.ndarray], np.ndarray], input_scale: Any, input_zero_point: Any = const(0, "int32"),
                                output_scale: Any = const(1.0, "float32"), output_zero_point: Any = const(0, "int32"), in_axis: int = -1, out_axis: int = -1,
                                in_dtype: str = "uint8", out_dtype: str = "uint8") -> Any:
    """The quantised results of all quantised inputs, indexed by the input's bits as an unsigned number."""
    if not np.issubdtype(np.dtype(in_dtype), np.integer) or not np.issubdtype(np.dtype(out_dtype), np.integer):
        raise ValueError(f"Only integer dtypes allowed got {in_dtype} and {out_dtype} for in and out dtypes.")
    scales = [_number(v) for v in (input_scale, input_zero_point, output_scale, output_zero_point)]
    if any(np.size(v) > 1 for v in scales):
        raise ValueError("lookup tables are of scalar scales and zero points")
    bits = np.dtype(in_dtype).itemsize * 8
    numbers = np.arange(2**bits).astype(f"uint{bits}").view(in_dtype)
    real = (numbers.astype("int64") - int(scales[1])).astype("float32") * np.float32(scales[0])
    values = np.asarray(floating_point_func(real), "float64") / float(scales[2])
    info = np.iinfo(out_dtype)
    rounded = np.sign(values) * np.floor(np.abs(values) + 0.5) + int(scales[3])
    return np.clip(rounded, info.min, info.max).astype(out_dtype)


def create_integer_lookup_op(input_arg: Any, floating_point_func: Callable[[np.ndarray], np.ndarray], in_scale: Any, in_zero_point: Any, out_scale: Any,
                             out_zero_point: Any, in_axis: int = -1, out_axis: int = -1, in_dtype: str = "uint8", out_dtype: str = "uint8") -> Any:
    """Computes a function of a quantised tensor by one table look-up."""
    table = create_integer_lookup_table(floating_point_func, in_scale, in_zero_point, out_scale, out_zero_point, in_axis, out_axis, in_dtype, out_dtype)
    index = Call("reinterpret", [input_arg], {"dtype": f"uint{np.dtype(in_dtype).itemsize * 8}"}) if np.dtype(in_dtype).kind == "i" else input_arg
    return Call("take", [const(table), Call("cast", [index], {"dtype": "int32"})], {"axis": 0, "mode": "fast"})


__all__ = ["create_integer_lookup_op", "create_integer_lookup_table", "run_const_expr"]
