# SPDX-License-Identifier: Apache-2.0
"""What scripts met when they were run here for the first time."""
import os

import numpy as np
import tvm
from tvm import relay, te
from tvm.contrib import graph_executor, random, utils
from tvm.script import tir as T

from harness import program, raises


@program(False, None)
def no_compiler_of_ones_own_with_options(none):
    source = """
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/packed_func.h>
extern "C" TVM_DLL int twice_(DLTensor* a, DLTensor* b) {
  for (int i = 0; i < 3; ++i) static_cast<float*>(b->data)[i] = SCALE * static_cast<float*>(a->data)[i];
  return 0;
}
TVM_DLL_EXPORT_TYPED_FUNC(twice, twice_);
"""
    x = relay.var("x", shape=(3,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm")
    lib.lib.import_module(tvm.get_global_func("runtime.CSourceModuleCreate")(source, "c", ["twice"], []))
    folder = utils.tempdir()
    path = folder.relpath("net.so")
    lib.export_library(path, fcompile=none, options=["-O2", "-std=c++17", "-DSCALE=2", "-I" + os.environ["TW_INCLUDE"]])
    loaded = tvm.runtime.load_module(path)
    net = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    net.run(x=np.array([1, 2, 3], "float32"))
    assert net.get_output(0).numpy().tolist() == [2, 4, 6]


@program
def weights_of_any_name_are_not_zero():
    x, w, b = relay.var("x", shape=(1, 3, 8, 8)), relay.var("kernel_0", shape=(4, 3, 3, 3)), relay.var("shift", shape=(4,))
    body = relay.nn.bias_add(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4), b)
    _, params = relay.testing.create_workload(relay.Function([x, w, b], body))
    assert np.abs(params["kernel_0"].numpy()).min() > 0 and not params["shift"].numpy().any()


@program(("uniform", (2.0, 3.0), "float32"), ("randint", (5, 9), "int32"), ("normal", (100.0, 0.5), "float32"))
def random_tensors(name, args, dtype):
    drawn = getattr(random, name)(*args, size=(64, 32))
    doubled = te.compute(drawn.shape, lambda i, j: drawn[i, j] + drawn[i, j], name="doubled")
    build = tvm.build(te.create_schedule(doubled.op), [doubled], "llvm")
    first, second = (tvm.nd.empty((64, 32), dtype) for _ in range(2))
    build(first)
    build(second)
    low, high = {"uniform": (4, 6), "randint": (10, 16), "normal": (190, 210)}[name]
    assert low <= first.numpy().min() < first.numpy().max() <= high and (first.numpy() != second.numpy()).any()
    raises(ValueError, lambda: random.randint(0, 4, (2,), "float32"))


@program
def buffers_with_free_strides():
    a = te.placeholder((6, 8), name="a")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="b")
    schedule = te.create_schedule(b.op)
    free = tvm.tir.decl_buffer((6, 8), "float32", name="free", strides=[te.var("row"), 1])
    module = tvm.lower(schedule, [free, b], binds={a: free}, name="plus")
    value, out = np.random.rand(6, 8).astype("float32"), tvm.nd.empty((6, 8))
    tvm.build(module, "llvm")(tvm.nd.array(value), out)
    np.testing.assert_allclose(out.numpy(), value + 1)
    apart = tvm.tir.decl_buffer((6, 8), "float32", name="apart", strides=[16, 1])
    raises(ValueError, lambda: tvm.lower(schedule, [apart, b], binds={a: apart}))


@program
def summands_that_are_traced():
    seen = []
    tvm.register_func("first_tries.seen", lambda row, column, value: seen.append((row, column, value)), override=True)
    a, k = te.placeholder((3, 4), name="a"), te.reduce_axis((1, 4), name="k")
    b = te.compute((3,), lambda i: te.sum(tvm.tir.trace([i, k.var, a[i, k] * 2.0], "first_tries.seen"), axis=k), name="b")
    value, out = np.arange(12, dtype="float32").reshape(3, 4), tvm.nd.empty((3,))
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(tvm.nd.array(value), out)
    np.testing.assert_allclose(out.numpy(), 2 * value[:, 1:].sum(1))
    assert seen == [(i, j, 2 * value[i, j]) for i in range(3) for j in range(1, 4)]


@program
def functions_of_scripts_with_their_dtype():
    @T.prim_func
    def softplus(a: T.handle, b: T.handle) -> None:
        T.func_attr({"global_symbol": "softplus"})
        A = T.match_buffer(a, (4, 8), "float32")
        B = T.match_buffer(b, (4, 8), "float32")
        for i, j in T.grid(4, 8):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(T.likely(A[vi, vj] > T.float32(2), dtype="bool"), A[vi, vj], T.log(T.float32(1) + T.exp(A[vi, vj], dtype="float32"), dtype="float32"), dtype="float32") \
                    + T.call_llvm_pure_intrin("llvm.sqrt", T.uint32(1), T.cast(T.bitwise_and(i, 1, dtype="int32"), "float32"), dtype="float32")
    value, out = np.linspace(-3, 3, 32, dtype="float32").reshape(4, 8), tvm.nd.empty((4, 8))
    tvm.build(softplus, "llvm")(tvm.nd.array(value), out)
    wanted = np.where(value > 2, value, np.log1p(np.exp(value))) + np.array([[0], [1], [0], [1]])
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5)


@program
def scripts_of_lowered_functions():
    @T.prim_func
    def lowered(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (8,), "float32", align=128)
        B = T.match_buffer(b, (8,), "float32")
        T.preflattened_buffer(A, [2, 4], dtype="float32", data=A.data)
        T.attr("default", "pragma_note", 1)
        K = T.allocate_const([0, 1, 2, 3, 4, 5, 6, 7], "float32", [8])
        C = T.allocate([8], "float32", "global")
        D = T.buffer_decl([8], dtype="float32", data=C.data)
        assert True, "nothing"
        for i in T.serial(0, 8):
            with T.block("copy"):
                vi = T.axis.opaque(8, i)
                D[vi] = A[vi] * K[vi]
        with T.allocate([8], "float32", "global") as E:
            for i in T.serial(0, 8):
                T.store(E, i, T.load("float32", C, i) + T.float32(1), True)
            B[0:8] = E[0:8]
    value, out = np.random.rand(8).astype("float32"), tvm.nd.empty((8,))
    tvm.build(lowered.with_attr("global_symbol", "lowered"), "llvm")(tvm.nd.array(value), out)
    np.testing.assert_allclose(out.numpy(), value * np.arange(8) + 1, rtol=1e-6)


@program
def threads_of_scripts():
    text = """from tvm.script import tir as T
@T.prim_func
def f(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,), "float32")
    B = T.match_buffer(b, (8,), "float32")
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(tx, 8)
    B[tx] = A[tx]
"""
    assert 'thread="threadIdx.x"' in tvm.script.from_source(text).script()
    raises(ValueError, lambda: tvm.script.from_source(text.replace("T.env_thread", "T.var").replace("threadIdx.x", "int32")))
