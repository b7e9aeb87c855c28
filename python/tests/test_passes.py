# SPDX-License-Identifier: Apache-2.0
"""Passes from Python with their classic arguments; rules, strategies and converters that a script registers."""
import unittest

import numpy as np

import tilewright
from tilewright import classic as tw
from test_tilewright import B, W, X, model_bytes
from tilewright.classic import relay
from tilewright.classic.relay import op, testing, transform
from tilewright.classic.relay.dataflow_pattern import DFPatternCallback, has_attr, has_dtype, has_shape, is_constant, is_if, is_let, is_op, is_tuple, is_tuple_get_item, is_var, rewrite, wildcard
from tilewright.classic.relay.te_compiler import select_implementation


def calls(mod, name="main"):
    return [e.op.name for e in tilewright._core.post_order(mod[name]) if isinstance(e, relay.Call) and isinstance(e.op, relay.expr.Op)]


def branches(count, make=None):
    x = relay.var("x", shape=(1, 8, 6, 6))
    weights = [relay.var(f"w{i}", shape=(4, 8, 1, 1)) for i in range(count)]
    return tw.IRModule.from_expr(relay.Function([x, *weights], relay.Tuple([relay.nn.conv2d(x, w, channels=4, kernel_size=(1, 1)) for w in weights])))


class Arguments(unittest.TestCase):
    def test_combine(self):
        for count, least, left in ((2, 3, 2), (3, 3, 1), (2, 2, 1), (4, 5, 4)):
            out = transform.CombineParallelConv2D(min_num_branches=least)
            with tw.transform.PassContext(opt_level=4):
                self.assertEqual(calls(tw.transform.Sequential([out])(branches(count))).count("nn.conv2d"), left)
        with self.assertRaises(tw.Error):
            transform.CombineParallelDense(min_num_branches=1)(branches(2))

    def test_flexible_shape_dispatch(self):
        rng = np.random.default_rng(1)
        w = rng.standard_normal((6, 10)).astype("float32")
        x, y = relay.var("x", shape=(4, 10)), relay.var("y", shape=(4, 10))
        mod = tw.IRModule.from_expr(relay.Function([x, y], relay.Tuple([relay.nn.dense(x, relay.const(w)), relay.add(x, y)])))
        for auto_pad in (False, True):
            made = transform.FlexibleShapeDispatch([2, 8], auto_pad=auto_pad, input_indices=[0, 1])(mod)
            self.assertEqual({g.name_hint for g in made.get_global_vars()}, {"main", "main_2", "main_8", "main_any"})
            machine = tw.runtime.vm.VirtualMachine(relay.vm.compile(made, "llvm"), tw.cpu())
            for n in (1, 2, 5, 8, 11):
                a, b = rng.standard_normal((2, n, 10)).astype("float32")
                out = machine.invoke("main", a, b)
                np.testing.assert_allclose(out[0].numpy(), a @ w.T, rtol=1e-4, atol=1e-4)
                np.testing.assert_array_equal(out[1].numpy(), a + b)
        with self.assertRaisesRegex(ValueError, "no input 3"):
            transform.FlexibleShapeDispatch([2], input_indices=[3])(mod)

    def test_manifest_memory(self):
        x = relay.var("x", shape=(4, 3))
        mod = transform.FuseOps(0)(transform.InferType()(tw.IRModule.from_expr(relay.Function([x], relay.tanh(relay.exp(x))))))
        mod = transform.ManifestLifetimes()(transform.ManifestAlloc(None)(transform.ToANormalForm()(mod)))
        self.assertEqual(relay.analysis.list_op_freqs(mod)["vm.invoke_tvm_op"], 2)
        text = mod.astext()
        self.assertIn("memory.kill", text)
        self.assertTrue(tw.ir.structural_equal(tw.parser.fromtext(text), mod))
        data = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
        module = tw.contrib.graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tw.cpu()))
        module.set_input("x", data)
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), np.tanh(np.exp(data)), rtol=1e-5)
        storage = relay.op.memory.alloc_storage(relay.const(48, "int64"), relay.const(64, "int64"))
        tensor = relay.op.memory.alloc_tensor(storage, relay.const(0, "int64"), relay.const(np.array([4, 3])), assert_shape=(4, 3))
        self.assertEqual(tensor.checked_type, x.type_annotation)

    def test_skipped_layers(self):
        x, w, v = relay.var("x", shape=(1, 8, 6, 6)), relay.var("w", shape=(8, 8, 3, 3)), relay.var("v", shape=(8, 8, 3, 3))
        made = lambda a, k: relay.nn.relu(relay.nn.conv2d(a, k, padding=(1, 1), channels=8, kernel_size=(3, 3)))  # noqa: E731
        mod = tw.IRModule.from_expr(relay.Function([x, w, v], made(made(made(x, w), v), w)))
        layouts = lambda m: [e.attrs.data_layout for e in tilewright._core.post_order(m["main"]) if isinstance(e, relay.Call) and e.op == "nn.conv2d"]  # noqa: E731
        convert = transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
        self.assertEqual(layouts(convert(mod)), ["NHWC"] * 3)
        with transform.LayoutConfig(skip_layers=[0, 2]):
            out = convert(mod)
        self.assertEqual(layouts(out), ["NCHW", "NHWC", "NCHW"])
        self.assertFalse(any(isinstance(e, relay.Function) and e.attrs.get("Primitive") for e in tilewright._core.post_order(out["main"])))
        self.assertEqual(layouts(convert(mod)), ["NHWC"] * 3)

    def test_eta_expand_by_kind(self):
        mod = tw.parser.fromtext("""#[version = "0.0.5"]
type Box { Full(float32), Empty }
def @f(%x: float32) -> float32 { exp(%x) }
def @twice[A](%g: fn (float32) -> A, %x: float32) -> A { %g(%x) }
def @main(%x: float32) -> (float32, Box) { (@twice(@f, %x), @twice(Full, %x)) }""")
        count = lambda m: sum(isinstance(e, relay.Function) for e in tilewright._core.post_order(m["main"])) - 1  # noqa: E731
        self.assertEqual([count(transform.EtaExpand(*flags)(mod)) for flags in ((), (True,), (False, True), (True, True))], [0, 1, 1, 2])

    def test_spans_of_post_order(self):
        x = relay.var("x", shape=(4,))
        out = transform.CapturePostDfsIndexInSpans()(tw.IRModule.from_expr(relay.Function([x], relay.add(x, relay.exp(x)))))["main"]
        self.assertEqual((out.span.source_name.name, out.span.line, out.span.column), ("index", 5, -1))
        self.assertEqual((out.body.span.line, out.body.span.column, out.body.args[1].span.line), (4, 5, 3))

    def test_fuse_levels(self):
        x = relay.var("x", shape=(4,))
        mod = tw.IRModule.from_expr(relay.Function([x], relay.exp(relay.negative(x))))
        count = lambda m: sum(1 for e in tilewright._core.post_order(m["main"]) if isinstance(e, relay.Function) and e.attrs.get("Primitive"))  # noqa: E731
        self.assertEqual([count(transform.FuseOps(level)(mod)) for level in (0, 1, 2, -1)], [2, 1, 1, 1])

    def test_common_subexpressions(self):
        x = relay.var("x", shape=(4,))
        body = relay.add(relay.exp(x), relay.exp(x)) + relay.add(relay.log(x), relay.log(x))
        mod = tw.IRModule.from_expr(relay.Function([x], body))
        self.assertEqual(calls(transform.EliminateCommonSubexpr()(mod)).count("exp"), 1)
        kept = transform.EliminateCommonSubexpr(lambda e: isinstance(e, relay.Call) and e.op.name == "exp")(mod)
        self.assertEqual((calls(kept).count("exp"), calls(kept).count("log")), (2, 1))

        def fails(e):
            raise KeyError("inside")

        with self.assertRaises(KeyError):
            transform.EliminateCommonSubexpr(fails)(mod)

    def test_layouts_and_precision(self):
        x, w = relay.var("x", shape=(1, 8, 6, 6)), relay.var("w", shape=(4, 8, 3, 3))
        mod = tw.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))))
        with tw.transform.PassContext(opt_level=3):
            nhwc = tw.transform.Sequential([transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})])(mod)
        conv = next(e for e in tilewright._core.post_order(nhwc["main"]) if isinstance(e, relay.Call) and e.op == "nn.conv2d")
        self.assertEqual(conv.attrs.data_layout, "NHWC")
        with self.assertRaises(tw.Error):
            transform.ConvertLayout({"nn.conv2d": ["NCWH7"]})(mod)
        for dtype in ("float16", "bfloat16"):
            self.assertIn("cast", calls(transform.ToMixedPrecision(dtype)(mod)))
            self.assertIn(dtype, transform.ToMixedPrecision(dtype)(mod).astext())
        with self.assertRaises(ValueError):
            transform.ToMixedPrecision("float8")
        with self.assertRaises(ValueError):
            transform.ToMixedPrecision("float16", 7)
        f = transform.recast(mod["main"], "int8", "int32")
        self.assertIn("int8", str(f))

    def test_entries_batches_and_args(self):
        x = relay.var("x", shape=(2, 3))
        mod = tw.IRModule({"main": relay.Function([x], relay.exp(x)), "other": relay.Function([x], relay.log(x))})
        self.assertEqual([g.name_hint for g in transform.RemoveUnusedFunctions()(mod).get_global_vars()], ["main"])
        self.assertEqual([g.name_hint for g in transform.RemoveUnusedFunctions(["other"])(mod).get_global_vars()], ["other"])
        net, _ = testing.mlp.get_workload(1)
        wide = transform.ChangeBatch({net["main"].params[0]: 0}, batch_size=16)(net)
        self.assertEqual([int(d) for d in transform.InferType()(wide)["main"].checked_type.ret_type.shape], [16, 10])
        parts = [relay.var(f"p{i}", shape=(2, 3)) for i in range(9)]
        cat = tw.IRModule.from_expr(relay.Function(parts, relay.concatenate(parts, axis=0)))
        self.assertEqual(calls(transform.SplitArgs(4)(cat)).count("concatenate") > 1, True)

    def test_fake_quantization(self):
        rng = np.random.default_rng(0)
        x, y = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8"), relay.var("y", shape=(1, 6, 4, 4), dtype="uint8")
        w = relay.const(rng.integers(-127, 128, (6, 4, 3, 3)).astype("int8"))
        scale, zero = lambda v: relay.const(np.array(v, "float32")), lambda v: relay.const(v, "int32")  # noqa: E731
        real = relay.nn.conv2d(relay.qnn.op.dequantize(x, scale(0.04), zero(120)), relay.qnn.op.dequantize(w, scale([0.01] * 6), zero(0), axis=0),
                               channels=6, kernel_size=(3, 3), padding=(1, 1))
        real = relay.nn.relu(relay.nn.bias_add(real, relay.const(np.linspace(-1, 1, 6).astype("float32"))))
        q = relay.qnn.op.quantize(relay.nn.avg_pool2d(relay.qnn.op.dequantize(relay.qnn.op.quantize(real, scale(0.1), zero(3), out_dtype="uint8"), scale(0.1), zero(3)),
                                                      pool_size=(2, 2), strides=(2, 2)), scale(0.09), zero(5), out_dtype="uint8")
        sum_ = relay.add(relay.qnn.op.dequantize(q, scale(0.09), zero(5)), relay.qnn.op.dequantize(y, scale(0.02), zero(100)))
        mod = tw.IRModule.from_expr(relay.Function([x, y], relay.qnn.op.quantize(sum_, scale(0.1), zero(60), out_dtype="uint8")))
        after = transform.FakeQuantizationToInteger(hard_fail=True)(transform.InferType()(mod))
        self.assertEqual([c for c in calls(after) if c in ("nn.conv2d", "qnn.dequantize", "qnn.quantize", "nn.relu")], [])
        self.assertEqual(calls(after).count("qnn.conv2d"), 1)
        data = [rng.integers(0, 256, s).astype("uint8") for s in ((1, 4, 8, 8), (1, 6, 4, 4))]
        outs = [relay.create_executor("graph", mod=m).evaluate()(*data).numpy().astype(int) for m in (mod, after)]
        self.assertGreater(np.ptp(outs[0]), 20)
        self.assertLessEqual(np.abs(outs[0] - outs[1]).max(), 2)  # a pool, and a sum whose operands are rounded one by one
        soft = tw.IRModule.from_expr(relay.Function([x], relay.qnn.op.quantize(relay.nn.softmax(relay.qnn.op.dequantize(x, scale(0.04), zero(120))), scale(0.01), zero(0))))
        self.assertIn("nn.softmax", calls(transform.FakeQuantizationToInteger()(soft)))
        with self.assertRaisesRegex(tw.Error, "nn.softmax"):
            transform.FakeQuantizationToInteger(hard_fail=True, use_qat=True)(soft)

    def test_gradient(self):
        x = relay.var("x", shape=(3,))
        f = relay.Function([x], x * x)
        back = transform.gradient(f)
        out = relay.create_executor("debug").evaluate(back)(np.array([1, 2, 3], "float32"))
        np.testing.assert_allclose(out[1][0].numpy(), [2, 4, 6])
        with self.assertRaises(Exception):
            transform.gradient(f, mode="third_order")

    HIGHER_ORDER = '''#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @id[A](%x: A) -> A { %x }
def @sum(%f: fn (float32) -> float32, %xs: List[float32]) -> float32 {
  match (%xs) { Cons(%x, %rest) => { %0 = fn (%n: float32) -> float32 { %x + %f(%n) }; @sum(%0, %rest) }, Nil => %f(0f) }
}
def @other(%l: List[float32]) -> float32 { @sum(fn (%n: float32) -> float32 { %n }, %l) }
def @main(%x: float32, %y: float32) -> float32 { @sum(@id, Cons(%x, Cons(%y, Nil))) }'''

    def test_defunctionalization(self):
        mod = transform.InferType()(relay.fromtext(self.HIGHER_ORDER))
        self.assertIn("fn (", str(transform.RemoveUnusedFunctions()(mod)))
        mod["main"] = transform.Defunctionalization(mod["main"], mod)
        mod = transform.InferType()(mod)  # what main does not reach is sound, too
        first_order = transform.RemoveUnusedFunctions()(mod)
        self.assertNotIn("fn (", str(first_order))
        for each in (mod, first_order, transform.Defunctionalization()(relay.fromtext(self.HIGHER_ORDER))):
            self.assertEqual(float(relay.create_executor("debug", mod=each).evaluate()(np.float32(2), np.float32(3)).numpy()), 5.0)
        with self.assertRaisesRegex(tw.Error, "takes or gives functions"):
            higher = transform.InferType()(relay.fromtext(self.HIGHER_ORDER))
            transform.Defunctionalization(higher["sum"], higher)

    def test_continuations(self):
        mod = transform.InferType()(relay.fromtext(self.HIGHER_ORDER))
        there = transform.to_cps(mod["main"], mod)
        self.assertEqual(len(there.params), 3)
        self.assertIn("sum_cps", [g.name_hint for g in mod.get_global_vars()])
        mod["main"] = there
        mod = transform.UnCPS()(mod)
        self.assertEqual(len(mod["main"].params), 2)
        self.assertEqual(float(relay.create_executor("debug", mod=mod).evaluate()(np.float32(2), np.float32(3)).numpy()), 5.0)
        x = relay.var("x", shape=(2,))
        f = relay.Function([x], relay.exp(x))
        back = transform.un_cps(transform.to_cps(f))
        np.testing.assert_allclose(relay.create_executor("debug").evaluate(back)(np.zeros(2, "float32")).numpy(), [1, 1])

    def test_what_is_missing_names_what_to_use(self):
        with self.assertRaisesRegex(AttributeError, "no pass 'SimplifyExplicitPad'; instead: FoldExplicitPadding"):
            transform.SimplifyExplicitPad


class ExternalParts(unittest.TestCase):
    """AnnotateTarget, MergeCompilerRegions, PartitionGraph: how many functions, what is in them, and that results stay."""

    def setUp(self):
        from tilewright.classic.relay.op import registry
        self.forget = [("nn.relu", "target.mine"), ("add", "target.mine"), ("exp", "target.other")]
        registry.register("nn.relu", "target.mine", True)
        registry.register("add", "target.mine", lambda call: call.args[0].checked_type.dtype == "float32")
        registry.register("exp", "target.other", True)
        self.addCleanup(lambda: [registry.forget(*pair) for pair in self.forget])

    @staticmethod
    def network():
        x = relay.var("x", shape=(2, 3))
        a = relay.nn.relu(x)
        b = relay.add(a, relay.nn.relu(relay.sqrt(relay.add(a, relay.const(np.float32(1))))))
        return tw.IRModule.from_expr(relay.Function([x], relay.exp(relay.add(b, x))))

    def partitioned(self, targets, merge=True, mod=None, **options):
        steps = [transform.InferType(), transform.AnnotateTarget(targets), *([transform.MergeCompilerRegions()] if merge else []),
                 transform.PartitionGraph(**options)]
        return transform.Sequential(steps)(mod or self.network())

    @staticmethod
    def parts(mod):
        return {g.name_hint: f.attrs["Compiler"] for g, f in mod.functions.items() if "Compiler" in f.attrs}

    def test_counts(self):
        self.assertEqual(self.parts(self.partitioned("mine")), {"tvmgen_default_mine_main_0": "mine", "tvmgen_default_mine_main_1": "mine"})
        self.assertEqual(len(self.parts(self.partitioned("mine", merge=False))), 5)
        both = self.parts(self.partitioned(["other", "mine"], mod_name="net"))
        self.assertEqual(sorted(both.values()), ["mine", "mine", "other"])
        self.assertTrue(all(name.startswith("tvmgen_net_") for name in both))
        self.assertEqual(self.parts(self.partitioned("nobody")), {})

    def test_constants_stay_inside_unless_told(self):
        params = [len(f.params) for g, f in self.partitioned("mine").functions.items() if g.name_hint != "main"]
        more = [len(f.params) for g, f in self.partitioned("mine", bind_constants=False).functions.items() if g.name_hint != "main"]
        self.assertEqual(sum(more), sum(params) + 1)

    def test_what_goes_in_comes_out_by_inlining(self):
        plain, data = self.network(), np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
        mod = self.partitioned(["mine", "other"])
        back = transform.InlineCompilerFunctionsBoundTo([mod.get_global_var(name) for name in self.parts(mod)])(mod)
        self.assertEqual([g.name_hint for g in back.get_global_vars()], ["main"])
        run = [relay.create_executor("graph", mod=m).evaluate()(data).numpy() for m in (plain, back)]
        np.testing.assert_array_equal(*run)

    def test_marks_alone_change_nothing(self):
        marked = transform.AnnotateTarget("mine")(transform.InferType()(self.network()))
        self.assertIn("annotation.compiler_begin", str(marked))
        data = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
        run = [relay.create_executor("graph", mod=m).evaluate()(data).numpy() for m in (self.network(), marked)]
        np.testing.assert_array_equal(*run)

    def test_composites_and_lists_of_operators(self):
        from tilewright.classic.relay.testing.byoc import CcompilerAnnotator, WhiteListAnnotator
        pattern = is_op("nn.relu")(is_op("sqrt")(wildcard()))
        mod = transform.MergeComposite([("unit.rooted", pattern)])(self.network())
        self.assertEqual(list(self.parts(self.partitioned("unit", mod=mod)).values()), ["unit"])
        listed = tw.IRModule.from_expr(WhiteListAnnotator(["exp", "sqrt"], "listed").visit(self.network()["main"]))
        self.assertEqual(len(self.parts(transform.PartitionGraph()(transform.InferType()(listed)))), 2)
        x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
        chain = relay.Function([x, y], relay.multiply(relay.subtract(relay.add(x, y), y), x))
        marked = tw.IRModule.from_expr(CcompilerAnnotator().visit(chain))
        part = transform.PartitionGraph()(transform.InferType()(marked))
        self.assertEqual(list(self.parts(part).values()), ["ccompiler"])
        self.assertEqual(len(part["tvmgen_default_ccompiler_main_0"].params), 2)


class Patterns(unittest.TestCase):
    def test_on_parsed_modules(self):
        mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4), float32], %w: Tensor[(3, 4), float32], %b: Tensor[(3), float32]) {\n'
                             '  %0 = nn.dense(%x, %w, units=3);\n  %1 = nn.bias_add(%0, %b);\n  let %y = nn.relu(%1);\n  if (True) { %y } else { exp(%y) }\n}')
        let = mod["main"].body
        pattern = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), is_var("w")).has_attr({"units": 3}), wildcard().has_shape((3,))))
        self.assertTrue(pattern.match(let.value))
        self.assertTrue(has_dtype("float32").match(let.value) and has_shape((1, 3)).match(let.value))
        self.assertTrue(wildcard().has_type(relay.TensorType((1, 3))).match(let.value))
        self.assertFalse(has_attr({"units": 4}, is_op("nn.dense")(wildcard(), wildcard())).match(let.value.args[0].args[0]))
        self.assertTrue(is_let(is_var("y"), wildcard(), is_if(is_constant(), wildcard(), is_op("exp")(wildcard()))).match(let))

        class NoBias(DFPatternCallback):
            def __init__(self):
                super().__init__()
                self.x, self.b = wildcard(), wildcard()
                self.pattern = is_op("nn.bias_add")(self.x, self.b)

            def callback(self, pre, post, node_map):
                return relay.add(node_map[self.x][0], node_map[self.b][0])

        out = rewrite(NoBias(), mod["main"])
        self.assertIn("add", str(out))
        self.assertNotIn("bias_add", str(out))
        parts = is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard()).partition(mod["main"], {"Composite": "fc"})
        made = [e for e in tilewright._core.post_order(parts) if isinstance(e, relay.Function) and e.attrs.get("Composite") == "fc"]
        self.assertEqual((len(made), made[0].attrs["PartitionedFromPattern"]), (1, "nn.dense_nn.bias_add_"))
        refused = is_op("nn.bias_add")(wildcard(), wildcard()).partition(mod["main"], check=lambda e: False)
        self.assertEqual(refused, mod["main"])
        merged = transform.MergeComposite([("fc", is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard()))])(mod)
        self.assertIn('Composite="fc"', merged.astext())

    def test_tuples_and_dominators(self):
        x = relay.var("x", shape=(1, 4, 4, 4))
        split = relay.split(x, 2, axis=1)
        self.assertTrue(is_tuple_get_item(is_op("split")(wildcard()), 1).match(split[1]))
        self.assertFalse(is_tuple_get_item(wildcard(), 1).match(split[0]))
        self.assertTrue(is_tuple([wildcard(), is_op("exp")(wildcard())]).match(relay.Tuple([x, relay.exp(x)])))
        w = relay.var("w", shape=(4, 4, 1, 1))
        conv = relay.nn.conv2d(x, w)
        diamond = relay.add(relay.nn.relu(conv), relay.nn.leaky_relu(conv, alpha=0.1))
        is_conv = is_op("nn.conv2d")(is_var("x"), wildcard())
        path = is_op("nn.relu")(wildcard()) | is_op("nn.leaky_relu")(wildcard())
        reduction = is_op("add")(wildcard(), wildcard())
        self.assertTrue(reduction.dominates(is_conv, path).match(diamond))
        self.assertFalse(reduction.dominates(is_op("exp")(wildcard()), path).match(diamond))

    def test_types_for_callbacks(self):
        class Widen(DFPatternCallback):
            def __init__(self):
                super().__init__(require_type=True, rewrite_once=True)
                self.x = wildcard()
                self.pattern = is_op("exp")(self.x)

            def callback(self, pre, post, node_map):
                self.seen = node_map[self.x][0].checked_type.dtype
                return relay.log(node_map[self.x][0])

        x = relay.var("x", shape=(2,))
        callback = Widen()
        out = rewrite(callback, relay.Function([x], relay.exp(relay.exp(x))))
        self.assertEqual((callback.seen, str(out).count("log("), str(out).count("exp(")), ("float32", 2, 0))

        class Fails(Widen):
            def callback(self, pre, post, node_map):
                raise ZeroDivisionError("inside")

        with self.assertRaises(ZeroDivisionError):
            rewrite(Fails(), relay.Function([x], relay.exp(x)))


class Registration(unittest.TestCase):
    def test_attributes(self):
        @tw.ir.register_op_attr("tanh", "target.mine")
        def supported(expr):
            return True

        self.assertTrue(relay.op.get("tanh").get_attr("target.mine")(None))
        self.assertEqual(relay.op.get("tanh").get_attr("TOpPattern"), relay.op.OpPattern.ELEMWISE)
        with self.assertRaises(ValueError):
            tw.ir.register_op_attr("tanh", "target.mine", lambda e: False)
        with self.assertRaises(ValueError):
            tw.ir.register_op_attr("tahn", "target.mine", 1)
        relay.op.get("tanh").reset_attr("target.mine")
        self.assertIsNone(relay.op.get("tanh").get_attr("target.mine"))

    def test_operators_of_ones_own(self):
        @relay.op.register("nn.hard_swish_of_mine", "x * clip(x + 3, 0, 6) / 6")
        def hard_swish(x, shift=3.0):
            return x * relay.clip(x + shift, 0, 6) / 6.0

        x = relay.var("x", shape=(5,))
        mod = tw.IRModule.from_expr(relay.Function([x], relay.nn.hard_swish_of_mine(x, shift=3.0)))
        self.assertIn('Composite="nn.hard_swish_of_mine"', mod.astext())
        data = np.linspace(-4, 4, 5).astype("float32")
        for kind in ("graph", "vm"):
            out = relay.create_executor(kind, mod).evaluate()(data).numpy()
            np.testing.assert_allclose(out, data * np.clip(data + 3, 0, 6) / 6, rtol=1e-6)
        with self.assertRaises(ValueError):
            relay.op.register("nn.relu", expand=hard_swish)

    def test_rules_reach_builds(self):
        x = relay.var("x", shape=(4,))
        mod = tw.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.sinh(x))))
        data = np.linspace(-1, 1, 4).astype("float32")
        seen = []

        def rule(attrs, inputs, types):
            seen.append((types[0], types[-1]))
            return relay.multiply(inputs[0], relay.const(3.0))

        op.register_legalize("sinh", rule)
        try:
            self.assertNotIn("sinh", calls(transform.Legalize()(mod)))
            out = relay.create_executor("graph", mod).evaluate()(data).numpy()
        finally:
            relay.op.get("sinh").reset_attr("FTVMLegalize")
        np.testing.assert_allclose(out, np.maximum(3 * data, 0), rtol=1e-6)
        self.assertEqual(seen[0], (relay.TensorType((4,)), relay.TensorType((4,))))
        np.testing.assert_allclose(relay.create_executor("graph", mod).evaluate()(data).numpy(), np.maximum(np.sinh(data), 0), rtol=1e-5)

        def wrong(attrs, inputs, types, out_type):
            return "text"

        op.register_alter_op_layout("sinh", wrong)
        try:
            with self.assertRaises(TypeError), tw.transform.PassContext(opt_level=3):
                relay.build(mod, "llvm")
        finally:
            relay.op.get("sinh").reset_attr("FTVMAlterOpLayout")

    def test_strategies_choose(self):
        x, w = relay.TensorType((1, 16, 14, 14)), relay.TensorType((16, 16, 3, 3))
        chosen, candidates = select_implementation("nn.conv2d", {"padding": [1, 1, 1, 1], "channels": 16, "kernel_size": [3, 3]}, [x, w])
        names = [name for name, *_ in candidates]
        self.assertIn(chosen, names)
        self.assertTrue(set(names) <= {name for name, _ in op.strategy.implementations("nn.conv2d")})
        operands = [relay.TensorType((4, 32, 8)), relay.TensorType((4, 16, 8))]
        select = lambda: select_implementation("nn.batch_matmul", {}, operands)  # noqa: E731
        usual, candidates = select()
        other = next(name for name, *_ in candidates if name != usual)

        def strategy(attrs, inputs, out_type, target):
            self.assertEqual(([relay.TensorType(t.shape, t.dtype) for t in inputs], str(target.kind)), (operands, "llvm"))
            s = relay.op.OpStrategy()
            s.add_implementation(name=other, plevel=20)
            return s

        relay.op.register_strategy("nn.batch_matmul", strategy)
        try:
            self.assertEqual(select()[0], other)
        finally:
            relay.op.get("nn.batch_matmul").reset_attr("FTVMStrategy")
        self.assertEqual(select()[0], usual)
        with self.assertRaises(ValueError):
            relay.op.OpStrategy().add_implementation(None, lambda: 2, "mine")

        def unknown(attrs, inputs, out_type, target):
            s = relay.op.OpStrategy()
            s.add_implementation(name="no_such_kernel")
            return s

        relay.op.register_strategy("nn.batch_matmul", unknown)
        try:
            with self.assertRaisesRegex(ValueError, "no_such_kernel"):
                select()
        finally:
            relay.op.get("nn.batch_matmul").reset_attr("FTVMStrategy")

    def test_onnx_converters(self):
        model = model_bytes().replace(b"Relu", b"Cust")
        with self.assertRaises(tw.Error) as raised:
            relay.frontend.from_onnx(model)
        self.assertEqual(raised.exception.code, 202)

        class Custom(relay.frontend.OnnxOpConverter):
            @classmethod
            def _impl_v13(cls, inputs, attr, params):
                return relay.tanh(inputs[0])

            @classmethod
            def _impl_v20(cls, inputs, attr, params):
                raise AssertionError("the model is of version 17")

        relay.frontend.register_converter("Cust", Custom)
        try:
            mod, params = relay.frontend.from_onnx(model)
            out = relay.create_executor("graph", mod, params=params).evaluate()(X).numpy()
            np.testing.assert_allclose(out, np.tanh(X @ W + B), rtol=1e-5)
            relay.frontend.register_converter("Cust", lambda inputs, attr, params: [])
            with self.assertRaises(tw.Error):
                relay.frontend.from_onnx(model)
            relay.frontend.register_converter("Cust", lambda inputs, attr, params: 1 / 0)
            with self.assertRaises(ZeroDivisionError):
                relay.frontend.from_onnx(model)
        finally:
            relay.frontend.onnx.unregister_converter("Cust")


class Quantization(unittest.TestCase):
    """relay.quantize: the classic settings, calibration, and how far integers are from floats."""

    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(5)
        weight = lambda *shape: relay.const((random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))  # noqa: E731
        x = relay.var("x", shape=(1, 3, 16, 16))
        body = relay.nn.relu(relay.nn.conv2d(x, weight(16, 3, 3, 3), padding=(1, 1)))
        side = relay.nn.conv2d(body, weight(16, 16, 1, 1))
        body = relay.nn.relu(relay.add(relay.nn.bias_add(relay.nn.conv2d(body, weight(16, 16, 3, 3), padding=(1, 1)), weight(16)), side))
        body = relay.concatenate([relay.nn.max_pool2d(body, (2, 2), (2, 2)), relay.nn.avg_pool2d(body, (2, 2), (2, 2))], 1)
        cls.mod = tw.IRModule.from_expr(relay.nn.dense(relay.nn.batch_flatten(relay.nn.conv2d(body, weight(8, 32, 1, 1))), weight(10, 512)))
        cls.data = random.standard_normal((1, 3, 16, 16)).astype("float32")
        cls.floats = cls.run_on_data(cls.mod)

    @classmethod
    def run_on_data(cls, mod):
        module = tw.contrib.graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tw.cpu()))
        module.run(x=cls.data)
        return module.get_output(0).numpy()

    def quantized(self, **settings):
        with relay.quantize.qconfig(**settings):
            return relay.quantize.quantize(self.mod, dataset=[{"x": self.data}])

    def products(self, mod):
        """dtypes of the operands of convolutions and dense layers, in order."""
        found = []
        relay.analysis.post_order_visit(mod["main"], lambda e: found.append(e.args[0].checked_type.dtype) if isinstance(e, relay.Call) and getattr(e.op, "name", "") in
                                        ("nn.conv2d", "nn.dense") else None)
        return found

    def test_modes(self):
        for settings in ({"global_scale": 4.0}, {"calibrate_mode": "kl_divergence", "weight_scale": "max"}, {"calibrate_mode": "percentile", "weight_scale": "max"},
                         {"calibrate_mode": "percentile", "rounding": "TONEAREST", "calibrate_chunk_by": 2}):
            with self.subTest(**settings):
                mod = self.quantized(**settings)
                self.assertEqual(self.products(mod), ["float32", "int8", "int8", "int8", "float32"])
                error = np.abs(self.run_on_data(mod) - self.floats).max() / np.abs(self.floats).max()
                self.assertLess(error, 0.08)
                self.assertGreater(error, 1e-5)  # integers it was

    def test_what_is_skipped(self):
        self.assertEqual(self.products(self.quantized(skip_conv_layers=[1, 3], skip_dense_layer=False)), ["int8", "float32", "int8", "float32", "int8"])

    def test_simulation_is_near_the_integers(self):
        simulated, real = (self.run_on_data(self.quantized(global_scale=4.0, do_simulation=s)) for s in (True, False))
        np.testing.assert_allclose(simulated, real, atol=0.05 * np.abs(self.floats).max())

    def test_settings(self):
        with relay.quantize.qconfig(nbit_input=4, global_scale=2.0) as config:
            self.assertIs(relay.quantize.current_qconfig(), config)
            self.assertEqual(config.get_nbit_by_kind(relay.quantize.QAnnotateKind.INPUT), 4)
            annotated = relay.quantize.annotate()(relay.quantize.prerequisite_optimize(self.mod))
            calibrated = relay.quantize.calibrate()(annotated)
            self.assertIn("0.25f", calibrated.astext(False))  # 2 / 2^3
            self.assertIn("a_max=7f", relay.quantize.realize()(calibrated).astext(False))
        self.assertEqual(relay.quantize.current_qconfig().nbit_input, 8)
        for settings, text in (({"bits": 8}, "no setting 'bits'"), ({"calibrate_mode": "guess"}, "calibrate_mode is"), ({"nbit_input": 16}, "between 2 and 8"),
                               ({"partition_conversions": "enabled"}, "disabled")):
            with self.assertRaisesRegex(ValueError, text):
                relay.quantize.qconfig(**settings)
        with relay.quantize.qconfig(calibrate_mode="kl_divergence"), self.assertRaisesRegex(ValueError, "dataset"):
            relay.quantize.quantize(self.mod)
        with self.assertRaisesRegex(tw.Error, "2 scales are given for"):
            tw.transform.named_pass("QuantizeCalibrate", {"quantize": relay.quantize.current_qconfig()._options(), "scales": [1.0, 2.0]})(annotated)


if __name__ == "__main__":
    unittest.main()
