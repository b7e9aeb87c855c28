# SPDX-License-Identifier: Apache-2.0
"""The target stackvm from Python: byte code in the graph executor, in files, of tensor expressions; damaged files."""
import os
import pickle
import random
import tempfile
import unittest

import numpy as np

import tilewright.classic as tvm
from tilewright.classic import relay, te
from tilewright.classic.contrib import graph_executor
from tilewright.classic.relay import testing


def run(library, inputs):
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def small_net(seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(1, 3, 9, 7), dtype=dtype)
    y = relay.nn.relu(relay.nn.conv2d(x, relay.const(rng.standard_normal((5, 3, 3, 3)).astype(dtype)), padding=(1, 1)))
    y = relay.nn.max_pool2d(y, (2, 2), strides=(2, 2))
    y = relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(y), relay.const(rng.standard_normal((4, 60)).astype(dtype))))
    return tvm.IRModule.from_expr(y), rng.standard_normal((1, 3, 9, 7)).astype(dtype)


class Models(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tilewright-stackvm-")
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "n.stackvm")

    def test_a_build_is_exported_and_loaded(self):
        for level in (0, 3):
            mod, x = small_net()
            with tvm.transform.PassContext(opt_level=level):
                lib, other = relay.build(mod, "stackvm"), relay.build(mod, "llvm")
            expected = run(other, {"x": x})[0]
            np.testing.assert_allclose(run(lib, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
            lib.export_library(self.path)
            self.assertIsNotNone(tvm.get_global_func("runtime.module.loadfile_stackvm")(self.path, "stackvm"))
            for loaded in (tvm.runtime.load_module(self.path), tvm.runtime.load_module(self.path, "stackvm")):
                np.testing.assert_allclose(run(loaded, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
            self.assertIn("Load", lib.get_lib().get_source())
            again = pickle.loads(pickle.dumps(lib))
            np.testing.assert_allclose(run(again, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)

    def test_dtypes(self):
        for dtype, tolerance in (("float64", 1e-9), ("float16", 4e-3)):
            mod, x = small_net(1, dtype)
            np.testing.assert_allclose(run(relay.build(mod, "stackvm"), {"x": x})[0], run(relay.build(mod, "llvm"), {"x": x})[0], rtol=tolerance, atol=tolerance)
        x = relay.var("x", shape=(4, 33), dtype="int8")
        for body in (relay.cast(x, "int32") * relay.const(3), relay.right_shift(x, relay.const(1, "int8")), relay.sum(relay.cast(x, "int32"), axis=[1]),
                     relay.nn.dense(x, relay.const(np.arange(99, dtype="int8").reshape(3, 33)), out_dtype="int32"), relay.cast(relay.cast(x, "bool"), "uint8")):
            mod = tvm.IRModule.from_expr(body)
            value = np.random.default_rng(2).integers(-128, 128, (4, 33)).astype("int8")
            np.testing.assert_array_equal(run(relay.build(mod, "stackvm"), {"x": value})[0], run(relay.build(mod, "llvm"), {"x": value})[0])

    def test_zoo(self):
        for name, (mod, params) in {"resnet": testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32), num_classes=10), "mlp": testing.mlp.get_workload(1)}.items():
            with self.subTest(name):
                shape = [int(d) for d in mod["main"].params[0].checked_type.shape]
                x = {"data": np.random.default_rng(3).random(shape, "float32")}
                np.testing.assert_allclose(run(relay.build(mod, "stackvm", params=params), x)[0], run(relay.build(mod, "llvm", params=params), x)[0], rtol=1e-4, atol=1e-6)

    def test_what_it_cannot_be_is_said(self):
        mod, _ = small_net()
        lib = relay.build(mod, "stackvm")
        for name in ("n.so", "n.o", "n.a", "n.tar", "n.ll"):
            with self.assertRaisesRegex(tvm.TVMError, "byte code"):
                lib.export_library(os.path.join(self.folder.name, name))
        with self.assertRaisesRegex(tvm.TVMError, "makes no byte code"):
            relay.build(mod, "llvm").export_library(self.path)
        with self.assertRaisesRegex(tvm.TVMError, "E401"):
            relay.build(mod, "stackvm -mcpu=znver4")

    def test_damaged_files_are_refused(self):
        mod, _ = small_net()
        relay.build(mod, "stackvm").export_library(self.path)
        with open(self.path, "rb") as file:
            whole = file.read()
        chance = random.Random(7)
        code = whole.index(b"\0" * 256)  # weights have check sums of their own, which loading does not read
        for change in [*(("cut", chance.randrange(len(whole))) for _ in range(40)), *(("flip", chance.randrange(16, code)) for _ in range(200))]:
            kind, at = change
            damaged = whole[:at] if kind == "cut" else whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1:]
            with open(self.path, "wb") as file:
                file.write(damaged)
            with self.subTest(change), self.assertRaises(tvm.TVMError) as raised:
                tvm.runtime.load_module(self.path)
            self.assertIn(raised.exception.code, (501, 502))


class TensorExpressions(unittest.TestCase):
    def test_schedules_and_lists_of_them(self):
        n = te.var("n")
        A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
        C = te.compute((n,), lambda i: A[i] + B[i], name="C")
        s = te.create_schedule(C.op)
        outer, inner = s[C].split(C.op.axis[0], factor=4)
        s[C].parallel(outer)
        s[C].vectorize(inner)
        add = tvm.lower(s, [A, B, C], name="add")
        k = te.reduce_axis((0, 20), "k")
        M, N = te.placeholder((10, 20), name="M"), te.placeholder((20, 30), name="N")
        P = te.compute((10, 30), lambda i, j: te.sum(M[i, k] * N[k, j], axis=k), name="P")
        product = tvm.lower(te.create_schedule(P.op), [M, N, P], name="product")
        rng = np.random.default_rng(5)
        with tempfile.TemporaryDirectory(prefix="tilewright-stackvm-") as folder:
            path = os.path.join(folder, "f.stackvm")
            lib = tvm.build([add, product], target="stackvm")
            lib.export_library(path)
            for module in (lib, tvm.runtime.load_module(path)):
                for size in (1, 7, 64, 1001):
                    a, b = rng.random(size).astype("float32"), rng.random(size).astype("float32")
                    c = tvm.nd.empty((size,))
                    module["add"](tvm.nd.array(a), tvm.nd.array(b), c)
                    np.testing.assert_array_equal(c.numpy(), a + b)
                m, n_ = rng.random((10, 20)).astype("float32"), rng.random((20, 30)).astype("float32")
                p = tvm.nd.empty((10, 30))
                module["product"](tvm.nd.array(m), tvm.nd.array(n_), p)
                np.testing.assert_allclose(p.numpy(), m @ n_, rtol=1e-5)
                with self.assertRaises(tvm.TVMError):
                    module["product"](tvm.nd.array(m), tvm.nd.array(n_), tvm.nd.empty((10, 29)))

    def test_c_functions_are_refused(self):
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: tvm.tir.call_pure_extern("float32", "cosf", A[i]), name="B")
        with self.assertRaisesRegex(tvm.TVMError, "C functions, and the kernel calls 'cosf'"):
            tvm.build(te.create_schedule(B.op), [A, B], "stackvm")


if __name__ == "__main__":
    unittest.main()
