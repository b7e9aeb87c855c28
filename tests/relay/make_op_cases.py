# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/relay/op_cases.txt: operators of the graph IR with what onnxruntime or numpy compute for them.

Needs numpy, onnx and onnxruntime. Run it from the repository's root after adding a case:
  python3 tests/relay/make_op_cases.py
"""
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from op_case_file import case, write

rng = np.random.default_rng(7)


def f(*shape, low=-2.0, high=2.0):
    return np.round(rng.uniform(low, high, shape), 3).astype(np.float32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def ort(kind, inputs, outputs=1, opset=21, **attrs):
    """The node's results by onnxruntime; a None input is left out."""
    names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
    outs = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(kind, names, outs, **attrs)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs) if n]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(o) for o in outs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(None, {n: np.asarray(x) for n, x in zip(names, inputs) if n})
    return got if outputs > 1 else got[0]


def convolutions():
    for n in (1, 2, 3):
        size = [6, 7, 5][:n]
        x = f(2, 4, *size)
        w = f(6, 2, *([3, 2, 3][:n]))
        pads = [1, 0, 2][:n] + [0, 1, 1][:n]
        strides, dil = [2, 1, 1][:n], [1, 2, 1][:n]
        y = ort("Conv", [x, w], pads=pads, strides=strides, dilations=dil, group=2)
        case(f"nn.conv{n}d", [x, w], y, strides=strides, padding=pads, dilation=dil, groups=2, channels=6, kernel_size=list(w.shape[2:]))
        wt = f(4, 3, *([3, 2, 3][:n]))
        out_pad = [1, 0, 0][:n]
        y = ort("ConvTranspose", [x, wt], pads=pads, strides=strides, dilations=dil, group=2, output_padding=out_pad)
        letters = ["W", "HW", "DHW"][n - 1]
        case(f"nn.conv{n}d_transpose", [x, wt], y, strides=strides, padding=pads, dilation=dil, groups=2, channels=6, output_padding=out_pad, kernel_layout="IO" + letters)
    x, w = f(1, 3, 8, 8), f(5, 3, 3, 3)
    y = ort("Conv", [x, w], pads=[1, 1, 1, 1])
    case("nn.conv2d", [x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)], y.transpose(0, 2, 3, 1), padding=[1, 1, 1, 1], data_layout="NHWC", kernel_layout="HWIO")
    # Blocks of 4 lanes with tails: 6 input channels and 5 output channels in two blocks each.
    x, w = f(1, 6, 5, 6), f(5, 6, 3, 3)
    y = ort("Conv", [x, w], pads=[1, 1, 1, 1], strides=[2, 1])
    case("nn.contrib_conv2d_NCHWc", [block(x, 1, 4), block_weight(w, 4)], block(y, 1, 4), strides=[2, 1], padding=[1, 1, 1, 1], channels=5, in_channels=6,
         data_layout="NCHW4c", out_layout="NCHW4c", kernel_layout="OIHW4i4o")
    case("nn.contrib_conv2d_NCHWc", [x, block(w, 0, 4)], block(y, 1, 4), strides=[2, 1], padding=[1, 1, 1, 1], channels=5, data_layout="NCHW", out_layout="NCHW4c",
         kernel_layout="OIHW4o")
    wd = f(6, 1, 3, 3)
    y = ort("Conv", [x, wd], pads=[1, 1, 1, 1], group=6)
    case("nn.contrib_depthwise_conv2d_NCHWc", [block(x, 1, 4), block(wd, 0, 4)[..., None, :]], block(y, 1, 4), padding=[1, 1, 1, 1], groups=6, channels=6, in_channels=6,
         data_layout="NCHW4c", out_layout="NCHW4c", kernel_layout="OIHW1i4o")
    case("layout_transform", [x], block(x, 1, 4), src_layout="NCHW", dst_layout="NCHW4c")
    case("layout_transform", [block(x, 1, 4)], x, src_layout="NCHW4c", dst_layout="NCHW", channels=6)
    case("layout_transform", [w], block_weight(w, 4), src_layout="OIHW", dst_layout="OIHW4i4o")
    case("layout_transform", [block_weight(w, 4)], w, src_layout="OIHW4i4o", dst_layout="OIHW", channels=5, in_channels=6)


def block(x, axis, v):
    """The axis in blocks of v that go last; zero padded."""
    n = -(-x.shape[axis] // v)
    pad = [(0, 0)] * x.ndim
    pad[axis] = (0, n * v - x.shape[axis])
    x = np.pad(x, pad)
    x = x.reshape(*x.shape[:axis], n, v, *x.shape[axis + 1:])
    return np.moveaxis(x, axis + 1, -1)


def block_weight(w, v):
    return block(block(w, 1, v), 0, v)


def products():
    a, b = f(2, 3, 4), f(4, 5)
    case("nn.dense", [a, b.T.copy()], a @ b, units=5)
    case("nn.contrib_dense_pack", [a, block(b.T.copy(), 0, 4)], a @ b, units=5, weight_layout="NC4n")
    case("nn.matmul", [f_t := f(4, 3), b], f_t.T @ b, transpose_a=True)
    p, q = f(2, 1, 3, 4), f(3, 4, 5)
    case("nn.batch_matmul", [p, q], p @ q, transpose_b=False)
    case("nn.batch_matmul", [p, q.swapaxes(1, 2).copy()], p @ q)
    m, n = rng.integers(-128, 127, (3, 4)).astype(np.int8), rng.integers(-128, 127, (5, 4)).astype(np.int8)
    case("nn.dense", [m, n], m.astype(np.int32) @ n.astype(np.int32).T, out_dtype="int32")
    x, y = f(2, 3, 4), f(2, 4, 5)
    case("einsum", [x, y], np.einsum("bij,bjk->bik", x, y), tuple_operand=True, equation="bij,bjk->bik")
    case("einsum", [x], np.einsum("...ij->...", x), tuple_operand=True, equation="...ij->...")
    s = f(3, 3)
    case("einsum", [s], np.einsum("ii->i", s), tuple_operand=True, equation="ii->i")
    case("einsum", [f_t, f_t], np.einsum("ij,ik", f_t, f_t), tuple_operand=True, equation="ij,ik")


def pools():
    for n in (1, 2, 3):
        x = f(1, 2, *([7, 6, 5][:n]))
        k, s, d = [3, 2, 2][:n], [2, 2, 1][:n], [1, 2, 1][:n]
        pads = [1, 0, 1][:n] + [0, 1, 1][:n]
        for ceil in (0, 1):
            if ceil and n > 1:
                pads[n + 1] = 0  # else a window begins in the padding behind the data, which ONNX leaves out and Relay keeps
            y = ort("MaxPool", [x], kernel_shape=k, strides=s, dilations=d, pads=pads, ceil_mode=ceil)
            case(f"nn.max_pool{n}d", [x], y, pool_size=k, strides=s, dilation=d, padding=pads, ceil_mode=bool(ceil))
            for include in (0, 1):
                y = ort("AveragePool", [x], kernel_shape=k, strides=s, pads=pads, ceil_mode=ceil, count_include_pad=include)
                case(f"nn.avg_pool{n}d", [x], y, pool_size=k, strides=s, padding=pads, ceil_mode=bool(ceil), count_include_pad=bool(include))
    x = f(2, 3, 4, 5)
    case("nn.global_avg_pool2d", [x], ort("GlobalAveragePool", [x]))
    case("nn.global_max_pool2d", [x], ort("GlobalMaxPool", [x]))
    case("nn.global_avg_pool2d", [block(x, 1, 4)], block(ort("GlobalAveragePool", [x]), 1, 4), layout="NCHW4c")
    case("nn.max_pool2d", [x.transpose(0, 2, 3, 1)], ort("MaxPool", [x], kernel_shape=[2, 2]).transpose(0, 2, 3, 1), pool_size=[2, 2], layout="NHWC")
    x = f(1, 1, 5)
    case("nn.adaptive_avg_pool1d", [x], np.array([[[x[0, 0, 0:3].mean(), x[0, 0, 2:5].mean()]]], np.float32), output_size=[2])
    for n in (2, 3):
        x = f(1, 2, *([4, 3, 6][:n]))
        parts = x.reshape(1, 2, 2, 2, 1, 3) if n == 2 else x.reshape(1, 2, 2, 2, 1, 3, 2, 3)
        axes = (3, 5) if n == 2 else (3, 5, 7)
        case(f"nn.adaptive_avg_pool{n}d", [x], parts.mean(axes), output_size=[2, 1, 2][:n])
        case(f"nn.adaptive_max_pool{n}d", [x], parts.max(axes), output_size=[2, 1, 2][:n])
    x = f(1, 1, 5)
    case("nn.adaptive_max_pool1d", [x], np.array([[[x[0, 0, 0:2].max(), x[0, 0, 1:4].max(), x[0, 0, 3:5].max()]]], np.float32), output_size=[3])


def norms():
    x = f(2, 4, 3, 3)
    g, b = f(4), f(4)
    for axis in (1, -1):
        case("nn.softmax", [x], ort("Softmax", [x], axis=axis), axis=axis)
        case("nn.log_softmax", [x], ort("LogSoftmax", [x], axis=axis), axis=axis)
    mean, var = f(4), f(4, low=0.5, high=2)
    case("nn.batch_norm", [x, g, b, mean, var], [ort("BatchNormalization", [x, g, b, mean, var], epsilon=0.01), mean, var], epsilon=0.01)
    case("nn.instance_norm", [x, g, b], ort("InstanceNormalization", [x, g, b]))
    case("nn.group_norm", [x, g, b], ort("GroupNormalization", [x, g, b], num_groups=2), num_groups=2)
    y, gy, by = f(2, 3, 5), f(5), f(5)
    case("nn.layer_norm", [y, gy, by], ort("LayerNormalization", [y, gy, by]))
    case("nn.l2_normalize", [x], ort("LpNormalization", [x], axis=1, p=2), axis=[1])
    case("nn.lrn", [f_x := f(1, 6, 2, 2)], ort("LRN", [f_x], size=5, alpha=0.2, beta=0.6, bias=1.5), size=5, alpha=0.2, beta=0.6, bias=1.5)
    case("nn.dropout", [y], [y, np.ones_like(y)])


def elementwise():
    x = f(3, 5)
    p = f(3, 5, low=0.1, high=2)
    u = f(3, 5, low=-0.9, high=0.9)
    for op in "Abs Atan Asinh Ceil Cos Cosh Erf Exp Floor Sigmoid Sign Sin Sinh Tan Tanh".split():
        case(op.lower(), [x], ort(op, [x]))
    for op in "Log Sqrt".split():
        case(op.lower(), [p], ort(op, [p]))
    for op in "Acos Asin Atanh".split():
        case(op.lower(), [u], ort(op, [u]))
    case("acosh", [p + 1], ort("Acosh", [p + 1]))
    case("log2", [p], np.log2(p))
    case("log10", [p], np.log10(p))
    case("log1p", [u * np.float32(1e-3)], np.log1p(u * np.float32(1e-3)))
    case("rsqrt", [p], 1 / np.sqrt(p))
    case("trunc", [x], np.trunc(x))
    r = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4], np.float32)
    case("nearbyint", [r], ort("Round", [r]))
    case("round", [r], np.trunc(r + np.copysign(np.float32(0.5), r)))
    case("negative", [x], -x)
    case("nn.relu", [x], np.maximum(x, 0))
    g = np.array([-9, -4, -1.5, -0.25, 0, 0.001, 0.5, 2, 5, 9], np.float32)
    case("nn.gelu", [g], ort("Gelu", [g]))
    case("nn.leaky_relu", [x], ort("LeakyRelu", [x], alpha=0.1), alpha=0.1)
    case("nn.prelu", [f_x := f(2, 3, 2), f_a := f(3)], np.where(f_x < 0, f_x * f_a[:, None], f_x))
    case("clip", [x], np.clip(x, -1, 0.5), a_min=-1.0, a_max=0.5)
    case("cast", [x], x.astype(np.int32), dtype="int32")
    case("cast", [np.array([300, -1, 255], np.int64)], np.array([44, 255, 255], np.uint8), dtype="uint8")
    case("reinterpret", [x], x.view(np.int32), dtype="int32")
    special = np.array([np.nan, np.inf, -np.inf, 0, 1], np.float32)
    case("isnan", [special], np.isnan(special))
    case("isinf", [special], np.isinf(special))
    case("isfinite", [special], np.isfinite(special))
    case("nn.relu", [special], np.array([np.nan, np.inf, 0, 0, 1], np.float32))
    i = np.array([-7, 7, 0, 5], np.int32)
    case("bitwise_not", [i], ~i)
    case("abs", [i], np.abs(i))
    case("logical_not", [np.array([True, False])], np.array([False, True]))


def attention():
    q, k, v, m = f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 3), f(1, 1, 3, 5)
    e = np.exp(q @ k.transpose(0, 1, 3, 2) * 0.5 + m)
    y = e / e.sum(-1, keepdims=True) @ v
    case("nn.attention", [q, k, v, m], y, num_heads=2, scale=0.5)
    turned = [a.transpose(0, 2, 1, 3).copy() for a in (q, k, v)]
    case("nn.attention", turned + [m], y.transpose(0, 2, 3, 1), num_heads=2, scale=0.5, query_layout="BSHD", key_layout="BSHD", value_layout="BSHD", out_layout="BSDH")


def broadcast():
    a, b = f(2, 1, 3), f(4, 1)
    for op, g in [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide), ("maximum", np.maximum), ("minimum", np.minimum),
                  ("less", np.less), ("greater_equal", np.greater_equal), ("floor_mod", np.mod), ("mod", np.fmod), ("floor_divide", np.floor_divide)]:
        case(op, [a, b], g(a, b))
    case("power", [np.abs(a), b], np.power(np.abs(a), b))
    i, j = np.array([-7, 7, -8, 9], np.int32), np.array([3, -3, 2, -2], np.int32)
    case("floor_divide", [i, j], i // j)
    case("divide", [i, j], np.trunc(i / j).astype(np.int32))
    case("floor_mod", [i, j], np.mod(i, j))
    case("trunc_mod", [i, j], np.fmod(i, j))
    case("left_shift", [np.abs(i), np.array([1, 2, 3, 40], np.int32)], np.array([14, 28, 64, 0], np.int32))
    case("right_shift", [i, np.array([1, 2, 3, 40], np.int32)], np.array([-4, 1, -1, 0], np.int32))
    case("bitwise_xor", [i, j], i ^ j)
    case("bitwise_and", [i, j], i & j)
    case("bitwise_or", [i, j], i | j)
    case("trunc_divide", [i, j], np.trunc(i / j).astype(np.int32))
    t, o = np.array([True, True, False, False]), np.array([True, False, True, False])
    case("logical_and", [t, o], t & o)
    case("logical_or", [t, o], t | o)
    case("logical_xor", [t, o], t ^ o)
    same = np.array([-7, 3, -8, -2], np.int32)
    case("equal", [i, same], i == same)
    case("not_equal", [i, same], i != same)
    case("less_equal", [i, same], i <= same)
    big = np.array([2**63 + 5, 7], np.uint64)
    case("divide", [big, np.array([3, 2], np.uint64)], big // np.array([3, 2], np.uint64))
    case("greater", [big, np.array([8, 8], np.uint64)], np.array([True, False]))
    c = np.array([[True], [False]])
    case("where", [c, f_x := f(3), f_y := f(2, 3)], np.where(c, f_x, f_y))
    case("nn.bias_add", [f_x := f(2, 3, 4), f_b := f(3)], f_x + f_b[:, None])


def transforms():
    x = f(2, 3, 4)
    case("reshape", [x], x.reshape(2, 12), newshape=[0, -1])
    case("reshape", [x], x.reshape(2, 3, 2, 2), newshape=[-2][:0] + [0, 0, -4, 2, -1])
    case("reshape", [x], x.reshape(6, 4), newshape=[-3, 0])
    case("transpose", [x], x.transpose(2, 0, 1), axes=[2, 0, 1])
    case("transpose", [x], x.T)
    case("squeeze", [x[:, None]], x, axis=[1])
    case("expand_dims", [x], x[:, None, None], axis=1, num_newaxis=2)
    case("concatenate", [x, x[:, :1]], np.concatenate([x, x[:, :1]], 1), tuple_operand=True, axis=1)
    case("stack", [x, x + 1], np.stack([x, x + 1], -1), tuple_operand=True, axis=-1)
    case("split", [x], np.split(x, 2, 2), sections=2, axis=2)
    case("split", [x], np.split(x, [1, 3], 2), indices_or_sections=[1, 3], axis=2)
    far = 2**63 - 1
    case("strided_slice", [x], x[:, ::-1, 1:far:2], begin=[-1, 1], end=[-far, far], strides=[-1, 2], axes=[1, 2])
    case("strided_slice", [x], x[1:, :-1], begin=[1, 0], end=[5, -1])
    case("strided_slice", [x], x[:, 1:3, 2:], begin=[0, 1, 2], end=[-1, 2, -1], slice_mode="size")
    case("strided_slice", [x], x[:, 2:1], begin=[2], end=[1], axes=[1])
    case("strided_slice", [x], x[:, 2:0:-1], begin=[100], end=[-3], strides=[-1], axes=[1])
    case("reverse", [x], x[:, ::-1], axis=1)
    t = f(4, 3)
    n = i64(1, 4, 2)
    case("reverse_sequence", [t, n], ort("ReverseSequence", [t, n], time_axis=0, batch_axis=1), seq_axis=0, batch_axis=1)
    case("repeat", [x], np.repeat(x, 2, 1), repeats=2, axis=1)
    case("repeat", [x], np.repeat(x, 2), repeats=2)
    case("tile", [x], np.tile(x, (2, 1, 1, 3)), reps=[2, 1, 1, 3])
    case("tile", [x], np.tile(x, (2, 2)), reps=[2, 2])
    case("broadcast_to", [x[:, :1]], np.broadcast_to(x[:, :1], (5, 2, 3, 4)), shape=[5, 2, 3, 4])
    case("nn.batch_flatten", [x], x.reshape(2, 12))
    case("copy", [x], x)
    case("zeros_like", [x], np.zeros_like(x))
    case("ones_like", [x], np.ones_like(x))
    case("full_like", [x, np.float32(3)], np.full_like(x, 3))
    case("ones", [], np.ones((2,), np.int64), shape=[2], dtype="int64")
    case("zeros", [], np.zeros((2, 3), np.float32), shape=[2, 3], dtype="float32")
    case("full", [np.array(7, np.int64)], np.full((2, 2), 7, np.int64), shape=[2, 2])
    case("arange", [np.array(10, np.int64), np.array(-4, np.int64), np.array(-3, np.int64)], np.arange(10, -4, -3), dtype="int64")
    case("shape_of", [x], i64(2, 3, 4), dtype="int64")
    case("ndarray_size", [x], np.array(24, np.int32))
    v, w = f(3), f(2)
    case("meshgrid", [v, w], np.meshgrid(v, w, indexing="ij"), tuple_operand=True)
    case("meshgrid", [v, w], np.meshgrid(v, w, indexing="xy"), tuple_operand=True, indexing="xy")
    m = f(2, 3, 4)
    case("trilu", [m, np.array(1, np.int64)], np.triu(m, 1))
    case("trilu", [m, np.array(-1, np.int64)], np.tril(m, -1), upper=False)


def indexing():
    x = f(3, 4)
    case("take", [x, i64(2, 0, -1)], x[[2, 0, 2]], axis=0, mode="fast")
    case("take", [x, i64(1, 9, -4).reshape(3, 1)], x[:, [1, 3, 0]].reshape(3, 3, 1), axis=1)
    case("take", [x, i64(5, -1)], x[:, [1, 3]], axis=1, mode="wrap")
    bx, bi = f(2, 3, 4), i64(1, 0, 2, 2).reshape(2, 2)
    case("take", [bx, bi], np.stack([bx[k][bi[k]] for k in range(2)]), axis=1, batch_dims=1)
    ix = i64(0, 2, 1, -1, 1, 1, 0, 2).reshape(2, 4)
    case("gather", [x, ix], ort("GatherElements", [x, ix], axis=0), axis=0)
    d, nd = f(2, 3, 4), i64(0, 1, 1, 2).reshape(2, 2)
    case("gather_nd", [d, nd.T.copy()], ort("GatherND", [d, nd]))
    nb = i64(1, 2).reshape(2, 1)
    case("gather_nd", [d, nb.T.copy()], ort("GatherND", [d, nb], batch_dims=1), batch_dims=1)
    up = f(2, 4)
    for onnx_name, name in [("none", "update"), ("add", "add"), ("mul", "mul"), ("max", "max"), ("min", "min")]:
        j = ix if onnx_name != "none" else i64(0, 2, 1, -1, 1, 1, 0, 0).reshape(2, 4)
        case("scatter_elements", [x, j, up], ort("ScatterElements", [x, j, up], axis=0, reduction=onnx_name), axis=0, reduction=name)
        us = f(2, 4)
        j = nd if onnx_name == "none" else i64(0, 1, 0, 1).reshape(2, 2)
        case("scatter_nd", [d, j.T.copy(), us], ort("ScatterND", [d, j, us], reduction=onnx_name), mode=name)
    h = i64(1, -1, 7)
    case("one_hot", [h, np.float32(3), np.float32(-1)], ort("OneHot", [h, np.array(4, np.int64), np.array([-1, 3], np.float32)]), depth=4)
    case("one_hot", [h, np.float32(1), np.float32(0)], ort("OneHot", [h, np.array(4, np.int64), np.array([0, 1], np.float32)], axis=0), depth=4, axis=0)
    z = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    case("argwhere", [z], np.argwhere(z))


def sorting():
    x = np.array([[3, 1, 2, 3], [0, -1, 5, 5]], np.float32)
    values, index = ort("TopK", [x, i64(2)], outputs=2, axis=1)
    case("topk", [x], [values, index], k=2, axis=1, dtype="int64")
    values, index = ort("TopK", [x, i64(3)], outputs=2, axis=-1, largest=0)
    case("topk", [x, i64(3)], [values, index], is_ascend=True, dtype="int64")
    case("sort", [x], np.sort(x, 0), axis=0)
    case("argsort", [x], np.argsort(-x, 1, kind="stable").astype(np.int32), axis=1, is_ascend=False)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            y = ort("CumSum", [x, np.array(1, np.int64)], exclusive=exclusive, reverse=reverse)
            case("cumsum", [x], y, axis=1, exclusive=bool(exclusive), reverse=bool(reverse))
    case("cumprod", [x], np.cumprod(x, 0), axis=0)
    case("cumsum", [x], np.cumsum(x))
    u = np.array([2, 1, 1, 3, 4, 3], np.float32)
    for flag in (0, 1):
        case("unique", [u], ort("Unique", [u], outputs=4, sorted=flag), sorted=bool(flag))
    m = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]], np.float32)
    case("unique", [m], ort("Unique", [m], outputs=4, axis=0), axis=0)


def reductions():
    x = f(2, 3, 4)
    for op, g in [("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min)]:
        case(op, [x], g(x, axis=(0, 2)), axis=[0, 2])
        case(op, [x], g(x, axis=1, keepdims=True), axis=[0, -1], exclude=True, keepdims=True)
        case(op, [x], g(x))
    case("sum", [x], x, axis=[])
    case("logsumexp", [x], ort("ReduceLogSumExp", [x, i64(1)], keepdims=0), axis=[1])
    case("variance", [x], x.var(axis=2), axis=[2])
    case("variance", [x], x.var(axis=2, ddof=1), axis=[2], unbiased=True)
    b = np.array([[True, False], [True, True]])
    case("all", [b], b.all(0), axis=[0])
    case("any", [b], b.any(1), axis=[1])
    t = np.array([[2, 2, 1], [1, 3, 3]], np.float32)
    for last in (0, 1):
        case("argmax", [t], ort("ArgMax", [t], axis=1, keepdims=0, select_last_index=last), axis=[1], select_last_index=bool(last), dtype="int64")
        case("argmin", [t], ort("ArgMin", [t], axis=0, keepdims=1, select_last_index=last), axis=[0], keepdims=True, select_last_index=bool(last), dtype="int64")
    case("argmax", [t], np.array(4, np.int32))
    n = np.array([[3, -4], [5, 6]], np.int32)
    case("sum", [n], n.sum(0).astype(np.int32), axis=[0])
    case("min", [n], n.min(1), axis=[1])
    empty = np.zeros((0, 2), np.float32)
    case("max", [empty], np.full(2, -np.inf, np.float32), axis=[0])
    case("sum", [empty], np.zeros(2, np.float32), axis=[0])
    case("min_max", [n], [n.min(), n.max()])


def pads():
    x = f(1, 3, 4)
    widths = [[0, 0], [2, 1], [1, 2]]
    flat = i64(0, 2, 1, 0, 1, 2)
    case("nn.pad", [x, np.float32(9)], ort("Pad", [x, flat, np.array(9, np.float32)]), pad_width=widths)
    for mode in ("edge", "reflect", "wrap"):
        case("nn.pad", [x, np.float32(0)], ort("Pad", [x, flat], mode=mode), pad_width=widths, pad_mode=mode)
    case("nn.pad", [x, np.float32(1)], np.pad(x[:, 1:, :-1], [(0, 0), (0, 1), (2, 0)], constant_values=1), pad_width=[[0, 0], [-1, 1], [2, -1]])
    case("nn.mirror_pad", [x], np.pad(x, widths, mode="symmetric"), pad_width=widths)
    case("nn.mirror_pad", [x], np.pad(x, widths, mode="reflect"), pad_width=widths, mode="REFLECT")
    d = f(1, 8, 2, 3)
    for mode, onnx_mode in (("DCR", "DCR"), ("CDR", "CRD")):
        case("nn.depth_to_space", [d], ort("DepthToSpace", [d], blocksize=2, mode=onnx_mode), block_size=2, mode=mode)
    s = f(1, 2, 4, 6)
    case("nn.space_to_depth", [s], ort("SpaceToDepth", [s], blocksize=2), block_size=2)


def images():
    x = f(1, 1, 4, 5)
    methods = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
    for mode, method in methods.items():
        for transform in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            for size in ([7, 3], [1, 10]):
                sizes = i64(1, 1, *size)
                attrs = dict(mode=mode, coordinate_transformation_mode=transform)
                if mode == "cubic":
                    attrs["cubic_coeff_a"] = -0.75
                ours = dict(size=size, method=method, coordinate_transformation_mode=transform, cubic_alpha=-0.75)
                if mode == "nearest":
                    ours["rounding_method"] = "round_prefer_floor"
                case("image.resize2d", [x], ort("Resize", [x, None, None, sizes], **attrs), **ours)
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        y = ort("Resize", [x, None, None, i64(1, 1, 6, 8)], mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode=rounding)
        case("image.resize2d", [x], y, size=[6, 8], method="nearest_neighbor", rounding_method=rounding)
    scales = np.array([1, 1, 1.7, 0.6], np.float32)
    for mode in ("linear", "cubic"):
        y = ort("Resize", [x, None, scales], mode=mode)
        case("image.resize2d", [x], y, size=list(y.shape[2:]), method=mode, scales=[1.7, 0.6], cubic_alpha=-0.75)
    y = ort("Resize", [x, None, None, i64(1, 1, 3, 9)], mode="cubic", exclude_outside=1)
    case("image.resize2d", [x], y, size=[3, 9], method="cubic", cubic_exclude=1, cubic_alpha=-0.75)
    for mode in ("linear", "cubic"):
        y = ort("Resize", [x, None, None, i64(1, 1, 2, 3)], mode=mode, antialias=1)
        case("image.resize2d", [x], y, size=[2, 3], method=mode, antialias=True, cubic_alpha=-0.75)
    roi = np.array([0, 0, 0.2, -0.1, 1, 1, 0.8, 1.2], np.float32)
    y = ort("Resize", [x, roi, None, i64(1, 1, 3, 4)], mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.0)
    case("image.resize2d", [x], y, size=[3, 4], coordinate_transformation_mode="tf_crop_and_resize", roi=[0.2, -0.1, 0.8, 1.2], extrapolation_value=10.0)
    l1, l3 = f(1, 2, 5), f(1, 1, 2, 3, 4)
    case("image.resize1d", [l1], ort("Resize", [l1, None, None, i64(1, 2, 8)], mode="linear"), size=[8])
    case("image.resize3d", [l3], ort("Resize", [l3, None, None, i64(1, 1, 3, 5, 2)], mode="linear"), size=[3, 5, 2])
    case("nn.upsampling", [x], x.repeat(2, 2).repeat(3, 3), scale_h=2.0, scale_w=3.0)
    grid = f(1, 3, 4, 2, low=-1.3, high=1.3)
    for mode, method in (("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic")):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                y = ort("GridSample", [x, grid], mode=mode, padding_mode=padding, align_corners=align)
                case("image.grid_sample", [x, grid.transpose(0, 3, 1, 2)], y, method=method, padding_mode=padding, align_corners=bool(align))


def gate_inputs(x, w, bias):
    """What each gate gets besides the state: (T, N, D * gates * H)."""
    return np.concatenate([x @ w[d].T + bias[d] for d in range(w.shape[0])], axis=2).astype(np.float32)


def recurrent():
    t, n, i, h = 4, 2, 3, 2
    x = f(t, n, i)
    for direction in ("forward", "reverse", "bidirectional"):
        d = 2 if direction == "bidirectional" else 1
        lengths = np.array([4, 2], np.int32)
        h0, c0 = f(d, n, h), f(d, n, h)
        w, r, b = f(d, 4 * h, i), f(d, 4 * h, h), f(d, 8 * h)
        y = ort("LSTM", [x, w, r, b, None, h0, c0], outputs=3, hidden_size=h, direction=direction)
        case("nn.lstm", [x, w, r, b, h0, c0], y, hidden_size=h, direction=direction)
        case("nn.lstm_scan", [gate_inputs(x, w, b[:, : 4 * h] + b[:, 4 * h :]), r, h0, c0], y, hidden_size=h, direction=direction)
        p = f(d, 3 * h)
        y = ort("LSTM", [x, w, r, b, lengths, h0, c0, p], outputs=3, hidden_size=h, direction=direction)
        case("nn.lstm", [x, w, r, b, h0, c0, p, lengths], y, hidden_size=h, direction=direction, has_peephole=True, has_lengths=True)
        w, r, b = f(d, 3 * h, i), f(d, 3 * h, h), f(d, 6 * h)
        for before in (0, 1):
            y = ort("GRU", [x, w, r, b, lengths, h0], outputs=2, hidden_size=h, direction=direction, linear_before_reset=before)
            case("nn.gru", [x, w, r, b, h0, lengths], y, hidden_size=h, direction=direction, linear_before_reset=bool(before), has_lengths=True)
            outer, inner = b[:, 3 * h :].copy(), b[:, 5 * h :] * before
            outer[:, 2 * h :] -= inner
            case("nn.gru_scan", [gate_inputs(x, w, b[:, : 3 * h] + outer), r, inner, h0, lengths], y, hidden_size=h, direction=direction, linear_before_reset=bool(before), has_lengths=True)
        w, r, b = f(d, h, i), f(d, h, h), f(d, 2 * h)
        y = ort("RNN", [x, w, r, b, None, h0], outputs=2, hidden_size=h, direction=direction, activations=["Relu"] * d)
        case("nn.rnn", [x, w, r, b, h0], y, hidden_size=h, direction=direction, activations=["Relu"] * d)
        case("nn.rnn_scan", [gate_inputs(x, w, b[:, :h] + b[:, h:]), r, h0], y, hidden_size=h, direction=direction, activations=["Relu"] * d)


def annotations():
    x = f(2, 3)
    for op in ("annotation.stop_fusion", "device_copy", "on_device"):
        case(op, [x], x)
    for op in ("annotation.compiler_begin", "annotation.compiler_end"):
        case(op, [x], x, compiler="unit")
    case("fast_exp", [x], np.exp(x))
    case("fast_tanh", [x], np.tanh(x))
    case("fast_erf", [x], ort("Erf", [x]))
    case("nn.fast_softmax", [x], ort("Softmax", [x], axis=0), axis=0)


def batch_blocks():
    x = f(2, 4, 3, 2)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 0)), constant_values=0.5)
    y = padded.reshape(2, 2, 2, 2, 3, 2).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 2)
    case("nn.space_to_batch_nd", [x], y, block_shape=[2, 3], paddings=[[0, 0], [1, 2]], pad_value=0.5)
    case("nn.batch_to_space_nd", [y], x, block_shape=[2, 3], crops=[[0, 0], [1, 2]])


def dynamic():
    x = f(2, 1, 3)
    case("dyn.reshape", [x, i64(3, -1)], x.reshape(3, 2))
    case("dyn.broadcast_to", [x, i64(2, 4, 3)], np.broadcast_to(x, (2, 4, 3)))
    case("dyn.full", [np.float32(1.5), i64(2, 2)], np.full((2, 2), 1.5, np.float32))
    case("dyn.ones", [i64(2, 3)], np.ones((2, 3), np.int32), dtype="int32")
    case("dyn.zeros", [i64(3)], np.zeros(3, np.float32))
    case("dyn.tile", [x, i64(1, 2, 2)], np.tile(x, (1, 2, 2)))
    case("dyn.squeeze", [x, i64(1)], x.squeeze(1))
    case("dyn.expand_dims", [x, np.array(1, np.int64)], x[:, None, None], num_newaxis=2)
    case("dyn.strided_slice", [x, i64(1, 0, 0), i64(2, 1, 3), i64(1, 1, 2)], x[1:2, 0:1, 0:3:2])
    case("dyn.one_hot", [i64(1, 0), np.float32(2), np.float32(-1), np.array(3, np.int64)], np.array([[-1, 2, -1], [2, -1, -1]], np.float32))


def quantised():
    """Against numpy's arithmetic; products against onnxruntime's integer operators."""
    def q(*shape, dtype="uint8"):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def saturated(x, dtype):
        info = np.iinfo(dtype)
        return np.clip(x, info.min, info.max).astype(dtype)

    s, z = np.float32, np.int32
    x, y = q(2, 5), q(2, 5)
    real = lambda v, scale, zero: (v.astype(np.float64) - zero) * np.float64(s(scale))  # noqa: E731
    up = lambda v: np.floor(v + 0.5)  # noqa: E731
    g = f(3, 4, low=-40, high=40)
    case("qnn.quantize", [g, s(0.25), z(3)], ort("QuantizeLinear", [g, s(0.25), np.uint8(3)]), out_dtype="uint8")
    scales, zeros = np.array([0.25, 0.5, 0.125], np.float32), np.array([1, -2, 3], np.int8)
    case("qnn.quantize", [g, scales, zeros.astype(np.int32)], ort("QuantizeLinear", [g, scales, zeros], axis=0), axis=0)
    case("qnn.dequantize", [x, s(0.25), z(3)], ort("DequantizeLinear", [x, s(0.25), np.uint8(3)]))
    wide = np.arange(-40, 40, dtype=np.int32).reshape(2, 40)
    case("qnn.requantize", [wide, s(0.5), z(1), s(0.25), z(7)], saturated(up((wide - 1) * 2.0) + 7, "int8"))
    ratio = (wide * np.array([[0.5], [0.125]])) / 0.25
    case("qnn.requantize", [wide, np.array([0.5, 0.125], np.float32), z(0), s(0.25), z(0)], saturated(np.sign(ratio) * up(np.abs(ratio)), "int8"),
         axis=0, rounding="TONEAREST")
    for op, fn in (("qnn.add", np.add), ("qnn.subtract", np.subtract), ("qnn.mul", np.multiply)):
        out = 32.0 if op == "qnn.mul" else 0.5
        case(op, [x, y, s(0.25), z(3), s(0.5), z(9), s(out), z(100)], saturated(up(fn(real(x, 0.25, 3), real(y, 0.5, 9)) / out) + 100, "uint8"))
    image, kernel = q(1, 3, 5, 5), q(2, 3, 3, 3, dtype="int8")
    sums = ort("ConvInteger", [image, kernel, np.uint8(7), np.int8(0)], pads=[1, 1, 1, 1])
    case("qnn.conv2d", [image, kernel, z(7), z(0), s(0.5), s(0.5)], sums, padding=[1, 1, 1, 1], out_dtype="int32")
    small, spread = q(1, 2, 3, 3), q(2, 3, 2, 2, dtype="int8")
    turned = ort("ConvTranspose", [small.astype(np.float32) - 7, spread.astype(np.float32) - 3], strides=[2, 2])
    case("qnn.conv2d_transpose", [small, spread, z(7), z(3), s(0.5), s(0.5)], turned.astype(np.int32), strides=[2, 2], out_dtype="int32")
    weight = q(4, 5, dtype="int8")
    case("qnn.dense", [x, weight, z(7), z(0), s(0.5), s(0.5)], ort("MatMulInteger", [x, weight.T.copy(), np.uint8(7), np.int8(0)]), out_dtype="int32")
    a, b = q(2, 3, 4), q(2, 5, 4, dtype="int8")
    case("qnn.batch_matmul", [a, b, z(7), z(1), s(0.5), s(0.5)], np.matmul(a.astype(np.int32) - 7, (b.astype(np.int32) - 1).transpose(0, 2, 1)), out_dtype="int32")
    unary = {"tanh": np.tanh, "exp": np.exp, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "log": np.log,
             "hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6, "erf": lambda v: ort("Erf", [v.astype(np.float32)]).astype(np.float64)}
    positive = q(3, 4) // 2 + 9
    for op, fn in unary.items():
        case(f"qnn.{op}", [positive.astype(np.uint8), s(0.0625), z(4), s(0.03125), z(5)],
             saturated(np.round(fn(real(positive, 0.0625, 4)) / 0.03125) + 5, "uint8"))
    value = real(x, 0.5, 120)
    case("qnn.leaky_relu", [x, s(0.5), z(120), s(0.25), z(60)], saturated(np.round(np.where(value < 0, value * 0.5, value) / 0.25) + 60, "uint8"), alpha=0.5)


def sparse():
    """By the dense matrix: random numbers of their own, so that the other cases stay as they are."""
    own = np.random.default_rng(11)
    draw = lambda *shape: np.round(own.uniform(-2, 2, shape), 3).astype(np.float32)  # noqa: E731
    indices, indptr = np.array([0, 3, 1, 2, 0], "int32"), np.array([0, 2, 2, 5], "int32")

    def dense(values):
        r, c = values.shape[1:]
        out = np.zeros((3 * r, 4 * c), np.float32)
        for row in range(3):
            for e in range(indptr[row], indptr[row + 1]):
                out[row * r:row * r + r, indices[e] * c:indices[e] * c + c] = values[e]
        return out

    x, single, blocks = draw(2, 4), draw(5), draw(5, 2, 3)
    case("nn.sparse_dense", [x, single, indices, indptr], x @ dense(single.reshape(5, 1, 1)).T)
    wide = draw(2, 12)
    case("nn.sparse_dense", [wide, blocks, indices, indptr], wide @ dense(blocks).T)
    case("nn.sparse_dense", [wide, blocks, indices, indptr], dense(blocks) @ wide.T, sparse_lhs=True)
    case("nn.internal.sparse_dense_padded", [x, single, indices, indptr], x @ dense(single.reshape(5, 1, 1)).T)
    rows = draw(3, 4)
    case("nn.sparse_add", [rows, single, indices, indptr], rows + dense(single.reshape(5, 1, 1)))
    square = np.array([0, 2, 3, 5, 5], "int32")
    case("nn.sparse_transpose", [single, indices, square],
         [single[[0, 4, 2, 3, 1]], np.array([0, 2, 1, 2, 0], "int32"), np.array([0, 2, 3, 4, 5], "int32")])
    image = draw(1, 2, 3, 4)
    weight = draw(5, 2)
    case("nn.sparse_conv2d", [image, weight, indices, indptr], image @ dense(weight.reshape(5, 2, 1)).T)
    case("nn.sparse_conv2d", [image.transpose(0, 3, 1, 2).copy(), weight.reshape(5, 2, 1), indices, indptr],
         (image @ dense(weight.reshape(5, 2, 1)).T).transpose(0, 3, 1, 2).copy(), layout="NCHW")


def block_products():
    draw = np.random.default_rng(5)
    for bits, k in ((4, 40), (8, 16)):
        n, block = 3, 16
        blocks = -(-k // block)
        numbers = draw.integers(0, 1 << bits, (n, blocks * block)).astype(np.uint8)
        scales, zeros = (draw.integers(1, 9, (n, blocks)) / np.float32(8)).astype(np.float32), draw.integers(0, 1 << bits, (n, blocks)).astype(np.float32)
        x = draw.integers(-8, 9, (2, k)).astype(np.float32) / 4
        weight = ((numbers.reshape(n, blocks, block) - zeros[..., None]) * scales[..., None]).reshape(n, -1)[:, :k]
        stored = numbers if bits == 8 else numbers[:, 0::2] | numbers[:, 1::2] << 4
        case("nn.block_dense", [x, stored.reshape(n, blocks, -1), scales, zeros], (x @ weight.T).astype(np.float32), bits=bits, block=block)


for make in (convolutions, products, pools, norms, elementwise, broadcast, transforms, indexing, sorting, reductions, pads, images, recurrent, attention,
             annotations, batch_blocks, dynamic, quantised, sparse, block_products):
    make()
write("op_cases.txt", f"tests/relay/make_op_cases.py with onnxruntime {onnxruntime.__version__} and numpy")
