# SPDX-License-Identifier: Apache-2.0
"""Statements of a script's own: ir_builder, te.extern, te.scan, tensorize, functions called by name, passes. What is accepted equals numpy."""
import os
import random
import shutil
import tempfile
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te

SEEDS = int(os.environ.get("TW_TE_PYTHON_SEEDS", "40"))


def arrays(*values):
    return [tvm.nd.array(v) for v in values]


def zeros(*shape, dtype="float32"):
    return tvm.nd.array(np.full(shape, -77, dtype))


def random_floats(*shape):
    return np.random.rand(*shape).astype("float32")


class Builder(unittest.TestCase):
    def test_extern_of_a_loop(self):
        n = te.var("n")
        a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")

        def body(ins, outs):
            ib = tvm.tir.ir_builder.create()
            x, y, z = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, n, name="i", kind="parallel") as i:
                z[i] = x[i] + y[i]
            return ib.get()
        c = te.extern((n,), [a, b], body, name="C", dtype="float32")
        d = te.compute((n,), lambda i: c[i] * 2, name="D")
        function = tvm.build(te.create_schedule(d.op), [a, b, d], "llvm")
        for size in (0, 1, 1000):
            x, y, out = random_floats(size), random_floats(size), zeros(size)
            function(*arrays(x, y), out)
            np.testing.assert_array_equal(out.numpy(), (x + y) * 2)

    def test_function_of_buffers(self):
        n = te.size_var("n")
        a, b = tvm.tir.decl_buffer((n,), "float32", name="A"), tvm.tir.decl_buffer((n,), "float32", name="B")
        ib = tvm.tir.ir_builder.create()
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, n, "i") as i:
            with ib.if_scope(i % 2 == 0):
                y[i] = x[i] * 2.0
            with ib.else_scope():
                t = ib.allocate("float32", (4,), name="t")
                with ib.for_range(0, 4, "j") as j:
                    t[j] = x[i] + j
                total = ib.let("total", t[0] + t[1] + t[2] + t[3])
                y[i] = total
        function = tvm.build(tvm.tir.PrimFunc([a, b], ib.get()).with_attr("global_symbol", "f"), target="llvm")
        x, out = random_floats(31), zeros(31)
        function["f"](*arrays(x), out)
        np.testing.assert_allclose(out.numpy(), np.where(np.arange(31) % 2 == 0, x * 2, 4 * x + 6), rtol=1e-6)

    def test_vectors_and_two_dimensions(self):
        a, b = tvm.tir.decl_buffer((4, 16), "float32", name="A"), tvm.tir.decl_buffer((4, 16), "float32", name="B")
        ib = tvm.tir.ir_builder.create()
        with ib.for_range(0, 4) as i:
            ib.emit(b.vstore([i, 0], a.vload([i, 0], "float32x16") * tvm.tir.Broadcast(tvm.tir.const(3.0, "float32"), 16)))
        function = tvm.build(tvm.tir.PrimFunc([a, b], ib.get()), target="llvm")
        x, out = random_floats(4, 16), zeros(4, 16)
        function(*arrays(x), out)
        np.testing.assert_allclose(out.numpy(), x * 3, rtol=1e-6)

    def test_walks_and_rewriting(self):
        a = tvm.tir.decl_buffer((8,), "int32", name="A")
        ib = tvm.tir.ir_builder.create()
        x = ib.buffer_ptr(a)
        with ib.for_range(0, 8, "i") as i:
            x[i] = i * 3
        body, seen = ib.get(), []
        tvm.tir.stmt_functor.post_order_visit(body, lambda node: seen.append(type(node).__name__))
        self.assertEqual(seen[-1], "For")
        self.assertIn("Mul", seen)
        changed = tvm.tir.stmt_functor.ir_transform(body, None, lambda e: e.a * 5 if isinstance(e, tvm.tir.Mul) else None, ["tir.Mul"])
        function = tvm.build(tvm.tir.PrimFunc([a], changed), target="llvm")
        out = zeros(8, dtype="int32")
        function(out)
        np.testing.assert_array_equal(out.numpy(), np.arange(8) * 5)


class Functions(unittest.TestCase):
    def test_of_the_runtime(self):
        @tvm.register_func("test.scaled", override=True)
        def scaled(source, target, by):
            target.copyfrom(source.numpy() * by)
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        b = te.extern(a.shape, [a], lambda ins, outs: tvm.tir.call_packed("test.scaled", ins[0], outs[0], 3), name="B")
        c = te.compute(a.shape, lambda i: b[i] + 1, name="C")
        s = te.create_schedule(c.op)
        s[c].parallel(c.op.axis[0])
        function = tvm.build(s, [a, c], "llvm", name="f")
        x, out = random_floats(70), zeros(70)
        function(*arrays(x), out)
        np.testing.assert_allclose(out.numpy(), x * 3 + 1, rtol=1e-6)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lib.so")
            function.export_library(path)
            out = zeros(70)
            tvm.runtime.load_module(path)["f"](*arrays(x), out)
            np.testing.assert_allclose(out.numpy(), x * 3 + 1, rtol=1e-6)

        @tvm.register_func("test.scaled", override=True)
        def wrong(source, target, by):
            raise ValueError("not today")
        with self.assertRaisesRegex(Exception, "not today"):
            function(*arrays(x), out)
        other = te.extern(a.shape, [a], lambda ins, outs: tvm.tir.call_packed("test.nobody", ins[0], outs[0]), name="B")
        with self.assertRaisesRegex(tvm.TVMError, "test.nobody"):
            tvm.build(te.create_schedule(other.op), [a, other], "llvm")(*arrays(x), out)

    def test_blas(self):
        n, m = 16, 24
        a, b, bias = te.placeholder((n, m), name="A"), te.placeholder((m, n), name="B"), te.placeholder((n,), name="bias")
        c = tvm.contrib.cblas.matmul(a, b)
        d = te.compute((n, n), lambda i, j: c[i, j] + bias[j], name="D")
        x, y, z, out = random_floats(n, m), random_floats(m, n), random_floats(n), zeros(n, n)
        tvm.build(te.create_schedule(d.op), [a, b, bias, d], "llvm")(*arrays(x, y, z), out)
        np.testing.assert_allclose(out.numpy(), x @ y + z, rtol=1e-5)

    def test_of_c_and_rules(self):
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        x = np.random.randn(21).astype("float32")
        b = te.compute(a.shape, lambda i: tvm.tir.call_pure_extern("float32", "tanhf", a[i]), name="B")
        s = te.create_schedule(b.op)
        s[b].vectorize(s[b].split(b.op.axis[0], 8)[1])
        out = zeros(21)
        tvm.build(s, [a, b], "llvm")(*arrays(x), out)
        np.testing.assert_allclose(out.numpy(), np.tanh(x), rtol=1e-5)
        tvm.ir.register_op_attr("tir.test_log", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
        c = te.compute(a.shape, lambda i: tvm.tir.call_intrin("float32", "tir.test_log", a[i]), name="C")
        with self.assertRaisesRegex(tvm.TVMError, "tir.test_log"):
            tvm.build(te.create_schedule(c.op), [a, c], "llvm")
        tvm.ir.register_intrin_lowering("tir.test_log", target="llvm", f=lambda call: tvm.tir.call_pure_extern("float32", "logf", call.args[0]), level=99)
        tvm.build(te.create_schedule(c.op), [a, c], "llvm")(*arrays(np.abs(x) + 1), out)
        np.testing.assert_allclose(out.numpy(), np.log(np.abs(x) + 1), rtol=1e-5)

    def test_refusals(self):
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        known, other = tvm.tir.decl_buffer((4,), "float32", "K"), tvm.tir.decl_buffer((4,), "float32", "Z")
        for make, reason in (
                (lambda: te.extern((n,), [a], lambda i, o: tvm.tir.call_packed("x", i[0], "y")), "text"),
                (lambda: tvm.tir.call_intrin("float32", "tir.nope", 1.0), "no intrinsic"),
                (lambda: tvm.build(tvm.tir.PrimFunc([known], tvm.tir.BufferStore(other, 1.0, [0]))), "no memory"),
                (lambda: tvm.build(tvm.tir.PrimFunc([known], tvm.tir.BufferStore(known, 1.0, [0, 0]))), "indices"),
                (lambda: tvm.build(te.create_schedule(te.extern((n,), [a], lambda i, o: tvm.tir.For(te.var("i"), 0, n, 0, tvm.tir.Evaluate(tvm.tir.call_packed("x", i[0])))).op), [a]), "loop|argument"),
                (lambda: tvm.tir.While(1, tvm.tir.Evaluate(0)), "while on int32"), (lambda: tvm.tir.ir_builder.create().else_scope(), "if_scope"),
                (lambda: tvm.tir.Ramp(1.5, 1, 4), "whole number"), (lambda: tvm.tir.Broadcast(1, 0), "lanes"), (lambda: tvm.tir.decl_buffer((-3,)), "size"),
                (lambda: tvm.tir.decl_buffer((3,), "handle"), "numbers"), (lambda: tvm.tir.BufferStore(known, 1.0, [1.5]), "integers"),
                (lambda: known.vstore([tvm.tir.Ramp(0, 1, 8)], tvm.tir.Broadcast(tvm.tir.const(1.0, "float32"), 4)), "4 values"),
                (lambda: tvm.tir.PrimFunc([known, known], tvm.tir.BufferStore(known, 1.0, [0])), "twice"),
                (lambda: tvm.tir.PrimFunc([1], tvm.tir.BufferStore(known, 1.0, [0])), "no buffer")):
            with self.assertRaisesRegex((tvm.TVMError, ValueError, RuntimeError), reason):
                make()


class Scans(unittest.TestCase):
    def test_cumulative_sum(self):
        m, n = te.var("m"), te.var("n")
        x = te.placeholder((m, n), name="X")
        state = te.placeholder((m, n))
        init = te.compute((1, n), lambda _, i: x[0, i])
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
        scan = te.scan(init, update, state, inputs=[x])
        s = te.create_schedule(scan.op)
        for stage in (init, update):
            _, inner = s[stage].split(stage.op.axis[1], factor=4)
            s[stage].vectorize(inner)
        function = tvm.build(s, [x, scan], "llvm", name="myscan")
        for rows, columns in ((1, 1), (10, 13), (3, 64)):
            value, out = random_floats(rows, columns), zeros(rows, columns)
            function(*arrays(value), out)
            np.testing.assert_allclose(out.numpy(), np.cumsum(value, 0), rtol=1e-5)

    def test_stages_and_states(self):
        m, n, k = te.var("m"), te.var("n"), te.var("k")
        x = te.placeholder((m, n), name="X")
        state = te.placeholder((m, n))
        init = te.compute((1, n), lambda _, i: x[0, i])
        first = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="s1")
        second = te.compute((m, n), lambda t, i: first[t, i] + x[t, i], name="s2")
        scan = te.scan(init, second, state, inputs=[x])
        value = random_floats(9, 7)
        want = value.copy()
        for t in range(1, 9):
            want[t] += want[t - 1] * 2
        for inside in (False, True):
            s = te.create_schedule(scan.op)
            if inside:
                s[first].compute_at(s[second], second.op.axis[1])
            out = zeros(9, 7)
            tvm.build(s, [x, scan], "llvm")(*arrays(value), out)
            np.testing.assert_allclose(out.numpy(), want, rtol=1e-5)
        other = te.placeholder((m, k))
        i2, u1 = te.compute((1, k), lambda _, i: 0.0), te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
        u2 = te.compute((m, k), lambda t, i: other[t - 1, i] + state[t - 1, 0])
        one, two = te.scan([init, i2], [u1, u2], [state, other], inputs=[x])
        a, b = zeros(9, 7), zeros(9, 3)
        tvm.build(te.create_schedule(one.op), [x, one, two], "llvm")(*arrays(value), a, b)
        sums = np.cumsum(value, 0)
        np.testing.assert_allclose(a.numpy(), sums, rtol=1e-5)
        np.testing.assert_allclose(b.numpy(), np.concatenate([np.zeros((1, 3)), np.cumsum(sums[:-1, :1], 0) @ np.ones((1, 3))]), rtol=1e-5)

    def test_refusals(self):
        x, state = te.placeholder((4, 4), name="X"), te.placeholder((4, 4))
        init, update = te.compute((1, 4), lambda t, i: x[t, i]), te.compute((4, 4), lambda t, i: state[t - 1, i] + x[t, i])
        with self.assertRaisesRegex(tvm.TVMError, "placeholder"):
            te.scan(init, update, update)
        with self.assertRaisesRegex(tvm.TVMError, "dimensions"):
            te.scan(te.compute((4,), lambda i: x[0, i]), update, state)
        scan = te.scan(init, update, state)
        s = te.create_schedule(scan.op)
        s[update].compute_at(s[scan], s[scan].leaf_iter_vars[0])
        with self.assertRaisesRegex(tvm.TVMError, "where the scan"):
            tvm.lower(s, [x, scan])


def product(rows, columns, depth, dtype="int32", transposed=False, minus=False):
    """A product of matrices as an intrinsic in loops of its own, with any strides."""
    a, b = te.placeholder((rows, depth), dtype, name="a"), te.placeholder((columns, depth) if transposed else (depth, columns), dtype, name="b")
    k = te.reduce_axis((0, depth), "k")
    element = (lambda j, k: b[j, k]) if transposed else (lambda j, k: b[k, j])
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] - element(j, k) if minus else a[i, k] * element(j, k), axis=k), name="c")
    binds = {t: tvm.tir.decl_buffer(t.shape, dtype, name=t.op.name, strides=[te.var(f"{t.op.name}s"), 1]) for t in (a, b, c)}

    def make(ins, outs):
        def loops(add):
            ib = tvm.tir.ir_builder.create()
            x, y, z = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, rows, "i") as i:
                with ib.for_range(0, columns, "j") as j:
                    if not add:
                        z[i, j] = tvm.tir.const(0, dtype)
                    if add != "reset":
                        with ib.for_range(0, depth, "k") as kk:
                            other = y[j, kk] if transposed else y[kk, j]
                            z[i, j] = z[i, j] + (x[i, kk] - other if minus else x[i, kk] * other)
            return ib.get()
        ib = tvm.tir.ir_builder.create()
        z = ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, "i") as i:
            with ib.for_range(0, columns, "j") as j:
                z[i, j] = tvm.tir.const(0, dtype)
        return loops(False), ib.get(), loops(True)
    return te.decl_tensor_intrin(c.op, make, name=f"product_{rows}x{columns}x{depth}", binds=binds)


GEMV = """
extern "C" int gemv_update(float *cc, float *aa, float *bb, int m, int l, int stride) {
  for (int i = 0; i < m; ++i) for (int j = 0; j < l; ++j) cc[i] += aa[j] * bb[i * stride + j];
  return 0;
}
extern "C" int gemv_reset(float *cc, int m) { for (int i = 0; i < m; ++i) cc[i] = 0.0; return 0; }
"""


class Tensorize(unittest.TestCase):
    @unittest.skipUnless(shutil.which("clang"), "no clang is installed")
    def test_the_tutorial(self):
        def gemv(m, l, parts):
            a, b, k = te.placeholder((l,), name="a"), te.placeholder((m, l), name="b"), te.reduce_axis((0, l), name="k")
            c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
            binds = {a: tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1]),
                     b: tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1]),
                     c: tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])}

            def intrin_func(ins, outs):
                aa, bb = ins
                cc = outs[0]

                def call(name, *args):
                    ib = tvm.tir.ir_builder.create()
                    ib.emit(tvm.tir.call_extern("int32", name, *args))
                    return ib.get()
                update = call("gemv_update", cc.access_ptr("w"), aa.access_ptr("r"), bb.access_ptr("r"), m, l, bb.strides[0])
                reset = call("gemv_reset", cc.access_ptr("w"), m)
                return (update, reset, update) if parts else tvm.tir.stmt_seq(reset, update)
            return te.decl_tensor_intrin(c.op, intrin_func, binds=binds)
        n, m, l = 64, 32, 16
        a, b, k = te.placeholder((n, l), name="A"), te.placeholder((m, l), name="B"), te.reduce_axis((0, l), name="k")
        c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
        x, y = random_floats(n, l), random_floats(m, l)
        for parts in (False, True):
            s = te.create_schedule(c.op)
            i, j = c.op.axis
            jo, ji = s[c].split(j, factor=8)
            if parts:
                ko, ki = s[c].split(c.op.reduce_axis[0], factor=4)
                s[c].reorder(i, jo, ko, ji, ki)
            else:
                s[c].reorder(i, jo, ji, c.op.reduce_axis[0])
            s[c].tensorize(ji, gemv(8, 4 if parts else 16, parts))
            s[c].pragma(i, "import_llvm", tvm.contrib.clang.create_llvm(GEMV))
            out = zeros(n, m)
            tvm.build(s, [a, b, c], target="llvm", name="gemv")(*arrays(x, y), out)
            np.testing.assert_allclose(out.numpy(), x @ y.T, rtol=1e-4)

    def test_random_pieces(self):
        """Random splits, orders and intrinsics: what is accepted equals numpy, what is refused says why."""
        accepted = refused = 0
        for seed in range(SEEDS):
            r = random.Random(seed)
            m, n, d = (r.choice((1, 2, 4, 6, 8, 12)) for _ in range(3))
            transposed = r.random() < 0.4
            a, b = te.placeholder((m, d), "int32", name="A"), te.placeholder((n, d) if transposed else (d, n), "int32", name="B")
            k = te.reduce_axis((0, d), "k")
            c = te.compute((m, n), lambda i, j: te.sum((b[j, k] if transposed else b[k, j]) * a[i, k], axis=k), name="C")
            s = te.create_schedule(c.op)
            target = s[c]
            if r.random() < 0.3:
                target = s[s.cache_write(c, "local")]
                fi, fo = s[c].split(c.op.axis[0], r.choice((1, 2, 3)))
                target.compute_at(s[c], r.choice([fi, fo]))
            (i, j), (kk,) = target.op.axis, target.op.reduce_axis
            factors = [r.choice((1, 2, 3, 4)) for _ in range(3)]
            pairs = [target.split(loop, f) for loop, f in zip((i, j, kk), factors)]
            outer, inner = [p[0] for p in pairs], [p[1] for p in pairs]
            r.shuffle(outer)
            r.shuffle(inner)
            target.reorder(*outer, *inner)
            sizes = [min(f, e) for f, e in zip(factors, (m, n, d))] if r.random() < 0.85 else [r.choice((1, 2, 4)) for _ in range(3)]
            if r.random() < 0.15:
                inner = inner[1:]
            try:
                target.tensorize(inner[0], product(*sizes, transposed=transposed if r.random() < 0.9 else not transposed, minus=r.random() < 0.1))
                function = tvm.build(s, [a, b, c], "llvm")
            except tvm.TVMError as error:
                self.assertRegex(str(error), "E1", seed)
                refused += 1
                continue
            accepted += 1
            x, y = np.random.randint(-9, 9, (m, d)).astype("int32"), np.random.randint(-9, 9, b_shape(n, d, transposed)).astype("int32")
            out = zeros(m, n, dtype="int32")
            function(*arrays(x, y), out)
            np.testing.assert_array_equal(out.numpy(), x @ (y.T if transposed else y), f"seed {seed}\n{tvm.lower(s, [a, b, c])}")
        self.assertGreater(accepted, SEEDS // 6)
        self.assertGreater(refused, 0)

    def test_register_tile(self):
        from tvm.topi.x86.tensor_intrin import register_tile
        m, n, d = 16, 64, 32
        a, b, k = te.placeholder((m, d), name="A"), te.placeholder((d, n), name="B"), te.reduce_axis((0, d), "k")
        c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        for depth in (d, 8):
            s = te.create_schedule(c.op)
            io, jo, ii, ji = s[c].tile(*c.op.axis, 4, 32)
            ko, ki = s[c].split(k, depth)
            s[c].reorder(io, jo, ko, ii, ji, ki)
            s[c].tensorize(ii, register_tile(4, 32, depth))
            x, y, out = random_floats(m, d), random_floats(d, n), zeros(m, n)
            tvm.build(s, [a, b, c], "llvm")(*arrays(x, y), out)
            np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-5)

    def test_refusals(self):
        a, b, k = te.placeholder((12, 8), "int32", name="A"), te.placeholder((8, 12), "int32", name="B"), te.reduce_axis((0, 8), "k")
        c = te.compute((12, 12), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        for factor, sizes, options, reason in ((4, (4, 4, 8), {"minus": True}, "computes"), (4, (4, 2, 8), {}, "elements"), (5, (5, 5, 8), {}, "evenly"), (4, (4, 4, 4), {}, "elements"),
                                               (4, (4, 4, 8), {"dtype": "int64"}, "combines|computes")):
            s = te.create_schedule(c.op)
            io, jo, ii, ji = s[c].tile(*c.op.axis, factor, factor)
            s[c].tensorize(ii, product(*sizes, **options))
            with self.assertRaisesRegex(tvm.TVMError, reason):
                tvm.lower(s, [a, b, c])
        with self.assertRaises(TypeError):
            s[c].tensorize(ii, "gemv")


def b_shape(n, d, transposed):
    return (n, d) if transposed else (d, n)


class Passes(unittest.TestCase):
    def test_a_pass_of_a_script(self):
        a, b = (te.placeholder((128,), name=n) for n in "ab")
        c = te.compute((128,), lambda i: a[i] + b[i], name="c")
        schedule = te.create_schedule(c.op)
        loops = []

        def find_width8(op):
            if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value % 8 == 0:
                loops.append(op)

        def vectorize8(op):
            if op not in loops:
                return None
            outer, inner = te.var(op.loop_var.name + ".outer"), te.var(op.loop_var.name + ".inner")
            body = tvm.tir.stmt_functor.substitute(op.body, {op.loop_var: outer * 8 + inner})
            return tvm.tir.For(outer, 0, op.extent.value // 8, tvm.tir.ForKind.SERIAL, tvm.tir.For(inner, 0, 8, tvm.tir.ForKind.VECTORIZED, body))

        @tvm.tir.transform.prim_func_pass(opt_level=0)
        def vectorize(f, mod, ctx):
            tvm.tir.stmt_functor.post_order_visit(f.body, find_width8)
            return f.with_body(tvm.tir.stmt_functor.ir_transform(f.body, None, vectorize8, ["tir.For"])) if loops else f
        self.assertIn("vectorized", str(vectorize(tvm.lower(schedule, [a, b, c]))))
        with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
            self.assertIn("vectorized", str(tvm.lower(schedule, [a, b, c])))
            function = tvm.build(schedule, [a, b, c], "llvm")
        x, y, out = random_floats(128), random_floats(128), zeros(128)
        function(*arrays(x, y), out)
        np.testing.assert_array_equal(out.numpy(), x + y)

    def test_store_predicate(self):
        a = te.placeholder((16,), name="A")
        b = te.compute((16,), lambda i: a[i] * 2, name="B")
        s = te.create_schedule(b.op)
        s[b].set_store_predicate(b.op.axis[0].var < 5)
        x, out = random_floats(16), tvm.nd.array(np.zeros(16, "float32"))
        tvm.build(s, [a, b], "llvm")(*arrays(x), out)
        np.testing.assert_array_equal(out.numpy(), np.where(np.arange(16) < 5, x * 2, 0))
        with self.assertRaisesRegex(tvm.TVMError, "none of its loops"):
            s[b].set_store_predicate(te.var("other") < 5)


if __name__ == "__main__":
    unittest.main()
