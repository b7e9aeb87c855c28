# SPDX-License-Identifier: Apache-2.0
"""Loops, data types in programs, annotations, debugging, JSON and methods of modules."""
import json

import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, tir
from tvm.ir import IRModule, GlobalVar
from tvm.relay import transform
from tvm.relay.testing import run_infer_type
from tvm.relay.prelude import Prelude
from tvm.relay.ty import FuncType, TensorType
from tvm.relay.adt import Match, Clause, PatternConstructor, PatternVar, PatternWildcard, PatternTuple

from harness import program, raises


eq = tvm.ir.assert_structural_equal


def ev(e, *args, mod=None, kind="debug"):
    return relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate(e)(*args) if args else relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate(e)


# ---- loops, ADTs
@program
def loops_of_python():
    from tvm.relay.loops import while_loop
    i = relay.var("i")
    def cond(i):
        return relay.less(i, relay.const(10))
    def body(i):
        return [i + relay.const(1)]
    loop = while_loop(cond, [relay.var("i", shape=(), dtype="int32")], body)
    r = ev(loop(relay.const(0)))
    r = r[0] if not hasattr(r, "numpy") else r
    assert r.numpy() == 10


@program
def dynamic_loops():
    from tvm.relay.loops import while_loop
    i, s = relay.var("i", shape=(), dtype="int32"), relay.var("s", shape=(relay.Any(), 2))
    loop = while_loop(lambda i, s: relay.less(i, relay.const(3)), [i, s], lambda i, s: [i + relay.const(1), relay.concatenate([s, s], 0)])
    x = relay.var("x", shape=(1, 2))
    f = relay.Function([x], relay.TupleGetItem(loop(relay.const(0), x), 1))
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind).evaluate(f)(np.ones((1, 2), "float32")).numpy().shape == (8, 2)


@program(*["hd", "tl", "nth", "update", "map", "foldl", "foldr", "foldr1", "sum", "concat", "filter", "zip", "rev", "map_accumr", "map_accuml", "unfoldl", "unfoldr", "tmap", "size", "iterate", "compose", "length", "id"])
def prelude_functions(name):
    mod = IRModule()
    p = Prelude(mod)
    assert mod.get_global_var(name).name_hint == name
    mod = transform.InferType()(mod)
    t = mod[name].checked_type
    assert isinstance(t, FuncType)
    assert name in p.mod.astext() and getattr(p, name, mod.get_global_var(name)) is not None


@program
def folds_of_lists():
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    g = mod.get_global_var

    def lst(*v):
        r = nil()
        for k in reversed(v):
            r = cons(relay.const(k), r)
        return r

    def out(v):
        r = []
        while v.tag == cons.tag:
            r.append(int(v.fields[0].numpy()))
            v = v.fields[1]
        return r
    x, y = relay.Var("x"), relay.Var("y")
    debug = lambda e: relay.create_executor("debug", mod=mod).evaluate(e)
    assert out(debug(g("concat")(lst(1, 2), lst(3)))) == [1, 2, 3]
    assert out(debug(g("rev")(lst(1, 2, 3)))) == [3, 2, 1]
    assert out(debug(g("filter")(relay.Function([x], relay.greater(x, relay.const(1))), lst(1, 2, 3)))) == [2, 3]
    assert debug(g("foldl")(relay.Function([x, y], x * relay.const(10) + y), relay.const(0), lst(1, 2, 3))).numpy() == 123
    assert debug(g("foldr")(relay.Function([x, y], y * relay.const(10) + x), relay.const(0), lst(1, 2, 3))).numpy() == 321
    assert debug(g("foldr1")(relay.Function([x, y], x - y), lst(10, 2, 3))).numpy() == 11
    assert debug(g("sum")(lst(1, 2, 3))).numpy() == 6
    assert out(debug(g("update")(lst(1, 2, 3), relay.const(1), relay.const(9)))) == [1, 9, 3]
    z = debug(g("zip")(lst(1, 2), lst(3, 4)))
    assert z.fields[0][0].numpy() == 1 and z.fields[0][1].numpy() == 3
    assert debug(g("iterate")(relay.Function([x], x + x), relay.const(3))(relay.const(1))).numpy() == 8
    assert debug(g("compose")(relay.Function([x], x + relay.const(1)), relay.Function([y], y * relay.const(2)))(relay.const(5))).numpy() == 11
    m = debug(g("map_accumr")(relay.Function([x, y], relay.Tuple([x + y, x * y])), relay.const(1), lst(1, 2, 3)))
    m2 = debug(g("map_accuml")(relay.Function([x, y], relay.Tuple([x + y, x * y])), relay.const(1), lst(1, 2, 3)))
    assert m[0].numpy() == 7 and m2[0].numpy() == 7
    # from the right: 3*1=3 (acc 4), 2*4=8 (acc 6), 1*6=6
    assert out(m[1]) == [6, 8, 3]
    # from the left: 1*1 (acc 2), 2*2 (acc 4), 3*4
    assert out(m2[1]) == [12, 4, 1]  # each goes before the earlier ones


@program
def options_and_trees():
    mod = IRModule()
    p = Prelude(mod)
    opt, some, none = mod.get_type("Option")
    tree, rose = mod.get_type("Tree")
    _, cons, nil = mod.get_type("List")
    g = mod.get_global_var
    debug = lambda e: relay.create_executor("debug", mod=mod).evaluate(e)
    v = debug(some(relay.const(3)))
    assert v.constructor.name_hint == "Some" and v.fields[0].numpy() == 3
    t = rose(relay.const(0), cons(rose(relay.const(1), nil()), nil()))
    assert debug(g("size")(t)).numpy() == 2
    x = relay.Var("x")
    r = debug(g("tmap")(relay.Function([x], x + relay.const(1)), t))
    assert r.fields[0].numpy() == 1 and r.fields[1].fields[0].fields[0].numpy() == 2
    i = relay.Var("i")
    u = debug(g("unfoldr")(relay.Function([i], relay.If(relay.greater(i, relay.const(0)), some(relay.Tuple([i - relay.const(1), i])), none())), relay.const(3)))
    assert u.fields[0].numpy() == 3


@program
def matches_bind_what_they_name():
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    v, h, t = relay.Var("v"), relay.Var("h"), relay.Var("t")
    f = relay.Function([v], Match(v, [Clause(PatternConstructor(cons, [PatternVar(h), PatternConstructor(cons, [PatternVar(t), PatternWildcard()])]), h * relay.const(10) + t), Clause(PatternWildcard(), relay.const(-1))]))
    debug = lambda e: relay.create_executor("debug", mod=mod).evaluate(e)
    assert debug(f(cons(relay.const(1), cons(relay.const(2), nil())))).numpy() == 12
    assert debug(f(cons(relay.const(1), nil()))).numpy() == -1
    a, b = relay.Var("a"), relay.Var("b")
    m = Match(relay.Tuple([relay.const(3), relay.const(4)]), [Clause(PatternTuple([PatternVar(a), PatternVar(b)]), a - b)])
    assert debug(m).numpy() == -1
    w = Match(nil(), [Clause(PatternConstructor(cons, [PatternWildcard(), PatternWildcard()]), relay.const(1))], complete=False)
    raises(Exception, debug, w)


# ---- debugging
@program
def prints_on_the_way():
    seen = []
    x = relay.var("x", shape=(2,))
    def callback(value):
        seen.append(value)
    f = relay.Function([x], relay.op.debug(x + relay.const(1.0), callback))
    out = relay.create_executor("debug").evaluate(f)(np.zeros(2, "float32"))
    np.testing.assert_allclose(out.numpy(), np.ones(2))
    assert len(seen) == 1
    r = relay.create_executor("debug").evaluate(relay.op.debug(relay.Tuple([relay.const(1), relay.const(2)])))
    assert r[0].numpy() == 1 and r[1].numpy() == 2


# ---- JSON
@program
def json_of_networks():
    mod, params = relay.testing.mlp.get_workload(1)
    text = tvm.ir.save_json(mod)
    eq(tvm.ir.load_json(text), mod)
    data = json.loads(text)
    assert data["root"] and data["nodes"] and "tvm_version" in data["attrs"]
    f = mod["main"]
    eq(tvm.ir.load_json(tvm.ir.save_json(f)), f)


@program
def json_of_all_nodes():
    x = relay.var("x", shape=(2, 3))
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    for n in (x, relay.const(1.5), relay.const(np.arange(6).reshape(2, 3)), relay.Tuple([x, x]), relay.RefCreate(x), relay.RefWrite(relay.RefCreate(x), x), relay.If(relay.const(True), x, x), cons(x, nil()), relay.GlobalVar("g"), relay.op.get("add"),
              te.var("i"), tir.const(1, "int8"), te.var("i") + 1, TensorType((te.var("n"), relay.Any())), tvm.tir.StringImm("s"), tvm.runtime.convert({"a": [1, 2], "b": "c"}), tvm.target.Target("llvm")):
        back = tvm.ir.load_json(tvm.ir.save_json(n))
        assert type(back) is type(n) or isinstance(back, type(n)), n
        assert tvm.ir.structural_equal(back, n, map_free_vars=True) or isinstance(n, (relay.GlobalVar, tvm.target.Target)), n


@program
def old_json():
    nodes = [{"type_key": ""}, {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "2"}}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in0"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.5.1"}, "b64ndarrays": []}
    tvar = tvm.ir.load_json(json.dumps(data))
    assert isinstance(tvar, tvm.ir.TypeVar) and tvar.name_hint == "in0"
    nodes[1]["type_key"] = "relay.GlobalTypeVar"
    tvar = tvm.ir.load_json(json.dumps(data))
    assert isinstance(tvar, tvm.ir.GlobalTypeVar) and tvar.name_hint == "in0"


@program
def old_json_of_names():
    nodes = [{"type_key": ""}, {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "span": "0", "type_annotation": "0", "vid": "2"}}, {"type_key": "relay.Id", "attrs": {"name_hint": "a3"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    v = tvm.ir.load_json(json.dumps(data))
    assert isinstance(v, relay.Var) and v.name_hint == "a3"
    nodes = [{"type_key": ""}, {"type_key": "relay.GlobalVar", "attrs": {"_checked_type_": "0", "name_hint": "x", "span": "0"}}]
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(v, GlobalVar) and v.name_hint == "x"
    nodes = [{"type_key": ""}, {"type_key": "relay.Op", "global_key": "nn.conv2d"}]
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert v == relay.op.get("nn.conv2d")
    nodes = [{"type_key": ""}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "x", "span": "0"}}, {"type_key": "SizeVar", "attrs": {"dtype": "int32", "name": "y", "span": "0"}}]
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(v, tir.Var) and v.name == "x"
    v = tvm.ir.load_json(json.dumps({"root": 2, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(v, tir.SizeVar)


@program
def old_json_of_types_and_strings():
    nodes = [{"type_key": ""}, {"type_key": "Map", "keys": ["z", "x"], "data": [2, 3]}, {"type_key": "IntImm", "attrs": {"dtype": "bool", "value": "1", "span": "0"}}, {"type_key": "Max", "attrs": {"a": "4", "b": "5", "dtype": "int32", "span": "0"}}, {"type_key": "Add", "attrs": {"a": "5", "b": "6", "dtype": "int32", "span": "0"}},
             {"type_key": "Add", "attrs": {"a": "6", "b": "7", "dtype": "int32", "span": "0"}}, {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": "7", "span": "0"}}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "2", "span": "0"}}, {"type_key": "runtime.String"}, {"type_key": "runtime.String", "repr_str": "x"}]
    nodes[6]["attrs"]["name"] = "9"
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.9.0"}, "b64ndarrays": []}))
    assert "z" in v and "x" in v and v["z"].value == 1
    assert isinstance(v["x"], tir.Max)
    a = {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "2", "span": "0"}}, {"type_key": "Array", "data": [3]}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "4", "span": "0"}}], "attrs": {"tvm_version": "0.8.0"}, "b64ndarrays": []}
    assert tvm.ir.load_json(json.dumps(a)) == TensorType((4,))


# ---- module methods
@program
def modules_of_functions():
    x = relay.var("x", shape=(2,))
    mod = IRModule()
    f = relay.Function([x], x)
    mod["f"] = f
    g = mod.get_global_var("f")
    mod[GlobalVar("g")] = relay.Function([x], g(x))
    assert len(mod.functions) == 2 and [v.name_hint for v in mod.get_global_vars()] and "f" in [v.name_hint for v in mod.functions]
    assert mod["f"] == f or tvm.ir.structural_equal(mod["f"], f)
    other = IRModule()
    other["f"] = relay.Function([x], relay.exp(x))
    mod.update(other)
    assert mod["f"].body.op.name == "exp"
    raises(Exception, mod.get_global_var, "nope")
    raises(Exception, lambda: mod["nope"])
    mod.update_func(g, f)
    assert isinstance(mod["f"].body, relay.Var)
    m = IRModule.from_expr(relay.nn.relu(x))
    assert m["main"].params[0] == x
    m = IRModule.from_expr(relay.Function([x], g(x)), {g: f})
    assert len(m.functions) == 2
    m2 = m.shallow_copy()
    assert m.with_attr("k", 1).get_attr("k") == 1
    assert list(IRModule({GlobalVar("a"): f}).functions.keys())[0].name_hint == "a"


@program
def attributes_of_functions():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], x).with_attr("a", 1).with_attr("b", "two")
    assert f.attrs["a"] == 1 and f.attrs["b"] == "two" and "a" in f.attrs and "z" not in f.attrs
    f = f.with_attr("x", tvm.tir.IntImm("int32", 3))
    assert f.attrs["x"].value == 3
    assert f.without_attr("a").attrs is not None
    assert len(f.attrs.keys()) == 3 and dict(f.attrs.items())["b"] == "two"
    g = relay.Function([x], x, attrs=tvm.ir.make_node("DictAttrs", Primitive=1))
    assert g.attrs.Primitive == 1 and "Primitive=1" in g.astext()
    assert tvm.ir.structural_equal(f, relay.Function([x], x).with_attr("x", 3).with_attr("b", "two").with_attr("a", 1))


@program
def calls_of_expressions():
    x = relay.var("x", shape=(3, 3))
    assert (x + 1.0).op.name == "add" and (1.0 - x).op.name == "subtract" and (x * 2.0).args[1].data.numpy() == 2 and (2.0 / x).op.name == "divide" and (-x).op.name == "negative"
    assert (x < relay.const(1.0)).op.name == "less" and (x >= relay.const(1.0)).op.name == "greater_equal"
    assert x.astype("int8").op.name == "cast"
    t = relay.Tuple([x, x])
    assert t[1].index == 1 if isinstance(t[1], relay.TupleGetItem) else t[1] == x
    assert len(t) == 2 and t.astype
    raises((TypeError, Exception), lambda: t.astype("int8"))
    f = relay.GlobalVar("f")
    assert f(x).op.same_as(f) and isinstance(f(x), relay.Call)
    split = relay.split(x, 3, axis=1)
    assert isinstance(split, relay.expr.TupleWrapper) and len(split) == 3 and split.size == 3 and isinstance(split[0], relay.TupleGetItem)
    a, b, c = split
    raises(IndexError, lambda: split[3])
    assert relay.op.op.get("add")(x, x).op.name == "add"
    assert relay.expr.const([1, 2]).data.dtype in ("int32", "int64") and relay.const(1.0).data.dtype == "float32" and relay.const(True).data.dtype == "bool" and relay.const(np.float64(1.0)).data.dtype in ("float64", "float32")
    raises(ValueError, relay.const, "text")
    v = relay.var("v", shape=(2,), dtype="int8")
    raises(ValueError, relay.var, "v", relay.TensorType((2,)), (2,))
    assert relay.var("y", "int32").type_annotation == relay.scalar_type("int32")
    assert relay.var("v").type_annotation is None


@program(("int32", [1, 2]), ("int64", np.array([1, 2])), ("float32", [1.0]), ("bool", np.array([True])), ("float64", np.array([0.5])), ("float16", np.array([0.5], "float16")), ("uint8", np.array([5], "uint8")))
def constants_keep_their_dtype(dtype, value):
    assert relay.const(value).data.dtype == dtype or (isinstance(value, list) and dtype in ("int32", "float32"))
    assert relay.const(value, "int8").data.dtype == "int8"
    assert relay.const(tvm.nd.array(np.asarray(value))).data.numpy().tolist() == np.asarray(value).tolist()


@program
def scopes_built():
    sb = relay.ScopeBuilder()
    c = relay.var("c", "bool")
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    with sb.if_scope(c):
        one = relay.const(1.0)
        t = sb.let("t", relay.add(one, x))
        sb.ret(t)
    with sb.else_scope():
        sb.ret(relay.add(y, relay.const(2.0)))
    e = sb.get()
    assert isinstance(e, relay.If) and isinstance(e.true_branch, relay.Let)
    assert relay.create_executor("debug").evaluate(relay.Function([c, x, y], e))(np.array(True), np.array(5.0, "float32"), np.array(0.0, "float32")).numpy() == 6
    sb = relay.ScopeBuilder()
    v = sb.let(relay.var("v"), relay.const(1))
    sb.ret(v)
    raises(RuntimeError, sb.ret, v)
    sb = relay.ScopeBuilder()
    ty = sb.type_of(relay.const(1.0))


@program
def errors_of_python_users():
    raises(Exception, lambda: relay.nn.conv2d())
    raises(ValueError, lambda: relay.concatenate([], 0))
    x = relay.var("x", shape=(2,))
    raises((ValueError, TypeError, Exception), lambda: relay.TensorType((2,), "no_such_type") and relay.var("z", relay.TensorType((2,), "nosuch")))
    raises(AttributeError, lambda: x.no_such_field)
    e = raises(tvm.TVMError, run_infer_type, relay.add(x, relay.var("y", shape=(3,))))
    assert "add" in str(e) or "broadcast" in str(e).lower() or "Incompatible" in str(e)
