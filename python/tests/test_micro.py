# SPDX-License-Identifier: Apache-2.0
"""Projects for devices, from models to results over a session: the host's program, the emulated board, the Project API, and what they refuse."""
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest

import numpy as np

import tilewright.classic as tvm
from tilewright.classic import micro, relay
from tilewright.classic.driver import tvmc
from tilewright.classic.driver.tvmc.main import main as tvmc_main
from tilewright.classic.error import Error
from tilewright.classic.ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tilewright.classic.micro.project_api import client, server
from tilewright.classic.relay.backend import Executor, Runtime
from tilewright.classic.runtime.executor import AotModule

BOARD = bool(shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"))


def build(mod, params=None, target="c", interface="c", name="default", config=None, **options):
    executor = Executor("aot", {"interface-api": interface, "unpacked-api": interface == "c"})
    with tvm.transform.PassContext(opt_level=3, config=config or {}):
        return relay.build(mod, target, executor=executor, runtime=Runtime("crt"), params=params or {}, mod_name=name, **options)


def network(random, dtype="float32"):
    """A small network of random sizes with two inputs and two outputs, and its numpy result."""
    c, h, w, o = (int(n) for n in random.integers(1, 7, 4))
    x, y = relay.var("x", shape=(1, c, h, w), dtype=dtype), relay.var("in put:0", shape=(1, c, h, w), dtype=dtype)
    weight = random.integers(-3, 4, (o, c, 3, 3)).astype(dtype)
    total = relay.add(x, y)
    out = relay.nn.relu(relay.nn.conv2d(total, relay.const(weight), padding=(1, 1)))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple([out, relay.multiply(total, relay.const(2, dtype))])))
    inputs = {"x": random.integers(-5, 6, (1, c, h, w)).astype(dtype), "in put:0": random.integers(-5, 6, (1, c, h, w)).astype(dtype)}
    padded = np.pad(inputs["x"] + inputs["in put:0"], [(0, 0), (0, 0), (1, 1), (1, 1)]).astype("float64")
    conv = np.zeros((1, o, h, w))
    for i in range(3):
        for k in range(3):
            conv += np.einsum("nchw,oc->nohw", padded[:, :, i:i + h, k:k + w], weight[:, :, i, k].astype("float64"))
    return mod, inputs, [np.maximum(conv, 0).astype(dtype), (inputs["x"] + inputs["in put:0"]) * 2]


def quantised(random, depthwise, dtype="int8"):
    """A quantised convolution of random sizes, its zero point anything."""
    c, h, w = (int(n) for n in random.integers(1, 9, 3))
    k, stride, pad = int(random.integers(1, 4)), int(random.integers(1, 3)), int(random.integers(0, 3))
    o = c if depthwise else int(random.integers(1, 9))
    if h + 2 * pad < k or w + 2 * pad < k:
        pad = 1 + k // 2
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    zero, scale = int(random.integers(low, high)), 0.05
    x = relay.var("x", shape=(1, c, h, w), dtype=dtype)
    weight = random.integers(-127, 128, (o, 1 if depthwise else c, k, k)).astype("int8")
    real = relay.qnn.op.dequantize(x, relay.const(scale), relay.const(zero, "int32"))
    kernel = relay.qnn.op.dequantize(relay.const(weight), relay.const(random.uniform(0.01, 0.02, o).astype("float32")), relay.const(np.zeros(o, "int32")), axis=0)
    y = relay.nn.conv2d(real, kernel, padding=(pad, pad), strides=(stride, stride), groups=c if depthwise else 1)
    y = relay.nn.relu(relay.nn.bias_add(y, relay.const(random.uniform(-1, 1, o).astype("float32"))))
    y = relay.qnn.op.quantize(y, relay.const(0.1), relay.const(-128, "int32"))
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    return mod, random.integers(low, high, (1, c, h, w)).astype(dtype)


class Projects(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = self.place.name
        self.addCleanup(self.place.cleanup)

    def path(self, name):
        return os.path.join(self.folder, name)

    def project(self, lib, template="crt", name="project", options=None):
        made = micro.generate_project(micro.get_microtvm_template_projects(template), lib, self.path(name), options)
        made.build()
        made.flash()
        return made

    def run_model(self, session, inputs, name=""):
        module = AotModule(session.create_aot_executor(name))
        for key, value in inputs.items():
            module.set_input(key, value)
        module.run()
        return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]

    def test_results_of_random_networks(self):
        random = np.random.default_rng(5)
        for i, interface in enumerate(["c", "packed"]):
            mod, inputs, expected = network(random, ["float32", "int32"][i])
            project = self.project(build(mod, interface=interface), name=f"p{i}")
            with micro.Session(project.transport()) as session:
                for got, want in zip(self.run_model(session, inputs), expected, strict=True):
                    np.testing.assert_array_equal(got, want)

    def test_a_large_tensor_goes_in_pieces_and_time_is_measured_there(self):
        x = relay.var("x", shape=(3, 4000))
        project = self.project(build(tvm.IRModule.from_expr(relay.nn.relu(x))), options={"packet_bytes": 700, "memory_bytes": 50000})
        with micro.Session(project.transport()) as session:
            value = np.random.default_rng(1).standard_normal((3, 4000)).astype("float32")
            there = tvm.nd.array(value, session.device)
            np.testing.assert_array_equal(there.numpy(), value)
            np.testing.assert_array_equal(self.run_model(session, {"x": value})[0], np.maximum(value, 0))
            self.assertEqual(self.run_model(session, {"x": there})[0].shape, (3, 4000))
            executor = AotModule(session.create_aot_executor())
            self.assertGreater(executor.module.time_evaluator("run", session.device, number=3, repeat=4)().mean, 0)
            self.assertEqual(len(executor.module.time_evaluator("run", session.device, number=1, repeat=5)().results), 5)
            with self.assertRaisesRegex(Error, "no memory"):
                tvm.nd.array(np.zeros(1 << 20, "float32"), session.device)
            with self.assertRaisesRegex(Error, "no such input"):
                executor.module["get_input"](7)
            self.assertEqual(executor.get_input_index("nobody"), -1)
        with self.assertRaises(micro.SessionTerminatedError):
            session.create_aot_executor()

    def test_pools_and_several_models(self):
        random = np.random.default_rng(7)
        models = [network(random) for _ in range(2)]
        pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [], PoolInfoProperties(size_hint_bytes=1 << 20))])
        flash = ConstantMemoryPools([ConstantPoolInfo("flash", [], [])])
        libs = [build(models[0][0], name="first", workspace_memory_pools=pools, constant_memory_pools=flash),
                build(models[1][0], name="second", workspace_memory_pools=pools, config={"tir.usmp.use_workspace_io": True, "tir.usmp.enable": True})]
        path = self.path("both.tar")
        micro.export_model_library_format(libs, path)
        project = micro.generate_project_from_mlf(micro.get_microtvm_template_projects("crt"), self.path("project"), path)
        project.build()
        for _ in range(2):  # a second session with a new process
            with micro.Session(project.transport()) as session:
                for name, (_, inputs, expected) in zip(["first", "second"], models, strict=True):
                    for got, want in zip(self.run_model(session, inputs, name), expected, strict=True):
                        np.testing.assert_array_equal(got, want)
                with self.assertRaisesRegex(Error, "no model of this name"):
                    session.create_aot_executor("third")

    @unittest.skipUnless(BOARD, "no arm-none-eabi-gcc or qemu-system-arm here: ./dev setup --micro installs them")
    def test_the_board_and_the_host_agree_bit_by_bit(self):
        random = np.random.default_rng(11)
        cases = [quantised(random, i % 4 == 1, "uint8" if i % 3 == 2 else "int8") for i in range(14)]
        libs = [build(mod, name=f"m{i}", target="c -mcpu=cortex-m4") for i, (mod, _) in enumerate(cases)]
        path = self.path("all.tar")
        micro.export_model_library_format(libs, path)
        results = []
        for template in ("crt", "mps2-an386"):
            project = micro.generate_project_from_mlf(micro.get_microtvm_template_projects(template), self.path(template), path)
            project.build()
            with micro.Session(project.transport()) as session:
                results.append([self.run_model(session, {"x": x}, f"m{i}")[0] for i, (_, x) in enumerate(cases)])
        for i, (mod, x) in enumerate(cases):
            np.testing.assert_array_equal(results[0][i], results[1][i])
            # And with the reference, which is real arithmetic: a step of the output's scale where it rounds.
            reference = relay.create_executor("debug", mod=mod).evaluate()(x).numpy()
            self.assertLessEqual(np.abs(reference.astype(int) - results[0][i].astype(int)).max(), 1)
        code = "".join(p.read_text() for p in pathlib.Path(self.path("mps2-an386"), "model/codegen/host/src").glob("*.c"))
        self.assertIn("tw_dot2(", code)  # some of them are of pairs of channels
        text = pathlib.Path(self.path("mps2-an386"), "build/main.map").read_text()
        self.assertNotIn("malloc", text)

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "no onnx here, with which the models are made")
    def test_mlperf_tiny(self):
        """The benchmark's four shapes in int8: their workspace, inputs and outputs in it; the bytes of two on the board are those of this machine."""
        script = pathlib.Path(__file__).resolve().parents[2] / "bench/zoo/mlperf_tiny.py"
        subprocess.run([sys.executable, str(script), self.folder], check=True)
        for name, most in {"kws": 16640, "vww": 55808, "ic": 49664, "ad": 1024}.items():
            import onnx
            mod, params = relay.frontend.from_onnx(onnx.load(self.path(f"{name}.onnx")))
            pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [], PoolInfoProperties())])
            lib = build(mod, params, "c -mcpu=cortex-m4", name=name, config={"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True, "tir.usmp.algorithm": "hill_climb"},
                        workspace_memory_pools=pools)
            micro.export_model_library_format(lib, self.path(f"{name}.tar"))
            with tarfile.open(self.path(f"{name}.tar")) as archive:
                metadata = json.load(archive.extractfile("./metadata.json"))
            pool = metadata["modules"][name]["interface"]["pools"][0]
            self.assertLessEqual(pool["bytes"], most, name)
            if not BOARD or name not in ("kws", "ad"):
                continue
            results = []
            for template in ("crt", "mps2-an386"):
                project = micro.generate_project_from_mlf(micro.get_microtvm_template_projects(template), self.path(f"{name}-{template}"), self.path(f"{name}.tar"))
                project.build()
                with micro.Session(project.transport()) as session:
                    shape = [int(d) for d in AotModule(session.create_aot_executor()).get_input(0).shape]
                    results.append(self.run_model(session, {"input": np.random.default_rng(4).integers(-128, 128, shape).astype("int8")})[0])
            np.testing.assert_array_equal(results[0], results[1])

    def test_layers_of_one_kind_share_their_code(self):
        x = relay.var("x", shape=(1, 16, 12, 12), dtype="int8")
        random, y = np.random.default_rng(2), x
        for channels in (16, 24, 32):  # several pairs each: a layer of one has no loop over them
            c = [int(d) for d in relay.transform.InferTypeLocal(y).shape][1]
            kernel = relay.qnn.op.dequantize(relay.const(random.integers(-127, 128, (channels, c, 1, 1)).astype("int8")), relay.const(0.01), relay.const(0, "int32"))
            y = relay.nn.relu(relay.nn.conv2d(relay.qnn.op.dequantize(y, relay.const(0.05), relay.const(3, "int32")), kernel))
            y = relay.qnn.op.quantize(y, relay.const(0.1), relay.const(-128, "int32"))
        mod = tvm.IRModule.from_expr(relay.Function([x], y))
        value = random.integers(-128, 128, (1, 16, 12, 12)).astype("int8")
        project = self.project(build(mod, target="c -mcpu=cortex-m4", name="net"))
        code = pathlib.Path(self.path("project"), "model/codegen/host/src/net_lib0.c").read_text()
        self.assertEqual(code.count("static void kernel_"), 1)
        with micro.Session(project.transport()) as session:
            got = self.run_model(session, {"x": value})[0]
        self.assertEqual(got.shape, (1, 32, 12, 12))
        reference = relay.create_executor("debug", mod=mod).evaluate()(value).numpy()
        self.assertLessEqual(np.abs(reference.astype(int) - got.astype(int)).max(), 2)

    @unittest.skipUnless(BOARD, "no arm-none-eabi-gcc or qemu-system-arm here: ./dev setup --micro installs them")
    def test_tuning_on_the_board(self):
        from tilewright.classic import autotvm
        mod, x = quantised(np.random.default_rng(8), False)
        target = tvm.target.Target("c -mcpu=cortex-m4")
        tasks = autotvm.task.extract_from_program(mod["main"], {}, target)
        self.assertTrue(tasks)
        loader = micro.AutoTvmModuleLoader(micro.get_microtvm_template_projects("mps2-an386"), {"memory_bytes": 4096})
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(timeout=60, build_func=micro.autotvm_build_func), runner=autotvm.LocalRunner(number=1, repeat=2, module_loader=loader))
        log = self.path("tuned.log")
        autotvm.tuner.GridSearchTuner(tasks[0]).tune(n_trial=3, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)])
        records = list(autotvm.record.load_from_file(log))
        self.assertEqual(len(records), 3)
        for _, result in records:
            self.assertEqual(result.error_no, 0, result.costs)
            self.assertEqual(result.costs[0], result.costs[1])  # counts of instructions
        with autotvm.apply_history_best(log):
            lib = build(mod, target="c -mcpu=cortex-m4")
        project = self.project(lib, "mps2-an386")
        with micro.Session(project.transport()) as session:
            self.run_model(session, {"x": x})

    def test_trees_for_other_platforms(self):
        mod, _, _ = network(np.random.default_rng(3))
        lib = build(mod)
        for template, files in {"zephyr": ["CMakeLists.txt", "prj.conf", "src/main.c", "src/crt/rpc_server.c"], "arduino": ["arduino.ino", "src/models.c", "src/tvmgen_default.h"]}.items():
            project = micro.generate_project(micro.get_microtvm_template_projects(template), lib, self.path(template))
            for file in files:
                self.assertTrue(os.path.exists(self.path(f"{template}/{file}")), file)
            with self.assertRaisesRegex(client.RPCError, "which board it is"):
                project.build()
        # A sketch's C files find each other without include paths.
        for source in [*pathlib.Path(self.path("arduino/src")).glob("*.c"), *pathlib.Path(self.path("arduino/src/crt")).glob("*.c")]:
            subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)], check=True)

    def test_templates_of_others(self):
        template = pathlib.Path(self.path("template"))
        template.mkdir()
        (template / "microtvm_api_server.py").write_text(textwrap.dedent("""
            from tilewright.classic.micro.project_api import server
            class Handler(server.ProjectAPIHandler):
                def server_info_query(self, tvm_version):
                    return server.ServerInfo("mine", True, "", [server.ProjectOption("board", choices=("a", "b"), required=["build"], help="which")])
                def generate_project(self, model_library_format_path, standalone_crt_dir, project_dir, options):
                    raise server.ServerError("no project today: " + options["board"])
                def build(self, options): pass
                def flash(self, options): pass
                def open_transport(self, options): return server.TransportTimeouts(1, 1, 1)
                def close_transport(self): pass
                def read_transport(self, n, timeout_sec): raise server.IoTimeoutError("silent")
                def write_transport(self, data, timeout_sec): raise RuntimeError(data.decode())
            server.main(Handler())
        """))
        project = micro.TemplateProject.from_directory(template)
        self.assertEqual(project.info().project_options[0].choices, ["a", "b"])
        with self.assertRaisesRegex(client.RPCError, "no project today: a"):
            project.generate_project_from_mlf("x.tar", self.path("p"), {"board": "a"})
        with self.assertRaisesRegex(ValueError, "'bord' is no option"):
            project.generate_project_from_mlf("x.tar", self.path("p"), {"bord": "a"})
        with self.assertRaises(micro.TemplateProjectError):
            micro.GeneratedProject.from_directory(template)
        api = client.instantiate_from_dir(template)
        self.assertEqual(api.open_transport({}).session_start_timeout_sec, 1)
        with self.assertRaises(server.IoTimeoutError):
            api.read_transport(4, 0.1)
        with self.assertRaisesRegex(client.RPCError, "bytes"):
            api.write_transport(b"bytes", None)
        api.shutdown()
        with self.assertRaises(client.ConnectionShutdownError):
            api.build({})

    def test_tvmc(self):
        mod, inputs, expected = network(np.random.default_rng(21))
        path, folder = self.path("net.tar"), self.path("project")
        package = tvmc.compile(tvmc.TVMCModel(mod, {}), "c", executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}), runtime=Runtime("crt"), package_path=path,
                               output_format="mlf")
        self.assertEqual(package.type, "mlf")
        with self.assertRaisesRegex(tvmc.TVMCException, "MLF can only be used to run micro device"):
            tvmc.run(package)
        with self.assertRaisesRegex(tvmc.TVMCException, "project"):
            tvmc.run(package, device="micro")
        np.savez(self.path("in.npz"), **inputs)
        tvmc_main(["micro", "create-project", folder, path, "crt", "--project-option", "memory_bytes=1024"])
        with self.assertRaisesRegex(SystemExit, "already exists"):
            tvmc_main(["micro", "create", folder, path, "crt"])
        with self.assertRaisesRegex(SystemExit, "'memory' is no option"):
            tvmc_main(["micro", "create", self.path("other"), path, "crt", "--project-option", "memory=1"])
        tvmc_main(["micro", "create", folder, path, "crt", "-f"])
        tvmc_main(["micro", "build", folder, "crt"])
        tvmc_main(["micro", "flash", folder, "crt"])
        tvmc_main(["run", "--device", "micro", folder, "-i", self.path("in.npz"), "-o", self.path("out.npz"), "--print-time"])
        with np.load(self.path("out.npz")) as file:
            for i, want in enumerate(expected):
                np.testing.assert_array_equal(file[f"output_{i}"], want)

    def test_tvmc_walks_a_graph(self):
        x, random = relay.var("x", shape=(1, 8)), np.random.default_rng(5)
        weights, value = random.standard_normal((4, 8)).astype("float32"), random.standard_normal((1, 8)).astype("float32")
        mod = tvm.IRModule.from_expr(relay.nn.relu(relay.nn.dense(x, relay.var("w", shape=(4, 8)))))
        path, folder = self.path("net.tar"), self.path("project")
        tvmc.compile(tvmc.TVMCModel(mod, {"w": weights}), "c", executor=Executor("graph"), runtime=Runtime("crt", {"system-lib": True}), package_path=path, output_format="mlf")
        tvmc_main(["micro", "create-project", folder, path, "crt"])
        tvmc_main(["micro", "build", folder, "crt"])
        np.savez(self.path("in.npz"), x=value)
        tvmc_main(["run", "--device", "micro", folder, "-i", self.path("in.npz"), "-o", self.path("out.npz")])
        with np.load(self.path("out.npz")) as file:
            np.testing.assert_allclose(file["output_0"], np.maximum(value @ weights.T, 0), rtol=1e-5)
        with self.assertRaisesRegex(SystemExit, "executor aot"):
            tvmc_main(["run", "--device", "micro", folder, "-i", self.path("in.npz"), "--print-time"])

    def test_what_is_refused(self):
        mod, _, _ = network(np.random.default_rng(9))
        path = self.path("net.tar")
        micro.export_model_library_format(build(mod), path)
        crt = micro.get_microtvm_template_projects("crt")
        with self.assertRaises(micro.UnsupportedPlatformError):
            micro.get_microtvm_template_projects("crtt")
        with self.assertRaises(client.ProjectAPIServerNotFoundError):
            micro.GeneratedProject.from_directory(self.folder)
        with self.assertRaisesRegex(client.RPCError, "from 512"):
            micro.generate_project_from_mlf(crt, self.path("p"), path, {"packet_bytes": 3})
        micro.generate_project_from_mlf(crt, self.path("p"), path)
        with self.assertRaisesRegex(client.RPCError, "there already"):
            micro.generate_project_from_mlf(crt, self.path("p"), path)
        with self.assertRaisesRegex(client.RPCError, "not built"), micro.Session(micro.GeneratedProject.from_directory(self.path("p")).transport()):
            pass
        micro.export_model_library_format(build(mod, target="llvm"), self.path("object.tar"))
        with self.assertRaisesRegex(client.RPCError, "target c"):
            micro.generate_project_from_mlf(micro.get_microtvm_template_projects("mps2-an386"), self.path("q"), self.path("object.tar"))
        micro.export_model_library_format(relay.build(mod, "c"), self.path("graph.tar"))
        with self.assertRaisesRegex(client.RPCError, "ahead of time"):
            micro.generate_project_from_mlf(crt, self.path("q"), self.path("graph.tar"))

    def test_damaged_libraries(self):
        mod, _, _ = network(np.random.default_rng(2))
        path, good = self.path("net.tar"), self.path("good.tar")
        micro.export_model_library_format(build(mod), good)

        def rewrite(change):
            with tarfile.open(good) as old, tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as new:
                for member in old:
                    data = old.extractfile(member).read() if member.isfile() else b""
                    if member.name.endswith("metadata.json"):
                        parsed = json.loads(data)
                        change(parsed)
                        data = json.dumps(parsed).encode()
                        member.size = len(data)
                    new.addfile(member, io.BytesIO(data))

        def refused(words):
            with self.assertRaisesRegex(client.RPCError, words):
                micro.generate_project_from_mlf(micro.get_microtvm_template_projects("crt"), self.path("p"), path)
            self.assertFalse(os.path.exists(self.path("p")))
        rewrite(lambda m: m.update(version=6))
        refused("E502.*version 6")
        rewrite(lambda m: m["modules"]["default"]["interface"].update(prefix='x"; system("'))
        refused("E501.*no name of C")
        rewrite(lambda m: m["modules"]["default"]["interface"]["inputs"][0].update(shape=[1 << 39, 1 << 39]))
        refused("E501.*larger than a tensor")
        rewrite(lambda m: m["modules"]["default"]["memory"]["functions"]["main"][0].pop("io_size_bytes"))
        refused("E501.*no .*io_size_bytes")
        with open(good, "rb") as file:
            data = file.read()
        for cut in (100, 700, len(data) // 2):
            with open(path, "wb") as file:
                file.write(data[:cut])
            refused("E501")
        with tarfile.open(path, "w") as new:
            for name in ("./metadata.json", "./../../evil.c"):
                member = tarfile.TarInfo(name)
                member.size = 2
                new.addfile(member, io.BytesIO(b"{}"))
        refused("leads out")


if __name__ == "__main__":
    unittest.main()
