# SPDX-License-Identifier: Apache-2.0
"""The classic names of errors. Every error of the compiler and the runtime is a tilewright.Error, whose `code` says which; those that the
classic stack raises as errors of Python are of that kind, too."""
from __future__ import annotations

from typing import Any

from .._core import Error

TVMError = InternalError = DiagnosticError = RPCError = RPCSessionTimeoutError = Error

class InvalidValue(Error, ValueError):
    """What the classic stack raises as TVMError, and Python as ValueError."""
    code, name, hint = 101, "InvalidArgument", ""


class InvalidType(Error, TypeError):
    """What the classic stack raises as TVMError, and Python as TypeError."""
    code, name, hint = 101, "InvalidArgument", ""


class ChoiceError(Error):
    """Branches of two types, or a match that says it is complete, and is not."""
    code, name, hint = 301, "TypeMismatch", ""


class _Same:
    """Errors of the compiler as one that is of a Python kind, too."""

    @classmethod
    def of(cls, error: Error) -> Any:
        made = cls(str(error))  # type: ignore[call-arg]
        made.code, made.name, made.hint = error.code, error.name, error.hint  # type: ignore[attr-defined]
        return made


class OpError(_Same, Error):
    """What is wrong with an operator."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator that an importer does not know (202)."""


class OpAttributeRequired(OpError, AttributeError):
    """An attribute that is missing."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute with a value that it cannot have."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute that an importer does not know."""


class InvalidOption(_Same, Error, AttributeError):
    """An option of a PassContext that there is not, or of another type."""


class InvalidTarget(_Same, Error, ValueError):
    """A target that there is not (401)."""


def as_tvm_error(error: BaseException) -> BaseException:
    """An exception of a script's callback as a TVMError that is still of its own kind, where there can be such a thing."""
    if isinstance(error, Error) or not isinstance(error, Exception):
        return error
    kind = type(error)
    try:
        both = _both.setdefault(kind, type(kind.__name__, (Error, kind), {"__module__": kind.__module__}))
        made = both(f"{kind.__name__}: {error}")
    except TypeError:
        made = Error(f"{kind.__name__}: {error}")
    made.__cause__ = error
    return made


_both: dict[type, type] = {}
_registered: dict[str, type] = {}


def register_error(func_name: Any = None, cls: type | None = None) -> Any:
    """A class of errors by its name: `@register_error` above it."""
    if isinstance(func_name, type):
        return register_error(func_name.__name__, func_name)

    def store(kind: type) -> type:
        _registered[str(func_name)] = kind
        return kind
    return store if cls is None else store(cls)


__all__ = ["ChoiceError", "DiagnosticError", "Error", "InternalError", "OpAttributeInvalid", "OpAttributeRequired", "OpAttributeUnImplemented", "OpError", "OpNotImplemented",
           "RPCError", "RPCSessionTimeoutError", "TVMError", "register_error"]
