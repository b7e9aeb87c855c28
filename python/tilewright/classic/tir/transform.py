# SPDX-License-Identifier: Apache-2.0
"""Passes over loop functions."""
from __future__ import annotations

import typing

from ... import _core
from .function import LoopModule, PrimFunc, loops_of
from .stmt import For, ForKind
from .stmt_functor import ir_transform


class PrimFuncPass:
    """A pass over each function of a module of loop functions: `pass_(mod)`."""

    def __init__(self, transform: typing.Callable[..., typing.Any], opt_level: int, name: str):
        self._transform, self.opt_level, self.__name__ = transform, opt_level, name

    @property
    def info(self) -> typing.Any:
        from ..transform import PassInfo
        return PassInfo(self.opt_level, self.__name__)

    def __call__(self, mod: typing.Any) -> LoopModule:
        from ..transform import PassContext
        context = PassContext.current()
        mod = loops_of(mod)
        if not context.pass_enabled(self.info):
            return mod
        out = LoopModule(None, mod.attrs)
        for name, function in mod.functions.items():
            made = self._transform(function, mod, context)
            if not isinstance(made, PrimFunc):
                raise ValueError(f"the pass {self.__name__} gives a {type(made).__name__} for the function '{name}', no PrimFunc")
            out[name] = made
        return out

    def __repr__(self) -> str:
        return f"PrimFuncPass({self.__name__})"


def prim_func_pass(pass_func: typing.Any = None, opt_level: int | None = None, name: str | None = None, required: typing.Any = None, traceable: bool = False) -> typing.Any:
    """`@prim_func_pass(opt_level=0)` on f(function, module, context), or on a class with such a method transform_function."""
    if opt_level is None:
        raise ValueError("Please provide opt_level for the function pass.")

    def make(arg: typing.Any) -> typing.Any:
        title = name or arg.__name__
        if not isinstance(arg, type):
            return PrimFuncPass(arg, opt_level, title)

        def made(*args: typing.Any, **kwargs: typing.Any) -> PrimFuncPass:
            instance = arg(*args, **kwargs)
            return PrimFuncPass(instance.transform_function, opt_level, title)
        return made
    return make(pass_func) if pass_func else make


def Apply(ftransform: typing.Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:  # noqa: N802  the classic name
    """Applies ftransform to each function."""
    return PrimFuncPass(lambda function, _mod, _context: ftransform(function), 0, "Apply")


def Filter(fcond: typing.Callable[[PrimFunc], bool]) -> typing.Callable[[LoopModule], LoopModule]:  # noqa: N802
    """Keeps the functions for which fcond returns true."""
    return lambda mod: LoopModule({name: f for name, f in mod.functions.items() if fcond(f)})


def _kernel_pass(name: str, classic: str) -> PrimFuncPass:
    """One of the compiler's own passes, over the kernels of a lowered schedule; a function of buffers is lowered to kernels first."""
    return PrimFuncPass(lambda function, _mod, _context: PrimFunc._of(function._lowered.with_pass(name), attrs=function.attrs), 0, f"tir.{classic}")


def _loop_rewrite(name: str, classic: str, option: typing.Callable[[typing.Mapping[str, typing.Any]], int] = lambda _: 0) -> PrimFuncPass:
    """A rewrite of statements of the compiler (src/tir/passes/loop_rewrites.h). `option`: from the pass's configuration."""
    def run(function: PrimFunc, _mod: typing.Any, context: typing.Any) -> PrimFunc:
        chosen = int(option(dict(context.config.get(f"tir.{classic}", {}))))
        return function.with_body(_core.stmt_pass(name, function.body, chosen))
    return PrimFuncPass(run, 0, f"tir.{classic}")


def _of_kernels_or_statements(kernel_pass: str, rewrite: str, classic: str) -> PrimFuncPass:
    """For the kernels of a lowered schedule one pass, for the statements of a script another."""
    kernels, statements = _kernel_pass(kernel_pass, classic), _loop_rewrite(rewrite, classic)
    return PrimFuncPass(lambda function, mod, context: (kernels if function._function is None else statements)._transform(function, mod, context), 0, f"tir.{classic}")


def HoistIfThenElse(variant: str | None = None) -> PrimFuncPass:  # noqa: N802
    """Moves conditions out of the loops on whose variables they do not depend."""
    return _loop_rewrite("hoist_conditions", "HoistIfThenElse")


def LoopPartition() -> PrimFuncPass:  # noqa: N802
    """Divides loops where a condition changes its value. Loops of constant bounds only if the context's configuration says so:
    {"tir.LoopPartition": {"partition_const_loop": True}}."""
    return _loop_rewrite("partition_loops", "LoopPartition", lambda config: config.get("partition_const_loop", False))


def CommonSubexprElimTIR(enable_cse_tir: bool = True) -> PrimFuncPass:  # noqa: N802
    """Computes expressions that occur more than once a single time."""
    if not enable_cse_tir:
        return Apply(lambda function: function)
    return _loop_rewrite("eliminate_common_subexpressions", "CommonSubexprElimTIR")


def Simplify() -> PrimFuncPass:  # noqa: N802
    """Index arithmetic, conditions and trivial statements in their simplest form."""
    return _of_kernels_or_statements("simplify", "simplify", "Simplify")


def UnrollLoop() -> PrimFuncPass:  # noqa: N802
    """Replaces unrolled loops by their iterations; where the context's configuration has {"tir.UnrollLoop": {"auto_max_step": n}},
    serial ones of at most n iterations, too."""
    return _loop_rewrite("unroll_loops", "UnrollLoop", lambda config: config.get("auto_max_step", 0))


def VectorizeLoop(enable_vectorize: bool = True) -> PrimFuncPass:  # noqa: N802
    """Replaces vectorized loops by vectors; without `enable_vectorize` they become serial ones."""
    if enable_vectorize:
        return _of_kernels_or_statements("vectorize", "vectorize_loops", "VectorizeLoop")

    def serial(op: typing.Any) -> typing.Any:
        return For(op.loop_var, op.min, op.extent, ForKind.SERIAL, op.body) if op.kind == ForKind.VECTORIZED else None
    return PrimFuncPass(lambda function, _mod, _context: function.with_body(ir_transform(function.body, None, serial, ["tir.For"])), 0, "tir.VectorizeLoop")


def StorageRewrite() -> PrimFuncPass:  # noqa: N802
    """Lets scratch memory that is not live at the same time share a place."""
    return _kernel_pass("storage_rewrite", "StorageRewrite")


def RemoveNoOp() -> PrimFuncPass:  # noqa: N802
    """Removes statements without effect: values evaluated for nothing, and what contains nothing else."""
    return _loop_rewrite("remove_no_ops", "RemoveNoOp")


def RewriteUnsafeSelect() -> PrimFuncPass:  # noqa: N802
    """Evaluates only the chosen value of a select whose values read memory or call functions."""
    return _loop_rewrite("rewrite_unsafe_selects", "RewriteUnsafeSelect")


def NarrowDataType(target_bits: int) -> PrimFuncPass:  # noqa: N802
    """Gives loop variables and the indices that they are in `target_bits` bits, where these hold all their values."""
    return _loop_rewrite("narrow_indices", "NarrowDataType", lambda _: target_bits)


def __getattr__(name: str) -> typing.Any:
    raise AttributeError(f"tilewright.tir.transform has no '{name}': loops are lowered by the compiler's own passes; a pass of yours is written with prim_func_pass")


__all__ = ["Apply", "CommonSubexprElimTIR", "Filter", "HoistIfThenElse", "LoopPartition", "NarrowDataType", "PrimFuncPass", "RemoveNoOp", "RewriteUnsafeSelect", "Simplify", "StorageRewrite", "UnrollLoop", "VectorizeLoop", "prim_func_pass"]
