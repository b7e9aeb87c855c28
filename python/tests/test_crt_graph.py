# SPDX-License-Identifier: Apache-2.0
"""The C runtime's graph executor: Model Library Formats for it, and C programs that run them, as bundles of the classic stack are written."""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import numpy as np

import tilewright.classic as tvm
from test_source import small_net
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor
from tilewright.classic.micro import export_model_library_format
from tilewright.classic.relay.backend import Executor, Runtime

STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]
SANITIZE = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Reads the graph, parameters and inputs from files; writes outputs; counts what the runtime takes of memory.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/platform.h>

static long in_use, limit = 1L << 40;
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr) {
  (void)dev;
  if (--limit < 0 || !(*out_ptr = malloc(num_bytes))) return kTvmErrorPlatformNoMemory;
  ++in_use;
  return kTvmErrorNoError;
}
tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev) {
  (void)dev;
  --in_use;
  free(ptr);
  return kTvmErrorNoError;
}
static char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  char *out;
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  out = malloc(*bytes + 1);
  if (fread(out, 1, *bytes, file) != *bytes) exit(9);
  out[*bytes] = 0;
  fclose(file);
  return out;
}
/* program graph.json params {name code bits file}* -- {code bits elements file}* [limit] */
static int session(int argc, char **argv) {
  TVMPackedFunc pf;
  TVMArgs none = TVMArgs_Create(NULL, NULL, 0);
  TVMGraphExecutor *executor = NULL;
  DLDevice dev = {kDLCPU, 0};
  size_t bytes, param_bytes;
  char *json = read_file(argv[1], &bytes), *params = read_file(argv[2], &param_bytes);
  int i = 3, output = 0, error = 0;
  error = TVMPackedFunc_InitGlobalFunc(&pf, "runtime.SystemLib", &none) || TVMPackedFunc_Call(&pf) ||
          TVMGraphExecutor_Create(json, TVMArgs_AsModuleHandle(&pf.ret_value, 0), &dev, &executor) ||
          TVMGraphExecutor_LoadParams(executor, params, (uint32_t)param_bytes);
  free(json);
  free(params);
  for (; !error && strcmp(argv[i], "--") != 0; i += 4) {
    char *data = read_file(argv[i + 3], &bytes);
    int64_t shape[1];
    DLTensor t = {0};
    t.data = data, t.ndim = 1, t.shape = shape;
    t.dtype.code = (uint8_t)atoi(argv[i + 1]), t.dtype.bits = (uint8_t)atoi(argv[i + 2]), t.dtype.lanes = 1;
    shape[0] = (int64_t)(bytes * 8 / (t.dtype.bits < 8 ? 8 : t.dtype.bits));
    error = TVMGraphExecutor_SetInput(executor, argv[i], &t);
    free(data);
  }
  for (int run = 0; run < 2 && !error; ++run) error = TVMGraphExecutor_Run(executor);
  for (++i; !error && i + 3 < argc; i += 4, ++output) {
    int64_t shape[1];
    DLTensor t = {0};
    FILE *file = fopen(argv[i + 3], "wb");
    t.ndim = 1, t.shape = shape, shape[0] = atoi(argv[i + 2]);
    t.dtype.code = (uint8_t)atoi(argv[i]), t.dtype.bits = (uint8_t)atoi(argv[i + 1]), t.dtype.lanes = 1;
    bytes = (size_t)shape[0] * (t.dtype.bits < 8 ? 8 : t.dtype.bits) / 8;
    t.data = calloc(1, bytes + 1);
    error = TVMGraphExecutor_GetOutput(executor, output, &t);
    fwrite(t.data, 1, bytes, file);
    fclose(file);
    free(t.data);
  }
  if (!error && output != TVMGraphExecutor_GetNumOutputs(executor)) return 8;
  if (executor) error |= TVMGraphExecutor_Release(&executor);
  return error;
}
int main(int argc, char **argv) {
  if (TVMInitializeRuntime() != kTvmErrorNoError) return 7;
  if (getenv("LIMIT")) limit = atol(getenv("LIMIT"));
  if (session(argc, argv) != 0) {
    fprintf(stderr, "%s\n", TVMGetLastError());
    return in_use == 0 ? 1 : 6;
  }
  return in_use == 0 ? 0 : 6;
}
"""
CONFIG = "#define TVM_CRT_MAX_NDIM 8\n"
CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


def build(mod, params=None, target="c", name="default", **options):
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target, executor=Executor("graph", options), runtime=Runtime("crt", {"system-lib": True}), params=params or {}, mod_name=name)


def reference(mod, params, inputs):
    executor = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def branches(random):
    """Convolutions that read halos, a concatenation of slices, a reshape, two outputs, an input that is used twice."""
    c, h, w = (int(n) for n in random.integers(2, 7, 3))
    x, y = relay.var("x", shape=(1, c, h, w)), relay.var("y", shape=(1, c, h, w))
    weight = relay.const(random.standard_normal((c, c, 3, 3)).astype("float32"))
    a = relay.nn.relu(relay.nn.conv2d(x, weight, padding=(1, 1)))
    b = relay.nn.conv2d(relay.add(a, y), weight, padding=(1, 1))
    joined = relay.concatenate([relay.strided_slice(a, [0, 1, 0, 0], [1, c, h, w]), b, relay.sigmoid(y)], 1)
    first, second = relay.split(joined, [c - 1], 1).astuple(), joined
    tail = relay.nn.conv2d(relay.TupleGetItem(first, 1), relay.const(random.standard_normal((3, 2 * c, 1, 1)).astype("float32")))
    out = relay.Tuple([relay.reshape(tail, (3, -1)), relay.TupleGetItem(first, 0), relay.nn.batch_flatten(second)])
    return tvm.IRModule.from_expr(relay.Function([x, y], out)), {n: random.standard_normal((1, c, h, w)).astype("float32") for n in "xy"}


class Programs(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)

    def path(self, *names):
        return os.path.join(self.place.name, *names)

    def compiled(self, lib, folder="net", compiler=("gcc",), flags=()):
        """The program of a build; its Model Library Format lies unpacked beside."""
        export_model_library_format(lib, self.path(folder + ".tar"))
        shutil.rmtree(self.path(folder), ignore_errors=True)
        with tarfile.open(self.path(folder + ".tar")) as tar:
            tar.extractall(self.path(folder))
        for name, text in (("crt_config.h", CONFIG), ("main.c", PROGRAM)):
            with open(self.path(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        sources = [self.path(folder, "main.c")]
        objects = []
        for top, _, names in os.walk(self.path(folder)):
            sources += [os.path.join(top, n) for n in sorted(names) if n.endswith(".c") and n != "main.c"]
            objects += [os.path.join(top, n) for n in names if n.endswith(".o")]
        program = self.path(folder, "program")
        made = subprocess.run([*compiler, *STRICT, *flags, "-I", self.path(folder, "runtime/include"), "-I", self.path(folder), *sources, *objects, "-o", program, "-lm"],
                              capture_output=True, text=True)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        return program

    def files(self, folder, name):
        return [self.path(folder, "executor-config/graph", name + ".graph"), self.path(folder, "parameters", name + ".params")]

    def run_program(self, program, graph, params, inputs, outputs, run_by=(), env=None):
        words = []
        for name, value in inputs.items():
            value.tofile(self.path(name + ".bin"))
            words += [name, str(CODES[value.dtype.kind]), "1" if value.dtype == bool else str(value.dtype.itemsize * 8), self.path(name + ".bin")]
        words.append("--")
        for i, value in enumerate(outputs):
            words += [str(CODES[value.dtype.kind]), "1" if value.dtype == bool else str(value.dtype.itemsize * 8), str(value.size), self.path(f"out{i}.bin")]
        done = subprocess.run([*run_by, program, graph, params, *words], capture_output=True, text=True, env={**os.environ, **(env or {})})
        if done.returncode != 0:
            return done
        return [np.fromfile(self.path(f"out{i}.bin"), o.dtype).reshape(o.shape) for i, o in enumerate(outputs)]

    def check(self, mod, params, inputs, target="c", name="default", compiler=("gcc",), flags=(), run_by=(), **options):
        lib = build(mod, params, target, name, **options)
        program = self.compiled(lib, compiler=compiler, flags=flags)
        expected = reference(mod, params, inputs)
        got = self.run_program(program, *self.files("net", name), inputs, expected, run_by)
        self.assertIsInstance(got, list, getattr(got, "stderr", ""))
        for g, e in zip(got, expected):
            np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-5)
        return lib

    def test_random_networks(self):
        for seed in range(3):
            with self.subTest(seed):
                mod, inputs = branches(np.random.default_rng(seed))
                self.check(mod, {}, inputs, flags=SANITIZE)

    def test_weights_in_a_file_and_in_the_code(self):
        mod, params, x = small_net()
        for target in ("c", "llvm"):
            for link in (False, True):
                with self.subTest(target, link=link):
                    lib = self.check(mod, params, {"x": x}, target, "net", flags=() if target == "c" else ("-no-pie",), **{"link-params": link})
                    with open(self.files("net", "net")[1], "rb") as file:
                        self.assertEqual(len(tvm.runtime.load_param_dict(file.read())), 0 if link else 2)
                    with open(self.files("net", "net")[0], encoding="utf-8") as file:
                        self.assertEqual(json.loads(file.read()), json.loads(lib.get_graph_json()))

    def test_integers_and_bools(self):
        x, y = relay.var("x", shape=(3, 5), dtype="int8"), relay.var("y", shape=(3, 5), dtype="int64")
        out = relay.Tuple([relay.greater(x.astype("int64"), y), relay.sum(y, 1), relay.logical_not(relay.less(y, relay.const(0, "int64")))])
        r = np.random.default_rng(1)
        self.check(tvm.IRModule.from_expr(relay.Function([x, y], out)), {}, {"x": r.integers(-5, 5, (3, 5)).astype("int8"), "y": r.integers(-5, 5, (3, 5))}, flags=SANITIZE)

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64"), "no cross compiler for AArch64 here")
    def test_on_another_processor(self):
        mod, inputs = branches(np.random.default_rng(7))
        for target in ("c", "llvm -mtriple=aarch64-linux-gnu"):
            with self.subTest(target):
                self.check(mod, {}, inputs, target, compiler=("aarch64-linux-gnu-gcc",), flags=("-static",), run_by=("qemu-aarch64",))

    def test_what_the_library_holds(self):
        """The contents that tests of the classic stack read."""
        a, b = relay.var("a", shape=(1, 2), dtype="uint8"), relay.var("b", shape=(1, 2), dtype="float32")
        c = relay.var("c", shape=(1, 2), dtype="float32")
        out = relay.add(relay.multiply(relay.cast(a, "float32"), b), c)
        lib = build(tvm.IRModule.from_expr(relay.Function([a, b, c], out)), {"c": np.array([[2.0, 4.0]], "float32")}, name="add")
        export_model_library_format(lib, self.path("add.tar"))
        with tarfile.open(self.path("add.tar")) as tar:
            names = {m.name for m in tar.getmembers() if m.isfile()}
            metadata = json.load(tar.extractfile("./metadata.json"))
            params = tvm.runtime.load_param_dict(tar.extractfile("./parameters/add.params").read())
        for name in ("codegen/host/src/add_lib0.c", "codegen/host/src/add_lib1.c", "executor-config/graph/add.graph", "src/add.relay",
                     "runtime/include/tvm/runtime/crt/graph_executor.h", "runtime/include/dlpack/dlpack.h", "runtime/src/runtime/crt/graph_executor/graph_executor.c"):
            self.assertIn("./" + name, names)
        module = metadata["modules"]["add"]
        self.assertEqual(len(params), 1)
        self.assertEqual([(s["size_bytes"], s.get("input_binding")) for s in module["memory"]["sids"][:2]], [(2, "a"), (8, "b")])
        self.assertEqual([s["size_bytes"] for s in module["memory"]["sids"][2:]], [8, 8])
        self.assertEqual(module["memory"]["functions"]["main"], [{"device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 8, "io_size_bytes": 18}])
        operator = module["memory"]["functions"]["operator_functions"][0]
        self.assertIn("fused_cast_multiply_add", operator["function_name"])
        self.assertEqual(operator["workspace"], [{"device": 1, "workspace_size_bytes": 0}])
        self.assertEqual([(d["short_name"], d["url"], d["url_type"]) for d in module["external_dependencies"]], [("tvm_standalone_crt", "./runtime", "mlf_path")])
        self.assertEqual(len(json.loads(lib.get_graph_json())["nodes"]), 4)

    def test_damaged_graphs_and_no_memory(self):
        """Whatever the text: an error in a sentence, no access outside, and all memory given back."""
        mod, inputs = branches(np.random.default_rng(3))
        lib = build(mod)
        program = self.compiled(lib, flags=SANITIZE)
        expected = reference(mod, {}, inputs)
        graph, params = self.files("net", "default")
        with open(graph, "rb") as file:
            good = file.read()
        with open(params, "rb") as file:
            good_params = file.read()
        random = np.random.default_rng(int(os.environ.get("TILEWRIGHT_SEED", "1")))
        refused = 0
        for i in range(40):
            text, blob = bytearray(good), bytearray(good_params)
            changed = text if i % 3 else blob
            at = int(random.integers(0, len(changed)))
            if i % 4 == 0:
                del changed[at:]
            elif i % 4 == 1:
                changed[at] = int(random.choice(list(b'0123456789[]{}",:- ')))
            elif i % 4 == 2:
                changed[at:at] = changed[max(0, at - 40):at]
            else:  # another number, where a number stands
                digits = [k for k in range(len(changed)) if 48 <= changed[k] <= 57]
                changed[int(random.choice(digits)) if digits else at] = 57
            with open(self.path("bad.graph"), "wb") as file:
                file.write(text)
            with open(self.path("bad.params"), "wb") as file:
                file.write(blob)
            done = self.run_program(program, self.path("bad.graph"), self.path("bad.params"), inputs, expected)
            if isinstance(done, list):
                continue
            self.assertIn(done.returncode, (1, 8), done.stderr)
            refused += done.returncode == 1
        self.assertGreater(refused, 12)
        for limit in (0, 1, 2, 5, 12, 20, 28):
            done = self.run_program(program, graph, params, inputs, expected, env={"LIMIT": str(limit)})
            self.assertEqual((done.returncode, "no memory" in done.stderr), (1, True), (limit, done.stderr))


if __name__ == "__main__":
    sys.exit(unittest.main())
