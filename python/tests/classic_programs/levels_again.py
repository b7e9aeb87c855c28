# SPDX-License-Identifier: Apache-2.0
"""Operators level by level: their types where sizes are free, and their numbers by both executors."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.relay import transform
from tvm.relay.testing import run_infer_type

from harness import program, raises, numbers, evaluate


def both(function, *arrays):
    """What each of the two executors makes of it."""
    return [relay.create_executor(kind, device=tvm.cpu(0), target="llvm").evaluate(function)(*arrays) for kind in ("graph", "debug")]


@program
def sigmoid_family_keeps_symbolic_sizes():
    n, t, d = te.size_var("n"), te.size_var("t"), 7
    x = relay.var("x", relay.TensorType((n, t, d), "float32"))
    for op in (relay.sigmoid, relay.tanh, relay.erf, relay.rsqrt, relay.nn.relu):
        y = op(x)
        assert ("%x" in y.astext()) and run_infer_type(y).checked_type == relay.TensorType((n, t, d), "float32")


@program
def binary_of_free_sizes_with_one():
    n, m = te.size_var("n"), te.size_var("m")
    x, y = relay.var("x", relay.TensorType((n, m, 1), "int64")), relay.var("y", relay.TensorType((1, m, 5), "int64"))
    for op in (relay.subtract, relay.maximum, relay.multiply):
        assert run_infer_type(op(x, y)).checked_type == relay.TensorType((n, m, 5), "int64")


@program
def expand_dims_counts_from_the_end():
    for begin, shape, axis, new in (((3, 10), (3, 10, 1, 1), 2, 2), ((3, 10), (3, 1, 10), -2, 1)):
        x = relay.var("x", relay.TensorType(begin, "float32"))
        f = relay.Function([x], relay.expand_dims(x, axis, new))
        assert run_infer_type(f).ret_type == relay.TensorType(shape, "float32")
        for out in both(f, (a := numbers(*begin))):
            np.testing.assert_allclose(out.numpy(), a.reshape(shape))


@program
def bias_add_types_and_numbers():
    for dtype in ("float16", "float32"):
        x, b = relay.var("x", shape=(10, 2, 2, 3), dtype=dtype), relay.var("b", dtype=dtype)
        z = relay.nn.bias_add(x, b, axis=1)
        assert "axis=" not in z.astext()
        zz = run_infer_type(z)
        assert zz.args[1].checked_type == relay.TensorType((2,), dtype)
        bias = relay.var("b", shape=(2,), dtype=dtype)
        f = relay.Function([x, bias], relay.nn.bias_add(x, bias))
        a, c = numbers(10, 2, 2, 3, dtype=dtype), numbers(2, dtype=dtype)
        for out in both(f, a, c):
            np.testing.assert_allclose(out.numpy(), a + c.reshape(2, 1, 1), rtol=1e-2 if dtype == "float16" else 1e-5)


@program
def bias_add_of_a_scalar_is_refused():
    x, b = relay.var("x", shape=(4,)), relay.var("b", shape=())
    raises(tvm.TVMError, lambda: run_infer_type(relay.nn.bias_add(x, b, axis=2)))


@program
def log_softmax_along_the_last_axis():
    for shape in ((10, 4), (10, 5, 4)):
        x = relay.var("x", shape=shape)
        y = relay.nn.log_softmax(x, axis=-1)
        assert "nn.log_softmax" in y.astext()
        assert run_infer_type(y).checked_type == relay.TensorType(shape)
        a = numbers(*shape)
        want = a - np.log(np.exp(a).sum(-1, keepdims=True))
        for out in both(relay.Function([x], y), a):
            np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-5)


@program
def concatenate_of_named_sizes():
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x, y = relay.var("x", shape=(n, t, d)), relay.var("y", shape=(n, t, d))
    z = relay.concatenate((x, y), axis=-1)
    assert "axis=" in z.astext() and run_infer_type(z).checked_type == relay.TensorType((n, t, 200))
    assert run_infer_type(relay.exp(relay.concatenate((x, y), axis=2))).checked_type == relay.TensorType((n, t, 200))
    assert run_infer_type(relay.concatenate((x, y), axis=1)).checked_type == relay.TensorType((n, t + t, 100))
    raises(tvm.error.TVMError, lambda: run_infer_type(relay.concatenate((relay.var("p", shape=(2, 5)), relay.var("q", shape=(2, 5))), axis=2)))


@program
def concatenate_with_one_argument_and_a_scalar():
    x, t = relay.var("x", shape=(10, 5)), relay.var("t", shape=())
    z = relay.concatenate((x, x), axis=1) + t
    a = numbers(10, 5)
    for out in both(relay.Function([x, t], z), a, np.float32(2.5)):
        np.testing.assert_allclose(out.numpy(), np.concatenate((a, a), 1) + np.float32(2.5), rtol=1e-6)


@program
def dropout_is_its_input_and_the_mask_has_its_shape():
    n, t = te.size_var("n"), te.size_var("t")
    x = relay.var("x", shape=(n, t, 3))
    y = relay.nn.dropout(x, rate=0.75)
    assert "rate=" in y.astext() and run_infer_type(y).checked_type == relay.TensorType((n, t, 3), "float32")
    z = relay.var("x", shape=(2, 4, 6))
    f = run_infer_type(relay.Function([z], relay.nn.dropout(z)))
    for out in both(f, (a := np.ones((2, 4, 6), "float32"))):
        np.testing.assert_allclose(out.numpy(), a)


@program
def batch_norm_of_other_axes():
    x = relay.var("x", relay.TensorType((3, 2, 1)))
    beta, gamma, mean, var = (relay.var(n, relay.TensorType((k,))) for n, k in (("beta", 2), ("gamma", 2), ("moving_mean", 2), ("moving_var", 2)))
    y = relay.nn.batch_norm(x, gamma, beta, mean, var, center=False, scale=False)
    assert "center=" in y.astext()
    assert run_infer_type(y.astuple()).checked_type == relay.ty.TupleType(tvm.runtime.convert([relay.TensorType((3, 2, 1), "float32"), relay.TensorType((2,), "float32"), relay.TensorType((2,), "float32")]))
    by_zero = relay.nn.batch_norm(x, *(relay.var(n, relay.TensorType((3,))) for n in "abcd"), axis=0, center=False, scale=False)
    assert run_infer_type(by_zero.astuple()).checked_type.fields[1] == relay.TensorType((3,), "float32")


@program
def batch_norm_folds_to_its_formula():
    data = relay.var("data", relay.TensorType((2, 4, 3)))
    names = [relay.var(n, relay.TensorType((4,))) for n in ("beta", "gamma", "mean", "var")]
    eps = 0.25

    def expected(x, beta, gamma, moving_mean, moving_var):
        scale = relay.divide(relay.const(1.0), relay.sqrt(moving_var + relay.const(eps)))
        scale = relay.multiply(scale, gamma)
        shift = relay.add(relay.multiply(relay.negative(moving_mean), scale), beta)
        return relay.multiply(x, relay.expand_dims(scale, axis=1, num_newaxis=1)) + relay.expand_dims(shift, axis=1, num_newaxis=1)
    beta, gamma, mean, var = names
    out = relay.nn.batch_norm(data, gamma, beta, mean, var, axis=1, epsilon=eps)[0]
    got = relay.testing.run_opt_pass(relay.Function([data] + names, out), transform.SimplifyInference())
    want = relay.testing.run_opt_pass(relay.Function([data] + names, expected(data, beta, gamma, mean, var)), transform.InferType())
    assert tvm.ir.structural_equal(got, want)


@program
def dense_infers_units_and_weight():
    n, c, h, w = (te.size_var(k) for k in "nchw")
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    weight = relay.var("w", relay.TensorType((2, w), "float32"))
    y = relay.nn.dense(x, weight, units=2)
    assert "units=2" in y.astext() and run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), "float32")
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), 2
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    weight = relay.var("w", relay.IncompleteType())
    yy = run_infer_type(relay.nn.dense(x, weight, units=2))
    assert yy.args[1].checked_type == relay.TensorType((2, 2), "float32")
    assert run_infer_type(relay.nn.dense(x, relay.var("w", relay.TensorType((2, wh := te.var("wh")))))).checked_type.shape[-1] == 2 and wh is not None


@program
def dense_weights_of_another_dtype():
    x = relay.var("data", shape=(1, 4), dtype="float16")
    w = relay.var("weight", shape=(1, 4), dtype="float32")
    raises(tvm.error.DiagnosticError, lambda: run_infer_type(relay.nn.dense(x, w)))
    y = relay.nn.dense(relay.var("data", shape=(3, 4), dtype="int8"), relay.var("w", shape=(2, 4), dtype="int8"), out_dtype="int32")
    assert run_infer_type(y).checked_type == relay.TensorType((3, 2), "int32")


@program
def conv2d_type_by_symbolic_sizes():
    n, c, h, w = te.size_var("n"), 10, 224, 224
    x = relay.var("x", relay.ty.TensorType((n, c, h, w), "float32"))
    weight = relay.var("w")
    y = run_infer_type(relay.nn.conv2d(x, weight, kernel_size=(3, 3), padding=(1, 1), channels=2))
    assert y.checked_type == relay.TensorType((n, 2, 224, 224), "float32") and y.args[1].checked_type == relay.TensorType((2, 10, 3, 3), "float32")
    n, c, h, w = te.var("n"), 10, te.var("h"), te.var("w")
    x, weight = relay.var("x", relay.TensorType((n, c, h, w), "int8")), relay.var("w", relay.TensorType((2, 10, 3, 3), "int8"))
    y = run_infer_type(relay.nn.conv2d(x, weight, out_dtype="int32"))
    assert "out_dtype=\"int32\"" in y.astext() and y.checked_type == relay.TensorType((n, 2, h - 2, w - 2), "int32")


@program
def conv2d_blocked_layout_type():
    n, c, h, w = 4, 32, 224, 224
    x = relay.var("x", relay.TensorType((n // 4, c // 4, h, w, 4, 4), "int8"))
    y = run_infer_type(relay.nn.conv2d(x, relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=16, data_layout="NCHW4n4c", kernel_layout="OIHW4o4i", out_dtype="int32"))
    assert y.checked_type == relay.TensorType((1, 4, 224, 224, 4, 4), "int32") and y.args[1].checked_type == relay.TensorType((4, 8, 3, 3, 4, 4), "int8")


@program
def transposed_convolution_types():
    n, c, h, w = te.size_var("n"), 10, 10, 12
    x, weight = relay.var("x", relay.TensorType((n, c, h, w), "float32")), relay.var("w", relay.IncompleteType())
    y = relay.nn.conv2d_transpose(x, weight, kernel_size=(3, 3), padding=(1, 1), channels=15)
    assert "channels=15" in y.astext()
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 15, 10, 12), "float32") and yy.args[1].checked_type == relay.TensorType((10, 15, 3, 3), "float32")


@program
def upsampling_of_a_size():
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    y = run_infer_type(relay.nn.upsampling(x, scale_h=2, scale_w=2, layout="NCHW", method="bilinear"))
    assert "method=\"BINLINEAR\"" not in y.astext()
    assert y.checked_type == relay.TensorType((n, c, tvm.tir.Cast("int32", te.round(h * tvm.tir.const(2.0, "float32"))), tvm.tir.Cast("int32", te.round(w * tvm.tir.const(2.0, "float32")))), "float32")


@program
def pools_over_free_batches():
    n, c = te.size_var("n"), te.size_var("c")
    x = relay.var("x", relay.TensorType((n, c, 224, 224), "float32"))
    y = relay.nn.max_pool2d(x, pool_size=(1, 1))
    assert "pool_size=" in y.astext() and run_infer_type(y).checked_type == relay.TensorType((n, c, 224, 224), "float32")
    assert run_infer_type(relay.nn.avg_pool2d(x, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))).checked_type == relay.TensorType((n, c, 112, 112), "float32")
    assert run_infer_type(relay.nn.global_max_pool2d(relay.var("x", relay.TensorType((n, 224, 224, c))), layout="NHWC")).checked_type == relay.TensorType((n, 1, 1, c), "float32")


@program
def flatten_of_symbols():
    d1, d2, d3, d4 = te.size_var("d1"), te.size_var("d2"), te.size_var("d3"), te.size_var("d4")
    x = relay.var("x", relay.TensorType((d1, d2, d3, d4), "float32"))
    assert run_infer_type(relay.nn.batch_flatten(x)).checked_type == relay.TensorType((d1, ((d2 * d3) * d4)), "float32")
    assert run_infer_type(relay.nn.batch_flatten(relay.var("x", relay.TensorType((d1, 2, d3, 3), "float32")))).checked_type == relay.TensorType((d1, ((2 * d3) * 3)), "float32")


@program
def pad_of_symbols_and_by_value():
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    t = relay.var("t", relay.TensorType((n, c, h, w), "float32"))
    y = relay.nn.pad(t, ((1, 1), (2, 2), (3, 3), (4, 4)))
    assert "pad_width=" in y.astext() and run_infer_type(y).checked_type == relay.TensorType((n + 2, c + 4, h + 6, w + 8), "float32")
    x, v = relay.var("x", relay.TensorType((2, 3), "int32")), relay.var("v", relay.TensorType((), "int32"))
    f = relay.Function([x, v], relay.nn.pad(x, ((1, 0), (0, 2)), v))
    a = numbers(2, 3, dtype="int32")
    out = relay.create_executor("graph", device=tvm.cpu(), target="llvm").evaluate(f)(a, np.int32(4))
    np.testing.assert_array_equal(out.numpy(), np.pad(a, ((1, 0), (0, 2)), constant_values=4))


@program
def lrn_and_l2_types():
    n, c, h, w = (te.size_var(k) for k in "nchw")
    x = relay.var("x", shape=(n, c, h, w))
    y = relay.nn.lrn(x, size=10, axis=2, bias=0.5, alpha=0.00001, beta=0.75)
    assert "alpha=" in y.astext() and run_infer_type(y).checked_type == relay.TensorType((n, c, h, w))
    z = relay.nn.l2_normalize(x, eps=0.001, axis=[1])
    assert "axis=" in z.astext() and run_infer_type(z).checked_type == relay.TensorType((n, c, h, w))


# ---- the third level
@program
def clip_with_types():
    a = relay.var("a", relay.TensorType((10, 4), "int16"))
    y = relay.clip(a, 1.0, 4.0)
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), "int16")
    data = numbers(10, 4, dtype="int16")
    out = relay.create_executor(device=tvm.cpu(), target="llvm").evaluate(relay.Function([a], y))(data)
    np.testing.assert_array_equal(out.numpy(), np.clip(data, 1, 4))


@program
def fixed_point_multiply_of_int32():
    a = relay.var("a", relay.TensorType((10, 4), "int32"))
    y = relay.fixed_point_multiply(a, 1073741824, -3)
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), "int32")
    data = 23 * np.ones((10, 4), "int32")
    out = relay.create_executor(device=tvm.cpu(), target="llvm").evaluate(relay.Function([a], y))(data)
    np.testing.assert_array_equal(out.numpy(), np.ones((10, 4), "int32"))


@program
def reinterpret_back_and_forth():
    a = relay.var("a", relay.TensorType((1000, 4), "float32"))
    y = relay.reinterpret(a, "int32")
    assert run_infer_type(y).checked_type == relay.TensorType((1000, 4), "int32")
    data = numbers(1000, 4)
    out = relay.create_executor(device=tvm.cpu(), target="llvm").evaluate(relay.Function([a], y))(data)
    np.testing.assert_array_equal(out.numpy(), data.view("int32"))


@program
def squeeze_numbers_and_refusal():
    x = relay.var("x", shape=(1, 3, 2, 5))
    squeeze = relay.squeeze(x, axis=(0,))
    assert "axis=[0]" in squeeze.astext()
    raises(tvm.TVMError, lambda: run_infer_type(relay.squeeze(x, axis=(1,))))
    y = relay.var("y", shape=(1, 3, 1))
    for axis in (None, [0], [0, 2], -1):
        f = relay.Function([y], relay.squeeze(y, axis=axis))
        want = numbers(1, 3, 1).squeeze() if axis is None else numbers(1, 3, 1).squeeze(tuple(axis) if isinstance(axis, list) else axis)
        assert both(f, numbers(1, 3, 1))[0].numpy().shape == want.shape


@program
def transpose_of_symbols_without_axes():
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x = relay.var("x", relay.TensorType((n, t, d), "float32"))
    y = relay.transpose(x, axes=(1, 0, 2))
    assert "axes=" in y.astext() and run_infer_type(y).checked_type == relay.TensorType((t, n, 100), "float32")
    assert run_infer_type(relay.transpose(x)).checked_type == relay.TensorType((100, t, n), "float32")
    assert run_infer_type(relay.transpose(x, axes=(-1, 0, 1))).checked_type == relay.TensorType((100, n, t), "float32")


@program
def reshape_with_special_values():
    for shape, new, want in (((2, 3, 4), (4, 0, 2), (4, 3, 2)), ((2, 3, 4), (6, 1, -1), (6, 1, 4)), ((2, 3, 4), (-3, 4), (6, 4)), ((2, 3, 4), (-4, 1, 2, -2), (1, 2, 3, 4)), ((2, 3, 4), (2, -4, -1, 3, -2), (2, 1, 3, 4)), ((1,), (), ()), ((2, 3, 4, 5), (-3, -3), (6, 20))):
        x = relay.var("x", relay.TensorType(shape, "float32"))
        z = relay.reshape(x, newshape=new)
        assert "newshape=" in z.astext() and run_infer_type(z).checked_type == relay.TensorType(want, "float32")
        assert both(relay.Function([x], z), numbers(*shape))[1].numpy().shape == want


@program
def reshape_that_fails():
    for shape, new in (((2, 3, 4), (5, -1)), ((2, 3), (-1, -1)), ((2, 3), (7,))):
        x = relay.var("x", relay.TensorType(shape, "float32"))
        raises(tvm.error.TVMError, lambda x=x, new=new: run_infer_type(relay.reshape(x, newshape=new)))


@program
def reshape_like_parts():
    x, y = relay.var("x", relay.TensorType((1, 2, 3, 4), "float32")), relay.var("y", relay.TensorType((1, 6, 5), "float32"))
    z = relay.reshape_like(x, y, lhs_begin=1, lhs_end=3, rhs_begin=1, rhs_end=2)
    assert run_infer_type(z).checked_type == relay.TensorType((1, 6, 4), "float32")
    x, y = relay.var("x", relay.TensorType((1, 2, 3), "float32")), relay.var("y", relay.TensorType((1, 6), "float32"))
    assert run_infer_type(relay.reshape_like(x, y)).checked_type == relay.TensorType((1, 6), "float32")


@program
def take_modes_and_batch_dims():
    x, i = relay.var("x", shape=(2, 3, 4)), relay.var("i", shape=(2, 2), dtype="int32")
    y = relay.take(x, i, axis=1, batch_dims=1)
    assert run_infer_type(y).checked_type == relay.TensorType((2, 2, 4))
    d1, d2, d3 = te.var("d1"), te.var("d2"), te.var("d3")
    x = relay.var("x", relay.TensorType((d1, d2), "float32"))
    i = relay.var("i", relay.TensorType((d3,), "int32"))
    assert run_infer_type(relay.take(x, i, axis=1)).checked_type == relay.TensorType((d1, d3), "float32")
    assert "axis=" in relay.take(x, i, axis=0).astext()
    a = numbers(3, 4)
    v = relay.var("x", shape=(3, 4))
    for mode, index in (("clip", [5, -1]), ("wrap", [5, -1]), ("fast", [2, 1])):
        j = relay.var("j", shape=(2,), dtype="int32")
        out = evaluate(relay.Function([v, j], relay.take(v, j, axis=0, mode=mode)), a, np.array(index, "int32"))
        want = np.take(a, index, 0, mode="clip" if mode == "fast" else mode)
        np.testing.assert_allclose(out, want)


@program
def split_types_by_symbols():
    idxd = tvm.tir.indexdiv
    d1, d2, d3, d4, axis = te.var("d1"), te.var("d2"), te.var("d3"), te.var("d4"), te.var("axis")
    x = relay.var("x", relay.TensorType((d1, d2, d3, d4), "float32"))
    y = run_infer_type(relay.split(x, 4, axis=1).astuple())
    part = relay.TensorType((d1, idxd(d2, 4), d3, d4), "float32")
    assert y.checked_type == relay.ty.TupleType(tvm.runtime.convert([part] * 4)) and axis is not None
    parts = run_infer_type(relay.split(x, (2, 4, 7), axis=1).astuple()).checked_type.fields
    assert parts[1] == relay.TensorType((d1, 2, d3, d4), "float32") and parts[3] == relay.TensorType((d1, (d2 - 7), d3, d4), "float32")


@program
def full_and_full_like():
    x = relay.var("fill", relay.TensorType((), "int8"))
    y = run_infer_type(relay.full(x, (1, 2), "int8"))
    assert "shape=" in y.astext() and y.checked_type == relay.TensorType((1, 2), "int8")
    n, c = te.size_var("n"), te.size_var("c")
    base = relay.var("base", relay.TensorType((n, c), "float32"))
    assert run_infer_type(relay.full_like(base, relay.var("fill", relay.TensorType((), "float32")))).checked_type == relay.TensorType((n, c), "float32")
    raises(tvm.TVMError, lambda: run_infer_type(relay.full(relay.var("f", relay.TensorType((1,), "float32")), (2,), "float32")))


@program
def arange_by_three():
    for start, stop, step in ((None, 20, None), (1, 20, None), (1, 20, 2), (1.0, 11.5, 1.5), (20, 1, -1)):
        dtype = "float32"
        c = [None if v is None else relay.const(v, dtype=dtype) for v in (start, stop, step)]
        x = relay.arange(c[1], dtype=dtype) if start is None else relay.arange(c[0], c[1], dtype=dtype) if step is None else relay.arange(*c, dtype=dtype)
        want = np.arange(*(v for v in (start, stop, step) if v is not None), dtype=dtype)
        for out in both(relay.Function([], x)):
            np.testing.assert_allclose(out.numpy(), want)


@program
def meshgrid_of_two_indexings():
    vs = [relay.var(f"v{k}", relay.TensorType(s)) for k, s in enumerate(((3,), (4,), ()))]
    g = relay.meshgrid(vs, indexing="ij")
    assert run_infer_type(g.astuple()).checked_type.fields[2] == relay.TensorType((3, 4, 1))
    arrays = [numbers(3), numbers(4)]
    two = [relay.var("a", shape=(3,)), relay.var("b", shape=(4,))]
    f = relay.Function(two, relay.meshgrid(two, indexing="xy").astuple())
    for got, want in zip(evaluate(f, *arrays), np.meshgrid(*arrays, indexing="xy")):
        np.testing.assert_allclose(got, want)


@program
def repeat_tile_and_stack():
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x = relay.var("x", shape=(n, t, d))
    assert run_infer_type(relay.tile(x, reps=(2, 3, 4))).checked_type.shape[2] == 400
    assert run_infer_type(relay.repeat(x, repeats=2, axis=-1)).checked_type == relay.TensorType((n, t, 200), "float32")
    y = relay.Tuple([x, x])
    assert run_infer_type(relay.stack(y, axis=1)).checked_type == relay.TensorType((n, 2, t, 100), "float32")


@program
def scatter_add_and_scatter_nd():
    d, i, u = relay.var("d", shape=(2, 3)), relay.var("i", shape=(2, 3), dtype="int64"), relay.var("u", shape=(2, 3))
    f = relay.Function([d, i, u], relay.op.scatter_add(d, i, u, 1))
    a, index, b = numbers(2, 3), np.array([[0, 0, 2], [1, 1, 1]]), numbers(2, 3, seed=9)
    want = a.copy()
    for r in range(2):
        for c in range(3):
            want[r, index[r, c]] += b[r, c]
    for out in both(f, a, index, b):
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-5)
    data, at, upd = relay.var("data", shape=(2, 2), dtype="int64"), relay.var("at", shape=(2, 3), dtype="int64"), relay.var("upd", shape=(3,), dtype="int64")
    g = relay.Function([data, at, upd], relay.op.scatter_nd(data, at, upd, mode="add"))
    out = evaluate(g, np.zeros((2, 2), "int64"), np.array([[1, 1, 0], [0, 1, 0]]), np.array([2, 3, 0]))
    np.testing.assert_array_equal(out, [[0, 0], [2, 3]])


@program
def sparse_to_dense_forms():
    for indices, values, shape, default, want in ((1, 3, (5,), 0, [0, 3, 0, 0, 0]), ([0, 1, 4], [3, 3, 3], (5,), 0, [3, 3, 0, 0, 3]), ([0, 1, 4], [3, 3, 3], (5,), 1, [3, 3, 1, 1, 3])):
        a, b, c = np.array(indices, "int32"), np.array(values, "int32"), np.array(default, "int32")
        x, v, e = (relay.var(n, relay.TensorType(k.shape, "int32")) for n, k in (("x", a), ("v", b), ("e", c)))
        d = relay.op.sparse_to_dense(x, shape, v, e)
        assert run_infer_type(d).checked_type == relay.TensorType(shape, "int32")
        np.testing.assert_array_equal(evaluate(relay.Function([x, v, e], d), a, b, c), want)


@program
def adv_index_broadcasts():
    data = relay.var("data", shape=(10, 5, 6))
    first, second = relay.var("i0", shape=(1, 3), dtype="int64"), relay.var("i1", shape=(4, 1), dtype="int64")
    out = relay.op.adv_index([data, first, second])
    assert run_infer_type(out).checked_type == relay.TensorType((4, 3, 6))
    a, p, q = numbers(10, 5, 6), np.array([[1, 9, 4]]), np.array([[0], [1], [4], [2]])
    np.testing.assert_allclose(evaluate(relay.Function([data, first, second], out), a, p, q), a[p, q])
