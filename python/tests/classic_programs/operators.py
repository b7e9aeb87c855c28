# SPDX-License-Identifier: Apache-2.0
"""One operator each: its type, its value beside numpy, its text and its JSON."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, raises, same, variables
from tvm import relay
from tvm.relay.testing import run_infer_type

A, B, ROW, POSITIVE = numbers(3, 4), numbers(3, 4, seed=8), numbers(4), numbers(3, 4, low=0.2, high=2.0)
CUBE, WHOLE, OTHER, BITS = numbers(2, 3, 4), numbers(3, 4, dtype="int32"), numbers(3, 4, dtype="int32", seed=9), numbers(3, 4, dtype="bool")
PICTURE, WIDE = numbers(1, 4, 6, 6), numbers(2, 4, 5, 7)
EQUAL = np.where(numbers(3, 4, seed=5) > 0, A, B).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# (what it is called, the expression, what numpy computes, the operands)
ELEMENTS = [
    ("exp", relay.exp, np.exp, A), ("log", relay.log, np.log, POSITIVE), ("log2", relay.log2, np.log2, POSITIVE), ("log10", relay.log10, np.log10, POSITIVE),
    ("sqrt", relay.sqrt, np.sqrt, POSITIVE), ("rsqrt", relay.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE), ("sin", relay.sin, np.sin, A), ("cos", relay.cos, np.cos, A),
    ("tan", relay.tan, np.tan, A), ("sinh", relay.sinh, np.sinh, A), ("cosh", relay.cosh, np.cosh, A), ("tanh", relay.tanh, np.tanh, A),
    ("asin", relay.asin, np.arcsin, A), ("acos", relay.acos, np.arccos, A), ("atan", relay.atan, np.arctan, A), ("asinh", relay.asinh, np.arcsinh, A),
    ("acosh", relay.acosh, np.arccosh, POSITIVE + 1), ("atanh", relay.atanh, np.arctanh, 0.9 * A), ("sigmoid", relay.sigmoid, sigmoid, A),
    ("negative", relay.negative, np.negative, A), ("abs", relay.abs, np.abs, A), ("sign", relay.sign, np.sign, A), ("floor", relay.floor, np.floor, 5 * A),
    ("ceil", relay.ceil, np.ceil, 5 * A), ("trunc", relay.trunc, np.trunc, 5 * A), ("round", relay.round, np.round, 5 * A), ("copy", relay.copy, lambda x: x, A),
    ("isnan", relay.isnan, np.isnan, A), ("isfinite", relay.isfinite, np.isfinite, A), ("isinf", relay.isinf, np.isinf, A),
    ("abs of integers", relay.abs, np.abs, WHOLE), ("negative of integers", relay.negative, np.negative, WHOLE), ("logical_not", relay.logical_not, np.logical_not, BITS),
    ("bitwise_not", relay.bitwise_not, np.invert, WHOLE), ("zeros_like", relay.zeros_like, np.zeros_like, A), ("ones_like", relay.ones_like, np.ones_like, A),
    ("relu", relay.nn.relu, lambda x: np.maximum(x, 0), A), ("leaky_relu", lambda x: relay.nn.leaky_relu(x, alpha=0.2), lambda x: np.where(x > 0, x, 0.2 * x), A),
    ("clip", lambda x: relay.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5), A), ("cast to int32", lambda x: relay.cast(x, "int32"), lambda x: x.astype("int32"), 9 * A),
    ("cast to float64", lambda x: relay.cast(x, "float64"), lambda x: x.astype("float64"), A), ("astype", lambda x: x.astype("int8"), lambda x: x.astype("int8"), WHOLE),
    ("plus a number", lambda x: x + relay.const(2.0), lambda x: x + 2, A), ("a number less", lambda x: relay.const(1.0) - x, lambda x: 1 - x, A), ("-x", lambda x: -x, np.negative, A),
    ("erf of zero", lambda x: relay.erf(relay.zeros_like(x)), np.zeros_like, A), ("log of exp", lambda x: relay.log(relay.exp(x)), lambda x: x, A),
]
PAIRS = [
    ("add", relay.add, np.add, A, B), ("subtract", relay.subtract, np.subtract, A, B), ("multiply", relay.multiply, np.multiply, A, B), ("divide", relay.divide, np.divide, A, POSITIVE),
    ("power", relay.power, np.power, POSITIVE, B), ("maximum", relay.maximum, np.maximum, A, B), ("minimum", relay.minimum, np.minimum, A, B), ("mod", relay.mod, np.fmod, 5 * A, POSITIVE),
    ("floor_divide", relay.floor_divide, np.floor_divide, 5 * A, POSITIVE), ("floor_mod", relay.floor_mod, np.mod, 5 * A, POSITIVE),
    ("less", relay.less, np.less, A, EQUAL), ("less_equal", relay.less_equal, np.less_equal, A, EQUAL), ("greater", relay.greater, np.greater, A, EQUAL),
    ("greater_equal", relay.greater_equal, np.greater_equal, A, EQUAL), ("equal", relay.equal, np.equal, A, EQUAL), ("not_equal", relay.not_equal, np.not_equal, A, EQUAL),
    ("add with a row", relay.add, np.add, A, ROW), ("multiply by a row", relay.multiply, np.multiply, A, ROW), ("a row less", relay.subtract, np.subtract, ROW, A),
    ("add integers", relay.add, np.add, WHOLE, OTHER), ("multiply integers", relay.multiply, np.multiply, WHOLE, OTHER), ("maximum of integers", relay.maximum, np.maximum, WHOLE, OTHER),
    ("floor_divide integers", relay.floor_divide, np.floor_divide, WHOLE, np.abs(OTHER) + 1), ("floor_mod of integers", relay.floor_mod, np.mod, WHOLE, np.abs(OTHER) + 1),
    ("logical_and", relay.logical_and, np.logical_and, BITS, ~BITS), ("logical_or", relay.logical_or, np.logical_or, BITS, BITS[::-1].copy()),
    ("logical_xor", relay.logical_xor, np.logical_xor, BITS, BITS[::-1].copy()), ("bitwise_and", relay.bitwise_and, np.bitwise_and, WHOLE, OTHER),
    ("bitwise_or", relay.bitwise_or, np.bitwise_or, WHOLE, OTHER), ("bitwise_xor", relay.bitwise_xor, np.bitwise_xor, WHOLE, OTHER),
    ("left_shift", relay.left_shift, np.left_shift, np.abs(WHOLE), np.abs(OTHER)), ("right_shift", relay.right_shift, np.right_shift, WHOLE, np.abs(OTHER)),
    ("x + y", lambda x, y: x + y, np.add, A, B), ("x - y", lambda x, y: x - y, np.subtract, A, B), ("x * y", lambda x, y: x * y, np.multiply, A, B),
    ("x / y", lambda x, y: x / y, np.divide, A, POSITIVE), ("x < y", lambda x, y: x < y, np.less, A, B), ("x >= y", lambda x, y: x >= y, np.greater_equal, A, EQUAL),
    ("a scalar's product", relay.multiply, np.multiply, A, np.array(3.0, "float32")), ("outer sum", relay.add, np.add, A[:, :1].copy(), ROW.reshape(1, 4)),
]
REDUCTIONS = [(f"{name} {attrs}", lambda x, name=name, attrs=attrs: getattr(relay, name)(x, **attrs),
               lambda x, name=name, attrs=attrs: getattr(np, name)(x, axis=attrs.get("axis"), keepdims=attrs.get("keepdims", False)), CUBE)
              for name in ("sum", "max", "min", "mean", "prod") for attrs in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)}, {"axis": (1, 2), "keepdims": True})]
REDUCTIONS += [
    ("sum but one", lambda x: relay.sum(x, axis=1, exclude=True), lambda x: x.sum((0, 2)), CUBE), ("argmax", lambda x: relay.argmax(x, axis=1), lambda x: x.argmax(1).astype("int32"), CUBE),
    ("argmin", lambda x: relay.argmin(x, axis=2, keepdims=True), lambda x: x.argmin(2)[..., None].astype("int32"), CUBE), ("variance", lambda x: relay.variance(x, axis=1), lambda x: x.var(1), CUBE),
    ("std", lambda x: relay.std(x, axis=2), lambda x: x.std(2), CUBE), ("logsumexp", lambda x: relay.logsumexp(x, axis=1), lambda x: np.log(np.exp(x).sum(1)), CUBE),
    ("all", lambda x: relay.all(x, axis=1), lambda x: x.all(1), BITS), ("any", lambda x: relay.any(x, axis=0), lambda x: x.any(0), BITS),
    ("cumsum", lambda x: relay.cumsum(x, axis=1), lambda x: x.cumsum(1), CUBE), ("cumprod", lambda x: relay.cumprod(x, axis=2), lambda x: x.cumprod(2), CUBE),
    ("sort", lambda x: relay.sort(x, axis=1), lambda x: np.sort(x, 1), A), ("argsort", lambda x: relay.argsort(x, axis=1, dtype="int32"), lambda x: np.argsort(x, 1, kind="stable").astype("int32"), A),
    ("topk values", lambda x: relay.topk(x, k=2, axis=1, ret_type="values"), lambda x: -np.sort(-x, 1)[:, :2], A),
]
SHAPES = [
    ("reshape", lambda x: relay.reshape(x, (4, 6)), lambda x: x.reshape(4, 6)), ("reshape -1", lambda x: relay.reshape(x, (-1, 2)), lambda x: x.reshape(-1, 2)),
    ("reshape 0", lambda x: relay.reshape(x, (0, -1)), lambda x: x.reshape(2, 12)), ("reshape -3", lambda x: relay.reshape(x, (-3, 4)), lambda x: x.reshape(6, 4)),
    ("reshape -2", lambda x: relay.reshape(x, (2, -2)), lambda x: x), ("reshape -4", lambda x: relay.reshape(x, (-4, 1, 2, 3, 4)), lambda x: x.reshape(1, 2, 3, 4)),
    ("transpose", relay.transpose, lambda x: x.T), ("transpose axes", lambda x: relay.transpose(x, (1, 0, 2)), lambda x: x.transpose(1, 0, 2)),
    ("expand_dims", lambda x: relay.expand_dims(x, axis=1, num_newaxis=2), lambda x: x.reshape(2, 1, 1, 3, 4)), ("expand_dims -1", lambda x: relay.expand_dims(x, -1), lambda x: x[..., None]),
    ("squeeze", lambda x: relay.squeeze(relay.expand_dims(x, 0)), lambda x: x), ("squeeze axis", lambda x: relay.squeeze(relay.expand_dims(x, 1), [1]), lambda x: x),
    ("concatenate", lambda x: relay.concatenate([x, x], axis=1), lambda x: np.concatenate([x, x], 1)), ("stack", lambda x: relay.stack([x, x], axis=1), lambda x: np.stack([x, x], 1)),
    ("split", lambda x: relay.split(x, 3, axis=1)[1], lambda x: x[:, 1:2]), ("split at", lambda x: relay.split(x, [1], axis=1)[1], lambda x: x[:, 1:]),
    ("tile", lambda x: relay.tile(x, (2, 1, 2)), lambda x: np.tile(x, (2, 1, 2))), ("repeat", lambda x: relay.repeat(x, 2, 1), lambda x: np.repeat(x, 2, 1)),
    ("reverse", lambda x: relay.reverse(x, 1), lambda x: x[:, ::-1]), ("strided_slice", lambda x: relay.strided_slice(x, [0, 1, 0], [2, 3, 4], [1, 1, 2]), lambda x: x[0:2, 1:3, 0:4:2]),
    ("strided_slice backwards", lambda x: relay.strided_slice(x, [1, 2, 3], [-5, -5, -5], [-1, -1, -1]), lambda x: x[::-1, ::-1, ::-1]),
    ("strided_slice size", lambda x: relay.strided_slice(x, [0, 1, 1], [2, 2, -1], slice_mode="size"), lambda x: x[0:2, 1:3, 1:]),
    ("strided_slice axes", lambda x: relay.strided_slice(x, [1], [3], axes=[2]), lambda x: x[:, :, 1:3]), ("broadcast_to", lambda x: relay.broadcast_to(x, (5, 2, 3, 4)), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    ("batch_flatten", relay.nn.batch_flatten, lambda x: x.reshape(2, 12)), ("pad", lambda x: relay.nn.pad(x, ((0, 0), (1, 2), (0, 1))), lambda x: np.pad(x, ((0, 0), (1, 2), (0, 1)))),
    ("pad edge", lambda x: relay.nn.pad(x, ((0, 0), (1, 1), (0, 0)), pad_mode="edge"), lambda x: np.pad(x, ((0, 0), (1, 1), (0, 0)), "edge")),
    ("pad reflect", lambda x: relay.nn.pad(x, ((0, 0), (1, 1), (1, 1)), pad_mode="reflect"), lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1)), "reflect")),
    ("mirror_pad", lambda x: relay.nn.mirror_pad(x, ((0, 0), (1, 1), (1, 1)), mode="SYMMETRIC"), lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1)), "symmetric")),
    ("take", lambda x: relay.take(x, relay.const([0, 2]), axis=1), lambda x: x[:, [0, 2]]), ("take of all", lambda x: relay.take(x, relay.const([5, 7])), lambda x: x.reshape(-1)[[5, 7]]),
    ("gather_nd", lambda x: relay.gather_nd(x, relay.const([[0, 1], [2, 0]])), lambda x: x[[0, 1], [2, 0]]),
    ("where", lambda x: relay.where(relay.greater(x, relay.const(0.0)), x, relay.zeros_like(x)), lambda x: np.maximum(x, 0)),
    ("slice_like", lambda x: relay.slice_like(x, relay.const(np.zeros((1, 2, 2), "float32"))), lambda x: x[:1, :2, :2]),
    ("cast_like", lambda x: relay.cast_like(x, relay.const(np.zeros((1,), "int32"))), lambda x: x.astype("int32")),
    ("reshape_like", lambda x: relay.reshape_like(x, relay.const(np.zeros((4, 6), "float32"))), lambda x: x.reshape(4, 6)),
    ("shape_of", lambda x: relay.shape_of(x), lambda x: np.array(x.shape, "int32")), ("ndarray_size", lambda x: relay.op.contrib.ndarray_size(x), lambda x: np.array(x.size, "int32")),
    ("full_like", lambda x: relay.full_like(x, relay.const(2.0)), lambda x: np.full_like(x, 2)), ("collapse_sum_to", lambda x: relay.collapse_sum_to(x, (3, 4)), lambda x: x.sum(0)),
    ("one_hot", lambda x: relay.one_hot(relay.cast(relay.argmax(x, axis=2), "int32"), relay.const(1.0), relay.const(0.0), 4, -1, "float32"), lambda x: np.eye(4, dtype="float32")[x.argmax(2)]),
    ("layout_transform", lambda x: relay.layout_transform(relay.expand_dims(x, 0), "NCHW", "NHWC"), lambda x: x[None].transpose(0, 2, 3, 1)),
    ("sequence_mask", lambda x: relay.sequence_mask(x, relay.const([1, 2, 1], "int32"), axis=0), lambda x: x * np.array([[1, 1, 1], [0, 1, 0]])[:, :, None]),
    ("meshgrid", lambda x: relay.meshgrid([relay.const([1.0, 2.0]), relay.const([3.0, 4.0, 5.0])])[0], lambda x: np.array([[1, 1, 1], [2, 2, 2.]])),
    ("einsum", lambda x: relay.einsum([x, x], "abc,abd->acd"), lambda x: np.einsum("abc,abd->acd", x, x)), ("adv_index", lambda x: relay.adv_index([x, relay.const([1, 0])]), lambda x: x[[1, 0]]),
    ("scatter", lambda x: relay.scatter(relay.squeeze(relay.take(x, relay.const([0]), axis=0), [0]), relay.const([[0, 0, 0, 0]], "int64"), relay.const([[9.0, 8.0, 7.0, 6.0]]), 0),
     lambda x: np.concatenate([[[9, 8, 7, 6.]], x[0, 1:]])),
    ("scatter_nd", lambda x: relay.scatter_nd(relay.take(x, relay.const(0), axis=0), relay.const([[1]], "int64"), relay.const([[1.0, 1.0, 1.0, 1.0]]), "add"), lambda x: x[0] + np.array([[0], [1], [0]])),
    ("gather", lambda x: relay.gather(x, 2, relay.const(np.zeros((2, 3, 1), "int32"))), lambda x: x[:, :, :1]),
]
SHAPES = [(name, f, g, CUBE) for name, f, g in SHAPES]
LAYERS = [
    ("softmax", relay.nn.softmax, softmax, A), ("softmax axis", lambda x: relay.nn.softmax(x, axis=1), lambda x: softmax(x, 1), CUBE),
    ("log_softmax", relay.nn.log_softmax, lambda x: np.log(softmax(x)), A), ("fast_softmax", relay.nn.fast_softmax, softmax, A),
    ("dense", lambda x: relay.nn.dense(x, relay.const(B)), lambda x: x @ B.T, A), ("matmul", lambda x: relay.nn.matmul(x, relay.const(B), transpose_b=True), lambda x: x @ B.T, A),
    ("batch_matmul", lambda x: relay.nn.batch_matmul(x, x), lambda x: x @ x.transpose(0, 2, 1), CUBE), ("bias_add", lambda x: relay.nn.bias_add(x, relay.const(ROW), axis=-1), lambda x: x + ROW, A),
    ("prelu", lambda x: relay.nn.prelu(x, relay.const(np.full(4, 0.3, "float32"))), lambda x: np.where(x > 0, x, 0.3 * x), PICTURE),
    ("max_pool2d", lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2)), lambda x: x.reshape(1, 4, 3, 2, 3, 2).max((3, 5)), PICTURE),
    ("avg_pool2d", lambda x: relay.nn.avg_pool2d(x, (2, 2), (2, 2)), lambda x: x.reshape(1, 4, 3, 2, 3, 2).mean((3, 5)), PICTURE),
    ("global_avg_pool2d", relay.nn.global_avg_pool2d, lambda x: x.mean((2, 3), keepdims=True), PICTURE), ("global_max_pool2d", relay.nn.global_max_pool2d, lambda x: x.max((2, 3), keepdims=True), PICTURE),
    ("adaptive_avg_pool2d", lambda x: relay.nn.adaptive_avg_pool2d(x, (2, 3)), lambda x: tvm.topi.testing.adaptive_pool(x, (2, 3), "avg", "NCHW"), WIDE),
    ("adaptive_max_pool2d", lambda x: relay.nn.adaptive_max_pool2d(x, (2, 3)), lambda x: tvm.topi.testing.adaptive_pool(x, (2, 3), "max", "NCHW"), WIDE),
    ("conv2d", lambda x: relay.nn.conv2d(x, relay.const(numbers(5, 4, 3, 3)), kernel_size=(3, 3), channels=5, padding=(1, 1)), lambda x: tvm.topi.testing.conv2d_nchw_python(x, numbers(5, 4, 3, 3), 1, 1), PICTURE),
    ("conv2d strides", lambda x: relay.nn.conv2d(x, relay.const(numbers(5, 4, 3, 3)), strides=2), lambda x: tvm.topi.testing.conv2d_nchw_python(x, numbers(5, 4, 3, 3), 2, 0), PICTURE),
    ("conv2d depthwise", lambda x: relay.nn.conv2d(x, relay.const(numbers(4, 1, 3, 3)), groups=4, padding=1, channels=4, kernel_size=3),
     lambda x: tvm.topi.testing.conv2d_nchw_python(x, numbers(4, 1, 3, 3), 1, 1, groups=4), PICTURE),
    ("conv2d_transpose", lambda x: relay.nn.conv2d_transpose(x, relay.const(numbers(4, 3, 3, 3)), strides=(2, 2)), lambda x: tvm.topi.testing.conv2d_transpose_nchw_python(x, numbers(4, 3, 3, 3), 2, 0), PICTURE),
    ("conv1d", lambda x: relay.nn.conv1d(x, relay.const(numbers(2, 3, 3)), padding=1), lambda x: tvm.topi.testing.conv1d_ncw_python(x, numbers(2, 3, 3), 1, 1, 1), CUBE),
    ("upsampling", lambda x: relay.nn.upsampling(x, 2, 2), lambda x: x.repeat(2, 2).repeat(2, 3), PICTURE), ("l2_normalize", lambda x: relay.nn.l2_normalize(x, 1e-4, [1]), lambda x: tvm.topi.testing.l2_normalize_python(x, 1e-4, 1), PICTURE),
    ("lrn", lambda x: relay.nn.lrn(x, size=3), lambda x: tvm.topi.testing.lrn_python(x, 3, 1, 2, 1e-5, 0.75), PICTURE), ("depth_to_space", lambda x: relay.nn.depth_to_space(x, 2), lambda x: tvm.topi.testing.depth_to_space_python(x, 2), PICTURE),
    ("space_to_depth", lambda x: relay.nn.space_to_depth(x, 2), lambda x: tvm.topi.testing.space_to_depth_python(x, 2), PICTURE),
    ("layer_norm", lambda x: relay.nn.layer_norm(x, relay.const(np.ones(4, "float32")), relay.const(np.zeros(4, "float32"))), lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5), A),
    ("batch_norm", lambda x: relay.nn.batch_norm(x, *[relay.const(v * np.ones(4, "float32")) for v in (2, 1, 0, 1)])[0], lambda x: 2 * x / np.sqrt(1 + 1e-5) + 1, PICTURE),
    ("dropout", lambda x: relay.nn.dropout(x, 0.3), lambda x: x, A), ("resize2d", lambda x: relay.image.resize2d(x, (12, 12), method="linear"), lambda x: tvm.topi.testing.resize2d_python(x, (2, 2), "NCHW", "bilinear", "half_pixel"), PICTURE),
    ("space_to_batch_nd", lambda x: relay.nn.space_to_batch_nd(x, [3], [[0, 0]]), lambda x: tvm.topi.testing.space_to_batch_nd_python(x, [3], [0], [0]), CUBE),
    ("grid_sample", lambda x: relay.image.grid_sample(x, relay.const(numbers(1, 2, 3, 3))), lambda x: tvm.topi.testing.grid_sample_nchw_python(x, numbers(1, 2, 3, 3)), PICTURE),
]
EVERY = ELEMENTS + PAIRS + REDUCTIONS + SHAPES + LAYERS


def function_of(make, arrays):
    params = variables(*arrays)
    body = make(*params)
    return relay.Function(params, body.astuple() if hasattr(body, "astuple") else body)


@program(*EVERY)
def value(name, make, expected, *arrays):
    want = np.asarray(expected(*arrays))
    np.testing.assert_allclose(evaluate(function_of(make, arrays), *arrays), want, rtol=2e-4, atol=2e-5)


@program(*EVERY)
def inferred_type(name, make, expected, *arrays):
    want = np.asarray(expected(*arrays))
    function = run_infer_type(function_of(make, arrays))
    assert isinstance(function.checked_type, relay.FuncType)
    assert function.checked_type.ret_type == function.body.checked_type
    assert function.body.checked_type.concrete_shape == want.shape, function.body.checked_type


@program(*EVERY)
def text_and_back(name, make, _, *arrays):
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(function_of(make, arrays)))
    same(tvm.parser.fromtext(mod.astext()), mod)
    assert str(mod).startswith("def @main(")


@program(*EVERY)
def json_and_back(name, make, _, *arrays):
    mod = tvm.IRModule.from_expr(function_of(make, arrays))
    same(tvm.ir.load_json(tvm.ir.save_json(mod)), mod)
    assert tvm.ir.structural_hash(mod) == tvm.ir.structural_hash(tvm.IRModule.from_expr(function_of(make, arrays)))


@program(*PAIRS)
def machine(name, make, expected, *arrays):
    np.testing.assert_allclose(evaluate(function_of(make, arrays), *arrays, kind="vm"), expected(*arrays), rtol=2e-4, atol=2e-5)


@program(*ELEMENTS, *(s for s in SHAPES if s[0] != "meshgrid"))
def visited(name, make, _, *arrays):
    function = function_of(make, arrays)
    seen = []
    relay.analysis.post_order_visit(function, lambda e: seen.append(e))
    assert seen[-1] == function and function.params[0] in seen
    assert relay.analysis.free_vars(function) == [] and relay.analysis.free_vars(function.body) == [function.params[0]]
    assert relay.analysis.well_formed(function)
    assert relay.analysis.all_vars(function) == function.params


@program(("float16",), ("float64",), ("int8",), ("int64",), ("uint8",), ("bool",))
def identity_of_dtype(dtype):
    array = numbers(3, 4, dtype=dtype)
    (x,) = variables(array)
    assert x.type_annotation.dtype == dtype
    got = evaluate(relay.Function([x], relay.copy(x)), array)
    assert got.dtype == array.dtype and (got == array).all()


@program((lambda x: relay.reshape(x, (5, 5)),), (lambda x: relay.concatenate([x, relay.transpose(x)], axis=0),), (lambda x: relay.add(x, relay.const(np.zeros((5,), "float32"))),),
         (lambda x: relay.nn.dense(x, relay.const(np.zeros((2, 3), "float32"))),), (lambda x: relay.squeeze(x, [0]),), (lambda x: relay.broadcast_to(x, (3, 5)),),
         (lambda x: relay.split(x, 5, axis=1).astuple(),), (lambda x: relay.transpose(x, (0, 0)),))
def wrong_shapes(make):
    x = relay.var("x", shape=(3, 4))
    raises(tvm.TVMError, lambda: run_infer_type(relay.Function([x], make(x))))
