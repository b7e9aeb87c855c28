# SPDX-License-Identifier: Apache-2.0
"""Temporary folders."""
from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any


class TempDirectory:
    """A folder that is removed with the object. `relpath(name)` is a path in it; `path` the folder's."""

    def __init__(self, custom_path: str | None = None):
        self.temp_dir = custom_path or tempfile.mkdtemp(prefix="tilewright-")
        os.makedirs(self.temp_dir, exist_ok=True)

    def remove(self) -> None:
        if self.temp_dir:
            shutil.rmtree(self.temp_dir, ignore_errors=True)
            self.temp_dir = ""

    @property
    def path(self) -> str:
        return self.temp_dir

    def __truediv__(self, name: Any) -> str:
        return self.relpath(str(name))

    def relpath(self, name: str) -> str:
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        return os.listdir(self.temp_dir)

    def __enter__(self) -> "TempDirectory":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __del__(self, _rmtree: Any = shutil.rmtree) -> None:
        if getattr(self, "temp_dir", ""):
            _rmtree(self.temp_dir, ignore_errors=True)


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    return TempDirectory(custom_path)


__all__ = ["TempDirectory", "tempdir"]
