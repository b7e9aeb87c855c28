# SPDX-License-Identifier: Apache-2.0
"""Functions of statements that return a number."""
import os
import tempfile
import unittest

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import numpy as np
import tvm
from tvm import te, tir
from tvm.script import tir as T


def built(params, body, target="llvm"):
    return tvm.build(tvm.IRModule({"main": tir.PrimFunc(params, body).with_attr("global_symbol", "main")}), target=target)


class Returns(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(built([], tir.Evaluate(tir.ret(tir.const(3))))(), 3)
        a, b = te.var("a"), te.var("b")
        for target in ("llvm", "stackvm"):
            total = built([a, b], tir.Evaluate(tir.ret(a + b * 2)), target)
            self.assertEqual([total(1, 2), total(-3, 1)], [5, -1])
        for dtype, value in (("int64", -2**40), ("uint8", 200), ("int16", -7), ("float64", 0.1)):
            self.assertEqual(built([], tir.Evaluate(tir.ret(tir.const(value, dtype))))(), value)
        with self.assertRaisesRegex(tvm.TVMError, "it takes 2"):
            built([a, b], tir.Evaluate(tir.ret(a)))(1)

    def test_branches(self):
        x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
        builder = tir.ir_builder.create()
        with builder.if_scope(x > y):
            builder.emit(tir.Evaluate(tir.ret(x)))
        builder.emit(tir.Evaluate(tir.ret(y)))
        most = built([x, y], builder.get())
        self.assertEqual([most(1.0, 2.0), most(4.5, 2.0)], [2.0, 4.5])

    def test_what_follows_is_not_run(self):
        @T.prim_func
        def marked(a: T.Buffer[(4,), "int32"], n: T.int32) -> None:
            for i in T.serial(0, 4):
                a[i] = a[i] + 1
            if n < 2:
                T.evaluate(T.ret(a[0] * 10))
            for i in T.serial(0, 4):
                a[i] = a[i] * 2
            T.evaluate(T.ret(a[3]))
        again = tvm.script.from_source(marked.script())
        self.assertEqual(again.script(), marked.script())
        for function in (marked, again):
            module = tvm.build(function, target="llvm")
            path = os.path.join(tempfile.mkdtemp(), "marked.so")
            module.export_library(path)
            for mod in (module, tvm.runtime.load_module(path)):
                for n, result, left in ((1, 10, [1, 2, 3, 4]), (2, 8, [2, 4, 6, 8])):
                    array = tvm.nd.array(np.arange(4, dtype="int32"))
                    self.assertEqual(mod["marked"](array, n), result)
                    np.testing.assert_array_equal(array.numpy(), left)

    def test_what_cannot_return(self):
        i = te.var("i")
        loop = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(tir.ret(i)))
        with self.assertRaisesRegex(tvm.TVMError, "out of a loop"):
            built([], loop)
        two = tir.IfThenElse(i > 0, tir.Evaluate(tir.ret(i)), tir.Evaluate(tir.ret(tir.const(1.0, "float32"))))
        with self.assertRaisesRegex(tvm.TVMError, "two dtypes"):
            built([i], two)
        with self.assertRaisesRegex(tvm.TVMError, "bool"):
            built([i], tir.Evaluate(tir.ret(i > 0)))


if __name__ == "__main__":
    unittest.main()
