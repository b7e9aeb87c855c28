# SPDX-License-Identifier: Apache-2.0
"""Reports of profilers, factories of modules, and errors through functions."""
import json, os, io, csv, tempfile

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import te, tir, ir, topi, relay, runtime
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import transform
from tvm.relay.testing import mlp
import numpy as np
import tvm
import tvm.testing


def read_csv(report):
    f = io.StringIO(report.csv())
    headers = []
    rows = []
    r = csv.reader(f, delimiter=",")
    it = iter(r)
    headers = next(it)
    data = {h: [] for h in headers}
    for row in it:
        for h, c in zip(headers, row):
            data[h].append(c)
    return data


@program
def profile_vm():
    mod, params = mlp.get_workload(1)
    exe = relay.vm.compile(mod, "llvm", params=params)
    vm = tvm.runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
    data = np.random.rand(1, 1, 28, 28).astype("float32")
    rep = vm.profile(data, func_name="main")
    assert "fused_nn_softmax" in str(rep)
    assert "Total" in str(rep)
    assert rep.configuration["Executor"] == "VM"
    assert "Hash" in read_csv(rep)


@program
def profile_graph():
    mod, params = mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    gr = debug_executor.create(lib.get_graph_json(), lib.lib, tvm.cpu())
    data = np.random.rand(1, 1, 28, 28).astype("float32")
    rep = gr.profile(data=data)
    assert "fused_nn_softmax" in str(rep)
    assert "Total" in str(rep)
    assert "Hash" in str(rep)
    assert "Graph" in str(rep)


@program
def report_serialisation():
    mod, params = mlp.get_workload(1)
    exe = relay.vm.compile(mod, "llvm", params=params)
    vm = tvm.runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
    rep = vm.profile(np.random.rand(1, 1, 28, 28).astype("float32"), func_name="main")
    r2 = tvm.runtime.profiling.Report.from_json(rep.json())
    assert r2.table(aggregate=False, col_sums=False) == rep.table(aggregate=False, col_sums=False) or len(r2.calls) == len(rep.calls)


@program
def module_factory_cpu():
    mod, params = relay.testing.mlp.get_workload(1)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build_module.build(mod, "llvm", params=params)
    data = np.random.uniform(-1, 1, (1, 1, 28, 28)).astype("float32")
    dev = tvm.cpu()
    gmod = lib["default"](dev)
    set_input, run, get_output = (gmod["set_input"], gmod["run"], gmod["get_output"])
    set_input("data", tvm.nd.array(data))
    run()
    out = get_output(0).numpy()
    g = graph_executor.GraphModule(lib["default"](dev))
    g.set_input("data", data)
    g.run()
    np.testing.assert_allclose(g.get_output(0).numpy(), out)
    d = debug_executor.GraphModuleDebug(lib["debug_create"]("default", dev), [dev], lib.get_graph_json(), None)
    d.set_input("data", data)
    d.run()
    np.testing.assert_allclose(d.get_output(0).numpy(), out, rtol=1e-05)


@program
def module_remove_params():
    mod, params = relay.testing.mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params, mod_name="myname")
    t = utils.tempdir()
    p = t.relpath("l.so")
    no = lib["remove_params"]()
    no.export_library(p)
    open(t.relpath("p.params"), "wb").write(runtime.save_param_dict(lib.get_params()))
    loaded = tvm.runtime.load_module(p)
    g = loaded["myname"](tvm.cpu(0)) if loaded.implements_function("myname") else loaded["default"](tvm.cpu(0))
    gm = graph_executor.GraphModule(g)
    gm.load_params(open(t.relpath("p.params"), "rb").read())
    gm.run(data=np.zeros((1, 1, 28, 28), "float32"))
    assert gm.get_output(0).shape == (1, 10)


@program
def module_mod_name():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm", mod_name="net")
    g = graph_executor.GraphModule(lib["net"](tvm.cpu(0)))
    g.run(x=np.ones(2, "float32"))
    assert (g.get_output(0).numpy() == 2).all()
    t = utils.tempdir()
    lib.export_library(t.relpath("a.tar"))
    l2 = tvm.runtime.load_module(t.relpath("a.tar"))
    assert l2["net"](tvm.cpu(0)) is not None


@program
def extension_class():
    from tvm._ffi.runtime_ctypes import ArgTypeCode

    @tvm.register_extension
    class View:
        _tvm_tcode = ArgTypeCode.DLTENSOR_HANDLE

        def __init__(self, arr):
            self.arr = arr

        @property
        def _tvm_handle(self):
            return self.arr._tvm_handle
    n = 10
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    a = tvm.nd.array(np.zeros(n, "float32"))
    b = tvm.nd.array(np.zeros(n, "float32"))
    f(View(a), View(b))
    np.testing.assert_allclose(b.numpy(), a.numpy() + 1)


@program
def op_translation_errors():
    f = tvm.testing.test_raise_error_callback("OpNotImplemented: myop")
    e = raises(tvm.error.OpNotImplemented, f)
    assert isinstance(e, NotImplementedError)
    assert "myop" in str(e)
    with refusing(tvm.error.InternalError):
        tvm.testing.test_raise_error_callback("InternalError: myop")()
    with refusing(KeyError):
        tvm.testing.test_raise_error_callback("KeyError: myop")()
    with refusing(ValueError):
        tvm.testing.test_raise_error_callback("ValueError: myop")()
    with refusing(TypeError):
        tvm.testing.test_raise_error_callback("TypeError: myop")()
    with refusing(Exception):
        tvm.testing.test_check_eq_callback("InternalError: myop")(0, 1)


@program
def deep_callback():

    def error_callback():
        raise ValueError("callback error")
    w1 = tvm.testing.test_wrap_callback(error_callback)

    def flevel2():
        w1()
    w2 = tvm.testing.test_wrap_callback(flevel2)

    def flevel3():
        w2()
    w3 = tvm.testing.test_wrap_callback(flevel3)
    with refusing(ValueError):
        w3()


@program
def time_evaluator_options():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0)
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="f")
    a, b = (tvm.nd.array(numbers(16)), tvm.nd.empty((16,)))
    ev = f.time_evaluator("f", tvm.cpu(), number=1, repeat=2, min_repeat_ms=5)
    r = ev(a, b)
    assert len(r.results) == 2
    ev = f.time_evaluator(f.entry_name, tvm.cpu(), number=2, repeat=1, f_preproc="cache_flush_cpu_non_first_arg") if tvm.get_global_func("cache_flush_cpu_non_first_arg", True) else ev
    assert ev(a, b).mean > 0


@program
def container_dir_getattr():
    a = tvm.runtime.convert([1, 2, 3])
    dir(a)
    assert getattr(a, "type_key") == "Array"
    with refusing(AttributeError):
        getattr(a, "test_key")
    m = tvm.runtime.convert({te.var("a"): 2})
    assert getattr(m, "type_key") == "Map"
    assert str(m)
    assert list(m)


@program
def map_save_load():
    a, b = (te.var("a"), te.var("b"))
    m = tvm.runtime.convert({a: 2, b: 3})
    js = tvm.ir.save_json(m)
    m2 = tvm.ir.load_json(js)
    assert isinstance(m2, tvm.ir.Map)
    dd = {k.name: v.value for k, v in m2.items()}
    assert dd == {"a": 2, "b": 3}


@program
def nd_copy_between_and_devices():
    a = tvm.nd.array(np.arange(6).reshape(2, 3))
    assert a.dtype == "int64"
    assert a.device == tvm.cpu()
    b = a.copyto(tvm.cpu(0))
    assert b.shape == (2, 3)
    c = tvm.nd.empty((2, 3), "int64")
    c.copyfrom(a)
    np.testing.assert_array_equal(c.numpy(), a.numpy())
    a.copyto(c)
    with refusing(ValueError):
        a.copyto(3)
    assert tvm.nd.array(a).numpy().shape == (2, 3)
    assert str(a).startswith("<tvm.nd.NDArray")


@program
def runtime_ctypes_module():
    from tvm._ffi import runtime_ctypes as rc
    assert rc.DataType("float32").bits == 32
    assert rc.DataTypeCode.INT == 0
    assert rc.DataTypeCode.FLOAT == 2
    assert rc.ArgTypeCode.INT == 0
    assert rc.Device(1, 0).device_type == 1


@program
def ffi_base_module():
    from tvm._ffi.base import py_str, string_types, numeric_types, TVMError, c_str
    assert py_str(b"a") == "a"
    assert isinstance("x", string_types)
    assert isinstance(1, numeric_types)
    assert issubclass(TVMError, Exception)


@program
def graph_num_and_index():
    x, y = (relay.var("x", shape=(2,)), relay.var("y", shape=(2,)))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple([x + y, x - y]))), "llvm")
    g = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert g.get_num_outputs() == 2
    assert g.get_num_inputs() == 2
    assert g.get_input_index("y") == 1
    g.set_input(x=np.ones(2, "float32"), y=np.ones(2, "float32"))
    g.run()
    assert (g.get_output(0).numpy() == 2).all()
    assert (g.get_output(1).numpy() == 0).all()


@program
def graph_getitem_functions():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm")
    g = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert callable(g["run"])
    assert g["get_num_outputs"]() == 1
    g["set_input"]("x", tvm.nd.array(np.ones(2, "float32")))
    g["run"]()
    assert (g["get_output"](0).numpy() == 2).all()


@program
def debug_module_data():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x + x))), "llvm")
    d = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    d.set_input("x", np.ones(2, "float32"))
    d.run()
    dd = d.debug_datum
    assert len(dd.get_graph_nodes()) == len(json.loads(lib.get_graph_json())["nodes"])
    assert len(dd.get_graph_node_shapes()) >= 2
    s = dd.get_debug_result()
    assert "Node Name" in s
    assert "Total_time" in s
    assert len(dd.get_output_tensors()) >= 1


@program
def get_output_into():
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm")
    g = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    g.run(x=np.ones(2, "float32"))
    o = tvm.nd.empty((2,))
    g.get_output(0, o)
    assert (o.numpy() == 2).all()
    i = g.get_input("x", tvm.nd.empty((2,)))
    assert (i.numpy() == 1).all()
