# SPDX-License-Identifier: Apache-2.0
"""The VM under its classic profiling name; every VirtualMachine can `profile`."""
from __future__ import annotations

import re
from typing import Any

from .profiling import Report
from .vm import VirtualMachine

_FIRST_CALLS = 3  # the first ones interpret or compile their regions: rows of another kind than what a script waits for


def enabled() -> bool:
    return True


class VirtualMachineProfiler(VirtualMachine):
    """`VirtualMachineProfiler(exe, device).profile(x)` is a runtime.profiling.Report whose kernels have the classic names of what they compute:
    "vm_mod_fused_nn_dense_nn_relu". Regions are compiled before it."""

    def profile(self, *args: Any, func_name: str = "main", collectors: Any = None, **kwargs: Any) -> Report:
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        for _ in range(_FIRST_CALLS):
            self.invoke(func_name)
        report = super().profile(func_name=func_name, collectors=collectors)
        for call in report.calls:
            if "region_" not in call["Name"]:
                call["Name"] = "vm_mod_fused_" + re.sub(r"[^\w]+", "_", call["Name"])
        return report


__all__ = ["VirtualMachineProfiler", "enabled"]
