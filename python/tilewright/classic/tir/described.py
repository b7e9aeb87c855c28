# SPDX-License-Identifier: Apache-2.0
"""Statements of the classic loop IR that have no form here: scripts may make them and read their fields; loops do not take them."""
from __future__ import annotations

import typing

from .expr import IntImm


class _Described:
    """Fields by name."""

    _names: tuple[str, ...] = ()
    _defaults: dict[str, typing.Any] = {}
    span = None

    def __init__(self, *args: typing.Any, **kwargs: typing.Any):
        kwargs.pop("span", None)
        given = dict(zip(self._names, args))
        if len(args) > len(self._names) or set(kwargs) - set(self._names) or set(given) & set(kwargs):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._names)}")
        given.update(kwargs)
        missing = [name for name in self._names if name not in given and name not in self._defaults]
        if missing:
            raise TypeError(f"{type(self).__name__} lacks {', '.join(missing)}")
        for name in self._names:
            value = given.get(name, self._defaults.get(name))
            setattr(self, name, IntImm("int32", value) if type(value) is int else value)

    def same_as(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names)})"


def _kind(name: str, doc: str, *names: str, **defaults: typing.Any) -> typing.Any:
    return type(name, (_Described,), {"__module__": __name__, "__doc__": doc, "_names": names, "_defaults": defaults})


AssertStmt = _kind("AssertStmt", "A condition that must hold before the body.", "condition", "message", "body")
AllocateConst = _kind("AllocateConst", "Constant memory that is live in the body.", "buffer_var", "dtype", "extents", "data_or_idx", "body", "annotations", annotations=None)
AllocateConst.data = property(lambda self: self.data_or_idx)
ProducerStore = _kind("ProducerStore", "An element of a tensor.", "producer", "value", "indices")
ProducerRealize = _kind("ProducerRealize", "The bounds of a tensor in the body.", "producer", "bounds", "condition", "body", "storage_scope", storage_scope="")
BufferRealize = _kind("BufferRealize", "The bounds of a buffer in the body.", "buffer", "bounds", "condition", "body")
Store = _kind("Store", "A flat store of a buffer's variable.", "buffer_var", "value", "index", "predicate", predicate=None)
Load = _kind("Load", "A flat load of a buffer's variable.", "dtype", "buffer_var", "index", "predicate", predicate=None)

__all__ = ["AllocateConst", "AssertStmt", "BufferRealize", "Load", "ProducerRealize", "ProducerStore", "Store"]
