# SPDX-License-Identifier: Apache-2.0
"""The classic command-line driver as functions, and as a program: `python -m tilewright.classic.driver.tvmc compile ...`.

    model = tvmc.load("resnet.onnx")
    package = tvmc.compile(model, target="llvm", package_path="resnet.tar")
    print(tvmc.run(package, device="cpu", inputs={"data": image}))
"""
from __future__ import annotations

from .common import TVMCException, TVMCImportError
from . import autotuner, common, compiler, frontends, model, runner
from .autotuner import tune_model as tune
from .compiler import compile_model as compile
from .frontends import load_model as load
from .model import TVMCModel, TVMCPackage, TVMCResult
from .runner import run_module as run

__all__ = ["TVMCException", "TVMCImportError", "TVMCModel", "TVMCPackage", "TVMCResult", "autotuner", "common", "compile", "compiler", "frontends", "load", "model", "run", "runner", "tune"]
