# SPDX-License-Identifier: Apache-2.0
"""Marks for tests with requirements on the machine or the build: `@requires_llvm`, `@requires_cuda()`, `pytest.param(x,
marks=requires_cuda.marks())`. A test whose requirement is not met is skipped with the reason."""
from __future__ import annotations

import importlib.util
import os
import platform
import unittest
from collections.abc import Callable, Iterator
from typing import Any


def _pytest() -> Any:
    """pytest, or None if it is not installed, in which case unittest's skips are used."""
    return importlib.import_module("pytest") if importlib.util.find_spec("pytest") else None


class Marks(list):
    """A list of pytest marks that can be used as a decorator: the result of a requirement called without a test."""

    def __call__(self, test: Any) -> Any:
        for mark in reversed(self):
            test = mark(test)
        return test


class Feature:
    """A named requirement: whether it is met, and its marks. `parents` are requirements that it includes."""

    _all: dict[str, "Feature"] = {}

    def __init__(self, name: str, long_name: str | None = None, cmake_flag: str | None = None, target_kind_enabled: str | None = None, compile_time_check: Any = None,
                 target_kind_hardware: str | None = None, run_time_check: Callable[[], bool] | None = None, parent_features: Any = None):
        self.name, self.long_name = name, long_name or name
        self.cmake_flag, self.target_kind_enabled, self.target_kind_hardware = cmake_flag, target_kind_enabled, target_kind_hardware
        self._compile_time_check, self._run_time_check = compile_time_check, run_time_check
        parents = [parent_features] if isinstance(parent_features, str) else list(parent_features or [])
        self.parent_features = parents
        Feature._all[name] = self

    def met(self) -> bool:
        from ..runtime.module import enabled
        from ..runtime.ndarray import device
        if not all(Feature._all[p].met() for p in self.parent_features if p in Feature._all):
            return False
        if self._compile_time_check is not None and self._compile_time_check() is not True:
            return False
        if self.target_kind_enabled is not None and not enabled(self.target_kind_enabled.split()[0]):
            return False
        if self.target_kind_hardware is not None and not device(self.target_kind_hardware).exist:
            return False
        if self.cmake_flag is not None:
            from ..support import libinfo
            if str(libinfo().get(self.cmake_flag, "OFF")).upper() in ("OFF", "FALSE", "0", "NOT-FOUND"):
                return False
        return self._run_time_check is None or bool(self._run_time_check())

    def _names(self) -> Iterator[str]:
        yield self.name
        for parent in self.parent_features:
            yield from Feature._all[parent]._names() if parent in Feature._all else (parent,)

    def marks(self, support_required: str = "compile-and-run") -> Marks:
        """Marks for pytest.param(..., marks=...). "optional": only the name mark, without skipping."""
        if support_required not in ("compile-and-run", "compile-only", "optional"):
            raise ValueError(f"Unknown feature support type: {support_required}")
        pytest, made = _pytest(), Marks()
        if pytest is not None:
            made += [getattr(pytest.mark, name.replace("-", "_")) for name in dict.fromkeys(self._names())]
        if support_required != "optional" and not self.met():
            reason = f"{self.long_name} is not here"
            made.append(pytest.mark.skipif(True, reason=reason) if pytest is not None else unittest.skip(reason))
        return made

    def __call__(self, *args: Any, support_required: str = "compile-and-run") -> Any:
        made = self.marks(support_required)
        return made(args[0]) if args and callable(args[0]) else made

    @classmethod
    def require(cls, name: str, support_required: str = "compile-and-run") -> Marks:
        """The marks of the feature with this name."""
        return cls._all[name].marks(support_required)


def _here(name: str, long_name: str, check: Callable[[], bool], **more: Any) -> Feature:
    return Feature(name, long_name, run_time_check=check, **more)


def _absent(name: str, long_name: str, *parents: str) -> Feature:
    return Feature(name, long_name, run_time_check=lambda: False, parent_features=parents)


def _flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return set(next((line for line in file if line.startswith(("flags", "Features"))), "").split())
    except OSError:
        return set()


def _machine(*names: str) -> Callable[[], bool]:
    return lambda: platform.machine().lower() in names


uses_gpu = _here("gpu", "a graphics processor", lambda: True)
requires_llvm = _here("llvm", "LLVM", lambda: True)
requires_x86 = _here("x86", "an x86 processor", _machine("x86_64", "amd64", "i686"))
requires_aarch64 = _here("aarch64", "a 64-bit ARM processor", _machine("aarch64", "arm64"))
requires_arm_dot = _here("arm_dot", "an ARM processor with dot products", lambda: "asimddp" in _flags(), parent_features="aarch64")
requires_cascadelake = requires_x86_vnni = _here("cascadelake", "a processor with AVX-512 VNNI", lambda: "avx512_vnni" in _flags())
requires_skylake_avx512 = _here("skylake_avx512", "a processor with AVX-512", lambda: "avx512f" in _flags())
requires_gpu = Feature("requires_gpu", "a graphics processor", run_time_check=lambda: False)
for _name, _what in (("cuda", "CUDA"), ("opencl", "OpenCL"), ("vulkan", "Vulkan"), ("metal", "Metal"), ("rocm", "ROCm"), ("nvptx", "NVPTX")):
    globals()[f"requires_{_name}"] = _absent(_name, _what, "gpu")
for _name, _what in (("cudagraph", "CUDA graphs"), ("cudnn", "cuDNN"), ("cublas", "cuBLAS"), ("tensorcore", "tensor cores")):
    globals()[f"requires_{_name}"] = _absent(_name, _what, "cuda")
requires_rpc = _here("rpc", "RPC", lambda: True)
for _name, _what in (("micro", "microTVM"), ("hexagon", "Hexagon"), ("ethosn", "Ethos-N"), ("ethosu", "Ethos-U"), ("cmsisnn", "CMSIS-NN"),
                     ("corstone300", "Corstone-300"), ("vitis_ai", "Vitis AI"), ("libtorch", "LibTorch"), ("openclml", "OpenCL ML"), ("multi_gpu", "a second graphics processor")):
    globals()[f"requires_{_name}"] = _absent(_name, _what)


def requires_package(*packages: str) -> Marks:
    """Skips the test if a Python package is missing."""
    missing = [p for p in packages if importlib.util.find_spec(p.split(".")[0]) is None]
    if not missing:
        return Marks()
    pytest, reason = _pytest(), f"{', '.join(missing)} is not installed"
    return Marks([pytest.mark.skipif(True, reason=reason) if pytest is not None else unittest.skip(reason)])


def _wheel(test: Any) -> Any:
    return test if os.environ.get("WHEEL_TEST", "").lower() not in ("true", "1", "yes") else unittest.skip("not for an installed wheel")(test)


def skip_if_32bit(reason: str = "not for 32-bit systems") -> Any:
    return (lambda test: test) if platform.architecture()[0] != "32bit" else unittest.skip(reason)


def requires_nvcc_version(major_version: int, minor_version: int = 0, release_version: int = 0) -> Marks:
    """Skips the test: there is no nvcc of any version."""
    pytest, reason = _pytest(), f"Requires NVCC >= {major_version}.{minor_version}.{release_version}"
    return Marks([*requires_cuda.marks(), pytest.mark.skipif(True, reason=reason) if pytest is not None else unittest.skip(reason)])  # type: ignore[name-defined]  # noqa: F821


def slow(test: Any) -> Any:
    """Left out where SKIP_SLOW_TESTS says so."""
    return unittest.skip("slow")(test) if SKIP_SLOW_TESTS else test


skip_if_wheel_test = _wheel
SKIP_SLOW_TESTS = os.environ.get("SKIP_SLOW_TESTS", "").lower() in ("true", "1", "yes")
IS_IN_CI = os.environ.get("CI", "") == "true"

__all__ = ["Feature", "IS_IN_CI", "SKIP_SLOW_TESTS", "skip_if_32bit", "skip_if_wheel_test", "slow", "uses_gpu", *sorted(n for n in globals() if n.startswith("requires_"))]
