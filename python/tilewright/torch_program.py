# SPDX-License-Identifier: Apache-2.0
"""Graphs of PyTorch in the form that the importer reads: the JSON of torch.export's own schema (docs/torch.md), beside it the weights as
arrays over PyTorch's memory. What graphs of FX and of TorchScript have in common; nothing here imports torch before a graph is at hand."""
from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .model import error_of

SCHEMA_VERSION = {"major": 8, "minor": 1}
# torch dtypes by name to the schema's ScalarType.
DTYPES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "complex32": 9, "complex64": 10, "complex128": 11, "bool": 12, "bfloat16": 13,
          "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30, "float8_e4m3fnuz": 31, "float8_e5m2fnuz": 32, "float8_e8m0fnu": 33, "uint32": 34, "uint64": 35}
# c10's dtype numbers, used by TorchScript, to the schema's (quantised types become integers, since quantised tensors
# are represented by real numbers).
C10_DTYPES = {number: number + 1 for number in range(12)} | {12: 2, 13: 1, 14: 4, 15: 13, 23: 30, 24: 29, 25: 32, 26: 31, 27: 28, 28: 34, 29: 35}
MEMORY_FORMATS = {"torch.contiguous_format": 1, "torch.channels_last": 2, "torch.channels_last_3d": 3, "torch.preserve_format": 4}


def dtype_number(dtype: Any) -> int:
    """The schema's number of a torch.dtype; 0 for one that it does not have."""
    return DTYPES.get(str(dtype).removeprefix("torch.") if hasattr(str, "removeprefix") else str(dtype).replace("torch.", "", 1), 0)


def tensor_meta(dtype: Any, sizes: Sequence[Any]) -> dict[str, Any]:
    """A tensor's type; a size is a number or the text of an expression."""
    return {"dtype": dtype_number(dtype), "sizes": [{"as_int": s} if isinstance(s, int) else {"as_expr": {"expr_str": str(s)}} for s in sizes],
            "requires_grad": False, "device": {"type": "cpu", "index": None}, "strides": [], "storage_offset": {"as_int": 0}, "layout": 7}


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def _number(value: float) -> Any:
    """A float in the schema's form: values without a JSON notation are strings."""
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def literal(value: Any) -> dict[str, Any] | None:
    """A known value as an argument; None for unsupported kinds."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": _number(value)}
    if isinstance(value, complex):
        return {"as_complex": {"real": _number(value.real), "imag": _number(value.imag)}}
    if isinstance(value, str):
        return {"as_string": value}
    kind = type(value).__name__
    if type(value).__module__ == "torch" or kind in ("dtype", "device", "layout", "memory_format"):
        if kind == "dtype":
            return {"as_scalar_type": dtype_number(value)}
        if kind == "device":
            return {"as_device": {"type": value.type, "index": value.index}}
        if kind == "layout":
            return {"as_layout": 7}
        if kind == "memory_format":
            return {"as_memory_format": MEMORY_FORMATS.get(str(value), 1)}
    if isinstance(value, (list, tuple)):
        return literal_list(value)
    return None


def literal_list(values: Sequence[Any]) -> dict[str, Any] | None:
    for key, kind in (("as_bools", bool), ("as_ints", int), ("as_floats", float), ("as_strings", str)):
        if all(isinstance(v, kind) and (kind is bool or not isinstance(v, bool)) for v in values) and (values or kind is int):
            return {key: [_number(v) if kind is float else v for v in values]}
    items = [literal(v) for v in values]
    return None if any(i is None for i in items) else {"as_list": items}


def node(target: str, inputs: Sequence[tuple[str, dict[str, Any]]], outputs: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return {"target": target, "inputs": [{"name": n, "arg": a, "kind": 1} for n, a in inputs], "outputs": list(outputs), "metadata": {}, "name": name}


class Program:
    """One graph and its weights, to be passed to the importer."""

    def __init__(self) -> None:
        self.inputs: list[dict[str, Any]] = []
        self.outputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.input_specs: list[dict[str, Any]] = []
        self.output_specs: list[dict[str, Any]] = []
        self.tensor_values: dict[str, Any] = {}
        self.sym_int_values: dict[str, Any] = {}
        self.ranges: dict[str, Any] = {}
        self.weights: dict[str, Any] = {}

    def add_input(self, name: str, dtype: Any, sizes: Sequence[Any]) -> None:
        self.inputs.append(tensor(name))
        self.tensor_values[name] = tensor_meta(dtype, sizes)
        self.input_specs.append({"user_input": {"arg": tensor(name)}})

    def add_token(self, name: str) -> None:
        """A value that only keeps operators with effects in order."""
        self.inputs.append({"as_token": {"name": name}})
        self.input_specs.append({"token": {"arg": {"name": name}}})

    def add_weight(self, name: str, weight: str, value: Any, kind: str = "parameter") -> None:
        """`name` in the graph is the tensor `value`, which the model calls `weight`. Kinds: parameter, buffer, tensor_constant."""
        self.inputs.append(tensor(name))
        self.tensor_values[name] = tensor_meta(value.dtype, list(value.shape))
        spec = {"arg": {"name": name}, f"{kind}_name": weight}
        self.input_specs.append({kind: {**spec, "persistent": True} if kind == "buffer" else spec})
        self.weights[weight] = value

    def add_output(self, argument: dict[str, Any]) -> None:
        self.outputs.append(argument)
        self.output_specs.append({"user_output": {"arg": argument}})

    def graph(self) -> dict[str, Any]:
        return {"inputs": self.inputs, "outputs": self.outputs, "nodes": self.nodes, "tensor_values": self.tensor_values, "sym_int_values": self.sym_int_values,
                "sym_bool_values": {}, "sym_float_values": {}, "custom_obj_values": {}, "is_single_tensor_return": False}

    def json(self) -> bytes:
        return json.dumps({
            "graph_module": {"graph": self.graph(), "signature": {"input_specs": self.input_specs, "output_specs": self.output_specs}, "module_call_graph": [], "metadata": {}},
            "opset_version": {"aten": 10}, "range_constraints": self.ranges, "schema_version": SCHEMA_VERSION, "verifiers": ["TRAINING"], "torch_version": ""}, allow_nan=False).encode()

    def imported(self, shapes: Mapping[str, Sequence[int]] | None = None, freeze_params: bool = True, converters: Mapping[str, Any] | None = None,
                 share: bool = True) -> tuple[Any, dict[str, np.ndarray]]:
        """(module, parameters). share: constants of the module look at the memory of the weights, which must stay as they are while the
        module is built. Errors: 201, 202 (every operator that is not supported), 203, 204."""
        arrays = {name: array_of(name, value) for name, value in self.weights.items()}
        return _core.import_torch(self.json(), arrays, {n: list(s) for n, s in (shapes or {}).items()}, freeze_params, dict(converters or {}), share)


def array_of(name: str, value: Any) -> Any:
    """A weight as an array that shares its memory, if numpy has the dtype."""
    value = value.detach()
    if value.device.type != "cpu":
        raise error_of(201, "UnsupportedModel", f"the weight '{name}' is on the device {value.device}", "move the model to the CPU first: model.cpu()")
    if value.is_sparse or value.is_quantized:
        raise error_of(201, "UnsupportedModel", f"the weight '{name}' is {'sparse' if value.is_sparse else value.dtype}, which no constant can be", "make it a plain tensor before the export")
    if value.dtype.is_complex:  # pairs of numbers
        import torch
        value = torch.view_as_real(value.resolve_conj())
    if str(value.dtype) in ("torch.bfloat16",) or "float8" in str(value.dtype):
        return value.contiguous()  # numpy lacks the dtype: by DLPack
    return value.numpy()
