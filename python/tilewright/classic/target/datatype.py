# SPDX-License-Identifier: Apache-2.0
"""Custom datatypes: their names and codes. Kernels only support the built-in types."""
from __future__ import annotations

from typing import Any

_codes: dict[str, int] = {}


def register(type_name: str, type_code: int) -> None:
    """Registers a name for a type code. ValueError for codes below 129, which are built in."""
    if type_code < 129:
        raise ValueError(f"type code {type_code} is taken; codes of custom types begin at 129")
    _codes[type_name] = int(type_code)


def get_type_code(type_name: str) -> int:
    if type_name not in _codes:
        raise ValueError(f"no custom type is called '{type_name}'")
    return _codes[type_name]


def get_type_name(type_code: int) -> str:
    for name, code in _codes.items():
        if code == type_code:
            return name
    raise ValueError(f"no custom type has the code {type_code}")


def get_type_registered(type_code: int) -> bool:
    return type_code in _codes.values()


def _lowering(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("kernels compute with the built-in number types; 'tilewright ops' lists them")


register_op = register_min_func = create_lower_func = create_min_lower_func = lower_ite = lower_call_pure_extern = _lowering

__all__ = ["create_lower_func", "create_min_lower_func", "get_type_code", "get_type_name", "get_type_registered", "lower_call_pure_extern", "lower_ite", "register",
           "register_min_func", "register_op"]
