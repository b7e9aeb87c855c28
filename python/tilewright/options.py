# SPDX-License-Identifier: Apache-2.0
"""Options of a build."""
from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _core

# Returns the chooser among applicable kernels for a target; None: the cost model. Set by scripts that register
# strategies.
kernel_chooser_of: Callable[[Any], Any] | None = None
# Returns the active tuning records as _core.RecordChooser; None: there are none.
record_chooser: Callable[[], Any] | None = None


def build_options(target: Any, opt_level: int = 3, required_passes: Sequence[str] = (), disabled_passes: Sequence[str] = (),
                  config: Mapping[str, Any] | None = None) -> Any:
    """target: "llvm -mcpu=..." or a classic Target; config: pass options by key. Errors: 101 (an option), 401 (the target)."""
    config = {key: json.dumps(value) if isinstance(value, Mapping) else value for key, value in (config or {}).items()}
    _core.check_config(config)
    options = _core.BuildOptions()
    options.target = target.build_text() if hasattr(target, "build_text") else str(target)
    options.opt_level = opt_level
    options.required_passes, options.disabled_passes = list(required_passes), list(disabled_passes)
    options.set_config(config)
    choose_kernels(options, target)
    return options


def choose_kernels(options: Any, target: Any) -> None:
    """Lets a script's strategies, or active tuning records, choose the build's kernels."""
    if kernel_chooser_of is not None and (choose := kernel_chooser_of(target)) is not None:
        options.set_chooser(choose)
    elif record_chooser is not None and (records := record_chooser()) is not None:
        _core.set_records(options, records)


def cache_folder(kernel_cache: bool | str | os.PathLike[str]) -> str:
    """The folder of the kernel cache: True is that of the command line ($TILEWRIGHT_CACHE_DIR), False none."""
    if isinstance(kernel_cache, bool):
        return _core.default_kernel_cache() if kernel_cache else ""
    return os.fspath(kernel_cache)


def load_plugin(path: str | os.PathLike[str]) -> None:
    """Loads a shared library whose tw_runtime_plugin registers modules of your own (docs/external-codegen.md). OSError: it cannot be loaded;
    RuntimeError: it says that it failed."""
    entry = getattr(ctypes.CDLL(os.path.abspath(path)), "tw_runtime_plugin", None)
    if entry is not None and (status := entry()) != 0:
        raise RuntimeError(f"the plug-in {os.fspath(path)} failed with error {status}")


__all__ = ["build_options", "cache_folder", "choose_kernels", "load_plugin"]
