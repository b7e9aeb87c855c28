# SPDX-License-Identifier: Apache-2.0
"""Hybrid scripts: each computes the same as Python on arrays, as loops, and as the text of its schedule once more."""
import os
import tempfile

import numpy as np
import tvm
import tvm.testing
from tvm import te, tir
from tvm.te.hybrid import script

from harness import program, refusing

# ruff: noqa: F821


def size_of(value, sizes):
    if isinstance(value, tvm.ir.PrimExpr) and not hasattr(value, "value"):
        value = tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(value, sizes))
    return int(getattr(value, "value", value))


def check(function, arguments, sizes=None, outputs=None):
    """The script's schedule as a module, its inputs and outputs; whose values are those of arrays."""
    rng = np.random.default_rng(1)
    known = {v: sizes[v.name] for v in arguments if isinstance(v, tir.Var)}
    if outputs is None:
        made = function(*(tvm.runtime.convert(a) if isinstance(a, list) else a for a in arguments))
        outputs = made if isinstance(made, list) else [made]
    plain, given, tensors = [], [], []
    for a in arguments:
        if isinstance(a, te.Tensor):
            shape = [size_of(d, known) for d in a.shape]
            plain.append(rng.standard_normal(shape).astype(a.dtype) if "float" in a.dtype else rng.integers(0, 100, shape).astype(a.dtype))
            given.append(tvm.nd.array(plain[-1]))
        elif isinstance(a, tir.Var):
            plain.append(known[a])
            given.append(known[a])
        else:
            plain.append(size_of(a, known) if not isinstance(a, list) else a)
            continue
        tensors.append(a)
    schedule = te.create_schedule([o.op for o in outputs])
    library = tvm.build(schedule, [*tensors, *outputs], target="llvm")
    results = [tvm.nd.array(np.zeros([size_of(d, known) for d in o.shape], o.dtype)) for o in outputs]
    library(*given, *results)
    wanted = function(*plain)
    for got, want in zip(results, wanted if isinstance(wanted, (tuple, list)) else [wanted]):
        tvm.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    return te.hybrid.build(schedule, tensors, outputs), tensors, outputs


def twice(function, arguments, sizes=None):
    module, inputs, outputs = check(function, arguments, sizes)
    check(module, inputs, sizes, outputs)
    return module, inputs, outputs


@script
def outer_product(n, m, a, b):
    """A docstring is skipped."""
    c = output_tensor((n, m), a.dtype)
    for i in range(n):
        for j in range(m):
            assert i < n and j < m, "index out of range!"
            c[i, j] = a[i] * b[j]
    return c


@program
def sizes_and_an_assertion():
    n, m = te.size_var("n"), te.size_var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    body = outer_product(n, m, a, b).op.body
    assert isinstance(body, tir.For) and body.loop_var.name == "i" and body.min.value == 0 and body.extent.name == "n"
    assert isinstance(body.body, tir.For) and body.body.extent.name == "m"
    module, inputs, outputs = check(outer_product, [n, m, a, b], {"n": 99, "m": 101})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{module.name}.py")
        module.save(path)
        loaded = te.hybrid.HybridModule()
        loaded.load(path)
        check(loaded, inputs, {"n": 99, "m": 101}, outputs)


@program
def an_assertion_that_may_fail():
    @script
    def wrong(n, a):
        b = output_tensor((n,), a.dtype)
        for i in range(n):
            assert i < 7
            b[i] = a[i]
        return b
    n = te.size_var("n")
    with refusing(ValueError, "'i < 7' is not proven"):
        wrong(n, te.placeholder((n,), name="a"))


@program
def a_running_sum():
    @script
    def window(n, a):
        three = 3.0
        b = output_tensor((a.shape[0] - 3,), a.dtype)
        for i in range(a.shape[0] - 3):
            sigma = 0.0
            for j in range(3):
                sigma += a[i + j]
            sigma = sigma / three
            b[i] = sigma
        return b
    n = te.size_var("n")
    twice(window, [n, te.placeholder((n,), "float32", name="a")], {"n": 10})


@program
def kinds_of_loops():
    @script
    def copied(a, b, c):
        d = output_tensor((16,), "int32")
        e = output_tensor((16,), "int32")
        f = output_tensor((16,), "int32")
        for i in parallel(16):
            d[i] = a[i]
        for j in vectorize(16):
            e[j] = b[j]
        for k in unroll(16):
            f[k] = c[k]
        return d, e, f
    inputs = [te.placeholder((16,), name=n, dtype="int32") for n in "abc"]
    body = copied(*inputs)[0].op.body
    assert [s.kind for s in body] == [tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED]
    twice(copied, inputs)


@program
def branches():
    @script
    def two(a):
        b = output_tensor((10,), "int32")
        c = output_tensor((10,), "int32")
        if 1 == 1:
            b[0] = 1
        for i in range(10):
            if i % 2 == 0:
                c[i] = a[i]
            else:
                c[i] = a[i] + 7
            b[i] = -1 if i % 3 == 0 else 0 if i % 3 == 1 else i
        return b, c

    @script
    def three(a):
        b = output_tensor((10,), "int32")
        for i in range(10):
            if i > 2 and i < 7 or i == 9:
                b[i] = 1
            elif not (i < 5):
                b[i] = 2
            else:
                b[i] = a[i]
        return b
    a = te.placeholder((10,), dtype="int32", name="a")
    twice(two, [a])
    twice(three, [a])


@program
def functions_of_numbers():
    @script
    def reals(a):
        b = output_tensor((9,), "float32")
        b[0] = sqrt(abs(a[0]))
        b[1] = log(a[1] * a[1] + 1.0)
        b[2] = exp(a[2])
        b[3] = sigmoid(a[3])
        b[4] = power(abs(a[4]), a[5])
        b[5] = tanh(a[5])
        b[6] = min(a[4], a[5])
        b[7] = max(a[5], a[6])
        b[8] = erf(a[7])
        return b

    @script
    def integers(a):
        b = output_tensor((2,), "int32")
        b[0] = popcount(a[0])
        b[1] = (a[0] << 2 | a[0] & 3) ^ a[0] >> 1
        return b
    twice(reals, [te.placeholder((8,), dtype="float32", name="a")])
    twice(integers, [te.placeholder((1,), dtype="int32", name="a")])


@program
def memory_of_its_own():
    @script
    def blurred(a):
        b = output_tensor((30, 30), "float32")
        for i in range(30):
            rows = allocate((3, 30), "float32")
            for j in range(3):
                for k in range(30):
                    rows[j, k] = a[i + j, k] + a[i + j, k + 1] + a[i + j, k + 2]
            for j in range(30):
                b[i, j] = (rows[0, j] + rows[1, j] + rows[2, j]) / 9.0
        return b
    twice(blurred, [te.placeholder((32, 32), "float32", name="a")])


@program
def between_computations():
    @script
    def ramp(a):
        b = output_tensor((20,), "float32")
        for i in range(20):
            b[i] = a[i] * i
        return b
    a, b = te.placeholder((20,), name="a"), te.placeholder((20,), name="b")
    c = te.compute((20,), lambda x: a[x] + b[x])
    d = ramp(c)
    e = te.compute((20,), lambda x: d[x] + 1.0)
    schedule = te.create_schedule([d.op, e.op])
    x, y = np.random.randn(2, 20).astype("float32")
    for library in (tvm.build(schedule, [a, b, d, e], "llvm"), te.hybrid.build(schedule, [a, b], [d, e])):
        out, last = (tvm.nd.array(np.zeros(20, "float32")) for _ in range(2))
        library(tvm.nd.array(x), tvm.nd.array(y), out, last)
        tvm.testing.assert_allclose(out.numpy(), (x + y) * np.arange(20), 1e-5, 1e-5)
        tvm.testing.assert_allclose(last.numpy(), (x + y) * np.arange(20) + 1, 1e-5, 1e-5)


@program
def a_number_as_argument():
    @script
    def more(a, b):
        c = output_tensor((11,), "int32")
        for i in range(11):
            c[i] = a[i] + b
        return c
    check(more, [te.placeholder((11,), dtype="int32", name="a"), tir.const(11, "int32")])


@program
def values_of_one_script_in_another():
    @script
    def first(a):
        b = output_tensor((16,), "int32")
        c = output_tensor((4, 4), "int32")
        for i in range(16):
            b[i] = a[i] + 2
            c[i // 4, i % 4] = a[i] + 1
        return b, c

    @script
    def second(b, a):
        c = output_tensor((4, 4), "int32")
        for i in range(4):
            for j in range(4):
                c[i, j] = a[i * 4 + j] * b[i, j]
        return c
    a = te.placeholder((16,), "int32", name="a")
    b, c = first(a)
    d = second(c, b)
    x, result = np.arange(16).astype("int32"), tvm.nd.array(np.zeros((4, 4), "int32"))
    tvm.build(te.create_schedule(d.op), [a, d])(tvm.nd.array(x), result)
    left, right = first(x)
    tvm.testing.assert_allclose(result.numpy(), second(right, left))


@program
def a_script_calls_another():
    @script
    def sums(a, b):
        c = outer_product(10, 10, a, b)
        d = output_tensor(c.shape, c.dtype)
        for i in range(10):
            for j in range(10):
                d[i, j] = c[i, j] + i * j
        return d
    twice(sums, [te.placeholder((10,), name="a"), te.placeholder((10,), name="b")])


@program
def comparisons_of_reals():
    @script
    def chosen(a):
        b = output_tensor(a.shape, a.dtype)
        b[0] = 1.2
        for i in range(1, a.shape[0] - 1):
            if a[i] * a[i - 1] < a[i] or a[i] * a[i - 1] < a[i - 1] or i * a[i] == a[i]:
                b[i] = a[i]
            else:
                b[i] = 0.0
        b[a.shape[0] - 1] = 0.0
        return b
    twice(chosen, [te.placeholder((10,), name="a")])


@program
def lists_of_numbers():
    @script
    def sums(a, b):
        c = output_tensor(a.shape, a.dtype)
        d = output_tensor(a.shape, "int32")
        for i in const_range(2):
            for j in const_range(5):
                c[i, j] = float32(int32(a[i, j]) + b[i, j])
        for i in const_range(len(b)):
            for j in const_range(len(b[0])):
                d[i, j] = int32(a[i, j] + b[i, j])
        return c, d
    check(sums, [te.placeholder((2, 5), name="a", dtype="float32"), [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]])


@program
def lists_of_tensors():
    @script
    def added(inputs):
        out = output_tensor((10,), inputs[0].dtype)
        n = len(inputs)
        for i in range(10):
            for j in const_range(n):
                out[i] += inputs[j][i]
        return out
    inputs = [te.placeholder((10,), name=f"t{i}", dtype="float32") for i in range(5)]
    out = added(tvm.runtime.convert(inputs))
    assert len(out.op.inputs) == 5
    values = np.random.randn(5, 10).astype("float32")
    result = tvm.nd.array(np.zeros(10, "float32"))
    tvm.build(te.create_schedule(out.op), [*inputs, out])(*map(tvm.nd.array, values), result)
    tvm.testing.assert_allclose(result.numpy(), values.sum(0), rtol=1e-5, atol=1e-5)


@program
def constants_around_it():
    n = 8
    pair, table, place = (10, n), [[1, 2], [3, n]], 1

    @script
    def more(a):
        c = output_tensor((pair[1],), "int32")
        for i in range(pair[1]):
            c[i] = a[i] + table[1][place]
        return c
    twice(more, [te.placeholder((n,), dtype="int32", name="a")])
