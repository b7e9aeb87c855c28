# SPDX-License-Identifier: Apache-2.0
"""Functions for tests of the foreign function interface: they are called through the runtime's registry."""
from __future__ import annotations

import builtins
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from .. import error
from ..registry import convert
from ..runtime.ndarray import Device


def nop(*_: Any) -> None:
    """Does nothing, for any arguments."""


def echo(value: Any) -> Any:
    """Returns its argument after a round trip through the runtime."""
    return convert(lambda x: x)(value)


def device_test(dev: Device, dev_type: int, dev_id: int) -> Device:
    if (dev.device_type, dev.device_id) != (int(dev_type), int(dev_id)):
        raise ValueError(f"{dev} is not device {dev_type}, {dev_id}")
    return dev


context_test = device_test


def test_wrap_callback(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another one through the runtime."""
    inner = convert(func)
    return convert(lambda: inner())


def test_raise_error_callback(message: str) -> Callable[..., Any]:
    """A function that raises the error class named before the colon of the text."""
    kind, _, text = message.partition(":")
    known = _kind_of_error(kind.strip())

    def fail() -> None:
        raise known(text.strip()) if known is not None else error.TVMError(message)
    return convert(fail)


def test_check_eq_callback(message: str) -> Callable[..., Any]:
    """A function that raises ValueError unless its two arguments are equal."""
    kind, _, text = message.partition(":")

    def check(x: Any, y: Any) -> None:
        if x != y:
            raise (_kind_of_error(kind.strip()) or ValueError)(f"Check failed: x == y ({x} vs. {y}) : {text.strip()}")
    return convert(check)


for _function in (test_wrap_callback, test_raise_error_callback, test_check_eq_callback):
    _function.__test__ = False  # type: ignore[attr-defined]


def ErrorTest(x: int, y: int) -> int:
    """Returns x. ValueError if x and y differ, TVMError if both are 1."""
    if x != y:
        raise ValueError(f"Check failed: x == y ({x} vs. {y}) : expect x and y to be equal.")
    if x == 1:
        raise error.InternalError("x is 1")
    return x


def _kind_of_error(name: str) -> Any:
    """An exception class by its name: a builtin, ours, or one registered by a script."""
    found = error._registered.get(name) or getattr(error, name, None) or getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def object_use_count(value: Any) -> int:
    """The number of Python references to the object, without those of this call."""
    return sys.getrefcount(value) - 2


def run_check_signal(number: int) -> None:
    """Sends a signal to this process after a delay: SIGINT raises KeyboardInterrupt."""
    time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT if number <= 0 else number)


def terminate_self() -> None:
    """Ends the process at once."""
    sys.exit(-1)


def identity_after(x: Any, sleep: float) -> Any:
    """x, after a delay in seconds."""
    if sleep:
        time.sleep(sleep)
    return x
