# SPDX-License-Identifier: Apache-2.0
"""Indices of a space as the knobs' numbers, of which the first changes fastest."""
from __future__ import annotations

from collections.abc import Sequence


def point2knob(p: int, dims: Sequence[int]) -> list[int]:
    """The number of each knob's value for an index."""
    knob = []
    for dim in dims:
        knob.append(p % dim)
        p //= dim
    return knob


def knob2point(knob: Sequence[int], dims: Sequence[int]) -> int:
    """The index of such numbers."""
    p = 0
    for value, dim in zip(reversed(knob), reversed(dims)):
        p = p * dim + value
    return p


__all__ = ["knob2point", "point2knob"]
