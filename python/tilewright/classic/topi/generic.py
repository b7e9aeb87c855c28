# SPDX-License-Identifier: Apache-2.0
"""Schedules for processors by what kind of computation the outputs are: the data's outer loops on threads, the innermost one in vectors."""
from __future__ import annotations

from typing import Any

from .. import te
from ..te.schedule import Schedule, Stage
from ..te.tensor import PlaceholderOp

_LANES = 16


def default_schedule(outs: Any, auto_inline: bool = False) -> Schedule:
    """Every stage by itself; `auto_inline`: what is no reduction is written into what reads it."""
    s = te.create_schedule([t.op for t in (outs if isinstance(outs, (list, tuple)) else [outs])])
    if auto_inline:
        _inline(s)
    return s


def _inline(s: Schedule) -> None:
    for stage in s.stages:
        if not stage.is_output and not isinstance(stage.op, PlaceholderOp) and not stage.op.reduce_axis and stage.op.num_outputs == 1:
            stage.compute_inline()


def _vectors(s: Stage) -> None:
    """The data's last axis in vectors below the reduction, the first axes on threads."""
    axis, reduce = list(s.op.axis), list(s.op.reduce_axis)
    if not axis:
        return
    outer, inner = s.split(axis[-1], factor=_LANES)
    if reduce:
        s.reorder(*axis[:-1], outer, *reduce, inner)
    s.vectorize(inner)
    rest = [*axis[:-1], outer]
    s.parallel(s.fuse(*rest) if len(rest) > 1 else rest[0])


def schedule_injective(outs: Any) -> Schedule:
    """One loop over everything, what comes before written into it."""
    s = default_schedule(outs, auto_inline=True)
    for stage in s.stages:
        if not isinstance(stage.op, PlaceholderOp) and (stage.is_output or stage.op.reduce_axis):
            _vectors(stage)
    return s


def schedule_injective_from_existing(sch: Schedule, out: Any) -> Schedule:
    _vectors(sch[out])
    return sch


def schedule_reduce(outs: Any) -> Schedule:
    return schedule_injective(outs)


def schedule_softmax(outs: Any) -> Schedule:
    """Exponentials are kept, since sums and quotients read them; rows on threads."""
    s = default_schedule(outs)
    for stage in s.stages:
        if not isinstance(stage.op, PlaceholderOp) and stage.op.axis:
            stage.parallel(list(stage.op.axis)[0])
            if not stage.op.reduce_axis and len(stage.op.axis) > 1:
                stage.vectorize(stage.split(list(stage.op.axis)[-1], factor=_LANES)[1])
    return s


def _of_outputs(outs: Any) -> Schedule:
    return schedule_injective(outs)


(schedule_conv2d_nchw, schedule_conv2d_nhwc, schedule_depthwise_conv2d_nchw, schedule_dense, schedule_batch_matmul, schedule_global_pool, schedule_concatenate,
 schedule_broadcast, schedule_elemwise) = [_of_outputs] * 9


def schedule_pool(outs: Any, layout: str = "NCHW") -> Schedule:
    return schedule_injective(outs)


__all__ = ["default_schedule", "schedule_batch_matmul", "schedule_broadcast", "schedule_concatenate", "schedule_conv2d_nchw", "schedule_conv2d_nhwc", "schedule_dense", "schedule_depthwise_conv2d_nchw",
           "schedule_elemwise", "schedule_global_pool", "schedule_injective", "schedule_injective_from_existing", "schedule_pool", "schedule_reduce", "schedule_softmax"]
