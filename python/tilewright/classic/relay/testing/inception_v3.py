# SPDX-License-Identifier: Apache-2.0
"""Inception v3 (Szegedy et al. 2015). A block is a list of branches and a branch a list of layers: c is a convolution (channels, kernel
height and width, stride, padding), p a pool; a branch may end in a fork into several convolutions."""
from __future__ import annotations

from typing import Any

from .. import op
from .init import Builder, create_workload, nn


def _c(channels: int, h: int = 1, w: int = 1, stride: int = 1, pad: tuple[int, int] = (0, 0)) -> tuple[Any, ...]:
    return "c", channels, h, w, stride, pad


def _p(kind: str, stride: int = 1, pad: int = 1) -> tuple[Any, ...]:
    return kind, stride, pad


_STEM = [_c(32, 3, 3, 2), _c(32, 3, 3), _c(64, 3, 3, 1, (1, 1)), _p("max", 2, 0), _c(80), _c(192, 3, 3), _p("max", 2, 0)]


def _a(pool: int) -> Any:
    return [[_c(64)], [_c(48), _c(64, 5, 5, 1, (2, 2))], [_c(64), _c(96, 3, 3, 1, (1, 1)), _c(96, 3, 3, 1, (1, 1))], [_p("avg"), _c(pool)]]


def _b(n: int) -> Any:
    row, column = lambda c: _c(c, 1, 7, 1, (0, 3)), lambda c: _c(c, 7, 1, 1, (3, 0))  # noqa: E731
    return [[_c(192)], [_c(n), row(n), column(192)], [_c(n), column(n), row(n), column(n), row(192)], [_p("avg"), _c(192)]]


def _e(pool: str) -> Any:
    fork = ("fork", [_c(384, 1, 3, 1, (0, 1)), _c(384, 3, 1, 1, (1, 0))])
    return [[_c(320)], [_c(384), fork], [_c(448), _c(384, 3, 3, 1, (1, 1)), fork], [_p(pool), _c(192)]]


_BLOCKS: list[Any] = [
    _a(32), _a(64), _a(64),
    [[_c(384, 3, 3, 2)], [_c(64), _c(96, 3, 3, 1, (1, 1)), _c(96, 3, 3, 2)], [_p("max", 2, 0)]],
    _b(128), _b(160), _b(160), _b(192),
    [[_c(192), _c(320, 3, 3, 2)], [_c(192), _c(192, 1, 7, 1, (0, 3)), _c(192, 7, 1, 1, (3, 0)), _c(192, 3, 3, 2)], [_p("max", 2, 0)]],
    _e("avg"), _e("max")]


def _layer(b: Builder, x: Any, inputs: int, layer: tuple[Any, ...], name: str) -> tuple[Any, int]:
    if layer[0] == "c":
        _, channels, h, w, stride, pad = layer
        weight = b.param(f"{name}_conv1_weight", channels, inputs, h, w)
        y = nn.conv2d(x, weight, strides=(stride, stride), padding=pad, channels=channels, kernel_size=(h, w))
        return nn.relu(b.norm(y, channels, f"{name}_bn", scale=False)), channels
    kind, stride, pad = layer
    if kind == "max":
        return nn.max_pool2d(x, pool_size=(3, 3), strides=(stride, stride), padding=(pad, pad)), inputs
    return nn.avg_pool2d(x, pool_size=(3, 3), strides=(stride, stride), padding=(pad, pad), count_include_pad=True), inputs


def get_net(batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str) -> Any:
    b = Builder((batch_size, *image_shape), dtype)
    x: Any = b.data
    channels = image_shape[0]
    for i, layer in enumerate(_STEM):
        x, channels = _layer(b, x, channels, layer, f"conv_{i}")
    for number, block in enumerate(_BLOCKS):
        parts, total = [], 0
        for t, branch in enumerate(block):
            y, inputs = x, channels
            for i, layer in enumerate(branch):
                if layer[0] == "fork":
                    ends = [_layer(b, y, inputs, one, f"mixed_{number}_tower_{t}_mixed_conv_{k}") for k, one in enumerate(layer[1])]
                    parts += [e for e, _ in ends]
                    total += sum(c for _, c in ends)
                    break
                y, inputs = _layer(b, y, inputs, layer, f"mixed_{number}_tower_{t}_conv_{i}")
            else:
                parts.append(y)
                total += inputs
        x, channels = op.concatenate(parts, axis=1), total
    x = nn.batch_flatten(nn.avg_pool2d(x, pool_size=(8, 8), strides=(1, 1), count_include_pad=True))
    return b.function(nn.softmax(b.dense(x, channels, num_classes, "fc1")))


def get_workload(batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 299, 299), dtype: str = "float32") -> Any:
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
