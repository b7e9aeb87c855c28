# SPDX-License-Identifier: Apache-2.0
"""Where jobs run: local processes, or devices registered with a tracker."""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .jobs import Job, Outcome, Timing, run_job, run_program


class LocalSessions:
    """Sessions with local processes, one at a time, killed after a timeout."""

    def open(self, seconds: float) -> tuple[Any, Callable[[], None]]:
        from ...rpc import PopenSession
        session = PopenSession()
        watch = threading.Timer(seconds, session._process.kill)
        watch.daemon = True
        watch.start()
        return session, watch.cancel

    def run(self, jobs: Sequence[Job], timing: Timing) -> list[list[Outcome]]:
        """The outcomes of each job's cases."""
        return [run_job(job, timing, self.open) for job in jobs]


class TrackerSessions:
    """Sessions with devices of a key, up to a given number at a time or all that the tracker has."""

    def __init__(self, key: str, host: str, port: int, priority: int, devices: int | None):
        self._key, self._address, self._priority, self._devices = key, (host, port), priority, devices

    def open(self, seconds: float) -> tuple[Any, Callable[[], None]]:
        from ...rpc import connect_tracker
        session = connect_tracker(*self._address).request(self._key, priority=self._priority, session_timeout=max(1.0, seconds))
        return session, lambda: None

    def run(self, jobs: Sequence[Job], timing: Timing) -> list[list[Outcome]]:
        """The outcomes of each job's cases."""
        if self._devices is None:
            from ...rpc import connect_tracker
            servers = connect_tracker(*self._address).summary()["server_info"]
            self._devices = max(1, sum(s["key"] == f"server:{self._key}" for s in servers))
        with ThreadPoolExecutor(self._devices) as pool:
            return list(pool.map(lambda job: run_job(job, timing, self.open), jobs))


class DeviceSessions:
    """Programs on a bare-metal device: a module loader builds and flashes each (tvm.micro.AutoTvmModuleLoader)."""

    def __init__(self, load: Callable[[Any, Any], Any]):
        self._load = load

    def run(self, jobs: Sequence[Job], timing: Timing) -> list[list[Outcome]]:
        """The outcome of each job's only case."""
        return [run_program(job, timing, self._load) for job in jobs]


__all__ = ["DeviceSessions", "LocalSessions", "TrackerSessions"]
