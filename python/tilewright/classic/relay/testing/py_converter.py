# SPDX-License-Identifier: Apache-2.0
"""Programs whose result Python wants at once. The classic stack wrote them as Python first; here the reference executor runs them."""
from __future__ import annotations

from typing import Any

from ..executors import create_executor


def run_as_python(expr: Any, mod: Any = None, target: Any = "llvm") -> Any:
    """What an expression over the functions and types of `mod` gives: arrays, ADT of tuples and data types, RefValue of references, a callable of a
    function."""
    return create_executor("debug", mod=mod, target=target).evaluate(expr)


__all__ = ["run_as_python"]
