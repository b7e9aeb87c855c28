# SPDX-License-Identifier: Apache-2.0
"""Executors, sizes that a run tells, and the virtual machine."""
import json

import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, runtime
from tvm.contrib import graph_executor, utils
from tvm.relay import testing, transform, vm as _vm
from tvm.relay.loops import while_loop
from tvm.relay.prelude import Prelude
from tvm.relay.scope_builder import ScopeBuilder
from tvm.relay.testing import run_infer_type

from harness import program, raises, numbers


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
