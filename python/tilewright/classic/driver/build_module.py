# SPDX-License-Identifier: Apache-2.0
"""From schedules to loops, and from loops to libraries."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _core
from ..relay.backend import Executor, Runtime
from ..registry import register_for_objects
from ..relay.op.registry import registered
from ..relay.executor_factory import BuiltLibrary, ExecutorFactoryModule
from ..target import Target
from ..runtime.module import CSourceModuleCreate
from ..te.lowering import arguments_of
from ..te.schedule import Schedule
from ..tir.calls import inlined
from ..tir.function import LoopModule, PrimFunc
from ..transform import PassContext


class FunctionLibrary(BuiltLibrary):
    """A library of tensor functions: `lib["name"](a, b, c)`, or `lib(a, b, c)` for the first one."""

    @property
    def ir_module_by_target(self) -> dict[Target, LoopModule]:
        """The functions that the library was built from."""
        return {self._factory.target[0]: LoopModule(dict(zip(self._factory.names, self._factory.loops)))}

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        if name == "get_func_names":
            return lambda: list(self._factory.names)
        return super().get_function(name, query_imports)


class FunctionFactory(ExecutorFactoryModule):
    """The exportable form of a FunctionLibrary."""

    def __init__(self, functions: list[Any], options: Any, target: list[Target], runtime: Runtime):
        self.names = [f.name for f in functions]
        super().__init__(_core.build_functions(functions, options), self.names[0] if functions else "default", target, Executor("graph"), runtime, None)
        self._functions, self._options = functions, options
        self.loops: list[PrimFunc] = []

    def _joined(self) -> "FunctionFactory":
        """With the functions of imported libraries of functions: they are in one file."""
        own = [m for m in self._imports if isinstance(m, FunctionLibrary) and isinstance(m._factory, FunctionFactory)]
        if not own or self._built is None:
            return self
        parts = [m._factory._joined() for m in own]
        made = FunctionFactory([f for part in [self, *parts] for f in part._functions], self._options, self.target, self.runtime)
        made._imports = [m for m in [*self._imports, *(i for part in parts for i in part._imports)] if m not in own]
        made._static, made._linked = self._static, self._linked
        made.loops = [f for part in [self, *parts] for f in part.loops]
        return made

    def loop_text(self) -> str:
        """The loops of all functions, as they were given to the code generator."""
        return "\n".join(f.script() if hasattr(f, "script") else str(f) for f in self.loops)

    def export_library(self, file_name: Any, *args: Any, **kwargs: Any) -> str:
        return ExecutorFactoryModule.export_library(self._joined(), file_name, *args, **kwargs)

    def save(self, file_name: Any, fmt: str = "", form: str = "") -> None:
        ExecutorFactoryModule.save(self._joined(), file_name, fmt, form)

    @property
    def module(self) -> FunctionLibrary:
        return self._loaded(FunctionLibrary)


def lower(inp: Any, args: Any = None, name: str = "main", binds: Any = None, simple_mode: bool = False) -> LoopModule:
    """Lowers a schedule to loops with these parameters, inputs and outputs in any order. Printed loops are shown as scheduled, before
    unrolling and vectorisation. Errors: 101 (a missing input, a stage computed at a loop that does not enclose its consumers)."""
    inp = getattr(inp, "_loops", inp)
    if isinstance(inp, LoopModule):
        return _passed(inp)
    if isinstance(inp, PrimFunc):
        return _passed(LoopModule({name: inp.with_attr("global_symbol", name)}))
    if not isinstance(inp, Schedule):
        raise ValueError(f"Expected input to be an IRModule, PrimFunc or te.Schedule, but got {type(inp)}")
    return _passed(LoopModule({name: PrimFunc._of(_core.te_lower(inp, arguments_of(args, binds), name))}))


def _passed(mod: LoopModule) -> LoopModule:
    """Applies the passes of PassContext(config={"tir.add_lower_pass": [(phase, pass), ...]})."""
    for _, step in sorted(PassContext.current().config.get("tir.add_lower_pass", []), key=lambda item: int(item[0])):
        made = step(mod)
        if not isinstance(made, LoopModule):
            raise ValueError(f"the pass {getattr(step, '__name__', step)} gives a {type(made).__name__}, no module of loops")
        mod = made
    return mod


def _with_rules(lowered: Any, target: Target) -> Any:
    """Lowers intrinsics by the rules of register_intrin_lowering for the target."""
    rules: dict[str, Any] = {**registered("default.FLowerIntrinsic"), **registered(f"{target.kind.name}.FLowerIntrinsic")}
    if not rules:
        return lowered

    def rewritten(call: Any) -> Any:
        rule = rules.get(str(call.op))
        made = rule(call) if rule else None
        return None if made is call else made
    return lowered.with_intrinsics(rewritten)


def lowered_for(sch: Schedule, args: Any, name: str, target: Target) -> Any:
    """Lowers a schedule's loops for code generation by the target."""
    return _with_rules(lower(sch, args, name)[name]._lowered, target)


def schedule_to_module(sch: Schedule, args: Any = None, name: str = "main", binds: Any = None) -> LoopModule:
    return lower(sch, args, name, binds)


def _functions(inputs: Any, args: Any, name: str, binds: Any) -> list[Any]:
    """The lowered functions of build's first argument."""
    inputs = getattr(inputs, "_loops", inputs)
    if isinstance(inputs, Schedule):
        return [lower(inputs, args, name, binds)[name]]
    if isinstance(inputs, PrimFunc):
        return [inputs]
    if isinstance(inputs, LoopModule):
        inputs = inlined(inputs)
        symbols = [str(f.attrs["global_symbol"]) for f in inputs.functions.values()]
        # A script's own symbol is the function's name; what is called main because nothing was said, or like another, has its name in the module.
        return [f if symbols.count(s) == 1 and (s != "main" or len(inputs) == 1 and n == "main") else f.with_attr("global_symbol", n)
                for s, (n, f) in zip(symbols, inputs.functions.items())]
    if isinstance(inputs, (list, tuple)):
        return [f for one in inputs for f in _functions(one, args, name, binds)]
    if isinstance(inputs, Mapping):
        return [f for one in inputs.values() for f in _functions(one, args, name, binds)]
    if isinstance(inputs, _core.IRModule) and not inputs.get_global_vars():
        return []
    raise ValueError("Inputs must be te.Schedule, IRModule of loops or a list or dict of them, but got " + type(inputs).__name__ +
                     ("; relay.build is for modules of Relay" if isinstance(inputs, _core.IRModule) else ""))


def build(inputs: Any, args: Any = None, target: Any = None, target_host: Any = None, runtime: Any = None, name: str = "default_function", binds: Any = None) -> Any:
    """Builds a library (FunctionLibrary) from a schedule and its arguments, from what `lower` returned, or from a list of those. A module without
    functions becomes a library without functions, which can be exported and can import others. Functions for ext_dev are built for its host; the
    target hybrid makes a te.hybrid.HybridModule.

    Errors: tilewright.Error (101: as for lower, or a loop bound to a GPU thread; 401)."""
    prepared = _functions(inputs, args, name, binds)
    if not prepared and not isinstance(inputs, (LoopModule, _core.IRModule)):
        raise ValueError("there is no function to build")
    if isinstance(inputs, Mapping) and target is None:
        target = next(iter(inputs))
    chosen = Target(target if target is not None else Target.current() or "llvm", target_host)
    if chosen.kind == "hybrid":
        return _script_of(prepared)
    if chosen.kind == "ext_dev":  # external code is called by the functions, which run on the device's host
        chosen = chosen.host or Target("llvm")
    functions = [_with_rules(f._lowered, chosen) for f in prepared]
    runtime = runtime or Runtime("cpp")
    options = PassContext.current().build_options(chosen)
    options.name = functions[0].name if functions else name
    options.system_lib = bool(runtime.attrs.get("system-lib") or chosen.attrs.get("system-lib"))
    made = FunctionFactory(functions, options, [chosen], runtime)
    made.loops = prepared
    return made.module


def _script_of(functions: list[PrimFunc]) -> Any:
    """The module of the target hybrid, whose code is a Python function."""
    from ..te.hybrid_source import HybridModule, source_of_loops
    if len(functions) != 1:
        raise ValueError(f"a hybrid script is one function, and {len(functions)} are built: {', '.join(f.attrs['global_symbol'] for f in functions)}")
    name = str(functions[0].attrs["global_symbol"])
    return HybridModule(source_of_loops(functions[0], name), name)


def _register_kinds() -> None:
    """The classic stack's functions by name that a build goes through: target.build.<kind>(module, target), and modules without functions."""
    for kind in ("llvm", "c", "stackvm", "hybrid"):
        register_for_objects(f"target.build.{kind}", lambda mod, target=None, kind=kind: build(mod, target=kind if target is None else target))
    register_for_objects("codegen.LLVMModuleCreate", lambda target="llvm", name="default": build(LoopModule(), target=target, name=name))
    for room in ("codegen", "runtime"):
        register_for_objects(f"{room}.CSourceModuleCreate", CSourceModuleCreate)


_register_kinds()

__all__ = ["FunctionLibrary", "LoopModule", "build", "lower", "schedule_to_module"]
