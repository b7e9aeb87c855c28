# SPDX-License-Identifier: Apache-2.0
"""Scripts about devices, archives and code of other generators, as they were written before they were run here for the first time."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import tvm
from tvm import autotvm, relay, te
from tvm.contrib import cc, graph_executor, utils
from tvm.ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tvm.micro import export_model_library_format
from tvm.relay.backend import Executor, Runtime
from tvm.script import tir as T

from harness import numbers, program, refusing


def two_layers():
    """A convolution and a dense layer, with parameters."""
    data = relay.var("data", relay.TensorType((1, 3, 12, 12), "float32"))
    conv = relay.nn.conv2d(data, relay.var("w0", shape=(4, 3, 3, 3)), kernel_size=(3, 3), channels=4, padding=(1, 1))
    out = relay.nn.dense(relay.nn.batch_flatten(relay.nn.max_pool2d(relay.nn.relu(conv), pool_size=(2, 2), strides=(2, 2))), relay.var("w1", shape=(5, 144)))
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(out), out))
    params = {"w0": numbers(4, 3, 3, 3), "w1": numbers(5, 144)}
    x = numbers(1, 3, 12, 12)
    module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    module.run(data=x)
    return relay.transform.InferType()(mod), params, x, module.get_output(0).numpy()


@program("c", "packed")
def a_session_with_an_executor(interface):
    mod, params, x, wanted = two_layers()
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
        module = tvm.relay.build(mod, target=tvm.target.target.micro("host"), runtime=Runtime("crt", {"system-lib": True}),
                                 executor=Executor("aot", {"interface-api": interface, "unpacked-api": interface == "c"}) if interface == "c" else Executor("aot"), params=params)
    folder = utils.tempdir()
    template = pathlib.Path(tvm.micro.get_microtvm_template_projects("crt"))
    project = tvm.micro.generate_project(template, module, folder / "project", {"verbose": False})
    project.build()
    project.flash()
    with tvm.micro.Session(project.transport()) as session:
        aot = tvm.runtime.executor.aot_executor.AotModule(session.create_aot_executor())
        aot.get_input("data").copyfrom(x)
        aot.run()
        np.testing.assert_allclose(aot.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-4)
        assert aot.get_num_inputs() == 1 and aot.get_num_outputs() == 1 and aot.get_input_index("data") == 0


@program
def a_session_with_a_graph():
    a, b = relay.var("a", relay.TensorType((3, 4), "float32")), relay.var("b", shape=(3, 4))
    mod = tvm.IRModule.from_expr(relay.Function([a, b], relay.nn.relu(relay.subtract(relay.multiply(a, b), relay.const(0.25)))))
    target = tvm.target.target.micro("host")
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
        factory = tvm.relay.build(mod, target=target, runtime=Runtime("crt", {"system-lib": True}))
    folder = utils.tempdir()
    project = tvm.micro.generate_project(tvm.micro.get_microtvm_template_projects("crt"), factory, folder / "project")
    project.build()
    project.flash()
    x, y = numbers(3, 4), numbers(3, 4, seed=9)
    with tvm.micro.Session(project.transport()) as session:
        graph = tvm.micro.create_local_graph_executor(factory.get_graph_json(), session.get_system_lib(), session.device)
        graph.set_input(**factory.get_params())
        graph.run(a=x, b=y)
        np.testing.assert_allclose(graph.get_output(0).numpy(), np.maximum(x * y - 0.25, 0), rtol=1e-6)
        debug = tvm.micro.create_local_debug_executor(factory.get_graph_json(), session.get_system_lib(), session.device, dump_root=str(folder / "dump"))
        debug.run(a=x, b=y)
        assert (folder / "dump").exists()


@program
def a_network_in_a_program_of_c():
    """The archive is unpacked, and a main function is written against its header."""
    mod, params, x, wanted = two_layers()
    executor = Executor("aot", {"interface-api": "c", "unpacked-api": True, "workspace-byte-alignment": 8})
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True, "tir.usmp.enable": True}):
        lib = relay.build(mod, "c", executor=executor, runtime=Runtime("crt"), params=params, mod_name="two",
                          workspace_memory_pools=WorkspaceMemoryPools([WorkspacePoolInfo("sram", [tvm.target.Target("c")], PoolInfoProperties(size_hint_bytes=16384))]),
                          constant_memory_pools=ConstantMemoryPools([ConstantPoolInfo("flash", [tvm.target.Target("c")], [])]))
    folder = utils.tempdir()
    tvm.micro.export_model_library_format(lib, folder / "two.tar")
    with tarfile.open(folder / "two.tar") as archive:
        archive.extractall(folder / "two")
    shown = "".join(f"{float(v)!r}f," for v in x.ravel())
    with open(folder / "main.c", "w") as file:
        file.write(f"""#include <stdio.h>
#include "tvmgen_two.h"
static float data[] = {{{shown}}};
static float out[5];
__attribute__((aligned(16))) static uint8_t sram[TVMGEN_TWO_SRAM_WORKSPACE_POOL_SIZE];
__attribute__((aligned(16))) static uint8_t flash[TVMGEN_TWO_FLASH_CONSTANT_POOL_SIZE] = {{TVMGEN_TWO_FLASH_CONSTANT_POOL_DATA}};
int main(void) {{
  struct tvmgen_two_inputs inputs = {{.data = data}};
  struct tvmgen_two_outputs outputs = {{.output = out}};
  struct tvmgen_two_workspace_pools pools = {{.sram = sram, .flash = flash}};
  if (tvmgen_two_run(&inputs, &outputs, &pools) != 0) return 1;
  for (int i = 0; i < 5; ++i) printf("%.7g\\n", out[i]);
  return 0;
}}
""")
    source = folder / "two" / "codegen" / "host"
    files = [str(p) for p in pathlib.Path(str(source / "src")).glob("*.c")]
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", str(folder / "main.c"), *files, f"-I{source / 'include'}", f"-I{folder / 'two' / 'runtime' / 'include'}", "-lm", "-o", str(folder / "main")], check=True)
    out = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True).stdout.split()
    np.testing.assert_allclose(np.array(out, "float32"), wanted[0], rtol=1e-4, atol=1e-4)


@program
def a_network_from_the_command_line():
    """tvmc compile, micro create-project, build, run."""
    from tvm.driver.tvmc.main import _main
    onnx = pathlib.Path(os.environ["TW_DATA"] if "TW_DATA" in os.environ else pathlib.Path(__file__).parents[3] / "tests" / "data") / "onnx" / "convnet.onnx"
    folder = utils.tempdir()
    tar, project = str(folder / "m.tar"), str(folder / "p")
    assert _main(["compile", str(onnx), "--input-shapes", "x:[1,3,8,8]", "--target=c", "--target-c-mcpu=cortex-m4", "--runtime=crt", "--runtime-crt-system-lib=1", "--executor=aot", "--executor-aot-interface-api=c",
                  "--executor-aot-unpacked-api=1", "--pass-config", "tir.disable_vectorize=1", "--output-format=mlf", "--output", tar]) == 0
    assert _main(["micro", "create-project", project, tar, "template", "--template-dir", str(tvm.micro.get_microtvm_template_projects("crt"))]) == 0
    assert _main(["micro", "build", project, "template", "--template-dir", str(tvm.micro.get_microtvm_template_projects("crt"))]) == 0
    np.savez(folder / "in.npz", x=numbers(1, 3, 8, 8))
    assert _main(["run", "--device", "micro", project, "--inputs", str(folder / "in.npz"), "--outputs", str(folder / "out.npz"), "--print-top", "3"]) == 0
    assert len(np.load(folder / "out.npz").files) == 1


class _OneConstant:
    """What the generator below was asked for."""
    symbols = []


@program
def a_generator_with_constants():
    """relay.ext.<name> gives C source that is handed the constants of its function."""
    tvm.ir.register_op_attr("nn.dense", "target.ft_dense", lambda e: True)

    @tvm.register_func("relay.ext.ft_dense", override=True)
    def generate(function):
        symbol = str(function.attrs["global_symbol"])
        call = function.body
        n, k = (int(d) for d in call.args[1].checked_type.shape)
        _OneConstant.symbols.append(symbol)
        code = f"""
#include <stdlib.h>
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/c_backend_api.h>
static float* weights;
#ifdef __cplusplus
extern "C" {{
#endif
TVM_DLL int32_t __init_{symbol}(TVMValue* args, int* codes, int count, TVMValue* ret, int* ret_code) {{
  weights = (float*)((DLTensor*)args[0].v_handle)->data;
  return 0;
}}
TVM_DLL int32_t {symbol}(TVMValue* args, int* codes, int count, TVMValue* ret, int* ret_code) {{
  float* x = (float*)((DLTensor*)args[0].v_handle)->data;
  float* y = (float*)((DLTensor*)args[1].v_handle)->data;
  for (int j = 0; j < {n}; ++j) {{
    y[j] = 0;
    for (int i = 0; i < {k}; ++i) y[j] += x[i] * weights[j * {k} + i];
  }}
  return 0;
}}
#ifdef __cplusplus
}}
#endif
"""
        return tvm.runtime._ffi_api.CSourceModuleCreate(code, "c", [symbol], [f"{symbol}_const_0"]) if hasattr(tvm.runtime, "_ffi_api") else tvm.get_global_func("runtime.CSourceModuleCreate")(code, "c", [symbol], [f"{symbol}_const_0"])
    mod, params, x, wanted = two_layers()
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    seq = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.AnnotateTarget(["ft_dense"]), relay.transform.MergeCompilerRegions(), relay.transform.PartitionGraph(mod_name="net")])
    mod = seq(mod)
    assert [g.name_hint for g in mod.get_global_vars() if g.name_hint != "main"] == ["tvmgen_net_ft_dense_main_0"]
    lib = relay.build(mod, tvm.target.Target("llvm"))
    folder = utils.tempdir()
    lib.export_library(str(folder / "lib.so"), fcompile=False, workspace_dir=str(folder))
    loaded = tvm.runtime.load_module(str(folder / "lib.so"))
    made = graph_executor.GraphModule(loaded["default"](tvm.cpu(0)))
    made.set_input("data", x)
    made.run()
    np.testing.assert_allclose(made.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-5)


@program("graph", "vm")
def onednn_and_a_pattern_of_my_own(kind):
    """MergeComposite with the table of dnnl and one more pattern, and a build by graph or VM."""
    from tvm.relay.dataflow_pattern import is_constant, is_op, wildcard
    from tvm.relay.op.contrib.register import get_pattern_table
    mod, params, x, wanted = two_layers()
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    table = get_pattern_table("dnnl")
    mine = [("dnnl.my_dense", is_op("nn.dense")(wildcard(), is_constant()), lambda call: call.args[1].data.shape[0] == 5)]
    with tvm.transform.PassContext(opt_level=3):
        made = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.MergeComposite(table), relay.transform.AnnotateTarget("dnnl"), relay.transform.MergeCompilerRegions(),
                                         relay.transform.PartitionGraph()])(mod)
        composite = relay.transform.MergeComposite(mine)(relay.transform.InferType()(mod))
    parts = [g for g in made.get_global_vars() if "dnnl" in g.name_hint]
    assert parts and all(made[g].attrs["Compiler"] == "dnnl" for g in parts)
    assert "dnnl.my_dense" in composite.astext(show_meta_data=False)
    try:
        if kind == "graph":
            run = graph_executor.GraphModule(relay.build(made, "llvm")["default"](tvm.cpu()))
            run.run(data=x)
            out = run.get_output(0).numpy()
        else:
            out = relay.create_executor("vm", mod=made, device=tvm.cpu(), target="llvm").evaluate()(x).numpy()
    except tvm.TVMError as error:
        assert "libtilewright_dnnl" in str(error) or "E507" in str(error), error
        return
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)


@program
def a_main_function_by_hand():
    """As the ahead-of-time code generator writes it: calls are checked, inputs and outputs come as data."""
    @tvm.script.ir_module
    class Module:
        @T.prim_func
        def tvmgen_default_fused_add(x: T.handle, y: T.handle) -> None:
            T.func_attr({"global_symbol": "tvmgen_default_fused_add", "tir.noalias": True})
            X = T.match_buffer(x, [5, 7], dtype="float32")
            Y = T.match_buffer(y, [5, 7], dtype="float32")
            for i, j in T.grid(5, 7):
                with T.block("add"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] + T.float32(1)

        @T.prim_func
        def tvmgen_default_fused_exp(x: T.handle, y: T.handle) -> None:
            T.func_attr({"global_symbol": "tvmgen_default_fused_exp", "tir.noalias": True})
            X = T.match_buffer(x, [5, 7], dtype="float32")
            Y = T.match_buffer(y, [5, 7], dtype="float32")
            for i, j in T.grid(5, 7):
                Y[i, j] = T.exp(X[i, j], dtype="float32")

        @T.prim_func
        def __tvm_main__(a: T.handle, output: T.handle) -> None:
            T.func_attr({"global_symbol": "test_mod___tvm_main__", "runner_function": True})
            a_buffer = T.match_buffer(a, [5, 7], dtype="float32", align=16)
            output_buffer = T.match_buffer(output, [5, 7], dtype="float32", align=16)
            sid_1 = T.allocate([140], "int8", "global.workspace")
            sid_2 = T.allocate([140], "int8", "global.workspace")
            T.evaluate(T.tvm_call_cpacked("tvmgen_default_fused_add", a_buffer.data, sid_1, T.reinterpret(T.uint64(0), dtype="handle"), dtype="int32"))
            T.evaluate(T.tvm_call_cpacked("tvmgen_default_fused_exp", sid_1, sid_2, T.reinterpret(T.uint64(0), dtype="handle"), dtype="int32"))
            T.evaluate(T.call_extern("tvmgen_default_fused_add", sid_2, output_buffer.data, dtype="int32"))
    x = numbers(5, 7)
    for target in ("llvm", "c"):
        out = tvm.nd.empty((5, 7))
        tvm.build(Module, target=target)["test_mod___tvm_main__"](tvm.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), np.exp(x + 1) + 1, rtol=1e-5)


@program
def several_objects_by_a_compiler():
    """export_library with a compiler of one's own, which is given every object and a source beside them."""
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: tvm.tir.call_pure_extern("float32", "my_scale", a[i]), name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="scaled")
    c = te.compute((8,), lambda i: a[i] - 1.0, name="c")
    built.import_module(tvm.build(te.create_schedule(c.op), [a, c], "llvm", name="less"))
    folder = utils.tempdir()
    with open(folder / "my.cc", "w") as file:
        file.write('extern "C" float my_scale(float x) { return 3 * x; }\n')
    given = []

    def compiler(path, files, options=None, **kwargs):
        given.extend(files)
        cc.create_shared(path, [*files, str(folder / "my.cc")], options=options)
    compiler.output_format = "so"
    built.export_library(str(folder / "lib.so"), fcompile=compiler, options=["-O1"])
    assert given and all(os.path.basename(f).startswith(("lib", "devc")) for f in given), given
    loaded, x, out = tvm.runtime.load_module(str(folder / "lib.so")), numbers(8), tvm.nd.empty((8,))
    loaded["scaled"](tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x * 3, rtol=1e-6)
    loaded.get_function("less", query_imports=True)(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x - 1, rtol=1e-6)
    built.save(str(folder / "one.o"))
    assert (folder / "one.o").stat().st_size > 0


@program
def targets_and_hosts():
    target = tvm.target.Target({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu", "mattr": ["+neon", "+dotprod"], "device": "arm_cpu", "host": {"kind": "llvm", "mcpu": "x86-64-v3"}})
    assert list(target.keys) == ["arm_cpu", "cpu"] and list(target.attrs["mattr"]) == ["+neon", "+dotprod"] and target.host.mcpu == "x86-64-v3" and target.kind.name == "llvm"
    assert target.device_name == "arm_cpu" and "-keys=arm_cpu,cpu" in str(target) and target.export()["host"]["mcpu"] == "x86-64-v3"
    same = tvm.target.Target(str(target), host="llvm -mcpu=x86-64-v3")
    assert str(same) == str(target) and same.attrs["mtriple"] == "aarch64-linux-gnu"
    with tvm.target.Target("c -keys=cpu,mine -model=unknown"):
        assert tvm.target.Target.current().kind.name == "c" and list(tvm.target.Target.current().keys)[:2] == ["cpu", "mine"] and tvm.target.Target.current().model == "unknown"
    assert tvm.target.Target.current(allow_none=True) is None
    first, host = tvm.target.Target.check_and_update_host_consist("ext_dev", "llvm") if hasattr(tvm.target.Target, "check_and_update_host_consist") else tvm.target.Target.canon_target_and_host("ext_dev", "llvm")
    assert first.host.kind.name == "llvm" and host.kind.name == "llvm"
    both = tvm.target.Target.canon_multi_target_and_host({tvm.cpu(): "llvm", tvm.ext_dev(): "ext_dev"} if False else ["llvm", "ext_dev"], "llvm") if hasattr(tvm.target.Target, "canon_multi_target_and_host") else None
    assert both is None or [t.host.kind.name for t in both] == ["llvm", "llvm"]
    with refusing(Exception, "mfoo"):
        tvm.target.Target("llvm -mfoo=3")
    with refusing(Exception, "unheard"):
        tvm.target.Target("unheard -x=3")
    assert tvm.target.Target("llvm -num-cores=4").attrs["num-cores"] == 4 and tvm.target.Target("raspberry-pi/4b-aarch64").attrs["mcpu"] == "cortex-a72"
    assert "llvm" in tvm.target.Target.list_kinds() and "system-lib" in tvm.target.TargetKind.options_from_name("llvm") if hasattr(tvm.target, "TargetKind") and hasattr(tvm.target.TargetKind, "options_from_name") else True


@program
def cross_compiled_by_name():
    """A library for RISC-V, its assembly, and one by the cross compiler, run in the emulator where there is one."""
    mod, params, x, wanted = two_layers()
    target = tvm.target.Target("llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64 -mattr=+m,+a,+f,+d,+c -mabi=lp64d")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target, params=params)
    folder = utils.tempdir()
    assert "fmadd.s" in lib.get_lib().get_source("asm")
    lib.export_library(str(folder / "net.tar"))
    with tarfile.open(folder / "net.tar") as archive:
        assert any(n.endswith(".o") for n in archive.getnames())
    if shutil.which("riscv64-linux-gnu-gcc") is None:
        return
    lib.export_library(str(folder / "net.so"), fcompile=cc.cross_compiler("riscv64-linux-gnu-gcc", options=["-shared", "-fPIC"]))
    with open(folder / "net.so", "rb") as file:
        assert file.read(20)[18:20] == b"\xf3\x00"  # EM_RISCV
    with refusing(Exception, "RISC-V"):
        tvm.runtime.load_module(str(folder / "net.so"))["default"](tvm.cpu())


@program
def tuning_over_a_session():
    """The tutorial of tuning with microTVM, on the host's project."""
    data, kernel = relay.var("data", relay.TensorType((1, 3, 10, 10), "float32")), relay.var("kernel", shape=(6, 3, 5, 5))
    ret = relay.nn.conv2d(data, kernel, padding=(2, 2), kernel_size=(5, 5), kernel_layout="OIHW", out_dtype="float32")
    mod = tvm.IRModule.from_expr(relay.Function([data, kernel], ret))
    params = {"kernel": tvm.nd.array(numbers(6, 3, 5, 5))}
    target = tvm.target.target.micro("host")
    with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
        tasks = tvm.autotvm.task.extract_from_program(mod["main"], params, target)
    assert len(tasks) > 0
    loader = tvm.micro.AutoTvmModuleLoader(template_project_dir=pathlib.Path(tvm.micro.get_microtvm_template_projects("crt")), project_options={"verbose": False})
    builder = autotvm.LocalBuilder(n_parallel=1, build_kwargs={"build_option": {"tir.disable_vectorize": True}}, do_fork=True, build_func=tvm.micro.autotvm_build_func, runtime=Runtime("crt", {"system-lib": True}))
    runner = autotvm.LocalRunner(number=1, repeat=1, timeout=100, module_loader=loader)
    folder = utils.tempdir()
    log = str(folder / "micro.log")
    for task in tasks:
        tuner = tvm.autotvm.tuner.GATuner(task)
        tuner.tune(n_trial=2, measure_option=autotvm.measure_option(builder=builder, runner=runner), callbacks=[autotvm.callback.log_to_file(log), autotvm.callback.progress_bar(2, si_prefix="M")], si_prefix="M")
    assert tuner.best_flops > 0
    with autotvm.apply_history_best(log):
        with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
            lowered = tvm.relay.build(mod, target=target, runtime=Runtime("crt", {"system-lib": True}), params=params)
    assert lowered.get_lib() is not None


@program
def a_project_of_my_own():
    """A template with its own server, and what the client learns of it."""
    folder = utils.tempdir()
    template = pathlib.Path(str(folder / "template"))
    template.mkdir()
    (template / "microtvm_api_server.py").write_text("""
import pathlib, shutil, sys
from tvm.micro.project_api import server
HERE = pathlib.Path(__file__).parent
class Handler(server.ProjectAPIHandler):
    def server_info_query(self, tvm_version):
        return server.ServerInfo(platform_name="mine", is_template=not (HERE / "model.tar").exists(), model_library_format_path="" if not (HERE / "model.tar").exists() else HERE / "model.tar",
                                 project_options=[server.ProjectOption("colour", choices=("red", "blue"), optional=["generate_project"], type="str", default="red", help="of the lamp")])
    def generate_project(self, model_library_format_path, standalone_crt_dir, project_dir, options):
        project_dir.mkdir()
        shutil.copy2(model_library_format_path, project_dir / "model.tar")
        shutil.copy2(__file__, project_dir / "microtvm_api_server.py")
        (project_dir / "colour").write_text(options.get("colour", "none"))
    def build(self, options):
        (HERE / "built").write_text("yes")
    def flash(self, options):
        raise RuntimeError("there is no board")
    def open_transport(self, options):
        return server.TransportTimeouts(session_start_retry_timeout_sec=0, session_start_timeout_sec=0, session_established_timeout_sec=0)
    def close_transport(self):
        pass
    def read_transport(self, n, timeout_sec):
        raise server.IoTimeoutError()
    def write_transport(self, data, timeout_sec):
        pass
if __name__ == "__main__":
    server.main(Handler())
""")
    mod, params, _, _ = two_layers()
    lib = relay.build(mod, "c", executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}), runtime=Runtime("crt"), params=params)
    info = tvm.micro.TemplateProject.from_directory(template).info() if hasattr(tvm.micro, "TemplateProject") else None
    assert info is None or (info["platform_name"] == "mine" and info["is_template"] and info["project_options"][0]["name"] == "colour")
    project = tvm.micro.generate_project(template, lib, folder / "project", {"colour": "blue"})
    assert (folder / "project" / "colour").read_text() == "blue"
    project.build()
    assert (folder / "project" / "built").read_text() == "yes" and not project.info()["is_template"]
    with refusing(Exception, "there is no board"):
        project.flash()


@program
def archives_of_several_models():
    """export_model_library_format of a list, and what its metadata says."""
    mod, params, _, _ = two_layers()
    executor = Executor("aot", {"interface-api": "c", "unpacked-api": True})
    libs = [relay.build(mod, "c", executor=executor, runtime=Runtime("crt"), params=params, mod_name=name) for name in ("one", "two")]
    folder = utils.tempdir()
    export_model_library_format(libs, folder / "both.tar")
    with tarfile.open(folder / "both.tar") as archive:
        names = {n.removeprefix("./") for n in archive.getnames()}
        said = json.load(archive.extractfile(next(m for m in archive.getmembers() if m.name.endswith("metadata.json"))))
    assert said["version"] == 7 and sorted(said["modules"]) == ["one", "two"]
    assert {"codegen/host/include/tvmgen_one.h", "codegen/host/include/tvmgen_two.h", "codegen/host/src/one_lib0.c", "codegen/host/src/two_lib0.c", "parameters/one.params", "src/two.relay"} <= names, names
    main = said["modules"]["one"]["memory"]["functions"]["main"][0]
    assert {"constants_size_bytes", "device", "inputs", "outputs", "io_size_bytes", "workspace_size_bytes"} >= set(main) >= {"device", "io_size_bytes", "workspace_size_bytes"}, main
    assert said["modules"]["one"]["external_dependencies"][0]["short_name"] == "tvm_standalone_crt" and (said["modules"]["one"]["target"][0].startswith("c"))
    with refusing(Exception, "one"):
        export_model_library_format([libs[0], libs[0]], folder / "twice.tar")


@program
def a_composite_target_from_the_command_line():
    """tvmc with two targets, of which the first is a code generator that takes parts of the model."""
    from tvm.driver import tvmc
    from tvm.driver.tvmc.composite_target import get_codegen_by_target, get_codegen_names
    assert {"cmsis-nn", "ethos-n", "ethos-u", "bnns", "compute-library"} <= set(get_codegen_names())
    assert callable(get_codegen_by_target("compute-library")["pass_pipeline"]) and get_codegen_by_target("cmsis-nn")["config_key"] == "relay.ext.cmsisnn.options"
    with refusing(Exception, "invalid"):
        get_codegen_by_target("invalid")
    mod, params, x, wanted = two_layers()
    model = tvmc.TVMCModel(mod, params)
    folder = utils.tempdir()
    for target, part in (("ccompiler, llvm", "ccompiler"), ("cblas, llvm -mcpu=x86-64-v3", "cblas"), ("dnnl, llvm", "dnnl")):
        try:
            package = tvmc.compile(model, target=target, package_path=str(folder / "parts.tar"), mod_name="net", dump_code="relay,ll")
        except tvm.TVMError as error:
            assert f"libtilewright_{part}" in str(error), error  # which is built where the library is
            continue
        if part != "ccompiler":  # of whose operators the model has none
            assert f"tvmgen_net_{part}_main_0" in open(str(folder / "parts.tar.relay")).read()
        assert "define" in open(str(folder / "parts.tar.ll")).read()
        np.testing.assert_allclose(tvmc.run(package, device="cpu", inputs={"data": x}).outputs["output_0"], wanted, rtol=1e-4, atol=1e-5)
    with refusing(Exception, "cannot be dumped as 'cu', only as relay or asm or ll"):
        tvmc.compile(model, target="llvm", package_path=str(folder / "m.tar"), dump_code="cu")
    with refusing(Exception, "relay.ext."):
        tvmc.compile(model, target="compute-library, llvm -mtriple=aarch64-linux-gnu -mattr=+neon", package_path=str(folder / "m.tar"))
    package = tvmc.compile(model, target="llvm -mcpu=x86-64-v3", package_path=str(folder / "m.tar"), tuning_records=None, desired_layout=None)
    result = tvmc.run(package, device="cpu", fill_mode="ones", benchmark=True, repeat=2, number=1, end_to_end=False)
    assert result.outputs["output_0"].shape == (1, 5) and len(result.times.results) == 2
