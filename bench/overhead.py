#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What models cost besides their kernels, each figure beside its bar.

    .cache/venv/bin/python bench/overhead.py [steps load vm start compile ...] [--rounds 5]

steps    time per step of a chain of 1,000 tiny steps, the kernels' own time included; a VM program's instruction
load     100 MB of weights: loading, and what stays resident
vm       free sizes beside the static build of the same ones
start    ResNet-50 and ViT-B/16 in a fresh process: loading and the first run beyond one inference; memory
compile  ResNet-50, MobileNetV2, ViT-B/16 with an empty kernel cache: seconds and memory

With --beside-busy `steps` and `start` are measured again beside a process that keeps one core busy.

Models come from .cache/zoo (`./dev zoo`); one that is not there is left out, and said. The machine should be idle.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = ROOT / "build/tilewright"
FIGURES = ROOT / "build/vm_figures"
ZOO = ROOT / ".cache/zoo"
CHAIN = 1000
MISSED = 0


def row(what, bar, seen, good):
    """One line of the table; `good` says whether the bar is met, None where there is none."""
    global MISSED
    MISSED += good is False
    print(f"| {what} | {bar} | {seen}{' (missed)' if good is False else ''} |", flush=True)


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


def made(function, *arguments):
    """In a process of its own: what this one has resident would count as its children's."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def compiled(model, folder):
    library = folder / f"{pathlib.Path(model).stem}.so"
    subprocess.run([TOOL, "compile", model, "-o", library], check=True, stdout=subprocess.DEVNULL)
    return library


def steps_of(library):
    said = subprocess.run([TOOL, "bench", library, "--time", "0", "--min-runs", "1", "--warmup-time", "0", "--json"], check=True, capture_output=True, text=True)
    return len(json.loads(said.stdout)["profile"]["steps"])


def bench(library, threads, seconds=0.3, *more):
    command = [TOOL, "bench", library, "--threads", str(threads), "--time", str(seconds), "--min-runs", "3", "--warmup-time", "0.1", "--no-steps",
               "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def rounds_of(library, threads, args, busy=False, seconds=0.3):
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) if busy else None
    try:
        return [bench(library, threads, seconds) for _ in range(args.rounds)]
    finally:
        if burner:
            burner.kill()
            burner.wait()


def beside(args):
    return [False, True] if args.beside_busy else [False]


def label(threads, busy):
    return f"{threads} thread{'s' if threads > 1 else ''}{', beside a busy process' if busy else ''}"


def steps(folder, args):
    library = compiled(chain(folder), folder)
    count = steps_of(library)
    for threads in (1, 2):
        for busy in beside(args):
            least = min(r["min_ms"] for r in rounds_of(library, threads, args, busy)) * 1e3 / count
            row(f"a step of the graph executor with its kernel, {label(threads, busy)}", "< 0.3 us", f"{least:.3f} us, {count} steps", least < 0.3)
    if not FIGURES.exists():
        sys.exit("build/vm_figures is missing: ./dev build vm_figures")
    said = subprocess.run([FIGURES, "instructions"], check=True, capture_output=True, text=True).stdout
    nanoseconds = float(said.split()[0])
    row("an instruction of the VM", "< 0.1 us", f"{nanoseconds / 1e3:.3f} us", nanoseconds < 100)


def load(folder, args):
    runs = rounds_of(compiled(made(heavy, folder), folder), 1, args)
    least, middle = min(r["load_ms"] for r in runs), sorted(r["load_ms"] for r in runs)[len(runs) // 2]
    row("loading 100 MB of weights, least and median", "< 5 ms", f"{least:.2f}, {middle:.2f} ms", middle < 5)
    memory(runs, "100 MB of weights")


def memory(runs, name):
    """What the process has resident at most, beside the weights it read, the plan's arena and the program itself."""
    needed = runs[0]["params_bytes"] + runs[0]["arena_bytes"]
    resident = min(r["peak_rss_bytes"] for r in runs)
    row(f"{name}: resident by weights and plan", "<= 1.3", f"{resident / needed:.2f} ({resident / 1e6:.0f} of {needed / 1e6:.0f} MB)", resident <= 1.3 * needed)


def zoo(name):
    path = ZOO / f"{name}.onnx"
    if not path.exists():
        print(f"left out: {name} is not in {ZOO} (./dev zoo {name})", file=sys.stderr)
    return path if path.exists() else None


def start(folder, args):
    for name in ("resnet50", "vit_b_16"):
        model = zoo(name)
        if not model:
            continue
        library = compiled(model, folder)
        for threads in (1, 2):
            for busy in beside(args):
                runs = rounds_of(library, threads, args, busy, 1.0)
                # A first run is one inference of many: beside the usual one of its process, and beside the fastest.
                usual, fastest = (sorted(r["load_ms"] + r["first_ms"] - r[one] for r in runs) for one in ("median_ms", "min_ms"))
                middle = len(runs) // 2
                row(f"{name}: loading and first run beyond the median inference, {label(threads, busy)}, median", "< 6 ms",
                    f"{usual[middle]:.1f} ms (beyond the fastest: least {fastest[0]:.1f}, median {fastest[middle]:.1f})", usual[middle] < 6)
        memory(runs, name)
        library.unlink()


def peak_of(command, environment):
    """Seconds by the clock and of processors, and the peak of resident bytes, of a process."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def compile_cold(folder, args):
    for name, bar in (("resnet50", 5), ("mobilenet_v2", 3), ("vit_b_16", 6)):
        model = zoo(name)
        if not model:
            continue
        measured = []
        for i in range(min(args.rounds, 3)):
            cache = folder / f"cache-{name}-{i}"
            measured.append(peak_of([TOOL, "compile", model, "-o", folder / "cold.so"], {**os.environ, "TILEWRIGHT_CACHE_DIR": str(cache)}))
        seconds, busy, peak = (min(m[i] for m in measured) for i in range(3))
        weights = model.stat().st_size
        row(f"compiling {name}, no kernel cache", f"< {bar} s", f"{seconds:.2f} s ({busy:.2f} s of processors)", seconds < bar)
        row(f"compiling {name}: memory", "< 3 x weights + 500 MB", f"{peak / 1e6:.0f} of {(3 * weights + 500e6) / 1e6:.0f} MB", peak < 3 * weights + 500e6)


def free_batch(model, folder):
    """The model with its batch left free."""
    proto = onnx.load(model)
    for value in list(proto.graph.input) + list(proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del proto.graph.value_info[:]
    path = folder / f"{model.stem}_free.onnx"
    onnx.save(proto, path)
    return path


def shapes_of(model):
    out = []
    for value in onnx.load(model).graph.input:
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        out += ["--shape", f"{value.name}={'x'.join(map(str, dims))}"]
    return out


def vm(folder, args):
    """Turn by turn, so that the machine's moods fall on both."""
    for name in ("resnet18", "mobilenet_v2", "minilm_128"):
        model = zoo(name)
        if not model:
            continue
        free, static = compiled(made(free_batch, model, folder), folder), compiled(model, folder)
        shapes = made(shapes_of, model)
        times = {free: [], static: []}
        for _ in range(args.rounds):
            for library, more in ((free, shapes), (static, [])):
                command = [TOOL, "run", library, "--threads", "1", "--repeat", "20", "--warmup", "3", "--json", *more]
                times[library].append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_ms"])
        ratio = min(times[free]) / min(times[static])
        row(f"{name} with a free batch by its static build", "<= 1.10", f"{ratio:.2f} ({min(times[free]):.2f} by {min(times[static]):.2f} ms)", ratio <= 1.1)


PARTS = {"steps": steps, "load": load, "vm": vm, "start": start, "compile": compile_cold}


def main():
    parser = argparse.ArgumentParser(description="What models cost besides their kernels, beside their bars.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside-busy", action="store_true")
    args = parser.parse_args()
    print("| what | bar | seen |\n|---|---:|---:|")
    for part in args.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[part](pathlib.Path(folder), args)
    return MISSED != 0


if __name__ == "__main__":
    sys.exit(main())
