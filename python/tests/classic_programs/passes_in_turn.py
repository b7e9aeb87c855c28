# SPDX-License-Identifier: Apache-2.0
"""FakeQuantizationToInteger for every operator that it converts."""
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir
from tvm.relay import transform
from tvm.relay.testing import run_infer_type
from tvm.relay.testing import run_opt_pass as _run_opt_pass


def run_opt_pass(e, p):
    with tvm.transform.PassContext(opt_level=3):
        return _run_opt_pass(e, tvm.transform.Sequential(p) if isinstance(p, list) else p)

from tvm.relay.build_module import bind_params_by_name
from tvm.relay.dataflow_pattern import *

c8 = lambda v: relay.const(v, "int8")


def q(x, s=2.0, z=0, dt="int8", axis=-1):
    return relay.qnn.op.quantize(x, relay.const(s), relay.const(z), out_dtype=dt, axis=axis)


def dq(x, s=2.0, z=0):
    return relay.qnn.op.dequantize(x, relay.const(s), relay.const(z))


def fq(expr, arrays, allow=0, **options):
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(expr), expr)))
    got = transform.FakeQuantizationToInteger(**options)(mod)
    assert not tvm.ir.structural_equal(got, mod), "not converted"
    assert "dequantize" not in got.astext(False), got.astext(False)
    a = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*arrays).numpy()
    b = relay.create_executor("vm", mod=got, device=tvm.cpu(), target="llvm").evaluate()(*arrays).numpy()
    d = np.abs(a.astype("int32") - b.astype("int32"))
    assert d.max() <= allow, d.max()


i8 = lambda *s: np.random.RandomState(3).randint(-128, 127, s).astype("int8")
X = lambda *s: relay.var("x", shape=s, dtype="int8")

UNARY = {"avg_pool2d": lambda x: relay.nn.avg_pool2d(x, (2, 2)), "global_avg": lambda x: relay.nn.global_avg_pool2d(x), "max_pool": lambda x: relay.nn.max_pool2d(x, (2, 2)), "relu": relay.nn.relu, "leaky": lambda x: relay.nn.leaky_relu(x, 0.1), "reshape": lambda x: relay.reshape(x, (1, -1)), "expand": lambda x: relay.expand_dims(x, 1), "squeeze": lambda x: relay.squeeze(x, [0]), "transpose": lambda x: relay.transpose(x, (1, 0, 2, 3)), "flatten": relay.nn.batch_flatten, "strided_slice": lambda x: relay.strided_slice(x, [0, 0, 0, 0], [1, 2, 2, 2]), "clip": lambda x: relay.clip(x, 0, 6), "clip_neg": lambda x: relay.clip(x, -6, 6), "pad": lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), 0.0), "pad_value": lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), 3.0), "depth_to_space": lambda x: relay.nn.depth_to_space(x, 2), "mean": lambda x: relay.mean(x, (2, 3)), "max": lambda x: relay.max(x, (2,)), "min": lambda x: relay.min(x, (2,)), "abs": relay.abs, "rsqrt_": relay.exp, "sigmoid": relay.sigmoid, "tanh": relay.tanh, "erf": relay.erf, "resize": lambda x: relay.image.resize2d(x, (8, 8), method="linear"), "resize_nearest": lambda x: relay.image.resize2d(x, (8, 8), method="nearest_neighbor"), "topk": lambda x: relay.topk(x, 2, axis=1, ret_type="values"), "split": lambda x: relay.split(x, 2, axis=1)[0], "take": lambda x: relay.take(x, relay.const([0, 1]), axis=1), "image_norm": lambda x: relay.broadcast_to(x, (2, 4, 4, 4)), "add_const": lambda x: relay.add(x, relay.const(1.5)), "mul_const": lambda x: relay.multiply(x, relay.const(1.5)), "sqrt": lambda x: relay.sqrt(x)}


@program(*UNARY)
def fake_unary(name):
    if name == "rsqrt_":
        x = dq(X(1, 4, 4, 4), 0.01)
        fq(q(relay.exp(x), 0.02, 0), [i8(1, 4, 4, 4)], 1)
        return
    x = dq(X(1, 4, 4, 4))
    a = i8(1, 4, 4, 4)
    if name == "sqrt":
        a = np.abs(a // 2)
    fq(q(UNARY[name](x)), [a], 1)


BIN = {"add": relay.add, "subtract": relay.subtract, "multiply": relay.multiply, "maximum": relay.maximum, "minimum": relay.minimum}


@program(*BIN)
def fake_binary(name):
    a, b = X(2, 3), relay.var("y", shape=(2, 3), dtype="int8")
    fq(q(BIN[name](dq(a, 2.0), dq(b, 1.0)), 4.0), [i8(2, 3), i8(2, 3)[::-1].copy()], 1)
    fq(q(BIN[name](dq(a, 2.0), dq(b, 2.0)), 2.0, 3), [i8(2, 3), i8(2, 3)], 1)


@program("int8", "uint8", "int32")
def fake_conv(out):
    x, w = X(1, 3, 8, 8), relay.var("w", shape=(4, 3, 3, 3), dtype="int8")
    o = relay.op.nn.conv2d(dq(x, 1.0 / 64), dq(w, 0.5 / 64), kernel_size=[3, 3])
    e = q(o, 0.5 / 64 if out == "int32" else 2.0, 0, out)
    fq(e, [i8(1, 3, 8, 8), i8(4, 3, 3, 3)], 1)


@program
def fake_conv_bias():
    x, w = X(1, 3, 8, 8), relay.var("w", shape=(4, 3, 3, 3), dtype="int8")
    bias = relay.var("b", shape=(4,), dtype="int32")
    o = relay.nn.conv2d(dq(x, 2.0), dq(w, 0.5), kernel_size=[3, 3])
    e = q(relay.nn.bias_add(o, dq(bias, 1.0)), 512.0)
    fq(e, [i8(1, 3, 8, 8), i8(4, 3, 3, 3), np.arange(4, dtype="int32")], 1)


@program
def fake_conv_per_channel():
    np.random.seed(42)
    x, w = X(1, 3, 8, 8), relay.var("w", shape=(4, 3, 3, 3), dtype="int8")
    ws = relay.const(np.array([0.5, 0.25, 1.0, 2.0], "float32")); wz = relay.const(np.zeros(4, "int32"))
    o = relay.nn.conv2d(dq(x, 2.0), relay.qnn.op.dequantize(w, ws, wz, axis=0), kernel_size=[3, 3], channels=4)
    e = q(o, 512.0)
    fq(e, [i8(1, 3, 8, 8), i8(4, 3, 3, 3)], 1)


@program
def fake_transpose_conv():
    x, w = X(1, 3, 8, 8), relay.var("w", shape=(3, 4, 3, 3), dtype="int8")
    o = relay.nn.conv2d_transpose(dq(x, 2.0), dq(w, 0.5), kernel_size=[3, 3], channels=4)
    fq(q(o, 512.0), [i8(1, 3, 8, 8), i8(3, 4, 3, 3)], 1)


@program
def fake_dense_and_batch():
    x, w = X(5, 8), relay.var("w", shape=(4, 8), dtype="int8")
    fq(q(relay.nn.dense(dq(x, 2.0), dq(w, 0.5)), 128.0), [i8(5, 8), i8(4, 8)], 1)
    x, w = X(2, 5, 8), relay.var("w", shape=(2, 4, 8), dtype="int8")
    fq(q(relay.nn.batch_matmul(dq(x, 2.0), dq(w, 0.5)), 128.0), [i8(2, 5, 8), i8(2, 4, 8)], 1)
    x, w = X(5, 8), relay.var("w", shape=(4, 8), dtype="int8")
    fq(q(relay.nn.dense(dq(x, 2.0), relay.qnn.op.dequantize(w, relay.const([0.5, 0.25, 1., 2.]), relay.const(np.zeros(4, "int32")), axis=0)), 128.0), [i8(5, 8), i8(4, 8)], 1)


@program
def fake_concat():
    a, b, c = X(1, 4), relay.var("y", shape=(1, 4), dtype="int8"), relay.var("z", shape=(1, 4), dtype="int8")
    e = q(relay.concatenate([dq(a, 1.0), dq(b, 2.0), dq(c, 1.0, 3)], 1), 2.0, 1)
    fq(e, [i8(1, 4), i8(1, 4), i8(1, 4)], 1)


@program
def fake_qat():
    x = relay.var("x", shape=(2, 3))
    one = relay.const(1.0); zero = relay.const(0)
    e = relay.qnn.op.quantize(relay.nn.relu(relay.qnn.op.dequantize(relay.qnn.op.quantize(x, one, zero), one, zero)), one, zero)
    mod = transform.InferType()(tvm.IRModule.from_expr(e))
    got = transform.FakeQuantizationToInteger(use_qat=True)(mod)
    assert not tvm.ir.structural_equal(got, mod)


@program
def fake_qat_dense():
    a, w = relay.var("x", shape=(5, 8)), relay.const(numbers(4, 8))
    e = relay.nn.dense(dq(q(a, 0.1), 0.1), dq(q(w, 0.1), 0.1))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([a], e)))
    got = transform.FakeQuantizationToInteger(use_qat=True)(mod)
    assert "qnn.dense" in got.astext(False)
