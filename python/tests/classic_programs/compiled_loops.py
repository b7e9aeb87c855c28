# SPDX-License-Identifier: Apache-2.0
"""Loops by hand, compiled: pipelines, divisions, calls, C and byte code."""
import json, os, math, ctypes, re

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import te, tir, ir, topi, relay, runtime
from tvm.contrib import utils, clang, cc
from tvm.script import tir as T
import numpy as np
import tvm
import tvm.testing


nx = 64


def run(s, args, *arrays, target="llvm", name="f"):
    f = tvm.build(s, args, target, name=name)
    nd = [tvm.nd.array(a) for a in arrays]
    f(*nd)
    return [a.numpy() for a in nd]


@program
def llvm_lookup_intrin():
    ib = tir.ir_builder.create()
    A = ib.pointer("uint8x8", name="A")
    z = tir.const(0, "int32")
    x = tir.call_llvm_pure_intrin("uint8x8", "llvm.ctpop.v8i8", tir.const(1, "uint32"), A[z])
    ib.emit(x)
    assert ib.get() is not None


@program
def llvm_large_uintimm():
    value = (1 << 63) + 123
    other = tir.const(3, "uint64")
    A = te.compute((), lambda: tir.const(value, "uint64") + other, name="A")
    s = te.create_schedule(A.op)
    f = tvm.build(s, [A], "llvm")
    a = tvm.nd.array(np.zeros((), "uint64"))
    f(a)
    assert a.numpy() == value + 3


@program
def llvm_multi_parallel():
    n = 128
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + 1, name="B")
    C = te.compute(A.shape, lambda *i: te.sqrt(B(*i)) * 2 + 2, name="C")
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=8)
    xo1, xo2 = s[C].split(xo, nparts=1)
    s[B].compute_at(s[C], xo1)
    s[B].parallel(s[B].op.axis[0])
    s[C].parallel(xo2)
    a = numbers(n, low=0, high=1)
    _, c = run(s, [A, C], a, np.zeros(n, "float32"))
    np.testing.assert_allclose(c, np.sqrt(a + 1) * 2 + 2, rtol=1e-05)


@program
def llvm_flip_pipeline():
    for nn, base in ((4, 0), (128, 8), (3, 0)):
        n = nn
        A = te.placeholder((n + base,), name="A")
        C = te.compute((n,), lambda i: A(nn + base - i - 1), name="C")
        s = te.create_schedule(C.op)
        xo, xi = s[C].split(C.op.axis[0], factor=4)
        s[C].parallel(xo)
        s[C].vectorize(xi)
        a = numbers(n + base)
        _, c = run(s, [A, C], a, np.zeros(n, "float32"))
        np.testing.assert_allclose(c, a[::-1][:n])


@program
def llvm_vadd_pipeline():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i], name="C")
    D = te.compute(A.shape, lambda i: C[i] + B[i], name="D")
    s = te.create_schedule(D.op)
    xo, xi = s[D].split(D.op.axis[0], factor=4)
    a, b = (numbers(64), numbers(64, seed=2))
    _, _, d = run(s, [A, B, D], a, b, np.zeros(64, "float32"))
    np.testing.assert_allclose(d, a + b)


@program
def llvm_madd_pipeline():
    for nn, base, stride in ((64, 0, 2), (4, 0, 1), (4, 4, 3)):
        A = te.placeholder((nn + base, stride), name="A")
        C = te.compute((nn, stride), lambda i, j: A(base + i, j) + 1, name="C")
        s = te.create_schedule(C.op)
        xo, xi = s[C].split(C.op.axis[0], factor=4)
        s[C].parallel(xo)
        s[C].vectorize(xi)
        a = numbers(nn + base, stride)
        _, c = run(s, [A, C], a, np.zeros((nn, stride), "float32"))
        np.testing.assert_allclose(c, a[base:] + 1, rtol=1e-06)


@program
def llvm_temp_space():
    A = te.placeholder((nx,), name="A")
    B = te.compute(A.shape, lambda i: A(i) + 1, name="B")
    C = te.compute(A.shape, lambda i: B(i) + 1, name="C")
    s = te.create_schedule(C.op)
    a = numbers(nx)
    _, c = run(s, [A, C], a, np.zeros(nx, "float32"))
    np.testing.assert_allclose(c, a + 2, rtol=1e-06)


@program
def multiple_func():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda *i: A(*i) + B(*i), name="C")
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=4)
    s[C].parallel(xo)
    f2 = tvm.lower(s, [A, B, C], name="fadd1")
    f1 = tvm.lower(s, [A, B, C], name="fadd2")
    m = tvm.build([f1, f2], "llvm")
    a, b, c = (tvm.nd.array(numbers(10)), tvm.nd.array(numbers(10, seed=3)), tvm.nd.empty((10,)))
    m["fadd1"](a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    m["fadd2"](a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


@program
def llvm_condition():
    n, offset = (64, 8)
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: tir.if_then_else(i >= offset, A[i], 0.0), name="C")
    s = te.create_schedule(C.op)
    a = numbers(n)
    _, c = run(s, [A, C], a, np.zeros(n, "float32"))
    w = a.copy()
    w[:offset] = 0
    np.testing.assert_allclose(c, w)


@program
def llvm_bool():
    n = 64
    A = te.placeholder((n,), name="A", dtype="int32")
    C = te.compute((n,), lambda i: A[i].equal(1).astype("float"), name="C")
    s = te.create_schedule(C.op)
    a = np.random.RandomState(0).randint(0, 2, n).astype("int32")
    _, c = run(s, [A, C], a, np.zeros(n, "float32"))
    np.testing.assert_allclose(c, a == 1)


@program
def rank_zero():
    A = te.placeholder((64,), name="A")
    scale = te.placeholder((), name="scale")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((), lambda: te.sum(A[k] * scale(), axis=k), name="C")
    D = te.compute((), lambda: C() + 1)
    s = te.create_schedule(D.op)
    a = numbers(64)
    sc = np.array(2.0, "float32")
    _, _, d = run(s, [A, scale, D], a, sc, np.zeros((), "float32"))
    np.testing.assert_allclose(d, a.sum() * 2 + 1, rtol=0.0001)


@program
def rank_zero_bound_checkers():
    A = te.placeholder((16,), name="A")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((), lambda: te.sum(A[k], axis=k), name="C")
    s = te.create_schedule(C.op)
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        a = numbers(16)
        _, c = run(s, [A, C], a, np.zeros((), "float32"))
        np.testing.assert_allclose(c, a.sum(), rtol=0.0001)


@program
def alignment():
    n = tvm.runtime.convert(1024)
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: A[i] * 3, name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=8)
    s[B].vectorize(tx)
    f = tvm.build(s, [A, B], "llvm", name="test_alignment")
    assert "align" in f.get_source()


@program("int8", "int32", "uint8", "uint32", "int64")
def llvm_div(dtype):
    A, B = (te.placeholder((16,), dtype, name="A"), te.placeholder((16,), dtype, name="B"))
    outs = [te.compute((16,), lambda i: o(A[i], B[i]), name=n) for n, o in (("td", tir.truncdiv), ("tm", tir.truncmod), ("fd", te.floordiv), ("fm", te.floormod))]
    s = te.create_schedule([o.op for o in outs])
    rs = np.random.RandomState(1)
    lo = 0 if dtype[0] == "u" else -50
    a = rs.randint(lo, 50, 16).astype(dtype)
    b = rs.randint(1, 20, 16).astype(dtype)
    z = [np.zeros(16, dtype) for _ in range(4)]
    r = run(s, [A, B, *outs], a, b, *z)
    A64, B64 = (a.astype("int64"), b.astype("int64"))
    np.testing.assert_array_equal(r[2], np.trunc(A64 / B64).astype(dtype))
    np.testing.assert_array_equal(r[4], A64 // B64)
    np.testing.assert_array_equal(r[5], A64 % B64)


@program
def llvm_fp_math():
    n = 16
    A = te.placeholder((n,), name="A")
    for name, ref, lo in (("te.recip", lambda a: 1 / a, 0.1), ("sigmoid", lambda a: 1 / (1 + np.exp(-a)), -3)):
        B = te.compute((n,), lambda i: te.div(1.0, A[i]) if name == "te.recip" else te.sigmoid(A[i]), name="B")
        s = te.create_schedule(B.op)
        a = numbers(n, low=lo, high=5)
        _, b = run(s, [A, B], a, np.zeros(n, "float32"))
        np.testing.assert_allclose(b, ref(a), rtol=1e-05)


@program
def dwarf_debug_information():
    A = te.placeholder((1024,), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    m = tvm.build(s, [A, B], "llvm", name="fadd1")
    t = utils.tempdir()
    o = t.relpath("t.o")
    m.save(o)
    assert os.path.getsize(o) > 0
    ll = t.relpath("t.ll")
    m.save(ll)
    assert re.search("define", open(ll).read())


@program
def llvm_shuffle():
    a = te.placeholder((8,), "int32")
    b = te.placeholder((8,), "int32")
    c = te.compute((8,), lambda x: a[x] + b[7 - x])
    s = te.create_schedule(c.op)
    x, y = (np.arange(8, dtype="int32"), np.arange(8, dtype="int32") * 3)
    _, _, z = run(s, [a, b, c], x, y, np.zeros(8, "int32"))
    np.testing.assert_array_equal(z, x + y[::-1])


@program
def llvm_bf16():
    n = 32
    A = te.placeholder((n,), dtype="bfloat16", name="A")
    B = te.compute((n,), lambda i: A[i].astype("float32") + 1.0, name="B")
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], "llvm")
    assert f is not None


@program
def llvm_crt_static_lib():
    A = te.placeholder((32,), "float32")
    B = te.compute((32,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    m = tvm.build(s, [A, B], "llvm", runtime=relay.backend.Runtime("crt", {"system-lib": True}))
    t = utils.tempdir()
    m.save(t.relpath("test.o"))
    assert os.path.exists(t.relpath("test.o"))


@program
def llvm_lower_atomic_and_parallel_for():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    a = numbers(8, 8)
    _, b = run(s, [A, B], a, np.zeros((8, 8), "float32"))
    np.testing.assert_array_equal(b, a.T)


@program
def llvm_gpu_lower_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    with refusing(Exception):
        tvm.build(s, [A, B], "llvm")


@program
def llvm_import():
    cc_code = 'extern "C" float my_add(float x, float y) { return x + y; }'
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda *i: tir.call_pure_extern("float32", "my_add", A(*i), 1.0), name="B")
    if clang.find_clang(required=False):
        t = utils.tempdir()
        ll = clang.create_llvm(cc_code, output=t.relpath("t.ll"))
        s = te.create_schedule(B.op)
        s[B].pragma(s[B].op.axis[0], "import_llvm", ll)
        a = numbers(10)
        _, b = run(s, [A, B], a, np.zeros(10, "float32"))
        np.testing.assert_allclose(b, a + 1, rtol=1e-06)


@program
def c_host_add():
    A, B = (te.placeholder((nx,), name="A"), te.placeholder((nx,), name="B"))
    C = te.compute(A.shape, lambda *i: A(*i) + B(*i), name="C")
    s = te.create_schedule(C.op)
    m = tvm.build(s, [A, B, C], "c", name="test_fadd")
    t = utils.tempdir()
    p = t.relpath("t.so")
    m.export_library(p)
    f = tvm.runtime.load_module(p)["test_fadd"]
    a, b, c = (tvm.nd.array(numbers(nx)), tvm.nd.array(numbers(nx, seed=3)), tvm.nd.empty((nx,)))
    f(a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


@program
def c_host_reinterpret_ceil_floor_round():
    A = te.placeholder((nx,), name="A", dtype="int32")
    B = te.compute(A.shape, lambda *i: tir.call_intrin("float32", "tir.reinterpret", 2 + A(*i)), name="B")
    s = te.create_schedule(B.op)
    m = tvm.build(s, [A, B], "c", name="f")
    t = utils.tempdir()
    m.export_library(t.relpath("t.so"))
    f = tvm.runtime.load_module(t.relpath("t.so"))["f"]
    a = np.random.RandomState(0).randint(-2 ** 30, 2 ** 30, nx).astype("int32")
    b = tvm.nd.empty((nx,))
    f(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy().view("int32"), a + 2)
    for o, r in ((te.ceil, np.ceil), (te.floor, np.floor), (te.round, None)):
        X = te.placeholder((nx,), name="X")
        Y = te.compute((nx,), lambda i: o(X[i]))
        m = tvm.build(te.create_schedule(Y.op), [X, Y], "c", name="g")
        m.export_library(t.relpath("u.so"))
        x = numbers(nx, low=-5, high=5)
        y = tvm.nd.empty((nx,))
        tvm.runtime.load_module(t.relpath("u.so"))["g"](tvm.nd.array(x), y)
        if r:
            np.testing.assert_array_equal(y.numpy(), r(x))


@program
def call_packed_in_module():
    mod = tvm.IRModule()

    @tvm.register_func("suite.mypack", override=True)
    def pk(a):
        a.copyfrom(np.full(a.shape, 7, "float32"))
    A = te.placeholder((4,), name="A")
    C = te.extern(A.shape, [A], lambda ins, outs: tir.call_packed("suite.mypack", outs[0]), dtype="float32", name="C")
    s = te.create_schedule(C.op)
    _, c = run(s, [A, C], numbers(4), np.zeros(4, "float32"))
    assert (c == 7).all()


@program
def extern_te():

    @tvm.register_func("suite.ext", override=True)
    def ext(x, y):
        y.copyfrom(x.numpy() * 2)
    A = te.placeholder((4,), name="A")
    B = te.extern(A.shape, [A], lambda i, o: tir.call_packed("suite.ext", i[0], o[0]))
    s = te.create_schedule(B.op)
    a = numbers(4)
    _, b = run(s, [A, B], a, np.zeros(4, "float32"))
    np.testing.assert_allclose(b, a * 2)


@program
def x86_fp16_and_bool_outputs():
    A = te.placeholder((8,), "float16", name="A")
    B = te.compute((8,), lambda i: A[i] > tir.const(0.0, "float16"), name="B")
    s = te.create_schedule(B.op)
    a = numbers(8).astype("float16")
    _, b = run(s, [A, B], a, np.zeros(8, "bool"))
    np.testing.assert_array_equal(b, a > 0)


@program
def stackvm_target():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    a = numbers(4)
    _, b = run(s, [A, B], a, np.zeros(4, "float32"), target="stackvm")
    np.testing.assert_allclose(b, a + 1)


@program
def get_source_formats():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="g")
    assert "define" in f.get_source("ll")
    assert "g" in f.get_source("asm")
    assert f.get_source() == f.get_source("ll")


@program
def target_in_scope_build():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    with tvm.target.Target("llvm"):
        f = tvm.build(s, [A, B])
    f = tvm.build(tvm.lower(s, [A, B]), target="llvm")
    f = tvm.build({"llvm": tvm.lower(s, [A, B], name="z")})
    assert f["z"]


@program
def scalar_args():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    k = te.var("k", "float32")
    B = te.compute((n,), lambda i: A[i] * k)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, k, B], "llvm")
    a, b = (tvm.nd.array(numbers(5)), tvm.nd.empty((5,)))
    f(a, 3.0, b)
    np.testing.assert_allclose(b.numpy(), a.numpy() * 3, rtol=1e-06)


@program("llvm", "c", "stackvm")
def elements_of_data(target):
    """T.load and T.store count elements from the first, whatever the buffer's dimensions."""
    @T.prim_func
    def plus_one(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (4, 8), "float32")
        B = T.match_buffer(b, (4, 8), "float32")
        for i in T.serial(0, 32):
            T.store(B.data, i, T.load("float32", A.data, i) + T.float32(1), True)

    @T.prim_func
    def twice(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (32,), "float32")
        B = T.match_buffer(b, (32,), "float32")
        C = T.allocate([32], "float32", "global")
        for i in T.serial(0, 8):
            T.store(C, T.ramp(i * 4, 1, 4), T.load("float32x4", A.data, T.ramp(i * 4, 1, 4), T.broadcast(True, 4)) * T.broadcast(T.float32(2), 4), T.broadcast(True, 4))
        for i in T.serial(0, 32):
            T.store(B.data, i, T.load("float32", C, i), True)
    for function, shape, wanted in ((plus_one, (4, 8), lambda x: x + 1), (twice, (32,), lambda x: x * 2)):
        x, y = numbers(*shape), tvm.nd.empty(shape)
        tvm.build(function, target=target)(tvm.nd.array(x), y)
        np.testing.assert_array_equal(y.numpy(), wanted(x))
    text = "@T.prim_func\ndef f(a: T.handle) -> None:\n    A = T.match_buffer(a, (4,), 'float32')\n    for i in T.serial(0, 4):\n        T.store({}, i, T.cast(T.load('{}', A.data, i), 'float32'))\n"
    with refusing(Exception, "int8 is read of 'A'"):
        tvm.script.from_source(text.format("A.data", "int8"))
    with refusing(Exception, "T.store is of a buffer or its data, and 'i' is none"):
        tvm.script.from_source(text.format("i", "float32"))
