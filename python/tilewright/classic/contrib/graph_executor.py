# SPDX-License-Identifier: Apache-2.0
"""The graph executor under its classic interface."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..error import InvalidValue
from ..registry import register_for_objects
from ..runtime.container import Map, ShapeTuple
from ..runtime.module import BenchmarkResult, Module, load_module
from ..runtime.ndarray import SESSION_STEP, Device, NDArray, as_dtype, cpu
from ..runtime.profiling import Report


class GraphModule:
    """Runs a model: `GraphModule(lib["default"](tw.cpu(0)))`. Its functions are documented in docs/runtime.md. Errors: 504, 505, 506."""

    def __init__(self, module: Module):
        self.module = module
        self._set_input = module["set_input"]
        self._run = module["run"]
        self._get_output = module["get_output"]
        self._bound: dict[Any, Any] = {}  # caller's tensors that back inputs and outputs
        _, self._dtypes = self.get_input_info()
        self._names = list(self._dtypes)

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Copies values into inputs. Arrays and numbers of other libraries are converted to the input's dtype if it is of the same kind
        (float64 to float32); an NDArray must have it already. Keyword names that are neither inputs nor weights are ignored, as in
        the classic stack."""
        if key is not None:
            self._set_input(key, self._converted(key, value))
            self._bound.pop(("in", self._index(key)), None)
        self._set_named(params)

    def _set_named(self, tensors: Mapping[str, Any]) -> None:
        for name, tensor in tensors.items():
            try:
                self.set_input(name, tensor)
            except Exception as error:
                if getattr(error, "code", 0) != 504:
                    raise

    def _converted(self, key: int | str, value: Any) -> Any:
        name = self._names[key] if isinstance(key, int) and 0 <= key < len(self._names) else key
        return self.module._taken(value if isinstance(value, NDArray) else as_dtype(value, self._dtypes.get(str(name))))

    def _index(self, key: int | str) -> int:
        return key if isinstance(key, int) else self.get_input_index(key)

    def set_input_zero_copy(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Makes the tensor's memory the input until it is set again."""
        for name, tensor in ([(key, value)] if key is not None else []) + list(params.items()):
            array = _bindable(tensor)
            self.module["set_input_zero_copy"](name, array)
            self._bound["in", self._index(name)] = array

    def set_output_zero_copy(self, key: int | str, value: Any) -> None:
        array = _bindable(value)
        self.module["set_output_zero_copy"](key, array)
        self._bound["out", self.module["get_output_index"](key) if isinstance(key, str) else key] = array

    def run(self, **inputs: Any) -> None:
        if inputs:
            self._set_named(inputs)
        self._run()

    def get_num_outputs(self) -> int:
        return self.module["get_num_outputs"]()

    def get_num_inputs(self) -> int:
        return self.module["get_num_inputs"]()

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """A view of the input's memory; or `out`, filled with its values."""
        if out is None:
            return self.module["get_input"](index)
        return self.module._fill("get_input", index, out)

    def get_input_index(self, name: str) -> int:
        """The index of an input by name, or -1."""
        return self.module["get_input_index"](name)

    def get_output_index(self, name: str) -> int:
        return self.module["get_output_index"](name)

    def get_input_info(self) -> tuple[Map, Map]:
        """Shapes and dtypes of the inputs by name."""
        infos = self.module["get_input_info"]()
        return Map((name, ShapeTuple(shape)) for name, shape, _ in infos), Map((name, dtype) for name, _, dtype in infos)

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """A view of the output's memory, which the next run overwrites; or `out`, filled with its values."""
        if out is None:
            return self._get_output(index)
        return self.module._fill("get_output", index, out)

    def load_params(self, params_bytes: bytes) -> None:
        """Sets inputs and weights from the bytes of a .params file. Errors: 501, 505, 506."""
        self.module["load_params"](bytes(params_bytes))

    def share_params(self, other: "GraphModule", params_bytes: bytes) -> None:
        self.module["share_params"](other.module, bytes(params_bytes))

    def run_from_inputs(self, dev: Any = None, **inputs: Any) -> list[NDArray]:
        """Sets the inputs, runs, and returns copies of the outputs."""
        dev = dev or cpu()
        flat = [part for name, value in inputs.items() for part in (name, self._converted(name, value))]
        return self.module["run_from_inputs"](dev.device_type, dev.device_id, *flat)

    def profile(self, collectors: Any = None, repeats: int = 20, **inputs: Any) -> Report:
        """The time of each kernel of a run."""
        if collectors:
            raise NotImplementedError("hardware counters are not collected; run 'perf stat' around the process")
        if inputs:
            self._set_named(inputs)
        text, trace = (self.module["profile"](repeats, form) for form in ("json", "trace"))
        return Report.of_profile(text, self.module["profile"](repeats, "table"), trace)

    def debug_get_output(self, node: Any, out: Any = None) -> NDArray:
        raise NotImplementedError("Please use debugger.debug_executor as graph_executor instead.")

    def benchmark(self, device: Any = None, func_name: str = "run", repeat: int = 5, number: int = 5, min_repeat_ms: int | None = None,
                  limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: int = 0,
                  repeats_to_cooldown: int = 1, inputs: Mapping[str, Any] | None = None, **more: Any) -> BenchmarkResult:
        """The time of `number` consecutive runs, `repeat` times; end_to_end includes copying inputs in and outputs out."""
        given = {**(inputs or {}), **more}
        self._set_named(given)
        if not end_to_end:
            return self.module.time_evaluator(func_name, device, number, repeat, min_repeat_ms or 0, limit_zero_time_iterations,
                                              cooldown_interval_ms, repeats_to_cooldown)()

        def whole() -> None:
            self.run(**given)
            for i in range(self.get_num_outputs()):
                self.get_output(i).numpy()

        from ..registry import get_global_func
        timed = get_global_func("runtime.TimeEvaluator")(whole, number, repeat, min_repeat_ms or 0, cooldown_interval_ms, repeats_to_cooldown)
        return BenchmarkResult.of(timed())

    def __getitem__(self, key: str) -> Any:
        return self.module[key]


def _bindable(value: Any) -> Any:
    if isinstance(value, NDArray) and value.device.device_type >= SESSION_STEP:
        return value
    array = value._array if isinstance(value, NDArray) else value
    if not hasattr(array, "__dlpack__"):
        raise TypeError("only memory of an array (numpy, NDArray, DLPack) can be used without a copy")
    return array


def create(graph_json_str: Any, libmod: Any = None, device: Any = None) -> GraphModule:
    """`create(lib["default"](dev))`, or the classic create(graph_json, lib, dev): what relay.build made contains its graph, so that the JSON is
    only compared with it; functions of other modules are called as the JSON says."""
    if isinstance(graph_json_str, Module):
        return GraphModule(graph_json_str)
    import json

    library = libmod if isinstance(libmod, Module) else load_module(libmod)
    graph_json_str, device = checked(graph_json_str, device)
    if not has_graph(library):
        from . import graph_of_kernels
        return GraphModule(graph_of_kernels.create(graph_json_str, library, device or cpu()))
    try:
        same = json.loads(graph_json_str) == json.loads(library["get_graph_json"]())
    except ValueError:
        raise InvalidValue("the graph JSON is damaged") from None
    if not same:
        raise InvalidValue("the graph JSON is of another library; machine code and graph of the classic stack cannot be run, compile the model again")
    return GraphModule(library["default"](device or cpu()))


def checked(graph: Any, device: Any) -> tuple[str, Any]:
    """The graph's text and the device. ValueError: one of them is something else."""
    graph = getattr(graph, "_tvm_graph_json", graph)
    if not isinstance(graph, (str, bytes)):
        raise ValueError(f"Type {type(graph)} is not supported")
    device = device[0] if isinstance(device, list) and device else device
    if device is not None and not isinstance(device, Device):
        raise ValueError("dev has to be the type of Device or a list of Device")
    return str(graph, "utf-8") if isinstance(graph, bytes) else graph, device


def _create(graph_json: str, library: Module, *places: int) -> Module:
    """The registered function: the executor on the devices given as pairs of a type and a number."""
    return create(graph_json, library, [Device(kind, number) for kind, number in zip(places[::2], places[1::2])]).module


register_for_objects("tvm.graph_executor.create", _create)


def has_graph(library: Module) -> bool:
    """Whether it is a library of relay.build, which contains its graph."""
    try:
        library["get_graph_json"]
    except AttributeError:
        return False
    return True


def get_device(libmod: Any, device: Any) -> tuple[list[Any], int, list[int]]:
    """(devices, how many of them are remote, alternating device types and ids)."""
    devices = list(device) if isinstance(device, list) else [device]
    for one in devices:
        if not hasattr(one, "device_type"):
            raise ValueError("dev has to be the type of Device or a list of Device")
    return devices, 0, [number for one in devices for number in (one.device_type, one.device_id)]


__all__ = ["BenchmarkResult", "GraphModule", "create", "get_device"]
