# SPDX-License-Identifier: Apache-2.0
"""Functions over buffers written as Python: `@T.prim_func` above a function, `@tvm.script.ir_module` above a class of them."""
from __future__ import annotations

from . import ir, tir
from .parser import from_source, ir_module

__all__ = ["from_source", "ir", "ir_module", "tir"]
