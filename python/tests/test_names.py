# SPDX-License-Identifier: Apache-2.0
"""The classic interface's names: all can be imported, those that are not here say what to use, --check lists them; the pytest plugin; the first
script of the classic tutorials."""
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

import tilewright as tw
from test_tilewright import model_bytes
from tilewright import as_tvm
from tilewright.classic import classic_names

HAVE_PYTEST = importlib.util.find_spec("pytest") is not None


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def run_python(self, *arguments):
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=self.folder.name)


class Names(Files):
    def test_an_imported_module_does_not_hide_a_function_of_its_name(self):
        importlib.import_module("tvm.relay.quantize.quantize")
        self.assertTrue(callable(importlib.import_module("tvm.relay.quantize").quantize))

    def test_every_name_imports(self):
        for module, names in classic_names.modules().items():
            if module == "tvm.testing.plugin" and not HAVE_PYTEST:
                continue
            found = importlib.import_module(module)
            for name in names:
                if (module, name) == ("tvm.testing", "plugin") and not HAVE_PYTEST:
                    continue
                with self.subTest(module=module, name=name):
                    value = getattr(found, name)
                    if isinstance(value, as_tvm._Absent):
                        with self.assertRaisesRegex(NotImplementedError, "does not exist in Tilewright"):
                            value()
        self.assertGreater(len(classic_names.modules()), 200)

    def test_absent_names_do_not_disturb(self):
        import tvm
        from tvm.relay.frontend import from_tflite
        from tvm.te import Tensor
        self.assertFalse(isinstance(3, Tensor))
        self.assertIsNotNone(Tensor | None)
        with self.assertRaisesRegex(NotImplementedError, "export the model to ONNX"):
            from_tflite(None)
        with self.assertRaises(NotImplementedError):
            exec("class Mine(base): pass", {"base": tvm.relay.frontend.tensorflow.GraphProto})
        with self.assertRaises(AttributeError):
            tvm.relay.nonsense
        with self.assertRaises(ModuleNotFoundError):
            importlib.import_module("tvm.relay.nonsense")

    def test_check(self):
        script = self.write("script.py", """
            import tvm
            from tvm import relay, te
            from tvm.relay.frontend import from_onnx, from_keras
            x = relay.var("x", shape=(2,))
            y = tvm.tir.StmtSRef()
            z = tvm.auto_scheduler.TuningOptions()
            print(relay.nn.relu(x).op.name, relay.nonsense)
            """)
        done = self.run_python("-m", "tilewright.as_tvm", "--check", script)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = [line for line in done.stdout.splitlines() if ":3:" not in line]  # the import of te itself
        self.assertEqual([line.split(":")[1] for line in lines], ["4", "6", "7", "8"], done.stdout)
        for line, word in zip(lines, ("from_keras", "tir.StmtSRef", "cost model", "relay.nonsense")):
            self.assertIn(word, line)
        fine = self.write("fine.py", "from tvm import relay\nrelay.nn.relu(relay.var('x'))\n")
        done = self.run_python("-m", "tilewright.as_tvm", "--check", fine)
        self.assertEqual((done.returncode, "every name" in done.stdout), (0, True), done.stdout + done.stderr)
        self.assertEqual(self.run_python("-m", "tilewright.as_tvm", "--check", "none.py").returncode, 2)


class Plugin(Files):
    TEST = """
        import pytest
        import tvm
        import tvm.testing

        size = tvm.testing.parameter(1, 16)
        named = tvm.testing.parameter(by_dict={"first": 1, "second": 2})
        m, n = tvm.testing.parameters((1, 2), (3, 4))
        calls = []

        @tvm.testing.fixture
        def doubled(size):
            return 2 * size

        @tvm.testing.fixture(cache_return_value=True)
        def expensive(size):
            calls.append(size)
            return [size]

        def test_target(target, dev):
            assert target == "llvm" and dev == tvm.cpu(0)

        def test_sizes(size, doubled):
            assert doubled == 2 * size

        def test_pairs(m, n):
            assert n == m + 1

        def test_named(named):
            assert named in (1, 2)

        @pytest.mark.parametrize("again", [1, 2])
        def test_cached(expensive, size, again):
            expensive.append(0)
            assert expensive == [size, 0] and calls.count(size) == 1

        @tvm.testing.parametrize_targets("llvm", "cuda")
        def test_targets(target, dev):
            assert target == "llvm"

        @tvm.testing.exclude_targets("llvm")
        def test_excluded(target):
            raise AssertionError

        @tvm.testing.known_failing_targets("llvm")
        def test_failing(target):
            raise AssertionError

        @tvm.testing.uses_gpu
        def test_marked():
            pass

        @tvm.testing.requires_llvm
        def test_required():
            pass

        @tvm.testing.requires_cuda
        def test_not_here():
            raise AssertionError

        @pytest.mark.parametrize("kind", ["a", pytest.param("b", marks=tvm.testing.requires_cuda()), pytest.param("c", marks=tvm.testing.requires_llvm.marks())])
        def test_marks(kind):
            assert kind in "ac"

        class TestClass:
            wide = tvm.testing.parameter(3, 5)

            def test_wide(self, wide, target):
                assert wide in (3, 5)

        if __name__ == "__main__":
            tvm.testing.main()
        """

    @unittest.skipUnless(HAVE_PYTEST, "pytest is not installed: ./dev setup installs what requirements.lock has")
    def test_fixtures_and_marks(self):
        path = self.write("test_mine.py", self.TEST)
        for command in (("-m", "tilewright.as_tvm", path), ("-m", "tilewright.as_tvm", "-m", "pytest", "-q", path), ("-m", "pytest", "-p", "tilewright.as_tvm", path)):
            done = self.run_python(*command)
            self.assertIn("18 passed, 4 skipped, 1 xfailed", done.stdout, done.stdout + done.stderr)
        self.write("conftest.py", "import tilewright.as_tvm\n")
        self.assertIn("18 passed, 4 skipped, 1 xfailed", self.run_python("-m", "pytest", path).stdout)
        os.remove(os.path.join(self.folder.name, "conftest.py"))
        alone = self.write("test_alone.py", "import tilewright.as_tvm\nimport tvm, pytest, sys\ndef test_it(target, dev):\n    assert dev == tvm.cpu(0)\n"
                           "if __name__ == '__main__':\n    sys.exit(pytest.main([__file__]))\n")
        for command in (("-m", "pytest", alone), ("-m", "tilewright.as_tvm", alone)):
            self.assertIn("1 passed", self.run_python(*command).stdout)
        listed = self.run_python("-m", "tilewright.as_tvm", "-m", "pytest", "--collect-only", "-q", path).stdout
        for name in ("test_target[llvm]", "test_sizes[16]", "test_pairs[3-4]", "test_named[second]", "test_targets[cuda]", "test_wide[3-llvm]"):
            self.assertIn(name, listed)


class FirstScript(Files):
    def test_onnx_from_import_to_reload(self):
        import onnx
        import tvm
        from tvm import relay
        from tvm.contrib import graph_executor
        model = onnx.load_from_string(model_bytes())
        for node in model.graph.node:
            node.name = ""
        folder = self.folder.name
        path = os.path.join(folder, "renamed.onnx")
        mod, params = relay.frontend.from_onnx(model, {"x": (2, 3)}, export_node_renamed_model_path=path)
        relay.frontend.from_onnx(model, {"x": (2, 3)}, export_node_renamed_model_path=folder)
        renamed = onnx.load(path)
        onnx.checker.check_model(renamed)
        self.assertEqual(renamed, onnx.load(os.path.join(folder, "model.onnx")))
        counts = {}
        for node in renamed.graph.node:
            self.assertEqual(node.name, f"{node.op_type}_{counts.get(node.op_type, 0)}")
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
            node.name = ""
        for node in model.graph.node:
            node.ClearField("name")
        for node in renamed.graph.node:
            node.ClearField("name")
        self.assertEqual(renamed, model)
        with self.assertRaises(tw.Error):
            relay.frontend.from_onnx(model, {"x": (2, 3)}, export_node_renamed_model_path=os.path.join(folder, "none", "x.onnx"))
        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(mod, target="llvm", params=params)
        lib.export_library(os.path.join(folder, "net.so"))
        with open(os.path.join(folder, "net.params"), "wb") as file:
            file.write(relay.save_param_dict(lib.get_params()))
        self.assertTrue(lib.get_executor_config())
        module = graph_executor.GraphModule(tvm.runtime.load_module(os.path.join(folder, "net.so"))["default"](tvm.cpu()))
        module.set_input("x", np.ones((2, 3), "float64"))
        module.run()
        self.assertEqual(module.get_output(0).numpy().shape, (2, 4))


if __name__ == "__main__":
    unittest.main()
