# SPDX-License-Identifier: Apache-2.0
"""Queries about the code generator."""
from __future__ import annotations

from typing import Any

from ... import _core


def llvm_version_major(allow_none: bool = False) -> int:
    """The major version of the LLVM that generates code."""
    return int(_core.llvm_version().split(".")[0])


def llvm_get_targets() -> list[str]:
    """The architectures with a code generator."""
    return ["x86", "x86-64", "aarch64", "arm", "riscv32", "riscv64"]


def llvm_lookup_intrinsic_id(name: str) -> int:
    raise NotImplementedError("intrinsics are chosen by the code generator; 'tilewright compile --emit ll' shows them")


def build_module(mod: Any, target: Any) -> Any:
    raise NotImplementedError("modules of loops are not compiled alone; relay.build compiles a Relay module")


__all__ = ["build_module", "llvm_get_targets", "llvm_lookup_intrinsic_id", "llvm_version_major"]
