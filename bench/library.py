# SPDX-License-Identifier: Apache-2.0
"""The compiler's and the runtime's C interfaces from Python, for measuring many small models in one process."""
import ctypes
import os

import numpy as np

# DLDataTypeCode of numpy's kinds.
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class CompilerOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("opt_level", ctypes.c_int32), ("jobs", ctypes.c_int32)]


class ExecutorOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("num_threads", ctypes.c_int32), ("spin_us", ctypes.c_int32)]


class MachineOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("num_threads", ctypes.c_int32), ("always_compile", ctypes.c_int32),
                ("keep", ctypes.c_uint64)]


class Refused(Exception):
    """What the library would not compile, load or run; the text is its error's first line."""


def tensor_of(array):
    """A DLTensor over a compact numpy array, which must outlive it."""
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    code = 4 if array.dtype.name == "bfloat16" else CODES[array.dtype.kind]
    tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, DataType(code, array.dtype.itemsize * 8, 1), shape, None, 0)
    tensor.keep = (shape, array)
    return tensor


def aligned_like(array):
    """An array like it that begins on a cache line, as the outputs that engines allocate do; numpy's begin 16 bytes behind one."""
    memory = np.empty(array.nbytes + 63, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first: first + array.nbytes].view(array.dtype).reshape(array.shape)


def array_of(tensor):
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    name = {0: "int", 1: "uint", 2: "float", 6: "bool"}[tensor.dtype.code]
    dtype = np.dtype("bool" if name == "bool" else f"{name}{tensor.dtype.bits}")
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.zeros(shape, dtype)
    buffer = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(tensor.data + tensor.byte_offset)
    return np.frombuffer(buffer, dtype).reshape(shape).copy()


class Library:
    """libtilewright_runtime.so and libtilewright_compiler.so of a build folder."""

    def __init__(self, folder):
        self.runtime = ctypes.CDLL(os.path.join(folder, "libtilewright_runtime.so"), mode=ctypes.RTLD_GLOBAL)
        self.compiler = ctypes.CDLL(os.path.join(folder, "libtilewright_compiler.so"))
        self.runtime.tw_last_error_message.restype = ctypes.c_char_p
        self.compiler.tw_compiler_last_error_message.restype = ctypes.c_char_p
        for function in (self.runtime.tw_module_free, self.runtime.tw_executor_free, self.compiler.tw_vm_free):
            function.argtypes, function.restype = [ctypes.c_void_p], None

    def check(self, status, compiler=False):
        if status != 0:
            text = self.compiler.tw_compiler_last_error_message() if compiler else self.runtime.tw_last_error_message()
            raise Refused((text or b"").decode(errors="replace").splitlines()[0])

    def compile(self, model, output, target):
        options = CompilerOptions(ctypes.sizeof(CompilerOptions), target.encode() if target else None, -1, 1)
        self.check(self.compiler.tw_compiler_compile_onnx(os.fsencode(model), os.fsencode(output), ctypes.byref(options)), True)


class Executor:
    """A library of fixed sizes; inputs and outputs are bound."""

    def __init__(self, library, path, threads, feeds, outputs):
        self.library, self.module, self.handle = library, ctypes.c_void_p(), ctypes.c_void_p()
        library.check(library.runtime.tw_module_load(os.fsencode(path), None, ctypes.byref(self.module)))
        options = ExecutorOptions(ctypes.sizeof(ExecutorOptions), threads, -1)
        library.check(library.runtime.tw_executor_create(self.module, ctypes.byref(options), ctypes.byref(self.handle)))
        self.tensors = {name: tensor_of(value) for name, value in feeds.items()}
        for name, tensor in self.tensors.items():
            library.check(library.runtime.tw_executor_bind_input(self.handle, name.encode(), ctypes.byref(tensor)))
        self.arrays = [aligned_like(value) for value in outputs]
        self.bound = [tensor_of(array) for array in self.arrays]
        for i, tensor in enumerate(self.bound):
            library.check(library.runtime.tw_executor_bind_output_at(self.handle, ctypes.c_uint64(i), ctypes.byref(tensor)))
        self.call, self.argument = library.runtime.tw_executor_run, self.handle

    def run(self):
        if self.call(self.argument):
            self.library.check(1)

    def outputs(self):
        return self.arrays

    def close(self):
        self.library.runtime.tw_executor_free(self.handle)
        self.library.runtime.tw_module_free(self.module)


class Machine:
    """A VM program: a model whose sizes its data decide."""

    def __init__(self, library, path, threads, feeds, outputs):
        self.library, self.handle, self.count = library, ctypes.c_void_p(), len(outputs)
        options = MachineOptions(ctypes.sizeof(MachineOptions), threads, 1, 0)
        library.check(library.compiler.tw_vm_load(os.fsencode(path), ctypes.byref(options), ctypes.byref(self.handle)), True)
        self.tensors = {name: tensor_of(value) for name, value in feeds.items()}
        for name, tensor in self.tensors.items():
            library.check(library.compiler.tw_vm_set_input(self.handle, name.encode(), ctypes.byref(tensor)), True)
        self.call = library.compiler.tw_vm_run

    def run(self):
        if self.call(self.handle):
            self.library.check(1, True)

    def outputs(self):
        out = []
        for i in range(self.count):
            tensor = DLTensor()
            self.library.check(self.library.compiler.tw_vm_get_output(self.handle, ctypes.c_uint64(i), ctypes.byref(tensor)), True)
            out.append(array_of(tensor))
        return out

    def close(self):
        self.library.compiler.tw_vm_free(self.handle)


def open_model(library, path, threads, feeds, outputs):
    try:
        return Executor(library, path, threads, feeds, outputs)
    except Refused as refused:
        if "E203" not in str(refused) and "VM" not in str(refused):
            raise
    return Machine(library, path, threads, feeds, outputs)
