# SPDX-License-Identifier: Apache-2.0
"""Tunable computations, and schedules that find what they schedule by the workload that the computation left."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .... import _core
from .task import args_to_workload, deserialize_args, serialize_args
from .templates import config_of, register_task_compute, register_task_schedule


def get_workload(outs: Any, task_name: str | None = None) -> Any:
    """The workload of what a registered compute made; of a task by its name where several computes lie behind one another. None: there is none."""
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
    """A tunable computation: func(cfg, *args) gives a tensor. Called without cfg, which is the current configuration of its workload."""
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
    """The schedule of a tunable computation: func(cfg, outs, ...) gives one. Called without cfg."""
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
