# SPDX-License-Identifier: Apache-2.0
"""The loop IR's expressions and functions under their classic names."""
from __future__ import annotations

import typing

from . import analysis, buffer, described, expr, ir_builder, op, schedule, stmt, stmt_functor, transform
from .buffer import Buffer, decl_buffer
from .expr import *  # noqa: F401,F403
from .function import PrimFunc
from .layout import BijectiveLayout, Layout, bijective_layout, layout
from .region import BufferRegion, IndexMap
from .op import *  # noqa: F401,F403
from .described import *  # noqa: F401,F403
from .stmt import *  # noqa: F401,F403
from .schedule import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV, Schedule, ScheduleError, TensorIntrin, Trace
from .reduction import CommReducer, IterVar, Reduce, comm_reducer, max, min, prod, sum  # noqa: A004


def __getattr__(name: str) -> typing.Any:
    raise AttributeError(f"tilewright.tir has no '{name}': computations are written with te, loops with tir.ir_builder; 'tilewright compile --dump-ir' shows the loops of a model")


__all__ = ["BijectiveLayout", "BlockRV", "Buffer", "BufferRegion", "CommReducer", "ExprRV", "IndexMap", "Instruction", "InstructionKind", "IterVar", "Layout", "LoopRV", "PrimFunc", "Reduce", "Schedule", "ScheduleError", "TensorIntrin", "Trace", "analysis", "bijective_layout", "comm_reducer", "decl_buffer", "ir_builder", "layout", "max", "min", "prod", "schedule", "stmt_functor", "sum", "transform",
           *described.__all__, *expr.__all__, *op.__all__, *stmt.__all__]
