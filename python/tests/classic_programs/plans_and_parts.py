# SPDX-License-Identifier: Apache-2.0
"""Memory plans, factories by parts, external generators, data types of scripts, and parametrised tests as the classic plugin runs them."""
import json
import os
import subprocess
import sys

import numpy as np
import tvm
import tvm.testing
from tvm import relay, runtime, te, tir
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import transform
from tvm.relay.testing import mlp

from harness import program, raises, numbers


# ---- plans
def infer(f):
    return transform.InferType()(tvm.IRModule.from_expr(f))


@program
def a_plan_reuses_two_buffers():
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(1, 10))
    z = relay.add(x, relay.exp(y))
    for _ in range(5):
        z = relay.exp(z)
    mod = transform.InferType()(transform.FuseOps(0)(infer(relay.Function([x, y], z))))
    info = relay.backend._backend.GraphPlanMemory(mod["main"])
    ids, kinds = set(), set()
    for _, v in info.expr_to_storage_info.items():
        ids.update(v.storage_ids)
        kinds.update(v.device_types)
        assert len(v.storage_ids) == len(v.storage_sizes) == 1
    assert len(ids) == 4 and len(kinds) == 1


@program
def reshapes_share_storage_in_a_graph():
    x = relay.var("x", shape=(10, 4))
    xx = relay.abs(x)
    f = relay.Function([x], relay.Tuple([relay.reshape(relay.expand_dims(xx, axis=1), (1, 40)), relay.abs(relay.squeeze(relay.expand_dims(xx, axis=1), axis=[1])), relay.reshape(relay.expand_dims(xx, axis=0), (2, 20)) * relay.const(2.0)]))
    with tvm.transform.PassContext(opt_level=1):
        graph, lib, params = relay.build(tvm.IRModule.from_expr(f), "llvm")
    m = graph_executor.create(graph, lib, tvm.cpu(0))
    m.set_input("x", numbers(10, 4))
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), np.abs(numbers(10, 4)).reshape(1, 40))
    np.testing.assert_allclose(m.get_output(2).numpy(), np.abs(numbers(10, 4)).reshape(2, 20) * 2)


@program
def nested_tuples_become_results():
    x = relay.var("x", shape=(10,))
    x1 = x + relay.const(1.0)
    x2 = x1 + relay.const(1.0)
    f = relay.Function([x], relay.Tuple([x1, relay.Tuple([relay.Tuple([x2, x1]), x2])]))
    graph, lib, _ = relay.build(tvm.IRModule.from_expr(f), "llvm")
    m = graph_executor.create(graph, lib, device=tvm.cpu(0))
    m.set_input(x=numbers(10))
    m.run()
    assert m.get_num_outputs() == 4
    for k, add in enumerate((1, 2, 1, 2)):
        np.testing.assert_allclose(m.get_output(k).numpy(), numbers(10) + add, rtol=1e-6)


@program
def a_recurrent_cell():
    h = 8

    def unit(rnn_dim):
        X, W = relay.var("X", shape=(1, rnn_dim)), relay.var("W", shape=(3 * rnn_dim, rnn_dim))
        s = relay.split(relay.nn.dense(X, W), indices_or_sections=3, axis=1)
        out = relay.sigmoid(s[0]) + relay.tanh(s[1]) * relay.exp(s[2])
        return relay.Function([X, W], out)
    a, w = numbers(1, h), numbers(3 * h, h)
    for level in (0, 2, 3):
        with tvm.transform.PassContext(opt_level=level):
            graph, lib, params = relay.build(tvm.IRModule.from_expr(unit(h)), "llvm")
        m = graph_executor.create(graph, lib, tvm.cpu())
        m.set_input(X=a, W=w, **params)
        m.run()
        p = np.split(a @ w.T, 3, 1)
        np.testing.assert_allclose(m.get_output(0).numpy(), 1 / (1 + np.exp(-p[0])) + np.tanh(p[1]) * np.exp(p[2]), rtol=1e-4, atol=1e-5)


# ---- factories
@program
def parts_of_a_factory():
    mod, params = mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    data = numbers(1, 1, 28, 28)
    gmod = lib["default"](tvm.cpu(0))
    gmod["set_input"]("data", tvm.nd.array(data))
    gmod["run"]()
    out = gmod["get_output"](0).numpy()
    m = graph_executor.GraphModule(gmod)
    np.testing.assert_allclose(m.get_output(0).numpy(), out)
    temp = utils.tempdir()
    path = temp.relpath("deploy_lib.so")
    lib.export_library(path)
    code = f"""if True:
        import tilewright.as_tvm, tvm, numpy as np
        from tvm.contrib import graph_executor
        m = graph_executor.GraphModule(tvm.runtime.load_module({path!r})["default"](tvm.cpu(0)))
        m.set_input("data", np.load({temp.relpath('x.npy')!r}))
        m.run()
        np.save({temp.relpath('y.npy')!r}, m.get_output(0).numpy())"""
    np.save(temp.relpath("x.npy"), data)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    np.testing.assert_allclose(np.load(temp.relpath("y.npy")), out, rtol=1e-5)


@program
def parameters_may_stay_out():
    mod, params = mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params, mod_name="add")
    temp = utils.tempdir()
    bare = lib["remove_params"]()
    bare.export_library(temp.relpath("bare.so"))
    with open(temp.relpath("net.params"), "wb") as f:
        f.write(runtime.save_param_dict(lib.get_params()))
    loaded = runtime.load_module(temp.relpath("bare.so"))
    gmod = loaded["add"](tvm.cpu())
    gmod["set_input"]("data", tvm.nd.array(numbers(1, 1, 28, 28)))
    gmod["load_params"](bytearray(open(temp.relpath("net.params"), "rb").read()))
    gmod["run"]()
    want = graph_executor.GraphModule(lib["add"](tvm.cpu()))
    want.run(data=numbers(1, 1, 28, 28))
    np.testing.assert_allclose(gmod["get_output"](0).numpy(), want.get_output(0).numpy(), rtol=1e-5)


@program
def a_debugger_over_a_factory():
    mod, params = mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    d = lib["debug_create"]("default", tvm.cpu())
    d["set_input"]("data", tvm.nd.array(numbers(1, 1, 28, 28)))
    d["run"]()
    assert d["get_output"](0).numpy().shape == (1, 10)
    m = debug_executor.GraphModuleDebug(d, [tvm.cpu()], lib.get_graph_json(), None)
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), d["get_output"](0).numpy())
    times = m.run_individual(number=1, repeat=1, min_repeat_ms=0)
    assert len(times) == len(json.loads(lib.get_graph_json())["nodes"])


@program
def several_modules_in_one_library():
    def fn(add):
        x = relay.var("x", shape=(3,))
        return relay.build(tvm.IRModule.from_expr(relay.Function([x], x + relay.const(float(add)))), "llvm", mod_name=f"add{add}")
    one, two = fn(1), fn(2)
    for lib, add in ((one, 1), (two, 2)):
        m = graph_executor.GraphModule(lib[f"add{add}"](tvm.cpu()))
        m.run(x=numbers(3))
        np.testing.assert_allclose(m.get_output(0).numpy(), numbers(3) + add, rtol=1e-6)


# ---- data types of scripts
@program
def custom_types_have_codes():
    from tvm.target import datatype
    datatype.register("myfloat14", 150)
    assert datatype.get_type_code("myfloat14") == 150 and datatype.get_type_name(150) == "myfloat14"
    made = tvm.DataType("custom[myfloat14]32x2")
    assert made.bits == 32 and made.lanes == 2 and made.type_code == 150


# ---- generators
@program
def a_generator_by_name_is_called():
    seen = []

    @tvm.register_func("relay.ext.plans14", override=True)
    def generate(func):
        seen.append(func.attrs["global_symbol"])
        source = f"""
            #include <dlpack/dlpack.h>
            #include <tvm/runtime/c_runtime_api.h>
            #ifdef __cplusplus
            extern "C"
            #endif
            int {func.attrs['global_symbol']}(TVMValue* args, int* codes, int n, TVMValue* out, int* out_code) {{
              DLTensor* x = (DLTensor*)args[0].v_handle; DLTensor* y = (DLTensor*)args[1].v_handle; DLTensor* z = (DLTensor*)args[2].v_handle;
              for (int i = 0; i < 4; ++i) ((float*)z->data)[i] = ((float*)x->data)[i] + ((float*)y->data)[i];
              return 0;
            }}"""
        return tvm.get_global_func("runtime.CSourceModuleCreate")(source, "c", [func.attrs["global_symbol"]], [])
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    mod = tvm.IRModule()
    inner = relay.Function([a := relay.var("a", shape=(4,)), b := relay.var("b", shape=(4,))], a + b).with_attr("Primitive", tvm.tir.IntImm("int32", 1)).with_attr("Compiler", "plans14").with_attr("global_symbol", "plans14_0")
    g = relay.GlobalVar("plans14_0")
    mod[g] = inner
    mod["main"] = relay.Function([x, y], relay.exp(g(x, y)))
    mod = transform.InferType()(mod)
    lib = relay.build(mod, "llvm")
    assert seen == ["plans14_0"]
    temp = utils.tempdir()
    lib.export_library(temp.relpath("ext.so"), options=["-I" + os.environ["TW_INCLUDE"]] if "TW_INCLUDE" in os.environ else None)
    m = graph_executor.GraphModule(runtime.load_module(temp.relpath("ext.so"))["default"](tvm.cpu()))
    m.run(x=numbers(4), y=numbers(4, seed=2))
    np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(numbers(4) + numbers(4, seed=2)), rtol=1e-5)


# ---- the plugin
PLUGIN = '''
import numpy as np, pytest
import tilewright.as_tvm, tvm, tvm.testing
from tvm import te

size = tvm.testing.parameter(4, 8)
kind, scale = tvm.testing.parameters(("a", 1), ("b", 2), ("c", 3))
count = {"made": 0}

@tvm.testing.fixture(cache_return_value=True)
def made(size):
    count["made"] += 1
    return np.arange(size)

def test_sizes(size, made):
    assert made.shape == (size,)

def test_cached(made, kind, scale):
    assert {"a": 1, "b": 2, "c": 3}[kind] == scale

def test_once():
    assert count["made"] == 2

@tvm.testing.parametrize_targets("llvm", "cuda")
def test_targets(target, dev):
    assert tvm.target.Target(target).kind.name == "llvm" and dev.device_type == 1

@tvm.testing.known_failing_targets("llvm")
def test_fails(target, dev):
    assert "llvm" not in str(target)

@tvm.testing.exclude_targets("llvm")
def test_excluded(target, dev):
    assert False

class TestClass:
    local = tvm.testing.parameter(1, 2, 3, ids=["one", "two", "three"])

    def test_local(self, local):
        assert local in (1, 2, 3)

@tvm.testing.requires_cuda
def test_gpu():
    assert False

@tvm.testing.requires_llvm
def test_llvm():
    assert True

@tvm.testing.requires_package("no_such_package_at_all")
def test_package():
    assert False

if __name__ == "__main__":
    tvm.testing.main()
'''


@program
def parametrised_tests_under_pytest():
    temp = utils.tempdir()
    with open(temp.relpath("test_plugin.py"), "w") as f:
        f.write(PLUGIN)
    env = {**os.environ, "TVM_TEST_TARGETS": "llvm;cuda"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", temp.relpath("test_plugin.py")], capture_output=True, text=True, env=env, cwd=temp.path)
    out = done.stdout
    assert "test_local[one" in out, out
    assert " failed" not in out.splitlines()[-1] and "passed" in out.splitlines()[-1] and "skipped" in out.splitlines()[-1], out
    assert "xfailed" in out.splitlines()[-1], out


# ---- what a script's first lines ask for
@program(("tvm.relay.op.op_attrs",), ("tvm.testing.utils",), ("tvm.testing.plugin",), ("tvm.relay.transform.infer_layout_utils",), ("tvm.relay.quantize.quantize",), ("tvm.relay.op.strategy",), ("tvm.relay.dataflow_pattern",), ("tvm.topi.utils",), ("tvm.relay.op.annotation.annotation",), ("tvm.runtime.object_generic",))
def everything_of_a_module(name):
    names = {}
    exec(f"from {name} import *", names)
    assert not [n for n in names if n.startswith("_") and n != "__builtins__"]


@program
def functions_by_their_modules():
    import tvm.relay.op._make
    import tvm.testing._ffi_api
    from tvm.relay.transform import _ffi_api as passes
    from tvm.ir import _ffi_transform_api
    assert tvm.testing._ffi_api.echo(3) == 3 and passes is not None and _ffi_transform_api is not None
    raises(NotImplementedError, lambda: tvm.relay.op._make.no_such_function(1))
    tvm.register_func("plans.and.parts.first", lambda: 1, override=True)
    tvm._ffi._init_api("plans.and.parts", __name__)
    assert first() == 1  # noqa: F821  put here by its name


@program
def names_that_are_asked_for():
    from tvm.relay.function import Function, FunctionWithFields
    from tvm._ffi.runtime_ctypes import RPC_SESS_MASK
    from tvm.relay.qnn.op.layout_conversions import convert_qnn_conv2d
    x = relay.var("x")
    assert RPC_SESS_MASK == 128 and isinstance(FunctionWithFields(relay.Function([x], x), body=x), Function) and convert_qnn_conv2d is not None

    @tvm.testing.slow
    def slow():
        return 1

    @tvm.testing.requires_rpc
    def remote():
        return 2
    assert slow() == 1 and remote() == 2 and tvm.testing.requires_nvcc_version(11) is not None
