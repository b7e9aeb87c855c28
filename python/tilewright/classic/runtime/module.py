# SPDX-License-Identifier: Apache-2.0
"""Modules: collections of functions, and the modules that they import."""
from __future__ import annotations

import ctypes
import os
import shutil
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ... import _core
from ...options import load_plugin
from ..registry import Function, get_global_func, register_func
from .ndarray import SESSION_STEP, Device, NDArray, array, as_array


class BenchmarkResult:
    """Seconds of one call. `results` has one entry per repeat."""

    def __init__(self, results: Any):
        self.results = list(results)
        self.mean, self.median, self.std = (float(f(self.results)) for f in (np.mean, np.median, np.std))
        self.min, self.max = float(np.min(self.results)), float(np.max(self.results))

    @classmethod
    def of(cls, seconds: list[float]) -> "BenchmarkResult":
        return cls(seconds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BenchmarkResult) and self.results == other.results

    def __hash__(self) -> int:
        return hash(tuple(self.results))

    def __repr__(self) -> str:
        return f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, max={self.max}, std={self.std}, results={self.results})"

    def __str__(self) -> str:
        names = ("mean (ms)", "median (ms)", "max (ms)", "min (ms)", "std (ms)")
        values = (self.mean, self.median, self.max, self.min, self.std)
        return "Execution time summary:\n" + "".join(f"{n:^14}" for n in names) + "\n" + "".join(f"{1e3 * v:^14.4f}" for v in values)


class Module:
    """A runtime module: `module["name"](...)` calls one of its functions."""

    entry_name = "__tvm_main__"

    def __init__(self, handle: Any, path: str | None = None):
        self._handle = handle
        self._path = path  # the file that it was loaded from

    @property
    def __tw_handle__(self) -> Any:
        return self._handle

    @property
    def type_key(self) -> str:
        return self._handle.type_key

    format = ""  # of the output of `save`: "o" if it is an object file
    is_dso_exportable = False  # whether an exported library contains it as code
    is_binary_serializable = True  # whether it contains it as bytes

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function. AttributeError if there is none."""
        found = self._handle.get_function(name, query_imports)
        if found is None:
            from .vm import function_of_constants
            if (own := function_of_constants(self, name)) is not None:
                return own
            raise AttributeError(f"Module has no function '{name}'")
        if name == "get_metadata" and self.type_key == "library":
            from .metadata import metadata_of
            return lambda: metadata_of(found())
        return _Wrapped(found)

    def export_library(self, file_name: Any, fcompile: Any = None, **_: Any) -> str:
        """Writes a loaded library once more, as it is. AttributeError: the module was not loaded from a file of this kind."""
        name = os.fspath(file_name)
        if self._path is None or os.path.splitext(name)[1] != os.path.splitext(self._path)[1]:
            raise AttributeError(f"a module of kind {self.type_key} is not written as {name}")
        shutil.copyfile(self._path, name)
        return name

    def _session_function(self, name: str) -> Any:
        """For a module of a remote process: one of its global functions."""
        return self._handle.get_function(f"__session__:{name}", False)

    def _session_device(self) -> Device:
        return Device(1 + self._handle.get_function("__session_step__", False)())

    def _taken(self, value: Any) -> Any:
        """Moves a tensor to the module's process if it is remote."""
        if self.type_key != "rpc" or isinstance(value, NDArray) and value.device.device_type >= SESSION_STEP:
            return value
        return array(value, self._session_device())

    def _fill(self, function: str, index: Any, out: NDArray) -> NDArray:
        """Copies to `out`, local or remote, what the function returns for an index."""
        if self.type_key == "rpc" and out.device.device_type < SESSION_STEP:
            return self[function](index).copyto(out)
        self[function](index, out)
        return out

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        return self._handle.get_function(name, query_imports) is not None

    def __getitem__(self, name: str) -> Any:
        return self.get_function(name)

    @property
    def entry_func(self) -> Any:
        return self.get_function(self.entry_name if self.implements_function(self.entry_name) else "default")

    def __call__(self, *args: Any) -> Any:
        return self.entry_func(*args)

    def import_module(self, module: "Module") -> None:
        self._handle.import_module(module._handle)

    @property
    def imported_modules(self) -> list["Module"]:
        return [Module(m) for m in self._handle.imports]

    def get_source(self, fmt: str = "") -> str:
        """The module's source text; empty if it has none."""
        found = self._handle.get_function("get_source", False)
        return "" if found is None else found(fmt)

    def save_to_bytes(self) -> bytes:
        return self._handle.save()

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Writes the module's bytes. Error 101: this kind cannot be saved."""
        data = self.save_to_bytes()
        with open(file_name, "wb") as file:
            file.write(data)

    def time_evaluator(self, func_name: str, dev: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0,
                       limit_zero_time_iterations: int = 100, cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1,
                       f_preproc: str = "") -> Callable[..., BenchmarkResult]:
        """A function that calls `func_name` repeatedly inside the runtime and returns the time of one call. f_preproc: a global function
        that is called with the same arguments before each repeat and not timed."""
        if self.type_key == "rpc":  # timed remotely
            where = dev or (1, 0)
            there = self._session_function("runtime.RPCTimeEvaluator")(self._handle, func_name, where[0] % SESSION_STEP, where[1], number, repeat, min_repeat_ms, cooldown_interval_ms,
                                                                      repeats_to_cooldown, f_preproc)
            return lambda *args: BenchmarkResult.of([s for s, in struct.iter_unpack("<d", there(*args))])
        function, evaluator = self.get_function(func_name)._function, get_global_func("runtime.TimeEvaluator")
        if not f_preproc:
            timed = evaluator(function, number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown)
            return lambda *args: BenchmarkResult.of(timed(*args))
        before = get_global_func(f_preproc)
        once = evaluator(function, number, 1, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown)

        def prepared(*args: Any) -> BenchmarkResult:
            seconds: list[float] = []
            for _ in range(repeat):
                before(*args)
                seconds += once(*args)
            return BenchmarkResult.of(seconds)
        return prepared

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Module) and self._handle == other._handle

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        return f"Module({self.type_key})"


class _Wrapped:
    """A function whose module results are wrapped as Module."""

    def __init__(self, function: Any):
        self._function = function

    def __call__(self, *args: Any) -> Any:
        result = self._function(*[a._function if isinstance(a, _Wrapped) else a for a in args])
        return Module(result) if isinstance(result, _core.ModuleHandle) else result


class _Kind:
    """Callbacks of create_module for the runtime: functions by name, and the serialised bytes."""

    def __init__(self, functions: Any, save: Callable[[], bytes] | bytes | None):
        self._functions = functions
        if save is not None:
            self.save = save if callable(save) else (lambda: save)

    def get_function(self, name: str) -> Any:
        return self._functions(name) if callable(self._functions) else self._functions.get(name)


def create_module(type_key: str, functions: Mapping[str, Callable[..., Any]] | Callable[[str], Any],
                  save: Callable[[], bytes] | bytes | None = None) -> Module:
    """Creates a module of a custom kind. `functions`: callables by name, or a function that returns them. `save`: returns bytes from
    which the global function runtime.module.loadbinary_<type_key> restores the module; without it the module cannot be exported."""
    return Module(_core.create_module(type_key, _Kind(functions, save)))


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """Loads a library (.so), links and loads objects (.o, .a), LLVM IR (.ll, .bc) and archives of them (.tar), or calls
    runtime.module.loadfile_<format>.

    Errors: 102, 501 (damaged), 502 (version), 503 (CPU), 507 (no such loader)."""
    path = os.fspath(path)
    try:
        return Module(_core.load_module_file(path, fmt), os.path.abspath(path))
    except _core.Error as error:
        wanted = [name for key, name in KERNEL_LIBRARIES.items() if error.code == 507 and f"loadbinary_{key}'" in str(error)]
        if not wanted:
            raise
    load_plugin(kernel_library(wanted[0]))
    return Module(_core.load_module_file(path, fmt), os.path.abspath(path))


# Module kinds run by external kernel libraries: libtilewright_<name>.so beside the runtime is loaded if it exists.
KERNEL_LIBRARIES = {"cblas_json": "cblas", "dnnl_json": "dnnl"}


def kernel_library(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(_core.__file__)), f"libtilewright_{name}.so")


class StaticLibrary(Module):
    """An object file that is linked into the libraries of modules that import it."""

    format, is_dso_exportable, is_binary_serializable = "o", True, False

    def __init__(self, path: str, func_names: Iterable[str]):
        with open(path, "rb") as file:
            self._data = file.read()
        if not self._data.startswith(b"\x7fELF"):
            raise ValueError(f"{path} is no ELF object")
        names = list(func_names)
        super().__init__(create_module("static_library", {"get_func_names": lambda: names}, self._data)._handle, os.path.abspath(path))


def load_static_library(path: str | os.PathLike[str], func_names: Iterable[str] = ()) -> StaticLibrary:
    """Wraps an object file as a module: export_library links it in. func_names: its functions, for `get_func_names`. ValueError: another
    kind of file."""
    return StaticLibrary(os.fspath(path), func_names)


def system_lib(symbol_prefix: str = "") -> Module:
    """What is linked into the process: models built with Runtime("cpp", {"system-lib": True}), as imported modules and by name, and
    functions registered by C code. symbol_prefix is prepended to looked-up names."""
    module = get_global_func("runtime.SystemLib")()
    return Module(module) if not symbol_prefix else create_module("system_lib", lambda name: module.get_function(symbol_prefix + name, False))


def _share_runtime() -> None:
    """Libraries that the process loads later find the runtime's C functions: a system library registers itself by one. The runtime is
    the one that the extension module needed, wherever it was found ($LD_LIBRARY_PATH goes first)."""
    ctypes.CDLL("libtilewright_runtime.so.0", mode=ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)


_share_runtime()


def _text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


class CSourceModule(Module):
    """C source that is compiled into the library that imports it, which then has its functions. It cannot run by itself."""

    format, is_dso_exportable, is_binary_serializable = "c", True, False

    def __init__(self, code: str, fmt: str, func_names: Iterable[str] | None, const_vars: Iterable[str] | None):
        self.code, self.format = code, {"": "c", "cu": "c"}.get(fmt, fmt)
        self.func_names, self.const_vars = [str(n) for n in func_names or ()], [str(n) for n in const_vars or ()]
        if self.format not in ("c", "cc", "cpp", "cxx"):
            raise ValueError(f"source in the form '{fmt}' cannot be compiled into a library; the forms are c, cc and cpp")
        functions = {"get_source": lambda fmt="": self.code, "get_symbol": lambda: self.func_names[0], "get_func_names": lambda: list(self.func_names),
                     "get_const_vars": lambda: list(self.const_vars)}
        super().__init__(create_module("c", functions, self._record)._handle)

    @classmethod
    def from_bytes(cls, data: bytes) -> "CSourceModule":
        at = 0

        def number() -> int:
            nonlocal at
            at += 8
            return struct.unpack_from("<Q", data, at - 8)[0]

        def text() -> str:
            nonlocal at
            length = number()
            at += length
            return data[at - length:at].decode()

        code, fmt = text(), text()
        return cls(code, fmt, [text() for _ in range(number())], [text() for _ in range(number())])

    def _record(self) -> bytes:
        return b"".join(_text(t.encode()) for t in (self.code, self.format)) + b"".join(
            struct.pack("<Q", len(names)) + b"".join(_text(n.encode()) for n in names) for names in (self.func_names, self.const_vars))

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Writes the source."""
        with open(file_name, "w", encoding="utf-8") as file:
            file.write(self.code)


def CSourceModuleCreate(code: str, fmt: str = "c", func_names: Iterable[str] | None = (), const_vars: Iterable[str] | None = ()) -> CSourceModule:
    """A module of C source whose functions use the classic packed calling convention (docs/external-codegen.md)."""
    return CSourceModule(code, fmt, func_names, const_vars)


def import_tree(modules: Iterable[Module], saved: Iterable[tuple[str, bytes, int]] = (), linked: Iterable[str] = ()) -> bytes:
    """The import records (docs/runtime.md) of a library that imports `modules`, after already serialised modules: (type key, bytes,
    index of the importer, 0 for the library). `linked`: functions of C source that is compiled into the library."""
    records = list(saved)
    if names := list(linked):
        records.append(("linked_functions", struct.pack("<Q", len(names)) + b"".join(_text(n.encode()) for n in names), 0))
    order: list[tuple[str, bytes]] = [(key, data) for key, data, _ in records]
    children: list[list[int]] = [[] for _ in range(len(order) + 1)]
    for number, (_, _, importer) in enumerate(records, 1):
        children[importer].append(number)

    def visit(module: Module, parent: int) -> None:
        number = len(order) + 1
        order.append((module.type_key, module.save_to_bytes()))
        children.append([])
        children[parent].append(number)
        for child in module.imported_modules:
            visit(child, number)

    for module in modules:
        visit(module, 0)

    rows, flat = [0], []
    for row in children:
        flat += row
        rows.append(len(flat))
    out = struct.pack("<Q", len(order) + 2) + _text(b"_lib")
    for key, data in order:
        out += _text(key.encode()) + _text(data)
    return out + _text(b"_import_tree") + b"".join(struct.pack(f"<Q{len(v)}Q", len(v), *v) for v in (rows, flat))


def _pack_imports_to_llvm(module: Any, system_lib: bool = False, target: str = "llvm", symbol_prefix: str = "") -> Any:
    """The modules that a module imports, as the object file devc.o: a module whose bytes, or get_object(), are that file's."""
    from ..target import Target
    imports = [m for m in (module if isinstance(module, Module) else Module(module)).imported_modules if not isinstance(m, CSourceModule)]
    if not imports:
        raise ValueError("the module imports nothing")
    data = _core.compile_imports(import_tree(imports), Target(target).build_text())
    return create_module("llvm", {"get_object": lambda: data}, data).__tw_handle__


register_func("runtime.CSourceModuleCreate", CSourceModuleCreate, override=True)
register_func("runtime.ModulePackImportsToLLVM", _pack_imports_to_llvm, override=True)
register_func("runtime.module.link_ir", lambda path, output: _core.compile_ir(path, output), override=True)


def enabled(target: str) -> bool:
    """Whether there is a code generator for the target, or the device exists."""
    from ..target import Target
    if target == "cpu":
        return True
    try:
        return bool(Target(target).build_text())
    except _core.Error:
        return False


def num_threads() -> int:
    """The number of threads that an executor uses by default."""
    return get_global_func("runtime.NumThreads")()


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """Serialises tensors by name as a .params file (the classic layout)."""
    if not isinstance(params, Mapping):
        raise TypeError(f"params are tensors by name, not a {type(params).__name__}")
    flat: list[Any] = []
    for name, value in params.items():
        flat += [name, as_array(value)]
    return bytearray(get_global_func("runtime.SaveParams")(*flat))


def load_param_dict(param_bytes: bytes) -> dict[str, NDArray]:
    """Reads the bytes of a .params file. Error 501: damaged."""
    return {name: value for name, value in get_global_func("runtime.LoadParams")(bytes(param_bytes))}


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    with open(path, "wb") as file:
        file.write(save_param_dict(params))


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """Reads a .params file. Error 501: damaged."""
    with open(path, "rb") as file:
        return load_param_dict(file.read())


__all__ = ["BenchmarkResult", "CSourceModule", "CSourceModuleCreate", "Function", "Module", "create_module", "enabled", "load_module", "load_static_library", "load_param_dict", "load_param_dict_from_file", "load_plugin", "num_threads", "save_param_dict", "save_param_dict_to_file", "system_lib"]
