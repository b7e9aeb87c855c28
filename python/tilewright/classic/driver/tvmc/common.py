# SPDX-License-Identifier: Apache-2.0
"""Errors and text parsing shared by the verbs."""
from __future__ import annotations

import re
from typing import Any


class TVMCException(Exception):
    """The request of the user cannot be carried out."""


class TVMCImportError(TVMCException):
    """A package that a verb requires is not installed."""


def parse_shape_string(inputs_string: str) -> dict[str, list[int]]:
    """Parses "data:[1,3,224,224],mask:[1,128]" to shapes by name. Error: TVMCException."""
    entry = r"(?:\w+/)?[:\w.\-]+\s*:\s*\[\-?\d+(?:\s*,\s*\-?\d+)*\]|[\w./\-]+\s*:\s*\[\s*\]"
    found = re.findall(entry, inputs_string)
    if not found or re.sub(r"[,\s]", "", re.sub(entry, "", inputs_string)):
        raise TVMCException(f"the shapes '{inputs_string}' cannot be read; write \"data:[1,3,224,224],mask:[1,128]\"")
    shapes = {}
    for text in found:
        name, _, dims = text.rpartition(":")
        shapes[name.strip()] = [int(d) for d in dims.strip()[1:-1].split(",") if d.strip()]
    return shapes


def parse_configs(input_configs: Any) -> dict[str, Any]:
    """Parses the "name=value" texts of --pass-config to a PassContext config. Error: TVMCException."""
    from ...transform import PassContext
    kinds = PassContext.list_configs()
    out: dict[str, Any] = {}
    for config in input_configs or []:
        name, equals, value = config.partition("=")
        if not equals or not name:
            raise TVMCException(f"Invalid format for pass configuration '{config}': write name=value")
        if name not in kinds:
            raise TVMCException(f"Configuration '{name}' is not defined in the PassContext; PassContext.list_configs() has them all")
        kind = kinds[name]["type"]
        try:
            if kind == "bool":
                out[name] = {"true": True, "1": True, "false": False, "0": False}[value.lower()]
            elif kind == "int":
                out[name] = int(value)
            elif kind == "string":
                out[name] = value
            else:
                import json
                out[name] = json.loads(value)
        except (KeyError, ValueError):
            raise TVMCException(f"Invalid value '{value}' for configuration '{name}', which is a {kind}") from None
    return out


__all__ = ["TVMCException", "TVMCImportError", "parse_configs", "parse_shape_string"]
