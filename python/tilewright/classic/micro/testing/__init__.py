# SPDX-License-Identifier: Apache-2.0
"""Utilities for tests of models in programs without an operating system."""
from . import aot_test_utils

__all__ = ["aot_test_utils"]
