# SPDX-License-Identifier: Apache-2.0
"""The classic module of `CallGraph`."""
from . import CallGraph

__all__ = ["CallGraph"]
