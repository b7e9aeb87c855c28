# SPDX-License-Identifier: Apache-2.0
"""The process-wide table of functions by name, shared with C and C++ (docs/runtime.md)."""
from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

from . import _core

Function = _core.Function
PackedFunc = _core.Function
_registered: set[str] = set()


def register_func(func_name: str | Callable[..., Any], f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """`register_func("name", f)`, or a decorator: `@register_func("name")`, `@register_func`. Errors: 101 (the name is taken)."""
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _core.register_func(func_name, function, override)
        _registered.add(func_name)
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The function, wherever it is written. Missing: None when allowed, else ValueError."""
    found = _core.get_global_func(name)
    if found is None and not allow_missing:
        raise ValueError(f"Cannot find global function {name}; list_global_func_names() has what there is")
    return found


def remove_global_func(name: str) -> None:
    _core.remove_global_func(name)
    _registered.discard(name)


def list_global_func_names() -> list[str]:
    return _core.list_global_func_names()


def convert(value: Any) -> Any:
    """A callable as a Function; other values as they are."""
    return _core.convert_function(value) if callable(value) and not isinstance(value, Function) else value


@atexit.register
def _forget() -> None:  # before the interpreter goes, for the table outlives it
    for name in list(_registered):
        try:
            _core.remove_global_func(name)
        except _core.Error:
            pass


__all__ = ["Function", "PackedFunc", "convert", "get_global_func", "list_global_func_names", "register_func", "remove_global_func"]
