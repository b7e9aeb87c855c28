# SPDX-License-Identifier: Apache-2.0
"""FuseOps, ConvertLayout, AlterOpLayout, FoldScaleAxis and their kin, on the graphs that are hard for them."""
import numpy as np
import tvm
from tvm import relay
from tvm.relay import transform, analysis
from tvm.relay.testing import run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr

from harness import program, numbers


def alike(got, want):
    assert tvm.ir.structural_equal(got, want, map_free_vars=True), f"Actual:\n{got}\nExpected:\n{want}"


def typed(f):
    return run_opt_pass(f, transform.InferType())


# ---- fusion
def fused(before, level=2, **config):
    with tvm.transform.PassContext(config={"relay.FuseOps." + k: v for k, v in config.items()}):
        return run_opt_pass(typed(before), transform.FuseOps(fuse_opt_level=level))


def primitive(params, body):
    return relay.Function(params, body).with_attr("Primitive", tvm.tir.IntImm("int32", 1))


@program
def a_chain_of_three():
    x = relay.var("x", shape=(10, 20))
    f = relay.Function([x], relay.squeeze(relay.exp(relay.add(x, relay.const(1.0)))))
    p = relay.var("p", shape=(10, 20))
    y = relay.var("y", shape=(10, 20))
    want = relay.Function([y], relay.Call(primitive([p], relay.squeeze(relay.exp(relay.add(p, relay.const(1.0))))), [y]))
    alike(fused(f), typed(want))


@program
def concatenation_after_upsampling():
    x = relay.var("x", shape=(1, 4, 8, 8))
    pooled = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))
    up = relay.nn.upsampling(pooled, scale_h=2, scale_w=2, layout="NCHW")
    f = relay.Function([x], relay.add(relay.concatenate((up, x), axis=1), relay.const(1.0)))
    for level, count in ((0, 4), (2, 2)):
        out = fused(f, level)
        assert out.astext().count("Primitive=1") == count, out


@program
def the_root_of_a_tuple():
    x = relay.var("x", shape=(1, 4, 8, 8))
    pooled = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    up = relay.nn.upsampling(pooled, scale_h=2, scale_w=2, layout="NCHW")
    out = fused(relay.Function([x], relay.Tuple((up, x))))
    assert isinstance(out.body, relay.Tuple) and out.astext().count("Primitive=1") == 2


@program
def items_of_a_tuple_stay_out():
    x = relay.var("x", shape=(1, 16, 4, 4))
    s = relay.split(x, 4, axis=1)
    out = fused(relay.Function([x], relay.Tuple([relay.squeeze(s[k], axis=[0]) for k in range(3)])))
    assert out.astext().count("Primitive=1") == 4 or out.astext().count("Primitive=1") == 1


@program
def injective_takes_inputs_by_tuple():
    x = relay.var("x", shape=(2, 3))
    tup = relay.Tuple([relay.exp(x), relay.log(x)])
    out = fused(relay.Function([x], relay.concatenate(tup, axis=0) + relay.const(1.0)))
    assert out.astext().count("Primitive=1") == 1


@program
def reshapes_alone_are_marked():
    x = relay.var("x", shape=(10, 20))
    out = fused(relay.Function([x], relay.nn.relu(relay.reshape(relay.reshape(x, (20, 10)), (200,)))))
    assert "Primitive=1" in out.astext()
    only = fused(relay.Function([x], relay.reshape(x, (200,))))
    assert "relay.reshape_only=1" in only.astext()


@program
def depth_of_fusion_is_bounded():
    x = relay.var("x", shape=(3, 4))
    y = x
    for _ in range(20):
        y = relay.exp(y)
    assert fused(relay.Function([x], y), max_depth=5).astext().count("Primitive=1") == 4
    assert fused(relay.Function([x], y)).astext().count("Primitive=1") == 1


@program
def immutable_modules_and_takes():
    x = relay.var("x", shape=(10, 5))
    i = relay.var("i", shape=(3,), dtype="int64")
    out = fused(relay.Function([x, i], relay.cast(relay.take(x, i, axis=0), "float64")))
    assert out.astext().count("Primitive=1") == 1
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    with tvm.transform.PassContext(opt_level=3, config={"testing.immutable_module": True}):
        transform.FuseOps()(transform.InferType()(mod))


@program
def fused_softmax_and_its_neighbours():
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(5, 8))
    f = relay.Function([x, w], relay.cast(relay.nn.softmax(relay.nn.dense(x, w) / relay.const(2.0)), "float16"))
    out = fused(f)
    text = out.astext()
    assert text.count("Primitive=1") == 2


# ---- layouts
def conv(x, w, **more):
    return relay.nn.conv2d(x, w, channels=more.pop("channels", 64), kernel_size=(3, 3), padding=(1, 1), **more)


@program
def dual_path_is_converted_once():
    x, w1, w2 = relay.var("x", shape=(1, 64, 56, 56)), relay.var("w1", shape=(32, 64, 3, 3)), relay.var("w2", shape=(32, 32, 3, 3))
    y = relay.nn.relu(conv(x, w1, channels=32))
    f = relay.Function([x, w1, w2], relay.Tuple([relay.nn.relu(conv(y, w2, channels=32)), relay.nn.batch_flatten(y)]))
    out = run_opt_pass(f, transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))

    x1 = relay.layout_transform(x, "NCHW", "NHWC")
    y = relay.nn.relu(conv(x1, relay.layout_transform(w1, "OIHW", "HWIO"), channels=32, data_layout="NHWC", kernel_layout="HWIO"))
    y1 = relay.nn.relu(conv(y, relay.layout_transform(w2, "OIHW", "HWIO"), channels=32, data_layout="NHWC", kernel_layout="HWIO"))
    want = relay.Function([x, w1, w2], relay.Tuple([relay.layout_transform(y1, "NHWC", "NCHW"), relay.nn.batch_flatten(relay.layout_transform(y, "NHWC", "NCHW"))]))
    alike(out, typed(want))


@program
def batch_norm_in_between():
    x, w = relay.var("x", shape=(1, 56, 56, 64)), relay.var("w", shape=(3, 3, 64, 64))
    names = [relay.var(n, shape=(64,)) for n in ("beta", "gamma", "mean", "var")]
    y = relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
    beta, gamma, mean, var = names
    y = relay.nn.relu(relay.nn.batch_norm(y, gamma, beta, mean, var, axis=3)[0])
    out = run_opt_pass(relay.Function([x, w] + names, y), transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]}))
    y = conv(relay.layout_transform(x, "NHWC", "NCHW"), relay.layout_transform(w, "HWIO", "OIHW"))
    y = relay.nn.relu(relay.nn.batch_norm(y, gamma, beta, mean, var, axis=1)[0])
    alike(out, typed(relay.Function([x, w] + names, relay.layout_transform(y, "NCHW", "NHWC"))))


@program
def reductions_rename_their_axes():
    x, w = relay.var("x", shape=(1, 8, 8, 4)), relay.var("w", shape=(3, 3, 4, 8))
    y = relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
    for axis, keep, want in ((3, False, 1), ((1, 2), True, (2, 3)), ((1,), False, (2,))):
        out = run_opt_pass(relay.Function([x, w], relay.sum(y, axis=axis, keepdims=keep)), transform.ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]}))
        found = []
        relay.analysis.post_order_visit(out, lambda e: found.append(e) if isinstance(e, relay.Call) and e.op.name == "sum" else None)
        assert [int(a) for a in found[0].attrs.axis] == (list(want) if isinstance(want, tuple) else [want])


@program
def transposed_and_dilated_convolutions():
    x, w = relay.var("x", shape=(1, 56, 56, 64)), relay.var("w", shape=(3, 3, 32, 64))
    y = relay.nn.conv2d_transpose(x, w, channels=32, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWOI")
    out = run_opt_pass(relay.Function([x, w], relay.nn.relu(y)), transform.ConvertLayout({"nn.conv2d_transpose": ["NCHW", "IOHW"]}))
    text = out.astext()
    assert 'data_layout="NCHW"' in text or "nn.conv2d_transpose(" in text and 'data_layout="NHWC"' not in text
    assert 'kernel_layout="IOHW"' in text or "HWOI" in text


@program
def pad_and_slice_follow_the_layout():
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    y = relay.nn.pad(relay.nn.relu(conv(x, w, channels=4)), pad_width=((0, 0), (0, 0), (1, 1), (2, 2)))
    y = relay.strided_slice(y, begin=[0, 1], end=[1, 3], strides=[1, 1])
    out = run_opt_pass(relay.Function([x, w], y), transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))
    text = out.astext()
    assert text.count("layout_transform(") == 3 and "pad_width=[[0, 0], [1, 1], [2, 2], [0, 0]]" in text


@program
def quantised_convolution_layout():
    x, w = relay.var("x", shape=(1, 64, 56, 56), dtype="int8"), relay.var("w", shape=(64, 64, 3, 3), dtype="int8")
    y = relay.qnn.op.conv2d(x, w, relay.const(1, "int32"), relay.const(1, "int32"), relay.const(1.0), relay.const(1.0), channels=64, kernel_size=(3, 3), padding=(1, 1))
    y = relay.cast(relay.nn.relu(y), "int8")
    out = run_opt_pass(relay.Function([x, w], y), transform.ConvertLayout({"qnn.conv2d": ["NHWC", "default"]}))
    text = out.astext()
    assert 'data_layout="NHWC"' in text and 'kernel_layout="HWIO"' in text and text.count("layout_transform(") == 3


@program
def roi_align_and_deformable():
    x, rois = relay.var("x", shape=(1, 64, 56, 56)), relay.var("rois", shape=(32, 5))
    w = relay.var("w", shape=(64, 64, 3, 3))
    y = relay.vision.roi_align(relay.nn.relu(conv(x, w)), rois, pooled_size=(14, 14), spatial_scale=0.0625, sample_ratio=2, mode="avg", layout="NCHW")
    out = run_opt_pass(relay.Function([x, w, rois], y), transform.ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"], "vision.roi_align": ["NHWC", "default"]}))
    assert 'layout="NHWC"' in out.astext()


@program
def alteration_of_dense_weights():
    x, w = relay.var("x", shape=(1, 32)), relay.var("weight", shape=(48, 32))

    def alter_dense(attrs, inputs, tinfos, out_type):
        layout = "NC8n"
        return relay.nn.contrib_dense_pack(inputs[0], relay.layout_transform(inputs[1], "NC", layout), layout, None, out_type.dtype)
    with TempOpAttr("nn.dense", "FTVMAlterOpLayout", alter_dense):
        out = run_opt_pass(relay.Function([x, w], relay.nn.dense(x, w)), transform.AlterOpLayout())
    want = relay.nn.contrib_dense_pack(x, relay.layout_transform(w, "NC", "NC8n"), "NC8n", None, "float32")
    alike(out, typed(relay.Function([x, w], want)))


@program
def alteration_keeps_broadcasts():
    x, w, b, s = relay.var("x", shape=(1, 64, 56, 56)), relay.var("weight", shape=(64, 64, 3, 3)), relay.var("bias", shape=(64,)), relay.var("scale", shape=(64, 1, 1))
    y = relay.multiply(s, relay.nn.relu(relay.nn.bias_add(conv(x, w), b)))
    y = relay.nn.batch_flatten(relay.nn.max_pool2d(y, pool_size=(2, 2)))
    f = relay.Function([x, w, b, s], y)

    def alter(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW16c"})
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        out = run_opt_pass(run_opt_pass(f, transform.CanonicalizeOps()), transform.AlterOpLayout())
    bias = relay.layout_transform(relay.expand_dims(relay.expand_dims(b, axis=1, num_newaxis=2), 0, 1), "NCHW", "NCHW16c")
    scale = relay.layout_transform(relay.expand_dims(s, 0, 1), "NCHW", "NCHW16c")
    y = conv(relay.layout_transform(x, "NCHW", "NCHW16c"), w, data_layout="NCHW16c")
    y = relay.multiply(scale, relay.nn.relu(relay.add(y, bias)))
    y = relay.nn.batch_flatten(relay.layout_transform(relay.nn.max_pool2d(y, pool_size=(2, 2), layout="NCHW16c"), "NCHW16c", "NCHW"))
    alike(out, typed(relay.Function([x, w, b, s], y)))


@program
def alteration_of_concatenations_by_uneven_channels():
    x, w1, w2 = relay.var("x", shape=(1, 64, 8, 8)), relay.var("w1", shape=(64, 64, 3, 3)), relay.var("w2", shape=(24, 64, 3, 3))
    f = relay.Function([x, w1, w2], relay.concatenate([conv(x, w1), conv(x, w2, channels=24)], axis=1))

    def alter(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW16c" if tinfos[1].shape[0] == 64 else "NCHW8c"})
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        out = run_opt_pass(f, transform.AlterOpLayout())
    assert out.ret_type == relay.TensorType((1, 88, 8, 8)) and "concatenate" in out.astext()


# ---- scales
@program
def a_scale_before_a_grouped_convolution():
    for layout, kernel, xs, ws, axis in (("NCHW", "OIHW", (2, 4, 8, 8), (4, 1, 3, 3), 1), ("NHWC", "HWOI", (2, 8, 8, 4), (3, 3, 4, 1), 3)):
        x, w = relay.var("x", shape=xs), relay.var("w", shape=ws)
        scale = relay.const(np.abs(numbers(4)) + 0.1) if axis == 3 else relay.const(np.abs(numbers(4, 1, 1)) + 0.1)
        y = relay.nn.conv2d(relay.multiply(relay.nn.relu(x), scale), w, channels=4, groups=4, kernel_size=(3, 3), padding=(1, 1), data_layout=layout, kernel_layout=kernel)
        f = typed(relay.Function([x, w], y))
        out = run_opt_pass(f, transform.ForwardFoldScaleAxis())
        assert not tvm.ir.structural_equal(out, f) and out.body.args[0].op.name == "nn.relu"


@program
def a_negative_scale_stays_before_relu():
    x, w = relay.var("x", shape=(2, 4, 8, 8)), relay.var("w", shape=(8, 4, 3, 3))
    scale = relay.const(-np.abs(numbers(4, 1, 1)) - 0.1)
    f = typed(relay.Function([x, w], relay.nn.conv2d(relay.nn.relu(relay.multiply(x, scale)), w, channels=8, kernel_size=(3, 3))))
    alike(run_opt_pass(f, transform.ForwardFoldScaleAxis()), f)


@program
def a_scale_after_two_users_stays():
    x, w = relay.var("x", shape=(2, 4, 8, 8)), relay.var("w", shape=(8, 4, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1)))
    s = relay.const(np.abs(numbers(8, 1, 1)) + 0.5)
    f = typed(relay.Function([x, w], relay.add(relay.multiply(y, s), y)))
    alike(run_opt_pass(f, transform.BackwardFoldScaleAxis()), f)


@program
def both_sides_of_an_addition_take_the_scale():
    x, w = relay.var("x", shape=(2, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    y1 = relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1)))
    y2 = relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1)))
    s = relay.const(np.abs(numbers(4, 1, 1)) + 0.5)
    out = run_opt_pass(typed(relay.Function([x, w], relay.multiply(relay.add(y1, y2), s))), transform.BackwardFoldScaleAxis())
    assert out.body.op.name == "add" and out.astext().count("multiply(") == 2
