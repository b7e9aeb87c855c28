#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The inner loops of convolutions for NEON, by their instructions: an emulator tells nothing of their time.

Sums stay in registers, and a number is multiplied from the vector register it was loaded to, without a copy of it in each lane. Taps of one row
share numbers, some of which wait on the stack. Exit code: 77 where the onnx package is not there.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITE = """
import sys
import numpy as np
import onnx
from onnx import helper, numpy_helper
size, path = int(sys.argv[1]), sys.argv[2]
weight = numpy_helper.from_array(np.random.default_rng(1).random((64, 64, size, size), dtype=np.float32), "w")
value = lambda name: helper.make_tensor_value_info(name, 1, [1, 64, 28, 28])
node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[size // 2] * 4)
graph = helper.make_graph([node], "g", [value("x")], [value("y")], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
"""


def busiest_loop(assembly):
    """The instructions of the loop with the most products: from a label to the branch back to it."""
    lines, labels, best = assembly.splitlines(), {}, []
    for i, line in enumerate(lines):
        words = line.split()
        if re.match(r"^[.\w$]+:", line):
            labels[line.split(":")[0]] = i
        elif words and re.match(r"^(b|cb|tb)", words[0]) and words[-1] in labels:
            body = [other.split()[0] for other in lines[labels[words[-1]]:i + 1] if other.strip()]
            if body.count("fmla") > best.count("fmla"):
                best = body
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    tool, python, wrong = parser.parse_args().tool, ROOT / ".cache/venv/bin/python", 0
    if not python.exists():
        print("skipped: the onnx package is not here (./dev models test fetches it)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for size in (1, 3):
            model, text = f"{folder}/conv{size}.onnx", f"{folder}/conv{size}.s"
            subprocess.run([str(python), "-c", WRITE, str(size), model], check=True)
            subprocess.run([str(tool), "compile", model, "-o", text, "-q", "--math", "strict", "--target", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"], check=True)
            loop = busiest_loop(pathlib.Path(text).read_text(encoding="utf-8"))
            products, loads = loop.count("fmla"), sum(2 if name == "ldp" else 1 for name in loop if name.startswith("ld"))
            stores, copies = sum(name.startswith("st") for name in loop), loop.count("dup")
            print(f"{size}x{size}: {products} products, {loads} loads, {stores} stores, {copies} copies to all lanes")
            wrong += products < 100 or products < 1.7 * loads or stores > (0 if size == 1 else products / 5) or copies > 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
