# SPDX-License-Identifier: Apache-2.0
"""Nodes with all their fields and through JSON, targets as the classic parser takes them, constants bound late, executors of libraries in C."""
import numpy as np
import tvm
from harness import numbers, program, raises, refusing, same
from tvm import relay, runtime
from tvm.contrib import graph_executor, utils
from tvm.relay import vm
from tvm.relay.backend import Executor, Runtime
from tvm.target import Target


def through_json(node):
    again = tvm.ir.load_json(tvm.ir.save_json(node))
    assert tvm.ir.structural_equal(again, node, map_free_vars=True)
    return again


@program
def spans():
    span = relay.Span(None, 1, 2, 3, 4)
    assert span.line == 1 and span.end_line == 2 and span.column == 3 and span.end_column == 4
    assert str(span)
    span = relay.Span(relay.SourceName("a"), 1, 1, 1, 1)
    assert span.source_name.name == "a" and span.same_as(span)


@program
def constants_and_tuples():
    arr = tvm.nd.array(np.array(10))
    const = relay.Constant(arr)
    assert const.data.numpy() == 10
    assert const.span is None and str(const)
    through_json(const)
    t = relay.Tuple(tvm.runtime.convert([]))
    assert len(t.fields) == 0 and t.span is None and str(t)
    through_json(t)


@program
def variables():
    v = relay.Var("s")
    assert v.name_hint == "s" and v.type_annotation is None and str(v)
    through_json(v)
    t1 = relay.ty.TensorType((), "float")
    v = relay.Var("s", t1)
    assert v.name_hint == "s" and v.type_annotation == t1
    g = relay.GlobalVar("g")
    assert g.name_hint == "g" and g.span is None
    through_json(g)


@program
def functions():
    params = tvm.runtime.convert([relay.Var(n) for n in "abcd"])
    ret = relay.TupleType(tvm.runtime.convert([]))
    body = relay.Tuple(tvm.runtime.convert([]))
    fn = relay.Function(params, body, ret, tvm.runtime.convert([]))
    fn = fn.with_attr("test_attribute", "value").with_attr("test_attribute1", "value1")
    assert list(fn.params) == list(params) and fn.body == body and list(fn.type_params) == [] and fn.span is None
    assert fn.attrs["test_attribute"] == "value" and fn.attrs["test_attribute1"] == "value1" and fn.ret_type == ret and str(fn)
    through_json(fn)


@program
def calls_lets_ifs():
    op, a = relay.Var("f"), relay.Var("a")
    call = relay.Call(op, tvm.runtime.convert([a]), None, None)
    assert call.op == op and list(call.args) == [a] and call.span is None and str(call)
    through_json(call)
    value = relay.Constant(tvm.nd.array(np.array(10)))
    let = relay.Let(a, value, a)
    assert let.var == a and let.value == value and let.body == a and let.span is None and str(let)
    through_json(let)
    cond = relay.If(relay.Var("c"), relay.Var("l"), relay.Var("r"))
    assert cond.cond.name_hint == "c" and cond.true_branch.name_hint == "l" and cond.false_branch.name_hint == "r" and cond.span is None
    through_json(cond)
    get = relay.TupleGetItem(relay.Var("t"), 1)
    assert get.tuple_value.name_hint == "t" and get.index == 1
    through_json(get)
    through_json(relay.op.op.get("add"))


@program
def attributes_of_convolutions():
    data, weight = relay.var("data", shape=(1, 3, 224, 224)), relay.var("weight", shape=(10, 3, 2, 2))
    ca = relay.nn.conv2d(data, weight, strides=(2, 2), padding=(0, 0, 0, 0), channels=10, kernel_size=(2, 2)).attrs
    assert list(ca.strides) == [2, 2] and list(ca.padding) == [0, 0, 0, 0] and list(ca.dilation) == [1, 1] and ca.groups == 1 and ca.data_layout == "NCHW" and ca.kernel_layout == "OIHW" and ca.out_layout == "" and ca.out_dtype == ""
    assert ca.channels == 10 and list(ca.kernel_size) == [2, 2] and ca["channels"] == 10
    assert set(ca.keys()) >= {"strides", "padding", "dilation", "groups"} and ca.get_str("data_layout") == "NCHW" and ca.get_int("groups") == 1 and [int(v) for v in ca.get_int_tuple("strides")] == [2, 2]
    info = {f.name: f for f in ca.list_field_info()}
    assert "channels" in info and info["strides"].type_info and isinstance(info["strides"].description, str)
    with refusing(AttributeError):
        ca.nothing


# ---- targets
@program
def strings_of_targets():
    t = Target("cuda -model=unknown -libs=cublas,cudnn")
    assert t.model == "unknown" and set(t.keys) == {"cuda", "gpu"} and set(t.libs) == {"cublas", "cudnn"} and str(t) == str(tvm.target.cuda(options="-libs=cublas,cudnn"))
    assert tvm.target.intel_graphics().device_name == "intel_graphics" and tvm.target.mali().device_name == "mali" and tvm.target.arm_cpu().device_name == "arm_cpu"
    t = Target("vulkan -device_name='Name of GPU with spaces' -device_type=discrete")
    assert t.attrs["device_name"] == "Name of GPU with spaces" and t.attrs["device_type"] == "discrete"
    assert Target(str(t)).attrs["device_name"] == t.attrs["device_name"]


@program
def tags():
    t = Target("nvidia/geforce-rtx-2080-ti")
    assert t.kind.name == "cuda" and t.attrs["arch"] == "sm_75" and t.attrs["max_threads_per_block"] == 1024 and t.attrs["thread_warp_size"] == 32 and t.attrs["registers_per_block"] == 65536
    t = Target("nvidia/jetson-nano")
    assert t.kind.name == "cuda" and t.attrs["arch"] == "sm_53" and t.host is None
    t = Target("nvidia/jetson-nano", "nvidia/geforce-rtx-2080-ti")
    assert t.host.attrs["arch"] == "sm_75"
    assert "nvidia/jetson-nano" in tvm.target.list_tags()


@program
def kinds():
    for name in Target.list_kinds():
        t = Target(name)
        if any(t.get_kind_attr(k) for k in ("RelayToTIR", "TIRToRuntime", "is_external_codegen")):
            continue
        assert name in tvm._ffi.runtime_ctypes.Device.STR2MASK, name
        assert t.kind.device_type == tvm._ffi.runtime_ctypes.Device.STR2MASK[name], name


@program("libs", "mcpu", "mattr", "mabi", "mtriple", "system-lib", "link-params", "unpacked-api", "interface-api")
def options(name):
    value = {"libs": ["a"], "mattr": ["+x"], "system-lib": True, "link-params": True, "unpacked-api": True}.get(name, "x")
    t = Target({"kind": "llvm", "keys": ["arm_cpu"], name: value})
    got = t.attrs[name]
    assert (list(got) if isinstance(value, list) else got) == value or bool(got) is value


@program
def canonical_pairs():
    t, h = Target("cuda"), Target("llvm")
    t, h = Target.canon_target_and_host(t, h)
    assert t.kind.name == "cuda" and h.kind.name == "llvm" and t.host == h
    t, h = Target.canon_target_and_host({"kind": "cuda", "host": "llvm"}, None)
    assert h.kind.name == "llvm" and t.host.kind.name == "llvm"
    many = Target.canon_target_map_and_host({"cuda": "cuda", "llvm": "llvm"}, "llvm")
    assert many[1].kind.name == "llvm"
    for bad in (5, [], "no such"):
        raises((ValueError, TypeError, tvm.TVMError), lambda: Target.canon_target(bad) and Target(bad))
    multi = Target.canon_multi_target_and_host(Target({"kind": "cuda", "host": {"kind": "llvm"}}))
    assert len(multi) == 1 and multi[0].host.kind.name == "llvm"
    multi = Target.canon_multi_target_and_host({"cpu": "llvm", "cuda": "cuda"}, "llvm -mcpu=x")
    assert len(multi) == 2 and all(m.host.mcpu == "x" for m in multi)


# ---- constants bound late
@program
def constants_of_a_file():
    data = numbers(100, 100)
    x = relay.var("x", shape=(100, 100))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(data))))
    exe = vm.compile(mod, target="llvm")
    folder = utils.tempdir()
    consts, path = folder.relpath("consts"), folder.relpath("lib.so")
    exe.move_late_bound_consts(consts, byte_limit=256)
    exe.mod.export_library(path)
    loaded = runtime.load_module(path)
    loaded["load_late_bound_consts"](consts)
    got = runtime.vm.VirtualMachine(loaded, tvm.cpu()).invoke("main", data)
    np.testing.assert_allclose(got.numpy(), data + data, rtol=1e-6)
    exe = runtime.vm.Executable(runtime.load_module(path))
    exe.load_late_bound_consts(consts)
    got = runtime.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", data)
    np.testing.assert_allclose(got.numpy(), data + data, rtol=1e-6)


@program
def no_constants_to_bind():
    x = relay.var("x", shape=(10, 10))
    exe = vm.compile(tvm.IRModule.from_expr(relay.Function([x], x + x)), target="llvm")
    folder = utils.tempdir()
    path = folder.relpath("lib.so")
    exe.mod.export_library(path)
    loaded = runtime.load_module(path)
    got = runtime.vm.VirtualMachine(loaded, tvm.cpu()).invoke("main", numbers(10, 10))
    np.testing.assert_allclose(got.numpy(), 2 * numbers(10, 10), rtol=1e-6)


@program
def constants_of_a_map():
    data = numbers(100, 100)
    x = relay.var("x", shape=(100, 100))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(data))))
    exe = vm.compile(mod, target="llvm")
    kept = exe.get_late_bound_consts(byte_limit=256)
    folder = utils.tempdir()
    path = folder.relpath("lib.so")
    exe.mod.export_library(path)
    loaded = runtime.load_module(path)
    loaded["load_late_bound_consts_from_map"](kept)
    got = runtime.vm.VirtualMachine(loaded, tvm.cpu()).invoke("main", data)
    np.testing.assert_allclose(got.numpy(), data + data, rtol=1e-6)


# ---- executors of libraries in C
@program("c", "llvm")
def a_library_with_one_entry(kind):
    d, w = relay.var("d", shape=(1, 4, 8, 8), dtype="int8"), relay.var("w", shape=(4, 1, 3, 3), dtype="int8")
    f = relay.Function([d, w], relay.nn.conv2d(d, w, kernel_size=(3, 3), padding=(1, 1), channels=4, groups=4, out_dtype="int32"))
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
        lib = relay.build(tvm.IRModule.from_expr(f), target=kind, executor=Executor("aot", {"interface-api": "packed"}), runtime=Runtime("cpp"))
    folder = utils.tempdir()
    path = folder.relpath("lib.so")
    lib.export_library(path, cc="gcc", options=["-std=c11", "-g3", "-O0"])
    loaded = runtime.load_module(path)
    run = runtime.executor.AotModule(loaded["default"](tvm.cpu(0)))
    data, weight = numbers(1, 4, 8, 8, dtype="int8"), numbers(4, 1, 3, 3, dtype="int8")
    run.set_input("d", data)
    run.set_input(w=weight)
    run.run()
    want = np.zeros((1, 4, 8, 8), "int64")
    padded = np.pad(data.astype("int64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for i in range(3):
        for j in range(3):
            want += padded[:, :, i:i + 8, j:j + 8] * weight[None, :, 0, i, j][:, :, None, None]
    np.testing.assert_array_equal(run.get_output(0).numpy(), want)
    assert run.get_num_inputs() == 2 and run.get_num_outputs() == 1


@program
def a_device_too_many():
    x = relay.var("x", shape=(1,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), target="llvm", executor=Executor("aot", {"interface-api": "packed"}))
    with refusing(tvm.TVMError):
        runtime.executor.AotModule(lib["default"](tvm.cpu(0), tvm.cpu(0)))


@program
def parts_of_a_loaded_library():
    x, w = relay.var("x", shape=(2, 2)), relay.var("w", shape=(2, 2))
    lib = relay.build(relay.Function([x, w], x * w), "llvm", params={"w": np.full((2, 2), 3, "float32")})
    folder = utils.tempdir()
    path = folder.relpath("lib.so")
    lib.export_library(path)
    loaded = runtime.load_module(path)
    assert loaded["get_graph_json"]() == lib.get_graph_json()
    bare = lib["remove_params"]()
    other = folder.relpath("bare.so")
    bare.export_library(other)
    run = graph_executor.GraphModule(runtime.load_module(other)["default"](tvm.cpu()))
    run.load_params(relay.save_param_dict(lib.get_params()))
    run.run(x=np.ones((2, 2), "float32"))
    assert run.get_output(0).numpy().sum() == 12


@program
def text_of_functions():
    mod = tvm.parser.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.relu(%x) }')
    same(tvm.parser.parse(mod.astext()), mod)
    assert mod.astext(show_meta_data=False).startswith("#[version")
