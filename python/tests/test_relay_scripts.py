# SPDX-License-Identifier: Apache-2.0
"""Whole scripts that say `import tvm`: passes of a script's own, patterns, programs, data types, registration."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

import tilewright
from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor


class Scripts(unittest.TestCase):
    def script(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(text))
            done = subprocess.run([sys.executable, "-m", "tilewright.as_tvm", path], capture_output=True, text=True, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

    def test_passes_and_layout_rules(self):
        out = self.script('''
            import numpy as np
            import tvm
            from tvm import relay

            def network():
                image = relay.var("image", relay.TensorType((1, 32, 10, 10), "float32"))
                weight = relay.var("weight", shape=(32, 32, 3, 3))
                table = relay.const(np.ones((1, 32, 8, 8), "float32"))
                doubled = relay.multiply(relay.add(table, table), relay.const(2, "float32"))
                left = relay.add(relay.nn.conv2d(image, weight), doubled)
                right = relay.add(relay.nn.conv2d(image, weight), doubled)
                return relay.Function([image, weight], relay.add(left, right))

            def calls(mod):
                names = []
                relay.analysis.post_order_visit(mod["main"], lambda e: names.append(e.op.name) if isinstance(e, relay.Call) and isinstance(e.op, tvm.ir.Op) else None)
                return names

            mod = tvm.IRModule.from_expr(network())
            seq = tvm.transform.Sequential([relay.transform.FoldConstant(), relay.transform.EliminateCommonSubexpr(), relay.transform.FuseOps(fuse_opt_level=2)])
            with tvm.transform.PassContext(opt_level=3):
                assert calls(seq(mod)).count("nn.conv2d") == 1
            with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]):
                assert calls(seq(mod)).count("nn.conv2d") == 2

            @relay.op.register_alter_op_layout("nn.conv2d", level=101)
            def blocks(attrs, inputs, tinfos, out_type):
                fields = dict(attrs)
                fields["data_layout"] = "NCHW16c"
                return relay.nn.conv2d(*inputs, **fields)

            with tvm.transform.PassContext(opt_level=3):
                changed = tvm.transform.Sequential([relay.transform.AlterOpLayout()])(mod)
            print("transforms", calls(changed).count("layout_transform"))
            relay.op.get("nn.conv2d").reset_attr("FTVMAlterOpLayout")

            @relay.transform.function_pass(opt_level=1)
            class Scale:
                def __init__(self, factor):
                    self.factor = factor

                def transform_function(self, func, mod, ctx):
                    factor = self.factor

                    class Replace(relay.ExprMutator):
                        def visit_constant(self, const):
                            return relay.multiply(factor, const)
                    return Replace().visit(func)

            scale = Scale(relay.const(3, "float32"))
            assert scale.info.name == "Scale"
            print("multiplications", calls(scale(mod)).count("multiply"))

            @tvm.instrument.pass_instrument
            class Watch:
                seen = []

                def run_before_pass(self, mod, info):
                    self.seen.append(info.name)

            with tvm.transform.PassContext(opt_level=3, instruments=[Watch()]), tvm.target.Target("llvm"):
                seq(mod)
            print(Watch.seen)
        ''')
        self.assertIn("transforms 3", out)
        self.assertIn("multiplications 3", out)
        self.assertIn("'sequential', 'FoldConstant', 'EliminateCommonSubexpr', 'FuseOps'", out)

    def test_patterns(self):
        self.script('''
            import tvm
            from tvm import relay
            from tvm.relay.dataflow_pattern import *

            x, w, b = (relay.var(n) for n in "xwb")
            conv = relay.nn.conv2d(x, w)
            block = is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda p: is_op("nn.bias_add")(p, wildcard()))
            end = is_op("nn.relu")(block)
            assert end.match(relay.nn.relu(conv)) and end.match(relay.nn.relu(relay.nn.bias_add(conv, b))) and not end.match(relay.tanh(conv))

            # every path from a convolution to a sum goes through elementwise operators
            unary = wildcard().has_attr({"TOpPattern": 0})(wildcard())
            between = dominates(is_op("nn.conv2d")(wildcard(), wildcard()), unary, is_op("add")(wildcard(), wildcard()))
            assert between.match(relay.add(relay.tanh(relay.nn.relu(conv)), relay.nn.leaky_relu(conv, alpha=0.5)))
            assert not between.match(relay.add(relay.nn.softmax(conv), relay.nn.relu(conv)))

            class Swap(DFPatternCallback):
                def __init__(self):
                    super().__init__()
                    self.a, self.c = wildcard(), is_constant()
                    self.pattern = self.a * self.c

                def callback(self, pre, post, node_map):
                    return node_map[self.a][0] / node_map[self.c][0]

            out = rewrite(Swap(), x * relay.const(2.0))
            assert out.op.name == "divide"
            part = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard())).partition(relay.nn.relu(conv), {"Composite": "mine.conv"})
            assert isinstance(part.op, relay.Function) and part.op.attrs["Composite"] == "mine.conv"
        ''')

    def test_programs_and_data_types(self):
        self.script('''
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.relay.testing import run_infer_type
            from tvm.runtime import vm as vm_rt
            from tvm.contrib import utils

            # a loop, as a recursive function
            i, total = relay.var("i", shape=[], dtype="int32"), relay.var("total", shape=[], dtype="int32")
            loop = relay.loops.while_loop(lambda i, total: relay.less(i, relay.const(5)), [i, total], lambda i, total: [i + relay.const(1), total + i])
            mod = tvm.IRModule.from_expr(relay.Function([], relay.TupleGetItem(loop(relay.const(0), relay.const(0)), 1)))
            assert int(relay.create_executor("vm", mod=mod).evaluate()().numpy()) == 10

            # a polymorphic function, used at two types
            a = relay.TypeVar("a")
            v = relay.Var("v", a)
            same = relay.Var("same")
            both = relay.Let(same, relay.Function([v], v, a, [a]), relay.Tuple([same(relay.const(1)), same(relay.const(1.0))]))
            assert run_infer_type(both).checked_type == relay.TupleType([relay.scalar_type("int32"), relay.scalar_type("float32")])

            # lists
            mod = tvm.IRModule()
            p = relay.Prelude(mod)
            n = relay.var("n", "int32")
            numbers = p.cons(relay.const(3), p.cons(relay.const(4), p.nil()))
            squares = p.map(relay.Function([n], n * n), numbers)
            out = relay.create_executor("vm", mod=mod).evaluate(p.rev(squares))
            assert (int(out[0].numpy()), int(out[1][0].numpy()), out[1][1].constructor.name_hint) == (16, 9, "Nil")

            # free sizes: compiled, saved, loaded
            x = relay.var("x", shape=(relay.Any(), 3))
            mod = tvm.IRModule.from_expr(relay.Function([x], relay.reshape(relay.nn.relu(x), (-1,))))
            code, lib = relay.vm.compile(mod, target="llvm").save()
            folder = utils.tempdir()
            lib.export_library(folder.relpath("lib.so"))
            exe = vm_rt.Executable.load_exec(code, tvm.runtime.load_module(folder.relpath("lib.so")))
            machine = vm_rt.VirtualMachine(exe, tvm.cpu())
            for rows in (1, 4):
                assert machine.invoke("main", np.ones((rows, 3), "float32")).numpy().shape == (3 * rows,)

            # programs with bindings are graphs, too
            mod, params = relay.testing.mlp.get_workload(1)
            bound = relay.transform.ToANormalForm()(relay.transform.InferType()(mod))
            data = np.random.rand(1, 1, 28, 28).astype("float32")
            results = [relay.create_executor(kind, mod=m, params=params).evaluate()(data).numpy() for kind, m in (("graph", mod), ("graph", bound), ("vm", bound))]
            np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
            np.testing.assert_allclose(results[0], results[2], rtol=1e-5)
        ''')

    def test_classic_imports(self):
        self.script('''
            import tvm
            from tvm.ir import GlobalVar, IRModule, Op, TensorType, structural_equal
            from tvm.ir.base import Node
            from tvm.ir.container import Array
            from tvm.ir.instrument import PassTimingInstrument
            from tvm.ir.tensor_type import TensorType
            from tvm.relay import ExprMutator, ExprVisitor, Prelude, ScopeBuilder, TypeMutator
            from tvm.relay.adt import Clause, Constructor, Match, TypeData
            from tvm.relay.analysis import all_vars, free_vars, well_formed
            from tvm.relay.backend import te_compiler
            from tvm.relay.build_module import bind_params_by_name
            from tvm.relay.expr import Call, Constant, TupleWrapper
            from tvm.relay.frontend.onnx import OnnxOpConverter
            from tvm.relay.function import Function
            from tvm.relay.loops import for_loop, while_loop
            from tvm.relay.op import OpPattern, register_alter_op_layout, register_legalize
            from tvm.relay.op.strategy import OpStrategy
            from tvm.relay.param_dict import load_param_dict, save_param_dict
            from tvm.relay.testing import create_workload, layers, run_infer_type, run_opt_pass
            from tvm.relay.testing.init import Xavier
            from tvm.relay.ty import FuncType, TupleType
            from tvm.runtime.container import ADT, String, tuple_object

            assert isinstance(tvm.relay.var("x"), Node) and Op.get("add").name == "add"
            assert tvm.relay.transform.PartitionGraph().info.name == "PartitionGraph"
            try:
                tvm.relay.transform.MemoryPlan()
            except (AttributeError, NotImplementedError) as error:
                assert "instead" in str(error)
            else:
                raise AssertionError
        ''')


class Inputs(unittest.TestCase):
    def test_may_have_the_names_of_parameters(self):
        key, value = relay.var("key", shape=(2,)), relay.var("value", shape=(2,))
        mod = tw.IRModule.from_expr(relay.Function([key, value], key - value))
        for kind in ("graph", "aot", "vm", "debug"):
            with self.subTest(kind):
                run = relay.create_executor(kind, mod, tw.cpu(), "llvm").evaluate()
                np.testing.assert_array_equal(run(np.ones(2, "float32"), np.full(2, 3, "float32")).numpy(), [-2, -2])

    def test_extremes_of_bools(self):
        x = relay.var("x", shape=(2, 3), dtype="bool")
        for op, expected in ((relay.min, [False, True]), (relay.max, [True, True])):
            run = relay.create_executor("graph", tw.IRModule.from_expr(relay.Function([x], op(x, axis=1))), tw.cpu(), "llvm").evaluate()
            np.testing.assert_array_equal(run(np.array([[True, False, True], [True, True, True]])).numpy(), expected)

    def test_reductions_of_a_scalar(self):
        for dtype in ("float32", "int32", "bool"):
            x = relay.var("x", shape=(), dtype=dtype)
            for op in (relay.min, relay.max, *(() if dtype == "bool" else (relay.sum, relay.prod, relay.mean)), *((relay.all, relay.any) if dtype == "bool" else ())):
                with self.subTest(dtype=dtype, op=op.__name__):
                    run = relay.create_executor("graph", tw.IRModule.from_expr(relay.Function([x], op(x))), tw.cpu(), "llvm").evaluate()
                    self.assertEqual(run(np.array(1, dtype)).numpy(), 1)


class IntegerProducts(unittest.TestCase):
    """Sums of products of integers are exact, however the kernels sum them."""

    def built(self, expr, **inputs):
        module = graph_executor.GraphModule(relay.build(tw.IRModule.from_expr(expr), "llvm")["default"](tw.cpu()))
        module.run(**inputs)
        return module.get_output(0).numpy()

    def test_convolutions(self):
        random = np.random.default_rng(3)
        # Few terms, sums near the limit of float32, and more than one part.
        for channels, size in ((16, 14), (64, 9), (512, 5)):
            for zero in (0, 3):
                x = random.integers(-128, 128, (1, channels, size, size)).astype("int8")
                w = random.integers(-127, 128, (32, channels, 3, 3)).astype("int8")
                padded = np.pad(x.astype("int64") - zero, ((0, 0), (0, 0), (1, 1), (1, 1)))
                windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
                expected = np.einsum("nchwij,kcij->nkhw", windows, w.astype("int64"), optimize=True)
                scalar = lambda v, t="int32": relay.const(np.array(v, t))  # noqa: E731
                conv = relay.qnn.op.conv2d(relay.var("x", shape=x.shape, dtype="int8"), relay.const(w), scalar(zero), scalar(0), scalar(1, "float32"), scalar(1, "float32"),
                                           kernel_size=(3, 3), channels=32, padding=(1, 1), out_dtype="int32")
                with self.subTest(channels=channels, zero=zero):
                    np.testing.assert_array_equal(self.built(conv, x=x), expected)

    def test_what_onnxruntime_quantises(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data", "onnx", "quantized_microsoft")
        model, saved = tilewright.compile(path + ".onnx"), np.load(path + ".npz")
        results = dict(zip((t.name for t in model.outputs), model(x=saved["x"], image=saved["image"])))
        self.assertEqual(len(results), 10)
        for name, found in results.items():
            with self.subTest(name):
                self.assertEqual(found.dtype, saved[name].dtype)
                np.testing.assert_allclose(found, saved[name], rtol=1e-6 if found.dtype == np.float32 else 0, atol=1e-6)

    def test_products(self):
        random = np.random.default_rng(4)
        for k in (7, 300, 5000):
            a, b = random.integers(0, 256, (9, k)).astype("uint8"), random.integers(-128, 128, (13, k)).astype("int8")
            product = relay.nn.dense(relay.var("a", shape=a.shape, dtype="uint8"), relay.var("b", shape=b.shape, dtype="int8"), out_dtype="int32")
            with self.subTest(k=k):
                np.testing.assert_array_equal(self.built(product, a=a, b=b), a.astype("int64") @ b.astype("int64").T)


if __name__ == "__main__":
    unittest.main()
