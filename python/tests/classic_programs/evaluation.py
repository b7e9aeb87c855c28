# SPDX-License-Identifier: Apache-2.0
"""What partial evaluation and continuations make of programs: references, recursion, data types, closures."""
import numpy as np
import tvm
from harness import program, refusing, same
from tvm import relay
from tvm.relay import Call, Clause, Function, If, Let, Match, PatternConstructor, PatternTuple, PatternVar, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var, const, transform
from tvm.relay.analysis import Feature, detect_feature
from tvm.relay.prelude import Prelude
from tvm.relay.testing import count, make_nat_expr, run_infer_type, run_opt_pass

INT, BOOL = relay.TensorType([], "int32"), relay.TensorType([], "bool")


def evaluated(expr, mod=None, ignore_impurity=True):
    steps = tvm.transform.Sequential([transform.PartialEvaluate(), transform.InferType(), transform.DeadCodeElimination(inline_once=True, ignore_impurity=ignore_impurity), transform.InferType()])
    if mod is None:
        return run_opt_pass(expr, steps)
    mod["main"] = expr
    return steps(mod)["main"]


def value(expr, *args, mod=None):
    made = relay.create_executor(mod=mod).evaluate(expr)
    return made(*args).numpy() if isinstance(expr, (Function, relay.GlobalVar)) else made.numpy()


def partial(f):
    return run_opt_pass(f, transform.PartialEvaluate())


# --- references
@program
def reference_of_a_square():
    d, r, w = Var("d", INT), Var("r"), Var("w")
    body = Let(r, RefCreate(d), Let(w, RefWrite(r, RefRead(r) * RefRead(r)), RefRead(r)))
    same(evaluated(Function([d], body)), run_infer_type(Function([d], d * d)))


@program
def reference_written_in_one_branch():
    c, r, w = Var("c", BOOL), Var("r"), Var("w")
    f = Function([c], Let(r, RefCreate(const(1)), Let(w, If(c, RefWrite(r, const(2)), Tuple([])), RefRead(r))))
    for given, want in ((True, 2), (False, 1)):
        assert value(f, given) == value(partial(f), given) == want


@program
def reference_written_in_a_closure():
    r, f, a, b = Var("r"), Var("f"), Var("a"), Var("b")
    step = Function([], RefWrite(r, RefRead(r) + const(2)))
    g = Function([], Let(r, RefCreate(const(1)), Let(f, step, Let(a, f(), Let(b, f(), RefRead(r))))))
    assert value(g) == value(partial(g)) == 5


@program
def reference_read_before_and_after():
    r, a, b, w = Var("r"), Var("a"), Var("b"), Var("w")
    body = Let(r, RefCreate(const(1)), Let(a, RefRead(r), Let(w, RefWrite(r, const(5)), Let(b, RefRead(r), Tuple([a, b, a])))))
    out = relay.create_executor().evaluate(partial(Function([], body)))()
    assert [int(v.numpy()) for v in out] == [1, 5, 1]


@program
def reference_passed_to_a_function():
    r, v = Var("r", relay.RefType(INT)), Var("v")
    mod = tvm.IRModule()
    mod["add_three"] = Function([r], Let(v, RefRead(r), RefWrite(r, v + const(3))))
    add, c, a, b = mod.get_global_var("add_three"), Var("c"), Var("a"), Var("b")
    mod["main"] = Function([], Let(c, RefCreate(const(1)), Let(a, add(c), Let(b, add(c), RefRead(c)))))
    mod = transform.InferType()(mod)
    assert value(transform.PartialEvaluate()(mod)["main"], mod=mod) == 7


@program
def reference_in_a_loop():
    n, i, f, r, w = Var("n", INT), Var("i", INT), Var("f"), Var("r"), Var("w")
    loop = Function([i], If(relay.equal(i, const(0)), RefRead(r), Let(w, RefWrite(r, RefRead(r) * i), f(i - const(1)))), INT)
    g = Function([n], Let(r, RefCreate(const(1)), Let(f, loop, f(n))))
    assert value(g, np.int32(5)) == value(partial(g), np.int32(5)) == 120


@program
def two_references_of_one_value():
    r, s, w = Var("r"), Var("s"), Var("w")
    body = Let(r, RefCreate(const(1)), Let(s, r, Let(w, RefWrite(s, const(9)), RefRead(r))))
    assert value(Function([], body)) == value(partial(Function([], body))) == 9


# --- recursion and data types
@program(("+", 55), ("*", 3628800))
def recursion_over_a_constant(sign, want):
    x, f = Var("x", INT), Var("f")
    rest = f(x - const(1))
    fn = Function([x], If(relay.equal(x, const(0)), const(0 if sign == "+" else 1), x + rest if sign == "+" else x * rest))
    same(evaluated(run_infer_type(Let(f, fn, f(const(10))))), const(want))


@program
def recursion_without_an_end():
    mod = tvm.IRModule()
    t = relay.TypeVar("t")
    x, loop = Var("x", t), relay.GlobalVar("again")
    mod[loop] = Function([x], loop(x), t, [t])
    assert "@again" in str(evaluated(Function([], loop(const(1))), mod))


def numbers_module():
    mod = tvm.IRModule()
    prelude = Prelude(mod)
    prelude.mod.import_from_std("nat.rly")
    return mod, prelude


@program
def doubled_number():
    mod, p = numbers_module()
    out = evaluated(Function([], p.mod.get_global_var("nat_double")(make_nat_expr(p, 3))), mod)
    assert "nat_double" not in str(out) and count(p, relay.create_executor(mod=mod).evaluate(out.body)) == 6


@program((7, 3, 4), (2, 6, 4), (0, 0, 0))
def difference_of_numbers(a, b, want):
    mod, p = numbers_module()
    nat, z, s = p.mod.get_type("nat")
    x, y, u, v = (Var(n, nat()) for n in "xyuv")
    diff = relay.GlobalVar("apart")
    inner = Match(y, [Clause(PatternConstructor(z, []), x), Clause(PatternConstructor(s, [PatternVar(v)]), diff(u, v))])
    mod[diff] = Function([x, y], Match(x, [Clause(PatternConstructor(z, []), y), Clause(PatternConstructor(s, [PatternVar(u)]), inner)]), nat())
    out = evaluated(Function([], diff(make_nat_expr(p, a), make_nat_expr(p, b))), mod)
    assert "apart" not in str(out) and count(p, relay.create_executor(mod=mod).evaluate(out.body)) == want


@program
def list_mapped():
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = p.mod.get_type("List")
    t = relay.TypeVar("t")
    a, f = Var("a", t), relay.GlobalVar("same")
    mod[f] = Function([a], a, t, [t])
    mod["main"] = Function([], cons(const(3), cons(const(4), nil())))
    want = transform.InferType()(mod)["main"]
    got = evaluated(Function([], p.mod.get_global_var("map")(f, cons(const(3), cons(const(4), nil())))), mod)
    same(got.body, want.body)


@program
def match_of_a_tuple():
    a, b = Var("a"), Var("b")
    x = Match(Tuple([const(2), const(5)]), [Clause(PatternTuple([PatternVar(a), PatternVar(b)]), b - a)])
    same(evaluated(x), const(3))


@program
def field_of_a_tuple():
    t = relay.TypeVar("t")
    x = Var("x", t)
    same(evaluated(Function([x], TupleGetItem(Tuple([const(4.0), x]), 1), None, [t])), run_infer_type(Function([x], x, None, [t])))


# --- continuations
@program
def function_of_functions_and_back():
    mod, p = numbers_module()
    x, i = relay.var("x", shape=(3, 2)), relay.var("i", shape=(3, 2))
    mod["main"] = Function([i], p.mod.get_global_var("nat_iterate")(Function([x], x + x), make_nat_expr(p, 3))(i))
    mod = transform.InferType()(mod)
    mod["main"] = transform.to_cps(mod["main"], mod=mod)
    mod = transform.InferType()(mod)
    mod["main"] = transform.un_cps(mod["main"])
    data = np.arange(6, dtype="float32").reshape(3, 2)
    np.testing.assert_array_equal(relay.create_executor(mod=mod).evaluate()(data).numpy(), 8 * data)


@program
def polymorphic_function_and_back():
    t = relay.TypeVar("t")
    x = relay.var("x", t)
    f = run_infer_type(Function([x], x, t, [t]))
    back = run_infer_type(transform.un_cps(run_infer_type(transform.to_cps(f))))
    assert back.checked_type == f.checked_type


def without_references():
    cond, r = relay.var("cond", shape=(), dtype="bool"), Var("r")
    choice = If(cond, RefWrite(r, Function([], const(1.0))), RefWrite(r, Function([], const(2.0))))
    yield "functions in a reference", Function([cond], Let(r, RefCreate(Function([], const(0.0))), Let(Var("u"), choice, Call(RefRead(r), []))))
    yield "gradient of a branch", transform.gradient(run_infer_type(Function([cond], If(cond, const(1.0), const(2.0)))))
    x, y, z = (relay.var(n, shape=(1, 4)) for n in "xyz")
    yield "gradient of a branch and a sum", transform.gradient(run_infer_type(Function([cond, x, y, z], If(cond, x, y) + z)))


@program(*without_references())
def references_go(_, f):
    """In continuation-passing style each branch sees what it wrote."""
    passed = run_infer_type(transform.to_cps(run_infer_type(f)))
    run_infer_type(transform.un_cps(passed))
    out = run_opt_pass(passed, tvm.transform.Sequential([transform.PartialEvaluate(), transform.InferType(), transform.DeadCodeElimination(inline_once=True, ignore_impurity=True)]))
    assert Feature.fRefCreate not in detect_feature(out), out


# --- bindings and types
@program
def bindings_of_constants_stay():
    v = Var("v", relay.TensorType([], "float32"))
    f = run_infer_type(Function([], Let(v, const(1.0), v + v)))
    for once in (False, True):
        same(run_opt_pass(f, transform.DeadCodeElimination(inline_once=once)), f)


@program
def operands_fit_parameters():
    x, y, z = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 5)), relay.var("z", shape=(2, 3), dtype="int8")
    f = Function([x], relay.exp(x))
    for bad in (f(y), f(z), relay.exp(f(y)), Function([x], x, relay.TensorType((2, 3)))(y), Call(f, [Tuple([x])])):
        with refusing(tvm.TVMError):
            run_infer_type(bad)
    mod = tvm.IRModule()
    mod["f"] = f
    mod["main"] = Function([y], mod.get_global_var("f")(y))
    with refusing(tvm.TVMError):
        transform.InferType()(mod)
    assert run_infer_type(f(relay.var("u", shape=(2, 3)))).checked_type == relay.TensorType((2, 3))


@program
def storage_on_a_device():
    text = """#[version = "0.0.5"]
        def @main() {
          let %size: int64 = cast(64, dtype="int64");
          let %x = memory.alloc_storage(%size, %size, virtual_device=meta[VirtualDevice][0]);
          let %unused = cast(3, dtype="int64");
          0
        }"""
    mod = tvm.parser.parse(text, "from_string", None, {"VirtualDevice": [tvm.target.VirtualDevice(tvm.cpu())]})
    out = str(transform.DeadCodeElimination()(transform.InferType()(mod)))
    assert "memory.alloc_storage" in out and "%unused" not in out
    assert "memory.alloc_storage" not in str(transform.DeadCodeElimination(ignore_impurity=True)(transform.InferType()(mod)))
