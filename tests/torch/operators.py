#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares compiled ATen operators with PyTorch: small modules are exported, compiled, run and compared.

    tests/torch/operators.py --program build/tilewright [--only PATTERN] [--decompose] [--bundle N]

Modules go through `torch.export.export` (with --decompose: `run_decompositions()` too) and `torch.export.save`; N of them
share a file, and what fails is tried alone. Exit 77 where PyTorch is missing.
"""
import argparse
import fnmatch
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from torch.utils._pytree import tree_leaves
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 8):
    print(f"skipped: PyTorch {torch.__version__} writes pickled weights; 2.8 or newer is needed")
    sys.exit(77)

from operator_cases import cases


class Bundle(torch.nn.Module):
    """Every case's results, one after another; each takes its own inputs."""

    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen
        self.modules_ = torch.nn.ModuleList(c.function for c in chosen if isinstance(c.function, torch.nn.Module))

    def forward(self, *inputs):
        results, at = [], 0
        for case in self.chosen:
            made = case.function(*inputs[at:at + len(case.inputs)])
            at += len(case.inputs)
            results.append(tree_leaves(made))
        return results


def array(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype in (torch.bfloat16,) else tensor).contiguous().numpy()


def difference(ours, theirs):
    """What is wrong, or None."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, PyTorch's is {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, PyTorch's is {theirs.dtype}"
    if theirs.dtype.kind in "iub":
        wrong = int((ours != theirs).sum())
        return f"{wrong} of {theirs.size} elements differ" if wrong else None
    tolerance = {2: 4e-3, 4: 2e-5, 8: 1e-10}[theirs.dtype.itemsize]
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "NaN elsewhere"
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite & ~np.isnan(b)], b[~finite & ~np.isnan(b)]):
        return "infinity elsewhere"
    if not finite.any():
        return None
    error = np.abs(a - b)[finite]
    budget = tolerance * np.abs(b)[finite] + tolerance * np.abs(b[finite]).max() + 1e-30
    worst = float((error / budget).max())
    return f"off by {error.max():.3g} at magnitude {np.abs(b[finite]).max():.3g}" if worst > 1 else None


def run(options, chosen, folder):
    """(case name, what is wrong or None) for each, or one error for all."""
    inputs = [x for case in chosen for x in case.inputs]
    # PyTorch computes on copies: some cases change their inputs.
    with torch.no_grad():
        expected = Bundle(chosen)(*[x.clone() for x in inputs])
        program = torch.export.export(Bundle(chosen), tuple(x.clone() for x in inputs), strict=False)
        if options.decompose:
            program = program.run_decompositions()
    # The archive stores sample inputs that nobody needs.
    torch.export.save(program, folder / "m.pt2")
    names = [s.arg.name for s in program.graph_signature.input_specs
             if s.kind == torch.export.graph_signature.InputKind.USER_INPUT]
    np.savez(folder / "in.npz", **{n: array(x) for n, x in zip(names, inputs)})
    for command in ([options.program, "compile", folder / "m.pt2", "-o", folder / "m.so", "--opt-level", str(options.opt_level)],
                    [options.program, "run", folder / "m.so", "--input", f"@{folder}/in.npz", "--output", folder / "out.npz",
                     "--threads", "1"]):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            return f"{command[1]}: {done.stderr.strip()[-600:]}"
    with np.load(folder / "out.npz") as made:
        ours = [made[k] for k in made.files]
    count = sum(len(r) for r in expected)
    if len(ours) < count:
        return f"{len(ours)} results where PyTorch has {count}"
    out, at = [], 0
    for case, results in zip(chosen, expected):
        wrong = None
        for result in results:
            wrong = wrong or difference(ours[at], array(result))
            at += 1
        out.append((case.name, wrong))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/tilewright", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--decompose", action="store_true")
    parser.add_argument("--bundle", type=int, default=24)
    parser.add_argument("--opt-level", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(1)
    chosen = [c for c in cases() if fnmatch.fnmatch(c.name, options.only)]
    failed, ran = [], 0
    waiting = [chosen[i:i + options.bundle] for i in range(0, len(chosen), options.bundle)]
    with tempfile.TemporaryDirectory() as folder:
        while waiting:
            bundle = waiting.pop(0)
            try:
                result = run(options, bundle, pathlib.Path(folder))
            except Exception as error:  # what PyTorch cannot export
                result = f"export: {type(error).__name__}: {str(error).splitlines()[0][:300]}"
            if isinstance(result, str):
                if len(bundle) > 1:
                    half = len(bundle) // 2
                    waiting[:0] = [bundle[:half], bundle[half:]]
                    continue
                result = [(bundle[0].name, result)]
            for name, wrong in result:
                ran += 1
                if wrong:
                    failed.append(name)
                    print(f"{name}: {wrong}", flush=True)
    print(f"{ran - len(failed)} of {ran} operator cases equal PyTorch {torch.__version__}"
          f"{' after run_decompositions()' if options.decompose else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
