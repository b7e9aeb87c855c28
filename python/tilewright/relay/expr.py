# SPDX-License-Identifier: Apache-2.0
"""Expressions built in Python. They have no types of their own: a function becomes Relay text, and the compiler's parser infers them."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..runtime.ndarray import NDArray, as_array


class TensorType:
    """`TensorType((1, 3, 224, 224), "float32")`"""

    def __init__(self, shape: Sequence[Any] = (), dtype: str = "float32"):
        self.shape, self.dtype = tuple(shape), str(dtype)
        self.concrete_shape = self.shape

    def __str__(self) -> str:
        return f"Tensor[({', '.join(str(d) for d in self.shape)}), {self.dtype}]"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Expr:
    """Arithmetic on expressions makes calls: `x + 1.0`, `-x`, `x * y`."""

    __array_ufunc__ = None  # numpy leaves `array + expr` to us

    def __add__(self, other: Any) -> "Expr":
        return Call("add", [self, _like(other)])

    def __radd__(self, other: Any) -> "Expr":
        return Call("add", [_like(other), self])

    def __sub__(self, other: Any) -> "Expr":
        return Call("subtract", [self, _like(other)])

    def __rsub__(self, other: Any) -> "Expr":
        return Call("subtract", [_like(other), self])

    def __mul__(self, other: Any) -> "Expr":
        return Call("multiply", [self, _like(other)])

    def __rmul__(self, other: Any) -> "Expr":
        return Call("multiply", [_like(other), self])

    def __truediv__(self, other: Any) -> "Expr":
        return Call("divide", [self, _like(other)])

    def __rtruediv__(self, other: Any) -> "Expr":
        return Call("divide", [_like(other), self])

    def __neg__(self) -> "Expr":
        return Call("negative", [self])

    def astype(self, dtype: str) -> "Expr":
        return Call("cast", [self], {"dtype": str(dtype)})

    def __call__(self, *args: Any) -> "Expr":
        return Call(self, list(args))

    @property
    def checked_type(self) -> Any:
        """The inferred type as Relay writes it."""
        function = self if isinstance(self, Function) else Function(free_vars(self), self)
        text = function.to_core().checked_type
        return text if isinstance(self, Function) else text.rsplit("->", 1)[-1].strip()

    def __str__(self) -> str:
        return astext(self if isinstance(self, Function) else Function(free_vars(self), self))


def _like(value: Any) -> Expr:
    return value if isinstance(value, Expr) else const(value, "float32" if isinstance(value, float) else None)


class Var(Expr):
    def __init__(self, name_hint: str, type_annotation: Any = None):
        self.name_hint, self.type_annotation = name_hint, type_annotation


class GlobalVar(Expr):
    def __init__(self, name_hint: str):
        self.name_hint = name_hint


class Constant(Expr):
    def __init__(self, data: Any):
        self.data = data if isinstance(data, NDArray) else NDArray(np.array(as_array(data)))


class Call(Expr):
    """Of an operator by name, or of an expression that is a function."""

    def __init__(self, op: Any, args: Sequence[Any], attrs: Mapping[str, Any] | None = None):
        self.op, self.args, self.attrs = op, [_like(a) for a in args], dict(attrs or {})


class Tuple(Expr):
    def __init__(self, fields: Sequence[Any]):
        self.fields = [_like(f) for f in fields]

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


class TupleGetItem(Expr):
    def __init__(self, tuple_value: Expr, index: int):
        self.tuple_value, self.index = tuple_value, int(index)


class TupleWrapper(Expr):
    """The outputs of an operator that has several: `out[0]`, unpacking, `astuple()`."""

    def __init__(self, tuple_value: Expr, size: int):
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Expr:
        return self.tuple_value

    def __getitem__(self, index: int) -> Expr:
        if index >= self.size:
            raise IndexError("Tuple index out of range")
        return TupleGetItem(self.tuple_value, index)

    def __len__(self) -> int:
        return self.size


class Let(Expr):
    def __init__(self, variable: Var, value: Expr, body: Expr):
        self.var, self.value, self.body = variable, value, body


class If(Expr):
    def __init__(self, cond: Expr, true_branch: Expr, false_branch: Expr):
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch


class Function(Expr):
    """`Function([x, w], body)`"""

    def __init__(self, params: Sequence[Var], body: Any, ret_type: Any = None, type_params: Any = None, attrs: Mapping[str, Any] | None = None):
        self.params, self.body, self.ret_type = list(params), body, ret_type
        self.attrs = dict(attrs or {})

    def to_core(self) -> Any:
        return to_module(self)["main"]

    def with_attr(self, key: str, value: Any) -> "Function":
        return Function(self.params, self.body, self.ret_type, None, {**self.attrs, key: value})


def var(name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32") -> Var:
    """`var("x", shape=(1, 3))`, `var("x", TensorType(...))`"""
    if type_annotation is not None and shape is not None:
        raise ValueError("Can only specify either type_annotation or shape.")
    return Var(name_hint, TensorType(shape, dtype) if shape is not None else type_annotation)


def const(value: Any, dtype: str | None = None) -> Constant:
    """Python numbers become int32, float32 or bool unless a dtype is given."""
    if dtype is None and isinstance(value, (bool, int, float)):
        dtype = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    array = as_array(value)
    return Constant(array.astype(dtype) if dtype and str(array.dtype) != dtype else array)


def bind(expr: Expr, binds: Mapping[Any, Any]) -> Expr:
    """Variables (or their names) replaced by expressions."""
    by_name = {k if isinstance(k, str) else k.name_hint: _like(v) for k, v in binds.items()}
    memo: dict[int, Expr] = {}

    def walk(e: Any) -> Any:
        if id(e) in memo:
            return memo[id(e)]
        if isinstance(e, Var):
            out: Any = by_name.get(e.name_hint, e)
        elif isinstance(e, Function):
            out = Function([p for p in e.params if p.name_hint not in by_name], walk(e.body), e.ret_type, None, e.attrs)
        elif isinstance(e, Call):
            out = Call(walk(e.op) if isinstance(e.op, Expr) else e.op, [walk(a) for a in e.args], e.attrs)
        elif isinstance(e, Tuple):
            out = Tuple([walk(f) for f in e.fields])
        elif isinstance(e, (TupleGetItem, TupleWrapper)):
            inner = walk(e.tuple_value)
            out = TupleGetItem(inner, e.index) if isinstance(e, TupleGetItem) else TupleWrapper(inner, e.size)
        elif isinstance(e, Let):
            out = Let(e.var, walk(e.value), walk(e.body))
        elif isinstance(e, If):
            out = If(walk(e.cond), walk(e.true_branch), walk(e.false_branch))
        else:
            out = e
        memo[id(e)] = out
        return out

    return walk(expr)


def _children(e: Any) -> list[Any]:
    if isinstance(e, Call):
        return ([e.op] if isinstance(e.op, Expr) else []) + e.args
    if isinstance(e, Tuple):
        return e.fields
    if isinstance(e, (TupleGetItem, TupleWrapper)):
        return [e.tuple_value]
    if isinstance(e, Let):
        return [e.value, e.body]
    if isinstance(e, If):
        return [e.cond, e.true_branch, e.false_branch]
    return [e.body] if isinstance(e, Function) else []


def _post_order(root: Any, enter_scopes: bool) -> list[Any]:
    """Operands before users, without recursion, for a deep network is a long chain."""
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        e, done = stack.pop()
        if done:
            order.append(e)
            continue
        if id(e) in seen:
            continue
        seen.add(id(e))
        stack.append((e, True))
        inside = enter_scopes or not isinstance(e, (Let, If, Function)) or e is root
        stack.extend((c, False) for c in reversed(_children(e) if inside else []))
    return order


def free_vars(expr: Expr) -> list[Var]:
    """Variables that no function or let binds, in the order they are met."""
    nodes = _post_order(expr, True)
    bound = {id(p) for e in nodes if isinstance(e, Function) for p in e.params} | {id(e.var) for e in nodes if isinstance(e, Let)}
    return [e for e in nodes if isinstance(e, Var) and id(e) not in bound]


class _Printer:
    def __init__(self) -> None:
        self.constants: list[np.ndarray] = []
        self._places: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._count = 0

    def name(self, v: Var) -> str:
        if id(v) not in self._names:
            base = v.name_hint if re.fullmatch(r"[A-Za-z_]\w*", v.name_hint) else None
            text = base or f'"{v.name_hint}"'
            number = 0
            while text in self._taken:
                number += 1
                text = f"{base}_{number}" if base else f'"{v.name_hint}_{number}"'
            self._taken.add(text)
            self._names[id(v)] = text
        return "%" + self._names[id(v)]

    def function(self, f: Function, indent: str) -> str:
        params = ", ".join(self.name(p) + (f": {p.type_annotation}" if p.type_annotation is not None else "") for p in f.params)
        attrs = "".join(f", {k}={_attr(v)}" for k, v in f.attrs.items())
        result = f" -> {f.ret_type}" if f.ret_type is not None else ""
        return f"({params}{attrs}){result} {{\n{self.block(f.body, indent + '  ')}{indent}}}"

    def block(self, body: Any, indent: str, known: dict[int, str] | None = None) -> str:
        body = Tuple(body) if isinstance(body, (list, tuple)) else body
        texts: dict[int, str] = dict(known or {})
        lines: list[str] = []
        while isinstance(body, Let):
            value = self._value(body.value, texts, lines, indent)
            lines.append(f"{indent}let {self.name(body.var)} = {value};\n")
            body = body.body
        lines.append(f"{indent}{self._value(body, texts, lines, indent)}\n")
        return "".join(lines)

    def _value(self, root: Any, texts: dict[int, str], lines: list[str], indent: str) -> str:
        for e in _post_order(root, False):
            if id(e) in texts:
                continue
            text = self._text(e, texts, indent)
            if isinstance(e, (Call, Tuple, TupleGetItem, If)) and e is not root:
                lines.append(f"{indent}%{self._count} = {text};\n")
                text = f"%{self._count}"
                self._count += 1
            texts[id(e)] = text
        return texts[id(root)]

    def _text(self, e: Any, texts: dict[int, str], indent: str) -> str:
        of = lambda x: texts[id(x)]  # noqa: E731
        if isinstance(e, Var):
            return self.name(e)
        if isinstance(e, GlobalVar):
            return "@" + e.name_hint
        if isinstance(e, Constant):
            if id(e) not in self._places:
                self._places[id(e)] = len(self.constants)
                self.constants.append(e.data._array)
            return f"meta[relay.Constant][{self._places[id(e)]}]"
        if isinstance(e, Call):
            callee = of(e.op) if isinstance(e.op, Expr) else e.op
            parts = [of(a) for a in e.args] + [f"{k}={_attr(v)}" for k, v in e.attrs.items()]
            return f"{callee}({', '.join(parts)})"
        if isinstance(e, Tuple):
            return "(" + ", ".join(of(f) for f in e.fields) + ("," if len(e.fields) == 1 else "") + ")"
        if isinstance(e, TupleGetItem):
            return f"{of(e.tuple_value)}.{e.index}"
        if isinstance(e, TupleWrapper):
            return of(e.tuple_value)
        if isinstance(e, If):
            inner = indent + "  "
            return (f"if ({of(e.cond)}) {{\n{self.block(e.true_branch, inner, texts)}{indent}}} else {{\n"
                    f"{self.block(e.false_branch, inner, texts)}{indent}}}")
        if isinstance(e, Function):
            return "fn " + self.function(e, indent)
        if isinstance(e, Let):
            raise ValueError("a let inside an operand must be bound by a let of its own")
        raise TypeError(f"{type(e).__name__} is no Relay expression")


def _attr(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if value is None:
        return "None"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value)!r}f"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_attr(v) for v in value) + "]"
    raise TypeError(f"an attribute cannot be a {type(value).__name__}")


def _module_text(functions: Mapping[str, Function]) -> tuple[str, list[np.ndarray]]:
    printer, out = _Printer(), '#[version = "0.0.5"]\n'
    for name, function in functions.items():
        out += f"def @{name}{printer.function(function, '')}\n"
    return out, printer.constants


def astext(function: Function) -> str:
    return _module_text({"main": function})[0]


def to_module(expr: Any, functions: Mapping[str, Function] | None = None) -> Any:
    """The compiler's module of a function, or of an expression over its free variables. Errors: 301, 302."""
    function = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
    text, constants = _module_text({**(functions or {}), "main": function})
    return _core.parse_module(text, constants)


def fromtext(source: str, constants: Sequence[Any] = ()) -> Any:
    """A module from Relay text; meta[relay.Constant][i] is constants[i]. Error: 303."""
    return _core.parse_module(source, [as_array(c) for c in constants])


__all__ = ["Call", "Constant", "Expr", "Function", "GlobalVar", "If", "Let", "TensorType", "Tuple", "TupleGetItem", "TupleWrapper", "Var",
           "astext", "bind", "const", "free_vars", "fromtext", "to_module", "var"]
