#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches for models that the compiler stops on, refuses or gets wrong.

    ./dev fuzz models [seconds]                              what CI runs for 60 seconds
    .cache/venv/bin/python tests/fuzz/models/search.py --seed 7 --seconds 3600 --keep /tmp/found
    .cache/venv/bin/python tests/fuzz/models/search.py --replay tests/data/fuzz_models

Random models (generate.py, operators.py) are compiled and run, and compared with the reference interpreter, which
computes in double, and with onnxruntime without optimisations where it is installed. Where a result differs, the
reference runs again with every floating value on the way off by some units in its last place: what moves as far (a Ceil
or an ArgMax at a tie, a difference of nearly equal numbers) is no difference. A failing model is cut down to the few
nodes that fail and kept with its inputs.

Exit code: 0 nothing found, 1 something, 77 the program or the Python packages are not there.
"""
import argparse
import collections
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
SKIPPED = 77
try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as e:
    venv = HERE.parents[2] / ".cache/venv/bin/python"
    if venv.exists() and pathlib.Path(sys.prefix) != venv.parents[1]:
        os.execv(venv, [str(venv), *sys.argv])
    print(f"skipped: {e}; ./dev setup installs the Python packages")
    sys.exit(SKIPPED)
import generate
from maps import described, joined, parts
from runner import Runner, default_program, judge

READABLE = {generate.ELEMENT[d] for d in [*generate.ALL, "string"]}
KNOWN = HERE / "expected_failures.txt"


def cut(model, inputs, kept, values):
    """The model of some of its nodes; what the others made becomes inputs with the given values."""
    graph = model.graph
    made = {o for n in kept for o in n.output if o}
    needed = [i for n in kept for i in generate.reads(n) if i not in made]
    constants = {t.name: t for t in graph.initializer}
    constants |= {i: numpy_helper.from_array(values[i], i) for i in needed if i not in constants and not isinstance(values[i], dict) and values[i].dtype.kind in "OUT"}  # text
    used = {i for n in kept for i in generate.reads(n)}
    types = {v.name: v for v in list(graph.output) + list(graph.value_info)}
    outputs = [o for n in kept for o in n.output if o and o not in used] or [kept[-1].output[0]]
    inside = {o for n in graph.node for o in n.output if n.domain == "com.microsoft.nchwc" and n.op_type != "ReorderOutput"}
    if inside & {*outputs, *needed}:
        raise ValueError  # blocks of channels lie in another order in each engine
    given = {i: values[i] for i in dict.fromkeys(needed) if i not in constants}
    out = helper.make_graph(
        kept, "cut", [described(n, a) for n, a in given.items()],
        [types[o] if o in types else onnx.ValueInfoProto(name=o) for o in outputs], [constants[i] for i in dict.fromkeys(needed) if i in constants])
    small = helper.make_model(out, opset_imports=model.opset_import, producer_name="random")
    small.ir_version = model.ir_version
    small = onnx.shape_inference.infer_shapes(small)
    if any(o.type.WhichOneof("value") not in (None, "tensor_type") and not o.type.sequence_type.elem_type.HasField("map_type") for o in small.graph.output):
        raise ValueError  # a sequence of tensors is no output that can be compared
    return small, given


def all_values(model, inputs):
    """Every value of a run, from onnxruntime or the ONNX reference; None when neither runs it."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    whole = onnx.ModelProto.FromString(inferred.SerializeToString())
    del whole.graph.output[:]
    whole.graph.output.extend(list(inferred.graph.output))
    named = {o.name for o in whole.graph.output}
    whole.graph.output.extend(v for v in inferred.graph.value_info if v.name not in named and v.type.tensor_type.elem_type in READABLE)
    from runner import onnxruntime_outputs
    names = [o.name for o in whole.graph.output]
    results = onnxruntime_outputs(whole, inputs)
    if results is None:
        from onnx.reference import ReferenceEvaluator
        try:
            results = ReferenceEvaluator(whole).run(names, inputs)
        except Exception:  # an operator that it lacks, or an input it does not take
            return None
    return {**inputs, **dict(zip(names, (np.asarray(r) for r in results)))}


def needed_for(model, inputs, names):
    """The model of some of its outputs: the nodes, constants and inputs that they need."""
    small = onnx.ModelProto.FromString(model.SerializeToString())
    needed, kept = set(names), []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            kept.insert(0, node)
            needed.update(generate.reads(node))
    for field, items in (("node", kept), ("output", [o for o in model.graph.output if o.name in names]),
                         ("input", [i for i in model.graph.input if i.name in needed]), ("initializer", [t for t in model.graph.initializer if t.name in needed])):
        del getattr(small.graph, field)[:]
        getattr(small.graph, field).extend(items)
    return small, {n: a for n, a in inputs.items() if n in needed}


def minimised(runner, model, inputs, kind, seconds=60):
    """The same failure with as few nodes as are found in the time, and whether every node alone is right."""
    end = time.time() + seconds
    fails = lambda small: small is not None and (judge(runner, *small) or ("",))[0] == kind
    for output in model.graph.output:
        if len(model.graph.output) > 1 and time.time() < end - seconds / 2 and fails(one := needed_for(model, inputs, [output.name])):
            model, inputs = one
            break
    values = all_values(model, inputs)
    nodes = list(model.graph.node)

    def attempt(kept):
        try:
            return cut(model, inputs, kept, values)
        except (KeyError, ValueError, TypeError):
            return None

    if values is None or len(nodes) < 2:
        return model, inputs, False
    for n in nodes:  # one node alone
        if time.time() > end:
            return model, inputs, False
        small = attempt([n])
        if fails(small):
            return *small, False
    best, size = (model, inputs), max(1, len(nodes) // 2)
    while size >= 1 and time.time() < end:  # otherwise, ever smaller pieces are left out
        at, shrunk = 0, False
        while at < len(nodes) and len(nodes) > 1 and time.time() < end:
            rest = nodes[:at] + nodes[at + size:]
            small = attempt(rest) if rest else None
            if fails(small):
                nodes, best, shrunk = rest, small, True
            else:
                at += size
        size = size // 2 if not shrunk or size > 1 else size
        if size == 0:
            break
    return *best, True


def summary(model):
    return "+".join(n.op_type for n in model.graph.node)


def save(folder, name, model, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    np.savez(folder / f"{name}.npz", **{n: a.astype(str) if a.dtype.kind == "O" else a for n, a in parts(inputs).items()})


def load(path):
    """A kept model and its inputs, whose dtypes .npz does not always know."""
    model, stored = onnx.load(path), np.load(path.with_suffix(".npz"))
    dtypes = {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.input if v.type.HasField("tensor_type")}
    own = {"V": lambda n: stored[n].view(dtypes[n]), "U": lambda n: stored[n].astype(object)}
    return model, joined(model, {n: own.get(stored[n].dtype.kind, stored.__getitem__)(n) for n in stored.files})


def replay(runner, folder):
    bad = 0
    for path in sorted(pathlib.Path(folder).glob("*.onnx")):
        found = judge(runner, *load(path))
        print(f"{'ok  ' if not found else 'FAIL'} {path.stem}{': ' + ': '.join(found) if found else ''}", flush=True)
        bad += found is not None
    return bad


def is_known(kind, model, what):
    """Named exceptions: lines 'kind operator text', with the reason behind '#', of models that are this operator alone,
    or have it among others ('+operator')."""
    operators = {n.op_type for n in model.graph.node} - {"Constant"}
    for line in KNOWN.read_text().splitlines() if KNOWN.exists() else []:
        words = line.split("#")[0].split(None, 2)
        if len(words) >= 2 and words[0] == kind and (operators == {words[1]} or words[1][1:] in operators and words[1][0] == "+") and (len(words) < 3 or words[2].strip() in what):
            return True
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--count", type=int, default=10 ** 9, help="at most so many models")
    p.add_argument("--nodes", type=int, help="of every model; default: random")
    p.add_argument("--keep", type=pathlib.Path, help="folder for the failing models")
    p.add_argument("--replay", type=pathlib.Path, help="run the models of a folder instead")
    p.add_argument("--timeout", type=float, default=60, help="seconds for one model")
    p.add_argument("--program", type=pathlib.Path, default=default_program(HERE.parents[2]))
    a = p.parse_args()
    if not a.program.exists():
        print(f"skipped: {a.program} is not built")
        return SKIPPED
    runner = Runner(a.program, a.timeout)
    if a.replay:
        bad = replay(runner, a.replay)
        runner.close()
        return 1 if bad else 0
    end, count, kinds, operators = time.time() + a.seconds, 0, collections.Counter(), collections.Counter()
    seen = collections.Counter()
    while time.time() < end and count < a.count:
        seed = a.seed * 1_000_003 + count
        model, inputs = generate.random_model(seed, a.nodes)
        if not model.graph.node:
            count += 1
            continue
        operators.update(n.op_type for n in model.graph.node)
        found = judge(runner, model, inputs)
        count += 1
        if not found:
            continue
        kind, what = found
        small, small_inputs, alone_right = minimised(runner, model, inputs, kind) if seen[(kind, what[:60])] < 3 else (model, inputs, False)
        again = judge(runner, small, small_inputs)
        kind, what = again if again else (kind, what + " (only as a whole)")
        seen[(found[0], found[1][:60])] += 1
        # Together the nodes give what the reference gives (the kind would be "differs" otherwise), and each alone what
        # onnxruntime gives: its roundings on the way add up.
        rounding = kind == "onnxruntime" and alone_right
        known = rounding or is_known(kind, small, what)
        kinds["known" if known else kind] += 1
        print(f"{'rounding ' if rounding else 'known ' if known else ''}{kind} seed {seed}: {summary(small)[:200]}: {what[:300]}", flush=True)
        if a.keep and not known:
            save(a.keep, f"{kind}_{small.graph.node[-1].op_type}_{seed}", small, small_inputs)
    runner.close()
    print(f"{count} models, {sum(operators.values())} nodes of {len(operators)} operators; found: " + (", ".join(f"{n} {k}" for k, n in kinds.most_common()) or "nothing"))
    return 1 if sum(n for k, n in kinds.items() if k != "known") else 0


if __name__ == "__main__":
    sys.exit(main())
