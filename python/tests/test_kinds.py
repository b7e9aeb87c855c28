# SPDX-License-Identifier: Apache-2.0
"""Builds by the name of their kind (target.build.<kind>), and modules without functions."""
import os
import tempfile
import unittest

import numpy as np

import tilewright.classic as tvm
from tilewright.classic import relay, te
from tilewright.classic.contrib import graph_executor


def run(library, inputs):
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


class Kinds(unittest.TestCase):
    """Functions by name that build for a kind of target, and modules without functions."""

    def test_builds_by_name(self):
        A = te.placeholder((16,), name="A")
        B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
        mod = tvm.lower(te.create_schedule(B.op), [A, B], name="more")
        for kind in ("llvm", "c", "stackvm"):
            for target in (tvm.target.Target(kind), kind, None):
                lib = tvm.get_global_func(f"target.build.{kind}")(mod, target)
                b = tvm.nd.empty((16,))
                lib["more"](tvm.nd.array(np.arange(16, dtype="float32")), b)
                np.testing.assert_array_equal(b.numpy(), np.arange(1, 17, dtype="float32"))

    def test_modules_without_functions(self):
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] * 3.0, name="B")
        with tempfile.TemporaryDirectory(prefix="tilewright-stackvm-") as folder:
            for empty, ending in ((tvm.build(tvm.IRModule({}), target="llvm"), "so"), (tvm.build(tvm.lower(te.create_schedule(B.op), [A, B]).__class__(), target="stackvm"), "stackvm"),
                                  (tvm.get_global_func("codegen.LLVMModuleCreate")("llvm", "empty"), "so")):
                self.assertEqual(empty.get_function("get_func_names")(), [])
                path = os.path.join(folder, f"empty.{ending}")
                empty.export_library(path)
                loaded = tvm.runtime.load_module(path)
                self.assertFalse(loaded.implements_function("B"))
            x = relay.var("x", shape=(3,))
            identity = tvm.IRModule.from_expr(relay.Function([x], x))
            for target, ending in (("llvm", "so"), ("stackvm", "stackvm")):
                path = os.path.join(folder, f"identity.{ending}")
                relay.build(identity, target).export_library(path)
                np.testing.assert_array_equal(run(tvm.runtime.load_module(path), {"x": np.arange(3, dtype="float32")})[0], np.arange(3, dtype="float32"))

    def test_c_source_by_name(self):
        made = tvm.get_global_func("codegen.CSourceModuleCreate")("int one(void) { return 1; }\n", "c", ["one"], [])
        self.assertEqual((made.type_key, made.get_source()), ("c", "int one(void) { return 1; }\n"))

    def test_functions_for_ext_dev_are_those_of_its_host(self):
        A = te.placeholder((8,), name="a")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="b")
        s = te.create_schedule(B.op)
        x, y = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.array(np.zeros(8, "float32"))
        for target, host in (("ext_dev", None), (tvm.target.Target("ext_dev", host="llvm -mcpu=x86-64"), None), ("ext_dev", "llvm")):
            lib = tvm.build(s, [A, B], target, host)
            self.assertEqual(lib.type_key, "llvm")
            lib(x, y)
            np.testing.assert_array_equal(y.numpy(), x.numpy() + 1)
        with self.assertRaisesRegex(ValueError, r'give it one: Target\("ext_dev", host="llvm"\)'):
            relay.build(tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,)))), "ext_dev")
        with self.assertRaisesRegex(ValueError, "no memory on cuda"):
            tvm.nd.array(np.zeros(2), tvm.cuda(0))

    def test_arrays_on_ext_dev(self):
        values = np.arange(6, dtype="float32").reshape(2, 3)
        there = tvm.nd.array(values, tvm.ext_dev(0))
        self.assertEqual((there.device, there.device.exist, tvm.cpu(0).exist), (tvm.ext_dev(0), True, True))
        back = there.copyto(tvm.cpu(0))
        self.assertEqual(back.device, tvm.cpu(0))
        np.testing.assert_array_equal(back.numpy(), values)
        space = tvm.nd.empty((2, 3), "float32", tvm.ext_dev(0))
        back.copyto(space)
        values[:] = 0  # of copies
        np.testing.assert_array_equal(space.numpy(), there.numpy())
        space.copyto(back.copyto(tvm.ext_dev(0)))
        A = te.placeholder((2, 3), name="A")
        B = te.compute((2, 3), lambda i, j: A[i, j] + 1, name="B")
        add = tvm.build(te.create_schedule(B.op), [A, B], tvm.target.Target("ext_dev", host="llvm"))
        add(there, space)
        np.testing.assert_array_equal(space.numpy(), there.numpy() + 1)
        self.assertGreater(add.time_evaluator(add.entry_name, tvm.ext_dev(0), number=1)(there, space).mean, 0)


if __name__ == "__main__":
    unittest.main()
