# SPDX-License-Identifier: Apache-2.0
"""Sessions with other processes and machines, under their classic names (docs/rpc.md)."""
from __future__ import annotations

from . import base, client, server, testing, tracker
from .client import LocalSession, PopenSession, RPCSession, TrackerSession, connect, connect_tracker
from .server import Server

__all__ = ["LocalSession", "PopenSession", "RPCSession", "Server", "TrackerSession", "base", "client", "connect", "connect_tracker", "server", "testing", "tracker"]
