# SPDX-License-Identifier: Apache-2.0
"""Lists, options and trees with their functions: `p = Prelude(mod); cons, nil = p.cons, p.nil; p.map(f, xs)`."""
from __future__ import annotations

from typing import Any

from .. import _core

_CONSTRUCTORS = {"nil": ("List", "Nil"), "cons": ("List", "Cons"), "some": ("Option", "Some"), "none": ("Option", "None"), "rose": ("Tree", "Rose")}


class Prelude:
    """Adds the prelude to `mod` (or to a module of its own) and has its types, constructors and functions as attributes."""

    def __init__(self, mod: Any = None):
        self.mod = _core.IRModule() if mod is None else mod
        self.mod.import_from_std("prelude.rly")

    def get_type(self, canonical: str, dtype: str | None = None, shape: Any = None) -> tuple[Any, ...]:
        """The type followed by its constructors."""
        if dtype is not None:
            raise NotImplementedError("tensor arrays are lists of tensors here: List[Tensor[...]]")
        return tuple(self.mod.get_type(canonical))

    def __getattr__(self, name: str) -> Any:
        mod = self.__dict__["mod"]
        wanted = _CONSTRUCTORS.get(name)
        for type_name in mod._type_names:
            if type_name.lower() == name or type_name == name or (name, type_name) == ("l", "List"):
                return mod.get_global_type_var(type_name)
            for c in mod._type(type_name)[1]:
                if (type_name, c.name_hint) == wanted:
                    return c
        if name in mod:
            return mod.get_global_var(name)
        raise AttributeError(f"the prelude has no '{name}'; there are {', '.join(g.name_hint for g in mod.get_global_vars())}")


__all__ = ["Prelude"]
