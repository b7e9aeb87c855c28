# SPDX-License-Identifier: Apache-2.0
"""Pattern tables of external code generators. Of the classic device modules, relay.op.contrib.cblas, ccompiler and dnnl are available; vendors.py is about
the others."""
from __future__ import annotations

from typing import Any

from . import register
from .register import get_pattern_table, register_pattern_table


def ndarray_size(data: Any, dtype: str = "int32") -> Any:
    from ...expr import Call
    return Call("ndarray_size", [data], {"dtype": dtype})


def adaptive_avg_pool2d(data: Any, output_size: Any = None, layout: str = "NCHW") -> Any:
    from .. import nn
    return nn.adaptive_avg_pool2d(data, output_size, layout)


def adaptive_max_pool2d(data: Any, output_size: Any = None, layout: str = "NCHW") -> Any:
    from .. import nn
    return nn.adaptive_max_pool2d(data, output_size, layout)


def __getattr__(name: str) -> Any:
    if name in register.SHIPPED:  # loaded on use; they register what their generators support
        import importlib
        return importlib.import_module("." + name, __name__)
    from .vendors import vendor_module
    made = vendor_module(name)
    if made is not None:
        return made
    raise AttributeError(f"relay.op.contrib has no '{name}'; instead: a code generator of your own (docs/external-codegen.md), with patterns from "
                         "register_pattern_table; everything else is compiled for the processor")


__all__ = ["adaptive_avg_pool2d", "adaptive_max_pool2d", "get_pattern_table", "ndarray_size", "register", "register_pattern_table"]
