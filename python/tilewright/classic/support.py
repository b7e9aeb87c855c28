# SPDX-License-Identifier: Apache-2.0
"""Build information for bug reports."""
from __future__ import annotations

import platform
import sys


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


__all__ = ["describe", "libinfo"]
