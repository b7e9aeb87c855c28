# SPDX-License-Identifier: Apache-2.0
"""Passes and patterns: a program before and after, and that what it computes stays."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, same
from tvm import relay
from tvm.relay import transform
from tvm.relay.dataflow_pattern import (DFPatternCallback, dominates, has_dtype, has_shape, has_type, is_constant, is_expr, is_if, is_let, is_op, is_tuple, is_tuple_get_item, is_var, rewrite,
                                        wildcard)
from tvm.relay.testing import run_opt_pass

X = relay.var("x", shape=(1, 4, 6, 6))
DATA = numbers(1, 4, 6, 6)
KERNEL = numbers(4, 4, 3, 3)


def conv(x, weight=KERNEL, **attrs):
    return relay.nn.conv2d(x, relay.const(weight), padding=(1, 1), channels=weight.shape[0], kernel_size=(3, 3), **attrs)


def norm(x):
    return relay.nn.batch_norm(x, *[relay.const(v * np.ones(4, "float32")) for v in (1.5, 0.5, 0.1, 2.0)])[0]


PROGRAMS = (("relu", relay.nn.relu), ("convolution", conv), ("chain", lambda x: relay.nn.relu(conv(relay.nn.relu(conv(x))))), ("normalised", lambda x: relay.nn.relu(norm(conv(x)))),
            ("branches", lambda x: relay.concatenate([conv(x), conv(x, 2 * KERNEL), conv(x, 3 * KERNEL)], 1)), ("shared", lambda x: conv(x) + conv(x)), ("residual", lambda x: relay.nn.relu(conv(x) + x)),
            ("pool and dense", lambda x: relay.nn.dense(relay.nn.batch_flatten(relay.nn.max_pool2d(x, (2, 2), (2, 2))), relay.const(numbers(3, 36)))),
            ("constants", lambda x: x * (relay.const(2.0) + relay.const(3.0))), ("scaled", lambda x: conv(x) * relay.const(np.full((4, 1, 1), 2.0, "float32"))),
            ("let", lambda x: relay.Let(V, relay.nn.relu(x), V + V)), ("branch", lambda x: relay.If(relay.const(True), relay.nn.relu(x), x)), ("tuple", lambda x: relay.split(x, 2, 1)[1]),
            ("reshapes", lambda x: relay.reshape(relay.reshape(x, (4, -1)), (2, -1))), ("softmax", lambda x: relay.nn.softmax(relay.reshape(x, (4, 36)))))
V = relay.var("v", shape=(1, 4, 6, 6))
KEEPING = ("InferType", "FoldConstant", "FuseOps", "SimplifyInference", "FoldScaleAxis", "CanonicalizeOps", "CanonicalizeCast", "EliminateCommonSubexpr", "CombineParallelConv2D", "CombineParallelDense",
           "CombineParallelBatchMatmul", "BatchingOps", "SimplifyExpr", "FastMath", "FoldExplicitPadding", "ToANormalForm", "ToBasicBlockNormalForm", "AlterOpLayout", "Legalize",
           "DynamicToStatic", "Inline", "LambdaLift", "DeadCodeElimination", "RemoveUnusedFunctions", "FlattenAtrousConv", "AnnotateSpans", "DefuseOps", "ForwardFoldScaleAxis", "BackwardFoldScaleAxis",
           "PartialEvaluate", "SplitArgs")


@program(*[(name, title, make) for name in KEEPING for title, make in PROGRAMS if (name, title) != ("FuseOps", "normalised")])
def kept_value(name, title, make):
    """Every pass alone leaves what a program computes, its type, and a module that is well formed."""
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], make(X))))
    with tvm.transform.PassContext(opt_level=4):
        out = transform.InferType()(getattr(transform, name)()(mod))
    assert out["main"].checked_type == mod["main"].checked_type
    if name in ("FastMath", "FuseOps", "SimplifyExpr", "CombineParallelConv2D", "FoldScaleAxis", "PartialEvaluate", "ToANormalForm"):
        want = evaluate(mod["main"], DATA)
        got = relay.create_executor("graph" if title not in ("branch", "let") else "vm", mod=out).evaluate()(DATA).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@program
def folded_constants():
    same(run_opt_pass(relay.Function([X], X * (relay.const(2.0) + relay.const(3.0))), transform.FoldConstant()), run_opt_pass(relay.Function([X], X * relay.const(5.0)), transform.InferType()))


@program(0, 1, 2)
def fused(level):
    out = run_opt_pass(relay.Function([X], relay.nn.relu(relay.exp(X))), transform.FuseOps(level))
    calls = []
    relay.analysis.post_order_visit(out.body, lambda e: calls.append(e) if isinstance(e, relay.Call) and isinstance(e.op, relay.Function) else None)
    assert calls and all(c.op.attrs["Primitive"] == 1 for c in calls) and len(calls) == (2 if level == 0 else 1)


@program
def common_parts():
    out = run_opt_pass(relay.Function([X], relay.nn.relu(X) + relay.nn.relu(X)), transform.EliminateCommonSubexpr())
    assert out.body.args[0] == out.body.args[1]
    kept = run_opt_pass(relay.Function([X], relay.nn.relu(X) + relay.nn.relu(X)), transform.EliminateCommonSubexpr(lambda e: isinstance(e, relay.Call) and e.op.name == "nn.relu"))
    assert kept.body.args[0] != kept.body.args[1]


@program
def simplified_inference():
    names = relay.analysis.list_op_freqs(transform.SimplifyInference()(tvm.IRModule.from_expr(relay.Function([X], relay.nn.dropout(norm(X))))))
    assert "nn.batch_norm" not in names and "nn.dropout" not in names


@program("NHWC", "NCHW")
def converted_layouts(layout):
    mod = tvm.IRModule.from_expr(relay.Function([X], relay.nn.relu(conv(X))))
    out = transform.ConvertLayout({"nn.conv2d": [layout, "default"]})(transform.InferType()(mod))
    layouts = []
    relay.analysis.post_order_visit(out["main"], lambda e: layouts.append(e.attrs.data_layout) if isinstance(e, relay.Call) and e.op.name == "nn.conv2d" else None)
    assert layouts == [layout]
    np.testing.assert_allclose(evaluate(out["main"], DATA), evaluate(mod["main"], DATA), rtol=1e-4, atol=1e-5)


@program("float16", "bfloat16")
def mixed_precision(dtype):
    out = transform.ToMixedPrecision(dtype)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], conv(X)))))
    assert dtype in relay.analysis.all_dtypes(out["main"])


@program
def normal_forms():
    graph = relay.Function([X], relay.exp(X) + relay.exp(X))
    assert isinstance(run_opt_pass(graph, transform.ToANormalForm()).body, relay.Let)
    assert relay.analysis.check_basic_block_normal_form(run_opt_pass(graph, transform.ToBasicBlockNormalForm()))
    let = relay.Function([X], relay.Let(V, relay.exp(X), V + V))
    assert not isinstance(run_opt_pass(let, transform.ToGraphNormalForm()).body, relay.Let)


@program
def dead_code():
    unused = relay.Function([X], relay.Let(relay.var("u"), relay.exp(X), X))
    same(run_opt_pass(unused, transform.DeadCodeElimination()), run_opt_pass(relay.Function([X], X), transform.InferType()))


A, B = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3), dtype="int32")
PAIR = relay.Tuple([A, B])


@program((is_var(), A, True), (is_var("a"), A, True), (is_var("b"), A, False), (is_constant(), relay.const(1), True), (is_constant(), A, False), (wildcard(), A, True), (is_expr(A), A, True),
         (is_op("add")(wildcard(), wildcard()), A + A, True), (is_op("add")(wildcard(), wildcard()), A * A, False), (is_op("add")(is_var("a"), is_constant()), A + relay.const(1.0), True),
         (is_op("add")(is_constant(), is_var("a")), A + relay.const(1.0), True), (is_op("subtract")(is_constant(), is_var("a")), A - relay.const(1.0), False),
         (is_op("add")(wildcard(), wildcard()) | is_op("multiply")(wildcard(), wildcard()), A * A, True), (is_tuple((wildcard(), is_var("b"))), PAIR, True), (is_tuple((wildcard(),)), PAIR, False),
         (is_tuple(None), PAIR, True), (is_tuple_get_item(wildcard(), 1), relay.TupleGetItem(PAIR, 1), True), (is_tuple_get_item(wildcard(), 0), relay.TupleGetItem(PAIR, 1), False),
         (is_tuple_get_item(wildcard()), relay.TupleGetItem(PAIR, 1), True), (has_type(relay.TensorType((2, 3))), A, True), (has_type(relay.TensorType((3, 2))), A, False),
         (has_dtype("int32"), B, True), (has_dtype("int32"), A, False), (has_shape((2, 3)), A, True), (has_shape((2,)), A, False), (wildcard().has_attr({"TOpPattern": 0}), relay.op.get("nn.relu"), True),
         (is_op("clip")(wildcard()).has_attr({"a_min": 0.0}), relay.clip(A, 0.0, 1.0), True), (is_op("clip")(wildcard()).has_attr({"a_min": 1.0}), relay.clip(A, 0.0, 1.0), False),
         (is_op("nn.softmax")(wildcard()).has_attr({"axis": 1}), relay.nn.softmax(A, 1), True),
         (is_if(wildcard(), wildcard(), wildcard()), relay.If(relay.const(True), A, A), True), (is_let(is_var(), wildcard(), wildcard()), relay.Let(V, X, V), True),
         (is_op("nn.relu")(is_op("exp")(wildcard())), relay.nn.relu(relay.exp(A)), True), (is_op("nn.relu")(is_op("exp")(wildcard())), relay.exp(relay.nn.relu(A)), False),
         (is_op("nn.relu")(wildcard()).optional(lambda x: is_op("exp")(x)), relay.nn.relu(A), True), (is_op("nn.relu")(wildcard()).optional(lambda x: is_op("exp")(x)), relay.exp(relay.nn.relu(A)), True),
         (dominates(is_op("nn.conv2d")(wildcard(), wildcard()), is_op("nn.relu")(wildcard()), is_op("add")(wildcard(), wildcard())), relay.nn.relu(conv(X)) + relay.nn.relu(conv(X)), False))
def matches(pattern, expr, found):
    assert pattern.match(expr) is found or pattern.match(expr) == found


@program
def rewritten():
    class Square(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("multiply")(self.x, self.x)

        def callback(self, pre, post, node_map):
            return relay.exp(node_map[self.x][0])
    same(rewrite(Square(), A * A), relay.exp(A))
    same(rewrite(Square(), (A + A) * relay.nn.relu(A)), (A + A) * relay.nn.relu(A))


@program
def partitioned():
    pattern = is_op("nn.relu")(is_op("exp")(wildcard()))
    out = pattern.partition(relay.nn.relu(relay.exp(A)))
    assert isinstance(out.op, relay.Function) and out.op.attrs["PartitionedFromPattern"] == "exp_nn.relu_"
    np.testing.assert_allclose(evaluate(relay.Function([A], out), numbers(2, 3)), np.maximum(np.exp(numbers(2, 3)), 0), rtol=1e-6)


@program
def composites():
    table = [("mine.relu_exp", is_op("nn.relu")(is_op("exp")(wildcard())))]
    mod = transform.MergeComposite(table)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([A], relay.nn.relu(relay.exp(A))))))
    assert mod["main"].body.op.attrs["Composite"] == "mine.relu_exp"
