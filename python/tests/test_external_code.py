# SPDX-License-Identifier: Apache-2.0
"""Other people's kernels: partitioned modules whose functions are C source or modules of a script, through every way of export."""
import os
import random
import shutil
import struct
import tempfile
import unittest

import numpy as np

import tilewright
from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.contrib import cc, graph_executor
from tilewright.classic.relay import transform
from tilewright.classic.relay.backend import contrib
from tilewright.classic.runtime import CSourceModuleCreate
from tilewright.classic.runtime.module import create_module

HAVE_COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
for name, generator in (("add", "ccompiler"), ("subtract", "ccompiler"), ("multiply", "ccompiler"), ("logical_not", "ccompiler"), ("exp", "scripted"), ("exp", "odd"), ("multiply", "scaler")):
    tw.ir.register_op_attr(name, "target." + generator, lambda call: True)


def partitioned(expr, inputs, *targets):
    steps = [transform.InferType(), transform.AnnotateTarget(list(targets)), transform.MergeCompilerRegions(), transform.PartitionGraph()]
    return tw.transform.Sequential(steps)(tw.IRModule.from_expr(relay.Function(inputs, expr)))


def external_functions(mod):
    return [g.name_hint for g, f in mod.functions.items() if f.attrs and "Compiler" in f.attrs]


def run(library, inputs, kind="graph"):
    made = library["default"](tw.cpu())
    executor = graph_executor.GraphModule(made) if kind == "graph" else tw.runtime.executor.AotModule(made)
    for name, value in inputs.items():
        executor.set_input(name, value)
    executor.run()
    return executor.get_output(0).numpy()


def on_the_processor(mod, inputs):
    names = external_functions(mod)
    plain = transform.InlineCompilerFunctionsBoundTo([mod.get_global_var(n) for n in names])(mod)
    assert not external_functions(plain)
    return run(relay.build(plain, "llvm"), inputs)


def exp_source(symbol, form):
    if form == "c":
        return f"""#include <tvm/runtime/c_runtime_api.h>
#include <math.h>
int {symbol}(TVMValue* args, int* type_codes, int num_args, TVMValue* out, int* out_code, void* resource) {{
  DLTensor *x = (DLTensor*)args[0].v_handle, *y = (DLTensor*)args[1].v_handle;
  int64_t n = 1;
  for (int i = 0; i < x->ndim; ++i) n *= x->shape[i];
  if (n > 1000) {{ TVMAPISetLastError("too many elements"); return -1; }}
  for (int64_t i = 0; i < n; ++i) ((float*)y->data)[i] = expf(((float*)x->data)[i]);
  return 0;
}}
"""
    return f"""#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/packed_func.h>
#include <cmath>
#include <stdexcept>
#include <vector>
static int typed(DLTensor* x, DLTensor* y) {{
  int64_t n = 1;
  for (int i = 0; i < x->ndim; ++i) n *= x->shape[i];
  if (n > 1000) throw std::runtime_error("too many elements");
  std::vector<float> copy((float*)x->data, (float*)x->data + n);
  for (int64_t i = 0; i < n; ++i) ((float*)y->data)[i] = std::exp(copy[i]);
  return 0;
}}
TVM_DLL_EXPORT_TYPED_FUNC({symbol}, typed);
"""


@unittest.skipUnless(HAVE_COMPILER, "no C compiler on the path")
class Source(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tw_external_")
        self.addCleanup(shutil.rmtree, self.folder)
        self.rng = np.random.default_rng(3)

    def everywhere(self, mod, inputs, want):
        """In memory, as a library, by a compiler of the caller's, as a package; graph and ahead of time."""
        for kind in ("graph", "aot"):
            factory = relay.build(mod, "llvm", executor=relay.backend.Executor(kind))
            libraries = {"memory": factory}
            for name, fcompile in (("own.so", None), ("linked.so", cc.create_shared), ("package.tar", None)):
                path = os.path.join(self.folder, kind + name)
                factory.export_library(path, fcompile)
                libraries[name] = tw.runtime.load_module(path)
            for name, library in libraries.items():
                with self.subTest(kind=kind, library=name):
                    np.testing.assert_allclose(run(library, inputs, kind), want, rtol=1e-5, atol=1e-6)

    def test_ccompiler_with_constants(self):
        x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(10, 1))
        w = self.rng.standard_normal((10, 10)).astype("float32")
        mod = partitioned(relay.exp(relay.multiply(relay.subtract(relay.add(x, relay.const(w)), y), relay.const(np.float32(0.1)))), [x, y], "ccompiler")
        self.assertEqual(external_functions(mod), ["tvmgen_default_ccompiler_main_0"])
        inputs = {"x": self.rng.standard_normal((10, 10)).astype("float32"), "y": self.rng.standard_normal((10, 1)).astype("float32")}
        self.everywhere(mod, inputs, np.exp((inputs["x"] + w - inputs["y"]) * 0.1))

    def test_random_arithmetic_is_that_of_the_processor(self):
        choose = random.Random(5)
        for _ in range(12):
            dtype = choose.choice(["float32", "float64", "int32", "int64", "uint8"])
            shape = tuple(choose.randint(1, 4) for _ in range(choose.randint(0, 4)))
            def some():
                cut = choose.randint(0, len(shape))
                return tuple(1 if choose.random() < 0.3 else d for d in shape[cut:])
            def numbers(of):
                return self.rng.integers(0, 5, of).astype(dtype)
            shapes = [shape, some(), some()]
            variables = [relay.var(f"v{i}", shape=s, dtype=dtype) for i, s in enumerate(shapes)]
            values = list(variables)
            for _ in range(choose.randint(1, 8)):
                operand = relay.const(numbers(some()), dtype) if choose.random() < 0.3 else choose.choice(values)
                values.append(choose.choice([relay.add, relay.subtract, relay.multiply])(choose.choice(values), operand))
                if choose.random() < 0.2:
                    values.append(relay.maximum(values[-1], values[0]))  # of the processor
            body = values[-1]
            for v in variables:
                body = relay.add(body, v)
            mod = partitioned(body, variables, "ccompiler")
            self.assertTrue(external_functions(mod))
            inputs = {f"v{i}": numbers(s) for i, s in enumerate(shapes)}
            np.testing.assert_array_equal(run(relay.build(mod, "llvm"), inputs), on_the_processor(mod, inputs))

    def test_a_scripts_own_source(self):
        x = relay.var("x", shape=(3, 7))
        mod = partitioned(relay.sqrt(relay.exp(x)), [x], "scripted")
        data = self.rng.standard_normal((3, 7)).astype("float32")
        for form in ("c", "cc"):
            # C++ calls itself C, as classic scripts have it.
            tw.register_func("relay.ext.scripted", lambda f: CSourceModuleCreate(exp_source(f.attrs["global_symbol"], form), "c", [f.attrs["global_symbol"]]), override=True)
            self.everywhere(mod, {"x": data}, np.sqrt(np.exp(data)))
            large = relay.var("x", shape=(1001,))
            library = relay.build(partitioned(relay.exp(large), [large], "scripted"), "llvm")
            with self.assertRaisesRegex(tilewright.Error, "too many elements"):
                run(library, {"x": np.zeros(1001, "float32")})
        tw.registry.remove_global_func("relay.ext.scripted")
        with self.assertRaisesRegex(tilewright.Error, "E507.*relay.ext.scripted"):
            relay.build(mod, "llvm")

    def test_source_that_a_script_imports(self):
        x = relay.var("x", shape=(2, 2))
        factory = relay.build(tw.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
        source = CSourceModuleCreate("#include <tvm/runtime/c_runtime_api.h>\nint twice(TVMValue* a, int* c, int n, TVMValue* r, int* k, void* h)"
                                     " { r->v_int64 = 2 * a[0].v_int64; *k = kTVMArgInt; return 0; }", "c", ["twice"])
        self.assertEqual((source.type_key, source.get_function("get_func_names")()), ("c", ["twice"]))
        self.assertIn("v_int64", source.get_source())
        factory.import_module(source)
        factory.export_library(os.path.join(self.folder, "a.so"))
        library = tw.runtime.load_module(os.path.join(self.folder, "a.so"))
        self.assertEqual(library.get_function("twice", True)(21), 42)

    def test_what_cannot_be(self):
        x = relay.var("x", shape=(4,), dtype="bool")
        with self.assertRaisesRegex(tilewright.Error, "E402.*cannot be written in C"):
            relay.build(partitioned(relay.logical_not(x), [x], "ccompiler"), "llvm")
        y = relay.var("y", shape=(4,))
        mod = partitioned(relay.add(y, y), [y], "ccompiler")
        with self.assertRaisesRegex(tilewright.Error, "E403.*x86-64.*AArch64|E403.*compiled for"):
            relay.build(mod, "llvm -mtriple=aarch64-linux-gnu").export_library(os.path.join(self.folder, "a.so"))
        with self.assertRaisesRegex(ValueError, "aarch64-linux-gnu.*" + (cc.create_shared.get_target_triple() or "")):
            relay.build(mod, "llvm -mtriple=aarch64-linux-gnu").export_library(os.path.join(self.folder, "a.so"), fcompile=cc.create_shared)
        with self.assertRaisesRegex(tilewright.Error, "E203.*C source"):
            relay.build(mod, "llvm").save(os.path.join(self.folder, "a.ll"))
        for made, message in ((CSourceModuleCreate("not C", "c", ["f"]), "E403"), (CSourceModuleCreate("int g;", "c", ["f"]), "E507.*no function"), (7, "gives a module")):
            tw.register_func("relay.ext.odd", lambda f: made, override=True)
            with self.assertRaisesRegex((tilewright.Error, TypeError), message):
                run(relay.build(partitioned(relay.exp(y), [y], "odd"), "llvm"), {"y": np.zeros(4, "float32")})


class Modules(unittest.TestCase):
    """Kinds of modules of a script's own, with constants."""

    def setUp(self):
        self.kept = {}

        def load(data):
            symbol = data.decode()

            def init(constants):
                self.kept[symbol] = [np.array(tw.nd.array(c).numpy() if not hasattr(c, "numpy") else c.numpy()) for c in constants]

            def call(x, y):
                np.asarray(y)[...] = np.asarray(x) * self.kept[symbol][0]
            return create_module("scaler", {symbol: call, "__init_" + symbol: init}, data)

        def generate(function):
            symbol = function.attrs["global_symbol"]
            return create_module("scaler", {"get_symbol": lambda: symbol, "get_const_vars": lambda: [self.constant or symbol + "_const_0"]}, symbol.encode())
        self.constant = ""
        tw.register_func("runtime.module.loadbinary_scaler", load, override=True)
        tw.register_func("relay.ext.scaler", generate, override=True)

    def test_constants_come_before_the_first_call(self):
        x = relay.var("x", shape=(2, 3))
        w = np.arange(6, dtype="float32").reshape(2, 3)
        mod = partitioned(relay.multiply(x, relay.const(w)), [x], "scaler")
        data = np.full((2, 3), 2, "float32")
        np.testing.assert_array_equal(run(relay.build(mod, "llvm"), {"x": data}), 2 * w)
        self.constant = "scale"
        with self.assertRaisesRegex(tilewright.Error, "(?s)E402.*'scale'.*_const_0"):
            relay.build(mod, "llvm")
        tw.register_func("relay.ext.scaler.constant_updater", lambda function, symbol: {"scale": tw.nd.array(10 * w)}, override=True)
        try:
            np.testing.assert_array_equal(run(relay.build(mod, "llvm"), {"x": data}), 20 * w)
        finally:
            tw.registry.remove_global_func("relay.ext.scaler.constant_updater")

    def test_damaged_constants_are_refused(self):
        def text(data):
            return struct.pack("<Q", len(data)) + data
        values = tilewright._core  # the record of one tensor is that of a .params file, behind its names
        tensor = bytes(tw.runtime.save_param_dict({"c": np.arange(6, dtype="float32")}))[16 + 8 + 9 + 8:]
        names = struct.pack("<Q", 1) + text(b"c")
        whole = names + struct.pack("<Q", 1) + tensor + struct.pack("<Q", 1) + text(b"f") + struct.pack("<Q", 1) + names
        made = values.load_module_binary("const_loader", whole)
        self.assertEqual((made.type_key, bytes(made.save())), ("const_loader", whole))
        self.assertEqual(values.load_module_binary("metadata", whole).type_key, "const_loader")
        with self.assertRaisesRegex(tilewright.Error, "E507.*'f'"):
            made.get_function("f", False)
        for n in range(len(whole)):
            with self.assertRaisesRegex(tilewright.Error, "E501"):
                values.load_module_binary("const_loader", whole[:n])
        for n in range(len(whole)):
            for bit in (1, 0x80):
                try:
                    values.load_module_binary("const_loader", whole[:n] + bytes([whole[n] ^ bit]) + whole[n + 1:])
                except tilewright.Error as error:
                    self.assertEqual(error.code, 501)

    def test_a_generator_sees_the_module_first(self):
        x = relay.var("x", shape=(2, 3))
        mod = partitioned(relay.multiply(x, relay.const(np.ones((2, 3), "float32"))), [x], "scaler")
        seen = []
        tw.register_func("relay.ext.scaler.optimize", lambda module: (seen.append(external_functions(module)), module)[1], override=True)
        try:
            relay.build(mod, "llvm")
        finally:
            tw.registry.remove_global_func("relay.ext.scaler.optimize")
        self.assertEqual(seen, [["tvmgen_default_scaler_main_0"]])

    @unittest.skipUnless(HAVE_COMPILER, "no C compiler here")
    def test_source_that_needs_a_library(self):
        def code(symbol, library):
            return (f"#pragma comment(lib, \"{library}\")\n#include <tvm/runtime/c_runtime_api.h>\n#include <math.h>\n"
                    f"TVM_DLL int {symbol}(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {{\n"
                    f"  ((float*)((DLTensor*)args[1].v_handle)->data)[0] = (float)tgamma(((float*)((DLTensor*)args[0].v_handle)->data)[0]);\n  return 0;\n}}\n")
        library = ["m"]
        tw.register_func("relay.ext.scripted", lambda f: CSourceModuleCreate(code(f.attrs["global_symbol"], library[0]), "c", [f.attrs["global_symbol"]], []), override=True)
        try:
            x = relay.var("x", shape=(1,))
            mod = partitioned(relay.exp(x), [x], "scripted")
            self.assertEqual(run(relay.build(mod, "llvm"), {"x": np.array([5], "float32")})[0], 24)
            library[0] = "no_such_library_anywhere"
            with self.assertRaisesRegex(tilewright.Error, "E403.*libno_such_library_anywhere.so"):
                run(relay.build(mod, "llvm"), {"x": np.array([5], "float32")})
        finally:
            tw.registry.remove_global_func("relay.ext.scripted")

    def test_functions_without_a_name_are_refused(self):
        with self.assertRaisesRegex(ValueError, "global_symbol"):
            contrib.own("ccompiler")(relay.Function([], relay.const(1.0)))


class Ccompiler(unittest.TestCase):
    def test_its_operators_come_with_it(self):
        from tilewright.classic.relay.op.contrib import ccompiler, get_pattern_table
        self.assertEqual(ccompiler.pattern_table(), [])
        self.assertEqual(get_pattern_table("ccompiler"), [])


class Vendors(unittest.TestCase):
    def test_what_is_not_here_says_so(self):
        from tilewright.classic.relay.op.contrib import arm_compute_lib, ethosn, tensorrt, vitis_ai
        self.assertFalse(tensorrt.is_tensorrt_runtime_enabled() or arm_compute_lib.is_arm_compute_runtime_enabled())
        self.assertEqual((ethosn.ethosn_available(), ethosn.ethosn_api_version()), (ethosn.Available.UNAVAILABLE, ""))
        x = relay.var("x", shape=(2, 2))
        mod = tw.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.sigmoid(x))))
        with self.assertRaisesRegex(ValueError, "name it, dpu="):
            vitis_ai.partition_for_vitis_ai(mod)
        with self.assertRaisesRegex(NotImplementedError, "what Xilinx's accelerators runs is not known here"):
            vitis_ai.partition_for_vitis_ai(mod, dpu="DPUCZDX8G-zcu104")
        with self.assertRaisesRegex(tw.TVMError, "external code generator 'tensorrt'.*relay.ext.tensorrt"):
            relay.build(tensorrt.partition_for_tensorrt(mod), "llvm")

    def regions(self, mod):
        """The external functions, each as its generator and its composites."""
        out = []
        for function in mod.functions.values():
            if "Compiler" in function.attrs.keys():
                found = []
                relay.analysis.post_order_visit(function, lambda e: found.append(str(e.attrs["Composite"]).split(".", 1)[1]) if isinstance(e, relay.Function) and "Composite" in e.attrs.keys() else None)
                out.append((str(function.attrs["Compiler"]), sorted(found)))
        return out

    def constant(self, *shape, dtype="float32"):
        rng = np.random.default_rng(len(shape))
        return relay.const(rng.random(shape).astype(dtype) if "float" in dtype else rng.integers(0, 9, shape).astype(dtype))

    def test_chains_of_floats(self):
        from tilewright.classic.relay.op.contrib import arm_compute_lib, bnns, clml, cublas, cudnn, cutlass, get_pattern_table, tensorrt
        x, constant = relay.var("x", shape=(1, 3, 16, 16)), self.constant
        y = relay.nn.max_pool2d(relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, constant(8, 3, 3, 3), padding=(1, 1)), constant(8))), (2, 2), (2, 2))
        y = relay.nn.bias_add(relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), constant(10, 8)), constant(10))
        mod = tw.IRModule.from_expr(relay.Function([x], relay.nn.softmax(y)))
        for partition, wanted in ((bnns.partition_for_bnns, [("bnns", ["conv2d_bias_relu"]), ("bnns", ["dense_bias"])]), (cublas.partition_for_cublas, [("cublas", ["dense"])]),
                                  (cudnn.partition_for_cudnn, [("cudnn", ["conv2d_bias_act"]), ("cudnn", ["softmax"])]), (clml.partition_for_clml, [("clml", ["conv2d", "dense"]), ("clml", [])]),
                                  (tensorrt.partition_for_tensorrt, [("tensorrt", ["nn.batch_flatten", "nn.bias_add", "nn.bias_add", "nn.conv2d", "nn.dense", "nn.global_avg_pool2d", "nn.max_pool2d",
                                                                                   "nn.relu", "nn.softmax"])])):
            self.assertEqual(self.regions(partition(mod)), wanted)
        self.assertEqual(tensorrt.pattern_table(), get_pattern_table("tensorrt"))

        def rows(layout, dtype):
            x = relay.var("x", shape=(1, 16, 16, 8), dtype=dtype)
            shape = (8, 3, 3, 8) if layout == "OHWI" else (3, 3, 8, 8)
            y = relay.nn.conv2d(relay.nn.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), constant(*shape, dtype=dtype), data_layout="NHWC", kernel_layout=layout, channels=8, kernel_size=(3, 3))
            y = relay.nn.relu(relay.nn.bias_add(y, constant(8, dtype=dtype), axis=3))
            return tw.IRModule.from_expr(relay.Function([x], relay.nn.max_pool2d(y, (2, 2), (2, 2), layout="NHWC")))
        self.assertEqual(self.regions(arm_compute_lib.partition_for_arm_compute_lib(rows("OHWI", "float32"))), [("arm_compute_lib", ["conv2d"]), ("arm_compute_lib", [])])
        self.assertEqual(self.regions(arm_compute_lib.partition_for_arm_compute_lib(rows("OHWI", "float16"))), [])
        self.assertEqual(self.regions(cutlass.partition_for_cutlass(rows("OHWI", "float16"))), [("cutlass", ["conv2d_bias_relu"])])
        self.assertEqual(self.regions(cutlass.partition_for_cutlass(rows("HWIO", "float16"))), [])

    def test_chains_of_bytes(self):
        from tilewright.classic.relay.op.contrib import cmsisnn, ethosn
        x, zero, scale = relay.var("x", shape=(1, 8, 8, 4), dtype="int8"), relay.const(np.int32(0)), relay.const(np.float32(0.1))
        y = relay.qnn.op.conv2d(x, self.constant(3, 3, 4, 8, dtype="int8"), zero, zero, scale, scale, kernel_size=(3, 3), channels=8, data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32")
        y = relay.qnn.op.requantize(relay.nn.bias_add(y, self.constant(8, dtype="int32"), axis=3), scale, zero, scale, zero, out_dtype="int8")
        y = relay.qnn.op.add(y, y, scale, zero, scale, zero, scale, zero)
        mod = tw.IRModule.from_expr(relay.Function([x], relay.nn.max_pool2d(y, (2, 2), (2, 2), layout="NHWC")))
        self.assertEqual(self.regions(cmsisnn.partition_for_cmsisnn(mod)), [("cmsis-nn", ["qnn_add", "qnn_conv2d", "qnn_max_pool2d"])])
        self.assertEqual(self.regions(ethosn.partition_for_ethosn(mod)), [("ethos-n", ["qnn_conv2d"]), ("ethos-n", []), ("ethos-n", [])])

    def test_what_the_ethos_u_runs(self):
        from tilewright.classic.relay.op.contrib import ethosu, get_pattern_table
        zero, scale = relay.const(np.int32(0)), relay.const(np.float32(0.1))

        def regions(body, *inputs):
            return self.regions(ethosu.partition_for_ethosu(tw.IRModule.from_expr(relay.Function(list(inputs), body))))

        def byte(*shape, name="x", dtype="int8"):
            return relay.var(name, shape=shape, dtype=dtype)

        def conv(x, stride=1, pad=1, groups=1, padded=None):
            channels, kernel = (8, self.constant(3, 3, 4, 8, dtype="int8")) if groups == 1 else (4, self.constant(3, 3, 4, 1, dtype="int8"))
            if padded:
                x = relay.nn.pad(x, ((0, 0), (padded, padded), (padded, padded), (0, 0)), pad_value=relay.const(np.int8(0)))
            y = relay.qnn.op.conv2d(x, kernel, zero, zero, scale, scale, kernel_size=(3, 3), channels=channels, padding=(pad, pad), strides=(stride, stride), groups=groups, data_layout="NHWC",
                                    kernel_layout="HWIO" if groups == 1 else "HWOI", out_dtype="int32")
            return relay.qnn.op.requantize(relay.nn.bias_add(y, self.constant(channels, dtype="int32"), axis=3), scale, zero, scale, zero, out_dtype="int8")

        def quantized(op, x):
            return relay.qnn.op.quantize(op(relay.qnn.op.dequantize(x, scale, zero)), scale, zero, out_dtype="int8")
        x, y = byte(1, 8, 8, 4), byte(1, 8, 8, 4, name="y")
        # One after another they are one region.
        net = relay.nn.max_pool2d(relay.clip(conv(x), 0, 100), (2, 2), (2, 2), layout="NHWC")
        net = relay.qnn.op.add(net, net, scale, zero, scale, zero, scale, zero)
        net = relay.reshape(quantized(relay.tanh, net), (1, 128))
        self.assertEqual(regions(net, x), [("ethos-u", ["add", "max_pool2d", "qnn_conv2d", "reshape", "tanh"])])
        for body, inputs, wanted in (
                (conv(x, groups=4), [x], ["qnn_depthwise_conv2d"]), (conv(x, padded=2), [x], ["qnn_conv2d"]), (conv(x, stride=3), [x], ["qnn_conv2d"]),
                (relay.cast(relay.nn.avg_pool2d(relay.cast(x, "int32"), (2, 2), (2, 2), layout="NHWC"), "int8"), [x], ["avg_pool2d"]),
                (relay.qnn.op.mul(x, y, scale, zero, scale, zero, scale, zero), [x, y], ["mul"]), (relay.maximum(x, y), [x, y], ["max"]), (quantized(relay.sigmoid, x), [x], ["sigmoid"]),
                (quantized(lambda v: relay.nn.leaky_relu(v, 0.1), x), [x], ["leaky_relu"]), (quantized(lambda v: relay.image.resize2d(v, (16, 16), layout="NHWC", method="nearest_neighbor",
                                                                                             coordinate_transformation_mode="asymmetric"), x), [x], ["resize2d"]),
                (relay.qnn.op.requantize(relay.mean(relay.cast(x, "int32"), axis=(1, 2), keepdims=True), scale, zero, scale, zero, out_dtype="int8"), [x], ["mean"]),
                (relay.qnn.op.concatenate(relay.Tuple([x, y]), relay.Tuple([scale, scale]), relay.Tuple([zero, zero]), scale, zero, 3), [x, y], ["concat"]),
                (relay.split(x, 2, axis=3).astuple(), [x], ["split"]), (relay.strided_slice(x, [0, 0, 0, 0], [1, 4, 4, 4]), [x], ["strided_slice"])):
            self.assertEqual(regions(body, *inputs), [("ethos-u", wanted)])
        # What it does not run stays: strides above three, two images, floats, five dimensions.
        two, floats, deep = byte(2, 8, 8, 4), relay.var("f", shape=(1, 8, 8, 4)), byte(1, 2, 2, 2, 4)
        for body, inputs in ((conv(x, stride=4), [x]), (conv(two), [two]), (relay.nn.max_pool2d(floats, (2, 2), layout="NHWC"), [floats]), (relay.maximum(deep, deep), [deep])):
            self.assertEqual([kinds for _, kinds in regions(body, *inputs) if set(kinds) - {"requantize"}], [])
        self.assertGreater(len(get_pattern_table("ethos-u")), 25)

    def test_a_generator_of_the_scripts_under_such_a_name(self):
        from tilewright.classic.relay.dataflow_pattern import is_op, wildcard
        from tilewright.classic.relay.op.contrib import register_pattern_table, vitis_ai
        from tilewright.classic.relay.op.contrib import register
        self.addCleanup(register._tables.pop, "vitis_ai")
        register_pattern_table("vitis_ai", [("vitis_ai.both", is_op("nn.relu")(is_op("sigmoid")(wildcard())))])
        x, w = relay.var("x", shape=(2, 2)), relay.var("w", shape=(2, 2))
        parts = vitis_ai.partition_for_vitis_ai(tw.IRModule.from_expr(relay.Function([x, w], relay.exp(relay.nn.relu(relay.sigmoid(x + w))))), {"w": np.ones((2, 2), "float32")}, dpu="mine")
        self.assertEqual(external_functions(parts), ["tvmgen_default_vitis_ai_main_0"])
        self.assertEqual([p.name_hint for p in parts["main"].params], ["x"])
        self.assertIn('Composite="vitis_ai.both"', parts.astext())


if __name__ == "__main__":
    unittest.main()
