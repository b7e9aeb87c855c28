# SPDX-License-Identifier: Apache-2.0
"""Operators whose classic Python signature is not that of the operator's table, and those that are made of others. By full name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _core
from ..expr import Call, Constant, Expr, Function, Tuple, TupleWrapper, Var, _like, const
from .composed import TABLE as _COMPOSED
from .sparse import TABLE as _SPARSE
from .detection import TABLE as _DETECTION


def _dtype(x: Any) -> str:
    """Of an expression, float32 where it is not known yet."""
    return x._type.dtype if isinstance(x, Expr) and x._typed and hasattr(x._type, "dtype") else "float32"


def _shape(x: Any, why: str) -> list[int]:
    try:
        return [int(d) for d in _like(x).checked_type.shape]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{why} needs the shape of its operand, which is not known: {error}") from None


def _scalar(value: Any, like: Any) -> Any:
    return const(value, _dtype(like)) if isinstance(value, (int, float, np.generic)) else value


def _of_dtype(value: Any, dtype: str) -> Any:
    """A number or expression in a dtype; what is in it already, and what has no type yet, stays."""
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


def strided_slice(data: Any, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end") -> Call:
    if any(isinstance(v, Expr) for v in (begin, end, strides)):
        parts = [_like(v if isinstance(v, Expr) else const(np.array(v, "int64"))) for v in (begin, end)]
        ones = strides if isinstance(strides, Expr) else const(np.array(strides, "int64")) if strides else Call("ones_like", [parts[0]])
        return Call("dyn.strided_slice", [data, *parts, ones], {"slice_mode": slice_mode})
    count = len(begin)
    attrs: dict[str, Any] = {"begin": [0 if b is None else int(b) for b in begin], "end": [2**31 - 1 if e is None else int(e) for e in end],
                             "strides": [1] * count if strides is None else list(strides), "slice_mode": slice_mode}
    return Call("strided_slice", [data], attrs if axes is None else {**attrs, "axes": list(axes)})


def _dynamic(name: str, attribute: str) -> Any:
    def make(data: Any, value: Any, *rest: Any, **attrs: Any) -> Call:
        if isinstance(value, Expr):
            return Call(f"dyn.{name}", [data, value], attrs)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Expr) for v in value):
            from . import concatenate  # sizes that are computed
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
    if isinstance(k, int) and k < 1:  # all of them, sorted
        k = _shape(data, "topk")[axis]
    if isinstance(k, Expr):  # the first k of everything sorted
        rank = len(_like(data).checked_type.shape)
        place = axis % rank
        lead = [Call("strided_slice", [Call("shape_of", [data], {"dtype": "int64"})], {"begin": [0], "end": [place], "strides": [1]})] if place else []
        end = Call("concatenate", [Tuple([*lead, Call("reshape", [Call("cast", [k], {"dtype": "int64"})], {"newshape": [1]})])], {"axis": 0})
        edges = [const(np.zeros(place + 1, "int64")), end, const(np.ones(place + 1, "int64"))]
        order = Call("argsort", [data], {"axis": axis, "is_ascend": is_ascend, "dtype": "int64"})
        parts = {"values": Call("gather", [data, order], {"axis": place}), "indices": Call("cast", [order], {"dtype": dtype})}
        cut = {name: Call("dyn.strided_slice", [part, *edges]) for name, part in parts.items()}
        return TupleWrapper(Tuple([cut["values"], cut["indices"]]), 2) if ret_type == "both" else cut[ret_type]
    call = Call("topk", [data], {"k": k, "axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype})
    return TupleWrapper(call, 2) if ret_type == "both" else call


def unique(data: Any, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """(values, places of their first appearance, of each element the place of its value, counts), of lengths that the data decides."""
    return TupleWrapper(Call("unique", [data], {"sorted": is_sorted}), 4)


def meshgrid(data: Any, indexing: str = "ij") -> TupleWrapper:
    fields = list(data)
    return TupleWrapper(Call("meshgrid", [Tuple(fields)], {"indexing": indexing}), len(fields))


def pad(data: Any, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    return Call("nn.pad", [data, _scalar(pad_value, data)], {"pad_width": [list(p) for p in pad_width], "pad_mode": pad_mode})


def mirror_pad(data: Any, pad_width: Any, mode: str = "SYMMETRIC") -> Call:
    return Call("nn.mirror_pad", [data], {"pad_width": [list(p) for p in pad_width], "mode": mode})


def scatter(data: Any, indices: Any, updates: Any, axis: int) -> Call:
    return Call("scatter_elements", [data, indices, updates], {"axis": axis})


def scatter_add(data: Any, indices: Any, updates: Any, axis: int) -> Call:
    return Call("scatter_elements", [data, indices, updates], {"axis": axis, "reduction": "add"})


def one_hot(indices: Any, on_value: Any, off_value: Any, depth: Any, axis: int, dtype: str) -> Call:
    values = [_of_dtype(v, dtype) for v in (on_value, off_value)]
    if isinstance(depth, Expr):
        return Call("dyn.one_hot", [indices, *values, depth], {"axis": axis, "dtype": dtype})
    return Call("one_hot", [indices, *values], {"depth": depth, "axis": axis, "dtype": dtype})


def on_device(body: Any, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Call:
    from ...runtime import ndarray
    device = ndarray.device(device) if isinstance(device, str) else device
    kind, number = (device.device_type, device.device_id)
    return Call("on_device", [body], {"device_type": int(kind), "device_id": int(number), "constrain_result": constrain_result, "constrain_body": constrain_body})


def device_copy(data: Any, src_device: Any, dst_device: Any) -> Call:
    return Call("device_copy", [data], {"src_dev_type": int(src_device.device_type), "src_dev_id": int(src_device.device_id),
                                        "dst_dev_type": int(dst_device.device_type), "dst_dev_id": int(dst_device.device_id)})


# --- made of others

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
    """Sums over the axes that broadcasting `shape` to the data's sizes would repeat."""
    sizes = shape.data.numpy() if isinstance(shape, Constant) else shape
    if isinstance(sizes, Expr):
        return Call("collapse_sum_to", [data, sizes], {})
    sizes = [int(s) for s in sizes]
    return Call("collapse_sum_to", [data, const(np.array(sizes, "int32"))], {"shape": sizes})


def where(condition: Any, x: Any, y: Any) -> Call:
    return Call("where", [_of_dtype(condition, "bool"), x, y])


def _free(x: Any) -> bool:
    """Whether a size of the expression is not known."""
    shape = getattr(_like(x).checked_type, "shape", ())
    return any(not hasattr(d, "value") and not isinstance(d, int) for d in shape)


def _sizes(x: Any) -> Call:
    return Call("shape_of", [x], {"dtype": "int64"})


def sequence_mask(data: Any, valid_length: Any, mask_value: float = 0, axis: int = 0) -> Call:
    """What lies beyond the valid length of its batch becomes mask_value; data is (length, batch, ...) or, with axis 1, (batch, length, ...)."""
    rank = len(_like(data).checked_type.shape)
    if _free(data):
        length = Call("take", [_sizes(data), const(axis, "int64")], {"axis": 0})
        steps = Call("cast", [Call("arange", [const(0, "int64"), length, const(1, "int64")], {"dtype": "int64"})], {"dtype": "float32"})
    else:
        steps = const(np.arange(_shape(data, "sequence_mask")[axis]), "float32")
    steps = Call("reshape", [steps], {"newshape": [-1, 1] if axis == 0 else [1, -1]})
    lengths = Call("reshape", [Call("cast", [valid_length], {"dtype": "float32"})], {"newshape": [1, -1] if axis == 0 else [-1, 1]})
    inside = Call("less", [steps, lengths])
    if rank > 2:
        inside = Call("expand_dims", [inside], {"axis": 2, "num_newaxis": rank - 2})
    return Call("where", [inside, data, _scalar(mask_value, data)])


def cross_entropy(predictions: Any, targets: Any) -> Call:
    total = Call("sum", [Call("multiply", [Call("log", [predictions]), targets])])
    return Call("negative", [Call("divide", [total, const(float(_shape(predictions, "cross_entropy")[0]), _dtype(predictions))])])


def cross_entropy_with_logits(predictions: Any, targets: Any) -> Call:
    total = Call("sum", [Call("multiply", [predictions, targets])])
    return Call("negative", [Call("divide", [total, const(float(_shape(predictions, "cross_entropy_with_logits")[0]), _dtype(predictions))])])


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


TABLE: dict[str, Any] = {f.__name__: f for f in (arange, take, gather, strided_slice, reshape, broadcast_to, tile, full, topk, meshgrid, unique, scatter, scatter_add, one_hot,
                                                 on_device, device_copy, mean_variance, std, mean_std, flip, collapse_sum_to, sequence_mask, split, stack, where)}
TABLE.update(_COMPOSED)
TABLE.update(_SPARSE)
TABLE.update(_DETECTION)
TABLE.update({"zeros": _filled("zeros"), "ones": _filled("ones"), "annotation.on_device": on_device})
TABLE.update({f"nn.{f.__name__}": f for f in (pad, mirror_pad, cross_entropy, cross_entropy_with_logits, fast_gelu, dense, *(_global_pool(k, r) for k in ("avg", "max") for r in (1, 3)))})


def register(op_name: str, describe: str = "", expand: Any = None) -> Any:
    """An operator of a script's own, made of others: expand(*operands, **attributes) gives the expression. It becomes relay.NAME, and a call of
    it a function with Composite=NAME, which patterns see and a build takes apart. As a decorator, or with `expand`."""
    if expand is None:
        return lambda function: register(op_name, describe, function)
    if op_name in TABLE or op_name in _core.op_names():
        raise ValueError(f"there is an operator '{op_name}' already")

    def make(*operands: Any, **attrs: Any) -> Call:
        values = [_like(o) for o in operands]
        params = [Var(f"p{i}", v._type if v._typed else None) for i, v in enumerate(values)]
        return Call(Function(params, expand(*params, **attrs), attrs={"Composite": op_name}), values)

    make.__name__ = op_name.rsplit(".", 1)[-1]
    make.__doc__ = describe
    TABLE[op_name] = make
    return make


__all__ = ["TABLE", "register"]
