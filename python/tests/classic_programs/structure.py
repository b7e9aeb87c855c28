# SPDX-License-Identifier: Apache-2.0
"""Equality and hashes by structure: types, expressions, operators with attributes, data types, modules, and what a message says."""
import numpy as np
import tvm
from harness import program, refusing
from tvm import relay, te, tir
from tvm.relay.testing import run_opt_pass

eq, hash_of = tvm.ir.structural_equal, tvm.ir.structural_hash


def consistent(a, b, map_free_vars=False):
    """Equality says the same in both directions, and equal things have equal hashes."""
    same, back = eq(a, b, map_free_vars), eq(b, a, map_free_vars)
    assert same == back
    if same:
        assert hash_of(a, map_free_vars) == hash_of(b, map_free_vars)
    return same


@program
def tensor_types():
    t1, t2 = relay.TensorType((3, 4), "float32"), relay.TensorType((3, 4), "float32")
    assert consistent(t1, t2) and not consistent(t1, relay.TensorType((3, 4), "float64")) and not consistent(t1, relay.TensorType((3, 5), "float32")) and not consistent(t1, relay.TensorType((3,), "float32"))


@program
def incomplete_types():
    t1 = relay.IncompleteType(relay.TypeKind.ShapeVar)
    t2 = relay.IncompleteType(relay.TypeKind.Type)
    assert consistent(t1, t1) and not consistent(t1, relay.TensorType((1,))) and t2 is not t1


@program
def type_variables():
    t1, t2 = relay.TypeVar("v1", relay.TypeKind.ShapeVar), relay.TypeVar("v2", relay.TypeKind.ShapeVar)
    t3 = relay.TypeVar("v3", relay.TypeKind.Type)
    assert consistent(t1, t1) and not consistent(t1, t2) and not consistent(t1, t3)
    assert consistent(relay.FuncType([t3], t3, [t3]), relay.FuncType([(t4 := relay.TypeVar("x"))], t4, [t4]))
    assert not consistent(relay.FuncType([t3], t3, [t3]), relay.FuncType([t3], t3, []))
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert not consistent(relay.FuncType([a, b], a, [a, b]), relay.FuncType([a, b], b, [a, b]))
    assert not consistent(relay.FuncType([a], a, [a, b]), relay.FuncType([a], a, [a]))


@program
def function_and_tuple_types():
    t1, t2 = relay.TensorType((1, 2), "float32"), relay.TensorType((1, 2, 3), "float32")
    assert consistent(relay.FuncType([t1], t2), relay.FuncType([t1], t2)) and not consistent(relay.FuncType([t1], t2), relay.FuncType([t2], t1))
    assert consistent(relay.TupleType([t1, t2]), relay.TupleType([t1, t2])) and not consistent(relay.TupleType([t1, t2]), relay.TupleType([t2, t1])) and not consistent(relay.TupleType([t1]), relay.TupleType([t1, t1]))
    assert consistent(relay.RefType(t1), relay.RefType(t1)) and not consistent(relay.RefType(t1), relay.RefType(t2))
    g1, g2 = relay.GlobalTypeVar("gtv1"), relay.GlobalTypeVar("gtv2")
    assert consistent(relay.TypeCall(g1, [t1]), relay.TypeCall(g1, [t1])) and not consistent(relay.TypeCall(g1, [t1]), relay.TypeCall(g2, [t1])) and not consistent(relay.TypeCall(g1, [t1]), relay.TypeCall(g1, [t2]))


@program
def type_relations():
    t1, t2, t3 = relay.TensorType((1, 2), "float32"), relay.TensorType((1, 2, 3), "float32"), relay.TensorType((1, 2, 3, 4), "float32")
    broadcast, identity = (tvm.ir.EnvFunc.get("tvm.relay.type_relation." + n) for n in ("Broadcast", "Identity"))
    attrs, same, other = (tvm.ir.make_node("attrs.TestAttrs", name=n, padding=p) for n, p in (("attr", (3, 4)), ("attr", (3, 4)), ("attr", (3, 4, 3, 4))))
    tr = relay.TypeRelation(broadcast, [t1, t2, t3], 1, attrs)
    assert consistent(tr, relay.TypeRelation(broadcast, [t1, t2, t3], 1, same))
    assert not consistent(tr, relay.TypeRelation(identity, [t1, t2, t3], 1, attrs)) and not consistent(tr, relay.TypeRelation(broadcast, [t2, t1, t3], 1, attrs))
    assert not consistent(tr, relay.TypeRelation(broadcast, [t1, t2, t3], 2, attrs)) and not consistent(tr, relay.TypeRelation(broadcast, [t1, t2, t3], 1, other))


@program
def constants():
    x, y, one = relay.const(1), relay.const(2), relay.const(1)
    assert not consistent(x, y) and consistent(x, one) and not consistent(relay.const(1), relay.const(1.0)) and not consistent(relay.const(1, "int32"), relay.const(1, "int64"))
    a, b = relay.const(np.zeros((2, 2))), relay.const(np.zeros((4,)))
    assert not consistent(a, b) and consistent(a, relay.const(np.zeros((2, 2))))


@program
def variables_are_themselves():
    v1, v2 = relay.Var("v1"), relay.Var("v1")
    assert consistent(v1, v1) and not consistent(v1, v2) and consistent(v1, v2, True)
    l1, l2 = relay.Let(v1, relay.const(1), v1), relay.Let(v2, relay.const(1), v2)
    assert consistent(l1, l2)
    v3 = relay.Var("v3")
    assert not consistent(relay.Let(v1, relay.const(1), v3), relay.Let(v1, relay.const(1), v1))
    assert not consistent(relay.Var("a", relay.TensorType((1,))), relay.Var("a", relay.TensorType((2,))), True)
    g1, g2 = relay.GlobalVar("v1"), relay.GlobalVar("v2")
    assert consistent(g1, g1) and not consistent(g1, g2)


@program
def tuples_and_fields():
    v0, v1, v2 = relay.Var("v0"), relay.Var("v1"), relay.Var("v2")
    assert consistent(relay.Tuple([]), relay.Tuple([])) and consistent(relay.Tuple([v0, v1]), relay.Tuple([v0, v1])) and not consistent(relay.Tuple([v0, v1]), relay.Tuple([v1, v0]))
    assert not consistent(relay.Tuple([v0, v1, v2]), relay.Tuple([v0, v1])) and not consistent(relay.Tuple([v0, relay.Tuple([v1])]), relay.Tuple([v0, v1]))
    assert consistent(relay.TupleGetItem(v0, 1), relay.TupleGetItem(v0, 1)) and not consistent(relay.TupleGetItem(v0, 1), relay.TupleGetItem(v1, 1)) and not consistent(relay.TupleGetItem(v0, 1), relay.TupleGetItem(v0, 2))


@program
def function_attributes():
    p0 = [relay.var(f"p{i}", shape=(10, 10)) for i in range(2)]
    f = relay.Function(p0, p0[0] - p0[1])
    g = f.with_attr("test", 1)
    assert not consistent(f, g) and consistent(g, relay.Function(p0, p0[0] - p0[1]).with_attr("test", 1)) and not consistent(g, f.with_attr("test", 2)) and not consistent(g, f.with_attr("other", 1))


@program
def functions_of_parameters():
    tt1, tt2 = relay.TensorType((1, 2, 3), "float32"), relay.TensorType((4, 5, 6), "int8")
    v1, v2, v3, v4 = relay.Var("v1", tt1), relay.Var("v2", tt2), relay.Var("v3", relay.TupleType([tt1, tt2])), relay.Var("v4", relay.TupleType([tt2, tt1]))
    vret = relay.Constant(tvm.nd.array(np.ones(1)))
    fn = relay.Function([v1, v2], vret, tt2, [])
    assert consistent(fn, fn) and consistent(fn, relay.Function([relay.Var("x", tt1), relay.Var("y", tt2)], vret, tt2)) and not consistent(fn, relay.Function([v1], vret, tt2)) and not consistent(fn, relay.Function([v2, v1], vret, tt2))
    assert not consistent(relay.Function([v3], vret, tt2), relay.Function([v4], vret, tt2))
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert consistent(relay.Function([(x := relay.Var("x", a))], x, a, [a]), relay.Function([(y := relay.Var("y", b))], y, b, [b]))


@program
def calls_and_attributes():
    x = relay.Var("x")
    assert consistent(relay.nn.softmax(x, 1), relay.nn.softmax(x, 1)) and not consistent(relay.nn.softmax(x, 1), relay.nn.softmax(x, 2)) and not consistent(relay.nn.softmax(x, 1), relay.nn.log_softmax(x, 1))
    f1, f2 = relay.Call(x, [relay.const(1)]), relay.Call(x, [relay.const(1), relay.const(2)])
    assert not consistent(f1, f2) and consistent(f1, relay.Call(x, [relay.const(1)]))
    tt = relay.TensorType((1,))
    assert consistent(relay.Call(x, [], None, [tt]), relay.Call(x, [], None, [tt])) and not consistent(relay.Call(x, [], None, [tt]), relay.Call(x, [], None, []))


@program
def lets_ifs_and_sequences():
    v1, v2 = relay.Var("v1"), relay.Var("v2")
    assert consistent(relay.If(v1, relay.const(1), relay.Tuple([])), relay.If(v1, relay.const(1), relay.Tuple([]))) and not consistent(relay.If(v1, relay.const(1), relay.const(2)), relay.If(v1, relay.const(2), relay.const(1)))
    assert not consistent(relay.If(v1, relay.const(1), relay.const(2)), relay.If(v2, relay.const(1), relay.const(2)))
    assert consistent(relay.Let(v1, relay.const(1), relay.Let(v2, v1, v2)), relay.Let((a := relay.Var("a")), relay.const(1), relay.Let((b := relay.Var("b")), a, b)))
    t1, t2 = relay.TensorType((1,)), relay.TensorType((2,))
    assert not consistent(relay.Let(relay.Var("x", t1), relay.const(1), relay.const(2)), relay.Let(relay.Var("x", t2), relay.const(1), relay.const(2)))


@program
def constructors_and_types():
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    l, cons, nil = mod.get_type("List")
    assert consistent(cons, cons) and not consistent(cons, nil) and p is not None
    assert consistent(relay.PatternConstructor(cons, [relay.PatternVar(relay.Var("x")), relay.PatternWildcard()]), relay.PatternConstructor(cons, [relay.PatternVar(relay.Var("x")), relay.PatternWildcard()]), True)
    x = relay.Var("x")
    one = relay.Match(x, [relay.Clause(relay.PatternConstructor(nil, []), relay.const(1)), relay.Clause(relay.PatternWildcard(), relay.const(2))])
    two = relay.Match(x, [relay.Clause(relay.PatternWildcard(), relay.const(2)), relay.Clause(relay.PatternConstructor(nil, []), relay.const(1))])
    assert consistent(one, one) and not consistent(one, two)
    assert not consistent(relay.Match(x, one.clauses, complete=False), one) and l is not None
    box1, box2 = relay.GlobalTypeVar("box1"), relay.GlobalTypeVar("box2")
    assert not consistent(relay.TypeData(box1, [], []), relay.TypeData(box2, [], []))


@program
def the_same_constructor_of_two_modules():
    v = relay.Var("v")
    texts = [tvm.parser.parse('#[version = "0.0.5"]\ntype T { A, B(int32) }\ndef @main() -> T { B(1) }') for _ in range(2)]
    assert consistent(texts[0], texts[1]) and v is not None
    other = tvm.parser.parse('#[version = "0.0.5"]\ntype T { A, B(int32) }\ndef @main() -> T { B(2) }')
    assert not consistent(texts[0], other)


@program
def numbered_and_shared():
    x = relay.var("x", shape=(1,))
    y = relay.var("y", shape=(1,))
    f1 = relay.Function([x, y], x + y)
    f2 = relay.Function([y, x], x + y)
    assert not consistent(f1, f2)
    s = x + y
    assert consistent(relay.Function([x, y], s * s), relay.Function([x, y], s * s))
    assert not consistent(relay.Function([x, y], s * s), relay.Function([x, y], (x + y) * (x + y)))


@program
def graphs_of_a_pass():
    x = relay.var("x", shape=(1, 16))
    y1 = relay.nn.relu(x)
    y2 = relay.nn.leaky_relu(x, alpha=0.1)
    z1, z2 = relay.add(y1, y2), relay.add(y1, y2)
    f1, f2 = run_opt_pass(relay.Function([x], z1), relay.transform.InferType()), run_opt_pass(relay.Function([x], z2), relay.transform.InferType())
    assert consistent(f1, f2)


@program
def messages_of_assertions():
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(1,))
    with refusing(ValueError, "StructuralEqual check failed"):
        tvm.ir.assert_structural_equal(relay.Function([x], x), relay.Function([x, y], x))
    with refusing(ValueError):
        tvm.ir.assert_structural_equal(relay.const(1), relay.const(2))
    tvm.ir.assert_structural_equal([relay.const(1)], [relay.const(1)])


@program
def loops_and_numbers():
    x, y = te.var("x"), te.var("y")
    assert consistent(x + 1, x + 1) and not consistent(x + 1, y + 1) and consistent(x + 1, y + 1, True) and not consistent(x + y, y + y, True)
    assert consistent(tir.const(1, "int32"), tir.const(1, "int32")) and not consistent(tir.const(1, "int32"), tir.const(1, "int64")) and not consistent(tir.const(1, "int32"), tir.const(2, "int32"))
    nx, ny = relay.TensorType((x, 3)), relay.TensorType((y, 3))
    assert not consistent(nx, ny) and consistent(nx, relay.TensorType((x, 3)))
    assert consistent({"a": 1}, {"a": 1})
    assert eq(tvm.runtime.convert([1, 2]), tvm.runtime.convert([1, 2])) and not eq(tvm.runtime.convert([1, 2]), tvm.runtime.convert([2, 1]))


@program
def modules_by_structure():
    x = relay.var("x", shape=(2,))
    a = tvm.IRModule({"f": relay.Function([x], x), "g": relay.Function([x], x + x)})
    b = tvm.IRModule({"g": relay.Function([x], x + x), "f": relay.Function([x], x)})
    assert consistent(a, b) and not consistent(a, tvm.IRModule({"f": relay.Function([x], x)}))
    c = a.with_attr("k", 1)
    assert not consistent(a, c)
    assert consistent(c, a.with_attr("k", 1))
