# SPDX-License-Identifier: Apache-2.0
"""Optimisations that depend on parameter values: each module's `convert` changes a function together with its parameters."""
from . import bsr_conv2d, bsr_dense, simplify_fc_transpose

__all__ = ["bsr_conv2d", "bsr_dense", "simplify_fc_transpose"]
