# SPDX-License-Identifier: Apache-2.0
"""The script interface of memory planning (tvm.tir.usmp): buffers with their conflicts, planners by name, and their results."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .ir.memory_pools import PoolInfo
from .registry import registered_in_python


class BufferInfo:
    """A buffer to be placed; conflicts are the buffers whose live ranges overlap with its own."""

    def __init__(self, name_hint: str, size_bytes: int, pool_candidates: Sequence[PoolInfo], alignment: int | None = None):
        self.name_hint, self.size_bytes, self.pool_candidates, self.alignment = name_hint, int(size_bytes), list(pool_candidates), int(alignment or 1)
        self.conflicts: list[BufferInfo] = []

    def set_conflicts(self, conflicts: Iterable["BufferInfo"]) -> None:
        self.conflicts = list(conflicts)

    def __repr__(self) -> str:
        return f"BufferInfo({self.name_hint!r}, {self.size_bytes})"


class PoolAllocation:
    """The place of a buffer: a byte offset in a pool."""

    def __init__(self, pool_info: PoolInfo, byte_offset: int):
        self.pool_info, self.byte_offset = pool_info, int(byte_offset)


class AllocatedPoolInfo:
    """A pool and how many of its bytes are used."""

    def __init__(self, pool_info: PoolInfo, allocated_size: int, pool_var_idx: int = 0):
        self.pool_info, self.allocated_size, self.pool_var_idx = pool_info, int(allocated_size), pool_var_idx


def planner(name: str, pools: Sequence[PoolInfo]) -> Any:
    """The script's planner tir.usmp.algo.<name> in the form that the compiler calls: rows (name, bytes, alignment, first step, last
    step, pools) to (pool, offset) of each. ValueError: a buffer was not placed."""
    function = registered_in_python(f"tir.usmp.algo.{name}").get(f"tir.usmp.algo.{name}")
    if function is None:
        raise ValueError(f"no script has registered a function tir.usmp.algo.{name}")

    def plan(rows: Sequence[tuple[str, int, int, int, int, list[int]]]) -> list[tuple[int, int]]:
        buffers = [BufferInfo(row[0], row[1], [pools[p] for p in row[5]], row[2]) for row in rows]
        for buffer, row in zip(buffers, rows):
            buffer.set_conflicts(b for b, r in zip(buffers, rows) if b is not buffer and r[3] <= row[4] and row[3] <= r[4])
        change: dict[int, int] = {}
        for row in rows:
            change[row[3]] = change.get(row[3], 0) + row[1]
            change[row[4] + 1] = change.get(row[4] + 1, 0) - row[1]
        pressure, now = 0, 0
        for step in sorted(change):
            now += change[step]
            pressure = max(pressure, now)
        places = {id(buffer): place for buffer, place in dict(function(buffers, pressure)).items()}
        left = [b.name_hint for b in buffers if id(b) not in places]
        if left:
            raise ValueError(f"tir.usmp.algo.{name} gives no place to {', '.join(left)}")
        index = {id(pool): i for i, pool in enumerate(pools)}
        return [(index[id(places[id(b)].pool_info)], places[id(b)].byte_offset) for b in buffers]
    return plan


__all__ = ["AllocatedPoolInfo", "BufferInfo", "PoolAllocation", "planner"]
