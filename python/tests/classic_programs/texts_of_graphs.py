# SPDX-License-Identifier: Apache-2.0
"""What the printer writes of graphs, and what the parser makes of it."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, tir
from tvm.ir import IRModule
from tvm.relay.adt import Constructor, Match, PatternConstructor, PatternTuple, PatternWildcard
from tvm.relay.ty import FuncType, TupleType, TypeCall

from harness import program, raises


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
