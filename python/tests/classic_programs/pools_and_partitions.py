# SPDX-License-Identifier: Apache-2.0
"""Memory planners on buffers of a script, factories of ahead-of-time models, parts for other code generators, devices that are not here."""
import json
import os
import tarfile
import tempfile

import numpy as np
import tvm
import tvm.testing
from tvm import micro, relay, te
from tvm.contrib import graph_executor
from tvm.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tvm.micro.project_api import server
from tvm.relay.backend import Executor, Runtime
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.target import Target
from tvm.tir.usmp import utils as usmp_utils

from harness import program, refusing

FOR_C = {"executor": Executor("aot", {"interface-api": "c", "unpacked-api": True}), "runtime": Runtime("crt")}


# ---- memory
def buffers(conflicts, **sizes):
    """Buffers by name in one pool; conflicts as "a: b c; b: a"."""
    pool = tvm.WorkspacePoolInfo("global_workspace", [Target("c")])
    made = {n: usmp_utils.BufferInfo(name_hint=n, size_bytes=s, pool_candidates=[pool]) for n, s in sizes.items()}
    for line in conflicts.split(";"):
        name, _, others = line.partition(":")
        made[name.strip()].set_conflicts([made[o] for o in others.split()])
    return pool, list(made.values())


def most_used(places, pool):
    most = 0
    for info, place in places.items():
        if place.pool_info == pool:
            candidate = place.byte_offset + info.size_bytes
            if candidate > most:
                most = candidate
    return most.value


@program("greedy_by_size", "greedy_by_conflicts", "hill_climb")
def a_fanout_of_buffers(algorithm):
    pool, infos = buffers("a: b d; b: a c d e; c: b d e f; d: a b c e; e: b c d f; f: c e", a=10, b=20, c=20, d=20, e=20, f=20)
    assert most_used(tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(infos, 80), pool) == 80


@program("greedy_by_size", "greedy_by_conflicts")
def alike_buffers_lie_the_same_each_time(algorithm):
    pool, infos = buffers("x: y z; y: x z; z: x y", x=10, y=10, z=10)
    for _ in range(3):
        places = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(infos, 0)
        assert [places[i].byte_offset for i in infos] == [20, 10, 0] and most_used(places, pool) == 30


@program
def a_planner_of_the_scripts():
    seen = []

    @tvm.register_func("tir.usmp.algo.one_behind_another", override=True)
    def plan(infos, pressure):
        seen.append(pressure)
        out, offset = {}, 0
        for info in infos:
            out[info] = usmp_utils.PoolAllocation(info.pool_candidates[0], offset)
            offset += info.size_bytes
            offset += -offset % 16
        return out
    x = relay.var("x", shape=(1, 64))
    mod = tvm.IRModule.from_expr(relay.nn.softmax(relay.transpose(relay.nn.softmax(relay.transpose(relay.exp(x))))))
    with tvm.transform.PassContext(opt_level=3, config={"tir.usmp.enable": True, "tir.usmp.custom_algorithm": "one_behind_another", "tir.disable_vectorize": True}):
        assert relay.build(mod, "c", **FOR_C).libmod_name == "default"
    assert seen and seen[0] > 0


@program
def properties_of_pools():
    target = Target("c")
    pool = WorkspacePoolInfo("ram", [target], PoolInfoProperties(size_hint_bytes=100, clock_frequency_hz=5, read_latency_cycles=2, target_burst_bytes={target: 4}))
    assert (pool.pool_name, pool.size_hint_bytes, pool.clock_frequency_hz, pool.read_latency_cycles, pool.write_latency_cycles) == ("ram", 100, 5, 2, 0)
    assert pool.targets[0].kind.name == "c" and pool.target_burst_bytes[target] == 4 and WorkspaceMemoryPools([pool]).pools[0].pool_name == "ram"


@program
def tensors_in_a_pool():
    x = relay.var("x", shape=(1, 16))
    with tvm.transform.PassContext(opt_level=3, config={"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}):
        assert usmp_utils.use_workspace_io_is_enabled()
        lib = relay.build(tvm.IRModule.from_expr(relay.nn.relu(x)), "c", **FOR_C, workspace_memory_pools=WorkspaceMemoryPools([WorkspacePoolInfo("ram", [Target("c")])]))
    places = lib.executor_codegen_metadata.io_pool_allocations
    assert sorted(places) == ["output", "x"] and {p.pool_info.pool_name for p in places.values()} == {"ram"}
    assert sorted(int(p.byte_offset) for p in places.values()) == [0, 64] and not usmp_utils.use_workspace_io_is_enabled()


# ---- programs in C
@program
def what_a_model_says_of_itself():
    x = relay.var("x", shape=(2, 3))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([x + x, relay.sum(x)]))), "llvm", executor=Executor("aot"), mod_name="my_mod")
    said = lib.lib["get_metadata"]()
    assert said.mod_name == "my_mod" and said.num_inputs == 1 and [o.shape for o in said.outputs] == [(2, 3), ()] and said.num_constant_pools == 0
    made = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu(0)))
    made.set_input("x", tvm.nd.array(np.ones((2, 3), "float32")))
    made.run()
    assert made.get_output(1).numpy() == 6 and made.get_input_index("x") == 0 and made.get_input_index("y") == -1


@program
def options_of_executors():
    executor = Executor("aot", {"interface-api": "c", "unpacked-api": True, "workspace-byte-alignment": 32})
    assert executor.name == "aot" and executor["interface-api"] == "c" and executor["workspace-byte-alignment"] == 32 and "interface-api" in executor
    assert Runtime("crt", {"system-lib": True})["system-lib"] and "system-lib" in Runtime.list_registered_options("crt")
    for wrong in (("woof", {}), ("graph", {"woof": "bark"}), ("aot", {"interface-api": True})):
        with refusing((tvm.TVMError, ValueError, TypeError)):
            Executor(*wrong)


@program
def a_library_format_of_a_graph():
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    lib = relay.build(tvm.IRModule.from_expr(relay.nn.dense(x, w)), tvm.target.target.micro("host"), params={"w": np.ones((3, 4), "float32")}, runtime=Runtime("crt", {"system-lib": True}), mod_name="add")
    with tempfile.TemporaryDirectory() as folder:
        micro.export_model_library_format(lib, os.path.join(folder, "x.tar"))
        with tarfile.open(os.path.join(folder, "x.tar")) as tar:
            tar.extractall(folder)
        with open(os.path.join(folder, "metadata.json")) as file:
            said = json.load(file)
        assert said["version"] == 7 and said["modules"]["add"]["model_name"] == "add" and said["modules"]["add"]["executors"] == ["graph"]
        with open(os.path.join(folder, "executor-config/graph/add.graph")) as file:
            assert "nodes" in json.load(file)
        with open(os.path.join(folder, "parameters/add.params"), "rb") as file:
            assert len(tvm.runtime.load_param_dict(file.read())) == 1


@program("aot_executor", "common", "graph_executor", "memory", "microtvm_rpc_common", "microtvm_rpc_server")
def a_part_of_the_runtime(part):
    assert [n for n in os.listdir(micro.get_standalone_crt_lib(part)) if n.endswith(".c")]
    with refusing(micro.CrtNotFoundError, "memory"):
        micro.get_standalone_crt_lib("nothing")


@program
def a_handler_of_projects():
    class Handler(server.ProjectAPIHandler):
        def server_info_query(self, tvm_version):
            verbose = server.ProjectOption("verbose", optional=["build"], type="bool", default=False, help="more")
            return server.ServerInfo(platform_name="mine", is_template=True, model_library_format_path=None, project_options=[verbose])

        def generate_project(self, *given):
            pass

        build = flash = open_transport = close_transport = read_transport = write_transport = generate_project
    said = Handler().server_info_query("1")
    assert said.platform_name == "mine" and said.project_options[0].name == "verbose" and issubclass(server.TransportClosedError, Exception)


# ---- others' kernels
def external(body, inputs, compiler, symbol):
    """A module whose main gives the external function's result."""
    function = relay.Function(inputs, body).with_attr("Primitive", 1).with_attr("Compiler", compiler).with_attr("global_symbol", symbol)
    mod, name = tvm.IRModule(), relay.GlobalVar(symbol)
    mod[name] = function
    outer = [relay.var(f"x{i}", shape=v.type_annotation.shape) for i, v in enumerate(inputs)]
    mod["main"] = relay.Function(outer, relay.Call(name, outer))
    return relay.transform.InferType()(mod)


@program
def marks_by_hand():
    x, w0, w1, w2 = (relay.var(n, shape=(10, 10)) for n in ("x", "w0", "w1", "w2"))
    z = relay.add(compiler_begin(x, "ccompiler"), compiler_begin(w0, "ccompiler"))
    z = compiler_end(relay.multiply(z, compiler_begin(w1, "ccompiler")), "ccompiler")
    mod = tvm.IRModule.from_expr(relay.Function([x, w0, w1, w2], relay.subtract(relay.exp(z), w2)))
    mod = relay.transform.PartitionGraph()(relay.transform.InferType()(mod))
    names = [g.name_hint for g in mod.get_global_vars() if g.name_hint != "main"]
    assert names == ["tvmgen_default_ccompiler_main_0"]
    attrs = mod[names[0]].attrs
    assert attrs["Compiler"] == "ccompiler" and attrs["Primitive"] == 1 and attrs["global_symbol"] == names[0] and attrs["Inline"] == 1
    executor = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    v = {n: np.random.rand(10, 10).astype("float32") for n in ("x", "w0", "w1", "w2")}
    executor.run(**v)
    tvm.testing.assert_allclose(executor.get_output(0).numpy(), np.exp((v["x"] + v["w0"]) * v["w1"]) - v["w2"], rtol=1e-5)


@program
def several_compilers():
    for op, compiler in (("nn.relu", "one_c"), ("add", "two_c"), ("concatenate", "two_c")):
        tvm.ir.register_op_attr(op, "target." + compiler, lambda call: True)
    x, y = relay.var("x", shape=(4, 4)), relay.var("y", shape=(4, 4))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], relay.concatenate([relay.nn.relu(x + y), relay.nn.relu(y)], 0))))
    parts = relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(relay.transform.AnnotateTarget(["one_c", "two_c"])(mod)))
    names = [g.name_hint for g in parts.get_global_vars() if g.name_hint != "main"]
    assert any("one_c" in n for n in names) and any("two_c" in n for n in names), names
    assert "compiler_begin" in str(relay.transform.AnnotateTarget("two_c", include_non_call_ops=False)(mod))


@program
def an_updater_is_told_of_every_function():
    told = []

    @tvm.register_func("relay.ext.my_kind", override=True)
    def generate(function):
        return tvm.runtime.create_module("my_kind", {}, b"")

    @tvm.register_func("relay.ext.my_kind.constant_updater", override=True)
    def update(function, symbol):
        told.append(symbol)
        return {}
    i = relay.var("i", shape=(2, 2))
    relay.build(external(i + relay.const(np.ones((2, 2), "float32")), [i], "my_kind", "my_kind_0"), "llvm")
    assert told == ["my_kind_0"]


@program
def composites_and_checks():
    pattern = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(10, 10))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], relay.nn.relu(relay.add(relay.nn.relu(relay.add(x, y)), y)))))
    found = []
    relay.analysis.post_order_visit(relay.transform.MergeComposite([("mine.add_relu", pattern)])(mod)["main"],
                                    lambda e: found.append(e.op.attrs) if isinstance(e, relay.Call) and isinstance(e.op, relay.Function) else None)
    assert [(a["Composite"], a["PartitionedFromPattern"]) for a in found] == [("mine.add_relu", "add_nn.relu_")] * 2
    assert "Composite" not in str(relay.transform.MergeComposite([("mine.add_relu", pattern, lambda call: False)])(mod))


@program
def functions_outlined_and_marked():
    x, i = relay.var("x", shape=(2,)), relay.var("i", shape=(2,))
    inner = relay.Function([i], i + i).with_attr("Compiler", "thing").with_attr("Primitive", 1).with_attr("global_symbol", "out_fn")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.Call(inner, [x]))))
    out = relay.transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("thing")(mod)
    assert "out_fn" in [g.name_hint for g in out.get_global_vars()]
    assert relay.transform.MarkCompilerFunctionsAsExtern("thing")(out)["out_fn"].attrs["Extern"] == 1


# ---- devices
@program
def a_device_of_someone():
    target = Target("ext_dev", host="llvm")
    assert target.kind.name == "ext_dev" and target.host.kind.name == "llvm" and tvm.device(str(target), 0) == tvm.ext_dev(0) and tvm.ext_dev(2).device_id == 2
    assert tvm.ext_dev(0).exist and not tvm.ext_dev(1).exist
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * 2, name="b")
    out = tvm.nd.array(np.zeros(4, "float32"))
    tvm.build(te.create_schedule(b.op), [a, b], target)(tvm.nd.array(np.ones(4, "float32")), out)
    assert (out.numpy() == 2).all()


@program
def vendors_that_are_not_there():
    from tvm.relay.op.contrib import arm_compute_lib, get_pattern_table
    from tvm.relay.op.contrib.cutlass import partition_for_cutlass
    from tvm.relay.op.contrib.tensorrt import is_tensorrt_runtime_enabled
    assert not is_tensorrt_runtime_enabled() and not arm_compute_lib.is_arm_compute_runtime_enabled()
    assert tvm.get_global_func("relay.ext.tensorrt", allow_missing=True) is None and get_pattern_table("no_such_table") is None
    mod = tvm.IRModule.from_expr(relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))))
    parts = partition_for_cutlass(mod)
    assert [str(f.attrs["Compiler"]) for f in parts.functions.values() if "Compiler" in f.attrs.keys()] == ["cutlass"]
    with refusing(tvm.TVMError, "relay.ext.cutlass"):
        relay.build(parts, "llvm")
