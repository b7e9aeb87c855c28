# SPDX-License-Identifier: Apache-2.0
"""The tuner with a cost model."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..measure import MeasureInput, MeasureResult
from .cost_model import LearnedModel, is_installed
from .model_based_tuner import knob2point, point2knob
from .tuner import Tuner, seconds_of

logger = logging.getLogger("autotvm")
_POOL = 192  # candidates scored per plan


class XGBTuner(Tuner):
    """By a model. Kernels of the compiler's have its cost model, whose guesses alternate with what lies around the best so far; templates have one that is
    trained on what was measured, where xgboost is installed, and else the genetic search.

    plan_size: how many configurations are chosen with one training; feature_type ("itervar", "knob", "curve") and loss_type ("rank", "reg",
    "rank-binary"): of the trained model. model: "analytical" or "learned" instead of the default. `optimizer` and `diversity_filter_ratio` are checked only: a plan
    is the best of many candidates around the best so far and elsewhere, and a twentieth by chance."""

    def __init__(self, task: Any, plan_size: int = 64, feature_type: str = "itervar", loss_type: str = "rank", num_threads: int | None = None,
                 optimizer: Any = "sa", diversity_filter_ratio: float | None = None, log_interval: int = 50, *, model: str | None = None):
        if feature_type not in ("itervar", "knob", "curve"):
            raise ValueError(f"Invalid feature type: {feature_type}")
        if loss_type not in ("rank", "reg", "rank-binary"):
            raise RuntimeError(f"Invalid loss type: {loss_type}")
        if isinstance(optimizer, str) and optimizer not in ("sa", "reg"):
            raise ValueError(f"Invalid optimizer: {optimizer}")
        if model not in (None, "analytical", "learned") or model == "analytical" and task.core is None:
            raise ValueError(f"Invalid model: {model}; a template has no analytical one")
        if plan_size < 1:
            raise ValueError(f"Invalid plan size: {plan_size}")
        self._learns = model == "learned" or model is None and task.core is None and is_installed()
        self.search = "guided" if task.core is not None else "genetic"
        self._model_options = (feature_type, loss_type, num_threads)
        super().__init__(task, plan_size=plan_size, feature_type=feature_type, loss_type=loss_type)

    def reset(self) -> None:
        super().reset()
        self._model = LearnedModel(self.task, *self._model_options, seed=self.seed) if self._learns else None
        self._random = np.random.RandomState(self.seed % (1 << 31))
        self._measured: dict[int, float] = {}
        self._plan: list[int] = []
        self._planned_with = 0

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        super().update(inputs, results)
        self._measured.update((inp.config.index, seconds_of(result)) for inp, result in zip(inputs, results))

    def load_history(self, data_set: Any, min_seed_records: int = 500) -> None:
        records = list(data_set)
        super().load_history(records, min_seed_records)
        for inp, result in records:
            if inp.task.workload == self.task.workload and (index := self.task.index_of(inp.config)) is not None:
                self._measured[index] = seconds_of(result)

    def next_batch(self, batch_size: int) -> list[Any]:
        if self._model is None:
            return super().next_batch(batch_size)
        grown = len(self._measured) - self._planned_with
        if len(self._measured) >= min(16, self.param["plan_size"]) and (not self._plan or grown >= self.param["plan_size"]):
            self._plan_next()
        chosen: list[int] = []
        while self._plan and len(chosen) < batch_size:
            index = self._plan.pop(0)
            if index not in self._measured and index not in chosen:
                chosen.append(index)
        for index in chosen:
            self._search.learn(index, seconds_of(None))  # not proposed again
        return [self.task.config_space.get(i) for i in chosen] + super().next_batch(batch_size - len(chosen))

    def _plan_next(self) -> None:
        """Retrains the model and chooses the best of many candidates."""
        assert self._model is not None
        self._planned_with = len(self._measured)
        self._model.fit(list(self._measured), list(self._measured.values()))
        best = sorted(self._measured, key=self._measured.__getitem__)[:8]
        pool: list[int] = []
        for _ in range(3):
            fresh = dict.fromkeys(self._candidates(best))
            pool = [i for i in dict.fromkeys([*pool, *fresh]) if i not in self._measured]
            if not pool:
                return
            scores = self._model.predict(pool)
            pool = [pool[k] for k in np.argsort(-scores, kind="stable")[:_POOL]]
            best = [*best[:4], *pool[:8]]
        size = self.param["plan_size"]
        self._plan = pool[:max(1, size - size // 20)]
        logger.debug("XGB plan: %d configurations after %d measured ones", len(self._plan), len(self._measured))

    def _candidates(self, best: Sequence[int]) -> list[int]:
        """Half random, half mutations of the best ones in one or two knobs."""
        space = self.task.config_space
        dims = space.dims if self.task.core is None else []
        out = [int(self._random.randint(0, len(space))) for _ in range(_POOL // 2)]
        for _ in range(_POOL // 2):
            index = int(best[self._random.randint(0, len(best))])
            if not dims:  # spaces of several implementations have no common knobs: neighbours are nearby indices
                out.append(int(np.clip(index + self._random.randint(-64, 65), 0, len(space) - 1)))
                continue
            digits = point2knob(index, dims)
            for k in self._random.choice(len(dims), size=min(len(dims), 1 + int(self._random.randint(0, 2))), replace=False):
                digits[k] = int(self._random.randint(0, dims[k]))
            out.append(knob2point(digits, dims))
        return [i for i in out if space.is_index_valid(i)]


__all__ = ["XGBTuner"]
