#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every ONNX operator in every type that its newest schema allows, by generated cases.

    ./dev conformance --pairs                        every operator, three cases for each type of each of its type variables
    tests/conformance/pairs.py --cases 10 --seed 7 Clip TopK
    tests/conformance/pairs.py --sample 20           every 20th pair, as CI has it
    tests/conformance/pairs.py --write               renew docs/conformance.md

A pair is a type variable of an operator and one type of it: `Clip T tensor(int8)`. The builders of tests/fuzz/models make its cases (random
attributes, ranks 0 to 6, empty dimensions); each is compiled, run, and compared with the reference interpreter and with onnxruntime, or, where
that has no kernel, with ONNX's reference implementation. Exit code: 0 where nothing but what pairs_expected.txt names is refused, differs or has
no case, 1 otherwise, 77 where the program or the Python packages are not there.
"""
import argparse
import collections
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/fuzz/models"))
SKIPPED = 77
try:
    import numpy as np
    import onnx
    from onnx import TensorProto
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    venv = ROOT / ".cache/venv/bin/python"
    if venv.exists() and pathlib.Path(sys.prefix) != venv.parents[1]:
        os.execv(venv, [str(venv), *sys.argv])
    print(f"skipped: {e}; ./dev setup installs the Python packages")
    sys.exit(SKIPPED)
import generate
from runner import RANDOM, UNITS, Runner, default_program, far, imprecise, is_float, judge, onnxruntime_outputs
from search import is_known, save
from tables import TABLE

EXPECTED = HERE / "pairs_expected.txt"
DOCUMENT = ROOT / "docs/conformance.md"
START, END = "<!-- pairs:begin -->", "<!-- pairs:end -->"
KINDS = ("onnxruntime", "reference", "interpreter", "differs", "refused", "no case")
OPSET = 21  # every engine knows it; newer operators raise it
Pair = collections.namedtuple("Pair", "domain op variable type")


def newest_schemas():
    """The newest schema of every operator that is not taken out, and those of the last set that had one that is."""
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        if not schema.deprecated and (key not in newest or newest[key].since_version < schema.since_version):
            newest[key] = schema
    return newest


def all_pairs(schemas):
    for (domain, op), schema in sorted(schemas.items()):
        used = {formal.type_str for formal in [*schema.inputs, *schema.outputs]}
        for constraint in schema.type_constraints:
            for kind in sorted(constraint.allowed_type_strs) if constraint.type_param_str in used else ():
                yield Pair(domain, op, constraint.type_param_str, kind)


def element_of(kind):
    """float32 of seq(tensor(float)); None for maps."""
    inner = re.search(r"tensor\((\w+)\)", kind)
    return generate.SCHEMA_NAME.get(inner[1], inner[1]) if inner else None


def spelled(value):
    """A TypeProto as schemas write it."""
    which = value.WhichOneof("value")
    if which == "tensor_type":
        return f"tensor({TensorProto.DataType.Name(value.tensor_type.elem_type).lower().replace('_', '')})" if value.tensor_type.elem_type else None
    if which in ("sequence_type", "optional_type"):
        return f"{'seq' if which[0] == 's' else 'optional'}({spelled(getattr(value, which).elem_type)})"
    if which == "map_type":
        return f"map({TensorProto.DataType.Name(value.map_type.key_type).lower()}, {TensorProto.DataType.Name(value.map_type.value_type.tensor_type.elem_type).lower()})"
    return None


class Wishful(generate.Model):
    """A model whose choices of a dtype fall on one of them rather, and whose sizes are 0 now and then."""

    def __init__(self, seed, dtype, opset):
        super().__init__(seed)
        self.dtype, self.opset, self.versions = dtype, opset, generate.DOMAINS | {"ai.onnx.ml": 5 if self.chance(0.3) else 3}

    def pick(self, options):
        options = list(options)
        return self.dtype if getattr(self, "dtype", None) in options and self.chance(0.8) else super().pick(options)

    def value(self, dtypes, *rest, **more):
        dtypes = [dtypes] if isinstance(dtypes, str) else list(dtypes)
        return super().value([self.dtype] if self.dtype in dtypes and self.chance(0.8) else dtypes, *rest, **more)

    def size(self):
        return 0 if self.chance(0.03) else super().size()


def types_of(model):
    inferred = onnx.shape_inference.infer_shapes(model)
    out = {v.name: spelled(v.type) for v in [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]}
    return out | {t.name: f"tensor({TensorProto.DataType.Name(t.data_type).lower().replace('_', '')})" for t in inferred.graph.initializer}


def has(model, pair, schema):
    """Whether a node of the model has the type for the variable."""
    types = types_of(model)
    for node in model.graph.node:
        if (node.domain, node.op_type) != pair[:2]:
            continue
        for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
            for i, name in enumerate(names):
                if formals and formals[min(i, len(formals) - 1)].type_str == pair.variable and types.get(name) == pair.type:
                    return True
    return False


def case_of(pair, schema, seed, removed):
    """A model that has the pair, and its inputs; None where the builder finds none."""
    if element_of(pair.type) not in (None, *generate.ELEMENT):
        return None
    opset = removed - 1 if removed else max(OPSET, schema.since_version if not pair.domain else 0)
    for attempt in range(80):
        m = Wishful([seed, attempt, *map(ord, "".join(pair))], element_of(pair.type), opset)
        if generate.attempt(m, TABLE[pair.op]) and m.nodes:
            model, inputs = m.proto()
            if has(model, pair, schema):
                return model, inputs
    return None


def as_reference(model, inputs, ours):
    """None where ONNX's reference implementation does not run the model; otherwise what differs from it, or ""."""
    try:
        theirs = ReferenceEvaluator(model).run(None, inputs)
    except Exception:  # its errors have no common type
        return None
    for i, (a, b) in enumerate(zip(ours, theirs)):
        b = np.asarray(b)
        if a.shape != b.shape:
            return f"output {i} is {a.shape}, not {b.shape}"
        wrong = far(a, b, UNITS.get(str(a.dtype), 1)) & ~imprecise(a, b)
        if wrong.any() and is_float(a):
            wrong = far(a, b, UNITS.get(str(a.dtype), 1), 1e-5 + 1e-4 * np.abs(b.astype(np.float64)))
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"output {i} at {at} is {a[at]!r}, not {b[at]!r} of the reference implementation"
    return ""


def verdict(runner, model, inputs, trusted):
    """(one of KINDS, what); `trusted`: whether the reference implementation has the operator right."""
    found = judge(runner, model, inputs)
    if found:
        return ("onnxruntime" if is_known(found[0], model, found[1]) else "refused" if found[0] in ("refused", "internal") else "differs"), ": ".join(found)
    answer = runner.run(model, inputs)
    if answer["status"] != "ok":
        return "refused", answer.get("message", "")
    if not RANDOM & {n.op_type for n in model.graph.node}:
        if onnxruntime_outputs(model, inputs) is not None:
            return "onnxruntime", ""
        what = as_reference(model, inputs, answer["ours"]) if trusted else None
        if what is not None:
            return ("differs" if what else "reference"), what
    return "interpreter", ""


def expected_pairs():
    lines = [line.split("#")[0].split() for line in EXPECTED.read_text(encoding="utf-8").splitlines()]
    return {tuple(words[:4]) for words in lines if len(words) >= 4}


def is_expected(pair, kind, expected):
    """Lines "operator variable type verdict"; a * stands for all, *text for what has the text."""
    return any(w[0] in ("*", pair.op) and w[1] in ("*", pair.variable) and (w[2] == pair.type or w[2][0] == "*" and w[2][1:] in pair.type) and w[3] == kind.replace(" ", "-")
               for w in expected)


def table(counts, sizes):
    """Rows by type."""
    out = ["| types | pairs | beside onnxruntime | beside the reference implementation | beside the interpreter alone | differ | refused | no case |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, row in [*counts.items(), ("**all**", sum(counts.values(), collections.Counter()))]:
        out.append(f"| {name} | {sum(row.values())} | " + " | ".join(str(row[k]) for k in KINDS) + " |")
    ranks = ", ".join(f"{n} of rank {r}" for r, n in sorted(sizes["ranks"].items()))
    return out + ["", f"{sizes['cases']} cases, their largest operands {ranks}; {sizes['empty']} had an empty operand."]


def group_of(kind):
    if not kind.startswith("tensor("):
        return kind.split("(")[0].replace("seq", "sequences").replace("optional", "optional values").replace("map", "maps")
    name = element_of(kind)
    narrow = "float8, float4, integers of 2 and 4 bits"
    return narrow if name in generate.NARROW or name.startswith("float8") else "complex" if name.startswith("complex") else name


def write(lines):
    text = DOCUMENT.read_text(encoding="utf-8")
    block = "\n".join([START, "", *lines, "", END])
    DOCUMENT.write_text(re.sub(re.escape(START) + ".*?" + re.escape(END), lambda _: block, text, flags=re.DOTALL), encoding="utf-8")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("operators", nargs="*")
    p.add_argument("--cases", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th pair")
    p.add_argument("--keep", type=pathlib.Path, help="folder for the failing models")
    p.add_argument("--write", action="store_true", help="renew docs/conformance.md")
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--program", type=pathlib.Path, default=default_program(ROOT))
    a = p.parse_args()
    if not a.program.exists():
        print(f"skipped: {a.program} is not built")
        return SKIPPED
    schemas = newest_schemas()
    last = {(s.domain, s.name): s.since_version for s in onnx.defs.get_all_schemas_with_history()
            if s.deprecated and not s.domain and s.since_version > schemas[s.domain, s.name].since_version}
    pairs = [pair for pair in all_pairs(schemas) if not a.operators or pair.op in a.operators][::a.sample]
    runner, expected, bad = Runner(a.program, a.timeout), expected_pairs(), 0
    counts, sizes = collections.defaultdict(collections.Counter), {"cases": 0, "empty": 0, "ranks": collections.Counter()}
    for pair in pairs:
        worst, what, kept = "", "", None
        for i in range(a.cases):
            made = case_of(pair, schemas[pair[:2]], a.seed + i, last.get(pair[:2])) if pair.op in TABLE else None
            if made is None:
                break
            kind, why = verdict(runner, *made, not is_expected(pair, "reference", expected))
            sizes["cases"] += 1
            operands = [x for x in [*made[1].values(), *map(onnx.numpy_helper.to_array, made[0].graph.initializer)] if not isinstance(x, dict)]
            sizes["ranks"][max((x.ndim for x in operands), default=0)] += 1
            sizes["empty"] += any(x.size == 0 for x in operands)
            better = not worst or KINDS.index(kind) > max(KINDS.index(worst), 2)
            if better or (kind in KINDS[:3] and worst in KINDS[:3] and KINDS.index(kind) < KINDS.index(worst)):
                worst, what, kept = kind, why, made
        worst = worst or "no case"
        counts[group_of(pair.type)][worst] += 1
        if worst in KINDS[3:] and not is_expected(pair, worst, expected):
            bad += 1
            print(f"{worst}: {pair.domain or 'onnx'} {pair.op} {pair.variable} {pair.type} {what[:300]}", flush=True)
            if a.keep and kept:
                save(a.keep, f"{pair.op}_{pair.variable}_{element_of(pair.type)}", *kept)
    runner.close()
    lines = table(dict(sorted(counts.items())), sizes)
    print("\n".join(lines))
    if a.write and not a.operators and a.sample == 1:
        write(lines)
    print(f"{len(pairs)} pairs of {len({p[:2] for p in pairs})} operators, {bad} of them not as expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
