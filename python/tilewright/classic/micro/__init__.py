# SPDX-License-Identifier: Apache-2.0
"""Models for bare-metal devices (docs/micro.md): `export_model_library_format` writes the input of their build, `generate_project` makes
a complete program of it, and a Session runs it on the device."""
from __future__ import annotations

from typing import Any

from . import project_api
from .model_library_format import UnsupportedInModelLibraryFormatError, export_model_library_format
from .project import (CrtNotFoundError, GeneratedProject, TemplateProject, TemplateProjectError, UnsupportedPlatformError, generate_project, generate_project_from_mlf,
                      get_microtvm_template_projects, get_standalone_crt_dir, get_standalone_crt_lib)
from .session import Session, SessionTerminatedError, create_local_aot_executor, create_local_debug_executor, create_local_graph_executor
from .transport import Transport
from .tuning import AutoTvmModuleLoader, autotvm_build_func


def __getattr__(name: str) -> Any:
    if name == "testing":
        import importlib
        return importlib.import_module(".testing", __name__)
    raise AttributeError(f"micro has no '{name}'; instead: devices have projects, sessions and micro.create_local_aot_executor (docs/micro.md)")


__all__ = ["AutoTvmModuleLoader", "CrtNotFoundError", "GeneratedProject", "Session", "SessionTerminatedError", "TemplateProject", "TemplateProjectError", "Transport", "UnsupportedInModelLibraryFormatError",
           "UnsupportedPlatformError", "autotvm_build_func", "create_local_aot_executor", "create_local_debug_executor", "create_local_graph_executor", "export_model_library_format", "generate_project", "generate_project_from_mlf",
           "get_microtvm_template_projects", "get_standalone_crt_dir", "get_standalone_crt_lib", "project_api"]
