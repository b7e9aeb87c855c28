# SPDX-License-Identifier: Apache-2.0
"""Programs in text: what the classic reader takes, in the order its grammar has them, and what it refuses."""
import numpy as np
import tvm
from harness import program, raises, refusing, same
from tvm import relay
from tvm.ir import IRModule

HEAD = '#[version = "0.0.5"]\n'
A_LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
INT = relay.scalar_type("int32")


def expr(text):
    return tvm.parser.parse_expr(text)


def mod(text):
    return tvm.parser.parse(HEAD + text)


def there_and_back(text):
    read = mod(text)
    again = tvm.parser.parse(read.astext())
    tvm.ir.assert_structural_equal(read, again, map_free_vars=True)
    return read


@program(("inff", np.inf), ("1.0f", 1), ("1.5e3f", 1500), ("2e-2f", 0.02))
def special_floats(text, value):
    read = mod("def @main() { %s }" % text)["main"].body
    assert isinstance(read, relay.Constant) and read.data.dtype == "float32"
    np.testing.assert_allclose(read.data.numpy(), value, rtol=1e-6)


@program
def an_infinity_in_an_attribute():
    x = relay.var("x", shape=(3, 4), dtype="float32")
    y = relay.clip(x, -np.inf, np.inf)
    f = relay.Function([x], y)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(f))
    same(tvm.parser.parse(module.astext()), module)


@program
def strings_as_attributes():
    text = HEAD + """def @main(%x: Tensor[(1, 32, 32, 3), float32], %w: Tensor[(1, 1, 3, 3), float32]) {
        nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=3, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO")
    }"""
    call = tvm.parser.parse(text)["main"].body
    assert isinstance(call, relay.Call) and call.op.name == "nn.conv2d"
    assert call.attrs.data_layout == "NHWC" and call.attrs.kernel_layout == "HWIO" and call.attrs.channels == 3


@program
def references_read():
    f = there_and_back("def @main() -> int32 { let %r = ref(1); ref_write(%r, 2); ref_read(%r) }")["main"]
    assert isinstance(f.body, relay.Let) and isinstance(f.body.value, relay.RefCreate)


@program
def an_if_that_is_bound():
    f = there_and_back("""def @example(%b: bool) {
      %0 = if (%b) { 1 } else { 0 };
      %0
    }""")["example"]
    b = relay.var("b", "bool")
    tvm.ir.assert_structural_equal(f, relay.Function([b], relay.If(b, relay.const(1), relay.const(0))), map_free_vars=True)


@program
def tables_given_beside_the_text():
    first = relay.Constant(tvm.nd.array(np.random.RandomState(0).rand(1, 3).astype("float32")))
    module = tvm.parser.parse(HEAD + "def @f(%y: Tensor[(1, 3), float32]) { %y + meta[relay.Constant][0] }", "text.txt", None, {"relay.Constant": [first]})
    assert module["f"].body.args[1].same_as(first) or tvm.ir.structural_equal(module["f"].body.args[1], first)


@program
def a_module_to_start_from_and_a_table():
    init = tvm.parser.parse(HEAD + "def @f(%y : Tensor[(1, 3), float32]) { %y }")
    table = {"relay.Constant": [relay.const(np.ones((1, 3), "float32"))]}
    module = tvm.parser.parse(HEAD + "def @g(%y : Tensor[(1, 3), float32]) { @f(%y) * meta[relay.Constant][0] }", "more", init, table)
    assert {v.name_hint for v in module.get_global_vars()} == {"f", "g"}
    assert isinstance(module["g"].body.args[0], relay.Call)


@program
def metatables_in_text():
    text = HEAD + "def @main(%a: Tensor[(2, 3), float32]) { %a + meta[relay.Constant][0] }\n#[metadata]\n"
    x = relay.var("a", shape=(2, 3))
    made = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(np.arange(6, dtype="float32").reshape(2, 3))))
    printed = made.astext()
    assert "#[metadata]" in printed
    table = printed.split("#[metadata]\n")[1]
    read = tvm.parser.parse(text + table)
    np.testing.assert_array_equal(read["main"].body.args[1].data.numpy(), np.arange(6).reshape(2, 3))
    assert read["main"].body.args[1].data.dtype == "float32"


@program
def prelude_loaded_by_text():
    module = IRModule()
    module.import_from_std("prelude.rly")
    again = tvm.parser.parse(module.astext())
    same(again, module)


@program
def whole_networks():
    from tvm.relay.testing import mlp
    module = mlp.get_workload(1)[0]
    same(tvm.parser.parse(module.astext()), module)


@program
def functions_with_functions_inside():
    text = HEAD + """def @main(%x0: Tensor[(10, 10), float32], %w0: Tensor[(10, 10), float32], %w1: Tensor[(10, 10), float32]) {
      %0 = fn (%a: Tensor[(10, 10), float32], %b: Tensor[(10, 10), float32], Primitive=1, Compiler="a") { add(%a, %b) };
      %1 = %0(%x0, %w0);
      %2 = fn (%c: Tensor[(10, 10), float32], %d: Tensor[(10, 10), float32], Inline=1) -> Tensor[(10, 10), float32] { subtract(%c, %d) };
      let %z = %2(%1, %w1);
      concatenate((%1, %z), axis=-1)
    }"""
    module = tvm.parser.parse(text)
    checked = relay.transform.InferType()(module)
    assert checked["main"].checked_type.ret_type == relay.TensorType((10, 20), "float32")
    found = []
    relay.analysis.post_order_visit(checked["main"], lambda n: found.append(n) if isinstance(n, relay.Function) else None)
    assert any(f.attrs and "Compiler" in f.attrs.keys() and f.attrs["Compiler"] == "a" for f in found)
    same(tvm.parser.parse(checked.astext()), checked)


@program
def attributes_of_functions_of_all_kinds():
    module = there_and_back('def @main(%x: int32, a=1, b="b", c=[1, 2]) -> int32 { %x }')
    attrs = module["main"].attrs
    assert attrs["a"] == 1 and attrs["b"] == "b" and [int(i) for i in attrs["c"]] == [1, 2]


@program
def virtual_devices_in_text():
    text = HEAD + """def @main(%x: Tensor[(5, 7), float32], %y: Tensor[(5, 7), float32]) {
      add(on_device(%x, virtual_device=meta[VirtualDevice][0], constrain_result=True, constrain_body=True), %y)
    }"""
    place = tvm.target.VirtualDevice(tvm.device("cpu"))
    module = tvm.parser.parse(text, "from_string", None, {"VirtualDevice": [place]})
    attrs = module["main"].body.args[0].attrs
    assert attrs.virtual_device.device_type_int == 1 and attrs.constrain_result and attrs.constrain_body


@program
def no_global_is_bound():
    with refusing(tvm.error.DiagnosticError):
        expr("let @x = 1; ()")
    with refusing(tvm.error.DiagnosticError):
        expr("let x = 1; ()")


@program
def locals_shadow():
    e = expr("let %x = 1; let %x = 2; %x")
    assert e.body.var.same_as(e.body.body) and not e.var.same_as(e.body.var)


@program
def values_in_order():
    e = expr("let %_ = 1; let %_ = 2; ()")
    assert isinstance(e.body, relay.Let)
    e = expr("{ 1 }")
    assert isinstance(e, relay.Constant)


@program
def a_graph_out_of_order():
    with refusing(tvm.error.DiagnosticError):
        expr("%1 = (%2, %2); %1")


@program
def calls_without_and_with_arguments():
    e = expr("fn (%f: fn () -> int32) -> int32 { %f() }")
    f = relay.Var("f", relay.FuncType([], INT))
    tvm.ir.assert_structural_equal(e, relay.Function([f], relay.Call(f, []), INT))
    e = expr("fn (%f: fn (int32, int32) -> int32, %x: int32) { %f(%x, 1) }")
    assert len(e.body.args) == 2


@program
def a_call_of_a_call():
    one = expr("""(fn (%a) { fn (%b) { fn (%c) { %a + %b * %c } } })(1)(2)(3)""")
    assert one.op.op.op.body.body.body.op.name == "add"
    assert relay.create_executor("debug").evaluate(one).numpy() == 7


@program
def whole_modules_of_adts():
    module = there_and_back(A_LIST + """def @length[A](%xs: List[A]) -> int32 {
      match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0, }
    }
    def @main() -> int32 { @length(Cons(1, Cons(2, Nil))) }""")
    assert int(relay.create_executor("debug", mod=module).evaluate()().numpy()) == 2


@program(("match", True), ("match?", False))
def complete_or_not(word, complete):
    module = mod(A_LIST + """def @id[A](%%xs: List[A]) -> List[A] {
      %s (%%xs) { Cons(%%a, %%b) => Cons(%%a, %%b), Nil => Nil, }
    }""" % word)
    assert module["id"].body.complete is complete


@program("type T { A, A }", A_LIST + A_LIST, "type A { X }\ntype B { X }", "def @f() { 1 }\ndef @f() { 1 }", "type T[A] { C(B) }\ndef @main() { C(1) }")
def names_twice(text):
    with refusing((tvm.error.DiagnosticError, tvm.TVMError)):
        relay.transform.InferType()(mod(text))


@program
def types_without_constructors():
    module = mod("type Ayy { }")
    tv = relay.GlobalTypeVar("Ayy")
    want = IRModule()
    want[tv] = relay.TypeData(tv, [], [])
    same(module, want)
    module = mod("extern type T[A]")
    tv = relay.GlobalTypeVar("T")
    want = IRModule()
    want[tv] = relay.TypeData(tv, [relay.TypeVar("A")], [])
    same(module, want)
    module = mod("type Pair[A, B] { Both(A, B), }")
    tv, a, b = relay.GlobalTypeVar("Pair"), relay.TypeVar("A"), relay.TypeVar("B")
    want = IRModule()
    want[tv] = relay.TypeData(tv, [a, b], [relay.Constructor("Both", [a, b], tv)])
    same(module, want)


@program
def constructors_as_functions():
    module = mod(A_LIST + "def @make(%x: int32) -> List[int32] { Cons(%x, Nil) }")
    call = module["make"].body
    assert isinstance(call.op, relay.Constructor) and call.op.name_hint == "Cons"
    assert isinstance(call.args[1], (relay.Call, relay.Constructor))
    function = mod(A_LIST + "def @give() { Cons }")["give"]
    assert isinstance(function.body, relay.Constructor)


@program
def empty_calls_of_constructors():
    module = mod("type T { Zero, One(int32) }\ndef @zero() -> T { Zero }\ndef @zero2() -> T { Zero() }")
    relay.transform.InferType()(module)


@program("def @main(%x: Tensor[2, float32]) { %x }", "def @main(%x: Tensor[(2, 3)]) { %x }", "def main() { 1 }", "def @main() { 1", "fn () { 1 }}",
         "def @main() { (1, 2 }", "def @main() { add(1 2) }", "def @main() { nn.conv3000() }", "def @main() { 'a' }", "def @main(%x) { %x.a }")
def refused_texts(text):
    with refusing((tvm.error.DiagnosticError, tvm.TVMError)):
        mod(text)


@program
def versions():
    with refusing((tvm.error.DiagnosticError, tvm.TVMError)):
        tvm.parser.parse("def @main() { 1 }")
    assert tvm.parser.parse('#[version = "0.0.5"]\ndef @main() { 1 }')
    with refusing((tvm.error.DiagnosticError, tvm.TVMError)):
        tvm.parser.parse('#[version = "0.0.1"]\ndef @main() { 1 }')


@program
def names_of_many_characters():
    module = there_and_back("def @main_part_1(%a_b9: int32) { let %_x = %a_b9; %_x }")
    assert module["main_part_1"].params[0].name_hint == "a_b9"
    module = there_and_back("def @main(%base/x: int32, %y: int32) { %base/x + %y/%base/x }")
    assert module["main"].params[0].name_hint == "base/x" and module["main"].body.args[1].op.name == "divide"


@program("bool", "uint1", "int4", "uint4", "float16", "bfloat16")
def seldom_data_types(dtype):
    f = expr(f"fn (%x: Tensor[(3,), {dtype}]) {{ %x }}")
    assert f.params[0].type_annotation == relay.TensorType((3,), dtype)


@program
def attributes_of_operators_in_text():
    texts = {
        "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])": lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2)),
        "reshape(%x, newshape=[1, -1])": lambda x: relay.reshape(x, (1, -1)),
        "transpose(%x, axes=[0, 2, 3, 1])": lambda x: relay.transpose(x, (0, 2, 3, 1)),
        "transpose(%x, axes=None)": lambda x: relay.transpose(x),
        "sum(%x, axis=[1])": lambda x: relay.sum(x, 1),
        "sum(%x, axis=[1], keepdims=True, exclude=True)": lambda x: relay.sum(x, 1, True, True),
        "cast(%x, dtype=\"int8\")": lambda x: relay.cast(x, "int8"),
        "squeeze(%x, axis=[0])": lambda x: relay.squeeze(x, [0]),
        "clip(%x, a_min=0f, a_max=6f)": lambda x: relay.clip(x, 0, 6),
        "nn.leaky_relu(%x, alpha=0.5f)": lambda x: relay.nn.leaky_relu(x, 0.5),
        "expand_dims(%x, axis=1, num_newaxis=2)": lambda x: relay.expand_dims(x, 1, 2),
        "strided_slice(%x, begin=[0, 1], end=[1, 2], strides=[1, 1], axes=None)": lambda x: relay.strided_slice(x, [0, 1], [1, 2], [1, 1]),
        "nn.softmax(%x, axis=1)": lambda x: relay.nn.softmax(x, 1),
        "split(%x, indices_or_sections=2, axis=1)": lambda x: relay.split(x, 2, 1).astuple(),
        "split(%x, indices_or_sections=[1], axis=1)": lambda x: relay.split(x, (1,), 1).astuple(),
        "one_hot(cast(%x, dtype=\"int32\"), 1f, 0f, depth=3, axis=-1, dtype=\"float32\")": lambda x: relay.one_hot(relay.cast(x, "int32"), relay.const(1.0), relay.const(0.0), 3, -1, "float32"),
    }
    x = relay.var("x", shape=(1, 4, 8, 8))
    for text, make in texts.items():
        read = expr("fn (%x: Tensor[(1, 4, 8, 8), float32]) { " + text + " }")
        tvm.ir.assert_structural_equal(read, relay.Function([x], make(x)), map_free_vars=True)


@program
def errors_name_the_place():
    error = raises(tvm.error.DiagnosticError, mod, "def @main(%x: int32) {\n  %y\n}")
    assert "Error" in str(error) or "error" in str(error)
    error = raises(tvm.error.DiagnosticError, tvm.parser.parse, HEAD + "def @main() {\n  foo(1)\n}", "from_a_file.rly")
    assert isinstance(error, tvm.TVMError)


@program
def spans_name_lines():
    text = HEAD + "def @main(%x: Tensor[(2, 2), float32]) {\n  %0 = add(%x, %x);\n  multiply(%0, %0)\n}"
    body = tvm.parser.parse(text, "here.rly")["main"].body
    assert body.span.source_name.name == "here.rly"
    assert body.span.line >= 3 and body.args[0].span.line == 3 and body.args[0].span.line <= body.span.line


@program
def fromtext_is_parse():
    text = HEAD + "def @main(%x: int32) { %x }"
    same(tvm.parser.fromtext(text), tvm.parser.parse(text))
    same(relay.fromtext(text), tvm.parser.parse(text))


@program
def tuples_of_one_and_their_types():
    f = expr("fn (%x: (int32,), %y: (int32, (float32, bool))) { (%x.0, %y.1.0) }")
    f = relay.transform.InferType()(tvm.IRModule.from_expr(f))["main"]
    assert f.checked_type.ret_type == relay.TupleType([INT, relay.scalar_type("float32")])


@program
def functions_with_type_parameters():
    f = expr("fn [A, B](%x: A, %f: fn (A) -> B) -> B { %f(%x) }")
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    x, g = relay.Var("x", a), relay.Var("f", relay.FuncType([a], b))
    tvm.ir.assert_structural_equal(f, relay.Function([x, g], g(x), b, [a, b]))


@program
def global_functions_know_each_other():
    module = there_and_back("""def @even(%x: int32) -> bool { if (%x == 0) { True } else { @odd(%x - 1) } }
    def @odd(%x: int32) -> bool { if (%x == 0) { False } else { @even(%x - 1) } }
    def @main() -> bool { @even(7) }""")
    assert not relay.create_executor("debug", mod=module).evaluate()().numpy()


@program
def comparisons_chain_to_the_left():
    e = expr("1 - 2 + 3 * 4 / 2")
    assert e.op.name == "add" and e.args[0].op.name == "subtract" and e.args[1].op.name == "divide"
    assert relay.create_executor("debug").evaluate(e).numpy() == 5
    e = expr("1 + 1 == 2")
    assert e.op.name == "equal" and bool(relay.create_executor("debug").evaluate(e).numpy())


@program
def negative_numbers():
    for text, value in (("-100", -100), ("-1f", -1.0), ("-1.5f", -1.5)):
        e = expr(text)
        value_of = e if isinstance(e, relay.Constant) else relay.create_executor("debug").evaluate(e)
        assert float((value_of.data if isinstance(value_of, relay.Constant) else value_of).numpy()) == value
    e = expr("fn (%x: int32) { %x + -1 }")
    assert int(relay.create_executor("debug").evaluate(e)(np.int32(4)).numpy()) == 3
