# SPDX-License-Identifier: Apache-2.0
"""Loads model files as graph modules."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .common import TVMCException
from .model import TVMCModel

_OTHER = {".h5": "keras", ".pb": "pb", ".tflite": "tflite", ".pth": "pytorch", ".zip": "pytorch", ".pt": "pytorch", ".pdmodel": "paddle"}


def get_frontend_names() -> list[str]:
    return ["onnx", "relay"]


def load_model(path: str | os.PathLike[str], model_format: str | None = None, shape_dict: Mapping[str, Sequence[int]] | None = None,
               **kwargs: Any) -> TVMCModel:
    """Loads an ONNX file, Relay text, or a file of TVMCModel.save. Errors: TVMCException, tilewright.Error."""
    from ... import relay
    path = os.fspath(path)
    ending = os.path.splitext(path)[1].lower()
    if model_format not in (None, *get_frontend_names()) or (model_format is None and ending in _OTHER):
        raise TVMCException(f"the model format '{model_format or _OTHER[ending]}' is not supported; export the model to ONNX")
    if not os.path.exists(path):
        raise TVMCException(f"Input file '{path}' doesn't exist, is a broken symbolic link, or a directory.")
    name = os.path.splitext(os.path.basename(path))[0]
    if model_format == "relay" or ending in (".relay", ".rly"):
        with open(path, encoding="utf-8") as file:
            return TVMCModel(relay.fromtext(file.read()), {}, name=name)
    if TVMCModel.is_saved(path):
        return TVMCModel(model_path=path)
    module, params = relay.frontend.from_onnx(path, shape_dict, **kwargs)
    return TVMCModel(module, params, name=name)


__all__ = ["get_frontend_names", "load_model"]
