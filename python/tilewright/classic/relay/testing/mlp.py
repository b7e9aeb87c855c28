# SPDX-License-Identifier: Apache-2.0
"""Three dense layers."""
from __future__ import annotations

from typing import Any

import numpy as np

from .init import Builder, create_workload, nn


def get_net(batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32") -> Any:
    b = Builder((batch_size, *image_shape), dtype)
    x: Any = nn.batch_flatten(b.data)
    x = nn.relu(b.dense(x, int(np.prod(image_shape)), 128, "fc1"))
    x = nn.relu(b.dense(x, 128, 64, "fc2"))
    return b.function(nn.softmax(b.dense(x, 64, num_classes, "fc3")))


def get_workload(batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32") -> Any:
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
