# SPDX-License-Identifier: Apache-2.0
"""Tuning on many machines with a job scheduler: fleet.ray."""
from __future__ import annotations

__all__ = ["ray"]
