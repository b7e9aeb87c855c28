# SPDX-License-Identifier: Apache-2.0
"""Compiles modules with dynamic sizes, branches, recursion and data types to bytecode that calls compiled regions."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _core
from ..runtime.ndarray import NDArray, as_array
from ..runtime.vm import Executable, VirtualMachine
from ..target import Target
from ..transform import PassContext
from .build_module import optimize as _optimize
from .expr import Function, to_module


def compile(mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> Executable:
    """An executable for `runtime.vm.VirtualMachine`; `params` become constants. Errors: tilewright.Error."""
    compiler = VMCompiler()
    if params:
        compiler.set_params(params)
    compiler.lower(mod, target, target_host)
    compiler.codegen()
    return compiler.get_exec()


class VMCompiler:
    """The steps of `compile`: set_params, lower, codegen, get_exec."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._program: Any = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        self._params = {name: as_array(value) for name, value in params.items()}

    def get_params(self) -> dict[str, NDArray]:
        return {name: NDArray(value) for name, value in self._params.items()}

    def _bound(self, mod: Any) -> Any:
        module = to_module(mod) if isinstance(mod, Function) else mod
        if not isinstance(module, _core.IRModule):
            raise ValueError(f"Type of input parameter mod must be tilewright.IRModule, not {type(mod).__name__}")
        return module.bind_params(self._params) if self._params else module

    def lower(self, mod: Any, target: Any = None, target_host: Any = None) -> None:
        targets = Target.canon_multi_target_and_host(target if target is not None else Target.current() or "llvm", target_host)
        if len({t.build_text() for t in targets}) > 1:
            raise NotImplementedError("code for several different targets in one program is not supported; compile for one")
        context = PassContext.current()
        self._program = _core.vm_compile(self._bound(mod), targets[0].build_text(), context.opt_level, context._options)

    def optimize(self, mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The module after the passes of a build, and the parameters."""
        if params:
            self.set_params(params)
        return _optimize(self._bound(mod), target)[0], self.get_params()

    def codegen(self) -> None:
        if self._program is None:
            raise ValueError("lower(mod, target) comes before codegen()")

    def get_exec(self) -> Executable:
        if self._program is None:
            raise ValueError("lower(mod, target) and codegen() come before get_exec()")
        return Executable(self._program.copy())


class VMExecutor:
    """`create_executor("vm", mod).evaluate()`"""

    def __new__(cls, mod: Any, device: Any = None, target: Any = "llvm") -> Any:
        from .executors import ProgramExecutor
        return ProgramExecutor(mod, device, target, None)


__all__ = ["Executable", "VMCompiler", "VMExecutor", "VirtualMachine", "compile"]
