# SPDX-License-Identifier: Apache-2.0
"""The script interface of memory planning (tvm.tir.usmp): what a module's buffers are, planners by name, and the functions with their
buffers in pools. Models that are built with pools are planned by the same planners (docs/aot.md)."""
from __future__ import annotations

from . import analysis, transform, utils
from .utils import *  # noqa: F401,F403
from .utils import planner

__all__ = ["analysis", "planner", "transform", "utils", *utils.__all__]
