# SPDX-License-Identifier: Apache-2.0
"""Graphs by hand, executors that debug, built libraries and what they say."""
import json, os, tempfile

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi, runtime
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import transform
import numpy as np
import tvm
import tvm.testing


N = 4


def lib_addone(n=N, dtype="float32", name="myadd", target="llvm"):
    A = te.placeholder((n,), name="A", dtype=dtype)
    B = te.compute(A.shape, lambda *i: A(*i) + tir.const(1, dtype), name="B")
    s = te.create_schedule(B.op)
    return tvm.build(s, [A, B], target, name=name)


def graph_addone(n=N, name="myadd", dltype=("list_str", ["float32", "float32"])):
    node0 = {"op": "null", "name": "x", "inputs": []}
    node1 = {"op": "tvm_op", "name": "add", "inputs": [[0, 0, 0]], "attrs": {"func_name": name, "flatten_data": "1", "num_inputs": "1", "num_outputs": "1"}}
    shape = (n,)
    return {"nodes": [node0, node1], "node_row_ptr": [0, 1, 2], "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"shape": ["list_shape", [shape, shape]], "dltype": list(dltype), "storage_id": ["list_int", [0, 1]]}}


@program
def simple_graph():
    mlib = lib_addone()
    mod = graph_executor.create(json.dumps(graph_addone()), mlib, tvm.cpu(0))
    a = np.random.uniform(size=(N,)).astype("float32")
    mod.run(x=a)
    out = mod.get_output(0, tvm.nd.empty((N,)))
    np.testing.assert_equal(out.numpy(), a + 1)
    assert mod.get_num_inputs() == 1
    assert mod.get_num_outputs() == 1
    mod.set_input(0, a * 2)
    mod.run()
    np.testing.assert_equal(mod.get_output(0).numpy(), a * 2 + 1)
    mod.set_input("x", tvm.nd.array(a))
    mod.run()
    np.testing.assert_equal(mod.get_output(0).asnumpy(), a + 1)
    np.testing.assert_equal(mod.get_input(0).numpy(), a)
    np.testing.assert_equal(mod.get_input("x").numpy(), a)


@program
def graph_with_attrs_dict_and_version_extra():
    g = graph_addone()
    g["attrs"]["device_index"] = ["list_int", [1, 1]]
    mod = graph_executor.create(json.dumps(g), lib_addone(), tvm.cpu(0))
    mod.run(x=np.zeros(N, "float32"))
    assert (mod.get_output(0).numpy() == 1).all()


@program
def graph_heads_of_two_ints():
    g = graph_addone()
    g["heads"] = [[1, 0]]
    g["nodes"][1]["inputs"] = [[0, 0]]
    mod = graph_executor.create(json.dumps(g), lib_addone(), tvm.cpu(0))
    mod.run(x=np.zeros(N, "float32"))
    assert (mod.get_output(0).numpy() == 1).all()


@program
def chain_of_three():
    lib = lib_addone()
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    for k in range(3):
        nodes.append({"op": "tvm_op", "name": f"add{k}", "inputs": [[k, 0, 0]], "attrs": {"func_name": "myadd", "flatten_data": "0", "num_inputs": "1", "num_outputs": "1"}})
    g = {"nodes": nodes, "node_row_ptr": [0, 1, 2, 3, 4], "arg_nodes": [0], "heads": [[3, 0, 0]], "attrs": {"shape": ["list_shape", [[N]] * 4], "dltype": ["list_str", ["float32"] * 4], "storage_id": ["list_int", [0, 1, 2, 1]]}}
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu())
    m.set_input("x", np.arange(N, dtype="float32"))
    m.run()
    np.testing.assert_equal(m.get_output(0).numpy(), np.arange(N) + 3)


@program
def dtype_of_shape_args():
    lib = lib_addone(dtype="int32")
    g = graph_addone()
    g["attrs"]["dltype"] = ["list_str", ["int32", "int32"]]
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu())
    m.run(x=np.arange(N, dtype="int32"))
    out = m.get_output(0)
    assert out.dtype == "int32"
    np.testing.assert_equal(out.numpy(), np.arange(N) + 1)


@program
def param_loaded_graph():
    A = te.placeholder((N,), name="A")
    B = te.placeholder((N,), name="B")
    C = te.compute((N,), lambda i: A[i] * B[i])
    s = te.create_schedule(C.op)
    lib = tvm.build(s, [A, B, C], "llvm", name="mul")
    g = {"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []}, {"op": "tvm_op", "name": "m", "inputs": [[0, 0, 0], [1, 0, 0]], "attrs": {"func_name": "mul", "flatten_data": "0", "num_inputs": "2", "num_outputs": "1"}}], "node_row_ptr": [0, 1, 2, 3], "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"shape": ["list_shape", [[N]] * 3], "dltype": ["list_str", ["float32"] * 3], "storage_id": ["list_int", [0, 1, 2]]}}
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu())
    w = np.arange(N, dtype="float32")
    blob = runtime.save_param_dict({"w": tvm.nd.array(w)})
    m.load_params(blob)
    m.run(x=np.full(N, 2, "float32"))
    np.testing.assert_equal(m.get_output(0).numpy(), 2 * w)
    np.testing.assert_equal(m.get_input("w").numpy(), w)
    assert m.get_input_index("w") == 1
    assert m.get_input_index("none") == -1


@program
def graph_two_outputs_kernel():
    A = te.placeholder((N,), name="A")
    B, C = te.compute((N,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="BC")
    s = te.create_schedule([B.op])
    lib = tvm.build(s, [A, B, C], "llvm", name="two")
    g = {"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "t", "inputs": [[0, 0, 0]], "attrs": {"func_name": "two", "flatten_data": "0", "num_inputs": "1", "num_outputs": "2"}}], "node_row_ptr": [0, 1, 3], "arg_nodes": [0], "heads": [[1, 0, 0], [1, 1, 0]], "attrs": {"shape": ["list_shape", [[N]] * 3], "dltype": ["list_str", ["float32"] * 3], "storage_id": ["list_int", [0, 1, 2]]}}
    m = graph_executor.create(json.dumps(g), lib, tvm.cpu())
    m.run(x=np.arange(N, dtype="float32"))
    np.testing.assert_equal(m.get_output(0).numpy(), np.arange(N) + 1)
    np.testing.assert_equal(m.get_output(1).numpy(), np.arange(N) * 2)


@program
def debug_graph():
    mlib = lib_addone()
    mod = debug_executor.create(json.dumps(graph_addone()), mlib, tvm.cpu(0))
    a = np.arange(N, dtype="float32")
    mod.set_input(x=a)
    dump_root = mod._dump_root
    assert os.path.exists(dump_root)
    dirs = os.listdir(os.path.join(mod._dump_path))
    mod.run()
    assert dirs is None or "_tvmdbg_graph_dump.json" in os.listdir(mod._dump_path)
    graph = json.load(open(os.path.join(mod._dump_path, "_tvmdbg_graph_dump.json")))
    assert graph["nodes"][0]["op"] == "param"
    assert graph["nodes"][0]["name"] == "x"
    assert graph["nodes"][1]["op"] == "myadd"
    assert graph["nodes"][1]["name"] == "add"
    out = mod.get_output(0, tvm.nd.empty((N,)))
    np.testing.assert_equal(out.numpy(), a + 1)
    mod.exit()
    assert not os.path.exists(dump_root)


@program
def debug_graph_single_node():
    mod = debug_executor.create(json.dumps(graph_addone()), lib_addone(), tvm.cpu(0))
    mod.set_input(x=np.zeros(N, "float32"))
    t = mod.run_individual(10, 2, 1)
    assert len(t) == 2
    r = mod.run_individual_node(1, number=1)
    assert len(r.results) == 1
    assert r.mean >= 0
    mod.debug_get_output("add", (out := tvm.nd.empty((N,))))
    assert (out.numpy() == 1).all()


@program
def debug_graph_profile():
    mod = debug_executor.create(json.dumps(graph_addone()), lib_addone(), tvm.cpu(0))
    rep = mod.profile(x=np.zeros(N, "float32"))
    assert "myadd" in str(rep)
    assert "Total" in str(rep)
    assert any((str(c["Name"]) == "myadd" for c in rep.calls))
    j = json.loads(rep.json())
    assert "calls" in j
    assert "device_metrics" in j
    csv = rep.csv()
    assert csv.splitlines()[0].startswith("")
    assert "Duration (us)" in csv


@program
def debug_dump_params_files():
    from tvm.contrib.debugger.debug_result import DebugResult
    with tempfile.TemporaryDirectory() as d:
        mod = debug_executor.create(json.dumps(graph_addone()), lib_addone(), tvm.cpu(0), dump_root=d)
        mod.run(x=np.ones(N, "float32"))
        found = os.listdir(mod._dump_path)
        assert "output_tensors.params" in found
        assert "_tvmdbg_graph_dump.json" in found
        assert any(("execution_trace" in f for f in found)), found
        p = runtime.load_param_dict(open(os.path.join(mod._dump_path, "output_tensors.params"), "rb").read())
        assert sorted(p)[0].startswith("add") or "add_0" in p or any(("add" in k for k in p)), list(p)


@program
def graph_load_shared_params():
    x = relay.var("x", shape=(1, 10))
    y = relay.var("y", shape=(1, 10))
    func = relay.Function([x, y], relay.add(x, y))
    with tvm.transform.PassContext(opt_level=3):
        graph, lib, params = relay.build(tvm.IRModule.from_expr(func), target="llvm", params={"x": numbers(1, 10)})
    m1 = graph_executor.create(graph, lib, tvm.cpu())
    m1.load_params(runtime.save_param_dict(params))
    m2 = graph_executor.create(graph, lib, tvm.cpu())
    m2.share_params(m1, runtime.save_param_dict(params))
    a = numbers(1, 10, seed=3)
    m1.run(y=a)
    m2.run(y=a)
    np.testing.assert_allclose(m1.get_output(0).numpy(), m2.get_output(0).numpy())
    np.testing.assert_allclose(m1.get_output(0).numpy(), a + numbers(1, 10), rtol=1e-06)


@program
def function_metadata():
    x = relay.var("x", shape=(1, 10))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x) + relay.const(1.0))), target="llvm")
    md = lib.function_metadata
    assert "__tvm_main__" in md
    names = [k for k in md.keys() if k != "__tvm_main__"]
    assert any(("fused" in n for n in names)), names
    main = md["__tvm_main__"]
    t = list(main.workspace_sizes.keys())[0]
    assert int(main.io_sizes[t]) == 80 or int(main.io_sizes[t]) == 40, main.io_sizes[t]
    assert t.kind.name == "llvm"


@program
def set_input_zero_copy():
    x = relay.var("x", shape=(1, 10))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0))), target="llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    a = tvm.nd.array(numbers(1, 10))
    m.module["set_input_zero_copy"]("x", a)
    out = tvm.nd.empty((1, 10))
    m.module["set_output_zero_copy"](0, out)
    m.run()
    np.testing.assert_allclose(out.numpy(), a.numpy() + 1, rtol=1e-06)


@program
def input_info():
    x, y = (relay.var("x", shape=(1, 10)), relay.var("y", shape=(10,), dtype="int32"))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, y], x + relay.cast(y, "float32"))), target="llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    shapes, dtypes = m.get_input_info()
    assert isinstance(shapes, tvm.ir.Map)
    assert shapes["x"] == [1, 10]
    assert dtypes["y"] == "int32"
    assert list(shapes["y"]) == [10]


@program
def bad_names():
    m = graph_executor.create(json.dumps(graph_addone()), lib_addone(), tvm.cpu(0))
    with refusing((RuntimeError, KeyError, tvm.TVMError)):
        m.set_input("never", np.zeros(N, "float32"))
    with refusing((tvm.TVMError, ValueError, AttributeError)):
        m.module["no_such_function"]


@program
def bad_shape():
    m = graph_executor.create(json.dumps(graph_addone()), lib_addone(), tvm.cpu(0))
    with refusing((tvm.TVMError, ValueError)):
        m.set_input("x", np.zeros(N + 1, "float32"))


@program
def export_and_reload():
    x = relay.var("x", shape=(1, 10))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0))), target="llvm")
    with tempfile.TemporaryDirectory() as d:
        for ext in ("so", "tar"):
            p = os.path.join(d, "lib." + ext)
            lib.export_library(p)
            loaded = tvm.runtime.load_module(p)
            g = graph_executor.GraphModule(loaded["default"](tvm.cpu(0)))
            g.run(x=np.ones((1, 10), "float32"))
            assert (g.get_output(0).numpy() == 2).all()


@program
def benchmark_result():
    m = graph_executor.create(json.dumps(graph_addone()), lib_addone(), tvm.cpu(0))
    r = m.benchmark(tvm.cpu(0), func_name="run", repeat=2, number=3, end_to_end=False, x=np.zeros(N, "float32"))
    assert len(r.results) == 2
    assert r.min <= r.mean <= r.max
    assert r.median
    assert "Execution time summary" in str(r)
    r = m.benchmark(tvm.cpu(0), end_to_end=True, number=1, repeat=1, x=np.zeros(N, "float32"))
    assert r.mean > 0


@program
def graph_json_bad_op():
    g = graph_addone()
    g["nodes"][1]["attrs"]["func_name"] = "nothing_called_so"
    with refusing(tvm.TVMError):
        graph_executor.create(json.dumps(g), lib_addone(), tvm.cpu(0))


@program
def nop_alias():
    g = graph_addone()
    g["nodes"].append({"op": "tvm_op", "name": "nop", "inputs": [[1, 0, 0]], "attrs": {"func_name": "__nop", "flatten_data": "0", "num_inputs": "1", "num_outputs": "1"}})
    g["node_row_ptr"] = [0, 1, 2, 3]
    g["heads"] = [[2, 0, 0]]
    for k in ("shape", "dltype", "storage_id"):
        g["attrs"][k][1] = list(g["attrs"][k][1]) + [g["attrs"][k][1][-1]]
    g["attrs"]["shape"][1][2] = (2, 2)
    m = graph_executor.create(json.dumps(g), lib_addone(), tvm.cpu(0))
    m.run(x=np.zeros(N, "float32"))
    assert m.get_output(0).shape == (2, 2)
    assert (m.get_output(0).numpy() == 1).all()


@program
def load_from_get_function():
    f = tvm.get_global_func("tvm.graph_executor.create")
    d = tvm.cpu(0)
    m = f(json.dumps(graph_addone()), lib_addone(), d.device_type, d.device_id)
    m["set_input"]("x", tvm.nd.array(np.zeros(N, "float32")))
    m["run"]()
    assert (m["get_output"](0).numpy() == 1).all()
    assert m["get_num_outputs"]() == 1
    assert m["get_input_index"]("x") == 0
    f = tvm.get_global_func("tvm.graph_executor_debug.create")
    m = f(json.dumps(graph_addone()), lib_addone(), d.device_type, d.device_id)


@program
def list_of_devices():
    m = graph_executor.create(json.dumps(graph_addone()), lib_addone(), [tvm.cpu(0)])
    m.run(x=np.zeros(N, "float32"))
    with refusing((ValueError, tvm.TVMError)):
        graph_executor.create(json.dumps(graph_addone()), lib_addone(), "cpu")


@program
def graph_not_string():
    with refusing((ValueError, AssertionError, tvm.TVMError)):
        graph_executor.create(graph_addone(), lib_addone(), tvm.cpu(0))


@program
def module_methods():
    m = lib_addone()
    assert m.type_key == "llvm" and m.entry_name == "__tvm_main__" and (m.entry_func is not None) and (m.imported_modules == []) or list(m.imported_modules) == []
    assert m.implements_function("myadd")
    assert not m.implements_function("other")
    assert "define" in m.get_source()
    assert "myadd" in m.get_source()
    assert m.get_source("asm")
    assert m.format
    assert m.is_dso_exportable
    a, b = (tvm.nd.array(np.zeros(N, "float32")), tvm.nd.empty((N,)))
    m(a, b)
    assert (b.numpy() == 1).all()
    m["myadd"](b, a)
    assert (a.numpy() == 2).all()
    with refusing(AttributeError):
        m["never"]
    ev = m.time_evaluator(m.entry_name, tvm.cpu(0), number=2, repeat=3)
    assert len(ev(a, b).results) == 3


@program
def import_modules():
    m1, m2 = (lib_addone(name="f1"), lib_addone(name="f2"))
    m1.import_module(m2)
    assert m1.implements_function("f2", query_imports=True)
    assert not m1.implements_function("f2")
    assert m1.get_function("f2", query_imports=True) is not None
    with refusing(AttributeError):
        m1.get_function("f2")


@program
def system_lib_missing():
    s = tvm.runtime.system_lib()
    assert s.type_key == "system_lib"


@program
def enabled():
    assert tvm.runtime.enabled("llvm")
    assert not tvm.runtime.enabled("cuda")
    assert tvm.runtime.enabled("cpu")


@program
def wrong_type_call():
    f = lib_addone()
    with refusing(tvm.TVMError):
        f(tvm.nd.array(np.zeros(N, "int32")), tvm.nd.empty((N,)))
    with refusing(tvm.TVMError):
        f(tvm.nd.array(np.zeros(N + 2, "float32")), tvm.nd.empty((N,)))
    with refusing(tvm.TVMError):
        f(tvm.nd.empty((N,)))
