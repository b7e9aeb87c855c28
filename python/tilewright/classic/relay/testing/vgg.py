# SPDX-License-Identifier: Apache-2.0
"""VGG (Simonyan and Zisserman 2014)."""
from __future__ import annotations

from typing import Any

from .init import Builder, create_workload, nn

_LAYERS = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}


def get_net(batch_size: int, image_shape: tuple[int, ...], num_classes: int, dtype: str, num_layers: int = 11, batch_norm: bool = False) -> Any:
    if num_layers not in _LAYERS:
        raise ValueError(f"Invalid num_layers {num_layers}. Choices are {', '.join(map(str, _LAYERS))}.")
    b = Builder((batch_size, *image_shape), dtype)
    x: Any = b.data
    inputs = image_shape[0]
    for stage, (count, channels) in enumerate(zip(_LAYERS[num_layers], (64, 128, 256, 512, 512)), 1):
        for i in range(1, count + 1):
            x = b.bias(b.conv(x, inputs, channels, 3, f"conv{stage}_{i}", 1, 1), channels, f"conv{stage}_{i}")
            x = nn.relu(b.norm(x, channels, f"bn{stage}_{i}") if batch_norm else x)
            inputs = channels
        x = nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    x = nn.batch_flatten(x)
    features = inputs * (image_shape[1] // 32) * (image_shape[2] // 32)
    x = nn.dropout(nn.relu(b.dense(x, features, 4096, "fc6")), rate=0.5)
    x = nn.dropout(nn.relu(b.dense(x, 4096, 4096, "fc7")), rate=0.5)
    return b.function(nn.softmax(b.dense(x, 4096, num_classes, "fc8")))


def get_workload(batch_size: int, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
                 num_layers: int = 11, batch_norm: bool = False) -> Any:
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
