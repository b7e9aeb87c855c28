# SPDX-License-Identifier: Apache-2.0
"""Operators that scripts register: what a script says about them, and type relations written in Python."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _core
from ..ir.ty import TensorType
from .attrs import AttrFieldInfo


def _broadcast(types: list[Any], _: Any) -> Any:
    from .expr import Call, Var
    return Call("add", [Var("a", types[0]), Var("b", types[1])]).checked_type


_NAMED: dict[str, Callable[[list[Any], Any], Any]] = {
    "Identity": lambda types, _: types[0],
    "Broadcast": _broadcast,
    "BroadcastComp": lambda types, attrs: TensorType(_broadcast(types, attrs).shape, "bool"),
    "IdentityCompRel": lambda types, _: TensorType(types[0].shape, "bool"),
}


def add_relation(op_name: str, relation: str, function: Any) -> None:
    """Gives an operator of a script its type relation. ValueError if the relation has no function and no known name."""
    if not _core.is_script_op(op_name):
        raise ValueError(f"{op_name} is an operator of the compiler, with its own type relation")
    if function is None and relation not in _NAMED:
        raise ValueError(f"there is no relation {relation} for operators of scripts; there are {', '.join(_NAMED)}, and functions of the script")
    _core.set_op_relation(op_name, _asked(function) if function else _NAMED[relation])


def _asked(function: Callable[[list[Any], Any], Any]) -> Callable[[list[Any], Any], Any]:
    """The function; what it raises is a TVMError, too."""
    def ask(types: list[Any], attrs: Any) -> Any:
        try:
            return function(types, attrs)
        except _core.Error:
            raise
        except Exception as error:
            kind = type(type(error).__name__, (_core.Error, type(error)), {})
            raise kind(str(error)) from error
    return ask


class ScriptOp:
    """What an operator says about its operands, and with what a script describes one that it registered."""

    name: str

    @property
    def arguments(self) -> list[AttrFieldInfo]:
        return [AttrFieldInfo(name, "Tensor", "") for name in _core.op_info(self.name)[1]]

    @property
    def num_inputs(self) -> int:
        return _core.op_info(self.name)[0]

    def set_num_inputs(self, n: int) -> None:
        _core.set_op_inputs(self.name, int(n))

    def add_argument(self, name: str, type: str, description: str) -> None:
        _core.add_op_argument(self.name, name, f"{type}: {description}")

    def set_support_level(self, level: int) -> None:
        """Accepted; levels have no meaning here."""

    def set_attrs_type_key(self, key: str) -> None:
        """Accepted; calls of such operators have no attributes."""

    def add_type_rel(self, rel_name: str, type_rel_func: Any = None) -> None:
        """type_rel_func(types, attrs) returns the type of a call's result; without it, one of the relations Identity, Broadcast and BroadcastComp."""
        add_relation(self.name, rel_name, type_rel_func)


__all__ = ["ScriptOp", "add_relation"]
