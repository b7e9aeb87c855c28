# SPDX-License-Identifier: Apache-2.0
"""Function results cached in a file across runs of a script."""
from __future__ import annotations

import atexit
import functools
import os
import pickle
from collections.abc import Callable
from typing import Any


class Cache:
    """Results by key, loaded on first use."""
    cache_by_key: dict[str, "Cache"] = {}

    def __init__(self, key: str, save_at_exit: bool):
        self.key, self.save_at_exit = key, save_at_exit
        self.path = os.path.join(os.path.expanduser("~"), ".cache", "tilewright", "memoize", f"{key}.pkl")
        self.cache: dict[Any, Any] = {}
        self.dirty = False
        if os.path.exists(self.path):
            try:
                with open(self.path, "rb") as file:
                    self.cache = pickle.load(file)
            except (pickle.UnpicklingError, EOFError, AttributeError, ValueError):
                self.cache = {}  # written by another version: start afresh

    def save(self) -> None:
        if self.dirty:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path, "wb") as file:
                pickle.dump(self.cache, file, pickle.HIGHEST_PROTOCOL)
            self.dirty = False


@atexit.register
def _atexit() -> None:
    for cache in Cache.cache_by_key.values():
        if cache.save_at_exit:
            cache.save()


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`@memoize("name")` on a function with hashable arguments caches its results. Values captured in its closure are part of the key."""
    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        outer = tuple(c.cell_contents for c in function.__closure__ or () if isinstance(getattr(c, "cell_contents", None), (int, float, str, bool, tuple)))
        name = f"{key}.{function.__name__}.memoize.pickle"

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if name not in Cache.cache_by_key:
                Cache.cache_by_key[name] = Cache(name, save_at_exit)
            cache = Cache.cache_by_key[name]
            at = (outer, args, tuple(sorted(kwargs.items())))
            if at not in cache.cache:
                cache.cache[at] = function(*args, **kwargs)
                cache.dirty = True
                if not save_at_exit:
                    cache.save()
            return cache.cache[at]
        return wrapped
    return decorator


__all__ = ["Cache", "memoize"]
