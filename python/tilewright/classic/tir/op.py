# SPDX-License-Identifier: Apache-2.0
"""Functions of expressions: intrinsics, choices, conditions, divisions of integers."""
from __future__ import annotations

import typing

from ... import _core
from .expr import IntImm, dtype_of


def const(value: typing.Any, dtype: str | None = None, span: object = None) -> typing.Any:
    """A number with a dtype."""
    if dtype is None:
        dtype = str(value.dtype) if hasattr(value, "dtype") else "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    if isinstance(value, int) and "int" in str(dtype) and "x" not in str(dtype):
        return IntImm(str(dtype), int(value))
    return _core.prim_const(value, str(dtype))


def _int_op(kind: str, a: typing.Any, b: typing.Any) -> typing.Any:
    if isinstance(a, _core.Dim) or isinstance(b, _core.Dim):
        return a // b if kind == "FloorDiv" else a - (a // b) * b
    return _core.prim_binary(kind, a, b)


def floordiv(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    """a / b, rounded down."""
    return _int_op("FloorDiv", a, b)


def floormod(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    """The remainder of floordiv."""
    return _int_op("FloorMod", a, b)


indexdiv, indexmod = floordiv, floormod


def truncdiv(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    """a / b, rounded towards zero."""
    return _core.prim_binary("Div", a, b)


def truncmod(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    """The remainder of truncdiv."""
    return _core.prim_binary("Mod", a, b)


def div(a: typing.Any, b: typing.Any, span: object = None) -> typing.Any:
    """a / b with C semantics."""
    return _core.prim_binary("Div", a, b)


def ceildiv(lhs: typing.Any, rhs: typing.Any, span: object = None) -> typing.Any:
    """a / b, rounded up."""
    return floordiv(lhs + (rhs - 1), rhs)


def max_value(dtype: str, span: object = None) -> typing.Any:
    """The maximum value of a dtype."""
    return _limit(dtype, "max")


def min_value(dtype: str, span: object = None) -> typing.Any:
    """The minimum value of a dtype."""
    return _limit(dtype, "min")


def _limit(dtype: str, which: str) -> typing.Any:
    import numpy as np
    if dtype == "bfloat16":
        return const(3.3895313892515355e38 if which == "max" else -3.3895313892515355e38, dtype)
    return const(getattr(np.finfo(dtype) if "float" in dtype else np.iinfo(dtype), which).item() if "float" in dtype else int(getattr(np.iinfo(dtype), which)), dtype)


def infinity(dtype: str, span: object = None) -> typing.Any:
    return const(float("inf"), dtype)


def if_then_else(cond: typing.Any, t: typing.Any, f: typing.Any, span: object = None) -> typing.Any:
    """t if the condition holds, else f; only the selected one is evaluated."""
    return _core.prim_choose(True, cond, t, f)


def all(*args: typing.Any, span: object = None) -> typing.Any:  # noqa: A001
    """Whether all conditions hold."""
    return _chain("And", args)


def any(*args: typing.Any, span: object = None) -> typing.Any:  # noqa: A001
    """Whether any of the conditions holds."""
    return _chain("Or", args)


def _chain(kind: str, args: typing.Any) -> typing.Any:
    if not args:
        raise ValueError("Any must take at least 1 argument" if kind == "Or" else "All must take at least 1 argument")
    out = args[0].asobject() if hasattr(args[0], "asobject") else args[0]
    for arg in args[1:]:
        out = _core.prim_binary(kind, out, arg)
    return out


def _intrinsic(name: str, doc: str = "") -> typing.Any:
    def call(x: typing.Any, span: object = None) -> typing.Any:
        return _core.prim_call(name, [x])
    call.__name__, call.__qualname__, call.__doc__ = name, name, doc or f"{name}(x), element by element."
    return call


(exp, exp2, log, log2, log10, sqrt, rsqrt, tanh, erf, sigmoid, sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, isinf, isfinite, popcount, clz) = (
    _intrinsic(n) for n in ("exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
                            "acosh", "atanh", "isinf", "isfinite", "popcount", "clz"))


def _rounding(name: str) -> typing.Any:
    def call(x: typing.Any, span: object = None) -> typing.Any:
        return x if "int" in dtype_of(x) else _core.prim_call(name, [x])
    call.__name__, call.__qualname__, call.__doc__ = name, name, f"{name}(x); integers stay."
    return call


floor, ceil, round, trunc, nearbyint = (_rounding(n) for n in ("floor", "ceil", "round", "trunc", "round"))  # noqa: A001


def isnan(x: typing.Any, span: object = None) -> typing.Any:
    lanes = dtype_of(x).partition("x")[2]
    return const(False, f"boolx{lanes}" if lanes else "bool") if "int" in dtype_of(x) else _core.prim_call("isnan", [x])


def exp10(x: typing.Any) -> typing.Any:
    return power(const(10.0, dtype_of(x)), x)


def log1p(x: typing.Any) -> typing.Any:
    return _core.prim_call("log1p", [x])


def abs(x: typing.Any, span: object = None) -> typing.Any:  # noqa: A001
    """The absolute value."""
    dtype = dtype_of(x)
    if "float" in dtype:
        return _core.prim_call("fabs", [x])
    return x if dtype.startswith("uint") else _core.prim_choose(False, _core.prim_binary("GE", x, const(0, dtype)), x, _core.prim_binary("Sub", const(0, dtype), x))


def power(x: typing.Any, y: typing.Any, span: object = None) -> typing.Any:
    """x to the power y; for integers y must be a non-negative constant."""
    if "int" in dtype_of(x):
        if not isinstance(y, int) or y < 0:
            raise ValueError("a power of integers has a constant exponent of 0 or more; cast to float32 for others")
        out: typing.Any = const(1, dtype_of(x))
        for _ in range(int(y)):
            out = _core.prim_binary("Mul", out, x)
        return out
    return _core.prim_call("pow", [x, const(float(y), dtype_of(x)) if isinstance(y, (int, float)) and not hasattr(y, "dtype") else y])


pow = power  # noqa: A001


def fmod(x: typing.Any, y: typing.Any) -> typing.Any:
    return _core.prim_call("fmod", [x, y])


def copysign(x1: typing.Any, x2: typing.Any) -> typing.Any:
    return _core.prim_call("copysign", [x1, x2])


def atan2(x1: typing.Any, x2: typing.Any) -> typing.Any:
    """The angle of the point (x2, x1)."""
    return _of_math("atan2", x1, x2)


def hypot(x1: typing.Any, x2: typing.Any) -> typing.Any:
    """sqrt(x1 * x1 + x2 * x2)."""
    return _of_math("hypot", x1, x2)


def nextafter(x1: typing.Any, x2: typing.Any) -> typing.Any:
    """The next representable number after x1 in the direction of x2."""
    return _of_math("nextafter", x1, x2)


def _of_math(name: str, x1: typing.Any, x2: typing.Any) -> typing.Any:
    """A function of the C mathematics library."""
    dtype = dtype_of(x1)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"{name} is for float32 and float64, not for {dtype}; cast its arguments with astype")
    return _core.extern_value(dtype, name + ("f" if dtype == "float32" else ""), [x1, _core.prim_cast(dtype, x2)])


def q_multiply_shift(x: typing.Any, y: typing.Any, q: typing.Any, s: typing.Any) -> typing.Any:
    """round(x * y * 2**(s - q)) of int32, with the product in int64 and ties rounded up."""
    if not isinstance(q, int) or not isinstance(s, int):
        raise ValueError("q_multiply_shift takes numbers for q and s")
    right, left = (int(q) - int(s), 0) if s <= 0 else (int(q), int(s))
    wide = const(1 << left, "int64") * _core.prim_cast("int64", x) if left else _core.prim_cast("int64", x)
    product = _core.prim_binary("Mul", wide, _core.prim_cast("int64", y))
    rounded = _core.prim_binary("ShiftRight", _core.prim_binary("Add", product, const(1 << (right - 1), "int64")), const(right, "int64")) if right else product
    return _core.prim_cast("int32", rounded)


def isnullptr(x: typing.Any, span: object = None) -> typing.Any:
    raise NotImplementedError("kernels get memory, no pointers that may be null; check arrays before the call")


def ldexp(x1: typing.Any, x2: typing.Any) -> typing.Any:
    """x1 * 2**x2, with an integer x2."""
    return _core.prim_call("ldexp_int", [x1, _core.prim_cast("int32", x2)])


def fma(x: typing.Any, y: typing.Any, z: typing.Any) -> typing.Any:
    return _core.prim_call("fma", [x, y, z])


def reinterpret(dtype: str, value: typing.Any) -> typing.Any:
    """Reinterprets the bits as another dtype."""
    return _core.prim_reinterpret(str(dtype), value)


def bitwise_and(x: typing.Any, y: typing.Any, span: object = None) -> typing.Any:
    return _core.prim_binary("BitAnd", x, y)


def bitwise_or(x: typing.Any, y: typing.Any, span: object = None) -> typing.Any:
    return _core.prim_binary("BitOr", x, y)


def bitwise_xor(x: typing.Any, y: typing.Any, span: object = None) -> typing.Any:
    return _core.prim_binary("BitXor", x, y)


def shift_left(x: typing.Any, y: typing.Any, span: object = None) -> typing.Any:
    return _core.prim_binary("ShiftLeft", x, y)


def shift_right(x: typing.Any, y: typing.Any, span: object = None) -> typing.Any:
    return _core.prim_binary("ShiftRight", x, y)


def bitwise_not(x: typing.Any, span: object = None) -> typing.Any:
    return _core.prim_binary("BitXor", x, const(-1, dtype_of(x)))


def likely(cond: typing.Any, span: object = None) -> typing.Any:
    """The condition itself; the branch hint is ignored."""
    return cond


_INTRINSICS = frozenset(("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "pow", "floor", "ceil", "round", "trunc", "fabs", "sin", "cos", "tan", "asin", "acos",
                        "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "fmod", "copysign", "isnan", "isinf", "isfinite", "popcount", "clz", "fma"))


def is_intrinsic(name: str) -> bool:
    """Whether calls may name it: "tir.exp", or what a script registered."""
    from ..relay.op.registry import is_registered
    return name.removeprefix("tir.") in _INTRINSICS or is_registered(name) or name in ("tir.if_then_else", "tir.call_extern", "tir.call_pure_extern", "tir.call_packed", "tir.likely", "tir.reinterpret")


_BINARY = {"bitwise_and": "BitAnd", "bitwise_or": "BitOr", "bitwise_xor": "BitXor", "shift_left": "ShiftLeft", "shift_right": "ShiftRight"}
# Intrinsics of LLVM by what they are here.
_LLVM = {"fabs": "abs", "ctpop": "popcount", "pow": "power", "rint": "nearbyint", **{n: n for n in ("sqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "floor", "ceil", "trunc", "round", "nearbyint",
                                                                                                    "copysign", "fma")}}


def call_intrin(dtype: str, func_name: str, *args: typing.Any, span: object = None) -> typing.Any:
    """Calls an intrinsic by name, such as `tir.exp`, or one of the script (`register_op_attr("tir.mine", ...)`), which a rule of
    register_intrin_lowering lowers."""
    name = str(getattr(func_name, "name", func_name)).removeprefix("tir.")
    if name == "if_then_else":
        return if_then_else(*args)
    if name == "reinterpret":
        return reinterpret(dtype, *args)
    if name == "address_of":
        return address_of(*args)
    if name in _BINARY:
        return _core.prim_binary(_BINARY[name], *args)
    if name not in _INTRINSICS:
        from ..relay.op.registry import is_registered
        if not is_registered(f"tir.{name}"):
            raise ValueError(f"there is no intrinsic '{func_name}'; one of your own is registered with register_op_attr(\"tir.{name}\", \"TCallEffectKind\", ...)")
        return _core.extern_value(str(dtype), f"tir.{name}", list(args))
    out = _core.prim_call(name, list(args))
    return out if dtype_of(out) == str(dtype) else _core.prim_cast(str(dtype), out)


def call_extern(dtype: str, func_name: str, *args: typing.Any, span: object = None) -> typing.Any:
    """Calls a C function by name: a value if all arguments are scalars, a statement if any is memory (`buffer.access_ptr("r")`)."""
    from .stmt import Address, ExternCall
    if [a for a in args if isinstance(a, (Address, _core.Array)) or hasattr(a, "_memory")]:
        return ExternCall(str(func_name), args, False, str(dtype))
    return _core.extern_value(str(dtype), str(func_name), list(args))


call_pure_extern = call_extern


def ret(val: typing.Any) -> typing.Any:
    """`Evaluate(ret(value))` ends a function, whose calls return the value."""
    return _core.extern_value(dtype_of(val), "tir.ret", [val])


TRACE = "tir.trace:"  # followed by the action's name


def trace(args: typing.Any, trace_action: str = "tvm.default_trace_action", span: object = None) -> typing.Any:
    """Of a te.compute: the last of the values, after a function of the runtime by this name has seen all of them; or what it returns.
    The default action prints them."""
    if not isinstance(args, (list, tuple)):
        raise Exception("tvm.tir.trace consumes the args as list type")
    if not args:
        raise ValueError("trace takes a value or more")
    return _core.extern_value(dtype_of(args[-1]), TRACE + trace_action, list(args))


def call_packed(*args: typing.Any, span: object = None) -> typing.Any:
    """Calls a runtime function by name with whole buffers and scalars: a statement of a te.extern, or at the outermost level of a
    function."""
    from .stmt import ExternCall
    if not args or not isinstance(args[0], str):
        raise ValueError("call_packed takes a function's name and its arguments")
    return ExternCall(args[0], args[1:], True)


call_cpacked = call_packed


def call_llvm_intrin(dtype: str, name: str, *args: typing.Any, span: object = None) -> typing.Any:
    """The intrinsics that are functions of one or more numbers: `call_llvm_pure_intrin("float32", "llvm.sqrt", 1, x)`, behind the name the count of
    what it is overloaded for. ValueError for others."""
    known = _LLVM.get(name.removeprefix("llvm.").partition(".")[0]) if name.startswith("llvm.") else None
    if known is not None and len(args) > 1 and isinstance(args[0], int):
        value = globals()[known](*args[1:])
        return value if dtype_of(value) == str(dtype) else _core.prim_cast(str(dtype), value)
    raise ValueError(f"the intrinsic '{name}' of LLVM is not called by name: kernels are vectorized by the schedule; a C function of yours may be (call_extern, import_llvm)")


call_llvm_pure_intrin = call_llvm_intrin


def address_of(buffer_load: typing.Any, span: object = None) -> typing.Any:
    """The address of a buffer element."""
    from .stmt import Address
    return Address(buffer_load)


class CallEffectKind:
    """The side effects of a function."""
    ExprAnnotation, Pure, ReadState, UpdateState, SpecialCallArg, EmbedInfo, ControlJump = range(7)
    Opaque = UpdateState


call_pure_intrin = call_intrin

__all__ = ["CallEffectKind", "abs", "address_of", "call_cpacked", "call_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "call_packed", "call_pure_extern", "acos", "acosh", "all", "any", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "call_intrin", "call_pure_intrin", "ceil", "ceildiv",
           "atan2", "clz", "const", "copysign", "cos", "cosh", "div", "erf", "exp", "exp10", "exp2", "floor", "floordiv", "floormod", "fma", "fmod", "hypot", "if_then_else", "indexdiv", "indexmod", "infinity",
           "isfinite", "isinf", "isnan", "isnullptr", "ldexp", "likely", "log", "log10", "log1p", "log2", "max_value", "min_value", "nearbyint", "nextafter", "popcount", "pow", "power", "q_multiply_shift", "reinterpret", "ret", "round", "rsqrt",
           "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trace", "trunc", "truncdiv", "truncmod"]
