# SPDX-License-Identifier: Apache-2.0
"""Shared by this package: the client library, the server program, and the classic message codes."""
from __future__ import annotations

import os
import shutil
from typing import Any

from ...options import load_plugin
from ..registry import get_global_func

RPC_MAGIC, RPC_TRACKER_MAGIC = 0xFF271, 0x2F271
RPC_CODE_SUCCESS, RPC_CODE_DUPLICATE, RPC_CODE_MISMATCH = RPC_MAGIC, RPC_MAGIC + 1, RPC_MAGIC + 2
RPC_SESS_MASK = 128
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_loaded = _looks = False


class TrackerCode:
    """Message codes of the tracker protocol."""
    FAIL, SUCCESS, PING, STOP, PUT, REQUEST, UPDATE_INFO, SUMMARY, GET_PENDING_MATCHKEYS = -1, 0, 1, 2, 3, 4, 5, 6, 7


def function(name: str) -> Any:
    """A function of the client library, which is loaded on first use, since only sessions need TLS. OSError: OpenSSL is missing."""
    global _loaded
    if not _loaded:
        load_plugin(os.path.join(_PACKAGE, "libtilewright_rpc_client.so"))
        _loaded = True
    return get_global_func(name)


def _look() -> None:
    """A no-op callback into Python, which lets it handle signals: Ctrl-C during a blocking call raises KeyboardInterrupt."""


def waiting_looks_at_signals() -> None:
    """Enables signal handling during blocking calls in this process; the server's own sessions do not need it."""
    global _looks
    if not _looks:
        _looks = True
        function("rpc.OnWait")(_look)


def program() -> str:
    """The server program: $TILEWRIGHT_RPC, the package's, or one in PATH. FileNotFoundError if there is none."""
    own = os.path.join(_PACKAGE, "tilewright-rpc")
    found = os.environ.get("TILEWRIGHT_RPC") or (own if os.path.exists(own) else shutil.which("tilewright-rpc"))
    if not found:
        raise FileNotFoundError("there is no program tilewright-rpc beside the package or on the path")
    return found


def door(token: str | os.PathLike[str] | None, plaintext: bool, patience: float = 5.0) -> tuple[str, int, int]:
    """How to connect: token file (None: the user's own), TLS or plaintext, timeout in seconds."""
    return os.fspath(token) if token else "", int(plaintext), int(patience * 1000)


__all__ = ["RPC_CODE_DUPLICATE", "RPC_CODE_MISMATCH", "RPC_CODE_SUCCESS", "RPC_MAGIC", "RPC_SESS_MASK", "RPC_TRACKER_MAGIC", "TrackerCode"]
