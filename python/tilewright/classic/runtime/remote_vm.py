# SPDX-License-Identifier: Apache-2.0
"""A VM program in a remote process (docs/rpc.md). All of it runs there, because regions are compiled for sizes known only at run time."""
from __future__ import annotations

import json
from typing import Any

import numpy as np

from .module import Module
from .ndarray import NDArray

_TUPLE = "#tuple"  # [this, tag, fields]: encodes tuples and values of data types in arguments and results


def encode(value: Any, place: Any) -> Any:
    """Encodes a VM value for a remote call; place(array) returns the tensor to send."""
    if isinstance(value, tuple):
        return [_TUPLE, value[0], [encode(field, place) for field in value[1]]]
    return place(value) if isinstance(value, np.ndarray) else value


def decode(value: Any, array: Any) -> Any:
    """The inverse of encode; array(tensor) converts each tensor."""
    if isinstance(value, list) and value[:1] == [_TUPLE]:
        return value[1], [decode(field, array) for field in value[2]]
    return array(value) if isinstance(value, NDArray) else value


class RemoteProgram:
    """Program and machine in one. ValueError: the server has no compiler."""

    def __init__(self, library: Module):
        load = library._session_function("tilewright.vm.load")
        if load is None:
            raise ValueError("the server has no compiler for VM programs; those of Python have: rpc.Server, or python -m tilewright.as_tvm -m tvm.exec.rpc_server")
        self._module = Module(load(library._path))
        facts = json.loads(self._module["facts"]())
        self.functions = [tuple(f) for f in facts["functions"]]
        self.inputs = [(name, dtype, tuple(shape)) for name, dtype, shape in facts["inputs"]]
        self.target, self.primitives = facts["target"], facts["primitives"]

    def invoke(self, function: str, values: list[Any]) -> Any:
        return decode(self._module["invoke"](function, *[encode(v, self._module._taken) for v in values]), lambda tensor: tensor)

    def profile(self, function: str, values: list[Any]) -> Any:
        result, rest = self._module["profile"](function, *[encode(v, self._module._taken) for v in values])
        return decode(result, lambda tensor: tensor), *json.loads(rest)


__all__ = ["RemoteProgram", "decode", "encode"]
