# SPDX-License-Identifier: Apache-2.0
"""What an ahead-of-time compiled model takes and returns: the result of its module's function get_metadata."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class TensorInfo(NamedTuple):
    """A tensor, or a pool of memory as a tensor of bytes."""
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def num_shape(self) -> int:
        return len(self.shape)


class ConstantInfo(NamedTuple):
    """A pool of weights of the program; the header of the C interface has its bytes."""
    name_hint: str
    byte_offset: int
    data_len: int


class Metadata(NamedTuple):
    """Version 1 of the classic description of a model."""
    version: int
    mod_name: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    workspace_pools: list[TensorInfo]
    constant_pools: list[ConstantInfo]

    num_inputs = property(lambda self: len(self.inputs))
    num_outputs = property(lambda self: len(self.outputs))
    num_workspace_pools = property(lambda self: len(self.workspace_pools))
    num_constant_pools = property(lambda self: len(self.constant_pools))


def metadata_of(rows: Sequence[Any], pools: Sequence[tuple[str, int, bool]] = ()) -> Metadata:
    """From what the library's function returns, and the pools (name, bytes, whether of weights)."""
    version, name, *tensors = rows
    inputs, outputs = ([TensorInfo(str(n), tuple(int(d) for d in shape), str(dtype)) for n, shape, dtype in infos] for infos in tensors)
    return Metadata(int(version), str(name) or "default", inputs, outputs, [TensorInfo(n, (size,), "uint8") for n, size, constant in pools if not constant],
                    [ConstantInfo(n, 0, size) for n, size, constant in pools if constant])


__all__ = ["ConstantInfo", "Metadata", "TensorInfo", "metadata_of"]
