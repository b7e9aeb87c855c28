# SPDX-License-Identifier: Apache-2.0
"""The operators that the code generator "ccompiler" emits as C. It has no multi-operator patterns."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .... import ir
from ....transform import Sequential
from ... import transform
from .register import register_pattern_table


def _arithmetic(call: Any) -> bool:
    """Whether the dtype exists in C; integers cannot be divided."""
    tensor = call.checked_type
    dtype = getattr(tensor, "dtype", "")
    known = all(isinstance(d, int) or hasattr(d, "value") for d in getattr(tensor, "shape", ()))
    if call.op.name == "divide" and not dtype.startswith("float"):
        return False
    return known and dtype in ("float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


for _name in ("add", "subtract", "multiply", "divide"):
    ir.register_op_attr(_name, "target.ccompiler", _arithmetic, level=5)  # a script's own registration takes precedence


@register_pattern_table("ccompiler")
def pattern_table() -> list[tuple[Any, ...]]:
    """Empty: every operator is taken by itself."""
    return []


def partition_for_ccompiler(mod: Any, params: Mapping[str, Any] | None = None, mod_name: str = "default") -> Any:
    """The module with the supported operators as external functions; `params` become constants."""
    from ....runtime.ndarray import as_array
    if params:
        mod = mod.bind_params({name: as_array(value) for name, value in params.items()})
    return Sequential([transform.InferType(), transform.AnnotateTarget("ccompiler"), transform.MergeCompilerRegions(), transform.PartitionGraph(mod_name)])(mod)


__all__ = ["partition_for_ccompiler", "pattern_table"]
