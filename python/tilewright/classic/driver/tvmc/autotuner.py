# SPDX-License-Identifier: Apache-2.0
"""Tunes a model: one tuner per task, one log for all."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from ... import autotvm
from ...target import Target
from .common import TVMCException
from .compiler import convert_graph_layout
from .model import TVMCModel

TUNERS = {"ga": autotvm.GATuner, "random": autotvm.RandomTuner, "gridsearch": autotvm.GridSearchTuner, "xgb": autotvm.XGBTuner, "xgb-rank": autotvm.XGBTuner,
          "xgb_knob": autotvm.XGBTuner}


def tune_model(tvmc_model: Any, target: Any, tuning_records: str | None = None, prior_records: str | None = None, enable_autoscheduler: bool = False,
               rpc_key: str | None = None, hostname: str | None = None, port: Any = 9090, trials: int = 10000, target_host: Any = None, tuner: str = "xgb",
               min_repeat_ms: float | None = None, early_stopping: int | None = None, desired_layout: str | None = None, timeout: float = 10, repeat: int = 1,
               number: int = 10, hardware_params: Any = None, include_simple_tasks: bool = False, log_estimated_latency: bool = False,
               additional_target_options: Mapping[str, Mapping[str, Any]] | None = None, parallel: int = 8,
               tasks_filter: Sequence[int] | None = None) -> str:
    """Tunes the model and returns the path of the log, tuning_records or a new file. trials: the total number, shared by the tasks.
    Errors: TVMCException, tilewright.Error."""
    if enable_autoscheduler or rpc_key or hostname:
        raise TVMCException("models are tuned by autotvm's tuners on this machine: leave enable_autoscheduler, rpc_key and hostname out")
    if tuner not in TUNERS:
        raise TVMCException(f"the tuner '{tuner}' is not known; there are {', '.join(TUNERS)}")
    if not isinstance(tvmc_model, TVMCModel):
        tvmc_model = TVMCModel(tvmc_model, {})
    options = {k: v for k, v in ((additional_target_options or {}).get("llvm") or {}).items() if v is not None}
    chosen = Target(target, target_host)
    chosen = Target({**chosen.export(), **options}) if options else chosen
    if tuning_records is None:
        handle, tuning_records = tempfile.mkstemp(suffix=".json")
        os.close(handle)
    module = convert_graph_layout(tvmc_model.mod, desired_layout) if desired_layout else tvmc_model.mod
    tasks = autotvm.task.extract_from_program(module, tvmc_model.params, chosen)
    if tasks_filter is not None:
        tasks = [tasks[i] for i in tasks_filter]
    runner = autotvm.LocalRunner(timeout=timeout, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms or 0)
    option = autotvm.measure_option(autotvm.LocalBuilder(n_parallel=parallel), runner)
    known = list(autotvm.record.load_from_file(prior_records)) if prior_records else []
    open(tuning_records, "a").close()  # creates the log even if there is nothing to tune
    for i, task in enumerate(tasks):
        one = TUNERS[tuner](task)
        one.load_history(known)
        share = max(1, min(trials // len(tasks), len(task.config_space)))
        one.tune(n_trial=share, early_stopping=early_stopping, measure_option=option,
                 callbacks=[autotvm.callback.progress_bar(share, prefix=f"[Task {i + 1:2d}/{len(tasks):2d}] "), autotvm.callback.log_to_file(tuning_records)])
    return tuning_records


__all__ = ["TUNERS", "tune_model"]
