# SPDX-License-Identifier: Apache-2.0
"""Operators of level 3: moves of data."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.error import TVMError
from tvm.relay import create_executor
from tvm.relay.testing import check_grad, run_infer_type

from harness import program, raises, numbers


executor_kinds = ("graph", "vm", "debug")


def run(function, *arrays, kind="graph"):
    out = create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(function)(*arrays)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


@program
def zeros_and_ones():
    for op, ref in ((relay.zeros, np.zeros), (relay.ones, np.ones)):
        y = op(shape=(124, 50), dtype="float64")
        assert run_infer_type(y).checked_type == relay.TensorType((124, 50), "float64")
        intrp_res = create_executor().evaluate(y).numpy()
        np.testing.assert_allclose(intrp_res, ref((124, 50), "float64"))


@program("zeros_like", "ones_like", "ceil", "floor", "trunc", "round", "abs", "copy", "negative", "sign")
def shape_stays(name):
    x = relay.var("x", relay.TensorType((8, 9, 4), "float32"))
    y = getattr(relay, name)(x)
    assert run_infer_type(y).checked_type == relay.TensorType((8, 9, 4), "float32")
    a = numbers(8, 9, 4, low=-3, high=3)
    want = {"copy": lambda x: x, "round": np.round}.get(name) or getattr(np, name)
    np.testing.assert_allclose(run(relay.Function([x], y), a), want(a))


@program
def cast_and_astype():
    x = relay.var("x", relay.TensorType((8, 9, 4), "float32"))
    y = x.astype("int32")
    yy = run_infer_type(y)
    assert "dtype=" in yy.astext()
    assert yy.checked_type == relay.TensorType((8, 9, 4), "int32")
    y = relay.cast(x, "int32")
    assert "dtype=" in run_infer_type(y).astext()


@program("int32", "float32")
def clip_of_a_dtype(dtype):
    a = relay.var("a", relay.TensorType((10, 4), dtype))
    y = relay.clip(a, 1.0, 4.0)
    data = (np.random.rand(10, 4) * 8).astype(dtype)
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), dtype)
    np.testing.assert_allclose(create_executor().evaluate(y, {a: data}).numpy(), np.clip(data, 1.0, 4.0))


@program
def clip_type_inference():
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    y = relay.clip(relay.var("a", relay.TensorType((n, t, d))), 0.0, 5.0)
    assert "a_min=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, t, 100))


@program((0.75, 0), (0.5, 2), (1.5, 0), (-0.3, 1))
def fixed_point_multiply(scale, shift):
    a = relay.var("a", relay.TensorType((10, 4), "int32"))
    q = int(round(scale * (1 << 31))) if abs(scale) < 1 else int(round(scale / 2 * (1 << 31)))
    s = shift if abs(scale) < 1 else shift + 1
    y = relay.fixed_point_multiply(a, q, s)
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), "int32")
    data = 23 * np.ones((10, 4), "int32")
    exact = 23 * scale * 2.0 ** shift
    out = create_executor().evaluate(y, {a: data}).numpy()
    assert np.all(np.abs(out - exact) <= 1), (out[0, 0], exact)


@program
def reinterpret_of_a_variable():
    a = relay.var("a", relay.TensorType((1000, 4), "float32"))
    y = relay.reinterpret(a, "int32")
    assert run_infer_type(y).checked_type == relay.TensorType((1000, 4), "int32")
    data = np.random.randn(1000, 4).astype("float32") * 1000
    np.testing.assert_equal(create_executor().evaluate(y, {a: data}).numpy(), data.view("int32"))


@program(("fast_exp", -10, 10, np.exp), ("fast_tanh", -5, 5, np.tanh), ("fast_erf", -4, 4, None))
def fast_functions(name, low, high, ref):
    import math
    a = relay.var("a", relay.TensorType((1000,), "float32"))
    y = getattr(relay.op, name)(a)
    assert run_infer_type(y).checked_type == relay.TensorType((1000,), "float32")
    data = np.linspace(low, high, 1000, dtype="float32")
    ref = ref or np.vectorize(math.erf)
    np.testing.assert_allclose(create_executor().evaluate(y, {a: data}).numpy(), ref(data), rtol=5e-5, atol=1e-4)


@program((((1, 3, 2, 5), "float32", None),), (((1, 3, 1), "float32", [0]),), (((1, 2, 1, 2, 1), "float32", [0, 2]),), (((1, 3, 1), "int32", [-1]),))
def squeeze_values(case):
    shape, dtype, axis = case
    x = relay.var("x", relay.TensorType(shape, dtype))
    for kind in executor_kinds:
        data = np.random.random_sample(shape).astype(dtype)
        sq = relay.squeeze(x, axis=axis)
        np.testing.assert_allclose(create_executor(kind).evaluate(relay.Function([x], sq))(data).numpy(), np.squeeze(data, axis=None if axis is None else tuple(axis)))


@program
def squeeze_types():
    n, t, d = 1, 4, 1
    x = relay.var("x", relay.TensorType((n, t, d), "float32"))
    assert "axis=" in relay.squeeze(x, axis=(2,)).astext()
    assert run_infer_type(relay.squeeze(x, axis=(2,))).checked_type == relay.TensorType((1, 4), "float32")
    y = relay.squeeze(x)
    assert "axis=" not in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((4,), "float32")
    raises((TVMError,), run_infer_type, relay.squeeze(relay.var("x", relay.TensorType((2, 1), "float32")), axis=[0]))


@program
def transpose_types():
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x = relay.var("x", relay.TensorType((n, t, d), "float32"))
    y = relay.transpose(x, axes=(1, 0, 2))
    assert "axes=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((t, n, 100), "float32")
    y = relay.transpose(x)
    assert "axes=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((100, t, n), "float32")


@program(((2, 3, 4), (8, 3)), ((4, 7), (2, 7, 2)), ((2, 3, 4), (4, 0, 2)), ((2, 3, 4), (2, 0, 0)), ((2, 3, 4), (0, -1)), ((2, 3, 4), (-1, 0)), ((2, 3, 4), (2, -2)), ((2, 3, 4), (-2, 1, 1)),
         ((2, 3, 4), (-3, 4)), ((2, 3, 4, 5), (-3, -3)), ((2, 3, 4), (0, -3)), ((2, 3, 4), (-3, -2)), ((2, 3, 4), (-4, 1, 2, -2)), ((2, 3, 4), (2, -4, -1, 3, -2)), ((1,), ()))
def reshape_codes(shape, new):
    want = {((2, 3, 4), (8, 3)): (8, 3), ((4, 7), (2, 7, 2)): (2, 7, 2), ((2, 3, 4), (4, 0, 2)): (4, 3, 2), ((2, 3, 4), (2, 0, 0)): (2, 3, 4), ((2, 3, 4), (0, -1)): (2, 12),
            ((2, 3, 4), (-1, 0)): (8, 3), ((2, 3, 4), (2, -2)): (2, 3, 4), ((2, 3, 4), (-2, 1, 1)): (2, 3, 4, 1, 1), ((2, 3, 4), (-3, 4)): (6, 4), ((2, 3, 4, 5), (-3, -3)): (6, 20),
            ((2, 3, 4), (0, -3)): (2, 12), ((2, 3, 4), (-3, -2)): (6, 4), ((2, 3, 4), (-4, 1, 2, -2)): (1, 2, 3, 4), ((2, 3, 4), (2, -4, -1, 3, -2)): (2, 1, 3, 4), ((1,), ()): ()}[shape, new]
    x = relay.var("x", relay.TensorType(shape, "float32"))
    z = relay.reshape(x, newshape=new)
    zz = run_infer_type(z)
    assert "newshape=" in z.astext()
    assert zz.checked_type == relay.ty.TensorType(want, "float32")
    func = relay.Function([x], z)
    check_grad(func)
    a = numbers(*shape)
    for kind in executor_kinds:
        np.testing.assert_allclose(create_executor(kind).evaluate(func)(a).numpy(), a.reshape(want), rtol=1e-5)


@program(((2, 3), (-1, -1)), ((2, 3), (4,)), ((2, 3, 4), (5, -1)), ((2, 3), (-5,)), ((2, 3), (0, 0, 0)))
def reshape_refused(shape, new):
    raises((TVMError, Exception), lambda: run_infer_type(relay.reshape(relay.var("x", relay.TensorType(shape)), new)))


@program
def reshape_like_types():
    x, y = relay.var("x", relay.TensorType((1, 2, 3), "float32")), relay.var("y", relay.TensorType((1, 6), "float32"))
    assert run_infer_type(relay.reshape_like(x, y)).checked_type == relay.TensorType((1, 6), "float32")
    n, c, h, w = te.size_var("n"), 2, 3, te.size_var("w")
    x, y = relay.var("x", relay.TensorType((n, c, h, w), "float32")), relay.var("y", relay.TensorType((n, 8, 8), "float32"))
    assert run_infer_type(relay.reshape_like(x, y)).checked_type == relay.TensorType((n, 8, 8), "float32")
    x, y = relay.var("x", relay.TensorType((30, 70, 80), "float32")), relay.var("y", relay.TensorType((20, 5, 30, 100), "float32"))
    raises((TVMError,), run_infer_type, relay.reshape_like(x, y))


@program(((1, 2, 3, 4), (1, 6, 5), dict(lhs_begin=1, lhs_end=3, rhs_begin=1, rhs_end=2), (1, 6, 4)), ((30, 40), (3, 10, 4, 10), dict(lhs_end=1, rhs_end=2), (3, 10, 40)),
         ((1, 2, 3), (4, 2, 3, 1), dict(lhs_begin=0, lhs_end=1, rhs_begin=3), (1, 2, 3)), ((2, 12), (7, 3, 4), dict(lhs_begin=1, rhs_begin=-2), (2, 3, 4)))
def reshape_like_parts(shape, other, attrs, want):
    x, y = relay.var("x", relay.TensorType(shape, "float32")), relay.var("y", relay.TensorType(other, "float32"))
    z = relay.reshape_like(x, y, **attrs)
    assert run_infer_type(z).checked_type == relay.TensorType(want, "float32")
    a, b = numbers(*shape), numbers(*other)
    for kind in executor_kinds:
        np.testing.assert_allclose(run(relay.Function([x, y], z), a, b, kind=kind), a.reshape(want))


@program(((te.var("d1"),), (1,), (1,), 0), ((4,), (1, 2), (1, 2), None), ((3, 3, 3), (1,), (1, 3, 3), 0), ((te.var("a"), te.var("b")), (te.var("c"), te.var("d"), te.var("e")), None, 1))
def take_types(dshape, ishape, want, axis):
    if want is None:
        want = (dshape[0],) + ishape
    x, i = relay.var("x", relay.TensorType(dshape, "float32")), relay.var("indices", relay.TensorType(ishape, "int32"))
    y = relay.take(x, i, axis=axis)
    assert run_infer_type(y).checked_type == relay.TensorType(want, "float32")


@program(*[(s, i, a, m, t) for t in ("int32", "int64", "uint32") for s, i, a, m in (((4,), [1], None, "clip"), ((4,), [[0, 1, 2, 3]], None, "clip"), ((3, 3, 3), [[11, 25]], None, "clip"), ((3, 3, 3), [1, 2], 1, "clip"),
                                                                                  ((3, 4), [0, 5], 1, "wrap"), ((3, 4), [2, 1], 0, "fast"))])
def take_values(shape, index, axis, mode, dtype):
    a, i = numbers(*shape), np.array(index).astype(dtype)
    x, v = relay.var("x", shape=shape), relay.var("i", shape=i.shape, dtype=dtype)
    y = relay.take(x, v, axis=axis, mode=mode)
    want = np.take(a, i.astype("int64"), axis=axis, mode="clip" if mode == "fast" else mode)
    np.testing.assert_allclose(run(relay.Function([x, v], y), a, i), want)


@program
def split_types():
    idxd = tvm.tir.indexdiv
    d1, d2, d3, d4 = (te.var(f"d{i}") for i in range(1, 5))
    axis = te.var("axis")

    def verify(shape, indices, want, axis=None):
        y = relay.split(relay.var("x", relay.TensorType(shape, "float32")), indices, axis=axis)
        assert run_infer_type(y.astuple()).checked_type == want
    T = relay.TensorType
    verify((5, 5, 2, 2), 5, relay.ty.TupleType(tvm.runtime.convert([T((5, 1, 2, 2), "float32")] * 5)), axis=1)
    verify((5, 5, 2, 2), 5, relay.ty.TupleType(tvm.runtime.convert([T((1, 5, 2, 2), "float32")] * 5)), axis=0)
    verify((d1, d2, d3, d4), 4, relay.ty.TupleType(tvm.runtime.convert([T((d1, d2, idxd(d3, 4), d4), "float32")] * 4)), axis=2)
    verify((d1, d2, d3, d4), 2, relay.ty.TupleType(tvm.runtime.convert([T((idxd(d1, 2), d2, d3, d4), "float32")] * 2)), axis=0)
    verify((d1, d2, d3, d4), (2, 4, 7), relay.ty.TupleType(tvm.runtime.convert([T((d1, 2, d3, d4)), T((d1, 2, d3, d4)), T((d1, 3, d3, d4)), T((d1, (d2 - 7), d3, d4))])), axis=1)


@program
def full_types_and_values():
    y = relay.full(relay.var("x", relay.TensorType((), "int8")), ())
    assert run_infer_type(y).checked_type == relay.TensorType((), "int8")
    x = relay.var("x", relay.TensorType((), "float32"))
    y = relay.full(x, (1, 2), "int8")
    assert "shape=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((1, 2), "int8")
    for fill, shape, dtype in ((4, (1, 3, 4, 4), "int32"), (4, (1, 3, 4, 4), "int64"), (4.0, (2, 50), "float32")):
        for kind in executor_kinds:
            v = relay.var("v", relay.TensorType((), dtype))
            np.testing.assert_equal(run(relay.Function([v], relay.full(v, shape, dtype)), np.array(fill, dtype), kind=kind), np.full(shape, fill, dtype))
    raises((TVMError,), run_infer_type, relay.full(relay.var("x", shape=(2,)), (1, 2)))


@program("int32", "int64", "float32")
def full_like_values(dtype):
    base = relay.var("base", relay.TensorType((1, 2, 3), dtype))
    fill = relay.var("fill", relay.TensorType((), dtype))
    y = relay.full_like(base, fill)
    assert run_infer_type(y).checked_type == relay.TensorType((1, 2, 3), dtype)
    n, c, h, w = te.size_var("n"), 2, 3, te.size_var("w")
    y2 = relay.full_like(relay.var("base", relay.TensorType((n, c, h, w), "float32")), relay.var("fill", relay.TensorType((), "float32")))
    assert run_infer_type(y2).checked_type == relay.TensorType((n, c, h, w), "float32")
    a = np.random.uniform(0, 9, (1, 2, 3)).astype(dtype)
    np.testing.assert_equal(run(relay.Function([base, fill], y), a, np.array(5, dtype)), np.full_like(a, 5))


@program
def leaky_relu_types_and_values():
    n, c, h, w = (te.size_var(v) for v in "nchw")
    y = relay.nn.leaky_relu(relay.var("x", relay.TensorType((n, c, h, w), "float32")), alpha=0.1)
    assert "alpha=0.1" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, w), "float32")
    x = relay.var("x", relay.TensorType((1, 5, 10, 10), "float32"))
    z = run_infer_type(relay.nn.leaky_relu(x, alpha=0.1))
    assert "alpha=0.1" in z.astext()
    a = numbers(1, 5, 10, 10)
    np.testing.assert_allclose(run(relay.Function([x], z), a), np.where(a > 0, a, a * 0.1), rtol=1e-5)


@program(((1, 5, 10, 10), (5,), 1, (1, 5, 10, 10)), ((1, 10, 10, 5), (5,), 3, None), ((2, 3), (3,), 1, None), ((3, 4), (3,), 0, None))
def prelu_values(shape, alpha, axis, _):
    x, al = relay.var("data", relay.TensorType(shape)), relay.var("alpha", relay.TensorType(alpha))
    z = relay.nn.prelu(x, al, axis=axis)
    if axis == 1:
        assert "axis" not in z.astext()
    else:
        assert "axis" in z.astext()
    zz = run_infer_type(z)
    assert zz.checked_type == relay.TensorType(shape)
    assert run_infer_type(relay.nn.prelu(x, relay.var("alpha", relay.IncompleteType()), axis=axis)).args[1].checked_type == relay.TensorType(alpha)
    a, b = numbers(*shape), numbers(*alpha)
    b2 = b.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    np.testing.assert_allclose(run(relay.Function([x, al], z), a, b), (a < 0) * (a * b2) + (a >= 0) * a, rtol=1e-5)


@program((None, 20, None, "int32"), (None, 20, 2, "int32"), (1, 20, None, "float32"), (1, 20, 1.5, "float32"), (20, 1, -1, "int64"), (1.5, 9, 2.5, "float32"))
def arange_values(start, stop, step, dtype):
    for kind in executor_kinds:
        if start is None and step is None:
            x, ref = relay.arange(relay.const(stop, dtype=dtype), dtype=dtype), np.arange(stop).astype(dtype)
        elif start is None:
            x, ref = relay.arange(relay.const(stop, dtype=dtype), step=relay.const(step, dtype=dtype), dtype=dtype), np.arange(stop, step=step).astype(dtype)
        elif step is None:
            x, ref = relay.arange(relay.const(start, dtype=dtype), relay.const(stop, dtype=dtype), dtype=dtype), np.arange(start, stop).astype(dtype)
        else:
            x, ref = relay.arange(relay.const(start, dtype=dtype), relay.const(stop, dtype=dtype), relay.const(step, dtype=dtype), dtype=dtype), np.arange(start, stop, step).astype(dtype)
        np.testing.assert_allclose(run(relay.Function([], x), kind=kind), ref, rtol=1e-5)


@program(((3, 5), "ij"), ((3, 5), "xy"), ((4,), "ij"), ((2, 3, 4), "xy"), ((2, 3, 4), "ij"))
def meshgrid_values(lengths, indexing):
    variables = [relay.var(f"x{i}", shape=(n,)) for i, n in enumerate(lengths)]
    arrays = [numbers(n, seed=i) for i, n in enumerate(lengths)]
    z = relay.meshgrid(variables, indexing=indexing)
    func = relay.Function(variables, z.astuple())
    for kind in executor_kinds:
        for got, want in zip(run(func, *arrays, kind=kind), np.meshgrid(*arrays, indexing=indexing)):
            np.testing.assert_allclose(got, want)
    zz = run_infer_type(z.astuple())
    assert all(t == relay.TensorType(np.meshgrid(*arrays, indexing=indexing)[0].shape) for t in zz.checked_type.fields)


@program(((2, 3, 4), (3, 2, 1)), ((2, 3, 4), (1, 2)), ((2, 3), (3, 2, 1)))
def tile_values(shape, reps):
    x = relay.var("x", relay.TensorType(shape, "float32"))
    z = relay.tile(x, reps=reps)
    a = numbers(*shape)
    zz = run_infer_type(z)
    assert zz.checked_type == relay.TensorType(np.tile(a, reps).shape)
    check_grad(relay.Function([x], z))
    for kind in executor_kinds:
        np.testing.assert_allclose(run(relay.Function([x], z), a, kind=kind), np.tile(a, reps))


@program
def repeat_and_stack():
    x = relay.var("x", relay.TensorType((3, 2, 4), "float32"))
    a = numbers(3, 2, 4)
    for repeats, axis in ((3, -2), (2, 0), (4, -1)):
        z = relay.repeat(x, repeats, axis)
        assert run_infer_type(z).checked_type == relay.TensorType(np.repeat(a, repeats, axis).shape)
        np.testing.assert_allclose(run(relay.Function([x], z), a), np.repeat(a, repeats, axis))
    for axis in (0, 1, 2, 3, -1, -2):
        y = relay.var("y", relay.TensorType((3, 2, 4), "float32"))
        z = relay.stack(relay.Tuple([x, y, x]), axis=axis)
        assert run_infer_type(z).checked_type == relay.TensorType(np.stack([a, a, a], axis).shape)
        np.testing.assert_allclose(run(relay.Function([x, y], z), a, a + 1), np.stack([a, a + 1, a], axis))


@program
def stack_of_a_tuple_that_is_a_parameter():
    t = relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((2, 3))])
    p = relay.var("p", t)
    f = relay.Function([p], relay.stack(p, axis=1))
    assert run_infer_type(f).ret_type == relay.TensorType((2, 2, 3))
    f = relay.Function([p], relay.concatenate(p, axis=0))
    assert run_infer_type(f).ret_type == relay.TensorType((4, 3))
    a = numbers(2, 3)
    for kind in ("vm", "debug"):
        out = create_executor(kind).evaluate(f)((tvm.nd.array(a), tvm.nd.array(a)))
        np.testing.assert_allclose(out.numpy(), np.concatenate([a, a]))


@program
def reverse_and_reverse_sequence():
    x = relay.var("x", relay.TensorType((2, 3, 4), "float32"))
    a = numbers(2, 3, 4)
    for axis in (1, -1):
        np.testing.assert_allclose(run(relay.Function([x], relay.reverse(x, axis=axis)), a), np.flip(a, axis))
    data = np.array(np.arange(0, 16)).reshape([4, 4]).astype("int32")
    for lengths, batch, seq, want in (([1, 2, 3, 4], 1, 0, [[0, 5, 10, 15], [4, 1, 6, 11], [8, 9, 2, 7], [12, 13, 14, 3]]),
                                      ([1, 2, 3, 4], 0, 1, [[0, 1, 2, 3], [5, 4, 6, 7], [10, 9, 8, 11], [15, 14, 13, 12]])):
        d, l = relay.var("d", shape=(4, 4), dtype="int32"), relay.const(lengths, "int64")
        z = relay.reverse_sequence(d, l, seq, batch)
        assert run_infer_type(z).checked_type == relay.TensorType((4, 4), "int32")
        np.testing.assert_equal(run(relay.Function([d], z), data), want)
    raises(Exception, lambda: run_infer_type(relay.reverse_sequence(relay.const(data), relay.const([1, 2, 3], "int64"), 1, 0)))


@program(((10,), (5,), 0), ((10, 5), (4, 5), -2), ((6, 7), (6, 3), 1), ((2, 3, 4), (1, 3, 4), 0), ((2, 3, 4), (2, 2, 4), 1), ((4, 2, 1, 3), (4, 1, 1, 3), 1))
def scatter_and_add(shape, ishape, axis):
    data = numbers(*shape)
    updates = numbers(*ishape, seed=3)
    rows = np.random.RandomState(4)
    index = np.argsort(rows.rand(*[shape[axis % len(shape)] if d == axis % len(shape) else n for d, n in enumerate(ishape)]), axis=axis)
    index = np.take(index, range(ishape[axis]), axis=axis).astype("int64")
    d, i, u = relay.var("d", shape=shape), relay.var("i", shape=ishape, dtype="int64"), relay.var("u", shape=ishape)
    want = data.copy()
    np.put_along_axis(want, index, updates, axis)
    added = data.copy()
    np.put_along_axis(added, index, np.take_along_axis(added, index, axis) + updates, axis)
    for kind in executor_kinds:
        z = relay.op.scatter(d, i, u, axis)
        np.testing.assert_allclose(run(relay.Function([d, i, u], z), data, index, updates, kind=kind), want, rtol=1e-5)
        z = relay.op.scatter_add(d, i, u, axis)
        np.testing.assert_allclose(run(relay.Function([d, i, u], z), data, index, updates, kind=kind), added, rtol=1e-5)


@program
def scatter_of_free_sizes():
    d = relay.var("d", relay.TensorType([relay.Any() for _ in range(2)], "float32"))
    i = relay.var("i", relay.TensorType([relay.Any() for _ in range(2)], "int64"))
    u = relay.var("u", relay.TensorType([relay.Any() for _ in range(2)], "float32"))
    f = relay.Function([d, i, u], relay.op.scatter(d, i, u, 0))
    a, idx, up = numbers(4, 3), np.array([[0, 1, 2], [3, 3, 0]]), numbers(2, 3, seed=5)
    want = a.copy()
    np.put_along_axis(want, idx, up, 0)
    for kind in ("vm", "debug"):
        np.testing.assert_allclose(run(f, a, idx, up, kind=kind), want)


@program(("add", "float32"), ("update", "float32"), ("add", "int32"))
def scatter_nd_modes(mode, dtype):
    data, index, updates = np.zeros((2, 2), dtype), np.array([[1, 1, 0], [0, 1, 0]]), np.array([2, 3, 0]).astype(dtype)
    d, i, u = relay.var("d", shape=(2, 2), dtype=dtype), relay.var("i", shape=(2, 3), dtype="int64"), relay.var("u", shape=(3,), dtype=dtype)
    out = relay.op.scatter_nd(d, i, u, mode)
    f = relay.Function([d, i, u], out)
    np.testing.assert_equal(run(f, data, index, updates, kind="vm"), np.array([[0, 0], [2, 3]]))
    assert f'mode="{mode}"' in out.astext() or mode == "update"


@program([[1, 2], [3, 4]])
def gather_values(data):
    data = np.array(data, "float32")
    for axis, index in ((1, [[0, 0], [1, 0]]), (0, [[1, 0], [0, 1]]), (-1, [[1], [0]])):
        index = np.array(index)
        for dtype in ("int32", "int64", "uint32"):
            d, i = relay.var("d", shape=data.shape), relay.var("i", shape=index.shape, dtype=dtype)
            z = relay.gather(d, axis, i)
            assert run_infer_type(z).checked_type == relay.TensorType(index.shape)
            np.testing.assert_equal(run(relay.Function([d, i], z), data, index.astype(dtype)), np.take_along_axis(data, index, axis))


@program(((2, 2), (2, 3), [[1, 1, 0], [0, 1, 0]], 0), ((2, 2, 2), (2, 2), [[0, 1], [1, 0]], 0), ((3, 2, 2), (2, 2), [[0, 1], [1, 0]], 0), ((3, 2), (2, 2, 3), [[[0, 1, 2], [2, 0, 1]], [[0, 0, 0], [1, 1, 1]]], 0),
         ((2, 3, 4), (1, 2), [[1, 2]], 1))
def gather_nd_values(xshape, yshape, y_data, batch_dims):
    x = relay.var("x", relay.TensorType(xshape, "float32"))
    y = relay.var("y", relay.TensorType(yshape, "int32"))
    z = relay.gather_nd(x, y, batch_dims)
    a, i = numbers(*xshape), np.array(y_data, "int32")
    want = tvm.topi.testing.gather_nd_python(a, i) if batch_dims == 0 else np.stack([x[tuple(y)] for x, y in zip(a, i.T)])
    for kind in executor_kinds:
        np.testing.assert_allclose(run(relay.Function([x, y], z), a, i, kind=kind), want, rtol=1e-5)


@program
def isfinite_and_isinf():
    a = np.array([[1.0, np.inf, np.nan], [-np.inf, 0, 3e38]], "float32")
    x = relay.var("x", shape=a.shape)
    for name in ("isfinite", "isinf", "isnan"):
        y = getattr(relay, name)(x)
        assert run_infer_type(y).checked_type == relay.TensorType((2, 3), "bool")
        np.testing.assert_equal(run(relay.Function([x], y), a), getattr(np, name)(a))


@program(([0, 1, 2, 3], [2, 2]), ([144], [5, 5, 5, 2]), ([144], [5, 5, 5, 5]), ([100, 13, 5], [5, 5, 5]))
def unravel_index_values(indices, shape):
    for dtype in ("int64", "int32"):
        i, s = np.array(indices).astype(dtype), np.array(shape).astype(dtype)
        x, y = relay.var("x", relay.TensorType(i.shape, dtype)), relay.var("y", relay.TensorType(s.shape, dtype))
        z = relay.unravel_index(x, y)
        zz = run_infer_type(z)
        assert zz.checked_type == relay.TensorType((len(shape), len(indices)), dtype)
        for kind in executor_kinds:
            np.testing.assert_equal(run(relay.Function([x, y], z), i, s, kind=kind), np.unravel_index(i, s))


@program(0, 1, -1.5, [7], [1, 3])
def sparse_to_dense_values(default):
    if isinstance(default, list):
        raises(Exception, lambda: run_infer_type(relay.op.sparse_to_dense(relay.const(0), [10], relay.const(1.0), relay.const(np.array(default, "float32")))))
        return
    i, v = relay.var("i", shape=(3, 2), dtype="int32"), relay.var("v", shape=(3,))
    d = relay.op.sparse_to_dense(i, (3, 4), v, relay.const(float(default)))
    assert run_infer_type(d).checked_type == relay.TensorType((3, 4))
    want = np.full((3, 4), default, "float32")
    index, values = np.array([[0, 1], [1, 3], [2, 0]], "int32"), np.array([5.0, 6.0, 7.0], "float32")
    want[tuple(index.T)] = values
    for kind in executor_kinds:
        np.testing.assert_equal(run(relay.Function([i, v], d), index, values, kind=kind), want)


@program
def sparse_rows_filled():
    indices, values, shape = np.array([[0, 3], [2, 0], [2, 1]], "int64"), np.array([1, 2, 3], "int64"), np.array([5, 6], "int64")
    i, v, s, d = (relay.var(n, shape=a.shape, dtype=str(a.dtype)) for n, a in zip("ivsd", (indices, values, shape, np.array([10], "int64"))))
    z = relay.op.sparse_fill_empty_rows(i, v, s, d)
    f = relay.Function([i, v, s, d], z.tuple_value)
    t = run_infer_type(f).ret_type
    assert t.fields[0].dtype == "int64" and t.fields[2] == relay.TensorType((relay.Any(),), "bool") or t.fields[2].dtype == "bool"
    out = run(f, indices, values, shape, np.array([10], "int64"), kind="vm")
    np.testing.assert_equal(out[0], [[0, 3], [1, 0], [2, 0], [2, 1], [3, 0], [4, 0]])
    np.testing.assert_equal(out[1], [1, 10, 2, 3, 10, 10])
    np.testing.assert_equal(out[2], [False, True, False, True, True])


@program(([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], [2, 3, 6], [9, -1]), ([[0, 0], [2, 3], [3, 1]], [4, 6], [-1, 2]), ([[0], [7]], [8], [2, 4]))
def sparse_reshape_values(index, shape, new):
    index, shape, new = np.array(index, "int64"), np.array(shape, "int64"), np.array(new, "int64")
    i, s, n = (relay.var(name, shape=a.shape, dtype="int64") for name, a in zip("isn", (index, shape, new)))
    z = relay.op.sparse_reshape(i, s, n)
    out = run(relay.Function([i, s, n], z.astuple()), index, shape, new, kind="vm")
    flat = np.ravel_multi_index(index.T, shape)
    full = np.empty(shape).reshape(new).shape
    np.testing.assert_equal(out[0], np.stack(np.unravel_index(flat, full), 1))
    np.testing.assert_equal(out[1], full)


@program(([2, 3, 4], [0, 0, 1], None), ([1, 2, 3, 4, 5], [0, 0, 2, 2, 3], 6), ([[1, 2, 3], [4, 5, 6]], [1, 1], 3))
def segment_sums(data, ids, n):
    data, ids = np.array(data, "float32"), np.array(ids, "int32")
    d, i = relay.var("d", shape=data.shape), relay.var("i", shape=ids.shape, dtype="int32")
    z = relay.op.segment_sum(d, i, n)
    want = np.zeros((max(ids) + 1 if n is None else n,) + data.shape[1:], "float32")
    np.add.at(want, ids, data)
    for kind in ("vm", "debug"):
        np.testing.assert_allclose(run(relay.Function([d, i], z), data, ids, kind=kind), want)


@program(("cumsum", np.cumsum), ("cumprod", np.cumprod))
def scans(name, ref):
    op = getattr(relay.op, name)
    for shape, axis, dtype, out in (((3, 4), 0, "int32", None), ((3, 4), 1, "float32", None), ((3, 4), None, "int32", "int64"), ((2, 3, 4), -1, "int8", "int32"), ((5,), 0, "bool", "int32")):
        a = np.random.RandomState(1).randint(0, 3, shape).astype(dtype)
        x = relay.var("x", shape=shape, dtype=dtype)
        y = op(x, axis, out) if out else op(x, axis)
        for kind in executor_kinds:
            got = run(relay.Function([x], y), a, kind=kind)
            np.testing.assert_allclose(got, ref(a, axis=axis, dtype=out or dtype))
            assert got.dtype == (out or dtype)
    a = np.array([1, 2, 3, 4], "float32")
    x = relay.var("x", shape=(4,))
    want = np.array([0, 1, 3, 6]) if name == "cumsum" else np.array([1, 1, 2, 6])
    np.testing.assert_allclose(run(relay.Function([x], op(x, axis=0, exclusive=True)), a), want)


@program((True, True), (True, False), (False, True), (False, False))
def unique_values(is_sorted, counts):
    data = np.array([4, 1, 4, 4, 2, 1, 9], "int32")
    x = relay.var("x", relay.TensorType((7,), "int32"))
    outs = relay.unique(x, is_sorted, counts)
    outs = outs.astuple()
    f = relay.Function([x], outs)
    # sorted: as numpy's; otherwise in the order of their first appearance
    u, first, inverse, count = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    if not is_sorted:
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        u, first, inverse, count = u[order], first[order], place[inverse], count[order]
    for kind in ("vm", "debug"):
        out = run(f, data, kind=kind)
        assert len(out) == (5 if counts else 4)
        n = int(out[3].reshape(-1)[0])
        assert n == len(u)
        np.testing.assert_equal(out[0][:n], u)
        np.testing.assert_equal(out[1][:n], first)
        np.testing.assert_equal(out[2], inverse)
        if counts:
            np.testing.assert_equal(out[4][:n], count)


@program((1000, False), (1001, True))
def searchsorted_values(n, right):
    rows = np.sort(np.random.RandomState(1).uniform(0, 1, n)).astype("float32")
    v = np.random.RandomState(2).uniform(-0.1, 1.1, 37).astype("float32")
    a, b = relay.var("a", shape=(n,)), relay.var("b", shape=(37,))
    z = relay.searchsorted(a, b, right=right, dtype="int32")
    assert run_infer_type(z).checked_type == relay.TensorType((37,), "int32")
    np.testing.assert_equal(run(relay.Function([a, b], z), rows, v), np.searchsorted(rows, v, side="right" if right else "left"))
    rows2, v2 = np.sort(np.random.rand(3, 2, 50)).astype("float32"), np.random.rand(3, 2, 5).astype("float32")
    a, b = relay.var("a", shape=(3, 2, 50)), relay.var("b", shape=(3, 2, 5))
    want = np.stack([[np.searchsorted(rows2[i, j], v2[i, j], side="right" if right else "left") for j in range(2)] for i in range(3)])
    np.testing.assert_equal(run(relay.Function([a, b], relay.searchsorted(a, b, right=right, dtype="int64")), rows2, v2), want)


@program(((10, 5), [(3, 4), (3, 1)]), ((10, 5), [(1, 4), (3, 1)]), ((10, 5, 15), [(1, 2, 1), (1, 2, 7)]), ((4, 5), [(2,)]))
def adv_index_values(shape, ishapes):
    data = numbers(*shape)
    index = [np.random.RandomState(i).randint(0, shape[i], s).astype("int64") for i, s in enumerate(ishapes)]
    d = relay.var("d", shape=shape)
    v = [relay.var(f"i{k}", shape=s, dtype="int64") for k, s in enumerate(ishapes)]
    z = relay.op.adv_index([d] + v)
    for kind in executor_kinds:
        np.testing.assert_allclose(run(relay.Function([d] + v, z), data, *index, kind=kind), data[tuple(index)])


@program
def stft_values():
    data, window = numbers(2, 50), np.hanning(10).astype("float32")
    d, w = relay.var("d", shape=data.shape), relay.var("w", shape=window.shape)
    z = relay.op.stft(d, 10, 4, 10, w, False, True)
    t = run_infer_type(z).checked_type
    assert tuple(int(v) for v in t.shape) == (2, 6, 11, 2)
    got = run(relay.Function([d, w], z), data, window, kind="vm")
    want = np.stack([[np.fft.rfft(data[b, s:s + 10] * window) for s in range(0, 41, 4)] for b in range(2)]).transpose(0, 2, 1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-3, atol=1e-4)
