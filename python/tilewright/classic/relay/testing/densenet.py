# SPDX-License-Identifier: Apache-2.0
"""DenseNet with bottlenecks (Huang et al. 2016)."""
from __future__ import annotations

from typing import Any

from .. import op
from .init import Builder, create_workload, nn

# layers: (channels of the stem, growth, layers of each block)
_SPECS = {121: (64, 32, [6, 12, 24, 16]), 161: (96, 48, [6, 12, 36, 24]), 169: (64, 32, [6, 12, 32, 32]), 201: (64, 32, [6, 12, 48, 32])}


def get_net(densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32") -> Any:
    if densenet_size not in _SPECS:
        raise ValueError(f"no DenseNet has {densenet_size} layers; there are {', '.join(map(str, _SPECS))}")
    channels, growth, blocks = _SPECS[densenet_size]
    b = Builder((batch_size, *image_shape), dtype)
    x: Any = nn.relu(b.norm(b.conv(b.data, image_shape[0], channels, 7, "conv1", 2, 3), channels, "batch1", epsilon=1e-5))
    x = nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for i, layers in enumerate(blocks):
        for j in range(layers):
            name = f"block{i}_layer{j}"
            y = b.conv(nn.relu(b.norm(x, channels, f"{name}_batch1", epsilon=1e-5)), channels, 4 * growth, 1, f"{name}_conv1")
            y = b.conv(nn.relu(b.norm(y, 4 * growth, f"{name}_batch2", epsilon=1e-5)), 4 * growth, growth, 3, f"{name}_conv2", 1, 1)
            x, channels = op.concatenate([x, y], axis=1), channels + growth
        if i + 1 < len(blocks):
            x = b.conv(nn.relu(b.norm(x, channels, f"transition{i}_batch", epsilon=1e-5)), channels, channels // 2, 1, f"transition{i}_conv")
            x, channels = nn.avg_pool2d(x, pool_size=(2, 2), strides=(2, 2)), channels // 2
    x = nn.relu(b.norm(x, channels, "batch5", epsilon=1e-5))
    x = nn.batch_flatten(nn.avg_pool2d(x, pool_size=(7, 7), strides=(7, 7)))
    return b.function(b.dense(x, channels, classes, "dense"))


def get_workload(densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32") -> Any:
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
