# SPDX-License-Identifier: Apache-2.0
"""Operators of the second level: convolutions, pools and normalisations, in the layouts that scripts use."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.relay.testing import run_infer_type

from harness import program, numbers


def run(function, *arrays, kind="graph"):
    results = []
    for target, dev in tvm.testing.enabled_targets():
        results.append(relay.create_executor(kind, device=dev, target=target).evaluate(function)(*arrays))
    out = results[0]
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


# ---- level 2
@program
def conv1d_types():
    n, c, w = te.var("n"), 10, 224
    x = relay.var("x", relay.ty.TensorType((n, c, w), "float32"))
    y = relay.nn.conv1d(x, relay.var("w"), kernel_size=3, padding=(1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224), "float32")
    assert yy.args[1].checked_type == relay.TensorType((2, 10, 3), "float32")
    n, c, w = te.var("n"), te.var("c"), te.var("w")
    x, w = relay.var("x", relay.TensorType((n, 10, 224), "int8")), relay.var("w", relay.TensorType((2, 10, 3), "int8"))
    y = relay.nn.conv1d(x, w, out_dtype="int32")
    assert 'out_dtype="int32"' in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, 2, 222), "int32")
    x = relay.var("x", relay.TensorType((4, 32, 224), "int8"))
    wt = relay.var("w")
    y = relay.nn.conv1d(x, wt, kernel_size=3, padding=(1, 1), channels=16, data_layout="NWC", out_dtype="int32", kernel_layout="WIO")
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((4, 32, 16), "int32")
    assert yy.args[1].checked_type == relay.TensorType((3, 224, 16), "int8")


@program(((1, 3, 224), (10, 3, 3), dict(channels=10, kernel_size=3, padding=(1, 1))), ((1, 3, 224), (10, 3, 3), dict(channels=10, kernel_size=3, dilation=3, padding=(1, 1))),
         ((1, 3, 30), (8, 3, 4), dict(channels=8, kernel_size=4, strides=3, padding=(2, 0))))
def conv1d_values(dshape, kshape, attrs):
    x, w = relay.var("x", shape=dshape), relay.var("w", shape=kshape)
    f = relay.Function([x, w], relay.nn.conv1d(x, w, **attrs))
    a, b = numbers(*dshape), numbers(*kshape)
    stride = attrs.get("strides", 1)
    want = tvm.topi.testing.conv1d_ncw_python(a, b, stride, attrs["padding"], attrs.get("dilation", 1))
    np.testing.assert_allclose(run(f, a, b), want, rtol=1e-4, atol=1e-4)


@program
def conv2d_types():
    n, c, h, w = te.size_var("n"), 10, 224, 224
    x = relay.var("x", relay.ty.TensorType((n, c, h, w), "float32"))
    y = relay.nn.conv2d(x, relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224, 224), "float32")
    assert yy.args[1].checked_type == relay.TensorType((2, 10, 3, 3), "float32")
    n, c, h, w = te.var("n"), te.var("c"), te.var("h"), te.var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), "int8"))
    wt = relay.var("w", relay.TensorType((2, 10, 3, 3), "int8"))
    x = relay.var("x", relay.TensorType((n, 10, 224, 224), "int8"))
    y = relay.nn.conv2d(x, wt, out_dtype="int32")
    assert run_infer_type(y).checked_type == relay.TensorType((n, 2, 222, 222), "int32")


@program(("int4", "int32"), ("uint4", "int32"), ("int8", "int16"))
def conv2d_types_of_small_integers(dtype, out):
    n, c, h, w = te.size_var("n"), 32, 224, 224
    x = relay.var("x", relay.TensorType((n, h, w, c), dtype))
    y = relay.nn.conv2d(x, relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=16, data_layout="NHWC", kernel_layout="HWIO", out_dtype=out)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, h, w, 16), out)
    assert yy.args[1].checked_type == relay.TensorType((3, 3, 32, 16), dtype)


@program
def conv2d_types_in_blocks():
    x = relay.var("x", relay.TensorType((4, 8, 28, 28, 16), "int8"))
    y = relay.nn.conv2d(x, relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=64, data_layout="NCHW16c", kernel_layout="OIHW16i16o", out_dtype="int32")
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((4, 4, 28, 28, 16), "int32")
    assert yy.args[1].checked_type == relay.TensorType((4, 8, 3, 3, 16, 16), "int8")


@program
def conv2d_types_with_vectors_of_images():
    x = relay.var("x", relay.TensorType((1, 4, 224, 224, 4, 4), "int8"))
    wt = relay.var("w")
    y = relay.nn.conv2d(x, wt, kernel_size=(3, 3), padding=(1, 1), channels=16, data_layout="NCHW4n4c", kernel_layout="OIHW4o4i", out_dtype="int32")
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((1, 4, 224, 224, 4, 4), "int32")
    assert yy.args[1].checked_type == relay.TensorType((4, 4, 3, 3, 4, 4), "int8")


@program((dict(padding=(1, 1)), 1, 1), (dict(padding=((1, 1), (1, 1))[0], strides=(2, 2)), 2, 1), (dict(padding=(1, 1), dilation=(3, 3)), 1, 3), (dict(padding=(2, 1, 1, 0)), 1, 1))
def conv2d_values(attrs, stride, dilation):
    x, w = relay.var("x", shape=(1, 3, 18, 20)), relay.var("w", shape=(5, 3, 3, 3))
    f = relay.Function([x, w], relay.nn.conv2d(x, w, channels=5, kernel_size=(3, 3), **attrs))
    a, b = numbers(1, 3, 18, 20), numbers(5, 3, 3, 3)
    padding = attrs["padding"] if len(attrs["padding"]) == 4 else attrs["padding"]
    d = tvm.topi.testing.dilate_python(b, (1, 1, dilation, dilation))
    np.testing.assert_allclose(run(f, a, b), tvm.topi.testing.conv2d_nchw_python(a, d, stride, padding), rtol=1e-4, atol=1e-4)


@program
def conv2d_winograd_transformed():
    x = relay.var("x", shape=(1, 8, 12, 12))
    w = relay.var("w", shape=(16, 8, 3, 3))
    weight = relay.transpose(relay.nn.contrib_conv2d_winograd_weight_transform(w, tile_size=4), axes=[0, 1, 3, 2])
    y = relay.nn.contrib_conv2d_winograd_without_weight_transform(x, weight, tile_size=4, kernel_size=(3, 3), padding=(1, 1), channels=16)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((1, 16, 12, 12))
    assert yy.args[1].checked_type == relay.TensorType((6, 6, 8, 16))


@program
def conv3d_types():
    n, c, d, h, w = te.size_var("n"), 10, 224, 224, 224
    x = relay.var("x", relay.ty.TensorType((n, c, d, h, w), "float32"))
    y = relay.nn.conv3d(x, relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224, 224, 224), "float32")
    assert yy.args[1].checked_type == relay.TensorType((2, 10, 3, 3, 3), "float32")
    x = relay.var("x", relay.TensorType((4, 16, 28, 28, 32), "int8"))
    y = relay.nn.conv3d(x, relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=16, data_layout="NDHWC", kernel_layout="DHWIO", out_dtype="int32")
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((4, 16, 28, 28, 16), "int32")
    assert yy.args[1].checked_type == relay.TensorType((3, 3, 3, 32, 16), "int8")


@program("NCDHW", "NDHWC")
def conv3d_values(layout):
    a, b = numbers(1, 3, 5, 8, 8), numbers(4, 3, 3, 3, 3)
    want = tvm.topi.testing.conv3d_ncdhw_python(a, b, 1, 1)
    if layout == "NDHWC":
        a, b, want = a.transpose(0, 2, 3, 4, 1).copy(), b.transpose(2, 3, 4, 1, 0).copy(), want.transpose(0, 2, 3, 4, 1)
    x, w = relay.var("x", shape=a.shape), relay.var("w", shape=b.shape)
    y = relay.nn.conv3d(x, w, padding=(1, 1, 1), channels=4, kernel_size=(3, 3, 3), data_layout=layout, kernel_layout="OIDHW" if layout == "NCDHW" else "DHWIO")
    np.testing.assert_allclose(run(relay.Function([x, w], y), a, b), want, rtol=1e-4, atol=1e-4)


@program
def conv3d_transpose_types():
    n, c, d, h, w = te.size_var("n"), 10, 224, 224, 224
    x = relay.var("x", relay.ty.TensorType((n, c, d, h, w), "float32"))
    y = relay.nn.conv3d_transpose(x, relay.var("w"), kernel_size=(3, 3, 3), padding=(1, 1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224, 224, 224), "float32")
    assert yy.args[1].checked_type == relay.TensorType((10, 2, 3, 3, 3), "float32")
    x, w = relay.var("x", relay.TensorType((n, 10, 24, 24, 24), "int8")), relay.var("w", relay.TensorType((10, 12, 3, 3, 3), "int8"))
    y = relay.nn.conv3d_transpose(x, w, out_dtype="int32", kernel_size=(3, 3, 3), channels=12)
    assert run_infer_type(y).checked_type == relay.TensorType((n, 12, 26, 26, 26), "int32")


@program
def conv3d_transpose_values():
    a, b = numbers(1, 3, 8, 8, 8), numbers(3, 4, 3, 3, 3)
    x, w = relay.var("x", shape=a.shape), relay.var("w", shape=b.shape)
    y = relay.nn.conv3d_transpose(x, w, channels=4, kernel_size=(3, 3, 3), strides=(2, 2, 2), padding=(1, 1, 1), output_padding=(1, 1, 1))
    want = tvm.topi.testing.conv3d_transpose_ncdhw_python(a, b, 2, 1, 1)
    np.testing.assert_allclose(run(relay.Function([x, w], y), a, b), want, rtol=1e-4, atol=1e-4)


@program
def conv2d_transpose_types():
    n, c, h, w = te.size_var("n"), 10, 10, 12
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    y = relay.nn.conv2d_transpose(x, relay.var("w", relay.IncompleteType()), kernel_size=(3, 3), padding=(1, 1), channels=15)
    assert "channels=15" in y.astext()
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 15, 10, 12), "float32")
    assert yy.args[1].checked_type == relay.TensorType((10, 15, 3, 3), "float32")
    n, h, w, c = te.size_var("n"), 10, 10, 12
    x = relay.var("x", relay.TensorType((n, h, w, c), "float32"))
    wt = relay.var("w", relay.TensorType((12, 11, 5, 5), "float32"))
    y = relay.nn.conv2d_transpose(x, wt, output_padding=(1, 1), channels=11, kernel_size=(5, 5), data_layout="NHWC")
    assert run_infer_type(y).checked_type == relay.TensorType((n, 15, 15, 11), "float32")


@program
def conv2d_transpose_by_rows():
    a, b = numbers(1, 8, 8, 3), numbers(3, 3, 3, 10)
    x, w = relay.var("x", shape=a.shape), relay.var("w", shape=b.shape)
    y = relay.nn.conv2d_transpose(x, w, channels=10, kernel_size=(3, 3), strides=(2, 2), padding=(1, 1), output_padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
    want = tvm.topi.testing.conv2d_transpose_nhwc_python(a, b, "HWIO", 2, 1, (1, 1))
    np.testing.assert_allclose(run(relay.Function([x, w], y), a, b), want, rtol=1e-4, atol=1e-4)


@program
def conv1d_transpose_values():
    a, b = numbers(1, 3, 18), numbers(3, 10, 3)
    x, w = relay.var("x", shape=a.shape), relay.var("w", shape=b.shape)
    y = relay.nn.conv1d_transpose(x, w, channels=10, kernel_size=(3,), strides=(2,), padding=(1,), output_padding=(1,))
    want = tvm.topi.testing.conv1d_transpose_ncw_python(a, b, 2, 1, (1,))
    np.testing.assert_allclose(run(relay.Function([x, w], y), a, b), want, rtol=1e-4, atol=1e-4)


@program
def conv2d_in_groups():
    a, b = numbers(1, 6, 9, 9), numbers(4, 3, 3, 3)
    x, w = relay.var("x", shape=a.shape), relay.var("w", shape=b.shape)
    y = relay.nn.conv2d(x, w, groups=2, channels=4, kernel_size=(3, 3))
    np.testing.assert_allclose(run(relay.Function([x, w], y), a, b), tvm.topi.testing.conv2d_nchw_python(a, b, 1, 0, groups=2), rtol=1e-4, atol=1e-4)


@program
def upsampling_types():
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    scale = tvm.tir.const(2.0, "float64")
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    y = relay.nn.upsampling(x, scale_h=2, scale_w=2, layout="NCHW", method="bilinear")
    assert 'method="bilinear"' in y.astext()
    yy = run_infer_type(y)
    want = relay.TensorType((n, c, tvm.tir.Cast("int32", te.round(h * scale)), tvm.tir.Cast("int32", te.round(w * scale))), "float32")
    assert yy.checked_type == want
    n, c = te.size_var("n"), te.size_var("c")
    x = relay.var("x", relay.TensorType((n, c, 100, 200), "float32"))
    assert run_infer_type(relay.nn.upsampling(x, scale_h=2, scale_w=2, layout="NCHW", method="bilinear")).checked_type == relay.TensorType((n, c, 200, 400), "float32")


@program(("NCDHW", "half_pixel"), ("NDHWC", "align_corners"))
def upsampling3d_types(layout, mode):
    n, c = te.size_var("n"), te.size_var("c")
    shape = (n, c, 100, 100, 200) if layout == "NCDHW" else (n, 100, 100, 200, c)
    y = relay.nn.upsampling3d(relay.var("x", relay.TensorType(shape, "float32")), scale_d=2, scale_h=2, scale_w=2, layout=layout, method="trilinear", coordinate_transformation_mode=mode)
    want = (n, c, 200, 200, 400) if layout == "NCDHW" else (n, 200, 200, 400, c)
    assert run_infer_type(y).checked_type == relay.TensorType(want, "float32")


@program(*[(p, d) for p in ("max_pool2d", "avg_pool2d") for d in ("float32", "int32", "uint16")])
def pool2d_types(name, dtype):
    n, c, h, w = te.size_var("n"), 10, 224, 224
    op = getattr(relay.nn, name)
    x = relay.var("x", relay.TensorType((n, c, h, w), dtype))
    y = op(x, pool_size=(1, 1))
    assert "pool_size=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, 10, 224, 224), dtype)
    y = op(x, pool_size=(2, 2), strides=(2, 2), padding=(0, 0), ceil_mode=True)
    assert run_infer_type(y).checked_type == relay.TensorType((n, 10, 112, 112), dtype)


@program("float32", "int32", "uint16")
def max_pool2d_of_a_dtype(dtype):
    x = relay.var("x", shape=(1, 3, 28, 28), dtype=dtype)
    y = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))
    a = np.random.randint(0, 1000, (1, 3, 28, 28)).astype(dtype)
    np.testing.assert_equal(run(relay.Function([x], y), a), a.reshape(1, 3, 14, 2, 14, 2).max((3, 5)))


@program("float32", "int32", "uint16")
def avg_pool2d_of_a_dtype(dtype):
    x = relay.var("x", shape=(1, 3, 28, 28), dtype=dtype)
    y = relay.nn.avg_pool2d(x, pool_size=(2, 2), strides=(2, 2), padding=(0, 0))
    a = np.random.randint(0, 1000, (1, 3, 28, 28)).astype(dtype)
    want = a.reshape(1, 3, 14, 2, 14, 2).mean((3, 5)).astype(dtype)
    np.testing.assert_allclose(run(relay.Function([x], y), a), want, rtol=1e-5, atol=1e-5)


@program((32, 2, 2, (0, 0), True, False), (5, 4, 3, (3, 3), True, False), (33, 3, 2, (1, 1), False, True), (7, 3, 3, (2, 2), True, True))
def pool1d_values(size, window, stride, padding, count, ceil):
    a = numbers(1, 3, size)
    x = relay.var("x", shape=a.shape)
    for name in ("max", "avg"):
        attrs = dict(pool_size=(window,), strides=(stride,), padding=padding, ceil_mode=ceil)
        if name == "avg":
            attrs["count_include_pad"] = count
        y = getattr(relay.nn, f"{name}_pool1d")(x, **attrs)
        assert "pool_size=" in y.astext()
        t = run_infer_type(y).checked_type
        want = tvm.topi.testing.poolnd_python(a, [window], [stride], [1], [padding[0]], [padding[1]], name, count, ceil, dtype="float32")
        assert tuple(int(s) for s in t.shape) == want.shape, (t, want.shape)
        np.testing.assert_allclose(run(relay.Function([x], y), a), want, rtol=1e-5, atol=1e-5)


@program
def pool3d_values():
    a = numbers(1, 3, 16, 17, 18)
    x = relay.var("x", shape=a.shape)
    for name in ("max", "avg"):
        y = getattr(relay.nn, f"{name}_pool3d")(x, pool_size=(2, 3, 2), strides=(2, 2, 3), padding=(1, 1, 0, 0, 1, 1), ceil_mode=False)
        want = tvm.topi.testing.poolnd_python(a, [2, 3, 2], [2, 2, 3], [1, 1, 1], [1, 1, 0], [0, 1, 1], name, False, False, dtype="float32")
        np.testing.assert_allclose(run(relay.Function([x], y), a), want, rtol=1e-5, atol=1e-5)


@program((1, 1), (2, 1), (2, 3))
def pool2d_with_dilation(stride, dilation):
    a = numbers(2, 3, 20, 21)
    x = relay.var("x", shape=a.shape)
    for name in ("max", "avg"):
        y = getattr(relay.nn, f"{name}_pool2d")(x, pool_size=(3, 3), strides=(stride, stride), dilation=(dilation, dilation), padding=(1, 1))
        want = tvm.topi.testing.poolnd_python(a, [3, 3], [stride] * 2, [dilation] * 2, [1, 1], [1, 1], name, False, False, dtype="float32")
        np.testing.assert_allclose(run(relay.Function([x], y), a), want, rtol=1e-5, atol=1e-5)


@program
def global_pools_of_channels_last():
    n, c = te.size_var("n"), te.size_var("c")
    y = relay.nn.global_avg_pool2d(relay.var("x", relay.TensorType((n, 224, 224, c), "float32")), layout="NHWC")
    assert run_infer_type(y).checked_type == relay.TensorType((n, 1, 1, c), "float32")
    y = relay.nn.global_max_pool2d(relay.var("x", relay.TensorType((n, c, 224, 224), "float32")))
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, 1, 1), "float32")
    assert "layout=" not in y.astext()


@program
def flatten_types():
    d1, d2, d3, d4 = (te.size_var(f"d{i}") for i in range(1, 5))
    y = relay.nn.batch_flatten(relay.var("x", relay.TensorType((d1, d2, d3, d4), "float32")))
    assert run_infer_type(y).checked_type == relay.TensorType((d1, ((d2 * d3) * d4)), "float32")
    y = relay.nn.batch_flatten(relay.var("x", relay.TensorType((3, 2, 4, 3), "float32")))
    assert run_infer_type(y).checked_type == relay.TensorType((3, 24), "float32")
    y = relay.nn.batch_flatten(relay.var("x", relay.TensorType((d1, 2, d3, 3), "float32")))
    assert run_infer_type(y).checked_type == relay.TensorType((d1, ((2 * d3) * 3)), "float32")


@program
def pad_types():
    t = relay.var("t", relay.TensorType((1, 2, 3, 4), "float32"))
    y = relay.nn.pad(t, ((1, 1), (2, 2), (3, 3), (4, 4)))
    assert "pad_width=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((3, 6, 9, 12), "float32")
    n, c, h, w = (te.size_var(v) for v in "nchw")
    t = relay.var("t", relay.TensorType((n, c, h, w), "float32"))
    assert run_infer_type(relay.nn.pad(t, ((1, 1), (2, 2), (3, 3), (4, 4)))).checked_type == relay.TensorType((n + 2, c + 4, h + 6, w + 8), "float32")
    y = relay.nn.pad(relay.var("t", relay.TensorType((n, c, 3, 4), "float32")), ((-1, -1), (2, -2), (0, 0), (1, 0)))
    assert run_infer_type(y).checked_type == relay.TensorType((n + (-2), c, 3, 5), "float32")


@program("float32", "int32", "int8")
def pad_values(dtype):
    a = np.random.randint(0, 100, (2, 3, 5)).astype(dtype)
    x, v = relay.var("x", shape=a.shape, dtype=dtype), relay.var("v", shape=(), dtype=dtype)
    y = relay.nn.pad(x, ((1, 1), (0, 2), (3, 0)), v)
    np.testing.assert_equal(run(relay.Function([x, v], y), a, np.array(7, dtype)), np.pad(a, ((1, 1), (0, 2), (3, 0)), constant_values=7))
    y = relay.nn.pad(x, ((0, 0), (-1, -1), (1, -2)), pad_value=relay.const(2, dtype))
    np.testing.assert_equal(run(relay.Function([x], y), a), np.pad(a[:, 1:-1, :-2], ((0, 0), (0, 0), (1, 0)), constant_values=2))


@program
def lrn_types_and_values():
    n, c, h, w = (te.size_var(v) for v in "nchw")
    y = relay.nn.lrn(relay.var("x", shape=(n, c, h, w)), size=10, axis=2, bias=0.5, alpha=0.00001, beta=0.75)
    assert "alpha=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, w))
    x = relay.var("x", relay.TensorType((1, 5, 10, 10)))
    a = numbers(1, 5, 10, 10)
    z = relay.nn.lrn(x, size=5, axis=1, bias=0.5, alpha=0.00001, beta=0.75)
    assert run_infer_type(z).checked_type == relay.TensorType((1, 5, 10, 10))
    np.testing.assert_allclose(run(relay.Function([x], z), a), tvm.topi.testing.lrn_python(a, 5, 1, 0.5, 0.00001, 0.75), rtol=1e-5)


@program
def l2_normalize_types_and_values():
    n, c, h, w = (te.size_var(v) for v in "nchw")
    y = relay.nn.l2_normalize(relay.var("x", shape=(n, c, h, w)), eps=0.001, axis=[1])
    assert "axis=" in y.astext()
    x = relay.var("x", relay.TensorType((1, 3, 20, 20)))
    a = numbers(1, 3, 20, 20)
    np.testing.assert_allclose(run(relay.Function([x], relay.nn.l2_normalize(x, eps=0.001, axis=[1])), a), tvm.topi.testing.l2_normalize_python(a, 0.001, 1), rtol=1e-5)


@program
def bitserial_convolution_types():
    n, c, h, w = te.size_var("n"), 32, 224, 224
    x, k = relay.var("x", relay.ty.TensorType((n, c, h, w), "int16")), relay.var("w", relay.ty.TensorType((32, 32, 3, 3), "int16"))
    y = relay.nn.bitserial_conv2d(x, k, kernel_size=(3, 3), padding=(0, 0), channels=32)
    assert run_infer_type(y).checked_type == relay.TensorType((n, 32, 222, 222), "int16")


@program
def bitpack_types():
    o, i, h, w = 32, 32, 128, 128
    y = relay.nn.bitpack(relay.var("x", relay.ty.TensorType((o, i, h, w), "int16")), bit_axis=4, pack_axis=1, pack_type="uint16", bits=1)
    assert run_infer_type(y).checked_type == relay.TensorType((32, 2, 128, 128, 1), "uint16")


@program
def correlation_types_and_values():
    a, b = numbers(1, 3, 10, 10), numbers(1, 3, 10, 10, seed=9)
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    for multiply in (True, False):
        z = relay.nn.correlation(x, y, kernel_size=1, max_displacement=4, stride1=1, stride2=1, padding=4, is_multiply=multiply)
        assert run_infer_type(z).checked_type == relay.TensorType((1, 81, 10, 10))
        want = tvm.topi.testing.correlation_nchw_python(a, b, 1, 4, 1, 1, 4, multiply)
        np.testing.assert_allclose(run(relay.Function([x, y], z), a, b), want, rtol=1e-5, atol=1e-5)


@program
def conv2d_of_run_time_weights():
    a, w = numbers(1, 32, 4, 4), numbers(4, 32, 3, 3)
    x, k = relay.var("x", shape=a.shape), relay.var("w", shape=(relay.Any(), relay.Any(), relay.Any(), relay.Any()))
    y = relay.nn.conv2d(x, k, kernel_size=(3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x, k], y))
    out = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(a, w)
    np.testing.assert_allclose(out.numpy(), tvm.topi.testing.conv2d_nchw_python(a, w, 1, 0), rtol=1e-4, atol=1e-4)


@program("int8", "uint8")
def intrinsics_for_bytes(dtype):
    """On processors with dot products of bytes the code uses them."""
    x, w = relay.var("x", shape=(1, 64, 56, 56), dtype="uint8"), relay.var("w", shape=(64, 64, 3, 3), dtype="int8")
    y = relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=64, padding=(1, 1), out_dtype="int32")
    params = {"w": tvm.nd.array(np.random.randint(-128, 127, (64, 64, 3, 3)).astype("int8"))}
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, w], y)), "llvm -mcpu=cascadelake", params=params)
    assert "vpdpbusd" in lib.lib.get_source("asm")
