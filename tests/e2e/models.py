#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles real models with the command line, runs them in a fresh process, and compares with onnxruntime's outputs.

    .cache/venv/bin/python tests/e2e/models.py                 every model that is there, one line each
    .cache/venv/bin/python tests/e2e/models.py resnet18 ...    these; a path to an .onnx file with its .npz works too
    tests/e2e/models.py --list                                 the names

The .npz beside a model holds input_NAME and output_NAME (bench/zoo/reference.py writes it). Tolerance: rtol 1e-3 and
atol 1e-4 x the largest magnitude of the output. Models listed in expected_failures.txt are known not to work; one of
them that works is an error too (take it off the list), so that the list can only shrink.

Exit code: 0 all as expected, 1 not, 77 nothing could be tested because models are missing.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
EXPECTED_FAILURES = pathlib.Path(__file__).with_name("expected_failures.txt")
SKIPPED = 77
TOKENS = {name: "1x128" for name in ("input_ids", "attention_mask", "token_type_ids")}

# name: (model in .cache, .npz in .cache, shapes to give)
MODELS = {
    "resnet18": ("zoo/resnet18.onnx", "zoo/resnet18.npz", {}),
    "resnet18_bn": ("zoo/resnet18_bn.onnx", "zoo/resnet18_bn.npz", {}),
    "resnet50": ("zoo/resnet50.onnx", "zoo/resnet50.npz", {}),
    "mobilenet_v2": ("zoo/mobilenet_v2.onnx", "zoo/mobilenet_v2.npz", {}),
    "mobilenet_v3_large": ("zoo/mobilenet_v3_large.onnx", "zoo/mobilenet_v3_large.npz", {}),
    "squeezenet1_1": ("zoo/squeezenet1_1.onnx", "zoo/squeezenet1_1.npz", {}),
    "efficientnet_b0": ("zoo/efficientnet_b0.onnx", "zoo/efficientnet_b0.npz", {}),
    "densenet121": ("zoo/densenet121.onnx", "zoo/densenet121.npz", {}),
    "shufflenet_v2": ("zoo/shufflenet_v2.onnx", "zoo/shufflenet_v2.npz", {}),
    "regnet_y_400mf": ("zoo/regnet_y_400mf.onnx", "zoo/regnet_y_400mf.npz", {}),
    "convnext_tiny": ("zoo/convnext_tiny.onnx", "zoo/convnext_tiny.npz", {}),
    "vgg16": ("zoo/vgg16.onnx", "zoo/vgg16.npz", {}),
    "inception_v3": ("zoo/inception_v3.onnx", "zoo/inception_v3.npz", {}),
    "vit_b_16": ("zoo/vit_b_16.onnx", "zoo/vit_b_16.npz", {}),
    "yolov8n_like": ("zoo/yolov8n_like.onnx", "zoo/yolov8n_like.npz", {}),
    "unet": ("zoo/unet.onnx", "zoo/unet.npz", {}),
    "ppocr_det_320": ("models/ppocr_det.onnx", "models/ppocr_det_320.npz", {"x": "1x3x320x320"}),
    "ppocr_det_640": ("models/ppocr_det.onnx", "models/ppocr_det_640.npz", {"x": "1x3x640x640"}),
    "ppocr_rec_160": ("models/ppocr_rec.onnx", "models/ppocr_rec_160.npz", {"x": "1x3x48x160"}),
    "ppocr_rec_320": ("models/ppocr_rec.onnx", "models/ppocr_rec_320.npz", {"x": "1x3x48x320"}),
    # One library for several widths; the input picks its plan.
    "ppocr_rec_widths_160": ("models/ppocr_rec.onnx", "models/ppocr_rec_160.npz", {"x": "1x3x48x{320,160}"}),
    "ppocr_rec_widths_320": ("models/ppocr_rec.onnx", "models/ppocr_rec_320.npz", {"x": "1x3x48x{320,160}"}),
    "espcn": ("zoo/espcn.onnx", "zoo/espcn.npz", {}),
    "mlp": ("zoo/mlp.onnx", "zoo/mlp.npz", {}),
    "speech_lstm_gru": ("zoo/speech_lstm_gru.onnx", "zoo/speech_lstm_gru.npz", {}),
    "speech_encoder": ("zoo/speech_encoder.onnx", "zoo/speech_encoder.npz", {}),
    "temporal_net": ("zoo/temporal_net.onnx", "zoo/temporal_net.npz", {}),
    "conformer": ("zoo/conformer.onnx", "zoo/conformer.npz", {}),
    "separable_speech": ("zoo/separable_speech.onnx", "zoo/separable_speech.npz", {}),
    "vocoder": ("zoo/vocoder.onnx", "zoo/vocoder.npz", {}),
    "vit_small": ("zoo/vit_small.onnx", "zoo/vit_small.npz", {}),
    "language_model": ("zoo/language_model.onnx", "zoo/language_model.npz", {}),
    "transcriber": ("zoo/transcriber.onnx", "zoo/transcriber.npz", {}),
    "text_model": ("zoo/text_model.onnx", "zoo/text_model.npz", {}),
    "windowed": ("zoo/windowed.onnx", "zoo/windowed.npz", {}),
    "heartbeat": ("zoo/heartbeat.onnx", "zoo/heartbeat.npz", {}),
    "ppocr_cls": ("models/ppocr_cls.onnx", "models/ppocr_cls.npz", {"x": "1x3x48x192"}),
    "efficientnet_lite0": ("models/efficientnet_lite0.onnx", "models/efficientnet_lite0.npz", {}),
    "minilm": ("models/minilm.onnx", "models/minilm.npz", TOKENS),
    "minilm_16": ("models/minilm_16.onnx", "models/minilm_16.npz", {}),
    "minilm_128": ("models/minilm_128.onnx", "models/minilm_128.npz", {}),
    "silero_vad_static": ("models/silero_vad_static.onnx", "models/silero_vad_static.npz", {}),
}


class Wrong(Exception):
    """The model does not work; the text says how."""


def call(command, seconds):
    try:
        result = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{command[1]} took more than {seconds} s") from None
    if result.returncode != 0:
        lines = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()
        raise Wrong(f"{command[1]} ended with {result.returncode}: {lines[0][:300]}")
    return result.stdout


def check(tool, model, reference, shapes, threads, seconds):
    """Returns (compile seconds, inference ms, error as a share of what is allowed); raises Wrong."""
    import numpy as np

    arrays = np.load(reference)
    with tempfile.TemporaryDirectory() as scratch:
        artifact, outputs = pathlib.Path(scratch, "model.so"), pathlib.Path(scratch, "outputs.npz")
        started = time.monotonic()
        call([tool, "compile", model, "-o", artifact, *(f"--shape={n}={d}" for n, d in shapes.items())], seconds)
        compiled = time.monotonic() - started
        inputs = []
        for index, name in enumerate(name for name in arrays if name.startswith("input_")):
            np.save(f"{scratch}/{index}.npy", arrays[name])
            inputs.append(f"--input={name.removeprefix('input_')}=@{scratch}/{index}.npy")
        facts = json.loads(call([tool, "run", artifact, *inputs, f"--output=@{outputs}", "--json", "--repeat=3",
                                 f"--threads={threads}"], seconds))
        got = np.load(outputs)
        worst = 0.0
        for name in (name for name in arrays if name.startswith("output_")):
            key = name.removeprefix("output_")
            if key not in got and name not in got:
                raise Wrong(f"output {key} is missing; there are {', '.join(got)}")
            value, want = got[key if key in got else name], arrays[name]
            if value.shape != want.shape or value.dtype != want.dtype:
                raise Wrong(f"output {key} is {value.dtype}{list(value.shape)}, not {want.dtype}{list(want.shape)}")
            if not np.array_equal(np.isfinite(value), np.isfinite(want)):
                raise Wrong(f"output {key} is not finite where it should be")
            value, want = value.astype(np.float64), want.astype(np.float64)
            allowed = 1e-4 * np.max(np.abs(want), initial=0) + 1e-3 * np.abs(want)
            worst = max(worst, float(np.max(np.abs(value - want) / np.maximum(allowed, 1e-30), initial=0)))
        if worst > 1:
            raise Wrong(f"outputs differ: {worst:.3g} times what is allowed")
        return compiled, facts["min_ms"], worst


def enter_environment(*modules):
    """Goes on in the environment of the tests if this python lacks one of the modules; False if there is no such environment."""
    python = CACHE / "venv/bin/python"
    if any(importlib.util.find_spec(module) is None for module in modules):
        if not python.exists() or pathlib.Path(sys.prefix) == python.parents[1]:
            return False
        os.execv(python, [str(python), *sys.argv])
    return True


def read_expected():
    lines = EXPECTED_FAILURES.read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def main():
    parser = argparse.ArgumentParser(description="Compare compiled models with onnxruntime's outputs.")
    parser.add_argument("names", nargs="*", metavar="MODEL")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each step")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODELS))
        return 0
    if not enter_environment("numpy"):
        print("skipped: numpy is not there; ./dev models test makes .cache/venv, which has it")
        return SKIPPED
    if not args.tool.exists():
        parser.error(f"{args.tool} is not there; ./dev build makes it")
    expected, wrong, missing, done = read_expected(), 0, 0, 0
    for name in args.names or MODELS:
        path = pathlib.Path(name)
        if path.suffix == ".onnx":
            model, reference, shapes = path, path.with_suffix(".npz"), {}
        elif name in MODELS:
            model, reference, shapes = CACHE / MODELS[name][0], CACHE / MODELS[name][1], MODELS[name][2]
        else:
            parser.error(f"no model {name}; --list prints the names")
        if not model.exists() or not reference.exists():
            missing += 1
            print(f"skipped  {name}: {model if not model.exists() else reference} is not there; "
                  f"./dev {'zoo' if '/zoo/' in str(model) else 'models test'} makes it", flush=True)
            continue
        done += 1
        try:
            compiled, milliseconds, error = check(args.tool, model, reference, shapes, args.threads, args.timeout)
            late = name in expected
            print(f"passed   {name}: compiled in {compiled:.1f} s, {milliseconds:.2f} ms, error {error:.2g} of what is allowed"
                  + (f"; take it off {EXPECTED_FAILURES.name}" if late else ""), flush=True)
            wrong += late
        except Wrong as failure:
            print(f"{'expected' if name in expected else 'FAILED  '} {name}: {failure}", flush=True)
            wrong += name not in expected
    if len(args.names) != 1:
        print(f"{done - wrong} as expected, {wrong} not, {missing} skipped")
    return 1 if wrong else SKIPPED if not done else 0


if __name__ == "__main__":
    sys.exit(main())
