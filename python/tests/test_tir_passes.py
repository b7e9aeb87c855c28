# SPDX-License-Identifier: Apache-2.0
"""Passes over loop functions by their classic names, on functions that scripts construct from statements."""
import unittest

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import numpy as np
import tvm
from tvm import te, tir
from tvm.script import tir as T


def module_of(body, *params):
    return tvm.IRModule.from_expr(tir.PrimFunc(list(params), body))


def count(node, kind):
    found = []
    tir.stmt_functor.post_order_visit(node, lambda n: found.append(n) if isinstance(n, kind) else None)
    return len(found)


class Functions(unittest.TestCase):
    def test_a_module_of_a_function(self):
        size, array = te.var("n"), tir.decl_buffer((8,), "int32")
        module = module_of(tir.BufferStore(array, size, [0]), array.data, size)
        self.assertEqual([p.dtype for p in module["main"].params], ["handle", "int32"])
        self.assertEqual(list(module["main"].buffer_map[array.name].shape), [8])
        named = tir.PrimFunc([array], tir.BufferStore(array, 1, [0])).with_attr("global_symbol", "ones")
        self.assertIn("ones", tvm.IRModule.from_expr(named))

    def test_handles_without_a_buffer(self):
        builder = tir.ir_builder.create()
        pointer = builder.pointer("float32", name="data")
        size = te.var("size")
        with builder.for_range(0, 4, "i") as i:
            pointer[i] = pointer[i] + 1.0
        function = tir.PrimFunc([pointer, size], builder.get())
        self.assertEqual(len(function.params), 2)
        opaque = tir.PrimFunc([tir.Var("nobody", "handle")], tir.Evaluate(0))
        self.assertEqual(opaque.params[0].dtype, "handle")

    def test_a_cast_of_a_constant(self):
        cast = tir.Cast("float32", tir.const(3, "int32"))
        self.assertEqual((cast.dtype, cast.value.value), ("float32", 3))
        self.assertEqual(tir.const(3, "int32").astype("float32").value, 3.0)


class LoopRewrites(unittest.TestCase):
    def split(self, n, factor):
        a = te.placeholder((n,), name="A")
        out = te.compute((n,), lambda i: a[i] * 2.0, name="out")
        schedule = te.create_schedule(out.op)
        schedule[out].split(out.op.axis[0], factor=factor)
        return module_of(te.schedule.ScheduleOps(schedule, te.schedule.InferBound(schedule)))

    def test_partition_of_constant_bounds_is_asked_for(self):
        module = self.split(21, 4)
        self.assertEqual(count(tir.transform.LoopPartition()(module)["main"].body, tir.IfThenElse), 1)
        with tvm.transform.PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
            whole = tir.transform.LoopPartition()(module)
        self.assertEqual(count(tir.transform.Simplify()(whole)["main"].body, tir.IfThenElse), 0)

    def test_partition_of_a_free_size_gives_the_same_values(self):
        n = te.size_var("n")
        a, b = tir.decl_buffer((n,), "float32", "a"), tir.decl_buffer((n,), "float32", "b")
        builder = tir.ir_builder.create()
        source, result = builder.buffer_ptr(a), builder.buffer_ptr(b)
        with builder.for_range(0, tir.floordiv(n + 3, 4), "i") as i:
            with builder.for_range(0, 4, "j") as j:
                with builder.if_scope(builder.likely(i * 4 + j < n)):
                    result[i * 4 + j] = source[i * 4 + j] + 1.0
        module = module_of(builder.get(), a, b)
        divided = tir.transform.LoopPartition()(module)
        self.assertEqual(count(divided["main"].body, tir.For), 4)
        run = tvm.build(divided, target="llvm")
        for size in (1, 4, 7, 30):
            x, y = np.random.rand(size).astype("float32"), tvm.nd.array(np.zeros(size, "float32"))
            run(tvm.nd.array(x), y)
            np.testing.assert_array_equal(y.numpy(), x + np.float32(1))

    def test_hoist(self):
        size, array = te.var("l"), tir.decl_buffer((64,), "float32")
        builder = tir.ir_builder.create()
        data = builder.buffer_ptr(array)
        with builder.for_range(0, 4, "i") as i:
            with builder.for_range(0, 4, "j") as j:
                with builder.if_scope(i < size):
                    data[i * 4 + j] = 1.0
        body = tir.transform.HoistIfThenElse()(module_of(builder.get(), array, size))["main"].body
        self.assertIsInstance(body.body, tir.IfThenElse)
        self.assertIsInstance(body.body.then_case, tir.For)

    def test_common_subexpressions(self):
        x, y, out = te.var("x"), te.var("y"), tir.decl_buffer((50,), "int32")
        body = tir.SeqStmt([tir.BufferStore(out, (x + y) * 3 + x, [0]), tir.BufferStore(out, (x + y) * 5, [1])])
        module = module_of(body, out, x, y)
        made = tir.transform.CommonSubexprElimTIR()(module)["main"].body
        self.assertIsInstance(made, tir.LetStmt)
        tvm.testing.assert_prim_expr_equal(made.value, x + y)
        self.assertNotIsInstance(tir.transform.CommonSubexprElimTIR(enable_cse_tir=False)(module)["main"].body, tir.LetStmt)

    def test_unroll(self):
        array = tir.decl_buffer((64,), "int32")
        builder = tir.ir_builder.create()
        data = builder.buffer_ptr(array)
        with builder.for_range(0, 2, "i") as i:
            with builder.for_range(0, 8, "j", kind="unroll") as j:
                data[i * 8 + j] = i
        module = module_of(builder.get(), array)
        self.assertEqual(count(tir.transform.UnrollLoop()(module)["main"].body, tir.For), 1)
        with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
            self.assertEqual(count(tir.transform.UnrollLoop()(module)["main"].body, tir.For), 0)

    def test_simplify_keeps_annotations_and_multi_dimensional_accesses(self):
        array = tir.decl_buffer((4, 8), "float32")
        i, j = te.var("i"), te.var("j")
        store = tir.BufferStore(array, tir.const(1.0, "float32"), [tir.floordiv(i * 8 + j, 8), tir.floormod(i * 8 + j, 8)])
        nest = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.For(j, 0, 8, tir.ForKind.SERIAL, store, annotations={"pragma_x": 1}))
        body = tir.transform.Simplify()(module_of(nest, array))["main"].body
        self.assertEqual(dict(body.body.annotations), {"pragma_x": 1})
        self.assertTrue(all(a.same_as(b) for a, b in zip(body.body.body.indices, (i, j))))


class Analyses(unittest.TestCase):
    def test_regions_of_a_block_and_where_buffers_are_used(self):
        from tvm.script import tir as T

        @T.prim_func
        def copy(a: T.handle, b: T.handle) -> None:
            A = T.match_buffer(a, (8, 8), "float32")
            B = T.match_buffer(b, (8, 8), "float32")
            for i in range(8):
                for j in range(8):
                    with T.block("copied"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj] + A[vi, vj]
        outer = copy.body
        while not isinstance(outer, tir.For):
            outer = outer.block.body
        block = outer.body.body.block
        self.assertEqual([r.buffer.name for r in block.reads], ["A"])
        self.assertEqual([r.buffer.name for r in block.writes], ["B"])
        around = tir.analysis.detect_buffer_access_lca(copy)
        self.assertEqual(len(around), 2)
        for node in around.values():
            self.assertIsInstance(node, tir.Block)

    def test_a_buffer_that_only_a_condition_reads_is_used_around_it(self):
        from tvm.script import tir as T

        @T.prim_func
        def chosen(m: T.handle, b: T.handle) -> None:
            M = T.match_buffer(m, (8,), "int32")
            B = T.match_buffer(b, (8, 8), "float32")
            for i in T.serial(8):
                for j in T.serial(8):
                    if M[i] > 0:
                        B[i, j] = T.float32(1)
        around = {b.name: n for b, n in tir.analysis.detect_buffer_access_lca(chosen).items()}
        self.assertEqual(sorted(around), ["B", "M"])
        self.assertEqual([around[n].loop_var.name for n in "BM"], ["j", "j"])


class Narrow(unittest.TestCase):
    def kinds(self, rows, columns, bits):
        """The dtypes of two loops over a matrix in one dimension."""
        builder = tir.ir_builder.create()
        a, b = (tir.decl_buffer([rows * columns], name=name) for name in "ab")
        x, y = builder.buffer_ptr(a), builder.buffer_ptr(b)
        with builder.for_range(0, rows, name="i") as i:
            with builder.for_range(0, columns, name="j") as j:
                y[i * columns + j] = x[i * columns + j] + 1
        function = tir.transform.NarrowDataType(bits)(module_of(builder.get(), a, b))["main"]
        return function.body.loop_var.dtype, function.body.body.loop_var.dtype

    def test_where_all_values_fit(self):
        wide = tir.const(2, "int64"), tir.const(2**16, "int64")
        self.assertEqual(self.kinds(2, 2, 32), ("int32", "int32"))
        self.assertEqual(self.kinds(wide[0], wide[0], 32), ("int32", "int32"))
        self.assertEqual(self.kinds(wide[1], wide[1], 32), ("int64", "int64"))
        self.assertEqual(self.kinds(te.size_var("m", "int64"), te.size_var("n", "int64"), 32), ("int64", "int64"))

    def test_it_computes_the_same(self):
        @T.prim_func
        def clipped(a: T.Buffer[(128,), "float32"], b: T.Buffer[(130,), "float32"]):
            for i, j in T.grid(T.int64(2), T.int64(65)):
                if i * T.int64(65) + j < T.int64(128):
                    b[i * T.int64(65) + j] = a[i * T.int64(65) + j] * T.float32(2)
        module = tir.transform.NarrowDataType(32)(clipped)
        self.assertEqual(module["clipped"].body.loop_var.dtype, "int32")
        x, y = np.random.rand(128).astype("float32"), tvm.nd.array(np.zeros(130, "float32"))
        tvm.build(module, target="llvm")["clipped"](tvm.nd.array(x), y)
        np.testing.assert_array_equal(y.numpy(), np.concatenate([x * 2, [0, 0]]).astype("float32"))


class Statements(unittest.TestCase):
    def test_unsafe_selects(self):
        builder, i = tir.ir_builder.create(), te.var("i")
        data = builder.allocate("float32", 100, name="data", scope="global")

        def rewritten(value):
            return tir.transform.RewriteUnsafeSelect()(module_of(tir.Evaluate(value), i))["main"].body.value
        one, other = tir.Select(i > 1, data[i - 1], 1.0), tir.Select(tir.Select(i > 1, data[i - 1], 1.0) > 0.0, data[i], 0.1)
        choice = tvm.ir.Op.get("tir.if_then_else")
        self.assertTrue(rewritten(one).op.same_as(choice))
        self.assertTrue(rewritten(other).op.same_as(choice))
        self.assertIsInstance(rewritten(tir.Select(tir.floordiv(i, 4) > 10, one, other)), tir.Select)
        self.assertIsInstance(rewritten(tir.Select(i > 1, i + 1, i)), tir.Select)

    def test_nothing_is_removed(self):
        i, n, m = te.var("i"), te.var("n"), te.var("m")
        data = tir.decl_buffer((n,), "int64")

        def rest(statement):
            return tir.transform.RemoveNoOp()(module_of(statement, data))["main"].body
        idle = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.IfThenElse(i < m, tir.Evaluate(m), tir.Evaluate(n)))
        self.assertIsInstance(rest(idle), tir.Evaluate)
        store = tir.BufferStore(data, tir.BufferLoad(data, [i]) + 1, [i + 1])
        self.assertTrue(tvm.ir.structural_equal(rest(tir.SeqStmt([tir.Evaluate(0), tir.SeqStmt([store, idle])])), store))
        self.assertIsInstance(rest(tir.For(i, 0, 0, tir.ForKind.SERIAL, store)), tir.Evaluate)
        called = tir.Evaluate(tir.call_extern("int32", "rand"))
        self.assertFalse(isinstance(rest(tir.SeqStmt([called, idle])), tir.SeqStmt))

    def vectorized(self, emit, *params):
        builder = tir.ir_builder.create()
        data = builder.pointer("float32", name="data")
        with builder.for_range(0, 4, kind="vectorize") as i:
            emit(builder, data, i)
        return tir.transform.VectorizeLoop()(module_of(builder.get(), data, *params))["main"].body

    def test_vectors_of_statements(self):
        def plain(builder, data, i):
            data[i] = tir.const(1, "float32")
        body = self.vectorized(plain)
        self.assertIsInstance(body.indices[0], tir.Ramp)
        self.assertIsInstance(body.value, tir.Broadcast)
        x, n, kept = te.var("x"), te.var("n"), tir.Var("kept", "float32")

        def branches(builder, data, i):
            with builder.if_scope(x < n):
                data[i] = data[i] + 1.0
            with builder.else_scope():
                with builder.if_scope(i < n):
                    data[i] = 2.0
        body = self.vectorized(branches, x, n)
        self.assertEqual((type(body.then_case.value), body.then_case.value.dtype), (tir.Add, "float32x4"))
        self.assertIsInstance(body.else_case, tir.For)  # a condition of each element: there are no masks

        def let(builder, data, i):
            builder.emit(lambda body: tir.LetStmt(kept, data[i] + 1.0, body))
            data[i] = kept + 2.0
        self.assertEqual(self.vectorized(let).value.dtype, "float32x4")

    def test_vectors_compute_the_same(self):
        a, b = tir.decl_buffer((4, 16), name="a"), tir.decl_buffer((4, 16), name="b")
        builder = tir.ir_builder.create()
        x, y = builder.buffer_ptr(a), builder.buffer_ptr(b)
        with builder.for_range(0, 4) as i:
            with builder.for_range(0, 16, kind="vectorize") as j:
                y[i, j] = tir.if_then_else(i > 1, x[i, j] * 2.0, x[3 - i, 15 - j])
        module = tir.transform.VectorizeLoop()(module_of(builder.get(), a, b))
        data, out = np.random.rand(4, 16).astype("float32"), tvm.nd.array(np.zeros((4, 16), "float32"))
        tvm.build(module, target="llvm")["main"](tvm.nd.array(data), out)
        np.testing.assert_array_equal(out.numpy(), np.where(np.arange(4)[:, None] > 1, data * 2, data[::-1, ::-1]))

    def test_truncated_remainders(self):
        a, b = te.var("a"), te.var("b")
        self.assertIsInstance(tir.truncmod(a, b), tir.Mod)
        self.assertTrue(tir.Mod(a, b).a.same_as(a))
        self.assertEqual(int(tir.truncmod(tir.const(-7, "int32"), tir.const(3, "int32"))), -1)
        known = tvm.arith.Analyzer()
        known.update(a, tvm.arith.ConstIntBound(-10, 9))
        known.update(b, tvm.arith.ConstIntBound(4, 6))
        bound = known.const_int_bound(tir.truncmod(a, b))
        self.assertEqual((bound.min_value, bound.max_value), (-5, 5))
        x, y = tir.decl_buffer((9,), "int32"), tir.decl_buffer((9,), "int32")
        values = np.arange(-4, 5).astype("int32")
        want = np.fmod(values, 3) + 10 * np.fmod(values, np.arange(9) - 10)
        for target in ("llvm", "stackvm"):
            out = tvm.nd.array(np.zeros(9, "int32"))
            made = tvm.build(tir.PrimFunc([x, y], remainders(x, y)), target=target)
            made(tvm.nd.array(values), out)
            np.testing.assert_array_equal(out.numpy(), want)

    def test_what_is_known_of_sizes(self):
        known, n, m, x, y = tvm.arith.Analyzer(), te.size_var("n"), te.size_var("m"), te.var("x"), te.var("y")
        self.assertTrue(known.can_prove(n + m * 2 >= 0))
        self.assertTrue(known.can_prove(n * m + 3 > 0))
        self.assertFalse(known.can_prove(x + m >= 0))
        self.assertEqual(known.const_int_bound(n + 1).min_value, 1)
        self.assertIsInstance((n + 1).a, tir.SizeVar)
        tvm.ir.assert_structural_equal(known.rewrite_simplify(x - (y + x)), 0 - y)


def remainders(x, y):
    builder = tir.ir_builder.create()
    source, to = builder.buffer_ptr(x), builder.buffer_ptr(y)
    with builder.for_range(0, 9) as i:
        to[i] = tir.truncmod(source[i], 3) + 10 * tir.truncmod(source[i], i - 10)
    return builder.get()


if __name__ == "__main__":
    unittest.main()
