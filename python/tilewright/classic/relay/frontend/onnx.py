# SPDX-License-Identifier: Apache-2.0
"""Custom converters of ONNX operators, which take precedence over the compiler's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..expr import _like

# (domain, operator) -> function of (inputs, attributes, parameters), or a class of them by version
_table: dict[tuple[str, str], Any] = {}


class OnnxOpConverter:
    """A converter with one method per opset version that changed the operator: `_impl_v1(cls, inputs, attr, params)`."""

    @classmethod
    def get_converter(cls, opset: int) -> Callable[..., Any]:
        versions = [int(name[len("_impl_v"):]) for name in dir(cls) if name.startswith("_impl_v")]
        known = [v for v in versions if v <= opset]
        if not known:
            raise NotImplementedError(f"opset version {opset} of {cls.__name__} not supported")
        return getattr(cls, f"_impl_v{max(known)}")


def register_converter(op_type: str, converter: Any = None, domain: str = "") -> Any:
    """`register_converter("MyOp", f, domain="mine")`: f(inputs, attr, params) returns a Relay expression, or a list or tuple of them for
    several outputs. Of an OnnxOpConverter class the method for the model's opset is used. Without a converter: a decorator."""
    if converter is None:
        return lambda made: register_converter(op_type, made, domain)
    _table[domain, op_type] = converter
    return converter


def unregister_converter(op_type: str, domain: str = "") -> None:
    _table.pop((domain, op_type), None)


def _call(converter: Any) -> Callable[..., list[Any]]:
    def convert(inputs: list[Any], attributes: dict[str, Any], version: int, name: str) -> list[Any]:
        function = converter.get_converter(version) if hasattr(converter, "get_converter") else converter
        made = function(inputs, {**attributes, "tvm_custom": {"name": name, "num_outputs": None}}, {})
        outputs = list(made) if isinstance(made, (list, tuple)) or hasattr(made, "astuple") else [made]
        return [_like(o) for o in outputs]
    return convert


def converters() -> dict[tuple[str, str], Callable[..., list[Any]]]:
    """The registered converters, as passed to the importer."""
    return {key: _call(converter) for key, converter in _table.items()}


def __getattr__(name: str) -> Any:
    if name == "from_onnx":
        from . import from_onnx
        return from_onnx
    raise AttributeError(f"relay.frontend.onnx has no '{name}'; from_onnx, register_converter and OnnxOpConverter are there")


__all__ = ["OnnxOpConverter", "converters", "register_converter", "unregister_converter"]
