# SPDX-License-Identifier: Apache-2.0
"""Executors that look between the steps."""
from . import debug_executor

__all__ = ["debug_executor"]
