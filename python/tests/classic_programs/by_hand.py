# SPDX-License-Identifier: Apache-2.0
"""Graphs written by hand as JSON, containers, options of passes, relay programs as Python programs, expressions by operator."""
import json

import numpy as np
import tvm
from harness import numbers, program, raises, refusing, same
from tvm import nd, relay, te, tir
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.prelude import Prelude
from tvm.relay.testing import run_as_python
from tvm.runtime.container import ADT


def kernel(n=4):
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda *i: a(*i) + 1.0, name="B")
    s = te.create_schedule(b.op)
    return tvm.build(s, [a, b], "llvm", name="myadd")


def graph_of(n=4):
    node0 = {"op": "null", "name": "x", "inputs": []}
    node1 = {"op": "tvm_op", "name": "add", "inputs": [[0, 0, 0]], "attrs": {"func_name": "myadd", "flatten_data": "1", "num_inputs": "1", "num_outputs": "1"}}
    attrs = {"shape": ["list_shape", [[n], [n]]], "dltype": ["list_str", ["float32", "float32"]], "storage_id": ["list_int", [0, 1]]}
    return json.dumps({"nodes": [node0, node1], "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]], "attrs": attrs})


@program
def a_graph_run():
    mod = graph_executor.create(graph_of(), kernel(), tvm.cpu(0))
    a = np.random.RandomState(0).uniform(size=(4,)).astype("float32")
    mod.run(x=a)
    out = mod.get_output(0, nd.empty((4,)))
    np.testing.assert_equal(out.numpy(), a + 1)
    assert mod.get_num_outputs() == 1 and mod.get_num_inputs() == 1


@program
def a_graph_shares_its_parameters():
    mlib, graph = kernel(), graph_of()
    blob = tvm.runtime.save_param_dict({"x": nd.array(np.ones(4, "float32"))})
    one = graph_executor.create(graph, mlib, tvm.cpu(0))
    one.load_params(blob)
    two = graph_executor.create(graph, mlib, tvm.cpu(0))
    two.share_params(one, blob)
    del one
    two.run()
    np.testing.assert_equal(two.get_output(0).numpy(), np.full(4, 2))


@program
def a_graph_debugged():
    mod = debug_executor.create(graph_of(), kernel(), tvm.cpu(0), dump_root=utils.tempdir().temp_dir)
    a = np.arange(4, dtype="float32")
    mod.set_input(x=a)
    mod.run()
    np.testing.assert_equal(mod.get_output(0).numpy(), a + 1)
    mod.execute_node("add")
    np.testing.assert_equal(mod.debug_get_output("add", nd.empty((4,))).numpy(), a + 1)
    timing = mod.run_individual(2, 1)
    assert len(timing) == 2 and len(timing[1]) == 1 and timing[1][0] >= 0


@program
def a_graph_in_a_session():
    from tvm import rpc
    server = rpc.LocalSession()
    folder = utils.tempdir()
    path = folder.relpath("lib.so")
    kernel().export_library(path)
    server.upload(path)
    mod = graph_executor.create(graph_of(), server.load_module("lib.so"), server.cpu(0))
    mod.run(x=nd.array(np.ones(4, "float32"), server.cpu(0)))
    np.testing.assert_equal(mod.get_output(0, nd.empty((4,), device=server.cpu(0))).numpy(), np.full(4, 2))


@program("nodes", "storage", "kernel", "shape")
def graphs_that_are_refused(what):
    graph = json.loads(graph_of())
    if what == "nodes":
        graph["nodes"][1]["inputs"] = [[7, 0, 0]]
    elif what == "storage":
        graph["attrs"]["storage_id"][1] = [0]
    elif what == "kernel":
        graph["nodes"][1]["attrs"]["func_name"] = "not there"
    else:
        del graph["attrs"]["shape"]
    with refusing((tvm.TVMError, ValueError, AttributeError)):
        graph_executor.create(json.dumps(graph), kernel(), tvm.cpu(0)).run(x=np.ones(4, "float32"))


# ---- containers
@program
def members_of_containers():
    arr = tvm.runtime.convert(["a", "b", "c"])
    assert "a" in arr and tir.StringImm("a") in arr and "d" not in arr
    x = nd.array([1, 2, 3])
    arr = tvm.runtime.convert([x, x])
    assert arr[0].same_as(x) and arr[1].same_as(x) and isinstance(arr[0], nd.NDArray)
    assert isinstance(tvm.runtime.convert({1: 2}), tvm.ir.Map) and len(dir(arr)) > 3


@program
def configurations_of_passes():
    cfg = tvm.transform.PassContext(opt_level=1, config={"tir.UnrollLoop": {"auto_max_step": 10}})
    assert cfg.opt_level == 1 and cfg.config["tir.UnrollLoop"].auto_max_step == 10 and cfg.config["tir.UnrollLoop"].explicit_unroll
    for bad in ({"tir.UnrollLoop": {"invalid": 1}}, {"inavlid-opt": True}, {"tir.UnrollLoop": 1}):
        with refusing(AttributeError):
            tvm.transform.PassContext(config=bad)


@program
def dictionaries_of_arrays():
    x = nd.array(np.arange(3, dtype="float32"))
    again = tvm.ir.load_json(tvm.ir.save_json({"x": x, "y": tvm.runtime.convert([1, 2])}))
    np.testing.assert_array_equal(again["x"].numpy(), x.numpy())
    assert [int(v) for v in again["y"]] == [1, 2]
    again = pickled(tvm.runtime.convert({"a": x}))
    np.testing.assert_array_equal(again["a"].numpy(), x.numpy())


def pickled(value):
    import pickle
    return pickle.loads(pickle.dumps(value))


@program
def own_objects_as_arguments():
    f = tvm.runtime.convert(lambda x: x)
    for value in (relay.var("x"), tvm.IRModule(), te.var("n"), tvm.target.Target("llvm"), relay.TensorType((1,)), relay.op.get("add"), relay.nn.softmax(relay.var("x")).attrs,
                  tvm.ir.Range(0, 1), tir.Evaluate(0), relay.Function([], relay.const(1)), relay.GlobalVar("f"), tvm.transform.PassContext()):
        got = f(value)
        assert type(got) is type(value) and (got is value or got.same_as(value)), value
    assert f({"a": 1})["a"] == 1 and isinstance(f({"a": 1}), tvm.ir.Map)
    out = f([relay.var("x"), 3])
    assert isinstance(out[0], relay.Var) and out[1] == 3


@program
def functions_of_objects_by_name():
    @tvm.register_func("tilewright_test.of_expr", override=True)
    def double(e):
        return relay.add(e, e)
    x = relay.var("x", shape=(2,))
    got = tvm.get_global_func("tilewright_test.of_expr")(x)
    assert got.op.name == "add" and got.args[0].same_as(x) and double(x).op.name == "add"
    table = tvm.runtime.convert({"add": lambda a, b: a + b})
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    tvm.ir.assert_structural_equal(table["add"](a, b), tir.Add(a, b))


# ---- as Python
def tensor_is(value, want):
    assert isinstance(value, nd.NDArray)
    np.testing.assert_allclose(value.numpy(), want)


def adt_is(value, fields):
    assert isinstance(value, (ADT, list, tuple)) and len(value) == len(fields)


@program
def values_as_python():
    adt_is(run_as_python(relay.Tuple([])), [])
    tensor_is(run_as_python(relay.const(1)), 1)
    tensor_is(run_as_python(relay.const([[1, 1], [2, 2]])), [[1, 1], [2, 2]])
    out = run_as_python(relay.Tuple([relay.const(2), relay.Tuple([relay.const(3)])]))
    tensor_is(out[0], 2)
    tensor_is(out[1][0], 3)
    tensor_is(run_as_python(relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(2)]), 1)), 2)


@program
def branches_and_lets_as_python():
    tensor_is(run_as_python(relay.If(relay.const(True), relay.const(1), relay.const(2))), 1)
    x = relay.Var("x")
    tensor_is(run_as_python(relay.Let(x, relay.const(3), relay.multiply(x, x))), 9)
    v = relay.Var("v")
    ref = relay.Let(v, relay.RefCreate(relay.const(1)), relay.Let(relay.Var("_"), relay.RefWrite(v, relay.const(5)), relay.RefRead(v)))
    tensor_is(run_as_python(ref), 5)
    made = run_as_python(relay.RefCreate(relay.Tuple([])))
    assert isinstance(made, RefValue)
    y = relay.Var("y")
    tensor_is(run_as_python(relay.Call(relay.Function([x, y], relay.subtract(x, y)), [relay.const(5), relay.const(2)])), 3)


@program
def functions_as_python():
    ident = relay.Function([x := relay.Var("x", relay.scalar_type("int32"))], x)
    f = run_as_python(ident)
    tensor_is(f(nd.array(np.array(1, "int32"))), 1)
    mod = tvm.IRModule()
    g = relay.GlobalVar("g")
    n = relay.var("n", shape=(), dtype="int32")
    mod[g] = relay.Function([n], relay.If(n <= relay.const(1), relay.const(1), n * g(n - relay.const(1))), relay.scalar_type("int32"))
    tensor_is(run_as_python(g(relay.const(5)), mod), 120)
    data = relay.var("d", shape=(2, 2))
    f = run_as_python(relay.Function([data], relay.nn.relu(relay.nn.dense(data, relay.const(np.eye(2, dtype="float32"))))))
    tensor_is(f(nd.array(np.array([[1, -1], [2, -2]], "float32"))), [[1, 0], [2, 0]])


@program
def types_as_python():
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    one = run_as_python(cons(relay.Tuple([]), nil()), mod)
    assert isinstance(one, ConstructorValue) and one.tag == cons.tag and isinstance(one.fields[1], ConstructorValue) and one.fields[1].tag == nil.tag and one.fields[1].fields == []
    x, y = relay.Var("x"), relay.Var("y")
    head = relay.Match(cons(relay.const(4), nil()), [relay.Clause(relay.PatternConstructor(nil, []), relay.const(0)), relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternVar(y)]), x)])
    tensor_is(run_as_python(head, mod), 4)
    tensor_is(run_as_python(p.sum(cons(relay.const(1), cons(relay.const(2), nil()))), mod), 3)


@program
def operators_as_python():
    a, b = relay.const(np.array([[1, 2], [3, 4]], "float32")), relay.const(np.ones((2, 2), "float32"))
    tensor_is(run_as_python(relay.add(a, b)), [[2, 3], [4, 5]])
    parts = run_as_python(relay.split(a, 2, axis=0).astuple())
    tensor_is(parts[1], [[3, 4]])
    tensor_is(run_as_python(relay.concatenate([a, b], axis=0)), [[1, 2], [3, 4], [1, 1], [1, 1]])
    x = relay.var("x", shape=(1, 3), dtype="float32")
    bn = relay.nn.batch_norm(x, *(relay.const(np.ones(3, "float32")) for _ in range(4)), axis=1)
    out = run_as_python(relay.Function([x], bn.astuple()))(nd.array(np.zeros((1, 3), "float32")))
    np.testing.assert_allclose(out[0].numpy(), [[1 - 1 / np.sqrt(1 + 1e-5)] * 3], rtol=1e-4, atol=1e-5)


# ---- programs
@program
def expressions_as_operators():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    for made, name in ((x + y, "add"), (x - y, "subtract"), (x * y, "multiply"), (x / y, "divide"), (-x, "negative"), (x < y, "less"), (x > y, "greater"), (x <= y, "less_equal"), (x >= y, "greater_equal"), (x.astype("int8"), "cast"), (x + 1, "add"), (1 - x, "subtract"), (2.5 * x, "multiply")):
        assert made.op.name == name
    with refusing(TypeError):
        x + "text"
    assert (x + 1.0).args[1].data.dtype == "float32" and (1 - x).args[1].same_as(x)


@program
def constants_of_python():
    for value, dtype in ((1, "int32"), (1.0, "float32"), (True, "bool"), (np.int64(1), "int64"), (np.float64(1), "float64"), ([1, 2], "int32"), (np.array([1.0]), "float64"), (nd.array(np.array([1], "int8")), "int8")):
        assert relay.const(value).data.dtype == dtype, value
    assert relay.const(1, "float16").data.dtype == "float16" and relay.const([1.5], "float32").data.numpy() == [1.5]
    assert relay.const(2147483648).data.dtype in ("int64", "int32")
    with refusing((TypeError, ValueError)):
        relay.const("text")


@program
def parameters_by_name():
    x, w = relay.var("x", shape=(2, 2)), relay.var("w", shape=(2, 2))
    f = relay.Function([x, w], x * w)
    bound = relay.build_module.bind_params_by_name(f, {"w": np.full((2, 2), 3, "float32")})
    assert [p.name_hint for p in bound.params] == ["x"] and bound.body.args[1].data.numpy()[0, 0] == 3
    same(relay.expr.bind(f.body, {x: relay.const(1.0)}), relay.const(1.0) * w)


@program
def modules_joined():
    a = tvm.parser.parse('#[version = "0.0.5"]\ndef @f(%x: int32) -> int32 { %x }')
    b = tvm.parser.parse('#[version = "0.0.5"]\ndef @g(%x: int32) -> int32 { %x + 1 }')
    a.update(b)
    assert {v.name_hint for v in a.get_global_vars()} == {"f", "g"} and "g" in str(a)
    assert a.get_global_var("g").name_hint == "g" and a["g"] is not None and len(a.functions) == 2
    with refusing((ValueError, tvm.TVMError)):
        a.get_global_var("h")
    with refusing((ValueError, tvm.TVMError, KeyError)):
        a["h"]
    a["h"] = a["f"]
    assert "h" in {v.name_hint for v in a.get_global_vars()}
    a.update_func(a.get_global_var("h"), a["g"])
    same(a["h"], a["g"])
    with refusing((tvm.TVMError, TypeError, ValueError)):
        tvm.IRModule({"f": 1})


@program
def scopes_of_builders():
    sb = relay.ScopeBuilder()
    x = relay.var("x", "float32")
    cond = relay.var("cond", "bool")
    with sb.if_scope(cond):
        one = relay.const(1.0, "float32")
        t1 = sb.let("t1", relay.add(x, one))
        sb.ret(t1)
    with sb.else_scope():
        sb.ret(x)
    same(sb.get(), relay.If(cond, relay.Let((t := relay.var("t1")), relay.add(x, relay.const(1.0)), t), x))
    with refusing((RuntimeError, ValueError)):
        relay.ScopeBuilder().get()
    sb = relay.ScopeBuilder()
    with refusing((RuntimeError, ValueError)):
        with sb.else_scope():
            sb.ret(x)


@program
def bad_constructions():
    for make in (lambda: relay.Let("x", relay.const(1), relay.const(2)), lambda: relay.Function("x", relay.const(1)), lambda: relay.TensorType("xx", "xx"), lambda: relay.Call(1, []),
                 lambda: relay.Var(1.5), lambda: relay.Tuple(relay.const(1)), lambda: relay.If(1, 2, 3) and relay.If("a", "b", "c"), lambda: relay.TupleGetItem(relay.const(1), "x")):
        raises((tvm.TVMError, TypeError, AttributeError, ValueError), make)


@program
def iterated_tuples():
    x = relay.var("x", shape=(4, 6))
    parts = relay.split(x, 3, axis=1)
    assert len(parts) == 3 and parts.size == 3
    a, b, c = parts
    assert isinstance(a, relay.TupleGetItem) and c.index == 2 and parts[1].index == 1
    with refusing(IndexError):
        parts[3]
    assert isinstance(parts.astuple(), relay.Call) and parts.tuple_value.op.name == "split"
    t = relay.Tuple([x, x])
    assert len(t) == 2 and t[0].same_as(x) and t[-1].same_as(x)
    with refusing(IndexError):
        t[2]
    with refusing(TypeError):
        t.astype("int8")
    bn = relay.nn.batch_norm(x, *(relay.var(n, shape=(6,)) for n in "abcd"))
    assert bn.size == 3 and numbers(1).shape == (1,)
