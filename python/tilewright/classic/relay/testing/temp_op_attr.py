# SPDX-License-Identifier: Apache-2.0
"""Sets an operator's attribute temporarily."""
from __future__ import annotations

from typing import Any

from ..op import registry


class TempOpAttr:
    """`with TempOpAttr("nn.conv2d", "FTVMLegalize", f):`; restores the previous registration at the end."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any):
        self._key, self._value = (op_name, attr_key), attr_value

    def __enter__(self) -> "TempOpAttr":
        self._older = registry._table.get(self._key)
        registry.put(*self._key, (self._value, 10))
        return self

    def __exit__(self, *_: Any) -> None:
        registry.put(*self._key, self._older)


__all__ = ["TempOpAttr"]
