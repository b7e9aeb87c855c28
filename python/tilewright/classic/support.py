# SPDX-License-Identifier: Apache-2.0
"""Build information for bug reports."""
from __future__ import annotations

import platform
import sys
from typing import Any

from .registry import convert
from .runtime.module import Module, create_module


def libinfo() -> dict[str, str]:
    """Build information under the classic keys."""
    from .. import __version__
    from .target import Target
    resolved = Target("llvm").resolve()
    from .target.codegen import llvm_version_major
    return {"VERSION": __version__, "USE_LLVM": "ON", "LLVM_VERSION": str(llvm_version_major()), "USE_CUDA": "OFF", "USE_OPENCL": "OFF", "USE_VULKAN": "OFF", "USE_METAL": "OFF", "USE_ROCM": "OFF",
            "USE_RPC": "OFF", "USE_MICRO": "OFF", "HOST_TRIPLE": str(resolved["mtriple"]), "HOST_CPU": str(resolved["mcpu"]),
            "HOST_VECTOR_BITS": str(resolved["vector_bits"])}


def describe() -> None:
    """Prints it, with the versions of Python and the operating system."""
    print(f"Python Environment\n  Python version  = {sys.version.split()[0]}\n  os.uname()      = {platform.platform()}\nBuild")
    for name, value in libinfo().items():
        print(f"  {name:<16}= {value}")


class FrontendTestModule(Module):
    """A module whose functions are those of Python that a script gives it: `m["name"] = function`."""

    def __init__(self, entry_name: str | None = None):
        self._functions: dict[str, Any] = {}
        super().__init__(create_module("frontend_test", self._functions)._handle)
        if entry_name is not None:
            self.entry_name = entry_name

    def add_function(self, name: str, func: Any) -> None:
        self._functions[name] = func

    __setitem__ = add_function

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        if name in self._functions:
            return convert(self._functions[name])
        return super().get_function(name, query_imports)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        return name in self._functions


__all__ = ["FrontendTestModule", "describe", "libinfo"]
