# SPDX-License-Identifier: Apache-2.0
"""Scripts about targets, code generators and ahead-of-time models, as they were written before they were run here for the first time."""
import ctypes
import json
import os
import tarfile

import numpy as np
import tvm
from tvm import relay, te
from tvm.contrib import cc, graph_executor, utils
from tvm.driver import tvmc
from tvm.micro import export_model_library_format
from tvm.relay.backend import Executor, Runtime
from tvm.relay.dataflow_pattern import DFPatternCallback, dominates, is_constant, is_op, rewrite, wildcard
from tvm.testing.aot import AOTTestModel, AOTTestRunner, compile_and_run, generate_ref_data

from harness import numbers, program, refusing


def small_net():
    data, weight = relay.var("data", shape=(1, 3, 16, 16)), relay.var("weight", shape=(8, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(data, weight, kernel_size=(3, 3), padding=(1, 1), channels=8))
    return tvm.IRModule.from_expr(relay.Function([data, weight], relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)))), {"weight": tvm.nd.array(numbers(8, 3, 3, 3))}


@program(("c", True), ("packed", False))
def what_is_in_an_archive(interface, unpacked):
    mod, params = small_net()
    executor = Executor("aot", {"unpacked-api": unpacked, "interface-api": interface, "workspace-byte-alignment": 8})
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
        lib = relay.build(mod, tvm.target.Target("c -keys=cpu"), executor=executor, runtime=Runtime("crt"), params=params, mod_name="mynet")
    folder = utils.tempdir()
    export_model_library_format(lib, folder.relpath("model.tar"))
    with tarfile.open(folder.relpath("model.tar")) as archive:
        archive.extractall(folder.relpath("x"))
    with open(folder.relpath("x/metadata.json")) as file:
        said = json.load(file)["modules"]["mynet"]
    main = said["memory"]["functions"]["main"][0]
    assert main["workspace_size_bytes"] > 0 and main["io_size_bytes"] == 3 * 16 * 16 * 4 + 8 * 4 and said["executors"] == ["aot"] and said["target"][0].startswith("c")
    assert os.path.exists(folder.relpath("x/codegen/host/src/mynet_lib0.c")) and os.path.exists(folder.relpath("x/src/mynet.relay"))
    if interface == "c":
        with open(folder.relpath("x/codegen/host/include/tvmgen_mynet.h")) as file:
            assert "struct tvmgen_mynet_inputs" in (text := file.read()) and "tvmgen_mynet_run" in text


@program
def a_package_of_code_has_no_library():
    x = relay.var("x", shape=(1, 10))
    model = tvmc.TVMCModel(tvm.IRModule.from_expr(relay.nn.softmax(relay.nn.dense(x, relay.const(numbers(4, 10))))), {})
    folder = utils.tempdir()
    path = folder.relpath("m.tar")
    tvmc.compile(model, target="c", package_path=path, output_format="mlf", executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}), runtime=Runtime("crt"),
                 pass_context_configs=["tir.disable_vectorize=true"])
    package = tvmc.TVMCPackage(path)
    assert (package.type, package.executor_type, package.project_dir, package.lib_path, package.lib_name) == ("mlf", "aot", None, None, None)


@program
def a_generator_in_python():
    for name in ("add", "subtract"):
        tvm.ir.register_op_attr(name, "target.first_tries_cc", lambda call: True)

    class Source(relay.ExprVisitor):
        def __init__(self):
            super().__init__()
            self.lines, self.names = [], {}

        def visit_var(self, var):
            self.names[var] = var.name_hint

        def visit_call(self, call):
            super().visit_call(call)
            a, b = (self.names[x] for x in call.args)
            self.last, self.size = f"buf{len(self.lines)}", int(np.prod([int(i) for i in call.checked_type.shape]))
            self.lines.append(f"static float {self.last}[{self.size}]; for (int i = 0; i < {self.size}; ++i) {self.last}[i] = {a}[i] {'+' if call.op.name == 'add' else '-'} {b}[i];")
            self.names[call] = self.last

    @tvm.register_func("relay.ext.first_tries_cc", override=True)
    def compiler(function):
        name, source = function.attrs["global_symbol"], Source()
        source.visit(function.body)
        head = "".join(f"DLTensor* a{i}, " for i in range(len(function.params)))
        inputs = "".join(f"  float* {p.name_hint} = static_cast<float*>(a{i}->data);\n" for i, p in enumerate(function.params))
        text = "#include <string.h>\n#include <tvm/runtime/c_runtime_api.h>\n#include <tvm/runtime/packed_func.h>\n#include <dlpack/dlpack.h>\n"
        text += f'extern "C" int {name}_wrapper_({head}DLTensor* out) {{\n{inputs}' + "\n".join(source.lines) + f"\n  memcpy(out->data, {source.last}, sizeof(float) * {source.size});\n  return 0;\n}}\n"
        return tvm.get_global_func("runtime.CSourceModuleCreate")(text + f"TVM_DLL_EXPORT_TYPED_FUNC({name}, {name}_wrapper_);\n", "cc", [name], [])
    x, y, z = (relay.var(n, shape=(8, 8)) for n in "xyz")
    mod = tvm.IRModule.from_expr(relay.Function([x, y, z], relay.exp(relay.subtract(relay.add(x, y), z))))
    mod = relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(relay.transform.AnnotateTarget("first_tries_cc")(mod)))
    folder = utils.tempdir()
    relay.build(mod, target="llvm").export_library(folder.relpath("lib.so"), options=["-O2", "-std=c++14", "-I" + os.environ["TW_INCLUDE"]])
    made = graph_executor.GraphModule(tvm.runtime.load_module(folder.relpath("lib.so"))["default"](tvm.cpu(0)))
    given = {n: numbers(8, 8, seed=i) for i, n in enumerate("xyz")}
    made.run(**given)
    np.testing.assert_allclose(made.get_output(0).numpy(), np.exp(given["x"] + given["y"] - given["z"]), rtol=1e-5)


@program("c", "llvm")
def functions_of_c_source(target):
    a = te.placeholder((16,), name="a")
    b = te.extern((16,), [a], lambda ins, outs: tvm.tir.call_extern("int32", "three_times", ins[0].access_ptr("r"), outs[0].access_ptr("w"), 16), name="b")
    c = te.compute((16,), lambda i: tvm.tir.call_pure_extern("float32", "half_of", b[i], 3) + tvm.tir.call_pure_extern("float32", "tanhf", b[i]), name="c")
    built = tvm.build(te.create_schedule(c.op), [a, c], target, name="called")
    assert "three_times" in built.get_source()
    x, out = numbers(16), tvm.nd.empty((16,))
    with refusing(tvm.TVMError, "undefined symbol: "):
        built(tvm.nd.array(x), out)
    source = "int three_times(float* a, float* b, int n) { for (int i = 0; i < n; ++i) b[i] = a[i] * 3; return 0; }\nfloat half_of(float a, int k) { return a / 2 + k; }\n"
    built.import_module(tvm.get_global_func("runtime.CSourceModuleCreate")(source, "c", [], []))
    folder = utils.tempdir()
    built.export_library(folder.relpath("lib.so"))
    tvm.runtime.load_module(folder.relpath("lib.so"))["called"](tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x * 1.5 + 3 + np.tanh(x * 3), rtol=1e-6)
    d = te.compute((16,), lambda i: tvm.tir.call_pure_extern("float32", "of_a_bool", a[i] > 0), name="d")
    with refusing(tvm.TVMError, "of_a_bool takes a bool"):
        tvm.build(te.create_schedule(d.op), [a, d], target)


@program
def a_system_library_of_functions():
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], "llvm", runtime=Runtime("cpp", {"system-lib": True}), name="first_tries_plus")
    folder = utils.tempdir()
    built.save(folder.relpath("lib.o"))
    cc.create_shared(folder.relpath("lib.so"), [folder.relpath("lib.o")])
    ctypes.CDLL(folder.relpath("lib.so"), mode=ctypes.RTLD_GLOBAL)
    x, out = numbers(64), tvm.nd.empty((64,))
    tvm.runtime.system_lib()["first_tries_plus"](tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x + 1)
    # Its functions, which every library can now find, are not those of libraries that have their own by the same names.
    v = relay.var("v", shape=(64,))
    made = relay.create_executor("aot", mod=tvm.IRModule.from_expr(relay.Function([v], v * relay.const(3.0))), target="llvm").evaluate()
    np.testing.assert_allclose(made(x).numpy(), x * 3)


@program
def floats_of_arm_processors():
    def built(target):
        a, b = te.placeholder((32,), name="a"), te.placeholder((32,), name="b")
        c = te.compute((32,), lambda i: a[i] * b[i] + 1.0, name="c")
        schedule = te.create_schedule(c.op)
        schedule[c].vectorize(schedule[c].split(c.op.axis[0], 4)[1])
        return tvm.build(schedule, [a, b, c], target, name="fused")
    hard = built("llvm -mtriple=armv7l-none-linux-gnueabihf -mcpu=cortex-a7 -mfloat-abi=hard -mattr=+neon")
    assert any(op in hard.get_source("asm") for op in ("vmul.f32", "vmla.f32", "vfma.f32"))
    assert tvm.target.Target("llvm -mtriple=arm-none-eabi -mcpu=cortex-m7 -mfloat-abi=soft").attrs["mfloat-abi"] == "soft"
    folder = utils.tempdir()
    hard.save(folder.relpath("fused.o"))
    with open(folder.relpath("fused.o"), "rb") as file:
        head = file.read(20)
    assert head[:4] == b"\x7fELF" and head[18] == 0x28  # of ARM


@program("c", "packed")
def ahead_of_time_by_the_classic_harness(interface):
    x, y = relay.var("x", shape=(1, 10)), relay.var("y", shape=(1, 10))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.multiply(x, y) + relay.const(1.5)))
    inputs = {"x": numbers(1, 10), "y": numbers(1, 10, seed=3)}
    model = AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs))
    for runner in (AOTTestRunner(), AOTTestRunner(pass_config={"tir.usmp.enable": True})):
        compile_and_run(model, runner, interface, interface == "c")


@program
def a_norm_from_its_arithmetic():
    class Norm(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x, self.var, self.mean, self.beta, self.gamma, self.eps = (*(wildcard() for _ in range(5)), is_constant())
            self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

        def callback(self, pre, post, node_map):
            x, var, mean, beta, gamma, eps = (node_map[p][0] for p in (self.x, self.var, self.mean, self.beta, self.gamma, self.eps))
            return relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=eps.data.numpy().item())[0]
    x, var, mean, beta, gamma = relay.var("x", shape=(1, 4, 8, 8)), *(relay.var(n, shape=(4,)) for n in ("var", "mean", "beta", "gamma"))
    found = rewrite(Norm(), gamma * (x - mean) / relay.op.sqrt(var + relay.const(1e-5)) + beta)
    assert tvm.ir.structural_equal(found, relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=1e-5)[0])
    chain = dominates(is_op("nn.conv2d")(wildcard(), wildcard()), is_op("nn.relu")(wildcard()), is_op("sigmoid")(wildcard()))
    assert chain.match(relay.sigmoid(relay.nn.relu(relay.nn.relu(relay.nn.conv2d(x, relay.var("w", shape=(8, 4, 1, 1)))))))
