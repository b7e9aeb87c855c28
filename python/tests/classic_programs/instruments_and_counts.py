# SPDX-License-Identifier: Apache-2.0
"""Instruments of passes, builders of scopes and analyses."""
from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, ir
from tvm.relay import transform, ExprVisitor, ExprMutator, ExprFunctor
from tvm.relay.dataflow_pattern import *
from tvm.relay.testing import run_infer_type, run_opt_pass
import numpy as np
import tvm, os, tempfile
import tvm.testing


def check_visit(e):
    v = ExprVisitor()
    v.visit(e)
    m = ExprMutator()
    same(m.visit(e), e)


@program
def merge_composite_table():
    pat = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    x, y = (relay.var("x", shape=(3,)), relay.var("y", shape=(3,)))
    m = tvm.IRModule.from_expr(relay.Function([x, y], relay.nn.relu(x + y)))
    m = transform.MergeComposite([("t.add_relu", pat, lambda e: True)])(m)
    c = m["main"].body
    assert isinstance(c.op, relay.Function)
    assert c.op.attrs["Composite"] == "t.add_relu"
    m = transform.AnnotateTarget("t")(m)
    m = transform.MergeCompilerRegions()(m)
    m = transform.PartitionGraph()(m)


@program
def instrument_all_calls():
    seen = []

    @tvm.instrument.pass_instrument
    class I:

        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            seen.append("b:" + info.name)

        def run_after_pass(self, mod, info):
            seen.append("a:" + info.name)
    m = tvm.IRModule.from_expr(relay.Function([], relay.const(1) + relay.const(2)))
    with tvm.transform.PassContext(instruments=[I()]):
        m = transform.InferType()(m)
        m2 = transform.FoldConstant()(m)
    assert seen[0] == "enter"
    assert seen[-1] == "exit"
    assert "b:InferType" in seen
    assert "a:InferType" in seen
    assert not any(("FoldConstant" in s for s in seen))
    same(m, m2)


@program
def instrument_override_seq():
    calls = []

    def mk(n):

        @tvm.instrument.pass_instrument
        class I:

            def run_before_pass(self, mod, info):
                calls.append(n)
        return I()
    with tvm.transform.PassContext(instruments=[mk(1)]) as pc:
        transform.InferType()(tvm.IRModule.from_expr(relay.const(1)))
        pc.override_instruments([mk(2)])
        transform.InferType()(tvm.IRModule.from_expr(relay.const(1)))
    assert 1 in calls
    assert 2 in calls
    assert calls == sorted(calls)


@program
def pass_info_fields():
    p = transform.FuseOps(2)
    i = transform.FoldConstant().info

    @tvm.transform.module_pass(opt_level=3, name="mine", required=["InferType"])
    def f(mod, ctx):
        return mod
    assert f.info.name == "mine"
    assert f.info.opt_level == 3
    assert list(f.info.required) == ["InferType"]
    assert isinstance(f, tvm.transform.ModulePass)
    assert "mine" in str(f.info) or str(f.info)


@program
def function_pass_class():

    @relay.transform.function_pass(opt_level=1)
    class T:

        def __init__(self, k):
            self.k = k

        def transform_function(self, func, mod, ctx):
            return relay.Function(func.params, func.body + relay.const(self.k))
    x = relay.var("x", shape=(1,))
    m = tvm.IRModule.from_expr(relay.Function([x], x))
    out = T(2.0)(m)
    assert isinstance(T(1.0), relay.transform.FunctionPass)
    assert T(1.0).info.name == "T"
    assert T(1.0).info.opt_level == 1
    assert out["main"].body.op.name == "add"
    assert T(5.0).k == 5.0


@program
def pass_context_things():
    with tvm.transform.PassContext(opt_level=1, required_pass=["FoldConstant"], disabled_pass=["FuseOps"], config={"relay.FuseOps.max_depth": 3}) as c:
        assert tvm.transform.PassContext.current().opt_level == 1
        assert list(c.required_pass) == ["FoldConstant"]
        assert list(c.disabled_pass) == ["FuseOps"]
        assert c.config["relay.FuseOps.max_depth"] == 3
    assert tvm.transform.PassContext.current().opt_level == 2
    with refusing((tvm.TVMError, AttributeError)):
        tvm.transform.PassContext(config={"never.such.config": 1})
    with refusing((tvm.TVMError, TypeError)):
        tvm.transform.PassContext(config={"relay.FuseOps.max_depth": "x"})
    with refusing(TypeError):
        tvm.transform.PassContext(required_pass=3)
    assert "relay.FuseOps.max_depth" in tvm.transform.PassContext.list_configs()
    assert tvm.transform.PassContext.list_configs()["relay.FuseOps.max_depth"]["type"] == "IntImm"


@program
def print_ir_pass(*_):
    m = tvm.IRModule.from_expr(relay.const(1) + relay.const(1))
    tvm.transform.PrintIR("header")(m)
    tvm.transform.PrintIR()(m)
    with tvm.transform.PassContext(instruments=[tvm.instrument.PrintBeforeAll()]):
        transform.InferType()(m)


@program
def sequential_opt_levels():
    ran = []

    def mk(level, name):

        @tvm.transform.module_pass(opt_level=level, name=name)
        def f(mod, ctx):
            ran.append(name)
            return mod
        return f
    seq = tvm.transform.Sequential([mk(0, "zero"), mk(2, "two"), mk(3, "three")])
    with tvm.transform.PassContext(opt_level=2):
        seq(tvm.IRModule())
    assert ran == ["zero", "two"]
    ran.clear()
    with tvm.transform.PassContext(opt_level=2, required_pass=["three"], disabled_pass=["two"]):
        seq(tvm.IRModule())
    assert ran == ["zero", "three"], ran


@program
def apply_pass_to_function():
    x = relay.var("x", shape=(1,))
    m = tvm.IRModule({"f": relay.Function([x], relay.const(1.0) + relay.const(2.0)), "g": relay.Function([x], relay.const(1.0) + relay.const(2.0))})
    out = tvm.transform.ApplyPassToFunction(transform.FoldConstant(), "f")(m)
    assert isinstance(out["f"].body, relay.Constant)
    assert isinstance(out["g"].body, relay.Call)


@program
def scope_builder_ifs():
    sb = relay.ScopeBuilder()
    c = relay.var("c", "bool")
    with sb.if_scope(c):
        a = sb.let("a", relay.const(1))
        sb.ret(a)
    with sb.else_scope():
        b = sb.let("b", relay.const(2))
        sb.ret(b)
    e = sb.get()
    assert isinstance(e, relay.If)
    assert isinstance(e.true_branch, relay.Let)


@program
def scope_builder_errors():
    sb = relay.ScopeBuilder()
    with refusing(RuntimeError):
        sb.get()
    sb = relay.ScopeBuilder()
    sb.ret(relay.const(1))
    with refusing(RuntimeError):
        sb.ret(relay.const(2))
    sb = relay.ScopeBuilder()
    with refusing(RuntimeError):
        with sb.else_scope():
            sb.ret(relay.const(1))


@program
def scope_builder_function():
    sb = relay.ScopeBuilder()
    x = relay.var("x", shape=(2,))
    t1 = sb.let("t1", relay.tanh(x))
    t2 = sb.let("t2", t1 + x)
    sb.ret(t2)
    f = relay.Function([x], sb.get())
    a = numbers(2)
    np.testing.assert_allclose(evaluate(f, a), np.tanh(a) + a, rtol=1e-05)
    v = sb.type_of(t1)


@program
def call_graph_things():
    from tvm.relay.analysis import call_graph
    mod = tvm.IRModule()
    x = relay.var("x", shape=())
    y = relay.var("y", shape=())
    mod["g1"] = relay.Function([x], relay.tanh(x))
    g1 = mod.get_global_var("g1")
    mod["main"] = relay.Function([y], g1(g1(y)))
    cg = call_graph.CallGraph(mod)
    assert cg.ref_count("main") == 0
    assert cg.global_call_count("main") == 2
    assert not cg.is_recursive("g1")
    assert "g1" in str(cg)
    assert "main" in str(cg.print_var("main"))
    cg2 = relay.analysis.CallGraph(mod)
    assert cg2.module is mod or tvm.ir.structural_equal(cg2.module, mod)


@program
def search_fc_transpose_things():
    x, w = (relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 3)))
    f = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w, axes=[1, 0])))
    r = relay.analysis.search_fc_transpose(f)
    assert [str(v) for v in r] == ["w"], r


@program
def list_op_freqs_things():
    x = relay.var("x", shape=(3,))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.tanh(relay.tanh(x)))))
    r = relay.analysis.list_op_freqs(m)
    assert r == {"nn.relu": 1, "tanh": 2} or {str(k): int(v) for k, v in r.items()} == {"nn.relu": 1, "tanh": 2}


@program
def list_fake_quantized():
    x = relay.var("x", shape=(1, 3, 8, 8), dtype="int8")
    d = relay.qnn.op.dequantize(x, relay.const(2.0), relay.const(0))
    op = relay.nn.max_pool2d(d, (2, 2))
    q = relay.qnn.op.quantize(op, relay.const(2.0), relay.const(0))
    m = transform.InferType()(tvm.IRModule.from_expr(q))
    assert dict(relay.analysis.list_fake_quantized_op_freqs(m)) == {"nn.max_pool2d": 1} or {str(k): int(v) for k, v in relay.analysis.list_fake_quantized_op_freqs(m).items()} == {"nn.max_pool2d": 1}


@program
def extract_things():
    x, w = (relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)))
    m = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w)))))
    ops = relay.analysis.extract_intermdeiate_expr(m, 0)
    assert isinstance(ops, tvm.IRModule)
    fu = relay.analysis.extract_fused_functions(m)
    assert len(fu) >= 1
    from tvm.relay.analysis import get_calibration_data
