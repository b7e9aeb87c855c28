# SPDX-License-Identifier: Apache-2.0
"""Whole-model drivers: the classic command line as functions."""
from __future__ import annotations

from . import tvmc

__all__ = ["tvmc"]
