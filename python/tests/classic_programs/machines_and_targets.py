# SPDX-License-Identifier: Apache-2.0
"""Virtual machines, executables, explicit memory, ahead-of-time executors, targets and their options."""
import json

import numpy as np
import tvm
from harness import numbers, program, refusing, same
from tvm import relay, runtime
from tvm.contrib import utils
from tvm.relay import transform, vm as _vm
from tvm.relay.prelude import Prelude
from tvm.relay.scope_builder import ScopeBuilder
from tvm.runtime import vm as vm_rt
from tvm.target import Target


def machine(mod, target="llvm", params=None):
    mod = mod if isinstance(mod, tvm.IRModule) else tvm.IRModule.from_expr(mod)
    exe = _vm.compile(mod, target=target, params=params)
    return vm_rt.VirtualMachine(exe, tvm.cpu())


def run(mod, *args):
    return machine(mod).run(*args)


# ---- machines
@program
def ifs_and_lets():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    for body, want in ((relay.If(relay.op.min(x) < relay.op.max(y), relay.const(1), relay.const(2)), 1), (relay.Let(relay.var("z"), x + y, relay.const(4)), 4)):
        got = run(relay.Function([x, y], body), np.array([1, 2, 3], "float32"), np.array([4, 5, 6], "float32"))
        assert int(got.numpy()) == want


@program
def counted_loops():
    mod = tvm.IRModule({})
    loop = relay.GlobalVar("count")
    i, acc = relay.var("i", shape=[], dtype="int32"), relay.var("acc", shape=[], dtype="int32")
    sb = ScopeBuilder()
    with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
        sb.ret(acc)
    with sb.else_scope():
        sb.ret(relay.Call(loop, [relay.subtract(i, relay.const(1, "int32")), relay.add(acc, i)]))
    mod[loop] = relay.Function([i, acc], sb.get(), relay.TensorType([], "int32"))
    n, a = relay.var("n", shape=[], dtype="int32"), relay.var("a", shape=[], dtype="int32")
    mod["main"] = relay.Function([n, a], loop(n, a))
    assert int(run(mod, np.int32(20), np.int32(0)).numpy()) == 210


@program
def tuples_of_results():
    x = relay.var("x", shape=(2, 3))
    out = run(relay.Function([x], relay.Tuple([x + x, relay.Tuple([x, relay.nn.relu(x)])])), numbers(2, 3))
    assert len(out) == 2 and len(out[1]) == 2
    np.testing.assert_allclose(out[0].numpy(), 2 * numbers(2, 3), rtol=1e-6)
    np.testing.assert_allclose(out[1][1].numpy(), np.maximum(numbers(2, 3), 0))


@program
def several_functions_of_one_machine():
    mod = tvm.parser.parse("""#[version = "0.0.5"]
def @double(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { %x + %x }
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { @double(@double(%x)) }""")
    m = machine(mod)
    np.testing.assert_array_equal(m.invoke("main", np.ones(2, "float32")).numpy(), [4, 4])
    with refusing((ValueError, tvm.TVMError)):
        m.invoke("nothing", np.ones(2, "float32"))


@program
def inputs_set_beforehand():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    m = machine(relay.Function([x, y], x - y))
    m.set_input("main", np.array([3, 4], "float32"), np.array([1, 1], "float32"))
    np.testing.assert_array_equal(m.invoke("main").numpy(), [2, 3])
    m.set_input("main", y=np.array([2, 2], "float32"), x=np.array([3, 4], "float32"))
    np.testing.assert_array_equal(m.run().numpy(), [1, 2])
    m.set_one_input("main", "x", np.array([9, 9], "float32"))
    m.set_one_input("main", 1, np.array([1, 2], "float32"))
    np.testing.assert_array_equal(m.run().numpy(), [8, 7])
    m.invoke_stateful("main")
    outs = m.get_outputs()
    np.testing.assert_array_equal(outs[0].numpy(), [8, 7])
    np.testing.assert_array_equal(m.get_input_index("y"), 1)


@program
def executables_tell_what_they_hold():
    x = relay.var("x", shape=(10, 10))
    f = relay.Function([x], x + relay.const(np.ones((10, 10), "float32")))
    exe = _vm.compile(tvm.IRModule.from_expr(f), "llvm")
    stats, code = exe.stats, exe.bytecode
    assert "Relay VM executable statistics" in stats and "Constant shapes (# " in stats
    assert 'Globals (#1): [("main", 0)]' in stats
    assert "VM Function[0]: main(x)" in code and "InvokePacked" in code and "Ret" in code and exe.globals == ["main"] and exe.get_function_params("main") == ["x"]


@program
def executables_saved_and_loaded():
    x, w = relay.var("x", shape=(4, 4)), relay.var("w", shape=(4, 4))
    exe = _vm.compile(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w))), "llvm", params={"w": tvm.nd.array(numbers(4, 4))})
    code, lib = exe.save()
    assert isinstance(code, bytearray)
    folder = utils.tempdir()
    lib.export_library(folder.relpath("lib.so"))
    with open(folder.relpath("code.ro"), "wb") as f:
        f.write(code)
    loaded = vm_rt.Executable.load_exec(bytearray(open(folder.relpath("code.ro"), "rb").read()), tvm.runtime.load_module(folder.relpath("lib.so")))
    got = vm_rt.VirtualMachine(loaded, tvm.cpu()).run(numbers(4, 4))
    np.testing.assert_allclose(got.numpy(), numbers(4, 4) @ numbers(4, 4).T, rtol=1e-4, atol=1e-5)
    exe.mod.export_library(folder.relpath("whole.so"))
    whole = tvm.runtime.load_module(folder.relpath("whole.so"))
    np.testing.assert_allclose(vm_rt.VirtualMachine(whole, tvm.cpu()).run(numbers(4, 4)).numpy(), got.numpy())


@program
def executables_of_memory_kinds():
    x = relay.var("x", shape=(2,))
    exe = _vm.compile(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm")
    for memory in ("naive", "pooled", {tvm.cpu(): "naive"}, None):
        m = vm_rt.VirtualMachine(exe, tvm.cpu(), memory)
        assert m.run(np.ones(2, "float32")).numpy().sum() == 4
    with refusing((TypeError, ValueError)):
        vm_rt.VirtualMachine(exe, tvm.cpu(), 1.5)
    with refusing((TypeError, ValueError)):
        vm_rt.VirtualMachine("exe", tvm.cpu())


@program
def weights_aside():
    x = relay.var("x", shape=(8, 8))
    data = numbers(8, 8)
    exe = _vm.compile(tvm.IRModule.from_expr(relay.Function([x], x * relay.const(data))), "llvm")
    folder = utils.tempdir()
    exe.move_late_bound_consts(folder.relpath("consts"), 64)
    exe.mod.export_library(folder.relpath("lib.so"))
    whole = vm_rt.Executable(tvm.runtime.load_module(folder.relpath("lib.so")))
    whole.load_late_bound_consts(folder.relpath("consts"))
    got = vm_rt.VirtualMachine(whole, tvm.cpu()).run(data)
    np.testing.assert_allclose(got.numpy(), data * data, rtol=1e-6)


@program
def prelude_on_machines():
    mod = tvm.IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    one, three = cons(relay.const(1), nil()), cons(relay.const(1), cons(relay.const(2), cons(relay.const(3), nil())))
    add = relay.Function([a := relay.var("a", "int32"), b := relay.var("b", "int32")], a + b)
    mod["main"] = relay.Function([], p.foldl(add, relay.const(0), three))
    assert int(run(mod).numpy()) == 6 and l.name_hint == "List" and one is not None
    mod = tvm.IRModule()
    p = Prelude(mod)
    l, cons, nil = mod.get_type("List")
    mod["main"] = relay.Function([], p.length(cons(relay.const(1), cons(relay.const(2), nil()))))
    assert int(run(mod).numpy()) == 2


@program
def closures_called_later():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    inner = relay.Function([y], x + y)
    outer = relay.Function([x], inner)
    mod = tvm.IRModule({})
    mod["main"] = relay.Function([], relay.Call(relay.Call(outer, [relay.const(1.0)]), [relay.const(2.0)]))
    assert float(run(mod).numpy()) == 3


@program
def passes_of_the_compiler():
    x = relay.var("x", shape=(2, 2))
    compiler = _vm.VMCompiler()
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    optimised, params = compiler.optimize(mod, target="llvm", params={})
    assert "main" in str(optimised) and params is not None
    compiler.lower(mod, "llvm")
    compiler.codegen()
    exe = compiler.get_exec()
    assert vm_rt.VirtualMachine(exe, tvm.cpu()).run(-np.ones((2, 2), "float32")).numpy().sum() == 0


@program
def arguments_that_do_not_fit_a_machine():
    x = relay.var("x", shape=(2,))
    m = machine(relay.Function([x], x + x))
    for args in ((), (np.ones(2, "float32"), np.ones(2, "float32"))):
        with refusing(Exception):
            m.run(*args)
    with refusing(Exception):
        m.run(y=np.ones(2, "float32"))


@program
def benchmarked_machines():
    x = relay.var("x", shape=(2,))
    m = machine(relay.Function([x], x + x))
    r = m.benchmark(tvm.cpu(), np.ones(2, "float32"), func_name="main", repeat=2, number=1)
    assert len(r.results) == 2 and r.mean >= 0
    r = m.benchmark(tvm.cpu(), np.ones(2, "float32"), func_name="main", repeat=2, number=1, end_to_end=True)
    assert r.max >= r.min


@program
def sizes_of_a_run():
    x = relay.var("x", shape=(relay.Any(), 3))
    m = machine(relay.Function([x], relay.Tuple([relay.concatenate([x, x], 0), relay.shape_of(x)])))
    for n in (1, 4):
        out = m.run(numbers(n, 3))
        assert out[0].shape == (2 * n, 3) and [int(v) for v in out[1].numpy()] == [n, 3]


# ---- explicit memory
@program
def storage_in_calls():
    sto = relay.Var("x", relay.TypeCall(relay.GlobalTypeVar("Storage"), []))
    call = relay.op.memory.alloc_tensor(sto, relay.const(0, "int64"), relay.const(np.array([2, 3]), "int64"))
    assert call.op.name == "memory.alloc_tensor" and call.attrs.dtype == "float32"
    s = relay.op.memory.alloc_storage(relay.const(24, "int64"), relay.const(64, "int64"), tvm.target.VirtualDevice(tvm.cpu()), "float32")
    assert s.op.name == "memory.alloc_storage"


@program
def memory_is_made_explicit():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    mod = transform.InferType()(mod)
    optimised, _ = _vm.VMCompiler().optimize(mod, "llvm")
    text = str(optimised)
    assert "main" in text


# ---- ahead of time
@program
def aot_by_default():
    x = relay.var("x", shape=(3, 2))
    f = relay.Function([x], x * relay.const(2.0))
    lib = relay.build(f, "llvm", executor=relay.backend.Executor("aot"))
    m = runtime.executor.AotModule(lib["default"](tvm.cpu()))
    m.set_input("x", numbers(3, 2))
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), 2 * numbers(3, 2), rtol=1e-6)
    assert m.get_num_inputs() == 1 and m.get_num_outputs() == 1


@program
def aot_executor():
    x, y = relay.var("x", shape=(1, 2)), relay.var("y", shape=(1, 2))
    run_ = relay.create_executor("aot", mod=tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple([x + y, x - y]))), device=tvm.cpu(), target="llvm").evaluate()
    out = run_(np.ones((1, 2), "float32"), np.ones((1, 2), "float32"))
    assert out[0].numpy().sum() == 4 and out[1].numpy().sum() == 0


@program
def options_that_exclude_each_other():
    x = relay.var("x", shape=(1,))
    f = tvm.IRModule.from_expr(relay.Function([x], x))
    for options in ({"interface-api": "c"}, {"unpacked-api": True}):
        with refusing((ValueError, tvm.TVMError)):
            relay.build(f, "llvm", executor=relay.backend.Executor("aot", options), runtime=relay.backend.Runtime("cpp"))


# ---- targets
@program
def targets_from_dictionaries():
    t = Target({"kind": "llvm", "keys": ["cpu", "special"], "mcpu": "core-avx2", "mattr": ["+avx2", "+fma"], "device": "tag"})
    assert t.kind.name == "llvm" and "special" in list(t.keys) and t.mcpu == "core-avx2" and list(t.mattr) == ["+avx2", "+fma"]
    assert t.attrs["mcpu"] == "core-avx2" and t.device_name == "tag"
    t = Target({"kind": "cuda", "tag": "nvidia/none", "keys": ["cuda", "gpu"], "max_num_threads": 512, "host": {"kind": "llvm"}})
    assert t.max_num_threads == 512 and t.host.kind.name == "llvm"


@program
def hosts():
    t = Target("cuda", host="llvm -mcpu=core-avx2")
    assert t.host.kind.name == "llvm" and t.host.mcpu == "core-avx2"
    plain, host = Target.canon_target_and_host("cuda", "llvm")
    assert plain.kind.name == "cuda" and host.kind.name == "llvm"
    assert Target("llvm").host is None
    t = Target(Target("cuda"), Target("llvm"))
    assert t.host == Target("llvm")
    with refusing(ValueError):
        Target("cuda", "llvm") and Target({"kind": "cuda", "host": {"kind": "no_kind"}})


@program
def targets_in_scope():
    assert Target.current(allow_none=True) is None
    with Target("llvm"):
        with Target("cuda"):
            assert Target.current().kind.name == "cuda"
        assert Target.current().kind.name == "llvm"
    with refusing(ValueError):
        Target.current(allow_none=False)


@program
def equal_targets():
    assert Target("llvm -mcpu=a") == Target("llvm -mcpu=a") and Target("llvm") != Target("llvm -mcpu=a")
    assert {Target("llvm"): 1}[Target("llvm")] == 1 and hash(Target("llvm")) == hash(Target("llvm"))
    assert tvm.ir.structural_equal(Target("llvm"), Target("llvm"))
    tvm.ir.assert_structural_equal(Target("llvm -mcpu=a"), Target("llvm -mcpu=a"))


@program("llvm -keys=cpu,x -mcpu=skylake", "c -mcpu=cortex-m4 -model=nrf", "cuda -arch=sm_80 -max_num_threads=1024", "opencl -device=mali", "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+v8.2a", "stackvm", "hexagon -mcpu=v68", "ext_dev", "hybrid", "llvm -libs=cblas,mkl", "metal", "vulkan", "rocm")
def there_and_back(text):
    t = Target(text)
    again = Target(str(t))
    assert again == t and Target(t.export()) == t
    assert t.kind.name == text.split()[0] and tvm.ir.load_json(tvm.ir.save_json(t)) == t


@program("llvm -no_such_option=1", "no_such_kind", '{"kind": "llvm", "mcpu": 3}', "-mcpu=x", "llvm -mattr=[1", "")
def targets_that_are_refused(text):
    with refusing((ValueError, tvm.TVMError, TypeError)):
        Target(json.loads(text) if text.startswith("{") else text)


@program
def options_of_a_kind():
    t = Target("llvm -mcpu=core-avx2 -libs=cblas")
    assert list(t.libs) == ["cblas"] and t.model == "unknown" and t.mcpu == "core-avx2"
    assert Target("cuda").max_num_threads == 1024 and Target("cuda").thread_warp_size == 32
    assert t.attrs.get("nothing") is None and "mcpu" in t.attrs


@program
def helpers_of_targets():
    assert tvm.target.arm_cpu("rasp3b").attrs["mtriple"] and tvm.target.intel_graphics().kind.name == "opencl" and tvm.target.mali().kind.name == "opencl"
    assert tvm.target.rasp() == tvm.target.arm_cpu("rasp3b") and tvm.target.vta()
    assert tvm.target.hexagon("v66").kind.name == "hexagon"
    assert tvm.target.cuda(arch="sm_80").arch == "sm_80" and tvm.target.cuda(model="1080ti").model == "1080ti"
    assert tvm.target.bifrost().kind.name == "opencl" and tvm.target.riscv_cpu("sifive-u54").kind.name == "llvm"
    assert tvm.target.create("llvm").kind.name == "llvm"
    assert tvm.target.micro("host").kind.name == "c"


@program
def features_and_keys():
    t = Target("llvm -keys=arm_cpu,cpu")
    assert list(t.keys)[:2] == ["arm_cpu", "cpu"]
    assert "gpu" in list(Target("cuda").keys) and "cpu" in list(Target("llvm").keys)
    assert Target("opencl -device=mali").device_name == "mali" and "mali" in list(Target("opencl -device=mali").keys)


@program
def several_targets():
    raw = Target.canon_multi_target_and_host({tvm.tir.IntImm("int32", 1): Target("llvm")}, None)
    assert len(raw) == 1 and raw[0].kind.name == "llvm"
    raw = Target.canon_multi_target_and_host([Target("cuda"), Target("llvm")], "llvm")
    assert [t.kind.name for t in raw] == ["cuda", "llvm"] and raw[0].host.kind.name == "llvm"


@program
def virtual_devices():
    V = tvm.target.VirtualDevice
    place = V(tvm.device("cuda"))
    assert place.device_type == 2 and place.virtual_device_id == 0 and place.target is None and place.memory_scope == ""
    place = V(tvm.device("cuda", 3), Target("cuda"), "shared")
    assert place.virtual_device_id == 3 and place.target.kind.name == "cuda" and place.memory_scope == "shared"
    assert V(tvm.cpu()) == V(tvm.cpu()) and V(tvm.cpu()) != V(tvm.cpu(1))
    tvm.ir.assert_structural_equal(V(tvm.cpu()), V(tvm.cpu()))


@program
def configurations_of_compilation():
    config = tvm.target.make_compilation_config(tvm.transform.PassContext.current(), [Target("cuda", "llvm")])
    assert config.host_target.kind.name == "llvm" and config.optional_homogeneous_target.kind.name == "cuda"
    config = tvm.target.make_compilation_config(tvm.transform.PassContext(config={"relay.fallback_device_type": 2}), [Target("llvm"), Target("cuda")], Target("llvm"))
    assert config.default_primitive_virtual_device.device_type == 2


@program
def contexts():
    with tvm.transform.PassContext(opt_level=3, required_pass=["FastMath"], disabled_pass=["FoldConstant"], config={"relay.FuseOps.max_depth": 1}) as c:
        now = tvm.transform.PassContext.current()
        assert now.opt_level == 3 and "FastMath" in list(now.required_pass) and "FoldConstant" in list(now.disabled_pass) and int(now.config["relay.FuseOps.max_depth"]) == 1 and c is not None
    assert tvm.transform.PassContext.current().opt_level == 2
    with refusing((tvm.TVMError, AttributeError, ValueError)):
        tvm.transform.PassContext(config={"no.such.key": 1})
    with refusing((tvm.TVMError, AttributeError, ValueError, TypeError)):
        tvm.transform.PassContext(config={"relay.FuseOps.max_depth": "one"})
    assert "relay.FuseOps.max_depth" in tvm.transform.PassContext.list_configs()


@program
def sequences_of_passes():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x) + (relay.const(1.0) + relay.const(2.0))))
    seq = tvm.transform.Sequential([transform.InferType(), transform.FoldConstant(), transform.FuseOps()], opt_level=1, name="mine")
    assert seq.info.name == "mine" and seq.info.opt_level == 1 and len(seq.passes) == 3
    out = seq(mod)
    assert "Primitive=1" in str(out) and "3f" in str(out)
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
        out = seq(mod)
    assert "3f" not in str(out)


@program
def own_passes():
    @transform.function_pass(opt_level=1)
    class Replace:
        def __init__(self, new):
            self.new = new

        def transform_function(self, func, mod, ctx):
            return self.new
    x = relay.var("x", shape=(10, 10))
    new = relay.Function([x], relay.log(x))
    p = Replace(new)
    assert p.info.name == "Replace" and p.info.opt_level == 1 and isinstance(p, transform.FunctionPass)
    out = p(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    same(out["main"], transform.InferType()(tvm.IRModule.from_expr(new))["main"])

    @tvm.transform.module_pass(opt_level=2, name="mod", required=["InferType"])
    def change(m, ctx):
        assert ctx.opt_level >= 0
        return m
    assert isinstance(change, tvm.transform.ModulePass) and change.info.required == ["InferType"]
    assert change(out) is not None
    with refusing((TypeError, ValueError, tvm.TVMError)):
        transform.function_pass("x", opt_level=1)


@program
def kinds_of_devices():
    assert tvm.cpu().exist
    assert tvm.cpu(0).device_type == 1 and tvm.cuda(1).device_type == 2 and tvm.opencl().device_type == 4 and tvm.vulkan().device_type == 7 and tvm.metal().device_type == 8
    assert str(tvm.cpu(1)) == "cpu(1)" and str(tvm.cuda(0)) == "cuda(0)" and tvm.runtime.Device.MASK2STR[2] == "cuda"
