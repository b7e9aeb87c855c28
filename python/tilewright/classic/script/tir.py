# SPDX-License-Identifier: Apache-2.0
"""The names that scripts import as `T`: statement names (parser.py implements them) and functions of expressions."""
from __future__ import annotations

import typing

from ..tir import op as _op
from ..tir.expr import Broadcast as _Broadcast, FloatImm as _FloatImm, IntImm as _IntImm, Ramp as _Ramp, Select, Var as _Var
from ..tir.op import (acos, acosh, asin, asinh, atan, atanh, call_extern as _call_extern, call_packed, ceil, clz, copysign, cos, cosh, erf, exp, exp10, exp2, floor, floordiv, floormod, fma, fmod,
                      if_then_else, infinity, isfinite, isinf, isnan, ldexp, likely, log, log1p, log2, log10, max_value, min_value, nearbyint, popcount, pow, power, reinterpret as _reinterpret,
                      ret, round, rsqrt, shift_left, shift_right, sigmoid, sin, sinh, sqrt, tan, tanh, trunc, truncdiv, truncmod)  # noqa: A004
from ..tir.reduction import max, min  # noqa: A004
from .parser import prim_func


def _number(dtype: str) -> typing.Any:
    def make(value: typing.Any = 0) -> typing.Any:
        if isinstance(value, str):
            value = float(value)
        if isinstance(value, (int, float)) and not hasattr(value, "dtype"):
            return _FloatImm(dtype, value) if dtype.startswith("float") else _IntImm(dtype, value)
        return _op._core.prim_cast(dtype, value)
    make.__name__ = make.__qualname__ = dtype
    make.__doc__ = f"A number of {dtype}; as a parameter's annotation: a size of that dtype."
    make.dtype = dtype  # type: ignore[attr-defined]
    return make


int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64 = (_number(d) for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                                                                                                           "float64"))
int_, float_ = int32, float32


def cast(value: typing.Any, dtype: str) -> typing.Any:
    """Casts a value to a dtype."""
    return _op._core.prim_cast(str(dtype), value)


def reinterpret(value: typing.Any, dtype: str) -> typing.Any:
    return _reinterpret(dtype, value)


def bool(value: typing.Any) -> typing.Any:  # noqa: A001
    """Casts a condition to bool."""
    return _IntImm("bool", int(value)) if isinstance(value, int) else _op._core.prim_cast("bool", value)


def call_extern(func_name: str, *args: typing.Any, dtype: str = "int32") -> typing.Any:
    """Calls a C function by name."""
    if func_name.startswith(("int", "float", "uint", "handle", "void")) and args and isinstance(args[0], str):  # later versions pass the dtype first
        func_name, args, dtype = args[0], args[1:], func_name
    return _call_extern("int32" if dtype in ("", "handle", "void") else dtype, func_name, *args)


def address_of(element: typing.Any, dtype: str = "handle") -> typing.Any:
    return _op.address_of(element)


def ramp(base: typing.Any, stride: int, lanes: int) -> typing.Any:
    return _Ramp(base, stride, lanes)


def broadcast(value: typing.Any, lanes: int) -> typing.Any:
    return _Broadcast(value, lanes)


def var(dtype: str) -> typing.Any:
    """A symbolic size or a let variable, named after its assignment."""
    return _Var("v", dtype)


class _Buffer:
    """The type of a buffer parameter: `T.Buffer[(128, 128), "float32"]` or `T.Buffer((128, 128), "float32")`."""

    def __init__(self, shape: typing.Any, dtype: str = "float32"):
        self.shape, self.dtype = shape if isinstance(shape, (tuple, list)) else (shape,), dtype


class _BufferMaker:
    def __getitem__(self, key: typing.Any) -> _Buffer:
        return _Buffer(*key) if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], str) else _Buffer(key)

    def __call__(self, shape: typing.Any, dtype: str = "float32", **_: typing.Any) -> _Buffer:
        return _Buffer(shape, dtype)


Buffer = _BufferMaker()
handle = "handle"
abs, fabs = _op.abs, _op.abs  # noqa: A001

__all__ = ["Buffer", "Select", "abs", "acos", "acosh", "address_of", "asin", "asinh", "atan", "atanh", "bool", "broadcast", "call_extern", "call_packed", "cast", "ceil", "clz", "copysign", "cos", "cosh",
           "erf", "exp", "exp10", "exp2", "fabs", "float16", "float32", "float64", "floor", "floordiv", "floormod", "fma", "fmod", "handle", "if_then_else", "infinity", "int16", "int32", "int64", "int8",
           "isfinite", "isinf", "isnan", "ldexp", "likely", "log", "log10", "log1p", "log2", "max", "max_value", "min", "min_value", "nearbyint", "popcount", "pow", "power", "prim_func", "ramp",
           "reinterpret", "ret", "round", "rsqrt", "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "truncdiv", "truncmod", "uint16", "uint32", "uint64", "uint8", "var"]
