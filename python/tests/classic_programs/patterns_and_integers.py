# SPDX-License-Identifier: Apache-2.0
"""Patterns of data flow and what they find; quantised operators, mixed precision and layouts of small networks, by their numbers."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, same
from tvm import relay
from tvm.relay import transform
from tvm.relay.dataflow_pattern import *  # noqa: F401,F403
from tvm.relay.testing import run_infer_type


@program
def pattern_objects():
    assert isinstance(is_expr(relay.var("x", shape=(4,))), ExprPattern)
    assert is_var("x").name == "x" and isinstance(is_constant(), ConstantPattern)
    c = wildcard()(wildcard(), wildcard())
    assert isinstance(c, CallPattern) and isinstance(c.op, WildcardPattern) and len(c.args) == 2
    f = FunctionPattern([wildcard(), wildcard()], wildcard())
    assert len(f.params) == 2
    t = is_tuple([wildcard()])
    assert isinstance(t, TuplePattern) and len(t.fields) == 1
    g = is_tuple_get_item(t, 1)
    assert g.index == 1 and isinstance(g, TupleGetItemPattern)
    assert isinstance(is_op("add") | is_op("subtract"), AltPattern)
    ty = relay.TensorType((10, 10), "float32")
    assert has_type(ty).type == ty and isinstance(wildcard().has_dtype("float32"), DataTypePattern) and isinstance(wildcard().has_shape([1, 2]), ShapePattern)
    a = is_op("add").has_attr({"TOpPattern": 1})
    assert a.attrs["TOpPattern"] == 1
    i = is_if(wildcard(), wildcard(), wildcard())
    assert isinstance(i.cond, WildcardPattern)
    l = is_let(wildcard(), wildcard(), wildcard())
    assert isinstance(l.var, WildcardPattern)
    assert str(c) and repr(is_constant())


@program
def patterns_match():
    x, y = relay.var("x"), relay.var("y")
    assert is_op("add")(is_var("x"), is_var("y")).match(x + y) and is_op("add")(is_var("y"), is_var("x")).match(x + y) and not is_op("subtract")(is_var("y"), is_var("x")).match(x - y)
    assert is_op("subtract")(is_var("x"), is_var("y")).match(x - y) and not is_op("add")(is_var("x"), is_var("y")).match(x - y)
    assert wildcard().match(x) and is_constant().match(relay.const(5)) and not is_constant().match(x)
    assert is_expr(relay.const(5)).match(relay.const(5)) and not is_expr(relay.const(5)).match(relay.const(6))
    w = wildcard()
    assert FunctionPattern(None, wildcard()).match(relay.Function([x, y], x + y)) and FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard()).match(relay.Function([x, y], x + y)) and not FunctionPattern([wildcard()], wildcard()).match(relay.Function([x, y], x + y)) and w
    assert is_tuple((is_var("x"), wildcard())).match(relay.Tuple((x, y))) and not is_tuple((is_var("x"),)).match(relay.Tuple((x, y))) and is_tuple(None).match(relay.Tuple((x, y)))
    t = relay.Tuple((x, y))
    assert is_tuple_get_item(is_tuple((is_var("x"), wildcard())), 1).match(relay.TupleGetItem(t, 1)) and not is_tuple_get_item(is_tuple((is_var("x"), wildcard())), 2).match(relay.TupleGetItem(t, 1)) and is_tuple_get_item(is_tuple(None)).match(relay.TupleGetItem(t, 1))


@program
def patterns_of_attributes():
    x, y = relay.var("x", shape=(1, 3, 8, 8)), relay.var("y", shape=(4, 3, 3, 3))
    conv = relay.nn.conv2d(x, y, kernel_size=(3, 3), strides=(1, 1))
    p = is_op("nn.conv2d")(wildcard(), wildcard())
    assert p.has_attr({"kernel_size": [3, 3]}).match(conv) and not p.has_attr({"kernel_size": [2, 1]}).match(conv) and p.has_attr({"data_layout": "NCHW"}).match(conv) and not p.has_attr({"RandomAttr": 1}).match(conv)
    assert is_op("add").has_attr({"TOpPattern": 1}).match(relay.op.get("add")) and not is_op("add").has_attr({"TOpPattern": 4}).match(relay.op.get("add"))
    f = relay.Function([x], x).with_attr("Composite", "a")
    assert FunctionPattern([wildcard()], wildcard()).has_attr({"Composite": "a"}).match(f) and not FunctionPattern([wildcard()], wildcard()).has_attr({"Composite": "b"}).match(f)
    z = relay.var("z", shape=(10, 10))
    assert has_type(relay.TensorType((10, 10), "float32")).match(z) and has_dtype("float32", wildcard()).match(z) and not has_dtype("int8", wildcard()).match(z) and has_shape((10, 10)).match(z) and not has_shape((10, 1)).match(z)


@program
def dominance():
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    conv = relay.nn.conv2d(x, w, padding=(1, 1))
    relu = relay.nn.relu(relay.nn.relu(conv))
    tanh = relay.tanh(relay.nn.leaky_relu(conv, 0.1))
    out = relu + tanh
    is_conv = is_op("nn.conv2d")(wildcard(), wildcard())
    unary = (wildcard().has_attr({"TOpPattern": 0}))(wildcard()) | is_op("nn.relu")(wildcard())
    reduction = wildcard().has_attr({"TOpPattern": 1})(wildcard(), wildcard())
    assert dominates(is_conv, unary, reduction).match(out)
    assert not dominates(is_conv, is_op("nn.relu")(wildcard()), reduction).match(out)
    assert dominates(is_conv, unary, reduction) and DominatorPattern(is_conv, unary, reduction).parent is not None


@program
def callbacks():
    class FoldNegatives(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("negative")(is_op("negative")(self.x))

        def callback(self, pre, post, node_map):
            return node_map[self.x][0]
    x = relay.var("x", shape=(2,))
    same(rewrite(FoldNegatives(), -(-(-(-x)))), x)
    seen = []

    class Once(DFPatternCallback):
        def __init__(self):
            super().__init__(rewrite_once=True, require_type=True)
            self.pattern = is_op("add")(wildcard(), wildcard())

        def callback(self, pre, post, node_map):
            seen.append(post.checked_type)
            return post.args[0]
    rewrite(Once(), run_infer_type(x + x))
    assert seen == [relay.TensorType((2,))]


@program
def partitions():
    x, y = relay.var("x", shape=(2, 2)), relay.var("y", shape=(2, 2))
    p = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    out = p.partition(relay.nn.relu(x + y), {"Composite": "addrelu"})
    assert isinstance(out.op, relay.Function) and out.op.attrs["Composite"] == "addrelu" and out.op.attrs["PartitionedFromPattern"] == "add_nn.relu_" and [a.name_hint for a in out.args] == ["x", "y"]
    plain = x + y
    same(p.partition(plain), plain)
    no = p.partition(relay.nn.relu(x + y), check=lambda pre: False)
    assert not isinstance(no.op, relay.Function)


# ---- fake quantisation
def fq(f, *data, rounding=False):
    mod = transform.InferType()(tvm.IRModule.from_expr(f))
    out = transform.FakeQuantizationToInteger(hard_fail=True)(mod)
    assert not tvm.ir.structural_equal(out, mod)
    a, b = evaluate(mod["main"], *data), evaluate(out["main"], *data)
    assert np.abs(a.astype("float64") - b).max() <= (1 if rounding else 0), (a, b)
    return out


Q = relay.qnn.op


@program("nn.relu", "clip", "avg_pool2d", "squeeze", "pad", "split", "mean", "concatenate", "leaky_relu", "resize")
def one_operator_in_integers(name):
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="int8")
    f = Q.dequantize(x, relay.const(0.5), relay.const(3))
    make = {"nn.relu": relay.nn.relu, "clip": lambda v: relay.clip(v, 0, 6), "avg_pool2d": lambda v: relay.nn.avg_pool2d(v, (2, 2)), "squeeze": lambda v: relay.squeeze(v, [0]), "pad": lambda v: relay.nn.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1)), 0.0), "split": lambda v: relay.split(v, 2, 1)[0],
            "mean": lambda v: relay.mean(v, 1), "concatenate": lambda v: relay.concatenate([v, Q.dequantize(x, relay.const(0.25), relay.const(0))], 1), "leaky_relu": lambda v: relay.nn.leaky_relu(v, 0.5), "resize": lambda v: relay.image.resize2d(v, (4, 4), method="linear")}[name]
    out = Q.quantize(make(f), relay.const(0.5), relay.const(3), out_dtype="int8")
    fq(relay.Function([x], out), numbers(1, 4, 8, 8, dtype="int8"), rounding=True)


@program("add", "subtract", "multiply", "minimum", "maximum")
def a_constant_beside(name):
    x = relay.var("x", shape=(1, 3), dtype="int8")
    out = Q.quantize(getattr(relay, name)(Q.dequantize(x, relay.const(0.1), relay.const(0)), relay.const(1.0)), relay.const(0.2), relay.const(0))
    fq(relay.Function([x], out), np.array([[-20, 5, 30]], "int8"), rounding=True)


# ---- precision
@program
def precision_of_a_small_network():
    d, w = relay.var("data", shape=(1, 3, 16, 16)), relay.var("weight", shape=(5, 3, 3, 3))
    f = relay.Function([d, w], relay.nn.conv2d(d, w, strides=(1, 1), padding=(1, 1), out_dtype="float32") * relay.const(2.0))
    out = transform.ToMixedPrecision("float16")(transform.InferType()(tvm.IRModule.from_expr(f)))
    text = str(out)
    assert 'dtype="float16"' in text and out["main"].checked_type.ret_type.dtype in ("float16", "float32")
    a, b = evaluate(f, numbers(1, 3, 16, 16), numbers(5, 3, 3, 3)), evaluate(out["main"], numbers(1, 3, 16, 16), numbers(5, 3, 3, 3))
    np.testing.assert_allclose(a, b, rtol=0.05, atol=0.05)


@program
def precision_leaves_softmax():
    a = relay.var("a", shape=(1, 16, 768))
    b = relay.nn.softmax(a)
    out = transform.ToMixedPrecision("float16")(transform.InferType()(tvm.IRModule.from_expr(relay.Function([a], b))))
    assert "float16" not in str(out)


# ---- layouts
@program
def residual_block_in_channels_last():
    x, w = relay.var("x", shape=(1, 64, 56, 56)), relay.var("w1", shape=(32, 64, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, channels=32, kernel_size=(3, 3), padding=(1, 1)))
    y2 = relay.nn.relu(relay.nn.conv2d(y, relay.var("w2", shape=(32, 32, 1, 1)), channels=32, kernel_size=(1, 1)))
    z = relay.nn.global_max_pool2d(y + y2)
    f = relay.Function(relay.analysis.free_vars(z), z)
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.transform.Sequential([transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})])(transform.InferType()(tvm.IRModule.from_expr(f)))
    t = str(mod)
    assert t.count('src_layout="NCHW", dst_layout="NHWC"') == 1 and t.count('src_layout="NHWC", dst_layout="NCHW"') == 1 and t.count('src_layout="OIHW", dst_layout="HWIO"') == 2 and 'layout="NHWC"' in t
