#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models with `--math bf16` beside themselves in float32, and beside OpenVINO in float32 and with bfloat16 inference.

    ./dev bench bf16 [MODEL...] [--threads 1,2] [--rounds 3] [--seconds 0.5] [--record]

Each measurement has a process of its own, engines take turns; milliseconds are the best of all rounds. "error" is the
outputs' difference from onnxruntime's in float32, root mean square by root mean square.
"""
import argparse
import datetime
import json
import math
import pathlib
import sys
import tempfile

import numpy as np

import report
import run

MODELS = ("vit_b_16", "minilm_128", "resnet50", "mobilenet_v2", "convnext_tiny", "mlp")
ENGINES = ("float32", "bf16", "openvino", "openvino_bf16")


def difference(reference, outputs):
    want, got = np.load(reference), np.load(outputs)
    square = base = 0.0
    for name in (n.removeprefix("output_") for n in want if n.startswith("output_")):
        a = want[f"output_{name}"].astype(np.float64)
        b = (got[name] if name in got else got[f"output_{name}"]).astype(np.float64)
        square, base = square + float(np.sum((a - b.reshape(a.shape)) ** 2)), base + float(np.sum(a ** 2))
    return math.sqrt(square / base) if base else 0.0


def measure(label, model, reference, dims, threads, args):
    """Milliseconds by engine, and the errors of ours."""
    artifacts = {}
    for kind, flags in (("float32", []), ("bf16", ["--math", "bf16"])):
        artifacts[kind], facts = run.compile_model(f"{label}.{kind}", model, dims, flags)
        if not artifacts[kind]:
            raise run.Failure(f"{label}: {facts['failed']}")
    best, errors = {}, {}
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        inputs = run.unpack(reference, scratch)
        for turn in range(args.rounds):
            first = turn % len(ENGINES)
            for engine in ENGINES[first:] + ENGINES[:first]:
                entry = (run.run_ours(artifacts[engine], inputs, reference, threads, args.seconds, scratch) if engine in artifacts
                         else run.run_peer(engine, model, reference, threads, args.seconds))
                if "failed" in entry:
                    run.say(f"  {label}, {engine}: {entry['failed']}")
                    continue
                best[engine] = min(best.get(engine, math.inf), entry["min_ms"])
                if engine in artifacts:
                    errors[engine] = difference(reference, scratch / "outputs.npz")
    return best, errors


def markdown(rows):
    lines = ["| | threads | float32 | bf16 | OpenVINO float32 | OpenVINO bfloat16 | float32 / bf16 | OpenVINO bfloat16 / bf16 | error |",
             "|" + "---|" * 9]
    for row in rows:
        ms = row["ms"]
        ratio = lambda engine: f"{ms[engine] / ms['bf16']:.2f}" if engine in ms and "bf16" in ms else "-"
        lines.append(f"| {row['model']} | {row['threads']} | " + " | ".join(f"{ms[e]:.2f}" if e in ms else "-" for e in ENGINES)
                     + f" | {ratio('float32')} | {ratio('openvino_bf16')} | {row['errors'].get('bf16', math.nan):.1e} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench bf16", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS), help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--threads", type=run.parse_list(()), default=["1", "2"], metavar="1,2")
    parser.add_argument("--rounds", type=int, default=3, help="turns of every engine (default 3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="time of one measurement (default 0.5)")
    parser.add_argument("--record", action="store_true", help="keep the figures in bench/record/bfloat16.json, beside those of other models there")
    args = parser.parse_args()
    rows = []
    try:
        for name in args.models:
            label, model, reference, dims = run.locate(name, {})
            for threads in map(int, args.threads):
                run.say(f"  {label}, {threads} thread{'s' * (threads > 1)}")
                ms, errors = measure(label, model, reference, dims, threads, args)
                rows.append({"model": label, "threads": threads, "ms": ms, "errors": errors})
    except run.Failure as failure:
        print(f"./dev bench bf16: {failure}", file=sys.stderr)
        return 1
    print(markdown(rows))
    if args.record:
        path = run.RECORDS / "bfloat16.json"
        measured = {(row["model"], row["threads"]) for row in rows}
        before = json.loads(path.read_text())["rows"] if path.exists() else []
        rows = [row for row in before if (row["model"], row["threads"]) not in measured] + rows
        rows.sort(key=lambda row: (row["model"], row["threads"]))
        report.write(path, json.dumps({"machine": run.machine(), "when": datetime.date.today().isoformat(), "rounds": args.rounds, "rows": rows}, indent=1) + "\n")
        run.say(f"figures: {path.relative_to(run.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
