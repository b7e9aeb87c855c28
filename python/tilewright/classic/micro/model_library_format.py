# SPDX-License-Identifier: Apache-2.0
"""Model Library Format, version 7."""
from __future__ import annotations

import os
import pathlib
from typing import Any

from ... import _core
from ..error import Error, InvalidValue
from ..relay.executor_factory import ExecutorFactoryModule


class UnsupportedInModelLibraryFormatError(Exception):
    """The module has a part that the format cannot represent."""


def export_model_library_format(mods: Any, file_name: str | os.PathLike[str]) -> pathlib.Path:
    """Writes the result of relay.build, or of several, or that of tvm.build as a tar file; returns its path. The export time is $SOURCE_DATE_EPOCH or 1970,
    so that equal models give equal bytes.

    Errors: UnsupportedInModelLibraryFormatError (imported modules), 101 (two models of one name), 103."""
    from ..driver.build_module import FunctionLibrary
    factories = list(mods) if isinstance(mods, (list, tuple)) else [mods]
    if any(isinstance(f, FunctionLibrary) for f in factories):
        return _export_functions(factories, pathlib.Path(file_name))
    names = [factory.libmod_name for factory in factories if isinstance(factory, ExecutorFactoryModule)]
    if again := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InvalidValue(f"two models are called '{again[0]}': several need unique names (mod_name)")
    for factory in factories:
        if not isinstance(factory, ExecutorFactoryModule):
            raise NotImplementedError(f"Don't know how to export module of type {type(factory)!r}; give what relay.build returned")
        if factory._imports or factory._static:
            raise UnsupportedInModelLibraryFormatError("Don't know how to export non-c or non-llvm modules; found: "
                                                       + ", ".join(m.type_key for m in [*factory._imports, *factory._static]))
    path = pathlib.Path(file_name)
    try:
        _core.write_model_library([factory._whole() for factory in factories], os.fspath(path))
    except Error as error:
        if error.code == 203:
            raise UnsupportedInModelLibraryFormatError(str(error)) from error
        raise
    return path


def _export_functions(libraries: list[Any], path: pathlib.Path) -> pathlib.Path:
    """The operator style: functions of tensors."""
    if len(libraries) > 1:
        raise ValueError("one Model Library Format holds the functions of one tvm.build: build them together, from a list of schedules")
    factory = libraries[0]._factory
    if others := [*factory._imports, *factory._static]:
        raise UnsupportedInModelLibraryFormatError("Don't know how to export non-c or non-llvm modules; found: " + ", ".join(m.type_key for m in others))
    try:
        _core.write_function_library(factory._whole(), factory.loop_text(), os.fspath(path))
    except Error as error:
        if error.code == 203:
            raise UnsupportedInModelLibraryFormatError(str(error)) from error
        raise
    return path


__all__ = ["UnsupportedInModelLibraryFormatError", "export_model_library_format"]
