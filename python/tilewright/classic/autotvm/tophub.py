# SPDX-License-Identifier: Apache-2.0
"""Pre-tuned records: there are none, since the cost model covers the processors for which the classic stack publishes some. Nothing is
downloaded."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .task.dispatcher import ApplyHistoryBest, DispatchContext

PACKAGE_VERSION: dict[str, str] = {}


def context(target: Any, extra_files: Sequence[str | os.PathLike[str]] | None = None) -> DispatchContext:
    """A context with the records of the extra files. Errors: those of ApplyHistoryBest."""
    return ApplyHistoryBest(list(extra_files or []))


def check_backend(tophub_location: str, backend: str) -> bool:
    """Whether there are records for the backend: always False."""
    return False


def load_reference_log(backend: str, model: str, workload_name: str) -> list[Any]:
    """The records of a workload: always empty."""
    return []


__all__ = ["PACKAGE_VERSION", "check_backend", "context", "load_reference_log"]
