# SPDX-License-Identifier: Apache-2.0
"""Random initialisation of networks, and layers that the networks share."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.ndarray import NDArray
from .. import op
from ..expr import Expr, Function, TensorType, Var, free_vars, infer_type, to_module, var
from .layers import conv_kernel_layout

nn = op.nn


def create_workload(net: Any, initializer: Any = None, seed: int = 0) -> tuple[Any, dict[str, NDArray]]:
    """(module, params), with a value for every parameter but `data`: 1 for gammas and variances, 0 for other vectors, Xavier for
    weights and what has several dimensions."""
    function = infer_type(net if isinstance(net, Function) else Function(free_vars(net), net))
    generator = np.random.RandomState(seed)
    params = {}
    for p in function.params:
        if p.name_hint == "data":
            continue
        array = np.zeros(p.type_annotation.concrete_shape, p.type_annotation.dtype)
        if initializer is not None:
            initializer(p.name_hint, array)
        elif p.name_hint.endswith(("gamma", "var")):
            array[:] = 1
        elif array.ndim > 1 or p.name_hint.endswith("weight"):
            fan = array[0].size + array.shape[0] * int(np.prod(array.shape[2:]))
            array[:] = generator.uniform(-1, 1, array.shape) * np.sqrt(6.0 / fan)
        params[p.name_hint] = NDArray(array)
    return to_module(function), params


class Initializer:
    """Initialises a parameter by its name: `initializer("conv1_weight", array)` fills the array."""

    def __call__(self, desc: str, arr: np.ndarray) -> None:
        for ending, method in (("weight", "_init_weight"), ("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"), ("mean", "_init_mean"),
                               ("var", "_init_var")):
            if desc.endswith(ending):
                return getattr(self, method)(desc, arr)
        return self._init_weight(desc, arr)

    def _init_bias(self, _: str, arr: np.ndarray) -> None:
        arr[:] = 0

    _init_beta = _init_mean = _init_bias

    def _init_gamma(self, _: str, arr: np.ndarray) -> None:
        arr[:] = 1

    _init_var = _init_gamma

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        raise NotImplementedError("a subclass says how weights are made")


class Xavier(Initializer):
    """Uniform with variance scaled by the fan (Glorot and Bengio 2010)."""

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        area = int(np.prod(arr.shape[2:]))
        fan_in, fan_out = (arr.shape[1] * area if arr.ndim > 1 else 1), arr.shape[0] * area
        factor = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = np.sqrt(self.magnitude / factor)
        arr[:] = np.random.uniform(-scale, scale, arr.shape) if self.rnd_type == "uniform" else np.random.normal(0, scale, arr.shape)


class Constant(Initializer):
    def __init__(self, value: float = 0.0):
        self.value = value

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        arr[:] = self.value


class Builder:
    """Creates layers with the classic networks' parameter names, for pictures whose channels come first (NCHW) or last (NHWC)."""

    def __init__(self, shape: tuple[int, ...], dtype: str, layout: str = "NCHW"):
        if layout not in ("NCHW", "NHWC"):
            raise ValueError(f"layout is {layout}: NCHW or NHWC expected")
        self.data, self.dtype, self.layout = var("data", shape=shape, dtype=dtype), dtype, layout
        self.params: list[Var] = [self.data]

    def param(self, name: str, *shape: int) -> Var:
        self.params.append(Var(name, TensorType(shape, self.dtype)))
        return self.params[-1]

    def conv(self, x: Expr, inputs: int, channels: int, kernel: int, name: str, stride: int = 1, pad: int = 0, groups: int = 1) -> Expr:
        sizes = {"O": channels, "I": inputs // groups, "H": kernel, "W": kernel}
        kernel_layout = conv_kernel_layout(self.layout, is_depthwise=groups > 1)
        weight = self.param(f"{name}_weight", *(sizes[axis] for axis in kernel_layout))
        return nn.conv2d(x, weight, strides=(stride, stride), padding=(pad, pad), groups=groups, channels=channels, kernel_size=(kernel, kernel),
                         data_layout=self.layout, kernel_layout=kernel_layout)

    def norm(self, x: Expr, channels: int, name: str, epsilon: float = 2e-5, scale: bool = True) -> Expr:
        parts = [self.param(f"{name}_{p}", channels) for p in ("gamma", "beta", "moving_mean", "moving_var")]
        return nn.batch_norm(x, *parts, axis=self.layout.index("C"), epsilon=epsilon, scale=scale)[0]

    def bias(self, x: Expr, channels: int, name: str, axis: int = 1) -> Expr:
        """Added along the channels of a picture, or to the rows of a matrix."""
        return nn.bias_add(x, self.param(f"{name}_bias", channels), axis=axis)

    def dense(self, x: Expr, inputs: int, units: int, name: str) -> Expr:
        product = nn.dense(x, self.param(f"{name}_weight", units, inputs), units=units)
        return nn.bias_add(product, self.param(f"{name}_bias", units), axis=-1)

    def function(self, body: Expr) -> Function:
        """The function, with its parameters in order of first use."""
        return Function(free_vars(body), body)


__all__ = ["Builder", "Constant", "Initializer", "Xavier", "create_workload", "nn", "op"]
