# SPDX-License-Identifier: Apache-2.0
"""Parts of models run by kernel libraries: oneDNN, as modules of its plug-in and as C source that calls it, and a BLAS."""
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from test_external_code import HAVE_COMPILER, external_functions, run

from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.relay import transform
from tilewright.classic.relay.op.contrib import cblas, dnnl
from tilewright.classic.runtime.module import kernel_library


def sum_in_a_process(path, shape, then=""):
    """The sum of a library's result for zeros, by a process that loads nothing else, and goes on with `then`."""
    script = (f"import numpy as np\nfrom tilewright import classic as tw\nfrom tilewright.classic.contrib import graph_executor\n"
              f"g = graph_executor.GraphModule(tw.runtime.load_module({path!r})['default'](tw.cpu()))\n"
              f"g.run(x=np.zeros({shape}, 'float32'))\nprint(g.get_output(0).numpy().sum())\n{then}")
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


@unittest.skipUnless(os.path.exists(kernel_library("dnnl")), "built without oneDNN (libdnnl-dev)")
class OneDnn(unittest.TestCase):
    codegen = "json"

    def setUp(self):
        self.rng = np.random.default_rng(7)

    def values(self, *shape):
        return relay.const((0.3 * self.rng.standard_normal(shape)).astype("float32"))

    def conv(self, x, channels, kernel, **options):
        c = [int(d) for d in transform.InferTypeLocal(x).shape][1] // options.get("groups", 1)
        return relay.nn.conv2d(x, self.values(channels, c, kernel, kernel), channels=channels, kernel_size=(kernel, kernel), **options)

    def same(self, mod, inputs, composites=None):
        parts = dnnl.partition_for_dnnl(mod)
        self.assertTrue(external_functions(parts))
        if composites is not None:
            self.assertEqual(re.findall('Composite="([^"]+)"', parts.astext()), composites)
        want = run(relay.build(mod, "llvm"), inputs)
        np.testing.assert_allclose(run(self.build(parts), inputs), want, rtol=1e-4, atol=1e-5)
        return parts

    def build(self, parts, target="llvm", **options):
        with tw.transform.PassContext(opt_level=3, config={"relay.ext.dnnl.options": {"codegen": self.codegen}}):
            return relay.build(parts, target, **options)

    def test_a_network_with_a_residual(self):
        x = relay.var("x", shape=(1, 8, 14, 14))
        a = relay.nn.relu(relay.nn.bias_add(self.conv(x, 16, 3, padding=(1, 1)), self.values(16)))
        b = self.conv(a, 16, 3, padding=(1, 1), groups=16)
        s = relay.nn.relu(relay.add(relay.add(self.conv(b, 16, 1), self.values(16, 1, 1)), a))
        p = relay.nn.max_pool2d(s, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), ceil_mode=True)
        p = relay.nn.avg_pool2d(p, pool_size=(2, 2), strides=(2, 2), padding=(1, 1), count_include_pad=True)
        p = relay.sigmoid(relay.nn.global_avg_pool2d(relay.multiply(p, self.values(16, 1, 1))))
        d = relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(relay.nn.batch_flatten(p), self.values(10, 16)), self.values(10)))
        parts = self.same(tw.IRModule.from_expr(relay.Function([x], d)), {"x": self.rng.standard_normal((1, 8, 14, 14)).astype("float32")},
                          ["dnnl.conv2d_bias_relu", "dnnl.conv2d_bias_sum_relu", "dnnl.dense_bias"])
        self.assertEqual(len(external_functions(parts)), 2)
        with tempfile.TemporaryDirectory() as folder:  # a process that knows nothing of oneDNN
            path = os.path.join(folder, "net.so")
            self.build(parts).export_library(path)
            then = "del g\nassert 'libdnnl' in open('/proc/self/maps').read(), 'its threads go on'"
            self.assertAlmostEqual(sum_in_a_process(path, (1, 8, 14, 14), then), 1, places=4)

    def test_random_networks_are_the_processors(self):
        choose = random.Random(11)
        for _ in range(12):
            shape = (choose.randint(1, 2), choose.choice([3, 4, 8]), choose.randint(4, 9), choose.randint(4, 9))
            x = relay.var("x", shape=shape)
            value = x
            for _ in range(choose.randint(1, 6)):
                now = [int(d) for d in transform.InferTypeLocal(value).shape]
                kind = choose.choice(["conv", "conv", "conv", "pool", "unary", "channel", "self", "host"])
                if kind == "conv":
                    groups = choose.choice([1, 1, now[1]])
                    channels, k = groups * choose.choice([1, 2, 5]), choose.choice([1, 3])
                    value = self.conv(value, channels, k, padding=(choose.randint(k // 2, 2), 1), strides=(1, choose.randint(1, 2)), groups=groups, dilation=(choose.randint(1, 1 + k // 3), 1))
                    if choose.random() < 0.5:
                        value = choose.choice([lambda v: relay.nn.bias_add(v, self.values(channels)), lambda v: relay.add(v, self.values(channels, 1, 1))])(value)
                    if choose.random() < 0.6:
                        value = choose.choice([relay.nn.relu, relay.tanh, relay.sigmoid])(value)
                elif kind == "pool":
                    value = choose.choice([relay.nn.max_pool2d, relay.nn.avg_pool2d])(value, pool_size=(2, 3), strides=(1, 1), padding=(1, 1), ceil_mode=choose.random() < 0.5)
                elif kind == "unary":
                    value = choose.choice([relay.abs, relay.tanh, lambda v: relay.nn.leaky_relu(v, 0.2), lambda v: relay.clip(v, -0.5, 0.7)])(value)
                elif kind == "channel":
                    value = choose.choice([relay.add, relay.multiply])(value, self.values(now[1], 1, 1))
                elif kind == "self":
                    value = relay.add(value, relay.nn.relu(value))
                else:
                    value = relay.minimum(value, relay.const(np.float32(0.9)))
            value = relay.add(value, value)
            self.same(tw.IRModule.from_expr(relay.Function([x], value)), {"x": self.rng.standard_normal(shape).astype("float32")})

    def test_a_sum_with_what_others_read_too(self):
        """The sum's memory may become the result's only where nothing else reads it."""
        x = relay.var("x", shape=(1, 16, 8, 8))

        def block(source, residual):
            return relay.nn.relu(relay.add(relay.add(self.conv(source, 16, 1), self.values(16, 1, 1)), residual))
        a = relay.nn.relu(self.conv(x, 16, 3, padding=(1, 1)))
        b = block(a, a)           # source and sum are one
        c = block(b, a)           # the last reader of a
        d = block(c, x)           # an argument of the function
        e = block(d, c)
        mod = tw.IRModule.from_expr(relay.Function([x], relay.add(relay.add(e, c), d)))
        self.same(mod, {"x": self.rng.standard_normal((1, 16, 8, 8)).astype("float32")}, ["dnnl.conv2d_relu", *["dnnl.conv2d_bias_sum_relu"] * 4])

    def test_what_it_does_not_take(self):
        for dtype, layout in (("float64", "NCHW"), ("float32", "NHWC")):
            x = relay.var("x", shape=(1, 4, 4, 4), dtype=dtype)
            conv = relay.nn.conv2d(x, relay.const(np.ones((4, 4, 1, 1) if layout == "NCHW" else (1, 1, 4, 4), dtype)), channels=4, kernel_size=(1, 1), data_layout=layout,
                                   kernel_layout="OIHW" if layout == "NCHW" else "HWIO")
            self.assertEqual(external_functions(dnnl.partition_for_dnnl(tw.IRModule.from_expr(relay.Function([x], conv)))), [])


@unittest.skipUnless(HAVE_COMPILER, "no C compiler here")
class OneDnnInC(OneDnn):
    """The same networks as C that calls oneDNN."""
    codegen = "c_src"

    def network(self):
        x = relay.var("x", shape=(1, 8, 10, 10))
        y = relay.nn.relu(relay.nn.bias_add(self.conv(x, 16, 3, padding=(1, 1)), self.values(16)))
        y = relay.nn.relu(relay.add(relay.add(self.conv(y, 16, 1), self.values(16, 1, 1)), y))
        y = relay.clip(relay.multiply(y, self.values(16, 1, 1)), 0.125, 3)
        y = relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))), self.values(5, 400)))
        return dnnl.partition_for_dnnl(tw.IRModule.from_expr(relay.Function([x], y)))

    def source(self, parts):
        name = next(v for v in parts.get_global_vars() if v.name_hint.startswith("tvmgen"))
        with tw.transform.PassContext(config={"relay.ext.dnnl.options": {"codegen": "c_src"}}):
            return tw.get_global_func("relay.ext.dnnl")(parts[name]).get_source()

    def test_the_source_can_be_read(self):
        source = self.source(self.network())
        self.assertIn("/* nn.conv2d add add nn.relu */", source)
        self.assertRegex(source, r"onednn_value v\d+ = onednn_conv2d\(net, &tail\d+, v0, SIZES\(1, 8, 10, 10\)")
        self.assertIn("dnnl_eltwise_clip_v2", source)
        self.assertIn("0.125f, 3.0f", source)

    def test_both_forms_give_the_same(self):
        parts = self.network()
        value = self.rng.standard_normal((1, 8, 10, 10)).astype("float32")
        np.testing.assert_allclose(run(self.build(parts), {"x": value}), run(relay.build(parts, "llvm"), {"x": value}), rtol=1e-6, atol=1e-7)

    def test_primitives_are_made_once(self):
        parts = self.network()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.so")
            self.build(parts).export_library(path)
            said = []
            for runs in (1, 4):
                script = (f"import numpy as np\nfrom tilewright import classic as tw\nfrom tilewright.classic.contrib import graph_executor\n"
                          f"g = graph_executor.GraphModule(tw.runtime.load_module({path!r})['default'](tw.cpu()))\n"
                          f"for _ in range({runs}): g.run(x=np.zeros((1, 8, 10, 10), 'float32'))\n")
                said.append(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env={**os.environ, "DNNL_VERBOSE": "2"}).stdout.splitlines())
        made, convolutions, weights = ([sum(what in line for line in lines) for lines in said]
                                       for what in (",create:", ",exec,cpu,convolution", ",,16x8x3x3,"))  # of the last only reorders have such a shape
        self.assertGreater(made[0], 5)
        self.assertEqual(made[0], made[1])
        self.assertEqual(convolutions, [2, 8])
        self.assertEqual(weights[0], weights[1])

    def test_a_program_in_c(self):
        from tilewright.classic.relay.backend import Executor, Runtime
        parts = self.network()
        value = self.rng.standard_normal((1, 8, 10, 10)).astype("float32")
        lib = self.build(parts, "c", executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}), runtime=Runtime("crt"))
        with tempfile.TemporaryDirectory() as folder:
            tw.micro.export_model_library_format(lib, os.path.join(folder, "net.tar"))
            subprocess.run(["tar", "-xf", "net.tar"], cwd=folder, check=True)
            value.tofile(os.path.join(folder, "in.bin"))
            with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as file:
                file.write("""#include <stdio.h>
#include "tvmgen_default.h"
void TVMAPISetLastError(const char* text) { puts(text); }
int main(void) {
  static float x[800], y[5];
  struct tvmgen_default_inputs inputs = {x};
  struct tvmgen_default_outputs outputs = {y};
  FILE* file = fopen("in.bin", "rb");
  if (!file || fread(x, 4, 800, file) != 800 || tvmgen_default_run(&inputs, &outputs) || tvmgen_default_run(&inputs, &outputs)) return 1;
  for (int i = 0; i < 5; ++i) printf("%.9g\\n", y[i]);
  return 0;
}
""")
            sources = [os.path.join("codegen/host/src", name) for name in os.listdir(os.path.join(folder, "codegen/host/src"))]
            subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu99", "-O1", "-Icodegen/host/include", "-o", "main", "main.c", *sources, "-ldnnl", "-lm", "-lpthread"], cwd=folder, check=True)
            got = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True).stdout.split()
        np.testing.assert_allclose(np.array(got, "float32"), run(relay.build(parts, "llvm"), {"x": value}).ravel(), rtol=1e-5, atol=1e-6)

    def test_what_it_refuses(self):
        with tw.transform.PassContext(config={"relay.ext.dnnl.options": {"codegen": "fortran"}}), self.assertRaisesRegex(Exception, "json or c_src"):
            relay.build(self.network(), "llvm")


@unittest.skipUnless(os.path.exists(kernel_library("cblas")), "built without a BLAS (libopenblas-dev or libblas-dev)")
class Blas(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(9)

    def values(self, *shape, dtype="float32"):
        return relay.const((0.3 * self.rng.standard_normal(shape)).astype(dtype))

    def same(self, mod, inputs, composites):
        parts = cblas.partition_for_cblas(mod)
        self.assertEqual(re.findall('Composite="([^"]+)"', parts.astext()), composites)
        self.assertTrue(external_functions(parts))
        want = run(relay.build(mod, "llvm"), inputs)
        np.testing.assert_allclose(run(relay.build(parts, "llvm"), inputs), want, rtol=1e-4, atol=1e-5)
        return parts

    def test_a_perceptron(self):
        x = relay.var("x", shape=(3, 12))
        y = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, self.values(20, 12)), self.values(20)))
        y = relay.add(relay.nn.dense(y, self.values(7, 20)), self.values(1, 7))
        parts = self.same(tw.IRModule.from_expr(relay.Function([x], relay.nn.softmax(y))), {"x": self.rng.standard_normal((3, 12)).astype("float32")},
                          ["cblas.dense_bias_relu", "cblas.dense_bias"])
        self.assertEqual(len(external_functions(parts)), 1)
        with tempfile.TemporaryDirectory() as folder:  # a process that knows nothing of a BLAS
            path = os.path.join(folder, "net.so")
            relay.build(parts, "llvm").export_library(path)
            self.assertAlmostEqual(sum_in_a_process(path, (3, 12)), 3, places=4)

    def test_random_products(self):
        choose = random.Random(3)
        for i in range(16):
            dtype = choose.choice(["float32", "float64"])
            m, n, k, batch = (choose.randint(1, 9) for _ in range(4))
            if i % 2:
                turn_a, turn_b, one = choose.random() < 0.5, choose.random() < 0.5, choose.random() < 0.3
                x = relay.var("x", shape=(batch, k, m) if turn_a else (batch, m, k), dtype=dtype)
                other = (1 if one else batch, n, k) if turn_b else (1 if one else batch, k, n)
                y = relay.nn.batch_matmul(x, self.values(*other, dtype=dtype), transpose_a=turn_a, transpose_b=turn_b)
            else:
                turn_a, turn_b = choose.random() < 0.5, choose.random() < 0.5
                x = relay.var("x", shape=(k, m) if turn_a else (m, k), dtype=dtype)
                y = relay.nn.matmul(x, self.values(*((n, k) if turn_b else (k, n)), dtype=dtype), transpose_a=turn_a, transpose_b=turn_b)
            kind, composites = choose.choice(["", "bias", "relu"]), []
            if kind == "bias":
                y = relay.add(y, self.values(n, dtype=dtype))
            if kind == "relu":
                y = relay.nn.relu(y)
            if kind:
                composites = [f"cblas.{'batch_matmul' if i % 2 else 'matmul'}_{kind}"]
            shape = [int(d) for d in x.type_annotation.shape]
            self.same(tw.IRModule.from_expr(relay.Function([x], y)), {"x": self.rng.standard_normal(shape).astype(dtype)}, composites)

    def test_what_it_does_not_take(self):
        x = relay.var("x", shape=(4, 4), dtype="float16")
        y = relay.var("y", shape=(2, 4))
        for expr, inputs in ((relay.nn.dense(x, relay.const(np.ones((4, 4), "float16"))), [x]), (relay.add(y, relay.const(np.ones(4, "float32"))), [y])):
            self.assertEqual(external_functions(cblas.partition_for_cblas(tw.IRModule.from_expr(relay.Function(inputs, expr)))), [])
        # A sum that is no bias stays outside.
        full = relay.add(relay.nn.dense(y, self.values(3, 4)), self.values(2, 3))
        parts = cblas.partition_for_cblas(tw.IRModule.from_expr(relay.Function([y], full)))
        self.assertEqual((re.findall('Composite="([^"]+)"', parts.astext()), len(external_functions(parts))), ([], 1))


if __name__ == "__main__":
    unittest.main()
