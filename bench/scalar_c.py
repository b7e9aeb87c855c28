#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C of the target c, without vectors, beside emx-onnx-cgen's, over eight small float32 networks with seeded random weights:

    bench/scalar_c.py --tool build/tilewright --emx emx-onnx-cgen [--cc gcc] [--rounds 5] [name...]

Both are compiled by one compiler with the same options and run in turns on one thread; the least time of each counts, and the most memory of a process
(resident set). Outputs must agree."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "zoo"))
from small_networks import Net  # noqa: E402

HARNESS = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
%(declaration)s
static float input[%(inputs)d], output[%(outputs)d];
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; }
int main(int argc, char **argv) {
  char line[256];
  long memory = 0;
  double least = 1e9;
  FILE *file = fopen(argv[1], "rb");
  if (argc < 3 || !file || fread(input, 4, %(inputs)d, file) != %(inputs)d) return 1;
  fclose(file);
  for (double end = now() + 0.4; now() < end;) { double t = now(); %(call)s; t = now() - t; if (t < least) least = t; }
  file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) if (sscanf(line, "VmHWM: %%ld", &memory) == 1) break;
  if (file) fclose(file);
  file = fopen(argv[2], "wb");
  fwrite(output, 4, %(outputs)d, file);
  fclose(file);
  printf("%%.9f %%ld\\n", least, memory);
  return 0;
}
"""


def separable(net, x, out, channels, stride=1):
    return net.relu(net.conv(net.relu(net.conv(x, channels, channels, 3, stride, group=channels)), out, channels, 1))


def autoencoder():
    net = Net([1, 640])
    x, inner = "x", 640
    for out in (128, 128, 128, 8, 128, 128, 128):
        x, inner = net.relu(net.linear(x, out, inner)), out
    return net.model(net.linear(x, 640, inner), [1, 640])


def lenet():
    net = Net([1, 1, 28, 28])
    x = net.op("MaxPool", net.relu(net.conv("x", 6, 1, 5)), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("MaxPool", net.relu(net.conv(x, 16, 6, 5, pad=0)), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("Flatten", x)
    return net.model(net.linear(net.relu(net.linear(net.relu(net.linear(x, 120, 400)), 84, 120)), 10, 84), [1, 10])


def resnet8():
    net = Net([1, 3, 32, 32])
    x, channels = net.relu(net.conv("x", 16, 3, 3)), 16
    for out, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.relu(net.conv(x, out, channels, 3, stride)), out, out, 3)
        x, channels = net.relu(net.op("Add", y, net.conv(x, out, channels, 1, stride) if stride > 1 else x)), out
    return net.model(net.linear(net.op("Flatten", net.op("GlobalAveragePool", x)), 10, 64), [1, 10])


def ds_cnn():
    net = Net([1, 1, 49, 10])
    x = net.relu(net.conv("x", 64, 1, 3, 2))
    for _ in range(4):
        x = separable(net, x, 64, 64)
    return net.model(net.op("Softmax", net.linear(net.op("Flatten", net.op("GlobalAveragePool", x)), 12, 64)), [1, 12])


def mobilenet():
    net = Net([1, 3, 96, 96])
    x, channels = net.relu(net.conv("x", 8, 3, 3, 2)), 8
    for out, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)):
        x, channels = separable(net, x, out, channels, stride), out
    return net.model(net.linear(net.op("Flatten", net.op("GlobalAveragePool", x)), 2, 256), [1, 2])


def vgg_block():
    net = Net([1, 3, 64, 64])
    x, channels = "x", 3
    for out in (32, 64, 64):
        x = net.relu(net.conv(net.relu(net.conv(x, out, channels, 3)), out, out, 3))
        x, channels = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), out
    return net.model(net.linear(net.op("Flatten", net.op("GlobalAveragePool", x)), 10, 64), [1, 10])


def heartbeat():
    net = Net([1, 1, 1, 512])
    x, channels = "x", 1
    for out in (16, 32, 64):
        x = net.relu(net.op("Conv", x, net.weight(out, channels, 1, 9), net.weight(out, scale=0.1), kernel_shape=[1, 9], strides=[1, 2], pads=[0, 4, 0, 4]))
        channels = out
    return net.model(net.op("Softmax", net.linear(net.op("Flatten", net.op("GlobalAveragePool", x)), 5, 64)), [1, 5])


def attention():
    net = Net([64, 96])
    q, k, v = (net.op("MatMul", "x", net.weight(96, 96)) for _ in range(3))
    scores = net.op("Softmax", net.op("MatMul", q, net.op("Transpose", k, perm=[1, 0])))
    x = net.op("Add", "x", net.op("MatMul", scores, v))
    return net.model(net.op("Add", x, net.op("MatMul", net.relu(net.op("MatMul", x, net.weight(96, 384))), net.weight(384, 96))), [64, 96])


NETWORKS = {f.__name__: f for f in (autoencoder, lenet, resnet8, ds_cnn, mobilenet, vgg_block, heartbeat, attention)}


def program(folder, name, source, declaration, call, sizes, cc):
    (folder / f"{name}_main.c").write_text(HARNESS % {"declaration": declaration, "call": call, "inputs": sizes[0], "outputs": sizes[1]})
    subprocess.run([*cc, "-w", "-c", source, "-o", folder / f"{name}.o"], check=True)
    subprocess.run([*cc, "-w", folder / f"{name}_main.c", folder / f"{name}.o", "-o", folder / name, "-lm"], check=True)
    return folder / name


def measure(name, arguments):
    model = NETWORKS[name]()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        onnx.save(model, folder / "net.onnx")
        shapes = [[d.dim_value for d in t.type.tensor_type.shape.dim] for t in (model.graph.input[0], model.graph.output[0])]
        sizes = [int(np.prod(s)) for s in shapes]
        np.random.default_rng(1).standard_normal(sizes[0]).astype(np.float32).tofile(folder / "input")
        cc = [arguments.cc, "-std=gnu99", *arguments.flags.split()]
        subprocess.run([arguments.tool, "compile", folder / "net.onnx", "--target", "c", "-o", folder / "ours.c"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([arguments.emx, "compile", folder / "net.onnx", folder / "emx.c", "--model-name", "model", "--large-weight-threshold", "0"], check=True, stdout=subprocess.DEVNULL)
        dims = ["".join(f"[{d}]" for d in s) for s in shapes]
        ours = program(folder, "ours", folder / "ours.c", '#define NET_DECLARATIONS_ONLY\n#include "ours.c"\nstatic double workspace[(NET_WORKSPACE_BYTES + 7) / 8 + 1];',
                       "net_run(input, output, workspace)", sizes, cc)
        emx = program(folder, "emx", folder / "emx.c", f"void model(const float x{dims[0]}, float y{dims[1]});", "model((const void *)input, (void *)output)", sizes, cc)
        best = {}
        for _ in range(arguments.rounds):
            for which in (ours, emx):
                seconds, memory = subprocess.run([which, folder / "input", folder / f"{which.name}.out"], check=True, capture_output=True, text=True).stdout.split()
                known = best.get(which.name, (1e9, 0))
                best[which.name] = min(known[0], float(seconds)), max(known[1], int(memory))
        got, wanted = (np.fromfile(folder / f"{n}.out", np.float32) for n in ("ours", "emx"))
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3 * max(1e-3, np.abs(wanted).max()))
        return best["ours"], best["emx"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tool", default="build/tilewright")
    parser.add_argument("--emx", default="emx-onnx-cgen")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--flags", default="-O3")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| network | ours us | emx us | emx / ours | ours KiB | emx KiB |\n|---|---:|---:|---:|---:|---:|")
    ratios = []
    for name in arguments.names or NETWORKS:
        ours, emx = measure(name, arguments)
        ratios.append(emx[0] / ours[0])
        print(f"| {name} | {1e6 * ours[0]:.1f} | {1e6 * emx[0]:.1f} | {ratios[-1]:.2f} | {ours[1]} | {emx[1]} |", flush=True)
    print(f"geometric mean of emx / ours: {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
