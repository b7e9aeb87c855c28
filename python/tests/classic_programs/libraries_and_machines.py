# SPDX-License-Identifier: Apache-2.0
"""Parameters, libraries of functions, machines, errors."""
import json, os, tempfile, pickle

from harness import program, raises, refusing, same, numbers, evaluate
from tvm import relay, te, tir, topi, runtime, rpc
from tvm.contrib import graph_executor, utils, cc
from tvm.relay import transform, op
from tvm.relay.prelude import Prelude, StaticTensorArrayOps
from tvm.relay.testing import run_infer_type, run_opt_pass, count as _c
import numpy as np
import tvm
import tvm.testing


@program
def save_load():
    x = np.ones((10, 2)).astype("float32")
    y = np.ones((1, 2, 3)).astype("float32")
    b = runtime.save_param_dict({"x": x, "y": y})
    assert isinstance(b, bytearray)
    p = runtime.load_param_dict(b)
    assert len(p) == 2
    np.testing.assert_equal(p["x"].numpy(), x)
    np.testing.assert_equal(p["y"].numpy(), y)
    assert relay.save_param_dict is not None
    assert relay.load_param_dict(b)["x"].shape == (10, 2)


@program
def param_bfloat16():
    from tvm.relay.op import cast
    d = {"x": np.zeros((2,), "float16")}
    assert runtime.load_param_dict(runtime.save_param_dict(d))["x"].dtype == "float16"


@program
def ndarray_reflection():
    np_array = np.random.uniform(size=(10, 2)).astype("float32")
    t = tvm.nd.array(np_array)
    d = {"x": t, "y": t}
    assert d["x"].same_as(d["y"])
    p = runtime.load_param_dict(runtime.save_param_dict(d))
    assert len(p) == 2


@program
def bigendian_params():
    with refusing((ValueError, tvm.TVMError)):
        runtime.load_param_dict(b"nothing at all here")


@program
def module_save_object():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], "llvm", name="addone")
    with tempfile.TemporaryDirectory() as d:
        o, so, bc, ll, asm = (os.path.join(d, "x." + e) for e in ("o", "so", "bc", "ll", "s"))
        f.save(o)
        f.save(bc)
        f.save(ll)
        f.save(asm)
        assert "define" in open(ll).read()
        cc.create_shared(so, [o])
        m = tvm.runtime.load_module(so)
        a, b = (tvm.nd.array(np.zeros(4, "float32")), tvm.nd.empty((4,)))
        m["addone"](a, b)
        assert (b.numpy() == 1).all()
        m.entry_func(a, b) if m.implements_function("__tvm_main__") else None
        with refusing(Exception):
            tvm.runtime.load_module(os.path.join(d, "none.so"))


@program
def device_module_dump_c():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], "c", name="addone")
    assert "addone" in f.get_source()
    assert f.type_key == "c"
    with tempfile.TemporaryDirectory() as d:
        p = os.path.join(d, "l.so")
        f.export_library(p)
        m = tvm.runtime.load_module(p)
        a, b = (tvm.nd.array(np.zeros(4, "float32")), tvm.nd.empty((4,)))
        m["addone"](a, b)
        assert (b.numpy() == 1).all()


@program
def combine_modules():

    def one(n, c):
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + c)
        return tvm.build(te.create_schedule(B.op), [A, B], "llvm", name=n)
    f1, f2 = (one("f1", 1.0), one("f2", 2.0))
    with tempfile.TemporaryDirectory() as d:
        p = os.path.join(d, "l.so")
        f1.import_module(f2)
        f1.export_library(p)
        m = tvm.runtime.load_module(p)
        b = tvm.nd.empty((4,))
        m["f2"](tvm.nd.array(np.zeros(4, "float32")), b) if m.implements_function("f2", True) else m.get_function("f2", True)(tvm.nd.array(np.zeros(4, "float32")), b)
        assert (b.numpy() == 2).all()


@program
def vm_serialise():
    x = relay.var("x", shape=(4,))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], x + x)), "llvm")
    code, lib = exe.save()
    assert isinstance(code, bytearray)
    e2 = runtime.vm.Executable.load_exec(code, lib)
    vm = runtime.vm.VirtualMachine(e2, tvm.cpu())
    np.testing.assert_allclose(vm.invoke("main", numbers(4)).numpy(), 2 * numbers(4))
    with refusing((TypeError, tvm.TVMError)):
        runtime.vm.Executable.load_exec("x", lib)


@program
def vm_lower_codegen():
    x = relay.var("x", shape=(4,))
    c = relay.vm.VMCompiler()
    c.lower(tvm.IRModule.from_expr(relay.Function([x], x)), target="llvm")
    c.codegen()
    assert isinstance(c.get_exec(), runtime.vm.Executable)
    c2 = relay.vm.VMCompiler()
    c2.set_params({})
    m, p = c2.optimize(tvm.IRModule.from_expr(relay.Function([x], x)), target="llvm")
    assert isinstance(m, tvm.IRModule)


@program
def vm_set_inputs():
    x, y = (relay.var("x", shape=(2,)), relay.var("y", shape=(2,)))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x, y], x - y)), "llvm")
    vm = runtime.vm.VirtualMachine(exe, tvm.cpu())
    a, b = (numbers(2), numbers(2, seed=3))
    vm.set_input("main", a, b)
    np.testing.assert_allclose(vm.invoke("main").numpy(), a - b)
    vm.set_input("main", y=b, x=a)
    np.testing.assert_allclose(vm.invoke("main").numpy(), a - b)
    vm.set_one_input("main", 0, b)
    vm.set_one_input("main", y=a)
    np.testing.assert_allclose(vm.invoke("main").numpy(), b - a)
    vm.invoke_stateful("main", a, b)
    np.testing.assert_allclose(vm.get_outputs()[0].numpy(), a - b)
    assert vm.get_input_index("y", "main") == 1
    assert vm.get_input_index("z", "main") == -1


@program
def vm_memory_cfg():
    x = relay.var("x", shape=(2,))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], x)), "llvm")
    runtime.vm.VirtualMachine(exe, tvm.cpu(), memory_cfg="naive")
    runtime.vm.VirtualMachine(exe, tvm.cpu(), memory_cfg={tvm.cpu(): "pooled"})
    with refusing(TypeError):
        runtime.vm.VirtualMachine("x", tvm.cpu())
    with refusing((TypeError, ValueError)):
        runtime.vm.VirtualMachine(exe, "cpu")


@program
def error_classes():
    for n in ("TVMError", "InternalError", "OpError", "OpNotImplemented", "OpAttributeRequired", "OpAttributeInvalid", "OpAttributeUnImplemented", "OpNotImplemented", "RPCError", "RPCSessionTimeoutError", "DiagnosticError", "RPCError"):
        assert issubclass(getattr(tvm.error, n), Exception), n
    assert issubclass(tvm.error.OpNotImplemented, NotImplementedError)
    assert issubclass(tvm.error.OpAttributeInvalid, AttributeError)
    assert tvm.TVMError is tvm.error.TVMError
    assert issubclass(tvm.error.InternalError, tvm.TVMError)


@program
def register_error_class():

    @tvm.error.register_error
    class B1Error(RuntimeError):
        pass

    def f():
        raise B1Error("no")
    with refusing(B1Error):
        tvm.runtime.convert(f)()

    @tvm.register_error("MyB1")
    class Q(ValueError):
        pass
    with refusing(Q):
        tvm.testing.test_raise_error_callback("MyB1: hello")()


@program
def error_from_callback_keeps_type():
    for k in (ValueError, TypeError, KeyError, IndexError, NotImplementedError, AttributeError):

        def f():
            raise k("msg")
        with refusing(k):
            tvm.runtime.convert(f)()
    with refusing(ValueError):
        tvm.testing.ErrorTest(0, 1)
    with refusing(tvm.error.InternalError):
        tvm.testing.ErrorTest(1, 1)


@program
def testing_module_functions():
    tvm.testing.assert_allclose(np.ones(2), np.ones(2) + 1e-09)
    with refusing(AssertionError):
        tvm.testing.assert_allclose(np.ones(2), np.zeros(2))
    tvm.testing.check_numerical_grads(lambda x: (x ** 2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    assert tvm.testing.echo(3) == 3
    assert tvm.testing.echo("a") == "a"
    assert tvm.testing.nop(1) is None
    with refusing(AssertionError):
        (_ for _ in ()).throw(AssertionError())
    f = tvm.support.FrontendTestModule()
    if f is not None:
        f["add"] = lambda a, b: a + b
        assert f["add"](1, 2) == 3
