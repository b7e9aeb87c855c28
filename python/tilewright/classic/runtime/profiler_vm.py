# SPDX-License-Identifier: Apache-2.0
"""The VM under its classic profiling name; every VirtualMachine can `profile`."""
from __future__ import annotations

from .vm import VirtualMachine


def enabled() -> bool:
    return True


class VirtualMachineProfiler(VirtualMachine):
    """`VirtualMachineProfiler(exe, device).profile(x)` is a runtime.profiling.Report."""


__all__ = ["VirtualMachineProfiler", "enabled"]
