# SPDX-License-Identifier: Apache-2.0
"""Derives names of C functions, variables and constants from model names. Errors: 101 for an empty name or one without the TVM prefix."""
from __future__ import annotations

from collections.abc import Sequence

from ....model import error_of


def _checked(name: str, what: str) -> str:
    if not name:
        raise error_of(101, "InvalidArgument", f"{what} name is empty")
    if not name.startswith("TVM"):
        raise error_of(101, "InvalidArgument", f"{what} '{name}' not TVM prefixed")
    return name


def to_c_function_style(original_name: str) -> str:
    """"TVM_my_function" to "TVMMyFunction"."""
    words = _checked(original_name, "Function").split("_")
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])


def to_c_variable_style(original_name: str) -> str:
    """"TVM_My_Variable" to "tvm_my_variable"."""
    return _checked(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """"TVM_my_constant" to "TVM_MY_CONSTANT"."""
    return _checked(original_name, "Constant").upper()


def _joined(names: str | Sequence[str]) -> str:
    text = names if isinstance(names, str) else "_".join(names)
    if not text:
        raise error_of(101, "InvalidArgument", "Name is empty")
    return text


def prefix_name(names: str | Sequence[str]) -> str:
    """The name, or several names joined by underscores, with the prefix TVM_."""
    return "TVM_" + _joined(names)


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """As prefix_name, with the prefix of generated names, TVMGen_."""
    return "TVMGen_" + _joined(names)


def sanitize_name(original_name: str) -> str:
    """Replaces every character other than letters, digits and underscores by an underscore."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in _joined(original_name))


__all__ = ["prefix_generated_name", "prefix_name", "sanitize_name", "to_c_constant_style", "to_c_function_style", "to_c_variable_style"]
