# SPDX-License-Identifier: Apache-2.0
"""Pattern tables by the name of the external code generator, for MergeComposite."""
from __future__ import annotations

import importlib
from typing import Any

from ..registry import registered

SHIPPED = ("cblas", "ccompiler", "dnnl")  # modules beside this one
_tables: dict[str, Any] = {}


def register_pattern_table(compiler: str, table: Any = None) -> Any:
    """`@register_pattern_table("mine")` on a function that returns [(name, pattern) or (name, pattern, check)], or called with the list."""
    def store(made: Any) -> Any:
        _tables[compiler] = made() if callable(made) else made
        return made
    return store if table is None else store(table)


def load_rules(compiler: str) -> None:
    """Registers the operators of a generator that comes with the compiler, unless a script has said which it takes."""
    if compiler in SHIPPED and not registered(f"target.{compiler}"):
        importlib.import_module("." + compiler, __package__)


def get_pattern_table(compiler: str) -> Any:
    """The patterns of a code generator, or None. Those of the generators that come with the compiler are loaded on use."""
    if compiler not in _tables and compiler in SHIPPED:
        importlib.import_module("." + compiler, __package__)
    return _tables.get(compiler)


__all__ = ["get_pattern_table", "load_rules", "register_pattern_table"]
