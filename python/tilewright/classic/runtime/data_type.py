# SPDX-License-Identifier: Apache-2.0
"""Parses dtype strings."""
from __future__ import annotations

import re


class DataTypeCode:
    INT, UINT, FLOAT, HANDLE, BFLOAT = range(5)


class ArgTypeCode:
    """Kinds of arguments of packed functions."""
    INT, UINT, FLOAT, HANDLE, NULL, TVM_TYPE, DLDEVICE, DLTENSOR_HANDLE, OBJECT_HANDLE, MODULE_HANDLE, PACKED_FUNC_HANDLE, STR, BYTES, NDARRAY_HANDLE, OBJECT_RVALUE_REF_ARG, EXT_BEGIN = range(16)


_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4}


class DataType(str):
    """`DataType("float32")`, `DataType("int8x4")`. ValueError for an invalid dtype."""

    type_code: int
    bits: int
    lanes: int

    def __new__(cls, type_str: str) -> "DataType":
        text = "bool" if str(type_str) == "uint1" else str(type_str)
        custom = re.fullmatch(r"custom\[(\w+)\](\d*)(?:x(\d+))?", text)
        if custom:  # a data type that the script registered
            from ..target.datatype import get_type_code
            made = super().__new__(cls, text)
            made.type_code, made.bits, made.lanes = get_type_code(custom[1]), int(custom[2] or 32), int(custom[3] or 1)
            return made
        parts = re.fullmatch(r"(int|uint|float|handle|bfloat)(\d*)(?:_\w+)?(?:x(\d+))?", "uint1" if text == "bool" else text)
        if not parts:
            raise ValueError(f"Do not know how to handle type {text}")
        made = super().__new__(cls, text)
        kind, bits, lanes = parts.groups()
        made.type_code, made.bits, made.lanes = _CODES[kind], int(bits or (64 if kind == "handle" else 32)), int(lanes or 1)
        return made


__all__ = ["ArgTypeCode", "DataType", "DataTypeCode"]
