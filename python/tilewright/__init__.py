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

from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._core import Error, IRModule
from .model import Model, TensorInfo, compile, load
from .registry import (Function, get_global_func, list_global_func_names, register_error, register_extension, register_func, register_object,
                       remove_global_func)
from .runtime.ndarray import (Device, NDArray, as_array, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu)

__version__ = "0.1.0"


def import_onnx(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> IRModule:
    """A path, serialised bytes or an onnx.ModelProto as a graph module."""
    return relay.frontend.from_onnx(model, shapes)[0]


_core._set_types(NDArray, Device)

from . import contrib, driver, error, ir, parser, relay, rpc, runtime, support, target, testing, tir, topi, transform  # noqa: E402
from .ir import instrument  # noqa: E402
from .runtime import DataType, DataTypeCode, Object, ShapeTuple, convert, nd  # noqa: E402
from .target import Target, generic_func as generic  # noqa: E402


TVMError = Error

__all__ = ["DataType", "DataTypeCode", "Device", "Error", "Function", "IRModule", "Model", "NDArray", "Object", "ShapeTuple", "Target", "TensorInfo", "compile", "contrib", "convert", "cpu", "cuda",
           "device", "driver", "error", "ext_dev", "generic", "get_global_func", "gpu", "hexagon", "import_onnx", "instrument", "ir", "list_global_func_names", "load",
           "metal", "nd", "opencl", "parser", "register_error", "register_extension", "register_func", "register_object", "relay", "remove_global_func", "rocm", "rpc", "runtime", "support", "target", "testing", "tir",
           "topi", "transform", "vpi", "vulkan", "webgpu"]
