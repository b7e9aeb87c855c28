# SPDX-License-Identifier: Apache-2.0
"""Passes over quantised operators."""
from __future__ import annotations

from ...transform import Pass, named_pass


def CanonicalizeOps() -> Pass:
    """Lowers quantised operators to plain ones, by the rules of register_qnn_canonicalize, then by the compiler's: `CanonicalizeQnn` of the
    pass table."""
    return named_pass("CanonicalizeQnn")


def Legalize() -> Pass:
    """Rewrites quantised layers to the operand types of the current target's instructions, or by the rules of register_qnn_legalize."""
    from ..transform import Legalize as by_rules
    return by_rules("FTVMQnnLegalize")


__all__ = ["CanonicalizeOps", "Legalize"]
