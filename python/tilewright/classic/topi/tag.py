# SPDX-License-Identifier: Apache-2.0
"""Tags for the kinds of computations, which schedules inspect."""
from __future__ import annotations

from .elemwise import BROADCAST, COMM_REDUCE, COMM_REDUCE_IDX, ELEMWISE, INJECTIVE


def is_broadcast(tag: str) -> bool:
    """Elementwise or broadcasting."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((f"{ELEMWISE},", f"{BROADCAST},"))


def is_injective(tag: str) -> bool:
    """Whether each element of the result reads one element of each operand."""
    return tag in (ELEMWISE, BROADCAST, INJECTIVE) or tag.startswith((f"{ELEMWISE},", f"{BROADCAST},", f"{INJECTIVE},"))


__all__ = ["BROADCAST", "COMM_REDUCE", "COMM_REDUCE_IDX", "ELEMWISE", "INJECTIVE", "is_broadcast", "is_injective"]
