# SPDX-License-Identifier: Apache-2.0
"""Single-shot detectors: anchors, and decoding of boxes."""
from __future__ import annotations

import math
from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import Select, ir_builder, op
from .nms import non_max_suppression


def _floats(values: Any) -> list[float]:
    return [float(v) for v in (values if isinstance(values, (list, tuple)) or hasattr(values, "__len__") else [values])]


def multibox_prior(data: Tensor, sizes: Any = (1,), ratios: Any = (1,), steps: Any = (-1, -1), offsets: Any = (0.5, 0.5), clip: bool = False) -> Tensor:
    """The anchors of every position of (N, C, H, W): corners relative to the image size, (1, H * W * boxes, 4). There is one box per
    size, and one of the first size per additional ratio."""
    sizes, ratios, steps, offsets = map(_floats, (sizes, ratios, steps, offsets))
    height, width = int(data.shape[2]), int(data.shape[3])
    narrow = height / width
    halves = [(s * narrow / 2, s / 2) for s in sizes] + [(sizes[0] * narrow * math.sqrt(r) / 2, sizes[0] / math.sqrt(r) / 2) for r in ratios[1:]]
    step_y, step_x = steps[0] if steps[0] > 0 else 1 / height, steps[1] if steps[1] > 0 else 1 / width
    boxes = len(halves)

    def of_box(k: Any, side: int) -> Any:
        out = op.const(halves[-1][side], data.dtype)
        for place in reversed(range(boxes - 1)):
            out = Select(k == place, op.const(halves[place][side], data.dtype), out)
        return out

    def corner(_: Any, place: Any, field: Any) -> Any:
        k, at = op.indexmod(place, boxes), op.indexdiv(place, boxes)
        y = (op.indexdiv(at, width).astype(data.dtype) + op.const(offsets[0], data.dtype)) * op.const(step_y, data.dtype)
        x = (op.indexmod(at, width).astype(data.dtype) + op.const(offsets[1], data.dtype)) * op.const(step_x, data.dtype)
        values = [x - of_box(k, 0), y - of_box(k, 1), x + of_box(k, 0), y + of_box(k, 1)]
        out = Select(field == 0, values[0], Select(field == 1, values[1], Select(field == 2, values[2], values[3])))
        return te.max(te.min(out, op.const(1, data.dtype)), op.const(0, data.dtype)) if clip else out
    return te.compute((1, height * width * boxes, 4), corner, name="multibox_prior")


def multibox_transform_loc(cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01, variances: Any = (0.1, 0.1, 0.2, 0.2)) -> list[Tensor]:
    """Decoded boxes (N, anchors, 6) of class, score and corners, objects first, and the number of objects, (N,). cls_prob: (N, classes,
    anchors), where class 0 is the background; loc_pred: (N, anchors * 4); anchor: (1, anchors, 4)."""
    batches, classes, count = cls_prob.shape
    factors, kind = _floats(variances), cls_prob.dtype

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        scores, moves, anchors = (ib.buffer_ptr(i) for i in ins)
        out, valid = (ib.buffer_ptr(o) for o in outs)
        best, chosen = ib.allocate(kind, (1,), name="best"), ib.allocate("int32", (1,), name="chosen")

        def held(value: Any) -> Any:
            return te.max(op.const(0, kind), te.min(op.const(1, kind), value)) if clip else value
        with ib.for_range(0, batches, name="b") as b:
            valid[b] = 0
            with ib.for_range(0, count, name="i") as i:
                with ib.for_range(0, 6, name="f") as f:
                    out[b, i, f] = op.const(-1, kind)
            with ib.for_range(0, count, name="i") as i:
                best[0], chosen[0] = op.const(-1, kind), 0
                with ib.for_range(0, classes - 1, name="k") as k:
                    with ib.if_scope(scores[b, k + 1, i] > best[0]):
                        best[0] = scores[b, k + 1, i]
                        chosen[0] = k + 1
                with ib.if_scope(op.all(chosen[0] > 0, best[0] >= op.const(float(threshold), kind))):
                    corners = [anchors[0, i, n] for n in range(4)]
                    move = [moves[b, i * 4 + n] * op.const(factors[n], kind) for n in range(4)]
                    half, two = op.const(0.5, kind), op.const(2, kind)
                    wide, tall = corners[2] - corners[0], corners[3] - corners[1]
                    x, y = move[0] * wide + (corners[0] + corners[2]) / two, move[1] * tall + (corners[1] + corners[3]) / two
                    w, h = op.exp(move[2]) * wide * half, op.exp(move[3]) * tall * half
                    row = ib.let("row", valid[b])
                    out[b, row, 0] = (chosen[0] - 1).astype(kind)
                    out[b, row, 1] = best[0]
                    for n, value in enumerate((x - w, y - h, x + w, y + h)):
                        out[b, row, n + 2] = held(value)
                    valid[b] = row + 1
        return ib.get()
    return te.extern([(batches, count, 6), (batches,)], [cls_prob, loc_pred, anchor], body, name="multibox_transform_loc", dtype=[kind, "int32"], tag="multibox_transform_loc")


def multibox_detection(cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01, nms_threshold: float = 0.5, force_suppress: bool = False,
                       variances: Any = (0.1, 0.1, 0.2, 0.2), nms_topk: int = -1) -> Tensor:
    """multibox_transform_loc, then non_max_suppression."""
    boxes, valid = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    numbers = te.compute((boxes.shape[0], boxes.shape[1]), lambda b, i: i, name="numbers")
    return non_max_suppression(boxes, valid, numbers, -1, nms_threshold, force_suppress, nms_topk, return_indices=False)


__all__ = ["multibox_detection", "multibox_prior", "multibox_transform_loc"]
