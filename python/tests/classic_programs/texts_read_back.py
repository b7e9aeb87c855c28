# SPDX-License-Identifier: Apache-2.0
"""Texts read: literals, types, functions, data types, graphs, mistakes."""
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir
from tvm.relay.testing import run_infer_type

V = '#[version = "0.0.5"]\n'


def parse(text):
    return tvm.parser.parse_expr(V + text) if hasattr(tvm.parser, "parse_expr") else tvm.parser.fromtext(V + text)


def module(text):
    return tvm.parser.parse(V + text)


def graph(a, b):
    tvm.ir.assert_structural_equal(parse(a) if isinstance(a, str) else a, b, map_free_vars=True)


@program("/* a */ ()", "/* a\nb */ ()", "/* a /* b */ c */ ()", "() // after", "// before\n()", "(/* in */)", "()/**/")
def comments(text):
    graph(text, relay.Tuple([]))


@program(("1", 1, "int32"), ("10", 10, "int32"), ("1i64", 1, "int64"), ("1i8", 1, "int8"), ("-1", -1, "int32"), ("5u8", 5, "uint8") , ("1f", 1.0, "float32"), ("2.0f", 2.0, "float32"), ("0.5f64", 0.5, "float64"), ("1e3f", 1000.0, "float32"), ("1e-3f", 0.001, "float32"), ("-2.5f", -2.5, "float32"), ("1f16", 1.0, "float16"), ("True", True, "bool"), ("False", False, "bool"), ("1.0E+10f", 1e10, "float32"))
def literals(text, value, dtype):
    got = parse(text)
    assert isinstance(got, relay.Constant) and got.data.dtype == dtype and got.data.numpy() == np.array(value, dtype)


@program(("1 + 2", relay.add), ("1 - 2", relay.subtract), ("1 * 2", relay.multiply), ("1 / 2", relay.divide), ("1 < 2", relay.less), ("1 > 2", relay.greater), ("1 <= 2", relay.less_equal), ("1 >= 2", relay.greater_equal), ("1 == 2", relay.equal), ("1 != 2", relay.not_equal))
def binary(text, op):
    graph(text, op(relay.const(1), relay.const(2)))


@program
def variables():
    with refusing(tvm.error.DiagnosticError):
        module("def @main() { %nowhere }")
    with refusing(tvm.error.DiagnosticError):
        module("def @main() { @nowhere }")
    mod = module("def @main(%x: int32) { %x }")
    assert mod["main"].params[0].name_hint == "x"
    mod = module("def @f(%x: int32) -> int32 { %x }\ndef @main(%x: int32) -> int32 { @f(%x) }")
    assert len(mod.functions) == 2
    mod = module("def @main(%x: int32) -> int32 { @f(%x) }\ndef @f(%x: int32) -> int32 { %x }")
    assert len(mod.functions) == 2


@program
def lets():
    v = relay.var("x")
    graph("let %x = 1; ()", relay.Let(v, relay.const(1), relay.Tuple([])))
    graph("let %x: int32 = 1; %x", (lambda w: relay.Let(w, relay.const(1), w))(relay.var("x", relay.scalar_type("int32"))))
    graph("""let %x = 1;
let %y = 2;
(%x, %y)""", (lambda a, b: relay.Let(a, relay.const(1), relay.Let(b, relay.const(2), relay.Tuple([a, b]))))(relay.var("x"), relay.var("y")))


@program
def seqs():
    graph("(); ()", relay.Let(relay.var("_"), relay.Tuple([]), relay.Tuple([])))
    graph("let %_ = 1; 2", relay.Let(relay.var("x"), relay.const(1), relay.const(2)))


@program
def graph_lets():
    mod = module("def @main(%x: float32) { %0 = add(%x, %x); %1 = multiply(%0, %0); %1 }")
    assert mod["main"].body.op.name == "multiply"
    mod = module("def @main() { %0 = (1, 2); %0.1 }")
    with refusing(tvm.error.DiagnosticError):
        module("def @main() { %1 = (%0,); %1 }")


@program
def tuples():
    graph("()", relay.Tuple([]))
    graph("(0,)", relay.Tuple([relay.const(0)]))
    graph("(0, 1)", relay.Tuple([relay.const(0), relay.const(1)]))
    graph("(0, 1, 2)", relay.Tuple([relay.const(i) for i in range(3)]))
    graph("(0)", relay.const(0))
    graph("((0, 1), 2)", relay.Tuple([relay.Tuple([relay.const(0), relay.const(1)]), relay.const(2)]))
    graph("(1, 2).1", relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(2)]), 1))


@program
def funcs():
    graph("fn () { 0 }", relay.Function([], relay.const(0)))
    x = relay.var("x")
    graph("fn (%x) { %x }", relay.Function([x], x))
    y = relay.var("y")
    graph("fn (%x, %y) { %x + %y }", relay.Function([x, y], x + y))
    i = relay.var("x", relay.scalar_type("int32"))
    graph("fn (%x: int32) -> int32 { %x }", relay.Function([i], i, relay.scalar_type("int32")))
    a = relay.TypeVar("A")
    p = relay.var("x", a)
    graph("fn [A](%x: A) -> A { %x }", relay.Function([p], p, a, [a]))
    with refusing(tvm.error.DiagnosticError):
        parse("fn (%x, %y) { %z }")
    f = parse("fn (n=5) { () }")
    assert f.attrs["n"] == 5


@program
def ifs():
    graph("if (True) { 0 } else { 1 }", relay.If(relay.const(True), relay.const(0), relay.const(1)))
    for bad in ("if (True) { 0 }", "if (True) 0 else 1"):
        with refusing(tvm.error.DiagnosticError):
            parse(bad)
    v = parse("if (True) { let %x = 1; %x } else { 2 }")
    assert isinstance(v.true_branch, relay.Let)


@program
def if_scope():
    with refusing(tvm.error.DiagnosticError):
        module("def @main() { let %x = (); if (True) { let %y = 1; () } else { %y } }")


@program
def refs():
    p = parse("let %x = ref(1); ref_write(%x, 2); ref_read(%x)")
    assert isinstance(p, relay.Let) and isinstance(p.value, relay.RefCreate)


@program
def calls():
    mod = module("def @id(%x: int32) -> int32 { %x }\ndef @main() { @id(1) }")
    assert isinstance(mod["main"].body, relay.Call)
    graph("fn (%x) { %x }(1)", (lambda x: relay.Call(relay.Function([x], x), [relay.const(1)]))(relay.var("x")))
    c = relay.const(1)
    graph("fn (%x) { fn (%y) { %x + %y } }(1)(1)", (lambda x, y: relay.Call(relay.Call(relay.Function([x], relay.Function([y], x + y)), [c]), [c]))(relay.var("x"), relay.var("y")))
    graph("add(1, 2)", relay.add(c, relay.const(2)))
    graph("nn.relu(1.0f)", relay.nn.relu(relay.const(1.0)))


@program("int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "float32", "float64", "bool", "int8x4")
def type_dtypes(dtype):
    got = parse(f"fn (%x: {dtype}) {{ () }}").params[0].type_annotation
    assert got == relay.scalar_type(dtype) if "x" not in dtype else str(got.dtype) == dtype


@program(("Tensor[(1, 2), float32]", relay.TensorType((1, 2), "float32")), ("Tensor[(), float32]", relay.TensorType((), "float32")), ("Tensor[(1,), int8]", relay.TensorType((1,), "int8")), ("Tensor[(1), int8]", relay.TensorType((1,), "int8")), ("Tensor[(?, 3), float32]", relay.TensorType((relay.Any(), 3), "float32")), ("()", relay.TupleType([])), ("(int32,)", relay.TupleType([relay.scalar_type("int32")])), ("(int32, float32)", relay.TupleType([relay.scalar_type("int32"), relay.scalar_type("float32")])), ("fn () -> int32", relay.FuncType([], relay.scalar_type("int32"))), ("fn (int32) -> int32", relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("int32"))), ("fn (int32, (int8,)) -> ()", relay.FuncType([relay.scalar_type("int32"), relay.TupleType([relay.scalar_type("int8")])], relay.TupleType([]))), ("ref(int32)", relay.RefType(relay.scalar_type("int32"))))
def type_forms(text, want):
    got = parse(f"fn (%x: {text}) {{ () }}").params[0].type_annotation
    assert tvm.ir.structural_equal(got, want), (str(got), str(want))


@program
def type_incomplete():
    f = parse("fn (%x: _) { %x }")
    assert f.params[0].type_annotation is None or isinstance(f.params[0].type_annotation, relay.IncompleteType)
    g = parse("fn (%x) -> _ { %x }")


@program
def adts():
    mod = module("type Glob[A] { Pair(A, A), None, }")
    td = mod[mod.get_global_type_var("Glob")]
    assert [c.name_hint for c in td.constructors] == ["Pair", "None"] and len(td.constructors[0].inputs) == 2
    mod = module("type List[A] { Cons(A, List[A]), Nil, }\ndef @l[A](%xs: List[A]) -> int32 { match (%xs) { Cons(_, %rest) => { 1 + @l(%rest) }, Nil => { 0 }, } }")
    m = mod["l"].body
    assert isinstance(m, relay.Match) and m.complete and isinstance(m.clauses[0].lhs, relay.PatternConstructor)
    assert isinstance(m.clauses[0].lhs.patterns[0], relay.PatternWildcard)
    assert module("type Empty { }") is not None
    with refusing(tvm.error.DiagnosticError):
        module("type A { X }\ntype A { Y }")
    with refusing(tvm.error.DiagnosticError):
        module("type A { X }\ntype B { X }")


@program
def adt_incomplete_match():
    mod = module("type L[A] { C(A, L[A]), N, }\ndef @f(%x: L[int32]) { match? (%x) { C(%h, _) => { %h }, } }")
    assert not mod["f"].body.complete
    mod = module("type L[A] { C(A, L[A]), N, }\ndef @f(%x: L[int32]) { match (%x) { _ => { 1 }, } }")
    assert isinstance(mod["f"].body.clauses[0].lhs, relay.PatternWildcard)
    mod = module("type L[A] { C(A, L[A]), N, }\ndef @f(%x: L[int32]) { match (%x) { %y => { %y }, } }")
    assert isinstance(mod["f"].body.clauses[0].lhs, relay.PatternVar)
    mod = module("def @f(%x: (int32, int32)) { match (%x) { (%a, %b) => { %a }, } }")
    assert isinstance(mod["f"].body.clauses[0].lhs, relay.PatternTuple)


@program
def adt_constructor_call():
    mod = module("type L[A] { C(A, L[A]), N, }\ndef @main() { C(1, N) }")
    assert isinstance(mod["main"].body.op, relay.Constructor)
    mod = module("type L[A] { C(A, L[A]), N, }\ndef @main() { C(1, N()) }")
    mod = relay.transform.InferType()(mod)
    assert str(mod["main"].checked_type.ret_type) == "L[int32]"


@program
def extern_type():
    mod = module("extern type T[A]")
    td = mod[mod.get_global_type_var("T")]
    assert len(td.constructors) == 0 and len(td.type_vars) == 1


@program
def duplicates():
    with refusing(tvm.error.DiagnosticError):
        module("def @id(%x) { %x }\ndef @id(%x) { %x }")
    with refusing(tvm.error.DiagnosticError):
        module("def @f(%x: Foo) { %x }")


@program
def load_prelude():
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    tvm.parser.parse(mod.astext())


@program
def init_tables():
    init = None
    text = V + "def @main() { meta[relay.Constant][0] }"
    c = relay.const(np.arange(4), "int64")
    mod = tvm.parser.parse(text, "from_string", None, {"relay.Constant": [c]})
    assert mod["main"].body.data.numpy().tolist() == [0, 1, 2, 3]
    init = tvm.parser.parse(V + "def @f(%y: int32) -> int32 { 0 }")
    mod = tvm.parser.parse(V + "def @g(%y: int32) -> int32 { @f(%y) }", init_module=init)
    assert mod["g"].body.op.name_hint == "f"


@program
def span_of_parsed():
    mod = tvm.parser.parse(V + "def @main(%x: int32) -> int32 {\n  %x + 1\n}", "name.txt")
    call = mod["main"].body
    assert call.span is not None and call.span.source_name.name == "name.txt" and call.span.line == 3
    assert call.span.column == 3 or call.span.column >= 3


@program
def tokens_bad():
    for bad in ("def @main() { @@ }", "def @main() { 1 +  }", "def main() { 1 }", "def @main() { 1 ", "fn () 1", "let x = 1; x", '"unterminated'):
        with refusing(tvm.error.DiagnosticError):
            tvm.parser.parse(V + bad)
    with refusing((tvm.error.DiagnosticError, tvm.TVMError)):
        tvm.parser.parse('#[version = "9.9.9"]\ndef @main() { 1 }')


@program
def quoted_names():
    mod = tvm.IRModule()
    mod["my.func"] = relay.Function([], relay.const(1))
    assert tvm.parser.fromtext(mod.astext()).get_global_var("my.func") is not None
    x = relay.var("data.1_x", shape=(1,))
    tvm.parser.fromtext(tvm.IRModule.from_expr(relay.Function([x], x)).astext())


@program
def many_round_trips():
    x = relay.var("x", shape=(1, 4, 8, 8))
    y = relay.var("y", shape=(2, 3))
    for e in (relay.nn.max_pool2d(x, (2, 2), (2, 2)), relay.nn.batch_flatten(x), relay.image.resize2d(x, (4, 4)), relay.split(y, 3, axis=1).astuple(), relay.split(y, (1, 2), axis=1).astuple(), relay.strided_slice(y, [0, 0], [1, 2], [1, 1]), relay.topk(y, 2).astuple(), relay.argsort(y), relay.cast(y, "int8"), relay.nn.pad(y, ((1, 1), (0, 0)), 2.5), relay.clip(y, -1.5, 1e-5), relay.repeat(y, 2, 1), relay.one_hot(relay.const([1, 2]), relay.const(1.0), relay.const(0.0), 3, -1, "float32"), relay.nn.lrn(x), relay.vision.multibox_prior(x, (0.5,), (1.0,)), relay.nn.conv2d(x, relay.var("w", shape=(2, 4, 1, 1))), relay.einsum((y, y), "ij,kj->ik"), relay.nn.global_avg_pool2d(x), relay.layout_transform(x, "NCHW", "NCHW2c"), relay.reverse(y, 1), relay.gather_nd(y, relay.const([[0], [1]])), relay.stack([y, y], 0), relay.meshgrid([relay.const([1, 2]), relay.const([3])]).astuple(), relay.cumsum(y, 1), relay.nn.dropout(y)):
        mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(e), e))
        mod = relay.transform.InferType()(mod)
        again = relay.transform.InferType()(tvm.parser.fromtext(mod.astext()))
        assert tvm.ir.structural_equal(again, mod), mod.astext()
