# SPDX-License-Identifier: Apache-2.0
"""Measurement jobs as plain data, so that they can run in another process or on another machine."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...error import Error
from ...runtime.ndarray import empty

_LOST = (701, 702, 703)  # error codes of a lost session


class Timing(NamedTuple):
    """How kernels are timed."""
    number: int = 4
    repeat: int = 3
    min_repeat_ms: float = 0
    cooldown_seconds: float = 0
    flush_cache: bool = False
    timeout: float = 10  # seconds of one kernel


class FunctionCase(NamedTuple):
    """A tensor function: its name, the (dtype, shape) of each argument, and which arguments are results."""
    name: str
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[int, ...]


class KernelCase(NamedTuple):
    """A step of a graph, after the steps that produce its operands; its outputs are the graph's outputs from `first` on."""
    operands: tuple[int, ...]
    step: int
    first: int
    outputs: int


class ProgramCase(NamedTuple):
    """A whole program on a device."""


class Job(NamedTuple):
    """A library file and the cases to measure in it, in order."""
    path: str
    cases: tuple[FunctionCase | KernelCase | ProgramCase, ...]


class BuildResult(NamedTuple):
    """The argument of a module loader: the file of a configuration."""
    filename: str
    arg_info: Any
    error: Any
    time_cost: float


class Outcome(NamedTuple):
    """The result of a case: seconds per run for each repeat, or an error number and text; and the kernel's outputs."""
    costs: tuple[float, ...]
    error: int
    message: str
    seconds: float
    outputs: tuple[Any, ...]


class _Loaded:
    """A library loaded in a session."""

    def __init__(self, session: Any, path: str):
        session.upload(path)
        self._session, self._module = session, session.load_module(os.path.basename(path))
        self._executor: Any = None
        self._calls: list[int] = []

    def prepare(self, case: FunctionCase | KernelCase) -> tuple[Any, str, tuple[Any, ...], tuple[Any, ...]]:
        """Runs the case once; returns what to time (module, function, arguments) and the outputs."""
        fill = self._session.get_function("tvm.contrib.random.random_fill")
        if isinstance(case, FunctionCase):
            tensors = tuple(empty(shape, dtype, self._session.cpu()) for dtype, shape in case.arguments)
            for tensor in tensors:
                fill(tensor)
            self._module[case.name](*tensors)
            return self._module, case.name, tensors, tuple(tensors[i].numpy() for i in case.results)
        if self._executor is None:
            self._executor = self._module["debug_create"]("default", self._session.cpu())
            nodes = json.loads(self._module["get_graph_json"]())["nodes"]
            self._calls = [i for i, node in enumerate(nodes) if node["op"] != "null"]
            for i in range(self._executor["get_num_inputs"]()):
                fill(self._executor["get_input"](i))
        for step in (*case.operands, case.step):
            self._executor["execute_node"](self._calls[step])
        outputs = tuple(self._executor["get_output"](case.first + k).numpy() for k in range(case.outputs))
        return self._executor, "execute_node", (self._calls[case.step],), outputs

    def measure(self, case: FunctionCase | KernelCase, timing: Timing) -> Outcome:
        start = time.monotonic()
        owner, name, arguments, outputs = self.prepare(case)
        flush = "cache_flush_cpu_non_first_arg" if timing.flush_cache and isinstance(case, FunctionCase) else ""
        timed = owner.time_evaluator(name, self._session.cpu(), number=timing.number, repeat=timing.repeat, min_repeat_ms=int(timing.min_repeat_ms),
                                     cooldown_interval_ms=int(timing.cooldown_seconds * 1000), f_preproc=flush)
        costs = tuple(timed(*arguments).results)
        return Outcome(costs, 0, "", time.monotonic() - start, outputs)


def run_job(job: Job, timing: Timing, open_session: Callable[[float], tuple[Any, Callable[[], None]]]) -> list[Outcome]:
    """One outcome per case. If the session is lost, the current case fails and the remaining ones get a new session.
    `open_session(seconds)` returns a session that is ended after that time, and a function that cancels that limit."""
    waiting: Any = job.cases
    out: list[Outcome] = []
    while waiting:
        start, seconds, before = time.monotonic(), timing.timeout * len(waiting), len(out)
        try:
            session, unwatch = open_session(seconds)
            try:
                loaded = _Loaded(session, job.path)
                for case in waiting:
                    out.append(loaded.measure(case, timing))
            finally:
                unwatch()
                try:
                    session.close()
                except Error:
                    pass
        except Error as error:
            took = time.monotonic() - start
            late = (error.code in _LOST or error.code == 602) and took >= seconds * 0.95
            out.append(Outcome((), 7 if late else 4, "the kernel did not end in time" if late else str(error), took, ()))
        waiting = waiting[len(out) - before:]
    return out


def run_program(job: Job, timing: Timing, load: Callable[[Any, Any], Any]) -> list[Outcome]:
    """As run_job, for a C program. `load({}, build result)` returns a context of (session, executor) on a device."""
    start = time.monotonic()
    try:
        with load({}, BuildResult(job.path, (), None, 0.0)) as (session, executor):
            for i in range(executor["get_num_inputs"]()):
                tensor = executor["get_input"](i)
                tensor.copyfrom(_numbers(tensor.shape, str(tensor.dtype), i))
            executor["run"]()
            outputs = tuple(executor["get_output"](i).numpy() for i in range(executor["get_num_outputs"]()))
            timed = executor.time_evaluator("run", session.cpu(), number=timing.number, repeat=timing.repeat)
            return [Outcome(tuple(timed().results), 0, "", time.monotonic() - start, outputs)]
    except Exception as error:  # noqa: BLE001  a project's tools raise what they like
        return [Outcome((), 4, str(error) or type(error).__name__, time.monotonic() - start, ())]


def _numbers(shape: Sequence[int], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return random.integers(max(-128, int(np.iinfo(dtype).min)), 128, tuple(shape)).astype(dtype)
    return random.standard_normal(tuple(shape)).astype(dtype)


__all__ = ["BuildResult", "FunctionCase", "Job", "KernelCase", "Outcome", "ProgramCase", "Timing", "run_job", "run_program"]
