# SPDX-License-Identifier: Apache-2.0
"""The generator of DCGAN (Radford et al. 2015)."""
from __future__ import annotations

from typing import Any

from .. import op
from .init import Builder, create_workload, nn


def get_net(batch_size: int, random_len: int = 100, oshape: tuple[int, ...] = (3, 64, 64), ngf: int = 128, code: Any = None, layout: str = "NCHW", dtype: str = "float32") -> Any:
    if layout != "NCHW":
        raise NotImplementedError("the network is written in NCHW; relay.transform.ConvertLayout changes a module's layout")
    if oshape[-1] != 64 or oshape[-2] != 64:
        raise ValueError("Only support 64x64 image")
    b = Builder((batch_size, random_len), dtype)
    channels = ngf * 8
    x: Any = nn.relu(nn.dense(b.data, b.param("dense_weight", 4 * 4 * channels, random_len), units=4 * 4 * channels))
    x = op.reshape(x, newshape=(-1, channels, 4, 4))
    for i, outputs in enumerate((ngf * 4, ngf * 2, ngf, oshape[0]), 2):
        weight = b.param(f"g{i}_deconv_weight", channels, outputs, 4, 4)
        x = nn.conv2d_transpose(x, weight, strides=(2, 2), padding=(1, 1), channels=outputs, kernel_size=(4, 4), kernel_layout="IOHW")
        x = op.tanh(x) if i == 5 else nn.relu(b.norm(x, outputs, f"g{i}_batch_norm", epsilon=1e-5, scale=False))
        channels = outputs
    return b.function(x)


def get_workload(batch_size: int, oshape: tuple[int, ...] = (3, 64, 64), ngf: int = 128, random_len: int = 100, layout: str = "NCHW", dtype: str = "float32") -> Any:
    return create_workload(get_net(batch_size, random_len, oshape, ngf, None, layout, dtype))
