# SPDX-License-Identifier: Apache-2.0
"""The targets of a build in the form that passes use."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CompilationConfig:
    """The primitive targets of a build, the host target, and the default device."""

    def __init__(self, primitive_targets: Any, host_target: Any, default_device_type: int | None = None):
        from . import Target
        from .virtual_device import VirtualDevice
        self.primitive_targets = [Target(t, host_target) for t in primitive_targets]
        self.host_target = Target(host_target)
        self.optional_homogeneous_target = self.primitive_targets[0] if len(self.primitive_targets) == 1 else None
        self.host_virtual_device = VirtualDevice(target=self.host_target)
        chosen = next((t for t in self.primitive_targets if t.kind.device_type == default_device_type), self.primitive_targets[0])
        self.default_primitive_virtual_device = VirtualDevice(target=chosen)

    @property
    def device_texts(self) -> list[str]:
        """The arguments of PlanDevices: default device of values, device of shapes, and the targets."""
        from .virtual_device import VirtualDevice
        return [d.text for d in (self.default_primitive_virtual_device, self.host_virtual_device, *(VirtualDevice(target=t) for t in self.primitive_targets))]


def make_compilation_config(ctxt: Any, target: Any, target_host: Any = None) -> CompilationConfig:
    """From one target, a list, or a dict by device."""
    from . import Target
    targets = [Target(t) for t in target.values()] if isinstance(target, Mapping) and "kind" not in target else Target.canon_multi_target(target)
    if not targets:
        raise ValueError("no target is given")
    host = target_host or next((t.host for t in targets if t.host is not None), None) or "llvm"
    return CompilationConfig(targets, host, (getattr(ctxt, "config", None) or {}).get("relay.fallback_device_type"))


__all__ = ["CompilationConfig", "make_compilation_config"]
