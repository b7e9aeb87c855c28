# SPDX-License-Identifier: Apache-2.0
"""Regions of interest resampled to a fixed size (RoI align, RoI pool)."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import ir_builder, op


def _pair(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _regions(data: Tensor, rois: Tensor, pooled_size: Any, channels_last: bool, name: str, bin_: Any) -> Tensor:
    """A tensor whose element is bin_(builder, read, picture, c, row, column, corners of the region); read fetches data at (picture, c,
    y, x)."""
    height, width = _pair(pooled_size)
    channels = data.shape[3 if channels_last else 1]
    regions = rois.shape[0]
    shape = (regions, height, width, channels) if channels_last else (regions, channels, height, width)

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        values, corners, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])

        def read(n: Any, c: Any, y: Any, x: Any) -> Any:
            return values[n, y, x, c] if channels_last else values[n, c, y, x]
        with ib.for_range(0, regions, name="r") as r, ib.for_range(0, channels, name="c") as c, ib.for_range(0, height, name="ph") as ph, ib.for_range(0, width, name="pw") as pw:
            picture = ib.let("picture", corners[r, 0].astype("int32"))
            made = bin_(ib, read, picture, c, ph, pw, [corners[r, k + 1] for k in range(4)])
            if channels_last:
                out[r, ph, pw, c] = made
            else:
                out[r, c, ph, pw] = made
        return ib.get()
    return te.extern([shape], [data, rois], body, name=name, dtype=[data.dtype], tag=name)


def _roi_align(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any, sample_ratio: int, channels_last: bool) -> Tensor:
    mode = mode.decode() if isinstance(mode, bytes) else str(mode)
    if mode not in ("avg", "max"):
        raise ValueError(f"roi_align takes the mean (avg) or the largest (max) sample, not '{mode}'")
    rows, columns = _pair(pooled_size)
    h, w = (data.shape[1], data.shape[2]) if channels_last else (data.shape[2], data.shape[3])
    kind = data.dtype

    def sample(read: Any, n: Any, c: Any, y: Any, x: Any) -> Any:
        def axis(at: Any, size: Any) -> tuple[Any, Any, Any]:
            at = te.min(te.max(at, op.const(0, kind)), (size - 1) * op.const(1, kind) if not isinstance(size, int) else op.const(size - 1, kind))
            low = op.floor(at).astype("int32")
            return low, te.min(low + 1, size - 1), at - low.astype(kind)
        y0, y1, ty = axis(y, h)
        x0, x1, tx = axis(x, w)
        one = op.const(1, kind)
        value = (one - ty) * (one - tx) * read(n, c, y0, x0) + (one - ty) * tx * read(n, c, y0, x1) + ty * (one - tx) * read(n, c, y1, x0) + ty * tx * read(n, c, y1, x1)
        outside = op.any(y < op.const(-1, kind), x < op.const(-1, kind), y > h * one, x > w * one)
        return op.if_then_else(outside, op.const(0, kind), value)

    def bin_(ib: Any, read: Any, n: Any, c: Any, ph: Any, pw: Any, corners: Any) -> Any:
        scale, one = op.const(float(spatial_scale), kind), op.const(1, kind)
        left, top = ib.let("left", corners[0] * scale), ib.let("top", corners[1] * scale)
        tall, wide = ib.let("tall", te.max(corners[3] * scale - top, one)), ib.let("wide", te.max(corners[2] * scale - left, one))
        step_y, step_x = ib.let("step_y", tall / op.const(rows, kind)), ib.let("step_x", wide / op.const(columns, kind))
        many_y = ib.let("many_y", op.const(int(sample_ratio), "int32") + ph * 0 if int(sample_ratio) > 0 else op.ceil(step_y).astype("int32"))
        many_x = ib.let("many_x", op.const(int(sample_ratio), "int32") + pw * 0 if int(sample_ratio) > 0 else op.ceil(step_x).astype("int32"))
        total = ib.allocate(kind, (1,), name="total")
        total[0] = op.const(0, kind) if mode == "avg" else op.min_value(kind)
        half = op.const(0.5, kind)
        with ib.for_range(0, many_y, name="iy") as iy, ib.for_range(0, many_x, name="ix") as ix:
            y = top + (ph.astype(kind) + (iy.astype(kind) + half) / many_y.astype(kind)) * step_y
            x = left + (pw.astype(kind) + (ix.astype(kind) + half) / many_x.astype(kind)) * step_x
            value = sample(read, n, c, y, x)
            total[0] = total[0] + value if mode == "avg" else te.max(total[0], value)
        return total[0] / (many_y * many_x).astype(kind) if mode == "avg" else total[0]
    return _regions(data, rois, pooled_size, channels_last, "roi_align", bin_)


def roi_align_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any = "avg", sample_ratio: int = -1) -> Tensor:
    """Regions (picture, x0, y0, x1, y1) of (N, C, H, W), resampled to pooled_size: the mean or the maximum of bilinear samples."""
    if isinstance(mode, int) and not isinstance(sample_ratio, int):
        mode, sample_ratio = sample_ratio, mode
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, False)


def roi_align_nhwc(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any = "avg", sample_ratio: int = -1) -> Tensor:
    """As roi_align_nchw, for (N, H, W, C)."""
    if isinstance(mode, int) and not isinstance(sample_ratio, int):
        mode, sample_ratio = sample_ratio, mode
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, True)


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float) -> Tensor:
    """Regions of (N, C, H, W), pooled to pooled_size: the maximum pixel of each bin, 0 for an empty bin."""
    rows, columns = _pair(pooled_size)
    kind, h, w = data.dtype, data.shape[2], data.shape[3]

    def bin_(ib: Any, read: Any, n: Any, c: Any, ph: Any, pw: Any, corners: Any) -> Any:
        left, top, right, bottom = (ib.let(f"corner{k}", op.floor(v * op.const(float(spatial_scale), kind) + op.const(0.5, kind)).astype("int32")) for k, v in enumerate(corners))
        tall, wide = ib.let("tall", te.max(bottom - top + 1, 1)), ib.let("wide", te.max(right - left + 1, 1))

        def span(place: Any, size: Any, bins: int, first: Any, extent: Any, name: str) -> tuple[Any, Any]:
            step = size.astype(kind) / op.const(bins, kind)
            low = op.floor(place.astype(kind) * step).astype("int32") + first
            high = op.ceil((place + 1).astype(kind) * step).astype("int32") + first
            return ib.let(f"{name}0", te.min(te.max(low, 0), extent)), ib.let(f"{name}1", te.min(te.max(high, 0), extent))
        y0, y1 = span(ph, tall, rows, top, h, "y")
        x0, x1 = span(pw, wide, columns, left, w, "x")
        most = ib.allocate(kind, (1,), name="most")
        most[0] = op.if_then_else(op.any(y1 <= y0, x1 <= x0), op.const(0, kind), op.min_value(kind))
        with ib.for_range(0, te.max(y1 - y0, 0), name="y") as y, ib.for_range(0, te.max(x1 - x0, 0), name="x") as x:
            most[0] = te.max(most[0], read(n, c, y0 + y, x0 + x))
        return most[0]
    return _regions(data, rois, pooled_size, False, "roi_pool", bin_)


def proposal(*_: Any, **__: Any) -> Any:
    """Not available: in the classic stack, too, it exists only for GPUs."""
    raise ValueError("topi has no proposal for processors; relay.vision.proposal builds one")


__all__ = ["proposal", "roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw"]
