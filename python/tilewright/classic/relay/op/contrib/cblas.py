# SPDX-License-Identifier: Apache-2.0
"""The matrix products that the BLAS code generator supports (docs/external-codegen.md), in float32 and float64."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .... import ir
from ....transform import Sequential
from ... import transform
from ...dataflow_pattern import is_constant, is_op, wildcard
from .register import register_pattern_table

_PRODUCTS = {"nn.dense": 2, "nn.matmul": 2, "nn.batch_matmul": 3}


def _sizes(expr: Any, dtype: str) -> tuple[int, ...]:
    """The sizes of a tensor with this dtype, if all are known and non-zero; else ()."""
    tensor = expr.checked_type
    if getattr(tensor, "dtype", None) != dtype or not all(isinstance(d, int) or hasattr(d, "value") for d in tensor.shape):
        return ()
    sizes = tuple(int(d) for d in tensor.shape)
    return () if 0 in sizes else sizes


def _product(call: Any) -> bool:
    dtype = getattr(call.checked_type, "dtype", "")
    return dtype in ("float32", "float64") and all(len(_sizes(value, dtype)) == _PRODUCTS[call.op.name] for value in [call, *call.args])


for _name in _PRODUCTS:
    ir.register_op_attr(_name, "target.cblas", _product)


def make_pattern(name: str, with_bias: bool, with_relu: bool) -> Any:
    """A matrix product and its epilogue."""
    out = is_op(name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("add")(out, is_constant()) | is_op("nn.bias_add")(out, is_constant())
    return is_op("nn.relu")(out) if with_relu else out


def _check(call: Any) -> bool:
    """Whether BLAS supports the product; a bias must have one element per column."""
    columns = _sizes(call, call.checked_type.dtype)[-1:]
    while call.op.name not in _PRODUCTS:
        if call.op.name != "nn.relu":
            rank = len(call.checked_type.shape)
            bias = _sizes(call.args[1], call.checked_type.dtype)
            if bias[-1:] != columns or any(d != 1 for d in bias[:-1]) or len(bias) > rank:
                return False
            if call.op.name == "nn.bias_add" and int(call.attrs["axis"]) not in (-1, rank - 1):
                return False
        call = call.args[0]
    return _product(call)


@register_pattern_table("cblas")
def pattern_table() -> list[tuple[Any, ...]]:
    """[(name, pattern, check)], longest first."""
    return [("_".join(["cblas." + name.replace("nn.", ""), *(["bias"] if bias else []), *(["relu"] if relu else [])]), make_pattern(name, bias, relu), _check)
            for name in _PRODUCTS for bias, relu in ((True, True), (True, False), (False, True))]


def partition_for_cblas(mod: Any, params: Mapping[str, Any] | None = None, mod_name: str = "default") -> Any:
    """The module with the supported products as external functions; `params` become constants."""
    from ....runtime.ndarray import as_array
    if params:
        mod = mod.bind_params({name: as_array(value) for name, value in params.items()})
    steps = [transform.InferType(), transform.SimplifyInference(), transform.FoldConstant(), transform.MergeComposite(pattern_table()), transform.AnnotateTarget("cblas"),
             transform.MergeCompilerRegions(), transform.PartitionGraph(mod_name)]
    return Sequential(steps)(mod)


__all__ = ["make_pattern", "partition_for_cblas", "pattern_table"]
