# SPDX-License-Identifier: Apache-2.0
"""How ToMixedPrecision sees operators: computed in the narrow type (always), as their operands come (follow), or in float32 (never)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .op.registry import register_op_attr

MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER = 0, 1, 2


def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = 10) -> Any:
    """func(call, mixed_precision_type) gives [category, type of sums, type of the result]: decorator, or with the function."""
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)


def get_generic_out_dtypes(call_node: Any, mixed_precision_type: str) -> list[str]:
    """Types of sums and of the result: float32 and the narrow one where an operator can say them."""
    has = call_node.attrs is not None and "out_dtype" in call_node.attrs.keys()
    return ["float32", mixed_precision_type] if has else [mixed_precision_type, mixed_precision_type]


def _generic(category: int) -> Callable[[Any, str], list[Any]]:
    return lambda call_node, mixed_precision_type: [category, *get_generic_out_dtypes(call_node, mixed_precision_type)]


generic_always_op, generic_follow_op, generic_never_op = map(_generic, (MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER))


def register_func_to_op_list(list_ops: Sequence[str]) -> Callable[[Any], Any]:
    """Decorator: the function is the rule of each of the operators."""
    def decorate(func: Any) -> Any:
        for name in list_ops:
            register_mixed_precision_conversion(name, func)
        return func
    return decorate


__all__ = ["MIXED_PRECISION_ALWAYS", "MIXED_PRECISION_FOLLOW", "MIXED_PRECISION_NEVER", "generic_always_op", "generic_follow_op", "generic_never_op", "get_generic_out_dtypes",
           "register_func_to_op_list", "register_mixed_precision_conversion"]
