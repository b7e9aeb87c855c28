# SPDX-License-Identifier: Apache-2.0
"""Symbol names of built models."""
from __future__ import annotations


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of a model's functions: "tvmgen_" and the model's name."""
    return "tvmgen_" + (mod_name or "default")


def _is_valid_modname(mod_name: str) -> bool:
    """Whether a name is valid in symbols."""
    return bool(mod_name) and all(c.isascii() and (c.isalnum() or c == "_") for c in mod_name)


__all__ = ["mangle_module_name"]
