# SPDX-License-Identifier: Apache-2.0
"""Importers."""
from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .... import _core
from ...error import OpNotImplemented
from ....model import onnx_bytes
from ...runtime.ndarray import NDArray
from .node_names import write_renamed
from .onnx import OnnxOpConverter, converters, register_converter
from .pytorch import from_pytorch


def from_onnx(model: Any, shape: Mapping[str, Sequence[int]] | None = None, dtype: str | Mapping[str, str] = "float32",
              opset: int | None = None, freeze_params: bool = True, convert_config: Any = None,
              export_node_renamed_model_path: str | None = None) -> tuple[Any, dict[str, NDArray]]:
    """A ModelProto, bytes or path as (module, params). With freeze_params the weights are constants of the module and params is
    empty; without, floating weights are parameters of main. dtype and opset are the model's own; the arguments are accepted for
    compatibility. export_node_renamed_model_path: a file or folder that the model is written to, with names (operator and count) for the
    nodes that have none: expressions have them as spans. Errors: 102, 201, 202 (every unsupported node at once), 203, 204."""
    if convert_config:
        raise NotImplementedError("convert_config is not supported; the converters have no variants")
    try:
        return _imported(model, shape, freeze_params, export_node_renamed_model_path)
    except _core.Error as error:
        if error.code == 202:
            raise OpNotImplemented.of(error) from None
        raise


def _imported(model: Any, shape: Mapping[str, Sequence[int]] | None, freeze_params: bool, export_node_renamed_model_path: str | None) -> tuple[Any, dict[str, NDArray]]:
    if isinstance(model, (str, os.PathLike)):
        if export_node_renamed_model_path:
            with open(model, "rb") as file:
                write_renamed(file.read(), export_node_renamed_model_path, os.path.basename(model))
        module, params = _core.import_onnx_file(os.fspath(model), _sizes(shape), freeze_params, converters())
    else:
        content = onnx_bytes(model)
        if export_node_renamed_model_path:
            content = write_renamed(content, export_node_renamed_model_path)
        module, params = _core.import_onnx_bytes(content, _sizes(shape), freeze_params, converters())
    return module, {name: NDArray(value) for name, value in params.items()}


def _sizes(shape: Mapping[str, Sequence[int]] | None) -> dict[str, list[int]]:
    return {name: [_size(d) for d in dims] for name, dims in (shape or {}).items()}


def _size(dimension: Any) -> int:
    """A number; -1, which leaves the size as the model has it, for relay.Any() and the like."""
    try:
        return operator.index(dimension)
    except TypeError:
        if isinstance(dimension, (str, bytes, float)):
            raise TypeError(f"a size is a number, or relay.Any(), not {dimension!r}") from None
        value = getattr(dimension, "value", None)  # IntImm
        return int(value) if isinstance(value, int) else -1


def __getattr__(name: str) -> Any:
    if name.startswith("from_"):
        raise AttributeError(f"relay.frontend.{name} is not supported; export the model to ONNX and import it with from_onnx")
    raise AttributeError(name)


__all__ = ["OnnxOpConverter", "from_onnx", "from_pytorch", "register_converter"]
