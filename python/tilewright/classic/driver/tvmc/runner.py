# SPDX-License-Identifier: Apache-2.0
"""Runs packages."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import rpc
from ...contrib.graph_executor import GraphModule
from ...runtime.executor import AotModule
from ...runtime.ndarray import cpu
from .common import TVMCException
from .micro import run_on_device
from .model import TVMCPackage, TVMCResult


def get_input_info(module: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    return module.get_input_info()


def generate_tensor_data(shape: Any, dtype: str, fill_mode: str) -> np.ndarray:
    """"zeros", "ones" or "random" data. Error: TVMCException."""
    if fill_mode in ("zeros", "ones"):
        return getattr(np, fill_mode)(shape, dtype)
    if fill_mode != "random":
        raise TVMCException(f"the fill mode '{fill_mode}' is not known; there are zeros, ones, random")
    random = np.random.default_rng()
    if dtype == "int8":  # the classic driver's ranges of random bytes and floats
        return random.integers(-128, 127, shape, dtype)
    if dtype == "uint8":
        return random.integers(0, 255, shape, dtype)
    if dtype.startswith(("int", "uint")):
        return random.integers(0, 2, shape).astype(dtype)
    return random.uniform(size=shape).astype(dtype)


def make_inputs_dict(shape_dict: Mapping[str, Any], dtype_dict: Mapping[str, str], inputs: Mapping[str, Any] | None = None,
                     fill_mode: str = "random") -> dict[str, Any]:
    """The given inputs, completed with generated ones. Error: TVMCException (no such input)."""
    for name in inputs or {}:
        if name not in shape_dict:
            raise TVMCException(f"the model has no input '{name}'; there are {', '.join(shape_dict)}")
    return {name: (inputs or {}).get(name) if name in (inputs or {}) else generate_tensor_data(shape, dtype_dict[name], fill_mode)
            for name, shape in shape_dict.items()}


def run_module(tvmc_package: TVMCPackage, device: str = "cpu", hostname: str | None = None, port: Any = 9090, rpc_key: str | None = None,
               inputs: Mapping[str, Any] | str | None = None, fill_mode: str = "random", benchmark: bool = False, repeat: int = 10, number: int = 10,
               profile: bool = False, end_to_end: bool = False, options: Any = None) -> TVMCResult:
    """Runs the package. inputs: arrays by name, or the path of a .npz. hostname, port: a server of sessions, or with rpc_key a tracker (docs/rpc.md). benchmark: measures `repeat` times `number` runs. Errors: TVMCException,
    tilewright.Error."""
    if not isinstance(tvmc_package, TVMCPackage):
        raise TVMCException("This model doesn't seem to have been compiled yet. Try calling tvmc.compile on the model before running it.")
    if rpc_key and not hostname:
        raise TVMCException("a key is asked for at a tracker: give its host, --rpc-tracker HOST:PORT")
    if device == "micro":
        if tvmc_package.project_dir is None:
            raise TVMCException("the device 'micro' runs a project's model: give its folder (tvmc micro create-project)")
        if isinstance(inputs, str):
            with np.load(inputs) as file:
                inputs = dict(file)
        found, measured = run_on_device(tvmc_package.project_dir, lambda shapes, dtypes: make_inputs_dict(shapes, dtypes, inputs, fill_mode), benchmark, repeat, number)
        return TVMCResult(found, measured)
    if device != "cpu":
        raise TVMCException(f"the device '{device}' does not exist here; models run on the cpu")
    if isinstance(inputs, str):
        with np.load(inputs) as file:
            inputs = dict(file)
    elif isinstance(inputs, np.lib.npyio.NpzFile):
        inputs = dict(inputs)
    library, dev = tvmc_package.lib, cpu()
    if hostname:
        session = rpc.connect_tracker(hostname, port).request(rpc_key) if rpc_key else rpc.connect(hostname, port)
        session.upload(tvmc_package.library_bytes(), tvmc_package.lib_name)
        library, dev = session.load_module(tvmc_package.lib_name), session.cpu()
    made = library["default"](dev)
    graph = GraphModule(made) if tvmc_package.executor_type == "graph" else None
    module = graph or AotModule(made)
    shapes, dtypes = get_input_info(module)
    module.set_input(**make_inputs_dict(shapes, dtypes, inputs, fill_mode))
    report = graph.profile() if profile and graph else None
    module.run()
    times = None
    if benchmark:
        times = graph.benchmark(dev, number=number, repeat=repeat, end_to_end=end_to_end) if graph else made.time_evaluator("run", dev, number, repeat)()
    outputs = {f"output_{i}": module.get_output(i).numpy() for i in range(module.get_num_outputs())}
    return TVMCResult(outputs, times, report)


__all__ = ["generate_tensor_data", "get_input_info", "make_inputs_dict", "run_module"]
