# SPDX-License-Identifier: Apache-2.0
"""Operator attributes registered by scripts; the highest level takes precedence."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import _core
from ...error import InvalidValue

# (operator, attribute) -> (value, level)
_table: dict[tuple[str, str], tuple[Any, int]] = {}


class OpPattern:
    """How the output indices of an operator depend on those of its inputs."""
    ELEMWISE, BROADCAST, INJECTIVE, COMM_REDUCE, OUT_ELEMWISE_FUSABLE, TUPLE, OPAQUE = 0, 1, 2, 3, 4, 7, 8


def register(op_name: str, attr_key: str, value: Any, level: int = 10) -> None:
    known = _table.get((op_name, attr_key))
    if known is not None and known[1] == level and known[0] is not value:
        raise InvalidValue(f"Attribute {attr_key} of operator {op_name} is already registered with same plevel={level}")
    if known is None or level > known[1]:
        put(op_name, attr_key, (value, level))


def forget(op_name: str, attr_key: str) -> None:
    put(op_name, attr_key, None)


def put(op_name: str, attr_key: str, entry: tuple[Any, int] | None) -> None:
    """Sets or forgets an attribute; the compiler itself calls gradients."""
    if entry is None:
        _table.pop((op_name, attr_key), None)
    else:
        _table[op_name, attr_key] = entry
    if attr_key == "FPrimalGradient":
        _core.set_op_gradient(op_name, None if entry is None else entry[0])


def attribute_of(op_name: str, attr_key: str) -> Any:
    """The registered attribute, or the compiler's own (TOpPattern, TOpIsStateful), or None."""
    if (op_name, attr_key) in _table:
        return _table[op_name, attr_key][0]
    if attr_key in ("TOpPattern", "TOpIsStateful"):
        pattern, stateful = _core.op_traits(op_name)
        return pattern if attr_key == "TOpPattern" else stateful
    return None


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """`@register_op_attr("nn.relu", "target.mine")` on a function, or called with the value."""
    if _core.op_info(op_name) is None and not op_name.startswith("tir."):
        raise ValueError(f"no operator is called '{op_name}'")

    def store(v: Any) -> Any:
        register(op_name, attr_key, v, level)
        return v
    return store if value is None else store(value)


def is_registered(op_name: str) -> bool:
    """Whether a script registered any attribute of the operator."""
    return any(name == op_name for name, _ in _table)


def register_intrin_lowering(op_name: str, target: str, *, f: Any = None, level: int = 10) -> Any:
    """Registers how builds for a kind of target (or "default") lower calls of an intrinsic such as "tir.exp": f(call) returns an
    expression."""
    def store(v: Any) -> Any:
        register(op_name, f"{target}.FLowerIntrinsic", v, level)
        return v
    return store if f is None else store(f)


def registered(attr_key: str) -> dict[str, Callable[..., Any]]:
    """The operators that have the attribute."""
    return {name: value for (name, key), (value, _) in _table.items() if key == attr_key}


__all__ = ["OpPattern", "attribute_of", "is_registered", "register_intrin_lowering", "register_op_attr", "registered"]
