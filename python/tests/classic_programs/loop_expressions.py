# SPDX-License-Identifier: Apache-2.0
"""Nodes of the loop IR, their text, and buffers and layouts."""
import json, os

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import te, tir, ir, topi, relay
import numpy as np
import tvm
import tvm.testing


@program
def const_node():
    x = tvm.tir.const(1, "int32")
    assert x.dtype == "int32"
    assert isinstance(x, tir.IntImm)


@program
def scalar_dtype_inference():
    for data in [True, bool(1), np.uint8(1), np.uint16(1), np.uint32(1), np.uint64(1), np.int8(1), np.int16(1), np.int32(1), np.int64(1), np.float16(1), np.float32(1), np.float64(1)]:
        assert tvm.tir.const(data).dtype == str(np.array(data).dtype), (data, tvm.tir.const(data).dtype)
    assert tvm.tir.const(1).dtype == "int32"
    assert tvm.tir.const(1.0).dtype == "float32"
    for data in [True, np.uint8(1), np.int64(1), np.float16(1)]:
        assert tvm.runtime.convert(data).dtype == str(np.array(data).dtype), data
    assert tvm.runtime.convert(1).dtype == "int32"
    assert tvm.runtime.convert(1.0).dtype == "float32"


@program
def make_nodes():
    x = tir.const(1, "int32")
    y = te.var("x")
    z = x + y
    assert isinstance(tir.max(x, y), tir.Max)
    assert isinstance(tir.min(x, y), tir.Min)
    assert isinstance(z, tir.Add)


@program
def ir_nodes():
    x = tir.const(1, "int32")
    y = tir.IntImm("int32", 1)
    z = x + y
    stmt = tir.Evaluate(z)
    assert isinstance(stmt, tir.Evaluate)


@program
def ir2_nodes():
    buf_size = te.var("size")
    x = te.var("n")
    storage_type = ir.PrimType("int32")
    handle_type = ir.PointerType(storage_type)
    array = te.var("array", handle_type)
    buf = tir.decl_buffer([buf_size], "int32", data=array)
    st = tir.BufferStore(buf, x + 1, [1])
    assert isinstance(st, tir.BufferStore) and st.buffer == buf or st.buffer.name == buf.name
    assert st.buffer.data == array or st.buffer.data.name == "array"


@program
def let_node():
    x = te.var("x")
    y = te.var("y")
    s = tir.LetStmt(x, 10, tir.Evaluate(x + 1))
    assert s.var == x
    assert s.value.value == 10
    assert isinstance(s.body, tir.Evaluate)


@program
def cast_nodes():
    x = te.var("x", dtype="float32")
    y = x.astype("int32")
    z = x.astype("float32x4")
    assert isinstance(y, tir.Cast)
    assert isinstance(z, tir.Broadcast)
    assert z.lanes == 4
    s = tir.StringImm("s")
    with refusing(Exception):
        s.astype("int")


@program
def attr_node():
    x = te.var("x")
    y = te.var("y")
    st = tir.AttrStmt(y, "stride", 10, tir.Evaluate(x + 1))
    assert st.node == y
    assert st.attr_key == "stride"
    assert st.value.value == 10
    a = tvm.runtime.convert(x)
    assert a == x


@program
def basic_text():
    a = te.var("a")
    b = te.var("b")
    c = a + b
    assert str(c) == "(%s: int32 + %s: int32)" % (a.name, b.name), str(c)


@program
def stmt_text():
    x = tir.Evaluate(0)
    tir.For(te.var("i"), 0, 1, tir.ForKind.SERIAL, x)


@program
def dir_and_dtypes():
    x = te.var("x")
    dir(x)
    assert x.dtype == "int32"
    assert te.var("x", "float16").dtype == "float16"
    assert te.size_var("n").dtype == "int32"
    assert isinstance(te.size_var("n"), tir.SizeVar)


@program
def any_all():
    x, y, z = (te.var("x"), te.var("y"), te.var("z"))
    with refusing(ValueError):
        x or x
    with refusing(ValueError):
        tir.any()
    with refusing(ValueError):
        tir.all()
    assert str(tir.any(x < y)) == "(%s: int32 < %s: int32)" % (x.name, y.name)
    assert str(tir.any(x < y, x > z)) == "((%s: int32 < %s: int32) || (%s > %s: int32))" % (x.name, y.name, x.name, z.name), str(tir.any(x < y, x > z))
    assert str(tir.all(x < y, x > z)) == "((%s: int32 < %s: int32) && (%s > %s: int32))" % (x.name, y.name, x.name, z.name)


@program
def float_bitwise():
    t = tir.const(1.5, dtype="float32")
    for test in [lambda lhs, rhs: lhs << rhs, lambda lhs, rhs: lhs | rhs, lambda lhs, rhs: lhs ^ rhs]:
        with refusing(tvm.TVMError):
            test(t, 10)
    with refusing(Exception):
        ~t


@program
def shift_bounds():
    x = te.var("x")
    for t in [lambda a, b: a << b, lambda a, b: a >> b]:
        with refusing(tvm.TVMError):
            t(x, 100)
        with refusing(tvm.TVMError):
            t(x, -1)
        t(x, 16)


@program
def divide_by_zero():
    for t in [lambda a, b: tir.floormod(a, b), lambda a, b: tir.floordiv(a, b), lambda a, b: tir.truncmod(a, b), lambda a, b: tir.truncdiv(a, b), lambda a, b: tir.div(a, b)]:
        with refusing(tvm.TVMError):
            t(tir.const(5, "int32"), tir.const(0, "int32"))


@program
def infinity_ops():
    assert str(tir.infinity("float16")) == "infh" or "inf" in str(tir.infinity("float16"))
    assert tir.infinity("float32").dtype == "float32"
    assert "inf" in str(tir.infinity("float64"))


@program
def isnan_text():
    x = te.var("x", "float32")
    assert str(tir.isnan(x)) == "@tir.isnan(x: float32, dtype=bool)", str(tir.isnan(x))
    assert str(tir.isnan(x).dtype) == "bool"
    y = te.var("y", "float16")
    assert tir.isnan(y).dtype == "bool"
    z = te.var("z", "int32")
    assert tir.isnan(z).dtype == "bool"
    k = te.var("k", "int8x2")
    assert str(tir.isnan(k).dtype) in ("uint1x2", "boolx2")


@program
def equality_nodes():
    a, b = (te.var("a"), te.var("b"))
    c = a == b
    assert not c
    d = c != c
    assert not d


@program
def equality_string_imm():
    x = "a"
    y = tir.StringImm(x)
    x == y.value
    assert x == y


@program
def prim_func_node():
    x = te.var("x")
    y = te.var("y")
    b = tir.decl_buffer((x,), "float32")
    stmt = tir.LetStmt(x, 10, tir.Evaluate(x + 1))
    func = tir.PrimFunc([x, y, b], stmt)
    assert func.buffer_map[func.params[2]].same_as(b) or func.buffer_map[func.params[2]].name == b.name
    assert len(func.buffer_map) == 1
    f2 = func.with_attr({"calling_conv": 1, "tir.noalias": True})
    assert f2.attrs["calling_conv"].value == 1 and func.attrs is None or f2.attrs["calling_conv"] == 1


@program
def vars_unusual():
    x = te.var("x")
    f = tir.exp(te.var("y", "float32"))
    assert f.op.name == "tir.exp"
    assert f.dtype == "float32"
    assert len(f.args) == 1
    p = te.var("p", dtype="handle")
    assert p.dtype == "handle"


@program
def float_imm_arith():
    a = tir.const(2.0, "float32") + tir.const(3.0, "float32")
    assert isinstance(a, tir.FloatImm)
    assert a.value == 5.0
    assert (tir.const(7, "int32") // 2).value == 3
    assert (tir.const(-7, "int32") // 2).value == -4
    assert tir.truncdiv(tir.const(-7, "int32"), 2).value == -3
    assert (tir.const(7, "int32") % 4).value == 3
    assert tir.floormod(tir.const(-7, "int32"), 4).value == 1
    assert tir.truncmod(tir.const(-7, "int32"), 4).value == -3


@program
def const_fold():

    def check(f, *a):
        x = f(*[tir.const(v, "int32") for v in a])
        assert isinstance(x, tir.IntImm)
        assert x.value == f(*a)
    t = te.var("t")
    check(lambda x, y: x + y, 3, 4)
    check(lambda x, y: x * y, 3, 12)
    check(lambda x, y: x * y - 10, 3, 12)
    check(lambda x, y: x - y % 10, 3, 12)
    check(lambda x, y: x // y + 10, 100, 12)
    check(lambda x, y: x & y + 10, 112, 128)
    check(lambda x, y: x > y, 112, 128)
    check(lambda x, y: x < y, 112, 128)
    check(lambda x, y: x <= y, 112, 128)
    check(lambda x, y: x >= y, 112, 128)
    check(lambda x, y: (x | y) ^ 10, 112, 128)


@program
def const_fold_identities():
    x = te.var("x")
    t = tir.const(1, "bool")
    assert (x + 0).same_as(x)
    assert (0 + x).same_as(x)
    assert (x - 0).same_as(x)
    assert tir.truncmod(x, 1).value == 0
    assert (x * 1).same_as(x)
    assert (1 * x).same_as(x)
    assert isinstance(tir.truncdiv(1, x), tir.Div)
    assert (x * 0).value == 0
    assert (0 * x).value == 0


@program
def const_fold_bool():
    x = te.var("x")
    c = x > 1
    t, f = (tir.const(True, "bool"), tir.const(False, "bool"))
    assert tir.all(c, t).same_as(c)
    assert tir.all(t, c).same_as(c)
    assert tir.all(c, f).value == 0
    assert tir.any(c, f).same_as(c)
    assert tir.any(f, c).same_as(c)
    assert tir.any(c, t).value == 1


@program
def type_promotion():
    x, y = (te.var("x", "int32"), te.var("y", "int64"))
    assert (x + y).dtype == "int64"
    assert (x * 1.0).dtype == "float32"
    assert (te.var("h", "float16") + te.var("f", "float32")).dtype == "float32"
    assert (te.var("b", "bool") & te.var("c", "bool")).dtype in ("bool", "uint1", "int32")
    with refusing((tvm.TVMError, RuntimeError, TypeError)):
        te.var("x", "int32x2") + te.var("y", "int32x4")


@program
def if_then_else_node():
    x = te.var("x")
    e = tir.if_then_else(x > 0, 1, 2)
    assert e.op.name == "tir.if_then_else"
    assert e.dtype == "int32"
    assert len(e.args) == 3
    assert tir.if_then_else(True, 1, 2) is not None
    with refusing((tvm.TVMError, ValueError)):
        tir.if_then_else(te.var("f", "float32"), 1, 2)


@program
def select_ramp_broadcast_shuffle():
    x = te.var("x")
    s = tir.Select(x > 0, x, 1)
    assert s.true_value == x or s.true_value.same_as(x)
    r = tir.Ramp(x, 1, 4)
    assert r.dtype == "int32x4"
    assert r.lanes == 4
    assert r.stride.value == 1
    b = tir.Broadcast(x, 8)
    assert b.dtype == "int32x8"
    assert b.value.same_as(x)


@program
def call_extern_nodes():
    c = tir.call_extern("int32", "f", 1, te.var("x"))
    assert c.op.name == "tir.call_extern"
    assert c.dtype == "int32"
    assert c.args[0].value == "f"
    p = tir.call_packed("g", 1)
    assert p.op.name == "tir.tvm_call_packed"
    i = tir.call_intrin("float32", "tir.exp", te.var("y", "float32"))
    assert i.op.name == "tir.exp"


@program
def builder_for():
    ib = tir.ir_builder.create()
    n = te.size_var("n")
    A = ib.allocate("float32", n, name="A", scope="global")
    with ib.for_range(0, n, name="i") as i:
        A[i] = A[i] + 1
        with ib.for_range(0, 10, name="j") as j:
            A[j] = A[j] + 2
    body = ib.get()
    assert isinstance(body, tir.Allocate), type(body)
    body = body.body
    assert isinstance(body, tir.For)
    body = body.body
    assert isinstance(body, tir.SeqStmt)
    assert isinstance(body[1], tir.For)


@program
def builder_if():
    ib = tir.ir_builder.create()
    n = te.size_var("n")
    A = ib.pointer("float32", name="A")
    tmod = tir.truncmod
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(tmod(i, 2) == 0):
            A[i] = A[i] + 1
        with ib.else_scope():
            A[0] = A[i] + 2
    body = ib.get()
    assert isinstance(body, tir.For)
    body = body.body
    assert isinstance(body, tir.IfThenElse)
    assert isinstance(body.condition, tir.EQ)
    assert isinstance(body.then_case.indices[0], tir.Var)
    assert list(body.else_case.indices) == [0]


@program
def builder_cpu_run():
    n = 16
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")

    def f(a, b, c):
        ib = tir.ir_builder.create()
        A, B, C = (ib.buffer_ptr(a), ib.buffer_ptr(b), ib.buffer_ptr(c))
        with ib.for_range(0, n, name="i") as i:
            C[i] = A[i] + B[i]
        return ib.get()
    C = te.extern(A.shape, [A, B], lambda ins, outs: f(ins[0], ins[1], outs[0]), dtype="float32", name="C")
    s = te.create_schedule(C.op)
    m = tvm.build(s, [A, B, C], "llvm")
    a, b, c = (tvm.nd.array(numbers(n)), tvm.nd.array(numbers(n, seed=2)), tvm.nd.empty((n,)))
    m(a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


@program
def buffers():
    m, n, l = (te.size_var("m"), te.size_var("n"), te.size_var("l"))
    Ab = tir.decl_buffer((m, n), "float32")
    Bb = tir.decl_buffer((n, l), "float32")
    assert isinstance(Ab, tir.Buffer)
    assert Ab.dtype == "float32"
    assert tuple(Ab.shape) == (m, n)
    assert Ab.scope() == "global"


@program
def buffer_access_ptr():
    m, n = (te.size_var("m"), te.size_var("n"))
    Ab = tir.decl_buffer((m, n), "float32", strides=[n + 1, 1])
    aptr = Ab.access_ptr("rw")
    assert tvm.ir.structural_equal(aptr.args[3], Ab.strides[0] * m)
    assert aptr.args[0].dtype == Ab.dtype
    assert aptr.args[4].value == tir.Buffer.READ | tir.Buffer.WRITE
    aptr = Ab.access_ptr("w")
    assert aptr.args[4].value == tir.Buffer.WRITE


@program
def buffer_vload():
    m, n = (te.size_var("m"), te.size_var("n"))
    Ab = tir.decl_buffer((m, n), "float32", elem_offset=100)
    load = Ab.vload([2, 3])
    assert load.dtype == "float32"
    assert list(load.indices)[1] == 3
    st = Ab.vstore([2, 3], tir.const(1.0, "float32"))
    assert isinstance(st, tir.BufferStore)


@program
def layout_things():
    l = tir.layout("NCHW16c")
    assert len(l) == 5
    assert l.factor_of("c") == 16
    assert l.factor_of("C") == 16
    assert l.factor_of("N") == -1
    assert l.index_of("N") == 0
    assert l.index_of("C") == 1
    assert l.index_of("c") == 4
    assert l.index_of("O") == -1
    assert "N" in l
    assert "D" not in l
    assert "c" in l
    assert l[4] == "c"
    assert str(l)
    u = tir.layout(None)
    b = tir.bijective_layout("NCHW", "NCHW16c")
    assert b.src_layout.name == "NCHW"
    assert b.dst_layout.name == "NCHW16c"
    assert list(b.forward_shape((1, 32, 7, 7))) == [1, 2, 7, 7, 16]
    assert list(b.backward_shape((1, 2, 7, 7, 16))) == [1, 32, 7, 7]
    assert [int(v) for v in b.forward_index((0, 18, 6, 6))] == [0, 1, 6, 6, 2]
    assert tir.layout("NCHW").same_as(tir.layout("NCHW")) is not None


@program
def equality_structural_tir():
    x, y = (te.var("x"), te.var("y"))
    assert tvm.ir.structural_equal(x + 1, x + 1)
    assert not tvm.ir.structural_equal(x + 1, y + 1)
    assert tvm.ir.structural_equal(x + 1, y + 1, map_free_vars=True)
    assert not tvm.ir.structural_equal(x + 1, x + 2)
    assert tvm.ir.structural_hash(x + 1) == tvm.ir.structural_hash(x + 1)
    assert tvm.ir.structural_hash(tir.const(1, "int32")) != tvm.ir.structural_hash(tir.const(1, "int64"))
    with refusing(ValueError):
        tvm.ir.assert_structural_equal(x + 1, x + 2)


@program
def analyzer_basics():
    a = tvm.arith.Analyzer()
    x = te.var("x")
    assert a.simplify(x + x - x * 2).value == 0
    a.bind(x, tvm.ir.Range(0, 10))
    assert a.const_int_bound(x + 1).max_value == 10
    assert a.const_int_bound(x + 1).min_value == 1
    assert a.can_prove(x < 10)
    m = a.modular_set(x * 4 + 1)
    assert m.coeff == 4
    assert m.base == 1


@program
def range_and_itervar():
    r = tvm.ir.Range(2, 5)
    assert r.min.value == 2
    assert r.extent.value == 3
    r2 = tvm.ir.Range.from_min_extent(2, 3)
    assert tvm.ir.structural_equal(r, r2)
    assert tvm.ir.Range(10).extent.value == 10
    k = te.reduce_axis((0, 4), "k")
    assert k.dom.extent.value == 4
    assert k.var.name == "k"
    assert k.iter_type == 2
    t = te.thread_axis((0, 3), "threadIdx.x")
    assert t.thread_tag == "threadIdx.x"
    assert t.iter_type == 1
