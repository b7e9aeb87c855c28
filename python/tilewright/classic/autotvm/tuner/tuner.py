# SPDX-License-Identifier: Apache-2.0
"""Tuners: choose which configurations of a task to measure next."""
from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .... import _core
from ..env import GLOBAL_SCOPE
from ..measure import MeasureInput, MeasureResult, create_measure_batch
from ..utils import format_si_prefix

logger = logging.getLogger("autotvm")
_FAILED = 1e9  # seconds


def seconds_of(result: MeasureResult | None) -> float:
    """The mean seconds of a trial; _FAILED if it failed or was not measured."""
    return float(np.mean(result.costs)) if result is not None and result.error_no == 0 else _FAILED


class Tuner:
    """Proposes configurations by one of the compiler's searches, named by `search`."""
    search = "random"

    def __init__(self, task: Any, **kwargs: Any):
        self.task, self.param = task, kwargs
        self.best_config: Any = None
        self.best_flops, self.best_iter = 0.0, 0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.error_ct_threshold, self.ttl = 150, 0
        self.seed = int(np.random.randint(0, 1 << 31))  # np.random.seed makes a script's tuning reproducible
        self.reset()

    def reset(self) -> None:
        """Forgets all measurements."""
        self.best_config, self.best_flops, self.best_iter, self.best_measure_pair = None, 0.0, 0, None
        self._search = self.task.search(self.search, self.seed)
        # The cost model's choice is measured first, so that the log shows what improves on it.
        chosen = None if self.task.core is None else self.task.core.chosen
        self._waiting: list[int] = [] if chosen is None else [chosen]
        for index in self._waiting:
            self._search.learn(index, _FAILED)

    def rate(self, result: MeasureResult) -> float:
        """Operations per second; 0 for a failed trial. A task without an operation count uses one operation."""
        return (self.task.flop or 1.0) / seconds_of(result) if result.error_no == 0 else 0.0

    def has_next(self) -> bool:
        """Whether there are configurations that were not proposed yet."""
        while not self._waiting and (more := self._search.propose(1)):
            self._waiting = [i for i in more if self.task.config_space.is_index_valid(i)]
        return bool(self._waiting)

    def next_batch(self, batch_size: int) -> list[Any]:
        """Up to `batch_size` configurations."""
        indices = self._waiting[:batch_size]
        self._waiting = self._waiting[batch_size:]
        while len(indices) < batch_size and (more := self._search.propose(batch_size - len(indices))):
            indices += [i for i in more if self.task.config_space.is_index_valid(i)]
        return [self.task.config_space.get(i) for i in indices]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learns from measurements."""
        for inp, result in zip(inputs, results):
            self._search.learn(inp.config.index, seconds_of(result))

    def load_history(self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500) -> None:
        """Learns from records of the same workload; their configurations are not measured again."""
        for inp, result in data_set:
            if inp.task.workload != self.task.workload or result.error_no != 0:
                continue
            index = self.task.index_of(inp.config)
            if index is not None:
                self._search.learn(index, seconds_of(result))

    def tune(self, n_trial: int, measure_option: Any, early_stopping: int | None = None, callbacks: Sequence[Any] = (), si_prefix: str = "G") -> None:
        """Measures n_trial configurations, or the whole space; stops early after `early_stopping` trials without improvement. Errors:
        tilewright.Error if nothing can be measured."""
        format_si_prefix(0, si_prefix)
        measure_batch = create_measure_batch(self.task, measure_option)
        stop_after = early_stopping or float("inf")
        self.n_trial, self.early_stopping = n_trial, early_stopping
        done, errors = 0, 0
        GLOBAL_SCOPE.in_tuning = True
        try:
            while done < n_trial and self.has_next():
                configs = self.next_batch(min(measure_batch.n_parallel, n_trial - done))  # type: ignore[attr-defined]
                inputs = [MeasureInput(self.task.target, self.task, config) for config in configs]
                results = measure_batch(inputs)
                for k, (inp, result) in enumerate(zip(inputs, results)):
                    rate = self.rate(result)
                    errors = 0 if result.error_no == 0 else errors + 1
                    if rate > self.best_flops:
                        self.best_flops, self.best_config, self.best_measure_pair, self.best_iter = rate, inp.config, (inp, result), done + k
                    logger.debug("No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s", done + k + 1, si_prefix, format_si_prefix(rate, si_prefix),
                                 format_si_prefix(self.best_flops, si_prefix), result, inp.config)
                done += len(inputs)
                self.ttl = int(min(self.best_iter + stop_after, n_trial) - done)
                self.update(inputs, results)
                for callback in callbacks:
                    callback(self, inputs, results)
                if done >= self.best_iter + stop_after:
                    break
                if errors > self.error_ct_threshold:
                    logger.warning("Too many errors happen in the tuning of %s", self.task.name)
                    break
        finally:
            GLOBAL_SCOPE.in_tuning = False


class RandomTuner(Tuner):
    """Random order without repetition."""

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None):
        super().__init__(task, range_idx=range_idx)


class GridSearchTuner(RandomTuner):
    """All configurations in index order."""
    search = "grid"


class GATuner(Tuner):
    """Genetic search: crossover and mutation of the best so far. The population parameters are checked but have no effect: the compiler
    chooses them."""
    search = "genetic"

    def __init__(self, task: Any, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1):
        if pop_size < 1 or elite_num > pop_size:
            raise ValueError("The number of elites must be less than population size")
        super().__init__(task, pop_size=pop_size, elite_num=elite_num, mutation_prob=mutation_prob)


__all__ = ["GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "seconds_of"]
