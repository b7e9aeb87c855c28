# SPDX-License-Identifier: Apache-2.0
"""Categories of operators in ToMixedPrecision: always in the narrow type, in the type of their operands (follow), or never narrowed."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .op.registrations import register_mixed_precision_conversion
from .op.registry import registered

MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER = 0, 1, 2


def get_generic_out_dtypes(call_node: Any, mixed_precision_type: str) -> list[str]:
    """The accumulation dtype and the result dtype."""
    return [mixed_precision_type, mixed_precision_type]


def _generic(category: int) -> Callable[[Any, str], list[Any]]:
    return lambda call_node, mixed_precision_type: [category, *get_generic_out_dtypes(call_node, mixed_precision_type)]


generic_always_op, generic_follow_op, generic_never_op = map(_generic, (MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER))


def register_func_to_op_list(list_ops: Sequence[str]) -> Callable[[Any], Any]:
    """Decorator that registers the function as the rule of each of the operators."""
    def decorate(func: Any) -> Any:
        for name in list_ops:
            register_mixed_precision_conversion(name, func)
        return func
    return decorate


def rules(mixed_precision_type: str) -> Callable[[str, Any], Any]:
    """The registered rules, for the pass: (category, accumulation dtype, result dtype), or None."""
    known = registered("FTVMMixedPrecisionConversionType")

    def ask(name: str, call: Any) -> Any:
        rule = known.get(name)
        if rule is None:
            return None
        category, sums, result = rule(call, mixed_precision_type)
        if int(category) not in (MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER):
            raise ValueError(f"the mixed precision rule of {name} gave the category {category}; it is 0 (always), 1 (follow) or 2 (never)")
        return int(category), str(sums), str(result)
    return ask


__all__ = ["MIXED_PRECISION_ALWAYS", "MIXED_PRECISION_FOLLOW", "MIXED_PRECISION_NEVER", "generic_always_op", "generic_follow_op", "generic_never_op", "get_generic_out_dtypes",
           "register_func_to_op_list", "register_mixed_precision_conversion"]
