# SPDX-License-Identifier: Apache-2.0
"""Numbers and dimensions of types, under their classic names. Loop IR itself is inspected with `tilewright compile --dump-ir`."""
from __future__ import annotations

import typing

from . import _core


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


def __getattr__(name: str) -> typing.Any:
    raise AttributeError(f"tilewright.tir has no '{name}': kernels are built in; 'tilewright compile --dump-ir' shows their loops")


__all__ = ["Any", "FloatImm", "IntImm", "PrimExpr", "SizeVar", "StringImm", "Var", "const"]
