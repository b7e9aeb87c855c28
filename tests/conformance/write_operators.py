#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what `tilewright ops --onnx` says of each operator beyond its name: the dtypes it is tried with, and where.

    tests/conformance/write_operators.py [--check [--tool PATH]]

Dtypes are those of the specification's first type variable but for the ones that pairs_expected.txt names (tests/conformance/pairs.py tries them); for
operators of other domains those of their cases beside onnxruntime. "suite N": so many node tests of the pinned onnx package have the operator;
"onnxruntime": tests/conformance/beside_onnxruntime.py has cases of it; "generated": pairs.py alone has. --check: exit 1 where the file is not what it
would be, where the tool lacks an operator of ONNX, or has one that is tested nowhere."""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILE = ROOT / "src/driver/cli/onnx_operators.inc"
SKIPPED = 77
try:
    import numpy as np
    import onnx
    from onnx.backend.test.loader import load_model_tests
except ImportError as e:
    venv = ROOT / ".cache/venv/bin/python"
    if venv.exists() and pathlib.Path(sys.prefix) != venv.parents[1]:
        os.execv(venv, [str(venv), *sys.argv])
    print(f"skipped: {e}; ./dev setup installs the Python packages")
    sys.exit(SKIPPED)

NAMES = {"float": "float32", "double": "float64"}
SPEC_NAMES = {v: k for k, v in NAMES.items()}
KNOWN = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "string")
UNSUPPORTED = "expected_failures.txt"
# What random models (tests/fuzz/models) have beyond the specification and the cases beside onnxruntime.
GENERATED = {"com.microsoft": ("BiasSoftmax", "NhwcFusedConv", "QLinearReduceMean"),
             "com.microsoft.nchwc": ("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput", "ReorderOutput", "Upsample")}


def module(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def nodes_of(graph):
    for n in graph.node:
        yield n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(a.g)


def suite():
    """Cases of each operator, but for those that do not pass."""
    failing = {line.split("#")[0].strip().removeprefix("node/") for line in (HERE / UNSUPPORTED).read_text().splitlines()}
    counts = collections.Counter()
    for case in load_model_tests(kind="node"):
        if case.name not in failing:
            model = onnx.load(pathlib.Path(case.model_dir) / "model.onnx", load_external_data=False)
            counts.update({(n.domain if n.domain != "ai.onnx" else "", n.op_type) for n in nodes_of(model.graph)})
    return counts


def allowed(schema):
    """Dtypes of the first input (or output) by the specification."""
    formals = list(schema.inputs) or list(schema.outputs)
    if not formals:
        return []
    types = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formals[0].type_str), [formals[0].type_str])
    inner = {t[len("tensor("):-1] for t in types if t.startswith("tensor(")}
    found = {NAMES.get(t, t) for t in inner}
    return [t for t in KNOWN if t in found]


def table():
    sys.path.insert(0, str(HERE))
    pairs = module("pairs")
    expected, counts, rows = pairs.expected_pairs(), suite(), {}
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        if key not in newest or newest[key].since_version < schema.since_version:
            newest[key] = schema
    for key, schema in newest.items():
        formals = [*schema.inputs, *schema.outputs]
        tried = lambda t: not any(pairs.is_expected(pairs.Pair(*key, formals[0].type_str, f"tensor({SPEC_NAMES.get(t, t)})"), kind, expected) for kind in ("refused", "no case"))
        generated = [] if schema.deprecated or key[1] not in pairs.TABLE else ["generated"]
        if counts[key] or generated:
            rows[key] = ([t for t in allowed(schema) if tried(t)] if formals else [], [f"suite {counts[key]}"] if counts[key] else generated)
    rows |= {(domain, op): (["int8", "uint8"] if op.startswith("QLinear") else ["float32"], ["generated"]) for domain, names in GENERATED.items() for op in names}
    for name in ("cases_microsoft", "cases_decoder", "cases_search", "cases_ml"):
        for op, make in module(name).TABLE.items():
            cases = [make(np.random.default_rng(seed)) for seed in range(12)]
            seen = {"map" if isinstance(c.inputs[0], dict) else "string" if c.inputs[0].dtype == object else str(c.inputs[0].dtype) for c in cases if c.inputs and c.inputs[0] is not None}
            key = (cases[0].domain, cases[0].op)
            dtypes, where = rows.get(key, ([], []))
            rows[key] = (dtypes or [t for t in KNOWN if t in seen], [w for w in where if w not in ("onnxruntime", "generated")] + ["onnxruntime"])
    return rows


def text(rows):
    lines = ["// SPDX-License-Identifier: Apache-2.0", "// Written by tests/conformance/write_operators.py: domain, operator, dtypes, where it is tested."]
    for (domain, op), (dtypes, where) in sorted(rows.items()):
        lines.append(f'{{"{domain}", "{op}", "{" ".join(dtypes)}", "{", ".join(where)}"}},')
    return "\n".join(lines) + "\n"


def wrong_with(tool):
    """What the tool's own list of operators lacks, or has and no test knows."""
    listed = json.loads(subprocess.run([tool, "ops", "--onnx", "--json"], capture_output=True, text=True, check=True).stdout)
    names = {(o["domain"], o["op"]) for o in listed}
    missing = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()} - names
    return [f"{d or 'onnx'} {op} cannot be imported" for d, op in sorted(missing)] + [f"{o['domain'] or 'onnx'} {o['op']} is tested nowhere" for o in listed if not o["tested"]]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    p.add_argument("--tool", help="a built tilewright")
    a = p.parse_args()
    made = text(table())
    if not a.check:
        FILE.write_text(made, encoding="utf-8")
        return 0
    if not FILE.exists() or FILE.read_text(encoding="utf-8") != made:
        print(f"{FILE.relative_to(ROOT)} is not what the tests are: run tests/conformance/write_operators.py")
        return 1
    wrong = wrong_with(a.tool) if a.tool else []
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
