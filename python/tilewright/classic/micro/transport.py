# SPDX-License-Identifier: Apache-2.0
"""Byte stream to a device, through its project's server."""
from __future__ import annotations

from typing import Any

from .project_api import client, server
from .project_api.server import IoTimeoutError, TransportClosedError, TransportTimeouts


class Transport:
    """A context manager: open inside of its `with`."""

    def __init__(self, api_client: client.ProjectAPIClient, options: dict[str, Any]):
        self._api_client, self._options, self._timeouts = api_client, options, None

    def timeouts(self) -> TransportTimeouts:
        if self._timeouts is None:
            raise TransportClosedError("the transport is not open")
        return self._timeouts

    def __enter__(self) -> Transport:
        self._timeouts = self._api_client.open_transport(self._options)
        return self

    def __exit__(self, *error: Any) -> None:
        self._timeouts = None
        try:
            self._api_client.close_transport()
        except client.ConnectionShutdownError:
            pass

    open = __enter__

    def close(self) -> None:
        self.__exit__()

    def write(self, data: bytes, timeout_sec: float | None) -> int:
        self._api_client.write_transport(data, timeout_sec)
        return len(data)

    def read(self, n: int, timeout_sec: float | None) -> bytes:
        return self._api_client.read_transport(n, timeout_sec)


__all__ = ["IoTimeoutError", "Transport", "TransportClosedError", "TransportTimeouts", "server"]
