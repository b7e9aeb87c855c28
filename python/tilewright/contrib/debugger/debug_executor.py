# SPDX-License-Identifier: Apache-2.0
"""The debug executor: times, tensors and a trace of every node."""
from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from ...runtime.module import Module, load_module, save_param_dict
from ...runtime.ndarray import NDArray, cpu
from ..graph_executor import GraphModule


class GraphModuleDebug(GraphModule):
    """A GraphModule whose `run` writes what happened to a folder: the graph, the outputs of every node, a Chrome trace."""

    def __init__(self, module: Module, device: Any = None, graph_json_str: str | None = None, dump_root: str | None = None):
        super().__init__(module)
        self._graph = json.loads(graph_json_str) if graph_json_str else None
        self._dump_root = dump_root
        self._dump_path: str | None = None

    @property
    def dump_path(self) -> str:
        """The folder that run() writes to."""
        if self._dump_path is None:
            root = tempfile.mkdtemp(prefix="tvmdbg_", dir=self._dump_root)
            self._dump_path = os.path.join(root, "_tvmdbg_device_CPU_0")
            os.makedirs(self._dump_path)
        return self._dump_path

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return self._graph["nodes"] if self._graph else []

    def run(self, number: int = 10, repeat: int = 1, **inputs: Any) -> None:
        """Runs with a clock around every step, dumps, and prints the table."""
        if inputs:
            self.set_input(**inputs)
        self._run()
        outputs = {node["name"]: self.debug_get_output(node["name"]) for node in self.nodes if node["op"] != "null"}
        self._write("_tvmdbg_graph_dump.json", json.dumps(self._graph, indent=1))
        with open(os.path.join(self.dump_path, "output_tensors.params"), "wb") as file:
            file.write(save_param_dict(outputs))
        self._write("_tvmdbg_execution_trace.json", self.profile(number, "trace"))
        self._run()  # the outputs are those of a whole run again
        print(self.profile(number, "table"))

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.dump_path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_individual(self, number: int, repeat: int = 1, min_repeat_ms: int = 0, limit_zero_time_iterations: int = 100,
                       cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1) -> list[list[float]]:
        """Seconds of every node in every repeat; 0 for inputs and weights."""
        return self.module["run_individual"](number, repeat)

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """Runs up to a node and gives its first output, in the layout the kernels use."""
        if out is None:
            return self.module["debug_get_output"](node)
        self.module["debug_get_output"](node, out)
        return out

    def execute_node(self, node: int | str) -> None:
        self.module["execute_node"](node)

    def get_node_output(self, node: int | str, output: int = 0) -> NDArray:
        return self.module["get_node_output"](node, output)

    def exit(self) -> None:
        """Removes the folder that run() wrote."""
        if self._dump_path:
            import shutil
            shutil.rmtree(os.path.dirname(self._dump_path), ignore_errors=True)
            self._dump_path = None


def create(graph_json_str: str, libmod: Any, device: Any = None, dump_root: str | None = None) -> GraphModuleDebug:
    library = libmod if isinstance(libmod, Module) else getattr(libmod, "module", None) or load_module(libmod)
    return GraphModuleDebug(library["debug_create"]("default", device or cpu()), device, graph_json_str, dump_root)


__all__ = ["GraphModuleDebug", "create"]
