# SPDX-License-Identifier: Apache-2.0
"""Rules that scripts may give for a target: what a call becomes before kernels are chosen. None, as by default, leaves it to the compiler, which
has layouts and integer forms of its own."""
from __future__ import annotations

from typing import Any

from ...target.generic_func import generic_func


@generic_func
def conv2d_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """What becomes of a convolution's layouts: an expression."""


@generic_func
def dense_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """What becomes of a product's weight layout: an expression."""


@generic_func
def conv2d_legalize(attrs: Any, inputs: Any, arg_types: Any) -> Any:
    """What becomes of a convolution that a target lacks: an expression."""


@generic_func
def conv2d_transpose_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """What becomes of a transposed convolution that a target lacks: an expression."""


@generic_func
def conv3d_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """What becomes of the layouts of a convolution of volumes: an expression."""


@generic_func
def dense_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """What becomes of a product that a target lacks: an expression."""


@generic_func
def batch_matmul_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """What becomes of a product of batches that a target lacks: an expression."""


__all__ = ["batch_matmul_legalize", "conv2d_alter_layout", "conv2d_legalize", "conv2d_transpose_legalize", "conv3d_alter_layout", "dense_alter_layout", "dense_legalize"]
