# SPDX-License-Identifier: Apache-2.0
"""The classic file of `CallGraph`."""
from . import CallGraph

__all__ = ["CallGraph"]
