# SPDX-License-Identifier: Apache-2.0
"""`tvm.tir.Schedule`: scheduling steps on the blocks and loops of a function, implemented in C++ (te/block_schedule.h)."""
from __future__ import annotations

import functools
import inspect
import math
import random
import typing

from .... import _core
from ..function import LoopModule, PrimFunc
from ..stmt import loop_kind, statements_in
from .tensor_intrin import TensorIntrin
from .trace import BlockRV, ExprRV, Instruction, LoopRV, ScheduleError, Trace, _as_list

_RECORDED: dict[str, typing.Any] = {}


def _step(method: typing.Any) -> typing.Any:
    """Decorator that records a step's arguments and results, and turns errors about invalid arguments into ScheduleError."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def recorded(self: "Schedule", *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        bound = signature.bind(self, *args, **kwargs)
        self._decided = None
        try:
            made = method(self, *args, **kwargs)
        except ScheduleError:
            raise
        except (_core.Error, ValueError) as error:
            raise ScheduleError(str(error)) from None
        bound.apply_defaults()
        given = {k: v for k, v in bound.arguments.items() if k not in ("self", "decision") and v is not None}
        self._trace.insts.append(Instruction(method.__name__, given, _as_list(made), self._decided))
        return made
    _RECORDED[method.__name__] = recorded
    return recorded


class Schedule:
    """Schedules one function of a module: each step is applied immediately, and `mod` is the result. Invalid steps raise ScheduleError."""

    def __init__(self, mod: typing.Any, *, seed: int | None = None, debug_mask: typing.Any = "none", error_render_level: str = "detail"):
        if isinstance(mod, PrimFunc):
            mod = LoopModule({"main": mod})
        if not isinstance(mod, LoopModule) or not len(mod):
            raise TypeError(f"a schedule is of a PrimFunc or a module of them, not of a {type(mod).__name__}")
        self._others = dict(mod.functions)
        self._schedules: dict[str, typing.Any] = {}
        self._renamed: dict[str, str] = {}  # blocks renamed by a step
        self._random = random.Random(seed if seed is not None and seed >= 0 else None)
        self._trace = Trace()
        self._decided: typing.Any = None
        self.work_on("main" if "main" in self._others else next(iter(self._others)))

    @classmethod
    def _steps(cls) -> list[str]:
        return list(_RECORDED)

    def work_on(self, func_name: str) -> None:
        """Selects the function in which blocks are looked up."""
        func_name = str(getattr(func_name, "name_hint", func_name))
        if func_name not in self._others:
            raise ValueError(f"the module has no function '{func_name}'; it has {', '.join(self._others)}")
        self._name = func_name
        if func_name not in self._schedules:
            function = self._others[func_name]._function
            if function is None:
                raise ValueError(f"the function '{func_name}' is lowered to kernels already; schedule what te.create_prim_func or T.prim_func gave")
            self._schedules[func_name] = _core.BlockSchedule(function)

    @property
    def _schedule(self) -> typing.Any:
        return self._schedules[self._name]

    def _block(self, value: typing.Any) -> str:
        if isinstance(value, str):
            return value
        if not isinstance(value, BlockRV):
            raise TypeError(f"a block is what get_block gave, not a {type(value).__name__}")
        name = value._name
        while name in self._renamed:
            name = self._renamed[name]
        return name

    @property
    def mod(self) -> LoopModule:
        """The module in its current state."""
        out = LoopModule(self._others)
        for name, schedule in self._schedules.items():
            out[name] = PrimFunc._of(function=schedule.function, attrs=self._others[name].attrs)
        return out

    @property
    def trace(self) -> Trace:
        return self._trace

    @property
    def func_working_on(self) -> str:
        return self._name

    def copy(self) -> "Schedule":
        """An independent schedule in the same state; blocks and loops of one are valid in both."""
        out = Schedule.__new__(Schedule)
        out._others, out._name, out._decided = dict(self._others), self._name, None
        out._schedules = {n: s.copy() for n, s in self._schedules.items()}
        out._renamed, out._random = dict(self._renamed), random.Random()
        out._random.setstate(self._random.getstate())
        out._trace = Trace(self._trace.insts)
        return out

    def seed(self, seed: int) -> None:
        """Sets the seed of later samples."""
        self._random = random.Random(seed if seed >= 0 else None)

    def fork_seed(self) -> int:
        """A new seed for another schedule."""
        return self._random.randrange(1, 2**31 - 1)

    def show(self, *_: typing.Any, **__: typing.Any) -> None:
        print(self.mod.script())
        print(self.trace)

    def get(self, rand_var_or_sref: typing.Any) -> typing.Any:
        """The statement of a block or loop; the value of a sampled variable."""
        if isinstance(rand_var_or_sref, int):
            return int(rand_var_or_sref)
        found: list[typing.Any] = []

        def look(node: typing.Any) -> None:
            if not isinstance(node, _core.Stmt):
                return
            if isinstance(rand_var_or_sref, BlockRV) and node._kind == "Block" and node._fields[0] == self._block(rand_var_or_sref):
                found.append(node)
            if isinstance(rand_var_or_sref, LoopRV) and node._kind == "For" and node._fields[0].same_as(rand_var_or_sref._var):
                found.append(node)
        _core.stmt_visit(self._schedule.function.body, look, True)
        if not found:
            raise ScheduleError(f"{rand_var_or_sref} is not there any more")
        return found[0]

    # ---- samples ----

    @_step
    def sample_categorical(self, candidates: typing.Any, probs: typing.Any, decision: int | None = None) -> ExprRV:
        """Samples one of the candidates with the given probabilities; `decision` is an index to use instead."""
        candidates, probs = [int(c) for c in candidates], [float(p) for p in probs]
        if not candidates or len(candidates) != len(probs) or min(probs) < 0 or not sum(probs) > 0:
            raise ValueError(f"{len(candidates)} candidates and {len(probs)} probabilities: give one for each, 0 or more and not all 0")
        place = self._random.choices(range(len(candidates)), probs)[0] if decision is None else int(decision)
        if not 0 <= place < len(candidates):
            raise ValueError(f"the decision {place} is no place of {len(candidates)} candidates")
        self._decided = place
        return ExprRV(candidates[place])

    @_step
    def sample_perfect_tile(self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: typing.Any = None) -> list[ExprRV]:
        """Samples `n` factors whose product is the loop's extent, the last at most `max_innermost_factor`."""
        extent = self._constant_extent(loop)
        if n < 1 or max_innermost_factor < 1:
            raise ValueError("a loop is tiled into 1 or more factors, the innermost 1 or more")
        if decision is None:
            rest, factors = extent, []
            for i in range(n - 1):
                choices = [d for d in range(1, min(rest, max_innermost_factor if i == 0 else rest) + 1) if rest % d == 0]
                factors.insert(0, self._random.choice(choices))
                rest //= factors[0]
            factors.insert(0, rest)
        else:
            factors = [int(d) for d in decision]
            if len(factors) != n or min(factors) < 1 or math.prod(factors) != extent:
                raise ValueError(f"the decision {factors} is no {n} factors of {extent}")
        self._decided = factors
        return [ExprRV(f) for f in factors]

    def _constant_extent(self, loop: LoopRV) -> int:
        extent = self.get(loop)._fields[2]
        value = getattr(extent, "value", extent)
        if not isinstance(value, int):
            raise ValueError(f"the loop '{loop._var}' has no constant number of iterations, so no factors")
        return value

    # ---- blocks and loops ----

    @_step
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        if func_name is not None:
            self.work_on(func_name)
        self._schedule.find_block(str(name))
        return BlockRV(str(name))

    @_step
    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """The loops around a block, outermost first."""
        return [LoopRV(v) for v in self._schedule.loops(self._block(block))]

    @_step
    def get_producers(self, block: BlockRV) -> list[BlockRV]:
        """The blocks that produce what it reads."""
        return [BlockRV(name) for name in self._schedule.producers(self._block(block))]

    @_step
    def get_consumers(self, block: BlockRV) -> list[BlockRV]:
        """The blocks that read what it writes."""
        return [BlockRV(name) for name in self._schedule.consumers(self._block(block))]

    @_step
    def get_child_blocks(self, block_or_loop: typing.Any) -> list[BlockRV]:
        """The blocks directly in a block or a loop, in their order."""
        found: list[str] = []

        def look(node: typing.Any) -> None:
            for child in statements_in(node):
                if child._kind == "Block":
                    found.append(child._fields[0])
                else:
                    look(child)
        look(self.get(block_or_loop))
        return [BlockRV(name) for name in found]

    @_step
    def split(self, loop: LoopRV, factors: typing.Any, preserve_unit_iters: bool = True) -> list[LoopRV]:
        """Splits a loop into several; one factor may be None and is derived."""
        numbers = [0 if f is None else int(getattr(f, "value", f)) for f in factors]
        if any(f is not None and n <= 0 for f, n in zip(factors, numbers)):
            raise ValueError("factors are 1 or more, and None for one of them")
        return [LoopRV(v) for v in self._schedule.split(_loop(loop), numbers)]

    @_step
    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        return LoopRV(self._schedule.fuse([_loop(v) for v in _spread(loops)]))

    @_step
    def reorder(self, *ordered_loops: LoopRV) -> None:
        self._schedule.reorder([_loop(v) for v in _spread(ordered_loops)])

    @_step
    def parallel(self, loop: LoopRV) -> None:
        self._schedule.set_kind(_loop(loop), loop_kind("parallel"))

    @_step
    def vectorize(self, loop: LoopRV) -> None:
        self._schedule.set_kind(_loop(loop), loop_kind("vectorize"))

    @_step
    def unroll(self, loop: LoopRV) -> None:
        self._schedule.set_kind(_loop(loop), loop_kind("unroll"))

    @_step
    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Binds a loop to a GPU thread; the function can then be printed but not built."""
        self._schedule.bind(_loop(loop), str(thread_axis))

    # ---- blocks that move ----

    @_step
    def compute_at(self, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Moves a block into a loop that contains all of its consumers, computing only what one iteration needs."""
        self._schedule.compute_at(self._block(block), _loop(loop))

    @_step
    def reverse_compute_at(self, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Moves a block into the loop that contains its producers, computing what one iteration has completed."""
        self._schedule.reverse_compute_at(self._block(block), _loop(loop))

    @_step
    def compute_inline(self, block: BlockRV) -> None:
        """Inlines a block into its consumers."""
        self._schedule.compute_inline(self._block(block))

    @_step
    def reverse_compute_inline(self, block: BlockRV) -> None:
        """Inlines a block into its producer."""
        self._schedule.reverse_compute_inline(self._block(block))

    @_step
    def cache_read(self, block: BlockRV, read_buffer_index: int, storage_scope: str) -> BlockRV:
        """Makes the block read a copy; returns the block that copies."""
        return BlockRV(self._schedule.cache_read(self._block(block), _place(read_buffer_index), storage_scope or "global"))

    @_step
    def cache_write(self, block: BlockRV, write_buffer_index: int, storage_scope: str) -> BlockRV:
        """Makes the block write a copy; returns the block that copies it back."""
        return BlockRV(self._schedule.cache_write(self._block(block), _place(write_buffer_index), storage_scope or "global"))

    @_step
    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """Moves the initialisation of a reduction to a block of its own before the loop, which is returned; the reduction block's name
        gets the suffix _update."""
        start, update = self._schedule.decompose_reduction(self._block(block), _loop(loop))
        self._renamed[self._block(block)] = update
        return BlockRV(start)

    @_step
    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Turns a loop of a reduction into an additional dimension of partial results, which the block then reduces; returns the block
        of the partial results."""
        inside: list[str] = []

        def look(node: typing.Any) -> None:
            if isinstance(node, _core.Stmt) and node._kind == "Block" and node._fields[1]:
                inside.append(node._fields[0])
        _core.stmt_visit(self.get(loop), look, True)
        if len(inside) != 1:
            raise ValueError(f"the loop '{loop._var}' holds {len(inside)} blocks; rfactor is for a loop of one reduction")
        return BlockRV(self._schedule.rfactor(inside[0], _loop(loop), int(factor_axis)))

    # ---- notes ----

    @_step
    def set_scope(self, block: BlockRV, buffer_index: int, storage_scope: str) -> None:
        """Sets the storage scope of the block's output; no effect on a CPU."""
        self._schedule.set_scope(self._block(block), _place(buffer_index), str(storage_scope))

    @_step
    def blockize(self, target: LoopRV, preserve_unit_iters: bool = True) -> BlockRV:
        """Makes a loop and the block in it one unit, which only tensorize changes from then on; returns the block around it."""
        return BlockRV(self._schedule.blockize(_loop(target)))

    @_step
    def tensorize(self, block_or_loop: typing.Any, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
        """Replaces a loop and all inside it, or a block of blockize, by the code of a registered TensorIntrin, if the loops and what
        they compute are those of its description. Annotate loops around it before."""
        intrinsic = TensorIntrin.get(str(tensor_intrin))
        description, code = intrinsic.desc._function, intrinsic.impl._function
        if isinstance(block_or_loop, BlockRV):
            self._schedule.tensorize_block(self._block(block_or_loop), str(tensor_intrin), description, code)
        else:
            self._schedule.tensorize_loop(_loop(block_or_loop), str(tensor_intrin), description, code)

    @_step
    def annotate(self, block_or_loop: typing.Any, ann_key: str, ann_val: typing.Any) -> None:
        """Attaches an annotation, without effect."""
        if isinstance(block_or_loop, BlockRV):
            self._schedule.annotate_block(self._block(block_or_loop), str(ann_key), str(ann_val))
        else:
            self._schedule.annotate_loop(_loop(block_or_loop), str(ann_key), str(ann_val))

    @_step
    def unannotate(self, block_or_loop: typing.Any, ann_key: str) -> None:
        if isinstance(block_or_loop, BlockRV):
            self._schedule.unannotate_block(self._block(block_or_loop), str(ann_key))
        else:
            self._schedule.unannotate_loop(_loop(block_or_loop), str(ann_key))

    @_step
    def storage_align(self, block: BlockRV, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Attaches an alignment annotation, without effect: rows are compact."""
        self._schedule.annotate_block(self._block(block), "buffer_dim_align", f"{buffer_index} {axis} {factor} {offset}")

    @_step
    def enter_postproc(self) -> None:
        """Marks the start of postprocessing: later steps contain no sampling decisions."""

    def __getattr__(self, name: str) -> typing.Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"a schedule of blocks has no '{name}'; it has {', '.join(_RECORDED)}")


def _loop(value: typing.Any) -> typing.Any:
    if not isinstance(value, LoopRV):
        raise TypeError(f"a loop is what get_loops, split or fuse gave, not a {type(value).__name__}")
    return value._var


def _spread(loops: typing.Any) -> typing.Any:
    return loops[0] if len(loops) == 1 and isinstance(loops[0], (list, tuple)) else loops


def _place(index: typing.Any) -> int:
    if int(index) < 0:
        raise ValueError(f"buffers are counted from 0, not from {index}")
    return int(index)


__all__ = ["Schedule"]
