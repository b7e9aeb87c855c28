# SPDX-License-Identifier: Apache-2.0
"""Relay text under its classic names."""
from __future__ import annotations

from typing import Any


def fromtext(source: str, source_name: str = "from_string") -> Any:
    """The module of a text that begins with #[version = "0.0.5"]. Error: 303."""
    from .relay import fromtext as read
    return read(source)


parse = fromtext


def parse_expr(source: str) -> Any:
    """The expression of a text without definitions; lines `free_var %x: T;` say its free variables. Error: 303."""
    text = source.strip().removeprefix('#[version = "0.0.5"]').strip()
    free = []
    while text.startswith("free_var "):
        line, _, text = text.partition(";\n")
        free.append(line.removeprefix("free_var ").strip())
    constants = ""
    if "\n#[metadata]" in text:
        text, _, constants = text.partition("\n#[metadata]")
        constants = "\n#[metadata]" + constants
    function = text.startswith("fn") and not free
    whole = text.removeprefix("fn").strip() if function else f"({', '.join(free)}) {{ {text}\n}}"
    made = fromtext('#[version = "0.0.5"]\ndef @main' + whole + "\n" + constants)["main"]
    return made if function else made.body


__all__ = ["fromtext", "parse", "parse_expr"]
