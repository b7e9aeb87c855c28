# SPDX-License-Identifier: Apache-2.0
"""Diagnostics about a module, collected and shown by a replaceable renderer."""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from ...model import error_of


class DiagnosticLevel(enum.IntEnum):
    BUG, ERROR, WARNING, NOTE, HELP = 10, 20, 30, 40, 50


class Diagnostic:
    def __init__(self, level: int, span: Any, message: str):
        self.level, self.span, self.message = DiagnosticLevel(level), span, message


class DiagnosticRenderer:
    """`DiagnosticRenderer(lambda context: print(context.diagnostics))`"""

    def __init__(self, render_func: Callable[["DiagnosticContext"], None]):
        self._render = render_func

    def render(self, ctx: "DiagnosticContext") -> None:
        self._render(ctx)


class DiagnosticContext:
    """`emit` collects diagnostics; `render` shows them and raises if one is an error."""

    def __init__(self, module: Any, renderer: DiagnosticRenderer | None = None):
        self.module, self.renderer, self.diagnostics = module, renderer or get_renderer(), []  # type: ignore[var-annotated]

    def emit(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)

    def render(self) -> None:
        self.renderer.render(self)
        errors = [d for d in self.diagnostics if d.level <= DiagnosticLevel.ERROR]
        if errors:
            raise error_of(301, "TypeMismatch", "; ".join(d.message for d in errors))


def _print(context: DiagnosticContext) -> None:
    for d in context.diagnostics:
        print(f"{d.level.name.lower()}: {d.message}" + (f"\n --> {d.span}" if d.span is not None else ""))


_renderer: list[DiagnosticRenderer] = []


def get_renderer() -> DiagnosticRenderer:
    return _renderer[-1] if _renderer else DiagnosticRenderer(_print)


def is_overridden() -> bool:
    """Whether a script has set a renderer."""
    return bool(_renderer)


def override_renderer(render_func: Callable[[DiagnosticContext], None] | None) -> None:
    """Sets the renderer of contexts created from now on; None restores the default."""
    _renderer[:] = [DiagnosticRenderer(render_func)] if render_func else []


def clear_renderer() -> None:
    _renderer.clear()


__all__ = ["Diagnostic", "DiagnosticContext", "DiagnosticLevel", "DiagnosticRenderer", "clear_renderer", "get_renderer", "override_renderer"]
