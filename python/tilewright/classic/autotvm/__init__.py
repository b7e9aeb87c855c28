# SPDX-License-Identifier: Apache-2.0
"""Tuning under its classic interface: tasks extracted from a model, tuners that measure their kernels, a log, and builds that use it.

tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params=params)
for task in tasks:
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(n_trial=64, measure_option=autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner()),
               callbacks=[autotvm.callback.log_to_file("log.json")])
with autotvm.apply_history_best("log.json"):
    lib = relay.build(mod, "llvm", params=params)"""
from __future__ import annotations

from . import env, graph_tuner, measure, record, task, tophub, tuner, utils
from .env import GLOBAL_SCOPE
from .measure import (LocalBuilder, LocalRunner, MeasureErrorNo, MeasureInput, MeasureResult, RPCRunner, create_measure_batch, measure_option)
from .task import (ApplyConfig, ApplyFixedConfig, ApplyGraphBest, ApplyHistoryBest, ConfigEntity, ConfigSpace, DispatchContext, FallbackContext, Task,
                   apply_graph_best, apply_history_best, args_to_workload, create, get_config, register_topi_compute, register_topi_schedule, template)
from .tuner import GATuner, GridSearchTuner, RandomTuner, XGBTuner, callback

__all__ = ["GLOBAL_SCOPE", "ApplyConfig", "ApplyFixedConfig", "ApplyGraphBest", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "DispatchContext",
           "FallbackContext", "GATuner", "GridSearchTuner", "LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult", "RPCRunner",
           "RandomTuner", "Task", "XGBTuner", "apply_graph_best", "apply_history_best", "args_to_workload", "callback", "create", "create_measure_batch", "env",
           "get_config", "graph_tuner", "measure", "measure_option", "record", "register_topi_compute", "register_topi_schedule", "task", "template", "tophub", "tuner", "utils"]
