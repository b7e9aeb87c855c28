# SPDX-License-Identifier: Apache-2.0
"""Which of the compiler's kernels an operator gets: strategies that choose among the implementations there are."""
from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

from .... import _core, options
from ..expr import Call, Op
from .registry import register_op_attr, registered


class OpImplementation:
    """One of the compiler's kernels by name (wildcards allowed: "conv2d_nchwc.*"), and how much it is wanted."""

    def __init__(self, name: str, plevel: int = 10):
        self.name, self.plevel = name, plevel


class OpStrategy:
    """What a strategy function gives: names of implementations, the highest plevel wins among those that apply."""

    def __init__(self) -> None:
        self.implementations: list[OpImplementation] = []

    def add_implementation(self, compute: Any = None, schedule: Any = None, name: str = "default", plevel: int = 10) -> None:
        """`name` is one of `implementations(op)`. Schedules are the kernels' own: a compute or schedule given here is refused."""
        if compute is not None or schedule is not None:
            raise NotImplementedError("kernels are built in: add_implementation(name=..., plevel=...) chooses among strategy.implementations(op)")
        self.implementations.append(OpImplementation(name, plevel))


def implementations(op_name: str) -> list[tuple[str, int]]:
    """(name, plevel) of the kernels there are for an operator."""
    return list(_core.implementations(op_name))


def register_strategy(op_name: str, fstrategy: Callable[..., OpStrategy] | None = None, level: int = 10) -> Any:
    """fstrategy(attrs, inputs, out_type, target) gives an OpStrategy; inputs are types. ValueError for a name that no kernel of the operator
    has is raised when the strategy is asked."""
    return register_op_attr(op_name, "FTVMStrategy", fstrategy, level)


def chooser(target: Any) -> Callable[[Any, list[Any]], int | None] | None:
    """What a build asks when strategies are registered."""
    rules = registered("FTVMStrategy")
    if not rules:
        return None

    def choose(call: Any, candidates: list[tuple[str, str, int, float]]) -> int | None:
        rule = rules.get(call.op.name) if isinstance(call, Call) and isinstance(call.op, Op) else None
        if rule is None:
            return None
        made = rule(call.attrs, [a.checked_type for a in call.args], call.checked_type, target)
        known = [name for name, _ in implementations(call.op.name)]
        best: tuple[int, float, int] | None = None
        for wanted in made.implementations:
            if not fnmatch.filter(known, wanted.name):
                raise ValueError(f"no kernel of {call.op.name} is called '{wanted.name}'; there are {', '.join(known)}")
            for place, (name, _, _, microseconds) in enumerate(candidates):
                if fnmatch.fnmatchcase(name, wanted.name) and (best is None or (wanted.plevel, -microseconds) > best[:2]):
                    best = (wanted.plevel, -microseconds, place)
        return None if best is None else best[2]
    return choose


def _chooser_of(target: Any) -> Any:
    from ...target import Target
    return chooser(Target(target))


options.kernel_chooser_of = _chooser_of  # tilewright.compile asks, too

__all__ = ["OpImplementation", "OpStrategy", "chooser", "implementations", "register_strategy"]
