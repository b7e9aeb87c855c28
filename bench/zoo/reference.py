#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes MODEL.npz beside each MODEL.onnx: a seeded input for every graph input and onnxruntime's outputs.

    .cache/venv/bin/python bench/zoo/reference.py model.onnx [--shape x=1x3x640x640] [--out file.npz]

Arrays are named input_NAME and output_NAME. Free dimensions need --shape.
"""
import argparse
import os
import pathlib
import sys

import numpy as np
import onnxruntime as ort

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def make_input(name, dtype, shape, rng):
    """Standard normal for floats; for integers what token models accept: masks of ones, types of zeros, small ids."""
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
    if "mask" in name:
        return np.ones(shape, dtype)
    if "type" in name:
        return np.zeros(shape, dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(1, 200, shape).astype(dtype)


def load_session(path, threads=0):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def make_inputs(session, shapes, seed=7):
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        shape = shapes.get(value.name, value.shape)
        if any(not isinstance(dim, int) for dim in shape):
            raise SystemExit(f"input {value.name} has free dimensions {shape}; give --shape {value.name}=...")
        feeds[value.name] = make_input(value.name, DTYPES[value.type], tuple(shape), rng)
    return feeds


def parse_shape(text):
    name, _, dims = text.rpartition("=")
    return name, tuple(int(dim) for dim in dims.split("x") if dim)


def main():
    parser = argparse.ArgumentParser(description="Write inputs and onnxruntime's outputs beside ONNX files.")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--shape", action="append", default=[], type=parse_shape, metavar="NAME=1x3x224x224")
    parser.add_argument("--out", type=pathlib.Path, help="the .npz to write (one model only)")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    for path in args.models:
        session = load_session(path)
        feeds = make_inputs(session, dict(args.shape), args.seed)
        results = session.run(None, feeds)
        arrays = {f"input_{name}": value for name, value in feeds.items()}
        for value, array in zip(session.get_outputs(), results):
            if np.issubdtype(array.dtype, np.floating) and not np.all(np.isfinite(array)):
                raise SystemExit(f"{path}: output {value.name} is not finite; the weights are not usable")
            arrays[f"output_{value.name}"] = array
        target = args.out or path.with_suffix(".npz")
        partial = target.with_name(f".{target.name}.part")
        with open(partial, "wb") as file:
            np.savez(file, **arrays)
        os.replace(partial, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
