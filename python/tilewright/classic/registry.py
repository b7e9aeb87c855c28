# SPDX-License-Identifier: Apache-2.0
"""The process-wide registry of functions by name, shared with C and C++ (docs/runtime.md)."""
from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import Any

from .. import _core

Function = _core.Function
PackedFunc = _core.Function
_registered: dict[str, Callable[..., Any]] = {}
_of_objects: dict[str, Callable[..., Any]] = {}


def register_func(func_name: str | Callable[..., Any], f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """`register_func("name", f)`, or a decorator: `@register_func("name")`, `@register_func`. Errors: 101 (the name is taken)."""
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _core.register_func(func_name, function, override)
        _of_objects.pop(func_name, None)
        _registered[func_name] = function
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The registered function, of any language. If missing: None when allow_missing, else ValueError."""
    if name in _of_objects:
        return _of_objects[name]
    found = _core.get_global_func(name)
    if found is None and not allow_missing:
        raise ValueError(f"Cannot find global function {name}; list_global_func_names() has what there is")
    return found


def register_for_objects(func_name: str, f: Callable[..., Any]) -> None:
    """A function that takes and gives objects of Python, which the table shared with C and C++ has no form for: get_global_func gives it as it is."""
    register_func(func_name, f, override=True)
    _of_objects[func_name] = f


def remove_global_func(name: str) -> None:
    _core.remove_global_func(name)
    _registered.pop(name, None)
    _of_objects.pop(name, None)


def registered_in_python(prefix: str) -> dict[str, Callable[..., Any]]:
    """Python functions registered under names with this prefix, unwrapped, for callers that pass Python objects."""
    return {name: function for name, function in _registered.items() if name.startswith(prefix)}


def list_global_func_names() -> list[str]:
    return _core.list_global_func_names()


def extract_ext_funcs(finit: Callable[..., Any]) -> dict[str, Any]:
    raise NotImplementedError("functions of an extension are registered by the runtime's C API (docs/runtime.md), and found with get_global_func")


def register_object(type_key: Any = None) -> Any:
    """Decorator that registers a class under a classic type key. Objects from C++ use the compiler's own classes."""
    def store(cls: type, key: str | None = None) -> type:
        _objects[key or cls.__name__] = cls
        return cls
    return store(type_key) if isinstance(type_key, type) else lambda cls: store(cls, type_key)


def register_extension(cls: type, fcreate: Callable[..., Any] | None = None) -> type:
    """Marks a class that wraps a tensor: functions receive its `_tvm_handle`. Python's builtin types need no mark."""
    if not hasattr(cls, "_tvm_tcode") and not hasattr(cls, "_tvm_handle"):
        raise AttributeError(f"{cls.__name__} has neither _tvm_handle nor _tvm_tcode")
    _extensions[cls] = fcreate
    return cls


def register_error(*args: Any, **kwargs: Any) -> Any:
    from .error import register_error as register
    return register(*args, **kwargs)


_objects: dict[str, type] = {}
_extensions: dict[type, Any] = {}


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Puts the functions registered as "namespace.name" into a script's module."""
    prefix, module = namespace.removeprefix("tvm.") + ".", sys.modules[target_module_name or namespace]
    for name in list_global_func_names():
        if name.startswith(prefix) and "." not in name[len(prefix):]:
            setattr(module, name[len(prefix):], get_global_func(name))


def convert(value: Any) -> Any:
    """A callable as a Function; other values unchanged."""
    return _core.convert_function(value) if callable(value) and not isinstance(value, Function) else value


@atexit.register
def _forget() -> None:  # before interpreter shutdown, which the C++ registry outlives
    for name in list(_registered):
        try:
            _core.remove_global_func(name)
        except _core.Error:
            pass


convert_to_tvm_func = convert

__all__ = ["Function", "PackedFunc", "convert", "convert_to_tvm_func", "extract_ext_funcs", "get_global_func", "list_global_func_names", "register_error", "register_extension",
           "register_func", "register_object", "remove_global_func"]
