# SPDX-License-Identifier: Apache-2.0
"""The graph language: expressions, import, passes and build under their classic names."""
from __future__ import annotations

import typing

from .. import runtime, tir
from ..ir import IRModule
from ..ir import ty
from ..ir import Node
from ..ir.ty import (FuncType, GlobalTypeVar, IncompleteType, RelayRefType, ShapeVar, TensorType, TupleType, TypeCall, TypeConstraint, TypeKind, TypeRelation, TypeVar, scalar_type)
from ..runtime import load_param_dict, save_param_dict
from . import adt, analysis, backend, dataflow_pattern, expr, expr_functor, frontend, loops, op, prelude, scope_builder, transform, type_functor
from .adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData
from .backend import Executor, Runtime
from . import build_module
from .build_module import BuildModule, GraphExecutorFactory, build, build_config, create_executor, optimize
from .expr import (Call, Constant, Expr, Function, GlobalVar, If, Let, RefCreate, RefRead, RefWrite, SourceName, Span, Tuple, TupleGetItem, TupleWrapper, Var, bind, const,
                   fromtext, var)
from .expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from .op import annotation, image, nn, vision
from .executors import ConstructorValue
from .loops import for_loop, while_loop
from .prelude import Prelude
from .scope_builder import ScopeBuilder
from .type_functor import TypeFunctor, TypeMutator, TypeVisitor
from .with_fields import (CallWithFields, ConstantWithFields, FunctionWithFields, IfWithFields, LetWithFields, MatchWithFields, RefCreateWithFields, RefReadWithFields,
                          RefWriteWithFields, TupleGetItemWithFields, TupleWithFields, VarWithFields)

from . import function  # noqa: E402,F401
param_dict = runtime
RefType = RelayRefType
Id = Var  # variables are compared by identity
ADT = adt.TypeData
Type = ty.Type
Any = tir.Any
from ..parser import parse  # noqa: E402


def astext(expr_: typing.Any, show_meta_data: bool = True, annotate: typing.Any = None) -> str:
    """Relay text of a module or an expression."""
    return expr_.astext(show_meta_data, annotate)


def pretty_print(obj: typing.Any) -> str:
    """Its text without the version and the constants."""
    return str(obj)


def shape_vars(names: str) -> list[Any]:
    """Symbolic sizes, from a string of space-separated names."""
    return [tir.Var(n) for n in names.split()]


def setrecursionlimit(limit: int) -> None:
    """Does nothing: the compiler's traversals are iterative."""


def __getattr__(name: str) -> typing.Any:
    """Resolves top-level operators (relay.add, relay.reshape ...) and modules that are loaded on first use."""
    if name in ("data_dep_optimization", "qnn", "quantize", "te_compiler", "testing", "vm"):
        import importlib
        return importlib.import_module(f".{name}", __name__)
    if name == "random":
        return op.random
    if name == "collage":
        raise AttributeError(f"relay.{name} is not supported; docs/migrating.md lists what is")
    return getattr(op, name)


__all__ = ["Any", "BuildModule", "Call", "CallWithFields", "Clause", "Constant", "ConstantWithFields", "Constructor", "ConstructorValue", "Executor", "Expr",
           "ExprFunctor", "ExprMutator", "ExprVisitor", "FuncType", "Function", "FunctionWithFields", "GlobalTypeVar", "GlobalVar", "GraphExecutorFactory",
           "IRModule", "If", "IfWithFields", "IncompleteType", "Let", "LetWithFields", "Match", "MatchWithFields", "Pattern", "PatternConstructor", "PatternTuple",
           "PatternVar", "PatternWildcard", "Prelude", "RefCreate", "RefCreateWithFields", "RefRead", "RefReadWithFields", "RefType", "RefWrite",
           "RefWriteWithFields", "Runtime", "ScopeBuilder", "SourceName", "Span", "TensorType", "Tuple", "TupleGetItem", "TupleGetItemWithFields", "TupleType",
           "TupleWithFields", "TupleWrapper", "ShapeVar", "TypeCall", "TypeConstraint", "TypeData", "TypeKind", "TypeMutator", "TypeRelation", "TypeVar", "TypeVisitor", "Var", "VarWithFields", "adt",
           "analysis", "annotation", "astext", "backend", "bind", "build", "build_config", "build_module", "const", "create_executor", "dataflow_pattern",
           "expr", "expr_functor", "for_loop", "fromtext", "frontend", "image", "load_param_dict", "loops", "nn", "op", "optimize", "parse", "prelude",
           "pretty_print", "save_param_dict", "scalar_type", "scope_builder", "transform", "ty", "type_functor", "var", "vision", "while_loop"]
