# SPDX-License-Identifier: Apache-2.0
"""Type inference, functors of types, and operators of memory and of the machine."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, tir
from tvm.ir import IRModule, GlobalVar
from tvm.relay import transform
from tvm.relay.testing import run_infer_type
from tvm.relay.ty import TypeVar, FuncType, TupleType, TensorType, GlobalTypeVar, TypeCall, RelayRefType as RefType
from tvm.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor
from tvm.relay.adt import TypeData, Constructor, Match, Clause, PatternConstructor, PatternVar, PatternWildcard

from harness import program, raises, numbers


eq = tvm.ir.assert_structural_equal


# ---- functors of types
@program
def visited_types():
    kinds = [TypeVar("A"), relay.IncompleteType(), TensorType((2,)), FuncType([TypeVar("A")], TypeVar("B")), TupleType([TensorType((1,)), TensorType((2,))]), RefType(TensorType((3,))), GlobalTypeVar("G"), TypeCall(GlobalTypeVar("G"), [TensorType((2,))])]

    class Seen(TypeVisitor):
        def __init__(self):
            self.seen = []

        def visit_tensor_type(self, t):
            self.seen.append(int(t.shape[0]))
            super().visit_tensor_type(t)
    v = Seen()
    for k in kinds:
        v.visit(k)
        eq(TypeMutator().visit(k), k)
    assert v.seen == [2, 1, 2, 3, 2]
    raises(NotImplementedError, TypeFunctor().visit, kinds[0])


@program
def rewritten_types():
    class Half(TypeMutator):
        def visit_tensor_type(self, t):
            return TensorType(t.shape, "float16")
    t = FuncType([TupleType([TensorType((2, 3)), RefType(TensorType((1,)))])], TensorType(()))
    got = Half().visit(t)
    assert got.arg_types[0].fields[0].dtype == "float16" and got.arg_types[0].fields[1].value.dtype == "float16" and got.ret_type.dtype == "float16"
    assert isinstance(got, FuncType)


@program
def rewritten_type_data():
    g, a = GlobalTypeVar("G"), TypeVar("a")
    d = TypeData(g, [a], [Constructor("C", [a, TensorType((2,))], g)])

    class V(TypeVisitor):
        n = 0

        def visit_type_var(self, t):
            self.n += 1
    v = V()
    v.visit(d)
    assert v.n >= 1
    eq(TypeMutator().visit(d), d)


# ---- inference
@program
def monomorphic_lets():
    sb = relay.ScopeBuilder()
    x = relay.var("x", dtype="float64", shape=())
    x = sb.let("x", relay.const(1.0, "float64"))
    sb.ret(x)
    xchecked = run_infer_type(sb.get())
    assert xchecked.checked_type == relay.scalar_type("float64")


@program
def dual_operators():
    x = relay.var("x", TensorType((10, 10)))
    sb = relay.ScopeBuilder()
    t1 = sb.let("t1", relay.log(x))
    t2 = sb.let("t2", relay.add(t1, x))
    sb.ret(t2)
    f = run_infer_type(relay.Function([x], sb.get()))
    assert f.checked_type == FuncType([TensorType((10, 10))], TensorType((10, 10)))


@program
def recursion_has_a_type():
    sb = relay.ScopeBuilder()
    f = GlobalVar("f")
    n, data = relay.var("n", shape=(), dtype="int32"), relay.var("data", shape=(), dtype="float32")
    with sb.if_scope(relay.equal(n, relay.const(0))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(n - relay.const(1), relay.log(data)))
    mod = IRModule()
    mod[f] = relay.Function([n, data], sb.get())
    mod = transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext()
    assert mod["f"].checked_type == FuncType([relay.scalar_type("int32"), relay.scalar_type("float32")], relay.scalar_type("float32"))


@program
def incomplete_calls():
    tt = relay.scalar_type("int32")
    x = relay.var("x", tt)
    f_type = FuncType([tt], tt)
    f = relay.var("f")
    func = relay.Function([x, f], relay.Call(f, [x]), tt)
    ft = run_infer_type(func)
    assert ft.checked_type == FuncType([tt, f_type], tt)
    a = TypeVar("a")
    b = relay.var("b", a)
    g = relay.Var("g")


@program
def higher_order_arguments():
    a = TypeVar("a")
    x = relay.Var("x", a)
    f = relay.Function([x], x, a, [a])
    b, f2 = TypeVar("b"), None
    y = relay.Var("y", b)
    f2 = relay.Function([y], y, b, [b])
    c = TypeVar("c")
    fv = relay.Var("f", FuncType([c], c))
    id_func = relay.Function([fv], fv, FuncType([c], c), [c])
    assert run_infer_type(f2).checked_type == FuncType([b], b, [b])
    t = run_infer_type(relay.Call(f, [relay.Tuple([])])).checked_type
    assert t == TupleType([])


@program
def global_functions_without_types():
    mod = tvm.parser.parse("""#[version = "0.0.5"]
def @id[A](%x: A) -> A { %x }
def @main() { (@id(1), @id(2f), @id((3, True))) }
""")
    mod = transform.InferType()(mod)
    fields = mod["main"].checked_type.ret_type.fields
    assert fields[0] == relay.scalar_type("int32") and fields[1] == relay.scalar_type("float32") and isinstance(fields[2], TupleType)
    assert mod["main"].body.fields[0].type_args[0] == relay.scalar_type("int32")


@program
def equal_sizes_by_name():
    n = te.var("n")
    x, y = relay.var("x", TensorType((n, 3))), relay.var("y", TensorType((n, 3)))
    assert run_infer_type(relay.add(x, y)).checked_type == TensorType((n, 3))
    assert run_infer_type(relay.Function([x, y], relay.concatenate([x, y], 0))).ret_type == TensorType((n + n, 3))
    m = te.var("m")
    z = relay.var("z", TensorType((m, 3)))


@program
def types_of_ifs_of_free_sizes():
    x, y, c = relay.var("x", TensorType((relay.Any(), 1))), relay.var("y", TensorType((1, 1))), relay.var("c", TensorType((), "bool"))
    t = run_infer_type(relay.Function([c, x, y], relay.If(c, x, y))).ret_type
    assert t.shape[1] == 1 and isinstance(t.shape[0], tir.Any)


@program
def return_types_are_checked():
    x = relay.var("x", shape=(2,))
    raises(tvm.TVMError, lambda: run_infer_type(relay.Function([x], x, TensorType((3,)))))
    raises(tvm.TVMError, run_infer_type, relay.Let(relay.var("y", TensorType((3,))), relay.const(np.zeros(2, "float32")), relay.const(1)))
    f = run_infer_type(relay.Function([x], x, TensorType((2,))))
    assert f.ret_type == TensorType((2,))


@program
def ill_typed_calls_of_constructors():
    mod = IRModule()
    box, tv = GlobalTypeVar("box"), TypeVar("tv")
    c = Constructor("constructor", [tv], box)
    mod[box] = TypeData(box, [tv], [c])
    mod["main"] = relay.Function([], relay.Call(c, [relay.const(1), relay.const(2)]))
    raises(tvm.TVMError, transform.InferType(), mod)
    mod2 = IRModule()
    mod2[box] = TypeData(box, [tv], [c])
    x = relay.var("x", TypeCall(box, [relay.scalar_type("int32")]))
    y = relay.var("y")
    mod2["main"] = relay.Function([x], Match(x, [Clause(PatternConstructor(c, [PatternVar(y)]), y)]))
    mod2 = transform.InferType()(mod2)
    assert mod2["main"].checked_type.ret_type == relay.scalar_type("int32")
    mod3 = IRModule()
    mod3[box] = TypeData(box, [tv], [c])
    mod3["main"] = relay.Function([x], Match(x, [Clause(PatternConstructor(c, [PatternVar(y), PatternWildcard()]), y)]))
    raises(tvm.TVMError, transform.InferType(), mod3)


@program
def dynamic_let_types():
    x = relay.var("x", TensorType((relay.Any(), 3)))
    y = relay.var("y", TensorType((relay.Any(), 3)))
    e = relay.Function([x], relay.Let(y, relay.nn.relu(x), relay.sum(y, axis=0)))
    assert run_infer_type(e).ret_type == TensorType((3,))


@program
def inferred_locally():
    f = relay.transform.InferTypeLocal
    x = relay.var("x", shape=(2, 3))
    t = transform.InferTypeLocal(relay.nn.softmax(x)) if f else TensorType((2, 3))
    assert t == TensorType((2, 3))
    t = transform.InferTypeLocal(relay.transpose(relay.nn.relu(x)))
    assert t == TensorType((3, 2))
    t = transform.InferTypeLocal(relay.split(x, 3, 1).astuple())
    assert len(t.fields) == 3


@program
def relations_that_scripts_write():
    """A relation of Python is asked, and may not know yet."""
    t = tvm.relay.testing.run_infer_type(relay.Call(relay.op.get("broadcast_to_like"), [relay.var("a", shape=(1,)), relay.var("b", shape=(3, 2))]))
    assert t.checked_type == TensorType((3, 2))
    func = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    assert func.name == "tvm.relay.type_relation.Broadcast"


@program
def sparse_types():
    x = relay.var("x", TensorType((1, 256), "float32"))
    d, i, p = relay.var("d", TensorType((16, 16, 1))), relay.var("i", TensorType((16,), "int32")), relay.var("p", TensorType((65,), "int32"))
    y = relay.nn.sparse_dense(x, (d, i, p))
    assert run_infer_type(y).checked_type == TensorType((1, 64 * 16))
    y = relay.nn.sparse_transpose((relay.var("d", shape=(4,)), relay.var("i", shape=(4,), dtype="int32"), relay.var("p", shape=(4,), dtype="int32")))
    assert len(run_infer_type(y.astuple()).checked_type.fields) == 3


@program
def sparse_products():
    class CSR:
        def __init__(self, dense):
            self.dense = dense
            rows = [np.flatnonzero(r) for r in dense]
            self.indices, self.indptr = np.concatenate(rows), np.cumsum([0, *map(len, rows)])
            self.data = np.concatenate([r[k] for r, k in zip(dense, rows)])
    w = CSR(numbers(16, 8) * (numbers(16, 8, seed=4) > 0.4))
    x = relay.var("x", shape=(3, 8))
    d, i, p = (relay.const(a) for a in (w.data, w.indices.astype("int32"), w.indptr.astype("int32")))
    f = relay.Function([x], relay.nn.sparse_dense(x, (d, i, p)))
    a = numbers(3, 8)
    np.testing.assert_allclose(relay.create_executor("graph").evaluate(f)(a).numpy(), a @ w.dense.T, rtol=1e-5, atol=1e-6)
    y = relay.var("y", shape=(16, 8))
    f = relay.Function([y], relay.nn.sparse_add(y, (d, i, p)))
    b = numbers(16, 8)
    np.testing.assert_allclose(relay.create_executor("graph").evaluate(f)(b).numpy(), b + w.dense, rtol=1e-5)


# ---- memory and machine operators
@program
def memory_operators_have_types():
    from tvm.relay.op import memory, vm
    size, align = relay.const(64, "int64"), relay.const(64, "int64")
    from tvm.target import VirtualDevice
    s = memory.alloc_storage(size, align, tvm.target.VirtualDevice(tvm.cpu()), "float32")
    st = run_infer_type(s).checked_type
    assert "Storage" in str(st)
    t = memory.alloc_tensor(s, relay.const(0, "int64"), relay.const([2, 3], "int64"), "float32", [2, 3])
    mod = IRModule()
    assert "memory.alloc_tensor" in t.astext() or "alloc_tensor" in str(t)
    x = relay.var("x", shape=(2, 3))
    r = vm.shape_of(x)
    assert run_infer_type(r).checked_type == TensorType((2,), "int64")


@program
def tensors_reshaped_by_a_machine():
    x, s = relay.var("x", shape=(2, 6)), relay.var("s", shape=(2,), dtype="int64")
    from tvm.relay.op import vm
    y = vm.reshape_tensor(x, s, [3, 4])
    assert run_infer_type(y).checked_type == TensorType((3, 4))
    mod = IRModule.from_expr(relay.Function([x, s], y))
    exe = relay.vm.compile(mod, "llvm")
    a = numbers(2, 6)
    out = tvm.runtime.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", a, np.array([3, 4]))
    np.testing.assert_allclose(out.numpy(), a.reshape(3, 4))


@program
def annotation_operators():
    x = relay.var("x", shape=(2,))
    for y in (relay.annotation.stop_fusion(x), relay.annotation.checkpoint(x), relay.annotation.on_device(x, tvm.cpu()), relay.annotation.on_device(x, "cpu", constrain_result=True), relay.annotation.compiler_begin(x, "c"), relay.annotation.compiler_end(x, "c"), relay.annotation.cast_hint(x, "int8")):
        assert run_infer_type(y).checked_type == TensorType((2,))
    y = relay.annotation.on_device(x, tvm.cpu(), constrain_body=False)
    assert relay.op.annotation.on_device(x, tvm.cpu()).attrs is not None
    b = relay.annotation.compiler_begin(x, "ext")
    assert b.attrs.compiler == "ext" and b.op.name == "annotation.compiler_begin"
    c = relay.op.device_copy(x, tvm.cpu(), tvm.cpu(0))
    assert c is None or c.op.name == "device_copy"
