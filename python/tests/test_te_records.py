# SPDX-License-Identifier: Apache-2.0
"""What scripts read back of schedules, statements and sets: relations, annotations, bounds, calls, loops with a condition."""
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te, tir
from tvm.script import tir as T


class Schedules(unittest.TestCase):
    def test_relations_and_all_loops(self):
        a = te.placeholder((16, 12), name="A")
        b = te.compute((16, 12), lambda i, j: a[i, j], name="B")
        s = te.create_schedule(b.op)
        fused = s[b].fuse(*b.op.axis)
        outer, inner = s[b].split(fused, factor=5)
        first, second = s[b].relations
        self.assertIsInstance(first, te.schedule.Fuse)
        self.assertIsInstance(second, te.schedule.Split)
        self.assertEqual([first.fused, second.parent, second.outer, second.inner], [fused, fused, outer, inner])
        self.assertEqual((second.factor, second.nparts), (5, None))
        self.assertEqual(list(s[b].all_iter_vars), [*b.op.axis, fused, outer, inner])
        self.assertEqual(list(s[b].leaf_iter_vars), [outer, inner])

    def test_annotations(self):
        a = te.placeholder((64, 64), name="A")
        b = te.compute((64, 64), lambda i, j: a[i, j] + 1, name="B")
        s = te.create_schedule(b.op)
        x, y, xi, yi = s[b].tile(b.op.axis[0], b.op.axis[1], 4, 4)
        s[b].vectorize(yi)
        s[b].unroll(xi)
        s[b].parallel(x)
        s[b].pragma(y, "of_mine", 3)
        s[b].pragma(y, "another")
        found = s[b].iter_var_attrs
        self.assertEqual([found[v].iter_type for v in (x, xi, yi)], [tir.IterVar.Parallelized, tir.IterVar.Unrolled, tir.IterVar.Vectorized])
        self.assertEqual([k.value for k in found[y].pragma_keys], ["of_mine", "another"])
        self.assertEqual(found[y].pragma_values[0].value, 3)
        self.assertIsNone(found[y].pragma_values[1])
        self.assertEqual(te.create_schedule(b.op)[b].iter_var_attrs, {})

    def test_scopes_and_places(self):
        a = te.placeholder((16,), name="A")
        b = te.compute((16,), lambda i: a[i] * 2, name="B")
        c = te.compute((16,), lambda i: b[i] + 1, name="C")
        s = te.create_schedule(c.op)
        copied, written = s.cache_read(a, "shared", [b]), s.cache_write(c, "local")
        self.assertEqual([s[t].scope for t in (copied, written, c)], ["shared", "local", "global"])
        s[b].set_scope("local")
        self.assertEqual(s[b].scope, "local")
        self.assertEqual((s[b].attach_type, s[b].attach_stage), (1, None))
        s[b].compute_at(s[c], s[c].op.axis[0])
        self.assertEqual((s[b].attach_type, s[b].attach_stage, s[b].attach_ivar), (4, s[c], s[c].op.axis[0]))

    def test_the_only_loop_of_a_scalar(self):
        a = te.placeholder((), name="A")
        b = te.compute((), lambda: a() + 1, name="B")
        s = te.create_schedule(b.op)
        only = s[b].fuse()
        self.assertEqual([type(r) for r in s[b].relations], [te.schedule.Singleton])
        self.assertEqual(list(s[b].leaf_iter_vars), [only])
        s[b].parallel(only)
        out = tvm.nd.array(np.zeros((), "float32"))
        tvm.build(s, [a, b])(tvm.nd.array(np.array(2, "float32")), out)
        self.assertEqual(out.numpy(), 3)
        with self.assertRaisesRegex(tvm.TVMError, "it has loops"):
            s[b].fuse()

    def test_bounds(self):
        n = te.var("n")
        a = te.placeholder((n, 8), name="A")
        b = te.compute((n, 8), lambda i, j: a[i, j] + 1, name="B")
        c = te.compute((n, 8), lambda i, j: b[i, j] * 2, name="C")
        s = te.create_schedule(c.op)
        outer, inner = s[c].split(c.op.axis[1], 4)
        s[b].compute_at(s[c], outer)
        bounds = te.schedule.InferBound(s)
        self.assertEqual([bounds[v].extent.value for v in (outer, inner, b.op.axis[0], b.op.axis[1])], [2, 4, 1, 4])
        self.assertTrue(tvm.ir.structural_equal(tvm.arith.Analyzer().simplify(bounds[c.op.axis[0]].extent - n), tir.const(0, "int32")), bounds[c.op.axis[0]])
        self.assertIn("for", str(te.schedule.ScheduleOps(s, bounds)))
        # What is computed at a loop begins where the loop stands.
        self.assertTrue(tvm.arith.Analyzer().simplify(bounds[b.op.axis[1]].min - outer.var * 4).value == 0)


class Statements(unittest.TestCase):
    def test_evaluated_values_are_kept(self):
        x, y = te.var("x"), te.var("y")
        statement = tir.Evaluate(x + y)
        self.assertTrue(tvm.ir.structural_equal(statement.value, x + y))
        self.assertEqual(tir.Evaluate(11).value.value, 11)
        self.assertEqual(list(tir.analysis.undefined_vars(tir.For(x, 0, 10, tir.ForKind.SERIAL, statement), [])), [y])
        a = tir.decl_buffer((4,), "float32", name="A")
        f = tir.PrimFunc([a], tir.stmt_seq(tir.Evaluate(a[0] + 1.0), tir.BufferStore(a, tir.const(2.0, "float32"), [1]), tir.Evaluate(0)))
        self.assertIn("T.evaluate(A[0] + ", f.script())
        self.assertEqual(tvm.script.from_source(f.script()).script(), f.script())
        array = tvm.nd.array(np.zeros(4, "float32"))
        tvm.build(f)(array)
        np.testing.assert_array_equal(array.numpy(), [0, 2, 0, 0])

    def test_branches_are_kept(self):
        a = tir.decl_buffer((4,), "float32", name="A")
        branch = tir.IfThenElse(tir.const(1, "bool"), tir.BufferStore(a, tir.const(2.0, "float32"), [1]), tir.BufferStore(a, tir.const(3.0, "float32"), [2]))
        self.assertIsInstance(branch.then_case, tir.BufferStore)
        array = tvm.nd.array(np.zeros(4, "float32"))
        tvm.build(tir.PrimFunc([a], branch))(array)
        np.testing.assert_array_equal(array.numpy(), [0, 2, 0, 0])

    def test_calls_are_calls(self):
        a = tir.decl_buffer((4, 8), "float32", name="A")
        pointer = a.access_ptr("rw", offset=8)
        self.assertIsInstance(pointer, tir.Call)
        self.assertEqual((pointer.op.name, pointer.args[3].value, pointer.args[4].value), ("tir.tvm_access_ptr", 24, 3))
        self.assertEqual([a.access_ptr(m).args[4].value for m in ("r", "w", "wr")], [1, 2, 3])
        call = tir.call_extern("int32", "f", a.access_ptr("r"), 3)
        self.assertIsInstance(call, tir.Call)
        self.assertEqual((call.op.name, call.args[0].value, len(call.args)), ("tir.call_extern", "f", 3))

    def test_calls_are_replaced(self):
        n = te.var("n")
        ib = tir.ir_builder.create()
        with ib.for_range(0, n, name="i") as i:
            ib.emit(tir.call_extern("int32", "first", i * 3))
        seen = []

        def renamed(op):
            seen.append(type(op))
            self.assertTrue(op.op.same_as(tvm.ir.Op.get("tir.call_extern")))
            return tir.call_extern("int32", "second", op.args[1] + 1)
        body = tir.stmt_functor.ir_transform(ib.get(), None, renamed, ["tir.Call"])
        self.assertIn("second(", str(body))
        self.assertNotIn("first", str(body))
        self.assertEqual(len(seen), 1)

    def test_modules_have_global_variables(self):
        mod = tvm.IRModule({"f": tir.PrimFunc([], tir.Evaluate(0)), "g": tir.PrimFunc([], tir.Evaluate(0))})
        self.assertEqual([v.name_hint for v in mod.get_global_vars()], ["f", "g"])
        self.assertIs(mod[mod.get_global_var("g")], mod["g"])
        with self.assertRaises(ValueError):
            mod.get_global_var("h")


class Whiles(unittest.TestCase):
    def collatz(self):
        """Steps to 1 of each number, at most 1000."""
        a, b = tir.decl_buffer((40,), "int32", name="A"), tir.decl_buffer((40,), "int32", name="B")
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
        with ib.for_range(0, 40, name="k") as k:
            now = ib.allocate("int32", (1,), name="now", scope="local")
            now[0] = x[k]
            y[k] = 0
            with ib.while_loop(tir.all(now[0] > 1, y[k] < 1000)):
                with ib.if_scope(now[0] % 2 == 0):
                    now[0] = now[0] // 2
                with ib.else_scope():
                    now[0] = now[0] * 3 + 1
                y[k] = y[k] + 1
        return tir.PrimFunc([a, b], ib.get()).with_attr("global_symbol", "collatz")

    @staticmethod
    def steps(n):
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else n * 3 + 1), count + 1
        return count

    def check(self, f, target="llvm"):
        given, out = np.arange(1, 41, dtype="int32"), tvm.nd.array(np.full(40, -1, "int32"))
        tvm.build(f, target=target)(tvm.nd.array(given), out)
        np.testing.assert_array_equal(out.numpy(), [self.steps(n) for n in given])

    def test_built(self):
        self.check(self.collatz())

    def test_as_c(self):
        self.check(self.collatz(), "c")

    def test_printed_and_read(self):
        f = self.collatz()
        self.assertIn("while ", f.script())
        again = tvm.script.from_source(f.script())
        self.assertEqual(again.script(), f.script())
        self.check(again)

    def test_script(self):
        @T.prim_func
        def doubled(a: T.handle, n: T.int32) -> None:
            A = T.match_buffer(a, (16,), "int32")
            i = T.alloc_buffer((1,), "int32", scope="local")
            i[0] = 0
            while i[0] < n:
                A[i[0]] = A[i[0]] * 2
                i[0] = i[0] + 1
        array = tvm.nd.array(np.arange(16, dtype="int32"))
        tvm.build(doubled)(array, 5)
        np.testing.assert_array_equal(array.numpy(), [v * 2 if v < 5 else v for v in range(16)])

    def test_nodes(self):
        v = te.var("v")
        loop = tir.While(v < 10, tir.Evaluate(v))
        self.assertEqual(loop.condition.dtype, "bool")
        self.assertIsInstance(loop.body, tir.Evaluate)
        with self.assertRaisesRegex(tvm.TVMError, "a while on int32"):
            tir.While(v + 1, tir.Evaluate(0))

    def test_not_as_byte_code(self):
        with self.assertRaisesRegex(Exception, "loops that end by a condition"):
            tvm.build(self.collatz(), target="stackvm")


class Passes(unittest.TestCase):
    def lowered(self):
        a = te.placeholder((16,), name="A")
        b = te.compute((16,), lambda i: a[i] + 1, name="B")
        s = te.create_schedule(b.op)
        outer, inner = s[b].split(b.op.axis[0], 4)
        s[b].vectorize(inner)
        s[b].unroll(outer)
        return tvm.lower(s, [a, b], name="f")

    def check(self, mod):
        given, out = np.arange(16, dtype="float32"), tvm.nd.array(np.zeros(16, "float32"))
        tvm.build(mod)(tvm.nd.array(given), out)
        np.testing.assert_array_equal(out.numpy(), given + 1)

    def test_one_by_one(self):
        mod = self.lowered()
        self.assertIn("unrolled", str(mod))
        mod = tir.transform.UnrollLoop()(mod)
        self.assertNotIn("unrolled", str(mod))
        serial = tir.transform.VectorizeLoop(False)(mod)
        self.assertNotIn("vectorized", str(serial))
        self.assertIn("for ", str(serial))
        mod = tir.transform.VectorizeLoop()(mod)
        self.assertIn("ramp(", str(mod))
        mod = tir.transform.StorageRewrite()(tir.transform.Simplify()(mod))
        self.assertNotIn("for ", str(mod))
        self.check(mod)
        self.check(serial)
        self.assertEqual(tir.transform.Simplify().info.name, "tir.Simplify")

    def test_nothing_is_removed_but_nothing(self):
        a, x = tir.decl_buffer((4,), "float32", name="A"), te.var("i")
        idle = tir.For(x, 0, 4, tir.ForKind.SERIAL, tir.IfThenElse(x > 1, tir.Evaluate(x + 1), None))
        f = tir.PrimFunc([a], tir.stmt_seq(idle, tir.BufferStore(a, tir.const(2.0, "float32"), [1])))
        after = tir.transform.RemoveNoOp()(tvm.IRModule({"main": f}))["main"]
        self.assertIsInstance(after.body, tir.BufferStore)


class FromFunctions(unittest.TestCase):
    def test_a_function_as_a_tensor(self):
        @T.prim_func
        def scaled(a: T.handle, b: T.handle) -> None:
            A = T.match_buffer(a, [8], "float32")
            B = T.match_buffer(b, [8], "float32")
            for i in range(8):
                with T.block("scaled"):
                    v = T.axis.spatial(8, i)
                    B[v] = A[v] * T.float32(3)
        x = te.placeholder((8,), name="x")
        y = te.extern_primfunc([x], scaled)
        z = te.compute((8,), lambda i: y[i] + 1, name="z")
        given, out = np.arange(8, dtype="float32"), tvm.nd.array(np.zeros(8, "float32"))
        tvm.build(te.create_schedule(z.op), [x, z])(tvm.nd.array(given), out)
        np.testing.assert_array_equal(out.numpy(), given * 3 + 1)
        with self.assertRaises(ValueError):
            te.extern_primfunc([te.placeholder((9,))], scaled)


class Specialized(unittest.TestCase):
    def test_sizes_and_buffers(self):
        @T.prim_func
        def f(a: T.handle, b: T.handle, n: T.int32) -> None:
            A = T.match_buffer(a, [n, 8], "float32")
            B = T.match_buffer(b, [n, 8], "float32")
            C = T.alloc_buffer((n, 8), "float32")
            for i, j in T.grid(n, 8):
                C[i, j] = A[i, j] * T.float32(2)
            for i, j in T.grid(n, 8):
                B[i, j] = C[i, j] + T.float32(n)
        given = np.random.rand(4, 8).astype("float32")
        for g in (f.specialize({f.params[2]: 4}), f.specialize({f.params[0]: tir.decl_buffer((4, 8))})):
            self.assertEqual([[int(d) for d in b.shape] for b in g.buffer_map.values()], [[4, 8], [4, 8]])
            self.assertEqual(len(g.params), 2)
            out = tvm.nd.array(np.zeros((4, 8), "float32"))
            tvm.build(g)(tvm.nd.array(given), out)
            np.testing.assert_allclose(out.numpy(), given * 2 + 4, rtol=1e-6)
        self.assertEqual(len(f.params), 3)
        with self.assertRaises(ValueError):
            f.specialize({f.params[0]: tir.decl_buffer((4, 9))})
        with self.assertRaises(ValueError):
            f.specialize({f.params[0]: tir.decl_buffer((4,))})


class Sets(unittest.TestCase):
    def test_simplified(self):
        x, y = te.var("x"), te.var("y")
        simple = tvm.arith.Analyzer().rewrite_simplify
        for e in (te.min(te.max(x, y), x), te.max(x, te.min(y, x)), tir.truncdiv(x * 6, 3) - x):
            self.assertTrue(tvm.ir.structural_equal(simple(e), x), e)
        self.assertEqual(simple(tir.truncmod(x * 4 + 2, 2)).value, 0)
        self.assertTrue(tvm.arith.IntervalSet.everything().is_everything())
        self.assertTrue(tvm.arith.IntervalSet.nothing().is_nothing())


class Graphs(unittest.TestCase):
    def chain(self):
        a = te.placeholder((8, 8), name="A")
        twice = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="twice")
        turned = te.compute((8, 8), lambda i, j: twice[j, i], name="turned")
        row = te.compute((8,), lambda i: turned[i, 0] + 1.0, name="row")
        return a, twice, turned, te.compute((8, 8), lambda i, j: row[j] + turned[i, j], name="out")

    def test_read_graph_and_order(self):
        a, twice, turned, out = self.chain()
        graph = te.schedule.CreateReadGraph([out.op])
        self.assertEqual(graph[turned.op], [twice])
        order = te.schedule.PostDFSOrder([out.op], graph)
        self.assertEqual([op.name for op in order], ["A", "twice", "turned", "row", "out"])

    def test_stages_are_inlined_by_kind(self):
        for inline, gone in (("AutoInlineElemWise", ["twice"]), ("AutoInlineBroadcast", ["twice"]), ("AutoInlineInjective", ["twice", "turned", "row"])):
            a, twice, turned, out = self.chain()
            schedule = te.create_schedule(out.op)
            getattr(te.schedule, inline)(schedule)
            inlined = [s.op.name for s in schedule.stages if s.attach_type == 2]
            self.assertEqual(inlined, gone, inline)
            x, y = np.random.rand(8, 8).astype("float32"), tvm.nd.array(np.zeros((8, 8), "float32"))
            tvm.build(schedule, [a, out], "llvm")(tvm.nd.array(x), y)
            doubled = (x * 2).T
            np.testing.assert_allclose(y.numpy(), doubled[:, 0] + 1 + doubled, rtol=1e-6)

    def test_fields_of_an_intrinsic(self):
        x = te.placeholder((16,), name="x")
        z = te.compute((16,), lambda i: x[i] + 1.0, name="z")

        def body(ins, outs):
            self.assertIsInstance(ins[0], te.schedule.Buffer)
            return tvm.tir.call_packed("never", ins[0], outs[0])
        intrinsic = te.decl_tensor_intrin(z.op, body, default_buffer_params={"offset_factor": 16})
        self.assertEqual((intrinsic.op, intrinsic.reduce_init, list(intrinsic.inputs)), (z.op, None, [x]))
        self.assertEqual([b.name for b in intrinsic.buffers], ["x", "z"])

    def test_what_a_compute_may_not_be_is_an_error_of_both_kinds(self):
        a, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), "k")
        for kind in (ValueError, tvm.error.TVMError):
            with self.assertRaises(kind):
                te.compute((8,), lambda i: te.sum(a[k], axis=k) + 1)

    def test_lanes_of_processors(self):
        from tvm.topi.x86.utils import get_simd_32bit_lanes, target_has_vnni
        for mcpu, lanes in (("skylake-avx512", 16), ("core-avx2", 8), ("nehalem", 4)):
            with tvm.target.Target(f"llvm -mcpu={mcpu}"):
                self.assertEqual(get_simd_32bit_lanes(), lanes)
        self.assertEqual((target_has_vnni("cascadelake"), target_has_vnni("haswell")), (True, False))


if __name__ == "__main__":
    unittest.main()
