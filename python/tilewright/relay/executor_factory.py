# SPDX-License-Identifier: Apache-2.0
"""What a build gives: a library with what is known about it."""
from __future__ import annotations

import os
import shutil
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..contrib import cc, tar
from ..runtime.module import Module, load_module
from ..runtime.ndarray import NDArray
from ..target import Target
from .backend import Executor, Runtime


class FunctionInfo(NamedTuple):
    """Bytes by target: exactly what a run of the function needs. The functions of the graph by target; kernels have none."""
    workspace_sizes: dict[Target, int]
    io_sizes: dict[Target, int]
    constant_sizes: dict[Target, int]
    tir_primfuncs: dict[Target, Any] = {}
    relay_primfuncs: dict[Target, Any] = {}


class ExecutorCodegenMetadata(NamedTuple):
    """What a caller of the model must know."""
    inputs: list[str]
    input_tensor_types: list[tuple[str, tuple[int, ...]]]  # (dtype, shape)
    outputs: list[str]
    output_tensor_types: list[tuple[str, tuple[int, ...]]]
    devices: list[str]
    executor: str
    mod_name: str
    interface_api: str
    unpacked_api: bool
    workspace_alignment: int
    constant_alignment: int
    pool_inputs: dict[str, Any] = {}
    io_pool_allocations: dict[str, Any] = {}


def import_tree(modules: list[Module]) -> bytes:
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


class BuiltLibrary(Module):
    """The library of a factory: what `graph, lib, params = relay.build(...)` gives, which can be exported and saved."""

    def __init__(self, handle: Any, factory: "ExecutorFactoryModule"):
        super().__init__(handle)
        self._factory = factory

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, addons: Any = None,
                       workspace_dir: str | None = None, **kwargs: Any) -> str:
        return self._factory.export_library(file_name, fcompile, addons, workspace_dir, **kwargs)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Writes an object (`.o`), an archive (`.a`) or a library (`.so`). ValueError for the text forms of code."""
        ending = fmt or os.path.splitext(file_name)[1].lstrip(".")
        if ending not in ("o", "obj", "a", "so", "tar"):
            raise ValueError(f"a library cannot be saved as '{ending}': there are o, a, so and tar; 'tilewright compile --dump-ir' shows kernels as text")
        self._factory.export_library(file_name)

    def get_source(self, fmt: str = "") -> str:
        raise ValueError("a built library keeps no source; 'tilewright compile --dump-ir' shows kernels as text")


class ExecutorFactoryModule:
    """A built module: `lib["default"](dev)` makes an executor, `export_library` writes a library."""

    def __init__(self, built: Any, name: str, target: list[Target], executor: Executor, runtime: Runtime, ir_mod: Any):
        self._built = built
        self._library: BuiltLibrary | None = None
        self._file: bytes | None = None  # the exported library, where there is no `built`: after unpickling
        self._imports: list[Module] = []
        self.libmod_name = name
        self.target = target
        self.executor = executor
        self.runtime = runtime
        self.ir_mod = ir_mod

    def __getstate__(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path = os.path.join(folder, "lib.so")
            self.export_library(path)
            with open(path, "rb") as file:
                return {"library": file.read(), "libmod_name": self.libmod_name, "target": self.target, "executor": self.executor, "runtime": self.runtime}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(None, state["libmod_name"], state["target"], state["executor"], state["runtime"], None)  # type: ignore[misc]
        self._file = state["library"]

    def _whole(self) -> Any:
        if self._built is None:
            raise ValueError("a factory that was pickled has the library only; build the module again for this")
        return self._built

    @property
    def module(self) -> BuiltLibrary:
        """The library, loaded."""
        if self._library is None:
            with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
                path = os.path.join(folder, "lib.so")
                if self._file is not None:  # its imports are in it
                    with open(path, "wb") as file:
                        file.write(self._file)
                else:
                    self._built.export_library(path)
                self._library = BuiltLibrary(load_module(path)._handle, self)  # the mapping outlives the file
            for module in self._imports:
                self._library.import_module(module)
        return self._library

    def _own_name(self, name: str) -> str:
        return "default" if name == self.libmod_name else name

    def __getitem__(self, name: str) -> Any:
        return self.module[self._own_name(name)]

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        return self.module.get_function(self._own_name(name), query_imports)

    def __call__(self, *args: Any) -> Any:
        return self.module["default"](*args)

    def import_module(self, module: Module) -> None:
        """The library carries the module: its kind must be able to save itself (docs/runtime.md)."""
        self._imports.append(module)
        if self._library is not None:
            self._library.import_module(module)

    def get_lib(self) -> BuiltLibrary:
        return self.module

    @property
    def lib(self) -> BuiltLibrary:
        return self.module

    def get_devices(self) -> list[str]:
        return ["cpu"]

    def get_params(self) -> dict[str, NDArray]:
        """The compiled-in weights, in the form the kernels read."""
        if self._built is None:
            return {name: value for name, value in self.module["get_graph_params"]()}
        return {name: NDArray(array) for name, array in self._built.params.items()}

    @property
    def params(self) -> dict[str, NDArray]:
        return self.get_params()

    def get_executor_config(self) -> str | None:
        raise NotImplementedError

    @property
    def function_metadata(self) -> dict[str, FunctionInfo]:
        """What a run takes: working memory, inputs and outputs, weights; of the model and of each kernel."""
        target, out = self.target[0], {}
        for name, workspace, constants, io in self._whole().function_metadata:
            relay = {target: self._built.optimized["main"]} if name == "__tvm_main__" else {}
            out[name] = FunctionInfo({target: workspace}, {target: io}, {target: constants}, {}, relay)
        return out

    @property
    def executor_codegen_metadata(self) -> ExecutorCodegenMetadata:
        inputs, outputs, options = self._whole().inputs, self._whole().outputs, self.executor.flatten()
        return ExecutorCodegenMetadata([t[0] for t in inputs], [t[1:] for t in inputs], [t[0] for t in outputs], [t[1:] for t in outputs], self.get_devices(),
                                       self.executor.name, self.libmod_name, options.get("interface-api", "packed"), options.get("unpacked-api", False), 64, 64)

    @property
    def optimized(self) -> Any:
        """The module after the passes."""
        return self._whole().optimized

    @property
    def pass_records(self) -> list[tuple[str, bool, bool, float, str]]:
        """(name, ran, changed, milliseconds, why it was skipped) of every pass of the build."""
        return self._whole().passes

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, addons: Any = None,
                       workspace_dir: str | None = None, **kwargs: Any) -> str:
        """Writes a library that every interface loads (`.so`), objects for a linker (`.o`, `.a`), or a package of library, graph and
        weights (`.tar`), with the built-in linker.

        fcompile(file_name, objects, **kwargs) makes the file in its place, from one object; options alone (cc=, options=) are those of
        contrib.cc.create_shared. The file appears whole or not at all. Errors: 103, 403; what fcompile raises."""
        path = os.fspath(file_name)
        if addons:
            raise NotImplementedError("addons are not supported; import a module (import_module), or link them with fcompile")
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if fcompile is None and kwargs:
            fcompile = cc.create_shared
        plain = fcompile is None or fcompile is tar.tar
        if self._built is None and plain and path.endswith((".o", ".a", ".tar")):
            self._whole()
        if plain and self._file is None:
            self._built.export_library(path, self._tree())
            return path
        made = os.path.join(os.path.dirname(os.path.abspath(path)), f".{os.path.basename(path)}.{os.getpid()}")
        with tempfile.TemporaryDirectory(prefix="tilewright-", dir=workspace_dir) as folder:
            given = os.path.join(folder, "lib0.o" if self._file is None else "lib0.so")
            if self._file is None:
                self._built.export_library(given, self._tree())
            else:
                with open(given, "wb") as file:
                    file.write(self._file)
            try:
                if fcompile is None or plain:
                    shutil.copyfile(given, made)
                else:
                    fcompile(made, [given], **kwargs)
                os.replace(made, path)
            finally:
                if os.path.exists(made):
                    os.unlink(made)
        return path

    def _tree(self) -> bytes:
        return import_tree(self._imports) if self._imports else b""


class GraphExecutorFactory(ExecutorFactoryModule):
    """The factory of a graph executor."""

    def get_graph_json(self) -> str:
        """The execution plan as the classic graph JSON."""
        return self._built.graph_json if self._built is not None else self.module["get_graph_json"]()

    def get_executor_config(self) -> str:
        return self.get_graph_json()

    @property
    def graph_json(self) -> str:
        return self.get_graph_json()

    graph_json_str = graph_json

    def __iter__(self) -> Iterator[Any]:
        """graph, lib, params: the classic triple."""
        warnings.warn("legacy graph executor behavior of producing json / lib / params will be removed in the next release.", DeprecationWarning, 2)
        return iter((self.get_graph_json(), self.module, self.get_params()))

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, int):  # lib[0], lib[1], lib[2] of scripts that kept the triple
            return (self.get_graph_json, lambda: self.module, self.get_params)[name]()
        return super().__getitem__(name)


class AotExecutorFactory(ExecutorFactoryModule):
    """The factory of an ahead-of-time executor: its library runs through a generated function, on the caller's thread."""

    def get_executor_config(self) -> None:
        return None

    def get_graph_json(self) -> str:
        raise ValueError("an ahead-of-time executor has no graph JSON; build with Executor(\"graph\")")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("an ahead-of-time build is no triple of graph, lib and params; call export_library")


# The classic names.
GraphExecutorFactoryModule, AOTExecutorFactoryModule = GraphExecutorFactory, AotExecutorFactory

__all__ = ["AOTExecutorFactoryModule", "AotExecutorFactory", "ExecutorCodegenMetadata", "ExecutorFactoryModule", "FunctionInfo", "GraphExecutorFactory", "GraphExecutorFactoryModule"]
