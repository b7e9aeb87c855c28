# SPDX-License-Identifier: Apache-2.0
"""`topi.testing`: what operators compute, in numpy. Kernels themselves are chosen from built-in implementations."""
from . import testing, utils

__all__ = ["testing", "utils"]
