# SPDX-License-Identifier: Apache-2.0
"""topi's operators equal numpy, under their own schedules; rfactor; what arith says of expressions."""
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te, topi
from tvm.topi import testing

rng = np.random.default_rng(0)


def value(*shape, dtype="float32"):
    return (rng.integers(-9, 10, shape) if "int" in dtype else rng.uniform(-1, 1, shape)).astype(dtype)


def given(*arrays):
    return [te.placeholder(a.shape, name=f"A{i}", dtype=str(a.dtype)) for i, a in enumerate(arrays)]


def evaluate(function, *arrays, schedule=topi.generic.schedule_injective):
    inputs = given(*arrays)
    out = function(*inputs)
    built = tvm.build(schedule(out), [*inputs, out], "llvm")
    result = tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype))
    built(*[tvm.nd.array(a) for a in arrays], result)
    return result.numpy()


class Operators(unittest.TestCase):
    def test_arithmetic_of_whole_tensors(self):
        """a + b broadcasts, as topi.add does; tensors of rank 0 stay elements."""
        x, y = value(3, 4, 5) + 2, value(4, 5) + 2
        for function in (lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: 3.0 / (a * b) - 1, lambda a, b: 2 * a + b):
            np.testing.assert_allclose(evaluate(function, x, y), function(x, y), rtol=1e-5)
        scalar = te.placeholder((), name="s")
        self.assertIsInstance(scalar * 2.0 + scalar, tvm.tir.PrimExpr)
        with self.assertRaisesRegex((ValueError, tvm.TVMError), "dimension|broadcast|shape"):
            te.placeholder((3,)) + te.placeholder((4,))

    def same(self, function, want, *arrays, **kwargs):
        got = evaluate(function, *arrays, **kwargs)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
        self.assertEqual(got.shape, np.shape(want))

    def test_elementwise(self):
        x = value(7, 33)
        for name in ("exp", "floor", "abs", "sign", "negative", "round", "trunc"):
            with self.subTest(name=name):
                self.same(getattr(topi, name), getattr(np, name)(x), x)
        self.same(topi.nn.relu, np.maximum(x, 0), x)
        self.same(lambda a: topi.nn.leaky_relu(a, 0.1), np.where(x > 0, x, x * np.float32(0.1)), x)
        self.same(lambda a: topi.clip(a, -0.5, 0.25), np.clip(x, -0.5, 0.25), x)
        self.same(lambda a: topi.cast(a, "int32"), x.astype("int32"), x)
        self.same(lambda a: topi.logical_not(a), x == 0, x)
        self.same(lambda a: topi.full_like(a, 3), np.full_like(x, 3), x)

    def test_broadcast(self):
        for shape, other in (((4, 1, 5), (3, 1)), ((6,), (2, 6)), ((3, 4), (3, 4)), ((), (2, 3))):
            a, b = value(*shape), value(*other) + 2
            names = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "greater", "equal", "less_equal", "floor_mod")
            for name in names if len(shape) == 2 else names[:2]:
                with self.subTest(name=name, shape=shape):
                    self.same(getattr(topi, name), {"floor_mod": np.mod}.get(name, getattr(np, name, None))(a, b), a, b)
        i, j = value(5, 4, dtype="int32"), abs(value(4, dtype="int32")) + 1
        self.same(topi.floor_divide, i // j, i, j)
        self.same(topi.mod, np.fmod(i, j), i, j)
        self.same(lambda a: topi.add(a, 2.0), i.astype("float32") + 2, i.astype("float32"))
        self.same(lambda a: topi.broadcast_to(a, (3, 5, 4)), np.broadcast_to(i, (3, 5, 4)), i)
        self.same(topi.where, np.where(i > 0, i, j), (i > 0).astype("int32"), i, np.broadcast_to(j, (5, 4)).copy())
        with self.assertRaisesRegex(ValueError, "Incompatible broadcast"):
            topi.add(*given(value(3), value(4)))

    def test_reductions(self):
        x = rng.permutation(60).reshape(3, 4, 5).astype("float32") / 10
        for name in ("sum", "max", "min", "prod"):
            for axis in (None, 0, -1, (0, 2), (1,)):
                for keepdims in {axis == 0, name == "max"}:
                    with self.subTest(name=name, axis=axis, keepdims=keepdims):
                        self.same(lambda a: getattr(topi, name)(a, axis, keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims), x)
        for axis in (0, 1, 2):
            self.same(lambda a: topi.argmax(a, axis), x.argmax(axis), x)
            self.same(lambda a: topi.argmin(a, axis), x.argmin(axis), x)
        ties = np.array([[1, 3, 3, 0]], "float32")
        self.same(lambda a: topi.argmax(a, 1), [1], ties)
        self.same(lambda a: topi.argmax(a, 1, select_last_index=True), [2], ties)

    def test_moves(self):
        x, y = value(3, 4, 5), value(3, 2, 5)
        self.same(lambda a: topi.transpose(a, (2, 0, 1)), x.transpose(2, 0, 1), x)
        self.same(lambda a: topi.transpose(a), x.T, x)
        self.same(lambda a: topi.reshape(a, (6, 10)), x.reshape(6, 10), x)
        self.same(lambda a: topi.expand_dims(a, 1, 2), x[:, None, None], x)
        self.same(lambda a: topi.squeeze(topi.expand_dims(a, 1)), x, x)
        self.same(lambda a: topi.flip(a, 1), x[:, ::-1], x)
        self.same(lambda a, b: topi.concatenate([a, b, a], 1), np.concatenate([x, y, x], 1), x, y)
        self.same(lambda a: topi.stack([a, a], 1), np.stack([x, x], 1), x)
        self.same(lambda a: topi.strided_slice(a, [0, 1, 4], [3, 4, 0], [2, 1, -2]), x[0:3:2, 1:4, 4:0:-2], x)
        self.same(lambda a: topi.split(a, 2, 1)[1], x[:, 2:], x)
        self.same(lambda a, i: topi.take(a, i, 1), x.take([3, 0, 3], 1), x, np.array([9, -1, 3], "int32"))
        self.same(lambda a, i: topi.take(a, i), x.ravel()[[7, 0]], x, np.array([7, 0], "int32"))
        self.same(lambda a: topi.repeat(a, 2, 1), x.repeat(2, 1), x)
        self.same(lambda a: topi.tile(a, (2, 1, 3)), np.tile(x, (2, 1, 3)), x)
        self.same(lambda i: topi.one_hot(i, 1.0, 0.0, 4, -1, "float32"), np.eye(4)[[1, 3]], np.array([1, 3], "int32"))
        self.same(lambda a: topi.nn.pad(a, (1, 0, 2), (0, 0, 1), 7.0), np.pad(x, ((1, 0), (0, 0), (2, 1)), constant_values=7), x)

    def test_layers(self):
        a, w, b = value(9, 17), value(5, 17), value(5)
        self.same(lambda x, y, z: topi.nn.dense(x, y, z), a @ w.T + b, a, w, b)
        self.same(lambda x, y: topi.matmul(x, y, False, True), a @ w.T, a, w)
        self.same(topi.nn.batch_matmul, a[None].repeat(3, 0) @ w.T, a[None].repeat(3, 0), w[None].repeat(3, 0))
        e = np.exp(a - a.max(1, keepdims=True))
        self.same(topi.nn.softmax, e / e.sum(1, keepdims=True), a, schedule=topi.generic.schedule_softmax)
        self.same(topi.nn.log_softmax, np.log(e / e.sum(1, keepdims=True)), a)
        x, k = value(2, 3, 11, 10), value(4, 3, 3, 2)
        for stride, padding in ((1, 0), (2, 1), ((2, 1), "SAME")):
            with self.subTest(stride=stride, padding=padding):
                if padding != "SAME":
                    want = testing.conv2d_nchw_python(x, k, stride, padding)
                    self.same(lambda p, q: topi.nn.conv2d_nchw(p, q, stride, padding, 1), want, x, k)
                    nhwc = lambda p, q: topi.nn.conv2d_nhwc(p, q, stride, padding, 1)  # noqa: E731
                    self.same(nhwc, want.transpose(0, 2, 3, 1), x.transpose(0, 2, 3, 1).copy(), k.transpose(2, 3, 1, 0).copy())
        d = value(3, 2, 3, 3)
        self.same(lambda p, q: topi.nn.depthwise_conv2d_nchw(p, q, 1, 1, 1), testing.depthwise_conv2d_python_nchw(x, d, 1, 1), x, d)
        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2]
        self.same(lambda p: topi.nn.pool2d(p, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), windows.max((4, 5)), x)
        self.same(lambda p: topi.nn.pool2d(p, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), windows.mean((4, 5)), x)
        self.same(lambda p: topi.nn.global_pool(p, "avg"), x.mean((2, 3), keepdims=True), x)


class Factored(unittest.TestCase):
    def test_rfactor(self):
        for rows, columns in ((7, 64), (3, 30), (1, 5)):
            for whole, factor_axis in ((False, 0), (False, 1), (False, -1), (True, 0)):
                with self.subTest(columns=columns, whole=whole, factor_axis=factor_axis):
                    x = value(rows, columns, dtype="int32")
                    n, m = te.var("n"), columns if rows != 3 else te.var("m")
                    a = te.placeholder((n, m), name="A", dtype="int32")
                    k = te.reduce_axis((0, m), "k")
                    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k, where=a[i, k] > -5), name="B")
                    s = te.create_schedule(b.op)
                    loop = k if whole else s[b].split(k, factor=16)[1]
                    partial = s.rfactor(b, loop, factor_axis)
                    self.assertEqual(len(partial.shape), 2)
                    if not whole:
                        s[partial].compute_at(s[b], s[b].op.axis[0])
                    function = tvm.build(s, [a, b], "llvm")
                    out = tvm.nd.array(np.zeros(rows, "int32"))
                    function(tvm.nd.array(x), out)
                    np.testing.assert_array_equal(out.numpy(), np.where(x > -5, x, 0).sum(1))

    def test_of_tuples_and_refusals(self):
        x = value(4, 40, dtype="int32")
        a = te.placeholder((4, 40), name="A", dtype="int32")
        k = te.reduce_axis((0, 40), "k")
        both = te.comm_reducer(lambda p, q: (p[0] + q[0], te.max(p[1], q[1])), lambda t, u: (tvm.tir.const(0, t), te.min_value(u)))
        total, most = te.compute((4,), lambda i: both((a[i, k], a[i, k]), axis=k), name="B")
        s = te.create_schedule(total.op)
        outer, _ = s[total].split(k, nparts=7)
        parts = s.rfactor(total, outer)
        self.assertEqual(len(parts), 2)
        function = tvm.build(s, [a, total, most], "llvm")
        out = [tvm.nd.array(np.zeros(4, "int32")) for _ in range(2)]
        function(tvm.nd.array(x), *out)
        np.testing.assert_array_equal(out[0].numpy(), x.sum(1))
        np.testing.assert_array_equal(out[1].numpy(), x.max(1))
        fresh = te.create_schedule(total.op)
        for axis, reason in ((total.op.axis[0], "axis of the data"), (outer, "none of the stage's loops")):
            with self.assertRaisesRegex(tvm.TVMError, reason):
                fresh.rfactor(total, axis)
        with self.assertRaisesRegex(tvm.TVMError, "no dimension"):
            fresh.rfactor(total, k, 5)


class Arithmetic(unittest.TestCase):
    def test_analyzer(self):
        x, y = te.var("x"), te.var("y")
        known = tvm.arith.Analyzer()
        known.bind(x, tvm.ir.Range(0, 8))
        self.assertEqual(int(known.simplify(tvm.tir.floordiv(x, 8))), 0)
        self.assertEqual(known.const_int_bound(x * 3 + 1), tvm.arith.ConstIntBound(1, 22))
        self.assertTrue(known.can_prove(x < 8))
        self.assertFalse(known.can_prove(x < 7))
        with known.constraint_scope(tvm.tir.all(x > 2, x <= 4)):
            self.assertEqual(known.const_int_bound(x), tvm.arith.ConstIntBound(3, 4))
        self.assertEqual(known.const_int_bound(x), tvm.arith.ConstIntBound(0, 7))
        self.assertTrue(known.can_prove_equal((x + y) * 2 - y, x * 2 + y))
        known.update(y, tvm.arith.ConstIntBound(-1, 1))
        with self.assertRaises(ValueError):
            known.update(y, tvm.arith.ConstIntBound(0, 1))
        self.assertEqual(known.const_int_bound(te.min(x, y)), tvm.arith.ConstIntBound(-1, 1))

    def test_linear(self):
        x, y, z = te.var("x"), te.var("y"), te.var("z")
        found = tvm.arith.detect_linear_equation(x * 3 + y * z + 7, [x, y])
        self.assertEqual(len(found), 3)
        self.assertEqual(int(found[0]), 3)
        self.assertTrue(found[1].same_as(z))
        self.assertEqual(int(found[2]), 7)
        self.assertEqual(tvm.arith.detect_linear_equation(x * y, [x, y]), [])
        self.assertEqual(tvm.arith.detect_linear_equation(tvm.tir.floordiv(x, 2), [x]), [])


if __name__ == "__main__":
    unittest.main()
