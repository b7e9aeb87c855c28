# SPDX-License-Identifier: Apache-2.0
"""The target c from Python: source text, libraries made by the system's C compiler, and the graph executor on them."""
import os
import subprocess
import tempfile
import unittest

import numpy as np

import tilewright.classic as tvm
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor
from tilewright.classic.relay import testing

STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]


def small_net(seed=0):
    """A convolution, a pool and a product, with their weights and an input."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(1, 3, 9, 7))
    y = relay.nn.relu(relay.nn.conv2d(x, relay.var("w", shape=(5, 3, 3, 3)), padding=(1, 1)))
    y = relay.nn.max_pool2d(y, (2, 2), strides=(2, 2))
    y = relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(y), relay.var("v", shape=(4, 60))))
    params = {"w": rng.standard_normal((5, 3, 3, 3)).astype("float32"), "v": rng.standard_normal((4, 60)).astype("float32")}
    return tvm.IRModule.from_expr(y), params, rng.standard_normal((1, 3, 9, 7)).astype("float32")


def run(library, inputs):
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


class Source(unittest.TestCase):
    def test_a_build_for_c_runs_in_the_graph_executor(self):
        mod, params, x = small_net()
        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(mod, tvm.target.Target("c -keys=cpu -mcpu=cortex-m7"), params=params)
            other = relay.build(mod, "llvm", params=params)
        wanted = run(other, {"x": x})
        np.testing.assert_allclose(run(lib, {"x": x})[0], wanted[0], rtol=1e-4, atol=1e-6)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("net.so", "net.tar", "net.o"):
                path = os.path.join(folder, name)
                lib.export_library(path)
                np.testing.assert_allclose(run(tvm.runtime.load_module(path), {"x": x})[0], wanted[0], rtol=1e-4, atol=1e-6)
            linked = os.path.join(folder, "linked.so")
            lib.export_library(linked, cc="gcc", options=["-O2", "-lm"])
            np.testing.assert_allclose(run(tvm.runtime.load_module(linked), {"x": x})[0], wanted[0], rtol=1e-4, atol=1e-6)

    def test_source_is_strict_c99_and_saved(self):
        mod, params, _ = small_net(1)
        lib = relay.build(mod, "c", params=params).lib
        text = lib.get_source()
        self.assertTrue("void default_run(const float *x, float *output_0, void *workspace)" in text)
        self.assertEqual(text, lib.get_source("c"))
        self.assertTrue("/* nn.contrib_conv2d_NCHWc+nn.relu" in text)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.c")
            lib.save(path)
            with open(path) as file:
                self.assertEqual(file.read(), text)
            made = subprocess.run(["gcc", *STRICT, "-c", path, "-o", os.path.join(folder, "net.o")], capture_output=True, text=True)
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            with self.assertRaisesRegex(tvm.TVMError, "the target c makes C source"):
                lib.save(os.path.join(folder, "net.ll"))
        with self.assertRaisesRegex(ValueError, "no text form 'll'; there is c"):
            lib.get_source("ll")
        with self.assertRaisesRegex(ValueError, "no text form 'c'; there is ll and s"):
            relay.build(mod, "llvm", params=params).lib.get_source("c")

    def test_steps_of_tiles_begin_with_their_loads(self):
        x = relay.var("x", shape=(128, 384))
        mod = tvm.IRModule.from_expr(relay.nn.dense(x, relay.const(np.ones((384, 384), "float32"))))
        text = relay.build(mod, "c -mcpu=haswell").lib.get_source()
        steps = text.split("tw_keep_order();\n")[1:]
        self.assertGreater(len(steps), 1)
        for step in steps:
            self.assertRegex(step.splitlines()[0] + step.splitlines()[1], r"^ *(b_cols_0 = \*\(const tw_f32x8_at|__builtin_prefetch)")
        self.assertNotIn("tw_keep_order", relay.build(mod, "c").lib.get_source())

    def test_models_of_the_testing_folder(self):
        for name, (mod, params) in {"mlp": testing.mlp.get_workload(1), "dqn": testing.dqn.get_workload(1, image_shape=(4, 40, 40))}.items():
            with self.subTest(name):
                shape = [int(d) for d in mod["main"].params[0].checked_type.shape]
                x = {"data": np.random.default_rng(3).random(shape, "float32")}
                np.testing.assert_allclose(run(relay.build(mod, "c", params=params), x)[0], run(relay.build(mod, "llvm", params=params), x)[0], rtol=1e-4, atol=1e-6)

    def test_a_virtual_machine_and_functions_of_te_for_c(self):
        mod, params, x = small_net(2)
        machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "c", params=params), tvm.cpu())
        np.testing.assert_allclose(machine.run(x).numpy(), run(relay.build(mod, "llvm", params=params), {"x": x})[0], rtol=1e-4, atol=1e-6)

    def test_hosts_and_kinds_without_code(self):
        mod, params, x = small_net(3)
        lib = relay.build(mod, tvm.target.Target("c", host="c"), params=params)
        self.assertEqual(run(lib, {"x": x})[0].shape, (1, 4))
        with self.assertRaisesRegex(tvm.TVMError, "code is not generated for target kind 'hybrid'"):
            relay.build(mod, "hybrid", params=params)


if __name__ == "__main__":
    unittest.main()
