# SPDX-License-Identifier: Apache-2.0
"""Tuning on many machines with an engine that hands out work: fleet.ray."""
from __future__ import annotations

__all__ = ["ray"]
