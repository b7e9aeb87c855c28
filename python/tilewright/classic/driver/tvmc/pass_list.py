# SPDX-License-Identifier: Apache-2.0
"""Parses lists of passes."""
from __future__ import annotations

import argparse


def parse_pass_list_str(input_string: str) -> list[str]:
    """Parses "FoldConstant,FuseOps" to names. argparse.ArgumentTypeError: unknown pass."""
    from ... import _core
    names = [p.strip() for p in input_string.split(",") if p.strip()]
    known = set(_core.pass_names()) if hasattr(_core, "pass_names") else None
    missing = [p for p in names if known is not None and p not in known]
    if missing:
        raise argparse.ArgumentTypeError(f"Following passes are not registered within tvm: {', '.join(missing)}.")
    return names


__all__ = ["parse_pass_list_str"]
