# SPDX-License-Identifier: Apache-2.0
"""Residual networks with pre-activation for video (Hara et al. 2018)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import op
from ..analysis import free_vars
from ..expr import Function, var
from . import layers
from .init import create_workload

_STAGES = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3], 200: [3, 24, 36, 3], 269: [3, 30, 48, 8]}


def _norm(x: Any, name: str, axis: int, **more: Any) -> Any:
    return layers.batch_norm_infer(x, epsilon=2e-5, name=name, axis=axis, **more)


def residual_unit(data: Any, num_filter: int, stride: Sequence[int], dim_match: bool, name: str, bottle_neck: bool = True, data_layout: str = "NCDHW",
                  kernel_layout: str = "OIDHW") -> Any:
    """Normalisation and activation before each convolution, and a sum with the input, which a 1x1x1 convolution projects unless
    dim_match."""
    axis, layouts = data_layout.index("C"), {"data_layout": data_layout, "kernel_layout": kernel_layout}

    def conv(x: Any, channels: int, kernel: int, strides: Sequence[int], part: str) -> Any:
        return layers.conv3d(x, channels=channels, kernel_size=(kernel,) * 3, strides=tuple(strides), padding=(kernel // 2,) * 3, name=f"{name}_{part}", **layouts)
    act = op.nn.relu(_norm(data, f"{name}_bn1", axis))
    narrow = num_filter // 4
    steps = [(narrow, 1, stride), (narrow, 3, (1, 1, 1)), (num_filter, 1, (1, 1, 1))] if bottle_neck else [(num_filter, 3, stride), (num_filter, 3, (1, 1, 1))]
    y = act
    for i, (channels, kernel, strides) in enumerate(steps, 1):
        y = conv(y if i == 1 else op.nn.relu(_norm(y, f"{name}_bn{i}", axis)), channels, kernel, strides, f"conv{i}")
    return op.add(y, data if dim_match else conv(act, num_filter, 1, stride, "sc"))


def resnet(units: Sequence[int], num_stages: int, filter_list: Sequence[int], num_classes: int, data_shape: Sequence[int], bottle_neck: bool = True,
           layout: str = "NCDHW", dtype: str = "float32") -> Function:
    if layout not in ("NCDHW", "NDHWC") or len(units) != num_stages:
        raise ValueError("layout is NCDHW or NDHWC, and every stage has its number of units")
    axis = layout.index("C")
    layouts = {"data_layout": layout, "kernel_layout": layers.conv_kernel_layout(layout)}
    x = _norm(var("data", shape=tuple(data_shape), dtype=dtype), "bn_data", axis, scale=False)
    if data_shape[layout.index("H")] <= 32:
        x = layers.conv3d(x, channels=filter_list[0], kernel_size=(3, 3, 3), strides=(1, 1, 1), padding=(1, 1, 1), name="conv0", **layouts)
    else:
        x = layers.conv3d(x, channels=filter_list[0], kernel_size=(3, 7, 7), strides=(1, 2, 2), padding=(1, 3, 3), name="conv0", **layouts)
        x = op.nn.relu(_norm(x, "bn0", axis))
    for stage, count in enumerate(units):
        for unit in range(count):
            stride = (2, 2, 2) if unit == 0 and stage > 0 else (1, 1, 1)
            x = residual_unit(x, filter_list[stage + 1], stride, unit > 0, f"stage{stage + 1}_unit{unit + 1}", bottle_neck, **layouts)
    x = op.nn.relu(_norm(x, "bn1", axis))
    flat = op.nn.batch_flatten(op.nn.global_avg_pool3d(x, layout=layout))
    net = op.nn.softmax(layers.dense_add_bias(flat, units=num_classes, name="fc1"))
    return Function(free_vars(net), net)


def get_net(batch_size: int, num_classes: int, num_layers: int = 50, image_shape: tuple[int, ...] = (3, 16, 112, 112), layout: str = "NCDHW",
            dtype: str = "float32", **_: Any) -> Function:
    height = image_shape[layout.index("H") - 1]
    if height <= 28:
        if (num_layers - 2) % 9 == 0 and num_layers >= 164:
            units, filters, bottleneck = [(num_layers - 2) // 9] * 3, [16, 64, 128, 256], True
        elif (num_layers - 2) % 6 == 0 and num_layers < 164:
            units, filters, bottleneck = [(num_layers - 2) // 6] * 3, [16, 16, 32, 64], False
        else:
            raise ValueError(f"no experiments done on num_layers {num_layers}")
    elif num_layers in _STAGES:
        units, bottleneck = _STAGES[num_layers], num_layers >= 50
        filters = [64, 256, 512, 1024, 2048] if bottleneck else [64, 64, 128, 256, 512]
    else:
        raise ValueError(f"no experiments done on num_layers {num_layers}")
    return resnet(units, len(units), filters, num_classes, (batch_size, *image_shape), bottleneck, layout, dtype)


def get_workload(batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18, image_shape: tuple[int, ...] = (3, 16, 112, 112),
                 layout: str = "NCDHW", dtype: str = "float32", **kwargs: Any) -> Any:
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
