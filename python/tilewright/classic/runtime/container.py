# SPDX-License-Identifier: Apache-2.0
"""Result values of programs (data types and tuples), and the classic container classes."""
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


class _ObjectKind(type):
    """The classes of the compiler and the runtime have no common base here, so that Object asks where a class is from."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is not Object:
            return type.__instancecheck__(cls, instance)
        kind = type(instance)
        return kind.__module__.partition(".")[0] == "tilewright" and kind.__name__ not in _NO_OBJECTS


# Handles of the runtime, which are no objects in the classic interface, either.
_NO_OBJECTS = frozenset({"NDArray", "PackedFunc", "Module", "Device", "DataType"})


class Object(metaclass=_ObjectKind):
    """Root of the classic classes: isinstance holds for every object of the compiler and the runtime's containers."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)


class ObjectGeneric:
    """Base of wrappers: `asobject()` returns the wrapped object."""

    def asobject(self) -> Any:
        raise NotImplementedError(f"a {type(self).__name__} has no asobject")


class String(str):
    """A string, under its classic name."""

    def startswith(self, prefix: Any, *rest: Any) -> bool:
        return str.startswith(self, prefix, *rest)

    def same_as(self, other: object) -> bool:
        return self is other

    __tvm_object__ = property(lambda self: self)


class Array(list):
    """A list, under its classic name; also compares equal to tuples."""

    type_key = "Array"

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other)) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other if isinstance(other, (list, tuple)) else NotImplemented

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __getitem__(self, index: Any) -> Any:
        found = list.__getitem__(self, index)
        return Array(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> "Array":  # type: ignore[override]
        return Array([*self, *map(convert_to_object, other)])

    def same_as(self, other: object) -> bool:
        return self is other


class Map(dict):
    """A dict, under its classic name; `items()` is a list."""

    type_key = "Map"

    def items(self) -> list[tuple[Any, Any]]:  # type: ignore[override]
        return list(super().items())

    def values(self) -> list[Any]:  # type: ignore[override]
        return list(super().values())

    def same_as(self, other: object) -> bool:
        return self is other


class Sizes(tuple):
    """The dimensions of a type; also compares equal to lists."""

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other)) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other if isinstance(other, (list, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __add__(self, other: Any) -> "Sizes":
        return type(self)([*self, *other])

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return type(self)(found) if isinstance(index, slice) else found


class ShapeTuple(Sizes):
    """A tuple of integers, under its classic name."""

    def __new__(cls, shape: Any = ()) -> "ShapeTuple":
        return super().__new__(cls, (int(d) for d in shape))


def getitem_helper(obj: Any, elem_getter: Any, length: int, idx: Any) -> Any:
    """An element, or a list of elements for a slice, by a getter and a length."""
    if isinstance(idx, slice):
        return [elem_getter(obj, i) for i in range(*idx.indices(length))]
    if not -length <= idx < length:
        raise IndexError(f"Index out of range. size: {length}, got index {idx}")
    return elem_getter(obj, idx % length if idx < 0 else idx)


def convert_to_object(value: Any, span: Any = None) -> Any:
    """Converts lists, dicts, strings and numbers to the classic containers."""
    from ..tir import FloatImm, IntImm
    if isinstance(value, (Array, Map, String, ShapeTuple)) or hasattr(value, "dtype"):
        return value
    if isinstance(value, bool):
        return IntImm("bool", int(value))
    if isinstance(value, int):
        return IntImm("int32" if -2**31 <= value < 2**31 else "int64", value)
    if isinstance(value, float):
        return FloatImm("float32", value)
    if isinstance(value, str):
        return String(value)
    if isinstance(value, (list, tuple)):
        return Array([convert_to_object(v) for v in value])
    if isinstance(value, dict):
        return Map({k: convert_to_object(v) for k, v in value.items()})
    if isinstance(value, ObjectGeneric):
        return value.asobject()
    return value


def convert(value: Any, span: Any = None) -> Any:
    """Converts callables to Function, other Python values to the classic containers."""
    from ..registry import convert as convert_function
    return convert_function(value) if callable(value) else convert_to_object(value)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Any:
    """A number with a dtype."""
    from ..tir import const as number
    return number(value, dtype)


__all__ = ["ADT", "Array", "Map", "Object", "ObjectGeneric", "ShapeTuple", "Sizes", "String", "const", "convert", "convert_to_object", "getitem_helper", "tuple_object"]
