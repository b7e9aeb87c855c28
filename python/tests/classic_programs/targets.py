# SPDX-License-Identifier: Apache-2.0
"""Targets, devices of values, generic functions, quantised operators and what a code generator is called."""
import pickle

import numpy as np
import tvm
from harness import evaluate, numbers, program, raises, refusing, same
from tvm import relay
from tvm.relay.backend.name_transforms import prefix_generated_name, prefix_name, sanitize_name, to_c_function_style, to_c_variable_style
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.target import Target, VirtualDevice


@program(("llvm", "llvm", "cpu"), ("llvm -mcpu=x86-64", "llvm", "cpu"), ("cuda", "cuda", "gpu"), ("opencl -device=mali", "opencl", "mali"), ("c", "c", "cpu"), ("vulkan", "vulkan", "gpu"),
         ("rocm", "rocm", "gpu"), ("metal", "metal", "gpu"), ("ext_dev", "ext_dev", None), ("llvm -keys=arm_cpu,cpu", "llvm", "arm_cpu"), ("hexagon", "hexagon", "hexagon"))
def kinds(text, kind, key):
    target = Target(text)
    assert target.kind.name == kind and (key is None or key in target.keys) and kind in Target.list_kinds()
    assert Target(str(target)) == target and Target(target.export()) == target and hash(Target(text)) == hash(target) and pickle.loads(pickle.dumps(target)) == target
    with target as inside:
        assert Target.current() == inside == target
    assert Target.current() is None
    hosted = Target(target, "llvm")
    assert hosted.host.kind.name == "llvm" and target.with_host("llvm").host == hosted.host


@program(("nonsense",), ("llvm -no-such=1",), ("",), ({"mcpu": "x"},), ("no/such-tag",), ({"kind": "llvm", "mattr": 3},))
def refused(text):
    raises(ValueError, Target, text)


@program(("nvidia/nvidia-t4", "cuda"), ("nvidia/geforce-rtx-2080-ti", "cuda"), ("raspberry-pi/4b-aarch64", "llvm"), ("aws/cpu/c5.large", "llvm"))
def tags(name, kind):
    assert name in tvm.target.list_tags() and Target(name).kind.name == kind and Target(name).tag == name


@program(("cuda", tvm.target.cuda, "cuda"), ("rocm", tvm.target.rocm, "rocm"), ("mali", tvm.target.mali, "opencl"), ("intel", tvm.target.intel_graphics, "opencl"), ("bifrost", tvm.target.bifrost, "opencl"),
         ("arm", lambda: tvm.target.arm_cpu("rasp3b"), "llvm"), ("riscv", tvm.target.riscv_cpu, "llvm"), ("vta", tvm.target.vta, "ext_dev"), ("hexagon", tvm.target.hexagon, "hexagon"))
def boards(_, make, kind):
    assert make().kind.name == kind


@program
def code_generator():
    assert tvm.target.codegen.llvm_version_major() >= 14 and tvm.target.codegen.llvm_version_major(allow_none=True) >= 14
    assert tvm.runtime.enabled("llvm") and tvm.runtime.enabled("cpu") and not tvm.runtime.enabled("cuda") and Target.from_device("cpu").kind.name == "llvm"
    checked, host = Target.canon_target_and_host("cuda", "llvm")
    assert checked.host == host and host.kind.name == "llvm"
    config = tvm.target.make_compilation_config(None, Target("llvm"), None)
    assert config.primitive_targets[0].kind.name == "llvm" and config.host_target.kind.name == "llvm"


@program
def virtual_devices():
    nothing, gpu = VirtualDevice(), VirtualDevice(tvm.cuda(1))
    assert (nothing.device_type_int, nothing.virtual_device_id, nothing.target, nothing.memory_scope) == (-1, -1, None, "") and (gpu.device_type_int, gpu.virtual_device_id) == (2, 1)
    target = Target("llvm", host="llvm")
    assert VirtualDevice(tvm.cpu(), target, "scope") == VirtualDevice(tvm.cpu(), target, "scope") != VirtualDevice(tvm.cpu()) and VirtualDevice(target=target).device_type_int == 1
    x = relay.var("x", shape=(2,))
    for given in (tvm.cuda(0), "cuda", VirtualDevice(tvm.cuda(0))):
        assert relay.annotation.on_device(x, given).attrs.virtual_device.device_type_int == 2
    copied = relay.op.device_copy(x, tvm.cpu(), tvm.cuda(0)).attrs
    assert (copied.src_virtual_device.device_type_int, copied.dst_virtual_device.device_type_int) == (1, 2)
    raises(ValueError, relay.annotation.on_device, x, [1])


@program((None, 2), ("llvm", 2), ("cuda", 11), ("rocm", 11), ("llvm -keys=arm_cpu,cpu", 3))
def generic_functions(target, value):
    @tvm.target.generic_func
    def plus(x):
        return x + 1

    @plus.register(["gpu"])
    def _(x):
        return x + 10

    @plus.register("arm_cpu")
    def _(x):
        return x + 2

    @tvm.target.override_native_generic_func("test.classic.plus")
    def native(x):
        return x + 1
    native.register("gpu", lambda x: x + 10)
    native.register("arm_cpu", lambda x: x + 2)
    for function in (plus, native, tvm.target.get_native_generic_func("test.classic.plus")):
        if target is None:
            assert function(1) == value
        else:
            with Target(target):
                assert function(1) == value


@program((to_c_function_style, "TVM_Woof", "TVMWoof"), (to_c_function_style, "TVM_woof_moo", "TVMWoofMoo"), (to_c_function_style, "TVMGen_woof", "TVMGenWoof"), (to_c_variable_style, "TVM_Woof", "tvm_woof"),
         (to_c_variable_style, "TVM_woof_Moo", "tvm_woof_moo"), (prefix_name, "Woof", "TVM_Woof"), (prefix_name, ["woof", "moo"], "TVM_woof_moo"), (prefix_generated_name, "Woof", "TVMGen_Woof"),
         (prefix_generated_name, ["woof", "moo"], "TVMGen_woof_moo"), (sanitize_name, "input+", "input_"), (sanitize_name, "woof:1", "woof_1"), (sanitize_name, "plain", "plain"))
def names_in_c(transform, given, made):
    assert transform(given) == made
    raises(tvm.TVMError, transform, "")


SCALE, ZERO = relay.const(0.5), relay.const(1)


@program("int8", "uint8", "int32")
def quantize(dtype):
    x = relay.var("x", shape=(4,))
    values = np.array([0.0, 0.6, 1.2, 20.0], "float32")
    got = evaluate(relay.Function([x], relay.qnn.op.quantize(x, SCALE, ZERO, out_dtype=dtype)), values)
    assert got.dtype == dtype and (got == np.round(values / 0.5).astype(dtype) + np.array(1, dtype)).all()


@program(("int8",), ("uint8",), ("int32",))
def dequantize(dtype):
    values = numbers(5, dtype=dtype)
    x = relay.var("x", shape=(5,), dtype=dtype)
    np.testing.assert_allclose(evaluate(relay.Function([x], relay.qnn.op.dequantize(x, SCALE, ZERO)), values), 0.5 * (values.astype("float32") - 1))


@program(("UPWARD", [-1, 0, 1, 2]), ("TONEAREST", [-2, -1, 1, 2]))
def requantize(rounding, wanted):
    x = relay.var("x", shape=(4,), dtype="int32")
    make = lambda **how: relay.Function([x], relay.qnn.op.requantize(x, SCALE, relay.const(0), relay.const(1.0), relay.const(0), out_dtype="int8", **how))  # noqa: E731
    values = np.array([-3, -1, 1, 3], "int32")
    assert evaluate(make(rounding=rounding), values).tolist() == wanted
    with relay.qnn.op.requantize_config(rounding=rounding):
        mod = relay.qnn.transform.CanonicalizeOps()(tvm.IRModule.from_expr(make()))
    assert evaluate(mod["main"], values).tolist() == wanted


@program(("add", np.add), ("subtract", np.subtract), ("mul", np.multiply))
def quantised_pairs(name, expected):
    a, b = numbers(2, 3, dtype="int8", seed=1), numbers(2, 3, dtype="int8", seed=2)
    x, y = (relay.var(n, shape=(2, 3), dtype="int8") for n in "xy")
    one, zero = relay.const(1.0), relay.const(0)
    got = evaluate(relay.Function([x, y], getattr(relay.qnn.op, name)(x, y, one, zero, one, zero, one, zero)), a, b)
    assert (got == np.clip(expected(a.astype("int32"), b.astype("int32")), -128, 127)).all()


@program(("tanh", np.tanh), ("sqrt", lambda v: np.sqrt(np.maximum(v, 0))), ("negative", np.negative))
def lookup_tables(_, function):
    from tvm.relay.qnn.op.canonicalizations import create_integer_lookup_op, create_integer_lookup_table
    one, zero, small = relay.const(1.0), relay.const(0), relay.const(0.02)
    table = create_integer_lookup_table(function, small, relay.const(3), small, relay.const(2), in_dtype="int8", out_dtype="int8")
    assert table.shape == (256,) and table.dtype == "int8"
    x = relay.var("x", shape=(6,), dtype="int8")
    values = np.array([-128, -7, 0, 3, 50, 127], "int8")
    got = evaluate(relay.Function([x], create_integer_lookup_op(x, function, small, relay.const(3), small, relay.const(2), in_dtype="int8", out_dtype="int8")), values)
    wanted = function(np.float32(0.02) * (values.astype("float32") - 3)) / 0.02
    np.testing.assert_allclose(got.astype("float32"), np.clip(np.round(wanted) + 2, -128, 127), atol=1)


@program("composite -devices=cuda,opencl", {"kind": "composite", "devices": [{"kind": "cuda"}, "opencl"]}, '{"kind": "composite", "devices": ["cuda", {"kind": "opencl"}]}')
def several_devices(text):
    made = tvm.target.Target(text, "llvm")
    assert [d.kind.name for d in made.attrs["devices"]] == ["cuda", "opencl"] and made.host.kind.name == "llvm"
    assert [d.kind.name for d in tvm.target.Target(made.export()).attrs["devices"]] == ["cuda", "opencl"]


@program
def modules_by_target():
    mod = tvm.IRModule()
    made, host = tvm.target.Target.canon_target_map_and_host({"cuda": mod, "llvm -mcpu=core2": mod}, "llvm")
    assert [(t.kind.name, t.host.kind.name) for t in made] == [("cuda", "llvm"), ("llvm", "llvm")] and host.kind.name == "llvm"
    by_device, host = tvm.target.Target.canon_target_map_and_host({2: "cuda"}, "llvm")
    assert by_device[2].kind.name == "cuda" and by_device[2].host == host


@program(5, None, 1.5)
def no_target(value):
    with refusing(ValueError):
        tvm.target.Target(value)


@program
def limits_of_devices():
    assert tvm.target.Target("metal").max_function_args == 31 and tvm.target.Target("cuda -max_num_threads=512").max_block_size_x == 512
    assert tvm.target.Target("cuda -max_shared_memory_per_block=1024").max_shared_memory_per_block == 1024


# Layers of 8-bit integers for the instructions that a target has.
I, F = relay.const(3), relay.const(0.5)


def layer(kind, data, weight):
    if kind == "dense":
        x, w = relay.var("x", shape=(2, 16), dtype=data), relay.var("w", shape=(4, 16), dtype=weight)
        return relay.Function([x, w], relay.qnn.op.dense(x, w, I, I, F, F, units=4))
    x, w = relay.var("x", shape=(1, 8, 6, 6), dtype=data), relay.var("w", shape=(4, 8, 3, 3), dtype=weight)
    return relay.Function([x, w], relay.qnn.op.conv2d(x, w, I, I, F, F, channels=4, kernel_size=(3, 3)))


OLD, DOTPROD = "llvm -mcpu=core2", "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+v8.2a,+dotprod"


@program(*[(k, *c) for k in ("conv2d", "dense") for c in (
    (OLD, "uint8", "int8", "plain"), ("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu", "int8", "int8", "plain"), ("llvm -mcpu=cascadelake", "int8", "int8", "changed"),
    ("llvm -mcpu=skylake-avx512", "uint8", "uint8", "changed"), ("llvm -mcpu=skylake-avx512", "uint8", "int8", "kept"), (DOTPROD, "int8", "int8", "kept"), (DOTPROD, "uint8", "int8", "changed"),
    ("cuda", "int8", "int8", "kept"), ("cuda", "uint8", "int8", "changed"))])
def legal_integers(kind, target, data, weight, form):
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(layer(kind, data, weight)))
    with tvm.target.Target(target):
        out = relay.qnn.transform.Legalize()(mod)
    assert tvm.ir.structural_equal(out, mod) == (form == "kept") and ("qnn." in str(out)) == (form != "plain") and ("cast(" in str(out)) == (form != "kept")
    if form == "kept" or kind == "conv2d" and form == "plain":
        return
    arrays = [numbers(*(int(d) for d in p.type_annotation.shape), dtype=p.type_annotation.dtype) for p in mod["main"].params]
    np.testing.assert_array_equal(evaluate(out["main"], *arrays), evaluate(mod["main"], *arrays))


@program("FTVMQnnLegalize", "FTVMQnnCanonicalize")
def rules_of_quantised_operators(attribute):
    x = relay.var("x", shape=(4,), dtype="int32")
    f = relay.Function([x], relay.qnn.op.requantize(x, F, I, F, I, out_dtype="int8"))
    step = relay.qnn.transform.Legalize() if attribute == "FTVMQnnLegalize" else relay.qnn.transform.CanonicalizeOps()
    with TempOpAttr("qnn.requantize", attribute, lambda attrs, inputs, types: relay.cast(inputs[0] + relay.const(1), attrs["out_dtype"])):
        mod = step(relay.transform.InferType()(tvm.IRModule.from_expr(f)))
        np.testing.assert_array_equal(evaluate(f, np.arange(4, dtype="int32")), [1, 2, 3, 4])
    same(mod["main"], relay.Function([x], relay.cast(x + relay.const(1), "int8")))


@program
def nothing_to_calibrate():
    """The only convolution is skipped: no threshold is looked for."""
    x, w = relay.var("data", shape=(1, 4, 6, 6)), relay.const(numbers(4, 4, 3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4)))
    with relay.quantize.qconfig(calibrate_mode="kl_divergence", weight_scale="max"):
        out = relay.quantize.quantize(mod, {}, dataset=[{"data": numbers(1, 4, 6, 6)}])
    assert "int8" not in str(out)


# Objects and passes.
@program
def every_object():
    x, n = relay.var("x", shape=(2,)), tvm.te.var("n")
    objects = (x, relay.exp(x), relay.const(1), x.type_annotation, relay.TypeVar("t"), relay.op.get("add"), tvm.IRModule(), n, n + 1, tvm.tir.const(1), tvm.te.placeholder((n,)), tvm.ir.Range(0, 3),
               tvm.target.Target("llvm"), tvm.transform.PassContext(), relay.transform.FoldConstant(), tvm.runtime.convert([1]), tvm.runtime.convert({"a": 1}), relay.backend.Executor("graph"))
    for o in objects:
        assert isinstance(o, tvm.Object) and isinstance(o, tvm.runtime.Object), type(o)
    for o in (1, "text", [x], None, tvm.nd.array(np.ones(2)), tvm.cpu(), tvm.get_global_func("runtime.ModuleGetSource", True)):
        assert not isinstance(o, tvm.Object), type(o)


@program
def passes_say_their_kind():
    @relay.transform.function_pass(opt_level=1)
    def of_functions(func, mod, ctx):
        return func

    @tvm.transform.module_pass(opt_level=2)
    def of_modules(mod, ctx):
        return mod
    assert str(of_functions) == "Run Function pass: of_functions at the optimization level 1" and str(of_modules).startswith("Run Module pass: of_modules")
    inner = tvm.transform.Sequential([of_functions], name="inner")
    with tvm.transform.PassContext(disabled_pass=["of_functions"]):
        tvm.transform.Sequential([inner, of_modules])(tvm.IRModule())
