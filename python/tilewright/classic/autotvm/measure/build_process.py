# SPDX-License-Identifier: Apache-2.0
"""Worker processes that compile candidates, so that a crash or a timeout of one compilation affects nothing else."""
from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple


class Built(NamedTuple):
    """The outcome of a request: `value`, or the error."""
    value: Any
    error: str
    timed_out: bool
    seconds: float


class _Process:
    def __init__(self) -> None:
        path = [os.fspath(p) for p in sys.path if p]
        code = f"import sys; sys.path[:] = {path!r}; from tilewright.classic.autotvm.measure.build_process import serve; serve()"
        self._process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        self._heard = b""

    def ask(self, request: Any) -> None:
        try:
            self._input.write(json.dumps(request).encode() + b"\n")
            self._input.flush()
        except BrokenPipeError:
            pass  # hear() reports that the process ended

    def hear(self) -> Any:
        """Called after select: the answer, or None while it is incomplete. EOFError: the process ended."""
        some = os.read(self.output.fileno(), 1 << 16)
        if not some:
            raise EOFError
        self._heard += some
        line, end, rest = self._heard.partition(b"\n")
        if not end:
            return None
        self._heard = rest
        return json.loads(line)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._input.close()
        self.output.close()


class BuildProcesses:
    """A pool of up to `count` processes, started on demand and ended with this object."""

    def __init__(self, count: int):
        self._count = max(1, count)
        self._idle: list[_Process] = []

    def run(self, requests: Sequence[Any], seconds: float) -> list[Built]:
        """One answer per request, even if processes die; `seconds` is the limit of each request."""
        out = [Built(None, "not built", False, 0.0)] * len(requests)
        waiting = deque(range(len(requests)))
        busy: dict[_Process, tuple[int, float]] = {}

        def finish(process: _Process, value: Any, error: str, timed_out: bool = False) -> None:
            at, start = busy.pop(process)
            out[at] = Built(value, error, timed_out, time.monotonic() - start)
        try:
            while waiting or busy:
                while waiting and len(busy) < self._count:
                    process = self._idle.pop() if self._idle else _Process()
                    busy[process] = (waiting.popleft(), time.monotonic())
                    process.ask(requests[busy[process][0]])
                patience = min(start + seconds for _, start in busy.values()) - time.monotonic()
                ready = select.select([p.output for p in busy], [], [], max(0.0, patience))[0]
                for process in [p for p in busy if p.output in ready]:
                    try:
                        answer = process.hear()
                    except (EOFError, ValueError):
                        finish(process, None, "the compiling process was ended")
                        process.end()
                        continue
                    if answer is not None:
                        finish(process, answer.get("value"), answer.get("error", ""))
                        self._idle.append(process)
                for process in [p for p, (_, start) in busy.items() if time.monotonic() >= start + seconds]:
                    finish(process, None, "the compiler did not come back in time", True)
                    process.end()
        finally:
            for process in busy:
                process.end()
        return out

    def end(self) -> None:
        """Ends the idle processes; the next request starts new ones."""
        while self._idle:
            self._idle.pop().end()

    __del__ = end


def _build(request: Any) -> Any:
    from .... import _core
    if request["kind"] == "trials":  # several kernels of a task in one library
        os.makedirs(request["folder"], exist_ok=True)
        return _core.export_trials(request["line"], request["folder"])
    if request["kind"] == "trial library":  # one kernel as a C program
        return _core.export_trial_library(request["line"], request["path"])
    from ...driver.build_module import build
    from ...tir.function import PrimFunc
    build(PrimFunc._of(_core.parse_lowered_function(request["text"])), target=request["target"]).export_library(request["path"])
    return None


def serve() -> None:
    """Answers requests, one JSON object per line, until the input closes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print to stdout, which carries the answers
    for line in sys.stdin:
        try:
            answer = {"value": _build(json.loads(line))}
        except Exception as error:  # noqa: BLE001  whatever a compilation raises is its answer
            answer = {"error": str(error) or type(error).__name__}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


__all__ = ["BuildProcesses", "Built"]
