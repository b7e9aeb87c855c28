# SPDX-License-Identifier: Apache-2.0
"""Numpy references of operators that rearrange or sample elements."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def space_to_batch_nd_python(data: Any, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0) -> Any:
    """Moves blocks of the spatial axes, which follow the batch, to the batch, with the position inside the block outermost."""
    m = len(block_shape)
    rest = data.ndim - 1 - m
    x = np.pad(data, [(0, 0), *zip(pad_before, pad_after), *[(0, 0)] * rest], constant_values=pad_value)
    sizes = [part for size, block in zip(x.shape[1:], block_shape) for part in (size // block, block)]
    x = x.reshape(x.shape[0], *sizes, *x.shape[1 + m:])
    order = [*range(2, 2 + 2 * m, 2), 0, *range(1, 1 + 2 * m, 2), *range(1 + 2 * m, x.ndim)]
    x = x.transpose(order)
    return x.reshape(int(np.prod(x.shape[:m + 1])), *x.shape[m + 1:])


def batch_to_space_nd_python(data: Any, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]) -> Any:
    """The inverse of space_to_batch_nd, with crops instead of padding."""
    m = len(block_shape)
    x = data.reshape(*block_shape, data.shape[0] // int(np.prod(block_shape)), *data.shape[1:])
    order = [m, *(axis for i in range(m) for axis in (m + 1 + i, i)), *range(2 * m + 1, x.ndim)]
    x = x.transpose(order)
    x = x.reshape(x.shape[0], *(x.shape[1 + 2 * i] * x.shape[2 + 2 * i] for i in range(m)), *x.shape[1 + 2 * m:])
    return x[(slice(None), *(slice(b, x.shape[1 + i] - e) for i, (b, e) in enumerate(zip(crop_begin_list, crop_end_list))))]


def strided_set_python(data: Any, v: Any, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """A copy with a slice replaced."""
    steps = [] if strides is None else list(strides)
    out = np.array(data, copy=True)
    slices = []
    for i in range(out.ndim):
        at = lambda given: given[i] if given is not None and i < len(given) else None  # noqa: E731
        slices.append(slice(at(begin), at(end), at(steps)))
    out[tuple(slices)] = v
    return out


def matrix_set_diag(input_np: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Replaces diagonals k (or from k[0] to k[1]) of the last two axes by the rows of `diagonal`, the uppermost first; shorter diagonals
    are aligned left or right in their row, as `align` says for those above, then below the main diagonal."""
    out = np.array(input_np, copy=True)
    low, high = (int(k), int(k)) if np.isscalar(k) else (int(k[0]), int(k[1] if len(k) > 1 else k[0]))
    rows, columns = out.shape[-2:]
    if low == high and diagonal.ndim == out.ndim - 1:
        diagonal = diagonal[..., None, :]
    above, below = align.split("_")
    for d in range(low, high + 1):
        length = min(columns - d, rows) if d >= 0 else min(columns, rows + d)
        side = above if d >= 0 else below
        start = diagonal.shape[-1] - length if side == "RIGHT" else 0
        for i in range(length):
            out[..., i + max(0, -d), i + max(0, d)] = diagonal[..., high - d, start + i]
    return out


def affine_grid_python(data: Any, target_shape: Sequence[int]) -> Any:
    """Coordinates (x, y) from -1 to 1 of every pixel, transformed by the matrix (N, 2, 3)."""
    height, width = target_shape
    y, x = np.meshgrid(np.arange(height) * 2.0 / (height - 1) - 1, np.arange(width) * 2.0 / (width - 1) - 1, indexing="ij")
    places = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    return (np.asarray(data).reshape(-1, 3) @ places).reshape(len(data), 2, height, width)


def _unnormalised(at: Any, size: int, align_corners: bool) -> Any:
    return (at + 1) * (size - 1) / 2 if align_corners else ((at + 1) * size - 1) / 2


def _reflected(at: Any, size: int, align_corners: bool) -> Any:
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return np.zeros_like(at)
    away = np.abs(at - low)
    turns, part = np.floor(away / span), np.mod(away, span)
    return np.clip(np.where(turns % 2 == 0, part + low, high - part), 0, size - 1)


def grid_sample_python(data: Any, grid: Any, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = True) -> Any:
    """Samples data (NCHW or NCDHW) at the coordinates of the grid (N, 2 or 3, ...), x first, from -1 to 1."""
    n, axes = len(layout) - 2, data.shape[2:]
    at = [_unnormalised(np.asarray(grid[:, n - 1 - i], "float64"), axes[i], align_corners) for i in range(n)]
    if method == "bicubic":  # its taps are padded individually
        pass
    elif padding_mode == "border":
        at = [np.clip(a, 0, size - 1) for a, size in zip(at, axes)]
    elif padding_mode == "reflection":
        at = [_reflected(a, size, align_corners) for a, size in zip(at, axes)]

    def pixel(index: Sequence[Any]) -> Any:
        inside = np.logical_and.reduce([(i >= 0) & (i < size) for i, size in zip(index, axes)])
        clipped = [np.clip(i, 0, size - 1).astype("int64") for i, size in zip(index, axes)]
        batch = np.arange(len(data)).reshape(-1, *[1] * n)
        values = np.moveaxis(data[(batch, slice(None), *clipped)], -1, 1)
        return values * np.expand_dims(inside, 1)

    if method == "nearest":
        return pixel([np.rint(a) for a in at]).astype(data.dtype)
    reach, weigh = (2, _linear) if method in ("bilinear", "trilinear") else (4, _cubic)
    base = [np.floor(a) for a in at]
    out: Any = 0.0
    for offset in np.ndindex(*[reach] * n):
        steps = [o - (reach // 2 - 1) for o in offset]
        weight = np.prod([weigh(a - b - s) for a, b, s in zip(at, base, steps)], axis=0)
        where = [b + s for b, s in zip(base, steps)]
        if method == "bicubic" and padding_mode == "border":
            where = [np.clip(w, 0, size - 1) for w, size in zip(where, axes)]
        elif method == "bicubic" and padding_mode == "reflection":
            where = [np.rint(_reflected(w, size, align_corners)) for w, size in zip(where, axes)]
        out = out + pixel(where) * np.expand_dims(weight, 1)
    return out.astype(data.dtype)


def _linear(d: Any) -> Any:
    return np.maximum(1 - np.abs(d), 0)


def _cubic(d: Any, a: float = -0.75) -> Any:
    """Keys' cubic convolution kernel."""
    d = np.abs(d)
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, np.where(d < 2, a * (((d - 5) * d + 8) * d - 4), 0))


def grid_sample_nchw_python(data: Any, grid: Any, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = True) -> Any:
    return grid_sample_python(data, grid, method, layout, padding_mode, align_corners)


def correlation_nchw_python(data1: Any, data2: Any, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: int, is_multiply: bool) -> Any:
    """Means over windows of products (or absolute differences) of one image and a shifted other one."""
    pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    a, b = np.pad(data1, pads).astype("float64"), np.pad(data2, pads).astype("float64")
    border, radius = max_displacement + (kernel_size - 1) // 2, max_displacement // stride2
    height, width = (a.shape[2] - 2 * border) // stride1, (a.shape[3] - 2 * border) // stride1
    across = 2 * radius + 1
    out = np.zeros((len(a), across * across, height, width))
    for q in range(across * across):
        dy, dx = (q // across - radius) * stride2, (q % across - radius) * stride2
        for h, w in np.ndindex(kernel_size, kernel_size):
            y, x = max_displacement + h, max_displacement + w
            one = a[:, :, y:y + height * stride1:stride1, x:x + width * stride1:stride1]
            two = b[:, :, y + dy:y + dy + height * stride1:stride1, x + dx:x + dx + width * stride1:stride1]
            out[:, q] += (one * two if is_multiply else np.abs(one - two)).sum(1)
    return out / float(kernel_size**2 * data1.shape[1])


def pool_grad_nchw(a_np: Any, out_grad_np: Any, pool_size: Sequence[int], strides: Sequence[int], padding: Sequence[int], pool_type: str, ceil_mode: bool,
                   count_include_pad: bool = True) -> Any:
    """The gradient with respect to a pool's input. padding: top, left, bottom, right; a maximum's gradient goes to its first occurrence."""
    kh, kw = pool_size
    top, left, bottom, right = padding
    more = [s - 1 for s in strides] if ceil_mode else [0, 0]
    lowest = np.finfo(a_np.dtype).min if a_np.dtype.kind == "f" else np.iinfo(a_np.dtype).min
    x = np.pad(a_np, [(0, 0), (0, 0), (top, bottom + more[0]), (left, right + more[1])], constant_values=lowest if pool_type == "max" else 0)
    out = np.zeros(x.shape, a_np.dtype)
    height, width = a_np.shape[2:]
    for i, j in np.ndindex(*out_grad_np.shape[2:]):
        y, v = i * strides[0], j * strides[1]
        gradient = out_grad_np[:, :, i, j]
        if pool_type == "avg":
            real = max(min(y + kh, top + height) - max(y, top), 0) * max(min(v + kw, left + width) - max(v, left), 0)
            count = kh * kw if count_include_pad else max(real, 1)
            out[:, :, y:y + kh, v:v + kw] += (gradient / count)[:, :, None, None]
        else:
            window = x[:, :, y:y + kh, v:v + kw]
            first = window.reshape(*window.shape[:2], -1).argmax(-1)
            n, c = np.indices(first.shape)
            np.add.at(out, (n, c, y + first // window.shape[3], v + first % window.shape[3]), gradient)
    return out[:, :, top:top + height, left:left + width]


__all__ = ["affine_grid_python", "batch_to_space_nd_python", "correlation_nchw_python", "grid_sample_nchw_python", "grid_sample_python", "matrix_set_diag",
           "pool_grad_nchw", "space_to_batch_nd_python", "strided_set_python"]
