# SPDX-License-Identifier: Apache-2.0
"""Parts of the loop IR: buffers, kinds of loops, axes, containers, folded numbers."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir, topi, runtime
from tvm.relay import transform
from tvm.relay.testing import run_infer_type
import numpy as np, json
import tvm, tvm.testing


@program
def buffer_strides_and_data():
    n = te.size_var("n")
    b = tir.decl_buffer((n, 4), "float32", name="b", strides=[8, 1], elem_offset=tir.const(2, "int32"))
    assert [int(s) if isinstance(s, int) else s for s in b.strides] == [8, 1] and b.name == "b" and (b.elem_offset == 2) or b.elem_offset.value == 2
    assert b.data.name == "b"
    assert str(b.data.dtype) == "handle"


@program
def buffer_broadcast_map():
    A = te.placeholder((4,), name="A")
    B = te.placeholder((4, 4), name="B")
    C = te.compute((4, 4), lambda i, j: A[j] + B[i, j])
    f = tvm.build(te.create_schedule(C.op), [A, B, C], "llvm")
    a, b = (numbers(4), numbers(4, 4))
    c = tvm.nd.empty((4, 4))
    f(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a + b, rtol=1e-06)


@program
def for_kinds():
    x = te.var("i")
    nop = tir.Evaluate(0)
    for k in (tir.ForKind.SERIAL, tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED):
        assert tir.For(x, 0, 4, k, nop).kind == k


@program
def for_annotations():
    f = tir.For(te.var("i"), 0, 4, tir.ForKind.SERIAL, tir.Evaluate(0), None, {"pragma_x": 1})
    assert f.annotations["pragma_x"] == 1


@program
def seq_flatten():
    s = tir.stmt_seq(tir.Evaluate(tir.call_extern("int32", "a")), tir.Evaluate(tir.call_extern("int32", "b")))
    assert isinstance(s, tir.SeqStmt)
    assert len(s) == 2
    assert len(tir.stmt_list(s)) == 2


@program
def var_equality_names():
    a, b = (te.var("a"), te.var("a"))
    assert not a == b
    assert a == a
    assert a.same_as(a)
    assert not a.same_as(b)
    assert a.name == b.name
    assert hash(a) != hash(b)


@program
def expr_hash_in_dict():
    x = te.var("x")
    d = {x: 1}
    assert d[x] == 1
    assert x in d


@program
def min_max_types():
    assert tir.min_value("int8").value == -128
    assert tir.max_value("uint16").value == 65535
    assert tir.max_value("float16").value > 60000


@program
def cast_ops():
    x = te.var("x")
    assert x.astype("float32").dtype == "float32"
    assert x.astype("int64").astype("int32").dtype == "int32"
    c = tir.const(3, "int32").astype("float32")
    assert float(c) == 3.0 if isinstance(c, float) else c.value == 3.0


@program
def lower_function_attrs():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    f = te.create_prim_func([A, B])
    g = f.with_attr("tir.noalias", True)
    assert g.attrs["tir.noalias"]
    h = g.with_attr({"a": 1, "b": "c"})
    assert h.attrs["a"] == 1
    assert h.attrs["b"] == "c"
    assert "a" not in h.without_attr("a").attrs


@program
def module_update_and_getitem():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    f = te.create_prim_func([A, B])
    m = tvm.IRModule({"f": f})
    m["g"] = f
    assert sorted((getattr(g, "name_hint", g) for g in m.get_global_vars())) == ["f", "g"]
    gv = [g for g in m.get_global_vars() if g.name_hint == "g"][0]
    assert m[gv] is not None


@program
def structural_equal_prim_expr_kinds():
    x = te.var("x")
    assert tvm.ir.structural_equal(tir.max(x, 1), tir.max(x, 1))
    assert not tvm.ir.structural_equal(tir.max(x, 1), tir.min(x, 1))
    assert not tvm.ir.structural_equal(tir.const(1, "int32"), tir.const(1, "int64"))
    assert tvm.ir.structural_equal(tir.StringImm("a"), tir.StringImm("a"))


@program
def deep_containers_equal():
    a = tvm.runtime.convert({"x": [1, {"y": 2}]})
    b = tvm.runtime.convert({"x": [1, {"y": 2}]})
    c = tvm.runtime.convert({"x": [1, {"y": 3}]})
    assert tvm.ir.structural_equal(a, b)
    assert not tvm.ir.structural_equal(a, c)


@program
def pointer_type_var():
    v = tir.Var("p", ir.PointerType(ir.PrimType("int8"), "shared"))
    assert v.type_annotation.element_type.dtype == "int8"
    assert v.type_annotation.storage_scope == "shared"
    assert v.dtype == "handle"


@program
def prim_type_eq():
    assert ir.PrimType("int32") == ir.PrimType("int32")
    assert ir.PrimType("int32") != ir.PrimType("int8")
    assert ir.PointerType(ir.PrimType("int32")) == ir.PointerType(ir.PrimType("int32"))


@program
def tuple_type_of_prims():
    t = ir.TupleType([ir.TupleType([]), relay.TensorType((1,))])
    assert len(t.fields) == 2


@program
def range_errors():
    with refusing((TypeError, ValueError)):
        ir.Range("a", "b")


@program
def iter_var_types():
    iv = tir.IterVar((0, 4), "i", 0)
    assert iv.dom.extent.value == 4
    assert iv.var.name == "i"
    assert iv.iter_type == 0
    t = tir.IterVar(None, "threadIdx.x", 1, "threadIdx.x")
    assert t.thread_tag == "threadIdx.x"


@program
def comm_reducer_use():
    k = te.reduce_axis((0, 8), "k")
    A = te.placeholder((8,), name="A")
    r = te.comm_reducer(lambda a, b: tir.max(a, b), lambda t: tir.min_value(t), name="mymax")
    B = te.compute((1,), lambda i: r(A[k], axis=k))
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    a = numbers(8)
    b = tvm.nd.empty((1,))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.numpy()[0], a.max())


@program
def arith_fold_floats():
    f = tir.const(1.5, "float32")
    assert (f + 1).value == 2.5
    assert (2 * f).value == 3.0
    assert (f / 2).value == 0.75
    assert (f - 0.5).value == 1.0
    assert (f + 1).dtype == "float32"


@program
def int_compare_results():
    a, b = (tir.const(3, "int32"), tir.const(4, "int32"))
    assert bool(a < b)
    assert not bool(a > b)
    assert (a < b).dtype in ("bool", "uint1")
    assert (a <= b).value == 1
