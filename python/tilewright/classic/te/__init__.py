# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions, which define a computation element by element, and schedules, which define how it is executed (docs/te.md)."""
from __future__ import annotations

from ..tir.op import (abs, acos, acosh, all, any, asin, asinh, atan, atanh, ceil, ceildiv, cos, cosh, div, erf, exp, floor, floordiv, floormod, fmod, if_then_else, indexdiv,  # noqa: A004
                      indexmod, isfinite, isinf, isnan, log, log2, log10, max_value, min_value, nearbyint, popcount, power, round, rsqrt, sigmoid, sin, sinh, sqrt, tan, tanh, trace, trunc, truncdiv, truncmod)
from ..tir.reduction import comm_reducer, max, min, prod, sum  # noqa: A004
from .autodiff import gradient
from . import hybrid, operation, schedule, tag, tensor
from .lowering import create_prim_func
from .operation import compute, const, extern, extern_primfunc, placeholder, reduce_axis, scan, size_var, thread_axis, var
from .schedule import Schedule, SpecializedCondition, Stage, create_schedule
from .tag import tag_scope
from .tensor import ComputeOp, ExternOp, HybridOp, Operation, PlaceholderOp, ScanOp, Tensor, TensorSlice
from .tensor_intrin import TensorIntrin, decl_tensor_intrin

__all__ = ["ComputeOp", "ExternOp", "HybridOp", "Operation", "PlaceholderOp", "ScanOp", "Schedule", "SpecializedCondition", "Stage", "Tensor", "TensorIntrin", "TensorSlice", "abs", "acos", "acosh", "all", "any", "asin", "asinh", "atan", "atanh", "ceil", "ceildiv",
           "comm_reducer", "compute", "const", "cos", "cosh", "create_prim_func", "create_schedule", "decl_tensor_intrin", "div", "erf", "exp", "extern", "extern_primfunc", "floor", "floordiv", "floormod", "fmod", "gradient", "hybrid", "if_then_else", "indexdiv", "indexmod",
           "isfinite", "isinf", "isnan", "log", "log10", "log2", "max", "max_value", "min", "min_value", "nearbyint", "operation", "placeholder", "popcount", "power", "prod", "reduce_axis",
           "round", "rsqrt", "scan", "schedule", "sigmoid", "sin", "sinh", "size_var", "sqrt", "sum", "tag", "tag_scope", "tan", "tanh", "tensor", "thread_axis", "trace", "trunc", "truncdiv", "truncmod",
           "var"]
