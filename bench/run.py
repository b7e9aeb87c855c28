#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times compiled models against other engines: a fresh process per measurement, engines taking turns.

    ./dev bench                                       every model of the table, 1 and 2 threads, all peers: ~20 minutes
    ./dev bench resnet50 minilm_128 --threads 1 --peers ort,openvino
    ./dev bench vgg16 vit_b_16 --add                  a part: adds to the figures that are there
    ./dev bench --show --write                        no measuring: the figures so far, into docs/performance.md
    ./dev bench --zoo                                 the networks of bench/zoo that the table leaves out; figures and
                                                      record of their own
    ./dev bench --unseen --write                      the architectures of bench/zoo that have no first figures yet: what
                                                      they get before anything is tuned for them; kept in the record
    ./dev bench path/to/model.onnx --shape x=1x3x320x320

How: every model is compiled once; then, for several rounds, each engine in turn loads it in a new process, runs twice to
warm up and then for --seconds. An engine's time is the median over the rounds of each round's minimum; a ratio is the
peer's time by ours, so above 1 Tilewright is faster. Outputs are compared with onnxruntime's.
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
RECORDS = ROOT / "bench/record"
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
# What `./dev bench` measures: every kind of network that the project wants to be fast at.
TABLE = ("resnet18", "resnet50", "vgg16", "squeezenet1_1", "densenet121", "mobilenet_v2", "efficientnet_b0", "yolov8n_like",
         "unet", "espcn", "minilm_128", "vit_b_16", "ppocr_det", "ppocr_rec", "ppocr_cls", "silero_vad", "mlp",
         "speech_lstm_gru")
# Networks of bench/zoo that are another one's twin: the same kernels, timed once.
TWINS = ("resnet18_bn",)


class Failure(Exception):
    """Something the user can act on; its text says what."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def zoo_names(unseen=False):
    sys.path.insert(0, str(ROOT / "bench/zoo"))
    import export

    return list(export.UNSEEN if unseen else export.ZOO)


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
            result = subprocess.run([TORCH_PYTHON, "-W", "ignore", str(ROOT / "bench/zoo/export.py"), name])
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


def compile_model(label, model, dims, flags):
    """Compiles with our command line; returns (artifact, facts about the compilation)."""
    artifact = CACHE / f"bench/compiled/{label}.so"
    artifact.parent.mkdir(parents=True, exist_ok=True)
    command = [str(TOOL), "compile", str(model), "-o", str(artifact), *shape_text(dims), *flags]
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
                      "artifact_bytes": artifact.stat().st_size, "model_bytes": model.stat().st_size}


def unpack(reference, folder):
    """Writes the reference's inputs as .npy files; returns the options that name them."""
    result = subprocess.run([str(PEER_PYTHON), "-c", UNPACK, str(reference), str(folder)], capture_output=True, text=True)
    if result.returncode != 0:
        raise Failure(result.stderr.strip()[-300:])
    return [f"--input={name}=@{folder}/{index}.npy" for index, name in enumerate(json.loads(result.stdout))]


def run_ours(artifact, inputs, reference, threads, seconds, scratch):
    """One fresh process of `tilewright run`; the number of repetitions follows from a short run before it."""
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
    repeat = max(5, min(100000, round(seconds * 1e3 / max(short["median_ms"], 1e-3))))
    result = call(["--warmup", "1", "--repeat", str(repeat), f"--output=@{output}"])
    if "failed" in result:
        return result
    compared = subprocess.run([str(PEER_PYTHON), "-c", COMPARE, str(ROOT / "bench"), str(reference), str(output)],
                              capture_output=True, text=True)
    result["runs"] = repeat
    result["error"] = float(compared.stdout) if compared.returncode == 0 else report.WRONG
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
    command = [str(PEER_PYTHON), str(ROOT / "bench/engines.py"), engine, str(model), str(reference), "--threads", str(threads),
               "--seconds", str(seconds), "--scratch", str(CACHE / "bench/converted")]
    try:
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment, timeout=300)
    except subprocess.TimeoutExpired:
        return {"failed": "no answer within 300 s"}
    try:
        return json.loads(result.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return {"failed": f"the process ended with code {result.returncode}"}


def summarise(rounds):
    """One entry per engine from its rounds; a failed round stands for all."""
    failed = [entry["failed"] for entry in rounds if "failed" in entry]
    if failed:
        return {"failed": failed[0]}
    minima = [entry["min_ms"] for entry in rounds]
    return {"ms": statistics.median(minima), "ms_rounds": minima,
            "median_ms": statistics.median(entry["median_ms"] for entry in rounds),
            "load_ms": min(entry["load_ms"] for entry in rounds), "first_ms": min(entry["first_ms"] for entry in rounds),
            "runs": min(entry["runs"] for entry in rounds), "peak_rss_bytes": max(entry["peak_rss_bytes"] for entry in rounds),
            "error": max(entry["error"] for entry in rounds), "version": rounds[-1].get("version", "")}


def machine():
    """What figures may be put together: virtual machines of one name differ in their vectors."""
    facts = {}
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    flags = facts.get("flags", "").split()
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else ""
    return {"processor": facts.get("model name") or platform.processor() or platform.machine(), "vectors": vectors,
            "cores": len(os.sched_getaffinity(0)), "system": f"{platform.system()} {platform.machine()}"}


def measure_model(name, args):
    label, model, reference, dims = locate(name, dict(args.shape))
    result = {"model": label, "shapes": {key: list(value) for key, value in dims.items()}, "threads": {}}
    artifact, result["compile"] = ((None, {"failed": "not asked for"}) if args.no_ours
                                   else compile_model(label, model, dims, args.compile_flag))
    for engine in args.peers:
        if engine in ("mnn", "ncnn"):
            run_peer(engine, model, reference, 1, 0)  # converts the model, so that loading is only that
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        inputs = unpack(reference, scratch) if artifact else []
        for threads in args.threads:
            result["threads"][str(threads)] = take_turns(label, model, reference, threads, artifact, inputs, scratch, args)
            if not artifact:
                result["threads"][str(threads)]["ours"] = {"failed": result["compile"]["failed"]}
    return result


def take_turns(label, model, reference, threads, artifact, inputs, scratch, args):
    engines = ["ours"] * bool(artifact) + args.peers
    rounds = {engine: [] for engine in engines}
    for turn in range(args.rounds):
        say(f"  {label}, {threads} thread{'s' * (threads > 1)}, round {turn + 1} of {args.rounds}")
        # Start with another engine each round: none always runs on the machine its neighbour left hot.
        first = turn % max(1, len(engines))
        for engine in engines[first:] + engines[:first]:
            if any("failed" in entry for entry in rounds[engine]):
                continue
            if engine == "ours":
                entry = run_ours(artifact, inputs, reference, threads, args.seconds, scratch)
            else:
                entry = run_peer(engine, model, reference, threads, args.seconds)
            rounds[engine].append(entry)
    return {engine: summarise(rounds[engine]) for engine in engines} | {
        "rounds": args.rounds, "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


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


def read_results(path):
    try:
        results = json.loads(path.read_text())
        if results.get("format") != report.FORMAT:
            raise Failure(f"{path} is not a file of this version's figures; measure anew without --add and --show")
        return results
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Failure(f"{path} is damaged ({error}); measure anew without --add and --show") from None


def merge(results, measured):
    """Puts one model's figures in: those of the same thread count are replaced, whole, because ratios within one count
    are only fair between engines that took turns."""
    for model in results["models"]:
        if model["model"] == measured["model"] and model["shapes"] == measured["shapes"]:
            model["threads"].update(measured["threads"])
            model["compile"] = measured["compile"]
            break
    else:
        results["models"].append(measured)
    position = {name: index for index, name in enumerate(TABLE)}
    results["models"].sort(key=lambda model: position.get(model["model"], len(position)))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names or .onnx files; none: the table; 'all': every name")
    parser.add_argument("--threads", type=parse_list(()), default=["1", "2"], metavar="1,2")
    parser.add_argument("--peers", type=parse_list(PEERS), default=list(PEERS), metavar=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3, help="turns of every engine (default 3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="time of one measurement (default 0.5)")
    parser.add_argument("--shape", action="append", default=[], type=parse_shape, metavar="NAME=DIMS", help="for an .onnx file")
    parser.add_argument("--compile-flag", action="append", default=[], metavar="FLAG", help="passed on to tilewright compile")
    parser.add_argument("--no-ours", action="store_true", help="measure the peers only")
    parser.add_argument("--add", action="store_true", help="keep the figures of models and thread counts not measured now")
    parser.add_argument("--show", action="store_true", help="measure nothing, show the figures that are there")
    parser.add_argument("--write", action="store_true", help="renew docs/performance.md and the record in bench/record")
    parser.add_argument("--zoo", action="store_true", help="the networks that the table leaves out instead of the table")
    parser.add_argument("--unseen", action="store_true", help="first figures of architectures that have none; those there stay")
    parser.add_argument("--json", type=pathlib.Path, help="where all figures go (default: .cache/bench/results.json, with --zoo zoo.json, "
                                                          "with --unseen unseen.json)")
    args = parser.parse_args()
    kind = "unseen" if args.unseen else "zoo" if args.zoo else "models"
    args.add = args.add or args.unseen
    args.json = args.json or CACHE / "bench" / ("results.json" if kind == "models" else f"{kind}.json")
    args.threads = [int(item) for item in args.threads if item.isdigit() and int(item) > 0]
    if not args.threads or args.rounds < 1:
        parser.error("--threads takes numbers, for instance 1,2, and --rounds one above 0")
    try:
        results = read_results(args.json) if args.add or args.show else None
        if args.show and not results:
            raise Failure(f"{args.json} is not there; ./dev bench makes it")
        results = results or {"format": report.FORMAT, "machine": machine(), "seconds": args.seconds, "models": []}
        if not args.show:
            measure(results, args)
    except Failure as failure:
        print(f"./dev bench: {failure}", file=sys.stderr)
        return 1
    print(report.markdown(results) if kind == "models" else report.ratios(results))
    page = args.json.with_suffix(".html")
    page.write_text(report.html(results), encoding="utf-8")
    say(f"figures: {args.json}, page: {page}")
    if args.write:
        report.write_docs(results, ROOT / "docs/performance.md", kind)
        record = RECORDS / f"{kind}.json"
        report.write(record, report.compact(results))
        say(f"docs/performance.md and {record.relative_to(ROOT)} are renewed")
    return 0


def measure(results, args):
    if not PEER_PYTHON.exists():
        raise Failure("the Python environment with the other engines is missing; ./dev models bench makes it")
    if not args.no_ours and not TOOL.exists():
        raise Failure(f"{TOOL.relative_to(ROOT)} is missing; ./dev build makes it")
    if results["machine"] != machine():
        raise Failure(f"{args.json} holds another machine's figures; --json FILE starts a file of its own")
    rest = [name for name in zoo_names() if name not in TABLE + TWINS] if args.zoo else list(TABLE)
    if args.unseen:
        first = {model["model"] for model in results["models"]}
        rest = [name for name in zoo_names(unseen=True) if name not in first]
    names = args.models or rest
    for name in list(FETCHED) + zoo_names() if names == ["all"] else names:
        merge(results, measure_model(name, args))
        results["when"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        args.json.parent.mkdir(parents=True, exist_ok=True)
        report.write(args.json, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
