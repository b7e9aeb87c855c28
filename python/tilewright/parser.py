# SPDX-License-Identifier: Apache-2.0
"""Relay text under its classic names."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def fromtext(source: str, source_name: str = "from_string") -> Any:
    """The module of a text that begins with #[version = "0.0.5"]. Error: 303."""
    from .relay import fromtext as read
    return read(source)


def parse(source: str, source_name: str = "from_string", init_module: Any = None, init_meta_table: Mapping[str, Sequence[Any]] | None = None) -> Any:
    """The same; meta[relay.Constant][i] is init_meta_table["relay.Constant"][i] unless the text has a metadata section. A module to
    begin with is not taken: IRModule.update joins two. Error: 303."""
    from .relay import fromtext as read
    if init_module is not None:
        raise NotImplementedError("parse takes no init_module; parse the text and join the two with IRModule.update")
    table = dict(init_meta_table or {})
    constants = table.pop("relay.Constant", [])
    if table:
        raise NotImplementedError(f"init_meta_table holds relay.Constant only, not {', '.join(sorted(table))}; a #[metadata] section may hold attributes")
    return read(source, source_name, [getattr(c, "data", c) for c in constants])


def parse_expr(source: str) -> Any:
    """The expression of a text without definitions; lines `free_var %x: T;` say its free variables. Error: 303."""
    text = source.strip().removeprefix('#[version = "0.0.5"]').strip()
    free = []
    while text.startswith("free_var "):
        line, _, text = text.partition(";\n")
        free.append(line.removeprefix("free_var ").strip())
    constants = ""
    if "\n#[metadata]" in text:
        text, _, constants = text.partition("\n#[metadata]")
        constants = "\n#[metadata]" + constants
    function = text.startswith("fn") and not free
    whole = text.removeprefix("fn").strip() if function else f"({', '.join(free)}) {{ {text}\n}}"
    made = fromtext('#[version = "0.0.5"]\ndef @main' + whole + "\n" + constants)["main"]
    return made if function else made.body


def SpanCheck() -> Any:
    """A pass that says which calls of a module have no span: "a text that was parsed has one everywhere" is what it checks. Error: ValueError."""
    from .transform import ModulePass, PassContext, PassInfo

    def run(mod: Any, _: PassContext) -> Any:
        from .relay.analysis import post_order_visit
        from .relay.expr import Call
        bare: list[str] = []
        for name, function in mod.functions.items():
            post_order_visit(function, lambda e: bare.append(f"{e.op} in @{name.name_hint}") if isinstance(e, Call) and e.span is None else None)
        if bare:
            raise ValueError(f"{len(bare)} calls have no span: {', '.join(bare[:5])}")
        return mod
    return ModulePass(PassInfo(0, "SpanCheck"), run)


class SourceMap(dict):
    """Texts by name, where messages point into."""


__all__ = ["SourceMap", "SpanCheck", "fromtext", "parse", "parse_expr"]
