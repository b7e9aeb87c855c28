# SPDX-License-Identifier: Apache-2.0
"""The runtime's containers, and the JSON of nodes, of old versions, too."""
import json, os, pickle, tempfile

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi, runtime
from tvm.contrib import graph_executor, utils
from tvm.relay import transform
from tvm.runtime import container
import numpy as np
import tvm
import tvm.testing


@program
def adt_constructor():
    arr = tvm.nd.array([1, 2, 3])
    fields = [arr, arr]
    y = container.ADT(0, fields)
    assert len(y) == 2
    assert isinstance(y, container.ADT)
    y[0:1][-1] == arr
    assert y.tag == 0
    assert isinstance(arr, tvm.runtime.NDArray)


@program
def tuple_object():
    x = relay.var("x", type_annotation=relay.ty.TupleType([relay.ty.TensorType((), "int32"), relay.ty.TensorType((), "int32")]))
    fn = relay.Function([x], relay.expr.TupleGetItem(x, 0))
    mod = tvm.IRModule.from_expr(fn)
    f = relay.create_executor(kind="vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()
    value_tuple = container.tuple_object([tvm.nd.array(np.array(11)), tvm.nd.array(np.array(12))])
    out = f(value_tuple)
    np.testing.assert_equal(out.numpy(), 11)


@program
def string_pickle_and_ops():
    s = tvm.runtime.String("xyz")
    assert isinstance(s, tvm.runtime.String)
    assert isinstance(s, str)
    assert s.startswith("xy")
    assert s + "1" == "xyz1"
    y = tvm.testing.echo(s)
    assert isinstance(y, tvm.runtime.String)
    assert s.__tvm_object__.same_as(y.__tvm_object__)
    assert s == y
    x = tvm.ir.load_json(tvm.ir.save_json(y))
    assert isinstance(x, tvm.runtime.String)
    assert x == y
    z = pickle.loads(pickle.dumps(y))
    assert isinstance(z, tvm.runtime.String)
    assert z == y


@program
def shape_tuple_container():
    shape = [64, 32, 128]
    st = container.ShapeTuple(shape)
    assert len(st) == 3 and list(st) == shape and (st[0] == 64) and (st[-1] == 128) and (st[1:] == [32, 128]) or list(st[1:]) == [32, 128]
    z = tvm.runtime.ShapeTuple([64, 32, 128])
    assert st == z


@program
def bool_argument():

    def f(x):
        assert isinstance(x, (bool, int))
        return x
    g = tvm.runtime.convert(f)
    assert g(True) == 1
    assert g(False) == 0


@program
def map_container():
    a, b = (te.var("a"), te.var("b"))
    m = tvm.runtime.convert({a: 2, b: 3})
    assert a in m
    assert len(m) == 2
    assert m[a].value == 2
    assert str(m)
    assert dict(m.items()).keys()
    m2 = tvm.runtime.convert({"a": a, "b": b})
    assert m2["a"] == a
    assert "c" not in m2
    assert m2.get("c") is None
    assert isinstance(m2, tvm.ir.container.Map)
    assert isinstance(m, tvm.ir.container.Map)
    with refusing(KeyError):
        m2["zz"]
    assert sorted((str(k) for k in m2.keys())) == ["a", "b"]
    assert len(list(m2.values())) == 2


@program
def array_container():
    a = tvm.runtime.convert([1, 2, 3])
    assert len(a) == 3
    assert a[-1].value == 3
    sl = a[-3:-1]
    assert len(sl) == 2
    assert sl[0].value == 1
    assert [v.value for v in a[::2]] == [1, 3]
    with refusing(IndexError):
        a[3]
    assert isinstance(a, tvm.ir.Array)
    b = pickle.loads(pickle.dumps(a))
    assert b[0].value == 1
    c = tvm.ir.load_json(tvm.ir.save_json(a))
    assert tvm.ir.structural_equal(a, c)
    d = a + [4]


@program
def in_container():
    arr = tvm.runtime.convert(["a", "b", "c"])
    assert "a" in arr
    assert tvm.tir.StringImm("a") in arr
    assert "d" not in arr


@program
def ndarray_container_in_array():
    x = tvm.nd.array([1, 2, 3])
    arr = tvm.runtime.convert([x, x])
    assert arr[0].same_as(x)
    assert arr[1].same_as(x)
    assert isinstance(arr[0], tvm.nd.NDArray)


@program
def convert_return_type():
    assert isinstance(tvm.runtime.convert(1), tir.IntImm)
    assert tvm.runtime.convert(1).dtype == "int32"
    assert isinstance(tvm.runtime.convert(1.5), tir.FloatImm)
    assert tvm.runtime.convert(1.5).dtype == "float32"
    assert isinstance(tvm.runtime.convert("a"), (tvm.runtime.String, tir.StringImm))
    assert tvm.runtime.convert(None) is None
    assert isinstance(tvm.runtime.convert(lambda x: x), tvm.runtime.PackedFunc)
    assert tvm.runtime.convert(True).dtype in ("uint1", "bool")


@program
def const_values():
    x = tir.const(1, "int32")
    assert x.dtype == "int32"
    assert isinstance(x, tir.IntImm)
    assert x.value == 1
    assert tir.const(1.0, "float64").dtype == "float64"
    assert tvm.runtime.const(3).dtype == "int32"
    assert tvm.runtime.const(1.5).dtype == "float32"
    assert tvm.runtime.const(True).dtype in ("bool", "uint1")
    assert te.const(2, dtype="int8").dtype == "int8"
    with refusing((tvm.TVMError, ValueError, TypeError, OverflowError)):
        tir.const(300, "int8")


@program
def make_smap():
    x = tir.const(1, "int32")
    y = tir.const(10, "int32")
    z = tir.Add(x, y)
    smap = tvm.runtime.convert({"z": z, "x": x})
    json_str = tvm.ir.save_json(tvm.runtime.convert([smap]))
    arr = tvm.ir.load_json(json_str)
    assert len(arr) == 1
    assert arr[0]["z"].a == arr[0]["x"]
    tvm.ir.assert_structural_equal(arr, [smap], map_free_vars=True)


@program
def make_node():
    x = tvm.ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert isinstance(x, tir.IntImm)
    assert x.value == 10
    A = te.placeholder((10,), name="A")
    AA = tvm.ir.make_node("Tensor", shape=A.shape, dtype=A.dtype, op=A.op, value_index=A.value_index)
    assert AA.op == A.op
    assert AA.value_index == A.value_index
    y = tvm.ir.make_node("IntImm", dtype=tvm.runtime.String("int32"), value=10, span=None)
    assert y.dtype == "int32"


@program
def make_sum():
    A = te.placeholder((2, 10), name="A")
    k = te.reduce_axis((0, 10), "k")
    B = te.compute((2,), lambda i: te.sum(A[i, k], axis=k), name="B")
    json_str = tvm.ir.save_json(B)
    BB = tvm.ir.load_json(json_str)
    assert B.op.body[0].combiner is not None
    assert BB.op.body[0].combiner is not None


@program
def env_func():

    @tvm.register_func("suite.env_func", override=True)
    def test(x):
        return x + 1
    f = tvm.get_global_func("suite.env_func")
    x = tvm.ir.EnvFunc.get("suite.env_func")
    assert x.name == "suite.env_func"
    y = tvm.ir.load_json(tvm.ir.save_json(x))
    assert y.name == x.name
    assert y(1) == 2
    assert y.func(1) == 2
    z = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4), func=y)
    assert z.name == "xx"
    assert z.padding[0].value == 3
    assert z.axis == 10
    assert tvm.ir.load_json(tvm.ir.save_json(z)).name == "xx"


@program
def string_node_json():
    s = tvm.runtime.String("xy\x01z")
    assert tvm.ir.load_json(tvm.ir.save_json(s)) == s
    assert tvm.ir.load_json(tvm.ir.save_json(s)).__class__ is tvm.runtime.String


@program
def infinity_json():
    for v in (float("inf"), float("-inf")):
        x = tir.FloatImm("float32", v)
        assert tvm.ir.load_json(tvm.ir.save_json(x)).value == v
    n = tvm.ir.load_json(tvm.ir.save_json(tir.FloatImm("float32", float("nan"))))
    assert n.value != n.value


@program
def ndarray_json():
    a = tvm.nd.array(np.random.rand(10, 3).astype("float32"))
    d = tvm.runtime.convert({"a": a, "b": a})
    dd = tvm.ir.load_json(tvm.ir.save_json(d))
    np.testing.assert_array_equal(dd["a"].numpy(), a.numpy())


@program
def ndarray_dict_alloc():
    dev = tvm.cpu(0)
    m1 = {"key1": tvm.nd.array(np.random.rand(4), device=dev), "key2": tvm.nd.array(np.random.rand(4), device=dev)}
    m2 = tvm.ir.load_json(tvm.ir.save_json(m1))
    tvm.ir.assert_structural_equal(m1, m2)


@program
def free_var_equal():
    x, y, z = (te.var("x"), te.var("y"), te.var("z"))
    v1, v2 = (x + y, x + z)
    with refusing(ValueError):
        tvm.ir.assert_structural_equal(v1, v2)


@program
def json_has_version_and_attrs():
    x = relay.var("x", shape=(2,))
    d = json.loads(tvm.ir.save_json(relay.Function([x], x)))
    assert set(d) == {"root", "nodes", "b64ndarrays", "attrs"}
    assert d["attrs"]["tvm_version"].startswith("0.")
    assert d["nodes"][0]["type_key"] == ""
    assert any((n["type_key"] == "relay.Function" for n in d["nodes"]))


@program
def json_upgrade_type_var():
    nodes = [{"type_key": ""}, {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "2"}}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in0"}}, {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "4"}}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in1"}}]
    for n in nodes[1::2]:
        data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    tv = tvm.ir.load_json(json.dumps(data))
    assert isinstance(tv, tvm.ir.TypeVar)
    assert tv.name_hint == "in0"
    data["nodes"][1]["type_key"] = "relay.GlobalTypeVar"
    tv = tvm.ir.load_json(json.dumps(data))
    assert isinstance(tv, tvm.ir.GlobalTypeVar)


@program
def json_upgrade_var():
    nodes = [{"type_key": ""}, {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "span": "0", "type_annotation": "0", "vid": "2"}}, {"type_key": "relay.Id", "attrs": {"name_hint": "a3"}}, {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "4", "span": "0"}}, {"type_key": "Array", "data": [5, 6]}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "16", "span": "0"}}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "8", "span": "0"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    v = tvm.ir.load_json(json.dumps(data))
    assert isinstance(v, relay.Var)
    assert v.name_hint == "a3"
    data["root"] = 3
    assert isinstance(tvm.ir.load_json(json.dumps(data)), tvm.ir.TensorType)


@program
def json_upgrade_op_tuple_incomplete():
    nodes = [{"type_key": ""}, {"type_key": "relay.IncompleteType", "attrs": {"kind": "0", "span": "0"}}, {"type_key": "relay.TupleType", "attrs": {"fields": "3", "span": "0"}}, {"type_key": "Array", "data": [1]}, {"type_key": "relay.Op", "global_key": "nn.conv2d"}, {"type_key": "relay.Module", "attrs": {"functions": "6", "global_type_var_map_": "7", "global_var_map_": "8", "type_definitions": "9"}}, {"type_key": "Map"}, {"type_key": "StrMap"}, {"type_key": "StrMap"}, {"type_key": "Map"}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    assert isinstance(tvm.ir.load_json(json.dumps(data)), (relay.ty.IncompleteType,))
    data["root"] = 2
    assert isinstance(tvm.ir.load_json(json.dumps(data)), tvm.ir.TupleType)
    data["root"] = 4
    assert tvm.ir.load_json(json.dumps(data)) == relay.op.get("nn.conv2d")
    data["root"] = 5
    assert isinstance(tvm.ir.load_json(json.dumps(data)), tvm.IRModule)


@program
def json_upgrade_str_map():
    nodes = [{"type_key": ""}, {"type_key": "StrMap", "keys": ["z", "x"], "data": [2, 3]}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "2", "span": "0"}}, {"type_key": "Max", "attrs": {"a": "4", "b": "2", "dtype": "int32", "span": "0"}}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "1", "span": "0"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    x = tvm.ir.load_json(json.dumps(data))
    assert isinstance(x, tvm.ir.container.Map)
    assert len(x) == 2
    assert "z" in x
    assert "x" in x
    assert x["z"].value == 2


@program
def json_tir_old_keys():
    data = {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "x", "span": "0"}}, {"type_key": "SizeVar", "attrs": {"dtype": "int32", "name": "y", "span": "0"}}], "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    x = tvm.ir.load_json(json.dumps(data))
    assert isinstance(x, tir.Var)
    assert x.name == "x"
    data["root"] = 2
    y = tvm.ir.load_json(json.dumps(data))
    assert isinstance(y, tir.SizeVar)
    assert y.name == "y"


@program
def json_v6_type_keys():
    for old, cls in (("relay.TensorType", "TensorType"),):
        pass
    data = {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.TypeCall", "attrs": {"args": "3", "func": "2", "span": "0"}}, {"type_key": "relay.GlobalTypeVar", "attrs": {"kind": "5", "span": "0", "var": "4"}}, {"type_key": "Array"}, {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "L"}}], "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    data["nodes"][2]["attrs"]["kind"] = "0"
    x = tvm.ir.load_json(json.dumps(data))
    assert isinstance(x, tvm.ir.TypeCall) or isinstance(x, relay.TypeCall)


@program
def relay_json_round_trip_const():
    x = relay.var("x", shape=(2, 2))
    f = relay.Function([x], relay.add(x, relay.const(np.eye(2, dtype="float32"))))
    g = tvm.ir.load_json(tvm.ir.save_json(f))
    tvm.ir.assert_structural_equal(f, g)
    d = json.loads(tvm.ir.save_json(f))
    assert len(d["b64ndarrays"]) == 1


@program
def json_module_with_adt():
    p = relay.prelude.Prelude()
    m = tvm.ir.load_json(tvm.ir.save_json(p.mod))
    tvm.ir.assert_structural_equal(m, p.mod)


@program
def load_json_errors():
    with refusing((tvm.TVMError, ValueError)):
        tvm.ir.load_json("{")
    with refusing((tvm.TVMError, ValueError)):
        tvm.ir.load_json(json.dumps({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "never.Made"}], "attrs": {"tvm_version": "0.9.0"}, "b64ndarrays": []}))


@program
def target_json():
    t = tvm.target.Target("llvm -mcpu=core-avx2")
    t2 = tvm.ir.load_json(tvm.ir.save_json(t))
    assert str(t2) == str(t) or t2.mcpu == "core-avx2"
    assert tvm.ir.structural_equal(t, t2)
