# SPDX-License-Identifier: Apache-2.0
"""Graphs written by hand and run, debugged, profiled and shared."""
import json
import numpy as np
import tvm
from harness import program, raises, refusing, same, numbers
from tvm import relay, te, tir, nd
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.contrib.debugger.debug_executor import GraphModuleDebug


def chain(n=4, steps=2, dtype="float32"):
    a = te.placeholder((n,), name="A", dtype=dtype)
    b = te.compute(a.shape, lambda *i: a(*i) + tir.const(1, dtype), name="B")
    s = te.create_schedule(b.op)
    lib = tvm.build(s, [a, b], "llvm", name="myadd")
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    for i in range(steps):
        nodes.append({"op": "tvm_op", "name": f"add{i}", "inputs": [[i, 0, 0]], "attrs": {"func_name": "myadd", "flatten_data": "1", "num_inputs": "1", "num_outputs": "1"}})
    count = steps + 1
    graph = {"nodes": nodes, "arg_nodes": [0], "node_row_ptr": list(range(count + 1)), "heads": [[steps, 0, 0]],
             "attrs": {"shape": ["list_shape", [[n]] * count], "dltype": ["list_str", [dtype] * count], "storage_id": ["list_int", list(range(count))]}}
    return graph, lib


@program
def hand_two_steps():
    g, lib = chain()
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.set_input("x", np.arange(4, dtype="float32"))
    m.run()
    np.testing.assert_equal(m.get_output(0).numpy(), np.arange(4) + 2)
    assert m.get_input("x").numpy()[3] == 3 and m.get_input(0).shape == (4,)
    assert m.get_input_index("x") == 0 and m.get_input_index("never") == -1


@program
def hand_dtypes():
    for d in ("int32", "int8", "float64", "uint8"):
        g, lib = chain(dtype=d)
        m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
        m.run(x=np.arange(4, dtype=d))
        out = m.get_output(0)
        assert out.dtype == d
        np.testing.assert_equal(out.numpy(), np.arange(4) + 2)


@program
def hand_shared_storage():
    g, lib = chain(steps=3)
    g["attrs"]["storage_id"] = ["list_int", [0, 1, 2, 1]]
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.zeros(4, "float32"))
    np.testing.assert_equal(m.get_output(0).numpy(), np.full(4, 3))


@program
def hand_device_index():
    g, lib = chain()
    g["attrs"]["device_index"] = ["list_int", [1, 1, 1]]
    m = graph_executor.create(json.dumps(g), lib, [tvm.cpu(0)])
    m.run(x=np.zeros(4, "float32"))
    np.testing.assert_equal(m.get_output(0).numpy(), np.full(4, 2))


@program
def hand_heads_twice():
    g, lib = chain()
    g["heads"] = [[2, 0, 0], [1, 0, 0]]
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.zeros(4, "float32"))
    assert m.get_num_outputs() == 2
    np.testing.assert_equal(m.get_output(1).numpy(), np.full(4, 1))
    np.testing.assert_equal(m.get_output(0).numpy(), np.full(4, 2))


@program
def hand_debug():
    g, lib = chain()
    d = utils.tempdir()
    m = debug_executor.create(json.dumps(g), lib, tvm.cpu(0), dump_root=d.path if hasattr(d, "path") else d.temp_dir)
    m.set_input(x=np.zeros(4, "float32"))
    m.run()
    np.testing.assert_equal(m.get_output(0).numpy(), np.full(4, 2))
    import os
    folder = [f for f in os.listdir(d.temp_dir) if "tvmdbg" in f or "device" in f]
    assert len(folder) == 1
    dump = os.path.join(d.temp_dir, folder[0])
    names = os.listdir(dump)
    assert any("graph_dump" in f for f in names)
    assert any("output_tensors" in f for f in names)
    trace = [f for f in names if "execution_trace" in f]
    assert len(trace) == 1
    events = json.load(open(os.path.join(dump, trace[0])))
    assert isinstance(events["traceEvents"], list) and events["displayTimeUnit"] == "ns"
    m.exit()
    assert not os.path.exists(dump)


@program
def hand_debug_profile():
    g, lib = chain()
    m = debug_executor.create(json.dumps(g), lib, tvm.cpu(0))
    rep = m.profile(x=np.zeros(4, "float32"))
    txt = str(rep)
    assert "myadd" in txt and "Duration" in txt
    assert "myadd" in rep.csv()
    times = m.run_individual(1, 1)
    assert len(times) == 2 or len(times) == 3
    t = m.run_individual_node(1, number=1, repeat=1, min_repeat_ms=0)
    assert len(t.results) == 1 and isinstance(t.mean, float)
    with refusing(tvm.TVMError):
        m.run_individual_node(100)


@program
def hand_debug_get_node_output():
    g, lib = chain()
    m = debug_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.set_input(x=np.zeros(4, "float32"))
    m.execute_node("add0")
    np.testing.assert_equal(m.debug_get_output("add0", nd.empty((4,))).numpy(), np.full(4, 1))
    np.testing.assert_equal(m.debug_get_output(2, nd.empty((4,))).numpy(), np.full(4, 2))
    with refusing(tvm.TVMError):
        m.execute_node("never")
    out = m.execute_next_node if hasattr(m, "execute_next_node") else True


@program
def hand_broken_output_index():
    g, lib = chain()
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.zeros(4, "float32"))
    with refusing(tvm.TVMError):
        m.get_output(5)


@program
def hand_set_input_wrong():
    g, lib = chain()
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    with refusing(RuntimeError):
        m.set_input("never", np.zeros(4, "float32"))
    m.set_input(0, np.ones(4, "float32"))
    m.run()
    assert m.get_output(0).numpy()[0] == 3
    m.set_input("x", nd.array(np.zeros(4, "float32")))
    m.run(); assert m.get_output(0).numpy()[0] == 2


@program
def hand_zero_copy():
    g, lib = chain()
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    x = nd.array(np.ones(4, "float32"))
    y = nd.array(np.zeros(4, "float32"))
    m.module["set_input_zero_copy"]("x", x)
    m.module["set_output_zero_copy"](0, y)
    m.run()
    np.testing.assert_equal(y.numpy(), np.full(4, 3))
    assert m.module["get_num_inputs"]() == 1


@program
def hand_input_info():
    g, lib = chain()
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    shapes, dtypes = m.get_input_info()
    assert shapes["x"] == [4] or tuple(shapes["x"]) == (4,)
    assert dtypes["x"] == "float32"


@program
def hand_missing_function():
    g, lib = chain()
    g["nodes"][1]["attrs"]["func_name"] = "gone"
    with refusing(tvm.TVMError, "gone"):
        graph_executor.create(json.dumps(g), lib, tvm.cpu(0))


@program
def hand_nop():
    g, lib = chain()
    g["nodes"][2]["attrs"]["func_name"] = "__nop"
    g["attrs"]["storage_id"] = ["list_int", [0, 1, 1]]
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.zeros(4, "float32"))
    np.testing.assert_equal(m.get_output(0).numpy(), np.full(4, 1))


@program
def hand_copy():
    g, lib = chain()
    g["nodes"][2]["attrs"]["func_name"] = "__copy"
    g["nodes"][2]["name"] = "__copy_0"
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.zeros(4, "float32"))
    np.testing.assert_equal(m.get_output(0).numpy(), np.full(4, 1))


@program
def hand_bad_json():
    g, lib = chain()
    with refusing(tvm.TVMError):
        graph_executor.create("{", lib, tvm.cpu(0))
    del g["heads"]
    with refusing(tvm.TVMError):
        graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    with refusing((ValueError, TypeError)):
        graph_executor.create(3, lib, tvm.cpu(0))


@program
def hand_create_by_global():
    g, lib = chain()
    f = tvm.get_global_func("tvm.graph_executor.create")
    m = graph_executor.GraphModule(f(json.dumps(g), lib, tvm.cpu(0).device_type, 0))
    m.run(x=np.zeros(4, "float32"))
    assert m.get_output(0).numpy()[0] == 2


@program
def hand_reshape_only():
    g, lib = chain()
    g["nodes"][2]["attrs"]["func_name"] = "__nop"
    g["attrs"]["shape"] = ["list_shape", [[4], [4], [2, 2]]]
    g["attrs"]["storage_id"] = ["list_int", [0, 1, 1]]
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.zeros(4, "float32"))
    assert m.get_output(0).shape == (2, 2)


@program
def hand_params():
    g, lib = chain()
    blob = relay.save_param_dict({"x": nd.array(np.full(4, 5, "float32"))})
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.load_params(blob)
    m.run()
    assert m.get_output(0).numpy()[0] == 7
    m.load_params(bytearray(blob))
    one = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    one.share_params(m, bytearray(blob))
    one.run(); assert one.get_output(0).numpy()[0] == 7


@program
def hand_benchmark():
    g, lib = chain()
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    b = m.benchmark(tvm.cpu(), func_name="run", number=2, repeat=3, x=np.zeros(4, "float32"))
    assert len(b.results) == 3 and b.min <= b.median <= b.max and b.std >= 0
    b = m.benchmark(tvm.cpu(), end_to_end=True, number=1, repeat=1, x=np.zeros(4, "float32"))
    assert b.mean > 0
    ev = m.module.time_evaluator("run", tvm.cpu(), number=1, repeat=2)
    assert len(ev().results) == 2


@program
def hand_remote():
    from tvm import rpc
    g, lib = chain()
    keep = utils.tempdir(); f = keep.relpath("l.so")
    lib.export_library(f)
    s = rpc.LocalSession()
    s.upload(f)
    m = graph_executor.create(json.dumps(g), s.load_module("l.so"), s.cpu(0))
    m.run(x=nd.array(np.zeros(4, "float32"), s.cpu(0)))
    assert m.get_output(0).numpy()[0] == 2
    d = debug_executor.create(json.dumps(g), s.load_module("l.so"), s.cpu(0))
    d.run(x=np.zeros(4, "float32"))


@program
def multi_output_kernel():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: a[i] * 2.0, name="C")
    s = te.create_schedule([b.op, c.op])
    lib = tvm.build(s, [a, b, c], "llvm", name="two")
    nodes = [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "two", "inputs": [[0, 0, 0]], "attrs": {"func_name": "two", "flatten_data": "0", "num_inputs": "1", "num_outputs": "2"}}]
    g = {"nodes": nodes, "arg_nodes": [0], "node_row_ptr": [0, 1, 3], "heads": [[1, 0, 0], [1, 1, 0]], "attrs": {"shape": ["list_shape", [[4]] * 3], "dltype": ["list_str", ["float32"] * 3], "storage_id": ["list_int", [0, 1, 2]]}}
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu(0))
    m.run(x=np.ones(4, "float32"))
    assert m.get_output(0).numpy()[0] == 2 and m.get_output(1).numpy()[0] == 2
    out = m.get_output(1, nd.empty((4,)))
    assert out.numpy()[3] == 2


@program
def loaded_after_export():
    x = relay.var("x", shape=(2, 3)); w = relay.var("w", shape=(4, 3))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w))), "llvm", params={"w": numbers(4, 3)})
    p = utils.tempdir()
    lib.export_library(p.relpath("a.so"))
    l1 = tvm.runtime.load_module(p.relpath("a.so"))
    m = graph_executor.GraphModule(l1["default"](tvm.cpu(0)))
    m.run(x=numbers(2, 3))
    np.testing.assert_allclose(m.get_output(0).numpy(), numbers(2, 3) @ numbers(4, 3).T, rtol=1e-5)
    l1.export_library(p.relpath("b.so"))
    l2 = tvm.runtime.load_module(p.relpath("b.so"))
    m = graph_executor.GraphModule(l2["default"](tvm.cpu(0)))
    m.run(x=numbers(2, 3))
    np.testing.assert_allclose(m.get_output(0).numpy(), numbers(2, 3) @ numbers(4, 3).T, rtol=1e-5)


@program
def function_metadata():
    x = relay.var("x", shape=(2, 3))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm")
    md = lib.function_metadata
    names = [str(k) for k in md.keys()]
    assert "__tvm_main__" in names or "tvmgen_default_fused_nn_relu" in names
    info = md[names[0]]
    assert info.workspace_sizes is not None
    g, l, p = lib
    assert isinstance(g, str) and p == {} and l is not None


@program
def storage_of_plan():
    x = relay.var("x", shape=(2, 3))
    e = x
    for _ in range(4):
        e = relay.tanh(relay.annotation.stop_fusion(e))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], e)), "llvm")
    g = json.loads(lib.get_graph_json())
    ids = g["attrs"]["storage_id"][1]
    assert len(set(ids)) <= 4 and g["attrs"]["shape"][1][0] == [2, 3]
    assert g["attrs"]["device_index"][1] == [1] * len(ids) if "device_index" in g["attrs"] else True
