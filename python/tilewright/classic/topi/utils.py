# SPDX-License-Identifier: Apache-2.0
"""Numbers out of sizes."""
from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any


class InvalidShapeError(ValueError):
    """A size that fits nothing."""


def get_const_int(expr: Any) -> int:
    """ValueError for a size that is no number."""
    try:
        return int(expr)
    except (TypeError, ValueError):
        raise ValueError(f"Expect value to be constant int, not {expr}") from None


def get_const_float(expr: Any) -> float:
    return float(expr)


def equal_const_int(expr: Any, value: int) -> bool:
    return isinstance(expr, int) and int(expr) == value


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes as numbers; those that are none stay."""
    return tuple(int(d) if isinstance(d, int) else d for d in in_tuple)


def get_float_tuple(in_tuple: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(d) for d in in_tuple)


def prod(x: Sequence[Any]) -> Any:
    """The product, 1 of nothing."""
    return reduce(mul, x, 1)


def simplify(expr: Any) -> Any:
    return expr


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The largest power of two that divides n, at most max_value."""
    power = 1
    while n % 2 == 0 and n and (max_value is None or power * 2 <= max_value):
        power, n = power * 2, n // 2
    return power


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The place in row-major order."""
    out: Any = 0
    for index, size in zip(indices, shape):
        out = out * size + index
    return out


def unravel_index(idx: Any, shape: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for size in reversed(shape):
        out.append(idx % size)
        idx = idx // size
    return out[::-1]


def is_empty_shape(shape: Sequence[Any]) -> bool:
    return any(int(d) == 0 for d in shape)


def traverse_inline(s: Any, final_op: Any, callback: Any) -> None:
    """callback(op) of an operation and of all it reads, the readers last; injective ones that have readers are computed inline."""
    from .tag import is_injective
    visited: list[Any] = []

    def visit(op: Any) -> None:
        if op in visited:
            return
        visited.append(op)
        if is_injective(op.tag):
            if op not in s.outputs:
                s[op].compute_inline()
            for tensor in op.input_tensors:
                if tensor.op.input_tensors:
                    visit(tensor.op)
        callback(op)
    visit(final_op)


def nchw_xc_layout(layout: str) -> int:
    """8 of "NCHW8c". ValueError for a layout of another kind."""
    found = re.fullmatch(r"NCHW(\d+)c", layout)
    if not found:
        raise ValueError(f"{layout} is no layout NCHW with blocks of channels")
    return int(found.group(1))


def nchw_pack_layout(layout: str) -> tuple[int, int]:
    """(1, 16) of "NCHW1n16c". ValueError for a layout of another kind."""
    found = re.fullmatch(r"NCHW(\d+)n(\d+)c", layout)
    if not found:
        raise ValueError(f"{layout} is no layout NCHW with blocks of batch and channels")
    return int(found.group(1)), int(found.group(2))


def const_vector(vector: Any, name: str = "const_vector") -> Any:
    """A tensor of numbers that are written into the expression."""
    from .. import te
    from ..tir import op as tir_op
    if len(vector.shape) != 1:
        raise ValueError(f"const_vector takes numbers in one dimension, not in {len(vector.shape)}")

    def element(i: Any) -> Any:
        out: Any = tir_op.const(0, str(vector.dtype))
        for at, value in enumerate(vector.tolist()):
            out = tir_op.if_then_else(i == at, tir_op.const(value, str(vector.dtype)), out)
        return out
    return te.compute(vector.shape, element, name=name)


def within_index(b: Any, e: Any, s: Any, i: Any) -> Any:
    """Whether i is one of b, b + s, ... before e (after it where s is negative)."""
    from ..tir import op as tir_op
    from ..tir.expr import Select
    inside = Select(s < 0, tir_op.all(i <= b, i > e), tir_op.all(i >= b, i < e)) if not isinstance(s, int) else tir_op.all(i <= b, i > e) if s < 0 else tir_op.all(i >= b, i < e)
    return tir_op.all(inside, (i - b) % (abs(s) if isinstance(s, int) else tir_op.abs(s)) == 0)


def make_idx(b: Any, e: Any, s: Any, z: Any, i: Any) -> Any:
    """The number of i among b, b + s, ...; z - 1 or 0 beyond the ends."""
    from ..tir import op as tir_op
    beyond, before = (i <= e, i > b) if isinstance(s, int) and s < 0 else (i >= e, i < b)
    return tir_op.if_then_else(beyond, z - 1, tir_op.if_then_else(before, 0, tir_op.div(i - b, s)))


__all__ = ["InvalidShapeError", "const_vector", "equal_const_int", "get_const_float", "get_const_int", "get_const_tuple", "get_float_tuple", "get_max_power2_factor", "is_empty_shape", "make_idx", "nchw_pack_layout", "nchw_xc_layout", "prod",
           "ravel_index", "simplify", "traverse_inline", "unravel_index", "within_index"]
