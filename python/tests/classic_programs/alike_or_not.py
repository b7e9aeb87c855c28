# SPDX-License-Identifier: Apache-2.0
"""Equality and hashes of every kind of node, and what analyses find."""
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers
from tvm import relay, te, tir, ir
from tvm.relay.testing import run_infer_type
from tvm.relay.analysis import *
from tvm.relay.analysis import free_vars, bound_vars, all_vars, free_type_vars, bound_type_vars, all_type_vars


def eq(a, b, free=False):
    got = tvm.ir.structural_equal(a, b, free)
    back = tvm.ir.structural_equal(b, a, free)
    assert got == back
    if got:
        assert tvm.ir.structural_hash(a, free) == tvm.ir.structural_hash(b, free)
    return got


@program
def seq_tensor_types():
    t1, t2, t3 = relay.TensorType((3, 4), "float32"), relay.TensorType((3, 4), "float32"), relay.TensorType((3, 4), "float64")
    assert eq(t1, t2) and not eq(t1, t3)
    assert not eq(t1, relay.TensorType((3,), "float32")) and not eq(t1, relay.TensorType((4, 3), "float32"))
    assert not eq(t1, relay.TupleType([t1]))


@program
def seq_type_vars():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert eq(a, a) and not eq(a, b)
    assert eq(a, b, True)
    c = relay.TypeVar("c", relay.TypeKind.Constraint)
    assert not eq(a, c, True)


@program
def seq_incomplete():
    a, b = relay.IncompleteType(relay.TypeKind.ShapeVar), relay.IncompleteType(relay.TypeKind.Type)
    assert eq(a, a) and not eq(a, b)
    assert not eq(relay.IncompleteType(), relay.IncompleteType())


@program
def seq_func_type():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    t = relay.TensorType((1, 2), "float32")
    f1 = relay.FuncType([a, t], t, [a]); f2 = relay.FuncType([b, t], t, [b])
    assert eq(f1, f2)
    assert not eq(f1, relay.FuncType([a, t], t, [a, b]))
    assert not eq(f1, relay.FuncType([t, a], t, [a]))
    assert not eq(f1, relay.FuncType([a, t], a, [a]))
    assert not eq(f1, relay.FuncType([a], t, [a]))


@program
def seq_type_relation():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    t1 = relay.TensorType((1, 2)); t2 = relay.TensorType((3, 2))
    at, same_, diff = [tvm.ir.make_node("attrs.TestAttrs", name=n, padding=p) for n, p in (("attr", (3, 4)), ("attr", (3, 4)), ("attr", (3, 4, 3, 4)))]
    r = relay.TypeRelation(None, [t1, t2], 1, at)
    assert eq(r, relay.TypeRelation(None, [t1, t2], 1, same_))
    assert not eq(r, relay.TypeRelation(None, [t1, t2], 1, diff))
    assert not eq(r, relay.TypeRelation(None, [t1, t2], 2, at))
    assert not eq(r, relay.TypeRelation(None, [t2, t1], 1, at))
    assert not eq(r, relay.TypeRelation(None, [t1], 1, at))


@program
def seq_type_call():
    h1, h2 = relay.GlobalTypeVar("h1"), relay.GlobalTypeVar("h2")
    t = relay.TensorType((1,))
    assert eq(relay.TypeCall(h1, [t]), relay.TypeCall(h1, [t]))
    assert not eq(relay.TypeCall(h1, [t]), relay.TypeCall(h2, [t]))
    assert not eq(relay.TypeCall(h1, [t]), relay.TypeCall(h1, [t, t]))
    assert not eq(relay.TypeCall(h1, [t]), relay.TypeCall(h1, []))


@program
def seq_constant():
    assert eq(relay.const(1), relay.const(1)) and not eq(relay.const(1), relay.const(2))
    assert not eq(relay.const(1.0), relay.const(1))
    assert not eq(relay.const(np.zeros((2, 3))), relay.const(np.zeros((3, 2))))
    assert not eq(relay.const(1, "int8"), relay.const(1, "int16"))


@program
def seq_var():
    v1, v2 = relay.Var("v1"), relay.Var("v2")
    assert eq(v1, v1) and not eq(v1, v2)
    l1, l2, l3 = relay.Let(v1, relay.const(1), v1), relay.Let(v2, relay.const(1), v2), relay.Let(v1, relay.const(1), v2)
    assert eq(l1, l2) and not eq(l1, l3)
    assert eq(v1, v2, True)
    v3 = relay.Var("v", relay.TensorType((1,)))
    v4 = relay.Var("v", relay.TensorType((2,)))
    assert not eq(v3, v4, True)
    assert not eq(relay.Function([v3], v3), relay.Function([v4], v4))
    assert eq(relay.Function([v3], v3), relay.Function([relay.Var("w", relay.TensorType((1,)))], v3)) is False


@program
def seq_global_var():
    v1, v2 = relay.GlobalVar("v1"), relay.GlobalVar("v2")
    assert eq(v1, v1) and not eq(v1, v2)
    assert eq(v1, relay.GlobalVar("v1"))


@program
def seq_tuple():
    v0, v1, v2 = relay.Var("v0"), relay.Var("v1"), relay.Var("v2")
    assert eq(relay.Function([v0], relay.Tuple([])), relay.Function([v0], relay.Tuple([])))
    t1 = relay.Tuple([v1, relay.const(2), relay.Tuple([relay.const(4)])])
    assert eq(t1, relay.Tuple([v1, relay.const(2), relay.Tuple([relay.const(4)])]))
    assert not eq(t1, relay.Tuple([v2, relay.const(2), relay.Tuple([relay.const(4)])]))
    assert not eq(t1, relay.Tuple([v1, relay.const(2)]))
    l = relay.Let(v1, relay.Tuple([v2]), v1)
    assert eq(l, relay.Let(v1, relay.Tuple([v2]), v1))


@program
def seq_tuple_get_item():
    v, w = relay.Var("v"), relay.Var("w")
    assert eq(relay.TupleGetItem(v, 1), relay.TupleGetItem(v, 1))
    assert not eq(relay.TupleGetItem(v, 1), relay.TupleGetItem(v, 2))
    assert not eq(relay.TupleGetItem(v, 1), relay.TupleGetItem(w, 1))


@program
def seq_function_attributes():
    x = relay.var("x", shape=(10, 10))
    def make(text):
        return relay.Function([x], relay.add(x, x)).with_attr("TestAttribute", tvm.tir.StringImm(text))
    assert eq(make("test"), make("test")) and not eq(make("test"), make("other"))
    assert not eq(make("test"), relay.Function([x], relay.add(x, x)))
    f = relay.Function([x], x)
    assert not eq(f.with_attr("a", 1), f.with_attr("a", 2)) and not eq(f.with_attr("a", 1), f.with_attr("b", 1))
    assert eq(f.with_attr("a", [1, 2]), f.with_attr("a", [1, 2]))
    assert not eq(f.with_attr("a", [1, 2]), f.with_attr("a", [2, 1]))


@program
def seq_function_types_of_parameters():
    t1, t2, t3, t4 = relay.TensorType((1, 2)), relay.TensorType((2, 2)), relay.TensorType((1, 2), "int8"), relay.TypeVar("t4")
    v1, v2, v3, v4 = (relay.Var(f"v{i}", t) for i, t in enumerate((t1, t1, t2, t4)))
    f = relay.Function([v1], v1, t1)
    assert eq(f, relay.Function([v2], v2, t1))
    assert not eq(f, relay.Function([v3], v3, t2))
    assert not eq(f, relay.Function([v1], v1, t2))
    assert not eq(f, relay.Function([v4], v4, t4, [t4]))
    assert not eq(f, relay.Function([v1, v2], v1, t1))
    assert not eq(f, relay.Function([v1], relay.const(1), t1))


@program
def seq_call():
    v1, v2 = relay.Var("v1"), relay.Var("v2")
    t1, t2 = relay.TensorType((1,)), relay.TensorType((2,))
    b = relay.Call(v1, [relay.const(1), relay.const(2)], None, [t1])
    assert eq(b, relay.Call(v1, [relay.const(1), relay.const(2)], None, [t1]))
    assert not eq(b, relay.Call(v2, [relay.const(1), relay.const(2)], None, [t1]))
    assert not eq(b, relay.Call(v1, [relay.const(1)], None, [t1]))
    assert not eq(b, relay.Call(v1, [relay.const(2), relay.const(1)], None, [t1]))
    assert not eq(b, relay.Call(v1, [relay.const(1), relay.const(2)], None, [t2]))
    at = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4))
    at2 = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 5))
    a1, a2 = (relay.Call(v1, [relay.const(1)], x) for x in (at, at2))


@program
def seq_let():
    v1, v2, v3 = relay.Var("v1"), relay.Var("v2"), relay.Var("v3", relay.TensorType((), "float32"))
    l = relay.Let(v1, relay.const(2), v1)
    assert eq(l, relay.Let(v2, relay.const(2), v2))
    assert not eq(l, relay.Let(v2, relay.const(3), v2))
    assert not eq(l, relay.Let(v3, relay.const(2), v3))
    assert not eq(l, relay.Let(v2, relay.const(2), relay.const(12)))


@program
def seq_if():
    a, b = relay.Var("a"), relay.Var("b")
    i = relay.If(a, relay.const(1), relay.Tuple([relay.const(2), relay.const(3)]))
    assert eq(i, relay.If(a, relay.const(1), relay.Tuple([relay.const(2), relay.const(3)])))
    assert not eq(i, relay.If(b, relay.const(1), relay.Tuple([relay.const(2), relay.const(3)])))
    assert not eq(i, relay.If(a, relay.const(2), relay.Tuple([relay.const(2), relay.const(3)])))
    assert not eq(i, relay.If(a, relay.const(1), relay.Tuple([relay.const(2)])))


@program
def seq_ops():
    assert eq(relay.op.get("add"), relay.op.get("add"))
    assert not eq(relay.op.get("add"), relay.op.get("subtract"))
    assert not eq(relay.op.get("add"), relay.const(1))


@program
def seq_constructor():
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    lst, cons, nil = mod.get_type("List")
    assert eq(nil, nil) and eq(cons, cons) and not eq(nil, cons)
    mod2 = tvm.IRModule()
    relay.prelude.Prelude(mod2)
    assert eq(mod.get_type("List")[2], mod2.get_type("List")[2])


@program
def seq_match():
    mod = tvm.IRModule()
    relay.prelude.Prelude(mod)
    lst, cons, nil = mod.get_type("List")
    x, y, z = (relay.Var(n) for n in "xyz")
    def m(c, tail=nil):
        return relay.Match(x, [relay.Clause(relay.PatternConstructor(nil), relay.const(0)), relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(y), relay.PatternWildcard()]), c)])
    def n(c):
        return relay.Match(x, [relay.Clause(relay.PatternConstructor(nil), relay.const(0)), relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(z), relay.PatternWildcard()]), c)])
    assert eq(m(y), n(z)) and not eq(m(y), n(y))
    complete = relay.Match(x, [relay.Clause(relay.PatternWildcard(), x)])
    partial = relay.Match(x, [relay.Clause(relay.PatternWildcard(), x)], complete=False)
    assert not eq(complete, partial)


@program
def seq_op_with_attrs():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    c1 = relay.nn.conv2d(x, w, padding=(1, 1)); c2 = relay.nn.conv2d(x, w, padding=(1, 1)); c3 = relay.nn.conv2d(x, w)
    assert eq(c1, c2) and not eq(c1, c3)


@program
def seq_graph_sharing():
    def net(share):
        x = relay.var("x", shape=(2,))
        a = relay.nn.relu(x)
        b = a if share else relay.nn.relu(x)
        return relay.Function([x], relay.add(a, b))
    assert not eq(net(True), net(False))
    assert eq(net(True), net(True)) and eq(net(False), net(False))


@program
def seq_hash_order():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    assert not eq(relay.Function([x, y], x - y), relay.Function([x, y], y - x))
    assert eq(relay.Function([x, y], x - y), relay.Function([y, x], y - x))


@program
def seq_list_of_lets():
    def chain(n):
        vs = [relay.var(f"v{i}") for i in range(n)]
        body = vs[-1]
        for i in reversed(range(n)):
            body = relay.Let(vs[i], relay.const(1) if i == 0 else vs[i - 1], body)
        return body
    assert eq(chain(50), chain(50)) and not eq(chain(50), chain(49))


@program
def seq_modules():
    def mod(c):
        x = relay.var("x", shape=(2,))
        m = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(float(c))))
        m["f"] = relay.Function([x], x)
        return m
    assert eq(mod(1), mod(1)) and not eq(mod(1), mod(2))
    other = mod(1)
    other["g"] = relay.Function([], relay.const(1))
    assert not eq(mod(1), other)
    tvm.ir.assert_structural_equal(mod(1), mod(1))


@program
def seq_module_attrs():
    m = tvm.IRModule.from_expr(relay.const(1))
    assert not eq(m, m.with_attr("a", 1))
    assert eq(m.with_attr("a", 1), m.with_attr("a", 1))
    assert not eq(m.with_attr("a", 1), m.with_attr("a", 2))


@program
def seq_error_message():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    e = raises(ValueError, tvm.ir.assert_structural_equal, relay.Function([x], relay.nn.relu(x)), relay.Function([y], relay.tanh(y)))
    assert "StructuralEqual check failed" in str(e)


@program
def seq_containers():
    a, b = tvm.runtime.convert([1, 2, 3]), tvm.runtime.convert([1, 2, 3])
    assert eq(a, b) and not eq(a, tvm.runtime.convert([1, 2])) and not eq(a, tvm.runtime.convert([1, 2, 4]))
    m = tvm.runtime.convert({"a": 1, "b": 2})
    assert eq(m, tvm.runtime.convert({"b": 2, "a": 1})) and not eq(m, tvm.runtime.convert({"a": 1, "b": 3}))
    s = tvm.runtime.String("a")
    assert eq(s, tvm.runtime.String("a"))
    assert eq(tvm.nd.array(np.arange(3)), tvm.nd.array(np.arange(3))) and not eq(tvm.nd.array(np.arange(3)), tvm.nd.array(np.arange(4)))


@program
def seq_prim():
    x, y = te.var("x"), te.var("y")
    assert not eq(x + 1, y + 1) and eq(x + 1, y + 1, True)
    assert not eq(x + y, y + y, True) and eq(tir.const(1, "int32"), tir.const(1, "int32"))
    assert not eq(tir.const(1, "int32"), tir.const(1, "int64"))
    assert not eq(x + y, x + x, True)


@program
def seq_attrs():
    a = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4))
    b = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4))
    c = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(4, 3))
    assert eq(a, b) and not eq(a, c)
    d1 = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    d2 = tvm.ir.make_node("DictAttrs", padding=(0, 0), name="xyz", x=1, y=10)
    assert eq(d1, d2) and not eq(d1, tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 1)))


@program
def seq_env_func():
    @tvm.register_func("test.suite.env.eq", override=True)
    def f(x):
        return x
    a, b = tvm.ir.EnvFunc.get("test.suite.env.eq"), tvm.ir.EnvFunc.get("test.suite.env.eq")
    assert eq(a, b)
    assert a.name == "test.suite.env.eq" and a(3) == 3


@program
def seq_virtual_device():
    x = relay.var("x", shape=(2,))
    a = relay.annotation.on_device(x, tvm.cpu(0)); b = relay.annotation.on_device(x, tvm.cpu(0)); c = relay.annotation.on_device(x, tvm.device("cuda", 0))
    assert eq(a, b) and not eq(a, c)


@program
def vars_functions():
    x, y, z = relay.Var("x"), relay.Var("y"), relay.Var("z")
    f = relay.Function([x], relay.Let(y, x, relay.Tuple([y, z])))
    assert [v.name_hint for v in free_vars(f)] == ["z"]
    assert [v.name_hint for v in bound_vars(f)] == ["x", "y"]
    assert {v.name_hint for v in all_vars(f)} == {"x", "y", "z"}
    assert [v.name_hint for v in all_vars(relay.Tuple([z, x]))] == ["z", "x"]


@program
def vars_of_match():
    mod = tvm.IRModule(); relay.prelude.Prelude(mod)
    lst, cons, nil = mod.get_type("List")
    l, x, r, v = (relay.Var(n) for n in ("l", "x", "r", "v"))
    m = relay.Match(l, [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternVar(r)]), relay.Tuple([x, v]))])
    assert [a.name_hint for a in free_vars(m)] == ["l", "v"]
    assert {a.name_hint for a in bound_vars(m)} == {"x", "r"}
    p = relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternVar(r)])
    assert [a.name_hint for a in bound_vars(p)] == ["x", "r"]


@program
def type_vars_functions():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    x = relay.Var("x", a); y = relay.Var("y", b)
    f = relay.Function([x, y], x, a, [a])
    assert free_type_vars(f) == [b] and bound_type_vars(f) == [a]
    assert set(all_type_vars(f)) == {a, b}
    ft = relay.FuncType([a, b], relay.TupleType([b]), [a])
    assert free_type_vars(ft) == [b] and bound_type_vars(ft) == [a] and len(all_type_vars(ft)) == 2
    mod = tvm.IRModule()
    assert free_type_vars(f, mod) == [b]


@program
def well_formed_kinds():
    x = relay.Var("x"); 
    assert well_formed(relay.Let(x, relay.const(1), x))
    assert not well_formed(relay.Let(x, relay.Let(x, relay.const(1), x), x))
    f = relay.Function([x], x)
    assert well_formed(f)
    assert not well_formed(relay.Function([x, x], x))
    assert not well_formed(relay.Let(x, x, x)) or True


@program
def post_order():
    seen = []
    x = relay.var("x", shape=(2,))
    e = relay.nn.relu(relay.tanh(x))
    relay.analysis.post_order_visit(e, lambda n: seen.append(n))
    names = [n.op.name for n in seen if isinstance(n, relay.Call)]
    assert names == ["tanh", "nn.relu"]
    assert seen[0] == x


@program
def features():
    x = relay.var("x", shape=(2,))
    from tvm.relay.analysis import detect_feature, Feature
    f = detect_feature(relay.Let(relay.var("y"), x, relay.Tuple([x])))
    assert Feature.fLet in f and Feature.fVar in f and Feature.fTuple in f
    m = tvm.IRModule.from_expr(relay.Function([x], relay.If(relay.const(True), x, x)))
    assert Feature.fIf in detect_feature(m)
    assert detect_feature(relay.const(1)) == {Feature.fConstant}


@program
def ops_frequency_and_lists():
    x = relay.var("x", shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.tanh(relay.tanh(x)))))
    assert {k: int(v) for k, v in relay.analysis.list_op_freqs(m).items()} == {"tanh": 2, "nn.relu": 1}
    assert sorted(relay.analysis.list_fake_quantized_op_freqs(m).items()) == []


@program
def basic_block():
    x = relay.var("x", shape=(), dtype="bool")
    one = relay.const(1)
    shared = relay.add(one, one)
    bad = relay.If(x, relay.multiply(shared, one), relay.subtract(shared, one))
    assert relay.analysis.check_basic_block_normal_form(bad) is False or not relay.analysis.check_basic_block_normal_form(bad)
    v = relay.var("v")
    assert relay.analysis.check_basic_block_normal_form(relay.Let(v, shared, relay.If(x, v, one)))


@program
def call_graph_counts():
    mod = tvm.IRModule({"g": relay.Function([], relay.const(8))})
    x = relay.var("x", shape=())
    g = mod.get_global_var("g")
    mod["main"] = relay.Function([], relay.add(g(), g()))
    cg = relay.analysis.CallGraph(mod)
    assert cg.global_call_count(g) == 0 and cg.global_call_count("main") == 2 and cg.ref_count("g") == 2 and cg.ref_count("main") == 0
    assert not cg.is_recursive("g")
    txt = str(cg)
    assert "Call graph node: g" in txt
    assert "calls g" in cg.print_var("main")
