# SPDX-License-Identifier: Apache-2.0
"""Models, packages and results."""
from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contrib import cc as _cc
from ...contrib.utils import TempDirectory, tempdir
from ...micro.model_library_format import export_model_library_format
from ...runtime.module import BenchmarkResult, Module, load_module, load_param_dict, save_param_dict
from .common import TVMCException


class TVMCModel:
    """A graph module with its parameters."""

    _MODULE, _PARAMS = "mod.relay.json", "mod.params"

    def __init__(self, mod: Any = None, params: Mapping[str, Any] | None = None, model_path: str | None = None, name: str = "default"):
        if (mod is None) == (model_path is None):
            raise TVMCException("Either mod and params or a path to a saved model must be provided.")
        self.name = name
        if model_path is not None:
            self._load(model_path)
        else:
            self.mod = mod
            self.params = dict(params or {})
        self._tmp_dir: TempDirectory | None = None

    @classmethod
    def is_saved(cls, path: str) -> bool:
        """Whether save() wrote the file."""
        try:
            with tarfile.open(path) as archive:
                return set(archive.getnames()) == {cls._MODULE, cls._PARAMS}
        except (tarfile.TarError, OSError):
            return False

    def save(self, model_path: str) -> None:
        """Writes an archive of module and parameters, which tvmc.load reads."""
        from ... import ir
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            for name, data in ((self._MODULE, ir.save_json(self.mod).encode()), (self._PARAMS, save_param_dict(self.params))):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
            with tarfile.open(os.path.join(folder, "model"), "w") as archive:
                for name in (self._MODULE, self._PARAMS):
                    archive.add(os.path.join(folder, name), name)
            with open(os.path.join(folder, "model"), "rb") as made, open(model_path, "wb") as file:
                file.write(made.read())

    def _load(self, model_path: str) -> None:
        from ... import ir
        if not self.is_saved(model_path):
            raise TVMCException(f"'{model_path}' is no model that TVMCModel.save wrote")
        with tarfile.open(model_path) as archive:
            text, params = (archive.extractfile(name).read() for name in (self._MODULE, self._PARAMS))  # type: ignore[union-attr]
        self.mod = ir.load_json(text.decode())
        self.params = dict(load_param_dict(params))

    def summary(self, file: Any = None) -> None:
        """Prints the module."""
        print(self.mod.astext(), file=file or sys.stdout)

    def default_package_path(self) -> str:
        """A path in a temporary folder that is deleted with the model."""
        if self._tmp_dir is None:
            self._tmp_dir = tempdir()
        return self._tmp_dir.relpath("model_package.tar")

    def export_package(self, executor_factory: Any, package_path: str | None = None, cross: Any = None, cross_options: str | None = None,
                       output_format: str = "so") -> str:
        """Writes library, graph and parameters to one archive."""
        if output_format not in ("so", "tar", "mlf"):
            raise TVMCException(f"the output format '{output_format}' is not supported; there are so, tar and mlf")
        package_path = package_path or self.default_package_path()
        if output_format == "mlf":
            if cross is not None:
                raise TVMCException("Specifying the MLF output and a cross compiler is not supported.")
            export_model_library_format(executor_factory, package_path)
            return package_path
        if cross is None:
            executor_factory.save(package_path, form="package")
            return package_path
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            compiler = cross if callable(cross) else _cc.cross_compiler(cross, options=(cross_options or "").split())
            executor_factory.export_library(os.path.join(folder, "mod.so"), fcompile=compiler)
            for name, data in (("mod.json", (executor_factory.get_executor_config() or "").encode()), ("mod.params", save_param_dict(executor_factory.get_params()))):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
            with tarfile.open(package_path, "w") as archive:
                for name in ("mod.so", "mod.json", "mod.params"):
                    archive.add(os.path.join(folder, name), name)
        return package_path

    export_classic_format = export_package


class TVMCPackage:
    """A compiled model, read from its archive or from a library alone."""

    type = "classic"

    def __init__(self, package_path: str | os.PathLike[str], project_dir: str | None = None, use_vm: bool = False):
        if use_vm:
            raise TVMCException("packages of the VM are not supported; tilewright.load runs a library of it")
        self.package_path = os.fspath(package_path)
        self.lib_name: str | None = "mod.so"
        self.lib_path: str | None = ""
        self._bytes = b""
        self.graph: str | None = None
        self.params: bytes = b""
        self.project_dir = project_dir
        self._lib: Module | None = None
        if project_dir is not None:
            if not os.path.isdir(project_dir):
                raise TVMCException(f"there is no project '{project_dir}'; tvmc micro create-project makes one")
            self.type, self.executor_type = "mlf", "aot"
            return
        if not os.path.exists(self.package_path):
            raise TVMCException(f"the package '{self.package_path}' does not exist")
        if not tarfile.is_tarfile(self.package_path):
            self._lib = load_module(self.package_path, "so")
            self._describe()
            return
        with tarfile.open(self.package_path) as archive, tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            names = archive.getnames()
            if "./metadata.json" in names or "metadata.json" in names:
                self.type, self.executor_type = "mlf", "aot" if not any("executor-config/graph/" in name for name in names) else "graph"
                self.lib_name = self.lib_path = None  # it has code, but no library
                return
            if "mod.so" not in names:
                raise TVMCException(f"'{self.package_path}' has no mod.so: it is no package of a compiled model")

            def read(name: str) -> bytes:
                member = archive.extractfile(name) if name in names else None
                return member.read() if member is not None else b""

            self.lib_path = os.path.join(folder, "mod.so")
            self._bytes = read("mod.so")  # read now: the archive may be deleted before the library is needed
            with open(self.lib_path, "wb") as file:
                file.write(self._bytes)
            self._lib = load_module(self.lib_path)  # the mapping stays valid after the folder is deleted
            self.graph, self.params = read("mod.json").decode() or None, read("mod.params")
        self._describe()

    def library_bytes(self) -> bytes:
        """The library file's bytes, for upload to another machine."""
        if self._bytes:
            return self._bytes
        with open(self.package_path, "rb") as file:
            return file.read()

    def _describe(self) -> None:
        assert self._lib is not None
        aot = not self._lib.implements_function("get_graph_json")
        self.executor_type = "aot" if aot else "graph"
        if self.graph is None and not aot:
            self.graph = self._lib["get_graph_json"]()

    @property
    def lib(self) -> Module:
        if self._lib is None:
            raise TVMCException("You're trying to run a model saved using the Model Library Format (MLF). MLF can only be used to run micro device ('--device micro').")
        return self._lib


class TVMCResult:
    """The outputs of a run by name, and the times of a benchmark."""

    def __init__(self, outputs: dict[str, np.ndarray], times: BenchmarkResult | None = None, profile: Any = None):
        self.outputs = outputs
        self.times = times
        self.profile = profile

    def format_times(self) -> str:
        """A table of the run times; empty if nothing was measured."""
        return str(self.times) if self.times is not None else ""

    def get_output(self, name: str) -> np.ndarray:
        return self.outputs[name]

    def save(self, output_path: str) -> None:
        """Writes the outputs to a .npz file."""
        np.savez(output_path, **self.outputs)  # type: ignore[arg-type]

    def get_profile(self) -> str:
        return str(self.profile) if self.profile is not None else ""

    def __str__(self) -> str:
        return self.format_times() + "\n" + "Output Names:\n " + str(list(self.outputs))


__all__ = ["TVMCModel", "TVMCPackage", "TVMCResult"]
