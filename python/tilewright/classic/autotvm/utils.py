# SPDX-License-Identifier: Apache-2.0
"""Formatting of rates."""
from __future__ import annotations

from typing import Any

SI_PREFIXES = "yzafpn\xb5m kMGTPEZY"  # from 10^-24 to 10^24; the space is none
_EXPONENTS = {"": 0, **{prefix: 3 * number - 24 for number, prefix in enumerate(SI_PREFIXES)}}


def get_rank(values: Any) -> list[int]:
    """The rank of each value in descending order."""
    order = sorted(range(len(values)), key=lambda i: -values[i])
    out = [0] * len(values)
    for place, i in enumerate(order):
        out[i] = place
    return out


def format_si_prefix(value: float, si_prefix: str) -> float:
    """value in units of the prefix. ValueError: unknown prefix."""
    if si_prefix not in _EXPONENTS:
        raise ValueError(f"there is no prefix '{si_prefix}'; there are {', '.join(p or 'none' for p in _EXPONENTS)}")
    return value / 10 ** _EXPONENTS[si_prefix]


__all__ = ["SI_PREFIXES", "format_si_prefix", "get_rank"]
