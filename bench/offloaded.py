#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network all of whose parts that oneDNN takes run there, beside OpenVINO and our own kernels: a fresh process per measurement, in turns.

    PYTHONPATH=build/python .cache/venv/bin/python bench/offloaded.py [resnet50] [--threads 1] [--rounds 5] [--seconds 2] [--peers openvino,ort]

`oneDNN` is a library with modules for the plug-in, `oneDNN in C` one with C source that calls oneDNN, `kernels` our own. Printed is the median over the
rounds of each round's least time, and that of each row by the peer's. Networks and references are bench/run.py's."""
from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

import onnx

import run as table
from tilewright.classic import relay, transform
from tilewright.classic.relay.op.contrib.dnnl import partition_for_dnnl

PLUGIN = table.ROOT / "build/libtilewright_dnnl.so"


def build(model: pathlib.Path, folder: pathlib.Path) -> dict[str, tuple[pathlib.Path, list[str]]]:
    """The libraries, with the options to run them."""
    mod, params = relay.frontend.from_onnx(onnx.load(str(model)), freeze_params=True)
    parts = partition_for_dnnl(mod, params)
    functions = [v.name_hint for v in parts.get_global_vars() if v.name_hint != "main"]
    print(f"{len(functions)} functions of oneDNN", flush=True)
    made = {}
    for label, module, codegen, options in (("oneDNN", parts, "json", [f"--plugin={PLUGIN}"]), ("oneDNN in C", parts, "c_src", []), ("kernels", mod, "json", [])):
        path = folder / f"{label.replace(' ', '_')}.so"
        with transform.PassContext(opt_level=3, config={"relay.ext.dnnl.options": {"codegen": codegen}}):
            relay.build(module, "llvm", params=params).export_library(str(path))
        made[label] = (path, options)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="resnet50")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--peers", default="openvino")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # oneDNN's threads
    try:
        _, model, reference, _ = table.locate(arguments.name, {})
    except table.Failure as failure:
        sys.exit(str(failure))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        libraries = build(model, folder)
        inputs = table.unpack(reference, folder)
        rounds: dict[str, list[dict]] = {}
        for _ in range(arguments.rounds):
            for label, (path, options) in libraries.items():
                rounds.setdefault(label, []).append(table.run_ours(path, [*inputs, *options], reference, arguments.threads, arguments.seconds, folder))
            for peer in arguments.peers.split(","):
                rounds.setdefault(peer, []).append(table.run_peer(peer, model, reference, arguments.threads, arguments.seconds))
    failed = [f"{label}: {entry['failed']}" for label, entries in rounds.items() for entry in entries if "failed" in entry]
    if failed:
        sys.exit(failed[0])
    times = {label: statistics.median(entry["min_ms"] for entry in entries) for label, entries in rounds.items()}
    peers = arguments.peers.split(",")
    print(f"{arguments.name}, threads {arguments.threads}\n{'':14}{'ms':>9}{'rounds':>32}" + "".join(f"{'by ' + peer:>14}" for peer in peers) + f"{'error':>9}")
    for label, entries in rounds.items():
        each = " ".join(f"{entry['min_ms']:.1f}" for entry in entries)
        print(f"{label:14}{times[label]:9.2f}  {each:>30}" + "".join(f"{times[label] / times[peer]:14.3f}" for peer in peers) + f"{max(e['error'] for e in entries):9.3f}")


if __name__ == "__main__":
    main()
