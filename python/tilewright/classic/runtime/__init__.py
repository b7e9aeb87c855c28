# SPDX-License-Identifier: Apache-2.0
"""Arrays, devices, functions and modules under their classic names."""
from __future__ import annotations

from ..registry import PackedFunc
from . import container, executor, profiling, vm
from . import ndarray as nd
from .data_type import ArgTypeCode, DataType, DataTypeCode
from .container import ADT, Array, Map, Object, ObjectGeneric, ShapeTuple, String, const, convert, convert_to_object, tuple_object
from .module import (BenchmarkResult, CSourceModule, CSourceModuleCreate, Module, create_module, enabled, load_module, load_static_library, load_param_dict, load_param_dict_from_file, load_plugin, num_threads,
                     save_param_dict, save_param_dict_to_file, system_lib)
from .profiling import Report
from .ndarray import (RPC_SESS_MASK, Device, NDArray, array, cpu, cuda, device, empty, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu)

__all__ = ["ADT", "ArgTypeCode", "RPC_SESS_MASK", "Array", "BenchmarkResult", "CSourceModule", "CSourceModuleCreate", "DataType", "DataTypeCode", "Device", "Map", "Module", "NDArray", "Object", "ObjectGeneric", "PackedFunc", "Report", "ShapeTuple", "String", "array", "const", "container", "convert", "convert_to_object", "cpu", "create_module", "cuda", "device", "enabled",
           "empty", "executor", "ext_dev", "gpu", "hexagon", "load_module", "load_static_library", "load_param_dict", "load_param_dict_from_file", "load_plugin", "metal", "nd", "num_threads", "opencl", "rocm", "vpi", "vulkan", "webgpu",
           "profiling", "save_param_dict", "save_param_dict_to_file", "system_lib", "tuple_object", "vm"]
