# SPDX-License-Identifier: Apache-2.0
"""Operators over sizes that only a run knows: each on the reference executor and on the virtual machine, beside numpy."""
import numpy as np
import tvm
import tvm.topi.testing as reference
from harness import evaluate, numbers, program
from tvm import relay

MATRIX, VOLUME, IMAGE, SOLID = numbers(3, 4), numbers(2, 3, 4), numbers(1, 3, 6, 6), numbers(1, 2, 4, 4, 4)
KERNEL, ONES = numbers(4, 3, 3, 3), lambda *shape: np.ones(shape, "float32")


def const(values, dtype=None):
    return relay.const(np.array(values, dtype) if dtype else np.array(values))


# name: (input, the operator on a variable of free sizes, what numpy makes of the input)
CASES = {
    "transpose": (MATRIX, lambda x: relay.transpose(x, (1, 0)), lambda a: a.T),
    "reshape to a vector": (MATRIX, lambda x: relay.reshape(x, (-1,)), np.ravel),
    "reshape that keeps an axis": (MATRIX, lambda x: relay.reshape(x, (0, 2, -1)), lambda a: a.reshape(3, 2, 2)),
    "new axes": (MATRIX, lambda x: relay.expand_dims(x, 1, 2), lambda a: a[:, None, None]),
    "axes gone": (MATRIX, lambda x: relay.squeeze(relay.expand_dims(x, 0), [0]), lambda a: a),
    "take": (MATRIX, lambda x: relay.take(x, const([0, 2]), axis=0), lambda a: a[[0, 2]]),
    "tile": (MATRIX, lambda x: relay.tile(x, (2, 1)), lambda a: np.tile(a, (2, 1))),
    "split": (MATRIX, lambda x: relay.split(x, 2, 1).astuple(), lambda a: np.split(a, 2, 1)),
    "sum": (MATRIX, lambda x: relay.sum(x, axis=1, keepdims=True), lambda a: a.sum(1, keepdims=True)),
    "argmax": (MATRIX, lambda x: relay.argmax(x, axis=1), lambda a: a.argmax(1)),
    "slice": (MATRIX, lambda x: relay.strided_slice(x, [0, 1], [2, 4]), lambda a: a[:2, 1:4]),
    "last rows": (MATRIX, lambda x: relay.strided_slice(x, [-1], [10], axes=[0]), lambda a: a[-1:]),
    "shape": (MATRIX, lambda x: relay.shape_of(x, "int64"), lambda a: np.array(a.shape)),
    "number of elements": (MATRIX, lambda x: relay.ndarray_size(x), lambda a: np.array(a.size)),
    "relu": (MATRIX, relay.nn.relu, lambda a: a.clip(0)),
    "softmax": (MATRIX, relay.nn.softmax, lambda a: reference.softmax_python(a, -1)),
    "dense": (MATRIX, lambda x: relay.nn.dense(x, relay.const(ONES(5, 4))), lambda a: a @ ONES(4, 5)),
    "batched product": (VOLUME, lambda x: relay.nn.batch_matmul(x, x), lambda a: a @ a.transpose(0, 2, 1)),
    "argwhere": (MATRIX, lambda x: relay.argwhere(relay.nn.relu(x)), lambda a: np.argwhere(a.clip(0))),
    "where": (MATRIX, lambda x: relay.where(relay.greater(x, relay.const(0.0)), x, relay.const(0.0)), lambda a: a.clip(0)),
    "topk": (MATRIX, lambda x: relay.topk(x, k=2, ret_type="values"), lambda a: -np.sort(-a, 1)[:, :2]),
    "argsort": (MATRIX, lambda x: relay.argsort(x, dtype="int64"), lambda a: a.argsort(1)),
    "sort": (MATRIX, lambda x: relay.sort(x, axis=0), lambda a: np.sort(a, 0)),
    "pool": (IMAGE, lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2)), lambda a: a.reshape(1, 3, 3, 2, 3, 2).max((3, 5))),
    "global pool": (IMAGE, relay.nn.global_avg_pool2d, lambda a: a.mean((2, 3), keepdims=True)),
    "adaptive pool": (IMAGE, lambda x: relay.nn.adaptive_avg_pool2d(x, (2, 2)), lambda a: a.reshape(1, 3, 2, 3, 2, 3).mean((3, 5))),
    "convolution": (IMAGE, lambda x: relay.nn.conv2d(x, relay.const(KERNEL), kernel_size=(3, 3), channels=4, padding=1), lambda a: reference.conv2d_nchw_python(a, KERNEL, 1, 1)),
    "convolution in steps": (IMAGE, lambda x: relay.nn.conv2d(x, relay.const(KERNEL), kernel_size=(3, 3), channels=4, strides=2), lambda a: reference.conv2d_nchw_python(a, KERNEL, 2, 0)),
    "convolution of a row": (VOLUME, lambda x: relay.nn.conv1d(x, relay.const(ONES(2, 3, 3)), kernel_size=3, channels=2), lambda a: reference.conv1d_ncw_python(a, ONES(2, 3, 3), 1, 0, 1)),
    "convolution of a solid": (SOLID, lambda x: relay.nn.conv3d(x, relay.const(ONES(2, 2, 3, 3, 3)), kernel_size=(3, 3, 3), channels=2),
                               lambda a: reference.conv3d_ncdhw_python(a, ONES(2, 2, 3, 3, 3), 1, 0)),
    "transposed convolution": (IMAGE, lambda x: relay.nn.conv2d_transpose(x, relay.const(ONES(3, 2, 3, 3)), kernel_size=(3, 3), channels=2),
                               lambda a: reference.conv2d_transpose_nchw_python(a, ONES(3, 2, 3, 3), 1, 0, (0, 0))),
    "prelu": (IMAGE, lambda x: relay.nn.prelu(x, const([0.1, 0.2, 0.3], "float32")), lambda a: np.where(a > 0, a, a * np.reshape([0.1, 0.2, 0.3], (1, 3, 1, 1)))),
    "bias": (IMAGE, lambda x: relay.nn.bias_add(x, const([1, 2, 3], "float32")), lambda a: a + np.reshape([1, 2, 3], (1, 3, 1, 1))),
    "batch norm": (IMAGE, lambda x: relay.nn.batch_norm(x, *[relay.const(v * ONES(3)) for v in (2, 1, 0, 1)])[0], lambda a: a / np.sqrt(1 + 1e-5) * 2 + 1),
    "layer norm": (MATRIX, lambda x: relay.nn.layer_norm(x, relay.const(ONES(4)), relay.const(0 * ONES(4))), lambda a: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)),
    "resize": (IMAGE, lambda x: relay.image.resize2d(x, (12, 12), method="nearest_neighbor", coordinate_transformation_mode="asymmetric"), lambda a: a.repeat(2, 2).repeat(2, 3)),
    "upsampling": (IMAGE, lambda x: relay.nn.upsampling(x, 2, 2), lambda a: a.repeat(2, 2).repeat(2, 3)),
    "pad": (IMAGE, lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2))), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 1), (2, 2)))),
    "dilate": (MATRIX, lambda x: relay.nn.dilate(x, [2, 1]), lambda a: reference.dilate_python(a, [2, 1])),
    "flatten": (VOLUME, relay.nn.batch_flatten, lambda a: a.reshape(2, -1)),
    "stack": (MATRIX, lambda x: relay.stack([x, x], 0), lambda a: np.stack([a, a])),
    "concatenate": (MATRIX, lambda x: relay.concatenate([x, x], 1), lambda a: np.concatenate([a, a], 1)),
    "gather_nd": (MATRIX, lambda x: relay.gather_nd(x, const([[0, 1], [1, 2]])), lambda a: a[[0, 1], [1, 2]]),
    "gather": (MATRIX, lambda x: relay.gather(x, 1, const([[0], [1], [2]], "int64")), lambda a: np.take_along_axis(a, np.array([[0], [1], [2]]), 1)),
    "scatter": (MATRIX, lambda x: relay.scatter(x, const([[0, 0, 0, 0]]), relay.const(ONES(1, 4)), 0), lambda a: np.concatenate([ONES(1, 4), a[1:]])),
    "broadcast to a shape": (MATRIX, lambda x: relay.broadcast_to(relay.sum(x), relay.shape_of(x)), lambda a: np.full((3, 4), a.sum())),
    "broadcast like another": (MATRIX, lambda x: relay.broadcast_to_like(relay.sum(x, axis=0), x), lambda a: np.broadcast_to(a.sum(0), a.shape)),
    "sum like another": (MATRIX, lambda x: relay.collapse_sum_like(x, relay.sum(x, axis=0)), lambda a: a.sum(0)),
    "shape of another": (MATRIX, lambda x: relay.reshape_like(relay.reshape(x, (-1,)), x), lambda a: a),
    "reverse": (MATRIX, lambda x: relay.reverse(x, 0), lambda a: a[::-1]),
    "repeat": (MATRIX, lambda x: relay.repeat(x, 2, 0), lambda a: a.repeat(2, 0)),
    "running sum": (MATRIX, lambda x: relay.cumsum(x, 0), lambda a: a.cumsum(0)),
    "grid": (MATRIX, lambda x: relay.meshgrid([relay.reshape(x, (-1,))] * 2).astuple(), lambda a: np.meshgrid(a.ravel(), a.ravel(), indexing="ij")),
    "log of the sum": (MATRIX, lambda x: relay.logsumexp(x, 1), lambda a: np.log(np.exp(a).sum(1))),
    "all": (MATRIX, lambda x: relay.all(relay.greater(x, relay.const(-2.0)), axis=0), lambda a: np.ones(4, bool)),
    "a branch": (MATRIX, lambda x: relay.If(relay.greater(relay.sum(x), relay.const(9.0)), x, x + x), lambda a: 2 * a),
}


@program(*CASES)
def free_sizes(name):
    given, operator, wanted = CASES[name]
    x = relay.var("x", relay.TensorType([relay.Any()] * given.ndim))
    want = wanted(given)
    for kind in ("debug", "vm"):
        got = evaluate(relay.Function([x], operator(x)), given, kind=kind)
        for mine, other in zip(got, want) if isinstance(want, (list, tuple)) else [(got, want)]:
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)
            assert mine.shape == other.shape


@program
def unknown_sizes_are_one_type():
    x = relay.var("x", relay.TensorType((relay.Any(), 3)))
    twice = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.concatenate([x, x], 0))))["main"]
    assert twice.ret_type == x.type_annotation and tvm.ir.structural_hash(twice.ret_type) == tvm.ir.structural_hash(x.type_annotation)


@program
def branches_of_two_types():
    from harness import raises
    c = relay.var("c", "bool")
    branch = relay.Function([c], relay.If(c, relay.const(1.0), relay.const(True)))
    raises(tvm.TVMError, relay.transform.InferType(), tvm.IRModule.from_expr(branch))
