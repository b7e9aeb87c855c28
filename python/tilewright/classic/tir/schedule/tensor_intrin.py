# SPDX-License-Identifier: Apache-2.0
"""Tensor intrinsics of `tir.Schedule.tensorize`."""
from __future__ import annotations

import typing

from ..function import PrimFunc

_registered: dict[str, "TensorIntrin"] = {}


class TensorIntrin:
    """What an intrinsic computes (desc: loops around one block) and code that computes the same (impl), with the same parameters."""

    def __init__(self, desc: PrimFunc, impl: PrimFunc):
        for name, function in (("description", desc), ("implementation", impl)):
            if not isinstance(function, PrimFunc) or function._function is None:
                raise TypeError(f"the {name} of an intrinsic is a T.prim_func, not a {type(function).__name__}")
        if len(desc.params) != len(impl.params):
            raise ValueError(f"the description has {len(desc.params)} parameters, the implementation {len(impl.params)}")
        self.desc, self.impl = desc, impl

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> "TensorIntrin":
        """ValueError: the name is taken."""
        if name in _registered and not override:
            raise ValueError(f"TensorIntrin '{name}' has already been registered")
        _registered[name] = TensorIntrin(desc, impl)
        return _registered[name]

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> typing.Any:
        """ValueError: there is none, unless allow_missing, which gives None."""
        if name not in _registered and not allow_missing:
            raise ValueError(f"TensorIntrin '{name}' is not registered; there {'are ' + ', '.join(sorted(_registered)) if _registered else 'is none'}")
        return _registered.get(name)


__all__ = ["TensorIntrin"]
