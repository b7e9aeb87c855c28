# SPDX-License-Identifier: Apache-2.0
"""Quantised operators, as the arithmetic that they stand for."""
from __future__ import annotations

from . import op

__all__ = ["op"]
