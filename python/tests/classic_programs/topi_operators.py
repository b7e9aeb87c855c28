# SPDX-License-Identifier: Apache-2.0
"""Operators as tensor expressions, under their schedules, against numpy: topi."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from harness import numbers, program, raises
from tvm import te, topi
from tvm.topi.utils import get_const_tuple


def check(function, expected, *arrays, schedule=None, tolerance=1e-4):
    """What function(placeholders) computes equals what numpy says; results may be a list."""
    target = tvm.target.Target("llvm")
    inputs = [te.placeholder(a.shape, name=f"A{i}", dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    with target:
        made = function(*inputs)
        outs = list(made) if isinstance(made, (list, tuple)) or hasattr(made, "__iter__") and not isinstance(made, te.Tensor) else [made]
        s = (schedule or tvm.topi.testing.get_injective_schedule(target))(outs)
    built = tvm.build(s, [*inputs, *outs], target, name="op")
    given = [tvm.nd.array(a, tvm.cpu(0)) for a in arrays]
    results = [tvm.nd.array(np.zeros(get_const_tuple(o.shape), dtype=o.dtype), tvm.cpu(0)) for o in outs]
    built(*given, *results)
    for got, want in zip(results, expected if isinstance(expected, (list, tuple)) else [expected]):
        assert got.shape == np.shape(want), (got.shape, np.shape(want))
        tvm.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


UNARY = [("exp", np.exp), ("log", np.log), ("sqrt", np.sqrt), ("rsqrt", lambda x: 1 / np.sqrt(x)), ("tanh", np.tanh), ("sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("sin", np.sin), ("cos", np.cos),
         ("tan", np.tan), ("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("sinh", np.sinh), ("cosh", np.cosh), ("acosh", lambda x: np.arccosh(x)), ("asinh", np.arcsinh), ("atanh", np.arctanh),
         ("log2", np.log2), ("log10", np.log10), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.round), ("abs", np.abs), ("negative", np.negative), ("sign", np.sign),
         ("isnan", np.isnan), ("isfinite", np.isfinite), ("isinf", np.isinf), ("identity", lambda x: x), ("fast_exp", np.exp), ("fast_tanh", np.tanh), ("erf", None), ("fast_erf", None)]


@program(*UNARY)
def elementwise(name, reference):
    x = numbers(20, 3, low=0.1, high=0.9)
    if name == "acosh":
        x = x + 1
    if reference is None:
        import math
        reference = np.vectorize(math.erf)
    check(getattr(topi, name), reference(x).astype("bool" if name.startswith("is") else "float32"), x, schedule=tvm.topi.testing.get_elemwise_schedule("llvm"), tolerance=2e-3 if "fast" in name else 1e-4)


BINARY = [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide), ("floor_divide", np.floor_divide), ("floor_mod", np.mod), ("mod", np.fmod), ("maximum", np.maximum),
          ("minimum", np.minimum), ("power", np.power), ("greater", np.greater), ("less", np.less), ("equal", np.equal), ("not_equal", np.not_equal), ("greater_equal", np.greater_equal), ("less_equal", np.less_equal)]


@program(*[(n, f, a, b) for n, f in BINARY for a, b in (((5, 2, 3), (2, 1)), ((2, 3, 1, 32), (64, 32)))])
def broadcasts(name, reference, left, right):
    x, y = numbers(*left, low=0.5, high=4.0), numbers(*right, low=0.5, high=4.0, seed=3)
    check(getattr(topi, name), reference(x, y), x, y, schedule=tvm.topi.testing.get_broadcast_schedule("llvm"), tolerance=1e-3)


@program(("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide), ("maximum", np.maximum), ("minimum", np.minimum), ("power", np.power), ("greater", np.greater))
def with_a_number(name, reference):
    x = numbers(4, 5, low=0.5, high=2.0)
    check(lambda a: getattr(topi, name)(a, 2.0), reference(x, np.float32(2)), x)
    check(lambda a: getattr(topi, name)(3.0, a), reference(np.float32(3), x), x)


@program(("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor))
def logic(name, reference):
    x, y = numbers(3, 4, dtype="bool"), numbers(3, 1, dtype="bool", seed=2)
    check(getattr(topi, name), reference(x, y), x, y)


@program(("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor), ("left_shift", np.left_shift), ("right_shift", np.right_shift))
def bits(name, reference):
    x, y = abs(numbers(3, 4, dtype="int32")), abs(numbers(3, 1, dtype="int32", seed=2))
    check(getattr(topi, name), reference(x, y), x, y)


@program
def bitwise_not_and_logical_not():
    x = numbers(3, 4, dtype="int32")
    check(topi.bitwise_not, ~x, x)
    b = numbers(3, 4, dtype="bool")
    check(topi.logical_not, ~b, b)


@program(*[(n, axis, keep) for n in ("sum", "max", "min", "prod", "argmax", "argmin", "mean") for axis, keep in ((1, False), ((1, 2), True), (None, False))])
def reductions(name, axis, keepdims):
    x = np.random.RandomState(3).permutation(2 * 6 * 5).reshape(2, 6, 5).astype("float32") / 30 + 0.1
    if name.startswith("arg"):
        if isinstance(axis, tuple):
            reference = getattr(np, name)(x.reshape(2, -1), 1).reshape(2, 1, 1)
        else:
            reference = getattr(np, name)(x, axis=axis)
        reference = np.asarray(reference).astype("int32")
    elif name == "mean":
        size = x.size if axis is None else np.prod([x.shape[a] for a in np.atleast_1d(axis)])
        check(lambda a: topi.divide(topi.sum(a, axis, keepdims), float(size)), x.mean(axis=axis, keepdims=keepdims), x, schedule=tvm.topi.testing.get_injective_schedule("llvm"))
        return
    else:
        reference = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    check(lambda a: getattr(topi, name)(a, axis=axis, keepdims=keepdims), reference, x, schedule=tvm.topi.testing.get_reduce_schedule("llvm"), tolerance=1e-3)


@program(("all", np.all), ("any", np.any))
def reductions_of_bool(name, reference):
    x = numbers(4, 3, 2, dtype="bool")
    check(lambda a: getattr(topi, name)(a, axis=(0, 2)), reference(x, axis=(0, 2)), x, schedule=tvm.topi.testing.get_reduce_schedule("llvm"))


@program
def moves_of_data():
    x = numbers(2, 3, 4)
    check(lambda a: topi.expand_dims(a, 1, num_newaxis=2), x.reshape(2, 1, 1, 3, 4), x)
    check(lambda a: topi.transpose(a, (1, 2, 0)), x.transpose(1, 2, 0), x)
    check(lambda a: topi.reshape(a, (4, 6)), x.reshape(4, 6), x)
    check(lambda a: topi.squeeze(topi.expand_dims(a, 1), axis=1), x, x)
    check(lambda a: topi.flip(a, -1), x[..., ::-1], x)
    check(lambda a: topi.repeat(a, 2, 0), x.repeat(2, 0), x)
    check(lambda a: topi.tile(a, (2, 1, 2)), np.tile(x, (2, 1, 2)), x)
    check(lambda a: topi.cast(a, "int8"), (x * 1).astype("int8"), x)
    check(lambda a: topi.broadcast_to(a, (5, 2, 3, 4)), np.broadcast_to(x, (5, 2, 3, 4)), x)


@program
def splits():
    x = numbers(10, 12, 4)
    check(lambda a: topi.split(a, 3, axis=1), np.split(x, 3, 1), x)
    check(lambda a: topi.split(a, (2, 7), axis=0), np.split(x, [2, 7], 0), x)


@program((0, "clip"), (1, "wrap"), (2, "fast"), (None, "clip"))
def takes(axis, mode):
    x, i = numbers(3, 4, 5), np.array([[0, 2], [1, 0]], "int32")
    check(lambda a, b: topi.take(a, b, axis=axis, mode=mode), np.take(x, i, axis), x, i)


@program((1, 0), (1, 1), (2, 1))
def batched_takes(batch_dims, axis):
    x, i = numbers(2, 3, 4), np.array([[0, 2], [1, 0]], "int32")
    if batch_dims == 2:
        x, i = numbers(2, 2, 4), np.array([[0, 2], [1, 3]], "int32")
        expected = np.array([[x[a, b, i[a, b]] for b in range(2)] for a in range(2)])
        check(lambda a, b: topi.take(a, b, axis=2, batch_dims=2), expected, x, i)
        return
    check(lambda a, b: topi.take(a, b, axis=1, batch_dims=1), np.stack([x[n][i[n]] for n in range(2)]), x, i)


@program(("cumsum", np.cumsum, 0), ("cumsum", np.cumsum, 1), ("cumprod", np.cumprod, 1), ("cumsum", np.cumsum, None), ("cumprod", np.cumprod, None))
def scans(name, reference, axis):
    x = numbers(4, 5)
    check(lambda a: getattr(topi, name)(a, axis=axis), reference(x, axis=axis), x, schedule=topi.generic.schedule_extern)
    exclusive = {"cumsum": lambda v, a: np.cumsum(v, a) - v, "cumprod": lambda v, a: np.cumprod(v, a) / v}[name]
    if axis is not None:
        check(lambda a: getattr(topi, name)(a, axis=axis, exclusive=True), exclusive(x, axis), x, schedule=topi.generic.schedule_extern, tolerance=1e-3)


@program(0, 1, -1)
def gathers(axis):
    x, i = numbers(3, 4), np.random.RandomState(0).randint(0, 3, (3, 4)).astype("int64")
    check(lambda a, b: topi.gather(a, axis, b), np.take_along_axis(x, i, axis), x, i)


@program(((2, 3), [[0, 1], [1, 2]]), ((2, 3, 4), [[0, 1]]), ((2, 3, 4), [[1, 0], [2, 1], [3, 0]]))
def gathers_nd(shape, index):
    x, i = numbers(*shape), np.array(index, "int32")
    check(lambda a, b: topi.gather_nd(a, b), x[tuple(i)], x, i)


@program((0, "update"), (1, "update"), (1, "add"))
def scatters(axis, mode):
    x, i, u = numbers(3, 4), np.array([[2, 0, 1, 1], [0, 1, 2, 2]], "int32") if axis == 0 else np.array([[3, 0], [1, 2], [0, 1]], "int32"), None
    u = numbers(*i.shape, seed=9)
    expected = x.copy()
    for at in np.ndindex(*i.shape):
        to = list(at)
        to[axis] = i[at]
        expected[tuple(to)] = u[at] if mode == "update" else expected[tuple(to)] + u[at]
    function = topi.scatter if mode == "update" else topi.scatter_add
    check(lambda a, b, c: function(a, b, c, axis), expected, x, i, u, schedule=topi.generic.schedule_extern)


@program("update", "add")
def scatters_nd(mode):
    x, i, u = numbers(2, 3), np.array([[1, 0], [2, 1]], "int32"), numbers(2, seed=4)
    expected = x.copy()
    expected[1, 2], expected[0, 1] = (u[0], u[1]) if mode == "update" else (x[1, 2] + u[0], x[0, 1] + u[1])
    check(lambda a, b, c: topi.scatter_nd(a, b, c, mode), expected, x, i, u, schedule=topi.generic.schedule_extern)


@program((0, True), (1, False), (-1, True))
def sorts(axis, ascend):
    x = np.random.RandomState(5).permutation(24).reshape(4, 6).astype("float32")
    order = np.argsort(x if ascend else -x, axis=axis)
    check(lambda a: topi.argsort(a, axis=axis, is_ascend=ascend, dtype="int32"), order.astype("int32"), x, schedule=topi.generic.schedule_argsort)
    check(lambda a: topi.sort(a, axis=axis, is_ascend=ascend), np.take_along_axis(x, order, axis), x, schedule=topi.generic.schedule_sort)


@program((3, -1, "both", False), (1, 0, "values", True), (2, 1, "indices", False))
def topk(k, axis, kind, ascend):
    x = np.random.RandomState(5).permutation(24).reshape(4, 6).astype("float32")
    order = np.argsort(x if ascend else -x, axis=axis)
    order = np.take(order, range(k), axis)
    values = np.take_along_axis(x, order, axis)
    expected = {"both": [values, order.astype("int64")], "values": values, "indices": order.astype("int64")}[kind]
    check(lambda a: topi.topk(a, k, axis=axis, ret_type=kind, is_ascend=ascend, dtype="int64"), expected, x, schedule=topi.generic.schedule_topk)


@program("left", "right")
def searches(side):
    sequence, values = np.array([1, 3, 3, 7, 9], "float32"), np.array([[0, 3], [9, 10]], "float32")
    check(lambda s, v: topi.searchsorted(s, v, right=side == "right", out_dtype="int64"), np.searchsorted(sequence, values, side).astype("int64"), sequence, values, schedule=topi.generic.schedule_extern)


@program("ij,jk->ik", "ii", "i,i->", "...j->...", "ij,ij->j", "bij,bjk->bik", "ij->ji")
def sums_by_letters(text):
    shapes = {"ij,jk->ik": [(2, 3), (3, 4)], "ii": [(4, 4)], "i,i->": [(5,), (5,)], "...j->...": [(2, 3, 4)], "ij,ij->j": [(3, 4), (3, 4)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "ij->ji": [(3, 4)]}[text]
    arrays = [numbers(*s, seed=n) for n, s in enumerate(shapes)]
    check(lambda *t: topi.einsum(text, *t), np.asarray(np.einsum(text, *arrays)), *arrays, schedule=topi.generic.schedule_einsum)


@program(("NCHW", "NHWC"), ("NCHW", "NCHW4c"), ("NCHW4c", "NCHW"))
def layouts(source, destination):
    x = numbers(2, 8, 3, 5)
    blocked = x.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2).copy()
    given, expected = {"NHWC": (x, x.transpose(0, 2, 3, 1)), "NCHW4c": (x, blocked), "NCHW": (blocked, x)}[destination]
    check(lambda a: topi.layout_transform(a, source, destination), expected, given)


@program
def shapes_and_sizes():
    x = numbers(2, 3, 4)
    check(lambda a: topi.shape(a), np.array([2, 3, 4], "int32"), x)
    check(lambda a: topi.ndarray_size(a), np.array(24, "int32"), x)
    check(lambda a: topi.full((2, 3), "float32", 3.5), np.full((2, 3), 3.5, "float32"), x)
    check(lambda a: topi.full_like(a, 1), np.ones_like(x), x)
    check(lambda a: topi.elemwise_sum([a, a, a]), 3 * x, x)


@program
def sequences():
    x, n = numbers(5, 3, 2), np.array([1, 5, 2], "int32")
    expected = x.copy()
    for b, length in enumerate(n):
        expected[length:, b] = -1
    check(lambda a, v: topi.sequence_mask(a, v, mask_value=-1.0, axis=0), expected, x, n)
    turned = x.copy()
    for b, length in enumerate(n):
        turned[:length, b] = x[:length, b][::-1]
    check(lambda a, v: topi.reverse_sequence(a, v, seq_axis=0, batch_axis=1), turned, x, n)


@program
def matrices_and_products():
    a, b = numbers(4, 5), numbers(5, 3)
    check(lambda x, y: topi.matmul(x, y), a @ b, a, b)
    check(lambda x, y: topi.tensordot(x, y, 1), a @ b, a, b)
    p, q = numbers(2, 3, 4), numbers(4, 3, 5)
    check(lambda x, y: topi.tensordot(x, y, axes=((2, 1), (0, 1))), np.tensordot(p, q, ((2, 1), (0, 1))), p, q)
    check(lambda x, y: topi.nn.matmul(x, y, None, None, True, False), a @ b, a.T.copy(), b)
    check(lambda x: topi.trilu(x, tvm.tir.const(0, "int32"), True), np.triu(a), a)
    check(lambda x: topi.matrix_set_diag(x, te.compute((4,), lambda i: tvm.tir.const(1.0, "float32")), (0, 0)), a * (1 - np.eye(4, 5)) + np.eye(4, 5), a)


@program
def indices():
    check(lambda i: topi.unravel_index(i, te.compute((2,), lambda k: tvm.tir.if_then_else(k == 0, 3, 4).astype("int32"))), np.array(np.unravel_index([5, 11, 0], (3, 4)), "int32"), np.array([5, 11, 0], "int32"))
    x = numbers(3, 4, 5)
    a, b = np.array([0, 2], "int32"), np.array([1, 3], "int32")
    check(lambda t, i, j: topi.adv_index(t, [i, j]), x[a, b], x, a, b)
    grids = np.meshgrid(np.arange(3, dtype="float32"), np.arange(4, dtype="float32"), indexing="ij")
    check(lambda p, q: topi.meshgrid([p, q], "ij"), list(grids), np.arange(3, dtype="float32"), np.arange(4, dtype="float32"))
    check(lambda t: topi.strided_slice(t, [0, 1], [3, 4], [2, 2]), x[0:3:2, 1:4:2], x)
    check(lambda t, v: topi.strided_set(t, v, *[te.compute((3,), lambda i, n=n: tvm.tir.const(n, "int32")) for n in (1, 2)]), _set(x), x, np.full((1, 1, 1), 9, "float32"))


def _set(x):
    out = x.copy()
    out[1:2, 1:2, 1:2] = 9
    return out


@program
def sparse_forms():
    dense, at = np.zeros((3, 4), "float32"), np.array([[0, 1], [2, 3]], "int32")
    dense[0, 1], dense[2, 3] = 5, 7
    check(lambda i, v: topi.sparse_to_dense(i, (3, 4), v), dense, at, np.array([5, 7], "float32"))
    weights = np.array([[1, 0, 0, 2], [0, 0, 3, 0], [0, 4, 0, 0]], "float32")
    data, columns, rows = np.array([1, 2, 3, 4], "float32"), np.array([0, 3, 2, 1], "int32"), np.array([0, 2, 3, 4], "int32")
    x = numbers(2, 4)
    check(lambda t, d, c, r: topi.nn.sparse_dense(t, d, c, r), x @ weights.T, x, data, columns, rows)


# Layers.

@program(("NCHW", 2), ("NHWC", 2))
def local_normalisation(layout, n):
    x = numbers(1, 5, 4, 4)
    padded = np.pad(x ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    sums = sum(padded[:, i:i + 5] for i in range(3))
    expected = x / (2.0 + 1.0 / 3 * sums) ** 0.75
    check(lambda a: topi.nn.lrn(a, 3, 1, 1.0, 0.75, 2.0), expected, x, schedule=topi.generic.schedule_lrn)


@program(([2, 1], 0.0), ([1, 3], 1.5))
def dilations(strides, value):
    x = numbers(3, 4)
    expected = np.full(((3 - 1) * strides[0] + 1, (4 - 1) * strides[1] + 1), value, "float32")
    expected[::strides[0], ::strides[1]] = x
    check(lambda a: topi.nn.dilate(a, strides, value), expected, x)
    tvm.testing.assert_allclose(tvm.topi.testing.dilate_python(x, strides, value), expected)


@program((1, 0, 1), (2, 1, 1), (1, "SAME", 1), (1, 2, 2))
def convolutions_1d(stride, padding, dilation):
    a, w = numbers(2, 3, 16), numbers(4, 3, 3)
    check(lambda x, y: topi.nn.conv1d_ncw(x, y, stride, padding, dilation), tvm.topi.testing.conv1d_ncw_python(a, w, stride, padding, dilation), a, w)
    check(lambda x, y: topi.nn.conv1d(x, y, stride, padding, dilation, "NCW"), tvm.topi.testing.conv1d_ncw_python(a, w, stride, padding, dilation), a, w)


@program((1, 0, 1, 1), (2, 1, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2))
def convolutions_2d(stride, padding, dilation, groups):
    a, w = numbers(1, 4, 8, 8), numbers(6, 4 // groups, 3, 3)
    if groups > 1:
        check(lambda x, y: topi.nn.group_conv2d_nchw(x, y, stride, padding, dilation, groups), tvm.topi.testing.conv2d_nchw_python(a, w, stride, padding, groups), a, w)
        return
    dilated = tvm.topi.testing.dilate_python(w, (1, 1, dilation, dilation))
    check(lambda x, y: topi.nn.conv2d_nchw(x, y, stride, padding, dilation), tvm.topi.testing.conv2d_nchw_python(a, dilated, stride, padding), a, w)
    check(lambda x, y: topi.nn.conv2d_hwcn(x, y, stride, padding, dilation), tvm.topi.testing.conv2d_nchw_python(a, dilated, stride, padding).transpose(2, 3, 1, 0), a.transpose(2, 3, 1, 0).copy(),
          w.transpose(2, 3, 1, 0).copy())


@program((1, 0), (2, 1))
def convolutions_3d(stride, padding):
    a, w = numbers(1, 2, 5, 6, 6), numbers(3, 2, 3, 3, 3)
    expected = tvm.topi.testing.conv3d_ncdhw_python(a, w, stride, padding)
    check(lambda x, y: topi.nn.conv3d_ncdhw(x, y, stride, padding, 1, 1), expected, a, w)
    check(lambda x, y: topi.nn.conv3d_ndhwc(x, y, stride, padding, 1, 1), expected.transpose(0, 2, 3, 4, 1), a.transpose(0, 2, 3, 4, 1).copy(), w.transpose(2, 3, 4, 1, 0).copy())


@program(((1, 1), (0, 0, 0, 0), (0, 0)), ((2, 2), (1, 1, 1, 1), (0, 0)), ((2, 2), (1, 1, 1, 1), (1, 1)))
def transposed_convolutions(stride, padding, more):
    a, w = numbers(1, 3, 5, 5), numbers(3, 4, 3, 3)
    expected = tvm.topi.testing.conv2d_transpose_nchw_python(a, w, stride, padding, more)
    check(lambda x, y: topi.nn.conv2d_transpose_nchw(x, y, stride, padding, "float32", more), expected, a, w, tolerance=1e-3)


@program((1, 0, 0), (2, 1, 0), (2, 1, 1))
def transposed_convolutions_1d(stride, padding, more):
    a, w = numbers(1, 3, 9), numbers(3, 4, 3)
    expected = tvm.topi.testing.conv1d_transpose_ncw_python(a, w, stride, padding, (more,))
    check(lambda x, y: topi.nn.conv1d_transpose_ncw(x, y, stride, padding, "float32", (more,)), expected, a, w, tolerance=1e-3)


@program(("NCHW", "nearest_neighbor"), ("NCHW", "bilinear"), ("NHWC", "nearest_neighbor"))
def upsamplings(layout, method):
    x = numbers(1, 2, 4, 4) if layout == "NCHW" else numbers(1, 4, 4, 2)
    tail = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear"}[method]
    expected = x.repeat(2, layout.index("H")).repeat(2, layout.index("W")) if method == "nearest_neighbor" else tvm.topi.testing.resize2d_python(x, (2, 2), layout, tail, "asymmetric")
    check(lambda a: topi.nn.upsampling(a, 2, 2, layout=layout, method=method), expected, x)


@program(("nearest_neighbor", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel"))
def resizes(method, coordinates):
    x = numbers(1, 2, 5, 4)
    size = (7, 9)
    expected = tvm.topi.testing.resize2d_python(x, (7 / 5, 9 / 4), "NCHW", method, coordinates)
    roi = (0.0, 0.0, 0.0, 0.0)
    check(lambda a: topi.image.resize2d(a, roi, size, layout="NCHW", method=method, coordinate_transformation_mode=coordinates, rounding_method=""), expected, x, tolerance=1e-3)


@program(((2, 2), "avg"), ((3, 3), "max"), ((1, 1), "avg"))
def adaptive_pools(size, kind):
    x = numbers(1, 3, 6, 9)
    check(lambda a: topi.nn.adaptive_pool(a, size, kind), tvm.topi.testing.adaptive_pool(x, size, kind, "NCHW"), x, schedule=topi.generic.schedule_adaptive_pool)


@program(("max", True), ("avg", True), ("avg", False))
def pools(kind, count):
    x = numbers(1, 4, 8, 8)
    expected = tvm.topi.testing.poolnd_python(x, [3, 3], [2, 2], [1, 1], [1, 1], [1, 1], kind, count_include_pad=count, ceil_mode=False)
    check(lambda a: topi.nn.pool2d(a, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], pool_type=kind, ceil_mode=False, layout="NCHW", count_include_pad=count), expected, x)
    y = numbers(1, 4, 9)
    expected = tvm.topi.testing.poolnd_python(y, [3], [2], [1], [1], [1], kind, count_include_pad=count, ceil_mode=False)
    check(lambda a: topi.nn.pool1d(a, [3], [2], [1], [1, 1], pool_type=kind, ceil_mode=False, layout="NCW", count_include_pad=count), expected, y)
    z = numbers(1, 2, 5, 6, 6)
    expected = tvm.topi.testing.poolnd_python(z, [2, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], [1, 1, 1], kind, count_include_pad=count, ceil_mode=False)
    check(lambda a: topi.nn.pool3d(a, [2, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1, 1, 1, 1], pool_type=kind, ceil_mode=False, layout="NCDHW", count_include_pad=count), expected, z)


@program(2, 3)
def depth_to_space(block):
    x = numbers(1, 9 * 4, 3, 3) if block == 3 else numbers(1, 8, 3, 3)
    check(lambda a: topi.nn.depth_to_space(a, block, "NCHW", "DCR"), tvm.topi.testing.depth_to_space_python(x, block), x)
    y = numbers(1, 2, 6, 6)
    check(lambda a: topi.nn.space_to_depth(a, block, "NCHW"), tvm.topi.testing.space_to_depth_python(y, block), y)


@program
def batches_to_space():
    x = numbers(1, 4, 4, 1)
    blocked = tvm.topi.testing.space_to_batch_nd_python(x, [2, 2], [0, 0], [0, 0])
    check(lambda a: topi.nn.space_to_batch_nd(a, [2, 2], [0, 0], [0, 0]), blocked, x)
    check(lambda a: topi.nn.batch_to_space_nd(a, [2, 2], [0, 0], [0, 0]), x, blocked)


@program
def norms():
    x, g, b = numbers(2, 3, 4), numbers(4, seed=1), numbers(4, seed=2)
    mean, variance = x.mean(2, keepdims=True), x.var(2, keepdims=True)
    check(lambda a, p, q: topi.nn.layer_norm(a, p, q, [2], 1e-5), (x - mean) / np.sqrt(variance + 1e-5) * g + b, x, g, b, schedule=topi.generic.schedule_injective)
    y, gamma, beta, m, v = numbers(2, 3, 4, 4), *(numbers(3, seed=s) for s in (1, 2, 3)), numbers(3, low=0.5, high=1.5)
    out = [w.reshape(1, 3, 1, 1) for w in (gamma, beta, m, v)]
    check(lambda *a: topi.nn.batch_norm(*a)[0], (y - out[2]) / np.sqrt(out[3] + 1e-5) * out[0] + out[1], y, gamma, beta, m, v, schedule=topi.generic.schedule_injective)
    check(lambda a: topi.nn.scale_shift_nhwc(a, te.compute((4,), lambda i: tvm.tir.const(2.0)), te.compute((4,), lambda i: tvm.tir.const(1.0))), y * 2 + 1, y)
    check(lambda a: topi.nn.softmax(a, axis=1), tvm.topi.testing.softmax_python(x.reshape(6, 4)), x.reshape(6, 4), schedule=tvm.topi.testing.get_softmax_schedule("llvm"))
    check(lambda a: topi.nn.log_softmax(a), tvm.topi.testing.log_softmax_python(x.reshape(6, 4)), x.reshape(6, 4), schedule=tvm.topi.testing.get_softmax_schedule("llvm"))
    check(lambda a: topi.nn.fast_softmax(a, axis=1), tvm.topi.testing.softmax_python(x.reshape(6, 4)), x.reshape(6, 4), schedule=tvm.topi.testing.get_softmax_schedule("llvm"), tolerance=2e-3)


@program
def activations():
    x, slope = numbers(2, 4, 3, 3), numbers(4, seed=5)
    check(topi.nn.relu, np.maximum(x, 0), x, schedule=tvm.topi.testing.get_elemwise_schedule("llvm"))
    check(lambda a: topi.nn.leaky_relu(a, 0.1), np.where(x > 0, x, x * np.float32(0.1)), x)
    check(lambda a, s: topi.nn.prelu(a, s), np.where(x > 0, x, x * slope.reshape(4, 1, 1)), x, slope)
    check(topi.nn.flatten, x.reshape(2, 36), x)
    check(lambda a: topi.nn.mirror_pad(a, [0, 0, 1, 1], [0, 0, 1, 1], "REFLECT"), np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "reflect"), x)
    check(lambda a: topi.nn.mirror_pad(a, [0, 0, 1, 1], [0, 0, 1, 1], "SYMMETRIC"), np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "symmetric"), x)


@program(("float32", "float32"), ("int8", "int32"))
def dense_layers(dtype, out):
    a, w, b = numbers(3, 16, dtype=dtype), numbers(5, 16, dtype=dtype, seed=1), numbers(5, dtype=out, seed=2)
    expected = a.astype(out) @ w.T.astype(out) + b
    check(lambda x, y, z: topi.nn.dense(x, y, z, out), expected, a, w, b)


@program((True, False), (False, True), (True, True), (False, False))
def batch_products(left, right):
    a, b = numbers(2, 3, 4), numbers(2, 4, 5)
    given = [a.transpose(0, 2, 1).copy() if left else a, b.transpose(0, 2, 1).copy() if right else b]
    check(lambda x, y: topi.nn.batch_matmul(x, y, transpose_a=left, transpose_b=right), a @ b, *given)


@program
def mistakes():
    a, b = te.placeholder((2, 3), name="a"), te.placeholder((4, 5), name="b")
    raises(ValueError, topi.add, a, b)
    raises(Exception, topi.concatenate, (a, te.placeholder((2, 3, 1))), 0)
    raises(Exception, topi.tensordot, a, b, 1)
    raises(Exception, topi.einsum, "ij,jk", a)
    raises(Exception, topi.squeeze, a, 0)
    raises(Exception, lambda: topi.reshape(a, (4, 4)))
    raises(Exception, lambda: topi.transpose(a, (0, 0)))


@program
def helpers():
    assert get_const_tuple(te.placeholder((2, 3)).shape) == (2, 3)
    assert topi.utils.get_const_int(tvm.tir.const(4, "int32")) == 4
    assert topi.nn.utils.get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2)
    assert topi.nn.utils.get_pad_tuple("VALID", (3, 3)) == (0, 0, 0, 0)
    assert topi.nn.utils.get_pad_tuple("SAME", (3, 3)) == (1, 1, 1, 1)
    assert topi.utils.nchw_pack_layout("NCHW1n16c") == (1, 16)
    assert topi.utils.nchw_xc_layout("NCHW8c") == 8
    visited = []
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, tag="elemwise")
    s = te.create_schedule([b.op])
    topi.utils.traverse_inline(s, b.op, visited.append)
    assert visited == [b.op]
    assert topi.utils.is_empty_shape((0, 3)) and not topi.utils.is_empty_shape((1, 2))
    assert tvm.topi.testing.dispatch("llvm", {"generic": 1, "cpu": 2}) == 2
    assert topi.tag.is_broadcast("elemwise,x") and topi.tag.is_injective(topi.tag.INJECTIVE) and topi.tag.ELEMWISE == "elemwise"


@program(({"tile_ic": 4}, "NCHWc"),)
def blocked_convolutions(config, layout):
    a, w = numbers(1, 8, 6, 6), numbers(8, 8, 3, 3, seed=2)
    blocked = a.reshape(1, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2).copy()
    kernel = w.reshape(2, 4, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()
    expected = tvm.topi.testing.conv2d_nchw_python(a, w, 1, 1)
    out = expected.reshape(1, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2)
    check(lambda x, y: topi.nn.conv2d_NCHWc(x, y, (1, 1), (1, 1), (1, 1), "NCHW4c", "NCHW4c"), out, blocked, kernel)


@program
def borders_and_crops():
    x = numbers(1, 5, 6, 2)
    boxes, which = np.array([[0.1, 0.2, 0.8, 0.7], [0.0, 0.0, 1.0, 1.0]], "float32"), np.array([0, 0], "int32")
    expected = tvm.topi.testing.crop_and_resize_python(x, boxes, which, (3, 3), "NHWC", "bilinear", 0)
    check(lambda a, b, i: topi.image.crop_and_resize(a, b, i, (3, 3), layout="NHWC"), expected, x, boxes, which, tolerance=1e-3)
    y = numbers(1, 2, 5, 5)
    k = numbers(2, 3, 3, seed=1)
    check(lambda a, b: topi.image.dilation2d_nchw(a, b, (1, 1), 1, (1, 1)), _dilated(y, k), y, k)
    flow = numbers(1, 3, 3, 2)
    check(lambda a: topi.nn.pad(a, (0, 1, 1, 0), pad_value=2.0), np.pad(flow, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=2), flow)


def _dilated(y, k):
    padded = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    out = np.full(y.shape, -np.inf, "float32")
    for i in range(3):
        for j in range(3):
            out = np.maximum(out, padded[:, :, i:i + 5, j:j + 5] + k[None, :, i:i + 1, j:j + 1])
    return out
