# SPDX-License-Identifier: Apache-2.0
"""Pooling over sliding windows, adaptive and global pooling."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from .basic import pad
from .windows import extent, spread


def _pool(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool, layout: str, count_include_pad: bool, rank: int) -> Tensor:
    if pool_type not in ("max", "avg"):
        raise ValueError(f"there is no pool of kind '{pool_type}'; there are max and avg")
    places = [layout.find(a) for a in "DHW"[3 - rank:]]
    if -1 in places or data.ndim != len([a for a in layout if not a.isdigit()]):
        raise ValueError(f"a pool over {rank} dimensions has no layout {layout}, of data of {data.ndim} dimensions")
    kernels, strides, dilations = spread(kernel, rank), spread(stride, rank), spread(dilation, rank)
    sides = spread(padding, 2 * rank)
    before, after = sides[:rank], sides[rank:]
    more = [s - 1 if ceil_mode else 0 for s in strides]
    fill = tir_op.min_value(data.dtype) if pool_type == "max" else 0

    def along(values: Sequence[Any]) -> list[Any]:
        return [values[places.index(d)] if d in places else 0 for d in range(data.ndim)]
    padded = pad(data, along(before), along([a + m for a, m in zip(after, more)]), fill, name="pad_temp")
    shape = list(data.shape)
    for n, d in enumerate(places):
        shape[d] = extent(data.shape[d], before[n], after[n] + more[n], kernels[n], dilations[n], strides[n])
    over = [te.reduce_axis((0, k), f"rv{n}") for n, k in enumerate(kernels)]

    def window(reducer: Any, tag: str) -> Tensor:
        def element(*i: Any) -> Any:
            at = [i[d] * strides[places.index(d)] + over[places.index(d)] * dilations[places.index(d)] if d in places else i[d] for d in range(data.ndim)]
            return reducer(padded(*at), axis=over)
        return te.compute(shape, element, name=f"pool_{pool_type}", tag=tag)
    if pool_type == "max":
        return window(te.max, "pool_max")
    total = window(te.sum, "pool_sum")
    divided = tir_op.div if "int" in data.dtype else (lambda a, b: a / b)

    def mean(*i: Any) -> Any:
        counts: Any = 1
        for n, d in enumerate(places):
            count: Any = 0
            for t in range(kernels[n]):
                place = i[d] * strides[n] + (t * dilations[n] - before[n])
                low, high = (-before[n], data.shape[d] + after[n]) if count_include_pad else (0, data.shape[d])
                count = count + tir_op.if_then_else(tir_op.all(place >= low, place < high), 1, 0)
            counts = counts * count
        return divided(total(*i), te.max(counts, 1).astype(data.dtype))
    if count_include_pad and not ceil_mode:
        whole = 1
        for k in kernels:
            whole *= k
        return te.compute(shape, lambda *i: divided(total(*i), tir_op.const(whole, data.dtype)), name="pool_avg", tag="elemwise")
    return te.compute(shape, mean, name="pool_avg", tag="elemwise")


def pool1d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False, layout: str = "NCW", count_include_pad: bool = True) -> Tensor:
    return _pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, 1)


def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """The maximum ("max") or mean ("avg") of windows over height and width; padding is (top, left, bottom, right)."""
    return _pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, 2)


def pool3d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True) -> Tensor:
    return _pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, 3)


def _adaptive(data: Tensor, output_size: Any, pool_type: str, layout: str, rank: int) -> Tensor:
    places = [layout.index(a) for a in "DHW"[3 - rank:]]
    sizes = [data.shape[d] if o is None else int(o) for o, d in zip(list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank, places)]
    shape = list(data.shape)
    for d, size in zip(places, sizes):
        shape[d] = size

    def first(i: Any, d: int, size: Any) -> Any:
        return tir_op.floordiv(i * data.shape[d], size)

    def last(i: Any, d: int, size: Any) -> Any:
        return tir_op.floordiv((i + 1) * data.shape[d] + size - 1, size)

    def reduced(reducer: Any, worst: Any, name: str, tag: str) -> Tensor:
        longest = [-(-int(data.shape[d]) // int(size)) + 1 for d, size in zip(places, sizes)]
        over = [te.reduce_axis((0, n), f"rv{k}") for k, n in enumerate(longest)]

        def element(*i: Any) -> Any:
            at, inside = list(i), []
            for n, (d, size) in enumerate(zip(places, sizes)):
                at[d] = first(i[d], d, size) + over[n]
                inside.append(at[d] < last(i[d], d, size))
            return reducer(tir_op.if_then_else(tir_op.all(*inside), data(*at), worst), axis=over)
        return te.compute(shape, element, name=name, tag=tag)
    if pool_type == "max":
        return reduced(te.max, tir_op.min_value(data.dtype), "adaptive_pool_max", "adaptive_pool_max")
    if pool_type != "avg":
        raise ValueError(f"there is no pool of kind '{pool_type}'; there are max and avg")
    total = reduced(te.sum, tir_op.const(0, data.dtype), "adaptive_pool_sum", "adaptive_pool_sum")

    def mean(*i: Any) -> Any:
        count: Any = 1
        for d, size in zip(places, sizes):
            count = count * (last(i[d], d, size) - first(i[d], d, size))
        return tir_op.div(total(*i), count.astype(data.dtype))
    return te.compute(shape, mean, name="adaptive_pool_avg", tag="elemwise")


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Pooling with `output_size` windows, whose sizes differ by at most one."""
    return _adaptive(data, output_size, pool_type, layout, 2)


def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCW") -> Tensor:
    return _adaptive(data, output_size, pool_type, layout, 1)


def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW") -> Tensor:
    return _adaptive(data, output_size, pool_type, layout, 3)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """One value per channel."""
    return _adaptive(data, (1, 1), pool_type, layout, 2)


__all__ = ["adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "global_pool", "pool1d", "pool2d", "pool3d"]
