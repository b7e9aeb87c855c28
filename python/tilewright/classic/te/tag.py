# SPDX-License-Identifier: Apache-2.0
"""Tags: the kind of computation of an operation, which schedules inspect."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class TagScope:
    """`with tag_scope(tag="injective"):`, or a decorator of a compute function."""
    _current: "TagScope | None" = None

    @classmethod
    def get_current(cls) -> "TagScope | None":
        return cls._current

    def __init__(self, tag: str):
        self.tag = tag

    def __enter__(self) -> "TagScope":
        if TagScope._current is not None:
            raise ValueError("nested op_tag is not allowed for now")
        TagScope._current = self
        return self

    def __exit__(self, *_: Any) -> None:
        TagScope._current = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def tagged(*args: Any, **kwargs: Any) -> Any:
            with TagScope(self.tag):
                return function(*args, **kwargs)
        return tagged


def tag_scope(tag: str) -> TagScope:
    return TagScope(tag)


__all__ = ["TagScope", "tag_scope"]
