#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a model costs besides its kernels: time per step of a chain of tiny steps, loading, the first run, memory.

    .cache/venv/bin/python bench/overhead.py [model.onnx ...] [--threads 1,2] [--rounds 5] [--beside-busy]

Without models it makes two: 1,000 steps on 16 numbers each, and 100 MB of weights. A fresh process per round, the least of
all rounds; --beside-busy repeats it with another process keeping one core busy.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = ROOT / "build/tilewright"
CHAIN = 1000


def save(path, nodes, inputs, output, weights):
    graph = helper.make_graph(nodes, path.stem, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
                              [helper.make_tensor_value_info(*output)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def chain(folder):
    """Softmax after softmax: nothing that fuses, and as little work as a step can have."""
    names = ["x"] + [f"v{i}" for i in range(CHAIN)]
    nodes = [helper.make_node("Softmax", [a], [b], axis=-1) for a, b in zip(names, names[1:])]
    return save(folder / "chain.onnx", nodes, [("x", [1, 16])], (names[-1], TensorProto.FLOAT, [1, 16]), [])


def heavy(folder):
    """Four matrix products with 25 MB of weights each."""
    rng = np.random.default_rng(3)
    weights = [numpy_helper.from_array(rng.standard_normal((2560, 2560), np.float32) / 50, f"w{i}") for i in range(4)]
    names = ["x"] + [f"v{i}" for i in range(4)]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(4)]
    return save(folder / "heavy.onnx", nodes, [("x", [1, 2560])], (names[-1], TensorProto.FLOAT, [1, 2560]), weights)


def bench(library, threads, seconds):
    command = [TOOL, "bench", library, "--threads", str(threads), "--time", str(seconds), "--min-runs", "3", "--warmup-time", "0.1", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(library, threads, rounds, busy):
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) if busy else None
    try:
        runs = [bench(library, threads, 0.2) for _ in range(rounds)]
    finally:
        if burner:
            burner.kill()
            burner.wait()
    least = min(r["min_ms"] for r in runs)
    extra = sorted(r["load_ms"] + r["first_ms"] - r["min_ms"] for r in runs)
    steps = runs[0]["profile"]["steps"]
    needed = runs[0]["params_bytes"] + runs[0]["arena_bytes"]
    return {"inference_ms": least, "load_ms": min(r["load_ms"] for r in runs), "extra_ms": extra[0], "extra_median_ms": extra[len(extra) // 2],
            "step_us": least * 1e3 / len(steps), "steps": len(steps), "needed": needed,
            "resident": min(r["peak_rss_bytes"] for r in runs)}


def main():
    parser = argparse.ArgumentParser(description="Costs of a model besides its kernels.")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside-busy", action="store_true")
    args = parser.parse_args()
    print("| model | threads | inference ms | us per step | load ms | load and first run beyond one inference, least and median ms | resident / needed |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for model in args.models or [chain(folder), heavy(folder)]:
            library = folder / f"{model.stem}.so"
            subprocess.run([TOOL, "compile", model, "-o", library], check=True, stdout=subprocess.DEVNULL)
            for threads in map(int, args.threads.split(",")):
                for busy in ([False, True] if args.beside_busy else [False]):
                    m = measure(library, threads, args.rounds, busy)
                    print(f"| {model.stem}{', beside a busy process' if busy else ''} | {threads} | {m['inference_ms']:.3f} | {m['step_us']:.3f} | {m['load_ms']:.2f} | "
                          f"{m['extra_ms']:.1f}, {m['extra_median_ms']:.1f} | {m['resident'] / m['needed']:.2f} ({m['resident'] / 1e6:.0f} MB) |", flush=True)


if __name__ == "__main__":
    main()
