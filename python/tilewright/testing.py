# SPDX-License-Identifier: Apache-2.0
"""What tests of scripts use: comparisons, and marks for what a machine has."""
from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .runtime.ndarray import Device, as_array, cpu


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """AssertionError unless shapes are equal and |actual - desired| <= atol + rtol * |desired|."""
    actual, desired = as_array(actual), as_array(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


def enabled_targets() -> list[tuple[str, Device]]:
    """Targets that code is generated for, with their devices."""
    return [("llvm", cpu(0))]


def device_enabled(target: Any) -> bool:
    from .runtime.module import enabled
    return enabled(str(target))


def parametrize_targets(*targets: Any) -> Any:
    """Calls the test for each of the targets that exist: `@parametrize_targets` or `@parametrize_targets("llvm", "cuda")`."""
    def decorate(test: Callable[..., Any], wanted: tuple[Any, ...]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            for target, dev in enabled_targets():
                if not wanted or target in [str(w).split()[0] for w in wanted]:
                    test(*args, target=target, dev=dev, **kwargs)
        del run.__wrapped__  # pytest would ask for target and dev
        return run

    if len(targets) == 1 and callable(targets[0]):
        return decorate(targets[0], ())
    return lambda test: decorate(test, targets)


def _requirement(met: Callable[[], bool], what: str) -> Callable[..., Any]:
    def mark(*args: Any, **_: Any) -> Any:
        def decorate(test: Any) -> Any:
            if met():
                return test
            import unittest
            return unittest.skip(f"{what} is not here")(test)
        return decorate(args[0]) if args and callable(args[0]) else decorate
    return mark


requires_llvm = _requirement(lambda: True, "llvm")
requires_cuda = requires_gpu = requires_opencl = requires_vulkan = requires_metal = requires_rocm = uses_gpu = _requirement(lambda: False, "a graphics processor")
requires_rpc = requires_micro = requires_hexagon = _requirement(lambda: False, "this part of the classic stack")


def requires_package(*names: str) -> Callable[..., Any]:
    """Skips the test where a Python package is missing."""
    return _requirement(lambda: all(importlib.util.find_spec(name) is not None for name in names), ", ".join(names))()


def parameter(*values: Any, ids: Any = None) -> Any:
    """A pytest fixture that takes each of the values: `size = tvm.testing.parameter(1, 16)`."""
    import pytest  # type: ignore[import-not-found]

    @pytest.fixture(params=values, ids=ids)
    def value(request: Any) -> Any:
        return request.param
    return value


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; cached ones are made once for the session."""
    import pytest  # type: ignore[import-not-found]
    make = pytest.fixture(scope="session" if cache_return_value else "function")
    return make if func is None else make(func)


def main() -> None:
    """Runs the file's tests with pytest."""
    import inspect
    import pytest  # type: ignore[import-not-found]
    sys.exit(pytest.main([inspect.getsourcefile(sys._getframe(1)) or "", *sys.argv[1:]]))


__all__ = ["assert_allclose", "device_enabled", "enabled_targets", "fixture", "main", "parameter", "parametrize_targets", "requires_cuda", "requires_gpu", "requires_llvm",
           "requires_package", "uses_gpu"]
