# SPDX-License-Identifier: Apache-2.0
"""Sizes that only a run brings: each operator by the virtual machine, beside numpy."""
import numpy as np
import tvm
import tvm.topi.testing as ref
from harness import numbers, program, raises
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_infer_type

any_ = relay.Any


def free(rank, dtype="float32"):
    return relay.TensorType([any_() for _ in range(rank)], dtype)


def run(params, body, *data, kinds=("vm",)):
    if hasattr(body, "astuple"):
        body = body.astuple()
    for kind in kinds:
        out = relay.create_executor(kind, mod=tvm.IRModule.from_expr(relay.Function(params, body)), target="llvm").evaluate()(*data)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


A, C = numbers(2, 3, 4), numbers(1, 3, 8, 8)
M = numbers(3, 5)
I = np.array([[0, 2], [1, 1]], "int32")
# name, ranks' data, body, expected
CASES = {
    "broadcast add": ([M, numbers(5)], lambda x, y: relay.add(x, y), np.add), "broadcast of ones": ([M, numbers(3, 1)], relay.multiply, np.multiply),
    "concatenate": ([M, numbers(2, 5)], lambda x, y: relay.concatenate([x, y], 0), lambda x, y: np.concatenate([x, y])), "concatenate last": ([M, M], lambda x, y: relay.concatenate([x, y], -1), lambda x, y: np.concatenate([x, y], 1)),
    "reshape": ([A], lambda x: relay.reshape(x, (-1, 4)), lambda a: a.reshape(-1, 4)), "reshape 0": ([A], lambda x: relay.reshape(x, (0, -1)), lambda a: a.reshape(2, 12)), "reshape -3": ([A], lambda x: relay.reshape(x, (-3, -2)), lambda a: a.reshape(6, 4)),
    "transpose": ([A], lambda x: relay.transpose(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)), "expand": ([M], lambda x: relay.expand_dims(x, 1), lambda a: a[:, None]), "flatten": ([A], relay.nn.batch_flatten, lambda a: a.reshape(2, -1)),
    "take": ([M, I], lambda x, i: relay.take(x, i, axis=0), lambda a, i: a[i]), "take all": ([M, I], lambda x, i: relay.take(x, i), lambda a, i: a.reshape(-1)[i]), 
    "split": ([M.T.copy()], lambda x: relay.split(x, [2], axis=0), lambda a: [a[:2], a[2:]]), "shape_of": ([A], relay.shape_of, lambda a: np.array(a.shape, "int32")), "sum": ([A], lambda x: relay.sum(x, axis=1), lambda a: a.sum(1)),
    "mean kept": ([A], lambda x: relay.mean(x, axis=(0, 2), keepdims=True), lambda a: a.mean((0, 2), keepdims=True)), "argmax": ([A], lambda x: relay.argmax(x, axis=2), lambda a: a.argmax(2)), "max of all": ([A], relay.max, np.max),
    "dense": ([M, numbers(4, 5)], relay.nn.dense, lambda a, b: a @ b.T), "batch_matmul": ([A, numbers(2, 5, 4)], relay.nn.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1)), "softmax": ([M], relay.nn.softmax, lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    "log_softmax": ([M], lambda x: relay.nn.log_softmax(x, axis=1), lambda a: a - np.log(np.exp(a).sum(1, keepdims=True))), "relu": ([A], relay.nn.relu, lambda a: np.maximum(a, 0)), "topk": ([M], lambda x: relay.topk(x, 2, axis=1, ret_type="values"), lambda a: -np.sort(-a, 1)[:, :2]),
    "argsort": ([M], lambda x: relay.argsort(x, axis=1, dtype="int32"), lambda a: a.argsort(1)), "sort": ([M], lambda x: relay.sort(x, axis=0), lambda a: np.sort(a, 0)), "cumsum": ([M], lambda x: relay.cumsum(x, axis=0), lambda a: a.cumsum(0)),
    "where": ([M > 0, M, -M], relay.where, np.where), "argwhere": ([(M > 0).astype("float32")], relay.argwhere, lambda a: np.argwhere(a)), "full_like": ([M], lambda x: relay.full_like(x, relay.const(3.0)), lambda a: np.full_like(a, 3)),
    "stack": ([M, M], lambda x, y: relay.stack([x, y], 1), lambda x, y: np.stack([x, y], 1)), "tile": ([M], lambda x: relay.tile(x, (2, 1)), lambda a: np.tile(a, (2, 1))), "repeat": ([M], lambda x: relay.repeat(x, 2, 1), lambda a: np.repeat(a, 2, 1)),
    "reverse": ([M], lambda x: relay.reverse(x, 1), lambda a: a[:, ::-1]), "slice": ([A], lambda x: relay.strided_slice(x, [0, 1], [2, 3], [1, 1]), lambda a: a[0:2, 1:3]), "slice backwards": ([M], lambda x: relay.strided_slice(x, [-1, -1], [-9, -9], [-1, -2]), lambda a: a[::-1, ::-2]),
    "slice_like": ([M, numbers(2, 3)], relay.slice_like, lambda a, b: a[:2, :3]), "pad": ([M], lambda x: relay.nn.pad(x, ((1, 0), (0, 2)), 1.0), lambda a: np.pad(a, ((1, 0), (0, 2)), constant_values=1)), "one_hot": ([I], lambda i: relay.one_hot(i, relay.const(1.0), relay.const(0.0), 3, -1, "float32"), lambda i: np.eye(3, dtype="float32")[i]),
    "conv2d": ([C], lambda x: relay.nn.conv2d(x, relay.const(numbers(4, 3, 3, 3)), kernel_size=(3, 3), channels=4, padding=(1, 1)), lambda a: ref.conv2d_nchw_python(a, numbers(4, 3, 3, 3), 1, 1)),
    "max_pool": ([C], lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2)), lambda a: a.reshape(1, 3, 4, 2, 4, 2).max((3, 5))), "global_pool": ([C], relay.nn.global_avg_pool2d, lambda a: a.mean((2, 3), keepdims=True)), "adaptive": ([C], lambda x: relay.nn.adaptive_avg_pool2d(x, (2, 2)), lambda a: a.reshape(1, 3, 2, 4, 2, 4).mean((3, 5))),
    "batch_norm": ([C], lambda x: relay.nn.batch_norm(x, *[relay.const(np.full(3, v, "float32")) for v in (2, 1, 0, 1)])[0], lambda a: 2 * a / np.sqrt(1 + 1e-5) + 1), "layer_norm": ([M], lambda x: relay.nn.layer_norm(x, relay.const(np.ones(5, "float32")), relay.const(np.zeros(5, "float32"))), lambda a: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)),
    "scatter": ([np.zeros((3, 5), "float32"), np.array([[0, 2]], "int64"), numbers(1, 2)], lambda x, i, u: relay.scatter(x, i, u, 1), None), "ndarray_size": ([A], relay.op.contrib.ndarray_size, lambda a: np.int32(a.size)),
    "meshgrid": ([numbers(3), numbers(4)], lambda x, y: relay.meshgrid([x, y], indexing="ij"), lambda x, y: np.meshgrid(x, y, indexing="ij")), "space_to_batch": ([numbers(2, 4)], lambda x: relay.nn.space_to_batch_nd(x, [2], [[0, 0]]), lambda a: ref.space_to_batch_nd_python(a, [2], [0], [0])), "exp": ([M], relay.exp, np.exp),
    "all": ([M > 0], lambda x: relay.all(x, axis=1), lambda a: a.all(1)), "cast_like": ([M, I], relay.cast_like, lambda a, b: a.astype("int32")), "reshape_like": ([M, numbers(5, 3)], relay.reshape_like, lambda a, b: a.reshape(5, 3)), "broadcast_to_like": ([numbers(1, 5), M], relay.broadcast_to_like, lambda a, b: np.broadcast_to(a, (3, 5))),
    "zeros_like": ([M], relay.zeros_like, np.zeros_like), "variance": ([M], lambda x: relay.variance(x, axis=1), lambda a: a.var(1)), "logsumexp": ([M], lambda x: relay.logsumexp(x, axis=1), lambda a: np.log(np.exp(a).sum(1))), "power": ([np.abs(M), M], relay.power, np.power), "resize": ([C], lambda x: relay.image.resize2d(x, (16, 16), method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor"), lambda a: a.repeat(2, 2).repeat(2, 3)),
    "sequence_mask": ([numbers(4, 2), np.array([1, 3], "int32")], lambda x, l: relay.sequence_mask(x, l, axis=0), lambda a, l: a * (np.arange(4)[:, None] < l)), "squeeze": ([numbers(1, 4)], lambda x: relay.squeeze(x, [0]), lambda a: a[0]), "leaky": ([M], lambda x: relay.nn.leaky_relu(x, 0.1), lambda a: np.where(a > 0, a, 0.1 * a)), "clip": ([M], lambda x: relay.clip(x, -0.5, 0.5), lambda a: a.clip(-0.5, 0.5)),
    "upsampling": ([C], lambda x: relay.nn.upsampling(x, 2, 2), lambda a: a.repeat(2, 2).repeat(2, 3)), "conv1d": ([A], lambda x: relay.nn.conv1d(x, relay.const(numbers(2, 3, 3)), kernel_size=3, channels=2, padding=1), lambda a: ref.conv1d_ncw_python(a, numbers(2, 3, 3), 1, 1, 1)), "l2": ([C], lambda x: relay.nn.l2_normalize(x, 1e-4, [1]), lambda a: ref.l2_normalize_python(a, 1e-4, 1)),
    "depth_to_space": ([numbers(1, 4, 2, 2)], lambda x: relay.nn.depth_to_space(x, 2), lambda a: ref.depth_to_space_python(a, 2)), "lrn": ([C], lambda x: relay.nn.lrn(x, size=3), lambda a: ref.lrn_python(a, 3, 1, 2, 1e-5, 0.75)), "mirror": ([M], lambda x: relay.nn.mirror_pad(x, ((1, 1), (0, 0))), lambda a: np.pad(a, ((1, 1), (0, 0)), "symmetric")), "dilate": ([M], lambda x: relay.nn.dilate(x, (2, 1)), lambda a: ref.dilate_python(a, (2, 1))),
}


@program(*CASES)
def by_machine(name):
    data, make, want = CASES[name]
    params = [relay.var(f"p{i}", free(d.ndim, str(d.dtype))) for i, d in enumerate(data)]
    got = run(params, make(*params), *data)
    if want is None:
        exact = [relay.var(f"p{i}", shape=d.shape, dtype=str(d.dtype)) for i, d in enumerate(data)]
        want = lambda *_: run(exact, make(*exact), *data)  # noqa: E731
    expected = want(*data)
    for g, w in zip(got if isinstance(got, list) else [got], expected if isinstance(got, list) else [expected]):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4)


# operands that say shapes
SAID = {
    "reshape": (lambda x, s: relay.reshape(x, s), M, [5, 3], lambda a: a.reshape(5, 3)), "reshape -1": (lambda x, s: relay.reshape(x, s), M, [-1], lambda a: a.reshape(-1)), "broadcast_to": (lambda x, s: relay.broadcast_to(x, s), M, [2, 3, 5], lambda a: np.broadcast_to(a, (2, 3, 5))),
    "tile": (lambda x, s: relay.tile(x, s), M, [2, 2], lambda a: np.tile(a, (2, 2))), "full": (lambda x, s: relay.full(relay.const(2.0), s, "float32"), M, [2, 4], lambda a: np.full((2, 4), 2.0)), "zeros": (lambda x, s: relay.zeros(s, "float32"), M, [2, 4], lambda a: np.zeros((2, 4))), "ones": (lambda x, s: relay.ones(s, "float32"), M, [3], lambda a: np.ones(3)),
    "slice": (lambda x, s: relay.strided_slice(x, relay.const([0, 0], "int64"), s, relay.const([1, 1], "int64")), M, [2, 3], lambda a: a[:2, :3]), "expand": (lambda x, s: relay.expand_dims(x, relay.squeeze(relay.strided_slice(s, [0], [1]), [0]), 1), M, [1], lambda a: a[:, None]),
    "squeeze": (lambda x, s: relay.squeeze(relay.reshape(x, (1, 3, 5)), s), M, [0], lambda a: a),
}


@program(*SAID)
def said_at_run_time(name):
    make, x, s, want = SAID[name]
    px, ps = relay.var("x", shape=x.shape), relay.var("s", shape=(len(s),), dtype="int64")
    body = make(px, ps)
    got = run([px, ps], body, x, np.array(s, "int64"))
    np.testing.assert_array_equal(got, want(x))
    fixed = transform.InferType()(transform.DynamicToStatic()(transform.InferType()(tvm.IRModule.from_expr(relay.Function([px], make(px, relay.const(np.array(s, "int64"))))))))
    assert "dyn." not in str(fixed)
    assert fixed["main"].ret_type == relay.TensorType(np.asarray(want(x)).shape)


@program
def dynamic_topk():
    x, k = relay.var("x", shape=(3, 5)), relay.var("k", shape=(), dtype="int32")
    for n in (1, 3):
        v, i = run([x, k], relay.topk(x, k, axis=1, dtype="int32"), M, np.int32(n))
        np.testing.assert_array_equal(v, -np.sort(-M, 1)[:, :n])


@program
def dynamic_arange():
    a, b, c = [relay.var(n, shape=(), dtype="int32") for n in "abc"]
    np.testing.assert_array_equal(run([a, b, c], relay.arange(a, b, c, "int32"), np.int32(2), np.int32(11), np.int32(3)), [2, 5, 8])


@program
def nms_of_a_run():
    boxes = np.array([[[0.9, 0, 0, 10, 10], [0.8, 1, 1, 10, 10], [0.7, 20, 20, 30, 30]]], "float32")
    x = relay.var("x", relay.TensorType((1, any_(), 5)))
    count, data, index = relay.vision.get_valid_counts(x, 0.0, id_index=-1, score_index=0)
    body = relay.vision.non_max_suppression(data, count, index, relay.const(-1), iou_threshold=0.5, force_suppress=True, top_k=-1, coord_start=1, score_index=0, id_index=-1, return_indices=False)
    got = run([x], body, boxes)
    assert (got[0, :, 0] > 0).sum() == 2


@program
def loops_over_lists():
    i, st = relay.var("i", shape=(), dtype="int32"), relay.var("st", relay.TensorType((any_(), 1), "int32"))
    loop = relay.loops.while_loop(lambda i, st: relay.less(i, relay.const(5)), [i, st], lambda i, st: [i + relay.const(1), relay.concatenate((st, relay.reshape(i, (1, 1))), 0)])
    start = relay.var("start", shape=(), dtype="int32")
    body = loop(start, relay.reshape(relay.const(0), (1, 1)))
    got = run([start], relay.TupleGetItem(body, 1), np.int32(1))
    np.testing.assert_array_equal(got, [[0], [1], [2], [3], [4]])


@program
def mixed_ranks_do_not_fit():
    x, y = relay.var("x", relay.TensorType((any_(), 3))), relay.var("y", relay.TensorType((any_(), 4)))
    raises(tvm.TVMError, lambda: run_infer_type(relay.Function([x, y], relay.add(x, y))))
    body = relay.add(relay.var("x", relay.TensorType((any_(),))), relay.var("y", relay.TensorType((any_(),))))
    f = relay.Function(relay.analysis.free_vars(body), body)
    raises(Exception, lambda: run(f.params, f.body, np.ones(2, "float32"), np.ones(3, "float32")))


@program
def type_of_any():
    x = relay.var("x", relay.TensorType((any_(), 2)))
    f = run_infer_type(relay.Function([x], relay.nn.dense(x, relay.const(np.ones((3, 2), "float32")))))
    assert isinstance(f.ret_type.shape[0], tvm.tir.Any) and f.ret_type.shape[1] == 3
    assert relay.ty.is_dynamic(f.ret_type) and not relay.ty.is_dynamic(relay.TensorType((1, 2)))
    from tvm.relay.ty import type_has_any
    assert type_has_any(f.ret_type)
