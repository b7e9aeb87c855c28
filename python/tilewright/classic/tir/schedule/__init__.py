# SPDX-License-Identifier: Apache-2.0
"""Scheduling of the blocks and loops of a function over buffers, and the trace of the steps."""
from __future__ import annotations

from .schedule import Schedule
from .tensor_intrin import TensorIntrin
from .trace import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV, ScheduleError, Trace

__all__ = ["BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "Schedule", "ScheduleError", "TensorIntrin", "Trace"]
