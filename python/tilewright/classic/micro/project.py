# SPDX-License-Identifier: Apache-2.0
"""Project templates, and the projects generated from them."""
from __future__ import annotations

import atexit
import functools
import os
import pathlib
import shutil
import tempfile
from typing import Any

from ... import _core
from .model_library_format import export_model_library_format
from .project_api import client, server
from .transport import Transport

_VERSION = "0.9.0"  # of the mirrored interface


class TemplateProjectError(Exception):
    """A project was given instead of a template, or vice versa."""


class UnsupportedPlatformError(Exception):
    """No template has this name."""


class CrtNotFoundError(Exception):
    """The C runtime has no such part."""


@functools.cache
def get_standalone_crt_dir() -> str:
    """A folder with the C runtime as the classic stack's tree has it (include, src/runtime/crt), which lasts as long as this process."""
    folder = tempfile.mkdtemp(prefix="tilewright-crt-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path, data in _core.standalone_crt().items():
        file = pathlib.Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def get_standalone_crt_lib(name: str) -> str:
    """The sources of one part: "aot_executor", "common", "graph_executor", "memory", "microtvm_rpc_common", "microtvm_rpc_server". CrtNotFoundError: there is no such part."""
    parts = pathlib.Path(get_standalone_crt_dir(), "src/runtime/crt")
    if name not in (known := sorted(p.name for p in parts.iterdir() if p.is_dir())):
        raise CrtNotFoundError(f"the C runtime has no part '{name}'; it has {', '.join(known)}")
    return str(parts / name)


def get_microtvm_template_projects(platform: str) -> str:
    """The folder of a template: "crt" (this machine), "mps2-an386", "zephyr", "arduino"."""
    folder = pathlib.Path(__file__).parent / "templates" / platform.replace("-", "_")
    if not (folder / client.SERVER_FILE).is_file() or os.sep in platform:
        raise UnsupportedPlatformError(f"there is no template '{platform}'; there are crt, mps2-an386, zephyr and arduino")
    return str(folder)


def _checked(options: dict[str, Any] | None, info: server.ServerInfo) -> dict[str, Any]:
    known = {o.name for o in info.project_options}
    for name in options or {}:
        if name not in known:
            raise ValueError(f"'{name}' is no option of the platform {info.platform_name}; it has {', '.join(sorted(known)) or 'none'}")
    return dict(options or {})


class GeneratedProject:
    """A project: `build()`, `flash()`, and `transport()` for a Session."""

    @classmethod
    def from_directory(cls, project_dir: str | os.PathLike[str], options: dict[str, Any] | None = None) -> GeneratedProject:
        return cls(client.instantiate_from_dir(project_dir), options)

    def __init__(self, api_client: client.ProjectAPIClient, options: dict[str, Any] | None):
        self._api_client = api_client
        self._info = api_client.server_info_query(_VERSION)
        if self._info.is_template:
            raise TemplateProjectError("this is a template; generate_project makes a project of it")
        self._options = _checked(options, self._info)

    def build(self) -> None:
        self._api_client.build(self._options)

    def flash(self) -> None:
        self._api_client.flash(self._options)

    def transport(self) -> Transport:
        return Transport(self._api_client, self._options)

    def info(self) -> server.ServerInfo:
        return self._info

    @property
    def options(self) -> dict[str, Any]:
        return self._options


class TemplateProject:
    """A template, from which projects are generated."""

    @classmethod
    def from_directory(cls, template_project_dir: str | os.PathLike[str]) -> TemplateProject:
        return cls(client.instantiate_from_dir(template_project_dir))

    def __init__(self, api_client: client.ProjectAPIClient):
        self._api_client = api_client
        self._info = api_client.server_info_query(_VERSION)
        if not self._info.is_template:
            raise TemplateProjectError("this is a project already; a template is wanted")

    def info(self) -> server.ServerInfo:
        return self._info

    def generate_project_from_mlf(self, model_library_format_path: str | os.PathLike[str], project_dir: str | os.PathLike[str], options: dict[str, Any] | None = None) -> GeneratedProject:
        given = _checked(options, self._info)
        self._api_client.generate_project(str(pathlib.Path(model_library_format_path).resolve()), get_standalone_crt_dir(), str(pathlib.Path(project_dir).resolve()), given)
        return GeneratedProject.from_directory(project_dir, given)

    def generate_project(self, module: Any, project_dir: str | os.PathLike[str], options: dict[str, Any] | None = None) -> GeneratedProject:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path = export_model_library_format(module, os.path.join(folder, "model.tar"))
            return self.generate_project_from_mlf(path, project_dir, options)


def generate_project(template_project_dir: str | os.PathLike[str], module: Any, generated_project_dir: str | os.PathLike[str], options: dict[str, Any] | None = None) -> GeneratedProject:
    """A project for the result of relay.build."""
    return TemplateProject.from_directory(template_project_dir).generate_project(module, generated_project_dir, options)


def generate_project_from_mlf(template_project_dir: str | os.PathLike[str], project_dir: str | os.PathLike[str], mlf_path: str | os.PathLike[str],
                              options: dict[str, Any] | None = None) -> GeneratedProject:
    """A project for a Model Library Format file."""
    return TemplateProject.from_directory(template_project_dir).generate_project_from_mlf(mlf_path, project_dir, options)


__all__ = ["CrtNotFoundError", "GeneratedProject", "TemplateProject", "TemplateProjectError", "UnsupportedPlatformError", "generate_project", "generate_project_from_mlf", "get_microtvm_template_projects",
           "get_standalone_crt_dir", "get_standalone_crt_lib"]
