# SPDX-License-Identifier: Apache-2.0
"""Layouts: the axes of tensors by letters."""
from __future__ import annotations

import typing

from .expr import IntImm


class Layout:
    """The axes of a tensor by letters: `layout("NCHW16c")`; capitals are primal axes, lower-case letters inner parts with their sizes."""

    def __init__(self, name: str):
        import re
        self.name = str(name)
        self._axes = re.findall(r"(\d*)([A-Za-z])", self.name)
        if "".join(size + axis for size, axis in self._axes) != self.name:
            raise ValueError(f"'{name}' is no layout")

    def __len__(self) -> int:
        return len(self._axes)

    def same_as(self, other: object) -> bool:
        return self is other

    def __contains__(self, axis: str) -> bool:
        return any(a == axis for _, a in self._axes)

    def __getitem__(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError("Layout index out of range")
        return self._axes[index][1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def index_of(self, axis: str) -> int:
        """The position of an axis, or -1."""
        return next((i for i, (_, a) in enumerate(self._axes) if a == axis), -1)

    def factor_of(self, axis: str) -> int:
        """The size of an axis's inner part, by either letter; -1 if the axis is not split."""
        sizes = [int(size) for size, a in self._axes if size and a.upper() == axis.upper()]
        return sizes[0] if sizes else -1

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name})"


def layout(layout_str: str) -> Layout:
    return Layout(layout_str)


def _number(value: typing.Any) -> typing.Any:
    return value if hasattr(value, "same_as") and not isinstance(value, int) else int(value)


class BijectiveLayout:
    """The map between two layouts of the same axes, for shapes and indices."""

    def __init__(self, src_layout: Layout | str, dst_layout: Layout | str):
        self.src_layout, self.dst_layout = (v if isinstance(v, Layout) else Layout(v) for v in (src_layout, dst_layout))
        if {a.upper() for _, a in self.src_layout._axes} != {a.upper() for _, a in self.dst_layout._axes}:
            raise ValueError(f"{self.src_layout} and {self.dst_layout} have other axes")

    @staticmethod
    def _whole(layout: Layout, numbers: typing.Any, sizes: bool) -> dict[str, int]:
        """Sizes (or indices) of the primal axes, from those of their parts."""
        out: dict[str, int] = {}
        for axis in dict.fromkeys(a.upper() for _, a in layout._axes):
            total = 1 if sizes else 0
            for (size, a), number in zip(layout._axes, numbers):
                if a.upper() == axis:
                    total = total * _number(number) if sizes else total * (int(size) if size else 1) + _number(number)
            out[axis] = total
        return out

    @staticmethod
    def _split(layout: Layout, whole: dict[str, int], sizes: bool) -> list[IntImm]:
        out = []
        for size, a in layout._axes:
            inner = layout.factor_of(a) if a.isupper() else 1
            number = whole[a.upper()]
            if a.isupper():
                value = number if inner < 0 else -(-number // inner) if sizes else number // inner
            else:
                value = int(size) if sizes else number % int(size)
            out.append(IntImm("int32", value) if isinstance(value, int) else value)
        return out

    def forward_shape(self, shape: typing.Any) -> list[IntImm]:
        return self._split(self.dst_layout, self._whole(self.src_layout, shape, True), True)

    def backward_shape(self, shape: typing.Any) -> list[IntImm]:
        return self._split(self.src_layout, self._whole(self.dst_layout, shape, True), True)

    def forward_index(self, index: typing.Any) -> list[IntImm]:
        return self._split(self.dst_layout, self._whole(self.src_layout, index, False), False)

    def backward_index(self, index: typing.Any) -> list[IntImm]:
        return self._split(self.src_layout, self._whole(self.dst_layout, index, False), False)


def bijective_layout(src_layout: Layout | str, dst_layout: Layout | str) -> BijectiveLayout:
    return BijectiveLayout(src_layout, dst_layout)


__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]
