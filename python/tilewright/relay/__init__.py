# SPDX-License-Identifier: Apache-2.0
"""The graph language: expressions, import, passes and build under their classic names."""
from __future__ import annotations

from ..ir import IRModule
from ..runtime import load_param_dict, save_param_dict
from . import backend, dataflow_pattern, expr, expr_functor, frontend, op, transform
from .backend import Executor, Runtime
from . import build_module
from .build_module import BuildModule, GraphExecutorFactory, build, build_config, create_executor, optimize
from .expr import (Call, Constant, Expr, Function, GlobalVar, If, Let, TensorType, Tuple, TupleGetItem, Var, bind, const, fromtext, var)
from .expr_functor import ExprMutator, ExprVisitor
from .op import annotation, image, nn


def __getattr__(name: str):
    """Operators of the top level: relay.add, relay.reshape ..."""
    if name == "testing":
        import importlib
        return importlib.import_module(".testing", __name__)
    return getattr(op, name)


__all__ = ["BuildModule", "Call", "Constant", "Executor", "Expr", "ExprMutator", "ExprVisitor", "Function", "GlobalVar", "GraphExecutorFactory", "IRModule", "If", "Let", "Runtime",
           "TensorType", "Tuple", "TupleGetItem", "Var", "backend", "bind", "build", "build_config", "build_module", "const", "create_executor", "dataflow_pattern", "expr", "expr_functor", "frontend",
           "fromtext", "load_param_dict", "nn", "op", "optimize", "save_param_dict", "transform", "var"]
