# SPDX-License-Identifier: Apache-2.0
"""Importers."""
from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ...model import onnx_bytes
from ...runtime.ndarray import NDArray
from .onnx import OnnxOpConverter, converters, register_converter


def from_onnx(model: Any, shape: Mapping[str, Sequence[int]] | None = None, dtype: str | Mapping[str, str] = "float32",
              opset: int | None = None, freeze_params: bool = True, convert_config: Any = None,
              export_node_renamed_model_path: str | None = None) -> tuple[Any, dict[str, NDArray]]:
    """A ModelProto, bytes or path as (module, params). With freeze_params the weights are constants of the module and params is
    empty; without, floating weights are parameters of main. dtype and opset are the model's own; the arguments are accepted for
    compatibility. Errors: 102, 201, 202 (every unsupported node at once), 203, 204."""
    if convert_config:
        raise NotImplementedError("convert_config is not supported; the converters have no variants")
    if export_node_renamed_model_path:
        raise NotImplementedError("export_node_renamed_model_path is not supported; expressions keep the names of their nodes as spans")
    sizes = {name: [_size(d) for d in dims] for name, dims in (shape or {}).items()}
    if isinstance(model, (str, os.PathLike)):
        module, params = _core.import_onnx_file(os.fspath(model), sizes, freeze_params, converters())
    else:
        module, params = _core.import_onnx_bytes(onnx_bytes(model), sizes, freeze_params, converters())
    return module, {name: NDArray(value) for name, value in params.items()}


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


__all__ = ["OnnxOpConverter", "from_onnx", "register_converter"]
