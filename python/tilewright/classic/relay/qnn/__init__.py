# SPDX-License-Identifier: Apache-2.0
"""Quantised operators."""
from __future__ import annotations

from . import op, transform

__all__ = ["op", "transform"]
