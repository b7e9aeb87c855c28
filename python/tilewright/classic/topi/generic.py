# SPDX-License-Identifier: Apache-2.0
"""Generic CPU schedules by the kind of the outputs' computation: outer data loops are parallel, the innermost one vectorised."""
from __future__ import annotations

from typing import Any

from .. import te
from ..te.schedule import Schedule, Stage
from ..te.tensor import ComputeOp

_LANES = 16


def default_schedule(outs: Any, auto_inline: bool = False) -> Schedule:
    """The default schedule; with `auto_inline`, everything but reductions is inlined into its consumers."""
    s = te.create_schedule([t.op for t in (outs if isinstance(outs, (list, tuple)) else [outs])])
    if auto_inline:
        _inline(s)
    return s


def _inline(s: Schedule) -> None:
    for stage in s.stages:
        if not stage.is_output and isinstance(stage.op, ComputeOp) and not stage.op.reduce_axis and stage.op.num_outputs == 1:
            stage.compute_inline()


def _vectors(s: Stage) -> None:
    """Vectorises the last data axis below the reduction and parallelises the first axes."""
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
    """One fused loop over all elements, with producers inlined."""
    s = default_schedule(outs, auto_inline=True)
    for stage in s.stages:
        if isinstance(stage.op, ComputeOp) and (stage.is_output or stage.op.reduce_axis):
            _vectors(stage)
    return s


def schedule_injective_from_existing(sch: Schedule, out: Any) -> Schedule:
    _vectors(sch[out])
    return sch


def schedule_reduce(outs: Any) -> Schedule:
    return schedule_injective(outs)


def schedule_softmax(outs: Any) -> Schedule:
    """Keeps the exponentials in memory, since both sums and quotients read them; rows are parallel."""
    s = default_schedule(outs)
    for stage in s.stages:
        if isinstance(stage.op, ComputeOp) and stage.op.axis:
            stage.parallel(list(stage.op.axis)[0])
            if not stage.op.reduce_axis and len(stage.op.axis) > 1:
                stage.vectorize(stage.split(list(stage.op.axis)[-1], factor=_LANES)[1])
    return s


def _of_outputs(outs: Any) -> Schedule:
    return schedule_injective(outs)


_INJECTIVE = ("conv1d_ncw", "conv1d_nwc", "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc", "conv2d_NCHWc", "conv2d_transpose_nchw", "conv1d_transpose_ncw", "conv3d_ncdhw", "conv3d_ndhwc",
              "conv3d_transpose_ncdhw", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "group_conv2d_nchw", "group_conv2d_nhwc", "dense", "matmul", "batch_matmul", "global_pool", "concatenate", "broadcast",
              "elemwise", "lrn", "l2_normalize", "batch_norm", "reorg", "bitserial_dense", "dilation2d_nchw", "dilation2d_nhwc")
globals().update({f"schedule_{name}": _of_outputs for name in _INJECTIVE})


def schedule_extern(outs: Any) -> Schedule:
    """Leaves statements as written; elementwise producers and consumers are scheduled as injective."""
    return default_schedule(outs)


_EXTERN = ("argsort", "sort", "topk", "scatter", "scatter_add", "scatter_nd", "scan", "searchsorted", "einsum", "unique", "sparse_dense", "nms", "invert_permutation", "get_valid_counts", "multibox_prior",
           "roi_pool", "roi_align", "proposal")
globals().update({f"schedule_{name}": schedule_extern for name in _EXTERN})


def schedule_adaptive_pool(outs: Any, layout: str = "NCHW") -> Schedule:
    return schedule_injective(outs)


def schedule_pool(outs: Any, layout: str = "NCHW") -> Schedule:
    return schedule_injective(outs)


__all__ = ["default_schedule", "schedule_adaptive_pool", "schedule_extern", "schedule_injective", "schedule_injective_from_existing", "schedule_pool", "schedule_reduce", "schedule_softmax",
           *(f"schedule_{name}" for name in (*_INJECTIVE, *_EXTERN))]
