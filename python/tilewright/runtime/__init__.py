# SPDX-License-Identifier: Apache-2.0
"""Arrays, devices, functions and modules under their classic names."""
from __future__ import annotations

from ..registry import PackedFunc, convert
from . import container, executor, profiling, vm
from . import ndarray as nd
from .container import ADT, ShapeTuple, String, tuple_object
from .module import BenchmarkResult, Module, create_module, enabled, load_module, load_param_dict, num_threads, save_param_dict
from .ndarray import Device, NDArray, array, cpu, device, empty

__all__ = ["ADT", "BenchmarkResult", "Device", "Module", "NDArray", "PackedFunc", "ShapeTuple", "String", "array", "container", "convert", "cpu", "create_module", "device", "enabled",
           "empty", "executor", "load_module", "load_param_dict", "nd", "num_threads", "profiling", "save_param_dict", "tuple_object", "vm"]
