# SPDX-License-Identifier: Apache-2.0
"""Layouts: what a script's rule or ConvertLayout makes of a network, written as before and after."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, same
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing.temp_op_attr import TempOpAttr

nn = relay.nn


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def moved(x, source, target):
    return relay.layout_transform(x, source, target)


def function(body):
    return relay.Function(relay.analysis.free_vars(body), body)


def run(body, *passes):
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential([transform.InferType(), *passes, transform.InferType()])(tvm.IRModule.from_expr(function(body)))["main"]


def compared(before, after, *passes):
    got, want = run(before, *passes), run(after)
    names = {p.name_hint: p for p in want.params}
    assert sorted(names) == sorted(p.name_hint for p in got.params)
    same(got, relay.Function([names[p.name_hint] for p in got.params], want.body))


# --- rules of a script: blocks of channels
def blocks(size):
    def rule(attrs, inputs, types, out_type):
        return nn.conv2d(*inputs, **{**dict(attrs), "data_layout": f"NCHW{size}c", "kernel_layout": f"OIHW{size}i"})
    return rule


X, W, W2, B = var("x", 1, 16, 10, 10), var("w", 32, 16, 3, 3), var("v", 32, 32, 3, 3), var("b", 32)
SHAPE = {"channels": 32, "kernel_size": (3, 3), "padding": (1, 1)}
P = "NCHW8c"


def plain(x=X, w=W):
    return nn.conv2d(x, w, **SHAPE)


def packed(x=None, w=W):
    return nn.conv2d(moved(X, "NCHW", P) if x is None else x, moved(w, "OIHW", "OIHW8i"), data_layout=P, kernel_layout="OIHW8i", **SHAPE)


def back(x):
    return moved(x, P, "NCHW")


def tall(v):
    return moved(relay.expand_dims(relay.expand_dims(v, 1, 2), 0), "NCHW", P)


def blocked():
    yield "one", plain(), back(packed())
    yield "element by element", relay.tanh(relay.cast(nn.relu(plain()), "float16")), back(relay.tanh(relay.cast(nn.relu(packed()), "float16")))
    yield "two", plain(nn.relu(plain()), W2), back(packed(nn.relu(packed()), W2))
    yield "bias", nn.bias_add(plain(), B), back(packed() + tall(B))
    yield "scalars", relay.const(3.0) * plain() / relay.const(7.0), back(relay.const(3.0) * packed() / relay.const(7.0))
    s = var("s", 32, 1, 1)
    yield "scale", s * plain(), back(moved(relay.expand_dims(s, 0, 1), "NCHW", P) * packed())
    yield "average", nn.avg_pool2d(plain(), (2, 2), (2, 2)), back(nn.avg_pool2d(packed(), (2, 2), (2, 2), layout=P))
    yield "global maximum", nn.global_max_pool2d(plain()), back(nn.global_max_pool2d(packed(), layout=P))
    yield "upsampling", nn.upsampling(plain(), 3, 2), back(nn.upsampling(packed(), 3, 2, layout=P))
    yield "channels joined", relay.concatenate([plain(), plain(X, var("u", 32, 16, 3, 3))], 1), None
    yield "flattened", nn.batch_flatten(plain()), nn.batch_flatten(back(packed()))
    yield "normalised over neighbours", nn.lrn(plain()), nn.lrn(back(packed()))
    yield "prelu", nn.prelu(plain(), B), nn.prelu(back(packed()), B)
    yield "padded beside", nn.pad(plain(), ((0, 0), (0, 0), (2, 1), (0, 3))), back(nn.pad(packed(), ((0, 0), (0, 0), (2, 1), (0, 3), (0, 0))))
    yield "padded channels", nn.pad(plain(), ((0, 0), (1, 1), (0, 0), (0, 0))), nn.pad(back(packed()), ((0, 0), (1, 1), (0, 0), (0, 0)))
    yield "whole blocks cut", relay.strided_slice(plain(), [0, 8], [1, 24]), back(relay.strided_slice(packed(), [0, 1], [1, 3], [1, 1]))
    yield "half a block cut", relay.strided_slice(plain(), [0, 4], [1, 24]), relay.strided_slice(back(packed()), [0, 4], [1, 24])
    yield "cut by axes", relay.strided_slice(plain(), [16], [32], [1], axes=[1]), back(relay.strided_slice(packed(), [2], [4], [1], axes=[1]))
    yield "rows cut", relay.strided_slice(plain(), [0, 0, 2], [1, 32, 9]), back(relay.strided_slice(packed(), [0, 0, 2], [1, 4, 9], [1, 1, 1]))
    yield "used twice", relay.Tuple([nn.relu(plain()), nn.batch_flatten(plain())]), None


@program(*blocked())
def rule_of_blocks(_, before, after):
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocks(8)):
        if after is not None:
            compared(before, after, transform.CanonicalizeOps(), transform.AlterOpLayout())
        else:
            out = run(before, transform.AlterOpLayout())
            assert out.ret_type == run(before).ret_type and P in out.astext(False)


@program
def rule_about_weights():
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", lambda attrs, inputs, types, out: nn.conv2d(inputs[0], inputs[1] * relay.const(0.5), **attrs)):
        compared(nn.relu(plain()), nn.relu(plain(X, W * relay.const(0.5))), transform.AlterOpLayout())


@program
def rule_that_declines():
    seen = []
    with TempOpAttr("nn.max_pool2d", "FTVMAlterOpLayout", lambda attrs, inputs, types, out: seen.append(tuple(out.shape))):
        compared(nn.max_pool2d(X, (2, 2)), nn.max_pool2d(X, (2, 2)), transform.AlterOpLayout())
    assert seen == [(1, 16, 9, 9)]


@program
def rule_of_dense():
    x, w = var("x", 6, 32), var("w", 48, 32)

    def rule(attrs, inputs, types, out):
        return nn.contrib_dense_pack(inputs[0], moved(inputs[1], "NC", "NC16n"), "NC16n", None, attrs["out_dtype"])
    with TempOpAttr("nn.dense", "FTVMAlterOpLayout", rule):
        compared(nn.relu(nn.dense(x, w)), nn.relu(nn.contrib_dense_pack(x, moved(w, "NC", "NC16n"), "NC16n", None, "")), transform.AlterOpLayout())


# --- ConvertLayout
XL, WL = moved(X, "NCHW", "NHWC"), moved(W, "OIHW", "HWIO")
LAST = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def last(x=XL, w=WL):
    return nn.conv2d(x, w, **SHAPE, **LAST)


def first(x):
    return moved(x, "NHWC", "NCHW")


def normal(kind, x, axis):
    return getattr(nn, kind)(x, var("g", 32), B, axis=axis)


def statistics(x, axis):
    return nn.batch_norm(x, var("g", 32), B, var("m", 32), var("n", 32), axis=axis)[0]


def converted():
    for kind in ("layer_norm", "instance_norm"):
        yield kind, normal(kind, plain(), 1), first(normal(kind, last(), 3))
    yield "batch_norm", nn.relu(statistics(plain(), 1)), first(nn.relu(statistics(last(), 3)))
    yield "topk", relay.topk(plain(), 2, 2, "values"), first(relay.topk(last(), 2, 1, "values"))
    yield "split", relay.split(plain(), 4, 1)[2], first(relay.split(last(), 4, 3)[2])
    yield "split in places", relay.split(plain(), [3, 7], 2)[1], first(relay.split(last(), [3, 7], 1)[1])
    yield "cut by axes", relay.strided_slice(plain(), [1, 2], [9, 8], [1, 2], axes=[2, 1]), first(relay.strided_slice(last(), [1, 2], [9, 8], [1, 2], axes=[1, 3]))
    yield "stacked", relay.stack([plain()], 0), relay.stack([first(last())], 0)
    yield "sum", relay.sum(plain(), [2, 3]), relay.sum(last(), [1, 2])
    yield "both results", relay.Tuple([nn.relu(plain()), nn.batch_flatten(X)]), relay.Tuple([first(nn.relu(last())), nn.batch_flatten(X)])


@program(*converted())
def channels_last(_, before, after):
    compared(before, after, transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))


@program(("NHWC", "OHWI"), ("NHWC", "HWOI"), ("NHWC", "HWIO"))
def named_kernel_layout(data, kernel):
    want = nn.conv2d(moved(X, "NCHW", data), moved(W, "OIHW", kernel), data_layout=data, kernel_layout=kernel, **SHAPE)
    compared(plain(), moved(want, data, "NCHW"), transform.ConvertLayout({"nn.conv2d": [data, kernel]}))


@program
def another_operator_is_left_alone():
    compared(nn.relu(plain()), nn.relu(plain()), transform.ConvertLayout({"nn.max_pool2d": ["NHWC"]}))


@program
def scales_of_quantised_channels():
    """Tuples of scales stay as they are written."""
    q = relay.qnn.op
    zero, one, half = relay.const(0), relay.const(1.0), relay.const(0.5)
    x, ws = var("x", 1, 6, 6, 8, dtype="int8"), [var(n, 3, 3, 8, 8, dtype="int8") for n in "vw"]

    def network(data, weights, axis, **layout):
        made = [relay.cast(q.conv2d(data, w, zero, zero, half, half, channels=8, kernel_size=(3, 3), **layout), "int8") for w in weights]
        return q.concatenate(made, [one, half], [zero, zero], one, zero, axis=axis)
    after = network(moved(x, "NHWC", "NCHW"), [moved(w, "HWIO", "OIHW") for w in ws], 1)
    compared(network(x, ws, 3, **LAST), moved(after, "NCHW", "NHWC"), transform.ConvertLayout({"qnn.conv2d": ["NCHW", "default"]}))


@program(*[(kind, axis) for kind in ("instance_norm", "group_norm") for axis in (1, 2, 3)])
def channels_of_a_norm(kind, axis):
    data, gamma, beta = numbers(2, 6, 4, 8), numbers((6, 4, 8)[axis - 1], seed=3), numbers((6, 4, 8)[axis - 1], seed=5)
    x, g, b = (relay.var(n, shape=v.shape) for n, v in zip("xgb", (data, gamma, beta)))
    more = {"num_groups": 2} if kind == "group_norm" else {}
    got = evaluate(relay.Function([x, g, b], getattr(nn, kind)(x, g, b, axis=axis, **more)), data, gamma, beta)
    front = np.moveaxis(data, axis, 1)
    parts = front.reshape(2, more.get("num_groups", front.shape[1]), -1)
    hat = ((parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)).reshape(front.shape)
    want = np.moveaxis(hat * gamma.reshape(-1, 1, 1) + beta.reshape(-1, 1, 1), 1, axis)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    debug = evaluate(relay.Function([x, g, b], getattr(nn, kind)(x, g, b, axis=axis, **more)), data, gamma, beta, kind="debug")
    np.testing.assert_allclose(debug, want, rtol=1e-4, atol=1e-5)


# --- padding
@program(1, 2, 3)
def padding_of_pools(rank):
    x = var("x", *[1, 2, 9, 8, 7][:rank + 2])
    width, size, both = [[0, 0], [0, 0], *[[1, 1]] * rank], (2,) * rank, (1,) * (2 * rank)
    most, mean = getattr(nn, f"max_pool{rank}d"), getattr(nn, f"avg_pool{rank}d")
    for low in (float(tvm.tir.min_value("float32").value), -float("inf")):
        compared(most(nn.pad(x, width, low), size, size), most(x, size, size, padding=both), transform.FoldExplicitPadding())
    compared(most(nn.pad(x, width, 0.0), size, size), most(nn.pad(x, width, 0.0), size, size), transform.FoldExplicitPadding())
    compared(mean(nn.pad(x, width, 0.0), size, size), mean(x, size, size, padding=both, count_include_pad=True), transform.FoldExplicitPadding())


@program
def sizes_of_sums():
    x, y = var("x", 4, 3, 2), var("y", 3, 1)
    got = run(relay.collapse_sum_like(x, y), transform.SimplifyExpr()).body
    assert got.op.name == "collapse_sum_to" and list(got.attrs.shape) == [3, 1]
