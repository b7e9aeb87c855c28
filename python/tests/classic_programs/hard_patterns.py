# SPDX-License-Identifier: Apache-2.0
"""Patterns that overlap, dominate, recur, and partition functions and constants."""
import numpy as np
import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.dataflow_pattern import DFPatternCallback, FunctionPattern, DominatorPattern, TupleGetItemPattern, has_attr, is_constant, is_expr, is_if, is_let, is_op, is_tuple, is_tuple_get_item, is_var, rewrite, wildcard

from harness import program, raises

K_ELEMWISE, K_BROADCAST = 0, 1


def reference(x, var, mean, beta, gamma, eps):
    return gamma * (x - mean) / relay.op.sqrt(var + relay.const(eps)) + beta


def five(suffix=""):
    return [relay.var(n + suffix) for n in ("x", "var", "mean", "beta", "gamma")]


def norm_pattern():
    x, var, mean, beta, gamma, eps = (wildcard() for _ in range(6))
    return gamma * (x - mean) / is_op("sqrt")(var + eps) + beta


class NormToOperator(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x, self.var, self.mean, self.beta, self.gamma, self.eps = (wildcard() for _ in range(6))
        self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

    def callback(self, pre, post, node_map):
        x, var, mean, beta, gamma, eps = (node_map[k][0] for k in (self.x, self.var, self.mean, self.beta, self.gamma, self.eps))
        return relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=eps.data.numpy().item())[0]


@program
def a_norm_found_in_a_norm():
    x, var, mean, beta, gamma = five()
    twice = reference(reference(x, var, mean, beta, gamma, 1e-5), var, mean, beta, gamma, 1e-5)
    out = rewrite(NormToOperator(), twice)
    want = relay.op.nn.batch_norm(relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=1e-5)[0], gamma, beta, mean, var, epsilon=1e-5)[0]
    assert tvm.ir.structural_equal(out, want)


@program
def a_norm_partitioned_twice():
    x, var, mean, beta, gamma = five()
    bn1 = reference(x, var, mean, beta, gamma, 1e-5)
    x2, var2, mean2, beta2, gamma2 = five("2")
    bn2 = reference(bn1, var2, mean2, beta2, gamma2, 1e-5)
    parted = norm_pattern().partition(bn2)
    assert isinstance(parted, relay.Call) and isinstance(parted.op, relay.Function) and sum(isinstance(a, relay.Call) for a in parted.args) == 1
    assert parted.op.attrs["PartitionedFromPattern"] == "subtract_multiply_add_sqrt_divide_add_" and x2 is not None
    assert tvm.ir.structural_equal(rewrite(Inline(), parted), bn2)


class Inline(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.pattern = FunctionPattern(None, wildcard())(None)

    def callback(self, pre, post, node_map):
        return relay.bind(post.op.body, dict(zip(post.op.params, post.args)))


@program
def diamonds_through_many_operators():
    inp, weight = relay.var("input"), relay.var("weight")

    def classic_conv2d(x, w):
        return relay.op.nn.conv2d(x, w)
    is_conv2d = is_op("nn.conv2d")(wildcard(), wildcard())
    is_unary = (wildcard().has_attr({"TOpPattern": K_ELEMWISE}))(wildcard()) | (wildcard().has_attr({"TOpPattern": K_BROADCAST}))(wildcard())
    reduction = is_op("add")(wildcard(), wildcard())
    diamond = DominatorPattern(is_conv2d, is_unary, reduction)
    conv = classic_conv2d(inp, weight)
    relu = relay.op.tanh(relay.op.nn.relu(relay.op.nn.relu(conv)))
    leaky = relay.op.nn.leaky_relu(conv, alpha=0)
    assert diamond.match(relu + leaky)
    assert not diamond.match(relu) and not diamond.match(relay.op.nn.relu(inp) + leaky)
    other = classic_conv2d(inp, weight)
    assert not diamond.match(relay.op.nn.relu(other) + leaky)
    out = diamond.partition(relay.op.nn.relu(conv) + leaky)
    assert isinstance(out.op, relay.Function) and len(out.args) == 2


@program
def four_diamonds_in_a_row():
    is_conv2d = is_op("nn.conv2d")(wildcard(), wildcard())
    is_unary = (wildcard().has_attr({"TOpPattern": K_ELEMWISE}))(wildcard()) | (wildcard().has_attr({"TOpPattern": K_BROADCAST}))(wildcard())
    diamond = DominatorPattern(is_conv2d, is_unary, is_op("add")(wildcard(), wildcard()))
    weight = relay.var("weight")

    def one(x):
        conv = relay.op.nn.conv2d(x, weight)
        return relay.op.add(relay.op.nn.relu(relay.op.nn.relu(relay.op.tanh(conv))), relay.op.nn.leaky_relu(conv, alpha=0))
    net = one(one(one(one(relay.var("input")))))
    parted = diamond.partition(net)
    count = [0]
    relay.analysis.post_order_visit(parted, lambda e: count.__setitem__(0, count[0] + (isinstance(e, relay.Call) and isinstance(e.op, relay.Function))))
    assert count[0] == 4 and tvm.ir.structural_equal(rewrite(Inline(), parted), net)


@program
def overlapping_matches_choose_one():
    x = wildcard()
    p = is_op("nn.batch_norm")(is_op("nn.relu")(x), wildcard(), wildcard(), wildcard(), wildcard()) if False else is_tuple_get_item(is_op("nn.batch_norm")(wildcard(), wildcard(), wildcard(), wildcard(), wildcard()), 0) | is_op("nn.conv2d")(wildcard(), wildcard())
    d, w = relay.var("d"), relay.var("w")
    conv = relay.op.nn.conv2d(d, w)
    out = p.partition(conv)
    assert isinstance(out.op, relay.Function) and x is not None


@program
def used_outside_is_not_taken():
    x = relay.var("x")
    conv = relay.nn.conv2d(x, relay.var("w"))
    p = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
    net = relay.nn.relu(conv) + conv
    assert tvm.ir.structural_equal(p.partition(net), net)


@program
def functions_inside_are_partitioned():
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    x1, w1 = relay.var("x1"), relay.var("w1")
    conv = relay.op.nn.conv2d(x1, w1)
    f = relay.Function([x1, w1], conv)
    net = relay.op.add(f(x, w), b)
    p = is_op("add")(FunctionPattern([wildcard(), wildcard()], is_op("nn.conv2d")(wildcard(), wildcard()))(wildcard(), wildcard()), wildcard())
    assert p.match(net)
    out = p.partition(net)
    assert isinstance(out.op, relay.Function) and out.op.attrs["PartitionedFromPattern"] == "nn.conv2d_FunctionCall_add_" and len(out.args) == 3


@program
def constants_are_embedded_where_matched():
    x, w, wc = relay.var("x"), relay.var("w"), relay.const(1)
    b = relay.var("b")
    onnx_like = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()) | is_op("nn.bias_add")(wildcard(), wildcard()))
    for second, lifted in ((w, 3), (wc, 2)):
        conv = relay.op.nn.conv2d(x, second)
        net = relay.nn.relu(relay.nn.bias_add(conv, b))
        p = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), is_constant() if second is wc else wildcard()), wildcard()))
        assert p.match(net) and len(p.partition(net).args) == lifted
    assert onnx_like.match(relay.nn.relu(x + w))


@program
def fuzzy_functions_rewrite():
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    x1, w1 = relay.var("x1"), relay.var("w1")
    f = relay.Function([x1, w1], relay.op.nn.conv2d(x1, w1)).with_attr("Composite", "one")
    net = relay.nn.relu(f(x, w)) + b

    class ToTanh(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.a, self.b = wildcard(), wildcard()
            self.pattern = is_op("nn.relu")(FunctionPattern(None, wildcard()).has_attr({"Composite": "one"})(self.a, self.b))

        def callback(self, pre, post, node_map):
            return relay.tanh(node_map[self.a][0] * node_map[self.b][0])
    assert tvm.ir.structural_equal(rewrite(ToTanh(), net), relay.tanh(x * w) + b)


@program
def tuples_with_any_fields():
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    fuzzy = is_op("concatenate")(is_tuple(None))

    class Concat(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = fuzzy

        def callback(self, pre, post, node_map):
            return relay.concatenate(list(reversed(post.args[0].fields)), axis=post.attrs.axis)
    for fields in ([x], [x, y], [x, y, z]):
        class Once(Concat):
            def __init__(self):
                super().__init__()
                self.rewrite_once = True
        assert tvm.ir.structural_equal(rewrite(Once(), relay.concatenate(fields, axis=0)), relay.concatenate(fields[::-1], axis=0))


@program
def lets_and_ifs_are_rewritten():
    x, y, a = relay.var("x"), relay.var("y"), relay.var("a")

    class Swap(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.c, self.t, self.f = wildcard(), wildcard(), wildcard()
            self.pattern = is_if(is_op("less")(self.c, wildcard()), self.t, self.f)

        def callback(self, pre, post, node_map):
            return relay.If(relay.greater_equal(*post.cond.args), post.false_branch, post.true_branch)
    assert tvm.ir.structural_equal(rewrite(Swap(), relay.If(x < y, x, y)), relay.If(relay.greater_equal(x, y), y, x))

    class NoLet(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_let(wildcard(), wildcard(), wildcard())

        def callback(self, pre, post, node_map):
            return relay.bind(post.body, {post.var: post.value})
    assert tvm.ir.structural_equal(rewrite(NoLet(), relay.Let(a, x, a + y)), x + y)


@program
def one_rule_after_another():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))

    class AddToSubtract(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("add")(wildcard(), wildcard())

        def callback(self, pre, post, node_map):
            return post.args[0] - post.args[1]

    class SubtractToMultiply(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("subtract")(wildcard(), wildcard())

        def callback(self, pre, post, node_map):
            return post.args[0] * post.args[1]
    assert tvm.ir.structural_equal(rewrite([AddToSubtract(), SubtractToMultiply()], x + y), x * y)


@program
def a_rule_that_never_ends_is_stopped():
    class Grow(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre, post, node_map):
            return relay.exp(relay.negative(post))
    raises(Exception, lambda: rewrite(Grow(), relay.exp(relay.var("x"))))


@program
def any_index_of_a_tuple():
    x, y = relay.var("x"), relay.var("y")
    t = relay.Tuple([x, y])
    any_item = is_tuple_get_item(wildcard())
    assert isinstance(any_item, TupleGetItemPattern) and any_item.match(relay.TupleGetItem(t, 0)) and any_item.match(relay.TupleGetItem(t, 1)) and not is_tuple_get_item(wildcard(), 1).match(relay.TupleGetItem(t, 0))


@program
def attributes_of_several_kinds():
    x = relay.var("x")
    y = relay.strided_slice(x, begin=[0, 1], end=[2, 3])
    assert is_op("strided_slice")(wildcard()).has_attr({"begin": [0, 1]}).match(y) and not is_op("strided_slice")(wildcard()).has_attr({"begin": [0, 2]}).match(y)
    assert wildcard().has_attr({"TOpPattern": 2}).match(relay.op.get("strided_slice")) and has_attr({"TOpPattern": 2}, is_op("strided_slice")).match(relay.op.get("strided_slice"))
    r = relay.nn.leaky_relu(x, alpha=0.25)
    assert is_op("nn.leaky_relu")(wildcard()).has_attr({"alpha": 0.25}).match(r)
    c = relay.cast(x, "int8")
    assert is_op("cast")(wildcard()).has_attr({"dtype": "int8"}).match(c) and not is_op("cast")(wildcard()).has_attr({"dtype": "int16"}).match(c)


@program
def expressions_given_match_themselves():
    x, y = relay.var("x"), relay.var("y")
    e = is_expr(x)
    assert e.match(x) and not e.match(y) and is_op("add")(e, wildcard()).match(x + y) and is_expr(relay.const(2)).match(relay.const(2)) and not is_expr(relay.const(2)).match(relay.const(3))
    assert is_var("x").match(x) and not is_var("y").match(x) and is_var().match(y) and not is_constant().match(x)


@program
def rewriting_inside_of_modules():
    class ReluToTanh(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("nn.relu")(wildcard())

        def callback(self, pre, post, node_map):
            return relay.tanh(post.args[0])
    x = relay.var("x", shape=(3,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.relu(x))))
    mod["main"] = rewrite(ReluToTanh(), mod["main"])
    assert mod.astext().count("tanh(") == 2
    out = transform.InferType()(mod)["main"]
    np.testing.assert_allclose(relay.create_executor("vm", mod=tvm.IRModule.from_expr(out), device=tvm.cpu(), target="llvm").evaluate()(np.ones(3, "float32")).numpy(), np.tanh(np.tanh(np.ones(3))), rtol=1e-5)
