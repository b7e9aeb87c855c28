#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose sizes are free, at random sizes, beside onnxruntime and OpenVINO with dynamic shapes.

    ./dev bench sizes [resnet18 minilm ppocr_rec decoder] [--count 50] [--threads 1,2] [--record]

Ours is one library with bounds (`compile --bound`). Each engine is one process that loads the model once; at every size they
take turns, and a time is the least of some runs behind a first. "new size" is what taking inputs of another size costs;
"memory" what the process grew by over the second half of the sizes. The decoder has GPT-2's shape and generates --count tokens, each of which makes its cache longer; its
figure is tokens a second, of the best of all rounds.
"""
import argparse
import ctypes
import datetime
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import report
import run

sys.path.insert(0, str(run.ROOT / "bench/zoo"))

ENGINES = ("ours", "ort", "openvino")
# name: (file, bounds by the file's names, shape and values of each input by the sizes)
MODELS = {
    "resnet18": ("bench/sizes/resnet18.onnx", {"batch": (1, 8)}, lambda s: {"x": ((s["batch"], 3, 224, 224), "f")}),
    "minilm": ("models/minilm.onnx", {"batch": (1, 4), "sequence": (1, 128)},
               lambda s: {n: ((s["batch"], s["sequence"]), kind) for n, kind in (("input_ids", "word"), ("attention_mask", "one"), ("token_type_ids", "zero"))}),
    "ppocr_rec": ("models/ppocr_rec.onnx", {"p2o.DynamicDimension.0": (1, 1), "x.2": (48, 48), "p2o.DynamicDimension.1": (160, 640)},
                  lambda s: {"x": ((1, 3, 48, s["p2o.DynamicDimension.1"]), "f")}),
    "decoder": ("bench/sizes/decoder.onnx", {"batch": (1, 1), "past": (16, 128)}, None),
}


def feeds_of(shapes, seed):
    rng = np.random.default_rng(seed)
    make = {"f": lambda dims: rng.standard_normal(dims, np.float32), "word": lambda dims: rng.integers(1000, 20000, dims),
            "one": lambda dims: np.ones(dims, np.int64), "zero": lambda dims: np.zeros(dims, np.int64)}
    return {name: make[kind](tuple(dims)) for name, (dims, kind) in shapes.items()}


class Ours:
    def __init__(self, path, threads):
        import library

        self.make, self.read, self.turn, self.memory = library.tensor_of, library.array_of, 0, ({}, {})
        self.library = library.Library(str(run.ROOT / "build"))
        self.runtime, self.module, self.handle = self.library.runtime, ctypes.c_void_p(), ctypes.c_void_p()
        self.library.check(self.runtime.tw_module_load(str(path).encode(), None, ctypes.byref(self.module)))
        options = library.ExecutorOptions(ctypes.sizeof(library.ExecutorOptions), threads, -1)
        self.library.check(self.runtime.tw_executor_create(self.module, ctypes.byref(options), ctypes.byref(self.handle)))
        self.tensor = library.DLTensor

    def bind(self, feeds):
        self.bound = {name: self.make(value) for name, value in feeds.items()}
        for name, tensor in self.bound.items():
            self.library.check(self.runtime.tw_executor_bind_input(self.handle, name.encode(), ctypes.byref(tensor)))

    def run(self):
        self.library.check(self.runtime.tw_executor_run(self.handle))

    def output(self, index):
        tensor = self.tensor()
        self.library.check(self.runtime.tw_executor_get_output(self.handle, ctypes.c_uint64(index), ctypes.byref(tensor)))
        return self.read(tensor)

    def step(self, feeds, names):
        """Results are written where the next step reads them: two sets of memory take turns."""
        self.bind(feeds)
        self.turn = 1 - self.turn
        memory, outputs, self.written = self.memory[self.turn], [], []
        for index in range(len(names)):
            shown = self.tensor()
            self.library.check(self.runtime.tw_executor_get_output(self.handle, ctypes.c_uint64(index), ctypes.byref(shown)))
            shape = [shown.shape[i] for i in range(shown.ndim)]
            count = math.prod(shape)
            if index not in memory or memory[index].size < count:
                memory[index] = np.zeros(2 * count, np.float32)
            outputs.append(memory[index][:count].reshape(shape))
            self.written.append(self.make(outputs[-1]))
            self.library.check(self.runtime.tw_executor_bind_output_at(self.handle, ctypes.c_uint64(index), ctypes.byref(self.written[-1])))
        self.run()
        return outputs


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]

    def bind(self, feeds):
        self.feeds = {name: self.value(value) for name, value in feeds.items()}

    def run(self):
        self.results = self.session.run_with_ort_values(self.names, self.feeds)

    def output(self, index):
        return self.results[index].numpy()

    def step(self, feeds, names):
        """Results stay the engine's own values, which the next step takes as they are."""
        values = {n: v if hasattr(v, "numpy") else self.value(v) for n, v in feeds.items()}
        results = self.session.run_with_ort_values(names, values)
        return [results[0].numpy(), *results[1:]]


class OpenVino:
    def __init__(self, path, threads):
        import openvino

        self.openvino = openvino
        compiled = openvino.Core().compile_model(str(path), "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
        self.compiled, self.request = compiled, compiled.create_infer_request()

    def bind(self, feeds):
        self.feeds = feeds
        for name, value in feeds.items():
            self.request.set_tensor(name, self.openvino.Tensor(np.ascontiguousarray(value), shared_memory=True))

    def run(self):
        self.request.infer()

    def output(self, index):
        return np.array(self.request.get_tensor(self.compiled.outputs[index]).data)

    def step(self, feeds, names):
        self.bind(feeds)
        self.run()
        return [np.array(self.request.get_tensor(n).data) for n in names]


def resident():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def generated(engine, layers, tokens, start):
    """Seconds of all tokens; each step's cache is what the one before it returned."""
    pasts = [f"{side}{layer}" for layer in range(layers) for side in "kv"]
    feeds = {f"past_{name}": np.zeros((1, 12, start, 64), np.float32) for name in pasts}
    names = ["logits"] + [f"present_{name}" for name in pasts]
    token, said, began = 11, [], time.perf_counter()
    for i in range(tokens):
        logits, *cache = engine.step({"ids": np.array([[token]]), "places": np.array([[start + i]]), **feeds}, names)
        token = int(np.argmax(logits))
        said.append(token)
        feeds = {f"past_{name}": value for name, value in zip(pasts, cache)}
    return {"seconds": time.perf_counter() - began, "tokens": said}


def work(kind, path, threads):
    """An engine's process: requests and answers are lines of JSON."""
    engine = {"ours": Ours, "ort": OnnxRuntime, "openvino": OpenVino}[kind](path, threads)
    for line in sys.stdin:
        asked = json.loads(line)
        if "tokens" in asked:
            print(json.dumps(generated(engine, asked["layers"], asked["tokens"], asked["start"])), flush=True)
            continue
        feeds = feeds_of(asked["shapes"], asked["seed"])
        times = []
        for i in range(1 + asked["runs"]):
            began = time.perf_counter()
            if i == 0:
                engine.bind(feeds)
                bound = (time.perf_counter() - began) * 1e3
            engine.run()
            times.append((time.perf_counter() - began) * 1e3)
        np.save(asked["output"], engine.output(0))
        print(json.dumps({"ms": min(times[1:]), "bind_ms": bound, "first_ms": times[0], "resident": resident()}), flush=True)


class Worker:
    def __init__(self, kind, path, threads):
        self.process = subprocess.Popen([str(run.PEER_PYTHON), __file__, "--work", kind, str(path), str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise run.Failure(f"an engine ended: {' '.join(map(str, self.process.args[2:]))}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def with_free_batch(model, path):
    network = onnx.load(model)
    for value in [*network.graph.input, *network.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(network, path)


def model_of(name):
    path = run.CACHE / MODELS[name][0]
    if name == "decoder" and not path.exists():
        import decoder

        decoder.write(path)
    if name == "resnet18" and not path.exists():
        with_free_batch(run.locate(name, {})[1], path)
    if not path.exists():
        raise run.Failure(f"{path} is not there; ./dev zoo makes the zoo's networks, ./dev models bench fetches the others")
    return path


def drawn(bounds, count):
    """Sizes within the bounds, each once as far as there are enough."""
    rng = np.random.default_rng(18)
    return [{name: int(rng.integers(low, high + 1)) for name, (low, high) in bounds.items()} for _ in range(count)]


def compiled(name, path, flags):
    artifact, facts = run.compile_model(f"{name}.sizes", path, {}, flags)
    if not artifact:
        raise run.Failure(f"{name}: {facts['failed']}")
    return artifact, facts


def measure(name, threads, args):
    _, bounds, shapes_of = MODELS[name]
    path = model_of(name)
    flags = [f"--bound={key}={low}..{high}" for key, (low, high) in bounds.items()]
    artifact, facts = compiled(name, path, flags)
    engines = ["ours", *args.peers]
    workers = {engine: Worker(engine, artifact if engine == "ours" else path, threads) for engine in engines}
    row = {"model": name, "threads": threads, "bounds": bounds, "artifact_bytes": facts["artifact_bytes"], "compile_s": facts["compile_s"]}
    try:
        if shapes_of is None:
            tokens, start = min(args.count, bounds["past"][1] - bounds["past"][0]), bounds["past"][0]
            answers = {engine: [] for engine in engines}
            for turn in range(args.rounds):
                for engine in engines[turn % len(engines):] + engines[:turn % len(engines)]:
                    answers[engine].append(workers[engine].ask(tokens=tokens, start=start, layers=12))
            row["tokens_a_second"] = {e: tokens / min(a["seconds"] for a in answers[e]) for e in engines}
            row["same_tokens"] = {e: answers[e][0]["tokens"] == answers["ort"][0]["tokens"] for e in engines} if "ort" in engines else {}
            return row
        import engines as checks

        row["sizes"] = []
        with tempfile.TemporaryDirectory() as scratch:
            for index, sizes in enumerate(drawn(bounds, args.count)):
                found = {}
                for engine in engines[index % len(engines):] + engines[:index % len(engines)]:
                    found[engine] = workers[engine].ask(shapes=shapes_of(sizes), seed=index, runs=args.runs, output=f"{scratch}/{engine}.npy")
                error = None
                if "ort" in engines:
                    error = checks.largest_error([np.load(f"{scratch}/ours.npy")], [np.load(f"{scratch}/ort.npy")])
                row["sizes"].append({"sizes": sizes, "ms": {e: found[e]["ms"] for e in engines}, "bind_ms": found["ours"]["bind_ms"],
                                     "first_ms": found["ours"]["first_ms"], "resident": found["ours"]["resident"], "error": error})
        return row
    finally:
        for worker in workers.values():
            worker.close()


def markdown(rows, peers):
    lines = ["| | threads | sizes | " + " | ".join(f"{p}: geomean, least" for p in peers) + " | best peer: geomean, least | new size, median ms | memory, + MB | worst error | library MB |",
             "|" + "---|" * (8 + len(peers))]
    def ratios(values):
        return f"{math.exp(statistics.fmean(map(math.log, values))):.2f}, {min(values):.2f}"
    for row in rows:
        size = f"{row['artifact_bytes'] / 1e6:.1f}"
        if "tokens_a_second" in row:
            rates = row["tokens_a_second"]
            by = [rates["ours"] / rates[p] for p in peers]
            lines.append(f"| {row['model']} | {row['threads']} | {rates['ours']:.1f} tokens/s | " + " | ".join(f"{r:.2f}" for r in by)
                         + f" | {min(by):.2f} | - | - | {'same tokens' if row['same_tokens'].get('ours') else 'other tokens'} | {size} |")
            continue
        sizes = row["sizes"]
        by = {p: [s["ms"][p] / s["ms"]["ours"] for s in sizes] for p in peers}
        best = [min(s["ms"][p] for p in peers) / s["ms"]["ours"] for s in sizes]
        bound = statistics.median(s["bind_ms"] for s in sizes)
        # Once half of them were there, other sizes should leave nothing behind.
        grown = max(0, sizes[-1]["resident"] - sizes[len(sizes) // 2]["resident"]) / 1e6
        worst = max((s["error"] or 0) for s in sizes)
        lines.append(f"| {row['model']} | {row['threads']} | {len(sizes)} | " + " | ".join(ratios(by[p]) for p in peers)
                     + f" | {ratios(best)} | {bound:.2f} | {grown:.1f} | {worst:.2f} | {size} |")
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(prog="./dev bench sizes", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS), help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--count", type=int, default=50, help="random sizes, or tokens (default 50)")
    parser.add_argument("--threads", type=run.parse_list(()), default=["1", "2"], metavar="1,2")
    parser.add_argument("--peers", type=run.parse_list(ENGINES[1:]), default=list(ENGINES[1:]), metavar=",".join(ENGINES[1:]))
    parser.add_argument("--runs", type=int, default=8, help="timed runs at a size, behind its first (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of the decoder (default 3)")
    parser.add_argument("--record", action="store_true", help="keep the figures in bench/record/sizes-VECTORS.json, beside those of other models there")
    args = parser.parse_args()
    rows = []
    try:
        wrong = [name for name in args.models if name not in MODELS]
        if wrong or not args.peers:
            raise run.Failure(f"no model {wrong[0]}; there are {', '.join(MODELS)}" if wrong else "name a peer")
        for name in args.models:
            for threads in map(int, args.threads):
                run.say(f"  {name}, {threads} thread{'s' * (threads > 1)}")
                rows.append(measure(name, threads, args))
    except run.Failure as failure:
        print(f"./dev bench sizes: {failure}", file=sys.stderr)
        return 1
    print(markdown(rows, args.peers))
    if args.record:
        vectors = run.machine()["vectors"]
        path = run.RECORDS / f"sizes-{vectors.lower()}.json"
        measured = {(row["model"], row["threads"]) for row in rows}
        before = json.loads(path.read_text())["rows"] if path.exists() else []
        rows = [row for row in before if (row["model"], row["threads"]) not in measured] + rows
        report.write(path, json.dumps({"machine": run.machine(), "when": datetime.date.today().isoformat(), "rows": rows}, indent=1) + "\n")
        run.say(f"figures: {path.relative_to(run.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
