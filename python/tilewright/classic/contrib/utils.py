# SPDX-License-Identifier: Apache-2.0
"""Temporary folders."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class TempDirectory:
    """A folder that is deleted with the object. `relpath(name)` is a path in it as a string, `folder / name` as a pathlib.Path; `path` is the folder."""

    _keep_for_debug = False

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None):
        self._keep = self._keep_for_debug if keep_for_debug is None else keep_for_debug
        self.temp_dir = custom_path or tempfile.mkdtemp(prefix="tilewright-")
        os.makedirs(self.temp_dir, exist_ok=True)

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """Keeps the folders created inside the `with`."""
        before, cls._keep_for_debug = cls._keep_for_debug, set_to
        try:
            yield
        finally:
            cls._keep_for_debug = before

    def remove(self) -> None:
        if self.temp_dir:
            shutil.rmtree(self.temp_dir, ignore_errors=True)
            self.temp_dir = ""

    @property
    def path(self) -> Path:
        return Path(self.temp_dir)

    def __truediv__(self, name: Any) -> Path:
        return self.path / name

    def relpath(self, name: str) -> str:
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        return os.listdir(self.temp_dir)

    def __enter__(self) -> "TempDirectory":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __del__(self, _rmtree: Any = shutil.rmtree) -> None:
        if getattr(self, "temp_dir", "") and not self._keep:
            _rmtree(self.temp_dir, ignore_errors=True)


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    return TempDirectory(custom_path, keep_for_debug or None)


def is_source_path(path: str) -> bool:
    """Whether the string is the path of a C, C++ or CUDA file, as opposed to source text."""
    return os.path.exists(path) or (path.count("\n") == 0 and path.endswith((".cc", ".cpp", ".c", ".cu", ".h")))


def which(exec_name: str) -> str | None:
    return shutil.which(exec_name)


class FileLock:
    """`with FileLock(path):` an exclusive lock on the file, across threads and processes."""

    def __init__(self, path: str):
        self.path = path

    def __enter__(self) -> "FileLock":
        import fcntl
        self._file = open(self.path, "a")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        import fcntl
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


def filelock(path: str) -> FileLock:
    return FileLock(path)


__all__ = ["FileLock", "TempDirectory", "filelock", "is_source_path", "tempdir", "which"]
