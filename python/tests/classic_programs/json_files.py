# SPDX-License-Identifier: Apache-2.0
"""JSON of single values, as this version and older ones write it."""
import json

import numpy as np
import tvm
from harness import program, raises, same
from tvm import relay, tir


def loaded(*nodes, root=1, version="0.6.0"):
    """What a file of these nodes holds; node 0 is nothing."""
    return tvm.ir.load_json(json.dumps({"root": root, "nodes": [{"type_key": ""}, *nodes], "attrs": {"tvm_version": version}, "b64ndarrays": []}))


def node(key, **attrs):
    return {"type_key": key, "attrs": {name: str(value) for name, value in attrs.items()}}


X = node("Variable", dtype="int32", name="x", span=0)


@program("relay.TypeVar", "relay.GlobalTypeVar")
def old_type_variables(key):
    value = loaded(node(key, kind=0 if key == "relay.TypeVar" else 5, span=0, var=2), node("Variable", dtype="int32", name="a", span=0))
    assert isinstance(value, tvm.ir.TypeVar if key == "relay.TypeVar" else tvm.ir.GlobalTypeVar) and value.name_hint == "a"


@program("TypeVar", "GlobalTypeVar")
def type_variables(key):
    value = loaded(node(key, kind=0, span=0, name_hint=2), {"type_key": "runtime.String", "repr_str": "b"}, version="0.9.0")
    assert value.name_hint == "b" and value.kind == 0


@program("0.6.0", "0.9.0")
def variables(version):
    name = node("relay.Id", name_hint="v" if version == "0.6.0" else 3)
    value = loaded(node("relay.Var", _checked_type_=0, span=0, type_annotation=0, vid=2), name, {"type_key": "runtime.String", "repr_str": "v"}, version=version)
    assert isinstance(value, relay.Var) and value.name_hint == "v"


@program("Variable", "tir.Var", "SizeVar", "tir.SizeVar")
def index_variables(key):
    value = loaded(node(key, dtype="int32", name="i" if key[0] != "t" else 2, span=0), {"type_key": "runtime.String", "repr_str": "i"}, version="0.6.0" if key[0] != "t" else "0.9.0")
    assert isinstance(value, tir.SizeVar if "Size" in key else tir.Var) and value.name == "i" and value.dtype == "int32"


@program("Add", "Mul", "FloorDiv", "FloorMod", "Min", "Max", "EQ", "LT", "GE")
def index_expressions(key):
    value = loaded({"type_key": "StrMap", "keys": ["z", "e"], "data": [2, 3]}, node("IntImm", dtype="int32", value=2, span=0),
                   node(key, a=4, b=2, dtype="int32", span=0), X)
    assert value["z"] == 2 and isinstance(value["e"], getattr(tir, key)) and value["e"].a.name == "x" and value["e"].b == 2


@program("relay.Op", "Op")
def operators(key):
    old = key == "relay.Op"
    assert loaded({"type_key": key, "global_key" if old else "repr_str": "nn.conv3d"}) == relay.op.get("nn.conv3d")


@program
def types():
    tensor = node("relay.TensorType", dtype="float32", shape=3, span=0)
    value = loaded(node("relay.FuncType", arg_types=2, ret_type=4, type_params=5, type_constraints=5, span=0), {"type_key": "Array", "data": [4]}, {"type_key": "Array", "data": [6]},
                   tensor, {"type_key": "Array", "data": []}, node("IntImm", dtype="int32", value=7, span=0))
    assert value == relay.FuncType([relay.TensorType((7,))], relay.TensorType((7,)))
    assert loaded(node("relay.TupleType", fields=2, span=0), {"type_key": "Array", "data": []}) == relay.TupleType([])
    assert isinstance(loaded(node("relay.IncompleteType", kind=0, span=0)), relay.ty.IncompleteType)


@program
def parts_of_programs():
    assert not loaded(node("relay.Tuple", _checked_type_=0, fields=2, span=0), {"type_key": "Array"}).fields
    pair = loaded(node("relay.TupleGetItem", _checked_type_=0, index=1, span=0, tuple_value=2), node("relay.Var", _checked_type_=0, span=0, type_annotation=0, vid=3), node("relay.Id", name_hint="p"))
    assert isinstance(pair, relay.TupleGetItem) and pair.index == 1 and pair.tuple_value.name_hint == "p"


VALUES = {"var": lambda: relay.var("x", shape=(2, relay.Any())), "typevar": lambda: relay.TypeVar("a"), "op": lambda: relay.op.get("add"), "const": lambda: relay.const(np.arange(3.0)),
          "type": lambda: relay.TensorType((1, 2), "int8"), "global": lambda: relay.GlobalVar("g"), "tuple": lambda: relay.Tuple([relay.const(1), relay.const(2.0)]),
          "function": lambda: relay.Function([], relay.const(2)), "call": lambda: relay.exp(relay.const(1.0)), "target": lambda: tvm.target.Target("llvm -mcpu=haswell -num-cores=2"),
          "map": lambda: tvm.runtime.convert({"a": 1, "b": [1, 2]}), "text": lambda: tvm.runtime.String("a\nb")}


@program(*VALUES)
def there_and_back(name):
    value = VALUES[name]()
    again = tvm.ir.load_json(tvm.ir.save_json(value))
    assert type(again) is type(value)
    if isinstance(value, relay.Expr):
        same(again, value)
    elif name == "typevar":
        assert again.name_hint == "a"
    else:
        assert again == value


@program("kind", "loop", "index", "field")
def damaged(how):
    nodes = {"kind": [node("relay.NoSuchNode")], "loop": [{"type_key": "Array", "data": [1]}], "index": [{"type_key": "Array", "data": [9]}], "field": [node("IntImm", dtype="int32")]}[how]
    assert isinstance(raises((ValueError, tvm.TVMError), loaded, *nodes), (ValueError, tvm.TVMError))
