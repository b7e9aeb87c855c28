# SPDX-License-Identifier: Apache-2.0
"""Comparisons of arrays, of gradients with finite differences, and of sizes."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..runtime.ndarray import as_array


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """AssertionError unless the shapes are equal and |actual - desired| <= atol + rtol * |desired|."""
    actual, desired = as_array(actual), as_array(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


def _difference(at: Callable[[float], float], here: float, wanted: float, delta: float, close: Callable[[float], bool]) -> float:
    """The derivative by the cheapest finite difference that is close to the expected value: forward, central, then fourth order."""
    forward = (at(delta) - here) / delta
    if close(forward):
        return forward
    central = (forward + (here - at(-delta)) / delta) / 2
    if close(central):
        return central
    half = (at(delta / 2) - at(-delta / 2)) / delta
    return (4 * half - central) / 3


def check_numerical_grads(function: Callable[..., Any], input_values: Mapping[str, Any] | Sequence[Any], grad_values: Mapping[str, Any] | Sequence[Any],
                          function_value: Any = None, delta: float = 1e-3, atol: float = 1e-2, rtol: float = 0.1) -> None:
    """Compares gradients with finite differences of a scalar function of arrays (by position or name). AssertionError if the distance
    exceeds atol * sqrt(n) + rtol * norm; ValueError for non-finite values."""
    by_name = isinstance(input_values, Mapping)
    inputs = {k: np.asarray(v) for k, v in (input_values.items() if by_name else enumerate(input_values))}
    grads = {k: np.asarray(v) for k, v in (grad_values.items() if isinstance(grad_values, Mapping) else enumerate(grad_values))}

    def call(values: Mapping[Any, Any]) -> float:
        return float(function(**values) if by_name else function(*values.values()))

    here = call(inputs) if function_value is None else float(function_value)
    for key, grad in grads.items():
        if grad.shape != inputs[key].shape:
            raise AssertionError(f"the gradient by '{key}' has shape {grad.shape}, its input {inputs[key].shape}")
        measured = np.zeros(grad.shape)
        for place in np.ndindex(*grad.shape):
            def at(step: float) -> float:
                moved = inputs[key].copy()
                moved[place] += step
                return call({**inputs, key: moved})
            wanted = float(grad[place])
            measured[place] = _difference(at, here, wanted, delta, lambda d: abs(d - wanted) < atol + rtol * abs(d))
        distance, norm = float(np.sqrt(np.sum((measured - grad) ** 2))), float(np.sqrt(np.sum(measured**2)))
        if not np.isfinite(distance) or not np.isfinite(norm):
            raise ValueError(f"the gradient by '{key}' is not finite: {grad}, by differences {measured}")
        if distance > atol * np.sqrt(grad.size) + rtol * norm:
            raise AssertionError(f"the gradient by '{key}' is {grad}, by differences {measured}: their distance is {distance}")


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """ValueError unless two sizes are equal, or two expressions for all values of their variables."""
    from ... import _core
    from ..arith import Analyzer
    loops = isinstance(lhs, _core.PrimExpr) or isinstance(rhs, _core.PrimExpr)
    if not (Analyzer().can_prove_equal(lhs, rhs) if loops else lhs == rhs):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def check_bool_expr_is_true(bool_expr: Any, vranges: Any, cond: Any = None) -> None:
    """AssertionError with a counterexample unless a condition holds for all values of its variables in their ranges (for which `cond`
    holds)."""
    from .constraints import check_bool_expr_is_true as check
    check(bool_expr, vranges, cond)


def check_int_constraints_trans_consistency(constraints_trans: Any, vranges: Any = None) -> None:
    """AssertionError unless the two sides of an IntConstraintsTransform are consistent."""
    from .constraints import check_int_constraints_trans_consistency as check
    check(constraints_trans, vranges)


def get_dtype_range(dtype: str) -> tuple[Any, Any]:
    """The minimum and maximum of a dtype."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return 0, 1
    info: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return info.min, info.max
