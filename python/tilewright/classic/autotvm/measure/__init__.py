# SPDX-License-Identifier: Apache-2.0
"""Measures configurations in a separate process, which may crash or hang without harm."""
from __future__ import annotations

import enum
import os
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from .... import _core
from .build_process import BuildProcesses
from .measurer import SessionMeasurer
from .sessions import DeviceSessions, LocalSessions, TrackerSessions

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
    """Compiles on this machine. timeout: seconds per configuration. n_parallel: how many are compiled and measured together. The classic
    builder's other arguments have no effect: kernels are compiled in the measuring process."""

    def __init__(self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Any = None, build_func: Any = "default", do_fork: bool = False,
                 runtime: Any = None):
        if build_func not in ("default", "ndk") and not callable(build_func):
            raise ValueError(f"build_func is \"default\", \"ndk\" or a function, not {build_func!r}")
        self.timeout, self.n_parallel, self.build_func = timeout, n_parallel or 8, build_func
        self.processes: Any = BuildProcesses(min(self.n_parallel, os.cpu_count() or 1))


class LocalRunner:
    """Measures on this machine. Each of the `repeat` times is the mean of `number` runs, or of more if they take less than
    min_repeat_ms. module_loader: measures on a device instead, with configurations built as C programs
    (tvm.micro.AutoTvmModuleLoader)."""

    def __init__(self, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: float = 0, cooldown_interval: float = 0.1,
                 enable_cpu_cache_flush: bool = False, module_loader: Any = None):
        if number < 1 or repeat < 1:
            raise ValueError("number and repeat are 1 at least")
        self.timeout, self.n_parallel = timeout, 1
        self.sessions: Any = LocalSessions() if module_loader is None else DeviceSessions(module_loader)
        self.options = _core.TimingOptions()
        self.options.number, self.options.repeat, self.options.min_repeat_ms = number, repeat, min_repeat_ms
        # The classic cooldown is meant for devices that throttle; here pauses would take most of the tuning time.
        self.options.cooldown_seconds, self.options.flush_cache = 0 if cooldown_interval <= 0.1 else cooldown_interval, enable_cpu_cache_flush


class RPCRunner(LocalRunner):
    """Measures on devices registered with a tracker: libraries are built here, uploaded, and run in a session of the device. n_parallel:
    devices used at a time, by default all that the tracker has for the key. timeout: seconds per configuration, after which the
    server ends the session."""

    def __init__(self, key: str, host: str, port: int, priority: int = 1, timeout: float = 10, n_parallel: int | None = None, number: int = 4, repeat: int = 3,
                 min_repeat_ms: float = 0, cooldown_interval: float = 0.1, enable_cpu_cache_flush: bool = False, module_loader: Any = None):
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, module_loader)
        self.key, self.host, self.port, self.priority = key, host, int(port), priority
        self.sessions = TrackerSessions(key, host, self.port, priority, n_parallel)

    def check(self) -> None:
        """RuntimeError if no device of the key answers."""
        if not check_remote(None, self.key, self.host, self.port):
            raise RuntimeError(f"Cannot get remote devices from the tracker. Please check the status of tracker by 'python -m tvm.exec.query_rpc_tracker "
                               f"--port {self.port}' and make sure you have free devices on the queue status.")


def request_remote(device_key: str, host: str | None = None, port: int | None = None, priority: int = 1, timeout: float = 60) -> Any:
    """A session with a device of the key from the tracker (default: $TVM_TRACKER_HOST and $TVM_TRACKER_PORT). Errors: those of
    `request`."""
    from ...rpc import connect_tracker
    where = host or os.environ.get("TVM_TRACKER_HOST"), port or os.environ.get("TVM_TRACKER_PORT")
    if None in where:
        raise ValueError("the tracker's host and port are given, or stand in TVM_TRACKER_HOST and TVM_TRACKER_PORT")
    return connect_tracker(str(where[0]), int(str(where[1]))).request(device_key, priority=priority, session_timeout=timeout)


def check_remote(target: Any, device_key: str, host: str | None = None, port: int | None = None, priority: int = 100, timeout: float = 10) -> bool:
    """Whether a device of the key is free within `timeout` seconds and runs a test function. Errors of the tracker are raised."""
    from ...error import Error
    from ...rpc import connect_tracker
    found: list[bool] = []

    def ask() -> None:
        try:
            session = request_remote(device_key, host, port, priority)
            found.append(session.get_function("runtime.NumThreads")() > 0)
            session.close()
        except (Error, RuntimeError):
            found.append(False)
    if host is not None and port is not None:
        connect_tracker(host, port).summary()
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout)
    return bool(found) and found[0]


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """The measure_option of `tune`. "local" means LocalBuilder() or LocalRunner(). ValueError: anything else."""
    builder = LocalBuilder() if builder == "local" else builder
    runner = LocalRunner() if runner == "local" else runner
    if not isinstance(builder, LocalBuilder):
        raise ValueError(f"builder is a LocalBuilder or \"local\", not {builder!r}")
    if not isinstance(runner, LocalRunner):
        raise ValueError(f"runner is a LocalRunner or \"local\", not {runner!r}")
    return {"builder": builder, "runner": runner}


def _command() -> list[str]:
    """The command of a measuring process with this Python."""
    path = [os.fspath(p) for p in sys.path if p]
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from tilewright import _core; sys.exit(_core.serve_trials(0))"]


def create_measure_batch(task: Any, option: dict[str, Any]) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    """A function that measures a batch of the task's inputs; its n_parallel is the batch size."""
    builder, runner = option["builder"], option["runner"]
    if task.config_space is None:
        raise ValueError(f"the task {task.name} was read from a log: autotvm.task.create makes one that can be measured")
    if task.core is None and isinstance(runner.sessions, DeviceSessions):
        raise ValueError(f"the task {task.name} is a script's template; devices measure tasks of a model, from autotvm.task.extract_from_program")
    if task.core is None or not isinstance(runner.sessions, LocalSessions):
        return _in_sessions(SessionMeasurer(task, builder, runner), builder.n_parallel)
    measurer = _core.make_measurer(_command(), builder.timeout, runner.timeout)

    def measure(inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        results = measurer.measure(task.core, [i.config.index for i in inputs], runner.options)
        return [MeasureResult(tuple(costs) if error == 0 else (RuntimeError(message),), error, seconds, time.time())
                for costs, error, message, seconds in results]
    measure.n_parallel = builder.n_parallel  # type: ignore[attr-defined]
    return measure


def _in_sessions(measurer: SessionMeasurer, n_parallel: int) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    def measure(inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        return [MeasureResult(tuple(t.costs) if t.error == 0 else (RuntimeError(t.message),), t.error, t.seconds, time.time()) for t in measurer.measure([i.config for i in inputs])]
    measure.n_parallel = n_parallel  # type: ignore[attr-defined]
    return measure


__all__ = ["LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult", "RPCRunner", "check_remote", "create_measure_batch",
           "measure_option", "request_remote"]
