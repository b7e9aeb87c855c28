# SPDX-License-Identifier: Apache-2.0
"""Operators on sparse matrices: an object with data, indices and indptr (a namedtuple or scipy matrix), or a tuple of the three."""
from __future__ import annotations

from typing import Any

from ..expr import Call, TupleWrapper, _like


def _parts(matrix: Any) -> list[Any]:
    parts = (matrix.data, matrix.indices, matrix.indptr) if hasattr(matrix, "indices") else tuple(matrix)[:3]
    return [_like(p) for p in parts]


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Call:
    """dense * transpose(sparse); with sparse_lhs sparse * transpose(dense)."""
    return Call("nn.sparse_dense", [_like(dense_mat), *_parts(sparse_mat)], {"sparse_lhs": sparse_lhs})


def sparse_transpose(x: Any) -> TupleWrapper:
    """(data, indices, indptr) of the transpose of a square matrix."""
    return TupleWrapper(Call("nn.sparse_transpose", _parts(x)), 3)


def sparse_add(dense_mat: Any, sparse_mat: Any) -> Call:
    return Call("nn.sparse_add", [_like(dense_mat), *_parts(sparse_mat)])


TABLE: dict[str, Any] = {f"nn.{f.__name__}": f for f in (sparse_dense, sparse_transpose, sparse_add)}
