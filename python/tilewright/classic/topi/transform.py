# SPDX-License-Identifier: Apache-2.0
"""Operators that rearrange elements."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as tir_op
from .elemwise import INJECTIVE
from .utils import prod, ravel_index, unravel_index


def axis_of(axis: int, rank: int) -> int:
    """A non-negative axis index. ValueError if there is no such axis."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % rank


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Permutes the dimensions, or reverses them."""
    order = [axis_of(int(x), a.ndim) for x in axes] if axes is not None else list(range(a.ndim))[::-1]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"{list(axes or [])} is no order of {a.ndim} dimensions")
    return te.compute([a.shape[d] for d in order], lambda *i: a(*[i[order.index(d)] for d in range(a.ndim)]), name="T_transpose", tag=INJECTIVE)


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """Inserts dimensions of size 1."""
    axis = axis_of(axis, a.ndim + 1)
    shape = [*a.shape[:axis], *[1] * num_newaxis, *a.shape[axis:]]
    return te.compute(shape, lambda *i: a(*i[:axis], *i[axis + num_newaxis:]), name="T_expand_dims", tag=INJECTIVE)


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """Removes dimensions of size 1."""
    if axis is None:
        gone = [d for d, size in enumerate(a.shape) if isinstance(size, int) and int(size) == 1]
    else:
        gone = [axis_of(int(d), a.ndim) for d in (axis if isinstance(axis, (list, tuple)) else [axis])]
        for d in gone:
            if isinstance(a.shape[d], int) and int(a.shape[d]) != 1:
                raise ValueError(f"squeeze of axis {d}, whose size is {a.shape[d]} and not 1")
    kept = [d for d in range(a.ndim) if d not in gone]
    return te.compute([a.shape[d] for d in kept], lambda *i: a(*[i[kept.index(d)] if d in kept else 0 for d in range(a.ndim)]), name="T_squeeze", tag=INJECTIVE)


def reshape(a: Tensor, newshape: Sequence[Any]) -> Tensor:
    """The same elements in row-major order with another shape."""
    shape = list(newshape)
    known = [*a.shape, *shape]
    if all(isinstance(d, int) for d in known) and prod([int(d) for d in a.shape]) != prod([int(d) for d in shape]):
        raise ValueError(f"{list(a.shape)} and {shape} have other numbers of elements")
    return te.compute(shape, lambda *i: a(*unravel_index(ravel_index(i, shape), a.shape)), name="T_reshape", tag=INJECTIVE)


def moved(a: Tensor, layouts: Any) -> Tensor:
    """The elements where a bijective layout puts them; 0 where the blocks of the new one are not full."""
    shape = layouts.forward_shape(a.shape)

    def element(*i: Any) -> Any:
        at = layouts.backward_index(i)
        beyond = [at[d] < size for d, (size, whole) in enumerate(zip(a.shape, layouts.backward_shape(shape))) if isinstance(size, int) and int(size) != int(whole)]
        return tir_op.if_then_else(tir_op.all(*beyond), a(*at), tir_op.const(0, a.dtype)) if beyond else a(*at)
    return te.compute(shape, element, name="T_layout_trans", tag=INJECTIVE)


def flip(a: Tensor, axis: int = 0) -> Tensor:
    axis = axis_of(axis, a.ndim)
    return te.compute(a.shape, lambda *i: a(*[a.shape[d] - 1 - i[d] if d == axis else i[d] for d in range(a.ndim)]), name="T_flip", tag=INJECTIVE)


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after another along an axis."""
    first = a_tuple[0]
    axis = axis_of(axis, first.ndim)
    ends: list[Any] = []
    for t in a_tuple:
        if t.ndim != first.ndim:
            raise ValueError(f"concatenate takes tensors of as many dimensions, not of {first.ndim} and {t.ndim}")
        ends.append(t.shape[axis] if not ends else ends[-1] + t.shape[axis])

    def element(*i: Any) -> Any:
        def read(t: Tensor, begin: Any) -> Any:
            return t(*[i[d] - begin if d == axis else i[d] for d in range(first.ndim)])
        out = read(a_tuple[-1], ends[-2] if len(ends) > 1 else 0)
        for k in range(len(a_tuple) - 2, -1, -1):
            out = tir_op.if_then_else(i[axis] < ends[k], read(a_tuple[k], ends[k - 1] if k else 0), out)
        return out
    return te.compute([ends[-1] if d == axis else size for d, size in enumerate(first.shape)], element, name="T_concat", tag=INJECTIVE)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors along a new axis."""
    return concatenate([expand_dims(t, axis) for t in tensors], axis)


def strided_slice(a: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None, slice_mode: str = "end") -> Tensor:
    """Every so manieth element from begin to before end, of sizes that are numbers."""
    where = [axis_of(int(x), a.ndim) for x in axes] if axes is not None else list(range(len(begin)))
    steps = list(strides or [1] * len(begin))
    starts, step, shape = [0] * a.ndim, [1] * a.ndim, list(a.shape)
    for k, d in enumerate(where):
        s = int(steps[k if k < len(steps) else -1])
        stop = int(end[k]) if slice_mode == "end" else int(a.shape[d]) if int(end[k]) < 0 else int(begin[k]) + int(end[k])
        chosen = range(int(a.shape[d]))[int(begin[k]):stop:s] if s > 0 else range(int(a.shape[d]))[int(begin[k]):(None if stop < -int(a.shape[d]) else stop):s]
        starts[d], step[d], shape[d] = chosen.start if len(chosen) else 0, s, len(chosen)
    return te.compute(shape, lambda *i: a(*[i[d] * step[d] + starts[d] for d in range(a.ndim)]), name="T_strided_slice", tag=INJECTIVE)


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Equal parts along an axis, or parts that begin at these indices."""
    axis = axis_of(axis, ary.ndim)
    size = int(ary.shape[axis])
    if isinstance(indices_or_sections, int):
        if size % indices_or_sections:
            raise ValueError(f"{size} elements are no {indices_or_sections} equal parts")
        cuts = list(range(0, size, size // indices_or_sections)) + [size]
    else:
        cuts = [0, *[int(c) for c in indices_or_sections], size]
    return [strided_slice(ary, [begin], [end], [1], [axis]) for begin, end in zip(cuts, cuts[1:])]


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """Elements, or slices along an axis, by number; numbers beyond the edge are moved to it ("clip"), counted anew ("wrap") or taken as they are ("fast")."""
    def number(index: Any, size: Any) -> Any:
        if mode == "clip":
            return te.max(te.min(index, size - 1), 0)
        return tir_op.floormod(index, size) if mode == "wrap" else index
    if axis is None:
        size: Any = prod(list(a.shape))
        return te.compute(indices.shape, lambda *i: a(*unravel_index(number(indices(*i), size), a.shape)), name="T_take", tag=INJECTIVE)
    axis, n = axis_of(axis, a.ndim), indices.ndim
    if batch_dims:
        batch = batch_dims + n if batch_dims < 0 else batch_dims
        if not 0 <= batch <= axis or batch > n:
            raise ValueError(f"take has {batch_dims} batch dimensions, of indices of {n} dimensions and along axis {axis}")
        whole = [*a.shape[:axis], *indices.shape[batch:], *a.shape[axis + 1:]]
        more = n - batch
        return te.compute(whole, lambda *i: a(*i[:axis], number(indices(*i[:batch], *i[axis:axis + more]), a.shape[axis]), *i[axis + more:]), name="T_take", tag=INJECTIVE)
    shape = [*a.shape[:axis], *indices.shape, *a.shape[axis + 1:]]
    return te.compute(shape, lambda *i: a(*i[:axis], number(indices(*i[axis:axis + n]), a.shape[axis]), *i[axis + n:]), name="T_take", tag=INJECTIVE)


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    axis = axis_of(axis, a.ndim)
    return te.compute([size * repeats if d == axis else size for d, size in enumerate(a.shape)],
                      lambda *i: a(*[tir_op.floordiv(x, repeats) if d == axis else x for d, x in enumerate(i)]), name="T_repeat", tag=INJECTIVE)


def tile(a: Tensor, reps: Sequence[int]) -> Tensor:
    """The tensor so many times along each dimension."""
    rank = max(a.ndim, len(reps))
    times, sizes = [1] * (rank - len(reps)) + [int(r) for r in reps], [1] * (rank - a.ndim) + list(a.shape)
    return te.compute([s * t for s, t in zip(sizes, times)], lambda *i: a(*[tir_op.floormod(i[rank - a.ndim + d], size) for d, size in enumerate(a.shape)]), name="T_tile", tag=INJECTIVE)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Tensor:
    """Numbers from start to before stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    count = max(0, -int(-(float(stop) - float(start)) // float(step)))
    first, by = tir_op.const(start, dtype), tir_op.const(step, dtype)
    return te.compute((count,), lambda i: i.astype(dtype) * by + first, name="T_arange", tag=INJECTIVE)


def one_hot(indices: Tensor, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> Tensor:
    """A dimension of `depth` with on_value where the index is."""
    axis = axis_of(axis, indices.ndim + 1)
    shape = [*indices.shape[:axis], depth, *indices.shape[axis:]]
    on, off = (tir_op.const(v, dtype) for v in (on_value, off_value))
    return te.compute(shape, lambda *i: tir_op.if_then_else(indices(*i[:axis], *i[axis + 1:]) == i[axis], on, off), name="T_one_hot", tag=INJECTIVE)


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The product of two matrices."""
    n, m, k = a.shape[1 if transp_a else 0], b.shape[0 if transp_b else 1], te.reduce_axis((0, a.shape[0 if transp_a else 1]), "k")
    return te.compute((n, m), lambda i, j: te.sum((a[k, i] if transp_a else a[i, k]) * (b[j, k] if transp_b else b[k, j]), axis=k), name="T_matmul")


__all__ = ["arange", "concatenate", "expand_dims", "flip", "matmul", "one_hot", "repeat", "reshape", "split", "squeeze", "stack", "strided_slice", "take", "tile", "transpose"]
