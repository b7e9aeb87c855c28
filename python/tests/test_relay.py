# SPDX-License-Identifier: Apache-2.0
"""The language from Python: expressions, types, analyses, equality, text and JSON, networks of relay.testing."""
import os
import unittest

import numpy as np

from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.ir import structural_equal
from tilewright.classic.relay import analysis, testing

CLASSIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/data/classic")


class Expressions(unittest.TestCase):
    def test_pickles(self):
        import copy
        import pickle
        module, _ = relay.testing.mlp.get_workload(1)
        x = relay.var("x", shape=(2,))
        for thing in module, module["main"], relay.add(x, x), relay.const(np.arange(3)), relay.TensorType((1, 2), "int8"):
            for again in pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing):
                self.assertIs(type(again), type(thing))
                self.assertTrue(tw.ir.structural_equal(again, thing, map_free_vars=True))

    def test_fields(self):
        x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
        call = relay.nn.dense(x, w, units=3)
        self.assertEqual(call.op.name, "nn.dense")
        self.assertEqual(call.op, relay.op.get("nn.dense"))
        self.assertEqual(call.args, [x, w])
        self.assertNotEqual(x, relay.var("x", shape=(1, 4)))
        self.assertEqual((call.attrs.units, call.attrs["units"], call.attrs.get_int("units")), (3, 3, 3))
        self.assertIn("out_dtype", call.attrs.keys())
        with self.assertRaises(AttributeError):
            call.attrs.unit
        self.assertEqual([int(d) for d in call.checked_type.shape], [1, 3])
        self.assertEqual(call.checked_type.shape[1].value, 3)
        f = relay.Function([x, w], call).with_attr("Compiler", "mine").with_attr({"global_symbol": "f", "Inline": 1})
        self.assertEqual((f.attrs["Compiler"], f.attrs.global_symbol, f.attrs["Inline"]), ("mine", "f", 1))
        self.assertNotIn("Compiler", f.without_attr("Compiler").attrs)
        self.assertEqual(f.params[0].name_hint, "x")
        self.assertEqual(f.checked_type, relay.FuncType([relay.TensorType((1, 4)), relay.TensorType((3, 4))], relay.TensorType((1, 3))))
        self.assertIsNone(relay.var("y").type_annotation)
        np.testing.assert_array_equal(relay.const([1, 2]).data.numpy(), np.array([1, 2], "int32"))
        self.assertEqual(relay.const(1.5).checked_type.dtype, "float32")
        t = relay.Tuple([x, w])
        self.assertEqual((t[1], len(t), relay.TupleGetItem(t, 0).tuple_value), (w, 2, t))
        with self.assertRaisesRegex(tw.Error, "no field 2"):  # as classic: InferType says so, not the constructor
            testing.run_infer_type(relay.TupleGetItem(t, 2))
        with self.assertRaises(TypeError):
            relay.Function([call], call)
        with self.assertRaises(TypeError):
            relay.Call("nn.relu", ["text"])
        with self.assertRaises(tw.Error):
            relay.Call("nn.rleu", [x])
        with self.assertRaises(ValueError):
            relay.nn.dense(x, relay.var("z", shape=(3, 5))).checked_type

    def test_imported_modules_are_seen(self):
        mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 8), float32]) { let %y = nn.relu(%x); if (True) { %y } else { exp(%y) } }')
        let = mod["main"].body
        self.assertEqual(let.value.op.name, "nn.relu")
        self.assertIsInstance(let.body, relay.If)
        self.assertEqual(let.body.false_branch.op.name, "exp")
        self.assertEqual(let.var, let.body.true_branch)

    def test_types(self):
        a = relay.TypeVar("a")
        self.assertEqual(relay.TensorType((1, 2)), relay.TensorType((1, 2), "float32"))
        self.assertNotEqual(relay.TensorType((1, 2)), relay.TensorType((1, 3)))
        self.assertNotEqual(relay.TypeVar("a"), relay.TypeVar("a"))
        f = relay.FuncType([a, relay.TupleType([a])], relay.RefType(a), [a])
        self.assertEqual((f.type_params[0], f.arg_types[1].fields[0], f.ret_type.value), (a, a, a))
        free = relay.TensorType((relay.Any(), tw.tir.Var("n", "int64")), "int8")
        self.assertIsInstance(free.shape[0], relay.Any)
        self.assertIsInstance(free.shape[1], tw.tir.Var)
        self.assertIn("?", str(free))
        b = relay.TypeVar("b")

        class Swap(relay.TypeMutator):
            def visit_type_var(self, tv):
                return b

        self.assertEqual(Swap().visit(relay.TupleType([a, relay.TensorType((1,))])).fields[0], b)
        id_ = relay.Function([relay.Var("x", a)], relay.Var("y", a), a, [a])
        self.assertEqual(analysis.bound_type_vars(id_), [a])
        self.assertEqual(analysis.check_kind(relay.TensorType((1,))), relay.TypeKind.Type)

    def test_polymorphic_functions_as_arguments(self):
        a, b = relay.TypeVar("a"), relay.TypeVar("b")
        x, f, y = relay.Var("x", a), relay.Var("f", relay.FuncType([b], b)), relay.Var("y", b)
        apply = relay.Function([f, y], f(y), b, [b])
        call = apply(relay.Function([x], x, a, [a]), relay.const(0, "int32"))
        self.assertEqual(relay.testing.run_infer_type(call).checked_type, relay.scalar_type("int32"))

    def test_equality_and_hash(self):
        def net(name, op):
            x = relay.var(name, shape=(2,))
            return relay.Function([x], op(x) + x)

        a, b, c = net("x", relay.exp), net("y", relay.exp), net("x", relay.log)
        self.assertTrue(structural_equal(a, b))
        self.assertFalse(structural_equal(a, c))
        self.assertEqual(tw.ir.structural_hash(a), tw.ir.structural_hash(b))
        self.assertNotEqual(tw.ir.structural_hash(a), tw.ir.structural_hash(c))
        tw.ir.assert_structural_equal(a, b)
        with self.assertRaises(ValueError):
            tw.ir.assert_structural_equal(a, c)
        x, y = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
        self.assertFalse(structural_equal(relay.exp(x), relay.exp(y)))
        self.assertTrue(structural_equal(relay.exp(x), relay.exp(y), map_free_vars=True))
        mod = tw.IRModule.from_expr(a)
        loaded = tw.ir.load_json(tw.ir.save_json(mod))
        self.assertTrue(structural_equal(relay.transform.InferType()(mod), relay.transform.InferType()(loaded)))
        self.assertEqual(tw.IRModule.from_text(mod.astext()), relay.transform.InferType()(mod))
        with self.assertRaises(tw.Error):
            tw.ir.load_json("{}")

    def test_modules(self):
        x = relay.var("x", shape=(2,))
        mod = tw.IRModule({"main": relay.Function([x], relay.exp(x))})
        f = relay.GlobalVar("f")
        mod[f] = relay.Function([x], relay.log(x))
        self.assertEqual(sorted(g.name_hint for g in mod.get_global_vars()), ["f", "main"])
        self.assertEqual(mod["f"], mod[mod.get_global_var("f")])
        self.assertEqual(set(mod.functions), {relay.GlobalVar("f"), relay.GlobalVar("main")})
        self.assertIn("f", mod)
        with self.assertRaises(ValueError):
            mod["g"]
        with self.assertRaises(ValueError):
            mod.get_global_var("g")
        other = tw.IRModule.from_expr(relay.sqrt(x))
        mod.update(other)
        self.assertEqual(mod["main"].body.op.name, "sqrt")
        with self.assertRaises(TypeError):
            mod["main"] = 3
        named = mod.with_attr("author", "me")
        self.assertEqual((named.get_attr("author"), mod.get_attr("author")), ("me", None))
        self.assertEqual(relay.fromtext(named.astext()).get_attr("author"), "me")
        self.assertEqual(mod.with_attr("author", 3).attrs["author"].value, 3)


class Analyses(unittest.TestCase):
    def test_variables(self):
        x, y, z = (relay.var(n, shape=(2,)) for n in "xyz")
        e = relay.Let(y, relay.exp(x), y + z)
        self.assertEqual(analysis.free_vars(e), [x, z])
        self.assertEqual(analysis.bound_vars(e), [y])
        self.assertEqual(set(analysis.all_vars(e)), {x, y, z})
        self.assertTrue(analysis.well_formed(e))
        self.assertFalse(analysis.well_formed(relay.Let(y, x, relay.Let(y, z, y))))
        self.assertFalse(analysis.well_formed(relay.Tuple([relay.Function([y], y), y])) and analysis.free_vars(relay.Function([y], y)))
        self.assertEqual(relay.bind(relay.Function([x, z], x + z), {x: relay.const([1.0, 2.0])}).params, [z])

    def test_questions_about_networks(self):
        mod, _ = testing.mlp.get_workload(1)
        self.assertEqual(analysis.count_layers(mod["main"], ["nn.dense"]), 3)
        self.assertEqual(analysis.list_op_freqs(mod)["nn.dense"], 3)
        self.assertEqual(analysis.get_total_mac_number(mod["main"]), 784 * 128 + 128 * 64 + 64 * 10)
        fused = analysis.extract_fused_functions(mod)
        self.assertTrue(any("dense" in name for name in fused), list(fused))
        names = []
        analysis.post_order_visit(mod["main"], lambda e: names.append(e.op.name) if isinstance(e, relay.Call) else None)
        self.assertEqual((names[0], names[-1]), ("nn.batch_flatten", "nn.softmax"))
        sub = analysis.extract_intermdeiate_expr(mod, 1)
        self.assertEqual(sub["main"].body.op.name, "nn.dense")
        self.assertIn(analysis.Feature.fCall, analysis.detect_feature(mod["main"]))
        self.assertNotIn(analysis.Feature.fMatch, analysis.detect_feature(mod))
        with_prelude = tw.IRModule()
        relay.Prelude(with_prelude)
        self.assertIn(analysis.Feature.fMatch, analysis.detect_feature(with_prelude))

    def test_match_cases(self):
        mod = tw.IRModule()
        p = relay.Prelude(mod)
        v, h, t = relay.Var("v"), relay.Var("h"), relay.Var("t")
        clause = relay.Clause(relay.PatternConstructor(p.cons, [relay.PatternVar(h), relay.PatternVar(t)]), h)
        left = analysis.unmatched_cases(relay.Match(v, [clause], complete=False), mod)
        self.assertEqual([c.constructor.name_hint for c in left], ["Nil"])
        self.assertEqual(analysis.unmatched_cases(relay.Match(v, [clause, relay.Clause(relay.PatternWildcard(), h)]), mod), [])


class TensorArrays(unittest.TestCase):
    x = np.arange(6, dtype="float32").reshape(3, 2)

    def run_both(self, mod, *args):
        """The result of the interpreter and of the virtual machine, which must agree."""
        text = relay.fromtext(mod.astext())
        tw.ir.assert_structural_equal(text, mod)
        results = [relay.create_executor(kind, mod=mod, device=tw.cpu(), target="llvm").evaluate()(*args) for kind in ("debug", "vm")]
        arrays = [(r.fields[0] if hasattr(r, "fields") else r).numpy() for r in results]
        np.testing.assert_array_equal(*arrays)
        return arrays[0]

    def test_of_any_rank(self):
        mod = tw.IRModule()
        p = relay.Prelude(mod)
        x = relay.var("x", shape=(3, 2))
        f = {name: p.get_global_var("tensor_array" + name, "float32") for name in ("", "_unstack_tensor2", "_stack", "_read", "_write", "_gather", "_scatter", "_split", "_concat")}
        one, two = (p.get_tensor_ctor(c, "float32") for c in ("tensor1", "tensor2"))
        self.assertEqual(p.get_type("tensor_t", "float32").name_hint, "tensor_float32_t")
        rows = f["_unstack_tensor2"](x)
        ints = lambda *v: relay.const(np.array(v, "int32"))  # noqa: E731
        cases = {"reversed": (f["_stack"](p.rev(rows)), self.x[::-1]), "read": (f["_read"](rows, relay.const(1)), self.x[1]),
                 "gathered": (f["_gather"](rows, ints(2, 0)), self.x[[2, 0]]),
                 "split": (f["_read"](f["_split"](f[""](relay.const(2)), two(x), ints(1, 2)), relay.const(1)), self.x[1:]),
                 "and joined": (f["_concat"](f["_split"](f[""](relay.const(2)), two(x), ints(1, 2))), self.x),
                 "scattered": (f["_stack"](f["_scatter"](rows, ints(1), p.cons(one(relay.const([9.0, 8.0])), p.nil()))), np.array([[0, 1], [9, 8], [4, 5]]))}
        for name, (body, expected) in cases.items():
            with self.subTest(name):
                mod["main"] = relay.Function([x], body)
                np.testing.assert_array_equal(self.run_both(mod, self.x), expected)

    def test_of_one_shape(self):
        for shape in ((3, 2), (relay.Any(), 2)):
            mod = tw.IRModule()
            p = relay.Prelude(mod)
            arrays = relay.prelude.StaticTensorArrayOps(p, "float32", shape)
            arrays.register()
            x = relay.var("x", shape=(3, 2))
            tensor = arrays.get_ctor("tensor_constructor")
            both = p.cons(tensor(x), p.cons(tensor(x), p.nil()))
            self.assertEqual(str(relay.prelude.get_tensor_array_shape(both, "float32", p)), str(tuple(shape)))
            for name, body, expected in (("data", arrays.get_global_var("tensor_get_data")(tensor(x)), self.x),
                                         ("stack", arrays.get_global_var("tensor_array_stack")(both), np.stack([self.x] * 2)),
                                         ("concat", arrays.get_global_var("tensor_array_concat")(arrays.get_global_var("tensor_array_split")(
                                             p.get_global_var_static("tensor_array", "float32", (relay.Any(), 2))(relay.const(2)), tensor(x),
                                             relay.const(np.array([2, 1], "int32")))), self.x)):
                with self.subTest(shape=str(shape), name=name):
                    mod["main"] = relay.Function([x], body)
                    np.testing.assert_array_equal(self.run_both(mod, self.x), expected)

    def test_of_known_operands(self):
        mod = tw.IRModule()
        arrays = relay.prelude.StaticTensorArrayOps(relay.Prelude(mod), "float32", (relay.Any(), 2))
        arrays.register()
        arrays.define_tensor_array_split((4, 2), (3,), True)
        self.assertEqual([str(t) for t in mod[arrays.get_name("tensor_array_split")].checked_type.arg_types][1:], ["static_tensor_float32_4_2_t", "Tensor[(3), int32]"])
        name = arrays.get_name("tensor_array_scatter", {"indices": (5,)})
        self.assertEqual(name, "tensor_array_scatter_float32_any_2_indices_5")
        arrays.define_tensor_array_scatter((5,))
        self.assertEqual(str(mod[name].checked_type.arg_types[1]), "Tensor[(5), int32]")
        with self.assertRaises(ValueError):
            arrays.get_global_var("tensor_array_fold")


class Networks(unittest.TestCase):
    def test_are_the_classic_ones(self):
        for name, arguments in {"mlp": {"batch_size": 1}, "dcgan": {"batch_size": 1}, "squeezenet": {}, "mobilenet": {}, "resnet": {"num_layers": 18},
                                "vgg": {"batch_size": 1}, "inception_v3": {}}.items():
            with self.subTest(name), open(os.path.join(CLASSIC, name + ".txt"), encoding="utf-8") as file:
                made, params = getattr(testing, name).get_workload(**arguments)
                expected = relay.fromtext(file.read())
                self.assertEqual(len(params), len(expected["main"].params) - 1)
                tw.ir.assert_structural_equal(relay.transform.InferType()(made)["main"], expected["main"])

    def test_others_have_the_right_types(self):
        for mod, shape in ((testing.densenet.get_workload(batch_size=1)[0], [1, 1000]), (testing.lstm.get_workload(2, 8)[0], [1, 8]), (testing.dqn.get_workload(1)[0], [1, 18])):
            self.assertEqual([int(d) for d in relay.transform.InferType()(mod)["main"].checked_type.ret_type.shape], shape)

    def test_lstm_runs(self):
        mod, params = testing.lstm.get_workload(2, 4)
        names = [p.name_hint for p in mod["main"].params]
        inputs = {n: np.ones((1, 4), "float32") for n in names if n.startswith("data") and n not in params}
        for kind in ("graph", "vm"):
            out = relay.create_executor(kind, mod=mod, params=params).evaluate()(**inputs)
            self.assertEqual(out.shape, (1, 4))

    def test_layers_make_their_parameters(self):
        data = relay.var("data", shape=(1, 3, 8, 8))
        x = testing.layers.conv2d(data, channels=4, kernel_size=(3, 3), padding=(1, 1), name="conv")
        x = relay.nn.relu(testing.layers.batch_norm_infer(x, name="bn"))
        x = testing.layers.dense_add_bias(relay.nn.batch_flatten(x), units=5, name="fc")
        mod, params = testing.create_workload(x)
        self.assertEqual(params["conv_weight"].shape, (4, 3, 3, 3))
        self.assertEqual(params["fc_weight"].shape, (5, 256))
        self.assertEqual(relay.create_executor("graph", mod=mod, params=params).evaluate()(np.ones((1, 3, 8, 8), "float32")).shape, (1, 5))

    def test_gradients(self):
        x, y = relay.var("x", shape=(2, 3), dtype="float64"), relay.var("y", shape=(2, 3), dtype="float64")
        testing.check_grad(relay.Function([x, y], relay.tanh(x * y) + relay.exp(x)))


if __name__ == "__main__":
    unittest.main()
