# SPDX-License-Identifier: Apache-2.0
"""Functions over buffers written as Python: what they compute equals numpy; what is no script says where."""
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm.script import tir as T

SIZE = 16


@T.prim_func
def matmul(A: T.Buffer[(128, 64), "float32"], B: T.Buffer[(64, 32), "float32"], C: T.Buffer[(128, 32), "float32"]) -> None:
    T.func_attr({"global_symbol": "matmul", "tir.noalias": True})
    for i, j, k in T.grid(128, 32, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def tiled(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (40,), dtype="float32")
    C = T.match_buffer(c, (40,), "float32")
    B = T.alloc_buffer((40,), dtype="float32")
    for i0 in T.parallel(5):
        for i1 in T.vectorized(8):
            with T.block("B"):
                vi = T.axis.spatial(40, i0 * 8 + i1)
                B[vi] = T.exp(A[vi]) * T.float32(2)
    for i0, i1 in T.grid(6, 7):
        with T.block("C"):
            T.where(i0 * 7 + i1 < 40)
            vi = T.axis.S(40, i0 * 7 + i1)
            if 3 < vi and vi < 30 or vi == 35:
                C[vi] = B[vi]
            else:
                C[vi] = T.max(B[vi], T.float32(3)) + T.cast(vi, "float32")


@T.prim_func
def free_sizes(a: T.handle, b: T.handle, k: T.int32) -> None:
    n = T.var("int32")
    A = T.match_buffer(a, [n, SIZE], dtype="int32")
    B = T.match_buffer(b, [n, SIZE], dtype="int32")
    for i in T.serial(n):
        for j in range(SIZE):
            B[i, j] = A[i, j] * k
            B[i, j] += T.if_then_else(0 <= i - 1 <= 3, A[i - 1, j], 0)


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer[(8,), "float32"], B: T.Buffer[(8,), "float32"]) -> None:
        for i in T.serial(8):
            t: T.float32 = A[i] + T.float32(1)
            B[i] = t * t

    @T.prim_func
    def negated(A: T.Buffer[(8,), "float32"], B: T.Buffer[(8,), "float32"]) -> None:
        for i in T.unroll(8):
            B[i] = T.call_extern("fabsf", A[i], dtype="float32") * T.float32(-1)


class Scripts(unittest.TestCase):
    def test_blocks(self):
        a, b = np.random.rand(128, 64).astype("float32"), np.random.rand(64, 32).astype("float32")
        out = tvm.nd.array(np.full((128, 32), -7, "float32"))
        tvm.build(matmul, target="llvm")["matmul"](tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)
        a, out = np.random.rand(40).astype("float32"), tvm.nd.array(np.zeros(40, "float32"))
        tvm.build(tiled, target="llvm")(tvm.nd.array(a), out)
        i, b = np.arange(40), np.exp(a) * 2
        np.testing.assert_allclose(out.numpy(), np.where(((3 < i) & (i < 30)) | (i == 35), b, np.maximum(b, 3) + i), rtol=1e-5)

    def test_free_sizes(self):
        a, out = np.random.randint(-9, 9, (7, SIZE)).astype("int32"), tvm.nd.array(np.zeros((7, SIZE), "int32"))
        tvm.build(free_sizes, target="llvm")(tvm.nd.array(a), out, 5)
        want = a * 5
        want[1:5] += a[:4]
        np.testing.assert_array_equal(out.numpy(), want)

    def test_modules_and_text(self):
        a, out = np.random.randn(8).astype("float32"), tvm.nd.array(np.zeros(8, "float32"))
        lib = tvm.build(Module, target="llvm")
        lib["main"](tvm.nd.array(a), out)
        np.testing.assert_allclose(out.numpy(), (a + 1) ** 2, rtol=1e-5)
        lib["negated"](tvm.nd.array(a), out)
        np.testing.assert_array_equal(out.numpy(), -np.abs(a))
        function = tvm.script.from_source("""
            @T.prim_func
            def twice(A: T.Buffer[(8,), "float32"]) -> None:
                for i in T.serial(8):
                    A[i] = A[i] * T.float32(2)
        """)
        given = tvm.nd.array(a.copy())
        tvm.build(function, target="llvm")(given)
        np.testing.assert_array_equal(given.numpy(), a * 2)

    def test_refusals(self):
        head = "@T.prim_func\ndef f(A: T.Buffer[(8,), 'float32'], h: T.handle) -> None:\n"
        with self.assertRaisesRegex(tvm.TVMError, "what memory 'h' is"):
            tvm.build(tvm.script.from_source(head + "    A[0] = 1.0"), target="llvm")
        for body, reason in (("    H = T.match_buffer(h, (4,), 'float32')\n    try:\n        A[0] = 1.0\n    finally:\n        A[0] = 2.0", "Try"),
                             ("    H = T.match_buffer(h, (4,), 'float32')\n    A[0] = nobody[1]", "nobody"), ("    H = T.match_buffer(h, (4,), 'float32')\n    for i in A:\n        A[0] = 1.0", "loop"),
                             ("    H = T.match_buffer(h, (4,), 'float32')\n    A[0] = 1.0 +", "line"), ("    H = T.match_buffer(h, (4,), 'float32')\n    for i, j in T.grid(3):\n        A[0] = 1.0", "variables")):
            with self.assertRaisesRegex(ValueError, reason):
                tvm.script.from_source(head + body)


if __name__ == "__main__":
    unittest.main()
