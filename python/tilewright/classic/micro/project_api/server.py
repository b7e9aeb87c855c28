# SPDX-License-Identifier: Apache-2.0
"""The server: a template's `microtvm_api_server.py` derives from ProjectAPIHandler and calls main(handler)."""
from __future__ import annotations

import abc
import argparse
import base64
import json
import os
import pathlib
import sys
import traceback
from typing import Any, NamedTuple

PROTOCOL_VERSION = 1
# Error codes of the protocol: those of JSON-RPC, and those of platforms.
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, TRANSPORT_CLOSED, IO_TIMEOUT, SERVER_ERROR = -32600, -32601, -32602, -32001, -32002, -32000


class ServerError(Exception):
    """Raised by handlers; its text is sent to the client."""
    code = SERVER_ERROR


class TransportClosedError(ServerError):
    """The device's program ended, or no transport is open."""
    code = TRANSPORT_CLOSED


class IoTimeoutError(ServerError):
    """The device did not answer within the timeout."""
    code = IO_TIMEOUT


def _by_name(fields: Any, key: Any) -> Any:
    """A field by its name, as clients of the classic stack read what a server says, or by its place."""
    return getattr(fields, key) if isinstance(key, str) else tuple.__getitem__(fields, key)


class ProjectOption(NamedTuple):
    """An option of a platform; `required` and `optional` name the methods that take it."""
    name: str
    choices: tuple[str, ...] | None = None
    default: str | None = None
    type: str = "str"
    required: list[str] | None = None
    optional: list[str] | None = None
    help: str = ""

    __getitem__ = _by_name  # type: ignore[assignment]


class ServerInfo(NamedTuple):
    platform_name: str
    is_template: bool
    model_library_format_path: str | os.PathLike[str]
    project_options: list[ProjectOption]
    protocol_version: int = PROTOCOL_VERSION

    __getitem__ = _by_name  # type: ignore[assignment]


class TransportTimeouts(NamedTuple):
    """Timeouts in seconds; 0 means no limit."""
    session_start_retry_timeout_sec: float
    session_start_timeout_sec: float
    session_established_timeout_sec: float


class ProjectAPIHandler(abc.ABC):
    @abc.abstractmethod
    def server_info_query(self, tvm_version: str) -> ServerInfo: ...

    @abc.abstractmethod
    def generate_project(self, model_library_format_path: pathlib.Path, standalone_crt_dir: pathlib.Path, project_dir: pathlib.Path, options: dict[str, Any]) -> None: ...

    @abc.abstractmethod
    def build(self, options: dict[str, Any]) -> None: ...

    @abc.abstractmethod
    def flash(self, options: dict[str, Any]) -> None: ...

    @abc.abstractmethod
    def open_transport(self, options: dict[str, Any]) -> TransportTimeouts: ...

    @abc.abstractmethod
    def close_transport(self) -> None: ...

    @abc.abstractmethod
    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        """Reads between 1 and n bytes."""

    @abc.abstractmethod
    def write_transport(self, data: bytes, timeout_sec: float | None) -> None: ...


class ProjectAPIServer:
    """Serves requests until the client closes the connection."""

    def __init__(self, read_file: Any, write_file: Any, handler: ProjectAPIHandler):
        self._read, self._write, self._handler = read_file, write_file, handler

    def serve_forever(self) -> None:
        while line := self._read.readline():
            reply: dict[str, Any] = {"jsonrpc": "2.0", "id": None}
            try:
                request = json.loads(line)
                reply["id"] = request.get("id")
                reply["result"] = self._answer(request)
            except ServerError as error:
                reply["error"] = {"code": error.code, "message": type(error).__name__, "data": {"message": str(error)}}
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                reply["error"] = {"code": INVALID_PARAMS, "message": type(error).__name__, "data": {"message": str(error)}}
            except Exception as error:  # noqa: BLE001  a handler may raise anything; the client hears of it
                traceback.print_exc()
                reply["error"] = {"code": SERVER_ERROR, "message": type(error).__name__, "data": {"message": str(error)}}
            self._write.write(json.dumps(reply).encode() + b"\n")
            self._write.flush()

    def _answer(self, request: Any) -> Any:
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0" or not isinstance(request.get("method"), str):
            raise ValueError("a line that is no request of JSON-RPC 2.0")
        method, params, handler = request["method"], request.get("params") or {}, self._handler
        if method == "server_info_query":
            info = handler.server_info_query(**params)
            return {"protocol_version": PROTOCOL_VERSION, "platform_name": info.platform_name, "is_template": info.is_template,
                    "model_library_format_path": os.fspath(info.model_library_format_path) if info.model_library_format_path else "",
                    "project_options": [o._asdict() for o in info.project_options]}
        if method == "generate_project":
            for key in ("model_library_format_path", "standalone_crt_dir", "project_dir"):
                params[key] = pathlib.Path(params[key])
            return handler.generate_project(**params)
        if method == "open_transport":
            return {"timeouts": handler.open_transport(**params)._asdict()}
        if method == "read_transport":
            return {"data": base64.b85encode(handler.read_transport(**params)).decode()}
        if method == "write_transport":
            return handler.write_transport(base64.b85decode(params["data"]), params.get("timeout_sec"))
        if method in ("build", "flash", "close_transport"):
            return getattr(handler, method)(**params)
        raise ServerError(f"there is no method '{method}'")


def main(handler: ProjectAPIHandler, argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Answers a Project API client.")
    parser.add_argument("--read-fd", type=int, required=True)
    parser.add_argument("--write-fd", type=int, required=True)
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    with os.fdopen(args.read_fd, "rb", buffering=0) as read, os.fdopen(args.write_fd, "wb", buffering=0) as write:
        ProjectAPIServer(_Lines(read), write, handler).serve_forever()


class _Lines:
    """Reads lines of any length from a file descriptor."""

    def __init__(self, raw: Any):
        self._raw, self._have = raw, b""

    def readline(self) -> bytes:
        while b"\n" not in self._have:
            more = self._raw.read(65536)
            if not more:
                return b""
            self._have += more
        line, self._have = self._have.split(b"\n", 1)
        return line


__all__ = ["IoTimeoutError", "ProjectAPIHandler", "ProjectAPIServer", "ProjectOption", "ServerError", "ServerInfo", "TransportClosedError", "TransportTimeouts", "main"]
