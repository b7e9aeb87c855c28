# SPDX-License-Identifier: Apache-2.0
"""The result of a build: a library with its metadata."""
from __future__ import annotations

import os
import platform
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ... import _core
from ..contrib import cc, tar
from ..runtime.module import CSourceModule, Module, StaticLibrary, create_module, import_tree, load_module
from ..runtime.ndarray import NDArray
from ..target import DEVICES, Target
from .backend import Executor, Runtime


class FunctionInfo(NamedTuple):
    """Bytes of memory that a run of the function needs, by the target of the device. The graph's functions by target; kernels have none."""
    workspace_sizes: dict[Target, int]
    io_sizes: dict[Target, int]
    constant_sizes: dict[Target, int]
    tir_primfuncs: dict[Target, Any] = {}
    relay_primfuncs: dict[Target, Any] = {}


class ExecutorCodegenMetadata(NamedTuple):
    """What a caller of the model has to know."""
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


def _machine(triple: str) -> str:
    """The architecture of a target triple: x86_64, aarch64, arm, ..."""
    name = triple.partition("-")[0].lower()
    same = {"amd64": "x86_64", "arm64": "aarch64", "i386": "x86", "i486": "x86", "i586": "x86", "i686": "x86"}
    return same.get(name, "arm" if name.startswith(("armv", "thumb")) else name)


def _object_machine(path: str) -> str:
    """The architecture of an ELF file: "AArch64", "ARM (32 bits)"; empty for other files."""
    with open(path, "rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return ""
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    names = {3: "x86", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
    return names.get(number, f"ELF machine {number}") + (" (32 bits)" if head[4] == 1 else "")


class BuiltLibrary(Module):
    """The library of a factory, `lib` in `graph, lib, params = relay.build(...)`; it can be exported and saved."""

    def __init__(self, handle: Any, factory: "ExecutorFactoryModule"):
        super().__init__(handle)
        self._factory = factory

    format, is_dso_exportable, is_binary_serializable = "o", True, False

    @property
    def type_key(self) -> str:
        """Of the code that was generated: llvm, c or stackvm."""
        return "stackvm" if self._factory.makes_byte_code else "c" if self._factory.makes_source else "llvm"

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function of this name, among them the queries that classic code modules answer (get_func_names, get_const_vars,
        _get_target_string)."""
        asked = {"get_func_names": lambda: list(self._factory.function_metadata), "get_const_vars": list,
                 "_get_target_string": lambda: str(self._factory.target[0]), "__tvm_is_system_module": lambda: bool(self._factory._built and self._factory._built.system_lib)}
        if name == "get_metadata" and self._factory.executor.name == "aot" and self._factory._built is not None:
            return self._factory.metadata
        if name in asked:
            return asked[name]
        if self._factory.is_foreign:
            self._factory._load()  # raises: code of another processor, or of one that can more
        return super().get_function(name, query_imports)

    def import_module(self, module: Module) -> None:
        self._factory.import_module(module)

    @property
    def imported_modules(self) -> list[Module]:
        """C source that was linked in, of external code generators or imported, then the library's own imports."""
        built = self._factory._built
        sources = built.external_sources if built is not None else []
        return [*(CSourceModule(code, form, functions, constants) for code, form, functions, constants in sources), *super().imported_modules]

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, addons: Any = None,
                       workspace_dir: str | None = None, **kwargs: Any) -> str:
        return self._factory.export_library(file_name, fcompile, addons, workspace_dir, **kwargs)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Writes an object (`.o`), an archive (`.a`), a library (`.so`), LLVM IR (`.ll`), bitcode (`.bc`), assembly (`.s`) or, for
        target c, C (`.c`)."""
        self._factory.save(file_name, fmt)

    def get_source(self, fmt: str = "") -> str:
        """The code including weights, as LLVM IR ("ll") or assembly ("s", "asm"); for target c one C file ("c"); for stackvm a list of instructions."""
        if self._factory.makes_byte_code and fmt in ("", "stackvm"):
            return self._factory._whole().byte_code_text
        forms = ("c",) if self._factory.makes_source else ("stackvm",) if self._factory.makes_byte_code else ("ll", "s")
        fmt = "s" if fmt == "asm" else fmt or forms[0]
        if fmt not in forms:
            raise ValueError(f"the code has no text form '{fmt}'; there is {' and '.join(forms)}")
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path = os.path.join(folder, f"lib.{fmt}")
            self.save(path)
            with open(path, encoding="utf-8") as file:
                return file.read()


class _Unlinked:
    """The functions of a library that cannot be loaded by itself."""

    def __init__(self, error: Exception):
        self._error = error

    def __call__(self, name: str) -> Any:
        def call(*_: Any) -> Any:
            raise self._error
        return call


class ExecutorFactoryModule:
    """A built module: `lib["default"](dev)` makes an executor, `export_library` writes a library."""

    def __init__(self, built: Any, name: str, target: list[Target], executor: Executor, runtime: Runtime, ir_mod: Any):
        self._built = built
        self._library: BuiltLibrary | None = None
        self._needs_more = False  # than this machine's processor has
        self._file: bytes | None = None  # the exported library, if there is no `built`: after unpickling
        self._imports: list[Module] = []
        self._static: list[StaticLibrary] = []
        self._linked: list[str] = []  # functions of imported C source
        self.libmod_name = name
        self.target = target
        self.executor = executor
        self.runtime = runtime
        self.ir_mod = ir_mod
        self.memory_pools: dict[str, Any] = {}  # provided by the program that calls the model

    def __getstate__(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path = os.path.join(folder, f"lib.{self._loadable}")
            self.export_library(path)
            with open(path, "rb") as file:
                return {"library": file.read(), "libmod_name": self.libmod_name, "target": self.target, "executor": self.executor, "runtime": self.runtime}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(None, state["libmod_name"], state["target"], state["executor"], state["runtime"], None)  # type: ignore[misc]
        self._file = state["library"]

    @property
    def makes_source(self) -> bool:
        """Whether the generated code is C (target c)."""
        return self._built is not None and self._built.target.split(" ")[0] == "c"

    @property
    def makes_byte_code(self) -> bool:
        """Whether the code is byte code, of the target stackvm."""
        return self.target[0].kind == "stackvm"

    @property
    def _loadable(self) -> str:
        """The end of the name of a file that load_module takes as it is."""
        return "stackvm" if self.makes_byte_code else "so"

    def _whole(self) -> Any:
        if self._built is None:
            raise ValueError("a factory that was pickled has the library only; build the module again for this")
        return self._built

    @property
    def module(self) -> BuiltLibrary:
        """The loaded library."""
        return self._loaded(BuiltLibrary)

    @property
    def is_foreign(self) -> bool:
        """Whether the code is for another kind of processor than this machine's, or has been found to need what this one lacks: it
        can be exported and saved, not called."""
        triple = str(self.target[0].attrs.get("mtriple") or "")
        return self._needs_more or bool(triple) and _machine(triple) != _machine(platform.machine())

    def _load(self) -> Module:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path = os.path.join(folder, f"lib.{self._loadable}")
            if self._file is not None:  # its imports are part of it
                with open(path, "wb") as file:
                    file.write(self._file)
            else:
                self._built.export_library(path, import_tree((), self._built.external_modules, self._linked) if self._linked else b"")
            return load_module(path)  # the mapping stays valid after the file is deleted

    def _load_if_possible(self) -> Module | None:
        """None where the code needs what this processor lacks (E503). Code that calls functions which only the modules that it is joined with
        have can be looked at, saved and exported; its own functions say what is missing."""
        try:
            return self._load()
        except _core.Error as error:
            if error.code == 501 and "undefined symbol" in str(error):
                return create_module("library", _Unlinked(error))
            if error.code != 503:
                raise
            self._needs_more = True
            return None

    def _loaded(self, kind: type) -> Any:
        if self._library is None:
            library = None if self.is_foreign else self._load_if_possible()
            self._library = kind((library or create_module("library", {}))._handle, self)
            for module in self._imports:
                Module.import_module(self._library, module)
        return self._library

    def _own_name(self, name: str) -> str:
        return "default" if name == self.libmod_name else name

    def __getitem__(self, name: str) -> Any:
        if name == "remove_params":  # weights are a section of the library
            return lambda: self
        return self.module[self._own_name(name)]

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        return self.module.get_function(self._own_name(name), query_imports)

    def __call__(self, *args: Any) -> Any:
        return self.module["default"](*args)

    def import_module(self, module: Module) -> None:
        """Adds a module to the library: it must be serialisable (docs/runtime.md). The objects of a static library are linked in."""
        if isinstance(module, StaticLibrary):
            self._static.append(module)
            return
        if isinstance(module, CSourceModule):
            self._whole().add_source(module.code, module.format)
            self._linked += module.func_names
            self._library = None
            return
        self._imports.append(module)
        if self._library is not None:
            Module.import_module(self._library, module)

    def get_lib(self) -> BuiltLibrary:
        return self.module

    @property
    def lib(self) -> BuiltLibrary:
        return self.module

    def get_devices(self) -> list[str]:
        """The names of the model's devices, the CPU first; in a C program only those with a context, which are none."""
        if self.runtime.name == "crt" and self.executor.name == "aot":
            return []
        return [DEVICES.get(number, str(number)) for number in self._whole().devices]

    def get_params(self) -> dict[str, NDArray]:
        """The compiled-in weights, in the layout that the kernels read."""
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
        """Memory for working buffers, inputs, outputs and weights, of the model and of each kernel; kernels' loops are in tir_primfuncs."""
        from ..tir.function import PrimFunc
        targets = {t.kind.device_type: t for t in self.target}
        out: dict[str, FunctionInfo] = {}
        whole = self._whole()
        kernels = {name: number for number, name in enumerate(whole.kernels)}
        for name, device, workspace, constants, io in whole.function_metadata:
            target = targets.get(device) or next((t for t in self.target if t.makes_code), self.target[0])
            info = out.setdefault(name, FunctionInfo({}, {}, {}, {}, {}))
            for sizes, size in ((info.workspace_sizes, workspace), (info.constant_sizes, constants), (info.io_sizes, io)):
                sizes[target] = sizes.get(target, 0) + size
            if name in kernels:
                info.tir_primfuncs[target] = PrimFunc._of(self._built.kernel(kernels[name]))
            if name == "__tvm_main__":
                info.relay_primfuncs[target] = self._built.optimized["main"]
        return out

    @property
    def executor_codegen_metadata(self) -> ExecutorCodegenMetadata:
        inputs, outputs, options = self._whole().inputs, self._whole().outputs, self.executor.flatten()
        return ExecutorCodegenMetadata([t[0] for t in inputs], [t[1:] for t in inputs], [t[0] for t in outputs], [t[1:] for t in outputs], self.get_devices(),
                                       self.executor.name, self.libmod_name, options.get("interface-api", "packed"), options.get("unpacked-api", False),
                                       options.get("workspace-byte-alignment", 64), options.get("constant-byte-alignment", 64), self._pool_inputs(), self._places())

    def _places(self) -> dict[str, Any]:
        """Where inputs and outputs lie that are in the program's pools."""
        from ..usmp import PoolAllocation
        if not self.memory_pools:
            return {}
        return {name: PoolAllocation(self.memory_pools[pool], at) for name, pool, at in self._whole().tensors_in_pools}

    def metadata(self) -> Any:
        """What an ahead-of-time compiled model takes and returns, and the program's pools (runtime/metadata.py)."""
        from ..runtime.metadata import metadata_of
        whole = self._whole()
        return metadata_of([1, self.libmod_name, *([(t[0], t[2], t[1]) for t in tensors] for tensors in (whole.inputs, whole.outputs))],
                           [pool for pool in whole.pools if pool[0] in self.memory_pools])

    def _pool_inputs(self) -> dict[str, Any]:
        """The size that the model takes of each memory pool of the program."""
        from ..usmp import AllocatedPoolInfo
        if not self.memory_pools:
            return {}
        return {name: AllocatedPoolInfo(self.memory_pools[name], size, i) for i, (name, size, _) in enumerate(self._whole().pools) if name in self.memory_pools}

    @property
    def optimized(self) -> Any:
        """The module after all passes."""
        return self._whole().optimized

    @property
    def pass_records(self) -> list[tuple[str, bool, bool, float, str]]:
        """(name, ran, changed, milliseconds, reason if skipped) of every pass of the build."""
        return self._whole().passes

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, addons: Any = None,
                       workspace_dir: str | None = None, **kwargs: Any) -> str:
        """Writes a library that every interface loads (`.so`; of the target stackvm `.stackvm`), objects for a linker (`.o`, `.a`), or an archive of
        objects (`.tar`): lib0.o, and devc.o with the imported modules. The linker is built in.

        fcompile(file_name, files, **kwargs) makes the file instead, from lib0.o, devc.o and `addons`; options without it (cc=, options=)
        are those of contrib.cc.create_shared. The file appears complete or not at all. Errors: 103, 403; those of fcompile."""
        path, fcompile = os.fspath(file_name), fcompile or None
        added = [os.fspath(f) for f in ([addons] if isinstance(addons, (str, os.PathLike)) else addons or [])]
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if fcompile is None and self._static and path.endswith(".o"):
            raise ValueError("one object cannot hold a static library; export .a, .so or .tar")
        if fcompile is None and path.endswith(".tar"):
            fcompile = tar.tar
        if fcompile is None and (kwargs or added or self._static):
            fcompile = cc.create_staticlib if path.endswith(".a") else cc.create_shared
        if getattr(fcompile, "need_system_lib", False) and self._built is not None and not self._built.system_lib:
            raise ValueError(f"{fcompile} needs a build for a system library: Runtime(\"cpp\", {{\"system-lib\": True}})")
        if fcompile is None:
            self.save(path)
            return path
        made = os.path.join(os.path.dirname(os.path.abspath(path)), f".{os.path.basename(path)}.{os.getpid()}")
        with tempfile.TemporaryDirectory(prefix="tilewright-", dir=workspace_dir) as folder:
            if self._file is None:
                given = self._built.export_objects(folder, self._tree())
            else:
                given = ["lib0.so"]
                with open(os.path.join(folder, given[0]), "wb") as file:
                    file.write(self._file)
            for number, static in enumerate(self._static):
                added.append(os.path.join(folder, f"static{number}.o"))
                static.save(added[-1])
            files = [*(os.path.join(folder, name) for name in given), *added]
            own = _object_machine(files[0])
            for file_of_another in files[1:]:
                other = _object_machine(file_of_another)
                if own and other and own != other:
                    raise ValueError(f"{os.path.basename(file_of_another)} is for {other}, and the library is for {own}: one file holds code for one processor")
            try:
                fcompile(made, files, **kwargs)
                os.replace(made, path)
            except RuntimeError as error:
                self._refuse_other_machine(fcompile, error)
                raise
            finally:
                if os.path.exists(made):
                    os.unlink(made)
        return path

    def _refuse_other_machine(self, fcompile: Callable[..., Any], error: Exception) -> None:
        """If fcompile's compiler is for another machine than the library, raises an error that says so instead of the compiler's own."""
        asked = getattr(fcompile, "get_target_triple", None)
        theirs, own = (asked() if asked else None), str(self.target[0].attrs.get("mtriple") or f"{platform.machine()}-linux-gnu")
        if theirs and _machine(theirs) != _machine(own):
            raise ValueError(f"the library is for {own}, and the compiler that links it works for {theirs}; give fcompile=cc.cross_compiler(...) one for {own}, or "
                             f"compile for \"llvm -mtriple={theirs}\"") from error

    def save(self, file_name: str | os.PathLike[str], fmt: str = "", form: str = "") -> None:
        """Writes one file, of the kind given by its suffix or fmt: o, a, so, ll, bc, s, c, stackvm; `form`: a name of docs/cpp.md. ValueError:
        unknown suffix."""
        path = os.fspath(file_name)
        ending = fmt or os.path.splitext(path)[1].lstrip(".")
        if not form and ending == "tar":
            self.export_library(path, tar.tar)
            return
        forms = {"o": "object", "obj": "object", "a": "archive", "so": "library", "ll": "ir", "bc": "bitcode", "s": "assembly", "asm": "assembly", "c": "source", "cc": "source", "stackvm": "stackvm"}
        form = form or forms.get(ending, "library" if not fmt else "")
        if not form:
            raise ValueError(f"a library cannot be saved as '{ending}'; there are tar, {', '.join(forms)}")
        if self._file is None:
            self._built.export_library(path, self._tree(), form)
            return
        if form not in ("library", "stackvm"):
            self._whole()
        made = f"{path}.{os.getpid()}"
        try:
            with open(made, "wb") as file:
                file.write(self._file)
            os.replace(made, path)
        finally:
            if os.path.exists(made):
                os.unlink(made)

    def _tree(self) -> bytes:
        return import_tree(self._imports, self._whole().external_modules, self._linked) if self._imports or self._linked else b""


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
        if isinstance(name, int):  # lib[0], lib[1], lib[2] of scripts written for the triple
            return (self.get_graph_json, lambda: self.module, self.get_params)[name]()
        return super().__getitem__(name)


class AotExecutorFactory(ExecutorFactoryModule):
    """The factory of an ahead-of-time executor: the library runs by one generated function, on the caller's thread."""

    def get_executor_config(self) -> None:
        return None

    def get_graph_json(self) -> str:
        raise ValueError("an ahead-of-time executor has no graph JSON; build with Executor(\"graph\")")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("an ahead-of-time build is no triple of graph, lib and params; call export_library")


# Classic names.
GraphExecutorFactoryModule, AOTExecutorFactoryModule = GraphExecutorFactory, AotExecutorFactory

__all__ = ["AOTExecutorFactoryModule", "AotExecutorFactory", "ExecutorCodegenMetadata", "ExecutorFactoryModule", "FunctionInfo", "GraphExecutorFactory", "GraphExecutorFactoryModule"]
