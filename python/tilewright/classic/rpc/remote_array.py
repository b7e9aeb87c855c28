# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory of a remote process."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime import ndarray
from ..runtime.ndarray import Device, NDArray, as_array, as_dtype
from .base import function

_CODES = {0: "int", 1: "uint", 2: "float", 6: "bool"}


def _dtype(code: int, bits: int, lanes: int) -> str:
    if code == 6:
        return "bool"
    if code not in _CODES or lanes != 1:
        raise TypeError(f"a remote tensor's dtype (code {code}, {bits} bits) has no name in numpy")
    return f"{_CODES[code]}{bits}"


class RemoteNDArray(NDArray):
    """A remote tensor. `numpy()` fetches its values, `copyfrom` sends values; as an argument of the session's functions it is not
    copied."""

    def __init__(self, tensor: Any, whole: Any = None):
        super().__init__(tensor, Device(*tensor.device))
        self._whole = whole  # the tensor that a view refers to

    shape = property(lambda self: tuple(self._array.shape))
    dtype = property(lambda self: _dtype(*self._array.dtype))
    ndim = property(lambda self: len(self._array.shape))
    size = property(lambda self: int(np.prod(self._array.shape, dtype=np.int64)))

    def numpy(self) -> np.ndarray:
        out = np.empty(self.shape, self.dtype)
        function("rpc.Copy")(self, out)
        return out

    asnumpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def copyfrom(self, source: Any) -> "RemoteNDArray":
        if not isinstance(source, NDArray):
            source = as_dtype(source, self.dtype)
        if tuple(source.shape) != self.shape:
            raise ValueError(f"array shape do not match the shape of NDArray {tuple(source.shape)} vs {self.shape}")
        if str(source.dtype) != self.dtype:
            raise TypeError(f"a tensor of {source.dtype} cannot be copied to one of {self.dtype}")
        function("rpc.Copy")(source if isinstance(source, RemoteNDArray) else np.ascontiguousarray(as_array(source)), self)
        return self

    def copyto(self, target: Any, mem_scope: str | None = None) -> NDArray:
        if isinstance(target, Device):
            if target.device_type < ndarray.SESSION_STEP:
                return ndarray.array(self.numpy(), target)
            return empty(self.shape, self.dtype, target, mem_scope).copyfrom(self)
        if not isinstance(target, NDArray):
            raise ValueError(f"Unsupported target type {type(target)}")
        return target.copyfrom(self if isinstance(target, RemoteNDArray) else self.numpy())

    def view(self, shape: Any, dtype: str | None = None, relative_byte_offset: int = 0) -> "RemoteNDArray":
        """The same memory with another shape or dtype."""
        kind = np.empty(0, dtype or self.dtype)
        return RemoteNDArray(function("rpc.View")(self, [int(s) for s in shape], kind, relative_byte_offset)._array, self._whole or self._array)

    _create_view = view

    def __setitem__(self, index: Any, value: Any) -> None:
        if index != slice(None):
            raise ValueError("a remote tensor is set as a whole: t[:] = values")
        self.copyfrom(np.broadcast_to(as_array(value), self.shape) if np.ndim(value) == 0 else value)

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __len__(self) -> int:
        return self.shape[0]

    def __dlpack__(self, **kwargs: Any) -> Any:
        raise BufferError("a remote tensor has no memory here; numpy() brings its values")

    def same_as(self, other: Any) -> bool:
        return isinstance(other, RemoteNDArray) and self._array.data == other._array.data and self.device == other.device

    def __repr__(self) -> str:
        return f"<NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"


def empty(shape: Any, dtype: Any, device: Device, mem_scope: str | None = None) -> RemoteNDArray:
    shape = [int(shape)] if isinstance(shape, int) else [int(s) for s in shape]
    return function("rpc.NewTensor")(shape, np.empty(0, dtype), device, mem_scope or "")


ndarray.install_remote(RemoteNDArray, empty, lambda device, kind: function("rpc.DeviceAttribute")(device, kind), lambda device: function("rpc.Sync")(device))

__all__ = ["RemoteNDArray", "empty"]
