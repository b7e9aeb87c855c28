# SPDX-License-Identifier: Apache-2.0
"""Classic operators that are not available here, each with a replacement."""
from __future__ import annotations

_MEMORY = "the compiler plans memory itself; it is no part of a script's Relay"

INSTEAD: dict[str, str] = {
    "nn.contrib_conv2d_winograd_nnpack_weight_transform": "the compiler chooses the algorithm and packs weights itself: call nn.conv2d",
    **dict.fromkeys(("auto_scheduler_layout_transform", "meta_schedule_layout_transform"), "layout_transform"),
    "vision.nms": "vision.non_max_suppression",
    **dict.fromkeys(("call_lowered",), _MEMORY),
    "embedding": "take(table, indices, axis=0)", "percentile": "sort, then take", "concat": "concatenate", "matmul": "nn.matmul", "relu": "nn.relu",
    "softmax": "nn.softmax", "gelu": "nn.gelu", "permute": "transpose", "flatten": "nn.batch_flatten", "pow": "power", "div": "divide", "mul": "multiply",
    "sub": "subtract", "neg": "negative", "eq": "equal",
}


def has_absent(prefix: str) -> bool:
    """Whether there are entries under a prefix such as "dyn.image."."""
    return any(name.startswith(prefix) for name in INSTEAD)


def replacement(name: str) -> str | None:
    """The replacement for an unavailable classic operator."""
    if name.startswith("contrib.ethosu"):
        return "an external code generator of that device (docs/external-codegen.md)"
    return INSTEAD.get(name)


__all__ = ["INSTEAD", "has_absent", "replacement"]
