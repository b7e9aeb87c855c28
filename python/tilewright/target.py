# SPDX-License-Identifier: Apache-2.0
"""What code is generated for, in the classic string, dict and JSON forms."""
from __future__ import annotations

import contextvars
import json
from collections.abc import Mapping
from typing import Any

from . import _core

_current: contextvars.ContextVar["Target | None"] = contextvars.ContextVar("target", default=None)
_TAGS = {"llvm": "llvm", "host": "llvm"}


def _text(spec: Mapping[str, Any]) -> str:
    spec = dict(spec)
    kind = spec.pop("kind", None)
    if not kind:
        raise ValueError("a target given as a dict needs the key 'kind'")
    words = [str(kind)]
    for key, value in spec.items():
        if key in ("keys", "tag", "host", "num-cores", "libs", "device", "model"):
            continue
        words.append(f"-{key}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")
    return " ".join(words)


class Target:
    """`Target("llvm -mcpu=znver4")`, `Target({"kind": "llvm", "mcpu": "znver4"})`, the same as JSON text. As a context manager it is
    the current target. Error: 401 (unknown kind, option, CPU)."""

    def __init__(self, target: Any, host: Any = None):
        if isinstance(target, Target):
            self._spec, self.host = target._spec, target.host
        else:
            spec = target
            if isinstance(target, str) and target.lstrip().startswith("{"):
                spec = json.loads(target)
            if isinstance(spec, Mapping):
                host = host or spec.get("host")
                spec = _text(spec)
            if not isinstance(spec, str):
                raise TypeError(f"a target is a string, a dict or JSON, not a {type(target).__name__}")
            words = [w for w in _TAGS.get(spec, spec).split() if not w.startswith(("-keys=", "-num-cores=", "-libs=", "-device=", "-model=", "-link-params="))]
            self._spec = _core.parse_target(" ".join(words))
            self.host = None
        if host is not None:
            self.host = Target(host)

    def __str__(self) -> str:
        return self._spec

    def __repr__(self) -> str:
        return f"Target({self._spec!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and (self._spec, self.host) == (other._spec, other.host)

    def __hash__(self) -> int:
        return hash(self._spec)

    @property
    def attrs(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for word in self._spec.split()[1:]:
            key, _, value = word.lstrip("-").partition("=")
            out[key] = value.split(",") if key == "mattr" else value
        return out

    @property
    def kind(self) -> "TargetKind":
        return TargetKind(self._spec.split()[0])

    @property
    def mcpu(self) -> str:
        return self.attrs.get("mcpu", "")

    @property
    def mattr(self) -> list[str]:
        return self.attrs.get("mattr", [])

    @property
    def keys(self) -> list[str]:
        return ["cpu"]

    def export(self) -> dict[str, Any]:
        """The dict form."""
        out: dict[str, Any] = {"kind": self.kind.name, "keys": self.keys, "tag": "", **self.attrs}
        if self.host:
            out["host"] = self.host.export()
        return out

    def with_host(self, host: Any) -> "Target":
        return Target(self, host)

    def resolve(self) -> dict[str, Any]:
        """What the target comes to on this machine: CPU, vector width, features that the code will need."""
        return _core.resolve_target(self._spec)

    def __enter__(self) -> "Target":
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    @staticmethod
    def current(allow_none: bool = True) -> "Target | None":
        found = _current.get()
        if found is None and not allow_none:
            raise ValueError("Target context required. Please set it by constructing a Target and entering it.")
        return found

    @staticmethod
    def canon_target(target: Any) -> "Target | None":
        return None if target is None else Target(target)

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None) -> tuple["Target", "Target | None"]:
        target = Target(target, target_host)
        return target, target.host

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list["Target"]:
        """One target, a list, or a dict by device, as a list of targets."""
        if isinstance(target, Mapping) and "kind" not in target:
            return [Target(t, target_host) for t in target.values()]
        if isinstance(target, (list, tuple)):
            return [Target(t, target_host) for t in target]
        return [Target(target, target_host)]


class TargetKind(str):
    @property
    def name(self) -> str:
        return str(self)


def arm_cpu(model: str = "unknown", options: Any = None) -> Target:
    raise NotImplementedError("cross compilation to Arm is asked for by Target('llvm -mtriple=aarch64-linux-gnu -mcpu=...')")


__all__ = ["Target", "TargetKind"]
