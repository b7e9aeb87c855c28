# SPDX-License-Identifier: Apache-2.0
"""Whole-graph tuners. The classic ones trade kernel times against the layout changes between kernels. Here all convolutions of a model
share one channel block and halos are kept in the buffers, so there are no layout changes between kernels, and the best record of each
kernel is also best for the graph."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .record import encode, load_from_file
from .task.task import extract_from_program


class BaseGraphTuner:
    """graph: a module or function; records: a log's path or (input, result) pairs; target_ops: operators whose kernels are chosen."""

    def __init__(self, graph: Any, input_shapes: Mapping[str, Sequence[int]], records: Any, target_ops: Sequence[Any], target: Any, max_sch_num: int = 20,
                 dtype: str = "float32", verbose: bool = True, log_file: str = "graph_tuner.log", log_level: int = 20, name: str = "graph_tuner"):
        self._tasks = extract_from_program(graph, _weights(graph, input_shapes), target, ops=target_ops)
        self._records = list(load_from_file(records) if isinstance(records, (str, os.PathLike)) else records)
        self._best: list[tuple[Any, Any]] = []

    def benchmark_layout_transform(self, *_: Any, **__: Any) -> None:
        """Nothing to measure: each kernel reads the layout that its producer writes."""

    def run(self, **_: Any) -> None:
        """Picks the best record of each workload of the graph. ValueError if one has none."""
        self._best = []
        for task in self._tasks:
            own = [r for r in self._records if r[0].task.workload == task.workload and r[1].error_no == 0]
            if not own:
                raise ValueError(f"the records have none for {task.workload}")
            self._best.append(min(own, key=lambda r: sum(r[1].costs) / len(r[1].costs)))

    def get_optimal_records(self) -> list[tuple[Any, Any]]:
        """(input, result) of each workload. RuntimeError: before run()."""
        if not self._best:
            raise RuntimeError("run() comes first")
        return self._best

    def write_opt_sch2record_file(self, record_file: str = "graph_opt_schedule.log") -> None:
        """Writes the chosen records as a log."""
        with open(record_file, "w") as out:
            for inp, result in self.get_optimal_records():
                out.write(encode(inp, result) + "\n")


def _weights(graph: Any, input_shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """A placeholder for each weight: tasks depend on weights being constant, not on their values."""
    function = graph["main"] if hasattr(graph, "get_global_vars") else graph
    types = {p.name_hint: p.type_annotation for p in function.params if p.name_hint not in input_shapes}
    return {name: np.ones([int(d) for d in t.shape], t.dtype) for name, t in types.items()}


class DPTuner(BaseGraphTuner):
    """The classic dynamic programming; see the module."""


class PBQPTuner(BaseGraphTuner):
    """The classic PBQP; see the module."""


__all__ = ["BaseGraphTuner", "DPTuner", "PBQPTuner"]
