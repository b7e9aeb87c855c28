# SPDX-License-Identifier: Apache-2.0
"""Converts convolutions with mostly zero weights to sparse ones."""
from __future__ import annotations

from typing import Any

from ..analysis.sparse_conv2d import process_params
from ..transform import Conv2dToSparse, Conv2dToSparse2
from .utils import run_pass


def convert(func: Any, params: dict[str, Any], blocksize: tuple[int, int], sparsity_threshold: float, layout: str = "NHWC",
            kernel_size: int = 1) -> tuple[Any, dict[str, Any]]:
    """(the function with nn.sparse_conv2d, params with the weights whose share of zeros is at least the threshold in block form)."""
    before = dict(params)
    found = process_params(func, params, blocksize, sparsity_threshold, layout, kernel_size)
    return run_pass(func, Conv2dToSparse(found.weight_name, found.weight_shape, layout, kernel_size), params, before), params


def convert2(func: Any, params: dict[str, Any], blocksize: tuple[int, int], sparsity_threshold: float, layout: str, kernel_size: int) -> tuple[Any, dict[str, Any]]:
    """As convert, for weights that are constants of the function; params are unchanged."""
    return run_pass(func, Conv2dToSparse2(layout, kernel_size, blocksize, sparsity_threshold), params, params), params


__all__ = ["convert", "convert2"]
