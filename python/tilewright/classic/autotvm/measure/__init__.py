# SPDX-License-Identifier: Apache-2.0
"""Measuring configurations: in a process of its own, which may crash or hang without harm."""
from __future__ import annotations

import enum
import os
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from .... import _core

MeasureInput = namedtuple("MeasureInput", ["target", "task", "config"])
# costs: seconds of one run; all_cost: seconds of building and measuring; timestamp: since the epoch.
MeasureResult = namedtuple("MeasureResult", ["costs", "error_no", "all_cost", "timestamp"])


class MeasureErrorNo(enum.IntEnum):
    """Why a trial has no time."""
    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


class LocalBuilder:
    """Compiles on this machine. timeout: seconds for each configuration. n_parallel: how many are compiled and measured together. What else the
    classic builder takes has no effect: kernels are compiled in the measuring process."""

    def __init__(self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Any = None, build_func: Any = "default", do_fork: bool = False,
                 runtime: Any = None):
        if build_func not in ("default", "ndk") and not callable(build_func):
            raise ValueError(f"build_func is \"default\", \"ndk\" or a function, not {build_func!r}")
        self.timeout, self.n_parallel, self.build_func = timeout, n_parallel or 8, build_func


class LocalRunner:
    """Measures on this machine. Each of `repeat` times is the mean of `number` runs, of more where they take less than min_repeat_ms."""

    def __init__(self, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: float = 0, cooldown_interval: float = 0.1,
                 enable_cpu_cache_flush: bool = False, module_loader: Any = None):
        if number < 1 or repeat < 1:
            raise ValueError("number and repeat are 1 at least")
        self.timeout, self.n_parallel = timeout, 1
        self.options = _core.TimingOptions()
        self.options.number, self.options.repeat, self.options.min_repeat_ms = number, repeat, min_repeat_ms
        # A pause for each repeat of each trial would be most of the time; the classic one is for devices that throttle.
        self.options.cooldown_seconds, self.options.flush_cache = 0 if cooldown_interval <= 0.1 else cooldown_interval, enable_cpu_cache_flush


class RPCRunner(LocalRunner):
    """Measures on a device behind a tracker. NotImplementedError: sessions of this kind carry no measurements yet."""

    def __init__(self, key: str, host: str, port: int, priority: int = 1, timeout: float = 10, n_parallel: int | None = None, number: int = 4, repeat: int = 3,
                 min_repeat_ms: float = 0, cooldown_interval: float = 0.1, enable_cpu_cache_flush: bool = False, module_loader: Any = None):
        raise NotImplementedError("measuring over RPC is not there yet; run `tilewright tune` on the device and bring its log here")


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """What a tuner's `tune` takes. "local" stands for LocalBuilder() and LocalRunner(). ValueError: something else."""
    builder = LocalBuilder() if builder == "local" else builder
    runner = LocalRunner() if runner == "local" else runner
    if not isinstance(builder, LocalBuilder):
        raise ValueError(f"builder is a LocalBuilder or \"local\", not {builder!r}")
    if not isinstance(runner, LocalRunner):
        raise ValueError(f"runner is a LocalRunner or \"local\", not {runner!r}")
    return {"builder": builder, "runner": runner}


def _command() -> list[str]:
    """A process of this Python that measures."""
    path = [os.fspath(p) for p in sys.path if p]
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from tilewright import _core; sys.exit(_core.serve_trials(0))"]


def create_measure_batch(task: Any, option: dict[str, Any]) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    """A function that measures inputs of the task; its n_parallel says how many at a time."""
    builder, runner = option["builder"], option["runner"]
    measurer = _core.make_measurer(_command(), builder.timeout, runner.timeout)

    def measure(inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        results = measurer.measure(task.core, [i.config.index for i in inputs], runner.options)
        return [MeasureResult(tuple(costs) if error == 0 else (RuntimeError(message),), error, seconds, time.time())
                for costs, error, message, seconds in results]
    measure.n_parallel = builder.n_parallel  # type: ignore[attr-defined]
    return measure


__all__ = ["LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult", "RPCRunner", "create_measure_batch", "measure_option"]
