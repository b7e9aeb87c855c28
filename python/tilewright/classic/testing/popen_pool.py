# SPDX-License-Identifier: Apache-2.0
"""Functions that scripts run in worker processes."""
from __future__ import annotations

import time
from typing import Any

from ..registry import get_global_func, register_func

_value = 1


def initializer(test_global_state_1: Any, test_global_state_2: Any, test_global_state_3: Any) -> None:
    global _value
    _value = (test_global_state_1, test_global_state_2, test_global_state_3)  # type: ignore[assignment]


def after_initializer() -> Any:
    """The values that the initializer got."""
    return _value


def timeout_job(n: float) -> None:
    time.sleep(n * 1.5)


def register_ffi() -> None:
    @register_func("testing.nested_identity_py", override=True)
    def _identity(arg: Any) -> Any:
        return arg


def call_py_ffi(arg: Any) -> Any:
    return get_global_func("testing.nested_identity_py")(arg)


def call_cpp_ffi(arg: Any) -> Any:
    return get_global_func("testing.echo")(arg)


def call_cpp_py_ffi(arg: Any) -> Any:
    return get_global_func("testing.nested_identity_py")(get_global_func("testing.echo")(arg))


def fast_summation(n: int) -> int:
    """0 + 1 + ... + n - 1, by the formula."""
    return n * (n - 1) // 2


def slow_summation(n: int) -> int:
    """The same sum by a loop."""
    total = 0
    for i in range(n):
        total += i
    return total


__all__ = ["after_initializer", "call_cpp_ffi", "call_cpp_py_ffi", "call_py_ffi", "fast_summation", "initializer", "register_ffi", "slow_summation", "timeout_job"]
