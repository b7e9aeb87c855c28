# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet (Iandola et al. 2016)."""
from __future__ import annotations

from typing import Any

from .. import op
from .init import Builder, create_workload, nn


# version: (stem channels, kernel, padding), indices of the fire modules preceded by a pool, squeeze channels of each fire module
_SPECS = {"1.0": ((96, 7, 3), (0, 3, 7), (16, 16, 32, 32, 48, 48, 64, 64)), "1.1": ((64, 3, 1), (0, 2, 4), (16, 16, 32, 32, 48, 48, 64, 64))}


def get_net(batch_size: int, image_shape: tuple[int, ...] = (3, 224, 224), num_classes: int = 1000, version: str = "1.0", dtype: str = "float32") -> Any:
    if version not in _SPECS:
        raise ValueError(f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
    (inputs, kernel, pad), pools, fires = _SPECS[version]
    b = Builder((batch_size, *image_shape), dtype)

    def conv(x: Any, inputs: int, channels: int, kernel: int, name: str, stride: int = 1, pad: int = 0) -> Any:
        return nn.relu(b.bias(b.conv(x, inputs, channels, kernel, name, stride, pad), channels, name))

    x: Any = conv(b.data, image_shape[0], inputs, kernel, "conv1", 2, pad)
    for i, squeeze in enumerate(fires):
        if i in pools:
            x = nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2))
        s = conv(x, inputs, squeeze, 1, f"fire{i + 1}_input_conv")
        x = op.concatenate([conv(s, squeeze, 4 * squeeze, 1, f"fire{i + 1}_left_conv"), conv(s, squeeze, 4 * squeeze, 3, f"fire{i + 1}_right_conv", 1, 1)], axis=1)
        inputs = 8 * squeeze
    x = conv(nn.dropout(x, rate=0.5), inputs, num_classes, 1, "conv_final")
    return b.function(nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(x))))


def get_workload(batch_size: int = 1, num_classes: int = 1000, version: str = "1.0", image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32") -> Any:
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
