# SPDX-License-Identifier: Apache-2.0
"""Einstein sums and tensor dot products."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import te
from ..te.tensor import Tensor


def _letters(subscripts: str, ranks: Sequence[int]) -> tuple[list[list[Any]], list[Any]]:
    """The axis labels of each operand and of the result. Axes of "..." are numbered from the right."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise ValueError(f"einsum('{subscripts}') has {len(parts)} operands, not {len(ranks)}")

    def names(part: str, rank: int) -> list[Any]:
        before, dots, after = part.partition("...")
        free = rank - len(before) - len(after)
        if free < 0 or (free and not dots):
            raise ValueError(f"einsum('{subscripts}'): '{part}' does not fit {rank} dimensions")
        return [*before, *range(free, 0, -1), *after]
    inputs = [names(part, rank) for part, rank in zip(parts, ranks)]
    free = max((n for part in inputs for n in part if isinstance(n, int)), default=0)
    if arrow:
        before, dots, after = right.partition("...")
        return inputs, [*before, *(range(free, 0, -1) if dots else []), *after]
    seen = [n for part in inputs for n in part if isinstance(n, str)]
    return inputs, [*range(free, 0, -1), *sorted(n for n in set(seen) if seen.count(n) == 1)]


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """Sums over all labels that are absent from the result: einsum("ij,jk->ik", a, b)."""
    operands = list(operand[0]) if len(operand) == 1 and isinstance(operand[0], (list, tuple)) else list(operand)
    inputs, output = _letters(subscripts, [t.ndim for t in operands])
    sizes: dict[Any, Any] = {}
    for t, names in zip(operands, inputs):
        for name, size in zip(names, t.shape):
            if name in sizes and isinstance(size, int) and isinstance(sizes[name], int) and int(size) != int(sizes[name]) and 1 not in (int(size), int(sizes[name])):
                raise ValueError(f"einsum('{subscripts}'): '{name}' is {sizes[name]} and {size}")
            if name not in sizes or (isinstance(sizes[name], int) and int(sizes[name]) == 1):
                sizes[name] = size
    for name in output:
        if name not in sizes:
            raise ValueError(f"einsum('{subscripts}'): no operand has '{name}'")
    summed = [n for n in sizes if n not in output]
    over = {n: te.reduce_axis((0, sizes[n]), f"k{i}") for i, n in enumerate(summed)}

    def element(*at: Any) -> Any:
        place = {**dict(zip(output, at)), **{n: axis.var for n, axis in over.items()}}
        product: Any = None
        for t, names in zip(operands, inputs):
            value = t(*[0 if isinstance(size, int) and int(size) == 1 and not (isinstance(sizes[n], int) and int(sizes[n]) == 1) else place[n] for n, size in zip(names, t.shape)])
            product = value if product is None else product * value
        return te.sum(product, axis=list(over.values())) if over else product
    return te.compute([sizes[n] for n in output], element, name="T_einsum", tag="matmul" if over else "injective")


def tensordot(a: Tensor, b: Tensor, axes: Any = None) -> Tensor:
    """Contracts the last `axes` dimensions of a with the first of b, or the axes of two lists."""
    axes = 2 if axes is None else axes
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = ([int(x) for x in (side if isinstance(side, (list, tuple)) else [side])] for side in axes)
    if len(left) != len(right) or any(isinstance(a.shape[p], int) and isinstance(b.shape[q], int) and int(a.shape[p]) != int(b.shape[q]) for p, q in zip(left, right)):
        raise ValueError(f"tensordot of {list(a.shape)} and {list(b.shape)} over {left} and {right}: these have other sizes")
    names_a: list[Any] = [f"a{d}" for d in range(a.ndim)]
    over = [te.reduce_axis((0, a.shape[d]), f"k{n}") for n, d in enumerate(left)]
    free_a, free_b = [d for d in range(a.ndim) if d not in left], [d for d in range(b.ndim) if d not in right]

    def element(*i: Any) -> Any:
        mine, theirs = i[:len(free_a)], i[len(free_a):]
        x = a(*[over[left.index(d)].var if d in left else mine[free_a.index(d)] for d in range(len(names_a))])
        y = b(*[over[right.index(d)].var if d in right else theirs[free_b.index(d)] for d in range(b.ndim)])
        return te.sum(x * y, axis=over) if over else x * y
    return te.compute([*[a.shape[d] for d in free_a], *[b.shape[d] for d in free_b]], element, name="T_tensordot", tag="matmul")


__all__ = ["einsum", "tensordot"]
