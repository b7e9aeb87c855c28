# SPDX-License-Identifier: Apache-2.0
"""Score thresholds and non-maximum suppression. Rows without a box are -1."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import ir_builder, op
from ..ordering import argsort
from ..transform import strided_slice, squeeze



def get_valid_counts(data: Tensor, score_threshold: Any = 0, id_index: int = 0, score_index: int = 1) -> list[Tensor]:
    """From boxes (batches, boxes, fields): the number with a score above the threshold (and a class), these moved to the front, and
    their original indices."""
    batches, count, fields = data.shape

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        boxes = ib.buffer_ptr(ins[0])
        counts, kept, places = (ib.buffer_ptr(o) for o in outs)
        threshold = ib.buffer_ptr(ins[1])[tuple([0] * score_threshold.ndim)] if isinstance(score_threshold, Tensor) and score_threshold.ndim else \
            op.const(float(score_threshold), data.dtype) if not isinstance(score_threshold, Tensor) else ib.buffer_ptr(ins[1])[()]
        with ib.for_range(0, batches, name="b") as b:
            counts[b] = 0
            with ib.for_range(0, count, name="i") as i:
                counted = boxes[b, i, score_index] > threshold
                if id_index >= 0:
                    counted = op.all(counted, boxes[b, i, id_index] >= op.const(0, data.dtype))
                with ib.if_scope(counted):
                    with ib.for_range(0, fields, name="f") as f:
                        kept[b, counts[b], f] = boxes[b, i, f]
                    places[b, counts[b]] = i
                    counts[b] = counts[b] + 1
            with ib.for_range(0, count, name="i") as i:
                with ib.if_scope(i >= counts[b]):
                    with ib.for_range(0, fields, name="f") as f:
                        kept[b, i, f] = op.const(-1, data.dtype)
                    places[b, i] = -1
        return ib.get()
    inputs = [data, score_threshold] if isinstance(score_threshold, Tensor) else [data]
    return te.extern([(batches,), tuple(data.shape), (batches, count)], inputs, body, name="get_valid_counts", dtype=["int32", data.dtype, "int32"], tag="get_valid_counts_cpu")


def _overlap(boxes: Any, b: Any, i: Any, j: Any, first: int) -> Any:
    """Intersection over union of two boxes."""
    def edges(k: Any) -> list[Any]:
        corners = [boxes[b, k, first + n] for n in range(4)]
        return [te.min(corners[0], corners[2]), te.min(corners[1], corners[3]), te.max(corners[0], corners[2]), te.max(corners[1], corners[3])]
    one, other = edges(i), edges(j)
    zero = op.const(0, boxes.dtype)
    width = te.max(zero, te.min(one[2], other[2]) - te.max(one[0], other[0]))
    height = te.max(zero, te.min(one[3], other[3]) - te.max(one[1], other[1]))
    both = (one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1]) - width * height
    return op.if_then_else(both <= zero, zero, width * height / both)


def non_max_suppression(data: Tensor, valid_count: Tensor, indices: Tensor, max_output_size: Any = -1, iou_threshold: Any = 0.5, force_suppress: bool = False, top_k: int = -1,
                        coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True, invalid_to_bottom: bool = False) -> Any:
    """Boxes (batches, boxes, fields) in descending order of score, without those that overlap a better one (of their class) by
    iou_threshold or more.

    Returns the boxes; with return_indices their `indices`, (batches, boxes), and their number, (batches, 1)."""
    batches, count, fields = data.shape
    scores = squeeze(strided_slice(data, [0, 0, int(score_index)], [batches, count, int(score_index) + 1]), axis=2)
    order = argsort(scores, valid_count=valid_count, axis=1, is_ascend=False, dtype="int32")
    extra = [t for t in (max_output_size, iou_threshold) if isinstance(t, Tensor)]

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        boxes, valid, numbers, sorted_places = (ib.buffer_ptr(i) for i in ins[:4])
        given = {t: ib.buffer_ptr(buffer)[tuple([0] * t.ndim)] for t, buffer in zip(extra, ins[4:])}
        most = given.get(max_output_size, max_output_size) if isinstance(max_output_size, Tensor) else max_output_size
        limit = given.get(iou_threshold, iou_threshold) if isinstance(iou_threshold, Tensor) else iou_threshold
        limit = op.const(float(limit), data.dtype) if isinstance(limit, (int, float)) else limit
        if return_indices:
            out, (places, counts) = ib.allocate(data.dtype, tuple(data.shape), name="boxes"), (ib.buffer_ptr(o) for o in outs)
        else:
            out, places, counts = ib.buffer_ptr(outs[0]), ib.allocate("int32", (batches, count), name="places"), ib.allocate("int32", (batches, 1), name="counts")
        with ib.for_range(0, batches, name="b") as b:
            looked_at = te.min(valid[b], int(top_k)) if int(top_k) > 0 else valid[b]
            with ib.for_range(0, count, name="i") as i:
                with ib.if_scope(i < looked_at):
                    with ib.for_range(0, fields, name="f") as f:
                        out[b, i, f] = boxes[b, sorted_places[b, i], f]
                    places[b, i] = sorted_places[b, i]
                with ib.else_scope():
                    with ib.for_range(0, fields, name="f") as f:
                        out[b, i, f] = op.const(-1, data.dtype)
                    places[b, i] = -1
            counts[b, 0] = 0
            with ib.for_range(0, looked_at, name="i") as i:
                with ib.if_scope(places[b, i] >= 0):
                    within = counts[b, 0] < most
                    if not isinstance(most, int):
                        within = op.any(most < 0, within)
                    elif most < 0:
                        within = counts[b, 0] >= 0  # always true
                    with ib.if_scope(within):
                        counts[b, 0] = counts[b, 0] + 1
                        with ib.for_range(0, count, name="j") as j:
                            close = op.all(j > i, j < looked_at, places[b, j] >= 0)
                            if not force_suppress and id_index >= 0:
                                close = op.all(close, boxes[b, sorted_places[b, i], id_index] == boxes[b, sorted_places[b, te.min(j, count - 1)], id_index])
                            with ib.if_scope(op.all(close, limit > op.const(0, data.dtype))):
                                with ib.if_scope(_overlap(out, b, i, j, int(coord_start)) >= limit):
                                    places[b, j] = -1
                    with ib.else_scope():
                        places[b, i] = -1
            with ib.for_range(0, count, name="i") as i:
                with ib.if_scope(places[b, i] < 0):
                    with ib.for_range(0, fields, name="f") as f:
                        out[b, i, f] = op.const(-1, data.dtype)
            if return_indices or invalid_to_bottom:
                place = ib.allocate("int32", (1,), name="place")
                place[0] = 0
                with ib.for_range(0, count, name="i") as i:
                    with ib.if_scope(places[b, i] >= 0):
                        found = ib.let("found", places[b, i])
                        with ib.for_range(0, fields, name="f") as f:
                            held = ib.let("held", out[b, i, f])
                            out[b, i, f] = op.const(-1, data.dtype)
                            out[b, place[0], f] = held
                        places[b, i] = -1
                        places[b, place[0]] = numbers[b, found] if return_indices else found
                        place[0] = place[0] + 1
        return ib.get()
    shapes, dtypes = ([(batches, count), (batches, 1)], ["int32", "int32"]) if return_indices else ([tuple(data.shape)], [data.dtype])
    return te.extern(shapes, [data, valid_count, indices, order, *extra], body, name="nms", dtype=dtypes, tag="nms")


__all__ = ["get_valid_counts", "non_max_suppression"]
