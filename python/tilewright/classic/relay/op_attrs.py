# SPDX-License-Identifier: Apache-2.0
"""Attribute classes by their classic names: `isinstance(call.attrs, op_attrs.Conv2DAttrs)`."""
from __future__ import annotations

from typing import Any

from .expr import Attrs


class _OfKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Attrs) and value._type_key == f"relay.attrs.{cls.__name__}"


def __getattr__(name: str) -> Any:
    if not name.endswith("Attrs"):
        raise AttributeError(name)
    return _OfKind(name, (), {"__doc__": f"The attributes relay.attrs.{name}."})
