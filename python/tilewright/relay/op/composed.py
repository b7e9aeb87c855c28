# SPDX-License-Identifier: Apache-2.0
"""Classic operators that are made of others here, by full name. Where a shape decides what they are made of, it must be known."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..expr import Call, Constant, Expr, Tuple, TupleWrapper, _like, const


def _dtype(x: Any) -> str:
    return _like(x).checked_type.dtype


def _shape(x: Any, name: str) -> list[int]:
    try:
        return [int(d) for d in _like(x).checked_type.shape]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} needs the shape of its operand, which is not known: {error}") from None


def _reshape(x: Any, shape: Sequence[int]) -> Call:
    return Call("reshape", [x], {"newshape": [int(s) for s in shape]})


def _cast(x: Any, dtype: str) -> Call:
    return Call("cast", [x], {"dtype": dtype})


def _take(x: Any, indices: Any, axis: int) -> Call:
    return Call("take", [x, const(np.asarray(indices, "int64")) if not isinstance(indices, Expr) else indices], {"axis": axis})


def _slice(x: Any, axis: int, begin: int, end: int) -> Call:
    return Call("strided_slice", [x], {"begin": [begin], "end": [end], "strides": [1], "axes": [axis]})


def _concatenate(parts: Sequence[Any], axis: int = 0) -> Call:
    return Call("concatenate", [Tuple(list(parts))], {"axis": axis})


def _number(value: Any, name: str) -> Any:
    if isinstance(value, Constant):
        return value.data.numpy()
    if isinstance(value, Expr):
        raise ValueError(f"{name} must be constant")
    return np.asarray(value)


# --- indices

def sliding_window(data: Any, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Any:
    """Windows over the axes from `axis` on: (..., places, window)."""
    shape = _shape(data, "sliding_window")
    if len(window_shape) != len(shape) - axis or len(strides) != len(window_shape):
        raise ValueError(f"sliding_window over {len(shape) - axis} axes needs as many sizes and strides")
    out = _like(data)
    for i, (window, stride) in enumerate(zip(window_shape, strides)):
        places = (shape[axis + i] - window) // stride + 1
        if places < 1:
            raise ValueError(f"a window of {window} does not fit an axis of {shape[axis + i]}")
        # The axis becomes (places, window); windows of earlier axes lie at the end, in order.
        out = _take(out, np.arange(places)[:, None] * stride + np.arange(window)[None], axis + i)
        order = [d for d in range(len(shape) + i + 1) if d != axis + i + 1] + [axis + i + 1]
        out = Call("transpose", [out], {"axes": order})
    return out


def unravel_index(indices: Any, shape: Any) -> Any:
    """Coordinates of places in a flattened tensor: one row for each axis."""
    dtype = _dtype(indices)
    rank = _shape(shape, "unravel_index")[0]
    sizes = [_reshape(_slice(_cast(shape, dtype), 0, i, i + 1), []) for i in range(rank)]
    rest, rows = _like(indices), []
    for i in reversed(range(rank)):
        rows.append(Call("expand_dims", [Call("floor_mod", [rest, sizes[i]])], {"axis": 0}))
        rest = Call("floor_divide", [rest, sizes[i]])
    return _concatenate(rows[::-1]) if rank > 1 else rows[0]


def adv_index(inputs: Sequence[Any]) -> Any:
    """data[indices...], the indices broadcast against each other."""
    data, *indices = inputs.astuple().fields if isinstance(inputs, TupleWrapper) else inputs
    shape = list(np.broadcast_shapes(*(tuple(_shape(i, "adv_index")) for i in indices)))
    rows = [Call("expand_dims", [Call("broadcast_to", [_cast(i, "int64")], {"shape": shape})], {"axis": 0}) for i in indices]
    return Call("gather_nd", [data, _concatenate(rows) if len(rows) > 1 else rows[0]])


def invert_permutation(data: Any) -> Call:
    return Call("argsort", [data], {"axis": -1, "is_ascend": True, "dtype": _dtype(data)})


def searchsorted(sorted_sequence: Any, values: Any, right: bool = False, dtype: str = "int32") -> Call:
    """Where each value goes in its sorted row: how many elements are below it (`right`: not above it)."""
    rows, wanted = _shape(sorted_sequence, "searchsorted"), _shape(values, "searchsorted")
    compare = "less_equal" if right else "less"
    left = _reshape(sorted_sequence, [1] * len(wanted) + rows) if len(rows) == 1 else _reshape(sorted_sequence, rows[:-1] + [1] + rows[-1:])
    return Call("sum", [_cast(Call(compare, [left, _reshape(values, wanted + [1])]), dtype)], {"axis": [-1]})


def sparse_to_dense(sparse_indices: Any, output_shape: Sequence[int], sparse_values: Any, default_value: Any = 0) -> Call:
    """Values at indices, (count,) or (count, rank), in a tensor of one default value."""
    from ...runtime.ndarray import NDArray
    values = _like(sparse_values)
    output_shape = [int(s) for s in (output_shape.numpy() if isinstance(output_shape, NDArray) else _number(output_shape, "output_shape"))]
    default = default_value if isinstance(default_value, Expr) else const(default_value, values.checked_type.dtype)
    base = Call("full", [default], {"shape": output_shape, "dtype": values.checked_type.dtype})
    places = _shape(sparse_indices, "sparse_to_dense")
    count = places[0] if places else 1
    index = _reshape(_cast(sparse_indices, "int64"), [count, len(output_shape)])
    flat = values if _shape(values, "sparse_to_dense") == [count] else Call("broadcast_to", [_reshape(values, [-1])], {"shape": [count]})
    return Call("scatter_nd", [base, Call("transpose", [index], {"axes": [1, 0]}), flat], {"mode": "update"})


def strided_set(data: Any, v: Any, begin: Any, end: Any, strides: Any = None) -> Call:
    """data with data[begin:end:strides] = v."""
    shape = _shape(data, "strided_set")
    begin, end = ([int(i) for i in _number(p, "begin and end")] for p in (begin, end))
    strides = [1] * len(begin) if strides is None else [int(i) for i in _number(strides, "strides")]
    strides += [1] * (len(begin) - len(strides))
    axes = [np.arange(n)[slice(*(s if i < len(begin) else (None, None, None)))] for i, (n, s) in
            enumerate(zip(shape, list(zip(begin, end, strides)) + [(0, 0, 0)] * (len(shape) - len(begin))))]
    index = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(len(shape), -1)
    return Call("scatter_nd", [data, const(index.astype("int64")), _reshape(v, [-1])], {"mode": "update"})


def matrix_set_diag(data: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Call:
    """data with its diagonals k[0]..k[1] (or k) replaced; shorter ones lie right or left in their row, as `align` says for those above and below."""
    shape = _shape(data, "matrix_set_diag")
    low, high = (int(k), int(k)) if isinstance(k, (int, np.integer)) else (int(k[0]), int(k[-1]))
    rows, cols = shape[-2:]
    above, below = align.split("_")
    longest = min(rows + min(high, 0), cols - max(low, 0))
    index, inside = np.zeros((rows, cols), "int64"), np.zeros((rows, cols), bool)
    for r in range(rows):
        for c in range(cols):
            d = c - r
            if low <= d <= high:
                length = min(rows + min(d, 0), cols - max(d, 0))
                right = (above if d >= 0 else below) == "RIGHT"
                inside[r, c] = True
                index[r, c] = (high - d) * longest + (longest - length if right else 0) + min(r, c)
    lead = shape[:-2]
    count = high - low + 1
    flat = _reshape(diagonal, lead + [count * longest])
    spread = _reshape(_take(flat, index.reshape(-1), len(lead)), shape)
    return Call("where", [const(inside), spread, data])


# --- arithmetic

def fixed_point_multiply(data: Any, multiplier: int, shift: int) -> Call:
    """round(data * multiplier * 2^(shift - 31)), ties towards plus infinity; int32."""
    wide = Call("multiply", [_cast(data, "int64"), const(int(multiplier), "int64")])
    right = 31 - int(shift)
    moved = Call("add", [wide, const(1 << (right - 1), "int64")]) if right > 0 else wide
    return _cast(Call("right_shift", [moved, const(max(right, 0), "int64")]), "int32")


def hardswish(data: Any) -> Call:
    gate = Call("clip", [Call("add", [data, const(3.0, _dtype(data))])], {"a_min": 0.0, "a_max": 6.0})
    return Call("divide", [Call("multiply", [data, gate]), const(6.0, _dtype(data))])


def dft(re_data: Any, im_data: Any, inverse: Any = False) -> TupleWrapper:
    """The discrete Fourier transform of the last axis: (real part, imaginary part)."""
    n = _shape(re_data, "dft")[-1]
    angle = (1 if bool(_number(inverse, "inverse")) else -1) * 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    scale = 1 / n if bool(_number(inverse, "inverse")) else 1.0
    cos, sin = (const((f(angle) * scale).astype(_dtype(re_data))) for f in (np.cos, np.sin))
    times = lambda x, w: Call("nn.dense", [x, w])  # noqa: E731  both matrices are symmetric
    return TupleWrapper(Tuple([Call("subtract", [times(re_data, cos), times(im_data, sin)]), Call("add", [times(re_data, sin), times(im_data, cos)])]), 2)


def stft(data: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, normalized: bool = False,
         onesided: bool = True) -> Call:
    """The short-time Fourier transform of (batch, time): (batch, frequencies, frames, 2)."""
    batch, time = _shape(data, "stft")
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    frames, bins = (time - n_fft) // hop + 1, n_fft // 2 + 1 if onesided else n_fft
    framed = _take(data, np.arange(frames)[:, None] * hop + np.arange(n_fft)[None], 1)
    if window is not None or length < n_fft:
        before = (n_fft - length) // 2
        window = const(np.ones(length, _dtype(data))) if window is None else window
        padded = Call("nn.pad", [window, const(0, _dtype(data))], {"pad_width": [[before, n_fft - length - before]]})
        framed = Call("multiply", [framed, padded])
    angle = -2 * np.pi * np.outer(np.arange(bins), np.arange(n_fft)) / n_fft
    scale = 1 / np.sqrt(n_fft) if normalized else 1.0
    parts = [Call("transpose", [Call("nn.dense", [framed, const((f(angle) * scale).astype(_dtype(data)))])], {"axes": [0, 2, 1]}) for f in (np.cos, np.sin)]
    return Call("stack", [Tuple(parts)], {"axis": -1})


def contrib_reverse_reshape(data: Any, newshape: Sequence[int]) -> Call:
    """reshape with its codes read from the last axis on."""
    shape, out = _shape(data, "contrib_reverse_reshape"), []
    for i, code in enumerate(reversed(list(newshape))):
        if code < -1:
            raise ValueError(f"contrib_reverse_reshape does not have the code {code}")
        out.append(shape[len(shape) - 1 - i] if code == 0 else code)
    return _reshape(data, out[::-1])


# --- networks

def dilate(data: Any, strides: Sequence[int], dilation_value: float = 0.0) -> Any:
    """strides[i] - 1 values between the elements of axis i."""
    shape = _shape(data, "nn.dilate")
    out = _like(data)
    for axis, stride in enumerate(strides):
        if int(stride) == 1:
            continue
        n = shape[axis]
        wide = Call("expand_dims", [out], {"axis": axis + 1})
        width = [[0, int(stride) - 1] if d == axis + 1 else [0, 0] for d in range(len(shape) + 1)]
        padded = Call("nn.pad", [wide, const(dilation_value, _dtype(data))], {"pad_width": width})
        shape[axis] = n * int(stride)
        out = _slice(_reshape(padded, shape), axis, 0, (n - 1) * int(stride) + 1)
        shape[axis] = (n - 1) * int(stride) + 1
    return out


def nll_loss(predictions: Any, targets: Any, weights: Any, reduction: str = "mean", ignore_index: int = -100) -> Any:
    """The negative log likelihood of (N, C, ...) predictions: -weights[target] * prediction[target]; targets of ignore_index count nothing."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is mean, sum or none, not {reduction}")
    dtype = _dtype(predictions)
    kept = Call("not_equal", [targets, const(ignore_index, _dtype(targets))])
    safe = Call("where", [kept, targets, Call("zeros_like", [targets])])
    chosen = Call("squeeze", [Call("gather", [predictions, Call("expand_dims", [safe], {"axis": 1})], {"axis": 1})], {"axis": [1]})
    weight = Call("multiply", [Call("take", [weights, safe], {"axis": 0}), _cast(kept, dtype)])
    loss = Call("negative", [Call("multiply", [chosen, weight])])
    if reduction == "none":
        return loss
    total = Call("sum", [loss])
    return total if reduction == "sum" else Call("divide", [total, Call("sum", [weight])])


def correlation(data1: Any, data2: Any, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any, is_multiply: bool,
                layout: str = "NCHW") -> Any:
    """Means of products (or absolute differences) of patches of two images, one channel for each displacement."""
    if layout != "NCHW":
        raise ValueError("nn.correlation is for NCHW")
    pads = [int(padding)] if isinstance(padding, int) else [int(p) for p in padding]
    top, left, bottom, right = pads * 4 if len(pads) == 1 else pads * 2 if len(pads) == 2 else pads
    n, c, h, w = _shape(data1, "nn.correlation")
    width = [[0, 0], [0, 0], [top, bottom], [left, right]]
    a, b = (Call("nn.pad", [d, const(0, _dtype(d))], {"pad_width": width}) for d in (data1, data2))
    radius, border = max_displacement // stride2, max_displacement + (kernel_size - 1) // 2
    height, breadth = h + top + bottom, w + left + right
    rows, cols = -(-(height - 2 * border) // stride1), -(-(breadth - 2 * border) // stride1)
    if rows < 1 or cols < 1:
        raise ValueError("nn.correlation leaves no output; pad more")

    def patch(x: Any, dy: int, dx: int) -> Call:
        y0, x0 = max_displacement + dy, max_displacement + dx
        return Call("strided_slice", [x], {"begin": [y0, x0], "end": [y0 + (rows - 1) * stride1 + 1, x0 + (cols - 1) * stride1 + 1],
                                           "strides": [stride1, stride1], "axes": [2, 3]})
    outputs = []
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            total = None
            for ky in range(kernel_size):
                for kx in range(kernel_size):
                    p, q = patch(a, ky, kx), patch(b, ky + dy * stride2, kx + dx * stride2)
                    term = Call("multiply", [p, q]) if is_multiply else Call("abs", [Call("subtract", [p, q])])
                    total = term if total is None else Call("add", [total, term])
            outputs.append(Call("sum", [total], {"axis": [1], "keepdims": True}))
    return Call("divide", [_concatenate(outputs, 1), const(float(kernel_size * kernel_size * c), _dtype(data1))])


def conv2d_backward_weight(grad: Any, data: Any, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1, channels: Any = None,
                           kernel_size: Any = None, grad_layout: str = "NCHW", data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_dtype: str = "") -> Any:
    """The gradient of a convolution by its weight: the data convolved with the gradient."""
    if groups != 1 or (grad_layout, data_layout, kernel_layout) != ("NCHW", "NCHW", "OIHW"):
        raise ValueError("nn.conv2d_backward_weight is for NCHW, OIHW and one group")
    from . import nn
    pads = list(padding) if isinstance(padding, (list, tuple)) else [padding]
    swap = lambda x: Call("transpose", [x], {"axes": [1, 0, 2, 3]})  # noqa: E731
    full = nn.conv2d(swap(data), swap(grad), strides=dilation, padding=pads, dilation=strides)
    size = [int(k) for k in kernel_size] if kernel_size is not None else _shape(full, "nn.conv2d_backward_weight")[2:]
    return Call("strided_slice", [swap(full)], {"begin": [0, 0], "end": size, "strides": [1, 1], "axes": [2, 3]})


def upsampling3d(data: Any, scale_d: Any = 1, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCDHW", method: str = "nearest_neighbor",
                 coordinate_transformation_mode: str = "half_pixel") -> Call:
    shape = _shape(data, "nn.upsampling3d")
    size = [int(round(shape[layout.index(axis)] * float(s))) for axis, s in zip("DHW", (scale_d, scale_h, scale_w))]
    nearest = method == "nearest_neighbor"
    attrs = {"size": size, "layout": layout, "method": method if nearest else "linear",
             "coordinate_transformation_mode": "asymmetric" if nearest else coordinate_transformation_mode}
    return Call("image.resize3d", [data], {**attrs, "rounding_method": "floor"} if nearest else attrs)


def identity(data: Any, *_: Any, **__: Any) -> Any:
    """What marks places for other parts of the classic stack changes nothing here."""
    return _like(data)


TABLE: dict[str, Any] = {f.__name__: f for f in (sliding_window, unravel_index, adv_index, invert_permutation, searchsorted, sparse_to_dense, strided_set, matrix_set_diag,
                                                 fixed_point_multiply, hardswish, dft, stft, contrib_reverse_reshape)}
TABLE.update({f"nn.{f.__name__}": f for f in (dilate, nll_loss, correlation, conv2d_backward_weight, upsampling3d)})
TABLE.update({f"annotation.{name}": identity for name in ("checkpoint", "cast_hint", "bitpack_start", "bitpack_end")})

__all__ = ["TABLE"]
