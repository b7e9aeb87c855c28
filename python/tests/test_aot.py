# SPDX-License-Identifier: Apache-2.0
"""Models for programs in C, as scripts of the classic stack build them: the interface, memory pools, planners, the Model Library Format."""
import json
import os
import re
import subprocess
import tarfile
import tempfile
import unittest

import numpy as np

import tilewright.classic as tvm
from test_source import STRICT, small_net
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor
from tilewright.classic.ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tilewright.classic.micro import UnsupportedInModelLibraryFormatError, export_model_library_format
from tilewright.classic.relay.backend import Executor, Runtime
from tilewright.classic.usmp import BufferInfo, PoolAllocation

C_TYPES = {"float32": "float", "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t", "int64": "int64_t"}
# Memory that ends where a page without access begins.
GUARDED = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
__attribute__((unused)) static void *guarded(size_t bytes, size_t alignment) {
  const size_t pages = (bytes + 4095) / 4096 * 4096 + 4096, used = (bytes + alignment - 1) / alignment * alignment;
  uint8_t *at = mmap(0, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(at + pages, 4096, PROT_NONE);
  memset(at, 0x5a, pages);
  return at + pages - used;
}
static int fill(void *at, size_t bytes, const char *path) {
  FILE *file = fopen(path, "rb");
  const int good = file && fread(at, 1, bytes, file) == bytes;
  if (file) fclose(file);
  return good;
}
static void write_out(const void *at, size_t bytes, const char *path) {
  FILE *file = fopen(path, "wb");
  fwrite(at, 1, bytes, file);
  fclose(file);
}
"""


def build(mod, params, target="c", interface="c", pools=None, constants=None, config=None, name="default", **options):
    executor = Executor("aot", {"interface-api": interface, "unpacked-api": interface == "c", **options})
    with tvm.transform.PassContext(opt_level=3, config=config or {}):
        return relay.build(mod, target, executor=executor, runtime=Runtime("crt"), params=params, mod_name=name,
                           workspace_memory_pools=pools, constant_memory_pools=constants)


def reference(mod, params, inputs):
    executor = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def unpack(lib, folder):
    path = os.path.join(folder, "model.tar")
    export_model_library_format(lib, path)
    with tarfile.open(path) as tar:
        tar.extractall(folder)
    return os.path.join(folder, "codegen/host")


def compile_and_run(folder, source, sources, cflags=()):
    main, program = os.path.join(folder, "main.c"), os.path.join(folder, "program")
    with open(main, "w") as file:
        file.write(GUARDED + source)
    subprocess.run(["gcc", *STRICT, *cflags, f"-I{folder}/codegen/host/include", "-c", *sources], cwd=folder, check=True)
    objects = [os.path.basename(s)[:-1] + "o" for s in sources]
    lib = os.path.join(folder, "codegen/host/lib")
    objects += [os.path.join(lib, name) for name in (os.listdir(lib) if os.path.isdir(lib) else [])]
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-Wall", *cflags, f"-I{folder}/codegen/host/include", main, *objects, "-o", program, "-lm"], cwd=folder, check=True)
    subprocess.run([program], cwd=folder, check=True)


def run_in_c(test, lib, inputs, outputs, pools=(), constants=(), workspace_io=False, alignment=16, cflags=()):
    """What a program computes whose tensors and pools end where forbidden pages begin."""
    with tempfile.TemporaryDirectory() as folder:
        host = unpack(lib, folder)
        name = lib.libmod_name
        prefix = f"tvmgen_{name}"
        lines = [f"  struct {prefix}_inputs inputs;", f"  struct {prefix}_outputs outputs;"]
        arguments = [] if workspace_io else ["&inputs", "&outputs"]
        if pools or constants:
            lines.append(f"  struct {prefix}_workspace_pools pools;")
            arguments.append("&pools")
        for pool in pools:
            lines.append(f"  pools.{pool} = guarded(TVMGEN_{name.upper()}_{pool.upper()}_WORKSPACE_POOL_SIZE, {alignment});")
        for pool in constants:
            macro = f"TVMGEN_{name.upper()}_{pool.upper()}_CONSTANT_POOL"
            lines += [f"  static const uint8_t data_{pool}[{macro}_SIZE] = {{{macro}_DATA}};", f"  pools.{pool} = guarded({macro}_SIZE, {alignment});",
                      f"  memcpy(pools.{pool}, data_{pool}, {macro}_SIZE);"]
        if workspace_io:
            lines += [f"  inputs = {prefix}_map_inputs(&pools);", f"  outputs = {prefix}_map_outputs(&pools);"]
        for i, (key, value) in enumerate(inputs.items()):
            value.tofile(os.path.join(folder, f"in{i}"))
            member = re.sub(r"\W", "_", key)
            if not workspace_io:
                lines.append(f"  inputs.{member} = guarded({value.nbytes}, {value.itemsize});")
            lines.append(f'  if (!fill(inputs.{member}, {value.nbytes}, "in{i}")) return 1;')
        names = ["output"] if len(outputs) == 1 else [f"output{i}" for i in range(len(outputs))]
        if not workspace_io:
            lines += [f"  outputs.{n} = guarded({o.nbytes}, {o.itemsize});" for n, o in zip(names, outputs)]
        lines += [f"  if ({prefix}_run({', '.join(arguments)}) != 0) return 2;"] * (1 if workspace_io else 2)
        lines += [f'  write_out(outputs.{n}, {o.nbytes}, "out{i}");' for i, (n, o) in enumerate(zip(names, outputs))]
        source = f'#include "{prefix}.h"\nint main(void) {{\n' + "\n".join(lines) + "\n  return 0;\n}\n"
        compile_and_run(folder, source, [os.path.join(host, "src", f) for f in sorted(os.listdir(os.path.join(host, "src")))], cflags)
        for i, wanted in enumerate(outputs):
            got = np.fromfile(os.path.join(folder, f"out{i}"), wanted.dtype).reshape(wanted.shape)
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
        with open(os.path.join(host, "include", f"{prefix}.h")) as file:
            return file.read()


def random_net(seed):
    """Layers at random: convolutions, pools, branches that join, elementwise operators of several dtypes."""
    rng = np.random.default_rng(seed)
    channels, size = int(rng.integers(1, 5)), int(rng.integers(5, 14))
    x = relay.var("in.put:0", shape=(1, channels, size, size))
    params, y, live = {}, x, []
    for i in range(int(rng.integers(3, 8))):
        c, s = (int(d) for d in relay.transform.InferType()(tvm.IRModule.from_expr(y))["main"].body.checked_type.shape[1:3])
        kind = int(rng.integers(0, 6))
        if kind <= 1:
            out = int(rng.integers(1, 7))
            params[f"w{i}"] = (rng.standard_normal((out, c, 3, 3)) / 3).astype("float32")
            y = relay.nn.relu(relay.nn.conv2d(y, relay.var(f"w{i}", shape=params[f"w{i}"].shape), padding=(1, 1)))
        elif kind == 2 and s >= 4:
            y = relay.nn.avg_pool2d(y, (2, 2), strides=(2, 2))
        elif kind == 3:
            y = relay.concatenate([y, relay.exp(relay.negative(relay.abs(y)))], 1)
        elif kind == 4:
            y = relay.cast(relay.cast(relay.multiply(y, relay.const(10.0)), "int8"), "float32")
        else:
            y = relay.add(y, relay.sigmoid(y))
        live.append(y)
    outputs = [relay.nn.softmax(relay.nn.batch_flatten(y)), relay.argmax(relay.nn.batch_flatten(live[len(live) // 2]), 1)][: int(rng.integers(1, 3))]
    body = outputs[0] if len(outputs) == 1 else relay.Tuple(outputs)
    return tvm.IRModule.from_expr(body), params, {"in.put:0": rng.standard_normal((1, channels, size, size)).astype("float32")}


class Interface(unittest.TestCase):
    def test_structs_for_both_targets(self):
        mod, params, x = small_net()
        wanted = reference(mod, params, {"x": x})
        for target in ("c", "llvm"):
            with self.subTest(target):
                lib = build(mod, params, target)
                header = run_in_c(self, lib, {"x": x}, wanted)
                self.assertIn("#define TVMGEN_DEFAULT_WORKSPACE_SIZE", header)
                self.assertEqual(lib.get_devices(), [])

    def test_nets_at_random_in_exact_pools(self):
        for seed in range(6):
            with self.subTest(seed):
                mod, params, inputs = random_net(seed)
                wanted = reference(mod, params, inputs)
                lib = build(mod, params, pools=WorkspaceMemoryPools([WorkspacePoolInfo("sram", [tvm.target.Target("c")])]))
                run_in_c(self, lib, inputs, wanted, pools=["sram"])

    def test_packed_functions(self):
        mod, params, x = small_net()
        wanted = reference(mod, params, {"x": x})[0]
        for target in ("c", "llvm"):
            with self.subTest(target), tempfile.TemporaryDirectory() as folder:
                host = unpack(build(mod, params, target, "packed", name="net"), folder)
                self.assertFalse(os.path.exists(os.path.join(host, "include")))
                x.tofile(os.path.join(folder, "in0"))
                compile_and_run(folder, """
struct tensor { void *data; int32_t device[2]; int32_t ndim; uint32_t dtype; int64_t *shape, *strides; uint64_t byte_offset; };
int32_t tvmgen_net_run(void *, int32_t *, int32_t, void *, int32_t *, void *);
int main(void) {
  static float x[200], y[8];
  struct tensor in = {0}, out = {0};
  const void *values[2];
  in.data = x; in.byte_offset = 4; out.data = y;
  values[0] = &in; values[1] = &out;
  if (!fill(x + 1, %d, "in0")) return 1;
  if (tvmgen_net_run(values, 0, 0, 0, 0, 0) != 0) return 2;
  write_out(y, 16, "out0");
  return 0;
}
""" % x.nbytes, [os.path.join(host, "src/net_lib0.c")])
                np.testing.assert_allclose(np.fromfile(os.path.join(folder, "out0"), "float32"), wanted[0], rtol=1e-4, atol=1e-6)

    def test_several_models_in_one_program(self):
        first, second = small_net(1), small_net(2)
        with tempfile.TemporaryDirectory() as folder:
            for target in ("c", "llvm"):
                libs = [build(m, p, target, name=n) for (m, p, _), n in ((first, "one"), (second, "Two"))]
                host = unpack(libs, folder)
                with open(os.path.join(folder, "metadata.json")) as file:
                    self.assertEqual(sorted(json.load(file)["modules"]), ["Two", "one"])
                for i, net in enumerate((first, second)):
                    net[2].tofile(os.path.join(folder, f"in{i}"))
                compile_and_run(folder, """
#include "tvmgen_Two.h"
#include "tvmgen_one.h"
int main(void) {
  static float x[200], y[4], z[4];
  struct tvmgen_one_inputs a = {x}; struct tvmgen_one_outputs b = {y};
  struct tvmgen_two_inputs c = {x}; struct tvmgen_two_outputs d = {z};
  if (!fill(x, %d, "in0") || tvmgen_one_run(&a, &b)) return 1;
  if (!fill(x, %d, "in1") || tvmgen_two_run(&c, &d)) return 1;
  write_out(y, 16, "out0");
  write_out(z, 16, "out1");
  return 0;
}
""" % (first[2].nbytes, second[2].nbytes), [os.path.join(host, "src", f) for f in ("one_lib0.c", "Two_lib0.c")])
                for i, net in enumerate((first, second)):
                    got = np.fromfile(os.path.join(folder, f"out{i}"), "float32")
                    np.testing.assert_allclose(got, reference(net[0], net[1], {"x": net[2]})[0][0], rtol=1e-4, atol=1e-6)
            with self.assertRaisesRegex(tvm.TVMError, "two models are called 'one'"):
                export_model_library_format([libs[0], libs[0]], os.path.join(folder, "twice.tar"))

    def test_the_same_build_runs_from_python(self):
        mod, params, x = small_net()
        for target in ("c", "llvm"):
            executor = tvm.runtime.executor.AotModule(build(mod, params, target)["default"](tvm.cpu()))
            executor.run(x=x)
            np.testing.assert_allclose(executor.get_output(0).numpy(), reference(mod, params, {"x": x})[0], rtol=1e-4, atol=1e-6)

    def test_pools_that_the_runtime_allocates(self):
        mod, params, x = small_net()

        def built(pools=None, constants=None, config=None):
            with tvm.transform.PassContext(opt_level=3, config=config or {}):
                lib = relay.build(mod, "llvm", params=params, executor=Executor("aot"), runtime=Runtime("cpp"), workspace_memory_pools=pools, constant_memory_pools=constants)
            executor = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu()))
            executor.run(x=x)
            np.testing.assert_allclose(executor.get_output(0).numpy(), reference(mod, params, {"x": x})[0], rtol=1e-4, atol=1e-6)
            return {name: int(used.allocated_size) for name, used in lib.executor_codegen_metadata.pool_inputs.items()}, lib

        def pool(name, size=-1):
            return WorkspacePoolInfo(name, [tvm.target.Target("llvm")], PoolInfoProperties(size_hint_bytes=size))
        whole = built(WorkspaceMemoryPools([pool("ram")]))[0]["ram"]
        self.assertGreater(whole, 0)
        self.assertEqual(built()[0], {})
        for algorithm in ("greedy_by_size", "greedy_by_conflicts", "hill_climb"):
            used, lib = built(WorkspaceMemoryPools([pool("fast", whole // 2), pool("slow")]), ConstantMemoryPools([ConstantPoolInfo("flash", [])]), {"tir.usmp.algorithm": algorithm})
            self.assertTrue(0 < used["fast"] <= whole // 2 and used["slow"] > 0 and used["flash"] >= sum(v.nbytes for v in params.values()), used)
            self.assertEqual([p.name for p in lib.metadata().workspace_pools], ["fast", "slow"])

        def last_pool(buffers, pressure):
            at, out = 0, {}
            for b in buffers:
                out[b] = PoolAllocation(b.pool_candidates[-1], at)
                at += (int(b.size_bytes) + 63) // 64 * 64
            return out
        tvm.register_func("tir.usmp.algo.all_in_the_last_pool", last_pool, override=True)
        used = built(WorkspaceMemoryPools([pool("fast"), pool("slow")]), config={"tir.usmp.custom_algorithm": "all_in_the_last_pool"})[0]
        self.assertTrue(used["fast"] == 0 and used["slow"] >= whole, used)
        for pools, constants, what in ((WorkspaceMemoryPools([pool("tiny", 64)]), None, "'tiny' of 64 bytes has no room"),
                                       (None, ConstantMemoryPools([ConstantPoolInfo("flash", [], [], PoolInfoProperties(size_hint_bytes=16))]), "'flash' of 16 bytes has no room")):
            with self.assertRaisesRegex(tvm.TVMError, what):
                built(pools, constants)

    def test_options_that_exclude_each_other(self):
        mod, params, _ = small_net()
        pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram")])
        for options, what in (({"executor": Executor("aot", {"interface-api": "c"}), "runtime": Runtime("crt")}, "Either need interface_api == \"packed\""),
                              ({"executor": Executor("aot", {"unpacked-api": True})}, "Need unpacked-api == false"),
                              ({"executor": Executor("aot", {"interface-api": "d"})}, "interface-api is"),
                              ({"workspace_memory_pools": pools}, "memory pools are of models that are compiled ahead of time")):
            with self.subTest(what), self.assertRaisesRegex(ValueError, what):
                relay.build(mod, "c", params=params, **options)
        with self.assertRaisesRegex(tvm.TVMError, "a packed function takes no memory pools"):
            build(mod, params, interface="packed", pools=pools)
        with self.assertRaisesRegex(tvm.TVMError, "cannot be aligned to 12 bytes"):
            build(mod, params, **{"workspace-byte-alignment": 12})
        x, y = relay.var("a.b", shape=(2,)), relay.var("a:b", shape=(2,))
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(tvm.TVMError, "two inputs are called 'a_b' in C"):
            export_model_library_format(build(tvm.IRModule.from_expr(x + y), {}), os.path.join(folder, "x.tar"))


class Pools(unittest.TestCase):
    def setUp(self):
        self.mod, self.params, self.inputs = random_net(11)
        self.wanted = reference(self.mod, self.params, self.inputs)

    def sizes(self, lib):
        return {name: info.allocated_size for name, info in lib.executor_codegen_metadata.pool_inputs.items()}

    def test_algorithms_and_alignments(self):
        for algorithm in ("greedy_by_size", "greedy_by_conflicts", "hill_climb"):
            for alignment in (8, 64):
                with self.subTest(algorithm, alignment=alignment):
                    lib = build(self.mod, self.params, pools=WorkspaceMemoryPools([WorkspacePoolInfo("ram")]),
                                config={"tir.usmp.enable": True, "tir.usmp.algorithm": algorithm}, **{"workspace-byte-alignment": alignment})
                    run_in_c(self, lib, self.inputs, self.wanted, pools=["ram"], alignment=alignment)
        with self.assertRaisesRegex(tvm.TVMError, "no memory planner 'luck'"):
            build(self.mod, self.params, config={"tir.usmp.algorithm": "luck"})

    def test_two_pools_by_their_sizes(self):
        one = build(self.mod, self.params, pools=WorkspaceMemoryPools([WorkspacePoolInfo("ram")]))
        whole = self.sizes(one)["ram"]
        pools = WorkspaceMemoryPools([WorkspacePoolInfo("fast", [], PoolInfoProperties(size_hint_bytes=whole // 2)), WorkspacePoolInfo("slow")])
        for target in ("c", "llvm"):
            lib = build(self.mod, self.params, target, pools=pools)
            self.assertLessEqual(self.sizes(lib)["fast"], whole // 2)
            run_in_c(self, lib, self.inputs, self.wanted, pools=["fast", "slow"], alignment=16 if target == "c" else 64)
        with self.assertRaisesRegex(tvm.TVMError, "the memory pools are too small: '.*' takes [0-9]+ bytes, for which 'fast' of 16 bytes has no room"):
            build(self.mod, self.params, pools=WorkspaceMemoryPools([WorkspacePoolInfo("fast", [], PoolInfoProperties(size_hint_bytes=16))]))

    def test_weights_in_pools(self):
        mod, params, x = small_net(4)
        wanted = reference(mod, params, {"x": x})
        constants = ConstantMemoryPools([ConstantPoolInfo("flash", [], [], PoolInfoProperties(size_hint_bytes=1000)), ConstantPoolInfo("more", [], [])])
        lib = build(mod, params, pools=WorkspaceMemoryPools([WorkspacePoolInfo("ram")]), constants=constants)
        run_in_c(self, lib, {"x": x}, wanted, pools=["ram"], constants=["flash", "more"])
        self.assertEqual(set(self.sizes(lib)), {"ram", "flash", "more"})
        self.assertLessEqual(self.sizes(lib)["flash"], 1000)
        run_in_c(self, build(mod, params, constants=ConstantMemoryPools([ConstantPoolInfo("flash", [])])), {"x": x}, wanted, constants=["flash"])
        with self.assertRaisesRegex(tvm.TVMError, "the memory pools are too small"):
            lib = build(mod, params, constants=ConstantMemoryPools([ConstantPoolInfo("flash", [], [], PoolInfoProperties(size_hint_bytes=8))]))
            lib.executor_codegen_metadata

    def test_tensors_in_the_pools(self):
        for target in ("c", "llvm"):
            lib = build(self.mod, self.params, target, pools=WorkspaceMemoryPools([WorkspacePoolInfo("ram"), ]), config={"tir.usmp.use_workspace_io": True})
            run_in_c(self, lib, self.inputs, self.wanted, pools=["ram"], workspace_io=True, alignment=16 if target == "c" else 64)
        with self.assertRaisesRegex(tvm.TVMError, "memory pools of the program only"):
            build(self.mod, self.params, config={"tir.usmp.use_workspace_io": True})

    def test_a_planner_of_the_scripts(self):
        seen = []

        @tvm.register_func("tir.usmp.algo.one_after_another", override=True)
        def plan(buffers, pressure):
            at, out = 0, {}
            for b in buffers:
                out[b] = PoolAllocation(b.pool_candidates[0], at)
                at += (b.size_bytes + 15) // 16 * 16
                seen.append((b.size_bytes, len(b.conflicts)))
            return out
        lib = build(self.mod, self.params, pools=WorkspaceMemoryPools([WorkspacePoolInfo("ram")]), config={"tir.usmp.custom_algorithm": "one_after_another"})
        run_in_c(self, lib, self.inputs, self.wanted, pools=["ram"])
        self.assertTrue(seen)

        @tvm.register_func("tir.usmp.algo.all_at_once", override=True)
        def wrong(buffers, pressure):
            return {b: PoolAllocation(b.pool_candidates[0], 0) for b in buffers}
        with self.assertRaisesRegex(tvm.TVMError, "overlap while both are alive"):
            build(self.mod, self.params, config={"tir.usmp.custom_algorithm": "all_at_once"})


class Algorithms(unittest.TestCase):
    """The planners as functions of a script's buffers and conflicts."""

    def chain(self, sizes, **pools):
        pool = WorkspacePoolInfo("ram", [tvm.target.Target("c")], PoolInfoProperties(**pools))
        buffers = [BufferInfo(f"b{i}", size, [pool]) for i, size in enumerate(sizes)]
        for i, b in enumerate(buffers):
            b.set_conflicts([buffers[k] for k in (i - 1, i + 1) if 0 <= k < len(buffers)])
        return pool, buffers

    def test_a_chain_takes_its_largest_pair(self):
        for name in ("greedy_by_size", "greedy_by_conflicts", "hill_climb"):
            with self.subTest(name):
                pool, buffers = self.chain([10, 20, 10, 20, 10, 50, 40])
                places = tvm.get_global_func(f"tir.usmp.algo.{name}")(buffers, 90)
                self.assertEqual(set(places), set(buffers))
                used = 0
                for b, place in places.items():
                    self.assertIs(place.pool_info, pool)
                    used = max(used, (place.byte_offset + b.size_bytes).value)
                    for c in b.conflicts:
                        self.assertTrue(place.byte_offset + b.size_bytes <= places[c].byte_offset or places[c].byte_offset + c.size_bytes <= place.byte_offset)
                self.assertEqual(used, 90)

    def test_equal_buffers_lie_by_name(self):
        pool = WorkspacePoolInfo("ram", [])
        for name in ("greedy_by_size", "greedy_by_conflicts"):
            a, b, c = (BufferInfo(n, 10, [pool]) for n in "abc")
            a.set_conflicts([b, c])  # of each pair one says so
            b.set_conflicts([c])
            places = tvm.get_global_func(f"tir.usmp.algo.{name}")([a, b, c], 0)
            self.assertEqual([int(places[x].byte_offset) for x in (a, b, c)], [20, 10, 0])

    def test_pools_by_their_order_and_size(self):
        small, large = WorkspacePoolInfo("small", [], PoolInfoProperties(size_hint_bytes=30)), WorkspacePoolInfo("large", [])
        a, b = BufferInfo("a", 20, [small, large]), BufferInfo("b", 20, [small, large], alignment=8)
        a.set_conflicts([b])
        b.set_conflicts([a])
        places = tvm.get_global_func("tir.usmp.algo.greedy_by_size")([a, b], 40)
        self.assertEqual({p.pool_info.pool_name for p in places.values()}, {"small", "large"})
        _, tight = self.chain([20, 20], size_hint_bytes=30)
        with self.assertRaisesRegex(tvm.TVMError, "the memory pools are too small"):
            tvm.get_global_func("tir.usmp.algo.hill_climb")(tight, 40)
        with self.assertRaisesRegex(ValueError, "no pool_candidates"):
            tvm.get_global_func("tir.usmp.algo.hill_climb")([BufferInfo("c", 1, [])], 1)


class Metadata(unittest.TestCase):
    def test_from_python(self):
        mod, params, x = small_net()
        pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [])])
        lib = build(mod, params, pools=pools, constants=ConstantMemoryPools([ConstantPoolInfo("flash", [])]), name="net")
        made = lib.lib["get_metadata"]()
        self.assertEqual((made.version, made.mod_name, made.num_inputs, made.num_outputs), (1, "net", 1, 1))
        self.assertEqual((made.inputs[0].name, made.inputs[0].shape, made.inputs[0].dtype, made.inputs[0].num_shape), ("x", x.shape, "float32", x.ndim))
        self.assertEqual([(p.name, p.shape) for p in made.workspace_pools], [("sram", (lib.executor_codegen_metadata.pool_inputs["sram"].allocated_size,))])
        self.assertEqual([p.name_hint for p in made.constant_pools], ["flash"])
        with tempfile.TemporaryDirectory() as folder:
            relay.build(mod, "llvm", params=params, executor=Executor("aot"), mod_name="net").export_library(folder + "/net.so")
            loaded = tvm.runtime.load_module(folder + "/net.so")["get_metadata"]()
        self.assertEqual((loaded.mod_name, loaded.inputs, loaded.outputs, loaded.num_workspace_pools), ("net", made.inputs, made.outputs, 0))
        with self.assertRaises(AttributeError):
            relay.build(mod, "llvm", params=params).lib["get_metadata"]

    def test_in_c(self):
        x = relay.var('in "put"', shape=(2, 3), dtype="int8")
        s = relay.var("scale", shape=(), dtype="float32")
        mod = tvm.IRModule.from_expr(relay.Function([x, s], relay.Tuple([relay.cast(x, "float32") * s, relay.cast(relay.max(x), "bool")])))
        with tempfile.TemporaryDirectory() as folder:
            host = unpack(build(mod, {}, "c", "packed", name="net"), folder)
            with open(os.path.join(host, "src/net_lib0.c")) as file:
                types = re.search(r"struct TVMTensorInfo \{.*?\n#endif", file.read(), re.S).group(0).removesuffix("#endif")
            compile_and_run(folder, types + """
int32_t tvmgen_net_get_c_metadata(void *, int32_t *, int32_t, void *, int32_t *, void *);
static int same(const struct TVMTensorInfo *t, const char *name, int64_t rank, int code, int bits) {
  return strcmp(t->name, name) == 0 && t->num_shape == rank && t->dtype.code == code && t->dtype.bits == bits && t->dtype.lanes == 1;
}
int main(void) {
  const struct TVMMetadata *m = 0;
  int32_t code = 0;
  if (tvmgen_net_get_c_metadata(0, 0, 0, &m, &code, 0) != 0 || code != 3) return 1;
  if (m->version != 1 || m->num_inputs != 2 || m->num_outputs != 2 || m->num_workspace_pools != 0 || strcmp(m->mod_name, "net") != 0) return 2;
  if (!same(m->inputs, "in \\"put\\"", 2, 0, 8) || !same(m->inputs + 1, "scale", 0, 2, 32)) return 3;
  if (m->inputs[0].shape[0] != 2 || m->inputs[0].shape[1] != 3) return 4;
  if (!same(m->outputs, "output0", 2, 2, 32) || !same(m->outputs + 1, "output1", 0, 6, 8)) return 5;
  return 0;
}
""", [os.path.join(host, "src/net_lib0.c")])


class Library(unittest.TestCase):
    def test_what_is_in_it(self):
        mod, params, _ = small_net()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.tar")
            for target, executor, files in (("c", "aot", ["codegen/host/include/tvmgen_net.h", "codegen/host/src/net_lib0.c"]),
                                            ("c", "graph", ["codegen/host/src/net_lib0.c", "codegen/host/src/net_lib1.c", "executor-config/graph/net.graph"]),
                                            ("llvm", "graph", ["codegen/host/src/net_lib0.c", "codegen/host/lib/net_lib1.o", "executor-config/graph/net.graph"])):
                with self.subTest(target, executor=executor):
                    lib = build(mod, params, target, name="net") if executor == "aot" else relay.build(mod, target, params=params, mod_name="net", runtime=Runtime("crt"))
                    self.assertEqual(str(export_model_library_format(lib, path)), path)
                    with tarfile.open(path) as tar:
                        names = {m.name for m in tar.getmembers() if m.isfile()}
                        self.assertIn("./runtime/include/tvm/runtime/crt/crt.h", names)
                        # test_crt_graph.py compiles the one, test_micro.py the other as files of projects.
                        self.assertEqual("./runtime/src/runtime/crt/graph_executor/graph_executor.c" in names, executor == "graph")
                        self.assertEqual("./runtime/src/runtime/crt/aot_executor/aot_executor.c" in names, executor == "aot")
                        names = {n for n in names if not n.startswith("./runtime/")}
                        self.assertEqual(names, {"./" + f for f in [*files, "metadata.json", "parameters/net.params", "src/net.relay"]})
                        self.assertEqual({(m.uid, m.gid, m.uname, m.gname) for m in tar.getmembers()}, {(0, 0, "root", "root")})
                        metadata = json.load(tar.extractfile("./metadata.json"))
                        self.assertIn("def @main", tar.extractfile("./src/net.relay").read().decode())
                        weights = tvm.runtime.load_param_dict(tar.extractfile("./parameters/net.params").read())
                    self.assertEqual(len(weights), 0 if executor == "aot" else 2)
                    self.assertEqual(metadata["version"], 7)
                    module = metadata["modules"]["net"]
                    self.assertEqual((module["model_name"], module["executors"], module["style"]), ("net", [executor], "full-model"))
                    self.assertRegex(module["export_datetime"], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$")
                    main = module["memory"]["functions"]["main"][0]
                    self.assertEqual(set(main), {"device", "workspace_size_bytes", "constants_size_bytes", "io_size_bytes"})
                    self.assertEqual(main["io_size_bytes"], 3 * 9 * 7 * 4 + 16)
                    self.assertEqual("sids" in module["memory"], executor == "graph")
                    if executor == "graph":
                        self.assertIn({"input_binding": "x", "size_bytes": 756}, [{k: v for k, v in s.items() if k != "storage_id"} for s in module["memory"]["sids"]])
                    with open(path, "rb") as file:
                        first = file.read()
                    export_model_library_format(lib, path)
                    with open(path, "rb") as file:
                        self.assertEqual(first, file.read())

    def test_what_has_no_place(self):
        mod, params, _ = small_net()
        lib = relay.build(mod, "c", params=params)
        lib.import_module(tvm.runtime.create_module("mine", {}, b"x"))
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(UnsupportedInModelLibraryFormatError, "found: mine"):
                export_model_library_format(lib, os.path.join(folder, "x.tar"))
            with self.assertRaises(NotImplementedError):
                export_model_library_format(3, os.path.join(folder, "x.tar"))
            with self.assertRaises(tvm.TVMError):
                export_model_library_format(relay.build(mod, "c", params=params), os.path.join(folder, "nowhere/x.tar"))


if __name__ == "__main__":
    unittest.main()
