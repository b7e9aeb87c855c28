# SPDX-License-Identifier: Apache-2.0
"""Builds and graphs, parameters, gradients, values of the prelude and testing fixtures."""
import json
import os

import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, runtime, te
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import testing, transform
from tvm.relay.backend import te_compiler
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.prelude import Prelude
from tvm.relay.testing import check_grad, run_infer_type, run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr

from harness import program, raises, numbers


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
