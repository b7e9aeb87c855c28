# SPDX-License-Identifier: Apache-2.0
"""Arrays, modules and loading under their classic names."""
from __future__ import annotations

import os
import types
from typing import Any

import numpy as np

from . import Device, Model, as_array, cpu
from . import load as _load


class NDArray:
    """A host tensor; `numpy()` and DLPack give its data without a copy."""

    def __init__(self, array: np.ndarray, device: Device = cpu()):
        self._array = array
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> str:
        return str(self._array.dtype)

    def numpy(self) -> np.ndarray:
        return self._array

    asnumpy = numpy

    def copyfrom(self, source: Any) -> "NDArray":
        np.copyto(self._array, as_array(source), casting="no")
        return self

    def copyto(self, target: "NDArray") -> "NDArray":
        return target.copyfrom(self._array)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"<NDArray {self.shape} {self.dtype}>\n{self._array!r}"


def array(value: Any, device: Device = cpu()) -> NDArray:
    return NDArray(np.array(as_array(value)), device)


def empty(shape: Any, dtype: str = "float32", device: Device = cpu()) -> NDArray:
    return NDArray(np.empty(shape, dtype), device)


nd = types.SimpleNamespace(NDArray=NDArray, array=array, empty=empty)


class LoadedModule:
    """What load_module gives: `lib["default"](tw.cpu(0))` makes the module a GraphModule takes."""

    def __init__(self, path: str):
        self._path = path
        _load(path, threads=1)  # a damaged file is found here, not at the first use

    def __getitem__(self, name: str):
        if name != "default":
            raise KeyError(f"the library has one model, 'default', not '{name}'")
        return lambda *devices: _load(self._path)


def load_module(path: str | os.PathLike[str]) -> LoadedModule:
    return LoadedModule(os.fspath(path))


__all__ = ["LoadedModule", "Model", "NDArray", "array", "empty", "load_module", "nd"]
