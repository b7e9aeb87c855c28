# SPDX-License-Identifier: Apache-2.0
"""The graph of operations behind a schedule, and stages that are inlined by what they compute."""
from __future__ import annotations

import typing

from ..tir.reduction import IterVar
from .tensor import ComputeOp, Operation, Tensor


def CreateReadGraph(roots: typing.Sequence[Operation]) -> dict[Operation, list[Tensor]]:  # noqa: N802  the classic name
    """The tensors that each operation reads, for the roots and all that they need."""
    reads: dict[Operation, list[Tensor]] = {}
    waiting = list(roots)
    while waiting:
        op = waiting.pop()
        if op not in reads:
            reads[op] = list(op.input_tensors)
            waiting += [t.op for t in reads[op]]
    return reads


def PostDFSOrder(roots: typing.Sequence[Operation], graph: typing.Mapping[Operation, typing.Sequence[Tensor]]) -> list[Operation]:  # noqa: N802
    """The operations of a read graph, each after those that it reads."""
    order: dict[Operation, None] = {}
    waiting = [(op, False) for op in reversed(list(roots))]
    while waiting:
        op, ready = waiting.pop()
        if op in order:
            continue
        if ready:
            order[op] = None
        else:
            waiting.append((op, True))
            waiting += [(t.op, False) for t in reversed(list(graph[op]))]
    return list(order)


def _reads_of(op: ComputeOp) -> list[list[typing.Any]]:
    """The indices of each read of another tensor in the bodies of a compute."""
    from ..tir.stmt_functor import post_order_visit
    found: list[list[typing.Any]] = []

    def visit(node: typing.Any) -> None:
        if getattr(node, "_kind", "") == "Read":
            found.append(list(node._fields[1]))
    for body in op.body:
        post_order_visit(body, visit)
    return found


def _places(indices: list[typing.Any], axes: list[IterVar]) -> list[int] | None:
    """Which axis each index is; None if one is no axis."""
    out = [next((n for n, axis in enumerate(axes) if axis.var.same_as(i)), -1) for i in indices]
    return None if -1 in out else out


def _is_elementwise(op: ComputeOp) -> bool:
    axes = list(op.axis)
    return not op.reduce_axis and all(_places(i, axes) == list(range(len(axes))) for i in _reads_of(op))


def _is_broadcast(op: ComputeOp) -> bool:
    places = [_places(i, list(op.axis)) for i in _reads_of(op)]
    return not op.reduce_axis and all(p is not None and p == sorted(set(p)) for p in places)


def _is_injective(op: ComputeOp) -> bool:
    return not op.reduce_axis


def _inline(schedule: typing.Any, fits: typing.Callable[[ComputeOp], bool]) -> None:
    outputs = list(schedule.outputs)
    for stage in schedule.stages:
        if isinstance(stage.op, ComputeOp) and stage.op not in outputs and stage.attach_type == 1 and fits(stage.op):
            stage.compute_inline()


def AutoInlineElemWise(schedule: typing.Any) -> None:  # noqa: N802
    """Inlines the stages, but outputs, that read elements at their own place only."""
    _inline(schedule, _is_elementwise)


def AutoInlineBroadcast(schedule: typing.Any) -> None:  # noqa: N802
    """Inlines the stages, but outputs, that read elements at their own place along some of their axes."""
    _inline(schedule, _is_broadcast)


def AutoInlineInjective(schedule: typing.Any) -> None:  # noqa: N802
    """Inlines the stages, but outputs, that reduce nothing."""
    _inline(schedule, _is_injective)


__all__ = ["AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "CreateReadGraph", "PostDFSOrder"]
