#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times compiled models against other engines: fresh process per measurement, engines taking turns.

    ./dev bench                                       the default models, 1 and 2 threads, onnxruntime and OpenVINO
    ./dev bench resnet50 --threads 1 --peers ort,openvino,mnn,ncnn
    ./dev bench path/to/model.onnx --shape x=1x3x320x320
    ./dev bench --write                               also renews docs/performance.md

How: every model is compiled once; then, for several rounds, each engine in turn loads it in a new process, runs once
to warm up and then for --seconds. A ratio is the median over the rounds of our median time by the peer's median time
of the same round, so that a machine that slows down for a while slows both. Outputs are compared with onnxruntime's.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import report

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
TOOL = ROOT / "build/tilewright"
PEER_PYTHON = CACHE / "venv-bench/bin/python"
PEERS = ("ort", "openvino", "mnn", "ncnn")
TORCH_PYTHON = "/usr/bin/python3"

# name: (file in .cache/models, shapes). Every other name is a network of bench/zoo.
FETCHED = {
    "ppocr_det": ("ppocr_det", {"x": (1, 3, 640, 640)}),
    "ppocr_rec": ("ppocr_rec", {"x": (1, 3, 48, 320)}),
    "ppocr_cls": ("ppocr_cls", {"x": (1, 3, 48, 192)}),
    "efficientnet_lite0": ("efficientnet_lite0", {}),
    "minilm_16": ("minilm_16", {}),
    "minilm_128": ("minilm_128", {}),
    "silero_vad": ("silero_vad_static", {}),
}
DEFAULT_MODELS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "minilm_128", "ppocr_det", "ppocr_rec")


class Failure(Exception):
    """Something the user can act on; its text says what."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def zoo_names():
    sys.path.insert(0, str(ROOT / "bench/zoo"))
    import export

    return list(export.ZOO)


def shape_text(shapes):
    return [f"--shape={name}={'x'.join(map(str, dims))}" for name, dims in shapes.items()]


def locate(name, shapes):
    """Returns (label, model file, reference .npz, shapes), making the files that are missing."""
    path = pathlib.Path(name)
    if path.suffix == ".onnx":
        if not path.exists():
            raise Failure(f"there is no file {path}")
        label, model, dims = path.stem, path, shapes
    elif name in FETCHED:
        file, dims = FETCHED[name]
        label, model, dims = name, CACHE / f"models/{file}.onnx", shapes or dims
    elif name in zoo_names():
        label, model, dims = name, CACHE / f"zoo/{name}.onnx", {}
        if not model.exists():
            result = subprocess.run([TORCH_PYTHON, str(ROOT / "bench/zoo/export.py"), name])
            if result.returncode != 0:
                raise Failure(f"{name} could not be exported; ./dev zoo {name} installs what that needs")
    else:
        raise Failure(f"no model named {name}; there are: {', '.join(list(FETCHED) + zoo_names())}, or a path to an .onnx file")
    suffix = "".join("_" + "x".join(map(str, d)) for d in dims.values())
    reference = CACHE / f"bench/reference/{label}{suffix}.npz"
    if not reference.exists() or reference.stat().st_mtime < model.stat().st_mtime:
        reference.parent.mkdir(parents=True, exist_ok=True)
        result = subprocess.run([str(PEER_PYTHON), str(ROOT / "bench/zoo/reference.py"), str(model), "--out", str(reference),
                                 *shape_text(dims)])
        if result.returncode != 0:
            raise Failure(f"onnxruntime could not run {model}")
    return label, model, reference, dims


    return max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)


def compile_model(label, model, dims):
    """Compiles with our command line; returns (artifact, facts about the compilation)."""
    artifact = CACHE / f"bench/compiled/{label}.so"
    artifact.parent.mkdir(parents=True, exist_ok=True)
    command = [str(TOOL), "compile", str(model), "-o", str(artifact), *shape_text(dims)]
    # /usr/bin/time is not everywhere: wait4 gives this one child's peak memory.
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            return None, {"failed": lines[0][:200]}
    return artifact, {"compile_s": elapsed, "compile_peak_rss_bytes": usage.ru_maxrss * 1024,
                      "artifact_bytes": artifact.stat().st_size}


def run_ours(artifact, reference, threads, seconds, scratch):
    """One fresh process of `tilewright run`; the number of repetitions follows from a short run before it."""
    arrays = subprocess.run([str(PEER_PYTHON), "-c", UNPACK, str(reference), str(scratch)], capture_output=True, text=True)
    if arrays.returncode != 0:
        raise Failure(arrays.stderr.strip()[-300:])
    inputs = [f"--input={name}=@{scratch}/{index}.npy" for index, name in enumerate(json.loads(arrays.stdout))]
    output = scratch / "outputs.npz"
    base = [str(TOOL), "run", str(artifact), "--json", "--threads", str(threads), *inputs]

    def call(extra):
        result = subprocess.run(base + extra, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            message = (result.stderr.strip() or result.stdout.strip()).splitlines() or [f"exit code {result.returncode}"]
            return {"failed": message[0][:200]}
        return json.loads(result.stdout)

    short = call(["--repeat", "3"])
    if "failed" in short:
        return short
    repeat = max(5, min(5000, round(seconds * 1e3 / max(short["median_ms"], 1e-3))))
    result = call(["--repeat", str(repeat), f"--output=@{output}"])
    if "failed" in result:
        return result
    compared = subprocess.run([str(PEER_PYTHON), "-c", COMPARE, str(ROOT / "bench"), str(reference), str(output)],
                              capture_output=True, text=True)
    result["runs"] = repeat
    result["error"] = float(compared.stdout) if compared.returncode == 0 else float("inf")
    return {key: result.get(key) for key in ("load_ms", "first_ms", "min_ms", "median_ms", "runs", "peak_rss_bytes", "error")}


UNPACK = """
import json, sys, numpy as np
arrays = np.load(sys.argv[1]); names = [n for n in arrays if n.startswith("input_")]
for i, n in enumerate(names): np.save(f"{sys.argv[2]}/{i}.npy", arrays[n])
print(json.dumps([n.removeprefix("input_") for n in names]))
"""
COMPARE = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np, engines
want, got = np.load(sys.argv[2]), np.load(sys.argv[3])
names = [n.removeprefix("output_") for n in want if n.startswith("output_")]
find = lambda n: got[n] if n in got else got["output_" + n]
print(engines.largest_error([find(n) for n in names], [want["output_" + n] for n in names]))
"""


def run_peer(engine, model, reference, threads, seconds):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    result = subprocess.run(
        [str(PEER_PYTHON), str(ROOT / "bench/engines.py"), engine, str(model), str(reference), "--threads", str(threads),
         "--seconds", str(seconds), "--scratch", str(CACHE / "bench/converted")],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    try:
        return json.loads(result.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return {"failed": f"the process ended with code {result.returncode}"}


def summarise(rounds):
    """One entry per engine from its rounds; a failed round stands for all."""
    failed = [entry["failed"] for entry in rounds if "failed" in entry]
    if failed:
        return {"failed": failed[0]}
    summary = {key: min(entry[key] for entry in rounds) for key in ("min_ms", "first_ms", "load_ms")}
    summary["median_ms"] = statistics.median(entry["median_ms"] for entry in rounds)
    summary["median_ms_rounds"] = [entry["median_ms"] for entry in rounds]
    summary["peak_rss_bytes"] = max(entry["peak_rss_bytes"] for entry in rounds)
    summary["error"] = max(entry["error"] for entry in rounds)
    summary["version"] = rounds[-1].get("version", "")
    return summary


def ratio(ours, peer):
    if "failed" in ours or "failed" in peer:
        return None
    return statistics.median(a / b for a, b in zip(ours["median_ms_rounds"], peer["median_ms_rounds"]))


def machine():
    name = platform.processor() or platform.machine()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"processor": name, "cores": len(os.sched_getaffinity(0)), "system": f"{platform.system()} {platform.machine()}"}


def measure_model(name, args):
    label, model, reference, dims = locate(name, dict(args.shape))
    result = {"model": label, "shapes": {key: list(value) for key, value in dims.items()}, "threads": {}}
    artifact, result["compile"] = (None, {"failed": "not asked for"}) if args.no_ours else compile_model(label, model, dims)
    for threads in args.threads:
        engines = ["ours"] * bool(artifact) + args.peers
        rounds = {engine: [] for engine in engines}
        for turn in range(args.rounds):
            # Start with another engine each round: none always runs on the machine its neighbour left hot.
            for engine in engines[turn % len(engines):] + engines[:turn % len(engines)]:
                if any("failed" in entry for entry in rounds[engine]):
                    continue
                say(f"  {label}, {threads} thread{'s' * (threads > 1)}, round {turn + 1}/{args.rounds}: {engine}")
                if engine == "ours":
                    with tempfile.TemporaryDirectory() as scratch:
                        entry = run_ours(artifact, reference, threads, args.seconds, pathlib.Path(scratch))
                else:
                    if turn == 0 and engine in ("mnn", "ncnn"):
                        run_peer(engine, model, reference, threads, 0)  # converts the model, so that loading is only that
                    entry = run_peer(engine, model, reference, threads, args.seconds)
                rounds[engine].append(entry)
        entry = {engine: summarise(rounds[engine]) for engine in engines}
        if not artifact:
            entry["ours"] = {"failed": result["compile"]["failed"]}
        entry["ratios"] = {peer: ratio(entry["ours"], entry[peer]) for peer in args.peers}
        result["threads"][str(threads)] = entry
    return result


def parse_shape(text):
    name, _, dims = text.rpartition("=")
    try:
        return name, tuple(int(dim) for dim in dims.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not of the form name=1x3x224x224") from None


def parse_list(allowed):
    def parse(text):
        items = [item for item in text.split(",") if item]
        wrong = [item for item in items if allowed and item not in allowed]
        if wrong:
            raise argparse.ArgumentTypeError(f"no {', '.join(wrong)}; there are {', '.join(allowed)}")
        return items
    return parse


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names or .onnx files; 'all' for every name")
    parser.add_argument("--threads", type=parse_list(()), default=["1", "2"], metavar="1,2")
    parser.add_argument("--peers", type=parse_list(PEERS), default=["ort", "openvino"], metavar=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3, help="turns of every engine (default 3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time of one measurement (default 1)")
    parser.add_argument("--shape", action="append", default=[], type=parse_shape, metavar="NAME=DIMS", help="for an .onnx file")
    parser.add_argument("--no-ours", action="store_true", help="measure the peers only")
    parser.add_argument("--write", action="store_true", help="renew the tables and pictures of docs/performance.md")
    parser.add_argument("--json", type=pathlib.Path, default=CACHE / "bench/results.json", help="where all figures go")
    args = parser.parse_args()
    args.threads = [int(item) for item in args.threads if item.isdigit() and int(item) > 0]
    if not args.threads:
        parser.error("--threads takes numbers, for instance 1,2")
    names = args.models or list(DEFAULT_MODELS)
    try:
        if names == ["all"]:
            names = list(FETCHED) + zoo_names()
        if not PEER_PYTHON.exists():
            raise Failure("the Python environment with the other engines is missing; ./dev models bench makes it")
        if not args.no_ours and not TOOL.exists():
            raise Failure(f"{TOOL.relative_to(ROOT)} is missing; ./dev build makes it")
        results = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "machine": machine(),
                   "rounds": args.rounds, "seconds": args.seconds, "models": []}
        for name in names:
            results["models"].append(measure_model(name, args))
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(results, indent=1) + "\n")
    except Failure as failure:
        print(f"./dev bench: {failure}", file=sys.stderr)
        return 1
    print(report.markdown(results))
    page = args.json.with_suffix(".html")
    page.write_text(report.html(results), encoding="utf-8")
    say(f"figures: {args.json}, page: {page}")
    if args.write:
        report.write_docs(results, ROOT / "docs/performance.md")
        say("docs/performance.md is renewed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
