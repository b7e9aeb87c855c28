# SPDX-License-Identifier: Apache-2.0
"""The classic stack's Python interface: what `import tvm` means for `python -m tilewright.as_tvm script.py`.

    from tilewright import classic as tvm
    lib = tvm.relay.build(mod, "llvm", params=params)
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))

docs/migrating.md says where it differs."""
from __future__ import annotations

from .. import __version__, _core
from .._core import Error
from .registry import (Function, get_global_func, list_global_func_names, register_error, register_extension, register_func, register_object,
                       remove_global_func)
from .runtime.container import Map
from .runtime.ndarray import (Device, NDArray, as_array, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu)

_core._set_types(NDArray, Device, Map)

from . import arith, autotvm, contrib, driver, error, ir, micro, parser, relay, rpc, runtime, script, support, target, te, testing, tir, topi, transform, usmp  # noqa: E402
from .ir import IRModule, instrument  # noqa: E402
from .ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo  # noqa: E402
from .runtime import DataType, DataTypeCode, Object, ShapeTuple, container, convert, nd  # noqa: E402
from .driver import build, lower  # noqa: E402
from .tir import const  # noqa: E402
from .target import Target, generic_func as generic  # noqa: E402


TVMError = Error

__all__ = ["ConstantMemoryPools", "ConstantPoolInfo", "DataType", "DataTypeCode", "Device", "Error", "Function", "IRModule", "NDArray", "Object", "PoolInfo", "PoolInfoProperties", "ShapeTuple", "Target", "WorkspaceMemoryPools", "WorkspacePoolInfo", "arith", "autotvm", "build", "const", "contrib", "convert", "cpu", "cuda",
           "device", "driver", "error", "ext_dev", "generic", "get_global_func", "gpu", "hexagon", "instrument", "ir", "list_global_func_names", "lower",
           "metal", "micro", "nd", "opencl", "parser", "register_error", "register_extension", "register_func", "register_object", "relay", "remove_global_func", "rocm", "rpc", "runtime", "script", "support", "target", "te", "testing", "tir",
           "topi", "transform", "usmp", "vpi", "vulkan", "webgpu"]
