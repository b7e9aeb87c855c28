# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators."""
from __future__ import annotations

from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as tir_op
from ..tir.expr import dtype_of

ELEMWISE, BROADCAST, INJECTIVE, COMM_REDUCE, COMM_REDUCE_IDX = "elemwise", "broadcast", "injective", "comm_reduce", "comm_reduce_idx"


def _elementwise(name: str, function: Any) -> Any:
    def compute(x: Tensor) -> Tensor:
        return te.compute(x.shape, lambda *i: function(x(*i)), name="compute", tag=ELEMWISE)
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{name}(x), element by element."
    return compute


def _sign(x: Any) -> Any:
    dtype = dtype_of(x)
    zero, one, minus = (tir_op.const(v, dtype) for v in (0, 1, -1))
    return tir_op.if_then_else(x < zero, minus, tir_op.if_then_else(x > zero, one, zero))


_NAMES = ("exp", "erf", "tanh", "tan", "cos", "cosh", "sin", "sinh", "acos", "acosh", "asin", "asinh", "atan", "atanh", "floor", "ceil", "trunc", "abs", "isnan", "isfinite", "isinf", "round",
          "log", "log2", "log10", "sqrt", "rsqrt", "sigmoid")
(exp, erf, tanh, tan, cos, cosh, sin, sinh, acos, acosh, asin, asinh, atan, atanh, floor, ceil, trunc, abs, isnan, isfinite, isinf, round, log, log2, log10, sqrt, rsqrt, sigmoid) = (  # noqa: A001
    _elementwise(n, getattr(tir_op, n)) for n in _NAMES)
fast_exp, fast_tanh, fast_erf = exp, tanh, erf  # the exact functions are equally fast
identity = _elementwise("identity", lambda x: x)
negative = _elementwise("negative", lambda x: -x)
sign = _elementwise("sign", _sign)
bitwise_not = _elementwise("bitwise_not", tir_op.bitwise_not)
logical_not = _elementwise("logical_not", lambda x: x == tir_op.const(0, dtype_of(x)))


def clip(x: Tensor, a_min: float, a_max: float) -> Tensor:
    """Clamps to a minimum and a maximum."""
    low, high = (tir_op.const(v, x.dtype) for v in (a_min, a_max))
    return te.compute(x.shape, lambda *i: te.max(te.min(x(*i), high), low), tag=ELEMWISE)


def cast(x: Any, dtype: str, span: Any = None) -> Any:
    """Casts a tensor or an expression."""
    if isinstance(x, Tensor):
        return te.compute(x.shape, lambda *i: x(*i).astype(dtype), tag=ELEMWISE)
    return tir_op.const(x, dtype) if isinstance(x, (int, float)) else x.astype(dtype)


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    return te.compute(x.shape, lambda *i: tir_op.reinterpret(dtype, x(*i)), tag=ELEMWISE)


def full(shape: Any, dtype: str, fill_value: Any) -> Tensor:
    """A tensor with all elements equal."""
    return te.compute(shape, lambda *i: tir_op.const(fill_value, dtype) if isinstance(fill_value, (int, float)) else fill_value.astype(dtype), tag=ELEMWISE)


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    return full(x.shape, x.dtype, fill_value)


def elemwise_sum(xs: Any) -> Tensor:
    """The sum of tensors of equal shape."""
    tensors = [xs] if isinstance(xs, Tensor) else list(xs)
    if not tensors:
        raise ValueError("elemwise_sum takes a tensor or more")

    def element(*i: Any) -> Any:
        total = tensors[0](*i)
        for t in tensors[1:]:
            total = total + t(*i)
        return total
    return te.compute(tensors[0].shape, element, name="T_elemwise_sum", tag=ELEMWISE)


__all__ = [*_NAMES, "elemwise_sum", "bitwise_not", "cast", "clip", "fast_erf", "fast_exp", "fast_tanh", "full", "full_like", "identity", "logical_not", "negative", "reinterpret", "sign"]
