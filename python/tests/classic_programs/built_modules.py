# SPDX-License-Identifier: Apache-2.0
"""Building and running: build_module, executors and what they answer, libraries, graphs, parameters, interpreters."""
import json
import os

import numpy as np
import tvm
from harness import numbers, program, refusing
from tvm import relay, runtime
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import build_module
from tvm.relay.backend import Executor, Runtime
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.scope_builder import ScopeBuilder
from tvm.relay.testing import mlp


def dense_network():
    a, b, c = relay.var("a", shape=(16, 8)), relay.var("b", shape=(16, 8)), relay.var("c", shape=(16, 16))
    return relay.Function([a, b, c], relay.nn.relu(relay.nn.dense(a, b) + c)), [numbers(16, 8), numbers(16, 8, seed=8), numbers(16, 16)]


def dense_answer(a, b, c):
    return np.maximum(a @ b.T + c, 0)


@program(3, 2, 0)
def a_builder_of_modules(level):
    func, data = dense_network()
    mod = tvm.IRModule.from_expr(func)
    target = tvm.target.Target("llvm")
    with tvm.transform.PassContext(opt_level=level):
        graph, lib, params = build_module.build(mod, target, params={})
    assert isinstance(graph, str) and json.loads(graph)["arg_nodes"] and isinstance(lib, tvm.runtime.Module)
    m = graph_executor.create(graph, lib, tvm.cpu(0))
    for name, value in zip("abc", data):
        m.set_input(name, value)
    m.set_input(**params)
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)


@program
def building_in_steps():
    func, data = dense_network()
    builder = build_module.BuildModule()
    graph, lib, params = builder.build(tvm.IRModule.from_expr(func), "llvm")
    assert builder.get_graph_json() and builder.get_module() is not None and sorted(builder.get_params()) == sorted(params)
    module = graph_executor.create(graph, lib, tvm.cpu())
    module.run(**dict(zip("abc", data)))
    np.testing.assert_allclose(module.get_output(0).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)


@program
def optimised_only():
    mod, params = mlp.get_workload(1)
    optimised, kept = relay.optimize(mod, target="llvm", params=params)
    assert isinstance(optimised, tvm.IRModule) and kept is not None
    optimised, _ = build_module.BuildModule().optimize(mod, target="llvm", params=params)
    assert "main" in [v.name_hint for v in optimised.get_global_vars()]


@program
def without_a_target():
    func, _ = dense_network()
    with refusing((ValueError, tvm.TVMError)):
        relay.build(tvm.IRModule.from_expr(func))
    with tvm.target.Target("llvm"):
        assert relay.build(tvm.IRModule.from_expr(func)) is not None
    with refusing((TypeError, ValueError, tvm.TVMError)):
        relay.build("main", "llvm")
    assert relay.build(func, "llvm") is not None


@program
def a_function_is_built_like_a_module():
    func, data = dense_network()
    lib = relay.build(func, target="llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.run(a=data[0], b=data[1], c=data[2])
    np.testing.assert_allclose(m.get_output(0).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)


@program
def constants_become_parameters():
    data = numbers(1, 3)
    x = relay.var("x", shape=(1, 3))
    f = relay.Function([x], x + relay.const(data))
    lib = relay.build(f, "llvm", params=None)
    assert all(isinstance(p, tvm.nd.NDArray) for p in lib.get_params().values())
    names = [n["name"] for n in json.loads(lib.get_graph_json())["nodes"] if n["op"] == "null"]
    assert names[0] == "x"
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.run(x=data)
    np.testing.assert_allclose(m.get_output(0).numpy(), data + data, rtol=1e-6)


@program
def inputs_and_their_places():
    func, data = dense_network()
    lib = relay.build(func, "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert m.get_num_inputs() == 3 and m.get_num_outputs() == 1
    assert [m.get_input_index(n) for n in "abc"] == [0, 1, 2] and m.get_input_index("zz") == -1
    shapes, dtypes = m.get_input_info()
    assert tuple(shapes["a"]) == (16, 8) and dtypes["c"] == "float32"
    m.set_input("a", data[0])
    m.set_input(1, data[1])
    m.set_input("c", tvm.nd.array(data[2]))
    np.testing.assert_array_equal(m.get_input("a").numpy(), data[0])
    np.testing.assert_array_equal(m.get_input(1).numpy(), data[1])
    m.run()
    out = tvm.nd.empty((16, 16), "float32")
    assert m.get_output(0, out) is not None
    np.testing.assert_allclose(out.numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)
    with refusing((tvm.TVMError, ValueError)):
        m.set_input("a", numbers(3, 3))


@program
def results_without_copies():
    func, data = dense_network()
    lib = relay.build(func, "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    arrays = [tvm.nd.array(d) for d in data]
    for name, a in zip("abc", arrays):
        m.module["set_input_zero_copy"](name, a)
    out = tvm.nd.array(np.zeros((16, 16), "float32"))
    m.module["set_output_zero_copy"](0, out)
    m.run()
    np.testing.assert_allclose(out.numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)


@program
def one_after_another():
    """Two modules of one library share what was loaded, not what was set."""
    x = relay.var("x", shape=(4,))
    w = relay.var("w", shape=(4,))
    lib = relay.build(relay.Function([x, w], x * w), "llvm", params={"w": np.full(4, 2, "float32")})
    first, second = (graph_executor.GraphModule(lib["default"](tvm.cpu())) for _ in range(2))
    first.set_input("x", np.ones(4, "float32"))
    second.set_input("x", np.full(4, 3, "float32"))
    first.run()
    second.run()
    assert first.get_output(0).numpy()[0] == 2 and second.get_output(0).numpy()[0] == 6
    assert first.get_num_inputs() in (1, 2)


@program
def parameters_shared():
    x, y = relay.var("x", shape=(1, 10)), relay.var("y", shape=(1, 10))
    lib = relay.build(relay.Function([x, y], x + y), "llvm", params={"y": np.ones((1, 10), "float32")})
    blob = relay.save_param_dict(lib.get_params())
    one = graph_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    one.load_params(blob)
    two = graph_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    two.share_params(one, blob)
    data = numbers(1, 10)
    for m in (one, two):
        m.set_input("x", data)
        m.run()
        np.testing.assert_allclose(m.get_output(0).numpy(), data + 1, rtol=1e-6)


@program
def files_of_libraries():
    func, data = dense_network()
    lib = relay.build(func, "llvm")
    folder = utils.tempdir()
    for name in ("one.so", "two.tar"):
        path = folder.relpath(name)
        lib.export_library(path)
        loaded = tvm.runtime.load_module(path)
        m = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
        m.run(**dict(zip("abc", data)))
        np.testing.assert_allclose(m.get_output(0).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)
    assert os.path.exists(folder.relpath("one.so"))


@program
def names_of_modules():
    func, data = dense_network()
    lib = relay.build(func, "llvm", mod_name="bar")
    assert lib.libmod_name == "bar"
    m = graph_executor.GraphModule(lib["bar"](tvm.cpu()))
    m.run(**dict(zip("abc", data)))
    np.testing.assert_allclose(m.get_output(0).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)
    with refusing((AttributeError, tvm.TVMError)):
        lib["baz"]


@program
def three_parts_of_a_factory():
    func, _ = dense_network()
    factory = relay.build(func, "llvm")
    graph, lib, params = factory
    assert graph == factory.get_graph_json() and isinstance(lib, runtime.Module) and params is not None
    assert factory.executor.name == "graph"
    assert str(factory.target) and factory.ir_mod is not None
    assert factory.get_executor_config() == graph


@program
def metadata_of_functions():
    func, _ = dense_network()
    factory = relay.build(func, "llvm")
    assert factory.function_metadata is not None
    for name, info in factory.function_metadata.items():
        assert isinstance(str(name), str) and info.workspace_sizes is not None


@program
def debugging_executors():
    func, data = dense_network()
    graph, lib, params = relay.build(func, "llvm")
    m = debug_executor.create(graph, lib, tvm.cpu(), dump_root=utils.tempdir().temp_dir)
    m.set_input(**dict(zip("abc", data)))
    m.set_input(**params)
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)
    report = m.profile()
    assert "Count" in str(report) or "Name" in str(report)
    assert isinstance(report.csv(), str) and json.loads(report.json())


@program
def options_of_executors():
    e = Executor("graph", {"link-params": True})
    assert e.name == "graph" and e["link-params"] and "link-params" in e and e.list_registered_options("graph")
    assert sorted(Executor.list_registered()) == ["aot", "graph"]
    assert sorted(Runtime.list_registered()) == ["cpp", "crt"]
    assert Executor.list_registered_options("aot")["unpacked-api"] == "IntImm" and Runtime.list_registered_options("crt")["system-lib"] == "IntImm"
    with refusing(tvm.TVMError):
        Executor("not_an_executor")
    with refusing(tvm.TVMError):
        Runtime("crt", {"unknown": 1})
    with refusing(tvm.TVMError):
        Executor("graph", {"link-params": "yes"})
    assert Executor("aot", {"interface-api": "c"}) == Executor("aot", {"interface-api": "c"})
    assert Executor("aot") != Executor("graph")
    tvm.ir.assert_structural_equal(Runtime("cpp"), Runtime("cpp"))
    assert "system-lib" in Runtime("crt", {"system-lib": True}).attrs.keys()


@program
def executors_as_attributes():
    mod = tvm.IRModule.from_expr(dense_network()[0])
    mod = mod.with_attr("executor", Executor("graph")).with_attr("runtime", Runtime("cpp"))
    assert mod.attrs["executor"].name == "graph" and str(mod.attrs["runtime"])
    assert mod.get_attr("nothing") is None


@program("graph", "vm", "debug", "aot")
def one_interface(kind):
    func, data = dense_network()
    e = relay.create_executor(kind, mod=tvm.IRModule.from_expr(func), device=tvm.cpu(), target="llvm")
    np.testing.assert_allclose(e.evaluate()(*data).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(e.evaluate()(c=data[2], a=data[0], b=data[1]).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(e.evaluate()(data[0], c=data[2], b=data[1]).numpy(), dense_answer(*data), rtol=1e-4, atol=1e-5)


@program
def mistakes_of_arguments():
    func, data = dense_network()
    e = relay.create_executor("debug", mod=tvm.IRModule.from_expr(func))
    run = e.evaluate()
    with refusing(Exception):
        run(*data, data[0])
    with refusing(Exception):
        run(data[0])
    with refusing(Exception):
        run(*data, a=data[0])
    with refusing(Exception):
        run(data[0], d=data[1], b=data[2])
    with refusing((RuntimeError, ValueError)):
        relay.create_executor("no such executor", mod=tvm.IRModule.from_expr(func))


def check(e, args, want, mod=None):
    got = relay.create_executor("debug", mod=mod).evaluate(e)(*args) if args else relay.create_executor("debug", mod=mod).evaluate(e)
    np.testing.assert_allclose(got.numpy(), want)


@program
def interpreted_values():
    ret = relay.const(np.array([3, 4]))
    check(ret, (), [3, 4])
    x = relay.var("x", "int32")
    check(relay.Let(x, relay.const(1), relay.multiply(x, relay.const(2))), (), 2)
    check(relay.If(relay.const(True), relay.const(1), relay.const(2)), (), 1)
    f = relay.Function([x], x)
    check(relay.Call(f, [relay.const(3)]), (), 3)
    t = relay.create_executor("debug").evaluate(relay.Tuple([relay.const(1), relay.const(2)]))
    assert t[0].numpy() == 1 and len(t) == 2
    check(relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(2)]), 1), (), 2)


@program
def simple_loops():
    mod = tvm.IRModule({})
    sum_up = relay.GlobalVar("sum_up")
    i, acc = relay.var("i", shape=[], dtype="int32"), relay.var("accum", shape=[], dtype="int32")
    sb = ScopeBuilder()
    with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
        sb.ret(acc)
    with sb.else_scope():
        sb.ret(relay.Call(sum_up, [relay.subtract(i, relay.const(1, "int32")), relay.add(acc, i)]))
    mod[sum_up] = relay.Function([i, acc], sb.get())
    mod = relay.transform.InferType()(mod)
    iarg, aarg = relay.var("i", shape=[], dtype="int32"), relay.var("a", shape=[], dtype="int32")
    mod["main"] = relay.Function([iarg, aarg], sum_up(iarg, aarg))
    for kind in ("debug", "vm"):
        assert int(relay.create_executor(kind, mod=mod).evaluate()(np.int32(10), np.int32(0)).numpy()) == 55


@program
def values_of_references():
    r = relay.create_executor("debug").evaluate(relay.RefCreate(relay.const(7)))
    assert isinstance(r, RefValue) and r.value.numpy() == 7


@program
def values_of_constructors():
    p = relay.prelude.Prelude()
    l, cons, nil = p.mod.get_type("List")
    e = cons(relay.const(1), cons(relay.const(2), nil()))
    value = relay.create_executor("debug", mod=p.mod).evaluate(e)
    assert isinstance(value, ConstructorValue) and value.tag == cons.tag and value.constructor.name_hint == "Cons"
    assert value.fields[0].numpy() == 1 and value.fields[1].fields[1].tag == nil.tag and l.name_hint == "List"


@program
def arguments_of_python():
    x, y = relay.var("x", shape=(2,)), relay.var("y", relay.TupleType([relay.scalar_type("float32"), relay.scalar_type("int32")]))
    f = relay.Function([x, y], relay.Tuple([x, relay.TupleGetItem(y, 1)]))
    out = relay.create_executor("debug", mod=tvm.IRModule.from_expr(f)).evaluate()(np.array([1, 2], "float32"), (np.float32(1), np.int32(5)))
    assert out[1].numpy() == 5


@program
def results_that_are_inputs():
    x = relay.var("x", shape=(2, 3))
    data = numbers(2, 3)
    for body, want in ((x, [data]), (relay.Tuple([x, x]), [data, data])):
        lib = relay.build(relay.Function([x], body), "llvm")
        m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        m.run(x=data)
        assert m.get_num_outputs() == len(want)
        for i, w in enumerate(want):
            np.testing.assert_array_equal(m.get_output(i).numpy(), w)


@program
def a_constant_as_result():
    f = relay.Function([], relay.const(np.arange(4, dtype="float32")))
    lib = relay.build(f, "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.run()
    np.testing.assert_array_equal(m.get_output(0).numpy(), np.arange(4))


@program
def addresses_in_plans():
    x = relay.var("x", shape=(1, 10))
    z = relay.exp(relay.nn.softmax(relay.exp(relay.add(x, relay.const(1.0)))))
    with tvm.transform.PassContext(opt_level=0):
        graph, lib, params = relay.build(relay.Function([x], z), "llvm")
    plan = json.loads(graph)
    assert plan["attrs"]["storage_id"][0] == "list_int"
    assert plan["attrs"]["dltype"][1][0] == "float32" and plan["attrs"]["shape"][0] == "list_shape"
    assert len(set(plan["attrs"]["storage_id"][1])) <= len(plan["nodes"])


@program
def memory_that_is_planned():
    x = relay.var("x", shape=(10,))
    y = relay.var("x", shape=(1,))
    z = relay.exp(relay.exp(relay.exp(x + y)))
    func = relay.Function([x, y], z)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    mod = relay.transform.FuseOps(0)(mod)
    func = mod["main"]
    mod = relay.transform.InferType()(mod)
    memory_plan = relay.backend._backend.GraphPlanMemory(func)
    storage_ids, device_types, storage_sizes = set(), set(), []
    for info in memory_plan.expr_to_storage_info.values():
        storage_ids.update(int(i) for i in info.storage_ids)
        storage_sizes.extend(info.storage_sizes)
        device_types.update(int(d) for d in info.device_types)
    assert len(storage_ids) == 4 and len(device_types) == 1
    assert all(size in (4, 40) for size in storage_sizes)


@program
def pack_and_codegen():
    from tvm.relay.backend import graph_executor_codegen
    x = relay.var("x", shape=(2,))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x + x)))
    gen = graph_executor_codegen.GraphExecutorCodegen(None, tvm.target.Target("llvm"))
    graph, lowered, params = gen.codegen(mod, mod["main"])
    assert json.loads(graph)["nodes"] and params is not None
    assert lowered is not None


@program
def timed():
    func, data = dense_network()
    lib = relay.build(func, "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.set_input(**dict(zip("abc", data)))
    timer = m.module.time_evaluator("run", tvm.cpu(), number=2, repeat=3)
    result = timer()
    assert len(result.results) == 3 and result.mean > 0 and result.min <= result.median <= result.max
    b = m.benchmark(tvm.cpu(), number=2, repeat=2, end_to_end=True, **dict(zip("abc", data)))
    assert "mean (ms)" in str(b) and len(b.results) == 2 and b.std >= 0


@program
def a_graph_without_kernels():
    x = relay.var("x", shape=(4, 2))
    lib = relay.build(relay.Function([x], relay.reshape(x, (8,))), "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.run(x=numbers(4, 2))
    np.testing.assert_array_equal(m.get_output(0).numpy(), numbers(4, 2).reshape(8))


@program
def bfloats_and_halves():
    x = relay.var("x", shape=(3, 2), dtype="float16")
    out = relay.create_executor("graph", mod=tvm.IRModule.from_expr(relay.Function([x], x + x)), target="llvm").evaluate()(np.ones((3, 2), "float16"))
    assert out.dtype == "float16" and (out.numpy() == 2).all()


@program
def lowered_by_te():
    from tvm.relay.backend import te_compiler
    x = relay.var("x", shape=(10,))
    f = relay.Function([x], relay.add(x, x))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(f))
    cached = te_compiler.get().lower(relay.transform.FuseOps()(mod)["main"].body.op, "llvm")
    assert cached.prim_fn_var.name_hint.endswith("add")


@program
def mangled_names():
    from tvm.relay.backend.name_transforms import prefix_generated_name, prefix_name, sanitize_name, to_c_function_style, to_c_variable_style
    assert to_c_function_style("TVMGen_Woof_Woof") == "TVMGenWoofWoof" and to_c_variable_style("TVMGen_Woof") == "tvmgen_woof"
    assert prefix_name("Woof") == "TVM_Woof" and prefix_generated_name(["Woof"]) == "TVMGen_Woof" and sanitize_name("+_+ ") == "____"
    with refusing(tvm.TVMError, "TVM prefix"):
        to_c_function_style("woof")
    with refusing(tvm.TVMError):
        prefix_name("")


@program
def an_empty_tuple_is_built():
    lib = relay.build(relay.Function([], relay.Tuple([])), "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.run()
    assert m.get_num_outputs() == 0


@program
def workloads_are_kept():
    from tvm.relay.testing import create_workload
    x, w = relay.var("data", shape=(1, 4)), relay.var("w", shape=(3, 4))
    mod, params = create_workload(relay.nn.dense(x, w))
    assert list(params) == ["w"] and params["w"].shape == (3, 4)
    lib = relay.build(mod, "llvm", params=params)
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.run(data=numbers(1, 4))
    np.testing.assert_allclose(m.get_output(0).numpy(), numbers(1, 4) @ params["w"].numpy().T, rtol=1e-4)


@program
def interpreter_errors():
    x = relay.var("x", shape=(2,))
    with refusing(Exception):
        relay.create_executor("debug").evaluate(relay.add(x, x))
