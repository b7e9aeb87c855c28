# SPDX-License-Identifier: Apache-2.0
"""Passes over loop functions by their classic names, on functions that scripts construct from statements."""
import unittest

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import numpy as np
import tvm
from tvm import te, tir


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


if __name__ == "__main__":
    unittest.main()
