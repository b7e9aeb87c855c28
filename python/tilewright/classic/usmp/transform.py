# SPDX-License-Identifier: Apache-2.0
"""Passes around the planning of memory (tvm.tir.usmp.transform), over modules of loop functions."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import _core
from ..ir.memory_pools import PoolInfo, WorkspacePoolInfo
from ..registry import register_for_objects
from ..tir.buffer import decl_buffer
from ..tir.calls import functions_by_name
from ..tir.expr import Var
from ..tir.function import LoopModule, PrimFunc, loops_of
from ..tir.stmt import CANDIDATE_MEMORY_POOLS, Allocate, Evaluate, For, ForKind, address_value
from ..tir.stmt_functor import ir_transform
from .analysis import size_of
from .utils import AllocatedPoolInfo, PoolAllocation

_MAIN = "__tvm_main__"


class _Pass:
    """A pass over a module of loop functions."""

    def __init__(self, name: str, run: Callable[[LoopModule], LoopModule]):
        self.__name__, self._run = name, run

    @property
    def info(self) -> Any:
        from ..transform import PassInfo
        return PassInfo(0, self.__name__)

    def __call__(self, mod: Any) -> LoopModule:
        return self._run(loops_of(mod))


def _main_of(mod: LoopModule) -> PrimFunc:
    if _MAIN not in mod:
        raise ValueError(f"the module has no main function {_MAIN}; it has {', '.join(mod)}")
    return mod[_MAIN]


def assign_pool_info() -> _Pass:
    """Says for all memory without candidate_memory_pools that it may lie in each pool that its function's target can access: of the
    module's attribute workspace_memory_pools, or without it the pool global_workspace. ValueError: a function without a target."""
    def run(mod: LoopModule) -> LoopModule:
        host = _main_of(mod).attrs.get("target")
        targets = {name: f.attrs.get("target") or host for name, f in mod.functions.items()}
        if host is None:
            raise ValueError(f"the function {_MAIN} has no attribute target")
        given = mod.get_attr("workspace_memory_pools")
        pools: list[PoolInfo] = list(given.pools) if given is not None else [WorkspacePoolInfo("global_workspace", list({str(t): t for t in targets.values()}.values()))]
        out = mod.copy()
        for name, function in mod.functions.items():
            own = [p for p in pools if not p.targets or str(targets[name]) in map(str, p.targets)]

            def assign(s: Any, own: Any = own, name: str = name) -> Any:
                if not isinstance(s, Allocate) or CANDIDATE_MEMORY_POOLS in s.annotations:
                    return None
                if not own:
                    raise ValueError(f"no pool is one that the target of '{name}' can access: {targets[name]}")
                return Allocate(s.buffer_var, s.dtype, s.extents, s.condition, s.body, {**s.annotations, CANDIDATE_MEMORY_POOLS: own})
            out[name] = function.with_body(ir_transform(function.body, None, assign))
        return out
    return _Pass("tir.usmp.AssignPoolInfo", run)


def _accessed(mod: LoopModule, main: PrimFunc) -> tuple[set[Any], set[Any]]:
    """The buffers of main's parameters that are read, and those that are written, by main and what it calls."""
    functions, read, written = functions_by_name(mod), set(), set()  # type: ignore[var-annotated]

    def walk(function: PrimFunc, known: Mapping[Any, Any], calls: tuple[str, ...]) -> None:
        def see(part: Any) -> None:
            kind = getattr(part, "_kind", "")
            if kind in ("Read", "Write") and part._fields[0] in known:
                (read if kind == "Read" else written).add(known[part._fields[0]])
            elif kind == "CallExtern" and part._fields[0] in functions and part._fields[0] not in calls:
                callee = functions[part._fields[0]]
                memory = [a[1] if isinstance(a, tuple) else a for a in part._fields[1]]
                walk(callee, {p: known[m] for p, m in zip(callee._function.params, memory) if isinstance(m, _core.Array) and m in known}, (*calls, part._fields[0]))
        body = ir_transform(function.body, None, lambda s: _core.stmt_call(s._fields[0], [a for a in s._fields[1] if not isinstance(a, tuple)], False)
                            if isinstance(s, Evaluate) and s._kind == "CallExtern" and s._fields[0] in functions else None, ["tir.Evaluate"])
        _core.stmt_visit(body, see, True)  # of addresses only what the callee does with them counts
        _core.stmt_visit(function.body, lambda s: see(s) if getattr(s, "_kind", "") == "CallExtern" else None, True)
    walk(main, {p: p for p in main._function.params if isinstance(p, _core.Array)}, ())
    return read, written


def create_allocates_for_io() -> _Pass:
    """Makes the inputs and outputs of the main function memory that it allocates, with the annotations input_tensor and output_tensor.
    ValueError: a tensor that is neither only read nor only written."""
    def run(mod: LoopModule) -> LoopModule:
        main = _main_of(mod)
        read, written = _accessed(mod, main)
        kept, body = [], main.body
        for p, name in zip(main._function.params, (q.name for q in main.params)):
            if not isinstance(p, _core.Array):
                kept.append(p)
                continue
            if (p in read) == (p in written):
                raise ValueError(f"the tensor '{p.name}' of {_MAIN} is " + ("both read and written" if p in read else "neither read nor written") + ": it is no input and no output")
            body = _core.stmt_block("", [], None, None, body, [p], {"input_tensor" if p in read else "output_tensor": name})
        out = mod.copy()
        out[_MAIN] = PrimFunc._of(function=_core.BlockFunction(main._function.name, kept, body))._with(main.attrs)
        return out
    return _Pass("tir.usmp.CreateAllocatesForIO", run)


class _Converter:
    """Puts the memory of functions into parameters for the pools. Memory at an offset is a variable that is the address of a byte of
    the pool (tir.address_of), and an array of the variable's name."""

    def __init__(self, mod: LoopModule, places: Mapping[Any, PoolAllocation], printable: bool):
        self._places = {stmt.alloc_buffers[0]: place for stmt, place in places.items()}
        self._functions, self._printable, self._count = functions_by_name(mod), printable, 0
        self._keys = {id(f): name for name, f in mod.functions.items()}
        self._sizes: dict[PoolInfo, int] = {}
        for stmt, place in places.items():
            end = int(place.byte_offset) + (size_of(stmt) or 0)
            self._sizes[place.pool_info] = max(end, self._sizes.get(place.pool_info, 0))
        self._pools = sorted(self._sizes, key=lambda p: p.pool_name)
        self.made: dict[str, PrimFunc] = {}

    def function(self, name: str) -> None:
        """Converts a function and those that it calls."""
        original = self._functions[name]
        buffers = []
        for pool in self._pools:
            buffers.append(decl_buffer([self._sizes[pool]], "uint8", f"{pool.pool_name}_{self._count}_buffer_var"))
            self._count += 1
        params = list(original._function.params)
        at = len(params) - _has_resource(original)
        params[at:at] = buffers
        body = self._statement(original.body, dict(zip(self._pools, buffers)))
        blocks: list[Any] = []
        _core.stmt_visit(body, lambda s: blocks.append(s) if getattr(s, "_kind", "") == "Block" else None, True)
        if len(blocks) == 1 and body._kind == "Block" and body._fields[0] == "root" and not body._fields[5]:
            body = body._fields[4]  # there is no block left for which there was one around all
        attrs = {k: v for k, v in original.attrs.items() if k == "global_symbol"} if self._printable else dict(original.attrs)
        made = PrimFunc._of(function=_core.BlockFunction(original._function.name, params, body))._with(attrs)
        pools = [AllocatedPoolInfo(pool, self._sizes[pool], at + i) for i, pool in enumerate(self._pools)]
        self.made[self._keys[id(original)]] = made if self._printable else made.with_attr("pool_args", pools)

    def _statement(self, body: Any, pools: Mapping[PoolInfo, Any]) -> Any:
        variables: dict[Any, tuple[Any, Any]] = {}  # of the memory: the variable and the array that stand for it

        def before(s: Any) -> Any:
            place = self._places.get(s.alloc_buffers[0]) if isinstance(s, Allocate) else None
            if place is not None:
                name = f"{s.alloc_buffers[0].name}_let"
                variables[s.alloc_buffers[0]] = Var(name, "handle"), decl_buffer(list(s.extents), s.dtype, name)
            return None

        def after(s: Any) -> Any:
            kind = getattr(s, "_kind", "")
            if kind == "Read" and s._fields[0] in variables:
                return variables[s._fields[0]][1]._element(list(s._fields[1]), s.dtype)
            if kind == "Write" and s._fields[0] in variables:
                return _core.stmt_write(variables[s._fields[0]][1], list(s._fields[2]), s._fields[1])
            if isinstance(s, Allocate) and s.alloc_buffers[0] in variables:
                place, variable = self._places[s.alloc_buffers[0]], variables[s.alloc_buffers[0]][0]
                return _core.stmt_let(variable, address_value(pools[place.pool_info][int(place.byte_offset)]), s.body)
            if kind == "CallExtern":
                return self._call(s, pools, {array: variable for variable, array in variables.values()})
            # A place in a pool is one for all iterations.
            return For(s.loop_var, s.min, s.extent, ForKind.SERIAL, s.body) if isinstance(s, For) and s.kind == ForKind.PARALLEL and variables and _lets(s.body) else None
        return _core.stmt_rewrite(body, before, after, None)

    def _call(self, s: Any, pools: Mapping[PoolInfo, Any], variables: Mapping[Any, Any]) -> Any:
        name, args, packed = s._fields
        made = []
        for a in args:
            if isinstance(a, tuple) and a[1] in variables and all(isinstance(i, int) and i == 0 for i in a[2]):
                made.append(variables[a[1]])
            else:
                made.append(("address", a[1]._element(list(a[2]), a[1].dtype)) if isinstance(a, tuple) else a)
        if name in self._functions:
            if self._keys[id(self._functions[name])] not in self.made:
                self.function(name)
            at = len(made) - _has_resource(self._functions[name])
            made[at:at] = [("address", b._element([0], "uint8")) for b in pools.values()]
        return _core.stmt_call(name, made, packed)


def _has_resource(function: PrimFunc) -> int:
    """1: the last parameter is a handle of the device, before which pools are given."""
    params = function._function.params
    return int(bool(params) and not isinstance(params[-1], _core.Array) and params[-1].dtype == "handle")


def _lets(body: Any) -> bool:
    found: list[Any] = []
    _core.stmt_visit(body, lambda s: found.append(s) if getattr(s, "_kind", "") == "LetStmt" and s._fields[0].dtype == "handle" else None, True)
    return bool(found)


def convert_pool_allocations_to_offsets(pool_allocations: Mapping[Any, PoolAllocation], emit_tvmscript_printable: bool = False) -> _Pass:
    """Makes the planned memory of the main function, and of all that it calls, places in pools: each function has a parameter of bytes
    for each pool, in the order of their names. The functions keep in their attribute pool_args which pools these are."""
    def run(mod: LoopModule) -> LoopModule:
        _main_of(mod)
        converter = _Converter(mod, pool_allocations, emit_tvmscript_printable)
        converter.function(_MAIN)
        out = mod.copy()
        out.update(converter.made)
        return out
    return _Pass("tir.usmp.ConvertPoolAllocationsToOffsets", run)


for _name, _function in {"AssignPoolInfo": assign_pool_info, "CreateAllocatesForIO": create_allocates_for_io, "ConvertPoolAllocationsToOffsets": convert_pool_allocations_to_offsets}.items():
    register_for_objects(f"tir.usmp.transform.{_name}", _function)

__all__ = ["assign_pool_info", "convert_pool_allocations_to_offsets", "create_allocates_for_io"]
