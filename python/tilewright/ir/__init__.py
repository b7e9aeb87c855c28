# SPDX-License-Identifier: Apache-2.0
"""Modules, passes and instruments under their classic names."""
from __future__ import annotations

from typing import Any

from .. import transform
from .._core import Expr, IRModule
from . import instrument


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    return transform._to_core(lhs) == transform._to_core(rhs)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """ValueError with both texts when they differ."""
    if not structural_equal(lhs, rhs):
        raise ValueError(f"StructuralEqual check failed:\n{lhs}\nand\n{rhs}")


__all__ = ["Expr", "IRModule", "assert_structural_equal", "instrument", "structural_equal", "transform"]
