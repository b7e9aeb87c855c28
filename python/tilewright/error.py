# SPDX-License-Identifier: Apache-2.0
"""The classic names of errors. Every error of the compiler and the runtime is a tilewright.Error, whose `code` says which."""
from __future__ import annotations

from ._core import Error

TVMError = InternalError = OpError = OpNotImplemented = OpAttributeRequired = OpAttributeInvalid = OpAttributeUnImplemented = Error
DiagnosticError = RPCError = RPCSessionTimeoutError = Error

__all__ = ["DiagnosticError", "Error", "InternalError", "OpAttributeInvalid", "OpAttributeRequired", "OpAttributeUnImplemented", "OpError", "OpNotImplemented",
           "RPCError", "RPCSessionTimeoutError", "TVMError"]
