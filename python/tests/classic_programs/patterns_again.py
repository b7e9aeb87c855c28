# SPDX-License-Identifier: Apache-2.0
"""Patterns over graphs: built, printed, matched, rewritten and partitioned."""
import tvm
from tvm import relay
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.dataflow_pattern import (AltPattern, CallPattern, DFPatternCallback, ExprPattern, FunctionPattern, LetPattern, IfPattern, TuplePattern, TupleGetItemPattern, VarPattern, WildcardPattern, ConstantPattern,
                                        DominatorPattern, TypePattern, DataTypePattern, ShapePattern, AttrPattern, has_attr, has_dtype, has_shape, has_type, is_constant, is_expr, is_if, is_let, is_op, is_tuple,
                                        is_tuple_get_item, is_var, rewrite, wildcard)
from tvm.relay.testing import run_opt_pass

from harness import program, numbers


@program
def expression_patterns_hold_the_expression():
    ep = is_expr(relay.var("x", shape=(4, 1)))
    assert isinstance(ep, ExprPattern) and isinstance(ep.expr, relay.Var)
    v = is_var("x")
    assert isinstance(v, VarPattern) and v.name == "x"
    assert isinstance(is_constant(), ConstantPattern) and isinstance(wildcard(), WildcardPattern)


@program
def calls_tuples_and_alternatives():
    a, b = is_var("x"), wildcard()
    call = is_op("add")(a, b)
    assert isinstance(call, CallPattern) and isinstance(call.args[0], VarPattern) and isinstance(call.args[1], WildcardPattern)
    f = FunctionPattern([a, b], call)
    assert isinstance(f.params[0], VarPattern) and isinstance(f.body, CallPattern)
    t = is_tuple([a, b, wildcard()])
    assert isinstance(t, TuplePattern) and len(t.fields) == 3
    g = is_tuple_get_item(t, 1)
    assert isinstance(g, TupleGetItemPattern) and g.index == 1 and isinstance(g.tuple, TuplePattern)
    alt = is_op("add") | is_op("multiply")
    assert isinstance(alt, AltPattern) and isinstance(alt.left, ExprPattern) and isinstance(alt.right, ExprPattern)


@program
def if_and_let_patterns():
    x, y = is_var("x"), is_var("y")
    p = is_if(is_op("less")(x, y), x, y)
    assert isinstance(p, IfPattern) and isinstance(p.cond, CallPattern) and isinstance(p.true_branch, VarPattern)
    q = is_let(x, y, is_op("add")(x, y))
    assert isinstance(q, LetPattern) and isinstance(q.var, VarPattern) and isinstance(q.body, CallPattern)
    v, w = relay.var("x"), relay.var("y")
    assert p.match(relay.If(v < w, v, w)) and not p.match(relay.If(v > w, v, w))
    assert is_let(wildcard(), is_constant(), wildcard()).match(relay.Let(v, relay.const(1), v))


@program
def type_dtype_shape_and_attributes():
    t = relay.TensorType((10, 10), "float32")
    p = has_type(t)
    assert isinstance(p, TypePattern) and p.type == t
    assert isinstance(has_dtype("float32"), DataTypePattern) and has_dtype("float32").dtype == "float32"
    s = has_shape([10, 10])
    assert isinstance(s, ShapePattern) and [int(v) for v in s.shape] == [10, 10]
    a = is_op("add").has_attr({"TOpPattern": 0})
    assert isinstance(a, AttrPattern) and a.attrs["TOpPattern"] == 0


@program
def match_by_operator_alternatives():
    assert (is_op("add") | is_op("subtract")).match(relay.op.op.get("add")) and not is_op("add").match(relay.op.op.get("subtract"))
    add = is_op("add") | is_op("subtract")
    assert add.match(relay.op.op.get("subtract")) and not add.match(relay.op.op.get("multiply"))


@program
def match_of_commuted_arguments():
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    p = is_op("add")(is_var("x"), is_var("y"))
    assert p.match(x + y) and p.match(y + x) and not p.match(x + z)
    p = is_op("subtract")(is_var("x"), is_var("y"))
    assert p.match(x - y) and not p.match(y - x)
    p = is_op("add")(is_op("multiply")(is_var("x"), wildcard()), is_var("y"))
    assert p.match(y + (z * x))


@program
def call_with_any_arguments():
    x, y = relay.var("x"), relay.var("y")
    p = is_op("add")(None)
    assert p.match(x + y) and not is_op("concatenate")(None).match(x + y)
    p = wildcard()(None)
    assert p.match(relay.Call(relay.GlobalVar("f"), [x])) and p.match(relay.nn.relu(x))


@program
def match_of_functions():
    x, y = relay.var("x"), relay.var("y")
    p = FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard())
    assert p.match(relay.Function([x, y], x + y)) and not p.match(relay.Function([x, y], x - y)) and not p.match(relay.Function([x], x + x))
    f = relay.Function([x, y], x + y)
    assert p(wildcard(), wildcard()).match(relay.Call(f, [x, y]))


@program
def match_with_default_attributes():
    x, w = relay.var("data", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    conv = relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1))
    for attrs, yes in (({"data_layout": "NCHW"}, True), ({"data_layout": "NHWC"}, False), ({"kernel_size": [3, 3], "groups": 1}, True), ({"RandomAttr": 1}, False)):
        assert is_op("nn.conv2d")(wildcard(), wildcard()).has_attr(attrs).match(conv) == yes
    f = relay.Function([x, w], conv).with_attr("Composite", "one")
    assert f.attrs["Composite"] == "one" and FunctionPattern([wildcard(), wildcard()], wildcard()).has_attr({"Composite": "one"}).match(f) and not wildcard().has_attr({"Composite": "two"}).match(f)


@program
def match_of_shape_and_dtype_operands():
    x = relay.var("x", shape=(10, 10), dtype="float32")
    y = relay.var("y", shape=(10, 10), dtype="float32")
    t = run_opt_pass(x + y, relay.transform.InferType())
    assert wildcard().has_shape((10, 10)).match(t) and not wildcard().has_shape((10, 9)).match(t) and not wildcard().has_dtype("int8").match(t) and has_dtype("float32").match(t)


@program
def diamonds_and_dominators():
    inp, weight = relay.var("input"), relay.var("weight")
    conv = relay.op.nn.conv2d(inp, weight)
    out = relay.op.add(relay.op.nn.relu(conv), relay.op.nn.leaky_relu(conv, alpha=0))
    path = is_op("nn.conv2d")(is_var("input"), is_var("weight"))
    assert (is_op("add")(is_op("nn.relu")(path), is_op("nn.leaky_relu")(path))).match(out)
    diamond = DominatorPattern(is_op("nn.conv2d")(is_var("input"), is_var("weight")), (wildcard().has_attr({"TOpPattern": 0}))(wildcard()), is_op("add")(wildcard(), wildcard()))
    assert diamond.match(out)
    other = relay.op.add(relay.op.nn.relu(relay.op.nn.relu(conv)), relay.op.nn.leaky_relu(conv, alpha=0))
    assert diamond.match(other)
    assert not diamond.match(relay.op.add(relay.op.nn.relu(inp), relay.op.nn.leaky_relu(conv, alpha=0)))


@program
def rewriting_subtraction_of_sums():
    x, y = relay.var("x"), relay.var("y")

    class TestRewrite(DFPatternCallback):
        def __init__(self):
            super(TestRewrite, self).__init__()
            self.pattern = is_op("add")(wildcard(), wildcard())

        def callback(self, pre, post, node_map):
            return post.args[0] - post.args[1]
    out = rewrite(TestRewrite(), x + y)
    assert tvm.ir.structural_equal(out, x - y)
    assert rewrite(TestRewrite(), x * y).op.name == "multiply"


@program
def rewrite_needs_types_and_repeats():
    class Once(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True, rewrite_once=True)
            self.x = wildcard()
            self.pattern = is_op("nn.relu")(self.x)
            self.seen = []

        def callback(self, pre, post, node_map):
            self.seen.append(pre.checked_type)
            return relay.nn.relu(relay.nn.relu(node_map[self.x][0]))
    x = relay.var("x", shape=(3,))
    once = Once()
    out = once.rewrite(relay.nn.relu(x))
    assert once.seen == [relay.TensorType((3,))] and tvm.ir.structural_equal(out, relay.nn.relu(relay.nn.relu(x)))


@program
def batch_norm_is_found_and_fused():
    class BatchnormCallback(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x, self.var, self.mean, self.beta, self.gamma, self.eps = (wildcard() for _ in range(6))
            self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

        def callback(self, pre, post, node_map):
            x, var, mean, beta, gamma, eps = (node_map[v][0] for v in (self.x, self.var, self.mean, self.beta, self.gamma, self.eps))
            return relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=eps.data.numpy().item())[0]
    x, var, mean, beta, gamma = (relay.var(n) for n in ("x", "var", "mean", "beta", "gamma"))
    bn = gamma * (x - mean) / relay.op.sqrt(var + relay.const(1e-5)) + beta
    out = rewrite(BatchnormCallback(), bn)
    assert tvm.ir.structural_equal(out, relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=1e-5)[0])
    assert not tvm.ir.structural_equal(out, bn)


@program
def nested_rewrites_meet_new_nodes():
    class Pattern(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.a, self.b = wildcard(), wildcard()
            self.pattern = is_op("add")(is_op("add")(self.a, self.b), self.b)

        def callback(self, pre, post, node_map):
            return node_map[self.a][0] + relay.const(2.0) * node_map[self.b][0]
    x, y = relay.var("x"), relay.var("y")
    out = rewrite(Pattern(), ((x + y) + y) * relay.const(3.0))
    assert tvm.ir.structural_equal(out, (x + relay.const(2.0) * y) * relay.const(3.0))


@program
def rewrite_of_functions_called_once():
    class Inliner(DFPatternCallback):
        def __init__(self, pattern):
            super().__init__()
            self.pattern = pattern

        def callback(self, pre, post, node_map):
            return relay.bind(post.op.body, dict(zip(post.op.params, post.args)))
    x, y = relay.var("x"), relay.var("y")
    p = is_op("add")(wildcard(), wildcard())
    parted = p.partition(relay.nn.relu(x + y))
    out = rewrite(Inliner(FunctionPattern([wildcard(), wildcard()], wildcard())(wildcard(), wildcard())), parted)
    assert tvm.ir.structural_equal(out, relay.nn.relu(x + y))


@program
def partition_one_batch_norm():
    x, var, mean, beta, gamma = (relay.var(n) for n in ("x", "var", "mean", "beta", "gamma"))
    eps = relay.const(1e-5)
    bn = gamma * (x - mean) / relay.op.sqrt(var + eps) + beta
    p = wildcard() * (wildcard() - wildcard()) / is_op("sqrt")(wildcard() + is_constant()) + wildcard()
    assert p.match(bn)
    parted = p.partition(bn)
    f = parted.op
    assert f.attrs["PartitionedFromPattern"] == "subtract_multiply_add_sqrt_divide_add_" and len(f.params) == len(parted.args) == 5


@program
def partition_asks_a_check():
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    p = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    net = relay.op.nn.relu(relay.op.nn.bias_add(relay.op.nn.conv2d(x, w, data_layout="NHWC"), b))

    def check(pre):
        return pre.args[0].args[0].attrs.data_layout == "NCHW"
    assert tvm.ir.structural_equal(net, p.partition(net, check=check))
    net = relay.op.nn.relu(relay.op.nn.bias_add(relay.op.nn.conv2d(x, w), b))
    out = p.partition(net, {"Composite": "accel"}, check)
    assert out.op.attrs["Composite"] == "accel" and out.op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_nn.relu_"


@program
def partition_with_optional_parts():
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    p = is_op("nn.bias_add")(conv, wildcard()).optional(lambda v: is_op("nn.relu")(v))
    without = relay.op.nn.bias_add(relay.op.nn.conv2d(x, w), b)
    for net, name in ((without, "nn.conv2d_nn.bias_add_"), (relay.op.nn.relu(without), "nn.conv2d_nn.bias_add_nn.relu_")):
        assert p.match(net) and p.partition(net).op.attrs["PartitionedFromPattern"] == name


@program
def partition_of_two_uses():
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    p = is_op("multiply")(is_op("add")(wildcard(), wildcard()), wildcard())
    inner = (x + y) * z
    twice = (inner + y) * z
    out = p.partition(twice)
    assert isinstance(out.op, relay.Function) and isinstance(out.args[0].op, relay.Function)


@program
def partition_fuzzy_tuple():
    x = relay.var("x")
    tup = relay.op.concatenate([relay.op.nn.relu(x), relay.op.nn.relu(x)], axis=0)
    p = is_op("concatenate")(is_tuple(None))
    assert p.match(tup)
    out = p.partition(tup)
    assert isinstance(out.op, relay.Function) and out.op.attrs["PartitionedFromPattern"].startswith("Tuple_concatenate")
    assert is_op("concatenate")(is_tuple([is_op("nn.relu")(wildcard()), wildcard()])).match(tup)


@program
def partition_does_not_take_a_shared_inside():
    x = relay.var("x")
    r = relay.nn.relu(x)
    e = relay.exp(r)
    net = relay.Tuple([e, r])
    p = is_op("exp")(is_op("nn.relu")(wildcard()))
    assert tvm.ir.structural_equal(p.partition(net), net)


@program
def partition_of_constants_into_bound_modules():
    x, w, b = relay.var("x", shape=(1, 3, 6, 6)), relay.var("w", shape=(4, 3, 3, 3)), relay.var("b", shape=(4,))
    f = bind_params_by_name(relay.Function([x, w, b], relay.nn.bias_add(relay.nn.conv2d(x, w), b)), {"w": numbers(4, 3, 3, 3), "b": numbers(4)})
    p = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), is_constant()), is_constant())
    table = [("unit.conv_bias", p)]
    mod = relay.transform.MergeComposite(table)(tvm.IRModule.from_expr(f))
    call = mod["main"].body
    assert call.op.attrs["Composite"] == "unit.conv_bias" and len(call.args) == 1


@program
def matched_once_outside_functions():
    x, y, z = (relay.var(n, shape=(2,)) for n in "xyz")
    mod = relay.transform.MergeComposite([("a.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))])(tvm.IRModule.from_expr(relay.Function([x, y, z], relay.nn.relu(relay.nn.relu(x + y) + z))))
    text = mod.astext()
    assert text.count('Composite="a.add_relu"') == 2


@program
def rewrites_stop_at_no_change():
    class Double(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.pattern = is_op("negative")(is_op("negative")(wildcard()))

        def callback(self, pre, post, node_map):
            self.count += 1
            return post.args[0].args[0]
    x = relay.var("x")
    n = relay.negative
    d = Double()
    assert rewrite(d, n(n(n(n(x))))) == x or tvm.ir.structural_equal(rewrite(d, n(n(n(n(x))))), x)
    assert d.count >= 2


@program
def node_map_gives_every_match():
    class Several(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.v = is_var("x")
            self.pattern = is_op("add")(is_op("exp")(self.v), is_op("log")(self.v))
            self.kinds = None

        def callback(self, pre, post, node_map):
            self.kinds = {str(type(k).__name__): len(vs) for k, vs in node_map.items()}
            return post
    x = relay.var("x")
    s = Several()
    rewrite(s, relay.exp(x) + relay.log(x))
    assert s.kinds["VarPattern"] == 1 and s.kinds["CallPattern"] >= 1


@program
def patterns_print_themselves():
    assert str(wildcard()) == "*" and "VarPattern(x)" in str(is_var("x")) and "ConstantPattern" in str(is_constant())
    assert "CallPatternNode(" in str(is_op("add")(wildcard(), wildcard()))
    assert "Op(add)" in repr(is_op("add"))
