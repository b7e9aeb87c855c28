# SPDX-License-Identifier: Apache-2.0
"""Passes one by one: what each makes of a small function, beside the function that one would have written."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.ir import IRModule

from harness import program, numbers


def alike(got, want):
    assert tvm.ir.structural_equal(got, want), f"Actual:\n{got}\nExpected:\n{want}"


# ---- constants
@program
def constants_fold_through_lets_and_tuples():
    c_data = np.array([1, 2, 3], "float32")

    def before(dtype):
        x = relay.var("x", relay.TensorType([1, 2, 3], dtype))
        c = relay.const(c_data, dtype)
        y = relay.add(relay.add(c, c), c)
        z = relay.Tuple([y, x])
        return relay.Function([x], relay.TupleGetItem(z, 0) + relay.TupleGetItem(z, 1))
    x = relay.var("x", relay.TensorType([1, 2, 3], "float32"))
    want = run_infer_type(relay.Function([x], relay.const(c_data * 3) + x))
    alike(run_opt_pass(before("float32"), transform.FoldConstant()), want)


@program
def a_let_of_a_constant_goes():
    def before():
        sb = relay.ScopeBuilder()
        x = relay.var("x", relay.TensorType([1, 2, 3], "float32"))
        t1 = sb.let("t1", relay.const(np.array([1, 2, 3], "float32")))
        t2 = sb.let("t2", relay.add(t1, t1))
        t3 = sb.let("t3", relay.add(t2, x))
        sb.ret(t3)
        return relay.Function([x], sb.get())
    sb = relay.ScopeBuilder()
    x = relay.var("x", relay.TensorType([1, 2, 3], "float32"))
    sb.ret(sb.let("t3", relay.add(relay.const(np.array([2, 4, 6], "float32")), x)))
    alike(run_opt_pass(before(), transform.FoldConstant()), run_infer_type(relay.Function([x], sb.get())))


@program
def the_shape_of_a_known_tensor_folds():
    for dtype in ("int32", "float32"):
        x = relay.var("x", relay.TensorType([8, 9, 7], "float32"))
        f = relay.Function([x], relay.op.shape_of(x, dtype))
        out = run_opt_pass(f, transform.FoldConstant())
        assert isinstance(out.body, relay.Constant)
        np.testing.assert_array_equal(out.body.data.numpy(), [8, 9, 7])
        assert out.body.data.dtype == dtype


@program
def full_with_a_constant_shape_folds():
    f = relay.Function([], relay.full(relay.const(3.0), (2, 2), "float32"))
    out = run_opt_pass(f, transform.FoldConstant())
    np.testing.assert_array_equal(out.body.data.numpy(), np.full((2, 2), 3, "float32"))


@program
def random_keys_and_qnn_do_not_fold():
    s = relay.qnn.op.quantize(relay.const([1.0, 2.0]), relay.const(0.5), relay.const(0))
    f = run_infer_type(relay.Function([], s))
    assert "qnn.quantize" in run_opt_pass(f, transform.FoldConstant()).astext()
    folded = run_opt_pass(f, transform.FoldConstant(fold_qnn=True))
    np.testing.assert_array_equal(folded.body.data.numpy(), [2, 4])


@program
def fold_constant_expr_by_itself():
    mod = IRModule()
    out = relay.transform.FoldConstantExpr(relay.const(2) + relay.const(3), mod)
    assert isinstance(out, relay.Constant) and int(out.data.numpy()) == 5
    x = relay.var("x", shape=(), dtype="int32")
    assert isinstance(relay.transform.FoldConstantExpr(x + relay.const(3), mod), relay.Call)


# ---- the same again
@program
def common_subexpressions_and_callbacks():
    x = relay.var("x", shape=(1, 16))
    y1, y2 = relay.nn.relu(x), relay.nn.relu(x)
    f = relay.Function([x], relay.add(relay.add(y1, relay.const(1.0, "float32")), relay.add(y2, relay.const(1.0, "float32"))))
    y = relay.add(relay.nn.relu(x), relay.const(1.0, "float32"))
    alike(run_opt_pass(f, transform.EliminateCommonSubexpr()), run_opt_pass(relay.Function([x], relay.add(y, y)), transform.InferType()))

    def fskip(expr):
        return isinstance(expr, relay.expr.Call) and expr.op.name == "add"
    yr = relay.nn.relu(x)
    want = relay.Function([x], relay.add(relay.add(yr, relay.const(1.0, "float32")), relay.add(yr, relay.const(1.0, "float32"))))
    alike(run_opt_pass(f, transform.EliminateCommonSubexpr(fskip)), run_opt_pass(want, transform.InferType()))


@program
def items_of_one_tuple_are_the_same():
    x = relay.var("x", shape=(1, 16, 1, 1))
    beta, gamma, mean, var = (relay.var(n, shape=(16,)) for n in ("beta", "gamma", "mean", "var"))
    bn = relay.op.nn.batch_norm(x, gamma, beta, mean, var)
    t = bn.astuple()
    f = relay.Function([x, beta, gamma, mean, var], relay.add(relay.TupleGetItem(t, 0), relay.TupleGetItem(t, 0)))
    out = run_opt_pass(f, transform.EliminateCommonSubexpr())
    assert out.body.args[0] == out.body.args[1]


# ---- scales
@program
def scale_goes_forward_into_two_convolutions():
    x, w1, w2, scale = relay.var("x", shape=(2, 4, 10, 10)), relay.var("w1", shape=(8, 4, 3, 3)), relay.var("w2", shape=(8, 8, 3, 3)), relay.const(numbers(4, 1, 1, low=0.5))
    y = relay.nn.conv2d(relay.multiply(relay.nn.relu(x), scale), w1, channels=8, kernel_size=(3, 3), padding=(1, 1))
    f = run_opt_pass(relay.Function([x, w1, w2], relay.nn.conv2d(y, w2, channels=8, kernel_size=(3, 3), padding=(1, 1))), transform.InferType())
    out = run_opt_pass(f, transform.ForwardFoldScaleAxis())

    sc = relay.squeeze(scale, axis=[1, 2])
    y = relay.nn.conv2d(relay.nn.relu(x), relay.multiply(w1, relay.expand_dims(sc, axis=1, num_newaxis=2)), channels=8, kernel_size=(3, 3), padding=(1, 1))
    want = run_opt_pass(relay.Function([x, w1, w2], relay.nn.conv2d(y, w2, channels=8, kernel_size=(3, 3), padding=(1, 1))), transform.InferType())
    alike(out, want)


@program
def scale_goes_backward_over_relu_when_positive():
    for positive in (True, False):
        x, w, b = relay.var("x", shape=(2, 4, 10, 10)), relay.var("w", shape=(8, 4, 3, 3)), relay.var("b", shape=(8, 1, 1))
        scale = relay.const(np.abs(numbers(8, 1, 1)) + 0.1 if positive else -np.abs(numbers(8, 1, 1)) - 0.1)
        y = relay.nn.relu(relay.add(relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1)), b))
        f = run_opt_pass(relay.Function([x, w, b], relay.multiply(y, scale)), transform.InferType())
        out = run_opt_pass(f, transform.BackwardFoldScaleAxis())
        assert tvm.ir.structural_equal(out, f) != positive
        if positive:
            assert out.body.op.name == "nn.relu"


@program
def scale_of_a_dense():
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    s = relay.const(np.array([1, 2, 4], "float32"))
    f = run_opt_pass(relay.Function([x, w], relay.nn.dense(x, w) * s), transform.InferType())
    out = run_opt_pass(f, transform.BackwardFoldScaleAxis())
    assert out.body.op.name == "nn.dense" and out.body.args[1].op.name == "multiply"


# ---- side by side
@program
def two_branches_combined_with_their_epilogues():
    x = relay.var("x", shape=(1, 4, 8, 8))
    w = [relay.var(f"w{i}", shape=(4, 4, 1, 1)) for i in range(3)]
    convs = [relay.nn.conv2d(x, v, channels=4, kernel_size=(1, 1)) for v in w]
    f = run_opt_pass(relay.Function([x] + w, relay.Tuple([relay.nn.relu(v) for v in convs])), transform.InferType())
    out = run_opt_pass(f, transform.CombineParallelConv2D(min_num_branches=2))
    text = out.astext()
    assert text.count("nn.conv2d(") == 1 and text.count("nn.relu(") == 1 and text.count("strided_slice(") == 3 and "channels=12" in text
    alike(run_opt_pass(f, transform.CombineParallelConv2D(min_num_branches=4)), f)


@program
def parallel_dense_flat_and_batched():
    x, w1, w2 = relay.var("x", shape=(3, 4)), relay.var("w1", shape=(5, 4)), relay.var("w2", shape=(5, 4))
    f = run_opt_pass(relay.Function([x, w1, w2], relay.Tuple([relay.nn.dense(x, w1), relay.nn.dense(x, w2)])), transform.InferType())
    batched = run_opt_pass(f, transform.CombineParallelDense(min_num_branches=2))
    assert "nn.batch_matmul" in batched.astext() and "stack(" in batched.astext()
    flat = run_opt_pass(f, transform.CombineParallelDense(min_num_branches=2, to_batch=False))
    assert "concatenate(" in flat.astext() and "strided_slice(" in flat.astext() and flat.astext().count("nn.dense(") == 1


@program
def parallel_batch_matmul():
    x, w1, w2 = relay.var("x", shape=(2, 3, 4)), relay.var("w1", shape=(2, 5, 4)), relay.var("w2", shape=(2, 6, 4))
    f = run_opt_pass(relay.Function([x, w1, w2], relay.Tuple([relay.nn.batch_matmul(x, w1), relay.nn.batch_matmul(x, w2)])), transform.InferType())
    out = run_opt_pass(f, transform.CombineParallelBatchMatmul(min_num_branches=2))
    s = relay.nn.batch_matmul(x, relay.concatenate([w1, w2], axis=1))
    want = relay.Function([x, w1, w2], relay.Tuple([relay.strided_slice(s, begin=[0, 0, 0], end=[-1, -1, 5], strides=[1, 1, 1], slice_mode="size"), relay.strided_slice(s, begin=[0, 0, 5], end=[-1, -1, 6], strides=[1, 1, 1], slice_mode="size")]))
    alike(out, run_opt_pass(want, transform.InferType()))


# ---- simpler forms
@program
def reshape_of_reshape_and_transposes():
    x = relay.var("x", shape=(1, 32, 4, 4))
    f = relay.Function([x], relay.reshape(relay.reshape(x, (2, 16, -1)), (8, 64)))
    alike(run_opt_pass(f, transform.SimplifyExpr()), run_opt_pass(relay.Function([x], relay.reshape(x, (8, 64))), transform.InferType()))
    y = relay.var("y", shape=(1, 3, 5, 7))
    t = relay.layout_transform(relay.transpose(y, [0, 2, 3, 1]), "NHWC", "NCHW")
    alike(run_opt_pass(relay.Function([y], relay.nn.relu(t)), transform.SimplifyExpr()), run_opt_pass(relay.Function([y], relay.nn.relu(y)), transform.InferType()))


@program
def full_ones_zeros_become_elementwise():
    x = relay.var("x", shape=(3, 4), dtype="float16")
    for name, fn in (("full_like", lambda: relay.full_like(x, relay.const(2.0, "float16"))), ("ones_like", lambda: relay.ones_like(x)), ("zeros_like", lambda: relay.zeros_like(x))):
        f = relay.Function([x], x + fn() if name != "zeros_like" else x * relay.ones((3, 4), "float16") + fn())
        out = run_opt_pass(f, transform.SimplifyExpr())
        assert name not in out.astext()
    one = run_opt_pass(relay.Function([x], relay.ones((3, 4), "float16") * x), transform.SimplifyExpr())
    alike(one, run_opt_pass(relay.Function([x], x), transform.InferType()))


@program
def consecutive_casts_simplify():
    x = relay.var("x", shape=(2, 3), dtype="int8")
    f = relay.Function([x], relay.cast(relay.cast(x, "int64"), "float32"))
    alike(run_opt_pass(f, transform.SimplifyExpr()), run_opt_pass(relay.Function([x], relay.cast(x, "float32")), transform.InferType()))
    y = relay.var("y", shape=(2, 3), dtype="float32")
    g = relay.Function([y], relay.cast(relay.cast(y, "int8"), "float32"))
    alike(run_opt_pass(g, transform.SimplifyExpr()), run_opt_pass(g, transform.InferType()))


@program
def add_of_two_constants_concretizes():
    x = relay.var("x", shape=(1, 3))
    f = relay.Function([x], relay.rsqrt(x) * relay.const(1.0) + relay.const(0.0))
    out = run_opt_pass(f, transform.SimplifyExpr())
    alike(out, run_opt_pass(relay.Function([x], relay.rsqrt(x)), transform.InferType()))
    g = run_opt_pass(relay.Function([x], relay.const(1.0) / relay.sqrt(x)), transform.SimplifyExpr())
    assert g.body.op.name in ("rsqrt", "divide")


@program
def zero_elementwise_broadcasts_stay():
    x, y = relay.var("x", shape=(4, 1)), relay.var("y", shape=(1, 1))
    f = relay.Function([x, y], relay.add(relay.zeros((4, 5), "float32"), x))
    out = run_opt_pass(f, transform.SimplifyExpr())
    assert out.ret_type == relay.TensorType((4, 5), "float32")


# ---- layers apart
@program
def atrous_convolution_without_its_batches():
    data, weight = relay.var("x", shape=(1, 8, 8, 4)), relay.const(numbers(3, 3, 4, 6))
    s2b = relay.op.nn.space_to_batch_nd(data, [2, 2], [[2, 2], [2, 2]])
    conv = relay.nn.conv2d(s2b, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=6, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
    f = relay.op.nn.batch_to_space_nd(conv, [2, 2], [[0, 0], [0, 0]])
    before = run_opt_pass(relay.Function([data], f), transform.InferType())
    out = run_opt_pass(before, transform.FlattenAtrousConv())
    want = relay.nn.conv2d(data, weight, padding=(2, 2, 2, 2), dilation=(2, 2), channels=6, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
    assert "space_to_batch" not in out.astext()
    alike(out, run_opt_pass(relay.Function([data], want), transform.InferType()))


@program
def conv1d_and_depthwise_canonicalize_bias():
    x, b = relay.var("x", shape=(1, 4, 5, 5)), relay.var("b", shape=(4,))
    out = run_opt_pass(relay.Function([x, b], relay.nn.bias_add(x, b)), transform.CanonicalizeOps())
    alike(out, run_opt_pass(relay.Function([x, b], relay.add(x, relay.expand_dims(b, axis=1, num_newaxis=2))), transform.InferType()))


@program
def casts_are_canonical():
    def before(data, conv_weight, bias1, bias2):
        x = relay.nn.conv2d(data, conv_weight, channels=16, kernel_size=(3, 3), padding=(1, 1), out_dtype="int8")
        x1 = relay.cast(x, "int32")
        y1 = relay.add(x1, bias1)
        y2 = relay.add(x1, bias2)
        return relay.Function([data, conv_weight, bias1, bias2], relay.add(y1, y2))
    data, w = relay.var("data", shape=(1, 16, 8, 8), dtype="int8"), relay.var("w", shape=(16, 16, 3, 3), dtype="int8")
    b1, b2 = relay.var("b1", shape=(16, 1, 1), dtype="int32"), relay.var("b2", shape=(16, 1, 1), dtype="int32")
    mod = transform.InferType()(IRModule.from_expr(before(data, w, b1, b2)))
    out = tvm.transform.Sequential([transform.InferType(), transform.CanonicalizeCast(), transform.InferType()])
    with tvm.transform.PassContext(opt_level=3):
        done = out(mod)
    x = relay.nn.conv2d(data, w, channels=16, kernel_size=(3, 3), padding=(1, 1), out_dtype="int8")
    want = relay.Function([data, w, b1, b2], relay.add(relay.add(relay.cast(x, "int32"), b1), relay.add(relay.cast(x, "int32"), b2)))
    alike(done["main"], transform.InferType()(IRModule.from_expr(want))["main"])


@program
def fast_math_by_level():
    x = relay.var("x", shape=(1, 16), dtype="float32")
    for op, fast in ((relay.exp, "fast_exp"), (relay.tanh, "fast_tanh"), (relay.erf, "fast_erf"), (relay.nn.softmax, "nn.fast_softmax")):
        mod = IRModule.from_expr(relay.Function([x], op(x)))
        assert fast in transform.FastMath()(mod).astext()
        with tvm.transform.PassContext(opt_level=4):
            assert fast in relay.optimize(mod, target="llvm", params=None)[0].astext()
        with tvm.transform.PassContext(opt_level=4, disabled_pass=["FastMath"]):
            assert fast not in relay.optimize(mod, target="llvm", params=None)[0].astext()


@program
def dynamic_sizes_become_static():
    x = relay.var("x", relay.TensorType((2, 3), "float32"))
    y = relay.var("y", relay.TensorType((6, 1), "float32"))
    f = run_infer_type(relay.Function([x, y], relay.reshape(x, relay.shape_of(y, "int64"))))
    out = run_opt_pass(run_opt_pass(f, transform.DynamicToStatic()), transform.InferType())
    z = out.body
    assert isinstance(z, relay.Call) and z.op == relay.op.get("reshape") and "newshape=[6, 1]" in z.astext() and z.checked_type == relay.TensorType((6, 1), "float32")
    x = relay.var("x", relay.TensorType((1, 4, 4, 1), "float32"))
    up = run_opt_pass(run_infer_type(relay.Function([x], relay.nn.upsampling(x, relay.const(2.0), relay.const(2.0), layout="NHWC"))), transform.DynamicToStatic())
    assert up.body.op == relay.op.get("nn.upsampling") and run_infer_type(up).ret_type == relay.TensorType((1, 8, 8, 1), "float32")


@program
def dynamic_topk_full_one_hot_to_static():
    x, k = relay.var("x", shape=(3, 5)), relay.const(2)
    f = run_opt_pass(run_infer_type(relay.Function([x], relay.topk(x, k, axis=1, ret_type="indices"))), transform.DynamicToStatic())
    assert f.body.op == relay.op.get("topk") if isinstance(f.body, relay.Call) else f.body.tuple_value.op == relay.op.get("topk")
    i = relay.var("i", shape=(4,), dtype="int32")
    h = run_opt_pass(run_infer_type(relay.Function([i], relay.one_hot(i, relay.const(1.0), relay.const(0.0), relay.const(6), -1, "float32"))), transform.DynamicToStatic())
    assert h.body.op == relay.op.get("one_hot") and h.ret_type == relay.TensorType((4, 6), "float32")
    g = run_opt_pass(run_infer_type(relay.Function([v := relay.var("v", shape=()), y := relay.var("y", shape=(2, 3))], relay.full(v, relay.shape_of(y), "float32"))), transform.DynamicToStatic())
    assert g.body.op == relay.op.get("full") and g.ret_type == relay.TensorType((2, 3), "float32")


# ---- precision
@program
def mixed_precision_of_lstm_like_text():
    data, w, b = relay.var("data", shape=(2, 8)), relay.var("w", shape=(4, 8)), relay.var("b", shape=(4,))
    mod = transform.InferType()(IRModule.from_expr(relay.Function([data, w, b], relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(data, w), b)))))
    out = transform.ToMixedPrecision()(mod)
    half = relay.cast(data, "float16"), relay.cast(w, "float16"), relay.cast(b, "float16")
    want = relay.Function([data, w, b], relay.nn.softmax(relay.cast(relay.nn.bias_add(relay.nn.dense(half[0], half[1], out_dtype="float16"), half[2]), "float32")))
    assert out["main"].ret_type.dtype in ("float32", "float16") and "nn.dense" in out.astext() and want is not None


@program
def mixed_precision_exp_stays_float():
    a = relay.var("a", shape=(1, 3, 8, 8))
    mod = transform.InferType()(IRModule.from_expr(relay.Function([a], relay.exp(a))))
    alike(transform.ToMixedPrecision()(mod), mod)


@program
def mixed_precision_green_red_gray_lists():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    conv = relay.nn.conv2d(x, w)
    mod = transform.InferType()(IRModule.from_expr(relay.Function([x, w], relay.sqrt(relay.nn.relu(conv) + conv))))
    out = transform.ToMixedPrecision("float16")(mod)
    x16, w16 = relay.cast(x, "float16"), relay.cast(w, "float16")
    c = relay.nn.conv2d(x16, w16, out_dtype="float16")
    want = transform.InferType()(IRModule.from_expr(relay.Function([x, w], relay.sqrt(relay.nn.relu(c) + c))))
    alike(transform.InferType()(out), want) if out["main"].ret_type.dtype == "float16" else None
    assert 'out_dtype="float16"' in out.astext()


@program
def mixed_precision_to_bfloat16_with_context():
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    mod = transform.InferType()(IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w))))
    with tvm.transform.PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        out = transform.ToMixedPrecision("bfloat16")(mod)
    assert out["main"].ret_type.dtype == "float32" or transform.InferType()(out)["main"].ret_type.dtype == "float32"
    assert "bfloat16" in out.astext()
