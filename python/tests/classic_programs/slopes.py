# SPDX-License-Identifier: Apache-2.0
"""Gradients of tensor expressions, against differences."""
import numpy as np
import tvm
from harness import program, raises
from tvm import te, tir, topi


def run(outputs, inputs, arrays):
    function = tvm.build(te.create_schedule([o.op for o in outputs]), [*inputs, *outputs], "llvm")
    results = [tvm.nd.empty(tuple(int(d) for d in o.shape), o.dtype) for o in outputs]
    function(*[tvm.nd.array(a) for a in arrays], *results)
    return [r.numpy() for r in results]


def check(make, *shapes, low=0.2, high=1.0):
    """Derivatives of the sum of weighted results, by te.gradient and by differences."""
    source = np.random.RandomState(len(shapes) + sum(map(sum, shapes)))
    inputs = [te.placeholder(s, dtype="float64", name=f"p{i}") for i, s in enumerate(shapes)]
    arrays = [source.uniform(low, high, s) for s in shapes]
    out = make(*inputs)
    weights = source.uniform(-1, 1, tuple(int(d) for d in out.shape))
    head = te.placeholder(weights.shape, dtype="float64", name="head")
    found = run(te.gradient(out, inputs, head=head), [*inputs, head], [*arrays, weights])
    value = tvm.build(te.create_schedule(out.op), [*inputs, out], "llvm")
    held = tvm.nd.empty(weights.shape, "float64")

    def total(values):
        value(*[tvm.nd.array(v) for v in values], held)
        return float((held.numpy() * weights).sum())
    for number, array in enumerate(arrays):
        assert found[number].shape == array.shape
        for place in source.permutation(array.size)[:6]:
            sides = []
            for step in (1e-5, -1e-5):
                moved = [a.copy() for a in arrays]
                moved[number].flat[place] += step
                sides.append(total(moved))
            np.testing.assert_allclose(found[number].flat[place], (sides[0] - sides[1]) / 2e-5, rtol=1e-4, atol=1e-6)


def product(a, b):
    k = te.reduce_axis((0, 3), name="k")
    return te.compute((4, 5), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))


def strided(a):
    k = te.reduce_axis((0, 3), name="k")
    return te.compute((4,), lambda i: te.sum(a[i * 2 + k] * a[i], axis=k))


def where(a):
    k = te.reduce_axis((0, 6), name="k")
    return te.compute((2,), lambda i: te.sum(a[i, k], axis=k, where=k > i))


ROWS = {
    "square": (lambda a: te.compute((3, 4), lambda i, j: a[i, j] * a[i, j] + a[j % 3, i]), (3, 4)), "product": (product, (4, 3), (3, 5)), "strided": (strided, (9,)), "where": (where, (2, 6)),
    "quotient": (lambda a, b: te.compute((3,), lambda i: a[i] / b[2 - i]), (3,), (3,)), "diagonal": (lambda a: te.compute((3,), lambda i: a[i, i]), (3, 3)),
    "max": (lambda a: topi.max(a, axis=1), (3, 5)), "min": (lambda a: topi.min(a, axis=0), (3, 5)), "prod": (lambda a: topi.prod(a, axis=1), (3, 4)), "softmax": (topi.nn.softmax, (2, 5)),
    "pad": (lambda a: topi.nn.pad(a, (1, 0), (0, 2)), (3, 4)), "transpose": (topi.transpose, (3, 4)), "reshape": (lambda a: topi.reshape(a, (6, 2)), (3, 4)),
    "concatenate": (lambda a, b: topi.concatenate([a, b], 1), (2, 3), (2, 2)), "split": (lambda a: topi.split(a, 2, 1)[1], (2, 4)), "select": (lambda a: te.compute((4,), lambda i: tir.Select(a[i] > 0.5, a[i] * 3.0, a[i])), (4,)),
    "if": (lambda a: te.compute((6,), lambda i: te.if_then_else(i < 2, a[i], a[i] * a[0])), (6,)), "power": (lambda a, b: te.compute((3,), lambda i: te.power(a[i], b[i])), (3,), (3,)),
    "dense": (lambda a, w: topi.nn.relu(topi.nn.dense(a, w)), (2, 4), (3, 4)), "conv2d": (lambda a, w: topi.nn.conv2d(a, w, 1, 1, 1), (1, 2, 5, 5), (3, 2, 3, 3)),
    "conv2d, 2 steps": (lambda a, w: topi.nn.conv2d(a, w, 2, 0, 1), (1, 2, 7, 7), (2, 2, 3, 3)), "pool": (lambda a: topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), (1, 1, 4, 4)),
    "both": (lambda a: topi.multiply(topi.exp(a), topi.sum(a, axis=0, keepdims=True)), (3, 2))}
for _name in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "sin", "cos", "tan", "erf", "atan"):
    ROWS[_name] = (getattr(topi, _name), (2, 3))


@program(*ROWS)
def of(name):
    check(*ROWS[name])


@program
def all_derivatives():
    a = te.placeholder((3,), name="a")
    (found,) = te.gradient(te.compute((3,), lambda i: te.exp(a[i])), [a])
    values = np.array([0.5, -1, 2], "float32")
    assert tuple(int(d) for d in found.shape) == (3, 3)
    np.testing.assert_allclose(run([found], [a], [values])[0], np.diag(np.exp(values)), rtol=1e-5)
    other = te.placeholder((2, 2), name="b")
    (none,) = te.gradient(te.compute((3,), lambda i: a[i]), [other])
    assert not run([none], [], [])[0].any()


@program
def what_has_none():
    a = te.placeholder((4,), name="a")
    raises(ValueError, te.gradient, te.extern((4,), [a], lambda i, o: tvm.tir.call_packed("nothing", i[0], o[0]), dtype="float32"), [a])
    raises(ValueError, te.gradient, te.compute((4,), lambda i: a[i]), [a], te.placeholder((3,)))
