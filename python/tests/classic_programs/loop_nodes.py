# SPDX-License-Identifier: Apache-2.0
"""Nodes, operators and buffers of the loop IR: constants fold, dtypes agree, what is wrong is refused."""
import numpy as np
import tvm
import tvm.testing
from harness import program, raises
from tvm import te, tir

A, B = te.var("a"), te.var("b")


@program((lambda: tir.const(3, "int32") + 4, 7), (lambda: tir.const(3, "int32") * 4, 12), (lambda: tir.const(9, "int32") // 2, 4), (lambda: tir.const(-9, "int32") // 2, -5), (lambda: tir.const(-9, "int32") % 2, 1),
         (lambda: tir.truncdiv(tir.const(-9, "int32"), 2), -4), (lambda: tir.truncmod(tir.const(-9, "int32"), 2), -1), (lambda: tir.const(6, "int32") & 3, 2), (lambda: tir.const(6, "int32") | 3, 7),
         (lambda: tir.const(6, "int32") ^ 3, 5), (lambda: tir.const(1, "int32") << 4, 16), (lambda: tir.const(16, "int32") >> 2, 4), (lambda: tir.const(5, "int32") * 0, 0), (lambda: tir.const(7, "int32") - 9, -2), (lambda: tir.floormod(tir.const(7, "int32"), -3), -2), (lambda: tir.abs(tir.const(-3, "int32")), 3), (lambda: tir.ceildiv(tir.const(7, "int32"), 2), 4))
def folds(make, value):
    made = make()
    assert isinstance(made, tir.IntImm) and made.value == value and made.dtype == "int32"


@program((lambda x: x + 0), (lambda x: 0 + x), (lambda x: x * 1), (lambda x: 1 * x), (lambda x: x - 0), (lambda x: x // 1), (lambda x: tir.indexdiv(x, 1)))
def identities(make):
    assert make(A).same_as(A)


@program(("+", lambda x, y: x + y, tir.Add), ("-", lambda x, y: x - y, tir.Sub), ("*", lambda x, y: x * y, tir.Mul), ("//", lambda x, y: x // y, tir.FloorDiv), ("%", lambda x, y: x % y, tir.FloorMod),
         ("<", lambda x, y: x < y, tir.LT), ("<=", lambda x, y: x <= y, tir.LE), (">", lambda x, y: x > y, tir.GT), (">=", lambda x, y: x >= y, tir.GE), ("min", lambda x, y: tir.Min(x, y), tir.Min),
         ("max", lambda x, y: tir.Max(x, y), tir.Max), ("eq", lambda x, y: (x == y).asobject(), tir.EQ), ("ne", lambda x, y: (x != y).asobject(), tir.NE))
def classes(_, make, kind):
    made = make(A, B)
    assert isinstance(made, kind) and made.a.same_as(A) and made.b.same_as(B)
    assert isinstance(made, tir.BinaryOpExpr) and isinstance(made, tir.PrimExpr)
    assert made.dtype == ("bool" if kind in (tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ, tir.NE) else "int32")


@program(("int32", "int64", "int64"), ("int32", "float32", "float32"), ("float32", "float64", "float64"), ("int8", "int32", "int32"), ("uint8", "int32", "int32"), ("float16", "float32", "float32"),
         ("int64", "float32", "float32"), ("uint8", "uint16", "uint16"), ("float32", "float32", "float32"))
def common_dtypes(left, right, both):
    for make in (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: tvm.te.max(x, y)):
        assert make(te.var("p", dtype=left), te.var("q", dtype=right)).dtype == both
        assert make(te.var("p", dtype=right), te.var("q", dtype=left)).dtype == both
    assert (te.var("p", dtype=left) < te.var("q", dtype=right)).dtype == "bool"


@program(("int32", 3, "int32"), ("int64", 3, "int64"), ("float32", 3, "float32"), ("float32", 2.5, "float32"), ("float16", 1, "float16"))
def numbers_beside_variables(dtype, number, both):
    assert (te.var("p", dtype=dtype) + number).dtype == both
    assert (number * te.var("p", dtype=dtype)).dtype == both


@program(lambda: A and B, lambda: not A, lambda: bool(A < B), lambda: 1 if A > 3 else 2, lambda: bool(A + 1))
def no_truth(make):
    raises(ValueError, make)


@program(lambda: A / B, lambda: A / 2, lambda: 2 / A)
def ambiguous_division(make):
    assert "floordiv" in str(raises(RuntimeError, make))


@program(lambda: A // 0, lambda: A % 0, lambda: tir.floordiv(A, 0), lambda: tir.truncdiv(A, 0), lambda: tir.const(3, "int32") // 0, lambda: tir.floormod(tir.const(3, "int32"), 0), lambda: tir.indexmod(A, 0))
def division_by_zero(make):
    raises(tvm.TVMError, make)


@program(lambda: te.var("f", dtype="float32") & 1, lambda: te.var("f", dtype="float32") << 1, lambda: A ^ te.var("f", dtype="float32"), lambda: ~te.var("f", dtype="float32"), lambda: 1.5 | A)
def bits_of_floats(make):
    raises((tvm.TVMError, TypeError), make)


@program(lambda: A << -1, lambda: A >> 32, lambda: A << 64)
def shifts_out_of_range(make):
    raises(tvm.TVMError, make)


@program
def equality_is_deferred():
    e = A == B
    assert not e and (A == A) and isinstance(e.asobject(), tir.EQ)
    assert (A != B) and not (A != A)
    assert A.same_as(A) and not A.same_as(B)
    assert tvm.ir.structural_equal(A + 1, A + 1) and not tvm.ir.structural_equal(A + 1, B + 1)
    assert hash(A) == hash(A) and {A: 1}[A] == 1


@program
def variables_and_constants():
    v = te.var("v", "int64")
    assert v.name == "v" and v.dtype == "int64" and repr(v) == "v" and str(v) == "v: int64"
    s = te.size_var("n")
    assert isinstance(s, tir.SizeVar) and s.dtype == "int32"
    c = tir.const(1.5, "float32")
    assert isinstance(c, tir.FloatImm) and c.value == 1.5
    assert isinstance(tir.const(1, "bool"), tir.IntImm) and tir.const(True).dtype == "bool"
    assert tir.const(1).dtype == "int32" and tir.const(1.0).dtype == "float32"
    assert tir.IntImm("int64", 2 ** 40).value == 2 ** 40 and tir.FloatImm("float64", 0.1).value == 0.1
    assert tir.StringImm("x").value == "x"
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    assert p.dtype == "handle" and p.type_annotation.element_type.dtype == "float32"
    assert isinstance(te.var("q").type_annotation, tvm.ir.PrimType)


@program(("int8", 128), ("int8", -129), ("uint8", 256), ("uint8", -1), ("int16", 40000), ("uint16", 65536), ("int32", 2 ** 31), ("uint32", -1))
def constants_that_do_not_fit(dtype, value):
    raises(Exception, tir.IntImm, dtype, value) if dtype != "int16" else raises(Exception, tir.const, value, dtype)


@program(("int8", 127), ("int8", -128), ("uint8", 255), ("int32", 2 ** 31 - 1), ("int64", -2 ** 63), ("uint32", 2 ** 32 - 1), ("bool", 1))
def constants_that_fit(dtype, value):
    assert tir.const(value, dtype).value == value and tir.const(value, dtype).dtype == dtype


@program(("int8", -128, 127), ("uint8", 0, 255), ("int32", -2 ** 31, 2 ** 31 - 1), ("uint16", 0, 65535), ("float32", np.finfo("float32").min, np.finfo("float32").max), ("float64", np.finfo("float64").min, np.finfo("float64").max))
def limits(dtype, low, high):
    assert tir.min_value(dtype).value == low and tir.max_value(dtype).value == high
    assert tvm.te.max_value(dtype).value == high


@program
def casts():
    x = te.var("x", dtype="float32")
    assert x.astype("float32").same_as(x)
    c = x.astype("int32")
    assert isinstance(c, tir.Cast) and c.dtype == "int32" and c.value.same_as(x)
    assert x.astype("int").dtype == "int32"
    assert tir.Cast("float64", A).dtype == "float64"
    assert tir.const(3, "int32").astype("float32").value == 3.0


@program
def intrinsics():
    x = te.var("x", dtype="float32")
    for name in ("exp", "tanh", "sqrt", "sigmoid", "log", "floor", "ceil", "trunc", "round", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log2", "log10", "log1p", "exp2", "exp10", "erf", "rsqrt", "nearbyint"):
        assert getattr(tir, name)(x).dtype == "float32", name
    for name in ("atan2", "hypot", "nextafter", "copysign", "power", "fmod"):
        assert getattr(tir, name)(x, x).dtype == "float32", name
    assert tir.isnan(x).dtype == "bool" and tir.isfinite(x).dtype == "bool" and tir.isinf(x).dtype == "bool"
    assert tir.popcount(A).dtype == "int32" and tir.clz(A).dtype == "int32"
    assert tir.exp(x).op.name == "tir.exp" and tir.exp(x).args[0].same_as(x)
    assert isinstance(tir.exp(x), tir.Call)
    assert tir.if_then_else(A > 1, x, x + 1).dtype == "float32"
    assert tir.likely(A > 1).dtype == "bool"
    assert tir.call_intrin("float32", "tir.exp", x).dtype == "float32"
    assert tir.call_extern("float32", "sinf", x).dtype == "float32"
    assert tir.q_multiply_shift(A, B, tir.const(31, "int32"), 2).dtype == "int32"
    assert tir.ldexp(x, A).dtype == "float32"


@program
def conditions():
    assert isinstance(tir.all(A > 1, B > 2), tir.And) and isinstance(tir.any(A > 1, B > 2), tir.Or)
    assert isinstance(tir.all(A > 1), tir.GT)
    raises(ValueError, tir.all)
    raises(ValueError, tir.any)
    assert isinstance(tir.Not(A > 1), tir.Not)
    s = tir.Select(A > 1, A, B)
    assert s.condition.a.same_as(A) and s.true_value.same_as(A) and s.false_value.same_as(B)
    x = te.var("x", dtype="bool")
    assert tir.all(x, x).dtype == "bool"


@program
def vector_nodes():
    r = tir.Ramp(A, 2, 4)
    assert r.dtype == "int32x4" and r.base.same_as(A) and r.stride.value == 2 and r.lanes == 4
    b = tir.Broadcast(A, 8)
    assert b.dtype == "int32x8" and b.value.same_as(A) and b.lanes == 8
    s = tir.Shuffle([A, B], [0, 1])
    assert s.dtype == "int32x2" and len(s.vectors) == 2 and s.indices[1].value == 1


@program
def lets():
    e = tir.Let(A, tir.const(1, "int32"), A + 1)
    assert e.var.same_as(A) and e.value.value == 1 and e.dtype == "int32"


@program
def statements():
    n = te.var("n")
    buf = tir.decl_buffer((10,), "float32", "buf")
    store = tir.BufferStore(buf, tir.const(1.0, "float32"), [A])
    assert store.buffer == buf and store.indices[0].same_as(A) and store.value.value == 1.0
    load = tir.BufferLoad(buf, [A])
    assert load.buffer == buf and load.dtype == "float32"
    loop = tir.For(A, 0, n, tir.ForKind.SERIAL, store)
    assert loop.loop_var.same_as(A) and loop.min.value == 0 and loop.extent.same_as(n) and loop.body.same_as(store) and loop.kind == tir.ForKind.SERIAL
    seq = tir.SeqStmt([store, tir.BufferStore(buf, 2.0, [1])])
    assert len(seq) == 2 and seq[0].same_as(store) and len(seq.seq) == 2
    cond = tir.IfThenElse(A > 1, store, None)
    assert cond.else_case is None and cond.then_case.same_as(store)
    let = tir.LetStmt(B, tir.const(3, "int32"), store)
    assert let.var.same_as(B) and let.value.value == 3 and let.body.same_as(store)
    region = tir.BufferRegion(buf, [tvm.ir.Range(0, 5)])
    assert region.region[0].extent.value == 5


@program
def buffers():
    m, n = te.size_var("m"), te.size_var("n")
    a = tir.decl_buffer((m, n), "float32", name="A")
    assert a.name == "A" and a.dtype == "float32" and a.shape[0].same_as(m) and len(a.shape) == 2 and a.scope() == "global"
    assert a.data.name == "A" and a.strides == [] or len(a.strides) == 0
    p = a.access_ptr("rw")
    assert p.dtype == "handle"
    raises(ValueError, a.access_ptr, "x")
    v = a.vload([0, 0], dtype="float32x4")
    assert v.dtype == "float32x4"
    s = a.vstore([0, 0], tir.const(1.0, "float32"))
    assert isinstance(s, tir.BufferStore)
    assert a.offset_of([1, 2]) is not None
    flat = tir.decl_buffer((4, 5), "float32")
    tvm.testing.assert_prim_expr_equal(flat.offset_of([1, 2])[0], 7)
    strided = tir.decl_buffer((4, 5), "float32", strides=[10, 1])
    tvm.testing.assert_prim_expr_equal(strided.offset_of([1, 2])[0], 12)
    assert flat.get_flattened_buffer().shape[0].value == 20


@program
def index_maps():
    im = tir.IndexMap.from_func(lambda i: [i // 4, i % 4])
    made = im.map_indices([A])
    assert len(made) == 2
    assert [int(d) for d in im.map_shape([16])] == [4, 4]
    back = im.inverse([16])
    assert [int(d) for d in back.map_shape([4, 4])] == [16]
    assert im.is_equivalent_to(tir.IndexMap.from_func(lambda k: [k // 4, k % 4]))


@program(("NCHW", "C", 1), ("NCHW16c", "c", 4), ("NHWC", "H", 1))
def layouts(text, axis, place):
    lay = tvm.tir.layout(text)
    assert lay.index_of(axis) == place and axis in lay and len(lay) == len([c for c in text if c.isalpha()])
    assert tvm.tir.layout("NCHW16c").factor_of("c") == 16 and tvm.tir.layout("NCHW").factor_of("N") == -1
    back = tvm.tir.bijective_layout("NCHW", "NCHW16c")
    assert [int(v) for v in back.forward_index([0, 18, 6, 6])] == [0, 1, 6, 6, 2]
    assert [int(v) for v in back.backward_index([0, 1, 6, 6, 2])] == [0, 18, 6, 6]
    assert [int(v) for v in back.forward_shape((1, 32, 7, 7))] == [1, 2, 7, 7, 16]


@program
def walking():
    ib = tvm.tir.ir_builder.create()
    n = te.var("n")
    with ib.for_range(0, n, name="i") as i:
        with ib.for_range(0, 10, name="j") as j:
            with ib.if_scope(tir.likely(i * 2 < n)):
                buf = ib.allocate("float32", 4, name="t")
                buf[j % 4] = 1.0
    body = ib.get()
    loops = []
    tvm.tir.stmt_functor.post_order_visit(body, lambda s: loops.append(s.loop_var.name) if isinstance(s, tir.For) else None)
    assert loops == ["j", "i"]
    renamed = tvm.tir.stmt_functor.ir_transform(body, None, lambda s: tir.For(s.loop_var, s.min, s.extent, tir.ForKind.PARALLEL, s.body) if s.loop_var.name == "i" else None, ["tir.For"])
    assert renamed.kind == tir.ForKind.PARALLEL
    replaced = tvm.tir.stmt_functor.substitute(A + B, {A: tir.const(3, "int32")})
    assert tvm.ir.structural_equal(replaced, 3 + B) or tvm.ir.structural_equal(replaced, B + 3)
    assert tvm.tir.stmt_functor.substitute(body, {n: tir.const(8, "int32")}).extent.value == 8


@program
def analysis_of_loops():
    assert tvm.tir.analysis.expr_deep_equal(A + 1, A + 1) and not tvm.tir.analysis.expr_deep_equal(A + 1, B + 1)
    x = tir.decl_buffer((8,), name="x")
    i = te.var("i")
    func = tir.PrimFunc([x], tir.For(i, 0, 8, 0, tir.BufferStore(x, tir.BufferLoad(x, [i]) * 2.0, [i])))
    assert tvm.tir.analysis.verify_memory(func.with_attr("target", tvm.target.Target("llvm")))
    assert tvm.tir.analysis.verify_ssa(func)
    assert len(tvm.tir.analysis.undefined_vars(A + B, [A])) == 1
    assert tvm.tir.analysis.calculate_workspace_bytes(func, 1) == 0


@program
def prim_funcs():
    x, y = tir.decl_buffer((16,), name="x"), tir.decl_buffer((16,), name="y")
    i = te.var("i")
    func = tir.PrimFunc([x, y], tir.For(i, 0, 16, 0, tir.BufferStore(y, tir.BufferLoad(x, [i]) + 1.0, [i])))
    assert len(func.params) == 2 and len(func.buffer_map) == 2
    func = func.with_attr("global_symbol", "go").with_attr("tir.noalias", True)
    assert func.attrs["global_symbol"] == "go"
    mod = tvm.IRModule({"go": func})
    built = tvm.build(mod, target="llvm")
    a, b = tvm.nd.array(np.arange(16, dtype="float32")), tvm.nd.array(np.zeros(16, "float32"))
    built["go"](a, b)
    np.testing.assert_allclose(b.numpy(), np.arange(16) + 1)
    assert isinstance(mod["go"], tir.PrimFunc)
    assert func.without_attr("tir.noalias").attrs.get("tir.noalias", None) is None
    assert tvm.ir.structural_equal(func, func)


@program
def builder_programs():
    def gen(ins, outs):
        ib = tvm.tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 8, name="i") as i:
            with ib.if_scope(a[i] > 0):
                b[i] = a[i]
            with ib.else_scope():
                b[i] = -a[i]
        return ib.get()
    a = te.placeholder((8,), name="a")
    c = te.extern((8,), [a], gen, dtype="float32")
    f = tvm.build(te.create_schedule(c.op), [a, c], "llvm")
    x, y = tvm.nd.array(np.arange(-4, 4, dtype="float32")), tvm.nd.array(np.zeros(8, "float32"))
    f(x, y)
    np.testing.assert_allclose(y.numpy(), np.abs(np.arange(-4, 4)))


INTRINSIC_VALUES = [("exp", np.exp, 0.5), ("exp2", np.exp2, 1.5), ("exp10", lambda x: 10 ** x, 0.5), ("log", np.log, 0.5), ("log2", np.log2, 0.5), ("log10", np.log10, 0.5), ("log1p", np.log1p, 0.5), ("tanh", np.tanh, 0.5), ("sin", np.sin, 0.5),
                    ("cos", np.cos, 0.5), ("tan", np.tan, 0.5), ("atan", np.arctan, 0.5), ("asin", np.arcsin, 0.5), ("acos", np.arccos, 0.5), ("sinh", np.sinh, 0.5), ("cosh", np.cosh, 0.5), ("asinh", np.arcsinh, 0.5),
                    ("acosh", np.arccosh, 1.5), ("atanh", np.arctanh, 0.5), ("sqrt", np.sqrt, 0.5), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.5), ("nearbyint", np.rint, 2.5), ("round", np.round, 1.7), ("trunc", np.trunc, -1.7)]


@program(*INTRINSIC_VALUES)
def unary_intrinsics(name, reference, around):
    m = te.var("m")
    a = te.placeholder((m,), name="A")
    b = te.compute((m,), lambda *i: getattr(tvm.tir, name)(a(*i)), name="B")
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    x = (around + np.linspace(-0.3, 0.3, 10)).astype("float32")
    out = tvm.nd.array(np.zeros(10, "float32"))
    f(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), reference(x), rtol=1e-4, atol=1e-5)


@program(("atan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign), ("nextafter", np.nextafter), ("power", np.power), ("ldexp", None), ("fmod", np.fmod))
def binary_intrinsics(name, reference):
    a, b = te.placeholder((10,), name="A"), te.placeholder((10,), "int32" if name == "ldexp" else "float32", name="B")
    c = te.compute((10,), lambda i: getattr(tvm.tir, name)(a[i], b[i]), name="C")
    f = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm")
    x, y = np.linspace(0.5, 2, 10).astype("float32"), (np.arange(10).astype("int32") if name == "ldexp" else np.linspace(-2, 1.9, 10).astype("float32"))
    out = tvm.nd.array(np.zeros(10, "float32"))
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), np.ldexp(x, y) if reference is None else reference(x, y), rtol=1e-4)
