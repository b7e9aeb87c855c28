# SPDX-License-Identifier: Apache-2.0
"""What the classic printer writes: numbered results, names that repeat, types on request, tables of what text cannot hold."""
import re

import numpy as np
import tvm
from harness import program, same
from tvm import relay, te, tir
from tvm.relay import testing

HEAD = '#[version = "0.0.5"]\n'


def show(node):
    text = node.astext()
    again = tvm.parser.parse(text) if isinstance(node, tvm.IRModule) else tvm.parser.parse_expr(text)
    same(again, node)
    return text


@program
def a_plain_function():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    f = relay.Function([x, y], relay.multiply(relay.add(x, x), y))
    text = show(f)
    assert re.sub(r" /\*.*?\*/| -> float32", "", text) == HEAD + "fn (%x: float32, %y: float32) {\n  %0 = add(%x, %x);\n  multiply(%0, %y)\n}"
    assert str(f).startswith("fn (%x: float32, %y: float32)")


@program
def a_module_of_functions():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    z = relay.add(x, y)
    z = relay.add(z, z)
    module = tvm.IRModule()
    module["myf"] = relay.Function([x, y], z)
    text = module.astext()
    assert "def @myf" in text and "def @myf" in str(module) and "add(%0, %0)" in text and "add(%0, %0)" in str(module)
    show(module)


@program
def attributes_of_calls():
    x = relay.var("x")
    z = relay.nn.softmax(x, axis=2)
    assert "axis=2" in z.astext()
    z = relay.expand_dims(x, axis=2)
    assert "axis=2" in z.astext()
    w = relay.var("w")
    z = relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=2)
    text = z.astext()
    assert "channels=2" in text and "kernel_size=[3, 3]" in text and "padding=[1, 1, 1, 1]" in text
    assert "strides" not in text and "groups" not in text and "out_dtype" not in text


@program
def lets_and_ifs():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    cond = relay.var("cond", "bool")
    sb = relay.ScopeBuilder()
    with sb.if_scope(cond):
        v1 = sb.let("v", relay.const(1, "float32"))
        v2 = sb.let("v", x)
        sb.ret(relay.subtract(v1, v2))
    with sb.else_scope():
        v3 = relay.var("v")
        let2 = relay.Let(v3, y, v3)
        sb.ret(relay.add(let2, let2))
    result = sb.get()
    f = relay.Function([x, y, cond], result)
    text = f.astext()
    assert text.count("{") == 3 and "%cond: bool" in text, text
    show(f)


@program
def names_that_repeat():
    v1, v2 = relay.var("1"), relay.var("2")
    assert "%v1" in v1.astext(), v1.astext()
    x1, x2 = relay.var("x"), relay.var("x")
    text = relay.Function([x1, x2], relay.add(x1, x2)).astext()
    assert "%x" in text and re.search(r"%x_?1", text), text
    assert "%v2" in relay.Function([v2], v2).astext()
    assert "%v_" in relay.var("_").astext() and "%v" in relay.var("").astext()
    mod = tvm.parser.parse(tvm.IRModule.from_expr(relay.Function([v1], v1)).astext())
    assert mod["main"].params[0].name_hint == "v1"


@program
def temporaries_in_the_order_of_calls():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    first = relay.nn.relu(x)
    second = relay.nn.relu(y)
    f = relay.Function([x, y], relay.add(first, relay.add(second, first)))
    text = re.sub(r" /\*.*?\*/", "", f.astext())
    assert "%0 = nn.relu(%x);\n  %1 = nn.relu(%y);\n  %2 = add(%1, %0);\n  add(%0, %2)" in text, text


@program
def numbers_of_inner_functions():
    a, b, c = (relay.var(n, "float32") for n in "abc")
    inner = relay.Function([c], relay.add(relay.add(c, c), c))
    text = show(relay.Function([a, b], relay.Call(inner, [relay.add(a, b)])))
    assert "%0 = add(%a, %b)" in text and "%1 = add(%c, %c)" in text and "%2 = fn (%c: float32)" in text and "%2(%0)" in text, text


@program
def what_is_used_twice_has_a_name():
    pair, x = relay.Tuple([relay.const(0), relay.const(0)]), relay.var("x")
    assert relay.Let(x, pair, pair).astext() == HEAD + "%0 = (0, 0);\nlet %x = %0;\n%0"
    assert relay.Let(x, pair, x).astext() == HEAD + "let %x = (0, 0);\n%x"
    a = relay.var("a", shape=(2,))
    total = relay.add(a, a)
    f = relay.Function([a], relay.Let(relay.var("t", shape=(2,)), total, relay.multiply(total, total)))
    read = tvm.parser.parse_expr(show(f))
    assert read.body.value.same_as(read.body.body.args[0])


@program
def lets_in_arguments_are_blocks():
    tmp = relay.Var("tmp", relay.scalar_type("int32"))
    value = relay.const(1)
    block = relay.Let(tmp, value, tmp)
    x = relay.var("x", "int32")
    f = relay.Function([x], relay.add(block, relay.Let(relay.Var("t"), x, x)))
    show(f)


@program
def zeros_without_operands():
    x = relay.zeros([], "float32")
    assert "zeros(shape=[], dtype=\"float32\")" in x.astext()
    x = relay.ones((2, 3), "int32")
    assert "ones(shape=[2, 3], dtype=\"int32\")" in x.astext()


@program
def constructors_without_arguments():
    text = HEAD + "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\ndef @main() {\n  Cons\n}\n"
    assert "Cons" in str(tvm.parser.parse(text)["main"])
    show(tvm.parser.parse(text))


@program
def attributes_of_functions():
    x = relay.var("x")
    z = relay.Function([x], x).with_attr("one", 1)
    assert "one=1" in z.astext() and "one=1" in str(z)


@program
def a_field_of_none():
    x = relay.var("x", shape=(2, 3))
    assert "transpose(%x, axes=None)" in relay.transpose(x).astext()


@program
def places_of_nodes():
    first = relay.Span(relay.SourceName("a.relay"), 1, 2, 3, 4)
    assert first.source_name.name == "a.relay" and (first.line, first.end_line, first.column, first.end_column) == (1, 2, 3, 4)
    text = HEAD + "def @main(%x: float32) {\n  add(%x, 1f)\n}"
    assert tvm.parser.parse(text)["main"].body.span is not None


@program
def comments_on_request():
    c = relay.const(1)
    call = relay.add(c, c)
    m = tvm.IRModule.from_expr(call)
    m = relay.transform.InferType()(m)
    text = m.astext()
    assert "/* ty=int32 */" in text
    assert "meta" not in text
    text = m.astext(show_meta_data=False)
    assert "/* ty=int32 */" in text
    note = m["main"].astext(annotate=lambda e: "/* seen */")
    assert "/* seen */" in note


@program
def slashes_in_names():
    x = relay.var("base/x")
    y = relay.var("base/y")
    z = relay.add(x, y)
    assert "base/x" in z.astext() and "base/y" in z.astext()


@program
def types_as_text():
    assert str(relay.TensorType((1, 2), "float32")) == "Tensor[(1, 2), float32]"
    assert str(relay.TensorType((5,), "int8")) == "Tensor[(5), int8]"
    assert str(relay.TensorType((), "bool")) == "bool"
    assert str(relay.TupleType([relay.scalar_type("int32")])) == "(int32,)"
    assert str(relay.TupleType([])) == "()"
    assert str(relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("bool"))) == "fn (int32) -> bool"
    assert str(relay.RefType(relay.scalar_type("int32"))) == "ref(int32)"
    assert str(relay.TensorType((relay.Any(), 3), "float32")) == "Tensor[(?, 3), float32]"
    a = relay.TypeVar("A")
    assert str(relay.FuncType([a], a, [a])) == "fn [A](A) -> A", str(relay.FuncType([a], a, [a]))
    g = relay.GlobalTypeVar("List")
    assert str(g(relay.scalar_type("int32"))) == "List[int32]"
    assert str(relay.TensorType((te.var("n"),), "float32"))


@program
def scalars_as_text():
    def of(value, dtype):
        return relay.const(value, dtype).astext().split("\n")[1].split(" /*")[0]
    assert of(1, "int32") == "1" and of(1, "int64") == "1i64" and of(2, "int16") == "2i16"
    assert of(1.0, "float32") == "1f" and of(1.5, "float64") == "1.5f64" and of(0.1, "float32") == "0.1f"
    assert of(True, "bool") == "True" and of(False, "bool") == "False"
    assert of(-3, "int32") == "-3" and of(1.5, "float16") == "1.5f16"
    assert of(1e-5, "float32") == "1e-05f" and of(2, "int8").startswith("meta[relay.Constant][0]")


@program
def nodes_of_the_loop_ir():
    x, y = te.var("x"), te.var("y", "int64")
    assert repr(x) == "x" and repr(x + 1) == "(x + 1)" and str(tir.const(1, "int32")) == "1" and str(x) == "x: int32"
    assert str(x + x * 2) == "(x: int32 + (x*2))" and str(y - te.var("y", "int64")) == "(y: int64 - y_1: int64)"
    assert repr(tir.floordiv(x, 4)) == "floordiv(x, 4)" and repr(tir.max(x, 3)) == "max(x, 3)" and repr(tir.all(x > 1, x < 3)) == "((x > 1) && (x < 3))"
    assert repr(tir.Select(x > 1, x, x + 1)) == "select((x > 1), x, (x + 1))" and repr(tir.Cast("float32", x)) == "float32(x)" and str(tir.Cast("float32", x)) == "cast(float32, x: int32)"
    assert repr(tir.exp(te.var("f", "float32"))) == "tir.exp(f)" and str(tir.exp(te.var("f", "float32"))) == "@tir.exp(f: float32, dtype=float32)" and repr(tir.Not(x > 1)) in ("!(x > 1)", "(x <= 1)")


@program("mlp", "lenet", "dqn", "dcgan", "squeezenet", "mobilenet")
def networks(name):
    made = getattr(testing, name, None)
    if made is None:
        return
    module = made.get_workload(1)[0] if name != "dcgan" else made.get_workload(batch_size=1)[0]
    text = module.astext()
    assert text.count("\n") > 4 and "#[metadata]" not in text
    same(tvm.parser.parse(text), module)


@program
def recurrent_networks():
    module = testing.lstm.get_workload(1, 1)[0]
    same(tvm.parser.parse(module.astext()), module)
    assert "split" in module.astext()


@program
def tuples_and_fields():
    x = relay.var("x", shape=(2,))
    t = relay.Tuple([x, relay.Tuple([]), x])
    text = show(relay.Function([x], t))
    assert "%0 = ()" in text and "(%x, %0, %x)" in text, text
    f = relay.Function([x], relay.TupleGetItem(relay.Tuple([x, x]), 1))
    assert "%0.1" in show(f)
    f = relay.Function([x], relay.Tuple([x]))
    assert "(%x,)" in show(f)


@program
def references_as_text():
    x = relay.var("x", "int32")
    r = relay.RefCreate(x)
    f = relay.Function([x], relay.Tuple([relay.RefRead(r), relay.RefWrite(r, x)]))
    text = f.astext()
    assert "ref(%x)" in text and "ref_read(%0)" in text.replace("%1", "%0") and "ref_write(" in text


@program
def matches_as_text():
    prelude = relay.prelude.Prelude()
    mod = prelude.mod
    text = mod.astext()
    assert "match? (%l)" in text or "match? (%" in text
    assert re.search(r"Cons\(%\w+: *\w*, *%\w+", text) or "Cons(%x" in text or "Cons(%" in text
    assert "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}" in text


@program
def functions_with_types():
    a = relay.TypeVar("A")
    x = relay.Var("x", a)
    f = relay.Function([x], x, a, [a])
    assert "fn [A](%x: A) -> A {" in f.astext()
    mod = tvm.IRModule({"id": f})
    assert "def @id[A](%x: A) -> A {" in mod.astext()


@program
def global_names():
    g = relay.GlobalVar("f")
    assert str(g) == "@f" or "@f" in str(g)
    call = relay.Call(g, [relay.const(1)])
    assert "@f(1" in call.astext()
    op = relay.op.get("add")
    assert str(op) == "add" and repr(op) == "Op(add)"


@program
def attributes_have_text():
    attrs = relay.nn.softmax(relay.var("x")).attrs
    assert "axis" in str(attrs) or "SoftmaxAttrs" in str(attrs)
    d = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert "DictAttrs" in str(d) or "xyz" in str(d)


@program
def text_of_a_build():
    x = relay.var("x", shape=(1, 4))
    f = relay.Function([x], relay.nn.relu(x + relay.const(np.ones((1, 4), "float32"))))
    mod = relay.transform.FuseOps()(relay.transform.InferType()(tvm.IRModule.from_expr(f)))
    text = mod.astext()
    assert "Primitive=1" in text and "hash" not in text.split("#[metadata]")[0] or "Primitive=1" in text
    assert "%p0" in text and "%p1" in text
    same(tvm.parser.parse(text), mod)


@program
def pretty_printer_function():
    x = relay.var("x", shape=(2,))
    assert "%x" in relay.astext(relay.Function([x], x)) and relay.pretty_print(relay.Function([x], x)).startswith("fn (%x")
