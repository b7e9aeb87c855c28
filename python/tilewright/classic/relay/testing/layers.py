# SPDX-License-Identifier: Apache-2.0
"""Layers that create their own parameters: `layers.conv2d(data, channels=64, kernel_size=(3, 3), name="conv1")`."""
from __future__ import annotations

from typing import Any

from .. import op
from ..expr import var


def batch_norm_infer(data: Any, gamma: Any = None, beta: Any = None, moving_mean: Any = None, moving_var: Any = None, name: str = "batch_norm", **kwargs: Any) -> Any:
    given = [gamma, beta, moving_mean, moving_var]
    parts = [p if p is not None else var(f"{name}_{word}") for p, word in zip(given, ("gamma", "beta", "moving_mean", "moving_var"))]
    return op.nn.batch_norm(data, *parts, **kwargs)[0]


def _layer(operator: str) -> Any:
    def layer(data: Any, weight: Any = None, **kwargs: Any) -> Any:
        name = kwargs.pop("name")
        return getattr(op.nn, operator)(data, weight if weight is not None else var(f"{name}_weight"), **kwargs)
    layer.__name__ = operator
    return layer


conv1d, conv2d, conv3d, conv1d_transpose, conv2d_transpose = (_layer(n) for n in ("conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose"))


def dense_add_bias(data: Any, weight: Any = None, bias: Any = None, units: int | None = None, **kwargs: Any) -> Any:
    name = kwargs.pop("name")
    product = op.nn.dense(data, weight if weight is not None else var(f"{name}_weight"), units, **kwargs)
    return op.nn.bias_add(product, bias if bias is not None else var(f"{name}_bias"), axis=-1)


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    return {"NCHW": "OIHW", "NCDHW": "OIDHW", "NHWC": "HWOI" if is_depthwise else "HWIO", "NDHWC": "DHWOI" if is_depthwise else "DHWIO"}[data_layout]


__all__ = ["batch_norm_infer", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv_kernel_layout", "dense_add_bias"]
