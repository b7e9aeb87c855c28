# SPDX-License-Identifier: Apache-2.0
"""How a project's own program is spoken to: JSON-RPC 2.0, a message a line, over two inherited descriptors."""
from . import client, server

__all__ = ["client", "server"]
