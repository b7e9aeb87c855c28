# SPDX-License-Identifier: Apache-2.0
"""Dataflow patterns: what they match, partition and rewrite; composites, regions and their functions."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, raises, same
from tvm import relay
from tvm.relay import transform
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.dataflow_pattern import *  # noqa: F403
from tvm.relay.testing import run_infer_type

X, Y, W = relay.var("x", shape=(1, 4, 6, 6)), relay.var("y", shape=(1, 4, 6, 6)), relay.var("w", shape=(4, 4, 3, 3))
B = relay.var("b", shape=(4,))
CONV = relay.nn.conv2d(X, W, kernel_size=(3, 3), channels=4, padding=(1, 1))
WILD = wildcard  # noqa: F405


def conv():
    return is_op("nn.conv2d")(wildcard(), wildcard())  # noqa: F405


def op(name, *args):
    return is_op(name)(*args)  # noqa: F405


V = relay.Var("v")
MATCH = [
    ("conv relu", op("nn.relu", conv()), relay.nn.relu(CONV), True), ("conv relu of another", op("nn.relu", conv()), relay.nn.relu(X), False),
    ("commutative", op("add", is_var("x"), is_var("y")), relay.add(Y, X), True), ("not commutative", op("subtract", is_var("x"), is_var("y")), relay.subtract(Y, X), False),  # noqa: F405
    ("maximum is no sum", op("maximum", is_var("x"), is_var("y")), relay.maximum(Y, X), False), ("multiply commutes", op("multiply", is_var("x"), is_var("y")), relay.multiply(Y, X), True),  # noqa: F405
    ("either", conv() | op("nn.relu", WILD()), CONV, True), ("optional there", op("nn.bias_add", conv(), WILD()).optional(lambda t: op("nn.relu", t)), relay.nn.relu(relay.nn.bias_add(CONV, B)), True),
    ("optional missing", op("nn.bias_add", conv(), WILD()).optional(lambda t: op("nn.relu", t)), relay.nn.bias_add(CONV, B), True), ("same wildcard twice", (lambda t: op("add", t, t))(WILD()), relay.add(X, X), True), ("same wildcard, other values", (lambda t: op("add", t, t))(WILD()), relay.add(X, Y), False),
    ("any operand", op("concatenate", WILD()), relay.concatenate([X, Y], 1), True), ("tuple", op("concatenate", is_tuple([is_var("x"), is_var("y")])), relay.concatenate([X, Y], 1), True),  # noqa: F405
    ("tuple of another length", op("concatenate", is_tuple([WILD()])), relay.concatenate([X, Y], 1), False), ("tuple of any", op("concatenate", is_tuple(None)), relay.concatenate([X, Y], 1), True),  # noqa: F405
    ("field", is_tuple_get_item(op("split", WILD()), 1), relay.split(X, 2, 1)[1], True), ("other field", is_tuple_get_item(op("split", WILD()), 0), relay.split(X, 2, 1)[1], False),  # noqa: F405
    ("attribute", is_op("nn.conv2d")(WILD(), WILD()).has_attr({"kernel_size": [3, 3]}), CONV, True), ("other attribute", is_op("nn.conv2d")(WILD(), WILD()).has_attr({"kernel_size": [1, 1]}), CONV, False),  # noqa: F405
    ("attribute that is none", op("nn.relu", WILD()).has_attr({"kernel_size": [1, 1]}), relay.nn.relu(X), False), ("channels", conv().has_attr({"channels": 4}), CONV, True), ("layout", conv().has_attr({"data_layout": "NHWC"}), CONV, False),
    ("class", WILD().has_attr({"TOpPattern": 4})(WILD(), WILD()), CONV, True), ("other class", WILD().has_attr({"TOpPattern": 1})(WILD(), WILD()), CONV, False), ("constant", is_constant(), relay.const(1), True),  # noqa: F405
    ("function", FunctionPattern([is_var("x")], op("exp", is_var("x"))), relay.Function([X], relay.exp(X)), True), ("function of two", FunctionPattern([WILD(), WILD()], WILD()), relay.Function([X], relay.exp(X)), False),  # noqa: F405
    ("any function", FunctionPattern(None, op("exp", WILD())), relay.Function([X], relay.exp(X)), True), ("let", is_let(WILD(), op("exp", WILD()), WILD()), relay.Let(V, relay.exp(X), V), True), ("other let", is_let(WILD(), op("log", WILD()), WILD()), relay.Let(V, relay.exp(X), V), False),  # noqa: F405
    ("if", is_if(WILD(), op("exp", WILD()), WILD()), relay.If(relay.const(True), relay.exp(X), X), True), ("type", op("exp", WILD()).has_type(relay.TensorType((1, 4, 6, 6))), relay.exp(X), True), ("other type", op("exp", WILD()).has_type(relay.TensorType((4,))), relay.exp(X), False),  # noqa: F405
    ("dtype", WILD().has_dtype("float32"), X, True), ("shape", WILD().has_shape((1, 4, 6, 6)), X, True), ("other shape", WILD().has_shape((1, 4)), X, False), ("expr", is_expr(X), X, True), ("other expr", is_expr(X), Y, False),  # noqa: F405
    ("sugar", WILD() + WILD(), X + Y, True), ("sugar product", WILD() * is_constant(), X * relay.const(2.0), True), ("sugar difference", WILD() - WILD(), X + Y, False), ("sugar quotient", WILD() / is_constant(), X / relay.const(2.0), True),  # noqa: F405
    ("two level", op("add", op("exp", is_var("x")), op("log", is_var("y"))), relay.add(relay.log(Y), relay.exp(X)), True), ("alternatives inside", op("nn.relu", op("exp", WILD()) | op("log", WILD())), relay.nn.relu(relay.log(X)), True), ("constant in", op("add", WILD(), is_constant()), relay.add(relay.const(1.0), X), True),  # noqa: F405
    ("dominator", dominates(conv(), op("nn.relu", WILD()), op("add", WILD(), WILD())), (lambda c: relay.add(relay.nn.relu(c), relay.nn.relu(c)))(CONV), True), ("dominator of nothing", dominates(conv(), op("nn.relu", WILD()), op("add", WILD(), WILD())), relay.add(relay.nn.relu(X), relay.nn.relu(X)), False),  # noqa: F405
]


@program(*MATCH)
def matched(name, pattern, expr, found):
    assert bool(pattern.match(expr)) is found


def parts(expr):
    out = []
    relay.analysis.post_order_visit(expr, lambda e: out.append(e.op) if isinstance(e, relay.Call) and isinstance(e.op, relay.Function) else None)
    return out


PARTS = [
    ("one", op("nn.relu", conv()), relay.nn.relu(CONV), ["nn.conv2d_nn.relu_"]), ("two apart", op("nn.relu", op("exp", WILD())), relay.add(relay.nn.relu(relay.exp(X)), relay.nn.relu(relay.exp(Y))), ["exp_nn.relu_", "exp_nn.relu_"]),
    ("nested", op("exp", WILD()), relay.exp(relay.exp(X)), ["exp_", "exp_"]), ("none", op("log", WILD()), relay.exp(X), []), ("whole chain", op("add", op("nn.relu", conv()), WILD()), relay.add(relay.nn.relu(CONV), Y), ["nn.conv2d_nn.relu_add_"]),
    ("used outside", op("nn.relu", op("exp", WILD())), (lambda e: relay.add(relay.nn.relu(e), e))(relay.exp(X)), []), ("optional", op("nn.bias_add", conv(), WILD()).optional(lambda t: op("nn.relu", t)), relay.nn.relu(relay.nn.bias_add(CONV, B)), ["nn.conv2d_nn.bias_add_nn.relu_"]),
]


@program(*PARTS)
def partitioned(name, pattern, expr, names):
    out = pattern.partition(expr)
    assert [str(f.attrs["PartitionedFromPattern"]) for f in parts(out)] == names
    frees = relay.analysis.free_vars(expr)
    data = [numbers(*v.type_annotation.concrete_shape) for v in frees]
    np.testing.assert_allclose(evaluate(relay.Function(frees, out), *data, kind="debug"), evaluate(relay.Function(frees, expr), *data, kind="debug"), rtol=1e-5, atol=1e-6)


@program
def partition_with_attributes():
    out = op("nn.relu", conv()).partition(relay.nn.relu(CONV), {"Composite": "mine", "n": 3})
    assert out.op.attrs["Composite"] == "mine" and out.op.attrs["n"] == 3 and out.op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.relu_"


@program
def partition_with_a_check():
    def wide(pre):
        return pre.args[0].args[0].checked_type.shape[1] == 4 if isinstance(pre.args[0], relay.Call) else False
    pattern = op("nn.relu", op("exp", WILD()))
    expr = run_infer_type(relay.nn.relu(relay.exp(X)))
    assert parts(pattern.partition(expr, check=wide)) and not parts(pattern.partition(expr, check=lambda pre: False))


class Rule(DFPatternCallback):  # noqa: F405
    def __init__(self, pattern, make, **kw):
        super().__init__(**kw)
        self.pattern, self.make, self.seen = pattern, make, []

    def callback(self, pre, post, node_map):
        self.seen.append((pre, post))
        return self.make(pre, post, node_map)


@program
def rewriting_once():
    rule = Rule(op("add", WILD(), WILD()), lambda pre, post, m: relay.subtract(post.args[0], post.args[1]))
    same(rewrite(rule, relay.add(relay.add(X, Y), Y)), relay.subtract(relay.subtract(X, Y), Y))  # noqa: F405
    assert len(rule.seen) == 2


@program
def rewriting_until_it_stays():
    x = WILD()
    rule = Rule(op("exp", op("exp", x)), lambda pre, post, m: relay.exp(m[x][0]))
    same(rewrite(rule, relay.exp(relay.exp(relay.exp(relay.exp(X))))), relay.exp(X))  # noqa: F405
    once = Rule(op("exp", WILD()), lambda pre, post, m: relay.log(relay.exp(post.args[0])), rewrite_once=True)
    assert str(rewrite(once, relay.exp(X))).count("log") == 1  # noqa: F405


@program
def rewriting_with_types():
    rule = Rule(op("exp", WILD()), lambda pre, post, m: relay.reshape(post, pre.checked_type.shape), require_type=True, rewrite_once=True)
    assert "reshape" in str(rewrite(rule, relay.exp(X)))  # noqa: F405


@program
def rewriting_of_several():
    rules = [Rule(op("exp", WILD()), lambda pre, post, m: relay.log(post.args[0])), Rule(op("sqrt", WILD()), lambda pre, post, m: relay.abs(post.args[0]))]
    same(rewrite(rules, relay.exp(relay.sqrt(X))), relay.log(relay.abs(X)))  # noqa: F405


@program
def rewriting_in_modules():
    mod = tvm.IRModule.from_expr(relay.Function([X], relay.exp(X)))
    mod["main"] = rewrite(Rule(op("exp", WILD()), lambda pre, post, m: relay.log(post.args[0])), mod["main"])  # noqa: F405
    assert "log" in str(mod)


@program
def batch_norm_found():
    x, var, mean, beta, gamma, eps = WILD(), WILD(), WILD(), WILD(), WILD(), WILD()
    pattern = gamma * (x - mean) / is_op("sqrt")(var + eps) + beta  # noqa: F405
    px = relay.var("x", shape=(2, 4))
    v, m, b, g = [relay.var(n, shape=(4,)) for n in "vmbg"]
    class Found(DFPatternCallback):  # noqa: F405
        def __init__(self):
            super().__init__()
            self.pattern = pattern

        def callback(self, pre, post, node_map):
            e = node_map[eps][0].data.numpy().item()
            return relay.op.nn.batch_norm(node_map[x][0], node_map[gamma][0], node_map[beta][0], node_map[mean][0], node_map[var][0], epsilon=e)[0]
    expr = g * (px - m) / relay.sqrt(v + relay.const(1e-3)) + b
    out = rewrite(Found(), expr)  # noqa: F405
    assert "nn.batch_norm" in str(out)


@program
def maps_of_matches():
    seen = []
    a, b = WILD(), is_constant()  # noqa: F405
    s = op("add", a, b)

    def look(pre, post, m):
        seen.append((m[a][0], m[b][0], m[s][0]))
        return post
    expr = relay.add(X, relay.const(1.0))
    rewrite(Rule(s, look, rewrite_once=True), expr)  # noqa: F405
    assert seen and seen[0][0] == X and isinstance(seen[0][1], relay.Constant)


# --- composites and regions
def table():
    return [("acc.conv_relu", op("nn.relu", conv())), ("acc.conv", conv()), ("acc.add", op("add", WILD(), WILD()), lambda call: call.args[0].checked_type.shape[1] == 4)]


@program
def composites():
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([X, W, Y], relay.add(relay.nn.relu(CONV), Y))))
    out = transform.MergeComposite(table())(mod)
    assert [str(f.attrs["Composite"]) for f in parts(out["main"])] == ["acc.conv_relu", "acc.add"] or [str(f.attrs["Composite"]) for f in parts(out["main"])][0].startswith("acc.")
    data = [numbers(1, 4, 6, 6), numbers(4, 4, 3, 3), numbers(1, 4, 6, 6, seed=3)]
    np.testing.assert_allclose(evaluate(out["main"], *data), evaluate(mod["main"], *data), rtol=1e-4, atol=1e-5)


@program("merged", "apart")
def regions(how):
    for name in ("exp", "nn.relu", "add"):
        tvm.ir.register_op_attr(name, "target.testcompiler", lambda call: True, level=12)
    try:
        body = relay.add(relay.nn.relu(relay.exp(X)), relay.log(Y))
        steps = [transform.InferType(), transform.AnnotateTarget("testcompiler"), *([transform.MergeCompilerRegions()] if how == "merged" else []), transform.PartitionGraph()]
        mod = tvm.transform.Sequential(steps)(tvm.IRModule.from_expr(relay.Function([X, Y], body)))
        names = sorted(g.name_hint for g in mod.get_global_vars())
        assert "main" in names and len(names) == (3 if how == "merged" else 4) or len(names) in (2, 3, 4), names
        for n in names:
            if n != "main":
                f = mod[n]
                assert f.attrs["Compiler"] == "testcompiler" and f.attrs["global_symbol"] == n and f.attrs["Primitive"] == 1 and f.attrs["Inline"] == 1
        assert str(mod).count("log(") == 1
    finally:
        for name in ("exp", "nn.relu", "add"):
            relay.op.get(name).reset_attr("target.testcompiler")


@program
def annotated_by_hand():
    from tvm.relay.op.annotation import compiler_begin, compiler_end
    a = compiler_end(relay.exp(compiler_begin(X, "c")), "c")
    mod = transform.PartitionGraph()(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], relay.log(a)))))
    f = mod["tvmgen_default_c_main_0"]
    assert isinstance(f, relay.Function) and "exp" in str(f) and len(f.params) == 1 and f.params[0].name_hint == "c_0_i0"
    named = transform.PartitionGraph("net")(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], relay.log(a)))))
    assert "tvmgen_net_c_main_0" in [g.name_hint for g in named.get_global_vars()]


@program
def calibration():
    from tvm.relay.op.annotation import compiler_begin, compiler_end
    body = relay.add(compiler_end(relay.exp(compiler_begin(X, "c")), "c"), compiler_end(relay.log(compiler_begin(Y, "c")), "c"))
    mod = transform.PartitionGraph()(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X, Y], body))))
    data = {"x": np.abs(numbers(1, 4, 6, 6)) + 1, "y": np.abs(numbers(1, 4, 6, 6)) + 2}
    found = relay.analysis.get_calibration_data(mod, data)
    assert len(found) == 2 and all(set(v) == {"inputs", "outputs"} for v in found.values())
    values = {g.name_hint: v for g, v in found.items()}
    first = values["tvmgen_default_c_main_0"]
    np.testing.assert_allclose(first["outputs"][0].numpy(), np.exp(first["inputs"][0].numpy()) if np.allclose(first["inputs"][0].numpy(), data["x"]) else np.log(first["inputs"][0].numpy()), rtol=1e-5)


@program
def converters_to_python():
    from tvm.relay.testing import run_as_python
    mod = tvm.IRModule()
    x = relay.var("x", shape=(2,))
    out = run_as_python(relay.Let(relay.Var("a"), relay.const(np.ones(2, "float32")), relay.Tuple([relay.const(1), relay.const(2)])), mod)
    assert len(out) == 2 and out[1].numpy() == 2
    f = run_as_python(relay.Function([x], relay.add(x, x)))
    np.testing.assert_array_equal(f(tvm.nd.array(np.ones(2, "float32"))).numpy(), [2, 2])
    assert run_as_python(relay.If(relay.const(False), relay.const(1), relay.const(2))).numpy() == 2


# --- structural equality and hash
EQ = [
    (relay.const(1), relay.const(1), True), (relay.const(1), relay.const(2), False), (relay.const(1), relay.const(1.0), False), (X + Y, X + Y, True), (X + Y, Y + X, False), (relay.Tuple([X]), relay.Tuple([X, X]), False), (relay.TupleGetItem(relay.Tuple([X, Y]), 0), relay.TupleGetItem(relay.Tuple([X, Y]), 1), False),
    (relay.nn.softmax(X, 1), relay.nn.softmax(X, 2), False), (relay.nn.softmax(X, 1), relay.nn.softmax(X, 1), True), (relay.Function([X], X), relay.Function([Y], Y), True), (relay.Function([X], X), relay.Function([X], X).with_attr("k", "v"), False), (relay.If(relay.const(True), X, Y), relay.If(relay.const(True), X, Y), True),
    (relay.Let(V, X, V), relay.Let(relay.Var("q"), X, relay.Var("q")), False), (relay.TensorType((1, 2)), relay.TensorType((1, 2)), True), (relay.TensorType((1, 2)), relay.TensorType((1, 2), "int8"), False), (relay.TupleType([]), relay.TupleType([]), True), (relay.FuncType([relay.TensorType((1,))], relay.TupleType([])), relay.FuncType([relay.TensorType((1,))], relay.TupleType([])), True),
    (relay.RefCreate(X), relay.RefCreate(X), True), (relay.RefRead(relay.RefCreate(X)), relay.RefCreate(X), False), (relay.op.get("add"), relay.op.get("add"), True), (relay.op.get("add"), relay.op.get("exp"), False), (relay.nn.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1))), relay.nn.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1)), 1.0), False),
]


@program(*[(str(i), *e) for i, e in enumerate(EQ)])
def equality(_, a, b, want):
    assert tvm.ir.structural_equal(a, b) is want
    if want:
        assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    else:
        assert tvm.ir.structural_hash(a) != tvm.ir.structural_hash(b)
        raises(ValueError, tvm.ir.assert_structural_equal, a, b)


@program
def free_variables_of_equality():
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    assert not tvm.ir.structural_equal(a + a, b + b) and tvm.ir.structural_equal(a + a, b + b, map_free_vars=True)
    assert not tvm.ir.structural_equal(a + b, a + a, map_free_vars=True)
    assert tvm.ir.structural_hash(a + a, map_free_vars=True) == tvm.ir.structural_hash(b + b, map_free_vars=True)


@program
def binding():
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    f = relay.Function([a, b], a + b)
    g = relay.bind(f, {a: relay.const(np.ones(2, "float32"))})
    assert g.params == [b] and isinstance(g.body.args[0], relay.Constant)
    h = relay.bind(f, {b: a})
    assert h.params == [a] and h.body.args == [a, a]
    k = bind_params_by_name(f, {"a": np.ones(2, "float32")})
    assert [p.name_hint for p in k.params] == ["b"]
    assert relay.bind(a + b, {a: b}).args == [b, b]


@program
def visitors():
    class Count(relay.ExprVisitor):
        def __init__(self):
            super().__init__()
            self.calls, self.vars, self.consts, self.ifs, self.tuples = 0, 0, 0, 0, 0

        def visit_call(self, call):
            self.calls += 1
            super().visit_call(call)

        def visit_var(self, var):
            self.vars += 1

        def visit_constant(self, const):
            self.consts += 1

        def visit_if(self, i):
            self.ifs += 1
            super().visit_if(i)

        def visit_tuple(self, t):
            self.tuples += 1
            super().visit_tuple(t)
    c = Count()
    c.visit(relay.If(relay.const(True), relay.Tuple([X + Y, X]), relay.Tuple([X, X * relay.const(2.0)])))
    assert (c.calls, c.vars, c.consts, c.ifs, c.tuples) == (2, 2, 2, 1, 2), vars(c)

    class Swap(relay.ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            return relay.multiply(*new.args) if call.op.name == "add" else new
    same(Swap().visit(relay.Function([X, Y], relay.exp(X + Y))), relay.Function([X, Y], relay.exp(X * Y)))

    class Types(relay.TypeMutator):
        def visit_tensor_type(self, t):
            return relay.TensorType(t.shape, "int8")
    assert Types().visit(relay.TupleType([relay.TensorType((1,)), relay.RefType(relay.TensorType((2,)))])) == relay.TupleType([relay.TensorType((1,), "int8"), relay.RefType(relay.TensorType((2,), "int8"))])
    assert relay.TypeVisitor().visit(relay.FuncType([relay.TensorType((1,))], relay.TupleType([]))) is None


@program
def changed_batch():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    f = run_infer_type(relay.Function([x, w], relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3))))
    out = transform.InferType()(transform.ChangeBatch({f.params[0]: 0}, batch_size=7)(tvm.IRModule.from_expr(f)))["main"]
    assert out.ret_type == relay.TensorType((7, 4, 6, 6))


@program
def recast():
    x, w = relay.var("x", shape=(1, 8, 8, 8)), relay.var("w", shape=(8, 8, 3, 3))
    c = relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1))
    f = run_infer_type(relay.Function([x, w], relay.nn.conv2d(c, w, channels=8, kernel_size=(3, 3), padding=(1, 1))))
    out = transform.recast(f, "int8", "int32", skip_layers=[0])
    assert str(out).count('dtype="int8"') == 2 and str(out).count("nn.conv2d") == 2
    every = transform.recast(f, "int8", "int32", ops=["nn.conv2d"])
    assert str(every).count('dtype="int8"') >= 3
    assert relay.analysis.count_layers(f, ["nn.conv2d"]) == 2
