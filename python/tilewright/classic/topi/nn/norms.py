# SPDX-License-Identifier: Apache-2.0
"""Normalisations, and sparse products."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ..elemwise import BROADCAST
from ..transform import axis_of
from .basic import pad, softmax


def _moments(data: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes, which are kept with size 1."""
    shape = [1 if d in axes else size for d, size in enumerate(data.shape)]
    count: Any = 1
    for d in axes:
        count = count * data.shape[d]
    number = tir_op.const(count, data.dtype) if isinstance(count, int) else count.astype(data.dtype)

    def total(f: Any, name: str) -> Tensor:
        over = [te.reduce_axis((0, data.shape[d]), f"k{d}") for d in axes]
        return te.compute(shape, lambda *i: te.sum(f(i, [over[axes.index(d)].var if d in axes else i[d] for d in range(data.ndim)]), axis=over), name=name)
    sums = total(lambda i, at: data(*at), "T_sum")
    mean = te.compute(shape, lambda *i: sums(*i) / number, name="T_mean")

    def squared(i: Any, at: Any) -> Any:
        away = data(*at) - mean(*i)
        return away * away
    squares = total(squared, "T_square_sum")
    return mean, te.compute(shape, lambda *i: squares(*i) / number, name="T_variance")


def _normalised(data: Tensor, axes: Sequence[int], epsilon: float, scale: Any, shift: Any, name: str) -> Tensor:
    mean, variance = _moments(data, axes)

    def element(*i: Any) -> Any:
        at = [0 if d in axes else x for d, x in enumerate(i)]
        out = (data(*i) - mean(*at)) * tir_op.rsqrt(variance(*at) + tir_op.const(epsilon, data.dtype))
        out = out if scale is None else out * scale(i)
        return out if shift is None else out + shift(i)
    return te.compute(data.shape, element, name=name, tag=BROADCAST)


def layer_norm(data: Tensor, gamma: Tensor, beta: Tensor | None, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """Normalises over the axes of gamma and beta."""
    axes = [axis_of(int(a), data.ndim) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    return _normalised(data, axes, epsilon, lambda i: gamma(*[i[d] for d in axes]), (lambda i: beta(*[i[d] for d in axes])) if beta is not None else None, "T_layer_norm")


def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, channel_axis: int = 1, axis: Any = (2, 3), epsilon: float = 1e-5) -> Tensor:
    """Normalises each channel of each image."""
    return _normalised(data, [axis_of(int(a), data.ndim) for a in axis], epsilon, lambda i: gamma(i[channel_axis]), lambda i: beta(i[channel_axis]), "T_instance_norm")


def group_norm(data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, channel_axis: int, axes: Any, epsilon: float = 1e-5) -> Tensor:
    """Normalises groups of channels, over their channels and the axes."""
    from ..transform import reshape
    channel, places = axis_of(channel_axis, data.ndim), [axis_of(int(a), data.ndim) for a in axes]
    share = tir_op.floordiv(data.shape[channel], num_groups)
    split = reshape(data, [*data.shape[:channel], num_groups, share, *data.shape[channel + 1:]])
    over = sorted([channel + 1, *(d + 1 if d > channel else d for d in places)])
    made = _normalised(split, over, epsilon, lambda i: gamma(i[channel] * share + i[channel + 1]), lambda i: beta(i[channel] * share + i[channel + 1]), "T_group_norm")
    return reshape(made, data.shape)


def batch_norm(data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis: int | None = None, epsilon: float | None = None, center: bool | None = None,
               scale: bool | None = None) -> list[Tensor]:
    """[the normalised data, the means, the variances], given means and variances per channel."""
    channel, small = axis_of(1 if axis is None else axis, data.ndim), tir_op.const(1e-5 if epsilon is None else epsilon, data.dtype)

    def element(*i: Any) -> Any:
        c = i[channel]
        out = (data(*i) - moving_mean(c)) / tir_op.sqrt(moving_var(c) + small)
        out = out if scale is False else out * gamma(c)
        return out if center is False else out + beta(c)
    return [te.compute(data.shape, element, name="T_batch_norm", tag=BROADCAST), moving_mean, moving_var]


def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """Divides by the square root of the sum of squares over the axes."""
    axes = list(range(data.ndim)) if axis is None else [axis_of(int(a), data.ndim) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    shape = [1 if d in axes else size for d, size in enumerate(data.shape)]
    over = [te.reduce_axis((0, data.shape[d]), f"k{d}") for d in axes]

    def square(*i: Any) -> Any:
        value = data(*[over[axes.index(d)].var if d in axes else i[d] for d in range(data.ndim)])
        return te.sum(value * value, axis=over)
    sums = te.compute(shape, square, name="T_square_sum")
    least = tir_op.const(eps, data.dtype)
    return te.compute(data.shape, lambda *i: data(*i) / tir_op.sqrt(te.max(sums(*[0 if d in axes else x for d, x in enumerate(i)]), least)), name="l2_normalize", tag=BROADCAST)


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2.0) -> Tensor:
    """x / (bias + alpha / size * sum of squares of the neighbours along an axis) ** beta"""
    if size % 2 == 0:
        raise ValueError(f"lrn takes an odd size, not {size}")
    axis, half = axis_of(axis, data.ndim), size // 2
    sides = [half if d == axis else 0 for d in range(data.ndim)]
    padded = pad(data, sides, sides, 0.0, name="pad_data")
    k = te.reduce_axis((0, size), "rxs")

    def square(*i: Any) -> Any:
        value = padded(*[x + k if d == axis else x for d, x in enumerate(i)])
        return te.sum(value * value, axis=k)
    sums = te.compute(data.shape, square, name="sqr_sum")
    by, base, exponent = (tir_op.const(v, data.dtype) for v in (alpha / size, bias, beta))
    return te.compute(data.shape, lambda *i: data(*i) / tir_op.power(base + by * sums(*i), exponent), name="T_lrn", tag=BROADCAST)


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    return te.compute(Input.shape, lambda b, i, j, c: Input[b, i, j, c] * Scale[c] + Shift[c], name="ScaleShift", tag=BROADCAST)


def matmul(tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = False, auto_scheduler_rewritten_layout: str = "") -> Tensor:
    """The matrix product, with optional transposes and bias."""
    out_dtype = out_dtype or tensor_a.dtype
    k = te.reduce_axis((0, tensor_a.shape[0 if transpose_a else 1]), "k")
    product = te.compute((tensor_a.shape[1 if transpose_a else 0], tensor_b.shape[0 if transpose_b else 1]), lambda i, j: te.sum(
        (tensor_a[k, i] if transpose_a else tensor_a[i, k]).astype(out_dtype) * (tensor_b[j, k] if transpose_b else tensor_b[k, j]).astype(out_dtype), axis=k),
        name="T_matmul_" + ("T" if transpose_a else "N") + ("T" if transpose_b else "N"), tag="matmul")
    return product if bias is None else te.compute(product.shape, lambda i, j: product[i, j] + bias[j].astype(out_dtype), tag=BROADCAST)


def sparse_dense(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor, sparse_lhs: bool = False) -> Tensor:
    """data * weights^T, with weights in compressed rows of (values, columns) that start at `sparse_indptr`."""
    from ...tir import ir_builder
    if sparse_lhs or sparse_data.ndim != 1:
        raise ValueError("sparse_dense takes weights by rows of numbers (CSR) here; relay.nn.sparse_dense has blocks and the other side")
    rows = sparse_indptr.shape[0] - 1

    def body(ins: Any, outs: Any) -> Any:
        builder = ir_builder.create()
        data, values, columns, starts, out = (builder.buffer_ptr(b) for b in (*ins, outs[0]))
        with builder.for_range(0, dense_data.shape[0], name="i") as i:
            with builder.for_range(0, rows, name="j") as j:
                out[i, j] = tir_op.const(0, dense_data.dtype)
                with builder.for_range(0, starts[j + 1] - starts[j], name="k") as k:
                    at = starts[j] + k
                    out[i, j] = out[i, j] + data[i, columns[at]] * values[at]
        return builder.get()
    return te.extern([[dense_data.shape[0], rows]], [dense_data, sparse_data, sparse_indices, sparse_indptr], body, name="sparse_dense", dtype=dense_data.dtype)


fast_softmax = softmax
__all__ = ["batch_norm", "fast_softmax", "group_norm", "instance_norm", "l2_normalize", "layer_norm", "lrn", "matmul", "scale_shift_nhwc", "sparse_dense"]
