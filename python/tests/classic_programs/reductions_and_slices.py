# SPDX-License-Identifier: Apache-2.0
"""Operators of level 4: reductions and slices."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.relay import create_executor
from tvm.relay.testing import run_infer_type

from harness import program, numbers


executor_kinds = ("graph", "vm", "debug")


def run(function, *arrays, kind="graph"):
    out = create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(function)(*arrays)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


# ---- level 4
@program(*[(n, d) for n in ("left_shift", "right_shift", "floor_divide", "floor_mod", "mod", "bitwise_and", "logical_or", "logical_xor") for d in ("int32", "int64", "uint8")])
def integer_pairs(name, dtype):
    kind = "bool" if name.startswith("logical") else dtype
    a, b = np.random.RandomState(1).randint(0, 2 if kind == "bool" else 100, (5, 10)).astype(kind), np.random.RandomState(2).randint(0 if kind == "bool" else 1, 2 if kind == "bool" else 7, (5, 10)).astype(kind)
    x, y = relay.var("x", relay.TensorType((5, 10), kind)), relay.var("y", relay.TensorType((5, 10), kind))
    z = getattr(relay, name)(x, y)
    assert run_infer_type(z).checked_type == relay.TensorType((5, 10), kind)
    np.testing.assert_equal(run(relay.Function([x, y], z), a, b), {"mod": np.fmod, "floor_mod": np.mod}.get(name, getattr(np, name, None))(a, b))


@program("less", "greater_equal", "equal", "not_equal")
def comparison_types(name):
    x, y = relay.var("x", relay.TensorType((10, 4), "float32")), relay.var("y", relay.TensorType((5, 10, 1), "float32"))
    z = getattr(relay, name)(x, y)
    assert run_infer_type(z).checked_type == relay.TensorType((5, 10, 4), "bool")
    a, b = np.random.rand(10, 4).astype("float32"), np.random.rand(5, 10, 1).astype("float32")
    np.testing.assert_equal(run(relay.Function([x, y], z), a, b), getattr(np, name)(a, b))


@program
def where_conditions():
    def check(x, y, c, dtype="float32"):
        v = [relay.var(n, relay.TensorType(a.shape, str(a.dtype))) for n, a in zip("cxy", (c, x, y))]
        z = relay.where(*v)
        for kind in executor_kinds:
            np.testing.assert_allclose(run(relay.Function(v, z), c, x, y, kind=kind), np.where(c, x, y), rtol=1e-5)
    shape = (3, 4)
    x, y = numbers(*shape), numbers(*shape, seed=8)
    check(x, y, np.random.uniform(-1, 1, shape) > 0)
    check(x, y, (np.random.uniform(-1, 1, shape) > 0).astype("int32"))
    check(np.array(1.0, "float32"), np.array(-1.0, "float32"), np.array([1, 0, 1], "bool"))
    check(np.arange(2).astype("float32"), np.arange(2).reshape(2, 1).astype("float32"), np.array([[True], [False]]))
    check(np.array(9, "int32"), np.arange(4).astype("int32"), np.array([[True, False, True, True]]))
    n = te.size_var("n")
    z = relay.where(relay.var("c", relay.TensorType((n, 4), "bool")), relay.var("x", relay.TensorType((n, 4))), relay.var("y", relay.TensorType((n, 4))))
    assert run_infer_type(z).checked_type == relay.TensorType((n, 4))


@program(*[(n, a) for n in ("sum", "max", "min", "prod", "mean", "variance", "std", "all", "any", "argmax", "argmin", "logsumexp") for a in (
    ((2, 3, 4), (1,), True, False), ((2, 3, 4), (1, 2), False, False), ((2, 3, 4), None, False, False), ((2, 3, 4), (0, 1), True, True), ((128, 24, 5), (0, 2), False, False))])
def reductions(name, case):
    shape, axis, keepdims, exclude = case
    if name in ("argmax", "argmin") and axis is not None and (len(axis) > 1):
        return
    dtype = "bool" if name in ("all", "any") else "float32"
    a = (np.random.RandomState(3).rand(*shape) > 0.5) if dtype == "bool" else np.random.RandomState(3).rand(*shape).astype(dtype)
    x = relay.var("x", relay.TensorType(shape, dtype))
    z = getattr(relay, name)(x, axis, keepdims, exclude)
    if axis:
        assert "axis=" in z.astext()
    if keepdims:
        assert "keepdims=" in z.astext()
    real = tuple(i for i in range(len(shape)) if i not in axis) if exclude else axis
    ref = {"variance": np.var, "logsumexp": lambda v, axis, keepdims: np.log(np.sum(np.exp(v), axis=axis, keepdims=keepdims))}.get(name) or getattr(np, name)
    if name.startswith("arg"):
        want = ref(a, axis=None if axis is None else axis[0]).astype("int32")
        if keepdims:
            want = np.expand_dims(want, axis[0])
    else:
        want = ref(a, axis=real, keepdims=keepdims)
    t = run_infer_type(z).checked_type
    assert tuple(int(s) for s in t.shape) == want.shape and t.dtype == ("int32" if name.startswith("arg") else dtype)
    np.testing.assert_allclose(run(relay.Function([x], z), a), want, rtol=1e-4)


@program
def reduction_types_of_sizes():
    d1, d2, d3 = (te.var(f"d{i}") for i in (1, 2, 3))
    x = relay.var("x", relay.TensorType((d1, d2, d3), "float32"))
    for op in (relay.sum, relay.max, relay.mean):
        assert run_infer_type(op(x)).checked_type == relay.TensorType((), "float32")
        assert run_infer_type(op(x, axis=2)).checked_type == relay.TensorType((d1, d2), "float32")
        assert run_infer_type(op(x, axis=2, keepdims=True)).checked_type == relay.TensorType((d1, d2, 1), "float32")
        assert run_infer_type(op(x, axis=(0, 2))).checked_type == relay.TensorType((d2,), "float32")
        assert run_infer_type(op(x, axis=(0,), exclude=True)).checked_type == relay.TensorType((d1,), "float32")


@program(True, False)
def the_last_of_equals(last):
    a = np.array([[3, 1, 3], [2, 2, 2]], "float32")
    x = relay.var("x", shape=a.shape)
    for name, want in (("argmax", [2, 2] if last else [0, 0]), ("argmin", [1, 2] if last else [1, 0])):
        z = getattr(relay, name)(x, axis=1, select_last_index=last)
        np.testing.assert_equal(run(relay.Function([x], z), a), want)
    assert ("select_last_index" in z.astext()) == last


@program
def mean_and_spread_together():
    a = numbers(2, 3, 4)
    x = relay.var("x", shape=a.shape)
    out = run(relay.Function([x], relay.Tuple(list(relay.mean_variance(x, axis=[1], keepdims=True)))), a)
    np.testing.assert_allclose(out[0], a.mean(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(out[1], a.var(1, keepdims=True), rtol=1e-4)
    out = run(relay.Function([x], relay.Tuple(list(relay.mean_std(x, axis=2)))), a)
    np.testing.assert_allclose(out[1], a.std(2), rtol=1e-4)
    y = relay.variance(x, axis=1, unbiased=True)
    np.testing.assert_allclose(run(relay.Function([x], y), a), a.var(1, ddof=1), rtol=1e-4)


@program(([0, 0, 0], [4, -5, 4], [1, -1, 2], (4, 2, 2)), ([0, 1, 0], [4, 4, 3], [2, 1, 1], (2, 3, 3)), ([1, 0, 0], [2, 2, 3], [1, 1, 2], None), ([1, -1, 0], [2, -3, 3], [1, -1, 1], None),
         ([1, 1, 0], [4, 4, 3], None, None), ([1, 1, 0], [4, 1000, 3], None, None), ([1, 1, 0], [4, 4], None, None), ([1, 1], [4, 4, 3], None, None))
def strided_slices(begin, end, strides, _):
    a = numbers(3, 4, 3)
    x = relay.var("x", relay.TensorType((3, 4, 3), "float32"))
    z = relay.strided_slice(x, begin=begin, end=end, strides=strides) if strides else relay.strided_slice(x, begin=begin, end=end)
    want = tvm.topi.testing.strided_slice_python(a, begin, end, strides or [1] * len(begin))
    zz = run_infer_type(z)
    assert tuple(int(s) for s in zz.checked_type.shape) == want.shape
    assert "begin=" in z.astext() and "end=" in z.astext()
    for kind in executor_kinds:
        np.testing.assert_allclose(run(relay.Function([x], z), a, kind=kind), want)


@program((([0, 1, 0], [4, 2, 3]), (3, 1, 3)), (([1, 1, 0], [-1, 3, -1]), (2, 3, 3)), (([1, 0, 0], [2, 2, 3]), (2, 2, 3)))
def strided_slices_by_size(case, want):
    begin, size = case
    a = numbers(3, 4, 3)
    x = relay.var("x", relay.TensorType((3, 4, 3), "float32"))
    z = relay.strided_slice(x, begin=begin, end=size, slice_mode="size")
    assert 'slice_mode="size"' in z.astext()
    ref = tvm.topi.testing.strided_slice_python(a, begin, size, [1, 1, 1], "size")
    np.testing.assert_allclose(run(relay.Function([x], z), a), ref)


@program(((3, 4, 3), [0, 0, 0], [4, 4, 4], [1, 1, 2], (3, 4, 2)), ((3, 4, 3), [1, 0], [2, 3], [1, 1], (1, 3, 3)), ((6, 6), [0, 0], [6, 6], [2, 3], (3, 2)))
def strided_sets(shape, begin, end, strides, vshape):
    a, v = numbers(*shape), numbers(*vshape, seed=4)
    x, y = relay.var("x", shape=shape), relay.var("v", shape=vshape)
    z = relay.strided_set(x, y, begin=relay.const(begin), end=relay.const(end), strides=relay.const(strides))
    want = a.copy()
    want[tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides))] = v
    assert run_infer_type(z).checked_type == relay.TensorType(shape)
    np.testing.assert_allclose(run(relay.Function([x, y], z), a, v, kind="vm"), want)


@program
def slices_of_what_a_run_says():
    x = relay.var("x", relay.TensorType((relay.Any(), 4), "float32"))
    b, e, s = (relay.var(n, shape=(2,), dtype="int64") for n in "bes")
    z = relay.strided_slice(x, b, e, s)
    f = relay.Function([x, b, e, s], z)
    t = run_infer_type(f).ret_type
    assert all(isinstance(d, tvm.tir.Any) for d in t.shape)
    a = numbers(5, 4)
    np.testing.assert_allclose(run(f, a, np.array([1, 0]), np.array([4, 4]), np.array([2, 1]), kind="vm"), a[1:4:2])


@program("float32", "float16", "int32", "int8")
def power_and_comparison_of_scalars(dtype):
    x = relay.var("x", shape=(3,), dtype=dtype)
    a = np.array([1, 2, 3], dtype)
    np.testing.assert_allclose(run(relay.Function([x], x + relay.const(1, dtype)), a), a + 1)
    np.testing.assert_allclose(run(relay.Function([x], relay.power(x, relay.const(2, dtype))), a), a ** 2)
    np.testing.assert_equal(run(relay.Function([x], x > relay.const(1, dtype)), a), a > 1)
