# SPDX-License-Identifier: Apache-2.0
"""Functions of loops written as Python above tensors: what they compute equals what they do to arrays."""
import tempfile
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te

HALF = 0.5


@te.hybrid.script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), "float32")  # noqa: F821
    for i in range(a.shape[0]):
        for j in vectorize(b.shape[0]):  # noqa: F821
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def upper_half(a):
    """A running sum above a threshold, and where it was passed."""
    total = output_tensor((len(a),), a.dtype)  # noqa: F821
    place = output_tensor((len(a),), "int32")  # noqa: F821
    for i in parallel(len(a)):  # noqa: F821
        s = 0.0
        p = -1
        for j in range(a.shape[1]):
            if a[i, j] > HALF and p < 0:
                p = j
            s = s + a[i, j] if a[i, j] > HALF else s
        total[i] = s
        place[i] = p
    return total, place


@te.hybrid.script
def blurred(x, times):
    here = allocate(x.shape, "float32")  # noqa: F821
    out = output_tensor(x.shape, "float32")  # noqa: F821
    n = x.shape[0]
    for i in range(n):
        here[i] = x[i]
        out[i] = x[i]
    for t in const_range(3):  # noqa: F821
        if t < times:
            for i in range(1, n - 1):
                out[i] = (here[i - 1] + here[i] + here[i + 1]) / float32(3)  # noqa: F821
            for i in range(n):
                here[i] = out[i]
    for i in range(n):
        out[i] *= exp(-max(out[i], float32(0)))  # noqa: F821
    return out


def build(tensors, *arrays):
    inputs = [t for t in tensors if isinstance(t.op, te.PlaceholderOp)]
    outputs = [t for t in tensors if t not in inputs]
    out = [tvm.nd.array(a) for a in arrays[len(inputs):]]
    tvm.build(te.create_schedule([t.op for t in outputs]), tensors, "llvm")(*(tvm.nd.array(a) for a in arrays[:len(inputs)]), *out)
    return [o.numpy() for o in out]


class Hybrid(unittest.TestCase):
    def test_values_equal_those_of_arrays(self):
        rng = np.random.default_rng(1)
        a, b, x = (rng.random(s).astype("float32") for s in (9, 8, 21))
        A, B = te.placeholder((9,), name="a"), te.placeholder((8,), name="b")
        got = build([A, B, outer_product(A, B)], a, b, np.zeros((9, 8), "float32"))[0]
        np.testing.assert_array_equal(got, a[:, None] * b)
        np.testing.assert_array_equal(outer_product(a, b), got)
        rows = rng.random((6, 12)).astype("float32")
        n = te.var("n")
        R = te.placeholder((n, 12), name="rows")
        total, place = upper_half(R)
        got = build([R, total, place], rows, np.zeros(6, "float32"), np.zeros(6, "int32"))
        want = upper_half(rows)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
        np.testing.assert_array_equal(got[1], want[1])
        X = te.placeholder((21,), name="x")
        for times in (0, 2):
            got = build([X, blurred(X, times)], x, np.zeros(21, "float32"))[0]
            np.testing.assert_allclose(got, blurred(x, times), rtol=1e-5)

    def test_beside_other_stages(self):
        A, B = te.placeholder((9,), name="a"), te.placeholder((8,), name="b")
        doubled = te.compute((9,), lambda i: A[i] * 2, name="doubled")
        made = outer_product(doubled, B)
        summed = te.compute((9, 8), lambda i, j: made[i, j] + A[i], name="summed")
        a, b = np.random.rand(9).astype("float32"), np.random.rand(8).astype("float32")
        np.testing.assert_allclose(build([A, B, summed], a, b, np.zeros((9, 8), "float32"))[0], 2 * a[:, None] * b + a[:, None], rtol=1e-6)

    def test_refusals(self):
        @te.hybrid.script
        def no_output(a):
            for i in range(3):
                pass

        @te.hybrid.script
        def input_assigned(a):
            c = output_tensor((3,), "float32")  # noqa: F821
            a[0] = c[0]
            return c

        @te.hybrid.script
        def endless(a):
            c = output_tensor((3,), "float32")  # noqa: F821
            while True:
                c[0] = a[0]
            return c

        @te.hybrid.script
        def unknown(a):
            c = output_tensor((3,), "float32")  # noqa: F821
            c[0] = a[0] + nobody  # noqa: F821
            return c

        @te.hybrid.script
        def left_over(a):
            c = output_tensor((3,), "float32")  # noqa: F821
            d = output_tensor((3,), "float32")  # noqa: F821
            d[0] = a[0]
            return c
        A = te.placeholder((3,), name="a")
        for f, reason in ((no_output, "no output_tensor"), (input_assigned, "inputs are only read"), (endless, "While"), (unknown, "nobody"), (left_over, "'d' is not returned")):
            with self.assertRaisesRegex(ValueError, reason):
                f(A)
        with self.assertRaisesRegex(ValueError, "takes 1 arguments and is given 2"):
            left_over(A, A)


@te.hybrid.script
def product(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), "float32")  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@te.hybrid.script
def running_rows(a):
    """Each row adds the one above; below the diagonal only."""
    c = output_tensor(a.shape, "float32")  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] if i == 0 else c[i - 1, j] + a[i, j]
    for i in range(1, a.shape[0]):
        for j in range(i):
            c[i, j] *= 2.0
    return c


class Scheduled(unittest.TestCase):
    """The loops of a script, changed by a schedule: the same values, or a refusal that says why."""

    def loops(self, s, tensors):
        """The loops of the lowered function in the order of their text: (name, extent, kind)."""
        out = []
        tvm.tir.stmt_functor.post_order_visit(tvm.lower(s, tensors)["main"].body, lambda n: out.append((n.loop_var.name, n.extent, n.kind)) if isinstance(n, tvm.tir.For) else None)
        return out[::-1]

    def values(self, s, tensors, *arrays):
        out = tvm.nd.array(np.zeros([int(d) if not hasattr(d, "name") else arrays[0].shape[0] for d in tensors[-1].shape], "float32"))
        tvm.build(s, tensors, "llvm")(*(tvm.nd.array(a) for a in arrays), out)
        return out.numpy()

    def setUp(self):
        rng = np.random.default_rng(5)
        self.a, self.b = rng.random(64).astype("float32"), rng.random(64).astype("float32")
        self.A, self.B = te.placeholder((64,), name="a"), te.placeholder((64,), name="b")
        self.C = outer_product(self.A, self.B)
        self.want = self.a[:, None] * self.b

    def test_steps(self):
        A, B, C = self.A, self.B, self.C
        self.assertIsInstance(C.op, te.HybridOp)
        self.assertEqual([axis.var.name for axis in C.op.axis], ["i", "j"])
        s = te.create_schedule(C.op)
        i, j = s[C].op.axis
        io, ii = s[C].split(i, 4)
        s[C].parallel(ii)
        jo, ji = s[C].split(j, 4)
        joo, joi = s[C].split(jo, 4)
        s[C].vectorize(ji)
        s[C].reorder(ii, io, joo, joi, ji)
        kinds = tvm.tir.ForKind
        serial, vectorized, parallel = (getattr(kinds, k) for k in ("SERIAL", "VECTORIZED", "PARALLEL"))
        self.assertEqual(self.loops(s, [A, B, C]), [("i.inner", 4, parallel), ("i.outer", 16, serial), ("j.outer.outer", 4, serial), ("j.outer.inner", 4, serial), ("j.inner", 4, vectorized)])
        np.testing.assert_array_equal(self.values(s, [A, B, C], self.a, self.b), self.want)
        s = te.create_schedule(C.op)
        fused = s[C].fuse(*s[C].op.axis)
        self.assertEqual([name for name, _, _ in self.loops(s, [A, B, C])], ["i.j.fused"])
        outer, inner = s[C].split(fused, nparts=7)  # with a remainder
        s[C].parallel(outer)
        np.testing.assert_array_equal(self.values(s, [A, B, C], self.a, self.b), self.want)
        s = te.create_schedule(C.op)
        i, j = s[C].op.axis
        io, jo, ii, ji = s[C].tile(i, j, 5, 7)
        both = s[C].fuse(io, jo)
        s[C].parallel(both)
        s[C].unroll(ji)
        np.testing.assert_array_equal(self.values(s, [A, B, C], self.a, self.b), self.want)
        module = te.hybrid.build(s, [A, B], [C])
        np.testing.assert_allclose(module(self.a, self.b), self.want)
        bounds = te.schedule.InferBound(s)
        self.assertEqual([int(bounds[v].extent) for v in (io, jo, ii, ji)], [13, 10, 5, 7])

    def test_a_bound_loop_is_shown(self):
        s = te.create_schedule(self.C.op)
        s[self.C].bind(s[self.C].op.axis[0], te.thread_axis("threadIdx.x"))
        self.assertIn("threadIdx.x", str(tvm.lower(s, [self.A, self.B, self.C])))

    def test_reductions_and_nests(self):
        n = te.var("n")
        A, B = te.placeholder((n, 24), name="a"), te.placeholder((24, 40), name="b")
        C = product(A, B)
        self.assertEqual([axis.var.name for axis in C.op.axis], ["i", "j", "k", "i", "j"])
        rng = np.random.default_rng(6)
        a, b = rng.random((37, 24)).astype("float32"), rng.random((24, 40)).astype("float32")
        s = te.create_schedule(C.op)
        i, j, k, zero_i, zero_j = C.op.axis
        io, ii = s[C].split(i, 8)  # a free size
        ko, ki = s[C].split(k, 4)
        s[C].reorder(io, ko, ii, ki, j)
        s[C].parallel(io)
        s[C].vectorize(j)
        s[C].parallel(zero_i)
        np.testing.assert_allclose(self.values(s, [A, B, C], a, b), a @ b, rtol=1e-5)
        with self.assertRaisesRegex(tvm.TVMError, "not of one nest"):
            s[C].reorder(zero_j, j)
        with self.assertRaisesRegex(tvm.TVMError, "not of one nest"):
            s[C].fuse(j, zero_i)
        s = te.create_schedule(C.op)
        s[C].parallel(k)
        with self.assertRaisesRegex(tvm.TVMError, "'k' may access the same element: it cannot be parallel"):
            tvm.lower(s, [A, B, C])

    def test_what_iterations_need_of_each_other(self):
        A = te.placeholder((16, 16), name="a")
        C = running_rows(A)
        a = np.random.default_rng(7).random((16, 16)).astype("float32")
        want = running_rows(a)
        names = [axis.var.name for axis in C.op.axis]
        self.assertEqual(names, ["i", "j", "i", "j"])
        tri_i, tri_j, i, j = C.op.axis
        s = te.create_schedule(C.op)
        s[C].reorder(j, i)
        s[C].parallel(j)
        outer, inner = s[C].split(tri_j, 3)
        s[C].split(tri_i, 4)
        s[C].vectorize(inner)
        np.testing.assert_allclose(self.values(s, [A, C], a), want, rtol=1e-5)
        with self.assertRaisesRegex(tvm.TVMError, "not of one nest"):
            s[C].reorder(outer, s[C].leaf_iter_vars[0])
        s = te.create_schedule(C.op)
        outer, inner = s[C].split(i, 4)
        s[C].reorder(inner, outer)
        with self.assertRaisesRegex(tvm.TVMError, "iterations of 'i' may access the same element"):
            tvm.lower(s, [A, C])

    def test_other_stages(self):
        doubled = te.compute((64,), lambda i: self.A[i] * 2, name="doubled")
        made = outer_product(doubled, self.B)
        s = te.create_schedule(made.op)
        with self.assertRaisesRegex(tvm.TVMError, "whose loops read whole tensors"):
            s[doubled].compute_at(s[made], made.op.axis[0])
        s[doubled].vectorize(doubled.op.axis[0])
        s[made].parallel(made.op.axis[0])
        np.testing.assert_allclose(self.values(s, [self.A, self.B, made], self.a, self.b), 2 * self.want, rtol=1e-6)
        cached = s.cache_read(doubled, "global", [made])
        s[cached].vectorize(cached.op.axis[0])
        s[made].split(s[made].op.axis[1], 16)
        np.testing.assert_allclose(self.values(s, [self.A, self.B, made], self.a, self.b), 2 * self.want, rtol=1e-6)


class Source(unittest.TestCase):
    """Schedules as Python text: the same results by the loops, by the text on arrays, and by the text on tensors once more."""

    def same(self, module, inputs, outputs, arrays):
        wanted = build([*inputs, *outputs], *arrays, *(np.zeros([int(d) for d in t.shape], t.dtype) for t in outputs))
        got = module(*arrays)
        for a, b in zip(got if isinstance(got, tuple) else [got], wanted):
            np.testing.assert_allclose(a, b, rtol=1e-4)
        made = module(*inputs)
        again = made if isinstance(made, list) else [made]
        for a, b in zip(build([*inputs, *again], *arrays, *(np.zeros_like(w) for w in wanted)), wanted):
            np.testing.assert_allclose(a, b, rtol=1e-4)
        return module.get_source()

    def test_schedules(self):
        rng = np.random.default_rng(3)
        x = rng.random((8, 16)).astype("float32")
        X = te.placeholder((8, 16), name="X")
        k = te.reduce_axis((0, 16), "k")
        row = te.compute((8,), lambda i: te.sum(X[i, k] * 2, axis=k), name="row")
        out = te.compute((8,), lambda i: te.exp(-row[i]) + tvm.tir.if_then_else(row[i] > 16.0, 1.0, 2.0), name="out")
        s = te.create_schedule(out.op)
        outer, inner = s[out].split(out.op.axis[0], 3)
        s[out].vectorize(inner)
        s[row].compute_at(s[out], outer)
        text = self.same(te.hybrid.build(s, [X], [out], name="rows"), [X], [out], [x])
        self.assertIn("def rows(X):", text)
        self.assertIn("in vectorize(3):", text)
        s = te.create_schedule(out.op)  # what is computed at the root is memory of the function
        s[row].parallel(row.op.axis[0])
        text = self.same(te.hybrid.build(s, [X], [out]), [X], [out], [x])
        self.assertRegex(text, r"row = allocate\(\(8,\), 'float32', 'global'\)")
        self.assertIn("in parallel(8):", text)
        names = te.compute((16, 8), lambda range, lambda_: tvm.tir.Cast("int32", X[lambda_, range] * 7) // 2 % 3 << 1, name="exp")
        self.same(te.hybrid.build(te.create_schedule(names.op), [X], [names]), [X], [names], [x])

    def test_a_script_and_a_free_size(self):
        n = te.var("n")
        R = te.placeholder((n, 12), name="rows")
        total, place = upper_half(R)
        module = te.hybrid.build(te.create_schedule([total.op]), [n, R], [total, place])
        rows = np.random.default_rng(4).random((6, 12)).astype("float32")
        for a, b in zip(module(6, rows), upper_half(rows)):
            np.testing.assert_allclose(a, b, rtol=1e-5)

    def test_modules_are_files(self):
        A, B = te.placeholder((9,), name="a"), te.placeholder((8,), name="b")
        C = outer_product(A, B)
        a, b = np.random.rand(9).astype("float32"), np.random.rand(8).astype("float32")
        module = tvm.build(te.create_schedule(C.op), [A, B, C], "hybrid", name="outer")
        out = tvm.nd.array(np.zeros((9, 8), "float32"))
        module(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_array_equal(out.numpy(), a[:, None] * b)
        module["outer"](tvm.nd.array(a), tvm.nd.array(b), out)
        with tempfile.TemporaryDirectory() as folder:
            module.save(folder + "/outer")
            loaded = te.hybrid.HybridModule()
            with self.assertRaisesRegex(ValueError, "no script yet"):
                loaded(a, b)
            loaded.load(folder + "/outer.py")
            self.assertEqual((loaded.name, loaded.get_source()), ("outer", module.get_source()))
            self.same(loaded, [A, B], [C], [a, b])
        mod = tvm.lower(te.create_schedule(C.op), [A, B, C], name="by_name")
        self.assertEqual(tvm.get_global_func("target.build.hybrid")(mod, tvm.target.Target("hybrid")).name, "by_name")

    def test_what_has_no_form(self):
        A = te.placeholder((4,), name="a")
        B = te.compute((4,), lambda i: tvm.tir.reinterpret("int32", A[i]), name="b")
        with self.assertRaisesRegex(ValueError, "no form for the expression"):
            te.hybrid.build(te.create_schedule(B.op), [A], [B])
        with self.assertRaisesRegex(ValueError, "2 are built"):
            tvm.build([tvm.lower(te.create_schedule(B.op), [A, B], name=n) for n in "fg"], target="hybrid")
        with self.assertRaisesRegex(ValueError, "2 functions"):
            te.hybrid.HybridModule("def f(a):\n    return a\n\n\ndef g(a):\n    return a\n")


if __name__ == "__main__":
    unittest.main()
