# SPDX-License-Identifier: Apache-2.0
"""Reductions over axes of a tensor."""
from __future__ import annotations

from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir.expr import Select
from ..tir import op as tir_op
from .elemwise import COMM_REDUCE, COMM_REDUCE_IDX


def _axes(data: Tensor, axis: Any) -> list[int]:
    """The distinct axes in ascending order. ValueError for an invalid axis."""
    if axis is None or axis == ():
        return list(range(data.ndim))
    out = []
    for a in axis if isinstance(axis, (list, tuple)) else [axis]:
        a = int(a)
        if not -data.ndim <= a < data.ndim:
            raise ValueError(f"axis {a} is out of range for a tensor of {data.ndim} dimensions")
        out.append(a % data.ndim)
    return sorted(set(out))


def _shape(data: Tensor, axes: list[int], keepdims: bool) -> list[Any]:
    return [1 if d in axes else size for d, size in enumerate(data.shape) if keepdims or d not in axes]


def _indices(data: Tensor, axes: list[int], keepdims: bool, at: Any, reduced: list[Any]) -> list[Any]:
    outer, inner = iter([i for d, i in enumerate(at) if not keepdims or d not in axes]), iter(reduced)
    return [next(inner) if d in axes else next(outer) for d in range(data.ndim)]


def _reduce(name: str, reducer: Any) -> Any:
    def compute(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        axes = _axes(data, axis)
        if not axes:
            return te.compute(data.shape, lambda *i: data(*i), name="T_identity")
        over = [te.reduce_axis((0, data.shape[d]), f"k{d}") for d in axes]
        element: Any = lambda *i: reducer(data(*_indices(data, axes, keepdims, i, over)), axis=over)  # noqa: E731
        return te.compute(_shape(data, axes, keepdims), element, name=f"{data.op.name}_red", tag=COMM_REDUCE)
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"The {name} over an axis, several, or all (None)."
    return compute


sum, prod, max, min = (_reduce(n, getattr(te, n)) for n in ("sum", "prod", "max", "min"))  # noqa: A001
all = _reduce("all", te.comm_reducer(tir_op.all, lambda t: tir_op.const(True, t), "all"))  # noqa: A001
any = _reduce("any", te.comm_reducer(tir_op.any, lambda t: tir_op.const(False, t), "any"))  # noqa: A001


def _place(name: str, better: Any, worst: Any) -> Any:
    def compute(data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
        axes = _axes(data, axis)
        over = [te.reduce_axis((0, data.shape[d]), f"k{d}") for d in axes]
        number: Any = 0
        for v, d in zip(over, axes):
            number = number * data.shape[d] + v.var if len(axes) > 1 else v.var

        def combine(a: Any, b: Any) -> Any:
            first = tir_op.any(better(a[1], b[1]), tir_op.all(a[1] == b[1], a[0] > b[0] if select_last_index else a[0] < b[0]))
            return Select(first, a[0], b[0]), Select(first, a[1], b[1])
        least = -1 if select_last_index else tir_op.max_value("int32")
        reducer = te.comm_reducer(combine, lambda t0, t1: (tir_op.const(least, t0), worst(t1)), name)
        both = te.compute(_shape(data, axes, keepdims), lambda *i: reducer((number, data(*_indices(data, axes, keepdims, i, over))), axis=over), name=f"{data.op.name}_red_temp",
                          tag=COMM_REDUCE_IDX)
        return te.compute(both[0].shape, lambda *i: both[0](*i), name=f"{data.op.name}_red", tag=COMM_REDUCE_IDX)
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"Where the {name[3:]} lies over an axis, or in the flat tensor; of equal ones the first, or the last."
    return compute


argmax, argmin = _place("argmax", lambda a, b: a > b, tir_op.min_value), _place("argmin", lambda a, b: a < b, tir_op.max_value)

__all__ = ["all", "any", "argmax", "argmin", "max", "min", "prod", "sum"]
