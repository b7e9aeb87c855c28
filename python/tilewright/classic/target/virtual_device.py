# SPDX-License-Identifier: Apache-2.0
"""Virtual devices: a device, the target of its kernels, and a memory scope."""
from __future__ import annotations

import json
import re
from typing import Any

from ..runtime.ndarray import Device, device as device_of


class VirtualDevice:
    """`VirtualDevice(tvm.cpu(), "llvm", "global")`. Omitted fields are unconstrained; compared by value."""

    def __init__(self, device: Any = None, target: Any = None, memory_scope: str = ""):
        from . import Target
        self.target = None if target is None else Target(target)
        if device is None and self.target is not None:
            device = Device(self.target.kind.device_type, 0)
        self.device = None if device is None else device_of(device)
        self.memory_scope = str(memory_scope)

    @property
    def device_type_int(self) -> int:
        """-1 if no device is given."""
        return -1 if self.device is None else self.device.device_type

    device_type = device_type_int

    @property
    def virtual_device_id(self) -> int:
        return -1 if self.device is None else self.device.device_id

    @property
    def text(self) -> str:
        """The form used in module text."""
        parts = [] if self.device is None else [f"device_type={self.device_type_int}, virtual_device_id={self.virtual_device_id}"]
        parts += [] if self.target is None else [f"target={json.dumps(str(self.target))}"]
        parts += [] if self.target is None or self.target.host is None else [f"host={json.dumps(str(self.target.host))}"]
        parts += [f"memory_scope={json.dumps(self.memory_scope)}"] if self.memory_scope else []
        return f"VirtualDevice({', '.join(parts) or '?'})"

    @staticmethod
    def of_fields(kind: int, number: int, target: str, host: str, memory_scope: str) -> "VirtualDevice":
        from . import Target
        return VirtualDevice(Device(kind, number) if kind > 0 else None, Target(target, host or None) if target else None, memory_scope)

    @staticmethod
    def of_text(text: str) -> "VirtualDevice":
        fields = {name: json.loads(value) for name, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|-?\d+)', text)}
        return VirtualDevice.of_fields(*(fields.get(name, default) for name, default in
                                         (("device_type", 0), ("virtual_device_id", 0), ("target", ""), ("host", ""), ("memory_scope", ""))))

    def same_as(self, other: object) -> bool:
        return self == other

    def _key(self) -> tuple[Any, ...]:
        return self.device, self.target, self.memory_scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VirtualDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self._key() == (None, None, ""):
            return "VirtualDevice(?)"
        parts = [] if self.device is None else [f"device_type={self.device_type_int}, virtual_device_id={self.virtual_device_id}"]
        parts += [] if self.target is None else [f"target={self.target!r}"]
        parts += [f"memory_scope='{self.memory_scope}'"] if self.memory_scope else []
        return f"VirtualDevice({', '.join(parts)})"


def device_fields(given: Any, before: str = "") -> dict[str, Any]:
    """Call attributes for a device, a device name or a virtual device. ValueError for anything else."""
    if isinstance(given, (Device, str)):
        given = VirtualDevice(device_of(given))
    if isinstance(given, VirtualDevice):
        kind, number = ("dev_type", "dev_id") if before else ("device_type", "device_id")
        target, host = given.target, given.target and given.target.host
        return {before + kind: max(given.device_type_int, 0), before + number: max(given.virtual_device_id, 0), before + "target": str(target or ""),
                before + "host": str(host or ""), before + "memory_scope": given.memory_scope}
    raise ValueError(f"expecting a Device or device name, but received a {type(given).__name__}")


__all__ = ["VirtualDevice", "device_fields"]
