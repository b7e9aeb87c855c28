# SPDX-License-Identifier: Apache-2.0
"""Marks around what an external code generator is to take. A build sends functions with the attribute Compiler to it (docs/external-codegen.md)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr_functor import ExprMutator


class CcompilerAnnotator(ExprMutator):
    """Everything between the outermost results and the variables belongs to one region of the code generator "ccompiler"."""

    def __init__(self) -> None:
        super().__init__()
        self.in_compiler = 0

    def visit_call(self, call: Any) -> Any:
        raise NotImplementedError("regions are not marked; instead: functions with the attribute Compiler go to the external code generator of that name "
                                  "(docs/external-codegen.md), and MergeComposite makes them from patterns")


class WhiteListAnnotator(CcompilerAnnotator):
    """Calls of the operators on a list belong to a code generator."""

    def __init__(self, op_list: Sequence[str], compiler: str):
        super().__init__()
        self.op_list, self.compiler = list(op_list), compiler


__all__ = ["CcompilerAnnotator", "WhiteListAnnotator"]
