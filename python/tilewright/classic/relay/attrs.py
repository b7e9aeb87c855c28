# SPDX-License-Identifier: Apache-2.0
"""Attributes of calls and functions in their classic form."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ... import _core
from ..runtime.container import Array
from ..tir import IntImm
from .attr_literals import from_attr, is_literal
from .places import PARAMS, RESULT


def _attrs_getattr(self: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        if name == "indices_or_sections" and self._fields.get("sections"):
            name = "sections"  # both forms of split use this name
        return as_classic(self._fields[name])
    except KeyError:
        device = _virtual_device(self._fields, name)
        if device is not None:
            return device
        if name == "type_key":
            return self._type_key
        raise AttributeError(f"{self._type_key} has no field '{name}'; it has {', '.join(self._fields)}") from None


def as_classic(value: Any) -> Any:
    """An attribute's value in classic form: numbers have a `value`, lists compare equal to tuples of the same numbers."""
    if isinstance(value, str):
        return from_attr(value) if is_literal(value) else value
    if isinstance(value, bool) or not isinstance(value, (int, list, tuple)):
        return value
    if isinstance(value, int):
        return value if isinstance(value, IntImm) else IntImm("int32" if -2**31 <= value < 2**31 else "int64", value)
    return value if isinstance(value, Array) else Array([as_classic(v) for v in value])


class AttrFieldInfo(NamedTuple):
    """Name, type and description of an attribute."""
    name: str
    type_info: str
    description: str


def _virtual_device(fields: Mapping[str, Any], name: str) -> Any:
    """The device of on_device or device_copy as a VirtualDevice, or None."""
    from ..target.virtual_device import VirtualDevice
    before = name.removesuffix("virtual_device")
    kind, number = ("dev_type", "dev_id") if before else ("device_type", "device_id")
    if before == name or before + kind not in fields or before + "memory_scope" not in fields:
        return None
    return VirtualDevice.of_fields(int(fields[before + kind]), int(fields[before + number]), fields[before + "target"], fields[before + "host"], fields[before + "memory_scope"])


class _AttrsMethods:
    """Methods of call attributes."""

    def __getitem__(self: Any, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def keys(self: Any) -> list[str]:
        return list(self._fields)

    def __dir__(self: Any) -> list[str]:
        return [*object.__dir__(self), *self._fields]

    def list_field_info(self: Any) -> list[AttrFieldInfo]:
        return [AttrFieldInfo(name, type(value).__name__, "") for name, value in self._fields.items()]

    def items(self: Any) -> Any:
        return self._fields.items()

    def get_int(self: Any, key: str) -> int:
        return int(self[key])

    def get_str(self: Any, key: str) -> str:
        return str(self[key])

    def get_int_tuple(self: Any, key: str) -> tuple[int, ...]:
        return tuple(int(v) for v in self[key])

    def get_float_tuple(self: Any, key: str) -> tuple[float, ...]:
        return tuple(float(v) for v in self[key])

    def __contains__(self: Any, key: str) -> bool:
        return key in self._fields


Attrs = _core.Attrs
Attrs.__getattr__ = _attrs_getattr
for _name, _method in list(vars(_AttrsMethods).items()):
    if callable(_method):
        setattr(Attrs, _name, _method)


class DictAttrs(dict):
    """Attributes of a function: `attrs["Compiler"]`, `attrs.Compiler`."""

    _type_key = type_key = "DictAttrs"

    def __init__(self, values: Any = ()):
        super().__init__({k: as_classic(v) for k, v in dict(values).items() if k not in (RESULT, PARAMS)})

    def list_field_info(self) -> list[AttrFieldInfo]:
        return [AttrFieldInfo(name, type(value).__name__, "") for name, value in self.items()]

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        return tuple(int(v) for v in self[key])

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((k, str(v)) for k, v in self.items())))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no attribute '{name}'") from None

    def get_int(self, key: str) -> int:
        return int(self[key])

    def get_str(self, key: str) -> str:
        return str(self[key])


def of_call(attrs: Any) -> Any:
    """A call's attributes; those of an operator that a script defines are a DictAttrs."""
    return DictAttrs(attrs._fields) if isinstance(attrs, Attrs) and attrs._type_key == "DictAttrs" else attrs


__all__ = ["AttrFieldInfo", "Attrs", "DictAttrs", "as_classic", "of_call"]
