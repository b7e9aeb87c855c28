# SPDX-License-Identifier: Apache-2.0
"""Operators of the first level, as their users check them: type, text, errors and values, in the dtypes that scripts use."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.error import TVMError
from tvm.relay.testing import run_infer_type

from harness import program, raises


def run(function, *arrays, kind="graph"):
    results = []
    for target, dev in tvm.testing.enabled_targets():
        results.append(relay.create_executor(kind, device=dev, target=target).evaluate(function)(*arrays))
    out = results[0]
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


# ---- level 1
@program(*[(n, d) for n in ("exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos", "tan", "atan", "log2", "log10") for d in ("float16", "float32")])
def unary_dtype(name, dtype):
    op = getattr(relay, name)
    ref = {"rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "atan": np.arctan}.get(name) or getattr(np, name)
    tp = relay.TensorType((10, 4), dtype)
    x = relay.var("x", tp, dtype=dtype)
    y = op(x)
    assert f"{y.op.name}(%x)" in y.astext()
    assert run_infer_type(y).checked_type == tp
    data = np.random.RandomState(1).rand(10, 4).astype(dtype) + np.dtype(dtype).type(0.1)
    np.testing.assert_allclose(run(relay.Function([x], y), data), ref(data.astype("float64")).astype(dtype), rtol=0.01, atol=1e-3)


@program(*[(n, d) for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power") for d in ("float16", "float32")])
def binary_symbolic(name, dtype):
    n = te.var("n")
    t1 = relay.TensorType((5, n, 5), dtype)
    t2 = relay.TensorType((n, 1), dtype)
    x, y = relay.var("x", t1), relay.var("y", t2)
    z = getattr(relay, name)(x, y)
    assert f"{name}(%x, %y)" in z.astext()
    assert run_infer_type(z).checked_type == t1
    a, b = np.random.RandomState(2).rand(5, 10, 5).astype(dtype), np.random.RandomState(3).rand(5, 10, 5).astype(dtype) + np.dtype(dtype).type(0.5)
    x, y = relay.var("x", relay.TensorType(a.shape, dtype)), relay.var("y", relay.TensorType(b.shape, dtype))
    out = run(relay.Function([x, y], getattr(relay, name)(x, y)), a, b)
    np.testing.assert_allclose(out, getattr(np, name)(a, b), rtol=0.01, atol=1e-3)


@program("float16", "float32")
def bias_add_of_a_dtype(dtype):
    x = relay.var("x", shape=(10, 2, 3, 4), dtype=dtype)
    bias = relay.var("bias", dtype=dtype)
    z = relay.nn.bias_add(x, bias)
    zz = run_infer_type(z)
    assert "axis=" not in zz.astext()
    assert zz.args[1].checked_type == relay.TensorType((2,), dtype)
    func = relay.Function([x, relay.var("b", shape=(2,), dtype=dtype)], z)
    x2 = relay.var("x", shape=(10, 2, 3, 4), dtype=dtype)
    b2 = relay.var("b", shape=(2,), dtype=dtype)
    func = relay.Function([x2, b2], relay.nn.bias_add(x2, b2))
    a, b = np.random.rand(10, 2, 3, 4).astype(dtype), np.random.rand(2).astype(dtype)
    np.testing.assert_allclose(run(func, a, b), a + b.reshape(2, 1, 1), rtol=1e-2)


@program(((2, 2), 3), ((3,), 0), ((4,), -3))
def bias_add_refused(shape, axis):
    call = relay.nn.bias_add(relay.var("x", shape=shape), relay.var("b", shape=(4,)), axis=axis)
    raises((TVMError, tvm.error.DiagnosticError), run_infer_type, call)


@program
def bias_add_of_another_length():
    call = relay.nn.bias_add(relay.var("x", shape=(2, 3)), relay.var("b", shape=(4,)), axis=1)
    raises(TVMError, run_infer_type, call)


@program("float16", "float32")
def expand_dims_types(dtype):
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x = relay.var("x", shape=(n, t, d), dtype=dtype)
    y = relay.expand_dims(x, axis=2)
    assert "axis=2" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, t, 1, 100), dtype)


@program(((3, 2, 4), 0), ((3, 2, 4), 1), ((3, 2, 4), -1), ((3,), -1))
def softmax_axes(shape, axis):
    x = relay.var("x", shape=shape)
    y = relay.nn.softmax(x, axis=axis)
    assert "nn.softmax" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType(shape)
    a = np.random.uniform(size=shape).astype("float32")
    e = np.exp(a - a.max(axis, keepdims=True))
    np.testing.assert_allclose(run(relay.Function([x], y), a), e / e.sum(axis, keepdims=True), rtol=1e-5)


@program(((10, 4), 1), ((10, 5, 4), -1), ((10, 5, 4), 0), ((10, 5, 2, 2), 1))
def log_softmax_axes(shape, axis):
    x = relay.var("x", shape=shape)
    y = relay.nn.log_softmax(x, axis=axis)
    assert "nn.log_softmax" in y.astext()
    a = np.random.uniform(size=shape).astype("float32")
    want = a - a.max(axis, keepdims=True)
    want = want - np.log(np.exp(want).sum(axis, keepdims=True))
    np.testing.assert_allclose(run(relay.Function([x], y), a), want, rtol=1e-4, atol=1e-6)


@program("float16", "float32")
def concatenate_of_a_dtype(dtype):
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x, y = relay.var("x", shape=(n, t, d)), relay.var("y", shape=(n, t, d))
    z = relay.concatenate((x, y), axis=-1)
    assert "axis=" in z.astext()
    assert run_infer_type(z).checked_type == relay.TensorType((n, t, 200))
    x, y = relay.exp(x), relay.Var("y", relay.TensorType((n, t, d)))
    z = relay.concatenate((x, y), axis=2)
    assert run_infer_type(z).checked_type == relay.TensorType((n, t, 200))
    z = relay.concatenate((x, y), axis=1)
    assert run_infer_type(z).checked_type == relay.TensorType((n, t + t, 100))
    z = relay.concatenate((x, y), axis=3)
    raises(TVMError, run_infer_type, z)
    x, y = relay.var("x", shape=(10, 5), dtype=dtype), relay.var("y", shape=(10, 5), dtype=dtype)
    t = relay.var("z", shape=(), dtype=dtype)
    func = relay.Function([x, y, t], relay.add(relay.concatenate((x, y), axis=1), t))
    a, b, c = np.random.rand(10, 5).astype(dtype), np.random.rand(10, 5).astype(dtype), np.random.uniform(size=()).astype(dtype)
    np.testing.assert_allclose(run(func, a, b, c), np.concatenate([a, b], 1) + c, rtol=0.01)


@program
def dropout_of_symbolic_sizes():
    n, t, d = te.size_var("n"), te.size_var("t"), te.size_var("d")
    y = relay.nn.dropout(relay.var("x", relay.TensorType((n, t, d), "float32")), rate=0.75)
    assert "rate=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, t, d), "float32")
    # outside of training it is its operand
    x = relay.const(np.ones((3, 4), "float32"))
    assert np.array_equal(relay.create_executor("debug").evaluate(relay.nn.dropout(x, rate=0.5)).numpy(), np.ones((3, 4)))


@program("float16", "float32")
def batch_norm_types(dtype):
    data = relay.var("data", relay.TensorType((3, 2, 1), dtype))
    beta, gamma, mean, var = (relay.var(n, relay.TensorType((2,), dtype)) for n in ("beta", "gamma", "moving_mean", "moving_var"))
    y = relay.nn.batch_norm(data, gamma, beta, mean, var, center=False, scale=False)
    yy = run_infer_type(y.astuple())
    assert "center=" in yy.astext()
    two = relay.TensorType((2,), dtype)
    assert yy.checked_type == relay.ty.TupleType(tvm.runtime.convert([relay.TensorType((3, 2, 1), dtype), two, two]))
    beta, gamma, mean, var = (relay.var(n, relay.TensorType((3,), dtype)) for n in ("beta", "gamma", "moving_mean", "moving_var"))
    y = relay.nn.batch_norm(data, gamma, beta, mean, var, axis=0, center=False, scale=False)
    yy = run_infer_type(y.astuple())
    three = relay.TensorType((3,), dtype)
    assert yy.checked_type == relay.ty.TupleType(tvm.runtime.convert([relay.TensorType((3, 2, 1), dtype), three, three]))
    data = relay.var("data", relay.TensorType((1, 2, 3), dtype))
    y = relay.nn.batch_norm(data, gamma, beta, mean, var, axis=-1, center=False, scale=False)
    assert run_infer_type(y.astuple()).checked_type.fields[0] == relay.TensorType((1, 2, 3), dtype)


@program
def batch_norm_folds_a_constant():
    data, const = relay.var("data", shape=(1, 3, 4, 4)), [relay.const(np.full(3, v, "float32")) for v in (2.0, 1.0, 0.5, 4.0)]
    y = relay.nn.batch_norm(data, *const)
    y2 = relay.nn.batch_norm(data, *const)
    f = run_infer_type(relay.Function([data], relay.Tuple([y[0], y2[1], y2[2]])))
    assert len(f.body.fields) == 3 and f.ret_type.fields[1] == relay.TensorType((3,))
    a = np.random.rand(1, 3, 4, 4).astype("float32")
    out = run(relay.Function([data], y[0]), a)
    np.testing.assert_allclose(out, (a - 0.5) / np.sqrt(4 + 1e-5) * 2 + 1, rtol=1e-5)


@program("float16", "float32")
def matmul_types_and_values(dtype):
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), dtype))
    k = relay.var("w", relay.TensorType((2, w), dtype))
    y = relay.nn.matmul(x, k, units=2, transpose_b=True)
    assert "units=2" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), dtype)
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), 2
    x = relay.var("x", relay.TensorType((n, c, w, h), dtype))
    wh, ww = te.size_var("wh"), te.size_var("ww")
    weight = relay.var("w", relay.TensorType((wh, ww), dtype))
    y = relay.nn.matmul(x, weight, transpose_a=True)
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, ww), dtype)
    x = relay.var("x", relay.TensorType((n, c, h, 2), dtype))
    y = relay.nn.matmul(x, relay.var("w", relay.IncompleteType()), units=2)
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), dtype)
    x, w = relay.var("x", shape=(5, 10), dtype=dtype), relay.var("w", shape=(5, 2), dtype=dtype)
    f = relay.Function([x, w], relay.nn.matmul(x, w, units=2, transpose_a=True))
    a, b = np.random.rand(5, 10).astype(dtype), np.random.rand(5, 2).astype(dtype)
    np.testing.assert_allclose(run(f, a, b), np.dot(a.T.astype("float64"), b), rtol=1e-2)


@program("float16", "float32")
def dense_types_and_values(dtype):
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), dtype))
    y = relay.nn.dense(x, relay.var("w", relay.TensorType((2, w), dtype)), units=2)
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), dtype)
    wh, ww = te.size_var("wh"), te.size_var("ww")
    y = relay.nn.dense(relay.var("x", relay.TensorType((n, c, h, 2), dtype)), relay.var("w", relay.TensorType((ww, wh), dtype)))
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, ww), dtype)
    y = relay.nn.dense(relay.var("x", relay.TensorType((n, c, h, 2), dtype)), relay.var("w", relay.IncompleteType()), units=2)
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), dtype)
    x, w = relay.var("x", shape=(10, 5), dtype=dtype), relay.var("w", shape=(2, 5), dtype=dtype)
    a, b = np.random.rand(10, 5).astype(dtype), np.random.rand(2, 5).astype(dtype)
    np.testing.assert_allclose(run(relay.Function([x, w], relay.nn.dense(x, w)), a, b), a @ b.T, rtol=2e-2)


@program
def dense_of_mixed_dtypes():
    data_dtype, weight_dtype, out_dtype = "int8", "uint8", "uint8"
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), data_dtype))
    weight = relay.var("w", relay.TensorType((2, w), weight_dtype))
    y = relay.nn.dense(x, weight, units=2, out_dtype=out_dtype)
    assert "units=2" in y.astext()
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, c, h, 2), out_dtype)
    assert run_infer_type(yy.args[0]).checked_type.dtype == "int8"
    assert run_infer_type(yy.args[1]).checked_type.dtype == "uint8"


@program
def bitserial_dense_types():
    m, k = te.size_var("m"), te.size_var("k")
    x, w = relay.var("x", relay.TensorType((m, k), "int16")), relay.var("w", relay.TensorType((k, 32), "int16"))
    y = relay.nn.bitserial_dense(x, w, units=32)
    assert "units=8" not in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((m, 32), "int16")


@program(("int8", 32, 15), ("uint8", 16, 7))
def dense_of_bytes(dtype, m, k):
    x, w = relay.var("x", shape=(m, k), dtype=dtype), relay.var("w", shape=(32, k), dtype="int8")
    f = relay.Function([x, w], relay.nn.dense(x, w, out_dtype="int32"))
    a, b = np.random.randint(0, 100, (m, k)).astype(dtype), np.random.randint(-100, 100, (32, k)).astype("int8")
    with tvm.transform.PassContext(opt_level=3):
        out = run(f, a, b)
    np.testing.assert_equal(out, a.astype("int32") @ b.astype("int32").T)
