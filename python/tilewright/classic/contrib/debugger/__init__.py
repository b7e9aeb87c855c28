# SPDX-License-Identifier: Apache-2.0
"""Executors that expose intermediate results."""
from . import debug_executor

__all__ = ["debug_executor"]
