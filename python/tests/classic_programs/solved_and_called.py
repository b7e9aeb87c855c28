# SPDX-License-Identifier: Apache-2.0
"""The type solver, type inference, call graphs, Relay as Python, and gradients of single operators."""
import numpy as np
import tvm
import tvm.relay.testing
import tvm.testing
from tvm import relay
from tvm.relay import analysis, transform, op
from tvm.relay.testing import check_grad, run_infer_type
from tvm.relay.testing.py_converter import run_as_python
from tvm.relay.backend.interpreter import RefValue, ConstructorValue
from tvm.runtime.container import ADT

from harness import program, raises, numbers


def make_rel(name, args, num_inputs=None, attrs=None):
    func = tvm.ir.EnvFunc.get("tvm.relay.type_relation." + name)
    return relay.ty.TypeRelation(func, args, len(args) - 1 if num_inputs is None else num_inputs, attrs)


def make_solver():
    solver = relay.analysis._ffi_api._test_type_solver()
    solver.Solve, solver.Unify, solver.Resolve, solver.AddConstraint = solver("Solve"), solver("Unify"), solver("Resolve"), solver("AddConstraint")

    def gen_type(name, args, out=None):
        out = out or relay.ty.IncompleteType()
        solver.AddConstraint(make_rel(name, args + [out]))
        return out
    solver.gen_type = gen_type
    return solver


# ---- the solver
@program
def broadcasts_are_solved():
    solver = make_solver()
    t0, t1, tc = relay.ty.TensorType((10, 20), "float32"), relay.ty.TensorType((10, 1), "float32"), relay.ty.TensorType((10, 1, 1), "float32")
    t2 = solver.gen_type("Broadcast", [t0, t1])
    t3 = solver.gen_type("Identity", [t2])
    t4 = solver.gen_type("Broadcast", [t3, tc])
    assert solver.Solve()
    assert solver.Resolve(t2) == relay.ty.TensorType((10, 20), "float32") and solver.Resolve(t4) == relay.ty.TensorType((10, 10, 20), "float32")


@program
def what_was_solved_flows_back():
    solver = make_solver()
    t0, t1 = relay.ty.TensorType((10, 20), "float32"), relay.ty.IncompleteType()
    t2 = solver.gen_type("Identity", [t1])
    solver.gen_type("Identity", [t0], out=t1)
    assert solver.Solve() and solver.Resolve(t2) == t0


@program
def unification_of_tuples_and_functions():
    solver = make_solver()
    t1, t2, t3 = relay.ty.IncompleteType(), relay.ty.IncompleteType(), relay.ty.IncompleteType()
    tup1, tup2 = relay.ty.TupleType([t1, t2]), relay.ty.TupleType([relay.TensorType((10, 20), "float32"), t3])
    got = solver.Unify(tup1, tup2)
    assert got == tup2 or got == tup1
    f1 = relay.ty.FuncType([t1], t2)
    assert solver.Unify(f1, relay.ty.FuncType([relay.TensorType((10, 20), "float32")], relay.TensorType((1,), "float32"))) is not None
    assert solver.Resolve(t1) == relay.TensorType((10, 20), "float32")


@program
def what_cannot_be_unified():
    solver = make_solver()
    t = relay.TensorType((10, 20), "float32")
    raises(tvm.TVMError, lambda: solver.Unify(t, relay.ty.TupleType([t])))
    raises(tvm.TVMError, lambda: solver.Unify(relay.ty.TupleType([t]), relay.ty.TupleType([t, t])))
    raises(tvm.TVMError, lambda: solver.Unify(relay.ty.FuncType([t], t), relay.ty.FuncType([t, t], t)))
    x = relay.ty.IncompleteType()
    raises(tvm.TVMError, lambda: make_solver().Unify(x, relay.ty.TupleType([x])))


@program
def globals_and_references_unify():
    solver = make_solver()
    g = relay.GlobalTypeVar("gtv")
    assert solver.Unify(g, g) == g
    a = relay.TypeCall(g, [relay.ty.IncompleteType()])
    b = relay.TypeCall(g, [relay.TensorType((2,), "float32")])
    assert solver.Unify(a, b) == b
    r = relay.RefType(relay.ty.IncompleteType())
    assert solver.Unify(r, relay.RefType(relay.scalar_type("int8"))) == relay.RefType(relay.scalar_type("int8"))
    raises(tvm.TVMError, lambda: solver.Unify(g, relay.GlobalTypeVar("other")))


# ---- inference
@program
def a_recursive_function_has_a_type():
    f, n, data = relay.GlobalVar("f"), relay.var("n", shape=(), dtype="int32"), relay.var("data", shape=(), dtype="float32")
    sb = relay.ScopeBuilder()
    with sb.if_scope(relay.equal(n, relay.const(0))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(relay.Call(f, [relay.subtract(n, relay.const(1)), relay.log(data)]))
    mod = tvm.IRModule()
    mod[f] = relay.Function([n, data], sb.get())
    mod = transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext() and mod["f"].checked_type == relay.FuncType([relay.scalar_type("int32"), relay.scalar_type("float32")], relay.scalar_type("float32"))


@program
def types_of_lets_tuples_and_free_expressions():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    assert run_infer_type(relay.add(x, y)).checked_type == relay.scalar_type("float32")
    t = relay.Tuple([x, y])
    assert run_infer_type(t).checked_type == relay.TupleType([relay.scalar_type("float32")] * 2)
    z = relay.Var("z")
    assert run_infer_type(relay.Function([], relay.Let(z, relay.Tuple([relay.const(1), relay.const(2.0)]), relay.TupleGetItem(z, 1)))).checked_type.ret_type == relay.scalar_type("float32")


@program
def global_polymorphic_functions():
    mod = tvm.IRModule()
    a = relay.TypeVar("a")
    x = relay.Var("x", a)
    ident = relay.GlobalVar("id")
    mod[ident] = relay.Function([x], x, a, [a])
    u = relay.Var("u", relay.TupleType([]))
    mod["main"] = relay.Function([u], ident(u))
    mod = transform.InferType()(mod)
    call = mod["main"].body
    assert call.checked_type == relay.TupleType([]) and list(call.type_args) == [relay.TupleType([])]


@program
def a_count_of_arguments_that_is_wrong():
    raises(tvm.error.DiagnosticError, lambda: run_infer_type(relay.Call(relay.Function([relay.Var("q", relay.scalar_type("int32"))], relay.const(1)), [])))


@program
def equality_dtype_and_if():
    choice = relay.Var("c", relay.scalar_type("bool"))
    raises(tvm.TVMError, lambda: run_infer_type(relay.Function([choice], relay.If(choice, relay.const(1), relay.const(1.0)))))
    raises(tvm.TVMError, lambda: run_infer_type(relay.If(relay.const(1), relay.const(1), relay.const(2))))
    assert run_infer_type(relay.equal(relay.const(1), relay.const(2))).checked_type == relay.scalar_type("bool")


# ---- call graphs
@program
def a_call_graph_prints_and_counts():
    mod = tvm.IRModule()
    x1, x2, x3 = (relay.var(n, shape=(2, 3)) for n in ("x", "x", "x"))
    g1, g2 = relay.GlobalVar("g1"), relay.GlobalVar("g2")
    mod[g1] = relay.Function([x1], x1 + x1)
    mod[g2] = relay.Function([x2], g1(x2))
    mod["main"] = relay.Function([x3], g2(g1(x3)))
    graph = analysis.CallGraph(mod)
    text = graph.print_var("main")
    assert "main" in text and "call node: g1" not in graph.print_var("g1")
    assert graph.ref_count(g1) == 2 and graph.ref_count("g2") == 1 and graph.global_call_count("main") == 2 and not graph.is_recursive("main")
    assert "callers" in str(graph) or "CallGraph" in str(graph) or "Call graph node: main" in str(graph)
    assert graph.module is not None


@program
def recursion_in_a_call_graph():
    mod = tvm.IRModule()
    f = relay.GlobalVar("f")
    x = relay.var("x", shape=(), dtype="int32")
    mod[f] = relay.Function([x], relay.If(relay.equal(x, relay.const(0)), x, f(x - relay.const(1))), relay.scalar_type("int32"))
    y = relay.var("y", shape=(), dtype="int32")
    mod["main"] = relay.Function([y], f(y))
    graph = analysis.CallGraph(mod)
    assert graph.is_recursive("f") and graph.ref_count("f") == 2 and graph.global_call_count("f") == 1


# ---- as Python
def seq(*exprs):
    ret = exprs[0]
    for expr in exprs[1:]:
        ret = relay.Let(relay.var("_"), ret, expr)
    return ret


@program
def relay_runs_as_python():
    assert run_as_python(relay.Tuple([])).tag == 0 if isinstance(run_as_python(relay.Tuple([])), ADT) else len(run_as_python(relay.Tuple([]))) == 0
    assert run_as_python(relay.const(1)).numpy() == 1 and run_as_python(relay.add(relay.const(1), relay.const(2))).numpy() == 3
    v = relay.Var("v")
    assert run_as_python(relay.Let(v, relay.const(5), relay.Tuple([v, v])))[1].numpy() == 5
    r = relay.Var("r")
    out = run_as_python(relay.Let(r, relay.RefCreate(relay.const(1)), seq(relay.RefWrite(r, relay.const(7)), relay.RefRead(r))))
    assert out.numpy() == 7 and isinstance(run_as_python(relay.RefCreate(relay.Tuple([]))), RefValue)


@program
def branches_and_matches_as_python():
    assert run_as_python(relay.If(relay.const(True), relay.const(1), relay.const(2))).numpy() == 1
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    _, cons, nil = mod.get_type("List")
    lst = cons(relay.const(4), cons(relay.const(5), nil()))
    v, w = relay.Var("v"), relay.Var("w")
    m = relay.Match(lst, [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(v), relay.PatternVar(w)]), v), relay.Clause(relay.PatternWildcard(), relay.const(0))])
    assert run_as_python(m, mod).numpy() == 4 and p is not None
    c = run_as_python(lst, mod)
    assert isinstance(c, ConstructorValue) and c.tag == cons.tag and c.fields[0].numpy() == 4
    raises(Exception, lambda: run_as_python(relay.Match(nil(), [relay.Clause(relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternWildcard()]), relay.const(0))], complete=False), mod))


@program
def closures_and_globals_as_python():
    mod = tvm.IRModule()
    g = relay.GlobalVar("g")
    n = relay.var("n", shape=(), dtype="int32")
    mod[g] = relay.Function([n], relay.If(relay.equal(n, relay.const(0)), relay.const(1), relay.multiply(n, g(n - relay.const(1)))), relay.scalar_type("int32"))
    assert run_as_python(relay.Call(g, [relay.const(5)]), mod).numpy() == 120


@program
def operators_with_tuples_as_python():
    a = relay.const(np.arange(6).reshape(2, 3).astype("float32"))
    s = relay.split(a, 3, axis=1).astuple()
    out = run_as_python(s)
    assert len(out) == 3 and out[2].numpy().tolist() == [[2.0], [5.0]]
    assert run_as_python(relay.concatenate([a, a], axis=0)).numpy().shape == (4, 3)
    bn = relay.nn.batch_norm(a, relay.const(np.ones(3, "float32")), relay.const(np.zeros(3, "float32")), relay.const(np.zeros(3, "float32")), relay.const(np.ones(3, "float32")))
    assert np.allclose(run_as_python(bn[0]).numpy(), np.arange(6).reshape(2, 3), atol=1e-3)


# ---- gradients
UNARY = ["sigmoid", "tanh", "exp", "sqrt", "rsqrt", "negative", "abs", "sin", "cos", "atan", "log", "log2", "log10", "cosh", "sinh", "tan", "erf"]


@program(*[(n,) for n in UNARY])
def gradient_of_a_unary_operator(name):
    x = relay.var("x", shape=(10, 4), dtype="float64")
    check_grad(relay.Function([x], getattr(relay, name)(x)), inputs=[np.random.RandomState(4).uniform(0.2, 0.9, (10, 4))], eps=1e-5, rtol=1e-3, atol=1e-3)


@program(("add",), ("subtract",), ("multiply",), ("divide",), ("power",))
def gradient_of_a_binary_operator(name):
    t = relay.TensorType((5, 10, 5), "float64")
    s = relay.TensorType((10, 1), "float64")
    x, y = relay.var("x", t), relay.var("y", s)
    check_grad(relay.Function([x, y], getattr(relay, name)(x, y)), inputs=[np.random.RandomState(1).uniform(0.5, 2, (5, 10, 5)), np.random.RandomState(2).uniform(0.5, 2, (10, 1))], eps=1e-5, rtol=1e-2)


@program
def gradients_of_moves():
    x = relay.var("x", shape=(3, 4, 5), dtype="float64")
    for e in (relay.transpose(x, (0, 2, 1)), relay.transpose(x), relay.reshape(x, (5, 12)), relay.squeeze(relay.expand_dims(x, 1), 1), relay.repeat(x, 2, 1), relay.tile(x, (1, 2, 1)), relay.reverse(x, 1), relay.strided_slice(x, [0, 1, 0], [2, 4, 5], [1, 2, 1]), relay.clip(x, -0.5, 0.5), relay.nn.batch_flatten(x), relay.broadcast_to(x, (2, 3, 4, 5)), relay.layout_transform(relay.expand_dims(x, 0), "NCHW", "NHWC"), relay.stack([x, x], 1), relay.concatenate([x, x], 2), relay.split(x, 2, axis=1)[0], relay.cumsum(x, 1), relay.arange(relay.const(0.0, "float64"), relay.const(3.0, "float64"), relay.const(1.0, "float64"), "float64") * relay.sum(x)):
        check_grad(relay.Function([x], e), eps=1e-5)


@program
def gradients_of_selections():
    x, y, i = relay.var("x", shape=(4, 5), dtype="float64"), relay.var("y", shape=(4, 5), dtype="float64"), relay.var("i", shape=(3,), dtype="int32")
    index, data = np.array([2, 0, 2], "int32"), numbers(4, 5, dtype="float64")
    for axis in (None, 0, 1):
        check_grad(relay.Function([x, i], relay.take(x, i, axis=axis)), inputs=[data, index], test_inputs=[data], eps=1e-5)
    g = relay.var("g", shape=(2, 3), dtype="int32")
    check_grad(relay.Function([x, g], relay.gather_nd(x, g)), inputs=[data, np.array([[1, 0, 3], [2, 4, 2]], "int32")], test_inputs=[data], eps=1e-5)
    check_grad(relay.Function([x, y], relay.where(relay.greater(x, y), x, y)), inputs=[data, data[::-1] + 0.5], eps=1e-6)


@program
def gradients_of_reductions():
    x = relay.var("x", shape=(4, 2, 3), dtype="float64")
    for e in (relay.sum(x), relay.sum(x, axis=1, keepdims=True), relay.mean(x, axis=(0, 2)), relay.max(x, axis=1), relay.min(x, axis=(1, 2)), relay.variance(x, axis=2), relay.sum(x, axis=(0,), exclude=True), relay.nn.softmax(x, axis=1), relay.nn.log_softmax(x)):
        check_grad(relay.Function([x], e), inputs=[np.random.RandomState(5).permutation(24).reshape(4, 2, 3).astype("float64") / 7], eps=1e-5)


@program
def gradients_of_layers():
    x, w = relay.var("x", shape=(1, 4, 7, 7), dtype="float64"), relay.var("w", shape=(2, 4, 3, 3), dtype="float64")
    check_grad(relay.Function([x, w], relay.nn.conv2d(x, w, strides=(2, 2), padding=(1, 1), channels=2, kernel_size=(3, 3))), eps=1e-5)
    check_grad(relay.Function([x], relay.nn.max_pool2d(x, (2, 2), (2, 2))), inputs=[np.random.RandomState(5).permutation(196).reshape(1, 4, 7, 7).astype("float64") / 9], eps=1e-5)
    check_grad(relay.Function([x], relay.nn.global_avg_pool2d(x)), eps=1e-5)
    b = relay.var("b", shape=(4,), dtype="float64")
    check_grad(relay.Function([x, b], relay.nn.bias_add(x, b)), eps=1e-5)
    p, t = relay.var("p", shape=(2, 5), dtype="float64"), relay.var("t", shape=(2, 5), dtype="float64")
    check_grad(relay.Function([p, t], op.nn.cross_entropy_with_logits(p, t)), eps=1e-5)
    check_grad(relay.Function([p, t], op.nn.cross_entropy(p, t)), inputs=[np.abs(numbers(2, 5, dtype="float64")) + 0.3, numbers(2, 5, dtype="float64")], eps=1e-6)
    m, k = relay.var("m", shape=(2, 3, 5), dtype="float64"), relay.var("k", shape=(2, 4, 5), dtype="float64")
    check_grad(relay.Function([m, k], relay.nn.batch_matmul(m, k)), eps=1e-5)
