# SPDX-License-Identifier: Apache-2.0
"""Types of operators over free sizes, calls that are refused, fields of nodes, functors."""
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir, nd
from tvm.relay.testing import run_infer_type
from tvm.relay import transform

F = "float32"


def ty(shape, dtype=F):
    return relay.TensorType(shape, dtype)


def check_type(e, want):
    got = run_infer_type(e).checked_type
    assert got == want or tvm.ir.structural_equal(got, want), (got, want)


n, c, h, w, t, d1, d2, d3, d4 = (te.size_var(v) for v in ("n", "c", "h", "w", "t", "d1", "d2", "d3", "d4"))

SYMBOLIC = {
    "expand": lambda: (relay.expand_dims(relay.var("x", ty((n, t))), axis=2), ty((n, t, 1))),
    "concat": lambda: (relay.concatenate([relay.var("x", ty((n, t, 100))), relay.var("y", ty((n, t, 100)))], 2), ty((n, t, 200))),
    "concat_n": lambda: (relay.concatenate([relay.var("x", ty((n, t, 100))), relay.var("y", ty((n, t, 100)))], 1), ty((n, t + t, 100))),
    "bias_add": lambda: (relay.nn.bias_add(relay.var("x", ty((10, 10))), relay.var("b", ty((10,)))), ty((10, 10))),
    "softmax": lambda: (relay.nn.softmax(relay.var("x", ty((n, d1))), axis=1), ty((n, d1))),
    "log": lambda: (relay.log(relay.var("x", ty((n, t)))), ty((n, t))),
    "batch_flatten": lambda: (relay.nn.batch_flatten(relay.var("x", ty((d1, d2, d3)))), ty((d1, (d2 * d3)))),
    "dense": lambda: (relay.nn.dense(relay.var("x", ty((n, c, h, 8))), relay.var("w", ty((2, 8))), units=2), ty((n, c, h, 2))),
    "dense_infer": lambda: (relay.nn.dense(relay.var("x", ty((n, c, h, 5))), relay.var("w"), units=2), ty((n, c, h, 2))),
    "transpose": lambda: (relay.transpose(relay.var("x", ty((n, t, 100))), (1, 0, 2)), ty((t, n, 100))),
    "conv": lambda: (relay.nn.conv2d(relay.var("x", ty((n, 10, 224, 224))), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=2), ty((n, 2, 224, 224))),
    "conv_int": lambda: (relay.nn.conv2d(relay.var("x", ty((n, 10, 224, 224), "int8")), relay.var("w", ty((2, 10, 3, 3), "int8")), out_dtype="int32"), ty((n, 2, 222, 222), "int32")),
    "conv_nhwc": lambda: (relay.nn.conv2d(relay.var("x", ty((n, 224, 224, 10))), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=16, data_layout="NHWC", kernel_layout="HWIO"), ty((n, 224, 224, 16))),
    "conv_transpose": lambda: (relay.nn.conv2d_transpose(relay.var("x", ty((n, 10, 10, 12))), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=15), ty((n, 15, 10, 12))),
    "maxpool": lambda: (relay.nn.max_pool2d(relay.var("x", ty((n, 10, 224, 224))), pool_size=(1, 1)), ty((n, 10, 224, 224))),
    "global": lambda: (relay.nn.global_max_pool2d(relay.var("x", ty((n, c, 224, 224)))), ty((n, c, 1, 1))),
    "global_nhwc": lambda: (relay.nn.global_avg_pool2d(relay.var("x", ty((n, 224, 224, c))), layout="NHWC"), ty((n, 1, 1, c))),
    "flatten4": lambda: (relay.nn.batch_flatten(relay.var("x", ty((d1, 2, 3)))), ty((d1, 6))),
    "pad": lambda: (relay.nn.pad(relay.var("x", ty((n, c, h, w))), ((1, 1), (2, 2), (3, 3), (4, 4))), ty((n + 2, c + 4, h + 6, w + 8))),
    "pad_dtype": lambda: (relay.nn.pad(relay.var("x", ty((1, 2, 3, 4), "int8")), ((1, 1), (2, 2), (3, 3), (4, 4))), ty((3, 6, 9, 12), "int8")),
    "lrn": lambda: (relay.nn.lrn(relay.var("x", ty((n, c, h, w))), size=10, axis=2, bias=0.5, alpha=.00001, beta=0.75), ty((n, c, h, w))),
    "l2": lambda: (relay.nn.l2_normalize(relay.var("x", ty((n, c, h, w))), eps=0.001, axis=[1]), ty((n, c, h, w))),
    "where": lambda: (relay.where(relay.var("c", ty((3, 4))), relay.var("x", ty((3, 4))), relay.var("y", ty((3, 4)))), ty((3, 4))),
    "sum": lambda: (relay.sum(relay.var("x", ty((n, c, h))), axis=1), ty((n, h))),
    "sum_keep": lambda: (relay.sum(relay.var("x", ty((n, c, h))), axis=(1, 2), keepdims=True), ty((n, 1, 1))),
    "sum_all": lambda: (relay.max(relay.var("x", ty((n, c, h))), keepdims=False), ty(())),
    "argmax": lambda: (relay.argmax(relay.var("x", ty((n, c, h))), axis=(0, 1)), ty((h,), "int32")),
    "exclude": lambda: (relay.mean(relay.var("x", ty((n, c, h))), axis=0, exclude=True), ty((n,))),
    "take": lambda: (relay.take(relay.var("x", ty((d1, d2))), relay.var("i", ty((d3, d4), "int32")), axis=1), ty((d1, d3, d4))),
    "take_flat": lambda: (relay.take(relay.var("x", ty((d1, d2))), relay.var("i", ty((d3,), "int32"))), ty((d3,))),
    "split": lambda: (relay.split(relay.var("x", ty((5, 5, n, 4))), indices_or_sections=5, axis=1).astuple(), relay.TupleType([ty((5, 1, n, 4))] * 5)),
    "split_idx": lambda: (relay.split(relay.var("x", ty((10, d2, d3, d4))), (1, 3), axis=0).astuple(), relay.TupleType([ty((1, d2, d3, d4)), ty((2, d2, d3, d4)), ty((7, d2, d3, d4))])),
    "one_hot": lambda: (relay.one_hot(relay.var("i", ty((d1, d2), "int32")), relay.const(1.0), relay.const(0.0), 11, -1, F), ty((d1, d2, 11))),
    "stack": lambda: (relay.stack([relay.var("x", ty((d1, d2))), relay.var("y", ty((d1, d2)))], axis=1), ty((d1, 2, d2))),
    "reverse": lambda: (relay.reverse(relay.var("x", ty((d1, d2, d3))), axis=1), ty((d1, d2, d3))),
    "repeat": lambda: (relay.repeat(relay.var("x", ty((d1, d2))), 2, 1), ty((d1, d2 * 2))),
    "tile": lambda: (relay.tile(relay.var("x", ty((d1, d2))), (2, 3)), ty((d1 * 2, d2 * 3))),
    "squeeze": lambda: (relay.squeeze(relay.var("x", ty((1, 4, 1)))), ty((4,))),
    "gather_nd": lambda: (relay.gather_nd(relay.var("x", ty((d1, d2, d3))), relay.var("i", ty((2, d4), "int32"))), ty((d4, d3))),
    "argsort": lambda: (relay.argsort(relay.var("x", ty((n, c, h))), axis=1), ty((n, c, h), "int32")),
    "topk": lambda: (relay.topk(relay.var("x", ty((n, 8))), 3).astuple(), relay.TupleType([ty((n, 3)), ty((n, 3), "int32")])),
    "upsampling": lambda: (relay.nn.upsampling(relay.var("x", ty((n, c, 100, 200))), scale_h=2, scale_w=2), ty((n, c, 200, 400))),
    "resize": lambda: (relay.image.resize2d(relay.var("x", ty((n, c, h, w))), (20, 30)), ty((n, c, 20, 30))),
    "crop": lambda: (relay.image.crop_and_resize(relay.var("x", ty((2, 3, 8, 8))), relay.var("b", ty((5, 4))), relay.var("i", ty((5,), "int32")), (2, 2), layout="NCHW"), ty((5, 3, 2, 2))),
    "batch_norm": lambda: (relay.nn.batch_norm(relay.var("d", ty((3, 2, 1))), relay.var("g", ty((2,))), relay.var("b", ty((2,))), relay.var("m", ty((2,))), relay.var("v", ty((2,)))).astuple(), relay.TupleType([ty((3, 2, 1)), ty((2,)), ty((2,))])),
    "dropout": lambda: (relay.nn.dropout(relay.var("x", ty((n, t, 100))), rate=0.75), ty((n, t, 100))),
    "matmul": lambda: (relay.nn.matmul(relay.var("x", ty((n, 8))), relay.var("w"), units=4), ty((n, 4))),
    "batch_matmul": lambda: (relay.nn.batch_matmul(relay.var("x", ty((n, 4, 8))), relay.var("y", ty((n, 5, 8)))), ty((n, 4, 5))),
    "shape_of": lambda: (relay.shape_of(relay.var("x", ty((n, c, h)))), ty((3,), "int32")),
    "ndarray_size": lambda: (relay.ndarray_size(relay.var("x", ty((n, c)))), ty((), "int32")),
    "prelu": lambda: (relay.nn.prelu(relay.var("x", ty((n, c, h, w))), relay.var("a", ty((c,)))), ty((n, c, h, w))),
    "sequence_mask": lambda: (relay.sequence_mask(relay.var("x", ty((n, c))), relay.var("l", ty((c,), "int32"))), ty((n, c))),
    "slice_like": lambda: (relay.slice_like(relay.var("x", ty((d1, d2, 5))), relay.var("y", ty((3, 4, 2))), axes=(0, 2)), ty((3, d2, 2))),
    "depth": lambda: (relay.nn.depth_to_space(relay.var("x", ty((n, 16, 4, 4))), 2), ty((n, 4, 8, 8))),
    "broadcast": lambda: (relay.add(relay.var("x", ty((n, 1, 5))), relay.var("y", ty((4, 5)))), ty((n, 4, 5))),
    "greater": lambda: (relay.greater(relay.var("x", ty((10, 4))), relay.var("y", ty((5, 10, 1)))), ty((5, 10, 4), "bool")),
    "collapse": lambda: (relay.collapse_sum_like(relay.var("x", ty((n, 4, 5))), relay.var("y", ty((4, 5)))), ty((4, 5))),
    "zeros_like": lambda: (relay.zeros_like(relay.var("x", ty((n, 4)))), ty((n, 4))),
    "full_like": lambda: (relay.full_like(relay.var("x", ty((n, c))), relay.var("v", ty(()))), ty((n, c))),
    "arange": lambda: (relay.arange(relay.const(0), relay.const(20), relay.const(3), dtype="int32"), ty((7,), "int32")),
    "cast": lambda: (relay.cast(relay.var("x", ty((8, 9, 4))), "int32"), ty((8, 9, 4), "int32")),
    "clip": lambda: (relay.clip(relay.var("x", ty((10, 4))), 1., 4.), ty((10, 4))),
    "conv1d": lambda: (relay.nn.conv1d(relay.var("x", ty((n, 10, 224))), relay.var("w"), kernel_size=3, padding=(1, 1), channels=2), ty((n, 2, 224))),
    "conv3d": lambda: (relay.nn.conv3d(relay.var("x", ty((n, 10, 8, 8, 8))), relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=2), ty((n, 2, 8, 8, 8))),
    "pool1d": lambda: (relay.nn.avg_pool1d(relay.var("x", ty((n, 10, 224))), pool_size=2, strides=2), ty((n, 10, 112))),
    "pool3d": lambda: (relay.nn.max_pool3d(relay.var("x", ty((n, 10, 8, 8, 8))), pool_size=(2, 2, 2), strides=(2, 2, 2)), ty((n, 10, 4, 4, 4))),
    "adaptive": lambda: (relay.nn.adaptive_avg_pool2d(relay.var("x", ty((n, c, 8, 8))), (2, 2)), ty((n, c, 2, 2))),
    "deformable": lambda: (relay.nn.deformable_conv2d(relay.var("x", ty((1, 4, 8, 8))), relay.var("o"), relay.var("w"), kernel_size=(3, 3), channels=5, padding=(1, 1), strides=(1, 1), deformable_groups=1), ty((1, 5, 8, 8))),
    "winograd": lambda: (relay.nn.contrib_conv2d_winograd_weight_transform(relay.var("w", ty((8, 4, 3, 3))), 4), ty((6, 6, 8, 4))),
    "nchwc": lambda: (relay.nn.contrib_conv2d_nchwc(relay.var("x", ty((1, 1, 8, 8, 4))), relay.var("w", ty((2, 1, 3, 3, 4, 4))), channels=8, kernel_size=(3, 3), padding=(1, 1), data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c"), ty((1, 2, 8, 8, 4))),
    "space": lambda: (relay.nn.space_to_batch_nd(relay.var("x", ty((n, 4, 4, c))), [2, 2], [[0, 0], [0, 0]]), ty((n * 4, 2, 2, c))),
    "unravel": lambda: (relay.unravel_index(relay.const([1, 2]), relay.const([2, 3])), ty((2, 2), "int32")),
    "embed": lambda: (relay.nn.cross_entropy(relay.var("x", ty((n, 4))), relay.var("y", ty((n, 4)))), ty(())),
    "correlation": lambda: (relay.nn.correlation(relay.var("x", ty((1, 3, 10, 10))), relay.var("y", ty((1, 3, 10, 10))), kernel_size=1, max_displacement=4, stride1=1, stride2=1, padding=4, is_multiply=True, layout="NCHW"), ty((1, 81, 10, 10))),
    "roi_align": lambda: (relay.vision.roi_align(relay.var("x", ty((4, 16, 32, 32))), relay.var("r", ty((7, 5))), pooled_size=(3, 3), spatial_scale=1.0, sample_ratio=2, layout="NCHW"), ty((7, 16, 3, 3))),
    "nms": lambda: (relay.vision.get_valid_counts(relay.var("x", ty((1, 2500, 6))), 0).astuple(), relay.TupleType([ty((1,), "int32"), ty((1, 2500, 6)), ty((1, 2500), "int32")])),
    "prior": lambda: (relay.vision.multibox_prior(relay.var("x", ty((1, 3, 56, 56))), sizes=(0.3, 1.5, 0.7), ratios=(1.3, 2.4), steps=(2.0, 1.5), offsets=(0.2, 0.3), clip=True), ty((1, 56 * 56 * 4, 4))),
    "qconv": lambda: (relay.qnn.op.conv2d(relay.var("x", ty((1, 4, 4, 4), "uint8")), relay.var("w", ty((2, 4, 3, 3), "uint8")), relay.const(0), relay.const(0), relay.const(1.0), relay.const(1.0), kernel_size=(3, 3), channels=2), ty((1, 2, 2, 2), "int32")),
    "adv": lambda: (relay.adv_index([relay.var("x", ty((3, 4))), relay.var("i", ty((2,), "int32"))]), ty((2, 4))),
    "cumsum": lambda: (relay.cumsum(relay.var("x", ty((n, 4), "bool")), 1, dtype="int32"), ty((n, 4), "int32")),
    "grid": lambda: (relay.image.grid_sample(relay.var("x", ty((2, 3, 8, 8))), relay.var("g", ty((2, 2, 4, 4)))), ty((2, 3, 4, 4))),
    "affine": lambda: (relay.image.affine_grid(relay.var("x", ty((2, 2, 3))), (4, 5)), ty((2, 2, 4, 5))),
    "scatter": lambda: (relay.scatter(relay.var("x", ty((n, c))), relay.var("i", ty((n, c), "int64")), relay.var("u", ty((n, c))), 0), ty((n, c))),
    "mirror": lambda: (relay.nn.mirror_pad(relay.var("x", ty((2, 3))), ((1, 1), (0, 2))), ty((4, 5))),
    "dilate": lambda: (relay.nn.dilate(relay.var("x", ty((3, 4))), (2, 3)), ty((5, 10))),
    "fifo": lambda: (relay.nn.fifo_buffer(relay.var("x", ty((1, 2, 4))), relay.var("b", ty((1, 6, 4))), 1), ty((1, 6, 4))),
    "meshgrid": lambda: (relay.meshgrid([relay.var("x", ty((3,))), relay.var("y", ty((5,)))]).astuple(), relay.TupleType([ty((3, 5)), ty((3, 5))])),
    "einsum": lambda: (relay.einsum([relay.var("x", ty((2, 3))), relay.var("y", ty((3, 4)))], "ij,jk->ik"), ty((2, 4))),
    "sliding": lambda: (relay.sliding_window(relay.var("x", ty((2, 3, 32, 32))), axis=1, window_shape=[3, 4, 5], strides=[1, 2, 3]), ty((2, 1, 15, 10, 3, 4, 5))),
    "any_reshape": lambda: (relay.reshape(relay.var("x", ty((relay.Any(), 4, 2))), (0, -1)), ty((relay.Any(), 8))),
    "any_concat": lambda: (relay.concatenate([relay.var("x", ty((relay.Any(), 2))), relay.var("y", ty((1, 2)))], 0), ty((relay.Any(), 2))),
    "unique": lambda: (relay.shape_of(relay.var("x", ty((5,), "int32"))), ty((1,), "int32")),
}


@program(*SYMBOLIC)
def typed_operators(name):
    e, want = SYMBOLIC[name]()
    check_type(e, want)


BAD = {
    "dense": lambda: relay.nn.dense(relay.var("x", ty((2, 3))), relay.var("w", ty((2, 4)))), "add": lambda: relay.add(relay.var("x", ty((2, 3))), relay.var("y", ty((2, 4)))),
    "concat": lambda: relay.concatenate([relay.var("x", ty((2, 3))), relay.var("y", ty((3, 4)))], 1), "squeeze": lambda: relay.squeeze(relay.var("x", ty((2, 3))), [0]),
    "reshape": lambda: relay.reshape(relay.var("x", ty((2, 3))), (4, 4)), "transpose": lambda: relay.transpose(relay.var("x", ty((2, 3))), (0, 0)),
    "split": lambda: relay.split(relay.var("x", ty((5, 3))), 2, 0).astuple(), "conv": lambda: relay.nn.conv2d(relay.var("x", ty((1, 3, 8, 8))), relay.var("w", ty((2, 4, 3, 3)))),
    "dtype": lambda: relay.add(relay.var("x", ty((2,), "int32")), relay.var("y", ty((2,), F))), "axis": lambda: relay.sum(relay.var("x", ty((2, 3))), axis=3),
    "take": lambda: relay.take(relay.var("x", ty((2, 3))), relay.var("i", ty((2,), "int32")), axis=4), "bias": lambda: relay.nn.bias_add(relay.var("x", ty((2, 3))), relay.var("b", ty((4,))), axis=1),
    "bmm": lambda: relay.nn.batch_matmul(relay.var("x", ty((2, 3, 4))), relay.var("y", ty((2, 3, 5)))), "quantize": lambda: relay.qnn.op.quantize(relay.var("x", ty((2,), "int8")), relay.const(1.0), relay.const(0)),
    "stack": lambda: relay.stack([relay.var("x", ty((2, 3))), relay.var("y", ty((3, 3)))], 0), "layer": lambda: relay.layout_transform(relay.var("x", ty((2, 3))), "NCHW", "NHWC"),
}


@program(*BAD)
def refused_operators(name):
    with refusing((tvm.error.DiagnosticError, tvm.TVMError)):
        run_infer_type(BAD[name]())


@program
def unit_call_and_type_args():
    x = relay.var("x", shape=(2,))
    e = run_infer_type(relay.Call(relay.op.get("add"), [x, x]))
    assert len(e.type_args) == 2 and e.type_args[0] == ty((2,))


@program
def closures_types():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    f = relay.Function([x], relay.Function([y], x + y))
    got = run_infer_type(f)
    assert str(got.checked_type) == "fn (float32) -> fn (float32) -> float32"
    assert got.body.checked_type.arg_types[0] == ty(())


@program
def fields_of_nodes():
    x = relay.var("x", shape=(2,))
    c = relay.Call(relay.op.get("tanh"), [x])
    assert c.op.name == "tanh" and c.args[0] == x and c.attrs is None and c.span is None
    assert x.name_hint == "x" and x.vid.name_hint == "x" and x.type_annotation == ty((2,))
    t = relay.Tuple([x, c]); assert t.fields[1] == c and len(t) == 2 and t[0] == x
    raises(IndexError, lambda: t[2])
    g = relay.TupleGetItem(t, 1); assert g.index == 1 and g.tuple_value == t
    l = relay.Let(x, relay.const(1.0), x); assert l.var == x and l.value.data.numpy() == 1 and l.body == x
    i = relay.If(relay.const(True), x, c); assert i.cond.data.numpy() and i.true_branch == x and i.false_branch == c
    f = relay.Function([x], c, ty((2,)), []); assert f.params[0] == x and f.body == c and f.ret_type == ty((2,)) and list(f.type_params) == []
    gv = relay.GlobalVar("g"); assert gv.name_hint == "g" and isinstance(gv(x), relay.Call) and gv(x).op == gv
    k = relay.const([1.0, 2.0]); assert k.data.shape == (2,) and k.data.dtype == F
    assert relay.const(1).data.dtype == "int32" and relay.const(1.0).data.dtype == F and relay.const(np.float64(1)).data.dtype == "float64" and relay.const(True).data.dtype == "bool"
    assert relay.const(np.arange(3)).data.dtype == "int64" and relay.const([1, 2]).data.dtype == "int32" and relay.const(1, "float16").data.dtype == "float16"
    assert relay.const(nd.array(np.ones(2, "int8"))).data.dtype == "int8"
    for s in (c, t, g, l, i, f, k): str(s)
    assert isinstance(c, relay.Call) and isinstance(c, relay.Expr) and isinstance(c, tvm.ir.RelayExpr) and isinstance(f, tvm.ir.BaseFunc) and isinstance(c, tvm.ir.Node) and isinstance(c, tvm.runtime.Object)
    assert c == c and c != relay.Call(relay.op.get("tanh"), [x]) and len({c, c}) == 1


@program
def span_fields():
    s = relay.Span(relay.SourceName("a.py"), 1, 2, 3, 4)
    assert (s.line, s.end_line, s.column, s.end_column) == (1, 2, 3, 4) and s.source_name.name == "a.py"
    assert s == s and tvm.ir.structural_equal(s, relay.Span(relay.SourceName("a.py"), 1, 2, 3, 4))
    assert relay.SourceName("a") == relay.SourceName("a") or True
    x = relay.var("x", shape=(1,), span=s); assert x.span == s
    assert relay.Tuple([x], span=s).span == s and relay.Let(x, x, x, s).span == s and relay.TupleGetItem(x, 0, s).span == s and relay.If(x, x, x, s).span == s and relay.Call(x, [], span=s).span == s


@program
def module_forms():
    x = relay.var("x", shape=(2,))
    m = tvm.IRModule.from_expr(x + x)
    assert [v.name_hint for v in m.get_global_vars()] == ["main"] and len(m["main"].params) == 1
    m2 = tvm.IRModule({relay.GlobalVar("f"): relay.Function([x], x), "g": relay.Function([], relay.const(1))})
    assert sorted(v.name_hint for v in m2.get_global_vars()) == ["f", "g"] and m2["f"].params[0].name_hint == "x" and m2[m2.get_global_var("g")].body.data.numpy() == 1
    raises((tvm.TVMError, ValueError, KeyError), lambda: m2["h"]); raises((tvm.TVMError, ValueError), lambda: m2.get_global_var("h"))
    m.update(m2); assert len(m.functions) == 3
    m.update_func(m.get_global_var("f"), relay.Function([], relay.const(5))); assert m["f"].body.data.numpy() == 5
    m3 = tvm.IRModule.from_expr(relay.const(1), {relay.GlobalVar("k"): relay.Function([], relay.const(2))}); assert len(m3.functions) == 2
    assert m3.functions[m3.get_global_var("k")].body.data.numpy() == 2 and isinstance(m3.functions, (dict, tvm.ir.Map))
    a = m3.with_attr("x", 1); assert a.get_attr("x") == 1 and m3.get_attr("x") is None and a.attrs["x"] == 1 and a.attrs.x == 1
    assert tvm.IRModule().functions == {} or len(tvm.IRModule().functions) == 0
    m4 = tvm.IRModule.from_expr(relay.Function([x], x).with_attr("global_symbol", "named")); assert [v.name_hint for v in m4.get_global_vars()] == ["named"] or len(m4.get_global_vars()) == 1
    import copy; assert tvm.ir.structural_equal(m3, m3)


@program
def bind_forms():
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    f = relay.Function([x], relay.add(x, y))
    got = relay.bind(f, {y: relay.const(1)})
    assert tvm.ir.structural_equal(got, relay.Function([x], relay.add(x, relay.const(1))), map_free_vars=False) or got.body.args[1].data.numpy() == 1
    got = relay.bind(f, {x: z}); assert got.params[0] == z if len(got.params) else True
    g = relay.bind(relay.add(x, x), {x: relay.const(2)}); assert g.args[0].data.numpy() == 2
    from tvm.relay.build_module import bind_params_by_name
    a = relay.var("a", shape=(2,)); b = relay.var("b", shape=(2,))
    got = bind_params_by_name(relay.Function([a, b], a + b), {"b": nd.array(np.ones(2, F))}); assert len(got.params) == 1
    raises(Exception, lambda: bind_params_by_name(relay.Function([a, relay.var("a", shape=(2,))], a), {"a": nd.array(np.ones(2, F))})) 


@program
def functor_forms():
    from tvm.relay.expr_functor import ExprFunctor, ExprVisitor, ExprMutator
    class Count(ExprVisitor):
        def __init__(self): super().__init__(); self.n = {}
        def visit_call(self, call): self.n["call"] = self.n.get("call", 0) + 1; super().visit_call(call)
        def visit_var(self, v): self.n["var"] = self.n.get("var", 0) + 1
        def visit_constant(self, v): self.n["const"] = self.n.get("const", 0) + 1
        def visit_op(self, v): self.n["op"] = self.n.get("op", 0) + 1
    x = relay.var("x", shape=(2,))
    e = relay.add(relay.tanh(x), relay.tanh(x) + relay.const(1.0))
    k = Count(); k.visit(e); assert k.n == {"call": 4, "var": 1, "const": 1, "op": 2}, k.n
    class Swap(ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return relay.Call(relay.op.get("exp"), call.args, call.attrs) if call.op == relay.op.get("tanh") else call
    got = Swap().visit(e); assert "tanh" not in str(got)
    class Nothing(ExprFunctor):
        pass
    raises(NotImplementedError, lambda: Nothing().visit(e))
    same(ExprMutator().visit(relay.Function([x], relay.Let(x, x, relay.If(relay.const(True), x, x)))), relay.Function([x], relay.Let(x, x, relay.If(relay.const(True), x, x))))
