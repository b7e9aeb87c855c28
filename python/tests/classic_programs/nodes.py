# SPDX-License-Identifier: Apache-2.0
"""Expressions, types, attributes and containers as scripts read them."""
import pickle

import numpy as np
import tvm
from harness import program, raises, same
from tvm import relay, te

X, Y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
D, W = relay.var("d", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
CONV = relay.nn.conv2d(D, W, kernel_size=(3, 3), channels=4, padding=(1, 1))


@program((relay.reshape(X, (4, 3)), "newshape", [4, 3]), (relay.transpose(X, (1, 0)), "axes", [1, 0]), (relay.expand_dims(X, 1), "axis", 1), (relay.split(X, 2, 1).astuple(), "axis", 1),
         (relay.split(X, 2, 1).astuple(), "indices_or_sections", 2), (relay.split(X, [1, 2], 1).astuple(), "indices_or_sections", [1, 2]), (relay.sum(X, axis=(0, 1)), "axis", [0, 1]),
         (relay.sum(X, 1, True), "keepdims", True), (relay.cast(X, "int8"), "dtype", "int8"), (CONV, "padding", [1, 1, 1, 1]), (CONV, "strides", [1, 1]), (CONV, "groups", 1),
         (CONV, "channels", 4), (CONV, "kernel_size", [3, 3]), (CONV, "data_layout", "NCHW"), (CONV, "kernel_layout", "OIHW"), (CONV, "out_layout", ""), (CONV, "out_dtype", ""),
         (relay.clip(X, 0.0, 6.0), "a_max", 6.0), (relay.nn.softmax(X, 1), "axis", 1), (relay.nn.leaky_relu(X, 0.5), "alpha", 0.5), (relay.nn.max_pool2d(D, (2, 2)), "pool_size", [2, 2]),
         (relay.nn.max_pool2d(D, (2, 2)), "ceil_mode", False), (relay.concatenate([X, X], 1), "axis", 1), (relay.take(X, relay.const(1), 0), "mode", "clip"),
         (relay.nn.pad(X, ((0, 0), (1, 2))), "pad_width", [[0, 0], [1, 2]]), (relay.nn.dense(X, relay.var("k", shape=(5, 4)), units=5), "units", 5), (relay.tile(X, (2, 1)), "reps", [2, 1]),
         (relay.strided_slice(X, [0, 1], [2, 3]), "begin", [0, 1]), (relay.layout_transform(D, "NCHW", "NHWC"), "dst_layout", "NHWC"), (relay.nn.lrn(D, 3), "size", 3), (relay.argmax(X, 1), "axis", [1]))
def attribute(call, name, value):
    attrs = call.attrs
    assert isinstance(attrs, tvm.ir.Attrs) and name in attrs.keys()
    assert attrs[name] == value and getattr(attrs, name) == value
    if isinstance(value, list) and value and isinstance(value[0], int):
        assert attrs[name][0].value == value[0] and attrs.get_int_tuple(name) == tuple(value) and len(attrs[name]) == len(value)
    elif type(value) is int:
        assert attrs[name].value == value and attrs.get_int(name) == value and isinstance(attrs[name], int)
    elif isinstance(value, str):
        assert attrs.get_str(name) == value
    raises(AttributeError, lambda: attrs.nothing)
    raises(KeyError, lambda: attrs["nothing"])
    assert name in [field.name for field in attrs.list_field_info()]


@program
def attributes_by_name():
    attrs = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert attrs.x.value == 1 and attrs["y"].value == 10 and attrs.name == "xyz" and set(attrs.keys()) == {"x", "y", "name", "padding"} and len(attrs) == 4
    again = tvm.ir.load_json(tvm.ir.save_json(attrs))
    assert isinstance(again, tvm.ir.DictAttrs) and again.name == "xyz" and [int(v) for v in again.padding] == [0, 0]
    other = tvm.ir.make_node("DictAttrs", name="xyz", padding=(0, 0), y=10, x=1)
    assert tvm.ir.structural_equal(attrs, other) and tvm.ir.structural_hash(attrs) == tvm.ir.structural_hash(other)


@program(("text", "b", "b"), ("number", 3, 3), ("numbers", [1, 2], [1, 2]), ("real", 1.5, 1.5), ("imm", tvm.tir.IntImm("int32", 7), 7))
def attributes_of_functions(name, given, value):
    plain = relay.Function([X], X)
    function = plain.with_attr(name, given)
    assert function.attrs[name] == value and getattr(function.attrs, name) == value and name not in (plain.attrs or {})
    assert name not in function.without_attr(name).attrs.keys()
    assert plain.with_attr({name: given, "other": "z"}).attrs["other"] == "z"
    same(relay.Function([X], X, attrs=function.attrs), function)


@program
def attributes_of_modules():
    mod = tvm.IRModule.from_expr(relay.Function([X], X))
    other = mod.with_attr("n", 1).with_attr("text", "x")
    assert other.attrs["n"] == 1 and other.attrs["n"].value == 1 and other.get_attr("text") == "x" and mod.get_attr("n") is None


@program(((), "float32"), ((1,), "int8"), ((2, 3), "bool"), ((1, 2, 3, 4), "float64"), ([5, 6], "uint8"))
def tensor_type(shape, dtype):
    t = relay.TensorType(shape, dtype)
    assert t.shape == list(shape) and t.shape == tuple(shape) and t.concrete_shape == tuple(shape) and t.dtype == dtype and t.span is None
    assert all(d.value == given for d, given in zip(t.shape, shape)) and len(t.shape) == len(shape)
    assert t == relay.TensorType(tuple(shape), dtype) and t != relay.TensorType((7, 7), dtype) and hash(t) == hash(relay.TensorType(shape, dtype))
    same(tvm.ir.load_json(tvm.ir.save_json(t)), t)
    assert relay.var("v", t).type_annotation == t and relay.var("v", shape=shape, dtype=dtype).type_annotation == t


@program(("uint1", "bool"), ("int", "int32"), ("float", "float32"), ("uint", "uint32"), (bool, "bool"), (np.float64, "float64"), (np.dtype("int8"), "int8"))
def dtype_names(given, meant):
    assert relay.TensorType((2,), given).dtype == meant
    assert relay.var("x", shape=(2,), dtype=given).type_annotation.dtype == meant
    if isinstance(given, str):
        assert tvm.parser.parse_expr(f"fn (%x: Tensor[(2), {given}]) {{ %x }}").params[0].type_annotation.dtype == meant


@program
def other_types():
    t = relay.TensorType((2, 2))
    function = relay.FuncType([t], t, [], [])
    assert (function.arg_types, function.ret_type, function.type_params, function.type_constraints) == ([t], t, [], [])
    pair = relay.TupleType([t, t])
    assert pair.fields == [t, t] and str(pair) == "(Tensor[(2, 2), float32], Tensor[(2, 2), float32])"
    a, b = relay.TypeVar("a"), relay.TypeVar("b", relay.TypeKind.ShapeVar)
    assert a.name_hint == "a" and a.kind == relay.TypeKind.Type and b.kind == relay.TypeKind.ShapeVar and a != relay.TypeVar("a")
    assert relay.TypeRelation(None, [a, b], 1, None).args == [a, b]
    assert tvm.ir.PrimType("int32").dtype == "int32" and tvm.ir.PrimType("int32") == tvm.ir.PrimType("int32")
    left, right = (relay.FuncType([v], v, [v]) for v in (a, relay.TypeVar("c")))
    assert tvm.ir.structural_equal(left, right) and tvm.ir.structural_hash(left) == tvm.ir.structural_hash(right)
    assert not tvm.ir.structural_equal(a, relay.TypeVar("a"))


@program((1, "int32"), (1.5, "float32"), (True, "bool"), ([1, 2], "int32"), ([1.0], "float32"), (np.array([1.0]), "float64"), (np.int8(3), "int8"), (np.array(2, "uint8"), "uint8"))
def constants(value, dtype):
    c = relay.const(value)
    assert c.data.dtype == dtype and (c.data.numpy() == np.asarray(value)).all() and c.span is None and c.checked_type.dtype == dtype
    assert relay.const(value, "float16").data.dtype == "float16"
    same(tvm.ir.load_json(tvm.ir.save_json(c)), c)


@program
def expressions():
    v, a, b, c = (relay.Var(n) for n in "vabc")
    one = relay.const(1)
    function = relay.Function([a, b], relay.Tuple([]), None, tvm.runtime.convert([])).with_attr("key", tvm.runtime.convert("value"))
    assert function.params == [a, b] and function.type_params == [] and function.attrs["key"] == "value" and function.span is None
    call, let, branch = relay.Call(v, [a]), relay.Let(v, one, v), relay.If(c, a, b)
    assert call.op == v and call.args == [a] and (let.var, let.value, let.body) == (v, one, v) and (branch.cond, branch.true_branch, branch.false_branch) == (c, a, b)
    pair = relay.Tuple([a, b])
    assert pair.fields == [a, b] and len(pair) == 2 and pair[1] == b and relay.TupleGetItem(pair, 1).tuple_value == pair and relay.TupleGetItem(pair, 1).index == 1
    assert v.name_hint == "v" and v.vid.name_hint == "v" and v.type_annotation is None and v._checked_type_ is None and relay.GlobalVar("g").name_hint == "g"
    for node in (v, call, let, branch, pair, function, one):
        assert str(node) and repr(node) and isinstance(node, relay.Expr) and isinstance(node, tvm.ir.Node) and isinstance(node, tvm.ir.RelayExpr)


@program(("add", 2, ""), ("nn.conv2d", 2, "relay.attrs.Conv2DAttrs"), ("nn.relu", 1, ""), ("reshape", 1, "relay.attrs.ReshapeAttrs"), ("nn.batch_norm", 5, "relay.attrs.BatchNormAttrs"),
         ("nn.dense", 2, "relay.attrs.DenseAttrs"), ("clip", 1, "relay.attrs.ClipAttrs"), ("take", 2, "relay.attrs.TakeAttrs"), ("where", 3, ""))
def operator(name, inputs, key):
    op = relay.op.get(name)
    assert isinstance(op, tvm.ir.Op) and op.name == name and op.num_inputs == inputs and op == tvm.ir.Op.get(name) and op.attrs_type_key == key and len(op.arguments) == inputs
    assert op.get_attr("TOpPattern") is not None and op.has_attr("TOpPattern") and not op.has_attr("no.such.attribute") and name in tvm.ir.Op.list_op_names()
    assert tvm.ir.load_json(tvm.ir.save_json(op)) == op
    op.set_attr("test.value", 3)
    assert op.get_attr("test.value") == 3
    op.reset_attr("test.value")
    assert op.get_attr("test.value") is None


NODES = (("variable", relay.Var("x")), ("typed variable", X), ("type variable", relay.TypeVar("T")), ("global", relay.GlobalVar("g")), ("global type", relay.GlobalTypeVar("G")),
         ("operator", relay.op.get("add")), ("constant", relay.const(3.0)), ("call", X + Y), ("tuple", relay.Tuple([X, Y])), ("let", relay.Let(relay.Var("v"), relay.const(1), relay.const(2))),
         ("function", relay.Function([X], X)), ("tensor type", relay.TensorType((1,))), ("tuple type", relay.TupleType([relay.TensorType(())])), ("number type", tvm.ir.PrimType("int32")), ("pointer type", tvm.ir.PointerType(tvm.ir.PrimType("int8"), "global")), ("string", tvm.runtime.String("abc")),
         ("map", tvm.runtime.convert({"a": 1, "b": "x"})), ("array", tvm.runtime.convert([1, 2])), ("nested", tvm.runtime.convert({"a": [1, {"b": "c"}]})), ("number", tvm.tir.IntImm("int64", 3)),
         ("real", tvm.tir.FloatImm("float32", 0.5)), ("shape", tvm.runtime.ShapeTuple([2, 3])), ("device", tvm.cpu(0)), ("module", tvm.IRModule.from_expr(relay.Function([X], X))))


@program(*NODES)
def json_of(_, node):
    again = tvm.ir.load_json(tvm.ir.save_json(node))
    assert type(again) is type(node)
    if isinstance(node, relay.Var):
        assert again.name_hint == node.name_hint
    elif not isinstance(node, (relay.TypeVar, relay.GlobalTypeVar)):
        same(again, node)


@program(*[n for n in NODES if isinstance(n[1], (relay.Expr, tvm.ir.Type, tvm.IRModule, str, list, dict, tuple, int, float))])
def pickled(_, node):
    assert type(pickle.loads(pickle.dumps(node))) is type(node)


@program
def arrays():
    a = tvm.runtime.convert([1, 2, 3])
    assert isinstance(a, tvm.ir.Array) and len(a) == 3 and a[-1].value == 3 and list(a[1:]) == [2, 3] and [x.value for x in a[-3:2]] == [1, 2] and a == [1, 2, 3]
    raises(IndexError, lambda: a[5])
    assert [int(x) for x in a + [4]] == [1, 2, 3, 4] and isinstance(a + [4], tvm.ir.Array)
    assert tvm.ir.load_json(tvm.ir.save_json(a))[1].value == 2


@program
def maps():
    m = tvm.runtime.convert({"a": 2, "b": 3})
    assert isinstance(m, tvm.ir.Map) and "a" in m and len(m) == 2 and m["b"].value == 3 and m.get("z", 5) == 5 and m.items()[0][0] == "a" and set(m.keys()) == {"a", "b"}
    raises(KeyError, lambda: m["z"])
    v = relay.Var("v")
    assert tvm.runtime.convert({v: 2})[v].value == 2


@program
def strings_and_shapes():
    s = tvm.runtime.String("abc")
    assert s == "abc" and isinstance(s, str) and s + "d" == "abcd" and s.startswith("a") and tvm.testing.echo(s) == "abc" and isinstance(tvm.runtime.convert("x"), tvm.runtime.String)
    shape = tvm.runtime.ShapeTuple([1, 2, 3])
    assert shape == [1, 2, 3] and shape == (1, 2, 3) and shape[0] == 1 and shape[-1] == 3 and shape[0:2] == [1, 2] and len(shape) == 3 and shape != [1, 2]
    assert tvm.runtime.convert(None) is None


@program(("int64", 5), ("int32", -3), ("uint8", 200), ("bool", 1))
def integers(dtype, value):
    i = tvm.tir.IntImm(dtype, value)
    assert (i.value, i.dtype, int(i)) == (value, dtype, value) and i == value and tvm.tir.const(value, dtype).dtype == dtype and tvm.runtime.const(value, dtype).value == value


@program
def reals_and_words():
    f = tvm.tir.FloatImm("float64", 1.5)
    assert f.value == 1.5 and f.dtype == "float64" and tvm.tir.StringImm("x").value == "x" and tvm.tir.const(1.0).dtype == "float32" and tvm.tir.const(True).dtype == "bool"
    assert tvm.tir.indexdiv(tvm.tir.IntImm("int32", 7), 2) == 3 and tvm.tir.indexmod(7, 4) == 3 and te.var("n").name == "n"
    buffer = tvm.tir.decl_buffer((2, 3), "int8", "b")
    assert buffer.shape[1].value == 3 and buffer.dtype == "int8" and buffer.name == "b"
    assert tvm.ir.Range(2, 10).extent == 8 and tvm.ir.Range.from_min_extent(2, 8).min == 2 and tvm.ir.Range(4).extent == 4


@program(("NCHW", "NHWC", (1, 2, 3, 4), [1, 3, 4, 2]), ("NCHW", "NCHW4c", (1, 8, 3, 3), [1, 2, 3, 3, 4]), ("NCHW16c", "NCHW", (1, 2, 3, 3, 16), [1, 32, 3, 3]), ("OIHW", "OIHW4i8o", (16, 8, 3, 3), [2, 2, 3, 3, 4, 8]))
def layouts(source, target, shape, moved):
    pair = tvm.tir.bijective_layout(source, target)
    assert [int(d) for d in pair.forward_shape(shape)] == moved and [int(d) for d in pair.backward_shape(moved)] == list(shape)
    index = [0] * len(shape)
    index[1] = 1
    assert [int(i) for i in pair.backward_index(pair.forward_index(index))] == index
    layout = tvm.tir.layout(source)
    assert str(layout) == source and layout[0] == source[0] and source[1] in layout and layout.index_of("H") >= 0 and layout.index_of("Z") == -1


@program(("int8x4", 0, 8, 4), ("float32", 2, 32, 1), ("bool", 1, 1, 1), ("uint1", 1, 1, 1), ("handle", 3, 64, 1), ("bfloat16", 4, 16, 1), ("uint16x8", 1, 16, 8))
def data_type(text, code, bits, lanes):
    d = tvm.DataType(text)
    assert (d.type_code, d.bits, d.lanes) == (code, bits, lanes) and d == text.replace("uint1", "bool") if text == "uint1" else d == text
    raises(ValueError, tvm.DataType, "nonsense")


@program
def modules():
    function, g = relay.Function([X], X), relay.GlobalVar("f")
    mod = tvm.IRModule()
    mod[g] = function
    assert [v.name_hint for v in mod.get_global_vars()] == ["f"] and mod.get_global_var("f").name_hint == "f" and mod.functions.items()[0][0].name_hint == "f" and mod["f"] == mod[g]
    raises((ValueError, tvm.TVMError), lambda: mod["z"])
    raises((ValueError, tvm.TVMError), mod.get_global_var, "z")
    other = tvm.IRModule({g: function})
    same(mod, other)
    mod.update(tvm.IRModule({relay.GlobalVar("h"): function}))
    assert len(mod.functions) == 2 and isinstance(tvm.IRModule.from_expr(X + X)["main"], relay.Function)


@program
def functions_by_name():
    @tvm.register_func("test.classic.plus_one", override=True)
    def plus_one(x):
        return x + 1
    function = tvm.ir.EnvFunc.get("test.classic.plus_one")
    assert function(1) == 2 and function.func(3) == 4
    again = tvm.ir.load_json(tvm.ir.save_json(function))
    assert again.name == function.name and again(1) == 2
    attrs = tvm.ir.load_json(tvm.ir.save_json(tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4), func=function)))
    assert attrs.name == "xx" and attrs.padding[0].value == 3 and attrs.axis == 10 and attrs.func(10) == 11
    raises((TypeError, AttributeError, tvm.TVMError), lambda: tvm.ir.make_node("attrs.TestAttrs", unknown_key=1, name="xx"))


@program
def places():
    span = relay.Span(relay.SourceName("file"), 1, 2, 3, 4)
    assert span.source_name.name == "file" and (span.line, span.end_line, span.column, span.end_column) == (1, 2, 3, 4) and isinstance(span, relay.base.Span) and str(span)


@program(("VarWithFields", X, {"type_annotation": relay.TensorType((9,))}), ("CallWithFields", X + Y, {"args": [Y, X]}), ("TupleWithFields", relay.Tuple([X]), {"fields": [Y]}),
         ("FunctionWithFields", relay.Function([X], X), {"body": X + X}), ("LetWithFields", relay.Let(relay.Var("v"), X, Y), {"body": X}))
def exchanged_parts(name, node, fields):
    with_fields = getattr(relay, name)
    made = with_fields(node, **fields)
    for key, value in fields.items():
        assert getattr(made, key) == value and getattr(node, key) != value
    assert with_fields(node) == node
    place = tvm.target.VirtualDevice(tvm.cpu(0))
    assert with_fields(node, virtual_device=place).virtual_device_ == place and node.virtual_device_ == tvm.target.VirtualDevice()


@program
def annotated_regions():
    from tvm.relay.op.annotation import compiler_begin, compiler_end
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    begins = [compiler_begin(x, "one"), compiler_begin(y, "one")]
    total = begins[0] + begins[1]
    first = compiler_end(total, "one")
    start = compiler_begin(first, "two")
    last = compiler_end(relay.exp(start), "two")
    regions = relay.analysis.AnnotatedRegionSet(last, relay.op.get("annotation.compiler_begin"), relay.op.get("annotation.compiler_end"))
    one, two = regions.get_region(total), regions.get_region(last)
    assert len(regions) == 2 and (one.target, two.target) == ("one", "two") and regions.get_region(x) is None
    assert set(one.args) == set(begins) and one.rets == [first] and set(one.nodes) == {*begins, total, first} and two.args == [start] and two.rets == [last]
