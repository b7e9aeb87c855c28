#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models in 8 bits beside the same models in float32 and beside other engines' 8-bit kernels.

    ./dev bench integers [MODEL...] [--forms pairs,operators,dynamic] [--threads 1,2] [--target T] [--record]

Forms: pairs (`tilewright quantize`), operators (QLinearConv and its kin, onnxruntime's quantiser), dynamic (its dynamic
quantisation). The weights are real, the calibration data random: times do not depend on it. Every engine of a row runs the
same file, each measurement in a process of its own, in turns; milliseconds are the best of all rounds. The last columns are
the fastest peer's time and our own float32's, by ours: above 1 the integers are faster.
"""
import argparse
import datetime
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import report
import run

MODELS = ("resnet18", "resnet50", "mobilenet_v2", "efficientnet_lite0", "yolov8n_like", "minilm_128")
FORMS = ("pairs", "operators", "dynamic")
PEERS = ("ort", "openvino")
FOLDER = run.CACHE / "bench/integers"


def samples(reference, folder, count=4):
    """Calibration data: the reference's inputs, and others drawn like them."""
    arrays = np.load(reference)
    inputs = {name.removeprefix("input_"): arrays[name] for name in arrays if name.startswith("input_")}
    rng = np.random.default_rng(5)
    folder.mkdir()
    feeds = []
    for index in range(count):
        drawn = {name: value if index == 0 or value.dtype.kind != "f" else rng.permutation(value.ravel()).reshape(value.shape)
                 for name, value in inputs.items()}
        np.savez(folder / f"{index}.npz", **drawn)
        feeds.append(drawn)
    return feeds


def quantized(label, form, model, reference, dims):
    """The model's file in a form, made where it is missing or older than the model."""
    path = FOLDER / f"{label}.{form}.onnx"
    newest = max(model.stat().st_mtime, run.TOOL.stat().st_mtime if form == "pairs" else 0)
    if path.exists() and path.stat().st_mtime >= newest:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        feeds = samples(reference, scratch / "samples")
        if form == "pairs":
            made = subprocess.run([str(run.TOOL), "quantize", str(model), "--calibrate", str(scratch / "samples"), "-o", str(path),
                                   "-q", "--output-db", "-100", "--layer-db", "-100", *run.shape_text(dims)], capture_output=True, text=True)
            if made.returncode:
                raise run.Failure(made.stderr.strip())
            return path
        from onnxruntime import quantization
        from onnxruntime.quantization.shape_inference import quant_pre_process

        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.left = iter(feeds)

            def get_next(self):
                return next(self.left, None)

        prepared = scratch / "prepared.onnx"
        quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
        if form == "dynamic":
            quantization.quantize_dynamic(str(prepared), str(path), per_channel=True, weight_type=quantization.QuantType.QInt8)
        else:
            quantization.quantize_static(str(prepared), str(path), Reader(), quant_format=quantization.QuantFormat.QOperator,
                                         per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                         weight_type=quantization.QuantType.QInt8)
    return path


def measure(label, model, small, reference, dims, threads, args):
    """Milliseconds by engine: "float32", "ours" and the peers."""
    flags = ["--target", args.target] if args.target else []
    artifacts = {}
    for kind, file in (("float32", model), ("ours", small)):
        artifact, facts = run.compile_model(f"{label}.{kind}", file, dims, flags)
        if not artifact:
            raise run.Failure(f"{label}: {facts['failed']}")
        artifacts[kind] = artifact
    best = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        inputs = run.unpack(reference, scratch)
        engines = [*artifacts, *args.peers]
        for turn in range(args.rounds):
            for engine in engines[turn % len(engines):] + engines[:turn % len(engines)]:
                entry = (run.run_ours(artifacts[engine], inputs, reference, threads, args.seconds, scratch) if engine in artifacts
                         else run.run_peer(engine, small, reference, threads, args.seconds))
                if "failed" in entry:
                    run.say(f"  {label}, {engine}: {entry['failed']}")
                else:
                    best[engine] = min(best.get(engine, math.inf), entry["min_ms"])
    return best


def markdown(rows, peers):
    lines = ["| | threads | ours in float32 | ours | " + " | ".join(peers) + " | fastest peer / ours | float32 / ours |",
             "|" + "---|" * (6 + len(peers))]
    def shown(value):
        return f"{value:.2f}" if value and math.isfinite(value) else "-"
    for row in rows:
        lines.append(f"| {row['model']}, {row['form']} | {row['threads']} | {shown(row['ms'].get('float32'))} | "
                     f"{shown(row['ms'].get('ours'))} | " + " | ".join(shown(row["ms"].get(p)) for p in peers)
                     + f" | {shown(row['by_peer'])} | {shown(row['by_float32'])} |")
    for key, what in (("by_peer", "the fastest peer"), ("by_float32", "our float32")):
        ratios = [row[key] for row in rows if row[key]]
        if ratios:
            lines.append("")
            lines.append(f"Against {what}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench integers", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS), help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--forms", type=run.parse_list(FORMS), default=list(FORMS), metavar=",".join(FORMS))
    parser.add_argument("--peers", type=run.parse_list(PEERS), default=list(PEERS), metavar=",".join(PEERS))
    parser.add_argument("--threads", type=run.parse_list(()), default=["1", "2"], metavar="1,2")
    parser.add_argument("--rounds", type=int, default=3, help="turns of every engine (default 3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="time of one measurement (default 0.5)")
    parser.add_argument("--target", default="", help="what ours is compiled for; default: this machine")
    parser.add_argument("--record", action="store_true", help="keep the figures in bench/record/integers.json, of machines without AVX-512 in one that says their vectors")
    args = parser.parse_args()
    rows = []
    try:
        for name in args.models:
            label, model, reference, dims = run.locate(name, {})
            for form in args.forms:
                small = quantized(label, form, model, reference, dims)
                for threads in map(int, args.threads):
                    run.say(f"  {label}, {form}, {threads} thread{'s' * (threads > 1)}")
                    ms = measure(label, model, small, reference, dims, threads, args)
                    peers = [ms[p] for p in args.peers if p in ms]
                    ours = ms.get("ours")
                    rows.append({"model": label, "form": form, "threads": threads, "ms": ms,
                                 "by_peer": min(peers) / ours if peers and ours else None,
                                 "by_float32": ms["float32"] / ours if ours and "float32" in ms else None})
    except run.Failure as failure:
        print(f"./dev bench integers: {failure}", file=sys.stderr)
        return 1
    print(markdown(rows, args.peers))
    if args.record:
        facts = {"machine": run.machine(), "when": datetime.date.today().isoformat(), "target": args.target or "this machine", "rounds": args.rounds, "rows": rows}
        vectors = facts["machine"]["vectors"]
        path = run.RECORDS / ("integers.json" if vectors == "AVX-512" else f"integers-{vectors.lower()}.json")
        report.write(path, json.dumps(facts, indent=1) + "\n")
        run.say(f"figures: {path.relative_to(run.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
