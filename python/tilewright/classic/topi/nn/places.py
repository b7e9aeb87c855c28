# SPDX-License-Identifier: Apache-2.0
"""Operators that rearrange elements: dilation, block transforms, mirror padding."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ..elemwise import INJECTIVE
from ..transform import reshape, strided_slice, transpose
from .basic import pad


def dilate(data: Tensor, strides: Sequence[int], dilation_value: float = 0.0, name: str = "DilatedInput") -> Tensor:
    """Inserts a value between elements."""
    if len(strides) != data.ndim:
        raise ValueError(f"data dimension and strides size dismatch : {data.ndim} vs {len(strides)}")
    steps = [int(s) for s in strides]
    value = tir_op.const(dilation_value, data.dtype)

    def element(*i: Any) -> Any:
        on = [tir_op.floormod(x, s) == 0 for x, s in zip(i, steps) if s != 1]
        read = data(*[x if s == 1 else tir_op.floordiv(x, s) for x, s in zip(i, steps)])
        return tir_op.if_then_else(tir_op.all(*on), read, value) if on else read
    return te.compute([(size - 1) * s + 1 for size, s in zip(data.shape, steps)], element, name=name, tag=f"{INJECTIVE},dilate")


def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False, output_shape: Any = None) -> Tensor:
    """Enlarges images by integer or fractional scales."""
    from ..image import resize2d
    y, x = layout.index("H"), layout.index("W")
    size = tuple(output_shape[d] if output_shape is not None else int(round(float(data.shape[d]) * s)) for d, s in ((y, scale_h), (x, scale_w)))
    return resize2d(data, (0.0,) * 4, size, layout=layout, method={"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}[method],
                    coordinate_transformation_mode="align_corners" if align_corners else "asymmetric")


def mirror_pad(data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, mode: str = "SYMMETRIC", name: str = "MirrorPadInput") -> Tensor:
    """Mirror padding, with the border element repeated ("SYMMETRIC") or not ("REFLECT")."""
    before, after = list(pad_before), list(pad_after if pad_after is not None else pad_before)
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise ValueError(f"mirror_pad is SYMMETRIC or REFLECT, not {mode}")
    skip = int(mode == "SYMMETRIC")

    def element(*i: Any) -> Any:
        at = []
        for x, size, b, a in zip(i, data.shape, before, after):
            place = x - b if b else x
            if b:
                place = tir_op.if_then_else(x < b, b - x - skip, place)
            if a:
                place = tir_op.if_then_else(x >= size + b, 2 * size - 2 - (x - b) + skip, place)
            at.append(place)
        return data(*at)
    return te.compute([size + b + a for size, b, a in zip(data.shape, before, after)], element, name=name, tag=INJECTIVE)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Moves channels to pixels; the number of channels is divided by the square of `block_size`."""
    if layout not in ("NCHW", "NHWC") or mode not in ("DCR", "CDR", "CRD"):
        raise ValueError(f"Only NCHW and NHWC layouts and the modes DCR and CRD are supported, not {layout} and {mode}")
    first = layout == "NCHW"
    n, c, h, w = data.shape if first else (data.shape[0], data.shape[3], data.shape[1], data.shape[2])
    channels = tir_op.floordiv(c, block_size * block_size)

    def element(*i: Any) -> Any:
        b, channel, y, x = i if first else (i[0], i[3], i[1], i[2])
        dy, dx = tir_op.floormod(y, block_size), tir_op.floormod(x, block_size)
        source = channel + channels * (block_size * dy + dx) if mode == "DCR" else channel * block_size * block_size + block_size * dy + dx
        y, x = tir_op.floordiv(y, block_size), tir_op.floordiv(x, block_size)
        return data(b, source, y, x) if first else data(b, y, x, source)
    shape = (n, channels, h * block_size, w * block_size) if first else (n, h * block_size, w * block_size, channels)
    return te.compute(shape, element, name="depth_to_space", tag=INJECTIVE)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Moves pixels to channels."""
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"Only NCHW and NHWC layouts are supported, not {layout}")
    first = layout == "NCHW"
    n, c, h, w = data.shape if first else (data.shape[0], data.shape[3], data.shape[1], data.shape[2])

    def element(*i: Any) -> Any:
        b, channel, y, x = i if first else (i[0], i[3], i[1], i[2])
        block = tir_op.floordiv(channel, c)
        source = tir_op.floormod(channel, c)
        y, x = y * block_size + tir_op.floordiv(block, block_size), x * block_size + tir_op.floormod(block, block_size)
        return data(b, source, y, x) if first else data(b, y, x, source)
    rows, columns = tir_op.floordiv(h, block_size), tir_op.floordiv(w, block_size)
    shape = (n, c * block_size * block_size, rows, columns) if first else (n, rows, columns, c * block_size * block_size)
    return te.compute(shape, element, name="space_to_depth", tag=INJECTIVE)


def space_to_batch_nd(data: Tensor, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0.0) -> Tensor:
    """Moves blocks of the dimensions after the batch to the batch."""
    blocks, rest = [int(b) for b in block_shape], data.ndim - 1 - len(block_shape)
    padded = pad(data, [0, *pad_before, *[0] * rest], [0, *pad_after, *[0] * rest], pad_value)
    count = len(blocks)
    shape: list[Any] = [data.shape[0]]
    for size, b in zip(padded.shape[1:1 + count], blocks):
        shape += [tir_op.floordiv(size, b), b]
    split = reshape(padded, [*shape, *padded.shape[1 + count:]])
    order = [*[2 + 2 * n for n in range(count)], 0, *[1 + 2 * n for n in range(count)], *range(1 + 2 * count, split.ndim)]
    moved = transpose(split, order)
    batch: Any = data.shape[0]
    for b in blocks:
        batch = batch * b
    return reshape(moved, [batch, *moved.shape[1 + count:]])


def batch_to_space_nd(data: Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]) -> Tensor:
    """Moves batches to blocks of the following dimensions, then crops."""
    blocks = [int(b) for b in block_shape]
    count, whole = len(blocks), 1
    for b in blocks:
        whole *= b
    batch = tir_op.floordiv(data.shape[0], whole)
    split = reshape(data, [*blocks, batch, *data.shape[1:]])
    order = [count]
    for n in range(count):
        order += [count + 1 + n, n]
    moved = transpose(split, [*order, *range(2 * count + 1, split.ndim)])
    sizes = [data.shape[1 + n] * blocks[n] for n in range(count)]
    joined = reshape(moved, [batch, *sizes, *data.shape[1 + count:]])
    begin, end = list(crop_begin_list), list(crop_end_list)
    if not any([*begin, *end]):
        return joined
    return strided_slice(joined, begin, [int(s) - e for s, e in zip(sizes, end)], [1] * count, list(range(1, 1 + count)))


__all__ = ["batch_to_space_nd", "depth_to_space", "dilate", "mirror_pad", "space_to_batch_nd", "space_to_depth", "upsampling"]
