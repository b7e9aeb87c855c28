# SPDX-License-Identifier: Apache-2.0
"""Tasks, their configuration spaces, and the choice of a build's configurations."""
from __future__ import annotations

from . import dispatcher, space, task, topi_integration
from .dispatcher import (ApplyConfig, ApplyFixedConfig, ApplyGraphBest, ApplyHistoryBest, DispatchContext, FallbackContext, apply_graph_best,
                         apply_history_best)
from .space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from .space import InstantiationError
from .task import (Task, args_to_workload, create, deserialize_args, extract_from_multiple_program, extract_from_program, get_config, serialize_args)
from .templates import (FlopCalculationError, TaskTemplate, compute_flop, register_customized_task, register_task_compute, register_task_schedule, template)
from .topi_integration import get_workload, register_topi_compute, register_topi_schedule

__all__ = ["FlopCalculationError", "InstantiationError", "TaskTemplate", "compute_flop", "get_workload", "register_customized_task", "register_task_compute",
           "register_task_schedule", "register_topi_compute", "register_topi_schedule", "template", "topi_integration",
           "ApplyConfig", "ApplyFixedConfig", "ApplyGraphBest", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "DispatchContext", "FallbackConfigEntity",
           "FallbackContext", "Task", "apply_graph_best", "apply_history_best", "args_to_workload", "create", "deserialize_args", "dispatcher",
           "extract_from_multiple_program", "extract_from_program", "get_config", "serialize_args", "space", "task"]
