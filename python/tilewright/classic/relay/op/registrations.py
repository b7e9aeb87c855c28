# SPDX-License-Identifier: Apache-2.0
"""Registrations about operators from classic scripts. Supported ones take effect as documented; unsupported ones raise an error that
names the replacement."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .... import _core
from ..expr import Call
from .registry import OpPattern, register_op_attr, registered


def register_pattern(op_name: str, pattern: int, level: int = 10) -> Any:
    """The operator's fusion class for `op.get_attr("TOpPattern")` and patterns; fusion itself uses the compiler's table."""
    return register_op_attr(op_name, "TOpPattern", pattern, level)


def register_stateful(op_name: str, stateful: bool, level: int = 10) -> Any:
    return register_op_attr(op_name, "TOpIsStateful", stateful, level)


def register_convert_op_layout(op_name: str, convert_layout: Any = None, level: int = 10) -> Any:
    """convert_layout(attrs, inputs, tinfos, desired_layouts) returns the call in other layouts. ConvertLayout calls it for the operators
    that it is given, and inserts layout_transform around the result."""
    return register_op_attr(op_name, "FTVMConvertOpLayout", convert_layout, level)


def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = 10) -> Any:
    """func(call, mixed_precision_type) returns [category, accumulation dtype, result dtype] for ToMixedPrecision. As a decorator, or
    with the function."""
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)


def register_fake_quantization_to_integer(op_name: str, func: Any = None, level: int = 10) -> Any:
    """func(expr, type_map) returns [the integer call, its TensorAffineType] for FakeQuantizationToInteger; type_map[x] is an operand's
    affine type. As a decorator, or with the function."""
    return register_op_attr(op_name, "FTVMFakeQuantizationToInteger", func, level)


def register_optional_fake_quantization_to_integer(op_name: str, func: Any = None, level: int = 10) -> Any:
    """As above, for use_qat, where no quantize follows."""
    return register_op_attr(op_name, "FTVMOptionalFakeQuantizationToInteger", func, level)


def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """compute(attrs, inputs, out_type) returns te tensors, with which builds compute the operator. As a decorator, or with the function."""
    return register_op_attr(op_name, "FTVMCompute", compute, level)


def register_schedule(op_name: str, schedule: Any = None, level: int = 10) -> Any:
    """schedule(outs), or schedule(attrs, outs, target), for the tensors of register_compute."""
    def adapted(given: Any) -> Any:
        count = len([p for p in inspect.signature(given).parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD])
        return given if count >= 3 else lambda attrs, outs, target: given(outs)
    if schedule is None:
        return lambda given: (register_op_attr(op_name, "TSchedule", adapted(given), level), given)[1]
    return register_op_attr(op_name, "TSchedule", adapted(schedule), level)


def _schedules(kind: str) -> Callable[..., Any]:
    def register_kind(op_name: str, level: int = 10) -> Any:
        from ... import topi
        return register_schedule(op_name, getattr(topi.generic, kind), level)
    register_kind.__name__ = f"register_{kind.removeprefix('schedule_')}_schedule"
    return register_kind


register_injective_schedule, register_reduce_schedule = _schedules("schedule_injective"), _schedules("schedule_reduce")
register_broadcast_schedule = register_injective_schedule


def schedule_injective(attrs: Any, outs: Any, target: Any) -> Any:
    """One fused loop over all elements, as a strategy's schedule."""
    from ... import topi
    with target:
        return topi.generic.schedule_injective(outs)


def register_external_compiler(op_name: str, fexternal: Any = None, level: int = 10) -> Any:
    return register_op_attr(op_name, "FTVMExternalCompiler", fexternal, level)


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"relay.op.{name} has no effect here; instead: {instead}")
    refuse.__name__ = name
    return refuse


REFUSED = {
    **dict.fromkeys(("register_shape_func", "register_injective_shape_func"), "operators type themselves; sizes that data decides are computed by dyn.* operators"),
}
register_shape_func = _refused("register_shape_func", REFUSED["register_shape_func"])


def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> Any:
    """fgradient(call, gradient of its result) returns the gradients of its operands. As a decorator, or with the function."""
    return register_op_attr(op_name, "FPrimalGradient", fgradient, level)


def refused(name: str) -> Callable[..., Any] | None:
    return _refused(name, REFUSED[name]) if name in REFUSED else None


def convert_layouts(mod: Any, desired: dict[str, list[str]]) -> tuple[Any, dict[str, list[str]]]:
    """The module after the registered rules for operators of `desired`, and the operators that are left for the compiler's pass."""
    rules = {name: rule for name, rule in registered("FTVMConvertOpLayout").items() if name in desired}
    if not rules:
        return mod, desired
    def asked(call: Call, attrs: Any, inputs: list[Any]) -> Any:
        return rules[call.op.name](attrs, inputs, [a.checked_type for a in call.args], desired[call.op.name])
    out = _core.rewrite_layouts(mod, {name: asked for name in rules})
    return out._completed(), {name: layouts for name, layouts in desired.items() if name not in rules}


__all__ = ["OpPattern", "convert_layouts", "refused", "register_broadcast_schedule", "register_compute", "register_convert_op_layout", "register_external_compiler", "register_fake_quantization_to_integer", "register_gradient", "register_injective_schedule",
           "register_mixed_precision_conversion", "register_optional_fake_quantization_to_integer", "register_pattern", "register_reduce_schedule", "register_schedule", "register_shape_func", "register_stateful", "schedule_injective"]
