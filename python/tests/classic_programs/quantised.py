# SPDX-License-Identifier: Apache-2.0
"""FakeQuantizationToInteger: what becomes integers, and that the numbers stay (those that are rounded once more: within one step)."""
import numpy as np
import tvm
from harness import numbers, program
from tvm import relay
from tvm.relay import transform
from tvm.relay.qnn import op as qnn

DATA = np.random.RandomState(3).randint(-128, 128, (1, 3, 8, 8)).astype("int8")


def scale(value):
    return relay.const(value, "float32")


def real(x, step=2.0, zero=0, **where):
    return qnn.dequantize(x, scale(step), relay.const(zero, "int32"), **where)


def steps(x, step=2.0, zero=0):
    return qnn.quantize(x, scale(step), relay.const(zero, "int32"), out_dtype="int8")


def integers(body, *arrays, exact, use_qat=False):
    """The module of a program over int8, in which no float arithmetic is left, after its numbers are compared."""
    before = transform.InferType()(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    after = transform.FakeQuantizationToInteger(False, use_qat)(before)
    assert not tvm.ir.structural_equal(before, after), f"nothing changed: {before}"
    mine, want = (relay.create_executor("vm", mod=m).evaluate()(*arrays).numpy().astype("int64") for m in (after, before))
    np.testing.assert_allclose(mine, want, rtol=0, atol=0 if exact else 1)
    return after


X = relay.var("x", shape=DATA.shape, dtype="int8")
EXACT = {
    "transpose": lambda x: relay.transpose(x, [1, 0, 2, 3]), "reshape": lambda x: relay.reshape(x, [-1, 1]), "expand_dims": lambda x: relay.expand_dims(x, 1),
    "squeeze": lambda x: relay.squeeze(relay.expand_dims(x, 1), [1]), "max_pool2d": lambda x: relay.nn.max_pool2d(x, [2, 2]), "relu": relay.nn.relu, "clip": lambda x: relay.clip(x, 0.0, 6.0),
    "clip between steps": lambda x: relay.clip(x, -5.0, 7.0), "pad": lambda x: relay.nn.pad(x, [[0, 0], [0, 1], [2, 3], [4, 5]], 0), "pad between steps": lambda x: relay.nn.pad(x, [[0, 0], [0, 0], [1, 1], [1, 1]], 5.0),
    "space_to_depth": lambda x: relay.nn.space_to_depth(x, 2), "strided_slice": lambda x: relay.strided_slice(x, [0, 0, 1, 1], [1, 2, 7, 7]), "split": lambda x: relay.split(x, 3, 1)[1],
    "topk": lambda x: relay.topk(x, k=2, ret_type="values"), "max": lambda x: relay.max(x, axis=1), "min": lambda x: relay.min(x, axis=1), "batch_flatten": relay.nn.batch_flatten,
    "tile": lambda x: relay.tile(x, (1, 1, 2, 2)), "repeat": lambda x: relay.repeat(x, 2, 1), "reverse": lambda x: relay.reverse(x, 1), "stop_fusion": relay.annotation.stop_fusion,
    "take": lambda x: relay.take(x, relay.const(np.array([0, 2])), axis=1), "broadcast_to": lambda x: relay.broadcast_to(x, (2, 3, 8, 8)),
    "nearest resize": lambda x: relay.image.resize2d(x, (16, 16), method="nearest_neighbor", coordinate_transformation_mode="asymmetric")}
ROUNDED = {
    "avg_pool2d": lambda x: relay.nn.avg_pool2d(x, [2, 2]), "global_avg_pool2d": relay.nn.global_avg_pool2d, "adaptive_avg_pool2d": lambda x: relay.nn.adaptive_avg_pool2d(x, [1, 1]),
    "mean": lambda x: relay.mean(x, axis=[2, 3], keepdims=True), "mean of all": relay.mean, "abs": relay.abs, "negative": relay.negative, "leaky_relu": lambda x: relay.nn.leaky_relu(x, 0.1),
    "linear resize": lambda x: relay.image.resize2d(x, (16, 16), method="linear"), "times two": lambda x: relay.multiply(x, scale(2.0))}


@program(*EXACT)
def same_numbers(name):
    integers(steps(EXACT[name](real(X))), DATA, exact=True)


@program(*ROUNDED)
def within_one_step(name):
    integers(steps(ROUNDED[name](real(X))), DATA, exact=False)


@program("tanh", "exp", "erf", "sigmoid", "sqrt", "rsqrt", "log")
def tables(name):
    data = np.abs(DATA.astype("int32")).clip(1, 127).astype("int8") if name in ("sqrt", "rsqrt", "log") else DATA
    integers(steps(getattr(relay, name)(real(X, 0.02)), 0.05), data, exact=False)


Y = relay.var("y", shape=DATA.shape, dtype="int8")


@program(*[(name, alike) for name in ("add", "subtract", "multiply", "maximum", "minimum") for alike in (False, True)])
def two_operands(name, alike):
    left, right, out = ((0.1, 3), (0.1, 3), (0.1, 3)) if alike else ((0.1, 3), (0.2, 1), (0.3, 0))
    integers(steps(getattr(relay, name)(real(X, *left), real(Y, *right)), *out), DATA, DATA[..., ::-1].copy(), exact=False)


@program("add", "subtract", "multiply", "maximum", "minimum")
def a_constant(name):
    integers(steps(getattr(relay, name)(real(X, 0.1), scale(2.0)), 0.1), DATA, exact=False)


@program
def chosen_by_a_condition():
    condition = relay.const(numbers(1, 3, 8, 8, dtype="bool"))
    integers(steps(relay.where(condition, real(X, 0.5), real(Y, 0.5)), 0.5), DATA, DATA[..., ::-1].copy(), exact=True)


@program("conv2d", "per channel", "conv2d_transpose", "dense", "batch_matmul", "matmul")
def products(kind):
    random = np.random.RandomState(5)
    shapes = {"conv2d_transpose": ((1, 3, 8, 8), (3, 4, 3, 3)), "dense": ((5, 16), (7, 16)), "batch_matmul": ((2, 5, 16), (2, 7, 16)), "matmul": ((5, 16), (16, 7))}
    arrays = [random.randint(-128, 128, s).astype("int8") for s in shapes.get(kind, ((1, 3, 8, 8), (4, 3, 3, 3)))]
    x, w = (relay.var(n, shape=a.shape, dtype="int8") for n, a in zip("xw", arrays))
    weight = qnn.dequantize(w, relay.const(np.array([0.1, 0.2, 0.3, 0.4], "float32")), relay.const(np.zeros(4, "int32")), axis=0) if kind == "per channel" else real(w, 0.5)
    make = {"dense": lambda: relay.nn.dense(real(x), weight), "batch_matmul": lambda: relay.nn.batch_matmul(real(x), weight), "matmul": lambda: relay.nn.matmul(real(x), weight),
            "conv2d_transpose": lambda: relay.nn.conv2d_transpose(real(x), weight, channels=4, kernel_size=(3, 3), kernel_layout="IOHW")}
    body = make.get(kind, lambda: relay.nn.conv2d(real(x), weight, channels=4, kernel_size=(3, 3)))()
    names = relay.analysis.list_op_freqs(integers(steps(body, 20.0), *arrays, exact=False))
    assert any(name.startswith("qnn.") and name.split(".")[1] in ("conv2d", "conv2d_transpose", "dense", "batch_matmul") for name in names), names
    assert "qnn.dequantize" not in names


@program
def training_without_an_end():
    w = relay.var("w", shape=(4, 3, 3, 3), dtype="int8")
    body = relay.nn.conv2d(real(X), real(w, 0.5), channels=4, kernel_size=(3, 3))
    assert "qnn.conv2d" in relay.analysis.list_op_freqs(transform.FakeQuantizationToInteger(False, True)(transform.InferType()(tvm.IRModule.from_expr(body))))


@program
def what_it_does_not_know_stays():
    before = transform.InferType()(tvm.IRModule.from_expr(steps(relay.cumsum(real(X)))))
    assert tvm.ir.structural_equal(transform.FakeQuantizationToInteger()(before), before)


@program
def what_is_quantised():
    mod = transform.InferType()(tvm.IRModule.from_expr(steps(relay.nn.max_pool2d(real(X), [2, 2]))))
    assert relay.analysis.extract_fake_quantized_ops(mod) == {"nn.max_pool2d": 1}
