# SPDX-License-Identifier: Apache-2.0
"""Converts mostly zero weights of dense layers to block-sparse form (BSR)."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .... import _core
from ..expr import Call, Var, _like


class SparseAnalysisResult(NamedTuple):
    """The converted weights, and for each the sizes of data, indices and indptr."""
    weight_name: list[str]
    weight_shape: list[list[int]]


def weight_names(expr: Any, op: str) -> list[str]:
    """The names of the parameters that are second operands of an operator, without repetition."""
    return list(dict.fromkeys(e.args[1].name_hint for e in _core.post_order(_like(expr)) if isinstance(e, Call) and e.op == op and isinstance(e.args[1], Var)))


def as_array(value: Any) -> np.ndarray:
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def to_blocks(matrix: np.ndarray, block_size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(data, indices, indptr) of the non-zero blocks, row by row. ValueError: the block size does not divide the matrix."""
    rows, columns = block_size
    if matrix.ndim != 2 or matrix.shape[0] % rows or matrix.shape[1] % columns:
        raise ValueError(f"blocks of {rows} x {columns} do not divide a matrix {matrix.shape}")
    blocks = matrix.reshape(matrix.shape[0] // rows, rows, matrix.shape[1] // columns, columns).transpose(0, 2, 1, 3)
    held = blocks.any(axis=(2, 3))
    indptr = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype("int32")
    return np.ascontiguousarray(blocks[held]), np.nonzero(held)[1].astype("int32"), indptr


def replace(params: Any, name: str, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, found: SparseAnalysisResult) -> None:
    """Replaces a weight by three parameters."""
    from ...runtime.ndarray import array
    del params[name]
    found.weight_name.append(name)
    found.weight_shape.append([*data.shape, *indices.shape, *indptr.shape])
    for suffix, value in ((".data", data), (".indices", indices), (".indptr", indptr)):
        params[name + suffix] = array(value)


def process_params(expr: Any, params: dict[str, Any], block_size: tuple[int, int], sparsity_threshold: float) -> SparseAnalysisResult:
    """Replaces in `params` the nn.dense weights whose share of zeros is at least the threshold by NAME.data, NAME.indices and
    NAME.indptr."""
    found = SparseAnalysisResult([], [])
    for name in weight_names(expr, "nn.dense"):
        if name not in params:
            continue
        weight = as_array(params[name])
        if 1.0 - np.count_nonzero(weight) / weight.size >= sparsity_threshold:
            replace(params, name, *to_blocks(weight, block_size), found)
    return found


__all__ = ["SparseAnalysisResult", "process_params"]
