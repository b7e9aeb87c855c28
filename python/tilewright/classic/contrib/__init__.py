# SPDX-License-Identifier: Apache-2.0
"""Executors and tools under their classic names."""
from . import cc, debugger, download, graph_executor, tar, utils

__all__ = ["cc", "debugger", "download", "graph_executor", "tar", "utils"]
