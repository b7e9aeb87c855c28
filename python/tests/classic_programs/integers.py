# SPDX-License-Identifier: Apache-2.0
"""qnn.*: integers beside what their formula says, types, and what becomes of them."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, raises
from tvm import relay
from tvm.relay import transform
from tvm.relay.qnn import op as qnn
from tvm.relay.testing import run_infer_type, run_opt_pass


def c(value, dtype="float32"):
    return relay.const(np.asarray(value, dtype))


def z(value):
    return c(value, "int32")


def var(name, *shape, dtype="uint8"):
    return relay.var(name, shape=shape, dtype=dtype)


def run(body, *data):
    return evaluate(relay.Function(relay.analysis.free_vars(body), body), *data)


def away(x):
    return np.trunc(x + np.copysign(0.5, x))


def quantized(x, scale, zero, dtype):
    info = np.iinfo(dtype)
    return np.clip(away(np.asarray(x, "float64") / scale) + zero, info.min, info.max).astype(dtype)


RAMP = np.array([-63.5, -63, -62.5, -62, -61.5, 62, 62.5, 63, 63.5, 64], "float32").reshape(2, 5)


@program(("uint8", 0.5, 127), ("int8", 0.5, -1), ("int32", 0.5, 7), ("uint8", 0.25, 0), ("int8", 2.0, 3), ("int16", 0.125, 5), ("int8", 1.0, 0))
def quantize(dtype, scale, zero):
    x = relay.var("x", shape=RAMP.shape)
    body = qnn.quantize(x, output_scale=c(scale), output_zero_point=z(zero), out_dtype=dtype)
    assert run_infer_type(body).checked_type == relay.TensorType(RAMP.shape, dtype)
    np.testing.assert_array_equal(run(body, RAMP), quantized(RAMP, scale, zero, dtype))


@program((0, (2, 5)), (1, (2, 5)), (-1, (2, 5)), (-2, (2, 5)))
def quantize_channels(axis, shape):
    n = shape[axis]
    scale, zero = np.linspace(0.25, 1.0, n).astype("float32"), np.arange(n).astype("int32")
    x = relay.var("x", shape=shape)
    along = [1] * 2
    along[axis] = n
    got = run(qnn.quantize(x, c(scale), z(zero), axis=axis, out_dtype="int8"), RAMP)
    np.testing.assert_array_equal(got, quantized(RAMP, scale.reshape(along), zero.reshape(along), "int8"))
    q = numbers(*shape, dtype="int8")
    got = run(qnn.dequantize(var("x", *shape, dtype="int8"), c(scale), z(zero), axis=axis), q)
    np.testing.assert_allclose(got, (q.astype("int32") - zero.reshape(along)) * scale.reshape(along), rtol=1e-6)


@program(("uint8", 0.5, 127), ("int8", 0.5, -1), ("int32", 0.25, 20), ("int16", 0.5, 3))
def dequantize(dtype, scale, zero):
    data = numbers(3, 4, dtype=dtype)
    body = qnn.dequantize(var("x", 3, 4, dtype=dtype), c(scale), z(zero))
    assert run_infer_type(body).checked_type == relay.TensorType((3, 4))
    np.testing.assert_allclose(run(body, data), (data.astype("float32") - zero) * np.float32(scale), rtol=1e-6)


def requantized(x, s_in, z_in, s_out, z_out, dtype, rounding):
    value = (x.astype("int64") - z_in) * (s_in / s_out)
    value = np.floor(value + 0.5) if rounding == "UPWARD" else away(value)
    return np.clip(value + z_out, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


@program(*[(r, s, zi, zo, d) for r in ("UPWARD", "TONEAREST") for s, zi, zo, d in ((0.5, 0, 0, "int8"), (0.25, 0, 3, "int8"), (2.0, 1, 0, "int8"), (1.0, 3, -3, "uint8"), (0.5, 0, 10, "int32"), (16.0, 0, 0, "int16"))])
def requantize(rounding, ratio, z_in, z_out, dtype):
    data = np.array([-200, -129, -101, -7, -3, -2, -1, 0, 1, 2, 3, 7, 101, 127, 255], "int32")
    body = qnn.requantize(var("x", 15, dtype="int32"), c(ratio), z(z_in), c(1.0), z(z_out), rounding=rounding, out_dtype=dtype)
    np.testing.assert_array_equal(run(body, data), requantized(data, ratio, z_in, 1.0, z_out, dtype, rounding))


@program("UPWARD", "TONEAREST")
def requantize_channels(rounding):
    data = np.arange(-20, 20).reshape(8, 5).astype("int32")
    scale = np.array([0.5, 0.25, 1.0, 2.0, 0.125], "float32")
    body = qnn.requantize(var("x", 8, 5, dtype="int32"), c(scale), z(np.zeros(5)), c(1.0), z(0), axis=1, rounding=rounding, out_dtype="int8")
    np.testing.assert_array_equal(run(body, data), requantized(data, scale, 0, 1.0, 0, "int8", rounding))


@program(("int64",), ("float32",), ("float64",))
def requantize_computed_in(dtype):
    with relay.qnn.op.requantize_config(compute_dtype=dtype, rounding="TONEAREST"):
        data = np.arange(-100, 100).astype("int32")
        body = qnn.requantize(var("x", 200, dtype="int32"), c(0.37), z(0), c(1.0), z(0), out_dtype="int8")
        np.testing.assert_array_equal(run(body, data), requantized(data, 0.37, 0, 1.0, 0, "int8", "TONEAREST"))


A8 = np.array([[1, 153, 2, 178], [0, 255, 127, 128]], "uint8")
B8 = np.array([[204, 178, 1, 8], [255, 0, 129, 5]], "uint8")


def two(name, a, za, sa, b, zb, sb, zo, so, dtype="uint8"):
    x, y = var("x", *a.shape, dtype=str(a.dtype)), var("y", *b.shape, dtype=str(b.dtype))
    body = getattr(qnn, name)(lhs=x, rhs=y, lhs_scale=c(sa), lhs_zero_point=z(za), rhs_scale=c(sb), rhs_zero_point=z(zb), output_scale=c(so), output_zero_point=z(zo))
    assert run_infer_type(body).checked_type == relay.TensorType(a.shape, dtype)
    return run(body, a, b)


@program(*[(n, f) for n, f in (("add", np.add), ("subtract", np.subtract), ("mul", np.multiply))])
def arithmetic(name, f):
    for (za, sa, zb, sb, zo, so) in ((0, 0.00784314, 0, 0.00784314, 0, 0.00784314), (127, 0.00784314, 127, 0.00784314, 127, 0.0156863), (10, 0.5, 20, 0.25, 5, 1.0)):
        got = two(name, A8, za, sa, B8, zb, sb, zo, so).astype("int32")
        exact = f((A8.astype("float64") - za) * sa, (B8.astype("float64") - zb) * sb)
        np.testing.assert_allclose(got, np.clip(away(exact / so) + zo, 0, 255), atol=1)


@program
def saturation():
    def alike(name, za=0, zb=0, zo=0):
        return two(name, A8, za, 0.125, B8, zb, 0.125, zo, 0.125)
    np.testing.assert_array_equal(alike("add"), np.minimum(A8.astype("int32") + B8, 255))
    np.testing.assert_array_equal(alike("subtract"), np.maximum(A8.astype("int32") - B8, 0))


@program("leaky_relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "erf", "hardswish", "log")
def functions(name):
    data = np.arange(0, 256).astype("uint8")
    si, zi, so, zo = 0.02, 0, 0.03, 5
    args = (c(si), z(zi), c(so), z(zo))
    x = var("x", 256)
    body = qnn.leaky_relu(x, 0.3, *args) if name == "leaky_relu" else getattr(qnn, name)(x, *args)
    real = (data.astype("float64") - zi) * si
    with np.errstate(divide="ignore"):
        want = {"leaky_relu": lambda v: np.where(v < 0, 0.3 * v, v), "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "tanh": np.tanh, "exp": np.exp, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "log": np.log,
                "erf": lambda v: np.array([__import__("math").erf(t) for t in v]), "hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6}[name](real)
    want = np.clip(away(np.clip(want, -1e9, 1e9) / so) + zo, 0, 255)
    keep = slice(1, None) if name in ("rsqrt", "log") else slice(None)
    np.testing.assert_allclose(run(body, data).astype("int32")[keep], want[keep], atol=1)


@program(("uint8", 0, "uint8", 0), ("uint8", 5, "uint8", 0), ("uint8", 0, "uint8", 3), ("uint8", 5, "uint8", 3), ("int8", -2, "int8", 1), ("uint8", 7, "int8", 2), ("int8", 0, "int8", 0))
def dense(da, za, db, zb):
    a, b = numbers(3, 16, dtype=da), numbers(5, 16, dtype=db)
    body = qnn.dense(var("x", 3, 16, dtype=da), var("w", 5, 16, dtype=db), z(za), z(zb), c(0.5), c(0.25), units=5)
    assert run_infer_type(body).checked_type == relay.TensorType((3, 5), "int32")
    np.testing.assert_array_equal(run(body, a, b), (a.astype("int32") - za) @ (b.astype("int32") - zb).T)


@program
def dense_channels():
    a, b, zb = numbers(3, 16, dtype="int8"), numbers(5, 16, dtype="int8"), np.array([1, 0, 2, 3, -1])
    body = qnn.dense(var("x", 3, 16, dtype="int8"), var("w", 5, 16, dtype="int8"), z(2), z(zb), c(0.5), c(np.ones(5)), units=5)
    np.testing.assert_array_equal(run(body, a, b), (a.astype("int32") - 2) @ (b.astype("int32") - zb[:, None]).T)


@program((0, 0), (4, 0), (0, -3), (4, -3))
def batch_matmul(za, zb):
    a, b = numbers(2, 3, 8, dtype="int8"), numbers(2, 5, 8, dtype="int8")
    body = qnn.batch_matmul(var("x", 2, 3, 8, dtype="int8"), var("y", 2, 5, 8, dtype="int8"), z(za), z(zb), c(1.0), c(1.0))
    np.testing.assert_array_equal(run(body, a, b), (a.astype("int32") - za) @ (b.astype("int32") - zb).transpose(0, 2, 1))


def convs():
    for za, zb in ((0, 0), (5, 0), (0, 3), (5, 3)):
        yield f"plain {za} {zb}", (1, 4, 6, 6), (8, 4, 3, 3), za, zb, {}
    yield "padded", (2, 4, 6, 6), (8, 4, 3, 3), 5, 3, {"padding": (1, 1)}
    yield "strides", (1, 4, 7, 7), (8, 4, 3, 3), 5, 3, {"strides": (2, 2)}
    yield "dilated", (1, 4, 7, 7), (8, 4, 2, 2), 5, 3, {"dilation": (2, 2)}
    yield "1x1", (1, 4, 5, 5), (3, 4, 1, 1), 5, 3, {}
    yield "depthwise", (1, 4, 5, 5), (4, 1, 3, 3), 5, 3, {"groups": 4}
    yield "grouped", (1, 4, 5, 5), (6, 2, 3, 3), 5, 3, {"groups": 2}
    yield "sides", (1, 4, 5, 5), (6, 4, 3, 3), 2, 1, {"padding": (1, 0, 2, 1)}


@program(*convs())
def conv2d(name, ds, ks, za, zb, attrs):
    a, b = numbers(*ds, dtype="uint8"), numbers(*ks, dtype="uint8")
    more = {"channels": ks[0], "kernel_size": ks[2:], **attrs}
    body = qnn.conv2d(var("x", *ds), var("w", *ks), z(za), z(zb), c(1.0), c(1.0), out_dtype="int32", **more)
    pads = attrs.get("padding", (0, 0))
    pads = (*pads, *pads) if len(pads) == 2 else pads
    padded = np.pad(a.astype("int32") - za, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    kernel = b.astype("int32") - zb
    d = attrs.get("dilation", (1, 1))[0]
    wide = np.zeros((*ks[:2], (ks[2] - 1) * d + 1, (ks[3] - 1) * d + 1), "int32")
    wide[:, :, ::d, ::d] = kernel
    want = tvm.topi.testing.conv2d_nchw_python(padded, wide, attrs.get("strides", (1, 1))[0], 0, groups=attrs.get("groups", 1))
    np.testing.assert_array_equal(run(body, a, b), want)


@program("NHWC", "NCHW")
def conv2d_layouts(layout):
    a, b = numbers(1, 4, 6, 6, dtype="int8"), numbers(8, 4, 3, 3, dtype="int8")
    want = tvm.topi.testing.conv2d_nchw_python(a.astype("int32") - 3, b.astype("int32") - 1, 1, 0)
    if layout == "NHWC":
        a, b, want = a.transpose(0, 2, 3, 1).copy(), b.transpose(2, 3, 1, 0).copy(), want.transpose(0, 2, 3, 1)
    body = qnn.conv2d(var("x", *a.shape, dtype="int8"), var("w", *b.shape, dtype="int8"), z(3), z(1), c(1.0), c(1.0), channels=8, kernel_size=(3, 3), data_layout=layout, kernel_layout="HWIO" if layout == "NHWC" else "OIHW")
    np.testing.assert_array_equal(run(body, a, b), want)


@program((0, 0, (1, 1)), (3, 2, (1, 1)), (3, 2, (2, 2)))
def conv2d_transpose(za, zb, strides):
    a, b = numbers(1, 4, 5, 5, dtype="int8"), numbers(4, 3, 3, 3, dtype="int8")
    body = qnn.conv2d_transpose(var("x", 1, 4, 5, 5, dtype="int8"), var("w", 4, 3, 3, 3, dtype="int8"), z(za), z(zb), c(1.0), c(1.0), strides=strides, channels=3, kernel_size=(3, 3), kernel_layout="IOHW", out_dtype="int32")
    np.testing.assert_array_equal(run(body, a, b), tvm.topi.testing.conv2d_transpose_nchw_python(a.astype("int32") - za, b.astype("int32") - zb, strides, 0, (0, 0)))


@program
def concatenate():
    a, b = numbers(1, 3, dtype="uint8") , numbers(1, 3, dtype="uint8", seed=2)
    body = qnn.concatenate((var("x", 1, 3), var("y", 1, 3)), input_scales=(c(0.5), c(0.25)), input_zero_points=(z(1), z(2)), output_scale=c(0.5), output_zero_point=z(3), axis=0)
    assert run_infer_type(body).checked_type == relay.TensorType((2, 3), "uint8")
    first = a.astype("float64") - 1 + 3
    second = np.floor((b.astype("float64") - 2) * 0.5 + 0.5) + 3
    np.testing.assert_allclose(run(body, a, b), np.clip(np.concatenate([first, second]), 0, 255), atol=1)


@program
def concatenate_alike():
    a, b = numbers(1, 3, dtype="uint8"), numbers(1, 3, dtype="uint8", seed=2)
    body = qnn.concatenate((var("x", 1, 3), var("y", 1, 3)), (c(0.5), c(0.5)), (z(1), z(1)), c(0.5), z(1), axis=1)
    np.testing.assert_array_equal(run(body, a, b), np.concatenate([a, b], 1))
    assert "requantize" not in str(run_opt_pass(relay.Function(relay.analysis.free_vars(body), body), transform.CanonicalizeOps()))


TYPES = {
    "quantize": lambda: qnn.quantize(relay.var("x", shape=(2, 3)), c(0.5), z(0)), "dequantize": lambda: qnn.dequantize(var("x", 2, 3), c(0.5), z(0)),
    "requantize": lambda: qnn.requantize(var("x", 2, 3, dtype="int32"), c(0.5), z(0), c(1.0), z(0)), "add": lambda: qnn.add(var("x", 2, 3), var("y", 2, 3), c(1.), z(0), c(1.), z(0), c(1.), z(0)),
}


@program(*TYPES)
def text_and_json(name):
    mod = transform.InferType()(tvm.IRModule.from_expr(TYPES[name]()))
    assert f"qnn.{name}" in mod.astext()
    tvm.ir.assert_structural_equal(tvm.parser.fromtext(mod.astext()), mod)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(mod)), mod)
    got = relay.qnn.transform.CanonicalizeOps()(mod)
    assert "qnn." not in str(got), got
    assert str(relay.qnn.transform.Legalize()(mod))


WRONG = {"scale of int": lambda: qnn.quantize(relay.var("x", shape=(2, 3)), z(1), z(0)), "zero of float": lambda: qnn.quantize(relay.var("x", shape=(2, 3)), c(1.), c(0.)), "float in": lambda: qnn.dequantize(relay.var("x", shape=(2, 3)), c(1.), z(0)),
         "integers": lambda: qnn.quantize(var("x", 2, 3), c(1.), z(0)), "dense of floats": lambda: qnn.dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)), z(0), z(0), c(1.), c(1.), 4),
         "out": lambda: qnn.quantize(relay.var("x", shape=(2, 3)), c(1.), z(0), out_dtype="float32"), "mixed": lambda: qnn.add(var("x", 2, 3), var("y", 2, 3, dtype="int8"), c(1.), z(0), c(1.), z(0), c(1.), z(0))}


@program(*WRONG)
def refused(name):
    raises((tvm.TVMError, ValueError, TypeError), lambda: run_infer_type(WRONG[name]()))


@program
def a_small_network():
    x, w, b = var("x", 1, 4, 6, 6, dtype="int8"), numbers(8, 4, 3, 3, dtype="int8"), numbers(8, dtype="int32")
    y = qnn.conv2d(x, relay.const(w), z(1), z(0), c(0.5), c(0.25), channels=8, kernel_size=(3, 3), padding=(1, 1))
    y = relay.nn.bias_add(y, relay.const(b))
    y = qnn.requantize(y, c(0.125), z(0), c(4.0), z(2), out_dtype="int8")
    y = relay.clip(y, a_min=2, a_max=127)
    y = relay.nn.max_pool2d(y, (2, 2), (2, 2))
    y = qnn.dequantize(y, c(4.0), z(2))
    data = numbers(1, 4, 6, 6, dtype="int8")
    acc = tvm.topi.testing.conv2d_nchw_python(np.pad(data.astype("int32") - 1, ((0, 0), (0, 0), (1, 1), (1, 1))), w.astype("int32"), 1, 0) + b.reshape(8, 1, 1)
    q = np.clip(np.floor(acc * 0.03125 + 0.5) + 2, 2, 127).reshape(1, 8, 3, 2, 3, 2).max((3, 5))
    for kind in ("graph", "vm", "debug"):
        np.testing.assert_allclose(evaluate(relay.Function([x], y), data, kind=kind), (q - 2) * 4.0)


@program
def simulated():
    x = relay.var("x", shape=(2, 5))
    for dtype, zero in (("int8", 3), ("uint8", 120), ("int32", 0)):
        body = qnn.simulated_quantize(x, c(0.5), z(zero), out_dtype=dtype)
        np.testing.assert_array_equal(run(body, RAMP), quantized(RAMP, 0.5, zero, dtype).astype("float32"))
        np.testing.assert_allclose(run(qnn.simulated_dequantize(body, c(0.5), z(zero), in_dtype=dtype), RAMP), (quantized(RAMP, 0.5, zero, dtype).astype("float32") - zero) * 0.5)
