# SPDX-License-Identifier: Apache-2.0
"""What scripts call of the build by its internal name."""
from __future__ import annotations

from typing import Any

from .. import build_module
from ..memory_plan import GraphPlanMemory


def __getattr__(name: str) -> Any:
    return getattr(build_module, name)


__all__ = ["GraphPlanMemory"]
