# SPDX-License-Identifier: Apache-2.0
"""Calls among the functions of a module: a main function becomes one whose calls are the statements of what it calls."""
from __future__ import annotations

from ... import _core
from .function import LoopModule, PrimFunc


def functions_by_name(mod: LoopModule) -> dict[str, PrimFunc]:
    """The functions by the names that calls may use."""
    return {**{str(f.attrs["global_symbol"]): f for f in mod.functions.values()}, **mod.functions}


def inlined(mod: LoopModule) -> LoopModule:
    """The module with calls of its own functions replaced by their statements (src/tir/passes/inline_calls.h). ValueError: a function that
    calls itself, or is given other counts or kinds of values."""
    functions = functions_by_name(mod)
    try:
        made = dict(zip(functions, _core.inline_calls([(name, f._function) for name, f in functions.items()])))
    except _core.Error as error:
        raise ValueError(str(error).partition("]: ")[2].partition("\n")[0]) from None
    if all(f is None for f in made.values()):
        return mod
    out = mod.copy()
    out.update({name: f if made[name] is None else PrimFunc._of(function=made[name])._with(f.attrs)._named(f._handles) for name, f in mod.functions.items()})
    return out


__all__ = ["functions_by_name", "inlined"]
