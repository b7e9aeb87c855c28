# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ..nn_utils import get_pad_tuple
from .basic import pad


def _two(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if isinstance(value, int) else (int(value[0]), int(value[1]))


class _Windows:
    """Strides, dilations and padding over two dimensions, and how many windows there are."""

    def __init__(self, sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any):
        (height, width), (kh, kw) = sizes, kernel
        (self.sh, self.sw), (self.dh, self.dw) = _two(stride), _two(dilation)
        self.top, self.left, self.bottom, self.right = get_pad_tuple(padding, ((kh - 1) * self.dh + 1, (kw - 1) * self.dw + 1))
        self.rows, self.columns = _extent(height, self.top, self.bottom, kh, self.dh, self.sh), _extent(width, self.left, self.right, kw, self.dw, self.sw)


def _extent(size: Any, before: int, after: int, kernel: Any, dilation: int, stride: int) -> Any:
    return tir_op.floordiv(size + (before + after) - (kernel - 1) * dilation - 1, stride) + 1


def conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None) -> Tensor:
    """A convolution of (batch, channel, height, width) by (out channel, channel, height, width)."""
    out_dtype = out_dtype or Input.dtype
    batch, channels, *sizes = Input.shape
    out_channels, _, kh, kw = Filter.shape
    w = _Windows(sizes, (kh, kw), stride, padding, dilation)
    padded = pad(Input, [0, 0, w.top, w.left], [0, 0, w.bottom, w.right], name="pad_temp")
    rc, ry, rx = te.reduce_axis((0, channels), "rc"), te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    return te.compute((batch, out_channels, w.rows, w.columns), lambda nn, ff, yy, xx: te.sum(padded[nn, rc, yy * w.sh + ry * w.dh, xx * w.sw + rx * w.dw].astype(out_dtype) * Filter[ff, rc, ry, rx].astype(out_dtype),
                                                           axis=[rc, ry, rx]), name="conv2d_nchw", tag="conv2d_nchw")


def conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None, auto_scheduler_rewritten_layout: str = "") -> Tensor:
    """A convolution of (batch, height, width, channel) by (height, width, channel, out channel)."""
    out_dtype = out_dtype or Input.dtype
    batch, *sizes, channels = Input.shape
    kh, kw, _, out_channels = Filter.shape
    w = _Windows(sizes, (kh, kw), stride, padding, dilation)
    padded = pad(Input, [0, w.top, w.left, 0], [0, w.bottom, w.right, 0], name="pad_temp")
    rc, ry, rx = te.reduce_axis((0, channels), "rc"), te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    return te.compute((batch, w.rows, w.columns, out_channels), lambda nn, yy, xx, ff: te.sum(padded[nn, yy * w.sh + ry * w.dh, xx * w.sw + rx * w.dw, rc].astype(out_dtype) * Filter[ry, rx, rc, ff].astype(out_dtype),
                                                           axis=[ry, rx, rc]), name="conv2d_nhwc", tag="conv2d_nhwc")


def conv2d(inp: Tensor, filt: Tensor, strides: Any, padding: Any, dilation: Any, data_layout: str = "NCHW", kernel_layout: str = "", out_dtype: str | None = None) -> Tensor:
    """By its layout, "NCHW" or "NHWC"."""
    if data_layout not in ("NCHW", "NHWC"):
        raise ValueError(f"not support this layout {data_layout} yet")
    return (conv2d_nchw if data_layout == "NCHW" else conv2d_nhwc)(inp, filt, strides, padding, dilation, out_dtype)


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None) -> Tensor:
    """Each channel by filters of its own: (channel, multiplier, height, width)."""
    out_dtype = out_dtype or Input.dtype
    batch, channels, *sizes = Input.shape
    _, multiplier, kh, kw = Filter.shape
    w = _Windows(sizes, (kh, kw), stride, padding, dilation)
    padded = pad(Input, [0, 0, w.top, w.left], [0, 0, w.bottom, w.right], name="PaddedInput")
    di, dj = te.reduce_axis((0, kh), "di"), te.reduce_axis((0, kw), "dj")
    return te.compute((batch, channels * multiplier, w.rows, w.columns), lambda b, c, i, j: te.sum(padded[b, tir_op.floordiv(c, multiplier), i * w.sh + di * w.dh, j * w.sw + dj * w.dw].astype(out_dtype) *
                                                       Filter[tir_op.floordiv(c, multiplier), tir_op.floormod(c, multiplier), di, dj].astype(out_dtype), axis=[di, dj]),
                      name="DepthwiseConv2d", tag="depthwise_conv2d_nchw")


def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """The greatest ("max") or the mean ("avg") of windows over the last two dimensions."""
    if layout != "NCHW" or pool_type not in ("max", "avg"):
        raise ValueError(f"there is no pool2d of kind '{pool_type}' in layout {layout}; there are max and avg in NCHW")
    (kh, kw), (sh, sw), (dh, dw) = _two(kernel), _two(stride), _two(dilation)
    top, left, bottom, right = (int(p) for p in padding)
    batch, channels, height, width = data.shape
    extra_h, extra_w = (sh - 1, sw - 1) if ceil_mode else (0, 0)
    fill = tir_op.min_value(data.dtype) if pool_type == "max" else 0
    padded = pad(data, [0, 0, top, left], [0, 0, bottom + extra_h, right + extra_w], fill, name="pad_temp")
    shape = (batch, channels, _extent(height, top, bottom + extra_h, kh, dh, sh), _extent(width, left, right + extra_w, kw, dw, sw))
    ry, rx = te.reduce_axis((0, kh), "rv0"), te.reduce_axis((0, kw), "rv1")

    def window(reducer: Any, tag: str) -> Tensor:
        return te.compute(shape, lambda n, c, y, x: reducer(padded[n, c, y * sh + ry * dh, x * sw + rx * dw], axis=[ry, rx]), name=f"pool_{pool_type}", tag=tag)
    if pool_type == "max":
        return window(te.max, "pool_max")
    total = window(te.sum, "pool_sum")

    def element(n: Any, c: Any, y: Any, x: Any) -> Any:
        if count_include_pad:
            return total[n, c, y, x] / tir_op.const(kh * kw, data.dtype)
        counts = []
        for at, step, dilated, size, taps, before in ((y, sh, dh, height, kh, top), (x, sw, dw, width, kw, left)):
            count: Any = 0
            for t in range(taps):
                place = at * step + (t * dilated - before)
                count = count + tir_op.if_then_else(tir_op.all(place >= 0, place < size), 1, 0)
            counts.append(count)
        return total[n, c, y, x] / te.max(counts[0] * counts[1], 1).astype(data.dtype)
    return te.compute(shape, element, name="pool_avg", tag="elemwise")


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """One value for each channel."""
    height, width = data.shape[2], data.shape[3]
    return pool2d(data, (height, width), (1, 1), (1, 1), (0, 0, 0, 0), pool_type, layout=layout)


__all__ = ["conv2d", "conv2d_nchw", "conv2d_nhwc", "depthwise_conv2d_nchw", "global_pool", "pool2d"]
