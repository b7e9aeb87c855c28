# SPDX-License-Identifier: Apache-2.0
"""Tunable compute functions, and schedule functions that find the workload attached to the computed tensors."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .... import _core
from .task import args_to_workload, deserialize_args, serialize_args
from .templates import config_of, register_task_compute, register_task_schedule


def get_workload(outs: Any, task_name: str | None = None) -> Any:
    """The workload attached to a tensor by a registered compute function, or None; `task_name` selects one if several are chained."""
    outs = [outs] if isinstance(outs, _core.Tensor) else list(outs)
    seen: set[Any] = set()
    waiting = [t.op for t in outs]
    while waiting:
        op = waiting.pop(0)
        if op in seen:
            continue
        seen.add(op)
        workload = op.attrs.get("workload")
        if workload is not None and (task_name is None or workload[0] == task_name):
            return workload
        waiting += [t.op for t in op.input_tensors]
    return None


def _with_workload(tensor: Any, workload: Any) -> Any:
    op = tensor.op
    if not hasattr(op, "_values") or not op._values:
        raise ValueError(f"the compute of {workload[0]} gives a placeholder")
    made = _core.te_compute(op.name, op.axis, op.reduce_axis, op._values, op._combiner, op._condition if op._combiner is not None else None, op.tag,
                            {**op.attrs, "workload": workload})
    return made.output(tensor.value_index)


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Registers a tunable compute function func(cfg, *args) that returns a tensor. Callers omit cfg: it is the current configuration of
    the workload."""
    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @register_task_compute(task_name)
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise ValueError("Do not support kwargs in template function call")
            workload = args_to_workload(args, task_name)
            made = func(config_of(workload), *args)
            if isinstance(made, (list, tuple)):
                return type(made)([_with_workload(made[0], workload), *made[1:]])
            return _with_workload(made, workload)
        return wrapper
    return decorate if func is None else decorate(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Registers the schedule function func(cfg, outs, ...) of a tunable compute function. Callers omit cfg."""
    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @register_task_schedule(task_name)
        @functools.wraps(func)
        def wrapper(outs: Any, *args: Any, **kwargs: Any) -> Any:
            workload = get_workload(outs, task_name)
            if workload is None:
                raise ValueError(f"Cannot find workload in attribute of this schedule: none of its stages is of the task {task_name}")
            return func(config_of(workload), outs, *args, **kwargs)
        return wrapper
    return decorate if func is None else decorate(func)


__all__ = ["deserialize_args", "get_workload", "register_topi_compute", "register_topi_schedule", "serialize_args"]
