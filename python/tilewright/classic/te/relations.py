# SPDX-License-Identifier: Apache-2.0
"""What was done to a stage's loops, and what they run over: records that scripts read back."""
from __future__ import annotations

import typing

from ... import _core
from ..tir.range import Range
from ..tir.reduction import IterVar, ThreadAxis


class IterVarRelation:
    """Base class of a stage's relations."""


class Split(IterVarRelation):
    """`parent` became `outer` and `inner`, by the `factor` of the inner loop or the `nparts` of the outer one; the other is None."""

    def __init__(self, parent: IterVar, outer: IterVar, inner: IterVar, factor: int, nparts: int):
        self.parent, self.outer, self.inner, self.factor, self.nparts = parent, outer, inner, factor or None, nparts or None


class Fuse(IterVarRelation):
    """`outer` and `inner` became `fused`."""

    def __init__(self, outer: IterVar, inner: IterVar, fused: IterVar):
        self.outer, self.inner, self.fused = outer, inner, fused


class Singleton(IterVarRelation):
    """`iter` is a loop of one iteration around a stage without loops."""

    def __init__(self, iter: IterVar):  # noqa: A002  the classic name
        self.iter = iter


class IterVarAttr:
    """A loop's annotations: how it is executed, the thread that it is bound to, and its pragmas."""
    prefetch_data: list[typing.Any] = []
    prefetch_offset: list[typing.Any] = []
    tensor_intrin = dim_align_factor = dim_align_offset = None

    def __init__(self, kind: int, thread: str | None, pragmas: list[tuple[str, typing.Any]]):
        self.iter_type = _KINDS[kind]
        self.bind_thread = ThreadAxis(None, thread, thread) if thread else None
        self.pragma_keys = [_text(name) for name, _ in pragmas]
        self.pragma_values = [value for _, value in pragmas]


def _text(name: str) -> typing.Any:
    from ..tir.expr import StringImm
    return StringImm(name)


# In the order of the C++ enumeration.
_KINDS = (IterVar.DataPar, IterVar.Vectorized, IterVar.Unrolled, IterVar.Parallelized)


def relations_of(stage: typing.Any) -> list[IterVarRelation]:
    """In the order in which they were made."""
    out: list[IterVarRelation] = [Singleton(stage._single_loop)] if stage._single_loop is not None else []
    for fuses, parent, outer, inner, factor, nparts in stage._relations:
        out.append(Fuse(outer, inner, parent) if fuses else Split(parent, outer, inner, factor, nparts))
    return out


def all_loops_of(stage: typing.Any) -> list[IterVar]:
    """The axes of the operation, followed by the loops that each relation made."""
    op = stage.op
    out = [op.scan_axis] if hasattr(op, "scan_axis") else [*op.axis, *op.reduce_axis]
    for r in relations_of(stage):
        out += [r.outer, r.inner] if isinstance(r, Split) else [r.fused if isinstance(r, Fuse) else r.iter]  # type: ignore[attr-defined]
    return out


def attributes_of(stage: typing.Any) -> dict[IterVar, IterVarAttr]:
    """Annotations of those loops that have any."""
    out = {}
    for leaf in stage.leaf_iter_vars:
        kind, thread, pragmas = stage._annotations(leaf)
        if kind or thread or pragmas:
            out[leaf] = IterVarAttr(kind, thread, pragmas)
    return out


def InferBound(schedule: typing.Any) -> dict[IterVar, Range]:  # noqa: N802  the classic name
    """The range of each axis and loop of the stages that are computed."""
    return {variable: Range.from_min_extent(first, extent) for variable, first, extent in _core.te_bounds(schedule)}


def ScheduleOps(schedule: typing.Any, bounds: typing.Any, debug_keep_trivial_loop: bool = False) -> typing.Any:  # noqa: N802
    """The statements of a schedule: its inputs and outputs are memory, as in `tvm.lower`. `bounds`: of InferBound, inferred anew."""
    inputs = [s.op.output(0) for s in schedule.stages if type(s.op).__name__ == "PlaceholderOp"]
    outputs = [op.output(i) for op in schedule.outputs for i in range(op.num_outputs)]
    parts = _core.te_lower(schedule, [*inputs, *outputs], "main").bodies
    return parts[0] if len(parts) == 1 else _core.stmt_seq(parts)


__all__ = ["Fuse", "InferBound", "IterVarAttr", "IterVarRelation", "ScheduleOps", "Singleton", "Split"]
