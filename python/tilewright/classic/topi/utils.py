# SPDX-License-Identifier: Apache-2.0
"""Numbers out of sizes."""
from __future__ import annotations

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


__all__ = ["InvalidShapeError", "equal_const_int", "get_const_float", "get_const_int", "get_const_tuple", "get_float_tuple", "get_max_power2_factor", "is_empty_shape", "prod",
           "ravel_index", "simplify", "unravel_index"]
