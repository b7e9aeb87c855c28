# SPDX-License-Identifier: Apache-2.0
"""Sorting and scans along an axis, as loops."""
from __future__ import annotations

from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import ir_builder, op as tir_op
from ..tir.expr import Not as _not
from .transform import axis_of, reshape
from .utils import prod


def _lines(shape: Any, axis: int) -> tuple[Any, Any]:
    """The number of lines along an axis, and a function from line and position to indices."""
    others = [size for d, size in enumerate(shape) if d != axis]

    def index(line: Any, place: Any) -> tuple[Any, ...]:
        out: list[Any] = []
        for size in reversed(others):
            out.append(tir_op.floormod(line, size))
            line = tir_op.floordiv(line, size)
        out.reverse()
        return tuple([*out[:axis], place, *out[axis:]])
    return prod(others), index


def _merged(builder: Any, before: Any, count: int, orders: Any) -> Any:
    """A stable merge sort of `orders[0]`, initialised with 0 to count - 1; returns the buffer with the final order."""
    width, source, target = 1, *orders
    while width < count:
        with builder.for_range(0, -(-count // (2 * width)), name="run") as run:
            low = run * (2 * width)
            middle, high = te.min(low + width, count), te.min(low + 2 * width, count)
            places = builder.allocate("int32", (2,), name="heads")
            places[0], places[1] = low, middle
            with builder.for_range(0, high - low, name="k") as k:
                left, right = te.min(places[0], count - 1), te.min(places[1], count - 1)
                first = tir_op.if_then_else(places[0] >= middle, tir_op.const(False, "bool"),
                                            tir_op.if_then_else(places[1] >= high, tir_op.const(True, "bool"), _not(before(source[right], source[left]))))
                with builder.if_scope(first):
                    target[low + k] = source[left]
                    places[0] = places[0] + 1
                with builder.else_scope():
                    target[low + k] = source[right]
                    places[1] = places[1] + 1
        width, source, target = 2 * width, target, source
    return source


def _count(data: Tensor, axis: int) -> int:
    size = data.shape[axis]
    if not isinstance(size, int):
        raise ValueError(f"the axis {axis} that is sorted has the size {size}; give it a number")
    return int(size)


def _sorted(data: Tensor, axis: int, is_ascend: bool, emit: Any, shapes: Any, dtypes: Any, name: str, valid_count: Tensor | None = None) -> Any:
    """Outputs written by emit(outs, line, index, order, values) for each line, given its sorted order."""
    axis = axis_of(axis, data.ndim)
    count = _count(data, axis)
    lines, index = _lines(data.shape, axis)

    def body(ins: Any, outs: Any) -> Any:
        builder = ir_builder.create()
        values = builder.buffer_ptr(ins[0])
        results = [builder.buffer_ptr(o) for o in outs]
        with builder.for_range(0, lines, name="line") as line:
            orders = [builder.allocate("int32", (max(count, 1),), name=f"order{n}") for n in range(2)]
            with builder.for_range(0, count, name="i") as i:
                orders[0][i] = i

            def before(a: Any, b: Any) -> Any:
                x, y = values[index(line, a)], values[index(line, b)]
                better = x < y if is_ascend else x > y
                if valid_count is None:
                    return better
                valid = builder.buffer_ptr(ins[1])[index(line, 0)[:axis]] if valid_count.ndim else 0
                return tir_op.all(a < valid, b < valid, better)
            order = _merged(builder, before, count, orders)
            emit(builder, results, line, index, order, values)
        return builder.get()
    return te.extern(shapes, [data] if valid_count is None else [data, valid_count], body, name=name, dtype=dtypes)


def argsort(data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: bool = True, dtype: str = "float32") -> Tensor:
    """The indices that sort elements along an axis, stably."""
    def emit(builder: Any, outs: Any, line: Any, index: Any, order: Any, values: Any) -> None:
        with builder.for_range(0, _count(data, axis_of(axis, data.ndim)), name="j") as j:
            outs[0][index(line, j)] = order[j].astype(dtype)
    return _sorted(data, axis, is_ascend, emit, [list(data.shape)], [dtype], "argsort_cpu", valid_count)


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements sorted along an axis."""
    def emit(builder: Any, outs: Any, line: Any, index: Any, order: Any, values: Any) -> None:
        with builder.for_range(0, _count(data, axis_of(axis, data.ndim)), name="j") as j:
            outs[0][index(line, j)] = values[index(line, order[j])]
    return _sorted(data, axis, is_ascend, emit, [list(data.shape)], [data.dtype], "sort_cpu")


def topk(data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int64") -> Any:
    """The first k elements in sorted order ("values"), their indices ("indices"), or both; k < 1 means all."""
    if ret_type not in ("both", "values", "indices"):
        raise ValueError(f"topk gives both, values or indices, not '{ret_type}'")
    axis = axis_of(axis, data.ndim)
    size = _count(data, axis)
    taken = size if int(k) < 1 else min(int(k), size)
    shape = [taken if d == axis else s for d, s in enumerate(data.shape)]
    kinds = {"both": [data.dtype, dtype], "values": [data.dtype], "indices": [dtype]}[ret_type]

    def emit(builder: Any, outs: Any, line: Any, index: Any, order: Any, values: Any) -> None:
        with builder.for_range(0, taken, name="j") as j:
            if ret_type != "indices":
                outs[0][index(line, j)] = values[index(line, order[j])]
            if ret_type != "values":
                outs[-1][index(line, j)] = order[j].astype(dtype)
    return _sorted(data, axis, is_ascend, emit, [shape] * len(kinds), kinds, "topk_cpu")


def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """The distinct elements of a vector, sorted (or in order of first occurrence), followed by 0s: the elements, the index of the first
    occurrence of each, for every element the index of its value among them, their number, shape (1,), and the count of each."""
    if data.ndim != 1:
        raise ValueError(f"unique takes a vector, not {data.ndim} dimensions")
    count = _count(data, 0)

    def emit(builder: Any, outs: Any, line: Any, index: Any, order: Any, values: Any) -> None:
        elements, firsts, places, number = outs[:4]
        heads = builder.allocate("int32", (max(count, 1),), name="heads")
        rank = builder.allocate("int32", (1,), name="rank")
        number[0] = 0
        with builder.for_range(0, count, name="i") as i:
            elements[i], firsts[i] = tir_op.const(0, data.dtype), 0
            if return_counts:
                outs[4][i] = 0
        with builder.for_range(0, count, name="j") as j:
            with builder.if_scope(tir_op.any(j == 0, values[order[j]] != values[order[te.max(j - 1, 0)]])):
                heads[number[0]] = order[j]
                number[0] = number[0] + 1
            places[order[j]] = number[0] - 1
        with builder.for_range(0, number[0], name="g") as g:
            rank[0] = g
            if not is_sorted:
                rank[0] = 0
                with builder.for_range(0, number[0], name="h") as h:
                    rank[0] = rank[0] + (heads[h] < heads[g]).astype("int32")
            elements[rank[0]] = values[heads[g]]
            firsts[rank[0]] = heads[g]
            with builder.for_range(0, count, name="i") as i:
                with builder.if_scope(values[i] == values[heads[g]]):
                    places[i] = rank[0]
                    if return_counts:
                        outs[4][rank[0]] = outs[4][rank[0]] + 1
    return list(_sorted(data, 0, True, emit, [[count], [count], [count], [1], [count]][:5 if return_counts else 4], [data.dtype, *["int32"] * (4 if return_counts else 3)], "unique_cpu"))


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64") -> Tensor:
    """The insertion positions of values in sequences sorted along the last axis: before equal elements, or after them with `right`."""
    size = sorted_sequence.shape[-1]
    one = sorted_sequence.ndim == 1
    line_shape = list(values.shape[:-1])

    def body(ins: Any, outs: Any) -> Any:
        builder = ir_builder.create()
        sequence, wanted, out = (builder.buffer_ptr(b) for b in (*ins, outs[0]))
        shape = list(values.shape)
        with builder.for_range(0, prod(shape), name="i") as i:
            rest, at = i, []
            for d in reversed(shape):
                at.append(tir_op.floormod(rest, d))
                rest = tir_op.floordiv(rest, d)
            at.reverse()
            line = [] if one else at[:len(line_shape)]
            ends = builder.allocate("int32", (2,), name="ends")
            ends[0], ends[1] = tir_op.const(0, "int32"), size
            with builder.for_range(0, max(int(size).bit_length(), 1) if isinstance(size, int) else 63, name="step"):
                with builder.if_scope(ends[0] < ends[1]):
                    middle = builder.let("middle", tir_op.floordiv(ends[0] + ends[1], 2))
                    x, v = sequence[tuple([*line, middle])], wanted[tuple(at)]
                    with builder.if_scope(x <= v if right else x < v):
                        ends[0] = middle + 1
                    with builder.else_scope():
                        ends[1] = middle
            out[tuple(at)] = ends[0].astype(out_dtype)
        return builder.get()
    return te.extern([list(values.shape)], [sorted_sequence, values], body, name="searchsorted", dtype=out_dtype)


def scanop(data: Tensor, binop: Any, identity_value: Any, op_name: str, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """A scan: binop(binop(x0, x1), x2), ... along an axis, or over the flattened tensor; `exclusive` leaves out the element itself."""
    if axis is None:
        data, axis = reshape(data, [prod(list(data.shape))]), 0
    axis = axis_of(axis, data.ndim)
    dtype = dtype or data.dtype
    lines, index = _lines(data.shape, axis)
    first = tir_op.const(identity_value, dtype) if isinstance(identity_value, (int, float)) else identity_value.astype(dtype)

    def body(ins: Any, outs: Any) -> Any:
        builder = ir_builder.create()
        values, out = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, lines, name="line") as line:
            so_far = builder.allocate(dtype, (1,), name="so_far")
            so_far[0] = first
            with builder.for_range(0, data.shape[axis], name="i") as i:
                at = index(line, i)
                if exclusive:
                    out[at] = so_far[0]
                so_far[0] = binop(so_far[0], values[at].astype(dtype))
                if not exclusive:
                    out[at] = so_far[0]
        return builder.get()
    return te.extern([list(data.shape)], [data], body, name=op_name, dtype=dtype)


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Cumulative sums."""
    return scanop(data, lambda a, b: a + b, 0, "cumsum_generic", axis, dtype, exclusive)


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Cumulative products."""
    return scanop(data, lambda a, b: a * b, 1, "cumprod_generic", axis, dtype, exclusive)


__all__ = ["argsort", "cumprod", "cumsum", "scanop", "searchsorted", "sort", "topk", "unique"]
