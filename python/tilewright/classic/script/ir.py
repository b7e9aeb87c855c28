# SPDX-License-Identifier: Apache-2.0
"""What scripts call `I`: `@I.ir_module` above a class of functions."""
from __future__ import annotations

from .parser import ir_module

__all__ = ["ir_module"]
