# SPDX-License-Identifier: Apache-2.0
"""Tasks, their spaces, and which configuration a build takes."""
from __future__ import annotations

from . import dispatcher, space, task
from .dispatcher import (ApplyConfig, ApplyFixedConfig, ApplyGraphBest, ApplyHistoryBest, DispatchContext, FallbackContext, apply_graph_best,
                         apply_history_best)
from .space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from .task import (Task, args_to_workload, create, deserialize_args, extract_from_multiple_program, extract_from_program, get_config, serialize_args)

__all__ = ["ApplyConfig", "ApplyFixedConfig", "ApplyGraphBest", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "DispatchContext", "FallbackConfigEntity",
           "FallbackContext", "Task", "apply_graph_best", "apply_history_best", "args_to_workload", "create", "deserialize_args", "dispatcher",
           "extract_from_multiple_program", "extract_from_program", "get_config", "serialize_args", "space", "task"]
