#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What reading a .pt2 file of 300 MB costs beside the same network as ONNX.

    .cache/venv-torch/bin/python bench/torch_import.py        75 linear layers of 1024 x 1024, in turns, the least of ten
    ... bench/torch_import.py --layers 20 --turns 3 --tool build/tilewright

Each turn is a process of `tilewright inspect`, which reads the file and makes the module; time is the processor's, memory the most that was resident.
Bars: 1.2 of ONNX's time, 1.3 of its memory; exit status 1 where one is missed, 77 where PyTorch or the onnx package is not installed."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
try:
    import numpy as np
    import onnx
    import torch
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
WIDTH, TIME, MEMORY = 1024, 1.2, 1.3


def write(folder, layers):
    """The files of one network."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[layer for _ in range(layers) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]).eval()
    torch.export.save(torch.export.export(model, (torch.ones(1, WIDTH),)), folder / "model.pt2")
    nodes, constants, last = [], [], "x"
    for i, layer in enumerate(m for m in model if isinstance(m, torch.nn.Linear)):
        constants += [numpy_helper.from_array(layer.weight.detach().numpy(), f"w{i}"), numpy_helper.from_array(layer.bias.detach().numpy(), f"b{i}")]
        nodes += [helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"g{i}"], transB=1), helper.make_node("Relu", [f"g{i}"], [f"r{i}"])]
        last = f"r{i}"
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, WIDTH])
    onnx.save(helper.make_model(helper.make_graph(nodes, "model", [value("x")], [value(last)], constants), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")


# A process of its own that is small: a child's memory is counted from its parent's on.
RUN = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"""


def cost(tool, path):
    """Seconds of the processor and MiB of one run."""
    done = subprocess.run([sys.executable, "-S", "-c", RUN, str(tool), "inspect", str(path)], capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=75)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="import_") as name:
        folder = pathlib.Path(name)
        write(folder, options.layers)
        runs = {kind: [] for kind in ("pt2", "onnx")}
        for _ in range(options.turns):
            for kind, seen in runs.items():
                seen.append(cost(options.tool, folder / f"model.{kind}"))
        sizes = {kind: (folder / f"model.{kind}").stat().st_size / 1e6 for kind in runs}
    least = {kind: np.min(seen, axis=0) for kind, seen in runs.items()}
    for kind, (seconds, memory) in least.items():
        print(f"{kind:4}  {sizes[kind]:.0f} MB: {seconds:.3f} s of the processor, {memory:.0f} MiB")
    time, memory = least["pt2"] / least["onnx"]
    print(f"pt2 by ONNX: time {time:.2f} (bar {TIME}), memory {memory:.2f} (bar {MEMORY})")
    return 0 if time <= TIME and memory <= MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
