# SPDX-License-Identifier: Apache-2.0
"""Modules, types, passes and instruments under their classic names."""
from __future__ import annotations

import abc
from typing import Any

import numpy as np

from .. import _core, tir, transform
from ..tir import FloatImm, IntImm
from . import instrument
from .module import IRModule
from .ty import (FuncType, GlobalTypeVar, IncompleteType, PrimType, RelayRefType, TensorType, TupleType, Type, TypeCall, TypeKind, TypeVar)


def _pair(lhs: Any, rhs: Any, map_free_vars: bool) -> tuple[Any, Any]:
    """The two sides with their free variables, if those stand for each other, as parameters."""
    from ..relay.expr import Function, free_vars, _like
    if not isinstance(lhs, (_core.IRModule, _core.Type)):
        lhs, rhs = _like(lhs), _like(rhs)
        if map_free_vars:
            lhs, rhs = Function(free_vars(lhs), lhs), Function(free_vars(rhs), rhs)
    return lhs, rhs


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two modules, expressions, types, attributes or containers of them say the same; names of bound variables do not count."""
    if isinstance(lhs, (list, tuple)) and isinstance(rhs, (list, tuple)):
        return len(lhs) == len(rhs) and all(structural_equal(a, b, map_free_vars) for a, b in zip(lhs, rhs))
    if isinstance(lhs, dict) and isinstance(rhs, dict):
        return lhs.keys() == rhs.keys() and all(structural_equal(v, rhs[k], map_free_vars) for k, v in lhs.items())
    if not isinstance(lhs, (_core.IRModule, _core.Expr, _core.Type)) or not isinstance(rhs, (_core.IRModule, _core.Expr, _core.Type)):
        from ..relay.expr import TupleWrapper
        if isinstance(lhs, TupleWrapper) or isinstance(rhs, TupleWrapper):
            return structural_equal(getattr(lhs, "tuple_value", lhs), getattr(rhs, "tuple_value", rhs), map_free_vars)
        if isinstance(lhs, np.ndarray) or hasattr(lhs, "_array"):
            return np.array_equal(np.asarray(lhs), np.asarray(rhs))
        return bool(lhs == rhs)
    if isinstance(lhs, _core.IRModule) != isinstance(rhs, _core.IRModule) or isinstance(lhs, _core.Type) != isinstance(rhs, _core.Type):
        return False
    if isinstance(lhs, _core.IRModule):
        return lhs.structural_equal(rhs)
    if isinstance(lhs, _core.Type):
        return lhs == rhs
    from ..relay.expr import free_vars
    if not map_free_vars and free_vars(lhs) != free_vars(rhs):  # variables from outside are themselves
        return False
    lhs, rhs = _pair(lhs, rhs, map_free_vars)
    return _core.structural_equal(lhs, rhs)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """ValueError with both texts when they differ."""
    if not structural_equal(lhs, rhs, map_free_vars):
        raise ValueError(f"StructuralEqual check failed:\n{lhs}\nand\n{rhs}")


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """Equal for what is structurally equal."""
    if isinstance(node, (list, tuple)):
        return hash(tuple(structural_hash(n, map_free_vars) for n in node))
    if isinstance(node, _core.IRModule):
        return hash(tuple(sorted((g.name_hint, _core.structural_hash(f)) for g, f in node.functions.items())))
    return _core.structural_hash(_pair(node, node, map_free_vars)[0]) if isinstance(node, _core.Expr) else hash(node)


def save_json(node: Any) -> str:
    """The classic JSON of a module or an expression."""
    return _core.save_json(node if isinstance(node, _core.IRModule) else IRModule.from_expr(node))


def load_json(json_str: str) -> Any:
    """What save_json wrote, here or there: a module. Error: 303."""
    return _core.load_json(json_str)


def make_node(type_key: str, **kwargs: Any) -> Any:
    raise NotImplementedError(f"make_node({type_key!r}) is not supported; call the class of that name")


class Node(abc.ABC):
    """What expressions, types, modules and attributes have in common: `isinstance(x, Node)`."""


for _kind in (_core.Expr, _core.Type, _core.IRModule, _core.Attrs, _core.Pattern):
    Node.register(_kind)
Object = Node


class Array(list):
    """A list, under its classic name."""


class Map(dict):
    """A dict, under its classic name."""


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    from ..relay.op.registry import register_op_attr as register
    return register(op_name, attr_key, value, level)


# Classic files, and where their content is.
_FILES = {"adt": "..relay.adt", "attrs": "..relay.expr", "base": "..ir", "container": "..runtime.container", "expr": "..relay.expr", "function": "..relay.expr",
          "op": "..relay.expr", "tensor_type": ".ty", "type": ".ty", "type_relation": ".ty"}


def __getattr__(name: str) -> Any:
    if name in ("Op", "GlobalVar", "Span", "SourceName", "Attrs", "DictAttrs", "Call", "Function"):
        from ..relay import expr
        return getattr(expr, name)
    if name in ("Constructor", "TypeData"):
        from ..relay import adt
        return getattr(adt, name)
    if name in ("BaseFunc", "RelayExpr", "BaseExpr", "Expr"):
        from ..relay import expr
        return expr.Function if name == "BaseFunc" else expr.Expr
    if name in _FILES:
        import importlib
        return importlib.import_module(_FILES[name], __package__)
    raise AttributeError(f"tilewright.ir has no '{name}'")


__all__ = ["Array", "FloatImm", "FuncType", "GlobalTypeVar", "IRModule", "IncompleteType", "IntImm", "Map", "Node", "PrimType", "RelayRefType", "TensorType", "TupleType",
           "Type", "TypeCall", "TypeKind", "TypeVar", "assert_structural_equal", "instrument", "load_json", "make_node", "register_op_attr", "save_json",
           "structural_equal", "structural_hash", "tir", "transform"]
