# SPDX-License-Identifier: Apache-2.0
"""A tracker in a child process."""
from __future__ import annotations

import os

from .server import Process, _options


class Tracker:
    """Manages devices and assigns them to requests: `tracker = rpc.tracker.Tracker(port=9190)`. RuntimeError: the tracker does not
    start."""

    def __init__(self, host: str = "0.0.0.0", port: int = 9190, port_end: int = 9199, silent: bool = False, *, token: str | os.PathLike[str] | None = None,
                 plaintext: bool = False):
        self.proc = Process("rpc-tracker", *_options(host=host, port=port, port_end=max(port_end, port), silent=silent, classic_plaintext=plaintext,
                                                     token=os.fspath(token) if token else None))
        self.host, self.port = self.proc.host, self.proc.port

    def terminate(self) -> None:
        self.proc.terminate()

    def __del__(self) -> None:
        if hasattr(self, "proc"):
            self.terminate()


__all__ = ["Tracker"]
