# SPDX-License-Identifier: Apache-2.0
"""Executors, arrays, functions, devices, instruments and builds."""
import os
import tempfile

import numpy as np
import tvm
import tvm.testing
from harness import numbers, program, raises, same
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.backend import Executor, Runtime
from tvm.relay.backend.interpreter import ConstructorValue, RefValue  # noqa: F401

X = relay.var("x", shape=(2, 3))
DATA = numbers(2, 3)


@program(("graph",), ("debug",), ("vm",), ("aot",))
def executors(kind):
    run = relay.create_executor(kind, mod=tvm.IRModule.from_expr(relay.Function([X], X + X)), device=tvm.cpu(), target="llvm").evaluate()
    for given in (DATA, tvm.nd.array(DATA), relay.const(DATA)):
        np.testing.assert_allclose(run(given).numpy(), 2 * DATA)
    np.testing.assert_allclose(run(x=DATA).numpy(), 2 * DATA)
    raises(Exception, run)
    raises(Exception, run, DATA, DATA)


@program((relay.const(1), 1), (relay.add(relay.const(1), relay.const(2)), 3),
         (relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(4)]), 1), 4), (relay.If(relay.const(True), relay.const(5), relay.const(6)), 5),
         (relay.Call(relay.Function([], relay.const(7)), []), 7))
def closed_expressions(expr, value):
    assert relay.create_executor().evaluate(expr).numpy() == value


@program
def lets_and_references():
    v, r, u = relay.Var("v"), relay.Var("r"), relay.Var("u")
    assert relay.create_executor().evaluate(relay.Let(v, relay.const(1), v)).numpy() == 1
    body = relay.Let(r, relay.RefCreate(relay.const(1)), relay.Let(u, relay.RefWrite(r, relay.const(5)), relay.RefRead(r)))
    assert relay.create_executor().evaluate(body).numpy() == 5


@program
def arguments_by_place_and_name():
    a, b, c = (relay.var(n, shape=(1, 4)) for n in "abc")
    one, two, three = (numbers(1, 4, seed=s) for s in (1, 2, 3))
    run = relay.create_executor().evaluate(relay.Function([a, b, c], a + b + c))
    for out in (run(one, two, three), run(a=one, b=two, c=three), run(one, b=two, c=three), run(one, two, c=three)):
        np.testing.assert_allclose(out.numpy(), one + two + three, rtol=1e-5)
    raises(Exception, run, one, two)
    np.testing.assert_allclose(relay.create_executor().evaluate(a + b, {a: one, b: relay.const(two)}).numpy(), one + two, rtol=1e-6)


@program
def tuples_in_and_out():
    pair = relay.var("p", type_annotation=relay.TupleType([relay.TensorType((1,)), relay.TensorType((4,))]))
    values = (numbers(1), numbers(4))
    out = relay.create_executor().evaluate(relay.Function([pair], relay.Tuple([relay.TupleGetItem(pair, 1), relay.TupleGetItem(pair, 0)])))(values)
    assert len(out) == 2 and (out[0].numpy() == values[1]).all() and (out[1].numpy() == values[0]).all()


@program
def lists():
    mod = tvm.IRModule()
    prelude = relay.testing.Prelude(mod)
    _, cons, nil = prelude.mod.get_type("List")
    out = relay.create_executor(mod=mod).evaluate(cons(relay.const(1), cons(relay.const(2), nil())))
    assert isinstance(out, ConstructorValue) and out.constructor.name_hint == "Cons" and out.fields[0].numpy() == 1 and out.tag == cons.tag


@program("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
def arrays(dtype):
    a = tvm.nd.empty((2, 3), dtype)
    assert a.dtype == dtype and a.shape == (2, 3) and a.device == tvm.cpu(0)
    values = numbers(2, 3, dtype=dtype)
    a.copyfrom(values)
    assert (a.numpy() == values).all() and a.numpy().dtype == np.dtype(dtype) and (a.copyto(tvm.cpu()).numpy() == values).all()
    b = tvm.nd.array(values, tvm.cpu(0))
    a.copyto(b)
    a[:] = 0
    assert (b.numpy() == values).all() and not a.numpy().any() and a != b and a == a and a.same_as(a)
    raises(ValueError, lambda: a.copyfrom(np.zeros((3, 3), dtype)))
    if dtype != "bool":
        assert (tvm.nd.from_dlpack(b.to_dlpack()).numpy() == values).all()


@program(("cpu", 1), ("llvm", 1), ("cuda", 2), ("opencl", 4), ("vulkan", 7), ("metal", 8), ("rocm", 10), ("ext_dev", 12), ("hexagon", 14), ("webgpu", 15))
def devices(name, number):
    device = tvm.device(name, 0)
    assert device.device_type == number and device.device_id == 0 and device == tvm.device(name) and hash(device) == hash(tvm.device(name, 0)) and device != tvm.device(name, 1)
    assert device.exist == (name in ("cpu", "llvm", "ext_dev")) and tvm.target.VirtualDevice(device).device_type_int == number
    assert tvm.testing.device_test(device, number, 0) == device


@program(1, 2.5, "word", None, True)
def echoed(value):
    assert tvm.testing.echo(value) == value
    assert tvm.runtime.convert(lambda *a: a[0])(value) == value


@program
def functions():
    @tvm.register_func("test.classic.count", override=True)
    def count(*arguments):
        return len(arguments)
    found = tvm.get_global_func("test.classic.count")
    assert isinstance(found, tvm.runtime.PackedFunc) and found(1, "b", None) == 3 and "test.classic.count" in tvm._ffi.registry.list_global_func_names()
    raises(ValueError, tvm.get_global_func, "no.such.function")
    assert tvm.get_global_func("no.such.function", allow_missing=True) is None
    tvm._ffi.registry.remove_global_func("test.classic.count")
    assert tvm.get_global_func("test.classic.count", True) is None
    inner = tvm.runtime.convert(lambda: tvm.runtime.convert(lambda x: x + 1))
    assert inner()(4) == 5
    raises(ValueError, tvm.testing.ErrorTest, 3, 1)
    raises(ValueError, tvm.testing.test_raise_error_callback("ValueError: no"))
    assert isinstance(raises(tvm.error.OpNotImplemented, tvm.testing.test_raise_error_callback("OpNotImplemented: myop")), NotImplementedError)
    raises(tvm.error.InternalError, tvm.testing.test_check_eq_callback("InternalError: myop"), 1, 2)
    tvm.testing.test_wrap_callback(lambda: None)()
    tvm.testing.nop(1, 2)


@program
def parameters():
    given = {"w": tvm.nd.array(numbers(2)), "b": tvm.nd.array(numbers(3))}
    saved = relay.save_param_dict(given)
    assert isinstance(saved, bytearray)
    for read in (relay.load_param_dict, tvm.runtime.load_param_dict):
        assert {k: v.numpy().tolist() for k, v in read(saved).items()} == {k: v.numpy().tolist() for k, v in given.items()}


@program
def benchmark_results():
    from tvm.runtime.module import BenchmarkResult
    result = BenchmarkResult([1, 2, 2, 5])
    assert (result.mean, result.median, result.min, result.max, result.std) == (2.5, 2, 1, 5, np.std([1, 2, 2, 5])) and result.results == [1, 2, 2, 5]
    assert "mean (ms)" in str(result) and "median=2" in repr(result)


@program(("aot", "interface-api", "c"), ("aot", "unpacked-api", True), ("graph", "link-params", True))
def executor_options(name, key, value):
    executor = Executor(name, {key: value})
    assert executor[key] == value and key in executor and executor == Executor(name, {key: value}) and executor != Executor("graph", {}) and str(executor).startswith(name)
    assert key in Executor.list_registered_options(name) and name in Executor.list_registered()
    raises(tvm.TVMError, Executor, "woofles")
    raises(tvm.TVMError, Executor, name, {"woof": "bark"})
    raises(tvm.TVMError, Executor, name, {key: []})


@program(("crt", "system-lib", True), ("cpp", "system-lib", False))
def runtime_options(name, key, value):
    assert Runtime(name, {key: value})[key] == value
    raises(tvm.TVMError, Runtime, "woof")
    raises(KeyError, lambda: Runtime(name)["woof"])


def library(level=3):
    with tvm.transform.PassContext(opt_level=level):
        return relay.build(tvm.IRModule.from_expr(relay.Function([X], relay.nn.softmax(X * relay.const(2.0)))), "llvm")


def run(module):
    module.set_input("x", DATA)
    module.run()
    return module.get_output(0).numpy()


WANTED = np.exp(2 * DATA) / np.exp(2 * DATA).sum(1, keepdims=True)


@program(0, 1, 2, 3, 4)
def levels(level):
    np.testing.assert_allclose(run(graph_executor.GraphModule(library(level)["default"](tvm.cpu()))), WANTED, rtol=1e-5)


@program("net.so", "net.tar", "net.o")
def exported(name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        library().export_library(path)
        np.testing.assert_allclose(run(graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))), WANTED, rtol=1e-5)


@program
def three_parts():
    graph, lib, params = relay.build(tvm.IRModule.from_expr(relay.Function([X], relay.nn.softmax(X * relay.const(2.0)))), "llvm")
    module = graph_executor.create(graph, lib, tvm.cpu(0))
    module.load_params(relay.save_param_dict(params))
    np.testing.assert_allclose(run(module), WANTED, rtol=1e-5)
    whole = library()
    assert whole.get_graph_json() == whole.get_executor_config() and whole.get_lib() is not None and isinstance(whole.get_params(), dict)


@program
def machines():
    free = relay.var("x", shape=(relay.Any(), 3))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([free], free + free)), "llvm")
    code, lib = exe.save()
    for one in (exe, tvm.runtime.vm.Executable.load_exec(code, lib)):
        machine = tvm.runtime.vm.VirtualMachine(one, tvm.cpu())
        np.testing.assert_allclose(machine.run(DATA).numpy(), 2 * DATA)
        np.testing.assert_allclose(machine.invoke("main", x=DATA).numpy(), 2 * DATA)
        machine.set_input("main", DATA)
        np.testing.assert_allclose(machine.run().numpy(), 2 * DATA)
    assert exe.get_function_params("main") == ["x"] and exe.stats and exe.bytecode
    report = tvm.runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu()).profile(DATA, func_name="main")
    assert isinstance(report, tvm.runtime.Report) and report.csv() and tvm.runtime.profiling.Report.from_json(report.json()) is not None


class Noting:
    def __init__(self, skip=""):
        self.seen, self.skip = [], skip

    def enter_pass_ctx(self):
        self.seen.append("enter")

    def exit_pass_ctx(self):
        self.seen.append("exit")

    def should_run(self, mod, info):
        return info.name != self.skip

    def run_before_pass(self, mod, info):
        self.seen.append(info.name)


@program("", "FoldConstant", "InferType")
def instruments(skip):
    note = tvm.instrument.pass_instrument(Noting)(skip)
    with tvm.transform.PassContext(opt_level=3, instruments=[note]):
        tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant()])(tvm.IRModule.from_expr(relay.Function([X], X)))
    assert note.seen[0] == "enter" and note.seen[-1] == "exit" and (skip not in note.seen) and {"InferType", "FoldConstant"} - {skip} <= set(note.seen)


@program("enter_pass_ctx", "run_before_pass", "run_after_pass", "should_run")
def failing_instruments(method):
    @tvm.instrument.pass_instrument
    class Failing:
        pass

    def fail(*_):
        raise ValueError("from the instrument")
    failing = Failing()
    setattr(failing, method, fail)

    def go():
        with tvm.transform.PassContext(instruments=[failing]):
            relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], X)))
    assert "from the instrument" in str(raises(tvm.TVMError, go))
    assert tvm.transform.PassContext.current().instruments == []


@program
def timing():
    timer = tvm.ir.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[timer]):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], X)))
        assert "InferType" in timer.render()


@program
def own_passes():
    new = relay.Function([X], X * X)

    @relay.transform.function_pass(opt_level=1)
    class Replace:
        def __init__(self, function):
            self.function = function

        def transform_function(self, func, mod, ctx):
            return self.function

    @tvm.transform.module_pass(opt_level=2, name="Mine", required=["InferType"])
    def mine(mod, ctx):
        return mod
    mod = tvm.IRModule.from_expr(relay.Function([X], X + X))
    assert Replace(new).info.name == "Replace" and (mine.info.name, mine.info.opt_level, list(mine.info.required)) == ("Mine", 2, ["InferType"])
    same(relay.transform.InferType()(Replace(new)(mod)), relay.transform.InferType()(tvm.IRModule.from_expr(new)))
    same(mine(mod), mod)
    assert tvm.transform.Sequential([mine], opt_level=1, name="s").info.name == "s"
    raises(ValueError, relay.transform.function_pass, lambda a, b, c: a)
    raises(TypeError, lambda: tvm.transform.module_pass(opt_level=1, required=3))


@program
def options():
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 10}):
        assert tvm.transform.PassContext.current().config["relay.FuseOps.max_depth"] == 10
    assert isinstance(raises(AttributeError, lambda: tvm.transform.PassContext(config={"no.such": 1})), tvm.TVMError)
    raises(AttributeError, lambda: tvm.transform.PassContext(config={"relay.FuseOps.max_depth": "x"}))
    assert tvm.transform.PassContext.list_configs()["relay.FuseOps.max_depth"]["type"] == "IntImm"
    unroll = tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 10}}).config["tir.UnrollLoop"]
    assert unroll.auto_max_step == 10 and unroll.explicit_unroll and unroll.auto_max_depth == 8
    raises(AttributeError, lambda: tvm.transform.PassContext(config={"tir.UnrollLoop": {"xyz": 1}}))
    raises(TypeError, lambda: tvm.transform.PassContext(required_pass="x"))


@program(("tanh", relay.tanh, 0, 1e-3), ("sqrt", relay.sqrt, 3, 0.1), ("log", relay.log, 3, 0.1), ("exp", relay.exp, 0, 1e-3), ("sigmoid", relay.sigmoid, 0, 0.1), ("negative", relay.negative, 0, 1),
         ("x * x", lambda x: x * x, 1, 0.1), ("mean", lambda x: relay.mean(x, 1), 0, 1), ("transpose", relay.transpose, 0, 1), ("clip", lambda x: relay.clip(x, -9.0, 9.0), 0, 1))
def gradients(_, make, mean, scale):
    x = relay.var("x", shape=(2, 3), dtype="float64")
    relay.testing.check_grad(relay.Function([x], make(x)), mean=mean, scale=scale)


@program
def testing_functions():
    random = relay.testing.rand("float32", 2, 3)
    assert isinstance(random, tvm.nd.NDArray) and random.shape == (2, 3) and random.dtype == "float32"
    same(relay.testing.run_opt_pass(X + relay.const(1.0), relay.transform.InferType()), relay.testing.run_infer_type(X + relay.const(1.0)))
    assert ("llvm", tvm.cpu(0)) in relay.testing.enabled_targets() and ("llvm", tvm.cpu(0)) in tvm.testing.enabled_targets() and tvm.testing.device_enabled("llvm")
    tvm.testing.check_numerical_grads(lambda x: (x**2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    raises(AssertionError, lambda: tvm.testing.check_numerical_grads(lambda x: (x**2).sum(), [np.array([1.0, 2.0])], [np.array([1.0, 4.0])]))
    raises(AssertionError, lambda: tvm.testing.assert_allclose(np.ones(2), np.zeros(2)))
