# SPDX-License-Identifier: Apache-2.0
"""JSON of single nodes, functions of Python, arrays, targets, machines, importers' tools."""
import json
import os
import numpy as np
import tvm
import tvm.testing
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir, nd, runtime
from tvm.relay import transform
from tvm.relay.testing import run_infer_type, run_opt_pass


@program
def cached_func_inputs():
    tec = relay.backend.te_compiler.get()
    def get_func(shape):
        x = relay.var("x", shape=shape)
        y = relay.add(x, x); z = relay.add(y, x)
        f = relay.Function([x], z)
        mod = tvm.IRModule.from_expr(f)
        return transform.InferType()(mod)["main"]
    z1 = tec.lower(get_func((10,)), "llvm"); z2 = tec.lower(get_func((10,)), "llvm")
    z3 = tec.lower(get_func(()), "llvm")
    assert z1.same_as(z2) and not z3.same_as(z1)
    assert len(z1.inputs) == 1 and [int(v) for v in z1.inputs[0].shape] == [10] and len(z1.outputs) == 1
    assert z1.prim_fn_var.name_hint == "tvmgen_default_fused_add_add"
    assert z1.target.kind.name == "llvm" or str(z1.target)


@program
def json_lone():
    x = te.var("x")
    for n in (x, x + 1, tir.const(3, "int64"), tvm.runtime.convert([1, 2]), tvm.runtime.convert({"a": 1}), tvm.runtime.String("s"), relay.op.get("add"), relay.TypeVar("a"), tvm.ir.Range(0, 5), tir.StringImm("x"), relay.const(np.arange(3)), relay.TensorType((1, 2)), relay.var("v", shape=(1,)), tvm.target.Target("llvm -mcpu=skylake"), tvm.ir.SourceName("s"), relay.Span(relay.SourceName("a"), 1, 2, 3, 4), tvm.nd.array(np.arange(3))):
        j = tvm.ir.save_json(n)
        back = tvm.ir.load_json(j)
        assert tvm.ir.structural_equal(back, n, map_free_vars=True) or str(back) == str(n), type(n)


@program
def json_attributes():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(2, 3, 3, 3))
    a = relay.nn.conv2d(x, w, strides=(2, 2)).attrs
    back = tvm.ir.load_json(tvm.ir.save_json(a))
    assert back.strides[0] == 2 and tvm.ir.structural_equal(a, back)
    t = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4))
    back = tvm.ir.load_json(tvm.ir.save_json(t))
    assert back.name == "xx" and tvm.ir.structural_equal(back, t)
    d = tvm.ir.make_node("DictAttrs", x=1, name="q")
    back = tvm.ir.load_json(tvm.ir.save_json(d))
    assert back["x"] == 1 and tvm.ir.structural_equal(back, d)


@program
def node_str_and_repr():
    s = tvm.runtime.String("hello")
    assert s == "hello" and isinstance(s, str) and str(s) == "hello"
    assert isinstance(tvm.testing.echo("hello"), str)
    m = tvm.runtime.convert({"a": 2, "b": 3})
    assert "a" in m and m["b"] == 3 and len(m) == 2 and dict(m.items()) and m.get("c") is None
    a = tvm.runtime.convert([1, 2, 3])
    assert a[-1].value == 3 and len(a[0:2]) == 2 and [v.value for v in a] == [1, 2, 3] and str(a) == "[1, 2, 3]"
    raises(IndexError, lambda: a[5])
    assert list(map(int, a[::-1])) == [3, 2, 1] or True
    assert isinstance(a, tvm.ir.Array) and isinstance(m, tvm.ir.Map)


@program
def string_ops():
    s = tvm.runtime.String("xyz")
    assert s.startswith("x") and hash(s) == hash("xyz") and {s: 1}["xyz"] == 1
    f = tvm.runtime.convert(lambda x: x)
    assert f("abc") == "abc"
    import pickle
    assert pickle.loads(pickle.dumps(s)) == "xyz"


@program
def object_dir():
    x = relay.var("x", shape=(1,))
    assert "type_annotation" in dir(x) and "vid" in dir(x)
    assert "shape" in dir(relay.TensorType((1,)))
    e = raises(AttributeError, lambda: x.never)
    assert "never" in str(e)
    assert x.handle is not None if hasattr(x, "handle") else True
    assert x.same_as(x) and not x.same_as(relay.var("x", shape=(1,)))


@program
def shape_tuple():
    s = tvm.runtime.ShapeTuple((1, 2, 3))
    assert list(s) == [1, 2, 3] and s == (1, 2, 3) and s[1] == 2 and len(s) == 3 and s == [1, 2, 3] or tuple(s) == (1, 2, 3)
    assert str(s) is not None
    e = tvm.testing.echo(s)
    assert e == s


@program
def adt_container():
    a = tvm.runtime.container.ADT(1, [nd.array(np.arange(3)), nd.array(np.arange(2))])
    assert a.tag == 1 and len(a) == 2 and a[1].shape == (2,) and a[-1].shape == (2,)
    t = tvm.runtime.container.tuple_object([nd.array(np.arange(2))])
    assert t.tag == 0 and len(t) == 1
    raises(IndexError, lambda: a[4])


@program
def func_conversions():
    @tvm.register_func("suite.callback", override=True)
    def cb(*args):
        return len(args)
    assert tvm.get_global_func("suite.callback")(1, 2, "x", None, 3.5, [1, 2]) == 6
    raises(ValueError, lambda: tvm.get_global_func("suite.never"))
    assert tvm.get_global_func("suite.never", allow_missing=True) is None
    f = tvm.runtime.convert(lambda a: a + 1)
    assert f(10) == 11 and isinstance(f, tvm.runtime.PackedFunc)
    def make(x):
        return lambda y: x + y
    assert tvm.runtime.convert(make)(3)(4) == 7
    def err(x):
        raise ValueError("bad thing")
    e = raises((ValueError, tvm.TVMError), tvm.runtime.convert(err), 1)
    assert "bad thing" in str(e)
    def nested(f):
        return f(5)
    assert tvm.runtime.convert(nested)(lambda v: v * 2) == 10
    tvm.register_func("suite.x", lambda: 7, override=True)
    raises(Exception, lambda: tvm.register_func("suite.x", lambda: 8))
    assert "suite.x" in tvm._ffi.registry.list_global_func_names()
    tvm._ffi.registry.remove_global_func("suite.x")
    assert tvm.get_global_func("suite.x", True) is None


@program("float32", "int8", "uint1", "float16", "int32x4", "bool", "handle", "bfloat16", "float64", "custom")
def data_type(t):
    if t == "custom":
        raises(ValueError, lambda: tvm.DataType("floatx"))
        return
    d = tvm.DataType(t)
    assert str(d) == {"uint1": "bool", "bfloat16": "bfloat16"}.get(t, t)
    assert d == tvm.DataType(t) and d == t if t != "uint1" else True
    assert d.lanes == (4 if t == "int32x4" else 1)
    if t == "float16":
        assert d.bits == 16 and d.type_code == 2


@program
def devices():
    d = tvm.device("cpu", 1)
    assert d.device_type == 1 and d.device_id == 1 and str(d) == "cpu(1)" and d != tvm.cpu(0) and tvm.device("llvm") == tvm.cpu(0)
    assert tvm.cpu().exist and not tvm.cuda(0).exist
    assert {tvm.cpu(0): 1}[tvm.cpu(0)] == 1
    raises(ValueError, lambda: tvm.device("nothing"))
    assert tvm.device("cuda").device_type == 2 and tvm.device(1, 2).device_id == 2 and tvm.vulkan().device_type == 7 and tvm.opencl().device_type == 4
    assert tvm.cpu(0).max_threads_per_block is None or True
    d = tvm.cpu(0); d.sync()
    assert tvm.device("hexagon").device_type == 14 and tvm.device("metal").device_type == 8 and tvm.ext_dev().device_type == 12
    assert tvm.target.Target("llvm").kind.device_type == 1 if hasattr(tvm.target.Target("llvm").kind, "device_type") else True


@program
def targets():
    T = tvm.target.Target
    t = T("llvm -mcpu=skylake-avx512 -device=arm_cpu -keys=a,b")
    assert t.kind.name == "llvm" and t.mcpu == "skylake-avx512" and list(t.keys)[:2] == ["a", "b"] or list(t.keys)
    assert t.attrs["mcpu"] == "skylake-avx512" and t.device_name == "arm_cpu" and t.model == "unknown"
    with T("cuda"):
        assert T.current().kind.name == "cuda" and T.current(allow_none=False).max_num_threads == 1024 and T.current().thread_warp_size == 32
    assert T.current() is None
    raises(ValueError, lambda: T.current(allow_none=False))
    raises((ValueError, tvm.TVMError), lambda: T("nothing_like_this"))
    raises((ValueError, tvm.TVMError), lambda: T("llvm -never=1"))
    raises((ValueError, tvm.TVMError), lambda: T({"kind": "llvm", "mcpu": 3}))
    a = T("cuda", host="llvm"); assert a.host.kind.name == "llvm" and str(a.host) == "llvm -keys=cpu -link-params=0" or a.host
    b = T({"kind": "llvm", "keys": ["arm_cpu"], "device": "arm_cpu", "libs": ["cblas"], "mattr": ["+a", "+b"], "system-lib": False})
    assert "arm_cpu" in b.keys and list(b.libs) == ["cblas"] and [str(v) for v in b.mattr] == ["+a", "+b"]
    e = b.export(); assert e["kind"] == "llvm" and e["libs"] == ["cblas"]
    assert T(dict(e)) is not None
    assert tvm.target.cuda(options="-arch=sm_35").arch == "sm_35" and tvm.target.arm_cpu("rasp3b").device_name == "arm_cpu"
    assert tvm.target.intel_graphics().thread_warp_size == 16 or True
    assert "cuda" in tvm.target.Target.list_kinds() and len(T("c").kind.options if hasattr(T("c").kind, "options") else [1]) > 0
    c = T("c -runtime=c"); 
    h = tvm.target.Target.check_and_update_host_consist("cuda", "llvm")
    assert h[0].host.kind.name == "llvm"
    assert T("llvm") == T("llvm") or tvm.ir.structural_equal(T("llvm"), T("llvm"))
    assert T("nvidia/nvidia-v100").arch == "sm_70" and tvm.target.list_tags() is not None
    assert T("composite") is not None or True


@program
def hexagon():
    t = tvm.target.hexagon("v66")
    assert t.kind.name == "hexagon" and "v66" in t.attrs["mcpu"]
    assert tvm.target.hexagon("v68", hvx=0) is not None
    raises((ValueError, AssertionError), lambda: tvm.target.hexagon("v66", hvx=3))


@program
def generic_functions():
    @tvm.target.generic_func
    def mygeneric(data):
        return data + 1
    @mygeneric.register(["cuda", "gpu"])
    def cuda_func(data):
        return data + 2
    @mygeneric.register("rocm")
    def rocm_func(data):
        return data + 3
    @mygeneric.register("cpu")
    def c(data):
        return data + 10
    with tvm.target.cuda(): assert mygeneric(1) == 3
    with tvm.target.rocm(): assert mygeneric(1) == 4
    with tvm.target.Target("llvm"): assert mygeneric(1) == 11
    assert tvm.target.get_native_generic_func("suite.g") is not None
    g = tvm.target.GenericFunc("suite.h") if hasattr(tvm.target, "GenericFunc") else None


@program
def executors_names():
    ex = relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"})
    assert ex["unpacked-api"] == True and ex.name == "aot" and "unpacked-api" in ex and ex.list_registered() if hasattr(ex, "list_registered") else True
    assert relay.backend.Executor("graph").name == "graph"
    raises((ValueError, tvm.TVMError), lambda: relay.backend.Executor("nothing"))
    raises((ValueError, tvm.TVMError), lambda: relay.backend.Executor("aot", {"woof": 1}))
    rt = relay.backend.Runtime("crt", {"system-lib": True})
    assert rt["system-lib"] == True and rt.name == "crt"
    raises((ValueError, tvm.TVMError), lambda: relay.backend.Runtime("nothing"))
    assert set(relay.backend.Executor.list_registered()) == {"aot", "graph"} and set(relay.backend.Runtime.list_registered()) == {"cpp", "crt"}
    assert "unpacked-api" in relay.backend.Executor.list_registered_options("aot")
    assert tvm.ir.structural_equal(ex, relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"})) and ex == relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"})
    assert ex != relay.backend.Executor("aot")


@program
def vm_constants_late_bound():
    x = relay.var("x", shape=(1000, 1000))
    c = np.random.RandomState(0).rand(1000, 1000).astype("float32")
    mod = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(c)))
    exe = relay.vm.compile(mod, "llvm")
    d = tvm.contrib.utils.tempdir()
    p = d.relpath("consts")
    exe.move_late_bound_consts(p, byte_limit=256)
    code, lib = exe.save()
    assert os.path.exists(p) and len(bytes(code)) < 1000 * 1000
    exe2 = runtime.vm.Executable.load_exec(code, lib)
    exe2.load_late_bound_consts(p)
    vm = runtime.vm.VirtualMachine(exe2, tvm.cpu())
    out = vm.invoke("main", np.zeros((1000, 1000), "float32")).numpy()
    np.testing.assert_equal(out, c)
    m = exe.get_late_bound_consts(256) if hasattr(exe, "get_late_bound_consts") else {}
    assert isinstance(m, dict) or len(m) >= 0


@program
def vm_basics():
    x = relay.var("x", shape=(10, 10))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.split(x, 5, 0).astuple()))
    exe = relay.vm.compile(mod, target="llvm")
    vm = runtime.vm.VirtualMachine(exe, tvm.cpu())
    out = vm.run(numbers(10, 10))
    assert len(out) == 5 and out[2].shape == (2, 10)
    assert "main" in exe.stats or "Relay VM" in exe.stats
    assert exe.primitive_ops and exe.bytecode and exe.get_function_arity("main") == 1 and list(exe.globals) == ["main"]
    assert exe.function_params["main"] == ["x"] if hasattr(exe, "function_params") else True
    vm.set_input("main", x=numbers(10, 10)); vm.invoke_stateful("main"); outs = vm.get_outputs(); assert len(outs) == 5
    vm.set_input("main", numbers(10, 10))
    raises(Exception, lambda: vm.invoke("never"))
    raises(Exception, lambda: vm.set_input("main", never=1))
    r = vm.benchmark(tvm.cpu(), numbers(10, 10), func_name="main", repeat=2, number=1); assert len(r.results) == 2
    vm.invoke_with_outputs if hasattr(vm, "invoke_with_outputs") else None
    src = exe.lib; assert exe.mod is not None
    from tvm.runtime import profiler_vm
    if profiler_vm.enabled():
        p = profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
        assert "Duration" in str(p.profile(numbers(10, 10), func_name="main"))


@program
def vm_compiler():
    x = relay.var("x", shape=(2, 2)); w = relay.var("w", shape=(2, 2))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    comp = relay.vm.VMCompiler()
    comp.set_params({"w": numbers(2, 2)})
    opt, params = comp.optimize(mod, target="llvm")
    assert isinstance(opt, tvm.IRModule)
    comp.lower(mod, "llvm"); comp.codegen()
    exe = comp.get_exec()
    assert exe is not None and comp.get_params() is not None


@program
def aot_generic():
    x = relay.var("x", shape=(2, 2))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    lib = relay.build(mod, "llvm", executor=relay.backend.Executor("aot", {"interface-api": "packed"}), runtime=relay.backend.Runtime("cpp"))
    keep = tvm.contrib.utils.tempdir(); d = keep.relpath("m.so")
    lib.export_library(d)
    r = tvm.runtime.executor.AotModule(tvm.runtime.load_module(d)["default"](tvm.cpu(0)))
    r.set_input("x", numbers(2, 2)); r.run()
    np.testing.assert_equal(r.get_output(0).numpy(), np.maximum(numbers(2, 2), 0))
    assert r.get_num_inputs() == 1 and r.get_num_outputs() == 1 and r.get_input_index("x") == 0 if hasattr(r, "get_input_index") else True


@program
def name_transforms():
    from tvm.relay.backend.name_transforms import to_c_function_style, to_c_variable_style, to_c_constant_style, prefix_name, prefix_generated_name, sanitize_name
    assert to_c_function_style("TVM_Woof") == "TVMWoof" and to_c_function_style("TVM_woof") == "TVMWoof" and to_c_function_style("TVM_woof_woof") == "TVMWoofWoof" and to_c_function_style("TVMGen_woof_woof") == "TVMGenWoofWoof"
    for bad in ("Cake_Bakery", ""):
        raises((tvm.TVMError, ValueError), to_c_function_style, bad)
    assert to_c_variable_style("TVM_Woof") == "tvm_woof" and to_c_constant_style("TVM_woof") == "TVM_WOOF"
    assert prefix_name("Woof") == "TVM_Woof" and prefix_name(["Woof", "Dog"]) == "TVM_Woof_Dog"
    raises((tvm.TVMError, ValueError), prefix_name, []); raises((tvm.TVMError, ValueError), prefix_name, "")
    assert prefix_generated_name("Woof") == "TVMGen_Woof"
    assert sanitize_name("+_+ ") == "____" and sanitize_name("input+") == "input_" and sanitize_name("input-") == "input_"


@program
def param_dict():
    p = {"x": np.random.rand(10, 2).astype("float32"), "y": np.arange(3)}
    blob = runtime.save_param_dict(p)
    back = runtime.load_param_dict(blob)
    assert set(back) == {"x", "y"}
    np.testing.assert_equal(back["y"].numpy(), p["y"]); assert back["x"].dtype == "float32"
    raises((tvm.TVMError, ValueError), runtime.load_param_dict, b"nonsense")
    keep = tvm.contrib.utils.tempdir(); d = keep.relpath("p")
    runtime.save_param_dict_to_file(p, d) if hasattr(runtime, "save_param_dict_to_file") else None
    g = tvm.get_global_func("tvm.relay._save_param_dict", True)
    assert relay.load_param_dict(relay.save_param_dict({"a": nd.array(np.ones(2))}))["a"].shape == (2,)


@program
def frontend_common():
    from tvm.relay.frontend.common import StrAttrsDict, fold_constant, infer_shape, infer_type, infer_value, set_span, new_var, get_name, autopad, try_infer_value, infer_channels, get_relay_op, AttrCvt, Renamer, ExprTable, unbind, lstm_cell, gru_cell, ensure_scalar_shape, fold_constant as fc, shape_of, to_int_list, logger, RequiredAttr
    a = StrAttrsDict({"axis": "3", "b": "(1, 2)", "t": "True", "f": "1.5", "n": "None"})
    assert a.get_int("axis") == 3 and a.get_int_tuple("b") == (1, 2) and a.get_bool("t") is True and a.get_float("f") == 1.5 and a.get_int("zz", 4) == 4 and a.has_attr("axis") and a.get_str("n") == "None" and a.get_tuple_tuple_int("q", None) is None if hasattr(a, "get_tuple_tuple_int") else True
    raises(AttributeError, a.get_int, "gone")
    x = relay.var("x", shape=(1, 2, 3, 4)); 
    assert infer_shape(x) == (1, 2, 3, 4) and infer_type(relay.nn.relu(x)).checked_type.dtype == "float32"
    v = relay.var("k", shape=(2,))
    assert infer_value(relay.const(2) * relay.const(3), {}).numpy() == 6
    assert infer_value(v + relay.const(1.0), {"k": nd.array(np.ones(2, "float32"))}).numpy()[0] == 2
    val, ok = try_infer_value(relay.const(2) + relay.const(2)); assert ok and int(val) == 4
    val, ok = try_infer_value(v); assert not ok and val is v or not ok
    assert get_name(x) == "x" and get_relay_op("add") is relay.add and get_relay_op("relu") is relay.nn.relu
    raises(tvm.error.OpNotImplemented, get_relay_op, "never_an_op")
    t = ExprTable(); t.set_expr("a", x); assert t.get_expr("a") is x and t.has_expr("a") and not t.has_expr("b"); t.set_padding(True) if hasattr(t, "set_padding") else None
    parts = unbind(relay.var("u", shape=(2, 3)), 0); assert len(parts) == 2
    assert isinstance(fold_constant(relay.const(1) + relay.const(2)), relay.Constant)
    p = autopad(relay.var("i", shape=(1, 3, 7, 7)), (2, 2), (3, 3), (1, 1)); assert infer_shape(p)[2] == 9 or infer_shape(p)[2] >= 8
    assert to_int_list(np.array([1, 2])) == [1, 2]


@program
def test_utilities():
    tvm.testing.assert_allclose(np.ones(2), np.ones(2) + 1e-9)
    raises(AssertionError, tvm.testing.assert_allclose, np.ones(2), np.zeros(2))
    tvm.testing.check_numerical_grads(lambda x: (x * x).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    assert tvm.testing.enabled_targets() is not None and all(isinstance(t[0], str) for t in tvm.testing.enabled_targets())
    assert tvm.testing.device_enabled("llvm") and not tvm.testing.device_enabled("cuda")
    assert tvm.testing.identity_after(3, 1) == 3 if hasattr(tvm.testing, "identity_after") else True
    assert tvm.testing.test_check_eq_callback if hasattr(tvm.testing, "test_check_eq_callback") else True
    r = relay.testing.rand("float32", 2, 3); assert isinstance(r, nd.NDArray) and r.shape == (2, 3)
    tvm.testing.check_bool_expr_is_true if hasattr(tvm.testing, "check_bool_expr_is_true") else None
    assert tvm.testing.terminate_self is not None


@program
def virtual_device():
    V = tvm.target.VirtualDevice
    v = V(tvm.device("cpu"))
    assert v.device_type == 1 and v.virtual_device_id == 0 and v.target is None and v.memory_scope == ""
    v2 = V(tvm.device("cuda", 4), tvm.target.Target("cuda"), "local")
    assert v2.device_type == 2 and v2.virtual_device_id == 4 and v2.memory_scope == "local" and v2.target.kind.name == "cuda"
    assert V().device_type == -1 or V() is not None
    assert tvm.ir.structural_equal(v, V(tvm.device("cpu"))) and not tvm.ir.structural_equal(v, v2)
    x = relay.var("x", shape=(1,))
    d = relay.annotation.on_device(x, tvm.device("cuda", 1), constrain_result=True, constrain_body=False)
    assert d.attrs.virtual_device.device_type_int == 2
    assert d.attrs.constrain_result == True and d.attrs.constrain_body == False
    assert x.virtual_device_ is not None if hasattr(x, "virtual_device_") else True


@program
def prng():
    k = relay.random.threefry_key(1)
    assert k.data.numpy().dtype == np.uint64 and len(k.data.numpy()) == 10
    s = relay.TupleWrapper(relay.random.threefry_split(k), 2) if hasattr(relay, "TupleWrapper") else relay.random.threefry_split(k)
    g = relay.random.threefry_generate(k, (16,))
    f = relay.Function([], g.astuple() if hasattr(g, "astuple") else g)
    out = relay.create_executor("vm").evaluate(f)()
    assert out[1].shape == (16,) and out[1].dtype == "uint64"
    u = relay.random.uniform(k, (100,), "float32", 2.0, 3.0)
    out = relay.create_executor("vm").evaluate(relay.Function([], u.astuple() if hasattr(u, "astuple") else u))()
    assert 2.0 <= out[1].numpy().min() and out[1].numpy().max() <= 3.0
    with refusing(tvm.TVMError):
        run_infer_type(relay.random.threefry_generate(relay.const(np.zeros(3, "uint64")), (16,)))


@program
def scope_builder():
    sb = relay.ScopeBuilder()
    x = relay.var("x", shape=())
    y = sb.let("y", relay.add(x, x))
    z = sb.let(("z", relay.scalar_type("float32")), y)
    sb.ret(z)
    e = sb.get()
    assert isinstance(e, relay.Let) and e.body.var.type_annotation == relay.scalar_type("float32")
    sb = relay.ScopeBuilder()
    with sb.if_scope(relay.const(True)): sb.ret(x)
    with sb.else_scope(): sb.ret(x + x)
    assert isinstance(sb.get(), relay.If)
    sb = relay.ScopeBuilder(); 
    None
    sb.ret(x); raises(RuntimeError, sb.ret, x)


@program
def quantize_config():
    with relay.quantize.qconfig(skip_conv_layers=[0], global_scale=4.0, calibrate_mode="global_scale", nbit_input=8) as c:
        assert relay.quantize.current_qconfig().global_scale == 4.0 and relay.quantize.current_qconfig().skip_conv_layers[0] == 0
    x = relay.var("x", shape=(1, 16)); w = relay.var("w", shape=(8, 16))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    with relay.quantize.qconfig(calibrate_mode="global_scale", global_scale=2.0, skip_dense_layer=False):
        q = relay.quantize.quantize(mod, {"w": nd.array(numbers(8, 16))})
    assert "int8" in q.astext(False)


@program
def build_forms():
    x = relay.var("x", shape=(2, 3))
    f = relay.Function([x], relay.nn.relu(x))
    mod = tvm.IRModule.from_expr(f)
    g, l, p = relay.build(mod, "llvm")
    relay.build(mod, target=tvm.target.Target("llvm"), target_host="llvm")
    relay.build(mod, target={"cpu": "llvm"}); None
    relay.build(mod, target=tvm.target.Target("llvm", host="llvm"))
    relay.build(f, "llvm")
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}): relay.build(mod, "llvm")
    raises(ValueError, lambda: relay.build(mod))
    raises(Exception, lambda: relay.build(3, "llvm"))
    bm = relay.build_module.BuildModule()
    g, l, p = bm.build(mod, "llvm")
    assert "tvm_op" in g
    lib = bm.get_module() if hasattr(bm, "get_module") else None
    raises(Exception, lambda: tvm.transform.PassContext(config={"never.heard": 1}))
    opt, par = relay.optimize(mod, target="llvm")
    assert "Primitive=1" in opt.astext(False)


@program
def qnn_texts():
    x, y = relay.var("x", shape=(1, 4), dtype="uint8"), relay.var("y", shape=(1, 4), dtype="uint8")
    c = lambda v, d="int32": relay.const(v, d)
    z = relay.qnn.op.add(lhs=x, rhs=y, lhs_scale=c(0.00784314, "float32"), lhs_zero_point=c(127), rhs_scale=c(0.00784314, "float32"), rhs_zero_point=c(127), output_scale=c(0.00784314, "float32"), output_zero_point=c(127))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], z))
    mod = transform.InferType()(mod)
    mod = relay.qnn.transform.CanonicalizeOps()(mod)
    f = mod["main"]
    out = relay.create_executor("graph").evaluate(f)(np.array([[140, 153, 165, 178]], "uint8"), np.array([[25, 153, 178, 216]], "uint8"))
    np.testing.assert_equal(out.numpy(), np.array([[38, 179, 216, 255]]))
    z = relay.qnn.op.mul(lhs=x, rhs=y, lhs_scale=c(0.00784314, "float32"), lhs_zero_point=c(127), rhs_scale=c(0.00784314, "float32"), rhs_zero_point=c(127), output_scale=c(0.00784314, "float32"), output_zero_point=c(127))
    out = relay.create_executor("graph").evaluate(relay.Function([x, y], z))(np.array([[1, 153, 2, 178]], "uint8"), np.array([[204, 178, 1, 8]], "uint8"))
    np.testing.assert_equal(out.numpy().ravel(), np.clip(np.round((np.array([1, 153, 2, 178.]) - 127) * 0.00784314 * (np.array([204, 178, 1, 8.]) - 127) * 0.00784314 / 0.00784314 + 127), 0, 255))


@program("UPWARD", "TONEAREST")
def qnn_requantize(mode):
    x = relay.var("x", shape=(8,), dtype="int32")
    z = relay.qnn.op.requantize(x, relay.const(0.5), relay.const(0), relay.const(1.0), relay.const(0), rounding=mode, out_dtype="int8")
    out = relay.create_executor("graph").evaluate(relay.Function([x], z))(np.array([1, 2, 3, 5, -1, -3, -5, 7], "int32")).numpy()
    want = [1, 1, 2, 3, 0, -1, -2, 4] if mode == "UPWARD" else [1, 1, 2, 3, -1, -2, -3, 4]
    np.testing.assert_equal(out, want)


@program
def qnn_requantize_config():
    with relay.qnn.op.requantize_config(rounding="TONEAREST", compute_dtype="float32") as c:
        assert relay.qnn.op.current_requantize_config().rounding == "TONEAREST" if hasattr(relay.qnn.op, "current_requantize_config") else True
    raises(Exception, lambda: relay.qnn.op.requantize_config(nothing=1).__enter__())
