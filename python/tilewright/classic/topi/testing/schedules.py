# SPDX-License-Identifier: Apache-2.0
"""Schedules by target, for scripts that compare operators with numpy; and the comparison itself."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import te
from ...runtime import cpu, nd
from ...target import Target
from .. import generic
from ..utils import get_const_tuple


def dispatch(target: Any, dispatch_map: Mapping[str, Any]) -> Any:
    """The map's entry for one of the target's keys, else for "generic"."""
    for key in Target(target).keys:
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def get_injective_schedule(target: Any) -> Any:
    return generic.schedule_injective


def get_reduce_schedule(target: Any) -> Any:
    return generic.schedule_reduce


def get_softmax_schedule(target: Any) -> Any:
    return generic.schedule_softmax


def get_conv2d_nchw_implement(target: Any) -> Any:
    """(compute, schedule)"""
    from ..nn import conv2d_nchw
    return conv2d_nchw, generic.schedule_conv2d_nchw


get_elemwise_schedule = get_broadcast_schedule = get_injective_schedule


def compare_numpy_tvm(inputs: Any, output: Any, target: Any, device: Any, compute: Any, schedule: Any) -> None:
    """Asserts that compute(tensors), scheduled by schedule(results), gives the array `output` for these arrays."""
    tensors = [te.placeholder(x.shape, str(x.dtype), f"A{i}") for i, x in enumerate(inputs)]
    with Target(target):
        result = compute(*tensors)
        s = schedule([result])
    from ...driver.build_module import build
    function = build(s, [*tensors, result], target)
    out = nd.array(np.zeros(get_const_tuple(result.shape), result.dtype), device or cpu())
    function(*[nd.array(x, device or cpu()) for x in inputs], out)
    np.testing.assert_allclose(out.numpy(), output, rtol=1e-4, atol=1e-4)


__all__ = ["compare_numpy_tvm", "dispatch", "get_broadcast_schedule", "get_conv2d_nchw_implement", "get_elemwise_schedule", "get_injective_schedule", "get_reduce_schedule", "get_softmax_schedule"]
