# SPDX-License-Identifier: Apache-2.0
"""Types: what is unified with what, relations with unknowns, functions over functions, kinds, what is ill-formed."""
import tvm
from harness import program, refusing
from tvm import relay, te
from tvm.relay import transform
from tvm.relay.testing import run_infer_type
from tvm.ir import IRModule


def make_rel(name, args, num_inputs=None, attrs=None):
    func = tvm.ir.EnvFunc.get("tvm.relay.type_relation." + name)
    if num_inputs is None:
        num_inputs = len(args) - 1
    return relay.ty.TypeRelation(func, args, num_inputs, attrs)


class Solver:
    """The type solver by its hooks."""

    def __init__(self):
        solver = relay.analysis._ffi_api._test_type_solver()
        self.solver = solver
        self.solve = solver("Solve")
        self.unify = solver("Unify")
        self.resolve = solver("Resolve")
        self.constrain = solver("AddConstraint")

    def wanted(self, given, want):
        got = self.resolve(given)
        assert got == want, (got, want)


I = relay.ty.IncompleteType
T = relay.ty.TensorType


@program
def broadcast_of_types():
    s = Solver()
    t2 = I()
    a, b = T((10, 20), "float32"), T((10, 1), "float32")
    s.constrain(make_rel("Broadcast", [a, b, t2]))
    assert s.solve()
    s.wanted(t2, T((10, 20), "float32"))


@program
def two_relations_at_once():
    s = Solver()
    t0, t1, t2, t3 = T((10, 20), "float32"), T((10, 1), "float32"), I(), I()
    s.constrain(make_rel("Broadcast", [t0, t1, t2]))
    s.constrain(make_rel("Broadcast", [t1, t2, t3]))
    assert s.solve()
    s.wanted(t3, T((10, 20), "float32"))


@program
def backwards_through_an_identity():
    s = Solver()
    t0, t1, t2, t3 = I(), I(), I(), I()
    s.constrain(make_rel("Identity", [t0, t1]))
    s.constrain(make_rel("Identity", [t1, t2]))
    assert s.unify(t0, T((10, 20), "float32"))
    assert s.solve()
    s.wanted(t1, T((10, 20), "float32"))
    s.wanted(t2, T((10, 20), "float32"))
    assert isinstance(s.resolve(t3), I)


@program
def tuples_unify():
    s = Solver()
    t0, t1, t2 = I(), I(), I()
    tup0, tup1 = relay.ty.TupleType([t0, t1]), relay.ty.TupleType([t1, t2])
    unified = s.unify(tup0, tup1)
    assert unified == s.resolve(tup1) or isinstance(unified, relay.TupleType)


@program
def global_type_variables_unify():
    s = Solver()
    gtv = relay.GlobalTypeVar("gtv")
    assert s.unify(gtv, gtv) == gtv


@program
def calls_of_types_unify():
    s = Solver()
    gtv = relay.GlobalTypeVar("gtv")
    t1, t2 = I(), I()
    tc1, tc2 = relay.ty.TypeCall(gtv, [t1]), relay.ty.TypeCall(gtv, [t2])
    assert s.unify(tc1, tc2) == tc1 or s.unify(tc1, tc2) == s.resolve(tc2)


@program
def functions_unify():
    s = Solver()
    unit, tensor1, tensor2 = relay.TupleType([]), T((10, 20), "float32"), T((10,), "float32")
    ft1 = relay.FuncType([unit, tensor1], relay.TupleType([tensor1, tensor2]))
    ft2 = relay.FuncType([unit, I()], relay.TupleType([tensor1, I()]))
    assert s.unify(ft1, ft2) == ft1


@program
def polymorphic_functions_unify():
    s = Solver()
    tv1, tv2, tv3, tv4 = (relay.TypeVar(n) for n in ("tv1", "tv2", "tv3", "tv4"))
    ft1 = relay.FuncType([tv1], tv2, [tv1, tv2])
    ft2 = relay.FuncType([tv3], tv4, [tv3, tv4])
    unified = s.unify(ft1, ft2)
    tvm.ir.assert_structural_equal(unified, ft2)
    again = s.unify(unified, ft1)
    tvm.ir.assert_structural_equal(again, ft1)


@program
def references_unify():
    s = Solver()
    unit = relay.TupleType([])
    ref, incomplete = relay.RefType(unit), relay.RefType(I())
    assert s.unify(ref, incomplete) == ref
    assert s.resolve(incomplete) == ref


@program("recursive", "tuples", "functions", "sizes", "dtypes", "ranks")
def what_does_not_unify(kind):
    s = Solver()
    hole = I()
    tensor, unit = T((10, 20), "float32"), relay.TupleType([])
    pairs = {"recursive": (relay.TupleType([hole, hole]), hole), "tuples": (relay.TupleType([unit, unit]), relay.TupleType([unit])),
             "functions": (relay.FuncType([tensor], tensor), relay.FuncType([tensor, tensor], tensor)), "sizes": (tensor, T((10, 21), "float32")),
             "dtypes": (tensor, T((10, 20), "int32")), "ranks": (tensor, T((10,), "float32"))}
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        s.unify(*pairs[kind])
        s.solve()


@program
def relations_about_relations():
    s = Solver()
    t1, t2 = I(), I()
    s.constrain(make_rel("Identity", [t1, t2]))
    tensor = T((1, 5), "float32")
    s.unify(t2, tensor)
    assert s.solve() and s.resolve(t1) == tensor


# ---- inference
@program
def a_let_without_a_type():
    x = relay.var("x")
    assert run_infer_type(relay.Let(x, relay.const(2.0), x)).checked_type == relay.scalar_type("float32")


@program
def a_recursive_function_of_a_let():
    f = relay.Var("f")
    n = relay.var("n", "int32")
    fn = relay.Function([n], relay.If(relay.equal(n, relay.const(0)), n, relay.Call(f, [n - relay.const(1)])), relay.scalar_type("int32"))
    e = relay.Let(f, fn, f)
    assert run_infer_type(e).checked_type == relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("int32"))


@program
def a_loop_over_indices():
    n, i, data = relay.var("n", shape=(), dtype="int32"), relay.var("i", shape=(), dtype="int32"), relay.var("data", shape=(), dtype="float32")
    gv = relay.GlobalVar("f")
    sb = relay.ScopeBuilder()
    with sb.if_scope(relay.equal(i, n)):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(gv(n, relay.add(i, relay.const(1, "int32")), relay.multiply(data, data)))
    mod = IRModule()
    mod[gv] = relay.Function([n, i, data], sb.get())
    ty = relay.transform.InferType()(mod)["f"].checked_type
    assert ty.ret_type == relay.scalar_type("float32")


@program
def incomplete_functions():
    tt = relay.scalar_type("int32")
    x = relay.var("x", tt)
    f = relay.Function([x], x)
    assert run_infer_type(f).checked_type == relay.FuncType([tt], tt)


@program
def types_given_to_calls():
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    ident = relay.Function([x], x, a, [a])
    call = relay.Call(ident, [relay.const(1)], None, [relay.scalar_type("int32")])
    assert run_infer_type(call).checked_type == relay.scalar_type("int32")
    mod = IRModule({"id": ident})
    mod = transform.InferType()(mod)
    assert mod["id"].checked_type == relay.FuncType([a], a, [a])


@program
def fields_of_tuples():
    tp = relay.TensorType((10,), "float32")
    x = relay.var("x", tp)
    t = relay.Tuple([x, x])
    assert run_infer_type(t).checked_type == relay.TupleType([tp, tp])
    assert run_infer_type(relay.TupleGetItem(t, 0)).checked_type == tp
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        run_infer_type(relay.TupleGetItem(t, 2))


@program
def arguments_of_tuples():
    x, y = relay.var("x", shape=(4, 2)), relay.var("y", shape=(4, 3))
    z = relay.concatenate((x, y), 1)
    assert run_infer_type(z).checked_type == T((4, 5), "float32")
    t = relay.var("t", relay.TupleType([T((2, 2)), T((2, 2))]))
    assert run_infer_type(relay.stack(t, 0)).checked_type == T((2, 2, 2), "float32")


@program
def a_function_that_is_never_typed():
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        x = relay.var("x")
        f = relay.Function([x], relay.Call(x, [x]))
        relay.transform.InferType()(IRModule.from_expr(f))["main"].checked_type


@program
def arguments_by_number():
    x = relay.var("x", "int32")
    f = relay.Function([x], x)
    for args in ([], [relay.const(1), relay.const(2)]):
        with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
            run_infer_type(relay.Call(f, args))
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        run_infer_type(relay.Call(f, [relay.const(1.0)]))
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        run_infer_type(relay.add(relay.var("a", shape=(3,)), relay.var("b", shape=(4,))))
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        run_infer_type(relay.If(relay.const(True), relay.const(1), relay.const(1.0)))


@program
def ad_hoc_types_of_matches():
    p = relay.prelude.Prelude()
    nil, cons, l = p.mod.get_type("List")[2], p.mod.get_type("List")[1], p.mod.get_type("List")[0]
    box = relay.GlobalTypeVar("box")
    tv = relay.TypeVar("tv")
    constructor = relay.Constructor("constructor", [tv], box)
    mod = IRModule()
    mod[box] = relay.TypeData(box, [tv], [constructor])
    y, x = relay.Var("y"), relay.const(4)
    match = relay.Match(constructor(x), [relay.Clause(relay.PatternConstructor(constructor, [relay.PatternVar(y)]), y)])
    mod["main"] = relay.Function([], match)
    assert transform.InferType()(mod)["main"].checked_type.ret_type == relay.scalar_type("int32")
    assert nil and cons and l


@program
def a_constructor_is_a_function():
    mod = IRModule()
    box, tv = relay.GlobalTypeVar("box"), relay.TypeVar("tv")
    constructor = relay.Constructor("constructor", [tv], box)
    mod[box] = relay.TypeData(box, [tv], [constructor])
    ct = transform.InferType()(mod_with_main(mod, constructor))["main"].checked_type.ret_type
    expected = relay.FuncType([tv], box(tv), [tv])
    assert ct == expected


def mod_with_main(mod, body):
    mod["main"] = relay.Function([], body)
    return mod


@program
def calls_of_constructors():
    mod = IRModule()
    box, tv = relay.GlobalTypeVar("box"), relay.TypeVar("tv")
    constructor = relay.Constructor("constructor", [tv], box)
    mod[box] = relay.TypeData(box, [tv], [constructor])
    outer = constructor(constructor(relay.Tuple([])))
    ct = transform.InferType()(mod_with_main(mod, outer))["main"].checked_type.ret_type
    assert ct == box(box(relay.TupleType([])))


@program
def declared_results():
    """Any function can be written; the types are compared when they are inferred."""
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], x, T((3,), "int8"))
    assert f.ret_type == T((3,), "int8")
    with refusing(tvm.TVMError):
        run_infer_type(f)
    c = relay.var("c", "bool")
    for branches in ((relay.const(1), relay.const(1.0)), (x, relay.const(1.0))):
        with refusing(tvm.TVMError):
            run_infer_type(relay.Function([c, x], relay.If(c, *branches)))


@program
def free_sizes_relate():
    n = te.var("n")
    x, y = relay.var("x", shape=(n, 4)), relay.var("y", shape=(1, 4))
    assert run_infer_type(x + y).checked_type == T((n, 4), "float32")
    any_ = relay.var("any", shape=(relay.Any(), 4))
    got = run_infer_type(any_ + y).checked_type
    assert isinstance(got.shape[0], tvm.tir.Any) and int(got.shape[1]) == 4


@program
def types_of_let_bound_references():
    sb = relay.ScopeBuilder()
    r = sb.let("r", relay.RefCreate(relay.const(0)))
    sb.let("u", relay.RefWrite(r, relay.const(1)))
    sb.ret(relay.RefRead(r))
    assert run_infer_type(sb.get()).checked_type == relay.scalar_type("int32")
    assert run_infer_type(relay.RefCreate(relay.const(0))).checked_type == relay.RefType(relay.scalar_type("int32"))
    assert run_infer_type(relay.RefWrite(relay.RefCreate(relay.const(0)), relay.const(2))).checked_type == relay.TupleType([])


@program
def dynamic_types_of_functions():
    x = relay.var("x", shape=(relay.Any(), 2))
    got = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], relay.sum(x, 1))))["main"].checked_type.ret_type
    assert len(got.shape) == 1 and isinstance(got.shape[0], tvm.tir.Any)


@program
def locally():
    x = relay.var("x", shape=(1, 8))
    y = relay.nn.relu(x)
    assert relay.transform.InferTypeLocal(y) == T((1, 8), "float32")
    z = relay.nn.dense(y, relay.var("w", shape=(4, 8)))
    assert relay.transform.InferTypeLocal(z) == T((1, 4), "float32")


@program
def all_passes_infer():
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], x + x)
    assert run_infer_type(f).body.checked_type == T((3,), "float32")
    m = IRModule.from_expr(f)
    assert transform.InferType()(m)["main"].params[0].checked_type == T((3,), "float32")
    assert f.params[0].type_annotation == T((3,), "float32")


@program
def kinds_of_types():
    tv = relay.TypeVar("t", relay.TypeKind.Type)
    sv, bv, sh = (relay.TypeVar("x", k) for k in (relay.TypeKind.ShapeVar, relay.TypeKind.BaseType, relay.TypeKind.Shape))
    check = relay.analysis.check_kind
    assert check(tv) == relay.TypeKind.Type and check(sh) == relay.TypeKind.Shape and check(bv) == relay.TypeKind.BaseType
    assert check(sv) == relay.TypeKind.ShapeVar
    assert check(relay.TupleType([tv])) == relay.TypeKind.Type
    gtv = relay.GlobalTypeVar("g")
    assert check(gtv) == relay.TypeKind.AdtHandle
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        check(relay.TupleType([sv]))
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        check(relay.FuncType([sv], tv))
    with refusing((tvm.TVMError, tvm.error.DiagnosticError)):
        check(relay.RefType(sv))


@program
def well_formed_programs():
    x = relay.Var("x")
    assert relay.analysis.well_formed(relay.Function([x], x))
    assert relay.analysis.well_formed(x)
    v = relay.const(1)
    let = relay.Let(x, v, x)
    assert relay.analysis.well_formed(let)
    assert not relay.analysis.well_formed(relay.Let(x, v, let))
    f = relay.Function([x], x)
    assert relay.analysis.well_formed(f)
    f2 = relay.Function([x], relay.Let(x, v, x))
    assert not relay.analysis.well_formed(f2)
    assert relay.analysis.well_formed(relay.Tuple([v, v])) and relay.analysis.well_formed(relay.Tuple([x, x]))
