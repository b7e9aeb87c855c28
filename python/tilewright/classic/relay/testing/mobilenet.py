# SPDX-License-Identifier: Apache-2.0
"""MobileNet (Howard et al. 2017)."""
from __future__ import annotations

from typing import Any

from .init import Builder, create_workload, nn

_BEGIN = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
_END = [(1024, 2), (1024, 1)]


def mobile_net(num_classes: int = 1000, data_shape: tuple[int, ...] = (1, 3, 224, 224), dtype: str = "float32", alpha: float = 1.0,
               is_shallow: bool = False, layout: str = "NCHW") -> Any:
    """The network with `alpha` times the paper's channels; a shallow one has not the five middle blocks of 512."""
    b = Builder(data_shape, dtype, layout)
    inputs = int(32 * alpha)
    x: Any = nn.relu(b.norm(b.conv(b.data, data_shape[layout.index("C")], inputs, 3, "conv_block_1_conv", 2, 1), inputs, "conv_block_1_bn", epsilon=1e-5))
    blocks = [*_BEGIN, *([] if is_shallow else [(512, 1)] * 5), *_END]
    for i, (width, stride) in enumerate(blocks, 1):
        name, channels = f"separable_conv_block_{i}", int(width * alpha)
        x = nn.relu(b.norm(b.conv(x, inputs, inputs, 3, f"{name}_depthwise_conv1", stride, 1, inputs), inputs, f"{name}_bn1", epsilon=1e-5))
        x = nn.relu(b.norm(b.conv(x, inputs, channels, 1, f"{name}_conv2"), channels, f"{name}_bn2", epsilon=1e-5))
        inputs = channels
    x = nn.batch_flatten(nn.global_avg_pool2d(x, layout=layout))
    x = nn.dense(x, b.param("fc_weight", num_classes, inputs), units=num_classes)
    return b.function(nn.softmax(b.bias(x, num_classes, "fc")))


def get_workload(batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
                 layout: str = "NCHW") -> Any:
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))
