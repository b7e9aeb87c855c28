# SPDX-License-Identifier: Apache-2.0
"""What x86 processors have, by the names that LLVM gives them."""
from __future__ import annotations

from ...target import Target


def _has(target: str, *features: str) -> bool:
    known = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={target}").resolve()["cpu_features"] if target else []
    return set(features) <= set(known)


def target_has_sse41(target: str) -> bool:
    return _has(target, "sse4.1")


def target_has_sse42(target: str) -> bool:
    return _has(target, "sse4.2")


def target_has_avx(target: str) -> bool:
    return _has(target, "avx")


def target_has_avx2(target: str) -> bool:
    return _has(target, "avx2")


def target_has_avx512(target: str) -> bool:
    return _has(target, "avx512f", "avx512bw")


def target_has_vnni(target: str) -> bool:
    return _has(target, "avx512vnni")


def get_simd_32bit_lanes() -> int:
    """Lanes of 32 bits in a vector register of the current target: 16, 8 or 4."""
    mcpu = str(Target.current(allow_none=False).mcpu)
    return 16 if target_has_avx512(mcpu) else 8 if target_has_avx2(mcpu) else 4


__all__ = ["get_simd_32bit_lanes", "target_has_avx", "target_has_avx2", "target_has_avx512", "target_has_sse41", "target_has_sse42", "target_has_vnni"]
