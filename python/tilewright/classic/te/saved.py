# SPDX-License-Identifier: Apache-2.0
"""Schedules as JSON: the operations as they are now, and for each stage what was done to its loops, which is done again when it is read."""
from __future__ import annotations

import json
import typing

from ... import _core
from ..tir.expr import StringImm
from .relations import Split, all_loops_of, relations_of

_KINDS = ("", "vectorize", "unroll", "parallel")  # in the order of the C++ enumeration


def _steps(schedule: typing.Any) -> list[dict[str, typing.Any]]:
    """What was done to each stage. A loop is a number: its place among the axes of the operation and the loops that were made after them."""
    stages = list(schedule.stages)
    loops = [all_loops_of(s) for s in stages]
    out = []
    for stage, own in zip(stages, loops):
        place = {loop: i for i, loop in enumerate(own)}
        made: list[list[typing.Any]] = [] if stage._single_loop is None else [["single"]]
        for r in relations_of(stage):
            if isinstance(r, Split):
                made.append(["split", place[r.parent], int(r.factor or 0), int(r.nparts or 0)])
            elif hasattr(r, "fused"):
                made.append(["fuse", place[r.outer], place[r.inner]])
        notes = []
        for leaf in stage.leaf_iter_vars:
            kind, thread, pragmas = stage._annotations(leaf)
            if kind or thread or pragmas:
                notes.append([place[leaf], _KINDS[kind], thread, [[str(n), v if v is None else str(v) if isinstance(v, str) else int(v)] for n, v in pragmas]])
        at = None if stage._attached is None else [stages.index(stage.attach_stage), loops[stages.index(stage.attach_stage)].index(stage.attach_ivar)]
        out.append({"name": str(stage.op.name), "made": made, "order": [place[leaf] for leaf in stage.leaf_iter_vars], "notes": notes, "scope": str(stage.scope), "inline": bool(stage.is_inline), "at": at})
    return out


def described(schedule: typing.Any) -> str:
    """The steps of a schedule as text. TypeError: an intrinsic or a store predicate, which has no text."""
    for stage in schedule.stages:
        if stage._has_code:
            raise TypeError(f"there is no JSON of the stage of '{stage.op.name}', which has an intrinsic, a store predicate or code of its own")
    return json.dumps(_steps(schedule))


def scheduled(outputs: typing.Any, text: str) -> typing.Any:
    """A schedule of these operations by such a text. ValueError: the text is of other operations."""
    from .schedule import create_schedule
    schedule, steps = create_schedule(list(outputs)), json.loads(text)
    stages = list(schedule.stages)
    if [str(s.op.name) for s in stages] != [s["name"] for s in steps]:
        raise ValueError("the schedule's stages are not those of its operations")
    loops = []
    for stage, saved in zip(stages, steps):
        own = all_loops_of(stage)
        for step, *args in saved["made"]:
            if step == "single":
                own.append(stage.fuse())
            elif step == "fuse":
                outer, inner = own[args[0]], own[args[1]]
                order = [leaf for leaf in stage.leaf_iter_vars if leaf != inner]
                order.insert(order.index(outer) + 1, inner)
                stage.reorder(*order)
                own.append(stage.fuse(outer, inner))
            else:
                own.extend(stage.split(own[args[0]], args[1] or None, args[2] or None))
        wanted = [own[i] for i in saved["order"]]
        if wanted != list(stage.leaf_iter_vars):
            stage.reorder(*wanted)
        for place, kind, thread, pragmas in saved["notes"]:
            if kind:
                getattr(stage, kind)(own[place])
            if thread:
                stage._bind(own[place], thread)
            for name, value in pragmas:
                stage._add_pragma(own[place], name, _value(value))
        stage.set_scope(saved["scope"])
        loops.append(own)
    for stage, saved in zip(stages, steps):
        if saved["inline"]:
            stage.compute_inline()
        elif saved["at"] is not None:
            stage.compute_at(stages[saved["at"][0]], loops[saved["at"][0]][saved["at"][1]])
    return schedule


def _value(value: typing.Any) -> typing.Any:
    return StringImm(value) if isinstance(value, str) else value if value is None else _core.prim_const(value, "int32")


__all__ = ["described", "scheduled"]
