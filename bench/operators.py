#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times single ONNX operators beside onnxruntime: operators x dtypes x sizes, the worst first.

    ./dev bench operators                                  everything, 1 and 2 threads
    ./dev bench operators Softmax 'Arg*' --dtypes float32 --sizes cache --threads 1
    ./dev bench operators --target "llvm -mcpu=haswell"    the AVX2 code (onnxruntime still uses all this machine has)
    ./dev bench operators 'Reduce*' --add                  a part: adds to the figures that are there
    ./dev bench operators --minutes 15 --rest              what the figures lack, as far as the time goes; again for more
    ./dev bench operators --show --write                   no measuring: the figures so far, into docs and bench/record

How: each model of one node (bench/operator_cases.py) is compiled in this process, both engines' answers are compared,
then the two take turns; a time is the shortest call of all turns, a ratio onnxruntime's time by ours. Sizes: small
fits a core's first cache, cache its second, memory none. Inputs are seeded by the case's name.
"""
import argparse
import datetime
import fnmatch
import gc
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy as np

import library
import operator_cases
import report

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench/record/operators.json"
FORMAT = 1
LOW, GOAL = 0.9, 1.8
# Largest error of an element, relative to itself plus a tenth of that relative to the largest: results of narrow floats
# are a few roundings of intermediate values.
TOLERANCE = {"float64": 1e-5, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}


def say(text):
    print(text, file=sys.stderr, flush=True)


class Peer:
    """onnxruntime on one model, inputs and outputs bound."""

    def __init__(self, model, threads, feeds):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        # Its idle threads would otherwise spin while the other engine is measured.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, value in feeds.items():
            self.binding.bind_cpu_input(name, value)
        self.names = [output.name for output in self.session.get_outputs()]
        self.rebind()
        self.run()
        # Where sizes are fixed the outputs of the first run serve the others; otherwise each run allocates, as ours does.
        self.first = self.binding.copy_outputs_to_cpu()

    def rebind(self):
        for name in self.names:
            self.binding.bind_output(name)

    def run(self):
        self.session.run_with_iobinding(self.binding)


def difference(got, want):
    """1: the worst element is just within tolerance."""
    worst = 0.0
    for a, b in zip(got, want):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return report.WRONG
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                # A value on the edge between two integers may fall either way.
                near = b.dtype.kind in "iu" and np.all(np.abs(a.astype(np.float64) - b.astype(np.float64)) <= 1)
                if not (near and np.mean(a != b) < 1e-3):
                    return report.WRONG
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if same.all():
            continue
        finite = np.isfinite(y)
        allowed = TOLERANCE[b.dtype.name] * (np.abs(y) + 0.1 * np.max(np.abs(y[finite]), initial=0.0))
        with np.errstate(invalid="ignore"):
            gap = np.where(same, 0.0, np.abs(x - y) / np.maximum(allowed, 1e-300))
        worst = max(worst, float(np.nan_to_num(gap, nan=report.WRONG, posinf=report.WRONG).max(initial=0.0)))
    return min(worst, report.WRONG)


def shortest(call, seconds):
    call()
    best, end = np.inf, time.perf_counter() + seconds
    count = 0
    while count < 3 or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
        count += 1
    return best


def take_turns(ours, peer, rounds, seconds):
    times = [np.inf, np.inf]
    for turn in range(rounds):
        engines = [(0, ours.run), (1, peer.run)]
        for index, call in engines if turn % 2 == 0 else reversed(engines):
            times[index] = min(times[index], shortest(call, seconds))
    return times


def measure_case(case, lib, args, folder):
    """The case's figures, or nothing where onnxruntime cannot run it."""
    model = folder / "model.onnx"
    feeds = case.write(model)
    try:
        peer = Peer(model, 1, feeds)
    except Exception:  # whatever it throws: it has no kernel for these types, or refuses the model
        return None
    want = peer.first
    entry = {"operator": case.operator, "case": case.name, "dtype": case.dtype, "size": case.size, "threads": {}}
    artifact = folder / "model.so"
    try:
        lib.compile(model, artifact, args.target)
        for threads in args.threads:
            if threads != 1:
                peer = Peer(model, threads, feeds)
            ours = library.open_model(lib, artifact, threads, feeds, want)
            ours.run()
            if not case.random:
                entry["error"] = max(entry.get("error", 0.0), difference(ours.outputs(), want))
            times = take_turns(ours, peer, args.rounds, args.seconds)
            entry["threads"][str(threads)] = {"us": times[0] * 1e6, "peer_us": times[1] * 1e6}
            ours.close()
    except library.Refused as refused:
        entry["refused"] = str(refused)[:200]
    artifact.unlink(missing_ok=True)
    gc.collect()
    return entry


def ratio(entry, threads):
    times = entry["threads"].get(str(threads))
    if times is None or "refused" in entry or entry.get("error", 0) > 1:
        return None
    return times["peer_us"] / times["us"]


def key_of(entry):
    return entry["operator"], entry["case"], entry["dtype"], entry["size"]


def summary(entries, threads):
    ratios = [r for r in (ratio(entry, threads) for entry in entries) if r is not None]
    if not ratios:
        return f"{threads} threads: nothing measured"
    return (f"{threads} thread{'s' * (threads > 1)}: geometric mean {report.geometric_mean(ratios):.2f} over {len(ratios)} cases; "
            f"{sum(r < LOW for r in ratios)} below {LOW}, the worst {min(ratios):.2f}")


def rows_of(entries, threads):
    """Table rows, the worst first."""
    def worst(entry):
        return min((r for r in (ratio(entry, t) for t in threads) if r is not None), default=0.0)

    for entry in sorted(entries, key=worst):
        cells = [entry["operator"], entry["case"], entry["dtype"], entry["size"]]
        for t in threads:
            times, r = entry["threads"].get(str(t)), ratio(entry, t)
            cells += [report.number(times["us"]), report.number(times["peer_us"]),
                      f"**{r:.2f}**" if r is not None else "off"] if times else ["-", "-", "-"]
        yield cells


def markdown(results, most=None):
    entries, threads = results["cases"], sorted({int(t) for e in results["cases"] for t in e["threads"]})
    refused = [e for e in entries if "refused" in e]
    off = [e for e in entries if e.get("error", 0) > 1]
    lines = [f"- {summary(entries, t)}" for t in threads]
    lines.append(f"- refused: {len(refused)}" + "".join(f"; {' '.join(key_of(e))}: {e['refused']}" for e in refused[:30]))
    lines.append(f"- beside onnxruntime's answer: {len(off)}" + "".join(f"; {' '.join(key_of(e))}" for e in off[:30]))
    lines.append("")
    head = ["operator", "case", "dtype", "size"] + [f"{name}, {t} thr." for t in threads for name in ("us", "onnxruntime", "ratio")]
    lines.append("| " + " | ".join(head) + " |")
    lines.append("|---" * 4 + "|---:" * (3 * len(threads)) + "|")
    rows = list(rows_of([e for e in entries if "refused" not in e], threads))
    lines += ["| " + " | ".join(row) + " |" for row in rows[:most]]
    if most and len(rows) > most:
        lines.append(f"\n{len(rows) - most} more in bench/record.")
    lines.append(f"\n{results['machine']['processor']} with {results['machine']['vectors']}, compiled for "
                 f"{results['target'] or 'this machine'}; onnxruntime {results['peer']}; {results['when'][:10]}.")
    return "\n".join(lines)


def compact(results):
    """The record: one line for each case."""
    rounded = [{**e, "error": round(e.get("error", 0), 3),
                "threads": {t: {k: float(f"{v:.4g}") for k, v in times.items()} for t, times in e["threads"].items()}}
               for e in results["cases"]]
    head = json.dumps({k: v for k, v in results.items() if k != "cases"}, indent=1)
    return head[:-2] + ',\n "cases": [\n' + ",\n".join("  " + json.dumps(e) for e in rounded) + "\n ]\n}\n"


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench operators", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="names or patterns; none: all")
    parser.add_argument("--cases", default="*", metavar="PATTERN", help="cases of these operators")
    parser.add_argument("--dtypes", default=",".join(operator_cases.USUAL), help="of the first input (default: %(default)s); all")
    parser.add_argument("--sizes", default=",".join(operator_cases.SIZES))
    parser.add_argument("--threads", default="1,2", metavar="1,2")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each engine (default 3)")
    parser.add_argument("--seconds", type=float, default=0.02, help="time of one turn (default 0.02)")
    parser.add_argument("--target", default="", help="compile for this target instead of this machine")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="folder with the libraries")
    parser.add_argument("--json", type=pathlib.Path, help="where the figures go (default: .cache/bench/operators[-TARGET].json)")
    parser.add_argument("--add", action="store_true", help="keep the figures of cases not measured now")
    parser.add_argument("--rest", action="store_true", help="only cases without figures for these threads; implies --add")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop behind the case in which this time ends")
    parser.add_argument("--show", action="store_true", help="measure nothing, show the figures that are there")
    parser.add_argument("--write", action="store_true", help="renew the record and the part of docs/performance.md for this target")
    parser.add_argument("--list", action="store_true", help="list the cases, and the operators of the standard without one")
    args = parser.parse_args(arguments)
    args.threads = [int(t) for t in args.threads.split(",")]
    args.add = args.add or args.rest
    tag = "".join(c if c.isalnum() else "_" for c in args.target)
    args.json = args.json or ROOT / f".cache/bench/operators{'-' + tag if tag else ''}.json"
    return args


def chosen(args):
    dtypes, sizes = args.dtypes.split(","), args.sizes.split(",")
    for case in operator_cases.all_cases(None if dtypes == ["all"] else dtypes, sizes):
        if (not args.operators or any(fnmatch.fnmatch(case.operator, p) for p in args.operators)) and fnmatch.fnmatch(case.name, args.cases):
            yield case


def measure(results, args):
    lib = library.Library(str(args.build))
    found = {key_of(entry): entry for entry in results["cases"]}
    cases = list(chosen(args))
    if args.rest:
        wanted = {str(t) for t in args.threads}
        cases = [c for c in cases if not wanted <= set(found.get(c.key, {}).get("threads", {}))]
    started = last = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(cases):
            entry = measure_case(case, lib, args, pathlib.Path(folder))
            if entry is None:
                found.pop(case.key, None)
                continue
            if key_of(entry) in found:
                entry["threads"] = {**found[key_of(entry)]["threads"], **entry["threads"]}
            found[key_of(entry)] = entry
            if time.monotonic() - last > 10:
                last = time.monotonic()
                say(f"  {i + 1} of {len(cases)}, {last - started:.0f} s, {' '.join(key_of(entry))}")
            if time.monotonic() - started > 60 * args.minutes:
                say(f"  stopped after {i + 1} of {len(cases)} cases; --rest goes on")
                break
    results["cases"] = [found[key] for key in sorted(found)]


def main(arguments=None):
    args = parse(arguments)
    if args.list:
        for case in chosen(args):
            print(case.operator, case.name, case.dtype, case.size)
        print("without a case: " + ", ".join(operator_cases.uncovered()))
        return 0
    import onnxruntime

    import run

    results = json.loads(args.json.read_text()) if (args.add or args.show) and args.json.exists() else None
    if args.show and results is None:
        say(f"./dev bench operators: {args.json} is not there; measure first")
        return 1
    if results is not None and (results.get("format"), results["machine"]) != (FORMAT, run.machine()):
        say(f"./dev bench operators: {args.json} holds another machine's figures; --json FILE starts a file of its own")
        return 1
    results = results or {"format": FORMAT, "machine": run.machine(), "target": args.target, "peer": onnxruntime.__version__, "cases": []}
    if not args.show:
        results["when"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        measure(results, args)
        args.json.parent.mkdir(parents=True, exist_ok=True)
        report.write(args.json, compact(results))
    print(markdown(results, 60))
    if args.write:
        record = RECORD if not args.target else RECORD.with_name(args.json.name)
        report.replace_part(ROOT / "docs/performance.md", record.stem, markdown(results, 25))
        report.write(record, compact(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
