# SPDX-License-Identifier: Apache-2.0
"""The classic tuning interface: tasks, tuners, logs, and builds that use them."""
import ast
import io
import json
import os
import random
import tempfile
import unittest

import numpy as np

from tilewright import _core
from tilewright import classic as tvm
from tilewright.classic import autotvm, relay
from tilewright.classic.autotvm.task.space import ConfigEntity, ConfigSpace

RECORDS = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "data", "autotvm")


def network():
    data = relay.var("data", shape=(1, 8, 14, 14), dtype="float32")
    y = relay.nn.relu(relay.nn.conv2d(data, relay.var("w"), kernel_size=(3, 3), channels=16, padding=(1, 1)))
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), relay.var("d", shape=(10, 16)))
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
    random = np.random.RandomState(0)
    return mod, {"w": random.rand(16, 8, 3, 3).astype("float32"), "d": random.rand(10, 16).astype("float32")}


def option(**kwargs):
    return autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=2, **kwargs))


class Autotvm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mod, cls.params = network()
        cls.tasks = autotvm.task.extract_from_program(cls.mod["main"], target="llvm", params=cls.params)

    def test_tasks(self):
        names = [t.name for t in self.tasks]
        self.assertEqual(names[0], "conv2d_NCHWc.x86")
        self.assertIn("dense_pack.x86", names)
        conv = self.tasks[0]
        self.assertEqual(conv.workload, ("conv2d_NCHWc.x86", ("TENSOR", (1, 8, 14, 14), "float32"), ("TENSOR", (16, 8, 3, 3), "float32"), (1, 1), (1, 1, 1, 1),
                                         (1, 1), "NCHW", "NCHW", "float32"))
        self.assertEqual(conv.flop, 2 * 16 * 14 * 14 * 8 * 9 + 7 * 8 * 16 * 16)
        self.assertGreater(len(conv.config_space), 1)
        only = autotvm.task.extract_from_program(self.mod["main"], target="llvm", params=self.params, ops=(relay.op.get("nn.conv2d"),))
        self.assertEqual([t.workload for t in only], [conv.workload])
        again = autotvm.task.create(conv.name, conv.args, "llvm")
        self.assertEqual(again.workload, conv.workload)
        both = autotvm.task.extract_from_multiple_program([self.mod, self.mod], [self.params] * 2, "llvm")
        self.assertEqual(len(both), len(self.tasks))
        with self.assertRaises(ValueError):
            autotvm.task.create("conv9d.x86", (), "llvm")
        with self.assertRaises(ValueError):
            autotvm.task.create("dense_pack.x86", (3,), "llvm")

    def test_resnet_18_has_the_recorded_tasks(self):
        """Names, arguments, order and operations of the classic stack's own list, though the first convolution runs over the phases of its stride."""
        with open(os.path.join(RECORDS, "resnet18_tasks.json"), encoding="utf-8") as file:
            recorded = [(t["name"], ast.literal_eval(t["args"]), t["flop"]) for t in json.load(file)]
        mod, params = relay.testing.resnet.get_workload(num_layers=18, batch_size=1)
        tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params=params)
        self.assertEqual([(t.name, t.args, t.flop) for t in tasks], recorded)
        for task in tasks:
            self.assertGreater(len(task.config_space), 1)
        stem = autotvm.task.create(tasks[0].name, tasks[0].args, "llvm")  # its weights are all zero
        self.assertEqual(stem.workload, tasks[0].workload)
        self.assertGreater(len(stem.config_space), 1)

    def test_entities_are_kernels_of_their_own(self):
        """Loops that are equal are one kernel of a library: entities by chance of each space are as many kernels as there are entities."""
        chosen = random.Random(4)
        for task in self.tasks:
            drawn = (chosen.randrange(len(task.config_space)) for _ in range(5000))
            indices = list(dict.fromkeys(i for i in drawn if task.config_space.is_index_valid(i)))[:20]
            with tempfile.TemporaryDirectory() as folder:
                steps = _core.export_trials(_core.trials_line(task.core, indices), folder)
                lib = tvm.runtime.load_module(os.path.join(folder, "trials.so"))
                calls = [n["attrs"]["func_name"] for n in json.loads(lib["get_graph_json"]())["nodes"] if n["op"] != "null"]
            kernels = [calls[step] for why, _, step, _, _ in steps if not why]
            self.assertGreaterEqual(len(kernels), min(len(indices), 2))
            self.assertEqual(len(set(kernels)), len(kernels), task)

    def test_strided_stems_have_the_model_s_sizes(self):
        for size, kernel, stride, pad in ((224, 11, 4, 2), (112, 6, 2, 2), (96, 5, 2, 2), (128, 8, 2, 3), (64, 7, 2, 2)):
            data = relay.var("data", shape=(1, 3, size, size))
            weights = relay.const(np.random.RandomState(kernel).rand(32, 3, kernel, kernel).astype("float32") + 0.1)
            body = relay.nn.conv2d(data, weights, strides=stride, padding=pad, channels=32, kernel_size=kernel)
            mod = tvm.IRModule.from_expr(relay.Function([data], body))
            task = autotvm.task.extract_from_program(mod, None, "llvm")[0]
            self.assertEqual(task.args[:3], (("TENSOR", (1, 3, size, size), "float32"), ("TENSOR", (32, 3, kernel, kernel), "float32"), (stride, stride)))
            self.assertEqual(task.args[3][:2], (pad, pad))

    def test_tuners_log_and_builds(self):
        task = self.tasks[0]
        log = os.path.join(tempfile.mkdtemp(), "log.json")
        shown = []
        tuners = [autotvm.tuner.XGBTuner(task, loss_type="rank"), autotvm.tuner.GATuner(task, pop_size=10), autotvm.tuner.RandomTuner(task),
                  autotvm.tuner.GridSearchTuner(task)]
        for tuner in tuners:
            tuner.tune(n_trial=4, measure_option=option(), callbacks=[autotvm.callback.log_to_file(log), lambda t, i, r: shown.extend(zip(i, r))])
            self.assertGreater(tuner.best_flops, 0)
        self.assertEqual(len(shown), 16)
        self.assertEqual({r.error_no for _, r in shown}, {0})
        with open(log, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 16)
        inp, result = autotvm.record.decode(lines[0])
        self.assertEqual(inp.task.workload, task.workload)
        self.assertEqual(autotvm.record.encode(inp, result), lines[0])
        best = log + ".best"
        autotvm.record.pick_best(log, best)
        self.assertEqual(len(list(autotvm.record.load_from_file(best))), 1)
        fresh = autotvm.tuner.RandomTuner(task)
        fresh.load_history(autotvm.record.load_from_file(log))
        data = np.random.rand(1, 8, 14, 14).astype("float32")

        def outputs():
            lib = relay.build(self.mod, target="llvm", params=self.params)
            module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
            module.run(data=data)
            return module.get_output(0).numpy()
        plain = outputs()
        with autotvm.apply_history_best(log) as context:
            self.assertFalse(context.query("llvm", task.workload).is_fallback)
            np.testing.assert_allclose(outputs(), plain, rtol=1e-3)
        with autotvm.tophub.context("llvm"):
            self.assertTrue(autotvm.task.DispatchContext.current.query("llvm", task.workload).is_fallback)

    def test_a_configuration_is_forced(self):
        task = self.tasks[0]
        space = task.config_space
        index = task.core.ranked[-1]
        with autotvm.task.ApplyConfig(space.get(index)):
            lib = relay.build(self.mod, target="llvm", params=self.params)
            with tvm.transform.PassContext(opt_level=3):
                options = tvm.transform.PassContext.current().build_options(tvm.Target("llvm"))
        from tilewright import _core
        chosen = [c[1:3] for c in _core.build(self.mod.bind_params(self.params), options).choices]
        self.assertIn(task.instantiate(space.get(index)), chosen)
        self.assertTrue(lib.get_lib())
        for bad in (-1, len(space)):
            with self.assertRaises(IndexError):
                space.get(bad)

    def test_records_of_the_classic_stack(self):
        for name, count in (("best.log", 3), ("ga.log", 12), ("random6.log", 6)):
            pairs = list(autotvm.record.load_from_file(os.path.join(RECORDS, name)))
            self.assertEqual(len(pairs), count)
            for inp, result in pairs:
                config = ConfigEntity.from_json_dict(inp.config.to_json_dict())
                self.assertEqual(config.to_json_dict(), inp.config.to_json_dict())
        with autotvm.apply_history_best(os.path.join(RECORDS, "best.log")):
            relay.build(self.mod, target="llvm", params=self.params)  # of another processor: left out
        for bad in ("{}", "nonsense", "[]", json.dumps({"input": ["llvm"]})):
            with self.assertRaises(ValueError):
                autotvm.record.decode(bad)

    def test_spaces_of_templates(self):
        space = ConfigSpace()
        self.assertEqual(len(space.define_split("tile", space.axis(8), num_outputs=2)), 2)
        space.define_knob("unroll", [True, False])
        space.define_reorder("order", [1, 2, 3], "all")
        space.define_annotate("ann", [1, 2], "try_unroll_vec")
        self.assertEqual(space.dims, [4, 2, 6, 8])
        self.assertEqual(len(space), 4 * 2 * 6 * 8)
        # As the classic stack counts: its recorded space for 16 columns has five splits of the policy "verbose".
        other = ConfigSpace()
        other.define_split("tile_ow", other.axis(16), policy="verbose", filter=lambda y: y.size[-1] <= 64)
        self.assertEqual(len(other), 5)
        for i in (0, 17, len(space) - 1):
            entity = space.get(i)
            self.assertEqual(str(ConfigEntity.from_json_dict(json.loads(json.dumps(entity.to_json_dict())))), str(entity))
        self.assertEqual(space.get(5).get_flatten_feature().ndim, 1)
        self.assertEqual(len(set(space.sample_ints(20))), 20)
        from tilewright.classic.autotvm.tuner.model_based_tuner import knob2point, point2knob
        self.assertEqual([knob2point(point2knob(i, space.dims), space.dims) for i in (0, 17, 383)], [0, 17, 383])
        self.assertEqual(point2knob(17, [4, 2, 6, 8]), [1, 0, 2, 0])
        with self.assertRaises(ValueError):
            space.define_split("x", space.axis(8), policy="luck")
        with self.assertRaises(RuntimeError):
            autotvm.get_config()

    def test_tvmc(self):
        from tilewright.classic.driver import tvmc
        from tilewright.classic.driver.tvmc.main import main
        model = tvmc.TVMCModel(self.mod, {name: tvm.nd.array(value) for name, value in self.params.items()})
        folder = tempfile.mkdtemp()
        log, text = os.path.join(folder, "a.log"), os.path.join(folder, "net.relay")
        self.assertEqual(tvmc.tune(model, target="llvm", tuning_records=log, trials=6, repeat=1, number=1), log)
        workloads = {inp.task.workload for inp, _ in autotvm.record.load_from_file(log)}
        self.assertEqual(workloads, {t.workload for t in self.tasks})
        package = tvmc.compile(model, target="llvm", tuning_records=log, package_path=os.path.join(folder, "a.tar"))
        self.assertEqual(tvmc.run(package, device="cpu").get_output("output_0").shape, (1, 10))
        for bad in (lambda: tvmc.tune(model, target="llvm", tuner="luck"), lambda: tvmc.tune(model, target="llvm", enable_autoscheduler=True),
                    lambda: tvmc.compile(model, tuning_records=log + ".none")):
            with self.assertRaises(tvmc.TVMCException):
                bad()
        with open(text, "w", encoding="utf-8") as file:
            file.write(self.mod.astext())
        main(["tune", "--target", "llvm", "--trials", "3", "--number", "1", "-o", log + "2", text])
        main(["compile", "--target", "llvm", "--tuning-records", log + "2", "-o", os.path.join(folder, "b.tar"), text])
        self.assertTrue(os.path.exists(os.path.join(folder, "b.tar")))

    def test_wrong_arguments(self):
        for wrong in (lambda: autotvm.measure_option("far", "local"), lambda: autotvm.LocalRunner(number=0), lambda: autotvm.GATuner(self.tasks[0], pop_size=1),
                      lambda: autotvm.tuner.XGBTuner(self.tasks[0], feature_type="taste"), lambda: autotvm.callback.log_to_file(io.StringIO(), "pickle")):
            with self.assertRaises(ValueError):
                wrong()
        with self.assertRaises(RuntimeError):
            autotvm.RPCRunner("key", "127.0.0.1", 1).check()


if __name__ == "__main__":
    unittest.main()
