# SPDX-License-Identifier: Apache-2.0
"""Runners for testing.aot, and the combinations of interfaces that a model is tested with."""
from __future__ import annotations

import itertools
from typing import Any

from ...testing.aot import AOTTestRunner

AOT_DEFAULT_RUNNER = AOTTestRunner()
AOT_USMP_RUNNER = AOTTestRunner(pass_config={"tir.usmp.enable": True})


def parametrize_aot_options(test: Any) -> Any:
    """Calls a test with interface_api, use_unpacked_api and test_runner in all combinations that there are."""
    import pytest  # type: ignore[import-not-found]
    combinations = itertools.product(("packed", "c"), (True, False), (AOT_DEFAULT_RUNNER, AOT_USMP_RUNNER))
    valid = [c for c in combinations if c[:2] != ("c", False)]
    return pytest.mark.parametrize(("interface_api", "use_unpacked_api", "test_runner"), valid)(test)


__all__ = ["AOT_DEFAULT_RUNNER", "AOT_USMP_RUNNER", "parametrize_aot_options"]
