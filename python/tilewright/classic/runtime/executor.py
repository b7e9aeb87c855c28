# SPDX-License-Identifier: Apache-2.0
"""The ahead-of-time executor: the whole model is one generated function, run on the caller's thread."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .module import Module
from .ndarray import NDArray, as_array, as_dtype


class AotModule:
    """Runs a library built with Executor("aot"): `AotModule(lib["default"](tw.cpu()))`. Errors: 504, 505, 506."""

    def __init__(self, module: Module):
        self.module = module
        self._bound: dict[Any, Any] = {}  # caller's tensors that back inputs and outputs

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Copies, with the conversions of GraphModule; keywords that are not inputs are ignored, as in the classic stack."""
        if key is not None:
            dtypes = self.get_input_info()[1]
            name = list(dtypes)[key] if isinstance(key, int) and 0 <= key < len(dtypes) else key
            if self.module.type_key == "rpc" and not isinstance(value, NDArray):  # written in place: a small device has no memory for a second copy
                self.get_input(key).copyfrom(as_dtype(value, dtypes.get(str(name))))
                self._set_named(params)
                return
            self.module["set_input"](key, self.module._taken(value if isinstance(value, NDArray) else as_dtype(value, dtypes.get(str(name)))))
        self._set_named(params)

    def _set_named(self, tensors: Mapping[str, Any]) -> None:
        for name, tensor in tensors.items():
            if self.get_input_index(name) >= 0:
                self.set_input(name, tensor)

    def set_input_zero_copy(self, key: int | str, value: Any) -> None:
        """Makes the tensor's memory the input until it is set again."""
        self.module["set_input_zero_copy"](key, as_array(value))
        self._bound["in", key] = value

    def set_output_zero_copy(self, key: int | str, value: Any) -> None:
        self.module["set_output_zero_copy"](key, as_array(value))
        self._bound["out", key] = value

    def run(self, **inputs: Any) -> None:
        if inputs:
            self._set_named(inputs)
        self.module["run"]()

    def get_num_outputs(self) -> int:
        return self.module["get_num_outputs"]()

    def get_num_inputs(self) -> int:
        return self.module["get_num_inputs"]()

    def get_input_index(self, name: str) -> int:
        """The index of an input by name, or -1."""
        return self.module["get_input_index"](name)

    def get_input_name(self, index: int) -> str:
        return self.module["get_input_info"]()[index][0]

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs by name."""
        infos = self.module["get_input_info"]()
        return {name: tuple(shape) for name, shape, _ in infos}, {name: dtype for name, _, dtype in infos}

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """A view of the input's memory; or `out`, filled with its values."""
        if out is None:
            return self.module["get_input"](index)
        return self.module._fill("get_input", index, out)

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """A view of the output's memory, which the next run overwrites; or `out`, filled with its values."""
        if out is None:
            return self.module["get_output"](index)
        return self.module._fill("get_output", index, out)


__all__ = ["AotModule"]
