# SPDX-License-Identifier: Apache-2.0
"""Operators that scripts register, their attributes, gradients and strategies, and what the printer says of programs and nodes."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi
from tvm.relay import transform, op as _op
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr
import numpy as np
import tvm, re
import tvm.testing


def registered(name, inputs, relation=None, attrs=None):
    """A new operator of a script, with its number of operands, the relation of its types, and its kind of attributes."""
    relay.op.op.register(name, "")
    made = relay.op.op.get(name)
    made.set_num_inputs(inputs)
    if attrs:
        made.set_attrs_type_key(attrs)
    if relation:
        made.add_type_rel(relation)
    return made


def fuses_elementwise(name):
    relay.op.op.register_pattern(name, relay.op.OpPattern.ELEMWISE)
    relay.op.op.register_injective_schedule(name)


@program
def op_attr_decorator():
    log_op = relay.op.get("log")

    @tvm.ir.register_op_attr("exp", "suite.ftest")
    def test(x):
        return x + 1
    assert log_op.num_inputs == 1
    assert log_op.get_attr("suite.ftest") is None
    assert relay.op.get("exp").get_attr("suite.ftest")(1) == 2
    assert test(2) == 3 or test is None


@program
def op_reset_attr():

    def add1(x):
        return x + 1

    def add2(x):
        return x + 2
    tvm.ir.register_op_attr("exp", "suite.fadd1", add1)
    tvm.ir.register_op_attr("log", "suite.fadd1", add1)
    tvm.ir.register_op_attr("log", "suite.fadd2", add2)
    log_op = relay.op.get("log")
    log_op.reset_attr("suite.fadd1")
    assert log_op.get_attr("suite.fadd1") is None
    assert relay.op.get("exp").get_attr("suite.fadd1")(1) == 2
    assert log_op.get_attr("suite.fadd2")(1) == 3


@program
def op_temp_attr_restores():

    def add1(x):
        return x + 1

    def add2(x):
        return x + 2
    tvm.ir.register_op_attr("sqrt", "suite.t", add1)
    with TempOpAttr("sqrt", "suite.t", add2):
        assert relay.op.get("sqrt").get_attr("suite.t")(1) == 3
    assert relay.op.get("sqrt").get_attr("suite.t")(1) == 2


@program
def op_level1():
    x = relay.Var("x")
    for op_name in ["log", "exp", "sqrt", "rsqrt", "tanh"]:
        y = getattr(relay, op_name)(x)
        assert y.op.name == op_name
        assert y.op.support_level == 1
        assert y.args[0] == x


@program
def op_level3():
    x = relay.Var("x")
    for op_name in ["ceil", "floor", "trunc", "round", "abs", "negative"]:
        y = getattr(relay, op_name)(x)
        assert y.op.name == op_name
        assert y.op.support_level == 3
        assert y.args[0] == x


@program
def custom_op_register_all():
    op_name = "suite.custom_op"
    relay.op.op.register(op_name, "code(Add two tensor with inner broadcasting.)code")
    op = relay.op.op.get(op_name)
    op.set_num_inputs(2)
    op.add_argument("data_0", "Tensor", "The input data tensor.")
    op.add_argument("data_1", "Tensor", "The input data tensor.")
    op.set_attrs_type_key("DictAttrs")
    op.add_type_rel("Broadcast")
    op.set_support_level(1)
    relay.op.op.register_pattern(op_name, relay.op.op.OpPattern.ELEMWISE)
    relay.op.op.register_stateful(op_name, False)
    assert op.name == op_name
    assert op.num_inputs == 2
    assert op.get_attr("TOpPattern") == relay.op.op.OpPattern.ELEMWISE
    assert op.get_attr("TOpIsStateful") == False
    assert op.description == "code(Add two tensor with inner broadcasting.)code"
    assert op.support_level == 1
    assert [a.name for a in op.arguments] == ["data_0", "data_1"]
    with refusing(tvm.error.TVMError):
        relay.op.op.register(op_name)


@program
def custom_op_infer_broadcast():
    op_name = "suite.custom_infer"
    relay.op.op.register(op_name, "x")
    relay.op.op.get(op_name).set_num_inputs(2)
    relay.op.op.get(op_name).add_argument("data_0", "Tensor", "in")
    relay.op.op.get(op_name).add_argument("data_1", "Tensor", "in")
    relay.op.op.get(op_name).set_attrs_type_key("DictAttrs")
    relay.op.op.get(op_name).add_type_rel("Broadcast")
    relay.op.op.get(op_name).set_support_level(1)
    x, y = (relay.var("x", shape=(4, 1)), relay.var("y", shape=(1, 5)))
    z = relay.Call(tvm.ir.Op.get(op_name), [x, y], tvm.ir.make_node("DictAttrs"))
    assert run_infer_type(z).checked_type == relay.TensorType((4, 5))


@program
def custom_op_rel_python():
    op_name = "suite.custom_rel"
    op = relay.op.op
    op.register(op_name, "doc")
    op.get(op_name).set_num_inputs(1)
    op.get(op_name).add_argument("data_0", "Tensor", "in")
    op.get(op_name).set_attrs_type_key("DictAttrs")

    def custom_rel(args, attrs):
        assert len(args) == 1
        t = args[0]
        return tvm.ir.TensorType([t.shape[0], t.shape[1] * 2], t.dtype)
    op.get(op_name).add_type_rel("suite_custom_rel", custom_rel)
    x = relay.var("x", shape=(4, 3), dtype="int8")
    y = run_infer_type(relay.Call(op.get(op_name), [x], tvm.ir.make_node("DictAttrs"), []))
    assert y.checked_type == relay.TensorType((4, 6), "int8")


@program
def custom_op_attrs_seen():
    n = "suite.attrs_seen"
    o = registered(n, 1, attrs="DictAttrs")
    seen = []

    def rel(args, attrs):
        seen.append(int(attrs.k))
        return relay.TensorType([int(attrs["k"])], args[0].dtype)
    o.add_type_rel("suite_attrs_seen", rel)
    x = relay.var("x", shape=(2,))
    call = relay.Call(o, [x], tvm.ir.make_node("DictAttrs", k=7))
    assert run_infer_type(call).checked_type == relay.TensorType((7,))
    assert seen
    assert seen[0] == 7
    assert "k=7" in call.astext()


@program
def custom_op_prints_and_parses():
    n = "suite.printed"
    o = registered(n, 2, "Broadcast", attrs="DictAttrs")
    x, y = (relay.var("x", shape=(2,)), relay.var("y", shape=(2,)))
    f = relay.Function([x, y], relay.Call(o, [x, y]))
    text = f.astext()
    assert "suite.printed(%x, %y)" in text
    same(tvm.parser.parse_expr(text), f)


@program
def custom_op_in_vm_and_tuple():
    n = "suite.two_out"
    o = registered(n, 1)
    o.add_type_rel("suite_two_out", lambda args, attrs: relay.TupleType([args[0], args[0]]))
    relay.op.op.register_pattern(n, relay.op.OpPattern.OPAQUE)

    @relay.op.op.register_compute(n)
    def comp(attrs, ins, out):
        x = ins[0]
        return [te.compute(x.shape, lambda *i: x(*i) * 2.0), te.compute(x.shape, lambda *i: x(*i) - 1.0)]
    relay.op.op.register_schedule(n, lambda attrs, outs, target: te.create_schedule([t.op for t in outs]))
    x = relay.var("x", shape=(3,))
    c = relay.Call(o, [x])
    f = relay.Function([x], relay.add(relay.TupleGetItem(c, 0), relay.TupleGetItem(c, 1)))
    a = numbers(3)
    for k in ("graph", "vm"):
        np.testing.assert_allclose(evaluate(f, a, kind=k), a * 2 + a - 1, rtol=1e-06)


@program
def register_strategy_by_script():
    n = "suite.strategy"
    o = registered(n, 1, "Identity")
    relay.op.op.register_pattern(n, relay.op.OpPattern.OPAQUE)

    @lambda f: relay.op.op.register_strategy(n, f)
    def strat(attrs, inputs, out_type, target):
        s = relay.op.OpStrategy()
        s.add_implementation(lambda attrs, ins, out: [topi.negative(ins[0])], lambda attrs, outs, target: topi.generic.schedule_injective(outs), name="suite.neg", plevel=10)
        return s
    x = relay.var("x", shape=(3,))
    a = numbers(3)
    np.testing.assert_allclose(evaluate(relay.Function([x], relay.Call(o, [x])), a), -a)


@program
def op_module_things():
    assert isinstance(relay.op.get("add"), relay.op.Op)
    assert tvm.ir.Op is relay.op.Op
    assert relay.op.op.OpPattern is relay.op.OpPattern
    names = tvm.ir.Op.list_op_names()
    assert "nn.relu" in list(names)
    assert len(names) > 300
    assert relay.op.get("nn.relu").same_as(relay.op.get("nn.relu"))
    o = relay.op.get("nn.conv2d")
    assert o.num_inputs == 2
    assert o.attrs_type_key == "relay.attrs.Conv2DAttrs"
    assert o.support_level == 2
    assert len(o.arguments) == 2
    assert o.arguments[0].name == "data"
    assert o.arguments[1].name == "weight"


@program
def debug_op():
    called = []

    def cb(x):
        called.append(x.numpy())
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.op.debug(relay.add(x, x), cb))
    a = numbers(2)
    out = evaluate(f, a, kind="debug")
    np.testing.assert_allclose(out, a + a)
    assert len(called) == 1
    np.testing.assert_allclose(called[0], a + a)


@program
def register_gradient_override():
    from tvm.relay.op import register_gradient
    n = "suite.cube"
    o = registered(n, 1, "Identity")
    fuses_elementwise(n)
    relay.op.op.register_compute(n, lambda attrs, ins, out: [te.compute(ins[0].shape, lambda *i: ins[0](*i) * ins[0](*i) * ins[0](*i))])

    @register_gradient(n)
    def grad(orig, g):
        v = orig.args[0]
        return [g * relay.const(3.0) * v * v]
    x = relay.var("x", shape=(3,))
    f = run_infer_type(relay.Function([x], relay.Call(o, [x])))
    g = run_infer_type(transform.gradient(f))
    a = numbers(3)
    out, (da,) = relay.create_executor("debug").evaluate(run_infer_type(transform.gradient(f)))(a)
    np.testing.assert_allclose(out.numpy(), a ** 3, rtol=1e-05)
    np.testing.assert_allclose(da.numpy(), 3 * a * a, rtol=1e-05)


@program
def first_order_grad_of_script_op():
    n = "suite.square"
    o = registered(n, 1, "Identity")
    fuses_elementwise(n)
    relay.op.op.register_compute(n, lambda attrs, ins, out: [te.compute(ins[0].shape, lambda *i: ins[0](*i) * ins[0](*i))])
    tvm.ir.register_op_attr(n, "FPrimalGradient", lambda orig, g: [g * relay.const(2.0) * orig.args[0]])
    x = relay.var("x", shape=(3,))
    f = run_infer_type(relay.Function([x], relay.sum(relay.Call(o, [relay.tanh(x)]))))
    a = numbers(3)
    for mode in ("first_order", "higher_order"):
        out, (da,) = relay.create_executor("debug").evaluate(run_infer_type(transform.gradient(f, mode=mode)))(a)
        t = np.tanh(a)
        np.testing.assert_allclose(da.numpy(), 2 * t * (1 - t * t), rtol=0.0001, atol=1e-05)


@program
def astext_of_func():
    x = relay.var("x", "float32")
    y = relay.var("y", "float32")
    z = relay.add(x, y)
    z = relay.add(z, z)
    f = relay.Function([x, y], z)
    assert f.astext().startswith('#[version = "0.0.5"]\n')
    assert str(f).strip()
    assert "add(%0, %0)" in str(f)


@program
def print_meta_data():
    n, c, h, w = (te.size_var("n"), 10, 224, 224)
    x = relay.var("x", shape=(1, c, h, w))
    func = relay.Function([x], relay.const(np.random.rand(2, 3)))
    txt = func.astext()
    assert "meta[relay.Constant][0]" in txt
    assert "#[metadata]" in txt
    assert '"root"' in txt
    same(tvm.parser.parse_expr(txt), func)
    assert "#[metadata]" not in func.astext(show_meta_data=False)
    assert "meta[relay.Constant][0]" in func.astext(show_meta_data=False)


@program
def call_attrs_print():
    x = relay.var("x")
    z = relay.nn.conv2d(x, relay.var("w"), strides=(2, 1), padding=(1, 1), channels=10, kernel_size=(3, 3), groups=2, out_dtype="int32")
    t = z.astext()
    for want in ("strides=[2, 1]", "padding=[1, 1, 1, 1]", "groups=2", "channels=10", "kernel_size=[3, 3]", 'out_dtype="int32"'):
        assert want in t, (want, t)
    assert "data_layout" not in t
    assert "dilation" not in t


@program
def type_annotated_print():
    x = relay.var("x", shape=(2, 3))
    f = run_infer_type(relay.Function([x], relay.nn.relu(x)))
    assert "-> Tensor[(2, 3), float32]" in f.astext()
    assert "nn.relu(%x) /* ty=Tensor[(2, 3), float32] */" in f.astext()


@program
def let_inlining():
    tup = relay.Tuple([relay.const(0), relay.const(0)])
    x = relay.var("x")
    assert relay.Let(x, tup, tup).astext() == '#[version = "0.0.5"]\n%0 = (0, 0);\nlet %x = %0;\n%0'
    assert relay.Let(x, tup, x).astext() == '#[version = "0.0.5"]\nlet %x = (0, 0);\n%x'


@program
def null_attribute():
    x = relay.var("x")
    y = relay.var("y")
    z = relay.Function([x], y)
    z = z.with_attr("TestAttribute", None)
    txt = z.astext()
    assert "TestAttribute=None" in txt, txt


@program
def span_print():
    x = relay.var("x", shape=(3, 2))
    y = relay.var("y")
    one = relay.const(100000000000.0, dtype="float32")
    z = relay.add(x, one)
    z = relay.Call(z.op, z.args, z.attrs, z.type_args, relay.Span(relay.SourceName("Add0"), 0, 0, 0, 0))
    z = relay.Call(z.op, [z, z], z.attrs, z.type_args, relay.Span(relay.SourceName("Add1"), 0, 0, 0, 0))
    f = relay.Function([x, y], z)
    txt = f.astext()
    assert "Add0" in txt
    assert "Add1" in txt


@program
def optional_info():
    c = relay.const(1)
    call = relay.add(c, c)
    m = tvm.IRModule.from_expr(call)
    m = relay.transform.InferType()(m)
    txt = m.astext()
    assert txt.count("/* ty=int32 */") == 3, txt


@program
def slash_in_identifier():
    x = relay.var("base/x")
    y = relay.var("base/y")
    z = x + y
    txt = z.astext()
    assert "base/x" in txt
    assert "base/y" in txt


@program
def lambda_annotation_each_node():
    x, y = (relay.var("x", shape=(1,)), relay.var("y", shape=(1,)))
    text = (x * y + x).astext(show_meta_data=False, annotate=lambda e: f"  // {e.op.name}!" if isinstance(e, relay.Call) else "")
    assert "multiply(%x, %y)  // multiply!" in text
    assert "add(%0, %x)  // add!" in text


@program
def function_attr_strings():
    x = relay.var("x", shape=(1,))
    f = relay.Function([x], x).with_attr("Compiler", "ccompiler").with_attr("Primitive", 1).with_attr("global_symbol", "ccompiler_0")
    t = f.astext()
    assert 'Compiler="ccompiler"' in t
    assert "Primitive=1" in t
    assert 'global_symbol="ccompiler_0"' in t
    assert f.attrs["Compiler"] == "ccompiler"
    assert f.attrs.Primitive == 1
    assert isinstance(f.attrs, tvm.ir.DictAttrs)
    g = f.without_attr("Compiler")
    assert "Compiler" not in g.attrs
    assert f.attrs["Compiler"] == "ccompiler"


@program
def module_text_layout():
    m = tvm.IRModule()
    x = relay.var("x", shape=(1,))
    m["b"] = relay.Function([x], x)
    y = relay.var("y", shape=(1,))
    m["a"] = relay.Function([y], relay.Call(m.get_global_var("b"), [y]))
    text = m.astext()
    assert "def @b(%x: Tensor[(1), float32])" in text
    assert "@b(%y)" in text
    assert text.index("def @a") < text.index("def @b")


@program
def match_text():
    p = relay.prelude.Prelude(tvm.IRModule())
    text = p.mod["hd"].astext() if "hd" in [g.name_hint for g in p.mod.get_global_vars()] else p.mod[p.hd.name_hint].astext()
    assert "match? (" in text or "match (" in text, text


@program
def tuple_type_print():
    t = relay.TupleType([relay.TensorType((1,)), relay.TupleType([]), relay.scalar_type("int32")])
    assert str(t) == "(Tensor[(1), float32], (), int32)", str(t)
    assert str(relay.TupleType([relay.TensorType(())])) == "(float32,)", str(relay.TupleType([relay.TensorType(())]))
    f = relay.FuncType([relay.TensorType((1,))], relay.TensorType((2,)))
    assert str(f) == "fn (Tensor[(1), float32]) -> Tensor[(2), float32]"
    v = relay.TypeVar("t")
    assert str(relay.FuncType([v], v, [v])) == "fn [t](t) -> t" or "fn [t]" in str(relay.FuncType([v], v, [v])) or "fn <t>" in str(relay.FuncType([v], v, [v]))
    assert str(relay.RefType(relay.TensorType((1,)))) == "ref(Tensor[(1), float32])"
    assert str(relay.TensorType((relay.Any(), 2))) == "Tensor[(?, 2), float32]"


@program
def str_of_expr_is_text_without_meta():
    c = relay.const(np.zeros((2, 2), "float32"))
    s = str(relay.add(c, c))
    assert "meta[relay.Constant][0]" in s and "#[metadata]" not in s and s.startswith("add(") or "add(meta" in s


@program
def repr_of_nodes():
    assert repr(relay.TensorType((1, 2))) == "TensorType([1, 2], float32)", repr(relay.TensorType((1, 2)))
    assert "Var(x" in repr(relay.var("x", shape=(1,))), repr(relay.var("x", shape=(1,)))
    assert repr(relay.GlobalVar("g")).startswith("GlobalVar(g"), repr(relay.GlobalVar("g"))
    assert repr(relay.op.get("add")) == "Op(add)", repr(relay.op.get("add"))
    assert "CallNode(Op(add), [" in repr(relay.add(relay.var("x"), relay.var("y"))), repr(relay.add(relay.var("x"), relay.var("y")))
    assert repr(relay.TypeVar("t")).startswith("TypeVar(t"), repr(relay.TypeVar("t"))


@program
def ir_module_repr():
    x = relay.var("x", shape=(1,))
    assert "IRModule({GlobalVar(main): FunctionNode([Var(x" in repr(tvm.IRModule.from_expr(relay.Function([x], x))) or "def @main" in str(tvm.IRModule.from_expr(relay.Function([x], x)))


@program
def with_attr_many_kinds():
    x = relay.var("x", shape=(1,))
    f = relay.Function([x], x)
    f = f.with_attr({"a": 1, "b": "two", "c": [1, 2]})
    assert f.attrs.a == 1
    assert f.attrs["b"] == "two"
    assert [int(v) for v in f.attrs["c"]] == [1, 2]
    f = f.with_attr("m", {"k": 3, "l": "x"})
    assert f.attrs["m"]["k"] == 3
    assert f.attrs["m"]["l"] == "x"
    f = f.with_attr("mix", [1, "a", None])
    assert f.attrs["mix"][0] == 1
    assert f.attrs["mix"][1] == "a"
    assert f.attrs["mix"][2] is None
    f = f.with_attr("fl", 0.5).with_attr("b", True)
    assert abs(float(f.attrs["fl"]) - 0.5) < 1e-06
    again = tvm.parser.parse_expr(f.astext())
    assert again.attrs["m"]["k"] == 3
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(f)), f)


@program
def module_attrs():
    x = relay.var("x", shape=(1,))
    m = tvm.IRModule.from_expr(relay.Function([x], x))
    m2 = m.with_attr("foo", "bar")
    assert m2.attrs["foo"] == "bar" if m2.attrs else True
    m3 = tvm.IRModule({"main": relay.Function([x], x)}, attrs={"runtime": relay.backend.Runtime("cpp")})
    assert m3.attrs["runtime"].name == "cpp"
    assert m3.get_attr("runtime").name == "cpp"
    assert m3.get_attr("none") is None


@program
def opstrategy_names():
    s = relay.op.OpStrategy()
    s.add_implementation(lambda *a: [], lambda *a: None, name="n1", plevel=5)
    s.add_implementation(lambda *a: [], lambda *a: None, name="n2", plevel=15)
    assert len(s.specializations) == 1
    assert [i.name for i in s.specializations[0].implementations] == ["n1", "n2"]
    assert [i.plevel for i in s.specializations[0].implementations] == [5, 15]
    assert s.specializations[0].condition is None


@program
def opstrategy_specialised():
    from tvm.te import SpecializedCondition
    m = te.var("m")
    with SpecializedCondition(m > 16) as c:
        s = relay.op.OpStrategy()
        s.add_implementation(lambda *a: [], lambda *a: None, name="in")
    assert s.specializations[0].condition is not None
    assert len(s.specializations[0].condition.clauses) == 1
