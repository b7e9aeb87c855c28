# SPDX-License-Identifier: Apache-2.0
"""Templates of scripts: spaces, tasks, measuring in sessions, builds by what was found."""
import os
import random
import tempfile
import unittest

import numpy as np

from test_scripts import run_script
from tilewright import classic as tvm
from tilewright.classic import autotvm, te, topi
from tilewright.classic.autotvm.measure.build_process import BuildProcesses
from tilewright.classic.autotvm.task import InstantiationError
from tilewright.classic.autotvm.task.space import FallbackConfigEntity
from tilewright.classic.autotvm.tuner import cost_model


@autotvm.template("test/matmul")
def matmul(n, l, m, dtype):
    A, B = te.placeholder((n, l), name="A", dtype=dtype), te.placeholder((l, m), name="B", dtype=dtype)
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    cfg = autotvm.get_config()
    y, x = s[C].op.axis
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=3, filter=lambda size: size.size[-1] <= 16)
    cfg.define_split("tile_k", k, num_outputs=2, policy="verbose")
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xm, xi = cfg["tile_x"].apply(s, C, x)
    ko, ki = cfg["tile_k"].apply(s, C, k)
    cfg.define_reorder("order", [yo, xo, ko, yi, xm, ki, xi], "candidate",
                       candidate=[[yo, xo, ko, yi, xm, ki, xi], [xo, yo, ko, xm, ki, yi, xi], [yo, xo, xm, ko, ki, yi, xi]])
    cfg["order"].apply(s, C, [yo, xo, ko, yi, xm, ki, xi])
    cfg.define_annotate("inner", [yi, xi], "try_unroll_vec")
    cfg["inner"].apply(s, C, [yi, xi], axis_lens=[cfg["tile_y"].size[-1], cfg["tile_x"].size[-1]], max_unroll=8)
    cfg.define_knob("parallel", [False, True])
    if cfg["parallel"].val:
        s[C].parallel(yo)
    return s, [A, B, C]


@autotvm.template("test/refuses")
def refuses(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    cfg = autotvm.get_config()
    cfg.define_knob("how", ["fine", "refused", "unbuildable"])
    cfg.add_flop(123)
    s = te.create_schedule(B.op)
    if cfg["how"].val == "refused":
        cfg.raise_error("not this one")
    if cfg["how"].val == "unbuildable":
        s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [A, B]


@autotvm.register_topi_compute("test_scale.x86")
def scale(cfg, data, factor):
    cfg.define_split("tile", cfg.axis(data.shape[0]), num_outputs=2)
    doubled = te.compute(data.shape, lambda i: data[i] * factor, name="scaled")
    return topi.nn.relu(doubled) if factor < 0 else doubled


@autotvm.register_topi_schedule("test_scale.x86")
def schedule_scale(cfg, outs):
    s = te.create_schedule([o.op for o in outs])
    cfg["tile"].apply(s, outs[0], outs[0].op.axis[0])
    return s


def local(**kwargs):
    return autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=2, **kwargs))


def product_of(func, n=32, l=24, m=40):
    a, b = (np.random.rand(*s).astype("float32") for s in ((n, l), (l, m)))
    c = tvm.nd.empty((n, m))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    return c.numpy(), a @ b


class Templates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.task = autotvm.task.create("test/matmul", args=(32, 24, 40, "float32"), target="llvm")

    def test_task(self):
        self.assertEqual(self.task.workload, ("test/matmul", 32, 24, 40, "float32"))
        self.assertEqual(self.task.flop, 2 * 32 * 24 * 40)
        self.assertEqual(list(self.task.config_space.space_map), ["tile_y", "tile_x", "tile_k", "order", "inner", "parallel"])
        self.assertEqual(len(self.task.config_space), int(np.prod(self.task.config_space.dims)))
        self.assertIn("   0 tile_y: Split(policy=factors, product=32, num_outputs=", repr(self.task.config_space))
        self.assertEqual([e.val for e in self.task.config_space.space_map["parallel"].entities], [False, True])
        again = autotvm.task.create(matmul, (32, 24, 40, "float32"), tvm.target.Target("llvm"))
        self.assertEqual(len(again.config_space), len(self.task.config_space))
        with self.assertRaises(ValueError):
            autotvm.template("test/matmul", lambda n: n)
        with self.assertRaises(TypeError):
            autotvm.task.create("test/matmul", (matmul,), "llvm")
        with self.assertRaises(RuntimeError):
            autotvm.get_config()

    def test_any_configuration_is_the_product(self):
        np.random.seed(0)
        chosen = random.Random(1)
        texts = set()
        for _ in range(12):
            config = self.task.config_space.get(chosen.randrange(len(self.task.config_space)))
            s, args = self.task.instantiate(config)
            texts.add(str(tvm.lower(s, args)))
            got, expected = product_of(tvm.build(s, args, "llvm"))
            np.testing.assert_allclose(got, expected, rtol=1e-4, err_msg=str(config))
        self.assertGreater(len(texts), 10)

    def test_tune_and_build(self):
        log = os.path.join(tempfile.mkdtemp(), "log.json")
        for tuner in (autotvm.tuner.RandomTuner(self.task), autotvm.tuner.GATuner(self.task, pop_size=4), autotvm.tuner.XGBTuner(self.task),
                      autotvm.tuner.GridSearchTuner(self.task)):
            results = []
            tuner.tune(n_trial=3, measure_option=local(), callbacks=[autotvm.callback.log_to_file(log), lambda t, i, r, to=results: to.extend(r)])
            self.assertEqual([r.error_no for r in results], [0] * 3, results)
            self.assertGreater(tuner.best_flops, 0)
        with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
            best = autotvm.task.DispatchContext.current.query(tvm.target.Target("llvm"), self.task.workload)
            self.assertFalse(best.is_fallback)
            s, args = matmul(32, 24, 40, "float32")
            text = str(tvm.lower(s, args))
            self.assertEqual(text, str(tvm.lower(*self.task.instantiate(best))))
            np.testing.assert_allclose(*product_of(tvm.build(s, args)), rtol=1e-4)
            other, _ = matmul(8, 8, 8, "float32")  # of no record: the first of each knob
            self.assertTrue(other)
            with autotvm.tophub.context("llvm"):  # has none: what is around it counts
                self.assertFalse(autotvm.task.DispatchContext.current.query(tvm.target.Target("llvm"), self.task.workload).is_fallback)
        fresh = autotvm.tuner.RandomTuner(self.task)
        fresh.load_history(autotvm.record.load_from_file(log))

    def test_failures_have_their_numbers(self):
        task = autotvm.task.create("test/refuses", (64,), "llvm")
        self.assertEqual(task.flop, 123)
        results = []
        tuner = autotvm.tuner.GridSearchTuner(task)
        tuner.tune(n_trial=3, measure_option=local(), callbacks=[lambda t, i, r: results.extend(r)])
        self.assertEqual([r.error_no for r in results], [0, 1, 1])
        self.assertIn("not this one", str(results[1].costs[0]))
        with self.assertRaises(InstantiationError):
            task.instantiate(task.config_space.get(1))
        answers = BuildProcesses(2).run([{"kind": "function", "text": "{}", "target": "llvm", "path": "/nonexistent/a.so"}], 20)
        self.assertTrue(answers[0].error)
        slow = BuildProcesses(1).run([{"kind": "function"}], 0.001)
        self.assertTrue(slow[0].timed_out)
        self.assertEqual(task.flop, 123)

    def test_a_script_s_linker_builds(self):
        from tilewright.classic.contrib import cc
        used = []

        def linker(output, objects, **kwargs):
            used.append(output)
            cc.create_shared(output, objects, **kwargs)
        linker.output_format = "so"
        option = autotvm.measure_option(autotvm.LocalBuilder(build_func=linker), autotvm.LocalRunner(number=1, repeat=1))
        tuner = autotvm.tuner.RandomTuner(self.task)
        tuner.tune(n_trial=2, measure_option=option)
        self.assertEqual(len(used), 2)
        self.assertGreater(tuner.best_flops, 0)

    def test_compute_and_schedule(self):
        data = te.placeholder((48,), name="data")
        for factor in (3.0, -3.0):
            task = autotvm.task.create("test_scale.x86", (data, factor), "llvm")
            self.assertEqual(task.workload, ("test_scale.x86", ("TENSOR", (48,), "float32"), factor))
            self.assertEqual(len(task.config_space), 10)
            s, args = task.instantiate(task.config_space.get(3))
            self.assertEqual(len(args), 2)
            self.assertEqual(len(s[args[1]].leaf_iter_vars), 2)
            tuner = autotvm.tuner.RandomTuner(task)
            tuner.tune(n_trial=2, measure_option=local())
            self.assertGreater(tuner.best_flops, 0)
            with autotvm.task.ApplyConfig(task.config_space.get(5)):
                out = scale(data, factor)
                text = str(tvm.lower(schedule_scale([out]), [data, out]))
            self.assertIn(f"extent {task.config_space.get(5)['tile'].size[1]}", text)
            plain = scale(data, factor)
            self.assertEqual(autotvm.task.get_workload(plain), task.workload)
            self.assertTrue(schedule_scale([plain]))
        with self.assertRaises(ValueError):
            schedule_scale([te.compute((4,), lambda i: data[i])])

    def test_defaults_of_a_template(self):
        cfg = FallbackConfigEntity()
        cfg.define_split("tile", cfg.axis(96), num_outputs=4)
        self.assertEqual(cfg["tile"].size, [-1, 1, 1, 1])
        cfg.fallback_split("tile", [-1, 4, 1, 20])
        self.assertEqual(cfg["tile"].size, [2, 3, 1, 16])
        with self.assertRaises(ValueError):
            cfg.fallback_split("tile", [-1, 2])
        cfg.define_reorder("o", [1, 2, 3, 4], "interleave", spatial=[[1, 2]], reduce=[[3, 4]])
        self.assertEqual(sorted(e.perm for e in cfg.space_map["o"]), [[0, 1, 2, 3], [0, 2, 1, 3], [0, 2, 3, 1]])

    def test_a_model_that_learns(self):
        if not cost_model.is_installed():
            print("SKIP test_a_model_that_learns: the Python package xgboost is not installed")
            with self.assertRaises(ModuleNotFoundError):
                cost_model.LearnedModel(self.task)
            return
        space = self.task.config_space
        chosen = random.Random(0)
        indices = [chosen.randrange(len(space)) for _ in range(120)]
        # A made-up machine on which long inner loops are fast: the order of the other half is learned.
        seconds = [1.0 / space.get(i)["tile_x"].size[-1] + 0.1 / space.get(i)["tile_y"].size[-1] for i in indices]
        for feature in ("itervar", "knob", "curve"):
            for loss in ("rank", "reg", "rank-binary"):
                model = cost_model.LearnedModel(self.task, feature, loss)
                model.fit(indices[:60], seconds[:60])
                order = np.argsort(-model.predict(indices[60:]), kind="stable")
                best, worst = ([seconds[60 + k] for k in some] for some in (order[:15], order[-15:]))
                self.assertLess(np.mean(best), 0.6 * np.mean(worst), (feature, loss))
        tuner = autotvm.tuner.XGBTuner(self.task, plan_size=8, feature_type="knob", loss_type="reg")
        results = []
        tuner.tune(n_trial=24, measure_option=local(), callbacks=[lambda t, i, r: results.extend(c.config.index for c in i)])
        self.assertEqual(len(set(results)), 24)

    def test_simple_template_script(self):
        out = run_script(self, SIMPLE_TEMPLATE)
        self.assertIn("tile_y", "".join(out))
        self.assertEqual(out[-1], "same results")


SIMPLE_TEMPLATE = '''
import logging
import sys
import numpy as np
import tvm
from tvm import te, testing, autotvm

@autotvm.template("tutorial/matmul")
def matmul(N, L, M, dtype):
    A = te.placeholder((N, L), name="A", dtype=dtype)
    B = te.placeholder((L, M), name="B", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    k = s[C].op.reduce_axis[0]
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(yo, xo, k, yi, xi)
    return s, [A, B, C]

N, L, M = 64, 64, 64
task = autotvm.task.create("tutorial/matmul", args=(N, L, M, "float32"), target="llvm")
print(task.config_space)
logging.getLogger("autotvm").setLevel(logging.DEBUG)
logging.getLogger("autotvm").addHandler(logging.StreamHandler(sys.stdout))
measure_option = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=5))
tuner = autotvm.tuner.RandomTuner(task)
tuner.tune(n_trial=4, measure_option=measure_option, callbacks=[autotvm.callback.log_to_file("matmul.log")])
with autotvm.apply_history_best("matmul.log"):
    with tvm.target.Target("llvm"):
        s, arg_bufs = matmul(N, L, M, "float32")
        func = tvm.build(s, arg_bufs)
a_np = np.random.uniform(size=(N, L)).astype(np.float32)
b_np = np.random.uniform(size=(L, M)).astype(np.float32)
c_tvm = tvm.nd.empty((N, M))
func(tvm.nd.array(a_np), tvm.nd.array(b_np), c_tvm)
tvm.testing.assert_allclose(a_np.dot(b_np), c_tvm.numpy(), rtol=1e-4)
print("same results")
'''

if __name__ == "__main__":
    unittest.main()
