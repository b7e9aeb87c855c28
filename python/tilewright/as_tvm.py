# SPDX-License-Identifier: Apache-2.0
"""Makes `import tvm` mean Tilewright: `import tilewright.as_tvm` as a script's first line, or `python -m tilewright.as_tvm script.py`.

Nothing happens when a real TVM is installed. A part of the classic API that does not exist here raises an error that names what
to use instead."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
import types
from typing import Any

import tilewright

# What is not here, and what to use; by the longest name that fits.
_REPLACEMENTS = {
    "auto_scheduler": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "autotvm": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "meta_schedule": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "te": "kernels are chosen from built-in implementations; write a model in Relay or ONNX",
    "tir": "loop IR is inspected with 'tilewright compile --dump-ir'; tir.IntImm, Any and Var are there",
    "topi": "kernels are chosen from built-in implementations",
    "rpc": "copy the library to the device and run it there with 'tilewright run'",
    "micro": "every library has the C function tw_run, which needs no runtime (docs/cpp.md)",
    "relay.quantize": "quantise the model before export to ONNX",
    "cuda": "models run on the CPU: cpu()",
    "gpu": "models run on the CPU: cpu()",
    "opencl": "models run on the CPU: cpu()",
    "metal": "models run on the CPU: cpu()",
    "vulkan": "models run on the CPU: cpu()",
    "contrib.graph_runtime": "contrib.graph_executor",
}


def _missing(name: str) -> str:
    for known in sorted(_REPLACEMENTS, key=len, reverse=True):
        if name == known or name.startswith(known + "."):
            return f"tvm.{name} does not exist in Tilewright; instead: {_REPLACEMENTS[known]}"
    return f"tvm.{name} does not exist in Tilewright; docs/migrating.md lists what does"


class _Alias(types.ModuleType):
    """Another name of one of our modules; what is missing there raises a helpful error."""

    def __init__(self, name: str, target: Any):
        super().__init__(name, target.__doc__)
        self.__dict__["_target"] = target
        self.__path__: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        path = f"{self.__name__}.{attribute}".split(".", 1)[1]
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        try:
            value = getattr(self.__dict__["_target"], attribute)
        except AttributeError as error:
            text = str(error)
            raise AttributeError(text if ("no operator" in text or "no pass" in text or "not supported" in text) else _missing(path)) from None
        return importlib.import_module(f"{self.__name__}.{attribute}") if isinstance(value, types.ModuleType) and value.__name__.startswith("tilewright") else value

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_target"])


_NAMES = {"runtime.graph_executor": "contrib.graph_executor", "contrib.debugger.debug_runtime": "contrib.debugger.debug_executor",
          "ir.transform": "transform", "error": "_errors", "parser": "_parser"}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname == "tvm" or fullname.startswith("tvm."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        name = spec.name.partition(".")[2]
        if name in ("error", "parser"):
            return _Alias(spec.name, types.SimpleNamespace(__doc__=None, TVMError=tilewright.Error, OpError=tilewright.Error,
                                                           DiagnosticError=tilewright.Error, fromtext=tilewright.relay.fromtext,
                                                           parse=tilewright.relay.fromtext))
        ours = "tilewright" + ("." + _NAMES.get(name, name) if name else "")
        try:
            return _Alias(spec.name, importlib.import_module(ours))
        except ModuleNotFoundError:
            parent, _, last = ours.rpartition(".")
            try:  # a namespace that is no module of its own: relay.nn, relay.op.nn
                return _Alias(spec.name, getattr(importlib.import_module(parent), last))
            except (ModuleNotFoundError, AttributeError):
                raise ModuleNotFoundError(_missing(name), name=spec.name) from None

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> bool:
    """Makes the alias; False when a real TVM is there."""
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return True
    if "tvm" in sys.modules or importlib.util.find_spec("tvm") is not None:
        return False
    sys.meta_path.append(_Finder())
    return True


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tilewright.as_tvm SCRIPT [ARGUMENT...]")
    sys.argv = sys.argv[1:]
    importlib.import_module("tilewright.as_tvm").install()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
else:
    install()
