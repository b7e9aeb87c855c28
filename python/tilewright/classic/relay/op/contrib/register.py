# SPDX-License-Identifier: Apache-2.0
"""Pattern tables by the name of the external code generator, for MergeComposite."""
from __future__ import annotations

import importlib
from typing import Any

from ..registry import register_op_attr, registered

SHIPPED = ("cblas", "ccompiler", "dnnl")  # modules beside this one
_tables: dict[str, Any] = {}


def register_pattern_table(compiler: str, table: Any = None) -> Any:
    """`@register_pattern_table("mine")` on a function that returns [(name, pattern) or (name, pattern, check)], or called with the list."""
    def store(made: Any) -> Any:
        _tables[compiler] = made() if callable(made) else made
        return made
    return store if table is None else store(table)


def _load(compiler: str) -> bool:
    """Loads what the compiler itself says of a code generator. False: it says nothing."""
    from . import vendor_patterns
    if compiler in SHIPPED:
        importlib.import_module("." + compiler, __package__)
        return True
    if compiler not in vendor_patterns.TABLES:
        return False
    table, rules = vendor_patterns.TABLES[compiler]()
    _tables.setdefault(compiler, table)
    for name, rule in rules.items():
        register_op_attr(name, f"target.{compiler}", rule, level=5)  # a script's own take precedence
    return True


def load_rules(compiler: str) -> None:
    """Registers the operators of a generator that the compiler knows, unless a script has said which it takes."""
    if not registered(f"target.{compiler}") and compiler not in _tables:
        _load(compiler)


def get_pattern_table(compiler: str) -> Any:
    """The patterns of a code generator, or None. Those that the compiler knows are loaded on use."""
    if compiler not in _tables:
        _load(compiler)
    return _tables.get(compiler)


__all__ = ["get_pattern_table", "load_rules", "register_pattern_table"]
