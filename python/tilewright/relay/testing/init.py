# SPDX-License-Identifier: Apache-2.0
"""Weights for a network, and the layers that the networks share."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.ndarray import NDArray
from .. import op
from ..expr import Expr, Function, TensorType, TupleGetItem, Var, free_vars, to_module, var

nn = op.nn


def create_workload(net: Any, initializer: Any = None, seed: int = 0) -> tuple[Any, dict[str, NDArray]]:
    """(module, params): every parameter but `data` gets values. Gammas and variances are 1, other vectors 0, weights Xavier."""
    function = net if isinstance(net, Function) else Function(free_vars(net), net)
    generator = np.random.RandomState(seed)
    params = {}
    for p in function.params:
        if p.name_hint == "data":
            continue
        array = np.zeros(p.type_annotation.shape, p.type_annotation.dtype)
        if initializer is not None:
            initializer(p.name_hint, array)
        elif p.name_hint.endswith(("gamma", "var")):
            array[:] = 1
        elif p.name_hint.endswith("weight"):
            fan = array[0].size + array.shape[0] * int(np.prod(array.shape[2:]))
            array[:] = generator.uniform(-1, 1, array.shape) * np.sqrt(6.0 / fan)
        params[p.name_hint] = NDArray(array)
    return to_module(function), params


class Builder:
    """Layers with parameters named as in the classic networks; knows the channels of what it made."""

    def __init__(self, shape: tuple[int, ...], dtype: str):
        self.data, self.dtype = var("data", shape=shape, dtype=dtype), dtype
        self.params: list[Var] = [self.data]

    def param(self, name: str, *shape: int) -> Var:
        self.params.append(Var(name, TensorType(shape, self.dtype)))
        return self.params[-1]

    def conv(self, x: Expr, inputs: int, channels: int, kernel: int, name: str, stride: int = 1, pad: int = 0, groups: int = 1) -> Expr:
        weight = self.param(f"{name}_weight", channels, inputs // groups, kernel, kernel)
        return nn.conv2d(x, weight, strides=(stride, stride), padding=(pad, pad), groups=groups, channels=channels, kernel_size=(kernel, kernel))

    def norm(self, x: Expr, channels: int, name: str, epsilon: float = 2e-5, scale: bool = True) -> Expr:
        parts = [self.param(f"{name}_{p}", channels) for p in ("gamma", "beta", "moving_mean", "moving_var")]
        return nn.batch_norm(x, *parts, epsilon=epsilon, scale=scale)[0]

    def bias(self, x: Expr, channels: int, name: str) -> Expr:
        return nn.bias_add(x, self.param(f"{name}_bias", channels))

    def dense(self, x: Expr, inputs: int, units: int, name: str) -> Expr:
        product = nn.dense(x, self.param(f"{name}_weight", units, inputs), units=units)
        return nn.bias_add(product, self.param(f"{name}_bias", units), axis=-1)

    def function(self, body: Expr) -> Function:
        return Function(self.params, body)


__all__ = ["Builder", "TupleGetItem", "create_workload", "nn", "op"]
