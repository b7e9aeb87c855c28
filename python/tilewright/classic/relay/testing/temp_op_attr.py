# SPDX-License-Identifier: Apache-2.0
"""An attribute of an operator for the length of a with block."""
from __future__ import annotations

from typing import Any

from ..op import registry


class TempOpAttr:
    """`with TempOpAttr("nn.conv2d", "FTVMLegalize", f):`; what was registered before comes back at the end."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any):
        self._key, self._value = (op_name, attr_key), attr_value

    def __enter__(self) -> "TempOpAttr":
        self._older = registry._table.get(self._key)
        registry._table[self._key] = (self._value, 10)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._older is None:
            registry.forget(*self._key)
        else:
            registry._table[self._key] = self._older


__all__ = ["TempOpAttr"]
