# SPDX-License-Identifier: Apache-2.0
"""Functions, under the classic name of their module."""
from .expr import Expr, Function
from .with_fields import FunctionWithFields

__all__ = ["Expr", "Function", "FunctionWithFields"]
