# SPDX-License-Identifier: Apache-2.0
"""Models in programs of C: ahead of time, options of platforms, the command line for devices."""
import contextlib
import io
import json
import os
import pathlib
import stat
import subprocess
import tempfile

import numpy as np
import tvm
from tvm import micro, relay
from tvm.driver.tvmc.main import _main
from tvm.micro.testing.aot_test_utils import AOT_DEFAULT_RUNNER, AOT_USMP_RUNNER, parametrize_aot_options
from tvm.relay import testing
from tvm.relay.backend import Executor, Runtime
from tvm.testing.aot import AOTDataLinkage, AOTTestModel, AOTTestRunner, compile_and_run, compile_models, generate_ref_data, run_and_check

from harness import program, raises, refusing

INTERFACES = [("c", True), ("packed", False), ("packed", True)]


def two_inputs(dtype="float32"):
    x, y = relay.var("x", shape=(1, 10), dtype=dtype), relay.var("y", shape=(1, 10), dtype=dtype)
    low, high = (-8, 8) if dtype != "uint8" else (0, 16)
    rng = np.random.default_rng(1)
    return tvm.IRModule.from_expr(relay.Function([x, y], relay.add(x, relay.multiply(y, y)))), {n: rng.integers(low, high, (1, 10)).astype(dtype) for n in "xy"}


def for_programs(interface="c", **options):
    return {"executor": Executor("aot", {"interface-api": interface, "unpacked-api": interface == "c", **options}), "runtime": Runtime("crt")}


# ---- programs that are compiled and run
@program(("c", True, "float32"), ("c", True, "int8"), ("packed", False, "uint8"), ("packed", True, "int32"))
def a_sum_in_every_interface(interface, unpacked, dtype):
    mod, inputs = two_inputs(dtype)
    assert compile_and_run(AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs)), AOT_DEFAULT_RUNNER, interface, unpacked)


@program(*INTERFACES)
def a_convolution_with_weights(interface, unpacked):
    data, weight = relay.var("data", shape=(1, 8, 16, 16)), relay.var("weight", shape=(4, 8, 3, 3))
    mod = tvm.IRModule.from_expr(relay.nn.relu(relay.nn.conv2d(data, weight, padding=(1, 1), channels=4, kernel_size=(3, 3))))
    rng = np.random.default_rng(2)
    params = {"weight": rng.standard_normal((4, 8, 3, 3)).astype("float32")}
    inputs = {"data": rng.standard_normal((1, 8, 16, 16)).astype("float32")}
    model = AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs, params), params=params)
    compile_and_run(model, AOT_USMP_RUNNER, interface, unpacked, workspace_byte_alignment=64, constant_byte_alignment=64, enable_op_fusion=False)


@program(*INTERFACES)
def several_models_in_one_program(interface, unpacked):
    models = []
    for i in range(3):
        x = relay.var("x", shape=(2, 3 + i))
        mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.nn.softmax(x), relay.sum(x, axis=1)])))
        inputs = {"x": np.arange(6 + 2 * i, dtype="float32").reshape(2, 3 + i)}
        models.append(AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs), name=f"net{i}"))
    compile_and_run(models, AOT_DEFAULT_RUNNER, interface, unpacked)


@program
def a_section_and_c_statements():
    mod, inputs = two_inputs()
    runner = AOTTestRunner(prologue='  printf("%s", TEXT);', epilogue='  puts(".");', includes=["math.h"], parameters={"TEXT": '"begins"'})
    compile_and_run(AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs)), runner, "c", True, data_linkage=AOTDataLinkage(".data.mine", 32))


@program
def a_wrong_result_is_noticed():
    mod, inputs = two_inputs()
    wrong = {"output": generate_ref_data(mod, inputs)["output"] + 1}
    compiled = compile_models(AOTTestModel(module=mod, inputs=inputs, outputs=wrong), "c", True)
    assert "output" in str(raises(AssertionError, run_and_check, compiled, AOT_DEFAULT_RUNNER, "c"))
    compile_and_run(AOTTestModel(module=mod, inputs=inputs, outputs=wrong, output_tolerance=1.5), AOT_DEFAULT_RUNNER, "c", True)


@program
def mobilenet_in_two_pools():
    from tvm.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
    # A quarter of the channels: the C compiler reads the weights as text.
    mod, params = testing.create_workload(testing.mobilenet.mobile_net(num_classes=100, data_shape=(1, 3, 32, 32), alpha=0.25))
    inputs = {"data": np.random.default_rng(3).standard_normal((1, 3, 32, 32)).astype("float32")}
    model = AOTTestModel(module=mod, inputs=inputs, outputs=generate_ref_data(mod, inputs, params), params=params)
    pools = WorkspaceMemoryPools([WorkspacePoolInfo("fast", [], PoolInfoProperties(size_hint_bytes=60000)), WorkspacePoolInfo("slow", [])])
    compiled = compile_models(model, "c", True, workspace_memory_pools=pools, target=tvm.target.Target("c"))
    assert sorted(p.pool_info.pool_name for p in compiled[0].executor_factory.executor_codegen_metadata.pool_inputs.values()) == ["fast", "slow"]
    run_and_check(compiled, AOT_DEFAULT_RUNNER, "c")


@program
def all_combinations_are_parameters():
    @parametrize_aot_options
    def test(interface_api, use_unpacked_api, test_runner):
        pass
    names, cases = test.pytestmark[0].args
    assert names == ("interface_api", "use_unpacked_api", "test_runner") and len(cases) == 6 and all(c[:2] != ("c", False) for c in cases)


@program(("crt", {"interface-api": "c", "unpacked-api": False}, 'Either need interface_api == "packed" (got: c) or unpacked-api == true (got: 0) when targeting c runtime'),
         ("cpp", {"interface-api": "c"}, 'Need unpacked-api == false (got: 0) and interface-api == "packed" (got: c) when targeting c++ runtime'),
         ("cpp", {"unpacked-api": True}, 'Need unpacked-api == false (got: 1) and interface-api == "packed" (got: packed) when targeting c++ runtime'))
def interfaces_that_a_runtime_lacks(runtime, options, words):
    error = raises(tvm.TVMError, lambda: relay.build(two_inputs()[0], "c", executor=Executor("aot", options), runtime=Runtime(runtime)))
    assert words in str(error)


@program
def two_models_of_one_name():
    lib = relay.build(two_inputs()[0], "c", **for_programs(), mod_name="net")
    with tempfile.TemporaryDirectory() as folder, refusing(ValueError, "unique names"):
        micro.export_model_library_format([lib, lib], os.path.join(folder, "x.tar"))


# ---- C with vectors
@program
def a_processor_with_vectors():
    mod, params = testing.mlp.get_workload(1)
    assert "vector_size" in relay.build(mod, "c -mcpu=haswell", params=params).lib.get_source()
    assert "vector_size" not in relay.build(mod, tvm.target.Target("c -mcpu=cortex-r5"), params=params).lib.get_source()
    assert "knows no processor 'pentium'" in str(raises(tvm.TVMError, lambda: relay.build(mod, "c -mcpu=pentium", params=params)))


# ---- platforms
@program(("zephyr", "qemu_x86", {"west_cmd", "zephyr_base", "config_main_stack_size"}), ("arduino", "due", {"arduino_cli_cmd"}))
def options_of_platforms(platform, board, more):
    info = micro.TemplateProject.from_directory(micro.get_microtvm_template_projects(platform)).info()
    options = {o.name: o for o in info.project_options}
    assert info.is_template and info.protocol_version == 1
    assert {"board", "project_type", "extra_files_tar", "verbose", "warning_as_error", "port", *more} <= set(options)
    assert board in options["board"].choices and options["board"].required == ["build"] and all(o.help for o in info.project_options)


@program(("zephyr", "west_cmd", "nucleo_l4r5zi", "build --board nucleo_l4r5zi", "flash"), ("arduino", "arduino_cli_cmd", "nano33ble", "--fqbn arduino:mbed_nano:nano33ble", "upload"))
def tools_of_platforms_are_called(platform, option, board, built, flashed):
    lib = relay.build(two_inputs()[0], "c", **for_programs())
    with tempfile.TemporaryDirectory() as folder:
        tool, log = pathlib.Path(folder, "tool"), pathlib.Path(folder, "log")
        tool.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        options = {"board": board, "project_type": "host_driven", option: str(tool)}
        project = micro.generate_project(micro.get_microtvm_template_projects(platform), lib, os.path.join(folder, "p"), options)
        project.build()
        project.flash()
        assert built in log.read_text() and flashed in log.read_text()
        tool.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
        assert "ended with 3: broken" in str(raises(Exception, project.build))
        tool.unlink()
        assert "is not installed" in str(raises(Exception, project.build))


@program(({"board": "no_such"}, "board is"), ({"project_type": "aot_demo"}, "project_type is host_driven"))
def options_that_a_platform_lacks(options, words):
    lib = relay.build(two_inputs()[0], "c", **for_programs())
    with tempfile.TemporaryDirectory() as folder:
        error = raises(Exception, lambda: micro.generate_project(micro.get_microtvm_template_projects("zephyr"), lib, os.path.join(folder, "p"), options))
        assert words in str(error)


@program
def a_stack_and_more_files_for_zephyr():
    import io
    import tarfile
    lib = relay.build(two_inputs()[0], "c", **for_programs())
    with tempfile.TemporaryDirectory() as folder:
        extra = os.path.join(folder, "extra.tar")
        with tarfile.open(extra, "w") as tar:
            entry = tarfile.TarInfo("boards/mine.overlay")
            entry.size = 2
            tar.addfile(entry, io.BytesIO(b"/*"))
        micro.generate_project(micro.get_microtvm_template_projects("zephyr"), lib, os.path.join(folder, "p"),
                               {"board": "qemu_x86", "config_main_stack_size": 4096, "warning_as_error": True, "extra_files_tar": extra})
        text = pathlib.Path(folder, "p", "prj.conf").read_text()
        assert "CONFIG_MAIN_STACK_SIZE=4096\n" in text and "8192" not in text and "CONFIG_COMPILER_WARNINGS_AS_ERRORS=y" in text
        assert os.path.exists(os.path.join(folder, "p", "boards/mine.overlay"))


# ---- the command line
@program
def a_project_by_the_command_line():
    lib = relay.build(two_inputs()[0], "c", **for_programs())
    with tempfile.TemporaryDirectory() as folder:
        path, project, out = (os.path.join(folder, name) for name in ("m.tar", "p", "o.npz"))
        micro.export_model_library_format(lib, path)
        assert _main(["micro", "create-project", project, path, "crt", "--project-option", "memory_bytes=4096", "reply_bytes=2048"]) == 0
        assert _main(["micro", "create-project", project, path, "crt"]) == 1
        assert _main(["micro", "create", "--force", project, path, "template", "--template-dir", micro.get_microtvm_template_projects("crt")]) == 0
        assert _main(["micro", "build", project, "crt"]) == 0
        assert _main(["micro", "flash", project, "crt"]) == 0
        assert _main(["run", "--device", "micro", project, "--fill-mode", "ones", "-o", out]) == 0
        with np.load(out) as file:
            np.testing.assert_array_equal(file["output_0"], np.full((1, 10), 2, "float32"))


# ---- functions of tensors and graphs, whose kernels a session calls
def a_sum(target="c", name="add"):
    from tvm import te
    a, b = te.placeholder((2,), dtype="int8", name="a"), te.placeholder((1,), dtype="int8", name="b")
    c = te.compute(a.shape, lambda i: a[i] + b[0], name="c")
    return tvm.build(te.create_schedule(c.op), [a, b, c], tvm.target.Target(target), runtime=Runtime("crt", {"system-lib": True}), name=name)


def unpacked(library, folder):
    import tarfile
    path = os.path.join(folder, "library.tar")
    micro.export_model_library_format(library, path)
    with tarfile.open(path) as tar:
        tar.extractall(folder)
    return pathlib.Path(folder)


@program("c", "llvm")
def functions_in_a_library(target):
    import json
    lib = a_sum(target)
    with tempfile.TemporaryDirectory() as folder:
        at = unpacked(lib, folder)
        metadata = json.loads((at / "metadata.json").read_text())
        assert (metadata["version"], metadata["model_name"], metadata["executors"], metadata["style"]) == (7, "add", [], "operator")
        assert metadata["memory"]["add"] == [{"size_bytes": n, "shape": [n], "dtype": "int8", "input_binding": name} for n, name in ((2, "a"), (1, "b"), (2, "c"))]
        assert (at / ("codegen/host/src/lib1.c" if target == "c" else "codegen/host/lib/lib0.o")).exists() and (at / "codegen/host/src/lib0.c").exists()
        for kind in lib.ir_module_by_target:
            assert (at / f"src/tir-{int(kind.get_target_device_type())}.txt").read_text()


@program
def functions_with_free_sizes_have_no_place():
    from tvm import te
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    lib = tvm.build(te.create_schedule(b.op), [a, b], "c", name="free")
    with tempfile.TemporaryDirectory() as folder, refusing(micro.UnsupportedInModelLibraryFormatError, "sizes that a call gives"):
        micro.export_model_library_format(lib, os.path.join(folder, "x.tar"))


def session_of(library, folder):
    project = micro.generate_project(micro.get_microtvm_template_projects("crt"), library, os.path.join(folder, "project"), {"verbose": True})
    project.build()
    project.flash()
    return micro.Session(project.transport())


@program
def a_function_by_a_session():
    with tempfile.TemporaryDirectory() as folder, session_of(a_sum(), folder) as session:
        device = session.device
        a, b, c = (tvm.nd.array(np.array(v, "int8"), device=device) for v in ([2, 3], [4], [0, 0]))
        add = session.get_system_lib().get_function("add")
        add(a, b, c)
        np.testing.assert_array_equal(c.numpy(), [6, 7])
        assert "another number of tensors" in str(raises(tvm.TVMError, add, a, b))
        raises(AttributeError, session.get_system_lib().get_function, "sub")


@program
def a_stage_with_memory_of_its_own():
    from tvm import te
    a = te.placeholder((64,), name="a")
    b = te.compute(a.shape, lambda i: a[i] * 2.0, name="b")
    c = te.compute(a.shape, lambda i: b[i] + b[63 - i], name="c")
    lib = tvm.build(te.create_schedule(c.op), [a, c], "c", name="mirrored")
    with tempfile.TemporaryDirectory() as folder, session_of(lib, folder) as session:
        x = np.arange(64, dtype="float32")
        given, out = tvm.nd.array(x, device=session.device), tvm.nd.empty((64,), device=session.device)
        for _ in range(8):  # the memory is given back
            session.get_system_lib().get_function("mirrored")(given, out)
        np.testing.assert_array_equal(out.numpy(), 2 * (x + x[::-1]))


def graph_of(mod, name="default", params=None, link=False):
    return relay.build(mod, "c", executor=Executor("graph", {"link-params": link}), runtime=Runtime("crt", {"system-lib": True}), mod_name=name, params=params)


@program
def a_graph_by_a_session():
    mod, inputs = two_inputs()
    x, w = relay.var("x", shape=(1, 10)), relay.var("w", shape=(4, 10))
    dense = tvm.IRModule.from_expr(relay.nn.softmax(relay.nn.dense(x, w)))
    weights = {"w": np.random.default_rng(5).standard_normal((4, 10)).astype("float32")}
    both = [graph_of(mod, "first"), graph_of(dense, "second", weights)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "both.tar")
        micro.export_model_library_format(both, path)
        project = micro.generate_project_from_mlf(micro.get_microtvm_template_projects("crt"), os.path.join(folder, "project"), path)
        project.build()
        with micro.Session(project.transport()) as session:
            for lib, given, params, want in ((both[0], inputs, {}, inputs["x"] + inputs["y"] ** 2),
                                             (both[1], {"x": inputs["x"]}, both[1].get_params(), generate_ref_data(dense, {"x": inputs["x"]}, weights)["output"])):
                executor = micro.create_local_graph_executor(lib.get_graph_json(), session.get_system_lib(), session.device)
                executor.set_input(**params)
                executor.run(**given)
                np.testing.assert_allclose(executor.get_output(0).numpy(), want, rtol=1e-5)


@program
def a_graph_by_a_session_node_by_node():
    mod, inputs = two_inputs()
    lib = graph_of(mod)
    with tempfile.TemporaryDirectory() as folder, session_of(lib, folder) as session, contextlib.redirect_stdout(io.StringIO()) as printed:
        executor = micro.create_local_debug_executor(lib.get_graph_json(), session.get_system_lib(), session.device, dump_root=folder)
        executor.set_input(**lib.get_params())
        executor.run(**inputs)
        np.testing.assert_allclose(executor.get_output(0).numpy(), inputs["x"] + inputs["y"] ** 2, rtol=1e-5)
        kernels = [n["name"] for n in json.loads(lib.get_graph_json())["nodes"] if n["op"] != "null"]
        assert all(name[:12] in printed.getvalue() for name in kernels), printed.getvalue()
        times = executor.run_individual(1)
        assert sum(t[0] > 0 for t in times) == len(kernels)
        dumped = os.listdir(executor.dump_path)
        assert any("tensors" in name or name.endswith(".params") for name in dumped), dumped


@program
def sources_of_the_runtime():
    folder = micro.get_standalone_crt_dir()
    assert folder == micro.get_standalone_crt_dir()
    with refusing(micro.CrtNotFoundError, "graph_executor"):
        micro.get_standalone_crt_lib("utvm")
    mod, _ = two_inputs()
    with tempfile.TemporaryDirectory() as place:
        micro.generate_project(micro.get_microtvm_template_projects("crt"), graph_of(mod), os.path.join(place, "project"))
        sources = [source for part in ("common", "graph_executor") for source in pathlib.Path(micro.get_standalone_crt_lib(part)).glob("*.c")]
        assert len(sources) > 2 and all(source.is_relative_to(folder) for source in sources)
        for source in sources:  # with a project's configuration
            subprocess.run(["gcc", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", f"-I{folder}/include", f"-I{place}/project/include", str(source)], check=True)


@program
def graphs_with_their_weights_in_the_code():
    x, w = relay.var("x", shape=(1, 10)), relay.var("w", shape=(4, 10))
    mod, params = tvm.IRModule.from_expr(relay.nn.dense(x, w)), {"w": np.ones((4, 10), "float32")}
    with tempfile.TemporaryDirectory() as folder:
        with refusing(tvm.TVMError, "cannot tell apart"):
            micro.export_model_library_format([graph_of(mod, "a", params, True), graph_of(mod, "b", params, True)], os.path.join(folder, "x.tar"))
        lib = graph_of(mod, "a", params, True)
        with session_of(lib, folder) as session, refusing(ValueError, "build without link-params"):
            micro.create_local_graph_executor(lib.get_graph_json(), session.get_system_lib(), session.device)


# ---- C of external code generators
def offloaded(constant=True):
    """Arithmetic that ccompiler takes, around an exponential that it does not."""
    x = relay.var("x", shape=(3, 4))
    other = relay.const(np.arange(12, dtype="float32").reshape(3, 4)) if constant else relay.var("y", shape=(3, 4))

    def outside(call):
        begun = [relay.annotation.compiler_begin(a, "ccompiler") for a in call.args]
        return relay.annotation.compiler_end(relay.Call(call.op, begun, call.attrs), "ccompiler")
    first = outside(relay.multiply(x, other))
    mod = tvm.IRModule.from_expr(relay.Function([v for v in (x, other) if isinstance(v, relay.Var)], outside(relay.subtract(relay.exp(relay.negative(relay.abs(first))), x))))
    return relay.transform.PartitionGraph()(relay.transform.InferType()(mod))


@program(*[(i, u, c) for i, u in INTERFACES[:2] for c in (True, False)])
def external_code_in_a_program(interface, unpacked_api, constant):
    rng = np.random.default_rng(7)
    inputs = {"x": rng.standard_normal((3, 4)).astype("float32")}
    other = np.arange(12, dtype="float32").reshape(3, 4)
    if not constant:
        inputs["y"] = other
    want = np.exp(-np.abs(inputs["x"] * other)) - inputs["x"]
    compile_and_run(AOTTestModel(module=offloaded(constant), inputs=inputs, outputs={"output": want}), AOT_DEFAULT_RUNNER, interface, unpacked_api)


@program(True, False)
def external_code_in_a_graph(constant):
    lib = graph_of(offloaded(constant))
    x, other = np.ones((3, 4), "float32") / 2, np.arange(12, dtype="float32").reshape(3, 4)
    with tempfile.TemporaryDirectory() as folder, session_of(lib, folder) as session:
        executor = micro.create_local_graph_executor(lib.get_graph_json(), session.get_system_lib(), session.device)
        executor.set_input(**lib.get_params())
        executor.run(x=x, **({} if constant else {"y": other}))
        np.testing.assert_allclose(executor.get_output(0).numpy(), np.exp(-np.abs(x * other)) - x, rtol=1e-5)


@program("c", "llvm")
def external_code_beside_code_for_the_runtime(target):
    lib = relay.build(offloaded(), target, executor=Executor("aot"))
    x = np.ones((3, 4), "float32") / 4
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.so")
        lib.export_library(path, cc="gcc", options=["-O2"])
        executor = tvm.runtime.executor.AotModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
        executor.set_input(x=x)
        executor.run()
        np.testing.assert_allclose(executor.get_output(0).numpy(), np.exp(-np.abs(x * np.arange(12).reshape(3, 4))) - x, rtol=1e-5)


@program
def an_object_calls_no_external_code():
    lib = relay.build(offloaded(), "llvm", **for_programs())
    with tempfile.TemporaryDirectory() as folder, refusing(micro.UnsupportedInModelLibraryFormatError, "compile for the target c"):
        micro.export_model_library_format(lib, os.path.join(folder, "x.tar"))


@program
def source_of_an_external_generator():
    lib = relay.build(offloaded(), "llvm")
    sources = [m for m in lib.lib.imported_modules if m.type_key == "c"]
    assert len(sources) == 2 and all(f"tvmgen_default_ccompiler_main_{i}" in m.get_source() for i, m in enumerate(sources))
    module = tvm.get_global_func("codegen.LLVMModuleCreate")("llvm", "empty")
    own = tvm.get_global_func("runtime.CSourceModuleCreate")("int f(void) { return 1; }\n", "c", ["f"], None)
    assert own.get_source().startswith("int f") and own.format == "c" and own.is_dso_exportable and not own.is_binary_serializable
    module.import_module(own)
    assert [m.type_key for m in module.imported_modules] == ["c"]


# ---- names
@program
def outputs_by_the_names_that_a_function_has():
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([x + x, x * x])))
    mod.update_func(mod.get_global_var("main"), mod["main"].with_attr("output_tensor_names", ["out-a", "out.b"]))
    lib = relay.build(mod, "c", **for_programs())
    with tempfile.TemporaryDirectory() as folder:
        header = (unpacked(lib, folder) / "codegen/host/include/tvmgen_default.h").read_text()
    assert "out_a;" in header and "out_b;" in header


@program("graph", "aot")
def a_library_lists_its_model(executor):
    lib = relay.build(two_inputs()[0], "llvm", executor=Executor(executor), mod_name="unusual_name")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.so")
        lib.export_library(path)
        assert list(tvm.runtime.load_module(path).get_function("list_module_names")()) == ["unusual_name"]
