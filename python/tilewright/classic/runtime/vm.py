# SPDX-License-Identifier: Apache-2.0
"""VM programs at run time: models with dynamic sizes, recursion, branches and data types."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import _core
from .container import ADT
from .module import BenchmarkResult, Module
from .ndarray import Device, NDArray, as_array, cpu
from .profiling import Report
from .remote_vm import RemoteProgram


class Library:
    """A program as a library: `lib.export_library("mod.so")`, read back by `runtime.load_module`."""

    type_key = "vm"

    def __init__(self, program: Any):
        self._program = program

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Any = None, addons: Any = None, workspace_dir: str | None = None, **kwargs: Any) -> str:
        """Writes the program with its bytecode; `tilewright run` accepts it too. Errors: 103, 403."""
        if fcompile is not None or addons or kwargs:
            raise NotImplementedError("a VM program is written without a compiler of the caller's: export_library(file_name)")
        self._program.export_library(os.fspath(file_name), "default")
        return os.fspath(file_name)


def _program_of(library: Any) -> Any:
    """The program of a Library, of a library read by load_module, or of a file."""
    if isinstance(library, Library):
        return library._program
    if getattr(library, "type_key", "") == "rpc":
        return RemoteProgram(library)
    if (known := getattr(library, "_vm_program", None)) is not None:
        return known
    path = getattr(library, "_path", None) or (library if isinstance(library, (str, os.PathLike)) else None)
    program = _core.vm_program_of(os.fspath(path)) if path else None
    if program is None:
        raise TypeError(f"a {type(library).__name__} without a VM program; relay.vm.compile makes one")
    if hasattr(library, "_path"):
        library._vm_program = program  # what is bound to its constants holds for all machines of the library
    return program


def function_of_constants(library: Any, name: str) -> Any:
    """A function about late-bound constants of a library with a VM program; None for other libraries and names."""
    if name not in ("load_late_bound_consts", "load_late_bound_consts_from_map", "get_late_bound_consts", "move_late_bound_consts") or getattr(library, "_path", None) is None:
        return None
    try:
        return getattr(Executable(library), name)
    except TypeError:
        return None


class Executable:
    """A compiled program: bytecode, constants, and the regions that are compiled to kernels once their sizes are known."""

    def __init__(self, mod: Any):
        self._program = mod if isinstance(mod, (_core.VMProgram, RemoteProgram)) else _program_of(mod)

    @property
    def lib(self) -> Library:
        return Library(self._program)

    module = mod = property(lambda self: self)

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Any = None, **kwargs: Any) -> str:
        """`exe.mod.export_library("program.so")`; `VirtualMachine(load_module("program.so"), device)` runs it. Errors: 103, 403."""
        return self.lib.export_library(file_name, fcompile, **kwargs)

    def save(self) -> tuple[bytearray, Library]:
        """(code, lib): the bytes of the classic `.ro` file, and the library to export."""
        return bytearray(self._program.code), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Any) -> "Executable":
        """The inverse of save. Errors: 501 (damaged, or parts of different programs), 502 (another version)."""
        if not isinstance(bytecode, (bytes, bytearray)):
            raise TypeError(f"bytecode is expected to be the type of bytearray or TVMByteArray, but received {type(bytecode)}")
        return Executable(_program_of(lib).with_code(bytes(bytecode)))

    def move_late_bound_consts(self, path: str | os.PathLike[str], byte_limit: int) -> None:
        """Moves constants of at least `byte_limit` bytes from the bytecode to a .params file; they must be bound before a run."""
        data = self._program.late_bound_constants(int(byte_limit))
        with open(path, "wb") as file:
            file.write(data)

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        from .module import load_param_dict
        return load_param_dict(self._program.late_bound_constants(int(byte_limit)))

    def load_late_bound_consts(self, path: str | os.PathLike[str]) -> None:
        with open(path, "rb") as file:
            self._program.bind_constants(file.read())

    def load_late_bound_consts_from_map(self, params: Mapping[str, Any]) -> None:
        from .module import save_param_dict
        self._program.bind_constants(bytes(save_param_dict(params)))

    @property
    def bytecode(self) -> str:
        return self._program.bytecode

    @property
    def constants(self) -> str:
        return self._program.constants_text

    @property
    def primitives(self) -> str:
        return self._program.primitives_text

    virtual_devices = property(lambda self: "VirtualDevices (device_type, device_id, memory_scope): device[0]=(1, 0, )\n")

    @property
    def primitive_ops(self) -> list[str]:
        return list(self._program.primitives)

    @property
    def globals(self) -> list[str]:
        return [name for name, *_ in self._program.functions]

    @property
    def stats(self) -> str:
        """Counts of functions, constants, primitives and instructions."""
        functions = self._program.functions
        constants = [c for c in self._program.constants if c is not None]
        globals_ = [f'("{name}", {number})' for number, (name, *_) in enumerate(functions)]
        return ("Relay VM executable statistics:\n"
                f"  Constant shapes (# {len(self._program.constants)}): [{', '.join('scalar' if c.ndim == 0 else str(list(c.shape)) for c in constants)}]\n"
                f"  Globals (#{len(functions)}): [{', '.join(globals_)}]\n"
                f"  Primitive ops (#{len(self.primitive_ops)}): [{', '.join(self.primitive_ops)}]\n"
                f"  Instructions (#{sum(n for *_, n in functions)})\n")

    def get_function_params(self, func_name: str) -> list[str]:
        """The parameter names of a function. ValueError: no such function."""
        for name, params, *_ in self._program.functions:
            if name == func_name:
                return list(params)
        raise ValueError(f"the program has no function '{func_name}'; there are {', '.join(self.globals)}")

    def get_function_arity(self, func_name: str) -> int:
        """The number of parameters of a function. ValueError: no such function."""
        return len(self.get_function_params(func_name))


class VirtualMachine:
    """Runs an executable: `vm.run(x)`, `vm.invoke("main", x, y=...)`. Regions are compiled for each combination of sizes and cached."""

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(self, exe: Any, device: Any = None, memory_cfg: Any = None, threads: int = 0):
        if isinstance(exe, (str, bytes, int, float)):
            raise TypeError(f"exe is expected to be the type of Executable, but received {type(exe)}")
        self._exec = exe if isinstance(exe, Executable) else Executable(exe)
        for one in device if isinstance(device, list) else [device or cpu()]:
            if not isinstance(one, Device):
                raise TypeError("dev is expected to be Device or List[Device]")
        if memory_cfg is not None and not (memory_cfg in ("naive", "pooled") or isinstance(memory_cfg, dict)):
            raise TypeError(f'memory_cfg is expected be string or dictionary, but received {type(memory_cfg)}: "naive" or "pooled"')
        program = self._exec._program
        self._machine = program if isinstance(program, RemoteProgram) else _core.VMMachine(program, threads)
        self._threads = threads
        self._inputs: dict[str, list[Any]] = {}
        self._outputs: dict[str, list[NDArray]] = {}
        self._result: Any = None

    @property
    def module(self) -> "VirtualMachine":
        return self

    def __getitem__(self, name: str) -> Any:
        """The classic functions by name: "invoke", "set_input", "get_output" ..."""
        made = {"invoke": self._invoke_set, "get_output": lambda i: self.get_outputs()[i], "get_num_outputs": lambda: len(self.get_outputs()),
                "set_input": self.set_input, "set_one_input": self.set_one_input, "invoke_stateful": self.invoke_stateful,
                "get_input_index": lambda n, f="main": self.get_input_index(n, f)}.get(name)
        if made is None:
            raise AttributeError(f"Module has no function '{name}'")
        return made

    def _arguments(self, func_name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        names = self._exec.get_function_params(func_name)
        given = dict(zip(names, args))
        if len(args) > len(names):
            raise ValueError(f"{func_name} takes {len(names)} arguments, {len(args)} were given")
        for name, value in kwargs.items():
            if name not in names:
                raise ValueError(f"{func_name} has no parameter '{name}'; it has {', '.join(names)}")
            given[name] = value
        missing = [n for n in names if n not in given]
        if missing:
            raise ValueError(f"{func_name} lacks the argument{'s' if len(missing) > 1 else ''} {', '.join(missing)}")
        dtypes = {name: (dtype, shape) for name, dtype, shape in self._exec._program.inputs} if func_name == "main" else {}
        return [_to_core(given[n], *dtypes.get(n, (None, None)), name=n) for n in names]

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets the arguments of a function's next invocation. ValueError for a wrong number, unknown names, shapes or dtypes."""
        self._inputs[func_name] = self._arguments(func_name, args, kwargs)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """`set_one_input("main", 0, x)`, `set_one_input("main", x=...)`"""
        names = self._exec.get_function_params(func_name)
        if kwargs:
            (tag, value), = kwargs.items()
        else:
            tag, value = args
        index = names.index(tag) if isinstance(tag, str) else int(tag)
        held = self._inputs.setdefault(func_name, [None] * len(names))
        held[index] = _to_core(value, name=names[index])

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """The result: an NDArray, or an ADT of them. Without arguments it uses those of set_input."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        return self._invoke_set(func_name)

    def _invoke_set(self, func_name: str) -> Any:
        names = self._exec.get_function_params(func_name)
        values = self._inputs.get(func_name, [])
        if len(values) != len(names) or any(v is None for v in values):
            raise ValueError(f"the arguments of {func_name} are not set: {', '.join(names)}")
        self._result = _to_python(self._machine.invoke(func_name, list(values)))
        for held, made in zip(self._outputs.pop(func_name, []), self.get_outputs()):
            held.copyfrom(made)
        return self._result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """As invoke; `get_outputs` returns the result."""
        self.invoke(func_name, *args, **kwargs)

    def set_outputs(self, func_name: str, *args: Any) -> None:
        """Tensors to which the function's next invocation also writes its results."""
        if not all(isinstance(a, NDArray) for a in args):
            raise TypeError("set_outputs takes NDArrays")
        self._outputs[func_name] = list(args)

    def invoke_with_outputs(self, func_name: str, input_args: Mapping[str, Any], output_args: list[NDArray]) -> None:
        self.set_outputs(func_name, *output_args)
        self.invoke(func_name, **input_args)

    def get_outputs(self) -> list[Any]:
        """The tensors of the last result."""
        if self._result is None:
            raise ValueError("nothing has been invoked yet")
        return list(self._result.fields) if isinstance(self._result, ADT) else [self._result]

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The index of a parameter, or -1."""
        names = self._exec.get_function_params(func_name)
        return names.index(input_name) if input_name in names else -1

    def profile(self, *args: Any, func_name: str = "main", collectors: Any = None, **kwargs: Any) -> Report:
        """Runs once and times each kernel, runtime function and compilation. Without arguments it uses those of set_input."""
        if collectors:
            raise NotImplementedError("metric collectors need hardware counters: 'perf stat' on 'tilewright run' reads them")
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        self._result, steps, table, trace = self._machine.profile(func_name, list(self._inputs.get(func_name, [])))
        self._result = _to_python(self._result)
        return Report.of_steps(steps, self._threads, self._exec._program.target, table, trace)

    def benchmark(self, device: Any, *args: Any, func_name: str = "main", repeat: int = 5, number: int = 5, min_repeat_ms: int | None = None,
                  limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1,
                  **kwargs: Any) -> BenchmarkResult:
        """Seconds of one invocation. The first calls, which interpret or compile, are not counted."""
        import time
        self.invoke(func_name, *args, **kwargs)
        for _ in range(2):
            self.invoke(func_name)
        values, seconds = list(self._inputs[func_name]), []
        for i in range(repeat):
            count, total, runs = number, 0.0, 0
            while True:
                start = time.perf_counter()
                for _ in range(count):
                    self._machine.invoke(func_name, values)
                total, runs = total + time.perf_counter() - start, runs + count
                if not min_repeat_ms or total * 1e3 >= min_repeat_ms:
                    break
            seconds.append(total / runs)
            if cooldown_interval_ms and (i + 1) % repeats_to_cooldown == 0:
                time.sleep(cooldown_interval_ms / 1e3)
        return BenchmarkResult.of(seconds)


def _to_core(value: Any, dtype: str | None = None, shape: tuple[int, ...] | None = None, name: str = "") -> Any:
    if isinstance(value, ADT):
        return value.tag, [_to_core(f) for f in value.fields]
    if isinstance(value, (list, tuple)) and any(isinstance(f, (ADT, NDArray, np.ndarray, tuple)) for f in value):
        return 0, [_to_core(f) for f in value]
    if isinstance(value, _core.VMObject):
        return value
    array = as_array(value)
    if dtype is not None and not isinstance(value, (np.ndarray, NDArray)) and not hasattr(value, "__dlpack__"):
        array = array.astype(dtype)
    if dtype is not None and str(array.dtype) != dtype:
        raise ValueError(f"argument '{name}' is {dtype}, {array.dtype} was given")
    if shape is not None and (len(shape) != array.ndim or any(want not in (-1, have) for want, have in zip(shape, array.shape))):
        raise ValueError(f"argument '{name}' has the shape {tuple('?' if d < 0 else d for d in shape)}, {array.shape} was given")
    return array


def _to_python(value: Any) -> Any:
    if isinstance(value, tuple):
        return ADT(value[0], [_to_python(f) for f in value[1]])
    return NDArray(value) if isinstance(value, np.ndarray) else value


__all__ = ["Executable", "Library", "Module", "VirtualMachine"]
