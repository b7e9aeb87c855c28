# SPDX-License-Identifier: Apache-2.0
"""What a build is told about passes, as in the classic stack."""
from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Any

from . import _core

_current: contextvars.ContextVar["PassContext | None"] = contextvars.ContextVar("pass_context", default=None)


class PassContext:
    """`with PassContext(opt_level=3): lib = relay.build(mod)`. Names of passes are checked by the build (E305)."""

    def __init__(self, opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
                 instruments: Sequence[Any] | None = None, config: dict[str, Any] | None = None):
        if instruments:
            raise NotImplementedError("instruments written in Python are not supported yet")
        if config:
            raise NotImplementedError("config keys are not supported from Python yet: " + ", ".join(sorted(config)))
        self.opt_level = opt_level
        self.required_pass = list(required_pass or [])
        self.disabled_pass = list(disabled_pass or [])
        self._tokens: list[contextvars.Token] = []

    def __enter__(self) -> "PassContext":
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._tokens.pop())

    @staticmethod
    def current() -> "PassContext":
        return _current.get() or PassContext()


def pass_names() -> list[str]:
    return _core.pass_names()
