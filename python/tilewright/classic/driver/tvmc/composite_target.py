# SPDX-License-Identifier: Apache-2.0
"""Code generators that a target of the command line names beside its kind, "cmsis-nn, c -mcpu=cortex-m55": each takes out what it runs,
and the rest is the kind's."""
from __future__ import annotations

import importlib
from typing import Any

from .common import TVMCException

# By the name on the command line: the module of relay.op.contrib, and the PassContext option that has the generator's options.
_GENERATORS = {"bnns": ("bnns", None), "cblas": ("cblas", None), "ccompiler": ("ccompiler", None), "cmsis-nn": ("cmsisnn", "relay.ext.cmsisnn.options"), "compute-library": ("arm_compute_lib", None),
               "dnnl": ("dnnl", "relay.ext.dnnl.options"), "ethos-n": ("ethosn", "relay.ext.ethos-n.options"), "ethos-u": ("ethosu", "relay.ext.ethos-u.options"),
               "tensorrt": ("tensorrt", "relay.ext.tensorrt.options"), "vitis-ai": ("vitis_ai", None)}


def get_codegen_names() -> list[str]:
    return list(_GENERATORS)


def get_codegen_by_target(name: str) -> dict[str, Any]:
    """{"pass_pipeline": the function that takes the regions out, "config_key"}. TVMCException: there is no such generator."""
    if name not in _GENERATORS:
        raise TVMCException(f"Composite target {name} is not defined in TVMC; there are {', '.join(_GENERATORS)}")
    module, key = _GENERATORS[name]
    from ...relay.op import contrib
    found = importlib.import_module(f"{contrib.__name__}.{module}") if module in contrib.register.SHIPPED else getattr(contrib, module)
    return {"pass_pipeline": getattr(found, f"partition_for_{module}"), "config_key": key}


__all__ = ["get_codegen_by_target", "get_codegen_names"]
