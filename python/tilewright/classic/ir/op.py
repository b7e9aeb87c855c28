# SPDX-License-Identifier: Apache-2.0
"""Operators and what is registered about them, under their classic names."""
from __future__ import annotations

from ..relay.expr import Op
from ..relay.op.registry import register_intrin_lowering, register_op_attr

__all__ = ["Op", "register_intrin_lowering", "register_op_attr"]
