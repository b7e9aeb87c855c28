# SPDX-License-Identifier: Apache-2.0
"""Converts mostly zero weights of convolutions to block-sparse form (BSR)."""
from __future__ import annotations

from typing import Any

import numpy as np

from .sparse_dense import SparseAnalysisResult, as_array, replace, to_blocks, weight_names


def process_params(expr: Any, params: dict[str, Any], block_size: tuple[int, int], sparsity_threshold: float, layout: str, kernel_size: int,
                   reg_task_input: bool = True) -> SparseAnalysisResult:
    """Replaces in `params` the nn.conv2d weights whose share of zeros is at least the threshold by NAME.data, NAME.indices and
    NAME.indptr. Zeros are counted by element for 1x1 kernels, by block for 3x3 ones. reg_task_input is accepted for compatibility."""
    if layout not in ("NHWC", "NCHW"):
        raise ValueError(f"layout {layout} is not NHWC or NCHW")
    found = SparseAnalysisResult([], [])
    for name in weight_names(expr, "nn.conv2d"):
        if name not in params:
            continue
        weight = as_array(params[name])
        height, width = weight.shape[:2] if layout == "NHWC" else weight.shape[2:]
        if (height, width) != (kernel_size, kernel_size) or kernel_size not in (1, 3):
            continue
        matrix = weight.reshape(-1, weight.shape[3]).T if layout == "NHWC" else weight.reshape(weight.shape[0], -1)
        if kernel_size == 1 and 1.0 - np.count_nonzero(matrix) / matrix.size < sparsity_threshold:
            continue
        data, indices, indptr = to_blocks(matrix, block_size)
        if kernel_size == 3 and 1.0 - data.size / matrix.size < sparsity_threshold:
            continue
        if kernel_size == 1 and block_size[1] == 1:
            data = data.reshape(data.shape[:2])
        replace(params, name, data, indices, indptr, found)
    return found


__all__ = ["SparseAnalysisResult", "process_params"]
