# SPDX-License-Identifier: Apache-2.0
"""Tensors, computations and their schedules: te, as its users schedule and inspect them."""
import numpy as np
import tvm
import tvm.testing
from harness import numbers, program, raises
from tvm import te


def run(s, args, *arrays):
    """The last tensor's values."""
    f = tvm.build(s, args, "llvm")
    shape = [int(d) for d in args[-1].shape]
    out = tvm.nd.array(np.zeros(shape, args[-1].dtype))
    f(*[tvm.nd.array(a) for a in arrays], out)
    return out.numpy()


def product(m=16, n=16, k=16):
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")


@program
def tensors():
    m, n, l = te.size_var("m"), te.size_var("n"), te.size_var("l")
    a, b = te.placeholder((m, l), name="A"), te.placeholder((n, l), name="B")
    t = te.compute((m, n, l), lambda i, j, k: a[i, k] * b[j, k], name="T")
    assert tuple(t.shape) == (m, n, l) and isinstance(a.op, te.PlaceholderOp) and a == a and t.op.output(0) == t and hash(t.op.output(0)) == hash(t)
    assert {t.op.output(0): 1}[t] == 1 and t[0][0][0].astype("float16").dtype == "float16" and "T" in repr(t)
    assert t.op.num_outputs == 1 and list(t.op.input_tensors) == [a, b] and t.ndim == 3 and t.op.name == "T"
    raises(ValueError, lambda: te.compute((m,), lambda i, j: a[i, j]))
    raises(Exception, lambda: te.compute((m,), lambda i: a[i]))


@program
def tensor_of_no_rank():
    a = te.placeholder((), name="a")
    b = te.compute((), lambda: a() + 1.0, name="b")
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    out = tvm.nd.array(np.zeros((), "float32"))
    f(tvm.nd.array(np.array(2.0, "float32")), out)
    assert out.numpy() == 3


@program
def several_results():
    a = te.placeholder((8,), name="a")
    x, y = te.compute((8,), lambda i: (a[i] * 2.0, a[i] * 3.0), name="B")
    assert x.op.num_outputs == 2 and x.value_index == 0 and y.value_index == 1 and x != y
    f = tvm.build(te.create_schedule(x.op), [a, x, y], "llvm")
    p, q = (tvm.nd.array(np.zeros(8, "float32")) for _ in range(2))
    f(tvm.nd.array(np.arange(8, dtype="float32")), p, q)
    assert (q.numpy() == np.arange(8) * 3).all()


@program
def tuples_reduced():
    k = te.reduce_axis((0, 6), "k")
    value, index = te.placeholder((4, 6), name="v"), te.placeholder((4, 6), "int32", name="i")
    best = te.comm_reducer(lambda x, y: (tvm.tir.Select(x[1] >= y[1], x[0], y[0]), tvm.tir.Select(x[1] >= y[1], x[1], y[1])), lambda t0, t1: (tvm.tir.const(-1, t0), tvm.te.min_value(t1)), name="argmax")
    t0, t1 = te.compute((4,), lambda i: best((index[i, k], value[i, k]), axis=k), name="T")
    f = tvm.build(te.create_schedule(t0.op), [index, value, t0, t1], "llvm")
    data = np.random.RandomState(3).permutation(24).reshape(4, 6).astype("float32")
    out = tvm.nd.array(np.zeros(4, "int32")), tvm.nd.array(np.zeros(4, "float32"))
    f(tvm.nd.array(np.tile(np.arange(6, dtype="int32"), (4, 1))), tvm.nd.array(data), *out)
    assert (out[0].numpy() == data.argmax(1)).all() and (out[1].numpy() == data.max(1)).all()


@program
def stages_and_axes():
    a, b, c = product()
    s = te.create_schedule(c.op)
    x, y = c.op.axis
    xo, xi = s[c].split(x, factor=4)
    yo, yi = s[c].split(y, nparts=2)
    assert set(s[c].leaf_iter_vars) == {xo, xi, yo, yi, c.op.reduce_axis[0]}
    s[c].reorder(xo, yo, xi, yi)
    assert list(s[c].leaf_iter_vars)[:4] == [xo, yo, xi, yi]
    fused = s[c].fuse(xo, yo)
    assert fused in list(s[c].leaf_iter_vars) and xo not in list(s[c].leaf_iter_vars)
    assert s[c].op == c.op and len(s.stages) == 3 and len(s.outputs) == 1
    p, q = numbers(16, 16), numbers(16, 16, seed=2)
    tvm.testing.assert_allclose(run(s, [a, b, c], p, q), p @ q, rtol=1e-4)


@program(("split",), ("tile",), ("fuse",), ("vectorize",), ("unroll",), ("parallel",), ("pragma",), ("cache_write",), ("cache_read",), ("rfactor",), ("compute_at",), ("inline",), ("predicate",), ("all",))
def scheduled_products(step):
    m, n, k = 18, 20, 14
    a, b, c = product(m, n, k)
    d = te.compute((m, n), lambda i, j: c[i, j] + 1.0, name="D")
    s = te.create_schedule(d.op)
    x, y = d.op.axis
    if step == "split":
        s[d].split(x, factor=5)
        s[c].split(c.op.reduce_axis[0], factor=3)
    elif step == "tile":
        s[d].tile(x, y, 4, 8)
    elif step == "fuse":
        s[d].fuse(x, y)
        s[c].fuse(*c.op.axis)
    elif step == "vectorize":
        s[d].vectorize(s[d].split(y, factor=4)[1])
        s[c].vectorize(c.op.axis[1])
    elif step == "unroll":
        s[d].unroll(y)
        s[c].unroll(c.op.reduce_axis[0])
    elif step == "parallel":
        s[d].parallel(x)
    elif step == "pragma":
        s[d].pragma(x, "auto_unroll_max_step", 16)
        s[d].pragma(y, "unroll_explicit", True)
    elif step == "cache_write":
        cached = s.cache_write(d, "local")
        s[cached].compute_at(s[d], d.op.axis[0])
    elif step == "cache_read":
        cached = s.cache_read(a, "shared", [c])
        s[cached].compute_at(s[c], c.op.axis[0])
    elif step == "rfactor":
        ko, _ = s[c].split(c.op.reduce_axis[0], factor=7)
        s.rfactor(c, ko)
    elif step == "compute_at":
        s[c].compute_at(s[d], y)
    elif step == "inline":
        e = te.compute((m, n), lambda i, j: d[i, j] * 2.0, name="E")
        s = te.create_schedule(e.op)
        s[d].compute_inline()
        tvm.testing.assert_allclose(run(s, [a, b, e], numbers(m, k), numbers(k, n)), (numbers(m, k) @ numbers(k, n) + 1) * 2, rtol=1e-3, atol=1e-4)
        return
    elif step == "predicate":
        s[d].set_store_predicate(x.var < 18)
    else:
        xo, yo, xi, yi = s[d].tile(x, y, 6, 8)
        s[c].compute_at(s[d], yo)
        ko, ki = s[c].split(c.op.reduce_axis[0], factor=4)
        s[c].reorder(ko, c.op.axis[0], ki, c.op.axis[1])
        s[c].vectorize(c.op.axis[1])
        s[c].unroll(ki)
        s[d].vectorize(yi)
        s[d].parallel(xo)
    p, q = numbers(m, k), numbers(k, n, seed=2)
    tvm.testing.assert_allclose(run(s, [a, b, d], p, q), p @ q + 1, rtol=1e-3, atol=1e-4)


@program(("split with nothing", lambda s, c: s[c].split(c.op.axis[0])), ("split with both", lambda s, c: s[c].split(c.op.axis[0], 2, 2)), ("reorder twice", lambda s, c: s[c].reorder(c.op.axis[0], c.op.axis[0])),
         ("a loop that is gone", lambda s, c: (s[c].split(c.op.axis[0], 2), s[c].split(c.op.axis[0], 2))), ("fuse apart", lambda s, c: s[c].fuse(c.op.axis[0], c.op.reduce_axis[0])),
         ("inline an output", lambda s, c: s[c].compute_inline() or tvm.lower(s, [c])), ("vectorize a reduction", lambda s, c: (s[c].vectorize(c.op.reduce_axis[0]), tvm.lower(s, [c]))),
         ("no stage", lambda s, c: s[te.placeholder((3,))]), ("not a loop", lambda s, c: s[c].split(3, 4)), ("rfactor of no reduction", lambda s, c: s.rfactor(c, c.op.axis[0])),
         ("a scope that is none", lambda s, c: s.cache_write(c, "nowhere")), ("no pragma", lambda s, c: s[c].pragma(c.op.axis[0], "no_such_pragma_at_all") or (_ for _ in ()).throw(ValueError("x"))))
def refused_steps(_, step):
    a, b, c = product()
    raises(Exception, step, te.create_schedule(c.op), c)


@program
def scans():
    m, n = 6, 5
    x = te.placeholder((m, n), name="x")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    out = te.scan(init, update, state, inputs=[x], name="scan")
    assert isinstance(out.op, te.ScanOp) and out.op.scan_axis.var.name
    data = numbers(m, n)
    tvm.testing.assert_allclose(run(te.create_schedule(out.op), [x, out], data), np.cumsum(data, 0), rtol=1e-4, atol=1e-5)


@program
def functions_of_others():
    n = 16
    a = te.placeholder((n,), name="a")

    @tvm.register_func("programs.stages.addone", override=True)
    def addone(x, y):
        y[:] = x.numpy() + 1
    c = te.extern((n,), [a], lambda ins, outs: tvm.tir.call_packed("programs.stages.addone", ins[0], outs[0]), name="C")
    data = numbers(n)
    tvm.testing.assert_allclose(run(te.create_schedule(c.op), [a, c], data), data + 1)


@program
def names_and_tags():
    @tvm.te.tag_scope(tag="conv")
    def convolution(a):
        return te.compute(a.shape, lambda i: a[i] * 2.0)
    a = te.placeholder((4,), name="a")
    assert convolution(a).op.tag == "conv"
    with tvm.te.tag_scope(tag="inner"):
        b = te.compute((4,), lambda i: a[i])
    assert b.op.tag == "inner" and te.compute((4,), lambda i: a[i], tag="mine").op.tag == "mine"
    c = te.compute((4,), lambda i: a[i], attrs={"note": "x"})
    assert c.op.attrs["note"] == "x"
    k = te.reduce_axis((0, 4), name="kk")
    assert k.var.name == "kk" and k.dom.extent == 4 and te.thread_axis("threadIdx.x").thread_tag == "threadIdx.x"


@program
def lowered():
    a = te.placeholder((te.var("n"),), name="A")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    mod = tvm.lower(s, [a, b], name="plus")
    assert isinstance(mod, tvm.IRModule) and "plus" in mod and isinstance(mod["plus"], tvm.tir.PrimFunc) and mod["plus"].attrs["global_symbol"] == "plus"
    lib = tvm.build(mod, target="llvm")
    x, y = tvm.nd.array(np.arange(5, dtype="float32")), tvm.nd.array(np.zeros(5, "float32"))
    lib["plus"](x, y)
    assert (y.numpy() == np.arange(5) + 1).all()
    raises(Exception, tvm.lower, s, [b])
    raises(Exception, tvm.build, 3)


@program
def two_functions_in_a_library():
    a = te.placeholder((4,), name="A")
    b, c = te.compute((4,), lambda i: a[i] + 1.0, name="B"), te.compute((4,), lambda i: a[i] * 2.0, name="C")
    one, two = tvm.lower(te.create_schedule(b.op), [a, b], name="one"), tvm.lower(te.create_schedule(c.op), [a, c], name="two")
    one.update(two)
    lib = tvm.build(one, target="llvm")
    out = tvm.nd.array(np.zeros(4, "float32"))
    lib["two"](tvm.nd.array(np.arange(4, dtype="float32")), out)
    assert (out.numpy() == np.arange(4) * 2).all()


@program
def created_functions():
    a, b, c = product(8, 8, 8)
    func = te.create_prim_func([a, b, c])
    lib = tvm.build(func.with_attr("global_symbol", "main"), target="llvm")
    p, q, out = numbers(8, 8), numbers(8, 8, seed=4), tvm.nd.array(np.zeros((8, 8), "float32"))
    lib(tvm.nd.array(p), tvm.nd.array(q), out)
    tvm.testing.assert_allclose(out.numpy(), p @ q, rtol=1e-4, atol=1e-5)
    assert len(func.params) == 3


@program
def tensorised():
    n = 16
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")

    def intrinsic():
        x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
        z = te.compute((4,), lambda i: x[i] + y[i], name="z")
        buffers = {t: tvm.tir.decl_buffer(t.shape, t.dtype, t.op.name, offset_factor=1, strides=[1]) for t in (x, y, z)}

        def body(ins, outs):
            ib = tvm.tir.ir_builder.create()
            ib.emit(outs[0].vstore(0, ins[0].vload(0, "float32x4") + ins[1].vload(0, "float32x4")))
            return ib.get()
        return te.decl_tensor_intrin(z.op, body, binds=buffers)
    s = te.create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[0], 4)[1], intrinsic())
    p, q = numbers(n), numbers(n, seed=2)
    tvm.testing.assert_allclose(run(s, [a, b, c], p, q), p + q)


@program(("exp", np.exp), ("tanh", np.tanh), ("sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("floor", np.floor), ("sqrt", np.sqrt), ("log", np.log), ("ceil", np.ceil), ("round", np.round), ("abs", np.abs), ("trunc", np.trunc))
def functions_of_te(name, reference):
    a = te.placeholder((10,), name="a")
    b = te.compute((10,), lambda i: getattr(te, name)(a[i]))
    data = numbers(10, low=0.1, high=3.0)
    tvm.testing.assert_allclose(run(te.create_schedule(b.op), [a, b], data), reference(data), rtol=1e-4)


@program("float32", "float64", "int32", "int64", "int8", "uint8", "float16")
def every_dtype(dtype):
    a, b = te.placeholder((12,), dtype, name="a"), te.placeholder((12,), dtype, name="b")
    c = te.compute((12,), lambda i: a[i] * b[i] + a[i])
    assert c.dtype == dtype
    p, q = numbers(12, dtype=dtype), numbers(12, dtype=dtype, seed=5)
    tvm.testing.assert_allclose(run(te.create_schedule(c.op), [a, b, c], p, q), p * q + p, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-3 if dtype == "float16" else 1e-6)
