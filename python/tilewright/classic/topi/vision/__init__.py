# SPDX-License-Identifier: Apache-2.0
"""Object detection: non-maximum suppression, regions of interest, anchors."""
from . import nms, rcnn, ssd
from .nms import get_valid_counts, non_max_suppression
from .reorg import reorg

__all__ = ["get_valid_counts", "nms", "non_max_suppression", "rcnn", "reorg", "ssd"]
