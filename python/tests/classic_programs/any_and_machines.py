# SPDX-License-Identifier: Apache-2.0
"""Sizes that only a run knows, by the virtual machine, and what else its users ask of it."""
import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, rpc, runtime
from tvm.contrib import utils
from tvm.relay import transform
from tvm.relay.loops import while_loop
from tvm.relay.testing import run_infer_type, mlp

from harness import program, raises, numbers

Q = relay.Any()


def check(args, mod, want, kinds=("vm",)):
    for kind in kinds:
        got = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*args)
        for g, w in zip(got if isinstance(want, list) else [got], want if isinstance(want, list) else [want]):
            tvm.testing.assert_allclose(g.numpy(), w, rtol=1e-5, atol=1e-5)


def mod_of(params, body):
    return tvm.IRModule.from_expr(relay.Function(params, body))


def any_dims(rank):
    return tuple(relay.Any() for _ in range(rank))


@program(("add", np.add), ("less", np.less), ("maximum", np.maximum), ("multiply", np.multiply))
def broadcasts_of_any(name, meaning):
    op = getattr(relay, name)
    for sx, sy, rx, ry in (((Q,), (3, 2), (1,), (3, 2)), ((Q, 2), (1, 2), (1, 2), (1, 2)), ((Q, 2), (3, Q), (3, 2), (3, 1)), ((3, Q), (Q,), (3, 2), (2,))):
        x, y = relay.var("x", shape=sx), relay.var("y", shape=sy)
        check([numbers(*rx), numbers(*ry)], mod_of([x, y], op(x, y)), meaning(numbers(*rx), numbers(*ry)))


@program
def broadcasts_that_cannot_be():
    x, y = relay.var("x", shape=(Q,)), relay.var("y", shape=(3,))
    f = relay.create_executor("vm", mod=mod_of([x, y], relay.add(x, y)), device=tvm.cpu(), target="llvm").evaluate()
    raises(tvm.error.TVMError, lambda: f(numbers(2), numbers(3)))


@program
def shapes_of_any():
    x = relay.var("x", shape=any_dims(3))
    check([numbers(2, 3, 4)], mod_of([x], relay.shape_of(x)), np.array([2, 3, 4]))
    check([numbers(2, 3, 4)], mod_of([x], relay.reshape(x, (1, -1))), numbers(2, 3, 4).reshape(1, 24))
    check([numbers(2, 3, 4)], mod_of([x], relay.reshape(x, (0, -1))), numbers(2, 3, 4).reshape(2, 12))
    check([numbers(2, 3, 4)], mod_of([x], relay.argmax(x, axis=-1)), numbers(2, 3, 4).argmax(-1))


@program
def ranges_of_any():
    start, step = relay.const(0), relay.const(2)
    n = relay.var("n", shape=(), dtype="int32")
    check([np.array(9, "int32")], mod_of([n], relay.arange(start, n, step, "int32")), np.arange(0, 9, 2))
    x = relay.var("x", shape=(Q,))
    check([numbers(5)], mod_of([x], relay.cast(relay.full_like(x, relay.const(2.0)), "int64")), np.full(5, 2))
    check([numbers(5)], mod_of([x], relay.ones_like(x)), np.ones(5))


@program
def concatenations_of_any():
    x, y = relay.var("x", shape=(Q, 2)), relay.var("y", shape=(1, 2))
    check([numbers(3, 2), numbers(1, 2)], mod_of([x, y], relay.concatenate([x, y], axis=0)), np.concatenate([numbers(3, 2), numbers(1, 2)], 0))
    xs = [relay.var(f"x{k}", shape=(Q,)) for k in range(3)]
    check([numbers(k + 1) for k in range(3)], mod_of(xs, relay.op.concatenate(xs, axis=0)), np.concatenate([numbers(k + 1) for k in range(3)]))


@program
def takes_gathers_and_one_hot_of_any():
    x, i = relay.var("x", shape=(Q, Q)), relay.var("i", shape=(Q,), dtype="int32")
    at = np.array([1, 0, 1], "int32")
    check([numbers(2, 4), at], mod_of([x, i], relay.take(x, i, axis=0)), numbers(2, 4)[at])
    check([at], mod_of([i], relay.one_hot(i, relay.const(1.0), relay.const(0.0), 3, -1, "float32")), np.eye(3)[at])
    g = relay.var("g", shape=(2, Q), dtype="int32")
    where = np.array([[0, 1, 1], [3, 2, 0]], "int32")
    check([numbers(2, 4), where], mod_of([x, g], relay.gather_nd(x, g)), numbers(2, 4)[tuple(where)])


@program
def splits_and_batches_of_any():
    x = relay.var("x", shape=(Q, 6))
    check([numbers(2, 6)], mod_of([x], relay.split(x, 3, axis=1).astuple()), np.split(numbers(2, 6), 3, 1))
    check([numbers(2, 6)], mod_of([x], relay.nn.batch_flatten(relay.expand_dims(x, 1))), numbers(2, 6))
    check([numbers(2, 6)], mod_of([x], relay.squeeze(relay.expand_dims(x, 0), [0])), numbers(2, 6))
    check([numbers(2, 6)], mod_of([x], relay.transpose(x)), numbers(2, 6).T)
    check([numbers(2, 6)], mod_of([x], relay.repeat(relay.tile(x, (1, 2)), 2, 0)), np.repeat(np.tile(numbers(2, 6), (1, 2)), 2, 0))


@program
def layers_of_any():
    x, w = relay.var("x", shape=(Q, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    want = tvm.topi.testing.conv2d_nchw_python(numbers(2, 3, 8, 8), numbers(4, 3, 3, 3), 1, 1)
    check([numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)], mod_of([x, w], relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=4)), want)
    check([numbers(2, 3, 8, 8)], mod_of([x], relay.nn.global_avg_pool2d(x)), numbers(2, 3, 8, 8).mean((2, 3), keepdims=True))
    check([numbers(2, 3, 8, 8)], mod_of([x], relay.nn.max_pool2d(x, (2, 2), (2, 2))), numbers(2, 3, 8, 8).reshape(2, 3, 4, 2, 4, 2).max((3, 5)))
    check([numbers(2, 3, 8, 8)], mod_of([x], relay.nn.pad(x, ((0, 0), (1, 1), (0, 0), (2, 2)))), np.pad(numbers(2, 3, 8, 8), ((0, 0), (1, 1), (0, 0), (2, 2))))
    check([numbers(2, 3, 8, 8)], mod_of([x], relay.nn.softmax(x, 1)), np.exp(numbers(2, 3, 8, 8)) / np.exp(numbers(2, 3, 8, 8)).sum(1, keepdims=True))


@program
def sorts_and_counts_of_any():
    x = relay.var("x", shape=(Q, Q))
    check([numbers(3, 5)], mod_of([x], relay.argsort(x, axis=1, dtype="int64")), np.argsort(numbers(3, 5), 1))
    check([numbers(3, 5)], mod_of([x], relay.topk(x, 2, axis=1, ret_type="values")), -np.sort(-numbers(3, 5), 1)[:, :2])
    check([numbers(3, 5)], mod_of([x], relay.op.contrib.ndarray_size(x)), np.array(15))
    check([np.array([[0, 1], [2, 0]], "float32")], mod_of([x], relay.argwhere(x)), np.array([[0, 1], [1, 0]]))


@program
def slices_by_tensors():
    x, b, e, s = relay.var("x", shape=any_dims(2)), relay.var("b", shape=(2,), dtype="int32"), relay.var("e", shape=(2,), dtype="int32"), relay.var("s", shape=(2,), dtype="int32")
    check([numbers(5, 6), np.array([1, 0], "int32"), np.array([4, 6], "int32"), np.array([1, 2], "int32")], mod_of([x, b, e, s], relay.strided_slice(x, b, e, s)), numbers(5, 6)[1:4, 0:6:2])
    z = relay.strided_slice(x, [1], [3], axes=[1])
    check([numbers(5, 6)], mod_of([x], z), numbers(5, 6)[:, 1:3])


@program
def types_of_any_meet():
    x = relay.var("x", shape=(Q, 4))
    assert isinstance(run_infer_type(relay.add(x, relay.const(np.zeros((3, 4), "float32")))).checked_type.shape[0], (relay.Any, tvm.tir.IntImm))
    c = relay.var("c", shape=(), dtype="bool")
    branch = relay.If(c, relay.var("p", shape=(2, 4)), x)
    out = run_infer_type(branch).checked_type
    assert isinstance(out.shape[0], relay.Any) and out.shape[1] == 4


@program
def the_shape_of_a_branch_is_the_one_taken():
    c, x, p = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(Q, 4)), relay.var("p", shape=(2, 4))
    f = mod_of([c, p, x], relay.shape_of(relay.If(c, p, x)))
    for taken, want in ((True, [2, 4]), (False, [5, 4])):
        check([np.array(taken), numbers(2, 4), numbers(5, 4)], f, np.array(want))


@program
def results_of_branches_differ_in_size():
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(Q,))
    f = mod_of([c, x], relay.If(c, relay.concatenate([x, x], 0), x))
    for v in (True, False):
        check([np.array(v), numbers(3)], f, np.concatenate([numbers(3)] * 2) if v else numbers(3))


@program
def a_loop_with_two_states():
    i, s = relay.var("i", shape=(), dtype="int32"), relay.var("s", shape=(Q, 2))
    loop = while_loop(lambda i, s: relay.less(i, relay.const(3)), [i, s], lambda i, s: [i + relay.const(1), relay.concatenate([s, relay.strided_slice(s, [0, 0], [1, 2])], 0)])
    x = relay.var("x", shape=(1, 2))
    check([numbers(1, 2)], mod_of([x], relay.TupleGetItem(loop(relay.const(0), x), 1)), np.repeat(numbers(1, 2), 4, 0))


@program
def functions_as_values_in_a_machine():
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    nil, cons, lst = p.mod.get_type("List")[2], p.mod.get_type("List")[1], p.mod.get_type("List")[0]
    compose = mod.get_global_var("compose")
    x = relay.var("x", "float32")
    sq = relay.Function([x], x * x)
    y = relay.var("y", "float32")
    mod["main"] = relay.Function([y], relay.Call(compose(sq, sq), [y]))
    check([np.float32(2)], mod, np.float32(16))
    assert nil is not None and cons is not None and lst is not None


@program
def matches_in_a_machine():
    mod = tvm.parser.fromtext("""#[version = "0.0.5"]
        type Shape { Circle(Tensor[(), float32]), Box(Tensor[(), float32], Tensor[(), float32]), None_, }
        def @area(%s: Shape) -> Tensor[(), float32] { match (%s) { Circle(%r) => %r * %r * 3f, Box(%w, %h) => %w * %h, None_ => 0f, } }
        def @main(%a: Tensor[(), float32]) -> Tensor[(), float32] { @area(Circle(%a)) + @area(Box(%a, 4f)) + @area(None_) }""")
    check([np.float32(2)], mod, np.float32(20), kinds=("vm", "debug"))


@program
def a_machine_over_a_session():
    mod, params = mlp.get_workload(1)
    with tvm.transform.PassContext(opt_level=3):
        exe = relay.vm.compile(mod, "llvm", params=params)
    temp = utils.tempdir()
    exe.mod.export_library(temp.relpath("vm.so"))
    server = rpc.Server("127.0.0.1")
    remote = rpc.connect("127.0.0.1", server.port)
    remote.upload(temp.relpath("vm.so"))
    machine = runtime.vm.VirtualMachine(remote.load_module("vm.so"), remote.cpu())
    x = tvm.nd.array(numbers(1, 1, 28, 28), remote.cpu())
    machine.set_input("main", **{"data": x})
    local = runtime.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", numbers(1, 1, 28, 28)).numpy()
    machine.invoke_stateful("main")
    np.testing.assert_allclose(machine.get_outputs()[0].numpy(), local, rtol=1e-5)
    server.terminate()


@program
def results_written_into_given_arrays():
    x = relay.var("x", shape=(2, 3))
    exe = relay.vm.compile(mod_of([x], relay.exp(x)), "llvm")
    machine = runtime.vm.VirtualMachine(exe, tvm.cpu())
    out = tvm.nd.empty((2, 3))
    machine.set_input("main", numbers(2, 3))
    machine.invoke_stateful("main")
    machine.get_outputs()[0].copyto(out)
    np.testing.assert_allclose(out.numpy(), np.exp(numbers(2, 3)), rtol=1e-5)
    report = runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu()).profile(numbers(2, 3))
    assert "fused_exp" in str(report) and "Total" in str(report) and "Duration (us)" in report.csv()
