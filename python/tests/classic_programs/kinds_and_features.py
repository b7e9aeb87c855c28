# SPDX-License-Identifier: Apache-2.0
"""Types inferred and compared, their kinds, variables and features of programs."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir
from tvm.ir import TypeKind as Kind
from tvm.relay import transform, op, analysis
from tvm.relay.analysis import check_kind, free_type_vars, bound_type_vars, all_type_vars, free_vars, all_vars, bound_vars, well_formed, detect_feature
from tvm.relay.testing import run_infer_type
from tvm.relay.ty import FuncType, TypeCall, TypeVar, GlobalTypeVar, TensorType, TupleType, RefType, IncompleteType, TypeRelation
from tvm.relay.type_functor import TypeMutator, TypeVisitor
import numpy as np
import tvm


def assert_has_type(e, t, mod=None):
    m = mod or tvm.IRModule({})
    m["main"] = e if isinstance(e, relay.Function) else relay.Function(relay.analysis.free_vars(e), e)
    m = transform.InferType()(m)
    checked = m["main"].checked_type if isinstance(e, relay.Function) else m["main"].body.checked_type
    assert checked == t, (checked, t)


def initialize_box_adt(mod):
    box = relay.GlobalTypeVar("box")
    tv = relay.TypeVar("tv")
    constructor = relay.Constructor("constructor", [tv], box)
    data = relay.TypeData(box, [tv], [constructor])
    mod[box] = data
    return (box, constructor)


@program
def monomorphic_let():
    sb = relay.ScopeBuilder()
    x = relay.var("x", dtype="float64", shape=())
    x = sb.let("x", relay.const(1.0, "float64"))
    sb.ret(x)
    xc = run_infer_type(sb.get())
    assert xc.checked_type == relay.scalar_type("float64")


@program
def single_op_types():
    x = relay.var("x", shape=[])
    f = relay.Function([x], op.log(x))
    ttype = relay.TensorType([], "float32")
    assert_has_type(f, relay.FuncType([ttype], ttype))


@program
def add_broadcast_op():
    x, y = (relay.var("x", shape=(10, 4)), relay.var("y", shape=(5, 10, 1)))
    f = run_infer_type(relay.Function([x, y], x + y))
    assert f.checked_type == relay.FuncType([relay.TensorType((10, 4), "float32"), relay.TensorType((5, 10, 1), "float32")], relay.TensorType((5, 10, 4), "float32"))


@program
def dual_op():
    tp = relay.TensorType((10, 10), "float32")
    x = relay.var("x", tp)
    sb = relay.ScopeBuilder()
    t1 = sb.let("t1", relay.log(x))
    t2 = sb.let("t2", relay.add(t1, x))
    sb.ret(t2)
    f = relay.Function([x], sb.get())
    assert run_infer_type(f).checked_type == relay.FuncType([tp], tp)


@program
def decl():
    tp = relay.TensorType((10, 10))
    x = relay.var("x", tp)
    f = relay.Function([x], relay.log(x))
    assert run_infer_type(f).checked_type == relay.FuncType([tp], tp)


@program
def recursion_types():
    sb = relay.ScopeBuilder()
    mod = tvm.IRModule()
    f = relay.GlobalVar("f")
    ti32 = relay.scalar_type("int32")
    tf32 = relay.scalar_type("float32")
    n = relay.var("n", ti32)
    data = relay.var("data", tf32)
    with sb.if_scope(relay.equal(n, relay.const(0, ti32))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1, ti32)), relay.log(data)))
    mod[f] = relay.Function([n, data], sb.get())
    mod = transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext(), mod.astext()
    assert mod["f"].checked_type == relay.FuncType([ti32, tf32], tf32)


@program
def incomplete_call_types():
    tt = relay.scalar_type("int32")
    x = relay.var("x", tt)
    f_type = relay.FuncType([tt], tt)
    f = relay.var("f")
    func = relay.Function([x, f], relay.Call(f, [x]), tt)
    ft = run_infer_type(func)
    assert ft.checked_type == relay.FuncType([tt, f_type], tt)


@program
def higher_order_argument():
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    id_func = relay.Function([x], x, a, [a])
    b = relay.TypeVar("b")
    f = relay.Var("f", relay.FuncType([b], b))
    y = relay.Var("y", b)
    ho_func = relay.Function([f, y], f(y), b, [b])
    ho_call = ho_func(id_func, relay.const(0, "int32"))
    hc = run_infer_type(ho_call)
    expected = relay.scalar_type("int32")
    assert hc.checked_type == expected


@program
def higher_order_return():
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    id_func = relay.Function([x], x, a, [a])
    b = relay.TypeVar("b")
    nested_id = relay.Function([], id_func, relay.FuncType([b], b), [b])
    ft = run_infer_type(nested_id)
    assert ft.checked_type == relay.FuncType([], relay.FuncType([b], b), [b])


@program
def higher_order_nested():
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    id_func = relay.Function([x], x, a, [a])
    choice_t = relay.FuncType([], relay.scalar_type("bool"))
    f = relay.Var("f", choice_t)
    b = relay.TypeVar("b")
    z = relay.Var("z")
    top = relay.Function([f], relay.If(f(), id_func, relay.Function([z], z)), relay.FuncType([b], b), [b])
    expected = relay.FuncType([choice_t], relay.FuncType([b], b), [b])
    ft = run_infer_type(top)
    assert ft.checked_type == expected


@program
def tuple_types():
    tp = relay.TensorType((10,))
    x = relay.var("x", tp)
    res = relay.Tuple([x, x])
    assert run_infer_type(res).checked_type == relay.TupleType([tp, tp])


@program
def ref_types():
    x = relay.var("x", "float32")
    y = relay.var("y", "float32")
    r = relay.RefCreate(x)
    st = relay.scalar_type("float32")
    assert run_infer_type(r).checked_type == relay.RefType(st)
    g = relay.RefRead(r)
    assert run_infer_type(g).checked_type == st
    w = relay.RefWrite(r, y)
    assert run_infer_type(w).checked_type == relay.TupleType([])


@program
def free_expr_types():
    x = relay.var("x", "float32")
    y = relay.add(x, x)
    yy = run_infer_type(y)
    assert tvm.ir.structural_equal(yy.args[0], x, map_free_vars=True)
    assert yy.checked_type == relay.scalar_type("float32")
    assert x.vid.same_as(yy.args[0].vid)


@program
def type_args():
    x = relay.var("x", shape=(10, 10))
    y = relay.var("y", shape=(1, 10))
    z = relay.add(x, y)
    ty_z = run_infer_type(z)
    ta = ty_z.type_args
    assert len(ta) == 2
    assert ta[0].dtype == "float32"
    assert ta[1].dtype == "float32"
    sh1, sh2 = (ta[0].shape, ta[1].shape)
    assert sh1[0].value == 10
    assert sh1[1].value == 10
    assert sh2[0].value == 1
    assert sh2[1].value == 10


@program
def global_var_recursion():
    mod = tvm.IRModule({})
    gv = relay.GlobalVar("main")
    x = relay.var("x", shape=[])
    tt = relay.scalar_type("float32")
    func = relay.Function([x], relay.Call(gv, [x]), tt)
    mod[gv] = func
    mod = transform.InferType()(mod)
    assert mod["main"].checked_type == relay.FuncType([tt], tt)


@program
def equal_types_infer():
    i = relay.var("i", shape=[], dtype="int32")
    eq = op.equal(i, relay.const(0, dtype="int32"))
    func = relay.Function([i], eq)
    assert run_infer_type(func).checked_type == relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("bool"))


@program
def constructor_type():
    mod = tvm.IRModule()
    box, constructor = initialize_box_adt(mod)
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    func = relay.Function([x], constructor(x), box(a), [a])
    mod["main"] = func
    mod = transform.InferType()(mod)
    assert mod["main"].checked_type == relay.FuncType([a], box(a), [a])


@program
def constructor_call():
    mod = tvm.IRModule()
    box, constructor = initialize_box_adt(mod)
    box_unit = constructor(relay.Tuple([]))
    box_constant = constructor(relay.const(0, "float32"))
    func = relay.Function([], relay.Tuple([box_unit, box_constant]))
    mod["main"] = func
    mod = transform.InferType()(mod)
    ret = mod["main"].checked_type.ret_type.fields
    assert ret[0] == box(relay.TupleType([]))
    assert ret[1] == box(relay.TensorType((), "float32"))


@program
def adt_match():
    mod = tvm.IRModule()
    box, constructor = initialize_box_adt(mod)
    v = relay.Var("v", relay.TensorType((), "float32"))
    match = relay.Match(constructor(relay.const(0, "float32")), [relay.Clause(relay.PatternConstructor(constructor, [relay.PatternVar(v)]), relay.Tuple([])), relay.Clause(relay.PatternWildcard(), relay.Tuple([]))])
    func = relay.Function([], match)
    mod["main"] = func
    mod = transform.InferType()(mod)
    assert mod["main"].checked_type.ret_type == relay.TupleType([])


@program
def adt_match_mixed_types_refused():
    mod = tvm.IRModule()
    box, constructor = initialize_box_adt(mod)
    v = relay.Var("v")
    match = relay.Match(constructor(relay.const(0, "float32")), [relay.Clause(relay.PatternConstructor(constructor, [relay.PatternVar(v)]), relay.Tuple([])), relay.Clause(relay.PatternWildcard(), relay.const(1))])
    mod["main"] = relay.Function([], match)
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        transform.InferType()(mod)


@program
def add_with_bad_shapes_raise_diagnostic():
    x, y = (relay.var("x", shape=(3,)), relay.var("y", shape=(4,)))
    with refusing(tvm.error.DiagnosticError):
        run_infer_type(relay.Function([x, y], x + y))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Function([x, y], x + y))


@program
def let_with_type_annotation_mismatch():
    v = relay.var("v", shape=(3,))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Let(v, relay.const(np.zeros(4, "float32")), v))


@program
def func_return_mismatch():
    x = relay.var("x", shape=(3,))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Function([x], x, relay.TensorType((4,))))


@program
def if_branch_mismatch():
    c, x, y = (relay.var("c", "bool"), relay.var("x", shape=(3,)), relay.var("y", shape=(4,)))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Function([c, x, y], relay.If(c, x, y)))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Function([x, y], relay.If(x, y, y)))


@program
def wrong_arity():
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], x)
    with refusing(tvm.TVMError):
        run_infer_type(relay.Call(f, [x, x]))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Call(f, []))


@program
def tuple_get_item_bad():
    x = relay.var("x", relay.TupleType([relay.TensorType((1,))]))
    with refusing((tvm.TVMError, IndexError)):
        run_infer_type(relay.TupleGetItem(x, 3))


@program
def kinds_of_types():
    tt = TensorType((1, 2))
    tf = FuncType([tt], tt)
    tup = TupleType([tf, tt])
    r = RefType(tt)
    for t in (tt, tf, tup, r, TypeVar("a"), IncompleteType()):
        assert check_kind(t) == Kind.Type
    for k in (Kind.ShapeVar, Kind.BaseType, Kind.Constraint):
        v = TypeVar("v", k)
        assert check_kind(v) == k or check_kind(IncompleteType(k)) == k
    tr = TypeRelation(None, [], 0, None)
    assert check_kind(tr) == Kind.Constraint
    tgv = GlobalTypeVar("gtv")
    assert check_kind(tgv, tvm.IRModule()) == Kind.AdtHandle


@program
def kinds_refused():
    for make in (lambda: TupleType([TypeVar("s", Kind.ShapeVar)]), lambda: RefType(TypeVar("s", Kind.ShapeVar)), lambda: FuncType([TypeVar("s", Kind.BaseType)], TensorType((1,))), lambda: FuncType([], TypeVar("s", Kind.ShapeVar)), lambda: TypeCall(TypeVar("t", Kind.Type), [TensorType((1,))]), lambda: TypeCall(GlobalTypeVar("v", Kind.BaseType), []), lambda: FuncType([], TensorType(()), [], [TensorType((1,))])):
        with refusing(tvm.TVMError):
            check_kind(make())


@program
def kind_of_typecall_in_module():
    mod = tvm.IRModule()
    v1, v2 = (TypeVar("v1"), TypeVar("v2"))
    nt = GlobalTypeVar("nt")
    mod[nt] = relay.TypeData(nt, [v1, v2], [])
    call = TypeCall(nt, [TupleType([]), TensorType((1,))])
    assert check_kind(call, mod) == Kind.Type
    with refusing(tvm.TVMError):
        check_kind(TypeCall(nt, [TupleType([])]), mod)
    assert check_kind(mod[nt], mod) == Kind.TypeData


@program
def free_vars_things():
    x = relay.var("x", shape=(1,))
    y = relay.var("y", shape=(1,))
    assert len(free_vars(x)) == 1
    f = relay.Function([x], x + y)
    assert [v.name_hint for v in free_vars(f)] == ["y"]
    assert [v.name_hint for v in bound_vars(f)] == ["x"]
    assert sorted((v.name_hint for v in all_vars(f))) == ["x", "y"]
    let = relay.Let(x, y, x + x)
    assert [v.name_hint for v in free_vars(let)] == ["y"]
    assert len(free_vars(relay.Tuple([x, relay.const(1), y, x]))) == 2
    assert len(free_vars(relay.TupleGetItem(relay.var("t"), 0))) == 1
    assert len(free_vars(relay.Let(x, x, relay.const(1)))) in (0, 1)


@program
def free_type_vars_things():
    tp = TypeVar("")
    t = FuncType([tp], TupleType([tp, TensorType((1,))]))
    x = relay.var("x", tp)
    y = relay.var("y")
    let = relay.Let(x, y, x)
    fvl = free_type_vars(let)
    assert len(fvl) == 1
    assert fvl[0] == tp
    f = relay.Function([x], x, tp, [tp])
    assert len(free_type_vars(f)) == 0
    assert len(bound_type_vars(f)) == 1
    assert len(all_type_vars(f)) == 1
    m = tvm.IRModule.from_expr(f)
    assert len(free_type_vars(f, m)) == 0


@program
def match_vars_bound():
    p = relay.prelude.Prelude()
    rlist, cons, nil = p.mod.get_type("List")
    x, y, z = (relay.Var("x"), relay.Var("y"), relay.Var("z"))
    m1 = relay.Match(nil(), [relay.Clause(relay.PatternConstructor(nil), z), relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternVar(y)]), cons(x, y))])
    assert len(bound_vars(m1)) == 2
    assert len(free_vars(m1)) == 1
    assert len(all_vars(m1)) == 3
    assert len(bound_vars(m1.clauses[1].lhs)) == 2


@program
def well_formed_things():
    x = relay.Var("x")
    assert well_formed(x)
    v = relay.Var("v")
    ten = relay.const(1)
    let = relay.Let(v, ten, v)
    assert well_formed(let)
    let2 = relay.Let(v, let, v)
    assert not well_formed(let2)
    f = relay.Function([v], let)
    assert not well_formed(relay.Function([x, x], x))
    assert well_formed(relay.Tuple([relay.Function([x], x), relay.Function([x], x)])) in (True, False)


@program
def well_formed_match():
    p = relay.prelude.Prelude()
    l, cons, nil = p.mod.get_type("List")
    x = relay.Var("x")
    z = relay.Var("z")
    bad = relay.Match(nil(), [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternVar(x)]), x)])
    assert not well_formed(bad)
    ok = relay.Match(nil(), [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternVar(z)]), x), relay.Clause(relay.PatternWildcard(), relay.const(1))])
    assert well_formed(ok)


@program
def visitor_overrides():

    class Count(TypeVisitor):

        def __init__(self):
            super().__init__()
            self.seen = []

        def visit_tensor_type(self, t):
            self.seen.append(tuple((int(s) for s in t.shape)))

        def visit_type_var(self, t):
            self.seen.append(t.name_hint)
    c = Count()
    a = TypeVar("a")
    c.visit(FuncType([TensorType((1,)), a], TupleType([TensorType((2, 3)), RefType(a)]), [a]))
    assert (1,) in c.seen
    assert (2, 3) in c.seen
    assert c.seen.count("a") >= 2


@program
def mutator_changes_dtype():

    class M(TypeMutator):

        def visit_tensor_type(self, t):
            return TensorType(t.shape, "float16")
    t = FuncType([TensorType((1,))], TupleType([TensorType((2,)), RefType(TensorType((3,)))]))
    assert M().visit(t) == FuncType([TensorType((1,), "float16")], TupleType([TensorType((2,), "float16"), RefType(TensorType((3,), "float16"))]))


@program
def mutator_on_all_kinds():
    for t in (TypeVar("a"), GlobalTypeVar("g"), TypeCall(GlobalTypeVar("g"), [TypeVar("a")]), TensorType((1,)), FuncType([], TupleType([])), TupleType([TupleType([])]), RefType(TupleType([])), IncompleteType(Kind.BaseType)):
        assert TypeMutator().visit(t) == t, t
    td = relay.TypeData(GlobalTypeVar("L"), [], [])
    assert tvm.ir.structural_equal(TypeMutator().visit(td), td, map_free_vars=True)
    tr = TypeRelation(tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast"), [TensorType((1,)), TensorType((1,)), IncompleteType()], 2, tvm.ir.make_node("DictAttrs"))
    TypeVisitor().visit(tr)


@program
def type_relation_equal():
    t1, t2 = (TensorType((1,)), TensorType((2,)))
    attrs = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(1, 1))
    attrs_same = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(1, 1))
    attrs2 = tvm.ir.make_node("attrs.TestAttrs", name="b", padding=(1, 1))
    bc = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    idn = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Identity")
    tr = TypeRelation(bc, tvm.runtime.convert([t1, t2]), 1, attrs)
    assert tr == TypeRelation(bc, tvm.runtime.convert([t1, t2]), 1, attrs_same)
    assert tr != TypeRelation(idn, tvm.runtime.convert([t1, t2]), 1, attrs)
    assert tr != TypeRelation(bc, tvm.runtime.convert([t2, t1]), 1, attrs)
    assert tr != TypeRelation(bc, tvm.runtime.convert([t1, t2]), 2, attrs)
    assert tr != TypeRelation(bc, tvm.runtime.convert([t1, t2]), 1, attrs2)


@program
def incomplete_fields():
    i = IncompleteType(Kind.ShapeVar)
    assert i.kind == Kind.ShapeVar
    assert str(i)
    assert IncompleteType().kind == Kind.Type


@program
def type_fields():
    v = TypeVar("v", Kind.BaseType)
    assert v.name_hint == "v"
    assert v.kind == Kind.BaseType
    assert v.span is None
    f = FuncType([TensorType((1,))], TensorType((2,)), [TypeVar("x")])
    assert len(f.arg_types) == 1
    assert f.ret_type.shape[0] == 2
    assert len(f.type_params) == 1
    assert len(f.type_constraints) == 0
    t = TupleType([TensorType((1,)), TensorType(())])
    assert len(t.fields) == 2 and t.fields[1].shape == [] or len(t.fields[1].shape) == 0
    tt = TensorType((1, te.var("n")), "int8")
    assert TensorType((2, 3)).concrete_shape == (2, 3)
    assert RefType(tt).value == tt


@program
def any_things():
    a = relay.Any()
    assert isinstance(a, tir.expr.Any)
    assert a.dtype == "int32"
    assert relay.TensorType((a, 2)) != relay.TensorType((3, 2))
    x = relay.var("x", shape=(relay.Any(), 2))
    y = run_infer_type(x + relay.const(np.ones((1, 2), "float32")))
    assert isinstance(y.checked_type.shape[0], tir.expr.Any)
    assert relay.ty.is_dynamic(run_infer_type(x).checked_type)
    assert not relay.ty.is_dynamic(relay.TensorType((1,)))


@program
def solver_like_inference_shapes():
    x = relay.var("x", shape=(4, 5))
    w = relay.var("w")
    f = run_infer_type(relay.Function([x, w], relay.nn.dense(x, w, units=3)))
    assert f.params[1].checked_type == TensorType((3, 5))
    b = relay.var("b")
    f = run_infer_type(relay.Function([x, b], relay.nn.bias_add(x, b)))
    assert f.params[1].checked_type == TensorType((5,))
    g, be, m, v = (relay.var(n) for n in "gbmv")
    f = run_infer_type(relay.Function([x, g, be, m, v], relay.nn.batch_norm(x, g, be, m, v)[0]))
    assert all((p.checked_type == TensorType((5,)) for p in f.params[1:]))


@program
def infer_type_local_and_infer_type_fn():
    x = relay.var("x", shape=(4, 5))
    t = relay.transform.InferTypeLocal(x + relay.const(1.0))
    assert t is None or t == TensorType((4, 5))
    from tvm.relay.frontend.common import infer_shape, infer_type, infer_value
    assert infer_shape(x + relay.const(1.0)) == (4, 5)
    assert infer_type(relay.sum(x, axis=0)).checked_type == TensorType((5,))
    assert infer_value(relay.const(1.0) + relay.const(2.0), {}).numpy() == 3.0


@program
def features():
    from tvm.relay.analysis import Feature
    fs = detect_feature(relay.const(1))
    assert fs == {Feature.fConstant}, fs
    assert detect_feature(relay.Function([], relay.Tuple([]))) == {Feature.fFunction, Feature.fTuple}
    x = relay.var("x")
    assert Feature.fLet in detect_feature(relay.Let(x, relay.const(1), x))
    assert Feature.fVar in detect_feature(relay.Let(x, relay.const(1), x))
    assert Feature.fIf in detect_feature(relay.If(x, x, x))
    assert Feature.fRefCreate in detect_feature(relay.RefCreate(x))


@program
def get_total_macs():
    x, w = (relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)))
    f = run_infer_type(relay.Function([x, w], relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3))))
    assert analysis.get_total_mac_number(f) == 1 * 4 * 8 * 8 * 3 * 9
    d = run_infer_type(relay.Function([relay.var("p", shape=(2, 3))], relay.const(1.0)))
    assert analysis.get_total_mac_number(d) == 0


@program
def calibration_and_all_dtypes():
    x = relay.var("x", shape=(3,), dtype="int8")
    f = run_infer_type(relay.Function([x], relay.cast(x, "float16")))
    assert set(analysis.all_dtypes(f)) == {"int8", "float16"}


@program
def count_layers():
    from tvm.relay.analysis import count_layers
    n, _ = relay.testing.resnet.get_workload(num_layers=18)
    assert count_layers(n["main"], valid_ops=["nn.conv2d"]) == 18 or count_layers(n["main"], valid_ops=["nn.conv2d"]) > 10
    assert count_layers(n["main"], valid_ops=["nn.dense"]) == 1


@program
def unmatched_cases_things():
    p = relay.prelude.Prelude()
    l, cons, nil = p.mod.get_type("List")
    v = relay.Var("v")
    m = relay.Match(v, [relay.Clause(relay.PatternConstructor(nil, []), v)])
    u = relay.analysis.unmatched_cases(m, p.mod)
    assert len(u) == 1
    assert u[0].constructor == cons
    assert all((isinstance(q, relay.PatternWildcard) for q in u[0].patterns))
    m = relay.Match(v, [relay.Clause(relay.PatternWildcard(), v)])
    assert len(relay.analysis.unmatched_cases(m, p.mod)) == 0
