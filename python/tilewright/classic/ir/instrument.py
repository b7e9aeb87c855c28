# SPDX-License-Identifier: Apache-2.0
"""Instruments: objects that a PassContext calls around every pass.

An instrument may have enter_pass_ctx(), exit_pass_ctx(), should_run(mod, info), run_before_pass(mod, info) and
run_after_pass(mod, info)."""
from __future__ import annotations

import functools
import time
from typing import Any


class PassInstrument:
    def enter_pass_ctx(self) -> None:
        pass

    def exit_pass_ctx(self) -> None:
        pass

    def should_run(self, mod: Any, info: Any) -> bool:
        return True

    def run_before_pass(self, mod: Any, info: Any) -> None:
        pass

    def run_after_pass(self, mod: Any, info: Any) -> None:
        pass


_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


def pass_instrument(pi_cls: Any = None) -> Any:
    """Class decorator: instances are instruments."""
    def wrap(cls: type) -> type:
        for method in _METHODS:
            if hasattr(cls, method) and not callable(getattr(cls, method)):
                raise TypeError(f"{method} of {cls.__name__} must be a method")
        made = type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__})
        return functools.update_wrapper(made, cls, updated=())
    return wrap if pi_cls is None else wrap(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Times every pass. Call `render()` inside the context; leaving it discards the times."""

    def __init__(self) -> None:
        self._done: list[tuple[int, str, float]] = []
        self._open: list[tuple[str, float, int]] = []

    def enter_pass_ctx(self) -> None:
        self._done, self._open = [], []

    exit_pass_ctx = enter_pass_ctx

    def run_before_pass(self, mod: Any, info: Any) -> None:
        self._done.append((len(self._open), info.name, 0.0))
        self._open.append((info.name, time.perf_counter(), len(self._done) - 1))

    def run_after_pass(self, mod: Any, info: Any) -> None:
        name, start, place = self._open.pop()
        self._done[place] = (self._done[place][0], name, 1e6 * (time.perf_counter() - start))

    def render(self) -> str:
        """Microseconds of each pass, nested passes indented."""
        total = sum(us for depth, _, us in self._done if depth == 0) or 1.0
        return "".join(f"{'	' * depth}{name}: {us:.0f}us [{us:.0f}us] ({100 * us / total:.2f}%)\n" for depth, name, us in self._done)


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the named passes."""

    def __init__(self, print_before_pass_names: Any = (), print_after_pass_names: Any = ()):
        self._before, self._after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod: Any, info: Any) -> None:
        if info.name in self._before:
            print(f"Print IR before: {info.name}\n{mod}\n")

    def run_after_pass(self, mod: Any, info: Any) -> None:
        if info.name in self._after:
            print(f"Print IR after: {info.name}\n{mod}\n")


class PrintBeforeAll(PassInstrument):
    def run_before_pass(self, mod: Any, info: Any) -> None:
        print(f"Before Running Pass: {info}\n{mod}\n")


class PrintAfterAll(PassInstrument):
    def run_after_pass(self, mod: Any, info: Any) -> None:
        print(f"After Running Pass: {info}\n{mod}\n")


__all__ = ["PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll", "pass_instrument"]
