# SPDX-License-Identifier: Apache-2.0
"""Together in one file: executors, the virtual machine, free sizes, builds, parameters, gradients and testing utilities."""
import collections
import json
import os
import numpy as np
import pytest
import tvm
import tvm.testing
import tvm.topi.testing
from harness import program, raises, numbers
from tvm import relay, runtime, te
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import testing, transform, vm as _vm
from tvm.relay.backend import te_compiler
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.loops import while_loop
from tvm.relay.prelude import Prelude
from tvm.relay.scope_builder import ScopeBuilder
from tvm.relay.testing import check_grad, run_infer_type, mlp, run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.runtime import container
from tvm.runtime import vm as vm_rt


def any_dims(n):
    return tuple(relay.Any() for _ in range(n))


def check_result(args, mod, expected, flatten=False, assert_shape=False, only_vm=False, targets=None):
    expected = expected if isinstance(expected, list) else [expected]
    for kind in ["debug", "vm"]:
        for tgt, dev in targets or tvm.testing.enabled_targets():
            if kind == "debug" and (only_vm or dev.device_type != tvm.cpu().device_type):
                continue
            result = relay.create_executor(kind, mod=mod, device=dev, target=tgt).evaluate()(*args)
            result = result if isinstance(result, list) or not hasattr(result, "numpy") else [result]
            for r, e in zip(result, expected):
                if assert_shape:
                    assert r.numpy().shape == e, (r.numpy().shape, e)
                else:
                    np.testing.assert_allclose(e, r.numpy(), rtol=2e-5, atol=1e-6)


def veval(f, *args, device=tvm.cpu(), target="llvm"):
    if isinstance(f, relay.Expr):
        mod = tvm.IRModule()
        mod["main"] = f
        exe = relay.vm.compile(mod, target)
        return runtime.vm.VirtualMachine(exe, device).invoke("main", *args)
    exe = relay.vm.compile(f, target)
    return runtime.vm.VirtualMachine(exe, device).invoke("main", *args)


# ---- sizes of a run
@program(*[(op, s) for op in ("add", "less", "maximum") for s in (((relay.Any(),), (3, 2), (1,), (3, 2)), ((relay.Any(), 2), (1, 2), (4, 2), (1, 2)), ((relay.Any(), 2), (3, 1), (3, 2), (3, 1)), ((relay.Any(), relay.Any()), (3, 2, 1), (4, 5), None))])
def any_broadcast(name, case):
    xs, ys, xr, yr = case
    if yr is None:
        xs, ys, xr, yr = (relay.Any(), relay.Any()), (relay.Any(), 1), (4, 5), (4, 1)
    x, y = relay.var("x", shape=xs), relay.var("y", shape=ys)
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x, y], getattr(relay, name)(x, y))
    a, b = numbers(*xr), numbers(*yr, seed=2)
    check_result([a, b], mod, getattr(np, name)(a, b))


@program("argmax", "argmin", "all", "sum", "mean", "max", "variance")
def any_reduction(name):
    dtype = "bool" if name == "all" else "float32"
    for shape, axis, keepdims, real in ((any_dims(3), None, False, (3, 4, 5)), (any_dims(4), 1, True, (3, 4, 5, 2)), (any_dims(2), 0, False, (3, 4))):
        mod = tvm.IRModule()
        x = relay.var("data", shape=shape, dtype=dtype)
        mod["main"] = relay.Function([x], getattr(relay, name)(x, axis=axis, keepdims=keepdims, exclude=False))
        a = numbers(*real, dtype=dtype)
        want = {"variance": np.var}.get(name, getattr(np, name, None))(a, axis=axis)
        if keepdims:
            want = np.expand_dims(want, axis)
        check_result([a], mod, want)


@program
def any_concatenate_and_stack():
    n = relay.Any()
    x, y, z = relay.var("x", shape=(n, 2)), relay.var("y", shape=(1, 2)), relay.var("z", shape=(n, 2))
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x, y], relay.op.concatenate([x, y], axis=0))
    a, b = numbers(3, 2), numbers(1, 2)
    check_result([a, b], mod, np.concatenate([a, b]))
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x, z], relay.stack([x, z], axis=1))
    check_result([a, a], mod, np.stack([a, a], 1))
    n2 = relay.Any()
    u = relay.var("u", shape=(2, n2))
    mod = tvm.IRModule.from_expr(relay.Function([u], relay.op.concatenate([u, u], axis=1)))
    check_result([numbers(2, 3)], mod, np.tile(numbers(2, 3), 2))


@program(((1, 3, relay.Any(), relay.Any()), (-1, 2), (1, 3, 4, 2)), ((relay.Any(), 4), (0, -1, 2), (3, 4)), (any_dims(2), (-1,), (2, 3)), (any_dims(3), (0, -3), (2, 3, 4)))
def any_reshape(shape, new, real):
    x = relay.var("x", shape=shape)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.reshape(x, new)))
    a = numbers(*real)
    want = {(-1, 2): a.reshape(-1, 2), (0, -1, 2): a.reshape(3, -1, 2) if a.ndim == 2 else a, (-1,): a.reshape(-1), (0, -3): a.reshape(a.shape[0], -1)}[new]
    check_result([a], mod, want)


@program
def any_reshape_like_and_shape_of():
    d, s = relay.var("d", shape=(relay.Any(), 3, 10)), relay.var("s", shape=any_dims(2))
    mod = tvm.IRModule.from_expr(relay.Function([d, s], relay.reshape_like(d, s)))
    a, b = numbers(3, 3, 10), numbers(9, 10)
    check_result([a, b], mod, a.reshape(9, 10))
    x = relay.var("x", shape=any_dims(2))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.shape_of(x, "int64")))
    check_result([b], mod, np.array([9, 10]))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.take(relay.shape_of(x, "int64"), relay.const(1))))
    check_result([b], mod, np.array(10))


@program
def any_layers():
    x = relay.var("x", shape=(relay.Any(), 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    a, k = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, padding=1, channels=4, kernel_size=3)))
    check_result([a, k], mod, tvm.topi.testing.conv2d_nchw_python(a, k, 1, 1))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.max_pool2d(x, (2, 2), (2, 2))))
    check_result([a], mod, a.reshape(2, 3, 4, 2, 4, 2).max((3, 5)))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.global_avg_pool2d(x)))
    check_result([a], mod, a.mean((2, 3), keepdims=True))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.batch_flatten(x)))
    check_result([a], mod, a.reshape(2, -1))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x, axis=1)))
    e = np.exp(a - a.max(1, keepdims=True))
    check_result([a], mod, e / e.sum(1, keepdims=True))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))))
    check_result([a], mod, np.pad(a, ((0, 0), (0, 0), (1, 1), (2, 2))))


@program
def any_conv_transpose_and_dense():
    x, w = relay.var("x", shape=(relay.Any(), 4, 5, 5)), relay.var("w", shape=(4, 2, 3, 3))
    a, k = numbers(2, 4, 5, 5), numbers(4, 2, 3, 3)
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d_transpose(x, w, strides=(2, 2), padding=(1, 1), output_padding=(1, 1), channels=2, kernel_size=(3, 3))))
    check_result([a, k], mod, tvm.topi.testing.conv2d_transpose_nchw_python(a, k, (2, 2), (1, 1), (1, 1)))
    d, v = relay.var("d", shape=any_dims(2)), relay.var("v", shape=any_dims(2))
    mod = tvm.IRModule.from_expr(relay.Function([d, v], relay.nn.dense(d, v)))
    p, q = numbers(4, 40), numbers(50, 40)
    check_result([p, q], mod, p @ q.T, only_vm=True)
    b, c = relay.var("b", shape=(1, relay.Any(), relay.Any())), relay.var("c", shape=(1, relay.Any(), relay.Any()))
    mod = tvm.IRModule.from_expr(relay.Function([b, c], relay.nn.batch_matmul(b, c)))
    p, q = numbers(1, 4, 8), numbers(1, 3, 8)
    check_result([p, q], mod, p @ q.transpose(0, 2, 1))


@program((2, 0, (9, 3), ([2, 5], None)), (3, 0, (9,), None), (2, 1, (4, 6), None))
def any_split(sections, axis, real, _):
    x = relay.var("x", shape=any_dims(len(real)))
    y = relay.split(x, sections if real[axis] % sections == 0 else [2, 5], axis)
    mod = tvm.IRModule.from_expr(relay.Function([x], y.astuple()))
    a = numbers(*real)
    check_result([a], mod, np.split(a, sections if real[axis] % sections == 0 else [2, 5], axis))


@program
def any_moves():
    x = relay.var("x", shape=any_dims(3))
    a = numbers(2, 3, 4)
    for e, want in ((relay.transpose(x, (2, 0, 1)), a.transpose(2, 0, 1)), (relay.expand_dims(x, 1, 2), a[:, None, None]), (relay.tile(x, (2, 1, 1)), np.tile(a, (2, 1, 1))), (relay.reverse(x, 1), a[:, ::-1]),
                    (relay.repeat(x, 2, 0), a.repeat(2, 0)), (relay.strided_slice(x, [0, 1, 0], [2, 3, 4]), a[:, 1:3]), (relay.cast(x, "int32"), a.astype("int32")), (relay.full_like(x, relay.const(3.0)), np.full_like(a, 3)),
                    (relay.zeros_like(x), np.zeros_like(a)), (relay.clip(x, -0.5, 0.5), a.clip(-0.5, 0.5)), (relay.where(relay.less(x, relay.const(0.0)), x, relay.zeros_like(x)), np.minimum(a, 0)),
                    (relay.argsort(x, axis=2, dtype="int32"), np.argsort(a, 2)), (relay.take(x, relay.const([1, 0]), axis=1), a[:, [1, 0]]), (relay.cumsum(x, axis=1), a.cumsum(1)), (relay.layout_transform(relay.expand_dims(x, 0), "NCHW", "NHWC"), a[None].transpose(0, 2, 3, 1)),
                    (relay.squeeze(relay.expand_dims(x, 0), [0]), a), (relay.one_hot(relay.cast(relay.argmax(x, axis=2), "int32"), relay.const(1.0), relay.const(0.0), 4, -1, "float32"), np.eye(4, dtype="float32")[a.argmax(2)])):
        mod = tvm.IRModule.from_expr(relay.Function([x], e))
        check_result([a], mod, want)


@program
def any_topk_and_where():
    x = relay.var("x", shape=any_dims(2))
    k = relay.TensorType((), "int32")
    kv = relay.var("k", k)
    out = relay.topk(x, kv, ret_type="indices")
    mod = tvm.IRModule.from_expr(relay.Function([x, kv], out))
    a = numbers(7, 5)
    check_result([a, np.array(2, "int32")], mod, np.argsort(-a, 1)[:, :2])
    y = relay.argwhere(x)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    z = (a > 0) * a
    check_result([z], mod, np.argwhere(z))
    n = np.zeros((3, 3), "float32")
    check_result([n], mod, np.argwhere(n))
    i = relay.var("i", shape=(relay.Any(), 1), dtype="int64")
    mod = tvm.IRModule.from_expr(relay.Function([x, i], relay.gather_nd(x, relay.transpose(i))))
    check_result([a, np.array([[1], [3]])], mod, a[[1, 3]])


@program
def any_arange():
    m, n, k = relay.ShapeVar("m"), 1, 1
    x = relay.var("x", shape=(relay.Any(), 3))
    y0 = relay.op.shape_of(x)
    y1 = relay.take(y0, relay.const(0, "int32"))
    y2 = relay.op.arange(y1, dtype="int32")
    y3 = y2 + relay.const(1, dtype="int32")
    mod = tvm.IRModule.from_expr(relay.Function([x], y3))
    check_result([numbers(10, 3)], mod, np.arange(10) + 1)


@program
def recursive_concatenation():
    x = relay.var("x", shape=(relay.Any(), 1))
    i = relay.var("i", "int32")
    inp = relay.var("input", shape=(5, 1))
    ind = relay.var("ind", shape=(), dtype="int32")

    def cond(i, st):
        return relay.less(i, relay.const(5, "int32"))

    def body(i, st):
        y = relay.reshape(relay.cast(i, "float32"), (1, 1))
        return i + relay.const(1, "int32"), relay.op.concatenate([st, y], axis=0)
    start = relay.var("start", shape=(), dtype="int32")
    loop = while_loop(cond, [i, relay.var("st", shape=(relay.Any(), 1))], body)
    out = loop(start, relay.op.reshape(relay.const(0.0), (1, 1)))
    mod = tvm.IRModule.from_expr(relay.Function([start], relay.TupleGetItem(out, 1)))
    check_result([np.array(0, "int32")], mod, np.array([0, 0, 1, 2, 3, 4.0]).reshape(6, 1))


@program
def free_type_as_an_error():
    x, y = relay.var("x", shape=(relay.Any(), 3)), relay.var("y", shape=(2, 4))
    raises(tvm.TVMError, run_infer_type, relay.add(x, y))
    f = relay.Function([relay.var("x", shape=(relay.Any(), 2))], relay.const(1.0))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    e = relay.create_executor("vm", mod=mod).evaluate()
    raises(Exception, e, numbers(2, 4))


# ---- the virtual machine
@program
def machines():
    x = relay.var("x", shape=(10, 10))
    f = relay.Function([x], x)
    a = numbers(10, 10)
    assert np.array_equal(veval(f, a).numpy(), a)
    x, i = relay.var("x", shape=(10, 10)), relay.var("i", shape=[], dtype="bool")
    assert np.array_equal(veval(relay.Function([i], relay.If(i, relay.const(1.0), relay.const(2.0))), np.array(True)).numpy(), 1)
    x = relay.var("x", shape=(2,))
    t = veval(relay.Function([x], relay.Tuple([x, x + relay.const(1.0)])), np.array([1, 2], "float32"))
    assert len(t) == 2 and isinstance(t, tvm.runtime.container.ADT) and t[1].numpy()[0] == 2
    t = veval(relay.Function([x], relay.Tuple([])), np.array([1, 2], "float32"))
    assert len(t) == 0


@program
def recursion_on_a_machine():
    mod = tvm.IRModule({})
    sum_up = relay.GlobalVar("sum_up")
    i = relay.var("i", shape=[], dtype="int32")
    sb = ScopeBuilder()
    with sb.if_scope(relay.equal(i, relay.const(0, dtype="int32"))):
        sb.ret(i)
    with sb.else_scope():
        one_less = relay.subtract(i, relay.const(1, dtype="int32"))
        sb.ret(relay.add(relay.Call(sum_up, [one_less]), i))
    mod[sum_up] = relay.Function([i], sb.get(), ret_type=relay.TensorType([], "int32"))
    mod = transform.InferType()(mod)
    iarg = relay.var("i", shape=[], dtype="int32")
    mod["main"] = relay.Function([iarg], sum_up(iarg))
    assert veval(mod, np.array(10, "int32")).numpy() == 55
    check_result([np.array(4, "int32")], mod, 10)


@program
def lists_on_a_machine():
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    for name, args, want in (("nth", lambda l: [l, relay.const(1)], 20), ("length", lambda l: [l], 3), ("hd", lambda l: [l], 10)):
        l = cons(relay.const(10), cons(relay.const(20), cons(relay.const(30), nil())))
        m = mod
        m["main"] = relay.Function([], mod.get_global_var(name)(*args(l)))
        r = veval(m)
        assert (r.numpy()) == want
    y = relay.var("y", "int32")
    mod["main"] = relay.Function([], mod.get_global_var("map")(relay.Function([y], y + relay.const(1)), l))
    r = veval(mod)
    assert r.tag == cons.tag and r[0].numpy() == 11 and len(r) == 2
    assert relay.create_executor("vm", mod=mod).evaluate()().tag == cons.tag


@program
def closures_on_a_machine():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    inner = relay.Function([x], x + y)
    ff = relay.Function([y], inner)
    c = relay.Call(relay.Call(ff, [relay.const(1.0)]), [relay.const(2.0)])
    assert veval(relay.Function([], c)).numpy() == 3
    mod = tvm.IRModule()
    g = relay.GlobalVar("g")
    mod[g] = relay.Function([x], x * relay.const(2.0))
    mod["main"] = relay.Function([], relay.Let(relay.var("f"), g, relay.Call(g, [relay.const(4.0)])))
    assert veval(mod).numpy() == 8


@program
def executables_saved():
    mod, params = relay.testing.mlp.get_workload(1)
    exe = relay.vm.compile(mod, target="llvm", params=params)
    code, lib = exe.save()
    assert isinstance(code, bytearray)
    tmp = utils.tempdir()
    lib.export_library(tmp.relpath("lib.so"))
    with open(tmp.relpath("code.ro"), "wb") as out:
        out.write(code)
    loaded = tvm.runtime.load_module(tmp.relpath("lib.so"))
    exe2 = runtime.vm.Executable.load_exec(bytearray(open(tmp.relpath("code.ro"), "rb").read()), loaded)
    a = numbers(1, 1, 28, 28)
    vm = runtime.vm.VirtualMachine(exe2, tvm.cpu())
    first = vm.run(a).numpy()
    lib = relay.build(mod, "llvm", params=params)
    g = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    g.set_input("data", a)
    g.run()
    np.testing.assert_allclose(first, g.get_output(0).numpy(), rtol=1e-4, atol=1e-6)
    assert "main" in exe.globals and exe.stats and "VM Function" in exe.bytecode and isinstance(exe.primitive_ops, list)
    assert exe.lib is not None and exe.module is not None


@program
def inputs_of_a_machine():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], x - y))
    exe = relay.vm.compile(mod, "llvm")
    vm = runtime.vm.VirtualMachine(exe, tvm.cpu())
    a, b = np.array([3, 4], "float32"), np.array([1, 1], "float32")
    vm.set_input("main", a, b)
    vm.run()
    np.testing.assert_allclose(vm.get_outputs()[0].numpy(), a - b)
    vm.set_input("main", **{"y": a, "x": b})
    np.testing.assert_allclose(vm.run().numpy(), b - a)
    vm.set_one_input("main", 0, a)
    vm.set_one_input("main", "y", b)
    np.testing.assert_allclose(vm.run().numpy(), a - b)
    vm.invoke_stateful("main", b, a)
    np.testing.assert_allclose(vm.get_outputs()[0].numpy(), b - a)
    out = tvm.nd.empty((2,))
    vm.set_outputs("main", out)
    r = vm.benchmark(tvm.cpu(), a, b, repeat=2, number=2)
    assert r.mean > 0 and len(r.results) == 2
    raises(Exception, lambda: vm.set_input("main", a))
    assert exe.get_function_params("main") == ["x", "y"]


@program
def compiler_of_machines():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(np.array([1, 2], "float32"))))
    c = relay.vm.VMCompiler()
    c.lower(mod, "llvm")
    c.codegen()
    exe = c.get_exec()
    assert runtime.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", np.zeros(2, "float32")).numpy()[1] == 2
    opt, params = c.optimize(mod, target="llvm")
    assert isinstance(opt, tvm.IRModule)
    c.set_params({})
    assert isinstance(c.get_params(), dict)


@program
def profilers_of_machines():
    from tvm.runtime import profiler_vm
    if not profiler_vm.enabled():
        return
    mod, params = testing.mlp.get_workload(1)
    exe = _vm.compile(mod, "llvm", params=params)
    vm = profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
    report = vm.profile(numbers(1, 1, 28, 28), func_name="main")
    text = str(report)
    assert "fused_nn_softmax" in text and "Total" in text and "Duration" in report.csv()
    assert "calls" in json.loads(report.json()) and report.table()


# ---- builds and graphs
@program(("graph",), ("vm",), ("debug",))
def plain_program(kind):
    x, y = relay.var("x", shape=(1, 4)), relay.var("y", shape=(1, 4))
    f = relay.Function([x, y], relay.add(relay.add(x, y), relay.add(x, relay.const(2.0))))
    a, b = numbers(1, 4), numbers(1, 4, seed=3)
    np.testing.assert_allclose(relay.create_executor(kind).evaluate(f)(a, b).numpy(), a + b + a + 2, rtol=1e-6)
    np.testing.assert_allclose(relay.create_executor(kind).evaluate(f)(y=b, x=a).numpy(), a + b + a + 2, rtol=1e-6)
    e = relay.create_executor(kind, mod=tvm.IRModule.from_expr(f), device=tvm.cpu(0), target=tvm.target.Target("llvm"))
    np.testing.assert_allclose(e.evaluate()(a, tvm.nd.array(b)).numpy(), a + b + a + 2, rtol=1e-6)
    raises(Exception, lambda: e.evaluate()(a))
    raises(Exception, lambda: e.evaluate()(a, b, b))


@program
def graph_json():
    x = relay.var("x", shape=(10, 5))
    y = relay.var("y", shape=(1, 5))
    f = relay.Function([x, y], relay.exp(relay.add(x, y)))
    lib = relay.build(tvm.IRModule.from_expr(f), "llvm")
    g = json.loads(lib.get_graph_json())
    assert set(g) >= {"nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"} and len(g["arg_nodes"]) == 2
    assert g["attrs"]["shape"][0] == "list_shape" and g["attrs"]["dltype"][1][0] == "float32" and "storage_id" in g["attrs"]
    assert g["nodes"][0]["name"] == "x" and g["nodes"][0]["op"] == "null" and g["nodes"][-1]["op"] == "tvm_op"
    graph, mod, params = relay.build(tvm.IRModule.from_expr(f), "llvm")
    m = graph_executor.create(graph, mod, tvm.cpu())
    a, b = numbers(10, 5), numbers(1, 5)
    m.set_input("x", tvm.nd.array(a))
    m.set_input(y=b)
    m.run()
    np.testing.assert_allclose(m.get_output(0, tvm.nd.empty((10, 5))).numpy(), np.exp(a + b), rtol=1e-5)
    assert m.get_num_outputs() == 1 and m.get_num_inputs() == 2 and m.get_input("x").numpy().shape == (10, 5)
    shapes, dtypes = m.get_input_info()
    assert shapes["x"] == (10, 5) or list(shapes["x"]) == [10, 5]
    assert dtypes["y"] == "float32"
    assert m.get_input_index("x") == 0


@program
def shared_memory_of_plans():
    x = relay.var("x", shape=(1, 100))
    z = x
    for _ in range(6):
        z = relay.exp(relay.op.annotation.stop_fusion(z))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], z)), "llvm")
    g = json.loads(lib.get_graph_json())
    ids = g["attrs"]["storage_id"][1]
    assert len(set(ids)) <= 4


@program
def reshape_needs_no_kernel():
    x = relay.var("x", shape=(7, 16))
    f = relay.Function([x], relay.reshape(relay.nn.relu(relay.reshape(x, (14, 8))), (16, 7)))
    lib = relay.build(tvm.IRModule.from_expr(f), "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    a = numbers(7, 16)
    m.run(x=a)
    np.testing.assert_allclose(m.get_output(0).numpy(), np.maximum(a, 0).reshape(16, 7))


@program
def parameters_in_files():
    params = {"a": tvm.nd.array(numbers(3)), "b": tvm.nd.array(np.array([[1, 2]], "int64"))}
    blob = relay.save_param_dict(params)
    assert isinstance(blob, (bytes, bytearray))
    back = relay.load_param_dict(blob)
    assert set(back) == {"a", "b"} and back["b"].dtype == "int64"
    np.testing.assert_array_equal(back["a"].numpy(), params["a"].numpy())
    blob = runtime.save_param_dict(params)
    np.testing.assert_array_equal(runtime.load_param_dict(blob)["b"].numpy(), [[1, 2]])
    folder = utils.tempdir()
    tmp = folder.relpath("p.bin")
    runtime.save_param_dict_to_file(params, tmp)
    raises((ValueError, tvm.TVMError, TypeError), relay.load_param_dict, b"not parameters at all")


@program
def debugged_graphs():
    mod, params = testing.mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    tmp = utils.tempdir()
    m = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu(), dump_root=tmp.relpath("d"))
    m.set_input(**lib.get_params())
    a = numbers(1, 1, 28, 28)
    m.set_input("data", a)
    m.run()
    assert os.path.exists(tmp.relpath("d"))
    found = [n for n in os.listdir(os.path.join(tmp.relpath("d"), os.listdir(tmp.relpath("d"))[0]))]
    assert any(n.endswith(".json") for n in found)
    m.run_individual(2, 1)
    assert m.get_output(0).numpy().shape == (1, 10)
    assert isinstance(m.profile(data=a).table(), str)
    m.exit()


@program("graph", "vm")
def benchmarks_of_executors(kind):
    x = relay.var("x", shape=(3,))
    f = relay.create_executor(kind, mod=tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))).evaluate()
    np.testing.assert_allclose(f(np.zeros(3, "float32")).numpy(), np.ones(3))


@program
def build_config_and_dicts():
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], relay.exp(x))
    with relay.build_config(opt_level=3):
        lib = relay.build(f, "llvm")
    lib = relay.build(f, target="llvm")
    assert lib.libmod_name == "default" or lib.module is not None
    lib = relay.build(tvm.IRModule.from_expr(f), tvm.target.Target("llvm", host="llvm"), mod_name="other")
    assert lib.libmod_name == "other" and lib["other"](tvm.cpu())
    with tvm.target.Target("llvm"):
        lib = relay.build(f)
    b = relay.build_module.BuildModule()
    b.build(tvm.IRModule.from_expr(f), "llvm")
    assert b.get_graph_json() and b.get_module() is not None
    raises((ValueError, tvm.TVMError, Exception), lambda: relay.build(f, "no_such_kind"))
    opt, p = relay.optimize(tvm.IRModule.from_expr(f), target="llvm")
    assert isinstance(opt, tvm.IRModule)


@program
def lowered_and_cached():
    x = relay.var("x", shape=(10,))
    f = run_infer_type(relay.Function([x], relay.exp(x)))
    tc = te_compiler.get()
    tc.clear()
    target = tvm.target.Target("llvm")
    mod = transform.FuseOps(0)(transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))))
    prim = mod["main"].body.op
    cached = tc.lower(prim, target)
    assert cached.target
    again = tc.lower(prim, target)
    assert cached.prim_fn_var.name_hint == again.prim_fn_var.name_hint
    jitted = tc.jit(prim, target)
    a, b = tvm.nd.array(numbers(10)), tvm.nd.empty((10,))
    jitted(a, b)
    np.testing.assert_allclose(b.numpy(), np.exp(a.numpy()), rtol=1e-5)


@program
def te_functions_of_relay():
    x = relay.var("x", shape=(3, 4))
    f = relay.Function([x], relay.nn.relu(x + relay.const(1.0)))
    prim = te.create_prim_func
    a = te.placeholder((3, 4), name="a")
    b = te.compute((3, 4), lambda i, j: a[i, j] * 2.0, name="b")
    fn = te.create_prim_func([a, b])
    assert isinstance(fn, tvm.tir.PrimFunc) and len(fn.params) == 2
    m = tvm.build(fn, target="llvm")
    p, q = tvm.nd.array(numbers(3, 4)), tvm.nd.empty((3, 4))
    m(p, q)
    np.testing.assert_allclose(q.numpy(), p.numpy() * 2)


@program(*["mlp", "resnet", "resnet_3d", "vgg", "mobilenet", "squeezenet", "inception_v3", "densenet", "dcgan", "dqn", "lstm", "yolo_detection", "temp_op_attr", "nat", "synthetic", "tf", "darknet", "py_converter", "init", "layers"])
def parts_of_testing(name):
    import importlib
    m = importlib.import_module(f"tvm.relay.testing.{name}")
    assert m.__name__.endswith(name)


@program
def networks():
    for name, kw, shape in (("resnet", dict(batch_size=1, num_layers=18, image_shape=(3, 32, 32)), (1, 1000)), ("dqn", dict(batch_size=1), None), ("dcgan", dict(batch_size=1), None), ("mlp", dict(batch_size=2), (2, 10)), ("synthetic", dict(), None)):
        mod, params = getattr(relay.testing, name).get_workload(**kw)
        assert "main" in [v.name_hint for v in mod.get_global_vars()] and params
        t = mod["main"].ret_type if mod["main"].ret_type is not None else mod["main"].checked_type.ret_type
        assert all(k in [p.name_hint for p in mod["main"].params] for k in params)
        if shape:
            assert tuple(int(s) for s in mod["main"].checked_type.ret_type.shape) == shape


@program
def initialisers():
    from tvm.relay.testing.init import create_workload, Xavier, Constant, Initializer
    x, w = relay.var("data", shape=(2, 8)), relay.var("fc_weight", shape=(4, 8))
    mod, params = create_workload(relay.Function([x, w], relay.nn.dense(x, w)), seed=1)
    assert list(params) == ["fc_weight"] and params["fc_weight"].shape == (4, 8)
    mod2, params2 = create_workload(relay.Function([x, w], relay.nn.dense(x, w)), seed=1)
    np.testing.assert_array_equal(params["fc_weight"].numpy(), params2["fc_weight"].numpy())
    mod, params = create_workload(relay.Function([x, w], relay.nn.dense(x, w)), Constant(2))
    assert (params["fc_weight"].numpy() == 2).all()


@program
def layers_of_testing():
    from tvm.relay.testing import layers
    x = relay.var("data", shape=(1, 3, 8, 8))
    y = layers.conv2d(data=x, channels=4, kernel_size=(3, 3), padding=(1, 1), name="c")
    y = layers.batch_norm_infer(data=y, name="bn")
    y = layers.dense_add_bias(data=relay.nn.batch_flatten(y), units=5, name="fc")
    f = relay.Function(relay.analysis.free_vars(y), y)
    assert [p.name_hint for p in f.params] == ["data", "c_weight", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "fc_weight", "fc_bias"]
    assert run_infer_type(f).ret_type == relay.TensorType((1, 5))


@program
def attributes_for_a_while():
    def other(attrs, inputs, types):
        return relay.exp(inputs[0])
    with TempOpAttr("nn.relu", "FTVMLegalize", other):
        x = relay.var("x", shape=(2,))
        out = run_opt_pass(relay.Function([x], relay.nn.relu(x)), transform.Legalize())
        assert out.body.op.name == "exp"
    assert relay.op.get("nn.relu").get_attr("FTVMLegalize") is None


# ---- gradients
@program("sigmoid", "tanh", "exp", "sqrt", "log", "rsqrt", "abs", "sin", "cos", "atan", "relu", "negative", "log2", "log10", "erf", "sinh", "cosh", "tan", "asin", "acos", "asinh", "acosh", "atanh")
def gradients_of_one(name):
    op = relay.nn.relu if name == "relu" else getattr(relay, name)
    for dtype in ("float32", "float64"):
        x = relay.var("x", shape=(3, 4), dtype=dtype)
        f = relay.Function([x], op(x))
        low, high = {"acosh": (1.2, 3), "asin": (-0.8, 0.8), "acos": (-0.8, 0.8), "atanh": (-0.8, 0.8)}.get(name, (0.2, 2.0))
        a = np.random.RandomState(4).uniform(low, high, (3, 4)).astype(dtype)
        check_grad(f, inputs=[a], eps=1e-6) if dtype == "float64" else check_grad(f, inputs=[a], eps=1e-2, atol=1e-1, rtol=1e-1)


@program("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")
def gradients_of_two(name):
    x, y = relay.var("x", shape=(3, 4), dtype="float64"), relay.var("y", shape=(4,), dtype="float64")
    rs = np.random.RandomState(5)
    check_grad(relay.Function([x, y], getattr(relay, name)(x, y)), inputs=[rs.uniform(0.5, 2, (3, 4)), rs.uniform(0.5, 2, (4,))])


@program
def gradients_of_layers():
    x, w = relay.var("x", shape=(1, 3, 6, 6), dtype="float64"), relay.var("w", shape=(4, 3, 3, 3), dtype="float64")
    check_grad(relay.Function([x, w], relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3))), mode="first_order")
    check_grad(relay.Function([x], relay.nn.max_pool2d(x, (2, 2), (2, 2))), scale=1)
    check_grad(relay.Function([x], relay.nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1), count_include_pad=True)))
    check_grad(relay.Function([x], relay.nn.global_avg_pool2d(x)))
    check_grad(relay.Function([x], relay.nn.softmax(x, axis=1)))
    check_grad(relay.Function([x], relay.nn.log_softmax(x, axis=1)))
    check_grad(relay.Function([x], relay.nn.batch_flatten(x)))
    b = relay.var("b", shape=(3,), dtype="float64")
    check_grad(relay.Function([x, b], relay.nn.bias_add(x, b)))
    d, k = relay.var("d", shape=(5, 4), dtype="float64"), relay.var("k", shape=(3, 4), dtype="float64")
    check_grad(relay.Function([d, k], relay.nn.dense(d, k)))
    p, q = relay.var("p", shape=(2, 3, 5), dtype="float64"), relay.var("q", shape=(2, 4, 5), dtype="float64")
    check_grad(relay.Function([p, q], relay.nn.batch_matmul(p, q)))
    u = relay.var("u", shape=(5, 4), dtype="float64")
    check_grad(relay.Function([u, d], relay.nn.cross_entropy(u, d)), eps=0.01, scale=0.1, mean=1)
    check_grad(relay.Function([u, d], relay.nn.cross_entropy_with_logits(u, d)), eps=0.01, scale=0.1, mean=1)


@program
def gradients_of_moves():
    x = relay.var("x", shape=(3, 4, 5), dtype="float64")
    y = relay.var("y", shape=(3, 4, 5), dtype="float64")
    for e in (relay.clip(x, 0.25, 0.75), relay.transpose(x, (0, 2, 1)), relay.expand_dims(x, 1, 2), relay.squeeze(relay.expand_dims(x, 1)), relay.reshape(x, (-1, 5)), relay.sum(x, axis=1), relay.max(x, axis=2), relay.min(x, axis=0), relay.mean(x, axis=(0, 2)),
              relay.sum(x), relay.variance(x, axis=1), relay.concatenate([x, x], 1), relay.stack([x, x], 0), relay.tile(x, (2, 1, 2)), relay.repeat(x, 2, 1), relay.take(x, relay.const([0, 2]), axis=0),
              relay.strided_slice(x, [0, 1, 1], [3, 3, 5], [1, 1, 2]), relay.reverse(x, 1), relay.broadcast_to(x, (2, 3, 4, 5)), relay.zeros_like(x), relay.copy(x), relay.annotation.checkpoint(x), relay.nn.leaky_relu(x, 0.2), relay.negative(x),
              relay.layout_transform(relay.expand_dims(x, 0), "NCHW", "NHWC"), relay.gather_nd(x, relay.const([[0, 1], [1, 2]])), relay.collapse_sum_like(x, relay.const(np.zeros((4, 5)))), relay.split(x, 2, 1)[0], x):
        f = relay.Function([x], e)
        check_grad(f, scale=1)
    c = relay.var("c", shape=(3, 4, 5), dtype="bool")
    check_grad(relay.Function([c, x, y], relay.where(c, x, y)), inputs=[numbers(3, 4, 5, dtype="bool"), np.random.randn(3, 4, 5), np.random.randn(3, 4, 5)], test_inputs=None)


@program
def gradient_structure():
    t = relay.TensorType((2, 3))
    x = relay.var("x", t)
    f = run_infer_type(relay.Function([x], x))
    b = run_infer_type(transform.gradient(f, mode="first_order"))
    assert b.checked_type == relay.FuncType([t], relay.TupleType([t, relay.TupleType([t])]))
    a = numbers(2, 3)
    fwd, (g,) = relay.create_executor().evaluate(b)(a)
    np.testing.assert_allclose(fwd.numpy(), a)
    np.testing.assert_allclose(g.numpy(), np.ones((2, 3)))
    y = relay.var("y", t)
    f = run_infer_type(relay.Function([x, y], x * y + x))
    for mode in ("first_order", "higher_order"):
        b = run_infer_type(transform.gradient(f, mode=mode))
        fwd, (gx, gy) = relay.create_executor().evaluate(b)(a, a + 1)
        np.testing.assert_allclose(gx.numpy(), a + 2, rtol=1e-6)
        np.testing.assert_allclose(gy.numpy(), a, rtol=1e-6)


# ---- prelude values
@program
def interpreter_values():
    r = relay.create_executor("debug").evaluate(relay.RefCreate(relay.const(3)))
    assert isinstance(r, RefValue) and r.value.numpy() == 3
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    v = relay.create_executor("debug", mod=mod).evaluate(cons(relay.const(1), nil()))
    assert isinstance(v, ConstructorValue) and v.constructor.name_hint == "Cons" and v.fields[0].numpy() == 1 and v.tag == cons.tag and len(v.fields) == 2
    t = relay.create_executor("debug").evaluate(relay.Tuple([relay.const(1), relay.const([2.0, 3.0])]))
    assert isinstance(t, tvm.runtime.container.ADT) and t[0].numpy() == 1 and list(t[1].numpy()) == [2, 3]


@program
def tensor_arrays():
    mod = tvm.IRModule()
    p = Prelude(mod)
    from tvm.relay.prelude import TensorArrayOps, StaticTensorArrayOps
    ops = TensorArrayOps(p, "float32")
    ops.register()
    make = p.get_global_var("tensor_array", "float32")
    ctor = p.get_tensor_ctor("tensor1", "float32")
    write, read = p.get_global_var("tensor_array_write", "float32"), p.get_global_var("tensor_array_read", "float32")
    v = relay.var("v", shape=(relay.Any(),))
    mod["main"] = relay.Function([v], read(write(make(relay.const(3)), relay.const(1), ctor(v)), relay.const(1)))
    r = relay.create_executor("debug", mod=mod).evaluate()(np.array([1, 2], "float32"))
    assert list(r.fields[0].numpy()) == [1, 2]
    st = StaticTensorArrayOps(p, "float32", (2, 3))
    st.register()
    make = p.get_global_var_static("tensor_array", "float32", (2, 3))
    assert p.mod["main"] is not None and make.name_hint


# ---- testing fixtures
@program
def testing_utilities():
    assert any("llvm" in str(target) for target, _ in tvm.testing.enabled_targets())
    tvm.testing.assert_allclose(np.ones(3), np.ones(3) + 1e-8)
    raises(AssertionError, lambda: tvm.testing.assert_allclose(np.ones(3), np.zeros(3)))
    assert tvm.testing.device_enabled("llvm") and not tvm.testing.device_enabled("cuda")
    p = tvm.testing.parameter(1, 2)
    q = tvm.testing.parameters((1, 2), (3, 4))
    assert p is not None and len(q) == 2
    tvm.testing.check_numerical_grads(lambda x: (x ** 2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    assert callable(tvm.testing.requires_llvm) and callable(tvm.testing.uses_gpu) and tvm.testing.requires_gpu is not None
    free = tvm.testing.object_use_count
    assert tvm.testing.utils


@program
def random_tests():
    from tvm.relay.testing import rand, create_workload, ctx_list, enabled_targets
    a = rand("float32", 3, 4)
    assert a.shape == (3, 4) and a.dtype == "float32"
    for target, dev in ctx_list():
        assert dev.exist


@program
def conversions_to_python():
    from tvm.relay.testing.py_converter import to_python, run_as_python
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    r = run_as_python(relay.Let(x, relay.const(3.0), x * x + relay.const(1.0)))
    assert r.numpy() == 10
    t = run_as_python(relay.Tuple([relay.const(1), relay.const(2)]))
    assert t[0].numpy() == 1 and isinstance(t, tvm.runtime.container.ADT)
    r = run_as_python(relay.If(relay.const(True), relay.const(1), relay.const(2)))
    assert r.numpy() == 1
    f = run_as_python(relay.Function([x], x + x))
    assert f(tvm.nd.array(np.array(2.0, "float32"))).numpy() == 4
    ref = run_as_python(relay.RefCreate(relay.const(1)))
    assert ref.value.numpy() == 1
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    v = run_as_python(cons(relay.const(1), nil()), mod)
    assert v.constructor.name_hint == "Cons"
