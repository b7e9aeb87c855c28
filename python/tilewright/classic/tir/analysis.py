# SPDX-License-Identifier: Apache-2.0
"""Analyses of loop functions."""
from __future__ import annotations

import typing

from ... import _core
from .buffer import Buffer
from .expr import Var
from .function import PrimFunc
from .stmt import Block, For, LetStmt, statements_in


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
    """[regions that a block reads, regions that it writes, opaque accesses], each region a single element."""
    from .region import BufferRegion
    from .range import Range
    reads: list[typing.Any] = []
    writes: list[typing.Any] = []

    def visit(node: typing.Any) -> None:
        kind = getattr(node, "_kind", "")
        if kind == "Write":
            writes.append(BufferRegion(node.buffer, [Range.from_min_extent(i, 1) for i in node.indices]))
        elif kind == "Read" and isinstance(node._fields[0], Buffer):
            reads.append(BufferRegion(node._fields[0], [Range.from_min_extent(i, 1) for i in node._fields[1]]))
    _core.stmt_visit(block.body, visit, True)
    return [reads, writes, []]


__all__ = ["calculate_workspace_bytes", "expr_deep_equal", "get_block_access_region", "undefined_vars", "verify_memory", "verify_ssa"]
