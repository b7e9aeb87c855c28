# SPDX-License-Identifier: Apache-2.0
"""Modules with a single operator, for tasks that are created by name instead of extracted from a model."""
from __future__ import annotations

from typing import Any

import numpy as np


def _constant(arg: Any) -> Any:
    from ... import relay
    _, shape, dtype = arg
    return relay.const(np.zeros(shape, dtype))


def _var(name: str, arg: Any) -> Any:
    from ... import relay
    _, shape, dtype = arg
    return relay.var(name, shape=shape, dtype=dtype)


def _conv2d(args: Any) -> Any:
    from ... import relay
    data, kernel, strides, padding, dilation = args[:5]
    groups = args[5] if isinstance(args[5], int) else 1
    return relay.nn.conv2d(_var("data", data), _constant(kernel), strides=strides, padding=padding, dilation=dilation, groups=groups, channels=kernel[1][0],
                           kernel_size=kernel[1][2:])


def _depthwise(args: Any) -> Any:
    from ... import relay
    data, kernel, strides, padding, dilation = args[:5]
    return relay.nn.conv2d(_var("data", data), _constant(kernel), strides=strides, padding=padding, dilation=dilation, groups=data[1][1],
                           channels=kernel[1][0] * kernel[1][1], kernel_size=kernel[1][2:])


def _dense(args: Any) -> Any:
    from ... import relay
    return relay.nn.dense(_var("data", args[0]), _constant(args[1]))


def _batch_matmul(args: Any) -> Any:
    from ... import relay
    turned = args[4:6] if len(args) >= 6 else (False, True)
    return relay.nn.batch_matmul(_var("x", args[0]), _var("y", args[1]), transpose_a=turned[0], transpose_b=turned[1])


_MAKERS = {"conv2d_NCHWc": _conv2d, "group_conv2d_nchw": _conv2d, "depthwise_conv2d_NCHWc": _depthwise, "dense_pack": _dense, "dense_nopack": _dense,
           "batch_matmul": _batch_matmul}


def module_of(name: str, args: Any) -> Any:
    """ValueError: no task has this name, or the arguments do not fit."""
    from ... import relay
    from ...ir import IRModule
    maker = _MAKERS.get(name.partition(".")[0])
    if maker is None:
        raise ValueError(f"there is no task '{name}'; by name there are {', '.join(_MAKERS)}, and extract_from_program finds all of a model")
    try:
        body = maker(args)
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"these are no arguments of {name}: {args}") from error
    return IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))


__all__ = ["module_of"]
