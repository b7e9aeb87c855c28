# SPDX-License-Identifier: Apache-2.0
"""MobileNet (Howard et al. 2017)."""
from __future__ import annotations

from typing import Any

from .init import Builder, create_workload, nn

_BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1)]


def get_net(batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32") -> Any:
    b = Builder((batch_size, *image_shape), dtype)
    x: Any = nn.relu(b.norm(b.conv(b.data, image_shape[0], 32, 3, "conv_block_1_conv", 2, 1), 32, "conv_block_1_bn", epsilon=1e-5))
    inputs = 32
    for i, (channels, stride) in enumerate(_BLOCKS, 1):
        name = f"separable_conv_block_{i}"
        x = nn.relu(b.norm(b.conv(x, inputs, inputs, 3, f"{name}_depthwise_conv1", stride, 1, inputs), inputs, f"{name}_bn1", epsilon=1e-5))
        x = nn.relu(b.norm(b.conv(x, inputs, channels, 1, f"{name}_conv2"), channels, f"{name}_bn2", epsilon=1e-5))
        inputs = channels
    x = nn.batch_flatten(nn.global_avg_pool2d(x))
    x = nn.dense(x, b.param("fc_weight", num_classes, inputs), units=num_classes)
    return b.function(nn.softmax(b.bias(x, num_classes, "fc")))


def get_workload(batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32", **_: Any) -> Any:
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
