# SPDX-License-Identifier: Apache-2.0
"""One model built in several ways, timed in turns on one thread: builds.py MODEL.onnx[:N=SIZE,...]... [--rounds N] [--compilers gcc,clang-19]

For each model: the graph executor, the ahead-of-time executor and C source by each compiler, all for one processor with AVX2, by least times
of one run; and the workspace of the ahead-of-time program beside the most bytes that are live at once, below which no plan can be."""
import argparse
import os
import tempfile

os.environ["TILEWRIGHT_NUM_THREADS"] = "1"  # before the runtime counts the processors

import numpy as np
import onnx

import tilewright.classic as tvm
from tilewright.classic import relay
from tilewright.classic.contrib import graph_executor
from tilewright.classic.relay.backend import Executor, Runtime
from tilewright.classic.ir.memory_pools import WorkspaceMemoryPools, WorkspacePoolInfo
from tilewright.classic.runtime.executor import AotModule
from tilewright.classic.usmp import PoolAllocation

PROCESSOR = "haswell"


def load(text):
    path, _, shapes = text.partition(":")
    sizes = dict(pair.split("=") for pair in shapes.split(",") if pair)
    mod, params = relay.frontend.from_onnx(onnx.load(path), {name: [int(d) for d in size.split("x")] for name, size in sizes.items()} or None)
    return os.path.basename(path).removesuffix(".onnx"), mod, params


def inputs_of(module, rng):
    shapes, dtypes = module.get_input_info()
    return {name: (rng.integers(0, 100, shape) if np.dtype(dtypes[name]).kind in "iu" else rng.standard_normal(shape)).astype(dtypes[name]) for name, shape in shapes.items()}


def executor_of(path, ahead):
    module = tvm.runtime.load_module(path)["default"](tvm.cpu())
    return AotModule(module) if ahead else graph_executor.GraphModule(module)


def libraries(mod, params, folder, compilers):
    """(name, path, whether ahead of time) of each build."""
    builds = [("llvm graph", f"llvm -mcpu={PROCESSOR}", Executor("graph"), None), ("llvm aot", f"llvm -mcpu={PROCESSOR}", Executor("aot"), None)]
    builds += [(f"c {compiler}", f"c -mcpu={PROCESSOR}", Executor("graph"), compiler) for compiler in compilers]
    for i, (name, target, executor, compiler) in enumerate(builds):
        if compiler:
            os.environ["CC"] = compiler
        path = os.path.join(folder, f"{i}.so")
        relay.build(mod, target, executor=executor, params=params).export_library(path)
        yield name, path, executor.name == "aot"


def workspace(mod, params):
    """(bytes of a program's workspace, most bytes live at once)."""
    pressure = []

    @tvm.register_func("tir.usmp.algo.bench_pressure", override=True)
    def note(buffers, live):
        pressure.append(live)
        places, at = {}, 0
        for buffer in buffers:
            places[buffer], at = PoolAllocation(buffer.pool_candidates[0], at), at + -(-buffer.size_bytes // 64) * 64
        return places
    pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [])])
    sizes = []
    for config in ({"tir.usmp.custom_algorithm": "bench_pressure"}, {"tir.usmp.algorithm": "greedy_by_size"}, {"tir.usmp.algorithm": "hill_climb"}):
        with tvm.transform.PassContext(opt_level=3, config=config):
            lib = relay.build(mod, "c", executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}), runtime=Runtime("crt"), params=params, workspace_memory_pools=pools)
        sizes.append(next(iter(lib.executor_codegen_metadata.pool_inputs.values())).allocated_size)
    return sizes[1:], pressure[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--compilers", default="gcc,clang-19")
    args = parser.parse_args()
    for text in args.models:
        name, mod, params = load(text)
        with tempfile.TemporaryDirectory() as folder:
            engines = [(label, executor_of(path, ahead)) for label, path, ahead in libraries(mod, params, folder, [c for c in args.compilers.split(",") if c])]
            given = inputs_of(engines[0][1], np.random.default_rng(0))
            outputs = []
            for _, engine in engines:
                engine.set_input(**given)
                engine.run()
                outputs.append(engine.get_output(0).numpy())
            for got in outputs[1:]:
                np.testing.assert_allclose(got, outputs[0], rtol=1e-3, atol=1e-3)
            best = [float("inf")] * len(engines)
            for _ in range(args.rounds):
                for i, (_, engine) in enumerate(engines):
                    best[i] = min(best[i], *engine.module.time_evaluator("run", tvm.cpu(), number=1, repeat=5)().results)
            print(name + ":", ", ".join(f"{label} {1e3 * b:.4g} ms ({b / best[0]:.3f})" for (label, _), b in zip(engines, best)), flush=True)
            sizes, live = workspace(mod, params)
            print(f"    workspace {' / '.join(map(str, sizes))} bytes (greedy_by_size / hill_climb), {live} live at once ({min(sizes, default=0) / max(live, 1):.3f})", flush=True)


if __name__ == "__main__":
    main()
