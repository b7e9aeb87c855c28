# SPDX-License-Identifier: Apache-2.0
"""Compile, load, call: what most users need."""
from __future__ import annotations

import contextlib
import operator
import os
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._core import Error, IRModule
from .arrays import as_array
from .options import build_options, cache_folder, load_plugin

MOST_VARIANTS = 64


class TensorInfo(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]


def error_of(code: int, name: str, message: str, hint: str = "") -> Error:
    """An error of docs/errors that is raised in Python."""
    error = Error(f"error[E{code} {name}]: {message}" + (f"\n  hint: {hint}" if hint else ""))
    error.code, error.name, error.hint = code, name, hint
    return error


class Model:
    """A compiled model in memory: call it with its inputs, by position or name; outputs come as numpy arrays.

    Errors: tilewright.Error with `code` 504 (no such input), 505 (shape), 506 (dtype). Serves one thread at a time.
    """

    def __init__(self, path: str | os.PathLike[str], threads: int = 0, built: Any = None, weights: str | os.PathLike[str] = ""):
        self._session = _core.Session(os.fspath(path), threads, os.fspath(weights))
        self._built = built
        self._path = os.fspath(path)

    @property
    def inputs(self) -> list[TensorInfo]:
        """The inputs; of a model with several variants, those of the first."""
        return [TensorInfo(*t) for t in self._session.inputs]

    @property
    def outputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self._session.outputs]

    @property
    def variants(self) -> list[tuple[list[TensorInfo], list[TensorInfo]]]:
        """(inputs, outputs) for each set of shapes the model was compiled for; the shape of what is set picks one."""
        return [([TensorInfo(*t) for t in inputs], [TensorInfo(*t) for t in outputs]) for inputs, outputs in self._session.variants]

    @property
    def metadata(self) -> dict[str, str]:
        """The model file's own key/value pairs (labels, character lists)."""
        return self._session.metadata

    @property
    def target(self) -> str:
        return self._session.target

    def profile(self, repeats: int = 20, form: str = "table") -> str:
        """The time of each step, as "table", "json", or "trace" for Perfetto and chrome://tracing. All inputs must be set."""
        return str(self._session.profile(repeats, form))

    @property
    def threads(self) -> int:
        return self._session.threads

    def input_index(self, name: str) -> int:
        for i, t in enumerate(self.inputs):
            if t.name == name:
                return i
        raise error_of(504, "UnknownInput", f"no input is named '{name}'; there are {', '.join(t.name for t in self.inputs)}")

    def set_input(self, key: int | str, value: Any) -> None:
        index = self.input_index(key) if isinstance(key, str) else key
        self._session.set_input(index, as_array(value))

    def run(self) -> None:
        self._session.run()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One output: its array. Several: a tuple of them."""
        for i, value in enumerate(args):
            self.set_input(i, value)
        for name, value in kwargs.items():
            self.set_input(name, value)
        self.run()
        results = tuple(self._outputs_of_run())
        return results[0] if len(results) == 1 else results

    def _outputs_of_run(self) -> list[Any]:
        return [self._session.output(i) for i in range(len(self.outputs))]

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Writes the library that `tilewright.load`, the shell, C and C++ can use; after tw.compile also .o, .a and .tar."""
        if self._built is not None:
            self._built.export_library(os.fspath(path))
        else:
            import shutil
            shutil.copyfile(self._path, path)


def _plain(value: Any) -> Any:
    """Converts a tensor to an array, a sequence to a list of arrays."""
    return [_plain(v) for v in value[1]] if isinstance(value, tuple) else np.asarray(value)


class ProgramModel(Model):
    """A model with free sizes or control flow. The first call with new sizes compiles kernels for them; later ones find those.

    `inputs` have -1 where a size is free; dtypes and shapes of `outputs` are those of the last run."""

    def __init__(self, program: Any, threads: int = 0):
        self._program = program
        self._machine = _core.VMMachine(program, threads)
        self._threads = threads
        self._values: dict[int, np.ndarray] = {}
        self._results: list[Any] = []

    @property
    def inputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self._program.inputs]

    @property
    def outputs(self) -> list[TensorInfo]:
        known = [("sequence", (len(r),)) if isinstance(r, list) else (str(r.dtype), r.shape) for r in self._results] or [("", ())] * len(self._program.outputs)
        return [TensorInfo(name, *k) for name, k in zip(self._program.outputs, known)]

    @property
    def variants(self) -> list[tuple[list[TensorInfo], list[TensorInfo]]]:
        return [(self.inputs, self.outputs)]

    @property
    def metadata(self) -> dict[str, str]:
        return {"kind": "vm"}

    @property
    def target(self) -> str:
        return self._program.target

    @property
    def threads(self) -> int:
        return self._threads

    def profile(self, repeats: int = 20, form: str = "table") -> str:
        """One run on the inputs that are set, each kernel, function and compilation timed; `form` "table" or "trace". Errors: 101."""
        if form not in ("table", "trace"):
            raise error_of(101, "InvalidArgument", f"a program's profile has no form '{form}'; take table or trace")
        _, _, table, trace = self._machine.profile("main", self._arguments())
        return trace if form == "trace" else table

    def set_input(self, key: int | str, value: Any) -> None:
        index = self.input_index(key) if isinstance(key, str) else key
        if not 0 <= index < len(self.inputs):
            raise error_of(504, "UnknownInput", f"there is no input {index}; there are {len(self.inputs)}")
        info, array = self.inputs[index], as_array(value)
        if str(array.dtype) != info.dtype:
            raise error_of(506, "DtypeMismatch", f"input '{info.name}' is {info.dtype}, the tensor {array.dtype}")
        if array.ndim != len(info.shape) or any(-1 != want != got for want, got in zip(info.shape, array.shape)):
            raise error_of(505, "ShapeMismatch", f"input '{info.name}' has the shape {info.shape} (-1 is any size), the tensor {array.shape}")
        self._values[index] = array

    def _arguments(self) -> list[Any]:
        missing = [t.name for i, t in enumerate(self.inputs) if i not in self._values]
        if missing:
            raise error_of(101, "InvalidArgument", f"input '{missing[0]}' has not been set")
        return [self._values[i] for i in range(len(self.inputs))]

    def run(self) -> None:
        result = self._machine.invoke("main", self._arguments())
        self._results = [_plain(r) for r in (result[1] if len(self._program.outputs) != 1 else [result])]

    def _outputs_of_run(self) -> list[Any]:
        return self._results

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Writes the program that `tilewright.load` and the shell can use, where the compiler is."""
        self._program.export_library(os.fspath(path), "")


def load(path: str | os.PathLike[str], threads: int = 0, weights: str | os.PathLike[str] = "") -> Model:
    """Loads a library. threads 0: one per core. weights: where its weights file is, when it was compiled with one that has moved.
    Errors: 102, 501 (damaged), 502 (version), 503 (CPU)."""
    try:
        return Model(path, threads, weights=weights)
    except Error as error:
        program = _core.vm_program_of(os.fspath(path)) if getattr(error, "code", 0) == 203 else None
        if program is None:
            raise
        return ProgramModel(program, threads)


def _sizes_of(dimension: Any) -> list[int]:
    """The requested sizes of a dimension: one, or several in order (of a set: ascending)."""
    if isinstance(dimension, (set, frozenset)):
        dimension = sorted(dimension)
    if isinstance(dimension, (list, tuple, range)):
        return [operator.index(d) for d in dimension]
    return [operator.index(dimension)]


def _shapes_of(name: str, given: Any) -> list[list[int]]:
    if isinstance(given, str):
        options = _core.BuildOptions()
        options.add_shapes([f"{name}={given}"])
        return [shapes[name] for shapes in [options.shapes, *options.more_shapes]]
    if isinstance(given, list) and given and all(isinstance(shape, (tuple, list)) for shape in given):
        return [shape for each in given for shape in _shapes_of(name, tuple(each))]
    try:
        dims = [_sizes_of(d) for d in given]
    except TypeError:
        raise TypeError(f"the shape of input '{name}' is {given!r}; write (1, 3, 224, 224), or (1, 3, 48, [320, 640]) for several") from None
    counts = {len(d) for d in dims if len(d) != 1}
    if len(counts) > 1 or 0 in counts:
        raise error_of(101, "InvalidArgument", f"the shape of input '{name}' is {given!r}, whose lists have different lengths")
    if any(d < 0 for sizes in dims for d in sizes):
        raise error_of(101, "InvalidArgument", f"the shape of input '{name}' is {given!r}, which has a negative size")
    return [[d[0] if len(d) == 1 else d[v] for d in dims] for v in range(max(counts, default=1))]


def variants_of(shapes: Mapping[str, Any] | None) -> list[dict[str, list[int]]]:
    """The shapes of every variant, as `tilewright compile --shape` makes them: all inputs that have several shapes have equally
    many, and the n-th variant takes the n-th of each. Errors: TypeError, 101."""
    lists = {str(name): _shapes_of(str(name), given) for name, given in (shapes or {}).items()}
    counts = {len(several) for several in lists.values() if len(several) > 1}
    if len(counts) > 1:
        raise error_of(101, "InvalidArgument", "inputs have different numbers of shapes: " + ", ".join(f"{n} {len(s)}" for n, s in lists.items()))
    count = max(counts, default=1)
    if count > MOST_VARIANTS:
        raise error_of(101, "InvalidArgument", f"{count} shapes are more than the {MOST_VARIANTS} that one library can have")
    return [{name: several[0] if len(several) == 1 else several[v] for name, several in lists.items()} for v in range(count)]


def range_text(name: str, given: Any) -> str:
    """ "1..8" for (1, 8), range(1, 9), a number, or the text itself. Error: TypeError."""
    if isinstance(given, str):
        return given
    if isinstance(given, range) and given and given.step == 1:
        return f"{given[0]}..{given[-1]}"
    try:
        low, high = (given, given) if isinstance(given, int) else given
        return f"{operator.index(low)}..{operator.index(high)}"
    except (TypeError, ValueError):
        raise TypeError(f"the bounds of '{name}' are {given!r}; write (1, 8)") from None


def set_constants(options: Any, constants: Mapping[str, Any] | None) -> None:
    """Sets constant inputs: arrays unchanged, numbers and lists in the input's dtype, text in the form of --constant."""
    texts: dict[str, str] = {}
    for name, value in (constants or {}).items():
        if isinstance(value, str):
            texts[name] = value
        elif hasattr(value, "__dlpack__") or isinstance(value, np.ndarray):
            options.set_constant(name, as_array(value))
        else:
            numbers = np.asarray(value)
            if numbers.dtype.kind not in "biuf":
                raise TypeError(f"the constant for input '{name}' is {value!r}; give an array or numbers")
            texts[name] = ",".join(repr(v.item() if v.dtype.kind != "b" else int(v)) for v in numbers.reshape(-1))
    options.constants = texts


def load_built(built: Any, threads: int) -> Model:
    handle, path = tempfile.mkstemp(suffix=".so", prefix="tilewright-")
    os.close(handle)
    try:
        built.export_library(path)
        return Model(path, threads, built)  # the mapping stays valid when the file is removed
    finally:
        os.unlink(path)


class Library:
    """A build as a library file that exists as long as this object, to be loaded by several sessions."""

    def __init__(self, built: Any):
        handle, self._path = tempfile.mkstemp(suffix=".so", prefix="tilewright-")
        os.close(handle)
        weakref.finalize(self, os.unlink, self._path)
        built.export_library(self._path)

    def session(self, threads: int) -> Any:
        return _core.Session(self._path, threads)


def compile(model: Any, shapes: Any = None, target: Any = "llvm", *, constants: Mapping[str, Any] | None = None,
            opt_level: int = 3, required_passes: Sequence[str] = (), disabled_passes: Sequence[str] = (),
            config: Mapping[str, Any] | None = None, threads: int = 0, jobs: int = 0, math: str = "default",
            kernel_cache: bool | str | os.PathLike[str] = True, dump_ir: str | os.PathLike[str] = "",
            plugins: Sequence[str | os.PathLike[str]] = (), params: str | os.PathLike[str] = "",
            weights: str | os.PathLike[str] = "", bounds: Mapping[str, Any] | None = None) -> Model:
    """Compiles an ONNX model (path, bytes or ModelProto), a .pt2 file, a PyTorch model (an ExportedProgram; an nn.Module or what torch.jit
    made, with its example inputs: compile(model, (image,))), a Relay module's file (text or JSON) or an IRModule for `target` and loads it.
    A model with sizes that `shapes` leaves free, or with control flow, becomes a ProgramModel.

    shapes: sizes of inputs that the model leaves free, by name: (1, 3, 224, 224); several shapes in one library are a list of
    shapes, or a shape with lists in it: (1, 3, 48, [320, 640]), or the command line's "1x3x48x{320,640}".
    bounds: the smallest and largest size of dimensions that an ONNX model leaves free, by their names or as "input.0": {"batch": (1, 8)};
    the model runs at every size between, and its library needs no compiler.
    constants: inputs that become part of the model, by name: arrays, numbers, or "@tensor.pb".
    Example inputs are what torch.export follows; an ExportedProgram has shapes of its own, and `shapes` gives sizes that it leaves free.
    opt_level, required_passes, disabled_passes, config: as in a PassContext. jobs: code generation threads, 0: one per core.
    threads: those that the loaded model runs with, 0: one per core. math: "strict" leaves out algorithms that reassociate products
    (Winograd convolutions); "default" bounds their error; "bf16" rounds what is multiplied by constant weights to bfloat16 where the
    processor multiplies pairs of it. kernel_cache: False compiles every kernel anew, a path keeps them there.
    dump_ir: a folder for the module after each pass. plugins: shared libraries with code generators and modules of your own
    (docs/external-codegen.md). params: the weights of a Relay module's file, a .params file. weights: a file for the weights, which
    models that name it share, in this process and others; not for a ProgramModel. Errors: tilewright.Error.
    """
    options = build_options(target, opt_level, required_passes, disabled_passes, config)
    if math != "default":
        options.target += f" -math={math}"
    options.jobs, options.kernel_cache, options.dump_ir, options.keep_modules = jobs, cache_folder(kernel_cache), os.fspath(dump_ir), False
    options.weights_file = os.fspath(weights)
    for plugin in plugins:
        options.load_plugin(os.fspath(plugin))
        load_plugin(plugin)
    program, shapes = _torch_program(model, shapes)
    if program is not None and (constants or params):
        raise TypeError("constants and params are for models in files; a PyTorch model has its own")
    variants = variants_of(shapes)
    options.set_bounds([f"{name}={range_text(name, given)}" for name, given in (bounds or {}).items()])
    module = _as_module(model)
    if module is not None:
        if shapes or constants or params or bounds:
            raise TypeError("shapes, bounds, constants and params are for models in files; an IRModule has its shapes, and bind_params makes constants")
        return load_built(_core.build(module, options), threads)
    if program is not None:
        if bounds:
            raise TypeError("bounds are for ONNX models; give a PyTorch model its sizes")
        return _of_torch(program, variants, options, config, threads)
    options.shapes, options.more_shapes, options.params = variants[0], variants[1:], os.fspath(params)
    set_constants(options, constants)
    path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
    data = b"" if path else onnx_bytes(model)
    try:
        return load_built(_core.build_onnx_file(path, options) if path else _core.build_onnx_bytes(data, options), threads)
    except Error:
        if constants or bounds or len(variants) > 1:
            raise
        with contextlib.ExitStack() as stack:
            if not path:
                file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="tilewright-", suffix=".onnx"))
                file.write(data)
                file.flush()
                path = file.name
            program = _core.onnx_program_file(path, options)
        if program is None or weights:
            raise
        return ProgramModel(program, threads)


def _torch_program(model: Any, shapes: Any) -> tuple[Any, Any]:
    """(The importer's form of a model of PyTorch, shapes by name); (None, shapes) for another. Example inputs take the place of shapes."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None, shapes
    examples = None if shapes is None or isinstance(shapes, Mapping) else shapes
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        from .torch_script import traced_program
        return traced_program(model, examples), None
    if isinstance(model, torch.nn.Module) or hasattr(torch, "export") and isinstance(model, torch.export.ExportedProgram):
        from .torch_fx import exported, program_of
        return program_of(exported(model, examples)), None if examples is not None else shapes
    return None, shapes


def _of_torch(program: Any, variants: Sequence[Mapping[str, Any]], options: Any, config: Any, threads: int) -> Model:
    if len(variants) > 1:
        raise error_of(101, "InvalidArgument", "several shapes in one library are for models in files", "torch.export.save the model, or give one shape for each input")
    module, _ = program.imported(variants[0])
    try:
        return load_built(_core.build(module, options), threads)
    except Error as error:
        try:
            made = _core.vm_compile(module, options.target, options.opt_level, dict(config or {}))
        except Error:
            raise error from None
        if options.weights_file:
            raise error from None
        return ProgramModel(made, threads)


def _as_module(model: Any) -> Any:
    if isinstance(model, IRModule):
        return model
    return IRModule({"main": model}) if isinstance(model, _core.Expr) else None


def onnx_bytes(model: Any) -> bytes:
    """The serialised form of a ModelProto; bytes as they are."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString()
    raise TypeError(f"a model is a path, bytes, an onnx.ModelProto or an IRModule, not a {type(model).__name__}")


__all__ = ["Model", "ProgramModel", "TensorInfo", "compile", "load"]
