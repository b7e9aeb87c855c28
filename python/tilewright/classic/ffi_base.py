# SPDX-License-Identifier: Apache-2.0
"""Small helpers of the classic foreign function interface."""
from __future__ import annotations

import ctypes
import numbers
from typing import Any

from .error import Error, TVMError, register_error

string_types, integer_types, numeric_types = (str,), (int,), (numbers.Number,)


def py_str(value: Any) -> str:
    """Decodes bytes to text."""
    return value.decode("utf-8") if isinstance(value, (bytes, bytearray)) else str(value)


def c_str(string: str) -> ctypes.c_char_p:
    return ctypes.c_char_p(string.encode("utf-8"))


def check_call(ret: int) -> None:
    """Raises TVMError if a C function returned non-zero."""
    if ret != 0:
        raise TVMError(f"a C function returned {ret}")


__all__ = ["Error", "TVMError", "c_str", "check_call", "integer_types", "numeric_types", "py_str", "register_error", "string_types"]
