# SPDX-License-Identifier: Apache-2.0
"""Operators with the attributes that are seldom said: modes, borders, axes from behind, empty and single sizes."""
import itertools

import numpy as np
import tvm
import tvm.topi.testing as ref
from harness import evaluate, numbers, program
from tvm import relay

M, A, C = numbers(3, 5), numbers(2, 3, 4), numbers(1, 2, 7, 6)


MEANING = ("debug",)  # what is said of it; kernels of the kind are run by other programs


def check(make, want, *data, rtol=1e-4, kinds=("graph",)):
    params = [relay.var(f"p{i}", shape=d.shape, dtype=str(d.dtype)) for i, d in enumerate(data)]
    body = make(*params)
    body = body.astuple() if hasattr(body, "astuple") else body
    for kind in kinds:
        got = evaluate(relay.Function(params, body), *data, kind=kind)
        for g, w in zip(got if isinstance(got, list) else [got], want if isinstance(got, list) else [want]):
            np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-5, err_msg=kind)


IDX = np.array([[-7, -1, 0], [2, 4, 9]], "int32")


@program(*itertools.product(("clip", "wrap"), (None, 0, 1, -1), ("int32", "int64")))
def take(mode, axis, dtype):
    check(lambda x, i: relay.take(x, i, axis=axis, mode=mode), np.take(M, IDX, axis=axis, mode=mode), M, IDX.astype(dtype), kinds=MEANING)


@program(*itertools.product((0, 1, 2, -1), (False, True)))
def gather(axis, negative):
    n = A.shape[axis]
    i = np.random.RandomState(1).randint(-n if negative else 0, n, A.shape).astype("int64")
    check(lambda x, i: relay.gather(x, axis, i), np.take_along_axis(A, i % n, axis), A, i, kinds=MEANING)


@program(*itertools.product(("update", "add", "mul", "min", "max"), (1, 2)))
def scatter_nd(mode, depth):
    i = np.array([[0, 2, 0]] if depth == 1 else [[0, 2, 0], [1, 3, 1]], "int64")
    if mode == "update":
        i[..., 2] = 1
    u = numbers(3, 5) if depth == 1 else numbers(3)
    want = M.copy()
    for k in range(3):
        at = tuple(i[:, k])
        want[at] = {"update": lambda a, b: b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": np.minimum, "max": np.maximum}[mode](want[at], u[k])
    check(lambda x, i, u: relay.scatter_nd(x, i, u, mode), want, M, i, u)


@program(*itertools.product((0, 1, -1), ("set", "add")))
def scatter(axis, mode):
    i = np.array([[0, 1, 2, 0, 1], [2, 0, 1, 2, 0]], "int64")
    u = numbers(2, 5)
    want = M.copy()
    for r, k in np.ndindex(i.shape):
        at = (i[r, k], k) if axis == 0 else (r, i[r, k])
        want[at] = u[r, k] if mode == "set" else want[at] + u[r, k]
    check(lambda x, i, u: (relay.scatter if mode == "set" else relay.scatter_add)(x, i, u, axis), want, M, i, u)


@program(*itertools.product((0, 1, -1), (False, True), ("both", "values", "indices"), (0, 1, 3)))
def topk(axis, ascending, ret, k):
    v = np.random.RandomState(2).permutation(15).reshape(3, 5).astype("float32")
    order = np.argsort(v if ascending else -v, axis=axis, kind="stable")
    k2 = k or v.shape[axis]
    order = np.take(order, np.arange(min(k2, v.shape[axis])), axis)
    values = np.take_along_axis(v, order, axis)
    check(lambda x: relay.topk(x, k, axis, ret, ascending, "int64"), {"both": [values, order], "values": values, "indices": order}[ret], v, kinds=MEANING)


@program(*itertools.product((0, 1, -1), (False, True)))
def sorts(axis, ascending):
    v = np.random.RandomState(3).permutation(15).reshape(3, 5).astype("float32")
    sign = 1 if ascending else -1
    check(lambda x: relay.argsort(x, axis, ascending, "int32"), np.argsort(sign * v, axis), v, kinds=MEANING)
    check(lambda x: relay.sort(x, axis, ascending), sign * np.sort(sign * v, axis), v, kinds=MEANING)


@program(*itertools.product((None, 0, 1, -1), (False, True), ("cumsum", "cumprod")))
def scans(axis, exclusive, name):
    f = np.cumsum if name == "cumsum" else np.cumprod
    x = M if axis is not None else M.reshape(-1)
    want = f(x, axis if axis is not None else 0)
    if exclusive:
        want = np.roll(want, 1, axis if axis is not None else 0)
        np.moveaxis(want, axis if axis is not None else 0, 0)[0] = 0 if name == "cumsum" else 1
    check(lambda x: getattr(relay, name)(x, axis, exclusive=exclusive), want, M, kinds=MEANING)


@program(*itertools.product(("max", "avg"), ((2, 2), (3, 2)), ((1, 1), (2, 2)), ((0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 0, 1)), (False, True), (False, True)))
def pools(kind, size, stride, pad, ceil, count):
    if kind == "max" and count:
        return
    make = lambda x: relay.nn.max_pool2d(x, size, stride, (1, 1), pad, ceil_mode=ceil) if kind == "max" else relay.nn.avg_pool2d(x, size, stride, (1, 1), pad, ceil_mode=ceil, count_include_pad=count)  # noqa: E731
    x = relay.var("x", shape=C.shape)
    out = relay.testing.run_infer_type(make(x)).checked_type.concrete_shape
    want = ref.poolnd_python(C, size, stride, (1, 1), pad[:2], pad[2:], kind, count, ceil)
    assert want.shape == tuple(out)
    check(make, want, C)


@program(*itertools.product(("nearest_neighbor", "linear", "cubic"), ("asymmetric", "align_corners", "half_pixel"), ((14, 12), (4, 9))))
def resizes(method, mode, size):
    rounding = "round" if mode == "align_corners" else "floor"
    want = ref.resize2d_python(C, (size[0] / 7, size[1] / 6), "NCHW", method[2:] if method.startswith("bi") else method, mode)
    check(lambda x: relay.image.resize2d(x, size, method=method, coordinate_transformation_mode=mode, rounding_method=rounding if method == "nearest_neighbor" else "", cubic_alpha=-0.5), want, C, rtol=1e-3)


@program(*itertools.product(("linear", "nearest_neighbor"), ("asymmetric", "align_corners", "half_pixel"), (1, 3)))
def resizes_of_other_ranks(method, mode, rank):
    x = numbers(1, 2, 6) if rank == 1 else numbers(1, 2, 3, 4, 5)
    size = (9,) if rank == 1 else (6, 5, 7)
    f = ref.resize1d_python if rank == 1 else ref.resize3d_python
    want = f(x, tuple(s / d for s, d in zip(size, x.shape[2:])), "NCW" if rank == 1 else "NCDHW", method, mode)
    check(lambda v: (relay.image.resize1d if rank == 1 else relay.image.resize3d)(v, size[0] if rank == 1 else size, method=method, coordinate_transformation_mode=mode), want, x, rtol=1e-3)


SLICES = [([0], [2], None, None), ([1, 1], [3, 4], [1, 2], None), ([-2], [10], [1], None), ([2, -1], [0, 0], [-1, -2], None), ([0], [-1], [1], [1]), ([1, 0], [3, 2], [1, 1], [1, 0]), ([5], [0], [-1], [1]), ([3], [1], [1], [0]), ([-100], [100], [2], [1])]


@program(*[(str(i), *s) for i, s in enumerate(SLICES)])
def slices(_, begin, end, strides, axes):
    at = [slice(None)] * 2
    for k, (b, e) in enumerate(zip(begin, end)):
        s = strides[k] if strides else 1
        ax = axes[k] if axes else k
        n = M.shape[ax]
        stop = None if s < 0 and e < -n else e
        at[ax] = slice(b, stop, s)
    check(lambda x: relay.strided_slice(x, begin, end, strides, axes), M[tuple(at)], M) if M[tuple(at)].size else None


@program(*itertools.product(("constant", "edge", "reflect"), (0.0, 2.5)))
def pads(mode, value):
    w = ((1, 2), (2, 0))
    want = np.pad(M, w, mode, constant_values=value) if mode == "constant" else np.pad(M, w, mode)
    check(lambda x: relay.nn.pad(x, w, value, mode), want, M, kinds=MEANING)


@program("SYMMETRIC", "REFLECT")
def mirrors(mode):
    check(lambda x: relay.nn.mirror_pad(x, ((2, 1), (1, 2)), mode), np.pad(M, ((2, 1), (1, 2)), mode.lower()), M)


@program(*itertools.product((1, 2), ("NCHW", "NHWC"), ((3, 3), (1, 1)), ((1, 1), (0, 0), (2, 1))))
def convolutions(groups, layout, k, pad):
    x, w = numbers(1, 4, 6, 5), numbers(6, 4 // groups, *k)
    want = ref.conv2d_nchw_python(np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2)), w, 1, 0, groups=groups)
    if layout == "NHWC":
        check(lambda d: relay.nn.conv2d(d, relay.const(w.transpose(2, 3, 1, 0).copy()), padding=pad, groups=groups, channels=6, kernel_size=k, data_layout="NHWC", kernel_layout="HWIO"), want.transpose(0, 2, 3, 1), x.transpose(0, 2, 3, 1).copy())
    else:
        check(lambda d: relay.nn.conv2d(d, relay.const(w), padding=pad, groups=groups, channels=6, kernel_size=k), want, x)


@program(*itertools.product(("int8", "uint8", "int16", "int32", "int64", "float16", "float64"), ("add", "subtract", "multiply", "maximum", "minimum", "floor_divide", "floor_mod")))
def dtypes(dtype, name):
    x = np.array([[-7, 3, 100], [5, -1, 0]]).astype(dtype)
    y = np.array([[2, -3, 100], [3, 7, 1]]).astype(dtype)
    f = {"maximum": np.maximum, "minimum": np.minimum}.get(name, getattr(np, {"floor_mod": "mod"}.get(name, name)))
    check(getattr(relay, name), f(x, y), x, y, kinds=MEANING)


CASTS = list(itertools.product(("float32", "float64", "int8", "uint8", "int32", "int64", "bool", "float16"), repeat=2))


@program(*CASTS)
def casts(source, target):
    x = np.array([0, 1, 2, 3, 100, 1]).astype(source)
    check(lambda v: relay.cast(v, target), x.astype(target), x, kinds=MEANING)


@program(*itertools.product((1, 2, -1), (False, True), (False, True)))
def variances(axis, keep, unbiased):
    check(lambda x: relay.variance(x, axis, keep, unbiased=unbiased), A.var(axis, keepdims=keep, ddof=int(unbiased)), A, kinds=MEANING)
    check(lambda x: relay.std(x, axis, keep, unbiased=unbiased), A.std(axis, keepdims=keep, ddof=int(unbiased)), A, kinds=MEANING)


@program(*itertools.product(("argmax", "argmin"), (None, 0, 1), (False, True), (False, True)))
def places(name, axis, keep, last):
    x = np.array([[1, 3, 3, 0], [3, 1, 1, 3], [0, 0, 3, 3]], "float32")
    v = x if name == "argmax" else -x
    if last:
        flat = v.reshape(-1) if axis is None else np.moveaxis(v, axis, -1)
        n = flat.shape[-1]
        want = n - 1 - flat[..., ::-1].argmax(-1)
    else:
        want = v.argmax(axis)
    want = np.asarray(want)
    if keep:
        want = want.reshape([1, 1] if axis is None else [1 if i == axis else d for i, d in enumerate(x.shape)])
    check(lambda t: getattr(relay, name)(t, axis, keep, select_last_index=last), want, x, kinds=MEANING)


@program("NCHW", "NHWC")
def depth_and_space(layout):
    x = numbers(1, 8, 3, 2)
    for mode in ("DCR", "CDR"):
        want = ref.depth_to_space_python(x, 2, mode)
        if layout == "NCHW":
            check(lambda v: relay.nn.depth_to_space(v, 2, layout, mode), want, x)
        else:
            check(lambda v: relay.nn.depth_to_space(v, 2, layout, mode), want.transpose(0, 2, 3, 1), x.transpose(0, 2, 3, 1).copy())


@program(*itertools.product(("nn.softmax", "nn.log_softmax", "nn.fast_softmax"), (0, 1, -1)))
def softmaxes(name, axis):
    e = np.exp(A - A.max(axis, keepdims=True))
    s = e / e.sum(axis, keepdims=True)
    check(lambda x: getattr(relay.nn, name[3:])(x, axis), np.log(s) if "log" in name else s, A, rtol=1e-3)


@program(*itertools.product((0, 1), (0.0, -1.5)))
def sequences(axis, value):
    x, l = numbers(4, 3) if axis == 0 else numbers(3, 4), np.array([1, 4, 2], "int32")
    t = np.arange(4)[:, None] < l if axis == 0 else np.arange(4)[None] < l[:, None]
    check(lambda v, n: relay.sequence_mask(v, n, value, axis), np.where(t, x, value), x, l)
    if value == 0.0:
        check(lambda v, n: relay.reverse_sequence(v, n, axis, 1 - axis), np.stack([np.concatenate([c[:k][::-1], c[k:]]) for c, k in zip(x.T if axis == 0 else x, l)], 1 - axis), x, l)


@program(*itertools.product((True, False), repeat=2))
def products(ta, tb):
    a, b = numbers(2, 4, 3) if ta else numbers(2, 3, 4), numbers(2, 5, 4) if tb else numbers(2, 4, 5)
    want = (a.transpose(0, 2, 1) if ta else a) @ (b.transpose(0, 2, 1) if tb else b)
    check(lambda x, y: relay.nn.batch_matmul(x, y, transpose_a=ta, transpose_b=tb), want, a, b)
    check(lambda x, y: relay.nn.matmul(x, y, transpose_a=ta, transpose_b=tb), want[0], a[0], b[0])
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    f = relay.Function([x, y], relay.nn.batch_matmul(x, y, transpose_a=ta, transpose_b=tb))
    said = f.astext()
    assert ("transpose_b=True" in said) == tb and ("transpose_a=True" in said) == ta
    np.testing.assert_allclose(evaluate(tvm.parser.fromtext(said.replace("fn (", "def @main(", 1))["main"], a, b), want, rtol=1e-4)


@program(*itertools.product((1, 3), (1, 2), (0, 1)))
def one_dimension(k, stride, pad):
    x, w = numbers(1, 3, 9), numbers(4, 3, k)
    check(lambda v: relay.nn.conv1d(v, relay.const(w), strides=stride, padding=pad, kernel_size=k, channels=4), ref.conv1d_ncw_python(x, w, stride, pad, 1), x)
    for kind in ("max", "avg"):
        check(lambda v: getattr(relay.nn, f"{kind}_pool1d")(v, pool_size=3, strides=stride, padding=pad, **({"count_include_pad": True} if kind == "avg" else {})), ref.poolnd_python(x, [3], [stride], [1], [pad], [pad], kind, True), x)
