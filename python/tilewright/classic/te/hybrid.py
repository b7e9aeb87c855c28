# SPDX-License-Identifier: Apache-2.0
"""`te.hybrid.script`: a Python function of loops over tensors. Called with tensors it returns a tensor computed by its loops; called
with arrays it runs as Python."""
from __future__ import annotations

import ast
import functools
import inspect
import types
import typing

from math import erf

import numpy as np

from ... import _core
from ..script.syntax import LOGIC, Expressions, ScriptError, source_of
from ..tir import op as _op
from ..tir.buffer import Buffer, buffer_of, decl_buffer
from ..tir.expr import Var, dtype_of
from ..tir.reduction import max as _max, min as _min
from ..tir.stmt import loop_kind
from .hybrid_source import HybridModule, build
from .tensor import Tensor

_LOOPS = {"range": "serial", "serial": "serial", "parallel": "parallel", "vectorize": "vectorize", "unroll": "unroll", "bind": "serial", "const_range": "const"}
_DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_UNARY = {"exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "sqrt": "sqrt", "tanh": "tanh", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh",
          "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "trunc",
          "abs": "abs", "isnan": "isnan", "isfinite": "isfinite", "isinf": "isinf"}  # and their names in numpy
_MATH = (*_UNARY, "rsqrt", "sigmoid", "erf", "power", "fmod", "atan2", "copysign", "popcount", "likely", "floordiv", "floormod", "truncdiv", "truncmod")


def _cast(dtype: str) -> typing.Any:
    return lambda value: _core.prim_cast(dtype, value)


def _length(value: typing.Any) -> typing.Any:
    return value.shape[0] if isinstance(value, Buffer) else len(value)


def _expression_names() -> dict[str, typing.Any]:
    return {**{n: getattr(_op, n) for n in _MATH}, **{d: _cast(d) for d in _DTYPES}, "max": _max, "min": _min, "len": _length, "inf": float("inf"), "nan": float("nan"), "max_num_threads": lambda allow_none=True: 1024,
            "ceil_div": lambda a, b: _op.floordiv(a + b - 1, b), **LOGIC}


def _array_names() -> dict[str, typing.Any]:
    """The script's names when it runs as Python on arrays."""
    def made(shape: typing.Any, dtype: str = "float32", scope: str = "global") -> typing.Any:
        return np.zeros(tuple(int(d) for d in shape) if isinstance(shape, (tuple, list)) else (int(shape),), dtype)
    loop: typing.Any = lambda *ends: range(*(int(e) for e in ends))  # noqa: E731
    math = {n: getattr(np, m) for n, m in {**_UNARY, "power": "power", "fmod": "fmod", "atan2": "arctan2", "copysign": "copysign"}.items()}
    return {**math, "erf": lambda x: np.asarray(x).dtype.type(erf(x)), "inf": float("inf"), "nan": float("nan"), **{d: getattr(np, d) for d in _DTYPES}, "output_tensor": made, "allocate": made, "serial": loop, "parallel": loop, "vectorize": loop, "unroll": loop, "const_range": loop,
            "bind": lambda tag, extent: range(int(extent)), "rsqrt": lambda x: np.float32(1) / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "likely": lambda x: x,
            "popcount": lambda x: bin(int(x)).count("1"), "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "truncdiv": lambda a, b: int(a / b), "truncmod": lambda a, b: a - b * int(a / b),
            "ceil_div": lambda a, b: -(-a // b), "max_num_threads": lambda allow_none=True: 1024}


def script_names() -> list[str]:
    """The names that mean something in a script."""
    return [*_expression_names(), *_array_names(), *_LOOPS, "tvm"]


class _Reader:
    """Converts a function's statements to loops."""

    def __init__(self, function: ast.FunctionDef, environment: dict[str, typing.Any], first_line: int):
        self._function, self._line = function, first_line
        self._names = {**environment, **_expression_names()}
        self._outputs: dict[str, Buffer] = {}
        self._scalars: dict[str, Buffer] = {}
        self._loops: list[tuple[typing.Any, typing.Any, typing.Any]] = []  # (variable, first, end) of those around
        self.returned: list[Buffer] = []
        counts: dict[str, int] = {}
        for node in ast.walk(function):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []:
                if isinstance(target, ast.Name):
                    counts[target.id] = counts.get(target.id, 0) + 1 + isinstance(node, ast.AugAssign)
        self._once = {name for name, count in counts.items() if count == 1}

    def _fail(self, node: ast.AST, what: str) -> typing.NoReturn:
        raise ScriptError(f"{self._function.name}, line {self._line + getattr(node, 'lineno', 1)}: {what}")

    def _value(self, node: ast.expr) -> typing.Any:
        scalars = {name: buffer[0] for name, buffer in self._scalars.items()}
        tree = ast.Expression(Expressions().visit(ast.parse(ast.unparse(node), mode="eval").body))
        try:
            return eval(compile(ast.fix_missing_locations(tree), "<script>", "eval"), {**self._names, **scalars})  # noqa: S307  the script is the caller's own code
        except (_core.Error, ScriptError):
            raise
        except Exception as error:
            self._fail(node, f"{type(error).__name__}: {error}")

    def read(self, given: dict[str, typing.Any]) -> typing.Any:
        self._names.update(given)
        body = self._body(self._function.body)
        if not self.returned:
            self._fail(self._function, "it returns no output_tensor")
        left = [name for name, buffer in self._outputs.items() if buffer not in self.returned]
        if left:
            self._fail(self._function, f"the output_tensor '{left[0]}' is not returned; use allocate for what stays inside")
        return body

    def _body(self, nodes: list[ast.stmt]) -> typing.Any:
        """Reads a block of statements; names bound in it go out of scope at its end."""
        names, scalars = dict(self._names), dict(self._scalars)
        parts = self._parts(nodes)
        self._names, self._scalars = names, scalars
        return _core.stmt_seq(parts)

    def _parts(self, nodes: list[ast.stmt]) -> list[typing.Any]:
        parts: list[typing.Any] = []
        for i, node in enumerate(nodes):
            made = self._bind(node)
            if made is not None:  # the remaining statements are inside of it
                return [*parts, made(_core.stmt_seq(self._parts(nodes[i + 1:])))]
            parts += self._statement(node)
        return parts

    def _bind(self, node: ast.stmt) -> typing.Any:
        """Opens a scope for the rest of a body: an allocation, a buffer or a let variable."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            return None
        name, value = node.targets[0].id, node.value
        called = self._names.get(value.func.id) if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
        if isinstance(called, HybridScript):
            return self._inlined(name, called, typing.cast(ast.Call, value))
        call = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        if call in ("output_tensor", "allocate"):
            return self._memory(node, name, call, typing.cast(ast.Call, value))
        if name in self._scalars:
            return None
        found = self._value(value)
        if isinstance(found, (Buffer, list, tuple)) or (name in self._once and not _reads(found)):
            self._names[name] = found
            return lambda rest: rest
        dtype = dtype_of(found)
        if name in self._once:
            variable = Var(name, dtype)
            self._names[name] = variable
            return lambda rest: _core.stmt_let(variable, found, rest)
        buffer = decl_buffer([1], dtype, name)
        self._scalars[name] = buffer
        start = _core.stmt_write(buffer, [0], found)
        return lambda rest: _core.stmt_block("", [], None, None, _core.stmt_seq([start, rest]), [buffer], None)

    def _inlined(self, name: str, called: "HybridScript", call: ast.Call) -> typing.Any:
        """A call of another script: its loops, whose outputs are memory of this one."""
        if call.keywords:
            self._fail(call, "arguments of a script are given by their place")
        body, outputs, _, _ = called.read([self._value(a) for a in call.args])
        self._names[name] = outputs[0] if len(outputs) == 1 else list(outputs)
        return lambda rest: _core.stmt_block("", [], None, None, _core.stmt_seq([body, rest]), outputs, None)

    def _holds(self, condition: typing.Any) -> bool:
        """Whether a condition is proven by the ranges of the loops around it."""
        if isinstance(condition, (bool, int)):
            return bool(condition)
        kind = getattr(condition, "_kind", "")
        if kind in ("And", "Or"):
            return (all if kind == "And" else any)([self._holds(f) for f in condition._fields[:2]])
        if kind not in ("LT", "LE", "GT", "GE"):
            return False
        a, b = condition._fields[:2] if kind in ("LT", "LE") else condition._fields[1::-1]  # a < b or a <= b
        least = 1 if kind in ("LT", "GT") else 0
        for variable, low, high in self._loops:
            if isinstance(a, _core.PrimExpr) and a == variable and self._difference(b, high) >= least - 1:
                return True  # i < n where i is less than n
            if isinstance(b, _core.PrimExpr) and b == variable and self._difference(low, a) >= least:
                return True
        return self._difference(b, a) >= least

    @staticmethod
    def _difference(a: typing.Any, b: typing.Any) -> float:
        """a - b where it is a number; else minus infinity."""
        found = _core.prim_simplify(_core.prim_binary("Sub", a, b), []) if isinstance(a, _core.PrimExpr) or isinstance(b, _core.PrimExpr) else a - b
        return int(found) if isinstance(found, int) else float("-inf")

    def _memory(self, node: ast.stmt, name: str, kind: str, call: ast.Call) -> typing.Any:
        given = [self._value(a) for a in call.args] + [self._value(k.value) for k in call.keywords]
        shape = given[0] if isinstance(given[0], (tuple, list)) else (given[0],)
        if any(_reads(d) for d in shape):
            self._fail(node, f"the shape of '{name}' is a number or a size of the inputs")
        buffer = decl_buffer(list(shape), str(given[1]) if len(given) > 1 else "float32", name, scope=str(given[2]) if len(given) > 2 and kind == "allocate" else "")
        self._names[name] = buffer
        if kind == "output_tensor":
            self._outputs[name] = buffer
            return lambda rest: rest
        return lambda rest: _core.stmt_block("", [], None, None, rest, [buffer], None)

    def _statement(self, node: ast.stmt) -> list[typing.Any]:
        if isinstance(node, ast.For):
            return self._loop(node)
        if isinstance(node, ast.If):
            condition = self._value(node.test)
            if isinstance(condition, (bool, int)) and not hasattr(condition, "dtype"):
                return [self._body(node.body if condition else node.orelse)]
            return [_core.stmt_if(condition, self._body(node.body), self._body(node.orelse) if node.orelse else None)]
        if isinstance(node, ast.AugAssign):
            read = ast.parse(ast.unparse(node.target), mode="eval").body
            return [self._store(node, node.target, self._value(ast.copy_location(ast.BinOp(read, node.op, node.value), node)))]
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return [self._store(node, node.targets[0], self._value(node.value))]
        if isinstance(node, ast.Return):
            if node is not self._function.body[-1]:
                self._fail(node, "return is the last statement")
            names = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            self.returned = [self._outputs[n.id] if isinstance(n, ast.Name) and n.id in self._outputs else self._fail(node, "what is returned is an output_tensor") for n in names]
            return []
        if isinstance(node, ast.Assert):
            if not self._holds(self._value(node.test)):
                self._fail(node, f"the assertion '{ast.unparse(node.test)}' is not proven by the loops around it, and nothing checks it at run time")
            return []
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return []
        self._fail(node, f"a {type(node).__name__} is no statement of a hybrid script; there are for, if, assignments and return")

    def _store(self, node: ast.stmt, target: ast.expr, value: typing.Any) -> typing.Any:
        if isinstance(target, ast.Name):
            if target.id not in self._scalars:
                self._fail(node, f"the variable '{target.id}' is assigned here and has no first value in this body or one around it")
            buffer, at = self._scalars[target.id], [0]
        elif isinstance(target, ast.Subscript):
            buffer = self._value(target.value)
            if isinstance(buffer, Buffer) and isinstance(self._names.get(ast.unparse(target.value)), Buffer) and buffer in self._inputs:
                self._fail(node, "an input is assigned; inputs are only read")
            if not isinstance(buffer, Buffer):
                self._fail(node, "an element is assigned of something that is no tensor")
            index = self._value(target.slice)
            at = list(index) if isinstance(index, tuple) else [index]
        else:
            self._fail(node, "elements of tensors and variables are assigned")
        return _core.stmt_write(buffer, at, value)

    _inputs: list[Buffer] = []

    def _loop(self, node: ast.For) -> list[typing.Any]:
        call = node.iter
        kind = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        if kind not in _LOOPS or not isinstance(node.target, ast.Name) or not isinstance(call, ast.Call):
            self._fail(node, f"a loop is of one variable over {', '.join(_LOOPS)}")
        args = [self._value(a) for a in call.args]
        notes = {}
        if kind == "bind":
            if len(args) != 2:
                self._fail(node, "bind is given a thread and an extent")
            notes, args = {"thread": str(args[0])}, args[1:]
        if not 1 <= len(args) <= 2:
            self._fail(node, f"{kind} is given an end, or a start and an end")
        low, high = args if len(args) == 2 else (0, args[0])
        if kind == "const_range":
            ends = [getattr(e, "value", e) for e in (low, high)]
            if not all(isinstance(e, int) for e in ends):
                self._fail(node, "const_range is of numbers")
            made = []
            for i in range(*ends):
                self._names[node.target.id] = i
                made.append(self._body(node.body))
            return made
        dtype = next((str(e.dtype) for e in (high, low) if hasattr(e, "dtype")), "int32")
        variable = Var(node.target.id, dtype)
        hidden = self._names.get(node.target.id)
        self._names[node.target.id] = variable
        extent = high if isinstance(low, int) and low == 0 else high - low
        self._loops.append((variable, low, high))
        out = _core.stmt_for(variable, low, extent, loop_kind(_LOOPS[kind]), self._body(node.body), notes)
        self._loops.pop()
        if hidden is not None:
            self._names[node.target.id] = hidden
        return [out]


def _reads(value: typing.Any) -> bool:
    """Whether an expression reads memory."""
    found: list[bool] = []
    if isinstance(value, _core.PrimExpr):
        _core.stmt_visit(value, lambda e: found.append(True) if getattr(e, "_kind", "") in ("Read", "Load", "Extern") else None, True)
    return bool(found)


def _symbolic(value: typing.Any) -> bool:
    return any(map(_symbolic, value)) if isinstance(value, (list, tuple)) else isinstance(value, (Tensor, _core.PrimExpr))


class _Nested(list[typing.Any]):
    """Lists in lists, whose elements are read as those of a tensor: b[i, j]."""

    def __getitem__(self, index: typing.Any) -> typing.Any:
        out: typing.Any = self
        for i in index if isinstance(index, tuple) else (index,):
            out = list.__getitem__(out, i)
        return out


def _plain(value: typing.Any) -> typing.Any:
    """An argument of a script that runs as Python."""
    if isinstance(value, (list, tuple)):
        return _Nested(_plain(v) for v in value)
    return value.numpy() if hasattr(value, "numpy") else value


class HybridScript:
    """A function decorated by `te.hybrid.script`."""

    def __init__(self, function: typing.Any):
        self._python = function
        functools.update_wrapper(self, function)

    @property
    def arity(self) -> int:
        return len(inspect.signature(self._python).parameters)

    def __call__(self, *args: typing.Any) -> typing.Any:
        if not any(map(_symbolic, args)):
            f = self._python
            plain = [_plain(a) for a in args]
            return types.FunctionType(f.__code__, {**f.__globals__, **_array_names()}, f.__name__, f.__defaults__, f.__closure__)(*plain)
        body, outputs, tensors, buffers = self.read(args)
        op = _core.te_extern(self._python.__name__, tensors, buffers, outputs, body, True)
        made = [op.output(i) for i in range(op.num_outputs)]
        return made[0] if len(made) == 1 else made

    def read(self, args: typing.Sequence[typing.Any]) -> tuple[typing.Any, list[Buffer], list[Tensor], list[Buffer]]:
        """The loops for these arguments and the outputs that they write, then the tensors among the arguments with their memory."""
        text, first = source_of(self._python)
        tree = ast.parse(text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise ScriptError(f"{self._python.__name__} is no function")
        found = inspect.getclosurevars(self._python)
        reader = _Reader(tree, {**found.globals, **found.nonlocals}, first)
        names = [a.arg for a in tree.args.args]
        if len(names) != len(args):
            raise ScriptError(f"{tree.name} takes {len(names)} arguments and is given {len(args)}")
        tensors: list[Tensor] = []
        buffers: list[Buffer] = []

        def entered(value: typing.Any) -> typing.Any:
            if isinstance(value, (list, tuple)):
                return _Nested(entered(v) for v in value)
            if not isinstance(value, Tensor):
                return value
            for known, buffer in zip(tensors, buffers):
                if known == value:
                    return buffer
            tensors.append(value)
            buffers.append(buffer_of(value))
            return buffers[-1]
        given = {name: entered(value) for name, value in zip(names, args)}
        reader._inputs = [*buffers, *(v for v in given.values() if isinstance(v, Buffer))]
        return reader.read(given), reader.returned, tensors, buffers


def script(pyfunc: typing.Any) -> HybridScript:
    """Decorator for a function of loops: called with tensors it returns what they compute (for `te.create_schedule`, `tvm.build`); with
    arrays it runs as Python.

    The function may use output_tensor(shape, dtype), allocate(shape, dtype), loops over range, serial, parallel, vectorize, unroll,
    const_range and bind, if, variables, and functions such as exp, sqrt, max."""
    return HybridScript(pyfunc)


__all__ = ["HybridModule", "HybridScript", "build", "script"]
