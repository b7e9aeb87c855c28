# SPDX-License-Identifier: Apache-2.0
"""Buffers: memory that loops read and write."""
from __future__ import annotations

import typing
import weakref

from ... import _core
from .expr import Var, dtype_of
from .stmt import Address, write


# The variables that scripts gave buffers for their data, by the buffer, which statements give out as new objects.
_data_of: weakref.WeakKeyDictionary[typing.Any, typing.Any] = weakref.WeakKeyDictionary()


class Buffer(_core.Array):
    """A buffer with name, shape and dtype. `buffer[i, j]` is an element."""

    READ, WRITE = 1, 2

    def __init__(self, shape: typing.Any, dtype: str = "float32", name: str = "buffer", data: typing.Any = None, strides: typing.Any = None,
                 elem_offset: typing.Any = None, scope: str = "", data_alignment: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: typing.Any = None):
        shape = shape if isinstance(shape, (tuple, list)) or hasattr(shape, "__iter__") else (shape,)
        for d in [*shape, *(strides or [])]:
            if dtype_of(d) not in ("int32", "int64") or (isinstance(d, int) and d < 0):
                raise ValueError(f"the buffer '{name}' has the size {d}; sizes are int32 or int64, 0 or more")
        if not str(dtype).startswith(("int", "uint", "float", "bfloat", "bool")):
            raise ValueError(f"the buffer '{name}' holds {dtype}; elements are numbers")
        super().__init__(_core.array(str(name), str(dtype), list(shape), scope or "global", list(strides or [])))
        if data is not None:
            _data_of[self] = data
        self._more = {"elem_offset": elem_offset, "data_alignment": data_alignment, "offset_factor": offset_factor, "buffer_type": buffer_type}

    def __getattr__(self, name: str) -> typing.Any:
        if name in ("elem_offset", "data_alignment", "offset_factor", "buffer_type"):
            return self.__dict__.get("_more", {}).get(name)
        raise AttributeError(f"a buffer has no '{name}'")

    @property
    def data(self) -> typing.Any:
        """The data variable given by the script, or one named after the buffer."""
        given = _data_of.get(self)
        if given is None:
            given = Var(self.name, "handle")
            given._memory = self  # what is allocated under this variable, or is given to a function by it, is this buffer
        return given

    def scope(self) -> str:
        return self._scope

    def offset_of(self, indices: typing.Any) -> list[typing.Any]:
        """The offset of an element from the first, in elements."""
        at = list(indices) if isinstance(indices, (list, tuple)) else [indices]
        if len(at) != len(self.shape):
            raise ValueError(f"{len(at)} indices for the {len(self.shape)} dimensions of '{self.name}'")
        out: typing.Any = 0
        for d, index in enumerate(at):
            out = _core.prim_binary("Add", out, _core.prim_binary("Mul", index, self.strides[d])) if len(self.strides) else _core.prim_binary("Add", _core.prim_binary("Mul", out, self.shape[d]), index)
        return [_core.prim_simplify(out, [])]

    def get_flattened_buffer(self) -> "Buffer":
        """The buffer flattened to one dimension."""
        size: typing.Any = 1
        for d in self.shape:
            size = _core.prim_binary("Mul", size, d)
        return Buffer([_core.prim_simplify(size, [])], self.dtype, self.name, scope=self._scope)

    def access_ptr(self, access_mask: typing.Any, ptr_type: str = "handle", content_lanes: int = 1, offset: typing.Any = 0, extent: typing.Any = None) -> Address:
        """The address of an element, `offset` elements after the first, for calls of external functions."""
        if isinstance(access_mask, str) and set(access_mask) - {"r", "w"}:
            raise ValueError(f"Unknown access_mask {access_mask}")
        mask = sum({"r": self.READ, "w": self.WRITE}[c] for c in set(access_mask)) if isinstance(access_mask, str) else int(access_mask)
        return Address(self._element([offset] if len(self.shape) else [], self.dtype), mask, offset, extent)

    def vload(self, begin: typing.Any, dtype: typing.Any = None) -> typing.Any:
        """Loads one element at `begin`, or a vector if the dtype has lanes."""
        return self._element(list(begin) if isinstance(begin, (list, tuple)) else [begin], str(dtype or self.dtype))

    def vstore(self, begin: typing.Any, value: typing.Any) -> typing.Any:
        return write(self, begin if isinstance(begin, (list, tuple)) else [begin], value)

    def __getitem__(self, indices: typing.Any) -> typing.Any:
        at = list(indices) if isinstance(indices, tuple) else [indices]
        lanes = 1
        for i in at:
            if hasattr(i, "dtype") and "x" in str(i.dtype):
                lanes = int(str(i.dtype).rpartition("x")[2])
        return self._element(at, self.dtype if lanes == 1 else f"{self.dtype}x{lanes}")

    def __eq__(self, other: object) -> bool:
        return self._same(other)

    def __hash__(self) -> int:
        return _core.Array.__hash__(self)

    def same_as(self, other: typing.Any) -> bool:
        return self._same(other)

    def __repr__(self) -> str:
        return f"buffer({self.name}, {self.dtype}, {list(self.shape)})"


_core._set_loop_class("Array", Buffer)


def decl_buffer(shape: typing.Any, dtype: str | None = None, name: str = "buffer", data: typing.Any = None, strides: typing.Any = None, elem_offset: typing.Any = None,
                scope: str = "", data_alignment: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: typing.Any = None, span: object = None) -> Buffer:
    """A buffer, of float32 by default."""
    return Buffer(shape, dtype or "float32", name, data, strides, elem_offset, scope, data_alignment, offset_factor, buffer_type, axis_separators)


def buffer_of(tensor: typing.Any, name: str | None = None) -> Buffer:
    """A buffer for a tensor's elements."""
    return decl_buffer(list(tensor.shape), tensor.dtype, name or tensor.name)


__all__ = ["Buffer", "buffer_of", "decl_buffer"]
