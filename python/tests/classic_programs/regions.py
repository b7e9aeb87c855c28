# SPDX-License-Identifier: Apache-2.0
"""Graph analyses, regions of compilers, normal forms, calibration, memory passes, quantised graphs, call graphs: what passes leave behind."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, refusing, same
from tvm import relay
from tvm.ir import IRModule
from tvm.relay import analysis, transform
from tvm.relay.analysis import Feature, detect_feature
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.testing import mlp, run_infer_type, run_opt_pass


def typed(f):
    return transform.InferType()(f if isinstance(f, IRModule) else IRModule.from_expr(f))


# ---- regions of compilers
def annotated(compiler="test"):
    x, y = relay.var("x", shape=(4, 4)), relay.var("y", shape=(4, 4))
    begin, end = (lambda e: relay.annotation.compiler_begin(e, compiler)), (lambda e: relay.annotation.compiler_end(e, compiler))
    body = end(relay.add(begin(x), begin(y)))
    return relay.Function([x, y], relay.nn.relu(body))


@program
def a_region_becomes_a_function():
    mod = transform.PartitionGraph()(IRModule.from_expr(annotated()))
    names = sorted(g.name_hint for g in mod.get_global_vars())
    assert names == ["main", "tvmgen_default_test_main_0"], names
    f = mod["tvmgen_default_test_main_0"]
    assert f.attrs["Compiler"] == "test" and f.attrs["Primitive"] == 1 and f.attrs["global_symbol"] == "tvmgen_default_test_main_0" and f.attrs["Inline"] == 1
    assert [p.name_hint for p in f.params] == ["test_0_i0", "test_0_i1"]
    mod = transform.PartitionGraph(mod_name="net")(IRModule.from_expr(annotated()))
    assert "tvmgen_net_test_main_0" in [g.name_hint for g in mod.get_global_vars()]


@program
def one_region_for_two_calls():
    x = relay.var("x", shape=(4,))
    f = relay.Function([x], relay.nn.relu(relay.exp(x)))
    for name in ("nn.relu", "exp"):
        tvm.ir.register_op_attr(name, "target.tilewright_wave4", lambda expr: True)
    mod = transform.AnnotateTarget("tilewright_wave4")(IRModule.from_expr(f))
    assert str(mod).count("compiler_begin") == 2 and str(mod).count("compiler_end") == 2
    merged = transform.MergeCompilerRegions()(mod)
    assert str(merged).count("compiler_begin") == 1 and str(merged).count("compiler_end") == 1
    parts = transform.PartitionGraph()(merged)
    assert len(parts.get_global_vars()) == 2
    same(transform.InferType()(transform.MergeCompilerRegions()(merged)), transform.InferType()(merged))


@program
def regions_with_constants():
    tvm.ir.register_op_attr("multiply", "target.tilewright_wave4b", lambda expr: True)
    x, w = relay.var("x", shape=(2, 2)), relay.var("w", shape=(2, 2))
    f = bind_params_by_name(relay.Function([x, w], x * w), {"w": np.full((2, 2), 2, "float32")})
    mod = transform.PartitionGraph(bind_constants=False)(transform.AnnotateTarget("tilewright_wave4b")(IRModule.from_expr(f)))
    part = next(mod[g] for g in mod.get_global_vars() if g.name_hint != "main")
    assert len(part.params) == 2
    bound = transform.PartitionGraph()(transform.AnnotateTarget("tilewright_wave4b")(IRModule.from_expr(f)))
    part = next(bound[g] for g in bound.get_global_vars() if g.name_hint != "main")
    assert len(part.params) == 1


@program
def several_results_of_a_region():
    x = relay.var("x", shape=(4,))
    begin, end = (lambda e: relay.annotation.compiler_begin(e, "t")), (lambda e: relay.annotation.compiler_end(e, "t"))
    a = relay.abs(begin(x))
    f = relay.Function([x], relay.Tuple([end(a), relay.nn.relu(end(relay.exp(a)))]))
    mod = transform.PartitionGraph()(IRModule.from_expr(f))
    part = next(mod[g] for g in mod.get_global_vars() if g.name_hint != "main")
    assert isinstance(typed(mod)[part.attrs["global_symbol"]].checked_type.ret_type, relay.TupleType)


@program
def functions_of_others_stay():
    x = relay.var("x", shape=(2,))
    inner = relay.Function([x], relay.add(relay.const(1.0), relay.const(2.0)) + x).with_attr("Compiler", "ext").with_attr("Primitive", 1).with_attr("global_symbol", "ext_0")
    mod = IRModule()
    g = relay.GlobalVar("ext_0")
    mod[g] = inner
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], g(y) + (relay.const(1.0) + relay.const(1.0)))
    mod = transform.FoldConstant()(typed(mod))
    assert str(mod["ext_0"]).count("add(") == 2 and "2f" in str(mod["main"])
    mod = transform.FuseOps()(mod)
    assert str(mod["ext_0"]).count("add(") == 2


# ---- features and counts
@program
def features_of_a_program():
    x = relay.Var("x")
    assert detect_feature(relay.const(1)) == {Feature.fConstant} and Feature.fLet in detect_feature(relay.Let(x, relay.const(1), x)) and Feature.fVar in detect_feature(x)
    assert Feature.fIf in detect_feature(relay.If(relay.const(True), relay.const(1), relay.const(2)))
    mod = typed(mlp.get_workload(1)[0])
    assert Feature.fOp in detect_feature(mod) and Feature.fIf not in detect_feature(mod)
    y = relay.var("y", shape=(2,))
    assert Feature.fGraph in detect_feature(relay.Function([y], (s := y + y) * s)) and Feature.fGraph not in detect_feature(transform.ToANormalForm()(typed(relay.Function([y], (y + y) * (y + y))))["main"])


@program
def macs_and_layers():
    w = relay.var("w", shape=(8, 3, 3, 3))
    x = relay.var("x", shape=(1, 3, 16, 16))
    f = run_opt_pass(relay.Function([x, w], relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=8, padding=(1, 1))), transform.InferType())
    assert analysis.get_total_mac_number(f) == 8 * 3 * 9 * 256
    d = run_opt_pass(relay.Function([a := relay.var("a", shape=(4, 8)), b := relay.var("b", shape=(5, 8))], relay.nn.dense(a, b)), transform.InferType())
    assert analysis.get_total_mac_number(d) == 4 * 8 * 5
    assert analysis.count_layers(f, valid_ops=["nn.conv2d"]) == 1 and analysis.count_layers(d, valid_ops=["nn.conv2d"]) == 0
    assert analysis.list_op_freqs(IRModule.from_expr(f))["nn.conv2d"] == 1 and list(analysis.list_fake_quantized_op_freqs(IRModule.from_expr(f))) == []


@program
def fused_functions_found():
    mod, params = mlp.get_workload(1)
    found = analysis.extract_fused_functions(typed(mod))
    items = list(found.items())
    assert len(items) >= 3 and all(int(f.attrs["Primitive"]) == 1 for _, f in items) and all(isinstance(str(k), str) for k, _ in items)
    assert params


@program
def intermediate_expressions():
    x = relay.var("x", shape=(3,))
    a = x + x
    f = relay.Function([x], relay.nn.relu(a * a))
    mod = typed(f)
    parts = [analysis.extract_intermdeiate_expr(mod, i) for i in range(3)]
    texts = [str(p["main"]) for p in parts]
    assert "nn.relu" not in texts[0] and "nn.relu" in texts[2] and "multiply" in texts[1], texts


@program
def dtypes_of_programs():
    x = relay.var("x", shape=(2,), dtype="float16")
    f = run_infer_type(relay.Function([x], relay.cast(x, "int8")))
    assert set(analysis.all_dtypes(f)) == {"float16", "int8"}
    assert [v.name_hint for v in analysis.free_vars(x + relay.var("y"))] == ["x", "y"]
    assert analysis.bound_vars(f) == f.params and analysis.all_vars(f) == f.params


# ---- normal forms
@program
def effects_keep_their_order():
    r, x = relay.Var("r"), relay.Var("x")
    e = relay.Let(r, relay.RefCreate(relay.const(0)), relay.Let(x, relay.RefWrite(r, relay.const(1)), relay.RefRead(r)))
    mod = typed(relay.Function([], e))
    out = transform.ToANormalForm()(mod)
    assert int(relay.create_executor("debug", mod=out).evaluate()().numpy()) == 1
    assert analysis.check_basic_block_normal_form(transform.ToBasicBlockNormalForm()(mod)["main"])


@program
def shared_parts_are_bound_once():
    y = relay.var("y", shape=(2,))
    s = y + y
    out = transform.ToANormalForm()(typed(relay.Function([y], s * s)))["main"]
    assert isinstance(out.body, relay.Let) and str(out).count("add(") == 1
    back = transform.ToGraphNormalForm()(IRModule.from_expr(out))["main"]
    same(run_infer_type(back), run_infer_type(relay.Function([y], s * s)))


@program
def blocks_of_branches():
    x, c = relay.var("x", shape=(2,)), relay.var("c", "bool")
    s = relay.exp(x)
    f = relay.Function([x, c], relay.If(c, relay.add(s, s), relay.nn.relu(s)))
    assert not analysis.check_basic_block_normal_form(f)
    out = transform.ToBasicBlockNormalForm()(typed(f))["main"]
    assert analysis.check_basic_block_normal_form(out) and str(out).count("exp(") == 1
    np.testing.assert_allclose(evaluate(out, numbers(2), np.array(True), kind="debug"), 2 * np.exp(numbers(2)), rtol=1e-5)


@program
def variables_of_bindings():
    x, y, z = relay.Var("x"), relay.Var("y"), relay.Var("z")
    e = relay.Let(x, relay.const(1), relay.Let(y, x, relay.add(y, z)))
    assert analysis.free_vars(e) == [z] and set(analysis.bound_vars(e)) == {x, y} and set(analysis.all_vars(e)) == {x, y, z}
    out = transform.DeadCodeElimination(inline_once=True)(typed(relay.Function([(w := relay.var("w", "int32"))], relay.Let(x, w + w, relay.Let(y, relay.const(3), x)))))
    assert "let" not in str(out["main"]) and "add(%w, %w)" in str(out["main"])


# ---- calibration and quantised graphs
@program
def numbers_for_calibration():
    mod, params = mlp.get_workload(1)
    tvm.ir.register_op_attr("nn.dense", "target.tilewright_calib", lambda expr: True)
    mod["main"] = bind_params_by_name(mod["main"], params)
    mod = transform.PartitionGraph()(transform.MergeCompilerRegions()(transform.AnnotateTarget("tilewright_calib")(mod)))
    shape = [int(d) for d in mod["main"].params[0].checked_type.shape]
    data = analysis.get_calibration_data(mod, {"data": tvm.nd.array(np.random.RandomState(0).rand(*shape).astype("float32"))})
    assert len(data) == 3
    for gvar, value in data.items():
        assert set(value) == {"inputs", "outputs"} and value["outputs"][0].shape[0] == 1 and gvar.name_hint.startswith("tvmgen")


@program
def quantised_by_annotation():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.const(numbers(4, 3, 3, 3))
    mod = typed(relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))))
    with relay.quantize.qconfig(skip_conv_layers=[], calibrate_mode="global_scale", global_scale=8.0):
        out = relay.quantize.quantize(mod)
    assert "int8" in str(out) or "int32" in str(out)
    want = evaluate(mod["main"], numbers(1, 3, 8, 8))
    got = evaluate(out["main"], numbers(1, 3, 8, 8))
    assert np.abs(got - want).max() < 0.3
    with relay.quantize.qconfig(nbit_input=4):
        assert relay.quantize.current_qconfig().nbit_input == 4
    assert relay.quantize.current_qconfig().nbit_input == 8


@program
def quantised_operators_checked():
    q = relay.qnn.op
    x = relay.var("x", shape=(2, 4))
    y = q.quantize(x, relay.const(0.1), relay.const(3), out_dtype="uint8")
    f = relay.Function([x], q.dequantize(y, relay.const(0.1), relay.const(3)))
    got = evaluate(f, numbers(2, 4))
    want = (np.clip(np.round(numbers(2, 4) / 0.1) + 3, 0, 255) - 3) * 0.1
    np.testing.assert_allclose(got, want, atol=1e-5)
    assert run_infer_type(y).checked_type == relay.TensorType((2, 4), "uint8")
    with refusing((tvm.TVMError, ValueError)):
        run_infer_type(q.quantize(relay.var("i", shape=(2,), dtype="int32"), relay.const(0.1), relay.const(3)))


# ---- call graphs and modules
@program
def graphs_of_calls():
    mod = tvm.parser.parse("""#[version = "0.0.5"]
def @a(%x: int32) -> int32 { @b(%x) + @b(%x) }
def @b(%x: int32) -> int32 { %x }
def @main(%x: int32) -> int32 { @a(%x) }""")
    graph = analysis.call_graph.CallGraph(mod)
    assert graph.ref_count("b") == 2 and graph.ref_count("main") == 0 and graph.global_call_count("a") == 2 and not graph.is_recursive("a") and "a" in str(graph)
    used = transform.RemoveUnusedFunctions()(tvm.parser.parse('#[version = "0.0.5"]\ndef @main() { 1 }\ndef @f() { 2 }'))
    assert [g.name_hint for g in used.get_global_vars()] == ["main"]


@program
def lambdas_lifted():
    x, y = relay.var("x", shape=(10,)), relay.var("y", shape=(10,))
    inner = relay.Function([y], relay.multiply(y, y))
    mod = IRModule.from_expr(relay.Function([x], relay.Call(inner, [x])))
    out = transform.LambdaLift()(typed(mod))
    assert len(out.functions) == 2
    with refusing(Exception):
        transform.LambdaLift()(None)


@program
def eta_expanded():
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @aux(%x: Tensor[(), int32]) -> Tensor[(), int32] { %x }\ndef @main() { @aux }')
    out = transform.EtaExpand(expand_global_var=True)(mod)
    assert isinstance(out["main"].body, relay.Function)
    mod = relay.fromtext('#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\ndef @main[A]() -> fn(A, List[A]) -> List[A] { Cons }')
    assert isinstance(transform.EtaExpand(expand_constructor=True)(mod)["main"].body, relay.Function)


@program
def first_order_functions():
    mod = tvm.parser.parse("""#[version = "0.0.5"]
def @apply(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%x) }
def @main(%l: int32) -> int32 { @apply(fn (%y: int32) -> int32 { %y + 1 }, %l) }""")
    out = transform.Defunctionalization(typed(mod)["main"], typed(mod))
    assert isinstance(out, relay.Function)


@program
def names_kept_by_passes():
    mod = mlp.get_workload(1)[0]
    out = transform.SimplifyInference()(mod)
    assert [p.name_hint for p in out["main"].params] == [p.name_hint for p in mod["main"].params]
