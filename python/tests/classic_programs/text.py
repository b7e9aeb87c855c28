# SPDX-License-Identifier: Apache-2.0
"""The text of programs: what is read, what is refused, and how it is written."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, raises, same
from tvm import relay

VERSION = '#[version = "0.0.5"]\n'
UNIT = relay.Tuple([])


def parse(code):
    """The expression, once more through its own text."""
    expr = tvm.parser.parse_expr(code)
    same(tvm.parser.parse_expr(expr.astext(show_meta_data=False)), expr)
    return expr


@program(("// a line\n()",), ("() // behind",), ("/* a block\n over lines */ ()",), ("/* outer /* inner */ outer */ ()",), ("/**/()",))
def comments(code):
    same(parse(code), UNIT)


@program(("5", 5, "int32"), ("-100", -100, "int32"), ("-07", -7, "int32"), ("0", 0, "int32"), ("2147483647", 2147483647, "int32"), ("2147483648", 2147483648, "int64"),
         ("9223372036854775807", 2**63 - 1, "int64"), ("-42i", -42, "int32"), ("-42i32", -42, "int32"), ("-42i64", -42, "int64"), ("3i16", 3, "int16"), ("--10", 10, "int32"),
         ("---10", -10, "int32"), ("2.5f", 2.5, "float32"), ("-10.0f", -10, "float32"), ("1E+1f", 10, "float32"), ("5e-1f", 0.5, "float32"), ("2.5E-1f", 0.25, "float32"),
         ("3f32", 3, "float32"), ("3f", 3, "float32"), ("3f16", 3, "float16"), ("3f64", 3, "float64"), ("0.0f", 0, "float32"), ("True", True, "bool"), ("False", False, "bool"))
def literals(code, value, dtype):
    constant = parse(code)
    assert isinstance(constant, relay.Constant) and constant.data.dtype == dtype
    assert constant.data.numpy().item() == value
    same(constant, relay.const(value, dtype))


@program(("2147483648i32",), ("40000i16",), ("3.5e+38f32",), ("1zz",), ("let @x = 1; ()",), ("let x = 1; ()",), ("if (True) { let %x = (); () } else { %x }",), ("%x",),
         ("meta[no.key][3]",), ("type A { L } type H { L }",), ("(1, 2",), ("add(1, 2",), ("nonsense(1)",), ("fn (%x) { %y }",), ("/* no end",), ("\"text\"",), ("$",))
def refused(code):
    error = raises(tvm.error.DiagnosticError, parse, code)
    assert isinstance(error, tvm.TVMError)


OPERATORS = {"*": relay.multiply, "/": relay.divide, "+": relay.add, "-": relay.subtract, "<": relay.less, ">": relay.greater, "<=": relay.less_equal,
             ">=": relay.greater_equal, "==": relay.equal, "!=": relay.not_equal}


@program(*OPERATORS.items())
def infix(sign, make):
    same(parse(f"1 {sign} 2"), make(relay.const(1), relay.const(2)))


@program(("1 * 2 + 3", "(1 * 2) + 3"), ("1 + 2 * 3", "1 + (2 * 3)"), ("1 - 2 - 3", "(1 - 2) - 3"), ("1 + 2 < 3 == True", "((1 + 2) < 3) == True"), ("1 * 2 < 3 + 4", "(1 * 2) < (3 + 4)"))
def precedence(code, meant):
    same(parse(code), parse(meant))
    assert not tvm.ir.structural_equal(parse("1 * (2 + 3)"), parse("1 * 2 + 3"))


@program
def names():
    assert parse("let %a = (); %a").body.name_hint == "a"
    assert isinstance(parse("@somewhere"), relay.GlobalVar)
    for name in ("add", "nn.global_avg_pool2d"):
        found = parse(name)
        assert isinstance(found, tvm.ir.Op) and found.name == name


X, Y = relay.Var("x"), relay.Var("y")
INT = relay.scalar_type("int32")
XI, YI = relay.Var("x", INT), relay.Var("y", INT)


@program(("()", UNIT), ("(0,)", relay.Tuple([relay.const(0)])), ("(0, 1)", relay.Tuple([relay.const(0), relay.const(1)])), ("((),)", relay.Tuple([UNIT])),
         ("%0 = (); %1 = 1; (%0, %0, %1)", relay.Tuple([UNIT, UNIT, relay.const(1)])), ("%1 = (); %1", UNIT), ("(); ()", relay.Let(relay.Var("_"), UNIT, UNIT)),
         ("let %x = 1; ()", relay.Let(X, relay.const(1), UNIT)), ("let %x = 1; let %y = 2; ()", relay.Let(X, relay.const(1), relay.Let(Y, relay.const(2), UNIT))),
         ("let %x : _ = (); ()", relay.Let(X, UNIT, UNIT)), ("fn () { 0 }", relay.Function([], relay.const(0))), ("fn (%x) { %x }", relay.Function([X], X)),
         ("fn (%x, %y) { %x + %y }", relay.Function([X, Y], X + Y)), ("fn (%x: int32) -> int32 { %x }", relay.Function([XI], XI, INT)),
         ("(fn (%x) { %x })(0)", relay.Call(relay.Function([X], X), [relay.const(0)])), ("if (True) { 0 } else { 1 }", relay.If(relay.const(True), relay.const(0), relay.const(1))),
         ("abs(1)", relay.Call(relay.op.get("abs"), [relay.const(1)])), ("let %x: (int32,) = (0,); ()", relay.Let(relay.Var("x", relay.TupleType([INT])), relay.Tuple([relay.const(0)]), UNIT)),
         ("let %x: () = (); ()", relay.Let(relay.Var("x", relay.TupleType([])), UNIT, UNIT)),
         ("let %x: fn (int32) -> int32 = fn (%y: int32) -> int32 { 0 }; ()", relay.Let(relay.Var("x", relay.FuncType([INT], INT)), relay.Function([YI], relay.const(0), INT), UNIT)),
         ("let %x = fn (%y) { %y }; 10 * %x(10)", relay.Let(X, relay.Function([Y], Y), relay.multiply(relay.const(10), relay.Call(X, [relay.const(10)])))),
         ("let %x = fn () { 0 }; %x()", relay.Let(X, relay.Function([], relay.const(0)), relay.Call(X, []))))
def expressions(code, meant):
    same(parse(code), meant)


@program
def free_variables():
    x = relay.var("x", shape=())
    same(parse("free_var %x: float32; %x((%x,).0, %x)"), relay.Call(x, [relay.TupleGetItem(relay.Tuple([x]), 0), x]))
    call = parse('free_var %x: Tensor[(1, 8, 8, 3), float32]; free_var %w: Tensor[(1, 1, 3, 3), float32]; nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="HWIO")')
    assert call.op.name == "nn.conv2d" and (call.attrs.data_layout, call.attrs.kernel_layout) == ("NHWC", "HWIO")


@program(*[(t,) for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool", "int8x4", "uint1x4", "float16x4")])
def types_of_lets(name):
    assert isinstance(parse(f"let %a : {name} = (); ()"), relay.Let)


@program(("Tensor[(), float32]", ()), ("Tensor[(1), float32]", (1,)), ("Tensor[(1, 1), float32]", (1, 1)), ("Tensor[(?, 1), float32]", (tvm.tir.Any(), 1)))
def tensor_types(code, shape):
    found = parse(f"let %a : {code} = (); ()").var.type_annotation
    assert str(found) == str(relay.TensorType(shape, "float32")) and found.dtype == "float32"


@program(("type T { Nil }", "T", 0, ["Nil"]), ("type T { }", "T", 0, []), ("type T[A] { Wrap(A), }", "T", 1, ["Wrap"]), ("type Either[A, B] { Left(A), Right(B) }", "Either", 2, ["Left", "Right"]),
         ("extern type T[A]", "T", 1, []), ("extern type T", "T", 0, []), ("type L[A] { Cons(A, L[A]), Nil }", "L", 1, ["Cons", "Nil"]))
def data_types(code, name, variables, constructors):
    mod = tvm.parser.parse(VERSION + code)
    header, data = mod.type_definitions.items()[0]
    assert header.name_hint == name and len(data.type_vars) == variables
    assert [c.name_hint for c in data.constructors] == constructors
    same(tvm.parser.fromtext(mod.astext()), mod)


@program(("def @f(%x: int32) -> int32 { %x }",), ("def @f(%x: int32) -> int32 { @f(%x) }",), ("def @f(%b: bool) { %0 = if (%b) { 1 } else { 0 }; %0 }",),
         ("def @main(%x: float32) { %0 = ref(%x); ref_write(%0, 1f); ref_read(%0) }",), ("type Box[T] { box(T) } def @f() { %0 = (); %1 = box(%0); %2 = box(0f); (%1, %2,) }",),
         ("type L[A] { Cons(A, L[A]), Nil } def @one(%x: int32) -> L[int32] { Cons(%x, Nil) }",),
         ("type L[A] { Cons(A, L[A]), Nil } def @length[A](%xs: L[A]) -> int32 { match (%xs) { Cons(_, %rest : L[A]) => { (); 1 + @length(%rest) }, Nil => 0, } }",),
         ("type L[A] { Cons(A, L[A]), Nil } def @head[A](%xs: L[A]) -> A { match? (%xs) { Cons(%x, _) => %x, } }",), ("def @g(%x: int32) { @h(%x) } def @h(%x: int32) { %x }",))
def modules(code):
    mod = tvm.parser.parse(VERSION + code)
    assert isinstance(mod, tvm.IRModule)
    same(tvm.parser.fromtext(mod.astext()), mod)


@program(("def @f(%x: int32) { %x } def @f(%x: int32) { %x }",), ("type A { L } type A { M }",), ("type A { L } type B { L }",), ("def @f() { 1 + }",), ("def f() { 1 }",))
def refused_modules(code):
    raises(tvm.error.DiagnosticError, tvm.parser.parse, VERSION + code)


@program
def beginning_with_a_module():
    first = tvm.parser.fromtext(VERSION + "def @f(%y : Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { negative(%y) }")
    table = {"relay.Constant": [relay.const(np.ones((2, 3)), dtype="float32")]}
    mod = tvm.parser.parse(VERSION + "def @main(%x: Tensor[(2, 3), float32]) { add(@f(%x), meta[relay.Constant][0]) }", "from_string", first, table)
    x = numbers(2, 3)
    np.testing.assert_allclose(relay.create_executor("vm", mod=mod).evaluate()(x).numpy(), 1 - x, rtol=1e-6)
    same(tvm.parser.fromtext(mod.astext()), mod)


P = relay.var("x", shape=(3, 2))
D, W = relay.var("d", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))


@program(("reshape", relay.reshape(P, (2, 3)), "reshape(%x, newshape=[2, 3])"), ("transpose", relay.transpose(P, [1, 0]), "transpose(%x, axes=[1, 0])"),
         ("sum", relay.sum(P, axis=1, keepdims=True), "sum(%x, axis=[1], keepdims=True)"),
         ("sum of all", relay.sum(P), "sum(%x)"), ("expand_dims", relay.expand_dims(P, 1), "expand_dims(%x, axis=1)"), ("cast", relay.cast(P, "int32"), 'cast(%x, dtype="int32")'),
         ("softmax", relay.nn.softmax(P), "nn.softmax(%x)"), ("softmax of an axis", relay.nn.softmax(P, axis=0), "nn.softmax(%x, axis=0)"), ("relu", relay.nn.relu(P), "nn.relu(%x)"),
         ("concatenate", relay.concatenate([P, P], axis=1), "concatenate(%0, axis=1)"), ("dense", relay.nn.dense(P, relay.var("k", shape=(5, 2)), units=5), "nn.dense(%x, %k, units=5)"),
         ("conv2d", relay.nn.conv2d(D, W), "nn.conv2d(%d, %w, padding=[0, 0, 0, 0])"),
         ("conv2d with sizes", relay.nn.conv2d(D, W, kernel_size=(3, 3), channels=4, padding=(1, 1)), "nn.conv2d(%d, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])"),
         ("max_pool2d", relay.nn.max_pool2d(D, (2, 2), strides=(2, 2)), "nn.max_pool2d(%d, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])"),
         ("clip", relay.clip(P, 0.0, 6.0), "clip(%x, a_min=0f, a_max=6f)"), ("leaky_relu", relay.nn.leaky_relu(P, alpha=0.5), "nn.leaky_relu(%x, alpha=0.5f)"),
         ("split at", relay.split(P, [1], axis=1).astuple(), "split(%x, indices_or_sections=[1], axis=1)"),
         ("take", relay.take(P, relay.const(1), axis=0), "axis=0"), ("batch_flatten", relay.nn.batch_flatten(P), "nn.batch_flatten(%x)"), ("argmax", relay.argmax(P, axis=1), "argmax(%x, axis=[1]"),
         ("pad", relay.nn.pad(P, ((0, 0), (1, 1))), "pad_width=[[0, 0], [1, 1]]"), ("layout", relay.layout_transform(D, "NCHW", "NHWC"), 'layout_transform(%d, src_layout="NCHW", dst_layout="NHWC")'),
         ("full", relay.full(relay.const(1.0), (2,), "float32"), 'shape=[2], dtype="float32"'))
def printed(_, expr, text):
    assert text in expr.astext(), expr.astext()
    assert expr.astext().startswith(VERSION)


@program
def strings_of_nodes():
    assert str(P + P).startswith("free_var %x: Tensor[(3, 2), float32];\n") and "add(%x, %x)" in str(P + P)
    assert str(relay.Function([P], P)).startswith("fn (%x: Tensor[(3, 2), float32])")
    assert relay.Function([P], P).astext().startswith(VERSION)
    assert relay.astext(P + P) == (P + P).astext()
    assert "%q" in str(relay.Var("q")) and str(relay.op.get("add")) == "add"


@program
def spans():
    mod = relay.transform.AnnotateSpans()(tvm.IRModule.from_expr(relay.Function([P], relay.clip(P, -np.inf, np.inf))))
    assert tvm.parser.SpanCheck()(mod) is not None


@program
def attributes_of_functions():
    function = relay.Function([P], relay.reshape(P, (-1,)), attrs=tvm.ir.make_node("DictAttrs", **{"Primitive": 1, "relay.reshape_only": 1}))
    same(parse(function.astext()), function)
    assert parse(function.astext()).attrs["Primitive"] == 1


@program
def weights_in_the_text():
    mod, params = relay.testing.mlp.get_workload(1)
    bound = relay.build_module.bind_params_by_name(mod["main"], params)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(bound))
    same(tvm.parser.parse(mod.astext()), mod)


@program
def prelude_in_text():
    mod = tvm.IRModule()
    mod.import_from_std("prelude.rly")
    mod.import_from_std("gradient.rly")
    assert "List" in [v.name_hint for v in tvm.parser.parse(mod.astext()).get_global_type_vars()]


@program
def run_what_was_read():
    mod = tvm.parser.fromtext(VERSION + "def @main(%x: Tensor[(3, 2), float32]) { let %y = %x * 2f; %y + %x }")
    np.testing.assert_allclose(evaluate(mod["main"], numbers(3, 2)), 3 * numbers(3, 2), rtol=1e-6)
