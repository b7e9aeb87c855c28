# SPDX-License-Identifier: Apache-2.0
"""Tensors in host memory, exchanged without copies with numpy and all libraries that support DLPack."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import as_array

# Device types of sessions (docs/rpc.md): the remote device's type, plus this step for each session.
RPC_SESS_MASK = SESSION_STEP = 128
_remote: Any = None  # hooks of install_remote, set when rpc is first imported


def install_remote(cls: type, empty: Any, attribute: Any, sync: Any) -> None:
    """Registers the hooks of rpc: the class of remote tensors, and the operations on their devices."""
    global _remote
    _remote = (cls, empty, attribute, sync)


_NAMES = {"llvm": 1, "cpu": 1, "c": 1, "stackvm": 1, "hybrid": 1, "test": 1, "composite": 1, "cuda": 2, "gpu": 2, "nvptx": 2, "opencl": 4, "cl": 4, "aocl": 5, "aocl_sw_emu": 5,
          "sdaccel": 4, "vulkan": 7, "metal": 8, "vpi": 9, "rocm": 10, "ext_dev": 12, "micro_dev": 13, "hexagon": 14, "webgpu": 15}
_TYPES = {1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 5: "aocl", 6: "sdaccel", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 12: "ext_dev",
          13: "micro_dev", 14: "hexagon", 15: "webgpu"}


_MEMORY = (1, 12)  # devices whose tensors are in this process's memory


class _DeviceFields(NamedTuple):
    device_type: int = 1
    device_id: int = 0


class Device(_DeviceFields):
    """Where a tensor is stored or a model runs. Any device can be named; what exists is the CPU, and ext_dev, whose memory is the CPU's."""
    __slots__ = ()
    STR2MASK, MASK2STR = _NAMES, _TYPES

    @property
    def exist(self) -> bool:
        if self.device_type >= SESSION_STEP:
            return bool(_remote[2](self, 0))
        return self.device_type in _MEMORY and self.device_id == 0

    # Device properties of the classic interface: None, since the CPU has none of them and there is no other device.
    device_name = compute_version = max_threads_per_block = warp_size = max_shared_memory_per_block = max_clock_rate = None
    multi_processor_count = max_thread_dimensions = api_version = driver_version = total_global_memory = l2_cache_size_bytes = None

    def sync(self, stream: Any = None) -> None:
        """Waits for the device. CPU calls are synchronous; remote devices are asked."""
        if self.device_type >= SESSION_STEP:
            _remote[3](self)

    def __repr__(self) -> str:
        if self.device_type >= SESSION_STEP:
            here = Device(self.device_type % SESSION_STEP, self.device_id)
            return f"remote[{self.device_type // SESSION_STEP - 1}]:{here}"
        return f"{_TYPES.get(self.device_type, self.device_type)}({self.device_id})"

    __str__ = __repr__


def cpu(device_id: int = 0) -> Device:
    return Device(1, device_id)


def _kind_of_device(name: str) -> Any:
    def make(device_id: int = 0) -> Device:
        return Device(_NAMES[name], device_id)
    make.__name__ = name
    make.__doc__ = "A device whose memory is the CPU's." if name == "ext_dev" else "A device that does not exist here: its `exist` is False."
    return make


cuda, gpu, rocm, opencl, metal, vulkan, vpi, ext_dev, hexagon, webgpu = map(
    _kind_of_device, ("cuda", "gpu", "rocm", "opencl", "metal", "vulkan", "vpi", "ext_dev", "hexagon", "webgpu"))


def device(name: Any, device_id: int = 0) -> Device:
    """`device("llvm")`, `device("cpu", 0)`, `device("cuda:1")`, a target or a device type's number. ValueError for an unknown device."""
    if isinstance(name, Device):
        return name
    if isinstance(name, int):
        if name not in _TYPES:
            raise ValueError(f"there is no device type {name}")
        return Device(name, device_id)
    kind = str(name).split()[0] if str(name).split() else ""
    kind, _, number = kind.partition(":")
    if kind not in _NAMES:
        raise ValueError(f"no device is called '{name}'; models run on the CPU: cpu()")
    return Device(_NAMES[kind], int(number) if number else device_id)


def _in_memory(given: Device) -> Device:
    if given.device_type not in _MEMORY:
        raise ValueError(f"there is no memory on {given} here; models run on the CPU: cpu()")
    return given


def as_dtype(value: Any, dtype: str | None) -> np.ndarray:
    """as_array, converted to the dtype if both are of the same kind or the conversion is lossless. Other values are returned unchanged,
    to be rejected by the callee."""
    array = as_array(value)
    if dtype is None or str(array.dtype) == dtype or not hasattr(np, dtype) and dtype != "bool" or not np.can_cast(array.dtype, dtype, "same_kind"):
        return array  # numpy has no bfloat16 and other special dtypes
    return array.astype(dtype)


class NDArray:
    """A host tensor. `numpy()` copies, as in the classic stack; `numpy.asarray(t)`, `numpy.from_dlpack(t)` and `torch.from_dlpack(t)`
    share its memory."""

    __array_priority__ = 10

    def __init__(self, array: np.ndarray, device: Device = cpu()):
        self._array = array
        self.device = device

    ctx = property(lambda self: self.device)
    _tvm_handle = property(lambda self: self)  # what a class of register_extension passes on
    is_view = False  # all own their memory, or keep its owner alive

    @staticmethod
    def _of_remote(tensor: Any) -> Any:
        return _remote[0](tensor)

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
        """Copies values from a tensor of the same shape, or from an array whose dtype is of the same kind. Errors: ValueError (shape),
        TypeError (dtype)."""
        if not isinstance(source, NDArray):
            source = as_dtype(source, self.dtype)
        source = as_array(source)
        if source.shape != self.shape:
            raise ValueError(f"array shape do not match the shape of NDArray {source.shape} vs {self.shape}")
        np.copyto(self._array, source, casting="no")
        return self

    def copyto(self, target: "NDArray | Device", mem_scope: str | None = None) -> "NDArray":
        """Copies to a tensor, or to a device. Errors: ValueError (shape, device), TypeError (dtype)."""
        if isinstance(target, Device):
            return array(self, target, mem_scope) if target.device_type >= SESSION_STEP else NDArray(self._array.copy(), _in_memory(target))
        if not isinstance(target, NDArray):
            raise ValueError(f"Unsupported target type {type(target)}")
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

    def to_dlpack(self) -> Any:
        """A DLPack capsule, for torch.utils.dlpack.from_dlpack and similar functions."""
        return self.__dlpack__()

    def same_as(self, other: Any) -> bool:
        return isinstance(other, NDArray) and self._array.ctypes.data == other._array.ctypes.data

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device}>\n{self._array!r}"


def array(arr: Any, device: Device = cpu(), mem_scope: str | None = None, ctx: Device | None = None) -> NDArray:
    """A copy of the values. ValueError for a device that does not exist, TypeError for values that are not numbers."""
    if isinstance(arr, (str, bytes)):
        raise TypeError(f"an array holds numbers, not {arr!r}")
    if (ctx or device).device_type >= SESSION_STEP:
        values = as_array(arr)
        return _remote[1](values.shape, values.dtype, ctx or device, mem_scope).copyfrom(values)
    return NDArray(np.array(as_array(arr), order="C"), _in_memory(ctx or device))


def empty(shape: Any, dtype: Any = "float32", device: Device = cpu(), mem_scope: str | None = None, ctx: Device | None = None) -> NDArray:
    """An uninitialised tensor."""
    if (ctx or device).device_type >= SESSION_STEP:
        return _remote[1](shape, dtype, ctx or device, mem_scope)
    return NDArray(np.empty(shape, dtype), _in_memory(ctx or device))


class _Capsule:
    """Presents a capsule of the old DLPack protocol through the new one."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Writable:
    """An array's memory without numpy's read-only flag, which everything exchanged by the old protocol has."""

    def __init__(self, array: np.ndarray):
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def from_dlpack(tensor: Any) -> NDArray:
    """Shares the memory of another library's tensor: an object with __dlpack__, or a capsule, which is consumed."""
    if type(tensor).__name__ != "PyCapsule" and not hasattr(tensor, "__dlpack__"):
        raise TypeError(f"a {type(tensor).__name__} cannot be exchanged by DLPack; nd.array copies values")
    try:
        capsule = tensor if type(tensor).__name__ == "PyCapsule" else tensor.__dlpack__()
    except BufferError:  # read-only memory, which the old protocol cannot express
        return NDArray(np.from_dlpack(tensor))
    return NDArray(np.asarray(_Writable(np.from_dlpack(_Capsule(capsule)))))


def from_numpy(tensor: np.ndarray) -> NDArray:
    """Shares a numpy array's memory."""
    return NDArray(np.asarray(tensor))


def numpyasarray(np_data: np.ndarray) -> NDArray:
    """The classic name of from_numpy."""
    return from_numpy(np_data)


__all__ = ["Device", "NDArray", "array", "as_array", "cpu", "cuda", "device", "empty", "ext_dev", "from_dlpack", "from_numpy", "gpu", "hexagon", "metal",
           "numpyasarray", "opencl", "rocm", "vpi", "vulkan", "webgpu"]
