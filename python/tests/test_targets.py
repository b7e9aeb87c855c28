# SPDX-License-Identifier: Apache-2.0
"""Targets that list several processors, and what their options change, from Python."""
import os
import tempfile
import unittest

import numpy as np

import tilewright
from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor
from tilewright.classic.target import Target


class SeveralProcessors(unittest.TestCase):
    def test_are_one_library(self):
        x = relay.var("x", shape=(3, 40), dtype="float32")
        weight = np.random.default_rng(5).standard_normal((70, 40)).astype("float32")
        module = tw.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(weight)))))
        data = np.random.default_rng(6).standard_normal((3, 40)).astype("float32")
        for target in ("llvm -mcpu=x86-64-v2,x86-64-v3", Target("llvm -mcpu=x86-64-v2,x86-64-v3"), {"kind": "llvm", "mcpu": "x86-64-v2,x86-64-v3"}):
            lib = relay.build(module, target=target)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "net.so")
                lib.export_library(path)
                for name in ("x86-64-v2", "x86-64-v3", ""):
                    os.environ["TILEWRIGHT_ISA"] = name
                    try:
                        executor = graph_executor.GraphModule(tw.runtime.load_module(path)["default"](tw.cpu()))
                    finally:
                        del os.environ["TILEWRIGHT_ISA"]
                    executor.run(x=data)
                    np.testing.assert_allclose(executor.get_output(0).numpy(), np.maximum(data @ weight.T, 0), rtol=1e-4, atol=1e-4)

    def test_have_a_name(self):
        self.assertEqual(Target("portable").mcpu, "x86-64-v2,x86-64-v3,x86-64-v4")
        with self.assertRaises(tilewright.Error):
            Target("llvm -mcpu=x86-64-v2,x86-64-v3 -mattr=avx")


class BFloat16(unittest.TestCase):
    def test_products(self):
        rng = np.random.default_rng(3)
        x, w = rng.uniform(-1, 1, (5, 256)).astype("float32"), rng.uniform(-1, 1, (32, 256)).astype("float32")
        var = relay.var("x", shape=x.shape)
        module = tw.IRModule.from_expr(relay.Function([var], relay.nn.dense(var, relay.const(w))))
        outputs = {}
        for target in ("llvm", Target("llvm -math=bf16")):
            run = graph_executor.GraphModule(relay.build(module, target=target)["default"](tw.cpu()))
            run.run(x=x)
            outputs[str(target)] = run.get_output(0).numpy()
        model = tilewright.compile(module, math="bf16")
        exact, rounded = outputs.values()
        np.testing.assert_array_equal(np.asarray(model(x)), rounded)
        # Each of 256 products is off by up to two roundings of 2**-9, up or down.
        np.testing.assert_allclose(rounded, exact, atol=256 ** 0.5 * 2 ** -7)


if __name__ == "__main__":
    unittest.main()
