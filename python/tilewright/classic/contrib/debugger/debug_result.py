# SPDX-License-Identifier: Apache-2.0
"""The data of a debug run: the graph, every node's times and outputs."""
from __future__ import annotations

import json
import os
from typing import Any

from ...runtime.module import save_param_dict
from ...runtime.ndarray import NDArray

GRAPH_DUMP_FILE_NAME = "_tvmdbg_graph_dump.json"
CHROME_TRACE_FILE_NAME = "_tvmdbg_execution_trace.json"
TENSOR_DUMP_FILE_NAME = "output_tensors.params"


class DebugResult:
    """Tensors are named "node____output"."""

    def __init__(self, graph_json: dict[str, Any], dump_path: str):
        self._graph = graph_json
        self._dump_path = dump_path
        self._outputs: dict[str, NDArray] = {}
        self._times: list[list[float]] = []
        self._shapes, self._dtypes = graph_json["attrs"]["shape"][1], graph_json["attrs"]["dltype"][1]
        self._rows = graph_json["node_row_ptr"]

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        return self._graph["nodes"]

    def get_graph_node_shapes(self) -> list[list[int]]:
        return self._shapes

    def get_graph_node_dtypes(self) -> list[str]:
        return self._dtypes

    def get_graph_node_output_num(self, node: dict[str, Any]) -> int:
        return 1 if node["op"] == "null" else int(node["attrs"]["num_outputs"])

    def get_output_tensors(self) -> dict[str, NDArray]:
        """The output tensors of the last run."""
        return dict(self._outputs)

    def update_output_tensors(self, tensors: dict[str, NDArray]) -> None:
        self._outputs = tensors

    def update_times(self, seconds: list[list[float]]) -> None:
        """Sets the times of each node, one per repeat."""
        self._times = seconds

    def _write(self, name: str, data: bytes) -> None:
        with open(os.path.join(self._dump_path, name), "wb") as file:
            file.write(data)

    def dump_graph_json(self, graph: dict[str, Any] | None = None) -> None:
        """Writes the graph with nodes as a reader of outputs wants them: `op` is the kernel, or "param", `inputs` are names, and each has its shape."""
        shown = graph or {**self._graph, "nodes": [self._shown(i, node) for i, node in enumerate(self.get_graph_nodes())]}
        self._write(GRAPH_DUMP_FILE_NAME, json.dumps(shown, indent=4, sort_keys=False).encode())

    def _shown(self, index: int, node: dict[str, Any]) -> dict[str, Any]:
        first, inputs = int(self._rows[index]), [self.get_graph_nodes()[int(place[0])]["name"] for place in node["inputs"]]
        attrs = {**node.get("attrs", {}), "T": f"type: {self._dtypes[first]}"}
        return {**node, "op": "param" if node["op"] == "null" else attrs["func_name"], "inputs": inputs, "attrs": attrs, "shape": list(self._shapes[first])}

    def dump_output_tensor(self) -> None:
        self._write(TENSOR_DUMP_FILE_NAME, save_param_dict(self._outputs))

    def dump_chrome_trace(self) -> None:
        """One run as a Chrome trace: the nodes one after the other, with their mean times."""
        events, now = [], 0.0
        for node, seconds in zip(self.get_graph_nodes(), self._times):
            if node["op"] == "null":
                continue
            took = 1e6 * sum(seconds) / len(seconds)
            for phase, at in (("B", now), ("E", now + took)):
                events.append({"ts": at, "ph": phase, "pid": 1, "tid": 1, "name": node["name"],
                               **({"args": {"op": node["attrs"]["func_name"]}} if phase == "B" else {})})
            now += took
        self._write(CHROME_TRACE_FILE_NAME, json.dumps({"displayTimeUnit": "ns", "traceEvents": events}).encode())

    def _table(self, sort_by_time: bool) -> tuple[list[str], list[list[Any]]]:
        """The table's header and rows, one row per output of each call."""
        header = ["Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs", "Measurements(us)"]
        mean = [sum(t) / len(t) if t else 0.0 for t in self._times]
        total, rows = sum(mean) or 1.0, []
        for i, node in enumerate(self.get_graph_nodes()):
            if node["op"] == "null" or i >= len(mean):
                continue
            for j in range(self.get_graph_node_output_num(node)):
                rows.append([node["name"], node["attrs"]["func_name"], round(1e6 * mean[i], 3), round(100 * mean[i] / total, 3),
                             str(tuple(self._shapes[self._rows[i] + j])), int(node["attrs"]["num_inputs"]), self.get_graph_node_output_num(node),
                             str([round(1e6 * t, 3) for t in self._times[i]])])
        if sort_by_time:
            rows.sort(key=lambda row: -row[2])
        return header, [*rows, ["Total_time", "-", round(1e6 * sum(mean), 3), "-", "-", "-", "-", "-"]]

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """The table: lines of columns, each followed by two spaces or more."""
        header, rows = self._table(sort_by_time)
        cells = [header, ["-" * len(h) for h in header], *([str(c) for c in row] for row in rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
        return "\n".join("".join(f"{cell:<{w}}  " for cell, w in zip(line, widths)) for line in cells)

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        print(self.get_debug_result(sort_by_time))

    def exit(self) -> None:
        import shutil
        shutil.rmtree(self._dump_path, ignore_errors=True)


__all__ = ["DebugResult"]
