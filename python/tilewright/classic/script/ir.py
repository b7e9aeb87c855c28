# SPDX-License-Identifier: Apache-2.0
"""The names that scripts import as `I`: `@I.ir_module` on a class of functions."""
from __future__ import annotations

from .parser import ir_module

__all__ = ["ir_module"]
