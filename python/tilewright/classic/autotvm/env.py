# SPDX-License-Identifier: Apache-2.0
"""What all of a session's tuners share."""
from __future__ import annotations


class AutotvmGlobalScope:
    """in_tuning: a tuner is at work. silent: nothing is said about workloads without a record."""
    current: AutotvmGlobalScope | None = None

    def __init__(self) -> None:
        AutotvmGlobalScope.current = self
        self.in_tuning, self.silent = False, False


GLOBAL_SCOPE = AutotvmGlobalScope()

__all__ = ["GLOBAL_SCOPE", "AutotvmGlobalScope"]
