# SPDX-License-Identifier: Apache-2.0
"""Adapts functions of topi and their schedules to the signatures of strategy implementations."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def wrap_topi_compute(topi_compute: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Wraps a function of tensors as the compute function of an implementation."""
    def compute(attrs: Any, inputs: Any, out_type: Any) -> list[Any]:
        made = topi_compute(*inputs)
        return list(made) if isinstance(made, (list, tuple)) else [made]
    return compute


def wrap_topi_schedule(topi_schedule: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a schedule function of output tensors as the schedule of an implementation."""
    def schedule(attrs: Any, outs: Any, target: Any) -> Any:
        with target:
            return topi_schedule(outs)
    return schedule


wrap_custom_schedule = wrap_topi_schedule


def naive_schedule(attrs: Any, outs: Any, target: Any) -> Any:
    """Every stage in loops of its own."""
    from .... import te
    return te.create_schedule([t.op for t in outs])


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _out_dtype(attrs: Any, inputs: Any) -> str:
    asked = str(attrs.out_dtype)
    return inputs[0].dtype if asked in ("", "same") else asked


def wrap_compute_conv2d(topi_compute: Callable[..., Any], need_data_layout: bool = False, need_kernel_layout: bool = False, need_out_layout: bool = False,
                        has_groups: bool = False, **_: Any) -> Callable[..., list[Any]]:
    """Wraps (data, kernel, strides, padding, dilation[, layouts][, groups], out_dtype) as the compute function of nn.conv2d."""
    def compute(attrs: Any, inputs: Any, out_type: Any) -> list[Any]:
        args = [inputs[0], inputs[1], _ints(attrs.strides), _ints(attrs.padding), _ints(attrs.dilation)]
        if has_groups:
            args.append(int(attrs.groups))
        args += [attrs.data_layout] * need_data_layout + [attrs.kernel_layout] * need_kernel_layout + [attrs.out_layout] * need_out_layout
        return [topi_compute(*args, _out_dtype(attrs, inputs))]
    return compute


wrap_compute_conv1d = wrap_compute_conv3d = wrap_compute_conv2d


def wrap_compute_conv2d_transpose(topi_compute: Callable[..., Any], has_groups: bool = False, **_: Any) -> Callable[..., list[Any]]:
    """Wraps (data, kernel, strides, padding, out_dtype, output_padding[, groups]) as the compute function of nn.conv2d_transpose."""
    def compute(attrs: Any, inputs: Any, out_type: Any) -> list[Any]:
        groups = [int(attrs.groups)] * has_groups
        return [topi_compute(inputs[0], inputs[1], _ints(attrs.strides), _ints(attrs.padding), _out_dtype(attrs, inputs), _ints(attrs.output_padding), *groups)]
    return compute


def wrap_compute_dense(topi_compute: Callable[..., Any], need_auto_scheduler_layout: bool = False, need_meta_schedule_layout: bool = False) -> Callable[..., list[Any]]:
    """Wraps (data, weight, bias, out_dtype) as the compute function of nn.dense."""
    return lambda attrs, inputs, out_type: [topi_compute(inputs[0], inputs[1], None, _out_dtype(attrs, inputs))]


def wrap_compute_matmul(topi_compute: Callable[..., Any], **_: Any) -> Callable[..., list[Any]]:
    """Wraps (a, b, bias, out_dtype, transpose_a, transpose_b) as the compute function of nn.matmul."""
    return lambda attrs, inputs, out_type: [topi_compute(inputs[0], inputs[1], None, _out_dtype(attrs, inputs), bool(attrs.transpose_a), bool(attrs.transpose_b))]


def wrap_compute_batch_matmul(topi_compute: Callable[..., Any], *, need_out_dtype: bool = False, **_: Any) -> Callable[..., list[Any]]:
    """Wraps (a, b, result shape[, out_dtype, transpose_a, transpose_b]) as the compute function of nn.batch_matmul."""
    def compute(attrs: Any, inputs: Any, out_type: Any) -> list[Any]:
        more = [_out_dtype(attrs, inputs), bool(attrs.transpose_a), bool(attrs.transpose_b)] if need_out_dtype else []
        return [topi_compute(inputs[0], inputs[1], out_type.shape, *more)]
    return compute


__all__ = ["naive_schedule", "wrap_compute_batch_matmul", "wrap_compute_conv1d", "wrap_compute_conv2d", "wrap_compute_conv2d_transpose", "wrap_compute_conv3d", "wrap_compute_dense",
           "wrap_compute_matmul", "wrap_custom_schedule", "wrap_topi_compute", "wrap_topi_schedule"]
