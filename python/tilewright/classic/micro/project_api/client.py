# SPDX-License-Identifier: Apache-2.0
"""The client: starts a project's server and calls it."""
from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from . import server

SERVER_FILE = "microtvm_api_server.py"


class ProjectAPIErrorBase(Exception):
    """Base class of errors of the connection and of the server."""


class ConnectionShutdownError(ProjectAPIErrorBase):
    """The server process ended."""


class MismatchedIdError(ProjectAPIErrorBase):
    """The answer belongs to another request."""


class ProjectAPIServerNotFoundError(ProjectAPIErrorBase):
    """The folder has no microtvm_api_server.py."""


class UnsupportedProtocolVersionError(ProjectAPIErrorBase):
    """The server uses another protocol version."""


class RPCError(ProjectAPIErrorBase):
    """An error of the server: its kind and message."""


class ProjectAPIClient:
    def __init__(self, read_file: Any, write_file: Any, process: subprocess.Popen[bytes] | None = None):
        self._read, self._write, self._process, self._next = read_file, write_file, process, 1

    def shutdown(self) -> None:
        for file in (self._write, self._read):
            file.close()
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __del__(self) -> None:
        if not self._write.closed:
            self.shutdown()

    def _call(self, method: str, **params: Any) -> Any:
        request, self._next = {"jsonrpc": "2.0", "method": method, "params": params, "id": self._next}, self._next + 1
        try:
            self._write.write(json.dumps(request).encode() + b"\n")
            self._write.flush()
            line = self._read.readline()
        except (BrokenPipeError, ValueError):
            line = b""
        if not line:
            raise ConnectionShutdownError(f"the project's server ended while it was asked to {method}")
        try:
            reply = json.loads(line)
        except ValueError:
            raise RPCError(f"the project's server answered {method} with what is no JSON") from None
        if not isinstance(reply, dict) or reply.get("id") != request["id"]:
            raise MismatchedIdError(f"the project's server answered another request than {method}")
        if "error" in reply:
            error = reply["error"]
            words = (error.get("data") or {}).get("message") or error.get("message")
            kinds = {server.TRANSPORT_CLOSED: server.TransportClosedError, server.IO_TIMEOUT: server.IoTimeoutError}
            raise kinds.get(error.get("code"), RPCError)(f"{method}: {words}")
        return reply.get("result")

    def server_info_query(self, tvm_version: str) -> server.ServerInfo:
        reply = self._call("server_info_query", tvm_version=tvm_version)
        if reply["protocol_version"] != server.PROTOCOL_VERSION:
            raise UnsupportedProtocolVersionError(f"the project's server speaks version {reply['protocol_version']}, not {server.PROTOCOL_VERSION}")
        options = [server.ProjectOption(**o) for o in reply["project_options"]]
        return server.ServerInfo(reply["platform_name"], reply["is_template"], reply["model_library_format_path"], options)

    def generate_project(self, model_library_format_path: str, standalone_crt_dir: str, project_dir: str, options: dict[str, Any] | None = None) -> None:
        self._call("generate_project", model_library_format_path=model_library_format_path, standalone_crt_dir=standalone_crt_dir, project_dir=project_dir,
                   options=options or {})

    def build(self, options: dict[str, Any] | None = None) -> None:
        self._call("build", options=options or {})

    def flash(self, options: dict[str, Any] | None = None) -> None:
        self._call("flash", options=options or {})

    def open_transport(self, options: dict[str, Any] | None = None) -> server.TransportTimeouts:
        return server.TransportTimeouts(**self._call("open_transport", options=options or {})["timeouts"])

    def close_transport(self) -> None:
        self._call("close_transport")

    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        return base64.b85decode(self._call("read_transport", n=n, timeout_sec=timeout_sec)["data"])

    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        self._call("write_transport", data=base64.b85encode(data).decode(), timeout_sec=timeout_sec)


def instantiate_from_dir(project_dir: str | os.PathLike[str], debug: bool = False) -> ProjectAPIClient:
    """Starts the server of a template or a project, for which `tvm` is this package. Its log goes to this process's stderr."""
    script = pathlib.Path(project_dir) / SERVER_FILE
    if not script.is_file():
        raise ProjectAPIServerNotFoundError(f"'{project_dir}' has no {SERVER_FILE}: it is neither a template nor a project")
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()
    command = [sys.executable, "-m", "tilewright.as_tvm", str(script.resolve()), "--read-fd", str(theirs_read), "--write-fd", str(theirs_write)]
    root = pathlib.Path(__file__).resolve().parents[4]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))}
    process = subprocess.Popen(command + (["--debug"] if debug else []), pass_fds=(theirs_read, theirs_write), cwd=project_dir, env=environment, stdin=subprocess.DEVNULL,
                               stdout=sys.stderr.fileno() if hasattr(sys.stderr, "fileno") and _has_descriptor(sys.stderr) else None)
    os.close(theirs_read)
    os.close(theirs_write)
    return ProjectAPIClient(os.fdopen(ours_read, "rb"), os.fdopen(ours_write, "wb"), process)


def _has_descriptor(stream: Any) -> bool:
    try:
        stream.fileno()
    except (OSError, ValueError):
        return False
    return True


__all__ = ["ConnectionShutdownError", "MismatchedIdError", "ProjectAPIClient", "ProjectAPIErrorBase", "ProjectAPIServerNotFoundError", "RPCError", "UnsupportedProtocolVersionError",
           "instantiate_from_dir"]
