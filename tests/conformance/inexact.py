# SPDX-License-Identifier: Apache-2.0
"""Cases whose stored outputs cannot be compared as they are (run.py).

test_dft_inverse*: the stored outputs are float32 sums whose rounding is as large as what is to be zero; they are
compared with the same sums in float64 instead.

test_bernoulli*: the stored outputs are drawn at random. What is checked: type and shape, the same values in a second
run, and over 60,000 draws that as many are one as should be, for each of six probabilities within five deviations.

Usage (run.py calls it with the venv's Python): inexact.py truth SOURCE TARGET | inexact.py draws TOOL FOLDER
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

DRAWS = 10000
CHANCES = [0.0, 0.1, 0.35, 0.5, 0.8, 1.0]


def write_truth(source, target):
    """The case with the outputs of its only node in float64."""
    model = onnx.load(source / "model.onnx")
    stored = sorted((source / "test_data_set_0").glob("input_*.pb"))
    x, *rest = (numpy_helper.to_array(onnx.load_tensor(str(p))) for p in stored)
    node = model.graph.node[0]
    assert node.op_type == "DFT" and any(a.name == "inverse" and a.i for a in node.attribute)
    axis = int(rest[-1]) if rest else next((a.i for a in node.attribute if a.name == "axis"), 1)
    truth = np.fft.ifft(x[..., 0].astype(np.float64) + 1j * x[..., 1], axis=axis)
    output = np.stack([truth.real, truth.imag], -1).astype(np.float32)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    path = target / "test_data_set_0/output_0.pb"
    old = onnx.load_tensor(str(path))
    assert np.allclose(numpy_helper.to_array(old), output, atol=1e-5)
    path.write_bytes(numpy_helper.from_array(output, old.name).SerializeToString())


def run(tool, model, feeds, folder):
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "in.npz", **feeds)
    for command in (["compile", folder / "model.onnx", "-o", folder / "model.so", "-q"],
                    ["run", folder / "model.so", "-i", f"@{folder / 'in.npz'}", "-o", folder / "out.npz"]):
        done = subprocess.run([tool, *map(str, command)], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())
    with np.load(folder / "out.npz") as made:
        return made[made.files[0]]


def draws(tool, source):
    """An empty string when all is as it should be."""
    model = onnx.load(source / "model.onnx")
    stored = numpy_helper.to_array(onnx.load_tensor(str(source / "test_data_set_0/output_0.pb")))
    name = model.graph.input[0].name
    dtype = helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    x = numpy_helper.to_array(onnx.load_tensor(str(source / "test_data_set_0/input_0.pb")))
    large = onnx.ModelProto.FromString(model.SerializeToString())
    for value in (*large.graph.input, *large.graph.output):
        value.type.tensor_type.shape.CopyFrom(helper.make_tensor_value_info("x", 1, [len(CHANCES) * DRAWS]).type.tensor_type.shape)
    del large.graph.value_info[:]
    with tempfile.TemporaryDirectory(prefix="draws_") as folder:
        folder = pathlib.Path(folder)
        first, second = (run(tool, model, {name: x}, folder) for _ in range(2))
        many = run(tool, large, {name: np.repeat(CHANCES, DRAWS).astype(dtype)}, folder)
    if first.dtype != stored.dtype or first.shape != stored.shape:
        return f"the output is {first.dtype}{list(first.shape)}, not {stored.dtype}{list(stored.shape)}"
    if not np.array_equal(first, second):
        return "a second run gives other values"
    if not np.isin(many, (0, 1)).all():
        return "a draw is neither zero nor one"
    # The function in the standard's file counts the draws above the probability.
    above = any(n.op_type == "Greater" for n in model.graph.node)
    for chance, part in zip(CHANCES, many.reshape(len(CHANCES), DRAWS).astype(np.float64)):
        wanted = 1 - chance if above else chance
        if abs(part.mean() - wanted) > 5 * np.sqrt(wanted * (1 - wanted) / DRAWS):
            return f"{part.mean():.4f} of the draws are one, not {wanted:.4f}"
    return ""


if __name__ == "__main__":
    verb, one, two = sys.argv[1:]
    if verb == "truth":
        write_truth(pathlib.Path(one), pathlib.Path(two))
    else:
        print(draws(one, pathlib.Path(two)))
