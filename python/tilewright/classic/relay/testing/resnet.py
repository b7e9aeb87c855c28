# SPDX-License-Identifier: Apache-2.0
"""Residual networks with pre-activation (He et al. 2016)."""
from __future__ import annotations

from typing import Any

from .init import Builder, create_workload, nn

_STAGES = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3], 200: [3, 24, 36, 3]}


def _unit(b: Builder, x: Any, inputs: int, channels: int, stride: int, same: bool, bottleneck: bool, name: str) -> Any:
    act = nn.relu(b.norm(x, inputs, f"{name}_bn1"))
    if bottleneck:
        quarter = channels // 4
        y = b.conv(act, inputs, quarter, 1, f"{name}_conv1", stride)
        y = b.conv(nn.relu(b.norm(y, quarter, f"{name}_bn2")), quarter, quarter, 3, f"{name}_conv2", 1, 1)
        y = b.conv(nn.relu(b.norm(y, quarter, f"{name}_bn3")), quarter, channels, 1, f"{name}_conv3")
    else:
        y = b.conv(act, inputs, channels, 3, f"{name}_conv1", stride, 1)
        y = b.conv(nn.relu(b.norm(y, channels, f"{name}_bn2")), channels, channels, 3, f"{name}_conv2", 1, 1)
    return y + (x if same else b.conv(act, inputs, channels, 1, f"{name}_sc", stride))


def get_net(batch_size: int, num_classes: int, num_layers: int = 50, image_shape: tuple[int, ...] = (3, 224, 224),
            layout: str = "NCHW", dtype: str = "float32", **_: Any) -> Any:
    b = Builder((batch_size, *image_shape), dtype, layout)
    planes, height = image_shape[layout.index("C") - 1], image_shape[layout.index("H") - 1]
    if height <= 28:
        if (num_layers - 2) % 9 == 0 and num_layers >= 164:
            units, filters, bottleneck = [(num_layers - 2) // 9] * 3, [16, 64, 128, 256], True
        elif (num_layers - 2) % 6 == 0 and num_layers < 164:
            units, filters, bottleneck = [(num_layers - 2) // 6] * 3, [16, 16, 32, 64], False
        else:
            raise ValueError(f"no experiments done on num_layers {num_layers}")
    else:
        if num_layers not in _STAGES:
            raise ValueError(f"no experiments done on num_layers {num_layers}")
        units, bottleneck = _STAGES[num_layers], num_layers >= 50
        filters = [64, 256, 512, 1024, 2048] if bottleneck else [64, 64, 128, 256, 512]
    x: Any = b.norm(b.data, planes, "bn_data", scale=False)
    if height <= 32:  # small images have another stem
        x = b.conv(x, planes, filters[0], 3, "conv0", 1, 1)
    else:
        x = nn.relu(b.norm(b.conv(x, planes, filters[0], 7, "conv0", 2, 3), filters[0], "bn0"))
        x = nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=layout)
    for stage, count in enumerate(units):
        for unit in range(count):
            inputs = filters[stage] if unit == 0 else filters[stage + 1]
            x = _unit(b, x, inputs, filters[stage + 1], 2 if unit == 0 and stage > 0 else 1, unit > 0, bottleneck, f"stage{stage + 1}_unit{unit + 1}")
    x = nn.batch_flatten(nn.global_avg_pool2d(nn.relu(b.norm(x, filters[-1], "bn1")), layout=layout))
    return b.function(nn.softmax(b.dense(x, filters[-1], num_classes, "fc1")))


def get_workload(batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18, image_shape: tuple[int, ...] = (3, 224, 224),
                 layout: str = "NCHW", dtype: str = "float32", **kwargs: Any) -> Any:
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
