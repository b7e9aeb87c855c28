# SPDX-License-Identifier: Apache-2.0
"""`python -m tilewright.as_tvm --check script.py`: lists the classic names that a script uses and Tilewright lacks, with replacements.
The script is parsed, not run."""
from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from .. import as_tvm


def _resolve(path: str) -> Any:
    """The module or object at `tvm.a.b`. AttributeError or ModuleNotFoundError if there is none."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        parent, _, last = path.rpartition(".")
        if not parent:
            raise
        return getattr(_resolve(parent), last)


def _complaint(path: str) -> str | None:
    """Why a name cannot be used, or None."""
    try:
        found = _resolve(path)
    except (AttributeError, ModuleNotFoundError, ImportError) as error:
        text = str(error)
        return text if "does not exist" in text else as_tvm._missing(path.partition(".")[2])
    return found.__doc__ if isinstance(found, as_tvm._Absent) else None


class _Names(ast.NodeVisitor):
    """Collects (line, path) of every tvm name that is imported or used."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.used: list[tuple[int, str]] = []

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.name.split(".")[0] == "tvm":
                self.bound[name.asname or "tvm"] = name.name if name.asname else "tvm"
                self.used.append((node.lineno, name.name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or (node.module or "").split(".")[0] != "tvm":
            return
        for name in node.names:
            path = str(node.module) if name.name == "*" else f"{node.module}.{name.name}"
            if name.name != "*":
                self.bound[name.asname or name.name] = path
            self.used.append((node.lineno, path))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, at = [node.attr], node.value
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.bound:
            self.used.append((node.lineno, ".".join([self.bound[at.id], *reversed(parts)])))
        else:
            self.generic_visit(node)


def _first_absent(path: str) -> tuple[str, str] | None:
    """The shortest missing prefix of a path, and the reason; attributes of values (methods, fields) are not checked."""
    parts = path.split(".")
    for end in range(1, len(parts) + 1):
        beginning = ".".join(parts[:end])
        why = _complaint(beginning)
        if why is not None:
            if end < len(parts) and as_tvm._Absent is type(_try(beginning)):
                continue  # the module cannot be imported: the full name below gives the better message
            return beginning, why
        if end < len(parts) and not _has_parts(_try(beginning)):
            return None
    return None


def _try(path: str) -> Any:
    try:
        return _resolve(path)
    except Exception:
        return None


def _has_parts(value: Any) -> bool:
    return isinstance(value, type(as_tvm)) or type(value).__name__ == "_Namespace"


def check(path: str) -> Iterator[str]:
    """One message per use of a missing name. SyntaxError if the file is not valid Python."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    names = _Names()
    for node in ast.walk(tree):  # imports first: they may come after their use
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.visit(node)
    imported, names.used = names.used, []
    names.visit(tree)
    seen = set()
    for line, used in sorted(set(imported + names.used)):
        found = _first_absent(used)
        if found is not None and (line, found[0]) not in seen:
            seen.add((line, found[0]))
            yield f"{path}:{line}: {found[1] if found[0] in found[1] else found[0] + ': ' + found[1]}"


def main(paths: Sequence[str]) -> int:
    """Prints the missing names. Exit status: 0 none missing, 1 some missing, 2 unreadable file."""
    count = 0
    for path in paths:
        try:
            for line in check(path):
                print(line)
                count += 1
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"{path}: {error}")
            return 2
    if not count:
        print("every name of tvm that is used here exists")
    return 1 if count else 0


__all__ = ["check", "main"]
