# SPDX-License-Identifier: Apache-2.0
"""Operators that scripts register: what a script says about them, and type relations written in Python."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _core
from ..ir.ty import TensorType
from .attrs import AttrFieldInfo, of_call


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
            return function(types, of_call(attrs))
        except _core.Error:
            raise
        except Exception as error:
            kind = type(type(error).__name__, (_core.Error, type(error)), {})
            raise kind(str(error)) from error
    return ask


# The levels of the classic documentation; others have the last one.
_LEVELS = {
    1: "log sqrt rsqrt exp sigmoid add subtract multiply divide mod tanh concatenate expand_dims nn.softmax nn.log_softmax nn.relu nn.dropout nn.batch_norm nn.bias_add nn.dense",
    2: """nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.max_pool2d nn.max_pool3d nn.avg_pool2d nn.avg_pool3d nn.global_max_pool2d nn.global_avg_pool2d
          nn.upsampling nn.upsampling3d nn.batch_flatten nn.pad nn.lrn nn.l2_normalize nn.contrib_conv2d_winograd_without_weight_transform""",
    3: """nn.leaky_relu nn.prelu reshape reshape_like copy transpose squeeze floor ceil sign trunc clip round abs negative take zeros zeros_like ones ones_like gather
          gather_nd full full_like cast reinterpret split arange meshgrid stack repeat tile reverse reverse_sequence unravel_index sparse_to_dense""",
    4: """right_shift left_shift maximum minimum power equal not_equal less less_equal greater greater_equal all any logical_and logical_or logical_not logical_xor argmax
          argmin sum max min mean variance prod strided_slice broadcast_to where""",
    5: "image.resize2d image.crop_and_resize vision.multibox_prior vision.multibox_transform_loc vision.non_max_suppression vision.yolo_reorg",
    6: "topk sort argsort", 10: ""}


def _level_of(name: str) -> int:
    return next((level for level, names in _LEVELS.items() if name in names.split()), 10)


class ScriptOp:
    """What an operator says about its operands, and with what a script describes one that it registered."""

    name: str

    @classmethod
    def get(cls, op_name: str) -> Any:
        """An operator of the graph, or by "tir.NAME" an intrinsic of loops."""
        from ..tir.expr import OpName
        from ..tir.op import is_intrinsic
        return OpName(op_name) if op_name.startswith("tir.") and is_intrinsic(op_name) else cls(op_name)  # type: ignore[call-arg]

    @property
    def arguments(self) -> list[AttrFieldInfo]:
        from .op.registry import attribute_of
        said = attribute_of(self.name, "arguments") or {}
        return [AttrFieldInfo(name, *said.get(name, ("Tensor", ""))) for name in _core.op_info(self.name)[1]]

    @property
    def num_inputs(self) -> int:
        return _core.op_info(self.name)[0]

    def set_num_inputs(self, n: int) -> None:
        _core.set_op_inputs(self.name, int(n))

    def add_argument(self, name: str, type: str, description: str) -> None:
        from .op.registry import attribute_of, register
        _core.add_op_argument(self.name, name, f"{type}: {description}")
        if attribute_of(self.name, "arguments") is None:
            register(self.name, "arguments", {})
        attribute_of(self.name, "arguments")[name] = (type, description)

    @property
    def support_level(self) -> int:
        """How basic the classic stack takes it for: 1 is most; without meaning here."""
        from .op.registry import attribute_of
        return int(attribute_of(self.name, "support_level") or _level_of(self.name))

    @property
    def description(self) -> str:
        """What a script registered it with."""
        from .op.registry import attribute_of
        return str(attribute_of(self.name, "description") or "")

    def set_support_level(self, level: int) -> None:
        from .op.registry import register
        register(self.name, "support_level", int(level))

    def set_attrs_type_key(self, key: str) -> None:
        """Only kept; calls of such operators take attributes of any name."""
        from .op.registry import register
        register(self.name, "attrs_type_key", key)

    def add_type_rel(self, rel_name: str, type_rel_func: Any = None) -> None:
        """type_rel_func(types, attrs) returns the type of a call's result; without it, one of the relations Identity, Broadcast and BroadcastComp."""
        add_relation(self.name, rel_name, type_rel_func)


__all__ = ["ScriptOp", "add_relation"]
