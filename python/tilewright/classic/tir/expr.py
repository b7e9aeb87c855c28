# SPDX-License-Identifier: Apache-2.0
"""Expressions: constants, variables and operations. The C++ objects (`_core.PrimExpr`) are given the Python class of their kind."""
from __future__ import annotations

import ctypes
import operator
import re
import struct
import typing

from ... import _core
from .text import pretty, short


class ExprOp:
    """Base of classes with arithmetic operators (`with_operators`)."""


def _binary(kind: str) -> tuple[typing.Any, typing.Any]:
    return (lambda self, other: _operate(kind, self, other)), (lambda self, other: _operate(kind, other, self))


def _operate(kind: str, a: typing.Any, b: typing.Any) -> typing.Any:
    try:
        return _core.prim_binary(kind, a, b)
    except TypeError:
        return NotImplemented


def _divide(a: typing.Any, b: typing.Any) -> typing.Any:
    if all("int" in dtype_of(v) for v in (a, b)):
        raise RuntimeError("TVM supports multiple types of integer divisions, please call div, indexdiv/indexmod, floordiv/floormod  or truncdiv/truncmod directly to avoid "
                           "ambiguity in the code.")
    return _operate("Div", a, b)


def dtype_of(value: typing.Any) -> str:
    """The dtype of an expression, or of a number converted to one."""
    if isinstance(value, (_core.PrimExpr, IntImm, FloatImm)) or hasattr(value, "dtype"):
        return str(value.dtype)
    return "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"


class EqualOp:
    """a == b: an expression, whose truth value is whether both are the same object."""

    def __init__(self, a: typing.Any, b: typing.Any, kind: str = "EQ"):
        self.a, self.b, self._kind = a, b, kind

    def __bool__(self) -> bool:
        same = _same(self.a, self.b)
        return same if self._kind == "EQ" else not same

    def asobject(self) -> typing.Any:
        return _core.prim_binary(self._kind, self.a, self.b)

    @property
    def dtype(self) -> str:
        return "bool"

    def __invert__(self) -> typing.Any:
        return _core.prim_not(self)

    def __repr__(self) -> str:
        return repr(self.asobject())


def _same(a: typing.Any, b: typing.Any) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if hasattr(a, "same_as"):
        return a.same_as(b)
    return hasattr(b, "same_as") and b.same_as(a)


def _no_bool(self: typing.Any) -> bool:
    raise ValueError("Cannot use and / or / not operator to Expr, hint: use tvm.tir.all / tvm.tir.any instead")


def with_operators(cls: type) -> type:
    """Class decorator that adds the operators of expressions."""
    for name, kind in (("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("floordiv", "FloorDiv"), ("mod", "FloorMod"), ("lshift", "ShiftLeft"), ("rshift", "ShiftRight"),
                       ("and", "BitAnd"), ("or", "BitOr"), ("xor", "BitXor")):
        forward, backward = _binary(kind)
        setattr(cls, f"__{name}__", forward)
        setattr(cls, f"__r{name}__", backward)
    for name, kind in (("lt", "LT"), ("le", "LE"), ("gt", "GT"), ("ge", "GE")):
        setattr(cls, f"__{name}__", _binary(kind)[0])
    members: dict[str, typing.Any] = {
        "__truediv__": _divide, "__rtruediv__": lambda self, other: _divide(other, self), "__neg__": lambda self: _core.prim_binary("Mul", self, -1),
        "__pos__": lambda self: self, "__invert__": lambda self: _core.prim_binary("BitXor", self, -1) if dtype_of(self) != "bool" else _core.prim_not(self),
        "__eq__": lambda self, other: EqualOp(self, other), "__ne__": lambda self, other: EqualOp(self, other, "NE"),
        "__bool__": _no_bool, "__nonzero__": _no_bool, "equal": lambda self, other, span=None: _core.prim_binary("EQ", self, other),
        "astype": lambda self, dtype, span=None: _core.prim_cast(str(dtype), self)}
    for name, member in members.items():
        setattr(cls, name, member)
    cls.__hash__ = cls.__mro__[1].__hash__  # type: ignore[assignment]
    return cls


_BITS = {"int8": (-1 << 7, 1 << 7), "int16": (-1 << 15, 1 << 15), "int32": (-1 << 31, 1 << 31), "uint8": (0, 1 << 8), "uint16": (0, 1 << 16), "uint32": (0, 1 << 32), "bool": (0, 2)}


class IntImm(int):
    """An integer constant with a `value`, as classic scripts expect; dimensions of types are of this class."""

    def __new__(cls, dtype: typing.Any, value: typing.Any = None, span: object = None) -> "IntImm":
        made = super().__new__(cls, dtype if value is None else value)
        made.dtype = "int32" if value is None else str(dtype)  # type: ignore[attr-defined]
        if value is not None:
            low, high = _BITS.get(made.dtype, (int(made), int(made) + 1))  # type: ignore[attr-defined]
            if not low <= int(made) < high:
                raise ValueError(f"Literal value {int(made)} exceeds the range of {made.dtype}, {low} to {high - 1}")  # type: ignore[attr-defined]
        return made

    def __str__(self) -> str:
        return str(bool(self)) if self.dtype == "bool" else int.__repr__(self)  # type: ignore[attr-defined]

    @property
    def value(self) -> int:
        return int(self)

    @property
    def handle(self) -> ctypes.c_void_p:
        """Of this object; as in the classic interface every other one, also of the same node, has another."""
        return ctypes.c_void_p(id(self))

    def astype(self, dtype: typing.Any, span: object = None) -> typing.Any:
        return _core.prim_cast(str(dtype), self)

    def same_as(self, other: typing.Any) -> bool:
        return isinstance(other, int) and int(self) == int(other)

    def equal(self, other: typing.Any, span: object = None) -> typing.Any:
        return _core.prim_binary("EQ", self, other)

    def __getnewargs__(self) -> tuple[str, int]:
        return self.dtype, int(self)  # type: ignore[attr-defined]


def _common(a: str, b: str) -> str:
    """The common dtype of two integer dtypes."""
    if a == b:
        return a
    bits = max(int(re.sub("[^0-9]", "", d) or 32) for d in (a, b))
    return f"{'uint' if a.startswith('uint') and b.startswith('uint') else 'int'}{bits}"


def _folded(kind: str, function: typing.Callable[[int, int], int]) -> tuple[typing.Any, typing.Any]:
    """Folds constants; a constant and an expression make an expression. Results that overflow the dtype get a wider one."""
    def of(a: typing.Any, b: typing.Any) -> typing.Any:
        if not isinstance(a, int) or not isinstance(b, int):
            return NotImplemented if isinstance(a, float) or isinstance(b, float) else _operate(kind, a, b) if isinstance(a, _core.PrimExpr) or isinstance(b, _core.PrimExpr) else NotImplemented
        if kind in ("FloorDiv", "FloorMod") and int(b) == 0:
            return _core.prim_binary(kind, a, b)  # raises the proper error
        value = function(int(a), int(b))
        dtype = _common(dtype_of(a) if hasattr(a, "dtype") else dtype_of(b), dtype_of(b) if hasattr(b, "dtype") else dtype_of(a))
        low, high = _BITS.get(dtype, (value, value + 1))
        return IntImm(dtype if low <= value < high and dtype != "bool" else "int32" if dtype == "bool" else "int64", value)
    return (lambda self, other: of(self, other)), (lambda self, other: of(other, self))


for _name, _kind, _function in (("add", "Add", operator.add), ("sub", "Sub", operator.sub), ("mul", "Mul", operator.mul), ("floordiv", "FloorDiv", operator.floordiv), ("mod", "FloorMod", operator.mod),
                                ("lshift", "ShiftLeft", operator.lshift), ("rshift", "ShiftRight", operator.rshift), ("and", "BitAnd", operator.and_), ("or", "BitOr", operator.or_), ("xor", "BitXor", operator.xor)):
    for _place, _method in zip((f"__{_name}__", f"__r{_name}__"), _folded(_kind, _function)):
        setattr(IntImm, _place, _method)
for _name, _function in (("lt", operator.lt), ("le", operator.le), ("gt", operator.gt), ("ge", operator.ge)):
    setattr(IntImm, f"__{_name}__", lambda self, other, f=_function, k=_name.upper(): IntImm("bool", f(int(self), int(other))) if isinstance(other, int) else
            NotImplemented if isinstance(other, float) else _operate(k, self, other) if isinstance(other, _core.PrimExpr) else NotImplemented)
IntImm.__neg__ = lambda self: IntImm(self.dtype, -int(self)) if not self.dtype.startswith("uint") else -int(self)  # type: ignore[method-assign, attr-defined]


class FloatImm(float):
    def __new__(cls, dtype: str, value: float, span: object = None) -> "FloatImm":
        made = super().__new__(cls, value)
        made.dtype = str(dtype)  # type: ignore[attr-defined]
        return made

    def __str__(self) -> str:
        return pretty(self)

    @property
    def value(self) -> float:
        return float(self)

    def __invert__(self) -> typing.Any:
        raise RuntimeError("Cannot use ~ operator on float type Expr.")

    def astype(self, dtype: typing.Any, span: object = None) -> typing.Any:
        return _core.prim_cast(str(dtype), self)

    def __getnewargs__(self) -> tuple[str, float]:
        return self.dtype, float(self)  # type: ignore[attr-defined]


def _folded_reals(kind: str, function: typing.Callable[[float, float], float] | None) -> tuple[typing.Any, typing.Any]:
    """Folds constants as _folded does, rounded to the dtype; without a function the operator is one of integers, and refused."""
    def of(a: typing.Any, b: typing.Any) -> typing.Any:
        if function is None or isinstance(a, _core.PrimExpr) or isinstance(b, _core.PrimExpr):
            return _operate(kind, a, b)
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return NotImplemented
        dtypes = {d for d in (dtype_of(v) for v in (a, b) if isinstance(v, FloatImm)) if d}
        dtype = max(dtypes, key=lambda d: int(re.sub("[^0-9]", "", d) or 0))
        made = function(float(a), float(b))
        return FloatImm(dtype, struct.unpack("f", struct.pack("f", made))[0] if dtype == "float32" and abs(made) < 3e38 else made)
    return (lambda self, other: of(self, other)), (lambda self, other: of(other, self))


for _name, _kind, _real in (("add", "Add", operator.add), ("sub", "Sub", operator.sub), ("mul", "Mul", operator.mul), ("truediv", "Div", operator.truediv), ("lshift", "ShiftLeft", None),
                            ("rshift", "ShiftRight", None), ("and", "BitAnd", None), ("or", "BitOr", None), ("xor", "BitXor", None)):
    for _place, _method in zip((f"__{_name}__", f"__r{_name}__"), _folded_reals(_kind, _real)):
        setattr(FloatImm, _place, _method)


class StringImm(str):
    @property
    def value(self) -> str:
        return str(self)


@with_operators
class PrimExpr(_core.PrimExpr):
    """Base class of expressions."""

    def __repr__(self) -> str:
        return short(self)

    def __str__(self) -> str:
        return pretty(self)

    def _text(self) -> str:
        """As our own loop listings write it."""
        return _core.PrimExpr.__str__(self)


PrimExprWithOp = PrimExpr


class ConstExpr(PrimExpr):
    """Base class of constants, for isinstance."""


class Var(PrimExpr):
    """A variable. In a shape it is a symbolic size."""

    _is_size = False

    def __init__(self, name: str, dtype: typing.Any = "int32", span: object = None):
        self._annotation = None if isinstance(dtype, str) else dtype
        super().__init__(_core.prim_var(str(name), "handle" if hasattr(dtype, "element_type") else str(getattr(dtype, "dtype", dtype)), self._is_size))

    @property
    def name(self) -> str:
        return self._fields[0]

    name_hint = name

    @property
    def type_annotation(self) -> typing.Any:
        """The type given by the script, or else that of the dtype."""
        from ..ir.ty import PrimType
        return self.__dict__.get("_annotation") or PrimType(self.dtype)

    def __reduce__(self) -> typing.Any:
        return type(self), (self.name, self.dtype)


class SizeVar(Var):
    """A non-negative variable, such as a size."""

    _is_size = True


class BinaryOpExpr(PrimExpr):
    def __init__(self, a: typing.Any, b: typing.Any, span: object = None):
        super().__init__(_core.prim_node(type(self).__name__, a, b))

    @property
    def a(self) -> typing.Any:
        return self._fields[0]

    @property
    def b(self) -> typing.Any:
        return self._fields[1]


class CmpExpr(BinaryOpExpr):
    pass


class LogicalExpr(BinaryOpExpr):
    pass


def _binary_class(name: str, base: type) -> type:
    return type(name, (base,), {"__module__": __name__, "__doc__": f"{name} of two expressions: `a`, `b`."})


Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight = (
    _binary_class(n, BinaryOpExpr) for n in ("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "BitAnd", "BitOr", "BitXor", "ShiftLeft", "ShiftRight"))
EQ, NE, LT, LE, GT, GE = (_binary_class(n, CmpExpr) for n in ("EQ", "NE", "LT", "LE", "GT", "GE"))
And, Or = (_binary_class(n, LogicalExpr) for n in ("And", "Or"))


class Not(LogicalExpr):
    def __init__(self, a: typing.Any, span: object = None):
        _core.PrimExpr.__init__(self, _core.prim_not(a))


class Select(PrimExpr):
    """A conditional value whose operands are both evaluated."""

    def __init__(self, condition: typing.Any, true_value: typing.Any, false_value: typing.Any, span: object = None):
        super().__init__(_core.prim_choose(False, condition, true_value, false_value))

    condition, true_value, false_value = (property(lambda self, i=i: self._fields[i]) for i in range(3))


class Cast(PrimExpr):
    """A conversion, also where the value is a constant; `expr.astype(dtype)` folds it."""

    def __init__(self, dtype: str, value: typing.Any, span: object = None):
        super().__init__(_core.prim_cast_node(str(dtype), value))

    @property
    def value(self) -> typing.Any:
        return self._fields[0]


class Reinterpret(PrimExpr):
    """Reinterprets the bits as another dtype."""

    value = Cast.value


class OpName(StringImm):
    """The callee of a call, `op.name`; one operator has one name."""

    @property
    def name(self) -> str:
        return str(self)

    def same_as(self, other: object) -> bool:
        return self == other

    def get_attr(self, attr_name: str) -> typing.Any:
        """What scripts registered of an intrinsic."""
        from ..relay.op.registry import attribute_of
        return attribute_of(str(self), attr_name)


class Call(PrimExpr):
    """A call of an intrinsic, or of a function by name: `Call("float32", "tir.exp", [x])`."""

    def __init__(self, dtype: str, op: typing.Any, args: typing.Any, span: object = None):
        from .op import call_extern, call_intrin
        name, args = str(getattr(op, "name", op)), list(args)
        if name in ("tir.call_extern", "tir.call_pure_extern"):
            name = str(args.pop(0))
        super().__init__(call_intrin(dtype, name, *args) if name.startswith("tir.") else call_extern(dtype, name, *args))

    @property
    def op(self) -> typing.Any:
        return OpName("tir.call_extern" if self._is_extern else self._fields[0])

    @property
    def args(self) -> list[typing.Any]:
        """Of a C function's call the name comes first."""
        return ([StringImm(self._fields[0])] if self._is_extern else []) + list(self._fields[1])

    @property
    def _is_extern(self) -> bool:
        return self._kind == "Extern" and not str(self._fields[0]).startswith("tir.")


class ProducerLoad(PrimExpr):
    """An element of a tensor."""

    @property
    def producer(self) -> typing.Any:
        return self._fields[0]

    buffer = producer

    @property
    def indices(self) -> list[typing.Any]:
        return list(self._fields[1])


class Let(PrimExpr):
    """Binds a variable to a value in the body."""

    def __init__(self, var: typing.Any, value: typing.Any, body: typing.Any, span: object = None):
        super().__init__(_core.prim_let(var, value, body))

    var, value, body = (property(lambda self, i=i: self._fields[i]) for i in range(3))


class Ramp(PrimExpr):
    """The vector base, base + stride, ... with `lanes` elements."""

    def __init__(self, base: typing.Any, stride: int, lanes: int, span: object = None):
        if "int" not in dtype_of(base) or "x" in dtype_of(base) or not 1 < int(lanes) < 1 << 16:
            raise ValueError(f"a ramp is of a whole number and 2 to 65535 lanes, not of {dtype_of(base)} and {lanes}")
        super().__init__(_core.prim_ramp(base, int(stride), int(lanes)))

    base = property(lambda self: self._fields[0])
    stride = property(lambda self: IntImm("int32", self._fields[1]))
    lanes = property(lambda self: self._fields[2])


class Broadcast(PrimExpr):
    """A vector with one value in all lanes."""

    def __init__(self, value: typing.Any, lanes: int, span: object = None):
        if "x" in dtype_of(value) or not 1 < int(lanes) < 1 << 16:
            raise ValueError(f"a broadcast is of one value to 2 to 65535 lanes, not of {dtype_of(value)} to {lanes}")
        super().__init__(_core.prim_broadcast(value, int(lanes)))

    value, lanes = (property(lambda self, i=i: self._fields[i]) for i in range(2))


class Shuffle(PrimExpr):
    """Selects lanes, by index, from the concatenation of vectors."""

    def __init__(self, vectors: typing.Any, indices: typing.Any, span: object = None):
        super().__init__(_core.prim_shuffle(list(vectors), [int(i) for i in indices]))

    @property
    def vectors(self) -> list[typing.Any]:
        return list(self._fields[0])

    @property
    def indices(self) -> list[typing.Any]:
        return [IntImm("int32", i) for i in self._fields[1]]


class Any(_core.Dim):
    """A dimension that is unknown until run time: `?`."""

    dtype = "int32"

    def __init__(self, value: typing.Any = None, span: object = None):
        super().__init__(_core.any_dim() if value is None else value)

    def same_as(self, other: typing.Any) -> bool:
        return self == other


def _with_dims(cls: type) -> None:
    for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "/")):
        setattr(cls, f"__{name}__", lambda self, other, s=sign: _core.dim_arithmetic(s, self, other))
        setattr(cls, f"__r{name}__", lambda self, other, s=sign: _core.dim_arithmetic(s, other, self))


_with_dims(Any)


class DimExpr(_core.Dim):
    """Arithmetic on type dimensions."""

    dtype, same_as = "int64", Any.same_as


_with_dims(DimExpr)

_core._set_class("IntImm", IntImm)
_core._set_class("Any", Any)
_core._set_class("Dim", DimExpr)
for _kind, _class in {"IntImm": IntImm, "FloatImm": FloatImm, "Var": Var, "SizeVar": SizeVar, "Not": Not, "Select": Select, "Cast": Cast, "Reinterpret": Reinterpret, "Call": Call, "Extern": Call, "Read": ProducerLoad,
                      "Let": Let, "Ramp": Ramp, "Broadcast": Broadcast, "Load": PrimExpr, "Shuffle": Shuffle, "Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div, "Mod": Mod, "FloorDiv": FloorDiv,
                      "FloorMod": FloorMod, "Min": Min, "Max": Max, "EQ": EQ, "NE": NE, "LT": LT, "LE": LE, "GT": GT, "GE": GE, "And": And, "Or": Or, "BitAnd": BitAnd,
                      "BitOr": BitOr, "BitXor": BitXor, "ShiftLeft": ShiftLeft, "ShiftRight": ShiftRight}.items():
    _core._set_loop_class(_kind, _class)

__all__ = ["Add", "And", "Any", "BinaryOpExpr", "BitAnd", "BitOr", "BitXor", "Broadcast", "Call", "Cast", "CmpExpr", "ConstExpr", "DimExpr", "Div", "EQ", "EqualOp", "ExprOp", "FloatImm", "FloorDiv",
           "FloorMod", "GE", "GT", "IntImm", "LE", "LT", "Let", "LogicalExpr", "Max", "Min", "Mod", "Mul", "NE", "Not", "Or", "PrimExpr", "PrimExprWithOp", "ProducerLoad", "Ramp", "Reinterpret",
           "Select", "ShiftLeft", "ShiftRight", "Shuffle", "SizeVar", "StringImm", "Sub", "Var", "dtype_of", "with_operators"]
