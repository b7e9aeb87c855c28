# SPDX-License-Identifier: Apache-2.0
"""Object detection and image operators with their classic signatures, by full name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import Call, Expr, TupleWrapper, const


def _number(value: Any, dtype: str) -> Any:
    return value if isinstance(value, Expr) else const(value, dtype)


def _pair(value: Any) -> list[int]:
    return [int(value)] * 2 if isinstance(value, int) else [int(v) for v in value]


def _ints(value: Any) -> list[int]:
    return [int(value)] if isinstance(value, int) else [int(v) for v in value]


def _floats(values: Sequence[Any]) -> list[float]:
    return [float(v) for v in values]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _known(**attrs: Any) -> dict[str, Any]:
    return {k: v for k, v in attrs.items() if v is not None and v != ""}


def get_valid_counts(data: Any, score_threshold: Any, id_index: int = 0, score_index: int = 1) -> TupleWrapper:
    """(the number of boxes per image above the score threshold, those boxes moved to the front, their original indices)."""
    return TupleWrapper(Call("vision.get_valid_counts", [data, _number(score_threshold, "float32")], {"id_index": id_index, "score_index": score_index}), 3)


def non_max_suppression(data: Any, valid_count: Any, indices: Any, max_output_size: Any = -1, iou_threshold: Any = 0.5, force_suppress: bool = False, top_k: int = -1,
                        coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True, invalid_to_bottom: bool = False) -> Any:
    """Boxes in descending order of score, suppressed ones set to -1; or (indices of the kept boxes, their number)."""
    call = Call("vision.non_max_suppression", [data, valid_count, indices, _number(max_output_size, "int32"), _number(iou_threshold, "float32")],
                {"force_suppress": bool(force_suppress), "top_k": int(top_k), "coord_start": int(coord_start), "score_index": int(score_index),
                 "id_index": int(id_index), "return_indices": bool(return_indices), "invalid_to_bottom": bool(invalid_to_bottom)})
    return TupleWrapper(call, 2) if return_indices else call


def all_class_non_max_suppression(boxes: Any, scores: Any, max_output_boxes_per_class: Any = -1, iou_threshold: Any = -1.0, score_threshold: Any = -1.0,
                                  output_format: str = "onnx") -> TupleWrapper:
    """(indices, number), or with "tensorflow" (indices, scores, number per image)."""
    call = Call("vision.all_class_non_max_suppression", [boxes, scores, _number(max_output_boxes_per_class, "int32"), _number(iou_threshold, "float32"),
                                                         _number(score_threshold, "float32")], {"output_format": output_format})
    return TupleWrapper(call, 2 if output_format == "onnx" else 3)


def multibox_transform_loc(cls_prob: Any, loc_pred: Any, anchor: Any, clip: bool = True, threshold: float = 0.01,
                           variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2)) -> TupleWrapper:
    """(class, probability and box of each object, number of objects)."""
    return TupleWrapper(Call("vision.multibox_transform_loc", [cls_prob, loc_pred, anchor], {"clip": bool(clip), "threshold": float(threshold), "variances": _floats(variances)}), 2)


def multibox_prior(data: Any, sizes: Sequence[float] = (1.0,), ratios: Sequence[float] = (1.0,), steps: Sequence[float] = (-1.0, -1.0),
                   offsets: Sequence[float] = (0.5, 0.5), clip: bool = False) -> Call:
    return Call("vision.multibox_prior", [data], {"sizes": _floats(sizes), "ratios": _floats(ratios), "steps": _floats(steps), "offsets": _floats(offsets), "clip": bool(clip)})


def proposal(cls_prob: Any, bbox_pred: Any, im_info: Any, scales: Sequence[float], ratios: Sequence[float], feature_stride: int, threshold: float,
             rpn_pre_nms_top_n: int, rpn_post_nms_top_n: int, rpn_min_size: int, iou_loss: bool) -> Call:
    return Call("vision.proposal", [cls_prob, bbox_pred, im_info],
                {"scales": _floats(scales), "ratios": _floats(ratios), "feature_stride": int(feature_stride), "threshold": float(threshold),
                 "rpn_pre_nms_top_n": int(rpn_pre_nms_top_n), "rpn_post_nms_top_n": int(rpn_post_nms_top_n), "rpn_min_size": int(rpn_min_size), "iou_loss": bool(iou_loss)})


def roi_align(data: Any, rois: Any, pooled_size: Any, spatial_scale: float, sample_ratio: int = -1, layout: str = "NCHW", mode: Any = "avg") -> Call:
    return Call("vision.roi_align", [data, rois], {"pooled_size": _pair(pooled_size), "spatial_scale": float(spatial_scale), "sample_ratio": int(sample_ratio),
                                                   "layout": layout, "mode": _text(mode)})


def roi_pool(data: Any, rois: Any, pooled_size: Any, spatial_scale: float, layout: str = "NCHW") -> Call:
    return Call("vision.roi_pool", [data, rois], {"pooled_size": _pair(pooled_size), "spatial_scale": float(spatial_scale), "layout": layout})


def yolo_reorg(data: Any, stride: int) -> Call:
    return Call("vision.yolo_reorg", [data], {"stride": int(stride)})


def affine_grid(data: Any, target_shape: Any = None) -> Call:
    if target_shape is None:
        raise ValueError("image.affine_grid needs target_shape (height, width)")
    return Call("image.affine_grid", [data], {"target_shape": _pair(target_shape)})


def crop_and_resize(data: Any, boxes: Any, box_indices: Any, crop_size: Any, layout: str = "NCHW", method: str = "bilinear", extrapolation_value: float = 0,
                    out_dtype: str | None = None) -> Call:
    return Call("image.crop_and_resize", [data, boxes, box_indices], _known(crop_size=_pair(crop_size), layout=layout, method=method,
                                                                           extrapolation_value=float(extrapolation_value), out_dtype=out_dtype))


def dilation2d(data: Any, weight: Any, strides: Any = (1, 1), padding: Any = (0, 0), dilations: Any = (1, 1), data_layout: str = "NCHW", kernel_layout: str = "IHW",
               out_dtype: str = "") -> Call:
    return Call("image.dilation2d", [data, weight], _known(strides=_pair(strides), padding=_ints(padding), dilations=_pair(dilations), data_layout=data_layout,
                                                          kernel_layout=kernel_layout, out_dtype=out_dtype))


def deformable_conv2d(data: Any, offset: Any, weight: Any, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), deformable_groups: int = 1,
                      groups: int = 1, channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
                      out_layout: str = "", out_dtype: str = "") -> Call:
    return Call("nn.deformable_conv2d", [data, offset, weight],
                _known(strides=_pair(strides), padding=_ints(padding), dilation=_pair(dilation), deformable_groups=int(deformable_groups), groups=int(groups),
                       channels=channels, kernel_size=None if kernel_size is None else _pair(kernel_size), data_layout=data_layout, kernel_layout=kernel_layout,
                       out_layout=out_layout, out_dtype=out_dtype))


TABLE: dict[str, Any] = {"nn.deformable_conv2d": deformable_conv2d}
TABLE.update({f"image.{f.__name__}": f for f in (affine_grid, crop_and_resize, dilation2d)})
TABLE.update({f"vision.{f.__name__}": f for f in (all_class_non_max_suppression, get_valid_counts, multibox_prior, multibox_transform_loc, non_max_suppression, proposal,
                                                  roi_align, roi_pool, yolo_reorg)})

__all__ = ["TABLE"]
