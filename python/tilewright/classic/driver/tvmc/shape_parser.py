# SPDX-License-Identifier: Apache-2.0
"""Shapes of inputs as text."""
from .common import parse_shape_string

__all__ = ["parse_shape_string"]
