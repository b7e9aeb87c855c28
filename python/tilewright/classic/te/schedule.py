# SPDX-License-Identifier: Apache-2.0
"""Schedules: when and in which loops tensors are computed."""
from __future__ import annotations

import os
import typing

from ... import _core
from ..tir.buffer import Buffer
from ..tir.op import const
from ..tir.reduction import IterVar, ThreadAxis
from .graph import AutoInlineBroadcast, AutoInlineElemWise, AutoInlineInjective, CreateReadGraph, PostDFSOrder
from .relations import Fuse, InferBound, IterVarAttr, IterVarRelation, ScheduleOps, Singleton, Split, all_loops_of, attributes_of, relations_of
from .tensor import Operation, Tensor


def _operation(target: typing.Any) -> typing.Any:
    if isinstance(target, _core.Operation):
        return target
    if isinstance(target, _core.Tensor):
        return target.op
    if isinstance(target, Stage):
        return target.op
    raise TypeError(f"a schedule has stages of tensors and operations, not of a {type(target).__name__}")


def _loop(value: typing.Any) -> typing.Any:
    if isinstance(value, _core.IterVar):
        return value
    raise TypeError(f"a loop is one of a stage's axes, or what split, fuse or tile gave, not a {type(value).__name__}")


def _number(value: typing.Any, what: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is a number, not {value}") from None


class Stage(_core.Stage):
    """An operation and its loops. Invalid scheduling steps raise error 101 immediately."""

    def split(self, parent: IterVar, factor: typing.Any = None, nparts: typing.Any = None, disable_predication: bool = False) -> tuple[IterVar, IterVar]:
        """Splits a loop in two: the inner one has `factor` iterations, or the outer one `nparts`."""
        if nparts is not None and factor is not None:
            raise ValueError("Do not need to provide both outer and nparts")
        if nparts is None and factor is None:
            raise ValueError("Either nparts or factor need to be provided")
        return self._split(_loop(parent), 0 if factor is None else _number(factor, "factor"), 0 if nparts is None else _number(nparts, "nparts"))

    def fuse(self, *args: IterVar) -> IterVar:
        """Fuses perfectly nested adjacent loops; without any, makes the one loop of a stage that has none."""
        if not args:
            return self._singleton()
        fused = _loop(args[0])
        for more in args[1:]:
            fused = self._fuse(fused, _loop(more))
        return fused

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: typing.Any, y_factor: typing.Any) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Splits two loops and reorders them: x outer, y outer, x inner, y inner."""
        xo, xi = self.split(x_parent, x_factor)
        yo, yi = self.split(y_parent, y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def reorder(self, *args: IterVar) -> None:
        """Reorders these loops among the positions that they occupy."""
        self._reorder([_loop(a) for a in args])

    def vectorize(self, var: IterVar) -> None:
        self._vectorize(_loop(var))

    def unroll(self, var: IterVar) -> None:
        self._unroll(_loop(var))

    def parallel(self, var: IterVar) -> None:
        """Distributes the loop's iterations over threads; only outermost loops can be parallel."""
        self._parallel(_loop(var))

    def bind(self, ivar: IterVar, thread_ivar: ThreadAxis) -> None:
        """Binds the loop to a GPU thread. Bound schedules can be lowered and printed, but not built."""
        if not isinstance(thread_ivar, ThreadAxis):
            raise TypeError("a loop is bound to a te.thread_axis")
        self._bind(_loop(ivar), thread_ivar.thread_tag)

    def env_threads(self, threads: typing.Any) -> None:
        """GPU threads around the whole stage; not available on a CPU."""

    def compute_at(self, parent: "Stage", scope: IterVar) -> None:
        """Computes the stage inside a loop of its consumer: the part that one iteration needs."""
        self._compute_at(parent, _loop(scope))

    def compute_inline(self) -> None:
        """Inlines the computation into its consumers."""
        self._compute_inline()

    def compute_root(self) -> None:
        """Computes the whole stage before its consumers."""
        self._compute_root()

    def set_scope(self, scope: str) -> None:
        """Sets the storage scope. It has no effect on a CPU: the compiler chooses between registers, stack and heap."""
        self._set_scope(_scope(scope))

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Accepted without effect: scratch buffers are compact."""
        if axis not in list(self.op.axis):
            raise ValueError("storage_align is for an axis of the operation")
        if _number(factor, "factor") < 1:
            raise ValueError("storage_align takes a factor of 1 or more")

    def double_buffer(self) -> None:
        """Accepted without effect: CPUs prefetch in hardware."""

    def rolling_buffer(self) -> None:
        raise ValueError("there is no rolling buffer; compute_at a loop computes what one iteration needs")

    def prefetch(self, tensor: Tensor, var: IterVar, offset: typing.Any) -> None:
        """Accepted without effect: CPUs prefetch in hardware."""
        if not isinstance(tensor, _core.Tensor):
            raise TypeError("prefetch is for a tensor")
        self._check_loop(_loop(var))

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: typing.Any = None) -> None:
        """A loop pragma. "unroll", "vectorize" and "parallel" apply these steps; "import_llvm" adds LLVM IR (text or file path) to the
        library, "import_c" a C program; others are kept and have no effect."""
        value = pragma_value if pragma_value is None or isinstance(pragma_value, str) else const(pragma_value, "int32") if isinstance(pragma_value, int) else pragma_value
        self._add_pragma(_loop(var), str(pragma_type), value)
        if pragma_type in ("import_llvm", "import_c"):
            self._import_llvm(_llvm_text(pragma_type, str(pragma_value)))
            return
        step = {"unroll": self.unroll, "vectorize": self.vectorize, "parallel": self.parallel}.get(pragma_type)
        if step is not None:
            step(var)

    def set_store_predicate(self, predicate: typing.Any) -> None:
        """Stores only elements for which a condition over the stage's loops holds; the others are undefined."""
        self._set_store_predicate(predicate)

    def tensorize(self, var: IterVar, tensor_intrin: typing.Any) -> None:
        """Replaces the loop nest from this loop inwards by an intrinsic (te.decl_tensor_intrin). Lowering checks that both compute the
        same."""
        if not isinstance(tensor_intrin, _core.TensorIntrinsic):
            raise TypeError("tensorize takes what te.decl_tensor_intrin gave")
        self._tensorize(_loop(var), tensor_intrin)

    relations = property(relations_of)
    all_iter_vars = property(all_loops_of)
    iter_var_attrs = property(attributes_of)
    origin_op = property(lambda self: self.op)

    @property
    def attach_type(self) -> int:
        """1: computed at the root; 2: inlined; 4: within a loop of another stage."""
        return 2 if self.is_inline else 1 if self._attached is None else 4

    @property
    def attach_stage(self) -> "Stage | None":
        return None if self._attached is None else self._attached[0]

    @property
    def attach_ivar(self) -> "IterVar | None":
        return None if self._attached is None else self._attached[1]

    def __repr__(self) -> str:
        return f"stage({self.op.name}, {self.op!r})"


def _llvm_text(pragma: str, value: str) -> str:
    if pragma == "import_c":
        from ..contrib import clang
        return clang.create_llvm(value)
    if "\n" in value or not os.path.isfile(value):
        return value
    with open(value, encoding="utf-8", errors="strict") as file:
        return file.read()


def _scope(scope: str) -> str:
    if not isinstance(scope, str) or scope.split(".")[0] not in ("global", "local", "shared", "warp", ""):
        raise ValueError(f"there is no memory scope '{scope}'; there are global, shared, warp and local")
    return scope or "global"


class Schedule(_core.Schedule):
    """`schedule[tensor]` is the stage of a tensor."""

    def __getitem__(self, k: typing.Any) -> Stage:
        return self._stage(_operation(k))

    @property
    def outputs(self) -> list[Operation]:
        return [s.op for s in self.stages if s.is_output]

    @property
    def stage_map(self) -> dict[typing.Any, Stage]:
        return {s.op: s for s in self.stages}

    def normalize(self) -> "Schedule":
        return self

    def __reduce__(self) -> typing.Any:
        from ..ir import load_json, save_json
        return load_json, (save_json(self),)

    def cache_read(self, tensor: Tensor, scope: str, readers: typing.Any) -> Tensor:
        """Adds a stage that copies a tensor, and makes the readers read the copy."""
        _scope(scope)
        readers = readers if isinstance(readers, (list, tuple)) else [readers]
        made = self._cache_read(tensor, [_operation(r) for r in readers], scope or "global")
        self[made].set_scope(scope)
        return made

    def cache_write(self, tensor: typing.Any, scope: str) -> typing.Any:
        """Moves the computation to a new stage from which the tensor's own stage copies. For an operation with several outputs a list."""
        _scope(scope)
        if isinstance(tensor, (list, tuple)):
            first = self.cache_write(tensor[0], scope)
            return [first.op.output(t.value_index) for t in tensor]
        made = self._cache_write(tensor, scope or "global")
        self[made].set_scope(scope)
        return made

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> typing.Any:
        """Splits a reduction into partial results, one for each value of a loop of the reduction, which becomes their dimension
        `factor_axis`, and their final reduction. Returns the partial results; for several outputs a list."""
        made = self._rfactor(tensor, _loop(axis), factor_axis)
        return made[0] if len(made) == 1 else made


_core._set_loop_class("Stage", Stage)
_core._set_loop_class("Schedule", Schedule)


class SpecializedCondition:
    """The condition under which implementations hold that a strategy adds within `with SpecializedCondition(clauses):`."""

    _open: list["SpecializedCondition"] = []

    def __init__(self, conditions: typing.Any):
        self.clauses = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]

    @staticmethod
    def current() -> "SpecializedCondition | None":
        return SpecializedCondition._open[-1] if SpecializedCondition._open else None

    def __enter__(self) -> "SpecializedCondition":
        self._open.append(self)
        return self

    def __exit__(self, *_: typing.Any) -> None:
        self._open.pop()


def create_schedule(ops: typing.Any) -> Schedule:
    """The default schedule of one or more operations and all operations that they depend on: a root stage each, with unchanged axes."""
    ops = ops if isinstance(ops, (list, tuple)) else [ops]
    if not ops:
        raise ValueError("create_schedule takes an operation or more")
    return _core.te_create_schedule([_operation(o) for o in ops])


__all__ = ["AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Buffer", "CreateReadGraph", "Fuse", "InferBound", "IterVarAttr", "IterVarRelation", "PostDFSOrder", "Schedule", "ScheduleOps", "Singleton", "Split", "Stage", "create_schedule"]
