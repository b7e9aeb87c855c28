# SPDX-License-Identifier: Apache-2.0
"""Every pass of the compiler under its classic name: `relay.transform.FoldConstant()(mod)`."""
from __future__ import annotations

from typing import Any

from .. import _core
from ..transform import (FunctionPass, ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential, function_pass, module_pass,
                         named_pass)

# Arguments that the passes take here, with the only values they can have.
_ARGUMENTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "FuseOps": {"fuse_opt_level": (-1,)},
    "FoldConstant": {"fold_qnn": (False,)},
    "EliminateCommonSubexpr": {"fskip": (None,)},
    "CombineParallelConv2D": {"min_num_branches": (3,)},
    "CombineParallelDense": {"min_num_branches": (3,), "to_batch": (True, False)},
    "CombineParallelBatchMatmul": {"min_num_branches": (3,)},
    "DeadCodeElimination": {"inline_once": (False, True), "ignore_impurity": (False,)},
    "RemoveUnusedFunctions": {"entry_functions": (None, ["main"])},
}


def _factory(name: str) -> Any:
    accepted = _ARGUMENTS.get(name, {})

    def make(*args: Any, **kwargs: Any) -> Pass:
        names = list(accepted)
        if len(args) > len(names):
            raise TypeError(f"{name} takes {len(names)} arguments here, {len(args)} were given")
        given = {**dict(zip(names, args)), **kwargs}
        for key, value in given.items():
            if key not in accepted:
                raise TypeError(f"{name} has no argument '{key}' here")
            if value not in accepted[key]:
                raise NotImplementedError(f"{name}({key}={value!r}) is not supported; the value is {accepted[key][0]!r}")
        return named_pass(name)

    make.__name__ = name
    make.__doc__ = next((doc for n, _, doc in _core.pass_infos() if n == name), "")
    return make


def __getattr__(name: str) -> Any:
    names = [n for n, _, _ in _core.pass_infos()]
    if name in names:
        return _factory(name)
    raise AttributeError(f"relay.transform has no pass '{name}'; there are {', '.join(names)}")


def __dir__() -> list[str]:
    return [*globals(), *(n for n, _, _ in _core.pass_infos())]


__all__ = ["FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "function_pass", "module_pass"]
