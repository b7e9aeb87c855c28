# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet 1.1 (Iandola et al. 2016)."""
from __future__ import annotations

from typing import Any

from .. import op
from .init import Builder, create_workload, nn


def get_net(batch_size: int, image_shape: tuple[int, ...] = (3, 224, 224), num_classes: int = 1000, version: str = "1.1", dtype: str = "float32") -> Any:
    if version != "1.1":
        raise NotImplementedError("version 1.1 is the one there is")
    b = Builder((batch_size, *image_shape), dtype)

    def conv(x: Any, inputs: int, channels: int, kernel: int, name: str, stride: int = 1, pad: int = 0) -> Any:
        return nn.relu(b.bias(b.conv(x, inputs, channels, kernel, name, stride, pad), channels, name))

    x: Any = conv(b.data, image_shape[0], 64, 3, "conv1", 2)
    inputs = 64
    for i, squeeze in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if i in (0, 2, 4):
            x = nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2))
        s = conv(x, inputs, squeeze, 1, f"fire{i}_squeeze")
        x = op.concatenate([conv(s, squeeze, 4 * squeeze, 1, f"fire{i}_expand1"), conv(s, squeeze, 4 * squeeze, 3, f"fire{i}_expand3", 1, 1)], axis=1)
        inputs = 8 * squeeze
    x = conv(x, inputs, num_classes, 1, "conv_final")
    return b.function(nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(x))))


def get_workload(batch_size: int = 1, num_classes: int = 1000, version: str = "1.1", image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32") -> Any:
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
