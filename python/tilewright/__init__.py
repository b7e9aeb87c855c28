# SPDX-License-Identifier: Apache-2.0
"""Tilewright compiles neural networks to native libraries and runs them.

    import tilewright as tw
    model = tw.compile("resnet18.onnx", shapes={"input": (1, 3, 224, 224)})
    scores = model(pixels)                       # numpy or anything with DLPack in, numpy out
    model.export_library("resnet18.so")
    scores = tw.load("resnet18.so")(pixels)

Scripts written for the classic stack keep their calls: `tw.relay`, `tw.transform.PassContext`, `tw.runtime.load_module`,
`tw.contrib.graph_executor.GraphModule`.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._core import Error, IRModule
from .registry import Function, convert, get_global_func, list_global_func_names, register_func, remove_global_func
from .runtime.ndarray import Device, NDArray, as_array, cpu, device

__version__ = "0.1.0"


class TensorInfo(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]


class Model:
    """A compiled model in memory: call it with its inputs, by position or name; outputs come as numpy arrays.

    Errors: tilewright.Error with `code` 504 (no such input), 505 (shape), 506 (dtype). Serves one thread at a time.
    """

    def __init__(self, path: str | os.PathLike[str], threads: int = 0, built: Any = None):
        self._session = _core.Session(os.fspath(path), threads)
        self._built = built
        self._path = os.fspath(path)

    @property
    def inputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self._session.inputs]

    @property
    def outputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self._session.outputs]

    @property
    def metadata(self) -> dict[str, str]:
        """The model file's own key/value pairs (labels, character lists)."""
        return self._session.metadata

    def profile(self, repeats: int = 20, form: str = "table") -> str:
        """Where the time goes, step by step: "table", "json", or "trace" for Perfetto and chrome://tracing. All inputs must be set."""
        return self._session.profile(repeats, form)

    @property
    def threads(self) -> int:
        return self._session.threads

    def input_index(self, name: str) -> int:
        for i, t in enumerate(self.inputs):
            if t.name == name:
                return i
        error = Error(f"error[E504 UnknownInput]: no input is named '{name}'; there are {', '.join(t.name for t in self.inputs)}")
        error.code, error.name, error.hint = 504, "UnknownInput", ""
        raise error

    def set_input(self, key: int | str, value: Any) -> None:
        index = key if isinstance(key, int) else self.input_index(key)
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
        results = tuple(self._session.output(i) for i in range(len(self.outputs)))
        return results[0] if len(results) == 1 else results

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Writes the library that `tilewright.load`, the shell, C and C++ can use."""
        if self._built is not None:
            self._built.export_library(os.fspath(path))
        else:
            import shutil
            shutil.copyfile(self._path, path)


def load(path: str | os.PathLike[str], threads: int = 0) -> Model:
    """Loads a library. threads 0: one per core. Errors: 102, 501 (damaged), 502 (version), 503 (CPU)."""
    return Model(path, threads)


def import_onnx(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> IRModule:
    """A path, serialised bytes or an onnx.ModelProto as a graph module."""
    return relay.frontend.from_onnx(model, shapes)[0]


def _load_built(built: Any, threads: int) -> Model:
    handle, path = tempfile.mkstemp(suffix=".so", prefix="tilewright-")
    os.close(handle)
    try:
        built.export_library(path)
        return Model(path, threads, built)  # the mapping outlives the name
    finally:
        os.unlink(path)


def compile(model: Any, shapes: Mapping[str, Sequence[int]] | None = None, target: str = "llvm", *, opt_level: int = 3,
            threads: int = 0, jobs: int = 0, math: str = "default") -> Model:
    """Compiles an ONNX model (path, bytes or ModelProto, or an IRModule) for `target` and loads it.

    shapes: sizes of inputs whose dimensions the model leaves free, by name. math: "strict" leaves out algorithms that
    reassociate products (Winograd convolutions); "default" bounds their error. Errors: tilewright.Error.
    """
    module = model if isinstance(model, IRModule) else import_onnx(model, shapes)
    target = str(target) if math == "default" else f"{target} -math={math}"
    return _load_built(_core.build(module, target, opt_level, [], [], {}, None, jobs, ""), threads)


_core._set_types(NDArray, Device)

from . import contrib, driver, ir, relay, runtime, target, transform  # noqa: E402
from .runtime import nd  # noqa: E402
from .target import Target  # noqa: E402


def _from_expr(expr: Any, functions: Any = None) -> IRModule:
    """The module of a function, or of an expression over its free variables."""
    return IRModule.from_function(expr) if isinstance(expr, _core.Expr) else relay.expr.to_module(expr, functions)


IRModule.from_expr = staticmethod(_from_expr)  # type: ignore[attr-defined]
IRModule.from_text = staticmethod(lambda source, source_path="": relay.fromtext(source))  # type: ignore[attr-defined]

TVMError = Error

__all__ = ["Device", "Error", "Function", "IRModule", "Model", "NDArray", "Target", "TensorInfo", "compile", "contrib", "convert", "cpu",
           "device", "driver", "get_global_func", "import_onnx", "ir", "list_global_func_names", "load", "nd", "register_func", "relay",
           "remove_global_func", "runtime", "target", "transform"]
