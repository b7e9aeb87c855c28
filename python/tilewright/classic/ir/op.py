# SPDX-License-Identifier: Apache-2.0
"""Operators and what is registered about them, under their classic names."""
from __future__ import annotations

from typing import Any

from ..relay.expr import Op
from ..relay.op.registry import register_op_attr


def register_intrin_lowering(op_name: str, target: Any = None, f: Any = None, level: int = 10) -> Any:
    raise NotImplementedError("kernels and their intrinsics are built in; an external code generator makes its own (docs/external-codegen.md)")


__all__ = ["Op", "register_intrin_lowering", "register_op_attr"]
