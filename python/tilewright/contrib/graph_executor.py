# SPDX-License-Identifier: Apache-2.0
"""The graph executor under its classic interface."""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import Model
from ..runtime import NDArray


class BenchmarkResult(NamedTuple):
    """Seconds."""
    min: float
    mean: float
    median: float
    max: float
    std: float
    results: list[float]


class GraphModule:
    """Runs a model: `GraphModule(lib["default"](tw.cpu(0)))`."""

    def __init__(self, module: Model):
        self.module = module

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        if key is not None:
            self.module.set_input(key, value)
        for name, tensor in params.items():
            self.module.set_input(name, tensor)

    def run(self, **inputs: Any) -> None:
        self.set_input(**inputs)
        self.module.run()

    def get_num_outputs(self) -> int:
        return len(self.module.outputs)

    def get_num_inputs(self) -> int:
        return len(self.module.inputs)

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        number = index if isinstance(index, int) else self.module.input_index(index)
        result = NDArray(self.module._session.input(number))
        return result if out is None else out.copyfrom(result.numpy())

    def get_input_index(self, name: str) -> int:
        """-1 when there is no such input."""
        return next((i for i, t in enumerate(self.module.inputs) if t.name == name), -1)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes by name."""
        return {t.name: t.shape for t in self.module.inputs}, {t.name: t.dtype for t in self.module.inputs}

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        result = NDArray(self.module._session.output(index))
        return result if out is None else out.copyfrom(result.numpy())

    def load_params(self, params_bytes: bytes) -> None:
        self.module._session.load_params(bytes(params_bytes))

    def benchmark(self, device: Any = None, repeat: int = 5, number: int = 5, end_to_end: bool = False,
                  inputs: Mapping[str, Any] | None = None, **_: Any) -> BenchmarkResult:
        """`number` runs measured together, `repeat` times; end_to_end copies the inputs in each time."""
        results = []
        self.set_input(**(inputs or {}))
        self.module.run()
        for _i in range(repeat):
            start = time.perf_counter()
            for _j in range(number):
                if end_to_end and inputs:
                    self.set_input(**inputs)
                self.module.run()
            results.append((time.perf_counter() - start) / number)
        return BenchmarkResult(min(results), float(np.mean(results)), float(np.median(results)), max(results), float(np.std(results)), results)


def create(module: Model) -> GraphModule:
    return GraphModule(module)
