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

from tilewright import classic
from tilewright.classic import classic_names

# Missing names and their replacements, by longest matching prefix. Modules can be imported, as scripts do by habit;
# using their content is an error.
_REPLACEMENTS = {
    "auto_scheduler": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "autotvm": "docs/tuning.md lists what there is of autotvm",
    "meta_schedule": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "te": "te.compute and schedules (docs/te.md); 'dir(tvm.te)' has what is there",
    "tir": "te.compute and schedules (docs/te.md); 'tilewright compile --dump-ir' shows the loops of a model",
    "topi": "te.compute (docs/te.md), or a model in Relay or ONNX",
    "rpc.proxy": "a server that clients reach, for instance through 'ssh -L'",
    "rpc.minrpc": "the program tilewright-rpc serves sessions without the compiler",
    "rpc.with_minrpc": "rpc.PopenSession() starts the program tilewright-rpc",
    "micro": "devices have projects, sessions and micro.create_local_aot_executor (docs/micro.md)",
    "contrib.ndk": "contrib.cc.cross_compiler with the NDK's compiler",
    **dict.fromkeys(("contrib.emcc", "contrib.xcode", "contrib.clang", "contrib.hexagon"), "contrib.cc.cross_compiler with that compiler"),
    **dict.fromkeys(("contrib.cblas", "contrib.mkl", "contrib.dnnl", "contrib.nnpack", "contrib.sort", "contrib.thrust", "contrib.tflite_runtime",
                     "contrib.miopen", "contrib.rocblas", "contrib.cublas", "contrib.cudnn", "contrib.mps"), "kernels are built in; write a model in Relay or ONNX"),
    **dict.fromkeys(("contrib.nvcc", "contrib.rocm", "contrib.sdaccel", "contrib.spirv"), "models run on the CPU: cpu()"),
    "contrib.relay_viz": "'tilewright run model.so --profile --html page.html' draws a library's graph; relay.analysis.post_order_visit walks a module",
    "register_object": "runtime.create_module makes objects with functions",
    "contrib.cuda_graph": "contrib.graph_executor",
    "contrib.pipeline_executor": "contrib.graph_executor, one for each thread",
    "contrib.torch": "torch.from_dlpack and nd.from_dlpack exchange tensors without a copy",
    "contrib.target": "an ONNX model is the exchange format",
    "script": "loop IR is inspected with 'tilewright compile --dump-ir'",
    "relax": "write a model in Relay or ONNX",
    "dlight": "the cost model chooses kernels without tuning; 'tilewright compile --explain' shows what it weighed",
    "exec.autotvm_log_editor": "records are lines of JSON",
    "exec.rpc_proxy": "a server that clients reach, for instance through 'ssh -L'",
}


def _missing(name: str) -> str:
    for known in sorted(_REPLACEMENTS, key=len, reverse=True):
        if name == known or name.startswith(known + "."):
            return f"tvm.{name} does not exist in Tilewright; instead: {_REPLACEMENTS[known]}"
    return f"tvm.{name} does not exist in Tilewright; docs/migrating.md lists what does"


def _explained(error: Exception, name: str) -> str:
    """The error message of our module for a missing name, if it names a replacement."""
    text = str(error)
    ours = any(word in text for word in ("no operator", "no pass", "not supported", "has no '", "instead:"))
    return f"tvm.{name} does not exist in Tilewright: {text}" if ours else _missing(name)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class _Alias(types.ModuleType):
    """An alias of one of our modules; missing names raise an error that says what to use."""

    def __init__(self, name: str, target: Any):
        super().__init__(name, target.__doc__)
        self.__dict__["_target"] = target
        self.__path__: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        path = f"{self.__name__}.{attribute}".split(".", 1)[1]
        if self.__name__ == "tvm" and attribute in _TOP:
            return _TOP[attribute]
        if attribute == "__all__":
            target = self.__dict__["_target"]
            return list(getattr(target, "__all__", [n for n in dir(target) if not n.startswith("_")]))
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        try:
            value = getattr(self.__dict__["_target"], attribute)
        except AttributeError as error:
            if path in _NAMES or path in _FUNCTIONS or _is_module(f"tilewright.classic.{path}"):
                return importlib.import_module(f"{self.__name__}.{attribute}")
            absent = _absent(path, error)
            if absent is not None:
                return absent
            raise AttributeError(_explained(error, path)) from None
        if not isinstance(value, types.ModuleType) or not value.__name__.startswith("tilewright.classic"):
            return value
        try:
            return importlib.import_module(f"{self.__name__}.{attribute}")
        except ModuleNotFoundError:  # of an alias of a module above it: tvm.testing.utils.plugin
            return _Alias(f"{self.__name__}.{attribute}", value)

    def __setattr__(self, name: str, value: Any) -> None:
        # An imported module does not hide what its package has by the same name: the function relay.quantize.quantize.
        own = getattr(self.__dict__["_target"], name, None) if "_target" in self.__dict__ and isinstance(value, types.ModuleType) else None
        if own is None or isinstance(own, types.ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_target"])


class _Absent(types.ModuleType):
    """A placeholder for what the classic stack has and Tilewright has not: it can be imported, but using it is an error."""

    def __init__(self, name: str, message: str | None = None):
        super().__init__(name, message or _missing(name.partition(".")[2]))
        self.__path__: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "__all__":
            return list(classic_names.modules().get(self.__name__, ()))
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return _Absent(f"{self.__name__}.{attribute}", None if attribute[:1].isupper() or "instead: " not in str(self.__doc__) else self.__doc__)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(self.__doc__)

    __call__ = __getitem__ = __iter__ = __enter__ = __exit__ = __mro_entries__ = __add__ = __sub__ = __mul__ = __lt__ = __len__ = _refuse

    def __instancecheck__(self, _: Any) -> bool:
        return False  # no object is an instance of a placeholder

    __subclasscheck__ = __instancecheck__

    def __or__(self, _: Any) -> Any:  # annotations: `te.Tensor | None`
        return Any

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not in Tilewright>"


def _absent(name: str, error: Exception | None = None) -> "_Absent | None":
    """The placeholder for a classic name, or for anything inside a module that has a replacement."""
    if any(name == known or name.startswith(known + ".") for known in _REPLACEMENTS):
        return _Absent(f"tvm.{name}")
    return _Absent(f"tvm.{name}", _explained(error, name) if error is not None else None) if classic_names.known(f"tvm.{name}") else None


# Classic modules whose content are the functions of the registry that have a prefix.
_FUNCTIONS = {"relay._ffi_api": "relay", "relay._make": "relay._make", "relay._build_module": "relay.build_module", "relay.transform._ffi_api": "relay._transform",
              "relay.op._make": "relay.op._make", "relay.op.nn._make": "relay.op.nn._make", "relay.op.image._make": "relay.op.image._make", "relay.op.vision._make": "relay.op.vision._make",
              "relay.op.dyn._make": "relay.op.dyn._make", "relay.qnn.op._make": "relay.qnn.op._make", "relay.dataflow_pattern.ffi": "relay.dataflow_pattern", "relay.backend._vm": "relay._vm",
              "target._ffi_api": "target", "testing._ffi_api": "testing", "driver._ffi": "driver", "ir._ffi_transform_api": "transform", "runtime._ffi_node_api": "node"}


class _Functions(types.ModuleType):
    """A classic module of functions by name: `tvm.testing._ffi_api.echo` is the function "testing.echo"."""

    def __init__(self, name: str, prefix: str):
        super().__init__(name, f"The functions called {prefix}.*")
        self.__dict__["_prefix"] = prefix
        self.__path__: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        found = classic.get_global_func(f"{self.__dict__['_prefix']}.{attribute}", allow_missing=True)
        if found is None:  # what Python's side of it does
            found = getattr(importlib.import_module(self.__name__.rpartition(".")[0]), attribute, None)
        return _Absent(f"{self.__name__}.{attribute}") if found is None else found


# Classic modules whose content is in another module here.
_NAMES = {"contrib.graph_runtime": "contrib.graph_executor", "contrib.util": "contrib.utils", "ndarray": "runtime.ndarray",
          "relay.backend.executor_factory": "relay.executor_factory",
          "relay.backend.te_compiler": "relay.te_compiler",
          "relay.backend.graph_executor_factory": "relay.executor_factory", "runtime.executor.aot_executor": "runtime.executor",
          "relay.backend.vm": "relay.vm", "runtime.packed_func": "registry", "runtime.device": "runtime.ndarray", "runtime.params": "runtime.module",
          "runtime.object": "runtime.container", "runtime.object_generic": "runtime.container", "runtime._ffi_api": "runtime",
          "tir.usmp": "usmp", "tir.usmp.utils": "usmp.utils", "tir.usmp.analysis": "usmp.analysis", "tir.usmp.transform": "usmp.transform",
          "relay.backend.aot": "relay.executor_factory", "relay.backend.executor": "relay.backend", "relay.backend.runtime": "relay.backend", "target.target": "target",
          "target.tag": "target", "_ffi": "registry", "_ffi.base": "ffi_base", "_ffi.registry": "registry", "_ffi.function": "registry", "_ffi.libinfo": "support",
          "_ffi.runtime_ctypes": "runtime", "runtime.graph_executor": "contrib.graph_executor", "contrib.debugger.debug_runtime": "contrib.debugger.debug_executor",
          "ir.transform": "transform", "ir.base": "ir", "ir._ffi_api": "ir", "ir.expr": "ir", "ir.function": "ir", "ir.container": "runtime.container",
          "testing.utils": "testing", "relay.testing.config": "relay.testing",
          "relay.base": "relay", "relay.parser": "parser", "relay.transform.transform": "relay.transform", "relay.transform.recast": "relay.transform",
          "relay.transform.memory_plan": "relay.transform", "relay.transform.fake_quantization_to_integer": "relay.fake_quantization",
          "relay.transform.infer_layout_utils": "relay.infer_layout_utils", "relay.transform.mixed_precision": "relay.mixed_precision", "relay.debug": "relay.op",
          "relay.analysis.analysis": "relay.analysis", "relay.analysis.count_layers": "relay.analysis", "relay.analysis.feature": "relay.analysis", "relay.feature": "relay.analysis",
          "relay.op.op": "relay.op", "relay.op.nn.nn": "relay.op.nn", "relay.op.image.image": "relay.op.image", "relay.op.annotation.annotation": "relay.op.annotation",
          "relay.op.memory.memory": "relay.op.memory", "relay.op.vm.vm": "relay.op.vm", "relay.op.nn.utils": "topi.nn_utils", "topi.nn.utils": "topi.nn_utils", "topi.nn.qnn": "topi.nn_qnn", "topi.math": "topi.elemwise", "topi.tensor": "topi.elemwise", "topi.sort": "topi.ordering", "topi.scan": "topi.ordering", "topi.scatter": "topi.indexing", "topi.utils": "topi.utils",
          "relay.op.contrib.contrib": "relay.op.contrib", "relay.op.vision.nms": "relay.op.vision", "relay.op.vision.multibox": "relay.op.vision",
          "relay.op.vision.rcnn": "relay.op.vision", "relay.op.vision.yolo": "relay.op.vision", "relay.op.op_attrs": "relay.op_attrs", "relay.random": "relay.op.random",
          "relay.qnn.op.qnn": "relay.qnn.op", "relay.qnn.op.op": "relay.qnn.op", "relay.qnn.op.legalizations": "relay.qnn.legalizations",
          "relay.qnn.op.canonicalizations": "relay.qnn.canonicalizations", "relay.quantize.quantize": "relay.quantize", "relay.quantize._annotate": "relay.quantize",
          "relay.quantize._calibrate": "relay.quantize", "tir.generic": "tir", "tir.data_layout": "tir"}
# Top-level names that only scripts use.
_TOP = {"context": classic.device, "cl": classic.opencl, "mtl": classic.metal, "__version__": f"0.18.0+tilewright.{classic.__version__}"}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname == "tvm" or fullname.startswith("tvm."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        name = spec.name.partition(".")[2]
        if name in _FUNCTIONS:
            return _Functions(spec.name, _FUNCTIONS[name])
        ours = "tilewright.classic" + ("." + _NAMES.get(name, name) if name else "")
        try:
            return _Alias(spec.name, importlib.import_module(ours))
        except ModuleNotFoundError:
            parent, _, last = ours.rpartition(".")
            try:  # a namespace that is not a module: relay.nn, relay.op.nn
                return _Alias(spec.name, getattr(importlib.import_module(parent), last))
            except (ModuleNotFoundError, AttributeError) as error:
                absent = _absent(name, error)
                if absent is None:  # without the module's name, or `from tvm.x import y` would hide the sentence
                    raise ModuleNotFoundError(_explained(error, name)) from None
                return absent

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> bool:
    """Installs the alias; False if a real TVM is installed."""
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return True
    if "tvm" in sys.modules or importlib.util.find_spec("tvm") is not None:
        return False
    sys.meta_path.append(_Finder())
    if "_pytest.config" in sys.modules:
        _join_pytest()
    return True


def _register(manager: Any) -> None:
    from tilewright.classic.testing import plugin
    if not manager.is_registered(plugin):
        manager.register(plugin, plugin.__name__)


def pytest_configure(config: Any) -> None:
    """`pytest -p tilewright.as_tvm`: tests that import tvm, with the fixtures of tvm.testing."""
    _register(config.pluginmanager)


def _join_pytest() -> None:
    """A conftest or a test that imports this module gets the fixtures, too: the plugins' manager is whoever imports it, and pytest has no other
    way to ask for it."""
    from _pytest.config import PytestPluginManager  # type: ignore[import-not-found]
    frame: Any = sys._getframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        manager = caller if isinstance(caller, PytestPluginManager) else getattr(getattr(caller, "config", None), "pluginmanager", None)
        if isinstance(manager, PytestPluginManager):
            return _register(manager)
        frame = frame.f_back


def main() -> None:
    usage = "usage: python -m tilewright.as_tvm (SCRIPT | -m MODULE | -c CODE | --check SCRIPT...) [ARGUMENT...]"
    if len(sys.argv) < 2 or (sys.argv[1] in ("-m", "-c", "--check") and len(sys.argv) < 3):
        sys.exit(usage)
    importlib.import_module("tilewright.as_tvm").install()
    if sys.argv[1] == "--check":
        from tilewright.classic import check_script
        sys.exit(check_script.main(sys.argv[2:]))
    # A script may run pytest on itself: that has the fixtures of tvm.testing.
    plugins = [p for p in os.environ.get("PYTEST_PLUGINS", "").split(",") if p]
    os.environ["PYTEST_PLUGINS"] = ",".join(dict.fromkeys([*plugins, "tilewright.classic.testing.plugin"]))
    kind = sys.argv[1] if sys.argv[1] in ("-m", "-c") else ""
    sys.argv = sys.argv[2 if kind else 1:]
    if kind == "-m":
        own = sys.argv[0].partition(".")[2] if sys.argv[0].startswith("tvm.") else ""
        runpy.run_module(f"tilewright.classic.{own}" if own else sys.argv[0], run_name="__main__", alter_sys=True)
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
