#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole small modules with PyTorch through each door: torch.jit.script, torch.jit.trace, torch.export, and torch.export with free sizes.

    tests/torch/modules.py [--only PATTERN] [--door script|trace|export|free]

Free sizes: the program is exported with dynamic axes, compiled once, and run with the sizes it was exported with and with others. Exit 77 where PyTorch
is missing, 1 where something differs.
"""
import argparse
import fnmatch
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
try:
    import numpy as np
    import torch
    from torch.utils._pytree import tree_leaves
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
sys.path.insert(0, str(ROOT / "build/python"))
import tilewright
import applied_cases  # adds to CASES
import newcomer_cases  # likewise
import numeric_cases  # likewise
import recent_cases  # likewise
from module_cases import CASES

DOORS = ("script", "trace", "export", "free")


def dynamic_shapes(case):
    """A free axis of one number of elements is one dimension: axes of the same size are the same."""
    free = [{a: torch.export.Dim.AUTO for i, a in case.free if i == k} for k in range(len(case.inputs))]
    return tuple(free)


def made_by(case, door):
    """What tilewright.compile is given."""
    if door == "script":
        return torch.jit.script(case.module)
    if door == "trace":
        return torch.jit.trace(case.module, case.inputs, check_trace=False)
    return torch.export.export(case.module, case.inputs, dynamic_shapes=dynamic_shapes(case) if door == "free" else None)


def compare(compiled, case, inputs):
    want = [t for t in tree_leaves(case.module(*[i.clone() for i in inputs])) if isinstance(t, torch.Tensor)]
    got = compiled(*[i.clone() for i in inputs])
    got = [got] if not isinstance(got, (list, tuple)) else list(got)
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for k, (g, w) in enumerate(zip(got, want)):
        g, w = np.asarray(g), w.detach().numpy()
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"result {k} is {g.dtype}{list(g.shape)}, not {w.dtype}{list(w.shape)}"
        if w.dtype.kind in "iub":
            if not np.array_equal(g, w):
                return f"result {k}: {(g != w).sum()} of {w.size} elements differ"
        elif not np.allclose(g, w, rtol=1e-4, atol=1e-5 * np.abs(w[np.isfinite(w)]).max(initial=0), equal_nan=True):
            return f"result {k} differs by {np.nanmax(np.abs(g - w)):.3g} of {np.abs(w).max():.3g}"
    return None


def check(case, door):
    """What is wrong, or None."""
    try:
        made = made_by(case, door)
    except Exception as error:  # PyTorch's errors have no common type
        return f"PyTorch does not make it: {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
    try:
        compiled = tilewright.compile(made, case.inputs) if door in ("script", "trace") else tilewright.compile(made)
        wrong = compare(compiled, case, case.inputs)
        if wrong is None and door == "free":
            wrong = compare(compiled, case, case.other)
            wrong = wrong and f"with other sizes: {wrong}"
        return wrong
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*")
    parser.add_argument("--door", choices=DOORS, action="append")
    options = parser.parse_args()
    ran, failed = 0, 0
    for case in CASES:
        if not fnmatch.fnmatch(case.name, options.only):
            continue
        for door in options.door or DOORS:
            if door not in (case.doors + (("free",) if case.free else ())):
                continue
            with torch.no_grad():
                wrong = check(case, door)
            ran += 1
            failed += wrong is not None
            if wrong:
                print(f"{case.name}, {door}: {wrong}", flush=True)
    print(f"{ran - failed} of {ran} modules and doors equal PyTorch {torch.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
