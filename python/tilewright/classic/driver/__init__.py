# SPDX-License-Identifier: Apache-2.0
"""From schedules to libraries, and the classic command line as functions."""
from __future__ import annotations

from . import build_module, tvmc
from .build_module import build, lower

__all__ = ["build", "build_module", "lower", "tvmc"]
