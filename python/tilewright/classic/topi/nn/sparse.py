# SPDX-License-Identifier: Apache-2.0
"""Dense layers of weights of few elements or blocks (CSR, BSR)."""
from __future__ import annotations

from typing import Any

from ... import te, tir
from ...tir import op as tir_op


def sparse_dense(dense_data: Any, sparse_data: Any, sparse_indices: Any, sparse_indptr: Any, sparse_lhs: bool = False) -> Any:
    """dense_data @ weight.T for a weight in CSR (data of one dimension) or BSR form (blocks); with `sparse_lhs` weight @ dense_data.T."""
    block = (1, 1) if len(sparse_data.shape) == 1 else (sparse_data.shape[1], sparse_data.shape[2])
    rows, m = sparse_indptr.shape[0] - 1, dense_data.shape[0]
    shape = (rows * block[0], m) if sparse_lhs else (m, rows * block[0])

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        x, data, indices, ends, out = (ib.buffer_ptr(b) for b in (*ins, outs[0]))
        zero = tir.const(0, dense_data.dtype)
        with ib.for_range(0, shape[0], "row", kind="parallel") as i:
            with ib.for_range(0, shape[1], "column") as j:
                out[i, j] = zero
                feature, sample = (i, j) if sparse_lhs else (j, i)
                place, inner = tir_op.floordiv(feature, block[0]), tir_op.floormod(feature, block[0])
                with ib.for_range(ends[place], ends[place + 1], "block") as b:
                    with ib.for_range(0, block[1], "k") as k:
                        weight = data[b] if len(sparse_data.shape) == 1 else data[b, inner, k]
                        out[i, j] = out[i, j] + weight * x[sample, indices[b] * block[1] + k]
        return ib.get()
    return te.extern(shape, [dense_data, sparse_data, sparse_indices, sparse_indptr], body, name="sparse_dense", tag="sparse_dense", dtype=dense_data.dtype)


def sparse_transpose(sparse_data: Any, sparse_indices: Any, sparse_indptr: Any) -> list[Any]:
    """The transposed of a square CSR matrix, as data, indices and indptr."""
    if len(sparse_data.shape) != 1:
        raise ValueError("sparse_transpose only supports 2-D matrices in CSR form")
    count, n = sparse_data.shape[0], sparse_indptr.shape[0] - 1

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        data, indices, ends, out, columns, starts = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, n + 1, "i") as i:
            starts[i] = 0
        with ib.for_range(0, count, "e") as e:
            starts[indices[e] + 1] = starts[indices[e] + 1] + 1
        with ib.for_range(0, n, "i") as i:
            starts[i + 1] = starts[i + 1] + starts[i]
        with ib.for_range(0, n, "row") as r:
            with ib.for_range(ends[r], ends[r + 1], "e") as e:
                out[starts[indices[e]]] = data[e]
                columns[starts[indices[e]]] = r
                starts[indices[e]] = starts[indices[e]] + 1
        with ib.for_range(0, n, "i") as i:  # each now is the end of its row
            starts[n - i] = starts[n - i - 1]
        starts[0] = 0
        return ib.get()
    return te.extern([sparse_data.shape, sparse_indices.shape, sparse_indptr.shape], [sparse_data, sparse_indices, sparse_indptr], body, tag="sparse_transpose_csr",
                     dtype=[sparse_data.dtype, "int32", "int32"], name="out")


__all__ = ["sparse_dense", "sparse_transpose"]
