# SPDX-License-Identifier: Apache-2.0
"""What planners of memory are given and give (tvm.tir.usmp.utils): buffers with their conflicts, and places in pools."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ... import _core
from ..ir.memory_pools import PoolInfo
from ..registry import register_for_objects, registered_in_python
from ..runtime.container import Map
from ..tir.expr import IntImm
from ..tir.stmt import CANDIDATE_MEMORY_POOLS as CANDIDATE_MEMORY_POOL_ATTR
from ..transform import PassContext

_ALGORITHMS = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")


def use_workspace_io_is_enabled() -> bool:
    """Whether the current PassContext places inputs and outputs in the pools."""
    return bool(PassContext.current().config.get("tir.usmp.use_workspace_io", False))


class _Bytes(IntImm):
    """A number of bytes; sums of them have a `value`, too."""

    def __add__(self, other: Any) -> Any:
        made = int.__add__(self, other)
        return made if made is NotImplemented else _Bytes("int64", made)

    __radd__ = __add__


class BufferInfoKind:
    """What a buffer holds."""
    INTERMEDIATE, INPUT, OUTPUT = range(3)


class BufferInfo:
    """A buffer to be placed; conflicts are the buffers whose live ranges overlap with its own."""

    def __init__(self, name_hint: str, size_bytes: int, pool_candidates: Sequence[PoolInfo], alignment: int | None = None, kind: int = BufferInfoKind.INTERMEDIATE):
        self.name_hint, self.size_bytes, self.pool_candidates, self.alignment = name_hint, _Bytes("int64", int(size_bytes)), list(pool_candidates), int(alignment or 1)
        self.kind = kind
        self.conflicts: list[BufferInfo] = []

    def set_conflicts(self, conflicts: Iterable["BufferInfo"]) -> None:
        self.conflicts = list(conflicts)

    def __repr__(self) -> str:
        return f"BufferInfo({self.name_hint!r}, {self.size_bytes})"


class PoolAllocation:
    """The place of a buffer: a byte offset in a pool."""

    def __init__(self, pool_info: PoolInfo, byte_offset: int):
        self.pool_info, self.byte_offset = pool_info, _Bytes("int64", int(byte_offset))


class BufferInfoAnalysis:
    """Buffers with the statements that allocate them, and the most bytes that are in use at once."""

    def __init__(self, buffer_info_stmts: Any, memory_pressure: int):
        self.buffer_info_stmts, self.memory_pressure = Map(buffer_info_stmts), _Bytes("int64", int(memory_pressure))


class AllocatedPoolInfo:
    """A pool and how many of its bytes are used."""

    def __init__(self, pool_info: PoolInfo, allocated_size: int, pool_var_idx: int = 0):
        self.pool_info, self.allocated_size, self.pool_var_idx = pool_info, _Bytes("int64", int(allocated_size)), pool_var_idx


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
        return [(pools.index(places[id(b)].pool_info), places[id(b)].byte_offset) for b in buffers]
    return plan


def _algorithm(name: str) -> Any:
    """The function tir.usmp.algo.<name>: from buffers and the memory pressure to the place of each."""
    def plan(buffer_infos: Iterable[BufferInfo], memory_pressure: int = 0) -> dict[BufferInfo, PoolAllocation]:
        # Of buffers that are alike the last name is placed first.
        buffers = sorted(buffer_infos, key=lambda b: b.name_hint, reverse=True)
        pools: list[PoolInfo] = []
        for buffer in buffers:
            pools += [p for p in buffer.pool_candidates if p not in pools]
            if not buffer.pool_candidates:
                raise ValueError(f"the buffer '{buffer.name_hint}' has no pool_candidates; give it the pools that it may lie in")
        number = {id(b): i for i, b in enumerate(buffers)}
        meets: list[set[int]] = [set() for _ in buffers]
        for i, buffer in enumerate(buffers):  # one of the two may say it
            for j in (number[id(c)] for c in buffer.conflicts if id(c) in number):
                meets[i].add(j)
                meets[j].add(i)
        rows = [(b.name_hint, int(b.size_bytes), b.alignment, [pools.index(p) for p in b.pool_candidates], sorted(meets[i])) for i, b in enumerate(buffers)]
        places = _core.plan_pools(rows, [(p.pool_name, p.size_hint_bytes) for p in pools], name)
        return {b: PoolAllocation(pools[pool], offset) for b, (pool, offset) in zip(buffers, places)}
    plan.__name__, plan.__doc__ = name, f"Places buffers by {name}. Error 101: the pools are too small."
    return plan


for _name in _ALGORITHMS:
    register_for_objects(f"tir.usmp.algo.{_name}", _algorithm(_name))


def _of_statements(buffer_info_stmts: Any, places: Any) -> Map:
    """The places of statements: those of their buffers."""
    known = dict(places)
    return Map({stmt: known[info] for info, stmt in dict(buffer_info_stmts).items()})


for _name, _function in {"AssignStmtPoolAllocations": _of_statements, "CreateArrayBufferInfo": lambda buffer_info_stmts: list(dict(buffer_info_stmts)),
                         "BufferInfoSetConflicts": BufferInfo.set_conflicts, **{c.__name__: c for c in (AllocatedPoolInfo, BufferInfo, BufferInfoAnalysis, PoolAllocation)}}.items():
    register_for_objects(f"tir.usmp.{_name}", _function)

__all__ = ["AllocatedPoolInfo", "BufferInfo", "BufferInfoAnalysis", "BufferInfoKind", "CANDIDATE_MEMORY_POOL_ATTR", "PoolAllocation", "planner", "use_workspace_io_is_enabled"]
