# SPDX-License-Identifier: Apache-2.0
"""Import and build under their classic names."""
from __future__ import annotations

from typing import Any

from .. import IRModule, Model, _core, _load_built
from .. import transform as _transform
from . import frontend


class GraphExecutorFactory:
    """A built module: `lib["default"](tw.cpu(0))` makes one to run, `export_library` writes it."""

    def __init__(self, built: Any, name: str):
        self._built = built
        self.libmod_name = name

    def __getitem__(self, name: str):
        if name != "default":
            raise KeyError(f"the library has one model, 'default', not '{name}'")
        return lambda *devices: _load_built(self._built, 0)

    def export_library(self, file_name: str) -> None:
        self._built.export_library(str(file_name))

    @property
    def ir_mod(self) -> IRModule:
        """The module after the passes."""
        return self._built.optimized


def build(ir_mod: IRModule, target: Any = "llvm", target_host: Any = None, params: Any = None, mod_name: str = "default") -> GraphExecutorFactory:
    """Builds with the current PassContext (level 2 outside of one). Weights imported by from_onnx are in the module, so
    `params` may be what it returned, or None."""
    if params:
        raise NotImplementedError("binding params at build time is not supported; import with freeze_params=True (the default here)")
    context = _transform.PassContext.current()
    return GraphExecutorFactory(
        _core.build(ir_mod, str(target), context.opt_level, context.required_pass, context.disabled_pass, 0), mod_name)


__all__ = ["GraphExecutorFactory", "Model", "build", "frontend"]
