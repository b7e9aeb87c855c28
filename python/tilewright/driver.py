# SPDX-License-Identifier: Apache-2.0
"""The command line from Python: `driver.tvmc.compile(driver.tvmc.load("model.onnx"), target="llvm", package_path="model.tar")`."""
from __future__ import annotations

import types
from typing import Any

from . import relay, transform
from .contrib.graph_executor import GraphModule
from .runtime.module import load_module
from .runtime.ndarray import cpu


def _load(path: str, model_format: str | None = None, shape_dict: Any = None, **_: Any) -> Any:
    if model_format not in (None, "onnx"):
        raise NotImplementedError(f"model format '{model_format}' is not supported; export the model to ONNX")
    return relay.frontend.from_onnx(path, shape_dict)[0]


def _compile(tvmc_model: Any, target: Any = "llvm", package_path: str | None = None, opt_level: int = 3, **_: Any) -> Any:
    with transform.PassContext(opt_level=opt_level):
        library = relay.build(tvmc_model, target)
    if package_path:
        library.export_library(package_path)
    return library


def _run(package: Any, device: str = "cpu", inputs: Any = None, **_: Any) -> dict[str, Any]:
    library = load_module(package) if isinstance(package, str) else package
    executor = GraphModule(library["default"](cpu()))
    executor.run(**(inputs or {}))
    return {f"output_{i}": executor.get_output(i).numpy() for i in range(executor.get_num_outputs())}


tvmc = types.SimpleNamespace(load=_load, compile=_compile, run=_run)
__all__ = ["tvmc"]
