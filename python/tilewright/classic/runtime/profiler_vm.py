# SPDX-License-Identifier: Apache-2.0
"""The classic profiling VM class; every VirtualMachine can `profile`."""
from __future__ import annotations

import re
from typing import Any

from .profiling import Report
from .vm import VirtualMachine

_FIRST_CALLS = 3  # the first calls interpret or compile regions, so that their rows would not be representative


def enabled() -> bool:
    return True


class VirtualMachineProfiler(VirtualMachine):
    """`VirtualMachineProfiler(exe, device).profile(x)` returns a runtime.profiling.Report with classic kernel names:
    "vm_mod_fused_nn_dense_nn_relu". Regions are compiled beforehand."""

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
