#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks and products in every dtype beside their float32 twins and onnxruntime, as a table.

    .cache/venv-bench/bin/python bench/dtypes.py [--threads 1,2] [--target "llvm -mcpu=x86-64-v3"] [--only resnet18,...]

The networks are zoo/small_networks.py's, converted by zoo/convert_floats.py, and any --model FILE.onnx. Each row is one
model: milliseconds of ours, the share of the float32 twin's speed, and onnxruntime's time where it runs the model.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench" / "zoo"))
import convert_floats  # noqa: E402
import small_networks  # noqa: E402

FLOATS = ("float16", "bfloat16", "float64")
INTEGERS = ("int32", "int64")


def product(m, k, n):
    """A MatMul with a constant, in float32; integers take its whole part."""
    weights = (4 * np.random.default_rng(0).standard_normal((k, n))).astype(np.float32)
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
                              [value("x", onnx.TensorProto.FLOAT, [m, k])], [value("y", onnx.TensorProto.FLOAT, [m, n])],
                              [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def with_integers(model, to):
    made = onnx.ModelProto()
    made.CopyFrom(model)
    elem = {"int32": onnx.TensorProto.INT32, "int64": onnx.TensorProto.INT64}[to]
    for info in list(made.graph.input) + list(made.graph.output):
        info.type.tensor_type.elem_type = elem
    for tensor in made.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(to), tensor.name))
    return made


def ours(tilewright, model, target, threads, folder):
    library = folder / "model.so"
    command = [tilewright, "compile", str(model), "-o", str(library), "--quiet"]
    done = subprocess.run(command + (["--target", target] if target else []), capture_output=True, text=True)
    if done.returncode:
        return None
    out = {}
    for n in threads:
        done = subprocess.run([tilewright, "bench", str(library), "--threads", str(n), "--time", "0.7", "--warmup-time",
                               "0.2", "--no-steps", "--json"], capture_output=True, text=True, check=True)
        out[n] = json.loads(done.stdout)["median_ms"]
    return out


def peer(model, threads):
    import onnxruntime

    out = {}
    for n in threads:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = n, 1, 4
        try:
            session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception:  # refused
            return None
        feeds = {}
        for info in session.get_inputs():
            dtype = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
                     "tensor(int32)": "int32", "tensor(int64)": "int64"}.get(info.type)
            if dtype is None or any(not isinstance(d, int) for d in info.shape):
                return None
            random = np.random.default_rng(0)
            feeds[info.name] = (random.integers(0, 8, info.shape) if "int" in dtype
                                else random.standard_normal(info.shape)).astype(dtype)
        times, begin = [], time.perf_counter()
        while len(times) < 4 or time.perf_counter() - begin < 0.9:
            start = time.perf_counter()
            session.run(None, feeds)
            times.append(time.perf_counter() - start)
        out[n] = 1e3 * float(np.median(times[1:]))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=str(ROOT / "build" / "tilewright"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--target", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--model", action="append", default=[], help="a float32 ONNX file besides")
    parser.add_argument("--no-peer", action="store_true")
    args = parser.parse_args()
    threads = [int(n) for n in args.threads.split(",")]
    only = set(filter(None, args.only.split(",")))
    models = {name: make for name, make in small_networks.NETWORKS.items()}
    for m, k, n in ((1, 1024, 1024), (256, 512, 384)):
        models[f"{m}x{k}x{n}"] = lambda m=m, k=k, n=n: product(m, k, n)
    for path in args.model:
        models[pathlib.Path(path).stem] = lambda path=path: onnx.load(path)
    print("| model | dtype | " + " | ".join(f"ms, {n} thread{'s' * (n > 1)} | of float32 | onnxruntime" for n in threads) + " |")
    print("|---|---|" + "---|---|---|" * len(threads))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name, make in models.items():
            if only and name not in only:
                continue
            model, twin = make(), None
            dtypes = ("float32",) + FLOATS + (INTEGERS if "x" in name and name[0].isdigit() else ())
            for dtype in dtypes:
                made = (model if dtype == "float32" else convert_floats.converted(model, dtype) if dtype in FLOATS
                        else with_integers(model, dtype))
                path = folder / f"{name}_{dtype}.onnx"
                onnx.save(made, path)
                times = ours(args.tilewright, path, args.target, threads, folder)
                other = None if args.no_peer else peer(path, threads)
                twin = twin or times
                cells = []
                for n in threads:
                    cells += [f"{times[n]:.3g}" if times else "refused", f"{twin[n] / times[n]:.2f}" if times else "",
                              f"{other[n]:.3g}" if other else "" if args.no_peer else "refused"]
                print(f"| {name} | {dtype} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
