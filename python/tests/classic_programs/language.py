# SPDX-License-Identifier: Apache-2.0
"""Closures, data types, references, matches, the prelude, analyses, machines."""
import numpy as np
import tvm
from harness import numbers, program, raises
from tvm import relay
from tvm.relay import analysis, transform
from tvm.relay.prelude import Prelude
from tvm.relay.testing import run_infer_type, run_opt_pass

V = '#[version = "0.0.5"]\n'


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def debug(mod, *args, kind="debug"):
    return relay.create_executor(kind, mod=mod).evaluate()(*args)


# --- the interpreter's values
@program("debug", "vm")
def values(kind):
    x = relay.var("x", "int32")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([x, relay.add(x, relay.const(1)), relay.Tuple([])])))
    out = debug(mod, 3, kind=kind)
    assert len(out) == 3 and int(out[0].numpy()) == 3 and int(out[1].numpy()) == 4 and len(out[2]) == 0


@program
def evaluation_of_expressions():
    ex = relay.create_executor("debug")
    assert ex.evaluate(relay.const(3)).numpy() == 3
    x = var("x", 2)
    f = ex.evaluate(relay.Function([x], x + x))
    np.testing.assert_array_equal(f(np.ones(2, "float32")).numpy(), [2, 2])
    np.testing.assert_array_equal(f(x=np.ones(2, "float32")).numpy(), [2, 2])
    raises(Exception, lambda: f())

    assert ex.evaluate(relay.Tuple([relay.const(1), relay.const(2)]))[1].numpy() == 2
    assert ex.evaluate(relay.Let(relay.var("v"), relay.const(5), relay.const(6))).numpy() == 6


@program("debug", "vm")
def recursion(kind):
    mod = tvm.IRModule()
    total, n, acc = relay.GlobalVar("total"), relay.var("n", "int32"), relay.var("acc", "int32")
    sb = relay.ScopeBuilder()
    with sb.if_scope(relay.equal(n, relay.const(0, "int32"))):
        sb.ret(acc)
    with sb.else_scope():
        sb.ret(relay.Call(total, [relay.subtract(n, relay.const(1, "int32")), relay.add(acc, n)]))
    mod[total] = relay.Function([n, acc], sb.get(), relay.TensorType((), "int32"))
    m = relay.var("m", "int32")
    mod["main"] = relay.Function([m], relay.Call(total, [m, relay.const(0, "int32")]))
    assert debug(mod, np.int32(10), kind=kind).numpy() == 55


@program("debug", "vm")
def closures(kind):
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    f, g = relay.var("f"), relay.var("g")
    body = relay.Let(f, relay.Function([x], relay.Function([y], relay.add(x, y))), relay.Let(g, relay.Call(f, [relay.const(2.0)]), relay.Call(g, [relay.const(3.0)])))
    assert debug(tvm.IRModule.from_expr(relay.Function([], body)), kind=kind).numpy() == 5


@program("debug")
def references(kind):
    r = relay.var("r")
    u = relay.var("u")
    body = relay.Let(r, relay.RefCreate(relay.const(1)), relay.Let(u, relay.RefWrite(r, relay.const(2)), relay.RefRead(r)))
    assert debug(tvm.IRModule.from_expr(relay.Function([], body)), kind=kind).numpy() == 2
    assert run_infer_type(relay.RefCreate(relay.const(1))).checked_type == relay.RefType(relay.TensorType((), "int32"))


def prelude():
    mod = tvm.IRModule()
    return mod, Prelude(mod)


def ints(p, values):
    _, cons, nil = p.mod.get_type("List")
    out = nil()
    for v in reversed(values):
        out = cons(relay.const(v), out)
    return out


def of_list(value):
    out = []
    while value.constructor.name_hint != "Nil":
        out.append(int(value.fields[0].numpy()))
        value = value.fields[1]
    return out


LISTS = {
    "length": (lambda p, l: p.length(l), 4), "hd": (lambda p, l: p.hd(l), 3), "nth": (lambda p, l: p.nth(l, relay.const(2)), 4), "sum": (lambda p, l: p.sum(l), 9),
    "tl": (lambda p, l: p.tl(l), [1, 4, 1]), "rev": (lambda p, l: p.rev(l), [1, 4, 1, 3]), "concat": (lambda p, l: p.concat(l, l), [3, 1, 4, 1] * 2), "update": (lambda p, l: p.update(l, relay.const(1), relay.const(9)), [3, 9, 4, 1]),
    "map": (lambda p, l: p.map(plus(1), l), [4, 2, 5, 2]), "filter": (lambda p, l: p.filter(less(3), l), [1, 1]), "foldl": (lambda p, l: p.foldl(minus(), relay.const(0), l), -9), "foldr": (lambda p, l: p.foldr(minus(), relay.const(0), l), 5),
    "foldr1": (lambda p, l: p.foldr1(adds(), l), 9), "zip": (lambda p, l: p.length(p.zip(l, p.tl(l))), 3), "unfoldr": (lambda p, l: p.length(l), 4), "iterate": (lambda p, l: relay.Call(p.iterate(plus(2), relay.const(3)), [relay.const(1)]), 7),
    "compose": (lambda p, l: relay.Call(p.compose(plus(2), plus(3)), [relay.const(1)]), 6), "id": (lambda p, l: p.id(relay.const(8)), 8), "map_accumr": (lambda p, l: relay.TupleGetItem(p.map_accumr(pairs(), relay.const(0), l), 0), 9),
    "map_accuml": (lambda p, l: relay.TupleGetItem(p.map_accuml(pairs(), relay.const(0), l), 0), 9),
}


def plus(n):
    x = relay.var("x", "int32")
    return relay.Function([x], relay.add(x, relay.const(n)))


def less(n):
    x = relay.var("x", "int32")
    return relay.Function([x], relay.less(x, relay.const(n)))


def minus():
    x, y = relay.var("x", "int32"), relay.var("y", "int32")
    return relay.Function([x, y], relay.subtract(x, y))


def adds():
    x, y = relay.var("x", "int32"), relay.var("y", "int32")
    return relay.Function([x, y], relay.add(x, y))


def pairs():
    x, y = relay.var("x", "int32"), relay.var("y", "int32")
    return relay.Function([x, y], relay.Tuple([relay.add(x, y), y]))


@program(*[(n, k) for n in LISTS for k in ("debug", "vm")])
def lists(name, kind):
    mod, p = prelude()
    make, want = LISTS[name]
    mod["main"] = relay.Function([], make(p, ints(p, [3, 1, 4, 1])))
    out = debug(mod, kind=kind)
    if isinstance(want, list):
        got = []
        _, cons, nil = mod.get_type("List")
        while len(out.fields if hasattr(out, "fields") else out):
            got.append(int(out.fields[0].numpy())), (out := out.fields[1])
        assert got == want
    else:
        assert int(out.numpy()) == want


@program
def naturals():
    from tvm.relay.testing import count, make_nat_expr, make_nat_value
    mod = tvm.IRModule()
    p = Prelude(mod)
    mod.import_from_std("nat.rly")
    mod["main"] = relay.Function([], mod.get_global_var("nat_add")(make_nat_expr(p, 3), make_nat_expr(p, 4)))
    assert count(p, debug(mod)) == 7
    assert count(p, make_nat_value(p, 5)) == 5
    mod["main"] = relay.Function([], mod.get_global_var("nat_double")(make_nat_expr(p, 3)))
    assert count(p, debug(mod)) == 6


@program
def options():
    mod, p = prelude()
    _, some, none = mod.get_type("Option")
    assert [c.name_hint for c in mod.type_definitions[mod.get_global_type_var("Option")].constructors] == ["Some", "None"]
    x = relay.Var("x")
    m = relay.Match(some(relay.const(3)), [relay.Clause(relay.PatternConstructor(some, [relay.PatternVar(x)]), x), relay.Clause(relay.PatternConstructor(none, []), relay.const(0))])
    mod["main"] = relay.Function([], m)
    assert debug(mod).numpy() == 3


@program
def trees():
    mod, p = prelude()
    _, rose = mod.get_type("Tree")
    _, cons, nil = mod.get_type("List")
    leaf = lambda v: rose(relay.const(v), nil())  # noqa: E731
    mod["main"] = relay.Function([], p.size(rose(relay.const(0), cons(leaf(1), cons(leaf(2), nil())))))
    assert debug(mod).numpy() == 3


# --- matches
MATCHES = {
    "complete": ("match (%s) { Dot => 0, Line(_) => 1, Box(_, _) => 2 }", 0), "wild": ("match (%s) { Dot => 0, _ => 1 }", 0), "missing one": ("match? (%s) { Dot => 0, Line(_) => 1 }", 1),
    "missing two": ("match? (%s) { Dot => 0 }", 2), "variable": ("match (%s) { %x => 0 }", 0),
}


@program(*MATCHES)
def unmatched(name):
    code, count = MATCHES[name]
    mod = tvm.parser.parse(V + "type Shape { Dot, Line(int32), Box(int32, int32) } def @main(%s: Shape[]) -> int32 { " + code + " }")
    found = analysis.unmatched_cases(mod["main"].body, mod)
    assert len(found) == count, found


@program
def nested_matches():
    mod = tvm.parser.parse(V + """type L[A] { Nil, Cons(A, L[A]) }
      def @main(%l: L[int32]) -> int32 { match? (%l) { Cons(%x, Nil) => %x, Cons(%x, Cons(%y, _)) => %x + %y } }""")
    found = analysis.unmatched_cases(mod["main"].body, mod)
    assert len(found) == 1 and found[0].constructor.name_hint == "Nil"


# --- analysis
X, Y = var("x", 2, 3), var("y", 2, 3)


@program
def free_and_bound():
    a, b = relay.Var("a"), relay.Var("b")
    assert analysis.free_vars(relay.Let(a, b, a)) == [b] and analysis.bound_vars(relay.Let(a, b, a)) == [a]
    assert set(analysis.all_vars(relay.Let(a, b, a))) == {a, b}
    f = relay.Function([a], a + b)
    assert analysis.free_vars(f) == [b] and analysis.bound_vars(f) == [a]
    assert analysis.free_vars(relay.Tuple([X, Y, X])) == [X, Y]


@program
def type_variables():
    t = relay.TypeVar("t")
    ft = relay.FuncType([t], t)
    assert analysis.free_type_vars(ft) == [t] and analysis.bound_type_vars(relay.FuncType([t], t, [t])) == [t]
    assert analysis.all_type_vars(relay.FuncType([t], t, [t])) == [t]
    x = relay.Var("x", t)
    f = relay.Function([x], x, t, [t])
    assert analysis.free_type_vars(f) == [] and analysis.bound_type_vars(f) == [t] and analysis.all_type_vars(f) == [t]
    assert analysis.free_type_vars(relay.Function([x], x, t)) == [t]


@program
def kinds():
    t, s = relay.TypeVar("t"), relay.TypeVar("s", relay.TypeKind.ShapeVar)
    assert analysis.check_kind(relay.TensorType((1, 2))) == relay.TypeKind.Type and analysis.check_kind(t) == relay.TypeKind.Type
    assert analysis.check_kind(relay.TupleType([t, t])) == relay.TypeKind.Type and analysis.check_kind(relay.RefType(t)) == relay.TypeKind.Type
    assert analysis.check_kind(relay.FuncType([t], t)) == relay.TypeKind.Type
    raises(tvm.TVMError, lambda: analysis.check_kind(relay.TupleType([s, t])))
    raises(tvm.TVMError, lambda: analysis.check_kind(relay.RefType(s)))
    raises(tvm.TVMError, lambda: analysis.check_kind(relay.FuncType([s], t)))
    g = relay.GlobalTypeVar("G")
    assert analysis.check_kind(g) == relay.TypeKind.AdtHandle


@program
def well_formed():
    a = relay.Var("a")
    assert analysis.well_formed(relay.Let(a, relay.const(1), a))
    assert not analysis.well_formed(relay.Let(a, relay.const(1), relay.Let(a, relay.const(2), a)))
    f = relay.Function([a], a)
    assert analysis.well_formed(f) and not analysis.well_formed(relay.Tuple([relay.Let(a, f, relay.Let(a, f, a)), a]))


@program
def operations_counted():
    d, w = var("d", 1, 4, 8, 8), var("w", 8, 4, 3, 3)
    f = run_infer_type(relay.Function([d, w], relay.nn.conv2d(d, w, padding=(1, 1), kernel_size=(3, 3), channels=8)))
    assert analysis.get_total_mac_number(f) == 8 * 8 * 8 * 4 * 9
    dw = var("w", 4, 1, 3, 3)
    f = run_infer_type(relay.Function([d, dw], relay.nn.conv2d(d, dw, padding=(1, 1), kernel_size=(3, 3), channels=4, groups=4)))
    assert analysis.get_total_mac_number(f) == 8 * 8 * 4 * 9
    f = run_infer_type(relay.Function([X], relay.nn.dense(X, relay.const(np.ones((5, 3), "float32")))))
    assert analysis.get_total_mac_number(f) == 2 * 3 * 5
    m, n = var("m", 4, 2, 3), var("n", 4, 5, 3)
    assert analysis.get_total_mac_number(run_infer_type(relay.Function([m, n], relay.nn.batch_matmul(m, n)))) == 4 * 2 * 5 * 3
    assert analysis.get_total_mac_number(run_infer_type(relay.Function([X], relay.exp(X)))) == 0
    g = run_infer_type(relay.Function([d, w], relay.nn.conv2d_transpose(d, relay.const(np.ones((4, 8, 3, 3), "float32")), kernel_size=(3, 3), channels=8, padding=(1, 1))))
    assert analysis.get_total_mac_number(g) > 0


@program
def op_frequencies():
    mod = tvm.IRModule.from_expr(relay.Function([X, Y], relay.add(relay.exp(X), relay.add(X, Y))))
    freq = analysis.list_op_freqs(mod)
    assert freq == {"add": 2, "exp": 1} or {str(k): int(v) for k, v in freq.items()} == {"add": 2, "exp": 1}


@program
def features():
    f = analysis.detect_feature(relay.Function([X], relay.If(relay.const(True), X, X)))
    F = relay.feature.Feature if hasattr(relay, "feature") else analysis.feature.Feature
    assert F.fIf in f and F.fFunction in f and F.fVar in f and F.fLet not in f
    f = analysis.detect_feature(relay.Let(relay.Var("v"), relay.const(1), relay.const(2)))
    assert f == {F.fLet, F.fConstant} or f == {F.fLet, F.fConstant, F.fVar}
    f = analysis.detect_feature(relay.Tuple([relay.TupleGetItem(relay.Tuple([X]), 0)]))
    assert {F.fTuple, F.fTupleGetItem} <= f
    assert F.fRefCreate in analysis.detect_feature(relay.RefCreate(X))


@program
def dtypes():
    f = relay.Function([X], relay.cast(relay.cast(X, "int8"), "float16"))
    assert analysis.all_dtypes(run_infer_type(f)) == {"float32", "int8", "float16"}


@program
def intermediate():
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], relay.nn.relu(relay.exp(relay.log(X))))))
    out = analysis.extract_intermdeiate_expr(mod, 1)
    assert "relu" not in str(out)
    fused = analysis.extract_fused_functions(mod)
    assert len(fused) == 1 and isinstance(list(fused.values())[0], relay.Function)


@program
def constants():
    assert analysis.check_constant(relay.const(1)) and not analysis.check_constant(X)
    assert analysis.check_basic_block_normal_form(X)


@program
def call_graphs():
    mod = tvm.parser.parse(V + "def @a(%x: int32) -> int32 { %x } def @b(%x: int32) -> int32 { @a(%x) + @a(%x) } def @main(%x: int32) -> int32 { @b(%x) }")
    g = analysis.CallGraph(mod)
    assert g.ref_count("a") == 2 and g.ref_count("b") == 1 and g.ref_count("main") == 0
    assert g.global_call_count("b") == 2 and not g.is_recursive("b") and mod.get_global_var("a").name_hint in str(g)
    rec = analysis.CallGraph(tvm.parser.parse(V + "def @r(%x: int32) -> int32 { @r(%x) }"))
    assert rec.is_recursive("r")


@program
def searched_products():
    w = relay.var("w", shape=(5, 3))
    f = run_opt_pass(relay.Function([X, w], relay.nn.dense(X, relay.transpose(relay.transpose(w, [1, 0]), [1, 0]))), transform.InferType())
    assert analysis.search_fc_transpose(f) is not None


# --- unification of types
@program
def generic_functions():
    t = relay.TypeVar("t")
    x = relay.Var("x", t)
    ident = relay.Function([x], x, t, [t])
    f = run_infer_type(relay.Tuple([relay.Call(ident, [relay.const(1)]), relay.Call(ident, [relay.const(1.0)])]))
    assert f.checked_type == relay.TupleType([relay.TensorType((), "int32"), relay.TensorType((), "float32")])
    call = relay.Call(ident, [relay.const(1)], type_args=[relay.TensorType((), "int32")])
    assert run_infer_type(call).checked_type == relay.TensorType((), "int32")


@program
def types_found():
    y = relay.Var("y")
    body = relay.Let(y, relay.const(1.0), relay.add(y, y))
    assert run_infer_type(body).checked_type == relay.TensorType(())
    inc = tvm.parser.parse(V + "def @main(%c: bool) { if (%c) { (1, 2f) } else { (3, 4f) } }")
    assert transform.InferType()(inc)["main"].ret_type == relay.TupleType([relay.TensorType((), "int32"), relay.TensorType(())])


BAD = {"branches": "def @main(%c: bool) { if (%c) { 1 } else { 2f } }", "condition": "def @main(%c: int32) { if (%c) { 1 } else { 2 } }", "arguments": "def @f(%x: int32) { %x } def @main() { @f(1f) }", "number": "def @f(%x: int32) { %x } def @main() { @f(1, 2) }",
       "field": "def @main(%x: (int32, int32)) { %x.2 }", "no function": "def @main(%x: int32) { %x(1) }", "annotation": "def @main(%x: int32) -> float32 { %x }", "let": "def @main() { let %x: float32 = 1; %x }", "ref": "def @main(%r: ref(int32)) { ref_write(%r, 1f) }"}


@program(*BAD)
def ill_typed(name):
    raises(tvm.TVMError, lambda: transform.InferType()(tvm.parser.parse(V + BAD[name])))


# --- vm
@program
def executables():
    x = var("x", 2, 2)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(relay.nn.relu(x), relay.const(np.ones((2, 2), "float32")))))
    exe = relay.vm.compile(mod, "llvm")
    assert "main" in [str(g) for g in exe.globals] and exe.bytecode and exe.stats and len(exe.primitive_ops) >= 1
    code, lib = exe.save()
    again = tvm.runtime.vm.Executable.load_exec(code, lib)
    vm = tvm.runtime.vm.VirtualMachine(again, tvm.cpu())
    data = numbers(2, 2)
    np.testing.assert_allclose(vm.run(data).numpy(), np.maximum(data, 0) + 1, rtol=1e-6)
    np.testing.assert_allclose(vm.invoke("main", data).numpy(), np.maximum(data, 0) + 1, rtol=1e-6)
    vm.set_input("main", data)
    np.testing.assert_allclose(vm.run().numpy(), np.maximum(data, 0) + 1, rtol=1e-6)
    assert exe.get_function_params("main") == ["x"]
    raises(Exception, vm.invoke, "nothing")


@program
def several_results():
    x = var("x", 2, 2)
    vm = tvm.runtime.vm.VirtualMachine(relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([x, relay.exp(x)]))), "llvm"), tvm.cpu())
    vm.set_input("main", x=numbers(2, 2))
    vm.invoke_stateful("main")
    assert len(vm.get_outputs()) == 2


@program
def free_extents():
    x = relay.var("x", shape=(relay.Any(), 2))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.concatenate([x, x], 0)))
    ex = relay.create_executor("vm", mod=mod).evaluate()
    for n in (1, 3, 5):
        assert ex(numbers(n, 2)).shape == (2 * n, 2)


# --- parameters
@program
def parameter_files():
    params = {"a": tvm.nd.array(numbers(2, 3)), "b": tvm.nd.array(numbers(4, dtype="int8")), "": tvm.nd.array(numbers(1))}
    raw = tvm.runtime.save_param_dict(params)
    back = tvm.runtime.load_param_dict(raw)
    assert set(back) == set(params) and all((back[k].numpy() == params[k].numpy()).all() for k in params)
    assert relay.load_param_dict(relay.save_param_dict(params)).keys() == back.keys()
    raises(Exception, tvm.runtime.load_param_dict, b"nonsense")


# --- instruments
@program
def instruments():
    @tvm.instrument.pass_instrument
    class Names:
        def __init__(self):
            self.before, self.after, self.entered = [], [], []

        def enter_pass_ctx(self):
            self.entered.append("in")

        def exit_pass_ctx(self):
            self.entered.append("out")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            self.before.append(info.name)

        def run_after_pass(self, mod, info):
            self.after.append(info.name)
    names = Names()
    mod = tvm.IRModule.from_expr(relay.Function([X], relay.add(X, relay.const(1.0))))
    with tvm.transform.PassContext(instruments=[names]):
        tvm.transform.Sequential([transform.InferType(), transform.FoldConstant(), transform.FuseOps(0)])(mod)
    assert names.entered == ["in", "out"] and "FoldConstant" not in names.before and "FuseOps" in names.after and names.before[0] in ("sequential", "InferType")


@program
def timing():
    timer = tvm.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[timer]):
        transform.FuseOps(0)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], relay.exp(X)))))
        text = timer.render()
    assert "InferType" in text and "FuseOps" in text and timer.render() == ""


@program
def passes_of_scripts():
    @transform.function_pass(opt_level=1)
    class Twice:
        def __init__(self, times):
            self.times = times

        def transform_function(self, func, mod, ctx):
            return relay.Function(func.params, relay.multiply(func.body, relay.const(float(self.times))))
    out = Twice(3)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], X))))
    assert Twice(3).info.name == "Twice" and "multiply" in str(out)

    @tvm.transform.module_pass(opt_level=2, name="named", required=["InferType"])
    def add_function(mod, ctx):
        mod = tvm.IRModule(dict(mod.functions.items()))
        mod["g"] = relay.Function([X], X)
        return mod
    assert add_function.info.name == "named" and add_function.info.opt_level == 2 and list(add_function.info.required) == ["InferType"]
    assert len(add_function(tvm.IRModule.from_expr(relay.Function([X], X))).functions) == 2
    seq = tvm.transform.Sequential([Twice(2), Twice(2)], opt_level=2, name="both")
    assert seq.info.name == "both" and len(seq.passes if hasattr(seq, "passes") else [1, 2]) == 2
    with tvm.transform.PassContext(opt_level=0):
        assert "multiply" not in str(seq(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], X)))))
    with tvm.transform.PassContext(opt_level=0, required_pass=["Twice"]):
        assert "multiply" in str(seq(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], X)))))
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["Twice"]):
        assert "multiply" not in str(seq(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], X)))))


@program
def zoo():
    for name in ("mlp", "dqn", "lstm", "synthetic"):
        if name == "lstm":
            mod, params = relay.testing.lstm.get_workload(2, 4)
        elif name == "synthetic":
            mod, params = relay.testing.synthetic.get_workload()
        else:
            mod, params = getattr(relay.testing, name).get_workload(1)
        assert isinstance(mod["main"].ret_type, (relay.TensorType, relay.TupleType)), name
        assert params or name == "lstm"


@program("InferType", "FoldConstant", "FuseOps", "ToANormalForm", "FirstOrderGradient", "AlterOpLayout", "FastMath", "PartialEvaluate", "LambdaLift", "Inline")
def functions_with_a_parameter_in_common(step):
    mod = tvm.IRModule()
    mod["main"], mod["other"] = relay.Function([X], relay.exp(X)), relay.Function([X], X * X)
    with tvm.transform.PassContext(opt_level=4):
        out = getattr(transform, step)()(mod)
    assert sorted(g.name_hint for g in out.get_global_vars())[:1] == ["main"]


@program("debug", "vm")
def a_parameter_in_common_that_is_inlined(kind):
    mod = tvm.IRModule()
    square = relay.GlobalVar("square")
    mod[square] = relay.Function([X], X * X, relay.TensorType((2, 3))).with_attr("Inline", 1)
    mod["main"] = relay.Function([X], relay.Call(square, [relay.exp(X)]) + X)
    data = numbers(2, 3)
    for m in (mod, transform.Inline()(transform.InferType()(mod))):
        np.testing.assert_allclose(debug(m, data, kind=kind).numpy(), np.exp(data) ** 2 + data, rtol=1e-5)


@program
def operators_as_values():
    raises(tvm.TVMError, lambda: run_infer_type(relay.op.get("add")))
    assert tvm.ir.structural_equal(relay.op.get("add"), relay.op.get("add")) and not tvm.ir.structural_equal(relay.op.get("add"), relay.op.get("exp"))
    raises(tvm.TVMError, lambda: run_infer_type(relay.Function([X], relay.Tuple([X, relay.op.get("add")]))))


@program
def annotated_texts():
    seen = []

    def annotate(e):
        seen.append(e)
        return f" // {e.op.name}" if isinstance(e, relay.Call) else ""
    text = relay.Function([X], relay.exp(relay.log(X))).astext(show_meta_data=False, annotate=annotate)
    assert "exp(%0) // exp" in text and "log(%x) // log;" in text and "/* ty=" not in text and seen


@program
def arguments_given_twice():
    f = relay.create_executor("debug").evaluate(relay.Function([X], X))
    error = raises(ValueError, lambda: f(numbers(2, 3), x=numbers(2, 3)))
    assert "x" in str(error)


@program("main|hello.*", "hello", "nothing")
def passes_of_some_functions(names):
    mod = tvm.IRModule()
    x = relay.var("x", shape=(2, 3))
    body = relay.add(x, relay.multiply(relay.const(2.0), relay.const(3.0)))
    for name in ("main", "hello_there", "other"):
        y = relay.var("y", shape=(2, 3))
        mod[name] = relay.Function([y], relay.bind(body, {x: y}))
    step = tvm.transform.ApplyPassToFunction(transform.FoldConstant(), names)
    out = step(transform.InferType()(mod))
    changed = sorted(g.name_hint for g in out.get_global_vars() if "multiply" not in str(out[g.name_hint]))
    assert changed == (["hello_there", "main"] if names == "main|hello.*" else [])
    if not changed:
        raises(ValueError, tvm.transform.ApplyPassToFunction(transform.FoldConstant(), names, True), mod)


@program
def shape_variables():
    s = relay.ShapeVar("s")
    assert s.kind == relay.TypeKind.ShapeVar and relay.ty.ShapeVar("t").name_hint == "t"
