# SPDX-License-Identifier: Apache-2.0
"""Analyses of loop functions."""
from __future__ import annotations

import typing

from ... import _core
from .buffer import Buffer
from .expr import Var
from .function import PrimFunc
from .stmt import Block, For, LetStmt, statements_in, visit_accesses


def expr_deep_equal(lhs: typing.Any, rhs: typing.Any) -> bool:
    """Whether two expressions are structurally equal, with the same variables."""
    return bool(_core.stmt_equal(lhs, rhs, False))


def _bound(node: typing.Any) -> list[typing.Any]:
    if isinstance(node, For):
        return [node.loop_var]
    if isinstance(node, LetStmt):
        return [node.var]
    return [axis.var for axis in node.iter_vars] if isinstance(node, Block) else []


def undefined_vars(node: typing.Any, defs: typing.Any = None) -> list[Var]:
    """The free variables in order of first use, without those in `defs`."""
    known, found = list(defs or []), []

    def visit(n: typing.Any) -> None:
        known.extend(_bound(n))
        if isinstance(n, Var) and not any(n.same_as(k) for k in [*known, *found]):
            found.append(n)
    _core.stmt_visit(node, visit, True)
    return [v for v in found if not any(v.same_as(k) for k in known)]


def verify_ssa(func: PrimFunc) -> bool:
    """Whether each variable is bound only once."""
    seen: list[typing.Any] = []
    unique = True

    def visit(n: typing.Any) -> None:
        nonlocal unique
        for var in _bound(n):
            unique = unique and not any(var.same_as(s) for s in seen)
            seen.append(var)
    _core.stmt_visit(func.body, visit, True)
    return unique


def verify_memory(func: PrimFunc) -> bool:
    """Whether all memory accesses are valid on the host: true unless the function is for another device, since there is only one memory."""
    target = func.attrs.get("target")
    return target is None or "cpu" in list(getattr(target, "keys", ["cpu"]))


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The peak of simultaneously live memory inside the function in bytes, with each allocation rounded up to the alignment."""
    from ..runtime.data_type import DataType

    def size(buffer: Buffer) -> int:
        count = (DataType(buffer.dtype).bits + 7) // 8
        for d in buffer.shape:
            count *= int(d)
        return -(-count // workspace_byte_alignment) * workspace_byte_alignment

    def most(node: typing.Any) -> int:
        own = sum(size(b) for b in node.alloc_buffers) if isinstance(node, Block) else 0
        inner = [most(f) for f in statements_in(node)]
        return own + max(inner, default=0)
    return most(func.body)


def get_block_access_region(block: Block, buffer_var_map: typing.Any = None) -> list[list[typing.Any]]:
    """[regions that a block reads, regions that it writes, opaque accesses], each region a single element, listed once."""
    from .range import Range
    from .region import BufferRegion
    found: list[list[typing.Any]] = [[], [], []]

    def see(writes: bool, buffer: Buffer, indices: typing.Any) -> None:
        same = (r for r in found[writes] if r.buffer == buffer)
        if not any(all(expr_deep_equal(d.min, i) for d, i in zip(r.region, indices)) for r in same):
            found[writes].append(BufferRegion(buffer, [Range.from_min_extent(i, 1) for i in indices]))
    visit_accesses(block.body, see)
    return found


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, typing.Any]:
    """By buffer, the innermost loop or block around all its accesses; None: the function itself."""
    around: dict[Buffer, list[typing.Any]] = {}

    def walk(node: typing.Any, path: list[typing.Any]) -> None:
        inner = statements_in(node)
        # What a condition or a bound reads, it reads around the statement.
        own = [part for field in node._fields for part in (field if isinstance(field, (list, tuple)) else [field])]
        for part in [p for p in own if isinstance(p, _core.PrimExpr)] if inner else [node]:
            visit_accesses(part, lambda _writes, buffer, _indices: meet(buffer, path))
        path = [*path, node] if isinstance(node, (For, Block)) else path
        for child in inner:
            walk(child, path)

    def meet(buffer: Buffer, path: list[typing.Any]) -> None:
        known = around.get(buffer, path)
        shared = next((n for n, (a, b) in enumerate(zip(known, path)) if a is not b), min(len(known), len(path)))
        around[buffer] = path[:shared]
    walk(func.body, [])
    return {buffer: path[-1] if path else None for buffer, path in around.items()}


__all__ = ["calculate_workspace_bytes", "detect_buffer_access_lca", "expr_deep_equal", "get_block_access_region", "undefined_vars", "verify_memory", "verify_ssa"]
