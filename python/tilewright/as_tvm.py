# SPDX-License-Identifier: Apache-2.0
"""Makes `import tvm` mean Tilewright: `import tilewright.as_tvm` as a script's first line, or `python -m tilewright.as_tvm script.py`.

Nothing happens when a real TVM is installed. A part of the classic API that does not exist here raises an error that names what
to use instead."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types
from typing import Any

import tilewright

# What is not here, and what to use; by the longest name that fits. Modules may be imported, as scripts do by habit; using what they
# should have is an error.
_REPLACEMENTS = {
    "auto_scheduler": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "autotvm": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "meta_schedule": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "build": "relay.build",
    "lower": "relay.build; 'tilewright compile --dump-ir' shows loops",
    "te": "kernels are chosen from built-in implementations; write a model in Relay or ONNX",
    "tir": "loop IR is inspected with 'tilewright compile --dump-ir'; tir.IntImm, Any and Var are there",
    "topi": "kernels are chosen from built-in implementations; topi.testing is there",
    "rpc": "copy the library to the device and run it there with 'tilewright run'",
    "micro": "every library has the C function tw_run, which needs no runtime (docs/cpp.md)",
    "contrib.ndk": "contrib.cc.cross_compiler with the NDK's compiler",
    **dict.fromkeys(("contrib.emcc", "contrib.xcode", "contrib.clang", "contrib.hexagon"), "contrib.cc.cross_compiler with that compiler"),
    **dict.fromkeys(("contrib.cblas", "contrib.mkl", "contrib.dnnl", "contrib.nnpack", "contrib.random", "contrib.sort", "contrib.thrust", "contrib.tflite_runtime",
                     "contrib.miopen", "contrib.rocblas", "contrib.cublas", "contrib.cudnn", "contrib.mps"), "kernels are built in; write a model in Relay or ONNX"),
    **dict.fromkeys(("contrib.nvcc", "contrib.rocm", "contrib.sdaccel", "contrib.spirv"), "models run on the CPU: cpu()"),
    "driver.tvmc.autotuner": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "contrib.relay_viz": "'tilewright run model.so --profile --html page.html' draws a library's graph; relay.analysis.post_order_visit walks a module",
    "register_object": "runtime.create_module makes objects with functions",
    "contrib.cuda_graph": "contrib.graph_executor",
    "contrib.pipeline_executor": "contrib.graph_executor, one for each thread",
    "contrib.torch": "torch.from_dlpack and nd.from_dlpack exchange tensors without a copy",
    "contrib.target": "an ONNX model is the exchange format",
    "contrib.popen_pool": "concurrent.futures.ProcessPoolExecutor",
    "script": "loop IR is inspected with 'tilewright compile --dump-ir'",
    "relax": "write a model in Relay or ONNX",
    "dlight": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "exec": "copy the library to the device and run it there with 'tilewright run'",
}


def _missing(name: str) -> str:
    for known in sorted(_REPLACEMENTS, key=len, reverse=True):
        if name == known or name.startswith(known + "."):
            return f"tvm.{name} does not exist in Tilewright; instead: {_REPLACEMENTS[known]}"
    return f"tvm.{name} does not exist in Tilewright; docs/migrating.md lists what does"


def _explained(error: Exception, name: str) -> str:
    """What our module said about a name that it lacks, where it said what to use."""
    text = str(error)
    ours = any(word in text for word in ("no operator", "no pass", "not supported", "has no '", "instead:"))
    return f"tvm.{name} does not exist in Tilewright: {text}" if ours else _missing(name)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class _Alias(types.ModuleType):
    """Another name of one of our modules; what is missing there raises a helpful error."""

    def __init__(self, name: str, target: Any):
        super().__init__(name, target.__doc__)
        self.__dict__["_target"] = target
        self.__path__: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        path = f"{self.__name__}.{attribute}".split(".", 1)[1]
        if self.__name__ == "tvm" and attribute in _TOP:
            return _TOP[attribute]
        if attribute == "__all__":
            return list(getattr(self.__dict__["_target"], "__all__", dir(self.__dict__["_target"])))
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        try:
            value = getattr(self.__dict__["_target"], attribute)
        except AttributeError as error:
            if path in _NAMES or _is_module(f"tilewright.{path}"):
                return importlib.import_module(f"{self.__name__}.{attribute}")
            absent = _absent(path)
            if absent is not None:
                return absent
            raise AttributeError(_explained(error, path)) from None
        return importlib.import_module(f"{self.__name__}.{attribute}") if isinstance(value, types.ModuleType) and value.__name__.startswith("tilewright") else value

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_target"])


class _Absent(types.ModuleType):
    """What the classic stack has and Tilewright has not. It can be named and imported; whoever uses it is told what to use instead."""

    def __init__(self, name: str):
        super().__init__(name, _missing(name.partition(".")[2]))
        self.__path__: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return _Absent(f"{self.__name__}.{attribute}")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(_missing(self.__name__.partition(".")[2]))

    __call__ = __getitem__ = __iter__ = __enter__ = __exit__ = __mro_entries__ = __add__ = __lt__ = _refuse

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not in Tilewright>"


def _absent(name: str) -> "_Absent | None":
    """For a module that has a replacement, or is below one."""
    return _Absent(f"tvm.{name}") if any(name == known or name.startswith(known + ".") for known in _REPLACEMENTS) else None


_NAMES = {"contrib.graph_runtime": "contrib.graph_executor", "contrib.util": "contrib.utils", "ndarray": "runtime.ndarray",
          "driver.build_module": "relay.build_module", "relay.backend.executor_factory": "relay.executor_factory",
          "relay.backend.te_compiler": "relay.te_compiler",
          "relay.backend.graph_executor_factory": "relay.executor_factory", "runtime.executor.aot_executor": "runtime.executor",
          "relay.backend.vm": "relay.vm", "relay.backend.interpreter": "relay.executors", "runtime.packed_func": "registry", "runtime.device": "runtime.ndarray",
          "relay.backend.aot": "relay.executor_factory", "relay.backend.executor": "relay.backend", "relay.backend.runtime": "relay.backend", "target.target": "target", "target.tag": "target",
          "_ffi": "registry", "_ffi.base": "error", "_ffi.registry": "registry", "runtime.graph_executor": "contrib.graph_executor", "contrib.debugger.debug_runtime": "contrib.debugger.debug_executor",
          "ir.transform": "transform"}
# Names of the top that only scripts have.
_TOP = {"context": tilewright.device, "__version__": f"0.18.0+tilewright.{tilewright.__version__}"}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname == "tvm" or fullname.startswith("tvm."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        name = spec.name.partition(".")[2]
        ours = "tilewright" + ("." + _NAMES.get(name, name) if name else "")
        try:
            return _Alias(spec.name, importlib.import_module(ours))
        except ModuleNotFoundError:
            parent, _, last = ours.rpartition(".")
            try:  # a namespace that is no module of its own: relay.nn, relay.op.nn
                return _Alias(spec.name, getattr(importlib.import_module(parent), last))
            except (ModuleNotFoundError, AttributeError) as error:
                absent = _absent(name)
                if absent is None:  # without the module's name, or `from tvm.x import y` would hide the sentence
                    raise ModuleNotFoundError(_explained(error, name)) from None
                return absent

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
    usage = "usage: python -m tilewright.as_tvm (SCRIPT | -m MODULE | -c CODE) [ARGUMENT...]"
    if len(sys.argv) < 2 or (sys.argv[1] in ("-m", "-c") and len(sys.argv) < 3):
        sys.exit(usage)
    importlib.import_module("tilewright.as_tvm").install()
    kind = sys.argv[1] if sys.argv[1] in ("-m", "-c") else ""
    sys.argv = sys.argv[2 if kind else 1:]
    if kind == "-m":
        own = sys.argv[0].partition(".")[2] if sys.argv[0].startswith("tvm.") else ""
        runpy.run_module(f"tilewright.{own}" if own else sys.argv[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        code, sys.argv[0] = sys.argv[0], "-c"
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
else:
    install()
