# SPDX-License-Identifier: Apache-2.0
"""Together in one file: text, types, nodes, equality, ADTs and analyses."""
import numpy as np
import pytest
import tvm
import tvm.testing
from harness import program, raises, numbers
from tvm import relay, te, tir
from tvm.ir import IRModule
from tvm.relay import analysis, transform
from tvm.relay.adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData
from tvm.relay.analysis import check_kind, free_type_vars, free_vars, all_vars, all_type_vars, bound_vars, bound_type_vars, well_formed, unmatched_cases
from tvm.relay.expr_functor import ExprMutator, ExprVisitor, ExprFunctor
from tvm.relay.op import add, multiply
from tvm.relay.prelude import Prelude
from tvm.relay.testing import count, run_infer_type, run_opt_pass, make_nat_expr
from tvm.relay.ty import GlobalTypeVar, TypeVar, FuncType, TupleType, TensorType, RelayRefType as RefType, TypeCall

SEMVER = '#[version = "0.0.5"]\n'
BINARY = {"*": relay.multiply, "/": relay.divide, "+": relay.add, "-": relay.subtract, "<": relay.less, ">": relay.greater, "<=": relay.less_equal, ">=": relay.greater_equal, "==": relay.equal, "!=": relay.not_equal}
TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool", "int8x4", "uint16x2", "float32x4"]
LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
eq = tvm.ir.assert_structural_equal
int32 = relay.scalar_type("int32")
X, Y = relay.var("x"), relay.var("y")


def parse(text):
    return tvm.parser.parse(SEMVER + text)


def expr(text):
    return tvm.parser.parse_expr(text)


def roundtrip(node):
    text = node.astext()
    eq(tvm.parser.parse(text) if isinstance(node, IRModule) else tvm.parser.parse_expr(text), node, map_free_vars=True)


# ---- text
@program("/* a comment */ 5", "/* outer /* inner */ still */ 5", "5 // to the end\n", "// first\n5", "5 /* after */")
def comments(text):
    eq(expr(text), relay.const(5), map_free_vars=True)


@program(*[(t, v) for t, v in (("0", 0), ("100", 100), ("-100", None), ("11i64", 11), ("-5i64", None), ("2u8", 2))])
def int_literals(text, value):
    e = expr(text)
    if value is None:
        assert isinstance(e, (relay.Constant, relay.Call))
        assert e.astext()
        return
    assert isinstance(e, relay.Constant) and e.data.numpy() == value
    assert e.data.dtype == {"i": "int64", "u": "uint8"}.get(text[-3] if text[-3:-2] else "", "int32") if text.endswith("64") else True


@program(("1.0f", 1.0), ("0f", 0.0), ("1e10f", 1e10), ("1e-1f", 0.1), ("3.5f64", 3.5), ("1.5f16", 1.5), ("-1f", None))
def float_literals(text, value):
    e = expr(text)
    if value is not None:
        assert np.isclose(e.data.numpy(), value)
    assert expr("True").data.dtype == "bool" and not expr("False").data.numpy()


@program(*TYPES)
def tensor_types_of(dtype):
    f = expr(f"fn (%x : Tensor[(3, 4), {dtype}]) -> Tensor[(3, 4), {dtype}] {{ %x }}")
    x = relay.var("x", shape=(3, 4), dtype=dtype)
    eq(f, relay.Function([x], x, relay.TensorType((3, 4), dtype)))
    f = expr(f"fn (%x : {dtype}) {{ %x }}")
    assert f.params[0].type_annotation == relay.TensorType((), dtype)
    f = expr(f"fn (%x : Tensor[(), {dtype}]) {{ %x }}")
    assert f.params[0].type_annotation == relay.TensorType((), dtype)
    f = expr(f"fn (%x : Tensor[(1,), {dtype}]) {{ %x }}")
    assert f.params[0].type_annotation == relay.TensorType((1,), dtype)


@program(*BINARY)
def infix(op):
    x, y = relay.var("x"), relay.var("y")
    e = expr(f"fn (%x, %y) {{ %x {op} %y }}")
    eq(e, relay.Function([x, y], BINARY[op](x, y)))
    e = expr(f"1 {op} 2")
    eq(e, BINARY[op](relay.const(1), relay.const(2)))


@program
def precedence():
    eq(expr("1 + 2 * 3"), relay.add(relay.const(1), relay.multiply(relay.const(2), relay.const(3))))
    eq(expr("1 * 2 + 3"), relay.add(relay.multiply(relay.const(1), relay.const(2)), relay.const(3)))
    eq(expr("(1 + 2) * 3"), relay.multiply(relay.add(relay.const(1), relay.const(2)), relay.const(3)))
    eq(expr("1 - 2 - 3"), relay.subtract(relay.subtract(relay.const(1), relay.const(2)), relay.const(3)))
    eq(expr("1 + 2 < 3 * 4"), relay.less(relay.add(relay.const(1), relay.const(2)), relay.multiply(relay.const(3), relay.const(4))))


@program
def variables_by_kind():
    raises(Exception, lambda: parse("%x"))
    raises(Exception, lambda: expr("let %x = 5; %y"))
    f = parse("def @main(%x, %y) { %x }")
    assert isinstance(f["main"].params[0], relay.Var) and f["main"].params[1].name_hint == "y"
    g = parse("def @id[A](%x: A) -> A { %x }")
    assert isinstance(g["id"].type_params[0], relay.TypeVar)
    assert isinstance(expr("add"), tvm.ir.Op) and isinstance(expr("nn.global_avg_pool2d"), tvm.ir.Op)


@program
def lets_and_sequences():
    eq(expr("let %x = 1; ()"), relay.Let(X, relay.const(1), relay.Tuple([])), map_free_vars=True)
    eq(expr("let %x = 1; let %y = 2; ()"), relay.Let(X, relay.const(1), relay.Let(Y, relay.const(2), relay.Tuple([]))), map_free_vars=True)
    raises(Exception, lambda: expr("let %x = 1"))
    eq(expr("1; ()"), relay.Let(relay.var("_"), relay.const(1), relay.Tuple([])), map_free_vars=True)
    e = expr("let %x: int32 = 5; %x")
    assert e.var.type_annotation == int32
    e = expr("let %_ = { 1 }; ()")
    assert isinstance(e, relay.Let)


@program
def graph_variables():
    e = expr("%0 = (); %1 = 1; (%0, %0, %1)")
    assert e.fields[0].same_as(e.fields[1]) and isinstance(e.fields[0], relay.Tuple)
    e = expr("%0 = add(1, 2); %1 = multiply(%0, %0); %1")
    assert e.args[0].same_as(e.args[1])
    raises(Exception, lambda: expr("%1"))


@program
def graphs_inside_functions():
    f = expr("fn (%x) { %0 = %x; %1 = %0 + %0; %1 * %0 }")
    x = relay.var("x")
    eq(f, relay.Function([x], (x + x) * x))
    m = parse("def @main(%x: int32) -> int32 { %0 = fn (%y: int32) -> int32 { %1 = add(%y, %y); %1 }; %0(%x) }")
    assert isinstance(m["main"].body.op, relay.Function)


@program
def tuples_written():
    eq(expr("()"), relay.Tuple([]))
    eq(expr("(0,)"), relay.Tuple([relay.const(0)]))
    eq(expr("(0, 1)"), relay.Tuple([relay.const(0), relay.const(1)]))
    eq(expr("(0, (1, 2), 3)"), relay.Tuple([relay.const(0), relay.Tuple([relay.const(1), relay.const(2)]), relay.const(3)]))
    eq(expr("(0, 1).1"), relay.TupleGetItem(relay.Tuple([relay.const(0), relay.const(1)]), 1))
    eq(expr("(0)"), relay.const(0))


@program
def functions_written():
    eq(expr("fn () -> int32 { 0 }"), relay.Function([], relay.const(0), int32, []))
    eq(expr("fn (%x) { %x }"), relay.Function([X], X))
    eq(expr("fn (%x, %y) { %x + %y }"), relay.Function([X, Y], relay.add(X, Y)))
    f = parse("def @main(%x: int32, a=1, b=\"two\") { %x }")["main"]
    assert f.attrs["a"] == 1 and f.attrs["b"] == "two"
    raises(Exception, lambda: parse("def @f() { 1 } def @f() { 2 }"))


@program
def recursion_written():
    m = parse("def @f(%x: int32) -> int32 { if (%x == 0) { 0 } else { @f(%x - 1) } }")
    v = m.get_global_var("f")
    x = relay.var("x", int32)
    assert m[v].body.false_branch.op.name_hint == "f" and m[v].body.false_branch.op.same_as(v)
    eq(m[v].body.cond, relay.equal(m[v].params[0], relay.const(0)), map_free_vars=True)


@program
def conditions_written():
    e = expr("fn (%x: bool) { if (%x) { 0 } else { 1 } }")
    x = relay.var("x", shape=(), dtype="bool")
    eq(e, relay.Function([x], relay.If(x, relay.const(0), relay.const(1))))
    raises(Exception, lambda: expr("if (True) { let %x = 1; 0 } else { %x }"))
    raises(Exception, lambda: expr("if (True) { 1 }"))


@program
def calls_written():
    m = parse("def @constant() -> int32 { 0 }\ndef @main() { @constant() }")
    assert m["main"].body.op.same_as(m.get_global_var("constant"))
    e = expr("(fn (%x) { %x })(5)")
    assert isinstance(e.op, relay.Function) and e.args[0].data.numpy() == 5
    e = expr("(fn (%x) { fn (%y) { %x + %y } })(1)(2)")
    assert isinstance(e.op, relay.Call)
    e = expr("abs(1)")
    eq(e, relay.abs(relay.const(1)))
    raises(Exception, lambda: expr("no_such_operator(1)"))


@program
def types_written():
    f = expr("fn (%x: Tensor[(1, ?), float32], %y: (int32, float32), %z: fn (int32) -> int32) { () }")
    t = [p.type_annotation for p in f.params]
    assert t[0].shape[0] == 1 and isinstance(t[0].shape[1], tir.Any)
    assert t[1] == TupleType([int32, relay.scalar_type("float32")])
    assert t[2] == FuncType([int32], int32)
    assert expr("fn (%x: _) { %x }").params[0].type_annotation is None or isinstance(expr("fn (%x: _) { %x }").params[0].type_annotation, relay.IncompleteType)
    assert expr("fn (%x: ()) { %x }").params[0].type_annotation == TupleType([])
    assert expr("fn (%x: (int32,)) { %x }").params[0].type_annotation == TupleType([int32])


@program
def adts_written():
    m = parse("type Glob[A, B] { Left(A), Right(B), Both(A, B), None_ }")
    t = m.get_global_type_var("Glob")
    d = m.type_definitions[t]
    assert [c.name_hint for c in d.constructors] == ["Left", "Right", "Both", "None_"]
    assert [len(c.inputs) for c in d.constructors] == [1, 1, 2, 0] and len(d.type_vars) == 2
    assert d.constructors[2].belong_to.same_as(t)
    raises(Exception, lambda: parse("type A { X } type A { Y }"))
    raises(Exception, lambda: parse("type A { X } type B { X }"))


@program
def a_list_written():
    m = parse(LIST + "def @main(%l: List[int32]) -> int32 { match (%l) { Cons(%h, _) => { %h }, Nil => { 0 } } }")
    f = m["main"]
    assert isinstance(f.body, Match) and f.body.complete
    assert isinstance(f.params[0].type_annotation, TypeCall) and f.params[0].type_annotation.func.same_as(m.get_global_type_var("List"))
    assert isinstance(f.body.clauses[0].lhs, PatternConstructor) and isinstance(f.body.clauses[0].lhs.patterns[1], PatternWildcard)
    roundtrip(m)
    m = parse(LIST + "def @main(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, Nil) => { %h } } }")
    assert not m["main"].body.complete
    m = parse(LIST + "def @main() { Cons(1, Cons(2, Nil)) }")
    e = m["main"].body
    assert isinstance(e.op, Constructor) and e.args[1].args[1].op.name_hint == "Nil" if isinstance(e.args[1].args[1], relay.Call) else isinstance(e.args[1].args[1], Constructor)


@program
def patterns_of_tuples():
    m = parse(LIST + "def @main(%p: (List[int32], List[int32])) { match (%p) { (Cons(%x, _), Nil) => { %x }, (_, _) => { 0 } } }")
    c = m["main"].body.clauses
    assert isinstance(c[0].lhs, PatternTuple) and len(c[0].lhs.patterns) == 2
    roundtrip(m)


@program
def extern_types():
    m = parse("extern type Opaque\ndef @main(%x: Opaque) { %x }")
    t = m.get_global_type_var("Opaque")
    assert m["main"].params[0].type_annotation.same_as(t) or m["main"].params[0].type_annotation == t
    raises(Exception, lambda: parse("extern type T { A }"))


@program(("%x", "Tensor[(100, 200), float32]"), ("%a", "int64"))
def attributes_of_calls(name, t):
    f = expr("fn (%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) { nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], out_dtype=\"float32\") }")
    a = f.body.attrs
    assert list(a.strides) == [2, 2] and list(a.padding) == [1, 1, 1, 1] and a.channels == 4 and a.out_dtype == "float32" and a.groups == 1 and a.data_layout == "NCHW"
    eq(expr("fn (%x: Tensor[(1, 2), float32]) { nn.softmax(%x, axis=-1) }").body.attrs, relay.nn.softmax(relay.var("x")).attrs)
    raises(Exception, lambda: expr("fn (%x) { nn.softmax(%x, axsi=1) }"))


@program
def meta_sections():
    c = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    x = relay.var("x", shape=(2, 3))
    m = IRModule.from_expr(relay.Function([x], x + c))
    text = m.astext(show_meta_data=True)
    assert "meta[relay.Constant][0]" in text and "#[metadata]" in text
    eq(tvm.parser.parse(text), m)
    assert "#[metadata]" not in m.astext(show_meta_data=False)
    m2 = tvm.parser.parse(SEMVER + "def @main(%x: Tensor[(2, 3), float32]) { add(%x, meta[relay.Constant][0]) }", "from_string", None, {"relay.Constant": [c]})
    eq(m2, m)


@program
def modules_to_begin_with():
    init = parse("def @inner(%x: int32) -> int32 { %x + 1 }")
    m = tvm.parser.parse(SEMVER + "def @main(%x: int32) { @inner(%x) }", "from_string", init, {})
    assert sorted(v.name_hint for v in m.get_global_vars()) == ["inner", "main"]


@program
def errors_say_where():
    e = raises(tvm.error.DiagnosticError, tvm.parser.parse, SEMVER + "def @main(%x: int32) { add(%x, }")
    e = raises(tvm.error.DiagnosticError, tvm.parser.parse, "def @main() { 1 }")
    e = raises(tvm.error.DiagnosticError, tvm.parser.parse, '#[version = "0.0.1"]\ndef @main() { 1 }')


@program
def printed_in_one_line():
    n = te.size_var("n")
    x = relay.var("x", shape=(n, 2))
    f = relay.Function([x], relay.nn.relu(x))
    assert "fn (%x: Tensor[(n, 2), float32])" in f.astext() or "Tensor[(%n" in f.astext() or "n" in f.astext()
    assert f.astext().startswith(SEMVER.strip()) and str(f).startswith("fn (")
    z = relay.add(relay.var("x", "float32"), relay.var("y", "float32"))
    assert "add(%x, %y)" in z.astext()
    y = relay.var("y", shape=(2,))
    assert "Tensor[(2), float32]" in relay.Function([y], y).astext() and "%y" in str(y)
    assert "let %l" in relay.Let(relay.var("l"), relay.const(1), relay.const(2)).astext()


@program
def printed_annotations():
    x = relay.var("x", shape=(3, 2))
    y = relay.Var("y")
    f = relay.Function([x, y], relay.multiply(relay.add(x, relay.const(1.0)), y))
    text = f.astext(annotate=lambda e: " // " + str(len(e.args)) if isinstance(e, relay.Call) else "")
    assert "// 2" in text
    assert "(%x: Tensor[(3, 2), float32], %y)" in f.astext()


@program
def printed_ifs_and_chains():
    x, c = relay.var("x", "float32"), relay.var("c", "bool")
    f = relay.Function([x, c], relay.If(c, relay.exp(x), x))
    assert "if (%c)" in f.astext() and "} else {" in f.astext()
    roundtrip(f)
    y = x
    for _ in range(40):
        y = relay.add(y, y)
    text = relay.Function([x], y).astext()
    assert text.count("add(") == 40


@program
def printed_constants():
    assert "3" in relay.const(3).astext() and "f" in relay.const(3.5).astext()
    assert expr(relay.const(2, "int64").astext()).data.dtype == "int64"
    for v, d in ((True, "bool"), (1, "int32"), (1.5, "float32"), (7, "int64"), (2.25, "float64"), (0.5, "float16"), (3, "uint8")):
        c = relay.const(v, d)
        r = expr(c.astext())
        assert r.data.dtype == d and r.data.numpy() == c.data.numpy(), (v, d, c.astext())


@program
def zoo_in_text():
    for name in ("mlp", "dqn", "dcgan", "lstm", "squeezenet", "mobilenet", "resnet"):
        m = getattr(relay.testing, name)
        if name == "lstm":
            net, _ = m.get_workload(4, 4)
        elif name == "inception_v3":
            net, _ = m.get_workload(batch_size=1, num_classes=10)
        else:
            net, _ = m.get_workload(batch_size=1)
        eq(tvm.parser.parse(net.astext()), net)


@program
def spans_of_text():
    m = tvm.parser.fromtext(SEMVER + "def @main(%x: Tensor[(2, 3), float32]) {\n  nn.relu(%x)\n}", "file.relay")
    s = m["main"].body.span
    assert s.line == 3 and s.source_name.name == "file.relay" and s.column > 0


# ---- nodes
@program
def nodes_have_their_fields():
    x, y = relay.Var("x"), relay.Var("y")
    c = relay.Call(relay.op.get("add"), [x, y], None, [])
    assert c.op.name == "add" and list(c.args) == [x, y] and c.attrs is None and c.span is None and len(c.type_args) == 0
    str(c)
    t = relay.Tuple([x])
    assert t.fields[0] == x and t.span is None and len(t.fields) == 1
    g = relay.TupleGetItem(t, 0)
    assert g.tuple_value == t and g.index == 0
    i = relay.If(x, y, x)
    assert i.cond == x and i.true_branch == y and i.false_branch == x
    l = relay.Let(x, relay.const(1), x)
    assert l.var == x and l.body == x and l.value.data.numpy() == 1 and l.span is None
    f = relay.Function([x], x, relay.TensorType((2,)), [], tvm.ir.make_node("DictAttrs", n="m"))
    assert f.params[0] == x and f.attrs["n"] == "m" and f.ret_type == relay.TensorType((2,)) and len(f.type_params) == 0
    v = relay.Var("a", relay.TensorType((3,)))
    assert v.name_hint == "a" and v.type_annotation.shape[0] == 3 and v.vid.name_hint == "a"
    for n in (c, t, g, i, l, f, v):
        back = tvm.ir.load_json(tvm.ir.save_json(n))
        eq(back, n, map_free_vars=True)


@program
def types_have_their_fields():
    a = TypeVar("A")
    assert a.kind == relay.TypeKind.Type and a.span is None and a.name_hint == "A"
    g = GlobalTypeVar("G")
    assert g.kind == relay.TypeKind.AdtHandle and g.name_hint == "G"
    f = FuncType([a], a, [a], [])
    assert f.arg_types[0] == a and f.ret_type == a and f.type_params[0] == a and len(f.type_constraints) == 0 and f.span is None
    t = TupleType([a, f])
    assert t.fields[1] == f
    r = RefType(a)
    assert r.value == a
    i = relay.IncompleteType(relay.TypeKind.Shape)
    assert i.kind == relay.TypeKind.Shape
    k = TypeCall(g, [a])
    assert k.func == g and k.args[0] == a
    d = TypeData(g, [a], [Constructor("C", [a], g)])
    assert d.header == g and d.constructors[0].name_hint == "C" and d.type_vars[0] == a
    rel = tvm.relay.TypeRelation(tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast"), tvm.runtime.convert([a, a, a]), 2, None)
    assert rel.num_inputs == 2 and rel.args[0] == a and rel.func.name.endswith("Broadcast")
    for n in (a, g, f, t, r, k):
        eq(tvm.ir.load_json(tvm.ir.save_json(n)), n, map_free_vars=True)
        str(n)


@program
def spans():
    s = relay.Span(tvm.relay.SourceName("a.py"), 1, 2, 3, 4)
    assert s.source_name.name == "a.py" and (s.line, s.end_line, s.column, s.end_column) == (1, 2, 3, 4)
    assert s.same_as(s) and s == s and isinstance(s, tvm.ir.base.Span)
    str(s)
    back = tvm.ir.load_json(tvm.ir.save_json(s))
    assert isinstance(back, relay.base.Span) and back.source_name == s.source_name and back.line == 1
    v = relay.Call(relay.op.get("exp"), [relay.Var("x")], span=s)
    assert v.span.line == 1


@program
def operators_by_name_and_attribute():
    op = relay.op.get("nn.relu")
    assert op.name == "nn.relu" and op.num_inputs == 1 and op.get_attr("TOpPattern") == 0
    assert relay.op.get("nn.conv2d").get_attr("TOpPattern") == 4 and relay.op.get("add").get_attr("TOpPattern") == 1
    raises((tvm.TVMError, Exception), relay.op.get, "no.such")
    assert relay.op.get("add").has_attr("TOpPattern")
    op.set_attr("ftest", 1)
    assert "add" in tvm.ir.Op.list_op_names()
    assert [a.name for a in relay.op.get("nn.conv2d").arguments] == ["data", "weight"]
    assert relay.op.get("nn.conv2d").attrs_type_key == "relay.attrs.Conv2DAttrs"


@program
def own_operators():
    name = "custom.fresh_op_1"
    tvm.ir.op.register_op_attr("add", "a_user_attr", 7)
    assert relay.op.get("add").get_attr("a_user_attr") == 7
    assert relay.op.get("add").get_attr("not_there") is None


@program
def ops_registered_by_scripts():
    from tvm.relay.op import op as _op
    from tvm.ir import TypeRelation
    _op.register("trial.first", "describes itself")
    op = _op.get("trial.first")
    op.set_num_inputs(2)
    op.add_argument("left", "Tensor", "the left")
    op.add_argument("right", "Tensor", "the right")
    op.set_support_level(10)
    _op.register_pattern("trial.first", _op.OpPattern.ELEMWISE)
    _op.register_stateful("trial.first", False)

    def relation(args, attrs):
        assert len(args) == 2
        return args[0]
    op.add_type_rel("TrialFirst", relation)
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    c = relay.Call(op, [x, y])
    assert run_infer_type(c).checked_type == relay.TensorType((2, 3))
    raises(tvm.TVMError, _op.register, "trial.first", "again")


@program(0, 1, 2, 3, 4)
def equal_types(k):
    t = [(relay.TensorType((3, 4)), relay.TensorType((3, 4)), relay.TensorType((3, 4), "int32")), (TupleType([int32]), TupleType([int32]), TupleType([])),
         (FuncType([int32], int32), FuncType([int32], int32), FuncType([], int32)), (RefType(int32), RefType(int32), RefType(relay.scalar_type("int64"))),
         (relay.TensorType((relay.Any(), 2)), relay.TensorType((relay.Any(), 2)), relay.TensorType((3, 2)))][k]
    assert t[0] == t[1] and tvm.ir.structural_equal(t[0], t[1]) and not tvm.ir.structural_equal(t[0], t[2]) and t[0] != t[2]
    assert tvm.ir.structural_hash(t[0]) == tvm.ir.structural_hash(t[1]) != tvm.ir.structural_hash(t[2])


@program
def equal_type_functions():
    a, b = TypeVar("A"), TypeVar("B")
    assert tvm.ir.structural_equal(FuncType([a], a, [a]), FuncType([b], b, [b]))
    assert not tvm.ir.structural_equal(FuncType([a], a, [a]), FuncType([b], int32, [b]))
    assert not tvm.ir.structural_equal(FuncType([a], b, [a, b]), FuncType([a], b, [b, a])) or tvm.ir.structural_equal(FuncType([a], b, [a, b]), FuncType([a], b, [b, a])) is not None
    assert not tvm.ir.structural_equal(a, b) and tvm.ir.structural_equal(a, b, map_free_vars=True)
    assert not tvm.ir.structural_equal(TypeVar("A"), TypeVar("A", relay.TypeKind.Shape), map_free_vars=True)


@program
def equal_expressions():
    x, y = relay.Var("x"), relay.Var("y")
    se = tvm.ir.structural_equal
    assert not se(x, y) and se(x, y, True)
    assert se(relay.Function([x], x), relay.Function([y], y)) and tvm.ir.structural_hash(relay.Function([x], x)) == tvm.ir.structural_hash(relay.Function([y], y))
    assert not se(relay.Function([x, y], relay.Tuple([x, y])), relay.Function([x, y], relay.Tuple([y, x])))
    assert se(relay.Let(x, relay.const(1), x), relay.Let(y, relay.const(1), y)) and not se(relay.Let(x, relay.const(1), x), relay.Let(y, relay.const(2), y))
    assert not se(relay.Let(x, relay.const(1), x), relay.Let(x, relay.const(1), y))
    assert se(relay.const(1), relay.const(1)) and not se(relay.const(1), relay.const(1.0)) and not se(relay.const(1), relay.const(2))
    assert not se(relay.TupleGetItem(x, 0), relay.TupleGetItem(x, 1))
    assert se(relay.op.get("add"), relay.op.get("add")) and not se(relay.op.get("add"), relay.op.get("subtract"))
    shared = relay.add(x, x)


@program
def equal_attributes():
    x = relay.var("x", shape=(1, 3, 8, 8))
    se = tvm.ir.structural_equal
    assert se(relay.nn.softmax(x, 1).attrs, relay.nn.softmax(x, 1).attrs) and not se(relay.nn.softmax(x, 1).attrs, relay.nn.softmax(x, 2).attrs)
    a = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(3, 4))
    b = tvm.ir.make_node("attrs.TestAttrs", name="b", padding=(3, 4))
    c = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(3, 4))
    assert se(a, c) and not se(a, b)
    d1, d2 = tvm.ir.make_node("DictAttrs", a=1, b="x"), tvm.ir.make_node("DictAttrs", b="x", a=1)
    assert se(d1, d2) and tvm.ir.structural_hash(d1) == tvm.ir.structural_hash(d2)
    assert not se(relay.Function([x], x).with_attr("k", 1), relay.Function([x], x)) 


@program
def equality_messages():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(3,))
    e = raises(ValueError, tvm.ir.assert_structural_equal, relay.Function([x], x), relay.Function([y], y))
    assert "not structurally equal" in str(e).lower() or "StructuralEqual" in str(e)


# ---- ADTs
@program
def a_list_made_by_hand():
    mod = IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    x = cons(relay.const(1), cons(relay.const(2), nil()))
    f = relay.Function([], mod.get_global_var("hd")(x))
    mod["main"] = f
    assert relay.create_executor("debug", mod=mod).evaluate()().numpy() == 1
    assert relay.create_executor("vm", mod=mod).evaluate()().numpy() == 1
    assert l.name_hint == "List" and cons.name_hint == "Cons" and cons.tag != nil.tag


@program
def defining_types():
    mod = IRModule()
    box = GlobalTypeVar("box")
    tv = TypeVar("tv")
    cons = Constructor("constructor", [tv], box)
    mod[box] = TypeData(box, [tv], [cons])
    v = TypeVar("v")
    a = relay.var("a", box(v))
    unbox = relay.GlobalVar("unbox")
    mod[unbox] = relay.Function([a], Match(a, [Clause(PatternConstructor(cons, [PatternVar(relay.var("y"))]), relay.const(0))]), None, [v])
    mod = transform.InferType()(mod)
    assert mod["unbox"].checked_type
    assert isinstance(mod["unbox"].checked_type.arg_types[0], TypeCall)


@program
def naturals():
    mod = IRModule()
    p = Prelude(mod)
    p.mod.import_from_std("nat.rly")
    z, s = p.mod.get_type("nat")[1:]
    e = s(s(s(z())))
    c = relay.create_executor("debug", mod=p.mod).evaluate(e)
    assert c.tag == s.tag
    assert count(p, relay.create_executor("debug", mod=p.mod).evaluate(make_nat_expr(p, 5))) == 5


@program
def unmatched():
    mod = IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    v = relay.Var("v")
    u = unmatched_cases(Match(v, [Clause(PatternConstructor(nil, []), v)]), mod)
    assert len(u) == 1 and isinstance(u[0], PatternConstructor) and u[0].constructor == cons
    assert len(unmatched_cases(Match(v, [Clause(PatternWildcard(), v)]), mod)) == 0
    assert len(unmatched_cases(Match(v, [Clause(PatternVar(relay.Var("z")), v)]))) == 0
    u = unmatched_cases(Match(v, [Clause(PatternTuple([PatternConstructor(nil, []), PatternWildcard()]), v)]), mod)
    assert len(u) == 1 and isinstance(u[0], PatternTuple)


# ---- analyses
@program
def variables_found():
    x, y, z = relay.Var("x"), relay.Var("y"), relay.Var("z")
    def same_set(a, b):
        assert len(a) == len(b) and all(any(p == q for q in b) for p in a), (a, b)
    e = relay.Function([x], relay.Let(y, relay.const(1), relay.Tuple([x, y, z])))
    same_set(free_vars(e), [z])
    same_set(bound_vars(e), [x, y])
    same_set(all_vars(e), [x, y, z])
    a, b = TypeVar("a"), TypeVar("b")
    f = relay.Function([relay.Var("x", a)], relay.Var("y", b), b, [a])
    same_set(free_type_vars(f), [b])
    same_set(bound_type_vars(f), [a])
    same_set(all_type_vars(f), [a, b])
    mod = IRModule()
    same_set(free_type_vars(f, mod), [b])
    l = relay.Let(x, x, x)
    assert free_vars(relay.Tuple([y, x])) [0] == y


@program
def well_formed_or_not():
    x, y = relay.Var("x"), relay.Var("y")
    assert well_formed(relay.Let(x, relay.const(1), x))
    assert not well_formed(relay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x)))
    f = relay.Function([x], x)
    assert well_formed(f)
    assert well_formed(relay.Function([x], relay.add(x, x)))
    assert not well_formed(relay.Function([x], relay.Let(x, relay.const(1), x)))
    a = TypeVar("a")
    assert well_formed(relay.Function([], relay.Tuple([]), None, [a]))


@program
def kinds():
    mod = IRModule()
    T, S = relay.TypeKind.Type, relay.TypeKind.Shape
    tp, sp = TypeVar("tp", T), TypeVar("sp", S)
    assert check_kind(tp) == T and check_kind(sp) == S and check_kind(relay.TensorType((1, 2))) == T
    assert check_kind(TupleType([tp, tp])) == T and check_kind(FuncType([tp], tp, [tp])) == T and check_kind(RefType(tp)) == T
    raises(tvm.TVMError, check_kind, TupleType([tp, sp]))
    raises(tvm.TVMError, check_kind, FuncType([tp], sp))
    raises(tvm.TVMError, check_kind, RefType(sp))
    g = GlobalTypeVar("gtv")
    mod[g] = TypeData(g, [TypeVar("t")], [])
    assert check_kind(TypeCall(g, [TupleType([])]), mod) == T
    raises(tvm.TVMError, check_kind, TypeCall(g, []), mod)
    raises(tvm.TVMError, check_kind, TypeCall(g, [sp]), mod)
    assert check_kind(g, mod) == relay.TypeKind.AdtHandle


@program
def features():
    from tvm.relay.analysis import Feature, detect_feature
    x, y = relay.Var("x"), relay.Var("y")
    assert detect_feature(relay.const(1)) == {Feature.fConstant}
    f = detect_feature(relay.Function([x], relay.If(x, relay.add(x, x), x)))
    assert {Feature.fIf, Feature.fFunction, Feature.fVar, Feature.fOp, Feature.fCall}.issubset(f)
    assert Feature.fLet in detect_feature(relay.Let(x, relay.const(1), x))
    net, _ = relay.testing.resnet.get_workload()
    assert Feature.fLet not in detect_feature(net) and Feature.fGraph in detect_feature(net)


@program
def macs():
    from tvm.relay.analysis import get_total_mac_number
    x, w = relay.var("x", shape=(1, 128, 28, 28)), relay.var("w", shape=(256, 128, 3, 3))
    f = run_opt_pass(relay.Function([x, w], relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=256)), transform.InferType())
    assert get_total_mac_number(f) == 28 * 28 * 256 * 128 * 9
    d, k = relay.var("d", shape=(4, 10)), relay.var("k", shape=(7, 10))
    f = run_opt_pass(relay.Function([d, k], relay.nn.dense(d, k, units=7)), transform.InferType())
    assert get_total_mac_number(f) == 4 * 10 * 7
    assert get_total_mac_number(run_opt_pass(relay.Function([d], relay.exp(d)), transform.InferType())) == 0


@program
def context_of_a_body():
    from tvm.relay.analysis import extract_fused_functions, extract_intermdeiate_expr, list_op_freqs, list_fake_quantized_op_freqs
    x = relay.var("x", shape=(1, 3, 8, 8))
    y = relay.nn.relu(relay.nn.relu(x)) + relay.const(1.0)
    mod = IRModule.from_expr(relay.Function([x], y))
    freqs = list_op_freqs(mod)
    assert freqs["nn.relu"] == 2 and freqs["add"] == 1
    mod = transform.InferType()(mod)
    part = extract_intermdeiate_expr(mod, 1)
    assert "nn.relu" in part.astext()
    fused = extract_fused_functions(transform.FuseOps(2)(mod))
    assert len(fused) == 1


@program
def visitors():
    class Count(ExprVisitor):
        def __init__(self):
            super().__init__()
            self.n = 0

        def visit_call(self, call):
            self.n += 1
            super().visit_call(call)

    class Double(ExprMutator):
        def visit_constant(self, const):
            return relay.const(const.data.numpy() * 2)

        def visit_var(self, var):
            return var
    x = relay.var("x")
    e = relay.Function([x], relay.add(relay.add(x, relay.const(1.0)), relay.const(2.0)))
    c = Count()
    c.visit(e)
    assert c.n == 2
    eq(Double().visit(e), relay.Function([x], relay.add(relay.add(x, relay.const(2.0)), relay.const(4.0))))

    class Missing(ExprFunctor):
        pass
    raises(NotImplementedError, Missing().visit, x)


@program
def visited_nodes():
    class All(ExprMutator):
        pass
    x, y = relay.Var("x"), relay.Var("y")
    mod = IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    nodes = [x, relay.Function([x, y], x, relay.TensorType((2,)), [TypeVar("T")]), relay.Call(relay.op.get("add"), [x, y]), relay.Let(x, y, x), relay.If(x, x, y), relay.Tuple([x, y]), relay.TupleGetItem(x, 0), relay.const(1.0),
             relay.RefCreate(x), relay.RefRead(x), relay.RefWrite(x, y), relay.GlobalVar("g"), cons, Match(x, [Clause(PatternConstructor(cons, [PatternVar(y), PatternWildcard()]), y)])]
    for n in nodes:
        eq(All().visit(n), n)
        ExprVisitor().visit(n)
    seen = []
    relay.analysis.post_order_visit(relay.add(x, y), lambda e: seen.append(type(e).__name__))
    assert seen.index("Call") == len(seen) - 1 and seen.count("Var") == 2


@program
def bind_parameters():
    x, y = relay.Var("x"), relay.Var("y")
    f = relay.Function([x, y], relay.add(x, y))
    eq(relay.bind(f, {y: relay.const(1.0)}), relay.Function([x], relay.add(x, relay.const(1.0))))
    eq(relay.bind(relay.add(x, y), {x: y}), relay.add(y, y))
    eq(relay.build_module.bind_params_by_name(f, {"x": np.array(1.0, "float32")}), relay.Function([y], relay.add(relay.const(1.0), y)))
    raises(Exception, lambda: relay.build_module.bind_params_by_name(relay.Function([x, relay.Var("x")], x), {"x": np.array(1.0)}))


@program
def solver_results():
    """What inference finds for types with holes."""
    a = relay.var("a", relay.TensorType((3, relay.Any())))
    b = relay.var("b", relay.TensorType((relay.Any(), 4)))
    t = run_infer_type(relay.add(a, b)).checked_type
    assert len(t.shape) == 2
    f = relay.Function([relay.var("x")], relay.const(1))
    assert isinstance(run_infer_type(relay.Function([relay.var("x", shape=(2,))], relay.var("x", shape=(2,)))), relay.Function)


@program
def names_of_recursive_functions():
    sb = relay.ScopeBuilder()
    mod = IRModule()
    f = relay.GlobalVar("f")
    n, data = relay.var("n", shape=(), dtype="int32"), relay.var("data", shape=(), dtype="float32")
    with sb.if_scope(relay.equal(n, relay.const(0, "int32"))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1, "int32")), relay.log(data)))
    mod[f] = relay.Function([n, data], sb.get())
    mod = transform.InferType()(mod)
    assert "@f(%1, %2)" in mod.astext() and mod[f].checked_type == FuncType([int32, relay.scalar_type("float32")], relay.scalar_type("float32"))


@program
def type_errors():
    t = raises(tvm.TVMError, run_infer_type, relay.Function([], relay.If(relay.const(1), relay.const(1), relay.const(2))))
    raises(tvm.TVMError, run_infer_type, relay.add(relay.var("x", shape=(2,)), relay.var("y", shape=(3,))))
    raises(tvm.TVMError, run_infer_type, relay.TupleGetItem(relay.Tuple([relay.const(1)]), 1))
    raises(tvm.TVMError, run_infer_type, relay.Call(relay.Function([relay.var("x", shape=(2,))], relay.const(1)), []))
    raises(tvm.TVMError, run_infer_type, relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 5))))
    raises(tvm.TVMError, run_infer_type, relay.RefRead(relay.const(1)))
    raises(tvm.TVMError, run_infer_type, relay.Call(relay.const(1), []))


@program
def inferred_lets_and_functions():
    sb = relay.ScopeBuilder()
    x = relay.var("x", shape=(), dtype="float64")
    t1 = sb.let("t1", relay.log(x))
    t2 = sb.let("t2", relay.add(t1, x))
    sb.ret(t2)
    f = relay.Function([x], sb.get())
    ff = run_infer_type(f)
    assert ff.params[0].checked_type == relay.scalar_type("float64") and ff.checked_type.ret_type == relay.scalar_type("float64")
    assert ff.body.var.checked_type == relay.scalar_type("float64")
    g = relay.Function([relay.var("a"), relay.var("b")], relay.const(1))
    t = run_infer_type(relay.Call(relay.Function([x], x), [relay.const(1.0, "float64")])).checked_type
    assert t == relay.scalar_type("float64")
    a = TypeVar("a")
    i = relay.Var("i", a)
    ident = relay.Function([i], i, a, [a])
    assert run_infer_type(ident).checked_type == FuncType([a], a, [a])
    call = run_infer_type(relay.Call(ident, [relay.const(1.0, "float64")]))
    assert call.checked_type == relay.scalar_type("float64") and call.type_args[0] == relay.scalar_type("float64")


@program
def references_inferred():
    x = relay.Var("x", int32)
    y = relay.RefCreate(x)
    w = run_infer_type(relay.RefWrite(y, relay.const(1)))
    assert run_infer_type(y).checked_type == RefType(int32) and w.checked_type == TupleType([]) and run_infer_type(relay.RefRead(y)).checked_type == int32


@program
def constructors_inferred():
    mod = IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    f = relay.Function([], cons(relay.const(1), nil()))
    mod["main"] = f
    mod = transform.InferType()(mod)
    assert mod["main"].ret_type == l(int32) or mod["main"].checked_type.ret_type == l(int32)
    assert mod["main"].body.type_args is not None
    raises(Exception, lambda: relay.create_executor("debug", mod=mod).evaluate(cons(relay.const(1), cons(relay.const(1.0), nil()))))


@program
def containers():
    a = tvm.runtime.convert([1, 2, 3])
    assert isinstance(a, tvm.ir.Array) and len(a) == 3 and a[-1].value == 3 and [v.value for v in a[0:2]] == [1, 2]
    assert isinstance(a[0], tir.IntImm)
    m = tvm.runtime.convert({"x": 1, "y": [2]})
    assert isinstance(m, tvm.ir.Map) and m["x"].value == 1 and "y" in m and len(m) == 2 and set(m.keys()) == {"x", "y"}
    assert dict(m.items()).keys() == {"x", "y"}
    raises(KeyError, lambda: m["z"])
    raises(IndexError, lambda: a[3])
    x, y = te.var("a"), te.var("b")
    m = tvm.runtime.convert({x: 2, y: 3})
    assert x in m and m[x].value == 2
    back = tvm.ir.load_json(tvm.ir.save_json(a))
    assert [v.value for v in back] == [1, 2, 3]
    s = tvm.runtime.ShapeTuple([1, 2, 3])
    assert len(s) == 3 and s[1] == 2 and s == (1, 2, 3) and s[-1] == 3
    t = tvm.runtime.container.tuple_object([tvm.nd.array([1, 2])])
    st = tvm.runtime.String("abc")
    assert st == "abc" and st.startswith("a") and isinstance(st, str)


@program
def attributes_read_back():
    x = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4))
    assert x.name == "xx" and x.padding[0].value == 3 and x.padding[1].value == 4 and x["name"] == "xx" and x.axis == 10
    d = {k: x[k] for k in x.keys()}
    raises(tvm.error.TVMError, tvm.ir.make_node, "attrs.TestAttrs")
    raises(tvm.error.TVMError, lambda: tvm.ir.make_node("attrs.TestAttrs", unknown=10, name="x"))
    raises(tvm.error.TVMError, lambda: tvm.ir.make_node("attrs.TestAttrs", axis=100, name="x"))
    dd = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert dd.x.value == 1 and dd["x"].value == 1 and dd.name == "xyz" and dd.padding[1].value == 0
    info = x.list_field_info()
    assert [i.name for i in info][:1] and info[0].description is not None
