# SPDX-License-Identifier: Apache-2.0
"""Passes over quantised operators."""
from __future__ import annotations

from ...transform import Pass, named_pass


def CanonicalizeOps() -> Pass:
    """Quantised operators become plain ones: `CanonicalizeQnn` of the pass table."""
    return named_pass("CanonicalizeQnn")


def Legalize() -> Pass:
    """The same: every target runs the plain operators that CanonicalizeOps makes."""
    return named_pass("CanonicalizeQnn")


__all__ = ["CanonicalizeOps", "Legalize"]
