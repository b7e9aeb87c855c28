# SPDX-License-Identifier: Apache-2.0
"""Operator strategies: choose among the compiler's kernels, or implement an operator with tensor expressions."""
from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

from ..... import _core, options
from ...expr import Call, Op
from ..registry import register_op_attr, registered
from . import generic
from .generic import (naive_schedule, wrap_compute_batch_matmul, wrap_compute_conv1d, wrap_compute_conv2d, wrap_compute_conv2d_transpose, wrap_compute_conv3d, wrap_compute_dense,
                      wrap_compute_matmul, wrap_custom_schedule, wrap_topi_compute, wrap_topi_schedule)


class OpImplementation:
    """A kernel of the compiler by name (wildcards allowed: "conv2d_nchwc.*"), or a compute function with its schedule; and a priority
    (plevel)."""

    def __init__(self, name: str, plevel: int = 10, compute: Any = None, schedule: Any = None):
        self.name, self.plevel, self._compute, self._schedule = name, plevel, compute, schedule

    @property
    def is_own(self) -> bool:
        """Whether a script implements it."""
        return self._compute is not None

    def compute(self, attrs: Any, inputs: Any, out_type: Any) -> list[Any]:
        """The te tensors that compute(attrs, inputs, out_type) returns. ValueError for a kernel of the compiler."""
        if self._compute is None:
            raise ValueError(f"'{self.name}' is a kernel of the compiler's: it has no computation in te")
        made = self._compute(attrs, inputs, out_type)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def schedule(self, attrs: Any, outs: Any, target: Any) -> Any:
        """The schedule that schedule(attrs, outs, target) returns; by default the naive one."""
        from .... import te
        from ....target import Target
        if self._schedule is None:
            return te.create_schedule([t.op for t in outs])
        target = Target(target)
        with target:
            return self._schedule(attrs, outs, target)


class OpSpecialization:
    """Implementations that hold under one condition, or unconditionally."""

    def __init__(self, condition: Any = None):
        self.condition, self.implementations = condition, []

    @property
    def holds(self) -> bool:
        """Whether there is no condition, or one that is known to be true."""
        from ....arith import Analyzer
        simplified = [Analyzer().canonical_simplify(c) if isinstance(c, _core.PrimExpr) else c for c in self.condition.clauses] if self.condition else []
        return all(isinstance(c, int) and bool(c) for c in simplified)


class OpStrategy:
    """The result of a strategy function: the applicable implementation with the highest plevel is used."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    @property
    def implementations(self) -> list[OpImplementation]:
        """Of all specializations whose condition holds."""
        return [i for s in self.specializations if s.holds for i in s.implementations]

    def add_implementation(self, compute: Any = None, schedule: Any = None, name: str = "default", plevel: int = 10) -> None:
        """compute(attrs, inputs, out_type) returns te tensors, schedule(attrs, outs, target) their schedule. Without both, `name` is one
        of `implementations(op)`."""
        if schedule is not None and compute is None:
            raise ValueError("a schedule is of a computation: give add_implementation both")
        from ....te.schedule import SpecializedCondition
        condition = SpecializedCondition.current()
        held = next((s for s in self.specializations if s.condition is condition), None)
        if held is None:
            held = OpSpecialization(condition)
            self.specializations.append(held)
        held.implementations.append(OpImplementation(name, plevel, compute, schedule))


def implementations(op_name: str) -> list[tuple[str, int]]:
    """(name, plevel) of the compiler's kernels for an operator."""
    return list(_core.implementations(op_name))


def register_strategy(op_name: str, fstrategy: Callable[..., OpStrategy] | None = None, level: int = 10) -> Any:
    """fstrategy(attrs, inputs, out_type, target) returns an OpStrategy; inputs are te tensors. A name that is not a kernel of the
    operator raises ValueError when the strategy is used."""
    return register_op_attr(op_name, "FTVMStrategy", fstrategy, level)


def chooser(target: Any) -> Callable[[Any, list[Any]], int | None] | None:
    """The kernel chooser of a build, if strategies are registered."""
    rules = registered("FTVMStrategy")
    if not rules:
        return None
    from ...te_kernels import strategy_of

    def choose(call: Any, candidates: list[tuple[str, str, int, float]]) -> int | None:
        if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name not in rules:
            return None
        made = strategy_of(call, target)
        known = [name for name, _ in implementations(call.op.name)]
        best: tuple[int, float, int] | None = None
        for wanted in () if made is None else made.implementations:
            if wanted.is_own:
                continue
            if not fnmatch.filter(known, wanted.name):
                raise ValueError(f"no kernel of {call.op.name} is called '{wanted.name}'; there are {', '.join(known)}")
            for place, (name, _, _, microseconds) in enumerate(candidates):
                if fnmatch.fnmatchcase(name, wanted.name) and (best is None or (wanted.plevel, -microseconds) > best[:2]):
                    best = (wanted.plevel, -microseconds, place)
        return None if best is None else best[2]
    return choose


def _chooser_of(target: Any) -> Any:
    from ....target import Target
    return chooser(Target(target))


options.kernel_chooser_of = _chooser_of  # for tilewright.compile

__all__ = ["OpImplementation", "OpSpecialization", "OpStrategy", "chooser", "generic", "implementations", "naive_schedule", "register_strategy", "wrap_compute_batch_matmul", "wrap_compute_conv1d",
           "wrap_compute_conv2d", "wrap_compute_conv2d_transpose", "wrap_compute_conv3d", "wrap_compute_dense", "wrap_compute_matmul", "wrap_custom_schedule", "wrap_topi_compute", "wrap_topi_schedule"]
