# SPDX-License-Identifier: Apache-2.0
"""Schedules for x86 processors: those of convolutions and products keep a tile of the result while it is summed; the others are the
generic ones."""
from __future__ import annotations

from typing import Any

from ... import te
from ...te.schedule import Schedule, Stage
from ...te.tensor import ComputeOp
from .. import generic
from ..generic import schedule_adaptive_pool, schedule_concatenate, schedule_extern, schedule_injective, schedule_injective_from_existing, schedule_pool, schedule_reduce, schedule_softmax

_ROWS, _VECTORS = 4, 2  # of a tile: sums that are open at a time


def _lanes() -> int:
    from ...target import Target
    from .utils import get_simd_32bit_lanes
    return get_simd_32bit_lanes() if Target.current() is not None and str(Target.current(allow_none=False).mcpu) else 8


def _divisor(extent: Any, most: int) -> int:
    """The largest divisor up to `most` of a size; of a free one, `most`."""
    if not isinstance(extent, int):
        return most
    return next(d for d in range(min(most, extent), 0, -1) if extent % d == 0)


def _tiled(s: Schedule, stage: Stage, rows: int) -> None:
    """Sums of a tile, `rows` of the axis `rows` by vectors of the last axis, in a copy that is stored when they are done."""
    tensor = stage.op.output(0)
    tile = s.cache_write(tensor, "global")
    out = s[tensor]
    axes = list(out.op.axis)
    wide = _divisor(axes[-1].dom.extent, _VECTORS * _lanes())
    row_outer, row_inner = out.split(axes[rows], factor=_divisor(axes[rows].dom.extent, _ROWS))
    outer, inner = out.split(axes[-1], factor=wide)
    others = [a for i, a in enumerate(axes) if i not in (rows % len(axes), len(axes) - 1)]
    before = others[:rows % len(axes)]
    after = others[rows % len(axes):]
    out.reorder(*before, row_outer, *after, outer, row_inner, inner)
    out.vectorize(inner)
    s[tile].compute_at(out, outer)
    data, reduce = list(s[tile].op.axis), list(s[tile].op.reduce_axis)
    own = [a for i, a in enumerate(data) if i not in (rows % len(data), len(data) - 1)]
    s[tile].reorder(*own, *reduce, data[rows], data[-1])
    s[tile].vectorize(data[-1])
    s[tile].unroll(data[rows])
    out.parallel(out.fuse(*before, row_outer) if before else row_outer)


def _scheduled(outs: Any, rows: int) -> Schedule:
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    s = te.create_schedule([t.op for t in outs])
    sums = []
    for stage in list(s.stages):
        if not isinstance(stage.op, ComputeOp):
            continue
        if stage.op.reduce_axis:
            sums.append(stage.op)
        elif not stage.is_output and "pad" not in stage.op.name and "pack" not in stage.op.name:
            stage.compute_inline()
        elif not stage.is_output:  # read more than once: rows of it in parallel
            stage.parallel(stage.fuse(*list(stage.op.axis)[:-1]) if len(stage.op.axis) > 2 else list(stage.op.axis)[0])
    for op in sums:
        _tiled(s, s[op], rows)
    for t in outs:
        if isinstance(t.op, ComputeOp) and not t.op.reduce_axis and t.op.axis:
            generic.schedule_injective_from_existing(s, t)
    return s


def schedule_conv2d_nchw(outs: Any) -> Schedule:
    """Tiles of channels and columns."""
    return _scheduled(outs, 1)


def schedule_depthwise_conv2d_nchw(outs: Any) -> Schedule:
    return _scheduled(outs, -2)


def schedule_conv2d_nhwc(outs: Any) -> Schedule:
    """Tiles of columns and channels."""
    return _scheduled(outs, -2)


def schedule_dense(outs: Any) -> Schedule:
    """Tiles of rows and columns."""
    return _scheduled(outs, -2)


schedule_conv2d_NCHWc = schedule_depthwise_conv2d_nhwc = schedule_group_conv2d_nchw = schedule_conv2d_nhwc  # noqa: N816
schedule_dense_nopack = schedule_dense_pack = schedule_matmul = schedule_batch_matmul = schedule_dense
schedule_sparse_dense = schedule_scan = schedule_topk = schedule_extern

__all__ = ["schedule_adaptive_pool", "schedule_batch_matmul", "schedule_concatenate", "schedule_conv2d_NCHWc", "schedule_conv2d_nchw", "schedule_conv2d_nhwc", "schedule_dense", "schedule_dense_nopack",
           "schedule_dense_pack", "schedule_depthwise_conv2d_nchw", "schedule_depthwise_conv2d_nhwc", "schedule_extern", "schedule_group_conv2d_nchw", "schedule_injective",
           "schedule_injective_from_existing", "schedule_matmul", "schedule_pool", "schedule_reduce", "schedule_scan", "schedule_softmax", "schedule_sparse_dense", "schedule_topk"]
