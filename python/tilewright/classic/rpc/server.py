# SPDX-License-Identifier: Apache-2.0
"""A server in a child process. Its sessions are Python processes, with the functions that Python registers and with the compiler;
`tilewright rpc-server` serves without either."""
from __future__ import annotations

import os
import pickle
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from .base import program


class Process:
    """A listening child process, ended with this object."""

    def __init__(self, verb: str, *options: str, environment: dict[str, str] | None = None):
        self._process = subprocess.Popen([program(), verb, *options], stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # "rpc-server listens on 127.0.0.1:9090"
        if not line:
            raise RuntimeError(f"tilewright {verb} ended with {self._process.wait()} before it listened")
        self.host, _, port = line.split()[-1].rpartition(":")
        self.port = int(port)

    @property
    def pid(self) -> int:
        return self._process.pid

    def join(self, timeout: float | None = None) -> None:
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> None:
        """Ends the process and all sessions that it serves."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.terminate()


def _options(**values: Any) -> list[str]:
    return [part for name, value in values.items() if value not in (None, "", False) for part in ([f"--{name.replace('_', '-')}"] if value is True else [f"--{name.replace('_', '-')}", str(value)])]


class Server:
    """Lets clients with the token run on this machine: `server = rpc.Server(key="cpu")`, `rpc.connect("127.0.0.1", server.port,
    key="cpu")`.

    server_init_callback runs at the start of each session. RuntimeError: the server does not start."""

    def __init__(self, host: str = "0.0.0.0", port: int = 9091, port_end: int = 9199, is_proxy: bool = False, tracker_addr: Any = None, key: str = "",
                 load_library: str | None = None, custom_addr: str | None = None, silent: bool = False, no_fork: bool = False,
                 server_init_callback: Callable[[], Any] | None = None, *, token: str | os.PathLike[str] | None = None, plaintext: bool = False, sessions: int = 1):
        if is_proxy:
            raise NotImplementedError("there is no proxy; the server must be reachable, for instance through 'ssh -L'")
        self._callback = ""
        command = [sys.executable, "-m", "tilewright.classic.rpc.session"]
        for library in (load_library or "").split(":"):
            command += ["--load-library", os.path.abspath(library)] if library else []
        if server_init_callback is not None:
            handle, self._callback = tempfile.mkstemp(prefix="tilewright-callback-")
            with os.fdopen(handle, "wb") as file:
                file.write(_pickled(server_init_callback))
            command += ["--init", self._callback]
        folder = [p for p in sys.path if p]
        self.proc = Process("rpc-server", *_options(host=host, port=port, port_end=max(port_end, port), key=key, tracker=f"{tracker_addr[0]}:{tracker_addr[1]}" if tracker_addr else None,
                                                    custom_addr=custom_addr, token=os.fspath(token) if token else None, classic_plaintext=plaintext, silent=silent,
                                                    sessions=sessions, session_command=shlex.join(command)),
                            environment={"PYTHONPATH": os.pathsep.join(folder)})
        self.host, self.port = self.proc.host, self.proc.port
        self.libs: list[str] = []
        self.custom_addr = custom_addr

    def terminate(self) -> None:
        self.proc.terminate()
        if self._callback:
            os.unlink(self._callback)
            self._callback = ""

    def __del__(self) -> None:
        if hasattr(self, "proc"):
            self.terminate()


def _pickled(callback: Callable[[], Any]) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-not-found]
        return cloudpickle.dumps(callback)
    except ModuleNotFoundError:
        return pickle.dumps(callback)


__all__ = ["Server"]
