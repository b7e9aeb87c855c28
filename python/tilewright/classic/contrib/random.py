# SPDX-License-Identifier: Apache-2.0
"""Tensors of random numbers, as extern operations of te; numpy's generator fills them when the function runs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import te
from ..registry import register_func
from ..tir import call_packed

_generator = np.random.default_rng()


def _filled(draw: Callable[[Any, Any, tuple[int, ...]], np.ndarray]) -> Callable[[Any, Any, Any], None]:
    def fill(first: Any, second: Any, out: Any) -> None:
        np.from_dlpack(out)[...] = draw(first, second, out.shape)
    return fill


def _seed(seed: int) -> None:
    global _generator
    _generator = np.random.default_rng(int(seed))


register_func("tvm.contrib.random.seed", _seed, override=True)
register_func("tvm.contrib.random.randint", _filled(lambda low, high, size: _generator.integers(low, high, size)), override=True)
register_func("tvm.contrib.random.uniform", _filled(lambda low, high, size: _generator.uniform(low, high, size)), override=True)
register_func("tvm.contrib.random.normal", _filled(lambda loc, scale, size: _generator.normal(loc, scale, size)), override=True)


def _extern(name: str, first: Any, second: Any, size: Sequence[Any], dtype: str) -> Any:
    return te.extern(tuple(size), [], lambda _, outs: call_packed(f"tvm.contrib.random.{name}", first, second, outs[0]), dtype=dtype, name=name)


def randint(low: int, high: int, size: Sequence[Any], dtype: str = "int32") -> Any:
    """Integers in [low, high). ValueError: dtype is not one of integers."""
    if "int" not in dtype:
        raise ValueError(f"randint makes integers, not {dtype}")
    return _extern("randint", int(low), int(high), size, dtype)


def uniform(low: float, high: float, size: Sequence[Any]) -> Any:
    """float32 in [low, high)."""
    return _extern("uniform", float(low), float(high), size, "float32")


def normal(loc: float, scale: float, size: Sequence[Any]) -> Any:
    """float32 of a normal distribution."""
    return _extern("normal", float(loc), float(scale), size, "float32")


__all__ = ["normal", "randint", "uniform"]
