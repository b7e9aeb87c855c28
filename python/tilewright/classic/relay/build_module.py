# SPDX-License-Identifier: Apache-2.0
"""Builds modules to libraries."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import _core
from ...options import cache_folder
from ..error import InvalidValue
from ..ir.memory_pools import ConstantMemoryPools, PoolInfo, WorkspaceMemoryPools, WorkspacePoolInfo
from ..runtime.module import Module
from ..runtime.ndarray import Device, NDArray, as_array
from ..target import Target
from ..transform import PassContext
from .backend import Executor, Runtime
from .backend.contrib import add_generators, optimized
from .te_kernels import with_te_kernels
from .executor_factory import (AotExecutorFactory, ExecutorCodegenMetadata, ExecutorFactoryModule, FunctionInfo, GraphExecutorFactory)


def _module_of(ir_mod: Any, params: Any) -> Any:
    from .expr import Function, to_module
    module = to_module(ir_mod) if isinstance(ir_mod, Function) else ir_mod
    if not isinstance(module, _core.IRModule):
        raise ValueError(f"Type of input parameter mod must be tilewright.IRModule, not {type(ir_mod).__name__}")
    if params is not None and not isinstance(params, Mapping):
        raise TypeError(f"params are tensors by name, not a {type(params).__name__}")
    return module.bind_params({name: as_array(value) for name, value in params.items()}) if params else module


def _targets(target: Any, target_host: Any) -> list[Target]:
    """Canonical targets, one per device. ValueError: two for one device."""
    if target is None and (target := Target.current()) is None:
        raise ValueError('Target is not set in env or passed as argument: relay.build(mod, "llvm") is for this processor')
    targets = Target.canon_multi_target_and_host(target, target_host)
    by_device: dict[int, Target] = {}
    for one in targets:
        other = by_device.setdefault(one.kind.device_type, one)
        if other != one:
            raise ValueError(f"two targets are for the device {one.kind.device_name}: '{other}' and '{one}'")
    return list(by_device.values())


def _processor(targets: list[Target]) -> Target:
    """The CPU target: the target for the CPU, or else a host of one of the targets. Error 401 if there is none."""
    for candidate in [*targets, *(t.host for t in targets)]:
        if candidate is not None and candidate.makes_code:
            return candidate
    targets[0].build_text()
    raise AssertionError("a target without code has no build text")


def _device_targets(targets: list[Target]) -> dict[int, str]:
    """The targets of kernels on other devices. Such a device shares the CPU's memory, and its code runs on its host, or on the CPU.
    Error 401 if there is no such code generator."""
    out: dict[int, str] = {}
    for target in targets:
        if target.kind == "ext_dev":
            out[target.kind.device_type] = (target.host if target.host is not None and target.host.makes_code else _processor(targets)).build_text()
        else:
            target.build_text()
    return out


def _executor_and_runtime(executor: Any, runtime: Any) -> tuple[Executor, Runtime]:
    executor = Executor(executor) if isinstance(executor, str) else executor
    runtime = Runtime(runtime) if isinstance(runtime, str) else runtime
    if not isinstance(executor, Executor) or not isinstance(runtime, Runtime):
        raise TypeError("executor and runtime are Executor and Runtime objects: relay.backend.Executor(\"graph\")")
    unpacked, interface = bool(executor.attrs.get("unpacked-api")), executor.attrs.get("interface-api", "packed")
    if interface not in ("c", "packed"):
        raise ValueError(f'interface-api is "c" or "packed", not "{interface}"')
    if executor.name == "aot" and runtime.name == "cpp" and (unpacked or interface != "packed"):
        raise InvalidValue(f'Need unpacked-api == false (got: {int(unpacked)}) and interface-api == "packed" (got: {interface}) when targeting c++ runtime')
    if executor.name == "aot" and runtime.name == "crt" and not (unpacked or interface == "packed"):
        raise InvalidValue(f'Either need interface_api == "packed" (got: {interface}) or unpacked-api == true (got: {int(unpacked)}) when targeting c runtime')
    return executor, runtime


def _pools(pools: Any, kind: type) -> list[PoolInfo]:
    """The pools of a WorkspaceMemoryPools or ConstantMemoryPools, or of a list of them."""
    listed = list(pools.pools if isinstance(pools, kind) else pools or [])
    for pool in listed:
        if not isinstance(pool, PoolInfo):
            raise TypeError(f"memory pools are {kind.__name__}, not {type(pool).__name__}")
    return listed


def _set_ahead_of_time(options: Any, executor: Executor, in_c: bool, workspace: list[PoolInfo], constants: list[PoolInfo], config: Mapping[str, Any]) -> None:
    """Sets the ahead-of-time options of the build: the interface in C, pools and their planner."""
    custom, use_io = str(config.get("tir.usmp.custom_algorithm", "")), bool(config.get("tir.usmp.use_workspace_io", False))
    packed = executor.attrs.get("interface-api", "packed") == "packed"
    if use_io and packed:
        raise ValueError('tir.usmp.use_workspace_io option can only be used when interface-api is "c"')
    from ..usmp import planner
    algorithm, own = str(config.get("tir.usmp.algorithm", "greedy_by_size")), workspace or [WorkspacePoolInfo("workspace")]
    sizes = [[(p.pool_name, p.size_hint_bytes) for p in pools] for pools in (workspace, constants)]
    if in_c:
        options.set_ahead_of_time(packed, *sizes, executor.attrs.get("workspace-byte-alignment", 16), executor.attrs.get("constant-byte-alignment", 16), use_io, algorithm,
                                  planner(custom, own) if custom else None)
    elif workspace or constants:
        options.set_runtime_pools(*sizes, algorithm, planner(custom, own) if custom else None)


def build(ir_mod: Any, target: Any = None, target_host: Any = None, executor: Executor = Executor("graph"),
          runtime: Runtime = Runtime("cpp"), workspace_memory_pools: Any = None, constant_memory_pools: Any = None,
          params: Mapping[str, Any] | None = None, mod_name: str = "default", *, kernel_cache: bool | str = True) -> ExecutorFactoryModule:
    """Builds with the current PassContext (level 2 by default). `params` become constants.

    target: one, with or without a host, a list, or a dict by device; on_device decides what runs where (docs/python.md).
    executor, runtime: Executor("aot", {"interface-api": "c", "unpacked-api": True}) with Runtime("crt") is for C programs (docs/aot.md),
    which provide the memory pools; with Runtime("cpp") the runtime allocates them. Executor("graph") interprets the plan with any number
    of threads; Executor("aot") calls one generated function."""
    if isinstance(executor, Mapping):  # params was once the fourth argument
        params, executor = executor, Executor("graph")
    executor, runtime = _executor_and_runtime(executor, runtime)
    workspace, constants = _pools(workspace_memory_pools, WorkspaceMemoryPools), _pools(constant_memory_pools, ConstantMemoryPools)
    in_c = executor.name == "aot" and runtime.name == "crt"
    if (workspace or constants) and executor.name != "aot":
        raise ValueError("memory pools are of models that are compiled ahead of time: executor=Executor(\"aot\"), or for C programs Executor(\"aot\", "
                         "{\"interface-api\": \"c\", \"unpacked-api\": True}) with runtime=Runtime(\"crt\")")
    if not isinstance(mod_name, str) or not mod_name.isascii():
        raise ValueError("mod_name must be ASCII")
    targets = _targets(target, target_host)
    context = PassContext.current()
    module, own_loops = with_te_kernels(optimized(_module_of(ir_mod, params)), _processor(targets), mod_name or "default")
    options = context.build_options(_processor(targets))
    _core.add_functions(options, own_loops)
    add_generators(options, module)
    options.name, options.kernel_cache, options.aot = mod_name, cache_folder(kernel_cache), executor.name == "aot"
    options.device_targets, options.classic_names = _device_targets(targets), not in_c
    options.system_lib = bool(runtime.attrs.get("system-lib") or _processor(targets).attrs.get("system-lib"))
    if executor.name == "aot":
        _set_ahead_of_time(options, executor, in_c, workspace, constants, context.config)
    if executor.name == "graph" and runtime.name == "crt":
        options.set_graph_in_c(bool(executor.attrs.get("link-params")))
    built = _core.build(module, options, context._bridge())
    built_factory = (AotExecutorFactory if options.aot else GraphExecutorFactory)(built, mod_name, targets, executor, runtime, module)
    built_factory.memory_pools = {p.pool_name: p for p in (*workspace, *constants)}
    return built_factory


def optimize(mod: Any, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
    """Runs only the passes of a build: (module, params); params have become constants of the module."""
    context = PassContext.current()
    built = _core.optimize(_module_of(mod, params), context.build_options(_processor(_targets(target, None))), context._bridge())
    return built.optimized, {}


def bind_params_by_name(func: Any, params: Mapping[str, Any]) -> Any:
    """The function (or module) with parameters of these names replaced by constants. ValueError: two parameters have the same name."""
    from .expr import bind, const
    if isinstance(func, _core.IRModule):
        return func.bind_params({name: as_array(value) for name, value in params.items()})
    names = [p.name_hint for p in func.params]
    twice = [name for name in params if names.count(name) > 1]
    if twice:
        raise ValueError(f"Multiple args in the function have name {twice[0]}")
    return bind(func, {name: const(as_array(value)) for name, value in params.items() if name in names})


def build_config(opt_level: int = 2, required_pass: Any = None, disabled_pass: Any = None, trace: Any = None) -> PassContext:
    """The old name of PassContext."""
    return PassContext(opt_level, required_pass, disabled_pass, trace=trace)


class BuildModule:
    """A build in steps: `build` or `optimize`, then the getters. Each function is also available by name: `bld.mod["get_graph_json"]()`.
    ValueError before a build."""

    _FUNCTIONS = ("build", "optimize", "get_graph_json", "get_module", "list_params", "get_params", "set_params", "get_devices", "get_irmodule",
                  "get_external_modules", "get_function_metadata", "get_executor_codegen_metadata")

    def __init__(self) -> None:
        self._factory: ExecutorFactoryModule | None = None
        self._optimized: Any = None
        self._params: dict[str, Any] = {}
        self.mod = self

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.get_function(name)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        if name not in self._FUNCTIONS:
            raise AttributeError(f"Module has no function '{name}'; it has {', '.join(self._FUNCTIONS)}")
        return getattr(self, name)

    def build(self, mod: Any, target: Any = None, target_host: Any = None, executor: Executor = Executor("graph"), runtime: Runtime = Runtime("cpp"),
              workspace_memory_pools: Any = None, constant_memory_pools: Any = None, params: Mapping[str, Any] | None = None,
              mod_name: str = "default") -> tuple[str | None, Module, dict[str, NDArray]]:
        """(executor configuration, library, params). `params` and those of set_params become constants."""
        given = {**self._params, **(params or {})}
        self._factory = build(mod, target, target_host, executor, runtime, workspace_memory_pools, constant_memory_pools, given, mod_name)
        self._optimized = self._factory.optimized
        return self._factory.get_executor_config(), self._factory.module, self._factory.get_params()

    def optimize(self, mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._optimized, rest = optimize(mod, target if target_host is None else Target(target, target_host), {**self._params, **(params or {})})
        return self._optimized, rest

    def _built(self) -> ExecutorFactoryModule:
        if self._factory is None:
            raise ValueError("nothing has been built yet: call build first")
        return self._factory

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Sets constant values for parameters of the next build's main."""
        self._params = dict(params)

    _set_params = set_params

    def get_graph_json(self) -> str | None:
        return self._built().get_executor_config()

    get_json = get_graph_json

    def get_module(self) -> Module:
        return self._built().module

    def list_params(self) -> list[str]:
        return list(self._built().get_params())

    def get_params(self) -> dict[str, NDArray]:
        return self._built().get_params()

    def get_devices(self) -> list[str]:
        return self._built().get_devices()

    def get_irmodule(self) -> Any:
        """The module after the passes; each of its primitive functions is a kernel."""
        if self._optimized is None:
            raise ValueError("nothing has been built yet: call build or optimize first")
        return self._optimized

    def get_external_modules(self) -> list[Module]:
        """The modules imported by the library."""
        return self._built().module.imported_modules

    def get_function_metadata(self) -> dict[str, FunctionInfo]:
        return self._built().function_metadata

    def get_executor_codegen_metadata(self) -> ExecutorCodegenMetadata:
        return self._built().executor_codegen_metadata


def create_executor(kind: str = "debug", mod: Any = None, device: Device | None = None, target: Any = "llvm", params: Any = None) -> Any:
    """`create_executor("graph", mod).evaluate()` returns a function of the inputs, by position or name (executors.py)."""
    from . import executors
    return executors.create_executor(kind, mod, device, target, params)


def __getattr__(name: str) -> Any:
    """The classic names of the executors: build_module.GraphExecutor."""
    if name in ("GraphExecutor", "AotExecutor"):
        from . import executors
        return getattr(executors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["AotExecutorFactory", "BuildModule", "ExecutorFactoryModule", "FunctionInfo", "GraphExecutorFactory", "bind_params_by_name", "build", "build_config", "create_executor",
           "optimize"]
