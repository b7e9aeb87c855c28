# SPDX-License-Identifier: Apache-2.0
"""Tensor intrinsics for `tensorize`."""
from __future__ import annotations

from typing import Any

from ... import te, tir


def register_tile(rows: int, columns: int, depth: int, dtype: str = "float32", lanes: int = 16) -> Any:
    """A matrix product tile of rows x columns over `depth` reduction steps, with its accumulators in registers: c[i, j] += a[i, k] *
    b[k, j].

    `columns` is a multiple of `lanes`, the vector length (for float32 16 with AVX-512, 8 with AVX2). Accumulators stay in registers up
    to about rows * columns/lanes = 24 vectors (12 with AVX2). The strides of all three are arbitrary, so that operands may be packed or
    not."""
    if columns % lanes:
        raise ValueError(f"{columns} columns are no multiple of {lanes} lanes")
    a, b = te.placeholder((rows, depth), dtype, name="a"), te.placeholder((depth, columns), dtype, name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    buffers = {t: tir.decl_buffer(t.shape, dtype, name=t.op.name, offset_factor=1, strides=[te.var(f"{t.op.name}_stride"), 1]) for t in (a, b, c)}

    def each_vector(ib: Any, make: Any) -> None:
        with ib.for_range(0, rows, "i", kind="unroll") as i:
            with ib.for_range(0, columns // lanes, "v", kind="unroll") as v:
                with ib.for_range(0, lanes, "l", kind="vectorize") as lane:
                    make(i, v * lanes + lane)

    def tile(add: bool) -> Any:
        def make(ins: Any, outs: Any) -> Any:
            ib = tir.ir_builder.create()
            x, y, z = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            sums = ib.allocate(dtype, (rows * columns,), name="sums")

            def start(i: Any, j: Any) -> None:
                sums[i * columns + j] = z[i, j] if add else tir.const(0, dtype)

            def step(i: Any, j: Any) -> None:
                sums[i * columns + j] = sums[i * columns + j] + x[i, kk] * y[kk, j]

            def end(i: Any, j: Any) -> None:
                z[i, j] = sums[i * columns + j]
            each_vector(ib, start)
            with ib.for_range(0, depth, "k") as kk:
                each_vector(ib, step)
            each_vector(ib, end)
            return ib.get()
        return make

    def reset(outs: Any) -> Any:
        ib = tir.ir_builder.create()
        z = ib.buffer_ptr(outs[0])

        def clear(i: Any, j: Any) -> None:
            z[i, j] = tir.const(0, dtype)
        each_vector(ib, clear)
        return ib.get()
    return te.decl_tensor_intrin(c.op, lambda ins, outs: (tile(False)(ins, outs), reset(outs), tile(True)(ins, outs)), name=f"register_tile_{rows}x{columns}x{depth}", binds=buffers)


__all__ = ["register_tile"]
