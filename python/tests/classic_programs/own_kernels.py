# SPDX-License-Identifier: Apache-2.0
"""Operators that a script computes with tensor expressions: strategies, register_compute, register_schedule."""
import numpy as np
import tvm
from harness import evaluate, numbers, program, raises
from tvm import relay, te, topi
from tvm.contrib import graph_executor
from tvm.relay.op import strategy
from tvm.relay.testing.temp_op_attr import TempOpAttr

DATA = numbers(4, 8)
X = relay.var("x", shape=(4, 8))
INJECTIVE = strategy.wrap_topi_schedule(topi.generic.schedule_injective)


def shifted(by, seen=None):
    """A computation that can be told from the compiler's: max(x, 0) + by."""
    def compute(attrs, inputs, out_type):
        if seen is not None:
            seen.append((attrs, inputs, out_type))
        x = inputs[0]
        return [te.compute(x.shape, lambda *i: te.max(x(*i), tvm.tir.const(0, x.dtype)) + tvm.tir.const(by, x.dtype))]
    return compute


def of(*implementations):
    def rule(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        for compute, schedule, level in implementations:
            made.add_implementation(compute, schedule, name=f"level{level}", plevel=level)
        return made
    return rule


NET = relay.Function([X], relay.exp(relay.nn.relu(relay.add(X, relay.const(1.0)))))


@program("graph", "aot")
def a_strategy_is_built(kind):
    seen = []
    with TempOpAttr("nn.relu", "FTVMStrategy", of((shifted(1.0, seen), INJECTIVE, 10))):
        got = evaluate(NET, DATA, kind=kind)
    np.testing.assert_allclose(got, np.exp(np.maximum(DATA + 1, 0) + 1), rtol=1e-5)
    (attrs, inputs, out_type), = seen
    assert isinstance(inputs[0], te.Tensor) and [int(d) for d in inputs[0].shape] == [4, 8] and out_type == relay.TensorType((4, 8))
    np.testing.assert_allclose(evaluate(NET, DATA, kind=kind), np.exp(np.maximum(DATA + 1, 0)), rtol=1e-5)


@program
def the_most_wanted_wins():
    with TempOpAttr("nn.relu", "FTVMStrategy", of((shifted(1.0), INJECTIVE, 10), (shifted(2.0), INJECTIVE, 15), (shifted(3.0), None, 5))):
        np.testing.assert_allclose(evaluate(relay.Function([X], relay.nn.relu(X)), DATA), np.maximum(DATA, 0) + 2, rtol=1e-5)
        chosen, outs = relay.backend.te_compiler.select_implementation(relay.op.get("nn.relu"), None, [te.placeholder((4, 8))], relay.TensorType((4, 8)), tvm.target.Target("llvm"))
        assert chosen.name == "level15" and chosen.plevel == 15 and [int(d) for d in outs[0].shape] == [4, 8]
        every = relay.backend.te_compiler.get_valid_implementations(relay.op.get("nn.relu"), None, [te.placeholder((4, 8))], relay.TensorType((4, 8)), tvm.target.Target("llvm"))
        assert sorted(i.plevel for i in every) == [5, 10, 15]


@program
def equal_calls_share_a_function():
    two = relay.Function([X], relay.nn.relu(X) + relay.nn.relu(relay.negative(X)) + relay.sum(relay.nn.relu(relay.sum(X, axis=1))))
    with TempOpAttr("nn.relu", "FTVMStrategy", of((shifted(0.0), INJECTIVE, 10))):
        lib = relay.build(tvm.IRModule.from_expr(two), "llvm")
    text = lib.get_graph_json()
    assert "te_nn_relu_1" in text and "te_nn_relu_2" not in text
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.run(x=DATA)
    want = np.maximum(DATA, 0) + np.maximum(-DATA, 0) + np.maximum(DATA.sum(1), 0).sum()
    np.testing.assert_allclose(executor.get_output(0).numpy(), want, rtol=1e-5)


@program
def exported():
    import os
    import tempfile
    with TempOpAttr("nn.relu", "FTVMStrategy", of((shifted(1.0), INJECTIVE, 10))), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.so")
        relay.build(tvm.IRModule.from_expr(NET), "llvm").export_library(path)
        executor = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
        executor.run(x=DATA)
        np.testing.assert_allclose(executor.get_output(0).numpy(), np.exp(np.maximum(DATA + 1, 0) + 1), rtol=1e-5)


@program
def a_convolution_of_topi():
    data, weight = numbers(1, 3, 8, 8), numbers(8, 3, 3, 3)
    x = relay.var("d", shape=data.shape)
    body = relay.nn.relu(relay.nn.conv2d(x, relay.const(weight), channels=8, kernel_size=(3, 3), padding=(1, 1)))
    with TempOpAttr("nn.conv2d", "FTVMStrategy", of((strategy.wrap_compute_conv2d(topi.nn.conv2d_nchw), strategy.naive_schedule, 15))):
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
        assert "te_nn_conv2d_0" in lib.get_graph_json()
        executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.run(d=data)
    np.testing.assert_allclose(executor.get_output(0).numpy(), np.maximum(topi.testing.conv2d_nchw_python(data, weight, 1, 1), 0), rtol=1e-4, atol=1e-5)


@program
def products_of_topi():
    a, b = numbers(3, 5), numbers(4, 5)
    x = relay.var("x", shape=a.shape)
    with TempOpAttr("nn.dense", "FTVMStrategy", of((strategy.wrap_compute_dense(topi.nn.dense), strategy.naive_schedule, 15))):
        np.testing.assert_allclose(evaluate(relay.Function([x], relay.nn.dense(x, relay.const(b))), a), a @ b.T, rtol=1e-5)


@program
def several_results():
    def compute(attrs, inputs, out_type):
        x = inputs[0]
        return [te.compute((4, 4), lambda i, j: x[i, j] + 1.0), te.compute((4, 4), lambda i, j: x[i, j + 4])]
    halves = relay.split(X, 2, axis=1)
    body = relay.Function([X], relay.Tuple([halves[0], relay.exp(halves[1])]))
    with TempOpAttr("split", "FTVMStrategy", of((compute, strategy.naive_schedule, 15))):
        left, right = evaluate(body, DATA)
    np.testing.assert_allclose(left, DATA[:, :4] + 1, rtol=1e-6)
    np.testing.assert_allclose(right, np.exp(DATA[:, 4:]), rtol=1e-5)


@program
def a_tuple_of_operands():
    def compute(attrs, inputs, out_type):
        assert len(inputs) == 2
        return [te.compute((4, 16), lambda i, j: tvm.tir.if_then_else(j < 8, inputs[1][i, j], inputs[0][i, j - 8]))]
    with TempOpAttr("concatenate", "FTVMStrategy", of((compute, strategy.naive_schedule, 15))):
        got = evaluate(relay.Function([X], relay.concatenate([X, relay.negative(X)], 1)), DATA)
    np.testing.assert_allclose(got, np.concatenate([-DATA, DATA], 1))


@program("computed", "scheduled")
def without_a_strategy(how):
    with TempOpAttr("tanh", "FTVMCompute", shifted(4.0)):
        if how == "scheduled":
            relay.op.op.register_schedule("tanh", topi.generic.schedule_injective)
        try:
            np.testing.assert_allclose(evaluate(relay.Function([X], relay.tanh(X)), DATA), np.maximum(DATA, 0) + 4, rtol=1e-5)
        finally:
            relay.op.get("tanh").reset_attr("TSchedule")


@program
def decorated():
    @relay.op.register_compute("sinh", level=11)
    def compute(attrs, inputs, out_type):
        return [topi.cosh(inputs[0]) if hasattr(topi, "cosh") else topi.exp(inputs[0])]
    try:
        assert relay.op.get("sinh").get_attr("FTVMCompute") is compute
    finally:
        relay.op.get("sinh").reset_attr("FTVMCompute")


@program
def what_does_not_fit():
    wrong = lambda attrs, inputs, out_type: [te.compute((3, 3), lambda i, j: inputs[0][i, j])]  # noqa: E731
    with TempOpAttr("nn.relu", "FTVMStrategy", of((wrong, strategy.naive_schedule, 10))):
        error = raises(ValueError, relay.build, tvm.IRModule.from_expr(NET), "llvm")
        assert "level10" in str(error) and "nn.relu" in str(error)
    raises(ValueError, relay.op.OpStrategy().add_implementation, None, INJECTIVE)
    raises(ValueError, relay.op.OpImplementation("conv2d_nchwc.*").compute, None, [], None)


@program
def sizes_of_a_run():
    """What no schedule could be made for is the compiler's."""
    x = relay.var("x", shape=(relay.Any(), 8))
    with TempOpAttr("nn.relu", "FTVMStrategy", of((shifted(1.0), INJECTIVE, 10))):
        np.testing.assert_array_equal(evaluate(relay.Function([x], relay.nn.relu(x)), DATA, kind="vm"), np.maximum(DATA, 0))


@program("c")
def source_of_loops(target):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0)
    assert "float" in tvm.build(te.create_schedule(b.op), [a, b], target).get_source()
    with TempOpAttr("nn.relu", "FTVMStrategy", of((shifted(1.0), INJECTIVE, 10))):
        lib = relay.build(tvm.IRModule.from_expr(NET), target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=DATA)
    np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(np.maximum(DATA + 1, 0) + 1), rtol=1e-5)
