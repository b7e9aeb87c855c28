# SPDX-License-Identifier: Apache-2.0
"""The protocol of project servers: JSON-RPC 2.0, one message per line, over two inherited file descriptors."""
from . import client, server

__all__ = ["client", "server"]
