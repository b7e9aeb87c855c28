#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's models: eager, torch.compile's default backend and torch.compile(backend="tilewright"), in one process each.

    ./dev bench --torch                             the models of the tests, 1 and 2 threads
    ./dev bench --torch transformers/bert classification/resnet18 --threads 1
    ./dev bench --torch --check                     every model of bench/torch_models.py beside PyTorch: works, strict, unsteady, differs or refused
    ./dev bench --torch --check --door pt2          the same from a file; other doors: module (compile(module, inputs)), trace and script (torch.jit)

How: a process for each model and number of threads, with empty caches of compiled kernels. Every engine compiles and answers once (the first
call's time has both); then they take turns for several rounds. A time is the median over the rounds of the round's fastest call. A ratio is
the default backend's time by ours: above 1 Tilewright is faster. Outputs are compared with eager's (rtol 1e-3, atol 1e-4 of the largest)."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ("transformers/bert", "transformers/gpt2", "transformers/t5", "transformers/vit", "transformers/llama", "transformers/sam_decoder", "plain/lstm_tagger",
          "plain/transformer", "classification/squeezenet1_1", "classification/mobilenet_v3_small", "classification/shufflenet_v2_x0_5", "classification/resnet18")
ENGINES = ("eager", "inductor", "tilewright")
DOORS = ("export", "module", "pt2", "trace", "script")


def outputs_of(value):
    import torch
    if isinstance(value, dict):
        value = list(value.values())
    return [value] if isinstance(value, torch.Tensor) else [v for v in value if isinstance(v, torch.Tensor)]


def measure(name, threads, rounds, seconds):
    """One model's figures, in this process."""
    import torch
    import torch_models
    from tilewright import torch_backend
    torch._dynamo.register_backend(torch_backend.backend, name="tilewright") if "tilewright" not in torch._dynamo.list_backends() else None
    torch.set_num_threads(threads)
    model, inputs = torch_models.MODELS[name]()
    result = {"model": name, "threads": threads}
    with torch.no_grad():
        want = outputs_of(model(*inputs))
        functions = {}
        for engine in ENGINES:
            torch._dynamo.reset()
            function = model if engine == "eager" else torch.compile(model, backend=engine)
            begin = time.perf_counter()
            try:
                got = outputs_of(function(*inputs))
            except Exception as error:
                result[engine] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
                continue
            result[engine] = {"first_s": time.perf_counter() - begin, "equal": all(torch_models.close(g, w) for g, w in zip(got, want))}
            functions[engine] = function
            # Each engine keeps what it compiled: resetting above forgets only the tracer's tables.
            function(*inputs)
        best = {engine: [] for engine in functions}
        for _ in range(rounds):
            for engine, function in functions.items():
                torch._dynamo.config.suppress_errors = False
                least, end = math.inf, time.perf_counter() + seconds
                while time.perf_counter() < end:
                    begin = time.perf_counter()
                    function(*inputs)
                    least = min(least, time.perf_counter() - begin)
                best[engine].append(least)
        for engine, times in best.items():
            result[engine]["ms"] = statistics.median(times) * 1e3
    return result


def imported(model, inputs, door, folder):
    """(what tilewright.compile is given, the example inputs beside it or None) for one of DOORS."""
    import torch
    if door == "trace":
        return torch.jit.trace(model, inputs, check_trace=False, strict=False), inputs
    if door == "script":
        return torch.jit.script(model), inputs
    program = torch.export.export(model, inputs, strict=False)
    if door == "export":
        return program, None
    path = os.path.join(folder, "model.pt2")
    torch.export.save(program, path)
    return path, None


def check(name, door):
    """(works, strict: without Winograd convolutions, unsteady, differs, refused or not exported; why)"""
    import numpy as np
    import tilewright
    import torch
    import torch_models
    torch.set_num_threads(2)
    model, inputs = torch_models.small(name)
    with torch.no_grad(), tempfile.TemporaryDirectory(prefix="tilewright-check-") as folder:
        want = outputs_of(model(*inputs))
        try:
            module, examples = (model, inputs) if door == "module" else imported(model, inputs, door, folder)
        except Exception as error:
            return "not exported", f"{type(error).__name__}: {error}".splitlines()[0]
        begin = time.perf_counter()
        try:
            compiled = tilewright.compile(module, examples)
        except Exception as error:
            return "refused", " ".join(str(error).split())[:600]
        took = time.perf_counter() - begin
        got = compiled(*[i for i in inputs if isinstance(i, torch.Tensor)])
    got = [got] if isinstance(got, np.ndarray) else list(got)
    if len(got) != len(want):
        return "differs", f"{len(got)} results, not {len(want)}"
    moved = None
    if name.startswith("detection/"):
        moved = torch_models.close_found(got, want)
        if moved is None:
            strict = tilewright.compile(module, examples, math="strict")(inputs[0])
            if (exact := torch_models.close_found(list(strict), want)) is not None:
                return "strict", f"works with math=\"strict\", {exact} of nearly the same score in another order"
            if why := unsteady(model, inputs[0], strict, want):
                return "unsteady", why
    for i, (g, w) in enumerate(zip(got, want)):
        if moved is None and not torch_models.close(g, w):
            far = np.abs(g.astype("float64") - w.numpy()).max() if g.shape == tuple(w.shape) else f"{g.shape} and {tuple(w.shape)}"
            return "differs", f"result {i}: {far}, the largest is {float(w.abs().max()) if w.numel() else 0:.3g}"
    shapes = ", ".join("x".join(map(str, w.shape)) or "a number" for w in want)
    return "works", f"{took:.1f} s, {shapes}{f', {moved} of nearly the same score in another order' if moved else ''}"


def unsteady(model, picture, got, want):
    """What to say of a detector that differs, if PyTorch's own results move as much once each value of the picture is one unit in its last place off; else
    nothing. `got` is of math="strict". Only some of a hundred boxes survive, so scores that are nearly the same exchange them."""
    import torch
    import torch_models
    with torch.no_grad():
        tries = [outputs_of(model(torch_models.moved_by_one_unit(picture, seed))) for seed in range(3)]
    own = [torch_models.common_finds(t, want) for t in tries]
    ours = torch_models.common_finds(got, want)
    if all(torch_models.close_found(t, want) is not None for t in tries) or ours + 1 < min(own):
        return None
    return f"{ours} of PyTorch's {len(want[2])} finds; of a picture one unit in the last place off PyTorch itself has {', '.join(map(str, own))} of them"


def child(arguments, timeout):
    """This script in a process of its own, with empty caches; its last line."""
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TILEWRIGHT_CACHE_DIR": f"{folder}/kernels"}
        path = os.pathsep.join([str(ROOT / "build/python"), str(ROOT / "bench"), os.environ.get("PYTHONPATH", "")])
        try:
            done = subprocess.run([sys.executable, "-W", "ignore", __file__, *arguments], env={**os.environ, **caches, "PYTHONPATH": path}, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return None, f"took more than {timeout} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]), "") if lines else (None, (done.stderr.strip().splitlines() or ["no output"])[-1][:300])


def cell(entry, key, form):
    return form.format(entry[key]) if key in entry else "-"


def report(results):
    print("| model | threads | eager ms | default ms | Tilewright ms | default / Tilewright | first call, default s | first call, Tilewright s |\n|---|---|---|---|---|---|---|---|")
    ratios = {}
    for r in results:
        ours, default, eager = r["tilewright"], r["inductor"], r["eager"]
        ratio = default["ms"] / ours["ms"] if "ms" in ours and "ms" in default else None
        if ratio and ours["equal"]:
            ratios.setdefault(r["threads"], []).append(ratio)
        print(f"| {r['model']} | {r['threads']} | {cell(eager, 'ms', '{:.3g}')} | {cell(default, 'ms', '{:.3g}')} | {cell(ours, 'ms', '{:.3g}')}{'' if ours.get('equal') else ' (differs)'} | "
              f"{f'{ratio:.2f}' if ratio else '-'} | {cell(default, 'first_s', '{:.1f}')} | {cell(ours, 'first_s', '{:.1f}')} |", flush=True)
    for threads, values in sorted(ratios.items()):
        print(f"geometric mean at {threads} thread{'s' if threads > 1 else ''}: {math.exp(sum(map(math.log, values)) / len(values)):.2f} over {len(values)} models")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--door", choices=DOORS, default="export")
    parser.add_argument("--json", help="where the figures go")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        result = dict(zip(("verdict", "why"), check(options.one, options.door))) if options.check else measure(options.one, int(options.threads), options.rounds, options.seconds)
        print(json.dumps(result))
        return
    sys.path.insert(0, str(ROOT / "bench"))
    import torch_models
    names = options.models or (list(torch_models.MODELS) if options.check else [m for m in MODELS if m in torch_models.MODELS])
    if unknown := [n for n in names if n not in torch_models.MODELS]:
        sys.exit(f"bench --torch: there is no model {', '.join(unknown)}; there are {', '.join(torch_models.MODELS)}")
    results = []
    if options.check:
        for name in names:
            made, failure = child(["--check", "--door", options.door, "--one", name], 900)
            results.append({"model": name, "door": options.door, **(made or {"verdict": "failed", "why": failure})})
            print(f"{name}: {results[-1]['verdict']} ({results[-1]['why']})", flush=True)
    else:
        for name in names:
            for threads in map(int, options.threads.split(",")):
                made, failure = child(["--one", name, "--threads", str(threads), "--rounds", str(options.rounds), "--seconds", str(options.seconds)], 900)
                results.append(made or {"model": name, "threads": threads, **{e: {"failed": failure} for e in ENGINES}})
                print(f"{name}, {threads}: done" if made else f"{name}, {threads}: {failure}", file=sys.stderr, flush=True)
        report(results)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
