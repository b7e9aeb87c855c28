# SPDX-License-Identifier: Apache-2.0
"""Generic functions: a call dispatches to the function registered for a key of the current target, or to the default."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any


class GenericFunc:
    """`f.set_default(g)`, `f.register(h, ["gpu"])`; f(...) dispatches by `Target.current()`."""

    _all: dict[str, "GenericFunc"] = {}

    def __init__(self, name: str = ""):
        self.name_hint = name
        self._default: Callable[..., Any] | None = None
        self._by_key: dict[str, Callable[..., Any]] = {}

    def set_default(self, func: Callable[..., Any], allow_override: bool = False) -> None:
        if self._default is not None and not allow_override:
            raise ValueError(f"Generic function already registered for {self.name_hint}")
        self._default = func

    def register(self, func: Callable[..., Any], key_list: str | Sequence[str], allow_override: bool = False) -> None:
        for key in [key_list] if isinstance(key_list, str) else key_list:
            if key in self._by_key and not allow_override:
                raise ValueError(f"Tag {key} already registered for function {self.name_hint}")
            self._by_key[key] = func

    def get_packed_func(self) -> Callable[..., Any]:
        """The function that a call would dispatch to now."""
        from . import Target
        target = Target.current()
        for key in target.keys if target is not None else ():
            if key in self._by_key:
                return self._by_key[key]
        if self._default is None:
            raise ValueError(f"Generic function {self.name_hint} has no default, and nothing for {target}")
        return self._default

    def __call__(self, *args: Any) -> Any:
        return self.get_packed_func()(*args)


def get_native_generic_func(name: str) -> GenericFunc:
    """The generic function with this name, created on first use."""
    return GenericFunc._all.setdefault(name, GenericFunc(name))


class _Dispatcher:
    """The decorated function: with keys it is a decorator that registers another function, `@f.register(["gpu"])`; calling it dispatches
    by target."""

    def __init__(self, default: Callable[..., Any], func: GenericFunc, override: bool):
        functools.update_wrapper(self, default)
        self.fdefault, self.generic_func_node, self._override = default, func, override

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.generic_func_node.get_packed_func()(*args, **kwargs)

    def register(self, key: str | Sequence[str], func: Callable[..., Any] | None = None, override: bool | None = None) -> Any:
        def store(chosen: Callable[..., Any]) -> Callable[..., Any]:
            self.generic_func_node.register(chosen, key, self._override if override is None else override)
            return chosen
        return store if func is None else store(func)

    def get_packed_func(self) -> Callable[..., Any]:
        return self.generic_func_node.get_packed_func()

    @property
    def dispatch_dict(self) -> dict[str, Callable[..., Any]]:
        return self.generic_func_node._by_key


def generic_func(fdefault: Callable[..., Any]) -> Any:
    """Decorator: makes a function generic, so that others can be registered for target keys."""
    func = GenericFunc(fdefault.__name__)
    func.set_default(fdefault)
    return _Dispatcher(fdefault, func, False)


def override_native_generic_func(func_name: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: sets the default of the generic function with this name, and dispatches through it."""
    func = get_native_generic_func(func_name)

    def decorate(fdefault: Callable[..., Any]) -> Any:
        func.set_default(fdefault, allow_override=True)
        return _Dispatcher(fdefault, func, True)
    return decorate


__all__ = ["GenericFunc", "generic_func", "get_native_generic_func", "override_native_generic_func"]
