# SPDX-License-Identifier: Apache-2.0
"""Gradients beside differences of values."""
import numpy as np
import tvm
from harness import numbers, program, raises
from tvm import relay
from tvm.relay.testing import check_grad, run_infer_type
from tvm.relay.transform import gradient


def var(name, *shape, dtype="float64"):
    return relay.var(name, relay.TensorType(shape, dtype))


def check(body, *params, inputs=None, low=0.2, high=0.9, **kw):
    f = relay.Function(list(params), body)
    check_grad(f, inputs or [numbers(*[int(d) for d in p.type_annotation.shape], dtype="float64", low=low, high=high) for p in params], eps=1e-4, rtol=1e-2, atol=1e-3, **kw)


X, Y = var("x", 3, 4), var("y", 3, 4)
UNARY = ["log", "exp", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "atanh", "sigmoid", "erf", "abs", "negative", "log2", "log10", "copy"]


@program(*UNARY)
def unary(name):
    check(getattr(relay, name)(X), X)


@program("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")
def binary(name):
    check(getattr(relay, name)(X, Y), X, Y, inputs=[numbers(3, 4, dtype="float64", low=0.2, high=0.9, seed=s) for s in (1, 2)])


@program(*[(n, s) for n in ("add", "subtract", "multiply", "divide", "power") for s in ((4,), (1, 4), (3, 1), (1, 1))])
def broadcast(name, shape):
    y = var("y", *shape)
    check(getattr(relay, name)(X, y), X, y)
    check(getattr(relay, name)(y, X), y, X)


OTHER = {
    "sum": lambda: relay.sum(X, axis=1), "sum kept": lambda: relay.sum(X, axis=1, keepdims=True), "sum but": lambda: relay.sum(X, axis=1, exclude=True), "mean": lambda: relay.mean(X, axis=0), "mean of all": lambda: relay.mean(X), "variance": lambda: relay.variance(X, axis=1), "max": lambda: relay.max(X, axis=1), "min": lambda: relay.min(X, axis=0),
    "logsumexp": lambda: relay.logsumexp(X, axis=1), "reshape": lambda: relay.reshape(X, (2, 6)), "transpose": lambda: relay.transpose(X, (1, 0)), "expand_dims": lambda: relay.expand_dims(X, 1), "squeeze": lambda: relay.squeeze(relay.expand_dims(X, 1), [1]), "cast": lambda: relay.cast(X, "float32"), "clip": lambda: relay.clip(X, 0.3, 0.6), "copy": lambda: relay.copy(X),
    "relu": lambda: relay.nn.relu(X - relay.const(0.5, "float64")), "leaky": lambda: relay.nn.leaky_relu(X - relay.const(0.5, "float64"), 0.2), "softmax": lambda: relay.nn.softmax(X) * relay.const(numbers(3, 4, dtype="float64")), "log_softmax": lambda: relay.nn.log_softmax(X, 1) * relay.const(numbers(3, 4, dtype="float64")), "strided_slice": lambda: relay.strided_slice(X, [1, 0], [3, 4], [1, 2]), "split": lambda: relay.split(X, 2, axis=1)[1],
    "concatenate": lambda: relay.concatenate([X, X * X], 1), "stack": lambda: relay.stack([X, X * X], 0), "where": lambda: relay.where(relay.greater(X, relay.const(0.5, "float64")), X, X * X), "take": lambda: relay.take(X, relay.const([0, 2]), axis=0), "gather_nd": lambda: relay.gather_nd(X, relay.const([[0, 1], [1, 0]])), "tile": lambda: relay.tile(X, (2, 1)), "repeat": lambda: relay.repeat(X, 2, 1), "reverse": lambda: relay.reverse(X, 1), "zeros_like": lambda: relay.zeros_like(X) + X, "ones_like": lambda: relay.ones_like(X) * X,
    "broadcast_to": lambda: relay.broadcast_to(X, (2, 3, 4)), "broadcast_to_like": lambda: relay.broadcast_to_like(X, relay.const(np.ones((2, 3, 4)))), "reshape_like": lambda: relay.reshape_like(X, relay.const(np.ones((4, 3)))), "collapse_sum_like": lambda: relay.collapse_sum_like(X, relay.const(np.ones((4,)))), "collapse_sum_to": lambda: relay.collapse_sum_to(X, (1, 4)), "full_like": lambda: relay.full_like(X, relay.const(2.0, "float64")) * X, "pad": lambda: relay.nn.pad(X, ((1, 0), (0, 2))), "batch_flatten": lambda: relay.nn.batch_flatten(relay.reshape(X, (2, 2, 3))), "dense": lambda: relay.nn.dense(X, relay.const(numbers(5, 4, dtype="float64"))), "matmul": lambda: relay.nn.matmul(X, relay.const(numbers(4, 5, dtype="float64"))),
    "std": lambda: relay.std(X, axis=1), "one": lambda: X * X * X, "layout": lambda: relay.layout_transform(relay.reshape(X, (1, 3, 2, 2)), "NCHW", "NHWC"), "cross_entropy": lambda: relay.nn.cross_entropy(X, relay.const(np.full((3, 4), 0.25))), "with_logits": lambda: relay.nn.cross_entropy_with_logits(X, relay.const(np.full((3, 4), 0.25))), "stop": lambda: relay.annotation.stop_fusion(X) * X, "checkpoint": lambda: relay.annotation.checkpoint(relay.exp(X)),
}


@program(*OTHER)
def operator(name):
    check(OTHER[name](), X)


def layers():
    d, w = var("d", 1, 2, 5, 5), var("w", 3, 2, 3, 3)
    yield "conv2d", relay.nn.conv2d(d, w, kernel_size=(3, 3), channels=3), (d, w)
    yield "conv2d padded", relay.nn.conv2d(d, w, kernel_size=(3, 3), channels=3, padding=(1, 1)), (d, w)
    yield "conv2d strides", relay.nn.conv2d(d, w, kernel_size=(3, 3), channels=3, strides=(2, 2)), (d, w)
    w1 = var("w", 3, 2, 1, 1)
    yield "conv2d 1x1", relay.nn.conv2d(d, w1, kernel_size=(1, 1), channels=3), (d, w1)
    yield "max_pool2d", relay.nn.max_pool2d(d, (2, 2), (2, 2)), (d,)
    yield "max_pool2d overlapping", relay.nn.max_pool2d(d, (3, 3), (1, 1), padding=(1, 1)), (d,)
    yield "avg_pool2d", relay.nn.avg_pool2d(d, (2, 2), (1, 1)), (d,)
    yield "avg_pool2d padded", relay.nn.avg_pool2d(d, (3, 3), (2, 2), padding=(1, 1), count_include_pad=True), (d,)
    yield "global_avg_pool2d", relay.nn.global_avg_pool2d(d), (d,)
    a, b = var("a", 2, 3, 4), var("b", 2, 5, 4)
    yield "batch_matmul", relay.nn.batch_matmul(a, b), (a, b)
    yield "batch_matmul plain", relay.nn.batch_matmul(a, var("b", 2, 4, 5), transpose_b=False), None
    x, k = var("x", 3, 4), var("k", 5, 4)
    yield "dense", relay.nn.dense(x, k), (x, k)
    yield "matmul", relay.nn.matmul(x, k, transpose_b=True), (x, k)
    bias = var("b", 4)
    yield "bias_add", relay.nn.bias_add(x, bias), (x, bias)


@program(*layers())
def layer(name, body, params):
    check(body, *(params or relay.analysis.free_vars(body)))


@program("first_order", "higher_order")
def modes(mode):
    x = var("x", 2, 2)
    f = run_infer_type(relay.Function([x], relay.log(x) * x))
    back = run_infer_type(gradient(f, mode=mode))
    t = relay.TensorType((2, 2), "float64")
    assert back.checked_type == relay.FuncType([t], relay.TupleType([t, relay.TupleType([t])]))
    data = numbers(2, 2, dtype="float64", low=0.5)
    data = np.abs(data) + 0.5
    value, (grad,) = relay.create_executor(device=tvm.cpu(), target="llvm").evaluate(back)(data)
    np.testing.assert_allclose(value.numpy(), np.log(data) * data)
    np.testing.assert_allclose(grad.numpy(), 1 + np.log(data))


@program
def second_order():
    x = var("x")
    f = relay.Function([x], x * x * x)
    once = run_infer_type(gradient(run_infer_type(f)))
    y = var("y")
    twice = run_infer_type(gradient(run_infer_type(relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(relay.Call(once, [y]), 1), 0)))))
    value, (grad,) = relay.create_executor().evaluate(twice)(np.float64(3))
    assert abs(value.numpy() - 27) < 1e-9 and abs(grad.numpy() - 18) < 1e-9


@program
def through_lets_tuples_and_branches():
    x = var("x", 3)
    v = relay.Var("v")
    body = relay.Let(v, relay.Tuple([x * x, x]), relay.TupleGetItem(v, 0) + relay.TupleGetItem(v, 1))
    for mode in ("first_order", "higher_order"):
        back = run_infer_type(gradient(run_infer_type(relay.Function([x], body)), mode=mode)) if mode == "higher_order" else None
        if back is not None:
            _, (g,) = relay.create_executor().evaluate(back)(np.array([1.0, 2, 3]))
            np.testing.assert_allclose(g.numpy(), [3, 5, 7])
    c = relay.var("c", "bool")
    both = run_infer_type(gradient(run_infer_type(relay.Function([x], relay.If(relay.const(True), x * x, x))), mode="higher_order"))
    np.testing.assert_allclose(relay.create_executor().evaluate(both)(np.array([1.0, 2, 3]))[1][0].numpy(), [2, 4, 6])


@program
def of_closures():
    x, y = var("x", 2), var("y", 2)
    f = relay.Function([y], y * y)
    back = run_infer_type(gradient(run_infer_type(relay.Function([x], relay.Call(f, [relay.Call(f, [x])]))), mode="higher_order"))
    np.testing.assert_allclose(relay.create_executor().evaluate(back)(np.array([1.0, 2]))[1][0].numpy(), [4, 32])


@program
def whole_module():
    mod = tvm.IRModule()
    x = var("x", 2)
    mod["main"] = relay.Function([x], relay.exp(x))
    mod["other"] = relay.Function([x], x * x)
    out = relay.transform.FirstOrderGradient()(relay.transform.InferType()(mod))
    for name, want in (("main", np.exp([1.0, 2])), ("other", [2, 4])):
        value, (g,) = relay.create_executor(mod=out).evaluate(out[name])(np.array([1.0, 2]))
        np.testing.assert_allclose(g.numpy(), want)


@program
def what_has_none():
    x = var("x", 2)
    raises(Exception, lambda: gradient(run_infer_type(relay.Function([x], relay.argsort(x)))))
