# SPDX-License-Identifier: Apache-2.0
"""Computations and schedules beyond the tutorials: traced elements, schedules as JSON, matrices of few elements, schedules for x86."""
import pickle
import unittest

import numpy as np
import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te, tir, topi
from tvm.contrib import sparse

SEEN = []


@tvm.register_func("saved.seen")
def seen(*values):
    SEEN.append(values)


@tvm.register_func("saved.thirteen")
def thirteen(*values):
    return 13


def run(schedule, args, *values):
    """The arguments after a call."""
    arrays = [v if isinstance(v, tvm.nd.NDArray) else tvm.nd.array(v) for v in values]
    tvm.build(schedule, args, "llvm")(*arrays)
    return [a.numpy() for a in arrays]


class Traces(unittest.TestCase):
    def test_what_is_seen(self):
        for dtype in ("float32", "int64"):
            x = te.placeholder((2, 3), name="x", dtype=dtype)
            y = te.compute(x.shape, lambda i, j: te.trace([i, j, x[i, j]], "saved.seen") + 1)  # noqa: B023
            z = te.compute(x.shape, lambda i, j: tir.trace([y[i, j]], "saved.thirteen") * x[i, j])  # noqa: B023
            data = np.arange(6).reshape(2, 3).astype(dtype)
            SEEN.clear()
            _, ones, out = run(te.create_schedule(z.op), [x, y, z], data, data, data)
            np.testing.assert_array_equal(ones, data + 1)
            np.testing.assert_array_equal(out, data * 13)
            self.assertEqual(SEEN, [(i, j, i * 3 + j) for i in range(2) for j in range(3)])

    def test_choices_are_traced_whole(self):
        x = te.placeholder((4,), name="x")
        with self.assertRaisesRegex(Exception, "choice"):
            te.compute((4,), lambda i: te.if_then_else(i > 0, te.trace([x[i - 1]], "saved.seen"), 0.0))
        with self.assertRaises(Exception):
            te.trace(3)


class Saved(unittest.TestCase):
    def test_schedules(self):
        m, n = te.size_var("m"), te.size_var("n")
        a = te.placeholder((m, n), name="a")
        b = te.compute((m, n), lambda i, j: a[i, j] + 1, name="b")
        c = te.compute((m, n), lambda i, j: b[i, j] * 2, name="c")
        k = te.reduce_axis((0, n), "k")
        d = te.compute((m,), lambda i: te.sum(c[i, k], axis=k), name="d")
        s = te.create_schedule(d.op)
        outer, inner = s[c].split(c.op.axis[1], factor=8)
        s[c].reorder(outer, c.op.axis[0], inner)
        both = s[c].fuse(outer, c.op.axis[0])
        s[c].vectorize(inner)
        s[c].parallel(both)
        s[c].pragma(both, "note", 3)
        s[b].compute_at(s[c], both)
        s[d].unroll(s[d].split(d.op.reduce_axis[0], nparts=4)[1])
        for again in (tvm.ir.load_json(tvm.ir.save_json(s)), pickle.loads(pickle.dumps(s))):
            self.assertIsInstance(again, te.schedule.Schedule)
            inputs = [x.op.output(0) for x in again.stages if isinstance(x.op, te.PlaceholderOp)]
            self.assertEqual(str(tvm.lower(again, [*inputs, again.outputs[0].output(0)], simple_mode=True)), str(tvm.lower(s, [a, d], simple_mode=True)))
            self.assertEqual(sum(bool(v.pragma_keys) for x in again.stages for v in x.iter_var_attrs.values()), 1)
        s[b].set_store_predicate(b.op.axis[0] > 1)
        with self.assertRaisesRegex(TypeError, "store predicate"):
            tvm.ir.save_json(s)


    def again(self, schedule, outputs, *values):
        """The results of a schedule and of its copy from JSON, which has the same loops."""
        out = []
        for s in (schedule, tvm.ir.load_json(tvm.ir.save_json(schedule))):
            inputs = [x.op.output(0) for x in s.stages if isinstance(x.op, te.PlaceholderOp) and x.op.name != "state"]
            args = [*inputs, *(s.outputs[0].output(i) for i in range(s.outputs[0].num_outputs))]
            out.append((str(tvm.lower(s, args, simple_mode=True)), run(s, args, *values, *(np.zeros(shape, dtype) for shape, dtype in outputs))[len(values):]))
        self.assertEqual(out[0][0], out[1][0])
        for first, second in zip(out[0][1], out[1][1]):
            np.testing.assert_array_equal(first, second)
        return out[0][1]

    def test_scripts(self):
        @te.hybrid.script
        def outer(a, b):
            c = output_tensor((a.shape[0], b.shape[0]), a.dtype)  # noqa: F821
            most = allocate((1,), a.dtype)  # noqa: F821
            for i in range(a.shape[0]):
                most[0] = a[i]
                for j in range(b.shape[0]):
                    c[i, j] = most[0] * b[j]
            return c
        for n, m in ((12, 16), (te.size_var("n"), te.size_var("m"))):
            a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
            c = outer(a, b)
            d = te.compute(c.shape, lambda i, j: c[i, j] + 1, name="d")  # noqa: B023
            s = te.create_schedule(d.op)
            s[c].unroll(s[c].split(c.op.axis[0], 4)[1])
            x, y = np.arange(12, dtype="float32"), np.arange(16, dtype="float32")
            made, = self.again(s, [((12, 16), "float32")], x, y)
            np.testing.assert_array_equal(made, np.outer(x, y) + 1)
        op = tvm.ir.load_json(tvm.ir.save_json(c)).op
        self.assertIsInstance(op, te.HybridOp)
        self.assertEqual([v.var.name for v in op.axis], [v.var.name for v in c.op.axis])

    def test_statements_and_recurrences(self):
        a = te.placeholder((3, 5), name="a")
        tvm.register_func("saved.negated", lambda x, y: tvm.nd.array(-x.numpy()).copyto(y), override=True)
        b = te.extern((3, 5), [a], lambda ins, outs: tir.call_packed("saved.negated", ins[0], outs[0]), name="b")
        x = np.arange(15, dtype="float32").reshape(3, 5)
        made, = self.again(te.create_schedule(b.op), [((3, 5), "float32")], x)
        np.testing.assert_array_equal(made, -x)
        state, first = te.placeholder((3, 5), name="state"), te.compute((1, 5), lambda _, i: a[0, i], name="first")
        update = te.compute((3, 5), lambda t, i: state[t - 1, i] + a[t, i], name="update")
        made, = self.again(te.create_schedule(te.scan(first, update, state, inputs=[a], name="sums").op), [((3, 5), "float32")], x)
        np.testing.assert_array_equal(made, np.cumsum(x, 0))


class FewElements(unittest.TestCase):
    def setUp(self):
        draw = np.random.RandomState(3)
        self.left, self.right = (np.maximum(draw.rand(*shape) - 0.5, 0).astype("float32") for shape in ((6, 8), (5, 8)))
        self.bias = draw.rand(8).astype("float32")

    def test_arrays(self):
        few = sparse.array(self.left, tvm.cpu())
        self.assertEqual(few.indptr.shape[0], few.shape[0] + 1)
        np.testing.assert_array_equal(few.numpy(), self.left)
        again = sparse.array((few.data, few.indices, few.indptr), shape=few.shape)
        np.testing.assert_array_equal(again.numpy(), self.left)
        with self.assertRaises(NotImplementedError):
            sparse.array(self.left, stype="coo")

    def test_products(self):
        rows, columns, count = te.var("rows"), te.var("columns"), te.var("count")
        a = sparse.placeholder((rows, columns), nonzeros=count, name="a")
        b, c = te.placeholder((8, 3), name="b"), te.placeholder((rows,), name="c")
        few, other = sparse.array(self.left), np.random.rand(8, 3).astype("float32")
        parts, args = [few.data, few.indices, few.indptr], [a.data, a.indices, a.indptr]
        d = topi.sparse.csrmm(a, b, c)
        result = tvm.nd.array(np.zeros((6, 3), "float32"))
        tvm.build(te.create_schedule(d.op), [rows, *args, b, c, d], "llvm")(6, *parts, tvm.nd.array(other), tvm.nd.array(self.bias[:6]), result)
        np.testing.assert_allclose(result.numpy(), self.left @ other + self.bias[:6, None], rtol=1e-5)

    def test_dense(self):
        want = self.left @ self.right.T + self.bias[:5]
        zeros = np.zeros((6, 5), "float32")
        few, x, bias = sparse.array(self.left), te.placeholder((5, 8), name="x"), te.placeholder((5,), name="bias")
        a = sparse.placeholder((6, 8), nonzeros=few.data.shape[0], name="a")
        d = topi.sparse.dense(a, x, bias)
        got = run(te.create_schedule(d.op), [a.data, a.indices, a.indptr, x, bias, d], few.data, few.indices, few.indptr, self.right, self.bias[:5], zeros)
        np.testing.assert_allclose(got[-1], want, rtol=1e-5)
        few, x = sparse.array(self.right), te.placeholder((6, 8), name="x")
        w = sparse.placeholder((5, 8), nonzeros=few.data.shape[0], name="w")
        d = topi.sparse.dense(x, w, bias)
        got = run(te.create_schedule(d.op), [x, w.data, w.indices, w.indptr, bias, d], self.left, few.data, few.indices, few.indptr, self.bias[:5], zeros)
        np.testing.assert_allclose(got[-1], want, rtol=1e-5)
        parts = [te.placeholder(v.shape, v.dtype) for v in (few.data, few.indices, few.indptr)]
        d = topi.nn.sparse_dense(x, *parts)
        got = run(topi.generic.schedule_sparse_dense([d]), [x, *parts, d], self.left, few.data, few.indices, few.indptr, zeros)
        np.testing.assert_allclose(got[-1], self.left @ self.right.T, rtol=1e-5)

    def test_blocks_and_transposed(self):
        draw = np.random.RandomState(1)
        blocks, columns, ends = draw.rand(3, 2, 4).astype("float32"), np.array([0, 1, 1], "int32"), np.array([0, 2, 3], "int32")
        weight = np.zeros((4, 8), "float32")
        weight[:2, :4], weight[:2, 4:], weight[2:, 4:] = blocks
        x = te.placeholder((6, 8))
        parts = [te.placeholder(v.shape, str(v.dtype)) for v in (blocks, columns, ends)]
        for lhs, want in ((False, self.left @ weight.T), (True, weight @ self.left.T)):
            d = topi.nn.sparse_dense(x, *parts, sparse_lhs=lhs)
            got = run(te.create_schedule(d.op), [x, *parts, d], self.left, blocks, columns, ends, np.zeros(want.shape, "float32"))
            np.testing.assert_allclose(got[-1], want, rtol=1e-5)
        square = np.maximum(draw.rand(7, 7) - 0.5, 0).astype("float32")
        few = sparse.array(square)
        parts = [te.placeholder(v.shape, v.dtype) for v in (few.data, few.indices, few.indptr)]
        turned = topi.nn.sparse_transpose(*parts)
        made = [tvm.nd.array(np.zeros(v.shape, v.dtype)) for v in (few.data, few.indices, few.indptr)]
        run(te.create_schedule(turned[0].op), [*parts, *turned], few.data, few.indices, few.indptr, *made)
        np.testing.assert_array_equal(sparse.array(tuple(made), shape=(7, 7)).numpy(), square.T)


class X86(unittest.TestCase):
    def same(self, schedules, result, args, *values):
        shape = [int(d) for d in result.shape]
        outs = [run(schedule(result), [*args, result], *values, np.zeros(shape, result.dtype))[-1] for schedule in schedules]
        for out in outs[1:]:
            np.testing.assert_allclose(out, outs[0], rtol=1e-4, atol=1e-5)

    def test_convolutions(self):
        draw = np.random.RandomState(2)
        for channels, size, out in ((16, 14, 32), (3, 15, 10), (8, 7, 6)):
            x, w = te.placeholder((1, channels, size, size), name="x"), te.placeholder((out, channels, 3, 3), name="w")
            values = [draw.rand(*map(int, t.shape)).astype("float32") for t in (x, w)]
            for stride in (1, 2):
                y = topi.nn.relu(topi.nn.conv2d_nchw(x, w, stride, 1, 1))
                self.same((topi.generic.schedule_conv2d_nchw, topi.x86.schedule_conv2d_nchw), y, [x, w], *values)
            x, w = te.placeholder((1, size, size, channels), name="x"), te.placeholder((3, 3, channels, out), name="w")
            y = topi.nn.conv2d_nhwc(x, w, 1, 1, 1)
            self.same((topi.generic.schedule_conv2d_nhwc, topi.x86.schedule_conv2d_nhwc), y, [x, w], values[0].transpose(0, 2, 3, 1).copy(), values[1].transpose(2, 3, 1, 0).copy())

    def test_products(self):
        draw = np.random.RandomState(2)
        for rows, columns, depth in ((8, 40, 64), (1, 10, 7), (5, 33, 16)):
            x, w = te.placeholder((rows, depth), name="x"), te.placeholder((columns, depth), name="w")
            self.same((topi.generic.schedule_dense, topi.x86.schedule_dense), topi.nn.relu(topi.nn.dense(x, w)), [x, w], draw.rand(rows, depth).astype("float32"), draw.rand(columns, depth).astype("float32"))
        x, y = te.placeholder((2, 6, 8), name="x"), te.placeholder((2, 12, 8), name="y")
        self.same((topi.generic.schedule_batch_matmul, topi.x86.schedule_batch_matmul), topi.nn.batch_matmul(x, y), [x, y], draw.rand(2, 6, 8).astype("float32"), draw.rand(2, 12, 8).astype("float32"))


if __name__ == "__main__":
    unittest.main()
