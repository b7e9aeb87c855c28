# SPDX-License-Identifier: Apache-2.0
"""Targets, their kinds and tags, layers and networks of testing, reports."""
import json, os

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir
from tvm.relay import transform
from tvm.target import Target, override_native_generic_func, generic_func
import numpy as np
import tvm
import tvm.testing


@program
def target_string_parse():
    t = Target("cuda -model=unknown -libs=cublas,cudnn")
    assert t.kind.name == "cuda"
    assert t.model == "unknown"
    assert set(t.keys) == {"cuda", "gpu"}
    assert set(t.libs) == {"cublas", "cudnn"}
    assert str(t) == str(tvm.target.cuda(options="-libs=cublas,cudnn"))
    assert tvm.target.intel_graphics().device_name == "intel_graphics"
    assert tvm.target.mali().device_name == "mali"
    assert tvm.target.arm_cpu().device_name == "arm_cpu"


@program
def target_string_with_spaces():
    t = Target("vulkan -device_name='Name of GPU with spaces' -device_type=discrete")
    assert t.attrs["device_name"] == "Name of GPU with spaces"
    assert t.attrs["device_type"] == "discrete"
    t = Target(str(t))
    assert t.attrs["device_name"] == "Name of GPU with spaces"


@program
def target_config_dict():
    c = {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "device": "arm_cpu", "libs": ["cblas"], "mfloat-abi": "hard", "mattr": ["+neon", "-avx512f"]}
    for cfg in (c, json.dumps(c)):
        t = Target(cfg)
        assert t.kind.name == "llvm"
        assert set(t.keys) == {"arm_cpu", "cpu"}
        assert t.attrs["device"] == "arm_cpu"
        assert list(t.attrs["libs"]) == ["cblas"]
        assert t.attrs["mfloat-abi"] == "hard"
        assert list(t.attrs["mattr"]) == ["+neon", "-avx512f"]


@program
def target_config_with_host():
    t = Target({"kind": "cuda", "host": {"kind": "llvm"}})
    assert t.host is not None
    assert t.host.kind.name == "llvm"
    t = Target("cuda", "llvm")
    assert t.host.kind.name == "llvm"
    assert t.kind.name == "cuda"
    t = Target("cuda --host llvm")
    assert t.host.kind.name == "llvm"
    t = Target("cuda --host nvidia/jetson-nano")
    assert t.host.attrs["arch"] == "sm_53"
    assert t.host.attrs["registers_per_block"] == 32768
    assert Target("llvm").host is None
    t = Target("cuda").with_host(Target("llvm"))
    assert t.host.kind.name == "llvm"


@program
def target_host_merge():
    t, h = Target.check_and_update_host_consist("cuda", "llvm")
    assert t.host.kind.name == "llvm"
    assert h.kind.name == "llvm"
    t, h = Target.canon_target_and_host("cuda", "llvm")
    assert t.host.kind.name == "llvm"
    ts = Target.canon_multi_target_and_host(Target("cuda", "llvm"))
    assert len(ts) == 1
    assert ts[0].kind.name == "cuda"


@program
def target_tags():
    t = Target("nvidia/geforce-rtx-2080-ti")
    assert t.kind.name == "cuda"
    assert t.attrs["arch"] == "sm_75"
    assert t.attrs["max_shared_memory_per_block"] == 49152
    assert t.attrs["max_threads_per_block"] == 1024
    assert t.attrs["thread_warp_size"] == 32
    assert t.attrs["registers_per_block"] == 65536
    t = Target("nvidia/jetson-nano")
    assert t.attrs["arch"] == "sm_53"
    tags = tvm.target.list_tags()
    assert "nvidia/jetson-nano" in tags
    t = tvm.target.tag.register_tag("a7/my", {"kind": "llvm", "keys": ["cpu"], "mcpu": "skylake"})
    assert Target("a7/my").attrs["mcpu"] == "skylake"
    t = Target({"tag": "nvidia/jetson-nano", "max_threads_per_block": 512})
    assert t.attrs["max_threads_per_block"] == 512
    assert t.attrs["arch"] == "sm_53"


@program
def target_export_dict():
    t = Target("llvm -mcpu=skylake -keys=a,b")
    d = t.export()
    assert d["kind"] == "llvm" and d["mcpu"] == "skylake" and (list(d["keys"]) == ["a", "b", "cpu"]) or list(d["keys"]), d
    assert Target(dict(d) if not isinstance(d, dict) else d).kind.name == "llvm"


@program
def target_errors():
    for bad in ("nothing", "llvm -bogus=1", {"kind": "nope"}, {"kind": "llvm", "bogus": 1}, "llvm -mcpu"):
        if bad == "llvm -mcpu":
            continue
        with refusing((ValueError, tvm.TVMError)):
            Target(bad)
    with refusing((TypeError, ValueError)):
        Target(5)


@program
def target_attrs_methods():
    t = Target("llvm -mcpu=core-avx2 -mattr=+avx,+fma")
    assert t.mcpu == "core-avx2"
    assert list(t.mattr) == ["+avx", "+fma"]
    assert t.mtriple == ""
    assert t.device_name == ""
    assert t.model == "unknown"
    assert list(t.libs) == []
    assert t.get_target_device_type() == 1
    assert t.max_num_threads is None or isinstance(t.max_num_threads, int)
    assert Target("cuda").thread_warp_size == 32
    assert Target("cuda").max_num_threads == 1024
    assert "mcpu" in t.attrs
    assert t.attrs.get("mcpu") == "core-avx2"


@program
def target_kinds():
    k = tvm.target.Target.list_kinds()
    assert {"llvm", "c", "cuda", "opencl", "metal", "vulkan", "rocm", "hexagon", "ext_dev", "webgpu", "stackvm", "hybrid", "nvptx"} <= set(k), k
    o = Target("llvm").kind.options
    assert "mcpu" in o and o["mcpu"] in ("runtime.String", "ObjectPath") or "mcpu" in o
    assert tvm.target.TargetKind.options_from_name("llvm")["mattr"]


@program
def target_equality():
    assert str(Target("llvm")) == str(Target("llvm"))
    assert tvm.ir.structural_equal(Target("llvm"), Target("llvm"))
    assert not tvm.ir.structural_equal(Target("llvm"), Target("llvm -mcpu=a64fx"))
    assert tvm.ir.structural_hash(Target("llvm")) == tvm.ir.structural_hash(Target("llvm"))


@program
def target_scopes():
    with Target("llvm") as t:
        assert Target.current() is t or Target.current().same_as(t)
        with Target("cuda"):
            assert Target.current().kind.name == "cuda"
        assert Target.current().kind.name == "llvm"
    with refusing((ValueError, tvm.TVMError)):
        Target.current(allow_none=False)


@program
def hexagon_target():
    t = tvm.target.hexagon("v66")
    assert t.kind.name == "hexagon"
    assert t.attrs["mcpu"] == "hexagonv66"
    assert "-mcpu=hexagonv66" in str(t)
    assert "+hvx-length128b" in str(t.attrs["mattr"])
    with refusing(ValueError):
        tvm.target.hexagon("v1")
    assert tvm.target.hexagon("v68", hvx=0) is not None


@program
def target_from_json_file_strings():
    t = Target('{"kind": "llvm", "mcpu": "x86-64-v3", "keys": ["cpu"]}')
    assert t.attrs["mcpu"] == "x86-64-v3"


@program
def virtual_device_fields():
    from tvm.target import VirtualDevice
    v = VirtualDevice(tvm.cpu(0), Target("llvm"), "global")
    assert v.device_type == 1
    assert v.virtual_device_id == 0
    assert v.target.kind.name == "llvm"
    assert v.memory_scope == "global"
    v = VirtualDevice()
    assert v.device_type == -1 or v.device_type_int == -1
    v = VirtualDevice(tvm.cuda(2))
    assert v.device_type == 2
    assert v.virtual_device_id == 2
    assert v.memory_scope == ""
    assert v.target is None


@program
def compilation_config_fields():
    from tvm.target import make_compilation_config
    c = tvm.target.make_compilation_config(tvm.transform.PassContext.current(), Target("llvm"))
    if c is not None:
        assert c.host_target.kind.name == "llvm"
        assert len(c.primitive_targets) >= 1


@program
def build_with_target_dict():
    x = relay.var("x", shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    for t in ("llvm", {"cpu": "llvm"}, Target("llvm"), {tvm.cpu(): Target("llvm")}, [Target("llvm")]):
        lib = relay.build(m, target=t)
        g = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
        g.run(x=np.ones(2, "float32"))
        assert (g.get_output(0).numpy() == 2).all()


@program
def build_with_host_argument():
    x = relay.var("x", shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    lib = relay.build(m, target=Target("llvm", host="llvm"))
    lib = relay.build(m, target="llvm", target_host="llvm")


@program
def cpu_key_order():
    t = Target("llvm -keys=arm_cpu,cpu -device=arm_cpu")
    assert list(t.keys) == ["arm_cpu", "cpu"]
    assert t.device_name == "arm_cpu"
    t = Target("llvm -device=arm_cpu")
    assert list(t.keys) == ["arm_cpu", "cpu"], list(t.keys)


@program
def libs_and_links():
    t = Target("llvm -libs=cblas,mkl")
    assert list(t.libs) == ["cblas", "mkl"]
    t = Target("c -march=armv7e-m -mcpu=cortex-m4")
    assert t.attrs["march"] == "armv7e-m"
    assert t.mcpu == "cortex-m4"


@program
def target_with_dash_forms():
    a, b = (Target("llvm --mcpu=skylake"), Target("llvm -mcpu=skylake"))
    assert a.mcpu == b.mcpu == "skylake"
    c = Target("llvm --mcpu skylake")
    assert c.mcpu == "skylake"
    t = Target("llvm -mtriple=aarch64-linux-gnu -mattr=+neon")
    assert t.mtriple == "aarch64-linux-gnu"
    assert Target("llvm -num-cores=4").attrs["num-cores"] == 4


@program
def known_targets_in_tests():
    assert tvm.testing.enabled_targets()[0][0]
    assert tvm.testing.device_enabled("llvm")
    assert not tvm.testing.device_enabled("cuda")
    with tvm.target.Target("llvm"):
        pass


@program
def executor_runtime_attrs():
    from tvm.relay.backend import Executor, Runtime
    e = Executor("aot", {"unpacked-api": True, "interface-api": "c"})
    assert e.name == "aot"
    assert e["unpacked-api"] == True
    assert e["interface-api"] == "c"
    r = Runtime("crt", {"system-lib": True})
    assert r.name == "crt"
    assert r["system-lib"] == True
    assert Runtime("crt") == Runtime("crt")
    assert Runtime("crt", {"system-lib": True}) != Runtime("crt", {"system-lib": False})
    assert "graph" in Executor.list_registered()
    assert {"cpp", "crt"} <= set(Runtime.list_registered())
    with refusing((tvm.TVMError, ValueError)):
        Executor("none_such")
    with refusing((tvm.TVMError, ValueError)):
        Runtime("crt", {"w": 1})
    assert "system-lib" in Runtime.list_registered_options("crt")
    assert str(Runtime.list_registered_options("crt")["system-lib"]) in ("IntImm", "runtime.Int")


@program
def layers_helpers():
    from tvm.relay.testing import layers
    d = relay.var("data", shape=(1, 3, 8, 8))
    c = layers.conv2d(d, channels=4, kernel_size=(3, 3), padding=(1, 1), name="c")
    b = layers.batch_norm_infer(c, name="bn")
    o = layers.dense_add_bias(relay.nn.batch_flatten(b), units=3, name="fc")
    f = relay.Function(relay.analysis.free_vars(o), o)
    assert [p.name_hint for p in f.params] == ["data", "c_weight", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "fc_weight", "fc_bias"], [p.name_hint for p in f.params]
    m, p = relay.testing.create_workload(f)
    assert set(p) == {q.name_hint for q in f.params[1:]}
    assert (p["bn_gamma"].numpy() == 1).all()
    assert (p["bn_beta"].numpy() == 0).all()
    assert (p["fc_bias"].numpy() == 0).all()


@program
def init_classes():
    from tvm.relay.testing import init
    x = init.Xavier()
    a = np.zeros((4, 3, 3, 3), "float32")
    x("conv_weight", a)
    assert a.std() > 0
    c = init.Constant(2.0)
    c("weight", a)
    assert (a == 2).all()
    b = np.ones(3, "float32")
    x("fc_bias", b)
    assert (b == 0).all()


@program
def profiling_metrics():
    r = tvm.runtime.profiling.Report([{"Name": "a", "Duration (us)": tvm.runtime.profiling.Duration(3.0), "Percent": tvm.runtime.profiling.Percent(20.0), "Count": tvm.runtime.profiling.Count(2)}], {"cpu0": {"Duration (us)": tvm.runtime.profiling.Duration(3.0)}}, {})
    assert r.calls[0]["Name"] == "a"
    assert r.calls[0]["Count"].value == 2
    assert r.device_metrics["cpu0"]["Duration (us)"].microseconds == 3.0
    j = json.loads(r.json())
    assert j["calls"][0]["Duration (us)"]["microseconds"] == 3.0
    r2 = tvm.runtime.profiling.Report.from_json(r.json())
    assert r2.calls[0]["Percent"].percent == 20.0
    assert "a" in r.table(sort=True, aggregate=True, col_sums=False)


@program
def profiling_ratio():
    assert tvm.runtime.profiling.Ratio(0.5).ratio == 0.5
    assert tvm.runtime.profiling.MetricCollector


@program
def profile_function_of_module():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], "llvm", name="prof")
    rep = tvm.runtime.profiling.profile_function(f, tvm.cpu(), [])(tvm.nd.empty((4,)), tvm.nd.empty((4,)))
    assert isinstance(rep, dict) or hasattr(rep, "keys")
