# SPDX-License-Identifier: Apache-2.0
"""When the memory that functions allocate is in use, over a main function and all that it calls (tvm.tir.usmp.analysis)."""
from __future__ import annotations

import math
from typing import Any

from ... import _core
from ..registry import register_for_objects
from ..runtime.data_type import DataType
from ..tir.calls import functions_by_name
from ..tir.function import LoopModule, PrimFunc
from ..tir.stmt import CANDIDATE_MEMORY_POOLS, Allocate, Evaluate, For, ForKind
from .utils import BufferInfo, BufferInfoAnalysis, BufferInfoKind


def size_of(allocate: Any) -> int | None:
    """The bytes of an allocation; None: they depend on a call."""
    extents = list(allocate.extents)
    if not all(isinstance(e, int) for e in extents):
        return None
    kind = DataType(allocate.dtype)
    return math.prod(map(int, extents)) * ((kind.bits * kind.lanes + 7) // 8)


class _Scope:
    """Memory while its allocation is open: the first and the last statement that uses it."""

    def __init__(self, array: Any):
        self.array, self.first, self.last = array, -1, -1


class _Loop:
    def __init__(self, start: int, kind: int):
        self.start, self.kind, self.used = start, kind, set()  # type: ignore[var-annotated]


class _Walk:
    """Runs over the statements in the order of a run, with calls of the module's functions in their place. Each statement is a step."""

    def __init__(self, mod: LoopModule, alignment: int):
        self._functions, self._alignment, self._step = functions_by_name(mod), alignment, 0
        self._open: dict[Any, _Scope] = {}  # by the memory, or the variable, that stands for it
        self._loops: list[_Loop] = []
        self._calls: list[str] = []
        self._names: dict[str, int] = {}
        self.found: dict[Any, tuple[BufferInfo, Any]] = {}
        self.live: list[tuple[Any, int, int]] = []

    def _use(self, what: Any) -> None:
        scope = self._open.get(what)
        if scope is None:
            return
        scope.first, scope.last = self._step if scope.first < 0 else scope.first, self._step
        if self._loops:
            self._loops[-1].used.add(scope)

    def _see(self, node: Any) -> None:
        def visit(part: Any) -> None:
            kind = getattr(part, "_kind", "")
            if kind in ("Read", "Write"):
                self._use(part._fields[0])
            elif kind == "Var":
                self._use(part)
        _core.stmt_visit(node, visit, True)

    def run(self, s: Any) -> None:
        self._step += 1
        if isinstance(s, Allocate):
            return self._allocate(s)
        if isinstance(s, For) or s._kind == "While":
            return self._loop(s, s.kind if isinstance(s, For) else ForKind.SERIAL)
        if isinstance(s, Evaluate) and s._kind == "CallExtern" and s._fields[0] in self._functions:
            return self._call(s._fields[0], s._fields[1])
        if s._kind in ("Write", "CallExtern"):
            return self._see(s)
        for field in s._fields:
            for part in field if isinstance(field, (list, tuple)) and s._kind == "Seq" else [field]:
                if isinstance(part, _core.Stmt):
                    self.run(part)
                elif isinstance(part, _core.PrimExpr):
                    self._see(part)

    def _loop(self, s: Any, kind: int) -> None:
        """What a loop uses and does not allocate is in use in all of its iterations."""
        self._loops.append(_Loop(self._step, kind))
        for part in s._fields:
            self._see(part) if isinstance(part, _core.PrimExpr) else None
        self.run(s.body)
        loop = self._loops.pop()
        for scope in loop.used:
            if self._open.get(scope.array) is scope:
                scope.first, scope.last = min(scope.first, loop.start), max(scope.last, self._step)
                if self._loops:
                    self._loops[-1].used.add(scope)

    def _call(self, name: str, args: Any) -> None:
        if name in self._calls:
            raise ValueError(f"the function '{name}' calls itself: its memory cannot be planned")
        function, given = self._functions[name]._function, []
        for parameter, value in zip(function.params, args):
            what = value[1] if isinstance(value, tuple) else value
            self._use(what) if isinstance(what, (_core.Array, _core.PrimExpr)) else None
            given.append((parameter, self._open.get(what) if isinstance(what, (_core.Array, _core.PrimExpr)) else None))
        before = {p: self._open.get(p) for p, _ in given}
        self._open.update({p: scope for p, scope in given if scope is not None})
        self._calls.append(name)
        self.run(function.body)
        self._calls.pop()
        for parameter, scope in before.items():
            self._open.pop(parameter, None)
            if scope is not None:
                self._open[parameter] = scope

    def _allocate(self, s: Any) -> None:
        """Memory of one place for each allocation, however often it is made; none for memory of parallel loops, of unknown size, or of
        a scope of its own."""
        array, size = s.alloc_buffers[0], size_of(s)
        planned = size is not None and array.scope() == "global" and (not self._loops or self._loops[-1].kind == ForKind.SERIAL)
        if planned and array not in self.found:
            notes, name = s.annotations, array.name
            if CANDIDATE_MEMORY_POOLS not in notes:
                raise ValueError(f"the memory '{name}' has no {CANDIDATE_MEMORY_POOLS}; tir.usmp.transform.AssignPoolInfo() gives it those of its function's target")
            self._names[name] = count = self._names.get(name, 0) + 1
            kind = BufferInfoKind.INPUT if "input_tensor" in notes else BufferInfoKind.OUTPUT if "output_tensor" in notes else BufferInfoKind.INTERMEDIATE
            self.found[array] = BufferInfo(name if count == 1 else f"{name}{count}", size, notes[CANDIDATE_MEMORY_POOLS], self._alignment, kind), s
        self._open[array] = scope = _Scope(array)
        self.run(s.body)
        del self._open[array]
        if planned and scope.first >= 0:
            self.live.append((array, scope.first, scope.last))


def extract_buffer_info(main_func: PrimFunc, mod: LoopModule) -> BufferInfoAnalysis:
    """The memory that main_func and the functions that it calls allocate: each with its size and pools, the others that are in use with
    it (conflicts), and the most bytes that are in use at once. ValueError: memory without pools, or a function that calls itself."""
    executor = mod.get_attr("executor")
    alignment = 16 if executor is None or "workspace-byte-alignment" not in executor else int(executor["workspace-byte-alignment"])
    walk = _Walk(mod, alignment)
    walk.run(main_func.body)
    meets: dict[Any, list[BufferInfo]] = {array: [] for array in walk.found}
    for i, (array, first, last) in enumerate(walk.live):
        for other, start, end in walk.live[:i]:
            if other is not array and other != array and start <= last and first <= end and walk.found[other][0] not in meets[array]:
                meets[array].append(walk.found[other][0])
                meets[other].append(walk.found[array][0])
    for array, conflicts in meets.items():
        walk.found[array][0].set_conflicts(conflicts)
    change: dict[int, int] = {}
    for array, first, last in walk.live:
        size = int(walk.found[array][0].size_bytes)
        change[first] = change.get(first, 0) + size
        change[last + 1] = change.get(last + 1, 0) - size
    pressure = now = 0
    for step in sorted(change):
        now += change[step]
        pressure = max(pressure, now)
    return BufferInfoAnalysis({info: stmt for info, stmt in walk.found.values()}, pressure)


register_for_objects("tir.usmp.analysis.extract_buffer_info", extract_buffer_info)

__all__ = ["extract_buffer_info"]
