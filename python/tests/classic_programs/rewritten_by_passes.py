# SPDX-License-Identifier: Apache-2.0
"""Partial evaluation, normal forms, continuations, lazy gradients, composites, regions, equality and counts."""
import numpy as np
import tvm
from tvm import relay
from tvm.ir import IRModule
from tvm.relay import Call, Function, GlobalVar, If, Let, Match, PatternConstructor, PatternVar, PatternWildcard, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var, analysis, const, op, transform
from tvm.relay.analysis import Feature
from tvm.relay.dataflow_pattern import is_constant, is_op, is_tuple, is_tuple_get_item, wildcard
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.prelude import Prelude
from tvm.relay.testing import make_nat_expr, run_infer_type, run_opt_pass
from tvm.relay.transform import gradient

from harness import program, numbers


def dcpe(expr, mod=None, grad=False):
    passes = [transform.PartialEvaluate(), transform.DeadCodeElimination(inline_once=True, ignore_impurity=True)]
    if grad:
        expr = gradient(run_infer_type(expr))
    if mod:
        mod["main"] = expr
        return tvm.transform.Sequential(passes)(mod)["main"]
    return run_opt_pass(expr, tvm.transform.Sequential(passes))


# ---- partial evaluation
@program
def tuples_are_taken_apart():
    t = relay.TypeVar("t")
    x = relay.var("x", t)
    body = TupleGetItem(Tuple([relay.const(4.0), x]), 1)
    f = Function([x], body, None, [t])
    tvm.ir.assert_structural_equal(dcpe(f), run_opt_pass(Function([x], x, None, [t]), transform.InferType()))


@program
def references_are_followed():
    t = relay.scalar_type("float32")
    d, r = relay.Var("d"), relay.Var("r")
    body = Let(r, RefCreate(d), RefRead(r))
    square = Function([d := relay.var("d", t)], Let(r, RefCreate(d), Let(Var("_"), RefWrite(r, RefRead(r) * RefRead(r)), RefRead(r))))
    assert tvm.ir.structural_equal(dcpe(square), run_opt_pass(Function([d], d * d), transform.InferType())) and body is not None


@program
def free_functions_are_inlined():
    f, x, y = relay.Var("f"), relay.Var("x", relay.scalar_type("int32")), relay.Var("y")
    ff = Function([x, f := relay.Var("f", relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("int32")))], f(f(x)))
    out = run_opt_pass(ff, transform.PartialEvaluate())
    assert out.ret_type == relay.scalar_type("int32") and y is not None


@program
def branches_of_known_conditions_go():
    x = relay.var("x", shape=(), dtype="int32")
    cond = relay.const(True)
    e = dcpe(Function([x], If(cond, x, x + relay.const(1))))
    assert tvm.ir.structural_equal(e, run_opt_pass(Function([x], x), transform.InferType()))


@program
def recursion_over_lists_unrolls():
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = p.mod.get_type("List")
    x = Var("x", relay.scalar_type("int32"))
    f = Function([x], p.mod.get_global_var("hd")(p.mod.get_global_var("map")(Function([y := Var("y", relay.scalar_type("int32"))], y + const(1)), cons(x, nil()))))
    out = dcpe(f, mod=mod)
    assert tvm.ir.structural_equal(out, run_opt_pass(Function([x], x + const(1)), transform.InferType()), map_free_vars=True)


@program
def natural_numbers_evaluate():
    mod = IRModule()
    p = Prelude(mod)
    p.mod.import_from_std("nat.rly")
    nat, z, s = p.mod.get_type("nat")
    x = Var("x", nat())
    two = dcpe(Function([], p.mod.get_global_var("nat_add")(make_nat_expr(p, 1), make_nat_expr(p, 1))), mod=p.mod)
    tvm.ir.assert_structural_equal(two.body, make_nat_expr(p, 2))
    assert x is not None and z is not None and s is not None


@program
def globals_are_evaluated_once():
    m = IRModule()
    x = Var("x", relay.TensorType((10, 20), "float32"))
    gv = GlobalVar("gv")
    m[gv] = Function([x], x)
    y = Var("y", relay.TensorType((10, 20), "float32"))
    m["main"] = Function([y], gv(y))
    out = transform.PartialEvaluate()(transform.InferType()(m))
    assert tvm.ir.structural_equal(out["main"], transform.InferType()(IRModule.from_expr(Function([y], y)))["main"])


# ---- normal forms
@program
def anf_names_every_operator():
    x = relay.var("x", shape=(2,))
    f = Function([x], relay.exp(x) + relay.exp(x))
    out = run_opt_pass(f, transform.ToANormalForm())
    assert isinstance(out.body, Let) and isinstance(out.body.body, Let) and isinstance(out.body.value, Call) and Feature.fGraph not in analysis.detect_feature(out)
    e = transform.ToANormalFormExpr(x + x * x)
    assert isinstance(e, Let)


@program
def anf_of_branches_and_functions():
    cond = relay.const(True)
    x = If(cond, const(2), const(3))
    out = run_opt_pass(x, transform.ToANormalForm())
    assert isinstance(out, Let) and isinstance(out.value, (If, relay.Constant))


@program
def graph_form_of_shared_lets():
    x, y = relay.Var("x", relay.scalar_type("float32")), relay.Var("y")
    e = Let(y, x + x, Let(z := relay.Var("z"), y + y, z + z))
    g = run_opt_pass(Function([x], e), transform.ToGraphNormalForm())
    s = x + x
    t = s + s
    assert tvm.ir.structural_equal(g, run_opt_pass(Function([x], t + t), transform.InferType())) and "let" not in g.astext()


@program
def basic_blocks_do_not_move_into_branches():
    x = relay.var("x", shape=[], dtype="bool")
    y = relay.var("y", shape=[], dtype="float32")
    z = relay.var("z", shape=[], dtype="float32")
    c = relay.add(z, z)
    f = Function([x, y, z], relay.add(relay.If(x, relay.add(y, c), relay.multiply(y, c)), c))
    out = run_opt_pass(f, transform.ToBasicBlockNormalForm())
    assert isinstance(out.body, Let) and isinstance(out.body.value, Call) and analysis.check_basic_block_normal_form(out)


@program
def continuations_of_double_and_recursion():
    t = relay.TypeVar("t")
    x = relay.var("x", t)
    f = relay.var("f", relay.FuncType([t], t))
    double = transform.InferType()(IRModule.from_expr(Function([f, x], f(f(x)), t, [t])))["main"]
    cps = transform.to_cps(double)
    assert len(cps.params) == 3
    inferred = transform.InferType()(IRModule.from_expr(cps))
    assert isinstance(inferred["main"].checked_type, relay.FuncType)


# ---- lazy gradients
@program(("add",), ("multiply",), ("subtract",))
def lazy_zeros_and_ones_keep_values(name):
    mod = IRModule()
    t = relay.TensorType((10, 10), "float32")
    x, y = Var("x", t), Var("y", t)
    mod["main"] = Function([x, y], getattr(relay, name)(relay.zeros_like(x), getattr(relay, name)(x, relay.ones_like(y))))
    mod = transform.InferType()(mod)
    out = transform.InferType()(transform.LazyGradientInit()(mod))
    assert out["main"].checked_type == relay.FuncType([t, t], t)
    a, b = numbers(10, 10), numbers(10, 10, seed=2)
    results = [relay.create_executor("debug", mod=m, device=tvm.cpu(), target="llvm").evaluate()(a, b).numpy() for m in (mod, out)]
    np.testing.assert_allclose(*results)


@program
def lazy_gradients_after_the_gradient():
    t = relay.TensorType((3, 4), "float32")
    x, y = Var("x", t), Var("y", t)
    mod = IRModule()
    mod["main"] = gradient(run_infer_type(Function([x, y], x * y)))
    mod = transform.InferType()(mod)
    out = transform.InferType()(transform.LazyGradientInit()(mod))
    assert out["main"].checked_type == relay.FuncType([t, t], relay.TupleType([t, relay.TupleType([t, t])]))


# ---- composites
@program
def the_longest_composite_wins():
    table = [("unit.conv_add_relu", is_op("nn.relu")(is_op("add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))), ("unit.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))]
    d, k, b = relay.var("d", shape=(1, 3, 8, 8)), relay.var("k", shape=(4, 3, 3, 3)), relay.var("b", shape=(4, 1, 1))
    f = Function([d, k, b], relay.nn.relu(relay.add(relay.nn.relu(relay.add(relay.nn.conv2d(d, k), b)), b)))
    out = transform.MergeComposite(table)(IRModule.from_expr(f))
    text = out.astext()
    assert text.count('Composite="unit.conv_add_relu"') == 1 and text.count('Composite="unit.add_relu"') == 1


@program
def composites_of_shared_parts_and_tuples():
    a = relay.var("a", shape=(1, 4))
    s = relay.split(a, 2, axis=1)
    f = Function([a], relay.concatenate([s[0], s[1]], axis=1))
    p = is_op("concatenate")(is_tuple([is_tuple_get_item(is_op("split")(wildcard()), 0), is_tuple_get_item(is_op("split")(wildcard()), 1)]))
    out = transform.MergeComposite([("unit.shuffle", p)])(IRModule.from_expr(f))
    assert isinstance(out["main"].body.op, Function) and out["main"].body.op.attrs["Composite"] == "unit.shuffle"


@program
def composites_are_checked_by_functions():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    seen = []

    def check(extract):
        seen.append(extract.op.name)
        return False
    f = Function([x, y], relay.nn.relu(x + y))
    out = transform.MergeComposite([("unit.no", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())), check)])(IRModule.from_expr(f))
    assert seen == ["nn.relu"] and "Composite" not in out.astext()
    constant = transform.MergeComposite([("unit.c", is_op("add")(wildcard(), is_constant()))])(IRModule.from_expr(Function([x], x + const(1.0))))
    assert len(constant["main"].body.args) == 1


# ---- regions
@program
def annotated_regions_are_sets():
    data = relay.var("data", shape=(10, 10))
    cb_1 = compiler_begin(data, "test_target")
    o_1 = relay.abs(cb_1)
    ce_1, ce_2 = compiler_end(o_1, "test_target"), compiler_end(o_1, "test_target")
    cb_2 = compiler_begin(ce_1, "test_target")
    o_2 = relay.nn.relu(cb_2)
    ce_3 = compiler_end(o_2, "test_target")
    cb_d = compiler_begin(ce_2, "default")
    x = relay.concatenate([compiler_begin(ce_3, "default"), cb_d], axis=0)
    f = Function([data], compiler_end(x, "default"))
    regions = relay.analysis.AnnotatedRegionSet(f, relay.op.get("annotation.compiler_begin"), relay.op.get("annotation.compiler_end"))
    assert len(regions) == 3 and regions.get_region(ce_1) is not None and regions.get_region(data) is None
    r = regions.get_region(ce_1)
    assert ce_1 in list(r.rets) and cb_1 in list(r.args) and len(list(r.rets)) == 2 and r.target == "test_target" and o_1 in list(r.nodes)


@program
def two_compilers_take_turns():
    x, y = relay.var("x", shape=(8, 8)), relay.var("y", shape=(8, 8))
    a = compiler_end(relay.add(compiler_begin(x, "one"), compiler_begin(y, "one")), "one")
    b = compiler_end(relay.subtract(compiler_begin(a, "two"), compiler_begin(y, "two")), "two")
    mod = transform.PartitionGraph()(transform.MergeCompilerRegions()(IRModule.from_expr(Function([x, y], relay.exp(b)))))
    names = sorted(v.name_hint for v in mod.get_global_vars())
    assert names[:2] == ["main", "tvmgen_default_one_main_0"] and names[2].startswith("tvmgen_default_two_main_")


# ---- equality
@program
def equality_of_functions_and_lets():
    t1, t2 = relay.TensorType((1, 2), "float32"), relay.TensorType((3, 4), "float32")
    v1, v2, v3, v4 = relay.Var("v1", t1), relay.Var("v2", relay.TupleType([t1, t2])), relay.Var("v3", t1), relay.Var("v4", relay.TupleType([t1, t2]))
    f = Function([v1, v2], v1, t1, [])
    equal = tvm.ir.structural_equal
    assert equal(f, Function([v3, v4], v3, t1, [])) and not equal(f, Function([v2, v1], v1, t1, [])) and not equal(f, Function([v1, v2], v2, v2.type_annotation, [])) and not equal(f, v1)
    x, y = Var("x", t1), Var("y", t1)
    assert equal(Let(x, const(2), x), Let(y, const(2), y)) and not equal(Let(x, const(2), x), Let(y, const(3), y)) and not equal(Let(x, const(2), x), Let(y, const(2), const(12)))


@program
def equality_of_types():
    equal = tvm.ir.structural_equal
    t = relay.TensorType((3, 4), "float32")
    assert equal(t, relay.TensorType((3, 4), "float32")) and not equal(t, relay.TensorType((3, 5), "float32")) and not equal(t, relay.TensorType((3, 4), "float64"))
    a, b, s = relay.TypeVar("a", relay.TypeKind.Type), relay.TypeVar("b", relay.TypeKind.Type), relay.TypeVar("s", relay.TypeKind.ShapeVar)
    assert equal(a, a) and not equal(a, b) and not equal(a, s)
    assert equal(relay.FuncType([a], a, [a], []), relay.FuncType([b], b, [b], [])) and not equal(relay.FuncType([a, b], a, [a, b], []), relay.FuncType([a, b], b, [a, b], []))
    i1, i2 = relay.IncompleteType(relay.TypeKind.Type), relay.IncompleteType(relay.TypeKind.ShapeVar)
    assert equal(i1, i1) and not equal(i1, i2)
    assert equal(relay.RefType(t), relay.RefType(t)) and not equal(relay.RefType(t), relay.RefType(a))
    d1, d2 = relay.GlobalTypeVar("d1"), relay.GlobalTypeVar("d2")
    assert equal(relay.TypeCall(d1, [t]), relay.TypeCall(d1, [t])) and not equal(relay.TypeCall(d1, [t]), relay.TypeCall(d2, [t])) and not equal(relay.TypeCall(d1, [t]), relay.TypeCall(d1, [t, t]))


@program
def equality_of_calls_and_attributes():
    v1, v2, v3 = (Var(n) for n in "abc")
    equal = lambda a, b: tvm.ir.structural_equal(a, b, map_free_vars=True)
    op1, op2 = relay.op.get("add"), relay.op.get("subtract")
    assert equal(Call(op1, [v1, v2]), Call(op1, [v3, v2])) and not equal(Call(op1, [v1, v2]), Call(op2, [v1, v2])) and not equal(Call(op1, [v1, v1]), Call(op1, [v1, v2]))
    assert not equal(relay.transpose(v1, (0, 1)), relay.transpose(v1, (1, 0))) and equal(relay.transpose(v1, (0, 1)), relay.transpose(v2, (0, 1)))
    assert equal(If(v1, v2, v3), If(v2, v3, v1)) and not equal(If(v1, v2, v2), If(v1, v2, v3))
    assert equal(Tuple([v1, v2]), Tuple([v2, v1])) and not equal(Tuple([v1]), Tuple([v1, v2])) and not equal(TupleGetItem(v1, 0), TupleGetItem(v1, 1))
    assert not tvm.ir.structural_equal(op1, op2) and tvm.ir.structural_equal(op1, op1)


@program
def equality_of_matches():
    mod = IRModule()
    p = Prelude(mod)
    rlist, cons, nil = p.mod.get_type("List")
    x, y, a = Var("x"), Var("y"), Var("a")

    def make(data, first, second, result):
        return Match(data, [relay.Clause(PatternConstructor(cons, [PatternVar(first), PatternVar(second)]), result), relay.Clause(PatternWildcard(), nil())])
    equal = lambda l, r: tvm.ir.structural_equal(l, r, map_free_vars=True)
    assert equal(make(a, x, y, x), make(a, y, x, y)) and not equal(make(a, x, y, x), make(a, x, y, y)) and rlist is not None
    h = tvm.ir.structural_hash
    assert h(make(a, x, y, x), map_free_vars=True) == h(make(a, y, x, y), map_free_vars=True)


@program
def hashes_follow_equality():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    h = tvm.ir.structural_hash
    assert h(Function([x], relay.exp(x))) == h(Function([y], relay.exp(y))) and h(Function([x], relay.exp(x))) != h(Function([x], relay.log(x)))
    assert h(const(1)) == h(const(1)) and h(const(1)) != h(const(2)) and h(const(1)) != h(const(1.0))
    f = Function([x], x).with_attr("a", 1)
    assert h(f) != h(Function([x], x)) and h(f) == h(Function([x], x).with_attr("a", 1))


# ---- counts
@program
def multiplications_of_layers():
    def macs(params, body):
        return analysis.get_total_mac_number(run_opt_pass(Function(params, body), transform.InferType()))
    x, w = relay.var("x", shape=(1, 512, 28, 28)), relay.var("w", shape=(64, 512, 1, 1))
    assert macs([x, w], relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=64)) == 512 * 28 * 28 * 64
    d, k = relay.var("d", shape=(1, 32, 10, 10)), relay.var("k", shape=(32, 1, 3, 3))
    assert macs([d, k], relay.nn.conv2d(d, k, kernel_size=(3, 3), channels=32, groups=32, padding=(1, 1))) == 32 * 9 * 100
    t, v = relay.var("t", shape=(1, 3, 4, 4)), relay.var("v", shape=(3, 8, 3, 3))
    assert macs([t, v], relay.nn.conv2d_transpose(t, v, channels=8, kernel_size=(3, 3))) == 3 * 8 * 9 * 36
    b, c = relay.var("b", shape=(2, 3, 4)), relay.var("c", shape=(2, 5, 4))
    assert macs([b, c], relay.nn.batch_matmul(b, c)) == 2 * 3 * 4 * 5
    assert macs([x], relay.nn.relu(x)) == 0
