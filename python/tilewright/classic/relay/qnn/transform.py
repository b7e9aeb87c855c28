# SPDX-License-Identifier: Apache-2.0
"""Passes over quantised operators."""
from __future__ import annotations

from ...transform import Pass, named_pass


def CanonicalizeOps() -> Pass:
    """Lowers quantised operators to plain ones: `CanonicalizeQnn` of the pass table."""
    return named_pass("CanonicalizeQnn")


def Legalize() -> Pass:
    """The same as CanonicalizeOps, since every target runs the plain operators that it makes."""
    return named_pass("CanonicalizeQnn")


__all__ = ["CanonicalizeOps", "Legalize"]
