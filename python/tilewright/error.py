# SPDX-License-Identifier: Apache-2.0
"""The classic names of errors. Every error of the compiler and the runtime is a tilewright.Error, whose `code` says which."""
from __future__ import annotations

from typing import Any

from ._core import Error

TVMError = InternalError = OpError = OpNotImplemented = OpAttributeRequired = OpAttributeInvalid = OpAttributeUnImplemented = Error
DiagnosticError = RPCError = RPCSessionTimeoutError = Error

_registered: dict[str, type] = {}


def register_error(func_name: Any = None, cls: type | None = None) -> Any:
    """A class of errors by its name: `@register_error` above it."""
    if isinstance(func_name, type):
        return register_error(func_name.__name__, func_name)

    def store(kind: type) -> type:
        _registered[str(func_name)] = kind
        return kind
    return store if cls is None else store(cls)


__all__ = ["DiagnosticError", "Error", "InternalError", "OpAttributeInvalid", "OpAttributeRequired", "OpAttributeUnImplemented", "OpError", "OpNotImplemented",
           "RPCError", "RPCSessionTimeoutError", "TVMError", "register_error"]
