# SPDX-License-Identifier: Apache-2.0
"""Functions that session tests call remotely, under their classic names."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import register_func
from ..runtime.ndarray import array


@register_func("testing.echo", override=True)
def echo(*values: Any) -> Any:
    return values[0]


@register_func("rpc.test.addone", override=True)
def addone(x: int) -> int:
    return x + 1


@register_func("rpc.test.strcat", override=True)
def strcat(name: str, x: int) -> str:
    return f"{name}:{x}"


@register_func("rpc.test.except", override=True)
def remotethrow(name: str) -> None:
    raise ValueError(str(name))


@register_func("rpc.test.runtime_str_concat", override=True)
def runtime_str_concat(x: str, y: str) -> str:
    return x + y


@register_func("rpc.test.remote_array_func", override=True)
def remote_array_func(y: Any) -> None:
    np.testing.assert_equal(y.numpy(), np.ones(4))


@register_func("rpc.test.add_to_lhs", override=True)
def add_to_lhs(x: int) -> Any:
    return lambda y: x + y


@register_func("rpc.test.remote_return_nd", override=True)
def remote_return_nd(name: str) -> Any:
    if name == "get_arr":
        return lambda arr: arr
    if name == "ref_count":
        return lambda arr: 1
    if name == "get_elem":
        return lambda arr, i: float(arr.numpy()[i])
    if name == "get_arr_elem":
        return lambda arr, i: float(arr.numpy()[i])
    raise RuntimeError(f"unknown name '{name}'")


@register_func("rpc.test.ones", override=True)
def ones(n: int) -> Any:
    return array(np.ones(n, "float32"))
