# SPDX-License-Identifier: Apache-2.0
"""Types of operators where sizes are variables, and operands without a type."""
import tvm
from harness import program, raises
from tvm import relay, te
from tvm.relay.testing import run_infer_type

N, C, H, W = (te.size_var(n) for n in "nchw")
D = [te.size_var(f"d{i}") for i in range(1, 5)]
T = relay.TensorType
idxd, idxm = tvm.tir.indexdiv, tvm.tir.indexmod


def var(name, *shape, dtype="float32"):
    return relay.var(name, T(shape, dtype))


def of(body):
    return run_infer_type(body.astuple() if hasattr(body, "astuple") else body).checked_type


X = var("x", N, C, H, W)
TYPES = {
    "identity": (lambda: relay.exp(var("x", N, C, 5)), T((N, C, 5))),
    "sum of alike": (lambda: relay.add(X, var("y", N, C, H, W)), T((N, C, H, W))),
    "sum with a row": (lambda: relay.add(X, var("y", 1, 1, 1)), T((N, C, H, W))),
    "comparison": (lambda: relay.less(X, var("y", 1)), T((N, C, H, W), "bool")),
    "expand_dims": (lambda: relay.expand_dims(var("x", N, C, 10), axis=2), T((N, C, 1, 10))),
    "softmax": (lambda: relay.nn.softmax(var("x", N, 10), axis=1), T((N, 10))),
    "log_softmax": (lambda: relay.nn.log_softmax(var("x", N, C), axis=1), T((N, C))),
    "concatenate": (lambda: relay.concatenate((var("x", N, C, 100), var("y", N, C, 100)), axis=2), T((N, C, 200))),
    "concatenate from behind": (lambda: relay.concatenate((var("x", N, C, 100), var("y", N, C, 100)), axis=-1), T((N, C, 200))),
    "dropout": (lambda: relay.nn.dropout(var("x", N, C, D[0]), rate=0.75), T((N, C, D[0]))),
    "bias_add": (lambda: relay.nn.bias_add(var("x", N, C, 4), relay.var("b"), axis=-1), T((N, C, 4))),
    "dense": (lambda: relay.nn.dense(var("x", N, C, H, 10), var("w", 2, 10), units=2), T((N, C, H, 2))),
    "dense of anything": (lambda: relay.nn.dense(var("x", N, C, H, 4), relay.var("w"), units=2), T((N, C, H, 2))),
    "dense of a symbol": (lambda: relay.nn.dense(var("x", N, C, H, W), var("w", 2, W)), T((N, C, H, 2))),
    "batch_matmul": (lambda: relay.nn.batch_matmul(var("x", N, H, 32), var("y", N, W, 32)), T((N, H, W))),
    "batch_norm": (lambda: relay.nn.batch_norm(var("x", N, 3, H, W), *[relay.var(n) for n in ("g", "b", "m", "v")])[0], T((N, 3, H, W))),
    "layer_norm": (lambda: relay.nn.layer_norm(var("x", N, 8), relay.var("g"), relay.var("b")), T((N, 8))),
    "cast": (lambda: relay.cast(var("x", N, C), "int32"), T((N, C), "int32")),
    "transpose": (lambda: relay.transpose(var("x", N, C, 100), axes=(1, 0, 2)), T((C, N, 100))),
    "transpose all": (lambda: relay.transpose(var("x", N, C, 100)), T((100, C, N))),
    "squeeze": (lambda: relay.squeeze(var("x", 1, N, 1), axis=[0]), T((N, 1))),
    "reshape keeps": (lambda: relay.reshape(var("x", N, C, H, W), (0, -2)), T((N, C, H, W))),
    "reshape 3 0 -2": (lambda: relay.reshape(var("x", N, C, 20, 20), (0, 0, 400)), T((N, C, 400))),
    "reshape_like": (lambda: relay.reshape_like(var("x", 2, 6), var("y", 3, 4)), T((3, 4))),
    "take": (lambda: relay.take(var("x", D[0], D[1]), var("i", D[2], D[3], dtype="int32"), axis=0), T((D[2], D[3], D[1]))),
    "take of all": (lambda: relay.take(var("x", D[0]), var("i", 1, dtype="int32")), T((1,))),
    "take behind": (lambda: relay.take(var("x", D[0], D[1], D[2]), var("i", D[3], dtype="int32"), axis=2), T((D[0], D[1], D[3]))),
    "full_like": (lambda: relay.full_like(var("x", N, C, H, W), relay.var("v", T((), "float32"))), T((N, C, H, W))),
    "zeros_like": (lambda: relay.zeros_like(var("x", N, 3)), T((N, 3))),
    "where": (lambda: relay.where(var("c", N, C, dtype="bool"), var("x", N, C), var("y", N, C)), T((N, C))),
    "sum of axes": (lambda: relay.sum(var("x", *D), axis=(1, 2)), T((D[0], D[3]))),
    "max kept": (lambda: relay.max(var("x", *D), axis=(1,), keepdims=True), T((D[0], 1, D[2], D[3]))),
    "mean but": (lambda: relay.mean(var("x", *D), axis=(1,), exclude=True), T((D[1],))),
    "argmax": (lambda: relay.argmax(var("x", *D), axis=1), T((D[0], D[2], D[3]), "int32")),
    "variance": (lambda: relay.variance(var("x", *D), axis=-1), T((D[0], D[1], D[2]))),
    "sum of all": (lambda: relay.sum(var("x", N, C)), T(())),
    "all": (lambda: relay.all(var("x", N, C, dtype="bool"), axis=1), T((N,), "bool")),
    "stack": (lambda: relay.stack([var("x", N, C), var("y", N, C)], axis=1), T((N, 2, C))),
    "reverse": (lambda: relay.reverse(var("x", N, C), axis=1), T((N, C))),
    "broadcast_to_like": (lambda: relay.broadcast_to_like(var("x", 1, C), var("y", N, C)), T((N, C))),
    "collapse_sum_like": (lambda: relay.collapse_sum_like(var("x", N, 3, 4), var("y", 3, 4)), T((3, 4))),
    "clip": (lambda: relay.clip(var("x", N), 0.0, 1.0), T((N,))),
    "leaky_relu": (lambda: relay.nn.leaky_relu(X, alpha=0.1), T((N, C, H, W))),
    "prelu": (lambda: relay.nn.prelu(var("x", N, 3, H, W), relay.var("a")), T((N, 3, H, W))),
    "lrn": (lambda: relay.nn.lrn(X, size=10, axis=2, bias=0.5, alpha=0.00001, beta=0.75), T((N, C, H, W))),
    "l2_normalize": (lambda: relay.nn.l2_normalize(X, eps=0.001, axis=[1]), T((N, C, H, W))),
    "global_max_pool2d": (lambda: relay.nn.global_max_pool2d(var("x", N, C, 224, 224)), T((N, C, 1, 1))),
    "global_avg_pool2d": (lambda: relay.nn.global_avg_pool2d(var("x", N, C, H, W)), T((N, C, 1, 1))),
    "max_pool2d": (lambda: relay.nn.max_pool2d(var("x", N, 10, 224, 224), pool_size=(1, 1)), T((N, 10, 224, 224))),
    "avg_pool2d": (lambda: relay.nn.avg_pool2d(var("x", N, 10, 224, 224), pool_size=(2, 2), strides=(2, 2)), T((N, 10, 112, 112))),
    "adaptive_avg_pool2d": (lambda: relay.nn.adaptive_avg_pool2d(var("x", N, C, H, W), (7, 7)), T((N, C, 7, 7))),
    "conv2d": (lambda: relay.nn.conv2d(var("x", N, 10, 224, 224), var("w", 2, 10, 3, 3), kernel_size=(3, 3), padding=(1, 1), channels=2), T((N, 2, 224, 224))),
    "conv2d integers": (lambda: relay.nn.conv2d(var("x", N, 10, 224, 224, dtype="int8"), var("w", 2, 10, 3, 3, dtype="int8"), out_dtype="int32"), T((N, 2, 222, 222), "int32")),
    "conv2d of anything": (lambda: relay.nn.conv2d(var("x", N, 10, 32, 32), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=15), T((N, 15, 32, 32))),
    "conv2d NHWC": (lambda: relay.nn.conv2d(var("x", N, 32, 32, 10), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=16, data_layout="NHWC", out_dtype="float32", kernel_layout="HWIO"), T((N, 32, 32, 16))),
    "conv2d grouped": (lambda: relay.nn.conv2d(var("x", N, 32, 32, 32), relay.var("w"), groups=4, kernel_size=(3, 3), channels=64), T((N, 64, 30, 30))),
    "conv1d": (lambda: relay.nn.conv1d(var("x", N, 10, 224), relay.var("w"), kernel_size=3, padding=(1, 1), channels=2), T((N, 2, 224))),
    "conv3d": (lambda: relay.nn.conv3d(var("x", N, 10, 20, 20, 20), relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=2), T((N, 2, 20, 20, 20))),
    "conv2d_transpose": (lambda: relay.nn.conv2d_transpose(var("x", N, 10, 10, 12), relay.var("w", T((10, 15, 3, 3), "float32")), kernel_size=(3, 3), padding=(1, 1), channels=15), T((N, 15, 10, 12))),
    "conv2d_transpose in steps": (lambda: relay.nn.conv2d_transpose(var("x", N, 10, 10, 12), relay.var("w"), output_padding=(1, 1), channels=11, kernel_size=(5, 5), strides=(2, 2)), T((N, 11, 24, 28))),
    "pad": (lambda: relay.nn.pad(var("x", N, 2, 3, W), ((1, 1), (2, 2), (3, 3), (4, 4))), T((N + 2, 6, 9, W + 8))),
    "mirror_pad": (lambda: relay.nn.mirror_pad(var("x", N, 2, 3, W), ((0, 0), (1, 1), (1, 1), (4, 4))), T((N, 4, 5, W + 8))),
    "batch_flatten": (lambda: relay.nn.batch_flatten(var("x", *D)), T((D[0], (D[1] * D[2]) * D[3]))),
    "batch_flatten of two": (lambda: relay.nn.batch_flatten(var("x", D[0], 8, 8)), T((D[0], 64))),
    "strided_slice": (lambda: relay.strided_slice(var("x", N, 10), [0, 2], [2, 8], axes=None), None),
    "slice_like": (lambda: relay.slice_like(var("x", N, 10), var("y", 3, 4), axes=(1,)), T((N, 4))),
    "resize2d": (lambda: relay.image.resize2d(var("x", N, C, H, W), (224, 224)), T((N, C, 224, 224))),
    "resize2d NHWC": (lambda: relay.image.resize2d(var("x", N, H, W, C), (100, 200), layout="NHWC"), T((N, 100, 200, C))),
    "gather_nd": (lambda: relay.gather_nd(var("x", N, C, H), var("i", 2, 5, dtype="int32")), T((5, H))),
    "gather": (lambda: relay.gather(var("x", N, C), 1, var("i", N, 3, dtype="int32")), T((N, 3), "float32")),
    "one_hot": (lambda: relay.one_hot(var("i", N, dtype="int32"), relay.const(1), relay.const(0), 7, -1, "int32"), T((N, 7), "int32")),
    "shape_of": (lambda: relay.shape_of(var("x", N, C, H)), T((3,), "int32")),
    "ndarray_size": (lambda: relay.op.contrib.ndarray_size(var("x", N, C)), T((), "int32")),
    "sequence_mask": (lambda: relay.sequence_mask(var("x", N, C), var("l", C, dtype="int32"), axis=0), T((N, C))),
    "topk": (lambda: relay.topk(var("x", N, 20), k=3), relay.TupleType([T((N, 3)), T((N, 3), "int32")])),
    "argsort": (lambda: relay.argsort(var("x", N, C), dtype="int64"), T((N, C), "int64")),
    "sort": (lambda: relay.sort(var("x", N, C)), T((N, C))),
    "cumsum": (lambda: relay.cumsum(var("x", N, C), axis=1), T((N, C))),
    "split": (lambda: relay.split(var("x", D[0], 10, D[2]), 5, axis=1), relay.TupleType([T((D[0], 2, D[2]))] * 5)),
    "split of a symbol": (lambda: relay.split(var("x", D[0], D[1], D[2]), 5, axis=0), relay.TupleType([T((idxd(D[0], 5), D[1], D[2]))] * 5)),
    "split at": (lambda: relay.split(var("x", D[0], 10, D[2]), (4, 7), axis=1), relay.TupleType([T((D[0], 4, D[2])), T((D[0], 3, D[2])), T((D[0], 3, D[2]))])),
    "upsampling": (lambda: relay.nn.upsampling(var("x", N, C, 100, 200), scale_h=2, scale_w=2, layout="NCHW", method="bilinear"), T((N, C, 200, 400))),
    "upsampling3d": (lambda: relay.nn.upsampling3d(var("x", N, C, 100, 100, 200), scale_d=2, scale_h=2, scale_w=2), T((N, C, 200, 200, 400))),
    "depth_to_space": (lambda: relay.nn.depth_to_space(var("x", N, 4, 5, 5), 2), T((N, 1, 10, 10))),
    "space_to_depth": (lambda: relay.nn.space_to_depth(var("x", N, 1, 10, 10), 2), T((N, 4, 5, 5))),
    "repeat": (lambda: relay.repeat(var("x", N, 4), 3, axis=1), T((N, 12))),
    "tile": (lambda: relay.tile(var("x", 3, 4), (2, 1)), T((6, 4))),
    "roi_align": (lambda: relay.vision.roi_align(var("x", N, 4, 16, 16), var("r", 7, 5), pooled_size=(3, 3), spatial_scale=1.0, sample_ratio=2), T((7, 4, 3, 3))),
    "full": (lambda: relay.full(relay.const(1.0), (3, 4)), T((3, 4))),
    "arange": (lambda: relay.arange(relay.const(1), relay.const(7), relay.const(2), dtype="int32"), T((3,), "int32")),
    "nll_loss": (lambda: relay.nn.nll_loss(var("p", N, C), var("t", N, dtype="int32"), var("w", C)), T(())),
    "cross_entropy": (lambda: relay.nn.cross_entropy(var("p", N, C), var("t", N, C)), T(())),
    "rsqrt": (lambda: relay.rsqrt(var("x", N, dtype="float64")), T((N,), "float64")),
    "logical_not": (lambda: relay.logical_not(var("x", N, dtype="bool")), T((N,), "bool")),
    "contrib_adaptive": (lambda: relay.nn.adaptive_max_pool3d(var("x", N, 4, 8, 8, 8), (2, 2, 2)), T((N, 4, 2, 2, 2))),
}


@program(*TYPES)
def inferred(name):
    make, want = TYPES[name]
    got = of(make())
    if want is None:
        assert isinstance(got, T)
        return
    assert got == want, f"{got}, not {want}"
    tvm.ir.assert_structural_equal(got, want, map_free_vars=True)


WEIGHTS = {
    "conv2d": (lambda w: relay.nn.conv2d(var("x", N, 10, 32, 32, dtype="int8"), w, kernel_size=(3, 3), padding=(1, 1), channels=15, out_dtype="int32"), T((15, 10, 3, 3), "int8")),
    "conv2d NHWC": (lambda w: relay.nn.conv2d(var("x", N, 32, 32, 10), w, kernel_size=(3, 3), channels=16, data_layout="NHWC", kernel_layout="HWIO"), T((3, 3, 10, 16))),
    "depthwise": (lambda w: relay.nn.conv2d(var("x", 1, 32, 8, 8), w, kernel_size=(3, 3), channels=32, groups=32), T((32, 1, 3, 3))),
    "conv1d": (lambda w: relay.nn.conv1d(var("x", N, 10, 32), w, kernel_size=3, channels=15), T((15, 10, 3))),
    "conv3d": (lambda w: relay.nn.conv3d(var("x", N, 10, 8, 8, 8), w, kernel_size=(3, 3, 3), channels=15), T((15, 10, 3, 3, 3))),
    "conv2d_transpose": (lambda w: relay.nn.conv2d_transpose(var("x", N, 10, 8, 8), w, kernel_size=(3, 3), channels=15), T((10, 15, 3, 3))),
    "dense": (lambda w: relay.nn.dense(var("x", N, 4), w, units=2), T((2, 4))),
    "bias_add": (lambda w: relay.nn.bias_add(var("x", N, 7, 3), w), T((7,))),
    "prelu": (lambda w: relay.nn.prelu(var("x", N, 7, 3), w), T((7,))),
    "prelu of the last": (lambda w: relay.nn.prelu(var("x", N, 7, 3), w, axis=2), T((3,))),
    "contrib dense pack": (lambda w: relay.nn.bias_add(var("x", N, 7), w, axis=1), T((7,))),
}


@program(*WEIGHTS)
def weight(name):
    make, want = WEIGHTS[name]
    w = relay.var("w")
    done = run_infer_type(make(w))
    seen = []
    relay.analysis.post_order_visit(done, lambda e: seen.append(e.checked_type) if isinstance(e, relay.Var) and e.name_hint == "w" else None)
    assert seen == [want], seen


WRONG = {
    "concatenate": lambda: relay.concatenate((var("x", 3, 4), var("y", 2, 5)), axis=0), "concatenate behind": lambda: relay.concatenate((var("x", 3, 4), var("y", 3, 5)), axis=2),
    "dense": lambda: relay.nn.dense(var("x", 2, 3), var("w", 4, 5)), "batch_matmul": lambda: relay.nn.batch_matmul(var("x", 2, 3, 4), var("y", 2, 5, 6)),
    "bias": lambda: relay.nn.bias_add(var("x", 2, 3), var("b", 4)), "broadcast": lambda: relay.add(var("x", 5, 3), var("y", 2, 3)), "expand": lambda: relay.expand_dims(var("x", 2), axis=4),
    "transpose": lambda: relay.transpose(var("x", 2, 3), axes=(0, 1, 2)), "squeeze": lambda: relay.squeeze(var("x", 2, 3), axis=[1]), "split": lambda: relay.split(var("x", 3, 5), 2, axis=1).astuple(),
    "reshape": lambda: relay.reshape(var("x", 3, 5), (4, 4)), "stack": lambda: relay.stack([var("x", 3, 5), var("y", 3, 4)], 0), "conv": lambda: relay.nn.conv2d(var("x", 1, 3, 8, 8), var("w", 4, 5, 3, 3)),
    "dtypes": lambda: relay.add(var("x", 3), var("y", 3, dtype="int32")), "where": lambda: relay.where(var("c", 3, dtype="bool"), var("x", 2), var("y", 3)),
    "argmax": lambda: relay.argmax(var("x", 3, 4), axis=2), "take": lambda: relay.take(var("x", 3), var("i", 2), axis=0), "tuple": lambda: relay.TupleGetItem(relay.Tuple([var("x", 1)]), 2),
    "pool": lambda: relay.nn.max_pool2d(var("x", 3, 4), (2, 2)), "softmax": lambda: relay.nn.softmax(var("x", 3), axis=3),
}


@program(*WRONG)
def refused(name):
    raises((tvm.TVMError, ValueError, IndexError), lambda: of(WRONG[name]()))
