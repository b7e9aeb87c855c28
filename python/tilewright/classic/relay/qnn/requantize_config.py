# SPDX-License-Identifier: Apache-2.0
"""Defaults for rounding and computation of requantize: `with requantize_config(rounding="TONEAREST"): ...`."""
from __future__ import annotations

from typing import Any

_FIELDS = {"rounding": "UPWARD", "compute_dtype": "int64"}
_ROUNDINGS, _DTYPES = ("UPWARD", "TONEAREST"), ("int64", "float32", "float64")


class RequantizeConfig:
    """Settings in effect inside its `with`."""

    _stack: list["RequantizeConfig"] = []

    def __init__(self, **kwargs: Any):
        for name in kwargs:
            if name not in _FIELDS:
                raise ValueError(f"requantize_config has {', '.join(_FIELDS)}, not {name}")
        current = RequantizeConfig._stack[-1] if RequantizeConfig._stack else None
        self.rounding = str(kwargs.get("rounding", current.rounding if current else _FIELDS["rounding"]))
        self.compute_dtype = str(kwargs.get("compute_dtype", current.compute_dtype if current else _FIELDS["compute_dtype"]))
        if self.rounding not in _ROUNDINGS or self.compute_dtype not in _DTYPES:
            raise ValueError(f"rounding is one of {', '.join(_ROUNDINGS)} and compute_dtype one of {', '.join(_DTYPES)}")

    def __enter__(self) -> "RequantizeConfig":
        RequantizeConfig._stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        RequantizeConfig._stack.pop()


def current_requantize_config() -> RequantizeConfig:
    return RequantizeConfig._stack[-1] if RequantizeConfig._stack else RequantizeConfig()


def requantize_config(**kwargs: Any) -> RequantizeConfig:
    """rounding: "UPWARD" (ties towards plus infinity) or "TONEAREST" (ties away from zero). compute_dtype does not affect results."""
    return RequantizeConfig(**kwargs)


__all__ = ["RequantizeConfig", "current_requantize_config", "requantize_config"]
