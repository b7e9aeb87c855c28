# SPDX-License-Identifier: Apache-2.0
"""Sessions with other processes and machines (docs/rpc.md)."""
from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

from ..error import Error
from ..runtime.module import Module
from ..runtime.ndarray import Device
from ..runtime.ndarray import device as local_device
from .base import TrackerCode, door, function, program, waiting_looks_at_signals
from .local import LocalSession
from .remote_array import RemoteNDArray  # noqa: F401  what results are


class RPCSession:
    """A session: functions, files, modules and memory of the remote process. It ends with `close()`, or when this object and all of its
    functions, modules and tensors are gone."""

    def __init__(self, made: Any):
        waiting_looks_at_signals()
        handle, self._step = made
        self._module = Module(handle)
        self._functions: dict[str, Any] = {}

    def _call(self, name: str, *args: Any) -> Any:
        if name not in self._functions:
            self._functions[name] = self.get_function(f"tvm.rpc.server.{name}")
        return self._functions[name](*args)

    def get_function(self, name: str) -> Any:
        """A remote function by its global name. AttributeError if there is none."""
        return self._module.get_function(name)

    def system_lib(self) -> Module:
        return self.get_function("runtime.SystemLib")()

    def device(self, dev_type: Any, dev_id: int = 0) -> Device:
        """A remote device, as in `nd.array(values, device)`."""
        here = local_device(dev_type, dev_id)
        return Device(here.device_type + self._step, here.device_id)

    context = device

    def upload(self, data: bytes | bytearray | mmap.mmap | str | os.PathLike[str], target: str | None = None) -> None:
        """Copies a file by its path, or bytes as `target`, to the session's folder; bytes in memory or mapped are sent without a copy.
        Errors: 101 (a name with folders), 104 (too large)."""
        blob: bytes | bytearray | mmap.mmap
        if isinstance(data, (bytes, bytearray, mmap.mmap)):
            if not target:
                raise ValueError("target must present when file is a bytearray")
            blob = data
        else:
            with open(data, "rb") as file:
                blob = file.read()
            target = target or os.path.basename(data)
        self._call("upload", target, blob)

    def download(self, path: str) -> bytearray:
        """The contents of a file in the session's folder. Errors: 101, 102."""
        return bytearray(self._call("download", path))

    def remove(self, path: str) -> None:
        self._call("remove", path)

    def listdir(self, path: str = "") -> list[str]:
        return [name for name in self._call("listdir").split(",") if name]

    def load_module(self, path: str) -> Module:
        """An uploaded library as a module whose functions run remotely. Errors: those of runtime.load_module."""
        module = self._call("load_module", path)
        module._path = path  # remote path
        return module

    def download_linked_module(self, path: str) -> bytearray:
        return bytearray(self._call("download_linked_module", path))

    def close(self) -> None:
        """Ends the session; later calls fail with error 701."""
        self._functions.clear()
        self._module["__close__"]()


def _device_of(name: str) -> Callable[..., Device]:
    def make(self: RPCSession, dev_id: int = 0) -> Device:
        return self.device(name, dev_id)
    make.__name__ = name
    return make


for _name, _kind in {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda", "cl": "opencl", "opencl": "opencl", "vulkan": "vulkan", "metal": "metal", "rocm": "rocm", "ext_dev": "ext_dev",
                     "hexagon": "hexagon", "webgpu": "webgpu"}.items():
    setattr(RPCSession, _name, _device_of(_kind))


class PopenSession(RPCSession):
    """A session with a new process on this machine. `binary`: a program that speaks the protocol on descriptor 3 (default: our server)."""

    def __init__(self, binary: Any = None):
        ours, theirs = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-session-")
        environment = {**os.environ, "TILEWRIGHT_SESSION_FOLDER": self._folder.name, "TILEWRIGHT_SESSION_MEMORY": "0", "TMPDIR": self._folder.name}
        environment.pop("TILEWRIGHT_TOKEN", None)
        command = [os.fspath(binary)] if binary else [program(), "session"]
        with ours:
            with theirs:  # closed in this process, so that the end of the child is noticed
                self._process = subprocess.Popen(["/bin/sh", "-c", 'exec "$@" 3<&0 </dev/null', "sh", *command], stdin=theirs, env=environment, start_new_session=True)
            super().__init__(function("rpc.ConnectSocket")(ours.detach()))

    def close(self) -> None:
        super().close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None and self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def connect(url: str, port: int | str, key: str = "", session_timeout: float = 0, session_constructor_args: Any = None, enable_logging: bool = False, *,
            token: str | os.PathLike[str] | None = None, plaintext: bool = False) -> RPCSession:
    """Opens a session with a server. `key`: the server's key; session_timeout: seconds until the server ends the session (0: never).

    token: a file; by default the user's own, which a server on the same machine uses as well. plaintext: for classic servers, only on
    this machine. Errors: 101 (wrong key), 701 (no server), 702 (token refused), 703 (wrong kind of server)."""
    if session_constructor_args:
        raise NotImplementedError("a session that goes on to another machine is not there; connect to that machine")
    waiting_looks_at_signals()
    return RPCSession(function("rpc.Connect")(url, int(port), key, float(session_timeout), *door(token, plaintext)))


class TrackerSession:
    """A connection to a tracker, made by `connect_tracker`."""

    def __init__(self, addr: tuple[str, int], token: str | os.PathLike[str] | None = None, plaintext: bool = False):
        self._addr, self._token, self._plaintext = (addr[0], int(addr[1])), token, plaintext
        self._ask: Any = None
        self._connect()

    def _connect(self) -> None:
        waiting_looks_at_signals()
        self._ask = function("rpc.ConnectTracker")(*self._addr, *door(self._token, self._plaintext))

    def _message(self, *parts: Any) -> Any:
        if self._ask is None:
            self._connect()
        try:
            answer = json.loads(self._ask(json.dumps(parts)))
        except (Error, KeyboardInterrupt):
            self._ask = None  # reconnect next time
            raise
        if not isinstance(answer, list) or answer[0] != TrackerCode.SUCCESS:
            raise RuntimeError(f"the tracker answered {answer!r}")
        return answer[1]

    def close(self) -> None:
        self._ask = None

    def summary(self) -> dict[str, Any]:
        """`server_info`: the registered devices; `queue_info`: for each key the number of free devices and of waiting requests."""
        return self._message(TrackerCode.SUMMARY)

    def text_summary(self) -> str:
        """The summary as text."""
        facts = self.summary()
        servers = [("{}:{}".format(*s["addr"]), s["key"]) for s in facts["server_info"]]
        width = max([len("server-address"), *(len(address) for address, _ in servers)])
        lines = ["Server List", "-" * 28, f"{'server-address':{width}}  key", "-" * 28, *(f"{address:{width}}  {key}" for address, key in sorted(servers)), "-" * 28, ""]
        total: dict[str, int] = {}
        for _, key in servers:
            total[key.partition(":")[2]] = total.get(key.partition(":")[2], 0) + 1
        keys = sorted({*facts["queue_info"], *total})
        width = max([len("key"), *map(len, keys)])
        lines += ["Queue Status", "-" * (width + 23), f"{'key':{width}}  total  free  pending", "-" * (width + 23)]
        for key in keys:
            queue = facts["queue_info"].get(key, {"free": 0, "pending": 0})
            lines.append(f"{key:{width}}  {total.get(key, 0):<5}  {queue['free']:<4}  {queue['pending']:<7}")
        return "\n".join([*lines, "-" * (width + 23)])

    def request(self, key: str, priority: int = 1, session_timeout: float = 0, max_retry: int = 5, session_constructor_args: Any = None) -> RPCSession:
        """A session with a device of that key. Waits until one is free: highest priority first, then first come, first served."""
        last: Exception | None = None
        for attempt in range(max(1, max_retry)):
            try:
                host, port, ticket = self._message(TrackerCode.REQUEST, key, "", int(priority))
                return connect(host, port, ticket, session_timeout, session_constructor_args, token=self._token, plaintext=self._plaintext)
            except Error as error:  # the device has gone away: retry with another one
                if error.code not in (602, 701, 702):
                    raise
                last = error
                time.sleep(0.1 * (attempt + 1))
        raise RuntimeError(f"Cannot request {key} after {max_retry} retry, last_error:{last}")

    def request_and_run(self, key: str, func: Callable[[RPCSession], Any], priority: int = 1, session_timeout: float = 0, max_retry: int = 2) -> Any:
        """Calls func(session) with a device of that key; retries with another one if the device goes away."""
        last: Exception | None = None
        for _ in range(max(1, max_retry)):
            try:
                session = self.request(key, priority, session_timeout)
                began = time.time()
                return func(session)
            except Error as error:
                if error.code not in (602, 701):
                    raise
                last = error
                if session_timeout and time.time() - began >= session_timeout:
                    raise RuntimeError(f"Session timeout when running {getattr(func, '__name__', func)}") from error
        raise RuntimeError(f"Failed to run on {key} after {max_retry} retry, last_error:{last}")


def connect_tracker(url: str, port: int | str, *, token: str | os.PathLike[str] | None = None, plaintext: bool = False) -> TrackerSession:
    """Connects to a tracker. Errors: 701, 702."""
    return TrackerSession((url, int(port)), token, plaintext)


__all__ = ["LocalSession", "PopenSession", "RPCSession", "TrackerSession", "connect", "connect_tracker"]
