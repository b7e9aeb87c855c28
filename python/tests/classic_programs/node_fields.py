# SPDX-License-Identifier: Apache-2.0
"""Fields of nodes, the prelude, executors and their parameters."""
import json, os, tempfile, pickle

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi, runtime, rpc
from tvm.contrib import graph_executor, utils, cc
from tvm.relay import transform, op
from tvm.relay.prelude import Prelude, StaticTensorArrayOps
from tvm.relay.testing import run_infer_type, run_opt_pass, count as _c
import numpy as np
import tvm
import tvm.testing


@program
def bad_constructor():
    e = raises(Exception, lambda: relay.ty.TensorType("xx", "xx"))
    e = raises(tvm.TVMError, lambda: relay.TensorType((1,), "nosuch"))


@program
def span_fields():
    s = relay.Span(None, 1, 2, 3, 4)
    assert s.line == 1
    assert s.end_line == 2
    assert s.column == 3
    assert s.end_column == 4
    assert s.same_as(s)
    assert isinstance(s, tvm.ir.base.Span)
    assert str(s) is not None
    b = tvm.ir.load_json(tvm.ir.save_json(s))
    assert b.line == 1
    assert b.end_line == 2
    assert b.column == 3
    assert b.end_column == 4


@program
def check_json_round_trip_nodes():

    def rt(n):
        m = tvm.ir.load_json(tvm.ir.save_json(n))
        tvm.ir.assert_structural_equal(m, n, map_free_vars=True)
    rt(relay.TensorType((1, 2, 3), "float16"))
    rt(relay.TypeVar("x"))
    rt(relay.FuncType([relay.TypeVar("a")], relay.TensorType((1,))))
    rt(relay.TupleType([relay.TensorType((1,)), relay.TupleType([])]))
    rt(relay.RefType(relay.TensorType((2,))))
    a = relay.TypeVar("a")
    rt(relay.TypeCall(relay.GlobalTypeVar("L"), [a]))
    x = relay.var("x", shape=(2,))
    for e in (relay.const(np.arange(3)), relay.Tuple([x, x]), x, relay.GlobalVar("gg"), relay.Function([x], x), relay.Call(relay.op.get("tanh"), [x]), relay.Let(relay.var("l", shape=(2,)), x, x), relay.If(relay.var("c", "bool"), x, x), relay.TupleGetItem(relay.Tuple([x]), 0), relay.RefCreate(x)):
        rt(e)


@program
def type_param_fields():
    tp = relay.TypeVar("name", relay.TypeKind.Type)
    assert tp.kind == relay.TypeKind.Type
    assert tp.span is None
    assert str(tp)
    tf = relay.FuncType([relay.TensorType((1,))], relay.TensorType((2,)), [tp], [])
    assert tf.type_params[0] == tp
    assert len(tf.type_constraints) == 0
    assert tf.span is None
    tt = relay.TupleType([tp])
    assert tt.fields[0] == tp
    assert str(tt)


@program
def type_relation_node():
    tp = relay.TypeVar("tp")
    tf = relay.FuncType([], relay.TupleType([]), [], [])
    tt = relay.ty.TensorType([1, 2, 3], "float32")
    args = tvm.runtime.convert([tp, tf, tt])
    attrs = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4))
    f = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    tr = relay.TypeRelation(f, args, 2, attrs)
    assert list(tr.args) == list(args)
    assert tr.num_inputs == 2
    assert tr.func == f
    assert tr.attrs == attrs
    assert tr.span is None
    str(tr)


@program
def constant_fields():
    arr = tvm.nd.array(10)
    c = relay.Constant(arr)
    assert c.data == arr or c.data.same_as(arr) or c.data.numpy() == 10
    assert c.span is None
    assert str(c)


@program
def tuple_fields():
    fields = tvm.runtime.convert([])
    t = relay.Tuple(fields)
    assert len(t.fields) == 0
    assert t.span is None
    str(t)
    c = relay.const(1.0)
    with refusing(TypeError):
        relay.Tuple([c, c]).astype("int8")


@program
def local_var_fields():
    v = relay.Var("s")
    assert v.name_hint == "s"
    assert v.type_annotation is None
    t = relay.ty.TensorType([], "float32")
    lv = relay.Var("x", t)
    assert lv.name_hint == "x"
    assert lv.type_annotation == t
    str(lv)
    assert relay.var("x", shape=(4, 5), dtype="int8").type_annotation == relay.TensorType((4, 5), "int8")
    with refusing(ValueError):
        relay.var("x", relay.TensorType((1,)), shape=(1,))


@program
def function_fields():
    params = tvm.runtime.convert([relay.Var("a")])
    ret = relay.TupleType(tvm.runtime.convert([]))
    body = relay.Tuple(tvm.runtime.convert([]))
    tps = tvm.runtime.convert([])
    f = relay.Function(params, body, ret, tps)
    f = f.with_attr("test_attribute", "value")
    f = f.with_attr("test_attribute1", "value1")
    assert f.params[0].same_as(params[0]) or f.params[0] == params[0]
    assert f.body == body or f.body.same_as(body)
    assert list(f.type_params) == []
    assert f.span is None
    assert f.attrs["test_attribute"] == "value"
    assert f.attrs["test_attribute1"] == "value1"
    str(f)


@program
def call_fields():
    o = relay.Var("f")
    a = relay.Var("arg")
    c = relay.Call(o, tvm.runtime.convert([a]), None, None)
    assert c.op.same_as(o) or c.op == o
    assert list(c.args) == [a]
    assert c.span is None
    str(c)


@program
def let_if_get_fields():
    v = relay.Var("var")
    b = relay.const(1)
    val = relay.const(2)
    l = relay.Let(v, val, b)
    assert l.var == v
    assert l.value == val
    assert l.body == b
    assert l.span is None
    str(l)
    i = relay.If(relay.Var("c"), relay.Var("l"), relay.Var("r"))
    assert i.cond.name_hint == "c"
    assert i.true_branch.name_hint == "l"
    assert i.false_branch.name_hint == "r"
    assert i.span is None
    g = relay.TupleGetItem(relay.Var("t"), 1)
    assert g.tuple_value.name_hint == "t"
    assert g.index == 1


@program
def conv2d_attrs_infer():
    data = relay.var("data", shape=(1, 3, 224, 224))
    param = relay.var("param", shape=(64, 3, 7, 7))
    out = relay.nn.conv2d(data, param, strides=(2, 2), padding=(3, 3), channels=64, kernel_size=(7, 7))
    if isinstance(out, relay.Call) and "InferCorrectLayout":
        assert out.attrs.strides == [2, 2] or tuple((int(v) for v in out.attrs.strides)) == (2, 2)


@program
def prelude_names():
    p = Prelude()
    names = {g.name_hint for g in p.mod.get_global_vars()}
    for n in ("id", "compose", "flip", "hd", "tl", "nth", "map", "foldl", "foldr", "foldr1", "concat", "filter", "zip", "rev", "map_accumr", "map_accuml", "unfoldl", "unfoldr", "sum", "length", "tmap", "size", "iterate", "update"):
        assert n in names, n


@program
def prelude_types():
    p = Prelude()
    for n in ("List", "Option", "Tree"):
        assert p.mod.get_global_type_var(n).name_hint == n
    rlist, cons, nil = p.mod.get_type("List")
    assert cons.name_hint == "Cons"
    assert nil.name_hint == "Nil"
    assert cons.belong_to == rlist
    assert len(cons.inputs) == 2
    assert len(nil.inputs) == 0
    o, some, none = p.mod.get_type("Option")
    assert some.name_hint == "Some"
    assert none.name_hint == "None"
    t, rose = p.mod.get_type("Tree")
    assert rose.name_hint == "Rose"


@program
def constructor_tags():
    p = Prelude()
    l, cons, nil = p.mod.get_type("List")
    assert cons.tag != -1
    assert nil.tag != -1
    assert cons.tag != nil.tag
    assert p.mod.get_constructor(cons.tag).name_hint == "Cons"


@program
def list_functions_run():
    p = Prelude()
    l, cons, nil = p.mod.get_type("List")

    def lst(*v):
        r = nil()
        for x in reversed(v):
            r = cons(relay.const(x), r)
        return r

    def run(e):
        m = p.mod
        m["main"] = relay.Function([], e)
        return relay.create_executor("vm", mod=m).evaluate()()
    assert run(p.mod.get_global_var("length")(lst(1, 2, 3))).numpy() == 3
    assert run(p.mod.get_global_var("sum")(lst(4, 5))).numpy() == 9
    assert run(p.mod.get_global_var("hd")(lst(7, 8))).numpy() == 7
    x = relay.Var("x")
    out = run(p.mod.get_global_var("map")(relay.Function([x], x + relay.const(1)), lst(1, 2)))
    assert len(out) == 2
    assert out[0].numpy() == 2


@program
def prelude_attributes():
    p = Prelude()
    assert isinstance(p.mod, tvm.IRModule)
    for n in ("hd", "tl", "map", "foldl", "nth", "update", "length", "iterate", "filter", "zip", "rev"):
        assert isinstance(getattr(p, n), relay.GlobalVar), n


@program
def static_tensor_array():
    p = Prelude()
    s = StaticTensorArrayOps(p, "float32", [2, 3])
    s.register()
    assert p.get_global_var_static("tensor_array", "float32", [2, 3]).name_hint
    assert p.get_name_static("tensor_array", "float32", [2, 3]) == "tensor_array_float32_2_3"
    t = p.get_tensor_ctor_static("tensor_constructor", "float32", [2, 3])
    assert t is not None


@program
def nat_from_testing():
    from tvm.relay.testing import nat
    p = Prelude()
    p.mod.import_from_std("nat.rly")
    n, z, s = p.mod.get_type("nat")
    assert z.name_hint == "Z"
    assert s.name_hint == "S"
    from tvm.relay.testing import make_nat_expr, make_nat_value, count
    e = make_nat_expr(p, 3)
    p.mod["main"] = relay.Function([], e)
    v = relay.create_executor(mod=p.mod).evaluate()()
    assert count(p, v) == 3 if _c.__code__.co_argcount == 2 else count(v) == 3


@program
def adt_pattern_nodes():
    v = relay.Var("v")
    p = relay.PatternVar(v)
    assert p.var == v
    w = relay.PatternWildcard()
    t = relay.PatternTuple([p, w])
    assert len(t.patterns) == 2
    pr = Prelude()
    _, cons, nil = pr.mod.get_type("List")
    c = relay.PatternConstructor(cons, [p, w])
    assert c.constructor == cons
    assert len(c.patterns) == 2
    cl = relay.Clause(c, v)
    assert cl.lhs == c or tvm.ir.structural_equal(cl.lhs, c)
    assert cl.rhs == v
    m = relay.Match(relay.Var("d"), [cl], complete=False)
    assert not m.complete
    assert len(m.clauses) == 1
    assert m.data.name_hint == "d"


@program
def type_data_nodes():
    tv = relay.TypeVar("a")
    g = relay.GlobalTypeVar("Pair")
    c = relay.Constructor("MkPair", [tv, tv], g)
    d = relay.TypeData(g, [tv], [c])
    assert d.header == g
    assert d.type_vars[0] == tv
    assert d.constructors[0].name_hint == "MkPair"
    assert c.belong_to == g
    assert list(c.inputs) == [tv, tv]
    m = tvm.IRModule({}, {g: d})
    assert [x.name_hint for x in m.get_global_type_vars()] == ["Pair"]
    assert m.type_definitions[g].header == g or m[g].header == g


@program
def build_module_class():
    x = relay.var("x", shape=(10, 5))
    y = relay.var("y", shape=(1, 5))
    w = relay.const(np.ones((3, 5), "float32"))
    f = relay.Function([x, y], relay.nn.relu(x + y))
    bld = relay.build_module.BuildModule()
    g, mod, params = bld.build(tvm.IRModule.from_expr(f), "llvm")
    assert json.loads(g)["nodes"]
    assert bld.get_module() is not None
    assert bld.get_json() == g
    assert isinstance(bld.get_params(), dict)


@program
def build_with_params_folds():
    x, w = (relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)))
    f = relay.Function([x, w], relay.nn.dense(x, w))
    W = numbers(4, 3)
    a = numbers(2, 3)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(f), "llvm", params={"w": tvm.nd.array(W)})
    m = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    m.set_input("x", a)
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), a @ W.T, rtol=1e-05)
    assert len(lib.get_params()) == 1


@program
def build_function_warns_or_works():
    x = relay.var("x", shape=(2,))
    lib = relay.build(relay.Function([x], x + x), "llvm")
    assert lib is not None


@program
def optimize_returns():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.const(1.0) + relay.const(2.0) + x)
    with tvm.transform.PassContext(opt_level=3):
        mod, params = relay.optimize(tvm.IRModule.from_expr(f), "llvm")
    assert isinstance(mod, tvm.IRModule)
    assert isinstance(params, dict)


@program
def create_executor_kinds():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.tanh(x))
    a = numbers(2)
    for k in ("debug", "graph", "vm", "aot"):
        ex = relay.create_executor(k, mod=tvm.IRModule.from_expr(f), device=tvm.cpu(), target="llvm")
        np.testing.assert_allclose(ex.evaluate()(a).numpy(), np.tanh(a), rtol=1e-05)
        np.testing.assert_allclose(ex.evaluate(f)(a).numpy() if k == "debug" else ex.evaluate()(x=a).numpy(), np.tanh(a), rtol=1e-05)
    with refusing(RuntimeError):
        relay.create_executor("nonsense")


@program
def executor_without_args():
    assert relay.create_executor().evaluate(relay.const(2) + relay.const(3)).numpy() == 5
    with refusing(Exception):
        relay.create_executor("graph", mod=tvm.IRModule.from_expr(relay.Function([relay.var("x", shape=(1,))], relay.const(1)))).evaluate()()


@program
def bind_by_name():
    x, y = (relay.var("x", shape=(2,)), relay.var("y", shape=(2,)))
    f = relay.Function([x, y], x + y)
    g = relay.build_module.bind_params_by_name(f, {"y": tvm.nd.array(np.ones(2, "float32"))})
    assert len(g.params) == 1
    assert isinstance(g.body.args[1], relay.Constant)


@program
def bind_expr():
    x, y = (relay.var("x"), relay.var("y"))
    z = relay.add(x, y)
    f = relay.Function([x], z)
    same(relay.bind(f, {y: relay.const(1, "float32")}), relay.Function([x], relay.add(x, relay.const(1, "float32"))))
    z2 = relay.bind(z, {y: x})
    same(z2, relay.add(x, x))
