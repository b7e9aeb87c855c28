# SPDX-License-Identifier: Apache-2.0
"""Nodes and their types, equality, data types and analyses."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, tir
from tvm.ir import IRModule
from tvm.relay import transform
from tvm.relay.adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData
from tvm.relay.analysis import check_kind, free_type_vars, free_vars, all_vars, all_type_vars, bound_vars, bound_type_vars, well_formed, unmatched_cases
from tvm.relay.expr_functor import ExprMutator, ExprVisitor, ExprFunctor
from tvm.relay.prelude import Prelude
from tvm.relay.testing import count, run_infer_type, run_opt_pass, make_nat_expr
from tvm.relay.ty import GlobalTypeVar, TypeVar, FuncType, TupleType, RelayRefType as RefType, TypeCall

from harness import program, raises


eq = tvm.ir.assert_structural_equal


int32 = relay.scalar_type("int32")


# ---- nodes
@program
def nodes_have_their_fields():
    x, y = relay.Var("x"), relay.Var("y")
    c = relay.Call(relay.op.get("add"), [x, y], None, [])
    assert c.op.name == "add" and list(c.args) == [x, y] and c.attrs is None and c.span is None and len(c.type_args) == 0
    str(c)
    t = relay.Tuple([x])
    assert t.fields[0] == x and t.span is None and len(t.fields) == 1
    g = relay.TupleGetItem(t, 0)
    assert g.tuple_value == t and g.index == 0
    i = relay.If(x, y, x)
    assert i.cond == x and i.true_branch == y and i.false_branch == x
    l = relay.Let(x, relay.const(1), x)
    assert l.var == x and l.body == x and l.value.data.numpy() == 1 and l.span is None
    f = relay.Function([x], x, relay.TensorType((2,)), [], tvm.ir.make_node("DictAttrs", n="m"))
    assert f.params[0] == x and f.attrs["n"] == "m" and f.ret_type == relay.TensorType((2,)) and len(f.type_params) == 0
    v = relay.Var("a", relay.TensorType((3,)))
    assert v.name_hint == "a" and v.type_annotation.shape[0] == 3 and v.vid.name_hint == "a"
    for n in (c, t, g, i, l, f, v):
        back = tvm.ir.load_json(tvm.ir.save_json(n))
        eq(back, n, map_free_vars=True)


@program
def types_have_their_fields():
    a = TypeVar("A")
    assert a.kind == relay.TypeKind.Type and a.span is None and a.name_hint == "A"
    g = GlobalTypeVar("G")
    assert g.kind == relay.TypeKind.AdtHandle and g.name_hint == "G"
    f = FuncType([a], a, [a], [])
    assert f.arg_types[0] == a and f.ret_type == a and f.type_params[0] == a and len(f.type_constraints) == 0 and f.span is None
    t = TupleType([a, f])
    assert t.fields[1] == f
    r = RefType(a)
    assert r.value == a
    i = relay.IncompleteType(relay.TypeKind.Shape)
    assert i.kind == relay.TypeKind.Shape
    k = TypeCall(g, [a])
    assert k.func == g and k.args[0] == a
    d = TypeData(g, [a], [Constructor("C", [a], g)])
    assert d.header == g and d.constructors[0].name_hint == "C" and d.type_vars[0] == a
    rel = tvm.relay.TypeRelation(tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast"), tvm.runtime.convert([a, a, a]), 2, None)
    assert rel.num_inputs == 2 and rel.args[0] == a and rel.func.name.endswith("Broadcast")
    for n in (a, g, f, t, r, k):
        eq(tvm.ir.load_json(tvm.ir.save_json(n)), n, map_free_vars=True)
        str(n)


@program
def spans():
    s = relay.Span(tvm.relay.SourceName("a.py"), 1, 2, 3, 4)
    assert s.source_name.name == "a.py" and (s.line, s.end_line, s.column, s.end_column) == (1, 2, 3, 4)
    assert s.same_as(s) and s == s and isinstance(s, tvm.ir.base.Span)
    str(s)
    back = tvm.ir.load_json(tvm.ir.save_json(s))
    assert isinstance(back, relay.base.Span) and back.source_name == s.source_name and back.line == 1
    v = relay.Call(relay.op.get("exp"), [relay.Var("x")], span=s)
    assert v.span.line == 1


@program
def operators_by_name_and_attribute():
    op = relay.op.get("nn.relu")
    assert op.name == "nn.relu" and op.num_inputs == 1 and op.get_attr("TOpPattern") == 0
    assert relay.op.get("nn.conv2d").get_attr("TOpPattern") == 4 and relay.op.get("add").get_attr("TOpPattern") == 1
    raises((tvm.TVMError, Exception), relay.op.get, "no.such")
    assert relay.op.get("add").has_attr("TOpPattern")
    op.set_attr("ftest", 1)
    assert "add" in tvm.ir.Op.list_op_names()
    assert [a.name for a in relay.op.get("nn.conv2d").arguments] == ["data", "weight"]
    assert relay.op.get("nn.conv2d").attrs_type_key == "relay.attrs.Conv2DAttrs"


@program
def own_operators():
    name = "custom.fresh_op_1"
    tvm.ir.op.register_op_attr("add", "a_user_attr", 7)
    assert relay.op.get("add").get_attr("a_user_attr") == 7
    assert relay.op.get("add").get_attr("not_there") is None


@program
def ops_registered_by_scripts():
    from tvm.relay.op import op as _op
    from tvm.ir import TypeRelation
    _op.register("trial.first", "describes itself")
    op = _op.get("trial.first")
    op.set_num_inputs(2)
    op.add_argument("left", "Tensor", "the left")
    op.add_argument("right", "Tensor", "the right")
    op.set_support_level(10)
    _op.register_pattern("trial.first", _op.OpPattern.ELEMWISE)
    _op.register_stateful("trial.first", False)

    def relation(args, attrs):
        assert len(args) == 2
        return args[0]
    op.add_type_rel("TrialFirst", relation)
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    c = relay.Call(op, [x, y])
    assert run_infer_type(c).checked_type == relay.TensorType((2, 3))
    raises(tvm.TVMError, _op.register, "trial.first", "again")


@program(0, 1, 2, 3, 4)
def equal_types(k):
    t = [(relay.TensorType((3, 4)), relay.TensorType((3, 4)), relay.TensorType((3, 4), "int32")), (TupleType([int32]), TupleType([int32]), TupleType([])),
         (FuncType([int32], int32), FuncType([int32], int32), FuncType([], int32)), (RefType(int32), RefType(int32), RefType(relay.scalar_type("int64"))),
         (relay.TensorType((relay.Any(), 2)), relay.TensorType((relay.Any(), 2)), relay.TensorType((3, 2)))][k]
    assert t[0] == t[1] and tvm.ir.structural_equal(t[0], t[1]) and not tvm.ir.structural_equal(t[0], t[2]) and t[0] != t[2]
    assert tvm.ir.structural_hash(t[0]) == tvm.ir.structural_hash(t[1]) != tvm.ir.structural_hash(t[2])


@program
def equal_type_functions():
    a, b = TypeVar("A"), TypeVar("B")
    assert tvm.ir.structural_equal(FuncType([a], a, [a]), FuncType([b], b, [b]))
    assert not tvm.ir.structural_equal(FuncType([a], a, [a]), FuncType([b], int32, [b]))
    assert not tvm.ir.structural_equal(FuncType([a], b, [a, b]), FuncType([a], b, [b, a])) or tvm.ir.structural_equal(FuncType([a], b, [a, b]), FuncType([a], b, [b, a])) is not None
    assert not tvm.ir.structural_equal(a, b) and tvm.ir.structural_equal(a, b, map_free_vars=True)
    assert not tvm.ir.structural_equal(TypeVar("A"), TypeVar("A", relay.TypeKind.Shape), map_free_vars=True)


@program
def equal_expressions():
    x, y = relay.Var("x"), relay.Var("y")
    se = tvm.ir.structural_equal
    assert not se(x, y) and se(x, y, True)
    assert se(relay.Function([x], x), relay.Function([y], y)) and tvm.ir.structural_hash(relay.Function([x], x)) == tvm.ir.structural_hash(relay.Function([y], y))
    assert not se(relay.Function([x, y], relay.Tuple([x, y])), relay.Function([x, y], relay.Tuple([y, x])))
    assert se(relay.Let(x, relay.const(1), x), relay.Let(y, relay.const(1), y)) and not se(relay.Let(x, relay.const(1), x), relay.Let(y, relay.const(2), y))
    assert not se(relay.Let(x, relay.const(1), x), relay.Let(x, relay.const(1), y))
    assert se(relay.const(1), relay.const(1)) and not se(relay.const(1), relay.const(1.0)) and not se(relay.const(1), relay.const(2))
    assert not se(relay.TupleGetItem(x, 0), relay.TupleGetItem(x, 1))
    assert se(relay.op.get("add"), relay.op.get("add")) and not se(relay.op.get("add"), relay.op.get("subtract"))
    shared = relay.add(x, x)


@program
def equal_attributes():
    x = relay.var("x", shape=(1, 3, 8, 8))
    se = tvm.ir.structural_equal
    assert se(relay.nn.softmax(x, 1).attrs, relay.nn.softmax(x, 1).attrs) and not se(relay.nn.softmax(x, 1).attrs, relay.nn.softmax(x, 2).attrs)
    a = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(3, 4))
    b = tvm.ir.make_node("attrs.TestAttrs", name="b", padding=(3, 4))
    c = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(3, 4))
    assert se(a, c) and not se(a, b)
    d1, d2 = tvm.ir.make_node("DictAttrs", a=1, b="x"), tvm.ir.make_node("DictAttrs", b="x", a=1)
    assert se(d1, d2) and tvm.ir.structural_hash(d1) == tvm.ir.structural_hash(d2)
    assert not se(relay.Function([x], x).with_attr("k", 1), relay.Function([x], x)) 


@program
def equality_messages():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(3,))
    e = raises(ValueError, tvm.ir.assert_structural_equal, relay.Function([x], x), relay.Function([y], y))
    assert "not structurally equal" in str(e).lower() or "StructuralEqual" in str(e)


# ---- ADTs
@program
def a_list_made_by_hand():
    mod = IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    x = cons(relay.const(1), cons(relay.const(2), nil()))
    f = relay.Function([], mod.get_global_var("hd")(x))
    mod["main"] = f
    assert relay.create_executor("debug", mod=mod).evaluate()().numpy() == 1
    assert relay.create_executor("vm", mod=mod).evaluate()().numpy() == 1
    assert l.name_hint == "List" and cons.name_hint == "Cons" and cons.tag != nil.tag


@program
def defining_types():
    mod = IRModule()
    box = GlobalTypeVar("box")
    tv = TypeVar("tv")
    cons = Constructor("constructor", [tv], box)
    mod[box] = TypeData(box, [tv], [cons])
    v = TypeVar("v")
    a = relay.var("a", box(v))
    unbox = relay.GlobalVar("unbox")
    mod[unbox] = relay.Function([a], Match(a, [Clause(PatternConstructor(cons, [PatternVar(relay.var("y"))]), relay.const(0))]), None, [v])
    mod = transform.InferType()(mod)
    assert mod["unbox"].checked_type
    assert isinstance(mod["unbox"].checked_type.arg_types[0], TypeCall)


@program
def naturals():
    mod = IRModule()
    p = Prelude(mod)
    p.mod.import_from_std("nat.rly")
    z, s = p.mod.get_type("nat")[1:]
    e = s(s(s(z())))
    c = relay.create_executor("debug", mod=p.mod).evaluate(e)
    assert c.tag == s.tag
    assert count(p, relay.create_executor("debug", mod=p.mod).evaluate(make_nat_expr(p, 5))) == 5


@program
def unmatched():
    mod = IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    v = relay.Var("v")
    u = unmatched_cases(Match(v, [Clause(PatternConstructor(nil, []), v)]), mod)
    assert len(u) == 1 and isinstance(u[0], PatternConstructor) and u[0].constructor == cons
    assert len(unmatched_cases(Match(v, [Clause(PatternWildcard(), v)]), mod)) == 0
    assert len(unmatched_cases(Match(v, [Clause(PatternVar(relay.Var("z")), v)]))) == 0
    u = unmatched_cases(Match(v, [Clause(PatternTuple([PatternConstructor(nil, []), PatternWildcard()]), v)]), mod)
    assert len(u) == 1 and isinstance(u[0], PatternTuple)


# ---- analyses
@program
def variables_found():
    x, y, z = relay.Var("x"), relay.Var("y"), relay.Var("z")
    def same_set(a, b):
        assert len(a) == len(b) and all(any(p == q for q in b) for p in a), (a, b)
    e = relay.Function([x], relay.Let(y, relay.const(1), relay.Tuple([x, y, z])))
    same_set(free_vars(e), [z])
    same_set(bound_vars(e), [x, y])
    same_set(all_vars(e), [x, y, z])
    a, b = TypeVar("a"), TypeVar("b")
    f = relay.Function([relay.Var("x", a)], relay.Var("y", b), b, [a])
    same_set(free_type_vars(f), [b])
    same_set(bound_type_vars(f), [a])
    same_set(all_type_vars(f), [a, b])
    mod = IRModule()
    same_set(free_type_vars(f, mod), [b])
    l = relay.Let(x, x, x)
    assert free_vars(relay.Tuple([y, x])) [0] == y


@program
def well_formed_or_not():
    x, y = relay.Var("x"), relay.Var("y")
    assert well_formed(relay.Let(x, relay.const(1), x))
    assert not well_formed(relay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x)))
    f = relay.Function([x], x)
    assert well_formed(f)
    assert well_formed(relay.Function([x], relay.add(x, x)))
    assert not well_formed(relay.Function([x], relay.Let(x, relay.const(1), x)))
    a = TypeVar("a")
    assert well_formed(relay.Function([], relay.Tuple([]), None, [a]))


@program
def kinds():
    mod = IRModule()
    T, S = relay.TypeKind.Type, relay.TypeKind.Shape
    tp, sp = TypeVar("tp", T), TypeVar("sp", S)
    assert check_kind(tp) == T and check_kind(sp) == S and check_kind(relay.TensorType((1, 2))) == T
    assert check_kind(TupleType([tp, tp])) == T and check_kind(FuncType([tp], tp, [tp])) == T and check_kind(RefType(tp)) == T
    raises(tvm.TVMError, check_kind, TupleType([tp, sp]))
    raises(tvm.TVMError, check_kind, FuncType([tp], sp))
    raises(tvm.TVMError, check_kind, RefType(sp))
    g = GlobalTypeVar("gtv")
    mod[g] = TypeData(g, [TypeVar("t")], [])
    assert check_kind(TypeCall(g, [TupleType([])]), mod) == T
    raises(tvm.TVMError, check_kind, TypeCall(g, []), mod)
    raises(tvm.TVMError, check_kind, TypeCall(g, [sp]), mod)
    assert check_kind(g, mod) == relay.TypeKind.AdtHandle


@program
def features():
    from tvm.relay.analysis import Feature, detect_feature
    x, y = relay.Var("x"), relay.Var("y")
    assert detect_feature(relay.const(1)) == {Feature.fConstant}
    f = detect_feature(relay.Function([x], relay.If(x, relay.add(x, x), x)))
    assert {Feature.fIf, Feature.fFunction, Feature.fVar, Feature.fOp, Feature.fCall}.issubset(f)
    assert Feature.fLet in detect_feature(relay.Let(x, relay.const(1), x))
    net, _ = relay.testing.resnet.get_workload()
    assert Feature.fLet not in detect_feature(net) and Feature.fGraph in detect_feature(net)


@program
def macs():
    from tvm.relay.analysis import get_total_mac_number
    x, w = relay.var("x", shape=(1, 128, 28, 28)), relay.var("w", shape=(256, 128, 3, 3))
    f = run_opt_pass(relay.Function([x, w], relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=256)), transform.InferType())
    assert get_total_mac_number(f) == 28 * 28 * 256 * 128 * 9
    d, k = relay.var("d", shape=(4, 10)), relay.var("k", shape=(7, 10))
    f = run_opt_pass(relay.Function([d, k], relay.nn.dense(d, k, units=7)), transform.InferType())
    assert get_total_mac_number(f) == 4 * 10 * 7
    assert get_total_mac_number(run_opt_pass(relay.Function([d], relay.exp(d)), transform.InferType())) == 0


@program
def context_of_a_body():
    from tvm.relay.analysis import extract_fused_functions, extract_intermdeiate_expr, list_op_freqs, list_fake_quantized_op_freqs
    x = relay.var("x", shape=(1, 3, 8, 8))
    y = relay.nn.relu(relay.nn.relu(x)) + relay.const(1.0)
    mod = IRModule.from_expr(relay.Function([x], y))
    freqs = list_op_freqs(mod)
    assert freqs["nn.relu"] == 2 and freqs["add"] == 1
    mod = transform.InferType()(mod)
    part = extract_intermdeiate_expr(mod, 1)
    assert "nn.relu" in part.astext()
    fused = extract_fused_functions(transform.FuseOps(2)(mod))
    assert len(fused) == 1


@program
def visitors():
    class Count(ExprVisitor):
        def __init__(self):
            super().__init__()
            self.n = 0

        def visit_call(self, call):
            self.n += 1
            super().visit_call(call)

    class Double(ExprMutator):
        def visit_constant(self, const):
            return relay.const(const.data.numpy() * 2)

        def visit_var(self, var):
            return var
    x = relay.var("x")
    e = relay.Function([x], relay.add(relay.add(x, relay.const(1.0)), relay.const(2.0)))
    c = Count()
    c.visit(e)
    assert c.n == 2
    eq(Double().visit(e), relay.Function([x], relay.add(relay.add(x, relay.const(2.0)), relay.const(4.0))))

    class Missing(ExprFunctor):
        pass
    raises(NotImplementedError, Missing().visit, x)


@program
def visited_nodes():
    class All(ExprMutator):
        pass
    x, y = relay.Var("x"), relay.Var("y")
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    nodes = [x, relay.Function([x, y], x, relay.TensorType((2,)), [TypeVar("T")]), relay.Call(relay.op.get("add"), [x, y]), relay.Let(x, y, x), relay.If(x, x, y), relay.Tuple([x, y]), relay.TupleGetItem(x, 0), relay.const(1.0),
             relay.RefCreate(x), relay.RefRead(x), relay.RefWrite(x, y), relay.GlobalVar("g"), cons, Match(x, [Clause(PatternConstructor(cons, [PatternVar(y), PatternWildcard()]), y)])]
    for n in nodes:
        eq(All().visit(n), n)
        ExprVisitor().visit(n)
    seen = []
    relay.analysis.post_order_visit(relay.add(x, y), lambda e: seen.append(type(e).__name__))
    assert seen.index("Call") == len(seen) - 1 and seen.count("Var") == 2


@program
def bind_parameters():
    x, y = relay.Var("x"), relay.Var("y")
    f = relay.Function([x, y], relay.add(x, y))
    eq(relay.bind(f, {y: relay.const(1.0)}), relay.Function([x], relay.add(x, relay.const(1.0))))
    eq(relay.bind(relay.add(x, y), {x: y}), relay.add(y, y))
    eq(relay.build_module.bind_params_by_name(f, {"x": np.array(1.0, "float32")}), relay.Function([y], relay.add(relay.const(1.0), y)))
    raises(Exception, lambda: relay.build_module.bind_params_by_name(relay.Function([x, relay.Var("x")], x), {"x": np.array(1.0)}))


@program
def solver_results():
    """What inference finds for types with holes."""
    a = relay.var("a", relay.TensorType((3, relay.Any())))
    b = relay.var("b", relay.TensorType((relay.Any(), 4)))
    t = run_infer_type(relay.add(a, b)).checked_type
    assert len(t.shape) == 2
    f = relay.Function([relay.var("x")], relay.const(1))
    assert isinstance(run_infer_type(relay.Function([relay.var("x", shape=(2,))], relay.var("x", shape=(2,)))), relay.Function)


@program
def names_of_recursive_functions():
    sb = relay.ScopeBuilder()
    mod = IRModule()
    f = relay.GlobalVar("f")
    n, data = relay.var("n", shape=(), dtype="int32"), relay.var("data", shape=(), dtype="float32")
    with sb.if_scope(relay.equal(n, relay.const(0, "int32"))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1, "int32")), relay.log(data)))
    mod[f] = relay.Function([n, data], sb.get())
    mod = transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext() and mod[f].checked_type == FuncType([int32, relay.scalar_type("float32")], relay.scalar_type("float32"))


@program
def type_errors():
    t = raises(tvm.TVMError, run_infer_type, relay.Function([], relay.If(relay.const(1), relay.const(1), relay.const(2))))
    raises(tvm.TVMError, run_infer_type, relay.add(relay.var("x", shape=(2,)), relay.var("y", shape=(3,))))
    raises(tvm.TVMError, run_infer_type, relay.TupleGetItem(relay.Tuple([relay.const(1)]), 1))
    raises(tvm.TVMError, run_infer_type, relay.Call(relay.Function([relay.var("x", shape=(2,))], relay.const(1)), []))
    raises(tvm.TVMError, run_infer_type, relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 5))))
    raises(tvm.TVMError, run_infer_type, relay.RefRead(relay.const(1)))
    raises(tvm.TVMError, run_infer_type, relay.Call(relay.const(1), []))


@program
def inferred_lets_and_functions():
    sb = relay.ScopeBuilder()
    x = relay.var("x", shape=(), dtype="float64")
    t1 = sb.let("t1", relay.log(x))
    t2 = sb.let("t2", relay.add(t1, x))
    sb.ret(t2)
    f = relay.Function([x], sb.get())
    ff = run_infer_type(f)
    assert ff.params[0].checked_type == relay.scalar_type("float64") and ff.checked_type.ret_type == relay.scalar_type("float64")
    assert ff.body.var.checked_type == relay.scalar_type("float64")
    g = relay.Function([relay.var("a"), relay.var("b")], relay.const(1))
    t = run_infer_type(relay.Call(relay.Function([x], x), [relay.const(1.0, "float64")])).checked_type
    assert t == relay.scalar_type("float64")
    a = TypeVar("a")
    i = relay.Var("i", a)
    ident = relay.Function([i], i, a, [a])
    assert run_infer_type(ident).checked_type == FuncType([a], a, [a])
    call = run_infer_type(relay.Call(ident, [relay.const(1.0, "float64")]))
    assert call.checked_type == relay.scalar_type("float64") and call.type_args[0] == relay.scalar_type("float64")


@program
def references_inferred():
    x = relay.Var("x", int32)
    y = relay.RefCreate(x)
    w = run_infer_type(relay.RefWrite(y, relay.const(1)))
    assert run_infer_type(y).checked_type == RefType(int32) and w.checked_type == TupleType([]) and run_infer_type(relay.RefRead(y)).checked_type == int32


@program
def constructors_inferred():
    mod = IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    f = relay.Function([], cons(relay.const(1), nil()))
    mod["main"] = f
    mod = transform.InferType()(mod)
    assert mod["main"].ret_type == l(int32) or mod["main"].checked_type.ret_type == l(int32)
    assert mod["main"].body.type_args is not None
    raises(Exception, lambda: relay.create_executor("debug", mod=mod).evaluate(cons(relay.const(1), cons(relay.const(1.0), nil()))))


@program
def containers():
    a = tvm.runtime.convert([1, 2, 3])
    assert isinstance(a, tvm.ir.Array) and len(a) == 3 and a[-1].value == 3 and [v.value for v in a[0:2]] == [1, 2]
    assert isinstance(a[0], tir.IntImm)
    m = tvm.runtime.convert({"x": 1, "y": [2]})
    assert isinstance(m, tvm.ir.Map) and m["x"].value == 1 and "y" in m and len(m) == 2 and set(m.keys()) == {"x", "y"}
    assert dict(m.items()).keys() == {"x", "y"}
    raises(KeyError, lambda: m["z"])
    raises(IndexError, lambda: a[3])
    x, y = te.var("a"), te.var("b")
    m = tvm.runtime.convert({x: 2, y: 3})
    assert x in m and m[x].value == 2
    back = tvm.ir.load_json(tvm.ir.save_json(a))
    assert [v.value for v in back] == [1, 2, 3]
    s = tvm.runtime.ShapeTuple([1, 2, 3])
    assert len(s) == 3 and s[1] == 2 and s == (1, 2, 3) and s[-1] == 3
    t = tvm.runtime.container.tuple_object([tvm.nd.array([1, 2])])
    st = tvm.runtime.String("abc")
    assert st == "abc" and st.startswith("a") and isinstance(st, str)


@program
def attributes_read_back():
    x = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4))
    assert x.name == "xx" and x.padding[0].value == 3 and x.padding[1].value == 4 and x["name"] == "xx" and x.axis == 10
    d = {k: x[k] for k in x.keys()}
    raises(tvm.error.TVMError, tvm.ir.make_node, "attrs.TestAttrs")
    raises(tvm.error.TVMError, lambda: tvm.ir.make_node("attrs.TestAttrs", unknown=10, name="x"))
    raises(tvm.error.TVMError, lambda: tvm.ir.make_node("attrs.TestAttrs", axis=100, name="x"))
    dd = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert dd.x.value == 1 and dd["x"].value == 1 and dd.name == "xyz" and dd.padding[1].value == 0
    info = x.list_field_info()
    assert [i.name for i in info][:1] and info[0].description is not None
