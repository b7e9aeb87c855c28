# SPDX-License-Identifier: Apache-2.0
"""Importers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import IRModule, import_onnx


def from_onnx(model: Any, shape: Mapping[str, Sequence[int]] | None = None, dtype: str = "float32", opset: int | None = None,
              freeze_params: bool = True, convert_config: Any = None) -> tuple[IRModule, dict[str, Any]]:
    """A ModelProto, bytes or path as (module, params). Weights are constants of the module, so params is empty. dtype,
    opset and convert_config are read from the model and accepted for compatibility."""
    if not freeze_params:
        raise NotImplementedError("freeze_params=False is not supported from Python yet")
    return import_onnx(model, shape), {}
