# SPDX-License-Identifier: Apache-2.0
"""Darknet's reorganisation."""
from __future__ import annotations

from ...te.tensor import Tensor
from ..transform import reshape, transpose


def reorg(data: Tensor, stride: int) -> Tensor:
    """Blocks of stride x stride places of (N, C, H, W) become channels; the data is read as pictures of stride times the size."""
    n, c, h, w = data.shape
    step = int(stride)
    wide = reshape(data, (n, c // (step * step), h, step, w, step))
    return reshape(transpose(wide, (0, 3, 5, 1, 2, 4)), (n, c * step * step, h // step, w // step))


__all__ = ["reorg"]
