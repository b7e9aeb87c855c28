# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions from Python: what scripts compute equals numpy, whatever the schedule; what is refused says why."""
import os
import random
import tempfile
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te

SEEDS = int(os.environ.get("TW_TE_PYTHON_SEEDS", "40"))


def run(schedule, args, *arrays, name="f", target="llvm"):
    """Calls the built function; the last tensor is the result."""
    function = tvm.build(schedule, args, target, name=name)
    given = [tvm.nd.array(a) for a in arrays]
    out = tvm.nd.array(np.full(*given_shape(args[-1], arrays[-1])))
    function(*given[:-1], out)
    return out.numpy()


def given_shape(tensor, like):
    return like.shape, np.array(-77).astype(like.dtype)


class Road(unittest.TestCase):
    """From a script to a library."""

    def test_symbolic_vector(self):
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        b = te.placeholder((n,), name="B")
        c = te.compute(a.shape, lambda i: a[i] + b[i], name="C")
        s = te.create_schedule(c.op)
        outer, inner = s[c].split(c.op.axis[0], factor=64)
        s[c].parallel(outer)
        s[c].vectorize(inner)
        text = str(tvm.lower(s, [a, b, c], simple_mode=True))
        self.assertIn("parallel", text)
        self.assertIn("vectorized", text)
        function = tvm.build(s, [a, b, c], "llvm", name="myadd")
        for size in (0, 1, 63, 64, 1000):
            x, y = np.random.rand(2, size).astype("float32")
            out = tvm.nd.array(np.zeros(size, "float32"))
            function(tvm.nd.array(x), tvm.nd.array(y), out)
            np.testing.assert_array_equal(out.numpy(), x + y)
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("so", "o", "tar"):
                path = os.path.join(folder, f"lib.{ending}")
                function.export_library(path) if ending != "o" else function.save(path)
                loaded = tvm.runtime.load_module(path)
                again = tvm.nd.array(np.zeros(1000, "float32"))
                loaded["myadd"](tvm.nd.array(x), tvm.nd.array(y), again)
                np.testing.assert_array_equal(again.numpy(), x + y)
                loaded(tvm.nd.array(x), tvm.nd.array(y), again)
        time = function.time_evaluator(function.entry_name, tvm.cpu(), number=3, repeat=2)
        self.assertEqual(len(time(tvm.nd.array(x), tvm.nd.array(y), out).results), 2)
        self.assertIn("define", function.get_source())
        self.assertEqual(function["get_func_names"](), ["myadd"])

    def test_wrong_arguments(self):
        n = te.var("n")
        a = te.placeholder((n, 4), name="A")
        b = te.compute((n * 2,), lambda i: a[i // 2, 0], name="B")
        f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
        good, out = tvm.nd.array(np.ones((3, 4), "float32")), tvm.nd.array(np.zeros(6, "float32"))
        f(good, out)
        for bad, reason in (((good,), "1 arguments were given"), ((good, tvm.nd.array(np.zeros(5, "float32"))), "expected"),
                            ((tvm.nd.array(np.ones((3, 5), "float32")), out), "expected"), ((tvm.nd.array(np.ones((3, 4), "float64")), out), "float32"),
                            ((tvm.nd.array(np.ones(3, "float32")), out), "expected"), ((good, 3), "argument"),
                            ((tvm.nd.array(np.ones((3, 8), "float32")[:, ::2]), tvm.nd.array(np.zeros(7, "float32"))), "expected")):
            with self.assertRaisesRegex(tvm.TVMError, reason):
                f(*bad)

    def test_scalar_arguments(self):
        n, k = te.var("n"), te.var("k", "int64")
        a = te.placeholder((n,), name="A", dtype="int64")
        b = te.compute((n,), lambda i: a[i] * k + i, name="B")
        f = tvm.build(te.create_schedule(b.op), [k, a, b], "llvm")
        x = np.arange(7)
        out = tvm.nd.array(np.zeros(7, "int64"))
        f(5, tvm.nd.array(x), out)
        np.testing.assert_array_equal(out.numpy(), x * 6)
        with self.assertRaisesRegex(tvm.TVMError, "0 to 2147483647"):
            f(-1, tvm.nd.array(x), out)
        with self.assertRaisesRegex(tvm.TVMError, "the size 'k' is no argument"):
            tvm.build(te.create_schedule(b.op), [a, b], "llvm")

    def test_float_scalar_arguments(self):
        """`bias` of the tutorial about external functions; negative, large and small values, beside a size, of every target."""
        n, bias, scale = te.var("n"), te.var("bias", dtype="float32"), te.var("scale", dtype="float64")
        a = te.placeholder((n,), name="A")
        b = te.compute((n,), lambda i: a[i] * scale.astype("float32") + bias, name="B")
        x = np.random.rand(7).astype("float32")
        for target in ("llvm", "c", "stackvm"):
            f = tvm.build(te.create_schedule(b.op), [a, b, bias, scale], target)
            for p, q in ((10.0, 0.5), (-3, 2.0), (1e-30, -1e20), (0.0, 0)):
                with self.subTest(target, p=p, q=q):
                    out = tvm.nd.array(np.zeros(7, "float32"))
                    f(tvm.nd.array(x), out, p, q)
                    np.testing.assert_allclose(out.numpy(), x * np.float32(q) + np.float32(p), rtol=1e-6)
        with self.assertRaises(tvm.TVMError):
            f(tvm.nd.array(x), out, "ten", 1.0)
        with self.assertRaisesRegex(tvm.TVMError, "the variable 'k' of int8 is no size"):
            k = te.var("k", "int8")
            c = te.compute((n,), lambda i: a[i] + k.astype("float32"), name="C")
            tvm.build(te.create_schedule(c.op), [a, c, k], "llvm")

    def test_several_functions(self):
        a = te.placeholder((8,), name="A")
        b = te.compute((8,), lambda i: a[i] + 1, name="B")
        c = te.compute((8,), lambda i: a[i] * 2, name="C")
        both = tvm.lower(te.create_schedule(b.op), [a, b], name="plus")
        both.update(tvm.lower(te.create_schedule(c.op), [a, c], name="times"))
        lib = tvm.build(both, target="llvm")
        x = np.random.rand(8).astype("float32")
        for name, want in (("plus", x + 1), ("times", x * 2)):
            out = tvm.nd.array(np.zeros(8, "float32"))
            lib[name](tvm.nd.array(x), out)
            np.testing.assert_array_equal(out.numpy(), want)

    def test_the_function_of_a_computation(self):
        n = te.var("n")
        a = te.placeholder((n, 4), name="A")
        b = te.compute((n, 4), lambda i, j: a[i, j] * 2, name="B")
        c = te.compute((n, 4), lambda i, j: b[i, j] + 1, name="C")
        function = te.create_prim_func([a, c]).with_attr("global_symbol", "twice")
        self.assertEqual(list(function.buffer_map), ["A", "C"])
        lib = tvm.build(function, target="llvm")
        x = np.random.rand(3, 4).astype("float32")
        out = tvm.nd.array(np.zeros((3, 4), "float32"))
        lib["twice"](tvm.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), x * 2 + 1, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "none of the tensors is computed"):
            te.create_prim_func([a])

    def test_schedule_primitives(self):
        """The steps of the classic tutorial about them, one after another; what may be built is built."""
        m, n = te.var("m"), te.var("n")
        a, b = te.placeholder((m,), name="A"), te.placeholder((m, n), name="X")
        shown = []

        def show(s, args):
            shown.append(str(tvm.lower(s, args, simple_mode=True)))
        double = te.compute((m,), lambda i: a[i] * 2, name="B")
        for step in ("factor", "nparts"):
            s = te.create_schedule(double.op)
            s[double].split(double.op.axis[0], **{step: 32})
            show(s, [a, double])
        copy = te.compute((m, n), lambda i, j: b[i, j], name="C")
        s = te.create_schedule(copy.op)
        xo, yo, xi, yi = s[copy].tile(copy.op.axis[0], copy.op.axis[1], x_factor=10, y_factor=5)
        show(s, [b, copy])
        s[copy].reorder(xi, yo, xo, yi)
        show(s, [b, copy])
        s = te.create_schedule(copy.op)
        xo, yo, xi, yi = s[copy].tile(copy.op.axis[0], copy.op.axis[1], 10, 5)
        self.assertIn("fused", s[copy].fuse(xi, yi).var.name)
        x = np.random.rand(23, 17).astype("float32")
        np.testing.assert_array_equal(run(s, [b, copy], x, np.zeros((23, 17), "float32")), x)
        plus = te.compute((m,), lambda i: double[i] + 1, name="D")
        for place in ("root", "at", "inline"):
            s = te.create_schedule(plus.op)
            if place == "at":
                s[double].compute_at(s[plus], plus.op.axis[0])
            elif place == "inline":
                s[double].compute_inline()
            else:
                s[double].compute_root()
            show(s, [a, plus])
            y = np.random.rand(9).astype("float32")
            np.testing.assert_allclose(run(s, [a, plus], y, np.zeros(9, "float32")), y * 2 + 1, rtol=1e-6)
        self.assertEqual(len(set(shown)), len(shown))

    def test_an_argument_computed_inside_another_stage(self):
        """It is computed piece by piece where the pieces show to be all of it; otherwise the reason is said."""
        m, n = te.var("m"), te.var("n")
        a = te.placeholder((m, n), name="A")
        b = te.compute((m, n), lambda i, j: a[i, j] + 1, name="B")
        c = te.compute((m, n), lambda i, j: b[i, j] * 2, name="C")
        x = np.random.rand(7, 9).astype("float32")

        def check(s):
            out = [tvm.nd.array(np.zeros((7, 9), "float32")) for _ in range(2)]
            tvm.build(s, [a, b, c], "llvm")(tvm.nd.array(x), *out)
            np.testing.assert_allclose(out[0].numpy(), x + 1, rtol=1e-6)
            np.testing.assert_allclose(out[1].numpy(), (x + 1) * 2, rtol=1e-6)
        for axis in (0, 1):
            s = te.create_schedule(c.op)
            s[b].compute_at(s[c], c.op.axis[axis])
            check(s)
        s = te.create_schedule(c.op)
        s[c].parallel(c.op.axis[0])
        s[b].compute_at(s[c], c.op.axis[0])
        check(s)
        row = te.compute((m, n), lambda i, j: b[i, 0] * a[i, j], name="R")  # the rest of B would be left out
        s = te.create_schedule(row.op)
        s[b].compute_at(s[row], row.op.axis[0])
        with self.assertRaisesRegex(tvm.TVMError, "does not show that each of its elements is computed"):
            tvm.lower(s, [a, b, row])
        whole = te.compute((m, n), lambda i, j: b[i, j] + b[i, (j + 1) % n], name="W")  # by two threads at once
        s = te.create_schedule(whole.op)
        s[whole].reorder(whole.op.axis[0], whole.op.axis[1])
        s[whole].parallel(whole.op.axis[1])
        s[b].compute_at(s[whole], whole.op.axis[1])
        with self.assertRaisesRegex(tvm.TVMError, "by one thread"):
            tvm.lower(s, [a, b, whole])

    def test_an_output_that_is_no_argument(self):
        a = te.placeholder((5,), name="A")
        b = te.compute((5,), lambda i: a[i] + 1, name="B")
        s = te.create_schedule(b.op)
        self.assertIn("B", str(tvm.lower(s, [a], simple_mode=True)))
        tvm.build(s, [a], "llvm")(tvm.nd.array(np.ones(5, "float32")))

    def test_bound_loops_are_shown_and_not_built(self):
        a = te.placeholder((64,), name="A")
        b = te.compute((64,), lambda i: a[i] + 1, name="B")
        s = te.create_schedule(b.op)
        outer, inner = s[b].split(b.op.axis[0], factor=8)
        s[b].bind(outer, te.thread_axis("blockIdx.x"))
        s[b].bind(inner, te.thread_axis("threadIdx.x"))
        self.assertIn("for blockIdx.x", str(tvm.lower(s, [a, b])))
        with self.assertRaisesRegex(tvm.TVMError, "use parallel"):
            tvm.build(s, [a, b], "llvm")

    def test_refusals(self):
        a = te.placeholder((16, 16), name="A")
        k = te.reduce_axis((0, 16), "k")
        b = te.compute((16,), lambda i: te.sum(a[i, k], axis=k), name="B")
        s = te.create_schedule(b.op)
        i = b.op.axis[0]
        s[b].split(i, 4)
        for step, reason in ((lambda: s[b].split(i, 2), "none of the stage's loops"), (lambda: s[b].vectorize(k), "axis of a reduction"),
                             (lambda: s[a].compute_inline(), "an input is not computed"), (lambda: s[b].fuse(s[b].leaf_iter_vars[1], k), "one kind"),
                             (lambda: tvm.lower(s, [b]), "the input is no argument")):
            with self.assertRaisesRegex(tvm.TVMError, reason):
                step()
        with self.assertRaises(ValueError):
            te.compute((4,), lambda i, j: a[i, j])
        with self.assertRaises(ValueError):
            te.compute((4,), lambda i: te.sum(a[i, k], axis=k) + 1)
        with self.assertRaises(ValueError):
            bool(i.var < 3)
        with self.assertRaises(RuntimeError):
            i.var / 2


class Expressions(unittest.TestCase):
    """Elements of every kind equal numpy's."""

    def check(self, dtype, function, reference, low=-4, high=5, **tolerance):
        rng = np.random.default_rng(0)
        x = (rng.integers(low, high, 50) if "int" in dtype else rng.uniform(low, high, 50)).astype(dtype)
        a = te.placeholder((50,), name="A", dtype=dtype)
        b = te.compute((50,), lambda i: function(a[i]), name="B")
        s = te.create_schedule(b.op)
        outer, inner = s[b].split(b.op.axis[0], 16)
        s[b].vectorize(inner)
        with np.errstate(all="ignore"):
            want = reference(x)
        got = run(s, [a, b], x, np.zeros(50, b.dtype))
        self.assertEqual(got.dtype, np.dtype(b.dtype))
        np.testing.assert_allclose(got, want.astype(b.dtype), **(tolerance or {"rtol": 2e-6, "atol": 2e-6}))

    def test_math(self):
        for name in ("exp", "tanh", "sin", "cos", "tan", "atan", "floor", "ceil", "trunc", "sinh", "cosh", "exp2"):
            for dtype in ("float32", "float64"):
                with self.subTest(name=name, dtype=dtype):
                    self.check(dtype, getattr(tvm.tir, name), getattr(np, name), rtol=3e-6, atol=1e-6)
        for name in ("log", "sqrt", "log2", "log10"):
            with self.subTest(name=name):
                self.check("float32", getattr(tvm.tir, name), getattr(np, name), 0.1, 9, rtol=3e-6, atol=1e-6)
        self.check("float32", te.sigmoid, lambda x: 1 / (1 + np.exp(-x)))
        self.check("float32", lambda x: te.power(x, 2.5), lambda x: x**2.5, 0.1, 4, rtol=1e-5)
        self.check("float32", te.abs, np.abs)
        self.check("int32", te.abs, np.abs)

    def test_arithmetic(self):
        self.check("int32", lambda x: te.floordiv(x, 3) * 10 + te.floormod(x, 3), lambda x: x // 3 * 10 + x % 3)
        self.check("int32", lambda x: te.truncdiv(x, 3) * 10 + te.truncmod(x, 3), lambda x: np.fix(x / 3) * 10 + np.fmod(x, 3))
        self.check("float32", lambda x: 2 / x - x / 4 + 1.5 * x, lambda x: 2 / x - x / 4 + 1.5 * x, rtol=1e-5)
        self.check("float64", lambda x: x * 1.1, lambda x: x * 1.1, rtol=1e-15)
        self.check("uint8", lambda x: x.astype("int32") - 5, lambda x: x.astype("int32") - 5, 0, 9)
        self.check("int8", lambda x: x + tvm.tir.const(3, "int8"), lambda x: x + np.int8(3))
        self.check("int32", lambda x: (x << 2) | (x & 1) ^ 5, lambda x: (x << 2) | (x & 1) ^ 5)
        self.check("int32", lambda x: -x, lambda x: -x)
        self.check("float32", lambda x: x.astype("int32").astype("float32"), np.trunc)

    def test_conditions(self):
        self.check("float32", lambda x: te.if_then_else(te.all(x > -1, x < 2), x, 0.0), lambda x: np.where((x > -1) & (x < 2), x, 0))
        self.check("int32", lambda x: te.if_then_else(te.any(x == 1, x != x * x), 7, x), lambda x: np.where((x == 1) | (x != x * x), 7, x))
        self.check("int32", lambda x: tvm.tir.Select(tvm.tir.Not(x >= 2), x, 2), lambda x: np.where(x < 2, x, 2))
        self.check("float32", lambda x: te.max(te.min(x, 1.0), -1.0), lambda x: np.clip(x, -1, 1))
        self.check("float32", lambda x: x > 0, lambda x: x > 0)

    def test_indices(self):
        x = np.random.rand(6, 7).astype("float32")
        picks = np.array([3, 0, 5, 5], "int32")
        a, p = te.placeholder((6, 7), name="A"), te.placeholder((4,), name="P", dtype="int32")
        gathered = te.compute((4, 7), lambda i, j: a[p[i], j], name="G")
        np.testing.assert_array_equal(run(te.create_schedule(gathered.op), [a, p, gathered], x, picks, x[picks]), x[picks])
        turned = te.compute((7, 6), lambda i, j: a[j][6 - i], name="T")
        np.testing.assert_array_equal(run(te.create_schedule(turned.op), [a, turned], x, x.T), x.T[::-1])
        padded = te.compute((8, 9), lambda i, j: te.if_then_else(te.all(i >= 1, i < 7, j >= 1, j < 8), a[i - 1, j - 1], te.const(0, "float32")), name="P")
        np.testing.assert_array_equal(run(te.create_schedule(padded.op), [a, padded], x, np.pad(x, 1)), np.pad(x, 1))


class Reductions(unittest.TestCase):
    def test_kinds(self):
        x = np.random.uniform(0.5, 1.5, (9, 13)).astype("float32")
        a = te.placeholder((9, 13), name="A")
        k = te.reduce_axis((0, 13), "k")
        for name, reference in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)):
            b = te.compute((9,), lambda i: getattr(te, name if name != "prod" else "prod")(a[i, k], axis=k), name="B")
            np.testing.assert_allclose(run(te.create_schedule(b.op), [a, b], x, np.zeros(9, "float32")), reference(x, axis=1), rtol=1e-5)
        where = te.compute((9,), lambda i: te.sum(a[i, k], axis=k, where=a[i, k] > 1.0), name="B")
        np.testing.assert_allclose(run(te.create_schedule(where.op), [a, where], x, np.zeros(9, "float32")), np.where(x > 1, x, 0).sum(1), rtol=1e-5)
        init = te.compute((9,), lambda i: te.sum(a[i, k], axis=k, init=tvm.tir.const(10, "float32")), name="B")
        np.testing.assert_allclose(run(te.create_schedule(init.op), [a, init], x, np.zeros(9, "float32")), x.sum(1) + 10, rtol=1e-5)

    def test_own_reducer_of_tuples(self):
        x = np.random.permutation(60).reshape(6, 10).astype("int32")
        a = te.placeholder((6, 10), name="A", dtype="int32")
        k = te.reduce_axis((0, 10), "k")
        argmax = te.comm_reducer(lambda x, y: (tvm.tir.Select(x[1] >= y[1], x[0], y[0]), tvm.tir.Select(x[1] >= y[1], x[1], y[1])),
                                 lambda t0, t1: (tvm.tir.const(-1, t0), te.min_value(t1)), name="argmax")
        at, value = te.compute((6,), lambda i: argmax((k.var, a[i, k]), axis=k), name="T")
        s = te.create_schedule(at.op)
        f = tvm.build(s, [a, at, value], "llvm")
        out = [tvm.nd.array(np.zeros(6, "int32")) for _ in range(2)]
        f(tvm.nd.array(x), *out)
        np.testing.assert_array_equal(out[0].numpy(), x.argmax(1))
        np.testing.assert_array_equal(out[1].numpy(), x.max(1))

    def test_matmul_of_the_tutorials(self):
        m, k, n, block = 96, 64, 128, 32
        a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        r = te.reduce_axis((0, k), "k")
        packed = te.compute((n // block, k, block), lambda big, k, little: b[k, big * block + little], name="packed")
        c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * packed[j // block, r, tvm.tir.indexmod(j, block)], axis=r), name="C")
        s = te.create_schedule(c.op)
        cc = s.cache_write(c, "global")
        mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], block, block)
        s[cc].compute_at(s[c], no)
        mc, nc = s[cc].op.axis
        ko, ki = s[cc].split(s[cc].op.reduce_axis[0], factor=4)
        s[cc].reorder(ko, mc, ki, nc)
        s[cc].vectorize(nc)
        s[cc].unroll(ki)
        s[packed].vectorize(s[packed].op.axis[2])
        s[packed].parallel(s[packed].op.axis[0])
        s[c].parallel(mo)
        x, y = np.random.rand(m, k).astype("float32"), np.random.rand(k, n).astype("float32")
        np.testing.assert_allclose(run(s, [a, b, c], x, y, np.zeros((m, n), "float32")), x @ y, rtol=1e-5)


class Program:
    """A random chain of computations over two inputs, with the values that numpy gives, and a random schedule of it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        r = self.random
        self.rows, self.columns = r.randint(1, 21), r.randint(1, 40)
        self.sizes = [te.var(name) if r.random() < 0.4 else number for name, number in (("n", self.rows), ("m", self.columns))]
        self.inputs = [te.placeholder(self.sizes, name=name, dtype="int32") for name in "AB"]
        self.data = [self.rng.integers(-9, 10, (self.rows, self.columns)).astype("int32") for _ in "AB"]
        self.tensors, self.values = list(self.inputs), list(self.data)
        for i in range(r.randint(1, 4)):
            self.add(f"T{i}")

    def add(self, name):
        r = self.random
        (x, vx), (y, vy) = (r.choice(list(zip(self.tensors, self.values))) for _ in range(2))
        if r.random() < 0.6:
            x, vx = self.tensors[-1], self.values[-1]
        n, m = self.sizes
        kind = r.randrange(7)
        if kind == 0:
            made, value = te.compute((n, m), lambda i, j: x[i, j] * 3 - y[i, j], name=name), vx * 3 - vy
        elif kind == 1:
            made = te.compute((n, m), lambda i, j: x[i, j] + te.if_then_else(te.all(j >= 1, i + 1 < n), x[i + 1, j - 1], 0), name=name)
            value = vx.copy()
            value[:-1, 1:] += vx[1:, :-1]
        elif kind == 2:
            k = te.reduce_axis((0, m), "k")
            made, value = te.compute((n, m), lambda i, j: te.sum(x[i, k] * y[i, j], axis=k), name=name), vx.sum(1, keepdims=True, dtype="int32") * vy
        elif kind == 3:
            made, value = te.compute((n, m), lambda i, j: x[n - 1 - i, m - 1 - j] + j, name=name), vx[::-1, ::-1] + np.arange(self.columns, dtype="int32")
        elif kind == 5:  # a recurrence over rows, with a stage between the state and its update
            state = te.placeholder((n, m), name=name + "s", dtype="int32")
            first = te.compute((1, m), lambda t, j: y[t, j] - 1, name=name + "i")
            between = te.compute((n, m), lambda t, j: state[t - 1, j] + x[t, j], name=name + "b")
            update = te.compute((n, m), lambda t, j: te.max(between[t, j], y[t, m - 1 - j]), name=name + "u")
            made, value = te.scan(first, update, state, name=name), vy - 1
            for t in range(1, self.rows):
                value[t] = np.maximum(value[t - 1] + vx[t], vy[t, ::-1])
        elif kind == 6:  # statements of a script's own
            def body(ins, outs):
                ib = tvm.tir.ir_builder.create()
                source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
                with ib.for_range(0, n, "i", kind=r.choice(("serial", "parallel"))) as i:
                    with ib.for_range(0, m, "j", kind=r.choice(("serial", "vectorize", "unroll"))) as j:
                        with ib.if_scope(i + j < n):
                            target[i, j] = source[i, j] * 2
                        with ib.else_scope():
                            target[i, j] = source[i, j] + j
                return ib.get()
            made = te.extern((n, m), [x], body, name=name)
            rows, columns = np.indices(vx.shape)
            value = np.where(rows + columns < self.rows, vx * 2, vx + columns)
        else:
            k = te.reduce_axis((0, n), "k")
            made, value = te.compute((n, m), lambda i, j: te.max(te.max(x[k, j], y[i, j]), axis=k), name=name), np.maximum(vx.max(0, keepdims=True), vy)
        self.tensors.append(made)
        self.values.append(value.astype("int32"))

    def schedule(self):
        r, out = self.random, self.tensors[-1]
        s = te.create_schedule(out.op)
        tried = refused = 0
        for _ in range(r.randint(0, 14)):
            tried += 1
            try:
                self.step(s, r.choice([t for t in s.stages if not isinstance(t.op, te.PlaceholderOp)] or [s[out]]))
            except tvm.TVMError as error:
                refused += 1
                assert "E901" not in str(error) and "hint" in str(error) or len(str(error)) > 20, error
        return s, out

    def step(self, s, stage):
        r, loops = self.random, list(stage.leaf_iter_vars)
        if not loops:  # an extern has none: what asks for its elements is refused
            r.choice((stage.compute_inline, stage.compute_root, lambda: s.cache_write(stage.op.output(0), "local")))()
            return
        loop = r.choice(loops)
        what = r.randrange(12)
        if what in (0, 1):
            stage.split(loop, **{r.choice(("factor", "nparts")): r.choice((1, 2, 3, 4, 8, 16))})
        elif what == 2 and len(loops) > 1:
            at = r.randrange(len(loops) - 1)
            stage.fuse(loops[at], loops[at + 1])
        elif what == 3:
            stage.reorder(*r.sample(loops, r.randint(1, len(loops))))
        elif what == 4:
            stage.vectorize(loop)
        elif what == 5:
            stage.unroll(loop)
        elif what == 6:
            stage.parallel(loop)
        elif what == 7:
            other = r.choice([t for t in s.stages if t.leaf_iter_vars])
            stage.compute_at(other, r.choice(list(other.leaf_iter_vars)))
        elif what == 8:
            stage.compute_inline()
        elif what == 9:
            s.cache_write(stage.op.output(0), r.choice(("global", "local")))
        elif what == 10:
            s.rfactor(stage.op.output(0), loop, r.randint(-3, 2))
        else:
            source = r.choice(list(stage.op.input_tensors) or [stage.op.output(0)])
            s.cache_read(source, "local", [stage.op])


class RandomSchedules(unittest.TestCase):
    def test_values(self):
        built = 0
        for seed in range(SEEDS):
            program = Program(seed)
            s, out = program.schedule()
            args = [*program.inputs, out]
            try:
                function = tvm.build(s, args, "llvm")
            except tvm.TVMError as error:
                self.assertNotIn("E901", str(error), seed)
                self.assertRegex(str(error), "E1", seed)
                continue
            built += 1
            got = tvm.nd.array(np.full_like(program.values[-1], -77))
            function(*[tvm.nd.array(d) for d in program.data], got)
            np.testing.assert_array_equal(got.numpy(), program.values[-1], f"seed {seed}\n{tvm.lower(s, args)}")
        self.assertGreater(built, SEEDS // 2)


if __name__ == "__main__":
    unittest.main()
