# SPDX-License-Identifier: Apache-2.0
"""Expressions: the compiler's own graph, seen from Python. New expressions have types if their operands do; `InferType` types the
others. Two objects compare equal if they refer to the same node."""
from __future__ import annotations

import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ... import _core
from ..ir.ty import TensorType, TypeCall
from ..runtime.ndarray import NDArray, as_array
from .attrs import AttrFieldInfo, Attrs, DictAttrs, as_classic, of_call
from .node_text import node_text
from .places import place_of_result, placed_params, places, with_places
from .script_ops import ScriptOp
from .span import SourceName, Span, comments_of


class Expr(_core.Expr):
    """Arithmetic operators on expressions make calls: `x + 1.0`, `-x`, `x < y`."""

    __array_ufunc__ = None  # numpy then defers `array + expr` to us
    __hash__ = _core.Expr.__hash__

    def _part(self, index: int) -> Any:
        parts = self.__dict__.get("_parts")
        if parts is None:
            parts = self.__dict__["_parts"] = self._fields
        return parts[index]

    def __add__(self, other: Any) -> "Expr":
        return Call("add", [self, other])

    def __radd__(self, other: Any) -> "Expr":
        return Call("add", [other, self])

    def __sub__(self, other: Any) -> "Expr":
        return Call("subtract", [self, other])

    def __rsub__(self, other: Any) -> "Expr":
        return Call("subtract", [other, self])

    def __mul__(self, other: Any) -> "Expr":
        return Call("multiply", [self, other])

    def __rmul__(self, other: Any) -> "Expr":
        return Call("multiply", [other, self])

    def __truediv__(self, other: Any) -> "Expr":
        return Call("divide", [self, other])

    def __rtruediv__(self, other: Any) -> "Expr":
        return Call("divide", [other, self])

    def __lt__(self, other: Any) -> "Expr":
        return Call("less", [self, other])

    def __gt__(self, other: Any) -> "Expr":
        return Call("greater", [self, other])

    def __le__(self, other: Any) -> "Expr":
        return Call("less_equal", [self, other])

    def __ge__(self, other: Any) -> "Expr":
        return Call("greater_equal", [self, other])

    def __neg__(self) -> "Expr":
        return Call("negative", [self])

    def __bool__(self) -> bool:
        return True

    def astype(self, dtype: Any) -> "Expr":
        return Call("cast", [self], {"dtype": dtype if isinstance(dtype, str) else np.dtype(dtype).name})

    def __call__(self, *args: Any) -> "Call":
        return Call(self, list(args))

    @property
    def checked_type(self) -> Any:
        """The type, inferred if necessary. ValueError if inference fails."""
        if not self._typed:
            try:
                return infer_type(self)._type
            except _core.Error as error:
                raise ValueError(f"The type checker has not populated the checked_type for this node: {error}") from error
        return self._type

    checked_type_ = checked_type

    @property
    def _checked_type_(self) -> Any:
        """The type, or None if it has not been inferred."""
        return self._type if self._typed else None

    @property
    def virtual_device(self) -> Any:
        """The device set by XWithFields(virtual_device=...) or on_device; unconstrained otherwise."""
        from ..target.virtual_device import VirtualDevice
        given = self.__dict__.get("_virtual_device")
        if given is None and isinstance(self, Call) and isinstance(self.op, Op) and self.op.name == "on_device":
            given = self.attrs.virtual_device
        return VirtualDevice() if given is None else given

    virtual_device_ = virtual_device

    @property
    def span(self) -> Span | None:
        if self._span is None:
            return None
        place = re.fullmatch(r"(.*):(-?\d+):(-?\d+)", self._span)  # the format of AnnotateSpans and CapturePostDfsIndexInSpans
        return Span(self._span, int(place[2]), None, int(place[3])) if place else Span(self._span)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """Text for `parser.parse_expr`: free variables are declared first, constants come last."""
        if isinstance(self, (Op, GlobalVar)):
            return _core.Expr.__str__(self)
        free = free_vars(self)
        whole = self if isinstance(self, Function) and not free else Function(free, self)
        if annotate is None:
            annotate = comments_of(_core.post_order(whole))
        text = to_module(whole).astext(show_meta_data, annotate)
        version, rest = text.split("\n", 1)
        head, rest = rest.split(" {\n", 1)
        body, _, after = rest.rstrip("\n").partition("\n}")
        if whole is self:
            return f"{version}\nfn {head.removeprefix('def @main')} {{\n{body}\n}}{after}"
        names = re.findall(r'%("(?:[^"\\\\]|\\\\.)*"|[A-Za-z_][A-Za-z_0-9]*)', head)
        free_lines = "".join(f"free_var %{name}" + ("" if str(v._type) == "_" else f": {v._type}") + ";\n" for name, v in zip(names, free))
        return f"{version}\n{free_lines}" + "\n".join(line.removeprefix("  ") for line in body.split("\n")) + after

    def __str__(self) -> str:
        """The text, without constants and the version line."""
        try:
            return self.astext(False).removeprefix('#[version = "0.0.5"]\n')
        except _core.Error:
            return _core.Expr.__str__(self)

    def __repr__(self) -> str:
        return node_text(self) or _core.Expr.__str__(self)


RelayExpr = ExprWithOp = Expr  # classic names


class TempExpr(Expr):
    """An expression that a pass creates and `realize()` replaces; does not occur outside of the compiler."""

    def __init__(self) -> None:
        raise NotImplementedError("passes of Python return expressions; nothing realizes others")


class Var(Expr):
    def __init__(self, name_hint: str, type_annotation: Any = None, span: Any = None):
        super().__init__(_core.make_var(name_hint, type_annotation, span))

    name_hint = property(lambda self: self._part(0))
    vid = property(lambda self: self)

    @property
    def type_annotation(self) -> Any:
        return self._type if self._typed else None


class GlobalVar(Expr):
    """The name of a function of the module; compared by name."""

    def __init__(self, name_hint: str, type_annot: Any = None):
        super().__init__(_core.make_global_var(name_hint, type_annot))

    name_hint = property(lambda self: self._part(0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and self.name_hint == other.name_hint or other == self.name_hint

    def __hash__(self) -> int:
        return hash(self.name_hint)

    def same_as(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and self == other


class Constant(Expr):
    def __init__(self, data: Any, span: Any = None):
        super().__init__(_core.make_constant(as_array(data), span))

    @property
    def data(self) -> NDArray:
        if "_nd" not in self.__dict__:
            self.__dict__["_nd"] = NDArray(self._data)
        return self.__dict__["_nd"]


class Op(Expr, ScriptOp):
    """An operator: `op.name`, and the attributes set by `register_op_attr`. Calling it makes a call without attributes."""

    def __init__(self, name: str):
        super().__init__(_core.make_op(name))

    name = property(lambda self: self._part(0))

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Op) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def same_as(self, other: object) -> bool:
        return isinstance(other, Op) and self == other

    @staticmethod
    def list_op_names() -> list[str]:
        return _core.op_names()

    @property
    def attrs_type_key(self) -> str:
        """The class of its calls' attributes: "relay.attrs.Conv2DAttrs", or empty; of an operator of a script what that said."""
        from .op.registry import attribute_of
        attrs = _core.make_attrs(self.name, {})
        return str(attribute_of(self.name, "attrs_type_key") or "") if attrs is None else attrs._type_key

    def get_attr(self, attr_name: str) -> Any:
        from .op.registry import attribute_of
        return attribute_of(self.name, attr_name)

    def has_attr(self, attr_name: str) -> bool:
        return self.get_attr(attr_name) is not None

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        from .op.registry import register
        register(self.name, attr_name, value, plevel)

    def reset_attr(self, attr_name: str) -> None:
        from .op.registry import forget
        forget(self.name, attr_name)

    def __str__(self) -> str:
        return self.name


class Call(Expr):
    """A call of an operator (or its name), or of a function-valued expression."""
    _given_type_args: list[Any] = []

    def __init__(self, op: Any, args: Sequence[Any], attrs: Any = None, type_args: Any = None, span: Any = None):
        callee = Op(op) if isinstance(op, str) else op
        if isinstance(callee, Op):
            attrs = _core.make_attrs(callee.name, dict(attrs) if isinstance(attrs, Mapping) else attrs)
        super().__init__(_core.make_call(callee, [_like(a) for a in args], attrs if isinstance(callee, Op) else None, span))
        self._given_type_args = list(type_args or [])

    op = property(lambda self: self._part(0))
    args = property(lambda self: self._part(1))
    attrs = property(lambda self: of_call(self._part(2)))

    @property
    def type_args(self) -> list[Any]:
        """Those given here; or the types of the operator's operands, or of a polymorphic function's type parameters, if known."""
        if self._given_type_args or not self._typed:
            return list(self._given_type_args)
        if isinstance(self.op, Op):
            return [a._type for a in self.args]
        from ..ir.ty import FuncType, values_of_variables
        signature, types = self.op._type, [*(a._type for a in self.args), self._type]
        return values_of_variables(signature, types) if isinstance(signature, FuncType) and signature.type_params else []


class Tuple(Expr):
    def __init__(self, fields: Sequence[Any], span: Any = None):
        super().__init__(_core.make_tuple([_like(f) for f in fields], span))

    fields = property(lambda self: self._part(0))

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.fields)

    def astype(self, dtype: Any) -> Expr:
        raise TypeError("astype cannot be used on tuple")


class TupleGetItem(Expr):
    def __init__(self, tuple_value: Any, index: int, span: Any = None):
        super().__init__(_core.make_get(_like(tuple_value), int(index), span))

    tuple_value = property(lambda self: self._part(0))
    index = property(lambda self: self._part(1))


class TupleWrapper:
    """The outputs of a multi-output operator: `out[0]`, unpacking, `astuple()`."""

    def __init__(self, tuple_value: Expr, size: int):
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Expr:
        return self.tuple_value

    def astext(self) -> str:
        return self.tuple_value.astext()

    def astype(self, dtype: Any) -> Expr:
        raise TypeError("astype cannot be used on tuple")

    @property
    def checked_type(self) -> Any:
        return self.tuple_value.checked_type

    def __getitem__(self, index: int) -> Expr:
        if not -self.size <= index < self.size:
            raise IndexError("Tuple index out of range")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Expr]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value}, {self.size})"


class Let(Expr):
    def __init__(self, variable: Var, value: Any, body: Any, span: Any = None):
        super().__init__(_core.make_let(variable, _like(value), _like(body), span))

    var = property(lambda self: self._part(0))
    value = property(lambda self: self._part(1))
    body = property(lambda self: self._part(2))


class If(Expr):
    def __init__(self, cond: Any, true_branch: Any, false_branch: Any, span: Any = None):
        super().__init__(_core.make_if(_like(cond), _like(true_branch), _like(false_branch), span))

    cond = property(lambda self: self._part(0))
    true_branch = property(lambda self: self._part(1))
    false_branch = property(lambda self: self._part(2))


class RefCreate(Expr):
    def __init__(self, value: Any):
        super().__init__(_core.make_ref("RefCreate", [_like(value)]))

    value = property(lambda self: self._part(0))


class RefRead(Expr):
    def __init__(self, ref: Expr):
        super().__init__(_core.make_ref("RefRead", [ref]))

    ref = property(lambda self: self._part(0))


class RefWrite(Expr):
    def __init__(self, ref: Expr, value: Any):
        super().__init__(_core.make_ref("RefWrite", [ref, _like(value)]))

    ref = property(lambda self: self._part(0))
    value = property(lambda self: self._part(1))


class Function(Expr):
    """`Function([x, w], body)`"""

    def __init__(self, params: Sequence[Var], body: Any, ret_type: Any = None, type_params: Any = None, attrs: Mapping[str, Any] | None = None, span: Any = None):
        super().__init__(_core.make_function(list(params), _like(body), ret_type, list(type_params or []), with_places(attrs, params), span))

    params = property(lambda self: placed_params(self._part(0), self._part(2)))
    virtual_device = virtual_device_ = property(lambda self: place_of_result(self._part(2)))
    body = property(lambda self: self._part(1))
    attrs = property(lambda self: DictAttrs(self._part(2)))
    type_params = property(lambda self: self._part(3))

    @property
    def ret_type(self) -> Any:
        return self._part(4)

    @property
    def param_names(self) -> list[str]:
        return [p.name_hint for p in self.params]

    def with_attr(self, attr_key_or_dict: Any, attr_value: Any = None) -> "Function":
        more = attr_key_or_dict if isinstance(attr_key_or_dict, Mapping) else {attr_key_or_dict: attr_value}
        return Function(self.params, self.body, self.ret_type, self.type_params, {**self.attrs, **places(self._part(2)), **more}, self._span)

    def without_attr(self, attr_key: str) -> "Function":
        return Function(self.params, self.body, self.ret_type, self.type_params, {**{k: v for k, v in self.attrs.items() if k != attr_key}, **places(self._part(2))}, self._span)


for _kind, _class in (("Var", Var), ("GlobalVar", GlobalVar), ("Constant", Constant), ("Op", Op), ("Call", Call), ("Function", Function), ("Tuple", Tuple),
                      ("TupleGetItem", TupleGetItem), ("Let", Let), ("If", If), ("RefCreate", RefCreate), ("RefRead", RefRead), ("RefWrite", RefWrite)):
    _core._set_expr_class(_kind, _class)


def _like(value: Any) -> Any:
    """Converts tuples, wrapped outputs and Python numbers to expressions."""
    if isinstance(value, _core.Expr):
        return value
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, (list, tuple)) and all(isinstance(v, (_core.Expr, TupleWrapper, list, tuple)) for v in value):
        return Tuple(value)
    if isinstance(value, (bool, numbers.Number, np.ndarray, np.generic, NDArray)):
        return const(value, "float32" if isinstance(value, float) else None)
    raise TypeError(f"a {type(value).__name__} is no Relay expression")


def var(name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: Any = "float32", span: Any = None) -> Var:
    """`var("x", shape=(1, 3))`, `var("x", TensorType(...))`, `var("i", "int32")`"""
    if type_annotation is not None and shape is not None:
        raise ValueError("Can only specify either type_annotation or shape.")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value: Any, dtype: Any = None, span: Any = None) -> Constant:
    """A constant. Python numbers and lists become int32, float32 or bool unless a dtype (or a type with one) is given."""
    dtype = getattr(dtype, "dtype", dtype) if isinstance(dtype, _core.Type) else dtype
    if isinstance(value, (bool, numbers.Number, list, tuple)) and not isinstance(value, np.generic):
        value = np.array(value, dtype=dtype)
        if dtype is None:
            dtype = {"int64": "int32", "float64": "float32"}.get(value.dtype.name)
    if isinstance(value, (str, bytes)) or value is None:
        raise ValueError("value has to be scalar or NDArray")
    array = as_array(value)
    return Constant(array.astype(dtype) if dtype is not None and str(array.dtype) != str(dtype) else array, span)


def bind(expr: Expr, binds: Mapping[Any, Any]) -> Expr:
    """Substitutes variables (or their names) by expressions; a function loses its bound parameters."""
    named = {k: _like(v) for k, v in binds.items() if isinstance(k, str)}
    values = {k: _like(v) for k, v in binds.items() if not isinstance(k, str)}
    if named:
        values.update({v: named[v.name_hint] for v in (expr.params if isinstance(expr, Function) else free_vars(expr)) if v.name_hint in named})
    if not isinstance(expr, Function):
        return _core.substitute(expr, values)
    body = _core.substitute(expr.body, values)
    params = [p for p in expr.params if p not in values]
    params += [v for v in free_vars(body) if v not in params and v not in expr.params]
    return Function(params, body, None, expr.type_params, expr.attrs)


def free_vars(expr: Any) -> list[Var]:
    """Variables not bound by a function, let or pattern, in order of occurrence."""
    return _core.free_vars(_like(expr))


def as_function(expr: Any) -> Function:
    return expr if isinstance(expr, Function) else Function(free_vars(expr), _like(expr))


def infer_type(expr: Any, mod: Any = None) -> Any:
    """The expression with inferred types."""
    module = _core.IRModule() if mod is None else mod.copy()
    whole = as_function(expr)
    module._set_function("main", whole)
    typed = module._completed()["main"]
    return typed if isinstance(expr, Function) else typed.body


def astext(expr: Any) -> str:
    """The module of one expression as Relay text."""
    return to_module(expr).astext(show_meta_data=False)


def to_module(expr: Any, functions: Mapping[Any, Any] | None = None) -> Any:
    """The module of a function, or of an expression over its free variables."""
    module = _core.IRModule()
    for name, function in (functions or {}).items():
        module._set_function(name, function)
    module._set_function("main", as_function(expr))
    return module


def fromtext(source: str, source_path: Any = "text", constants: Sequence[Any] = (), virtual_devices: Sequence[str] = ()) -> Any:
    """Parses a module; meta[relay.Constant][i] is constants[i] unless the text has a metadata section. Error: 303."""
    if isinstance(source_path, (list, tuple)):
        source_path, constants = "text", source_path
    return _core.parse_module(source, [as_array(c) for c in constants], str(source_path or "text"), True, False, list(virtual_devices))


__all__ = ["AttrFieldInfo", "Attrs", "Call", "Constant", "DictAttrs", "Expr", "Function", "GlobalVar", "If", "Let", "Op", "RefCreate", "RefRead", "RefWrite", "Span",
           "TensorType", "Tuple", "TupleGetItem", "TupleWrapper", "TypeCall", "Var", "as_classic", "as_function", "astext", "bind", "const", "free_vars", "fromtext",
           "infer_type", "to_module", "var"]
