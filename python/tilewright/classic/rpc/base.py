# SPDX-License-Identifier: Apache-2.0
"""What the files of this package share: the client's library, the small program, and the classic numbers."""
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
    """Kinds of messages to a tracker."""
    FAIL, SUCCESS, PING, STOP, PUT, REQUEST, UPDATE_INFO, SUMMARY, GET_PENDING_MATCHKEYS = -1, 0, 1, 2, 3, 4, 5, 6, 7


def function(name: str) -> Any:
    """A function of the client's library, which is loaded with the first: without sessions nobody needs TLS. OSError: OpenSSL is not there."""
    global _loaded
    if not _loaded:
        load_plugin(os.path.join(_PACKAGE, "libtilewright_rpc_client.so"))
        _loaded = True
    return get_global_func(name)


def _look() -> None:
    """Does nothing, and in doing it lets Python handle signals: Ctrl-C while a call waits for the other side raises KeyboardInterrupt."""


def waiting_looks_at_signals() -> None:
    """From now on, for this process: sessions that it serves need none of it."""
    global _looks
    if not _looks:
        _looks = True
        function("rpc.OnWait")(_look)


def program() -> str:
    """The program that serves: $TILEWRIGHT_RPC, the package's, or one on the path. FileNotFoundError: there is none."""
    own = os.path.join(_PACKAGE, "tilewright-rpc")
    found = os.environ.get("TILEWRIGHT_RPC") or (own if os.path.exists(own) else shutil.which("tilewright-rpc"))
    if not found:
        raise FileNotFoundError("there is no program tilewright-rpc beside the package or on the path")
    return found


def door(token: str | os.PathLike[str] | None, plaintext: bool, patience: float = 5.0) -> tuple[str, int, int]:
    """How to open: the token's file (None: the user's own), without TLS or with, seconds for it."""
    return os.fspath(token) if token else "", int(plaintext), int(patience * 1000)


__all__ = ["RPC_CODE_DUPLICATE", "RPC_CODE_MISMATCH", "RPC_CODE_SUCCESS", "RPC_MAGIC", "RPC_SESS_MASK", "RPC_TRACKER_MAGIC", "TrackerCode"]
