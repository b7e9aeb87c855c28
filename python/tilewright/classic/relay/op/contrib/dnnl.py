# SPDX-License-Identifier: Apache-2.0
"""The operators and operator chains that the oneDNN code generator supports (docs/external-codegen.md): float32, activations NCHW,
weights OIHW."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .... import ir
from ....transform import Sequential
from ... import transform
from ...dataflow_pattern import is_constant, is_op, wildcard
from .register import register_pattern_table

_MOST_DIMENSIONS = 6


def _shape(expr: Any) -> tuple[int, ...] | None:
    """The shape of a float32 tensor if all sizes are known; else None."""
    tensor = expr.checked_type
    if getattr(tensor, "dtype", None) != "float32" or len(tensor.shape) > _MOST_DIMENSIONS:
        return None
    sizes = [int(d) if isinstance(d, int) or hasattr(d, "value") else None for d in tensor.shape]
    return None if None in sizes or 0 in sizes else tuple(int(d) for d in sizes if d is not None)


def _floats(call: Any) -> bool:
    return all(_shape(value) is not None for value in [call, *call.args])


def _one_broadcast(call: Any) -> bool:
    """Whether at least one operand has the result's shape."""
    out = _shape(call)
    return _floats(call) and out is not None and len(out) > 0 and out in (_shape(call.args[0]), _shape(call.args[1]))


def _convolution(call: Any) -> bool:
    a = call.attrs
    return _floats(call) and (a["data_layout"], a["kernel_layout"], a["out_layout"] or "NCHW", a["out_dtype"] or "float32") == ("NCHW", "OIHW", "NCHW", "float32")


def _pool(call: Any) -> bool:
    dilation = [int(d) for d in call.attrs["dilation"]] if "dilation" in call.attrs.keys() else [1]
    return _floats(call) and call.attrs["layout"] == "NCHW" and all(d == 1 for d in dilation)


def _product(call: Any) -> bool:
    return _floats(call) and len(_shape(call.args[0]) or ()) == 2


_RULES = {"nn.conv2d": _convolution, "nn.dense": _product, "nn.max_pool2d": _pool, "nn.avg_pool2d": _pool, "nn.global_avg_pool2d": lambda call: _floats(call) and call.attrs["layout"] == "NCHW",
          "add": _one_broadcast, "multiply": _one_broadcast, "nn.softmax": _floats}
for _name in ("nn.relu", "nn.leaky_relu", "tanh", "sigmoid", "clip", "exp", "log", "sqrt", "abs"):
    _RULES[_name] = _floats
for _name, _rule in _RULES.items():
    ir.register_op_attr(_name, "target.dnnl", _rule)


def make_pattern(name: str, with_bias: bool, with_eltwise: str | None, with_sum: bool = False) -> Any:
    """nn.conv2d or nn.dense with its epilogue."""
    out = is_op(name)(wildcard(), is_constant())
    if with_bias:
        out = is_op("add")(out, is_constant()) | is_op("nn.bias_add")(out, is_constant())
    if with_sum:
        out = is_op("add")(out, wildcard())
    return is_op(with_eltwise)(out) if with_eltwise else out


def _check(call: Any) -> bool:
    """Whether oneDNN supports every operator of a match on these tensors."""
    while getattr(call.op, "name", "") not in ("nn.conv2d", "nn.dense"):
        if not _floats(call):
            return False
        call = next(a for a in call.args if hasattr(a, "op") and hasattr(a, "args"))
    return _RULES[call.op.name](call)


@register_pattern_table("dnnl")
def pattern_table() -> list[tuple[Any, ...]]:
    """[(name, pattern, check)], longest first."""
    table = [("dnnl.conv2d_bias_sum_relu", make_pattern("nn.conv2d", True, "nn.relu", with_sum=True), _check)]
    for name in ("nn.conv2d", "nn.dense"):
        for with_bias in (True, False):
            for eltwise in ("nn.relu", "tanh", "sigmoid", None):
                if with_bias or eltwise:
                    parts = [name.replace("nn.", "dnnl."), *(["bias"] if with_bias else []), *([eltwise.split(".")[-1]] if eltwise else [])]
                    table.append(("_".join(parts), make_pattern(name, with_bias, eltwise), _check))
    return table


def partition_for_dnnl(mod: Any, params: Mapping[str, Any] | None = None, mod_name: str = "default") -> Any:
    """The module with the supported chains as external functions; `params` become constants."""
    from ....runtime.ndarray import as_array
    if params:
        mod = mod.bind_params({name: as_array(value) for name, value in params.items()})
    steps = [transform.CanonicalizeOps(), transform.InferType(), transform.SimplifyInference(), transform.FoldConstant(), transform.FoldScaleAxis(), transform.SimplifyExpr(),
             transform.FoldConstant(), transform.MergeComposite(pattern_table()), transform.AnnotateTarget("dnnl"), transform.MergeCompilerRegions(), transform.PartitionGraph(mod_name)]
    return Sequential(steps)(mod)


__all__ = ["make_pattern", "partition_for_dnnl", "pattern_table"]
