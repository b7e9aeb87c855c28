# SPDX-License-Identifier: Apache-2.0
"""Parses options of passes."""
from .common import parse_configs

__all__ = ["parse_configs"]
