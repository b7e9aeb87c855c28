# SPDX-License-Identifier: Apache-2.0
"""State shared by all tuners of a process."""
from __future__ import annotations


class AutotvmGlobalScope:
    """in_tuning: a tuner is running. silent: no warnings about workloads without a record."""
    current: AutotvmGlobalScope | None = None

    def __init__(self) -> None:
        AutotvmGlobalScope.current = self
        self.in_tuning, self.silent = False, False


GLOBAL_SCOPE = AutotvmGlobalScope()

__all__ = ["GLOBAL_SCOPE", "AutotvmGlobalScope"]
