# SPDX-License-Identifier: Apache-2.0
"""A cost model trained on measurements: gradient-boosted trees by xgboost, if that package is installed."""
from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...error import Error
from ..task.entities import entity_to_json
from ..task.space import InstantiationError

_LOOPS, _SAMPLES = 12, 20
_ROUNDS = 80


def is_installed() -> bool:
    return importlib.util.find_spec("xgboost") is not None


def _numbers(entity: Any) -> list[float]:
    """Sizes as logarithms; permutations and plain values unchanged."""
    kind, value = entity_to_json(entity)
    if kind == "sp":
        return [float(np.log2(max(1, v))) for v in value[1:]]
    if kind == "an":
        return [float(("none", "unroll", "vec").index(v)) if v in ("none", "unroll", "vec") else 3.0 for v in value]
    if kind == "re":
        return [float(v) for v in value]
    return [float(value) if isinstance(value, (bool, int, float)) else float(sum(str(value).encode()) % 997)]


def knob_features(space: Any, config: Any) -> list[float]:
    """Knob features ("knob"), in the same positions for the whole space; -1 for knobs that an implementation does not have."""
    return [v for name, options in space.space_map.items()
            for v in (_numbers(config[name]) if name in config else [-1.0] * len(_numbers(options[0])))]


def loop_features(rows: Sequence[Sequence[float]]) -> list[float]:
    """Loop features of a schedule ("itervar"): a fixed number of rows, padded with zeros."""
    kept = [list(row) for row in rows[:_LOOPS]]
    width = len(rows[0]) if rows else 0
    return [v for row in kept for v in row] + [0.0] * (width * (_LOOPS - len(kept)))


def curve_features(rows: Sequence[Sequence[float]]) -> list[float]:
    """Curve features ("curve"): touched memory and computation as functions of the iteration count, sampled at equal distances."""
    if not rows:
        return [0.0] * (3 * _SAMPLES)
    table = np.array(sorted((row[0] + row[2], row[11] + row[12], row[14], row[15]) for row in rows))
    at = np.linspace(0, max(1.0, table[:, 0].max()), _SAMPLES)
    return [float(v) for column in (1, 2, 3) for v in np.interp(at, table[:, 0], table[:, column])]


class LearnedModel:
    """The model of one task. feature_type: "knob", "itervar" or "curve" (the last two need a template's loops; built-in kernels have
    knobs); loss_type: "rank", "reg" or "rank-binary". ModuleNotFoundError: xgboost is not installed."""

    def __init__(self, task: Any, feature_type: str = "itervar", loss_type: str = "rank", num_threads: int | None = None, seed: int = 0):
        if not is_installed():
            raise ModuleNotFoundError("the learned cost model needs the Python package xgboost (or xgboost-cpu)")
        self._task, self._kind, self._loss = task, feature_type if task.core is None else "knob", loss_type
        self._options = {"max_depth": 3, "eta": 0.3, "gamma": 1e-4, "min_child_weight": 1, "lambda": 1.0, "seed": seed, "nthread": num_threads or 1, "verbosity": 0,
                         "objective": "reg:squarederror" if loss_type == "reg" else "rank:pairwise"}
        self._known: dict[int, list[float] | None] = {}
        self._trees: Any = None

    def features(self, index: int) -> list[float] | None:
        """None if the template rejects the configuration."""
        if index not in self._known:
            config = self._task.config_space.get(index)
            try:
                if self._kind == "knob":
                    self._known[index] = knob_features(self._task.config_space, config)
                else:
                    rows = self._task.lowered(config)[0].loop_features()
                    self._known[index] = (loop_features if self._kind == "itervar" else curve_features)(rows) + knob_features(self._task.config_space, config)
            except (InstantiationError, Error, ValueError):
                self._known[index] = None
        return self._known[index]

    def fit(self, indices: Sequence[int], seconds: Sequence[float]) -> None:
        """Trains on measured seconds; failed trials count as infinitely slow."""
        import xgboost
        rows = [(f, s) for i, s in zip(indices, seconds) if (f := self.features(i)) is not None]
        if not rows:
            return
        best = min(s for _, s in rows)
        rates = np.array([best / s for _, s in rows], "float32")
        if self._loss == "rank-binary":
            rates = (rates >= np.quantile(rates, 0.7)).astype("float32")
        data = xgboost.DMatrix(np.array([f for f, _ in rows], "float32"), label=rates)
        if self._loss != "reg":
            data.set_group([len(rows)])
        self._trees = xgboost.train(self._options, data, _ROUNDS)

    def predict(self, indices: Sequence[int]) -> Any:
        """Scores, higher is faster; configurations that cannot be built get the lowest."""
        import xgboost
        features = [self.features(i) for i in indices]
        out = np.full(len(indices), -np.inf)
        kept = [k for k, f in enumerate(features) if f is not None]
        if kept and self._trees is not None:
            out[kept] = self._trees.predict(xgboost.DMatrix(np.array([features[k] for k in kept], "float32")))
        return out


__all__ = ["LearnedModel", "curve_features", "is_installed", "knob_features", "loop_features"]
