#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the backend tests of the pinned onnx package through the compiled path and compares with what is expected.

    tests/conformance/run.py                        all 1,914 of them
    tests/conformance/run.py test_relu test_conv    those whose name contains one of the words
    tests/conformance/run.py --target c             the same as C99 by the system's C compiler, warnings being errors
    tests/conformance/run.py --target stackvm      the same as byte code, run by the runtime
    tests/conformance/run.py --target aarch64       the same for another processor (riscv64, riscv64v, arm, i686), whose runtime is
                                                    built with its toolchain file (docs/cross.md) and run by qemu-user
    tests/conformance/run.py --inputs free          the same with inputs of free sizes (constant: compiled in); --opt-level N
    tests/conformance/run.py --without-compiler     the same as programs on a machine without the compiler (docs/vm.md)
    tests/conformance/run.py --sample 20            every 20th of them
    tests/conformance/run.py --update               renews expected_failures.txt (refuses to add to it; --accept-new adds)
    tests/conformance/run.py --write                renews the table of docs/conformance.md

The cases lie in the package's own folders node, simple, pytorch-converted, pytorch-operator and light; each runs in a
process with limits of its own (tilewright verify). A case fails the run when it fails or is unsupported and is not
listed, or is listed and passes: the list may only shrink.

Exit code: 0 as expected, 1 not, 77 the package is not there (./dev models test fetches it), or the tools for the other
processor are not (./dev setup --cross).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
# What does not pass, by the kind of target.
EXPECTED_FAILURES = {"llvm": pathlib.Path(__file__).with_name("expected_failures.txt"),
                     "c": pathlib.Path(__file__).with_name("expected_failures_c.txt"),
                     "stackvm": pathlib.Path(__file__).with_name("expected_failures_stackvm.txt"),
                     "cross": pathlib.Path(__file__).with_name("expected_failures_cross.txt"),
                     "free": pathlib.Path(__file__).with_name("expected_failures_free.txt"),
                     "constant": pathlib.Path(__file__).with_name("expected_failures_constant.txt")}
DOCUMENT = ROOT / "docs/conformance.md"


class Processor:
    """Another processor: what is compiled for, the toolchain file, and the emulator."""

    def __init__(self, toolchain, triple, options="", emulator=None):
        self.toolchain, self.triple = toolchain, triple
        self.target = f"llvm -mtriple={triple}{options}"
        self.emulator = [f"qemu-{toolchain}"] if emulator is None else emulator
        self.compiler = f"{triple}-g++"


CROSS = {
    "aarch64": Processor("aarch64", "aarch64-linux-gnu"),
    "aarch64-dot": Processor("aarch64", "aarch64-linux-gnu", " -mattr=+dotprod"),
    "aarch64-i8mm": Processor("aarch64", "aarch64-linux-gnu", " -mattr=+dotprod,+i8mm"),
    "riscv64": Processor("riscv64", "riscv64-linux-gnu"),
    "riscv64v": Processor("riscv64", "riscv64-linux-gnu", " -mattr=+m,+a,+f,+d,+c,+v", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"]),
    "arm": Processor("arm", "arm-linux-gnueabihf"),
    "i686": Processor("i686", "i686-linux-gnu", "", []),  # a processor of 64 bits runs it; Debian 12's qemu-i386 hangs when a thread starts
}
GROUPS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
CHUNK = 24
SKIPPED = 77
START, END = "<!-- conformance:begin -->", "<!-- conformance:end -->"
HEADER = """\
# Backend tests of the pinned onnx package that do not pass yet. Lines go when their case passes; none is added.
# Written by tests/conformance/run.py --update.
"""
# Writes the inputs of the "light" models as the package's own runner makes them, beside its expected outputs.
PREPARE_LIGHT = """
import pathlib, shutil, sys
import numpy as np, onnx
data, out = map(pathlib.Path, sys.argv[1:])
for model in sorted(data.glob("light_*.onnx")):
    folder = out / model.stem.replace("light_", "test_")
    sets = folder / "test_data_set_0"
    if (folder / "model.onnx").exists():
        continue
    sets.mkdir(parents=True, exist_ok=True)
    graph = onnx.load(model).graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    for i, value in enumerate(inputs):
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        n = np.prod(shape)
        array = (np.arange(n).reshape(shape) / n).astype(np.float32)
        (sets / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())
    for i in range(len(graph.output)):
        shutil.copy(model.with_name(f"{model.stem}_output_{i}.pb"), sets / f"output_{i}.pb")
    shutil.copy(model, folder / "model.onnx")
"""


def find_data():
    for path in CACHE.glob("venv/lib/python3*/site-packages/onnx/backend/test/data"):
        return path
    return None


def find_cases(data):
    """Returns {group: [folder]}."""
    light = CACHE / "conformance/light"
    light.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(CACHE / "venv/bin/python"), "-c", PREPARE_LIGHT, str(data / "light"), str(light)], check=True)
    places = {group: data / group for group in GROUPS}
    places["light"] = light
    return {group: sorted(folder for folder in place.iterdir() if (folder / "model.onnx").exists())
            for group, place in places.items()}


def build_runtime(processor):
    """The command that runs libraries for the processor, as `tilewright run` does; None, with the reason printed, where tools are missing."""
    missing = [name for name in (processor.compiler, *processor.emulator[:1]) if shutil.which(name) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not here; ./dev setup --cross installs them")
        return None
    folder = ROOT / f"build-{processor.toolchain}"
    steps = [["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "--toolchain", str(ROOT / f"cmake/toolchains/{processor.toolchain}.cmake"),
              "-DTILEWRIGHT_COMPILER=OFF", "-DTILEWRIGHT_VM=ON", "-DTILEWRIGHT_TESTS=OFF"],
             ["cmake", "--build", str(folder), "--target", "tilewright", "tilewright_vm"]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"the runtime for {processor.triple} was not built: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [*processor.emulator, *(["-L", f"/usr/{processor.triple}"] if processor.emulator else []), str(folder / "tilewright")]


def run_inexact(tool, target, folders, seconds):
    """Results of the cases of inexact.py, by their own rules."""
    script, python = pathlib.Path(__file__).with_name("inexact.py"), str(CACHE / "venv/bin/python")
    results = {}
    for folder in folders:
        if folder.name.startswith("test_dft_inverse"):
            truth = CACHE / "conformance/truth" / folder.name
            truth.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([python, str(script), "truth", str(folder), str(truth)], check=True)
            results[folder] = run_chunk(tool, target, [truth], seconds)[truth]
        elif folder.name.startswith("test_bernoulli") and "--run-with" not in target:
            done = subprocess.run([python, str(script), "draws", str(tool), str(folder)], capture_output=True, text=True)
            what = done.stdout.strip() or (done.stderr.strip().splitlines() or [""])[-1]
            results[folder] = ("failed", what) if what else ("passed", "by statistics")
    return results


def run_chunk(tool, target, folders, seconds):
    """Returns {folder: (verdict, detail)}; a chunk whose process dies is run again one by one."""
    command = [str(tool), "verify", "--json", "--quiet", "--time-limit", str(seconds), *target,
               *map(str, folders)]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=(seconds + 5) * len(folders))
        cases = json.loads(result.stdout)["cases"]
        if len(cases) == len(folders):
            return {folder: (case["verdict"], case["detail"]) for folder, case in zip(folders, cases)}
        reason = f"{len(cases)} results for {len(folders)} cases"
    except (subprocess.TimeoutExpired, ValueError, KeyError) as failure:
        reason = f"tilewright verify gave no result ({type(failure).__name__})"
    if len(folders) == 1:
        return {folders[0]: ("failed", reason)}
    results = {}
    for folder in folders:
        results.update(run_chunk(tool, target, [folder], seconds))
    return results


def run_all(tool, target, cases, jobs, seconds):
    folders = [folder for group in cases.values() for folder in group]
    chunks = [folders[i:i + CHUNK] for i in range(0, len(folders), CHUNK)]
    results, done = {}, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(lambda chunk: run_chunk(tool, target, chunk, seconds), chunks):
            results.update(result)
            done += len(result)
            if sys.stderr.isatty():
                passed = sum(verdict == "passed" for verdict, _ in results.values())
                print(f"\r{done}/{len(folders)}, {passed} passed ", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return results


def read_expected(listed):
    if not listed.exists():
        return set()
    lines = listed.read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def key(folder, group):
    return f"{group}/{folder.name}"


def table(cases, results):
    """One row per group. Cases apart: those that pass with inputs such as a target shape compiled in as constants."""
    lines = ["| group | cases | passed | of them with shape inputs compiled in | as VM programs | wrong or failed | unsupported |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    total = collections.Counter()
    for group, folders in cases.items():
        count = collections.Counter(results[folder][0] for folder in folders)
        count["cases"] = len(folders)
        count["constants"] = sum(results[f][0] == "passed" and "compiled in" in results[f][1] for f in folders)
        count["programs"] = sum(results[f][0] == "passed" and results[f][1].startswith("as a VM program") for f in folders)
        total.update(count)
        lines.append(f"| {group} | {count['cases']} | {count['passed']} | {count['constants']} | {count['programs']} | {count['failed']} | "
                     f"{count['unsupported']} |")
    lines.append(f"| **all** | {total['cases']} | **{total['passed']}** | {total['constants']} | {total['programs']} | {total['failed']} | "
                 f"{total['unsupported']} |")
    return lines


def reasons(results):
    """What keeps cases from passing, most frequent first; names and numbers are left out, so that like joins like."""
    count = collections.Counter()
    for verdict, detail in results.values():
        if verdict != "passed":
            text = re.sub(r"'[^']*'", "'...'", detail)
            text = re.sub(r"no kernel for ([\w.]+)\(.*", r"no kernel for \1", text)  # whatever the shapes
            count[re.sub(r"(?<![a-z_])\d+", "N", text)[:110]] += 1
    return count.most_common()


def write_document(cases, results):
    block = "\n".join([START, "", *table(cases, results), "", END])
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else (
        "# ONNX conformance\n\nThe backend tests of the pinned onnx package, compiled and compared with the package's own "
        "tolerances.\n`./dev conformance` runs them; `tests/conformance/expected_failures.txt` lists what does not pass yet.\n\n"
        f"{START}\n{END}\n")
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(re.sub(re.escape(START) + ".*?" + re.escape(END), lambda _: block, text, flags=re.DOTALL),
                        encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Run the ONNX backend tests through the compiled path.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases whose name contains one of these")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    parser.add_argument("--target", default="llvm", help="what is compiled for: a target, or " + ", ".join(CROSS))
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--inputs", choices=("given", "free", "constant"), default="given", help="with free sizes, or compiled in")
    parser.add_argument("--without-compiler", action="store_true", help="as programs where no compiler is")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=int, help="limit of one case (30, in an emulator 180)")
    parser.add_argument("--reasons", action="store_true", help="count what keeps cases from passing")
    parser.add_argument("--update", action="store_true", help="take cases that pass now off the list")
    parser.add_argument("--accept-new", action="store_true", help="with --update: also add cases that fail")
    parser.add_argument("--write", action="store_true", help="renew docs/conformance.md")
    args = parser.parse_args()
    data = find_data()
    if data is None:
        print("skipped: the onnx package is not there; ./dev models test fetches it")
        return SKIPPED
    args.seconds = args.seconds or (180 if args.target in CROSS else 30)
    cases = find_cases(data)
    if args.words:
        cases = {group: [f for f in folders if any(word in f.name for word in args.words)] for group, folders in cases.items()}
        cases = {group: folders for group, folders in cases.items() if folders}
    if args.sample > 1:
        cases = {group: folders[::args.sample] for group, folders in cases.items()}
    target = ["--target", args.target, "--opt-level", str(args.opt_level), "--case-inputs", args.inputs]
    if args.without_compiler:
        target.append("--without-compiler")
    if args.target in CROSS:
        command = build_runtime(CROSS[args.target])
        if command is None:
            return SKIPPED
        target = ["--target", CROSS[args.target].target, "--opt-level", str(args.opt_level), "--case-inputs", args.inputs, "--run-with", " ".join(command)]
    named = "cross" if args.target in CROSS else args.target.split()[0]
    listed = EXPECTED_FAILURES[args.inputs if named == "llvm" and args.inputs != "given" else named]
    results = run_all(args.tool, target, cases, args.jobs, args.seconds)
    if args.target.split()[0] != "c":  # which has no libraries that `run` could load
        results.update(run_inexact(args.tool, target, [f for folders in cases.values() for f in folders], args.seconds))
    print("\n".join(table(cases, results)))
    if args.reasons:
        print("\n" + "\n".join(f"{count:5}  {reason}" for reason, count in reasons(results)))
    expected = read_expected(listed)
    wrong = {key(f, group): results[f] for group, folders in cases.items() for f in folders if results[f][0] != "passed"}
    right = {key(f, group) for group, folders in cases.items() for f in folders} - wrong.keys()
    new, late = sorted(wrong.keys() - expected), sorted(right & expected)
    print()
    if args.words:
        for name in sorted(wrong):
            print(f"{wrong[name][0]:11} {name}: {wrong[name][1][:200]}")
    if args.update:
        remaining = (expected - right) | (set(new) if args.accept_new else set())
        listed.write_text(HEADER + "".join(f"{name}\n" for name in sorted(remaining)), encoding="utf-8")
        print(f"{listed.relative_to(ROOT)}: {len(remaining)} lines, {len(late)} gone")
        late = []
        new = [name for name in new if name not in remaining]
    for name in new[:50]:
        print(f"NEW FAILURE {name}: {wrong[name][0]}: {wrong[name][1][:200]}")
    if late:
        print(f"{len(late)} listed cases pass now ({', '.join(late[:5])} ...): run with --update to take them off the list")
    if args.write and not args.words and not args.without_compiler and args.sample == 1 and args.target == "llvm" and args.opt_level == 3 and args.inputs == "given":
        write_document(cases, results)
    print(f"{len(right)} passed, {len(wrong)} not ({len(new)} of them new)")
    return 1 if new or late else 0


if __name__ == "__main__":
    sys.exit(main())
