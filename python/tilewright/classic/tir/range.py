# SPDX-License-Identifier: Apache-2.0
"""Ranges of loops and axes."""
from __future__ import annotations

from typing import Any

from .expr import IntImm


class Range:
    """The integers from `min` to `min + extent - 1`: `Range(0, 10)`, `Range(10)`."""

    def __init__(self, begin: Any, end: Any = None, span: Any = None):
        self.min, self.extent = (IntImm("int32", 0), begin) if end is None else (begin, end - begin)
        self.min, self.extent = (IntImm("int32", v) if type(v) is int else v for v in (self.min, self.extent))
        self.span = span

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any, span: Any = None) -> "Range":
        made = Range(0, extent, span)
        made.min = IntImm("int32", min_value) if type(min_value) is int else min_value
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and self.min == other.min and self.extent == other.extent

    def __hash__(self) -> int:
        return hash((str(self.min), str(self.extent)))

    def __repr__(self) -> str:
        return f"range(min={self.min}, ext={self.extent})"


__all__ = ["Range"]
