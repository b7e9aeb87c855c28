# SPDX-License-Identifier: Apache-2.0
"""Functions and modules in both directions, arrays, executors: plain unittest and numpy."""
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest
import weakref

import numpy as np

import tilewright
from tilewright import classic as tw
from test_tilewright import B, EXPECTED, W, X, model_bytes
from tilewright.classic.contrib import cc, graph_executor, tar, utils
from tilewright.classic.contrib.debugger import debug_executor


class Functions(unittest.TestCase):
    def test_every_kind_of_value_goes_and_comes_back(self):
        echo = tw.convert(lambda *args: args[0] if len(args) == 1 else list(args))
        for value in (0, -2**63, 2**63 - 1, True, 1.5, "text", "nul\0 ü", b"raw\0", None, [1, "two", [3.0, None]], tw.cpu(0)):
            self.assertEqual(echo(value), value)
        self.assertEqual(echo(1, "a"), [1, "a"])
        self.assertEqual(echo(np.int64(4)), 4)
        self.assertEqual(echo(np.float32(0.5)), 0.5)
        for dtype in ("float32", "float64", "float16", "int8", "uint16", "int64", "bool"):
            array = np.arange(6).reshape(2, 3).astype(dtype)
            np.testing.assert_array_equal(np.asarray(echo(array)), array)
            np.testing.assert_array_equal(np.asarray(echo(array.T)), array.T)  # strides survive
        for bad in (object(), np.array(["text"]), 1j):
            with self.assertRaises(TypeError):
                echo(bad)
        with self.assertRaises(Exception):
            echo(2**70)

    def test_register_find_replace_remove(self):
        @tw.register_func("test.twice")
        def twice(x):
            return 2 * x

        self.assertEqual(tw.get_global_func("test.twice")(21), 42)
        self.assertIn("test.twice", tw.list_global_func_names())
        with self.assertRaises(tw.Error) as raised:
            tw.register_func("test.twice", lambda: 0)
        self.assertEqual(raised.exception.code, 101)
        tw.register_func("test.twice", lambda x: x, override=True)
        self.assertEqual(tw.get_global_func("test.twice")(21), 21)
        tw.remove_global_func("test.twice")
        self.assertIsNone(tw.get_global_func("test.twice", allow_missing=True))
        with self.assertRaises(ValueError):
            tw.get_global_func("test.twice")
        with self.assertRaises(tw.Error) as raised:
            tw.remove_global_func("test.twice")
        self.assertEqual(raised.exception.code, 507)

    def test_callbacks_see_the_callers_memory(self):
        fill = tw.convert(lambda out: out.__setitem__(slice(None), np.float32(7)))
        array = np.zeros(4, np.float32)
        fill(array)
        np.testing.assert_array_equal(array, np.full(4, 7, np.float32))
        apply = tw.convert(lambda f, x: f(f(x)))
        self.assertEqual(apply(lambda x: x + 1, 5), 7)

    def test_exceptions_cross_as_they_are(self):
        class Mine(Exception):
            pass

        def fails(kind):
            raise Mine("out of cheese") if kind == "mine" else KeyError("k")

        outer = tw.convert(lambda f, x: f(x))
        try:
            outer(fails, "mine")
            self.fail()
        except Mine as error:
            self.assertIn("fails", [frame.name for frame in traceback.extract_tb(error.__traceback__)])
        with self.assertRaises(KeyError):
            outer(fails, "other")
        model = tilewright.compile(model_bytes())
        with self.assertRaises(tw.Error) as raised:  # an error of ours keeps its number through a callback
            tw.convert(lambda: model(nope=X))()
        self.assertEqual(raised.exception.code, 504)
        # C++ in between is told, too: the time evaluator of a function that fails
        with self.assertRaises(Mine):
            tw.get_global_func("runtime.TimeEvaluator")(lambda: fails("mine"), 1, 1)()

    def test_nothing_leaks(self):
        class Probe:
            pass

        probe = Probe()
        alive = weakref.ref(probe)
        function = tw.convert(lambda x, kept=probe: x)
        tw.register_func("test.leak", function)
        del probe
        self.assertIsNotNone(alive())
        tw.remove_global_func("test.leak")
        del function
        gc.collect()
        self.assertIsNone(alive())
        echo, array = tw.convert(lambda x: x), np.zeros(3, np.float32)
        before = sys.getrefcount(array)
        for _ in range(100):
            echo(array), echo([array, "text", b"bytes"])
        gc.collect()
        self.assertEqual(sys.getrefcount(array), before)
        failing = tw.convert(lambda: 1 / 0)
        for _ in range(100):
            with self.assertRaises(ZeroDivisionError):
                failing()

    def test_threads_share_the_lock(self):
        total = []
        add = tw.convert(lambda x: total.append(x))
        threads = [threading.Thread(target=lambda: [add(1) for _ in range(500)]) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(total), 2000)

    def test_a_cpp_library_and_python_share_the_table(self):
        if not shutil.which("g++"):
            self.skipTest("no g++ to build the library with")
        package = os.path.dirname(tilewright.__file__)
        include = os.path.join(package, "include")
        if not os.path.isdir(include):
            include = os.environ.get("TW_INCLUDE", "")
        if not include:
            self.skipTest("the headers are not installed beside the package")
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "ext.cc")
            with open(source, "w") as file:
                file.write('''#include <tilewright/function.h>
using namespace tilewright;
extern "C" __attribute__((visibility("default"))) void setup() {
  register_function("test.cpp_add", [](Args a) -> Value { return a[0].integer() + a[1].integer(); }, true);
  register_function("test.cpp_calls", [](Args a) -> Value { return a[0].function()(a[1], 10).integer() + 1; }, true);
  register_function("test.cpp_throws", [](Args) -> Value { throw std::runtime_error("from C++"); }, true);
  register_function("test.cpp_global", [](Args) -> Value { return global_function("test.python")("hello").string(); }, true);
}''')
            library = os.path.join(folder, "libext.so")
            runtime = os.path.join(package, "libtilewright_runtime.so.0")
            subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-I", include, source, runtime, "-o", library, f"-Wl,-rpath,{package}"], check=True)
            import ctypes
            ctypes.CDLL(library).setup()
        self.assertEqual(tw.get_global_func("test.cpp_add")(2, 3), 5)
        self.assertEqual(tw.get_global_func("test.cpp_calls")(lambda a, b: a * b, 4), 41)
        with self.assertRaisesRegex(tw.Error, "from C\\+\\+"):
            tw.get_global_func("test.cpp_throws")()
        tw.register_func("test.python", lambda text: text.upper(), override=True)
        self.assertEqual(tw.get_global_func("test.cpp_global")(), "HELLO")
        with self.assertRaises(ZeroDivisionError):  # Python, C++, Python
            tw.get_global_func("test.cpp_calls")(lambda a, b: a / 0, 4)
        for name in ("add", "calls", "throws", "global"):
            tw.remove_global_func(f"test.cpp_{name}")
        tw.remove_global_func("test.python")


class Arrays(unittest.TestCase):
    def test_no_copies(self):
        source = np.arange(4, dtype=np.float32)
        a = tw.nd.from_numpy(source)
        np.asarray(a)[1] = 50
        self.assertEqual(source[1], 50)
        np.from_dlpack(a)[2] = 60
        self.assertEqual(source[2], 60)
        self.assertEqual(np.asarray(tw.nd.from_dlpack(source)).ctypes.data, source.ctypes.data)
        self.assertNotEqual(a.numpy().ctypes.data, source.ctypes.data)
        copy = tw.nd.array(source)
        source[0] = -1
        self.assertEqual(copy.numpy()[0], 0)

    def test_classic_calls(self):
        a = tw.nd.empty((2, 3), "int32")
        self.assertEqual((a.shape, a.dtype, a.device), ((2, 3), "int32", tw.cpu(0)))
        a.copyfrom(np.ones((2, 3), np.int32))
        b = a.copyto(tw.cpu())
        a[0, 0] = 9
        self.assertEqual(b.numpy().sum(), 6)
        with self.assertRaises(ValueError):
            a.copyfrom(np.ones(2, np.int32))
        with self.assertRaises(TypeError):
            a.copyfrom(np.ones((2, 3), np.float32))
        with self.assertRaises(ValueError):
            tw.device("vax", 0)
        self.assertEqual(tw.device("llvm -mcpu=x", 0), tw.cpu())
        params = {"b": np.arange(3.0), "a": tw.nd.array(np.ones((2, 2), np.float32)), "s": np.array(4)}
        again = tw.runtime.load_param_dict(tw.runtime.save_param_dict(params))
        self.assertEqual(list(again), list(params))
        for name in params:
            np.testing.assert_array_equal(np.asarray(again[name]), np.asarray(params[name]))
        with self.assertRaises(tw.Error):
            tw.runtime.load_param_dict(b"nonsense")


class Executors(unittest.TestCase):
    def setUp(self):
        self.lib = tw.relay.build(tw.relay.frontend.from_onnx(model_bytes())[0], "llvm")

    def test_every_function_of_a_graph_module(self):
        module = graph_executor.GraphModule(self.lib["default"](tw.cpu(0)))
        self.assertEqual((module.get_num_inputs(), module.get_num_outputs()), (1, 1))
        self.assertEqual((module.get_input_index("x"), module.get_input_index("z"), module.get_output_index("y")), (0, -1, 0))
        module.set_input("x", X)
        module.run()
        out = module.get_output(0)
        np.testing.assert_allclose(out.numpy(), EXPECTED, rtol=1e-6)
        target = tw.nd.empty((2, 4))
        self.assertIs(module.get_output(0, target), target)
        np.testing.assert_allclose(target.numpy(), EXPECTED, rtol=1e-6)
        module.run(x=2 * X)
        np.testing.assert_allclose(np.asarray(out), np.maximum(2 * X @ W + B, 0), rtol=1e-6)  # a view
        module.set_input(x=X, unrelated=X)  # unknown keywords are ignored
        with self.assertRaises(tw.Error):
            module.set_input("unrelated", X)
        bound, result = np.array(X), np.zeros((2, 4), np.float32)
        module.set_input_zero_copy("x", bound)
        module.set_output_zero_copy(0, result)
        bound[:] = 3 * X
        module.run()
        np.testing.assert_allclose(result, np.maximum(3 * X @ W + B, 0), rtol=1e-6)
        module.set_input("x", X)
        np.testing.assert_array_equal(module.get_input("x").numpy(), X)
        self.assertIn("mean", str(module.benchmark(tw.cpu(), repeat=2, number=2)))
        self.assertGreater(module.benchmark(end_to_end=True, repeat=1, number=1, x=X).mean, 0)
        timer = module.module.time_evaluator("run", tw.cpu(), number=3, repeat=4)
        self.assertEqual(len(timer().results), 4)
        calls = []
        tw.register_func("test.before", lambda *args: calls.append(args))
        self.assertEqual(len(module.module.time_evaluator("run", tw.cpu(), number=1, repeat=3, f_preproc="test.before")().results), 3)
        self.assertEqual(calls, [()] * 3)
        report = module.profile(repeats=2)
        self.assertIn("traceEvents", json.loads(report.trace()))
        self.assertEqual(set(json.loads(report.json())), {"calls", "device_metrics", "configuration"})
        again = type(report).from_json(report.json())
        self.assertEqual((again.calls[0]["Name"], again.calls[0]["Duration (us)"]), (report.calls[0]["Name"], report.calls[0]["Duration (us)"]))
        self.assertIn("Total", str(report))
        self.assertEqual(len(report.csv().splitlines()), 1 + len(report.calls))
        with self.assertRaises(ValueError):
            type(report).from_json("{}")

    def test_params_replace_weights(self):
        module = graph_executor.GraphModule(self.lib["default"](tw.cpu(0)))
        other = graph_executor.GraphModule(self.lib["default"](tw.cpu(0)))
        params = self.lib.get_params()
        zeros = {name: np.zeros_like(np.asarray(value)) for name, value in params.items()}
        module.set_input("x", X)
        module.set_input(**zeros)
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), np.zeros((2, 4)))
        module.load_params(tw.relay.save_param_dict(params))
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
        module.load_params(tw.relay.save_param_dict(zeros))
        other.share_params(module, tw.relay.save_param_dict(zeros))
        other.run(x=X)
        np.testing.assert_array_equal(other.get_output(0).numpy(), np.zeros((2, 4)))
        name = next(iter(params))
        with self.assertRaises(tw.Error) as raised:
            module.load_params(tw.relay.save_param_dict({name: np.zeros(1, np.float32)}))
        self.assertEqual(raised.exception.code, 505)

    def test_the_debug_executor(self):
        module = debug_executor.create(self.lib.get_graph_json(), self.lib, tw.cpu(0))
        module.set_input("x", X)
        with __import__("contextlib").redirect_stdout(__import__("io").StringIO()) as table:
            module.run()
        self.assertIn("relu", table.getvalue())
        np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
        files = set(os.listdir(module.dump_path))
        self.assertEqual(files, {"_tvmdbg_graph_dump.json", "output_tensors.params", "_tvmdbg_execution_trace.json"})
        last = module.nodes[-1]["name"]
        np.testing.assert_allclose(module.debug_get_output(last).numpy().reshape(2, 4), EXPECTED, rtol=1e-6)
        self.assertEqual(len(module.run_individual(2, 3)), len(module.nodes))
        with open(os.path.join(module.dump_path, "output_tensors.params"), "rb") as file:
            dumped = tw.runtime.load_param_dict(file.read())
        np.testing.assert_allclose(dumped[f"{last}____0"].numpy().reshape(2, 4), EXPECTED, rtol=1e-6)
        with open(os.path.join(module.dump_path, "_tvmdbg_execution_trace.json")) as file:
            trace = json.load(file)
        self.assertEqual({e["ph"] for e in trace["traceEvents"]}, {"B", "E"})
        self.assertEqual(len(trace["traceEvents"]), 2 * sum(n["op"] != "null" for n in module.nodes))
        lines = [re.split("  +", line) for line in module.debug_datum.get_debug_result().split("\n")]
        self.assertEqual((lines[0][:4], lines[-1][0], lines[0][-1]), (["Node Name", "Ops", "Time(us)", "Time(%)"], "Total_time", ""))
        self.assertEqual(len(module.run_individual_node(len(module.nodes) - 1, number=2, repeat=3).results), 3)
        np.testing.assert_array_equal(module.get_input("x").numpy(), X)
        with self.assertRaises(NotImplementedError):
            graph_executor.GraphModule(self.lib["default"](tw.cpu())).debug_get_output(0)
        with self.assertRaises(ValueError):
            debug_executor.create('{"nodes": []}', self.lib, tw.cpu())
        path = module.dump_path
        module.exit()
        self.assertFalse(os.path.exists(path))
        with tempfile.TemporaryDirectory() as folder, __import__("contextlib").redirect_stdout(__import__("io").StringIO()):
            module = debug_executor.create(self.lib.get_graph_json(), self.lib, tw.cpu(0), dump_root=folder)
            module.run(x=X)
            self.assertEqual(os.listdir(folder), ["_tvmdbg_device_CPU_0"])

    def test_the_factory_and_its_files(self):
        graph = json.loads(self.lib.get_graph_json())
        self.assertEqual({"nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"}, set(graph))
        self.assertEqual(graph["nodes"][0]["name"], "x")
        temp = utils.tempdir()
        so, archive = temp.relpath("net.so"), temp.relpath("net.tar")
        self.lib.export_library(so)
        self.lib.export_library(archive)
        self.lib.export_library(temp / "linked.so", cc.create_shared)
        self.lib.export_library(temp / "other.tar", tar.tar)
        self.lib.export_library(temp / "net.o")
        self.lib.export_library(temp / "bundle.tar", lambda out, objects: tar.tar(out, objects))
        for path in (so, archive, temp / "linked.so", temp / "other.tar", temp / "net.o", temp / "bundle.tar"):
            module = graph_executor.GraphModule(tw.runtime.load_module(path)["default"](tw.cpu(0)))
            module.run(x=X)
            np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-6)
        loaded = tw.runtime.load_module(so)
        self.assertEqual(json.loads(loaded["get_graph_json"]()), graph)
        self.assertEqual(loaded["remove_params"]().type_key, "library")
        self.assertEqual(set(dict(loaded["get_graph_params"]())), set(self.lib.get_params()))
        self.assertEqual(graph_executor.create(self.lib.get_graph_json(), loaded, tw.cpu(0)).get_num_outputs(), 1)
        with self.assertRaises(ValueError):
            graph_executor.create('{"nodes": []}', loaded, tw.cpu(0))
        with self.assertRaises(AttributeError):
            loaded["no_such_function"]
        with self.assertRaises(RuntimeError):
            self.lib.export_library(temp / "fails.so", lambda *a, **k: (_ for _ in ()).throw(RuntimeError("no linker")))
        self.assertFalse(os.path.exists(temp / "fails.so"))
        self.assertEqual([f for f in os.listdir(temp.path) if f.startswith(".")], [])
        with self.assertRaises(tw.Error):
            self.lib.export_library("/nonexistent/net.so")

    def test_user_modules_travel_with_the_library(self):
        def make(factor):
            return tw.runtime.create_module("test_py", {"scale": lambda x: factor * x}, save=lambda: str(factor).encode())

        tw.register_func("runtime.module.loadbinary_test_py", lambda data: make(int(data)).__tw_handle__)
        try:
            module = make(3)
            self.assertEqual((module.type_key, module["scale"](5)), ("test_py", 15))
            child = make(11)
            module.import_module(child)
            with self.assertRaises(tw.Error):
                child.import_module(module)
            self.lib.import_module(module)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "net.so")
                self.lib.export_library(path)
                loaded = tw.runtime.load_module(path)
            self.assertEqual(loaded.get_function("scale", query_imports=True)(5), 15)
            self.assertEqual(loaded.imported_modules[0].imported_modules[0]["scale"](2), 22)
            self.assertFalse(loaded.implements_function("scale"))
        finally:
            tw.remove_global_func("runtime.module.loadbinary_test_py")
        unsaved = tw.runtime.create_module("test_unsaved", {})
        lib = tw.relay.build(tw.relay.frontend.from_onnx(model_bytes())[0], "llvm")
        lib.import_module(unsaved)
        with self.assertRaises(tw.Error):
            lib.export_library("/tmp/never.so")

    def test_loaders_by_format(self):
        tw.register_func("runtime.module.loadfile_pymod", lambda path, fmt: tw.runtime.create_module("file", {"path": lambda: path}))
        try:
            self.assertEqual(tw.runtime.load_module("a.pymod")["path"](), "a.pymod")
        finally:
            tw.remove_global_func("runtime.module.loadfile_pymod")
        with self.assertRaises(tw.Error) as raised:
            tw.runtime.load_module("a.pymod")
        self.assertEqual(raised.exception.code, 507)


if __name__ == "__main__":
    unittest.main()
