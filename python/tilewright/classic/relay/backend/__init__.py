# SPDX-License-Identifier: Apache-2.0
"""Options of executors and runtimes."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...error import InvalidType, InvalidValue


class _Options:
    _kinds: dict[str, dict[str, type]] = {}
    _defaults: dict[str, dict[str, Any]] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None):
        word = type(self).__name__
        if name not in self._kinds:
            raise InvalidValue(f'{word} "{name}" is not defined; there are {", ".join(self._kinds)}')
        self.name = name
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options are values by name, not a {type(options).__name__}")
        self.attrs = dict(self._defaults.get(name, {}))
        for key, value in (options or {}).items():
            if key not in self._kinds[name]:
                raise InvalidValue(f'Attribute "{key}" is not available on this {word}; "{name}" has {", ".join(self._kinds[name]) or "none"}')
            wanted = self._kinds[name][key]
            if not isinstance(value, wanted) and not (wanted is bool and value in (0, 1)):
                raise InvalidType(f'Attribute "{key}" should have type "{wanted.__name__}" but instead found "{type(value).__name__}"')
            self.attrs[key] = wanted(value)

    def __getitem__(self, key: str) -> Any:
        return self.attrs[key]

    def __contains__(self, key: str) -> bool:
        return key in self.attrs

    def flatten(self) -> dict[str, Any]:
        return dict(self.attrs)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.name, self.attrs) == (other.name, other.attrs)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        """The name followed by the options: aot{"unpacked-api": (bool)1}."""
        shown = (f'"{k}": ' + (f"(bool){int(v)}" if isinstance(v, bool) else f'"{v}"' if isinstance(v, str) else str(v)) for k, v in self.attrs.items())
        return f"{self.name}{{{', '.join(shown)}}}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.attrs!r})"


# Types of options by the names of the classic nodes that hold them.
_NODES = {bool: "IntImm", int: "IntImm", str: "runtime.String"}


class Executor(_Options):
    """`Executor("graph", {"link-params": True})`."""
    _kinds = {"graph": {"link-params": bool},
              "aot": {"link-params": bool, "unpacked-api": bool, "interface-api": str, "workspace-byte-alignment": int, "constant-byte-alignment": int}}
    _defaults = {"graph": {"link-params": False}, "aot": {"link-params": True}}

    @staticmethod
    def list_registered() -> list[str]:
        return list(Executor._kinds)

    @staticmethod
    def list_registered_options(executor: str) -> dict[str, str]:
        return {k: _NODES[v] for k, v in Executor._kinds[str(executor)].items()}


class Runtime(_Options):
    """`Runtime("cpp", {"system-lib": False})`."""
    _kinds = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}

    @staticmethod
    def list_registered() -> list[str]:
        return list(Runtime._kinds)

    @staticmethod
    def list_registered_options(runtime: str) -> dict[str, str]:
        return {k: _NODES[v] for k, v in Runtime._kinds[str(runtime)].items()}


__all__ = ["Executor", "Runtime"]


def __getattr__(name: str) -> Any:
    """Resolves the modules of this package on first use."""
    if name in ("_backend", "graph_executor_codegen", "interpreter", "name_transforms", "utils"):
        import importlib
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"relay.backend has no '{name}'")
