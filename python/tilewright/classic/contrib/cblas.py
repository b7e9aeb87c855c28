# SPDX-License-Identifier: Apache-2.0
"""Matrix products by the BLAS library of numpy, as extern operations of te."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import te
from ..registry import register_func
from ..tir import call_packed


def _product(a: Any, b: Any, c: Any, transa: int = 0, transb: int = 0) -> None:
    x, y = a.numpy(), b.numpy()
    np.matmul(np.swapaxes(x, -1, -2) if transa else x, np.swapaxes(y, -1, -2) if transb else y, out=np.from_dlpack(c))


register_func("tvm.contrib.cblas.matmul", _product, override=True)
register_func("tvm.contrib.cblas.batch_matmul", _product, override=True)


def matmul(lhs: Any, rhs: Any, transa: bool = False, transb: bool = False, **kwargs: Any) -> Any:
    """The product of two matrices."""
    n = lhs.shape[1] if transa else lhs.shape[0]
    m = rhs.shape[0] if transb else rhs.shape[1]
    return te.extern((n, m), [lhs, rhs], lambda ins, outs: call_packed("tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0], transa, transb), name="C", **kwargs)


def batch_matmul(lhs: Any, rhs: Any, transa: bool = False, transb: bool = False, **kwargs: Any) -> Any:
    """The product of each pair of matrices in two batches."""
    n = lhs.shape[2] if transa else lhs.shape[1]
    m = rhs.shape[1] if transb else rhs.shape[2]
    return te.extern((lhs.shape[0], n, m), [lhs, rhs], lambda ins, outs: call_packed("tvm.contrib.cblas.batch_matmul", ins[0], ins[1], outs[0], transa, transb), name="C", **kwargs)


__all__ = ["batch_matmul", "matmul"]
