# SPDX-License-Identifier: Apache-2.0
"""Converts dense layers with mostly zero weights to sparse ones."""
from __future__ import annotations

from typing import Any

from ..analysis.sparse_dense import process_params
from ..transform import DenseToSparse
from .utils import run_pass


def convert(func: Any, params: dict[str, Any], blocksize: tuple[int, int], sparsity_threshold: float) -> tuple[Any, dict[str, Any]]:
    """(the function with nn.sparse_dense, params with the weights whose share of zeros is at least the threshold in block form)."""
    before = dict(params)
    found = process_params(func, params, blocksize, sparsity_threshold)
    return run_pass(func, DenseToSparse(found.weight_name, found.weight_shape), params, before), params


__all__ = ["convert"]
