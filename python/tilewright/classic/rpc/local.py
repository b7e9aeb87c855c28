# SPDX-License-Identifier: Apache-2.0
"""A session within this process."""
from __future__ import annotations

import mmap
import os
import shutil
from typing import Any

from ..contrib import utils
from ..registry import get_global_func
from ..runtime.module import Module, load_module
from ..runtime.ndarray import Device, cpu, device


class LocalSession:
    """Replaces a board in scripts: files are stored in a folder of the session, functions and modules are those of this process."""

    def __init__(self) -> None:
        self._temp = utils.tempdir()

    def _path(self, name: str) -> str:
        """A path in the session's folder. ValueError for a name that leads outside of it."""
        path = os.path.normpath(os.path.join(self._temp.temp_dir, name))
        if os.path.commonpath([path, self._temp.temp_dir]) != self._temp.temp_dir:
            raise ValueError(f"'{name}' is no file of the session")
        return path

    def get_function(self, name: str) -> Any:
        return get_global_func(name)

    def upload(self, data: bytes | bytearray | mmap.mmap | str | os.PathLike[str], target: str | None = None) -> None:
        """Copies a file by its path, or bytes as `target`."""
        if isinstance(data, (bytes, bytearray, mmap.mmap)):
            if not target:
                raise ValueError("target must present when file is a bytearray")
            with open(self._path(target), "wb") as file:
                file.write(data)
        else:
            shutil.copyfile(data, self._path(target or os.path.basename(data)))

    def download(self, path: str) -> bytearray:
        with open(self._path(path), "rb") as file:
            return bytearray(file.read())

    def remove(self, path: str) -> None:
        os.remove(self._path(path))

    def listdir(self, path: str = "") -> list[str]:
        return sorted(os.listdir(self._path(path)))

    def load_module(self, path: str) -> Module:
        return load_module(self._path(path))

    def device(self, dev_type: str, dev_id: int = 0) -> Device:
        return device(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> Device:
        return cpu(dev_id)


__all__ = ["LocalSession"]
