# SPDX-License-Identifier: Apache-2.0
"""What kind of computation an operation is, as schedules ask."""
from __future__ import annotations

from .elemwise import BROADCAST, COMM_REDUCE, COMM_REDUCE_IDX, ELEMWISE, INJECTIVE


def is_broadcast(tag: str) -> bool:
    """Elements by place, or repeated along dimensions."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((f"{ELEMWISE},", f"{BROADCAST},"))


def is_injective(tag: str) -> bool:
    """Each element of the result is read from one place of each operand."""
    return tag in (ELEMWISE, BROADCAST, INJECTIVE) or tag.startswith((f"{ELEMWISE},", f"{BROADCAST},", f"{INJECTIVE},"))


__all__ = ["BROADCAST", "COMM_REDUCE", "COMM_REDUCE_IDX", "ELEMWISE", "INJECTIVE", "is_broadcast", "is_injective"]
