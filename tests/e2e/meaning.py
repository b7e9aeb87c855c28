#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What compiled models say about real input: the names of pictures, the closeness of sentences, the text of a page.

    tests/e2e/meaning.py pictures|sentences|speech|page

Exit code: 0 right, 1 wrong, 77 a model or picture is missing (./dev models test fetches them).
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import models

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
SKIPPED = 77
# Picture, and the classes of which one must be named first.
PICTURES = (("cat.png", {"tabby", "tiger cat", "Egyptian cat"}), ("coffee.png", {"espresso"}),
            ("rocket.jpg", {"missile", "projectile"}))
CLOSE = (("A cat sits on the mat.", "A kitten is resting on a rug."),
         ("The stock market fell sharply today.", "Share prices dropped a lot this afternoon."),
         ("How do I reset my password?", "I forgot my login and need a new one."))
PAGE_LINES = ("Region-based segmentation", "Let us first determine markers of the coins and the",
              "unambiguously as either object or background")


class Stopped(Exception):
    """A program failed; the text says which and how."""


def call(*command):
    result = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        raise Stopped(f"{pathlib.Path(str(command[0])).name} {command[1]} ended with {result.returncode}: "
                      f"{(result.stderr or result.stdout).strip()[:600]}")
    return result.stdout


def need(*names):
    paths = [CACHE / name for name in names]
    for path in paths:
        if not path.exists():
            print(f"skipped: {path} is not there; ./dev models test fetches it")
            sys.exit(SKIPPED)
    return paths


def pictures(tool, scratch):
    model, *files = need("models/efficientnet_lite0.onnx", *(f"pictures/{name}" for name, _ in PICTURES))
    artifact = scratch / "model.so"
    call(tool, "compile", model, "-o", artifact, "-q")
    wrong = 0
    for file, (name, classes) in zip(files, PICTURES):
        facts = json.loads(call(tool, "run", artifact, "--json", "--top", 3,
                                "--input", f"@{file},short=256,crop=224,scale=1,mean=127,std=128"))
        top = facts["outputs"][0]["top"]
        best = {entry["label"] for entry in top}
        print(f"{name}: " + ", ".join(f"{entry['label']} {entry['value']:.2f}" for entry in top))
        wrong += top[0]["label"] not in classes or not best & classes
    return wrong


def sentences(tool, scratch):
    """Every sentence must be closer to its partner than to any other one."""
    import numpy as np
    import tokenizers

    model, vocabulary = need("models/minilm.onnx", "models/minilm_tokenizer.json")
    artifact = scratch / "model.so"
    shapes = [f"--shape={name}=1x32" for name in ("input_ids", "attention_mask", "token_type_ids")]
    call(tool, "compile", model, "-o", artifact, "-q", *shapes)
    tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
    tokenizer.enable_padding(length=32)
    tokenizer.enable_truncation(32)
    vectors = []
    for text in (sentence for pair in CLOSE for sentence in pair):
        tokens = tokenizer.encode(text)
        np.savez(scratch / "in.npz", input_ids=np.array([tokens.ids]), attention_mask=np.array([tokens.attention_mask]),
                 token_type_ids=np.array([tokens.type_ids]))
        call(tool, "run", artifact, "--input", f"@{scratch}/in.npz", "--output", f"@{scratch}/out.npz")
        vectors.append(np.load(scratch / "out.npz")["sentence_embedding"][0])
    closeness = np.array(vectors) @ np.array(vectors).T
    wrong = 0
    for i in range(len(vectors)):
        partner = i ^ 1
        others = [closeness[i, j] for j in range(len(vectors)) if j not in (i, partner)]
        print(f"partner {closeness[i, partner]:.2f}, closest other {max(others):.2f}, length {math.sqrt(closeness[i, i]):.5f}")
        wrong += closeness[i, partner] < max(others) + 0.1 or abs(closeness[i, i] - 1) > 1e-4
    return wrong


def speech(tool, scratch):
    """The detector must find silence and noise improbable; its state must be carried and change."""
    import numpy as np

    (model,) = need("models/silero_vad_static.onnx")
    artifact = scratch / "model.so"
    call(tool, "compile", model, "-o", artifact, "-q")
    rng = np.random.default_rng(3)
    wrong = 0
    for name, sound in (("silence", np.zeros(576 * 8)), ("faint noise", 0.01 * rng.standard_normal(576 * 8))):
        state, probabilities = np.zeros((2, 1, 128), np.float32), []
        for chunk in sound.astype(np.float32).reshape(8, 1, 576):
            np.savez(scratch / "in.npz", input=chunk, state=state)
            call(tool, "run", artifact, "--input", f"@{scratch}/in.npz", "--output", f"@{scratch}/out.npz")
            out = np.load(scratch / "out.npz")
            (probability,) = (out[key] for key in out if out[key].size == 1)
            (following,) = (out[key] for key in out if out[key].shape == state.shape)
            wrong += bool(np.array_equal(following, state))
            state = following
            probabilities.append(float(probability.reshape(-1)[0]))
        print(f"{name}: highest probability of speech {max(probabilities):.3f}")
        wrong += max(probabilities) > 0.3
    return wrong


def page(tool, scratch):
    detector, classifier, recogniser, picture = need("models/ppocr_det.onnx", "models/ppocr_cls.onnx",
                                                     "models/ppocr_rec.onnx", "pictures/page.png")
    parts = (("det", detector, "1x3x384x768"), ("cls", classifier, "1x3x48x192"), ("rec", recogniser, "1x3x48x640"))
    for name, model, shape in parts:
        call(tool, "compile", model, "-o", scratch / f"{name}.so", "-q", "--shape", f"x={shape}")
    text = call(tool.with_name("read_page"), *(scratch / f"{name}.so" for name, _, _ in parts), picture,
                "-o", scratch / "boxes.png")
    print(text)
    squeezed = text.replace(" ", "")
    missing = [line for line in PAGE_LINES if line.replace(" ", "") not in squeezed]
    if missing:
        print(f"not found: {missing}")
    return len(missing) + (not (scratch / "boxes.png").exists())


TESTS = {test.__name__: test for test in (pictures, sentences, speech, page)}


def main():
    parser = argparse.ArgumentParser(description="Check what compiled models say about real input.")
    parser.add_argument("test", choices=TESTS)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tilewright")
    args = parser.parse_args()
    python = CACHE / "venv/bin/python"
    if pathlib.Path(sys.prefix) != python.parents[1]:
        need("venv/bin/python")
        os.execv(python, [str(python), *sys.argv])
    with tempfile.TemporaryDirectory() as scratch:
        try:
            wrong = TESTS[args.test](args.tool.resolve(), pathlib.Path(scratch))
        except Stopped as failure:
            print(failure)
            wrong = 1
    print("right" if not wrong else f"{wrong} wrong")
    if f"meaning.{args.test}" in models.read_expected():
        print(f"it is listed in {models.EXPECTED_FAILURES.name}" + ("" if wrong else ": take it off"))
        return 0 if wrong else 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
