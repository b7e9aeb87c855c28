# SPDX-License-Identifier: Apache-2.0
"""Small functions that tests of the function interface call: they go through the runtime's table and back."""
from __future__ import annotations

import builtins
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from ..registry import convert
from ..runtime.ndarray import Device


def nop(*_: Any) -> None:
    """Nothing, for any arguments."""


def echo(value: Any) -> Any:
    """The value, once through a function of the runtime."""
    return convert(lambda x: x)(value)


def device_test(dev: Device, dev_type: int, dev_id: int) -> Device:
    if (dev.device_type, dev.device_id) != (int(dev_type), int(dev_id)):
        raise ValueError(f"{dev} is not device {dev_type}, {dev_id}")
    return dev


context_test = device_test


def test_wrap_callback(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another one, through the runtime."""
    inner = convert(func)
    return convert(lambda: inner())


def test_raise_error_callback(message: str) -> Callable[..., Any]:
    """A function that raises an error of the kind that stands before the colon."""
    kind, _, text = message.partition(":")
    known = getattr(builtins, kind.strip(), None)

    def fail() -> None:
        raise known(text.strip()) if isinstance(known, type) and issubclass(known, Exception) else RuntimeError(message)
    return convert(fail)


def test_check_eq_callback(message: str) -> Callable[..., Any]:
    """A function that raises ValueError unless its two arguments are equal."""
    def check(x: Any, y: Any) -> None:
        if x != y:
            raise ValueError(f"{message}{x} == {y}")
    return convert(check)


for _function in (test_wrap_callback, test_raise_error_callback, test_check_eq_callback):
    _function.__test__ = False  # type: ignore[attr-defined]


def ErrorTest(x: int, y: int) -> int:
    """x + 1, or ValueError unless x is the smaller one."""
    if x >= y:
        raise ValueError(f"Check failed: x < y ({x} vs. {y}) : expect x to be smaller than y.")
    return x + 1


def object_use_count(value: Any) -> int:
    """How many references Python has on the object, beyond those of this call."""
    return sys.getrefcount(value) - 3


def run_check_signal(number: int) -> None:
    """Raises a signal of this process after a while: KeyboardInterrupt for SIGINT."""
    time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT if number <= 0 else number)


def terminate_self() -> None:
    """Ends the process at once."""
    sys.exit(-1)


def identity_after(x: Any, sleep: float) -> Any:
    """x, some seconds later."""
    if sleep:
        time.sleep(sleep)
    return x
