# SPDX-License-Identifier: Apache-2.0
"""Runs a program and returns Python values. The classic stack translates it to Python; here the reference executor runs it."""
from __future__ import annotations

from typing import Any

from ..executors import create_executor


def run_as_python(expr: Any, mod: Any = None, target: Any = "llvm") -> Any:
    """Evaluates an expression over the functions and types of `mod`: arrays, ADT for tuples and data types, RefValue for references, a
    callable for a function."""
    return create_executor("debug", mod=mod, target=target).evaluate(expr)


__all__ = ["run_as_python"]
