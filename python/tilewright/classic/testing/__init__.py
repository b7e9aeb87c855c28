# SPDX-License-Identifier: Apache-2.0
"""Test utilities for scripts: comparisons (compare.py), requirements of the machine (features.py), fixtures (fixtures.py), and the
pytest plugin for them (plugin.py). pytest is imported only where fixtures and marks are created."""
from __future__ import annotations

import importlib
import sys
from typing import Any

from . import fixtures, features
from .compare import (assert_allclose, assert_prim_expr_equal, check_bool_expr_is_true, check_int_constraints_trans_consistency, check_numerical_grads,
                      get_dtype_range)
from .features import *  # noqa: F403
from .fixtures import (device_enabled, enabled_targets, exclude_targets, fixture, known_failing_targets, parameter, parameters, parametrize_targets)
from .functions import (ErrorTest, context_test, device_test, echo, identity_after, nop, object_use_count, run_check_signal, terminate_self, test_check_eq_callback,
                        test_raise_error_callback, test_wrap_callback)


def main() -> None:
    """Runs the caller's file under pytest with this package's plugin, and exits."""
    import inspect
    import pytest  # type: ignore[import-not-found]
    from . import plugin
    sys.exit(pytest.main([inspect.getsourcefile(sys._getframe(1)) or "", *sys.argv[1:]], plugins=[plugin]))


def __getattr__(name: str) -> Any:
    if name == "utils":
        return importlib.import_module(__name__)
    if name in ("aot", "plugin"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"tilewright.testing has no '{name}'")


__all__ = ["ErrorTest", "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true", "check_int_constraints_trans_consistency",
           "check_numerical_grads", "context_test", "device_enabled", "device_test", "echo", "enabled_targets", "exclude_targets", "features", "fixture", "fixtures",
           "get_dtype_range", "identity_after", "known_failing_targets", "main", "nop", "object_use_count", "parameter", "parameters", "parametrize_targets",
           "run_check_signal", "terminate_self", "test_check_eq_callback", "test_raise_error_callback", "test_wrap_callback", *features.__all__]
