# SPDX-License-Identifier: Apache-2.0
"""Functions of the loop IR, and modules of them: what `tvm.lower` gives and `tvm.build` takes."""
from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping

from .buffer import Buffer, decl_buffer
from .expr import Var


class PrimFunc:
    """A lowered function: its kernels' loops are its text."""

    def __init__(self, lowered: typing.Any, attrs: Mapping[str, typing.Any] | None = None):
        self._lowered = lowered
        self.attrs: dict[str, typing.Any] = {"global_symbol": lowered.name, "tir.noalias": True, **(attrs or {})}

    @property
    def params(self) -> list[typing.Any]:
        """The arguments: variables, and handles of buffers."""
        return [Var(a[0], "handle") if isinstance(a, tuple) else a for a in self._lowered.arguments]

    @property
    def buffer_map(self) -> dict[str, Buffer]:
        """The buffers of arguments by name."""
        return {a[0]: decl_buffer(a[2], a[1], a[0]) for a in self._lowered.arguments if isinstance(a, tuple)}

    @property
    def body(self) -> str:
        """The loops as text."""
        return self._lowered.text(False)

    def with_attr(self, key: typing.Any, value: typing.Any = None) -> "PrimFunc":
        """A copy with attributes: a key and a value, or a dict. `global_symbol` is the function's name."""
        new = dict(key) if isinstance(key, Mapping) else {key: value}
        lowered = self._lowered.renamed(str(new["global_symbol"])) if "global_symbol" in new else self._lowered
        return PrimFunc(lowered, {**self.attrs, **new})

    def script(self, *_: typing.Any, **__: typing.Any) -> str:
        return self.body

    def astext(self, show_meta_data: bool = True) -> str:
        return self.body

    def __repr__(self) -> str:
        return self.body


class LoopModule:
    """Functions by name."""

    def __init__(self, functions: Mapping[str, PrimFunc] | None = None):
        self.functions = {str(name): function for name, function in (functions or {}).items()}
        self.attrs = None

    def __getitem__(self, name: typing.Any) -> PrimFunc:
        name = getattr(name, "name_hint", name)
        if name not in self.functions:
            raise ValueError(f"the module has no function '{name}'; it has {', '.join(self.functions)}")
        return self.functions[name]

    def __setitem__(self, name: typing.Any, function: PrimFunc) -> None:
        self.functions[str(getattr(name, "name_hint", name))] = function

    def __contains__(self, name: typing.Any) -> bool:
        return getattr(name, "name_hint", name) in self.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def update(self, other: typing.Any) -> None:
        """Takes the functions of another module, in the place of those of the same names."""
        self.functions.update(other.functions if isinstance(other, LoopModule) else other)

    def get_global_vars(self) -> list[str]:
        return list(self.functions)

    def script(self, *_: typing.Any, **__: typing.Any) -> str:
        return "\n".join(f.body for f in self.functions.values())

    def astext(self, show_meta_data: bool = True) -> str:
        return self.script()

    def __repr__(self) -> str:
        return self.script()


__all__ = ["LoopModule", "PrimFunc"]
