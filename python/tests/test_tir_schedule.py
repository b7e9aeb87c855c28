# SPDX-License-Identifier: Apache-2.0
"""tir.Schedule: steps on blocks and loops, their trace, and scripts that are read again. What is accepted computes what the function did."""
import random
import unittest

import numpy as np

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright
import tvm
from tvm import te, tir
from tvm.script import tir as T


@T.prim_func
def relu_of_product(A: T.Buffer[(60, 40), "float32"], B: T.Buffer[(40, 32), "float32"], D: T.Buffer[(60, 32), "float32"]) -> None:
    C = T.alloc_buffer((60, 32), dtype="float32")
    for i, j, k in T.grid(60, 32, 40):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(60, 32):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


def run(function, *arrays):
    """The last array is what comes out."""
    out = tvm.nd.array(np.full_like(arrays[-1], -99))
    tvm.build(function, target="llvm")(*(tvm.nd.array(a) for a in arrays[:-1]), out)
    return out.numpy()


def read_again(function):
    return tvm.script.from_source(function.script())


class Steps(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.a, self.b = rng.standard_normal((60, 40)).astype("float32"), rng.standard_normal((40, 32)).astype("float32")
        self.want = np.maximum(self.a @ self.b, 0)

    def check(self, sch):
        got = run(sch.mod, self.a, self.b, self.want)
        np.testing.assert_allclose(got, self.want, rtol=1e-4, atol=1e-4)
        again = read_again(sch.mod)
        tvm.ir.assert_structural_equal(sch.mod, again)
        np.testing.assert_array_equal(run(again, self.a, self.b, self.want), got)

    def test_a_product_in_tiles(self):
        sch = tir.Schedule(relu_of_product)
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        io, ii = sch.split(i, factors=[None, 8])
        jo, ji = sch.split(j, factors=[2, None])
        sch.reorder(io, jo, k, ii, ji)
        sch.reverse_compute_at(sch.get_block("D"), jo)
        start = sch.decompose_reduction(block, k)
        sch.vectorize(ji)
        sch.parallel(io)
        sch.unroll(sch.get_loops(start)[-1])
        self.assertEqual([sch.get(x)._kind for x in (block, start, io)], ["Block", "Block", "For"])
        self.check(sch)
        text = sch.mod.script()
        for part in ("T.parallel(8)", "T.vectorized(16)", 'T.block("C_update")', 'T.block("C_init")', "T.where("):
            self.assertIn(part, text)

    def test_steps_one_by_one(self):
        def steps(f):
            sch = tir.Schedule(relu_of_product)
            f(sch, sch.get_block("C"), sch.get_block("D"))
            self.check(sch)
            return sch
        steps(lambda s, c, d: s.parallel(s.fuse(*s.get_loops(c)[:2])))
        steps(lambda s, c, d: s.compute_at(c, s.get_loops(d)[0]))
        steps(lambda s, c, d: s.compute_at(c, s.split(s.get_loops(d)[1], [None, 7])[0]))
        steps(lambda s, c, d: s.reverse_compute_at(d, s.get_loops(c)[0]))
        steps(lambda s, c, d: s.cache_read(c, 1, "local"))
        steps(lambda s, c, d: s.set_scope(c, 0, "shared"))
        steps(lambda s, c, d: (s.annotate(s.get_loops(d)[0], "pragma_note", 3), s.annotate(d, "of", "a block"), s.storage_align(c, 0, -2, 32, 8)))

        def local_tile(s, c, d):
            copy = s.cache_write(c, 0, "local")
            s.reverse_compute_at(copy, s.get_loops(c)[0])
        steps(local_tile)

        def factored(s, c, d):
            ko, ki = s.split(s.get_loops(c)[2], [None, 4])
            partial = s.rfactor(ki, 0)
            s.reorder(*reversed(s.get_loops(partial)[:2]))
        sch = steps(factored)
        self.assertIn("C_rf", sch.mod.script())
        with self.assertRaisesRegex(tir.ScheduleError, "no annotation"):
            sch.unannotate(sch.get_block("D"), "nothing")

    def test_inlining(self):
        n = te.var("n")
        x = te.placeholder((n, 5), name="X")
        y = te.compute((n, 5), lambda i, j: x[i, j] + 1, name="Y")
        z = te.compute((n, 5), lambda i, j: y[i, 4 - j] * 2, name="Z")
        w = te.compute((n, 5), lambda i, j: te.exp(z[i, j]), name="W")
        sch = tir.Schedule(te.create_prim_func([x, w]))
        self.assertEqual([str(b) for b in sch.get_producers(sch.get_block("Z"))], ["block(Y)"])
        self.assertEqual([str(b) for b in sch.get_child_blocks(sch.get_loops(sch.get_block("Z"))[0])], ["block(Z)"])
        self.assertEqual([str(b) for b in sch.get_consumers(sch.get_block("Z"))], ["block(W)"])
        sch.compute_inline(sch.get_block("Y"))
        sch.reverse_compute_inline(sch.get_block("W"))
        self.assertEqual(sch.mod.script().count("T.block("), 1)
        data = np.random.rand(7, 5).astype("float32")
        for mod in (sch.mod, read_again(sch.mod)):
            np.testing.assert_allclose(run(mod, data, data), np.exp((data[:, ::-1] + 1) * 2), rtol=1e-5)

    def test_trace(self):
        def schedule(seed=None):
            return tir.Schedule(relu_of_product, seed=seed)
        sch = schedule(7)
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        tiles = sch.sample_perfect_tile(i, n=3, max_innermost_factor=10)
        self.assertEqual(np.prod(tiles), 60)
        parts = sch.split(i, factors=tiles)
        width = sch.sample_categorical([4, 8, 16], [0.2, 0.3, 0.5])
        jo, ji = sch.split(j, factors=[None, width])
        sch.reorder(parts[0], jo, parts[1], parts[2], ji, k)
        sch.decompose_reduction(block, jo)
        sch.enter_postproc()
        sch.parallel(parts[0])
        text = str(sch.trace)
        self.assertIn("b0 = sch.get_block(name='C')", text)
        self.assertIn("decision=[", text)
        self.assertEqual(str(schedule(7).sample_perfect_tile(schedule(7).get_loops(schedule(7).get_block("C"))[0], 3, 10)), str(tiles))
        as_text = schedule()
        exec(text, {"sch": as_text})
        as_steps, as_json = schedule(), schedule()
        sch.trace.apply_to_schedule(as_steps)
        import json
        tir.Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), as_json)
        for other in (as_text, as_steps, as_json, sch.copy()):
            tvm.ir.assert_structural_equal(sch.mod, other.mod)
        step = next(s for s in sch.trace.insts if s.kind == "SamplePerfectTile")
        changed = schedule()
        sch.trace.with_decision(step, [5, 4, 3]).apply_to_schedule(changed, remove_postproc=True)
        self.assertNotIn("parallel", str(changed.trace))
        self.assertEqual(changed.trace.insts[2].decision, [5, 4, 3])
        self.check(changed)
        self.assertLess(len(tir.Trace(sch.trace.insts[:2]).simplified(True)), 2)
        with self.assertRaisesRegex(tir.ScheduleError, "no trace of steps"):
            tir.Trace.apply_json_to_schedule([[["Nothing", {}, []]], []], schedule())

    def test_threads_do_not_meet(self):
        """What two iterations of a parallel loop compute, each for itself, is a sum that one of them would start again."""
        n, m = 64, 3000
        a = te.placeholder((n + 1, m), name="A")
        k = te.reduce_axis((0, m), "k")
        s = te.compute((n + 1,), lambda i: te.sum(a[i, k], axis=k), name="S")
        c = te.compute((n,), lambda i: s[i] + s[i + 1], name="C")
        sch = tir.Schedule(te.create_prim_func([a, c]))
        (i,) = sch.get_loops(sch.get_block("C"))
        sch.compute_at(sch.get_block("S"), i)
        sch.parallel(i)
        data = np.random.randint(-5, 5, (n + 1, m)).astype("float32")
        want, out, given = data.sum(1)[:-1] + data.sum(1)[1:], tvm.nd.empty((n,)), tvm.nd.array(data)
        built = tvm.build(sch.mod, target="llvm")
        for _ in range(50):
            built(given, out)
            np.testing.assert_array_equal(out.numpy(), want)

    def test_free_sizes(self):
        @T.prim_func
        def transposed(a: T.handle, b: T.handle, n: T.int32, m: T.int32) -> None:
            A = T.match_buffer(a, (n, m))
            B = T.match_buffer(b, (m, n))
            for i, j in T.grid(m, n):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vj, vi]
        sch = tir.Schedule(transposed)
        i, j = sch.get_loops(sch.get_block("B"))
        io, ii = sch.split(i, factors=[None, 4])
        sch.reorder(io, j, ii)
        sch.parallel(sch.fuse(io, j))
        data, out = np.random.rand(9, 7).astype("float32"), tvm.nd.empty((7, 9))
        again = read_again(sch.mod)
        tvm.ir.assert_structural_equal(again, sch.mod)
        tvm.build(again, target="llvm")(tvm.nd.array(data), out, 9, 7)
        np.testing.assert_array_equal(out.numpy(), data.T)

    def test_refusals(self):
        sch = tir.Schedule(relu_of_product)
        c, d = sch.get_block("C"), sch.get_block("D")
        i, j, k = sch.get_loops(c)
        before = sch.mod.script()
        for step, reason in ((lambda: sch.get_block("E"), "no block 'E'"), (lambda: sch.parallel(k), "runs over its reduction"), (lambda: sch.vectorize(k), "runs over its reduction"),
                             (lambda: sch.split(i, [2, 3]), "6 iterations of 60"), (lambda: sch.split(i, [None, None]), "one factor"), (lambda: sch.split(i, [0, 60]), "1 or more"), (lambda: sch.split(i, [65536, 65537]), "65537 is no factor"),
                             (lambda: sch.fuse(i, k), "not directly in"), (lambda: sch.reorder(i, i), "twice"), (lambda: sch.reorder(i, sch.get_loops(d)[0]), "different nests"),
                             (lambda: sch.compute_inline(c), "reduction"), (lambda: sch.compute_inline(d), "argument"), (lambda: sch.compute_at(d, i), "argument"),
                             (lambda: sch.reverse_compute_at(d, k), "not finished"), (lambda: sch.decompose_reduction(d, sch.get_loops(d)[0]), "no reduction"),
                             (lambda: sch.rfactor(i, 0), "no loop of its reduction"), (lambda: sch.cache_read(c, 5, "global"), "no number 5"), (lambda: sch.cache_write(c, 1, "global"), "no number 1"),
                             (lambda: sch.set_scope(d, 0, "shared"), "argument"), (lambda: sch.sample_perfect_tile(i, 2, decision=[7, 9]), "no 2 factors"),
                             (lambda: sch.sample_categorical([1], []), "probabilities")):
            with self.assertRaisesRegex(tir.ScheduleError, reason):
                step()
        self.assertEqual(sch.mod.script(), before)
        with self.assertRaisesRegex(TypeError, "a loop is what"):
            sch.split(c, [None, 2])
        with self.assertRaisesRegex(AttributeError, "has no 'blockise'"):
            sch.blockise(c)
        sch.split(i, [None, 4])
        with self.assertRaisesRegex(tir.ScheduleError, "not there any more"):
            sch.parallel(i)


def chain(rng):
    """A few computations one after another, and what numpy makes of them."""
    rows, columns = rng.choice([4, 7, 12]), rng.choice([3, 8, 10])
    inputs = [te.placeholder((rows, columns), "int32", name=n) for n in "AB"]
    tensors, wants = list(inputs), [np.random.randint(-9, 9, (rows, columns)).astype("int32") for _ in inputs]
    data = list(wants)
    for step in range(rng.randint(1, 3)):
        at, name = rng.randrange(len(tensors)), f"T{step}"
        x, v, y, u = tensors[-1], wants[-1], tensors[at], wants[at]
        kind = rng.randrange(5)
        if kind == 0:
            tensors.append(te.compute((rows, columns), lambda i, j: x[i, j] * 3 - y[i, j], name=name))
            wants.append(v * 3 - u)
        elif kind == 1:
            tensors.append(te.compute((rows, columns), lambda i, j: te.if_then_else(te.all(i > 0, j < columns - 1), x[i - 1, j + 1], y[i, j]) + te.max(x[i, j], 2), name=name))
            moved = u.copy()
            moved[1:, :-1] = v[:-1, 1:]
            wants.append(moved + np.maximum(v, 2))
        elif kind == 2:
            k = te.reduce_axis((0, columns), "k")
            tensors.append(te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * y[i, j], axis=k), name=name))
            wants.append((v.sum(1, keepdims=True) * u).astype("int32"))
        elif kind == 3:
            k = te.reduce_axis((0, rows), "k")
            tensors.append(te.compute((rows, columns), lambda i, j: te.max(x[k, j] + i, axis=k), name=name))
            wants.append(v.max(0, keepdims=True) + np.arange(rows, dtype="int32")[:, None])
        else:
            tensors.append(te.compute((rows, columns), lambda i, j: x[rows - 1 - i, tvm.tir.indexmod(j * 2, columns)] // 3, name=name))
            wants.append(v[::-1][:, np.arange(columns) * 2 % columns] // 3)
    return [*inputs, tensors[-1]], [*data, wants[-1]]


def random_step(rng, sch):
    names = []
    tvm.tir.stmt_functor.post_order_visit(next(iter(sch.mod.functions.values())).body, lambda s: names.append(s._fields[0]) if getattr(s, "_kind", "") == "Block" and s._fields[1] else None)
    block, other = (sch.get_block(rng.choice(names)) for _ in range(2))
    loops, others = sch.get_loops(block), sch.get_loops(other)
    loop = rng.choice(loops)
    rng.choice([lambda: sch.split(loop, [None, rng.randint(1, 5)]), lambda: sch.split(loop, [rng.randint(1, 3), None, 2]), lambda: sch.fuse(*loops[:2]), lambda: sch.reorder(*rng.sample(loops, len(loops))),
                lambda: sch.parallel(loop), lambda: sch.vectorize(loop), lambda: sch.unroll(loop), lambda: sch.compute_at(block, rng.choice(others)),
                lambda: sch.reverse_compute_at(block, rng.choice(others)), lambda: sch.compute_inline(block), lambda: sch.reverse_compute_inline(block),
                lambda: sch.cache_read(block, 0, "local"), lambda: sch.cache_write(block, 0, "global"), lambda: sch.decompose_reduction(block, loop), lambda: sch.rfactor(loop, rng.choice([0, -1]))])()


@T.prim_func
def tile_product(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), offset_factor=1)
    B = T.match_buffer(b, (16, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 16), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:16], A[0:4, 0:8], B[0:16, 0:8])
        T.writes(C[0:4, 0:16])
        for i, j, k in T.grid(4, 16, 8):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def tile_product_by_rows(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), offset_factor=1)
    B = T.match_buffer(b, (16, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 16), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:16], A[0:4, 0:8], B[0:16, 0:8])
        T.writes(C[0:4, 0:16])
        for k, i, j in T.grid(8, 4, 16):
            C[i, j] = C[i, j] + A[i, k] * B[j, k]


tir.TensorIntrin.register("walk.tile_product", tile_product, tile_product_by_rows)


def product(batch=None, transposed=True):
    front = [] if batch is None else [batch]
    n = len(front)
    a, b = te.placeholder((*front, 12, 24), name="A"), te.placeholder((*front, 32, 24) if transposed else (*front, 24, 32), name="B")
    k = te.reduce_axis((0, 24), "k")
    c = te.compute((*front, 12, 32), lambda *at: te.sum(a(*at[:n], at[n], k) * (b(*at[:n], at[-1], k) if transposed else b(*at[:n], k, at[-1])), axis=k), name="C")
    return te.create_prim_func([a, b, c])


class Intrinsics(unittest.TestCase):
    def tiled(self, function):
        """The schedule in tiles of 4 x 16 x 8, with the loops of a tile; the start of the sums in front."""
        sch = tir.Schedule(function)
        block = sch.get_block("C")
        loops = sch.get_loops(block)
        (io, ii), (jo, ji), (ko, ki) = (sch.split(loop, [None, f]) for loop, f in zip(loops[-3:], (4, 16, 8)))
        sch.reorder(*loops[:-3], io, jo, ko, ii, ji, ki)
        sch.decompose_reduction(block, ko)
        return sch, block, (io, jo, ko), (ii, ji, ki)

    def check(self, sch, batch=None):
        r = np.random.default_rng(2)
        front = () if batch is None else (batch,)
        a, b = r.standard_normal((*front, 12, 24)).astype("float32"), r.standard_normal((*front, 32, 24)).astype("float32")
        want = np.einsum("...ik,...jk->...ij", a, b)
        np.testing.assert_allclose(run(sch.mod, a, b, want), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(run(read_again(sch.mod), a, b, want), want, rtol=1e-4, atol=1e-5)

    def test_a_tile_is_replaced(self):
        for batch in (None, 3):
            for unit in (False, True):
                with self.subTest(batch=batch, unit=unit):
                    sch, _, outer, (ii, _, _) = self.tiled(product(batch))
                    sch.parallel(outer[0])
                    sch.tensorize(sch.blockize(ii) if unit else ii, "walk.tile_product")
                    self.assertIn("walk.tile_product", sch.mod.script())
                    self.check(sch, batch)
                    again = tir.Schedule(product(batch))
                    sch.trace.apply_to_schedule(again)
                    self.assertEqual(again.mod.script(), sch.mod.script())

    def test_what_is_no_tile_is_refused(self):
        sch, block, (io, jo, ko), (ii, ji, ki) = self.tiled(product())
        for loop, reason in ((ji, "3 loops, and there are 2"), (ko, "3 loops, and there are 4")):
            with self.assertRaisesRegex(tir.ScheduleError, reason):
                sch.tensorize(loop, "walk.tile_product")
        with self.assertRaisesRegex(tir.ScheduleError, "is not registered"):
            sch.tensorize(ii, "walk.nothing")
        swapped = self.tiled(product())[0]
        loops = swapped.get_loops(swapped.get_block("C_update"))
        swapped.reorder(loops[4], loops[3])
        with self.assertRaisesRegex(tir.ScheduleError, "has 16 iterations, and the intrinsic's 4"):
            swapped.tensorize(swapped.get_loops(swapped.get_block("C_update"))[3], "walk.tile_product")
        other, _, _, (first, _, _) = self.tiled(product(transposed=False))
        with self.assertRaisesRegex(tir.ScheduleError, "does not follow the loops"):
            other.tensorize(first, "walk.tile_product")
        whole = tir.Schedule(product())
        with self.assertRaisesRegex(tir.ScheduleError, "decompose_reduction"):
            whole.tensorize(whole.get_loops(whole.get_block("C"))[0], "walk.tile_product")
        with self.assertRaisesRegex(ValueError, "already been registered"):
            tir.TensorIntrin.register("walk.tile_product", tile_product, tile_product_by_rows)
        sch.tensorize(ii, "walk.tile_product")
        for step in (lambda: sch.parallel(io), lambda: sch.reorder(jo, io), lambda: sch.tensorize(io, "walk.tile_product")):
            with self.assertRaises(tir.ScheduleError):
                step()
        self.check(sch)

    def test_steps_around_it_keep_the_values(self):
        """Random steps before and after: what is accepted computes the product."""
        replaced = 0
        for seed in range(24):
            rng = random.Random(seed)
            sch, _, outer, inner = self.tiled(product())
            loops = [*outer, *inner]
            for _ in range(rng.randint(0, 2)):
                steps = [lambda: sch.cache_read(sch.get_block("C_update"), rng.randint(0, 1), "local"), lambda: sch.parallel(rng.choice(loops)), lambda: sch.unroll(rng.choice(outer)),
                         lambda: sch.split(rng.choice(loops), [None, 2])]
                try:
                    rng.choice(steps)()
                except tir.ScheduleError:
                    pass
            for step in (lambda: sch.tensorize(inner[0], "walk.tile_product"), lambda: sch.parallel(outer[0]), lambda: sch.compute_inline("A_local"), lambda: sch.compute_at("A_local", outer[1]),
                         lambda: sch.reverse_compute_at("C_update", outer[0]), lambda: sch.cache_write("C_init", 0, "global"), lambda: sch.fuse(outer[0], outer[1])):
                try:
                    step()
                except tir.ScheduleError:
                    continue
                replaced += "walk.tile_product" in sch.mod.script()
            with self.subTest(seed=seed, script=sch.mod.script()):
                self.check(sch)
        self.assertGreater(replaced, 10)


class RandomSchedules(unittest.TestCase):
    def test_equal_values_and_scripts(self):
        accepted = refused = 0
        for seed in range(60):
            rng = random.Random(seed)
            np.random.seed(seed)
            tensors, data = chain(rng)
            sch = tir.Schedule(te.create_prim_func(tensors))
            for _ in range(rng.randint(1, 9)):
                try:
                    random_step(rng, sch)
                    accepted += 1
                except tir.ScheduleError:
                    refused += 1
            again = read_again(sch.mod)
            tvm.ir.assert_structural_equal(sch.mod, again)
            self.assertEqual(again.script(), sch.mod.script())
            if seed % 4:
                continue  # machine code for some of them: the interpreter runs many more (tests/te)
            with self.subTest(seed=seed, script=sch.mod.script()):
                np.testing.assert_array_equal(run(again, *data), data[-1])
            replayed = tir.Schedule(te.create_prim_func(tensors))
            sch.trace.apply_to_schedule(replayed)
            self.assertEqual(replayed.mod.script(), sch.mod.script())
        self.assertGreater(accepted, refused / 2)
        self.assertGreater(refused, 0)


if __name__ == "__main__":
    unittest.main()
