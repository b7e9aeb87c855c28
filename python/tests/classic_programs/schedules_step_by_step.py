# SPDX-License-Identifier: Apache-2.0
"""What the classic tutorials of tensor expressions show, step by step: scans, intrinsics, tensorize, schedule primitives, remote functions."""
import os
import tempfile

import numpy as np
import tvm
import tvm.testing
from tvm import autotvm, relay, rpc, te

from harness import numbers, program


def run(s, tensors, *arrays, target="llvm"):
    out = [tvm.nd.array(np.zeros([int(d) for d in t.shape], t.dtype)) for t in tensors[len(arrays):]]
    tvm.build(s, tensors, target)(*(tvm.nd.array(a) for a in arrays), *out)
    return out[0].numpy()


@program
def a_scan_of_free_sizes():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    out = tvm.te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(out.op)
    for stage, parts in ((init, 8), (update, 8)):
        first, second = s[stage].split(stage.op.axis[1], factor=parts)
        s[stage].unroll(second)
    x = numbers(9, 21)
    result = tvm.nd.array(np.zeros((9, 21), "float32"))
    tvm.build(s, [X, out], "llvm", name="cumsum")(tvm.nd.array(x), result)
    tvm.testing.assert_allclose(result.numpy(), np.cumsum(x, axis=0), rtol=1e-5)


@program
def a_scan_of_two_stages_and_one_of_two_states():
    m, n = 12, 10
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    step = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="step")
    update = te.compute((m, n), lambda t, i: step[t, i] + X[t, i], name="update")
    out = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(out.op)
    s[step].compute_at(s[update], s[update].split(update.op.axis[1], factor=4)[0])
    x = numbers(m, n)
    wanted = x.copy()
    for t in range(1, m):
        wanted[t] = 2 * wanted[t - 1] + x[t]
    tvm.testing.assert_allclose(run(s, [X, out], x), wanted, rtol=1e-5)
    first, second = te.placeholder((m, n)), te.placeholder((m, 3))
    ones = te.compute((1, 3), lambda _, i: tvm.tir.const(1, "float32"))
    grown = te.compute((m, n), lambda t, i: first[t - 1, i] + X[t, i])
    sums = te.compute((m, 3), lambda t, i: second[t - 1, i] + first[t - 1, 0])
    one, other = te.scan([init, ones], [grown, sums], [first, second], inputs=[X])
    wanted = np.cumsum(x, axis=0)
    got = run(te.create_schedule(one.op), [X, one, other], x)
    tvm.testing.assert_allclose(got, wanted, rtol=1e-5)


@program
def functions_of_the_processor():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: te.exp(A[i]), name="B")
    C = te.compute(A.shape, lambda i: tvm.tir.call_pure_extern("float32", "expf", A[i]), name="C")
    D = te.compute(A.shape, lambda i: tvm.tir.call_intrin("float32", "tir.exp", A[i]), name="D")
    x = numbers(33)
    for out in (B, C, D):
        s = te.create_schedule(out.op)
        s[out].split(out.op.axis[0], factor=8)
        result = tvm.nd.array(np.zeros(33, "float32"))
        tvm.build(s, [A, out], "llvm")(tvm.nd.array(x), result)
        tvm.testing.assert_allclose(result.numpy(), np.exp(x), rtol=1e-5)


@program("whole", "accumulated")
def a_row_times_a_matrix(kind):
    M, N, K, width = 8, 32, 16, 8
    A, B = te.placeholder((M, K), name="A"), te.placeholder((N, K), name="B")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    a, b = te.placeholder((4,), name="a"), te.placeholder((width, 4), name="b")
    r = te.reduce_axis((0, 4), name="r")
    c = te.compute((width,), lambda i: te.sum(a[r] * b[i, r], axis=r), name="c")

    def code(ins, outs):
        def body(clear):
            ib = tvm.tir.ir_builder.create()
            out, x, y = ib.buffer_ptr(outs[0]), ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
            with ib.for_range(0, width, name="row") as row:
                if clear:
                    out[row] = 0.0
                with ib.for_range(0, 4, name="column") as column:
                    out[row] = out[row] + x[column] * y[row * 4 + column]
            return ib.get()

        def reset():
            ib = tvm.tir.ir_builder.create()
            out = ib.buffer_ptr(outs[0])
            with ib.for_range(0, width, name="row") as row:
                out[row] = 0.0
            return ib.get()
        return body(True), reset(), body(False)
    buffers = {t: tvm.tir.decl_buffer(t.shape, t.dtype, name=t.op.name, offset_factor=1, strides=[te.var("s"), 1] if len(t.shape) == 2 else [1]) for t in (a, b, c)}
    if kind == "whole":
        buffers[b] = tvm.tir.decl_buffer(b.shape, b.dtype, name="b", offset_factor=1, strides=[4, 1])
    B_packed = te.compute((N // width, K // 4, width, 4), lambda n, o, i, q: B[n * width + i, o * 4 + q], name="B_packed")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B_packed[j // width, k // 4, j % width, k % 4], axis=k), name="C") if kind == "whole" else C
    if kind == "accumulated":
        def plain(ins, outs):
            ib = tvm.tir.ir_builder.create()
            out, x, y = outs[0], ins[0], ins[1]
            with ib.for_range(0, width, name="row") as row:
                o, p = ib.buffer_ptr(out), ib.buffer_ptr(x)
                q = ib.buffer_ptr(y)
                total = ib.allocate("float32", (1,), name="total", scope="local")
                total[0] = 0.0
                with ib.for_range(0, 4, name="column") as column:
                    total[0] += p[column] * q[row, column]
                o[row] = o[row] + total[0]
            update = ib.get()
            ib = tvm.tir.ir_builder.create()
            with ib.for_range(0, width, name="row") as row:
                ib.buffer_ptr(out)[row] = 0.0
            return None, ib.get(), update
        intrinsic = te.decl_tensor_intrin(c.op, plain, binds=buffers)
    else:
        intrinsic = te.decl_tensor_intrin(c.op, code, binds=buffers)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, factor=width)
    ko, ki = s[C].split(k, factor=4)
    s[C].reorder(i, jo, ko, ji, ki)
    s[C].tensorize(ji, intrinsic)
    x, y = numbers(M, K), numbers(N, K)
    tvm.testing.assert_allclose(run(s, [A, B, C], x, y), x @ y.T, rtol=1e-4, atol=1e-5)


@program
def primitives_one_after_the_other():
    A, B = te.placeholder((24, 30), name="A"), te.placeholder((24, 30), name="B")
    x, y = numbers(24, 30), numbers(24, 30, seed=9)
    C = te.compute((24, 30), lambda i, j: A[i, j] * B[i, j], name="C")
    D = te.compute((24, 30), lambda i, j: C[i, j] + 1, name="D")

    def split(s):
        s[D].split(D.op.axis[0], nparts=5)

    def tile(s):
        xo, yo, xi, yi = s[D].tile(*D.op.axis, x_factor=10, y_factor=5)
        s[D].fuse(xi, yi)

    def at(s):
        s[C].compute_at(s[D], D.op.axis[0])
        s[D].vectorize(s[D].split(D.op.axis[1], factor=8)[1])

    def inline(s):
        s[C].compute_inline()
        s[D].parallel(D.op.axis[0])

    def root(s):
        at(s)
        s[C].compute_root()

    def cached(s):
        here = s.cache_read(A, "local", [C])
        there = s.cache_write(D, "global")
        s[here].compute_at(s[C], C.op.axis[0])
        s[there].compute_at(s[D], D.op.axis[0])
    for change in (split, tile, at, inline, root, cached):
        s = te.create_schedule(D.op)
        change(s)
        tvm.testing.assert_allclose(run(s, [A, B, D], x, y), x * y + 1, rtol=1e-6)


@program
def sums_in_parts():
    n, m = 16, 128
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    s[B].split(s[B].op.axis[0], factor=4)
    s[BF].compute_at(s[B], s[B].leaf_iter_vars[0])
    x = numbers(n, m)
    tvm.testing.assert_allclose(run(s, [A, B], x), x.sum(axis=1), rtol=1e-4, atol=1e-5)
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
    P = te.compute((n,), lambda i: product(A[i, k], axis=k), name="P")
    tvm.testing.assert_allclose(run(te.create_schedule(P.op), [A, P], x), x.prod(axis=1), rtol=1e-4, atol=1e-12)


@program
def a_function_on_another_device():
    n = 1024
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    f = tvm.build(te.create_schedule(B.op), [A, B], target="llvm", name="add_one")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lib.tar")
        f.export_library(path)
        remote = rpc.LocalSession()
        remote.upload(path)
        g = remote.load_module("lib.tar")
        device = remote.cpu()
        a, b = tvm.nd.array(numbers(n), device), tvm.nd.array(np.zeros(n, "float32"), device)
        g(a, b)
        np.testing.assert_array_equal(b.numpy(), a.numpy() + 1)
        assert g.time_evaluator(g.entry_name, device, number=3)(a, b).mean > 0


@program
def blocks_of_a_product():
    n, block = 64, 16
    k = te.reduce_axis((0, n), "k")
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    packed = te.compute((n // block, n, block), lambda bigN, k, littleN: B[k, bigN * block + littleN], name="packedB")
    C = te.compute((n, n), lambda m, q: te.sum(A[m, k] * packed[q // block, k, tvm.tir.indexmod(q, block)], axis=k), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], block, block)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    bigN, _, littleN = s[packed].op.axis
    s[packed].vectorize(littleN)
    s[packed].parallel(bigN)
    x, y = numbers(n, n), numbers(n, n, seed=8)
    tvm.testing.assert_allclose(run(s, [A, B, C], x, y), x @ y, rtol=1e-3, atol=1e-4)


@program
def a_network_tuned_here():
    x = relay.var("x", shape=(1, 8, 12, 12))
    y = relay.nn.relu(relay.nn.conv2d(x, relay.var("w", shape=(16, 8, 3, 3)), padding=(1, 1)))
    mod, params = tvm.IRModule.from_expr(relay.Function([x, *[v for v in relay.analysis.free_vars(y) if v.name_hint == "w"]], y)), {"w": numbers(16, 8, 3, 3)}
    tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params=params, ops=(relay.op.get("nn.conv2d"),))
    assert tasks and all(len(t.config_space) > 1 for t in tasks)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "tuned.log")
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=1, min_repeat_ms=0))
        for task in tasks:
            autotvm.tuner.RandomTuner(task).tune(n_trial=3, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)])
        with autotvm.apply_history_best(log), tvm.transform.PassContext(opt_level=3):
            lib = relay.build(mod, target="llvm", params=params)
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    module.set_input("x", numbers(1, 8, 12, 12))
    module.run()
    assert module.get_output(0).shape == (1, 16, 12, 12)
