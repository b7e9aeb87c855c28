# SPDX-License-Identifier: Apache-2.0
"""VM programs in Python sessions, which have the compiler for their regions."""
from __future__ import annotations

import json
from typing import Any

import numpy as np

from ... import _core
from ..registry import get_global_func, register_func
from ..runtime.module import create_module
from ..runtime.ndarray import NDArray
from ..runtime.remote_vm import decode, encode
from ..runtime.vm import Executable


@register_func("tilewright.vm.load", override=True)
def load(name: str) -> Any:
    """Loads a program from a file of the session's folder as a module: facts(), invoke(function, values...), profile(function,
    values...)."""
    program = Executable(get_global_func("tvm.rpc.server.workpath")(name))._program
    machine = _core.VMMachine(program, 0)

    def values(given: tuple[Any, ...]) -> list[Any]:
        return [decode(v, lambda tensor: np.array(tensor._array)) for v in given]

    def profile(function: str, *given: Any) -> list[Any]:
        result, steps, table, trace = machine.profile(function, values(given))
        return [encode(result, NDArray), json.dumps([steps, table, trace])]

    facts = json.dumps({"functions": program.functions, "inputs": program.inputs, "target": program.target, "primitives": program.primitives})
    return create_module("vm", {"facts": lambda: facts, "invoke": lambda function, *given: encode(machine.invoke(function, values(given)), NDArray), "profile": profile})
