# SPDX-License-Identifier: Apache-2.0
"""The classic exception classes. Every error of the compiler and the runtime is a tilewright.Error with a `code`; those for which the
classic stack raises a builtin Python exception also derive from that."""
from __future__ import annotations

from typing import Any

from .._core import Error

TVMError = InternalError = DiagnosticError = RPCError = RPCSessionTimeoutError = Error

class InvalidValue(Error, ValueError):
    """TVMError in the classic stack, and also a ValueError."""
    code, name, hint = 101, "InvalidArgument", ""


class InvalidType(Error, TypeError):
    """TVMError in the classic stack, and also a TypeError."""
    code, name, hint = 101, "InvalidArgument", ""


class ChoiceError(Error):
    """The branches of an If differ in type, or a match marked complete is not."""
    code, name, hint = 301, "TypeMismatch", ""


class _Same:
    """Gives compiler errors an additional Python base class."""

    @classmethod
    def of(cls, error: Error) -> Any:
        made = cls(str(error))  # type: ignore[call-arg]
        made.code, made.name, made.hint = error.code, error.name, error.hint  # type: ignore[attr-defined]
        return made


class OpError(_Same, Error):
    """Base of operator errors."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator unknown to an importer (202)."""


class OpAttributeRequired(OpError, AttributeError):
    """A required attribute is missing."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute has an invalid value."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute unknown to an importer."""


class InvalidOption(_Same, Error, AttributeError):
    """An unknown option of a PassContext, or one of the wrong type."""


class InvalidTarget(_Same, Error, ValueError):
    """An unknown target (401)."""


def as_tvm_error(error: BaseException) -> BaseException:
    """Wraps an exception of a script's callback in a TVMError that also derives from its own class, if such a class can be made."""
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
    """Registers an error class by its name: `@register_error` on the class."""
    if isinstance(func_name, type):
        return register_error(func_name.__name__, func_name)

    def store(kind: type) -> type:
        _registered[str(func_name)] = kind
        return kind
    return store if cls is None else store(cls)


__all__ = ["ChoiceError", "DiagnosticError", "Error", "InternalError", "OpAttributeInvalid", "OpAttributeRequired", "OpAttributeUnImplemented", "OpError", "OpNotImplemented",
           "RPCError", "RPCSessionTimeoutError", "TVMError", "register_error"]
