# SPDX-License-Identifier: Apache-2.0
"""Operators of scripts with attributes and gradients in texts, files, patterns and builds; printed programs."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi, ir
from tvm.relay import transform
from tvm.relay.testing import run_infer_type, run_opt_pass
import numpy as np, json, re
import tvm


V = '#[version = "0.0.5"]\n'


def fresh(n, inputs=1):
    relay.op.op.register(n, "d")
    o = relay.op.get(n)
    o.set_num_inputs(inputs)
    for i in range(inputs):
        o.add_argument(f"a{i}", "Tensor", "")
    return o


@program
def rel_uses_shape_and_dtype():
    o = fresh("suite.pad_one")
    o.add_type_rel("suite_pad", lambda ts, at: relay.TensorType([d + 2 for d in ts[0].shape], ts[0].dtype))
    x = relay.var("x", shape=(3, 4), dtype="int16")
    assert run_infer_type(relay.Call(o, [x])).checked_type == relay.TensorType((5, 6), "int16")


@program
def rel_two_inputs_checks():
    o = fresh("suite.same2", 2)

    def rel(ts, at):
        if tuple(ts[0].shape) != tuple(ts[1].shape):
            raise ValueError("shapes differ")
        return ts[0]
    o.add_type_rel("suite_same2", rel)
    x, y = (relay.var("x", shape=(2,)), relay.var("y", shape=(3,)))
    assert run_infer_type(relay.Call(o, [x, x])).checked_type == relay.TensorType((2,))
    with refusing(Exception):
        run_infer_type(relay.Call(o, [x, y]))


@program
def script_op_attrs_kinds():
    o = fresh("suite.attrs")
    o.set_attrs_type_key("DictAttrs")
    seen = {}

    def rel(ts, at):
        seen.update(dict(at.items()) if at is not None else {})
        return ts[0]
    o.add_type_rel("suite_attrs", rel)
    x = relay.var("x", shape=(2,))
    c = relay.Call(o, [x], tvm.ir.make_node("DictAttrs", axis=1, name="q", scale=0.5, dims=[1, 2]))
    run_infer_type(c)
    assert seen["axis"] == 1
    assert seen["name"] == "q"
    assert seen["scale"] == 0.5
    assert list(seen["dims"]) == [1, 2]
    assert c.attrs.axis == 1
    assert c.attrs["name"] == "q"
    assert isinstance(c.attrs, tvm.ir.attrs.DictAttrs)


@program
def script_op_attrs_text_round():
    o = fresh("suite.text")
    o.set_attrs_type_key("DictAttrs")
    o.add_type_rel("suite_text", lambda ts, at: ts[0])
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.Call(o, [x], tvm.ir.make_node("DictAttrs", axis=1, name="q")))
    t = f.astext()
    assert "axis=1" in t
    assert 'name="q"' in t
    g = tvm.parser.parse_expr(t)
    assert g.body.attrs.axis == 1
    assert tvm.ir.structural_equal(g, f)


@program
def script_op_equal_by_attrs():
    o = fresh("suite.eq")
    o.add_type_rel("suite_eq", lambda ts, at: ts[0])
    x = relay.var("x", shape=(2,))
    a, b, c = (relay.Function([x], relay.Call(o, [x], tvm.ir.make_node("DictAttrs", k=k))) for k in (1, 1, 2))
    assert tvm.ir.structural_equal(a, b)
    assert not tvm.ir.structural_equal(a, c)


@program
def script_op_json_round():
    o = fresh("suite.json")
    o.add_type_rel("suite_json", lambda ts, at: ts[0])
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.Call(o, [x], tvm.ir.make_node("DictAttrs", k=3, s="t")))
    g = tvm.ir.load_json(tvm.ir.save_json(f))
    assert tvm.ir.structural_equal(f, g)
    assert g.body.attrs.k == 3


@program
def script_op_json_round_plain():
    o = fresh("suite.json2")
    o.add_type_rel("suite_json2", lambda ts, at: ts[0])
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.Call(o, [x]))
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(f)), f)


@program
def script_op_compute_uses_attrs():
    o = fresh("suite.scale")
    o.set_attrs_type_key("DictAttrs")
    o.add_type_rel("suite_scale", lambda ts, at: ts[0])
    relay.op.op.register_pattern("suite.scale", relay.op.OpPattern.ELEMWISE)
    relay.op.op.register_compute("suite.scale", lambda attrs, ins, out: [te.compute(ins[0].shape, lambda *i: ins[0](*i) * float(attrs["k"]))])
    relay.op.op.register_injective_schedule("suite.scale")
    x = relay.var("x", shape=(3,))
    a = numbers(3)
    np.testing.assert_allclose(evaluate(relay.Function([x], relay.Call(o, [x], tvm.ir.make_node("DictAttrs", k=2.5))), a), a * 2.5, rtol=1e-06)


@program
def script_op_in_expr_mutator():
    o = fresh("suite.mut")
    o.add_type_rel("suite_mut", lambda ts, at: ts[0])
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.tanh(relay.Call(o, [x], tvm.ir.make_node("DictAttrs", k=3))))

    class M(relay.ExprMutator):

        def visit_call(self, c):
            n = super().visit_call(c)
            return relay.Call(relay.op.get("exp"), n.args) if n.op.name == "tanh" else n
    g = M().visit(f)
    assert g.body.op.name == "exp"
    assert g.body.args[0].attrs.k == 3


@program
def script_op_patterns():
    from tvm.relay.dataflow_pattern import is_op, wildcard
    o = fresh("suite.pat")
    o.add_type_rel("suite_pat", lambda ts, at: ts[0])
    x = relay.var("x", shape=(2,))
    c = relay.Call(o, [x], tvm.ir.make_node("DictAttrs", k=3))
    assert is_op("suite.pat")(wildcard()).match(c)
    assert is_op("suite.pat")(wildcard()).has_attr({"k": 3}).match(c)
    assert not is_op("suite.pat")(wildcard()).has_attr({"k": 4}).match(c)


@program
def script_op_gradient_two_inputs():
    o = fresh("suite.mul2", 2)
    o.add_type_rel("Broadcast")
    relay.op.op.register_pattern("suite.mul2", 1)
    relay.op.op.register_compute("suite.mul2", lambda at, ins, out: [topi.multiply(ins[0], ins[1])])
    relay.op.op.register_broadcast_schedule("suite.mul2")

    @relay.op.register_gradient("suite.mul2")
    def g(orig, grad):
        return [grad * orig.args[1], grad * orig.args[0]]
    x, y = (relay.var("x", shape=(3,)), relay.var("y", shape=(3,)))
    f = run_infer_type(relay.Function([x, y], relay.Call(o, [x, y])))
    a, b = (numbers(3), numbers(3, seed=2))
    v, (da, db) = relay.create_executor("debug").evaluate(run_infer_type(transform.gradient(f)))(a, b)
    np.testing.assert_allclose(da.numpy(), b, rtol=1e-06)
    np.testing.assert_allclose(db.numpy(), a, rtol=1e-06)


@program
def gradient_override_builtin():
    from tvm.relay.testing.temp_op_attr import TempOpAttr
    x = relay.var("x", shape=(3,))
    f = run_infer_type(relay.Function([x], relay.nn.relu(x)))
    a = numbers(3)
    with TempOpAttr("nn.relu", "FPrimalGradient", lambda orig, g: [g * relay.const(7.0)]):
        v, (d,) = relay.create_executor("debug").evaluate(run_infer_type(transform.gradient(f)))(a)
        np.testing.assert_allclose(d.numpy(), np.full(3, 7.0))
    v, (d,) = relay.create_executor("debug").evaluate(run_infer_type(transform.gradient(f)))(a)
    np.testing.assert_allclose(d.numpy(), (a > 0).astype("float32"))


@program
def op_attr_registries():
    tvm.ir.register_op_attr("tanh", "suite.x", 1)
    assert relay.op.get("tanh").get_attr("suite.x") == 1
    tvm.ir.register_op_attr("tanh", "suite.x", 2, 15)
    assert relay.op.get("tanh").get_attr("suite.x") == 2
    tvm.ir.register_op_attr("tanh", "suite.x", 3, 5)
    assert relay.op.get("tanh").get_attr("suite.x") == 2
    relay.op.get("tanh").reset_attr("suite.x")
    assert relay.op.get("tanh").get_attr("suite.x") is None


@program
def print_nested_function_call():
    x, y = (relay.var("x", "float32"), relay.var("y", "float32"))
    f = relay.Function([y], y + y)
    t = relay.Call(f, [x]).astext()
    assert "fn (%y: float32)" in t
    assert "free_var %x: float32;" in t


@program
def print_free_vars():
    x, y = (relay.var("x"), relay.var("y", shape=(1, 2)))
    t = (x + y).astext()
    assert t.splitlines()[1:3] == ["free_var %x;", "free_var %y: Tensor[(1, 2), float32];"]


@program
def print_tuple_projection():
    x = relay.var("x", shape=(4, 2))
    s = relay.split(x, 2, 1)
    t = relay.Function([x], s[0] + s[1]).astext()
    assert "split(%x, indices_or_sections=2, axis=1)" in t
    assert "%0.0" in t
    assert "%0.1" in t
    assert "%1 = %0.0;" in t or "add(%1, %2)" in t


@program
def print_refs_and_matches():
    x = relay.var("x", "int32")
    r = relay.var("r")
    t = relay.Function([x], relay.Let(r, relay.RefCreate(x), relay.RefRead(r))).astext()
    assert "let %r = ref(%x)" in t
    assert "ref_read(%r)" in t


@program
def print_global_call():
    m = tvm.IRModule()
    x = relay.var("x", "int32")
    f = relay.GlobalVar("f")
    m[f] = relay.Function([x], f(x - relay.const(1)), relay.scalar_type("int32"))
    t = m.astext()
    assert "def @f(%x: int32) -> int32 {" in t
    assert "@f(%0)" in t


@program
def print_polymorphic():
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    t = relay.Function([x], x, a, [a]).astext()
    assert "fn [a](%x: a) -> a {" in t, t


@program
def print_type_definitions():
    m = tvm.IRModule()
    g = relay.GlobalTypeVar("Either")
    a, b = (relay.TypeVar("a"), relay.TypeVar("b"))
    m[g] = relay.TypeData(g, [a, b], [relay.Constructor("Left", [a], g), relay.Constructor("Right", [b], g)])
    t = m.astext()
    assert "type Either[a, b] {" in t
    assert "  Left(a)," in t
    assert "  Right(b)," in t


@program
def print_meta_two_constants():
    c, d = (relay.const(np.zeros((2,), "float32")), relay.const(np.ones((2,), "float32")))
    t = relay.Tuple([c, d, c]).astext()
    assert "meta[relay.Constant][0]" in t
    assert "meta[relay.Constant][1]" in t
    assert "[2]" not in t.split("#[metadata]")[0].replace("meta[relay.Constant]", "")


@program
def print_bool_ops():
    x = relay.var("x", "bool")
    t = relay.logical_not(x).astext()
    assert "logical_not(%x)" in t
    t = relay.If(x, relay.const(1), relay.const(2)).astext()
    assert "if (%x) {" in t
    assert "} else {" in t


@program
def str_vs_astext():
    c = relay.const(np.zeros(3, "float32"))
    m = tvm.IRModule.from_expr(c)
    assert "#[metadata]" in m.astext()
    assert "#[metadata]" not in m.astext(show_meta_data=False)
    assert "#[metadata]" not in str(m)


@program
def parse_then_equal_zoo():
    for n in ("mlp", "dcgan"):
        mod, _ = getattr(relay.testing, n).get_workload(1)
        tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)
