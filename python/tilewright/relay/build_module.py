# SPDX-License-Identifier: Apache-2.0
"""From a module to a library."""
from __future__ import annotations

import os
import struct
import tempfile
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import _core
from ..contrib import tar
from ..model import cache_folder
from ..runtime.module import Module, load_module
from ..runtime.ndarray import Device, NDArray, as_array, cpu
from ..target import Target
from ..transform import PassContext
from .backend import Executor, Runtime


class FunctionInfo(NamedTuple):
    """Bytes, by target."""
    workspace_sizes: dict[Target, int]
    io_sizes: dict[Target, int]
    constant_sizes: dict[Target, int]


def _import_tree(modules: list[Module]) -> bytes:
    """The records of docs/runtime.md for a library that imports `modules`."""
    order: list[tuple[str, bytes]] = []
    children: list[list[int]] = [[]]

    def visit(module: Module, parent: int) -> None:
        number = len(order) + 1
        order.append((module.type_key, module.save_to_bytes()))
        children.append([])
        children[parent].append(number)
        for child in module.imported_modules:
            visit(child, number)

    for module in modules:
        visit(module, 0)

    def text(data: bytes) -> bytes:
        return struct.pack("<Q", len(data)) + data

    rows, flat = [0], []
    for row in children:
        flat += row
        rows.append(len(flat))
    out = struct.pack("<Q", len(order) + 2) + text(b"_lib")
    for key, data in order:
        out += text(key.encode()) + text(data)
    return out + text(b"_import_tree") + b"".join(struct.pack(f"<Q{len(v)}Q", len(v), *v) for v in (rows, flat))


class GraphExecutorFactory:
    """A built module: `lib["default"](dev)` makes an executor, `export_library` writes a library."""

    def __init__(self, built: Any, name: str, target: list[Target], executor: Executor, runtime: Runtime, ir_mod: Any):
        self._built = built
        self._library: Module | None = None
        self._imports: list[Module] = []
        self.libmod_name = name
        self.target = target
        self.executor = executor
        self.runtime = runtime
        self.ir_mod = ir_mod

    @property
    def module(self) -> Module:
        """The library, loaded."""
        if self._library is None:
            with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
                path = os.path.join(folder, "lib.so")
                self._built.export_library(path)
                self._library = load_module(path)  # the mapping outlives the file
            for module in self._imports:
                self._library.import_module(module)
        return self._library

    def __getitem__(self, name: str) -> Any:
        return self.module[self._own_name(name)]

    def _own_name(self, name: str) -> str:
        return "default" if name == self.libmod_name else name

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        return self.module.get_function(self._own_name(name), query_imports)

    def import_module(self, module: Module) -> None:
        """The library carries the module: its kind must be able to save itself (docs/runtime.md)."""
        self._imports.append(module)
        if self._library is not None:
            self._library.import_module(module)

    def get_graph_json(self) -> str:
        """The execution plan as the classic graph JSON."""
        return self._built.graph_json

    get_executor_config = get_graph_json

    @property
    def graph_json(self) -> str:
        return self._built.graph_json

    def get_params(self) -> dict[str, NDArray]:
        """The compiled-in weights, in the form the kernels read."""
        return {name: NDArray(array) for name, array in self._built.params.items()}

    @property
    def params(self) -> dict[str, NDArray]:
        return self.get_params()

    def get_lib(self) -> Module:
        return self.module

    @property
    def lib(self) -> Module:
        return self.module

    def get_devices(self) -> list[str]:
        return ["cpu"]

    @property
    def function_metadata(self) -> dict[str, FunctionInfo]:
        """What an executor allocates: working memory, inputs and outputs, and the weights it maps."""
        workspace, constants, io = self._built.function_metadata
        target = self.target[0]
        return {"__tvm_main__": FunctionInfo({target: workspace}, {target: io}, {target: constants})}

    @property
    def optimized(self) -> Any:
        """The module after the passes."""
        return self._built.optimized

    @property
    def pass_records(self) -> list[tuple[str, bool, bool, float, str]]:
        """(name, ran, changed, milliseconds, why it was skipped) of every pass of the build."""
        return self._built.passes

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, addons: Any = None,
                       workspace_dir: str | None = None, **kwargs: Any) -> str:
        """Writes a library that every interface loads (`.so`), objects for a linker (`.o`, `.a`), or a package of library, graph and
        weights (`.tar`).

        fcompile(file_name, objects, **kwargs) makes the file in place of the built-in linker, of a finished library. The file
        appears whole or not at all. Errors: 103, 403."""
        path = os.fspath(file_name)
        if addons:
            raise NotImplementedError("addons are not supported; import a module (import_module), or link them with fcompile")
        imports = _import_tree(self._imports) if self._imports else b""
        if fcompile is None or fcompile is tar.tar:
            if kwargs:
                raise TypeError(f"{', '.join(kwargs)}: options need an fcompile to take them")
            self._built.export_library(path, imports)
            return path
        with tempfile.TemporaryDirectory(prefix="tilewright-", dir=workspace_dir) as folder:
            library = os.path.join(folder, "lib.so")
            self._built.export_library(library, imports)
            made = os.path.join(os.path.dirname(os.path.abspath(path)), f".{os.path.basename(path)}.{os.getpid()}")
            try:
                fcompile(made, [library], **kwargs)
                os.replace(made, path)
            finally:
                if os.path.exists(made):
                    os.unlink(made)
        return path

    def __iter__(self) -> Any:
        """graph, lib, params: the classic triple."""
        warnings.warn("legacy graph executor behavior of producing json / lib / params will be removed in the next release.", DeprecationWarning, 2)
        return iter((self.graph_json, self.module, self.get_params()))


def _module_of(ir_mod: Any, params: Any) -> Any:
    from .expr import Function, to_module
    module = to_module(ir_mod) if isinstance(ir_mod, Function) else ir_mod
    if not isinstance(module, _core.IRModule):
        raise ValueError(f"Type of input parameter mod must be tilewright.IRModule, not {type(ir_mod).__name__}")
    return module.bind_params({name: as_array(value) for name, value in params.items()}) if params else module


def _targets(target: Any, target_host: Any) -> list[Target]:
    if target is None:
        target = Target.current() or "llvm"
    targets = Target.canon_multi_target_and_host(target, target_host)
    if len(set(map(str, targets))) > 1:
        raise NotImplementedError("code for several different targets in one library is not supported; build for one")
    return targets


def build(ir_mod: Any, target: Any = None, target_host: Any = None, executor: Executor = Executor("graph"),
          runtime: Runtime = Runtime("cpp"), workspace_memory_pools: Any = None, constant_memory_pools: Any = None,
          params: Mapping[str, Any] | None = None, mod_name: str = "default", *,
          kernel_cache: bool | str = True) -> GraphExecutorFactory:
    """Builds with the current PassContext (level 2 outside of one). `params` become constants. kernel_cache: see tilewright.compile.
    Errors: tilewright.Error."""
    if isinstance(executor, str) or isinstance(runtime, str):
        raise ValueError("executor and runtime are Executor and Runtime objects: relay.backend.Executor(\"graph\")")
    if executor.name != "graph" or runtime.name != "cpp":
        raise NotImplementedError(f"executor '{executor.name}' with runtime '{runtime.name}' is not supported; every exported library has the C function "
                                  "tw_run, which needs no runtime library at all (docs/cpp.md)")
    if workspace_memory_pools or constant_memory_pools:
        raise NotImplementedError("memory pools are for ahead-of-time executors; the graph executor plans one arena")
    if not mod_name.isascii():
        raise ValueError("mod_name must be ASCII")
    targets = _targets(target, target_host)
    context = PassContext.current()
    module = _module_of(ir_mod, params)
    options = context.build_options(targets[0])
    options.name, options.kernel_cache = mod_name, cache_folder(kernel_cache)
    built = _core.build(module, options, context._bridge())
    return GraphExecutorFactory(built, mod_name, targets, executor, runtime, module)


def optimize(mod: Any, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
    """The passes of a build alone: (module, params); params are constants of the module by then."""
    context = PassContext.current()
    built = _core.optimize(_module_of(mod, params), context.build_options(_targets(target, None)[0]), context._bridge())
    return built.optimized, {}


def create_executor(kind: str = "graph", mod: Any = None, device: Device | None = None, target: Any = "llvm", params: Any = None) -> Any:
    """`create_executor("graph", mod).evaluate()` is a function of the inputs, by position or name."""
    if kind != "graph":
        raise NotImplementedError(f"executor '{kind}' is not supported from Python; use \"graph\"")
    from ..contrib.graph_executor import GraphModule

    class _Evaluator:
        def evaluate(self, expr: Any = None) -> Callable[..., Any]:
            executor = GraphModule(build(mod, target, params=params)["default"](device or cpu()))

            def run(*args: Any, **inputs: Any) -> Any:
                for i, value in enumerate(args):
                    executor.set_input(i, value)
                executor.run(**inputs)
                outputs = [NDArray(executor.get_output(i).numpy()) for i in range(executor.get_num_outputs())]
                return outputs[0] if len(outputs) == 1 else outputs
            return run

    return _Evaluator()


__all__ = ["FunctionInfo", "GraphExecutorFactory", "build", "create_executor", "optimize"]
