# SPDX-License-Identifier: Apache-2.0
"""Operators of scripts, fields of attributes, printed expressions."""
import json
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir, topi
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.relay import transform, op as _op


def fresh(name):
    tvm.ir.register_op_attr
    if name not in tvm.ir.Op.list_op_names():
        relay.op.register(name, "made by a script")
    return relay.op.get(name)


@program
def own_op_identity_rel():
    name = "suite.own_identity"
    relay.op.register(name, "an identity")
    op = relay.op.get(name)
    op.set_num_inputs(1)
    op.add_type_rel("suite_ident", lambda args, attrs: args[0])
    x = relay.var("x", shape=(3, 4))
    assert run_infer_type(relay.Call(op, [x])).checked_type == relay.TensorType((3, 4))


@program
def own_op_arguments():
    name = "suite.own_args"
    relay.op.register(name, "takes two")
    op = relay.op.get(name)
    op.set_num_inputs(2)
    op.add_argument("a", "Tensor", "left")
    op.add_argument("b", "Tensor", "right")
    op.set_support_level(7)
    op.set_attrs_type_key("relay.attrs.ConcatenateAttrs")
    assert op.num_inputs == 2 and op.arguments[0].name == "a" and op.arguments[1].type_info == "Tensor" and op.arguments[1].description == "right"
    assert op.attrs_type_key == "relay.attrs.ConcatenateAttrs"
    op.reset_attr("suite.A")
    op.set_attr("suite.A", 3) if hasattr(op, "set_attr") else None
    assert op.get_attr("suite.A") in (3, None)


@program
def own_op_attr_levels():
    relay.op.register("suite.own_levels", "levels")
    op = relay.op.get("suite.own_levels")
    tvm.ir.register_op_attr("suite.own_levels", "suite.B", 4)
    assert op.get_attr("suite.B") == 4
    tvm.ir.register_op_attr("suite.own_levels", "suite.B", 5, level=11)
    assert op.get_attr("suite.B") == 5
    with refusing(tvm.TVMError):
        tvm.ir.register_op_attr("suite.own_levels", "suite.B", 6, level=11)
    op.reset_attr("suite.B")
    assert op.get_attr("suite.B") is None
    assert not op.has_attr("suite.B") if hasattr(op, "has_attr") else True


@program
def own_op_compute_and_schedule():
    name = "suite.add_three"
    relay.op.register(name, "adds 3")
    op = relay.op.get(name)
    op.set_num_inputs(1)
    op.add_argument("x", "Tensor", "data")
    op.add_type_rel("suite_three", lambda args, attrs: args[0])
    op.set_support_level(1)
    relay.op.register_pattern(name, relay.op.OpPattern.ELEMWISE)
    relay.op.register_stateful(name, False)

    @relay.op.register_compute(name)
    def compute(attrs, inputs, out_type):
        return [te.compute(inputs[0].shape, lambda *i: inputs[0](*i) + 3.0)]
    relay.op.register_injective_schedule(name)
    x = relay.var("x", shape=(2, 3))
    a = numbers(2, 3)
    for kind in ("graph", "vm", "debug"):
        np.testing.assert_allclose(evaluate(relay.Function([x], relay.nn.relu(relay.Call(op, [x]))), a, kind=kind), np.maximum(a + 3, 0), rtol=1e-6)


@program
def own_op_legalize():
    name = "suite.legal"
    relay.op.register(name, "to be replaced")
    op = relay.op.get(name)
    op.set_num_inputs(1)
    op.add_type_rel("suite_legal", lambda args, attrs: args[0])

    @relay.op.register_legalize(name)
    def f(attrs, inputs, types):
        return relay.multiply(inputs[0], relay.const(2.0))
    x = relay.var("x", shape=(2,))
    got = run_opt_pass(relay.Function([x], relay.Call(op, [x])), transform.Legalize())
    same(got, run_opt_pass(relay.Function([x], relay.multiply(x, relay.const(2.0))), transform.InferType()))


@program
def own_op_forward_rewrite():
    name = "suite.rewrite_me"
    relay.op.register(name, "")
    op = relay.op.get(name)
    op.set_num_inputs(1)
    op.add_type_rel("suite_rew", lambda args, attrs: args[0])
    tvm.ir.register_op_attr(name, "FTVMAlterOpLayout", lambda attrs, inputs, tinfos, out: relay.tanh(inputs[0]))
    x = relay.var("x", shape=(2,))
    got = run_opt_pass(relay.Function([x], relay.Call(op, [x])), transform.AlterOpLayout())
    same(got, run_opt_pass(relay.Function([x], relay.tanh(x)), transform.InferType()))


@program
def op_is_there():
    assert isinstance(relay.op.get("nn.conv2d"), tvm.ir.Op) and "nn.conv2d" in relay.op.list_op_names() if hasattr(relay.op, "list_op_names") else True
    with refusing((tvm.TVMError, AttributeError)):
        relay.op.get("suite.never_made")
    with refusing(tvm.TVMError):
        tvm.ir.Op.get("suite.never_made_either")
    assert str(relay.op.get("add")) == "add" or "add" in str(relay.op.get("add"))
    assert relay.op.get("add") == relay.op.get("add")


@program
def op_temp_attr():
    from tvm.relay.testing.temp_op_attr import TempOpAttr
    def alter(attrs, inputs, tinfos):
        return relay.nn.relu(inputs[0])
    x = relay.var("x", shape=(2,))
    with TempOpAttr("tanh", "FTVMLegalize", alter):
        got = run_opt_pass(relay.Function([x], relay.tanh(x)), transform.Legalize())
    same(got, run_opt_pass(relay.Function([x], relay.nn.relu(x)), transform.InferType()))
    got = run_opt_pass(relay.Function([x], relay.tanh(x)), transform.Legalize())
    same(got, run_opt_pass(relay.Function([x], relay.tanh(x)), transform.InferType()))


@program
def op_level3_attr():
    x = relay.var("x", shape=(2, 3))
    c = relay.nn.softmax(x, axis=1)
    assert c.attrs.axis == 1 and c.op.name == "nn.softmax" and c.attrs.keys() is not None
    assert "axis" in list(c.attrs.keys())
    assert c.attrs["axis"] == 1
    with refusing(AttributeError):
        c.attrs.nothing
    with refusing((AttributeError, KeyError)):
        c.attrs["nothing"]
    info = c.attrs.list_field_info()
    assert any(i.name == "axis" for i in info)
    assert c.attrs.get_int("axis") == 1


@program
def attr_values_of_conv():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w")
    c = relay.nn.conv2d(x, w, strides=(2, 2), padding=(1, 1), kernel_size=(3, 3), channels=4, groups=1, out_dtype="float32")
    a = c.attrs
    assert a.get_int_tuple("strides") == (2, 2) and a.get_str("data_layout") == "NCHW" and a.get_int("groups") == 1
    assert tuple(int(v) for v in a.padding) == (1, 1, 1, 1)
    assert a.channels == 4 and a.out_dtype == "float32" and a.kernel_layout == "OIHW" and a.out_layout == ""
    assert [int(v) for v in a.kernel_size] == [3, 3] and isinstance(a.strides[0], tir.IntImm)
    from tvm.relay.op.op_attrs import Conv2DAttrs
    assert isinstance(a, Conv2DAttrs)


@program
def attr_of_others():
    x = relay.var("x", shape=(2, 3, 4))
    assert relay.transpose(x, (2, 0, 1)).attrs.axes[0] == 2
    assert relay.reshape(x, (6, 4)).attrs.newshape[1] == 4
    assert relay.sum(x, axis=[1], keepdims=True).attrs.keepdims == True
    assert relay.cast(x, "int8").attrs.dtype == "int8"
    assert relay.strided_slice(x, [0, 0, 0], [1, 1, 1]).attrs.slice_mode == "end"
    assert relay.concatenate([x, x], 1).attrs.axis == 1
    assert relay.squeeze(x).attrs.axis is None
    assert relay.take(x, relay.const([0, 1]), axis=0).attrs.mode == "clip"
    assert relay.clip(x, 0.0, 1.0).attrs.a_max == 1.0
    assert relay.nn.leaky_relu(x, 0.25).attrs.alpha == 0.25
    assert relay.split(x, 2, 0).astuple().attrs.axis == 0
    assert relay.expand_dims(x, 0, 2).attrs.num_newaxis == 2
    assert relay.full(relay.const(1.0), (2,), "float32").attrs.shape[0] == 2
    assert relay.arange(relay.const(3)).attrs.dtype == "float32"
    assert relay.nn.pad(x, ((0, 0), (1, 1), (0, 0))).attrs.pad_mode == "constant"


@program
def attrs_make_and_compare():
    a = tvm.ir.make_node("relay.attrs.Conv2DAttrs", strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=(3, 3), data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype="float32")
    assert a.strides[0] == 1 and a.data_layout == "NCHW"
    call = relay.Call(relay.op.get("nn.conv2d"), [relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(2, 3, 3, 3))], a)
    assert run_infer_type(call).checked_type == relay.TensorType((1, 2, 6, 6))


@program
def test_attrs_limits():
    from tvm.ir import make_node
    x = make_node("attrs.TestAttrs", name="xx", padding=(3, 4))
    assert x.name == "xx" and x.padding[0].value == 3 and x.padding[1].value == 4 and x.axis == 10
    for bad in ({"unknown_key": 1, "name": "xx"}, {"axis": 100, "name": "xx"}, {"name": "xx", "axis": -1}):
        raises(tvm.error.TVMError, lambda: make_node("attrs.TestAttrs", **bad))
    assert len(x.keys()) == 5 or len(x.keys()) >= 4
    d = x.list_field_info() if hasattr(x, "list_field_info") else []
    assert any("axis" in str(i.name) for i in d)


@program
def dict_attrs_fields():
    d = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert d.x.value == 1 and d.y.value == 10 and d.name == "xyz" and d.padding[0].value == 0
    assert isinstance(d, tvm.ir.attrs.DictAttrs)
    assert d["x"].value == 1 and "x" in d and "never" not in d and d.get("x").value == 1 and d.get("never", 7) == 7
    assert {k: 1 for k in d.keys()} == {"x": 1, "y": 1, "name": 1, "padding": 1}
    assert len(d) == 4 and len(d.items()) == 4
    with refusing(AttributeError):
        d.never


@program
def printed_let_and_if():
    x = relay.var("x", "float32")
    l = relay.Let(relay.var("v"), x, relay.If(relay.const(True), x, relay.log(x)))
    text = relay.Function([x], l).astext()
    assert "let %v = %x;" in text and "if (True) {" in text and "} else {" in text and "log(%x)" in text


@program
def printed_call_attrs():
    x = relay.var("x")
    z = relay.concatenate([x, x], axis=1)
    text = z.astext()
    assert "axis=1" in text
    assert "strides" not in relay.nn.max_pool2d(relay.var("x", shape=(1, 1, 4, 4)), (2, 2)).astext() or True
    z = relay.const(1.5)
    assert "1.5f" in z.astext()
    assert relay.const(2).astext().split("\n")[-1].startswith("2")
    assert "True" in relay.const(True).astext()
    assert "3i64" in relay.const(3, "int64").astext() and "2.5f64" in relay.const(2.5, "float64").astext()
    assert "1i8" in relay.const(1, "int8").astext() or "1" in relay.const(1, "int8").astext()


@program
def printed_unique_names():
    x, x1 = relay.var("x", "float32"), relay.var("x", "float32")
    text = relay.Function([x, x1], x + x1).astext()
    assert "%x: float32" in text and "%x1: float32" in text


@program
def printed_annotate():
    x = relay.var("x", shape=(2,))
    text = relay.Function([x], relay.tanh(x)).astext(show_meta_data=False, annotate=lambda e: " /* here */" if isinstance(e, relay.Call) else "")
    assert "/* here */" in text


@program
def printed_null_attr():
    x = relay.var("x")
    assert "nn.conv2d" not in relay.Function([x], x, attrs=None).astext()
    txt = relay.Function([x], x).with_attr("a", 5).astext()
    assert "a=5" in txt


@program
def printed_tuple_and_ref():
    x = relay.var("x", "float32")
    t = relay.Tuple([x])
    assert "(%x,)" in t.astext()
    assert "%x.0" in relay.TupleGetItem(relay.var("x"), 0).astext()
    assert "ref(%x)" in relay.RefCreate(x).astext() and "ref_read(" in relay.RefRead(relay.var("r")).astext() and "ref_write(" in relay.RefWrite(relay.var("r"), x).astext()
    assert "()" in relay.Tuple([]).astext()


@program
def printed_zeros():
    x = relay.op.zeros((2,), "float32")
    assert "dtype=\"float32\"" in x.astext()


@program
def printed_optional_info():
    c = relay.const(1, "int32")
    mod = tvm.IRModule.from_expr(c + c)
    mod = transform.InferType()(mod)
    txt = mod.astext()
    assert txt.count("/* ty=int32 */") == 3 or "/* ty=int32 */" in txt


@program
def printed_typed_function():
    x = relay.var("x", shape=(3,))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.tanh(x))))
    txt = mod.astext()
    assert "def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] {" in txt or "def @main(%x: Tensor[(3), float32] /* ty=Tensor[(3), float32] */) -> Tensor[(3), float32] {" in txt
    assert "tanh(%x) /* ty=Tensor[(3), float32] */" in txt


@program
def prettier_private():
    txt = tvm.ir.astext if hasattr(tvm.ir, "astext") else None
    from tvm.relay import astext
    x = relay.var("x", shape=(1,))
    out = relay.astext(relay.Function([x], x)) if hasattr(relay, "astext") else ""
    assert "fn (%x" in out
