#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One measurement of one peer engine, in a process of its own. Started by bench/run.py:

    .cache/venv-bench/bin/python bench/engines.py ENGINE MODEL.onnx REFERENCE.npz --threads 1 --seconds 1

Prints one JSON object: load_ms, first_ms, min_ms, median_ms, runs, peak_rss_bytes, error (the largest difference to
the reference output, as a share of what rtol 1e-3 and atol 1e-4 x the output's largest magnitude allow), version.
All engines compute in float32 and get the same number of threads.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import numpy as np

import report


class OnnxRuntime:
    def __init__(self, model, feeds, names, threads, scratch):
        import onnxruntime

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        # Inputs and outputs bound once, as with the other engines: for a small model Python's part would count.
        self.binding = self.session.io_binding()
        for name, value in feeds.items():
            self.binding.bind_cpu_input(name, value)
        for name in names:
            self.binding.bind_output(name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    precision = "f32"

    def __init__(self, model, feeds, names, threads, scratch):
        import openvino

        self.version = openvino.__version__.split("-")[0]
        network = openvino.Core().read_model(str(model))
        network.reshape({name: list(value.shape) for name, value in feeds.items()})
        # One stream for latency; float32, because the default lowers the precision where the processor can.
        compiled = openvino.Core().compile_model(network, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": self.precision})
        self.request, self.results = compiled.create_infer_request(), compiled.outputs
        for name, value in feeds.items():
            self.request.set_tensor(name, openvino.Tensor(np.ascontiguousarray(value), shared_memory=True))
        self.feeds = feeds

    def run(self):
        self.request.infer()

    def outputs(self):
        return [self.request.get_tensor(output).data for output in self.results]


class OpenVinoBFloat16(OpenVino):
    precision = "bf16"


class Mnn:
    def __init__(self, model, feeds, names, threads, scratch):
        import MNN

        self.version = MNN.version()
        converted = scratch / f"{model.stem}.mnn"
        forget_older(converted, model)
        convert(converted, ["mnnconvert", "-f", "ONNX", "--modelFile", str(model), "--MNNModel", "{out}", "--bizCode", "x"])
        self.expr = MNN.expr
        runtime = MNN.nn.create_runtime_manager(({"backend": 0, "numThread": threads, "precision": "high"},))
        runtime.set_mode(0)
        self.module = MNN.nn.load_module_from_file(str(converted), list(feeds), names, runtime_manager=runtime)
        self.inputs = []
        for value in feeds.values():
            narrow = value.astype(np.int32) if value.dtype == np.int64 else value
            self.inputs.append(MNN.expr.const(np.ascontiguousarray(narrow), list(value.shape), MNN.expr.NCHW,
                                              MNN.expr.float if narrow.dtype == np.float32 else MNN.expr.int))

    def run(self):
        self.results = self.module.forward(self.inputs)

    def outputs(self):
        return [np.array(self.expr.convert(result, self.expr.NCHW).read()) for result in self.results]


class Ncnn:
    def __init__(self, model, feeds, names, threads, scratch):
        import importlib.util

        import ncnn

        self.ncnn, self.version = ncnn, ncnn.__version__
        # pnnx fixes the sizes: one conversion per combination.
        sizes = "_".join("x".join(map(str, value.shape)) for value in feeds.values())
        folder = scratch / f"{model.stem}_{sizes}.ncnn"
        forget_older(folder, model)
        shapes = ",".join("[" + ",".join(map(str, value.shape)) + "]" + ("i64" if value.dtype == np.int64 else "")
                          for value in feeds.values())
        program = pathlib.Path(importlib.util.find_spec("pnnx").origin).with_name("pnnx")
        if (folder / "failed").exists():
            raise RuntimeError((folder / "failed").read_text())
        if not (folder / "model.ncnn.bin").exists():
            folder.mkdir(parents=True, exist_ok=True)
            link = folder / "model.onnx"
            link.unlink(missing_ok=True)
            link.symlink_to(model.resolve())
            result = subprocess.run([str(program), "model.onnx", f"inputshape={shapes}", "fp16=0"], cwd=folder,
                                    capture_output=True, text=True)
            if result.returncode != 0 or not (folder / "model.ncnn.bin").exists():
                (folder / "failed").write_text("pnnx could not convert it")
                raise RuntimeError("pnnx could not convert it")
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads, options.use_vulkan_compute = threads, False
        for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
            setattr(options, f"use_{name}", False)
        if self.net.load_param(str(folder / "model.ncnn.param")) or self.net.load_model(str(folder / "model.ncnn.bin")):
            raise RuntimeError("ncnn could not load the converted model")
        # A layer ncnn does not know loads all the same and runs wrongly; the comparison with the reference finds it.
        self.threads = threads
        self.inputs = []
        for value in feeds.values():
            narrow = value.astype(np.int32) if value.dtype == np.int64 else value
            # ncnn has no batch: its tensors start after the first dimension.
            self.inputs.append(np.ascontiguousarray(narrow[0] if narrow.ndim > 1 else narrow))
        self.mats = [ncnn.Mat(value) for value in self.inputs]
        self.output_names = self.net.output_names()

    def run(self):
        extractor = self.net.create_extractor()
        for index, mat in enumerate(self.mats):
            extractor.input(f"in{index}", mat)
        self.results = []
        for name in self.output_names:
            code, mat = extractor.extract(name)
            if code:
                raise RuntimeError(f"ncnn failed with code {code}")
            self.results.append(mat)

    def outputs(self):
        return [np.array(mat) for mat in self.results]


ENGINES = {"ort": OnnxRuntime, "openvino": OpenVino, "openvino_bf16": OpenVinoBFloat16, "mnn": Mnn, "ncnn": Ncnn}


def forget_older(converted, model):
    """Removes a conversion of an earlier version of the model."""
    if converted.exists() and converted.stat().st_mtime < model.stat().st_mtime:
        shutil.rmtree(converted) if converted.is_dir() else converted.unlink()


def convert(target, command):
    """Runs a converter of the environment once; {out} in the command becomes a temporary name."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    command = [str(pathlib.Path(sys.executable).with_name(command[0]))] + [part.replace("{out}", str(partial)) for part in command[1:]]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0 or not partial.exists():
        raise RuntimeError(f"{os.path.basename(command[0])} could not convert it")
    os.replace(partial, target)


def largest_error(outputs, expected):
    """1 means that the worst element is just within tolerance; report.WRONG, that sizes or counts differ."""
    if len(outputs) != len(expected):
        return report.WRONG
    worst = 0.0
    for got, want in zip(outputs, expected):
        got = np.asarray(got)
        if got.size != want.size or not np.all(np.isfinite(got)):
            return report.WRONG
        want = want.astype(np.float64)
        allowed = 1e-4 * np.max(np.abs(want)) + 1e-3 * np.abs(want)
        gap = np.abs(got.reshape(want.shape).astype(np.float64) - want)
        worst = max(worst, float(np.max(gap / np.maximum(allowed, 1e-30), initial=0.0)))
    return min(worst, report.WRONG)


def measure(run, seconds):
    """Times one first call, one warm-up, then calls for the given time, at least 5."""
    started = time.perf_counter()
    run()
    first = time.perf_counter() - started
    run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return first, times


def main():
    parser = argparse.ArgumentParser(description="Measure one engine on one model.")
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("reference", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--scratch", type=pathlib.Path, required=True, help="folder for converted models")
    args = parser.parse_args()
    arrays = np.load(args.reference)
    feeds = {name.removeprefix("input_"): arrays[name] for name in arrays if name.startswith("input_")}
    names = [name.removeprefix("output_") for name in arrays if name.startswith("output_")]
    args.scratch.mkdir(parents=True, exist_ok=True)
    # What the engine prints must not mix with the result.
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        started = time.perf_counter()
        engine = ENGINES[args.engine](args.model, feeds, names, args.threads, args.scratch)
        load = time.perf_counter() - started
        first, times = measure(engine.run, args.seconds)
        result = {
            "version": engine.version, "load_ms": load * 1e3, "first_ms": first * 1e3, "min_ms": min(times) * 1e3,
            "median_ms": float(np.median(times)) * 1e3, "runs": len(times),
            "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "error": largest_error(engine.outputs(), [arrays[f"output_{name}"] for name in names])}
    except Exception as failure:  # whatever an engine throws is a result: "cannot run this model"
        result = {"failed": f"{type(failure).__name__}: {str(failure).strip().splitlines()[0][:200] if str(failure).strip() else ''}"}
    os.write(out, (json.dumps(result) + "\n").encode())
    os._exit(0)  # some engines crash while Python tears them down


if __name__ == "__main__":
    sys.exit(main())
