# SPDX-License-Identifier: Apache-2.0
"""Executors and tools under their classic names."""
from . import cblas, cc, clang, debugger, download, graph_executor, random, sparse, tar, utils

__all__ = ["cblas", "cc", "clang", "debugger", "download", "graph_executor", "random", "sparse", "tar", "utils"]
