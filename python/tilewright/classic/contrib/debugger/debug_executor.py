# SPDX-License-Identifier: Apache-2.0
"""The debug executor: run time, outputs and a trace of every node."""
from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from ...error import InvalidValue
from ...registry import get_global_func, register_for_objects
from ...runtime.module import BenchmarkResult, Module, load_module
from ...runtime.ndarray import Device, NDArray, cpu
from ...runtime.profiling import Report
from .. import graph_of_kernels
from ..graph_executor import GraphModule, checked, has_graph
from .debug_result import DebugResult

_FOLDER = "_tvmdbg_device_CPU_0"


class GraphModuleDebug(GraphModule):
    """A GraphModule whose `run` also writes a folder with the graph, the outputs of every node and a Chrome trace. The folder is
    dump_root/_tvmdbg_device_CPU_0; without dump_root it is a temporary folder, which exit() removes."""

    def __init__(self, module: Module, device: Any = None, graph_json_str: str | dict[str, Any] | None = None, dump_root: str | None = None):
        super().__init__(module)
        self._graph = json.loads(graph_json_str) if isinstance(graph_json_str, (str, bytes)) else graph_json_str
        self._dump_root, self._made_root = dump_root, ""
        self._datum: DebugResult | None = None
        if self._graph is not None:  # the graph is there at once
            self.debug_datum.dump_graph_json()

    @property
    def dump_path(self) -> str:
        """The folder that run() writes to."""
        if self._dump_root is None:
            self._dump_root = self._made_root = tempfile.mkdtemp(prefix="tvmdbg_")
        path = os.path.join(self._dump_root, _FOLDER)
        os.makedirs(path, exist_ok=True)
        return path

    _dump_path = dump_path

    @property
    def debug_datum(self) -> DebugResult:
        if self._datum is None:
            if self._graph is None:
                raise ValueError("the executor was made without its graph: debug_executor.create(graph_json, lib, device)")
            self._datum = DebugResult(self._graph, self.dump_path)
        return self._datum

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return self._graph["nodes"] if self._graph else []

    def run(self, number: int = 10, repeat: int = 1, min_repeat_ms: int = 1, limit_zero_time_iterations: int = 100, cooldown_interval_ms: int = 0,
            repeats_to_cooldown: int = 1, sort_by_time: bool = True, **inputs: Any) -> None:
        """Runs node by node, keeps every output, times each node, writes the dump and prints the table."""
        if inputs:
            self._set_named(inputs)
        datum, outputs = self.debug_datum, {}
        for i, node in enumerate(self.nodes):
            if node["op"] != "null":
                self.execute_node(i)
                for j in range(datum.get_graph_node_output_num(node)):
                    outputs[f"{node['name']}____{j}"] = self.get_node_output(i, j)
        datum.update_output_tensors(outputs)
        datum.update_times(self.run_individual(number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown))
        self._run()  # leaves the outputs of a complete run
        datum.dump_output_tensor()
        datum.dump_chrome_trace()
        datum.display_debug_result(sort_by_time)

    def run_individual(self, number: int, repeat: int = 1, min_repeat_ms: int = 0, limit_zero_time_iterations: int = 100,
                       cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1) -> list[list[float]]:
        """Seconds of every node in every repeat; 0 for inputs and weights."""
        return self.module["run_individual"](number, repeat)

    def run_individual_node(self, index: int, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0, limit_zero_time_iterations: int = 100,
                            cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1) -> BenchmarkResult:
        """Seconds of one node, on its current inputs."""
        timed = get_global_func("runtime.TimeEvaluator")(self.module["execute_node"]._function, number, repeat, min_repeat_ms, cooldown_interval_ms,
                                                         repeats_to_cooldown)
        return BenchmarkResult.of(timed(index))

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """Runs up to a node and returns its first output, in the layout that the kernels use."""
        if out is None:
            return self.module["debug_get_output"](node)
        self.module["debug_get_output"](node, out)
        return out

    def execute_node(self, node: int | str) -> None:
        """Runs one node on its current inputs."""
        self.module["execute_node"](node)

    def get_node_output(self, node: int | str, output: int = 0) -> NDArray:
        """A node's output as currently in memory."""
        return self.module["get_node_output"](node, output)

    def profile_rpc(self, **inputs: Any) -> Report:
        return self.profile(**inputs)

    def exit(self) -> None:
        """Removes the folder written by run()."""
        import shutil
        if self._made_root:
            shutil.rmtree(self._made_root, ignore_errors=True)
            self._dump_root, self._made_root = None, ""
        elif self._dump_root is not None:
            shutil.rmtree(os.path.join(self._dump_root, _FOLDER), ignore_errors=True)
        self._datum = None


def create(graph_json_str: Any, libmod: Any = None, device: Any = None, dump_root: str | None = None) -> GraphModuleDebug:
    """`create(graph_json, lib, dev)`, or of a factory `create(lib.get_graph_json(), lib, dev)`. ValueError: the JSON belongs to another
    library."""
    graph_json_str, device = checked(graph_json_str, device)
    library = libmod if isinstance(libmod, Module) else getattr(libmod, "module", None) or load_module(libmod)
    if not has_graph(library):
        return GraphModuleDebug(graph_of_kernels.create(graph_json_str, library, device or cpu(), debug=True), device, graph_json_str, dump_root)
    try:
        same = json.loads(graph_json_str) == json.loads(library["get_graph_json"]())
    except ValueError:
        raise InvalidValue("the graph JSON is damaged") from None
    if not same:
        raise InvalidValue("the graph JSON is of another library; machine code and graph of the classic stack cannot be run, compile the model again")
    return GraphModuleDebug(library["debug_create"]("default", device or cpu()), device, graph_json_str, dump_root)


register_for_objects("tvm.graph_executor_debug.create", lambda graph, library, *places: create(graph, library, Device(*places[:2])).module)


__all__ = ["GraphModuleDebug", "create"]
