# SPDX-License-Identifier: Apache-2.0
"""Every ONNX operator in every dtype that its schema allows: the standard's node tests, rewritten for each.

A node test of one operator is a model with data. Its tensors of a type variable are given each dtype the schema allows
for it, and `tilewright verify` compares the compiled model with the reference interpreter. Prints what is refused and
what differs; exits with 1 when something not in --expected (lines "operator dtype") is.

usage: dtypes.py [--tilewright PATH] [--cases N] [--only OPERATOR,...] [--expected FILE] [--jobs N]
"""
import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

DTYPES = {
    "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE, "int8": TensorProto.INT8, "int16": TensorProto.INT16, "int32": TensorProto.INT32,
    "int64": TensorProto.INT64, "uint8": TensorProto.UINT8, "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL,
}


def as_dtype(array, elem):
    return np.abs(array).astype(helper.tensor_dtype_to_np_dtype(elem))


def type_variables(node, schema):
    """The type variable of each input and output of a node, by the tensor's name."""
    out = {}
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for i, name in enumerate(names):
            formal = formals[min(i, len(formals) - 1)]
            if name:
                out[name] = formal.type_str
    return out


def rewritten(model, data, variable, elem, variables):
    """The model with the tensors of a type variable in another dtype; the others' inputs become constants."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    inputs = list(graph.input)
    del graph.input[:]
    for info in inputs:
        if not info.type.HasField("tensor_type"):
            return None
        # Random divisors would have zeros among them.
        divisor = graph.node[0].op_type in ("Div", "Mod") and info.name == graph.node[0].input[1]
        if variables.get(info.name) == variable and not divisor:
            info.type.tensor_type.elem_type = elem
            graph.input.append(info)
        elif divisor:
            graph.initializer.append(numpy_helper.from_array(as_dtype(data[info.name], elem), info.name))
        else:
            graph.initializer.append(numpy_helper.from_array(data[info.name], info.name))
    for info in graph.output:
        if not info.type.HasField("tensor_type"):
            return None
        if variables.get(info.name) == variable:
            info.type.tensor_type.elem_type = elem
    return made


def cases(per_operator, only):
    found = collections.defaultdict(list)
    for test in load_model_tests(kind="node"):
        model = onnx.load(os.path.join(test.model_dir, "model.onnx"))
        if len(model.graph.node) != 1 or model.graph.node[0].domain not in ("", "ai.onnx"):
            continue
        node = model.graph.node[0]
        if only and node.op_type not in only:
            continue
        version = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if len(found[node.op_type]) >= per_operator:
            continue
        data = {}
        try:
            for i, info in enumerate(model.graph.input):
                path = os.path.join(test.model_dir, "test_data_set_0", f"input_{i}.pb")
                tensor = onnx.TensorProto()
                with open(path, "rb") as file:
                    tensor.ParseFromString(file.read())
                data[info.name] = numpy_helper.to_array(tensor)
            schema = defs.get_schema(node.op_type, version)
        except Exception:  # sequences, optionals
            continue
        found[node.op_type].append((test.name, model, data, schema))
    for operator, tests in sorted(found.items()):
        for name, model, data, schema in tests:
            variables = type_variables(model.graph.node[0], schema)
            floats = [variables.get(i.name) for i in model.graph.input]
            variable = floats[0] if floats else None
            allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(variable, [])
            for dtype, elem in DTYPES.items():
                if f"tensor({dtype})" in allowed:
                    yield operator, name, dtype, rewritten(model, data, variable, elem, variables)


def verdict(tilewright, model, folder):
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    command = [tilewright, "verify", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    text = (done.stderr or done.stdout).strip()
    if done.returncode == 0:
        return "ok", ""
    return ("differs" if done.returncode == 3 else "refused" if done.returncode in (2, 4) else "crash"), text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default="build/tilewright")
    parser.add_argument("--cases", type=int, default=1, help="node tests of each operator")
    parser.add_argument("--only", default="")
    parser.add_argument("--expected", help="operators and dtypes that may be refused")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    only = set(filter(None, args.only.split(",")))
    expected = set()
    if args.expected:
        with open(args.expected) as file:
            expected = {tuple(line.split()[:2]) for line in file if line.strip() and not line.startswith("#")}
    counts, bad, seen = collections.Counter(), 0, set()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        def run(case):
            operator, name, dtype, model = case
            if model is None:
                return operator, name, dtype, "skipped", "its operands are no tensors"
            with tempfile.TemporaryDirectory(dir=folder) as own:
                return (operator, name, dtype) + verdict(args.tilewright, model, own)
        for operator, name, dtype, word, text in pool.map(run, cases(args.cases, only)):
            counts[word] += 1
            if word in ("ok", "skipped"):
                continue
            if (operator, dtype) in expected:
                seen.add((operator, dtype))
                continue
            bad += 1
            print(f"{word} {operator} {dtype} ({name}): {' | '.join(text.splitlines()[:3])[:300]}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
