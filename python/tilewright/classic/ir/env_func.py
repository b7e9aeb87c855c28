# SPDX-License-Identifier: Apache-2.0
"""A registered function as an object with a name: callable, and serialised by name."""
from __future__ import annotations

from typing import Any

from ..registry import get_global_func


class EnvFunc:
    """`EnvFunc.get("my.function")(x)`; ValueError if the function is not registered."""

    def __init__(self, name: str):
        self.name = name
        self.func = get_global_func(name)

    @staticmethod
    def get(name: str) -> "EnvFunc":
        return EnvFunc(name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvFunc) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def same_as(self, other: object) -> bool:
        return self == other

    def __reduce__(self) -> Any:
        return EnvFunc, (self.name,)


__all__ = ["EnvFunc"]
