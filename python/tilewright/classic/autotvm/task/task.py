# SPDX-License-Identifier: Apache-2.0
"""Tasks: workloads with several candidate kernels."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .... import _core
from ...target import Target
from .space import ConfigSpace, KernelSpace


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments in the form of records: a tensor is ("TENSOR", shape, dtype). TypeError: anything but tensors, numbers, strings and
    lists."""
    def one(value: Any) -> Any:
        if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, (str, bytes)):
            return ("TENSOR", tuple(int(getattr(d, "value", d)) for d in value.shape), str(value.dtype))
        if isinstance(value, (list, tuple)):
            return tuple(one(v) for v in value)
        if value is None or isinstance(value, (str, int, float)):
            return value
        if hasattr(value, "value"):
            return value.value
        raise TypeError(f"an argument of a task is a {type(value).__name__}; tensors, numbers, texts and lists of them are taken")
    return tuple(one(a) for a in args)


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Arguments as passed to a template: tensors become placeholders."""
    out: list[Any] = []
    for arg in args:
        if isinstance(arg, (list, tuple)) and len(arg) == 3 and arg[0] == "TENSOR":
            from ... import te
            out.append(te.placeholder(shape=arg[1], dtype=arg[2]))
        else:
            out.append(arg)
    return out


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """(name, argument, ...); without a name only the arguments."""
    return (() if task_name is None else (task_name,)) + serialize_args(args)


def _flop(name: str, args: Sequence[Any], counted: float) -> float:
    """The classic count of operations: two per multiply-add, seven per element of a padded input, and one per sum of dense_nopack."""
    if name.startswith("conv2d_NCHWc") and len(args) >= 5:
        (_, (n, ci, h, w), _), (_, (co, _, kh, kw), _), (sh, sw), padding, (dh, dw) = args[:5]
        top, left, bottom, right = padding
        oh, ow = (h + top + bottom - (kh - 1) * dh - 1) // sh + 1, (w + left + right - (kw - 1) * dw - 1) // sw + 1
        padded = n * ci * (h + top + bottom) * (w + left + right) if any(padding) else 0
        return 2 * n * co * oh * ow * ci * kh * kw + 7 * padded
    if name.startswith("dense") and len(args) >= 2:
        (_, (m, k), _), (_, (n, _), _) = args[:2]
        return 2 * m * n * k + (m * n if name.startswith("dense_nopack") else 0)
    return counted


class Task:
    """A workload: name, arguments, target and space. `core` is the compiler's task, None for one read from a log."""

    def __init__(self, name: str, args: Sequence[Any]):
        self.name, self.args, self.kwargs = name, tuple(args), {}
        self.workload = args_to_workload(args, name)
        self.target: Any = None
        self.target_host: Any = None
        self.config_space: Any = None
        self.flop: float | None = None
        self.core: Any = None
        self.op_name = ""

    def instantiate(self, config: Any) -> tuple[str, str]:
        """The kernel's name and configuration. ValueError: not a configuration of this task."""
        found = None if self.core is None or config.index is None else self.core.configuration(config.index)
        if found is None:
            raise ValueError(f"{config} is no kernel of {self.name}")
        return found  # type: ignore[no-any-return]

    def search(self, name: str, seed: int) -> Any:
        """A search of the compiler over the space."""
        return _core.search_of_task(self.core, name, seed)

    def index_of(self, config: Any) -> int | None:
        """The index of a record's configuration; None if the space does not contain it."""
        return self.core.index_of_entity(json.dumps(config.to_json_dict()["entity"]))  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "args": self.args, "target": str(self.target)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["name"], state["args"])  # type: ignore[misc]
        self.target = Target(state["target"])

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={self.kwargs}, workload={self.workload})"


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _from_core(core: Any) -> Task:
    task = Task(core.name, _tuples(json.loads(core.args)))
    task.core, task.target = core, Target(core.target)
    task.config_space = KernelSpace(core, task.workload)
    task.flop = _flop(task.name, task.args, core.flops)
    task.op_name = core.op.replace("contrib_depthwise_", "").replace("contrib_", "").replace("_NCHWc", "")
    return task


def extract_from_program(mod: Any, params: Any, target: Any, target_host: Any = None, ops: Any = None) -> list[Task]:
    """The distinct tasks of a module or function. ops: only tasks of these operators. `params` become constants, because kernels with
    packed weights require constant weights. Errors: tilewright.Error."""
    from ...relay.build_module import _module_of, _processor, _targets
    from ...transform import PassContext
    options = PassContext(opt_level=3).build_options(_processor(_targets(target, target_host)))
    wanted = None if ops is None else {getattr(op, "name", str(op)) for op in ops}
    tasks = [_from_core(core) for core in _core.extract_tasks(_module_of(mod, params), options)]
    return [t for t in tasks if wanted is None or t.op_name in wanted]


def extract_from_multiple_program(mods: Sequence[Any], params: Sequence[Any], target: Any, target_host: Any = None, ops: Any = None) -> list[Task]:
    """The distinct tasks of all modules. ValueError: the number of params differs."""
    if len(mods) != len(params):
        raise ValueError(f"{len(mods)} modules and {len(params)} params")
    out: dict[Any, Task] = {}
    for mod, values in zip(mods, params):
        for task in extract_from_program(mod, values, target, target_host, ops):
            out.setdefault(task.workload, task)
    return list(out.values())


def create(task_name: Any, args: Sequence[Any], target: Any, target_host: Any = None) -> Task:
    """Creates a task by its classic name and arguments, of a template or of the built-in kernels. ValueError: no such task."""
    from .templates import TASK_TABLE, TemplateTask
    from .workloads import module_of
    task_name = task_name if isinstance(task_name, str) else next((n for n, t in TASK_TABLE.items() if t.fcustomized is task_name), str(task_name))
    if task_name in TASK_TABLE:
        return TemplateTask(task_name, args, target if isinstance(target, Target) else Target(target, target_host))
    workload = args_to_workload(args, task_name)
    for task in extract_from_program(module_of(task_name, workload[1:]), None, target, target_host):
        if task.workload == workload:
            return task
    raise ValueError(f"there is no task {task_name} with the arguments {workload[1:]} for {target}")


def get_config() -> Any:
    """Inside a template: its configuration, or its space while that is being defined. RuntimeError outside."""
    from .dispatcher import current_config
    config = current_config()
    if config is None:
        raise RuntimeError("get_config is called by templates, while a task is made or built")
    return config


def __getattr__(name: str) -> Any:  # a module attribute, because that module imports this one
    if name in ("compute_flop", "FlopCalculationError", "template", "TaskTemplate"):
        from . import templates
        return getattr(templates, name)
    raise AttributeError(name)


__all__ = ["ConfigSpace", "Task", "args_to_workload", "create", "deserialize_args", "extract_from_multiple_program", "extract_from_program", "get_config",
           "serialize_args"]
