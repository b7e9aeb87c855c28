# SPDX-License-Identifier: Apache-2.0
"""Visitors of programs, and patterns of graphs."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir
from tvm.relay import transform, ExprVisitor, ExprMutator, ExprFunctor
from tvm.relay.dataflow_pattern import *
from tvm.relay.testing import run_infer_type, run_opt_pass
import numpy as np
import tvm, os, tempfile
import tvm.testing


def check_visit(e):
    v = ExprVisitor()
    v.visit(e)
    m = ExprMutator()
    same(m.visit(e), e)


@program
def functor_constant():
    check_visit(relay.const(1.0))


@program
def functor_tuple():
    check_visit(relay.Tuple([relay.var("x", shape=(1,))]))


@program
def functor_global():
    check_visit(relay.GlobalVar("g"))


@program
def functor_function():
    x, y = (relay.var("x", shape=(1,)), relay.var("y", shape=(1,)))
    params = [x, y]
    f = relay.Function(params, x + y, relay.TensorType((1,)), [], tvm.ir.make_node("DictAttrs", foo="bar"))
    check_visit(f)


@program
def functor_let_if_ref_match():
    x = relay.var("x", shape=[])
    check_visit(relay.Let(x, relay.const(2.0), x + x))
    check_visit(relay.If(relay.const(True), x, x + x))
    check_visit(relay.RefWrite(relay.RefCreate(x), relay.RefRead(relay.RefCreate(x))))
    p = relay.prelude.Prelude()
    check_visit(p.mod[p.hd])
    check_visit(relay.TupleGetItem(relay.Tuple([x]), 0))
    check_visit(relay.op.get("add"))


@program
def functor_memo():
    expr = relay.const(1)
    for _ in range(100):
        expr = expr + expr
    check_visit(expr)


@program
def functor_undefined():

    class F(ExprFunctor):
        pass
    with refusing(NotImplementedError):
        F().visit(relay.var("x"))
    with refusing(Exception):
        F().visit(3)


@program
def mutator_changes_ops():

    class M(ExprMutator):

        def visit_call(self, c):
            n = super().visit_call(c)
            if n.op == relay.op.get("add"):
                return relay.multiply(*n.args)
            return n
    x = relay.var("x", shape=(2,))
    same(M().visit(relay.Function([x], x + (x + x))), relay.Function([x], x * (x * x)))


@program
def visitor_counts():

    class C(ExprVisitor):

        def __init__(self):
            super().__init__()
            self.n = 0
            self.names = []

        def visit_call(self, c):
            self.n += 1
            super().visit_call(c)

        def visit_var(self, v):
            self.names.append(v.name_hint)
    x = relay.var("x")
    y = x + x
    c = C()
    c.visit(y * y)
    assert c.n == 2
    assert c.names == ["x"]


@program
def mutator_substitute_const():

    class M(ExprMutator):

        def visit_constant(self, c):
            return relay.const(2.0)

        def visit_function(self, f):
            return relay.Function(list(f.params), self.visit(f.body))
    x = relay.var("x")
    same(M().visit(relay.Function([x], x + relay.const(1.0))), relay.Function([x], x + relay.const(2.0)))


@program
def post_order_visit():
    seen = []
    x = relay.var("x")
    relay.analysis.post_order_visit(relay.tanh(x + relay.const(1.0)), lambda e: seen.append(type(e).__name__))
    assert seen[-1] == "Call" and seen[0] == "Var" or "Op" in seen, seen
    assert seen.count("Call") == 2


@program
def pattern_var_name():
    v = is_var("add")
    assert isinstance(v, VarPattern)
    assert v.name == "add"
    assert v.match(relay.var("add"))
    assert not v.match(relay.var("x"))
    assert wildcard().match(relay.var("q"))
    assert is_var().match(relay.var("q"))
    assert not is_var().match(relay.const(1))
    assert isinstance(wildcard(), WildcardPattern)


@program
def pattern_constant_expr():
    assert is_constant().match(relay.const(1))
    assert not is_constant().match(relay.var("x"))
    e = ExprPattern(relay.var("x", shape=(4, 1)))
    assert isinstance(e, ExprPattern)
    assert isinstance(e.expr, relay.Var)
    assert is_expr(relay.const(1)).match(relay.const(1))
    assert not is_expr(relay.const(1)).match(relay.const(2))


@program
def pattern_call_commutes():
    x, y = (relay.var("x"), relay.var("y"))
    p = is_op("add")(is_var("x"), is_var("y"))
    assert p.match(x + y)
    assert p.match(y + x)
    s = is_op("subtract")(is_var("x"), is_var("y"))
    assert s.match(x - y)
    assert not s.match(y - x)
    assert (is_var("x") + is_var("y")).match(x + y)
    assert (is_var("x") * is_var("y")).match(y * x)
    assert (is_var("x") / is_var("y")).match(x / y)
    assert not (is_var("x") / is_var("y")).match(y / x)


@program
def pattern_attr():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w")
    c = relay.nn.conv2d(x, w, kernel_size=(3, 3), strides=(2, 2), channels=4, data_layout="NCHW")
    assert is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"data_layout": "NCHW"}).match(c)
    assert is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"kernel_size": [3, 3], "strides": [2, 2]}).match(c)
    assert not is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"data_layout": "NHWC"}).match(c)
    assert not is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"no_such": 1}).match(c)
    op = relay.add(x, x)
    assert is_op("add").has_attr({"TOpPattern": 1}).match(op.op) or is_op("add").has_attr({"TOpPattern": 1})(wildcard(), wildcard()).match(op)


@program
def pattern_func_attr():
    x, y = (relay.var("x"), relay.var("y"))
    f = relay.Function([x, y], x + y).with_attr("Composite", "add")
    assert is_op("add")(wildcard(), wildcard()) is not None
    p = FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard()).has_attr({"Composite": "add"})
    assert p.match(f)
    assert not p.match(relay.Function([x, y], x + y).with_attr("Composite", "nope"))
    assert not p.match(relay.Function([x, y], x + y))
    assert not p.match(relay.Function([x, y], x - y).with_attr("Composite", "add"))
    assert FunctionPattern(None, wildcard()).match(f)


@program
def pattern_types():
    x = relay.var("x", shape=(10, 10))
    assert has_type(relay.TensorType((10, 10))).match(x)
    assert not has_type(relay.TensorType((10, 10), "int8")).match(x)
    assert wildcard().has_type(relay.TensorType((10, 10), "float32")).match(x)
    assert has_dtype("float32").match(x)
    assert not has_dtype("int32").match(x)
    assert has_shape((10, 10)).match(x)
    assert not has_shape((10, 1)).match(x)
    assert wildcard().has_dtype("float32").match(x)
    assert wildcard().has_shape((10, 10)).match(x)
    assert not is_op("add")(wildcard(), wildcard()).has_shape((10,)).match(x + x)


@program
def pattern_tuple():
    x, y, z = (relay.var(n) for n in "xyz")
    p = is_tuple([is_var("x"), wildcard(), is_var("z")])
    assert p.match(relay.Tuple([x, y, z]))
    assert not p.match(relay.Tuple([x, y, y]))
    assert not p.match(relay.Tuple([x, y]))
    assert is_tuple(None).match(relay.Tuple([x, y]))
    g = is_tuple_get_item(p, 1)
    assert g.match(relay.TupleGetItem(relay.Tuple([x, y, z]), 1))
    assert not g.match(relay.TupleGetItem(relay.Tuple([x, y, z]), 0))
    assert is_tuple_get_item(wildcard()).match(relay.TupleGetItem(x, 5))


@program
def pattern_if_let():
    x, y = (relay.var("x"), relay.var("y"))
    p = is_if(is_op("less")(is_var("x"), is_var("y")), is_var("x"), is_var("y"))
    assert p.match(relay.If(x < y, x, y))
    assert not p.match(relay.If(x > y, x, y))
    assert not p.match(relay.If(x < y, y, x))
    l = is_let(is_var("x"), is_op("less")(is_var("x"), is_var("y")), is_var("x"))
    assert l.match(relay.Let(x, x < y, x))
    assert not l.match(relay.Let(x, x < y, y))


@program
def pattern_or_optional():
    x = relay.var("x", shape=(3,))
    p = is_op("nn.relu")(is_var("x")).optional(lambda q: is_op("tanh")(q))
    assert p.match(relay.nn.relu(x))
    assert p.match(relay.tanh(relay.nn.relu(x)))
    assert not p.match(relay.exp(relay.nn.relu(x)))
    q = is_op("add")(wildcard(), wildcard()) | is_op("subtract")(wildcard(), wildcard())
    assert q.match(x + x)
    assert q.match(x - x)
    assert not q.match(x * x)
    assert isinstance(q, AltPattern)
    assert (is_op("add") | is_op("subtract"))(wildcard(), wildcard()).match(x - x)


@program
def pattern_dominates():
    x = relay.var("x", shape=(1, 1, 8, 8))
    w = relay.var("w", shape=(1, 1, 3, 3))
    conv = relay.nn.conv2d(x, w, padding=(1, 1))
    r = relay.nn.relu(conv)
    out = relay.nn.relu(r) + relay.nn.leaky_relu(conv, alpha=0.0)
    pc = is_op("nn.conv2d")(wildcard(), wildcard())
    pu = wildcard().has_attr({"TOpPattern": 0})(None)
    p = dominates(pc, pu, is_op("add")(wildcard(), wildcard())) if "dominates" in globals() else is_op("add")(wildcard(), wildcard()).dominates(pc, pu)
    p = is_op("add")(wildcard(), wildcard())
    d = DominatorPattern(pc, is_op("nn.relu")(wildcard()) | is_op("nn.leaky_relu")(wildcard()), p)
    assert d.match(out)


@program
def rewrite_simple():

    class R(DFPatternCallback):

        def __init__(self):
            super().__init__()
            self.x, self.y = (wildcard(), wildcard())
            self.pattern = self.x + self.y

        def callback(self, pre, post, node_map):
            return node_map[self.x][0] - node_map[self.y][0]
    x, y = (relay.var("x"), relay.var("y"))
    same(rewrite(R(), x + y), x - y)
    m = None


@program
def rewrite_once_and_inference():

    class R(DFPatternCallback):

        def __init__(self):
            super().__init__(rewrite_once=True, require_type=True)
            self.pattern = is_op("tanh")(wildcard())

        def callback(self, pre, post, node_map):
            assert pre.checked_type is not None
            return relay.tanh(post)
    x = relay.var("x", shape=(2,))
    got = rewrite(R(), relay.tanh(x))
    assert got.op.name == "tanh"
    assert got.args[0].op.name == "tanh"
    assert isinstance(got.args[0].args[0], relay.Var)


@program
def rewrite_not_type_stable():
    calls = []

    class R(DFPatternCallback):

        def __init__(self):
            super().__init__()
            self.pattern = is_constant()

        def callback(self, pre, post, node_map):
            calls.append(1)
            return post
    x = relay.var("x")
    out = rewrite(R(), x + relay.const(1.0))
    same(out, x + relay.const(1.0))


@program
def rewrite_list_of_callbacks():

    class A(DFPatternCallback):

        def __init__(self):
            super().__init__()
            self.a = wildcard()
            self.pattern = is_op("exp")(self.a)

        def callback(self, pre, post, m):
            return relay.log(m[self.a][0])

    class B(DFPatternCallback):

        def __init__(self):
            super().__init__()
            self.a = wildcard()
            self.pattern = is_op("sin")(self.a)

        def callback(self, pre, post, m):
            return relay.cos(m[self.a][0])
    x = relay.var("x")
    same(rewrite([A(), B()], relay.exp(relay.sin(x))), relay.log(relay.cos(x)))


@program
def partition_basic():
    x, w, b = (relay.var(n) for n in "xwb")
    conv = relay.nn.conv2d(x, w)
    out = relay.nn.relu(relay.nn.bias_add(conv, b))
    p = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    got = p.partition(out)
    a0, a1, a2 = (relay.var(f"p{i}") for i in range(3))
    f = relay.Function([a0, a1, a2], relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(a0, a1), a2))).with_attr("PartitionedFromPattern", "nn.conv2d_nn.bias_add_nn.relu_")
    same(got, f(x, w, b))
    got = p.partition(out, {"Composite": "cbr"})
    assert got.op.attrs["Composite"] == "cbr"
    assert got.op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_nn.relu_"


@program
def partition_check():
    x, w = (relay.var("x"), relay.var("w"))
    c = relay.nn.conv2d(x, w)
    p = is_op("nn.conv2d")(wildcard(), wildcard())
    assert tvm.ir.structural_equal(c, p.partition(c, check=lambda e: e.attrs.data_layout == "NHWC"))
    assert not tvm.ir.structural_equal(c, p.partition(c, check=lambda e: e.attrs.data_layout == "NCHW"))


@program
def match_fn_and_dfmatch():
    x = relay.var("x")
    assert match(wildcard() + wildcard(), x + x)
    assert not match(wildcard() * wildcard(), x + x)


@program
def pattern_any_args():
    x = relay.var("x")
    p = is_op("add")
    q = CallPattern(wildcard(), None)
    assert q.match(x + x)
    assert q.match(relay.tanh(x))
    assert not q.match(x)


@program
def pattern_strings():
    assert str(is_op("add")(wildcard(), is_var("x"))) is not None
