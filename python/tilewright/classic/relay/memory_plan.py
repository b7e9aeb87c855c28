# SPDX-License-Identifier: Apache-2.0
"""The classic stack's static memory plan of a function whose calls are fused operators: which storage each value would have there.

Greedy, in the order of evaluation: a value takes storage that nothing needs any more and whose size differs by a factor of 16 at most, the
smallest that holds it first. Parameters and constants keep their storage. Builds do not use it: they plan kernels and buffers together."""
from __future__ import annotations

import bisect
from typing import Any

from ..error import InvalidValue
from ..ir.ty import TensorType, TupleType
from ..runtime.data_type import DataType
from .expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Op, Tuple, TupleGetItem, Var

_FACTOR = 16  # how much larger or smaller storage may be that is taken again


class StorageInfo:
    """Of a value's tensors: `storage_ids`, `device_types`, `storage_sizes` in bytes, `virtual_devices`."""

    def __init__(self, storage_ids: list[int], device_types: list[int], storage_sizes: list[int]):
        from ..target.virtual_device import VirtualDevice
        self.storage_ids, self.device_types, self.storage_sizes = storage_ids, device_types, storage_sizes
        self.virtual_devices = [VirtualDevice() for _ in storage_ids]


class StaticMemoryPlan:
    """`expr_to_storage_info`: a StorageInfo by expression."""

    def __init__(self, expr_to_storage_info: dict[Expr, StorageInfo]):
        self.expr_to_storage_info = expr_to_storage_info


class _Storage:
    def __init__(self, number: int, size: int, users: int):
        self.number, self.size, self.capacity, self.users = number, size, size, users


def _sizes(t: Any) -> list[int]:
    if isinstance(t, TupleType):
        return [size for field in t.fields for size in _sizes(field)]
    if not isinstance(t, TensorType):
        raise InvalidValue(f"only tensors and tuples have storage, not {t}")
    count = 1
    for d in t.shape:
        if not isinstance(d, int):
            raise InvalidValue(f"storage is planned for known sizes, not for {t}")
        count *= int(d)
    dtype = DataType(t.dtype)
    return [count * ((dtype.bits * dtype.lanes + 7) // 8)]


def _operands_first(root: Expr) -> list[Expr]:
    """What is evaluated for an expression, operands before their users; called functions are not entered."""
    order: dict[Expr, None] = {}
    stack = [(root, False)]
    while stack:
        e, ready = stack.pop()
        if e in order or isinstance(e, (Op, GlobalVar)):
            continue
        if ready:
            order[e] = None
            continue
        stack.append((e, True))
        operands = e.args if isinstance(e, Call) else e.fields if isinstance(e, Tuple) else [e.tuple_value] if isinstance(e, TupleGetItem) else []
        stack += [(o, False) for o in reversed(operands)]
    return list(order)


class _Planner:
    def __init__(self, function: Function):
        self._function = function
        self._order = _operands_first(function.body)
        self._made: dict[Expr, list[_Storage]] = {}
        self._users: dict[Expr, list[int]] = {}
        self._free: list[tuple[int, int, _Storage]] = []  # by capacity, then by number
        self._next = 0

    def run(self) -> StaticMemoryPlan:
        self._count_users()
        for e in [*self._function.params, *self._order]:
            if e not in self._made:
                self._visit(e)
        return StaticMemoryPlan({e: StorageInfo([s.number for s in made], [1] * len(made), [s.size for s in made]) for e, made in self._made.items() if not isinstance(e, Function)})

    # The users of each tensor of a value; tuples and their fields share storage.
    def _count_users(self) -> None:
        counts: dict[Expr, list[Any]] = {}

        def tokens(e: Expr) -> list[Any]:
            if e not in counts:
                if isinstance(e, Tuple):
                    counts[e] = [t for f in e.fields for t in tokens(f)]
                elif isinstance(e, TupleGetItem):
                    counts[e] = self._part(tokens(e.tuple_value), e)
                elif isinstance(e, (Let, If)):
                    raise InvalidValue("storage is planned for graphs of calls, not for bindings and branches")
                else:
                    counts[e] = [[0] for _ in _sizes(e.checked_type)]
            return counts[e]
        for e in self._order:
            if isinstance(e, Call):
                for argument in e.args:
                    for token in tokens(argument):
                        token[0] += 1
        for token in tokens(self._function.body):
            token[0] += 1
        self._users = {e: [t[0] for t in tokens(e)] for e in [*self._order, *self._function.params] if not isinstance(e, Function)}

    @staticmethod
    def _part(tokens: list[Any], e: Any) -> list[Any]:
        fields = e.tuple_value.checked_type.fields
        begin = sum(len(_sizes(f)) for f in fields[:e.index])
        return tokens[begin:begin + len(_sizes(fields[e.index]))]

    def _visit(self, e: Expr) -> None:
        if isinstance(e, Function):
            return
        if isinstance(e, (Var, Constant)):
            self._made[e] = [self._new(size, 1 + users) for size, users in zip(_sizes(e.checked_type), self._users[e])]
        elif isinstance(e, Tuple):
            self._made[e] = [s for f in e.fields for s in self._made[f]]
        elif isinstance(e, TupleGetItem):
            self._made[e] = self._part(self._made[e.tuple_value], e)
        elif isinstance(e, Call):
            self._made[e] = [self._take(size, users) for size, users in zip(_sizes(e.checked_type), self._users[e])]
            for storage in self._made[e]:
                self._release(storage)
            for argument in e.args:
                for storage in self._made[argument]:
                    storage.users -= 1
                    self._release(storage)

    def _new(self, size: int, users: int) -> _Storage:
        self._next += 1
        return _Storage(self._next - 1, size, users)

    def _take(self, size: int, users: int) -> _Storage:
        middle = bisect.bisect_left(self._free, (size, -1))
        larger = [i for i in range(middle, len(self._free)) if self._free[i][0] <= size * _FACTOR]
        smaller = [i for i in range(middle) if self._free[i][0] * _FACTOR >= size]
        if not larger and not smaller:
            return self._new(size, users)
        storage = self._free.pop(larger[0] if larger else smaller[-1])[2]
        storage.capacity, storage.users = max(storage.capacity, size), users
        return storage

    def _release(self, storage: _Storage) -> None:
        if storage.users == 0:
            bisect.insort(self._free, (storage.capacity, storage.number, storage))  # numbers differ: no two storages are compared


def GraphPlanMemory(function: Function) -> StaticMemoryPlan:  # noqa: N802  classic name
    """The plan of a typed function. InvalidValue if its sizes are not known or it has control flow."""
    return _Planner(function).run()


__all__ = ["GraphPlanMemory", "StaticMemoryPlan", "StorageInfo"]
