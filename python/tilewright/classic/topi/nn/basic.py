# SPDX-License-Identifier: Apache-2.0
"""Operators without sliding windows."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ..elemwise import BROADCAST, ELEMWISE, INJECTIVE


def relu(x: Tensor) -> Tensor:
    """max(x, 0)"""
    return te.compute(x.shape, lambda *i: te.max(x(*i), tir_op.const(0, x.dtype)), tag=ELEMWISE)


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    def element(*i: Any) -> Any:
        value = x(*i)
        return tir_op.if_then_else(value > tir_op.const(0, x.dtype), value, value * tir_op.const(alpha, x.dtype))
    return te.compute(x.shape, element, tag=ELEMWISE)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x, or x times the slope of its channel if x is negative."""
    def element(*i: Any) -> Any:
        value = x(*i)
        return tir_op.if_then_else(value > tir_op.const(0, x.dtype), value, value * slope(i[axis]))
    return te.compute(x.shape, element, tag=BROADCAST)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    axis %= data.ndim
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[axis]), tag=BROADCAST)


def flatten(data: Tensor) -> Tensor:
    """Flattens all dimensions but the first."""
    from ..transform import reshape
    from ..utils import prod
    return reshape(data, [data.shape[0], prod(list(data.shape[1:]))])


def pad(data: Tensor, pad_before: Any, pad_after: Any = None, pad_value: Any = 0.0, name: str = "PadInput", attrs: Any = None) -> Tensor:
    """Pads with a constant value."""
    before = list(pad_before)
    after = list(pad_after) if pad_after is not None else before
    if len(before) != data.ndim or len(after) != data.ndim:
        raise ValueError(f"pad takes {data.ndim} sizes before and after, not {len(before)} and {len(after)}")
    shape = [size + b + a for size, b, a in zip(data.shape, before, after)]
    value = tir_op.const(pad_value, data.dtype) if isinstance(pad_value, (int, float)) else pad_value
    sides = [d for d in range(data.ndim) if not (before[d] == 0 and after[d] == 0)]

    def element(*i: Any) -> Any:
        inside = [c for d in sides for c in (i[d] >= before[d], i[d] < data.shape[d] + before[d])]
        read = data(*[i[d] - before[d] if d in sides else i[d] for d in range(data.ndim)])
        return tir_op.if_then_else(tir_op.all(*inside), read, value) if inside else read
    return te.compute(shape, element, name=name, tag=f"{INJECTIVE},pad", attrs=attrs)


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, auto_scheduler_rewritten_layout: str = "") -> Tensor:
    """data * weight^T + bias"""
    out_dtype = out_dtype or data.dtype
    k = te.reduce_axis((0, data.shape[1]), "k")
    product = te.compute((data.shape[0], weight.shape[0]), lambda i, j: te.sum(data[i, k].astype(out_dtype) * weight[j, k].astype(out_dtype), axis=k), name="T_dense", tag="dense")
    return product if bias is None else te.compute(product.shape, lambda i, j: product[i, j] + bias[j].astype(out_dtype), tag=BROADCAST)


def batch_matmul(tensor_a: Tensor, tensor_b: Tensor, oshape: Any = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = True, auto_scheduler_rewritten_layout: str = "") -> Tensor:
    """Batched matrix products."""
    out_dtype = out_dtype or tensor_a.dtype
    batch = tensor_a.shape[0]
    one_a, one_b = (isinstance(t.shape[0], int) and int(t.shape[0]) == 1 for t in (tensor_a, tensor_b))
    batch = tensor_b.shape[0] if one_a else batch
    n, m, k = tensor_a.shape[2 if transpose_a else 1], tensor_b.shape[1 if transpose_b else 2], te.reduce_axis((0, tensor_a.shape[1 if transpose_a else 2]), "k")

    def element(b: Any, i: Any, j: Any) -> Any:
        x = tensor_a(0 if one_a else b, *((k, i) if transpose_a else (i, k)))
        y = tensor_b(0 if one_b else b, *((j, k) if transpose_b else (k, j)))
        return te.sum(x.astype(out_dtype) * y.astype(out_dtype), axis=k)
    return te.compute(oshape or (batch, n, m), element, name="T_batch_matmul_" + ("T" if transpose_a else "N") + ("T" if transpose_b else "N"), tag="batch_matmul")


def _normalised(x: Tensor, axis: int, logarithm: bool) -> Tensor:
    axis %= x.ndim
    rest = [size for d, size in enumerate(x.shape) if d != axis]
    k1, k2 = (te.reduce_axis((0, x.shape[axis]), n) for n in ("k", "k"))

    def at(i: Any, k: Any) -> list[Any]:
        return [*i[:axis], k, *i[axis:]]

    def without(i: Any) -> list[Any]:
        return [v for d, v in enumerate(i) if d != axis]
    most = te.compute(rest, lambda *i: te.max(x(*at(i, k1)), axis=k1), name="T_softmax_maxelem")
    if logarithm:
        total = te.compute(rest, lambda *i: te.sum(tir_op.exp(x(*at(i, k2)) - most(*i)), axis=k2), name="T_softmax_expsum")
        return te.compute(x.shape, lambda *i: x(*i) - most(*without(i)) - tir_op.log(total(*without(i))), name="T_log_softmax", tag="log_softmax_output", attrs={"axis": axis})
    powers = te.compute(x.shape, lambda *i: tir_op.exp(x(*i) - most(*without(i))), name="T_softmax_exp")
    total = te.compute(rest, lambda *i: te.sum(powers(*at(i, k2)), axis=k2), name="T_softmax_expsum")
    return te.compute(x.shape, lambda *i: powers(*i) / total(*without(i)), name="T_softmax_norm", tag="softmax_output", attrs={"axis": axis})


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis."""
    return _normalised(x, axis, False)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax."""
    return _normalised(x, axis, True)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    return te.compute(Input.shape, lambda b, c, i, j: Input[b, c, i, j] * Scale[c] + Shift[c], name="ScaleShift", tag=BROADCAST)


__all__ = ["batch_matmul", "bias_add", "dense", "flatten", "leaky_relu", "log_softmax", "pad", "prelu", "relu", "scale_shift_nchw", "softmax"]
