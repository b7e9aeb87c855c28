# SPDX-License-Identifier: Apache-2.0
"""Chooses the configuration of each workload during a build: nested contexts, innermost first."""
from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from .... import _core, options
from .space import ConfigEntity, FallbackConfigEntity

_UNTIL_NOW = 1e-12  # recorded time of a forced configuration: below any measured one


class DispatchContext:
    """Base class of contexts; `with` makes one current."""
    current: DispatchContext | None = None

    def __init__(self) -> None:
        self._old: DispatchContext | None = None
        self._updated: dict[Any, Any] = {}

    def query(self, target: Any, workload: Any) -> Any:
        """The configuration of a workload: an updated one, else this context's, else an outer context's."""
        found = self._updated.get(_key(workload))
        found = self._query_inside(target, workload) if found is None else found
        if found is None:
            found = (self._old or FallbackContext()).query(target, workload)
        return found

    def _query_inside(self, target: Any, workload: Any) -> Any:
        return None

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        """Sets the workload's configuration from now on."""
        self._updated[_key(workload)] = cfg

    def lines(self) -> list[str]:
        """The context's choices as log lines for a build, outer contexts first."""
        outer = self._old.lines() if self._old is not None else []
        forced = [_line(json.loads(key), cfg) for key, cfg in self._updated.items() if not cfg.is_fallback]
        return outer + self._lines_inside() + forced

    def _lines_inside(self) -> list[str]:
        return []

    def __enter__(self) -> Any:
        self._old, DispatchContext.current = DispatchContext.current, self
        return self

    def __exit__(self, *_: Any) -> None:
        DispatchContext.current = self._old


def _key(workload: Any) -> str:
    return json.dumps(workload)


def _line(workload: Any, cfg: Any) -> str:
    """A log line that forces the configuration."""
    return json.dumps({"input": ["llvm", workload[0], workload[1:], {}], "config": {**cfg.to_json_dict(), "index": cfg.index or 0},
                       "result": [[_UNTIL_NOW], 0, 0.0, 0.0], "version": 0.2, "tvm_version": "0.9.0"})


class ApplyHistoryBest(DispatchContext):
    """The best of the records in a log (by path), several logs, or (input, result) pairs. Errors: OSError, ValueError (not a record)."""

    def __init__(self, records: Any):
        super().__init__()
        self._records: list[tuple[Any, Any]] = []
        self.best_by_targetkey: dict[Any, tuple[Any, Any]] = {}
        self.best_by_model: dict[Any, tuple[Any, Any]] = {}
        if records:
            self.load(records)

    def load(self, records: Any) -> None:
        """Adds records."""
        from ..record import load_from_file
        if isinstance(records, (str, os.PathLike)):
            records = [records]
        records = list(records)
        for entry in records:
            for inp, result in load_from_file(entry) if isinstance(entry, (str, os.PathLike)) else [entry]:
                self._records.append((inp, result))
                if result.error_no != 0:
                    continue
                for key in inp.target.keys:
                    at = (key, inp.task.workload)
                    if at not in self.best_by_targetkey or _mean(result) < _mean(self.best_by_targetkey[at][1]):
                        self.best_by_targetkey[at] = (inp, result)

    def _query_inside(self, target: Any, workload: Any) -> Any:
        from ...target import Target
        for key in (Target(target) if isinstance(target, str) else target or Target("llvm")).keys:
            if (key, workload) in self.best_by_targetkey:
                return self.best_by_targetkey[key, workload][0].config
        return None

    def _lines_inside(self) -> list[str]:
        from ..record import encode
        return [encode(inp, result) for inp, result in self._records]


def _mean(result: Any) -> float:
    return sum(result.costs) / len(result.costs)


class ApplyGraphBest(ApplyHistoryBest):
    """The records that a graph tuner wrote."""


class ApplyConfig(DispatchContext):
    """One configuration of a task's space, for its workload."""

    def __init__(self, config: ConfigEntity):
        super().__init__()
        self._config = config

    def _query_inside(self, target: Any, workload: Any) -> Any:
        return self._config

    def _lines_inside(self) -> list[str]:
        if self._config.workload is None:
            raise ValueError("this configuration is of no known workload: take it from task.config_space.get(index)")
        return [_line(self._config.workload, self._config)]


class ApplyFixedConfig(DispatchContext):
    """For each task the first configuration of its space, for the named schedules."""

    def __init__(self, tasks: Iterable[Any], schedule_names: str | Iterable[str]):
        super().__init__()
        names = [schedule_names] if isinstance(schedule_names, str) else list(schedule_names)
        for task in tasks:
            if task.name in names:
                first = next(i for i in range(len(task.config_space)) if task.config_space.is_index_valid(i))
                self.update(task.target, task.workload, task.config_space.get(first))


class FallbackContext(DispatchContext):
    """No records: the cost model decides, and templates use their defaults. The entity of a workload is cached, so that a schedule sees
    what its compute function defined."""

    memory: dict[Any, Any] = {}

    def _query_inside(self, target: Any, workload: Any) -> Any:
        return self.memory.setdefault((str(target), _key(workload)), FallbackConfigEntity())

    def clear_cache(self, target: Any, workload: Any) -> None:
        self._updated.pop(_key(workload), None)
        self.memory.pop((str(target), _key(workload)), None)


DispatchContext.current = FallbackContext()  # the outermost context


def apply_history_best(records: Any) -> ApplyHistoryBest:
    """ApplyHistoryBest(records)."""
    return ApplyHistoryBest(records)


def apply_graph_best(records: Any) -> ApplyGraphBest:
    """ApplyGraphBest(records)."""
    return ApplyGraphBest(records)


def current_config() -> Any:
    """The result of get_config."""
    context = DispatchContext.current
    return context._config if isinstance(context, ApplyConfig) else None


def _records_now() -> Any:
    lines = DispatchContext.current.lines() if DispatchContext.current is not None else []
    return _core.record_chooser(lines) if lines else None


options.record_chooser = _records_now  # for tilewright.compile

__all__ = ["ApplyConfig", "ApplyFixedConfig", "ApplyGraphBest", "ApplyHistoryBest", "DispatchContext", "FallbackContext", "apply_graph_best",
           "apply_history_best", "current_config"]
