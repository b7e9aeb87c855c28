# SPDX-License-Identifier: Apache-2.0
"""The classic JSON of values other than Relay: containers, strings, numbers, operators, functions by name, attributes. Relay inside of
them is embedded as its own JSON."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ... import _core
from ..runtime.container import Map, ShapeTuple
from ..runtime.ndarray import Device
from ..tir import StringImm, expr as tir_expr
from ..tir import Var as TirVar
from ..tir.range import Range
from ..tir.reduction import IterVar
from . import json_tensors
from .env_func import EnvFunc
from .ty import GlobalTypeVar, IncompleteType, PointerType, PrimType, TypeVar

# A Relay type, expression or module embedded in a container.
RELAY = "tilewright.Relay"


def _plain(value: Any) -> Any:
    """Numbers, strings and lists as plain Python values."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (bool, float)) or value is None else int(value) if isinstance(value, int) else str(value)


class _Writer:
    def __init__(self, relay: Callable[[Any], str]):
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self._relay = relay
        self._known: dict[tuple[str, int], int] = {}

    def add(self, value: Any) -> int:
        shared = isinstance(value, (TirVar, _core.Tensor, _core.Operation, IterVar))  # what is one stays one
        key = (type(value).__name__, hash(value) if shared else 0)
        if shared and key in self._known:
            return self._known[key]
        node = self._node(value)
        self.nodes.append(node)
        if shared:
            self._known[key] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _node(self, value: Any) -> dict[str, Any]:
        from ..relay.expr import Attrs, DictAttrs, GlobalVar, Op
        from ..relay.span import SourceName, Span
        from ..target import Target
        if isinstance(value, Span):
            lines = {name: str(getattr(value, name)) for name in ("line", "end_line", "column", "end_column")}
            return {"type_key": "Span", "attrs": {"source_name": str(self.add(value.source_name)), **lines}}
        if isinstance(value, SourceName):
            return {"type_key": "SourceName", "repr_str": str(value)}
        if isinstance(value, Op):
            return {"type_key": "Op", "repr_str": value.name}
        if isinstance(value, (GlobalVar, GlobalTypeVar)):
            return {"type_key": "GlobalVar" if isinstance(value, GlobalVar) else "GlobalTypeVar", "attrs": {"name_hint": str(self.add(str(value.name_hint)))}}
        if isinstance(value, (TypeVar, IncompleteType)):
            name = {"name_hint": str(self.add(str(value.name_hint)))} if isinstance(value, TypeVar) else {}
            return {"type_key": "relay.TypeVar" if name else "relay.IncompleteType", "attrs": {**name, "kind": str(value.kind), "span": "0"}}
        if isinstance(value, Attrs):
            return {"type_key": value.type_key, "attrs": {name: str(self.add(getattr(value, name))) for name in value.keys()}}
        if isinstance(value, Range):
            return {"type_key": "Range", "attrs": {"min": str(self.add(value.min)), "extent": str(self.add(value.extent)), "span": "0"}}
        if isinstance(value, PrimType):
            return {"type_key": "PrimType", "attrs": {"dtype": value.dtype, "span": "0"}}
        if isinstance(value, PointerType):
            return {"type_key": "PointerType", "attrs": {"element_type": str(self.add(value.element_type)), "storage_scope": value.storage_scope}}
        if (tensors := json_tensors.node_of(self, value)) is not None:
            return tensors
        if isinstance(value, tir_expr.SizeVar):
            return {"type_key": "tir.SizeVar", "attrs": {"dtype": value.dtype, "name": value.name, "span": "0", "type_annotation": "0"}}
        if isinstance(value, TirVar):
            return {"type_key": "tir.Var", "attrs": {"dtype": value.dtype, "name": value.name, "span": "0", "type_annotation": "0"}}
        if isinstance(value, tir_expr.PrimExpr):
            return self._expression(value)
        if isinstance(value, EnvFunc):
            return {"type_key": "EnvFunc", "repr_str": value.name}
        if isinstance(value, DictAttrs):
            return {"type_key": "DictAttrs", "attrs": {"__dict__": str(self.add(Map(value)))}}
        if isinstance(value, Target):
            return {"type_key": "Target", "repr_str": json.dumps(_plain(value.export()))}
        if isinstance(value, Device):
            return {"type_key": "Device", "attrs": {"device_type": str(value.device_type), "device_id": str(value.device_id)}}
        if isinstance(value, (StringImm, str)):
            return {"type_key": "tir.StringImm" if isinstance(value, StringImm) else "runtime.String", "repr_str": str(value)}
        if isinstance(value, ShapeTuple):
            return {"type_key": "runtime.ShapeTuple", "data": [int(d) for d in value]}
        if isinstance(value, dict):
            if all(isinstance(k, str) for k in value):
                return {"type_key": "Map", "keys": [str(k) for k in value], "data": [self.add(v) for v in value.values()]}
            return {"type_key": "Map", "data": [self.add(part) for pair in value.items() for part in pair]}
        if isinstance(value, (list, tuple)):
            return {"type_key": "Array", "data": [self.add(v) for v in value]}
        if isinstance(value, (bool, int, float)):
            real = isinstance(value, float)
            dtype = getattr(value, "dtype", "float32" if real else "bool" if isinstance(value, bool) else "int32")
            number = repr(float(value)) if real else str(int(value))
            return {"type_key": "FloatImm" if real else "IntImm", "attrs": {"dtype": str(dtype), "span": "0", "value": number}}
        if value is None:
            return {"type_key": ""}
        return {"type_key": RELAY, "repr_str": self._relay(value)}


    def _expression(self, value: Any) -> dict[str, Any]:
        """A TIR expression with its operands by field name."""
        names = ("a", "b") if isinstance(value, tir_expr.BinaryOpExpr) else _OPERANDS.get(value._kind)
        if names is None:
            raise TypeError(f"there is no JSON of a {value._kind} of the loop IR; there is of variables, numbers, operators, casts and choices")
        attrs = {name: str(self.add(part)) for name, part in zip(names, value._fields)}
        return {"type_key": f"tir.{value._kind}", "attrs": {"dtype": value.dtype, "span": "0", **attrs}}


_OPERANDS = {"Cast": ("value",), "Select": ("condition", "true_value", "false_value"), "Not": ("a",)}


def can_save(value: Any) -> bool:
    """Whether a value is written in this form, not as Relay."""
    from ..relay.expr import Attrs, DictAttrs, GlobalVar, Op
    from ..target import Target
    return json_tensors.can_save(value) or isinstance(value, (Attrs, Range, TypeVar, IncompleteType, Op, Target, GlobalVar, GlobalTypeVar, PrimType, PointerType, tir_expr.PrimExpr, EnvFunc, DictAttrs, Device, str, dict, list, tuple, int, float)) or value is None


def save(value: Any, relay: Callable[[Any], str]) -> str:
    writer = _Writer(relay)
    root = writer.add(value)
    return json.dumps({"root": root, "nodes": writer.nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.9.0"}}, indent=2)


__all__ = ["can_save", "save"]
