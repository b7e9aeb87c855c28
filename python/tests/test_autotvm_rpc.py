# SPDX-License-Identifier: Apache-2.0
"""Tuning on devices behind a tracker: the flow of the classic tutorials for networks and for templates, with servers on this machine."""
import os
import tempfile
import threading
import time
import unittest

FOLDER = tempfile.TemporaryDirectory()
os.environ["TILEWRIGHT_TOKEN"] = os.path.join(FOLDER.name, "token")

import numpy as np

import tilewright.as_tvm  # noqa: F401
from test_autotvm import network
import tvm
from tvm import autotvm, relay, rpc, te
from tvm.autotvm.measure import check_remote, request_remote
from tvm.contrib import graph_executor, utils
from tilewright.classic.rpc.server import Process


@autotvm.template("fleet/scale")
def scale(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = te.create_schedule(B.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", B.op.axis[0], num_outputs=2)
    _, inner = cfg["tile"].apply(s, B, B.op.axis[0])
    cfg.define_annotate("how", [inner], "try_unroll_vec")
    cfg["how"].apply(s, B, [inner], axis_lens=[cfg["tile"].size[-1]], max_unroll=16)
    return s, [A, B]


def device(key, tracker_port):
    """The small program without the compiler, as it runs on a board."""
    return Process("rpc-server", "--host", "127.0.0.1", "--port", "9091", "--port-end", "9190", "--key", key, "--tracker", f"127.0.0.1:{tracker_port}", "--silent")


class Devices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tracker = rpc.tracker.Tracker(host="127.0.0.1", port=9190, port_end=9290, silent=True)
        address = ("127.0.0.1", cls.tracker.port)
        cls.servers = [device("board", cls.tracker.port) for _ in range(2)]
        for _ in range(100):
            if len(rpc.connect_tracker(*address).summary()["server_info"]) == 2:
                break
            time.sleep(0.05)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.terminate()
        cls.tracker.terminate()

    def runner(self, **kwargs):
        return autotvm.RPCRunner("board", host="127.0.0.1", port=self.tracker.port, number=2, repeat=2, timeout=20, **kwargs)

    def test_a_network(self):
        """As the public tutorials for ARM boards and x86 tune, build, upload and run."""
        mod, params = network()
        target = tvm.target.Target("llvm")
        log = os.path.join(tempfile.mkdtemp(), "net.log")
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(build_func="default"), runner=self.runner(n_parallel=2))
        tasks = autotvm.task.extract_from_program(mod["main"], target=target, params=params, ops=(relay.op.get("nn.conv2d"), relay.op.get("nn.dense")))
        self.assertGreaterEqual(len(tasks), 2)
        for i, task in enumerate(reversed(tasks)):
            tuner = autotvm.tuner.XGBTuner(task, loss_type="rank")
            results = []
            tuner.tune(n_trial=min(5, len(task.config_space)), early_stopping=5, measure_option=option,
                       callbacks=[autotvm.callback.progress_bar(5, prefix=f"[Task {i + 1}]"), autotvm.callback.log_to_file(log + ".tmp"),
                                  lambda t, inputs, r, to=results: to.extend(r)])
            self.assertEqual([r.error_no for r in results], [0] * len(results), results)
            self.assertGreater(tuner.best_flops, 0)
        autotvm.record.pick_best(log + ".tmp", log)
        with autotvm.apply_history_best(log):
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, target=target, params=params)
        tmp = utils.tempdir()
        path = tmp.relpath("net.tar")
        lib.export_library(path)
        remote = request_remote("board", "127.0.0.1", self.tracker.port, timeout=60)
        remote.upload(path)
        rlib = remote.load_module("net.tar")
        dev = remote.device(str(target), 0)
        module = graph_executor.GraphModule(rlib["default"](dev))
        data = np.random.RandomState(1).rand(1, 8, 14, 14).astype("float32")
        module.set_input("data", tvm.nd.array(data))
        module.run()
        here = graph_executor.GraphModule(relay.build(mod, target=target, params=params)["default"](tvm.cpu()))
        here.run(data=data)
        np.testing.assert_allclose(module.get_output(0).numpy(), here.get_output(0).numpy(), rtol=1e-3)
        self.assertGreater(module.benchmark(dev, number=1, repeat=2).mean, 0)

    def test_a_template(self):
        task = autotvm.task.create("fleet/scale", (1024,), "llvm")
        results = []
        tuner = autotvm.tuner.GridSearchTuner(task)
        tuner.tune(n_trial=12, measure_option=autotvm.measure_option("local", self.runner(enable_cpu_cache_flush=True, min_repeat_ms=1)),
                   callbacks=[lambda t, i, r: results.extend(r)])
        self.assertEqual([r.error_no for r in results], [0] * 12, results)
        self.assertEqual({len(r.costs) for r in results}, {2})

    def test_a_device_that_goes_away(self):
        """Trials that were under way there fail with a number, and the others are measured on the device that is left."""
        address = ("127.0.0.1", self.tracker.port)
        servers = [device("frail", self.tracker.port) for _ in range(2)]
        while rpc.connect_tracker(*address).summary()["queue_info"].get("frail", {"free": 0})["free"] < 2:
            time.sleep(0.05)
        task = autotvm.task.create("fleet/scale", (1 << 20,), "llvm")
        runner = autotvm.RPCRunner("frail", *address, number=20, repeat=3, timeout=20, n_parallel=2)
        results = []
        killer = threading.Timer(0.3, lambda: servers[0]._process.kill())
        killer.start()
        autotvm.tuner.GridSearchTuner(task).tune(n_trial=16, measure_option=autotvm.measure_option("local", runner), callbacks=[lambda t, i, r: results.extend(r)])
        killer.join()
        self.assertEqual(len(results), 16)
        self.assertLessEqual(sum(r.error_no != 0 for r in results), 4, results)
        servers[1].terminate()

    def test_remotes(self):
        self.assertTrue(check_remote("llvm", "board", "127.0.0.1", self.tracker.port, timeout=10))
        self.assertFalse(check_remote("llvm", "no such key", "127.0.0.1", self.tracker.port, timeout=0.3))
        os.environ["TVM_TRACKER_HOST"], os.environ["TVM_TRACKER_PORT"] = "127.0.0.1", str(self.tracker.port)
        request_remote("board").close()
        del os.environ["TVM_TRACKER_HOST"]
        with self.assertRaises(ValueError):
            request_remote("board")
        with self.assertRaises(RuntimeError):
            request_remote("board", "127.0.0.1", 1)


if __name__ == "__main__":
    unittest.main()
