# SPDX-License-Identifier: Apache-2.0
"""Passes that need the parameters' values: each module's `convert` changes a function and its parameters together."""
from . import bsr_conv2d, bsr_dense, simplify_fc_transpose

__all__ = ["bsr_conv2d", "bsr_dense", "simplify_fc_transpose"]
