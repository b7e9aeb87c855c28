# SPDX-License-Identifier: Apache-2.0
"""Operators of classic scripts against numpy: layouts, operators made of others, quantised ones, and names that are not here."""
import functools
import os
import unittest

import numpy as np

from tilewright import classic as tw
from tilewright.classic import relay

rng = np.random.default_rng(3)


def rand(*shape):
    return rng.standard_normal(shape).astype("float32")


def run(outputs, values, kind="graph"):
    """Expressions over variables by name, built as one function, on numpy values."""
    body = relay.Tuple([relay.expr._like(o) for o in outputs])
    function = relay.Function(relay.analysis.free_vars(body), body)
    made = relay.create_executor(kind, tw.IRModule.from_expr(function)).evaluate()
    return [out.numpy() for out in made(**values)]


class Layouts(unittest.TestCase):
    def test_channels_last(self):
        x, w, w3, v = rand(1, 6, 7, 3), rand(3, 3, 3, 4), rand(2, 2, 2, 3, 2), rand(1, 4, 5, 6, 3)
        data, volume = relay.var("x", shape=x.shape), relay.var("v", shape=v.shape)
        conv = relay.nn.conv2d(data, relay.const(w), padding=(1, 1), channels=4, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
        pooled = relay.nn.max_pool2d(relay.nn.relu(conv), (2, 2), (2, 2), layout="NHWC")
        deep = relay.nn.conv3d(volume, relay.const(w3), data_layout="NDHWC", kernel_layout="DHWIO")
        got = run([conv, pooled, deep, relay.nn.global_avg_pool2d(data, "NHWC"), relay.nn.avg_pool3d(volume, (2, 2, 2), (2, 2, 2), layout="NDHWC")], {"x": x, "v": v})
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        expected = sum(padded[:, i:i + 6, j:j + 7] @ w[i, j] for i in range(3) for j in range(3))
        np.testing.assert_allclose(got[0], expected, rtol=1e-4, atol=1e-4)
        relu = np.maximum(expected, 0)[:, :6, :6]
        np.testing.assert_allclose(got[1], relu.reshape(1, 3, 2, 3, 2, 4).max(axis=(2, 4)), rtol=1e-4, atol=1e-4)
        expected = sum(v[:, a:a + 3, b:b + 4, c:c + 5] @ w3[a, b, c] for a in range(2) for b in range(2) for c in range(2))
        np.testing.assert_allclose(got[2], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(got[3], x.mean(axis=(1, 2), keepdims=True), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[4], v[:, :, :4].reshape(1, 2, 2, 2, 2, 3, 2, 3)[..., :, :].mean(axis=(2, 4, 6)), rtol=1e-4, atol=1e-5)


class Made(unittest.TestCase):
    """Operators without a kernel of their own."""

    def test_by_the_compiler(self):
        x, i, n = rand(2, 3, 8), rng.integers(-4, 4, (3, 4)).astype("int32"), rand(1, 2, 8, 8)
        a, b, m = relay.var("x", shape=x.shape), relay.var("i", shape=i.shape, dtype="int32"), relay.var("n", shape=n.shape)
        grid = relay.meshgrid([relay.const(np.arange(2, dtype="float32")), relay.const(np.arange(3, dtype="float32"))])
        got = run([relay.variance(a, 1, unbiased=True), relay.logsumexp(a, 2), relay.argmax(a), relay.cumsum(b), relay.one_hot(b, 1, 0, 4, -1, "int32"),
                   relay.trilu(a, relay.const(1, "int64")), relay.gather_nd(a, relay.const(np.array([[0, 1], [2, -3]]))), grid[1], relay.any(relay.cast(b, "bool"), 0),
                   relay.nn.adaptive_max_pool2d(m, (3, 5)), relay.nn.mirror_pad(m, ((0, 0), (0, 0), (1, 2), (0, 3))), relay.nn.upsampling(m, 2, 3),
                   relay.zeros_like(b), relay.full_like(a, relay.const(2.0)), relay.nn.dense(relay.cast(b, "int8"), relay.const(np.ones((2, 4), "int8")), out_dtype="int32"),
                   relay.zeros_like(m)],
                  {"x": x, "i": i, "n": n})
        adaptive = np.stack([np.stack([n[:, :, r * 8 // 3:-(-(r + 1) * 8 // 3), c * 8 // 5:-(-(c + 1) * 8 // 5)].max(axis=(2, 3)) for c in range(5)], -1) for r in range(3)], -2)
        expected = [x.var(1, ddof=1), np.log(np.exp(x).sum(2)), x.argmax(), i.cumsum(), np.eye(4, dtype="int32")[i], np.triu(x, 1), x[[0, 1], [2, -3]],
                    np.meshgrid(np.arange(2), np.arange(3), indexing="ij")[1], i.astype(bool).any(0), adaptive, np.pad(n, ((0, 0), (0, 0), (1, 2), (0, 3)), "symmetric"),
                    n.repeat(2, 2).repeat(3, 3), np.zeros_like(i), np.full_like(x, 2), i.sum(1, keepdims=True).repeat(2, 1), np.zeros_like(n)]
        for place, (one, other) in enumerate(zip(got, expected)):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=f"output {place}")

    def test_of_others(self):
        x, y, s = rand(4, 5), rand(1, 2, 6, 6), np.sort(rand(6))
        a, image, row = relay.var("x", shape=x.shape), relay.var("y", shape=y.shape), relay.var("s", shape=s.shape)
        got = run([relay.sliding_window(a, 0, [2, 3], [2, 1]), relay.unravel_index(relay.const(np.array([3, 19])), relay.const(np.array([4, 5]))),
                   relay.adv_index([a, relay.const(np.array([0, 3])), relay.const(np.array([[1], [4]]))]), relay.searchsorted(row, a, True),
                   relay.sparse_to_dense(relay.const(np.array([[0, 1], [2, 2]])), [3, 3], relay.const(np.array([7, 9], "int32")), 1),
                   relay.strided_set(a, relay.const(np.zeros((2, 2), "float32")), [0, 1], [4, 5], [2, 2]), relay.matrix_set_diag(a, relay.const(np.ones(4, "float32"))),
                   relay.nn.dilate(image, [1, 1, 2, 3], 0.5), relay.image.dilation2d(image, relay.const(np.zeros((2, 2, 2), "float32"))),
                   relay.invert_permutation(relay.const(np.array([2, 0, 1], "int32"))), relay.fixed_point_multiply(relay.const(np.array([1 << 20, -3], "int32")), 1 << 30, 0),
                   relay.vision.roi_align(image, relay.const(np.array([[0, 1, 1, 4, 4]], "float32")), (1, 1), 1.0, 2),
                   relay.nn.nll_loss(a, relay.const(np.array([0, 1, 4, 2])), relay.const(np.ones(5, "float32")))], {"x": x, "y": y, "s": s})
        wide = np.full((1, 2, 11, 16), 0.5, "float32")
        wide[:, :, ::2, ::3] = y
        diagonal, hole = x.copy(), x.copy()
        np.fill_diagonal(diagonal, 1)
        hole[0:4:2, 1:5:2] = 0
        dense = np.ones((3, 3), "int32")
        dense[0, 1], dense[2, 2] = 7, 9
        window = np.lib.stride_tricks.sliding_window_view(x, (2, 3))[::2]
        expected = [window, np.array(np.unravel_index([3, 19], (4, 5))), x[np.array([0, 3]), np.array([[1], [4]])], np.searchsorted(s, x, "right"), dense, hole, diagonal, wide,
                    np.lib.stride_tricks.sliding_window_view(y, (2, 2), (2, 3)).max(axis=(4, 5)), [1, 2, 0], [1 << 19, -1], None, -x[range(4), [0, 1, 4, 2]].mean()]
        for place, (one, other) in enumerate(zip(got, expected)):
            if other is not None:
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=f"output {place}")
        # A region of 3 x 3 with 2 x 2 samples: at 1.75 and 3.25 in either direction.
        sample = lambda r, c: sum(wr * wc * y[0, :, int(r) + dr, int(c) + dc] for dr, wr in ((0, 1 - r % 1), (1, r % 1)) for dc, wc in ((0, 1 - c % 1), (1, c % 1)))  # noqa: E731
        np.testing.assert_allclose(got[11].reshape(2), np.mean([sample(r, c) for r in (1.75, 3.25) for c in (1.75, 3.25)], axis=0), rtol=1e-4, atol=1e-5)

    def test_losses_gradients_and_sparse_tensors(self):
        x, k = rand(1, 2, 4, 4), relay.var("x", shape=(1, 2, 4, 4))
        pooled = relay.nn.max_pool2d(k, (2, 2), (2, 2))
        back = relay.nn.max_pool2d_grad(relay.nn.relu(pooled), k, (2, 2), (2, 2))
        shared = relay.nn.avg_pool2d_grad(pooled, k, (2, 2), (2, 2))
        where, shape = relay.sparse_reshape(relay.const(np.array([[0, 1], [2, 3]])), relay.const(np.array([3, 4])), relay.const(np.array([2, -1])))
        weight = relay.nn.conv2d_backward_weight(pooled, k, strides=(2, 2), kernel_size=(2, 2))
        got = run([back, shared, where, shape, weight, relay.debug(k), relay.nn.correlation(k, k, 1, 1, 1, 1, 1, True)], {"x": x})
        blocks = x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 2, 2, 4)
        top = blocks.max(-1)
        hit = np.where(np.arange(4) == blocks.argmax(-1)[..., None], np.maximum(top, 0)[..., None], 0)
        unblock = lambda b: b.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 4, 4)  # noqa: E731
        np.testing.assert_allclose(got[0], unblock(hit), rtol=1e-5)
        np.testing.assert_allclose(got[1], unblock(np.broadcast_to(top[..., None] / 4, blocks.shape)), rtol=1e-5)
        np.testing.assert_array_equal(got[2], [[0, 1], [1, 5]])
        np.testing.assert_array_equal(got[3], [2, 6])
        expected = np.einsum("noyx,ncyxk->ock", top, blocks).reshape(2, 2, 2, 2)
        np.testing.assert_allclose(got[4], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got[5], x)
        np.testing.assert_allclose(got[6][0, 4], (x * x).mean(axis=(0, 1)), rtol=1e-5)
        # Values decide how many rows there are.
        places, rows = relay.var("p", shape=(3, 2), dtype="int64"), relay.var("s", shape=(2,), dtype="int64")
        filled = relay.sparse_fill_empty_rows(places, relay.const(np.array([1, 2, 3])), rows, relay.const(9))
        for size, expected in ((4, [[0, 1], [1, 0], [2, 0], [2, 2], [3, 0]]), (3, [[0, 1], [1, 0], [2, 0], [2, 2]])):
            got = run([filled[0], filled[1], filled[2]], {"p": np.array([[0, 1], [2, 0], [2, 2]]), "s": np.array([size, 5])}, "vm")
            np.testing.assert_array_equal(got[0], expected)
            np.testing.assert_array_equal(got[1], [1, 9, 2, 3, 9][:size + 1])
            np.testing.assert_array_equal(got[2], [False, True, False, True][:size])

    def test_random(self):
        key = relay.random.threefry_key(7)
        left, right = relay.random.threefry_split(key)
        after, words = relay.random.threefry_generate(left, (3, 5))
        _, unit = relay.random.uniform(right, (4000,), low=-2.0, high=2.0)
        _, wide = relay.random.normal(after, (4000,), "float64", mean=1.0, scale=3.0)
        _, drawn = relay.random.multinomial(right, relay.const(np.array([1.0, 0.0, 3.0], "float32")), 4000)
        one = run([words, unit, wide, drawn], {})
        for same, other in zip(one, run([words, unit, wide, drawn], {}, "debug")):
            np.testing.assert_allclose(same, other, rtol=0 if same.dtype.kind in "ui" else 1e-9, atol=0)
        self.assertEqual((one[0].dtype, one[0].shape, len(np.unique(one[0]))), (np.dtype("uint64"), (3, 5), 15))
        self.assertTrue(-2 <= one[1].min() < -1.99 and 1.99 < one[1].max() < 2 and abs(one[1].mean()) < 0.1)
        self.assertTrue(abs(one[2].mean() - 1) < 0.2 and abs(one[2].std() - 3) < 0.2)
        self.assertTrue(abs((one[3] == 2).mean() - 0.75) < 0.05 and not (one[3] == 1).any())
        with self.assertRaisesRegex(tw.Error, "no generator"):
            relay.testing.run_infer_type(relay.random.threefry_split(relay.const(np.zeros(4, "uint64")))[0])

    def test_computed_sizes(self):
        x = rand(1, 2, 3, 4)
        a, n, h = relay.var("x", shape=x.shape), relay.var("n", shape=(2,), dtype="int64"), relay.var("h", shape=(), dtype="float32")
        width = relay.var("w", shape=(4, 2), dtype="int64")
        outputs = [relay.nn.pad(a, width, 2.0), relay.image.resize2d(a, n, method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor"),
                   relay.nn.upsampling(a, h, 2.0), relay.sparse_to_dense(relay.const(np.array([[0, 1]])), n, relay.const(np.array([5], "int32")))]
        values = {"x": x, "w": np.array([[0, 0], [1, 0], [0, 2], [0, 0]]), "n": np.array([6, 4]), "h": np.float32(2)}
        got = run(outputs, values, "vm")
        dense = np.zeros((6, 4), "int32")
        dense[0, 1] = 5
        for one, other in zip(got, (np.pad(x, values["w"], constant_values=2), x.repeat(2, 2), x.repeat(2, 2).repeat(2, 3), dense)):
            np.testing.assert_array_equal(one, other)

    def test_topk(self):
        x = rand(3, 5)
        a, k = relay.var("x", shape=x.shape), relay.var("k", shape=(1,), dtype="int64")
        whole, some = relay.topk(a, 0, 1, "values", True), relay.topk(a, k, 1)
        np.testing.assert_array_equal(run([whole], {"x": x})[0], np.sort(x, 1))
        values, places = run([some[0], some[1]], {"x": x, "k": np.array([2])}, "vm")
        np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :2])
        np.testing.assert_array_equal(np.take_along_axis(x, places.astype("int64"), 1), values)

    def test_free_sizes(self):
        x = rand(2, 3, 4)
        a = relay.var("x", shape=(relay.Any(), 3, 4))
        f = relay.Function([a], relay.Tuple([relay.slice_like(a, relay.const(rand(1, 3, 4)), axes=[0]), relay.reshape_like(a, relay.zeros_like(a)),
                                             relay.broadcast_to_like(relay.const(rand(1, 1, 1) * 0 + 3), a)]))
        got = relay.create_executor("vm", tw.IRModule.from_expr(f)).evaluate()(x)
        for one, other in zip(got, (x[:1], x, np.full_like(x, 3))):
            np.testing.assert_array_equal(one.numpy(), other)


class Quantised(unittest.TestCase):
    def test_a_layer(self):
        x, w, bias = rng.integers(0, 256, (2, 10)).astype("uint8"), rng.integers(-128, 128, (3, 10)).astype("int8"), np.array([5, -900, 40], "int32")
        q = relay.qnn.op
        data, weight = relay.var("x", shape=x.shape, dtype="uint8"), relay.const(w)
        dense = q.dense(data, weight, relay.const(127), relay.const(0), relay.const(0.5), relay.const(0.25), units=3)
        out = q.requantize(relay.nn.bias_add(dense, relay.const(bias)), relay.const(0.125), relay.const(0), relay.const(40.0), relay.const(3))
        module = tw.IRModule.from_expr(relay.Function([data], out))
        self.assertIn("qnn.requantize(", module.astext())
        self.assertEqual(tw.relay.fromtext(module.astext()).astext(), module.astext())
        plain = relay.qnn.transform.CanonicalizeOps()(module)
        self.assertNotIn("qnn.", plain.astext())
        expected = np.clip(np.floor(((x.astype("int32") - 127) @ w.astype("int32").T + bias) * (0.125 / 40) + 0.5) + 3, -128, 127).astype("int8")
        for mod in (module, plain):
            np.testing.assert_array_equal(relay.create_executor("graph", mod).evaluate()(x).numpy(), expected)

    def test_errors(self):
        x = relay.var("x", shape=(2, 3), dtype="uint8")
        for make, text in ((lambda: relay.qnn.op.quantize(x, 0.5, 0), "not floats"), (lambda: relay.qnn.op.add(x, x, 0.5, 0, 0.5, 0, [0.5, 1.0], 0), "not a scalar"),
                           (lambda: relay.qnn.op.requantize(x, [0.5, 1.0], 0, 0.5, 0, axis=1), "2 values for axis 1"),
                           (lambda: relay.qnn.op.requantize(x, 0.5, 0, 0.5, 0, rounding="DOWN"), "UPWARD"),
                           (lambda: relay.qnn.op.dense(x, relay.var("w", shape=(4, 3), dtype="int8"), 0, [1, 2], 0.5, 0.5, 4), "has not 2 outputs")):
            with self.subTest(text), self.assertRaisesRegex(tw.Error, text):
                relay.testing.run_infer_type(make())


class Names(unittest.TestCase):
    def test_every_classic_operator_is_there_or_says_what_is(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "classic_operators.txt")) as file:
            names = file.read().split()
        self.assertGreater(len(names), 270)
        for name in names:
            head, *rest = name.split(".")
            space = relay.qnn.op if head == "qnn" else relay.op
            try:
                made = functools.reduce(getattr, rest if head == "qnn" else [head, *rest], space)
            except AttributeError as error:
                self.assertIn("instead: ", str(error), name)
            else:
                self.assertTrue(callable(made), name)

    def test_texts_of_expressions(self):
        x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
        for expr in (x + y * relay.const(2.0), relay.Function([x], relay.nn.relu(x)), relay.Tuple([x, relay.const(np.ones((2, 3), "float32"))]), relay.const([1, 2])):
            back = tw.parser.parse_expr(expr.astext())
            tw.ir.assert_structural_equal(back, expr, map_free_vars=True)
            tw.ir.assert_structural_equal(tw.ir.load_json(tw.ir.save_json(expr)), expr, map_free_vars=True)
        x = relay.var("x")
        let = relay.Let(x, relay.const(10), x + relay.const(2))
        tw.ir.assert_structural_equal(tw.parser.parse_expr(let.astext()), let, map_free_vars=True)
        x = relay.var("x", shape=(2, 3))
        self.assertFalse(tw.ir.structural_equal(let, relay.Let(x, relay.const(10), x + relay.const(3)), map_free_vars=True))
        self.assertIn("free_var %x: Tensor[(2, 3), float32];", (x + y).astext())
        self.assertEqual(tw.ir.load_json(tw.ir.save_json(relay.TensorType((2, 3), "int8"))), relay.TensorType((2, 3), "int8"))


if __name__ == "__main__":
    unittest.main()
