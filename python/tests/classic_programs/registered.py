# SPDX-License-Identifier: Apache-2.0
"""Values that interpreters take, registered operators, managed passes, symbolic attributes, parse errors as users see them."""
import numpy as np
import tvm
from harness import numbers, program, raises, refusing, same
from tvm import nd, relay, te, tir
from tvm.relay.testing import run_infer_type
from tvm.runtime import container


@program
def tuple_objects():
    t = container.tuple_object([nd.array(np.array(1)), nd.array(np.array([2, 3]))])
    x = relay.var("x", relay.TupleType([relay.TensorType((), "int64"), relay.TensorType((2,), "int64")]))
    f = relay.Function([x], relay.TupleGetItem(x, 1))
    for kind in ("debug", "vm"):
        got = relay.create_executor(kind, mod=tvm.IRModule.from_expr(f), device=tvm.cpu(), target="llvm").evaluate()(t)
        np.testing.assert_array_equal(got.numpy(), [2, 3])


@program
def results_of_functions():
    x = relay.var("x", relay.TensorType([3], "float32"))
    f1 = relay.Function([x], x)
    a, b = f1(x), f1(x)
    f = relay.Function([x], relay.Tuple([a, b]))
    out = relay.create_executor("debug", mod=tvm.IRModule.from_expr(f)).evaluate()(np.array([1, 2, 3], "float32"))
    np.testing.assert_array_equal(out[0].numpy(), [1, 2, 3])
    np.testing.assert_array_equal(out[1].numpy(), [1, 2, 3])


@program
def bound_arguments():
    x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(10, 10))
    ex = relay.create_executor("debug")
    xx, yy = numbers(10, 10), numbers(10, 10, seed=9)
    got = ex.evaluate(relay.Function([x, y], relay.add(x, y)))(xx, yy)
    np.testing.assert_allclose(got.numpy(), xx + yy, rtol=1e-6)
    got = ex.evaluate(relay.add(x, y), binds={x: xx, y: yy})
    np.testing.assert_allclose(got.numpy(), xx + yy, rtol=1e-6)
    z = relay.var("z", shape=(1, 10))
    f = relay.Function([x, z], x + z)
    got = ex.evaluate(f)(xx, z=numbers(1, 10))
    np.testing.assert_allclose(got.numpy(), xx + numbers(1, 10), rtol=1e-6)


# ---- operators of scripts
@program
def registered_operators():
    name = "tilewright_test.custom_op"
    relay.op.op.register(name, r"code(Adds two tensors.)code")
    op = relay.op.op.get(name)
    op.set_num_inputs(2)
    op.add_argument("data_0", "Tensor", "The first.")
    op.add_argument("data_1", "Tensor", "The second.")
    op.add_type_rel("Broadcast")
    op.set_support_level(1)
    relay.op.op.register_pattern(name, relay.op.op.OpPattern.ELEMWISE)
    relay.op.op.register_stateful(name, False)
    assert relay.op.op.get(name).name == name and relay.op.op.get(name).num_inputs == 2
    assert relay.op.op.get(name).get_attr("TOpPattern") == relay.op.op.OpPattern.ELEMWISE and relay.op.op.get(name).get_attr("TOpIsStateful") == False  # noqa: E712
    x, y = relay.var("x", shape=(4, 1)), relay.var("y", shape=(1, 3))
    assert run_infer_type(relay.Call(op, [x, y])).checked_type == relay.TensorType((4, 3))
    assert [a.name for a in op.arguments] == ["data_0", "data_1"] and op.arguments[0].type_info == "Tensor" and op.support_level == 1 and "two tensors" in op.description


@program
def attributes_of_operators():
    @tvm.ir.register_op_attr("exp", "tilewright_test")
    def plus_one(x):
        return x + 1
    log, exp = relay.op.get("log"), relay.op.get("exp")
    assert log.num_inputs == 1 and log.get_attr("tilewright_test") is None
    assert exp.get_attr("tilewright_test")(1) == 2 and plus_one(1) == 2 and exp.has_attr("tilewright_test") and not log.has_attr("tilewright_test")
    exp.reset_attr("tilewright_test")
    assert exp.get_attr("tilewright_test") is None
    exp.set_attr("tilewright_test2", 3)
    assert exp.get_attr("tilewright_test2") == 3


@program
def attributes_for_a_moment():
    from tvm.relay.testing.temp_op_attr import TempOpAttr
    add = relay.op.get("add")
    before = add.get_attr("ftest_tilewright")
    with TempOpAttr("add", "ftest_tilewright", lambda x: x + 10):
        assert add.get_attr("ftest_tilewright")(1) == 11
    assert before is None and add.get_attr("ftest_tilewright") is None


@program
def levels_of_operators():
    assert relay.op.get("nn.conv2d").support_level == 2 and relay.op.get("add").support_level == 1 and relay.op.get("zeros").support_level == 3
    assert relay.op.get("nn.relu").num_inputs == 1 and relay.op.get("concatenate").num_inputs in (1, -1)
    assert relay.op.get("nn.dense").arguments[1].name == "weight" and relay.op.get("nn.conv2d").attrs_type_key == "relay.attrs.Conv2DAttrs"
    assert len(tvm.ir.Op.list_op_names()) > 200
    assert "nn.relu" in [str(n) for n in tvm.ir.Op.list_op_names()]


# ---- passes
def _module():
    x = relay.var("x", shape=(5, 10))
    y = relay.var("y", shape=(10,))
    return tvm.IRModule.from_expr(relay.Function([x, y], relay.abs(relay.add(x, y)))), x, y


@program
def a_module_pass_by_hand():
    mod, x, _ = _module()
    names = []

    def transform(expr, ctx):
        names.append(ctx.opt_level)
        mod2 = tvm.IRModule({"log": relay.Function([x], relay.log(x))})
        expr.update(mod2)
        return expr

    @tvm.transform.module_pass(opt_level=3, name="mod_transform")
    def mod_transform(m, ctx):
        return transform(m, ctx)
    assert isinstance(mod_transform, tvm.transform.ModulePass) and mod_transform.info.name == "mod_transform" and mod_transform.info.opt_level == 3
    out = mod_transform(mod)
    assert {v.name_hint for v in out.get_global_vars()} == {"main", "log"} and names == [2]


@program
def function_passes_leave_some_alone():
    mod, x, y = _module()

    @relay.transform.function_pass(opt_level=1, name="double")
    def double(func, m, ctx):
        return relay.Function(func.params, relay.add(func.body, func.body), func.ret_type, func.type_params, func.attrs)
    skipped = mod["main"].with_attr("SkipOptimization", tir.IntImm("int32", 1))
    mod["other"] = skipped
    out = double(mod)
    assert str(out["main"]).count("add(") == 2 and str(out["other"]).count("add(") == 1


@program
def sequences_run_in_order():
    mod, *_ = _module()
    seen = []

    def note(name):
        @tvm.transform.module_pass(opt_level=1, name=name)
        def run(m, _):
            seen.append(name)
            return m
        return run
    seq = tvm.transform.Sequential([note("a"), note("b"), tvm.transform.Sequential([note("c")])])
    seq(mod)
    assert seen == ["a", "b", "c"]
    seen.clear()
    with tvm.transform.PassContext(opt_level=0):
        seq(mod)
    assert seen == []
    with tvm.transform.PassContext(opt_level=0, required_pass=["b"]):
        seq(mod)
    assert seen == ["b"]
    seen.clear()
    with tvm.transform.PassContext(disabled_pass=["a"]):
        seq(mod)
    assert seen == ["b", "c"]


@program
def sequences_of_nothing():
    passes = tvm.transform.Sequential([])
    mod, *_ = _module()
    same(passes(mod), mod)
    seq = tvm.transform.Sequential(opt_level=2, name="empty")
    assert seq.info.name == "empty"
    with refusing((TypeError, AttributeError)):
        tvm.transform.Sequential(relay.transform.InferType())


@program
def information_of_passes():
    p = relay.transform.FoldConstant()
    assert p.info.name == "FoldConstant" and p.info.opt_level == 2 and "FoldConstant" in str(p.info) and list(p.info.required) == []
    for make, level in ((relay.transform.FuseOps, 0), (relay.transform.InferType, 0), (relay.transform.EliminateCommonSubexpr, 3), (relay.transform.CombineParallelConv2D, 4), (relay.transform.FastMath, 4), (relay.transform.AlterOpLayout, 3), (relay.transform.SimplifyInference, 0), (relay.transform.CanonicalizeOps, 3), (relay.transform.ToANormalForm, 1), (relay.transform.RemoveUnusedFunctions, 1), (relay.transform.Inline, 1)):
        assert make().info.opt_level == level, (make().info.name, make().info.opt_level)


@program
def printed_modules():
    import contextlib
    import io
    mod, *_ = _module()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        tvm.transform.PrintIR("title")(mod)
        relay.transform.InferType()(mod)
    assert "title" in out.getvalue() and "@main" in out.getvalue()


# ---- symbolic
@program
def symbols_in_attributes():
    n = te.size_var("n")
    x = relay.var("x", shape=(n, 4))
    tvm.ir.assert_structural_equal(run_infer_type(relay.nn.relu(x)).checked_type, relay.TensorType((n, 4)))


@program
def symbols_through_layers():
    n = te.size_var("n")
    x = relay.var("x", shape=(n, 3, 224, 224))
    y = run_infer_type(relay.nn.conv2d(x, relay.var("w"), kernel_size=(3, 3), channels=8))
    tvm.ir.assert_structural_equal(y.checked_type, relay.TensorType((n, 8, 222, 222)))
    y = run_infer_type(relay.nn.batch_flatten(x))
    tvm.ir.assert_structural_equal(y.checked_type, relay.TensorType((n, 3 * 224 * 224)))
    y = run_infer_type(relay.transpose(x, (0, 2, 3, 1)))
    tvm.ir.assert_structural_equal(y.checked_type, relay.TensorType((n, 224, 224, 3)))
    y = run_infer_type(relay.sum(x, axis=(1, 2)))
    tvm.ir.assert_structural_equal(y.checked_type, relay.TensorType((n, 224)))
    y = run_infer_type(relay.concatenate([x, x], axis=1))
    tvm.ir.assert_structural_equal(y.checked_type, relay.TensorType((n, 6, 224, 224)))


# ---- errors of texts
@program
def positions_of_mistakes():
    error = raises(tvm.error.DiagnosticError, tvm.parser.parse, '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 2), float32]) {\n  %0 = add(%x, %y);\n  %0\n}\n', "model.rly")
    assert "model.rly:3" in str(error) and "%y" in str(error)


@program
def renderers_of_diagnostics():
    seen = []

    def render(context):
        seen.extend(context.diagnostics)
    tvm.ir.diagnostics.override_renderer(render)
    try:
        raises(tvm.error.DiagnosticError, tvm.parser.parse, '#[version = "0.0.5"]\ndef @main(%x: int32) {\n  %y\n}')
        assert len(seen) >= 1 and seen[0].message and seen[0].span.line == 3
        assert seen[0].level == tvm.ir.diagnostics.DiagnosticLevel.ERROR
    finally:
        tvm.ir.diagnostics.override_renderer(None)


@program
def contexts_of_diagnostics():
    from tvm.ir.diagnostics import Diagnostic, DiagnosticContext, DiagnosticLevel, get_renderer
    mod = tvm.IRModule()
    context = DiagnosticContext(mod, get_renderer())
    span = relay.Span(relay.SourceName("a"), 1, 1, 1, 1)
    context.emit(Diagnostic(DiagnosticLevel.ERROR, span, "something"))
    with refusing(tvm.error.DiagnosticError):
        context.render()


@program(None, 0, 1)
def gradients_of_running_sums(axis):
    from tvm.relay.testing import check_grad
    x = relay.var("x", shape=(3, 4), dtype="float64")
    f = run_infer_type(relay.Function([x], relay.cumsum(x, axis=axis)))
    out = relay.create_executor("debug").evaluate(run_infer_type(relay.transform.gradient(f)))(np.ones((3, 4)))[1][0].numpy()
    n = {None: 12, 0: 3, 1: 4}[axis]
    want = np.arange(n, 0, -1.0)
    np.testing.assert_allclose(out, want.reshape(3, 4) if axis is None else np.broadcast_to(want if axis else want[:, None], (3, 4)))
    check_grad(relay.Function([x], relay.cumsum(x, axis=axis, exclusive=True)))


@program
def a_layout_for_each_operand():
    d, w = relay.var("d", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([d, w], relay.nn.conv2d(d, w)))
    for layouts in (["NHWC"], ["NHWC", "HWIO", "NHWC"]):
        with refusing((tvm.TVMError, AssertionError)):
            relay.transform.ConvertLayout({"nn.conv2d": layouts})(mod)
    assert "NHWC" in str(relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod))


@program
def rules_for_targets():
    from tvm import topi
    from tvm.relay.testing.temp_op_attr import TempOpAttr
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w))))
    with tvm.target.Target("llvm"):
        with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", lambda attrs, inputs, tinfos, out: topi.nn.conv2d_alter_layout(attrs, inputs, tinfos, out)):
            same(relay.transform.AlterOpLayout()(mod), mod)
    seen = []

    @topi.nn.dense_alter_layout.register("hexagon")
    def of_hexagon(attrs, inputs, tinfos, out_type):
        seen.append(inputs)
    with tvm.target.Target("hexagon"):
        topi.nn.dense_alter_layout(None, [1], None, None)
    with tvm.target.Target("llvm"):
        assert topi.nn.dense_alter_layout(None, [2], None, None) is None
    assert seen == [[1]] and of_hexagon is not None


@program
def options_without_values():
    with refusing((tvm.TVMError, ValueError)):
        tvm.target.Target("llvm -mcpu")
