# SPDX-License-Identifier: Apache-2.0
"""Parses targets of the command line: a kind with options, JSON, or a JSON file."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ...target import Target
from .common import TVMCException


def parse_target(target: str) -> list[dict[str, Any]]:
    """Parses "llvm -mcpu=x, cuda" to [{"name", "opts", "raw", "is_tvm_target"}]. TVMCException if the text is invalid."""
    if not target.strip():
        raise TVMCException("the target is empty; give for instance \"llvm -mcpu=x86-64-v3\"")
    out = []
    for part in _parts(target):
        name, *options = part.split()
        pairs = [o.lstrip("-").partition("=") for o in options]
        if not name[0].isalpha():
            raise TVMCException(f"'{name}' is no name of a target")
        out.append({"name": name, "opts": {k: v.strip("\"'") for k, _, v in pairs}, "raw": part, "is_tvm_target": name in Target.list_kinds() or "/" in name})
    return out


def _parts(target: str) -> list[str]:
    """Splits at the commas between targets, which are followed by a space, unlike those inside an option's list."""
    parts: list[str] = []
    for piece in target.split(","):
        if parts and "=" in parts[-1].split()[-1] and not piece.startswith(" "):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece.strip())
    if any(not p for p in parts):
        raise TVMCException(f"the target '{target}' has an empty part")
    return parts


def target_from_cli(target: str, additional_target_options: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[Target, list[dict[str, Any]]]:
    """(target, external compilers) from text, JSON or the path of a JSON file. TVMCException if it is invalid."""
    try:
        if os.path.exists(target):
            with open(target, encoding="utf-8") as file:
                return Target(json.load(file)), []
        if target.lstrip().startswith("{"):
            return Target(json.loads(target)), []
        parts = parse_target(target)
        own = [p for p in parts if p["is_tvm_target"]]
        if not own:
            raise TVMCException(f"'{target}' names no kind of target; there are {', '.join(Target.list_kinds())}")
        if len(own) > 2:
            raise TVMCException("Only two of the following targets can be used at a time: " + ", ".join(p["name"] for p in own))
        made = Target(own[0]["raw"])
        options = {k: v for k, v in (additional_target_options or {}).get(own[0]["name"], {}).items() if v is not None}
        if options:
            made = Target({**made.export(), **options})
        if len(own) == 2:
            made = Target(made, own[1]["raw"])
        return made, [p for p in parts if not p["is_tvm_target"]]
    except TVMCException:
        raise
    except Exception as error:
        raise TVMCException(f"the target '{target}' cannot be used: {error}") from error


__all__ = ["parse_target", "target_from_cli"]
