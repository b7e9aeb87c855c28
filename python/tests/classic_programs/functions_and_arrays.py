# SPDX-License-Identifier: Apache-2.0
"""Functions, arrays and devices of the runtime."""
import json, os, pickle, tempfile

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi, runtime
from tvm.contrib import graph_executor, utils
from tvm.relay import transform
from tvm.runtime import container
import numpy as np
import tvm
import tvm.testing


@program
def te_tensor_json():
    A = te.placeholder((4, 5), name="A", dtype="float32")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = tvm.ir.load_json(tvm.ir.save_json(B))
    assert isinstance(C, te.Tensor)
    assert C.op.name == "B"
    assert tuple((int(v) for v in C.shape)) == (4, 5)
    assert C.dtype == "float32"
    assert C.op.input_tensors[0].op.name == "A"
    assert isinstance(C.op, te.ComputeOp)
    assert isinstance(C.op.input_tensors[0].op, te.PlaceholderOp)


@program
def prim_func_json():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    f = te.create_prim_func([A, B])
    g = tvm.ir.load_json(tvm.ir.save_json(f))
    tvm.ir.assert_structural_equal(f, g)
    m = tvm.IRModule({"main": f})
    tvm.ir.assert_structural_equal(m, tvm.ir.load_json(tvm.ir.save_json(m)))


@program
def get_global():
    targs = (10, 10.0, "hello")

    @tvm.register_func("suite.my_packed_func")
    def my_packed_func(*args):
        assert tuple(args) == targs
        return 10
    f = tvm.get_global_func("suite.my_packed_func")
    assert isinstance(f, tvm.runtime.PackedFunc)
    assert f(*targs) == 10
    with refusing(ValueError):
        tvm.get_global_func("suite.nothing_there")
    assert tvm.get_global_func("suite.nothing_there", True) is None
    assert tvm.get_global_func("suite.nothing_there", allow_missing=True) is None
    with refusing(tvm.TVMError):
        tvm.register_func("suite.my_packed_func", lambda: 1)
    tvm.register_func("suite.my_packed_func", lambda *a: 11, override=True)
    assert tvm.get_global_func("suite.my_packed_func")() == 11
    assert "suite.my_packed_func" in tvm._ffi.registry.list_global_func_names()


@program
def get_callback_with_node():
    x = tvm.runtime.convert(10)

    def test(y):
        assert y.handle != x.handle
        return y
    f2 = tvm.runtime.convert(test)
    tvm.register_func("suite.get_callback_with_node", f2, override=True)
    f = tvm.get_global_func("suite.get_callback_with_node")
    assert isinstance(f, tvm.runtime.PackedFunc)
    y = f(x)
    assert y.value == 10


@program
def return_func():

    def addy(y):

        def add(x):
            return tvm.runtime.convert(x + y)
        return add
    myf = tvm.runtime.convert(addy)
    f = myf(10)
    assert f(11).value == 21


@program
def convert_func():
    targs = (10, 10.0, "hello", 10)

    def myfunc(*args):
        assert tuple(args) == targs
    f = tvm.runtime.convert(myfunc)
    assert isinstance(f, tvm.runtime.PackedFunc)
    f(*targs)


@program
def byte_array():
    s = "hello"
    a = bytearray(s, encoding="ascii")

    def myfunc(ss):
        assert ss == a
    f = tvm.runtime.convert(myfunc)
    f(a)


@program
def empty_array():

    def myfunc(ss):
        assert tuple(ss) == ()
    x = tvm.runtime.convert(())
    tvm.runtime.convert(myfunc)(x)


@program
def device_arg():

    def test_device_func(dev):
        assert tvm.cuda(7) == dev
        return tvm.cpu(0)
    x = test_device_func(tvm.cuda(7))
    assert x == tvm.cpu(0)
    x = tvm.opencl(10)
    x = tvm.testing.device_test(x, x.device_type, x.device_id)
    assert x == tvm.opencl(10)


@program
def numpy_scalar():
    maxint = (1 << 63) - 1
    assert tvm.testing.echo(np.int64(maxint)) == maxint


@program
def ndarray_args():

    def check(arr):
        assert not arr.is_view
        assert tvm.testing.object_use_count(arr) >= 2
    fcheck = tvm.runtime.convert(check)
    x = tvm.nd.array([1, 2, 3])
    fcheck(x)
    assert tvm.testing.object_use_count(x) == 1


@program
def dict_function_value_type():
    from tvm import tir
    te_func_dict = {"add": lambda a, b: a + b}
    converted = tvm.runtime.convert(te_func_dict)
    f = converted["add"]
    a = tir.Var("a", "float32")
    b = tir.Var("b", "float32")
    tvm.ir.assert_structural_equal(f(a, b), tir.Add(a, b))


@program
def nd_create():
    for dtype in ("int8", "uint8", "float32", "float64", "float16", "bool", "int64"):
        x = np.random.randint(0, 2, (3, 4)).astype(dtype)
        y = tvm.nd.array(x, device=tvm.cpu())
        z = y.copyto(tvm.cpu())
        assert y.dtype == x.dtype
        assert y.shape == x.shape
        assert isinstance(y, tvm.nd.NDArray)
        np.testing.assert_equal(x, y.numpy())
        np.testing.assert_equal(x, z.numpy())
        np.testing.assert_equal(x, y.asnumpy())
    tvm.nd.array(np.zeros((2, 2)), tvm.cpu(0)).copyfrom(np.ones((2, 2)))


@program
def nd_fp16_conversion():
    n = 100
    for src, dst in (("float32", "float16"), ("float16", "float32")):
        A = te.placeholder((n,), dtype=src)
        B = te.compute((n,), lambda i: A[i].astype(dst))
        s = te.create_schedule([B.op])
        func = tvm.build(s, [A, B], "llvm")
        x = tvm.nd.array(100 * np.random.randn(n).astype(src) - 50)
        y = tvm.nd.array(np.empty(n, dtype=dst))
        func(x, y)
        np.testing.assert_equal(y.numpy(), x.numpy().astype(dst))


@program
def memory_usage_dlpack():
    a = np.arange(6, dtype="float32").reshape(2, 3)
    x = tvm.nd.array(a)
    y = tvm.nd.from_dlpack(x.to_dlpack())
    np.testing.assert_array_equal(y.numpy(), a)
    z = np.from_dlpack(x)
    np.testing.assert_array_equal(z, a)


@program
def device_properties():
    d = tvm.cpu(0)
    assert d.exist
    assert tvm.device("cpu", 0) == d
    assert tvm.device("llvm") == d
    assert d.device_type == 1
    assert d.device_id == 0
    assert not tvm.cuda(0).exist
    assert tvm.cuda(3).device_id == 3
    assert str(tvm.cuda(3)) == "cuda(3)"
    assert repr(tvm.rocm(1)) == "rocm(1)"
    assert tvm.device("cuda", 1) == tvm.cuda(1)
    assert tvm.device("nvptx") == tvm.cuda(0)
    d.sync()
    assert hash(tvm.cpu(0)) == hash(tvm.cpu(0))
    assert {tvm.cpu(0): 1}[tvm.cpu()] == 1
    assert tvm.device("opencl").device_type == 4
    assert tvm.device("metal").device_type == 8
    assert tvm.device("vulkan").device_type == 7
    assert tvm.ext_dev().device_type == 12
    with refusing(ValueError):
        tvm.device("nothing", 0)


@program
def datatype_parse():
    from tvm.runtime import DataType, DataTypeCode
    d = DataType("float32x4")
    assert d.lanes == 4
    assert d.bits == 32
    assert d.type_code == DataTypeCode.FLOAT
    assert str(d) == "float32x4"
    assert DataType("handle").bits == 64
    assert str(DataType("bool")) == "bool"
    assert DataType("int8") == DataType("int8")
    assert DataType("int8") != DataType("uint8")
    assert DataType("bfloat16").bits == 16
    assert DataType("int4").bits == 4
    with refusing((ValueError, tvm.TVMError)):
        DataType("wrong7")
