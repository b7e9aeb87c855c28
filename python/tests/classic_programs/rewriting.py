# SPDX-License-Identifier: Apache-2.0
"""Passes one by one: what a program becomes, written as it is expected."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, same
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_infer_type, run_opt_pass


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def const(*shape, value=1.0, dtype="float32"):
    return relay.const(np.full(shape, value, dtype))


def fn(body, *params):
    return relay.Function(list(params) or relay.analysis.free_vars(body), body)


def done(body, *params):
    return run_opt_pass(fn(body, *params), transform.InferType())


def after(body, *passes, params=(), level=4):
    mod = tvm.IRModule.from_expr(fn(body, *params))
    with tvm.transform.PassContext(opt_level=level):
        return transform.InferType()(tvm.transform.Sequential([transform.InferType(), *passes])(mod))["main"]


X, Y, Z = var("x", 1, 16, 8, 8), var("y", 4, 6), var("z", 4, 6)
W, W2, W3 = var("w", 32, 16, 3, 3), var("w2", 32, 16, 3, 3), var("w3", 8, 16, 3, 3)
I32, ROW = var("i", 4, 6, dtype="int32"), var("r", 1, 6)


def conv(x, w, channels=32, **a):
    return relay.nn.conv2d(x, w, **{"channels": channels, "kernel_size": (3, 3), "padding": (1, 1), **a})


# --- SimplifyExpr
def pad_conv(value):
    return relay.nn.conv2d(relay.nn.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1)), value), W, channels=32, kernel_size=(3, 3))


SIMPLE = {
    "reshape of reshape": (relay.reshape(relay.reshape(Y, (2, 12)), (24,)), relay.reshape(Y, (24,))),
    "reshape three times": (relay.reshape(relay.reshape(relay.reshape(Y, (2, 12)), (3, 8)), (6, 4)), relay.reshape(Y, (6, 4))),
    "reshape reverse": (relay.reshape(relay.nn.batch_flatten(relay.reshape(X, (1, 32, 32))), (16, 64)), None),
    "transpose twice is none": (relay.transpose(relay.transpose(X, (0, 2, 3, 1)), (0, 3, 1, 2)), X),
    "transpose twice": (relay.transpose(relay.transpose(X, (0, 2, 3, 1)), (0, 2, 3, 1)), relay.transpose(X, (0, 3, 1, 2))),
    "transpose all twice": (relay.transpose(relay.transpose(Y)), Y),
    "transpose thrice": (relay.transpose(relay.transpose(relay.transpose(X, (0, 2, 3, 1)), (1, 2, 0, 3)), (3, 2, 1, 0)), relay.transpose(X, (1, 0, 3, 2))),
    "cast to itself": (relay.cast(Y, "float32"), Y),
    "cast twice": (relay.cast(relay.cast(I32, "int64"), "int32"), I32),
    "cast_like itself": (relay.cast_like(Y, Z), Y),
    "times one": (relay.multiply(Y, relay.const(1.0)), Y),
    "one times": (relay.multiply(relay.const(1.0), Y), Y),
    "times ones": (relay.multiply(Y, relay.ones((4, 6), "float32")), Y),
    "times ones_like": (relay.multiply(Y, relay.ones_like(Y)), Y),
    "plus zero": (relay.add(Y, relay.const(0.0)), Y),
    "plus zeros": (relay.add(relay.zeros((4, 6), "float32"), Y), Y),
    "plus zeros_like": (relay.add(Y, relay.zeros_like(Z)), None),
    "less zero": (relay.subtract(Y, relay.const(0.0)), Y),
    "by one": (relay.divide(Y, relay.const(1.0)), Y),
    "integers plus zero": (relay.add(I32, relay.const(0, "int32")), I32),
    "where full of ones": (relay.where(relay.const(np.ones((4, 6), "bool")), Y, Z), None),
    "full_like": (relay.full_like(Y, relay.const(3.0)), relay.full(relay.const(3.0), (4, 6), "float32")),
    "zeros_like": (relay.zeros_like(Y), relay.const(np.zeros((4, 6), "float32"))),
    "ones_like": (relay.ones_like(Y), relay.const(np.ones((4, 6), "float32"))),
    "broadcast_to_like": (relay.broadcast_to_like(ROW, Y), relay.broadcast_to(ROW, (4, 6))),
    "reshape_like": (relay.reshape_like(Y, var("r", 24)), None),
    "slice twice": (relay.strided_slice(relay.strided_slice(Y, [0, 1], [4, 5]), [1, 0], [3, 2]), None),
    "slice of all": (relay.strided_slice(Y, [0, 0], [4, 6]), None),
    "concatenate of slices": (relay.concatenate([relay.strided_slice(Y, [0, 0], [4, 3]), relay.strided_slice(Y, [0, 3], [4, 6])], 1), None),
    "rsqrt": (relay.divide(relay.const(2.0), relay.sqrt(Y)), relay.multiply(relay.const(2.0), relay.rsqrt(Y))),
    "clips": (relay.clip(relay.clip(Y, 0.0, 6.0), 1.0, 3.0), relay.clip(Y, 1.0, 3.0)),
    "clips apart": (relay.clip(relay.clip(Y, -2.0, 4.0), 0.0, 6.0), relay.clip(Y, 0.0, 4.0)),
    "clip and cast": (relay.cast(relay.clip(I32, 0.0, 255.0), "uint8"), None),
    "a layout alone": (relay.layout_transform(X, "NCHW", "NHWC"), None),
    "layout there and back": (relay.layout_transform(relay.layout_transform(X, "NCHW", "NCHW4c"), "NCHW4c", "NCHW"), X),
    "transpose and layout": (relay.layout_transform(relay.transpose(X, (0, 2, 3, 1)), "NHWC", "NCHW"), X),
    "layout and transpose": (relay.transpose(relay.layout_transform(X, "NCHW", "NHWC"), (0, 3, 1, 2)), X),
    "argmax softmax": (relay.argmax(relay.nn.softmax(Y, axis=1), axis=1), None),
    "mean": (relay.mean(relay.mean(X, axis=3, keepdims=True), axis=2, keepdims=True), None),
    "consecutive adds": (relay.add(relay.add(Y, relay.const(np.full((6,), 2.0, "float32"))), relay.const(np.full((6,), 3.0, "float32"))), relay.add(Y, relay.const(np.full((6,), 5.0, "float32")))),
    "same op both": (relay.add(Y, Y), None),
}


@program(*SIMPLE)
def simplified(name):
    before, want = SIMPLE[name]
    params = relay.analysis.free_vars(before)
    got = after(before, transform.SimplifyExpr(), transform.FoldConstant(), params=params)
    if want is not None:
        expected = after(want, transform.FoldConstant(), params=params)
        same(got, expected)
    data = [numbers(*p.type_annotation.concrete_shape, dtype=p.type_annotation.dtype, low=0.1, high=2.0) for p in params]
    np.testing.assert_allclose(evaluate(got, *data, kind="debug"), evaluate(fn(before, *params), *data, kind="debug"), rtol=1e-4, atol=1e-5)


# --- CanonicalizeOps, SimplifyInference, ...
def inference():
    b = var("b", 16)
    yield "bias_add", relay.nn.bias_add(X, b), transform.CanonicalizeOps, relay.add(X, relay.expand_dims(b, axis=1, num_newaxis=2))
    b6 = var("b", 6)
    yield "bias_add last", relay.nn.bias_add(Y, b6, axis=-1), transform.CanonicalizeOps, relay.add(Y, b6)
    yield "dropout", relay.nn.dropout(Y, 0.5), transform.SimplifyInference, Y
    g, h = var("g", 6), var("h", 6)
    yield "layer_norm", relay.nn.layer_norm(Y, g, h), transform.SimplifyInference, None
    yield "group_norm", relay.nn.group_norm(X, var("g", 16), var("h", 16), 4), transform.SimplifyInference, None
    yield "instance_norm", relay.nn.instance_norm(X, var("g", 16), var("h", 16)), transform.SimplifyInference, None
    yield "l2_normalize", relay.nn.l2_normalize(X, 0.01, axis=[1]), transform.SimplifyInference, None
    yield "batch_norm", relay.nn.batch_norm(X, *[var(n, 16) for n in "ghmv"])[0], transform.SimplifyInference, None


@program(*inference())
def canonical(name, before, make, want):
    params = relay.analysis.free_vars(before)
    got = after(before, make(), params=params)
    assert name.split()[0] not in str(got)
    if want is not None:
        same(got, done(want, *params))
    data = [numbers(*p.type_annotation.concrete_shape, low=0.1, high=2.0) for p in params]
    np.testing.assert_allclose(evaluate(got, *data, kind="debug"), evaluate(fn(before, *params), *data, kind="debug"), rtol=1e-3, atol=1e-4)


# --- CombineParallel
def combined():
    s = lambda y, b, e: relay.strided_slice(y, begin=[0, b], end=[-1, e - b], strides=[1, 1], slice_mode="size")  # noqa: E731
    both = relay.concatenate((W, W2), axis=0)
    y = conv(X, both, 64)
    yield "two convolutions", relay.Tuple((conv(X, W), conv(X, W2))), transform.CombineParallelConv2D(2), relay.Tuple((s(y, 0, 32), s(y, 32, 64)))
    yield "fewer than asked", relay.Tuple((conv(X, W), conv(X, W2))), transform.CombineParallelConv2D(3), relay.Tuple((conv(X, W), conv(X, W2)))
    y3 = conv(X, relay.concatenate((W, W3), axis=0), 40)
    yield "of other widths", relay.Tuple((conv(X, W), conv(X, W3, 8))), transform.CombineParallelConv2D(2), relay.Tuple((s(y3, 0, 32), s(y3, 32, 40)))
    a, b = var("a", 1), var("b", 1)
    yield "scaled apart", relay.Tuple((relay.multiply(conv(X, W), a), relay.multiply(conv(X, W2), b))), transform.CombineParallelConv2D(2), \
        relay.Tuple((relay.multiply(s(y, 0, 32), a), relay.multiply(s(y, 32, 64), b)))
    r = relay.nn.relu(conv(X, relay.concatenate((W, W2), axis=0), 64))
    yield "with relu", relay.Tuple((relay.nn.relu(conv(X, W)), relay.nn.relu(conv(X, W2)))), transform.CombineParallelConv2D(2), relay.Tuple((s(r, 0, 32), s(r, 32, 64)))
    yield "of other strides", relay.Tuple((conv(X, W), conv(X, W2, strides=(2, 2)))), transform.CombineParallelConv2D(2), relay.Tuple((conv(X, W), conv(X, W2, strides=(2, 2))))
    p, q, d = var("p", 3, 6), var("q", 3, 6), relay.nn.dense
    stacked = relay.nn.batch_matmul(relay.stack((Y, Y), axis=0), relay.stack((p, q), axis=0))
    first, second = [relay.squeeze(t, axis=[0]) for t in relay.split(stacked, 2, axis=0)]
    yield "two products", relay.Tuple((d(Y, p), d(Y, q))), transform.CombineParallelDense(2), relay.Tuple((first, second))
    wide = d(Y, relay.concatenate((p, q), axis=0))
    yield "two products as one", relay.Tuple((d(Y, p), d(Y, q))), transform.CombineParallelDense(2, to_batch=False), \
        relay.Tuple((s(wide, 0, 3), s(wide, 3, 6)))
    m, n, k = var("m", 2, 3, 4), var("n", 2, 5, 4), var("k", 2, 6, 4)
    bm = relay.nn.batch_matmul
    w = bm(m, relay.concatenate((n, k), axis=1))
    s3 = lambda b, size: relay.strided_slice(w, begin=[0, 0, b], end=[-1, -1, size], strides=[1, 1, 1], slice_mode="size")  # noqa: E731
    yield "batch products", relay.Tuple((bm(m, n), bm(m, k))), transform.CombineParallelBatchMatmul(2), relay.Tuple((s3(0, 5), s3(5, 6)))


@program(*combined())
def together(name, before, step, want):
    params = relay.analysis.free_vars(before)
    got = after(before, step, params=params)
    data = [numbers(*p.type_annotation.concrete_shape) for p in params]
    for mine, other in zip(evaluate(got, *data, kind="debug"), evaluate(fn(before, *params), *data, kind="debug")):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    if name != "two products as one":  # the classic pass writes no units
        same(got, done(want, *params))


# --- layouts
def layouts():
    N, O = "NHWC", "HWIO"
    lt = relay.layout_transform
    w9 = lt(W, "OIHW", O)
    c = lambda x, **a: conv(x, w9, data_layout=N, kernel_layout=O, **a)  # noqa: E731
    x = lt(X, "NCHW", N)
    b = var("b", 32)
    yield "plain", conv(X, W), lt(c(x), N, "NCHW")
    yield "relu", relay.nn.relu(conv(X, W)), lt(relay.nn.relu(c(x)), N, "NCHW")
    yield "max pool", relay.nn.max_pool2d(conv(X, W), (2, 2)), lt(relay.nn.max_pool2d(c(x), (2, 2), layout=N), N, "NCHW")
    yield "global pool", relay.nn.global_avg_pool2d(conv(X, W)), lt(relay.nn.global_avg_pool2d(c(x), layout=N), N, "NCHW")
    yield "bias_add", relay.nn.bias_add(conv(X, W), b), lt(relay.add(c(x), lt(relay.expand_dims(relay.expand_dims(b, 1, 2), 0), "NCHW", N)), N, "NCHW")
    yield "sum", relay.sum(conv(X, W), axis=(2, 3)), relay.sum(c(x), axis=(1, 2))
    yield "mean kept", relay.mean(conv(X, W), axis=(2, 3), keepdims=True), lt(relay.mean(c(x), axis=(1, 2), keepdims=True), N, "NCHW")
    yield "concatenate", relay.concatenate([conv(X, W), conv(X, W)], 1), lt(relay.concatenate([c(x), c(x)], 3), N, "NCHW")
    yield "slice", relay.strided_slice(conv(X, W), [0, 16], [1, 32], [1, 1]), None
    yield "clip", relay.clip(conv(X, W), 0.0, 6.0), lt(relay.clip(c(x), 0.0, 6.0), N, "NCHW")
    yield "softmax", relay.nn.softmax(conv(X, W), axis=1), None
    yield "scalar", relay.multiply(conv(X, W), relay.const(2.0)), lt(relay.multiply(c(x), relay.const(2.0)), N, "NCHW")
    yield "pad", relay.nn.pad(conv(X, W), ((0, 0), (0, 0), (1, 1), (2, 2))), lt(relay.nn.pad(c(x), ((0, 0), (1, 1), (2, 2), (0, 0))), N, "NCHW")
    yield "upsampling", relay.nn.upsampling(conv(X, W), 2, 2), None
    yield "resize", relay.image.resize2d(conv(X, W), (4, 4)), None
    yield "split", relay.split(conv(X, W), 2, axis=1)[0], lt(relay.split(c(x), 2, axis=3)[0], N, "NCHW")
    yield "lrn", relay.nn.lrn(conv(X, W), size=3), lt(relay.nn.lrn(c(x), size=3, axis=3), N, "NCHW")
    yield "leaky", relay.nn.leaky_relu(conv(X, W), alpha=0.1), lt(relay.nn.leaky_relu(c(x), alpha=0.1), N, "NCHW")
    yield "flatten", relay.nn.batch_flatten(conv(X, W)), relay.nn.batch_flatten(lt(c(x), N, "NCHW"))
    yield "squeeze", relay.squeeze(relay.nn.global_avg_pool2d(conv(X, W)), [2, 3]), relay.squeeze(relay.nn.global_avg_pool2d(c(x), layout=N), [1, 2])
    yield "transpose", relay.transpose(conv(X, W), (0, 2, 3, 1)), relay.transpose(c(x), (0, 1, 2, 3))
    yield "reverse", relay.reverse(conv(X, W), 1), None
    yield "two", conv(conv(X, W), var("v", 32, 32, 3, 3)), lt(conv(c(x), lt(var("v", 32, 32, 3, 3), "OIHW", O), data_layout=N, kernel_layout=O), N, "NCHW")


@program(*layouts())
def turned(name, before, want):
    params = relay.analysis.free_vars(before)
    got = after(before, transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}), params=params)
    data = [numbers(*p.type_annotation.concrete_shape, seed=3) for p in params]
    np.testing.assert_allclose(evaluate(got, *data, kind="debug"), evaluate(fn(before, *params), *data, kind="debug"), rtol=1e-3, atol=1e-4)
    if want is not None:
        w = relay.analysis.free_vars(want)
        by = {p.name_hint: p for p in w}
        same(got, done(want, *[by[p.name_hint] for p in params]))


# --- FuseOps
def groups(f):
    out = []
    relay.analysis.post_order_visit(f, lambda e: out.append(e) if isinstance(e, relay.Call) and isinstance(e.op, relay.Function) else None)
    return out


def fusing():
    yield "elementwise", relay.exp(relay.add(Y, relay.const(1.0))), 1
    yield "convolution and chain", relay.nn.relu(relay.add(conv(X, W), relay.const(1.0))), 1
    yield "two convolutions", conv(relay.nn.relu(conv(X, W)), var("v", 32, 32, 3, 3)), 2
    yield "pool after", relay.nn.max_pool2d(relay.nn.relu(X), (2, 2)), 2
    yield "reduction", relay.sum(relay.exp(Y), axis=1), 1
    yield "after a reduction", relay.exp(relay.sum(Y, axis=1)), 2
    yield "softmax", relay.nn.softmax(Y), 1
    yield "concatenate", relay.concatenate([relay.exp(Y), relay.log(Z)], 1), 1
    yield "diamond", relay.add(relay.exp(relay.nn.relu(Y)), relay.log(relay.nn.relu(Y))), 1
    yield "stop", relay.exp(relay.annotation.stop_fusion(relay.nn.relu(Y))), 2
    yield "dense", relay.nn.relu(relay.nn.bias_add(relay.nn.dense(Y, var("p", 3, 6)), var("b", 3))), 1
    yield "tuple result", relay.Tuple([relay.exp(Y), relay.log(Z)]), 2
    yield "reshape after", relay.reshape(relay.nn.relu(Y), (24,)), 1
    yield "transpose into sum", relay.sum(relay.transpose(Y), axis=0), 2


@program(*fusing())
def kernels(name, body, count):
    out = run_opt_pass(fn(body), transform.FuseOps(2))
    assert len(groups(out)) == count, out


# --- forms
def forms():
    yield "graph", relay.add(relay.exp(Y), relay.exp(Y))
    yield "shared", (lambda e: relay.add(e, e))(relay.exp(Y))
    yield "if", relay.If(relay.const(True), relay.exp(Y), relay.log(Y))
    yield "tuple", relay.TupleGetItem(relay.Tuple([relay.exp(Y), Y]), 0)
    f = relay.Function([Z], relay.exp(Z))
    yield "function", relay.Call(f, [Y])
    v = var("v", 4, 6)
    yield "let", relay.Let(v, relay.exp(Y), relay.add(v, v))
    yield "ref", relay.RefRead(relay.RefCreate(relay.exp(Y)))


@program(*[(step, *f) for step in ("ToANormalForm", "ToGraphNormalForm", "ToBasicBlockNormalForm", "PartialEvaluate", "LambdaLift", "Defunctionalization", "DeadCodeElimination", "Inline") for f in forms()])
def form(step, name, body):
    got = after(body, getattr(transform, step)())
    data = numbers(4, 6, low=0.1, high=2.0)
    want = relay.create_executor("debug", mod=tvm.IRModule.from_expr(fn(body))).evaluate()(data).numpy()
    mod = transform.InferType()(tvm.transform.Sequential([transform.InferType(), getattr(transform, step)()])(tvm.IRModule.from_expr(fn(body))))
    np.testing.assert_allclose(relay.create_executor("debug", mod=mod).evaluate()(data).numpy(), want, rtol=1e-5)
    assert relay.analysis.well_formed(got)


@program
def cps_and_back():
    f = run_opt_pass(fn(relay.add(relay.exp(Y), relay.const(1.0))), transform.InferType())
    cps = relay.transform.to_cps(f)
    assert len(cps.params) == 2
    back = relay.transform.un_cps(cps)
    data = numbers(4, 6)
    np.testing.assert_allclose(relay.create_executor("debug", mod=tvm.IRModule.from_expr(run_infer_type(back))).evaluate()(data).numpy(), np.exp(data) + 1, rtol=1e-5)


@program
def eta():
    mod = tvm.IRModule()
    x = var("x", 2)
    mod["f"] = relay.Function([x], x)
    mod["main"] = relay.Function([], relay.GlobalVar("f"))
    out = transform.EtaExpand(expand_global_var=True)(transform.InferType()(mod))
    assert isinstance(out["main"].body, relay.Function)


@program
def lazy_gradients():
    x = var("x", 3)
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.zeros((3,), "float32")))))
    out = transform.LazyGradientInit()(transform.FirstOrderGradient()(mod))
    value, (grad,) = relay.create_executor("debug", mod=out).evaluate()(np.ones(3, "float32"))
    np.testing.assert_array_equal(grad.numpy(), np.ones(3))


@program
def unused_functions():
    mod = tvm.parser.parse('#[version = "0.0.5"] def @a(%x: float32) { %x } def @b(%x: float32) { @a(%x) } def @c(%x: float32) { %x } def @main(%x: float32) { @b(%x) }')
    out = transform.RemoveUnusedFunctions()(mod)
    assert sorted(g.name_hint for g in out.get_global_vars()) == ["a", "b", "main"]
    out = transform.RemoveUnusedFunctions(["c"])(mod)
    assert sorted(g.name_hint for g in out.get_global_vars()) == ["c"]


@program
def dynamic_to_static():
    x = var("x", 2, 3)
    s = relay.const(np.array([3, 2]), "int64")
    cases = [(relay.reshape(x, s), "reshape"), (relay.broadcast_to(relay.reshape(x, (1, 6)), relay.const(np.array([4, 6]))), "broadcast_to"),
             (relay.tile(x, relay.const(np.array([2, 2]))), "tile"), (relay.zeros(relay.const(np.array([2, 2])), "float32"), "zeros"), (relay.full(relay.const(1.0), relay.const(np.array([2, 2])), "float32"), "full")]
    for body, name in cases:
        f = run_opt_pass(fn(body, x), transform.DynamicToStatic())
        assert "dyn." not in str(f), f


@program
def atrous():
    b = relay.nn.batch_to_space_nd(relay.nn.conv2d(relay.nn.space_to_batch_nd(var("x", 1, 5, 5, 4), [2, 2], [[2, 3], [2, 3]]), var("w", 3, 3, 4, 1), groups=4, channels=4, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWOI"),
                                   [2, 2], [[0, 1], [0, 1]])
    got = after(b, transform.FlattenAtrousConv())
    assert "space_to_batch" not in str(got) and "dilation=[2, 2]" in str(got)


@program
def explicit_padding():
    got = after(pad_conv(0.0), transform.FoldExplicitPadding())
    same(got, done(conv(X, W)))
    assert "nn.pad" in str(after(pad_conv(1.0), transform.FoldExplicitPadding()))


@program
def canonical_casts():
    x = var("x", 1, 16, 4, 4, dtype="int8")
    y = relay.cast(x, "int32")
    body = relay.Tuple([relay.add(y, relay.const(1)), relay.multiply(y, relay.const(2))])
    got = run_opt_pass(fn(body), transform.CanonicalizeCast())
    assert str(got).count("cast(") == 2


@program
def common_parts():
    y = relay.nn.relu(X)
    got = after(relay.add(relay.add(relay.nn.relu(X), relay.const(1.0)), relay.add(y, relay.const(1.0))), transform.EliminateCommonSubexpr())
    assert str(got).count("nn.relu") == 1 and str(got).count("add(") == 2


@program
def post_dfs_indexes():
    f = fn(relay.add(relay.exp(Y), relay.log(Y)))
    got = run_opt_pass(f, transform.CapturePostDfsIndexInSpans())
    assert "index:" in str(got.body.span.source_name.name) or got.body.span is not None


@program
def inlined():
    mod = tvm.parser.parse('#[version = "0.0.5"] def @g(%x: Tensor[(2), float32], Inline=1) -> Tensor[(2), float32] { exp(%x) } def @main(%x: Tensor[(2), float32]) { @g(@g(%x)) }')
    out = transform.Inline()(transform.InferType()(mod))
    assert "@g" not in str(out["main"]) and [g.name_hint for g in out.get_global_vars()] == ["main"]


@program
def legalized():
    from tvm.relay.testing.temp_op_attr import TempOpAttr
    def rule(attrs, inputs, types):
        return relay.add(relay.const(0.0), relay.nn.conv2d(inputs[0], relay.multiply(inputs[1], relay.const(2.0)), **{k: attrs[k] for k in attrs.keys()}))
    with TempOpAttr("nn.conv2d", "FTVMLegalize", rule):
        got = run_opt_pass(fn(conv(X, W), X, W), transform.Legalize())
    same(got, done(relay.add(relay.const(0.0), conv(X, relay.multiply(W, relay.const(2.0)))), X, W))
    with TempOpAttr("nn.conv2d", "FTVMLegalize", lambda a, i, t: None):
        same(run_opt_pass(fn(conv(X, W), X, W), transform.Legalize()), done(conv(X, W), X, W))


@program
def altered_layouts():
    from tvm.relay.testing.temp_op_attr import TempOpAttr
    def rule(attrs, inputs, tinfos, out_type):
        new = dict(attrs)
        new["data_layout"], new["kernel_layout"] = "NCHW16c", "OIHW16i"
        return relay.nn.conv2d(*inputs, **new)
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", rule):
        got = after(relay.nn.relu(relay.nn.bias_add(conv(X, W), var("b", 32))), transform.CanonicalizeOps(), transform.AlterOpLayout())
    text = str(got)
    assert 'data_layout="NCHW16c"' in text and text.count("layout_transform") == 4, text
