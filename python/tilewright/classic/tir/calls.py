# SPDX-License-Identifier: Apache-2.0
"""Calls among the functions of a module: a main function becomes one whose calls are the statements of what it calls."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _core
from .buffer import decl_buffer
from .expr import Var
from .function import LoopModule, PrimFunc
from .stmt import Allocate, address_value


def functions_by_name(mod: LoopModule) -> dict[str, PrimFunc]:
    """The functions by the names that calls may use."""
    return {**{str(f.attrs["global_symbol"]): f for f in mod.functions.values()}, **mod.functions}


def called(function: PrimFunc) -> list[Any]:
    """The calls of a function's statements."""
    found: list[Any] = []
    if function._function is not None:
        _core.stmt_visit(function.body, lambda part: found.append(part) if getattr(part, "_kind", "") == "CallExtern" else None, False)
    return found


def inlined(mod: LoopModule) -> LoopModule:
    """The module with calls of its own functions replaced by their statements. A handle among a function's parameters becomes the buffer
    of the parameter that it is given to first. ValueError: a function that calls itself, or is given other counts or kinds of values."""
    functions = functions_by_name(mod)
    if not any(call._fields[0] in functions for f in mod.functions.values() for call in called(f)):
        return mod
    inliner = _Inliner(functions)
    out = mod.copy()
    out.update({name: inliner.function(str(f.attrs["global_symbol"])) for name, f in mod.functions.items()})
    return out


def _is_array(value: Any) -> bool:
    return isinstance(value, _core.Array)


def _whole(array: Any, like: Any) -> bool:
    return array.dtype == like.dtype and [str(d) for d in array.shape] == [str(d) for d in like.shape] and not len(like.strides) and not len(array.strides)


class _Inliner:
    def __init__(self, functions: Mapping[str, PrimFunc]):
        self._functions = functions
        self._made: dict[str, PrimFunc] = {}
        self._open: list[str] = []
        self._count = 0

    def function(self, name: str) -> PrimFunc:
        original = self._functions[name]
        name = str(original.attrs["global_symbol"])
        if name in self._open:
            raise ValueError(f"the function '{name}' calls itself: {' -> '.join([*self._open, name])}")
        if name not in self._made:
            calls = [c for c in called(original) if c._fields[0] in self._functions]
            self._open.append(name)
            self._made[name] = _Caller(original, self).run() if calls else original
            self._open.pop()
        return self._made[name]

    def statement(self, name: str, given: list[Any], at: str) -> Any:
        """The statements of a function for what it is given: numbers, and elements of memory from which on its parameters lie."""
        function = self.function(name)._function
        self._count += 1
        values, arrays, views = {}, {}, []
        for p, value in zip(function.params, given):
            if not _is_array(p):
                if p.dtype == "handle" and _is_null(value):
                    continue
                if p.dtype == "handle":
                    raise ValueError(f"nothing in '{name}' says what memory its parameter '{p.name}' is")
                values[p] = value
            elif _kind(value) != "Read":
                raise ValueError(f"{at} gives '{name}' the number {value} for the buffer '{p.name}'")
            elif _whole(value._fields[0], p) and all(isinstance(i, int) and i == 0 for i in value._fields[1]):
                arrays[p] = value._fields[0]
            else:
                variable = f"{p.name}_{self._count}"
                arrays[p] = decl_buffer(list(p.shape), p.dtype, variable)
                views.append((Var(variable, "handle"), address_value(value)))
        body = _with_memory_of_its_own(function.body, arrays, self._count)
        body = _core.stmt_substitute(body, values) if values else body
        for variable, value in reversed(views):
            body = _core.stmt_let(variable, value, body)
        return body


def _kind(value: Any) -> str:
    return getattr(value, "_kind", "")


def _is_null(value: Any) -> bool:
    return _kind(value) == "Reinterpret" and value.dtype == "handle"


def _with_memory_of_its_own(body: Any, arrays: Mapping[Any, Any], number: int) -> Any:
    """The body over these arrays instead of its parameters, and with memory and addresses that no other copy of it shares."""
    known, variables = dict(arrays), {}
    names: dict[str, str] = {}  # of variables that are addresses, whose arrays have their names

    def before(s: Any) -> Any:
        if _kind(s) == "Block":
            for array in s._fields[5]:
                known[array] = decl_buffer(list(array.shape), array.dtype, f"{array.name}_{number}", scope=array.scope())
        elif _kind(s) == "LetStmt" and s._fields[0].dtype == "handle":
            variable = s._fields[0]
            variables[variable], names[variable.name] = Var(f"{variable.name}_{number}", "handle"), f"{variable.name}_{number}"
        return None

    def array_of(array: Any) -> Any:
        if array not in known and array.name in names:
            known[array] = decl_buffer(list(array.shape), array.dtype, names[array.name], strides=list(array.strides) or None)
        return known.get(array, array)

    def after(s: Any) -> Any:
        kind = _kind(s)
        if kind == "Read" and array_of(s._fields[0]) is not s._fields[0]:
            return array_of(s._fields[0])._element(list(s._fields[1]), s.dtype)
        if kind == "Write" and array_of(s._fields[0]) is not s._fields[0]:
            return _core.stmt_write(array_of(s._fields[0]), list(s._fields[2]), s._fields[1])
        if kind == "Block" and len(s._fields[5]):
            name, axes, predicate, init, inner, memory, notes = s._fields
            return _core.stmt_block(name, axes, predicate, init, inner, [known[a] for a in memory], notes)
        if kind == "LetStmt" and s._fields[0] in variables:
            return _core.stmt_let(variables[s._fields[0]], s._fields[1], s._fields[2])
        if kind == "CallExtern":
            name, args, packed = s._fields
            return _core.stmt_call(name, [("address", array_of(a[1])._element(list(a[2]), a[1].dtype)) if isinstance(a, tuple) else variables.get(a, a) if _kind(a) == "Var" else a for a in args], packed)
        return None
    return _core.stmt_rewrite(body, before, after, None)


class _Caller:
    """A function that calls others."""

    def __init__(self, function: PrimFunc, inliner: _Inliner):
        self._function, self._inliner, self._name = function, inliner, str(function.attrs["global_symbol"])
        self._params = list(function._function.params)
        self._memory: dict[Any, Any] = {}  # the first element of what a handle stands for

    def run(self) -> PrimFunc:
        body = _core.stmt_rewrite(self._function.body, self._before, self._after, None)
        made = PrimFunc._of(function=_core.BlockFunction(self._function._function.name, self._params, body))
        return made._with(self._function.attrs)._named(self._function._handles)

    def _before(self, s: Any) -> Any:
        if _kind(s) == "LetStmt" and s._fields[0].dtype == "handle" and _kind(s._fields[1]) == "Extern":
            self._memory[s._fields[0]] = s._fields[1]._fields[1][0]
        elif isinstance(s, Allocate) and s.alloc_buffers[0].dtype == "int8" and not _is_accessed(s):
            array = s.alloc_buffers[0]  # bytes for whatever the functions keep there
            self._memory[array] = decl_buffer(list(array.shape), "uint8", array.name)
        return None

    def _after(self, s: Any) -> Any:
        if _kind(s) == "Block" and any(a in self._memory for a in s._fields[5]):
            name, axes, predicate, init, inner, memory, notes = s._fields
            return _core.stmt_block(name, axes, predicate, init, inner, [self._memory.get(a, a) for a in memory], notes)
        if _kind(s) != "CallExtern" or s._fields[0] not in self._inliner._functions:
            return None
        name, args, _ = s._fields
        function = self._inliner.function(name)._function
        if function is None:
            raise ValueError(f"the function '{name}', which {self._name} calls, is lowered already")
        if len(args) == len(function.params) + 1 and _is_null(args[-1]):
            args = args[:-1]  # the device's handle of a cpacked call, of which there is none here
        if len(function.params) != len(args):
            raise ValueError(f"{self._name} gives {len(args)} values to '{name}', which has {len(function.params)} parameters")
        return self._inliner.statement(name, [self._given(a, p, name) for a, p in zip(args, function.params)], self._name)

    def _given(self, value: Any, parameter: Any, name: str) -> Any:
        if isinstance(value, tuple):
            array = self._memory.get(value[1], value[1])
            return array._element(list(value[2]), array.dtype)
        if value in self._params and value.dtype == "handle" and _is_array(parameter):
            buffer = decl_buffer(list(parameter.shape), parameter.dtype, value.name)
            self._params[self._params.index(value)] = buffer
            self._memory[value] = buffer._element([0] * len(buffer.shape), buffer.dtype)
        if _kind(value) == "Var" and value in self._memory:
            return self._memory[value]
        if _kind(value) == "Extern" and str(value._fields[0]).startswith("tir.lookup_param:"):
            raise ValueError(f"nothing gives {self._name} the weight '{str(value._fields[0]).partition(':')[2]}', which '{name}' gets; make it a parameter, or T.allocate_const")
        return value


def _is_accessed(s: Any) -> bool:
    """Whether elements of the memory are read or written, and not only given to functions."""
    array, count = s.alloc_buffers[0], 0

    def see(part: Any) -> None:
        nonlocal count
        if _kind(part) in ("Read", "Write"):
            count += int(part._fields[0] == array)
        elif _kind(part) == "CallExtern":  # whose addresses are read, too
            count -= sum(a[1] == array for a in part._fields[1] if isinstance(a, tuple))
    _core.stmt_visit(s.body, see, False)
    return count != 0


__all__ = ["called", "functions_by_name", "inlined"]
