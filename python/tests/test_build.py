# SPDX-License-Identifier: Apache-2.0
"""The build side of the classic interface: targets, build modules, factories, executors, devices and arrays."""
import ctypes
import json
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import warnings

import numpy as np

import tilewright
from tilewright import classic as tw
from test_tilewright import B, EXPECTED, W, X, model_bytes
from tilewright.classic import relay, transform
from tilewright.classic.contrib import graph_executor
from tilewright.classic.relay.backend import Executor, Runtime
from tilewright.classic.target import Target


def run(lib, **inputs):
    module = graph_executor.GraphModule(lib["default"](tw.cpu()))
    module.run(**inputs)
    return module.get_output(0).numpy()


class Targets(unittest.TestCase):
    def test_forms(self):
        spec = {"kind": "llvm", "mcpu": "haswell", "mattr": ["+avx2", "+fma"], "num-cores": 4}
        for form in ("llvm -mcpu=haswell -mattr=+avx2,+fma -num-cores=4", "llvm -mcpu haswell --mattr=+avx2,+fma -num-cores 4", spec, json.dumps(spec)):
            target = Target(form)
            self.assertEqual(target, Target(spec))
            self.assertEqual(Target(str(target)), target)
            self.assertEqual(Target(target.export()), target)
            self.assertEqual(pickle.loads(pickle.dumps(target)), target)
            self.assertEqual((target.kind.name, target.mcpu, target.mattr, target.num_cores, target.keys), ("llvm", "haswell", ["+avx2", "+fma"], 4, ["cpu"]))
        self.assertEqual(Target("llvm --system-lib -link-params=0").attrs, {"system-lib": True, "link-params": False})
        self.assertEqual(Target("llvm -libs=mkl,cblas").libs, ["mkl", "cblas"])
        self.assertEqual(Target("llvm -device=arm_cpu -model=rasp4").keys, ["arm_cpu", "cpu"])
        self.assertEqual((Target("cuda -arch=sm_80").arch, Target("cuda").keys, Target("cuda").get_target_device_type()), ("sm_80", ["cuda", "gpu"], 2))
        self.assertIn("num-cores", Target("llvm").kind.options)
        self.assertIn("cuda", Target.list_kinds())
        board = Target("raspberry-pi/4b-aarch64")
        self.assertEqual((board.tag, board.mcpu, board.host.mtriple), ("raspberry-pi/4b-aarch64", "cortex-a72", "aarch64-linux-gnu"))
        self.assertEqual(Target({"tag": "raspberry-pi/4b-aarch64", "num-cores": 2}).num_cores, 2)
        tw.target.register_tag("test/board", {"kind": "llvm", "mcpu": "haswell"})
        self.assertEqual(Target("test/board").mcpu, "haswell")
        self.assertIn("test/board", tw.target.list_tags())
        with self.assertRaises(ValueError):
            tw.target.register_tag("test/board", {"kind": "llvm"})
        for bad in ("", "vax", "llvm -nonsense=1", "llvm haswell", "llvm -num-cores=many", "llvm -system-lib=maybe", "llvm -mattr=avx2", "llvm -mcpu=a -mcpu=b",
                    "nvidia/none", '{"kind": ', {"kind": "llvm", "mcpu": 3}, {"kind": "llvm", "num-cores": 1.5}, "llvm -math=loose", "llvm -mcpu='x"):
            with self.assertRaises(tw.Error, msg=bad) as raised:
                Target(bad)
            self.assertEqual(raised.exception.code, 401)
        for bad, error in (({"mcpu": "x"}, ValueError), (3, ValueError)):
            with self.assertRaises(error):
                Target(bad)

    def test_hosts_and_several(self):
        target = Target("cuda", host="llvm -mcpu=haswell")
        self.assertEqual(target.host.mcpu, "haswell")
        self.assertEqual(Target({"kind": "cuda", "host": {"kind": "llvm"}}).host, Target("llvm"))
        self.assertEqual(Target("llvm").with_host("llvm").host, Target("llvm"))
        self.assertEqual(Target.canon_target_and_host("cuda", "llvm")[1], Target("llvm"))
        self.assertEqual([t.kind.name for t in Target.canon_multi_target_and_host({"cpu": "llvm", "cuda": "cuda"}, "llvm")], ["llvm", "cuda"])
        self.assertEqual(Target.canon_multi_target_and_host({tw.cpu(): "llvm"}, "llvm")[0].host, Target("llvm"))
        self.assertEqual(Target.canon_multi_target_and_host(["llvm", Target("cuda")])[1].host, None)
        self.assertEqual(Target.canon_multi_target_and_host({"kind": "llvm"})[0], Target("llvm"))
        self.assertEqual(Target.canon_target_map_and_host({"cpu": "llvm"}, "llvm")[1], Target("llvm"))
        for bad in ({"cuda": "llvm"}, {"gpu": "llvm"}, {"nowhere": "llvm"}):
            with self.assertRaises(tw.Error):
                Target.canon_multi_target(bad)
        for bad in ({}, [], None):
            with self.assertRaises(ValueError):
                Target.canon_multi_target_and_host(bad)
        with Target("llvm -mcpu=haswell") as outer:
            with Target("llvm"):
                self.assertEqual(Target.current(), Target("llvm"))
            self.assertIs(Target.current(), outer)
        self.assertIsNone(Target.current())
        with self.assertRaises(ValueError):
            Target.current(allow_none=False)
        self.assertEqual(Target.from_device("cpu"), Target("llvm"))
        with self.assertRaises(ValueError):
            Target.from_device(tw.nd.cuda())
        for device in ("cuda", "hybrid", "ext_dev"):
            with self.assertRaises(tw.Error) as raised:
                relay.build(relay.frontend.from_onnx(model_bytes())[0], device)
            self.assertEqual(raised.exception.code, 401)
        with self.assertRaises((tw.Error, NotImplementedError)):
            relay.build(relay.frontend.from_onnx(model_bytes())[0], {"cpu": "llvm", "cuda": "cuda"})


class Builds(unittest.TestCase):
    def setUp(self):
        self.mod, self.params = relay.frontend.from_onnx(model_bytes(), freeze_params=False)

    def test_build_module(self):
        bld = relay.build_module.BuildModule()
        for early in (bld.get_graph_json, bld.get_module, bld.get_irmodule):
            with self.assertRaises(ValueError):
                early()
        graph, lib, params = bld.build(self.mod, "llvm", params=self.params)
        self.assertEqual((json.loads(graph), set(params)), (json.loads(bld.get_graph_json()), set(bld.list_params())))
        np.testing.assert_allclose(run(bld.get_module(), x=X), EXPECTED, rtol=1e-6)
        self.assertEqual(bld.get_devices(), ["cpu"])
        self.assertIn("Primitive", bld.get_irmodule().astext())
        self.assertEqual(bld.get_external_modules(), [])
        self.assertEqual(bld.get_executor_codegen_metadata().inputs, ["x"])
        self.assertEqual(bld.get_executor_codegen_metadata().output_tensor_types, [("float32", (2, 4))])
        metadata = bld.get_function_metadata()
        target = next(iter(metadata["__tvm_main__"].io_sizes))
        self.assertEqual(metadata["__tvm_main__"].io_sizes[target], 4 * (6 + 8))
        self.assertGreater(len(metadata), 1)
        for name, info in metadata.items():  # the loops of each kernel
            self.assertEqual(list(info.tir_primfuncs), [] if name == "__tvm_main__" else [target], name)
            for function in info.tir_primfuncs.values():
                self.assertEqual((function.attrs["global_symbol"], len(function.params) > 1, bool(str(function.body))), (name, True, True))
        self.assertGreaterEqual(metadata["__tvm_main__"].constant_sizes[target], 4 * 16)
        for name in ("get_graph_json", "get_module", "list_params", "get_params", "get_devices", "get_irmodule", "get_external_modules",
                     "get_function_metadata", "get_executor_codegen_metadata"):
            bld.mod[name]()
        with self.assertRaises(AttributeError):
            bld.mod["get_nothing"]
        other = relay.build_module.BuildModule()
        other.set_params(self.params)
        np.testing.assert_allclose(run(other.build(self.mod, "llvm")[1], x=X), EXPECTED, rtol=1e-6)
        mod, params = relay.build_module.BuildModule().optimize(self.mod, "llvm", params=self.params)
        self.assertIn("Primitive", mod.astext())

    def test_params_in_every_way(self):
        for given in (relay.build(self.mod, "llvm", params=self.params), relay.build(self.mod, "llvm", "llvm", self.params),
                      relay.build(tw.IRModule.from_expr(relay.build_module.bind_params_by_name(self.mod["main"], self.params)), "llvm"),
                      relay.build(relay.build_module.bind_params_by_name(self.mod, self.params), "llvm")):
            np.testing.assert_allclose(run(given, x=X), EXPECTED, rtol=1e-6)
        free = relay.build(self.mod, "llvm")
        module = graph_executor.GraphModule(free["default"](tw.cpu()))
        module.set_input("x", X)
        module.set_input(**self.params)
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
        with self.assertRaises(TypeError):
            relay.build(self.mod, "llvm", executor=3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.params")
            tw.runtime.save_param_dict_to_file(self.params, path)
            loaded = tw.runtime.load_param_dict_from_file(path)
            np.testing.assert_array_equal(loaded["w"].numpy(), W)
            calls = []

            def linker(output, objects, **options):
                calls.append(([os.path.basename(o) for o in objects], options))
                tw.contrib.cc.create_shared(output, objects, **options)

            lib = relay.build(self.mod, "llvm", params=loaded)
            for options in (dict(fcompile=linker, options=["-Wl,--build-id=none"]), dict(cc="c++"), dict(fcompile=tw.contrib.cc.cross_compiler("c++"))):
                lib.export_library(os.path.join(folder, "net.so"), **options)
                np.testing.assert_allclose(run(tw.runtime.load_module(os.path.join(folder, "net.so")), x=X), EXPECTED, rtol=1e-6)
            self.assertEqual(calls, [(["lib0.o"], {"options": ["-Wl,--build-id=none"]})])
            with self.assertRaises((RuntimeError, OSError)):
                lib.export_library(os.path.join(folder, "none.so"), cc="no-such-compiler")
            self.assertFalse(os.path.exists(os.path.join(folder, "none.so")))

    def test_the_triple(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graph, lib, params = relay.build(self.mod, "llvm", params=self.params)
        self.assertTrue(any(issubclass(w.category, DeprecationWarning) for w in caught))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "deploy_lib.tar")
            lib.export_library(path)
            lib.save(os.path.join(folder, "deploy.o"))
            for name in ("deploy_lib.tar", "deploy.o"):
                module = graph_executor.create(graph, tw.runtime.load_module(os.path.join(folder, name)), tw.cpu(0))
                module.load_params(relay.save_param_dict(params))
                module.run(x=X)
                np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
            with self.assertRaises(ValueError):
                lib.save(os.path.join(folder, "deploy"), "exe")
        self.assertIn("target triple", lib.get_source())
        self.assertIn(".globl\ttw_run", lib.get_source("asm"))
        with self.assertRaises(ValueError):
            lib.get_source("cuda")

    def test_every_file_form_loads(self):
        lib = relay.build(self.mod, "llvm", params=self.params)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("net.so", "net.o", "net.a", "net.tar", "net.ll", "net.bc"):
                path = os.path.join(folder, name)
                lib.save(path) if name[-2:] in ("ll", "bc") else lib.export_library(path)
                np.testing.assert_allclose(run(tw.runtime.load_module(path), x=X), EXPECTED, rtol=1e-6)
            with tarfile.open(os.path.join(folder, "net.tar")) as archive:
                self.assertEqual(archive.getnames(), ["lib0.o"])
            with open(os.path.join(folder, "extra.cc"), "w") as file:
                file.write("extern \"C\" int seven(void) { return 7; }\n")
            lib.export_library(os.path.join(folder, "more.so"), addons=[os.path.join(folder, "extra.cc")])
            self.assertEqual(ctypes.CDLL(os.path.join(folder, "more.so")).seven(), 7)
            np.testing.assert_allclose(run(tw.runtime.load_module(os.path.join(folder, "more.so")), x=X), EXPECTED, rtol=1e-6)
            with open(os.path.join(folder, "bad.ll"), "w") as file:
                file.write("define void @f() {")
            with self.assertRaises(tw.Error):
                tw.runtime.load_module(os.path.join(folder, "bad.ll"))

    def test_imported_modules_are_an_object_of_their_own(self):
        make = lambda data: tw.runtime.create_module("test_devc", {"text": lambda: data.decode()}, data)  # noqa: E731
        tw.register_func("runtime.module.loadbinary_test_devc", lambda data: make(data).__tw_handle__)
        try:
            lib = relay.build(self.mod, "llvm", params=self.params)
            lib.import_module(make(b"hello"))
            seen = []

            def linker(output, files, **options):
                seen.append([os.path.basename(f) for f in files])
                tw.contrib.cc.create_shared(output, files, **options)

            with tempfile.TemporaryDirectory() as folder:
                paths = [os.path.join(folder, name) for name in ("net.so", "net.tar", "linked.so", "net.o", "net.ll")]
                lib.export_library(paths[0])
                lib.export_library(paths[1])
                lib.export_library(paths[2], linker)
                lib.save(paths[3])
                lib.save(paths[4])
                with tarfile.open(paths[1]) as archive:
                    self.assertEqual(archive.getnames(), ["lib0.o", "devc.o"])
                self.assertEqual(seen, [["lib0.o", "devc.o"]])
                for path in paths:
                    loaded = tw.runtime.load_module(path)
                    self.assertEqual(loaded.get_function("text", True)(), "hello", path)
                    np.testing.assert_allclose(run(loaded, x=X), EXPECTED, rtol=1e-6)
                # The same by hand, in both languages.
                objects = os.path.join(folder, "plain.o")
                relay.build(self.mod, "llvm", params=self.params).export_library(objects)
                packed = tw.get_global_func("runtime.ModulePackImportsToLLVM")(lib.get_lib(), False, "llvm")
                tw.runtime.Module(packed).save(os.path.join(folder, "devc.o"))
                with open(os.path.join(folder, "devc.c"), "w") as file:
                    file.write(tw.get_global_func("runtime.ModulePackImportsToC")(lib.get_lib(), False))
                for imports in ("devc.o", "devc.c"):
                    both = os.path.join(folder, imports + ".so")
                    tw.contrib.cc.create_shared(both, [objects, os.path.join(folder, imports)])
                    self.assertEqual(tw.runtime.load_module(both).get_function("text", True)(), "hello")
        finally:
            tw.remove_global_func("runtime.module.loadbinary_test_devc")

    def test_a_system_library(self):
        lib = relay.build(self.mod, "llvm", params=self.params, runtime=Runtime("cpp", {"system-lib": True}), mod_name="linked_in")
        before = len(tw.runtime.system_lib().imported_modules)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sys.so")
            lib.export_library(path)
            ctypes.CDLL(path)  # its constructor names the model
        system = tw.runtime.system_lib()
        self.assertEqual((system.type_key, len(system.imported_modules)), ("system_lib", before + 1))
        module = graph_executor.GraphModule(system["linked_in"](tw.cpu()))
        module.run(x=X)
        np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
        self.assertEqual(system.imported_modules[-1].type_key, "library")
        with self.assertRaises(AttributeError):
            system["not_linked_in"]

    def test_several_devices(self):
        x = relay.var("x", shape=(1, 8, 12, 12))
        w = relay.const(np.random.default_rng(1).normal(size=(8, 8, 3, 3)).astype("float32"))
        conv = lambda e: relay.nn.relu(relay.nn.conv2d(e, w, padding=(1, 1), kernel_size=(3, 3), channels=8))  # noqa: E731
        plain = tw.IRModule.from_expr(relay.Function([x], conv(relay.exp(conv(x)))))
        there = relay.annotation.on_device(relay.exp(relay.annotation.on_device(conv(x), tw.cpu())), tw.nd.ext_dev(0))
        mixed = tw.IRModule.from_expr(relay.Function([x], conv(there)))
        data = np.random.default_rng(2).normal(size=(1, 8, 12, 12)).astype("float32")
        expected = run(relay.build(plain, "llvm"), x=data)
        slow = "llvm -mcpu=x86-64"
        for target, code in (({"cpu": "llvm", "ext_dev": "ext_dev"}, ""), ({tw.cpu(): "llvm", tw.nd.ext_dev(): slow}, slow), (["llvm", Target("ext_dev", host=slow)], slow),
                             ({1: "llvm", 12: {"kind": "ext_dev"}}, ""), (Target("ext_dev", host="llvm"), "")):
            lib = relay.build(mixed, target)
            self.assertEqual(lib.get_devices(), ["cpu", "ext_dev"])
            graph = json.loads(lib.get_graph_json())
            self.assertEqual(set(graph["attrs"]["device_index"][1]), {1, 12})
            self.assertEqual([n["attrs"]["func_name"] for n in graph["nodes"] if n["op"] == "tvm_op"].count("__copy"), 2)
            module = graph_executor.GraphModule(lib["default"](tw.cpu(0), tw.nd.ext_dev(0)))
            module.run(x=data)
            np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
            main = lib.function_metadata["__tvm_main__"]
            by_kind = {t.kind.name: size for t, size in main.workspace_sizes.items()}
            if len(lib.target) == 2:
                self.assertEqual(set(by_kind), {"llvm", "ext_dev"})
                self.assertGreaterEqual(by_kind["ext_dev"], 4 * 8 * 12 * 12)
            with self.assertRaises(tw.Error):
                lib["default"](tw.cpu(0))
            if code:
                self.assertIn('"target-cpu"="x86-64"', lib.get_lib().get_source("ll"))
        bld = relay.build_module.BuildModule()
        bld.build(mixed, {"cpu": "llvm", "ext_dev": "ext_dev"})
        self.assertEqual(bld.get_devices(), ["cpu", "ext_dev"])
        self.assertEqual(bld.get_executor_codegen_metadata().devices, ["cpu", "ext_dev"])
        with tw.transform.PassContext(opt_level=3, config={"relay.fallback_device_type": 12}):
            self.assertEqual(set(json.loads(relay.build(plain, {"cpu": "llvm", "ext_dev": "ext_dev"}).get_graph_json())["attrs"]["device_index"][1]) - {1}, {12})
        self.assertEqual(relay.annotation.on_device(x, "ext_dev").attrs.device_type, 12)
        with self.assertRaises(ValueError):
            relay.build(mixed, ["llvm", slow])
        with self.assertRaises(tw.Error):
            relay.build(mixed, {"cpu": "llvm", "cuda": "cuda"})

    def test_what_the_classic_stack_wrote(self):
        folder = os.path.join(os.environ["TW_INCLUDE"], "..", "tests", "data", "classic")
        with open(os.path.join(folder, "all_dtypes.params"), "rb") as file:
            data = file.read()
        self.assertEqual(relay.save_param_dict(relay.load_param_dict(data)), data)
        with open(os.path.join(folder, "smallnet_io.params"), "rb") as file:
            run_there = {name: value.numpy() for name, value in relay.load_param_dict(file.read()).items()}
        for module in "smallnet.relay", "smallnet.json":
            net = tilewright.compile(os.path.join(folder, module), params=os.path.join(folder, "smallnet.params"))
            np.testing.assert_allclose(net(run_there["x"]), run_there["out"], rtol=1e-5)
        with self.assertRaises(tw.Error):
            tilewright.compile(os.path.join(folder, "smallnet_graph.json"))
        with open(os.path.join(folder, "smallnet_graph.json")) as file:
            graph = file.read().encode()
        record = struct.pack("<Q", len(graph)) + graph + struct.pack("<QQ", 0, 0) + struct.pack("<Q", 7) + b"default"
        factory = tw.runtime.Module(tilewright._core.load_module_binary("GraphExecutorFactory", record))
        self.assertEqual(factory["get_graph_json"]().encode(), graph)
        with self.assertRaisesRegex(tw.Error, "machine code of the classic stack"):
            factory["default"](tw.cpu())

    def test_factories_are_pickled(self):
        lib = relay.build(self.mod, Target("llvm", host="llvm"), params=self.params, mod_name="small")
        again = pickle.loads(pickle.dumps(lib))
        np.testing.assert_allclose(run(again, x=X), EXPECTED, rtol=1e-6)
        self.assertEqual((again.libmod_name, json.loads(again.get_graph_json()), set(again.get_params())),
                         ("small", json.loads(lib.get_graph_json()), set(lib.get_params())))
        self.assertEqual((again.target, again.executor, again.runtime), (lib.target, lib.executor, lib.runtime))
        with tempfile.TemporaryDirectory() as folder:
            again.export_library(os.path.join(folder, "net.so"))
            np.testing.assert_allclose(run(tw.runtime.load_module(os.path.join(folder, "net.so")), x=X), EXPECTED, rtol=1e-6)
            with self.assertRaises(ValueError):
                again.export_library(os.path.join(folder, "net.a"))
        with self.assertRaises(ValueError):
            again.function_metadata

    def test_ahead_of_time(self):
        from tilewright.classic.runtime.executor import AotModule
        lib = relay.build(self.mod, "llvm", executor=Executor("aot"), params=self.params)
        self.assertIsNone(lib.get_executor_config())
        self.assertEqual(lib.executor_codegen_metadata.executor, "aot")
        with tempfile.TemporaryDirectory() as folder:
            lib.export_library(os.path.join(folder, "aot.so"))
            module = AotModule(tw.runtime.load_module(os.path.join(folder, "aot.so"))["default"](tw.cpu()))
        self.assertEqual((module.module.type_key, module.get_num_inputs(), module.get_input_name(0), module.get_input_index("w")), ("AotExecutor", 1, "x", -1))
        module.run(x=X)
        np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
        out = np.zeros((2, 4), np.float32)
        module.set_output_zero_copy(0, out)
        module.set_input("x", 2 * X)
        module.run()
        np.testing.assert_allclose(out, np.maximum(2 * X @ W + B, 0), rtol=1e-6)
        with self.assertRaises(tw.Error):
            module.set_input(next(iter(lib.get_params())), X)
        with self.assertRaises(TypeError):
            iter(lib)
        with self.assertRaises(ValueError):
            lib.get_graph_json()
        np.testing.assert_allclose(relay.create_executor("aot", self.mod, params=self.params).evaluate()(X).numpy(), EXPECTED, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "when targeting c\\+\\+ runtime"):
            relay.build(self.mod, "llvm", executor=Executor("aot", {"interface-api": "c"}), runtime=Runtime("cpp"))

    def test_options_are_typed(self):
        effective = {name for name, info in transform.PassContext.list_configs().items() if info["effective"]}
        self.assertLessEqual({"relay.FuseOps.max_depth", "relay.FuseOps.link_params", "relay.fallback_device_type"}, effective)
        self.assertFalse({"tir.UnrollLoop", "tir.noalias", "relay.ext.tensorrt.options", "testing.immutable_module"} & effective)
        self.assertEqual(Executor.list_registered(), ["graph", "aot"])
        self.assertIn("interface-api", Executor.list_registered_options("aot"))
        self.assertTrue(Executor("aot")["link-params"])
        self.assertEqual(Executor("graph", {"link-params": True}), Executor("graph", {"link-params": 1}))
        for bad in (lambda: Executor("vm"), lambda: Executor("graph", {"unpacked-api": True}), lambda: Executor("aot", {"interface-api": 3}),
                    lambda: Runtime("cpp", {"link-params": True}), lambda: Runtime("rust")):
            with self.assertRaises((ValueError, TypeError)):
                bad()

    def test_inputs_take_the_dtype_of_the_model(self):
        from tilewright.classic.runtime.executor import AotModule
        executors = (graph_executor.GraphModule(relay.build(self.mod, "llvm", params=self.params)["default"](tw.cpu())),
                     AotModule(relay.build(self.mod, "llvm", params=self.params, executor=Executor("aot"))["default"](tw.cpu())))
        for module in executors:
            for key in ("x", 0):
                for value in (X.astype("float64"), X.tolist(), np.asarray(X, "float16")):
                    module.set_input(key, value)
                    module.run()
                    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
            module.set_input("x", np.ones((2, 3), "int64"))
            for bad in (X.astype("complex64"), tw.nd.array(X.astype("float64")), X[:1]):
                with self.assertRaises((tw.Error, TypeError)):
                    module.set_input("x", bad)
        array = tw.nd.empty((2, 3))
        np.testing.assert_array_equal(array.copyfrom(X.astype("float64")).numpy(), X)

    def test_run_from_inputs_and_weights(self):
        lib = relay.build(self.mod, "llvm", params=self.params)
        module = graph_executor.GraphModule(lib["default"](tw.cpu()))
        first, = module.run_from_inputs(tw.cpu(), x=X)
        second, = module.run_from_inputs(x=2 * X)
        np.testing.assert_allclose(first.numpy(), EXPECTED, rtol=1e-6)
        np.testing.assert_allclose(second.numpy(), np.maximum(2 * X @ W + B, 0), rtol=1e-6)
        for name, value in lib.get_params().items():
            np.testing.assert_array_equal(module.get_input(name).numpy(), value.numpy())
        for bad in (lambda: module.run_from_inputs(y=X), lambda: module.run_from_inputs(tw.nd.cuda(), x=X), lambda: module["run_from_inputs"](1, 0, "x")):
            with self.assertRaises(tw.Error):
                bad()
        with relay.build_config(opt_level=3):
            self.assertEqual(transform.PassContext.current().opt_level, 3)


class Arrays(unittest.TestCase):
    def test_devices(self):
        self.assertEqual(str(tw.cpu(0)), "cpu(0)")
        self.assertTrue(tw.cpu().exist)
        self.assertFalse(tw.nd.cuda().exist)
        self.assertEqual((tw.device("llvm", 0), tw.device("cuda:1"), tw.device(Target("llvm -mcpu=haswell"))), (tw.cpu(0), tw.nd.cuda(1), tw.cpu(0)))
        for bad in ("vax", 77):
            with self.assertRaises(ValueError):
                tw.device(bad)
        for bad in (lambda: tw.nd.array(X, tw.nd.cuda()), lambda: tw.nd.empty((2,), device=tw.nd.opencl()), lambda: tw.nd.array(X).copyto(tw.nd.cuda())):
            with self.assertRaises(ValueError):
                bad()
        self.assertTrue(tw.runtime.enabled("llvm"))
        self.assertFalse(tw.runtime.enabled("cuda") or tw.runtime.enabled("nonsense"))

    def test_names(self):
        t = tw.DataType("float16x4")
        self.assertEqual((t, t.type_code, t.bits, t.lanes), ("float16x4", 2, 16, 4))
        self.assertEqual((tw.DataType("bool").bits, tw.DataType("bfloat16").type_code, tw.DataType("handle").bits), (1, 4, 64))
        with self.assertRaises(ValueError):
            tw.DataType("float32x")
        text = relay.frontend.from_onnx(model_bytes(), freeze_params=False)[0].astext()
        self.assertEqual(tw.parser.fromtext(text), tw.parser.parse(text))
        self.assertEqual(len(tw.parser.parse_expr("fn (%x: Tensor[(2), float32]) { add(%x, %x) }").params), 1)
        with self.assertRaises(tw.Error):
            tw.parser.parse("nonsense")
        listing = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][0]) }'
        for constant in (relay.const(np.array([1, 2], "float32")), np.array([1, 2], "float32")):
            parsed = tw.parser.parse(listing, "listing", None, {"relay.Constant": [constant]})
            np.testing.assert_array_equal(parsed["main"].body.args[1].data.numpy(), [1, 2])
        with self.assertRaises(NotImplementedError):
            tw.parser.parse(listing, init_meta_table={"relay.attrs.DenseAttrs": []})
        self.assertEqual(graph_executor.get_device(None, [tw.cpu(), tw.nd.cuda(1)]), ([tw.cpu(), tw.nd.cuda(1)], 0, [1, 0, 2, 1]))
        with self.assertRaises(ValueError):
            graph_executor.get_device(None, "cpu")
        self.assertEqual(relay.build_module.GraphExecutor.kind, "graph")

    def test_tools(self):
        from tilewright.classic.contrib import cc, utils
        temp = utils.tempdir()
        with open(temp / "a.c", "w") as file:
            file.write("int forty_two(void) { return 42; }\n")
        subprocess.run(["cc", "-fPIC", "-c", "a.c", "-o", "a.o"], cwd=temp.path, check=True)
        cc.create_staticlib(temp.relpath("a.a"), temp.relpath("a.o"))
        cc.create_shared(temp.relpath("a.so"), [temp.relpath("a.o")])
        import ctypes
        self.assertEqual(ctypes.CDLL(temp.relpath("a.so")).forty_two(), 42)
        self.assertEqual(set(temp.listdir()), {"a.c", "a.o", "a.a", "a.so"})
        self.assertIn("linux", cc.get_target_by_dump_machine("cc")())
        self.assertIsNone(cc.get_target_by_dump_machine("no-such-compiler")())
        with self.assertRaises(RuntimeError):
            cc.create_shared(temp.relpath("b.so"), [temp.relpath("none.o")])
        with utils.filelock(temp.relpath("lock")):
            self.assertTrue(os.path.exists(temp / "lock"))
        path = str(temp.path)
        del temp
        self.assertFalse(os.path.exists(path))
        with utils.TempDirectory.set_keep_for_debug():
            kept = utils.tempdir()
        path = str(kept.path)
        del kept
        self.assertTrue(os.path.exists(path))
        os.rmdir(path)

    def test_capsules_and_copies(self):
        a = tw.nd.array(X)
        b = tw.nd.from_dlpack(a.to_dlpack())
        self.assertTrue(a.same_as(b))
        b[0] = 7
        self.assertEqual(a.numpy()[0, 0], 7)
        c = tw.nd.empty(a.shape, a.dtype)
        a.copyto(c)
        np.testing.assert_array_equal(c.asnumpy(), a.numpy())
        with self.assertRaises(ValueError):
            a.copyto(3)
        with self.assertRaises(TypeError):
            a.copyto(tw.nd.empty(a.shape, "int32"))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(a)).numpy(), a.numpy())
        try:
            import torch
        except ImportError:
            return
        t = torch.arange(6, dtype=torch.float32)
        shared = tw.nd.from_dlpack(torch.utils.dlpack.to_dlpack(t))
        t[2] = 42
        self.assertEqual(shared.numpy()[2], 42)
        self.assertEqual(torch.utils.dlpack.from_dlpack(shared.to_dlpack())[2], 42)


class Tvmc(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = lambda name: os.path.join(self.folder.name, name)
        with open(self.path("model.onnx"), "wb") as file:
            file.write(model_bytes())
        np.savez(self.path("in.npz"), x=X)

    def test_python(self):
        from tilewright.classic.driver import tvmc
        model = tvmc.load(self.path("model.onnx"), shape_dict={"x": [2, 3]})
        package = tvmc.compile(model, target="llvm", package_path=self.path("model.tar"))
        result = tvmc.run(package, device="cpu", inputs={"x": X})
        np.testing.assert_allclose(result.get_output("output_0"), EXPECTED, rtol=1e-6)
        self.assertIsNone(result.times)
        self.assertIn("output_0", str(result))
        again = tvmc.TVMCPackage(package_path=self.path("model.tar"))
        self.assertEqual((again.executor_type, again.lib_name, json.loads(again.graph)["heads"] != []), ("graph", "mod.so", True))
        timed = tvmc.run(again, device="cpu", benchmark=True, repeat=2, number=2, inputs=self.path("in.npz"), profile=True)
        self.assertEqual(len(timed.times.results), 2)
        self.assertIn("mean", timed.format_times())
        self.assertIn("Duration", timed.get_profile())
        timed.save(self.path("out.npz"))
        np.testing.assert_allclose(np.load(self.path("out.npz"))["output_0"], EXPECTED, rtol=1e-6)
        self.assertEqual(tvmc.compile(model, target="llvm", desired_layout="NHWC", disabled_pass="FoldConstant", pass_context_configs=["relay.FuseOps.max_depth=1"],
                                      additional_target_options={"llvm": {"mcpu": "haswell"}}, dump_code="relay").type, "classic")
        aot = tvmc.compile(model, target="llvm", executor=relay.backend.Executor("aot"))
        np.testing.assert_allclose(tvmc.run(aot, inputs={"x": X}).outputs["output_0"], EXPECTED, rtol=1e-6)
        self.assertEqual(tvmc.frontends.get_frontend_names(), ["onnx", "relay"])
        for bad in (lambda: tvmc.load(self.path("none.onnx")), lambda: tvmc.load(self.path("x.h5")), lambda: tvmc.run(model), lambda: tvmc.run(package, device="cuda"),
                    lambda: tvmc.run(package, inputs={"y": X}), lambda: tvmc.run(package, fill_mode="sevens"), lambda: tvmc.TVMCPackage(self.path("none.tar")),
                    lambda: tvmc.compile(model, pass_context_configs=["nope=1"]), lambda: tvmc.compile(model, output_format="nope"),
                    lambda: tvmc.compile(model, desired_layout="WHAT"), lambda: tvmc.compile(model, use_vm=True), lambda: tvmc.compile(model, dump_code="ptx")):
            with self.assertRaises(tvmc.TVMCException):
                bad()
        self.assertEqual(tvmc.common.parse_shape_string("a:[1,2], b/c:[3]"), {"a": [1, 2], "b/c": [3]})
        for bad in ("a", "a:1,2", "a:[1,x]", "a:[1] nonsense"):
            with self.assertRaises(tvmc.TVMCException):
                tvmc.common.parse_shape_string(bad)

    def test_command_line(self):
        def tvmc(*arguments):
            return subprocess.run([sys.executable, "-m", "tilewright.classic.driver.tvmc", *arguments], capture_output=True, text=True, cwd=self.folder.name)

        done = tvmc("compile", "--target", "llvm", "--input-shapes", "x:[2,3]", "--output", "m.tar", "model.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = tvmc("run", "--inputs", "in.npz", "--outputs", "out.npz", "--print-time", "--print-top", "2", "m.tar")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mean (ms)", done.stdout)
        np.testing.assert_allclose(np.load(self.path("out.npz"))["output_0"], EXPECTED, rtol=1e-6)
        self.assertEqual(tvmc("--version").stdout.strip(), tw.__version__)
        for arguments, text in ((["tune", "none.onnx", "-o", "x"], "doesn't exist"), (["tune", "model.onnx"], "--output"), (["compile", "none.onnx"], "doesn't exist"), (["run", "none.tar"], "does not exist"),
                                (["compile", "--target", "vax", "model.onnx"], "'vax' names no kind of target"), (["compile", "--nonsense", "model.onnx"], "nonsense"), ([], "usage")):
            done = tvmc(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


class Modules(unittest.TestCase):
    def test_static_libraries_are_linked_in(self):
        mod, params = relay.testing.mlp.get_workload(1)
        lib = relay.build(mod, "llvm", params=params)
        module = lib.get_lib()
        self.assertTrue(module.is_dso_exportable)
        self.assertEqual(module.get_function("get_func_names")(), list(lib.function_metadata))
        self.assertTrue(module.get_function("_get_target_string")().startswith("llvm"))
        with tempfile.TemporaryDirectory() as folder:
            source, obj, out = (os.path.join(folder, name) for name in ("f.cc", "f.o", "net.so"))
            with open(source, "w", encoding="utf-8") as file:
                file.write("extern \"C\" int seventeen() { return 17; }\n")
            subprocess.run([tw.contrib.cc.get_cc(), "-c", "-fPIC", source, "-o", obj], check=True)
            static = tw.runtime.load_static_library(obj, ["seventeen"])
            self.assertEqual((static.type_key, static.format, static.get_function("get_func_names")()), ("static_library", "o", ["seventeen"]))
            module.import_module(static)
            lib.export_library(out)
            self.assertEqual(ctypes.CDLL(out).seventeen(), 17)
            run = tw.contrib.graph_executor.GraphModule(tw.runtime.load_module(out)["default"](tw.cpu()))
            run.run(data=np.ones((1, 1, 28, 28), "float32"))
            self.assertAlmostEqual(float(run.get_output(0).numpy().sum()), 1, places=5)
            with self.assertRaisesRegex(ValueError, "cannot hold a static library"):
                lib.export_library(os.path.join(folder, "net.o"))
            with self.assertRaisesRegex(ValueError, "no ELF object"):
                tw.runtime.load_static_library(source, [])

    def test_hashes_are_the_same_in_every_process(self):
        code = "from tilewright.classic import relay, ir; print(ir.structural_hash(relay.testing.mlp.get_workload(1)[0]))"
        made = {subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout for seed in ("1", "2")}
        self.assertEqual(len(made), 1)

    def test_nodes_by_key(self):
        self.assertEqual(tw.ir.make_node("relay.attrs.Conv2DAttrs", strides=[2, 2]).strides, [2, 2])


if __name__ == "__main__":
    unittest.main()
