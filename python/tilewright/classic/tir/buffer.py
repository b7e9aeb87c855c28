# SPDX-License-Identifier: Apache-2.0
"""Memory that loops read and write."""
from __future__ import annotations

import typing

from .expr import IntImm


class Buffer:
    """A description of memory that loops read: a name, sizes and a dtype."""

    def __init__(self, shape: typing.Any, dtype: str = "float32", name: str = "buffer", data: typing.Any = None, strides: typing.Any = None,
                 elem_offset: typing.Any = None, scope: str = "", data_alignment: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: typing.Any = None):
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        self.shape = tuple(IntImm("int32", d) if type(d) is int else d for d in shape)
        self.dtype, self.name, self.data, self.strides, self.elem_offset = str(dtype), name, data, list(strides or []), elem_offset
        self.data_alignment, self.offset_factor, self.buffer_type, self._scope = data_alignment, offset_factor, buffer_type, scope

    def scope(self) -> str:
        return self._scope or "global"

    def __repr__(self) -> str:
        return f"buffer({self.name}, {self.dtype}, {list(self.shape)})"


def decl_buffer(shape: typing.Any, dtype: str | None = None, name: str = "buffer", data: typing.Any = None, strides: typing.Any = None, elem_offset: typing.Any = None,
                scope: str = "", data_alignment: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: typing.Any = None, span: object = None) -> Buffer:
    """A description of memory, of float32 unless a dtype is given."""
    return Buffer(shape, dtype or "float32", name, data, strides, elem_offset, scope, data_alignment, offset_factor, buffer_type, axis_separators)


__all__ = ["Buffer", "decl_buffer"]
