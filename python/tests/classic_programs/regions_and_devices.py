# SPDX-License-Identifier: Apache-2.0
"""Layouts, devices, compilers' regions, and the passes that write memory out."""
import numpy as np
import tvm
import tvm.testing
from tvm import relay, tir
from tvm.relay import transform, annotation
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.script import tir as T

from harness import program, numbers, evaluate


def alike(got, want):
    assert tvm.ir.structural_equal(got, want), f"Actual:\n{got}\nExpected:\n{want}"


# ---- layouts
@program
def convolution_layout_with_kernel():
    def before():
        x, weight = relay.var("x", shape=(1, 64, 56, 56)), relay.var("weight", shape=(64, 64, 3, 3))
        y = relay.nn.relu(relay.nn.conv2d(x, weight, channels=64, kernel_size=(3, 3), padding=(1, 1)))
        return relay.Function([x, weight], y)

    def expected():
        x, weight = relay.var("x", shape=(1, 64, 56, 56)), relay.var("weight", shape=(64, 64, 3, 3))
        y = relay.nn.conv2d(relay.layout_transform(x, "NCHW", "NHWC"), relay.layout_transform(weight, "OIHW", "HWIO"), channels=64, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
        return relay.Function([x, weight], relay.layout_transform(relay.nn.relu(y), "NHWC", "NCHW"))
    alike(run_opt_pass(before(), transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})), run_opt_pass(expected(), transform.InferType()))


@program
def layout_goes_through_bias_pool_and_sum():
    x, w, b = relay.var("x", shape=(1, 8, 8, 4)), relay.var("w", shape=(3, 3, 4, 8)), relay.var("b", shape=(8,))
    y = relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")
    y = relay.nn.max_pool2d(relay.nn.relu(relay.nn.bias_add(y, b, axis=3)), pool_size=(2, 2), strides=(2, 2), layout="NHWC")
    f = relay.Function([x, w, b], relay.sum(y, axis=(1, 2), keepdims=True))
    out = run_opt_pass(f, transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]}))
    x2 = relay.layout_transform(x, "NHWC", "NCHW")
    y = relay.nn.conv2d(x2, relay.layout_transform(w, "HWIO", "OIHW"), channels=8, kernel_size=(3, 3), padding=(1, 1))
    bias = relay.layout_transform(relay.expand_dims(b, axis=0, num_newaxis=3), "NHWC", "NCHW")
    y = relay.nn.max_pool2d(relay.nn.relu(relay.add(y, bias)), pool_size=(2, 2), strides=(2, 2))
    text = out.astext()
    assert 'layout="NHWC"' not in text.replace('src_layout="NHWC"', "").replace('dst_layout="NHWC"', "") and out.ret_type == relay.TensorType((1, 1, 1, 8)) and bias is not None


@program
def no_operator_converts_nothing_changes():
    x, w = relay.var("x", shape=(1, 64, 56, 56)), relay.var("w", shape=(64, 64, 3, 3))
    f = run_infer_type(relay.Function([x, w], relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))))
    alike(run_opt_pass(f, transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]})), f)
    alike(run_opt_pass(f, transform.ConvertLayout({})), f)


@program
def layout_config_skips_the_first():
    x, w1, w2 = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w1", shape=(4, 4, 3, 3)), relay.var("w2", shape=(4, 4, 3, 3))
    y = relay.nn.conv2d(x, w1, channels=4, kernel_size=(3, 3), padding=(1, 1))
    f = relay.Function([x, w1, w2], relay.nn.conv2d(y, w2, channels=4, kernel_size=(3, 3), padding=(1, 1)))
    config = relay.transform.LayoutConfig(skip_layers=[0])
    with config:
        out = run_opt_pass(f, transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))
    text = out.astext()
    assert text.count('data_layout="NHWC"') == 1 and text.index("nn.conv2d") < text.index('data_layout="NHWC"')


@program
def alter_op_with_an_own_rule():
    x, w = relay.var("x", shape=(1, 64, 56, 56)), relay.var("weight", shape=(64, 64, 3, 3))
    f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))))

    def alter_conv2d(attrs, inputs, tinfos, out_type):
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0, "float32")), **attrs)
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter_conv2d):
        out = run_opt_pass(f, transform.AlterOpLayout())
    y = relay.nn.relu(relay.nn.conv2d(x, relay.multiply(w, relay.const(2.0, "float32")), channels=64, kernel_size=(3, 3), padding=(1, 1)))
    alike(out, run_opt_pass(relay.Function([x, w], y), transform.InferType()))


@program
def alter_to_blocks_and_back():
    x, w = relay.var("x", shape=(1, 64, 56, 56)), relay.var("weight", shape=(64, 64, 3, 3))
    f = relay.Function([x, w], relay.nn.avg_pool2d(relay.nn.relu(relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1)))))

    def alter_conv2d(attrs, inputs, tinfos, out_type):
        new_attrs = dict(attrs)
        new_attrs["data_layout"] = "NCHW16c"
        return relay.nn.conv2d(*inputs, **new_attrs)
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter_conv2d):
        out = run_opt_pass(run_opt_pass(f, transform.CanonicalizeOps()), transform.AlterOpLayout())
    y = relay.nn.conv2d(relay.layout_transform(x, "NCHW", "NCHW16c"), w, channels=64, kernel_size=(3, 3), padding=(1, 1), data_layout="NCHW16c")
    y = relay.layout_transform(relay.nn.avg_pool2d(relay.nn.relu(y), layout="NCHW16c"), "NCHW16c", "NCHW")
    alike(out, run_opt_pass(relay.Function([x, w], y), transform.InferType()))


@program
def legalize_by_a_rule_and_its_absence():
    x, w = relay.var("x", shape=(1, 8, 4, 4)), relay.var("w", shape=(8, 8, 3, 3))
    f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3), padding=(1, 1))))

    def legalize_conv2d(attrs, inputs, types):
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0, "float32")), **attrs)
    with TempOpAttr("nn.conv2d", "FTVMLegalize", legalize_conv2d):
        out = run_opt_pass(f, transform.Legalize())
    assert "multiply" in out.astext()
    with TempOpAttr("nn.conv2d", "FTVMUnitLegalize", lambda attrs, inputs, types: None):
        alike(run_opt_pass(f, transform.Legalize("FTVMUnitLegalize")), run_infer_type(f))


# ---- devices
CPU, GPU = tvm.device("cpu"), tvm.device("cuda")


@program
def on_device_by_default_and_fixed():
    x = relay.Var("x")
    call = relay.annotation.on_device(x, "cuda")
    assert isinstance(call, relay.Call) and len(call.args) == 1 and call.args[0] == x
    assert call.attrs.virtual_device.device_type_int == 2 and call.attrs.virtual_device.virtual_device_id == 0 and call.attrs.virtual_device.target is None
    assert call.attrs.virtual_device.memory_scope == "" and call.attrs.constrain_body and not call.attrs.constrain_result
    fixed = relay.annotation.on_device(x, tvm.device("cuda", 1), constrain_result=True)
    assert fixed.attrs.constrain_result
    free = relay.annotation.on_device(x, "cuda", constrain_result=False, constrain_body=False)
    assert free.attrs.virtual_device.device_type_int == -1 and not free.attrs.constrain_body


@program
def plan_devices_of_two_annotated_sums():
    HOST, C, G = tvm.target.VirtualDevice(CPU, tvm.target.Target("llvm")), tvm.target.VirtualDevice(CPU, tvm.target.Target("llvm")), tvm.target.VirtualDevice(tvm.device("cuda"), tvm.target.Target("cuda"))
    config = tvm.target.make_compilation_config(tvm.transform.PassContext(config={"relay.fallback_device_type": CPU.device_type}), [tvm.target.Target("llvm"), tvm.target.Target("cuda")])
    meta = {"VirtualDevice": [C, G]}
    mod = tvm.parser.parse("""#[version = "0.0.5"]
        def @main(%a: Tensor[(5, 7), float32], %b: Tensor[(5, 7), float32], %c: Tensor[(5, 7), float32], %d: Tensor[(5, 7), float32]) {
          %0 = add(%a, %b);
          %1 = on_device(%0, virtual_device=meta[VirtualDevice][0]);
          %2 = add(%c, %d);
          %3 = on_device(%2, virtual_device=meta[VirtualDevice][0]);
          subtract(%1, %3)
        }""", "from_string", None, {"VirtualDevice": [G, C]})
    with tvm.transform.PassContext(config={"relay.fallback_device_type": CPU.device_type}):
        out = transform.PlanDevices(config)(transform.InferType()(mod))
    text = out.astext()
    assert "device_copy" in text and "param_virtual_devices" in text or "virtual_device=" in text
    assert HOST is not None and meta


@program
def virtual_devices_are_values():
    V = tvm.target.VirtualDevice
    a, b = V(tvm.device("cuda", 3), tvm.target.Target("cuda"), "local"), V(tvm.device("cuda", 3), tvm.target.Target("cuda"), "local")
    assert a == b or tvm.ir.structural_equal(a, b)
    assert V().device_type_int == -1 and V().virtual_device_id == -1 and V().memory_scope == "" and "VirtualDevice" in str(a)


@program
def annotation_of_a_whole_graph_runs():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = relay.Function([x, y], relay.annotation.on_device(relay.add(x, y), tvm.cpu()) * relay.const(2.0))
    out = relay.create_executor("vm", mod=tvm.IRModule.from_expr(f), device=tvm.cpu(), target="llvm").evaluate()(numbers(2), numbers(2))
    np.testing.assert_allclose(out.numpy(), numbers(2) * 4, rtol=1e-6)


# ---- regions
def compiler_begin(x, name):
    return relay.annotation.compiler_begin(x, name)


def compiler_end(x, name):
    return relay.annotation.compiler_end(x, name)


@program
def annotate_target_from_operators():
    @tvm.ir.register_op_attr("tanh", "target.unit14")
    def tanh(expr):
        return True
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.exp(relay.tanh(x) + y)))
    out = transform.AnnotateTarget("unit14")(mod)
    b = compiler_end(relay.tanh(compiler_begin(x, "unit14")), "unit14")
    d = lambda e: compiler_begin(e, "default")
    want = compiler_end(relay.exp(d(compiler_end(d(b) + d(y), "default"))), "default")
    alike(transform.InferType()(out), transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], want))))
    plain = transform.AnnotateTarget("unit14", False)(mod)
    assert plain.astext().count('compiler="unit14"') == 2


@program
def merge_regions_of_one_compiler():
    data = relay.var("data", shape=(10, 10))
    o1 = compiler_end(relay.add(compiler_begin(data, "t"), compiler_begin(data, "t")), "t")
    o2 = compiler_end(relay.nn.relu(compiler_begin(o1, "t")), "t")
    mod = transform.MergeCompilerRegions()(tvm.IRModule.from_expr(relay.Function([data], o2)))
    text = mod.astext()
    assert text.count("compiler_begin") == 2 and text.count("compiler_end") == 1


@program
def partition_a_region_by_name():
    x, y = relay.var("x", shape=(8, 8)), relay.var("y", shape=(8, 8))
    out = compiler_end(relay.add(compiler_begin(x, "ccompiler"), compiler_begin(y, "ccompiler")), "ccompiler")
    mod = transform.PartitionGraph(mod_name="net")(tvm.IRModule.from_expr(relay.Function([x, y], relay.exp(out))))
    names = sorted(v.name_hint for v in mod.get_global_vars())
    assert len(names) == 2 and "main" in names
    f = mod[[n for n in names if n != "main"][0]]
    assert f.attrs["Compiler"] == "ccompiler" and f.attrs["Primitive"] == 1 and f.attrs["Inline"] == 1 and f.attrs["global_symbol"].startswith("tvmgen_net_ccompiler_main_0")
    assert str(f.params[0].name_hint).endswith("_i0")


@program
def inline_compiler_functions_back():
    x, y = relay.var("x", shape=(8, 8)), relay.var("y", shape=(8, 8))
    out = compiler_end(relay.add(compiler_begin(x, "cc14"), compiler_begin(y, "cc14")), "cc14")
    f = relay.Function([x, y], relay.exp(out))
    mod = transform.PartitionGraph()(tvm.IRModule.from_expr(f))
    kept = transform.InferType()(mod)
    inlined = relay.transform.InlineCompilerFunctionsBoundTo([v for v in kept.get_global_vars() if v.name_hint != "main"])(kept)
    assert len(inlined.get_global_vars()) == 1
    outlined = relay.transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("cc14")
    assert outlined is not None and relay.transform.MarkCompilerFunctionsAsExtern("cc14") is not None


@program
def composite_functions_keep_their_names():
    from tvm.relay.dataflow_pattern import is_op, wildcard
    x, y = relay.var("x", shape=(2, 2)), relay.var("y", shape=(2, 2))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.nn.relu(relay.add(x, y))))
    mod = transform.MergeComposite([("unit15.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))])(mod)
    mod = transform.PartitionGraph()(transform.MergeCompilerRegions()(transform.AnnotateTarget("unit15")(mod)))
    part = mod["tvmgen_default_unit15_main_0"]
    inner = part.body.op
    assert inner.attrs["Composite"] == "unit15.add_relu" and inner.attrs["PartitionedFromPattern"] == "add_nn.relu_"


@program
def defuse_is_the_inverse_of_fuse():
    x = relay.var("x", shape=(1, 4, 6, 6))
    w = relay.var("w", shape=(4, 4, 3, 3))
    f = run_opt_pass(relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3), channels=4)) + relay.const(1.0)), transform.InferType())
    fused = run_opt_pass(f, transform.FuseOps(2))
    assert "Primitive" in fused.astext()
    alike(run_opt_pass(fused, transform.DefuseOps()), f)


# ---- memory
@program
def shapes_and_memory_written_out():
    from tvm.relay.backend import te_compiler
    x = relay.var("x", shape=(10,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + x))
    target = tvm.target.Target("llvm")
    mod = transform.InferType()(mod)
    config = tvm.target.make_compilation_config(tvm.transform.PassContext.current(), target)
    for p in (transform.FuseOps(0), transform.ToANormalForm(), transform.InferType(), transform.PlanDevices(config)):
        mod = p(mod)
    assert te_compiler is not None and "Primitive" in mod.astext()


@program
def lifetimes_end_after_the_last_use():
    mod = tvm.parser.fromtext("""#[version = "0.0.5"]
        def @main(%x: Tensor[(4), float32]) {
          let %a = add(%x, %x);
          let %b = multiply(%a, %x);
          let %c = exp(%b);
          %c
        }""")
    out = transform.ManifestLifetimes()(transform.InferType()(mod)) if hasattr(transform, "ManifestLifetimes") else tvm.get_global_func("relay._transform.ManifestLifetimes")()(mod)
    text = out.astext()
    assert text.count("memory.kill") >= 2


@program
def simplify_fc_transposes_weights():
    from tvm.relay.data_dep_optimization import simplify_fc_transpose
    x, w = relay.var("x", shape=(1, 32)), relay.var("w", shape=(32, 64))
    f = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, relay.transpose(w, axes=[1, 0]))))
    new, params = simplify_fc_transpose.convert(f, {"w": tvm.nd.array(numbers(32, 64))})
    assert "transpose" not in new.astext() and params["w.T"].shape == (64, 32)


@program
def device_specific_and_te_lowering():
    x = relay.var("x", shape=(4,))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    mod = transform.InferType()(transform.FuseOps(0)(mod))
    prim = mod["main"].body.op
    lowered = relay.backend.te_compiler.get().lower(prim, "llvm")
    assert lowered.prim_fn_var.name_hint.startswith("tvmgen_default_fused_exp") or "fused_exp" in lowered.prim_fn_var.name_hint
