# SPDX-License-Identifier: Apache-2.0
"""The Python package on a small ONNX model written here byte by byte. Runs under plain unittest: no packages but numpy."""
import os
import struct
import tempfile
import unittest

import numpy as np

import tilewright as tw


def varint(n):
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def field(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def value_info(name, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name.encode()) + field(2, field(1, field(1, 1) + field(2, shape)))


def model_bytes():
    """y = relu(x @ w + b): x (2, 3), w (3, 4)."""
    def tensor(name, array):
        return b"".join(field(1, d) for d in array.shape) + field(2, 1) + field(8, name.encode()) + field(9, array.tobytes())

    def node(op, inputs, output):
        return b"".join(field(1, i.encode()) for i in inputs) + field(2, output.encode()) + field(4, op.encode())

    graph = (field(1, node("MatMul", ["x", "w"], "m")) + field(1, node("Add", ["m", "b"], "s")) + field(1, node("Relu", ["s"], "y")) +
             field(2, b"g") + field(5, tensor("w", W)) + field(5, tensor("b", B)) + field(11, value_info("x", (2, 3))) + field(12, value_info("y", (2, 4))))
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 17))


W = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
B = np.array([1, -2, 3, -4], dtype=np.float32)
X = np.array([[1, 2, 3], [-1, 0.5, 2]], dtype=np.float32)
EXPECTED = np.maximum(X @ W + B, 0)


class Package(unittest.TestCase):
    def test_compile_call_export_load(self):
        model = tw.compile(model_bytes())
        np.testing.assert_allclose(model(X), EXPECTED, rtol=1e-6)
        np.testing.assert_allclose(model(x=X), EXPECTED, rtol=1e-6)
        self.assertEqual(model.inputs[0], ("x", "float32", (2, 3)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.so")
            model.export_library(path)
            np.testing.assert_allclose(tw.load(path, threads=1)(X), EXPECTED, rtol=1e-6)

    def test_classic_calls(self):
        mod, params = tw.relay.frontend.from_onnx(model_bytes(), {"x": (2, 3)})
        self.assertIn("def @main", mod.astext())
        with tw.transform.PassContext(opt_level=3):
            lib = tw.relay.build(mod, target="llvm", params=params)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.so")
            lib.export_library(path)
            loaded = tw.runtime.load_module(path)
            module = tw.contrib.graph_executor.GraphModule(loaded["default"](tw.cpu(0)))
            module.set_input("x", tw.nd.array(X))
            module.run()
            np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
            self.assertEqual(module.get_input_index("nope"), -1)
            self.assertEqual(module.get_input_info(), ({"x": (2, 3)}, {"x": "float32"}))
            self.assertEqual((module.get_num_inputs(), module.get_num_outputs()), (1, 1))

    def test_errors_are_typed(self):
        model = tw.compile(model_bytes())
        for call, code in ((lambda: model(X[:1]), 505), (lambda: model(X.astype(np.float64)), 506), (lambda: model(nope=X), 504),
                           (lambda: tw.compile(b"not a model"), 201), (lambda: tw.load("/nonexistent.so"), 102),
                           (lambda: tw.compile(model_bytes(), target="vax"), 401), (lambda: tw.compile(model_bytes(), math="loose"), 401)):
            with self.assertRaises(tw.Error) as raised:
                call()
            self.assertEqual(raised.exception.code, code)

    def test_strict_math_gives_the_same(self):
        np.testing.assert_allclose(tw.compile(model_bytes(), math="strict")(X), EXPECTED, rtol=1e-6)

    def test_opt_level_0_gives_the_same(self):
        with tw.transform.PassContext(opt_level=0):
            lib = tw.relay.build(tw.import_onnx(model_bytes()))
        executor = tw.contrib.graph_executor.GraphModule(lib["default"](tw.cpu()))
        executor.run(x=X)
        np.testing.assert_allclose(executor.get_output(0).numpy(), EXPECTED, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
