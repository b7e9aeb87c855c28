# SPDX-License-Identifier: Apache-2.0
"""Templates: user functions that return a schedule and define its tuning knobs."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .... import _core
from ...target import Target
from .dispatcher import ApplyConfig, DispatchContext
from .space import ConfigEntity, ConfigSpace, InstantiationError
from .task import Task, args_to_workload, deserialize_args, serialize_args


class FlopCalculationError(RuntimeError):
    """Raised if the operations of a schedule cannot be counted."""


def compute_flop(sch: Any) -> float:
    """The number of arithmetic operations of a schedule. FlopCalculationError if it depends on a call or is 0; cfg.add_flop sets it
    explicitly."""
    try:
        count = float(_core.te_count_flops(sch))
    except RuntimeError as error:
        raise FlopCalculationError(str(error)) from error
    if count == 0:
        raise FlopCalculationError("Cannot find float number operation in this operator. Please use `cfg.add_flop` to manually set FLOP for this operator")
    return count


class TaskTemplate:
    """A template given as one function (schedule and arguments) or as a compute and a schedule function."""

    def __init__(self) -> None:
        self.fcompute: Callable[..., Any] | None = None
        self.fschedule: Callable[..., Any] | None = None
        self.fcustomized: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        args = tuple(deserialize_args(args))
        if self.fcustomized is not None:
            return self.fcustomized(*args, **kwargs)
        if self.fcompute is None or self.fschedule is None:
            raise ValueError("a template has a compute and a schedule: register_topi_compute and register_topi_schedule")
        made = self.fcompute(*args, **kwargs)
        outputs = [made] if isinstance(made, _core.Tensor) else list(made)
        inputs = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(t, _core.Tensor)]
        return self.fschedule(outputs, **kwargs), inputs + outputs


TASK_TABLE: dict[str, TaskTemplate] = {}


def _set(name: str, part: str, func: Callable[..., Any]) -> Callable[..., Any]:
    template = TASK_TABLE.setdefault(name, TaskTemplate())
    old = getattr(template, part)
    if old is not None and (old.__module__, old.__qualname__) != (func.__module__, func.__qualname__):
        raise ValueError(f"there is a template '{name}' already")
    setattr(template, part, func)
    return func


def _registering(name: str, part: str, func: Callable[..., Any] | None) -> Any:
    return functools.partial(_set, name, part) if func is None else _set(name, part, func)


def register_task_compute(name: str, func: Callable[..., Any] | None = None) -> Any:
    """Registers the compute function of a task: func(*args) returns tensors."""
    return _registering(name, "fcompute", func)


def register_task_schedule(name: str, func: Callable[..., Any] | None = None) -> Any:
    """Registers the schedule function of a task: func(tensors) returns a schedule."""
    return _registering(name, "fschedule", func)


def register_customized_task(name: str, func: Callable[..., Any] | None = None) -> Any:
    """Registers a whole template: func(*args) returns (schedule, arguments)."""
    return _registering(name, "fcustomized", func)


def template(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Makes a template of a function: `autotvm.task.create(task_name, args, target)` tunes it, and calling it uses the records of
    `autotvm.apply_history_best`."""
    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @register_customized_task(task_name)
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise ValueError("Do not support kwargs in template function call")
            config = config_of(args_to_workload(args, task_name))
            with ApplyConfig(config):
                return func(*args)
        return wrapper
    return decorate if func is None else decorate(func)


def config_of(workload: Any) -> Any:
    """The current context's configuration, or the task's own while it is created or instantiated."""
    return DispatchContext.current.query(Target.current(), workload)


class TemplateTask(Task):
    """A task of a template. The template runs in this process; its loops are compiled in worker processes."""

    def __init__(self, name: str, args: Sequence[Any], target: Any):
        super().__init__(name, serialize_args(args))
        self.func = TASK_TABLE[name]
        self.target = target
        space = ConfigSpace()
        sch, _ = self._called(space)
        if not space.valid():
            raise InstantiationError(f"the template {name} refuses every configuration: {'; '.join(space.errors)}")
        space.code_hash = getattr(sch, "code_hash", None)
        self.config_space = space
        self.flop = space.flop if space.flop is not None else compute_flop(sch)

    def _called(self, config: Any) -> tuple[Any, list[Any]]:
        with ApplyConfig(config), self.target:
            made = self.func(*self.args)
        try:
            sch, tensors = made
            return sch, list(tensors)
        except (TypeError, ValueError):
            raise TypeError(f"the template {self.name} gives {type(made).__name__}, not (schedule, arguments)") from None

    def instantiate(self, config: ConfigEntity) -> tuple[Any, list[Any]]:
        """The schedule and its arguments. InstantiationError: the template rejects the configuration."""
        config.flop, config.errors = 0, []
        made = self._called(config)
        if not config.valid():
            raise InstantiationError("; ".join(config.errors))
        return made

    def lowered(self, config: ConfigEntity) -> tuple[Any, list[int]]:
        """The lowered function of a configuration, and which arguments are results. Errors: those of instantiate and of lowering."""
        from ...driver.build_module import lower
        sch, tensors = self.instantiate(config)
        function = lower(sch, tensors, name="default_function")["default_function"]._lowered
        return function, [i for i, t in enumerate(tensors) if isinstance(t, _core.Tensor) and t.op.input_tensors]

    def search(self, name: str, seed: int) -> Any:
        return _core.search_of_knobs(self.config_space.dims or [1], name, seed)

    def index_of(self, config: ConfigEntity) -> int | None:
        index = config.index
        if index is None or not 0 <= index < len(self.config_space):
            return None
        return index if self.config_space.get(index).to_json_dict()["entity"] == config.to_json_dict()["entity"] else None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "template": True}

    def __setstate__(self, state: Any) -> None:
        self.__init__(state["name"], state["args"], Target(state["target"]))  # type: ignore[misc]


__all__ = ["FlopCalculationError", "TASK_TABLE", "TaskTemplate", "TemplateTask", "compute_flop", "config_of",
           "register_customized_task", "register_task_compute", "register_task_schedule", "template"]
