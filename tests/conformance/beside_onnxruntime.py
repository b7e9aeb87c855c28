#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of onnxruntime's own domain (com.microsoft) and of ai.onnx.ml beside onnxruntime, over random sizes and attributes.

    tests/conformance/beside_onnxruntime.py                                every operator, three cases each
    tests/conformance/beside_onnxruntime.py --cases 20 --seed 7 Attention  one, more often
    tests/conformance/beside_onnxruntime.py --models FILE...               models as onnxruntime's optimiser writes them, every level

Cases are in cases_microsoft.py, cases_decoder.py, cases_search.py and cases_ml.py. A model given with --models has an .npz with its inputs (input_NAME) beside it.

What differs from onnxruntime and is as ONNX's reference implementation has it (where that has the operator) is counted, with the operators' names, and
is no failure.

Exit code: 0 all equal, 1 not, 77 the program, onnxruntime or a model is not there.
"""
import argparse
import collections
import os
import pathlib
import platform
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/fuzz/models"))
SKIPPED = 77
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    venv = ROOT / ".cache/venv/bin/python"
    if venv.exists() and pathlib.Path(sys.prefix) != venv.parents[1]:
        os.execv(venv, [str(venv), *sys.argv])
    print(f"skipped: {e}; ./dev setup installs the Python packages")
    sys.exit(SKIPPED)
import cases_decoder
import cases_microsoft
import cases_ml
import cases_search
from maps import described, plain, rows_of_maps
from runner import Runner, default_program

TABLE = cases_microsoft.TABLE | cases_decoder.TABLE | cases_ml.TABLE | cases_search.TABLE
LEVELS = {"basic": 1, "extended": 2, "layout": 3, "all": 99}


# On x86 without dot products of bytes onnxruntime adds two products of bytes in 16 bits, which hold them where weights have
# seven bits.
CPUINFO = pathlib.Path("/proc/cpuinfo")
SEVEN_BITS = platform.machine() == "x86_64" and CPUINFO.exists() and "vnni" not in CPUINFO.read_text(encoding="utf-8")


def fitting(array):
    return array // 2 if SEVEN_BITS and isinstance(array, np.ndarray) and array.dtype == np.int8 and array.ndim > 1 else array


def model_of(case):
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(case.inputs)]
    node = helper.make_node(case.op, names, [f"o{k}" if k in case.outputs else "" for k in range(max(case.outputs) + 1)], domain=case.domain, **case.attributes)
    given = [described(n, a) for k, (n, a) in enumerate(zip(names, case.inputs)) if n and k not in case.constants]
    constants = [numpy_helper.from_array(a, n) for k, (n, a) in enumerate(zip(names, case.inputs)) if n and k in case.constants]
    graph = helper.make_graph([node], "one", given, [helper.make_tensor_value_info(f"o{k}", case.types[k], None) if k in case.types else onnx.ValueInfoProto(name=f"o{k}") for k in case.outputs], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", case.version)])
    model.ir_version = 10
    return model, {n: a for k, (n, a) in enumerate(zip(names, case.inputs)) if n and k not in case.constants}


def session(model, level=0, written=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    if written:
        options.optimized_model_filepath = str(written)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def difference(ours, theirs, case):
    if theirs.dtype.kind in "OU" and ours.dtype == object and ours.shape == theirs.shape:
        wrong = ours != theirs.astype(object)
        return f"has {ours[wrong][0]!r}, not {theirs[wrong][0]!r}" if wrong.any() else None
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"is {ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    largest = np.abs(b[np.isfinite(b)]).max(initial=0)
    slack = case.tolerance * (1 if ours.dtype.kind in "iu" else largest)
    wrong = ~((np.abs(a - b) <= slack) | (a == b) | (np.isnan(a) & np.isnan(b)))
    return f"differs by {np.abs(a - b)[wrong].max():.3g} of {largest:.3g} in {wrong.sum()} of {wrong.size} elements" if wrong.any() else None


def first_difference(answer, theirs, case):
    for k, a, b in zip(case.outputs, answer, theirs):
        what = difference(a, np.asarray(b), case)
        if what:
            return f"output {k} {what}"
    return None


def as_reference(model, inputs, answer, case):
    """Whether the answer is that of ONNX's reference implementation."""
    try:
        return first_difference(answer, ReferenceEvaluator(model).run(None, inputs), case) is None
    except Exception:  # it does not have the operator, or not with these attributes; its errors have no common type
        return False


def outputs_of(model, inputs, case):
    made = session(model.SerializeToString())
    if not case.shared:
        return made.run(None, {n: plain(v) for n, v in inputs.items()})
    values, binding = {n: onnxruntime.OrtValue.ortvalue_from_numpy(a) for n, a in inputs.items()}, made.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for k in case.outputs:
        binding.bind_ortvalue_output(f"o{k}", values[f"i{case.shared[k]}"]) if k in case.shared else binding.bind_output(f"o{k}")
    made.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def run_case(runner, case):
    """(what differs from onnxruntime or None, whether the answer is the reference's)"""
    model, inputs = model_of(case)
    theirs = case.expected or [rows_of_maps(value) for value in outputs_of(model, inputs, case)]
    answer = runner.run(model, inputs)
    if answer["status"] != "ok":
        return f"{answer['status']}: {answer.get('message')}", False
    what = first_difference(answer["ours"], theirs, case)
    return what, what is not None and as_reference(model, inputs, answer["ours"], case)


def run_operators(runner, wanted, cases, seed):
    bad, counts, reference = 0, collections.Counter(), collections.Counter()
    for op, make in sorted(TABLE.items()):
        if wanted and op not in wanted:
            continue
        for i in range(cases):
            case = make(np.random.default_rng([seed, i, *op.encode()]))
            if case.expected is None:
                case.inputs = [fitting(a) for a in case.inputs]
            confirmed = False
            try:
                what, confirmed = run_case(runner, case)
            except Exception as e:  # onnxruntime's errors have no common type
                what = f"onnxruntime does not run it: {e}"
            counts[op] += 1
            reference[op] += confirmed
            if what and not confirmed:
                bad += 1
                print(f"FAIL {op} case {i} {[a if a is None or isinstance(a, dict) else (str(a.dtype), a.shape) for a in case.inputs]} {case.attributes}: {what[:400]}", flush=True)
    print(f"{sum(counts.values())} cases of {len(counts)} operators, {bad} differ")
    if named := {op: n for op, n in reference.items() if n}:
        print(f"{sum(named.values())} are as the reference implementation has it, not onnxruntime: {', '.join(f'{op} {n}' for op, n in named.items())}")
    return bad


def run_models(runner, paths, levels):
    bad = seen = 0
    for path in map(pathlib.Path, paths):
        data = path.with_suffix(".npz")
        if not path.exists() or not data.exists():
            print(f"skipped: {path} (or its .npz) is not there")
            continue
        stored = np.load(data)
        for name, level in levels.items():
            with tempfile.TemporaryDirectory(prefix="optimised_") as folder:
                written = pathlib.Path(folder) / "model.onnx"
                made = session(str(path), level, written)
                names = [i.name for i in made.get_inputs()]
                inputs = {n: stored[f"input_{n}"] for n in names}
                model = onnx.load(written)
                for value in model.graph.input:
                    if value.name in inputs:  # sizes that the file leaves free are those of the data
                        value.CopyFrom(helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, inputs[value.name].shape))
                theirs = made.run(None, inputs)
                answer = runner.run(model, inputs)
            own = collections.Counter(f"{n.domain.split('.')[-1]}.{n.op_type}" for n in model.graph.node if n.domain.startswith("com.microsoft"))
            what = f"{answer['status']}: {answer.get('message')}" if answer["status"] != "ok" else None
            for k, (a, b) in enumerate(zip(answer.get("ours", []), theirs)):
                b = np.asarray(b)
                # onnxruntime's levels differ by up to 1e-4 of the largest value among themselves where networks are deep.
                if what is None and (a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=5e-4 * max(1e-6, np.abs(b).max(initial=0)))):
                    what = f"output {k} differs by {np.abs(a - b).max() if a.shape == b.shape else b.shape}"
            seen += 1
            bad += what is not None
            print(f"{'FAIL' if what else 'ok  '} {path.stem} {name} {dict(own)}{': ' + what[:300] if what else ''}", flush=True)
    print(f"{seen} models written by onnxruntime {onnxruntime.__version__}, {bad} differ")
    return bad if seen else -1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("operators", nargs="*")
    p.add_argument("--cases", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--models", nargs="+", default=[])
    p.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS))
    p.add_argument("--timeout", type=float, default=120)
    p.add_argument("--program", type=pathlib.Path, default=default_program(ROOT))
    a = p.parse_args()
    if not a.program.exists():
        print(f"skipped: {a.program} is not built")
        return SKIPPED
    unknown = set(a.operators) - set(TABLE)
    if unknown:
        p.error(f"no cases for {', '.join(sorted(unknown))}")
    runner = Runner(a.program, a.timeout)
    bad = run_models(runner, a.models, {n: LEVELS[n] for n in a.levels}) if a.models else run_operators(runner, a.operators, a.cases, a.seed)
    runner.close()
    return SKIPPED if bad < 0 else 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
