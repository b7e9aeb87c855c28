# SPDX-License-Identifier: Apache-2.0
"""The Relay text parser under its classic names."""
from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import _core
from .runtime.ndarray import as_array


def fromtext(source: str, source_name: str = "from_string") -> Any:
    """Parses a module that begins with #[version = "0.0.5"]. Error: 303."""
    return parse(source, source_name)


def parse(source: str, source_name: str = "from_string", init_module: Any = None, init_meta_table: Mapping[str, Sequence[Any]] | None = None) -> Any:
    """As fromtext; the text may also use the functions of init_module, which are added to the module. meta[relay.Constant][i] is
    init_meta_table["relay.Constant"][i] (likewise meta[VirtualDevice][i]) unless the text has a metadata section. `import "prelude.rly"` on a
    line of its own adds a standard file. Error: 303."""
    from .relay import fromtext as read
    imports = _IMPORT.findall(source)
    if imports:
        from .ir import IRModule
        standard = IRModule()
        for name in imports:
            standard.import_from_std(name)
        before, mark, after = _IMPORT.sub("", source).partition("#[metadata]")
        source = f"{before}\n{standard}\n{mark}{after}"
    constants, devices = _metadata(init_meta_table)
    with _reported(source_name):
        if init_module is None:
            return read(source, source_name, constants, devices)
        out = init_module.copy()
        out.update(_core.parse_module(source, constants, source_name, True, True, devices))
        return out._completed()


_IMPORT = re.compile(r'^[ \t]*import[ \t]+"([^"\n]+)"[ \t]*;?[ \t]*$', re.MULTILINE)


@contextlib.contextmanager
def _reported(source_name: str) -> Iterator[None]:
    """Shows an error to the renderer that a script has set, too."""
    try:
        yield
    except _core.Error as error:
        from .ir import diagnostics
        from .relay.span import Span
        if diagnostics.is_overridden():
            place = re.search(re.escape(source_name) + r":(\d+):(\d+): ", str(error))
            line, column = (int(n) for n in place.groups()) if place else (0, 0)
            context = diagnostics.DiagnosticContext(None)
            context.emit(diagnostics.Diagnostic(diagnostics.DiagnosticLevel.ERROR, Span(source_name, line, line, column, column), str(error)))
            context.renderer.render(context)
        raise


def _metadata(meta_table: Mapping[str, Sequence[Any]] | None) -> tuple[list[Any], list[str]]:
    table = dict(meta_table or {})
    constants, devices = table.pop("relay.Constant", []), table.pop("VirtualDevice", [])
    if table:
        raise NotImplementedError(f"init_meta_table holds relay.Constant and VirtualDevice only, not {', '.join(sorted(table))}; a #[metadata] section may hold attributes")
    return [as_array(getattr(c, "data", c)) for c in constants], [d.text for d in devices]


def parse_expr(source: str) -> Any:
    """Parses an expression without definitions; "free_var %x: T;" declares its free variables, and functions and operators may be
    referred to by name. Error: 303."""
    with _reported("text"):
        return _core.parse_expression(source)


def SpanCheck() -> Any:
    """A pass that checks that every call of a module has a span, as after parsing. Error: ValueError."""
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
    """Source texts by name, for spans."""


__all__ = ["SourceMap", "SpanCheck", "fromtext", "parse", "parse_expr"]
