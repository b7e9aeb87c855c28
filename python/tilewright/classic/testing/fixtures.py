# SPDX-License-Identifier: Apache-2.0
"""Fixtures from lists of values, and tests for each target: `size = parameter(1, 16)`, `@parametrize_targets("llvm")`. plugin.py runs
tests that use `target` or `dev` for every enabled target."""
from __future__ import annotations

import copy
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from ..runtime.ndarray import Device, device
from . import features

# The targets of tests if neither they nor TVM_TEST_TARGETS (separated by ;) name any.
DEFAULT_TEST_TARGETS = ["llvm"]


def _test_targets() -> list[str]:
    named = [t.strip() for t in os.environ.get("TVM_TEST_TARGETS", "").split(";") if t.strip()]
    return named or DEFAULT_TEST_TARGETS


def device_enabled(target: Any) -> bool:
    """Whether code for the target can be generated and run, and TVM_TEST_TARGETS does not exclude it."""
    from ..runtime.module import enabled
    kind = str(getattr(target, "kind", target)).split(" ")[0]
    if not isinstance(target, str) and not hasattr(target, "kind"):
        raise AssertionError("device_enabled requires a target as a string")
    return kind in [t.split()[0] for t in _test_targets()] and enabled(kind) and device(kind).exist


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets with a code generator, and their devices."""
    found = [t for t in _test_targets() if device_enabled(t)]
    return [(t, device(t)) for t in found or ["llvm"]]


def _marks_of(target: str) -> list[Any]:
    """Marks that skip a target whose code cannot run here."""
    import pytest  # type: ignore[import-not-found]
    from ..runtime.module import enabled
    kind = target.split()[0]
    feature = features.Feature._all.get(kind)
    made = list(feature.marks()) if feature is not None else []
    if feature is None and not (enabled(kind) and device(kind).exist):
        made.append(pytest.mark.skipif(True, reason=f"{kind} is not here"))
    return made


def target_params(targets: Sequence[Any] | None, excluded: Sequence[str] = (), failing: Sequence[str] = ()) -> list[Any]:
    """The parameters of a test's `target`. An entry may be a tuple that starts with the target."""
    import pytest
    out = []
    for given in _test_targets() if targets is None else targets:
        values = given if isinstance(given, tuple) else (given,)
        text = str(values[0])
        kind = text.split()[0]
        if targets is None and kind in excluded:
            continue
        marks = _marks_of(text) + ([pytest.mark.xfail(reason=f'Known failing test for target "{kind}"')] if kind in failing else [])
        out.append(pytest.param(*values, marks=marks))
    return out


def parametrize_targets(*args: Any) -> Any:
    """Runs the test for each of the targets, or for those of TVM_TEST_TARGETS if none is named; the test ids are the targets. `dev` is
    the target's device."""
    import pytest
    if len(args) == 1 and callable(args[0]):
        return pytest.mark.parametrize("target", target_params(None), scope="session")(args[0])
    return pytest.mark.parametrize("target", target_params(list(args)), scope="session")


def _noted(attribute: str, kinds: Sequence[str]) -> Callable[[Any], Any]:
    def wrap(test: Any) -> Any:
        setattr(test, attribute, [*getattr(test, attribute, []), *kinds])
        return test
    return wrap


def exclude_targets(*args: str) -> Callable[[Any], Any]:
    """Runs the test for all targets except these kinds."""
    return _noted("tvm_excluded_targets", args)


def known_failing_targets(*args: str) -> Callable[[Any], Any]:
    """Expects the test to fail for these kinds."""
    return _noted("tvm_known_failing_targets", args)


def parameter(*values: Any, ids: Any = None, by_dict: Any = None) -> Any:
    """A pytest fixture with each of the values in turn: `size = tvm.testing.parameter(1, 16)`, in a module or class."""
    import pytest
    if by_dict is not None:
        if values or ids:
            raise RuntimeError("Use of the by_dict parameter cannot be used alongside positional arguments")
        ids, values = zip(*by_dict.items())

    @pytest.fixture(params=values, ids=ids)
    def as_fixture(*_cls: Any, request: Any) -> Any:
        return request.param
    return as_fixture


def parameters(*value_sets: Any, ids: Any = None) -> list[Any]:
    """Fixtures whose values vary together: `m, n = tvm.testing.parameters((1, 2), (3, 4))` makes two cases. plugin.py combines them."""
    import pytest
    group: dict[str, Any] = {"sets": list(value_sets), "ids": ids}
    out = []
    for place in range(len(value_sets[0])):
        def as_fixture(*_cls: Any, request: Any) -> Any:
            return request.param
        as_fixture.parametrize_group, as_fixture.parametrize_place = group, place  # type: ignore[attr-defined]
        out.append(pytest.fixture(as_fixture))
    return out


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture. With cache_return_value it is evaluated once per combination of the fixtures that it uses, and every test gets a
    copy (TVM_TEST_DISABLE_CACHE=1 disables the cache)."""
    import pytest
    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    off = os.environ.get("TVM_TEST_DISABLE_CACHE", "0").lower() in ("1", "true", "on")
    return pytest.fixture(_cached(func) if cache_return_value and not off else func)


def _cached(func: Callable[..., Any]) -> Callable[..., Any]:
    if any(p.name == "request" for p in inspect.signature(func).parameters.values()):
        raise RuntimeError("a cached fixture cannot take `request`: its values would depend on the test that came first")
    made: list[tuple[Any, Any]] = []

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        key = (args[1:] if args and inspect.getattr_static(type(args[0]), func.__name__, None) is not None else args, kwargs)
        for known, value in made:
            if _same(known, key):
                return copy.deepcopy(value)
        value = func(*args, **kwargs)
        made.append((copy.deepcopy(key), value))
        return copy.deepcopy(value)
    return wrapper


def _same(one: Any, other: Any) -> bool:
    import numpy as np
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(v, other[k]) for k, v in one.items())
    return type(one) is type(other) and bool(one == other)


__all__ = ["device_enabled", "enabled_targets", "exclude_targets", "fixture", "known_failing_targets", "parameter", "parameters", "parametrize_targets", "target_params"]
