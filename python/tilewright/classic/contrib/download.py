# SPDX-License-Identifier: Apache-2.0
"""Downloads, cached in a folder of the user."""
from __future__ import annotations

import os
import tempfile
import time
import urllib.request
from typing import Any

from pathlib import Path


def download(url: str, path: str | os.PathLike[str], overwrite: bool = False, size_compare: bool = False, retries: int = 3, timeout: float = 60.0, **_: Any) -> None:
    """Downloads a file unless it exists. The file appears complete or not at all. Errors: OSError after `retries` attempts."""
    target = Path(path).resolve()
    if target.is_file() and not overwrite:
        if not size_compare:
            return
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout) as answer:
            if int(answer.headers.get("Content-Length", -1)) == target.stat().st_size:
                return
    target.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(max(1, retries)):
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file, urllib.request.urlopen(url, timeout=timeout) as answer:
                while block := answer.read(1 << 16):
                    file.write(block)
            os.replace(part, target)
            return
        except OSError:
            os.unlink(part)
            if attempt + 1 >= retries:
                raise
            time.sleep(1)


def _data_folder() -> Path:
    return Path(os.environ.get("TEST_DATA_ROOT_PATH") or Path.home() / ".tvm_test_data")


def download_testdata(url: str, relpath: str, module: Any = None, overwrite: bool = False) -> str:
    """The path of the file in $TEST_DATA_ROOT_PATH (default ~/.tvm_test_data), downloaded if it is missing."""
    parts = ([module] if isinstance(module, str) else list(module or [])) + [relpath]
    path = _data_folder().joinpath(*parts)
    download(url, path, overwrite)
    return str(path)


__all__ = ["download", "download_testdata"]
