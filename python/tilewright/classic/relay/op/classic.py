# SPDX-License-Identifier: Apache-2.0
"""Operators whose classic Python signature differs from the operator table, and composite operators; keyed by full name."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import _core
from ...error import InvalidValue
from ...registry import register_func
from ...target.virtual_device import VirtualDevice, device_fields
from ..expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, TupleWrapper, Var, _like, const
from .bit_serial import TABLE as _BIT_SERIAL
from .memory import TABLE as _MEMORY
from .registry import register as set_attribute
from .sparse import TABLE as _SPARSE
from .detection import TABLE as _DETECTION

_debuggers = itertools.count()


def _dtype(x: Any) -> str:
    """The dtype of an expression, float32 if it is not known yet."""
    return x._type.dtype if isinstance(x, Expr) and x._typed and hasattr(x._type, "dtype") else "float32"


def _shape(x: Any, why: str) -> list[int]:
    try:
        return [int(d) for d in _like(x).checked_type.shape]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{why} needs the shape of its operand, which is not known: {error}") from None


def _scalar(value: Any, like: Any) -> Any:
    return const(value, _dtype(like)) if isinstance(value, (int, float, np.generic)) else value


def _of_dtype(value: Any, dtype: str) -> Any:
    """Casts a number or expression to a dtype, unless it already has that dtype or is untyped."""
    if isinstance(value, (int, float, bool, np.generic)):
        return const(value, dtype)
    return Call("cast", [value], {"dtype": dtype}) if isinstance(value, Expr) and value._typed and _dtype(value) != dtype else value


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    if stop is None:
        start, stop = None, start
    make = lambda v, default: _of_dtype(default if v is None else v, dtype)  # noqa: E731
    return Call("arange", [make(start, 0), make(stop, 0), make(step, 1)], {"dtype": dtype})


def take(data: Any, indices: Any, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Call:
    return Call("take", [data, indices], {"axis": axis, "batch_dims": batch_dims, "mode": mode})


def gather(data: Any, axis: int, indices: Any) -> Call:
    return Call("gather", [data, indices], {"axis": axis})


_LAST = 2**31 - 1


def strided_slice(data: Any, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end") -> Call:
    if any(isinstance(v, Expr) for v in (begin, end, strides)):
        parts = [_like(v if isinstance(v, Expr) else const(np.array(v, "int64"))) for v in (begin, end)]
        ones = strides if isinstance(strides, Expr) else const(np.array(strides, "int64")) if strides else Call("ones_like", [parts[0]])
        return Call("dyn.strided_slice", [data, *parts, ones], {"slice_mode": slice_mode})
    begin, end = [0 if b is None else int(b) for b in begin], [_LAST if e is None else int(e) for e in end]
    strides = [1] * len(begin) if strides is None else [int(s) for s in strides]
    if axes is None:  # axes without an entry are taken whole
        count = max(len(begin), len(end), len(strides))
        strides += [1] * (count - len(strides))
        begin += [0 if s > 0 else _LAST for s in strides[len(begin):]]
        end += [-1 if slice_mode == "size" else _LAST if s > 0 else 0 for s in strides[len(end):]]
    attrs: dict[str, Any] = {"begin": begin, "end": end, "strides": strides, "slice_mode": slice_mode}
    return Call("strided_slice", [data], attrs if axes is None else {**attrs, "axes": [int(a) for a in axes]})


def _dynamic(name: str, attribute: str) -> Any:
    def make(data: Any, value: Any, *rest: Any, **attrs: Any) -> Call:
        if isinstance(value, Expr):
            return Call(f"dyn.{name}", [data, value], attrs)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Expr) for v in value):
            from . import concatenate  # sizes computed at run time
            parts = [Call("reshape", [Call("cast", [v], {"dtype": "int64"})], {"newshape": [1]}) if isinstance(v, Expr) else const(np.array([v], "int64")) for v in value]
            return Call(f"dyn.{name}", [data, concatenate(parts, axis=0)], attrs)
        numbers = [value] if isinstance(value, int) else [int(v) for v in value]
        return Call(name, [data], {attribute: numbers, **attrs})
    return make


def reshape(data: Any, newshape: Any, allowzero: bool = False) -> Call:
    return _dynamic("reshape", "newshape")(data, newshape, allowzero=allowzero)


def broadcast_to(data: Any, shape: Any) -> Call:
    return _dynamic("broadcast_to", "shape")(data, shape)


def tile(data: Any, reps: Any) -> Call:
    return _dynamic("tile", "reps")(data, reps)


def full(fill_value: Any, shape: Any = (), dtype: str = "") -> Call:
    fill_value = _of_dtype(fill_value, dtype) if dtype else const(fill_value) if isinstance(fill_value, (int, float, bool)) else fill_value
    if isinstance(shape, Expr):
        return Call("dyn.full", [fill_value, shape], {"dtype": dtype})
    return Call("full", [fill_value], {"shape": [shape] if isinstance(shape, int) else list(shape), "dtype": dtype})


def _filled(name: str) -> Any:
    def make(shape: Any, dtype: str) -> Call:
        if isinstance(shape, Expr):
            return Call(f"dyn.{name}", [shape], {"dtype": dtype})
        return Call(name, [], {"shape": [shape] if isinstance(shape, int) else list(shape), "dtype": dtype})
    make.__name__ = name
    return make


def topk(data: Any, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32") -> Any:
    k = int(k.data.numpy().reshape(-1)[0]) if isinstance(k, Constant) else k
    if isinstance(k, int) and k < 1:  # all elements, sorted
        k = _shape(data, "topk")[axis]
    if isinstance(k, Expr):
        call = Call("dyn.topk", [data, k], {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype})
        return TupleWrapper(call, 2) if ret_type == "both" else call
    call = Call("topk", [data], {"k": k, "axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype})
    return TupleWrapper(call, 2) if ret_type == "both" else call


def unique(data: Any, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """(values, index of the first occurrence of each, for each element the index of its value, the number of values, [their counts]). Values, first
    occurrences and counts are as many as there are different values."""
    found = Call("unique", [data], {"sorted": is_sorted})
    values, *places = (TupleGetItem(found, i) for i in range(4))
    first, inverse, counts = (Call("cast", [p], {"dtype": "int32"}) for p in places)
    fields = [values, first, inverse, Call("shape_of", [values], {"dtype": "int32"}), *([counts] if return_counts else [])]
    return TupleWrapper(Tuple(fields), len(fields))


def meshgrid(data: Any, indexing: str = "ij") -> TupleWrapper:
    fields = list(data)
    return TupleWrapper(Call("meshgrid", [Tuple(fields)], {"indexing": indexing}), len(fields))


def pad(data: Any, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    if isinstance(pad_width, Constant):
        pad_width = pad_width.data.numpy().tolist()
    if isinstance(pad_width, Expr):
        return Call("dyn.nn.pad", [data, pad_width, _scalar(pad_value, data)], {"pad_mode": pad_mode})
    return Call("nn.pad", [data, _scalar(pad_value, data)], {"pad_width": [list(p) for p in pad_width], "pad_mode": pad_mode})


def _scales(name: str, data: Any, scales: dict[str, Any], attrs: dict[str, Any]) -> Call:
    """Upsampling with constant or computed scales."""
    scales = {k: float(v.data.numpy()) if isinstance(v, Constant) else v for k, v in scales.items()}
    if any(isinstance(v, Expr) for v in scales.values()):
        return Call(f"dyn.{name}", [data, *(v if isinstance(v, Expr) else const(v, "float32") for v in scales.values())], attrs)
    return Call(name, [data], {**{k: float(v) for k, v in scales.items()}, **attrs})


def upsampling(data: Any, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False) -> Call:
    return _scales("nn.upsampling", data, {"scale_h": scale_h, "scale_w": scale_w}, {"layout": layout, "method": method, "align_corners": align_corners})


def upsampling3d(data: Any, scale_d: Any = 1, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCDHW", method: str = "nearest_neighbor",
                 coordinate_transformation_mode: str = "half_pixel") -> Call:
    return _scales("nn.upsampling3d", data, {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w},
                   {"layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode})


def resize2d(data: Any, size: Any, roi: Any = None, layout: str = "NCHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
             rounding_method: str = "", cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Any = None) -> Call:
    attrs = {"layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode, "rounding_method": rounding_method,
             "cubic_alpha": cubic_alpha, "cubic_exclude": cubic_exclude, "extrapolation_value": extrapolation_value, **({"out_dtype": out_dtype} if out_dtype else {})}
    size = size.data.numpy().tolist() if isinstance(size, Constant) else size
    roi = roi.data.numpy().tolist() if isinstance(roi, Constant) else [] if roi is None else roi
    if isinstance(size, Expr) or isinstance(roi, Expr):
        return Call("dyn.image.resize2d", [data, size if isinstance(size, Expr) else const(np.array(size, "int64")),
                                           roi if isinstance(roi, Expr) else const(np.array(roi, "float32"))], attrs)
    size = [size, size] if isinstance(size, (int, np.integer)) else size
    return Call("image.resize2d", [data], {"size": [int(s) for s in size], "roi": [float(r) for r in roi], **attrs})


def mirror_pad(data: Any, pad_width: Any, mode: str = "SYMMETRIC") -> Call:
    return Call("nn.mirror_pad", [data], {"pad_width": [list(p) for p in pad_width], "mode": mode})


def dropout_raw(data: Any, rate: float = 0.5) -> TupleWrapper:
    """(data, mask) unchanged, since dropout is a no-op in inference."""
    return TupleWrapper(Call("nn.dropout", [data], {"rate": rate}), 2)


def one_hot(indices: Any, on_value: Any, off_value: Any, depth: Any, axis: int, dtype: str) -> Call:
    values = [_of_dtype(v, dtype) for v in (on_value, off_value)]
    if isinstance(depth, Expr):
        return Call("dyn.one_hot", [indices, *values, depth], {"axis": axis, "dtype": dtype})
    return Call("one_hot", [indices, *values], {"depth": depth, "axis": axis, "dtype": dtype})


def on_device(body: Any, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Call:
    """`device` is a device, its name, or a VirtualDevice; one that constrains nothing says no place. ValueError for anything else."""
    fields = device_fields(device if constrain_result or constrain_body else VirtualDevice())
    return Call("on_device", [body], {**fields, "constrain_result": constrain_result, "constrain_body": constrain_body})


def device_copy(data: Any, src_device: Any, dst_device: Any) -> Call:
    return Call("device_copy", [data], {**device_fields(src_device, "src_"), **device_fields(dst_device, "dst_")})


# --- composite operators

def variance(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: Any = None) -> Call:
    """With `with_mean`, about that value in place of the mean."""
    attrs = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
    if with_mean is None:
        return Call("variance", [data], {**attrs, "unbiased": unbiased})
    off = Call("subtract", [data, with_mean])
    about = Call("mean", [Call("multiply", [off, off])], attrs)
    if not unbiased:
        return about
    shape = _shape(data, "variance")
    inside = {a % len(shape) for a in ([axis] if isinstance(axis, int) else range(len(shape)) if axis is None else axis)}
    count = int(np.prod([n for i, n in enumerate(shape) if (i in inside) != bool(exclude)]))
    return Call("multiply", [about, const(count / max(count - 1, 1), _dtype(data))])


def mean_variance(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> TupleWrapper:
    attrs = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
    return TupleWrapper(Tuple([Call("mean", [data], attrs), Call("variance", [data], {**attrs, "unbiased": unbiased})]), 2)


def std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Call:
    return Call("sqrt", [Call("variance", [data], {"axis": axis, "keepdims": keepdims, "exclude": exclude, "unbiased": unbiased})])


def mean_std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> TupleWrapper:
    return TupleWrapper(Tuple([Call("mean", [data], {"axis": axis, "keepdims": keepdims, "exclude": exclude}), std(data, axis, keepdims, exclude)]), 2)


def flip(data: Any, axis: int) -> Call:
    return Call("reverse", [data], {"axis": axis})


def collapse_sum_to(data: Any, shape: Any) -> Call:
    """Reduces the data to `shape`: the inverse of broadcasting."""
    sizes = shape.data.numpy() if isinstance(shape, Constant) else shape
    if isinstance(sizes, Expr):
        return Call("collapse_sum_to", [data, sizes], {})
    sizes = [int(s) for s in sizes]
    return Call("collapse_sum_to", [data, const(np.array(sizes, "int32"))], {"shape": sizes})


def where(condition: Any, x: Any, y: Any) -> Call:
    return Call("where", [_of_dtype(condition, "bool"), x, y])


def squeeze(data: Any, axis: Any = None) -> Call:
    if isinstance(axis, Constant):
        axis = axis.data.numpy().reshape(-1).tolist()
    if isinstance(axis, Expr):
        return Call("dyn.squeeze", [data, axis])
    return Call("squeeze", [data], {"axis": [axis] if isinstance(axis, int) else None if axis is None else [int(a) for a in axis]})


def expand_dims(data: Any, axis: Any, num_newaxis: int = 1) -> Call:
    if isinstance(axis, Constant):
        axis = int(axis.data.numpy().reshape(-1)[0])
    if isinstance(axis, Expr):
        return Call("dyn.expand_dims", [data, axis], {"num_newaxis": num_newaxis})
    return Call("expand_dims", [data], {"axis": int(axis), "num_newaxis": num_newaxis})


def contrib_dense_pack(data: Any, weight: Any, weight_layout: str = "NC", units: int | None = None, out_dtype: str = "") -> Call:
    attrs = {"weight_layout": weight_layout, **({"units": units} if units else {}), **({"out_dtype": out_dtype} if out_dtype else {})}
    return Call("nn.contrib_dense_pack", [data, weight], attrs)


def _blocked(name: str) -> Any:
    """Channel-blocked convolution under its classic Python name, which ends in lower case."""
    def make(data: Any, kernel: Any, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1, channels: int | None = None,
             kernel_size: Any = None, data_layout: str = "NCHW8c", kernel_layout: str = "OIHW", out_layout: str = "", out_dtype: str = "") -> Call:
        from . import nn
        return getattr(nn, name)(data, kernel, strides=strides, padding=padding, dilation=dilation, groups=groups, channels=channels, kernel_size=kernel_size,
                                 data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype)
    return make


def fast_gelu(x: Any) -> Call:
    return Call("nn.gelu", [x])


def _global_pool(kind: str, rank: int) -> Any:
    def make(data: Any, layout: str = "", out_layout: str = "") -> Call:
        return Call(f"nn.adaptive_{kind}_pool{rank}d", [data], {"output_size": [1] * rank, **({"layout": layout} if layout else {})})
    make.__name__ = f"global_{kind}_pool{rank}d"
    return make


def split(data: Any, indices_or_sections: Any, axis: int = 0) -> TupleWrapper:
    if isinstance(indices_or_sections, (list, tuple)):
        indices_or_sections = [int(i) for i in indices_or_sections]
        count = len(indices_or_sections) + 1
    else:
        indices_or_sections = count = int(indices_or_sections)
    return TupleWrapper(Call("split", [data], {"indices_or_sections": indices_or_sections, "axis": axis}), count)


def stack(data: Any, axis: int) -> Call:
    return Call("stack", [data.astuple() if isinstance(data, TupleWrapper) else Tuple(data) if isinstance(data, Sequence) else data], {"axis": axis})


def dense(data: Any, weight: Any, units: int | None = None, out_dtype: str = "") -> Call:
    return Call("nn.dense", [data, weight], {k: v for k, v in (("units", units), ("out_dtype", out_dtype)) if v})


def _list(value: Any) -> Any:
    """A list argument given as a list, a single number, or a constant."""
    value = value.data.numpy() if isinstance(value, Constant) else value.numpy() if hasattr(value, "numpy") and not isinstance(value, Expr) else value
    return value if isinstance(value, Expr) else [int(v) for v in np.reshape(np.asarray(value), -1)]


def sparse_to_dense(sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0) -> Call:
    """A tensor with values at the given indices, of shape (), (count) or (count, rank), and a default elsewhere."""
    shape, default = _list(output_shape), _scalar(default_value, sparse_values)
    if isinstance(shape, Expr):
        return Call("dyn.sparse_to_dense", [sparse_indices, shape, sparse_values, default])
    return Call("sparse_to_dense", [sparse_indices, sparse_values, default], {"output_shape": shape})


def strided_set(data: Any, v: Any, begin: Any, end: Any, strides: Any = None) -> Call:
    """data with data[begin:end:strides] = v."""
    parts = [p if isinstance(p, Expr) else const(np.array([int(i) for i in p], "int64")) for p in (begin, end, [1] if strides is None else strides)]
    return Call("strided_set", [data, v, *parts])


def matrix_set_diag(data: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Call:
    """data with its diagonals k[0]..k[1] (or k) replaced; shorter diagonals are aligned left or right as `align` says for those above
    and below the main one."""
    low, high = (int(k), int(k)) if isinstance(k, (int, np.integer)) else (int(k[0]), int(k[-1]))
    above, below = align.split("_")
    return Call("matrix_set_diag", [data, diagonal], {"k1": low, "k2": high, "super_diag_right_align": above == "RIGHT", "sub_diag_right_align": below == "RIGHT"})


def dft(re_data: Any, im_data: Any, inverse: Any = False) -> TupleWrapper:
    """The discrete Fourier transform of the last axis: (real part, imaginary part)."""
    flag = inverse.data.numpy() if isinstance(inverse, Constant) else inverse
    return TupleWrapper(Call("dft", [re_data, im_data], {"inverse": bool(flag)}), 2)


def stft(data: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, normalized: bool = False,
         onesided: bool = True) -> Call:
    """The short-time Fourier transform of (batch, time): (batch, frequencies, frames, 2)."""
    length = n_fft if win_length is None else win_length
    window = const(np.ones(length, _dtype(data))) if window is None else window
    return Call("stft", [data, window], {"n_fft": n_fft, "hop_length": n_fft // 4 if hop_length is None else hop_length, "win_length": length, "normalized": normalized,
                                         "onesided": onesided})


def correlation(data1: Any, data2: Any, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any, is_multiply: bool,
                layout: str = "NCHW") -> Call:
    """Means of products (or of absolute differences) of patches of two images, with one output channel per displacement."""
    return Call("nn.correlation", [data1, data2], {"kernel_size": kernel_size, "max_displacement": max_displacement, "stride1": stride1, "stride2": stride2,
                                                   "padding": _list(padding), "is_multiply": bool(is_multiply), "layout": layout})


def _four(padding: Any) -> list[int]:
    pads = _list(padding)
    return pads * 4 if len(pads) == 1 else pads * 2 if len(pads) == 2 else pads


def conv2d_backward_weight(grad: Any, data: Any, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1, channels: Any = None,
                           kernel_size: Any = None, grad_layout: str = "NCHW", data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_dtype: str = "") -> Call:
    """The gradient of a convolution with respect to its weight."""
    attrs = {"strides": _list(strides), "padding": _four(padding), "dilation": _list(dilation), "groups": groups, "channels": channels, "kernel_size": kernel_size,
             "data_layout": grad_layout, "kernel_layout": data_layout, "out_layout": kernel_layout, "out_dtype": out_dtype}
    return Call("nn.conv2d_backward_weight", [grad, data], {k: v for k, v in attrs.items() if v is not None and v != ""})


def max_pool2d_grad(out_grad: Any, data: Any, pool_size: Any = (1, 1), strides: Any = (1, 1), padding: Any = (0, 0), layout: str = "NCHW", out_layout: str = "",
                    ceil_mode: bool = False) -> Call:
    """The gradient of nn.max_pool2d, routed to the first maximum of each window."""
    return Call("nn.max_pool2d_grad", [out_grad, data], {"pool_size": _list(pool_size), "strides": _list(strides), "padding": _four(padding), "layout": layout,
                                                         "out_layout": out_layout, "ceil_mode": ceil_mode})


def avg_pool2d_grad(out_grad: Any, data: Any, pool_size: Any = (1, 1), strides: Any = (1, 1), padding: Any = (0, 0), layout: str = "NCHW", out_layout: str = "",
                    ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """The gradient of nn.avg_pool2d, distributed evenly over each window."""
    return Call("nn.avg_pool2d_grad", [out_grad, data], {"pool_size": _list(pool_size), "strides": _list(strides), "padding": _four(padding), "layout": layout,
                                                         "out_layout": out_layout, "ceil_mode": ceil_mode, "count_include_pad": count_include_pad})


def debug(expr: Any, debug_func: Any = None) -> Call:
    """The expression itself. create_executor("debug") passes its value to the function; compiled models ignore it
    (contrib.debugger.debug_executor shows every tensor)."""
    name = ""
    if debug_func is not None:
        name = f"debugger_func{next(_debuggers)}"
        register_func(name, debug_func)
    return Call("debug", [expr], {"debug_func": name})


def reverse_reshape(data: Any, newshape: Any) -> Call:
    """reshape with its special codes interpreted from the last axis backwards."""
    return Call("contrib_reverse_reshape", [data], {"newshape": [newshape] if isinstance(newshape, int) else [int(d) for d in newshape]})


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None) -> Call:
    """Sums of rows by segment; the number of segments is num_segments, or follows from segment_ids."""
    data, ids = _like(data), _like(segment_ids)
    rest = data.checked_type.shape[1:]
    if isinstance(num_segments, int) and all(isinstance(d, int) for d in rest):
        zeros = _filled("zeros")([num_segments, *(int(d) for d in rest)], _dtype(data))
    else:
        ints = lambda v: Call("cast", [v], {"dtype": "int64"})  # noqa: E731
        if num_segments is None:
            count = Call("add", [ints(Call("max", [ids], {"axis": [0]})), const(1, "int64")])
        else:
            count = ints(const(num_segments) if isinstance(num_segments, int) else num_segments)
        sizes = [Call("reshape", [count], {"newshape": [1]}),
                 Call("strided_slice", [ints(Call("shape_of", [data], {"dtype": "int64"}))], {"begin": [1], "end": [_LAST], "strides": [1]})]
        zeros = Call("dyn.zeros", [Call("concatenate", [Tuple(sizes)], {"axis": 0})], {"dtype": _dtype(data)})
    return Call("scatter_nd", [zeros, Call("expand_dims", [ids], {"axis": 0}), data], {"mode": "add"})


TABLE: dict[str, Any] = {f.__name__: f for f in (arange, take, gather, strided_slice, reshape, broadcast_to, tile, full, topk, meshgrid, unique, one_hot,
                                                 on_device, device_copy, variance, mean_variance, std, mean_std, flip, collapse_sum_to, sparse_to_dense, strided_set, matrix_set_diag, dft, stft, debug, split, squeeze, stack, expand_dims, where, reverse_reshape, segment_sum)}
TABLE.update(_BIT_SERIAL)
TABLE.update(_SPARSE)
TABLE.update(_DETECTION)
TABLE["image.resize2d"] = resize2d
TABLE.update(_MEMORY)
TABLE.update({f"nn.{n}nchwc": _blocked(f"{n}NCHWc") for n in ("contrib_conv2d_", "contrib_depthwise_conv2d_")})
TABLE.update({"zeros": _filled("zeros"), "ones": _filled("ones"), "annotation.on_device": on_device})
TABLE.update({f"nn.{f.__name__}": f for f in (pad, mirror_pad, upsampling, upsampling3d, correlation, conv2d_backward_weight, max_pool2d_grad, avg_pool2d_grad, fast_gelu, contrib_dense_pack, dense, dropout_raw, const, *(_global_pool(k, r) for k in ("avg", "max") for r in (1, 3)))})


def register(op_name: str, describe: str = "", expand: Any = None) -> Any:
    """Registers an operator. With `expand`, or as a decorator, a composite one: expand(*operands, **attributes) returns its expression. It
    becomes relay.NAME; a call of it is a call of a function with Composite=NAME, which patterns can match and a build inlines. Otherwise
    what it is is said by op.get(NAME).set_num_inputs, add_argument, add_type_rel, and register_compute for builds."""
    if op_name in TABLE or not _core.define_op(op_name, describe):
        raise InvalidValue(f"there is an operator '{op_name}' already")
    set_attribute(op_name, "description", describe)
    if expand is None:
        return lambda function: _composite(op_name, describe, function)
    return _composite(op_name, describe, expand)


def _composite(op_name: str, describe: str, expand: Any) -> Any:

    def make(*operands: Any, **attrs: Any) -> Call:
        values = [_like(o) for o in operands]
        params = [Var(f"p{i}", v._type if v._typed else None) for i, v in enumerate(values)]
        return Call(Function(params, expand(*params, **attrs), attrs={"Composite": op_name}), values)

    make.__name__ = op_name.rsplit(".", 1)[-1]
    make.__doc__ = describe
    TABLE[op_name] = make
    return make


__all__ = ["TABLE", "register"]
