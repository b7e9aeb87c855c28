# SPDX-License-Identifier: Apache-2.0
"""The network of Deep Q-Learning (Mnih et al. 2015)."""
from __future__ import annotations

from typing import Any

from .init import Builder, create_workload, nn


def get_net(batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84), dtype: str = "float32", layout: str = "NCHW") -> Any:
    b = Builder((batch_size, *image_shape), dtype, layout)
    x: Any = b.data
    inputs, size = image_shape[layout.index("C") - 1], image_shape[layout.index("H") - 1]
    for i, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        x = nn.relu(b.bias(b.conv(x, inputs, channels, kernel, f"conv{i}", stride), channels, f"conv{i}", layout.index("C")))
        inputs, size = channels, (size - kernel) // stride + 1
    x = nn.relu(b.dense(nn.batch_flatten(x), inputs * size * size, 512, "dense1"))
    return b.function(b.dense(x, 512, num_actions, "dense2"))


def get_workload(batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84), dtype: str = "float32", layout: str = "NCHW") -> Any:
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
