# SPDX-License-Identifier: Apache-2.0
"""Options of passes as text."""
from .common import parse_configs

__all__ = ["parse_configs"]
