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
    """The function of a text without definitions. Error: 303."""
    text = source.strip().removeprefix('#[version = "0.0.5"]').strip()
    return fromtext('#[version = "0.0.5"]\ndef @main' + (text.removeprefix("fn") if text.startswith("fn") else "() { " + text + " }"))["main"]


__all__ = ["fromtext", "parse", "parse_expr"]
