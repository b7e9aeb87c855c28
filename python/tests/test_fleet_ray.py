# SPDX-License-Identifier: Apache-2.0
"""Tuning on two nodes of a Ray cluster on this machine, one of which goes away. Needs the Python package ray, in this Python or in a virtual
environment .cache/venv-ray; without it the test says so and is skipped."""
import sys
import threading
import time
import unittest

try:
    import ray
    from ray.cluster_utils import Cluster
except ModuleNotFoundError:
    print("SKIP: the Python package ray is not installed")
    sys.exit(77)

import numpy as np

from tilewright import classic as tvm
from tilewright.classic import autotvm, relay, te
from tilewright.fleet.ray import RayBuilder, RayRunner


@autotvm.template("ray/scale")
def scale(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = te.create_schedule(B.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", B.op.axis[0], num_outputs=2)
    cfg["tile"].apply(s, B, B.op.axis[0])
    return s, [A, B]


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        cls.nodes = [cls.cluster.add_node(num_cpus=2, resources={"board": 1}) for _ in range(2)]
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="error")
        cls.cluster.wait_for_nodes()

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        cls.cluster.shutdown()

    def tuned(self, task, n_trial, **kwargs):
        option = autotvm.measure_option(RayBuilder(timeout=30), RayRunner("board", number=2, repeat=2, timeout=30, **kwargs))
        results = []
        tuner = autotvm.tuner.GridSearchTuner(task) if task.core is None else autotvm.tuner.XGBTuner(task)
        tuner.tune(n_trial=n_trial, measure_option=option, callbacks=[lambda t, i, r: results.extend(zip(i, r))])
        return results

    def test_1_a_template_and_a_kernel(self):
        results = self.tuned(autotvm.task.create("ray/scale", (1024,), "llvm"), 6)
        self.assertEqual([r.error_no for _, r in results], [0] * 6, results)
        x = relay.var("x", shape=(4, 64))
        body = relay.nn.dense(x, relay.const(np.ones((32, 64), "float32")))
        mod = tvm.IRModule.from_expr(relay.Function([x], body))
        task = autotvm.task.extract_from_program(mod, None, "llvm")[0]
        results = self.tuned(task, 4)
        self.assertEqual([r.error_no for _, r in results], [0] * len(results), results)
        line = autotvm.record.encode(*results[0])
        self.assertEqual(autotvm.record.decode(line)[0].task.workload, task.workload)

    def test_2_no_such_device(self):
        option = autotvm.measure_option(RayBuilder(), RayRunner("toaster"))
        with self.assertRaises(RuntimeError):
            autotvm.tuner.RandomTuner(autotvm.task.create("ray/scale", (64,), "llvm")).tune(1, option)

    def test_3_a_node_goes_away(self):
        """What was under way there is done by the other: no trial is lost."""
        killer = threading.Timer(1.0, lambda: self.cluster.remove_node(self.nodes[0], allow_graceful=False))
        killer.start()
        results = self.tuned(autotvm.task.create("ray/scale", (1 << 20,), "llvm"), 16, min_repeat_ms=300)
        killer.join()
        self.assertEqual([r.error_no for _, r in results], [0] * 16, results)
        for _ in range(100):
            if ray.cluster_resources().get("board") == 1:
                break
            time.sleep(0.1)
        self.assertEqual(ray.cluster_resources().get("board"), 1)


if __name__ == "__main__":
    unittest.main()
