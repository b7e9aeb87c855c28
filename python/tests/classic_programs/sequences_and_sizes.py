# SPDX-License-Identifier: Apache-2.0
"""Operators of level 10, of sizes that a run tells, and random numbers."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.relay.testing import run_infer_type

from harness import program, numbers


KINDS = ("graph", "vm", "debug")


def run(function, *arrays, kind="graph"):
    out = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(function)(*arrays)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


# ---- level 10
@program
def checkpoints():
    x, y = relay.var("x", relay.TensorType((10, 10))), relay.var("y", relay.TensorType((10, 10)))
    f = relay.Function([x, y], relay.annotation.checkpoint(relay.Tuple([relay.add(x, x), relay.sqrt(y)])))
    a, b = numbers(10, 10, low=0.1), numbers(10, 10, low=0.1)
    for kind in KINDS:
        got = run(f, a, b, kind=kind)
        np.testing.assert_allclose(got[0], a + a)
        np.testing.assert_allclose(got[1], np.sqrt(b), rtol=1e-6)


@program
def summed_to_a_shape():
    x, y = relay.var("x", shape=(3, 4, 5, 6)), relay.var("y", shape=(4, 1, 6))
    z = relay.collapse_sum_like(x, y)
    assert run_infer_type(z).checked_type == relay.TensorType((4, 1, 6))
    a = numbers(3, 4, 5, 6)
    np.testing.assert_allclose(run(relay.Function([x, y], z), a, numbers(4, 1, 6)), a.sum(0).sum(1, keepdims=True), rtol=1e-5)
    z = relay.collapse_sum_to(x, (4, 1, 6))
    assert run_infer_type(z).checked_type == relay.TensorType((4, 1, 6))


@program("uint8", "int64", "float32")
def broadcast_to_a_shape(dtype):
    a = numbers(1, 4, dtype="float32", low=0, high=9).astype(dtype)
    x = relay.var("x", relay.TensorType((1, 4), dtype))
    z = relay.broadcast_to(x, shape=(3, 3, 4))
    assert run_infer_type(z).checked_type == relay.TensorType((3, 3, 4), dtype)
    assert "broadcast_to" in z.astext()
    for kind in KINDS:
        np.testing.assert_equal(run(relay.Function([x], z), a, kind=kind), np.broadcast_to(a, (3, 3, 4)))
    like = relay.var("like", shape=(3, 3, 4), dtype=dtype)
    np.testing.assert_equal(run(relay.Function([x, like], relay.broadcast_to_like(x, like)), a, np.zeros((3, 3, 4), dtype)), np.broadcast_to(a, (3, 3, 4)))
    y = relay.Var("y", relay.TensorType((3, 1), dtype))
    f = relay.Function([x], relay.broadcast_to(x, relay.const(np.array([3, 4], "int64"))))
    np.testing.assert_equal(run(f, a, kind="vm"), np.broadcast_to(a, (3, 4)))


@program(*[(ta, tb) for ta in (True, False) for tb in (True, False)])
def products_of_batches(ta, tb):
    b, m, n, k = te.size_var("b"), te.size_var("m"), te.size_var("n"), te.size_var("k")
    x = relay.var("x", relay.TensorType((b, k, m) if ta else (b, m, k)))
    y = relay.var("y", relay.TensorType((b, n, k) if tb else (b, k, n)))
    z = relay.nn.batch_matmul(x, y, transpose_a=ta, transpose_b=tb)
    assert run_infer_type(z).checked_type == relay.TensorType((b, m, n))
    p, q = numbers(30, 20, 16) if ta else numbers(30, 16, 20), numbers(30, 24, 20) if tb else numbers(30, 20, 24)
    x, y = relay.var("x", shape=p.shape), relay.var("y", shape=q.shape)
    z = relay.nn.batch_matmul(x, y, transpose_a=ta, transpose_b=tb)
    want = np.matmul(p.transpose(0, 2, 1) if ta else p, q.transpose(0, 2, 1) if tb else q)
    for kind in KINDS[:2]:
        np.testing.assert_allclose(run(relay.Function([x, y], z), p, q, kind=kind), want, rtol=1e-4, atol=1e-4)
    # one batch for all
    r = numbers(1, 24, 20) if tb else numbers(1, 20, 24)
    y = relay.var("y", shape=r.shape)
    np.testing.assert_allclose(run(relay.Function([x, y], relay.nn.batch_matmul(x, y, transpose_a=ta, transpose_b=tb)), p, r),
                               np.matmul(p.transpose(0, 2, 1) if ta else p, r.transpose(0, 2, 1) if tb else r), rtol=1e-4, atol=1e-4)


@program
def products_of_batches_in_bytes():
    x, y = relay.var("x", shape=(1, 16, 32), dtype="uint8"), relay.var("y", shape=(1, 16, 32), dtype="int8")
    z = relay.nn.batch_matmul(x, y, out_dtype="int32")
    a, b = np.random.randint(0, 255, (1, 16, 32)).astype("uint8"), np.random.randint(-128, 127, (1, 16, 32)).astype("int8")
    np.testing.assert_equal(run(relay.Function([x, y], z), a, b), a.astype("int32") @ b.astype("int32").transpose(0, 2, 1))


@program
def shapes_of_tensors():
    shape = (10, 5, 12)
    x = relay.var("x", shape=shape)
    f = relay.Function([x], relay.op.shape_of(x))
    f = run_infer_type(f)
    for kind in KINDS:
        np.testing.assert_equal(run(f, numbers(*shape), kind=kind), shape)
    x = relay.var("x", shape=(relay.Any(), 5))
    f = relay.Function([x], relay.shape_of(x, dtype="int64"))
    assert run_infer_type(f).ret_type == relay.TensorType((2,), "int64")
    np.testing.assert_equal(run(f, numbers(7, 5), kind="vm"), [7, 5])
    x = relay.var("x", shape=(2, 4, 5))
    z = relay.op.contrib.ndarray_size(x)
    assert run_infer_type(z).checked_type == relay.TensorType((), "int32")
    np.testing.assert_equal(run(relay.Function([x], z), numbers(2, 4, 5)), 40)


@program(*[(d, l, t) for d, ls in ((1, ("NCW", "NWC")), (2, ("NCHW", "NHWC")), (3, ("NCDHW", "NDHWC"))) for l in ls for t in ("avg", "max")])
def adaptive_pools(dims, layout, kind):
    shape = (1, 9, 7, 8, 9)[:2 + dims]
    out = (2, 3, 4)[:dims]
    a = numbers(*shape)
    b = a if layout.startswith("NC") else np.moveaxis(a, 1, -1).copy()
    op = getattr(relay.nn, f"adaptive_{kind}_pool{dims}d")
    x = relay.var("x", shape=b.shape)
    z = op(x, out, layout=layout)
    want = tvm.topi.testing.adaptive_pool(b, out, kind, layout)
    assert tuple(int(v) for v in run_infer_type(z).checked_type.shape) == want.shape
    np.testing.assert_allclose(run(relay.Function([x], z), b), want, rtol=1e-4, atol=1e-5)
    z = op(x, None, layout=layout) if dims != 1 else op(x, (shape[2],), layout=layout)
    np.testing.assert_allclose(run(relay.Function([x], z), b), b, rtol=1e-6)


@program(((5, 10), 0.0, 0), ((2, 3, 5, 3), 0.0, 0), ((5, 8, 3), 0.1, 1))
def masked_sequences(shape, value, axis):
    a = numbers(*shape)
    batch = shape[1 - axis]
    length = np.random.RandomState(1).randint(0, shape[axis], (batch,)).astype("int32")
    x, l = relay.var("x", shape=shape), relay.var("l", relay.ty.TensorType((batch,), "int32"))
    z = relay.sequence_mask(x, l, value, axis)
    assert run_infer_type(z).checked_type == relay.ty.TensorType(shape)
    for kind in KINDS[:2]:
        np.testing.assert_allclose(run(relay.Function([x, l], z), a, length, kind=kind), tvm.topi.testing.sequence_mask(a, length, value, axis))


@program(((3,), 3, 1, 0, -1, "int32"), ((3,), 3, 1.0, 0.0, -1, "float32"), ((2, 2), 5, 2, -2, 0, "int32"), ((2, 2), 5, 0.5, -0.5, 1, "float32"), ((3, 2, 4, 5), 6, 1, 0, 1, "int32"), ((2, 3), 4, True, False, -1, "bool"))
def one_hot_values(ishape, depth, on, off, axis, dtype):
    index = np.random.RandomState(1).randint(0, depth, ishape).astype("int32")
    i = relay.var("i", relay.TensorType(ishape, "int32"))
    out = relay.one_hot(i, relay.const(on, dtype), relay.const(off, dtype), depth, axis, dtype)
    want = tvm.topi.testing.one_hot(index, on, off, depth, axis, dtype)
    assert tuple(int(v) for v in run_infer_type(out).checked_type.shape) == want.shape
    for kind in KINDS[:2]:
        np.testing.assert_allclose(run(relay.Function([i], out), index, kind=kind), want)


@program(((2, 4, 4), (2, 4), (0, 0)), ((2, 2, 3), (2, 2), (0, 0)), ((4, 5), (4,), (1, 1)), ((3, 4), (3,), (-1, -1)), ((2, 5, 6), (2, 3, 3), (-1, 1)))
def diagonals_set(shape, dshape, k):
    a = numbers(*shape)
    if k[0] == k[1] and k[0] != 0:
        n = sum(1 for i in range(shape[-2]) if 0 <= i + k[0] < shape[-1])
        dshape = dshape[:-1] + (n,)
    elif k[0] != k[1]:
        n = max(sum(1 for i in range(shape[-2]) if 0 <= i + q < shape[-1]) for q in range(k[0], k[1] + 1))
        dshape = dshape[:-2] + (k[1] - k[0] + 1, n)
    d = numbers(*dshape, seed=3)
    x, y = relay.var("x", shape=shape), relay.var("d", shape=dshape)
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        z = relay.matrix_set_diag(x, y, k, align)
        want = tvm.topi.testing.matrix_set_diag(a, d, k, align)
        assert run_infer_type(z).checked_type == relay.TensorType(shape)
        np.testing.assert_allclose(run(relay.Function([x, y], z), a, d), want)


@program(("mean", -100, (10, 5)), ("sum", 1, (10, 5)), ("none", -100, (10, 5)), ("mean", -100, (10, 5, 2, 2)), ("none", 2, (10, 5, 2, 2)))
def negative_log_likelihood(reduction, ignore, shape):
    p = numbers(*shape)
    t = np.random.RandomState(1).randint(0, shape[1], (shape[0],) + shape[2:]).astype("int32")
    w = numbers(shape[1], low=0.1)
    x, y, v = relay.var("x", shape=shape), relay.var("y", shape=t.shape, dtype="int32"), relay.var("w", shape=w.shape)
    z = relay.nn.nll_loss(x, y, v, reduction, ignore)
    t_ = run_infer_type(z).checked_type
    assert t_ == relay.TensorType(t.shape if reduction == "none" else ())
    np.testing.assert_allclose(run(relay.Function([x, y, v], z), p, t, w), tvm.topi.testing.nll_loss(p, t, w, reduction, ignore), rtol=1e-4, atol=1e-5)


@program
def stopped_sums_and_inverse_permutations():
    x = relay.var("x", shape=(4,), dtype="int64")
    y = relay.op.transform.invert_permutation(x)
    np.testing.assert_equal(run(relay.Function([x], y), np.array([2, 0, 3, 1])), [1, 3, 0, 2])
    assert run_infer_type(y).checked_type == relay.TensorType((4,), "int64")


@program(((3, 4), 0, True), ((3, 4), 1, False), ((2, 5, 5), -1, True))
def triangles(shape, k, upper):
    a = numbers(*shape)
    x = relay.var("x", shape=shape)
    z = relay.trilu(x, relay.const(k, "int64"), upper)
    np.testing.assert_allclose(run(relay.Function([x], z), a, kind="vm"), np.triu(a, k) if upper else np.tril(a, k))


@program(("float32", "float32"), ("float16", "float32"))
def layer_norm_and_group_norm(dtype, _):
    a = numbers(2, 4, 6)
    x, g, b = relay.var("x", shape=(2, 4, 6)), relay.var("g", shape=(6,)), relay.var("b", shape=(6,))
    z = relay.nn.layer_norm(x, g, b, epsilon=1e-3)
    f = relay.Function([x, g, b], z)
    w, v = numbers(6, seed=2), numbers(6, seed=3)
    want = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-3) * w + v
    np.testing.assert_allclose(run(f, a, w, v), want, rtol=1e-4, atol=1e-5)
    g, b = relay.var("g", shape=(4,)), relay.var("b", shape=(4,))
    w, v = numbers(4, seed=2), numbers(4, seed=3)
    z = relay.nn.group_norm(x, g, b, num_groups=2, axis=1)
    grouped = a.reshape(2, 2, 2, 6)
    want = ((grouped - grouped.mean((2, 3), keepdims=True)) / np.sqrt(grouped.var((2, 3), keepdims=True) + 1e-5)).reshape(a.shape) * w[:, None] + v[:, None]
    np.testing.assert_allclose(run(relay.Function([x, g, b], z), a, w, v), want, rtol=1e-4, atol=1e-5)
    z = relay.nn.instance_norm(x, g, b)
    want = (a - a.mean(2, keepdims=True)) / np.sqrt(a.var(2, keepdims=True) + 1e-5) * w[:, None] + v[:, None]
    np.testing.assert_allclose(run(relay.Function([x, g, b], z), a, w, v), want, rtol=1e-4, atol=1e-4)


# ---- sizes of a run
@program((0, [2, 3]), (1, [4, 1, 3]))
def tiles_of_a_run(number, reps):
    a = numbers(2, 3)
    x, r = relay.var("x", shape=(2, 3)), relay.var("r", shape=(len(reps),), dtype="int64")
    z = relay.tile(x, r)
    np.testing.assert_allclose(run(relay.Function([x, r], z), a, np.array(reps), kind="vm"), np.tile(a, reps))


@program(([2, 0, 4], (2, 3, 4)), ([-1], (24,)), ([0, -3], (2, 12)), ([-4, 1, 2, -2], (1, 2, 3, 4)))
def reshapes_of_a_run(new, want):
    a = numbers(2, 3, 4)
    x, s = relay.var("x", shape=(2, 3, 4)), relay.var("s", shape=(len(new),), dtype="int64")
    f = relay.Function([x, s], relay.reshape(x, s))
    for kind in ("vm", "debug"):
        np.testing.assert_allclose(run(f, a, np.array(new), kind=kind), a.reshape(want))


@program
def reshapes_by_shapes():
    x, y = relay.var("x", shape=(relay.Any(), 4)), relay.var("y", shape=(relay.Any(), relay.Any()))
    f = relay.Function([x, y], relay.reshape(x, relay.shape_of(y)))
    a, b = numbers(3, 4), numbers(2, 6)
    for kind in ("vm", "debug"):
        np.testing.assert_allclose(run(f, a, b, kind=kind), a.reshape(2, 6))
    f = relay.Function([x, y], relay.reshape_like(x, y))
    np.testing.assert_allclose(run(f, a, b, kind="vm"), a.reshape(2, 6))


@program(relay.zeros, relay.ones)
def filled_by_a_run(op):
    x = relay.var("x", shape=(3,), dtype="int64")
    y = op(x, dtype="float32")
    f = run_infer_type(relay.Function([x], y))
    assert all(isinstance(s, tvm.tir.Any) for s in f.ret_type.shape) and len(f.ret_type.shape) == 3
    np.testing.assert_equal(run(f, np.array([2, 5, 8]), kind="vm"), (np.zeros if op is relay.zeros else np.ones)((2, 5, 8)))
    v = relay.var("v", shape=())
    f = relay.Function([v, x], relay.full(v, x, "float32"))
    np.testing.assert_equal(run(f, np.array(3, "float32"), np.array([2, 1, 2]), kind="vm"), np.full((2, 1, 2), 3))


@program(("int32", 3), ("int64", 1))
def broadcasts_of_a_run(dtype, n):
    x, s = relay.var("x", shape=(3, 1)), relay.var("s", shape=(3,), dtype=dtype)
    a = numbers(3, 1)
    np.testing.assert_allclose(run(relay.Function([x, s], relay.broadcast_to(x, s)), a, np.array([2, 3, 4], dtype), kind="vm"), np.broadcast_to(a, (2, 3, 4)))


@program((True,), (False,))
def one_hot_of_a_run(last):
    i, d = relay.var("i", shape=(3,), dtype="int32"), relay.var("d", shape=(), dtype="int32")
    out = relay.one_hot(i, relay.const(1.0), relay.const(0.0), d, -1 if last else 0, "float32")
    index = np.array([0, 2, 1], "int32")
    np.testing.assert_equal(run(relay.Function([i, d], out), index, np.array(4, "int32"), kind="vm"), tvm.topi.testing.one_hot(index, 1.0, 0.0, 4, -1 if last else 0, "float32"))


@program
def pads_and_squeezes_of_a_run():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 2), dtype="int64")
    a = numbers(2, 3)
    np.testing.assert_allclose(run(relay.Function([x, w], relay.nn.pad(x, w)), a, np.array([[1, 2], [0, 3]]), kind="vm"), np.pad(a, ((1, 2), (0, 3))))
    x, ax = relay.var("x", shape=(1, 3, 1)), relay.var("ax", shape=(1,), dtype="int64")
    a = numbers(1, 3, 1)
    np.testing.assert_allclose(run(relay.Function([x, ax], relay.squeeze(x, ax)), a, np.array([2]), kind="vm"), a[..., 0])


@program(("NCHW", "nearest_neighbor"), ("NHWC", "bilinear"))
def upsampling_of_a_run(layout, method):
    a = numbers(1, 4, 4, 4)
    x, h, w = relay.var("x", shape=a.shape), relay.var("h", shape=(), dtype="float32"), relay.var("w", shape=(), dtype="float32")
    z = relay.nn.upsampling(x, h, w, layout, method=method, align_corners=False)
    want = tvm.topi.testing.resize2d_python(a, (2.0, 2.0), layout, method[2:] if method.startswith("bi") else method, "asymmetric" if method[0] == "n" else "half_pixel")
    np.testing.assert_allclose(run(relay.Function([x, h, w], z), a, np.array(2.0, "float32"), np.array(2.0, "float32"), kind="vm"), want, rtol=1e-4, atol=1e-5)
    s = relay.var("s", shape=(2,), dtype="int64")
    z = relay.image.resize2d(x, s, None, layout, "nearest_neighbor", "asymmetric")
    want = tvm.topi.testing.resize2d_python(a, (2.0, 2.0), layout, "nearest_neighbor", "asymmetric")
    np.testing.assert_allclose(run(relay.Function([x, s], z), a, np.array([8, 8]), kind="vm"), want)


@program
def sparse_to_dense_of_a_run():
    i, v, s = relay.var("i", shape=(2,), dtype="int64"), relay.var("v", shape=(2,)), relay.var("s", shape=(1,), dtype="int64")
    z = relay.op.sparse_to_dense(i, s, v, relay.const(7.0))
    np.testing.assert_equal(run(relay.Function([i, v, s], z), np.array([0, 3]), np.array([1.0, 2.0], "float32"), np.array([5]), kind="vm"), [1, 7, 7, 2, 7])


# ---- random
@program
def threefry_keys():
    key = tvm.relay.random.threefry_key(1)
    out = relay.TupleWrapper(relay.random.threefry_generate(key, (1000,)).astuple(), 2)
    f = relay.Function([], relay.Tuple([out[0], out[1]]))
    new, values = run(f)
    assert new.dtype == "uint64" and values.dtype == "uint64" and values.shape == (1000,)
    f2 = relay.Function([], relay.Tuple(list(relay.random.threefry_split(key))))
    left, right = run(f2)
    assert (left != right).any() and left.shape == (10,)


@program(("float32", 0, 1), ("float64", -2, 5))
def uniform_numbers(dtype, low, high):
    key = relay.random.threefry_key(7)
    _, u = relay.random.uniform(key, (100, 100), dtype=dtype, low=relay.const(low, dtype), high=relay.const(high, dtype))
    got = run(relay.Function([], u))
    assert got.dtype == dtype and got.shape == (100, 100)
    assert abs(got.mean() - (low + high) / 2) < 0.1 * (high - low) and got.min() >= low and got.max() <= high


@program
def normal_numbers():
    key = relay.random.threefry_key(3)
    _, z = relay.random.normal(key, (1000, 20), dtype="float32", mean=relay.const(5.0), scale=relay.const(2.0))
    got = run(relay.Function([], z))
    assert abs(got.mean() - 5) < 0.1 and abs(got.std() - 2) < 0.1
    t = run_infer_type(relay.Function([], z)).ret_type
    assert t == relay.TensorType((1000, 20))
