# SPDX-License-Identifier: Apache-2.0
"""The Python package on a small ONNX model written here byte by byte. Runs under plain unittest: no packages but numpy."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import tilewright as tw
from tilewright import classic


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


def free_model_bytes():
    """z = reshape(relu(x), shape): x (rows, 4) with rows free, shape (2) an input of int64."""
    def node(op, inputs, output):
        return b"".join(field(1, i.encode()) for i in inputs) + field(2, output.encode()) + field(4, op.encode())

    def free_info(name, elem, dims):
        shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d.encode())) for d in dims)
        return field(1, name.encode()) + field(2, field(1, field(1, elem) + field(2, shape)))

    graph = (field(1, node("Relu", ["x"], "r")) + field(1, node("Reshape", ["r", "shape"], "z")) + field(2, b"g") + field(11, free_info("x", 1, ("rows", 4))) +
             field(11, free_info("shape", 7, (2,))) + field(12, free_info("z", 1, ("a", "b"))))
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
        mod, params = classic.relay.frontend.from_onnx(model_bytes(), {"x": (2, 3)})
        self.assertIn("def @main", mod.astext())
        with classic.transform.PassContext(opt_level=3):
            lib = classic.relay.build(mod, target="llvm", params=params)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.so")
            lib.export_library(path)
            loaded = classic.runtime.load_module(path)
            module = classic.contrib.graph_executor.GraphModule(loaded["default"](classic.cpu(0)))
            module.set_input("x", classic.nd.array(X))
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

    def test_shape_variants(self):
        for shapes in ([(2, 4), (6, 4)], ([2, 6], 4), ({6, 2}, 4), "{2,6}x4"):
            model = tw.compile(free_model_bytes(), {"x": shapes}, constants={"shape": [4, -1]})
            self.assertEqual([[t.shape for t in inputs + outputs] for inputs, outputs in model.variants], [[(2, 4), (4, 2)], [(6, 4), (4, 6)]])
            for rows in (6, 2, 6):
                x = np.arange(-8, rows * 4 - 8, dtype=np.float32).reshape(rows, 4)
                np.testing.assert_array_equal(model(x), np.maximum(x, 0).reshape(4, -1))
            with self.assertRaises(tw.Error) as raised:
                model(np.zeros((3, 4), np.float32))
            self.assertEqual(raised.exception.code, 505)
        for shapes, error in (({"x": ([2, 6], [4, 4, 4])}, tw.Error), ({"x": (2, "four")}, TypeError), ({"x": 3}, TypeError), ({"x": (-2, 4)}, tw.Error),
                              ({"x": "2x{4"}, tw.Error), ({"x": [(2, 4)] * 65}, tw.Error), ({"y": (2, 4)}, tw.Error),
                              ({"x": [(2, 4), (6, 4)], "shape": [(2,), (2,), (2,)]}, tw.Error)):
            with self.assertRaises(error):
                tw.compile(free_model_bytes(), shapes, constants={"shape": "4,-1"})

    def test_free_sizes_become_a_program(self):
        for model in (tw.compile(free_model_bytes()), tw.compile(free_model_bytes(), {"shape": (2,)})):
            self.assertEqual([t.shape for t in model.inputs], [(-1, 4), (2,)])
            for rows in (2, 5, 2):
                x = np.arange(-4, rows * 4 - 4, dtype=np.float32).reshape(rows, 4)
                np.testing.assert_array_equal(model(x, np.array([4, -1])), np.maximum(x, 0).reshape(4, -1))
                self.assertEqual(model.outputs, [("z", "float32", (4, rows))])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "free.so")
            model.export_library(path)
            loaded = tw.load(path, threads=1)
        np.testing.assert_array_equal(loaded(x=x, shape=np.array([8, 1])), np.maximum(x, 0).reshape(8, 1))
        for call, code in ((lambda: model(x[0], np.array([4, -1])), 505), (lambda: model(x.astype(np.int32)), 506), (lambda: model(y=x), 504),
                           (lambda: model.set_input(2, x), 504), (lambda: tw.load(path), 102), (lambda: tw.compile(free_model_bytes(), {"x": (2, 4)})(x[:2]), 101)):
            with self.assertRaises(tw.Error) as raised:
                call()
            self.assertEqual(raised.exception.code, code)

    def test_constants(self):
        x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
        for value in ("2,-1", [2, -1], (2, 6), np.array([2, 6])):
            model = tw.compile(free_model_bytes(), {"x": (3, 4)}, constants={"shape": value}, kernel_cache=False)
            self.assertEqual([t.name for t in model.inputs], ["x"])
            np.testing.assert_array_equal(model(x), np.maximum(x, 0).reshape(2, -1))
        for constants, code in (({"shape": [2.5, 1]}, 101), ({"shape": np.array([2.0, 6.0])}, 506), ({"nope": 1}, 504), ({"shape": [1, 2, 3]}, 101)):
            with self.assertRaises(tw.Error) as raised:
                tw.compile(free_model_bytes(), {"x": (3, 4)}, constants=constants)
            self.assertEqual(raised.exception.code, code)
        with self.assertRaises(TypeError):
            tw.compile(free_model_bytes(), {"x": (3, 4)}, constants={"shape": ["two", object()]})
        with self.assertRaises(TypeError):
            tw.compile(classic.relay.frontend.from_onnx(model_bytes())[0], {"x": (2, 3)})
        with self.assertRaises(TypeError):
            tw.compile(7)

    def test_passes_and_kernel_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tw.compile(model_bytes(), required_passes=["SimplifyExpr"], disabled_passes=["FoldConstant"], opt_level=1, kernel_cache=folder,
                               config={"relay.FuseOps.max_depth": 1}, dump_ir=os.path.join(folder, "ir"), target=classic.Target("llvm"), jobs=1)
            np.testing.assert_allclose(model(X), EXPECTED, rtol=1e-6)
            cached = {n: os.stat(os.path.join(folder, n)).st_mtime_ns for n in os.listdir(folder) if n != "ir"}
            self.assertGreater(len(cached), 0)
            self.assertGreater(len(os.listdir(os.path.join(folder, "ir"))), 3)
            classic.relay.build(classic.relay.frontend.from_onnx(model_bytes())[0], "llvm", kernel_cache=False)
            self.assertEqual({n for n in os.listdir(folder)} - {"ir"}, set(cached))
        for wrong, code in ((dict(disabled_passes=["Nope"]), 305), (dict(config={"nope": 1}), 101)):
            with self.assertRaises(tw.Error) as raised:
                tw.compile(model_bytes(), **wrong)
            self.assertEqual(raised.exception.code, code)

    def test_strict_math_gives_the_same(self):
        np.testing.assert_allclose(tw.compile(model_bytes(), math="strict")(X), EXPECTED, rtol=1e-6)

    def test_opt_level_0_gives_the_same(self):
        with classic.transform.PassContext(opt_level=0):
            lib = classic.relay.build(classic.relay.frontend.from_onnx(model_bytes())[0], "llvm")
        executor = classic.contrib.graph_executor.GraphModule(lib["default"](classic.cpu()))
        executor.run(x=X)
        np.testing.assert_allclose(executor.get_output(0).numpy(), EXPECTED, rtol=1e-6)


class TestGuide(unittest.TestCase):
    """docs/python.md names only what is there."""

    def test_every_name_it_writes_out_exists(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")
        if not os.path.exists(path):
            self.skipTest("no docs beside the tests")
        with open(path, encoding="utf-8") as file:
            names = set(re.findall(r"(?<![\w./])((?:tw|tvm|relay)(?:\.[A-Za-z_]\w*)+)", file.read()))
        self.assertGreater(len(names), 40)
        program = f"""if True:
            import tilewright as tw
            from tilewright import classic as tvm
            from tilewright.classic import relay
            for name in {sorted(names - {"relay.NAME", "relay.nn.mine"})}:
                found = {{"tw": tw, "tvm": tvm, "relay": relay}}[name.split(".")[0]]
                for part in name.split(".")[1:]:
                    found = getattr(found, part)
        """
        # A process of its own: what other tests have imported must not help.
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
