# SPDX-License-Identifier: Apache-2.0
"""Measures configurations that are built in worker processes and run in sessions."""
from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import _core
from ...error import Error
from .build_process import Built
from .jobs import FunctionCase, Job, KernelCase, ProgramCase, Timing
from .sessions import DeviceSessions


class Trial:
    """One configuration: its build, its measurement, or its MeasureErrorNo."""

    def __init__(self, config: Any):
        self.config, self.error, self.message, self.seconds = config, 0, "", 0.0
        self.costs: tuple[float, ...] = ()

    def fail(self, error: int, message: str) -> None:
        self.error, self.message = error, message


def _agree(ours: Sequence[Any], reference: Sequence[Any]) -> bool:
    """Tolerance for sums in another order and for Winograd convolutions."""
    for a, b in zip(ours, reference):
        if a.dtype.kind not in "fV":
            if not np.array_equal(a, b):
                return False
            continue
        a, b = a.astype("float64"), b.astype("float64")
        known = np.isfinite(b)
        apart, most = np.abs(a - b)[known], np.abs(b)[known]
        if not np.array_equal(np.isnan(a), np.isnan(b)) or np.max(apart, initial=0.0) > 0.005 * np.max(most, initial=0.0):
            return False
    return True


def _in_this_process(request: Any, build_func: Callable[..., Any]) -> Built:
    """Builds a function in this process, with the script's own linker function."""
    from ...driver.build_module import build
    from ...tir.function import PrimFunc
    start = time.monotonic()
    request["path"] = request["path"].replace(".so", "." + getattr(build_func, "output_format", "so"))
    try:
        build(PrimFunc._of(_core.parse_lowered_function(request["text"])), target=request["target"]).export_library(request["path"], build_func)
        return Built(None, "", False, time.monotonic() - start)
    except Exception as error:  # noqa: BLE001  the script's function raises what it likes
        return Built(None, str(error) or type(error).__name__, False, time.monotonic() - start)


class SessionMeasurer:
    """Measures the trials of one task; results are compared with those of the first configuration that ran."""

    def __init__(self, task: Any, builder: Any, runner: Any):
        self._task, self._builder, self._runner = task, builder, runner
        self._reference: Sequence[Any] = ()
        options = runner.options
        self._timing = Timing(options.number, options.repeat, options.min_repeat_ms, options.cooldown_seconds, options.flush_cache, runner.timeout)

    def measure(self, configs: Sequence[Any]) -> list[Trial]:
        """One trial per input."""
        folder = tempfile.mkdtemp(prefix="tilewright-trials-")
        try:
            trials = [Trial(config) for config in configs]
            on_device = isinstance(self._runner.sessions, DeviceSessions)
            jobs = (self._programs if on_device else self._functions if self._task.core is None else self._kernels)(trials, folder)
            for (_, some), outcomes in zip(jobs, self._runner.sessions.run([job for job, _ in jobs], self._timing)):
                for trial, outcome in zip(some, outcomes):
                    self._take(trial, outcome)
            return trials
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _take(self, trial: Trial, outcome: Any) -> None:
        trial.seconds += outcome.seconds
        if outcome.error:
            trial.fail(outcome.error, outcome.message)
            return
        self._reference = self._reference or outcome.outputs
        if _agree(outcome.outputs, self._reference):
            trial.costs = outcome.costs
        else:
            trial.fail(5, "its results are not those of the first kernel")

    @staticmethod
    def _is_built(trials: Sequence[Trial], answer: Built) -> bool:
        for trial in trials:
            trial.seconds += answer.seconds / len(trials)
            if answer.error:
                trial.fail(6 if answer.timed_out else 2, answer.error)
        return not answer.error

    def _functions(self, trials: Sequence[Trial], folder: str) -> list[tuple[Job, list[Trial]]]:
        """Template tasks: the template runs here, its loops are compiled in a worker."""
        from ..task.space import InstantiationError
        ready: list[tuple[Trial, Any, FunctionCase]] = []
        for i, trial in enumerate(trials):
            try:
                function, results = self._task.lowered(trial.config)
                request = {"kind": "function", "text": function.to_json(), "target": str(self._task.target), "path": f"{folder}/{i}.so"}
            except (InstantiationError, Error, ValueError, TypeError) as error:
                trial.fail(1, str(error))
                continue
            arguments = tuple((a[1], tuple(int(d) for d in a[2])) for a in function.arguments)
            ready.append((trial, request, FunctionCase(function.name, arguments, tuple(results))))
        requests = [request for _, request, _ in ready]
        linker = self._builder.build_func
        built = [_in_this_process(r, linker) for r in requests] if callable(linker) else self._builder.processes.run(requests, self._builder.timeout)
        return [(Job(request["path"], (case,)), [trial]) for (trial, request, case), answer in zip(ready, built) if self._is_built([trial], answer)]

    def _kernels(self, trials: Sequence[Trial], folder: str) -> list[tuple[Job, list[Trial]]]:
        """Tasks of built-in kernels: all in one library; if that fails to build, one library each, to find the faulty one."""
        groups = [list(trials)]
        built = self._built_kernels(groups, folder)
        if built[0].error and len(trials) > 1:
            groups = [[t] for t in trials]
            built = self._built_kernels(groups, folder)
        jobs = []
        for i, (some, answer) in enumerate(zip(groups, built)):
            if not self._is_built(some, answer):
                continue
            kept = []
            for trial, (why, operands, step, first, outputs) in zip(some, answer.value):
                if why:
                    trial.fail(1, why)
                else:
                    kept.append((trial, KernelCase(tuple(operands), step, first, outputs)))
            if kept:
                jobs.append((Job(f"{folder}/{len(groups)}.{i}/trials.so", tuple(case for _, case in kept)), [trial for trial, _ in kept]))
        return jobs

    def _programs(self, trials: Sequence[Trial], folder: str) -> list[tuple[Job, list[Trial]]]:
        """Each built-in kernel as a C program."""
        requests = [{"kind": "trial library", "line": _core.trials_line(self._task.core, [t.config.index]), "path": f"{folder}/{i}.tar"} for i, t in enumerate(trials)]
        jobs = []
        for trial, request, built in zip(trials, requests, self._builder.processes.run(requests, self._builder.timeout)):
            if not self._is_built([trial], built):
                continue
            if built.value:
                trial.fail(1, built.value)
            else:
                jobs.append((Job(request["path"], (ProgramCase(),)), [trial]))
        return jobs

    def _built_kernels(self, groups: Sequence[Sequence[Trial]], folder: str) -> list[Built]:
        requests = []
        for i, some in enumerate(groups):
            requests.append({"kind": "trials", "line": _core.trials_line(self._task.core, [t.config.index for t in some]), "folder": f"{folder}/{len(groups)}.{i}"})
        return self._builder.processes.run(requests, self._builder.timeout * max(len(some) for some in groups))


__all__ = ["SessionMeasurer", "Trial"]
