# SPDX-License-Identifier: Apache-2.0
"""Padding in the classic forms."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sides(padding: Any, kernel: Sequence[int], rank: int) -> tuple[int, ...]:
    """The padding before every axis, then after. ValueError for an invalid size or name."""
    if isinstance(padding, int):
        both = [2 * padding] * rank
    elif isinstance(padding, (list, tuple)):
        if len(padding) == 2 * rank:
            return tuple(padding)
        if len(padding) not in (1, rank):
            raise ValueError(f"Size of padding can only be {rank} or {2 * rank}")
        both = [2 * p for p in (list(padding) * rank if len(padding) == 1 else padding)]
    elif padding == "VALID":
        both = [0] * rank
    elif padding == "SAME":
        both = [k - 1 for k in kernel]
    else:
        raise ValueError(f"Unknown padding option {padding}")
    before = [(b + 1) // 2 for b in both]
    return (*before, *(b - f for b, f in zip(both, before)))


def _list(kernel: Any, rank: int) -> list[int]:
    return [kernel] * rank if isinstance(kernel, int) else list(kernel)


def get_pad_tuple(padding: Any, kernel: Any) -> tuple[int, ...]:
    """(top, left, bottom, right)"""
    return sides(padding, _list(kernel, 2), 2)


def get_pad_tuple1d(padding: Any, kernel: Any = None) -> tuple[int, ...]:
    return sides(padding, _list(kernel or 1, 1), 1)


def get_pad_tuple2d(padding: Any, kernel: Any = None) -> tuple[int, ...]:
    return sides(padding, _list(kernel or 1, 2), 2)


def get_pad_tuple3d(padding: Any, kernel: Any = None) -> tuple[int, ...]:
    """(front, top, left, back, bottom, right)"""
    return sides(padding, _list(kernel or 1, 3), 3)


def infer_pad(data: Any, data_pad: Any) -> tuple[Any, Any]:
    """The total padding of height and width, from the shapes of a padded tensor and its source; (0, 0) without one."""
    if data_pad is None:
        return 0, 0
    return (data_pad.shape[2] - data.shape[2]) // 2, (data_pad.shape[3] - data.shape[3]) // 2


def infer_stride(data: Any, kernel: Any, out: Any) -> tuple[Any, Any]:
    """The strides of a convolution, from its shapes."""
    return tuple((data.shape[d] - kernel.shape[d]) // (out.shape[d] - 1) for d in (2, 3))  # type: ignore[return-value]


__all__ = ["infer_pad", "infer_stride", "sides", "get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple2d", "get_pad_tuple3d"]
