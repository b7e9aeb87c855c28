# SPDX-License-Identifier: Apache-2.0
"""Products with CSR matrices (`contrib.sparse.placeholder`). Rows of the result are computed in parallel."""
from __future__ import annotations

from typing import Any

from .. import te, tir
from ..contrib.sparse import CSRPlaceholderOp


def _rows(name: str, shape: Any, given: list[Any], first: Any, row: Any) -> Any:
    """A tensor whose element (i, j) starts as first(ins, i, j); row(ib, ins, i) emits the sums of a row by its loops."""
    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        ptr, out = [ib.buffer_ptr(b) for b in ins], ib.buffer_ptr(outs[0])
        with ib.for_range(0, shape[0], "row", kind="parallel") as i:
            with ib.for_range(0, shape[1], "column") as j:
                out[i, j] = first(ptr, i, j)
            row(ib, ptr, out, i)
        return ib.get()
    return te.extern(tuple(shape), given, body, name=name, tag=name, dtype=given[0].dtype)


def csrmm(a: CSRPlaceholderOp, b: Any, c: Any = None) -> Any:
    """a @ b, with the bias c for each row."""
    if len(a.shape) != 2 or len(b.shape) != 2 or (c is not None and len(c.shape) != 1):
        raise AssertionError("csrmm takes matrices, and a bias of one dimension")
    n = b.shape[1]

    def row(ib: Any, ins: Any, out: Any, i: Any) -> None:
        with ib.for_range(ins[2][i], ins[2][i + 1], "element") as e:
            with ib.for_range(0, n, "column") as j:
                out[i, j] = out[i, j] + ins[0][e] * ins[3][ins[1][e], j]
    zero = tir.const(0, a.dtype)
    given = [a.data, a.indices, a.indptr, b, *([] if c is None else [c])]
    return _rows("csrmm", (a.shape[0], n), given, lambda ins, i, j: zero if c is None else ins[4][i], row)


def csrmv(a: CSRPlaceholderOp, x: Any, y: Any = None) -> Any:
    """a @ x of a matrix x of one column, with the bias y for each row."""
    return csrmm(a, x, y)


def dense(data: Any, weight: Any, bias: Any = None) -> Any:
    """data @ weight.T, where one of them is a CSR matrix, with a bias for each column."""
    if isinstance(data, CSRPlaceholderOp) == isinstance(weight, CSRPlaceholderOp):
        raise NotImplementedError("sparse.dense is of a dense and a CSR matrix")
    few, other = (data, weight) if isinstance(data, CSRPlaceholderOp) else (weight, data)
    zero = tir.const(0, few.dtype)
    given = [few.data, few.indices, few.indptr, other, *([] if bias is None else [bias])]
    shape = (data.shape[0], weight.shape[0])

    def row(ib: Any, ins: Any, out: Any, i: Any) -> None:
        with ib.for_range(0, shape[1], "column") as j:
            here, there = (i, j) if few is data else (j, i)
            with ib.for_range(ins[2][here], ins[2][here + 1], "element") as e:
                out[i, j] = out[i, j] + ins[0][e] * ins[3][there, ins[1][e]]
    return _rows("sparse_dense", shape, given, lambda ins, i, j: zero if bias is None else ins[4][j], row)


__all__ = ["csrmm", "csrmv", "dense"]
