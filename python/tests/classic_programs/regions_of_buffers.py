# SPDX-License-Identifier: Apache-2.0
"""Scripts whose blocks name regions of buffers (T.match_buffer), and that call functions of the runtime (T.tvm_call_packed)."""
import numpy as np
import tvm
from tvm import tir
from tvm.script import tir as T

from harness import numbers, program, refusing, same


@T.prim_func
def by_tiles(a: T.handle, b: T.handle) -> None:
    T.func_attr({"global_symbol": "by_tiles", "tir.noalias": True})
    A = T.match_buffer(a, (16, 32), "float32")
    B = T.match_buffer(b, (16, 32), "float32")
    for i, j in T.grid(4, 8):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            A_tile = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), "float32", offset_factor=1)
            B_tile = T.match_buffer(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), dtype="float32", offset_factor=1)
            for ii, jj in T.grid(4, 4):
                B_tile[ii, jj] = A_tile[jj, ii] + T.float32(1)


@T.prim_func
def rows(A: T.Buffer[(3, 8, 6), "int32"], B: T.Buffer[(3, 6), "int32"]) -> None:
    T.func_attr({"global_symbol": "rows", "tir.noalias": True})
    for n, k in T.grid(3, 8):
        with T.block("row"):
            vn, vk = T.axis.remap("SR", [n, k])
            s0 = T.var("int32")
            begin = T.var("int32")
            row = T.match_buffer(A[vn, vk, 1:5], (4,), dtype="int32", strides=[s0], elem_offset=begin)
            half = T.match_buffer(row[2:4], (2,), dtype="int32")
            out = T.match_buffer(B[vn, 0:6], [6], "int32")
            with T.init():
                for j in T.serial(6):
                    out[j] = 0
            for j in T.serial(4):
                out[j] = out[j] + row[j] * s0
            out[4] = out[4] + half[1]
            out[5] = begin


def run(function, *arrays, target="llvm"):
    made = [tvm.nd.array(a) for a in arrays]
    tvm.build(function, target=target)(*made)
    return made[-1].numpy()


def tiles_of(a):
    return a.reshape(4, 4, 8, 4).transpose(0, 3, 2, 1).reshape(16, 32) + 1


@program("llvm", "c", "stackvm")
def tiles(target):
    a = numbers(16, 32)
    np.testing.assert_array_equal(run(by_tiles, a, np.zeros_like(a), target=target), tiles_of(a))


@program
def texts():
    text = by_tiles.script()
    assert 'A_tile = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], [4, 4], dtype="float32")' in text, text
    for function in (by_tiles, rows):
        again = tvm.script.from_source(function.script())
        same(again, function)
        assert again.script() == function.script()


@program("llvm", "c")
def rows_with_strides_and_offsets(target):
    a = np.random.RandomState(3).randint(-9, 9, (3, 8, 6)).astype("int32")
    out = run(rows, a, np.full((3, 6), 7, "int32"), target=target)
    np.testing.assert_array_equal(out[:, :4], a[:, :, 1:5].sum(1))
    np.testing.assert_array_equal(out[:, 4], a[:, :, 4].sum(1))
    np.testing.assert_array_equal(out[:, 5], [n * 48 + 7 * 6 + 1 for n in range(3)])


@program
def schedules_see_the_buffers():
    @T.prim_func
    def sums(A: T.Buffer[(8, 16), "float32"], B: T.Buffer[(8,), "float32"]) -> None:
        for i, k in T.grid(8, 16):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                a = T.match_buffer(A[vi, vk], ())
                b = T.match_buffer(B[vi:vi + 1], (1,))
                with T.init():
                    b[0] = T.float32(0)
                b[0] = b[0] + a[()]
    schedule = tir.Schedule(sums)
    i, k = schedule.get_loops(schedule.get_block("sum"))
    outer, inner = schedule.split(i, [None, 4])
    schedule.reorder(outer, k, inner)
    schedule.vectorize(inner)
    a = numbers(8, 16)
    np.testing.assert_allclose(run(schedule.mod["main"], a, np.zeros(8, "float32")), a.sum(1), rtol=1e-5)


@program
def addresses_of_regions():
    @T.prim_func
    def powers(A: T.Buffer[(4, 8), "float64"], B: T.Buffer[(4, 8), "float64"]) -> None:
        T.func_attr({"global_symbol": "powers", "tir.noalias": True})
        for i in T.serial(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                a = T.match_buffer(A[vi, 0:8], (8,), dtype="float64")
                b = T.match_buffer(B[vi, 0:8], (8,), dtype="float64")
                T.evaluate(T.call_extern("memcpy", b.data, a.access_ptr("r", offset=2), 16, dtype="int32"))
                T.evaluate(T.call_extern("memcpy", b.access_ptr("w", offset=2), a.data, 48, dtype="int32"))
    same(tvm.script.from_source(powers.script()), powers)
    a = numbers(4, 8, dtype="float64")
    np.testing.assert_array_equal(run(powers, a, np.zeros_like(a)), np.concatenate([a[:, 2:4], a[:, :6]], 1))


@program
def what_is_no_region():
    for region, shape, words in (("A[0:4]", "(4,)", "all its dimensions"), ("A[0:4, 0:8]", "(4, 4)", "has 4 where its region of 'A' has 8"), ("A[0:2, 0:8]", "(8,)", "has 1 where"),
                                 ("A[0:4, 0:8]", "(4, 8), 'int32'", "its dtype")):
        with refusing(ValueError, words):
            tvm.script.from_source(f"""
@T.prim_func
def wrong(A: T.Buffer[(8, 8), "float32"]) -> None:
    part = T.match_buffer({region}, {shape})
    part[0] = T.float32(1)
""")


@program
def functions_of_the_runtime():
    seen = []

    @tvm.register_func("regions.double", override=True)
    def double(source, out, count):
        seen.append(count)
        tvm.nd.array(source.numpy() * 2).copyto(out)

    @T.prim_func
    def calls(A: T.Buffer[(2, 3), "float32"], B: T.Buffer[(2, 3), "float32"]) -> None:
        T.func_attr({"global_symbol": "calls", "tir.noalias": True})
        middle = T.alloc_buffer((2, 3), "float32")
        T.evaluate(T.tvm_call_packed("regions.double", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(2, 3, dtype="handle"), 0, 2, T.float32(0), 0, dtype="handle"), middle, 5, dtype="int32"))
        for i, j in T.grid(2, 3):
            middle[i, j] = middle[i, j] + T.float32(1)
        T.evaluate(T.tvm_call_packed("regions.double", middle, B, 6, dtype="int32"))
    a = numbers(2, 3)
    for function in (calls, tvm.script.from_source(calls.script())):
        same(function, calls)
        np.testing.assert_allclose(run(function, a, np.zeros_like(a)), a * 4 + 2, rtol=1e-6)
    assert seen == [5, 6, 5, 6]
    with refusing(ValueError, "not all of its buffer"):
        T.tvm_stack_make_array(calls.params[0], (2, 3), 0, 2, 0.0, 0)
