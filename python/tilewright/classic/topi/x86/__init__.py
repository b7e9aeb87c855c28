# SPDX-License-Identifier: Apache-2.0
"""Pieces of schedules for processors."""
from . import tensor_intrin

__all__ = ["tensor_intrin"]
