# SPDX-License-Identifier: Apache-2.0
"""Data-dependent indexing: gather, scatter, masks, slices."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import ir_builder, op as tir_op
from .elemwise import INJECTIVE
from .transform import axis_of, moved
from .utils import prod, unravel_index as place_of


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Selects elements along an axis by `indices`."""
    axis = axis_of(axis, data.ndim)
    return te.compute(indices.shape, lambda *i: data(*i[:axis], indices(*i), *i[axis + 1:]), name="T_gather", tag=INJECTIVE)


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """Selects slices of a by the columns of `indices`, whose first dimension holds the coordinates."""
    count, rank = int(indices.shape[0]), indices.ndim - 1
    if count + batch_dims > a.ndim:
        raise ValueError(f"gather_nd has {count} numbers for each place of {a.ndim - batch_dims} dimensions")
    shape = [*indices.shape[1:], *a.shape[batch_dims + count:]]
    return te.compute(shape, lambda *i: a(*i[:batch_dims], *[indices(n, *i[:rank]) for n in range(count)], *i[rank:]), name="T_gather_nd", tag=INJECTIVE)


_COMBINED: dict[str, Any] = {"update": lambda old, new: new, "add": lambda old, new: old + new, "mul": lambda old, new: old * new, "min": lambda old, new: te.min(old, new),
                             "max": lambda old, new: te.max(old, new)}


def _combination(mode: str) -> Any:
    if mode not in _COMBINED:
        raise ValueError(f"scatter mode not in {', '.join(_COMBINED)}: {mode}")
    return _COMBINED[mode]


def _scattered(name: str, data: Tensor, indices: Tensor, updates: Tensor, mode: str, loop: Sequence[Any], places: Any) -> Tensor:
    """A copy of data with one update per iteration of a loop: places(index, at) returns the updated coordinates."""
    combined = _combination(mode)

    def body(ins: Any, outs: Any) -> Any:
        builder = ir_builder.create()
        source, index, update, out = (builder.buffer_ptr(b) for b in (*ins, outs[0]))
        with builder.for_range(0, prod(list(data.shape)), name="i") as i:
            at = tuple(place_of(i, data.shape))
            out[at] = source[at]
        with builder.for_range(0, prod(list(loop)), name="j") as j:
            at = tuple(place_of(j, loop))
            to = places(index, at)
            out[to] = combined(out[to], update[at])
        return builder.get()
    return te.extern([list(data.shape)], [data, indices, updates], body, name=name, dtype=data.dtype)


def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update") -> Tensor:
    """A copy of data in which the updates are combined, in order, with the elements selected along an axis by `indices`."""
    axis = axis_of(axis, data.ndim)
    if indices.ndim != data.ndim or updates.ndim != data.ndim:
        raise ValueError(f"scatter takes indices and updates of {data.ndim} dimensions, not of {indices.ndim} and {updates.ndim}")

    def places(index: Any, at: tuple[Any, ...]) -> tuple[Any, ...]:
        number, size = index[at], data.shape[axis]
        size = tir_op.const(int(size), indices.dtype) if isinstance(size, int) else size
        return (*at[:axis], tir_op.if_then_else(number < 0, number + size, number), *at[axis + 1:])
    return _scattered("scatter", data, indices, updates, reduction, indices.shape, places)


def scatter(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """scatter_elements that overwrites."""
    return scatter_elements(data, indices, updates, axis)


def scatter_add(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """scatter_elements that adds."""
    return scatter_elements(data, indices, updates, axis, "add")


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """A copy of data in which the updates are combined, in order, with the slices selected by the columns of `indices`."""
    count, rank = int(indices.shape[0]), indices.ndim - 1
    if count > data.ndim:
        raise ValueError(f"scatter_nd has {count} numbers for each place of {data.ndim} dimensions")
    return _scattered("scatter_nd", data, indices, updates, mode, updates.shape, lambda index, at: (*[index[(n, *at[:rank])] for n in range(count)], *at[rank:]))


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """Replaces elements beyond each sequence's length by mask_value; `axis` (0 or 1) is the time axis, the other one the batch."""
    if axis not in (0, 1) or data.ndim < 2:
        raise ValueError("sequence_mask takes data of two dimensions or more, and axis 0 or 1")
    masked = tir_op.const(mask_value, data.dtype)
    return te.compute(data.shape, lambda *i: tir_op.if_then_else(i[axis].astype(valid_length.dtype) >= valid_length(i[1 - axis]), masked, data(*i)), name="T_sequence_mask", tag=INJECTIVE)


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """Reverses the first elements of each sequence, up to its length."""
    seq_axis, batch_axis = axis_of(seq_axis, a.ndim), axis_of(batch_axis, a.ndim)

    def element(*i: Any) -> Any:
        length = seq_lengths(i[batch_axis]).astype(i[seq_axis].dtype)
        at = tir_op.if_then_else(i[seq_axis] < length, length - 1 - i[seq_axis], i[seq_axis])
        return a(*[at if d == seq_axis else x for d, x in enumerate(i)])
    return te.compute(a.shape, element, name="T_reverse_sequence", tag=INJECTIVE)


def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """Converts flat indices to coordinates in a shape given as data, one column each."""
    rank = int(shape.shape[0])
    whole = [rank, *indices.shape] if indices.ndim else [rank]

    def element(*i: Any) -> Any:
        flat, out = indices(*i[1:]), None
        for d in reversed(range(rank)):
            size = shape(d).astype(indices.dtype)
            own, flat = tir_op.floormod(flat, size), tir_op.floordiv(flat, size)
            out = own if out is None else tir_op.if_then_else(i[0] == d, own, out)
        return out
    return te.compute(whole, element, name="T_unravel", tag=INJECTIVE)


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """data[indices[0], indices[1], ...], the indices broadcast."""
    from .broadcast import broadcast_shape, read
    shape: list[Any] = list(indices[0].shape)
    for other in indices[1:]:
        shape = broadcast_shape(shape, other.shape)
    rank = len(shape)
    return te.compute([*shape, *data.shape[len(indices):]], lambda *i: data(*[read(t, shape, i[:rank]) for t in indices], *i[rank:]), name="advanced_index", tag=INJECTIVE)


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """Broadcasts each tensor along its own dimension; "xy" swaps the first two."""
    rank = len(a_tuple)
    order = list(range(rank)) if indexing == "ij" or rank < 2 else [1, 0, *range(2, rank)]
    shape = [a_tuple[d].shape[0] if a_tuple[d].ndim else 1 for d in order]

    def grid(n: int) -> Tensor:
        return te.compute(shape, lambda *i: a_tuple[n](i[order.index(n)]) if a_tuple[n].ndim else a_tuple[n](), name="T_meshgrid", tag=INJECTIVE)
    return [grid(n) for n in range(rank)]


def strided_set(a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None) -> Tensor:
    """A copy of a with strided_slice(a, begin, end, strides) replaced by v."""
    def number(t: Tensor | None, d: int, otherwise: Any) -> Any:
        return otherwise if t is None else tir_op.if_then_else(int(t.shape[0]) > d, t(te.min(d, int(t.shape[0]) - 1)).astype("int32"), otherwise)

    def element(*i: Any) -> Any:
        inside, at = [], []
        for d, size in enumerate(a.shape):
            step = number(strides, d, tir_op.const(1, "int32"))
            first, last = number(begin, d, tir_op.const(0, "int32")), number(end, d, size)
            first = te.max(te.min(tir_op.if_then_else(first < 0, first + size, first), tir_op.if_then_else(step < 0, size - 1, size)), 0)
            last = te.max(te.min(tir_op.if_then_else(last < 0, last + size, last), size), tir_op.if_then_else(step < 0, -1, 0))
            inside.append(tir_op.if_then_else(step < 0, tir_op.all(i[d] <= first, i[d] > last), tir_op.all(i[d] >= first, i[d] < last)))
            inside.append(tir_op.floormod(i[d] - first, step) == 0)
            at.append(tir_op.div(i[d] - first, step))
        return tir_op.if_then_else(tir_op.all(*inside), v(*at), a(*i))
    return te.compute(a.shape, element, name="strided_set", tag=INJECTIVE)


def trilu(data: Tensor, k: Any, upper: bool) -> Tensor:
    """The upper or lower triangle of matrices from diagonal k on, zero elsewhere."""
    zero = tir_op.const(0, data.dtype)

    def element(*i: Any) -> Any:
        shift = k(0) if isinstance(k, Tensor) and k.ndim else k() if isinstance(k, Tensor) else k
        distance = i[-1] - i[-2]
        return tir_op.if_then_else(distance >= shift if upper else distance <= shift, data(*i), zero)
    return te.compute(data.shape, element, name="trilu", tag=INJECTIVE)


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Replaces a diagonal of matrices, or the diagonals k[0] to k[1], given as rows."""
    low, high = (k, k) if isinstance(k, int) else (int(k[0]), int(k[-1]))
    above, below = align.split("_")
    rows, columns = data.shape[-2], data.shape[-1]
    several = low != high

    def element(*i: Any) -> Any:
        d = i[-1] - i[-2]
        along = te.min(i[-2], i[-1])
        if several:
            longest = diagonal.shape[-1]
            length = te.min(rows + te.min(d, 0), columns - te.max(d, 0))
            right = tir_op.if_then_else(d >= 0, above == "RIGHT", below == "RIGHT") if above != below else above == "RIGHT"
            along = along + tir_op.if_then_else(right, longest - length, 0)
        chosen = diagonal(*i[:-2], *([high - d] if several else []), along)
        return tir_op.if_then_else(tir_op.all(d >= low, d <= high), chosen, data(*i))
    return te.compute(data.shape, element, name="matrix_set_diag", tag=INJECTIVE)


def sparse_to_dense(sparse_indices: Tensor, output_shape: Sequence[Any], sparse_values: Tensor, default_value: Any = 0) -> Tensor:
    """A dense tensor with the values at their indices, default_value elsewhere."""
    shape, rank = list(output_shape), sparse_indices.ndim
    default = default_value() if isinstance(default_value, Tensor) else tir_op.const(default_value, sparse_values.dtype)

    def element(*i: Any) -> Any:
        out = default
        for n in range(int(sparse_indices.shape[0]) if rank else 1):
            where = [sparse_indices()] if rank == 0 else [sparse_indices(n)] if rank == 1 else [sparse_indices(n, d) for d in range(int(sparse_indices.shape[1]))]
            same = tir_op.all(*[i[d] == w for d, w in enumerate(where)])
            out = tir_op.if_then_else(same, sparse_values(n) if sparse_values.ndim else sparse_values(), out)
        return out
    return te.compute(shape, element, name="T_sparse_to_dense", tag=INJECTIVE)


def layout_transform(array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Tensor:
    """Converts the data to another layout, such as "NCHW" to "NCHW8c"."""
    from ..tir.layout import bijective_layout
    if src_layout == dst_layout:
        return array
    return moved(array, bijective_layout(src_layout, dst_layout))


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The shape as a tensor."""
    def element(i: Any) -> Any:
        out: Any = tir_op.const(0, dtype)
        for d, size in enumerate(array.shape):
            out = tir_op.if_then_else(i == d, tir_op.const(size, dtype) if isinstance(size, int) else size.astype(dtype), out)
        return out
    return te.compute((array.ndim,), element, name="T_shape", tag=INJECTIVE)


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements as a tensor."""
    size = prod(list(array.shape))
    return te.compute((), lambda: tir_op.const(size, dtype) if isinstance(size, int) else size.astype(dtype), name="ndarray_size", tag=INJECTIVE)


__all__ = ["adv_index", "gather", "gather_nd", "layout_transform", "matrix_set_diag", "meshgrid", "ndarray_size", "reverse_sequence", "scatter", "scatter_add", "scatter_elements", "scatter_nd",
           "sequence_mask", "shape", "sparse_to_dense", "strided_set", "trilu", "unravel_index"]
