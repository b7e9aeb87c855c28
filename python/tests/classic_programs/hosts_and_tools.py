# SPDX-License-Identifier: Apache-2.0
"""Targets and their hosts, compilation configurations, JSON of nodes, executors' options, and what tools of the classic stack read."""
import json
import os
import re

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import relay, tir, runtime
from tvm.contrib import cc, graph_executor, utils
from tvm.ir.transform import PassContext
from tvm.relay import transform
from tvm.relay.backend import Executor, Runtime
from tvm.target import Target

from harness import program, raises, numbers


@program
def executors_and_runtimes_have_options():
    e = Executor("aot", {"interface-api": "c", "unpacked-api": True, "link-params": True})
    assert str(e) and e["interface-api"] == "c" and e["unpacked-api"] and e["link-params"]
    assert Executor("graph", {"link-params": True})["link-params"] and "graph" in Executor.list_registered() and "aot" in Executor.list_registered()
    r = Runtime("crt", {"system-lib": True})
    assert r["system-lib"] and "crt" in Runtime.list_registered() and "system-lib" in Runtime.list_registered_options("crt")
    raises(ValueError, lambda: Executor("none"))
    raises((AttributeError, tvm.TVMError), lambda: Executor("graph", {"nothing": 1}))
    assert Executor("graph", {"link-params": True}) == Executor("graph", {"link-params": True}) and Executor("graph") != Executor("aot")


@program
def names_of_c_interfaces():
    from tvm.relay.backend.name_transforms import to_c_function_style, to_c_variable_style, to_c_constant_style, sanitize_name, prefix_name, prefix_generated_name
    assert to_c_function_style("TVM_Woof") == "TVMWoof" and to_c_function_style("TVM_woof_woof") == "TVMWoofWoof"
    assert to_c_variable_style("TVM_Woof_Woof") == "tvm_woof_woof" and to_c_constant_style("TVM_Woof_woof") == "TVM_WOOF_WOOF"
    assert prefix_name("Woof") == "TVM_Woof" and prefix_name(["Woof", "Quack"]) == "TVM_Woof_Quack" and prefix_generated_name("Woof") == "TVMGen_Woof"
    assert sanitize_name("+_+ ") == "____" and sanitize_name("input+") == "input_" and sanitize_name("ke@input") == "ke_input"
    raises(tvm.TVMError, lambda: prefix_name(""))
    raises(tvm.TVMError, lambda: to_c_function_style("Cake_Bakery"))


@program
def one_target_of_many_devices():
    config = tvm.target.make_compilation_config(PassContext.current(), Target("llvm"))
    assert len(config.primitive_targets) >= 1 and config.host_target.kind.name == "llvm" and config.optional_homogeneous_target.kind.name == "llvm"
    both = tvm.target.make_compilation_config(PassContext(config={"relay.fallback_device_type": 2}), [Target("cuda", host="llvm"), Target("llvm")])
    assert both.default_primitive_virtual_device.device_type_int == 2 and both.host_virtual_device.device_type_int == 1
    assert Target.canon_multi_target({tvm.tir.IntImm("int64", 1): Target("llvm")})


@program
def kinds_have_options_and_defaults():
    t = Target("llvm")
    assert list(t.keys) == ["cpu"] and t.max_num_threads is not None
    assert Target("c").kind.name == "c" and Target("ext_dev").kind.name == "ext_dev" and Target("hexagon -mtriple=hexagon").kind.name == "hexagon"


@program
def equal_targets_and_hashes():
    a, b = Target("llvm -mcpu=haswell"), Target({"kind": "llvm", "mcpu": "haswell"})
    assert str(a) == str(b) and tvm.ir.structural_equal(a, b) and tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    assert {a: 1}[a] == 1 and Target(a) is not None and str(Target(str(a))) == str(a)
    text = Target("llvm -libs=cblas,mkl -device=arm_cpu -mattr=+neon").export()
    assert list(text["libs"]) == ["cblas", "mkl"]
    assert json.loads(json.dumps(Target("llvm -mcpu=haswell").export()))["mcpu"] == "haswell"


@program
def cpu_targets_by_function():
    arm = tvm.target.arm_cpu("rasp3b")
    assert arm.kind.name == "llvm" and "arm_cpu" in arm.keys and arm.model == "bcm2837" and "+neon" in arm.mattr
    riscv = tvm.target.riscv_cpu("sifive-u54")
    assert "-mabi=lp64d" in str(riscv) and riscv.kind.name == "llvm"
    assert tvm.target.hexagon("v68").kind.name == "hexagon" and tvm.target.bifrost().device_name == "bifrost" and tvm.target.rocm().kind.name == "rocm"
    assert tvm.target.micro("host").kind.name == "c"


@program
def json_of_modules_and_params():
    x = relay.var("x", shape=(2,))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x + relay.const(np.array([1, 2], "float32")))))
    text = tvm.ir.save_json(mod)
    graph = json.loads(text)
    assert {"root", "nodes", "b64ndarrays", "attrs"} <= set(graph) and graph["attrs"]["tvm_version"]
    keys = [n["type_key"] for n in graph["nodes"]]
    assert "IRModule" in keys and "relay.Function" in keys and "relay.Call" in keys and "relay.Constant" in keys
    tvm.ir.assert_structural_equal(tvm.ir.load_json(text), mod)


@program
def equality_says_where():
    x, y = relay.var("x", shape=(2,)), relay.var("x", shape=(3,))
    a, b = relay.Function([x], x + x), relay.Function([y], y + y)
    assert not tvm.ir.structural_equal(a, b)
    raises(ValueError, lambda: tvm.ir.assert_structural_equal(a, b))
    assert tvm.ir.structural_hash(a) != tvm.ir.structural_hash(b) and tvm.ir.structural_hash(a) == tvm.ir.structural_hash(relay.Function([x], x + x))
    v, w = relay.var("v"), relay.var("w")
    assert not tvm.ir.structural_equal(v + v, w + w) and tvm.ir.structural_equal(v + v, w + w, map_free_vars=True)


@program
def blocks_and_weights_are_linked():
    x = relay.var("x", shape=(1, 8))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(numbers(4, 8)))))
    lib = relay.build(mod, "llvm", executor=Executor("graph", {"link-params": True}))
    temp = utils.tempdir()
    lib.export_library(temp.relpath("linked.so"))
    m = graph_executor.GraphModule(runtime.load_module(temp.relpath("linked.so"))["default"](tvm.cpu()))
    m.set_input("x", numbers(1, 8))
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), numbers(1, 8) @ numbers(4, 8).T, rtol=1e-5)


@program
def factories_list_and_copy():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm", mod_name="net")
    assert lib.libmod_name == "net" and json.loads(lib.get_graph_json())["heads"] == [[1, 0, 0]] and lib.get_executor_config() == lib.get_graph_json() and lib.get_lib() is not None
    m = graph_executor.GraphModule(lib["net"](tvm.cpu()))
    m.run(x=numbers(2))
    np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(numbers(2)), rtol=1e-5)
    names = [n["name"] for n in json.loads(lib.graph_json)["nodes"]]
    assert names == ["x", "tvmgen_net_fused_exp"]
    raises(Exception, lambda: lib["other"](tvm.cpu()))


@program
def modules_in_archives():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    temp = utils.tempdir()
    lib.export_library(temp.relpath("net.tar"))
    m = graph_executor.GraphModule(runtime.load_module(temp.relpath("net.tar"))["default"](tvm.cpu()))
    m.run(x=numbers(2))
    np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(numbers(2)), rtol=1e-5)
    lib.export_library(temp.relpath("with_options.so"), fcompile=cc.create_shared)
    assert os.path.exists(temp.relpath("with_options.so"))


@program
def a_debugged_graph_writes_its_files():
    from tvm.contrib.debugger import debug_executor
    x = relay.var("x", shape=(2, 3))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.exp(x)))), "llvm")
    temp = utils.tempdir()
    m = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu(0), dump_root=temp.path)
    m.set_input("x", numbers(2, 3))
    m.run()
    folder = os.listdir(temp.path)
    assert len(folder) == 1 and any("_tvmdbg_graph_dump.json" in n for n in os.listdir(os.path.join(temp.path, folder[0])) + sum((os.listdir(os.path.join(temp.path, folder[0], d)) for d in os.listdir(os.path.join(temp.path, folder[0])) if os.path.isdir(os.path.join(temp.path, folder[0], d))), []))
    m.exit()
    assert os.listdir(temp.path) == [] or not os.path.exists(os.path.join(temp.path, folder[0]))


@program
def profiles_by_collectors():
    from tvm.runtime.profiling import Report
    from tvm.contrib.debugger import debug_executor
    x = relay.var("x", shape=(2, 3))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    m = debug_executor.GraphModuleDebug(lib["debug_create"]("default", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), None)
    report = m.profile(x=numbers(2, 3))
    assert "fused_exp" in str(report) and "Total" in str(report) and "Hash" in str(report)
    again = Report.from_json(report.json())
    assert again.calls[0]["Name"] == report.calls[0]["Name"] and re.search("Duration", report.csv()) and "Percent" in report.table()
    assert report.table(aggregate=False, col_sums=False) != report.table()


@program
def instruments_that_fail():
    @tvm.instrument.pass_instrument
    class Bad:
        def enter_pass_ctx(self):
            raise RuntimeError("in entering")
    with pytest.raises(tvm.error.TVMError, match="in entering"):
        with PassContext(instruments=[Bad()]):
            pass
    assert PassContext.current().instruments is None or len(PassContext.current().instruments) == 0
    events = []

    @tvm.instrument.pass_instrument
    class Printer:
        def run_before_pass(self, mod, info):
            events.append(info.name)
    x = relay.var("x", shape=(2,))
    with PassContext(instruments=[Printer()]):
        transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], x)))
    assert "InferType" in events
    current = PassContext.current()
    current.override_instruments([Printer()])
    current.override_instruments(None)


@program
def generated_counts_and_si():
    from tvm.autotvm.utils import format_si_prefix
    assert format_si_prefix(1024, "k") == 1.024 and format_si_prefix(2000000, "M") == 2
    assert format_si_prefix(2, "m") == 2000 and format_si_prefix(3e-6, "\xb5") == 3 or abs(format_si_prefix(3e-6, "\xb5") - 3) < 1e-9
    raises(ValueError, lambda: format_si_prefix(1, "Q"))


@program
def global_functions_are_listed_and_removed():
    name = "hosts.and.tools.once"
    tvm.register_func(name, lambda a: a + 10)
    assert name in tvm._ffi.registry.list_global_func_names() and tvm.get_global_func(name)(1) == 11
    raises(Exception, lambda: tvm.register_func(name, lambda a: a))
    tvm.register_func(name, lambda a: a + 20, override=True)
    assert tvm.get_global_func(name)(1) == 21
    tvm._ffi.registry.remove_global_func(name)
    assert tvm.get_global_func(name, allow_missing=True) is None


@program
def errors_of_kinds_by_words():
    def bad(x):
        raise ValueError("Hello world")
    f = tvm.runtime.convert(bad)
    with pytest.raises((ValueError, tvm.TVMError), match="Hello world"):
        f(1)
    assert issubclass(tvm.error.OpNotImplemented, tvm.error.OpError) and issubclass(tvm.error.OpAttributeInvalid, tvm.error.OpError) and issubclass(tvm.error.InternalError, tvm.error.TVMError)
    assert issubclass(tvm.error.DiagnosticError, tvm.error.TVMError)


@program
def memory_and_threads_of_the_runtime():
    a = tvm.nd.empty((4, 4), "float32", tvm.cpu(), "global")
    assert a.shape == (4, 4)
    b = tvm.nd.array(np.arange(16).reshape(4, 4)).copyto(tvm.nd.empty((4, 4), "int64"))
    assert b.numpy()[3, 3] == 15


@program
def type_keys_and_reflection():
    x = relay.var("x", shape=(2,))
    call = relay.nn.conv2d(relay.var("d", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)), kernel_size=(3, 3), channels=4)
    assert call.attrs.get_str("data_layout") == "NCHW" and [int(v) for v in call.attrs.get_int_tuple("kernel_size")] == [3, 3] and call.attrs.get_int("groups") == 1
    assert "kernel_size" in [f.name for f in call.attrs.list_field_info()] and "kernel_size" in dir(call.attrs) and "groups" in call.attrs.keys()
    assert isinstance(call.attrs, relay.op.op_attrs.Conv2DAttrs)
    raises(AttributeError, lambda: call.attrs.nothing)
    assert x.name_hint == "x" and x.vid.name_hint == "x"


@program
def binding_of_parameters():
    from tvm.relay.build_module import bind_params_by_name
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    f = bind_params_by_name(relay.Function([a, b], a - b), {"b": tvm.nd.array(numbers(2))})
    assert len(f.params) == 1 and isinstance(f.body.args[1], relay.Constant)
    assert tvm.ir.structural_equal(relay.bind(a + b, {a: b}), b + b)
    g = relay.Function([a], a + b)
    assert tvm.ir.structural_equal(relay.bind(g, {b: relay.const(1.0)}), relay.Function([a], a + relay.const(1.0)))


@program
def new_batches_and_flexible_shapes():
    from tvm.relay.transform import ChangeBatch
    from tvm.relay import testing
    mod, _ = testing.mlp.get_workload(1)
    data = mod["main"].params[0]
    out = ChangeBatch({data: 0}, batch_size=123)(mod)
    assert int(out["main"].params[0].checked_type.shape[0]) == 123
    assert int(transform.InferType()(out)["main"].ret_type.shape[0]) == 123


@program
def recast_of_a_network():
    from tvm.relay.transform import recast
    d, w = relay.var("x", shape=[8, 8, 8, 8]), relay.var("w", shape=[8, 8, 3, 3])
    c = relay.nn.relu(relay.nn.conv2d(d, w, padding=(1, 1), out_dtype="float32"))
    out = recast(relay.Function([d, w], c), "int8", "int32")
    text = str(transform.InferType()(tvm.IRModule.from_expr(out)))
    assert 'cast(%x, dtype="int8")' in text and 'out_dtype="int32"' in text
    skipped = recast(relay.Function([d, w], relay.nn.conv2d(c, w, padding=(1, 1))), "int8", "int32", skip_layers=[0])
    assert str(skipped).count('dtype="int8"') >= 1


@program
def threefry_is_reproducible():
    key = tvm.relay.random.threefry_key(1)
    gen = tvm.relay.random.threefry_generate(key, (4,))
    split = tvm.relay.random.threefry_split(key)
    run = lambda e: relay.create_executor("vm", tvm.IRModule.from_expr(relay.Function([], e)), target=tvm.target.Target("llvm"), device=tvm.device("cpu")).evaluate()()
    a, b = run(gen.astuple()), run(gen.astuple())
    np.testing.assert_array_equal(a[1].numpy(), b[1].numpy())
    left, right = run(split.astuple())
    assert (left.numpy() != right.numpy()).any() and a[0].numpy().dtype == np.uint64
    u = run(tvm.relay.random.uniform(key, (100,), "float32", relay.const(2.0), relay.const(4.0)).astuple())
    assert u[1].numpy().min() >= 2 and u[1].numpy().max() <= 4


@program
def sparse_from_dense():
    from tvm.relay import data_dep_optimization as ddo
    w = np.zeros((32, 64), "float32")
    w[:4, :1] = 1.5
    data, weight = relay.var("data", shape=(2, 64)), relay.var("weight", shape=(32, 64))
    f = relay.Function([data, weight], relay.nn.dense(data, weight))
    sparse, params = ddo.bsr_dense.convert(f, {"weight": tvm.nd.array(w)}, (4, 1), 0.2)
    text = str(sparse)
    assert "nn.sparse_dense" in text and "weight.data" in text and params["weight.data"].shape[1:] == (4, 1)


@program
def annotated_and_merged_by_names():
    @tvm.ir.register_op_attr("nn.relu", "target.hosts_tools")
    def relu(expr):
        return True

    @tvm.ir.register_op_attr("add", "target.hosts_tools")
    def add(expr):
        return isinstance(expr.args[0], relay.Call)
    x, y = relay.var("x", shape=(2, 2)), relay.var("y", shape=(2, 2))
    f = relay.Function([x, y], relay.exp(relay.nn.relu(x) + y))
    mod = tvm.transform.Sequential([transform.AnnotateTarget("hosts_tools"), transform.MergeCompilerRegions(), transform.PartitionGraph()])(tvm.IRModule.from_expr(f))
    regions = [v for v in mod.get_global_vars() if v.name_hint != "main"]
    assert len(regions) == 1 and mod[regions[0]].attrs["Compiler"] == "hosts_tools" and mod[regions[0]].attrs["global_symbol"] == regions[0].name_hint and len(mod[regions[0]].params) == 2
    assert relu(None) and not add(relay.add(x, y))
