# SPDX-License-Identifier: Apache-2.0
"""Together in one file: type inference, functors of types, the type solver's cases, prng, memory operators, loops, ADTs used in programs, annotation, debugging, JSON."""
import json
import sys
import numpy as np
import tvm
import tvm.testing
from harness import program, raises, numbers
from tvm import relay, te, tir
from tvm.ir import IRModule, GlobalVar
from tvm.relay import analysis, op, transform
from tvm.relay.analysis import Feature
from tvm.relay.testing import run_infer_type, run_opt_pass, create_workload
from tvm.relay.prelude import Prelude
from tvm.relay.ty import TypeVar, FuncType, TupleType, TensorType, GlobalTypeVar, TypeCall, RelayRefType as RefType
from tvm.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor
from tvm.relay.adt import TypeData, Constructor, Match, Clause, PatternConstructor, PatternVar, PatternWildcard, PatternTuple

eq = tvm.ir.assert_structural_equal


def ev(e, *args, mod=None, kind="debug"):
    return relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate(e)(*args) if args else relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate(e)


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


# ---- loops, ADTs
@program
def loops_of_python():
    from tvm.relay.loops import while_loop
    i = relay.var("i")
    def cond(i):
        return relay.less(i, relay.const(10))
    def body(i):
        return [i + relay.const(1)]
    loop = while_loop(cond, [relay.var("i", shape=(), dtype="int32")], body)
    r = ev(loop(relay.const(0)))
    r = r[0] if not hasattr(r, "numpy") else r
    assert r.numpy() == 10


@program
def dynamic_loops():
    from tvm.relay.loops import while_loop
    i, s = relay.var("i", shape=(), dtype="int32"), relay.var("s", shape=(relay.Any(), 2))
    loop = while_loop(lambda i, s: relay.less(i, relay.const(3)), [i, s], lambda i, s: [i + relay.const(1), relay.concatenate([s, s], 0)])
    x = relay.var("x", shape=(1, 2))
    f = relay.Function([x], relay.TupleGetItem(loop(relay.const(0), x), 1))
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind).evaluate(f)(np.ones((1, 2), "float32")).numpy().shape == (8, 2)


@program(*["hd", "tl", "nth", "update", "map", "foldl", "foldr", "foldr1", "sum", "concat", "filter", "zip", "rev", "map_accumr", "map_accuml", "unfoldl", "unfoldr", "tmap", "size", "iterate", "compose", "length", "id"])
def prelude_functions(name):
    mod = IRModule()
    p = Prelude(mod)
    assert mod.get_global_var(name).name_hint == name
    mod = transform.InferType()(mod)
    t = mod[name].checked_type
    assert isinstance(t, FuncType)
    assert name in p.mod.astext() and getattr(p, name, mod.get_global_var(name)) is not None


@program
def folds_of_lists():
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    g = mod.get_global_var

    def lst(*v):
        r = nil()
        for k in reversed(v):
            r = cons(relay.const(k), r)
        return r

    def out(v):
        r = []
        while v.tag == cons.tag:
            r.append(int(v.fields[0].numpy()))
            v = v.fields[1]
        return r
    x, y = relay.Var("x"), relay.Var("y")
    debug = lambda e: relay.create_executor("debug", mod=mod).evaluate(e)
    assert out(debug(g("concat")(lst(1, 2), lst(3)))) == [1, 2, 3]
    assert out(debug(g("rev")(lst(1, 2, 3)))) == [3, 2, 1]
    assert out(debug(g("filter")(relay.Function([x], relay.greater(x, relay.const(1))), lst(1, 2, 3)))) == [2, 3]
    assert debug(g("foldl")(relay.Function([x, y], x * relay.const(10) + y), relay.const(0), lst(1, 2, 3))).numpy() == 123
    assert debug(g("foldr")(relay.Function([x, y], y * relay.const(10) + x), relay.const(0), lst(1, 2, 3))).numpy() == 321
    assert debug(g("foldr1")(relay.Function([x, y], x - y), lst(10, 2, 3))).numpy() == 11
    assert debug(g("sum")(lst(1, 2, 3))).numpy() == 6
    assert out(debug(g("update")(lst(1, 2, 3), relay.const(1), relay.const(9)))) == [1, 9, 3]
    z = debug(g("zip")(lst(1, 2), lst(3, 4)))
    assert z.fields[0][0].numpy() == 1 and z.fields[0][1].numpy() == 3
    assert debug(g("iterate")(relay.Function([x], x + x), relay.const(3))(relay.const(1))).numpy() == 8
    assert debug(g("compose")(relay.Function([x], x + relay.const(1)), relay.Function([y], y * relay.const(2)))(relay.const(5))).numpy() == 11
    m = debug(g("map_accumr")(relay.Function([x, y], relay.Tuple([x + y, x * y])), relay.const(1), lst(1, 2, 3)))
    m2 = debug(g("map_accuml")(relay.Function([x, y], relay.Tuple([x + y, x * y])), relay.const(1), lst(1, 2, 3)))
    assert m[0].numpy() == 7 and m2[0].numpy() == 7
    # from the right: 3*1=3 (acc 4), 2*4=8 (acc 6), 1*6=6
    assert out(m[1]) == [6, 8, 3]
    # from the left: 1*1 (acc 2), 2*2 (acc 4), 3*4
    assert out(m2[1]) == [12, 4, 1]  # each goes before the earlier ones


@program
def options_and_trees():
    mod = IRModule()
    p = Prelude(mod)
    opt, some, none = mod.get_type("Option")
    tree, rose = mod.get_type("Tree")
    _, cons, nil = mod.get_type("List")
    g = mod.get_global_var
    debug = lambda e: relay.create_executor("debug", mod=mod).evaluate(e)
    v = debug(some(relay.const(3)))
    assert v.constructor.name_hint == "Some" and v.fields[0].numpy() == 3
    t = rose(relay.const(0), cons(rose(relay.const(1), nil()), nil()))
    assert debug(g("size")(t)).numpy() == 2
    x = relay.Var("x")
    r = debug(g("tmap")(relay.Function([x], x + relay.const(1)), t))
    assert r.fields[0].numpy() == 1 and r.fields[1].fields[0].fields[0].numpy() == 2
    i = relay.Var("i")
    u = debug(g("unfoldr")(relay.Function([i], relay.If(relay.greater(i, relay.const(0)), some(relay.Tuple([i - relay.const(1), i])), none())), relay.const(3)))
    assert u.fields[0].numpy() == 3


@program
def matches_bind_what_they_name():
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    v, h, t = relay.Var("v"), relay.Var("h"), relay.Var("t")
    f = relay.Function([v], Match(v, [Clause(PatternConstructor(cons, [PatternVar(h), PatternConstructor(cons, [PatternVar(t), PatternWildcard()])]), h * relay.const(10) + t), Clause(PatternWildcard(), relay.const(-1))]))
    debug = lambda e: relay.create_executor("debug", mod=mod).evaluate(e)
    assert debug(f(cons(relay.const(1), cons(relay.const(2), nil())))).numpy() == 12
    assert debug(f(cons(relay.const(1), nil()))).numpy() == -1
    a, b = relay.Var("a"), relay.Var("b")
    m = Match(relay.Tuple([relay.const(3), relay.const(4)]), [Clause(PatternTuple([PatternVar(a), PatternVar(b)]), a - b)])
    assert debug(m).numpy() == -1
    w = Match(nil(), [Clause(PatternConstructor(cons, [PatternWildcard(), PatternWildcard()]), relay.const(1))], complete=False)
    raises(Exception, debug, w)


# ---- debugging
@program
def prints_on_the_way():
    seen = []
    x = relay.var("x", shape=(2,))
    def callback(value):
        seen.append(value)
    f = relay.Function([x], relay.op.debug(x + relay.const(1.0), callback))
    out = relay.create_executor("debug").evaluate(f)(np.zeros(2, "float32"))
    np.testing.assert_allclose(out.numpy(), np.ones(2))
    assert len(seen) == 1
    r = relay.create_executor("debug").evaluate(relay.op.debug(relay.Tuple([relay.const(1), relay.const(2)])))
    assert r[0].numpy() == 1 and r[1].numpy() == 2


# ---- JSON
@program
def json_of_networks():
    mod, params = relay.testing.mlp.get_workload(1)
    text = tvm.ir.save_json(mod)
    eq(tvm.ir.load_json(text), mod)
    data = json.loads(text)
    assert data["root"] and data["nodes"] and "tvm_version" in data["attrs"]
    f = mod["main"]
    eq(tvm.ir.load_json(tvm.ir.save_json(f)), f)


@program
def json_of_all_nodes():
    x = relay.var("x", shape=(2, 3))
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    for n in (x, relay.const(1.5), relay.const(np.arange(6).reshape(2, 3)), relay.Tuple([x, x]), relay.RefCreate(x), relay.RefWrite(relay.RefCreate(x), x), relay.If(relay.const(True), x, x), cons(x, nil()), relay.GlobalVar("g"), relay.op.get("add"),
              te.var("i"), tir.const(1, "int8"), te.var("i") + 1, TensorType((te.var("n"), relay.Any())), tvm.tir.StringImm("s"), tvm.runtime.convert({"a": [1, 2], "b": "c"}), tvm.target.Target("llvm")):
        back = tvm.ir.load_json(tvm.ir.save_json(n))
        assert type(back) is type(n) or isinstance(back, type(n)), n
        assert tvm.ir.structural_equal(back, n, map_free_vars=True) or isinstance(n, (relay.GlobalVar, tvm.target.Target)), n


@program
def old_json():
    nodes = [{"type_key": ""}, {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "2"}}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in0"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.5.1"}, "b64ndarrays": []}
    tvar = tvm.ir.load_json(json.dumps(data))
    assert isinstance(tvar, tvm.ir.TypeVar) and tvar.name_hint == "in0"
    nodes[1]["type_key"] = "relay.GlobalTypeVar"
    tvar = tvm.ir.load_json(json.dumps(data))
    assert isinstance(tvar, tvm.ir.GlobalTypeVar) and tvar.name_hint == "in0"


@program
def old_json_of_names():
    nodes = [{"type_key": ""}, {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "span": "0", "type_annotation": "0", "vid": "2"}}, {"type_key": "relay.Id", "attrs": {"name_hint": "a3"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    v = tvm.ir.load_json(json.dumps(data))
    assert isinstance(v, relay.Var) and v.name_hint == "a3"
    nodes = [{"type_key": ""}, {"type_key": "relay.GlobalVar", "attrs": {"_checked_type_": "0", "name_hint": "x", "span": "0"}}]
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(v, GlobalVar) and v.name_hint == "x"
    nodes = [{"type_key": ""}, {"type_key": "relay.Op", "global_key": "nn.conv2d"}]
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert v == relay.op.get("nn.conv2d")
    nodes = [{"type_key": ""}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "x", "span": "0"}}, {"type_key": "SizeVar", "attrs": {"dtype": "int32", "name": "y", "span": "0"}}]
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(v, tir.Var) and v.name == "x"
    v = tvm.ir.load_json(json.dumps({"root": 2, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(v, tir.SizeVar)


@program
def old_json_of_types_and_strings():
    nodes = [{"type_key": ""}, {"type_key": "Map", "keys": ["z", "x"], "data": [2, 3]}, {"type_key": "IntImm", "attrs": {"dtype": "bool", "value": "1", "span": "0"}}, {"type_key": "Max", "attrs": {"a": "4", "b": "5", "dtype": "int32", "span": "0"}}, {"type_key": "Add", "attrs": {"a": "5", "b": "6", "dtype": "int32", "span": "0"}},
             {"type_key": "Add", "attrs": {"a": "6", "b": "7", "dtype": "int32", "span": "0"}}, {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": "7", "span": "0"}}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "2", "span": "0"}}, {"type_key": "runtime.String"}, {"type_key": "runtime.String", "repr_str": "x"}]
    nodes[6]["attrs"]["name"] = "9"
    v = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.9.0"}, "b64ndarrays": []}))
    assert "z" in v and "x" in v and v["z"].value == 1
    assert isinstance(v["x"], tir.Max)
    a = {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "2", "span": "0"}}, {"type_key": "Array", "data": [3]}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "4", "span": "0"}}], "attrs": {"tvm_version": "0.8.0"}, "b64ndarrays": []}
    assert tvm.ir.load_json(json.dumps(a)) == TensorType((4,))


# ---- module methods
@program
def modules_of_functions():
    x = relay.var("x", shape=(2,))
    mod = IRModule()
    f = relay.Function([x], x)
    mod["f"] = f
    g = mod.get_global_var("f")
    mod[GlobalVar("g")] = relay.Function([x], g(x))
    assert len(mod.functions) == 2 and [v.name_hint for v in mod.get_global_vars()] and "f" in [v.name_hint for v in mod.functions]
    assert mod["f"] == f or tvm.ir.structural_equal(mod["f"], f)
    other = IRModule()
    other["f"] = relay.Function([x], relay.exp(x))
    mod.update(other)
    assert mod["f"].body.op.name == "exp"
    raises(Exception, mod.get_global_var, "nope")
    raises(Exception, lambda: mod["nope"])
    mod.update_func(g, f)
    assert isinstance(mod["f"].body, relay.Var)
    m = IRModule.from_expr(relay.nn.relu(x))
    assert m["main"].params[0] == x
    m = IRModule.from_expr(relay.Function([x], g(x)), {g: f})
    assert len(m.functions) == 2
    m2 = m.shallow_copy()
    assert m.with_attr("k", 1).get_attr("k") == 1
    assert list(IRModule({GlobalVar("a"): f}).functions.keys())[0].name_hint == "a"


@program
def attributes_of_functions():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], x).with_attr("a", 1).with_attr("b", "two")
    assert f.attrs["a"] == 1 and f.attrs["b"] == "two" and "a" in f.attrs and "z" not in f.attrs
    f = f.with_attr("x", tvm.tir.IntImm("int32", 3))
    assert f.attrs["x"].value == 3
    assert f.without_attr("a").attrs is not None
    assert len(f.attrs.keys()) == 3 and dict(f.attrs.items())["b"] == "two"
    g = relay.Function([x], x, attrs=tvm.ir.make_node("DictAttrs", Primitive=1))
    assert g.attrs.Primitive == 1 and "Primitive=1" in g.astext()
    assert tvm.ir.structural_equal(f, relay.Function([x], x).with_attr("x", 3).with_attr("b", "two").with_attr("a", 1))


@program
def calls_of_expressions():
    x = relay.var("x", shape=(3, 3))
    assert (x + 1.0).op.name == "add" and (1.0 - x).op.name == "subtract" and (x * 2.0).args[1].data.numpy() == 2 and (2.0 / x).op.name == "divide" and (-x).op.name == "negative"
    assert (x < relay.const(1.0)).op.name == "less" and (x >= relay.const(1.0)).op.name == "greater_equal"
    assert x.astype("int8").op.name == "cast"
    t = relay.Tuple([x, x])
    assert t[1].index == 1 if isinstance(t[1], relay.TupleGetItem) else t[1] == x
    assert len(t) == 2 and t.astype
    raises((TypeError, Exception), lambda: t.astype("int8"))
    f = relay.GlobalVar("f")
    assert f(x).op.same_as(f) and isinstance(f(x), relay.Call)
    split = relay.split(x, 3, axis=1)
    assert isinstance(split, relay.expr.TupleWrapper) and len(split) == 3 and split.size == 3 and isinstance(split[0], relay.TupleGetItem)
    a, b, c = split
    raises(IndexError, lambda: split[3])
    assert relay.op.op.get("add")(x, x).op.name == "add"
    assert relay.expr.const([1, 2]).data.dtype in ("int32", "int64") and relay.const(1.0).data.dtype == "float32" and relay.const(True).data.dtype == "bool" and relay.const(np.float64(1.0)).data.dtype in ("float64", "float32")
    raises(ValueError, relay.const, "text")
    v = relay.var("v", shape=(2,), dtype="int8")
    raises(ValueError, relay.var, "v", relay.TensorType((2,)), (2,))
    assert relay.var("y", "int32").type_annotation == relay.scalar_type("int32")
    assert relay.var("v").type_annotation is None


@program(("int32", [1, 2]), ("int64", np.array([1, 2])), ("float32", [1.0]), ("bool", np.array([True])), ("float64", np.array([0.5])), ("float16", np.array([0.5], "float16")), ("uint8", np.array([5], "uint8")))
def constants_keep_their_dtype(dtype, value):
    assert relay.const(value).data.dtype == dtype or (isinstance(value, list) and dtype in ("int32", "float32"))
    assert relay.const(value, "int8").data.dtype == "int8"
    assert relay.const(tvm.nd.array(np.asarray(value))).data.numpy().tolist() == np.asarray(value).tolist()


@program
def scopes_built():
    sb = relay.ScopeBuilder()
    c = relay.var("c", "bool")
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    with sb.if_scope(c):
        one = relay.const(1.0)
        t = sb.let("t", relay.add(one, x))
        sb.ret(t)
    with sb.else_scope():
        sb.ret(relay.add(y, relay.const(2.0)))
    e = sb.get()
    assert isinstance(e, relay.If) and isinstance(e.true_branch, relay.Let)
    assert relay.create_executor("debug").evaluate(relay.Function([c, x, y], e))(np.array(True), np.array(5.0, "float32"), np.array(0.0, "float32")).numpy() == 6
    sb = relay.ScopeBuilder()
    v = sb.let(relay.var("v"), relay.const(1))
    sb.ret(v)
    raises(RuntimeError, sb.ret, v)
    sb = relay.ScopeBuilder()
    ty = sb.type_of(relay.const(1.0))


@program
def errors_of_python_users():
    raises(Exception, lambda: relay.nn.conv2d())
    raises(ValueError, lambda: relay.concatenate([], 0))
    x = relay.var("x", shape=(2,))
    raises((ValueError, TypeError, Exception), lambda: relay.TensorType((2,), "no_such_type") and relay.var("z", relay.TensorType((2,), "nosuch")))
    raises(AttributeError, lambda: x.no_such_field)
    e = raises(tvm.TVMError, run_infer_type, relay.add(x, relay.var("y", shape=(3,))))
    assert "add" in str(e) or "broadcast" in str(e).lower() or "Incompatible" in str(e)
