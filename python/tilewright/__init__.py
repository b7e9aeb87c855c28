# SPDX-License-Identifier: Apache-2.0
"""Tilewright compiles neural networks to native libraries and runs them.

    import tilewright as tw
    model = tw.compile("resnet18.onnx", shapes={"input": (1, 3, 224, 224)})
    scores = model(pixels)                       # numpy or anything with DLPack in, numpy out
    model.export_library("resnet18.so")
    scores = tw.load("resnet18.so")(pixels)

`tilewright.classic` is the interface of the classic stack: relay, transform.PassContext, runtime.load_module, te ...
"""
from __future__ import annotations

import importlib.util

__version__ = "0.1.0"

from ._core import Error, IRModule  # noqa: E402
from .model import Model, ProgramModel, TensorInfo, compile, load  # noqa: E402
from .options import load_plugin  # noqa: E402

__all__ = ["Error", "IRModule", "Model", "ProgramModel", "TensorInfo", "compile", "load", "load_plugin"]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    where = importlib.util.find_spec(f"{__name__}.classic.{name}") if name.isidentifier() and not name.startswith("_") else None
    raise AttributeError(f"module 'tilewright' has no attribute '{name}'" + (f"; there is tilewright.classic.{name}" if where else ""))
