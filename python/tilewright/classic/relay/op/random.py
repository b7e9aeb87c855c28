# SPDX-License-Identifier: Apache-2.0
"""Functional random numbers: a generator is a value of ten uint64 (Threefry-4x64), and each call also returns the next generator."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..expr import Call, Constant, Expr, Tuple, TupleWrapper, _like, const


def threefry_key(seed: int) -> Constant:
    """A generator from a seed of up to 256 bits."""
    words = np.frombuffer(seed.to_bytes(32, "little"), "uint64")
    return const(np.concatenate([words, np.array([0, 0, 0, 0, 1 << 63, 0], "uint64")]))


def _shape(shape: Any) -> list[int]:
    return [int(s) for s in ([shape] if isinstance(shape, (int, np.integer)) else shape)]


def threefry_generate(key: Any, shape: Sequence[int]) -> TupleWrapper:
    """(the next generator, random uint64 of the given shape)."""
    return TupleWrapper(Call("random.threefry_generate", [key], {"out_shape": _shape(shape)}), 2)


def threefry_split(key: Any) -> TupleWrapper:
    """Two independent generators."""
    return TupleWrapper(Call("random.threefry_split", [key]), 2)


def _scalar(value: Any, dtype: str) -> Expr:
    return value if isinstance(value, Expr) else const(value, dtype)


def uniform(key: Any, shape: Sequence[int], dtype: str = "float32", low: Any = 0.0, high: Any = 1.0) -> TupleWrapper:
    """(the next generator, numbers in [low, high))."""
    return TupleWrapper(Call("random.uniform", [key, _scalar(low, dtype), _scalar(high, dtype)], {"out_shape": _shape(shape), "out_dtype": dtype}), 2)


def normal(key: Any, shape: Sequence[int], dtype: str = "float32", mean: Any = 0.0, scale: Any = 1.0) -> TupleWrapper:
    """(the next generator, numbers with that mean and standard deviation)."""
    return TupleWrapper(Call("random.normal", [key, _scalar(mean, dtype), _scalar(scale, dtype)], {"out_shape": _shape(shape), "out_dtype": dtype}), 2)


def multinomial(key: Any, probs: Any, num_samples: int) -> Tuple:
    """(the next generator, int32 indices into the last axis, sampled with its weights)."""
    probs = _like(probs)
    shape = _shape(probs.checked_type.shape)
    total = Call("sum", [probs], {"axis": [-1], "keepdims": True})
    edges = Call("expand_dims", [Call("cumsum", [Call("divide", [probs, total])], {"axis": len(shape) - 1})], {"axis": len(shape) - 1})
    drawn = uniform(key, shape[:-1] + [num_samples], probs.checked_type.dtype)
    below = Call("less_equal", [edges, Call("expand_dims", [drawn[1]], {"axis": len(shape)})])
    places = Call("sum", [Call("cast", [below], {"dtype": "int32"})], {"axis": [-1]})
    return Tuple([drawn[0], Call("clip", [places], {"a_min": 0, "a_max": shape[-1] - 1})])


__all__ = ["multinomial", "normal", "threefry_generate", "threefry_key", "threefry_split", "uniform"]
