# SPDX-License-Identifier: Apache-2.0
"""Scales that move into weights, bindings that go, rules that scripts register, and sizes that only a run brings."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, raises, same
from tvm import relay
from tvm.relay import transform
from tvm.relay.op import op as reg
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.relay.transform.fake_quantization_to_integer import register_fake_quantization_to_integer, register_unary_identity

SCALE = numbers(8, low=0.5, high=1.0)


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def typed(params, body):
    return run_opt_pass(relay.Function(params, body), transform.InferType())


def free(*shape, dtype="float32"):
    return relay.TensorType([relay.Any() if s is None else s for s in shape], dtype)


def conv(x, w, **attrs):
    return relay.nn.conv2d(x, w, **{"channels": 8, "kernel_size": (3, 3), "padding": (1, 1), **attrs})


# Scales and weights that are parameters.
X, W, B = var("x", 2, 4, 6, 6), var("w", 8, 4, 3, 3), var("b", 8)
S = relay.const(SCALE.reshape(8, 1, 1))


def row(axis=1, count=3):
    return relay.expand_dims(relay.squeeze(S, axis=[1, 2]), axis=axis, num_newaxis=count)


def backward():
    """Before and after, each with its parameters."""
    relu, add = relay.nn.relu, relay.add
    plain, scaled = conv(X, W), conv(X, relay.multiply(W, row()))
    b1 = relay.expand_dims(B, axis=1, num_newaxis=2)
    squeezed = relay.squeeze(S, axis=[1, 2])
    yield "plain", [X, W], plain * S, scaled
    yield "through relu", [X, W], relu(plain) * S, relu(scaled)
    shared = relay.expand_dims(squeezed, axis=1, num_newaxis=3)
    inner = relay.expand_dims(squeezed, axis=1, num_newaxis=2)
    yield "through add", [X, W, B], relu(add(plain, b1)) * S, relu(add(conv(X, relay.multiply(W, shared)), relay.multiply(b1, inner)))
    yield "through bias_add", [X, W, B], relay.nn.bias_add(plain, B) * S, relay.nn.bias_add(conv(X, relay.multiply(W, shared)), relay.multiply(B, squeezed))
    z, v = var("z", 3, 4), var("v", 8, 4)
    yield "dense", [z, v], relay.nn.dense(z, v) * relay.const(SCALE), relay.nn.dense(z, relay.multiply(v, relay.expand_dims(relay.const(SCALE), axis=1)))


@program(*backward())
def scale_after_weights(_, params, before, after):
    same(run_opt_pass(relay.Function(params, before), transform.BackwardFoldScaleAxis()), typed(params, after))


def unfolded():
    negative = relay.const(-SCALE.reshape(8, 1, 1))
    yield "negative through relu", relay.nn.relu(conv(X, W)) * negative
    y = conv(X, W)
    yield "used twice", y * S + y
    yield "not by channel", conv(X, W) * relay.const(numbers(6))


@program(*unfolded())
def scale_that_stays(_, body):
    same(run_opt_pass(relay.Function([X, W], body), transform.BackwardFoldScaleAxis()), typed([X, W], body))


@program("NCHW", "NHWC")
def scale_before_weights(layout):
    last = layout == "NHWC"
    x, w, b = (var("x", 2, 6, 6, 4), var("w", 3, 3, 4, 8), var("b", 4)) if last else (X, W, var("b", 4, 1, 1))
    s = relay.const(numbers(4, low=0.5, high=1.0) if last else numbers(4, 1, 1, low=0.5, high=1.0))
    layouts = {"data_layout": layout, "kernel_layout": "HWIO" if last else "OIHW"}
    before = conv(relay.add(relay.nn.relu(relay.multiply(x, s)), b), w, **layouts)
    flat = s if last else relay.squeeze(s, axis=[1, 2])
    over = relay.expand_dims(flat, axis=1, num_newaxis=1 if last else 2)
    offset = relay.divide(b, flat if last else relay.expand_dims(flat, axis=1, num_newaxis=2))
    after = conv(relay.add(relay.nn.relu(x), offset), relay.multiply(w, over), **layouts)
    out = run_opt_pass(relay.Function([x, w, b], before), transform.ForwardFoldScaleAxis())
    same(out, typed([x, w, b], after))
    data = [numbers(*(int(d) for d in p.type_annotation.shape)) for p in (x, w, b)]
    np.testing.assert_allclose(evaluate(out, *data), evaluate(relay.Function([x, w, b], before), *data), rtol=1e-3, atol=1e-4)


@program(0.0, 1e-30)
def scale_that_is_no_divisor(tiny):
    """An offset that it would have to be divided by stays."""
    x, w, s = var("x", 1, 4, 6, 6), var("w", 8, 4, 3, 3), np.ones((4, 1, 1), "float32")
    s[2] = tiny
    body = conv(relay.add(x * relay.const(s), relay.const(numbers(4, 1, 1))), w)
    before = relay.Function([x, w], body)
    same(run_opt_pass(before, transform.ForwardFoldScaleAxis()), run_opt_pass(before, transform.InferType()))


@program
def scale_of_two_uses():
    s = relay.const(numbers(4, 1, 1, low=0.5, high=1.0))
    y = relay.nn.relu(X * s)
    both = run_opt_pass(relay.Function([X, W], conv(y, W) + conv(y, W)), transform.ForwardFoldScaleAxis())
    assert str(both).count("multiply(%w") == 2 and "multiply(%x" not in str(both)
    kept = relay.Function([X, W], relay.sum(conv(y, W)) + relay.sum(y))
    same(run_opt_pass(kept, transform.ForwardFoldScaleAxis()), run_opt_pass(kept, transform.InferType()))


# Several filters a channel.
@program(("NCHW", "OIHW", (3, 2, 3, 3)), ("NHWC", "HWOI", (3, 3, 3, 2)))
def depthwise_filters(layout, kernel_layout, shape):
    data = numbers(1, 3, 8, 8) if layout == "NCHW" else numbers(1, 8, 8, 3)
    x, w = var("x", *data.shape), var("w", *shape)
    y = relay.nn.conv2d(x, w, groups=3, channels=6, kernel_size=(3, 3), padding=(1, 1), data_layout=layout, kernel_layout=kernel_layout)
    kernel = numbers(*shape)
    usual = kernel if layout == "NCHW" else kernel.transpose(2, 3, 0, 1)
    z = relay.nn.conv2d(var("x", 1, 3, 8, 8), var("w", 6, 1, 3, 3), groups=3, channels=6, kernel_size=(3, 3), padding=(1, 1))
    want = evaluate(relay.Function(relay.analysis.free_vars(z), z), data if layout == "NCHW" else data.transpose(0, 3, 1, 2), usual.reshape(6, 1, 3, 3))
    for kind in ("graph", "debug"):
        got = evaluate(relay.Function([x, w], y), data, kernel, kind=kind)
        np.testing.assert_allclose(got, want if layout == "NCHW" else want.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


@program
def depthwise_filters_quantised():
    x, w = var("x", 1, 3, 5, 5, dtype="uint8"), var("w", 3, 2, 2, 2, dtype="uint8")
    attrs = {"groups": 3, "channels": 6, "kernel_size": (2, 2), "out_dtype": "int32"}
    y = relay.qnn.op.conv2d(x, w, relay.const(5), relay.const(3), relay.const(1.0), relay.const(1.0), **attrs)
    z = relay.nn.conv2d(relay.cast(x, "int32") - relay.const(5), relay.cast(w, "int32") - relay.const(3), **attrs)
    data = numbers(1, 3, 5, 5, dtype="uint8"), numbers(3, 2, 2, 2, dtype="uint8")
    np.testing.assert_array_equal(evaluate(relay.Function([x, w], y), *data), evaluate(relay.Function([x, w], z), *data))


@program("contrib_conv2d_nchwc", "contrib_depthwise_conv2d_nchwc")
def blocked_names(name):
    deep = "depthwise" in name
    x, w = var("x", 1, 2, 8, 8, 4), var("w", 2, 1 if deep else 2, 3, 3, 1 if deep else 4, 4)
    y = getattr(relay.nn, name)(x, w, kernel_size=(3, 3), channels=8, groups=8 if deep else 1, padding=(1, 1), data_layout="NCHW4c",
                                kernel_layout=f"OIHW{1 if deep else 4}i4o", out_layout="NCHW4c")
    assert list(run_infer_type(y).checked_type.shape) == [1, 2, 8, 8, 4] and y.op.name.endswith("NCHWc")


# Bindings.
@program
def bindings_used_once():
    x, a, b, c = var("x", 5), relay.Var("a"), relay.Var("b"), relay.Var("c")
    body = relay.Let(a, x + x, relay.Let(b, relay.negative(a), relay.Let(c, relay.exp(a), c)))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
    assert str(transform.DeadCodeElimination()(mod)).count("let") == 2
    same(transform.DeadCodeElimination(inline_once=True)(mod)["main"], typed([x], relay.exp(x + x)))


@program
def bindings_of_pure_functions():
    mod = tvm.parser.parse("""#[version = "0.0.5"]
        def @down(%n: int32) -> int32 { if (%n == 0) { %n } else { @down(%n - 1) } }
        def @main(%n: int32) -> int32 { let %a = @down(%n); %n }""")
    assert "let" not in str(transform.DeadCodeElimination()(transform.InferType()(mod))["main"])


@program(False, True)
def bindings_with_effects(ignore):
    mod = tvm.parser.parse("""#[version = "0.0.5"]
        def @main() { let %r = ref(1); let %v = ref_write(%r, 2); let %d = negative(3); ref_read(%r) }""")
    text = str(transform.DeadCodeElimination(inline_once=True, ignore_impurity=ignore)(transform.InferType()(mod)))
    assert "negative" not in text and ("ref_write" in text) != ignore


@program
def bindings_read_by_closures():
    x, a, f = var("x", 5), relay.Var("a"), relay.Var("f")
    y = relay.Var("y", relay.TensorType((5,)))
    body = relay.Let(a, relay.exp(x), relay.Let(f, relay.Function([y], y + a), relay.Tuple([f(x), f(x)])))
    out = transform.DeadCodeElimination(inline_once=True)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body))))
    assert "let %a" in str(out)


# Mixed precision.
def mixed(params, body, keep=False):
    with tvm.transform.PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": keep}):
        return transform.InferType()(transform.ToMixedPrecision("float16")(transform.InferType()(tvm.IRModule.from_expr(relay.Function(params, body)))))["main"]


def half(x):
    return relay.cast(x, "float16")


Z, V = var("z", 1, 20), var("v", 20, 20)


def precision():
    dense = relay.nn.dense(half(Z), half(V), units=20, out_dtype="float16")
    plain = relay.nn.dense(Z, V, units=20)
    yield "contraction", [Z, V], plain, dense, False
    yield "kept result", [Z, V], plain, relay.cast(dense, "float32"), True
    yield "softmax is never narrow", [Z], relay.nn.softmax(Z), relay.nn.softmax(Z), False
    i = var("i", 1, 1, dtype="int32")
    yield "parameters follow", [Z, i], relay.take(Z, i, axis=0), relay.take(half(Z), i, axis=0), False
    yield "constants follow", [Z, V], plain + relay.const(1.0), dense + half(relay.const(1.0)), False
    z, v = half(Z), half(V)
    narrow = relay.nn.dense(z, v, units=20, out_dtype="float16")
    yield "operands of where", [Z, V], relay.where(Z, plain, plain), relay.where(z, narrow, narrow), False
    yield "sums are never narrow", [Z, V], relay.sum(plain), relay.sum(relay.cast(dense, "float32")), False


@program(*precision())
def mixed_precision_of(_, params, before, after, keep):
    got, want = mixed(params, before, keep), typed(params, after)
    if "where" not in str(want):  # casts to bool stand in both, made at other places
        same(got, want)
    assert got.ret_type == want.ret_type


@program
def mixed_precision_of_bindings():
    a, b = var("a", 1, 20), var("b", 1, 20)
    body = relay.Let(a, relay.nn.dense(Z, V, units=20), relay.Let(b, relay.nn.dense(a + a, V, units=20), b + b))
    z, v, a, b = half(Z), half(V), var("a", 1, 20, dtype="float16"), var("b", 1, 20, dtype="float16")
    want = relay.Let(a, relay.nn.dense(z, v, units=20, out_dtype="float16"),
                     relay.Let(b, relay.nn.dense(a + a, v, units=20, out_dtype="float16"), b + b))
    same(mixed([Z, V], body), typed([Z, V], want))


@program
def mixed_precision_from_double():
    x, w = var("x", 1, 20, dtype="float64"), var("w", 20, 20, dtype="float64")
    same(mixed([x, w], relay.nn.dense(x, w), True), typed([x, w], relay.cast(relay.nn.dense(half(x), half(w), out_dtype="float16"), "float64")))


@program
def mixed_precision_rules():
    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", lambda call, kind: [2, "float32", kind]):
        same(mixed([Z, V], relay.nn.dense(Z, V)), typed([Z, V], relay.nn.dense(Z, V)))
    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", lambda call, kind: [0, "float32", kind]):
        same(mixed([Z, V], relay.nn.dense(Z, V)), typed([Z, V], half(relay.nn.dense(half(Z), half(V), out_dtype="float32"))))
    reg.register_mixed_precision_conversion("nn.softmax", lambda call, kind: [0, kind, kind], level=11)
    try:
        same(mixed([Z], relay.nn.softmax(Z)), typed([Z], relay.nn.softmax(half(Z))))
    finally:
        reg.get("nn.softmax").reset_attr("FTVMMixedPrecisionConversionType")
    with TempOpAttr("nn.softmax", "FTVMMixedPrecisionConversionType", lambda call, kind: [7, kind, kind]):
        raises(ValueError, mixed, [Z], relay.nn.softmax(Z))


# Fake quantisation.
def quantised(f):
    x = var("x", 1, 4, dtype="int8")
    body = relay.qnn.op.quantize(f(relay.qnn.op.dequantize(x, relay.const(2.0), relay.const(0))), relay.const(2.0), relay.const(0), out_dtype="int8")
    return transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))


@program
def fake_quantization_rules():
    mod = quantised(relay.op.sin)
    same(transform.FakeQuantizationToInteger()(mod), mod)
    raises(Exception, transform.FakeQuantizationToInteger(hard_fail=True), mod)

    @register_fake_quantization_to_integer("sin")
    def rule(expr, type_map):
        known = type_map[expr.args[0]]
        assert known.scale.data.numpy() == 2.0 and known.dtype == "int8"
        return [relay.abs(expr.args[0]), known]
    try:
        out = transform.FakeQuantizationToInteger()(mod)
        assert "sin" not in str(out) and "qnn" not in str(out)
        np.testing.assert_array_equal(evaluate(out["main"], np.array([[1, -2, 3, -4]], "int8")), [[1, 2, 3, 4]])
    finally:
        reg.get("sin").reset_attr("FTVMFakeQuantizationToInteger")


@program
def fake_quantization_identity():
    register_unary_identity("negative")
    try:
        assert "qnn" not in str(transform.FakeQuantizationToInteger()(quantised(relay.negative)))
    finally:
        reg.get("negative").reset_attr("FTVMFakeQuantizationToInteger")
    with TempOpAttr("sin", "FTVMFakeQuantizationToInteger", lambda expr, type_map: [expr.args[0], 3]):
        raises(TypeError, transform.FakeQuantizationToInteger(), quantised(relay.op.sin))


# Simplification.
def simpler():
    x = var("x", 2, 4, dtype="uint8")
    dq = relay.qnn.op.dequantize(x, relay.const(2.0), relay.const(3))
    for op in (relay.argmax, relay.argmin):
        yield op.__name__, [x], op(dq, axis=1), op(x, axis=1)
    yield "argsort", [x], relay.argsort(dq, axis=1), relay.argsort(x, axis=1)
    yield "clip", [x], relay.clip(x, 0.0, 255.0), x


@program(*simpler())
def simplified(_, params, before, after):
    same(run_opt_pass(relay.Function(params, before), transform.SimplifyExpr()), typed(params, after))
    data = numbers(2, 4, dtype="uint8")
    np.testing.assert_array_equal(evaluate(relay.Function(params, before), data), evaluate(relay.Function(params, after), data))


@program
def levels_and_requirements():
    for name, level in (("FoldConstant", 2), ("EliminateCommonSubexpr", 3), ("FoldScaleAxis", 3), ("CanonicalizeOps", 3), ("SimplifyExpr", 0)):
        assert getattr(transform, name)().info.opt_level == level
    x, w, b = var("x", 1, 6, 6, 4), var("w", 3, 3, 4, 8), var("b", 8)
    y = relay.nn.bias_add(relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO"), b, axis=3)
    mod = tvm.IRModule.from_expr(relay.Function([x, w, b], y))
    with tvm.transform.PassContext(opt_level=3):
        out = tvm.transform.Sequential([transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]})])(mod)
    assert "bias_add" not in str(out)  # CanonicalizeOps ran before


# Sizes that a run brings.
def dynamic():
    r = np.random.RandomState(3)
    image = r.rand(1, 4, 4, 4).astype("float32")
    yield "dilation2d", [free(None, None, None, None), free(4, 3, 3)], lambda x, k: relay.image.dilation2d(x, k), [image, numbers(4, 3, 3)]
    yield "stft", [free(None, None), free(4)], lambda x, w: relay.stft(x, 8, 3, 4, w, False, True), [numbers(2, 20), np.ones(4, "float32")]
    yield "yolo_reorg", [free(None, None, None, None)], lambda x: relay.vision.yolo_reorg(x, 2), [image]
    yield "affine_grid", [free(None, 2, 3)], lambda x: relay.image.affine_grid(x, (3, 4)), [numbers(2, 2, 3)]
    boxes, of = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]], "float32"), np.array([0, 0], "int32")
    yield "crop_and_resize", [free(None, None, None, None), free(None, 4), free(None, dtype="int32")], \
        lambda x, b, i: relay.image.crop_and_resize(x, b, i, (3, 3), layout="NHWC"), [image, boxes, of]
    yield "dilate", [free(None, None)], lambda x: relay.nn.dilate(x, [2, 2]), [numbers(2, 3)]
    yield "searchsorted", [free(None), free(None)], relay.searchsorted, [np.sort(numbers(10)), numbers(4)]
    yield "adv_index", [free(None, None), free(None, dtype="int64")], lambda x, i: relay.adv_index([x, i]), [numbers(4, 5), np.array([0, 2])]
    yield "sliding_window", [free(None, None)], lambda x: relay.sliding_window(x, 0, (2, 2), (1, 1)), [numbers(4, 5)]


@program(*dynamic())
def free_sizes(_, types, make, data):
    """By vm with free sizes as with exact ones."""
    params = [relay.var(f"p{i}", t) for i, t in enumerate(types)]
    body = make(*params)
    assert any(isinstance(d, tvm.tir.Any) for d in run_infer_type(body).checked_type.shape)
    exact = [relay.var(f"p{i}", shape=d.shape, dtype=str(d.dtype)) for i, d in enumerate(data)]
    want = evaluate(relay.Function(exact, make(*exact)), *data)
    np.testing.assert_allclose(evaluate(relay.Function(params, body), *data, kind="vm"), want, rtol=1e-5, atol=1e-6)


@program("squeeze", "expand_dims")
def axes_that_a_run_brings(name):
    x, data = var("x", 1, 3, 1), numbers(1, 3, 1)
    a = relay.var("a", shape=(1,) if name == "squeeze" else (), dtype="int64")
    body = relay.squeeze(x, axis=a) if name == "squeeze" else relay.expand_dims(x, a, num_newaxis=2)
    out = evaluate(relay.Function([x, a], body), data, np.array([0] if name == "squeeze" else 1), kind="vm")
    assert out.shape == ((3, 1) if name == "squeeze" else (1, 1, 1, 3, 1))


@program("uint8", "int8", "int32", "disable")
def dtype_that_a_run_brings(dtype):
    from tvm.topi.nn.qnn import SQNN_DTYPE_TO_CODE
    x, kind = var("x", 4, 6), relay.var("kind", shape=())
    q = relay.qnn.op.simulated_quantize(x, relay.const(0.5), relay.const(2), out_dtype=kind)
    data = numbers(4, 6, low=-5, high=5)
    got = evaluate(relay.Function([x, kind], relay.Tuple([q, relay.qnn.op.simulated_dequantize(q, relay.const(0.5), relay.const(2), in_dtype=kind)])), data,
                   np.float32(SQNN_DTYPE_TO_CODE[dtype]))
    if dtype == "disable":
        np.testing.assert_array_equal(got[1], data)
    else:
        np.testing.assert_array_equal(got[0], evaluate(relay.Function([x], relay.qnn.op.quantize(x, relay.const(0.5), relay.const(2), out_dtype=dtype)), data))


@program
def variables_in_json():
    n = tvm.tir.Var("n", "int32")
    back = tvm.ir.load_json(tvm.ir.save_json(tvm.runtime.convert([n, n])))
    assert back[0].name == "n" and back[0].dtype == "int32" and back[0] is back[1]
    raises(tvm.error.TVMError, tvm.ir.make_node, "attrs.TestAttrs")
    assert relay.const(0, relay.scalar_type("int64")).data.dtype == "int64"
    assert str(tvm.target.cuda()) == str(tvm.target.Target("cuda -model=unknown"))
