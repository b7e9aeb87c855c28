# SPDX-License-Identifier: Apache-2.0
"""Quantised layers in every layout, their legal forms by processor, and quantisation by annotation."""
import numpy as np
import tvm
import tvm.topi.testing
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import transform

from harness import program, numbers

I32, I8, U8 = "int32", "int8", "uint8"


def c(v, t=I32):
    return relay.const(v, t)


def lowered(f):
    return relay.qnn.transform.CanonicalizeOps()(transform.InferType()(tvm.IRModule.from_expr(f)))


def run(f, inputs):
    with tvm.transform.PassContext(opt_level=2):
        graph, lib, params = relay.build(lowered(f), "llvm", params=None)
    mod = graph_executor.create(graph, lib, device=tvm.cpu(0))
    for k, v in inputs.items():
        mod.set_input(k, v)
    mod.set_input(**params)
    mod.run()
    return mod.get_output(0).numpy()


def qnn_conv(data, kernel, zd, zk, **attrs):
    return relay.qnn.op.conv2d(data, kernel, input_zero_point=c(zd), kernel_zero_point=c(zk), input_scale=c(1.0, "float32"), kernel_scale=c(1.0, "float32"), out_dtype=I32, **attrs)


@program((0, 0), (5, 0), (0, 3), (5, 3))
def zero_points_one_by_one(zd, zk):
    d, k = relay.var("data", shape=(2, 4, 2, 4), dtype=U8), relay.var("kernel", shape=(3, 4, 2, 2), dtype=U8)
    f = relay.Function([d, k], qnn_conv(d, k, zd, zk, kernel_size=(2, 2), channels=3, strides=(1, 1), dilation=(1, 1)))
    a, b = np.random.RandomState(1).randint(0, 255, (2, 4, 2, 4)).astype(U8), np.random.RandomState(2).randint(0, 255, (3, 4, 2, 2)).astype(U8)
    want = tvm.topi.testing.conv2d_nchw_python(a.astype("int64") - zd, b.astype("int64") - zk, 1, 0)
    np.testing.assert_array_equal(run(f, {"data": a, "kernel": b}), want)
    assert "qnn.conv2d" not in lowered(f).astext()


@program(((1, 1, 1, 1), (1, 1), (1, 1)), ((0, 0), (2, 2), (1, 1)), ((1, 2), (1, 1), (2, 2)))
def padding_strides_and_dilation(padding, strides, dilation):
    d, k = relay.var("data", shape=(1, 3, 6, 7), dtype=U8), relay.var("kernel", shape=(4, 3, 2, 2), dtype=I8)
    f = relay.Function([d, k], qnn_conv(d, k, 8, 1, kernel_size=(2, 2), channels=4, padding=padding, strides=strides, dilation=dilation))
    a, b = np.random.RandomState(1).randint(0, 255, (1, 3, 6, 7)).astype(U8), np.random.RandomState(2).randint(-128, 127, (4, 3, 2, 2)).astype(I8)
    plain = relay.nn.conv2d(relay.cast(d, I32) - c(8), relay.cast(k, I32) - c(1), kernel_size=(2, 2), channels=4, padding=padding, strides=strides, dilation=dilation, out_dtype=I32)
    np.testing.assert_array_equal(run(f, {"data": a, "kernel": b}), run(relay.Function([d, k], plain), {"data": a, "kernel": b}))


@program
def kernel_as_a_constant_and_per_channel_kernels():
    d = relay.var("data", shape=(1, 2, 4, 4), dtype=U8)
    kernel = np.random.RandomState(2).randint(0, 9, (3, 2, 2, 2)).astype(U8)
    y = relay.qnn.op.conv2d(d, relay.const(kernel), c(1), c(np.array([0, 0, 0])), c(1.0, "float32"), c(np.array([1.0, 0.5, 2.0]), "float32"), kernel_size=(2, 2), channels=3)
    q = relay.qnn.op.requantize(y, c(np.array([1.0, 0.5, 2.0]), "float32"), c(0), c(1.0, "float32"), c(0), axis=1, out_dtype=I32)
    a = np.random.RandomState(1).randint(0, 9, (1, 2, 4, 4)).astype(U8)
    acc = tvm.topi.testing.conv2d_nchw_python(a.astype("int64") - 1, kernel.astype("int64"), 1, 0)
    np.testing.assert_array_equal(run(relay.Function([d], q), {"data": a}), np.floor(acc * np.array([1.0, 0.5, 2.0]).reshape(1, 3, 1, 1) + 0.5))


@program
def depthwise_with_a_multiplier():
    for multiplier in (1, 2):
        d, k = relay.var("data", shape=(2, 4, 4, 4), dtype=U8), relay.var("kernel", shape=(4, multiplier, 3, 3), dtype=U8)
        f = relay.Function([d, k], qnn_conv(d, k, 5, 7, kernel_size=(3, 3), channels=4 * multiplier, groups=4))
        a, b = np.random.RandomState(1).randint(0, 255, (2, 4, 4, 4)).astype(U8), np.random.RandomState(2).randint(0, 255, (4, multiplier, 3, 3)).astype(U8)
        want = tvm.topi.testing.depthwise_conv2d_python_nchw((a.astype("int64") - 5), (b.astype("int64") - 7), 1, "VALID")
        np.testing.assert_array_equal(run(f, {"data": a, "kernel": b}), want)


@program
def transposed_quantised_convolution():
    d, k = relay.var("data", shape=(1, 2, 3, 4), dtype=I8), relay.var("kernel", shape=(2, 3, 2, 2), dtype=I8)
    y = relay.qnn.op.conv2d_transpose(d, k, c(3), c(-1), c(1.0, "float32"), c(1.0, "float32"), kernel_size=(2, 2), channels=3, strides=(2, 2), out_dtype=I32)
    a, b = numbers(1, 2, 3, 4, dtype=I8), numbers(2, 3, 2, 2, dtype=I8)
    want = tvm.topi.testing.conv2d_transpose_nchw_python(a.astype(I32) - 3, b.astype(I32) + 1, 2, 0, (0, 0))
    np.testing.assert_array_equal(run(relay.Function([d, k], y), {"data": a, "kernel": b}), want)


@program
def dense_of_channels_and_bias():
    d, k, b = relay.var("data", shape=(2, 10), dtype=U8), relay.var("kernel", shape=(3, 10), dtype=U8), relay.var("bias", shape=(3,), dtype=I32)
    y = relay.qnn.op.dense(d, k, c(127), c(127), c(0.5, "float32"), c(0.5, "float32"), units=3)
    z = relay.qnn.op.requantize(relay.nn.bias_add(y, b), c(0.25, "float32"), c(0), c(1.0, "float32"), c(127), out_dtype=U8)
    a, w, v = np.random.RandomState(1).randint(100, 150, (2, 10)).astype(U8), np.random.RandomState(2).randint(100, 150, (3, 10)).astype(U8), np.array([4, 8, 12], I32)
    acc = (a.astype(I32) - 127) @ (w.astype(I32) - 127).T + v
    np.testing.assert_array_equal(run(relay.Function([d, k, b], z), {"data": a, "kernel": w, "bias": v}), np.clip(np.floor(acc * 0.25 + 0.5) + 127, 0, 255))


@program(("llvm -mcpu=skylake-avx512", U8, I8), ("llvm -mcpu=cascadelake", U8, I8), ("llvm -mcpu=haswell", U8, I8))
def legal_forms_by_processor(target, data_dtype, kernel_dtype):
    d, k = relay.var("data", shape=(1, 64, 8, 8), dtype="int8"), relay.var("kernel", shape=(32, 64, 3, 3), dtype="int8")
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([d, k], qnn_conv(d, k, 1, 1, kernel_size=(3, 3), channels=32))))
    with tvm.target.Target(target):
        out = relay.qnn.transform.Legalize()(mod)
    text = out.astext()
    assert ("uint8" in text or "qnn.requantize" in text) or "haswell" in target


@program
def rounding_and_arithmetic_configs():
    config = relay.qnn.op.requantize_config
    with config(rounding="TONEAREST", compute_dtype="int64"):
        x = relay.var("x", shape=(3,), dtype=I32)
        y = relay.qnn.op.requantize(x, c(1.0, "float32"), c(0), c(2.0, "float32"), c(0), out_dtype=I8)
        np.testing.assert_array_equal(run(relay.Function([x], y), {"x": np.array([1, -1, 3], I32)}), [1, -1, 2])


@program
def one_operand_is_broadcast():
    x, y = relay.var("x", shape=(2, 3), dtype=U8), relay.var("y", shape=(3,), dtype=U8)
    one = c(1.0, "float32")
    z = relay.qnn.op.mul(x, y, one, c(2), one, c(1), one, c(0))
    a, b = np.array([[2, 5, 9], [10, 3, 4]], U8), np.array([1, 3, 9], U8)
    np.testing.assert_array_equal(run(relay.Function([x, y], z), {"x": a, "y": b}), np.clip((a.astype(I32) - 2) * (b.astype(I32) - 1), 0, 255))


@program
def fake_quantization_in_the_middle_of_a_graph():
    x = relay.var("x", shape=(1, 4, 4, 4))
    w = relay.const(numbers(4, 4, 1, 1, dtype=I8))
    q = relay.qnn.op.quantize(relay.exp(x), c(0.25, "float32"), c(0), out_dtype=I8)
    y = relay.nn.conv2d(relay.qnn.op.dequantize(q, c(0.25, "float32"), c(0)), relay.qnn.op.dequantize(w, c(0.5, "float32"), c(0)), kernel_size=(1, 1), channels=4)
    y = relay.nn.relu(relay.nn.bias_add(y, relay.qnn.op.dequantize(relay.const(np.array([1, 2, 3, 4], I32)), c(0.125, "float32"), c(0))))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.sqrt(relay.qnn.op.dequantize(relay.qnn.op.quantize(y, c(0.5, "float32"), c(0), out_dtype=U8), c(0.5, "float32"), c(0))))))
    out = transform.FakeQuantizationToInteger()(mod)
    text = out.astext()
    assert "qnn.conv2d" in text and "qnn.requantize" in text and "exp(" in text and "sqrt(" in text and text.count("qnn.quantize") == 1
    results = [relay.create_executor("vm", mod=m, device=tvm.cpu(), target="llvm").evaluate()(numbers(1, 4, 4, 4)).numpy() for m in (mod, out)]
    np.testing.assert_allclose(*results, atol=0.75)
