# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes for types. Kernels are chosen from built-in implementations: there are no schedules to write."""
from __future__ import annotations

from .tir import Any, Var


def var(name: str = "tindex", dtype: str = "int32", span: object = None) -> Var:
    """A size by name: `relay.var("x", shape=(te.var("n"), 4))`."""
    return Var(name, dtype)


size_var = var

__all__ = ["Any", "Var", "size_var", "var"]
