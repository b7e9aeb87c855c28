# SPDX-License-Identifier: Apache-2.0
"""What the public tutorials of the classic stack do, each as a short script: loop IR in a blitz, a product made faster step by step, reductions,
a convolution tuned by its template, functions of mathematics."""
import os
import tempfile
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import autotvm, te, tir, topi
from tvm.ir.module import IRModule
from tvm.script import tir as T


def run(function, *arrays):
    out = tvm.nd.array(np.full_like(arrays[-1], -99))
    function(*(tvm.nd.array(a) for a in arrays[:-1]), out)
    return out.numpy()


class LoopsInABlitz(unittest.TestCase):
    def test_vector_as_a_module(self):
        @tvm.script.ir_module
        class MyModule:
            @T.prim_func
            def main(a: T.handle, b: T.handle):
                T.func_attr({"global_symbol": "main", "tir.noalias": True})
                A = T.match_buffer(a, (8,), dtype="float32")
                B = T.match_buffer(b, (8,), dtype="float32")
                for i in range(8):
                    with T.block("B"):
                        vi = T.axis.spatial(8, i)
                        B[vi] = A[vi] + 1.0
        self.assertIn('with T.block("B"):', MyModule.script())
        x = np.arange(8).astype("float32")
        np.testing.assert_array_equal(run(tvm.build(MyModule, target="llvm"), x, x), x + 1)
        sch = tvm.tir.Schedule(MyModule)
        self.assertEqual(type(sch), tvm.tir.schedule.schedule.Schedule)
        (i,) = sch.get_loops(sch.get_block("B"))
        i_0, i_1, i_2 = sch.split(i, factors=[2, 2, 2])
        sch.reorder(i_0, i_2, i_1)
        sch.parallel(i_0)
        self.assertEqual(sch.mod.script().count("for "), 2)
        self.assertIn("T.parallel(2)", sch.mod.script())
        np.testing.assert_array_equal(run(tvm.build(sch.mod, target="llvm"), x, x), x + 1)

    def test_from_tensor_expressions(self):
        A = te.placeholder((8,), dtype="float32", name="A")
        B = te.compute((8,), lambda *i: A(*i) + 1.0, name="B")
        func = te.create_prim_func([A, B])
        module = IRModule({"main": func})
        x = np.arange(8).astype("float32")
        np.testing.assert_array_equal(run(tvm.build(module, target="llvm"), x, x), x + 1)
        sch = tir.Schedule(module)
        (i,) = sch.get_loops(sch.get_block("B"))
        bound = sch.copy()
        bound.bind(sch.get_loops(sch.get_block("B"))[0], "threadIdx.x")
        self.assertIn('thread="threadIdx.x"', bound.mod.script())
        sch.vectorize(i)
        np.testing.assert_array_equal(run(tvm.build(sch.mod, target="llvm"), x, x), x + 1)

    def test_product(self):
        M = N = K = 64
        A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
        k = te.reduce_axis((0, K), "k")
        C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        sch = tvm.tir.Schedule(te.create_prim_func([A, B, C]))
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        i0, i1 = sch.split(i, [None, 16])
        j0, j1 = sch.split(j, [None, 16])
        k0, k1 = sch.split(k, [None, 4])
        sch.reorder(i0, j0, k0, k1, i1, j1)
        sch.decompose_reduction(block, k0)
        sch.vectorize(j1)
        sch.unroll(i1)
        sch.parallel(sch.fuse(i0, j0))
        a, b = (np.random.rand(64, 64).astype("float32") for _ in range(2))
        np.testing.assert_allclose(run(tvm.build(sch.mod, target="llvm"), a, b, a), a @ b, rtol=1e-4)


class Product(unittest.TestCase):
    """A product of matrices: blocks, vectors, order, packing, a cache of the block, threads."""
    N, BN, KF = 64, 16, 4

    def schedules(self):
        N, bn = self.N, self.BN
        k = te.reduce_axis((0, N), "k")
        A, B = te.placeholder((N, N), name="A"), te.placeholder((N, N), name="B")
        C = te.compute((N, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
        yield te.create_schedule(C.op), [A, B, C]
        for order, vectors in (("blocks", False), ("blocks", True), ("rows", True)):
            s = te.create_schedule(C.op)
            mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
            ko, ki = s[C].split(s[C].op.reduce_axis[0], factor=self.KF)
            s[C].reorder(*((mo, no, ko, ki, mi, ni) if order == "blocks" else (mo, no, ko, mi, ki, ni)))
            if vectors:
                s[C].vectorize(ni)
            yield s, [A, B, C]
        packed = te.compute((N // bn, N, bn), lambda n, k, little: B[k, n * bn + little], name="packedB")
        C = te.compute((N, N), lambda m, n: te.sum(A[m, k] * packed[n // bn, k, tvm.tir.indexmod(n, bn)], axis=k), name="C")
        for cached in (False, True):
            s = te.create_schedule(C.op)
            stage = s.cache_write(C, "global") if cached else C
            mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
            if cached:
                s[stage].compute_at(s[C], no)
                mi, ni = s[stage].op.axis
            (k_axis,) = s[stage].op.reduce_axis
            ko, ki = s[stage].split(k_axis, factor=self.KF)
            s[stage].reorder(*((ko, mi, ki, ni) if cached else (mo, no, ko, mi, ki, ni)))
            if cached:
                s[stage].unroll(ki)
            s[stage].vectorize(ni)
            s[C].parallel(mo)
            big, _, little = s[packed].op.axis
            s[packed].vectorize(little)
            s[packed].parallel(big)
            yield s, [A, B, C]

    def test_each_step(self):
        a, b = (np.random.rand(self.N, self.N).astype("float32") for _ in range(2))
        steps = 0
        for s, args in self.schedules():
            func = tvm.build(s, args, target="llvm", name="mmult")
            np.testing.assert_allclose(run(func, a, b, a), a @ b, rtol=1e-4)
            steps += 1
        self.assertEqual(steps, 6)


class Reductions(unittest.TestCase):
    def test_rows(self):
        n, m = te.var("n"), te.var("m")
        A = te.placeholder((n, m), name="A")
        k = te.reduce_axis((0, m), "k")
        B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
        s[B].split(B.op.axis[0], factor=32)
        self.assertIn("for", str(tvm.lower(s, [A, B], simple_mode=True)))
        a = np.random.rand(40, 50).astype("float32")
        np.testing.assert_allclose(run(tvm.build(s, [A, B], "llvm"), a, a[:, 0]), a.sum(1), rtol=1e-4)
        s = te.create_schedule(B.op)
        ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
        BF = s.rfactor(B, ki)
        self.assertEqual(len(BF.shape), 2)
        np.testing.assert_allclose(run(tvm.build(s, [A, B], "llvm"), a, a[:, 0]), a.sum(1), rtol=1e-4)

    def test_a_convolution_is_a_reduction(self):
        n = te.var("n")
        X, W = te.placeholder((n, n), name="Input"), te.placeholder((3, 3), name="Filter")
        di, dj = te.reduce_axis((0, 3), "di"), te.reduce_axis((0, 3), "dj")
        Y = te.compute((n - 2, n - 2), lambda i, j: te.sum(X[i + di, j + dj] * W[di, dj], axis=[di, dj]), name="Output")
        x, w = np.random.rand(9, 9).astype("float32"), np.random.rand(3, 3).astype("float32")
        want = sum(x[i:i + 7, j:j + 7] * w[i, j] for i in range(3) for j in range(3))
        np.testing.assert_allclose(run(tvm.build(te.create_schedule(Y.op), [X, W, Y], "llvm"), x, w, want), want, rtol=1e-4)

    def test_a_reducer_of_ones_own(self):
        n, m = te.var("n"), te.var("m")
        product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
        A = te.placeholder((n, m), name="a")
        k = te.reduce_axis((0, m), name="k")
        B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="b")
        a = np.random.rand(5, 7).astype("float32")
        np.testing.assert_allclose(run(tvm.build(te.create_schedule(B.op), [A, B], "llvm"), a, a[:, 0]), a.prod(1), rtol=1e-5)


class Mathematics(unittest.TestCase):
    def test_calls_and_rules(self):
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        x = np.random.rand(20).astype("float32")
        for make, want in ((lambda v: tvm.tir.call_pure_extern("float32", "expf", v), np.exp), (te.exp, np.exp), (lambda v: te.tanh(v) + te.sqrt(v), lambda v: np.tanh(v) + np.sqrt(v))):
            B = te.compute(A.shape, lambda i, make=make: make(A[i]), name="B")
            np.testing.assert_allclose(run(tvm.build(te.create_schedule(B.op), [A, B], "llvm"), x, x), want(x), rtol=1e-4)

        def by_c(op):
            return tvm.tir.call_pure_extern("float32", "log2f", op.args[0])
        tvm.ir.register_intrin_lowering("tir.log2", target="llvm", f=by_c)
        B = te.compute(A.shape, lambda i: te.log2(A[i] + 1.0), name="B")
        np.testing.assert_allclose(run(tvm.build(te.create_schedule(B.op), [A, B], "llvm"), x, x), np.log2(x + 1), rtol=1e-4)


@autotvm.template("tutorial/conv2d_no_batching")
def conv2d_no_batching(N, H, W, CO, CI, KH, KW, stride, padding):
    """Output channels and columns in tiles, the padding inlined or not, the tile's sums in a block of their own."""
    data, kernel = te.placeholder((N, CI, H, W), name="data"), te.placeholder((CO, CI, KH, KW), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    s = te.create_schedule([conv.op])
    n, f, y, x = s[conv].op.axis
    rc, ry, rx = s[conv].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_f", f, num_outputs=2)
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2, filter=lambda e: e.size[-1] <= 32)
    cfg.define_split("tile_rc", rc, num_outputs=2)
    cfg.define_knob("auto_unroll", [False, True])
    cfg.define_knob("pad_inline", [False, True])
    pad = s[conv].op.input_tensors[0]
    if pad.op.name != "data":
        s[pad].compute_inline() if cfg["pad_inline"].val else s[pad].parallel(s[pad].fuse(*s[pad].op.axis[:2]))
    sums = s.cache_write(conv, "local")
    n, f, y, x = s[conv].op.axis
    fo, fi = cfg["tile_f"].apply(s, conv, f)
    yo, yi = cfg["tile_y"].apply(s, conv, y)
    xo, xi = cfg["tile_x"].apply(s, conv, x)
    s[conv].reorder(n, fo, yo, xo, fi, yi, xi)
    s[conv].parallel(fo)
    s[sums].compute_at(s[conv], xo)
    _, f, y, x = s[sums].op.axis
    rc, ry, rx = s[sums].op.reduce_axis
    rco, rci = cfg["tile_rc"].apply(s, sums, rc)
    s[sums].reorder(rco, ry, rx, rci, f, y, x)
    s[sums].vectorize(x)
    if cfg["auto_unroll"].val:
        s[sums].unroll(rci)
    return s, [data, kernel, conv]


class ConvolutionByTemplate(unittest.TestCase):
    def test_tuned_and_built(self):
        N, H, W, CO, CI, KH, KW, strides, padding = 1, 9, 12, 16, 8, 3, 3, (1, 1), (1, 1)
        task = autotvm.task.create("tutorial/conv2d_no_batching", args=(N, H, W, CO, CI, KH, KW, strides, padding), target="llvm")
        self.assertGreater(len(task.config_space), 500)
        self.assertAlmostEqual(task.flop / (2 * N * CO * CI * H * W * KH * KW), 1, delta=0.05)  # the conditions of the padding count
        log = os.path.join(tempfile.mkdtemp(), "conv2d.log")
        tuner = autotvm.tuner.XGBTuner(task)
        tuner.tune(n_trial=6, measure_option=autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(repeat=2, number=1, min_repeat_ms=1, timeout=10)),
                   callbacks=[autotvm.callback.log_to_file(log)])
        best = autotvm.apply_history_best(log).query(task.target, task.workload)
        self.assertFalse(best.is_fallback)
        rng = np.random.default_rng(2)
        x, w = rng.random((N, CI, H, W), "float32"), rng.random((CO, CI, KH, KW), "float32")
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        want = sum(np.einsum("ncyx,fc->nfyx", padded[:, :, i:i + H, j:j + W], w[:, :, i, j]) for i in range(3) for j in range(3)).astype("float32")
        chosen = [task.config_space.get(i) for i in (0, len(task.config_space) // 3, len(task.config_space) - 1)]
        for config in (best, *chosen):
            s, args = task.instantiate(config)
            np.testing.assert_allclose(run(tvm.build(s, args, "llvm"), x, w, want), want, rtol=1e-3, err_msg=str(config))

    def test_features_of_the_model(self):
        task = autotvm.task.create("tutorial/conv2d_no_batching", args=(1, 6, 8, 8, 4, 3, 3, (1, 1), (1, 1)), target="llvm")
        from tvm.autotvm.tuner.cost_model import LearnedModel, is_installed
        if not is_installed():
            print("SKIP test_features_of_the_model: the Python package xgboost is not installed")
            return
        lengths = {}
        for kind in ("itervar", "knob", "curve"):
            model = LearnedModel(task, kind)
            rows = [model.features(i) for i in (0, 7, len(task.config_space) - 1)]
            self.assertTrue(all(r is not None and np.isfinite(r).all() for r in rows))
            self.assertEqual(len({len(r) for r in rows}), 1)
            self.assertGreater(len({tuple(r) for r in rows}), 1)  # they tell configurations apart
            lengths[kind] = len(rows[0])
        self.assertEqual(lengths["knob"], len(task.config_space.get(0).get_flatten_feature()))
        self.assertGreater(lengths["itervar"], lengths["knob"])
        self.assertGreater(lengths["curve"], lengths["knob"])


if __name__ == "__main__":
    unittest.main()
