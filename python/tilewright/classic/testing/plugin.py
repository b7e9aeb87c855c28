# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin of tilewright.testing: `dev` is the device of `target`, tests that use either run for every enabled target, and the
fixtures of one `parameters` call vary together. It is loaded by `tvm.testing.main()`, `python -m tilewright.as_tvm -m pytest`,
`pytest -p tilewright.as_tvm` and `pytest_plugins = ["tvm.testing.plugin"]` in a conftest."""
from __future__ import annotations

from typing import Any

import pytest  # type: ignore[import-not-found]

from ..runtime.ndarray import device
from .features import Feature
from .fixtures import target_params


def pytest_configure(config: Any) -> None:
    for feature in Feature._all.values():
        config.addinivalue_line("markers", f"{feature.name.replace('-', '_')}: needs {feature.long_name}")


@pytest.fixture
def dev(target: Any) -> Any:
    """The device of the target."""
    return device(target)


def pytest_generate_tests(metafunc: Any) -> None:
    if getattr(metafunc, "_tilewright_parametrized", False):  # the plugin may be loaded under two names
        return
    metafunc._tilewright_parametrized = True
    _join_parameters(metafunc)
    _add_targets(metafunc)


def _add_targets(metafunc: Any) -> None:
    """Runs a test that uses `target`, and is not parametrized already, for every enabled target."""
    if "target" not in metafunc.fixturenames or "target" in metafunc._arg2fixturedefs:
        return
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", "")
        if "target" in ([n.strip() for n in names.split(",")] if isinstance(names, str) else names):
            return
    function = metafunc.function
    metafunc.parametrize("target", target_params(None, getattr(function, "tvm_excluded_targets", ()), getattr(function, "tvm_known_failing_targets", ())),
                         scope="session")


def _join_parameters(metafunc: Any) -> None:
    groups: dict[int, tuple[dict[str, Any], list[tuple[str, int]]]] = {}
    for name in metafunc.fixturenames:
        for definition in metafunc._arg2fixturedefs.get(name, ())[-1:]:
            function = getattr(definition.func, "__func__", definition.func)
            group = getattr(function, "parametrize_group", None)
            if group is not None:
                groups.setdefault(id(group), (group, []))[1].append((name, function.parametrize_place))
    for group, members in groups.values():
        sets = [[given[place] for _, place in members] for given in group["sets"]]
        metafunc.parametrize([name for name, _ in members], sets, indirect=True, ids=group["ids"])
