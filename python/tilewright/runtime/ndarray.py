# SPDX-License-Identifier: Apache-2.0
"""Tensors in host memory, exchanged with numpy and everything that speaks DLPack without a copy."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_NAMES = {"llvm": 1, "cpu": 1, "c": 1, "stackvm": 1}


class Device(NamedTuple):
    """Where a tensor lies or a model runs. Only the CPU so far."""
    device_type: int = 1
    device_id: int = 0

    @property
    def exist(self) -> bool:
        return self.device_type == 1 and self.device_id == 0

    def sync(self, stream: Any = None) -> None:
        """Nothing is ever under way on the CPU."""


def cpu(device_id: int = 0) -> Device:
    return Device(1, device_id)


def device(name: str, device_id: int = 0) -> Device:
    """`device("llvm")` or `device("cpu", 0)`. ValueError for devices that code is not generated for."""
    kind = name.split()[0] if name.split() else name
    if kind not in _NAMES:
        raise ValueError(f"no device is called '{name}'; models run on the CPU: tilewright.cpu()")
    return Device(_NAMES[kind], device_id)


def as_array(value: Any) -> np.ndarray:
    """numpy view of an array: numpy itself, DLPack, or whatever numpy.asarray takes. Row-major; copied only when it is not."""
    if isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, NDArray):
        array = value._array
    elif hasattr(value, "numpy") and not hasattr(value, "__dlpack__"):
        array = value.numpy()
    elif hasattr(value, "__dlpack__"):
        array = np.from_dlpack(value)
    else:
        array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


class NDArray:
    """A host tensor. `numpy()` copies, as in the classic stack; `numpy.asarray(t)`, `numpy.from_dlpack(t)` and
    `torch.from_dlpack(t)` look at the same memory."""

    __array_priority__ = 10

    def __init__(self, array: np.ndarray, device: Device = cpu()):
        self._array = array
        self.device = device

    ctx = property(lambda self: self.device)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> str:
        return str(self._array.dtype)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    def numpy(self) -> np.ndarray:
        return self._array.copy()

    asnumpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def copyfrom(self, source: Any) -> "NDArray":
        """Takes the values of a tensor of the same shape and dtype. Errors: ValueError (shape), TypeError (dtype)."""
        source = as_array(source)
        if source.shape != self.shape:
            raise ValueError(f"array shape do not match the shape of NDArray {source.shape} vs {self.shape}")
        np.copyto(self._array, source, casting="no")
        return self

    def copyto(self, target: "NDArray | Device", mem_scope: str | None = None) -> "NDArray":
        if isinstance(target, Device):
            return NDArray(self._array.copy(), target)
        return target.copyfrom(self._array)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = as_array(value)

    def __getitem__(self, index: Any) -> Any:
        return self._array[index]

    def __len__(self) -> int:
        return len(self._array)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    to_dlpack = __dlpack__

    def same_as(self, other: Any) -> bool:
        return isinstance(other, NDArray) and self._array.ctypes.data == other._array.ctypes.data

    def __repr__(self) -> str:
        return f"<tilewright.nd.NDArray shape={self.shape}, cpu({self.device.device_id})>\n{self._array!r}"


def array(arr: Any, device: Device = cpu(), mem_scope: str | None = None) -> NDArray:
    """A copy of the values."""
    return NDArray(np.array(as_array(arr), order="C"), device)


def empty(shape: Any, dtype: str = "float32", device: Device = cpu(), mem_scope: str | None = None) -> NDArray:
    return NDArray(np.empty(shape, dtype), device)


def from_dlpack(tensor: Any) -> NDArray:
    """The same memory as a tensor of another library."""
    return NDArray(np.from_dlpack(tensor))


def from_numpy(tensor: np.ndarray) -> NDArray:
    """The same memory as a numpy array."""
    return NDArray(np.asarray(tensor))


__all__ = ["Device", "NDArray", "array", "as_array", "cpu", "device", "empty", "from_dlpack", "from_numpy"]
