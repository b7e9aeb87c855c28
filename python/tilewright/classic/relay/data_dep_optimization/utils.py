# SPDX-License-Identifier: Apache-2.0
"""Helper of the conversions."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .... import _core


def run_pass(func: Any, made: Any, params: dict[str, Any], before: Mapping[str, Any]) -> Any:
    """main after a pass over a module with this function. Parameters that are also used elsewhere keep their values."""
    out = made(_core.IRModule({"main": func}))["main"]
    for p in out.params:
        if p.name_hint in before:
            params.setdefault(p.name_hint, before[p.name_hint])
    return out
