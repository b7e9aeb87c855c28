# SPDX-License-Identifier: Apache-2.0
"""Types, analyses, gradients and functional passes over small programs."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.ir import IRModule, GlobalVar
from tvm.relay import Function, transform, analysis, Var, Let, If, Tuple, TupleGetItem, Call, const, TypeVar
from tvm.relay.analysis import (all_type_vars, all_vars, bound_type_vars, bound_vars, check_kind, detect_feature, Feature, free_type_vars, free_vars, get_calibration_data, unmatched_cases, well_formed)
from tvm.relay.adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData
from tvm.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from tvm.relay.prelude import Prelude
from tvm.relay.testing import check_grad, run_infer_type, run_opt_pass, rand, make_nat_expr, make_nat_value, count, Prelude as TestingPrelude
from tvm.relay.transform import gradient
from tvm.relay.type_functor import TypeMutator, TypeVisitor

from harness import program, raises, numbers


def run(mod, expr=None):
    return relay.create_executor("debug", mod=mod, device=tvm.cpu(), target="llvm").evaluate(expr) if expr is not None else relay.create_executor("debug", mod=mod, device=tvm.cpu(), target="llvm").evaluate()


# ---- data types
@program
def nats_double_and_add():
    mod = IRModule()
    p = Prelude(mod)
    mod.import_from_std("nat.rly")
    nat, z, s = p.mod.get_type("nat")
    double, add = p.mod.get_global_var("nat_double"), p.mod.get_global_var("nat_add")
    assert mod[double].checked_type == relay.FuncType([nat()], nat())
    assert count(p, run(mod, double(s(z())))) == 2 and count(p, run(mod, add(make_nat_expr(p, 3), s(z())))) == 4
    assert count(p, make_nat_value(p, 10)) == 10


@program
def folds_and_zips():
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    l = cons(const(1), cons(const(2), cons(const(3), nil())))
    x, y = Var("x"), Var("y")
    rev = mod.get_global_var("foldl")(Function([y, x], cons(x, y)), nil(), l)
    first = mod.get_global_var("hd")(rev)
    assert int(run(mod, first).numpy()) == 3
    xs, ys = Var("x"), Var("y")
    diff = mod.get_global_var("foldr")(Function([xs, ys], xs - ys), const(0), l)
    assert int(run(mod, diff).numpy()) == 2
    z = mod.get_global_var("hd")(mod.get_global_var("zip")(l, mod.get_global_var("rev")(l)))
    pair = run(mod, z)
    assert int(pair[0].numpy()) == 1 and int(pair[1].numpy()) == 3 and p is not None


@program
def nth_update_filter_concat():
    mod = IRModule()
    Prelude(mod)
    _, cons, nil = mod.get_type("List")
    g = mod.get_global_var
    l = nil()
    for v in reversed(range(5)):
        l = cons(const(v), l)
    for k in range(5):
        assert int(run(mod, g("nth")(l, const(k))).numpy()) == k
    assert int(run(mod, g("nth")(g("update")(l, const(2), const(99)), const(2))).numpy()) == 99
    x = Var("x", relay.scalar_type("int32"))
    assert int(run(mod, g("length")(g("filter")(Function([x], relay.greater(x, const(1))), l))).numpy()) == 3
    assert int(run(mod, g("sum")(g("concat")(l, l))).numpy()) == 20


@program
def iterate_compose_and_unfold():
    mod = IRModule()
    Prelude(mod)
    g = mod.get_global_var
    x = Var("x", relay.scalar_type("int32"))
    twice = Function([x], x * const(2))
    assert int(run(mod, g("iterate")(twice, const(5))(const(1))).numpy()) == 32
    assert int(run(mod, g("compose")(twice, Function([y := Var("y", relay.scalar_type("int32"))], y + const(1)))(const(4))).numpy()) == 10
    nat, some, none = mod.get_type("Option")
    n = Var("n", relay.scalar_type("int32"))
    body = If(relay.less(n, const(3)), some(Tuple([n + const(1), n])), none())
    out = g("length")(g("unfoldl")(Function([n], body), const(0)))
    assert int(run(mod, out).numpy()) == 3 and nat is not None


@program
def trees_map_and_size():
    mod = IRModule()
    Prelude(mod)
    _, cons, nil = mod.get_type("List")
    tree, rose = mod.get_type("Tree")
    t = rose(const(3), cons(rose(const(4), nil()), nil()))
    assert int(run(mod, mod.get_global_var("size")(t)).numpy()) == 2
    x = Var("x")
    m = mod.get_global_var("tmap")(Function([x], x + const(1)), t)
    assert int(run(mod, m).fields[0].numpy()) == 4 and tree is not None


@program
def constructors_have_types_and_tags():
    mod = IRModule()
    box, tv = relay.GlobalTypeVar("box"), TypeVar("tv")
    ctor = Constructor("box", [tv], box)
    mod[box] = TypeData(box, [tv], [ctor])
    a = TypeVar("a")
    v = Var("v", box(a))
    pv = Var("pv", a)
    f = Function([v], Match(v, [Clause(PatternConstructor(ctor, [PatternVar(pv)]), pv)]), a, [a])
    unbox = GlobalVar("unbox")
    mod[unbox] = f
    mod["main"] = Function([], unbox(ctor(const(1))) + unbox(ctor(const(2))))
    mod = transform.InferType()(mod)
    assert int(run(mod)().numpy()) == 3 and mod["main"].checked_type.ret_type == relay.scalar_type("int32")
    assert mod.get_constructor(ctor.tag).name_hint == "box"


@program
def unmatched_cases_listed():
    mod = IRModule()
    Prelude(mod)
    _, cons, nil = mod.get_type("List")
    v = Var("v")
    m = Match(v, [Clause(PatternConstructor(nil, []), v), Clause(PatternConstructor(cons, [PatternWildcard(), PatternConstructor(cons, [PatternWildcard(), PatternWildcard()])]), v)])
    missing = unmatched_cases(m, mod)
    assert len(missing) == 1 and isinstance(missing[0], PatternConstructor) and missing[0].constructor == cons and missing[0].patterns[1].constructor == nil
    full = Match(v, [Clause(PatternWildcard(), v)])
    assert len(unmatched_cases(full, mod)) == 0
    t = Match(v, [Clause(PatternTuple([PatternConstructor(nil, []), PatternWildcard()]), v)])
    assert len(unmatched_cases(t, mod)) >= 1


# ---- walks
@program
def expression_visitors_count():
    class Counter(ExprVisitor):
        def __init__(self):
            super().__init__()
            self.calls = self.vars = 0

        def visit_call(self, call):
            self.calls += 1
            super().visit_call(call)

        def visit_var(self, var):
            self.vars += 1
    x = Var("x")
    c = Counter()
    y = relay.add(x, x)
    c.visit(Function([x], relay.add(y, y)))
    assert c.calls == 2 and c.vars == 1


@program
def mutators_keep_what_is_equal():
    class Same(ExprMutator):
        pass
    x, y = Var("x"), Var("y")
    for e in (const(1), Tuple([x, y]), TupleGetItem(Tuple([x]), 0), Let(x, const(1), x), If(x, x, y), relay.RefCreate(x), relay.RefWrite(x, y), relay.RefRead(x), Call(y, [x]), Function([x], x)):
        assert tvm.ir.structural_equal(Same().visit(e), e, map_free_vars=True)

    class Zero(ExprMutator):
        def visit_constant(self, c):
            return const(0)
    assert tvm.ir.structural_equal(Zero().visit(x + const(4)), x + const(0), map_free_vars=True)


@program
def functors_without_rules_raise():
    class Nothing(ExprFunctor):
        pass
    raises(NotImplementedError, lambda: Nothing().visit(Var("x")))

    class Types(TypeVisitor):
        def __init__(self):
            super().__init__()
            self.found = []

        def visit_tensor_type(self, t):
            self.found.append(t)
    v = Types()
    t = relay.TensorType((2,), "int8")
    v.visit(relay.FuncType([t, relay.TupleType([t])], relay.RefType(t) if hasattr(relay, "RefType") else t))
    assert len(v.found) == 3


@program
def type_mutators_rebuild():
    class ToInt(TypeMutator):
        def visit_tensor_type(self, t):
            return relay.TensorType(t.shape, "int8")
    t = relay.TupleType([relay.TensorType((2, 3)), relay.FuncType([relay.TensorType((1,))], relay.TensorType(()))])
    out = ToInt().visit(t)
    assert out == relay.TupleType([relay.TensorType((2, 3), "int8"), relay.FuncType([relay.TensorType((1,), "int8")], relay.TensorType((), "int8"))])
    a = TypeVar("a")
    assert TypeMutator().visit(a) == a


# ---- variables and forms
@program
def free_and_bound_variables():
    x, y, z = Var("x"), Var("y"), Var("z")
    assert [v.name_hint for v in free_vars(Let(x, y, relay.add(x, z)))] == ["y", "z"]
    assert list(free_vars(Function([x], x + y))) == [y] and list(bound_vars(Function([x], x + y))) == [x] and len(all_vars(Function([x], x + y))) == 2
    a, b = TypeVar("a"), TypeVar("b")
    f = Function([Var("p", a)], Var("q", b), a, [a])
    assert list(bound_type_vars(f)) == [a] and list(free_type_vars(f)) == [b] and len(all_type_vars(f)) == 2


@program
def kinds_are_checked():
    K = relay.TypeKind
    tp = relay.TypeVar("tp", K.Type)
    sh = relay.TypeVar("sh", K.ShapeVar)
    assert check_kind(relay.TupleType([tp, relay.TensorType((1,))])) == K.Type and check_kind(relay.FuncType([tp], tp, [tp], [])) == K.Type
    raises(tvm.TVMError, lambda: check_kind(relay.TupleType([sh])))
    raises(tvm.TVMError, lambda: check_kind(relay.FuncType([sh], tp, [], [])))
    g = relay.GlobalTypeVar("g")
    assert check_kind(g) == K.AdtHandle and check_kind(sh) == K.ShapeVar


@program
def well_formed_or_not():
    x, y = Var("x"), Var("y")
    assert well_formed(Let(x, const(1), x)) and well_formed(Tuple([Let(x, const(1), x), Let(y, const(1), y)]))
    assert not well_formed(Let(x, const(1), Let(x, const(2), x))) and not well_formed(Tuple([Let(x, const(1), x), Let(x, const(1), x)]))
    assert well_formed(Function([x], x)) and not well_formed(Function([x, x], x))


@program
def features_of_forms():
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(1,))
    assert detect_feature(const(0)) == {Feature.fConstant}
    assert detect_feature(If(const(True), x, y)) == {Feature.fVar, Feature.fIf, Feature.fConstant}
    assert detect_feature(Function([x], Let(y, x, y))) == {Feature.fVar, Feature.fLet, Feature.fFunction}


@program
def a_normal_form_and_back():
    mod = IRModule()
    z = run_opt_pass(relay.const(1.0) + relay.const(2.0) * relay.const(2.0), transform.ToANormalForm())
    assert Feature.fLet in detect_feature(z)
    x = Var("x")
    body = Let(x, const(2.0) + const(0.0), x * x)
    g = run_opt_pass(body, transform.ToGraphNormalForm())
    assert Feature.fLet not in detect_feature(g) and Feature.fGraph in detect_feature(g)
    assert mod is not None and float(run(IRModule.from_expr(g))().numpy()) == 4


@program
def basic_blocks_of_branches():
    x, y = relay.var("x", shape=(), dtype="bool"), relay.var("y", shape=(), dtype="float32")
    body = If(x, relay.add(y, y), relay.multiply(y, y))
    f = Function([x, y], relay.add(body, body))
    out = run_opt_pass(f, transform.ToBasicBlockNormalForm())
    assert analysis.check_basic_block_normal_form(out) and isinstance(out.body, (Let, Call)) and not analysis.check_basic_block_normal_form(Function([x, y], If(x, (s := y + y), s + y) + s))


@program
def eta_expanded_constructors_and_globals():
    mod = tvm.parser.fromtext('#[version = "0.0.5"]\ndef @aux(%x: Tensor[(), int32]) -> Tensor[(), int32] { %x }\ndef @main() -> fn(Tensor[(), int32]) -> Tensor[(), int32] { @aux }')
    out = tvm.transform.Sequential([transform.EtaExpand(expand_global_var=True)])(mod)
    body = out["main"].body
    assert isinstance(body, Function) and isinstance(body.body, Call) and body.body.op == out.get_global_var("aux")
    with_ctor = tvm.parser.fromtext('#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\ndef @main[A]() -> fn(A, List[A]) -> List[A] { Cons }')
    out = transform.EtaExpand(expand_constructor=True)(with_ctor)
    assert isinstance(out["main"].body, Function) and len(out["main"].body.params) == 2


@program
def lambdas_become_globals():
    x, y = Var("x", relay.TensorType((5,))), Var("y", relay.TensorType((5,)))
    mod = IRModule.from_expr(Function([x], Call(Function([y], y + x), [x])))
    out = transform.LambdaLift()(transform.InferType()(mod))
    assert len(out.functions) == 2


@program
def unused_functions_leave():
    mod = IRModule()
    p = Prelude(mod)
    mod["main"] = Function([], const(1))
    assert len(mod.functions) > 10 and p is not None
    out = tvm.transform.Sequential([transform.RemoveUnusedFunctions()])(mod)
    assert [v.name_hint for v in out.get_global_vars()] == ["main"]
    mod["second"] = Function([], mod.get_global_var("length")(mod.get_type("List")[2]()))
    out = transform.RemoveUnusedFunctions(["main", "second"])(mod)
    assert {v.name_hint for v in out.get_global_vars()} == {"main", "second", "length"}


@program
def calls_are_inlined():
    x = relay.var("x", shape=(2,))
    mod = IRModule()
    g = GlobalVar("g")
    mod[g] = Function([x], x + x).with_attr("Inline", tvm.tir.IntImm("int32", 1))
    y = relay.var("y", shape=(2,))
    mod["main"] = Function([y], g(g(y)))
    out = transform.Inline()(transform.InferType()(mod))
    assert "@g" not in out.astext() and out.astext().count("add(") == 2


@program
def defunctionalized_maps():
    mod = tvm.parser.fromtext("""#[version = "0.0.5"]
        type List[A] { Cons(A, List[A]), Nil, }
        def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] { match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil, } }
        def @main(%l: List[float32]) -> List[float32] { @map(fn(%x: float32) { %x + 1f }, %l) }""")
    out = transform.Defunctionalization(transform.InferType()(mod)["main"], transform.InferType()(mod))
    assert out is not None


@program
def dead_lets_go():
    a, b = Var("a"), Var("b")
    f = Let(a, const(1), Let(b, const(2), a))
    assert "let" in str(f) and tvm.ir.structural_equal(run_opt_pass(Function([], f), transform.DeadCodeElimination(True)), run_opt_pass(Function([], const(1)), transform.InferType()))
    r = Let(a, relay.RefCreate(const(1)), Let(Var("u"), relay.RefWrite(a, const(3)), relay.RefRead(a)))
    assert int(run(IRModule.from_expr(run_opt_pass(Function([], r), transform.DeadCodeElimination())))().numpy()) == 3


@program
def partial_evaluation_of_references():
    d = relay.Let(ref := Var("r"), relay.RefCreate(const(1)), Let(Var("u"), relay.RefWrite(ref, const(2)), relay.RefRead(ref)))
    out = run_opt_pass(run_opt_pass(Function([], d), transform.PartialEvaluate()), transform.DeadCodeElimination(inline_once=True))
    assert int(run(IRModule.from_expr(out))().numpy()) == 2 and isinstance(out.body, (Let, relay.Constant))


# ---- gradients
@program
def gradient_of_a_product_and_its_type():
    t = relay.TensorType((10, 10))
    x, y = relay.var("x", t), relay.var("y", t)
    f = run_infer_type(Function([x, y], x * y))
    back = run_infer_type(gradient(f))
    assert back.checked_type == relay.FuncType([t, t], relay.TupleType([t, relay.TupleType([t, t])]))
    a, b = rand("float32", 10, 10), rand("float32", 10, 10)
    out, (dx, dy) = run(IRModule.from_expr(back))(a, b)
    np.testing.assert_allclose(out.numpy(), a.numpy() * b.numpy())
    np.testing.assert_allclose(dx.numpy(), b.numpy())
    np.testing.assert_allclose(dy.numpy(), a.numpy())


@program
def gradient_by_first_order():
    t = relay.TensorType((3, 4))
    x = relay.var("x", t)
    back = run_infer_type(gradient(run_infer_type(Function([x], x - x + relay.sigmoid(x))), mode="first_order"))
    a = numbers(3, 4)
    out, (dx,) = run(IRModule.from_expr(back))(a)
    s = 1 / (1 + np.exp(-a))
    np.testing.assert_allclose(dx.numpy(), s * (1 - s), rtol=1e-4)


@program
def gradients_checked_numerically():
    for op in (relay.nn.softmax, relay.nn.log_softmax, relay.tanh, relay.exp, relay.nn.relu, relay.sqrt):
        x = relay.var("x", shape=(2, 5), dtype="float64")
        check_grad(Function([x], op(x)), inputs=[np.abs(numbers(2, 5, dtype="float64")) + 0.5], eps=1e-5, rtol=1e-4)
    x, w = relay.var("x", shape=(2, 5), dtype="float64"), relay.var("w", shape=(3, 5), dtype="float64")
    check_grad(Function([x, w], relay.nn.dense(x, w)), eps=1e-5, rtol=1e-4)
    x = relay.var("x", shape=(1, 2, 6, 6), dtype="float64")
    check_grad(Function([x], relay.nn.avg_pool2d(x, (2, 2), (2, 2), layout="NCHW")), eps=1e-5)
    check_grad(Function([x], relay.mean(x, axis=(1, 3))), eps=1e-5)


@program
def lazily_initialised_gradients():
    t = relay.TensorType((10, 10))
    x = relay.var("x", t)
    f = Function([x], relay.zeros_like(x) + relay.ones_like(x) * x)
    mod = transform.InferType()(IRModule.from_expr(f))
    out = transform.LazyGradientInit()(mod)
    assert out["main"].checked_type == relay.FuncType([t], t)
    a = numbers(10, 10)
    np.testing.assert_allclose(run(transform.InferType()(out))(a).numpy(), a)


@program
def a_conversion_to_continuations():
    x = relay.var("x", shape=())
    f = transform.InferType()(IRModule.from_expr(Function([x], x + x)))
    cps = transform.to_cps(f["main"], f)
    back = relay.transform.un_cps(cps)
    assert float(run(IRModule.from_expr(back))(np.float32(2)).numpy()) == 4


@program
def calibration_gathers_what_regions_see():
    x, y = relay.var("x", shape=(8, 8)), relay.var("y", shape=(8, 8))
    mod = IRModule()
    f0 = GlobalVar("f0")
    a, b = relay.var("a", shape=(8, 8)), relay.var("b", shape=(8, 8))
    mod[f0] = Function([a, b], a + b).with_attr("Compiler", "test_graph")
    mod["main"] = Function([x, y], Call(f0, [x, y]) - y)
    data = {"x": np.ones((8, 8), "float32"), "y": np.full((8, 8), 3, "float32")}
    got = get_calibration_data(transform.InferType()(mod), data)
    assert len(got) == 1
    v = got[f0] if f0 in got else list(got.values())[0]
    np.testing.assert_allclose(v["outputs"][0].numpy(), 4)
    np.testing.assert_allclose(v["inputs"][1].numpy(), 3)
