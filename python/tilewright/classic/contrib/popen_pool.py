# SPDX-License-Identifier: Apache-2.0
"""Runs functions in worker processes, which may crash or time out."""
from __future__ import annotations

import enum
import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class StatusKind(enum.IntEnum):
    """How a call ended."""
    RUNNING, COMPLETE, EXCEPTION, TIMEOUT = range(4)


class MapResult:
    """How a call ended, with its result or exception."""

    def __init__(self, status: StatusKind, value: Any):
        self.status, self.value = status, value


def _serve(pipe: Any, initializer: Any, initargs: Any) -> None:
    """The worker's loop: executes calls until the pipe is closed."""
    if initializer is not None:
        initializer(*initargs)
    while True:
        try:
            function, args, kwargs = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            out = StatusKind.COMPLETE, function(*args, **kwargs)
        except Exception as error:
            out = StatusKind.EXCEPTION, error
        try:
            pipe.send(out)
        except Exception as error:  # not picklable
            pipe.send((StatusKind.EXCEPTION, RuntimeError(f"{type(error).__name__}: {error}")))


class PopenWorker:
    """One worker process. Functions and values are pickled."""

    def __init__(self, initializer: Callable[..., Any] | None = None, initargs: Sequence[Any] = (), maximum_uses: int | None = None, stdout: Any = None, stderr: Any = None):
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be callable for PopenWorker")
        self._initializer, self._initargs, self._maximum, self._uses = initializer, tuple(initargs), maximum_uses, 0
        self._process: Any = None
        self._pipe: Any = None
        self._timeout: float | None = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn" if os.name == "nt" else "fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._initializer, self._initargs), daemon=True)
        self._process.start()
        theirs.close()
        self._uses = 0

    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def kill(self) -> None:
        """Kills the process and waits for it."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None

    def send(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None, timeout: float | None = None) -> None:
        """Starts a call; recv returns its result."""
        if self._process is not None and self._maximum is not None and self._uses >= self._maximum:
            self.kill()
        if not self.is_alive():
            self._start()
        self._uses += 1
        self._timeout = timeout
        self._pipe.send((fn, tuple(args), dict(kwargs or {})))

    def recv(self) -> Any:
        """The result, or raises the call's exception. TimeoutError: it took too long and was killed. ChildProcessError: the process
        died."""
        if self._process is None:
            raise RuntimeError("recv before send")
        if not self._pipe.poll(self._timeout):
            self.kill()
            raise TimeoutError()
        try:
            status, value = self._pipe.recv()
        except (EOFError, OSError) as error:
            self.kill()
            raise ChildProcessError("Subprocess terminated") from error
        if status == StatusKind.EXCEPTION:
            raise value
        return value

    def __del__(self) -> None:
        try:
            self.kill()
        except Exception:
            pass  # the interpreter is shutting down


class PopenPoolExecutor:
    """A pool of worker processes whose calls are futures."""

    def __init__(self, max_workers: int | None = None, timeout: float | None = None, initializer: Callable[..., Any] | None = None, initargs: Sequence[Any] = (),
                 maximum_process_uses: int | None = None, stdout: Any = None, stderr: Any = None):
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be callable for PopenPoolExecutor")
        count = max_workers or os.cpu_count() or 1
        self._timeout = timeout
        self._make = lambda: PopenWorker(initializer, initargs, maximum_process_uses)
        self._idle: queue.Queue[PopenWorker] = queue.Queue()
        for _ in range(count):
            self._idle.put(self._make())
        self._threads = ThreadPoolExecutor(count)
        self._lock = threading.Lock()

    def _run(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        worker = self._idle.get()
        try:
            with self._lock:  # start one process at a time
                worker.send(fn, args, kwargs, self._timeout)
            return worker.recv()
        finally:
            self._idle.put(worker)

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._run, fn, args, kwargs)

    def map_with_error_catching(self, fn: Callable[..., Any], iterator: Iterable[Any]) -> Iterator[MapResult]:
        """fn(value) for each value, in order, with the status of each call."""
        for future in [self.submit(fn, value) for value in iterator]:
            try:
                yield MapResult(StatusKind.COMPLETE, future.result())
            except TimeoutError as error:
                yield MapResult(StatusKind.TIMEOUT, error)
            except Exception as error:
                yield MapResult(StatusKind.EXCEPTION, error)

    def __del__(self) -> None:
        self._threads.shutdown(wait=False)
        while not self._idle.empty():
            self._idle.get().kill()


__all__ = ["MapResult", "PopenPoolExecutor", "PopenWorker", "StatusKind"]
