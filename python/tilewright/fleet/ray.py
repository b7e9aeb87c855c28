# SPDX-License-Identifier: Apache-2.0
"""Builders and runners as tasks of a Ray cluster: candidates are compiled on any node with a free processor, and measured on nodes that have the custom
resource `device`. The records are the same as without a cluster.

    ray.init(address="auto")                       # nodes that measure: ray start --address=... --resources='{"board": 1}'
    option = autotvm.measure_option(builder=RayBuilder(), runner=RayRunner("board", number=4, repeat=3))

They are tasks and no actors: what was under way on a node that goes away is done again by another one, whichever has the resource free. Ray only counts
resources, so the limits are the workers' own: what is compiled and what is measured are processes that can be ended, with a time limit each."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

from tilewright.classic.autotvm.measure import LocalBuilder, LocalRunner
from tilewright.classic.autotvm.measure.build_process import Built, BuildProcesses
from tilewright.classic.autotvm.measure.jobs import Job, Outcome, Timing, run_job
from tilewright.classic.autotvm.measure.sessions import LocalSessions

_RETRIES = 3  # lost nodes after which a task fails


def _engine() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("the fleet needs the Python package 'ray'") from error
    return ray


def _place(request: Any) -> str:
    """The path of the file that a request produces."""
    return f"{request['folder']}/trials.so" if request["kind"] == "trials" else request["path"]


def _build(request: Any, seconds: float) -> tuple[Built, bytes]:
    """Runs on a node: the result of the request, and its file."""
    with tempfile.TemporaryDirectory(prefix="tilewright-fleet-") as folder:
        here = {**request, "folder": folder} if request["kind"] == "trials" else {**request, "path": f"{folder}/{os.path.basename(request['path'])}"}
        processes = BuildProcesses(1)
        built = processes.run([here], seconds)[0]
        processes.end()
        if built.error:
            return built, b""
        with open(_place(here), "rb") as file:
            return built, file.read()


def _measure(name: str, library: bytes, job: Job, timing: Timing) -> list[Outcome]:
    """Runs on a node that has the device."""
    with tempfile.TemporaryDirectory(prefix="tilewright-fleet-") as folder:
        path = f"{folder}/{name}"
        with open(path, "wb") as file:
            file.write(library)
        return run_job(job._replace(path=path), timing, LocalSessions().open)


class _RayBuilds:
    """Builds as tasks."""

    def __init__(self, resources: dict[str, float]):
        self._resources = resources

    def run(self, requests: Sequence[Any], seconds: float) -> list[Built]:
        ray = _engine()
        remote: Any = ray.remote(num_cpus=1, max_retries=_RETRIES, resources=self._resources)(_build)
        out = []
        for request, (built, library) in zip(requests, ray.get([remote.remote(request, seconds) for request in requests])):
            if not built.error:
                os.makedirs(os.path.dirname(_place(request)), exist_ok=True)
                with open(_place(request), "wb") as file:
                    file.write(library)
            out.append(built)
        return out


class _RayDevices:
    """Measurements as tasks that hold a device."""

    def __init__(self, device: str):
        self._device = device

    def run(self, jobs: Sequence[Job], timing: Timing) -> list[list[Outcome]]:
        ray = _engine()
        if not ray.cluster_resources().get(self._device):
            raise RuntimeError(f"no node of the cluster has the resource '{self._device}': ray start --resources='{{\"{self._device}\": 1}}'")
        remote = ray.remote(num_cpus=0, max_retries=_RETRIES, resources={self._device: 1})(_measure)
        waiting = []
        for job in jobs:
            with open(job.path, "rb") as file:
                waiting.append(remote.remote(os.path.basename(job.path), file.read(), job, timing))
        return [list(outcomes) for outcomes in ray.get(waiting)]


class RayBuilder(LocalBuilder):
    """Compiles on the nodes of the cluster, one candidate for each free processor. n_parallel: how many are built and measured together. resources: custom
    ones that a node must have."""

    def __init__(self, timeout: float = 10, n_parallel: int = 16, resources: dict[str, float] | None = None):
        super().__init__(timeout, n_parallel)
        self.processes = _RayBuilds(resources or {})


class RayRunner(LocalRunner):
    """Measures on the nodes that have the resource `device`; each measurement holds one of it. RuntimeError while measuring: no node has it."""

    def __init__(self, device: str, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: float = 0, cooldown_interval: float = 0.1,
                 enable_cpu_cache_flush: bool = False):
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)
        self.sessions = _RayDevices(device)


__all__ = ["RayBuilder", "RayRunner"]
