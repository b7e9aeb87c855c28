# SPDX-License-Identifier: Apache-2.0
"""Modules, types, passes and instruments under their classic names."""
from __future__ import annotations

import abc
import hashlib
import json
from typing import Any

import numpy as np

from ... import _core
from .. import tir, transform
from ..error import InvalidValue
from ..runtime.container import Array, Map
from ..tir import FloatImm, IntImm
from ..tir.range import Range
from . import diagnostics, instrument, memory_pools
from .affine_type import TensorAffineType, TupleAffineType
from .env_func import EnvFunc
from .memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from .module import IRModule
from .ty import (FuncType, GlobalTypeVar, IncompleteType, PointerType, PrimType, RelayRefType, TensorType, TupleType, Type, TypeCall, TypeConstraint, TypeKind, TypeRelation, TypeVar)


_LOOPS = (_core.PrimExpr, _core.Stmt)


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two modules, expressions, types, attributes or containers of them are equal up to the names of bound variables."""
    if isinstance(lhs, (list, tuple)) and isinstance(rhs, (list, tuple)):
        return len(lhs) == len(rhs) and all(structural_equal(a, b, map_free_vars) for a, b in zip(lhs, rhs))
    if isinstance(lhs, dict) and isinstance(rhs, dict):
        return lhs.keys() == rhs.keys() and all(structural_equal(v, rhs[k], map_free_vars) for k, v in lhs.items())
    if not isinstance(lhs, (_core.IRModule, _core.Expr, _core.Type)) or not isinstance(rhs, (_core.IRModule, _core.Expr, _core.Type)):
        from ..relay.expr import TupleWrapper
        if isinstance(lhs, TupleWrapper) or isinstance(rhs, TupleWrapper):
            return structural_equal(getattr(lhs, "tuple_value", lhs), getattr(rhs, "tuple_value", rhs), map_free_vars)
        if (isinstance(lhs, _LOOPS) or isinstance(rhs, _LOOPS)) and all(isinstance(v, (*_LOOPS, int, float)) for v in (lhs, rhs)):
            return _dtype_of_number(lhs) == _dtype_of_number(rhs) and bool(_core.stmt_equal(lhs, rhs, map_free_vars))
        if all(isinstance(v, (int, float)) for v in (lhs, rhs)):
            return lhs == rhs and _dtype_of_number(lhs) == _dtype_of_number(rhs)
        if hasattr(lhs, "structurally_equals"):
            return lhs.structurally_equals(rhs)
        if isinstance(lhs, np.ndarray) or hasattr(lhs, "_array"):
            return np.array_equal(np.asarray(lhs), np.asarray(rhs))
        return bool(lhs == rhs)
    if isinstance(lhs, _core.IRModule) != isinstance(rhs, _core.IRModule) or isinstance(lhs, _core.Type) != isinstance(rhs, _core.Type):
        return False
    if isinstance(lhs, _core.IRModule):
        return lhs.structural_equal(rhs) and structural_equal(dict(lhs.attrs or {}), dict(rhs.attrs or {}), map_free_vars)
    if isinstance(lhs, _core.Type):
        if not structural_equal(list(getattr(lhs, "type_constraints", [])), list(getattr(rhs, "type_constraints", []))):
            return False
        return lhs == rhs or map_free_vars and _type_form(lhs, _Numbers()) == _type_form(rhs, _Numbers())
    if getattr(lhs, "_given_type_args", []) != getattr(rhs, "_given_type_args", []):
        return False
    return _core.structural_equal(lhs, rhs, map_free_vars) or _equal_when_typed(lhs, rhs, map_free_vars)


def _dtype_of_number(value: Any) -> str:
    """A constant's dtype, which Python's numbers have, too; of anything else, nothing."""
    return tir.expr.dtype_of(value) if isinstance(value, (int, float)) else ""


def _equal_when_typed(lhs: Any, rhs: Any, map_free_vars: bool) -> bool:
    """Compares two expressions of which one lacks types after inferring them, as the parser does."""
    from ..relay.expr import infer_type
    try:
        return _core.structural_equal(infer_type(lhs), infer_type(rhs), map_free_vars)
    except _core.Error:
        return False


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """ValueError with both texts if they differ."""
    if not structural_equal(lhs, rhs, map_free_vars):
        raise ValueError(f"StructuralEqual check failed:\n{lhs}\nand\n{rhs}")


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash that is equal for structurally equal values, in every process; free variables are hashed by identity unless map_free_vars."""
    def of(parts: Any) -> int:
        return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little") >> 1
    if isinstance(node, (list, tuple)):
        return of([structural_hash(n, map_free_vars) for n in node])
    if isinstance(node, dict):
        return of(sorted((str(k), structural_hash(v, map_free_vars)) for k, v in node.items()))
    if isinstance(node, _core.Type):
        return of(_type_form(node, _Numbers() if map_free_vars else {}))
    if isinstance(node, _core.IRModule):
        return node.structural_hash()
    if isinstance(node, _LOOPS):
        return _core.stmt_hash(node, map_free_vars)
    if hasattr(node, "structural_hash"):
        return node.structural_hash()
    return _core.structural_hash(node, map_free_vars) if isinstance(node, _core.Expr) else of((str(node), str(getattr(node, "dtype", ""))))


class _Numbers(dict):  # type: ignore[type-arg]
    """Numbers variables by their first occurrence."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, key: Any) -> int:
        self[key] = dict.__len__(self)
        return self[key]


def _type_form(t: Any, names: dict[Any, int]) -> Any:
    """A type as nested tuples, with bound variables numbered."""
    if isinstance(t, TypeVar):
        return ("variable", names[t], t.kind) if t in names else ("free", t.name_hint)
    if isinstance(t, FuncType):
        inner = names if isinstance(names, _Numbers) else {**names, **{v: len(names) + i for i, v in enumerate(t.type_params)}}
        return "fn", len(t.type_params), [_type_form(a, inner) for a in t.arg_types], _type_form(t.ret_type, inner)
    if isinstance(t, TupleType):
        return "tuple", [_type_form(f, names) for f in t.fields]
    if isinstance(t, TypeCall):
        return t.func.name_hint, [_type_form(a, names) for a in t.args]
    if isinstance(t, TensorType):  # all unknown sizes compare equal
        return "tensor", ["?" if "?" in str(d) else str(d) for d in t.shape], t.dtype
    return str(t)


def save_json(node: Any) -> str:
    """The classic JSON of a module, an expression, a type, an array, attributes, or a container of them."""
    from . import json_values
    if json_values.can_save(node):
        return json_values.save(node, save_json)
    from ..relay.expr import Constant, Function, Var, free_vars, _like
    from ..runtime.ndarray import NDArray
    if isinstance(node, _core.IRModule):
        return _core.save_json(node)
    if isinstance(node, _core.Type):
        part, whole = "type", Function([Var("x", node)], Var("y", TensorType((), "float32")))
    elif isinstance(node, NDArray):
        part, whole = "data", Function([], Constant(node))
    elif isinstance(node, Function):
        part, whole = "function", node
    else:
        node = _like(node)
        part, whole = "body", Function(free_vars(node), node)
    text = json.loads(_core.save_json(IRModule.from_expr(whole)))
    text["attrs"][_PART] = part
    return json.dumps(text)


def load_json(json_str: str) -> Any:
    """Reads what save_json wrote, here or in the classic stack, where a function becomes a module's "main". Error: 303."""
    from . import json_reader
    if json_reader.is_value(json_str):
        return json_reader.load(json_str, load_json)
    mod = _core.load_json(json_str)
    part = None
    if _PART in json_str:
        part = json.loads(json_str).get("attrs", {}).get(_PART)
    if part is None:
        return mod
    function = mod["main"]
    if part == "type":
        return function.params[0].type_annotation
    return function.body.data if part == "data" else function.body if part == "body" else function


def _reduce(self: Any) -> tuple[Any, tuple[str]]:
    """Modules, expressions and types are pickled as their JSON."""
    return load_json, (save_json(self),)


for _class in (_core.IRModule, _core.Expr, _core.Type):
    _class.__reduce__ = _reduce

# A file attribute that tells which part of main was saved.
_PART = "tilewright_part"


def make_node(type_key: str, **kwargs: Any) -> Any:
    """Creates a node by its classic type key: DictAttrs, operator attributes ("relay.attrs.Conv2DAttrs"), IntImm and the like."""
    from ..relay.expr import DictAttrs
    if type_key == "DictAttrs":
        return DictAttrs(kwargs)
    if type_key == "attrs.TestAttrs":
        return _test_attrs(kwargs)
    if type_key == "Tensor":
        return kwargs["op"].output(int(kwargs["value_index"]))
    if type_key in ("IntImm", "FloatImm"):
        return (IntImm if type_key == "IntImm" else FloatImm)(kwargs["dtype"], kwargs["value"])
    if type_key.startswith("relay.attrs."):
        for name in _core.op_names():
            try:
                attrs = _core.make_attrs(name, {})
            except _core.Error:
                continue
            if attrs is not None and attrs._type_key == type_key:
                return _core.make_attrs(name, kwargs)
    raise NotImplementedError(f"make_node({type_key!r}) is not supported; call the class of that name")


def _test_attrs(values: dict[str, Any]) -> Any:
    """The attributes with which the classic stack tests attributes: axis=10, name, padding, func."""
    from ..relay.expr import DictAttrs
    unknown = set(values) - {"axis", "name", "padding", "func"}
    if unknown or "name" not in values:
        raise InvalidValue(f"attrs.TestAttrs has axis, name, padding and func, not {', '.join(sorted(unknown)) or 'no name'}")
    if not 1 <= int(values.get("axis", 10)) <= 10:
        raise InvalidValue(f"attrs.TestAttrs: axis is {values['axis']}, not one of 1 to 10")
    return DictAttrs({"axis": 10, "name": None, "padding": None, "func": None, **values})


class Node(abc.ABC):
    """Common base of expressions, types, modules and attributes: `isinstance(x, Node)`."""


for _kind in (_core.Expr, _core.Type, _core.IRModule, _core.Attrs, _core.Pattern):
    Node.register(_kind)
Object = Node


class CallingConv:
    """Calling conventions of loop functions, by number."""
    DEFAULT, C_PACKED_FUNC, DEVICE_KERNEL_LAUNCH = 0, 1, 2


def register_intrin_lowering(op_name: str, target: str, *, f: Any = None, level: int = 10) -> Any:
    from ..relay.op.registry import register_intrin_lowering as register
    return register(op_name, target, f=f, level=level)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    from ..relay.op.registry import register_op_attr as register
    return register(op_name, attr_key, value, level)


# Classic module files and the modules here that have their contents.
_FILES = {"adt": "..relay.adt", "attrs": "..relay.expr", "base": "..ir", "container": "..runtime.container", "expr": "..relay.expr", "function": "..relay.expr",
          "op": ".op", "tensor_type": ".ty", "type": ".ty", "type_relation": ".ty"}


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
    if name == "PrimExpr":
        return tir.PrimExpr
    if name in _FILES:
        import importlib
        return importlib.import_module(_FILES[name], __package__)
    raise AttributeError(f"tilewright.ir has no '{name}'")


__all__ = ["Array", "CallingConv", "ConstantMemoryPools", "ConstantPoolInfo", "EnvFunc", "FloatImm", "FuncType", "GlobalTypeVar", "IRModule", "IncompleteType", "IntImm", "Map",
           "Node", "PointerType", "PoolInfo", "PoolInfoProperties", "PrimType", "Range", "RelayRefType", "TensorAffineType", "TensorType", "TupleAffineType", "TupleType", "Type",
           "TypeCall", "TypeConstraint", "TypeKind", "TypeRelation", "TypeVar", "WorkspaceMemoryPools", "WorkspacePoolInfo", "assert_structural_equal", "diagnostics", "instrument",
           "load_json", "make_node", "memory_pools", "register_intrin_lowering", "register_op_attr", "save_json", "structural_equal", "structural_hash", "tir", "transform"]
