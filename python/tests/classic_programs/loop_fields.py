# SPDX-License-Identifier: Apache-2.0
"""Expressions and statements of the loop IR by their constructors, and what is made of them."""
import json, os

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import te, tir, ir, topi, relay
import numpy as np
import tvm
import tvm.testing


@program
def stmt_constructors():
    v = te.var("aa")
    nop = tir.Evaluate(1)
    x = tir.LetStmt(v, 1, tir.Evaluate(1))
    assert isinstance(x, tir.LetStmt)
    assert x.var == v
    assert x.value.value == 1
    assert isinstance(x.body, tir.Evaluate)
    x = tir.AttrStmt(v == 1, "xx", 1, tir.Evaluate(1))
    assert isinstance(x, tir.AttrStmt)
    assert x.value.value == 1
    x = tir.AssertStmt(tir.const(1, "uint1"), tvm.runtime.convert("hellow"), nop)
    assert isinstance(x, tir.AssertStmt)
    assert x.body == nop
    assert x.message == "hellow"
    x = tir.For(te.var("x"), 0, 10, tir.ForKind.SERIAL, nop)
    assert isinstance(x, tir.For)
    assert x.min.value == 0
    assert x.extent.value == 10
    assert isinstance(x.body, tir.Evaluate)
    buf = tir.decl_buffer([10], "float32")
    x = tir.BufferStore(buf, tir.const(1.0, "float32"), [1])
    assert isinstance(x, tir.BufferStore)
    assert x.value.value == 1.0
    assert list(x.indices)[0].value == 1
    bv = tir.Var("buf", ir.PointerType(ir.PrimType("float32")))
    x = tir.Allocate(bv, "float32", [10], tir.const(1, "uint1"), nop)
    assert isinstance(x, tir.Allocate)
    assert x.dtype == "float32"
    assert x.buffer_var == bv
    assert x.body == nop
    x = tir.AttrStmt(bv, "xyz", 1, nop)
    assert x.node == bv
    assert x.attr_key == "xyz"
    assert x.body == nop
    x = tir.IfThenElse(tir.const(1, "uint1"), tir.Evaluate(11), nop)
    b = tir.decl_buffer((1, 2))
    x = None


@program
def while_node():
    x = tir.While(te.var("x") > 1, tir.Evaluate(1))
    assert isinstance(x, tir.While)
    assert isinstance(x.body, tir.Evaluate)


@program("int8", "int16", "int32", "uint8", "uint16")
def imm_values_bounds(dtype):
    info = np.iinfo(dtype)
    assert tir.const(int(info.max), dtype).value == info.max
    assert tir.const(int(info.min), dtype).value == info.min
    with refusing(Exception):
        tir.const(int(info.max) + 1, dtype)
    with refusing(Exception):
        tir.const(int(info.min) - 1, dtype)


@program("float16", "float32", "float64")
def float_imm_bounds(dtype):
    assert tir.const(1.5, dtype).value == 1.5
    assert tir.FloatImm(dtype, 0.25).value == 0.25


@program
def tir_max_min_value():
    for dtype in ("int8", "int32", "uint8"):
        assert tir.max_value(dtype).value == np.iinfo(dtype).max
        assert tir.min_value(dtype).value == np.iinfo(dtype).min
    assert tir.max_value("float32").value == np.finfo("float32").max
    assert tir.min_value("float32").value == np.finfo("float32").min


@program
def format_of_exprs():
    x, y = (te.var("x"), te.var("y"))
    f = te.var("f", "float32")
    for e, t in ((x + y * 2, "(x: int32 + (y: int32*2))"), (tir.max(x, y), "max(x: int32, y: int32)"), (tir.floordiv(x, y), "floordiv(x: int32, y: int32)"), (x - 1, "(x: int32 - 1)"), (f * 2.0, "(f: float32*2f32)"), (tir.Cast("int8", x), "cast(int8, x: int32)"), (tir.Select(x > y, x, y), "select((x: int32 > y: int32), x, y)"), (tir.exp(f), "@tir.exp(f: float32, dtype=float32)"), (tir.EQ(x, y), "(x: int32 == y: int32)"), (tir.Not(x > y), "!(x: int32 > y: int32)")):
        assert str(e) == t, (str(e), t)


@program
def intrin_lists():
    f = te.var("f", "float32")
    for n in ("exp", "tanh", "sigmoid", "log", "sin", "cos", "atan", "sqrt", "rsqrt", "floor", "ceil", "trunc", "abs", "round", "nearbyint", "popcount", "erf", "log2", "log10", "sinh", "cosh", "exp2"):
        e = getattr(tir, n)(te.var("i") if n == "popcount" else f)
        assert e is not None, n
    assert tir.pow(f, f).op.name == "tir.pow"
    assert tir.fmod(f, f).dtype == "float32"
    assert tir.ldexp(f, te.var("i")) is not None
    assert tir.copysign(f, f) is not None
    assert tir.hypot(f, f) is not None
    assert tir.nextafter(f, f) is not None
    assert tir.atan2(f, f) is not None


@program
def run_intrins():
    n = 8
    A = te.placeholder((n,), name="A")
    a = numbers(n, low=0.1, high=0.9)
    for name, ref in (("exp", np.exp), ("tanh", np.tanh), ("log", np.log), ("sin", np.sin), ("sqrt", np.sqrt), ("floor", np.floor), ("log2", np.log2), ("log10", np.log10), ("sinh", np.sinh), ("cosh", np.cosh), ("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("exp2", np.exp2)):
        B = te.compute((n,), lambda i: getattr(tir, name)(A[i]))
        f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
        b = tvm.nd.empty((n,))
        f(tvm.nd.array(a), b)
        np.testing.assert_allclose(b.numpy(), ref(a), rtol=0.0001, atol=1e-05)


@program
def ceildiv_and_index():
    x = te.var("x")
    assert tir.ceildiv(tir.const(7, "int32"), 2).value == 4
    assert tir.indexdiv(tir.const(7, "int32"), 2).value == 3
    assert tir.indexmod(tir.const(7, "int32"), 2).value == 1
    assert tir.truncdiv(x, 2).dtype == "int32"
    with refusing(Exception):
        tir.indexdiv(te.var("f", "float32"), 2)
    with refusing(RuntimeError):
        x / 2


@program
def structural_stmts():
    x = te.var("x")
    y = te.var("y")
    nop = tir.Evaluate(0)
    a, b = (tir.For(x, 0, 10, tir.ForKind.SERIAL, nop), tir.For(y, 0, 10, tir.ForKind.SERIAL, nop))
    assert tvm.ir.structural_equal(a, b)
    assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    assert not tvm.ir.structural_equal(a, tir.For(y, 0, 11, tir.ForKind.SERIAL, nop))
    assert not tvm.ir.structural_equal(a, tir.For(y, 0, 10, tir.ForKind.PARALLEL, nop))


@program
def structural_prim_func():

    def mk(n):
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        return te.create_prim_func([A, B])
    assert tvm.ir.structural_equal(mk(4), mk(4))
    assert not tvm.ir.structural_equal(mk(4), mk(5))
    assert tvm.ir.structural_hash(mk(4)) == tvm.ir.structural_hash(mk(4))


@program
def structural_arrays_maps():
    x = tvm.runtime.convert([1, 2, 3])
    assert tvm.ir.structural_equal(x, tvm.runtime.convert([1, 2, 3]))
    assert not tvm.ir.structural_equal(x, tvm.runtime.convert([1, 2]))
    m = tvm.runtime.convert({"a": 1, "b": [2]})
    assert tvm.ir.structural_equal(m, tvm.runtime.convert({"b": [2], "a": 1}))
    assert tvm.ir.structural_hash(m) == tvm.ir.structural_hash(tvm.runtime.convert({"b": [2], "a": 1}))
    assert not tvm.ir.structural_equal(tvm.runtime.String("a"), tvm.runtime.String("b"))
    assert not tvm.ir.structural_equal(m, x)


@program
def structural_env_attrs():
    a, b = (tvm.ir.make_node("attrs.TestAttrs", axis=1, name="xx", padding=(1, 1)), tvm.ir.make_node("attrs.TestAttrs", axis=1, name="xx", padding=(1, 1)))
    assert tvm.ir.structural_equal(a, b)
    assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    assert not tvm.ir.structural_equal(a, tvm.ir.make_node("attrs.TestAttrs", axis=2, name="xx", padding=(1, 1)))


@program
def module_ops():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    f = te.create_prim_func([A, B]).with_attr("global_symbol", "f")
    m = tvm.IRModule({"f": f})
    assert [g.name_hint for g in m.get_global_vars()] == ["f"]
    assert "f" in [getattr(k, "name_hint", k) for k in m.functions]
    assert m["f"].attrs["global_symbol"] == "f"
    assert isinstance(m, tvm.IRModule)
    assert "T.prim_func" in m.script()
    assert tvm.ir.structural_equal(tvm.script.from_source(m.script()), m)


@program
def lower_module_text():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    m = tvm.lower(s, [A, B], name="f")
    assert isinstance(m, tvm.IRModule)
    assert "f" in [getattr(g, "name_hint", g) for g in m.get_global_vars()]
    assert m["f"].attrs["global_symbol"] == "f"
    assert m["f"].attrs["tir.noalias"]
    assert isinstance(tvm.lower(s, [A, B], simple_mode=True), (tir.Stmt, tvm.IRModule))


@program
def tir_passes_exist():
    for n in ("Simplify", "UnrollLoop", "VectorizeLoop", "RemoveNoOp", "StorageRewrite", "LoopPartition", "InjectVirtualThread", "CoProcSync", "LiftAttrScope", "MakePackedAPI", "LowerIntrin", "NarrowDataType", "BF16Legalize", "HoistIfThenElse", "FlattenBuffer", "CommonSubexprElimTIR", "ThreadSync", "Apply", "Filter"):
        assert hasattr(tir.transform, n), n


@program
def te_tensor_basics():
    m, n, l = (te.size_var("m"), te.size_var("n"), te.size_var("l"))
    A = te.placeholder((m, l), name="A")
    B = te.placeholder((n, l), name="B")
    T = te.compute((m, n, l), lambda i, j, k: A[i, k] * B[j, k])
    assert tuple(T.shape) == (m, n, l)
    assert isinstance(A.op, te.PlaceholderOp)
    assert A == A
    assert T.op.output(0) == T
    assert hash(T.op.output(0)) == hash(T)
    assert T[0][0][0].asobject() is not None
    assert str(T).startswith("Tensor(")
    assert isinstance(T.op, te.ComputeOp)
    assert [a.var.name for a in T.op.axis] == ["i", "j", "k"]
    assert len(T.op.input_tensors) == 2


@program
def te_schedule_basics():
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B.op)
    xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], 4, 4)
    s[B].vectorize(yi)
    s[B].unroll(xi)
    s[B].parallel(xo)
    f = tvm.build(s, [A, B], "llvm")
    a = numbers(16, 16)
    b = tvm.nd.empty((16, 16))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.numpy(), a * 2)
    assert isinstance(s[B], te.Stage)
    assert len(s[B].leaf_iter_vars) == 4
    assert len(s.stages) == 2
