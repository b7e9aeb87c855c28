# SPDX-License-Identifier: Apache-2.0
"""Values of the interpreter under their classic names, and the executor of that name."""
from __future__ import annotations

from typing import Any

from ...runtime.container import ADT
from ..executors import InterpreterExecutor, _Executor

ConstructorValue = ADT
Executor = _Executor
Interpreter = InterpreterExecutor


class RefValue:
    """A reference; `value` is its content."""

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        return f"RefValue({self.value!r})"


__all__ = ["ConstructorValue", "Executor", "Interpreter", "RefValue"]
