# SPDX-License-Identifier: Apache-2.0
"""Compiles a function to the parts of the graph executor in one step."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class GraphExecutorCodegen:
    """`GraphExecutorCodegen(None, target).codegen(mod, mod["main"])` returns (graph JSON, modules by target, params). Kernels are
    machine code, not loops."""

    def __init__(self, mod: Any, target: Any):
        self._target = next(iter(target.values())) if isinstance(target, Mapping) else target[0] if isinstance(target, (list, tuple)) else target

    def codegen(self, ir_module: Any, func: Any = None) -> tuple[str, dict[Any, Any], dict[str, Any]]:
        from ..build_module import build
        from ..expr import to_module
        built = build(to_module(func) if func is not None else ir_module, self._target)
        return built.get_graph_json(), {built.target[0] if isinstance(built.target, list) else self._target: built.optimized}, built.get_params()


__all__ = ["GraphExecutorCodegen"]
