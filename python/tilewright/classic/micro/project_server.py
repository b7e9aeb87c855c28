# SPDX-License-Identifier: Apache-2.0
"""The server of the templates of this package and of their projects, implemented by `tilewright micro`."""
from __future__ import annotations

import os
import pathlib
import select
import signal
import subprocess
import time
from typing import Any

from ... import _core
from ..error import Error
from . import platforms
from .project_api import server

PROJECT_SERVER = '''# SPDX-License-Identifier: Apache-2.0
"""Answers the Project API for this project (docs/micro.md)."""
import pathlib

from tilewright.classic.micro import project_server

if __name__ == "__main__":
    project_server.serve({platform!r}, pathlib.Path(__file__).resolve().parent, is_template=False)
'''


# Standard input and output as a serial line's two directions.
_SERIAL_LINE = 'stty -F "$1" raw -echo "$2" && exec 3<>"$1" && { cat <&3 & cat >&3; }'


class Handler(server.ProjectAPIHandler):
    def __init__(self, platform: str, folder: pathlib.Path, is_template: bool):
        self._platform, self._folder, self._is_template = platform, folder, is_template
        self._tools = platforms.tools_of(platform)
        self._process: subprocess.Popen[bytes] | None = None

    def server_info_query(self, tvm_version: str) -> server.ServerInfo:
        sizes = [server.ProjectOption(name, default=default, type="int", optional=["generate_project"], help=what) for name, default, what in _core.micro_project_options()]
        options = [*sizes, *self._tools.options]
        return server.ServerInfo(self._platform, self._is_template, "" if self._is_template else self._folder / "model.tar", options)

    def generate_project(self, model_library_format_path: pathlib.Path, standalone_crt_dir: pathlib.Path, project_dir: pathlib.Path, options: dict[str, Any]) -> None:
        self._tools.check(options)
        sizes = {o[0] for o in _core.micro_project_options()}
        given = {name: str(value) for name, value in options.items() if name in sizes}
        self._do(_core.create_micro_project, str(model_library_format_path), str(project_dir), self._platform, given, False)
        self._tools.generated(project_dir, options)
        (project_dir / "microtvm_api_server.py").write_text(PROJECT_SERVER.format(platform=self._platform))

    def build(self, options: dict[str, Any]) -> None:
        self._tools.check(options)
        if not self._tools.build(self._folder, options):
            self._do(_core.build_micro_project, str(self._folder))

    def flash(self, options: dict[str, Any]) -> None:
        """Without a board there is nothing to flash: the emulator and this machine run the program file."""
        self._tools.check(options)
        self._tools.flash(self._folder, options)

    def open_transport(self, options: dict[str, Any]) -> server.TransportTimeouts:
        self.close_transport()
        if port := self._tools.port(self._folder, options):
            self._process = subprocess.Popen(["/bin/sh", "-c", _SERIAL_LINE, "sh", port, self._tools.speed(options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                             start_new_session=True)
            return server.TransportTimeouts(2.0, 20.0, 120.0)
        if not (self._folder / "build/main").exists():
            raise server.ServerError("the project is not built, or its platform's own tools run it")
        self._process = subprocess.Popen(["/bin/sh", str(self._folder / "transport.sh")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)
        return server.TransportTimeouts(2.0, 20.0, 120.0)

    def close_transport(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                pipe.close()  # type: ignore[union-attr]
            self._process = None

    def _open(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise server.TransportClosedError("no transport is open")
        return self._process

    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        pipe = self._open().stdout
        if not select.select([pipe], [], [], timeout_sec)[0]:
            raise server.IoTimeoutError(f"the device was silent for {timeout_sec} s")
        data = os.read(pipe.fileno(), n)  # type: ignore[union-attr]
        if not data:
            raise server.TransportClosedError("the device's program ended")
        return data

    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        pipe, end = self._open().stdin, None if timeout_sec is None else time.monotonic() + timeout_sec
        while data:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not select.select([], [pipe], [], left)[1]:
                raise server.IoTimeoutError(f"the device took nothing for {timeout_sec} s")
            try:
                data = data[os.write(pipe.fileno(), data[:select.PIPE_BUF]):]  # type: ignore[union-attr]
            except BrokenPipeError:
                raise server.TransportClosedError("the device's program ended") from None

    @staticmethod
    def _do(call: Any, *args: Any) -> None:
        try:
            call(*args)
        except Error as error:
            raise server.ServerError(str(error)) from error


def serve(platform: str, folder: pathlib.Path, is_template: bool) -> None:
    handler = Handler(platform, folder, is_template)
    try:
        server.main(handler)
    finally:
        handler.close_transport()


__all__ = ["Handler", "serve"]
