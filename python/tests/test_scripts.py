# SPDX-License-Identifier: Apache-2.0
"""Whole scripts in the spirit of the classic tutorials, each in a fresh interpreter through `python -m tilewright.as_tvm`."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from test_tilewright import model_bytes


def run_script(test, text, *command):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "script.py"), "w") as file:
            file.write(textwrap.dedent(text))
        with open(os.path.join(folder, "model.onnx"), "wb") as file:
            file.write(model_bytes())
        done = subprocess.run([sys.executable, *(command or ("-m", "tilewright.as_tvm", "script.py"))], capture_output=True, text=True, cwd=folder)
        test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        test.assertEqual(done.stderr.replace(folder, ""), "")
        return done.stdout.splitlines()


class Scripts(unittest.TestCase):
    def script(self, text, *command):
        return run_script(self, text, *command)

    def test_compile_onnx(self):
        self.assertEqual(self.script('''
            import numpy as np
            import tvm
            from tvm import te
            import tvm.relay as relay
            from tvm.contrib.download import download_testdata

            x = np.ones((2, 3), "float32")
            mod, params = relay.frontend.from_onnx("model.onnx", {"x": x.shape})
            with tvm.transform.PassContext(opt_level=1):
                executor = relay.build_module.create_executor("graph", mod, tvm.cpu(0), "llvm", params).evaluate()
            tvm_output = executor(tvm.nd.array(x.astype("float32"))).numpy()
            with tvm.transform.PassContext(opt_level=3):
                other = relay.create_executor("graph", mod=mod, device=tvm.cpu(0), target="llvm", params=params).evaluate()
            tvm.testing.assert_allclose(other(x=x), tvm_output, rtol=1e-5)
            print(tvm_output.shape)
            '''), ["(2, 4)"])

    def test_tuning_tutorial_up_to_the_tuner(self):
        out = self.script('''
            import timeit
            import numpy as np
            import tvm.relay as relay
            import tvm
            from tvm.contrib import graph_executor
            import tvm.auto_scheduler as auto_scheduler
            from tvm.autotvm.tuner import XGBTuner
            from tvm import autotvm

            target = "llvm"
            mod, params = relay.frontend.from_onnx("model.onnx", {"x": (2, 3)})
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, target=target, params=params)
            dev = tvm.device(str(target), 0)
            module = graph_executor.GraphModule(lib["default"](dev))
            module.set_input("x", np.ones((2, 3), "float32"))
            module.run()
            print(module.get_output(0, tvm.nd.empty((2, 4))).numpy().shape)
            times = np.array(timeit.Timer(lambda: module.run()).repeat(repeat=2, number=3)) * 1000 / 3
            print({"mean": np.mean(times) > 0})
            runner = autotvm.LocalRunner(number=10, repeat=1)
            for step in (lambda: auto_scheduler.TuningOptions(), lambda: auto_scheduler.SearchTask()):
                try:
                    step()
                except NotImplementedError as error:
                    print(error)
            ''')
        self.assertEqual(out[0], "(2, 4)")
        self.assertEqual(len(out), 4)
        for line in out[2:]:
            self.assertIn("instead: the cost model chooses", line)

    def test_deploy(self):
        out = self.script('''
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.contrib import graph_executor as runtime, graph_runtime, utils, cc
            import tvm.testing

            mod, params = relay.testing.resnet.get_workload(num_layers=18, batch_size=1, num_classes=10, image_shape=(3, 32, 32))
            target = tvm.target.Target("llvm", host="llvm")
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, target, params=params)
            dev = tvm.cuda(0) if tvm.cuda().exist else tvm.cpu(0)
            data = np.random.uniform(-1, 1, size=(1, 3, 32, 32)).astype("float32")
            module = runtime.GraphModule(lib["default"](dev))
            module.set_input("data", data)
            module.run()
            out = module.get_output(0, tvm.nd.empty((1, 10))).numpy()

            temp = utils.tempdir()
            for name, options in (("deploy_lib.tar", {}), ("net.so", {"fcompile": cc.create_shared}), ("net.o", {})):
                lib.export_library(temp.relpath(name), **options)
                rlib = tvm.runtime.load_module(temp.relpath(name))
                gmod = rlib["default"](dev)
                set_input, run, get_output = gmod["set_input"], gmod["run"], gmod["get_output"]
                set_input("data", tvm.nd.array(data))
                run()
                tvm.testing.assert_allclose(get_output(0).numpy(), out, atol=1e-5)
            ftimer = module.module.time_evaluator("run", dev, number=1, repeat=3)
            prof_res = np.array(ftimer().results) * 1000
            print(len(prof_res), "mean (ms)" in str(module.benchmark(dev, number=1, repeat=2)))

            graph, lib, params = relay.build(mod, target="llvm", params=params)
            with open(temp.relpath("deploy_graph.json"), "w") as file:
                file.write(graph)
            with open(temp.relpath("deploy_param.params"), "wb") as file:
                file.write(relay.save_param_dict(params))
            lib.export_library(temp.relpath("lib.so"))
            loaded = bytearray(open(temp.relpath("deploy_param.params"), "rb").read())
            module = graph_runtime.create(open(temp.relpath("deploy_graph.json")).read(), tvm.runtime.load_module(temp.relpath("lib.so")), tvm.context("llvm", 0))
            module.load_params(loaded)
            module.run(data=tvm.nd.array(data))
            tvm.testing.assert_allclose(module.get_output(0).numpy(), out, atol=1e-4)
            print(sorted(temp.listdir()))
            ''', "-W", "ignore::DeprecationWarning", "-m", "tilewright.as_tvm", "script.py")
        self.assertEqual(out, ["3 True", "['deploy_graph.json', 'deploy_lib.tar', 'deploy_param.params', 'lib.so', 'net.o', 'net.so']"])

    def test_debugger(self):
        out = self.script('''
            import json, os
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.contrib.debugger import debug_executor
            from tvm.contrib.debugger.debug_executor import GraphModuleDebug

            mod, params = relay.testing.mlp.get_workload(1)
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, "llvm", params=params)
            dev = tvm.cpu(0)
            data = np.random.rand(1, 1, 28, 28).astype("float32")
            m = GraphModuleDebug(lib["debug_create"]("default", dev), [dev], lib.graph_json, dump_root="dump")
            m.set_input("data", data)
            m.set_input(**params)
            m.run()
            out = m.get_output(0, tvm.nd.empty((1, 10), "float32")).numpy()
            folder = os.path.join("dump", "_tvmdbg_device_CPU_0")
            tensors = relay.load_param_dict(open(os.path.join(folder, "output_tensors.params"), "rb").read())
            np.testing.assert_array_equal(list(tensors.values())[-1].numpy(), out)
            print(len(json.load(open(os.path.join(folder, "_tvmdbg_execution_trace.json")))["traceEvents"]) == 2 * len(tensors))
            report = m.profile(data=data)
            print(type(report).__name__, report.configuration["Executor"], "Argument Shapes" in report.csv())
            again = tvm.runtime.profiling.Report.from_json(report.json())
            print(sum(call["Duration (us)"].microseconds for call in again.calls) > 0)
            m = debug_executor.create(lib.get_graph_json(), lib.get_lib(), dev)
            m.run(data=data)
            print(len(m.run_individual(number=2, repeat=2, min_repeat_ms=1)) == len(json.loads(lib.get_graph_json())["nodes"]))
            m.exit()
            ''')
        self.assertEqual([line for line in out if not line.startswith(("tvmgen_", "Node", "----", "Total"))],
                         ["True", "Report Graph True", "True", "True"])
        self.assertTrue(any(line.startswith("tvmgen_") for line in out))

    def test_deploy_on_a_local_session(self):
        self.assertEqual(self.script('''
            import numpy as np
            import tvm
            import tvm.relay as relay
            from tvm import rpc
            from tvm.contrib import utils, graph_executor as runtime

            func, params = relay.frontend.from_onnx("model.onnx", {"x": (relay.Any(), 3)}, freeze_params=False)
            local_demo = True
            target = tvm.target.Target("llvm") if local_demo else tvm.target.arm_cpu("rasp3b")
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(func, target, params=params)
            tmp = utils.tempdir()
            lib_fname = tmp.relpath("net.tar")
            lib.export_library(lib_fname)
            remote = rpc.LocalSession() if local_demo else rpc.connect("10.77.1.162", 9090)
            remote.upload(lib_fname)
            rlib = remote.load_module("net.tar")
            dev = remote.cpu(0)
            module = runtime.GraphModule(rlib["default"](dev))
            module.set_input("x", tvm.nd.array(np.ones((2, 3), "float32")))
            module.run()
            print(module.get_output(0).numpy().shape, remote.listdir())
            remote.upload(bytearray(b"data"), "a.bin")
            print(bytes(remote.download("a.bin")))
            remote.remove("a.bin")
            try:
                remote.download("../../etc/passwd")
            except ValueError as error:
                print(error)
            '''), ["(2, 4) ['net.tar']", "b'data'", "'../../etc/passwd' is no file of the session"])

    def test_tvmc(self):
        out = self.script('''
            from tvm.driver import tvmc
            from tvm.driver.tvmc.model import TVMCPackage, TVMCResult

            model = tvmc.load("model.onnx", shape_dict={"x": [2, 3]})
            model.summary()
            package = tvmc.compile(model, target="llvm", package_path="whatever")
            new_package = tvmc.TVMCPackage(package_path="whatever")
            result = tvmc.run(new_package, device="cpu", fill_mode="ones", benchmark=True, repeat=2, number=2)
            print(result)
            model.save("saved")
            again = tvmc.load("saved")
            print(tvmc.run(tvmc.compile(again, target="llvm"), device="cpu", fill_mode="ones").get_output("output_0").tolist() == result.get_output("output_0").tolist())
            print(isinstance(result, TVMCResult), isinstance(package, TVMCPackage), result.get_output("output_0").shape)
            records = tvmc.tune(model, target="llvm", trials=2, number=1)
            tvmc.compile(model, target="llvm", tuning_records=records)
            ''')
        self.assertIn("def @main", out[1])
        self.assertIn("True True (2, 4)", out)

    def test_ahead_of_time_and_build_module(self):
        self.assertEqual(self.script('''
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.relay.backend import Executor, Runtime

            x = np.ones((2, 3), "float32")
            mod, params = relay.frontend.from_onnx("model.onnx", freeze_params=False)
            with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True, "tir.usmp.enable": False}):
                lib = relay.build(mod, tvm.target.Target("llvm"), executor=Executor("aot", {"interface-api": "packed", "unpacked-api": False}),
                                  runtime=Runtime("cpp"), params=params, mod_name="net")
            lib.export_library("net.so")
            loaded = tvm.runtime.load_module("net.so")
            runner = tvm.runtime.executor.AotModule(loaded["net"](tvm.cpu(0)))
            runner.set_input("x", x)
            runner.run()
            first = runner.get_output(0).numpy()

            bld = relay.build_module.BuildModule()
            json, lib, out_params = bld.build(mod, target="llvm", params=params)
            module = tvm.contrib.graph_executor.create(json, lib, tvm.cpu())
            module.run(x=x)
            np.testing.assert_allclose(module.get_output(0).numpy(), first, rtol=1e-6)
            print(sorted(bld.mod["list_params"]()) == sorted(out_params), bld.get_devices(), "Primitive" in str(bld.get_irmodule()))
            relay.build(mod, "llvm", runtime=Runtime("crt", {"system-lib": True}), params=params).export_library("net.a")
            print(open("net.a", "rb").read(7))
            '''), ["True ['cpu'] True", "b'!<arch>'"])

    def test_habits(self):
        self.assertEqual(self.script('''
            import numpy as np
            import tvm
            from tvm import relay, te, rpc, autotvm, auto_scheduler, meta_schedule
            from tvm.ir import IRModule
            from tvm.ir.transform import PassContext
            from tvm.error import TVMError, OpNotImplemented
            from tvm._ffi.base import TVMError as FfiError
            from tvm.runtime import Module, NDArray
            from tvm.relay.op import annotation
            from tvm.contrib import util, ndk

            assert TVMError is FfiError and tvm.TVMError is TVMError
            assert tuple(int(v) for v in tvm.__version__.split("+")[0].split(".")[:2]) >= (0, 8)
            print(tvm.support.libinfo()["USE_LLVM"], tvm.runtime.enabled("llvm"), tvm.runtime.enabled("cuda"), tvm.cuda(0).exist, tvm.gpu())

            @tvm.register_func("my.addone")
            def addone(x):
                return x + 1

            print(tvm.get_global_func("my.addone")(3), tvm.get_global_func("my.none", allow_missing=True))
            a, b = tvm.nd.array(np.arange(3, dtype="float32")), tvm.nd.empty((3,), "float32", tvm.cpu(0))
            a.copyto(b)
            print(b.numpy().tolist(), isinstance(b, NDArray), b.device == tvm.cpu(0), b.dtype == "float32")
            for target, dev in tvm.testing.enabled_targets():
                print(target, dev)
            with relay.build_config(opt_level=3), tvm.target.Target("llvm"):
                lib = relay.build(relay.frontend.from_onnx("model.onnx")[0])
            print(isinstance(lib.get_lib(), Module), lib.libmod_name)
            try:
                relay.frontend.from_onnx("none.onnx")
            except TVMError as error:
                print(str(error)[:32])
            '''), ["ON True False False cuda(0)", "4 None", "[0.0, 1.0, 2.0] True True True", "llvm cpu(0)", "True default", "error[E102 FileNotFound]: none.onn"[:32]])

    def test_what_is_missing_names_its_replacement(self):
        out = self.script('''
            import tvm
            from tvm import meta_schedule
            import tvm.auto_scheduler
            for use in (lambda: tvm.tir.StmtSRef(), lambda: tvm.rpc.proxy.Proxy(), lambda: tvm.micro.build(),
                        lambda: tvm.relay.collage.tune, lambda: tvm.contrib.ndk.create_shared("a", []), lambda: tvm.nonsense):
                try:
                    use()
                except (NotImplementedError, AttributeError) as error:
                    print(error)
            for bad in ("tvm.nonsense", "tvm.relay.nonsense"):
                try:
                    __import__(bad)
                except ModuleNotFoundError as error:
                    print(error)
            try:
                from tvm.relay.frontend import from_tensorflow
                from_tensorflow(None)
            except NotImplementedError as error:
                print(error)
            ''')
        for line, text in zip(out, ("tvm.tir.StmtSRef does not exist in Tilewright; instead: te.compute", "ssh -L", "create_local_aot_executor", "relay.collage is not supported", "cross_compiler",
                                    "docs/migrating.md", "tvm.nonsense does not exist", "tvm.relay.nonsense does not exist", "export the model to ONNX")):
            self.assertIn(text, line)
        self.assertEqual(len(out), 9)

    def test_modules_and_code_run_too(self):
        self.assertEqual(self.script("", "-m", "tilewright.as_tvm", "-c", "import tvm, sys; print(tvm.cpu(), sys.argv)", "a"), ["cpu(0) ['-c', 'a']"])
        self.assertIn("usage", self.script("", "-m", "tilewright.as_tvm", "-m", "tvm.driver.tvmc", "compile", "--help")[0])
        self.script("", "-m", "tilewright.as_tvm", "-m", "tvm.driver.tvmc", "compile", "model.onnx", "-o", "m.tar")


if __name__ == "__main__":
    unittest.main()
