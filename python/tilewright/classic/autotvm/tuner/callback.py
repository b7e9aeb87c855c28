# SPDX-License-Identifier: Apache-2.0
"""Callbacks: called with (tuner, inputs, results) after each batch."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from ..record import encode
from ..utils import format_si_prefix

Callback = Callable[[Any, Any, Any], None]


def log_to_file(file_out: Any, protocol: str = "json") -> Callback:
    """Appends records to a file object or a path."""
    if protocol != "json":
        raise ValueError(f"logs are JSON; there is no protocol '{protocol}'")

    def append(_: Any, inputs: Any, results: Any) -> None:
        text = "".join(encode(inp, result) + "\n" for inp, result in zip(inputs, results))
        if isinstance(file_out, (str, os.PathLike)):
            with open(file_out, "a") as out:
                out.write(text)
        else:
            file_out.write(text)
    if isinstance(file_out, (str, os.PathLike)) and os.path.dirname(os.path.abspath(file_out)):
        os.makedirs(os.path.dirname(os.path.abspath(file_out)), exist_ok=True)
    return append


def log_to_database(db: Any) -> Callback:
    """Stores records by db.save(input, result)."""
    def save(_: Any, inputs: Any, results: Any) -> None:
        for inp, result in zip(inputs, results):
            db.save(inp, result)
    return save


class Monitor:
    """Records each trial's rate and time stamp."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Any, inputs: Any, results: Any) -> None:
        for inp, result in zip(inputs, results):
            self.scores.append(tuner.rate(result))
            self.timestamps.append(result.timestamp)

    def reset(self) -> None:
        self.scores, self.timestamps = [], []

    def trial_scores(self) -> list[float]:
        return self.scores

    def trial_timestamps(self) -> list[float]:
        return self.timestamps


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """A progress line with the latest and the best rate, updated in place on a terminal."""
    best, done, failed, start = 0.0, 0, 0, time.time()
    format_si_prefix(0, si_prefix)

    def show(tuner: Any, inputs: Any, results: Any) -> None:
        nonlocal best, done, failed
        latest = 0.0
        for result in results:
            latest = tuner.rate(result)
            best, done, failed = max(best, latest), done + 1, failed + (result.error_no != 0)
        rate, most = format_si_prefix(latest, si_prefix), format_si_prefix(best, si_prefix)
        line = f"{prefix} Current/Best: {rate:7.2f}/{most:7.2f} {si_prefix}FLOPS | Progress: ({done}/{total}) | {time.time() - start:.2f} s"
        live = sys.stdout.isatty()
        sys.stdout.write("\r" * live + line + ("" if live else "\n") + (" Done.\n" if live and done >= total else ""))
        sys.stdout.flush()
    return show


__all__ = ["Monitor", "log_to_database", "log_to_file", "progress_bar"]
