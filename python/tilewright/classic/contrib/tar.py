# SPDX-License-Identifier: Apache-2.0
"""Bundles files into an archive: an fcompile for `.tar`."""
from __future__ import annotations

import os
import tarfile
from typing import Any


def tar(output: str, files: Any, **_: Any) -> None:
    """A compressed archive of the files, each under its base name."""
    files = [files] if isinstance(files, str) else list(files)
    names = [os.path.basename(f) for f in files]
    if len(set(names)) != len(names):
        raise ValueError(f"two of the files have the same name: {', '.join(names)}")
    with tarfile.open(output, "w:gz") as archive:
        for file, name in zip(files, names):
            archive.add(file, name)


tar.output_format = "tar"  # type: ignore[attr-defined]


def untar(tar_file: str, directory: str) -> None:
    """Extracts the regular files; names that lead outside of the folder are rejected."""
    with tarfile.open(tar_file) as archive:
        for member in archive.getmembers():
            if not member.isfile() or os.path.isabs(member.name) or ".." in member.name.split("/"):
                raise ValueError(f"'{member.name}' in {tar_file} is no plain file inside the archive")
            archive.extract(member, directory)


__all__ = ["tar", "untar"]
