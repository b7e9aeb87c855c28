# SPDX-License-Identifier: Apache-2.0
"""Targets, tuning, remote sessions, the command line as a library, and what else scripts keep at hand."""
import json
import os
import sys
import tempfile

import numpy as np
import tvm
import tvm.testing
from harness import numbers, program, raises
from tvm import autotvm, relay, rpc, te
from tvm.contrib import graph_executor
from tvm.target import Target


@program(("llvm", "llvm", ["cpu"]), ("llvm -mcpu=skylake-avx512", "llvm", ["cpu"]), ("cuda", "cuda", ["cuda", "gpu"]), ("opencl", "opencl", ["opencl", "gpu"]), ("c", "c", ["cpu"]), ("nvidia/geforce-rtx-3070", "cuda", ["cuda", "gpu"]),
         ("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu", "llvm", ["arm_cpu", "cpu"]), ("llvm --keys=mine,cpu", "llvm", ["mine", "cpu"]), ("vulkan", "vulkan", ["vulkan", "gpu"]), ("ext_dev", "ext_dev", []), ("hybrid", "hybrid", []))
def targets(text, kind, keys):
    t = Target(text)
    assert t.kind.name == kind and list(t.keys)[:len(keys)] == keys, list(t.keys)
    assert Target(str(t)).kind.name == kind and t.export()["kind"] == kind


@program
def target_attributes():
    t = Target("llvm -mcpu=haswell -mattr=+avx2,+fma -num-cores=4 -libs=cblas,mkl")
    assert t.attrs["mcpu"] == "haswell" and t.mcpu == "haswell" and list(t.mattr) == ["+avx2", "+fma"] and t.attrs["num-cores"] == 4 and "cblas" in list(t.libs)
    assert Target({"kind": "llvm", "mcpu": "haswell"}).mcpu == "haswell"
    assert Target(json.dumps({"kind": "llvm", "mcpu": "haswell"})).mcpu == "haswell"
    assert str(Target("llvm")).startswith("llvm")
    host = Target("cuda", host="llvm")
    assert host.host.kind.name == "llvm" and Target(Target("cuda"), Target("llvm")).host.kind.name == "llvm"
    assert Target({"kind": "cuda", "host": {"kind": "llvm", "mcpu": "haswell"}}).host.mcpu == "haswell"
    raises(ValueError, Target, "no_such_kind")
    raises((ValueError, tvm.TVMError), Target, "llvm -no-such-option=3")
    raises((ValueError, tvm.TVMError), Target, {"kind": "llvm", "nothing": 1})
    raises(Exception, Target, 3)
    assert Target("llvm").max_num_threads is not None and Target("cuda -max_num_threads=77").max_num_threads == 77


@program
def current_targets():
    assert Target.current() is None
    raises(ValueError, Target.current, False)
    with Target("llvm") as t:
        assert Target.current() == t
        with Target("cuda"):
            assert Target.current().kind.name == "cuda"
        assert Target.current().kind.name == "llvm"
    assert Target.current() is None
    with tvm.target.arm_cpu("rasp3b"):
        assert "arm_cpu" in Target.current().keys


@program
def named_targets():
    assert "arm_cpu" in tvm.target.arm_cpu().keys and tvm.target.cuda().kind.name == "cuda" and tvm.target.mali().kind.name == "opencl" and "mali" in tvm.target.mali().keys
    assert tvm.target.intel_graphics().kind.name == "opencl" and tvm.target.rocm().kind.name == "rocm" and tvm.target.bifrost().kind.name == "opencl"
    assert tvm.target.create("llvm").kind.name == "llvm" and tvm.target.target.micro("host").kind.name == "c" and "adreno" in tvm.target.adreno().keys
    raises(ValueError, tvm.target.target.micro, "no-such-board")
    assert len(Target.list_kinds()) > 5 and "llvm" in Target.list_kinds()
    assert "nvidia/tesla-v100" in tvm.target.list_tags()
    tvm.target.register_tag("programs/mine", {"kind": "llvm", "mcpu": "haswell"}, True)
    assert Target("programs/mine").mcpu == "haswell"
    assert tvm.ir.structural_equal(Target("llvm"), Target("llvm")) and not tvm.ir.structural_equal(Target("llvm"), Target("c"))


@program
def generic_functions():
    @tvm.target.generic_func
    def work(x):
        return x + 1

    @work.register("gpu")
    def _gpu(x):
        return x + 10

    @work.register(["arm_cpu", "mine"])
    def _arm(x):
        return x + 100
    assert work(1) == 2
    with Target("cuda"):
        assert work(1) == 11
    with Target("llvm --keys=mine"):
        assert work(1) == 101
    with Target("llvm"):
        assert work(1) == 2
    raises(Exception, work.register, lambda x: x, "gpu")

    @tvm.target.override_native_generic_func("programs.native")
    def native(x):
        return -x

    @native.register("cpu")
    def _cpu(x):
        return x * 3
    with Target("llvm"):
        assert native(2) == 6


def space():
    @autotvm.template("programs/matmul")
    def matmul(n, l, m, dtype):
        a, b = te.placeholder((n, l), name="A", dtype=dtype), te.placeholder((l, m), name="B", dtype=dtype)
        k = te.reduce_axis((0, l), name="k")
        c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        s = te.create_schedule(c.op)
        y, x = s[c].op.axis
        cfg = autotvm.get_config()
        cfg.define_split("tile_y", y, num_outputs=2)
        cfg.define_split("tile_x", x, num_outputs=2)
        cfg.define_knob("unroll", [0, 1])
        yo, yi = cfg["tile_y"].apply(s, c, y)
        xo, xi = cfg["tile_x"].apply(s, c, x)
        s[c].reorder(yo, xo, k, yi, xi)
        if cfg["unroll"].val:
            s[c].unroll(yi)
        return s, [a, b, c]
    return autotvm.task.create("programs/matmul", args=(32, 32, 32, "float32"), target="llvm")


TASK = space()


@program
def tasks_and_spaces():
    assert len(TASK.config_space) == 6 * 6 * 2 and TASK.name == "programs/matmul" and TASK.flop == 2 * 32 ** 3 and TASK.workload == ("programs/matmul", 32, 32, 32, "float32")
    config = TASK.config_space.get(5)
    assert config.index == 5 and set(config.to_json_dict()) >= {"index", "entity"}
    again = autotvm.task.ConfigEntity.from_json_dict(config.to_json_dict())
    assert again["tile_y"].size == config["tile_y"].size and again["unroll"].val == config["unroll"].val
    assert "tile_y" in TASK.config_space.space_map and len(TASK.config_space.space_map["tile_x"]) == 6
    s, args = TASK.instantiate(config)
    f = tvm.build(s, args, "llvm")
    x, y, out = numbers(32, 32), numbers(32, 32, seed=3), tvm.nd.array(np.zeros((32, 32), "float32"))
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    tvm.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-3, atol=1e-4)
    raises(Exception, TASK.config_space.get, 10 ** 6)


@program
def spaces_by_hand():
    cfg = autotvm.task.space.ConfigSpace()
    x = autotvm.task.space.VirtualAxis(256)
    cfg.define_split("tile", x, num_outputs=3)
    assert len(cfg) == 45
    cfg = autotvm.task.space.ConfigSpace()
    cfg.define_split("tile", autotvm.task.space.VirtualAxis(24), num_outputs=3, policy="candidate", candidate=[[2, 3, 4], [1, 4, 6]])
    assert len(cfg) == 2
    cfg = autotvm.task.space.ConfigSpace()
    cfg.define_split("tile", autotvm.task.space.VirtualAxis(512), policy="power2", num_outputs=2)
    assert len(cfg) == 10
    cfg = autotvm.task.space.ConfigSpace()
    cfg.define_split("tile", autotvm.task.space.VirtualAxis(512), policy="factors", num_outputs=2, filter=lambda e: e.size[-1] <= 16)
    assert len(cfg) == 5
    cfg.define_knob("k", [1, 2, 3])
    assert len(cfg) == 15
    cfg = autotvm.task.space.ConfigSpace()
    a, b, c = (autotvm.task.space.VirtualAxis(4) for _ in range(3))
    cfg.define_reorder("r", [a, b, c], policy="all")
    assert len(cfg) == 6
    cfg.define_annotate("ann", [a, b], policy="try_unroll")
    assert len(cfg) == 6 * 4


@program
def flops():
    a, b = te.placeholder((64, 32), name="a"), te.placeholder((32, 16), name="b")
    k = te.reduce_axis((0, 32), "k")
    c = te.compute((64, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))
    assert autotvm.task.task.compute_flop(te.create_schedule(c.op)) == 2 * 64 * 16 * 32
    d = te.compute((64,), lambda i: te.max(a[i, 0], a[i, 1]))
    raises(RuntimeError, autotvm.task.task.compute_flop, te.create_schedule(te.compute((4,), lambda i: a[i, 0]).op))
    assert d is not None


@program("random", "grid", "ga")
def tuners(kind):
    tuner = {"random": autotvm.tuner.RandomTuner, "grid": autotvm.tuner.GridSearchTuner, "ga": autotvm.tuner.GATuner}[kind](TASK)
    seen = tuner.next_batch(8)
    assert len(seen) == 8 and len({c.index for c in seen}) == 8
    tuner.update([autotvm.MeasureInput(TASK.target, TASK, c) for c in seen], [autotvm.MeasureResult((0.1 * i + 0.1,), 0, 0.1, 1.0) for i, c in enumerate(seen)])
    assert tuner.has_next()


@program
def records():
    config = TASK.config_space.get(3)
    given = autotvm.MeasureInput(Target("llvm"), TASK, config), autotvm.MeasureResult((2.0,), 0, 2.3, 1.5)
    row = autotvm.record.encode(*given)
    back = autotvm.record.decode(row)
    assert back[0].config.index == 3 and back[1].costs == (2.0,) and back[0].task.name == TASK.name
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.json")
        autotvm.callback.log_to_file(path)(None, [given[0]] * 2, [given[1], autotvm.MeasureResult((1.0,), 0, 2.3, 1.5)])
        rows = list(autotvm.record.load_from_file(path))
        assert len(rows) == 2 and rows[1][1].costs == (1.0,)
        best = os.path.join(folder, "best.json")
        autotvm.record.pick_best(path, best)
        assert len(list(autotvm.record.load_from_file(best))) == 1
        with autotvm.apply_history_best(path) as history:
            assert history.query(Target("llvm"), TASK.workload).index == 3
            with Target("llvm"):
                s, args = TASK.func(*TASK.args)
                assert len(args) == 3
    assert autotvm.record.measure_str_key(given[0]) == autotvm.record.measure_str_key(given[0])
    raises(Exception, autotvm.record.decode, "{}")


@program
def configurations_in_context():
    fixed = autotvm.task.ApplyConfig(TASK.config_space.get(7))
    with fixed:
        assert autotvm.task.DispatchContext.current is fixed
        assert autotvm.task.DispatchContext.current.query(None, None).index == 7
    assert isinstance(autotvm.task.DispatchContext.current, autotvm.task.FallbackContext)
    with autotvm.FallbackContext() as context:
        assert context.query(Target("llvm"), ("none", 1)).is_fallback


@program
def tuned():
    measure = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=1, timeout=10))
    rows = []
    tuner = autotvm.tuner.RandomTuner(TASK)
    tuner.tune(n_trial=3, measure_option=measure, callbacks=[lambda t, ins, results: rows.extend(results)])
    assert len(rows) == 3 and all(r.error_no == autotvm.MeasureErrorNo.NO_ERROR for r in rows) and tuner.best_config is not None


@program
def sessions():
    remote = rpc.LocalSession()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.bin")
        with open(path, "wb") as out:
            out.write(b"abc")
        remote.upload(path, target="given.bin")
        assert bytes(remote.download("given.bin")) == b"abc"
        remote.remove("given.bin")
        a = te.placeholder((4,), name="a")
        b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
        lib = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="plus")
        lib.export_library(os.path.join(folder, "plus.so"))
        remote.upload(os.path.join(folder, "plus.so"))
        loaded = remote.load_module("plus.so")
        device = remote.cpu(0)
        x, y = tvm.nd.array(np.arange(4, dtype="float32"), device), tvm.nd.array(np.zeros(4, "float32"), device)
        loaded["plus"](x, y)
        assert (y.numpy() == np.arange(4) + 1).all()
        assert loaded.time_evaluator("plus", device, number=2)(x, y).mean > 0


@program
def executors_and_factories():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    data, weight = numbers(2, 3), numbers(4, 3)
    lib = relay.build(mod, target="llvm", params={"w": weight})
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.set_input("x", data)
    m.run()
    tvm.testing.assert_allclose(m.get_output(0).numpy(), data @ weight.T, rtol=1e-4, atol=1e-5)
    assert m.get_num_outputs() == 1 and m.get_num_inputs() >= 1 and m.get_input_index("x") >= 0 and m.get_input("x").shape == (2, 3)
    m.set_input(x=data)
    m.run(x=data * 2)
    tvm.testing.assert_allclose(m.get_output(0).numpy(), 2 * data @ weight.T, rtol=1e-4, atol=1e-5)
    out = tvm.nd.array(np.zeros((2, 4), "float32"))
    m.get_output(0, out)
    assert out.numpy().any()
    result = m.benchmark(tvm.cpu(), number=1, repeat=2)
    assert result.mean > 0 and len(result.results) == 2
    assert json.loads(lib.get_graph_json())["nodes"] and lib.get_params() is not None and lib.get_lib() is not None
    graph, library, params = lib
    assert json.loads(graph) and library is not None and isinstance(params, dict) or params is not None
    with tempfile.TemporaryDirectory() as folder:
        lib.export_library(os.path.join(folder, "l.so"))
        again = graph_executor.GraphModule(tvm.runtime.load_module(os.path.join(folder, "l.so"))["default"](tvm.cpu()))
        again.set_input("x", data)
        again.run()
        tvm.testing.assert_allclose(again.get_output(0).numpy(), data @ weight.T, rtol=1e-4, atol=1e-5)
    raises(Exception, m.get_output, 7)


@program
def virtual_machines():
    x = relay.var("x", shape=(relay.Any(), 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    exe = relay.vm.compile(mod, target="llvm")
    code, lib = exe.save()
    loaded = tvm.runtime.vm.Executable.load_exec(code, lib)
    machine = tvm.runtime.vm.VirtualMachine(loaded, tvm.cpu())
    data = numbers(5, 3)
    tvm.testing.assert_allclose(machine.invoke("main", data).numpy(), np.maximum(data, 0))
    machine.set_input("main", data)
    machine.run()
    assert machine.get_outputs()[0].shape == (5, 3)
    assert exe.bytecode and exe.stats and isinstance(exe.globals, (list, dict)) or len(exe.globals)
    raises(Exception, machine.invoke, "nothing", data)
    assert machine.benchmark(tvm.cpu(), data, number=1, repeat=1).mean > 0


@program
def compiled_by_the_command_line_package():
    from tvm.driver import tvmc
    from tvm.driver.tvmc.shape_parser import parse_shape_string
    from tvm.driver.tvmc.target import target_from_cli
    from tvm.driver.tvmc.fmtopt import format_times
    assert parse_shape_string("a:[1,2] b:[3]") == {"a": [1, 2], "b": [3]} and parse_shape_string("in/put:[1,-1]")["in/put"][1] == -1
    raises(Exception, parse_shape_string, "a:1,2")
    assert target_from_cli("llvm")[0].kind.name == "llvm"
    raises(Exception, target_from_cli, "no_such_target")
    text = format_times(tvm.runtime.module.BenchmarkResult([0.1, 0.2]))
    assert "mean (ms)" in text and "150" in text
    x = relay.var("x", shape=(2, 3))
    model = tvmc.model.TVMCModel(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), {})
    package = tvmc.compile(model, target="llvm")
    result = tvmc.run(package, device="cpu", inputs={"x": numbers(2, 3)})
    assert (result.get_output("output_0") == np.maximum(numbers(2, 3), 0)).all()
    assert tvmc.frontends.get_frontend_names()
    raises(Exception, tvmc.load, "/nonexistent.onnx")
    from tvm.driver.tvmc.pass_config import parse_configs
    from tvm.driver.tvmc.pass_list import parse_pass_list_str
    assert parse_configs(["relay.FuseOps.max_depth=3"]) == {"relay.FuseOps.max_depth": 3} and parse_pass_list_str("FoldConstant,FuseOps") == ["FoldConstant", "FuseOps"]
    raises(Exception, parse_configs, ["no.such=3"])


@program
def pools_of_processes():
    from tvm.contrib.popen_pool import PopenPoolExecutor, PopenWorker
    worker = PopenWorker()
    worker.send(os.path.join, ["a", "b"])
    assert worker.recv() == "a/b"
    worker.send(os.path.join, [3])
    raises(Exception, worker.recv)
    pool = PopenPoolExecutor(max_workers=2, timeout=20)
    assert [r.value for r in pool.map_with_error_catching(abs, [-1, 2, -3])] == [1, 2, 3]
    assert pool.submit(max, 3, 4).result() == 4


@program
def pickles_remembered():
    from tvm.contrib.pickle_memoize import memoize
    calls = []
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("HOME")
        os.environ["HOME"] = folder
        try:
            @memoize("programs.tools.data")
            def data():
                calls.append(1)
                return np.arange(3)
            assert (data() == np.arange(3)).all() and (data() == np.arange(3)).all() and len(calls) == 1
        finally:
            os.environ["HOME"] = before or ""


@program
def compilers_by_name():
    from tvm.contrib import cc, ndk, tar
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.c")
        with open(path, "w") as f:
            f.write("int two() { return 2; }\n")
        cc.create_shared(os.path.join(folder, "x.so"), [path])
        assert os.path.exists(os.path.join(folder, "x.so"))
        tar.tar(os.path.join(folder, "x.tar"), [path])
        tar.untar(os.path.join(folder, "x.tar"), folder)
    assert ndk is not None
    raises(Exception, ndk.create_shared, "a.so", ["b.o"])
    assert sys.version_info > (3, 0)


@program
def contrib_dlpack():
    from tvm.contrib.dlpack import convert_func
    assert callable(convert_func)


@program
def assertions():
    tvm.testing.assert_allclose(np.ones(3), np.ones(3) + 1e-9)
    raises(AssertionError, tvm.testing.assert_allclose, np.ones(3), np.zeros(3))
    raises(AssertionError, tvm.testing.assert_allclose, np.ones(3), np.ones((1, 3)))
    assert ("llvm", tvm.cpu(0)) in [(t, d) for t, d in tvm.testing.enabled_targets()] and tvm.testing.device_enabled("llvm")
    tvm.testing.check_numerical_grads(lambda x: (x ** 2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    raises(AssertionError, tvm.testing.check_numerical_grads, lambda x: (x ** 2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 5.0])])
    assert tvm.testing.requires_llvm is not None and tvm.testing.requires_gpu is not None and tvm.testing.uses_gpu is not None
    tvm.testing.assert_prim_expr_equal(te.var("x") * 0 + 1, 1)
    raises(Exception, tvm.testing.assert_prim_expr_equal, te.var("x"), 1)
