# SPDX-License-Identifier: Apache-2.0
"""Tensors, and the operations that compute them."""
from __future__ import annotations

import typing

from ... import _core
from ..tir.expr import with_operators


@with_operators
class TensorSlice:
    """A partially indexed tensor: A[i] of A[i, j]. With all indices it is an element."""

    def __init__(self, tensor: "Tensor", indices: typing.Any):
        self.tensor, self.indices = tensor, indices if isinstance(indices, tuple) else (indices,)

    def __getitem__(self, indices: typing.Any) -> "TensorSlice":
        return TensorSlice(self.tensor, self.indices + (indices if isinstance(indices, tuple) else (indices,)))

    def asobject(self) -> typing.Any:
        return self.tensor(*self.indices)

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    def same_as(self, other: typing.Any) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@with_operators
class Tensor(_core.Tensor):
    """The output of an operation. `A[i, j]` and `A(i, j)` are elements."""

    def __call__(self, *indices: typing.Any) -> typing.Any:
        return self._element([_index(i) for i in indices])

    def __getitem__(self, indices: typing.Any) -> TensorSlice:
        return TensorSlice(self, indices)

    def asobject(self) -> typing.Any:
        """The element of a rank-0 tensor."""
        if self.ndim:
            raise ValueError(f"the tensor '{self.name}' has {self.ndim} dimensions: an expression takes an element of it")
        return self()

    @property
    def name(self) -> str:
        op = self.op
        return op.name if op.num_outputs == 1 else f"{op.name}.v{self.value_index}"

    @property
    def axis(self) -> typing.Any:
        return self.op.axis

    def same_as(self, other: typing.Any) -> bool:
        return self._same(other)

    def __eq__(self, other: object) -> bool:
        return self._same(other)

    def __ne__(self, other: object) -> bool:
        return not self._same(other)

    def __hash__(self) -> int:
        return _core.Tensor.__hash__(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, op.name={self.op.name})"


def _of_wholes(symbol: str, function: str, reverse: bool = False) -> None:
    """Arithmetic of whole tensors broadcasts them, as topi does; that of tensors of rank 0 is of their elements."""
    of_elements = getattr(Tensor, symbol)

    def operator(self: Tensor, other: typing.Any) -> typing.Any:
        if self.ndim == 0 and not (isinstance(other, Tensor) and other.ndim):
            return of_elements(self, other)
        from .. import topi
        return getattr(topi, function)(*((other, self) if reverse else (self, other)))
    setattr(Tensor, symbol, operator)


for _symbol, _function in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide")):
    _of_wholes(f"__{_symbol}__", _function)
    _of_wholes(f"__r{_symbol}__", _function, reverse=True)


def _index(value: typing.Any) -> typing.Any:
    if isinstance(value, slice):
        raise ValueError("an index is an expression, no slice")
    return value


class Operation(_core.Operation):
    """Base class of operations."""

    @property
    def attrs(self) -> typing.Any:
        return self._attributes or {}

    def same_as(self, other: typing.Any) -> bool:
        return self == other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class BaseComputeOp(Operation):
    pass


class PlaceholderOp(Operation):
    """An input tensor."""

    shape = property(lambda self: self.output(0).shape)
    dtype = property(lambda self: self.output(0).dtype)

    def __repr__(self) -> str:
        return f"placeholder({self.name}, {hash(self):#x})"


class ComputeOp(BaseComputeOp):
    """A computation given element by element."""

    @property
    def body(self) -> list[typing.Any]:
        """The element expressions; for reductions the operands."""
        from ..tir.reduction import Reduce
        combiner, values = self._combiner, self._values
        return values if combiner is None else [Reduce(combiner, values, self.reduce_axis, self._condition, i) for i in range(len(values))]

    def __repr__(self) -> str:
        return f"compute({self.name}, body={self.body}, axis={list(self.axis)}, reduce_axis={list(self.reduce_axis)}, tag={self.tag}, attrs={dict(self.attrs)})"


class ExternOp(Operation):
    """Tensors computed by statements."""

    body = property(lambda self: self._body)
    inputs = property(lambda self: list(self.input_tensors))


class HybridOp(Operation):
    """Tensors computed by a hybrid script. `axis`: its loops, which a schedule can change; those of a nest from the outside inwards, later
    nests first."""

    body = property(lambda self: self._body)
    inputs = property(lambda self: list(self.input_tensors))


class ScanOp(Operation):
    """A recurrence."""

    scan_axis = property(lambda self: self._scan_axis)


for _kind, _class in (("Tensor", Tensor), ("PlaceholderOp", PlaceholderOp), ("ComputeOp", ComputeOp), ("ExternOp", ExternOp), ("HybridOp", HybridOp), ("ScanOp", ScanOp)):
    _core._set_loop_class(_kind, _class)


__all__ = ["BaseComputeOp", "ComputeOp", "ExternOp", "HybridOp", "Operation", "PlaceholderOp", "ScanOp", "Tensor", "TensorSlice"]
