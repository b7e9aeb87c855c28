# SPDX-License-Identifier: Apache-2.0
"""TVMScript: functions over buffers in Python syntax. `@T.prim_func` on a function, `@tvm.script.ir_module` on a class of them."""
from __future__ import annotations

from . import ir, tir
from .parser import from_source, ir_module

__all__ = ["from_source", "ir", "ir_module", "tir"]
