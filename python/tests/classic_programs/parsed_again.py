# SPDX-License-Identifier: Apache-2.0
"""The parser, form by form, beside the expressions that one would have built."""
import numpy as np
import tvm
from tvm import relay
from tvm.relay import Prelude
from tvm.relay.testing import resnet

from harness import program, raises

SEMVER = '#[version = "0.0.5"]\n'
BINARY = {"*": relay.multiply, "/": relay.divide, "+": relay.add, "-": relay.subtract, "<": relay.less, ">": relay.greater, "<=": relay.less_equal, ">=": relay.greater_equal, "==": relay.equal, "!=": relay.not_equal}
TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool"]
X, Y = relay.Var("x"), relay.Var("y")
INT32 = relay.scalar_type("int32")


def same_graph(a, b):
    tvm.ir.assert_structural_equal(a, b, map_free_vars=True)


def parse_text(code):
    expr = tvm.parser.parse_expr(code)
    return expr


def parses_as(code, expr):
    same_graph(parse_text(code), expr)


@program(*[(o,) for o in BINARY])
def every_binary_operator(symbol):
    parses_as(f"1 {symbol} 1", BINARY[symbol](relay.const(1), relay.const(1)))
    parses_as(f"fn (%x, %y) {{ %x {symbol} %y }}", relay.Function([X, Y], BINARY[symbol](X, Y)))


@program
def negation_and_parentheses():
    parses_as("(1 * 1) + 1", relay.add(relay.multiply(relay.const(1), relay.const(1)), relay.const(1)))
    same_graph(parse_text("1 + 2 * 3"), parse_text("1 + (2 * 3)"))
    x = relay.Var("x")
    parses_as("let %x = 1; -%x", relay.Let(x, relay.const(1), relay.negative(x)))


@program(*[(t,) for t in TYPES])
def every_scalar_type(name):
    parses_as(f"let %_ : {name} = (); ()", relay.Let(relay.Var("_", relay.scalar_type(name)), relay.Tuple([]), relay.Tuple([])))
    t = relay.TensorType((3, 4), name)
    parses_as(f"let %_ : Tensor[(3, 4), {name}] = (); ()", relay.Let(relay.Var("_", t), relay.Tuple([]), relay.Tuple([])))


@program
def tensor_types_of_few_sizes():
    for text, shape in (("()", ()), ("(1,)", (1,)), ("(1)", (1,)), ("(1, 1)", (1, 1)), ("(?, 4)", (relay.Any(), 4))):
        v = parse_text(f"let %_ : Tensor[{text}, float32] = (); ()").var
        assert v.type_annotation == relay.TensorType(shape, "float32") or len(v.type_annotation.shape) == len(shape)


@program
def sequences_and_lets():
    parses_as("let %x = 1; ()", relay.Let(X, relay.const(1), relay.Tuple([])))
    parses_as("let %_ = { 1 }; ()", relay.Let(relay.Var("_"), relay.const(1), relay.Tuple([])))
    parses_as("let %_ = { let %x = 1; %x }; ()", relay.Let(relay.Var("_"), relay.Let(X, relay.const(1), X), relay.Tuple([])))
    raises(tvm.error.DiagnosticError, lambda: parse_text("let %x = 1"))
    raises(tvm.error.DiagnosticError, lambda: parse_text("let %x = let %y = 1; 2"))


@program
def graphs_keep_sharing():
    f = parse_text("%0 = (); %1 = 1; (%0, %0, %1)")
    unit, one = relay.Tuple([]), relay.const(1)
    same_graph(f, relay.Tuple([unit, unit, one]))
    assert f.fields[0].same_as(f.fields[1])
    raises(tvm.error.DiagnosticError, lambda: parse_text("%0 = 1; %1"))


@program
def functions_with_attributes_and_names():
    parses_as("fn () { 0 }", relay.Function([], relay.const(0), None, []))
    parses_as("fn (%x, %y) -> int32 { %x + %y }", relay.Function([X, Y], relay.add(X, Y), INT32, []))
    f = parse_text('fn (foo="bar", fizz=5) { () }')
    assert f.attrs["foo"] == "bar" and f.attrs["fizz"] == 5 and len(f.params) == 0
    same_graph(parse_text("let %const = fn (%x, %y) { %x }; ()"), relay.Let(relay.Var("const"), relay.Function([X, Y], X), relay.Tuple([])))


@program
def recursion_by_let():
    f = relay.Var("id_func")
    parses_as("let %id_func = fn (%x) { %id_func(%x) }; ()", relay.Let(f, relay.Function([X], relay.Call(f, [X])), relay.Tuple([])))


@program
def conditions_of_every_shape():
    parses_as("if (True) { 0 } else { 1 }", relay.If(relay.const(True), relay.const(0), relay.const(1)))
    parses_as("fn (%x) { if (%x < 1) { 1 } else { if (%x > 2) { 2 } else { 3 } } }", relay.Function([X], relay.If(relay.less(X, relay.const(1)), relay.const(1), relay.If(relay.greater(X, relay.const(2)), relay.const(2), relay.const(3)))))
    raises(tvm.error.DiagnosticError, lambda: parse_text("if (True) { 0 }"))


@program
def calls_that_curry():
    f = relay.Var("f")
    parses_as("let %f = fn () { 0 }; %f()", relay.Let(f, relay.Function([], relay.const(0)), relay.Call(f, [])))
    parses_as("(fn (%x) { %x })(5)", relay.Call(relay.Function([X], X), [relay.const(5)]))
    c = relay.Var("c")
    parses_as("let %c = fn (%x) { fn (%y) { %x * %y } }; %c(0)(0)", relay.Let(c, relay.Function([X], relay.Function([Y], relay.multiply(X, Y))), relay.Call(relay.Call(c, [relay.const(0)]), [relay.const(0)])))


@program
def incomplete_and_function_types():
    parses_as("let %_ : fn () -> int32 = fn () -> int32 { 0 }; ()", relay.Let(relay.Var("_", relay.FuncType([], INT32, [], [])), relay.Function([], relay.const(0), INT32, []), relay.Tuple([])))
    parses_as("let %_ : fn (int32, int32) -> int32 = (); ()", relay.Let(relay.Var("_", relay.FuncType([INT32, INT32], INT32)), relay.Tuple([]), relay.Tuple([])))
    parses_as("let %_ : (int32, int32, ()) = (); ()", relay.Let(relay.Var("_", relay.TupleType([INT32, INT32, relay.TupleType([])])), relay.Tuple([]), relay.Tuple([])))


@program
def type_definitions_by_form():
    for text, count in (("type Ayy { Nil }", 1), ("type Ayy { Nil, }", 1), ("type Ayy { Val(int32), Other, }", 2), ("type Ayy {  }", 0), ("type Ayy[A, B] { Two(A, B), }", 1)):
        mod = tvm.parser.fromtext(SEMVER + text)
        v = mod.get_global_type_var("Ayy")
        assert len(mod.type_definitions[v].constructors) == count
    both = tvm.parser.fromtext(SEMVER + "type Ayy { Nil } type Lmao { Cons(Ayy), }")
    assert len(both.get_global_type_vars()) == 2
    raises(tvm.error.DiagnosticError, lambda: tvm.parser.fromtext(SEMVER + "type Ayy { Nil } type Ayy { Nil }"))


@program
def matches_of_nested_patterns():
    mod = tvm.parser.fromtext(SEMVER + """
        type List[A] { Cons(A, List[A]), Nil, }
        def @second(%xs: List[int32]) -> int32 {
          match? (%xs) { Cons(_, Cons(%y, _)) => %y, Nil => { 0 }, }
        }""")
    m = mod["second"].body
    assert isinstance(m.clauses[0].lhs.patterns[1], relay.PatternConstructor) and isinstance(m.clauses[0].lhs.patterns[0], relay.PatternWildcard)


@program
def tuple_patterns():
    mod = tvm.parser.fromtext(SEMVER + """
        type List[A] { Cons(A, List[A]), Nil, }
        def @second(%p: (int32, List[int32])) -> int32 {
          match? (%p) { (%a, Cons(_, _)) => %a, (_, Nil) => 0, }
        }""")
    assert isinstance(mod["second"].body.clauses[0].lhs, relay.PatternTuple)


@program
def globals_call_each_other():
    mod = tvm.parser.fromtext(SEMVER + """
        def @id(%x: int32) -> int32 { %x }
        def @id2(%x: int32) -> int32 { @id(%x) }
        def @main() { @id2(5) }""")
    assert len(mod.functions) == 3 and mod["main"].body.op.name_hint == "id2"
    raises(tvm.error.DiagnosticError, lambda: tvm.parser.fromtext(SEMVER + "def @id(%x: int32) -> int32 { %x } def @id(%x: int32) -> int32 { %x }"))


@program
def attributes_of_operators():
    mod = tvm.parser.fromtext(SEMVER + """
        def @main(%data: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
          %0 = nn.conv2d(%data, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], out_dtype="float32");
          reshape(%0, newshape=[0, -1])
        }""")
    mod = relay.transform.InferType()(mod)
    assert mod["main"].ret_type == relay.TensorType((1, 64)) and mod["main"].body.args[0].attrs.strides[0] == 2


@program
def the_prelude_is_read():
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    p = Prelude()
    same_graph(mod, p.mod)
    again = tvm.parser.fromtext(p.mod.astext())
    tvm.ir.assert_structural_equal(p.mod, again, map_free_vars=True)


@program
def a_network_goes_around():
    mod, _ = resnet.get_workload(num_layers=18)
    again = tvm.parser.fromtext(mod.astext())
    tvm.ir.assert_structural_equal(mod, again)


@program
def tuple_fields_and_projections():
    parses_as("(1, 2).1", relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(2)]), 1))
    parses_as("((1, 2), 3).0.1", relay.TupleGetItem(relay.TupleGetItem(relay.Tuple([relay.Tuple([relay.const(1), relay.const(2)]), relay.const(3)]), 0), 1))


@program
def source_names_and_maps():
    from tvm.relay import SourceName
    mod = tvm.parser.parse(SEMVER + "def @main(%x: int32) { %x }", "the_name")
    assert mod["main"].body.span is not None or mod["main"].span is not None
    assert SourceName("the_name").name == "the_name"


@program
def meta_references_of_constants():
    mod = tvm.parser.fromtext(relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([X2 := relay.var("x", shape=(2,))], X2 + relay.const(np.array([1, 2], "float32"))))).astext())
    np.testing.assert_allclose(mod["main"].body.args[1].data.numpy(), [1, 2])


@program
def call_attributes_of_functions_of_functions():
    f = parse_text("fn (%x: Tensor[(2), float32], Primitive=1, hash=\"abc\") -> Tensor[(2), float32] { nn.relu(%x) }")
    assert int(f.attrs["Primitive"]) == 1 and f.attrs["hash"] == "abc" and f.ret_type == relay.TensorType((2,))


@program
def wrong_arity_is_explained():
    error = raises(tvm.error.DiagnosticError, lambda: relay.transform.InferType()(tvm.parser.fromtext(SEMVER + "def @main(%x: Tensor[(2), float32]) { add(%x) }")))
    assert error is not None
    error = raises(tvm.error.DiagnosticError, lambda: relay.transform.InferType()(tvm.parser.fromtext(SEMVER + "def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }")))
    assert error is not None
