# SPDX-License-Identifier: Apache-2.0
"""Affine types: a quantised value's scale, zero point and dtype, for passes over quantised networks."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class AffineType:
    """Base class of affine types."""


class TensorAffineType(AffineType):
    """real = scale * (integer - zero_point), with one pair per channel of `axis`, or one for the tensor."""

    def __init__(self, scale: Any, zero_point: Any, dtype: str, axis: int = -1):
        self.scale, self.zero_point, self.dtype, self.axis = scale, zero_point, dtype, int(axis)

    def __eq__(self, other: object) -> bool:
        from . import structural_equal
        return isinstance(other, TensorAffineType) and self.dtype == other.dtype and self.axis == other.axis and \
            structural_equal(self.scale, other.scale) and structural_equal(self.zero_point, other.zero_point)

    def __hash__(self) -> int:
        return hash((self.dtype, self.axis))

    def __repr__(self) -> str:
        return f"TensorAffineType({self.scale}, {self.zero_point}, {self.dtype}, {self.axis})"


class TupleAffineType(AffineType):
    """The affine types of a tuple's fields."""

    def __init__(self, types: Sequence[TensorAffineType]):
        self.types = list(types)

    def __getitem__(self, index: int) -> TensorAffineType:
        return self.types[index]

    def __iter__(self) -> Iterator[TensorAffineType]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleAffineType) and self.types == other.types

    def __hash__(self) -> int:
        return hash(tuple(self.types))


__all__ = ["AffineType", "TensorAffineType", "TupleAffineType"]
