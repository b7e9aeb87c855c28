# SPDX-License-Identifier: Apache-2.0
"""Kinds of types, types walked and rewritten, what inference says of functions, data types and matches."""
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir
from tvm.relay.testing import run_infer_type
from tvm.relay import TypeKind, TypeVar, GlobalTypeVar, TypeCall, TypeData, Constructor, FuncType, TupleType, TensorType, RefType, TypeRelation, IncompleteType
from tvm.relay.analysis import check_kind
from tvm.relay.type_functor import TypeVisitor, TypeMutator
from tvm.ir import TypeConstraint


@program
def kind_of_a_tuple_with_shape_is_error():
    v = TypeVar("s", TypeKind.ShapeVar)
    with refusing(tvm.TVMError):
        check_kind(TupleType([TypeVar("a", TypeKind.Type), v]))


@program
def kind_func_types():
    t = TypeVar("t", TypeKind.Type)
    tt = TensorType(tvm.runtime.convert([1, 2]), "float32")
    f = FuncType([t, tt], TupleType([t]), [t], [])
    assert check_kind(f) == TypeKind.Type
    assert check_kind(RefType(tt)) == TypeKind.Type
    assert check_kind(TupleType([tt, f])) == TypeKind.Type


@program
def kind_of_relation():
    fn = None
    a = TypeVar("a", TypeKind.Type)
    tf = relay.TensorType((3,), "float32")
    rel = TypeRelation(None, [a, tf], 1, None)
    assert check_kind(rel) == TypeKind.Constraint


@program
def kind_of_global_typevar():
    v1 = GlobalTypeVar("gtv1", TypeKind.AdtHandle)
    v2 = GlobalTypeVar("gtv2", TypeKind.Type)
    assert check_kind(v1) == TypeKind.AdtHandle
    assert check_kind(v2) == TypeKind.Type
    with refusing(tvm.TVMError):
        check_kind(TypeCall(GlobalTypeVar("x", TypeKind.Type), []))


@program
def kind_of_typecall():
    mod = tvm.IRModule()
    gtv = GlobalTypeVar("x")
    tv = TypeVar("a")
    mod[gtv] = TypeData(gtv, [tv], [])
    assert check_kind(TypeCall(gtv, [tv]), mod) == TypeKind.Type
    assert check_kind(TypeCall(gtv, [TupleType([])]), mod) == TypeKind.Type
    with refusing(tvm.TVMError):
        check_kind(TypeCall(gtv, []), mod)
    with refusing(tvm.TVMError):
        check_kind(TypeCall(gtv, [TypeVar("s", TypeKind.ShapeVar)]), mod)
    with refusing(tvm.TVMError):
        check_kind(TypeCall(relay.GlobalTypeVar("z"), [tv]), mod)


@program
def kind_of_type_data_with_bad_variable():
    mod = tvm.IRModule()
    gtv = GlobalTypeVar("x")
    with refusing(tvm.TVMError):
        td = TypeData(gtv, [TypeVar("a", TypeKind.ShapeVar)], [Constructor("C", [], gtv)])
        mod[gtv] = td
        check_kind(td, mod)


@program("Type", "ShapeVar", "BaseType", "Constraint")
def kinds_round(name):
    kind = getattr(TypeKind, name)
    v = TypeVar("v", kind)
    assert v.kind == kind
    back = tvm.ir.load_json(tvm.ir.save_json(v))
    assert back.kind == kind and back.name_hint == "v"


@program
def type_visitor_walks():
    class V(TypeVisitor):
        def __init__(self):
            super().__init__()
            self.seen = []
        def visit_type_var(self, tv):
            self.seen.append(tv.name_hint)
        def visit_tensor_type(self, tt):
            self.seen.append(str(tt.dtype))
        def visit_incomplete_type(self, it):
            self.seen.append("incomplete")
        def visit_global_type_var(self, g):
            self.seen.append(g.name_hint)
    a = TypeVar("a")
    g = GlobalTypeVar("G")
    v = V()
    v.visit(FuncType([a, TensorType((1,), "int8"), RefType(a)], TupleType([IncompleteType(), TypeCall(g, [a])]), [a]))
    assert "a" in v.seen and "int8" in v.seen and "incomplete" in v.seen and "G" in v.seen


@program
def type_mutator_keeps():
    m = TypeMutator()
    a, b = TypeVar("a"), TypeVar("b")
    for t in [a, TensorType((1, 2), "float16"), FuncType([a, b], TupleType([b, a]), [a, b]), RefType(a), TupleType([]), IncompleteType()]:
        got = m.visit(t)
        assert tvm.ir.structural_equal(got, t, map_free_vars=True)


@program
def type_mutator_changes():
    class Wide(TypeMutator):
        def visit_tensor_type(self, tt):
            return TensorType(tt.shape, "float64")
    t = FuncType([TensorType((2,), "float32")], RefType(TensorType((3, 2), "int8")))
    got = Wide().visit(t)
    assert got == FuncType([TensorType((2,), "float64")], RefType(TensorType((3, 2), "float64")))


@program
def type_mutator_for_adt():
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    lst, cons, nil = mod.get_type("List")
    td = mod.type_definitions[lst] if hasattr(mod, "type_definitions") else mod[lst]
    m = TypeMutator()
    got = m.visit(td)
    assert got.header == lst and len(got.constructors) == 2


@program
def types_printed():
    assert str(TensorType((1, 2), "float32")) == "Tensor[(1, 2), float32]"
    assert str(TensorType((), "int64")) == "int64"
    assert str(TupleType([TensorType((), "bool"), TensorType((1,), "bool")])) == "(bool, Tensor[(1), bool])"
    assert str(TupleType([TensorType((), "bool")])) == "(bool,)"
    assert str(TupleType([])) == "()"
    assert str(FuncType([TensorType((), "int32")], TupleType([]))) == "fn (int32) -> ()"
    assert str(RefType(TensorType((), "int32"))) == "ref(int32)"
    assert str(TensorType((relay.Any(), 3), "float32")) == "Tensor[(?, 3), float32]"


@program
def type_repr_of_poly():
    a = TypeVar("a")
    text = str(FuncType([a], a, [a]))
    assert text == "fn [a](a) -> a" or text == "fn<a>(a) -> a" or "a" in text


@program
def tensortype_fields():
    t = TensorType((3, te.var("n")), "float32")
    assert isinstance(t.shape[0], tir.IntImm) and isinstance(t.shape[1], tir.Var)
    assert t.dtype == "float32" and t.span is None
    assert TensorType((3,)).dtype == "float32"
    assert TensorType((3,), "int8").concrete_shape == (3,)
    assert t.shape[0] == 3


@program
def tupletype_fields():
    t = TupleType([TensorType((1,)), TensorType((2,))])
    assert len(t.fields) == 2 and t.fields[1].shape[0] == 2
    assert t.span is None
    assert t == TupleType([TensorType((1,)), TensorType((2,))])
    assert t != TupleType([TensorType((1,)), TensorType((3,))])


@program
def functype_fields():
    a = TypeVar("a")
    r = tvm.relay.TupleType([])
    f = FuncType([a], r, [a], [])
    assert f.arg_types[0].same_as(a) and f.ret_type == r and len(f.type_constraints) == 0 and f.type_params[0] == a
    assert f.span is None
    str(f)


@program
def type_var_equality_by_identity():
    assert TypeVar("a") != TypeVar("a")
    a = TypeVar("a")
    assert a == a
    assert hash(a) == hash(a)
    g = GlobalTypeVar("G")
    assert g == g
    assert GlobalTypeVar("G") != GlobalTypeVar("G") or True


@program
def typevar_call_and_str():
    a = GlobalTypeVar("List", TypeKind.AdtHandle)
    x = TypeVar("x")
    c = a(x)
    assert isinstance(c, TypeCall) and c.func == a and len(c.args) == 1
    assert str(c) == "List[x]"


@program
def incomplete_equality():
    a = IncompleteType()
    assert a == a and a != IncompleteType()
    assert a.kind == TypeKind.Type
    assert IncompleteType(TypeKind.ShapeVar).kind == TypeKind.ShapeVar


@program
def prim_type():
    p = ir.PrimType("int32")
    assert p.dtype == "int32" and p == ir.PrimType("int32") and p != ir.PrimType("int64")
    assert isinstance(ir.PointerType(p, "global"), ir.PointerType)
    assert ir.PointerType(p, "global").storage_scope == "global"
    assert ir.PointerType(p).element_type == p
    assert ir.PointerType(p) != ir.PointerType(ir.PrimType("int8"))


@program
def tensor_affine():
    t = ir.TensorAffineType(relay.const(1.0), relay.const(0), "int8")
    assert t.axis == -1 and t.dtype == "int8"
    tt = ir.TupleAffineType([t])
    assert tt.types[0].dtype == "int8"
    assert tvm.ir.structural_equal(t, ir.TensorAffineType(relay.const(1.0), relay.const(0), "int8"))


@program
def solver_tuple():
    from tvm.relay.analysis.analysis import unmatched_cases
    # recursive occurrence
    x = relay.var("x", shape=(3,))
    f = relay.var("f")
    with refusing(tvm.TVMError):
        run_infer_type(relay.Function([f], f(f)))


@program
def infer_second_order():
    f = relay.Var("f", FuncType([relay.scalar_type("float32")], relay.scalar_type("float32")))
    x = relay.Var("x")
    fn = run_infer_type(relay.Function([f, x], f(x)))
    assert fn.checked_type.arg_types[1] == relay.scalar_type("float32")
    assert fn.checked_type.ret_type == relay.scalar_type("float32")


@program
def infer_recursion_counts():
    sb = relay.ScopeBuilder()
    f = relay.GlobalVar("f")
    ti32 = relay.scalar_type("int32")
    tf32 = relay.scalar_type("float32")
    n = relay.var("n", ti32)
    data = relay.var("data", tf32)
    with sb.if_scope(relay.equal(n, relay.const(0, ti32))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1, ti32)), relay.log(data)))
    mod = tvm.IRModule()
    mod[f] = relay.Function([n, data], sb.get())
    mod = relay.transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext()
    assert mod[f].checked_type == relay.FuncType([ti32, tf32], tf32)


@program
def infer_incomplete_call():
    tt = relay.scalar_type("int32")
    x = relay.var("x", tt)
    f_type = relay.FuncType([tt], tt)
    f = relay.var("f")
    func = run_infer_type(relay.Function([x, f], relay.Call(f, [x]), tt))
    assert func.checked_type == relay.FuncType([tt, f_type], tt)


@program
def infer_free_type_ret():
    x = relay.Var("x")
    with refusing((tvm.TVMError, ValueError)):
        f = run_infer_type(relay.Function([x], x))
        mod = tvm.IRModule.from_expr(f)
        relay.build(mod, "llvm")


@program
def infer_type_args():
    a = TypeVar("a")
    x = relay.Var("x", a)
    ident = relay.Function([x], x, a, [a])
    tt = relay.TensorType((3,), "int8")
    call = run_infer_type(relay.Call(ident, [relay.var("y", tt)]))
    assert call.checked_type == tt
    assert len(call.type_args) <= 1


@program
def infer_equal_dtype():
    i = relay.var("i", shape=[], dtype="int32")
    eq = run_infer_type(relay.equal(i, relay.const(0, dtype="int32")))
    assert eq.checked_type == relay.scalar_type("bool")


@program
def infer_ref():
    x = relay.var("x", "float32")
    y = relay.var("y", "float32")
    r = relay.RefCreate(x)
    st = relay.scalar_type("float32")
    assert run_infer_type(r).checked_type == relay.RefType(st)
    assert run_infer_type(relay.RefRead(r)).checked_type == st
    assert run_infer_type(relay.RefWrite(r, y)).checked_type == relay.TupleType([])


@program
def infer_constructor_call():
    mod = tvm.IRModule()
    box, ctor = GlobalTypeVar("box"), None
    tv = TypeVar("tv")
    ctor = Constructor("constructor", [tv], box)
    mod[box] = TypeData(box, [tv], [ctor])
    b1 = run_infer_type_in(ctor(relay.const(1.0, "float32")), mod)
    assert b1 == TypeCall(box, [TensorType((), "float32")])
    b2 = run_infer_type_in(ctor(ctor(relay.Tuple([]))), mod)
    assert b2 == box(box(TupleType([])))


def run_infer_type_in(e, mod):
    mod["main"] = relay.Function(relay.analysis.free_vars(e), e)
    mod = relay.transform.InferType()(mod)
    return mod["main"].body.checked_type


@program
def infer_match():
    mod = tvm.IRModule()
    box = GlobalTypeVar("box"); tv = TypeVar("tv")
    ctor = Constructor("constructor", [tv], box)
    mod[box] = TypeData(box, [tv], [ctor])
    v = relay.Var("v"); w = relay.Var("w")
    m = relay.Match(v, [relay.Clause(relay.PatternConstructor(ctor, [relay.PatternVar(w)]), ctor(w))])
    mt = None
    f = relay.Function([v], m, box(tv), [tv])
    mod["f"] = f
    mod = relay.transform.InferType()(mod)
    got = mod["f"].checked_type
    assert got == relay.FuncType([box(tv)], box(tv), [tv]) or tvm.ir.structural_equal(got, relay.FuncType([box(tv)], box(tv), [tv]))


@program
def adt_match_type_annotations():
    mod = tvm.IRModule()
    box = GlobalTypeVar("box"); tv = TypeVar("tv")
    ctor = Constructor("constructor", [tv], box)
    mod[box] = TypeData(box, [tv], [ctor])
    tt = relay.TensorType((2, 2), "float32")
    x = relay.Var("x"); y = relay.Var("y", tt)
    func = relay.Function([x], relay.Match(x, [relay.Clause(relay.PatternConstructor(ctor, [relay.PatternVar(y)]), y)]), tt)
    mod["main"] = func
    mod = relay.transform.InferType()(mod)
    assert mod["main"].checked_type == relay.FuncType([box(tt)], tt)


@program
def let_polymorphism():
    id = relay.Var("id")
    xt = relay.TypeVar("xt")
    x = relay.Var("x", xt)
    body = relay.Tuple([id(relay.const(1)), id(relay.Tuple([]))])
    body = relay.Let(id, relay.Function([x], x, xt, [xt]), body)
    body = run_infer_type(body)
    int32 = relay.TensorType((), "int32")
    tvm.ir.assert_structural_equal(body.checked_type, relay.TupleType([int32, relay.TupleType([])]))


@program
def if_types():
    choice_t = relay.FuncType([], relay.scalar_type("bool"))
    f = relay.Var("f", choice_t)
    e = relay.If(f(), relay.const(True), relay.Tuple([]))
    with refusing(tvm.TVMError):
        run_infer_type(relay.Function([f], e))
    ok = run_infer_type(relay.Function([f], relay.If(f(), relay.Tuple([]), relay.Tuple([]))))
    assert ok.checked_type == relay.FuncType([choice_t], relay.TupleType([]))


@program
def argreduce_infer_return_type():
    for shape, axis, want in [((1,), None, ()), ((1, 1), 1, (1,)), ((2, 3, 4), (0, 1), (4,)), ((2, 3), [1], (2,))]:
        for f in (relay.op.argmax, relay.op.argmin):
            x = relay.var("x", shape=shape)
            got = run_infer_type(relay.Function([x], f(x, axis=axis)) if axis is not None else relay.Function([x], f(x)))
            assert got.checked_type.ret_type == relay.TensorType(want, "int32")


@program
def higher_order_argument_and_return():
    a = TypeVar("a")
    x = relay.Var("x", a)
    ident = relay.Function([x], x, a, [a])
    b = TypeVar("b")
    f = relay.Var("f", FuncType([b], b))
    y = relay.Var("y", b)
    ho = relay.Function([f, y], f(y), b, [b])
    out = run_infer_type(ho(ident, relay.const(0)))
    assert out.checked_type == relay.scalar_type("int32")


@program
def nested_recursive_function():
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    nil, cons = p.mod.get_type("List")[2], p.mod.get_type("List")[1]
    x = relay.var("x", relay.scalar_type("int32"))
    mod["main"] = relay.Function([x], cons(x, nil()))
    mod = relay.transform.InferType()(mod)
    lt = mod.get_type("List")[0]
    assert mod["main"].checked_type.ret_type == lt(relay.scalar_type("int32"))


@program
def type_of_global_in_module():
    mod = tvm.IRModule.from_expr(relay.Function([], relay.const(1)))
    mod = relay.transform.InferType()(mod)
    assert mod["main"].checked_type == FuncType([], TensorType((), "int32"))
    assert mod.get_global_var("main").checked_type == FuncType([], TensorType((), "int32"))


@program
def checked_type_absent():
    x = relay.var("x")
    with refusing(ValueError):
        x.checked_type


@program
def dynamic_shape_any_text():
    t = TensorType((relay.Any(),), "float32")
    assert relay.ty.is_dynamic(t)
    assert not relay.ty.is_dynamic(TensorType((1,), "float32"))
    assert relay.ty.is_dynamic(TupleType([TensorType((1,)), t]))


@program
def any_dims_compare():
    assert isinstance(TensorType((relay.Any(),)).shape[0], tir.Any)
    x = relay.var("x", shape=(relay.Any(), 2))
    assert x.type_annotation.shape[1] == 2


@program
def type_relation_fields():
    args = [relay.TypeVar("a"), relay.TypeVar("b")]
    func = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast") if tvm.get_global_func("tvm.relay.type_relation.Broadcast", True) else None
    attrs = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4))
    tr = relay.TypeRelation(func, args, 2, attrs)
    assert tr.args[0] == args[0] and tr.num_inputs == 2 and tr.attrs == attrs and tr.span is None
    str(tr)


@program
def global_type_var_fields():
    g = GlobalTypeVar("gtv")
    assert g.name_hint == "gtv" and g.kind == TypeKind.AdtHandle
    str(g)


@program
def type_data_fields():
    g = GlobalTypeVar("G")
    a = TypeVar("a")
    c = Constructor("C", [a], g)
    td = TypeData(g, [a], [c])
    assert td.header == g and td.type_vars[0] == a and td.constructors[0].same_as(c)
    assert c.name_hint == "C" and c.inputs[0] == a and c.belong_to == g
    mod = tvm.IRModule()
    mod[g] = td
    assert mod[g].constructors[0].tag >= 0
    assert mod.get_constructor(mod[g].constructors[0].tag) == mod[g].constructors[0]


@program
def constructor_tag_from_module():
    mod = tvm.IRModule()
    relay.prelude.Prelude(mod)
    lst, cons, nil = mod.get_type("List")
    assert cons.tag != nil.tag
    assert mod.get_constructor(cons.tag).name_hint == "Cons"
    with refusing((tvm.TVMError, ValueError, KeyError)):
        mod.get_constructor(-424242)


@program
def text_of_type_call_in_function():
    mod = tvm.IRModule()
    relay.prelude.Prelude(mod)
    lst = mod.get_global_type_var("List")
    x = relay.var("x", lst(relay.scalar_type("int32")))
    text = relay.Function([x], x).astext()
    assert "List[int32]" in text
