# SPDX-License-Identifier: Apache-2.0
"""AutoTVM on a device (docs/micro.md)."""
from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from .project import generate_project_from_mlf
from .session import Session


def autotvm_build_func(*_arguments: Any, **_options: Any) -> None:
    """For `autotvm.LocalBuilder(build_func=...)`, for compatibility: with a module loader, configurations are always built as Model
    Library Format."""
    raise RuntimeError("autotvm_build_func goes with autotvm.LocalRunner(module_loader=tvm.micro.AutoTvmModuleLoader(...))")


autotvm_build_func.output_format = ".model-library-format"  # type: ignore[attr-defined]


class AutoTvmModuleLoader:
    """For `autotvm.LocalRunner(module_loader=...)`: each configuration is built and flashed as a project of the template, and timed by
    the device."""

    def __init__(self, template_project_dir: str | os.PathLike[str], project_options: Mapping[str, Any] | None = None):
        self._template, self._options = pathlib.Path(template_project_dir), dict(project_options or {})

    @contextlib.contextmanager
    def __call__(self, remote_kwargs: Any, build_result: Any) -> Iterator[tuple[Any, Any]]:
        """A session, and the executor of the model at build_result.filename in it."""
        with tempfile.TemporaryDirectory(prefix="tilewright-device-") as folder:
            project = generate_project_from_mlf(self._template, os.path.join(folder, "project"), build_result.filename, self._options)
            project.build()
            project.flash()
            with Session(project.transport()) as session:
                yield session.rpc, session.create_aot_executor()


__all__ = ["AutoTvmModuleLoader", "autotvm_build_func"]
