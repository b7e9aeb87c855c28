# SPDX-License-Identifier: Apache-2.0
"""Operators of levels 5 and 6: images, boxes and sorting."""
import math

import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te
from tvm.relay.testing import run_infer_type

from harness import program, numbers


KINDS = ("graph", "vm", "debug")


def run(function, *arrays, kind="graph"):
    out = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(function)(*arrays)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]


@program
def resize_types():
    n, c, h, w = (te.size_var(v) for v in "nchw")
    x = relay.var("x", relay.TensorType((n, c, h, w), "int8"))
    x = relay.var("x", relay.TensorType((n, c, h, w), "int8"))
    z = relay.image.resize2d(x, (100, 200), None, "NCHW", "linear", "align_corners")
    assert 'method="linear"' in z.astext() or "size=" in z.astext()
    assert run_infer_type(z).checked_type == relay.TensorType((n, c, 100, 200), "int8")
    n, c, w = te.size_var("n"), te.size_var("c"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, w), "int8"))
    assert run_infer_type(relay.image.resize1d(x, (200,), None, "NCW", "linear", "align_corners")).checked_type == relay.TensorType((n, c, 200), "int8")
    d = te.size_var("d")
    x = relay.var("x", relay.TensorType((n, c, d, h, w), "int8"))
    assert run_infer_type(relay.image.resize3d(x, (10, 10, 20), None, "NCDHW", "linear", "align_corners")).checked_type == relay.TensorType((n, c, 10, 10, 20), "int8")


@program(*[(l, m, c) for l in ("NCHW", "NHWC") for m, c in (("nearest_neighbor", "asymmetric"), ("linear", "align_corners"), ("linear", "half_pixel"), ("cubic", "half_pixel"), ("cubic", "align_corners"))])
def resize2d_values(layout, method, mode):
    scale = 2
    shape = (1, 4, 5, 6) if layout == "NCHW" else (1, 5, 6, 4)
    a = numbers(*shape)
    x = relay.var("x", relay.TensorType(shape, "float32"))
    want = tvm.topi.testing.resize2d_python(a, (scale, scale), layout, method[2:] if method[0:2] == "bi" else method, mode)
    z = relay.image.resize2d(x, (10, 12), None, layout, method, coordinate_transformation_mode=mode)
    for kind in KINDS[:2]:
        np.testing.assert_allclose(run(relay.Function([x], z), a, kind=kind), want, rtol=1e-3, atol=1e-3)


@program(*[(l, m, c) for l in ("NCDHW", "NDHWC") for m, c in (("nearest_neighbor", "asymmetric"), ("linear", "align_corners"), ("linear", "half_pixel"))])
def resize3d_values(layout, method, mode):
    shape = (1, 2, 3, 4, 4) if layout == "NCDHW" else (1, 3, 4, 4, 2)
    a = numbers(*shape)
    x = relay.var("x", relay.TensorType(shape, "float32"))
    want = tvm.topi.testing.resize3d_python(a, (2, 2, 2), layout, method, mode)
    z = relay.image.resize3d(x, (6, 8, 8), None, layout, method, mode)
    np.testing.assert_allclose(run(relay.Function([x], z), a), want, rtol=1e-4, atol=1e-4)


@program(*[(l, m, c) for l in ("NCW", "NWC") for m, c in (("nearest_neighbor", "asymmetric"), ("linear", "align_corners"), ("linear", "half_pixel"), ("cubic", "half_pixel"))])
def resize1d_values(layout, method, mode):
    shape = (1, 4, 7) if layout == "NCW" else (1, 7, 4)
    a = numbers(*shape)
    x = relay.var("x", relay.TensorType(shape, "float32"))
    want = tvm.topi.testing.resize1d_python(a, (2,), layout, method, mode)
    z = relay.image.resize1d(x, (14,), None, layout, method, coordinate_transformation_mode=mode)
    np.testing.assert_allclose(run(relay.Function([x], z), a), want, rtol=1e-3, atol=1e-3)


@program(("bilinear", "NHWC"), ("nearest_neighbor", "NHWC"), ("bilinear", "NCHW"))
def crops_resized(method, layout):
    img = (10, 256, 256, 3) if layout == "NHWC" else (5, 3, 255, 255)
    boxes = np.array([[0.11, 0.23, 0.83, 0.71], [0.2, 0, 1, 0.61]], "float32")
    index = np.array([1, 0], "int32")
    size = np.array([20, 30]).astype("int32")
    a = np.random.RandomState(3).uniform(size=img).astype("float32")
    want = tvm.topi.testing.crop_and_resize_python(a, boxes, index, size, layout, method, 0.0)
    x, b, i = relay.var("x", shape=img), relay.var("b", shape=(2, 4)), relay.var("i", shape=(2,), dtype="int32")
    z = relay.image.crop_and_resize(x, b, i, size, layout, method, 0.0)
    assert run_infer_type(z).checked_type.shape[0] == 2
    np.testing.assert_allclose(run(relay.Function([x, b, i], z), a, boxes, index), want, rtol=1e-3, atol=1e-4)


@program
def anchors_of_a_picture():
    def ref(h, w, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False):
        k = len(sizes) + len(ratios) - 1
        out = np.zeros((1, h * w * k, 4), "float32")
        sh, sw = (steps[0] if steps[0] > 0 else 1.0 / h), (steps[1] if steps[1] > 0 else 1.0 / w)
        for i in range(h):
            for j in range(w):
                for n in range(k):
                    bw = (sizes[n] * h / w / 2.0) if n < len(sizes) else sizes[0] * h / w * math.sqrt(ratios[n - len(sizes) + 1]) / 2.0
                    bh = sizes[n] / 2.0 if n < len(sizes) else sizes[0] / math.sqrt(ratios[n - len(sizes) + 1]) / 2.0
                    out[0, i * w * k + j * k + n] = (j + offsets[1]) * sw - bw, (i + offsets[0]) * sh - bh, (j + offsets[1]) * sw + bw, (i + offsets[0]) * sh + bh
        return np.clip(out, 0, 1) if clip else out
    for args in (dict(), dict(sizes=(0.3, 1.5, 0.7), ratios=(1.3, 2.4), steps=(2.0, 1.5), offsets=(0.2, 0.3), clip=False), dict(clip=True)):
        x = relay.var("x", relay.TensorType((1, 3, 7, 9), "float32"))
        z = relay.vision.multibox_prior(x, **args)
        zz = run_infer_type(z)
        want = ref(7, 9, **args)
        if args:
            assert ("sizes=" in z.astext()) == ("sizes" in args)
        assert zz.checked_type == relay.TensorType(want.shape, "float32")
        np.testing.assert_allclose(run(relay.Function([x], z), numbers(1, 3, 7, 9)), want, rtol=1e-5, atol=1e-6)
    n, c = te.size_var("n"), 24
    y = relay.vision.multibox_prior(relay.var("x", shape=(n, c, 24, 32)))
    assert run_infer_type(y).checked_type == relay.TensorType((1, 24 * 32, 4), "float32")


@program((0.95, 1, 5), (-0.5, 0, 0), ((0.3,), 1, 4))
def valid_boxes(threshold, id_index, score_index):
    if isinstance(threshold, tuple):
        threshold = threshold[0]
    a = np.random.RandomState(2).uniform(low=-2, high=2, size=(2, 30, 6)).astype("float32")
    x = relay.var("x", relay.TensorType((2, 30, 6), "float32"))
    z = relay.vision.get_valid_counts(x, threshold, id_index, score_index)
    out = run(relay.Function([x], z.astuple()), a, kind="vm")
    for b in range(2):
        keep = [i for i in range(30) if a[b, i, score_index] > threshold and (id_index < 0 or a[b, i, id_index] >= 0)]
        assert out[0][b] == len(keep)
        np.testing.assert_allclose(out[1][b, :len(keep)], a[b, keep])
        np.testing.assert_allclose(out[1][b, len(keep):], -1)
        np.testing.assert_equal(out[2][b, :len(keep)], keep)


@program
def overlapping_boxes():
    data = np.array([[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40], [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110]]], "float32")
    indices = np.array([[0, 1, 3, 4, -1]], "int32")
    valid = np.array([4], "int32")
    x, v, i = relay.var("x0", relay.ty.TensorType((1, 5, 6), "float32")), relay.var("x1", relay.ty.TensorType((1,), "int32")), relay.var("x2", relay.ty.TensorType((1, 5), "int32"))
    m = relay.const(-1, dtype="int32")
    z = relay.vision.non_max_suppression(x, v, i, max_output_size=m, iou_threshold=0.7, force_suppress=True, top_k=2, return_indices=False)
    assert run_infer_type(z).checked_type == relay.ty.TensorType((1, 5, 6), "float32")
    out = run(relay.Function([x, v, i], z), data, valid, indices, kind="vm")
    want = np.array([[[2, 0.9, 35, 61, 52, 79], [0, 0.8, 1, 20, 25, 45]]])
    np.testing.assert_allclose(out[:, :2], want)
    assert (out[:, 2:] == -1).all()
    z = relay.vision.non_max_suppression(x, v, i, max_output_size=m, iou_threshold=0.7, force_suppress=False, top_k=2, return_indices=True)
    z = z.astuple()
    t = run_infer_type(relay.Function([x, v, i], z)).ret_type
    assert t.fields[0] == relay.TensorType((1, 5), "int32") and t.fields[1] == relay.TensorType((1, 1), "int32")
    out = run(relay.Function([x, v, i], z), data, valid, indices, kind="vm")
    np.testing.assert_equal(out[0][0, :2], [4, 0])
    assert out[1][0, 0] == 2


@program(((2, 3), 0.1), ((1, 4), 0.4))
def boxes_of_every_class(shape, threshold):
    batch, classes = shape
    rng = np.random.RandomState(5)
    corners = rng.uniform(0, 1, (batch, 6, 2)).astype("float32")
    boxes = np.concatenate([corners, corners + 0.3], 2)
    scores = rng.uniform(0, 1, (batch, classes, 6)).astype("float32")
    b, s = relay.var("b", shape=boxes.shape), relay.var("s", shape=scores.shape)
    out = relay.vision.all_class_non_max_suppression(b, s, 4, 0.5, threshold)
    got = run(relay.Function([b, s], out.astuple()), boxes, scores, kind="vm")
    selected, count = got[0], int(got[1].reshape(-1)[0])

    def overlap(p, q):
        y, x = np.minimum(p[2:], q[2:]) - np.maximum(p[:2], q[:2])
        inter = max(y, 0) * max(x, 0)
        return inter / ((p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - inter)
    want = []
    for n in range(batch):
        for c in range(classes):
            kept = []
            for k in np.argsort(-scores[n, c], kind="stable"):
                if scores[n, c, k] > threshold and len(kept) < 4 and all(overlap(boxes[n, k], boxes[n, j]) <= 0.5 for j in kept):
                    kept.append(k)
            want += [[n, c, k] for k in kept]
    assert count == len(want)
    np.testing.assert_equal(selected[:count], want)


@program
def detections_from_anchors():
    anchors, classes = 3, 3
    prob = np.array([[[0.2, 0.5, 0.3], [0.25, 0.3, 0.45], [0.7, 0.1, 0.2]]], "float32")
    loc = np.array([[0.1, -0.2, 0.3, 0.2, 0.2, 0.4, 0.5, -0.3, 0.7, -0.2, -0.4, -0.8]], "float32")
    anchor = np.array([[[-0.1, -0.1, 0.1, 0.1], [-0.2, -0.2, 0.2, 0.2], [1.2, 1.2, 1.5, 1.5]]], "float32")
    p, l, an = relay.var("p", shape=prob.shape), relay.var("l", shape=loc.shape), relay.var("a", shape=anchor.shape)
    mt = relay.vision.multibox_transform_loc(cls_prob=p, loc_pred=l, anchor=an)
    t = run_infer_type(mt.astuple()).checked_type
    assert t == relay.ty.TupleType(tvm.runtime.convert([relay.ty.TensorType((1, 3, 6), "float32"), relay.ty.TensorType((1,), "int")]))
    nms = relay.vision.non_max_suppression(mt[0], mt[1], mt[0], return_indices=False)
    f = relay.Function([p, l, an], nms)
    out = run(f, prob, loc, anchor, kind="vm")
    want = np.array([[[1, 0.69999999, 0, 0, 0.10818365, 0.10008108], [0, 0.44999999, 1, 1, 1, 1], [0, 0.30000001, 0, 0, 0.22903419, 0.20435292]]])
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


@program("NCHW", "NHWC")
def aligned_regions(layout):
    a = np.random.RandomState(1).uniform(size=(4, 4, 16, 16) if layout == "NCHW" else (4, 16, 16, 4)).astype("float32")
    rois = np.random.RandomState(2).uniform(size=(32, 5)).astype("float32") * 16
    rois[:, 0] = np.random.RandomState(3).randint(0, 4, 32)
    x, r = relay.var("x", shape=a.shape), relay.var("r", shape=rois.shape)
    for mode in ("avg", "max"):
        for ratio in (2, -1):
            z = relay.vision.roi_align(x, r, pooled_size=(7, 7), spatial_scale=1.0, sample_ratio=ratio, mode=mode, layout=layout)
            want = (tvm.topi.testing.roi_align_nchw_python if layout == "NCHW" else tvm.topi.testing.roi_align_nhwc_python)(a, rois, pooled_size=7, spatial_scale=1.0, sample_ratio=ratio, mode=mode.encode())
            np.testing.assert_allclose(run(relay.Function([x, r], z), a, rois), want, atol=1e-5, rtol=1e-3)


@program
def pooled_regions():
    a = np.random.RandomState(1).uniform(size=(4, 3, 16, 16)).astype("float32")
    rois = np.random.RandomState(2).uniform(size=(32, 5)).astype("float32") * 16
    rois[:, 0] = np.random.RandomState(3).randint(0, 4, 32)
    x, r = relay.var("x", shape=a.shape), relay.var("r", shape=rois.shape)
    z = relay.vision.roi_pool(x, r, pooled_size=(7, 7), spatial_scale=0.5, layout="NCHW")
    assert run_infer_type(z).checked_type == relay.TensorType((32, 3, 7, 7))
    np.testing.assert_allclose(run(relay.Function([x, r], z), a, rois), tvm.topi.testing.roi_pool_nchw_python(a, rois, pooled_size=7, spatial_scale=0.5), rtol=1e-4)


@program
def yolo_reorganised():
    n, c, h, w = (te.size_var(v) for v in "nchw")
    idxd = tvm.tir.indexdiv
    z = relay.vision.yolo_reorg(relay.var("x", relay.TensorType((n, c, 20, 20), "float32")), stride=10)
    assert "stride=10" in z.astext()
    assert run_infer_type(z).checked_type == relay.ty.TensorType((n, c * 10 * 10, 2, 2), "float32")
    z = relay.vision.yolo_reorg(relay.var("x", relay.TensorType((n, c, h, w), "float32")), stride=2)
    assert run_infer_type(z).checked_type == relay.ty.TensorType((n, c * 2 * 2, idxd(h, 2), idxd(w, 2)), "float32")
    a = numbers(1, 12, 6, 6)
    x = relay.var("x", shape=a.shape)
    np.testing.assert_allclose(run(relay.Function([x], relay.vision.yolo_reorg(x, stride=2)), a), tvm.topi.testing.reorg_python(a, 2))


@program("NCHW", "NHWC")
def space_and_depth(layout):
    for mode in ("DCR", "CDR"):
        a = numbers(1, 8, 4, 4)
        want = tvm.topi.testing.depth_to_space_python(a, 2, mode=mode)
        b = a if layout == "NCHW" else a.transpose(0, 2, 3, 1).copy()
        x = relay.var("x", shape=b.shape)
        z = relay.nn.depth_to_space(x, 2, layout, mode=mode)
        assert "block_size=" in z.astext()
        got = run(relay.Function([x], z), b)
        np.testing.assert_allclose(got if layout == "NCHW" else got.transpose(0, 3, 1, 2), want)
    a = numbers(1, 3, 4, 6)
    b = a if layout == "NCHW" else a.transpose(0, 2, 3, 1).copy()
    x = relay.var("x", shape=b.shape)
    got = run(relay.Function([x], relay.nn.space_to_depth(x, 2, layout)), b)
    np.testing.assert_allclose(got if layout == "NCHW" else got.transpose(0, 3, 1, 2), tvm.topi.testing.space_to_depth_python(a, 2))


@program("NCHW", "NHWC")
def dilations_2d(layout):
    n, c, h, w = te.size_var("n"), 10, 224, 224
    if layout == "NCHW":
        x, k = relay.var("x", relay.ty.TensorType((n, c, h, w), "float32")), relay.var("w", relay.TensorType((10, 16, 16), "float32"))
        y = relay.image.dilation2d(x, k, strides=[2, 1, 1, 2][1:3], padding=[1, 1], dilations=[1, 1], data_layout="NCHW", kernel_layout="IHW")
        yy = run_infer_type(y)
        assert yy.checked_type == relay.TensorType((n, 10, 211, 211), "float32")
    image, kernel = np.array([[[[0.1], [0.2]], [[0.3], [0.4]]]], "float32"), np.array([[[0.4], [0.3]], [[0.1], [0.0]]], "float32")
    want = np.array([[[[0.5]]]])
    if layout == "NCHW":
        image, kernel, klayout = image.transpose(0, 3, 1, 2).copy(), kernel.transpose(2, 0, 1).copy(), "IHW"
    else:
        klayout = "HWI"
    x, k = relay.var("x", shape=image.shape), relay.var("k", shape=kernel.shape)
    y = relay.image.dilation2d(x, k, strides=[1, 1], padding=[0, 0], dilations=[1, 1], data_layout=layout, kernel_layout=klayout)
    np.testing.assert_allclose(run(relay.Function([x, k], y), image, kernel).reshape(want.shape), want, rtol=1e-5)
    y = relay.image.dilation2d(x, k, strides=[1, 1], padding=[0, 0, 1, 1], dilations=[1, 1], data_layout=layout, kernel_layout=klayout)
    np.testing.assert_allclose(run(relay.Function([x, k], y), image, kernel).reshape(-1), [0.5, 0.6, 0.7, 0.8], rtol=1e-5)


@program
def grids():
    n, c, h, w = (te.size_var(v) for v in "nchw")
    z = relay.image.affine_grid(relay.var("data", shape=(n, 2, 3)), (150, 120))
    assert run_infer_type(z).checked_type == relay.ty.TensorType((n, 2, 150, 120))
    a = numbers(2, 2, 3)
    x = relay.var("x", shape=a.shape)
    np.testing.assert_allclose(run(relay.Function([x], relay.image.affine_grid(x, (3, 4))), a), tvm.topi.testing.affine_grid_python(a, (3, 4)), rtol=1e-5, atol=1e-5)


@program(*[(m, p, a) for m in ("nearest", "bilinear", "bicubic") for p in ("zeros", "border", "reflection") for a in (True, False)])
def sampled_pictures(method, padding, corners):
    a, g = numbers(2, 3, 6, 7), numbers(2, 2, 5, 4, low=-1.3, high=1.3)
    x, y = relay.var("x", shape=a.shape), relay.var("g", shape=g.shape)
    z = relay.image.grid_sample(x, y, method=method, layout="NCHW", padding_mode=padding, align_corners=corners)
    assert run_infer_type(z).checked_type == relay.TensorType((2, 3, 5, 4))
    want = tvm.topi.testing.grid_sample_python(a, g, method=method, layout="NCHW", padding_mode=padding, align_corners=corners)
    np.testing.assert_allclose(run(relay.Function([x, y], z), a, g), want, rtol=1e-4, atol=1e-4)


@program("NCDHW")
def sampled_volumes(layout):
    a, g = numbers(2, 2, 4, 5, 6), numbers(2, 3, 3, 4, 5, low=-1.3, high=1.3)
    x, y = relay.var("x", shape=a.shape), relay.var("g", shape=g.shape)
    z = relay.image.grid_sample(x, y, method="bilinear", layout=layout, padding_mode="zeros", align_corners=True)
    assert run_infer_type(z).checked_type == relay.TensorType((2, 2, 3, 4, 5))
    want = tvm.topi.testing.grid_sample_python(a, g, method="bilinear", layout=layout, padding_mode="zeros", align_corners=True)
    np.testing.assert_allclose(run(relay.Function([x, y], z), a, g), want, rtol=1e-4, atol=1e-4)


@program(("NCHW", 1, 1), ("NHWC", 1, 1), ("NCHW", 2, 1), ("NCHW", 2, 2))
def deformable(layout, groups, dgroups):
    a, o, w = numbers(1, 4, 8, 8), numbers(1, 2 * 9 * dgroups, 8, 8), numbers(4, 4 // groups, 3, 3)
    want = tvm.topi.testing.deformable_conv2d_nchw_python(a, o, w, 1, 1, 1, dgroups, groups)
    klayout = "OIHW"
    if layout == "NHWC":
        a, o, w, want, klayout = a.transpose(0, 2, 3, 1).copy(), o.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy(), want.transpose(0, 2, 3, 1), "HWIO"
    x, off, k = relay.var("x", shape=a.shape), relay.var("o", shape=o.shape), relay.var("w", shape=w.shape)
    y = relay.nn.deformable_conv2d(x, off, k, strides=(1, 1), padding=(1, 1), dilation=(1, 1), data_layout=layout, kernel_layout=klayout, kernel_size=(3, 3), deformable_groups=dgroups, groups=groups, channels=4)
    np.testing.assert_allclose(run(relay.Function([x, off, k], y), a, o, w), want, rtol=1e-4, atol=1e-4)
    y = relay.nn.deformable_conv2d(x, off, relay.var("w"), strides=(1, 1), padding=(1, 1), dilation=(1, 1), data_layout=layout, kernel_layout=klayout, kernel_size=(3, 3), deformable_groups=dgroups, groups=groups, channels=4)
    assert run_infer_type(y).args[2].checked_type == relay.TensorType(w.shape)


@program
def proposals_have_a_type():
    p, b, i = relay.var("p", relay.ty.TensorType((1, 18, 12, 12))), relay.var("b", relay.ty.TensorType((1, 36, 12, 12))), relay.var("i", relay.ty.TensorType((1, 3)))
    z = relay.vision.proposal(p, b, i, scales=(4, 8, 16), ratios=(0.5, 1, 2), feature_stride=16, threshold=0.7, rpn_pre_nms_top_n=200, rpn_post_nms_top_n=4, rpn_min_size=16, iou_loss=False)
    assert run_infer_type(z).checked_type == relay.ty.TensorType((4, 5), "float32")


# ---- level 6
@program(*[(d, a) for d in ("int32", "float32", "int64") for a in (0, -1)])
def sorted_by_an_axis(dtype, axis):
    a = np.random.RandomState(1).permutation(24).reshape(2, 3, 4).astype("float32")
    x = relay.var("x", relay.TensorType((2, 3, 4), "float32"))
    for ascend in (True, False):
        z = relay.argsort(x, axis=axis, is_ascend=ascend, dtype=dtype)
        got = run(relay.Function([x], z), a)
        np.testing.assert_equal(got, np.argsort(a if ascend else -a, axis=axis))
        assert got.dtype == dtype
        np.testing.assert_equal(run(relay.Function([x], relay.sort(x, axis=axis, is_ascend=ascend)), a), np.sort(a, axis) if ascend else -np.sort(-a, axis))


@program(*[(k, t) for k in (0, 1, 5) for t in ("both", "values", "indices")])
def largest(k, kind):
    a = np.random.RandomState(1).permutation(100).reshape(5, 20).astype("float32")
    for axis in (0, -1):
        for ascend in (True, False):
            for dtype in ("int64", "float32"):
                x = relay.var("x", relay.TensorType((5, 20), "float32"))
                out = relay.topk(x, k, axis, kind, ascend, dtype)
                if isinstance(out, relay.expr.TupleWrapper):
                    out = out.astuple()
                got = run(relay.Function([x], out), a)
                n = k if k >= 1 else a.shape[axis]
                order = np.take(np.argsort(a if ascend else -a, axis), range(min(n, a.shape[axis])), axis)
                values = np.take_along_axis(a, order, axis)
                if kind == "both":
                    np.testing.assert_equal(got[0], values)
                    np.testing.assert_equal(got[1], order)
                else:
                    np.testing.assert_equal(got, values if kind == "values" else order)
