# SPDX-License-Identifier: Apache-2.0
"""Formats run times as a table."""
from __future__ import annotations

from typing import Any


def format_times(times: Any) -> str:
    """The mean, median, maximum, minimum and standard deviation of a BenchmarkResult, in milliseconds."""
    names = ("mean", "median", "max", "min", "std")
    head = "".join(f"{name + ' (ms)':>14}" for name in names)
    return head + "\n" + "".join(f"{getattr(times, name) * 1000:>14.4f}" for name in names) + "\n"


__all__ = ["format_times"]
