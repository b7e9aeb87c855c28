# SPDX-License-Identifier: Apache-2.0
"""Programs as text: literals, types, data types, imports, attributes, mistakes."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir
from tvm.relay import transform
from tvm.relay.testing import run_infer_type, run_opt_pass
import numpy as np
import tvm


V = '#[version = "0.0.5"]\n'


def parse_text(code):
    e = tvm.parser.parse_expr(code)
    tvm.parser.parse_expr(e.astext())
    return e


def parses_as(code, expr):
    e = parse_text(code)
    assert tvm.ir.structural_equal(e, expr, map_free_vars=True), (e, expr)


def parse_module(code):
    m = tvm.parser.parse(V + code)
    again = tvm.parser.parse(m.astext())
    tvm.ir.assert_structural_equal(m, again, map_free_vars=True)
    return m


UNIT = relay.Tuple([])


@program
def comments_kinds():
    parses_as("// a line\n()", UNIT)
    parses_as("/* one */ ()", UNIT)
    parses_as("/* /* nested */ */ ()", UNIT)
    parses_as("/* ( */ ()", UNIT)


@program
def float_literal():
    for t, v in (("1.0f", 1.0), ("1.56667f", 1.56667), ("0.0f", 0.0), ("-10.0f", -10.0), ("1e-1f", 0.1), ("3f", 3.0), ("1e+5f", 100000.0)):
        c = parse_text(t)
        assert c.data.dtype == "float32"
        assert np.allclose(c.data.numpy(), v)
    assert parse_text("1.0f64").data.dtype == "float64"
    assert parse_text("3.3f32").data.dtype == "float32"
    assert parse_text("1f16").data.dtype == "float16"


@program
def bool_literal():
    assert parse_text("True").data.numpy() == True
    assert parse_text("False").data.dtype == "bool"


@program
def negatives():
    assert isinstance(parse_text("let %x = 1; -%x").body, relay.Call)
    assert parse_text("--10").data.numpy() == 10 if isinstance(parse_text("--10"), relay.Constant) else isinstance(parse_text("--10"), relay.Call)


@program
def binary_ops():
    for t, o in (("*", relay.multiply), ("/", relay.divide), ("+", relay.add), ("-", relay.subtract), ("<", relay.less), (">", relay.greater), ("<=", relay.less_equal), (">=", relay.greater_equal), ("==", relay.equal), ("!=", relay.not_equal)):
        parses_as(f"1 {t} 2", o(relay.const(1), relay.const(2)))


@program
def parens_and_assoc():
    c = relay.const
    parses_as("1 * 1 + 1", c(1) * c(1) + c(1))
    parses_as("1 * (1 + 1)", c(1) * (c(1) + c(1)))
    parses_as("1 + 2 - 3", c(1) + c(2) - c(3))


@program
def op_assoc_deep():
    c = relay.const
    parses_as("1 * 2 + 3 < 4 == 5", relay.equal(relay.less(c(1) * c(2) + c(3), c(4)), c(5)))
    parses_as("1 == 2 < 3", relay.equal(c(1), relay.less(c(2), c(3))))


@program
def vars_kinds():
    v = parse_text("let %foo = (); %foo")
    assert isinstance(v.body, relay.Var)
    assert v.body.name_hint == "foo"
    g = parse_text("@foo")
    assert isinstance(g, relay.GlobalVar)
    assert g.name_hint == "foo"
    o = parse_text("add")
    assert isinstance(o, tvm.ir.Op)
    assert o.name == "add"
    o = parse_text("nn.global_avg_pool2d")
    assert o.name == "nn.global_avg_pool2d"


@program
def let_kinds():
    X = relay.Var("x")
    parses_as("let %x = 1; ()", relay.Let(X, relay.const(1), UNIT))
    parses_as("let %x = 1;\nlet %y = 2;\n%x", relay.Let(X, relay.const(1), relay.Let(relay.Var("y"), relay.const(2), X)))
    with refusing(tvm.error.DiagnosticError):
        parse_text("let %x = 1;")
    with refusing(tvm.error.DiagnosticError):
        parse_text("let %x = 1")


@program
def seq_kinds():
    parses_as("(); ()", relay.Let(relay.Var("_"), UNIT, UNIT))
    parses_as("let %_ = 1; ()", relay.Let(relay.Var("X"), relay.const(1), UNIT))


@program
def graph_single():
    assert parse_text("%1 = (); %1").fields == [] or len(parse_text("%1 = (); %1").fields) == 0


@program
def let_global_var_refused():
    for bad in ("let @x = 1; ()", "let x = 1; ()", "@x = 1; ()"):
        with refusing(tvm.error.DiagnosticError):
            parse_text(bad)


@program
def tuples():
    parses_as("()", relay.Tuple([]))
    parses_as("(0,)", relay.Tuple([relay.const(0)]))
    parses_as("(0, 1)", relay.Tuple([relay.const(0), relay.const(1)]))
    parses_as("(0, 1, 2)", relay.Tuple([relay.const(0), relay.const(1), relay.const(2)]))
    parses_as("(0)", relay.const(0))


@program
def tuple_get():
    t = parse_text("(0, 1).1")
    assert isinstance(t, relay.TupleGetItem)
    assert t.index == 1
    t = parse_text("((0, 1), 2).0.1")
    assert t.index == 1
    assert t.tuple_value.index == 0


@program
def funcs():
    X, Y = (relay.Var("x"), relay.Var("y"))
    parses_as("fn () { () }", relay.Function([], UNIT))
    parses_as("fn (%x) { %x }", relay.Function([X], X))
    parses_as("fn (%x, %y) { %x + %y }", relay.Function([X, Y], relay.add(X, Y)))
    i = relay.Var("x", relay.scalar_type("int32"))
    parses_as("fn (%x: int32) -> int32 { %x }", relay.Function([i], i, relay.scalar_type("int32")))
    parses_as("fn (%x, n=5) { () }", relay.Function([X], UNIT, None, None, tvm.ir.make_node("DictAttrs", n=relay.const(5).data.numpy().item())))


@program
def func_recursion():
    e = parse_text("let %fact = fn (%n: int32) -> int32 { if (%n == 0) { 1 } else { %n * %fact(%n - 1) } }; %fact(3)")
    assert isinstance(e.value, relay.Function) and e.body.op.same_as(e.var) or e.body.op == e.var


@program
def ifelse():
    parses_as("if (True) { 0 } else { 1 }", relay.If(relay.const(True), relay.const(0), relay.const(1)))
    with refusing(tvm.error.DiagnosticError):
        parse_text("if (True) { let %x = (); () } else { %x }")
    with refusing(tvm.error.DiagnosticError):
        parse_text("if (True) { 1 }")


@program
def refs():
    p = parse_text("ref_write(ref(1), ref_read(ref(2)))")
    assert isinstance(p, relay.RefWrite)
    assert isinstance(p.ref, relay.RefCreate)
    assert isinstance(p.value, relay.RefRead)


@program
def calls():
    f, X = (relay.Var("f"), relay.Var("x"))
    e = parse_text("let %constant = fn () { 0 }; %constant()")
    assert isinstance(e.body, relay.Call)
    assert len(e.body.args) == 0
    e = parse_text("let %id = fn (%x) { %x }; %id(1)")
    assert e.body.args[0].data.numpy() == 1
    e = parse_text("(fn (%x) { %x })(0)")
    assert isinstance(e.op, relay.Function)
    e = None
    e = parse_text("let %curried_mult = fn (%x) { fn (%y) { %x * %y } }; %curried_mult(0); %curried_mult(0)(0)")
    assert isinstance(e.body.body.op, relay.Call)
    parses_as("abs(1)", relay.abs(relay.const(1)))


@program
def types_incomplete():
    e = parse_text("let %_ : _ = (); ()")
    assert e.var.type_annotation is None or isinstance(e.var.type_annotation, relay.ty.IncompleteType)


@program
def types_builtin():
    for dt in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool", "int8x4", "uint1x4", "float16x4"):
        e = parse_text(f"let %_ : {dt} = (); ()")
        assert e.var.type_annotation == relay.scalar_type(dt), dt


@program
def types_tensor():
    for s, want in (("(1,)", (1,)), ("(1, 2)", (1, 2)), ("()", ()), ("(?, 3)", None)):
        e = parse_text(f"let %_ : Tensor[{s}, float32] = (); ()")
        if want is not None:
            assert e.var.type_annotation == relay.TensorType(want, "float32")
        else:
            assert isinstance(e.var.type_annotation.shape[0], tir.Any)
    assert parse_text("let %x : Tensor[(1), float32] = (); ()").var.type_annotation == relay.TensorType((1,))


@program
def types_func_tuple():
    e = parse_text("let %_ : fn () -> int32 = fn () -> int32 { 0 }; ()")
    assert e.var.type_annotation == relay.FuncType([], relay.scalar_type("int32"))
    e = parse_text("let %_ : fn (int32, int32) -> int32 = fn (%x: int32, %y: int32) -> int32 { 0 }; ()")
    assert len(e.var.type_annotation.arg_types) == 2
    e = parse_text("let %_: (int32, int32) = (0, 0); ()")
    assert e.var.type_annotation == relay.TupleType([relay.scalar_type("int32")] * 2)
    assert parse_text("let %_: (int32,) = (0,); ()").var.type_annotation == relay.TupleType([relay.scalar_type("int32")])
    assert parse_text("let %_: () = (); ()").var.type_annotation == relay.TupleType([])


@program
def adt_defs():
    m = parse_module("type Ayy { Nil }")
    gtv = m.get_global_type_var("Ayy")
    assert [c.name_hint for c in m[gtv].constructors] == ["Nil"]
    m = parse_module("type Ayy { Nil }\ntype Bee { Cons(int32, float32), Lone }")
    assert len(m[m.get_global_type_var("Bee")].constructors) == 2
    m = parse_module("type List[A] { Cons(A, List[A]), Nil, }")
    td = m[m.get_global_type_var("List")]
    assert len(td.type_vars) == 1
    assert td.constructors[0].inputs[0] == td.type_vars[0]
    with refusing(tvm.error.DiagnosticError):
        parse_module("type List[A] { Cons(A, List[A]), Nil }\ntype List[A] { Cons(A, List[A]), Nil }")


@program
def match_forms():
    for kw, complete in (("match", True), ("match?", False)):
        m = parse_module("type List[A] { Cons(A, List[A]), Nil, }\ndef @length[A](%xs: List[A]) -> int32 { " + kw + " (%xs) { Cons(_, %rest: List[A]) => 1 + @length(%rest), Nil => 0, } }")
        assert m["length"].body.complete == complete


@program
def match_multi_arity_and_nested():
    m = parse_module("type Arith { Value(int32), Plus(Arith, Arith) }\ndef @main(%a: Arith) -> int32 { match? (%a) { Plus(Value(%x), Value(%y)) => %x + %y, Value(%v) => %v, _ => 0 } }")
    assert len(m["main"].body.clauses) == 3


@program
def defs_and_calls():
    m = parse_module("def @id[A](%x: A) -> A { %x }\ndef @main() -> int32 { @id(3) }")
    m = transform.InferType()(m)
    assert m["main"].checked_type.ret_type == relay.scalar_type("int32")
    with refusing(tvm.error.DiagnosticError):
        parse_module("def @id[A](%x: A) -> A { %x }\ndef @id[A](%x: A) -> A { %x }")


@program
def extern():
    m = tvm.parser.parse(V + "extern type T")
    assert len(m[m.get_global_type_var("T")].constructors) == 0


@program
def import_prelude():
    m = tvm.parser.parse(V + 'import "prelude.rly"\n')
    assert "map" in [g.name_hint for g in m.get_global_vars()]
    m = tvm.IRModule()
    m.import_from_std("prelude.rly")
    assert "foldl" in [g.name_hint for g in m.get_global_vars()]


@program
def import_gradient():
    m = tvm.IRModule()
    m.import_from_std("gradient.rly")
    names = [g.name_hint for g in m.get_global_vars()] + [g.name_hint for g in m.get_global_type_vars()]
    assert names, names


@program
def import_with_use():
    m = tvm.parser.parse(V + 'import "prelude.rly"\ndef @main() -> List[int32] { Cons(1, Nil) }')
    m = transform.InferType()(m)
    assert str(m["main"].ret_type).startswith("List[")


@program
def span_of_parse():
    e = tvm.parser.parse_expr("fn (%x) {\n  add(%x, 1)\n}")
    assert e.body.span is not None
    assert e.body.span.line in (2, 3)


@program
def resnet_inlined_round():
    mod, params = relay.testing.squeezenet.get_workload(1)
    p = tvm.parser.fromtext(mod.astext())
    tvm.ir.assert_structural_equal(mod, p)


@program
def op_attr_text():
    for t in ("nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3], padding=[1, 1, 1, 1])", "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])", "reshape(%x, newshape=[-1, 3])", "transpose(%x, axes=[1, 0, 2, 3])", "sum(%x, axis=[1], keepdims=True)", "strided_slice(%x, begin=[0], end=[1], strides=[1], axes=None)", 'cast(%x, dtype="int8")', "expand_dims(%x, axis=0)", "clip(%x, a_min=0f, a_max=6f)", "squeeze(%x, axis=None)", "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"):
        f = tvm.parser.parse_expr(f"fn (%x, %w) {{ {t} }}")
        again = tvm.parser.parse_expr(f.astext())
        same(f, again)


@program
def error_texts():
    for bad, word in (("fn (%x) { %y }", "y"), ("add(%a, 1)", "a"), ("1 +", ""), ("(1, 2", ""), ("fn (%x { %x }", ""), ("let %x: Tensor[(1), floaty] = 1; %x", ""), ("match (1) { }", ""), ("nosuchop(1)", "nosuchop"), ("if True { 1 } else { 2 }", "")):
        try:
            tvm.parser.parse_expr(bad)
        except tvm.error.DiagnosticError:
            continue
        if bad.startswith("match"):
            continue
        raise AssertionError(bad)


@program
def builder_of_module_text():
    m = tvm.parser.parse(V + "\ndef @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {\n  %0 = add(%x, %y);\n  let %z = nn.relu(%0);\n  (%z, %0)\n}\n")
    m = transform.InferType()(m)
    assert m["main"].ret_type == relay.TupleType([relay.TensorType((2, 3))] * 2)


@program
def function_attrs_text():
    m = tvm.parser.parse(V + 'def @f(%x: int32, Primitive=1, Compiler="abc", Dims=[1, 2], Empty=[], N=None) { %x }')
    f = m["f"]
    assert f.attrs["Primitive"] == 1
    assert f.attrs["Compiler"] == "abc"
    assert [int(v) for v in f.attrs["Dims"]] == [1, 2]
    assert len(f.attrs["Empty"]) == 0
    assert f.attrs["N"] is None


@program
def quoted_names():
    m = tvm.parser.parse(V + 'def @main(%"a/b:0") { %"a/b:0" }')
    assert m["main"].params[0].name_hint == "a/b:0"


@program
def type_call_annotations():
    m = parse_module("type List[A] { Cons(A, List[A]), Nil, }\ndef @main(%x: List[List[int32]]) -> List[Tensor[(3), int8]] { Nil }")
    assert str(m["main"].params[0].type_annotation) == "List[List[int32]]"


@program
def unit_args():
    e = parse_text("fn (%x: ()) -> () { %x }")
    assert e.ret_type == relay.TupleType([])


@program
def on_device_text():
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], relay.annotation.on_device(relay.tanh(x), tvm.cuda(0), constrain_result=True))
    t = tvm.IRModule.from_expr(f).astext()
    assert "on_device(%0, virtual_device=VirtualDevice(device_type=2, virtual_device_id=0)" in t or "meta[VirtualDevice]" in t or "virtual_device" in t, t
    tvm.ir.assert_structural_equal(tvm.parser.parse(t), tvm.IRModule.from_expr(f))


@program
def trailing_and_spaces():
    same(tvm.parser.parse_expr("fn(%x){%x}"), tvm.parser.parse_expr("fn ( %x ) { %x }"))
    same(tvm.parser.parse_expr("(1,2)"), relay.Tuple([relay.const(1), relay.const(2)]))


@program
def span_check_module():
    m = tvm.parser.parse(V + "def @main(%x: int32) -> int32 { %x + 1 }")
    tvm.parser.SpanCheck()(m)


@program
def error_message_has_caret():
    e = raises(tvm.error.DiagnosticError, tvm.parser.parse, V + "def @main(%x: int32) -> int32 { %z }")
    m = str(e)
    assert m, m
