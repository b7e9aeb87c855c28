# SPDX-License-Identifier: Apache-2.0
"""A small network with the parts of larger ones: dense layers, convolutions, normalisation, joins."""
from __future__ import annotations

from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from . import layers
from .init import Constant, create_workload


def _halves(x: Any, data: Any, shape: tuple[int, ...], wtype: str, number: str) -> Any:
    """The sum of a dense layer over the rows and a convolution with softmax."""
    rows = op.reshape(x, [-1, shape[3]])
    dense = op.nn.relu(op.nn.dense(rows, var(f"dense{number}_weight", shape=(shape[3], shape[3]), dtype=wtype)))
    weight = var(f"conv{number}_weight", shape=(shape[1], shape[1], 3, 3), dtype=wtype)
    conv = op.nn.softmax(op.nn.conv2d(x, weight, padding=(1, 1), kernel_size=(3, 3), channels=shape[1]))
    return op.add(op.reshape_like(dense, data), conv)


def get_net(input_shape: tuple[int, ...] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Function:
    data = var("data", shape=input_shape, dtype=dtype)
    wtype = wtype or dtype
    first = _halves(data, data, input_shape, wtype, "")
    biased = layers.batch_norm_infer(op.nn.bias_add(first, var("bias", shape=(input_shape[1],), dtype=wtype)), name="batch_norm")
    out = _halves(biased, data, input_shape, wtype, "2")
    return Function(free_vars(out), out)


def get_workload(input_shape: tuple[int, ...] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Any:
    return create_workload(get_net(input_shape=input_shape, dtype=dtype, wtype=wtype), initializer=Constant())
