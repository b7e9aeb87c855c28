# SPDX-License-Identifier: Apache-2.0
"""Scripts of the classic stack: pass contexts, instruments, targets, Relay built in Python, and whole scripts that say `import tvm`."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

from tilewright import classic as tw
from test_tilewright import B, EXPECTED, W, X, model_bytes
from tilewright.classic import relay, transform
from tilewright.classic.contrib import graph_executor
from tilewright.classic.ir.instrument import PassPrintingInstrument, PassTimingInstrument, pass_instrument


def run(lib, **inputs):
    module = graph_executor.GraphModule(lib["default"](tw.cpu()))
    module.run(**inputs)
    return module.get_output(0).numpy()


class PassContexts(unittest.TestCase):
    def test_config_is_typed(self):
        keys = transform.PassContext.list_configs()
        self.assertGreaterEqual(len(keys), 40)
        for key, info in keys.items():
            good = {"bool": True, "int": 3, "float": 0.5, "string": "x", "list of strings": [], "object": {}}[info["kind"]]
            transform.PassContext(config={key: good})
            with self.assertRaises((tw.Error, AttributeError, TypeError)):
                transform.PassContext(config={key: "x" if info["kind"] == "float" else 2.5})
        transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": True}, "tir.noalias": 1,
                                      "tir.add_lower_pass": [(1, print)]})
        for bad in ({"relay.FuseOps.max_dept": 1}, {"tir.UnrollLoop": {"auto_max_stp": 1}}, {"tir.UnrollLoop": {"auto_max_step": "x"}}):
            with self.assertRaises((tw.Error, AttributeError)):
                transform.PassContext(config=bad)
        with self.assertRaises(TypeError):
            transform.PassContext(required_pass="FuseOps")

    def test_contexts_nest_and_reach_the_build(self):
        mod = relay.frontend.from_onnx(model_bytes())[0]
        self.assertEqual(transform.PassContext.current().opt_level, 2)
        with transform.PassContext(opt_level=0):
            with transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"], required_pass=["SimplifyExpr"]):
                self.assertEqual(transform.PassContext.current().opt_level, 3)
                records = {name: (ran, why) for name, ran, _, _, why in relay.build(mod, "llvm").pass_records}
            self.assertEqual(transform.PassContext.current().opt_level, 0)
        self.assertEqual(records["FoldConstant"], (False, "disabled"))
        self.assertTrue(records["SimplifyExpr"][0])
        with transform.PassContext(disabled_pass=["NoSuchPass"]), self.assertRaises(tw.Error) as raised:
            relay.build(mod, "llvm")
        self.assertEqual(raised.exception.code, 305)
        with transform.PassContext(config={"relay.FuseOps.max_depth": 1}):
            kernels = len(relay.build(mod, "llvm")._built.kernels)
        self.assertGreater(kernels, len(relay.build(mod, "llvm")._built.kernels))

    def test_passes_by_name(self):
        arguments = {"AnnotateTarget": ["unit"], "InlineCompilerFunctionsBoundTo": [[]], "ConvertLayout": [{"nn.conv2d": ["NHWC", "default"]}], "DenseToSparse": [["w"], [[3, 16, 1, 3, 3]]], "SimplifyFCTranspose": [["w"]],
                     "Conv2dToSparse": [["w"], [[3, 16, 3, 3]], "NHWC", 1], "Conv2dToSparse2": ["NHWC", 1, (16, 1), 0.5]}
        for name in transform.pass_names():
            made = getattr(relay.transform, name)(*arguments.get(name, []))
            self.assertEqual(made.info.name, name)
        with self.assertRaisesRegex(AttributeError, "FoldConstant"):
            relay.transform.FoldConstnt
        x = relay.var("x", shape=(4,))
        y = relay.add(x, relay.multiply(relay.const(2.0), relay.const(3.0)))
        mod = tw.IRModule.from_expr(relay.Function([x], y))
        folded = relay.transform.FoldConstant()(mod)
        self.assertIn("multiply", mod.astext())
        self.assertNotIn("multiply", folded.astext())
        seq = tw.transform.Sequential([relay.transform.FoldConstant(), relay.transform.FuseOps()])
        with transform.PassContext(opt_level=3, trace=True) as context:
            fused = seq(mod)
        self.assertIn("Primitive", fused.astext())
        self.assertEqual(context.trace, ["sequential", "FoldConstant", "FuseOps"])
        with transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
            self.assertIn("multiply", seq(mod).astext())
        with self.assertRaises(ValueError), transform.PassContext(disabled_pass=["Nothing"]):
            seq(mod)

    def test_passes_written_in_python(self):
        seen = []

        @transform.module_pass(opt_level=1, name="Look")
        def look(mod, ctx):
            seen.append(ctx.opt_level)
            return mod

        @relay.transform.function_pass(opt_level=1)
        class Replace:
            def __init__(self, function):
                self.function = function

            def transform_function(self, func, mod, ctx):
                return self.function

        x = relay.var("x", shape=(3,))
        mod = tw.IRModule.from_expr(relay.Function([x], relay.add(x, x)))
        other = relay.Function([x], relay.nn.relu(x))
        replace = Replace(other)
        self.assertEqual(replace.info.name, "Replace")
        with transform.PassContext(opt_level=3):
            out = transform.Sequential([look, replace])(mod)
        self.assertIn("nn.relu", out.astext())
        self.assertIn("add", mod.astext())
        self.assertEqual(seen, [3])
        with transform.PassContext(opt_level=0):
            self.assertEqual(transform.Sequential([look, replace])(mod), mod)

        @transform.module_pass(opt_level=0)
        def fails(mod, ctx):
            raise KeyError("inside")

        with self.assertRaises(KeyError):
            fails(mod)
        with self.assertRaises(TypeError):
            transform.module_pass(lambda mod, ctx: None, opt_level=0)(mod)
        with self.assertRaises(ValueError):
            transform.module_pass(lambda mod, ctx: mod)


class Instruments(unittest.TestCase):
    def test_hooks_are_called_around_every_pass_of_a_build(self):
        calls = []

        @pass_instrument
        class Recorder:
            def enter_pass_ctx(self):
                calls.append("enter")

            def exit_pass_ctx(self):
                calls.append("exit")

            def should_run(self, mod, info):
                return info.name != "SimplifyExpr"

            def run_before_pass(self, mod, info):
                calls.append(("before", info.name, "@main" in mod.astext()))

            def run_after_pass(self, mod, info):
                calls.append(("after", info.name, "@main" in mod.astext()))

        with transform.PassContext(opt_level=3, instruments=[Recorder()]):
            lib = relay.build(relay.frontend.from_onnx(model_bytes())[0], "llvm")
        np.testing.assert_allclose(run(lib, x=X), EXPECTED, rtol=1e-6)
        self.assertEqual((calls[0], calls[-1]), ("enter", "exit"))
        self.assertIn(("before", "FuseOps", True), calls)
        self.assertIn(("after", "FuseOps", True), calls)
        self.assertFalse([c for c in calls if c[1] == "SimplifyExpr"])

    def test_timing_and_printing(self):
        timing = PassTimingInstrument()
        printing = PassPrintingInstrument(print_before_pass_names=["FuseOps"], print_after_pass_names=["FuseOps"])
        out = io.StringIO()
        with contextlib.redirect_stdout(out), transform.PassContext(opt_level=3, instruments=[timing, printing]):
            relay.build(relay.frontend.from_onnx(model_bytes())[0], "llvm")
            report = timing.render()
        self.assertRegex(report, r"FuseOps: \d+us \[\d+us\] \(.*%\)")
        self.assertEqual(timing.render(), "")
        self.assertIn("Print IR before: FuseOps", out.getvalue())
        self.assertIn("Print IR after: FuseOps", out.getvalue())

    def test_exceptions_come_out_as_they_are(self):
        class Failing(tw.ir.instrument.PassInstrument):
            def run_before_pass(self, mod, info):
                raise ZeroDivisionError("in an instrument")

        with self.assertRaises(ZeroDivisionError), transform.PassContext(instruments=[Failing()]):
            relay.build(relay.frontend.from_onnx(model_bytes())[0], "llvm")
        left = []

        class Entered(tw.ir.instrument.PassInstrument):
            def exit_pass_ctx(self):
                left.append("exit")

        class Refuses(tw.ir.instrument.PassInstrument):
            def enter_pass_ctx(self):
                raise ValueError("no entry")

        with self.assertRaises(ValueError):
            with transform.PassContext(instruments=[Entered(), Refuses()]):
                self.fail()
        self.assertEqual(left, ["exit"])
        self.assertEqual(transform.PassContext.current().instruments, [])


class Targets(unittest.TestCase):
    def test_every_form_is_the_same_target(self):
        forms = ["llvm -mcpu=haswell -mattr=+avx2,+fma", {"kind": "llvm", "mcpu": "haswell", "mattr": ["+avx2", "+fma"]},
                 '{"kind": "llvm", "mcpu": "haswell", "mattr": ["+avx2", "+fma"]}']
        self.assertEqual(len({str(tw.target.Target(f)) for f in forms}), 1)
        target = tw.target.Target(forms[0], host="llvm")
        self.assertEqual((target.kind.name, target.mcpu, target.mattr), ("llvm", "haswell", ["+avx2", "+fma"]))
        self.assertEqual(tw.target.Target(str(target)), tw.target.Target(forms[1]))
        self.assertEqual(tw.target.Target(target.export()).host, tw.target.Target("llvm"))
        with tw.target.Target("llvm -mcpu=haswell"):
            lib = relay.build(relay.frontend.from_onnx(model_bytes())[0])
        self.assertIn("haswell", lib._built.target)
        self.assertIsNone(tw.target.Target.current())
        for form in ({"cpu": "llvm"}, ["llvm"], tw.target.Target("llvm")):
            np.testing.assert_allclose(run(relay.build(relay.frontend.from_onnx(model_bytes())[0], form), x=X), EXPECTED, rtol=1e-6)

    def test_executor_and_runtime_options(self):
        lib = relay.build(relay.frontend.from_onnx(model_bytes())[0], "llvm", executor=relay.backend.Executor("graph", {"link-params": True}),
                          runtime=relay.backend.Runtime("cpp"), mod_name="small")
        self.assertEqual(lib.libmod_name, "small")
        self.assertEqual(lib["small"](tw.cpu()).type_key, "GraphExecutor")
        self.assertFalse(relay.backend.Executor("graph")["link-params"])
        for bad in (lambda: relay.backend.Executor("graf"), lambda: relay.backend.Executor("graph", {"link-param": True}),
                    lambda: relay.backend.Executor("graph", {"link-params": "yes"}), lambda: relay.backend.Runtime("rust")):
            with self.assertRaises((ValueError, TypeError)):
                bad()
        workspace = lib.function_metadata["__tvm_main__"].io_sizes[lib.target[0]]
        self.assertEqual(workspace, 4 * (6 + 8))


class Relay(unittest.TestCase):
    def test_expressions_become_modules(self):
        x, w, b = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)), relay.var("b", shape=(4,))
        func = relay.Function([x, w, b], relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b)))
        mod = tw.IRModule.from_expr(func)
        lib = relay.build(mod, "llvm", params={"w": np.ascontiguousarray(W.T), "b": B})
        np.testing.assert_allclose(run(lib, x=X), EXPECTED, rtol=1e-6)
        np.testing.assert_allclose(run(relay.build(mod, "llvm"), x=X, w=np.ascontiguousarray(W.T), b=B), EXPECTED, rtol=1e-6)
        bound = relay.Function([x], relay.bind(func.body, {w: relay.const(np.ascontiguousarray(W.T)), "b": relay.const(B)}))
        np.testing.assert_allclose(run(relay.build(tw.IRModule.from_expr(bound), "llvm"), x=X), EXPECTED, rtol=1e-6)
        self.assertEqual(relay.nn.dense(x, w).checked_type, relay.TensorType((2, 4), "float32"))
        self.assertEqual(tw.IRModule.from_text(mod.astext()), mod)
        parts = relay.split(x, 2, axis=0)
        joined = relay.concatenate([parts[1] + 1.0, -parts[0] / 2.0], axis=0)
        got = run(relay.build(tw.IRModule.from_expr(relay.Function([x], joined)), "llvm"), x=X)
        np.testing.assert_allclose(got, np.concatenate([X[1:] + 1, -X[:1] / 2]), rtol=1e-6)
        with self.assertRaises(tw.Error):
            relay.transform.InferType()(tw.IRModule.from_expr(relay.Function([x, w], relay.add(x, w))))
        with self.assertRaises(AttributeError):
            relay.nn.conv7d
        with self.assertRaises(TypeError):
            relay.nn.dense(x)
        with self.assertRaises(TypeError):
            relay.nn.relu(x, strides=2)
        evaluate = relay.create_executor("graph", mod, tw.cpu(), "llvm").evaluate()
        np.testing.assert_allclose(evaluate(X, np.ascontiguousarray(W.T), B).numpy(), EXPECTED, rtol=1e-6)

    def test_weights_as_parameters(self):
        mod, params = relay.frontend.from_onnx(model_bytes(), freeze_params=False)
        self.assertEqual(set(params), {"w", "b"})
        np.testing.assert_array_equal(params["w"].numpy(), W)
        np.testing.assert_allclose(run(relay.build(mod, "llvm", params=params), x=X), EXPECTED, rtol=1e-6)
        np.testing.assert_allclose(run(relay.build(mod, "llvm"), x=X, w=W, b=B), EXPECTED, rtol=1e-6)
        mod, params = relay.optimize(mod, "llvm", params)
        self.assertIn("Primitive", mod.astext())

    def test_testing_networks(self):
        nets = relay.testing
        for workload, shape in ((nets.mlp.get_workload(2), (2, 10)),
                                (nets.resnet.get_workload(1, 10, 8, (3, 28, 28)), (1, 10)),
                                (nets.mobilenet.get_workload(1, 7, (3, 32, 32)), (1, 7)),
                                (nets.squeezenet.get_workload(1, 5, image_shape=(3, 64, 64)), (1, 5))):
            mod, params = workload
            lib = relay.build(mod, "llvm", params=params)
            module = graph_executor.GraphModule(lib["default"](tw.cpu()))
            shapes, _ = module.get_input_info()
            self.assertEqual(list(shapes), ["data"])
            module.run(data=np.random.default_rng(0).standard_normal(shapes["data"], dtype=np.float32))
            out = module.get_output(0).numpy()
            self.assertEqual(out.shape, shape)
            np.testing.assert_allclose(out.sum(1), 1, rtol=1e-5)
        # Channels last: the same network, whose weights and pictures are turned.
        pairs = [[nets.resnet.get_net(1, 4, 8, shape, layout) for shape, layout in (((3, 28, 28), "NCHW"), ((28, 28, 3), "NHWC"))],
                 [nets.mobilenet.mobile_net(4, shape, alpha=0.25, is_shallow=True, layout=layout) for shape, layout in (((1, 3, 32, 32), "NCHW"), ((1, 32, 32, 3), "NHWC"))]]
        for first, last in pairs:
            (mod, params), (turned, _) = nets.create_workload(first), nets.create_workload(last)
            picture = np.random.default_rng(0).standard_normal(mod["main"].params[0].checked_type.concrete_shape, dtype=np.float32)
            weights = {name: value.numpy() for name, value in params.items()}
            weights = {name: w.transpose(2, 3, *((0, 1) if "depthwise" in name else (1, 0))) if w.ndim == 4 else w for name, w in weights.items()}
            want = run(relay.build(mod, "llvm", params=params), data=picture)
            np.testing.assert_allclose(run(relay.build(turned, "llvm", params=weights), data=np.ascontiguousarray(picture.transpose(0, 2, 3, 1))), want, rtol=1e-4, atol=1e-6)
        mod, params = nets.resnet.get_workload(num_layers=18)
        self.assertEqual(len(params), 99)
        self.assertEqual(str(mod["main"].checked_type).count("float32"), 101)


class Scripts(unittest.TestCase):
    """Whole scripts, each in a fresh interpreter."""

    def script(self, text, *command, files=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))
            for name, data in files:
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
            done = subprocess.run([sys.executable, *command, path], capture_output=True, text=True, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

    def test_compile_onnx(self):
        out = self.script('''
            import numpy as np
            import tvm
            import tvm.relay as relay
            from tvm.contrib import graph_executor
            from tvm.contrib.utils import tempdir

            target = tvm.target.Target("llvm", host="llvm")
            dev = tvm.device(str(target), 0)
            mod, params = relay.frontend.from_onnx("model.onnx", {"x": (2, 3)})
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, target=target, params=params)
            temp = tempdir()
            lib.export_library(temp.relpath("net.so"))
            loaded = tvm.runtime.load_module(temp.relpath("net.so"))
            module = graph_executor.GraphModule(loaded["default"](dev))
            module.set_input("x", tvm.nd.array(np.ones((2, 3), "float32"), dev))
            module.run()
            print(module.get_output(0, tvm.nd.empty((2, 4))).numpy().tolist())
            print(type(module.benchmark(dev, number=2, repeat=2).mean).__name__)
            ''', "-m", "tilewright.as_tvm", files=[("model.onnx", model_bytes())])
        self.assertEqual(out.splitlines(), [str(np.maximum(np.ones((2, 3), np.float32) @ W + B, 0).tolist()), "float"])

    def test_quick_start(self):
        out = self.script('''
            import tilewright.as_tvm
            import numpy as np
            from tvm import relay
            from tvm.relay import testing
            import tvm
            from tvm.contrib import graph_executor, utils

            mod, params = testing.mlp.get_workload(batch_size=1)
            print(mod.astext(show_meta_data=False).splitlines()[1][:10])
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, "llvm", params=params)
            data = np.random.uniform(-1, 1, size=(1, 1, 28, 28)).astype("float32")
            module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
            module.set_input("data", data)
            module.run()
            first = module.get_output(0, tvm.nd.empty((1, 10))).numpy()
            temp = utils.tempdir()
            lib.export_library(temp.relpath("deploy_lib.tar"))
            again = graph_executor.GraphModule(tvm.runtime.load_module(temp.relpath("deploy_lib.tar"))["default"](tvm.cpu()))
            again.run(data=data)
            tvm_result = again.get_output(0).numpy()
            np.testing.assert_allclose(first, tvm_result, atol=1e-6)
            print("same")
            ''')
        self.assertEqual(out.splitlines(), ["def @main(", "same"])

    def test_pass_infra_and_instruments(self):
        out = self.script('''
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.ir.instrument import PassTimingInstrument, pass_instrument

            def example():
                x = relay.var("x", relay.TensorType((1, 64, 56, 56), "float32"))
                weight = relay.const(np.ones((64, 64, 3, 3), "float32"))
                conv = relay.nn.conv2d(x, weight, channels=64, kernel_size=(3, 3))
                y = relay.add(relay.const(np.ones(64, "float32").reshape(64, 1, 1)), relay.const(np.ones((64, 1, 1), "float32")))
                z = relay.add(conv, relay.multiply(y, relay.const(2, "float32")))
                return relay.Function([x], relay.add(z, relay.add(conv, y)))

            mod = tvm.IRModule.from_expr(example())
            seq = tvm.transform.Sequential([
                relay.transform.FoldConstant(),
                relay.transform.EliminateCommonSubexpr(),
                relay.transform.FuseOps(),
            ])
            timing = PassTimingInstrument()

            @pass_instrument
            class Counter:
                def __init__(self):
                    self.count = 0
                def run_before_pass(self, mod, info):
                    self.count += 1

            counter = Counter()
            with tvm.transform.PassContext(opt_level=4, instruments=[timing, counter]):
                with tvm.target.Target("llvm"):
                    mod2 = seq(mod)
                profiles = timing.render()
            print(counter.count, "FuseOps" in profiles, "Primitive" in str(mod2))

            @relay.transform.function_pass(opt_level=1)
            class CustomPipeline:
                def transform_function(self, func, mod, ctx):
                    return func

            print(CustomPipeline()(mod) == mod, CustomPipeline().info.name)
            ''', "-m", "tilewright.as_tvm")
        self.assertEqual(out.splitlines(), ["4 True True", "True CustomPipeline"])


if __name__ == "__main__":
    unittest.main()
