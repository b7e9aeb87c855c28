# SPDX-License-Identifier: Apache-2.0
"""The classic command-line driver from Python, and as a program: `python -m tilewright.classic.driver.tvmc compile ...`.

    model = tvmc.load("resnet.onnx")
    package = tvmc.compile(model, target="llvm", package_path="resnet.tar")
    print(tvmc.run(package, device="cpu", inputs={"data": image}))
"""
from __future__ import annotations

from typing import Any, NoReturn

from .common import TVMCException, TVMCImportError
from . import common, compiler, frontends, model, runner
from .compiler import compile_model as compile
from .frontends import load_model as load
from .model import TVMCModel, TVMCPackage, TVMCResult
from .runner import run_module as run


def tune(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError("there is nothing to tune: the cost model chooses kernels when the model is compiled; leave tvmc.tune out")


__all__ = ["TVMCException", "TVMCImportError", "TVMCModel", "TVMCPackage", "TVMCResult", "common", "compile", "compiler", "frontends", "load", "model", "run", "runner", "tune"]
