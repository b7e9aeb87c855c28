# SPDX-License-Identifier: Apache-2.0
"""Parses shapes of inputs."""
from .common import parse_shape_string

__all__ = ["parse_shape_string"]
