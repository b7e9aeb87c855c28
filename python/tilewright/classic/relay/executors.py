# SPDX-License-Identifier: Apache-2.0
"""`create_executor(kind, mod).evaluate()(x)`: a module as a Python function."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ... import _core
from ..ir.ty import FuncType, RelayRefType, TupleType, TypeCall, TypeVar
from ..runtime.container import ADT
from ..runtime.ndarray import Device, NDArray, as_array, cpu
from ..runtime.vm import VirtualMachine
from .expr import Call, Constant, Expr, Function, GlobalVar, Let, Op, RefCreate, RefRead, Tuple, Var, free_vars


class _Executor:
    def __init__(self, mod: Any, device: Device | None, target: Any, params: Mapping[str, Any] | None):
        self.mod = _core.IRModule() if mod is None else mod
        self.device, self.target = device or cpu(), target
        self.params = dict(params or {})

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """main, or the given function, as a Python function of its parameters by position or name. An expression that is not a function
        and has no free variables is evaluated at once."""
        module, now = self.mod, False
        if isinstance(expr, GlobalVar):
            module = module.copy()
            module["main"] = self.mod[expr]
        elif isinstance(expr, Expr):
            from .expr import bind
            expr = bind(expr, binds) if binds else expr
            now = not isinstance(expr, Function)
            if now and free_vars(expr):
                raise ValueError(f"the expression has free variables: {', '.join(v.name_hint for v in free_vars(expr))}")
            module = module.copy()
            module["main"] = expr
        elif expr is not None:
            raise TypeError(f"a {type(expr).__name__} cannot be evaluated")
        if self.params:
            module = module.bind_params({name: as_array(value) for name, value in self.params.items()})
        module = module._completed()._with_distinct_parameters()
        names = [p.name_hint for p in module["main"].params]
        module, fields = _with_tensor_parameters(module)
        dtypes = {p.name_hint: getattr(p.checked_type, "dtype", "") for p in module["main"].params}
        run = self._function(module) if all(map(_is_tensor, module["main"].params)) else self._function_of_values(module)

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) > len(names):
                raise ValueError(f"main takes {len(names)} arguments, {len(args)} were given")
            if twice := [name for name in names[:len(args)] if name in kwargs]:
                raise ValueError(f"duplicate argument supplied in both positional args and keyword argument (with name: {twice[0]})")
            inputs = {name: _value(given) for name, given in {**dict(zip(names, args)), **kwargs}.items()}
            missing = [n for n in names if n not in inputs]
            if missing or len(inputs) > len(names):
                raise ValueError(f"main takes ({', '.join(names)}); " + (f"{', '.join(missing)} is missing" if missing else "another name was given"))
            for name, parts in fields.items():
                inputs.update((part, _exact(value, dtypes[part])) for part, value in zip(parts, _flat(inputs.pop(name))))
            return run(inputs)
        return call() if now else call

    def _function(self, module: Any) -> Callable[[dict[str, Any]], Any]:
        raise NotImplementedError

    def _function_of_values(self, module: Any) -> Callable[[dict[str, Any]], Any]:
        """main with parameters that are no tensors: plans and programs take tensors only, so that each call is of a main in which such
        arguments are written out."""
        main = module["main"]

        def run(inputs: dict[str, Any]) -> Any:
            written, body = module.copy(), main.body
            for p in main.params:
                if not _is_tensor(p):
                    value = _written(inputs.pop(p.name_hint))
                    if not main.type_params:
                        body = Let(p, value, body)
                    elif isinstance(value, Call) and not value.args:  # an empty list of anything is one of nothing
                        kind = value.op.belong_to
                        stand_in = Var(p.name_hint, TypeCall(kind, [TupleType() for _ in module[kind].type_vars]))
                        body = Let(stand_in, value, _core.substitute(body, {p: stand_in}))
                    else:
                        body = _core.substitute(body, {p: value})
            written["main"] = Function([p for p in main.params if _is_tensor(p)], body)
            return self._function(written._completed())(inputs)
        return run


def _is_tensor(param: Var) -> bool:
    return not isinstance(param.checked_type, (TypeCall, TypeVar, RelayRefType, FuncType))


def _written(value: Any) -> Expr:
    """A value as an expression: tensors as constants, data as calls of their constructors."""
    from .adt import Constructor
    from .backend.interpreter import RefValue
    if isinstance(value, Expr):
        return value
    if isinstance(value, RefValue):
        return RefCreate(_written(value.value))
    if isinstance(value, ADT) and isinstance(getattr(value, "constructor", None), Constructor):
        return Call(value.constructor, [_written(f) for f in value.fields])
    if isinstance(value, (ADT, list, tuple)):
        return Tuple([_written(f) for f in (value.fields if isinstance(value, ADT) else value)])
    return Constant(as_array(value))


def _value(given: Any) -> Any:
    """An argument as a runtime value: constants become their data, tuples of constants tuples of values."""
    if isinstance(given, Constant):
        return given.data
    if isinstance(given, Tuple):
        return tuple(_value(f) for f in given.fields)
    return type(given)(_value(f) for f in given) if type(given) in (list, tuple) else given


def _exact(value: Any, dtype: str) -> Any:
    """An integer tensor in another integer dtype that holds all its values; others are as given, for the program to refuse."""
    array = as_array(value)
    if array.dtype.kind not in "iu" or not dtype.startswith(("int", "uint")) or str(array.dtype) == dtype:
        return value
    made = array.astype(dtype)
    return made if np.array_equal(made, array) else value


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, ADT)):
        return [leaf for field in (value.fields if isinstance(value, ADT) else value) for leaf in _flat(field)]
    return [value]


def _with_tensor_parameters(module: Any) -> tuple[Any, dict[str, list[str]]]:
    """main with one parameter per tensor of a tuple parameter, and the names of these by the tuple's, since programs and plans only take
    tensors."""
    main = module["main"]
    if not any(isinstance(p.checked_type, TupleType) for p in main.params):
        return module, {}
    taken, fields, values, params = {p.name_hint for p in main.params}, {}, {}, []

    def spread(name: str, type_: Any, leaves: list[Any]) -> Any:
        if isinstance(type_, TupleType):
            return Tuple([spread(f"{name}.{i}", t, leaves) for i, t in enumerate(type_.fields)])
        while name in taken:
            name += "_"
        taken.add(name)
        leaves.append(Var(name, type_))
        return leaves[-1]
    for p in main.params:
        leaves: list[Any] = []
        if isinstance(p.checked_type, TupleType):
            values[p] = spread(p.name_hint, p.checked_type, leaves)
            fields[p.name_hint] = [v.name_hint for v in leaves]
        params += leaves or ([] if p in values else [p])
    out = module.copy()
    out["main"] = Function(params, _core.substitute(main.body, values), None, main.type_params, main.attrs)
    return out._completed(), fields


class GraphExecutor(_Executor):
    kind = "graph"

    def _function(self, module: Any) -> Callable[[dict[str, Any]], Any]:
        from ..contrib.graph_executor import GraphModule
        from ..runtime.executor import AotModule
        from .backend import Executor
        from .build_module import build
        library = build(module, self.target, executor=Executor(self.kind))
        executor = (GraphModule if self.kind == "graph" else AotModule)(library["default"](self.device))

        def run(inputs: dict[str, Any]) -> Any:
            dtypes = {p.name_hint: p.checked_type for p in module["main"].params}
            executor.run(**{name: as_array(value).astype(dtypes[name].dtype, copy=False) for name, value in inputs.items()})
            outputs = (NDArray(executor.get_output(i).numpy()) for i in range(executor.get_num_outputs()))
            return _nested(module["main"].checked_type.ret_type, outputs)
        return run


def _nested(type_: Any, leaves: Iterator[Any]) -> Any:
    """The flat outputs of a plan, nested as in the function's result type."""
    return [_nested(t, leaves) for t in type_.fields] if isinstance(type_, TupleType) else next(leaves)


def _as_data(value: Any) -> Any:
    """Nested lists of a plan's results as a program's tuples."""
    return ADT(0, [_as_data(v) for v in value]) if isinstance(value, list) else value


class AotExecutor(GraphExecutor):
    kind = "aot"


class ProgramExecutor(_Executor):
    """Runs on the virtual machine."""

    def _function(self, module: Any) -> Callable[[dict[str, Any]], Any]:
        from .te_kernels import implemented_by_scripts
        from .vm import compile as compile_program
        result = module["main"].checked_type.ret_type
        if implemented_by_scripts(module):  # their kernels are in libraries of plans
            planned = GraphExecutor(module, self.device, self.target, None)._function(module)
            return lambda inputs: _as_data(planned(inputs))
        machine = VirtualMachine(compile_program(module, self.target), self.device)
        return lambda inputs: named(machine.invoke("main", **inputs), result, module)


class InterpreterExecutor(_Executor):
    """The reference interpreter for programs that the virtual machine does not support (references), the virtual machine for others."""

    def _function(self, module: Any) -> Callable[[dict[str, Any]], Any]:
        main = module["main"]
        if observed := _debugged(main.body):
            return self._observing(module, observed)
        if isinstance(main.checked_type.ret_type, RelayRefType):
            from .backend.interpreter import RefValue
            read = module.copy()
            read["main"] = Function(main.params, RefRead(main.body))
            held = self._function(read._completed())
            return lambda inputs: RefValue(held(inputs))
        try:
            return ProgramExecutor._function(self, module)  # type: ignore[arg-type]
        except _core.Error as error:
            if error.code != 203:
                raise
        result = module["main"].checked_type.ret_type

        def run(inputs: dict[str, Any]) -> Any:
            values = [NDArray(v) for v in _core.interpret(module, {name: as_array(value) for name, value in inputs.items()})]
            return ADT(0, values) if isinstance(result, TupleType) else values[0]
        return run

    def _observing(self, module: Any, observed: list[Any]) -> Callable[[dict[str, Any]], Any]:
        """Runs main and passes the operands of its `debug` calls to their functions, in program order."""
        from ..registry import get_global_func
        main, both = module["main"], module.copy()
        values = [call.args[0] for call in observed]
        both["main"] = Function(main.params, Tuple([_unobserved(main.body), *map(_unobserved, values)]))
        computed = self._function(both._completed())
        functions = [get_global_func(call.attrs.debug_func) for call in observed]

        def run(inputs: dict[str, Any]) -> Any:
            result, *seen = computed(inputs)
            for function, value in zip(functions, seen):
                function(value)
            return result
        return run


def _debugged(body: Any) -> list[Any]:
    """The `debug` calls that every run executes, in execution order."""
    from .analysis import post_order_visit
    found: list[Any] = []
    if not isinstance(body, Function):
        post_order_visit(body, lambda e: found.append(e) if _is_debug(e) else None)
    return found


def _is_debug(expr: Any) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "debug" and bool(expr.attrs.debug_func)


def _unobserved(body: Any) -> Any:
    from .expr_functor import ExprMutator

    class Without(ExprMutator):
        def visit_call(self, call: Any) -> Any:
            return self.visit(call.args[0]) if _is_debug(call) else super().visit_call(call)
    return Without().visit(body)


def named(value: Any, type_: Any, mod: Any) -> Any:
    """Attaches constructors to values of data types."""
    if not isinstance(value, ADT):
        return value
    if isinstance(type_, TupleType):
        return ADT(0, [named(f, t, mod) for f, t in zip(value.fields, type_.fields)])
    if not isinstance(type_, TypeCall):
        return value
    root = out = ADT(value.tag, [])
    waiting = [(value, type_, root)]  # an explicit stack, because lists are deep
    while waiting:
        v, t, out = waiting.pop()
        variables, constructors = mod._type(t.func.name_hint)
        out.constructor = constructors[v.tag]
        of = {var: arg for var, arg in zip(variables, t.args)}
        for field, want in zip(v.fields, out.constructor.inputs):
            want = TypeCall(want.func, [of.get(a, a) for a in want.args]) if isinstance(want, TypeCall) else of.get(want, want)
            if isinstance(field, ADT) and isinstance(want, TypeCall):
                made = ADT(field.tag, [])
                waiting.append((field, want, made))
                out.fields.append(made)
            else:
                out.fields.append(named(field, want, mod))
    return root


ConstructorValue = ADT

_KINDS: dict[str, type[_Executor]] = {"graph": GraphExecutor, "vm": ProgramExecutor, "debug": InterpreterExecutor, "interpreter": InterpreterExecutor,
                                      "aot": AotExecutor}


def create_executor(kind: str = "debug", mod: Any = None, device: Device | None = None, target: Any = "llvm", params: Mapping[str, Any] | None = None) -> _Executor:
    """"graph" compiles for fixed sizes; "vm" also supports dynamic sizes, data types and recursion; "debug" (or "interpreter") also
    references."""
    if kind not in _KINDS:
        raise RuntimeError(f"unknown execution strategy: {kind}; there are {', '.join(_KINDS)}")
    if device is not None and not isinstance(device, Device):
        raise TypeError("device is a tilewright.Device")
    return _KINDS[kind](mod, device, target, params)


__all__ = ["AotExecutor", "ConstructorValue", "GraphExecutor", "InterpreterExecutor", "ProgramExecutor", "create_executor", "named"]
