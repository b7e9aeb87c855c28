#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises EfficientNet-Lite0 on views of some pictures and judges it by views of the same and of others.

    tests/e2e/quantized.py [--tool PATH] [--views N]

`tilewright quantize` calibrates with one part of each picture's views; on the rest the class that comes first must be float32's
for 97% at least, as compiled here and as onnxruntime runs the file.
Exit code: 0 right, 1 wrong, 77 a model, a picture or a Python package is missing (./dev models test fetches them).
"""
import argparse
import json
import pathlib
import sys
import tempfile

from meaning import PICTURES, ROOT, SKIPPED, call, need
from models import enter_environment

SIDE, DECODED = 224, 512


def decoder(tool, scratch):
    """A function that gives a picture's pixels: a model that gives back its input, run on the picture."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    shape = [1, 3, DECODED, DECODED]
    value = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"}
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", [value["x"]], [value["y"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), scratch / "same.onnx")
    call(tool, "compile", scratch / "same.onnx", "-o", scratch / "same.so", "-q")

    def pixels(path):
        call(tool, "run", scratch / "same.so", "--input", f"@{path},scale=1", "--output", f"@{scratch}/pixels.npz")
        return np.load(scratch / "pixels.npz")["y"][0]
    return pixels


def view(pixels, rng):
    """A square of a picture, mirrored or not, lighter or darker, at the network's size."""
    import numpy as np

    side = int(rng.integers(DECODED * 5 // 8, DECODED + 1))
    top, left = rng.integers(0, DECODED - side + 1, 2)
    places = (np.arange(SIDE) + 0.5) * side / SIDE
    cut = pixels[:, top + places.astype(int)][:, :, left + places.astype(int)]
    if rng.integers(2):
        cut = cut[:, :, ::-1]
    return np.clip((cut * rng.uniform(0.8, 1.2) - 127) / 128, -1, 1).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    parser.add_argument("--views", type=int, default=30, help="of each picture; a third of them calibrates")
    args = parser.parse_args()
    model, *files = need("models/efficientnet_lite0.onnx", *(f"pictures/{name}" for name, _ in PICTURES))
    if not enter_environment("numpy", "onnx", "onnxruntime"):
        print("skipped: numpy, onnx or onnxruntime is not there; ./dev test installs them")
        return SKIPPED
    import numpy as np
    import onnxruntime
    tool = args.tool.resolve()
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        pixels = decoder(tool, scratch)
        views = [[view(pixels(file), rng) for _ in range(args.views)] for file in files]
        third = args.views // 3
        (scratch / "samples").mkdir()
        for file, of_file in zip(files, views):
            np.save(scratch / "samples" / f"{file.stem}.npy", np.array(of_file[:third]))
        wrong = 0
        processor = pathlib.Path("/proc/cpuinfo")
        exact_bytes = processor.exists() and "vnni" in processor.read_text(encoding="utf-8")
        judged = [v[None] for of_file in views for v in of_file[third:]]
        exact = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        expected = [int(exact.run(None, {"image": v})[0].argmax()) for v in judged]
        for method in ("minmax", "entropy", "percentile"):
            small = scratch / f"{method}.onnx"
            facts = json.loads(call(tool, "quantize", model, "--calibrate", scratch / "samples", "-o", small, "--method", method,
                                    "--json"))
            in_bytes = sum(layer["int8"] for layer in facts["layers"])
            theirs = onnxruntime.InferenceSession(str(small), providers=["CPUExecutionProvider"])
            same = [int(theirs.run(None, {"image": v})[0].argmax()) == e for v, e in zip(judged, expected)]
            line = f"{method}: {in_bytes} of {len(facts['layers'])} layers in 8 bits, the same class for "
            # Without dot products of bytes onnxruntime's sums of two products stop at 16 bits: its classes say nothing then.
            print(line + f"{np.mean(same):.1%} of {len(same)} views (onnxruntime{'' if exact_bytes else ', whose sums saturate here'})")
            wrong += (exact_bytes and np.mean(same) < 0.97) or in_bytes < 45 or small.stat().st_size > 0.3 * model.stat().st_size
            call(tool, "compile", small, "-o", scratch / "model.so", "-q")
            hits = 0
            for v, e in zip(judged, expected):
                np.save(scratch / "x.npy", v)
                out = json.loads(call(tool, "run", scratch / "model.so", "--input", f"@{scratch}/x.npy", "--json", "--top", 1))
                hits += out["outputs"][0]["top"][0]["index"] == e
            print(f"{method}: the same class for {hits / len(judged):.1%} (compiled)")
            wrong += hits < 0.97 * len(judged)
        return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
