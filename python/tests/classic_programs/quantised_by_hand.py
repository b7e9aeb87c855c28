# SPDX-License-Identifier: Apache-2.0
"""Quantised operators: types, numbers, and what the passes about quantisation make of them."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.relay import transform, quantize as qtz
from tvm.relay.op import register_fake_quantization_to_integer
from tvm.relay.testing import run_infer_type

from harness import program, raises, numbers

I8, U8, F32, I32 = "int8", "uint8", "float32", "int32"


def c(value, dtype):
    return relay.const(value, dtype)


def run(function, *arrays):
    """By the graph executor, with the qnn operators lowered first, as a script would."""
    mod = transform.InferType()(tvm.IRModule.from_expr(function))
    mod = relay.qnn.transform.CanonicalizeOps()(mod)
    with tvm.transform.PassContext(opt_level=2):
        lib = relay.build(mod, "llvm")
    rt = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for k, a in enumerate(arrays):
        rt.set_input(k, a)
    rt.run()
    return rt.get_output(0).numpy()


# ---- operators
@program(("UPWARD", [-1, 0, 1, 1, 2, 2]), ("TONEAREST", [-1, 0, 1, 1, 2, 2]))
def requantize_downscale(rounding, _):
    x = relay.var("x", shape=(32,), dtype=I32)
    y = relay.qnn.op.requantize(x, input_scale=c(1.0, F32), input_zero_point=c(0, I32), output_scale=c(16.0, F32), output_zero_point=c(0, I32), rounding=rounding, out_dtype=I8)
    f = relay.Function([x], y)
    got = run(f, np.arange(0, 32, dtype=I32))
    np.testing.assert_array_equal(got, np.repeat([0, 1, 2], [8, 16, 8]))
    down = run(f, np.arange(0, -32, -1, dtype=I32))
    np.testing.assert_array_equal(down, np.repeat([0, -1, -2], [9, 16, 7] if rounding == "UPWARD" else [8, 16, 8]))


@program
def requantize_text_and_lowering():
    x = relay.var("x", shape=(4,), dtype=I32)
    y = relay.qnn.op.requantize(x, c(0.5, F32), c(0, I32), c(0.25, F32), c(2, I32), out_dtype=U8)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    assert "requantize" in mod.astext()
    mod = relay.qnn.transform.CanonicalizeOps()(transform.InferType()(mod))
    assert "qnn.requantize" not in mod.astext()
    raises(tvm.TVMError, lambda: transform.InferType()(tvm.IRModule.from_expr(relay.qnn.op.requantize(relay.var("f", shape=(3,), dtype="float64"), c(0.5, F32), c(0, I32), c(0.25, F32), c(2, I32)))))


@program
def requantize_by_channel():
    x = relay.var("x", shape=(2, 3), dtype=I32)
    y = relay.qnn.op.requantize(x, c(np.array([0.5, 1.0, 2.0], F32), F32), c(0, I32), c(1.0, F32), c(0, I32), axis=1, out_dtype=I8)
    np.testing.assert_array_equal(run(relay.Function([x], y), np.array([[10, 10, 10], [-20, 7, 100]], I32)), [[5, 10, 20], [-10, 7, 127]])


@program
def quantize_and_dequantize_numbers():
    x = relay.var("x", shape=(10,), dtype=F32)
    data = np.array([-63.5, -63, -62.5, -62, -61.5, 62, 62.5, 63, 63.5, 64], F32)
    q = relay.qnn.op.quantize(x, c(0.5, F32), c(-1, I32), out_dtype=I8)
    assert run_infer_type(q).checked_type == relay.TensorType((10,), I8)
    np.testing.assert_array_equal(run(relay.Function([x], q), data), [-128, -127, -126, -125, -124, 123, 124, 125, 126, 127])
    y = relay.var("y", shape=(10,), dtype=U8)
    d = relay.qnn.op.dequantize(y, c(0.5, F32), c(127, I32))
    np.testing.assert_allclose(run(relay.Function([y], d), np.array([0, 1, 2, 3, 4, 251, 252, 253, 254, 255], U8)), [-63.5, -63, -62.5, -62, -61.5, 62, 62.5, 63, 63.5, 64])


@program
def quantize_channels_and_dynamic_scale():
    x = relay.var("x", shape=(2, 3))
    q = relay.qnn.op.quantize(x, c(np.array([0.5, 0.25], F32), F32), c(np.array([0, 3], I32), I32), axis=0, out_dtype=U8)
    np.testing.assert_array_equal(run(relay.Function([x], q), np.array([[0, 1, 2], [1, -1, 5]], F32)), [[0, 2, 4], [7, 0, 23]])
    s, z = relay.var("s", relay.TensorType((), F32)), relay.var("z", relay.TensorType((), I32))
    f = relay.Function([x, s, z], relay.qnn.op.quantize(x, s * c(2.0, F32), z + c(1, I32), out_dtype=U8))
    np.testing.assert_array_equal(run(f, np.array([[0, 1, 2], [3, 4, 5]], F32), np.array(0.25, F32), np.array(4, I32)), np.array([[5, 7, 9], [11, 13, 15]]))


@program
def simulated_quantize_follows_dtype_code():
    from tvm.relay.qnn.op.qnn import SQNN_DTYPE_TO_CODE
    assert SQNN_DTYPE_TO_CODE == {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
    x = relay.var("x", shape=(5,))
    t, s, z = relay.var("t", shape=(), dtype=I32), relay.var("s", shape=()), relay.var("z", shape=(), dtype=I32)
    f = relay.Function([x, t, s, z], relay.qnn.op.simulated_quantize(x, s, z, axis=-1, out_dtype=t))
    data = np.array([-200.2, -1.1, 0.4, 1.6, 300], F32)
    for name, want in (("uint8", [0, 0, 0, 2, 255]), ("int8", [-128, -1, 0, 2, 127])):
        got = relay.create_executor("vm", device=tvm.cpu(), target="llvm").evaluate(f)(data, np.array(SQNN_DTYPE_TO_CODE[name], I32), np.array(1.0, F32), np.array(0, I32)).numpy()
        np.testing.assert_allclose(got, want)


@program
def qnn_add_same_and_different_scale():
    x, y = relay.var("x", shape=(1, 4), dtype=U8), relay.var("y", shape=(1, 4), dtype=U8)
    p = dict(lhs_scale=c(0.00784314, F32), lhs_zero_point=c(127, I32), rhs_scale=c(0.00784314, F32), rhs_zero_point=c(127, I32), output_scale=c(0.00784314, F32), output_zero_point=c(127, I32))
    z = relay.qnn.op.add(lhs=x, rhs=y, **p)
    for a, b, want in (([140, 153, 165, 178], [25, 153, 178, 165], [38, 179, 216, 216]), ([25, 102, 153, 178], [204, 178, 191, 25], [102, 153, 217, 76])):
        np.testing.assert_array_equal(run(relay.Function([x, y], z), np.array([a], U8), np.array([b], U8)), [want])
    assert "qnn.add" in tvm.IRModule.from_expr(relay.Function([x, y], z)).astext()


@program
def qnn_multiply_and_subtract():
    x, y = relay.var("x", shape=(1, 4), dtype=U8), relay.var("y", shape=(1, 4), dtype=U8)
    for op, meaning in ((relay.qnn.op.mul, np.multiply), (relay.qnn.op.subtract, np.subtract)):
        z = op(x, y, lhs_scale=c(0.5, F32), lhs_zero_point=c(10, I32), rhs_scale=c(0.5, F32), rhs_zero_point=c(20, I32), output_scale=c(1.0, F32), output_zero_point=c(50, I32))
        a, b = np.array([[10, 20, 30, 40]], U8), np.array([[20, 24, 28, 36]], U8)
        want = np.clip(np.round(meaning((a - 10.0) * 0.5, (b - 20.0) * 0.5) + 50), 0, 255)
        np.testing.assert_array_equal(run(relay.Function([x, y], z), a, b), want)


@program
def qnn_dense_with_bias_and_requantized():
    d, k = relay.var("d", shape=(1, 3), dtype=I8), relay.var("k", shape=(2, 3), dtype=I8)
    z = relay.qnn.op.dense(d, k, c(3, I32), c(-2, I32), c(0.5, F32), c(0.25, F32), units=2, out_dtype=I32)
    assert run_infer_type(z).checked_type == relay.TensorType((1, 2), I32)
    b = relay.var("b", shape=(2,), dtype=I32)
    full = relay.qnn.op.requantize(relay.nn.bias_add(z, b), c(0.125, F32), c(0, I32), c(1.0, F32), c(1, I32), out_dtype=I8)
    a, w, v = np.array([[1, -4, 7]], I8), np.array([[1, 2, 3], [-3, 0, 4]], I8), np.array([8, -16], I32)
    acc = (a.astype(I32) - 3) @ (w.astype(I32) + 2).T + v
    np.testing.assert_array_equal(run(relay.Function([d, k, b], full), a, w, v), np.floor(acc * 0.125 + 0.5) + 1)


@program
def qnn_batch_matmul_of_two_variables():
    x, y = relay.var("x", shape=(1, 2, 3), dtype=I8), relay.var("y", shape=(1, 4, 3), dtype=I8)
    z = relay.qnn.op.batch_matmul(x, y, x_zero_point=c(1, I32), y_zero_point=c(-1, I32), x_scale=c(1.0, F32), y_scale=c(1.0, F32), out_dtype=I32)
    a, b = numbers(1, 2, 3, dtype=I8), numbers(1, 4, 3, dtype=I8)
    np.testing.assert_array_equal(run(relay.Function([x, y], z), a, b), (a.astype(I32) - 1) @ (b.astype(I32) + 1).transpose(0, 2, 1))


@program
def qnn_conv2d_layouts_and_depthwise():
    a, w = numbers(1, 2, 4, 5, dtype=I8), numbers(3, 2, 2, 2, dtype=I8)
    x, k = relay.var("x", shape=a.shape, dtype=I8), relay.var("k", shape=w.shape, dtype=I8)
    f = relay.qnn.op.conv2d(x, k, c(5, I32), c(3, I32), c(1.0, F32), c(1.0, F32), kernel_size=(2, 2), channels=3, padding=(1, 0), out_dtype=I32)
    pad = np.pad(a.astype(I32) - 5, ((0, 0), (0, 0), (1, 1), (0, 0)))
    want = tvm.topi.testing.conv2d_nchw_python(pad, w.astype(I32) - 3, 1, 0)
    np.testing.assert_array_equal(run(relay.Function([x, k], f), a, w), want)
    x, k = relay.var("x", shape=(1, 4, 4, 2), dtype=U8), relay.var("k", shape=(2, 2, 2, 1), dtype=U8)
    g = relay.qnn.op.conv2d(x, k, c(0, I32), c(0, I32), c(1.0, F32), c(1.0, F32), kernel_size=(2, 2), channels=2, groups=2, data_layout="NHWC", kernel_layout="HWOI", out_dtype=I32)
    assert run_infer_type(g).checked_type == relay.TensorType((1, 3, 3, 2), I32)
    assert run(relay.Function([x, k], g), np.ones((1, 4, 4, 2), U8), np.full((2, 2, 2, 1), 3, U8)).max() == 12


@program
def qnn_concatenate_scales():
    x, y = relay.var("x", shape=(1, 4), dtype=I32), relay.var("y", shape=(1, 4), dtype=I32)
    z = relay.qnn.op.concatenate((x, y), input_scales=(c(62 / 256.0, F32), c(31 / 256.0, F32)), input_zero_points=(c(0, I32), c(-14, I32)), output_scale=c(62 / 256.0, F32), output_zero_point=c(0, I32), axis=0)
    a, b = np.arange(0, 32, 8, dtype=I32).reshape(1, 4), np.arange(0, 32, 8, dtype=I32).reshape(1, 4)
    np.testing.assert_array_equal(run(relay.Function([x, y], z), a, b), np.concatenate((a, np.floor((b + 14) / 2 + 0.5).astype(I32)), 0))


@program
def qnn_unary_tables():
    for name, fn in (("tanh", np.tanh), ("sigmoid", lambda v: 1 / (1 + np.exp(-v))), ("exp", np.exp), ("sqrt", lambda v: np.sqrt(np.maximum(v, 0)))):
        x = relay.var("x", shape=(6,), dtype=U8)
        z = getattr(relay.qnn.op, name)(x, scale=c(0.0625, F32), zero_point=c(0, I32), output_scale=c(0.03125, F32), output_zero_point=c(3, I32))
        assert run_infer_type(z).checked_type == relay.TensorType((6,), U8)
        a = np.array([0, 1, 5, 16, 30, 50], U8)
        want = np.clip(np.round(fn(a * 0.0625) / 0.03125) + 3, 0, 255)
        assert np.abs(run(relay.Function([x], z), a).astype(int) - want).max() <= 1


@program
def qnn_leaky_relu_numbers():
    x = relay.var("x", shape=(1, 4), dtype=U8)
    z = relay.qnn.op.leaky_relu(x, 0.9, c(0.125, F32), c(60, I32), c(0.125, F32), c(17, I32))
    a = np.array([[255, 133, 0, 9]], U8)
    v = (a.astype(F32) - 60) * 0.125
    want = np.clip(np.round(np.where(v < 0, v * 0.9, v) / 0.125) + 17, 0, 255)
    assert np.abs(run(relay.Function([x], z), a).astype(int) - want).max() <= 1


# ---- from fake to integers
def compare_fq_to_int(expr, args, allow_rounding_error=False):
    mod = transform.InferType()(tvm.IRModule.from_expr(expr))
    mod_int = transform.FakeQuantizationToInteger()(mod)
    assert not tvm.ir.structural_equal(mod, mod_int)
    results = [relay.create_executor("vm", mod=m, device=tvm.cpu(), target="llvm").evaluate()(*args).numpy() for m in (mod, mod_int)]
    if allow_rounding_error:
        assert np.all(np.abs(results[0].astype(I32) - results[1].astype(I32)) <= 1)
    else:
        np.testing.assert_array_equal(*results)
    return mod_int


def dq(x, scale=2.0, zero=0):
    return relay.qnn.op.dequantize(x, c(scale, F32), c(zero, I32))


def q(x, scale=1.0, zero=0, out_dtype=I8):
    return relay.qnn.op.quantize(x, c(scale, F32), c(zero, I32), out_dtype=out_dtype)


@program
def fake_conv2d_by_channel():
    x, w, one = relay.var("x", shape=(1, 3, 6, 6), dtype=I8), relay.var("w", shape=(4, 3, 3, 3), dtype=I8), c([0] * 4, I32)
    op = relay.nn.conv2d(dq(x), relay.qnn.op.dequantize(w, c([0.5, 1.0, 2.0, 0.25], F32), one, axis=0), kernel_size=[3, 3])
    out = compare_fq_to_int(q(op, 8.0), [numbers(1, 3, 6, 6, dtype=I8), numbers(4, 3, 3, 3, dtype=I8)], True)
    assert "qnn.conv2d" in out.astext() and "qnn.dequantize" not in out.astext()


@program
def fake_transposed_and_dense():
    x, w = relay.var("x", shape=(1, 3, 6, 6), dtype=I8), relay.var("w", shape=(3, 4, 3, 3), dtype=I8)
    op = relay.op.nn.conv2d_transpose(dq(x), dq(w, 0.5), kernel_size=[3, 3])
    assert "qnn.conv2d_transpose" in compare_fq_to_int(q(op), [numbers(1, 3, 6, 6, dtype=I8), numbers(3, 4, 3, 3, dtype=I8)]).astext()
    x, w = relay.var("x", shape=(8, 5), dtype=I8), relay.var("w", shape=(4, 5), dtype=I8)
    assert "qnn.dense" in compare_fq_to_int(q(relay.op.nn.dense(dq(x), dq(w, 0.5))), [numbers(8, 5, dtype=I8), numbers(4, 5, dtype=I8)]).astext()


@program
def fake_pools_and_mean():
    x = relay.var("x", shape=(1, 3, 8, 8), dtype=I8)
    a = [numbers(1, 3, 8, 8, dtype=I8)]
    compare_fq_to_int(q(relay.op.nn.max_pool2d(dq(x), [3, 3]), 2.0), a)
    compare_fq_to_int(q(relay.op.nn.avg_pool2d(dq(x), [3, 3]), 2.0), a, True)
    compare_fq_to_int(q(relay.op.nn.global_avg_pool2d(dq(x)), 2.0), a, True)
    compare_fq_to_int(q(relay.op.mean(dq(x)), 2.0), a, True)


@program(("rsqrt",), ("exp",), ("sigmoid",), ("tanh",), ("erf",), ("sqrt",), ("log",))
def fake_unary(name):
    x = relay.var("x", shape=(1, 3, 4, 4), dtype=I8)
    v = dq(x, 0.25)
    out = getattr(relay, name)(v)
    data = np.random.RandomState(2).randint(1, 20, (1, 3, 4, 4)).astype(I8)
    compare_fq_to_int(q(out, 0.125), [data], True)


@program
def fake_moves_and_selection():
    x = relay.var("x", shape=(1, 3, 4, 5), dtype=I8)
    a = [numbers(1, 3, 4, 5, dtype=I8)]
    for op in (lambda v: relay.transpose(v, [0, 2, 3, 1]), lambda v: relay.expand_dims(v, axis=1), lambda v: relay.squeeze(v, axis=[0]), lambda v: relay.reshape(v, [3, -1]), lambda v: relay.strided_slice(v, begin=[0, 0, 0, 0], end=[1, 2, 3, 4]), lambda v: relay.nn.batch_flatten(v), lambda v: relay.broadcast_to(v, (2, 3, 4, 5)), lambda v: relay.take(v, c([1, 0], I32), axis=1)):
        out = compare_fq_to_int(q(op(dq(x)), 2.0), a)
        assert "dequantize" not in out.astext()
    text = compare_fq_to_int(q(relay.concatenate([dq(x), dq(x, 0.5)], axis=0), 1.0), a, True).astext()
    assert "qnn.concatenate" in text


@program
def fake_clip_relu_and_maximum():
    x = relay.var("x", shape=(1, 3, 4, 5), dtype=U8)
    a = [numbers(1, 3, 4, 5, dtype=U8)]
    compare_fq_to_int(q(relay.nn.relu(dq(x, 2.0, 4)), 2.0, 0, U8), a)
    compare_fq_to_int(q(relay.clip(dq(x, 2.0, 4), 0, 4), 2.0, 4, U8), a)
    compare_fq_to_int(q(relay.maximum(dq(x, 2.0, 4), c(3.0, F32)), 1.0, 0, U8), a, True)
    compare_fq_to_int(q(relay.nn.leaky_relu(dq(x, 2.0, 4), alpha=0.5), 2.0, 4, U8), a, True)
    compare_fq_to_int(q(relay.nn.pad(dq(x, 2.0, 4), [[0, 0], [0, 0], [1, 1], [2, 2]], 0.0), 2.0, 4, U8), a)


@program
def fake_hard_fail_and_unknown_operators():
    @register_fake_quantization_to_integer("nn.softmax", level=11)
    def nothing(expr, type_map):
        return [relay.nn.softmax(expr.args[0]), type_map[expr.args[0]]]
    relay.op.get("nn.softmax").reset_attr("FTVMFakeQuantizationToInteger")
    x = relay.var("x", shape=(1, 3), dtype=I8)
    op = q(relay.op.nn.softmax(dq(x)), 1.0)
    mod = transform.InferType()(tvm.IRModule.from_expr(op))
    raises(Exception, lambda: transform.FakeQuantizationToInteger(hard_fail=True)(mod))
    assert tvm.ir.structural_equal(mod, transform.FakeQuantizationToInteger(hard_fail=False)(mod)) and nothing is not None


@program
def fake_affine_type_of_an_expression():
    from tvm.ir import TensorAffineType, TupleAffineType
    t = TensorAffineType(c(2.0, F32), c(0, I32), "int8", 1)
    assert t.dtype == "int8" and t.axis == 1 and float(t.scale.data.numpy()) == 2.0
    assert len(TupleAffineType([t, t]).types) == 2


@program
def fake_with_qat():
    x = relay.var("x", shape=(1, 3, 4, 4), dtype=F32)
    op = relay.qnn.op.dequantize(relay.qnn.op.quantize(x, c(2.0, F32), c(0, I32)), c(2.0, F32), c(0, I32))
    op = relay.op.nn.avg_pool2d(op, [3, 3])
    op = relay.qnn.op.dequantize(relay.qnn.op.quantize(op, c(2.0, F32), c(0, I32)), c(2.0, F32), c(0, I32))
    mod = transform.InferType()(tvm.IRModule.from_expr(op))
    out = transform.FakeQuantizationToInteger(hard_fail=False, use_qat=True)(mod)
    assert not tvm.ir.structural_equal(mod, out)


# ---- by itself
def tiny(first=3):
    data, w = relay.var("data", shape=(1, first, 8, 8)), relay.var("weight", shape=(4, first, 3, 3))
    out = relay.nn.relu(relay.nn.conv2d(data, w, kernel_size=(3, 3), padding=(1, 1), channels=4))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([data, w], out)))
    return mod, {"weight": tvm.nd.array(numbers(4, first, 3, 3))}


@program
def auto_quantize_a_convolution():
    mod, params = tiny(16)
    with qtz.qconfig(calibrate_mode="global_scale", global_scale=8.0, skip_conv_layers=None):
        done = qtz.quantize(mod, params)
    text = done.astext()
    assert "int8" in text and "nn.conv2d" in text and 'out_dtype="int32"' in text


@program
def qconfig_nests_and_restores():
    assert qtz.current_qconfig().global_scale == 8.0 and qtz.current_qconfig().nbit_input == 8
    with qtz.qconfig(nbit_input=4, global_scale=2.0):
        assert qtz.current_qconfig().nbit_input == 4
        with qtz.qconfig(global_scale=3.0):
            assert qtz.current_qconfig().global_scale == 3.0 and qtz.current_qconfig().nbit_input == 8
    assert qtz.current_qconfig().nbit_input == 8 and "qconfig(" in str(qtz.current_qconfig())


@program
def first_layers_may_be_skipped():
    mod, params = tiny()
    with qtz.qconfig(skip_conv_layers=[0]):
        assert "int8" not in qtz.quantize(mod, params).astext()


@program
def multiplication_by_rank_zero_constants():
    data = relay.var("data", shape=(1, 16, 64, 64))
    mul = relay.multiply(relay.nn.conv2d(data, c(numbers(16, 16, 3, 3), F32), kernel_size=(3, 3), padding=(1, 1), channels=16), c(0.5, F32))
    mod = tvm.IRModule.from_expr(relay.Function([data], relay.nn.max_pool2d(mul, (2, 2), (2, 2))))
    with qtz.qconfig(skip_conv_layers=[]):
        assert "int8" in qtz.quantize(mod).astext()


@program
def batch_flatten_stays_in_integers():
    data = relay.var("data", shape=(1, 16, 4, 4))
    conv = relay.nn.conv2d(data, c(numbers(16, 16, 3, 3), F32), kernel_size=(3, 3), padding=(1, 1), channels=16)
    mod = tvm.IRModule.from_expr(relay.Function([data], relay.nn.dense(relay.nn.batch_flatten(relay.nn.max_pool2d(relay.nn.relu(conv), (2, 2), (2, 2))), c(numbers(10, 64), F32), units=10)))
    with qtz.qconfig(calibrate_mode="global_scale", global_scale=8.0, skip_conv_layers=None, skip_dense_layer=False):
        done = qtz.quantize(mod)
    node = done["main"].body

    found = []
    relay.analysis.post_order_visit(node, lambda e: found.append(e) if isinstance(e, relay.Call) and e.op.name == "nn.batch_flatten" else None)
    assert found and found[0].checked_type.dtype == "int8"


@program
def calibration_by_a_data_set():
    mod, params = tiny(16)
    dataset = [{"data": tvm.nd.array(numbers(1, 16, 8, 8, seed=s))} for s in range(2)]
    for weight in ("power2", "max"):
        with qtz.qconfig(calibrate_mode="kl_divergence", weight_scale=weight, skip_conv_layers=None, calibrate_chunk_by=1):
            assert "int8" in qtz.quantize(mod, params, dataset=dataset).astext()
