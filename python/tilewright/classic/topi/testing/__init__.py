# SPDX-License-Identifier: Apache-2.0
"""What operators compute, in numpy, for scripts that compare: `topi.testing.conv2d_nchw_python(a, w, stride=1, padding="SAME")`.

Results have the dtype of the first operand unless a parameter says otherwise; sums are made in double precision (integers: int64)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def _list(value: Any, count: int) -> list[int]:
    return [int(value)] * count if isinstance(value, (int, np.integer)) else [int(v) for v in value]


def _pads(padding: Any, kernel: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of every axis from a number, a list of n or 2n, "VALID" or "SAME" (for strides of 1, as the classic functions)."""
    n = len(kernel)
    if isinstance(padding, str):
        total = [0 if padding == "VALID" else k - 1 for k in kernel]
        return [(-(-t // 2), t // 2) for t in total]
    if isinstance(padding, (int, np.integer)):
        return [(int(padding),) * 2] * n
    values = [int(p) for p in padding]
    return [(v, v) for v in values] if len(values) == n else list(zip(values[:n], values[n:]))


def _wide(x: Any) -> Any:
    return np.asarray(x).astype("float64" if np.asarray(x).dtype.kind == "f" else "int64")


def _convolution(a: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Convolves (N, C, spatial...) with weights (O, C / groups, spatial...)."""
    n = a.ndim - 2
    strides, dilations = _list(stride, n), _list(dilation, n)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    wide = np.pad(_wide(a), [(0, 0), (0, 0), *_pads(padding, reach)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, reach, tuple(range(2, 2 + n)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]
    parts = []
    for g in range(groups):
        own = windows[:, g * w.shape[1]:(g + 1) * w.shape[1]]
        share = _wide(w)[g * w.shape[0] // groups:(g + 1) * w.shape[0] // groups]
        sums = np.tensordot(own, share, axes=([1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)]))  # (N, spatial..., O)
        parts.append(np.moveaxis(sums, -1, 1))
    return np.concatenate(parts, 1).astype(a.dtype)


def _last(x: Any) -> Any:
    return np.moveaxis(x, 1, -1)


def _first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


def conv1d_ncw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    return _convolution(a_np, w_np, stride, padding, dilation, 1)


def group_conv1d_ncw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return _convolution(a_np, w_np, stride, padding, dilation, groups)


def conv2d_nchw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, groups: int = 1) -> Any:
    return _convolution(a_np, w_np, stride, padding, 1, groups)


def conv2d_nhwc_python(a_np: Any, w_np: Any, stride: Any, padding: Any, groups: int = 1) -> Any:
    """Weights (H, W, I, O)."""
    return _last(_convolution(_first(a_np), w_np.transpose(3, 2, 0, 1), stride, padding, 1, groups))


def conv2d_hwcn_python(a_np: Any, w_np: Any, stride: Any, padding: Any) -> Any:
    """Data (H, W, C, N), weights (H, W, I, O)."""
    return _convolution(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride, padding, 1, 1).transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, groups: int = 1) -> Any:
    return _convolution(a_np, w_np, stride, padding, 1, groups)


def conv3d_ndhwc_python(a_np: Any, w_np: Any, stride: Any, padding: Any, groups: int = 1) -> Any:
    """Weights (D, H, W, I, O)."""
    return _last(_convolution(_first(a_np), w_np.transpose(4, 3, 0, 1, 2), stride, padding, 1, groups))


def depthwise_conv2d_python_nchw(input_np: Any, filter_np: Any, stride: Any, padding: Any) -> Any:
    """Weights (C, multiplier, H, W)."""
    c, m, h, w = filter_np.shape
    return _convolution(input_np, filter_np.reshape(c * m, 1, h, w), stride, padding, 1, c)


def depthwise_conv2d_python_nhwc(input_np: Any, filter_np: Any, stride: Any, padding: Any) -> Any:
    """Weights (H, W, C, multiplier)."""
    return _last(depthwise_conv2d_python_nchw(_first(input_np), filter_np.transpose(2, 3, 0, 1), stride, padding))


def _transposed(a: Any, w: Any, stride: Any, padding: Any, output_padding: Any) -> Any:
    """Transposed convolution of (N, I, spatial...) with weights (I, O, spatial...)."""
    n = a.ndim - 2
    strides, more, kernel = _list(stride, n), _list(output_padding, n), w.shape[2:]
    pads = _pads(padding, kernel)
    full = np.zeros((a.shape[0], w.shape[1], *((d - 1) * s + k + m for d, s, k, m in zip(a.shape[2:], strides, kernel, more))), _wide(a).dtype)
    for tap in np.ndindex(*kernel):
        part = np.moveaxis(np.tensordot(_wide(a), _wide(w)[(slice(None), slice(None), *tap)], axes=([1], [0])), -1, 1)
        full[(slice(None), slice(None), *(slice(t, t + (d - 1) * s + 1, s) for t, d, s in zip(tap, a.shape[2:], strides)))] += part
    cut = tuple(slice(before, size - after) for (before, after), size in zip(pads, full.shape[2:]))
    return full[(slice(None), slice(None), *cut)].astype(a.dtype)


def conv1d_transpose_ncw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, output_padding: Any = (0,)) -> Any:
    return _transposed(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, output_padding: Any = (0, 0)) -> Any:
    return _transposed(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nhwc_python(a_nhwc: Any, weight: Any, weight_format: str, stride: Any, padding: Any, output_padding: Any = (0, 0)) -> Any:
    """weight_format: HWIO, HWOI, OIHW or IOHW, where I counts the channels of the data."""
    order = [weight_format.index(letter) for letter in "IOHW"]
    return _last(_transposed(_first(a_nhwc), weight.transpose(order), stride, padding, output_padding))


def conv3d_transpose_ncdhw_python(a_np: Any, w_np: Any, stride: Any, padding: Any, output_padding: Any = (0, 0, 0)) -> Any:
    return _transposed(a_np, w_np, stride, padding, output_padding)


def poolnd_python(np_data: Any, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], padding_before: Sequence[int], padding_after: Sequence[int],
                  pool_type: str, count_include_pad: bool = True, ceil_mode: bool = False, dtype: str = "float32", layout: str = "NCHW") -> Any:
    """Pools over the spatial axes of a layout; the part of a last window outside of the padded data is ignored."""
    layout = layout if len(layout) == np_data.ndim else "NCDHW"[:2] + "DHW"[5 - np_data.ndim:]  # the default fits pictures; of others the channels are second
    order = [layout.index(c) for c in ("N", "C", *(c for c in layout if c not in "NC"))]
    x = _wide(np_data.transpose(order))
    n = len(kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    room = [x.shape[2 + i] + padding_before[i] + padding_after[i] - reach[i] for i in range(n)]
    places = [(-(-r // s) if ceil_mode else r // s) + 1 for r, s in zip(room, strides)]
    grow = [(0, 0), (0, 0), *((b, a + max(0, (p - 1) * s - r)) for b, a, p, s, r in zip(padding_before, padding_after, places, strides, room))]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    cut = (slice(None), slice(None), *(slice(0, p * s, s) for p, s in zip(places, strides)), *(slice(None, None, d) for d in dilation))
    windows = lambda v, fill: np.lib.stride_tricks.sliding_window_view(np.pad(v, grow, constant_values=fill), reach, tuple(range(2, 2 + n)))[cut]  # noqa: E731
    inner = tuple(range(2 + n, 2 + 2 * n))
    if pool_type == "max":
        out = windows(x, lowest).max(inner)
    else:
        ones = np.ones_like(x[:1, :1], dtype="int64")
        if count_include_pad:
            ones = np.pad(ones, [(0, 0), (0, 0), *zip(padding_before, padding_after)], constant_values=1)
            rest = [(0, 0), (0, 0), *((0, g[1] - a) for g, a in zip(grow[2:], padding_after))]
            counts = np.lib.stride_tricks.sliding_window_view(np.pad(ones, rest), reach, tuple(range(2, 2 + n)))[cut].sum(inner)
        else:
            counts = windows(ones, 0).sum(inner)
        out = windows(x, 0).sum(inner) / np.maximum(counts, 1)
    return out.astype(dtype).transpose(np.argsort(order))


def adaptive_pool(np_data: Any, out_size: Any, pool_type: str, layout: str) -> Any:
    """Each output pools its own slice: [i * in // out, ceil((i + 1) * in / out))."""
    sizes = _list(out_size, sum(c in "DHW" for c in layout))
    axes = [i for i, c in enumerate(layout) if c in "DHW"]
    out, reduce = np_data, np.mean if pool_type == "avg" else np.max
    for axis, size in zip(axes, sizes):
        n = np_data.shape[axis]
        out = np.stack([reduce(np.take(out, range(i * n // size, -(-(i + 1) * n // size)), axis), axis) for i in range(size)], axis)
    return out.astype(np_data.dtype)


def dense(x: Any, y: Any, bias: Any = None, use_bias: bool = False, use_relu: bool = False, out_dtype: Any = None) -> Any:
    out = np.dot(_wide(x), _wide(y).T)
    out = out + bias if use_bias else out
    return (np.maximum(out, 0) if use_relu else out).astype(out_dtype or x.dtype)


def batch_matmul(x: Any, y: Any, out_dtype: Any = None, trans_x: bool = False, trans_y: bool = True) -> Any:
    a, b = (v.transpose(0, 2, 1) if turned else v for v, turned in ((_wide(x), trans_x), (_wide(y), trans_y)))
    return np.matmul(a, b).astype(out_dtype or x.dtype)


def softmax_python(a_np: Any, axis: int = 1) -> Any:
    e = np.exp(a_np - a_np.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax_python(a_np: Any, axis: int = 1) -> Any:
    x = a_np - a_np.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def _shaped(v: Any, rank: int, axes: Sequence[int]) -> Any:
    return np.asarray(v).reshape([v.shape[list(axes).index(i)] if i in axes else 1 for i in range(rank)])


def batch_norm(x: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> list[Any]:
    """[result, moving_mean, moving_var]"""
    g, b, m, v = (_shaped(p, x.ndim, [axis % x.ndim]) for p in (gamma, beta, moving_mean, moving_var))
    out = (x - m) / np.sqrt(v + epsilon)
    return [(out * g if scale else out) + (b if center else 0), moving_mean, moving_var]


def _normalised(x: Any, axes: Sequence[int], epsilon: float) -> Any:
    return (x - x.mean(tuple(axes), keepdims=True)) / np.sqrt(x.var(tuple(axes), keepdims=True) + epsilon)


def layer_norm_python(data: Any, gamma: Any, beta: Any, axis: Any, epsilon: float = 1e-5) -> Any:
    axes = [a % data.ndim for a in _list(axis, 1)]
    return _normalised(data, axes, epsilon) * _shaped(gamma, data.ndim, axes) + (0 if beta is None else _shaped(beta, data.ndim, axes))


def instance_norm_python(data: Any, gamma: Any, beta: Any, axis: Any, epsilon: float = 1e-5) -> Any:
    """`axis` are the axes of the means; gamma and beta belong to axis 1."""
    return _normalised(data, _list(axis, 1), epsilon) * _shaped(gamma, data.ndim, [1]) + _shaped(beta, data.ndim, [1])


def group_norm_python(data: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int, axes: Sequence[int], epsilon: float = 1e-5) -> Any:
    """Normalises groups of channels, over their channels and `axes`."""
    c = channel_axis % data.ndim
    split = data.reshape(*data.shape[:c], num_groups, data.shape[c] // num_groups, *data.shape[c + 1:])
    over = [c + 1, *(a if a < c else a + 1 for a in (v % data.ndim for v in axes))]
    return _normalised(split, over, epsilon).reshape(data.shape) * _shaped(gamma, data.ndim, [c]) + _shaped(beta, data.ndim, [c])


def l2_normalize_python(a_np: Any, eps: float, axis: Any = None) -> Any:
    """axis: one, several, or none for all."""
    axes = None if axis is None else tuple(np.atleast_1d(axis).tolist())
    return a_np / np.sqrt(np.maximum((a_np ** 2).sum(axes, keepdims=True), eps))


def lrn_python(a_np: Any, size: int, axis: int, bias: float, alpha: float, beta: float) -> Any:
    half, square = size // 2, a_np ** 2
    total = sum(np.take(np.pad(square, [(half, half) if i == axis else (0, 0) for i in range(a_np.ndim)]), range(k, k + a_np.shape[axis]), axis) for k in range(2 * half + 1))
    return a_np / (bias + alpha * total / size) ** beta


def dilate_python(input_np: Any, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: Any = None) -> Any:
    out = np.full([(n - 1) * s + 1 for n, s in zip(input_np.shape, strides)], dilation_value, out_dtype or input_np.dtype)
    out[tuple(slice(None, None, s) for s in strides)] = input_np
    return out


def depth_to_space_python(data: Any, block_size: int, mode: str = "DCR") -> Any:
    n, c, h, w = data.shape
    b, deep = block_size, c // block_size ** 2
    split = data.reshape(n, b, b, deep, h, w).transpose(0, 3, 4, 1, 5, 2) if mode == "DCR" else data.reshape(n, deep, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(n, deep, h * b, w * b)


def space_to_depth_python(data: Any, block_size: int) -> Any:
    n, c, h, w = data.shape
    b = block_size
    return data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


def reorg_python(a_np: Any, stride: int) -> Any:
    """Darknet's reorg: the data is reinterpreted as (C / stride^2, H * stride, W * stride)."""
    n, c, h, w = a_np.shape
    deep = c // stride ** 2
    return a_np.reshape(n, deep, h, stride, w, stride).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * stride ** 2, h // stride, w // stride)


def _positions(n: int, size: int, mode: str) -> Any:
    i = np.arange(size, dtype="float64")
    if mode == "align_corners":
        return i * (n - 1) / (size - 1) if size > 1 else i * 0
    return (i + 0.5) * n / size - 0.5 if mode == "half_pixel" else i * n / size


def _resized(x: Any, axis: int, size: int, method: str, mode: str) -> Any:
    """Resizes one axis by source positions, clamped to the ends."""
    n = x.shape[axis]
    at = _positions(n, size, mode)
    get = lambda i: np.take(x, np.clip(i.astype("int64"), 0, n - 1), axis)  # noqa: E731
    along = lambda v: v.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])  # noqa: E731
    if method == "nearest_neighbor":
        return get(np.floor(at + 0.5) if mode == "align_corners" else np.floor(at))
    low = np.floor(at)
    part = at - low
    if method == "linear":
        return get(low) * along(1 - part) + get(low + 1) * along(part)
    a, out = -0.5, 0.0
    for k in range(-1, 3):
        d = np.abs(part - k)
        out = out + get(low + k) * along(np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, a * (((d - 5) * d + 8) * d - 4)))
    return out


def _resize(data: Any, size: Sequence[int], layout: str, method: str, mode: str) -> Any:
    out = data.astype("float64")
    for letter, n in zip("DHW"[3 - len(size):], size):
        out = _resized(out, layout.index(letter), int(n), {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(method, method), mode)
    return out.astype(data.dtype)


def resize1d_python(data: Any, scale: Any, layout: str = "NCW", method: str = "nearest_neighbor", coordinate_transformation_mode: str = "asymmetric") -> Any:
    sizes = [int(round(data.shape[layout.index(c)] * s)) for c, s in zip("W", scale)]
    return _resize(data, sizes, layout, method, coordinate_transformation_mode)


def resize2d_python(data: Any, scale: Any, layout: str = "NCHW", method: str = "nearest_neighbor", coordinate_transformation_mode: str = "asymmetric") -> Any:
    sizes = [int(round(data.shape[layout.index(c)] * s)) for c, s in zip("HW", scale)]
    return _resize(data, sizes, layout, method, coordinate_transformation_mode)


def resize3d_python(data: Any, scale: Any, layout: str = "NCDHW", method: str = "nearest_neighbor", coordinate_transformation_mode: str = "asymmetric") -> Any:
    sizes = [int(round(data.shape[layout.index(c)] * s)) for c, s in zip("DHW", scale)]
    return _resize(data, sizes, layout, method, coordinate_transformation_mode)


def gather_python(data: Any, axis: int, indices: Any) -> Any:
    return np.take_along_axis(data, indices.astype("int64"), axis)


def gather_nd_python(a_np: Any, indices_np: Any) -> Any:
    return a_np[tuple(indices_np.astype("int64"))]


def strided_slice_python(data: Any, begin: Any, end: Any, strides: Any, slice_mode: str = "end", axes: Any = None) -> Any:
    """With slice_mode "size", `end` holds sizes, -1 for the rest, and the strides are 1."""
    axes = range(len(begin)) if axes is None else axes
    cut = [slice(None)] * data.ndim
    for k, axis in enumerate(axes):
        step = 1 if slice_mode == "size" or not strides else strides[k] if k < len(strides) else 1
        stop = end[k] if k < len(end) else None
        if slice_mode == "size":
            stop = None if stop in (None, -1) else begin[k] + stop
        cut[axis] = slice(begin[k], stop, step)
    return data[tuple(cut)]


def slice_axis_python(data: Any, axis: int, begin: int, end: int | None = None) -> Any:
    return data[tuple(slice(begin, end) if i == axis else slice(None) for i in range(data.ndim))]


def sequence_mask(data: Any, valid_length: Any, mask_value: float, axis: int) -> Any:
    """data (length, batch, ...), or (batch, length, ...) with axis 1."""
    place = np.arange(data.shape[axis]).reshape([-1 if d == axis else 1 for d in range(data.ndim)])
    length = np.asarray(valid_length).reshape([-1 if d == 1 - axis else 1 for d in range(data.ndim)])
    return np.where(place < length, data, mask_value).astype(data.dtype)


def one_hot(indices: Any, on_value: float, off_value: float, depth: int, axis: int, dtype: Any) -> Any:
    hit = np.expand_dims(indices, axis if axis >= 0 else indices.ndim) == np.arange(depth).reshape(
        [-1 if d == (axis if axis >= 0 else indices.ndim) else 1 for d in range(indices.ndim + 1)])
    return np.where(hit, on_value, off_value).astype(dtype)


def searchsorted_ref(sorted_sequence: Any, values: Any, right: bool, out_dtype: Any) -> Any:
    side = "right" if right else "left"
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    found = [np.searchsorted(row, v, side) for row, v in zip(rows, values.reshape(len(rows), -1))]
    return np.array(found, out_dtype).reshape(values.shape)


def nll_loss(predictions: Any, targets: Any, weights: Any, reduction: str = "mean", ignore_index: int = -100) -> Any:
    kept = targets != ignore_index
    safe = np.where(kept, targets, 0)
    weight = np.where(kept, weights[safe], 0)
    loss = -weight * np.take_along_axis(predictions, np.expand_dims(safe, 1), 1).squeeze(1)
    if reduction == "none":
        return loss.astype(predictions.dtype)
    return (loss.sum() / weight.sum() if reduction == "mean" else loss.sum()).astype(predictions.dtype)


def _bilinear(picture: Any, y: float, x: float) -> Any:
    """Bilinear interpolation between pixels of (C, H, W) at a position inside the image."""
    _, height, width = picture.shape
    ya, xa = int(y), int(x)
    yb, xb, wy, wx = min(ya + 1, height - 1), min(xa + 1, width - 1), y - ya, x - xa
    return (1 - wy) * ((1 - wx) * picture[:, ya, xa] + wx * picture[:, ya, xb]) + wy * ((1 - wx) * picture[:, yb, xa] + wx * picture[:, yb, xb])


def roi_align_nchw_python(a_np: Any, rois_np: Any, pooled_size: Any, spatial_scale: float, sample_ratio: int, mode: Any = b"avg") -> Any:
    (ph, pw), (_, channels, height, width) = _list(pooled_size, 2), a_np.shape
    out = np.zeros((len(rois_np), channels, ph, pw), a_np.dtype)
    for k, roi in enumerate(rois_np.astype("float64")):
        x0, y0, x1, y1 = roi[1:] * spatial_scale
        bh, bw = max(y1 - y0, 1.0) / ph, max(x1 - x0, 1.0) / pw
        gh, gw = (sample_ratio, sample_ratio) if sample_ratio > 0 else (int(np.ceil(bh)), int(np.ceil(bw)))
        for i, j in np.ndindex(ph, pw):
            values = []
            for a, b in np.ndindex(gh, gw):
                y, x = y0 + (i + (a + 0.5) / gh) * bh, x0 + (j + (b + 0.5) / gw) * bw
                outside = y < -1 or y > height or x < -1 or x > width
                values.append(np.zeros(channels) if outside else _bilinear(a_np[int(roi[0])], min(max(y, 0), height - 1), min(max(x, 0), width - 1)))
            out[k, :, i, j] = np.mean(values, 0) if mode in (b"avg", "avg", 0) else np.max(values, 0)
    return out


def roi_align_nhwc_python(a_np: Any, rois_np: Any, pooled_size: Any, spatial_scale: float, sample_ratio: int, mode: Any = b"avg") -> Any:
    return _last(roi_align_nchw_python(_first(a_np), rois_np, pooled_size, spatial_scale, sample_ratio, mode))


def roi_pool_nchw_python(a_np: Any, rois_np: Any, pooled_size: Any, spatial_scale: float) -> Any:
    (ph, pw), (_, channels, height, width) = _list(pooled_size, 2), a_np.shape
    out = np.zeros((len(rois_np), channels, ph, pw), a_np.dtype)
    for k, roi in enumerate(rois_np):
        x0, y0, x1, y1 = (int(np.floor(abs(v) + 0.5) * np.sign(v)) for v in roi[1:].astype("float64") * spatial_scale)
        bh, bw = max(y1 - y0 + 1, 1) / ph, max(x1 - x0 + 1, 1) / pw
        for i, j in np.ndindex(ph, pw):
            rows = np.clip([int(np.floor(i * bh + 1e-5)) + y0, int(np.ceil((i + 1) * bh - 1e-5)) + y0], 0, height)
            columns = np.clip([int(np.floor(j * bw + 1e-5)) + x0, int(np.ceil((j + 1) * bw - 1e-5)) + x0], 0, width)
            if rows[0] < rows[1] and columns[0] < columns[1]:
                out[k, :, i, j] = a_np[int(roi[0]), :, rows[0]:rows[1], columns[0]:columns[1]].max((1, 2))
    return out


def deformable_conv2d_nchw_python(a_np: Any, offset_np: Any, w_np: Any, stride: Any, padding: Any, dilation: Any, deformable_groups: int, groups: int) -> Any:
    """Taps outside of the image read 0."""
    n, channels, height, width = a_np.shape
    outputs, _, kh, kw = w_np.shape
    (sy, sx), (dy, dx) = _list(stride, 2), _list(dilation, 2)
    (top, _), (left, _) = _pads(padding, [(kh - 1) * dy + 1, (kw - 1) * dx + 1])
    rows, columns = offset_np.shape[2:]
    taps = np.zeros((n, channels, kh, kw, rows, columns))
    share = channels // deformable_groups
    for b, g, i, j, r, c in np.ndindex(n, deformable_groups, kh, kw, rows, columns):
        at = (g * kh * kw + i * kw + j) * 2
        y, x = r * sy - top + i * dy + offset_np[b, at, r, c], c * sx - left + j * dx + offset_np[b, at + 1, r, c]
        if 0 <= y < height and 0 <= x < width:
            taps[b, g * share:(g + 1) * share, i, j, r, c] = _bilinear(a_np[b, g * share:(g + 1) * share], float(y), float(x))
    parts = [np.einsum("ncijrw,ocij->norw", taps[:, g * channels // groups:(g + 1) * channels // groups], w_np[g * outputs // groups:(g + 1) * outputs // groups])
             for g in range(groups)]
    return np.concatenate(parts, 1).astype(a_np.dtype)


def deformable_conv2d_nhwc_python(a_np: Any, offset_np: Any, w_np: Any, stride: Any, padding: Any, dilation: Any, deformable_groups: int, groups: int) -> Any:
    return _last(deformable_conv2d_nchw_python(_first(a_np), _first(offset_np), w_np.transpose(3, 2, 0, 1), stride, padding, dilation, deformable_groups, groups))


def crop_and_resize_python(image: Any, boxes: Any, box_indices: Any, crop_size: Sequence[int], layout: str, method: str = "bilinear", extrapolation_value: float = 0) -> Any:
    """Boxes (y0, x0, y1, x1) from 0 to 1 between the outer pixels' centres; positions are computed in float32, results are float64."""
    x = image if layout == "NCHW" else _first(image)
    _, channels, height, width = x.shape
    out = np.ones((len(boxes), channels, *crop_size))
    for k, box in enumerate(boxes):
        at = []
        for a, n, e in ((0, crop_size[0], height), (1, crop_size[1], width)):
            with np.errstate(all="ignore"):
                step = np.float32((e - 1) * (box[a + 2] - box[a])) / np.float32(n - 1)
                at.append([float(box[a] * (e - 1) + step * i) for i in range(n)])
        picture = x[int(box_indices[k])]
        for i, j in np.ndindex(*crop_size):
            y, v = at[0][i], at[1][j]
            if not (0 <= y <= height - 1 and 0 <= v <= width - 1):
                out[k, :, i, j] = extrapolation_value
            else:
                out[k, :, i, j] = _bilinear(picture, y, v) if method == "bilinear" else picture[:, int(np.round(y)), int(np.round(v))]
    return out if layout == "NCHW" else _last(out)


def depthwise_conv2d_python_nchwc(input_np: Any, filter_np: Any, stride: Any, padding: Any) -> Any:
    """(N, C, H, W, c) with weights (C, 1, H, W, 1, c)."""
    n, blocks, h, w, inner = input_np.shape
    plain = input_np.transpose(0, 1, 4, 2, 3).reshape(n, blocks * inner, h, w)
    weights = filter_np.transpose(0, 5, 1, 4, 2, 3).reshape(filter_np.shape[0] * filter_np.shape[5], 1, *filter_np.shape[2:4])
    out = depthwise_conv2d_python_nchw(plain, weights, stride, padding)
    return out.reshape(n, blocks, inner, *out.shape[2:]).transpose(0, 1, 3, 4, 2)


def conv2d_backward_weight_python(dy_np: Any, x_np: Any, kernel_size: Any, stride: Any, padding: Any, groups: int = 1, channels: int | None = None) -> Any:
    """The gradient of a convolution in NCHW with respect to the weights (OIHW)."""
    (kh, kw), (sy, sx), (py, px) = _list(kernel_size, 2), _list(stride, 2), _list(padding, 2)
    x = np.pad(x_np, [(0, 0), (0, 0), (py, py), (px, px)])
    _, outputs, rows, columns = dy_np.shape
    share_in, share_out = x.shape[1] // groups, outputs // groups
    out = np.zeros((outputs, share_in, kh, kw), dy_np.dtype)
    for g, i, j in np.ndindex(groups, kh, kw):
        part = x[:, g * share_in:(g + 1) * share_in, i:i + rows * sy:sy, j:j + columns * sx:sx][:, :, :rows, :columns]
        own = slice(g * share_out, (g + 1) * share_out)
        out[own, :, i, j] = np.einsum("nohw,nihw->oi", dy_np[:, own], part)
    return out


from . import places, schedules  # noqa: E402
from .places import *  # noqa: E402, F403
from .schedules import *  # noqa: E402, F403

__all__ = [*places.__all__, *schedules.__all__, *(name for name, value in list(globals().items()) if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == __name__)]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"topi.testing has no '{name}'; there are {', '.join(__all__)}")
