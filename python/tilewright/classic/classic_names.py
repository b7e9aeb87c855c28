# SPDX-License-Identifier: Apache-2.0
"""The names of the classic interface (classic_names.txt), and the modules that define them."""
from __future__ import annotations

import functools
import os


@functools.lru_cache(maxsize=None)
def modules() -> dict[str, tuple[str, ...]]:
    """Public names by module: {"tvm.relay.op": ("Op", ...)}."""
    out: dict[str, list[str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "classic_names.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if not line.startswith(" "):
                module, _, line = line.partition(":")
                out.setdefault(module, [])
            out[module] += line.split()
    return {module: tuple(names) for module, names in out.items()}


@functools.lru_cache(maxsize=None)
def _everything() -> frozenset[str]:
    """All modules with their parent packages, and all names."""
    found: set[str] = set()
    for module, names in modules().items():
        found.update(f"{module}.{name}" for name in names)
        while module:
            found.add(module)
            module = module.rpartition(".")[0]
    return frozenset(found)


def known(path: str) -> bool:
    """Whether the classic interface defines a name or module: known("tvm.relay.frontend.from_tflite")."""
    return path in _everything()


__all__ = ["known", "modules"]
