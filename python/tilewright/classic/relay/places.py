# SPDX-License-Identifier: Apache-2.0
"""Devices of function parameters and results: stored as attributes of the function, read as the virtual_device_ of it and of its
parameters."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..target.virtual_device import VirtualDevice
from .attr_literals import to_attr

RESULT, PARAMS = "virtual_device", "param_virtual_devices"


def with_places(attrs: Mapping[str, Any] | None, params: Sequence[Any]) -> dict[str, Any]:
    """Adds to a function's attributes the devices of its parameters."""
    out = {name: to_attr(value) for name, value in (attrs or {}).items()}
    places = [p.__dict__.get("_virtual_device") for p in params]
    if any(places):
        out[PARAMS] = ["" if p is None else p.text for p in places]
    return out


def placed_params(params: list[Any], attrs: Mapping[str, Any]) -> list[Any]:
    """The parameters with their devices attached."""
    for param, place in zip(params, attrs.get(PARAMS, [])):
        if place:
            param.__dict__.setdefault("_virtual_device", VirtualDevice.of_text(place))
    return params


def place_of_result(attrs: Mapping[str, Any]) -> VirtualDevice:
    """The device of the result, unconstrained by default."""
    return VirtualDevice.of_text(attrs[RESULT]) if RESULT in attrs else VirtualDevice()


def places(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attrs.items() if name in (RESULT, PARAMS)}


__all__ = ["PARAMS", "RESULT", "place_of_result", "placed_params", "places", "with_places"]
