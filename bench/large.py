#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of any size: what they cost to compile, to load and to keep, beside their weights.

    ./dev bench large                    24 layers, 2.7 GB of distinct weights in one file beside the model
    ./dev bench large --layers 53        6 GB
    ./dev bench large --scale 0.1        widths divided so that a tenth of the weights is left; what CI runs
    ./dev bench large --target "llvm -mcpu=x86-64-v3"

The model is made here, from a seed: products of 1536x1536 and 1536x6144 with residuals. Its output is compared with
onnxruntime's where that is installed (.cache/venv-bench). Everything is written below --folder (default: a temporary
one) and removed. The exit status is 1 when a bar is missed that does not depend on the disk: memory, loading, numbers.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEER_PYTHON = ROOT / ".cache/venv-bench/bin/python"
ROWS = 8
# What a compilation needs beside its weights: the compiler and LLVM, kernels, the largest weight twice.
BESIDE_BYTES = 192 << 20
PEER = """
import sys, numpy, onnxruntime
model, x, out = sys.argv[1:]
numpy.save(out, onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": numpy.load(x)})[0])
"""
MISSED = 0


def row(what, bar, seen, good):
    """One line of the table; `good` says whether the bar is met, None where there is none."""
    global MISSED
    MISSED += good is False
    print(f"| {what} | {bar} | {seen}{' (missed)' if good is False else ''} |", flush=True)


class Weights:
    """Random tensors in one external file; each is written and forgotten, so that making a model needs little memory."""

    def __init__(self, path, seed):
        self.path, self.file, self.generator, self.tensors = path, open(path, "wb"), np.random.default_rng(seed), []

    def add(self, name, shape):
        values = self.generator.standard_normal(shape, dtype=np.float32) * np.float32(1 / np.sqrt(shape[0]))
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self.path.name), ("offset", str(self.file.tell())), ("length", str(values.nbytes))):
            tensor.external_data.add(key=key, value=value)
        self.file.write(values.tobytes())
        self.tensors.append(tensor)
        return name


def make(path, layers, scale, seed):
    """A model of products with residuals; the bytes of its weights and its width."""
    width = max(64, int(1536 * scale**0.5) // 64 * 64)
    weights, nodes, x = Weights(path.with_suffix(".data"), seed), [], "x"

    def product(a, name, shape):
        nodes.append(helper.make_node("MatMul", [a, weights.add(f"w_{name}", shape)], [name], name=name))
        return name

    for layer in range(layers):
        for j in range(4):
            x = product(x, f"mix_{layer}_{j}", (width, width))
        wide = product(x, f"up_{layer}", (width, 4 * width))
        nodes.append(helper.make_node("Relu", [wide], [f"relu_{layer}"], name=f"relu_{layer}"))
        down = product(f"relu_{layer}", f"down_{layer}", (4 * width, width))
        nodes.append(helper.make_node("Add", [x, down], [f"sum_{layer}"], name=f"sum_{layer}"))
        nodes.append(helper.make_node("LpNormalization", [f"sum_{layer}"], [f"out_{layer}"], name=f"out_{layer}", axis=-1, p=2))
        x = f"out_{layer}"
    weights.file.close()
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, width])  # noqa: E731
    graph = helper.make_graph(nodes, "large", [info("x")], [info(x)], weights.tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return weights.path.stat().st_size, width


def compile_model(tool, model, library, target):
    """Seconds, and the peak of resident memory in bytes."""
    command = [tool, "compile", model, "-o", library] + (["--target", target] if target else [])
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"compiling failed with status {status}: {' '.join(map(str, command))}")
    return time.monotonic() - start, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--target")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    args = parser.parse_args()
    if args.folder:
        pathlib.Path(args.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="tilewright-large-") as folder:
        folder = pathlib.Path(folder)
        model, library = folder / "large.onnx", folder / "large.so"
        weight_bytes, width = make(model, args.layers, args.scale, args.seed)
        gib = weight_bytes / 2**30
        print(f"{args.layers} layers of width {width}, {weight_bytes / 1e9:.2f} GB of weights\n\n| what | bar | seen |\n|---|---|---|")
        seconds, peak = compile_model(args.tool, model, library, args.target)
        row("compiling, disk included", "2 s a GiB beyond the disk", f"{seconds:.1f} s, {seconds / gib:.1f} s a GiB", None)
        allowed = 1.2 * weight_bytes + BESIDE_BYTES
        row("peak memory by weights", f"<= 1.2 and {BESIDE_BYTES >> 20} MiB", f"{peak / weight_bytes:.2f} ({peak / 1e9:.2f} GB)", peak <= allowed)
        size = library.stat().st_size
        row("file by weights", "<= 1.05 and 1 MiB", f"{size / weight_bytes:.3f}", size <= 1.05 * weight_bytes + (1 << 20))
        x, ours, theirs = folder / "x.npy", folder / "ours.npy", folder / "theirs.npy"
        np.save(x, np.random.default_rng(args.seed + 1).standard_normal((ROWS, width), dtype=np.float32))
        said = json.loads(subprocess.run([args.tool, "bench", library, "--threads", "1", "--time", "0", "--min-runs", "3", "--warmup-time", "0", "--no-steps", "--json"],
                                         check=True, capture_output=True, text=True).stdout)
        row("loading", "< 5 ms", f"{said['load_ms']:.2f} ms", said["load_ms"] < 5)
        row("a run, least of 3", "", f"{said['min_ms']:.1f} ms, {weight_bytes / said['min_ms'] / 1e6:.1f} GB/s of weights", None)
        subprocess.run([args.tool, "run", library, "--input", f"x=@{x}", "-o", ours], check=True, stdout=subprocess.DEVNULL)
        if PEER_PYTHON.exists():
            subprocess.run([PEER_PYTHON, "-c", PEER, model, x, theirs], check=True)
            a, b = np.load(ours), np.load(theirs)
            error = float(np.abs(a - b).max() / np.abs(b).max())
            row("largest difference from onnxruntime, of the largest value", "1e-4", f"{error:.1e}", error < 1e-4)
        else:
            print("not compared with onnxruntime, which ./dev bench installs", flush=True)
    return 1 if MISSED else 0


if __name__ == "__main__":
    sys.exit(main())
