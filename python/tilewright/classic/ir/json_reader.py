# SPDX-License-Identifier: Apache-2.0
"""Reads the classic JSON of values other than modules and functions: containers, strings, numbers, operators, types, variables, index
expressions and Relay expressions; also of version 0.6, which inlined strings and used other keys."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ... import _core
from ..runtime.container import Array, Map, ShapeTuple, String
from ..runtime.ndarray import Device
from ..tir import FloatImm, IntImm, StringImm, expr as tir_expr
from ..tir import SizeVar, Var as TirVar
from ..tir.range import Range
from .env_func import EnvFunc
from .json_tensors import TensorReader
from .json_values import RELAY
from .ty import FuncType, GlobalTypeVar, IncompleteType, PointerType, PrimType, TensorType, TupleType, TypeCall, TypeKind, TypeVar

# Node types that only the function reader handles: such a root is read as the body of a function.
_IN_FUNCTIONS = ("relay.Call", "relay.Constant", "relay.Function", "relay.If", "relay.Let", "relay.Match", "relay.RefCreate", "relay.RefRead", "relay.RefWrite", "relay.Tuple",
                 "relay.TupleGetItem")
_BINARY = ("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or")
_BARE = ("relay.Op", "relay.TypeVar", "relay.GlobalTypeVar", "relay.GlobalVar", "relay.IncompleteType", "relay.FuncType", "relay.TupleType", "relay.TensorType", "relay.TypeCall")


def is_value(text: str) -> bool:
    """Whether this reader handles the root of a JSON text."""
    try:
        graph = json.loads(text)
        key = graph["nodes"][graph["root"]]["type_key"]
        return key not in ("IRModule", "relay.Module", "relay.Function") and not graph.get("attrs", {}).get("tilewright_part")
    except (ValueError, KeyError, IndexError, TypeError):
        return False


class _Reader(TensorReader):
    def __init__(self, graph: Any, relay: Callable[[str], Any]):
        self._graph, self._nodes, self._relay = graph, graph["nodes"], relay
        version = str(graph.get("attrs", {}).get("tvm_version", ""))
        self._in_place = version.startswith(("0.4", "0.5", "0.6"))
        self._done: dict[int, Any] = {}
        self._open: set[int] = set()

    def read(self, index: int) -> Any:
        """Reads a node; repeated references give the same value."""
        if not 0 <= index < len(self._nodes):
            raise ValueError(f"there is no node {index}")
        if index in self._open:
            raise ValueError(f"node {index} is a part of itself")
        if index not in self._done:
            self._open.add(index)
            self._done[index] = self._made(index)
            self._open.discard(index)
        return self._done[index]

    def _made(self, index: int) -> Any:
        node = self._nodes[index]
        key, attrs, data = node.get("type_key", ""), node.get("attrs", {}), node.get("data", [])
        if not key:
            return None
        if key in _BARE or key == "relay.Id":
            key = key.removeprefix("relay.")
        elif key in ("Variable", "SizeVar", "StringImm", "Cast", "Select", *_BINARY):
            key = f"tir.{key}"
        if key in ("Map", "StrMap"):
            if "keys" in node:
                return Map(zip(map(String, node["keys"]), map(self.read, data)))
            return Map(zip(map(self.read, data[::2]), map(self.read, data[1::2])))
        if key.startswith("relay.attrs."):
            from . import make_node
            return make_node(key, **{name: self.read(int(value)) for name, value in attrs.items()})
        if key in _IN_FUNCTIONS:
            return self._body(index)
        if key.startswith("tir.") and key[4:] in _BINARY:
            return getattr(tir_expr, key[4:])(self._part(attrs, "a"), self._part(attrs, "b"))
        make = getattr(self, "_" + key.replace(".", "_").lower(), None)
        if make is None:
            raise ValueError(f"a {key} is not read here")
        return make(node, attrs, data)

    def _part(self, attrs: Any, name: str) -> Any:
        return self.read(int(attrs.get(name, 0)))

    def _text(self, attrs: Any, name: str) -> str:
        """Strings are inlined in old files, nodes in newer ones."""
        value = attrs[name]
        if not self._in_place and str(value).isdigit() and int(value) < len(self._nodes):
            read = self.read(int(value))
            if isinstance(read, str):
                return str(read)
        return str(value)

    def _body(self, index: int) -> Any:
        """An expression, read as the body of a function."""
        nodes = list(self._nodes)
        nodes += [{"type_key": "Array"}, {"type_key": "relay.Function", "attrs": {"_checked_type_": "0", "attrs": "0", "body": str(index), "params": str(len(nodes)), "ret_type": "0",
                                                                                "span": "0", "type_params": str(len(nodes))}}]
        return _core.load_json(json.dumps({**self._graph, "root": len(nodes) - 1, "nodes": nodes}))["main"].body

    def _named(self, attrs: Any) -> str:
        return self._text(attrs, "name_hint") if "name_hint" in attrs else str(self._part(attrs, "var").name)

    # --- readers by type key
    def _relay_var(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..relay.expr import Var
        identity = self._nodes[int(attrs["vid"])]["attrs"]
        return Var(self._text(identity, "name_hint"), self._part(attrs, "type_annotation"))

    def _op(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..relay.expr import Op
        return Op(node.get("repr_str") or node.get("global_key"))

    def _span(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..relay.span import Span
        return Span(self._part(attrs, "source_name"), *(int(attrs[name]) for name in ("line", "end_line", "column", "end_column")))

    def _sourcename(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..relay.span import SourceName
        return SourceName(node["repr_str"])

    def _globalvar(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..relay.expr import GlobalVar
        return GlobalVar(self._text(attrs, "name_hint"))

    def _dictattrs(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..relay.expr import DictAttrs
        return DictAttrs(self._part(attrs, "__dict__"))

    def _typevar(self, node: Any, attrs: Any, data: Any) -> Any:
        return TypeVar(self._named(attrs), int(attrs.get("kind", 0)))

    def _globaltypevar(self, node: Any, attrs: Any, data: Any) -> Any:
        return GlobalTypeVar(self._named(attrs), int(attrs.get("kind", TypeKind.AdtHandle)))

    def _incompletetype(self, node: Any, attrs: Any, data: Any) -> Any:
        return IncompleteType(int(attrs.get("kind", 0)))

    def _tensortype(self, node: Any, attrs: Any, data: Any) -> Any:
        return TensorType(list(self._part(attrs, "shape") or []), attrs["dtype"])

    def _tupletype(self, node: Any, attrs: Any, data: Any) -> Any:
        return TupleType(list(self._part(attrs, "fields") or []))

    def _functype(self, node: Any, attrs: Any, data: Any) -> Any:
        return FuncType(list(self._part(attrs, "arg_types") or []), self._part(attrs, "ret_type"), list(self._part(attrs, "type_params") or []))

    def _typecall(self, node: Any, attrs: Any, data: Any) -> Any:
        return TypeCall(self._part(attrs, "func"), list(self._part(attrs, "args") or []))

    def _range(self, node: Any, attrs: Any, data: Any) -> Any:
        return Range.from_min_extent(self._part(attrs, "min"), self._part(attrs, "extent"))

    def _primtype(self, node: Any, attrs: Any, data: Any) -> Any:
        return PrimType(attrs["dtype"])

    def _pointertype(self, node: Any, attrs: Any, data: Any) -> Any:
        return PointerType(self._part(attrs, "element_type"), attrs["storage_scope"])

    def _tir_any(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..tir import Any as AnySize
        return AnySize()

    def _tir_var(self, node: Any, attrs: Any, data: Any) -> Any:
        return TirVar(self._text(attrs, "name"), attrs["dtype"])

    _tir_variable = _tir_var

    def _tir_sizevar(self, node: Any, attrs: Any, data: Any) -> Any:
        return SizeVar(self._text(attrs, "name"), attrs["dtype"])

    def _tir_cast(self, node: Any, attrs: Any, data: Any) -> Any:
        return tir_expr.Cast(attrs["dtype"], self._part(attrs, "value"))

    def _tir_select(self, node: Any, attrs: Any, data: Any) -> Any:
        return tir_expr.Select(self._part(attrs, "condition"), self._part(attrs, "true_value"), self._part(attrs, "false_value"))

    def _tir_stringimm(self, node: Any, attrs: Any, data: Any) -> Any:
        return StringImm(node["repr_str"] if "repr_str" in node else self._text(attrs, "value"))

    def _runtime_string(self, node: Any, attrs: Any, data: Any) -> Any:
        return String(node["repr_str"])

    def _intimm(self, node: Any, attrs: Any, data: Any) -> Any:
        return IntImm(attrs["dtype"], int(attrs["value"]))

    def _floatimm(self, node: Any, attrs: Any, data: Any) -> Any:
        return FloatImm(attrs["dtype"], float(attrs["value"]))

    def _array(self, node: Any, attrs: Any, data: Any) -> Any:
        return Array(map(self.read, data))

    def _runtime_shapetuple(self, node: Any, attrs: Any, data: Any) -> Any:
        return ShapeTuple(data)

    def _envfunc(self, node: Any, attrs: Any, data: Any) -> Any:
        return EnvFunc(node.get("repr_str") or node.get("global_key"))

    def _device(self, node: Any, attrs: Any, data: Any) -> Any:
        return Device(int(attrs["device_type"]), int(attrs["device_id"]))

    def _target(self, node: Any, attrs: Any, data: Any) -> Any:
        from ..target import Target
        return Target(json.loads(node["repr_str"]))

    def _tilewright_relay(self, node: Any, attrs: Any, data: Any) -> Any:
        return self._relay(node["repr_str"])


assert hasattr(_Reader, "_" + RELAY.replace(".", "_").lower())


def load(text: str, relay: Callable[[str], Any]) -> Any:
    """Reads values that save_json or the classic stack wrote. ValueError if the text is damaged."""
    graph = json.loads(text)
    try:
        return _Reader(graph, relay).read(int(graph["root"]))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"damaged JSON: {type(error).__name__}: {error}") from error


__all__ = ["is_value", "load"]
