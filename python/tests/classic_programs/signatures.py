# SPDX-License-Identifier: Apache-2.0
"""Operators called with the arguments' classic names and in their classic order."""
import inspect
import numpy as np
import tvm
from harness import program, raises, numbers
from tvm import relay, te, tir
from tvm.relay.testing import run_infer_type

T = lambda *s, d="float32": relay.var("x", shape=s, dtype=d)
V = T
# (operator, signature of 0.9: name=value; the result's shape or None)
CALLS = [
    ("nn.conv1d", dict(data=T(1, 3, 8), weight=T(4, 3, 3), strides=1, padding=0, dilation=1, groups=1, channels=4, kernel_size=3, data_layout="NCW", kernel_layout="OIW", out_layout="", out_dtype=""), (1, 4, 6)),
    ("nn.conv2d", dict(data=T(1, 3, 8, 8), weight=T(4, 3, 3, 3), strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=4, kernel_size=(3, 3), data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype=""), (1, 4, 6, 6)),
    ("nn.conv3d", dict(data=T(1, 3, 8, 8, 8), weight=T(4, 3, 3, 3, 3), strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, channels=4, kernel_size=(3, 3, 3), data_layout="NCDHW", kernel_layout="OIDHW", out_layout="", out_dtype=""), (1, 4, 6, 6, 6)),
    ("nn.conv2d_transpose", dict(data=T(1, 3, 8, 8), weight=T(3, 4, 3, 3), strides=(1, 1), padding=(0, 0), dilation=(1, 1), channels=4, kernel_size=(3, 3), groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="", output_padding=(0, 0), out_dtype=""), (1, 4, 10, 10)),
    ("nn.conv1d_transpose", dict(data=T(1, 3, 8), weight=T(3, 4, 3), strides=(1,), padding=(0,), dilation=(1,), channels=4, kernel_size=(3,), groups=1, data_layout="NCW", kernel_layout="OIW", out_layout="", output_padding=(0,), out_dtype=""), (1, 4, 10)),
    ("nn.softmax", dict(data=T(2, 3), axis=-1), (2, 3)), ("nn.log_softmax", dict(data=T(2, 3), axis=-1), (2, 3)), ("nn.fast_softmax", dict(data=T(2, 3), axis=-1), (2, 3)),
    ("nn.max_pool1d", dict(data=T(1, 3, 8), pool_size=(2,), strides=(2,), dilation=(1,), padding=(0,), layout="NCW", out_layout="", ceil_mode=False), (1, 3, 4)),
    ("nn.max_pool2d", dict(data=T(1, 3, 8, 8), pool_size=(2, 2), strides=(2, 2), dilation=(1, 1), padding=(0, 0), layout="NCHW", out_layout="", ceil_mode=False), (1, 3, 4, 4)),
    ("nn.max_pool3d", dict(data=T(1, 3, 8, 8, 8), pool_size=(2, 2, 2), strides=(2, 2, 2), dilation=(1, 1, 1), padding=(0, 0, 0), layout="NCDHW", out_layout="", ceil_mode=False), (1, 3, 4, 4, 4)),
    ("nn.avg_pool1d", dict(data=T(1, 3, 8), pool_size=(2,), strides=(2,), dilation=(1,), padding=(0,), layout="NCW", out_layout="", ceil_mode=False, count_include_pad=False), (1, 3, 4)),
    ("nn.avg_pool2d", dict(data=T(1, 3, 8, 8), pool_size=(2, 2), strides=(2, 2), dilation=(1, 1), padding=(0, 0), layout="NCHW", out_layout="", ceil_mode=False, count_include_pad=False), (1, 3, 4, 4)),
    ("nn.max_pool2d_grad", dict(out_grad=T(1, 3, 4, 4), data=T(1, 3, 8, 8), pool_size=(2, 2), strides=(2, 2), padding=(0, 0), layout="NCHW", out_layout="", ceil_mode=False), (1, 3, 8, 8)),
    ("nn.avg_pool2d_grad", dict(out_grad=T(1, 3, 4, 4), data=T(1, 3, 8, 8), pool_size=(2, 2), strides=(2, 2), padding=(0, 0), layout="NCHW", out_layout="", ceil_mode=False, count_include_pad=False), (1, 3, 8, 8)),
    ("nn.global_max_pool2d", dict(data=T(1, 3, 8, 8), layout="NCHW", out_layout=""), (1, 3, 1, 1)), ("nn.global_avg_pool2d", dict(data=T(1, 3, 8, 8), layout="NCHW", out_layout=""), (1, 3, 1, 1)),
    ("nn.global_max_pool1d", dict(data=T(1, 3, 8), layout="NCW", out_layout=""), (1, 3, 1)), ("nn.global_avg_pool3d", dict(data=T(1, 3, 8, 8, 8), layout="NCDHW", out_layout=""), (1, 3, 1, 1, 1)),
    ("nn.adaptive_max_pool2d", dict(data=T(1, 3, 8, 8), output_size=(2, 2), layout="NCHW", out_layout=""), (1, 3, 2, 2)), ("nn.adaptive_avg_pool1d", dict(data=T(1, 3, 8), output_size=(2,), layout="NCW", out_layout=""), (1, 3, 2)),
    ("nn.adaptive_avg_pool2d", dict(data=T(1, 3, 8, 8), output_size=(2, 2), layout="NCHW", out_layout=""), (1, 3, 2, 2)), ("nn.adaptive_max_pool3d", dict(data=T(1, 3, 8, 8, 8), output_size=(2, 2, 2), layout="NCDHW", out_layout=""), (1, 3, 2, 2, 2)),
    ("nn.upsampling", dict(data=T(1, 3, 8, 8), scale_h=2, scale_w=2, layout="NCHW", method="nearest_neighbor", align_corners=False), (1, 3, 16, 16)),
    ("nn.upsampling3d", dict(data=T(1, 3, 8, 8, 8), scale_d=2, scale_h=2, scale_w=2, layout="NCDHW", method="nearest_neighbor", coordinate_transformation_mode="half_pixel"), (1, 3, 16, 16, 16)),
    ("nn.batch_flatten", dict(data=T(2, 3, 4)), (2, 12)), ("nn.bias_add", dict(data=T(2, 3), bias=T(3), axis=1), (2, 3)), ("nn.matmul", dict(tensor_a=T(2, 3), tensor_b=T(3, 4), units=None, out_dtype="", transpose_a=False, transpose_b=False), (2, 4)),
    ("nn.dense", dict(data=T(2, 3), weight=T(4, 3), units=None, out_dtype=""), (2, 4)), ("nn.contrib_dense_pack", dict(data=T(2, 8), weight=T(1, 8, 4), weight_layout="NC4n", units=None, out_dtype=""), (2, 4)), ("nn.fifo_buffer", dict(data=T(1, 3, 1), buffer=T(1, 3, 4), axis=2), (1, 3, 4)),
    ("nn.relu", dict(data=T(2)), (2,)), ("nn.leaky_relu", dict(data=T(2), alpha=0.01), (2,)), ("nn.prelu", dict(data=T(1, 3, 2), alpha=T(3), axis=1), (1, 3, 2)), ("nn.pad", dict(data=T(2, 3), pad_width=((1, 1), (0, 0)), pad_value=0, pad_mode="constant"), (4, 3)),
    ("nn.dilate", dict(data=T(2, 3), strides=(2, 2), dilation_value=0.0), (3, 5)), ("nn.mirror_pad", dict(data=T(3, 3), pad_width=((1, 1), (1, 1)), mode="SYMMETRIC"), (5, 5)), ("nn.lrn", dict(data=T(1, 3, 4, 4), size=5, axis=1, bias=2, alpha=0.00001, beta=0.75), (1, 3, 4, 4)),
    ("nn.l2_normalize", dict(data=T(1, 3, 4), eps=0.1, axis=[1]), (1, 3, 4)), ("nn.dropout", dict(data=T(2), rate=0.5), (2,)), ("nn.instance_norm", dict(data=T(1, 3, 4), gamma=T(3), beta=T(3), axis=1, epsilon=1e-5, center=True, scale=True), (1, 3, 4)),
    ("nn.layer_norm", dict(data=T(2, 3), gamma=T(3), beta=T(3), axis=-1, epsilon=1e-5, center=True, scale=True), (2, 3)), ("nn.group_norm", dict(data=T(1, 4, 4), gamma=T(4), beta=T(4), num_groups=2, axis=1, epsilon=1e-5, center=True, scale=True), (1, 4, 4)),
    ("nn.batch_matmul", dict(tensor_a=T(1, 2, 3), tensor_b=T(1, 4, 3), out_dtype="", transpose_a=False, transpose_b=True), (1, 2, 4)), ("nn.sparse_transpose", None, None), ("nn.contrib_conv2d_nchwc", dict(data=T(1, 1, 8, 8, 4), kernel=T(1, 1, 3, 3, 4, 4), strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=4, kernel_size=(3, 3), data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="", out_dtype=""), (1, 1, 6, 6, 4)),
    ("nn.deformable_conv2d", dict(data=T(1, 3, 8, 8), offset=T(1, 18, 6, 6), weight=T(4, 3, 3, 3), strides=(1, 1), padding=(0, 0), dilation=(1, 1), deformable_groups=1, groups=1, channels=4, kernel_size=(3, 3), data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype=""), (1, 4, 6, 6)),
    ("nn.cross_entropy", dict(predictions=T(2, 3), targets=T(2, 3)), ()), ("nn.cross_entropy_with_logits", dict(predictions=T(2, 3), targets=T(2, 3)), ()), ("nn.nll_loss", dict(predictions=T(2, 3), targets=T(2, d="int32"), weights=T(3), reduction="mean", ignore_index=-100), ()),
    ("nn.depth_to_space", dict(data=T(1, 8, 2, 2), block_size=2, layout="NCHW", mode="DCR"), (1, 2, 4, 4)), ("nn.space_to_depth", dict(data=T(1, 2, 4, 4), block_size=2, layout="NCHW"), (1, 8, 2, 2)),
    ("nn.correlation", dict(data1=T(1, 3, 8, 8), data2=T(1, 3, 8, 8), kernel_size=1, max_displacement=2, stride1=1, stride2=1, padding=2, is_multiply=True, layout="NCHW"), (1, 25, 8, 8)),
    ("nn.space_to_batch_nd", dict(data=T(1, 4, 4, 1), block_shape=(2, 2), paddings=((0, 0), (0, 0)), pad_value=0), (4, 2, 2, 1)), ("nn.batch_to_space_nd", dict(data=T(4, 2, 2, 1), block_shape=(2, 2), crops=((0, 0), (0, 0))), (1, 4, 4, 1)),
    ("nn.conv2d_backward_weight", dict(grad=T(1, 4, 6, 6), data=T(1, 3, 8, 8), strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=4, kernel_size=(3, 3), grad_layout="NCHW", data_layout="NCHW", kernel_layout="OIHW", out_dtype=""), (4, 3, 3, 3)),
    ("cast", dict(data=T(2), dtype="int8"), (2,)), ("cast_like", dict(data=T(2), dtype_like=T(1, d="int8")), (2,)), ("reinterpret", dict(data=T(2), dtype="int32"), (2,)), ("expand_dims", dict(data=T(2), axis=0, num_newaxis=1), (1, 2)),
    ("transpose", dict(data=T(2, 3), axes=None), (3, 2)), ("squeeze", dict(data=T(1, 3), axis=None), (3,)), ("reshape", dict(data=T(2, 3), newshape=(6,), allowzero=False), (6,)), ("adv_index", dict(inputs=[T(3, 4), relay.const([0, 1])]), (2, 4)),
    ("argwhere", dict(condition=T(2, 3)), None), ("scatter", dict(data=T(3, 3), indices=T(1, 3, d="int64"), updates=T(1, 3), axis=0), (3, 3)), ("scatter_add", dict(data=T(3, 3), indices=T(1, 3, d="int64"), updates=T(1, 3), axis=0), (3, 3)),
    ("scatter_nd", dict(data=T(3, 3), indices=T(1, 2, d="int64"), updates=T(2, 3), mode="update"), (3, 3)), ("reshape_like", dict(data=T(2, 3), shape_like=T(6), lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None), (6,)),
    ("take", dict(data=T(3, 4), indices=T(2, d="int32"), axis=0, batch_dims=0, mode="clip"), (2, 4)), ("full", dict(fill_value=relay.const(1.0), shape=(2, 3), dtype=""), (2, 3)), ("full_like", dict(data=T(2), fill_value=relay.const(1.0)), (2,)),
    ("arange", dict(start=relay.const(0.0), stop=relay.const(4.0), step=relay.const(1.0), dtype="float32"), (4,)), ("meshgrid", dict(data=[T(2), T(3)], indexing="ij"), None), ("repeat", dict(data=T(2), repeats=2, axis=0), (4,)), ("tile", dict(data=T(2), reps=(2,)), (4,)),
    ("reverse", dict(data=T(2), axis=0), (2,)), ("reverse_sequence", dict(data=T(2, 3), seq_lengths=T(2, d="int32"), seq_axis=1, batch_axis=0), (2, 3)), ("where", dict(condition=T(2, d="bool"), x=T(2), y=T(2)), (2,)),
    ("broadcast_to", dict(data=T(1), shape=(3,)), (3,)), ("broadcast_to_like", dict(data=T(1), broadcast_type=T(3)), (3,)), ("collapse_sum_like", dict(data=T(2, 3), collapse_type=T(3)), (3,)), ("collapse_sum_to", dict(data=T(2, 3), shape=(3,)), (3,)),
    ("split", dict(data=T(4, 2), indices_or_sections=2, axis=0), None), ("strided_slice", dict(data=T(4, 4), begin=[0, 0], end=[2, 2], strides=None, axes=None, slice_mode="end"), (2, 2)), ("strided_set", dict(data=T(4), v=T(2), begin=[0], end=[2], strides=None), (4,)),
    ("slice_like", dict(data=T(4, 4), shape_like=T(2, 2), axes=None), (2, 2)), ("layout_transform", dict(data=T(1, 2, 3, 4), src_layout="NCHW", dst_layout="NHWC"), (1, 3, 4, 2)), ("reverse_reshape", dict(data=T(2, 6), newshape=(-1, 3)), (4, 3)),
    ("gather", dict(data=T(3, 4), axis=1, indices=T(3, 2, d="int64")), (3, 2)), ("gather_nd", dict(data=T(3, 4), indices=T(1, 2, d="int64"), batch_dims=0, index_rank=None), (2, 4)), ("sequence_mask", dict(data=T(3, 2), valid_length=T(2, d="int32"), mask_value=0, axis=0), (3, 2)),
    ("one_hot", dict(indices=T(3, d="int32"), on_value=relay.const(1.0), off_value=relay.const(0.0), depth=4, axis=-1, dtype="float32"), (3, 4)), ("unravel_index", dict(indices=T(3, d="int32"), shape=relay.const([2, 3])), (2, 3)), ("sparse_to_dense", dict(sparse_indices=T(2, d="int32"), output_shape=(4,), sparse_values=T(2), default_value=relay.const(0.0)), (4,)),
    ("matrix_set_diag", dict(data=T(3, 3), diagonal=T(3), k=0, align="RIGHT_LEFT"), (3, 3)), ("cumsum", dict(data=T(3), axis=None, dtype=None, exclusive=None), (3,)), ("cumprod", dict(data=T(3), axis=None, dtype=None, exclusive=None), (3,)), ("invert_permutation", dict(data=T(3, d="int32")), (3,)),
    ("stft", dict(data=T(1, 20), n_fft=4, hop_length=None, win_length=None, window=None, normalized=False, onesided=True), None), ("trilu", dict(data=T(3, 3), k=relay.const(0, "int64"), upper=True), (3, 3)), ("sliding_window", dict(data=T(2, 8), axis=1, window_shape=[3], strides=[1]), (2, 6, 3)),
    ("sum", dict(data=T(2, 3), axis=None, keepdims=False, exclude=False), ()), ("argmax", dict(data=T(2, 3), axis=None, keepdims=False, exclude=False, select_last_index=False), ()), ("variance", dict(data=T(2, 3), axis=None, keepdims=False, exclude=False, unbiased=False, with_mean=None), ()),
    ("std", dict(data=T(2, 3), axis=None, keepdims=False, exclude=False, unbiased=False), ()), ("logsumexp", dict(data=T(2, 3), axis=None, keepdims=False), ()), ("all", dict(data=T(2, d="bool"), axis=None, keepdims=False, exclude=False), ()), ("prod", dict(data=T(2, 3), axis=1, keepdims=True, exclude=False), (2, 1)),
    ("sort", dict(data=T(3), axis=-1, is_ascend=1), (3,)), ("argsort", dict(data=T(3), axis=-1, is_ascend=1, dtype="int32"), (3,)), ("topk", dict(data=T(3, 4), k=2, axis=-1, ret_type="values", is_ascend=False, dtype="int32"), (3, 2)), ("searchsorted", dict(sorted_sequence=T(5), values=T(2), right=False, dtype="int32"), (2,)),
    ("clip", dict(a=T(2), a_min=0.0, a_max=1.0), (2,)), ("fixed_point_multiply", dict(data=T(2, d="int32"), multiplier=1 << 30, shift=0), (2,)), ("concatenate", dict(data=[T(2), T(3)], axis=0), (5,)), ("stack", dict(data=[T(2), T(2)], axis=0), (2, 2)), ("einsum", dict(data=[T(2, 3), T(3, 4)], equation="ij,jk->ik"), (2, 4)),
    ("zeros", dict(shape=(2,), dtype="float32"), (2,)), ("ones_like", dict(data=T(2)), (2,)), ("copy", dict(data=T(2)), (2,)), ("shape_of", dict(data=T(2, 3), dtype="int32"), (2,)), ("device_copy", dict(data=T(2), src_device=tvm.cpu(), dst_device=tvm.cpu()), (2,)), ("power", dict(lhs=T(2), rhs=T(2)), (2,)), ("add", dict(lhs=T(2), rhs=T(2)), (2,)),
    ("maximum", dict(lhs=T(2), rhs=T(2)), (2,)), ("left_shift", dict(lhs=T(2, d="int32"), rhs=T(2, d="int32")), (2,)), ("logical_xor", dict(lhs=T(2, d="bool"), rhs=T(2, d="bool")), (2,)), ("exp", dict(data=T(2)), (2,)), ("erf", dict(data=T(2)), (2,)), ("negative", dict(data=T(2)), (2,)), ("bitwise_not", dict(data=T(2, d="int32")), (2,)),
    ("image.resize1d", dict(data=T(1, 3, 4), size=(8,), roi=None, layout="NCW", method="linear", coordinate_transformation_mode="half_pixel", rounding_method="", cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None), (1, 3, 8)),
    ("image.resize2d", dict(data=T(1, 3, 4, 4), size=(8, 8), roi=None, layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel", rounding_method="", cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None), (1, 3, 8, 8)),
    ("image.resize3d", dict(data=T(1, 3, 4, 4, 4), size=(8, 8, 8), roi=None, layout="NCDHW", method="linear", coordinate_transformation_mode="half_pixel", rounding_method="", cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None), (1, 3, 8, 8, 8)),
    ("image.crop_and_resize", dict(data=T(1, 3, 4, 4), boxes=T(2, 4), box_indices=T(2, d="int32"), crop_size=(2, 2), layout="NCHW", method="bilinear", extrapolation_value=0.0, out_dtype=None), (2, 3, 2, 2)),
    ("image.dilation2d", dict(data=T(1, 3, 8, 8), weight=T(3, 3, 3), strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout="NCHW", kernel_layout="IHW", out_dtype=""), (1, 3, 6, 6)), ("image.affine_grid", dict(data=T(1, 2, 3), target_shape=(4, 5)), (1, 2, 4, 5)),
    ("image.grid_sample", dict(data=T(1, 3, 4, 4), grid=T(1, 2, 5, 5), method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True), (1, 3, 5, 5)),
    ("vision.multibox_prior", dict(data=T(1, 3, 4, 4), sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False), (1, 16, 4)), ("vision.get_valid_counts", dict(data=T(1, 5, 6), score_threshold=0.5, id_index=0, score_index=1), None),
    ("vision.roi_align", dict(data=T(1, 3, 8, 8), rois=T(2, 5), pooled_size=(3, 3), spatial_scale=1.0, sample_ratio=-1, layout="NCHW", mode="avg"), (2, 3, 3, 3)), ("vision.roi_pool", dict(data=T(1, 3, 8, 8), rois=T(2, 5), pooled_size=(3, 3), spatial_scale=1.0, layout="NCHW"), (2, 3, 3, 3)),
    ("vision.yolo_reorg", dict(data=T(1, 4, 4, 4), stride=2), (1, 16, 2, 2)), ("vision.non_max_suppression", dict(data=T(1, 5, 6), valid_count=T(1, d="int32"), indices=T(1, 5, d="int32"), max_output_size=-1, iou_threshold=0.5, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, return_indices=False, invalid_to_bottom=False), (1, 5, 6)),
    ("annotation.on_device", dict(body=T(2), device=tvm.cpu(), constrain_result=False, constrain_body=True), (2,)), ("annotation.stop_fusion", dict(data=T(2)), (2,)), ("annotation.checkpoint", dict(data=T(2)), (2,)), ("annotation.compiler_begin", dict(data=T(2), compiler="c"), (2,)), ("annotation.cast_hint", dict(data=T(2), dtype="int8"), (2,)),
    ("segment_sum", dict(data=T(3), segment_ids=T(3, d="int32"), num_segments=None), None), ("unique", dict(data=T(3, d="int32"), is_sorted=True, return_counts=False), None), ("sparse_reshape", dict(sparse_indices=T(2, 2, d="int64"), prev_shape=relay.const([2, 3], "int64"), new_shape=relay.const([3, 2], "int64")), None),
    ("dft", None, None), ("nn.global_avg_pool1d", dict(data=T(1, 3, 8)), (1, 3, 1)), ("rsqrt", dict(data=T(2)), (2,)), ("nn.batch_norm", dict(data=T(1, 3, 4), gamma=T(3), beta=T(3), moving_mean=T(3), moving_var=T(3), axis=1, epsilon=1e-5, center=True, scale=True), None),
]
CALLS = [c for c in CALLS if c[1] is not None]


def find(name):
    f = relay
    for part in name.split("."):
        f = getattr(f, part)
    return f


def outcome(e):
    e = e.astuple() if isinstance(e, relay.expr.TupleWrapper) else e
    return run_infer_type(e).checked_type


@program(*CALLS)
def by_name(name, kwargs, shape):
    t = outcome(find(name)(**kwargs))
    if shape is not None:
        assert tuple(int(d) for d in t.shape) == shape, t


@program(*CALLS)
def by_place(name, kwargs, shape):
    t = outcome(find(name)(*kwargs.values()))
    if shape is not None:
        assert tuple(int(d) for d in t.shape) == shape, t


@program(*CALLS)
def with_defaults(name, kwargs, shape):
    """What the classic functions have defaults for may be left out: everything that is None, False, empty or a usual value."""
    needed = {k: v for k, v in kwargs.items() if isinstance(v, (relay.Expr, list, tvm.runtime.Device)) or k in ("dtype", "newshape", "shape", "pad_width", "pool_size", "block_size", "block_shape", "paddings", "crops", "reps", "repeats", "equation", "size", "crop_size", "pooled_size", "spatial_scale",
        "indices_or_sections", "begin", "end", "axis", "target_shape", "output_size", "strides", "window_shape", "k", "depth", "eps", "compiler", "output_shape", "src_layout", "dst_layout", "multiplier", "shift", "n_fft", "num_groups", "kernel_layout", "weight_layout", "data_layout", "scale_h", "scale_w", "scale_d", "channels", "kernel_size", "a_min", "a_max", "stride", "kernel_size", "max_displacement", "stride1", "stride2", "padding", "is_multiply", "layout", "alpha", "ret_type", "seq_axis", "batch_axis", "score_threshold", "return_indices")}
    if name in ("nn.conv2d_backward_weight", "annotation.on_device"):
        needed = kwargs
    outcome(find(name)(**needed))
