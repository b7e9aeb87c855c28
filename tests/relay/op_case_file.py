# SPDX-License-Identifier: Apache-2.0
"""How the scripts make_*cases.py write tests/data/relay/op_cases*.txt: operators of the graph IR with what others compute for them."""
import pathlib

import numpy as np

lines = []


def text(value):
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (list, tuple)):
            return ";".join(",".join(str(v) for v in row) for row in value)
        return " ".join(str(v) for v in value)
    return str(value)


def tensor(tag, x):
    x = np.asarray(x)
    if x.dtype.kind == "f":
        data = " ".join("%.7g" % v for v in x.ravel())
    else:
        data = " ".join(str(int(v)) for v in x.ravel())
    lines.append(f"{tag} {x.dtype} {' '.join(map(str, x.shape))} : {data}".replace("  ", " "))


def case(op, inputs, outputs, tuple_operand=False, **attrs):
    lines.append(f"op {op}" + (" tuple" if tuple_operand else ""))
    for name, value in attrs.items():
        lines.append(f"attr {name} {text(value)}")
    for x in inputs:
        tensor("in", x)
    for x in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
        tensor("out", x)


def write(name, by):
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/data/relay" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Made by {by}.\n" + "\n".join(lines) + "\n")
    print(sum(line.startswith("op ") for line in lines), "cases,", path.stat().st_size, "bytes")
