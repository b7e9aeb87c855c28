# SPDX-License-Identifier: Apache-2.0
"""Numbers and dimensions of types, under their classic names. Loop IR itself is inspected with `tilewright compile --dump-ir`."""
from __future__ import annotations

import typing

from .. import _core


class IntImm(int):
    """An integer that scripts may also ask for its `value`: dimensions of types are these."""

    def __new__(cls, dtype: typing.Any, value: typing.Any = None) -> "IntImm":
        made = super().__new__(cls, dtype if value is None else value)
        made.dtype = "int32" if value is None else str(dtype)  # type: ignore[attr-defined]
        return made

    @property
    def value(self) -> int:
        return int(self)

    def __getnewargs__(self) -> tuple[str, int]:
        return self.dtype, int(self)  # type: ignore[attr-defined]


class FloatImm(float):
    def __new__(cls, dtype: str, value: float) -> "FloatImm":
        made = super().__new__(cls, value)
        made.dtype = str(dtype)  # type: ignore[attr-defined]
        return made

    @property
    def value(self) -> float:
        return float(self)


    def __getnewargs__(self) -> tuple[str, float]:
        return self.dtype, float(self)  # type: ignore[attr-defined]


class StringImm(str):
    @property
    def value(self) -> str:
        return str(self)


class PrimExpr(_core.Dim):
    """A dimension that is no number: arithmetic on symbols."""

    dtype = "int64"

    def __add__(self, other: typing.Any) -> typing.Any:
        return _core.dim_arithmetic("+", self, other)

    def __radd__(self, other: typing.Any) -> typing.Any:
        return _core.dim_arithmetic("+", other, self)

    def __sub__(self, other: typing.Any) -> typing.Any:
        return _core.dim_arithmetic("-", self, other)

    def __mul__(self, other: typing.Any) -> typing.Any:
        return _core.dim_arithmetic("*", self, other)

    def __rmul__(self, other: typing.Any) -> typing.Any:
        return _core.dim_arithmetic("*", other, self)

    def __floordiv__(self, other: typing.Any) -> typing.Any:
        return _core.dim_arithmetic("/", self, other)

    def same_as(self, other: typing.Any) -> bool:
        return self == other


class Any(PrimExpr):
    """A dimension that is not known before the program runs: `?`."""

    def __init__(self) -> None:
        super().__init__(_core.any_dim())


class Var(PrimExpr):
    """A symbolic size."""

    def __init__(self, name: str, dtype: str = "int32", span: object = None):
        super().__init__(_core.symbol(name))
        self.dtype = dtype

    @property
    def name(self) -> str:
        return str(self)


SizeVar = Var


def const(value: typing.Any, dtype: str | None = None, span: object = None) -> typing.Any:
    """A number with a dtype."""
    dtype = dtype or ("bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32")
    return FloatImm(dtype, value) if dtype.startswith(("float", "bfloat")) else IntImm(dtype, value)

_core._set_class("IntImm", IntImm)
_core._set_class("Any", Any)
_core._set_class("Symbol", Var)
_core._set_class("Dim", PrimExpr)


def indexdiv(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    """a // b, of numbers that are not negative."""
    return a // b


def indexmod(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    return a - (a // b) * b


floordiv, floormod, truncdiv, truncmod, div = indexdiv, indexmod, indexdiv, indexmod, indexdiv


def ceildiv(lhs: typing.Any, rhs: typing.Any, span: object = None) -> typing.Any:
    return (lhs + rhs - 1) // rhs


def max_value(dtype: str, span: object = None) -> typing.Any:
    """The greatest number of a dtype."""
    import numpy as np
    return const(np.finfo(dtype).max.item() if "float" in dtype else np.iinfo(dtype).max, dtype)


def min_value(dtype: str, span: object = None) -> typing.Any:
    import numpy as np
    return const(np.finfo(dtype).min.item() if "float" in dtype else np.iinfo(dtype).min, dtype)


class Buffer:
    """A description of memory that loops read: a name, sizes and a dtype."""

    def __init__(self, shape: typing.Any, dtype: str = "float32", name: str = "buffer", data: typing.Any = None, strides: typing.Any = None,
                 elem_offset: typing.Any = None, scope: str = "", data_alignment: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: typing.Any = None):
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        self.shape = tuple(IntImm("int32", d) if type(d) is int else d for d in shape)
        self.dtype, self.name, self.data, self.strides, self.elem_offset = str(dtype), name, data, list(strides or []), elem_offset
        self.data_alignment, self.offset_factor, self.buffer_type, self._scope = data_alignment, offset_factor, buffer_type, scope

    def scope(self) -> str:
        return self._scope or "global"

    def __repr__(self) -> str:
        return f"buffer({self.name}, {self.dtype}, {list(self.shape)})"


def decl_buffer(shape: typing.Any, dtype: str | None = None, name: str = "buffer", data: typing.Any = None, strides: typing.Any = None, elem_offset: typing.Any = None,
                scope: str = "", data_alignment: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: typing.Any = None, span: object = None) -> Buffer:
    """A description of memory, of float32 unless a dtype is given."""
    return Buffer(shape, dtype or "float32", name, data, strides, elem_offset, scope, data_alignment, offset_factor, buffer_type, axis_separators)


class Layout:
    """The axes of a tensor by letters: `layout("NCHW16c")`; capital letters are axes, small ones parts of them with their size."""

    def __init__(self, name: str):
        import re
        self.name = str(name)
        self._axes = re.findall(r"(\d*)([A-Za-z])", self.name)
        if "".join(size + axis for size, axis in self._axes) != self.name:
            raise ValueError(f"'{name}' is no layout")

    def __len__(self) -> int:
        return len(self._axes)

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
        """-1 where there is none."""
        return next((i for i, (_, a) in enumerate(self._axes) if a == axis), -1)

    def factor_of(self, axis: str) -> int:
        """How long the part of an axis is, by either letter; -1 for an axis without one."""
        sizes = [int(size) for size, a in self._axes if size and a.upper() == axis.upper()]
        return sizes[0] if sizes else -1

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name})"


def layout(layout_str: str) -> Layout:
    return Layout(layout_str)


class BijectiveLayout:
    """From one layout to another of the same axes, for shapes and indices."""

    def __init__(self, src_layout: Layout | str, dst_layout: Layout | str):
        self.src_layout, self.dst_layout = (v if isinstance(v, Layout) else Layout(v) for v in (src_layout, dst_layout))
        if {a.upper() for _, a in self.src_layout._axes} != {a.upper() for _, a in self.dst_layout._axes}:
            raise ValueError(f"{self.src_layout} and {self.dst_layout} have other axes")

    @staticmethod
    def _whole(layout: Layout, numbers: typing.Any, sizes: bool) -> dict[str, int]:
        """Sizes (or indices) of the axes, their parts joined."""
        out: dict[str, int] = {}
        for axis in dict.fromkeys(a.upper() for _, a in layout._axes):
            total = 1 if sizes else 0
            for (size, a), number in zip(layout._axes, numbers):
                if a.upper() == axis:
                    total = total * int(number) if sizes else total * (int(size) if size else 1) + int(number)
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
            out.append(IntImm("int32", value))
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


def __getattr__(name: str) -> typing.Any:
    raise AttributeError(f"tilewright.tir has no '{name}': kernels are built in; 'tilewright compile --dump-ir' shows their loops")


__all__ = ["Any", "BijectiveLayout", "Buffer", "FloatImm", "IntImm", "Layout", "PrimExpr", "SizeVar", "StringImm", "Var", "bijective_layout", "ceildiv", "const", "decl_buffer",
           "div", "floordiv", "floormod", "indexdiv", "indexmod", "layout", "max_value", "min_value", "truncdiv", "truncmod"]
