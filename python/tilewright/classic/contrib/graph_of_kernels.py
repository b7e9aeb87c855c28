# SPDX-License-Identifier: Apache-2.0
"""Runs a classic graph JSON whose kernels are functions of any module, for instance of one that `tvm.build` made: node by node, each with the
tensors that the JSON's storage plan gives it."""
from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..error import InvalidValue
from ..runtime.module import Module, create_module, load_param_dict
from ..runtime.ndarray import SESSION_STEP, NDArray, empty

_DEBUG = ("debug_get_output", "execute_node", "get_node_output", "profile", "run_individual")


class NoSuchName(InvalidValue):
    """An input, output or node that the graph does not have."""
    code, name = 504, "UnknownName"


class GraphOfKernels:
    """`graph`: the parsed JSON. InvalidValue: it contradicts itself, or names a kernel that the library does not have."""

    def __init__(self, graph: Any, library: Module, device: Any):
        try:
            self._nodes, self._inputs = graph["nodes"], [int(i) for i in graph["arg_nodes"]]
            attrs = graph["attrs"]
            shapes, dtypes, storage = (attrs[key][1] for key in ("shape", "dltype", "storage_id"))
            starts = list(graph.get("node_row_ptr") or range(len(self._nodes) + 1))
            self._entries = [starts[i] for i in range(len(self._nodes))]
            self._heads = [self._entry(head) for head in graph["heads"]]
            count = starts[len(self._nodes)]
            if not len(shapes) == len(dtypes) == len(storage) == count:
                raise InvalidValue(f"the graph JSON has {count} tensors, but {len(shapes)} shapes, {len(dtypes)} dtypes and {len(storage)} storage ids")
            self._tensors = _tensors(shapes, dtypes, storage, device)
            self._kernels = {i: self._kernel(node, i, library) for i, node in enumerate(self._nodes) if node["op"] != "null"}
        except (KeyError, IndexError, TypeError) as error:
            raise InvalidValue(f"the graph JSON is damaged: {type(error).__name__}: {error}") from error
        self._bound: dict[int, Any] = {}  # tensors of the caller, by their entry
        self._names = [self._nodes[i]["name"] for i in self._inputs]

    def _entry(self, place: Any) -> int:
        node, output = int(place[0]), int(place[1])
        if not 0 <= node < len(self._entries):
            raise IndexError(f"there is no node {node}")
        return int(self._entries[node]) + output

    def _kernel(self, node: Any, index: int, library: Module) -> Callable[[], None]:
        """What running the node does."""
        if node["op"] != "tvm_op":
            raise InvalidValue(f"node {node['name']} of the graph JSON is a '{node['op']}', not a tvm_op")
        attrs = node["attrs"]
        read = [self._entry(place) for place in node["inputs"]]
        written = [int(self._entries[index]) + i for i in range(int(attrs["num_outputs"]))]
        if any(e >= len(self._tensors) for e in [*read, *written]):
            raise IndexError(f"node {node['name']} has tensors that the graph does not have")
        name, flat = attrs["func_name"], int(attrs.get("flatten_data", 0))
        if name == "__nop":
            return lambda: None
        if name == "__copy":
            return lambda: self._tensor(written[0]).copyfrom(self._tensor(read[0]))
        try:
            function = library.get_function(name, True)
        except AttributeError:
            raise InvalidValue(f"no such function in module: {name}") from None

        def run() -> None:
            tensors = [self._tensor(e) for e in [*read, *written]]
            function(*(_flattened(t) for t in tensors) if flat else tensors)
        return run

    def _tensor(self, entry: int) -> Any:
        return self._bound.get(entry, self._tensors[entry])

    def _input(self, key: Any) -> int:
        """The entry of an input, by name or by number."""
        index = self.get_input_index(key) if isinstance(key, str) else int(key)
        if not 0 <= index < len(self._inputs):
            raise NoSuchName(f"the graph has no input {key!r}; it has {', '.join(self._names)}")
        return int(self._entries[self._inputs[index]])

    def _output(self, index: Any) -> int:
        if not 0 <= int(index) < len(self._heads):
            raise NoSuchName(f"the graph has no output {index}; it has {len(self._heads)}")
        return self._heads[int(index)]

    def _node(self, key: Any) -> int:
        names = [node["name"] for node in self._nodes]
        index = names.index(key) if isinstance(key, str) and key in names else -1 if isinstance(key, str) else int(key)
        if not 0 <= index < len(names):
            raise NoSuchName(f"the graph has no node {key!r}")
        return index

    # ---- the executor's functions
    def run(self) -> None:
        for kernel in self._kernels.values():
            kernel()

    def set_input(self, key: Any, value: Any) -> None:
        entry = self._input(key)
        self._bound.pop(entry, None)
        self._tensors[entry].copyfrom(value)

    def set_input_zero_copy(self, key: Any, value: Any) -> None:
        self._bound[self._input(key)] = value

    def set_output_zero_copy(self, index: Any, value: Any) -> None:
        self._bound[self._output(index)] = value

    def get_input(self, key: Any, out: Any = None) -> Any:
        return _given(self._tensor(self._input(key)), out)

    def get_output(self, index: int, out: Any = None) -> Any:
        return _given(self._tensor(self._output(index)), out)

    def get_num_inputs(self) -> int:
        return len(self._inputs)

    def get_num_outputs(self) -> int:
        return len(self._heads)

    def get_input_index(self, name: str) -> int:
        return self._names.index(name) if name in self._names else -1

    def get_output_index(self, name: str) -> int:
        nodes = [node["name"] for node in self._nodes]
        return self._heads.index(int(self._entries[nodes.index(name)])) if name in nodes and int(self._entries[nodes.index(name)]) in self._heads else -1

    def get_input_info(self) -> list[Any]:
        tensors = [self._tensors[int(self._entries[i])] for i in self._inputs]
        return [[name, list(t.shape), str(t.dtype)] for name, t in zip(self._names, tensors)]

    def load_params(self, blob: bytes) -> None:
        for name, value in load_param_dict(blob).items():
            if name in self._names:
                self.set_input(name, value)

    def share_params(self, other: Any, blob: bytes) -> None:
        """The inputs that the blob names are those of the other module, not copies."""
        other = other if isinstance(other, Module) else Module(other)
        for name in load_param_dict(blob):
            if name in self._names:
                self._bound[self._input(name)] = other["get_input"](name)

    # ---- and those of the debugger
    def execute_node(self, key: Any) -> None:
        self._kernels.get(self._node(key), lambda: None)()

    def get_node_output(self, key: Any, output: int = 0) -> Any:
        return self._tensor(int(self._entries[self._node(key)]) + int(output))

    def debug_get_output(self, key: Any, out: Any = None) -> Any:
        for index, kernel in self._kernels.items():
            if index <= self._node(key):
                kernel()
        return _given(self.get_node_output(key), out)

    def run_individual(self, number: int = 10, repeat: int = 1, *_: Any) -> list[list[float]]:
        """Mean seconds of each node in each repeat; 0 for inputs."""
        def seconds(index: int) -> float:
            begin = time.perf_counter()
            for _ in range(number if index in self._kernels else 0):
                self._kernels[index]()
            return (time.perf_counter() - begin) / number if index in self._kernels else 0.0
        return [[seconds(i) for _ in range(repeat)] for i in range(len(self._nodes))]

    def profile(self, repeats: int, form: str) -> str:
        """The time of each kernel, in the form of a profile of a compiled graph (docs/runtime.md); there are no tables and traces."""
        if form != "json":
            return ""
        steps = []
        for index, times in enumerate(self.run_individual(1, repeats)):
            if index not in self._kernels:
                continue
            node = self._nodes[index]
            shapes = ", ".join(f"{t.dtype}{list(t.shape)}" for t in (self._tensor(self._entry(place)) for place in node["inputs"]))
            name = node["attrs"]["func_name"]
            steps.append({"kernel": name, "mean_us": 1e6 * sum(times) / repeats, "min_us": 1e6 * min(times), "shapes": shapes, "name": node["name"],
                          "source": node["name"], "implementation": name, "flops": 0})
        return json.dumps({"total_us": sum(step["mean_us"] for step in steps), "steps": steps, "threads": 1, "target": "llvm", "repeats": repeats})


def _tensors(shapes: Any, dtypes: Any, storage: Any, device: Any) -> list[NDArray]:
    """The tensors of the graph; those of one storage share memory, unless it is another process's."""
    if device.device_type >= SESSION_STEP:
        return [empty(shape, dtype, device) for shape, dtype in zip(shapes, dtypes)]
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in zip(shapes, dtypes)]
    memory = {one: np.zeros(max(s for s, k in zip(sizes, storage) if k == one), "uint8") for one in set(storage)}
    return [NDArray(memory[k][:size].view(dtype).reshape(shape)) for size, k, shape, dtype in zip(sizes, storage, shapes, dtypes)]


def _flattened(tensor: Any) -> Any:
    return NDArray(tensor._array.reshape(-1)) if isinstance(tensor, NDArray) and tensor.device.device_type < SESSION_STEP else tensor


def _given(tensor: Any, out: Any) -> Any:
    """The tensor; or `out`, filled with it."""
    if out is None:
        return tensor
    out.copyfrom(tensor)
    return None


def create(graph_json: str, library: Module, device: Any, debug: bool = False) -> Module:
    """The executor as a module. InvalidValue: not JSON."""
    try:
        made = GraphOfKernels(json.loads(graph_json), library, device)
    except json.JSONDecodeError:
        raise InvalidValue("the graph JSON is damaged") from None
    names = [n for n in dir(made) if not n.startswith("_") and (debug or n not in _DEBUG)]
    return create_module("GraphExecutor", {name: getattr(made, name) for name in names})


__all__ = ["GraphOfKernels", "create"]
