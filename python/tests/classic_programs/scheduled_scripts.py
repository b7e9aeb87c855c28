# SPDX-License-Identifier: Apache-2.0
"""Schedules of hybrid scripts, as scripts of the classic stack write them: each computes the same as Python on arrays."""
import numpy as np
import tvm
from tvm import te
from tvm.te.hybrid import script

from harness import program, refusing

# ruff: noqa: F821


def check(s, inputs, out, function):
    rng = np.random.default_rng(2)
    arrays = [rng.random([int(d) for d in t.shape]).astype(t.dtype) if "float" in t.dtype else rng.integers(0, 7, [int(d) for d in t.shape]).astype(t.dtype) for t in inputs]
    wanted = function(*arrays)
    for target in ("llvm", "c"):
        result = tvm.nd.array(np.zeros(wanted.shape, wanted.dtype))
        tvm.build(s, [*inputs, out], target)(*(tvm.nd.array(a) for a in arrays), result)
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4)


def names(s, tensors):
    found = []
    tvm.tir.stmt_functor.post_order_visit(tvm.lower(s, tensors)["main"].body, lambda n: found.append(n.loop_var.name) if isinstance(n, tvm.tir.For) else None)
    return found[::-1]


@script
def outer(a, b):
    c = output_tensor((32, 48), a.dtype)
    for i in range(32):
        for j in range(48):
            c[i, j] = a[i] * b[j]
    return c


@script
def windows(a, w):
    b = output_tensor((14, 14), a.dtype)
    for i in range(14):
        for j in range(14):
            s = 0.0
            for di in range(3):
                for dj in range(3):
                    s += a[i + di, j + dj] * w[di, dj]
            b[i, j] = s
    return b


@script
def gathered(a, places):
    c = output_tensor((64,), a.dtype)
    for i in range(64):
        c[i] = a[places[i]]
    return c


@script
def turned(a):
    c = output_tensor((12, 20), a.dtype)
    for i in range(20):
        for j in range(12):
            c[j, i] = a[i, j] + 1.0
    return c


A, B = te.placeholder((32,), name="a"), te.placeholder((48,), name="b")


@program
def loops_by_name():
    c = outer(A, B)
    assert isinstance(c.op, te.tensor.HybridOp)
    s = te.create_schedule(c.op)
    by_name = {axis.var.name: axis for axis in s[c].op.axis}
    outer_j, inner_j = s[c].split(by_name["j"], factor=8)
    s[c].reorder(outer_j, by_name["i"], inner_j)
    s[c].vectorize(inner_j)
    assert names(s, [A, B, c]) == ["j.outer", "i", "j.inner"]
    check(s, [A, B], c, outer)


@program(2, 5, 7, 48, 100)
def uneven_parts(factor):
    c = outer(A, B)
    s = te.create_schedule(c.op)
    fused = s[c].fuse(*s[c].op.axis)
    first, second = s[c].split(fused, factor=factor)
    s[c].parallel(first)
    check(s, [A, B], c, outer)


@program(1, 3, 31)
def parts_by_number(parts):
    c = outer(A, B)
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    first, second = s[c].split(i, nparts=parts)
    s[c].reorder(second, j, first)
    check(s, [A, B], c, outer)


@program
def loops_around_a_sum():
    a, w = te.placeholder((16, 16), name="a"), te.placeholder((3, 3), name="w")
    b = windows(a, w)
    s = te.create_schedule(b.op)
    i, j, di, dj = b.op.axis
    io, jo, ii, ji = s[b].tile(i, j, 4, 5)
    s[b].parallel(s[b].fuse(io, jo))
    s[b].unroll(dj)
    check(s, [a, w], b, windows)
    s[b].parallel(di)  # adds up
    with refusing(tvm.TVMError, "'di' may access the same element"):
        tvm.lower(s, [a, w, b])


@program
def elements_by_index():
    a, places = te.placeholder((7,), name="a"), te.placeholder((64,), name="places", dtype="int32")
    c = gathered(a, places)
    s = te.create_schedule(c.op)
    first, second = s[c].split(c.op.axis[0], nparts=4)
    s[c].parallel(first)
    s[c].vectorize(second)
    check(s, [a, places], c, gathered)


@program
def the_other_way_round():
    a = te.placeholder((20, 12), name="a")
    c = turned(a)
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    s[c].reorder(j, i)
    s[c].pragma(j, "parallel")
    s[c].pragma(i, "vectorize")
    assert names(s, [a, c]) == ["j", "i"]
    check(s, [a], c, turned)


@program
def behind_a_stage_and_before_one():
    doubled = te.compute((32,), lambda i: A[i] + A[i], name="doubled")
    made = outer(doubled, B)
    less = te.compute((32, 48), lambda i, j: made[i, j] - 1, name="less")
    s = te.create_schedule(less.op)
    s[doubled].compute_root()
    i, j = made.op.axis
    s[made].unroll(s[made].split(j, 4)[1])
    s[less].parallel(less.op.axis[0])
    check(s, [A, B], less, lambda a, b: np.outer(a + a, b).astype("float32") - 1)
    with refusing(tvm.TVMError, "none of the stage's loops"):
        s[made].split(less.op.axis[0], 2)


@program
def bound_to_threads():
    c = outer(A, B)
    s = te.create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    s[c].bind(c.op.axis[1], te.thread_axis("threadIdx.x"))
    assert names(s, [A, B, c]) == ["blockIdx.x", "threadIdx.x"]
