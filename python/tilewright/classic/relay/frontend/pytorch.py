# SPDX-License-Identifier: Apache-2.0
"""Imports TorchScript modules through the classic interface."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .... import _core
from ...error import OpNotImplemented
from ....model import error_of
from ...runtime.ndarray import NDArray
from ..expr import _like


def from_pytorch(script_module: Any, input_infos: Sequence[Any], custom_convert_map: Mapping[str, Callable[..., Any]] | None = None, default_dtype: str = "float32",
                 use_parser_friendly_name: bool = False, keep_quantized_weight: bool = False) -> tuple[Any, dict[str, NDArray]]:
    """What torch.jit.trace or torch.jit.script made, as (module, params): floating weights are parameters of main.

    input_infos: (name, shape) or (name, (shape, dtype)) for each input of forward in order; a size is a number or relay.Any(). The dtype is
    the one given here, else the one that was traced, else default_dtype. custom_convert_map: {"aten::op": function(inputs, input_types)}
    that goes before the compiler's converter. use_parser_friendly_name: weights have "_" for "." in their names. keep_quantized_weight:
    weights of quantised layers are integers among the parameters; else they are floating and quantised by the module.
    Errors: 101, 201, 202 (every operator that is not supported at once), 203, 204."""
    from ....torch_script import Script
    renamed = (lambda name: name.replace(".", "_")) if use_parser_friendly_name else str
    script = Script(script_module, _inputs(script_module, input_infos, default_dtype), renamed, keep_quantized_weight)
    try:
        module, params = script.program.imported(None, False, _converters(custom_convert_map or {}), share=False)
    except _core.Error as error:
        if error.code == 202:
            raise OpNotImplemented.of(error) from None
        raise
    return module, {name: NDArray(value) for name, value in params.items()}


def _inputs(module: Any, infos: Sequence[Any], default_dtype: str) -> list[tuple[str, list[Any], str]]:
    if not isinstance(infos, (list, tuple)) or not infos or not all(isinstance(i, (list, tuple)) and len(i) == 2 and isinstance(i[0], str) for i in infos):
        raise error_of(101, "InvalidArgument", f"input_infos is {infos!r}", 'describe each input: [("image", (1, 3, 224, 224))], with a dtype [("ids", ((1, 16), "int64"))]')
    names = [name for name, _ in infos]
    if len(set(names)) != len(names):
        raise error_of(101, "InvalidArgument", f"input_infos has two inputs of one name: {', '.join(names)}")
    values = [v for v in module.graph.inputs() if v.type().kind() != "ClassType"] if hasattr(module, "graph") else []
    found = []
    for i, (name, described) in enumerate(infos):
        shape, dtype = described if len(described) == 2 and isinstance(described[1], str) else (described, None)
        if dtype is None:
            traced = values[i].type().scalarType() if i < len(values) and values[i].type().kind() == "TensorType" else None
            dtype = _TRACED.get(traced, default_dtype)
        found.append((name, [_size(name, k, s) for k, s in enumerate(shape)], dtype))
    return found


_TRACED = {"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16", "Float": "float32", "Double": "float64", "Bool": "bool", "BFloat16": "bfloat16"}


def _size(name: str, axis: int, size: Any) -> Any:
    """A number, or the name of a free size."""
    value = getattr(size, "value", size)
    return int(value) if isinstance(value, int) or hasattr(value, "__index__") else f"{name}_{axis}"


def _converters(table: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., list[Any]]]:
    """Keys converters by the importer's operator names: "aten::relu" becomes "aten.relu", for all overloads."""
    def adapted(function: Callable[..., Any]) -> Callable[..., list[Any]]:
        def convert(inputs: list[Any], types: list[str]) -> list[Any]:
            made = function(inputs, types)
            return [_like(o) for o in (made if isinstance(made, (list, tuple)) else [made])]
        return convert
    return {name.replace("::", "."): adapted(function) for name, function in table.items()}


__all__ = ["from_pytorch"]
