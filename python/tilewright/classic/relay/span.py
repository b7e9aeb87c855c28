# SPDX-License-Identifier: Apache-2.0
"""Source locations of expressions."""
from __future__ import annotations

import re
from typing import Any


class SourceName(str):
    """The name of a source text or model."""

    @property
    def name(self) -> str:
        return str(self)


class Span(str):
    """The source location of an expression: a node of the model, or a range of a text."""

    line: int
    end_line: int
    column: int
    end_column: int

    def __new__(cls, source_name: Any = "", line: int = 1, end_line: int | None = None, column: int = 1, end_column: int | None = None) -> "Span":
        made = super().__new__(cls, str(source_name))
        made.line, made.end_line = int(line), int(line if end_line is None else end_line)
        made.column, made.end_column = int(column), int(column if end_column is None else end_column)
        return made

    def same_as(self, other: object) -> bool:
        return isinstance(other, Span) and self == other

    @property
    def source_name(self) -> SourceName:
        return SourceName(re.sub(r":-?\d+:-?\d+$", "", self))


def comments_of(nodes: Any) -> Any:
    """How text comments its nodes if not by their types: types are only shown where inference has found them all, and the source that a
    script or a model gave a node (no place of a text) where there is one. None: by their types."""
    named = any(n._span and not _PLACE.search(n._span) for n in nodes)
    typed = all(n._typed or type(n).__name__ == "Op" for n in nodes)
    if typed and not named:
        return None

    def comment(node: Any) -> str:
        words = ([f"ty={node._type}"] if typed and node._typed else []) + ([f"from {node._span}"] if node._span and not _PLACE.search(node._span) and "*/" not in node._span else [])
        return f" /* {' '.join(words)} */" if words else ""
    return comment


_PLACE = re.compile(r":-?\d+:-?\d+$")
