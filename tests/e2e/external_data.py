#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model whose weights lie in a sparse file of 3 GiB: at its beginning, across 2 GiB, and at its end.

    tests/e2e/external_data.py [--tool PATH]

Compiled and run, the result must be exact and the compiler's memory small: the file is looked at, not read.
Exit code: 0 right, 1 wrong, 77 the onnx package is missing or the disk keeps no sparse files.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from models import ROOT, SKIPPED, enter_environment

SIZE, COUNT = 3 << 30, 4096
PLACES = (0, (2 << 30) - 4096, SIZE - 4 * COUNT)
MOST_MEMORY = 1 << 30


def sparse_file(path):
    """Why there is none; nothing if it was made."""
    import numpy as np
    try:
        with open(path, "wb") as file:
            file.truncate(SIZE)
            for number, place in enumerate(PLACES, 1):
                file.seek(place)
                file.write((number + np.arange(COUNT, dtype="<f4") % 5).tobytes())
    except OSError as error:
        return f"no file of 3 GiB can be made here: {error}"
    used = os.stat(path).st_blocks * 512
    return "" if used < 16 << 20 else f"the disk keeps no sparse files ({used >> 20} MiB used)"


def write_model(path):
    import onnx
    from onnx import TensorProto, helper
    nodes, weights, value = [], [], "x"
    for number, place in enumerate(PLACES, 1):
        weight = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[COUNT], data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "weights.bin"), ("offset", str(place)), ("length", str(4 * COUNT))):
            weight.external_data.add(key=key, value=text)
        weights.append(weight)
        nodes += [helper.make_node("Mul", [value, "ten"], [f"t{number}"]), helper.make_node("Add", [f"t{number}", weight.name], [f"y{number}"])]
        value = f"y{number}"
    weights.append(helper.make_tensor("ten", TensorProto.FLOAT, [], [10.0]))
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [COUNT]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "external", shapes[:1], shapes[1:], weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", default=ROOT / "build/tilewright")
    tool = parser.parse_args().tool
    if not enter_environment("numpy", "onnx"):
        print("skipped: numpy or onnx is not there; ./dev test installs them")
        return SKIPPED
    import numpy as np
    with tempfile.TemporaryDirectory(prefix="tilewright-external-") as folder:
        scratch = pathlib.Path(folder)
        if reason := sparse_file(scratch / "weights.bin"):
            print(f"skipped: {reason}")
            return SKIPPED
        write_model(scratch / "model.onnx")
        subprocess.run([tool, "compile", scratch / "model.onnx", "-o", scratch / "model.so", "-q"], check=True)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        subprocess.run([tool, "run", scratch / "model.so", "--input", "x=zeros", "--output", scratch / "y.npy"], check=True, stdout=subprocess.DEVNULL)
        got, library = np.load(scratch / "y.npy"), os.path.getsize(scratch / "model.so")
    want = 123 + 111 * (np.arange(COUNT) % 5)  # exact in float32
    print(f"{got.min():g} to {got.max():g}, at most {memory >> 20} MiB of memory, a library of {library >> 10} KiB")
    return 0 if np.array_equal(got, want) and memory < MOST_MEMORY and library < 1 << 20 else 1


if __name__ == "__main__":
    sys.exit(main())
