# SPDX-License-Identifier: Apache-2.0
"""Attributes of functions that are no bool, number, string or list of integers or strings: None, maps, lists of several kinds. They are kept
as their text behind a mark (src/ir/attr_literal.h)."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..runtime.container import Array, Map, String
from ..tir import FloatImm, IntImm

_MARK = "\x01"
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|inf|nan))([a-z]*\d*)|(\w+)|(.))')


def to_attr(value: Any) -> Any:
    """What the compiler keeps for a value."""
    if value is None or isinstance(value, Mapping):
        return _MARK + _text(value)
    if isinstance(value, (list, tuple)) and not all(type(v) is int or isinstance(v, IntImm) for v in value) and not all(isinstance(v, str) for v in value):
        return _MARK + _text(value)
    return value


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)}={_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, int):
        return str(int(value)) + ("i64" if getattr(value, "dtype", "int32") == "int64" else "")
    if isinstance(value, float):
        return repr(float(value)) + ("f64" if getattr(value, "dtype", "float32") == "float64" else "f")
    return _quoted(value)


def _quoted(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def is_literal(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_MARK)


def from_attr(value: str) -> Any:
    """The value of a text that to_attr, or a program's text, gave."""
    return _read([m for m in _TOKEN.finditer(value[1:])])


def _read(tokens: list[Any]) -> Any:
    string, number, suffix, name, sign = tokens.pop(0).groups()
    if string is not None:
        return String(re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), string[1:-1]))
    if number is not None:
        if suffix.startswith("f") or not re.fullmatch(r"[-+]?\d+", number):
            return FloatImm({"f64": "float64", "f16": "float16"}.get(suffix, "float32"), float(number))
        return IntImm(f"int{suffix[1:]}" if suffix else "int32", int(number))
    if name is not None:
        return {"None": None, "True": True, "False": False}[name]
    if sign == "{":
        made: Map = Map()
        while tokens[0].group(5) != "}":
            key = _read(tokens)
            tokens.pop(0)  # "="
            made[key] = _read(tokens)
            if tokens[0].group(5) == ",":
                tokens.pop(0)
        tokens.pop(0)
        return made
    items = []
    while tokens[0].group(5) not in ("]", ")"):
        items.append(_read(tokens))
        if tokens[0].group(5) == ",":
            tokens.pop(0)
    tokens.pop(0)
    return Array(items)


__all__ = ["from_attr", "is_literal", "to_attr"]
