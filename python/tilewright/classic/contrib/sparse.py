# SPDX-License-Identifier: Apache-2.0
"""Matrices of few elements, row by row (CSR): arrays of them, and placeholders for `topi.sparse`."""
from __future__ import annotations

import typing

import numpy as np

from .. import te
from ..runtime import ndarray


class CSRNDArray:
    """The elements `data` with their columns `indices`; row i has those from indptr[i] to indptr[i + 1]."""

    stype = "csr"

    def __init__(self, arg1: typing.Any, device: typing.Any = None, shape: typing.Any = None):
        device = device if device is not None else ndarray.cpu(0)
        if isinstance(arg1, tuple):
            if len(arg1) != 3 or shape is None:
                raise ValueError("a CSR matrix is given as (data, indices, indptr), with its shape, or as a dense matrix")
            parts, self.shape = arg1, tuple(shape)
        else:
            dense = np.asarray(arg1)
            if dense.ndim != 2:
                raise ValueError(f"a CSR matrix has two dimensions, not {dense.ndim}")
            rows, columns = dense.nonzero()
            ends = np.concatenate([[0], np.bincount(rows, minlength=dense.shape[0]).cumsum()])
            parts, self.shape = (dense[rows, columns], columns.astype("int32"), ends.astype("int32")), dense.shape
        self.data, self.indices, self.indptr = (p if isinstance(p, ndarray.NDArray) else ndarray.array(np.asarray(p), device) for p in parts)
        self.dtype = self.data.dtype

    def numpy(self) -> np.ndarray:
        """The dense matrix."""
        out = np.zeros(self.shape, self.dtype)
        data, columns, ends = self.data.numpy(), self.indices.numpy(), self.indptr.numpy()
        for row in range(self.shape[0]):
            out[row, columns[ends[row]:ends[row + 1]]] = data[ends[row]:ends[row + 1]]
        return out

    asnumpy = numpy


def array(source_array: typing.Any, device: typing.Any = None, shape: typing.Any = None, stype: str = "csr") -> CSRNDArray:
    """A CSR matrix of a dense one, or of (data, indices, indptr). NotImplementedError: another storage."""
    if stype != "csr":
        raise NotImplementedError(f"stype={stype} is not supported yet; there is csr")
    return CSRNDArray(source_array, device, shape)


class SparsePlaceholderOp:
    """An input of few elements."""

    def __init__(self, shape: typing.Any, nonzeros: typing.Any, dtype: str, name: str):
        self.shape, self.dtype, self.name, self.nonzeros, self.stype = shape, dtype, name, nonzeros, "unknown"


class CSRPlaceholderOp(SparsePlaceholderOp):
    """A CSR input: the placeholders `data`, `indices` and `indptr`."""

    def __init__(self, shape: typing.Any, nonzeros: typing.Any, dtype: str, name: str):
        super().__init__(shape, nonzeros, dtype, name)
        self.stype = "csr"
        self.data = te.placeholder((nonzeros,), dtype, f"{name}_data")
        self.indices = te.placeholder((nonzeros,), "int32", f"{name}_indices")
        self.indptr = te.placeholder((shape[0] + 1,), "int32", f"{name}_indptr")


def placeholder(shape: typing.Any, nonzeros: typing.Any = None, dtype: typing.Any = None, name: str = "placeholder", stype: typing.Any = None) -> CSRPlaceholderOp:
    """A CSR input of `nonzeros` elements. NotImplementedError: another storage."""
    if stype not in (None, "csr"):
        raise NotImplementedError(f"stype={stype} is not supported yet; there is csr")
    shape = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    return CSRPlaceholderOp(shape, 0 if nonzeros is None else nonzeros, str(dtype or "float32"), name)


float32, itype = "float32", "int32"

__all__ = ["CSRNDArray", "CSRPlaceholderOp", "SparsePlaceholderOp", "array", "float32", "itype", "placeholder"]
