# SPDX-License-Identifier: Apache-2.0
"""The names that scripts import as `T`: statement names (parser.py implements them) and functions of expressions."""
from __future__ import annotations

import functools
import typing

from ..tir import op as _op
from ..tir.expr import Broadcast as _Broadcast, FloatImm as _FloatImm, IntImm as _IntImm, Ramp as _Ramp, Select, Var as _Var
from ..tir.expr import dtype_of as _dtype_of
from ..tir.op import call_extern as _call_extern, call_packed as _call_packed, max_value, min_value, infinity, reinterpret as _reinterpret, ret
from ..tir.reduction import max, min  # noqa: A004
from .parser import prim_func


def _typed(function: typing.Any) -> typing.Any:
    """The function of values with their dtype as a keyword, as scripts of versions before 0.10 write it."""
    @functools.wraps(function)
    def call(*args: typing.Any, dtype: str | None = None) -> typing.Any:
        value = function(*args)
        return value if dtype is None or _dtype_of(value) == dtype else _op._core.prim_cast(str(dtype), value)
    return call


# Functions of values.
_TYPED = ("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clz", "copysign", "cos", "cosh", "erf", "exp", "exp10",
          "exp2", "floor", "floordiv", "floormod", "fma", "fmod", "hypot", "if_then_else", "isfinite", "isinf", "isnan", "ldexp", "likely", "log", "log10", "log1p", "log2", "nearbyint", "nextafter",
          "popcount", "pow", "power", "q_multiply_shift", "round", "rsqrt", "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "truncdiv", "truncmod")
globals().update({name: _typed(getattr(_op, name)) for name in _TYPED})


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


call_pure_extern = call_extern


def call_llvm_pure_intrin(name: str, *args: typing.Any, dtype: str) -> typing.Any:
    """An intrinsic of LLVM by its name, "llvm.sqrt", with the count of what it is overloaded for before its values."""
    return _op.call_llvm_pure_intrin(dtype, name, *[int(a.value) if isinstance(a, _IntImm) and i == 0 else a for i, a in enumerate(args)])


call_llvm_intrin = call_llvm_pure_intrin


def llvm_lookup_intrinsic_id(name: str) -> str:
    return name


def call_packed(func_name: str, *args: typing.Any, dtype: str = "int32") -> typing.Any:
    """Calls a function of the runtime by name, with whole buffers and numbers; its result is not used."""
    return _call_packed(func_name, *args)


tvm_call_packed = tvm_call_cpacked = call_cpacked = call_packed


def tvm_stack_make_shape(*dims: typing.Any, dtype: str = "handle") -> tuple[typing.Any, ...]:
    """The dimensions of a tensor that a function of the runtime is given."""
    return dims


def tvm_stack_make_array(data: typing.Any, shape: typing.Any, strides: typing.Any, ndim: int, arr_dtype: typing.Any, elem_offset: typing.Any, dtype: str = "handle") -> typing.Any:
    """A tensor that a function of the runtime is given: all of the buffer whose data this is. ValueError: a part of it, or other dimensions."""
    buffer = getattr(data, "_memory", None)
    if buffer is None or [str(d) for d in shape] != [str(d) for d in buffer.shape] or len(shape) != ndim or not isinstance(elem_offset, int) or elem_offset != 0:
        raise ValueError(f"the tensor of {data} is not all of its buffer" + ("" if buffer is None else f", whose shape is {list(buffer.shape)}") + "; give functions of the runtime whole buffers")
    return buffer


def load(dtype: str, buffer: typing.Any, index: typing.Any, predicate: typing.Any = True) -> typing.Any:
    """An element, or a vector by a T.ramp, as scripts before buffers had indices read it: of a buffer or its `data`, counted from the first
    element in the order of rows. ValueError: the memory holds another dtype."""
    memory = getattr(buffer, "_memory", buffer)
    if not hasattr(memory, "shape"):
        raise ValueError(f"'{buffer}' is no memory; give a buffer or its data")
    element = memory[index]
    if str(dtype) != element.dtype:
        raise ValueError(f"{dtype} is read of '{memory.name}', where this index gives {element.dtype}")
    return element


def address_of(element: typing.Any, dtype: str = "handle") -> typing.Any:
    return _op.address_of(element)


LOOKUP = "tir.lookup_param:"  # followed by the weight's name


def lookup_param(param_name: str, dtype: str = "handle") -> typing.Any:
    """The memory of a weight, by its name in the module."""
    return _op._core.extern_value(dtype, LOOKUP + param_name, [])


class _Pointer:
    """The type of a variable that is an address: `T.Ptr("int8")` or `T.Ptr[T.int8]`."""

    dtype = "handle"

    def __call__(self, element: typing.Any, storage_scope: str = "global") -> "_Pointer":
        return self

    __getitem__ = __call__


Ptr = _Pointer()


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
fabs = _typed(_op.abs)

__all__ = ["Buffer", "Ptr", "Select", "address_of", "bool", "broadcast", "call_cpacked", "call_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "call_packed", "call_pure_extern", "cast", "fabs", "float16", "float32",
           "float64", "handle", "infinity", "int16", "int32", "int64", "int8", "llvm_lookup_intrinsic_id", "load", "lookup_param", "max", "max_value", "min", "min_value", "prim_func", "ramp", "reinterpret", "ret", "tvm_call_cpacked", "tvm_call_packed", "tvm_stack_make_array",
           "tvm_stack_make_shape", "uint16",
           "uint32", "uint64", "uint8", "var", *_TYPED]
