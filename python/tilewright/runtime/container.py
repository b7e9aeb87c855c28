# SPDX-License-Identifier: Apache-2.0
"""Values that programs give: data types and tuples, and the classic names of containers."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .ndarray import NDArray


class ADT:
    """A tuple (tag 0), or a value of a data type: `value.tag`, `value[0]`, `len(value)`."""

    def __init__(self, tag: int, fields: Sequence[Any], constructor: Any = None):
        self.tag, self.fields, self.constructor = int(tag), list(fields), constructor

    def __getitem__(self, index: Any) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __repr__(self) -> str:
        name = getattr(self.constructor, "name_hint", None) or ("" if self.tag == 0 else f"tag {self.tag}")
        return f"{name}({', '.join(repr(f) for f in self.fields)})"


def tuple_object(fields: Sequence[Any] | None = None) -> ADT:
    return ADT(0, [f if isinstance(f, (ADT, NDArray)) else _as_tensor(f) for f in fields or []])


def _as_tensor(value: Any) -> Any:
    from .ndarray import array
    return tuple_object(value) if isinstance(value, (list, tuple)) else array(value)


class String(str):
    """A string, under its classic name."""


class Array(list):
    """A list, under its classic name."""


class Map(dict):
    """A dict, under its classic name."""


class ShapeTuple(tuple):
    """Sizes, under their classic name."""


__all__ = ["ADT", "Array", "Map", "ShapeTuple", "String", "tuple_object"]
